/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions of the conf (PCRE2, UTF-8) on text of peers: with match limits, so
 * that no text can make one run for long.
 */
#ifndef MCPVISOR_PATTERN_H
#define MCPVISOR_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "mcpvisor/err.h"

struct pattern;

/* anchored: it has to fit the whole text. NULL: it is none, and t says why. */
struct pattern *pattern_new(const char *text, bool anchored, struct mv_errtext *t);
void pattern_free(struct pattern *p); /* NULL is allowed */
/* What all matches may take that one message asks for. */
#define PATTERN_STEPS 2000000
/* steps: what is left of that. False as well: s is not UTF-8, or a limit was reached;
 * there are no steps left then, or it was that of memory. $ is the end, never before a
 * newline there. */
bool pattern_matches(const struct pattern *p, const char *s, size_t n, size_t *steps);
const char *pattern_text(const struct pattern *p); /* as it was given */
bool pattern_is_anchored(const struct pattern *p);

#endif
