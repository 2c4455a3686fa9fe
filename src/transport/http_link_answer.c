/* SPDX-License-Identifier: MIT */
/*
 * What an answer means: its status, its type, and how its body ended.
 *
 * Owns: what is kept of the head. Driven by: the transfer of a talk.
 * Invariants: what could still be asked for again (a redirection, a session that is lost)
 * is kept until the head says otherwise; nothing but the origin of the conf is ever sent
 * to; each end of an answer ends the talk or sends it again.
 */
#include "http_link_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define REDIRECTS_MAX 5
/* Between two times that we believe a 400 to be about the session. */
#define DOUBT_MS 3000
/* Of the other side's words in a text of ours. */
#define SHOWN_BYTES 200

/* NULL too if memory is short: these are for people, or lead to a failure. */
static char *
copy_text(const char *s)
{
	size_t n = s ? strlen(s) + 1 : 0;
	char *p = s ? mem_try(n) : NULL;

	if (p)
		memcpy(p, s, n);
	return p;
}

static bool
talk_is_success(const struct http_talk *x)
{
	return x->status >= 200 && x->status < 300;
}

static bool
text_is_visible(const char *s)
{
	while (*s > ' ' && *s <= '~')
		s++;
	return *s == '\0';
}

static void
talk_take_session(struct http_talk *x, const char *id)
{
	struct http_link *k = x->link;

	buf_reset(&k->session);
	if (id)
		buf_add_str(&k->session, id);
	/* Too long to be kept, or with what no id may have, it is none: the server will
	 * say so. */
	if (!buf_cstr(&k->session) || !text_is_visible(k->session.data))
		buf_reset(&k->session);
	k->session_no++;
	k->is_lost = k->has_no_stream = false;
	if (k->session.len > 0)
		link_end_late(k);
}

/* ---- heads ---- */

static const struct talk_type_row {
	const char *type;
	enum talk_body as;
	bool is_plain;
} talk_types[] = {
    {"application/json", TALK_AS_JSON, true},
    {"text/event-stream", TALK_AS_EVENTS, false},
    {"text/plain", TALK_AS_TEXT, true},
    {"", TALK_AS_TEXT, true},
};

static enum talk_body
talk_read_type(struct http_talk *x, const char *type)
{
	for (size_t i = 0; i < sizeof(talk_types) / sizeof(*talk_types); i++) {
		if (strcmp(type, talk_types[i].type) == 0) {
			x->is_plain = talk_types[i].is_plain;
			return talk_types[i].as;
		}
	}
	x->is_plain = false;
	return TALK_AS_TEXT;
}

static enum talk_body
talk_judge(struct http_talk *x, const char *type)
{
	enum talk_body as = talk_read_type(x, type);
	bool is_post = x->kind == TALK_REQUEST || x->kind == TALK_NOTE;

	/* Messages of HTTP+SSE come on its stream alone, but for errors. */
	if (is_post && x->link->mode == HTTP_MODE_SSE && talk_is_success(x))
		return TALK_AS_TEXT;
	if (as == TALK_AS_EVENTS)
		return talk_is_success(x) ? as : TALK_AS_TEXT;
	if (as == TALK_AS_JSON)
		return is_post && !x->is_resuming ? as : TALK_AS_TEXT;
	return TALK_AS_TEXT;
}

/* Whether the answer may be a reason to send the message once more. */
static bool
talk_may_repeat(const struct http_talk *x)
{
	return x->status == 400 || x->status == 404 ||
	       (x->status >= 300 && x->status < 400);
}

void
talk_on_head(struct http_talk *x, const struct transfer_head *h)
{
	size_t n = strnlen(h->content_type, sizeof(x->content_type) - 1);

	x->status = h->status;
	x->retry_after_s = h->retry_after_s;
	x->location = copy_text(h->location);
	x->www_authenticate = copy_text(h->www_authenticate);
	memcpy(x->content_type, h->content_type, n);
	x->content_type[n] = '\0';
	x->as = talk_judge(x, h->content_type);
	buf_init(&x->in, x->as == TALK_AS_JSON ? x->link->o.message_max : SHOWN_BYTES);
	talk_set(x, TALK_ST_BODY, "head");
	if (x->is_initialize && talk_is_success(x))
		talk_take_session(x, h->session_id);
	if (!talk_may_repeat(x))
		talk_drop_body(x);
	if (x->as == TALK_AS_EVENTS)
		talk_begin_events(x);
	if (x->kind == TALK_NOTE && talk_is_success(x)) {
		/* Whatever becomes of the rest. */
		x->is_answered = true;
		timer_set(&x->timer, DRAIN_MS);
		if (x->link->cb.on_note_taken)
			x->link->cb.on_note_taken(x->link->arg);
	}
}

/* ---- ends ---- */

/* The beginning of the body, if it is for people. */
static const char *
talk_words(const struct http_talk *x)
{
	size_t n = x->in.len < SHOWN_BYTES ? x->in.len : SHOWN_BYTES;

	return x->is_plain && n > 0 ? log_escape(x->in.data, n) : "";
}

static bool
talk_is_passing(const struct http_talk *x)
{
	return x->status == 408 || x->status == 429 ||
	       (x->status >= 500 && x->status != 501);
}

void
talk_refuse(struct http_talk *x, enum mv_err err)
{
	const char *words = talk_words(x);

	if (talk_is_passing(x) && talk_retry(x))
		return;
	/* The request itself was taken: it is its answer that cannot be had. */
	if (x->is_resuming && err != MV_AUTH)
		err = MV_CLOSED;
	talk_failf(x, err, "%sstatus %d%s%s",
	    x->is_resuming ? "resuming the stream: " : "", x->status, *words ? ": " : "",
	    words);
}

static void
end_refused(struct http_talk *x)
{
	if (x->as == TALK_AS_JSON)
		talk_end_json(x, true);
	if (!talk_is_over(x))
		talk_refuse(x, MV_HTTP);
}

static void
end_unauthorized(struct http_talk *x)
{
	talk_refuse(x, MV_AUTH);
}

static void
end_success(struct http_talk *x)
{
	const char *type = LOG_ESC(x->content_type, strlen(x->content_type));

	if (x->as == TALK_AS_JSON) {
		talk_end_json(x, false);
		return;
	}
	if (x->kind == TALK_NOTE ||
	    (x->kind == TALK_REQUEST && x->link->mode == HTTP_MODE_SSE))
		talk_finish(x);
	else if (x->content_type[0] == '\0')
		talk_failf(x, MV_PROTOCOL, "status %d, and no answer in it", x->status);
	else
		talk_failf(x, MV_PROTOCOL, "an answer of type %s", type);
}

/* 307 and 308 ask for the same again; so does any, of what is no POST. */
static bool
talk_may_follow(const struct http_talk *x)
{
	return x->status == 307 || x->status == 308 || talk_is_get(x);
}

static void
talk_fail_origin(struct http_talk *x, const char *url)
{
	struct url_origin o;

	if (url_read_origin(url, &o))
		talk_failf(x, MV_HTTP, "status %d: redirects to another origin, %s",
		    x->status, LOG_ESC(o.host, strlen(o.host)));
	else
		talk_failf(
		    x, MV_HTTP, "status %d: redirects to another origin", x->status);
}

static void
talk_follow(struct http_talk *x, const char *from, struct buf *to)
{
	const char *url = NULL;

	if (x->location && url_resolve(from, x->location, to))
		url = buf_cstr(to);
	if (!url) {
		talk_failf(x, MV_HTTP, "status %d: redirects to no place", x->status);
	} else if (!url_is_same_origin(x->link->o.url, url)) {
		talk_fail_origin(x, url);
	} else if (!talk_may_follow(x)) {
		talk_failf(x, MV_HTTP, "status %d: not a redirection that repeats a POST",
		    x->status);
	} else if (++x->redirects > REDIRECTS_MAX) {
		talk_failf(x, MV_HTTP, "status %d: redirects too often", x->status);
	} else {
		buf_reset(&x->url);
		buf_add(&x->url, to->data, to->len);
		talk_again(x);
	}
}

static void
end_redirect(struct http_talk *x)
{
	const char *from = talk_url(x);
	struct buf to;

	buf_init(&to, x->url.max);
	talk_follow(x, from ? from : "", &to);
	buf_fini(&to);
}

/* Whether a 404 is no word on the session: it had none, or it is a fresh one, or this is
 * how a server says that it has no stream. */
static bool
talk_is_just_missing(const struct http_talk *x)
{
	return !x->has_session || x->renewals > 0 ||
	       (x->kind == TALK_STREAM && !x->was_open);
}

/* Sent with the session before. */
static void
talk_catch_up(struct http_talk *x)
{
	if (x->link->session.len > 0 && !x->is_resuming)
		talk_again(x);
	else
		talk_refuse(x, MV_HTTP);
}

static void
end_missing(struct http_talk *x)
{
	struct http_link *k = x->link;
	bool is_first = x->session_no == k->session_no && !k->is_renewing;

	if (talk_is_just_missing(x)) {
		end_refused(x);
		return;
	}
	x->renewals++;
	if (!is_first && !k->is_renewing) {
		talk_catch_up(x);
		return;
	}
	talk_hang_up(x);
	talk_set(x, TALK_ST_HELD, "session lost");
	if (is_first) {
		k->is_lost = k->is_renewing = true;
		buf_reset(&k->session);
		k->cb.on_session_lost(k->arg);
	}
	/* Its stream went with the session. */
	if (x->is_resuming)
		talk_fail(x, MV_CLOSED, "the session ended, and the stream with it");
}

static bool
talk_body_has(const struct http_talk *x, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= x->in.len; i++) {
		if (strncasecmp(x->in.data + i, word, n) == 0)
			return true;
	}
	return false;
}

/* Many servers say so, and not 404, that they do not know a session (any more). */
static void
end_bad_request(struct http_talk *x)
{
	struct http_link *k = x->link;
	uint64_t now = clock_now_ms();

	if (talk_is_just_missing(x) ||
	    (!talk_body_has(x, "session") && !talk_body_has(x, "not initialized"))) {
		end_refused(x);
		return;
	}
	if (x->session_no == k->session_no && !k->is_renewing) {
		if (k->doubted_ms != 0 && now - k->doubted_ms < DOUBT_MS) {
			end_refused(x);
			return;
		}
		k->doubted_ms = now;
	}
	end_missing(x);
}

static const struct talk_status_row {
	int lo, hi;
	void (*end)(struct http_talk *x);
} talk_statuses[] = {
    {200, 299, end_success},
    {300, 399, end_redirect},
    {400, 400, end_bad_request},
    {401, 401, end_unauthorized},
    {403, 403, end_unauthorized},
    {404, 404, end_missing},
    {0, INT_MAX, end_refused},
};

/* No answer, or half of one. */
static void
talk_broke(struct http_talk *x, enum mv_err err, const char *text)
{
	if (talk_retry(x))
		return;
	if (x->is_resuming)
		talk_failf(
		    x, MV_CLOSED, "the stream broke and cannot be resumed: %s", text);
	else
		talk_fail(x, err, text);
}

void
talk_on_end(struct http_talk *x, enum mv_err err, const char *text)
{
	const struct talk_status_row *row = talk_statuses;

	if (x->kind == TALK_DELETE && !talk_may_follow(x)) {
		talk_finish(x);
		return;
	}
	if (x->as == TALK_AS_EVENTS && x->status != 0) {
		talk_end_events(x, err, text);
		return;
	}
	if (err != MV_OK || x->status == 0) {
		talk_broke(x, err != MV_OK ? err : MV_CLOSED, text);
		return;
	}
	while (x->status < row->lo || x->status > row->hi)
		row++;
	row->end(x);
}
