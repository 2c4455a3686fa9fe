/* SPDX-License-Identifier: MIT */
/*
 * The merged tools, prompts, resources and templates: who owns what under which
 * published name, and the merged arrays as bytes.
 */
#ifndef MCPVISOR_CATALOG_H
#define MCPVISOR_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/upstream.h"

struct catalog;

/* Where a published name or URI leads. Counted: a call keeps its own. */
struct route {
	unsigned refs;
	unsigned generation; /* of the last merge that had it */
	enum list_kind kind;
	uint32_t item; /* in its upstream's list, as of that merge */
	struct upstream *u;
	struct jtext original;	/* as its upstream wrote it, quotes included */
	struct jtext published; /* decoded text */
	const char *quoted;	/* of a name: the same as a JSON string, 2 bytes longer */
	char bytes[];
};
struct route *route_ref(struct route *r);
void route_unref(struct route *r); /* NULL is allowed */

/* v stays the caller's: n upstreams in conf order. */
struct catalog *catalog_new(struct upstream *const *v, size_t n);
void catalog_free(struct catalog *c);
/* A list of some upstream changed: merge anew at the next look. */
void catalog_mark(struct catalog *c, enum list_kind kind);

/* The merged array, "[...]"; valid until the next catalog_mark and look. */
struct jtext catalog_body(struct catalog *c, enum list_kind kind);
uint64_t catalog_hash(struct catalog *c, enum list_kind kind);
/* By published name, or by URI as decoded text. NULL: nobody has it now. */
struct route *catalog_find(struct catalog *c, enum list_kind kind, struct jtext name);
/* The resource template that fits uri with the longest literal part. */
struct route *catalog_match_template(struct catalog *c, struct jtext uri);
/* Milliseconds that the merged list stays fresh, 0 if any part gives no hint. */
uint64_t catalog_ttl_ms(struct catalog *c, enum list_kind kind);
bool catalog_is_private(struct catalog *c, enum list_kind kind);

/* Literal bytes of an RFC 6570 template that fits uri, or -1 if it does not. An
 * expression stands for any text, slashes included. */
long template_match(struct jtext pattern, struct jtext uri);

#endif
