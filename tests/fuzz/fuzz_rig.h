/* SPDX-License-Identifier: MIT */
/*
 * What the targets share: choices that depend on the input alone, copies of exactly so
 * many bytes that a sanitizer sees a read beyond them, and the input taken line by line.
 */
#ifndef MCPVISOR_FUZZ_RIG_H
#define MCPVISOR_FUZZ_RIG_H

#include "mcpvisor/idmap.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* splitmix64, seeded by the input: the same bytes are always cut at the same places. */
struct dice {
	uint64_t state;
};

static inline struct dice
dice_of(const void *p, size_t n)
{
	return (struct dice){hash_stable(HASH_STABLE_SEED, p, n)};
}

/* Below n, which is not 0. */
static inline size_t
dice_roll(struct dice *d, size_t n)
{
	uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ (z >> 31)) % n);
}

/* Sizes of pieces: mostly small ones, sometimes all that is left. */
static inline size_t
dice_piece(struct dice *d, size_t left)
{
	size_t most = dice_roll(d, 4) == 0 ? left : 1 + dice_roll(d, 24);

	return most < left ? most : left;
}

/* Ends with mem_free. */
static inline char *
exact_copy(const void *p, size_t n)
{
	char *copy = mem_xalloc(n);

	if (n > 0)
		memcpy(copy, p, n);
	return copy;
}

/* The text up to the next line feed, which is skipped, or to the end. */
static inline struct jtext
next_line(struct jtext *rest)
{
	const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
	struct jtext line = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->n};

	rest->p += line.n + (end != NULL ? 1 : 0);
	rest->n -= line.n + (end != NULL ? 1 : 0);
	return line;
}

static inline bool
same_bytes(struct jtext a, struct jtext b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool
is_json(struct jtext t, enum json_kind kind)
{
	struct json_msg json;

	return json_scan(&json, t.p, t.n, false) == MV_OK && json.kind == kind;
}

#endif
