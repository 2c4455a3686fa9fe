/* SPDX-License-Identifier: MIT */
/*
 * One client request on its way through.
 *
 *   call_start -> route -> upstream_send -> on_progress* -> on_done
 *        |  nobody has it and lists are still coming: wait, then once more
 *
 * Owns: the route's reference; the copy of a message that waits; what of the message is
 * ours.
 * Driven by: front (start, cancel), the upstream (progress, end), the gateway's wait.
 * Invariants: notices for a request come before its end and never after; a call ends
 * by on_done or by call_cancel, not both.
 */
#include "mcpvisor/call.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/naming.h"
#include "mcpvisor/shape.h"
#include "mcpvisor/tasks.h"

#include <stdio.h>
#include <string.h>

static unsigned
call_view(const struct call *c)
{
	return c->owner != NULL ? c->owner->view : 0;
}

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
	r = catalog_find(gateway_catalog(c->g), call_view(c), kind, text);
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

/* c->u has a uri_prefix: it gets its own URI in place of the published one. */
static enum mv_err
call_aim_uri(
    struct call *c, struct upstream_call *req, enum list_kind kind, enum json_slot slot)
{
	struct json_span at = req->json->slot[slot];
	struct jtext text, own;
	const struct route *r;

	if (upstream_conf_of(c->u)->uri_prefix == NULL)
		return MV_OK;
	text = gateway_text(c->g, jtext_of(req->base, at));
	r = catalog_find(gateway_catalog(c->g), call_view(c), kind, text);
	own = catalog_own_uri(c->u, text);
	if (r != NULL && r->u == c->u)
		json_put(&c->own, r->original);
	else if (own.n == text.n)
		return MV_OK; /* a result named it, as the upstream calls it */
	else
		json_put_string(&c->own, own.p, own.n);
	req->target = (struct json_edit){
	    .off = at.off, .len = at.len, .put = c->own.data, .put_len = c->own.len};
	return c->own.err;
}

static enum mv_err
route_uri(struct call *c, struct upstream_call *req)
{
	struct jtext uri = jtext_of(req->base, req->json->slot[JSON_P_URI]);

	if (jtext_type(uri) != '"')
		return MV_PARAMS;
	c->u = gateway_route_uri(c->g, call_view(c), uri);
	if (c->u == NULL)
		return MV_NOT_FOUND;
	return call_aim_uri(c, req, LIST_RESOURCES, JSON_P_URI);
}

/* completion/complete: by what its ref names. */
static enum mv_err
route_ref_of(struct call *c, struct upstream_call *req)
{
	struct jtext type = jtext_of(req->base, req->json->slot[JSON_R_TYPE]);
	struct jtext uri = jtext_of(req->base, req->json->slot[JSON_R_URI]), text;
	enum list_kind kind = LIST_TEMPLATES;
	struct route *r;

	if (json_string_is(type, "ref/prompt"))
		return route_by_name(c, req, LIST_PROMPTS, JSON_R_NAME);
	if (!json_string_is(type, "ref/resource") || jtext_type(uri) != '"')
		return MV_PARAMS;
	text = gateway_text(c->g, uri);
	r = text.p ? catalog_find(gateway_catalog(c->g), call_view(c), kind, text) : NULL;
	if (r == NULL)
		kind = LIST_RESOURCES;
	c->u = r != NULL ? r->u : gateway_route_uri(c->g, call_view(c), uri);
	return c->u != NULL ? call_aim_uri(c, req, kind, JSON_R_URI) : MV_NOT_FOUND;
}

static enum mv_err
route_completion(struct call *c, struct upstream_call *req)
{
	enum mv_err err = route_ref_of(c, req);

	return err == MV_OK && !upstream_caps(c->u)->completions ? MV_UNSUPPORTED : err;
}

static enum mv_err
route_task(struct call *c, struct upstream_call *req)
{
	struct json_span at = req->json->slot[JSON_P_TASK_ID];
	struct jtext own;

	if (c->task == NULL) {
		(void)snprintf(c->why, sizeof(c->why),
		    "taskId names no task of this client, or one that is over and gone");
		return MV_PARAMS;
	}
	c->u = task_upstream(c->task);
	c->task_serial = task_serial(c->task);
	own = task_own_id(c->task);
	req->target = (struct json_edit){
	    .off = at.off, .len = at.len, .put = own.p, .put_len = own.n};
	c->task = NULL;
	return MV_OK;
}

static const struct {
	enum method method;
	enum mv_err (*find)(struct call *c, struct upstream_call *req);
	/* Of what it has a published name, and where; LIST_MAX: it has none. */
	enum list_kind named;
	enum json_slot name;
} routes[] = {
    {METHOD_TOOLS_CALL, route_tool, LIST_TOOLS, JSON_P_NAME},
    {METHOD_PROMPTS_GET, route_prompt, LIST_PROMPTS, JSON_P_NAME},
    {METHOD_RESOURCES_READ, route_uri, LIST_MAX, JSON_SLOT_MAX},
    {METHOD_COMPLETE, route_completion, LIST_PROMPTS, JSON_R_NAME},
    {METHOD_TASKS_GET, route_task, LIST_MAX, JSON_SLOT_MAX},
    {METHOD_TASKS_RESULT, route_task, LIST_MAX, JSON_SLOT_MAX},
    {METHOD_TASKS_UPDATE, route_task, LIST_MAX, JSON_SLOT_MAX},
    {METHOD_TASKS_CANCEL, route_task, LIST_MAX, JSON_SLOT_MAX},
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

	gateway_note_call_over(c->g);
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

static void
on_log(void *arg, const struct link_msg *m)
{
	struct call *c = arg;

	c->cb->on_log(c->arg, m);
}

static void
on_question(void *arg, struct question *q)
{
	struct call *c = arg;

	c->cb->on_question(c->arg, q);
}

static const struct upstream_req_cb req_cb = {
    .on_progress = on_progress,
    .on_log = on_log,
    .on_question = on_question,
    .on_done = on_done,
};

static enum mv_err
call_route(struct call *c, struct upstream_call *req)
{
	for (size_t i = 0; i < N_ROUTES; i++)
		if (routes[i].method == req->method)
			return routes[i].find(c, req);
	return MV_NO_METHOD;
}

/* The arguments go by one member, and nobody may be able to take another for it. */
static bool
call_has_one_arguments(const struct upstream_call *req)
{
	const struct json_span *slot = req->json->slot;
	struct jtext key, value, args = jtext_of(req->base, slot[JSON_P_ARGUMENTS]);
	struct json_iter it;

	json_iter_init(&it, jtext_of(req->base, slot[JSON_PARAMS]));
	while (json_next_member(&it, &key, &value))
		if (value.p != args.p && shape_key_is_like(key, "arguments"))
			return false;
	return true;
}

static enum mv_err
call_refuse_arguments(struct call *c, struct jtext bad)
{
	if (bad.n == 0)
		(void)snprintf(c->why, sizeof(c->why), "arguments must be an object");
	else
		(void)snprintf(c->why, sizeof(c->why),
		    "argument %.*s differs only by case from one that is fixed",
		    bad.n > 80 ? 80 : (int)bad.n, bad.p);
	return MV_PARAMS;
}

/* Where our arguments go: in place of the client's, or behind the name. */
static struct json_edit
call_arguments_edit(const struct call *c, const struct upstream_call *req)
{
	struct json_span args = req->json->slot[JSON_P_ARGUMENTS];
	struct json_span name = req->json->slot[JSON_P_NAME];
	struct json_edit e = {.put = c->own.data, .put_len = c->own.len};

	e.off = args.len > 0 ? args.off : name.off + name.len;
	e.len = args.len;
	return e;
}

/* What the conf says of this tool beyond its looks. */
static enum mv_err
call_shape(struct call *c, struct upstream_call *req)
{
	const struct tool_shape *s = c->route != NULL ? c->route->shape : NULL;
	struct jtext args = jtext_of(req->base, req->json->slot[JSON_P_ARGUMENTS]), bad;
	enum mv_err err;

	c->req.call_ms = s != NULL ? s->call_ms : 0;
	c->req.call_max_ms = s != NULL ? s->call_max_ms : 0;
	if (s == NULL || (s->fixed == NULL && s->defaults == NULL))
		return MV_OK;
	if (!call_has_one_arguments(req)) {
		(void)snprintf(c->why, sizeof(c->why), "arguments are given twice");
		return MV_PARAMS;
	}
	if (args.n == 0)
		buf_add_str(&c->own, ",\"arguments\":");
	err = shape_put_arguments(&c->own, args, s, &bad);
	if (err == MV_PARAMS)
		return call_refuse_arguments(c, bad);
	req->arguments = call_arguments_edit(c, req);
	return err;
}

/* A copy for the case that its client has to be asked. */
static enum mv_err
call_keep(struct call *c, const struct upstream_call *req)
{
	/* It would bring twice what call_retry brings. */
	if (req->json->slot[JSON_P_REQUEST_STATE].len != 0 ||
	    req->json->slot[JSON_P_INPUT_RESPONSES].len != 0) {
		(void)snprintf(c->why, sizeof(c->why),
		    "requestState and inputResponses are of a later revision");
		return MV_PARAMS;
	}
	upstream_call_free(c->kept);
	c->kept = upstream_call_dup(req);
	c->serial = gateway_serial(c->g, c->u);
	return c->kept != NULL ? MV_OK : MV_NOMEM;
}

static enum mv_err
call_launch(struct call *c, struct upstream_call *req)
{
	enum mv_err err = call_shape(c, req);

	if (c->has_state && !upstream_may_ask_in_results(c->u)) {
		(void)snprintf(
		    c->why, sizeof(c->why), "requestState was not given out here");
		return MV_PARAMS;
	}
	/* A task is known to the instance that made it and to no other. */
	if (err == MV_OK && c->task_serial == 0)
		err = gateway_pick_instance(c->g, &c->u, c->owner, c->caps);
	if (err != MV_OK)
		return err;
	c->req.cb = &req_cb;
	c->req.arg = c;
	c->req.owner = c->owner;
	if (c->keeps && upstream_may_ask_in_results(c->u)) {
		err = call_keep(c, req);
		if (err != MV_OK)
			return err;
	}
	return upstream_send(c->u, &c->req, req);
}

void
call_look(struct call *c)
{
	if (c->kept != NULL && c->req.u == NULL && c->u != NULL &&
	    gateway_serial(c->g, c->u) != c->serial)
		c->u = NULL;
}

enum mv_err
call_retry(struct call *c, struct jtext responses, struct jtext state)
{
	struct upstream_call *kept = c->kept != NULL ? &c->kept->call : NULL;
	struct json_span params;

	call_look(c);
	if (kept == NULL || c->u == NULL)
		return MV_DIED;
	params = kept->json->slot[JSON_PARAMS];
	buf_reset(&c->input);
	if (responses.n > 0) {
		buf_add_str(&c->input, "\"inputResponses\":");
		json_put(&c->input, responses);
		buf_add_char(&c->input, ',');
	}
	if (state.n > 0) {
		buf_add_str(&c->input, "\"requestState\":");
		json_put(&c->input, state);
		buf_add_char(&c->input, ',');
	}
	if (c->input.err != MV_OK)
		return c->input.err;
	kept->input = (struct json_edit){
	    .off = params.off + 1, .put = c->input.data, .put_len = c->input.len};
	return upstream_send(c->u, &c->req, kept);
}

/* Whose tool or prompt of that name it would be, while that upstream has not told what it
 * has. Not a route: only the reason why there is none. */
static struct upstream *
call_suspect_named(struct call *c, enum list_kind kind, struct jtext name)
{
	struct upstream *found = NULL;
	struct buf prefix;

	buf_init(&prefix, CAP_URI_BYTES);
	for (size_t i = 0; i < gateway_count(c->g) && found == NULL; i++) {
		struct upstream *u = gateway_upstream(c->g, i);
		const struct upstream_conf *conf = upstream_conf_of(u);

		if (upstream_list(u, kind)->is_known)
			continue;
		buf_reset(&prefix);
		naming_prefix(conf->name, conf->prefix, &prefix);
		if (prefix.len == 0 || name.n <= prefix.len ||
		    memcmp(name.p, prefix.data, prefix.len) != 0)
			continue;
		if (catalog_may_show_name(gateway_catalog(c->g), call_view(c), kind, u,
			name, (struct jtext){name.p + prefix.len, name.n - prefix.len}))
			found = u;
	}
	buf_fini(&prefix);
	return found;
}

static struct upstream *
call_suspect(struct call *c, const struct upstream_call *req)
{
	for (size_t i = 0; i < N_ROUTES; i++)
		if (routes[i].method == req->method && routes[i].named != LIST_MAX)
			return call_suspect_named(c, routes[i].named,
			    gateway_text(c->g,
				jtext_of(req->base, req->json->slot[routes[i].name])));
	return NULL;
}

/* Nobody has what req names: what is to be said of it now. MV_NOT_FOUND: nobody will. */
static enum mv_err
call_explain(struct call *c, const struct upstream_call *req)
{
	enum mv_err err;

	c->u = call_suspect(c, req);
	if (c->u == NULL)
		return MV_NOT_FOUND;
	err = upstream_refusal(c->u);
	return err != MV_OK ? err : MV_STARTING;
}

static enum mv_err
call_again(struct call *c)
{
	enum mv_err err = call_route(c, &c->copy->call);

	return err == MV_OK ? call_launch(c, &c->copy->call) : err;
}

static void
call_end_wait(struct call *c, enum mv_err err)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err};

	if (c->why[0] != '\0')
		o.detail = c->why;
	upstream_call_free(c->copy);
	c->copy = NULL;
	if (err != MV_OK)
		on_done(c, &o);
}

/* One more list is in. */
static void
on_list(void *arg)
{
	struct call *c = arg;
	enum mv_err err = call_again(c);

	if (err == MV_NOT_FOUND)
		return;
	gateway_unwait(&c->waiter);
	call_end_wait(c, err);
}

/* The lists are in, or their time is over: now nobody means nobody. */
static void
on_lists(void *arg)
{
	struct call *c = arg;
	enum mv_err err = call_again(c);

	if (err == MV_NOT_FOUND)
		err = call_explain(c, &c->copy->call);
	call_end_wait(c, err);
}

enum mv_err
call_start(struct gateway *g, struct call *c, const struct upstream_call *req)
{
	struct upstream_call mine = *req;
	enum mv_err err;

	c->g = g;
	c->why[0] = '\0';
	buf_init(&c->own, CAP_MESSAGE_BYTES);
	buf_init(&c->input, CAP_MESSAGE_BYTES);
	metrics_add(METRIC_CALLS, 1);
	err = call_route(c, &mine);
	if (err == MV_OK)
		return call_launch(c, &mine);
	if (err != MV_NOT_FOUND)
		return err;
	/* Wait for lists that may yet have it, unless its owner is known to be down. */
	err = call_explain(c, &mine);
	c->waiter.fn = on_lists;
	c->waiter.retry = on_list;
	c->waiter.arg = c;
	c->waiter.bytes = mine.len + mine.client_info.n;
	if (err != MV_NOT_FOUND && err != MV_STARTING)
		return err;
	if (!gateway_may_keep(g, c->waiter.bytes))
		return MV_BUSY;
	if (!gateway_wait(g, &c->waiter))
		return err;
	c->u = NULL;
	c->copy = upstream_call_dup(&mine);
	if (c->copy != NULL)
		return MV_OK;
	gateway_unwait(&c->waiter);
	return MV_NOMEM;
}

void
call_cancel(struct call *c, const struct link_msg *cancel)
{
	if (c->waiter.g == NULL && c->req.u == NULL)
		return; /* not started, over, or its client is asked */
	metrics_add(METRIC_CALLS_CANCELLED, 1);
	gateway_unwait(&c->waiter);
	upstream_cancel(&c->req, cancel);
	gateway_note_call_over(c->g);
}

void
call_fini(struct call *c)
{
	gateway_unwait(&c->waiter);
	upstream_call_free(c->copy);
	upstream_call_free(c->kept);
	c->copy = c->kept = NULL;
	route_unref(c->route);
	buf_fini(&c->own);
	buf_fini(&c->input);
	c->route = NULL;
	c->u = NULL;
}
