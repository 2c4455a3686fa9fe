/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with a maximum and a sticky error, so that a writer
 * appends many times and looks once.
 */
#ifndef MCPVISOR_BUF_H
#define MCPVISOR_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/err.h"

struct buf {
	char *data; /* not NUL-terminated unless buf_cstr was called */
	size_t len;
	size_t cap;
	size_t max;
	enum mv_err err; /* MV_OK, MV_TOO_LONG or MV_NOMEM; then appends do nothing */
};

/* Takes no memory yet. max is the most bytes it may hold. */
void buf_init(struct buf *b, size_t max);
/* Frees the data; b is as after buf_init. NULL data is fine. */
void buf_fini(struct buf *b);
/* Length 0 and no error; keeps the memory. */
void buf_reset(struct buf *b);
/* Room for n more bytes; sets and returns the sticky error. */
enum mv_err buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_add_u64(struct buf *b, uint64_t v);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* NUL-terminates without changing len. NULL when b has failed. */
const char *buf_cstr(struct buf *b);
/* Removes n bytes (at most len) from the front. */
void buf_drop(struct buf *b, size_t n);
/* Hands the memory to the caller (ends with mem_free), NUL-terminated; b is empty
 * after. NULL exactly when b has failed: b then keeps its memory and its error.
 * len may be NULL. */
char *buf_take(struct buf *b, size_t *len);

#endif
