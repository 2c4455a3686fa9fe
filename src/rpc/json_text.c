/* SPDX-License-Identifier: MIT */
/*
 * Whole texts of JSON: decoded, compared, and without white space.
 *
 * Owns: nothing. Driven by: whoever holds the text.
 * Invariants: never reads past the text; memory is taken for strings with escapes alone.
 */
#include "mcpvisor/json.h"

#include <string.h>

struct jtext
json_text(struct jtext t, struct buf *scratch)
{
	static const struct jtext none = {NULL, 0};

	if (jtext_type(t) == '"' && t.n >= 2 && memchr(t.p, '\\', t.n) == NULL)
		return (struct jtext){t.p + 1, t.n - 2};
	buf_reset(scratch);
	/* One piece, so that no other copy of it is left anywhere. */
	if (buf_reserve(scratch, t.n) != MV_OK || !json_string_decode(t, scratch))
		return none;
	return (struct jtext){scratch->data, scratch->len};
}

static unsigned char
fold_next(struct jtext *t)
{
	unsigned char c = (unsigned char)t->p[0];
	size_t n = 1;

	if (c >= 'A' && c <= 'Z') {
		c = (unsigned char)(c | 0x20);
	} else if (t->n >= 2 && memcmp(t->p, "\xc5\xbf", 2) == 0) {
		c = 's';
		n = 2;
	} else if (t->n >= 3 && memcmp(t->p, "\xe2\x84\xaa", 3) == 0) {
		c = 'k';
		n = 3;
	}
	t->p += n;
	t->n -= n;
	return c;
}

bool
jtext_is_like(struct jtext a, struct jtext b)
{
	while (a.n > 0 && b.n > 0)
		if (fold_next(&a) != fold_next(&b))
			return false;
	return a.n == 0 && b.n == 0;
}

void
json_put_compact(struct buf *out, struct jtext t)
{
	const char *p = t.p, *end = t.p + t.n, *run = p;
	bool in_string = false;

	for (; p < end; p++) {
		if (in_string && *p == '\\' && end - p > 1) {
			p++;
		} else if (*p == '"') {
			in_string = !in_string;
		} else if (!in_string && json_is_space(*p)) {
			buf_add(out, run, (size_t)(p - run));
			run = p + 1;
		}
	}
	buf_add(out, run, (size_t)(end - run));
}
