/* SPDX-License-Identifier: MIT */
/*
 * Tools seen otherwise than their upstream offers them: another name or description,
 * arguments that are ours and that no client sees. By splice: what is not named stays as
 * it came. Pure functions.
 */
#ifndef MCPVISOR_SHAPE_H
#define MCPVISOR_SHAPE_H

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"
#include "mcpvisor/upstream_conf.h"

/* Appends the definition with the published name (a JSON string, quotes included) in
 * place of name, which is its own and points into it, with the description of s, and
 * without the arguments that s fixes or has defaults for in the properties and required
 * of its inputSchema. s NULL: the name alone. */
void shape_put_definition(struct buf *out, struct jtext definition, struct jtext name,
    struct jtext published, const struct tool_shape *s);

/* Appends the arguments that the upstream gets: those of the client (absent: none) with
 * the fixed ones in place of its own and the defaults for what it left out. MV_PARAMS:
 * arguments is no object (*bad is absent), or has a member whose name differs only by
 * case from a fixed one, *bad as it wrote it: another parser could take it for that. */
enum mv_err shape_put_arguments(struct buf *out, struct jtext arguments,
    const struct tool_shape *s, struct jtext *bad) MCPVISOR_MUST_CHECK;
/* The first key of the client's arguments that s fixes; absent: there is none. */
struct jtext shape_fixed_in(struct jtext arguments, const struct tool_shape *s);
/* Whether a key (a JSON string) is that text to a parser that ignores case. */
bool shape_key_is_like(struct jtext key, const char *text);

#endif
