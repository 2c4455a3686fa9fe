/* SPDX-License-Identifier: MIT */
/*
 * One transfer, from its options to its end.
 *
 *   new -> resolving -> running -> over      dead: cancelled, from any of the first three
 *
 * Owns: the easy handle, the copies of headers and body.
 * Driven by: curl_loop, the resolver, its own deadline (for the name; curl has one for
 * the connection).
 * Invariants: it enters the multi and leaves it outside curl's callbacks only; curl never
 * has to resolve a name; no callback comes before transfer_start has returned or after
 * transfer_cancel.
 */
#include "curl_loop_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define TRANSFER_MAGIC	   0x74726e73u
#define CONNECT_DEFAULT_MS 15000u
#define TEXT_BYTES	   (CURL_ERROR_SIZE + 2 * 272)

static void
transfer_link(struct transfer *t, struct transfer **list)
{
	t->next = *list;
	t->prev = list;
	if (t->next)
		t->next->prev = &t->next;
	*list = t;
}

static void
transfer_unlink(struct transfer *t)
{
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
}

/* No more callbacks; off the list of the live. */
static void
transfer_detach(struct transfer *t, enum transfer_state next)
{
	t->state = next;
	timer_fini(&t->deadline);
	deferred_cancel(&t->step);
	mem_wait_cancel(&t->wait);
	resolver_cancel(&t->name);
	transfer_unlink(t);
	t->c->n_live--;
}

static void
transfer_release(struct transfer *t)
{
	const struct curl_lib *lib = t->c->lib;

	if (t->is_in_multi)
		(void)lib->multi_remove_handle(t->c->multi, t->easy);
	t->is_in_multi = false;
	if (t->easy)
		lib->easy_cleanup(t->easy);
	lib->slist_free_all(t->headers);
	lib->slist_free_all(t->resolve);
	mem_free(t->body);
	t->magic = 0;
	loop_defer_free(t->c->loop, mem_free, t);
}

/* Since 7.88 curl writes the reset of an HTTP/2 stream that is given up only when its
 * connection has something else to write. A pause has. */
static void
transfer_nudge_others(const struct transfer *t)
{
	const struct curl_lib *lib = t->c->lib;

	if (strcmp(t->origin.scheme, "https") != 0)
		return;
	for (struct transfer *o = t->c->live, *next; o; o = next) {
		curl_off_t sent_us = 0;

		next = o->next;
		if (!o->is_in_multi || o->is_held ||
		    strcmp(o->origin.host, t->origin.host) != 0 ||
		    o->origin.port != t->origin.port)
			continue;
		(void)lib->easy_getinfo(o->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
		if (sent_us == 0)
			continue;
		(void)lib->easy_pause(o->easy, CURLPAUSE_RECV);
		(void)lib->easy_pause(o->easy, CURLPAUSE_CONT);
	}
}

void
transfer_bury(struct transfer *t)
{
	const struct curl_lib *lib = t->c->lib;

	transfer_unlink(t);
	(void)lib->multi_remove_handle(t->c->multi, t->easy);
	t->is_in_multi = false;
	transfer_nudge_others(t);
	transfer_release(t);
}

/* curl's words may have a peer's bytes in them. */
static void
transfer_put_text(const struct transfer *t, const char *why, char *text, size_t size)
{
	const struct url_origin *o = &t->origin, *v = &t->via;
	char proxy[300] = "";

	if (v->port != o->port || strcmp(v->host, o->host) != 0)
		(void)snprintf(proxy, sizeof(proxy), " through the proxy %s:%u", v->host,
		    (unsigned)v->port);
	if (o->host[0])
		(void)snprintf(
		    text, size, "%s:%u%s: %s", o->host, (unsigned)o->port, proxy, why);
	else
		(void)snprintf(text, size, "the URL: %s", why);
	for (char *p = text; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
}

static void
transfer_over(struct transfer *t, enum mv_err err, const char *why)
{
	char text[TEXT_BYTES] = "";

	if (err != MV_OK)
		transfer_put_text(t, why, text, sizeof(text));
	transfer_detach(t, TRANSFER_ST_OVER);
	t->cb.on_end(t->arg, err, text);
	transfer_release(t);
}

void
transfer_done(struct transfer *t, CURLcode result)
{
	const struct curl_lib *lib = t->c->lib;
	const char *why = t->refusal;
	enum mv_err err = MV_OK;
	curl_off_t sent_us = 0;

	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	(void)lib->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	if (result != CURLE_OK)
		err = sent_us > 0 ? MV_CLOSED : MV_UNREACHABLE;
	else if (!t->has_head)
		err = MV_CLOSED;
	/* It would send the body again, which it may not (on_seek). */
	if (result == CURLE_SEND_FAIL_REWIND) {
		err = MV_CLOSED;
		why = "the kept connection was closed before an answer came";
	}
	if (err == MV_UNREACHABLE)
		resolver_forget(t->c->resolver, t->via.host);
	if (!why)
		why = t->error[0] ? t->error : lib->easy_strerror(result);
	transfer_over(t, err, why);
}

static void
transfer_go(struct transfer *t)
{
	const struct curl_lib *lib = t->c->lib;
	uint64_t spent = clock_now_ms() - t->start_ms;
	long left = spent < t->connect_ms ? (long)(t->connect_ms - spent) : 1;
	CURLMcode r;

	(void)lib->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, left);
	r = lib->multi_add_handle(t->c->multi, t->easy);
	if (r != CURLM_OK) {
		transfer_over(t, MV_UNREACHABLE, "no memory");
		return;
	}
	t->is_in_multi = true;
	t->state = TRANSFER_ST_RUNNING;
}

static void
on_name(void *arg, const char *addresses, const char *why)
{
	struct transfer *t = arg;
	struct buf entry;
	const char *text;

	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC && t->state == TRANSFER_ST_RESOLVING);
	timer_clear(&t->deadline);
	if (!addresses) {
		transfer_over(t, MV_UNREACHABLE, why);
		return;
	}
	/* Without a "+" it never expires, and takes the place of the one before. */
	buf_init(&entry, SIZE_MAX / 2);
	buf_addf(&entry, "%s:%u:%s", t->via.host, (unsigned)t->via.port, addresses);
	text = buf_cstr(&entry);
	t->resolve = text ? t->c->lib->slist_append(NULL, text) : NULL;
	buf_fini(&entry);
	if (!t->resolve) {
		transfer_over(t, MV_UNREACHABLE, "no memory");
		return;
	}
	(void)t->c->lib->easy_setopt(t->easy, CURLOPT_RESOLVE, t->resolve);
	transfer_go(t);
}

static void
on_deadline(void *arg)
{
	struct transfer *t = arg;

	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	transfer_over(t, MV_UNREACHABLE, "no name server answered in time");
}

static void
transfer_begin(struct transfer *t)
{
	if (t->refusal) {
		transfer_over(t, MV_UNREACHABLE, t->refusal);
		return;
	}
	t->state = TRANSFER_ST_RESOLVING;
	if (!resolver_is_needed(t->via.host)) {
		transfer_go(t);
		return;
	}
	timer_set(&t->deadline, t->connect_ms);
	resolver_ask(t->c->resolver, t->via.host, &t->name);
}

/* Calls on_body before it returns. */
static void
transfer_resume(struct transfer *t)
{
	struct curl_loop *c = t->c;

	if (!t->is_held || t->is_paused || mem_wait_is_set(&t->wait))
		return;
	t->is_held = false;
	(void)c->lib->easy_pause(t->easy, CURLPAUSE_CONT);
	deferred_ask(&c->collect);
}

static void
on_memory(void *arg)
{
	struct transfer *t = arg;

	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	transfer_resume(t);
}

static void
on_step(void *arg)
{
	struct transfer *t = arg;

	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	if (t->state == TRANSFER_ST_NEW)
		transfer_begin(t);
	else
		transfer_resume(t);
}

static bool
transfer_copy_body(struct transfer *t, const struct transfer_opts *o)
{
	size_t at = 0;

	for (int i = 0; i < o->n_body; i++)
		t->n_body += o->body[i].iov_len;
	if (o->method != TRANSFER_POST || t->n_body == 0)
		return true;
	t->body = mem_try(t->n_body);
	if (!t->body)
		return false;
	for (int i = 0; i < o->n_body; i++) {
		if (o->body[i].iov_len > 0)
			memcpy(t->body + at, o->body[i].iov_base, o->body[i].iov_len);
		at += o->body[i].iov_len;
	}
	return true;
}

void
transfer_split_headers(const struct buf *lines, const char **headers, size_t max)
{
	const char *p = lines->data, *end = lines->data + lines->len;
	size_t n = 0;

	for (; n < max && p < end; p += strlen(p) + 1)
		headers[n++] = p;
	headers[n] = NULL;
}

struct transfer *
transfer_start(struct curl_loop *c, const struct transfer_opts *o,
    const struct transfer_cb *cb, void *arg)
{
	struct transfer *t;

	if (curl_loop_load(c, NULL) != MV_OK)
		return NULL;
	t = mem_xcalloc(1, sizeof(*t));
	t->magic = TRANSFER_MAGIC;
	t->c = c;
	t->cb = *cb;
	t->arg = arg;
	t->connect_ms = o->connect_ms > 0 ? o->connect_ms : CONNECT_DEFAULT_MS;
	t->start_ms = clock_now_ms();
	timer_init(&t->deadline, c->loop, on_deadline, t);
	deferred_init(&t->step, c->loop, on_step, t);
	mem_wait_init(&t->wait, c->loop, on_memory, t);
	t->wait.is_vital = o->is_vital;
	t->name.fn = on_name;
	t->name.arg = t;
	t->easy = c->lib->easy_init();
	if (!t->easy || !transfer_copy_body(t, o) || !transfer_setup(t, o)) {
		transfer_release(t);
		return NULL;
	}
	transfer_link(t, &c->live);
	c->n_live++;
	deferred_ask(&t->step);
	return t;
}

void
transfer_cancel(struct transfer *t)
{
	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	if (t->state == TRANSFER_ST_OVER || t->state == TRANSFER_ST_DEAD)
		return;
	transfer_detach(t, TRANSFER_ST_DEAD);
	if (!t->is_in_multi) {
		transfer_release(t);
		return;
	}
	/* A connection that nobody shares is closed, even an HTTP/2 one: see
	 * transfer_nudge_others. */
	(void)t->c->lib->easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
	transfer_link(t, &t->c->dead);
	deferred_ask(&t->c->collect);
}

void
transfer_pause(struct transfer *t, bool paused)
{
	MCPVISOR_ASSERT(t->magic == TRANSFER_MAGIC);
	t->is_paused = paused;
	if (!paused && t->is_held && t->state == TRANSFER_ST_RUNNING)
		deferred_ask(&t->step);
}
