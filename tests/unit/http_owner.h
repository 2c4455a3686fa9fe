/* SPDX-License-Identifier: MIT */
/* The owner of an HTTP server under test: a path says what becomes of its request. */
#ifndef CHECK_HTTP_OWNER_H
#define CHECK_HTTP_OWNER_H

#include "mcpvisor/http_server.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <string.h>

#include <check.h>

#define HELD_MAX 256

static struct loop *l;
static struct http_server *srv;
static struct http_server_opts opts;
static struct http_exchange *held[HELD_MAX]; /* by user */
static int heads, requests, ends, gones, drains, closes;
static int adds, doors[2]; /* connections that were given to the server; their door */
static bool free_in_head, free_in_request, free_in_end, free_in_close;
static struct buf last_body, ended; /* ended: letters of users, capital if gone */
static char big[1024 * 1024];

static inline void
answer(struct http_exchange *x, const char *text)
{
	char *copy = mem_xstrndup(text, strlen(text));
	struct iovec v[2] = {{copy, strlen(text) / 2},
	    {copy + strlen(text) / 2, strlen(text) - strlen(text) / 2}};

	http_reply(x, 200, "X-Extra: 1\r\n", "application/json", v, 2);
	mem_free(copy);
}

static inline void
end_server(void)
{
	http_server_free(srv);
	srv = NULL;
}

/* Paths say what is to happen: see on_request. The user is the path's last letter. */
static inline int
on_head(void *arg, struct http_exchange *x, const struct http_head *h, void **user)
{
	ck_assert_ptr_eq(arg, &srv);
	ck_assert_ptr_eq(http_exchange_door(x), &doors[1]);
	heads++;
	*user = &held[(unsigned char)h->path.p[h->path.n - 1]];
	if (free_in_head) {
		end_server();
		answer(x, "nobody");
		return 0;
	}
	if (http_text_is(h->path, "/403"))
		return 403;
	if (http_text_is(h->path, "/own")) {
		http_reply(x, 405, "Allow: POST\r\n", NULL, NULL, 0);
		return 405;
	}
	if (http_text_is(h->path, "/early"))
		answer(x, "early");
	return 0;
}

static inline void
on_request(void *arg, struct http_exchange *x, void *user, const struct http_head *h,
    const char *body, size_t n)
{
	struct http_exchange **slot = user;
	struct iovec v = {big, sizeof(big)};

	ck_assert_ptr_eq(arg, &srv);
	ck_assert_ptr_eq(slot, &held[(unsigned char)h->path.p[h->path.n - 1]]);
	requests++;
	buf_reset(&last_body);
	buf_add(&last_body, body, n);
	if (free_in_request) {
		end_server();
		ck_assert(h->path.p[0] == '/'); /* stays until we return */
		answer(x, "nobody");
		return;
	}
	if (http_text_is(h->path, "/echo"))
		answer(x, n ? buf_cstr(&last_body) : "empty");
	else if (http_text_is(h->path, "/none"))
		http_reply(x, 202, NULL, NULL, NULL, 0);
	else if (http_text_is(h->path, "/204"))
		http_reply(x, 204, NULL, NULL, NULL, 0);
	else if (http_text_is(h->path, "/big"))
		http_reply(x, 200, NULL, "text/plain", &v, 1);
	else
		*slot = x;
	if (http_text_is(h->path, "/stream/s") || http_text_is(h->path, "/stream/t"))
		http_stream_begin(x, "X-Extra: 2\r\n");
}

static inline void
on_end(void *arg, struct http_exchange *x, void *user, bool gone)
{
	struct http_exchange **slot = user;
	char letter = (char)(slot - held);

	ck_assert_ptr_eq(arg, &srv);
	*slot = NULL;
	ends++;
	gones += gone;
	buf_add_char(&ended, gone && letter >= 'a' ? (char)(letter - 32) : letter);
	answer(x, "too late"); /* does nothing */
	if (free_in_end)
		end_server();
	loop_stop(l, 0);
}

static inline void
on_close(void *arg, void *door)
{
	ck_assert_ptr_eq(arg, &srv);
	ck_assert_ptr_eq(door, &doors[1]);
	closes++;
	if (free_in_close)
		end_server();
	loop_stop(l, 0);
}

static const struct http_server_cb cb = {on_head, on_request, on_end, on_close};

#endif
