/* SPDX-License-Identifier: MIT */
/*
 * The output of a stream: a queue of chunks, written at the end of the turn.
 *
 * Owns: the chunks, and some spare ones for all streams together. Driven by: deferred
 * work, and the write watch while the peer takes no more.
 * Invariants: a write is queued whole or not at all; callbacks come from the
 * loop only, never out of a call of the owner.
 */
#include "mcpvisor/stream.h"

#include "stream_priv.h"

#include "mcpvisor/mem.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define WRITES_PER_TURN 16
#define CHUNK_BYTES	((size_t)64 * 1024)
#define CHUNK_OWN	((size_t)16 * 1024) /* from here on a write gets its own chunk */
#define WRITE_CHUNKS	32

#define SPARE_CHUNKS 8

struct chunk {
	struct chunk *next;
	size_t off, end, cap;
	char data[];
};

/* What steady traffic would allocate and free again in every turn. A chunk of a stream's
 * own would stay with each idle one. */
static struct chunk *g_stream_spare;
static unsigned g_stream_n_spare;

static void
chunk_free(struct chunk *c)
{
	if (c->cap != CHUNK_BYTES || g_stream_n_spare >= SPARE_CHUNKS || mem_is_short()) {
		mem_free(c);
		return;
	}
	c->next = g_stream_spare;
	g_stream_spare = c;
	g_stream_n_spare++;
}

static struct chunk *
chunk_new(size_t cap)
{
	struct chunk *c = cap == CHUNK_BYTES ? g_stream_spare : NULL;

	if (c) {
		g_stream_spare = c->next;
		g_stream_n_spare--;
	} else {
		c = mem_try(sizeof(*c) + cap);
	}
	if (c) {
		c->next = NULL;
		c->off = 0;
		c->end = 0;
		c->cap = cap;
	}
	return c;
}

void
stream_out_update(struct stream *s)
{
	unsigned want = 0;

	if (s->w.fd < 0)
		return;
	if (s->out_blocked)
		want |= WATCH_WRITE;
	if (s->w.write_pipe && !s->same_fd)
		want |= WATCH_READ;
	watch_want(&s->w_watch, want);
}

void
stream_out_drop(struct stream *s)
{
	struct chunk *c, *next;

	for (c = s->out; c; c = next) {
		next = c->next;
		chunk_free(c);
	}
	s->out = NULL;
	s->out_last = NULL;
	s->out_len = 0;
	s->out_blocked = false;
}

/* Ends the writing side. A shared socket is only shut down. */
static void
stream_out_close(struct stream *s)
{
	if (s->w.fd < 0)
		return;
	watch_fini(&s->w_watch);
	if (s->w.kind == STREAM_FD_SOCKET)
		shutdown(s->w.fd, SHUT_WR);
	if (s->same_fd)
		s->w.fd = -1;
	else
		stream_fd_close(&s->w);
}

static void
stream_out_fail(struct stream *s, int errnum)
{
	stream_out_drop(s);
	s->out_errnum = errnum;
	s->out_drained = false;
	stream_out_close(s);
	deferred_ask(&s->later_out);
}

static void
stream_out_sent(struct stream *s, size_t n)
{
	s->out_len -= n;
	while (n && s->out) {
		struct chunk *c = s->out;
		size_t part = c->end - c->off < n ? c->end - c->off : n;

		c->off += part;
		n -= part;
		if (c->off < c->end)
			break;
		s->out = c->next;
		if (!s->out)
			s->out_last = NULL;
		chunk_free(c);
	}
}

static void
stream_out_write(struct stream *s)
{
	struct iovec iov[WRITE_CHUNKS];
	ssize_t sent = 0;

	if (s->w.fd < 0)
		return;
	s->out_blocked = false;
	for (int i = 0; s->out && !s->out_blocked && i < WRITES_PER_TURN; i++) {
		int n = 0;

		for (struct chunk *c = s->out; c && n < WRITE_CHUNKS; c = c->next)
			iov[n++] = (struct iovec){c->data + c->off, c->end - c->off};
		sent = stream_fd_writev(&s->w, iov, n);
		if (sent < 0 && errno != EAGAIN) {
			stream_out_fail(s, errno);
			return;
		}
		if (sent <= 0)
			break;
		stream_out_sent(s, (size_t)sent);
		s->out_drained = !s->out;
	}
	s->out_blocked = s->out != NULL;
	if (!s->out && s->out_closing)
		stream_out_close(s);
	stream_out_update(s);
}

static void
stream_out_settle(struct stream *s)
{
	if (s->out_errnum && !s->out_end_told) {
		s->out_end_told = true;
		s->cb.on_write_end(s->arg, s->out_errnum);
	} else if (s->out_drained && !s->out) {
		s->out_drained = false;
		if (s->cb.on_drained)
			s->cb.on_drained(s->arg);
	}
}

void
stream_on_later_out(void *arg)
{
	struct stream *s = arg;

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	if (!s->out_blocked)
		stream_out_write(s);
	stream_out_settle(s);
}

/* The write end of a pipe is never readable: it says so when its last reader has
 * gone. */
void
stream_on_writable(void *arg, unsigned ready)
{
	struct stream *s = arg;
	struct pollfd p = {.fd = s->w.fd, .events = POLLOUT};

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	if (ready & WATCH_WRITE) {
		stream_out_write(s);
	} else if (poll(&p, 1, 0) > 0 && (p.revents & POLLERR)) {
		stream_out_fail(s, EPIPE);
	} else {
		s->w.write_pipe = false;
		stream_out_update(s);
	}
	stream_out_settle(s);
}

static struct chunk *
stream_chunk_for(struct stream *s, size_t n)
{
	struct chunk *c = s->out_last;
	size_t cap = n >= CHUNK_OWN ? n : CHUNK_BYTES;

	if (c && c->cap - c->end >= n)
		return c;
	c = chunk_new(cap);
	if (!c)
		return NULL;
	if (s->out_last)
		s->out_last->next = c;
	else
		s->out = c;
	s->out_last = c;
	return c;
}

enum mv_err
stream_writev(struct stream *s, const struct iovec *iov, int n)
{
	size_t total = 0;
	struct chunk *c;

	if (s->dead || s->w.fd < 0 || s->out_closing)
		return MV_CLOSED;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > s->out_max - total)
			return MV_BUSY;
		total += iov[i].iov_len;
	}
	if (total == 0)
		return MV_OK;
	if (s->out_len > s->out_max - total)
		return MV_BUSY;
	c = stream_chunk_for(s, total);
	if (!c)
		return MV_NOMEM;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(c->data + c->end, iov[i].iov_base, iov[i].iov_len);
		c->end += iov[i].iov_len;
	}
	s->out_len += total;
	if (!s->out_blocked)
		deferred_ask(&s->later_out);
	return MV_OK;
}

size_t
stream_out_pending(const struct stream *s)
{
	return s->out_len;
}

void
stream_flush(struct stream *s)
{
	if (s->dead)
		return;
	stream_out_write(s);
	/* Callbacks come from the loop only. */
	if (s->out_drained || s->out_errnum)
		deferred_ask(&s->later_out);
}

void
stream_end_write(struct stream *s, bool now)
{
	if (s->dead || s->w.fd < 0)
		return;
	s->out_closing = true;
	if (now)
		stream_out_drop(s);
	if (!s->out)
		stream_out_close(s);
}
