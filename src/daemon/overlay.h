/* SPDX-License-Identifier: MIT */
/* The file that probe writes: what each tool was found to return. */
#ifndef MCPVISOR_OVERLAY_H
#define MCPVISOR_OVERLAY_H

#include "mcpvisor/conf.h"

#include <jansson.h>

/* One record: {"upstream","tool","digest",...}; strings unless it says otherwise.
 *
 * digest: of the definition that the tool had; arguments: of what the conf gives it, if
 * anything. skipped: why it was not called; else time, ok and is_error (booleans),
 * graphql, answer, ms and bytes (integers), content (types of its blocks), and either
 * shape, with a sample, or why there is none, with a failure. */

/* Reads the file into an array of records, a new reference; a file that is not there has
 * none. NULL: it is no such file, and t says why. */
json_t *overlay_read(const char *path, struct mv_errtext *t);
/* Writes it, under a new name first, unless it would be the same. False: errno. *changed:
 * whether it was written. records is borrowed. */
bool overlay_write(const char *path, const json_t *records, bool *changed);
/* The record about a tool; NULL: there is none. Borrowed. */
json_t *overlay_find(json_t *records, const char *upstream, const char *tool);

/* Sets tool_shape.returns of all upstreams by the file of the conf; what is wrong with it
 * is a warning: a description may lack a sentence. */
void overlay_apply(struct conf *c);

#endif
