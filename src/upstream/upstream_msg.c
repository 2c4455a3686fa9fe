/* SPDX-License-Identifier: MIT */
/*
 * What an upstream writes: replies, notifications, requests, noise.
 *
 * Driven by: its kind.
 * Invariants: nothing an upstream writes ends its link or its calls but its own
 * end; bytes that are no message go to the log and nowhere else.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include <string.h>

struct upstream_req *
upstream_find(struct upstream *u, struct jtext id)
{
	int64_t v;

	if (!json_int(id, &v) || v <= 0)
		return NULL;
	return idmap_get(u->by_id, (uint64_t)v);
}

void
upstream_on_bad_reply(struct upstream *u, struct jtext id, enum mv_err err)
{
	struct upstream_req *r = upstream_find(u, id);
	struct outcome o = {.kind = OUTCOME_FAILED, .err = MV_PROTOCOL};

	if (r == NULL)
		return;
	o.detail = mv_err_text(err);
	upstream_end(r, &o);
}

void
upstream_on_reply(struct upstream *u, struct upstream_req *r, const struct link_msg *m)
{
	struct outcome o = {.base = m->base, .json = m->json};
	const char *fault;

	if (r == NULL) {
		metrics_add(METRIC_REPLIES_LATE, 1);
		LOG_DEBUG("upstream", "answer to nothing", "upstream=%s id=%s",
		    LOG_ESC(u->conf->name, strlen(u->conf->name)),
		    LOG_ESC(m->env.id.p, m->env.id.n));
		return;
	}
	if (m->env.kind == ENVELOPE_ERROR) {
		o.kind = OUTCOME_ERROR;
		o.body = jtext_of(m->base, m->json->slot[JSON_ERROR]);
		if (u->kind->on_error != NULL && u->kind->on_error(u, r, &o))
			return;
		fault = r->is_call && u->era != NULL ? u->era->fault_of(&o) : NULL;
		if (fault != NULL)
			o = (struct outcome){
			    .kind = OUTCOME_FAILED, .err = MV_PROTOCOL, .detail = fault};
	} else {
		o.kind = OUTCOME_RESULT;
		if (u->era != NULL && u->era->asks_in_results &&
		    json_string_is(jtext_of(m->base, m->json->slot[JSON_RESULT_TYPE]),
			"input_required"))
			o.kind = OUTCOME_INPUT_REQUIRED;
		o.body = jtext_of(m->base, m->json->slot[JSON_RESULT]);
	}
	upstream_end(r, &o);
}

static void
msg_log_noise(struct upstream *u, const char *what, const char *line, size_t len)
{
	metrics_add(METRIC_NOISE_LINES, 1);
	u->stats.noise_lines++;
	log_limited(&u->noise_site, LOG_LV_WARNING, "upstream", what,
	    "upstream=%s line=%s", LOG_ESC(u->conf->name, strlen(u->conf->name)),
	    LOG_ESC(line, len));
	/* Editors' framing is a mistake that deserves its name. */
	if (u->state != UPSTREAM_ST_READY && len >= 15 &&
	    strncasecmp(line, "content-length:", 15) == 0)
		upstream_set_reason(u, "writes Content-Length framing; MCP over stdio is "
				       "one message a line");
}

static void
msg_on_progress(struct upstream *u, const struct link_msg *m)
{
	struct upstream_req *r =
	    upstream_find(u, jtext_of(m->base, m->json->slot[JSON_P_PROGRESS_TOKEN]));

	/* It outlives its request where that has become a task. */
	if (r == NULL && u->cb->on_task != NULL) {
		u->cb->on_task(u->arg, u, m);
		return;
	}
	if (r == NULL || r->cb->on_progress == NULL) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	r->heard_ms = clock_now_ms();
	r->cb->on_progress(r->arg, m);
}

static void
msg_on_notification(struct upstream *u, struct upstream_req *by, const struct link_msg *m)
{
	enum method method = method_parse(m->env.method);

	if (u->era == NULL)
		return; /* nothing can be owed to anybody yet */
	switch ((int)method) {
	case METHOD_N_PROGRESS:
		msg_on_progress(u, m);
		break;
	case METHOD_N_MESSAGE:
		if (by != NULL && by->cb->on_log != NULL)
			by->cb->on_log(by->arg, m);
		else
			u->cb->on_log(u->arg, u, m);
		break;
	default:
		u->era->on_notification(u, method, m);
		break;
	}
}

static void
msg_dispatch(struct upstream *u, struct upstream_req *by, const struct link_msg *m)
{
	switch (m->env.kind) {
	case ENVELOPE_RESULT:
	case ENVELOPE_ERROR:
		/* One without an id can be an answer to one request only. */
		upstream_on_reply(
		    u, m->env.id.n != 0 ? upstream_find(u, m->env.id) : by, m);
		break;
	case ENVELOPE_REQUEST:
		upstream_on_request(u, by, m);
		break;
	case ENVELOPE_NOTIFICATION:
		msg_on_notification(u, by, m);
		break;
	case ENVELOPE_INVALID:
	case ENVELOPE_BATCH:
		msg_log_noise(u, "output is not JSON-RPC", m->base, m->len);
		if (m->json->slot[JSON_RESULT].len || m->json->slot[JSON_ERROR].len)
			upstream_on_bad_reply(u, m->env.id, m->env.err);
		break;
	}
}

/* The text without white space around it, which a line may have. */
static struct jtext
msg_trim(const struct link_msg *m)
{
	struct jtext t = {m->base, m->len};

	while (t.n > 0 && strchr(" \t\r", t.p[0]) != NULL) {
		t.p++;
		t.n--;
	}
	while (t.n > 0 && strchr(" \t\r", t.p[t.n - 1]) != NULL)
		t.n--;
	return t;
}

/* 2025-03-26 has batches in both directions; only then do we look into one. */
static void
msg_on_batch(struct upstream *u, struct upstream_req *by, const struct link_msg *m)
{
	uint64_t by_id = by != NULL ? by->id : 0;
	struct jtext all = msg_trim(m), item;
	struct link_msg one;
	struct json_iter it;
	struct buf out;

	if (u->era == NULL || !revision_has_batches(u->revision)) {
		msg_log_noise(u, "output is not JSON-RPC", m->base, m->len);
		return;
	}
	buf_init(&out, CAP_MESSAGE_BYTES);
	buf_add_char(&out, '[');
	json_iter_init(&it, all);
	while (json_next_element(&it, &item) && upstream_is_open(u)) {
		u->batch_out = &out;
		/* One before may have been its end. */
		by = by_id != 0 ? idmap_get(u->by_id, by_id) : NULL;
		if (link_scan(item.p, item.n, &u->batch_json, &one) == MV_OK)
			msg_dispatch(u, by, &one);
	}
	u->batch_out = NULL;
	buf_add_char(&out, ']');
	if (out.len > 2)
		(void)upstream_write(u, &out);
	buf_fini(&out);
}

void
upstream_on_message(struct upstream *u, struct upstream_req *by, const struct link_msg *m)
{
	u->heard = true;
	if (m->env.kind == ENVELOPE_BATCH)
		msg_on_batch(u, by, m);
	else
		msg_dispatch(u, by, m);
}

void
upstream_on_bad(struct upstream *u, enum mv_err err, struct jtext id, bool is_reply,
    const char *line, size_t len)
{
	msg_log_noise(u,
	    err == MV_TOO_LONG ? "message too long" : "output is not JSON-RPC", line,
	    len);
	/* Whose reply it was may still be known; waiting out its time helps nobody. A
	 * reply over the limit may have its id before its result. */
	if (id.n && (is_reply || err == MV_TOO_LONG))
		upstream_on_bad_reply(u, id, err);
}
