/* SPDX-License-Identifier: MIT */
/*
 * Bodies of answers, and the messages in them.
 *
 * Owns: what of a body is not delivered yet. Driven by: the transfer of a talk.
 * Invariants: what is handed on is one well-formed message without a raw newline; a
 * message over the limit is not kept, but read for its id; after a callback of the owner
 * the talk may be over; once its response is delivered a request cannot fail any more.
 */
#include "http_link_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* Of a text that nobody reads. */
#define SKIPPED_MAX ((size_t)64 * 1024)

void
talk_forget_answer(struct http_talk *x)
{
	mem_free(x->location);
	mem_free(x->www_authenticate);
	mem_free(x->refused);
	x->location = x->www_authenticate = NULL;
	x->refused = NULL;
	buf_fini(&x->in);
	x->status = 0;
	x->retry_after_s = 0;
	x->skipped = 0;
}

/* ---- messages ---- */

/* In a well-formed text they stand between tokens only, where a space means the same; on
 * a link of lines they would end the message. */
static void
line_out_breaks(char *p, size_t n)
{
	static const char breaks[2] = {'\r', '\n'};

	for (size_t i = 0; i < sizeof(breaks); i++)
		for (char *at = p; (at = memchr(at, breaks[i], (size_t)(p + n - at)));)
			*at = ' ';
}

static bool
talk_id_is_ours(const struct http_talk *x, struct jtext id)
{
	int64_t v;

	return x->kind == TALK_REQUEST && json_int(id, &v) && v > 0 &&
	       (uint64_t)v == x->id;
}

static bool
talk_batch_answers(const struct http_talk *x, const struct link_msg *m)
{
	struct json_iter it;
	struct jtext e;

	json_iter_init(&it, (struct jtext){m->base, m->len});
	while (json_next_element(&it, &e)) {
		if (talk_id_is_ours(x, json_member(e, "id")) &&
		    json_member(e, "method").n == 0)
			return true;
	}
	return false;
}

static bool
talk_is_answer(const struct http_talk *x, const struct link_msg *m)
{
	switch (m->env.kind) {
	case ENVELOPE_RESULT:
	case ENVELOPE_ERROR:
		return talk_id_is_ours(x, m->env.id);
	case ENVELOPE_BATCH:
		return talk_batch_answers(x, m);
	case ENVELOPE_INVALID:
	case ENVELOPE_REQUEST:
	case ENVELOPE_NOTIFICATION:
		break;
	}
	return false;
}

static void
talk_set_answered(struct http_talk *x)
{
	struct http_link *k = x->link;

	x->is_answered = true;
	if (idmap_get(k->requests, x->id) == x)
		idmap_del(k->requests, x->id);
}

/* on_bad, of what x->refused holds. */
static void
talk_tell_refused(struct http_talk *x, enum mv_err err)
{
	struct http_link *k = x->link;
	struct refused *r = x->refused;
	struct jtext id = refused_id(r, err, false, &k->json);

	/* Not freed with the answer: a callback may end the talk. */
	x->refused = NULL;
	if (id.n > 0 && r->salvage.is_reply && talk_id_is_ours(x, id))
		talk_set_answered(x);
	k->cb.on_bad(k->arg, x->id, err, id, r->salvage.is_reply, r->head, r->head_len);
	mem_free(r);
}

/* May change the text in place. MV_OK: it was a message. is_quiet: what is none is not
 * told. */
static enum mv_err
talk_deliver(struct http_talk *x, char *p, size_t n, bool is_quiet)
{
	struct http_link *k = x->link;
	struct link_msg m = {.base = p, .len = n, .json = &k->json};
	enum mv_err err = json_scan(&k->json, p, n, k->o.want_uris);

	if (err != MV_OK && !is_quiet) {
		x->refused = refused_new();
		refused_feed(x->refused, p, n);
		talk_tell_refused(x, err);
	}
	if (err != MV_OK)
		return err;
	line_out_breaks(p, n);
	m.env = envelope_read(p, &k->json);
	if (is_quiet && m.env.kind == ENVELOPE_INVALID)
		return MV_ENVELOPE;
	if (talk_is_answer(x, &m))
		talk_set_answered(x);
	k->cb.on_message(k->arg, x->id, &m);
	return MV_OK;
}

/* ---- JSON ---- */

static void
json_feed(struct http_talk *x, const char *p, size_t n)
{
	if (!x->refused) {
		buf_add(&x->in, p, n);
		if (x->in.err == MV_OK)
			return;
		if (x->in.err == MV_NOMEM) {
			talk_fail(x, MV_NOMEM, NULL);
			return;
		}
		x->refused = refused_new();
		refused_feed(x->refused, x->in.data, x->in.len);
		buf_fini(&x->in);
	}
	refused_feed(x->refused, p, n);
}

/* The text without what may stand around it. */
static char *
json_trim(const struct buf *b, size_t *n)
{
	static const char bom[3] = {'\xef', '\xbb', '\xbf'};
	char *p = b->data, *end = p + b->len;

	if (b->len >= sizeof(bom) && memcmp(p, bom, sizeof(bom)) == 0)
		p += sizeof(bom);
	while (p < end && strchr(" \t\r\n", *p) && *p)
		p++;
	while (p < end && strchr(" \t\r\n", end[-1]) && end[-1])
		end--;
	*n = (size_t)(end - p);
	return p;
}

/* The only message of an answer is not one. */
static void
talk_fail_message(struct http_talk *x, enum mv_err err)
{
	if (talk_is_over(x))
		return;
	if (x->is_answered)
		talk_end(x);
	else if (err == MV_TOO_LONG)
		talk_fail(x, err, NULL);
	else if (err == MV_OK)
		talk_fail(x, MV_PROTOCOL, "an answer without the response");
	else
		talk_failf(x, MV_PROTOCOL, "the answer: %s", mv_err_text(err));
}

void
talk_end_json(struct http_talk *x, bool is_failure)
{
	/* Who asked nothing waits for nothing. */
	bool is_quiet = is_failure || x->kind == TALK_NOTE;
	enum mv_err err = MV_TOO_LONG;
	size_t n = 0;
	char *p;

	if (x->refused) {
		if (!is_quiet)
			talk_tell_refused(x, err);
	} else {
		p = x->in.len > 0 ? json_trim(&x->in, &n) : NULL;
		err = n > 0 ? talk_deliver(x, p, n, is_quiet) : MV_SYNTAX;
	}
	if (!talk_is_over(x) && (!is_failure || x->is_answered))
		talk_fail_message(x, err);
}

/* ---- events ---- */

/* After a message: whether more may come. */
static bool
events_go_on(struct http_talk *x)
{
	if (talk_is_over(x))
		return false;
	if (x->is_answered && x->state == TALK_ST_BODY) {
		talk_set(x, TALK_ST_DRAIN, "response");
		timer_set(&x->timer, DRAIN_MS);
	}
	return true;
}

static bool
talk_take_endpoint(struct http_talk *x, const struct sse_event *e)
{
	struct http_link *k = x->link;
	const char *base = talk_url(x), *url = NULL;
	struct buf ref;

	if (k->endpoint_url.len > 0)
		return true;
	buf_init(&ref, k->endpoint_url.max);
	buf_add(&ref, e->data, e->len);
	if (base && e->len > 0 && !memchr(e->data, '\0', e->len) && buf_cstr(&ref) &&
	    url_resolve(base, ref.data, &k->endpoint_url))
		url = buf_cstr(&k->endpoint_url);
	buf_fini(&ref);
	if (!url || !url_is_same_origin(k->o.url, url)) {
		talk_fail(x, MV_PROTOCOL,
		    url ? "the endpoint is of another origin" : "the endpoint is no URL");
		return false;
	}
	k->cb.on_endpoint(k->arg, NULL);
	return !talk_is_over(x);
}

static bool
on_event(void *arg, const struct sse_event *e)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	talk_note_event(x);
	if (x->kind == TALK_ENDPOINT && strcmp(e->type, "endpoint") == 0)
		return talk_take_endpoint(x, e);
	/* Without data it is there for its id alone. */
	if (e->len > 0 && strcmp(e->type, "message") == 0)
		(void)talk_deliver(x, e->data, e->len, false);
	return events_go_on(x);
}

static bool
on_long(void *arg, const char *part, size_t len, bool end)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	if (!x->refused)
		x->refused = refused_new();
	refused_feed(x->refused, part, len);
	if (!end)
		return true;
	talk_note_event(x);
	talk_tell_refused(x, MV_TOO_LONG);
	return events_go_on(x);
}

static void
on_id(void *arg, const char *id)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	(void)id;
	talk_note_event(x);
}

static void
on_retry(void *arg, uint64_t ms)
{
	struct http_talk *x = arg;

	MCPVISOR_ASSERT(x->magic == HTTP_TALK_MAGIC);
	x->retry_ms = ms;
	x->has_retry = true;
}

struct sse_parser *
talk_parser_new(struct http_talk *x)
{
	static const struct sse_cb cb = {on_event, on_id, on_retry, on_long};
	struct sse_parser *p = mem_xalloc(sizeof(*p));

	sse_init(p, x->link->o.message_max, &cb, x);
	return p;
}

static void
events_feed(struct http_talk *x, const char *p, size_t n)
{
	if (sse_feed(x->events, p, n) == MV_OK || talk_is_over(x))
		return;
	/* What was lost comes again after the last id. */
	talk_hang_up(x);
	talk_end_events(x, MV_NOMEM, mv_err_text(MV_NOMEM));
}

/* ---- text ---- */

static void
text_feed(struct http_talk *x, const char *p, size_t n)
{
	size_t room = x->in.max - x->in.len, part = n < room ? n : room;

	buf_add(&x->in, p, part);
	x->skipped += n - part;
	if (x->skipped <= SKIPPED_MAX)
		return;
	talk_hang_up(x);
	talk_on_end(x, MV_OK, "");
}

static void (*const talk_feeds[])(struct http_talk *x, const char *p, size_t n) = {
    [TALK_AS_TEXT] = text_feed,
    [TALK_AS_JSON] = json_feed,
    [TALK_AS_EVENTS] = events_feed,
};

void
talk_feed(struct http_talk *x, const char *p, size_t n)
{
	talk_feeds[x->as](x, p, n);
}
