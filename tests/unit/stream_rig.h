/* SPDX-License-Identifier: MIT */
/* A loop with a bound on each wait, a stream under test and its peer. */
#ifndef CHECK_STREAM_RIG_H
#define CHECK_STREAM_RIG_H

#include "mcpvisor/stream.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#define BOUND_MS 20000
#define BIG	 ((size_t)3 * 1024 * 1024)

static struct loop *l;
static struct timer bound;
static struct stream *s, *peer;
static struct buf got;
static size_t want; /* stop once so much came */
static size_t keep; /* consume all but this */
static bool again, free_in_input;
static int ends, write_ends, write_errno, drained, inputs;
static enum stream_end last_end;

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_input(void *arg)
{
	size_t n, take;
	const char *p = stream_peek(s, &n);

	(void)arg;
	inputs++;
	ck_assert_uint_gt(n, 0);
	if (free_in_input) {
		stream_free(s);
		s = NULL;
		ck_assert(p[n - 1] == 'x'); /* stays for this callback */
		loop_stop(l, 0);
		return;
	}
	take = n > keep ? n - keep : 0;
	if (again && take > 1)
		take = 1;
	buf_add(&got, p, take);
	stream_consume(s, take);
	if (again)
		stream_again(s);
	if (want && got.len >= want)
		loop_stop(l, 0);
}

static inline void
on_drained(void *arg)
{
	(void)arg;
	drained++;
	loop_stop(l, 0);
}

static inline void
on_read_end(void *arg, enum stream_end end)
{
	(void)arg;
	ends++;
	last_end = end;
	loop_stop(l, 0);
}

static inline void
on_write_end(void *arg, int errnum)
{
	(void)arg;
	write_ends++;
	write_errno = errnum;
	loop_stop(l, 0);
}

static const struct stream_cb cb = {on_input, on_drained, on_read_end, on_write_end};

static inline void
on_peer_input(void *arg)
{
	size_t n;

	(void)arg;
	stream_peek(peer, &n);
	stream_consume(peer, n);
}

static inline void
on_peer_end(void *arg, enum stream_end end)
{
	(void)arg;
	(void)end;
}

static inline void
on_peer_write_end(void *arg, int errnum)
{
	(void)arg;
	(void)errnum;
}

static const struct stream_cb peer_cb = {
    on_peer_input, NULL, on_peer_end, on_peer_write_end};

static inline struct stream *
open_stream(int rfd, int wfd)
{
	const struct stream_opts o = {
	    .rfd = rfd, .wfd = wfd, .in_max = 2 * BIG, .out_max = 2 * BIG};

	return stream_new(l, &o, &cb, NULL);
}

static inline void
open_peer(int rfd, int wfd)
{
	const struct stream_opts o = {
	    .rfd = rfd, .wfd = wfd, .in_max = BIG, .out_max = 2 * BIG};

	peer = stream_new(l, &o, &peer_cb, NULL);
}

static inline void
put(struct stream *to, const char *text, size_t n)
{
	char *copy = mem_xstrndup(text, n);
	struct iovec iov = {copy, n};

	ck_assert_int_eq(stream_writev(to, &iov, 1), MV_OK);
	mem_free(copy);
}

static inline char *
big_text(void)
{
	char *p = mem_xalloc(BIG);

	for (size_t i = 0; i < BIG; i++)
		p[i] = (char)('a' + i % 23);
	return p;
}

static inline void
on_stop(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

/* Until nothing is left to do at once. */
static inline void
settle(void)
{
	struct timer soon;

	timer_init(&soon, l, on_stop, NULL);
	timer_set(&soon, 0);
	loop_run(l);
	timer_set(&soon, 0);
	loop_run(l);
	timer_fini(&soon);
}

static inline void
setup(void)
{
	l = loop_new();
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	buf_init(&got, 4 * BIG);
	s = peer = NULL;
	want = keep = 0;
	again = free_in_input = false;
	ends = write_ends = write_errno = drained = inputs = 0;
}

static inline void
teardown(void)
{
	stream_free(s);
	stream_free(peer);
	timer_fini(&bound);
	loop_free(l);
	buf_fini(&got);
}

/* Kinds of connections: [0] is ours to read, [1] the peer's to write. */
static inline void
connect_kind(int kind, int fd[2])
{
	if (kind == 0)
		ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	else
		ck_assert_int_eq(
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

#include "suite_rig.h"

#endif
