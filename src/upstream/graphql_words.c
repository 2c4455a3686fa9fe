/* SPDX-License-Identifier: MIT */
/*
 * The words for each way in which a call of a GraphQL endpoint fails.
 *
 * Owns: nothing. Driven by: graphql_answer.c.
 * Invariants: what failed comes first, what a retry would do last but for the JSON of the
 * errors; no header, path of a file or trace of calls is in it.
 */
#include "upstream_graphql_words_priv.h"

#include <string.h>

#define BODY_SHOWN 200 /* of what is no JSON */

bool
gql_errors_are_odd(const struct gql_seen *e)
{
	char type = jtext_type(e->errors);

	return type != '\0' && type != 'n' && type != '[';
}

static void
put_api(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out, "%s (GraphQL API at %s)", w->q->upstream, w->q->host);
}

static void
put_duration(struct buf *out, uint32_t ms)
{
	if (ms % 1000 == 0)
		buf_addf(out, "%u s", ms / 1000);
	else
		buf_addf(out, "%u ms", ms);
}

/* It was asked, and nobody knows what came of it. */
static void
put_doubt(struct buf *out, const struct gql_telling *w, const char *query)
{
	buf_add_str(out, w->q->op == GRAPHQL_MUTATION
			     ? "It may already have been applied; check before repeating."
			     : query);
}

static void
put_nothing_sent(struct buf *out)
{
	buf_add_str(out, " Nothing was sent; retrying later may succeed.");
}

static void
tell_no_data(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out, "%s: ", w->q->upstream);
	gql_put_error_lines(out, w->e->errors);
}

static void
tell_no_response(struct buf *out, const struct gql_telling *w)
{
	const char *what = "it is no object";

	if (w->e->is_twice)
		what = "its data or its errors are there twice";
	else if (gql_errors_are_odd(w->e))
		what = "its errors are no array";
	else if (jtext_type(w->e->data) == 'n')
		what = "its data is null and it has no errors";
	else if (w->e->data.n != 0)
		what = "its data is no object";
	else if (jtext_type(w->e->whole) == '{')
		what = "it has neither data nor errors";
	buf_addf(out, "%s: the endpoint did not answer with a GraphQL response: %s.",
	    w->q->upstream, what);
}

static void
tell_batch(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: the endpoint did not answer with a GraphQL response: it is an array, "
	    "and one request was sent.",
	    w->q->upstream);
}

static void
tell_incremental(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: incremental delivery is not supported, and the endpoint answered with "
	    "%s. ",
	    w->q->upstream, w->x->type);
	put_doubt(out, w, "Retrying unchanged will fail.");
}

static void
tell_no_json(struct buf *out, const struct gql_telling *w)
{
	put_api(out, w);
	buf_addf(out, " answered HTTP %d with ", w->x->status);
	if (w->x->type[0] != '\0')
		gql_put_line(out, w->x->type, strlen(w->x->type), 64);
	else
		buf_add_str(out, "a body");
	buf_add_str(out, " that is no GraphQL response: \"");
	gql_put_line(out, w->x->body.data, w->x->body.len, BODY_SHOWN);
	buf_add_str(out, "\".");
}

static void
tell_empty(struct buf *out, const struct gql_telling *w)
{
	put_api(out, w);
	buf_addf(out, " answered HTTP %d without a body.", w->x->status);
}

static void
tell_redirect(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: the endpoint redirects (HTTP %d), which is not followed. Retrying will "
	    "not help until its URL is corrected in the gateway.",
	    w->q->upstream, w->x->status);
}

static void
put_status(struct buf *out, const struct gql_telling *w, const char *end)
{
	put_api(out, w);
	buf_addf(out, " answered HTTP %d%s", w->x->status, end);
}

/* Errors of the body stand below a first line that has the status. */
static void
put_errors_below(struct buf *out, const struct gql_telling *w)
{
	if (!w->e->has_errors)
		return;
	buf_add_char(out, '\n');
	gql_put_error_lines(out, w->e->errors);
}

static void
tell_status(struct buf *out, const struct gql_telling *w)
{
	put_status(out, w, ".");
	if (w->x->status >= 500)
		buf_add_str(out, " This is a server-side fault.");
	put_errors_below(out, w);
}

static void
tell_refused(struct buf *out, const struct gql_telling *w)
{
	put_status(out, w, ": ");
	buf_addf(out,
	    "credentials for %s were refused; retrying will not help until they are "
	    "renewed.",
	    w->q->upstream);
	put_errors_below(out, w);
}

static void
tell_later(struct buf *out, const struct gql_telling *w)
{
	bool is_limit = w->x->status == 429;

	put_status(
	    out, w, is_limit ? ". Rate limited; " : ". This is a server-side fault; ");
	if (w->x->retry_after_s == 0)
		buf_add_str(out, "retry later.");
	else
		buf_addf(out, "retry after %u s%s", w->x->retry_after_s,
		    is_limit ? "." : " may succeed.");
	if (w->q->op == GRAPHQL_MUTATION && !is_limit)
		buf_add_str(out,
		    " The change may or may not have been applied; verify before "
		    "retrying.");
	put_errors_below(out, w);
}

static void
tell_timeout(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out, "%s: %s within ", w->q->upstream,
	    w->q->op == GRAPHQL_MUTATION ? "the change could not be confirmed"
					 : "there was no complete answer");
	put_duration(out, w->q->timeout_ms);
	buf_add_str(out, ". ");
	put_doubt(out, w, "It may succeed if repeated.");
}

static void
put_why(struct buf *out, const struct gql_telling *w)
{
	if (w->x->why[0] == '\0')
		return;
	buf_add_str(out, ": ");
	gql_put_line(out, w->x->why, strlen(w->x->why), sizeof(w->x->why));
}

static void
tell_unreachable(struct buf *out, const struct gql_telling *w)
{
	put_api(out, w);
	buf_add_str(out, " cannot be reached");
	put_why(out, w);
	buf_add_char(out, '.');
	put_nothing_sent(out);
}

static void
tell_broken(struct buf *out, const struct gql_telling *w)
{
	put_api(out, w);
	buf_add_str(out, " broke the connection before its answer was complete");
	put_why(out, w);
	buf_add_str(out, ". ");
	put_doubt(out, w, "It may succeed if repeated.");
}

static void
tell_too_large(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: the answer is longer than %llu bytes (response_max). Ask for fewer "
	    "fields or for a smaller page.",
	    w->q->upstream, (unsigned long long)w->q->response_max);
	if (w->q->op == GRAPHQL_MUTATION) {
		buf_add_char(out, ' ');
		put_doubt(out, w, "");
	}
}

/* Why may name files of this host: the log has it. */
static void
tell_no_headers(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: its credentials cannot be read by the gateway now. Nothing was sent; "
	    "retrying will not help until an operator has mended that.",
	    w->q->upstream);
}

static void
tell_not_ready(struct buf *out, const struct gql_telling *w)
{
	put_api(out, w);
	buf_add_str(out, " is not ready");
	put_why(out, w);
	buf_add_char(out, '.');
	buf_add_str(
	    out, " Nothing was sent; a retry can help only once that has changed.");
}

static void
tell_busy(struct buf *out, const struct gql_telling *w)
{
	buf_addf(out,
	    "%s: %u requests are under way (max_inflight) and as many wait as may.",
	    w->q->upstream, w->q->inflight);
	put_nothing_sent(out);
}

/* by_code: what the first error says of a retry ends it. */
static const struct {
	void (*tell)(struct buf *out, const struct gql_telling *w);
	bool by_code, shows_json;
} rows[] = {
    [V_GOOD] = {NULL, false, false},
    [V_NO_DATA] = {tell_no_data, true, true},
    [V_NO_RESPONSE] = {tell_no_response, true, false},
    [V_BATCH] = {tell_batch, true, false},
    [V_INCREMENTAL] = {tell_incremental, false, false},
    [V_NO_JSON] = {tell_no_json, true, false},
    [V_EMPTY] = {tell_empty, true, false},
    [V_REDIRECT] = {tell_redirect, false, false},
    [V_STATUS] = {tell_status, true, true},
    [V_REFUSED] = {tell_refused, false, true},
    [V_LATER] = {tell_later, false, true},
    [V_TIMEOUT] = {tell_timeout, false, false},
    [V_UNREACHABLE] = {tell_unreachable, false, false},
    [V_BROKEN] = {tell_broken, false, false},
    [V_TOO_LARGE] = {tell_too_large, false, false},
    [V_NO_HEADERS] = {tell_no_headers, false, false},
    [V_NOT_READY] = {tell_not_ready, false, false},
    [V_BUSY] = {tell_busy, false, false},
    [V_INTERNAL] = {NULL, false, false},
};

void
gql_put_words(struct buf *out, const struct gql_telling *w, enum gql_verdict v)
{
	rows[v].tell(out, w);
	if (rows[v].by_code) {
		bool has_lines =
		    out->len > 0 && memchr(out->data, '\n', out->len) != NULL;

		buf_add_char(out, has_lines ? '\n' : ' ');
		gql_put_retry(out, w->q, w->x, w->e->errors);
	}
	if (rows[v].shows_json)
		gql_put_error_json(out, w->e->errors, GQL_ERROR_BYTES);
}
