/* SPDX-License-Identifier: MIT */
/* An HTTP server and its clients on real sockets, in one loop with a bound. */
#ifndef CHECK_HTTP_RIG_H
#define CHECK_HTTP_RIG_H

#include "http_owner.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#define BOUND_MS 20000
#define H	 "Host: localhost\r\n"
#define GET(p)	 "GET " p " HTTP/1.1\r\n" H "\r\n"

struct client {
	int fd;
	struct watch watch;
	struct buf in;
	bool eof;
	const char *want; /* stop the loop once this has come */
	size_t want_n;	  /* or so many bytes */
};

static struct timer bound;

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_client_ready(void *arg, unsigned ready)
{
	struct client *c = arg;
	char text[65536];
	ssize_t n = recv(c->fd, text, sizeof(text), MSG_DONTWAIT);

	(void)ready;
	if (n > 0) {
		buf_add(&c->in, text, (size_t)n);
	} else if (n == 0 || errno != EAGAIN) {
		c->eof = true;
		watch_want(&c->watch, 0);
	}
	if (c->eof || (c->want && strstr(buf_cstr(&c->in), c->want)) ||
	    (c->want_n && c->in.len >= c->want_n))
		loop_stop(l, 0);
}

static inline void
start(void)
{
	srv = http_server_new(l, &opts, &cb, &srv);
}

static inline struct client *
dial(void)
{
	struct client *c = mem_xcalloc(1, sizeof(*c));
	int fd[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	c->fd = fd[0];
	buf_init(&c->in, sizeof(big) * 4);
	(void)buf_reserve(&c->in, 4096); /* not while allocation fails */
	watch_init(&c->watch, l, c->fd, on_client_ready, c);
	watch_want(&c->watch, WATCH_READ);
	adds++;
	http_server_add(srv, fd[1], 7, &doors[1]);
	return c;
}

static inline void
hang_up(struct client *c)
{
	watch_fini(&c->watch);
	close(c->fd);
	buf_fini(&c->in);
	mem_free(c);
}

static inline void
say_n(const struct client *c, const char *text, size_t n)
{
	ck_assert_int_eq(send(c->fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

static inline void
say(const struct client *c, const char *text)
{
	say_n(c, text, strlen(text));
}

/* Runs until the text has come. */
static inline const char *
await(struct client *c, const char *text)
{
	const char *at;

	c->want = text;
	while ((at = strstr(buf_cstr(&c->in), text)) == NULL) {
		ck_assert_msg(!c->eof, "end, but no \"%s\"", text);
		loop_run(l);
	}
	c->want = NULL;
	return at;
}

/* The same; it is eaten with all before it. */
static inline void
expect(struct client *c, const char *text)
{
	const char *at = await(c, text);

	buf_drop(&c->in, (size_t)(at - c->in.data) + strlen(text));
}

static inline void
await_bytes(struct client *c, size_t n)
{
	c->want_n = n;
	while (c->in.len < n)
		loop_run(l);
	c->want_n = 0;
}

/* Nothing but this, then the end. */
static inline void
expect_end(struct client *c, const char *text)
{
	while (!c->eof)
		loop_run(l);
	ck_assert_str_eq(buf_cstr(&c->in), text);
}

static inline void
until(const int *count, int value)
{
	while (*count < value)
		loop_run(l);
	ck_assert_int_eq(*count, value);
}

static struct deferred turn;
static int turns_left;

static inline void
on_turn(void *arg)
{
	(void)arg;
	if (--turns_left > 0)
		deferred_ask(&turn);
	else
		loop_stop(l, 0);
}

/* Some turns of the loop: until nothing is left to do at once. */
static inline void
settle(void)
{
	turns_left = 6;
	while (turns_left > 0) {
		deferred_init(&turn, l, on_turn, NULL);
		deferred_ask(&turn);
		loop_run(l);
		deferred_cancel(&turn);
	}
}

static inline struct http_exchange *
wait_held(char letter)
{
	while (!held[(unsigned char)letter])
		settle();
	return held[(unsigned char)letter];
}

static inline void
setup(void)
{
	l = loop_new();
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	opts = http_server_defaults;
	memset(held, 0, sizeof(held));
	memset(big, 'b', sizeof(big));
	heads = requests = ends = gones = drains = adds = closes = 0;
	free_in_head = free_in_request = free_in_end = free_in_close = false;
	buf_init(&last_body, sizeof(big) * 4);
	buf_init(&ended, 4096);
	(void)buf_reserve(&last_body, 4096);
	(void)buf_reserve(&ended, 4095);
}

static inline void
teardown(void)
{
	end_server();
	ck_assert_int_eq(ends, heads - (free_in_head ? 1 : 0));
	ck_assert_int_eq(closes, adds);
	mem_set_budget(0);
	settle();
	timer_fini(&bound);
	loop_free(l);
	buf_fini(&last_body);
	buf_fini(&ended);
}

#include "suite_rig.h"

#endif
