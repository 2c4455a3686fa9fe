/* SPDX-License-Identifier: MIT */
/* What probe decides about a tool, and writes down of it (overlay.h). */
#ifndef MCPVISOR_PROBE_RECORD_H
#define MCPVISOR_PROBE_RECORD_H

#include "mcpvisor/outcome.h"
#include "mcpvisor/upstream_conf.h"

#include <jansson.h>

/* A tool of an upstream, with what decides about it. */
struct candidate {
	const struct upstream_conf *conf;
	const struct tool_shape *shape; /* NULL: none */
	struct jtext definition, name;	/* name decoded */
};

/* Why it is not called; NULL: it is. "": without a word, as it does not claim to be
 * harmless. */
const char *candidate_refusal(const struct candidate *c);

/* A new record about it. */
json_t *record_new(const struct candidate *c);
void record_set(json_t *r, const char *key, const char *text);
/* The text of a member; "" if there is none. */
const char *record_text(const json_t *r, const char *key);
/* Whether two records of a tool are of the same definition, called with the same. */
bool record_is_of_same(const json_t *a, const json_t *b);
bool record_is_skipped(const json_t *r);
/* Adds what its call has come to. True: its answer is good on all three axes, and a
 * sample of at most sample_max bytes is in it. */
bool record_fill(json_t *r, const struct outcome *o, uint64_t ms, size_t sample_max);

#endif
