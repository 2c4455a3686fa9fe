/* SPDX-License-Identifier: MIT */
/* What an answer of a GraphQL endpoint is, between who finds out and who words it. */
#ifndef MCPVISOR_UPSTREAM_GRAPHQL_WORDS_PRIV_H
#define MCPVISOR_UPSTREAM_GRAPHQL_WORDS_PRIV_H

#include "upstream_graphql_priv.h"

/* Which row it is. */
enum gql_verdict {
	V_GOOD,
	V_NO_DATA,     /* errors, and no data that is any */
	V_NO_RESPONSE, /* JSON, but no response of GraphQL */
	V_BATCH,       /* an array */
	V_INCREMENTAL, /* in parts */
	V_NO_JSON,
	V_EMPTY,
	V_REDIRECT,
	V_STATUS, /* of 4xx and 5xx, whatever the body has */
	V_REFUSED,
	V_LATER,
	V_TIMEOUT,
	V_UNREACHABLE,
	V_BROKEN,
	V_TOO_LARGE,
	V_NO_HEADERS,
	V_NOT_READY,
	V_BUSY,
	V_INTERNAL
};

struct gql_seen {
	struct jtext whole, data, errors;
	bool is_json, has_errors; /* errors is an array that is not empty */
	bool is_twice;		  /* data or errors are: who reads it may take either */
};

struct gql_telling {
	const struct gql_asked *q;
	const struct gql_exchange *x;
	const struct gql_seen *e;
};

bool gql_errors_are_odd(const struct gql_seen *e); /* no array */
/* Appends the text of the result; v is neither GOOD nor INTERNAL. */
void gql_put_words(struct buf *out, const struct gql_telling *w, enum gql_verdict v);

#endif
