/* SPDX-License-Identifier: MIT */
/* For tests: scanning a text whole and in pieces, with equal results. */
#ifndef MCPVISOR_TEST_SCAN_WAYS_H
#define MCPVISOR_TEST_SCAN_WAYS_H

#include "mcpvisor/json_scan.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <string.h>

struct result {
	enum mv_err err;
	struct json_msg msg;
};

/* Feeds a copy of just these bytes, so that a sanitizer sees a read beyond. */
static inline void
feed_copy(struct json_scan *s, const char *p, size_t n)
{
	char *copy = mem_xalloc(n + 1);
	enum mv_err err;

	memcpy(copy + 1, p, n);
	err = json_scan_feed(s, copy + 1, n);
	ck_assert_int_eq(err, s->err);
	mem_free(copy);
}

/* In pieces of the given sizes; the second one repeats. 0, 0: all at once. */
static inline void
scan_pieces(struct result *r, const char *p, size_t n, size_t first, size_t step)
{
	struct json_scan s;
	size_t at = 0, len = first;

	memset(r, 0xa5, sizeof(*r));
	json_scan_init(&s, &r->msg, true);
	while (at < n) {
		if (len == 0 || len > n - at)
			len = n - at;
		feed_copy(&s, p + at, len);
		at += len;
		len = step;
	}
	r->err = json_scan_end(&s);
}

static inline void
assert_same(const struct result *a, const struct result *b)
{
	unsigned i;

	ck_assert_int_eq(a->err, b->err);
	ck_assert_int_eq(a->msg.kind, b->msg.kind);
	ck_assert_int_eq(a->msg.duplicate, b->msg.duplicate);
	for (i = 0; i < JSON_SLOT_MAX; i++) {
		ck_assert_uint_eq(a->msg.slot[i].len, b->msg.slot[i].len);
		if (a->msg.slot[i].len == 0)
			continue;
		ck_assert_uint_eq(a->msg.slot[i].off, b->msg.slot[i].off);
		ck_assert_uint_eq(a->msg.key_off[i], b->msg.key_off[i]);
	}
	ck_assert_uint_eq(a->msg.n_uris, b->msg.n_uris);
	ck_assert_mem_eq(
	    a->msg.uris, b->msg.uris, a->msg.n_uris * sizeof(a->msg.uris[0]));
}

/* Whole, one byte at a time, and cut in two at every place. */
static inline void
scan_all_ways(struct result *r, const char *p, size_t n)
{
	struct result other;
	size_t cut;

	scan_pieces(r, p, n, 0, 0);
	scan_pieces(&other, p, n, 1, 1);
	assert_same(r, &other);
	for (cut = 1; cut < n; cut++) {
		scan_pieces(&other, p, n, cut, 0);
		assert_same(r, &other);
	}
}

#define ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

#endif
