/* SPDX-License-Identifier: MIT */
/*
 * How an upstream's name for a thing becomes the published one.
 *
 * The published charset is [A-Za-z0-9_-]; any other byte becomes _xHH, and a "_x"
 * that could be taken for one has its underscore written as _x5f, so that the map can
 * be reversed. Names over the budget get a short form that depends on upstream and
 * name alone.
 */
#ifndef MCPVISOR_NAMING_H
#define MCPVISOR_NAMING_H

#include <stddef.h>

#include "mcpvisor/buf.h"

/* Appends the mapped form of n bytes. */
void naming_map(const char *name, size_t n, struct buf *out);
/* Appends the original of a mapped form (never fails: what is no escape stays). */
void naming_unmap(const char *mapped, size_t n, struct buf *out);

/* Appends what the preferred names of an upstream begin with. */
void naming_prefix(const char *upstream, const char *prefix, struct buf *out);

enum naming_form {
	NAMING_PREFERRED, /* prefix + name, short form over the budget */
	NAMING_QUALIFIED, /* upstream + "__" + name, whatever the prefix */
	NAMING_HASHED,	  /* short form with all 64 bits of the hash */
};
/* Budgets that leave room for a hash and something to recognise. */
#define NAMING_BUDGET_MIN 24
#define NAMING_BUDGET_MAX 128
struct naming {
	const char *upstream, *prefix; /* prefix NULL: the mapped upstream and "__" */
	size_t budget;		       /* bytes of a published name */
};
/* Appends the published name. */
void naming_publish(const struct naming *y, const char *name, size_t n,
    enum naming_form form, struct buf *out);

#endif
