/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with a maximum and a sticky error.
 *
 * Owns: the data of each buffer until buf_take.
 * Driven by: every writer of bytes.
 * Invariants: len <= max; len <= cap <= max + 1, the one being room for a NUL;
 * once err is set no append changes the data.
 */
#include "mcpvisor/buf.h"

#include "mcpvisor/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BUF_FIRST_BYTES 256

/* Room for n more bytes and, beyond max if it must be, spare ones. */
static enum mv_err
buf_grow(struct buf *b, size_t n, size_t spare)
{
	size_t limit = b->max < SIZE_MAX ? b->max + 1 : b->max;
	size_t cap;
	char *p;

	if (b->err != MV_OK)
		return b->err;
	if (n > b->max - b->len || spare > limit - b->len - n)
		return b->err = MV_TOO_LONG;
	if (n + spare <= b->cap - b->len)
		return MV_OK;
	cap = b->cap <= limit / 2 ? b->cap * 2 : limit;
	if (cap < b->len + n + spare)
		cap = b->len + n + spare;
	if (cap < BUF_FIRST_BYTES)
		cap = limit < BUF_FIRST_BYTES ? limit : BUF_FIRST_BYTES;
	p = mem_try_realloc(b->data, cap);
	if (p == NULL)
		return b->err = MV_NOMEM;
	b->data = p;
	b->cap = cap;
	return MV_OK;
}

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void
buf_fini(struct buf *b)
{
	mem_free(b->data);
	buf_init(b, b->max);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->err = MV_OK;
}

enum mv_err
buf_reserve(struct buf *b, size_t n)
{
	return buf_grow(b, n, 0);
}

void
buf_add(struct buf *b, const void *p, size_t n)
{
	if (buf_grow(b, n, 0) != MV_OK || n == 0)
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

void
buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_add_u64(struct buf *b, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	buf_add(b, digits + i, sizeof(digits) - i);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (b->err != MV_OK)
		return;
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->err = MV_TOO_LONG;
		return;
	}
	if (buf_grow(b, (size_t)n, 1) != MV_OK)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

const char *
buf_cstr(struct buf *b)
{
	if (buf_grow(b, 0, 1) != MV_OK)
		return NULL;
	b->data[b->len] = '\0';
	return b->data;
}

void
buf_drop(struct buf *b, size_t n)
{
	MCPVISOR_ASSERT(n <= b->len);
	b->len -= n;
	if (n > 0 && b->len > 0)
		memmove(b->data, b->data + n, b->len);
}

char *
buf_take(struct buf *b, size_t *len)
{
	char *data = NULL;
	size_t n = b->len;

	/* The NUL makes the result usable as a string, and never NULL when b is sound. */
	if (buf_cstr(b) != NULL) {
		data = b->data;
		b->data = NULL;
		b->cap = 0;
	} else {
		n = 0;
	}
	b->len = 0;
	if (len != NULL)
		*len = n;
	return data;
}
