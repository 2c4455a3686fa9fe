/* SPDX-License-Identifier: MIT */
/*
 * Asking a GraphQL endpoint for its schema, in fewer words where it takes no more.
 *
 *   FULL -- refused as not valid --> OLD -- refused as too deep --> SHALLOW
 *     \------------------- refused as too deep -------------------/
 *
 * Owns: the exchange of g->fetch.
 * Driven by: upstream_graphql.c; that exchange.
 * Invariants: one question at a time; each run starts with what was taken last; it ends
 * by gql_schema_came or gql_schema_failed, and never before gql_introspect returns.
 */
#include "upstream_graphql_priv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FETCH_MS 30000

static const char way_out[] = "introspection is disabled there; save its schema as "
			      "introspection JSON and name that "
			      "file by 'schema', or set schema = \"none\"";

/* ---- what a refusal means ---- */

enum refusal { REFUSAL_OTHER, REFUSAL_DISABLED, REFUSAL_DEEP, REFUSAL_INVALID };

/* Servers have no codes for these. First match wins. */
static const struct {
	const char *word;
	enum refusal refusal;
} refusal_words[] = {
    {"introspection is not allowed", REFUSAL_DISABLED},
    {"introspection has been disabled", REFUSAL_DISABLED},
    {"introspection is disabled", REFUSAL_DISABLED},
    {"introspection disabled", REFUSAL_DISABLED},
    {"introspection query is not allowed", REFUSAL_DISABLED},
    {"INTROSPECTION_DISABLED", REFUSAL_DISABLED},
    {"depth", REFUSAL_DEEP},
    {"too deep", REFUSAL_DEEP},
    {"nested", REFUSAL_DEEP},
    {"complex", REFUSAL_DEEP},
    {"isOneOf", REFUSAL_INVALID},
    {"specifiedBy", REFUSAL_INVALID},
    {"Cannot query field", REFUSAL_INVALID},
    {"GRAPHQL_VALIDATION_FAILED", REFUSAL_INVALID},
    {"introspection", REFUSAL_DISABLED},
    {"__schema", REFUSAL_DISABLED},
};

static enum refusal
refusal_of(struct jtext errors)
{
	struct buf text;
	const char *s;
	enum refusal found = REFUSAL_OTHER;

	buf_init(&text, GQL_ERROR_BYTES);
	gql_put_error_lines(&text, errors);
	s = buf_cstr(&text);
	for (size_t i = 0; s != NULL && found == REFUSAL_OTHER &&
			   i < sizeof(refusal_words) / sizeof(refusal_words[0]);
	     i++)
		if (strcasestr(s, refusal_words[i].word) != NULL)
			found = refusal_words[i].refusal;
	buf_fini(&text);
	return found;
}

/* Which question may be taken instead; false: none. */
static bool
introspect_simplify(struct gql *g, enum refusal r)
{
	static const enum graphql_introspection next[][2] = {
	    [GRAPHQL_INTROSPECT_FULL] = {GRAPHQL_INTROSPECT_OLD,
		GRAPHQL_INTROSPECT_SHALLOW},
	    [GRAPHQL_INTROSPECT_OLD] = {GRAPHQL_INTROSPECT_OLD,
		GRAPHQL_INTROSPECT_SHALLOW},
	    [GRAPHQL_INTROSPECT_SHALLOW] = {GRAPHQL_INTROSPECT_SHALLOW,
		GRAPHQL_INTROSPECT_SHALLOW},
	};
	enum graphql_introspection to;

	if (r != REFUSAL_DEEP && r != REFUSAL_INVALID)
		return false;
	to = next[g->how][r == REFUSAL_DEEP];
	if (to == g->how)
		return false;
	g->how = to;
	return true;
}

/* ---- the run ---- */

static void
introspect_ask(struct gql *g)
{
	struct buf query, body;
	struct iovec iov;
	struct gql_request rq = {.body = &iov,
	    .n_body = 1,
	    .body_max = GRAPHQL_SCHEMA_MAX,
	    .timeout_ms = FETCH_MS};

	buf_init(&query, GRAPHQL_FILE_MAX);
	buf_init(&body, GRAPHQL_FILE_MAX);
	graphql_put_introspection(&query, g->how);
	buf_add_str(&body, "{\"query\":");
	json_put_string(&body, query.data, query.len);
	buf_add_char(&body, '}');
	iov = (struct iovec){body.data, body.len};
	gql_exchange_start(&g->fetch, g->curl, &rq);
	buf_fini(&query);
	buf_fini(&body);
}

static void
introspect_fail(struct gql *g, const char *why)
{
	g->is_fetching = false;
	gql_schema_failed(g, why);
}

static void
introspect_refused(struct gql *g, struct jtext errors)
{
	enum refusal r = refusal_of(errors);
	struct buf why;

	if (introspect_simplify(g, r)) {
		introspect_ask(g);
		return;
	}
	if (r == REFUSAL_DISABLED) {
		introspect_fail(g, way_out);
		return;
	}
	buf_init(&why, sizeof(g->not_ready));
	buf_add_str(&why, "it refused introspection: ");
	gql_put_error_lines(&why, errors);
	if (why.len > 0 &&
	    why.data[why.len - 1] == '.') /* who tells it ends the sentence */
		why.len--;
	introspect_fail(
	    g, buf_cstr(&why) != NULL ? why.data : "it refused introspection");
	buf_fini(&why);
}

/* An answer; it may be a refusal of any status. */
static void
introspect_answered(struct gql *g)
{
	struct gql_exchange *x = &g->fetch;
	struct jtext body = graphql_json(x->body.data, x->body.len), errors;
	struct jtext schema = json_member(json_member(body, "data"), "__schema");
	char why[128];

	if (x->status < 300 && jtext_type(schema) == '{') {
		g->is_fetching = false;
		gql_schema_came(g, body.p, body.n);
		return;
	}
	/* What is wrong goes into the log, and to who calls. */
	gql_exchange_hide(x);
	errors = json_member(graphql_json(x->body.data, x->body.len), "errors");
	if (x->status == 401 || x->status == 403) {
		local_note_refused(g->u);
		introspect_fail(g, "credentials for it were refused");
	} else if (gql_count(errors) > 0) {
		introspect_refused(g, errors);
	} else {
		(void)snprintf(why, sizeof(why),
		    x->status < 300 ? "it answered introspection with no schema"
				    : "it answered introspection with HTTP %d",
		    x->status);
		introspect_fail(g, why);
	}
}

static void
on_fetched(void *arg)
{
	static const char *const words[] = {
	    [GQL_ANSWERED] = "",
	    [GQL_TIMEOUT] = "it did not answer introspection in time",
	    [GQL_UNREACHABLE] = "it cannot be reached",
	    [GQL_BROKEN] = "it broke the connection",
	    [GQL_TOO_LARGE] = "its schema is too long",
	    [GQL_NO_HEADERS] = "its credentials cannot be read",
	    [GQL_NOT_READY] = "",
	    [GQL_BUSY] = "",
	    [GQL_NO_MEMORY] = "there is no memory",
	};
	struct gql *g = arg;
	char why[sizeof(g->fetch.why) + 64];

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	if (g->fetch.end == GQL_ANSWERED) {
		introspect_answered(g);
		return;
	}
	(void)snprintf(why, sizeof(why), "%s%s%s", words[g->fetch.end],
	    g->fetch.why[0] != '\0' ? ": " : "", g->fetch.why);
	introspect_fail(g, why);
}

void
gql_introspect_init(struct gql *g)
{
	gql_exchange_init(&g->fetch, g->u, on_fetched, g);
}

void
gql_introspect(struct gql *g)
{
	if (g->is_fetching)
		return;
	g->is_fetching = true;
	introspect_ask(g);
}

void
gql_introspect_stop(struct gql *g)
{
	gql_exchange_cancel(&g->fetch);
	g->is_fetching = false;
}
