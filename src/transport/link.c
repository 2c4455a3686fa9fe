/* SPDX-License-Identifier: MIT */
/*
 * Whole messages over a stream: lines in, scanned once; pieces out, one line.
 *
 * Owns: the stream, and the memory for what is found in the message at hand.
 * Driven by: the stream's callbacks.
 * Invariants: a line is delivered before it is consumed, so what a message points
 * to stays for the callback; after a callback k->dead is looked at first; a line
 * that is not one well-formed message is never handed on as one.
 */
#include "mcpvisor/link.h"

#include "salvage_priv.h"

#include "mcpvisor/framer.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/stream.h"

#include <string.h>

#define LINK_MAGIC	0x6c696e6bu
#define LINES_PER_TURN	64
#define IN_ROOM		((size_t)64 * 1024) /* above a message, to see that it is over */
#define PIECES_ON_STACK 64

struct link {
	unsigned magic;
	struct loop *loop;
	struct stream *stream;
	struct link_cb cb;
	void *arg;
	struct framer framer;
	struct json_msg json;
	struct refused *refused;
	bool want_uris, paused, is_cut, dead;
};

static void
link_refuse_feed(struct link *k, const char *p, size_t n)
{
	if (!k->refused)
		k->refused = refused_new();
	refused_feed(k->refused, p, n);
}

static void
link_refuse(struct link *k, enum mv_err err)
{
	struct refused *r = k->refused;

	k->cb.on_bad(k->arg, err, refused_id(r, err, k->is_cut, &k->json),
	    r->salvage.is_reply, r->head, r->head_len);
	if (k->dead)
		return;
	mem_free(r);
	k->refused = NULL;
}

enum mv_err
link_scan(const char *p, size_t n, struct json_msg *json, struct link_msg *m)
{
	enum mv_err err = json_scan(json, p, n, false);

	m->base = p;
	m->len = n;
	m->json = json;
	if (err == MV_OK)
		m->env = envelope_read(p, json);
	return err;
}

/* Many readers (Python's text streams) end a line at a lone carriage return as well: what
 * is one message here must not be several there. In a well-formed text it stands between
 * tokens only, where a space means the same. NULL: no memory. */
static char *
line_without_returns(const char *line, size_t len)
{
	char *own = mem_try(len), *p = own;

	if (!own)
		return NULL;
	memcpy(own, line, len);
	while ((p = memchr(p, '\r', (size_t)(own + len - p))))
		*p = ' ';
	return own;
}

static void
link_on_line(struct link *k, const char *line, size_t len)
{
	struct link_msg m = {.base = line, .len = len, .json = &k->json};
	enum mv_err err;
	char *own = NULL;

	if (len == 0)
		return;
	err = json_scan(&k->json, line, len, k->want_uris);
	if (err == MV_OK && memchr(line, '\r', len)) {
		own = line_without_returns(line, len);
		err = own ? MV_OK : MV_NOMEM;
		m.base = own;
	}
	if (err != MV_OK) {
		link_refuse_feed(k, line, len);
		link_refuse(k, err);
		return;
	}
	m.env = envelope_read(m.base, &k->json);
	k->cb.on_message(k->arg, &m);
	mem_free(own);
}

static void
link_on_frame(struct link *k, enum framer_event ev, const char *line, size_t len)
{
	if (ev == FRAMER_LINE) {
		link_on_line(k, line, len);
		return;
	}
	link_refuse_feed(k, line, len);
	if (ev == FRAMER_LONG_END)
		link_refuse(k, MV_TOO_LONG);
}

static void
on_input(void *arg)
{
	struct link *k = arg;

	MCPVISOR_ASSERT(k->magic == LINK_MAGIC);
	for (int i = 0; i < LINES_PER_TURN && !k->paused; i++) {
		size_t n, len, consume;
		const char *line, *p = stream_peek(k->stream, &n);
		enum framer_event ev =
		    framer_next(&k->framer, p, n, &line, &len, &consume);

		if (ev == FRAMER_NEED)
			return;
		link_on_frame(k, ev, line, len);
		if (k->dead)
			return;
		stream_consume(k->stream, consume);
	}
	if (!k->paused)
		stream_again(k->stream);
}

static void
on_read_end(void *arg, enum stream_end end)
{
	struct link *k = arg;
	enum framer_event ev;

	MCPVISOR_ASSERT(k->magic == LINK_MAGIC);
	(void)end;
	do {
		size_t n, len, consume;
		const char *line, *p = stream_peek(k->stream, &n);

		ev = framer_finish(&k->framer, p, n, &line, &len, &consume);
		if (ev == FRAMER_NEED)
			break;
		k->is_cut = consume > 0 && p[consume - 1] != '\n';
		link_on_frame(k, ev, line, len);
		if (k->dead)
			return;
		stream_consume(k->stream, consume);
	} while (true);
	k->cb.on_end(k->arg);
}

static void
on_write_end(void *arg, int errnum)
{
	struct link *k = arg;

	MCPVISOR_ASSERT(k->magic == LINK_MAGIC);
	k->cb.on_write_end(k->arg, errnum);
}

static void
on_drained(void *arg)
{
	struct link *k = arg;

	MCPVISOR_ASSERT(k->magic == LINK_MAGIC);
	if (k->cb.on_drained)
		k->cb.on_drained(k->arg);
}

struct link *
link_new(struct loop *l, const struct link_opts *o, const struct link_cb *cb, void *arg)
{
	static const struct stream_cb stream_cb = {
	    on_input, on_drained, on_read_end, on_write_end};
	struct stream_opts so = {
	    .rfd = o->rfd,
	    .wfd = o->wfd,
	    .in_max = o->message_max + IN_ROOM,
	    .is_vital = o->is_vital,
	    .out_max = o->out_max,
	};
	struct link *k = mem_xcalloc(1, sizeof(*k));

	k->magic = LINK_MAGIC;
	k->loop = l;
	k->cb = *cb;
	k->arg = arg;
	k->want_uris = o->want_uris;
	framer_init(&k->framer, o->message_max);
	k->stream = stream_new(l, &so, &stream_cb, k);
	if (o->n_buffered > 0 &&
	    stream_put_back(k->stream, o->buffered, o->n_buffered) != MV_OK) {
		link_free(k);
		return NULL;
	}
	return k;
}

static void
on_destroy(void *p)
{
	struct link *k = p;

	MCPVISOR_ASSERT(k->magic == LINK_MAGIC);
	k->magic = 0;
	mem_free(k->refused);
	mem_free(k);
}

void
link_free(struct link *k)
{
	if (!k || k->dead)
		return;
	k->dead = true;
	stream_free(k->stream);
	loop_defer_free(k->loop, on_destroy, k);
}

enum mv_err
link_send(struct link *k, const struct iovec *iov, int n)
{
	struct iovec own[PIECES_ON_STACK], *all = own;
	static char newline[] = "\n";
	enum mv_err err;

	if (k->dead)
		return MV_CLOSED;
	if (n >= PIECES_ON_STACK)
		all = mem_try(((size_t)n + 1) * sizeof(*all));
	if (!all)
		return MV_NOMEM;
	memcpy(all, iov, (size_t)n * sizeof(*all));
	all[n] = (struct iovec){newline, 1};
	err = stream_writev(k->stream, all, n + 1);
	if (all != own)
		mem_free(all);
	return err;
}

enum mv_err
link_send_buf(struct link *k, const struct buf *b)
{
	struct iovec iov = {b->data, b->len};

	if (b->err != MV_OK)
		return b->err == MV_NOMEM ? MV_NOMEM : MV_BUSY;
	return link_send(k, &iov, 1);
}

size_t
link_out_pending(const struct link *k)
{
	return stream_out_pending(k->stream);
}

void
link_pause(struct link *k, bool paused)
{
	if (k->dead)
		return;
	k->paused = paused;
	stream_pause(k->stream, paused);
}

void
link_end_write(struct link *k, bool now)
{
	if (!k->dead)
		stream_end_write(k->stream, now);
}
