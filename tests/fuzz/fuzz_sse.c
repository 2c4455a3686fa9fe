/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the writer of event streams.
 *
 * The first byte gives the version of HTTP, whether another answer stands before, and
 * whether events have ids; each line is the data of one event. What was written, read by
 * a parser of its own (chunks, then the rules of the HTML standard, 9.2.6), is these
 * events and nothing else.
 */
#include "http_server_priv.h"

#include "fuzz_rig.h"

#include <stdio.h>

#define EVENTS_MAX 64
#define OUT_MAX	   ((size_t)1 << 20)

/* ---- a connection of which nothing but its output is real ---- */

static struct buf sent;

enum mv_err
stream_writev(struct stream *s, const struct iovec *iov, int n)
{
	(void)s;
	for (int i = 0; i < n; i++)
		buf_add(&sent, iov[i].iov_base, iov[i].iov_len);
	return sent.err;
}

size_t
stream_out_pending(const struct stream *s)
{
	(void)s;
	return 0;
}

void
http_conn_set(struct http_conn *c, enum http_conn_state next, const char *reason)
{
	(void)reason;
	c->state = next;
}

void
http_conn_arm(struct http_conn *c)
{
	(void)c;
}

void
deferred_ask(struct deferred *d)
{
	(void)d;
}

void
http_queue_put(struct http_queue *q, struct http_exchange *x)
{
	x->next = NULL;
	if (q->last)
		q->last->next = x;
	else
		q->first = x;
	q->last = x;
}

struct http_exchange *
http_queue_pop(struct http_queue *q)
{
	struct http_exchange *x = q->first;

	q->first = x->next;
	if (!q->first)
		q->last = NULL;
	return x;
}

/* ---- reading it back ---- */

struct event {
	struct jtext data;
	bool has_id;
	unsigned id;
};

static struct jtext
take(struct jtext *rest, size_t n)
{
	struct jtext t = {rest->p, n};

	MCPVISOR_ASSERT(n <= rest->n);
	rest->p += n;
	rest->n -= n;
	return t;
}

/* A line that ends in CR LF, without it. */
static struct jtext
take_line(struct jtext *rest)
{
	const char *end = memmem(rest->p, rest->n, "\r\n", 2);
	struct jtext line;

	MCPVISOR_ASSERT(end != NULL);
	line = take(rest, (size_t)(end - rest->p));
	(void)take(rest, 2);
	return line;
}

static void
skip_head(struct jtext *rest)
{
	while (take_line(rest).n > 0)
		;
}

static size_t
read_hex(struct jtext t)
{
	size_t v = 0;

	MCPVISOR_ASSERT(t.n > 0 && t.n < 8);
	for (size_t i = 0; i < t.n; i++) {
		const char *at = memchr("0123456789abcdef", t.p[i], 16);

		MCPVISOR_ASSERT(at != NULL);
		v = v * 16 + (size_t)(at - "0123456789abcdef");
	}
	return v;
}

/* rest is all of the body, up to the last chunk. */
static void
read_chunks(struct jtext rest, struct buf *out)
{
	size_t n;

	while ((n = read_hex(take_line(&rest))) > 0) {
		struct jtext data = take(&rest, n);

		buf_add(out, data.p, data.n);
		MCPVISOR_ASSERT(take_line(&rest).n == 0);
	}
	MCPVISOR_ASSERT(take_line(&rest).n == 0 && rest.n == 0);
}

/* A line of a stream ends in CR LF, LF or CR. */
static struct jtext
take_stream_line(struct jtext *rest)
{
	struct jtext line;
	size_t n = 0;

	while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
		n++;
	MCPVISOR_ASSERT(n < rest->n);
	line = take(rest, n);
	if (rest->n >= 2 && memcmp(rest->p, "\r\n", 2) == 0)
		(void)take(rest, 1);
	(void)take(rest, 1);
	return line;
}

/* The value of the field if the line is of that one. */
static bool
field_value(struct jtext line, const char *name, struct jtext *value)
{
	size_t n = strlen(name);

	if (line.n < n + 1 || memcmp(line.p, name, n) != 0 || line.p[n] != ':')
		return false;
	*value = (struct jtext){line.p + n + 1, line.n - n - 1};
	if (value->n > 0 && value->p[0] == ' ')
		(void)take(value, 1);
	return true;
}

/* The next event; its data is one line, as every message is. False: no more. */
static bool
next_event(struct jtext *rest, struct event *e)
{
	unsigned lines = 0;

	*e = (struct event){.has_id = false};
	while (rest->n > 0) {
		struct jtext line = take_stream_line(rest), value;

		if (line.n == 0 && lines > 0)
			return true;
		if (line.n == 0 || line.p[0] == ':')
			continue;
		if (field_value(line, "data", &value)) {
			e->data = value;
			lines++;
		} else {
			MCPVISOR_ASSERT(field_value(line, "id", &value) && !e->has_id);
			e->has_id = true;
			for (size_t i = 0; i < value.n; i++)
				e->id = e->id * 10 + (unsigned)(value.p[i] - '0');
		}
		MCPVISOR_ASSERT(lines <= 1);
	}
	MCPVISOR_ASSERT(lines == 0);
	return false;
}

/* ---- both ---- */

struct rig {
	struct http_server server;
	struct http_conn conn;
	struct http_exchange before, stream;
	struct jtext lines[EVENTS_MAX];
	unsigned n;
	bool ids, chunked, waits;
};

static void
rig_init(struct rig *r, unsigned flags)
{
	memset(r, 0, sizeof(*r));
	r->chunked = flags & 1;
	r->ids = flags & 2;
	r->waits = flags & 4;
	r->server.magic = HTTP_SERVER_MAGIC;
	r->server.o.out_max = OUT_MAX;
	buf_init(&r->server.scratch, OUT_MAX);
	r->conn.magic = HTTP_CONN_MAGIC;
	r->conn.server = &r->server;
	r->before.magic = r->stream.magic = HTTP_EXCHANGE_MAGIC;
	r->before.conn = r->stream.conn = &r->conn;
	r->before.state = r->stream.state = HTTP_X_OPEN;
	r->before.minor = r->stream.minor = r->chunked ? 1 : 0;
	buf_init(&r->before.held, OUT_MAX);
	buf_init(&r->stream.held, OUT_MAX);
	if (r->waits)
		http_queue_put(&r->conn.open, &r->before);
	http_queue_put(&r->conn.open, &r->stream);
}

static void
put_event(struct rig *r, struct jtext line, struct dice *d)
{
	struct iovec iov[24 * 2];
	char id[16];
	int n = 0;
	char *text = exact_copy(line.p, line.n);
	size_t at = 0;

	while (at < line.n && n < 47) {
		size_t len = n == 46 ? line.n - at : dice_piece(d, line.n - at);

		iov[n++] = (struct iovec){text + at, len};
		at += len;
	}
	snprintf(id, sizeof(id), "%u", r->n);
	MCPVISOR_ASSERT(
	    http_stream_event(&r->stream, r->ids ? id : NULL, iov, n) == MV_OK);
	mem_free(text);
	r->lines[r->n++] = line;
}

static void
write_all(struct rig *r, struct jtext rest, struct dice *d)
{
	http_stream_begin(&r->stream, NULL);
	while (rest.n > 0 && r->n < EVENTS_MAX) {
		put_event(r, next_line(&rest), d);
		if (dice_roll(d, 4) == 0)
			http_heartbeat(&r->conn);
		if (r->waits && dice_roll(d, 8) == 0)
			http_reply(&r->before, 204, NULL, NULL, NULL, 0);
	}
	http_stream_end(&r->stream);
	if (r->waits)
		http_reply(&r->before, 204, NULL, NULL, NULL, 0);
}

static void
check_sent(const struct rig *r)
{
	struct jtext rest = {sent.data, sent.len};
	struct buf body;
	struct event e;

	MCPVISOR_ASSERT(sent.err == MV_OK && r->conn.held == 0);
	buf_init(&body, OUT_MAX);
	if (r->waits)
		skip_head(&rest);
	skip_head(&rest);
	if (r->chunked)
		read_chunks(rest, &body);
	else
		buf_add(&body, rest.p, rest.n);
	rest = (struct jtext){body.data, body.len};
	for (unsigned i = 0; i < r->n; i++) {
		MCPVISOR_ASSERT(next_event(&rest, &e));
		MCPVISOR_ASSERT(same_bytes(e.data, r->lines[i]));
		MCPVISOR_ASSERT(e.has_id == r->ids && (!r->ids || e.id == i));
	}
	MCPVISOR_ASSERT(!next_event(&rest, &e));
	buf_fini(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dice d = dice_of(data, size);
	static struct rig r;
	struct jtext all;
	char *text;

	if (size == 0)
		return 0;
	text = exact_copy(data + 1, size - 1);
	/* No message has one: links and endpoints see to that. */
	for (size_t i = 0; i + 1 < size; i++)
		if (text[i] == '\r')
			text[i] = ' ';
	all = (struct jtext){text, size - 1};
	buf_init(&sent, OUT_MAX);
	rig_init(&r, data[0]);
	write_all(&r, all, &d);
	check_sent(&r);
	buf_fini(&sent);
	buf_fini(&r.server.scratch);
	buf_fini(&r.before.held);
	buf_fini(&r.stream.held);
	mem_free(text);
	return 0;
}
