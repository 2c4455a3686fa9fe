/* SPDX-License-Identifier: MIT */
/*
 * The merged tools, prompts, resources and templates: who owns what under which
 * published name, and the merged arrays as bytes.
 */
#ifndef MCPVISOR_CATALOG_H
#define MCPVISOR_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/filter.h"
#include "mcpvisor/upstream.h"

struct catalog;

/* Profiles, each with a view of its own; the first is what endpoints show that name
 * none. */
#define CATALOG_VIEWS_MAX 32

/* Whether a tool is asked for who somebody is; UNKNOWN: nobody has looked since the last
 * merge. */
enum route_identity { ROUTE_IDENTITY_UNKNOWN, ROUTE_IDENTITY_NO, ROUTE_IDENTITY_YES };

/* Where a published name or URI leads. Counted: a call keeps its own. */
struct route {
	unsigned refs;
	unsigned generation; /* of the last merge that had it */
	enum list_kind kind;
	uint32_t item;			/* in its upstream's list, as of that merge */
	enum route_identity identity;	/* its user's */
	uint32_t views;			/* bit 1 << view: it is shown there */
	struct upstream *u;		/* NULL once it has left the catalog, as shape */
	const struct tool_shape *shape; /* NULL: as its upstream has it */
	struct route *twin; /* what other views show under the same URI; one reference */
	struct jtext original;	/* as its upstream wrote it, quotes included */
	struct jtext published; /* decoded text */
	const char *quoted;	/* of a name: the same as a JSON string, 2 bytes longer */
	char bytes[];
};
struct route *route_ref(struct route *r);
void route_unref(struct route *r); /* NULL is allowed */

/* Everything stays the caller's, and valid until it is replaced by catalog_set. */
struct catalog_opts {
	struct upstream *const *v; /* in conf order */
	size_t n;
	const struct profile_conf *const *profiles; /* NULL entry: everything */
	size_t n_profiles; /* 0: one view, of everything; at most CATALOG_VIEWS_MAX */
	size_t name_bytes; /* budget of a published name; 0: CAP_NAME_BYTES */
};
struct catalog *catalog_new(const struct catalog_opts *o);
void catalog_free(struct catalog *c);
/* Other upstreams or rules (a reload). Routes of upstreams that are not among them any
 * more leave the catalog at once; names are given out anew, except that a name whose
 * upstream, or an upstream of the same name, still offers it keeps its owner. */
void catalog_set(struct catalog *c, const struct catalog_opts *o);
/* A list of some upstream changed: merge anew at the next look. */
void catalog_mark(struct catalog *c, enum list_kind kind);

/* The merged array as a view shows it, "[...]"; valid until the next catalog_mark and
 * look. */
struct jtext catalog_body(struct catalog *c, unsigned view, enum list_kind kind);
uint64_t catalog_hash(struct catalog *c, unsigned view, enum list_kind kind);
/* By published name, or by URI as decoded text. NULL: nobody has it now, or the view does
 * not show it. */
struct route *catalog_find(
    struct catalog *c, unsigned view, enum list_kind kind, struct jtext name);
/* The resource template that fits uri with the longest literal part. */
struct route *catalog_match_template(struct catalog *c, unsigned view, struct jtext uri);
/* Whether a view shows anything of u at all. */
bool catalog_shows_upstream(
    const struct catalog *c, unsigned view, const struct upstream *u);
/* Whether a view could show a tool or prompt of u that no list has yet: name is the
 * published one, own what follows its prefix. */
bool catalog_may_show_name(const struct catalog *c, unsigned view, enum list_kind kind,
    const struct upstream *u, struct jtext name, struct jtext own);
/* Whether a view shows a resource of u that no list has, by its URI as published or as
 * u knows it: rules of the view are for the published one. */
bool catalog_shows_uri(
    const struct catalog *c, unsigned view, const struct upstream *u, struct jtext uri);
/* A published URI as u knows it: without its uri_prefix, if it has that. */
struct jtext catalog_own_uri(const struct upstream *u, struct jtext uri);
/* The definition of a tool as clients see it (its shape included); absent if the view
 * does not show it. Valid until the next call of this or a look. */
struct jtext catalog_definition(struct catalog *c, unsigned view, struct jtext name);
/* Milliseconds that the merged list stays fresh, 0 if any part gives no hint. */
uint64_t catalog_ttl_ms(struct catalog *c, unsigned view, enum list_kind kind);
bool catalog_is_private(struct catalog *c, unsigned view, enum list_kind kind);

/* What is worth an operator's look: names that were mapped, shortened, or taken by
 * another upstream. Called in the order of the list, for the view of everything. */
struct catalog_finding {
	enum list_kind kind;
	const struct upstream *u;
	struct jtext original;	      /* decoded */
	struct jtext published;	      /* decoded; absent: it could not be published */
	const struct upstream *owner; /* of the preferred name, if that is not u */
	bool is_mapped, is_short;
};
void catalog_each_finding(struct catalog *c, enum list_kind kind,
    void (*fn)(void *arg, const struct catalog_finding *f), void *arg);

/* Literal bytes of an RFC 6570 template that fits uri, or -1 if it does not. An
 * expression stands for any text, slashes included. */
long template_match(struct jtext pattern, struct jtext uri);

#endif
