/* SPDX-License-Identifier: MIT */
/*
 * What both load generators say and what they accept: requests of an era, calls of the
 * tools that a list has shown, and the check of an answer.
 */
#ifndef MCPVISOR_BENCH_CALL_H
#define MCPVISOR_BENCH_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_json.h"

#include "mcpvisor/buf.h"

#define CALL_TARGETS_MAX 64
#define CALL_LEGACY	 "2025-11-25"
#define CALL_MODERN	 "2026-07-28"

struct call_target {
	struct buf name;
	struct buf text; /* a call up to its arguments' braces */
};

struct calls {
	bool modern;
	unsigned bytes; /* length of an echoed text */
	unsigned blob;	/* 0: echo is called */
	struct call_target targets[CALL_TARGETS_MAX];
	unsigned n_targets;
	unsigned n_tools; /* listed so far */
};

/* A request without its line's end; members of params may be "". */
void call_put_request(const struct calls *c, struct buf *out, unsigned long long id,
    const char *method, const char *members);
void call_put_initialize(const struct calls *c, struct buf *out, unsigned long long id);
/* Takes in the result of a tools/list; its cursor becomes *cursor. False: it is none. */
bool call_take_list(struct calls *c, struct piece result, struct piece *cursor);
/* Forgets what was listed. */
void call_forget(struct calls *c);
/* The call with that id; the targets take turns. */
const struct call_target *call_target_of(const struct calls *c, unsigned long long id);
void call_put(const struct calls *c, struct buf *out, unsigned long long id);
/* Whether result is the one of that call: its text begins with the id, ends in the
 * expected fill and has the expected length. */
bool call_is_right(const struct calls *c, unsigned long long id, struct piece result);
/* Sorts took, which has n times. */
double call_percentile_us(uint64_t *took, size_t n, unsigned percent);

#endif
