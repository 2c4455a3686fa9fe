/* SPDX-License-Identifier: MIT */
/*
 * A byte stream: its life, and its input as one linear buffer.
 *
 * Owns: the descriptors and the input buffer (stream_out.c: the output).
 * Driven by: a watch and a piece of deferred work a direction.
 * Invariants: after a callback s->dead is looked at before anything else; the
 * memory of s and of its input outlives the turn in which it was freed; while a
 * reader has asked for another go nothing more is read, so that a burst waits
 * in the pipe and not in our memory; nor is it while memory is short, though what
 * has been read is offered all the same.
 */
#include "mcpvisor/stream.h"

#include "stream_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <string.h>

#define READ_BYTES     ((size_t)64 * 1024) /* one read takes at least this much */
#define READS_PER_TURN 4
#define IN_LEAST       ((size_t)4096)

/* Where a read puts what the buffer has no room for. An idle stream then needs no
 * buffer at all. */
static char g_stream_scratch[READ_BYTES];
/* The buffer that was emptied last, of IN_LEAST bytes: who reads next need not allocate
 * one, nor copy. */
static char *g_stream_in_spare;

static bool
stream_may_read(const struct stream *s)
{
	return s->r.fd >= 0 && !s->in_ended && !s->paused && s->in_len < s->in_max &&
	       !mem_wait_is_set(&s->wait);
}

static void
stream_in_update(struct stream *s)
{
	if (s->r.fd >= 0)
		watch_want(&s->r_watch, stream_may_read(s) ? WATCH_READ : 0);
}

static size_t
stream_round(size_t n)
{
	size_t cap = IN_LEAST;

	while (cap < n)
		cap *= 2;
	return cap;
}

static void
stream_compact(struct stream *s)
{
	if (s->in_off)
		memmove(s->in, s->in + s->in_off, s->in_len);
	s->in_off = 0;
}

static bool
stream_in_append(struct stream *s, const char *p, size_t n)
{
	size_t cap = stream_round(s->in_len + n);

	if (s->in_off + s->in_len + n > s->in_cap) {
		stream_compact(s);
		if (cap > s->in_cap) {
			char *in = mem_try_realloc(s->in, cap);

			if (!in)
				return false;
			s->in = in;
			s->in_cap = cap;
		}
	}
	memcpy(s->in + s->in_off + s->in_len, p, n);
	s->in_len += n;
	return true;
}

static void
stream_in_drop(struct stream *s)
{
	if (s->in_cap == IN_LEAST && g_stream_in_spare == NULL && !mem_is_short())
		g_stream_in_spare = s->in;
	else
		mem_free(s->in);
	s->in = NULL;
	s->in_off = s->in_cap = 0;
}

static void
stream_in_take_spare(struct stream *s)
{
	if (s->in != NULL || g_stream_in_spare == NULL)
		return;
	s->in = g_stream_in_spare;
	s->in_cap = IN_LEAST;
	g_stream_in_spare = NULL;
}

/* After a message the memory goes back. */
static void
stream_in_trim(struct stream *s)
{
	size_t cap = stream_round(s->in_len);

	if (s->in_len == 0) {
		stream_in_drop(s);
	} else if (s->in_cap > READ_BYTES && cap <= s->in_cap / 8) {
		char *in;

		stream_compact(s);
		in = mem_try_realloc(s->in, cap);
		if (in) {
			s->in = in;
			s->in_cap = cap;
		}
	}
}

static void
stream_in_fail(struct stream *s, enum stream_end end, int errnum)
{
	s->in_ended = true;
	s->in_end = end;
	if (end == STREAM_END_ERROR)
		LOG_DEBUG("stream", "read failed", "fd=%d errno=%d", s->r.fd, errnum);
}

/* One read. True if there may be more at once. */
static bool
stream_fill(struct stream *s)
{
	size_t room = s->in_max - s->in_len, tail, asked = 0;
	struct iovec iov[2];
	ssize_t got;
	int n = 0;

	if (s->in_off >= s->in_len)
		stream_compact(s);
	stream_in_take_spare(s);
	tail = s->in_cap - s->in_off - s->in_len;
	if (tail > room)
		tail = room;
	if (tail) {
		iov[n++] = (struct iovec){s->in + s->in_off + s->in_len, tail};
		asked = tail;
	}
	if (tail < READ_BYTES && asked < room) {
		size_t rest = room - asked < READ_BYTES ? room - asked : READ_BYTES;

		iov[n++] = (struct iovec){g_stream_scratch, rest};
		asked += rest;
	}
	got = stream_fd_readv(&s->r, iov, n);
	if (got <= 0) {
		if (got == 0)
			stream_in_fail(s, STREAM_END_EOF, 0);
		else if (errno != EAGAIN)
			stream_in_fail(s, STREAM_END_ERROR, errno);
		return false;
	}
	if ((size_t)got >= READ_BYTES)
		stream_fd_grow(&s->r);
	if ((size_t)got <= tail) {
		s->in_len += (size_t)got;
	} else {
		s->in_len += tail;
		if (!stream_in_append(s, g_stream_scratch, (size_t)got - tail))
			stream_in_fail(s, STREAM_END_ERROR, ENOMEM);
	}
	return !s->in_ended && (size_t)got == asked;
}

/* Tells the end of input once nothing stands before it. */
static void
stream_in_settle(struct stream *s)
{
	if (s->in_ended && !s->in_end_told && !s->again && !s->paused) {
		s->in_end_told = true;
		s->cb.on_read_end(s->arg, s->in_end);
		if (s->dead)
			return;
	}
	stream_in_trim(s);
	stream_in_update(s);
}

static void
stream_in_turn(struct stream *s)
{
	bool more = true;

	for (int i = 0; more && i < READS_PER_TURN; i++) {
		size_t before = s->in_len;

		if (s->again || !stream_may_read(s))
			break;
		if (!s->exempt && mem_wait_is_needed(&s->wait)) {
			mem_wait_start(&s->wait);
			break;
		}
		more = stream_fill(s);
		if (s->in_len > before)
			s->cb.on_input(s->arg);
		if (s->dead)
			return;
	}
	stream_in_settle(s);
}

static void
on_readable(void *arg, unsigned ready)
{
	struct stream *s = arg;

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	(void)ready;
	stream_in_turn(s);
}

static void
on_memory(void *arg)
{
	struct stream *s = arg;

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	stream_in_turn(s);
}

static void
on_later_in(void *arg)
{
	struct stream *s = arg;

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	if (s->paused)
		return;
	if (s->again) {
		s->again = false;
		if (s->in_len)
			s->cb.on_input(s->arg);
		if (s->dead)
			return;
	}
	if (s->first_read && !s->again) {
		s->first_read = false;
		stream_in_turn(s);
		return;
	}
	stream_in_settle(s);
}

struct stream *
stream_new(
    struct loop *l, const struct stream_opts *o, const struct stream_cb *cb, void *arg)
{
	struct stream *s = mem_xcalloc(1, sizeof(*s));

	s->magic = STREAM_MAGIC;
	s->loop = l;
	s->cb = *cb;
	s->arg = arg;
	s->in_max = o->in_max;
	s->out_max = o->out_max;
	s->r.fd = -1;
	s->w.fd = -1;
	s->same_fd = o->rfd >= 0 && o->rfd == o->wfd;
	deferred_init(&s->later_in, l, on_later_in, s);
	deferred_init(&s->later_out, l, stream_on_later_out, s);
	mem_wait_init(&s->wait, l, on_memory, s);
	s->wait.fd = o->rfd;
	s->wait.is_vital = o->is_vital;
	s->exempt = o->is_exempt;
	if (o->rfd >= 0) {
		stream_fd_adopt(&s->r, o->rfd);
		watch_init(&s->r_watch, l, o->rfd, on_readable, s);
		/* A named pipe that was left before we opened it anew never
		 * becomes readable: its end must be read. */
		s->first_read = true;
		deferred_ask(&s->later_in);
	}
	if (s->same_fd)
		s->w = s->r;
	else if (o->wfd >= 0)
		stream_fd_adopt(&s->w, o->wfd);
	if (s->w.fd >= 0)
		watch_init(&s->w_watch, l, s->w.fd, stream_on_writable, s);
	stream_in_update(s);
	stream_out_update(s);
	return s;
}

static void
on_destroy(void *p)
{
	struct stream *s = p;

	MCPVISOR_ASSERT(s->magic == STREAM_MAGIC);
	s->magic = 0;
	mem_free(s->in);
	mem_free(s);
}

void
stream_free(struct stream *s)
{
	if (!s || s->dead)
		return;
	s->dead = true;
	watch_fini(&s->r_watch);
	watch_fini(&s->w_watch);
	deferred_cancel(&s->later_in);
	deferred_cancel(&s->later_out);
	mem_wait_cancel(&s->wait);
	stream_out_drop(s);
	if (!s->same_fd)
		stream_fd_close(&s->w);
	stream_fd_close(&s->r);
	loop_defer_free(s->loop, on_destroy, s);
}

const char *
stream_peek(const struct stream *s, size_t *n)
{
	*n = s->in_len;
	return s->in_len ? s->in + s->in_off : "";
}

void
stream_consume(struct stream *s, size_t n)
{
	MCPVISOR_ASSERT(n <= s->in_len);
	s->in_off += n;
	s->in_len -= n;
	if (!s->dead)
		stream_in_update(s);
}

enum mv_err
stream_put_back(struct stream *s, const char *p, size_t n)
{
	if (!stream_in_append(s, p, n))
		return MV_NOMEM;
	stream_again(s);
	return MV_OK;
}

void
stream_pause(struct stream *s, bool paused)
{
	if (s->dead || s->paused == paused)
		return;
	s->paused = paused;
	if (!paused) {
		s->again = s->again || s->in_len;
		deferred_ask(&s->later_in);
	}
	stream_in_update(s);
}

void
stream_again(struct stream *s)
{
	if (s->dead || s->in_len == 0)
		return;
	s->again = true;
	deferred_ask(&s->later_in);
}
