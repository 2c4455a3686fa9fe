/* SPDX-License-Identifier: MIT */
/* Pieces of what a peer sent, as a sentence may show them. */
#ifndef MCPVISOR_SHOWN_H
#define MCPVISOR_SHOWN_H

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"

/* The most of a value that a sentence shows. */
#define SHOWN_BYTES 64

/* Appends at most max bytes of a text, control characters as \u00XX, and "..." for what
 * was cut away; never half a character. */
void shown_put(struct buf *out, const char *p, size_t n, size_t max);
/* The same of JSON text as it is spelled; an escape is never cut either. */
void shown_put_spelled(struct buf *out, struct jtext t, size_t max);

#endif
