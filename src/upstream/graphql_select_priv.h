/* SPDX-License-Identifier: MIT */
/* The choice of what is selected. */
#ifndef MCPVISOR_GRAPHQL_SELECT_PRIV_H
#define MCPVISOR_GRAPHQL_SELECT_PRIV_H

#include "graphql_priv.h"

/* Appends a selection set of ty, with its braces, for a root field of op. False: it would
 * be empty. */
bool graphql_put_selection(const struct graphql_schema *schema, enum graphql_op op,
    const struct graphql_type *ty, const struct graphql_generate_opts *o,
    struct buf *out);

#endif
