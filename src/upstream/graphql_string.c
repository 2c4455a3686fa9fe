/* SPDX-License-Identifier: MIT */
/*
 * What strings of GraphQL stand for: quoted ones with escapes, block strings without
 * their indentation, and the text of comment lines.
 *
 * Owns: nothing.
 * Driven by: the parser, for descriptions and constants.
 * Invariants: what is appended is UTF-8; the token has been found sound by the lexer.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"

#include <stdio.h>
#include <string.h>

/* ---- quoted ---- */

/* By way of JSON, which knows such escapes too. */
static void
string_put_char(struct buf *out, uint32_t c)
{
	char json[16];
	int n;

	if (c < 0x10000)
		n = snprintf(json, sizeof(json), "\"\\u%04x\"", (unsigned)c);
	else
		n = snprintf(json, sizeof(json), "\"\\u%04x\\u%04x\"",
		    (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
		    (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
	(void)json_string_decode((struct jtext){json, (size_t)n}, out);
}

static int
string_hex(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) % 16 : -1;
}

/* Reads four digits, or some in braces, after "\u"; false: they are none. */
static bool
string_unit(const char **p, const char *end, uint32_t *c)
{
	bool in_braces = *p < end && **p == '{';
	unsigned n = 0;

	*c = 0;
	*p += in_braces;
	for (; *p < end && string_hex(**p) >= 0 && (in_braces || n < 4); n++, (*p)++) {
		*c = *c << 4 | (uint32_t)string_hex(**p);
		if (*c > 0x10ffff)
			return false;
	}
	if (!in_braces)
		return n == 4;
	return n > 0 && *p < end && *(*p)++ == '}';
}

/* p is behind "\u". A character outside the first plane may be two units. */
static bool
string_unicode(const char **p, const char *end, struct buf *out)
{
	uint32_t c, low;

	if (!string_unit(p, end, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (end - *p < 2 || (*p)[0] != '\\' || (*p)[1] != 'u')
			return false;
		*p += 2;
		if (!string_unit(p, end, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (c >= 0xd800 && c < 0xe000)
		return false;
	string_put_char(out, c);
	return true;
}

static bool
string_decode(const char *p, const char *end, struct buf *out)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";

	while (p < end) {
		const char *stop = memchr(p, '\\', (size_t)(end - p)), *letter;

		if (stop == NULL)
			stop = end;
		buf_add(out, p, (size_t)(stop - p));
		if (stop == end)
			return true;
		p = stop + 2; /* the lexer has seen a character there */
		letter = strchr(letters, stop[1]);
		if (letter != NULL)
			buf_add_char(out, values[letter - letters]);
		else if (stop[1] != 'u' || !string_unicode(&p, end, out))
			return false;
	}
	return true;
}

/* ---- block ---- */

struct line {
	const char *p;
	size_t n, indent;
	bool is_blank;
};

/* False: there is no line at *p; NULL: none at all any more. */
static bool
line_next(const char **p, const char *end, struct line *l)
{
	const char *q = *p;

	if (q == NULL)
		return false;
	*l = (struct line){.p = q};
	while (q < end && *q != '\n' && *q != '\r')
		q++;
	l->n = (size_t)(q - l->p);
	while (l->indent < l->n && (l->p[l->indent] == ' ' || l->p[l->indent] == '\t'))
		l->indent++;
	l->is_blank = l->indent == l->n;
	if (q == end)
		*p = NULL;
	else
		*p = q + (*q == '\r' && end - q > 1 && q[1] == '\n' ? 2 : 1);
	return true;
}

static void
line_put(const struct line *l, size_t cut, struct buf *out)
{
	const char *p = l->p + (cut < l->n ? cut : l->n), *end = l->p + l->n;

	while (p < end) {
		const char *stop = memchr(p, '\\', (size_t)(end - p));

		if (stop == NULL)
			stop = end;
		buf_add(out, p, (size_t)(stop - p));
		if (stop == end)
			return;
		p = stop + 1;
		if (end - p < 3 || memcmp(p, "\"\"\"", 3) != 0)
			buf_add_char(out, '\\');
	}
}

static void
block_decode(const char *text, const char *end, struct buf *out)
{
	size_t common = SIZE_MAX, i = 0, first = SIZE_MAX, last = 0;
	struct line l;

	for (const char *p = text; line_next(&p, end, &l); i++) {
		if (l.is_blank)
			continue;
		if (i > 0 && l.indent < common)
			common = l.indent;
		if (first == SIZE_MAX)
			first = i;
		last = i;
	}
	i = 0;
	for (const char *p = text; line_next(&p, end, &l); i++) {
		if (first == SIZE_MAX || i < first || i > last)
			continue;
		if (i > first)
			buf_add_char(out, '\n');
		line_put(&l, i > 0 ? common : 0, out);
	}
}

bool
graphql_lex_decode(struct graphql_lex *x, struct buf *out)
{
	if (x->kind == GRAPHQL_T_BLOCK)
		block_decode(x->at + 3, x->at + x->n - 3, out);
	else if (!string_decode(x->at + 1, x->at + x->n - 1, out))
		return graphql_lex_fail(x, "the string has an escape that is none");
	return true;
}

/* ---- comments ---- */

void
graphql_put_notes(const char *notes, const char *end, struct buf *out)
{
	struct line l;

	for (const char *p = notes; line_next(&p, end, &l);) {
		size_t cut = l.indent;

		while (cut < l.n && l.p[cut] == '#')
			cut++;
		if (cut < l.n && l.p[cut] == ' ')
			cut++;
		if (l.p != notes)
			buf_add_char(out, '\n');
		buf_add(out, l.p + cut, l.n - cut);
	}
}
