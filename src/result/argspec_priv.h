/* SPDX-License-Identifier: MIT */
/* What the parts of argspec share. */
#ifndef ARGSPEC_PRIV_H
#define ARGSPEC_PRIV_H

#include <string.h>

#include "mcpvisor/argspec.h"
#include "mcpvisor/shown.h"

/* Bytes that a sentence shows of a value, or of a name. */
#define ARGSPEC_VALUE_BYTES SHOWN_BYTES

/* Absent if s is NULL. */
static inline struct jtext
argspec_text(const char *s)
{
	return (struct jtext){s, s != NULL ? strlen(s) : 0};
}

/* ---- numbers, exactly ---- */

/* Compares two JSON numbers: below, at or above 0. Exact, but for exponents beyond
 * 10^12. */
int argspec_compare(struct jtext a, struct jtext b);

/* ---- where in the arguments ---- */

struct argspec_place {
	const struct argspec_place *up; /* NULL: the arguments themselves */
	const struct argspec *spec;
	size_t index;  /* for what an array holds */
	size_t *steps; /* that are left to the whole check, of PATTERN_STEPS */
};

/* ---- sentences ---- */

enum argspec_fault {
	ARGSPEC_FAULT_KIND,   /* of another type, out of range, none of the values */
	ARGSPEC_FAULT_LENGTH, /* count: its characters */
	ARGSPEC_FAULT_COUNT,  /* count: its items or members */
	ARGSPEC_FAULT_PATTERN,
	ARGSPEC_FAULT_CONTROL,
	ARGSPEC_FAULT_BYTES, /* too many */
	ARGSPEC_FAULT_STEPS, /* none is left */
	ARGSPEC_FAULT_MEMORY
};
void argspec_say_fault(struct buf *why, const struct argspec_place *at,
    enum argspec_fault fault, struct jtext value, size_t count);
void argspec_say_missing(struct buf *why, const struct argspec_place *at);
void argspec_say_twice(struct buf *why, const struct argspec_place *at);
/* known: the one that its name differs from by case; NULL: none. */
void argspec_say_unknown(struct buf *why, const struct argspec_place *at,
    struct jtext key, const struct argspec *known);

/* ---- the check of one value ---- */

/* why may be NULL. */
bool argspec_check_value(
    const struct argspec_place *at, struct jtext value, struct buf *why);

#endif
