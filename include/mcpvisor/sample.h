/* SPDX-License-Identifier: MIT */
/*
 * What a tool's result looks like: the shape of its answer in few words, without a value
 * of it; and a sample of it, without what may be secret. Pure functions.
 */
#ifndef MCPVISOR_SAMPLE_H
#define MCPVISOR_SAMPLE_H

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"

/* Appends what its structuredContent is, else its JSON text, else the types of its
 * blocks: {id: string, items: [3 of {name: string}]}. Keys and kinds down to depth 3, at
 * most 600 bytes. One answer, one text: keys are in its order. False: there is nothing to
 * say (no content). */
bool sample_put_shape(struct buf *out, const char *base, const struct json_msg *json);
/* Appends the text of the answer, at most max bytes, cut at a character: values whose key
 * looks like a secret's, and e-mail addresses, are replaced. */
void sample_put_redacted(
    struct buf *out, const char *base, const struct json_msg *json, size_t max);
/* The same of a text. */
void sample_put_redacted_text(struct buf *out, struct jtext text, size_t max);

#endif
