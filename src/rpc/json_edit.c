/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON by splicing: strings, cuts of members, and the pieces of an edited
 * text.
 *
 * Owns: nothing. Driven by: whoever sends a text on with changes.
 * Invariants: edits are in order and do not overlap, so that the pieces are one
 * walk; a text with its members cut is still well-formed.
 */
#include "mcpvisor/json.h"

#include "mcpvisor/utf8.h"

#include <string.h>
#include <sys/uio.h>

static void
put_control(struct buf *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = memchr(from, c, sizeof(from) - 1);
	char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 0xf]};

	if (at == NULL) {
		buf_add(out, text, sizeof(text));
		return;
	}
	text[1] = to[at - from];
	buf_add(out, text, 2);
}

void
json_put_string(struct buf *out, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0, run = 0, len;

	buf_add_char(out, '"');
	while (i < n) {
		len = utf8_length(p + i, n - i);
		if (len > 0 && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\') {
			i += len;
			continue;
		}
		buf_add(out, s + run, i - run);
		if (len == 0)
			buf_add_str(out, "\xef\xbf\xbd");
		else
			put_control(out, p[i]);
		run = ++i;
	}
	if (run < n)
		buf_add(out, s + run, n - run);
	buf_add_char(out, '"');
}

static uint32_t
space_before(const char *base, uint32_t off, uint32_t lo)
{
	while (off > lo && json_is_space(base[off - 1]))
		off--;
	return off;
}

static uint32_t
space_after(const char *base, uint32_t off, uint32_t hi)
{
	while (off < hi && json_is_space(base[off]))
		off++;
	return off;
}

struct json_span
json_cut(
    const char *base, struct json_span object, uint32_t key_off, struct json_span value)
{
	uint32_t lo = object.off + 1, hi = object.off + object.len - 1;
	uint32_t from = key_off, to = value.off + value.len, comma;
	struct json_span cut;

	comma = space_after(base, to, hi);
	if (comma < hi && base[comma] == ',') {
		/* The next member takes this one's place. */
		to = space_after(base, comma + 1, hi);
	} else {
		from = space_before(base, from, lo);
		if (from > lo)
			from--;
		else
			to = comma;
	}
	cut.off = from;
	cut.len = to - from;
	return cut;
}

static void
remove_edit(struct json_edits *ed, unsigned i)
{
	ed->n--;
	memmove(&ed->e[i], &ed->e[i + 1], (ed->n - i) * sizeof(ed->e[0]));
}

void
json_edit_add(
    struct json_edits *ed, uint32_t off, uint32_t len, const char *put, size_t put_len)
{
	unsigned i = ed->n;

	MCPVISOR_ASSERT(ed->n < JSON_EDITS_MAX);
	for (; i > 0 && ed->e[i - 1].off > off; i--)
		ed->e[i] = ed->e[i - 1];
	/* An insertion stays in front of the cut that begins at its place. */
	if (len == 0 && i > 0 && ed->e[i - 1].off == off && ed->e[i - 1].len > 0) {
		ed->e[i] = ed->e[i - 1];
		i--;
	}
	ed->e[i].off = off;
	ed->e[i].len = len;
	ed->e[i].put = put;
	ed->e[i].put_len = put_len;
	ed->n++;
}

/* Takes out an earlier cut that shares bytes with [*lo, *hi) and widens these. */
static bool
merge_one(struct json_edits *ed, uint32_t *lo, uint32_t *hi)
{
	uint32_t from, to;
	unsigned i;

	for (i = 0; i < ed->n; i++) {
		from = ed->e[i].off;
		to = from + ed->e[i].len;
		if (ed->e[i].len == 0 || ed->e[i].put_len > 0 || from >= *hi || to <= *lo)
			continue;
		if (from < *lo)
			*lo = from;
		if (to > *hi)
			*hi = to;
		remove_edit(ed, i);
		return true;
	}
	return false;
}

void
json_edit_cut(struct json_edits *ed, const char *base, struct json_span object,
    uint32_t key_off, struct json_span value)
{
	uint32_t first = object.off + 1, last = object.off + object.len - 1;
	struct json_span cut = json_cut(base, object, key_off, value);
	uint32_t lo = cut.off, hi = cut.off + cut.len;

	/* The cut of the last member begins with the comma before it. If the member
	 * there goes too, the comma in front of that one is the one too many. */
	while (merge_one(ed, &lo, &hi)) {
		if (space_after(base, hi, last) < last)
			continue;
		lo = space_before(base, lo, first);
		if (lo > first && base[lo - 1] == ',')
			lo--;
	}
	json_edit_add(ed, lo, hi - lo, NULL, 0);
}

static int
add_piece(struct iovec *iov, int n, const char *p, size_t len)
{
	if (len == 0)
		return n;
	/* writev reads only, but an iovec has no const. */
	iov[n].iov_base = (void *)(uintptr_t)p;
	iov[n].iov_len = len;
	return n + 1;
}

int
json_edit_pieces(const char *base, struct json_span span, const struct json_edits *ed,
    struct iovec *iov)
{
	uint32_t at = span.off, end = span.off + span.len;
	unsigned i;
	int n = 0;

	for (i = 0; i < ed->n; i++) {
		const struct json_edit *e = &ed->e[i];

		MCPVISOR_ASSERT(e->off >= at && e->len <= end - e->off);
		n = add_piece(iov, n, base + at, e->off - at);
		n = add_piece(iov, n, e->put, e->put_len);
		at = e->off + e->len;
	}
	return add_piece(iov, n, base + at, end - at);
}
