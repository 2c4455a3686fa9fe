/* SPDX-License-Identifier: MIT */
/* What the parts of sample share. */
#ifndef SAMPLE_PRIV_H
#define SAMPLE_PRIV_H

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"

/* Both append until out has limit bytes, and may end with one token more. */
void sample_redact_json(struct buf *out, struct jtext value, size_t limit);
void sample_redact_text(struct buf *out, struct jtext text, size_t limit);

#endif
