/* SPDX-License-Identifier: MIT */
/*
 * Answers and event streams, in the order of their requests.
 *
 * Owns: what is held back for an exchange whose turn has not come.
 * Driven by: the callee of the server, through exchanges.
 * Invariants: bytes of an exchange reach the stream only while it is the first of
 * its connection; unsent and held bytes of one connection never pass out_max; no
 * callback is made from here.
 */
#include "mcpvisor/http_server.h"

#include "http_server_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEND_PIECES 24

const char *
http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
	    {200, "OK"},
	    {202, "Accepted"},
	    {204, "No Content"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {405, "Method Not Allowed"},
	    {406, "Not Acceptable"},
	    {408, "Request Timeout"},
	    {409, "Conflict"},
	    {411, "Length Required"},
	    {413, "Content Too Large"},
	    {414, "URI Too Long"},
	    {415, "Unsupported Media Type"},
	    {417, "Expectation Failed"},
	    {421, "Misdirected Request"},
	    {422, "Unprocessable Content"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"},
	    {501, "Not Implemented"},
	    {502, "Bad Gateway"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			return known[i].text;
	return "Unknown";
}

/* The names are the protocol's, whatever the locale says. */
static void
http_add_date(struct http_server *s)
{
	static const char *const days[] = {
	    "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t now = time(NULL);
	struct tm t;

	if (now != s->date_at && gmtime_r(&now, &t)) {
		char clock[48];

		strftime(clock, sizeof(clock), "%Y %H:%M:%S GMT", &t);
		snprintf(s->date, sizeof(s->date), "Date: %s, %02d %s %s\r\n",
		    days[t.tm_wday], t.tm_mday, months[t.tm_mon], clock);
		s->date_at = now;
	}
	buf_add_str(&s->scratch, s->date);
}

static bool
http_is_over(const struct http_exchange *x)
{
	return !x->conn || x->conn->in_ended || x->conn->state == HTTP_CONN_ST_DOOMED ||
	       x->conn->state == HTTP_CONN_ST_GONE;
}

static enum mv_err
http_hold(struct http_exchange *x, const struct iovec *iov, int n)
{
	struct http_conn *c = x->conn;
	size_t used = c->held + stream_out_pending(c->stream);
	size_t room = c->server->o.out_max;

	room -= used < room ? used : room;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > room)
			return MV_BUSY;
		used = x->held.len;
		room -= iov[i].iov_len;
		buf_add(&x->held, iov[i].iov_base, iov[i].iov_len);
		c->held += x->held.len - used;
	}
	return x->held.err;
}

/* A part of an answer is worth nothing: when one does not fit, all ends. */
static enum mv_err
http_emit(struct http_exchange *x, const struct iovec *iov, int n)
{
	struct http_conn *c = x->conn;
	enum mv_err err;

	if (http_is_over(x))
		return MV_CLOSED;
	if (x == c->open.first)
		err = stream_writev(c->stream, iov, n);
	else
		err = http_hold(x, iov, n);
	if (err != MV_OK)
		http_conn_set(c, HTTP_CONN_ST_DOOMED, mv_err_reason(err));
	return err;
}

/* The scratch buffer, the pieces, then what ends them. */
static enum mv_err
http_send(struct http_exchange *x, const struct iovec *body, int n, const char *end)
{
	struct buf *scratch = &x->conn->server->scratch;
	struct iovec v[SEND_PIECES];
	enum mv_err err = scratch->err;
	int used = 0;

	if (err != MV_OK) {
		http_conn_set(x->conn, HTTP_CONN_ST_DOOMED, mv_err_reason(err));
		return err;
	}
	v[used++] = (struct iovec){scratch->data, scratch->len};
	for (int i = 0; i < n && err == MV_OK; i++) {
		v[used++] = body[i];
		if (used == SEND_PIECES - 1) {
			err = http_emit(x, v, used);
			used = 0;
		}
	}
	if (end[0]) {
		union {
			const char *in;
			void *out;
		} p = {end};

		v[used++] = (struct iovec){p.out, strlen(end)};
	}
	return err == MV_OK && used ? http_emit(x, v, used) : err;
}

static void
http_beat(struct http_conn *c)
{
	const struct http_exchange *x = c->open.first;

	c->beat_at = 0;
	if (!x || x->state != HTTP_X_STREAM)
		return;
	c->beat_at = clock_now_ms() + c->server->o.heartbeat_ms;
	http_conn_arm(c);
}

/* x is answered: it leaves once it is its turn, and so do those behind it. */
static void
http_advance(struct http_exchange *x)
{
	struct http_conn *c = x->conn;

	x->state = HTTP_X_DONE;
	while (!http_is_over(x) && c->open.first && c->open.first->state == HTTP_X_DONE) {
		struct http_exchange *first;

		http_queue_put(&c->ended, http_queue_pop(&c->open));
		first = c->open.first;
		if (first && first->held.len) {
			struct iovec v = {first->held.data, first->held.len};

			c->held -= first->held.len;
			(void)http_emit(first, &v, 1);
			buf_fini(&first->held);
		}
	}
	http_beat(c);
	deferred_ask(&c->later);
}

/* The body of this request cannot be skipped: who answers before it is there ends
 * the connection. */
static void
http_decide_close(struct http_exchange *x)
{
	const struct http_conn *c = x->conn;

	if (c->taking == x && c->no_skip)
		x->close = true;
	if ((c->state == HTTP_CONN_ST_LAST || c->server->draining) && x == c->open.last)
		x->close = true;
}

static void
http_add_status(struct http_exchange *x, int status, const char *extra)
{
	struct http_server *s = x->conn->server;
	struct buf *b = &s->scratch;

	buf_reset(b);
	if (status == 200) {
		buf_add(b, "HTTP/1.1 200 OK\r\n", 17);
	} else {
		buf_add_str(b, "HTTP/1.1 ");
		buf_add_u64(b, (uint64_t)status);
		buf_add_char(b, ' ');
		buf_add_str(b, http_status_text(status));
		buf_add(b, "\r\n", 2);
	}
	http_add_date(s);
	if (extra)
		buf_add_str(b, extra);
}

static void
http_add_connection(struct http_exchange *x)
{
	struct buf *b = &x->conn->server->scratch;

	if (x->close)
		buf_add_str(b, "Connection: close\r\n");
	else if (x->minor == 0)
		buf_add_str(b, "Connection: keep-alive\r\n");
	buf_add(b, "\r\n", 2);
}

void
http_reply(struct http_exchange *x, int status, const char *extra, const char *type,
    const struct iovec *body, int n)
{
	struct buf *b;
	uint64_t total = 0;

	MCPVISOR_ASSERT(x->magic == HTTP_EXCHANGE_MAGIC);
	if (http_is_over(x) || x->state == HTTP_X_STREAM || x->state == HTTP_X_DONE)
		return;
	if (!type)
		n = 0;
	for (int i = 0; i < n; i++)
		total += body[i].iov_len;
	b = &x->conn->server->scratch;
	http_decide_close(x);
	http_add_status(x, status, extra);
	if (type) {
		buf_add_str(b, "Content-Type: ");
		buf_add_str(b, type);
		buf_add(b, "\r\n", 2);
	}
	if (status != 204 && status != 304) {
		buf_add_str(b, "Content-Length: ");
		buf_add_u64(b, total);
		buf_add(b, "\r\n", 2);
	}
	http_add_connection(x);
	if (http_send(x, body, x->no_body ? 0 : n, "") == MV_OK)
		http_advance(x);
}

void
http_reply_plain(struct http_exchange *x, int status)
{
	char text[64];
	struct iovec body = {text, 0};

	snprintf(text, sizeof(text), "%d %s\n", status, http_status_text(status));
	body.iov_len = strlen(text);
	http_reply(x, status, status == 503 ? "Retry-After: 1\r\n" : NULL, "text/plain",
	    &body, 1);
}

void
http_continue(struct http_exchange *x)
{
	struct buf *b = &x->conn->server->scratch;

	buf_reset(b);
	buf_add_str(b, "HTTP/1.1 100 Continue\r\n\r\n");
	(void)http_send(x, NULL, 0, "");
}

void
http_stream_begin(struct http_exchange *x, const char *extra)
{
	struct http_conn *c = x->conn;
	struct buf *b;

	MCPVISOR_ASSERT(x->magic == HTTP_EXCHANGE_MAGIC);
	if (http_is_over(x) || x->state == HTTP_X_STREAM || x->state == HTTP_X_DONE)
		return;
	b = &c->server->scratch;
	http_decide_close(x);
	if (x->minor == 0) {
		x->close = true;
		c->no_skip = c->no_skip || c->taking == x;
	}
	http_add_status(x, 200, extra);
	buf_add_str(b, "Content-Type: text/event-stream\r\n"
		       "Cache-Control: no-cache, no-store\r\n"
		       "X-Accel-Buffering: no\r\n");
	if (x->minor)
		buf_add_str(b, "Transfer-Encoding: chunked\r\n");
	http_add_connection(x);
	if (http_send(x, NULL, 0, "") != MV_OK)
		return;
	x->state = HTTP_X_STREAM;
	if (x == c->open.first)
		http_beat(c);
	if (x->close && c->state == HTTP_CONN_ST_FULL)
		http_conn_set(c, HTTP_CONN_ST_LAST, "stream until close");
}

bool
http_stream_is_open(const struct http_exchange *x)
{
	return x->state == HTTP_X_STREAM && !http_is_over(x);
}

/* field: the name of the line before the data, and what ends it; NULL: there is none. */
static enum mv_err
http_put_event(struct http_exchange *x, const char *field, const char *value,
    const struct iovec *data, int n)
{
	const char *end = x->minor ? "\n\n\r\n" : "\n\n";
	size_t total = strlen("data: \n\n");
	enum mv_err err;
	struct buf *b;

	MCPVISOR_ASSERT(x->magic == HTTP_EXCHANGE_MAGIC);
	if (!http_stream_is_open(x))
		return MV_CLOSED;
	if (x->no_body)
		return MV_OK;
	if (field)
		total += strlen(field) + strlen(value) + 1;
	for (int i = 0; i < n; i++)
		total += data[i].iov_len;
	b = &x->conn->server->scratch;
	buf_reset(b);
	if (x->minor)
		buf_addf(b, "%zx\r\n", total);
	if (field) {
		buf_add_str(b, field);
		buf_add_str(b, value);
		buf_add_char(b, '\n');
	}
	buf_add_str(b, "data: ");
	err = http_send(x, data, n, end);
	if (err == MV_OK && x == x->conn->open.first)
		http_beat(x->conn);
	return err;
}

enum mv_err
http_stream_event(
    struct http_exchange *x, const char *id, const struct iovec *data, int n)
{
	return http_put_event(x, id ? "id: " : NULL, id, data, n);
}

enum mv_err
http_stream_typed_event(
    struct http_exchange *x, const char *type, const struct iovec *data, int n)
{
	return http_put_event(x, "event: ", type, data, n);
}

void
http_stream_retry(struct http_exchange *x, uint32_t ms)
{
	char text[32];
	struct buf *b;

	MCPVISOR_ASSERT(x->magic == HTTP_EXCHANGE_MAGIC);
	if (!http_stream_is_open(x) || x->no_body)
		return;
	b = &x->conn->server->scratch;
	snprintf(text, sizeof(text), "retry: %" PRIu32 "\n\n", ms);
	buf_reset(b);
	if (x->minor)
		buf_addf(b, "%zx\r\n", strlen(text));
	buf_add_str(b, text);
	(void)http_send(x, NULL, 0, x->minor ? "\r\n" : "");
}

void
http_heartbeat(struct http_conn *c)
{
	struct http_exchange *x = c->open.first;
	struct buf *b = &c->server->scratch;

	/* To a reader that is behind it would say nothing. */
	if (http_stream_is_open(x) && !x->no_body && stream_out_pending(c->stream) == 0) {
		buf_reset(b);
		buf_add_str(b, x->minor ? "3\r\n:\n\n\r\n" : ":\n\n");
		if (http_send(x, NULL, 0, "") != MV_OK)
			return;
	}
	http_beat(c);
}

void
http_stream_end(struct http_exchange *x)
{
	struct buf *b;

	MCPVISOR_ASSERT(x->magic == HTTP_EXCHANGE_MAGIC);
	if (!http_stream_is_open(x))
		return;
	if (x->minor && !x->no_body) {
		b = &x->conn->server->scratch;
		buf_reset(b);
		buf_add_str(b, "0\r\n\r\n");
		if (http_send(x, NULL, 0, "") != MV_OK)
			return;
	}
	http_advance(x);
}
