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

#include "call_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/shape.h"

#include <string.h>

enum { RPC_NO_METHOD = -32601 };

static const struct jtext no_value = {NULL, 0};

static void
on_progress(void *arg, const struct link_msg *m)
{
	struct call *c = arg;

	c->cb->on_progress(c->arg, m);
}

static void
call_set_asked(struct call *c, bool asked)
{
	if (c->is_asked == asked)
		return;
	c->is_asked = asked;
	gateway_keep_instance(c->g, c->u, c->serial, asked);
}

static bool
call_is_of_tool(const struct call *c)
{
	return c->route != NULL && c->route->kind == LIST_TOOLS;
}

/* What it listed is not there: maybe there are other tools now. */
static void
call_doubt_list(const struct call *c, const struct outcome *o)
{
	int64_t code = 0;

	if (call_is_of_tool(c) &&
	    json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code) &&
	    code == RPC_NO_METHOD)
		upstream_doubt_list(c->u, LIST_TOOLS);
}

/* Most tools are known not to. */
static bool
call_may_ask_identity(const struct call *c)
{
	return call_is_of_tool(c) && c->route->identity != ROUTE_IDENTITY_NO;
}

void
call_finish(struct call *c, const struct outcome *o)
{
	switch (o->kind) {
	case OUTCOME_INPUT_REQUIRED:
		call_set_asked(c, c->kept != NULL);
		call_note_asked(c);
		__attribute__((fallthrough));
	case OUTCOME_RESULT:
		metrics_add(METRIC_CALLS_RETURNED, 1);
		if (o->label != NULL && o->label->is_error)
			metrics_add(METRIC_CALLS_TOOL_ERROR, 1);
		if (o->json->n_uris > 0)
			gateway_note_uris(c->g, c->u, o->base, o->json);
		break;
	case OUTCOME_ERROR:
		metrics_add(METRIC_CALLS_RETURNED, 1);
		call_doubt_list(c, o);
		break;
	case OUTCOME_FAILED:
		metrics_add(METRIC_CALLS_FAILED, 1);
		break;
	}
	c->cb->on_done(c->arg, o);
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct call *c = arg;
	struct outcome judged;

	gateway_note_call_over(c->g);
	if (o->kind == OUTCOME_RESULT && call_is_of_tool(c)) {
		judged = *o;
		call_judge(c, &judged);
		o = &judged;
	} else if (c->u != NULL) {
		call_note_failure(c, o);
	}
	call_finish(c, o);
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

	call_note_asked(c);
	c->cb->on_question(c->arg, q);
}

static const struct upstream_req_cb req_cb = {
    .on_progress = on_progress,
    .on_log = on_log,
    .on_question = on_question,
    .on_done = on_done,
};

enum mv_err
call_refuse(struct call *c, enum wording w, struct jtext value)
{
	wording_print(c->why, sizeof(c->why), w, value);
	return MV_PARAMS;
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
call_refuse_arguments(struct call *c, struct jtext args, struct jtext bad)
{
	if (bad.n == 0)
		return call_refuse(c, WORDING_ARGUMENTS, args);
	return call_refuse(c, WORDING_ARGUMENT_CASE, bad);
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
	if (!call_has_one_arguments(req))
		return call_refuse(c, WORDING_ARGUMENTS_TWICE, no_value);
	if (upstream_kind_is_own(upstream_conf_of(c->u)->kind)) {
		bad = shape_fixed_in(args, s);
		if (bad.n != 0)
			return call_refuse(c, WORDING_ARGUMENT_FIXED, bad);
	}
	if (args.n == 0)
		buf_add_str(&c->own, ",\"arguments\":");
	err = shape_put_arguments(&c->own, args, s, &bad);
	if (err == MV_PARAMS)
		return call_refuse_arguments(c, args, bad);
	req->arguments = call_arguments_edit(c, req);
	return err;
}

/* A copy for the case that its client has to be asked. */
static enum mv_err
call_keep(struct call *c, const struct upstream_call *req)
{
	/* It would bring twice what call_retry brings. */
	if (req->json->slot[JSON_P_REQUEST_STATE].len != 0 ||
	    req->json->slot[JSON_P_INPUT_RESPONSES].len != 0)
		return call_refuse(c, WORDING_STATE_OF_LATER, no_value);
	upstream_call_free(c->kept);
	c->kept = upstream_call_dup(req);
	c->serial = gateway_serial(c->g, c->u);
	return c->kept != NULL ? MV_OK : MV_NOMEM;
}

static enum mv_err
call_launch(struct call *c, struct upstream_call *req)
{
	enum mv_err err = call_shape(c, req);

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
	/* Why it would be MV_PARAMS from here on. */
	if (req->has_state)
		(void)call_refuse(c, WORDING_STATE_FOREIGN, no_value);
	c->refusals = upstream_refusals(c->u);
	if (call_may_ask_identity(c) && call_ask_identity(c, req))
		return MV_OK;
	err = upstream_send(c->u, &c->req, req);
	if (c->identity != NULL)
		call_note_sent(c);
	return err;
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
	enum mv_err err;

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
	err = upstream_send(c->u, &c->req, kept);
	call_set_asked(c, false);
	return err;
}

/* Nobody has what req names: what is to be said of it now. MV_NOT_FOUND: nobody will. */
static enum mv_err
call_explain(struct call *c, const struct upstream_call *req)
{
	enum mv_err err;

	c->u = call_suspect(c, req);
	if (c->u == NULL)
		return MV_NOT_FOUND;
	c->refusals = upstream_refusals(c->u);
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

	if (err == MV_PARAMS && c->why[0] != '\0')
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
	c->waiter.bytes = upstream_call_bytes(&mine);
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
	if (c->waiter.g == NULL && c->req.u == NULL && !call_forget_identity(c))
		return; /* not started, over, or its client is asked */
	metrics_add(METRIC_CALLS_CANCELLED, 1);
	gateway_unwait(&c->waiter);
	upstream_cancel(&c->req, cancel);
	gateway_note_call_over(c->g);
}

void
call_fini(struct call *c)
{
	if (c->g == NULL)
		return; /* not started */
	call_set_asked(c, false);
	gateway_unwait(&c->waiter);
	if (c->identity != NULL)
		(void)call_forget_identity(c);
	upstream_call_free(c->copy);
	upstream_call_free(c->kept);
	c->copy = c->kept = NULL;
	route_unref(c->route);
	buf_fini(&c->own);
	buf_fini(&c->input);
	c->g = NULL;
	c->route = NULL;
	c->u = NULL;
}
