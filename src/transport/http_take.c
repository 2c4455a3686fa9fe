/* SPDX-License-Identifier: MIT */
/*
 * Taking requests from a connection's input: heads, bodies, and what is refused.
 *
 * Owns: nothing of its own; the request that is being received is in the connection.
 * Driven by: http_conn.c. Invariants: a body of known length stays in the stream's buffer
 * and is handed on from there; chunks are gathered behind a copy of their head; a
 * request is consumed after its delivery; true means that more may be parsed.
 */
#include "mcpvisor/http_server.h"

#include "http_server_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#define REQUESTS_PER_TURN 32
#define SKIP_MAX	  ((uint64_t)64 * 1024)

/* An answer of our own, after those that are still to come; nothing more is read. */
void
http_refuse(struct http_conn *c, int status)
{
	struct http_exchange *x = http_exchange_new(c);

	LOG_DEBUG("http", "refused", "fd=%d status=%d", c->fd, status);
	x->close = true;
	http_reply_plain(x, status);
	http_conn_set(c, HTTP_CONN_ST_LAST, "refused");
}

/* The same for the request whose body is being received. */
void
http_refuse_body(struct http_conn *c, int status)
{
	struct http_exchange *x = c->taking;

	if (x && x->state == HTTP_X_STREAM) {
		http_conn_set(c, HTTP_CONN_ST_DOOMED, "body refused");
		return;
	}
	if (x && x->state == HTTP_X_TAKING) {
		x->close = true;
		http_reply_plain(x, status);
	}
	http_conn_set(c, HTTP_CONN_ST_LAST, "body refused");
}

size_t
http_take_half_read(const struct http_conn *c)
{
	size_t n;

	if (c->state != HTTP_CONN_ST_BODY || !c->taking ||
	    c->taking->state != HTTP_X_TAKING)
		return 0;
	(void)stream_peek(c->stream, &n);
	return c->gather.len + n;
}

/* HTTP/1.0 answers may end with the connection: one at a time. */
static bool
take_is_full(const struct http_conn *c)
{
	return c->open.n &&
	       (c->open.n >= c->server->o.pipeline_max || c->open.last->minor == 0);
}

void
http_take_hold(struct http_conn *c)
{
	size_t n;

	(void)stream_peek(c->stream, &n);
	if (n < HTTP_READ_AHEAD)
		return;
	/* A paused stream does not tell when the client goes. */
	stream_pause(c->stream, true);
	http_conn_wait(c, HTTP_LOOK_MS);
}

/* A request has been taken whole. True if the next one may be read. */
static bool
take_next(struct http_conn *c, bool close)
{
	if (close || c->server->draining) {
		http_conn_set(c, HTTP_CONN_ST_LAST, "last request");
		return false;
	}
	if (take_is_full(c)) {
		http_conn_set(c, HTTP_CONN_ST_FULL, "pipeline");
		http_take_hold(c);
		return false;
	}
	http_conn_set(c, HTTP_CONN_ST_IDLE, "request in");
	return true;
}

/* Skips the rest of a request that was answered before its end. */
static bool
take_skip(struct http_conn *c)
{
	uint64_t rest = c->head_len + c->body.left;
	size_t n, take;

	if (c->no_skip) {
		http_conn_set(c, HTTP_CONN_ST_LAST, "answered early");
		return false;
	}
	(void)stream_peek(c->stream, &n);
	take = n < rest ? n : (size_t)rest;
	stream_consume(c->stream, take);
	rest -= take;
	c->head_len = 0;
	c->body.left = rest;
	if (rest == 0)
		return take_next(c, false);
	http_conn_wait(c, c->server->o.body_ms);
	return false;
}

/* Chunks leave the stream as they come. */
static int
take_gather(struct http_conn *c)
{
	int status = HTTP_MORE;
	size_t n, len, used = 1;
	const char *p, *data;

	while (status == HTTP_MORE && used) {
		p = stream_peek(c->stream, &n);
		status = http_body_next(&c->body, p, n, &data, &len, &used);
		if (len)
			buf_add(&c->gather, data, len);
		stream_consume(c->stream, used);
	}
	return c->gather.err == MV_OK ? status : 503;
}

/* The head again, after bytes have moved. */
static const struct http_head *
take_head(struct http_conn *c, const char *p, size_t n)
{
	struct http_server *s = c->server;
	size_t used;

	if (s->head_conn != c || s->head_base != p) {
		int status = http_parse_head(&c->limits, p, n, &s->head, &used);

		MCPVISOR_ASSERT(status == 0 && used == c->head_len);
		s->head_conn = c;
		s->head_base = p;
	}
	return &s->head;
}

static bool
take_deliver(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_exchange *x = c->taking;
	size_t n, taken = 0;
	const char *p;

	if (c->body.chunked) {
		p = c->gather.data;
		n = c->gather.len;
	} else {
		p = stream_peek(c->stream, &n);
		n = c->head_len + (size_t)c->body.left;
		taken = n;
	}
	if (x->state == HTTP_X_TAKING)
		x->state = HTTP_X_OPEN;
	c->taking = NULL;
	s->cb.on_request(s->arg, x, x->user, take_head(c, p, c->head_len),
	    p + c->head_len, n - c->head_len);
	if (c->state == HTTP_CONN_ST_GONE)
		return false;
	s->head_conn = NULL;
	buf_fini(&c->gather);
	stream_consume(c->stream, taken);
	if (c->state == HTTP_CONN_ST_DOOMED)
		return false;
	return take_next(c, x->close);
}

/* Takes what there is of a body. True if the next request may be read. */
static bool
take_more(struct http_conn *c)
{
	int status;
	size_t n;

	if (!c->taking || c->taking->state == HTTP_X_DONE) {
		c->taking = NULL;
		return take_skip(c);
	}
	if (c->body.chunked) {
		status = take_gather(c);
	} else {
		(void)stream_peek(c->stream, &n);
		status = n - c->head_len >= c->body.left ? 0 : HTTP_MORE;
	}
	if (status == 0)
		return take_deliver(c);
	if (status == HTTP_MORE) {
		http_conn_wait(c, c->server->o.body_ms);
		http_server_look(c->server);
	} else {
		http_refuse_body(c, status);
	}
	return false;
}

static bool
take_begin_body(struct http_conn *c, const struct http_head *h, size_t have)
{
	const char *p;
	size_t n;

	if (h->expect_continue && have == c->head_len &&
	    c->taking->state == HTTP_X_TAKING)
		http_continue(c->taking);
	if (c->state == HTTP_CONN_ST_DOOMED)
		return false;
	if (h->chunked) {
		/* The head would be in the way of the chunks behind it. */
		p = stream_peek(c->stream, &n);
		buf_add(&c->gather, p, c->head_len);
		stream_consume(c->stream, c->head_len);
	}
	return take_more(c);
}

/* A sound head of `used` bytes. True if its request is in and the next may be read. */
static bool
take_begin(struct http_conn *c, size_t used, size_t have)
{
	struct http_server *s = c->server;
	const struct http_head *h = &s->head;
	struct http_exchange *x;
	int status;

	if (c->refused || mem_is_short()) {
		http_server_look(s);
		http_refuse(c, 503);
		return false;
	}
	x = http_exchange_new(c);
	x->minor = h->minor;
	x->no_body = h->method == HTTP_M_HEAD;
	x->close = !h->keep_alive;
	c->taking = x;
	c->head_len = used;
	c->no_skip = h->chunked || h->expect_continue || h->length > SKIP_MAX || x->close;
	http_body_init(&c->body, h, &c->limits);
	http_conn_set(c, HTTP_CONN_ST_BODY, "head in");
	status = s->cb.on_head(s->arg, x, h, &x->user);
	if (c->state == HTTP_CONN_ST_GONE)
		return false;
	x->owed = true;
	if (c->state == HTTP_CONN_ST_DOOMED)
		return false;
	if (status)
		http_reply_plain(x, status); /* does nothing if there is an answer */
	if (status || x->state == HTTP_X_DONE) {
		c->taking = NULL;
		return take_skip(c);
	}
	return take_begin_body(c, h, have);
}

void
http_take_parse(struct http_conn *c)
{
	struct http_server *s = c->server;
	bool more = true;

	for (int i = 0; more; i++) {
		size_t n, used = 0;
		const char *p = stream_peek(c->stream, &n);
		int status;

		if (n == 0)
			return;
		if (i == REQUESTS_PER_TURN) {
			stream_again(c->stream);
			return;
		}
		s->head_conn = c;
		s->head_base = p;
		status = http_parse_head(&c->limits, p, n, &s->head, &used);
		if (status == HTTP_MORE) {
			http_conn_set(c, HTTP_CONN_ST_HEAD, "first bytes");
			return;
		}
		if (status) {
			http_refuse(c, status);
			return;
		}
		more = take_begin(c, used, n);
	}
}

void
http_take_body(struct http_conn *c)
{
	if (take_more(c))
		http_take_parse(c);
}

void
http_take_resume(struct http_conn *c)
{
	if (take_is_full(c))
		return;
	http_conn_set(c, HTTP_CONN_ST_IDLE, "room again");
	http_take_parse(c);
}
