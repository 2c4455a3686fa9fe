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
/* Appends the published name. prefix NULL: the mapped upstream and "__". */
void naming_publish(const char *upstream, const char *prefix, const char *name, size_t n,
    enum naming_form form, struct buf *out);

#endif
