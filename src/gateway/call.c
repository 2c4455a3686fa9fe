/* SPDX-License-Identifier: MIT */
/*
 * One client request on its way through.
 *
 *   call_start -> route -> upstream_send -> on_progress* -> on_done
 *        |  nobody has it and lists are still coming: wait, then once more
 *
 * Owns: the route's reference; the copy of a message that waits.
 * Driven by: front (start, cancel), the upstream (progress, end), the gateway's wait.
 * Invariants: notices for a request come before its end and never after; a call ends
 * by on_done or by call_cancel, not both.
 */
#include "mcpvisor/call.h"

#include "gateway_priv.h"

#include "mcpvisor/metrics.h"

#include <string.h>

static void
call_aim(struct call *c, struct upstream_call *req, struct route *r, enum json_slot slot)
{
	c->route = route_ref(r);
	c->u = r->u;
	req->target = (struct json_edit){.off = req->json->slot[slot].off,
	    .len = req->json->slot[slot].len,
	    .put = c->route->original.p,
	    .put_len = c->route->original.n};
}

static enum mv_err
route_by_name(
    struct call *c, struct upstream_call *req, enum list_kind kind, enum json_slot slot)
{
	struct jtext text =
	    gateway_text(c->g, jtext_of(req->base, req->json->slot[slot]));
	struct route *r;

	if (text.p == NULL)
		return MV_PARAMS;
	r = catalog_find(c->g->catalog, kind, text);
	if (r == NULL)
		return MV_NOT_FOUND;
	call_aim(c, req, r, slot);
	return MV_OK;
}

static enum mv_err
route_tool(struct call *c, struct upstream_call *req)
{
	return route_by_name(c, req, LIST_TOOLS, JSON_P_NAME);
}

static enum mv_err
route_prompt(struct call *c, struct upstream_call *req)
{
	return route_by_name(c, req, LIST_PROMPTS, JSON_P_NAME);
}

static enum mv_err
route_uri(struct call *c, struct upstream_call *req)
{
	struct jtext uri = jtext_of(req->base, req->json->slot[JSON_P_URI]);

	if (json_type(uri) != '"')
		return MV_PARAMS;
	c->u = gateway_route_uri(c->g, uri);
	return c->u != NULL ? MV_OK : MV_NOT_FOUND;
}

/* completion/complete: by what its ref names. */
static enum mv_err
route_ref_of(struct call *c, struct upstream_call *req)
{
	struct jtext type = jtext_of(req->base, req->json->slot[JSON_R_TYPE]);
	struct jtext uri = jtext_of(req->base, req->json->slot[JSON_R_URI]), text;
	struct route *r;

	if (json_string_is(type, "ref/prompt"))
		return route_by_name(c, req, LIST_PROMPTS, JSON_R_NAME);
	if (!json_string_is(type, "ref/resource") || json_type(uri) != '"')
		return MV_PARAMS;
	text = gateway_text(c->g, uri);
	r = text.p ? catalog_find(c->g->catalog, LIST_TEMPLATES, text) : NULL;
	c->u = r != NULL ? r->u : gateway_route_uri(c->g, uri);
	return c->u != NULL ? MV_OK : MV_NOT_FOUND;
}

static enum mv_err
route_completion(struct call *c, struct upstream_call *req)
{
	enum mv_err err = route_ref_of(c, req);

	return err == MV_OK && !upstream_caps(c->u)->completions ? MV_UNSUPPORTED : err;
}

static const struct {
	enum method method;
	enum mv_err (*find)(struct call *c, struct upstream_call *req);
} routes[] = {
    {METHOD_TOOLS_CALL, route_tool},
    {METHOD_PROMPTS_GET, route_prompt},
    {METHOD_RESOURCES_READ, route_uri},
    {METHOD_COMPLETE, route_completion},
};
#define N_ROUTES (sizeof(routes) / sizeof(routes[0]))

bool
call_is_forwarded(enum method m)
{
	for (size_t i = 0; i < N_ROUTES; i++)
		if (routes[i].method == m)
			return true;
	return false;
}

static void
on_progress(void *arg, const struct link_msg *m)
{
	struct call *c = arg;

	c->cb->on_progress(c->arg, m);
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct call *c = arg;

	switch (o->kind) {
	case OUTCOME_RESULT:
	case OUTCOME_INPUT_REQUIRED:
		metrics_add(METRIC_CALLS_RETURNED, 1);
		if (json_is_true(jtext_of(o->base, o->json->slot[JSON_IS_ERROR])))
			metrics_add(METRIC_CALLS_TOOL_ERROR, 1);
		if (o->json->n_uris > 0)
			gateway_note_uris(c->g, c->u, o->base, o->json);
		break;
	case OUTCOME_ERROR:
		metrics_add(METRIC_CALLS_RETURNED, 1);
		break;
	case OUTCOME_FAILED:
		metrics_add(METRIC_CALLS_FAILED, 1);
		break;
	}
	c->cb->on_done(c->arg, o);
}

static const struct upstream_req_cb req_cb = {
    .on_progress = on_progress,
    .on_done = on_done,
};

static enum mv_err
call_route(struct call *c, struct upstream_call *req)
{
	for (size_t i = 0; i < N_ROUTES; i++) {
		enum mv_err err;

		if (routes[i].method != req->method)
			continue;
		err = routes[i].find(c, req);
		return err;
	}
	return MV_NO_METHOD;
}

static enum mv_err
call_launch(struct call *c, struct upstream_call *req)
{
	c->req.cb = &req_cb;
	c->req.arg = c;
	return upstream_send(c->u, &c->req, req);
}

/* The lists are in, or their time is over: now nobody means nobody. */
static void
on_lists(void *arg)
{
	struct call *c = arg;
	struct upstream_call_copy *copy = c->copy;
	struct outcome o = {.kind = OUTCOME_FAILED};

	c->copy = NULL;
	o.err = call_route(c, &copy->call);
	if (o.err == MV_OK)
		o.err = call_launch(c, &copy->call);
	upstream_call_free(copy);
	if (o.err != MV_OK)
		on_done(c, &o);
}

enum mv_err
call_start(struct gateway *g, struct call *c, const struct upstream_call *req)
{
	struct upstream_call mine = *req;
	enum mv_err err;

	c->g = g;
	metrics_add(METRIC_CALLS, 1);
	err = call_route(c, &mine);
	if (err == MV_NOT_FOUND) {
		c->waiter.fn = on_lists;
		c->waiter.arg = c;
		if (!gateway_wait(g, &c->waiter))
			return err;
		c->copy = upstream_call_dup(&mine);
		if (c->copy != NULL)
			return MV_OK;
		gateway_unwait(&c->waiter);
		return MV_NOMEM;
	}
	return err == MV_OK ? call_launch(c, &mine) : err;
}

void
call_cancel(struct call *c, const struct link_msg *cancel)
{
	metrics_add(METRIC_CALLS_CANCELLED, 1);
	gateway_unwait(&c->waiter);
	upstream_cancel(&c->req, cancel);
}

void
call_fini(struct call *c)
{
	gateway_unwait(&c->waiter);
	upstream_call_free(c->copy);
	c->copy = NULL;
	route_unref(c->route);
	c->route = NULL;
	c->u = NULL;
}
