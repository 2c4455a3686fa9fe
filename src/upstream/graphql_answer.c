/* SPDX-License-Identifier: MIT */
/*
 * What a GraphQL endpoint answered, as the result of a tools/call: status, media type and
 * body decide which row of a table it is.
 *
 * Owns: nothing. Driven by: graphql_call.c.
 * Invariants: a body that is good goes out as its own bytes; a body of a failure is shown
 * in pieces of its errors alone; each error ends by what a retry would do.
 * Spec: GraphQL over HTTP (draft of 2025), 6 Responses; GraphQL September 2025, 7.1.
 */
#include "upstream_graphql_words_priv.h"

#include "mcpvisor/caps.h"

#include <string.h>

#define ANSWER_MARGIN 4096 /* what stands around an answer in its message */
#define DEPTH_MARGIN  8	   /* the same, in levels */

/* ---- the body ---- */

static void
reply_take(struct gql_seen *e, struct jtext *member, struct jtext value)
{
	e->is_twice |= member->n != 0;
	*member = value;
}

static void
reply_read(struct gql_seen *e, const struct gql_exchange *x)
{
	struct json_iter it;
	struct jtext key, value;

	*e = (struct gql_seen){.whole = graphql_json(x->body.data, x->body.len)};
	e->is_json = e->whole.n != 0;
	if (jtext_type(e->whole) != '{')
		return;
	json_iter_init(&it, e->whole);
	while (json_next_member(&it, &key, &value)) {
		if (json_string_is(key, "data"))
			reply_take(e, &e->data, value);
		else if (json_string_is(key, "errors"))
			reply_take(e, &e->errors, value);
	}
	e->has_errors = gql_count(e->errors) > 0;
}

/* Something beside __typename is there. */
static bool
data_survives(struct jtext data)
{
	struct json_iter it;
	struct jtext key, value;

	json_iter_init(&it, data);
	if (jtext_type(data) == '[') {
		while (json_next_element(&it, &value))
			if (jtext_type(value) != 'n')
				return true;
		return false;
	}
	if (jtext_type(data) != '{')
		return false;
	while (json_next_member(&it, &key, &value))
		if (jtext_type(value) != 'n' && !json_string_is(key, "__typename"))
			return true;
	return false;
}

/* ---- which row ---- */

static enum gql_verdict
verdict_of_reply(const struct gql_seen *e)
{
	char type = jtext_type(e->data);

	if (jtext_type(e->whole) == '[')
		return V_BATCH;
	if (jtext_type(e->whole) != '{' || e->is_twice || gql_errors_are_odd(e))
		return V_NO_RESPONSE;
	if (e->has_errors)
		return data_survives(e->data) ? V_GOOD : V_NO_DATA;
	return type == '{' || type == '[' ? V_GOOD : V_NO_RESPONSE;
}

static enum gql_verdict
verdict_of_2xx(const struct gql_exchange *x, const struct gql_seen *e)
{
	if (strcmp(x->type, "multipart/mixed") == 0 ||
	    strcmp(x->type, "text/event-stream") == 0)
		return V_INCREMENTAL;
	if (x->body.len == 0)
		return V_EMPTY;
	return e->is_json ? verdict_of_reply(e) : V_NO_JSON;
}

static enum gql_verdict
verdict_of_status(const struct gql_exchange *x, const struct gql_seen *e)
{
	if (x->status < 300)
		return verdict_of_2xx(x, e);
	if (x->status < 400)
		return V_REDIRECT;
	if (x->status == 401 || x->status == 403)
		return V_REFUSED;
	if (x->status == 429 || (x->status == 503 && x->retry_after_s != 0))
		return V_LATER;
	return V_STATUS;
}

static enum gql_verdict
verdict_of(const struct gql_exchange *x, const struct gql_seen *e)
{
	switch (x->end) {
	case GQL_ANSWERED:
		return verdict_of_status(x, e);
	case GQL_TIMEOUT:
		return V_TIMEOUT;
	case GQL_UNREACHABLE:
		return V_UNREACHABLE;
	case GQL_BROKEN:
		return V_BROKEN;
	case GQL_TOO_LARGE:
		return V_TOO_LARGE;
	case GQL_NO_HEADERS:
		return V_NO_HEADERS;
	case GQL_NOT_READY:
		return V_NOT_READY;
	case GQL_BUSY:
		return V_BUSY;
	case GQL_NO_MEMORY:
		return V_INTERNAL;
	}
	return V_INTERNAL;
}

/* ---- results ---- */

/* Whether its levels and those of a message around it are no more than a message may
 * have. */
static bool
body_is_flat(struct jtext body)
{
	struct json_scan scan;
	struct json_msg msg;

	json_scan_init(&scan, &msg, false);
	scan.max_depth = CAP_JSON_DEPTH - DEPTH_MARGIN;
	return json_scan_feed(&scan, body.p, body.n) == MV_OK &&
	       json_scan_end(&scan) == MV_OK;
}

static void
answer_put_error(struct gql_answer *a, const struct gql_telling *w, enum gql_verdict v)
{
	struct buf text;

	buf_init(&text, GQL_ERROR_BYTES);
	gql_put_words(&text, w, v);
	buf_add_str(&a->head, "{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(&a->head, text.data, text.len);
	buf_add_str(&a->head, "}],\"isError\":true}");
	a->is_error = true;
	if (text.err == MV_NOMEM)
		a->head.err = MV_NOMEM;
	buf_fini(&text);
}

/* No message may have a raw line break, which in valid JSON stands between tokens only.
 */
static void
body_flatten(struct gql_exchange *x)
{
	static const char breaks[] = {'\n', '\r'};

	for (size_t i = 0; i < sizeof(breaks); i++) {
		char *p = x->body.data, *end = x->body.data + x->body.len;

		while ((p = memchr(p, breaks[i], (size_t)(end - p))) != NULL)
			*p++ = ' ';
	}
}

static void
answer_put_good(struct gql_answer *a, const struct gql_asked *q, struct gql_exchange *x,
    struct jtext body)
{
	buf_add_str(&a->head, "{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(&a->head, body.p, body.n);
	buf_add_str(&a->head, "}]");
	/* Twice is too much for one message, or it is too deep: the text alone then. */
	if (q->is_plain || a->head.len + body.n + ANSWER_MARGIN > CAP_MESSAGE_BYTES ||
	    !body_is_flat(body)) {
		buf_add_char(&a->head, '}');
		return;
	}
	buf_add_str(&a->head, ",\"structuredContent\":");
	body_flatten(x);
	a->structured = body;
}

void
gql_answer_init(struct gql_answer *a)
{
	*a = (struct gql_answer){.is_error = false};
	buf_init(&a->head, CAP_MESSAGE_BYTES);
}

void
gql_answer_fini(struct gql_answer *a)
{
	buf_fini(&a->head);
}

void
gql_answer_make(struct gql_answer *a, const struct gql_asked *q, struct gql_exchange *x)
{
	struct gql_seen e = {.is_json = false};
	struct gql_telling w = {.q = q, .x = x, .e = &e};
	enum gql_verdict v;

	if (x->end == GQL_ANSWERED)
		reply_read(&e, x);
	v = verdict_of(x, &e);
	a->is_refused = v == V_REFUSED;
	if (v == V_GOOD)
		answer_put_good(a, q, x, e.whole);
	/* As a string it may be twice as long as it is. */
	if (v == V_GOOD && (a->head.err == MV_TOO_LONG ||
			       a->head.len + ANSWER_MARGIN > CAP_MESSAGE_BYTES)) {
		buf_reset(&a->head);
		a->structured = (struct jtext){NULL, 0};
		v = V_TOO_LARGE;
	}
	if (v != V_GOOD && v != V_INTERNAL) {
		gql_exchange_hide(x);
		if (x->end == GQL_ANSWERED)
			reply_read(&e, x);
		answer_put_error(a, &w, v);
	}
	a->is_internal = v == V_INTERNAL || a->head.err != MV_OK;
}
