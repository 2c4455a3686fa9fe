/* SPDX-License-Identifier: MIT */
/*
 * What the owner of a link may ask of it, and the session.
 *
 * Owns: its talks (http_link_talk), the session id, the endpoint of HTTP+SSE.
 * Driven by: its owner; what servers say drives the talks.
 * Invariants: a talk that is not over is in the list; a request that can be cancelled is
 * in the map; memory of link and talks stays until the turn ends, and after a callback
 * the state of the talk is looked at first, which the end of the link has made OVER.
 */
#include "mcpvisor/http_link.h"

#include "http_link_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define SESSION_BYTES	   8192
#define ENDPOINT_URL_BYTES 8192

static void
on_stream_known(void *arg)
{
	struct http_link *k = arg;

	MCPVISOR_ASSERT(k->magic == HTTP_LINK_MAGIC && !k->dead);
	k->cb.on_stream(k->arg);
}

void
link_tell_stream(struct http_link *k)
{
	if (k->stream_is_told || k->dead)
		return;
	k->stream_is_told = true;
	deferred_ask(&k->stream_known);
}

struct http_link *
http_link_new(struct loop *l, struct curl_loop *c, const struct http_link_opts *o,
    const struct http_link_cb *cb, void *arg)
{
	struct http_link *k = mem_xcalloc(1, sizeof(*k));

	k->magic = HTTP_LINK_MAGIC;
	k->loop = l;
	k->curl = c;
	k->o = *o;
	k->cb = *cb;
	k->arg = arg;
	k->talks_tail = &k->talks;
	k->requests = idmap_new();
	k->stream_is_told = true;
	deferred_init(&k->stream_known, l, on_stream_known, k);
	buf_init(&k->session, SESSION_BYTES);
	buf_init(&k->endpoint_url, ENDPOINT_URL_BYTES);
	return k;
}

static void
on_destroy(void *p)
{
	struct http_link *k = p;

	MCPVISOR_ASSERT(k->magic == HTTP_LINK_MAGIC);
	k->magic = 0;
	idmap_free(k->requests);
	buf_fini(&k->session);
	buf_fini(&k->endpoint_url);
	mem_free(k);
}

void
http_link_free(struct http_link *k)
{
	if (!k || k->dead)
		return;
	k->dead = true;
	deferred_cancel(&k->stream_known);
	while (k->talks)
		talk_end(k->talks);
	loop_defer_free(k->loop, on_destroy, k);
}

void
http_link_set_opts(struct http_link *k, const struct http_link_opts *o)
{
	k->o = *o;
}

void
http_link_set_mode(struct http_link *k, enum http_mode mode)
{
	if (k->dead)
		return;
	k->mode = mode;
	if (mode == HTTP_MODE_STREAMABLE && k->endpoint)
		talk_end(k->endpoint);
	if (mode == HTTP_MODE_SSE && !k->endpoint) {
		k->endpoint = talk_new(k, TALK_ENDPOINT);
		talk_again(k->endpoint);
	}
}

void
http_link_set_revision(struct http_link *k, const char *revision, bool is_resumable)
{
	size_t n = revision ? strnlen(revision, sizeof(k->revision) - 1) : 0;

	if (n > 0)
		memcpy(k->revision, revision, n);
	k->revision[n] = '\0';
	k->is_resumable = is_resumable;
}

void
http_link_renew(struct http_link *k)
{
	struct http_talk *next;

	if (k->dead)
		return;
	k->is_lost = k->is_renewing = false;
	if (k->stream)
		http_link_open_stream(k);
	for (struct http_talk *x = k->talks; x; x = next) {
		next = x->next;
		if (x->state == TALK_ST_HELD && x != k->late_end)
			talk_again(x);
	}
}

void
http_link_forget_session(struct http_link *k)
{
	buf_reset(&k->session);
	k->session_no++;
	k->is_lost = k->is_renewing = k->has_no_stream = false;
	if (k->stream)
		talk_end(k->stream);
}

bool
http_link_has_session(const struct http_link *k)
{
	return k->session.len > 0;
}

static bool
talk_take_body(struct http_talk *x, const struct iovec *iov, int n)
{
	char *to = x->body = mem_try(x->body_len ? x->body_len : 1);

	if (!to)
		return false;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	x->link->pending += x->body_len;
	return true;
}

/* Length with the empty one at the end. */
static size_t
lines_length(const char *lines)
{
	const char *p = lines;

	while (*p)
		p += strlen(p) + 1;
	return (size_t)(p - lines) + 1;
}

static bool
talk_take_lines(struct http_talk *x, const char *lines)
{
	size_t n = lines ? lines_length(lines) : 0;

	if (n == 0)
		return true;
	x->lines = mem_try(n);
	if (x->lines)
		memcpy(x->lines, lines, n);
	return x->lines != NULL;
}

static enum mv_err
http_link_start(
    struct http_talk *x, const struct http_message *what, const struct iovec *iov, int n)
{
	struct http_link *k = x->link;

	if (!talk_take_lines(x, what->lines) || !talk_take_body(x, iov, n))
		return MV_NOMEM;
	/* The stream of HTTP+SSE cannot be cut for one request. */
	if (what->id && k->mode == HTTP_MODE_STREAMABLE &&
	    !idmap_put(k->requests, what->id, x))
		return MV_NOMEM;
	if (!k->is_lost || what->is_initialize || what->is_apart)
		return talk_start(x);
	talk_set(x, TALK_ST_HELD, "no session");
	return MV_OK;
}

enum mv_err
http_link_send(
    struct http_link *k, const struct http_message *what, const struct iovec *iov, int n)
{
	struct http_talk *x;
	size_t len = 0;
	enum mv_err err;

	if (k->dead || (k->mode == HTTP_MODE_SSE && k->endpoint_url.len == 0))
		return MV_CLOSED;
	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (len > k->o.out_max || k->pending > k->o.out_max - len)
		return MV_BUSY;
	/* Bytes alone are no bound: an answer to a ping has few, its connection many. */
	if (!what->id && k->n_notes >= CAP_HTTP_NOTES)
		return MV_BUSY;
	x = talk_new(k, what->id ? TALK_REQUEST : TALK_NOTE);
	x->id = what->id;
	x->is_initialize = what->is_initialize;
	x->is_apart = what->is_apart;
	x->body_len = len;
	err = http_link_start(x, what, iov, n);
	if (err != MV_OK)
		talk_end(x);
	return err;
}

bool
http_link_cancel(struct http_link *k, uint64_t id)
{
	struct http_talk *x = k->dead ? NULL : idmap_get(k->requests, id);

	if (x)
		talk_end(x);
	return x != NULL;
}

size_t
http_link_out_pending(const struct http_link *k)
{
	return k->pending;
}

void
http_link_open_stream(struct http_link *k)
{
	if (k->dead || k->mode == HTTP_MODE_SSE ||
	    (k->stream && k->stream->session_no == k->session_no))
		return;
	/* That of an old session is of no use. */
	if (k->stream)
		talk_end(k->stream);
	k->stream_is_told = false;
	if (k->has_no_stream) {
		link_tell_stream(k);
		return;
	}
	k->stream = talk_new(k, TALK_STREAM);
	talk_again(k->stream);
}

static bool
link_may_get_session(const struct http_link *k)
{
	const struct http_talk *x = k->talks;

	while (x && !x->is_initialize)
		x = x->next;
	return x != NULL;
}

/* The session of now is the one that x ends. */
static void
talk_end_session(struct http_talk *x)
{
	struct http_link *k = x->link;
	enum mv_err err;

	x->session = mem_xstrndup(k->session.data, k->session.len);
	err = talk_start(x);
	http_link_forget_session(k);
	if (err != MV_OK)
		talk_finish(x);
}

void
link_end_late(struct http_link *k)
{
	struct http_talk *x = k->late_end;

	if (!x || k->dead)
		return;
	k->late_end = NULL;
	if (k->session.len > 0)
		talk_end_session(x);
	else
		talk_finish(x);
}

void
http_link_end_session(
    struct http_link *k, uint32_t ms, void (*done)(void *arg), void *arg)
{
	struct http_talk *x;

	if (k->dead)
		return;
	if (k->session.len == 0 && !link_may_get_session(k)) {
		done(arg);
		return;
	}
	k->on_ended = done;
	k->ended_arg = arg;
	x = talk_new(k, TALK_DELETE);
	timer_set(&x->timer, ms);
	if (k->session.len > 0) {
		talk_end_session(x);
	} else {
		k->late_end = x;
		talk_set(x, TALK_ST_HELD, "initialize is under way");
	}
}
