/* SPDX-License-Identifier: MIT */
/*
 * Life of a talk.
 *
 *	NEW --start--> SENT --head--> BODY --end--> OVER
 *	BODY --response, stream goes on--> DRAIN --end, late--> OVER
 *	BODY --redirection, stream broke--> WAIT --due--> SENT
 *	BODY --no such session--> HELD --renewed--> SENT
 *	any --end of the talk, cancelled, end of the link--> OVER
 *
 * Owns: what is sent, the transfer. Driven by: the transfer, one timer, the link.
 * Invariants: talk_set alone writes the state; a transfer is there in SENT, BODY and
 *DRAIN only; OVER is final, is reached once and takes the talk off the link; a kind's
 *callback comes after that, so it may end the link.
 */
#include "http_link_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEADERS_BYTES ((size_t)256 * 1024)
#define URL_BYTES     8192
#define HEADERS_MAX   256
#define FAILURE_BYTES 1536
/* A server has taken a notification by then, or never will. */
#define NOTE_MS 30000

static const char *const talk_state_names[] = {
#define X(id, name) name,
    TALK_STATES(X)
#undef X
};

void
talk_set(struct http_talk *x, enum talk_state next, const char *reason)
{
	if (x->state == next || talk_is_over(x))
		return;
	LOG_DEBUG("http", "talk", "id=%llu from=%s to=%s reason=%s",
	    (unsigned long long)x->id, talk_state_names[x->state], talk_state_names[next],
	    LOG_ESC(reason, strlen(reason)));
	x->state = next;
}

/* ---- kinds ---- */

static void
request_failed(struct http_talk *x, const struct http_failure *f)
{
	if (!x->is_answered)
		x->link->cb.on_failed(x->link->arg, x->id, f);
}

static void
note_failed(struct http_talk *x, const struct http_failure *f)
{
	if (!x->is_answered)
		x->link->cb.on_note_failed(x->link->arg, f);
}

static void
stream_failed(struct http_talk *x, const struct http_failure *f)
{
	(void)f;
	x->link->has_no_stream = true;
	link_tell_stream(x->link);
}

static void
endpoint_failed(struct http_talk *x, const struct http_failure *f)
{
	x->link->cb.on_endpoint(x->link->arg, f);
}

/* The session is over for us, whatever the server says. */
static void
delete_failed(struct http_talk *x, const struct http_failure *f)
{
	(void)f;
	x->link->on_ended(x->link->ended_arg);
}

static const struct talk_kind_row {
	enum transfer_method method;
	const char *accept; /* NULL: whatever there is */
	void (*on_failed)(struct http_talk *x, const struct http_failure *f);
} talk_kinds[] = {
    [TALK_REQUEST] = {TRANSFER_POST, "application/json, text/event-stream",
	request_failed},
    [TALK_NOTE] = {TRANSFER_POST, "application/json, text/event-stream", note_failed},
    [TALK_STREAM] = {TRANSFER_GET, "text/event-stream", stream_failed},
    [TALK_ENDPOINT] = {TRANSFER_GET, "text/event-stream", endpoint_failed},
    [TALK_DELETE] = {TRANSFER_DELETE, NULL, delete_failed},
};

/* ---- sending ---- */

static const struct talk_kind_row *
talk_row(const struct http_talk *x)
{
	return &talk_kinds[x->is_resuming ? TALK_STREAM : x->kind];
}

static void
put_line(struct buf *b, const char *name, const char *value)
{
	buf_add_str(b, name);
	buf_add_str(b, ": ");
	buf_add_str(b, value);
	buf_add_char(b, '\0');
}

static void
put_session(struct http_talk *x, struct buf *b)
{
	struct http_link *k = x->link;
	const char *id = x->session;

	x->has_session = false;
	x->session_no = k->session_no;
	if (x->is_initialize || x->is_apart || k->mode == HTTP_MODE_SSE)
		return;
	if (!id && k->session.len > 0)
		id = buf_cstr(&k->session);
	if (id) {
		put_line(b, "Mcp-Session-Id", id);
		x->has_session = true;
	}
}

/* All lines, each ended by NUL. */
static enum mv_err
put_headers(struct http_talk *x, struct buf *b)
{
	const struct talk_kind_row *row = talk_row(x);
	struct http_link *k = x->link;

	if (row->method == TRANSFER_POST)
		put_line(b, "Content-Type", "application/json");
	if (row->accept)
		put_line(b, "Accept", row->accept);
	put_session(x, b);
	if (k->revision[0] != '\0' && !x->is_initialize && !x->is_apart)
		put_line(b, "MCP-Protocol-Version", k->revision);
	if (talk_last_id(x)[0] != '\0')
		put_line(b, "Last-Event-ID", talk_last_id(x));
	for (const char *p = x->lines; p && *p; p += strlen(p) + 1)
		buf_add(b, p, strlen(p) + 1);
	if (k->cb.put_headers && !k->cb.put_headers(k->arg, b))
		return MV_AUTH;
	return b->err == MV_OK ? MV_OK : MV_NOMEM;
}

const char *
talk_url(struct http_talk *x)
{
	struct http_link *k = x->link;
	struct buf *own = &x->url;

	if (own->len == 0 && k->mode == HTTP_MODE_SSE && x->kind != TALK_ENDPOINT)
		own = &k->endpoint_url;
	return own->len > 0 ? buf_cstr(own) : k->o.url;
}

static void
on_head(void *arg, const struct transfer_head *h)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	talk_on_head(x, h);
}

static void
on_body(void *arg, const char *p, size_t n)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	talk_feed(x, p, n);
}

static void
on_end(void *arg, enum mv_err err, const char *text)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	x->transfer = NULL;
	talk_on_end(x, err, text);
}

static bool
talk_transfer(struct http_talk *x, const struct buf *lines)
{
	static const struct transfer_cb cb = {on_head, on_body, on_end};
	const struct http_link_opts *lo = &x->link->o;
	const struct talk_kind_row *row = talk_row(x);
	const char *headers[HEADERS_MAX + 1];
	struct iovec body = {x->body, x->body_len};
	struct transfer_opts o = {
	    .method = row->method,
	    .url = talk_url(x),
	    .headers = headers,
	    .body = &body,
	    .n_body = row->method == TRANSFER_POST ? 1 : 0,
	    .ca_file = lo->ca_file,
	    .cert_file = lo->cert_file,
	    .key_file = lo->key_file,
	    .proxy = lo->proxy,
	    .skip_verify = lo->skip_verify,
	    .connect_ms = lo->connect_ms,
	    /* What it brings ends calls. */
	    .is_vital = true,
	};

	transfer_split_headers(lines, headers, HEADERS_MAX);
	x->transfer = o.url ? transfer_start(x->link->curl, &o, &cb, x) : NULL;
	return x->transfer != NULL;
}

enum mv_err
talk_start(struct http_talk *x)
{
	struct buf lines;
	enum mv_err err;

	buf_init(&lines, HEADERS_BYTES);
	err = put_headers(x, &lines);
	if (err == MV_OK && !talk_transfer(x, &lines))
		err = MV_NOMEM;
	/* Among them are secrets. */
	mem_free_secret(lines.data, lines.cap);
	talk_forget_answer(x);
	/* Nobody else has an eye on it. */
	if (x->kind == TALK_NOTE)
		timer_set(&x->timer, NOTE_MS);
	x->start_err = err;
	talk_set(x, err == MV_OK ? TALK_ST_SENT : TALK_ST_NEW, mv_err_reason(err));
	return err;
}

void
talk_again(struct http_talk *x)
{
	talk_hang_up(x);
	if (talk_start(x) != MV_OK)
		talk_wait(x, 0, "not sent");
}

void
talk_wait(struct http_talk *x, uint64_t ms, const char *reason)
{
	talk_hang_up(x);
	talk_set(x, TALK_ST_WAIT, reason);
	timer_set(&x->timer, ms);
	if (x->kind == TALK_STREAM)
		link_tell_stream(x->link);
}

static void
on_due(void *arg)
{
	struct http_talk *x = arg;

	enum mv_err err = x->start_err;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	x->start_err = MV_OK;
	if (x->state != TALK_ST_WAIT && x->kind == TALK_NOTE && !x->is_answered)
		talk_fail(x, MV_CLOSED, "no answer in time");
	else if (x->state != TALK_ST_WAIT) /* of draining, or waiting for DELETE */
		talk_finish(x);
	else if (err == MV_OK)
		talk_again(x);
	else if (!talk_retry(x))
		talk_fail(x, err, NULL);
}

/* ---- beginning and end ---- */

struct http_talk *
talk_new(struct http_link *k, enum talk_kind kind)
{
	struct http_talk *x = mem_xcalloc(1, sizeof(*x));

	x->magic = HTTP_TALK_MAGIC;
	x->kind = kind;
	x->link = k;
	x->prev = k->talks_tail;
	*k->talks_tail = x;
	k->talks_tail = &x->next;
	k->n_notes += kind == TALK_NOTE;
	timer_init(&x->timer, k->loop, on_due, x);
	buf_init(&x->url, URL_BYTES);
	return x;
}

void
talk_drop_body(struct http_talk *x)
{
	if (x->body)
		x->link->pending -= x->body_len;
	mem_free(x->body);
	mem_free(x->lines);
	x->body = x->lines = NULL;
	x->body_len = 0;
}

void
talk_hang_up(struct http_talk *x)
{
	/* The end of a session has one limit, wherever it is sent to. */
	if (x->kind != TALK_DELETE)
		timer_clear(&x->timer);
	if (x->transfer)
		transfer_cancel(x->transfer);
	x->transfer = NULL;
}

static void
on_destroy(void *p)
{
	struct http_talk *x = p;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	x->magic = 0;
	talk_forget_answer(x);
	if (x->events)
		sse_fini(x->events);
	mem_free(x->events);
	mem_free(x->session);
	buf_fini(&x->url);
	mem_free(x);
}

void
talk_end(struct http_talk *x)
{
	struct http_link *k = x->link;

	if (talk_is_over(x))
		return;
	talk_hang_up(x);
	timer_fini(&x->timer);
	talk_drop_body(x);
	talk_set(x, TALK_ST_OVER, "");
	k->n_notes -= x->kind == TALK_NOTE;
	*x->prev = x->next;
	if (x->next)
		x->next->prev = x->prev;
	else
		k->talks_tail = x->prev;
	if (x->id && idmap_get(k->requests, x->id) == x)
		idmap_del(k->requests, x->id);
	if (k->stream == x)
		k->stream = NULL;
	if (k->late_end == x)
		k->late_end = NULL;
	if (k->endpoint == x) {
		k->endpoint = NULL;
		buf_reset(&k->endpoint_url);
	}
	loop_defer_free(k->loop, on_destroy, x);
	if (x->is_initialize)
		link_end_late(k);
}

void
talk_fail(struct http_talk *x, enum mv_err err, const char *text)
{
	struct http_failure f = {
	    .err = err,
	    .status = x->status,
	    .text = text ? text : mv_err_text(err),
	    .www_authenticate = x->www_authenticate,
	    .retry_after_s = x->retry_after_s,
	};

	if (talk_is_over(x))
		return;
	talk_end(x);
	talk_kinds[x->kind].on_failed(x, &f);
}

void
talk_failf(struct http_talk *x, enum mv_err err, const char *fmt, ...)
{
	char text[FAILURE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	talk_fail(x, err, text);
}

void
talk_finish(struct http_talk *x)
{
	if (x->kind == TALK_DELETE)
		talk_fail(x, MV_OK, "");
	else
		talk_end(x);
}
