/* SPDX-License-Identifier: MIT */
/*
 * Finds the id of a message that must be refused: over the limit, too deep, or
 * with bad bytes somewhere. Looks at the structure of the top level only and
 * takes parts of any size.
 */
#ifndef MCPVISOR_SALVAGE_PRIV_H
#define MCPVISOR_SALVAGE_PRIV_H

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct salvage {
	unsigned state;
	uint64_t depth; /* of open containers */
	bool in_string, escaped, saving;
	bool has_version, is_reply;
	char key[12];
	size_t key_len;
	char id[CAP_ID_BYTES]; /* as written */
	size_t id_len;	       /* 0: none so far */
	bool id_complete, id_seen;
};

void salvage_init(struct salvage *s);
void salvage_feed(struct salvage *s, const char *p, size_t n);

/* What is kept of a message that is refused, while it lasts. */
struct refused {
	struct salvage salvage;
	char head[CAP_LOG_VALUE_BYTES];
	size_t head_len;
};

/* Ends with mem_free. */
struct refused *refused_new(void);
void refused_feed(struct refused *r, const char *p, size_t n);
/* The id as written, if it is one that the message can be answered or failed by; points
 * into r. err: why it is refused; is_cut: the end of the input came within it. json is
 * the caller's, for a look at the id. */
struct jtext refused_id(
    const struct refused *r, enum mv_err err, bool is_cut, struct json_msg *json);

#endif
