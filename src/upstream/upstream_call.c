/* SPDX-License-Identifier: MIT */
/*
 * Requests to an upstream: composed by splicing, in flight by id, held while it
 * starts, ended once.
 *
 * Owns: copies of held messages; nothing else of a request.
 * Driven by: the gateway (send, cancel), replies, the sweep timer, the life cycle.
 * Invariants: a request with u set is in exactly one of flying and held; by_id has
 * exactly the flying ones; only upstream_forget takes a request out.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <stdio.h>
#include <string.h>

#define PIECES_MAX (2 * JSON_EDITS_MAX + 8)

static void
req_link_in(struct upstream *u, struct upstream_req *r, struct upstream_req **head)
{
	r->next = *head;
	if (r->next != NULL)
		r->next->prev = &r->next;
	r->prev = head;
	*head = r;
	r->u = u;
}

struct upstream_call_copy *
upstream_call_dup(const struct upstream_call *c)
{
	struct upstream_call_copy *h = mem_try(sizeof(*h) + c->len);

	if (h == NULL)
		return NULL;
	memcpy(h->bytes, c->base, c->len);
	h->len = c->len;
	h->json = *c->json;
	h->call = *c;
	h->call.base = h->bytes;
	h->call.json = &h->json;
	buf_init(&h->client_info, CAP_MESSAGE_BYTES);
	json_put(&h->client_info, c->client_info);
	h->call.client_info = (struct jtext){h->client_info.data, h->client_info.len};
	return h;
}

void
upstream_call_free(struct upstream_call_copy *c)
{
	if (c == NULL)
		return;
	buf_fini(&c->client_info);
	mem_free(c);
}

void
upstream_forget(struct upstream_req *r)
{
	struct upstream *u = r->u;

	if (u == NULL)
		return;
	if (r->id != 0)
		(void)idmap_del(u->by_id, r->id);
	else if (r->next == NULL)
		u->held_tail = r->prev;
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	if (r->held != NULL) {
		u->held_bytes -= r->held->len;
		upstream_call_free(r->held);
		r->held = NULL;
	}
	if (r->is_call)
		u->n_calls--;
	r->u = NULL;
	r->next = NULL;
	r->prev = NULL;
	r->id = 0;
}

static void
req_end(struct upstream_req *r, const struct outcome *o)
{
	upstream_forget(r);
	r->cb->on_done(r->arg, o);
}

static uint64_t
req_due(const struct upstream *u, const struct upstream_req *r)
{
	uint64_t silent = r->heard_ms + u->conf->call_ms;
	uint64_t whole = r->started_ms + u->conf->call_max_ms;

	if (!r->is_call)
		return r->is_endless ? UINT64_MAX : r->started_ms + OWN_REQUEST_MS;
	return silent < whole ? silent : whole;
}

static void
calls_arm(struct upstream *u, uint64_t due)
{
	uint64_t now = clock_now_ms();

	if (due == UINT64_MAX ||
	    (timer_is_set(&u->call_timer) && u->call_timer_due <= due))
		return;
	u->call_timer_due = due;
	timer_set(&u->call_timer, due > now ? due - now : 0);
}

static struct upstream_req *
calls_first_due(
    struct upstream *u, struct upstream_req *list, uint64_t now, uint64_t *next)
{
	for (struct upstream_req *r = list; r != NULL; r = r->next) {
		uint64_t due = req_due(u, r);

		if (due <= now)
			return r;
		if (due < *next)
			*next = due;
	}
	return NULL;
}

static void
on_call_timer(void *arg)
{
	struct upstream *u = arg;
	struct outcome o = {.kind = OUTCOME_FAILED, .err = MV_TIMEOUT};
	uint64_t now = clock_now_ms(), next;
	struct upstream_req *r;

	/* Ending one may start or end others: look again from the front each time. */
	do {
		next = UINT64_MAX;
		r = calls_first_due(u, u->flying, now, &next);
		if (r == NULL)
			r = calls_first_due(u, u->held, now, &next);
		if (r != NULL) {
			LOG_LIMITED(LOG_LV_WARNING, "upstream", "call timed out",
			    "upstream=%s method=%s id=%llu",
			    LOG_ESC(u->conf->name, strlen(u->conf->name)),
			    method_name(r->method), (unsigned long long)r->id);
			upstream_cancel(r, NULL);
			r->cb->on_done(r->arg, &o);
		}
	} while (r != NULL);
	calls_arm(u, next);
}

void
upstream_calls_init(struct upstream *u)
{
	u->by_id = idmap_new();
	u->held_tail = &u->held;
	timer_init(&u->call_timer, u->loop, on_call_timer, u);
}

void
upstream_calls_fini(struct upstream *u)
{
	upstream_fail_all(u, MV_STOPPING, NULL);
	timer_fini(&u->call_timer);
	idmap_free(u->by_id);
}

enum mv_err
upstream_write(struct upstream *u, const struct buf *b)
{
	enum mv_err err = b->err != MV_OK ? b->err : MV_CLOSED;

	if (u->link != NULL && b->err == MV_OK)
		err = link_send_buf(u->link, b);
	if (err != MV_OK)
		LOG_LIMITED(LOG_LV_WARNING, "upstream", "message not sent",
		    "upstream=%s reason=%s",
		    LOG_ESC(u->conf->name, strlen(u->conf->name)), mv_err_reason(err));
	return err;
}

static enum mv_err
req_launch(struct upstream *u, struct upstream_req *r, enum method m)
{
	r->id = u->last_id;
	r->method = m;
	if (!idmap_put(u->by_id, r->id, r)) {
		r->id = 0;
		return MV_NOMEM;
	}
	req_link_in(u, r, &u->flying);
	if (r->is_call)
		u->n_calls++;
	r->started_ms = r->heard_ms = clock_now_ms();
	calls_arm(u, req_due(u, r));
	return MV_OK;
}

enum mv_err
upstream_ask_raw(
    struct upstream *u, struct upstream_req *r, enum method m, const char *params)
{
	struct buf b;
	enum mv_err err;

	r->level = MCP_LV_MAX;
	r->is_call = false;
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\"",
	    (unsigned long long)++u->last_id, method_name(m));
	if (params != NULL) {
		buf_add_str(&b, ",\"params\":");
		buf_add_str(&b, params);
	}
	buf_add_char(&b, '}');
	err = upstream_write(u, &b);
	if (err == MV_OK)
		err = req_launch(u, r, m);
	buf_fini(&b);
	return err;
}

enum mv_err
upstream_ask(
    struct upstream *u, struct upstream_req *r, enum method m, const char *members)
{
	struct buf b;
	enum mv_err err;

	if (u->era == NULL)
		return MV_STARTING;
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_char(&b, '{');
	buf_add_str(&b, members);
	u->era->put_own_meta(u, &b);
	buf_add_char(&b, '}');
	err = b.err != MV_OK ? b.err
			     : upstream_ask_raw(u, r, m, b.len > 2 ? buf_cstr(&b) : NULL);
	buf_fini(&b);
	return err;
}

/* Composes and sends; every byte of the params is copied once, into the queue. */
static enum mv_err
call_transmit(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct iovec iov[PIECES_MAX];
	struct json_edits ed = {.n = 0};
	char head[160];
	const char *no_params;
	enum mv_err err;
	int n = 1, len;

	u->era->raise_level(u, c->level);
	buf_reset(&u->scratch);
	if (c->target.put != NULL)
		json_edit_add(
		    &ed, c->target.off, c->target.len, c->target.put, c->target.put_len);
	++u->last_id;
	no_params = u->era->edit_params(u, c, u->last_id, &ed, &u->scratch);
	if (u->scratch.err != MV_OK)
		return u->scratch.err;
	len = snprintf(head, sizeof(head),
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\"",
	    (unsigned long long)u->last_id, method_name(c->method));
	iov[0] = (struct iovec){head, (size_t)len};
	if (c->json->slot[JSON_PARAMS].len != 0) {
		iov[n++] = (struct iovec){(void *)(uintptr_t) ",\"params\":", 10};
		n += json_edit_pieces(c->base, c->json->slot[JSON_PARAMS], &ed, iov + n);
	} else if (no_params != NULL) {
		iov[n++] = (struct iovec){(void *)(uintptr_t) ",\"params\":", 10};
		iov[n++] =
		    (struct iovec){(void *)(uintptr_t)no_params, strlen(no_params)};
	}
	iov[n++] = (struct iovec){(void *)(uintptr_t) "}", 1};
	err = link_send(u->link, iov, n);
	if (err == MV_OK)
		err = req_launch(u, r, c->method);
	return err;
}

static enum mv_err
call_hold(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct upstream_call_copy *h;

	if (u->held_bytes + c->len > CAP_UPSTREAM_HELD_BYTES)
		return MV_BUSY;
	h = upstream_call_dup(c);
	if (h == NULL)
		return MV_NOMEM;
	r->held = h;
	r->id = 0;
	r->method = c->method;
	r->u = u;
	r->next = NULL;
	r->prev = u->held_tail;
	*u->held_tail = r;
	u->held_tail = &r->next;
	u->n_calls++;
	u->held_bytes += c->len;
	r->started_ms = r->heard_ms = clock_now_ms();
	calls_arm(u, req_due(u, r));
	return MV_OK;
}

enum mv_err
upstream_refusal(const struct upstream *u)
{
	if (u->conf->broken != MV_OK)
		return u->conf->broken;
	if (u->stopping)
		return MV_STOPPING;
	if (u->state == UPSTREAM_ST_PARKED)
		return MV_PARKED;
	if (u->state == UPSTREAM_ST_DOWN)
		return MV_BACKOFF;
	return MV_OK;
}

enum mv_err
upstream_send(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	enum mv_err err = upstream_refusal(u);

	r->level = c->level;
	r->is_call = true;
	if (err != MV_OK)
		return err;
	if (u->n_calls >= CAP_UPSTREAM_CALLS)
		return MV_BUSY;
	if (u->era == NULL)
		return call_hold(u, r, c);
	if (u->link == NULL)
		return MV_DIED;
	return call_transmit(u, r, c);
}

void
upstream_send_held(struct upstream *u)
{
	while (u->held != NULL && u->era != NULL && u->link != NULL) {
		struct upstream_req *r = u->held;
		struct upstream_call_copy *h = r->held;
		struct outcome o = {.kind = OUTCOME_FAILED};

		r->held = NULL;
		upstream_forget(r);
		o.err = call_transmit(u, r, &h->call);
		u->held_bytes -= h->len;
		upstream_call_free(h);
		if (o.err != MV_OK)
			r->cb->on_done(r->arg, &o);
	}
}

static void
call_send_cancelled(struct upstream *u, uint64_t id, const struct link_msg *cancel)
{
	struct json_edits ed = {.n = 0};
	struct iovec iov[PIECES_MAX];
	struct json_span at;
	char num[24];
	struct buf b;
	int n;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			"\"params\":");
	(void)snprintf(num, sizeof(num), "%llu", (unsigned long long)id);
	/* The client's words go along unless they carry its own _meta. */
	if (cancel != NULL && cancel->json->slot[JSON_P_REQUEST_ID].len != 0 &&
	    cancel->json->slot[JSON_P_META].len == 0) {
		at = cancel->json->slot[JSON_P_REQUEST_ID];
		json_edit_add(&ed, at.off, at.len, num, strlen(num));
		n = json_edit_pieces(
		    cancel->base, cancel->json->slot[JSON_PARAMS], &ed, iov);
		for (int i = 0; i < n; i++)
			buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	} else {
		buf_addf(&b, "{\"requestId\":%s}", num);
	}
	buf_add_char(&b, '}');
	(void)upstream_write(u, &b);
	buf_fini(&b);
}

void
upstream_cancel(struct upstream_req *r, const struct link_msg *cancel)
{
	struct upstream *u = r->u;
	uint64_t id = r->id;

	if (u == NULL)
		return;
	upstream_forget(r);
	if (id != 0 && u->link != NULL && r != &u->init && r != &u->discover)
		call_send_cancelled(u, id, cancel);
}

void
upstream_fail_all(struct upstream *u, enum mv_err err, const char *detail)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err, .detail = detail};

	while (u->flying != NULL)
		req_end(u->flying, &o);
	while (u->held != NULL)
		req_end(u->held, &o);
	timer_clear(&u->call_timer);
}

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
	req_end(r, &o);
}

void
upstream_on_reply(struct upstream *u, const struct link_msg *m)
{
	struct upstream_req *r = upstream_find(u, m->env.id);
	struct outcome o = {.base = m->base, .json = m->json};

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
		if (r->is_call && u->era->refuses_us(&o))
			o = (struct outcome){.kind = OUTCOME_FAILED,
			    .err = MV_PROTOCOL,
			    .detail = "it refuses the revision it offered"};
	} else {
		o.kind = OUTCOME_RESULT;
		if (u->era != NULL && u->era->asks_in_results &&
		    json_string_is(jtext_of(m->base, m->json->slot[JSON_RESULT_TYPE]),
			"input_required"))
			o.kind = OUTCOME_INPUT_REQUIRED;
		o.body = jtext_of(m->base, m->json->slot[JSON_RESULT]);
	}
	req_end(r, &o);
}

size_t
upstream_in_flight(const struct upstream *u)
{
	return u->n_calls;
}

void
upstream_each_req(
    struct upstream *u, bool (*fn)(struct upstream_req *r, void *arg), void *arg)
{
	struct upstream_req *next;

	for (struct upstream_req *r = u->flying; r != NULL; r = next) {
		next = r->next;
		if (r->is_call && !fn(r, arg))
			return;
	}
}
