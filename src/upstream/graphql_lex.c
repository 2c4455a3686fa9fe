/* SPDX-License-Identifier: MIT */
/*
 * Tokens of GraphQL.
 *
 * Owns: nothing.
 * Driven by: the parser.
 * Invariants: a lexer that has failed stays at GRAPHQL_T_BAD, which is no token that a
 * rule takes, so that who reads needs no check of its own.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BOM "\xef\xbb\xbf"

void
graphql_lex_init(
    struct graphql_lex *x, const char *text, size_t n, struct mv_errtext *err)
{
	*x = (struct graphql_lex){.p = text,
	    .end = text + n,
	    .line_start = text,
	    .line = 1,
	    .err = err,
	    .at = text,
	    .at_line_start = text,
	    .at_line = 1};
}

/* Characters, not bytes: what an editor shows. */
static unsigned
lex_column(const char *line, const char *at)
{
	unsigned column = 1;

	for (; line < at; line++)
		column += ((unsigned char)*line & 0xc0) != 0x80;
	return column;
}

bool
graphql_lex_fail(struct graphql_lex *x, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (x->kind == GRAPHQL_T_BAD)
		return false;
	x->kind = GRAPHQL_T_BAD;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (x->err != NULL)
		x->err->line = x->at_line;
	mv_errtext_set(
	    x->err, "column %u: %s", lex_column(x->at_line_start, x->at), text);
	return false;
}

static void
lex_new_line(struct graphql_lex *x)
{
	if (*x->p == '\r' && x->end - x->p > 1 && x->p[1] == '\n')
		x->p++;
	x->p++;
	x->line++;
	x->line_start = x->p;
}

/* A comment that has its line for itself, below another one or as the first. */
static void
lex_comment(struct graphql_lex *x, int token_line)
{
	const char *begin = x->p;

	while (x->p < x->end && *x->p != '\n' && *x->p != '\r')
		x->p++;
	x->after_comment = true;
	if (x->line == token_line)
		return;
	if (x->notes == NULL || x->notes_line + 1 != x->line)
		x->notes = begin;
	x->notes_end = x->p;
	x->notes_line = x->line;
}

static void
lex_blank(struct graphql_lex *x)
{
	int token_line = x->kind == GRAPHQL_T_START ? 0 : x->line;

	x->notes = NULL;
	x->after_comment = false;
	while (x->p < x->end) {
		size_t left = (size_t)(x->end - x->p);

		if (*x->p == '\n' || *x->p == '\r')
			lex_new_line(x);
		else if (*x->p == '#')
			lex_comment(x, token_line);
		else if (*x->p == ' ' || *x->p == '\t' || *x->p == ',')
			x->p++;
		else if (left >= 3 && memcmp(x->p, BOM, 3) == 0)
			x->p += 3;
		else
			break;
	}
	if (x->notes != NULL && x->notes_line + 1 != x->line)
		x->notes = NULL;
}

static bool
lex_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
lex_is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool
graphql_is_name(const char *s)
{
	if (!lex_is_name_start(*s))
		return false;
	while (lex_is_name_start(*s) || lex_is_digit(*s))
		s++;
	return *s == '\0';
}

static size_t
lex_digits(struct graphql_lex *x)
{
	const char *begin = x->p;

	while (x->p < x->end && lex_is_digit(*x->p))
		x->p++;
	return (size_t)(x->p - begin);
}

static bool
lex_take(struct graphql_lex *x, const char *any)
{
	if (x->p >= x->end || strchr(any, *x->p) == NULL)
		return false;
	x->p++;
	return true;
}

/* As JSON has them, but for what may follow. */
static void
lex_number(struct graphql_lex *x)
{
	bool is_sound;
	char first;

	x->kind = GRAPHQL_T_NUMBER;
	(void)lex_take(x, "-");
	first = x->p < x->end ? *x->p : '\0';
	is_sound = lex_digits(x) <= (first == '0' ? 1u : SIZE_MAX) && lex_is_digit(first);
	if (is_sound && lex_take(x, "."))
		is_sound = lex_digits(x) > 0;
	if (is_sound && lex_take(x, "eE")) {
		(void)lex_take(x, "+-");
		is_sound = lex_digits(x) > 0;
	}
	if (!is_sound || (x->p < x->end && (*x->p == '.' || lex_is_name_start(*x->p))))
		graphql_lex_fail(x, "not a number");
}

static void
lex_string(struct graphql_lex *x)
{
	x->kind = GRAPHQL_T_STRING;
	x->p++;
	while (x->p < x->end && *x->p != '"' && *x->p != '\n' && *x->p != '\r') {
		if (*x->p == '\\' && x->end - x->p > 1 && x->p[1] != '\n' &&
		    x->p[1] != '\r')
			x->p++;
		x->p++;
	}
	if (x->p >= x->end || *x->p != '"') {
		graphql_lex_fail(x, "the string has no end");
		return;
	}
	x->p++;
}

/* Whether n bytes are left that begin with s, which has n. */
static bool
lex_has(const struct graphql_lex *x, const char *s, size_t n)
{
	return (size_t)(x->end - x->p) >= n && memcmp(x->p, s, n) == 0;
}

static void
lex_block(struct graphql_lex *x)
{
	x->kind = GRAPHQL_T_BLOCK;
	x->p += 3;
	while (x->p < x->end && !lex_has(x, "\"\"\"", 3)) {
		if (lex_has(x, "\\\"\"\"", 4))
			x->p += 4;
		else if (*x->p == '\n' || *x->p == '\r')
			lex_new_line(x);
		else
			x->p++;
	}
	if (x->p >= x->end) {
		graphql_lex_fail(x, "the block string has no end");
		return;
	}
	x->p += 3;
}

static void
lex_other(struct graphql_lex *x)
{
	unsigned char c = (unsigned char)*x->p;

	if (lex_has(x, "...", 3)) {
		x->kind = GRAPHQL_T_SPREAD;
		x->p += 3;
	} else if (c != '\0' && strchr("!$&():=@[]{|}", c) != NULL) {
		x->kind = GRAPHQL_T_PUNCT;
		x->p++;
	} else if (c > ' ' && c < 0x7f) {
		graphql_lex_fail(x, "unexpected character '%c'", c);
	} else {
		graphql_lex_fail(x, "unexpected character (byte 0x%02x)", c);
	}
}

void
graphql_lex_next(struct graphql_lex *x)
{
	if (x->kind == GRAPHQL_T_BAD)
		return;
	lex_blank(x);
	x->at = x->p;
	x->at_line = x->line;
	x->at_line_start = x->line_start;
	if (x->p >= x->end) {
		x->kind = GRAPHQL_T_END;
	} else if (lex_is_name_start(*x->p)) {
		x->kind = GRAPHQL_T_NAME;
		while (x->p < x->end && (lex_is_name_start(*x->p) || lex_is_digit(*x->p)))
			x->p++;
	} else if (lex_is_digit(*x->p) || *x->p == '-') {
		lex_number(x);
	} else if (lex_has(x, "\"\"\"", 3)) {
		lex_block(x);
	} else if (*x->p == '"') {
		lex_string(x);
	} else {
		lex_other(x);
	}
	x->n = (size_t)(x->p - x->at);
}

bool
graphql_lex_is(const struct graphql_lex *x, char punct)
{
	return x->kind == GRAPHQL_T_PUNCT && *x->at == punct;
}

bool
graphql_lex_is_name(const struct graphql_lex *x, const char *name)
{
	return x->kind == GRAPHQL_T_NAME && strlen(name) == x->n &&
	       memcmp(name, x->at, x->n) == 0;
}

bool
graphql_lex_is_string(const struct graphql_lex *x)
{
	return x->kind == GRAPHQL_T_STRING || x->kind == GRAPHQL_T_BLOCK;
}
