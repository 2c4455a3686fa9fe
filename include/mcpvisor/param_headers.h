/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a tool that Mcp-Param-* headers mirror: where its inputSchema says
 * x-mcp-header.
 * Spec: 2026-07-28 basic/transports/streamable-http, Custom Headers.
 */
#ifndef MCPVISOR_PARAM_HEADERS_H
#define MCPVISOR_PARAM_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

#include "mcpvisor/json.h"

/* Of one tool: a request cannot have more headers. */
#define PARAM_HEADERS_MAX 100

/* One annotation, and the argument at its place. */
struct param_header {
	size_t name; /* its offset in names */
	struct jtext value;
	bool doubled; /* a name on the way to it is there twice */
};
struct param_headers {
	struct jtext params;
	struct buf names; /* "Mcp-Param-X" and NUL, each */
	unsigned n;
	struct param_header of[PARAM_HEADERS_MAX];
};

/* What is wrong with the annotations of a tool's definition (constant text), or NULL;
 * params: of a call to it, or absent. Ends with param_headers_fini in both cases. */
const char *param_headers_find(
    struct param_headers *m, struct jtext definition, struct jtext params);
void param_headers_fini(struct param_headers *m);
static inline const char *
param_headers_name(const struct param_headers *m, unsigned i)
{
	return m->names.data + m->of[i].name;
}
/* The same for who wants no values. NULL: sound (or none); else constant text that says
 * what makes the tool unusable. *any (may be NULL) says whether there is an annotation at
 * all. */
const char *param_headers_check(struct jtext definition, bool *any);

#endif
