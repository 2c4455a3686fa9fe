/* SPDX-License-Identifier: MIT */
/*
 * tools/call, prompts/get, resources/read, completion/complete: forwarded to their
 * owner, and its answer in the client's era.
 *
 * Driven by: dispatch, then the call's callbacks.
 * Invariants: a result's bytes pass as they are but for what edit_result inserts;
 * unknown names are ours to refuse, and never reach an upstream.
 */
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/wording.h"

enum { RPC_NEEDS_CAPABILITY = -32021, RPC_URL_ELICITATION = -32042 };

static void
call_on_progress(void *arg, const struct link_msg *m)
{
	struct request *r = arg;
	struct json_edits ed = {.n = 0};
	struct json_span at = m->json->slot[JSON_P_PROGRESS_TOKEN];
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	/* Who gave no token wants no progress, whatever the upstream thinks. */
	if (r->token.n == 0) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	json_edit_add(&ed, at.off, at.len, r->token.p, r->token.n);
	request_notify(r, iov, json_edit_pieces(m->base, whole, &ed, iov));
}

static void
call_reply_error(struct request *r, const struct outcome *o)
{
	struct buf *out = &r->c->scratch;
	struct iovec iov = {(void *)(uintptr_t)o->body.p, o->body.n};
	const char *member;
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	buf_reset(out);
	member = r->era->map_error(r, o, code, out);
	if (member != NULL && out->err == MV_OK) {
		/* The only code that an era maps to one with a status of its own. */
		code = member[0] == 'e' && code == RPC_URL_ELICITATION
			   ? RPC_NEEDS_CAPABILITY
			   : 0;
		iov = (struct iovec){out->data, out->len};
	}
	request_reply_status(
	    r, front_status_of(r->era, code), member ? member : "error", &iov, 1);
}

static void
call_reply_failed(struct request *r, enum mv_err err, const char *detail)
{
	struct wording_failure f = {.err = err, .detail = detail, .method = r->method};
	struct buf *out = &r->c->scratch;

	if (r->call.u != NULL) {
		f.upstream = upstream_name(r->call.u);
		f.limit_ms = upstream_conf_of(r->call.u)->call_ms;
		if (detail == NULL && (err == MV_PARKED || err == MV_BACKOFF))
			f.detail = upstream_reason(r->call.u);
	}
	buf_reset(out);
	wording_put_failure(out, &f);
	request_reply_buf(r, "error", out);
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
	request_reply_buf(r, "error", out);
}

/* The owner completes nothing: no suggestions, which is no error. */
static void
call_reply_no_completion(struct request *r)
{
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	buf_addf(out, "{%s\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}",
	    r->era->result_members);
	request_reply_buf(r, "result", out);
}

static void
call_on_done(void *arg, const struct outcome *o)
{
	struct request *r = arg;
	struct json_edits ed = {.n = 0};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	struct json_span body;

	switch (o->kind) {
	case OUTCOME_INPUT_REQUIRED:
		if (!r->era->modern) {
			call_reply_failed(r, MV_PROTOCOL,
			    "it asks for input that was not offered to it");
			return;
		}
		__attribute__((fallthrough));
	case OUTCOME_RESULT:
		r->era->edit_result(r, o, &ed);
		body = o->json->slot[JSON_RESULT];
		request_reply(
		    r, "result", iov, json_edit_pieces(o->base, body, &ed, iov));
		break;
	case OUTCOME_ERROR:
		call_reply_error(r, o);
		break;
	case OUTCOME_FAILED:
		if (o->err == MV_NOT_FOUND)
			call_reply_unknown(r, (struct jtext){r->uri.data, r->uri.len});
		else if (o->err == MV_UNSUPPORTED && r->method == METHOD_COMPLETE)
			call_reply_no_completion(r);
		else
			call_reply_failed(r, o->err, o->detail);
		break;
	}
}

static void
call_on_log(void *arg, const struct link_msg *m)
{
	struct request *r = arg;
	struct iovec iov = {(void *)(uintptr_t)m->base, m->len};
	enum mcp_level level =
	    mcp_level_parse(jtext_of(m->base, m->json->slot[JSON_P_LEVEL]));
	enum mcp_level wish = r->call.req.level;

	/* A session that never set a level leaves it to the server; a modern request that
	 * names none wants nothing. */
	if (wish == MCP_LV_MAX && !r->era->modern)
		wish = MCP_LV_DEBUG;
	if (level != MCP_LV_MAX && level >= wish)
		request_notify(r, &iov, 1);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

static const struct call_cb call_callbacks = {
    .on_progress = call_on_progress,
    .on_log = call_on_log,
    .on_done = call_on_done,
};

static struct jtext
call_name(enum method method, const struct link_msg *m)
{
	enum json_slot slot = JSON_P_NAME;

	if (method == METHOD_RESOURCES_READ)
		slot = JSON_P_URI;
	else if (method == METHOD_COMPLETE)
		slot = m->json->slot[JSON_R_NAME].len ? JSON_R_NAME : JSON_R_URI;
	return jtext_of(m->base, m->json->slot[slot]);
}

void
handle_forward(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct jtext level = jtext_of(m->base, m->json->slot[JSON_M_LOG_LEVEL]);
	struct jtext name = call_name(r->method, m);
	struct upstream_call call = {
	    .method = r->method,
	    .base = m->base,
	    .len = m->len,
	    .json = m->json,
	    .client_info = {c->session.client_info.data, c->session.client_info.len},
	    .level = r->era->modern ? mcp_level_parse(level) : c->session.level,
	};
	enum mv_err err;

	/* Needed after the message is gone: by an error that names the resource, and by
	 * a call that waits for the lists. */
	if (r->method == METHOD_RESOURCES_READ || !gateway_is_settled(c->g))
		json_put(&r->uri, name);
	r->takes_url =
	    json_member(json_member(jtext_of(m->base, m->json->slot[JSON_M_CLIENT_CAPS]),
			    "elicitation"),
		"url")
		.n != 0;
	r->call.cb = &call_callbacks;
	r->call.arg = r;
	r->call.owner = &c->observer;
	err = call_start(c->g, &r->call, &call);
	if (err == MV_OK)
		return;
	if (err == MV_NOT_FOUND || err == MV_PARAMS)
		call_reply_unknown(
		    r, err == MV_NOT_FOUND ? name : (struct jtext){NULL, 0});
	else if (err == MV_UNSUPPORTED && r->method == METHOD_COMPLETE)
		call_reply_no_completion(r);
	else
		call_reply_failed(r, err, NULL);
}
