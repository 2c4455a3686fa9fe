/* SPDX-License-Identifier: MIT */
/*
 * Pieces of what a peer sent, as a sentence may show them.
 *
 * Driven by: whatever words an error. Pure.
 * Invariants: no control character gets through, and never more than was allowed, but for
 * the dots.
 */
#include "mcpvisor/shown.h"

#include "mcpvisor/utf8.h"

static size_t
shown_character(const char *p, size_t n)
{
	size_t len = utf8_length((const unsigned char *)p, n);

	return len > 0 ? len : 1;
}

/* Bytes of the character or the escape that stands at p. */
static size_t
shown_spelled_character(const char *p, size_t n)
{
	size_t len = n > 1 && p[1] == 'u' ? 6 : 2;

	return *p == '\\' && len <= n ? len : shown_character(p, n);
}

static bool
shown_is_control(const char *p, size_t n)
{
	unsigned char c = (unsigned char)p[0];

	return c < 0x20 || c == 0x7f ||
	       (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0) ||
	       (n == 1 && c >= 0x80);
}

static void
shown_cut(struct buf *out, struct jtext t, size_t max,
    size_t (*character)(const char *, size_t))
{
	size_t used = 0, len;

	for (size_t i = 0; i < t.n; i += len) {
		bool control;

		len = character(t.p + i, t.n - i);
		control = shown_is_control(t.p + i, len);
		used += control ? 6 : len;
		if (used > max) {
			buf_add_str(out, "...");
			return;
		}
		if (control)
			buf_addf(out, "\\u%04x", (unsigned char)t.p[i + len - 1]);
		else
			buf_add(out, t.p + i, len);
	}
}

void
shown_put(struct buf *out, const char *p, size_t n, size_t max)
{
	shown_cut(out, (struct jtext){p, n}, max, shown_character);
}

void
shown_put_spelled(struct buf *out, struct jtext t, size_t max)
{
	shown_cut(out, t, max, shown_spelled_character);
}
