/* SPDX-License-Identifier: MIT */
/*
 * A link to a server over HTTP, without one.
 *
 * Owns: the messages sent, in one queue for all links, as they outlive theirs.
 * Driven by: the test.
 * Invariants: a message sent is one well-formed JSON text, or the test stops; no
 * callback after http_link_free; none before a call returns but put_headers.
 */
#include "fake/fake_http_link.h"

#include "mcpvisor/curl_loop.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct http_link {
	struct loop *loop;
	struct http_link_cb cb;
	void *arg;
	bool dead, session, stream;
	bool asked_stream; /* and nothing is told of it yet */
	enum http_mode mode;
	enum mv_err refuse;
	char revision[32], headers[512];
	unsigned renewals;
	uint64_t cancelled;
	void (*ended)(void *arg);
	void *ended_arg;
};

struct fake_item {
	struct fake_item *next;
	struct fake_posted posted;
};

static struct fake_item *g_fake_items, **g_fake_tail = &g_fake_items, *g_fake_taken;
static struct http_link *g_fake_last;
static unsigned g_fake_live;
static bool g_fake_no_curl, g_fake_slow_streams;
static char g_fake_curl;

struct curl_loop *
fake_curl(void)
{
	return (struct curl_loop *)(void *)&g_fake_curl;
}

void
fake_curl_refuse(bool refuse)
{
	g_fake_no_curl = refuse;
}

enum mv_err
curl_loop_load(struct curl_loop *c, struct mv_errtext *t)
{
	ck_assert_ptr_eq(c, fake_curl());
	if (!g_fake_no_curl)
		return MV_OK;
	mv_errtext_set(t, "no such library");
	return MV_SYSTEM;
}

struct http_link *
http_link_new(struct loop *l, struct curl_loop *c, const struct http_link_opts *o,
    const struct http_link_cb *cb, void *arg)
{
	struct http_link *k = mem_xcalloc(1, sizeof(*k));

	ck_assert_ptr_eq(c, fake_curl());
	ck_assert_ptr_nonnull(o->url);
	k->loop = l;
	k->cb = *cb;
	k->arg = arg;
	g_fake_live++;
	g_fake_last = k;
	return k;
}

void
http_link_free(struct http_link *k)
{
	if (k == NULL || k->dead)
		return;
	k->dead = true;
	g_fake_live--;
	if (g_fake_last == k)
		g_fake_last = NULL;
	loop_defer_free(k->loop, mem_free, k);
}

void
http_link_set_opts(struct http_link *k, const struct http_link_opts *o)
{
	ck_assert(!k->dead);
	ck_assert_ptr_nonnull(o->url);
}

void
http_link_set_mode(struct http_link *k, enum http_mode mode)
{
	k->mode = mode;
}

void
http_link_set_revision(struct http_link *k, const char *revision, bool is_resumable)
{
	(void)is_resumable;
	(void)snprintf(
	    k->revision, sizeof(k->revision), "%s", revision != NULL ? revision : "");
}

void
http_link_renew(struct http_link *k)
{
	k->renewals++;
}

void
http_link_forget_session(struct http_link *k)
{
	k->session = false;
}

bool
http_link_has_session(const struct http_link *k)
{
	return k->session;
}

/* Strings that end with NUL each, as lines. */
static char *
fake_join(const char *p, const char *end)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	while (p != end && (end != NULL || *p != '\0')) {
		buf_add_str(&b, p);
		buf_add_char(&b, '\n');
		p += strlen(p) + 1;
	}
	return buf_take(&b, NULL);
}

static bool
fake_put_headers(struct http_link *k)
{
	struct buf b;
	char *text;
	bool there;

	buf_init(&b, 4096);
	there = k->cb.put_headers(k->arg, &b);
	text = there ? fake_join(b.data, b.data + b.len) : mem_xstrdup("");
	(void)snprintf(k->headers, sizeof(k->headers), "%s", text);
	mem_free(text);
	buf_fini(&b);
	return there;
}

enum mv_err
http_link_send(
    struct http_link *k, const struct http_message *what, const struct iovec *iov, int n)
{
	struct fake_item *s;
	struct json_msg json;
	struct link_msg m;
	struct buf b;

	ck_assert(!k->dead);
	if (k->refuse != MV_OK)
		return k->refuse;
	if (!fake_put_headers(k))
		return MV_AUTH;
	s = mem_xcalloc(1, sizeof(*s));
	buf_init(&b, 1u << 20);
	for (int i = 0; i < n; i++)
		buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	s->posted.text = buf_take(&b, NULL);
	s->posted.id = what->id;
	s->posted.is_initialize = what->is_initialize;
	s->posted.is_apart = what->is_apart;
	s->posted.lines =
	    what->lines != NULL ? fake_join(what->lines, NULL) : mem_xstrdup("");
	ck_assert_int_eq(
	    link_scan(s->posted.text, strlen(s->posted.text), &json, &m), MV_OK);
	*g_fake_tail = s;
	g_fake_tail = &s->next;
	return MV_OK;
}

bool
http_link_cancel(struct http_link *k, uint64_t id)
{
	if (k->mode == HTTP_MODE_SSE)
		return false;
	k->cancelled = id;
	return true;
}

size_t
http_link_out_pending(const struct http_link *k)
{
	(void)k;
	return 0;
}

void
http_link_open_stream(struct http_link *k)
{
	k->stream = k->asked_stream = true;
}

void
http_link_end_session(
    struct http_link *k, uint32_t ms, void (*done)(void *arg), void *arg)
{
	(void)ms;
	if (!k->session) {
		done(arg);
		return;
	}
	k->session = false;
	k->ended = done;
	k->ended_arg = arg;
}

/* ---- the server ---- */

const struct fake_posted *
fake_http_take(void)
{
	if (g_fake_taken != NULL) {
		mem_free(g_fake_taken->posted.lines);
		mem_free(g_fake_taken->posted.text);
	}
	mem_free(g_fake_taken);
	g_fake_taken = g_fake_items;
	if (g_fake_items == NULL)
		return NULL;
	g_fake_items = g_fake_items->next;
	if (g_fake_items == NULL)
		g_fake_tail = &g_fake_items;
	return &g_fake_taken->posted;
}

void
fake_http_forget_all(void)
{
	while (fake_http_take() != NULL)
		;
}

unsigned
fake_http_live(void)
{
	return g_fake_live;
}

struct http_link *
fake_http_last(void)
{
	return g_fake_last;
}

void
fake_http_say(struct http_link *k, uint64_t by, const char *text)
{
	size_t len = strlen(text);
	char *copy = mem_xalloc(len); /* gone when the callback returns */
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m;

	ck_assert(k != NULL && !k->dead);
	memcpy(copy, text, len);
	ck_assert_msg(link_scan(copy, len, json, &m) == MV_OK, "not JSON: %s", text);
	k->cb.on_message(k->arg, by, &m);
	mem_free(json);
	mem_free(copy);
}

void
fake_http_give_session(struct http_link *k)
{
	k->session = true;
}

void
fake_http_lose_session(struct http_link *k)
{
	k->session = false;
	k->cb.on_session_lost(k->arg);
}

static struct http_failure
fake_failure(enum mv_err err, int status)
{
	static char text[64];

	(void)snprintf(text, sizeof(text),
	    status != 0 ? "status %d" : "tools.example:7001: no way", status);
	return (struct http_failure){.err = err, .status = status, .text = text};
}

void
fake_http_fail(struct http_link *k, uint64_t id, enum mv_err err, int status,
    const char *www_authenticate)
{
	struct http_failure f = fake_failure(err, status);

	ck_assert(k != NULL && !k->dead);
	f.www_authenticate = www_authenticate;
	k->cb.on_failed(k->arg, id, &f);
}

void
fake_http_note_fail(struct http_link *k, enum mv_err err, int status)
{
	struct http_failure f = fake_failure(err, status);

	k->cb.on_note_failed(k->arg, &f);
	if (!g_fake_slow_streams)
		fake_http_stream(k);
}

void
fake_http_note_taken(struct http_link *k)
{
	ck_assert(k != NULL && !k->dead);
	k->cb.on_note_taken(k->arg);
	if (!g_fake_slow_streams)
		fake_http_stream(k);
}

void
fake_http_stream(struct http_link *k)
{
	if (k->dead || !k->asked_stream)
		return;
	k->asked_stream = false;
	k->cb.on_stream(k->arg);
}

void
fake_http_slow_streams(bool slow)
{
	g_fake_slow_streams = slow;
}

void
fake_http_endpoint(struct http_link *k, enum mv_err err, int status)
{
	struct http_failure f = fake_failure(err, status);

	ck_assert_int_eq(k->mode, HTTP_MODE_SSE);
	k->cb.on_endpoint(k->arg, err != MV_OK ? &f : NULL);
}

void
fake_http_ended(struct http_link *k)
{
	ck_assert(k->ended != NULL);
	k->ended(k->ended_arg);
}

void
fake_http_refuse(struct http_link *k, enum mv_err err)
{
	k->refuse = err;
}

enum http_mode
fake_http_mode(const struct http_link *k)
{
	return k->mode;
}

const char *
fake_http_revision(const struct http_link *k)
{
	return k->revision;
}

unsigned
fake_http_renewals(const struct http_link *k)
{
	return k->renewals;
}

bool
fake_http_has_stream(const struct http_link *k)
{
	return k->stream;
}

bool
fake_http_is_ending(const struct http_link *k)
{
	return k->ended != NULL;
}

uint64_t
fake_http_cancelled(const struct http_link *k)
{
	return k->cancelled;
}

const char *
fake_http_headers(const struct http_link *k)
{
	return k->headers;
}
