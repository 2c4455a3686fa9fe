/* SPDX-License-Identifier: MIT */
/*
 * What libconfig 1.5 must not see.
 *
 * An @include of a folder ends the process; a whole number that does not fit 32 bits
 * becomes another one without a word; text behind a NUL is not read; nesting costs stack.
 * So a pass over the tokens refuses the one, writes an L behind the others, and counts
 * brackets.
 *
 * Owns: nothing; the copy is the caller's.
 * Driven by: each file that is read.
 * Invariants: lines stay where they are.
 */
#include "conf_priv.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#define CONF_DEPTH_MAX 64

struct conf_lex {
	struct conf_ctx *x;
	const char *p, *end;
	int line, depth;
	struct buf out;
	bool bad;
};

static void
lex_fail(struct conf_lex *l, const char *what)
{
	conf_file_error(l->x, l->line, "%s", what);
	l->bad = true;
}

static bool
lex_at(const struct conf_lex *l, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(l->end - l->p) >= n && memcmp(l->p, s, n) == 0;
}

/* Copies up to q, which is behind p. */
static void
lex_copy(struct conf_lex *l, const char *q)
{
	for (const char *c = l->p; (c = memchr(c, '\n', (size_t)(q - c))); c++)
		l->line++;
	buf_add(&l->out, l->p, (size_t)(q - l->p));
	l->p = q;
}

static void
lex_string(struct conf_lex *l)
{
	const char *q = l->p + 1;

	while (q < l->end && *q != '"') {
		if (*q == '\\' && l->end - q > 3 && memcmp(q, "\\x00", 4) == 0)
			lex_fail(l, "a string has a NUL");
		q += *q == '\\' && q + 1 < l->end ? 2 : 1;
	}
	lex_copy(l, q < l->end ? q + 1 : q);
}

static void
lex_comment(struct conf_lex *l)
{
	size_t left = (size_t)(l->end - l->p);
	const char *q;

	if (l->p[0] == '/' && l->p[1] == '*') {
		q = memmem(l->p + 2, left - 2, "*/", 2);
		q = q ? q + 2 : l->end;
	} else {
		q = memchr(l->p, '\n', left);
		q = q ? q : l->end;
	}
	lex_copy(l, q);
}

static bool
lex_is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '*' || c == '-';
}

/* Whether the digits of a whole number (hex behind 0x) mean more than most. */
static bool
lex_is_over(const char *digits, size_t n, unsigned base, uint64_t most)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		char c = digits[i] | 0x20;
		unsigned d = c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(c & 15);

		if (v > (most - d) / base)
			return true;
		v = v * base + d;
	}
	return false;
}

static const char *
lex_skip_digits(const struct conf_lex *l, const char *q, unsigned base)
{
	const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";

	while (q < l->end && *q && strchr(digits, *q))
		q++;
	return q;
}

/* Of a number with a fraction or exponent, or of nothing that we know. */
static void
lex_float(struct conf_lex *l, const char *q)
{
	while (q < l->end && (lex_is_name(*q) || *q == '.' || *q == '+'))
		q++;
	lex_copy(l, q == l->p ? q + 1 : q);
}

static void
lex_number(struct conf_lex *l)
{
	const char *q = l->p, *digits, *end;
	unsigned base = 10, sign;
	size_t n;

	sign = *q == '-';
	if (*q == '-' || *q == '+')
		q++;
	if (l->end - q > 2 && q[0] == '0' && (q[1] | 0x20) == 'x') {
		base = 16;
		sign = 0;
		q += 2;
	}
	digits = q;
	end = q = lex_skip_digits(l, q, base);
	n = (size_t)(end - digits);
	while (q < l->end && *q == 'L')
		q++;
	if (n == 0 || (q < l->end && (*q == '.' || (*q | 0x20) == 'e'))) {
		lex_float(l, q);
		return;
	}
	if (lex_is_over(digits, n, base, (uint64_t)INT64_MAX + sign))
		lex_fail(l, "a number is too large");
	lex_copy(l, q);
	if (q == end && lex_is_over(digits, n, base, (uint64_t)INT32_MAX + sign))
		buf_add_char(&l->out, 'L');
}

static void
lex_other(struct conf_lex *l)
{
	switch (*l->p) {
	case '@':
		lex_fail(l, "@include is not supported; see upstream_dir");
		break;
	case '\0':
		lex_fail(l, "there is a NUL");
		break;
	case '{':
	case '(':
	case '[':
		if (++l->depth == CONF_DEPTH_MAX)
			lex_fail(l, "nested too deep");
		break;
	case '}':
	case ')':
	case ']':
		l->depth--;
		break;
	default:
		break;
	}
	lex_copy(l, l->p + 1);
}

static void
lex_token(struct conf_lex *l)
{
	char c = *l->p;
	const char *q = l->p;

	if (c == ' ' || c == '\t') {
		while (q < l->end && (*q == ' ' || *q == '\t'))
			q++;
		lex_copy(l, q);
	} else if (c == '"') {
		lex_string(l);
	} else if (c == '#' || lex_at(l, "//") || lex_at(l, "/*")) {
		lex_comment(l);
	} else if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') {
		lex_number(l);
	} else if (lex_is_name(c)) {
		while (q < l->end && lex_is_name(*q))
			q++;
		lex_copy(l, q);
	} else {
		lex_other(l);
	}
}

char *
conf_text_prepare(struct conf_ctx *x, const char *text, size_t n)
{
	struct conf_lex l = {.x = x, .p = text, .end = text + n, .line = 1};
	char *copy = NULL;

	/* An L for each number is not half of the text again. */
	buf_init(&l.out, n + n / 2 + 16);
	if (lex_at(&l, "\xef\xbb\xbf"))
		l.p += 3;
	while (l.p < l.end && !l.bad)
		lex_token(&l);
	buf_add_char(&l.out, '\0');
	if (!l.bad)
		copy = buf_take(&l.out, NULL);
	if (!l.bad && !copy)
		conf_file_error(x, 0, "%s", mv_err_text(l.out.err));
	buf_fini(&l.out);
	return copy;
}
