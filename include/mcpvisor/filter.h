/* SPDX-License-Identifier: MIT */
/* Which names a list of patterns (glob.h) lets through. Pure functions. */
#ifndef MCPVISOR_FILTER_H
#define MCPVISOR_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "mcpvisor/json.h"
#include "mcpvisor/upstream_conf.h"

/* name is decoded text; annotations (may be absent), that member of a tool's definition,
 * is what @patterns look at. A tool without them is not read-only, destructive, not
 * idempotent and open-world; a read-only one is neither destructive nor idempotent,
 * whatever it says. Spec: ToolAnnotations. */
bool filter_allows(const struct filter *f, struct jtext name, struct jtext annotations);
/* The same for something of which no more than the name is known: false only where
 * nothing of that name could pass, whatever its annotations. */
bool filter_may_allow(const struct filter *f, struct jtext name);
/* Whether a pattern is one: not empty, and after @ a word that is known. */
bool filter_pattern_is_valid(const char *pattern);

/* What an endpoint shows. Owned by whoever parsed it. */
struct profile_conf {
	char *name;
	char **upstreams; /* patterns of names, NULL-terminated; NULL: all */
	struct filter tools, prompts, resources; /* of published names, and URIs */
};
void profile_conf_free(struct profile_conf *p); /* NULL is allowed */
bool profile_has_upstream(const struct profile_conf *p, const char *name);

#endif
