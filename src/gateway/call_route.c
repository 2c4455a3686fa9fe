/* SPDX-License-Identifier: MIT */
/*
 * Whose a request is: by the name, the URI or the task that it is about.
 *
 * Owns: the table of what is forwarded.
 * Driven by: calls, when they start and when one more list is in.
 * Invariants: routing is by table; a name is split to explain why there is no route, and
 * never to make one.
 */
#include "mcpvisor/call.h"

#include "call_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/naming.h"
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
		return call_refuse(c, WORDING_TASK_UNKNOWN, jtext_of(req->base, at));
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

enum mv_err
call_route(struct call *c, struct upstream_call *req)
{
	for (size_t i = 0; i < N_ROUTES; i++)
		if (routes[i].method == req->method)
			return routes[i].find(c, req);
	return MV_NO_METHOD;
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

struct upstream *
call_suspect(struct call *c, const struct upstream_call *req)
{
	for (size_t i = 0; i < N_ROUTES; i++)
		if (routes[i].method == req->method && routes[i].named != LIST_MAX)
			return call_suspect_named(c, routes[i].named,
			    gateway_text(c->g,
				jtext_of(req->base, req->json->slot[routes[i].name])));
	return NULL;
}
