/* SPDX-License-Identifier: MIT */
/*
 * tools/call, prompts/get, resources/read, completion/complete: forwarded to their
 * owner, and its answer in the client's era.
 *
 * Driven by: dispatch, then the call's callbacks.
 * Invariants: a result's bytes pass as they are but for what edit_result inserts;
 * unknown names are ours to refuse, and never reach an upstream.
 */
#include "client_ask_priv.h"
#include "client_log_priv.h"
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/wording.h"

enum { RPC_URL_ELICITATION = -32042, RPC_PARAMS = -32602, RPC_INTERNAL = -32603 };

static const struct jtext no_name = {NULL, 0};

static void
call_on_progress(void *arg, const struct link_msg *m)
{
	struct request *r = arg;
	struct json_edits ed;
	struct json_span at = m->json->slot[JSON_P_PROGRESS_TOKEN];
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	json_edits_init(&ed);
	/* Who gave no token wants no progress, whatever the upstream thinks. */
	if (r->token.n == 0) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	json_edit_add(&ed, at.off, at.len, r->token.p, r->token.n);
	task_edit_notice(r->c, r->call.u, m, &ed);
	request_notify(r, iov, json_edit_pieces(m->base, whole, &ed, iov));
}

/* What its model may read instead of an error that only its client would see. */
static bool
call_is_rescued(const struct request *r, int64_t code)
{
	return r->method == METHOD_TOOLS_CALL &&
	       (code == RPC_PARAMS || code == RPC_INTERNAL) &&
	       upstream_conf_of(r->call.u)->rescue_errors;
}

static void
call_reply_error(struct request *r, const struct outcome *o)
{
	struct buf *out = &r->c->scratch;
	struct iovec iov = {(void *)(uintptr_t)o->body.p, o->body.n};
	struct call_end end = {.ending = CALL_END_ERROR};
	const char *member;
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	end.code = code;
	if (code == RPC_URL_ELICITATION && !r->era->modern)
		request_note_elicitations(r, o);
	buf_reset(out);
	if (call_is_rescued(r, code)) {
		member = "result";
		wording_put_error_result(out, r->era->result_members, code,
		    jtext_of(o->base, o->json->slot[JSON_E_MESSAGE]));
	} else {
		member = r->era->map_error(r, o, code, out);
	}
	if (member != NULL && out->err == MV_OK) {
		iov = (struct iovec){out->data, out->len};
		/* The status is that of what is sent. */
		code = 0;
		(void)json_int(
		    json_member((struct jtext){out->data, out->len}, "code"), &code);
	} else {
		member = "error";
	}
	end.out = iov.iov_len;
	call_log_end(r, &end, no_name);
	request_reply_status(r, front_status_of(r->era, code), member, &iov, 1);
}

/* Whether its upstream is to blame for the end of a call whose model shall read it. */
static bool
call_fails_as_result(const struct request *r, enum mv_err err)
{
	return r->method == METHOD_TOOLS_CALL && r->call.u != NULL &&
	       mv_err_rpc_code(err) == RPC_INTERNAL &&
	       upstream_conf_of(r->call.u)->failure == FAILURE_TOOL_ERROR;
}

struct jtext
request_definition(const struct request *r)
{
	const struct route *route = r->call.route;

	if (route == NULL)
		return (struct jtext){NULL, 0};
	return gateway_tool_definition(r->c->g, r->c->observer.view,
	    (struct jtext){route->quoted, route->published.n + 2});
}

bool
request_may_have_acted(const struct request *r, enum mv_err err)
{
	struct jtext hints;

	if (r->method != METHOD_TOOLS_CALL || !r->call.req.is_sent || err == MV_AUTH ||
	    err == MV_SPAWN)
		return false;
	hints = json_member(request_definition(r), "annotations");
	return !json_is_true(json_member(hints, "readOnlyHint"));
}

static void
call_reply_failed(
    struct request *r, enum mv_err err, const char *detail, struct jtext name)
{
	struct wording_failure f = {.err = err, .detail = detail, .method = r->method};
	bool as_result = call_fails_as_result(r, err);
	struct buf *out = &r->c->scratch;

	f.has_acted = request_may_have_acted(r, err);
	if (r->call.u != NULL) {
		f.upstream = upstream_name(r->call.u);
		f.limit_ms = r->call.req.call_ms != 0
				 ? r->call.req.call_ms
				 : upstream_conf_of(r->call.u)->call_ms;
		if (detail == NULL && (err == MV_PARKED || err == MV_BACKOFF))
			f.detail = upstream_told(r->call.u);
	}
	buf_reset(out);
	if (as_result)
		wording_put_failure_result(out, r->era->result_members, &f);
	else
		wording_put_failure(out, &f);
	call_log_failed(r, err, name, out->len);
	request_reply_buf(r, as_result ? "result" : "error", out);
}

void
request_fail_call(struct request *r, enum mv_err err, const char *detail)
{
	call_reply_failed(r, err, detail, no_name);
}

static void
call_reply_unknown(struct request *r, struct jtext name)
{
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	if (r->method == METHOD_RESOURCES_READ && jtext_type(name) == '"')
		wording_put_no_resource(out, r->era->no_resource_code, name);
	else
		wording_put_unknown(out, r->method, name);
	call_log_failed(r, name.n != 0 ? MV_NOT_FOUND : MV_PARAMS, name, out->len);
	request_reply_buf(r, "error", out);
}

static void
call_reply_params(struct request *r, const char *why, struct jtext name)
{
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	wording_put_error(out, RPC_PARAMS, why);
	call_log_failed(r, MV_PARAMS, name, out->len);
	request_reply_buf(r, "error", out);
}

/* The owner completes nothing: no suggestions, which is no error. */
static void
call_reply_no_completion(struct request *r, struct jtext name)
{
	struct buf *out = &r->c->scratch;
	struct call_end end = {.ending = CALL_END_RETURNED};

	buf_reset(out);
	buf_addf(out, "{%s\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}",
	    r->era->result_members);
	end.out = out->len;
	call_log_end(r, &end, name);
	request_reply_buf(r, "result", out);
}

/* It did not come to an answer of an upstream. name is what r asks for. */
static void
call_reply_refused(
    struct request *r, enum mv_err err, const char *detail, struct jtext name)
{
	if (err == MV_NOT_FOUND)
		call_reply_unknown(r, name);
	else if (err == MV_PARAMS && r->call.why[0] != '\0')
		call_reply_params(r, r->call.why, name);
	else if (err == MV_PARAMS)
		call_reply_unknown(r, no_name);
	else if (err == MV_UNSUPPORTED && r->method == METHOD_COMPLETE)
		call_reply_no_completion(r, name);
	else
		call_reply_failed(r, err, detail, name);
}

static size_t
pieces_bytes(const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

static void
call_edit_label(const struct label *l, struct json_edits *ed)
{
	for (unsigned i = 0; i < l->edits.n; i++) {
		const struct json_edit *e = &l->edits.e[i];

		json_edit_add(ed, e->off, e->len, e->put, e->put_len);
	}
}

static void
call_reply_result(struct request *r, const struct outcome *o)
{
	struct json_edits ed;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	struct call_end end = {.ending = CALL_END_RETURNED,
	    .is_err = o->label != NULL && o->label->is_error,
	    .answer = o->answer,
	    .label = o->label};
	struct buf *out = &r->c->scratch;
	int n;

	json_edits_init(&ed);
	r->era->edit_result(r, o, &ed);
	if (o->label != NULL)
		call_edit_label(o->label, &ed);
	if (task_is_in(o->json)) {
		enum mv_err err = task_edit_result(r, o, &ed);

		if (err != MV_OK) {
			call_reply_failed(r, err, NULL, no_name);
			return;
		}
	}
	n = json_edit_pieces(o->base, o->json->slot[JSON_RESULT], &ed, iov);
	if (read_is_prefixed(r) && o->kind == OUTCOME_RESULT) {
		buf_reset(out);
		read_put_prefixed(r, o->body, iov, n, out);
		if (out->err != MV_OK) {
			call_log_failed(r, out->err, no_name, 0);
			request_reply_buf(r, "result", out); /* says what is wrong */
			return;
		}
		iov[0] = (struct iovec){out->data, out->len};
		n = 1;
	}
	end.out = pieces_bytes(iov, n);
	end.added = end.out > o->body.n ? end.out - o->body.n : 0;
	call_log_end(r, &end, no_name);
	request_reply(r, "result", iov, n);
}

static void
call_on_done(void *arg, const struct outcome *o)
{
	struct request *r = arg;

	if (r->call.task_serial != 0)
		task_note_answer(r, o);
	switch (o->kind) {
	case OUTCOME_INPUT_REQUIRED:
		if (!r->era->modern) {
			input_begin(r, o);
			return;
		}
		__attribute__((fallthrough));
	case OUTCOME_RESULT:
		call_reply_result(r, o);
		break;
	case OUTCOME_ERROR:
		call_reply_error(r, o);
		break;
	case OUTCOME_FAILED:
		call_reply_refused(
		    r, o->err, o->detail, (struct jtext){r->uri.data, r->uri.len});
		break;
	}
}

static void
call_on_log(void *arg, const struct link_msg *m)
{
	struct request *r = arg;
	struct json_edits ed;
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	enum mcp_level level =
	    mcp_level_parse(jtext_of(m->base, m->json->slot[JSON_P_LEVEL]));
	enum mcp_level wish = r->call.req.level;

	json_edits_init(&ed);
	/* A session that never set a level leaves it to the server; a modern request that
	 * names none wants nothing. */
	if (wish == MCP_LV_MAX && !r->era->modern)
		wish = MCP_LV_DEBUG;
	if (level == MCP_LV_MAX || level < wish) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	task_edit_notice(r->c, r->call.u, m, &ed);
	request_notify(r, iov, json_edit_pieces(m->base, whole, &ed, iov));
}

static void
call_on_question(void *arg, struct question *q)
{
	struct request *r = arg;

	if (r->era->modern)
		parked_take_question(r, q);
	else
		client_take_question(r->c, r, q);
}

static const struct call_cb call_callbacks = {
    .on_progress = call_on_progress,
    .on_log = call_on_log,
    .on_done = call_on_done,
    .on_question = call_on_question,
};

static struct jtext
call_name(enum method method, const struct link_msg *m)
{
	enum json_slot slot = method_name_slot(method);

	if (method == METHOD_COMPLETE)
		slot = m->json->slot[JSON_R_NAME].len ? JSON_R_NAME : JSON_R_URI;
	return jtext_of(m->base, m->json->slot[slot]);
}

void
handle_forward(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct jtext level = jtext_of(m->base, m->json->slot[JSON_M_LOG_LEVEL]);
	struct jtext name = call_name(r->method, m);
	bool modern = r->era->modern;
	struct upstream_call call = {
	    .method = r->method,
	    .base = m->base,
	    .len = m->len,
	    .json = m->json,
	    .client_info = {c->session.client_info.data, c->session.client_info.len},
	    .client_caps = {c->session.client_caps.data, c->session.client_caps.len},
	    .level = modern ? mcp_level_parse(level) : c->session.level,
	    .tasks = task_kind_of(r),
	};
	enum mv_err err;

	if (modern && r->call.task == NULL && parked_resume(r, m))
		return;
	if (m->json->slot[JSON_P_TASK].len != 0 && !task_wish(r))
		return;
	/* Needed after the message is gone: by an error that names the resource, by
	 * a call that waits for the lists, and by the log for what has no route. */
	if (r->method == METHOD_RESOURCES_READ || r->method == METHOD_COMPLETE ||
	    !gateway_is_settled(c->g))
		json_put(&r->uri, name);
	if (modern)
		r->call.caps = client_caps_read(
		    jtext_of(m->base, m->json->slot[JSON_M_CLIENT_CAPS]));
	else
		r->call.caps = c->observer.caps;
	r->call.keeps = !modern && r->call.caps != CLIENT_CAP_NONE;
	call.has_state = modern && m->json->slot[JSON_P_REQUEST_STATE].len != 0;
	call_log_begin(r, m);
	r->call.cb = &call_callbacks;
	r->call.arg = r;
	r->call.owner = &c->observer;
	err = call_start(c->g, &r->call, &call);
	if (err != MV_OK)
		call_reply_refused(r, err, NULL, name);
	else if (modern && r->call.caps != CLIENT_CAP_NONE && !r->is_bound &&
		 method_may_require_input(r->method) &&
		 (r->call.u == NULL || upstream_may_ask_by_request(r->call.u)))
		parked_bind(r, m);
}
