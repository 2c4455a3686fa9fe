/* SPDX-License-Identifier: MIT */
/* Transfers under test, and what was seen of each. */
#ifndef CHECK_CURL_RIG_H
#define CHECK_CURL_RIG_H

#include "mcpvisor/curl_loop.h"

#include "fake/fake_web.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#define BOUND_MS 20000

struct seen {
	struct transfer *t;
	int heads, ends;
	int status;
	uint32_t retry_after_s;
	char type[64], session[64], location[64], auth[128], text[512];
	struct buf body;
	enum mv_err err;
	/* What the callbacks do. */
	bool cancel_in_head, cancel_in_body, cancel_in_end, pause_in_head;
	struct seen *cancel_too;
};

static struct loop *l;
static struct curl_loop *it;
static struct timer bound;
static struct web web;
/* What a suite adds to setup and teardown. */
static void (*setup_more)(void), (*teardown_more)(void);

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_head(void *arg, const struct transfer_head *h)
{
	struct seen *s = arg;

	s->heads++;
	s->status = h->status;
	s->retry_after_s = h->retry_after_s;
	snprintf(s->type, sizeof(s->type), "%s", h->content_type);
	snprintf(
	    s->session, sizeof(s->session), "%s", h->session_id ? h->session_id : "-");
	snprintf(s->location, sizeof(s->location), "%s", h->location ? h->location : "-");
	snprintf(s->auth, sizeof(s->auth), "%s",
	    h->www_authenticate ? h->www_authenticate : "-");
	if (s->pause_in_head)
		transfer_pause(s->t, true);
	if (s->cancel_too)
		transfer_cancel(s->cancel_too->t);
	if (s->cancel_in_head) {
		transfer_cancel(s->t);
		loop_stop(l, 0);
	}
}

static inline void
on_body(void *arg, const char *p, size_t n)
{
	struct seen *s = arg;

	ck_assert_int_eq(s->heads, 1);
	mem_fail_hold(true);
	buf_add(&s->body, p, n);
	mem_fail_hold(false);
	if (s->cancel_in_body) {
		transfer_cancel(s->t);
		loop_stop(l, 0);
	}
}

static inline void
on_end(void *arg, enum mv_err err, const char *text)
{
	struct seen *s = arg;

	s->ends++;
	s->err = err;
	snprintf(s->text, sizeof(s->text), "%s", text);
	if (s->cancel_in_end)
		transfer_cancel(s->t);
	loop_stop(l, 0);
}

static const struct transfer_cb cb = {on_head, on_body, on_end};

static inline const char *
url_of(const char *scheme, const char *host, const char *path)
{
	static char url[256];

	snprintf(url, sizeof(url), "%s://%s:%u%s", scheme, host, web.port, path);
	return url;
}

static inline void
start(struct seen *s, const struct transfer_opts *o)
{
	buf_init(&s->body, 1u << 26);
	s->t = transfer_start(it, o, &cb, s);
	ck_assert_ptr_nonnull(s->t);
	ck_assert_int_eq(s->heads + s->ends, 0);
}

static inline void
get(struct seen *s, const char *path)
{
	struct transfer_opts o = {
	    .url = url_of("http", "127.0.0.1", path), .proxy = "", .is_vital = true};

	memset(s, 0, sizeof(*s));
	start(s, &o);
}

static inline void
finish(struct seen *s)
{
	while (s->ends == 0)
		loop_run(l);
	ck_assert_int_eq(s->ends, 1);
	mem_fail_hold(true);
	(void)buf_cstr(&s->body);
	mem_fail_hold(false);
}

static inline void
on_soon(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

/* Lets ms go by. For what must not happen, not for what must. */
static inline void
settle(uint64_t ms)
{
	uint64_t until = clock_now_ms() + ms;
	struct timer soon;

	timer_init(&soon, l, on_soon, NULL);
	do {
		timer_set(&soon, 5);
		loop_run(l);
	} while (clock_now_ms() < until);
	timer_fini(&soon);
}

static inline void
setup(void)
{
	l = loop_new();
	it = curl_loop_new(l);
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	web_start(&web, l);
	if (setup_more)
		setup_more();
}

static inline void
teardown(void)
{
	curl_loop_free(it);
	if (teardown_more)
		teardown_more();
	web_stop(&web);
	timer_fini(&bound);
	loop_free(l);
}

#include "suite_rig.h"

#endif
