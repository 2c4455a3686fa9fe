/* SPDX-License-Identifier: MIT */
/*
 * Blanks the comments and trailing commas that editors allow in their JSON.
 *
 * Owns: nothing; works on the caller's bytes.
 * Driven by: the import.
 * Invariants: newlines are never touched, so error lines stay true; bytes inside strings
 * are never touched. Faults other than an endless comment are left to the JSON parser.
 */
#include "import_priv.h"

#include <string.h>

struct blanker {
	char *p;
	size_t n, at;
	int line;
	/* The last significant byte, and a comma that is it, if any. */
	char last, before_comma;
	size_t comma_at;
};

static void
jsonc_skip_string(struct blanker *b)
{
	for (b->at++; b->at < b->n && b->p[b->at] != '"'; b->at++) {
		if (b->p[b->at] == '\n')
			return; /* not JSON: the parser will say so, in this line */
		if (b->p[b->at] == '\\')
			b->at++;
	}
	if (b->at < b->n)
		b->at++;
}

static void
jsonc_blank_line(struct blanker *b)
{
	while (b->at < b->n && b->p[b->at] != '\n')
		b->p[b->at++] = ' ';
}

static bool
jsonc_blank_block(struct blanker *b, int *line)
{
	char *end =
	    b->at + 2 < b->n ? memmem(b->p + b->at + 2, b->n - b->at - 2, "*/", 2) : NULL;
	size_t stop;

	if (!end) {
		*line = b->line;
		return false;
	}
	stop = (size_t)(end - b->p) + 2;
	for (; b->at < stop; b->at++) {
		if (b->p[b->at] == '\n')
			b->line++;
		else
			b->p[b->at] = ' ';
	}
	return true;
}

/* A comma is trailing if a bracket follows it and an item came before it: [,] stays
 * the error that it is. */
static void
jsonc_see(struct blanker *b, char c)
{
	if (c == ',') {
		b->before_comma = b->last;
		b->comma_at = b->at;
	} else if ((c == '}' || c == ']') && b->last == ',' && b->before_comma &&
		   !strchr("{[,:", b->before_comma)) {
		b->p[b->comma_at] = ' ';
	}
	b->last = c;
}

enum mv_err
jsonc_blank(char *p, size_t n, int *line)
{
	struct blanker b = {.p = p, .n = n, .line = 1};

	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		memset(p, ' ', 3);
	while (b.at < n) {
		char c = p[b.at];
		char next = b.at + 1 < n ? p[b.at + 1] : '\0';

		if (c == '/' && next == '/') {
			jsonc_blank_line(&b);
		} else if (c == '/' && next == '*') {
			if (!jsonc_blank_block(&b, line))
				return MV_SYNTAX;
		} else if (c == '"') {
			jsonc_see(&b, c);
			jsonc_skip_string(&b);
		} else {
			if (c == '\n')
				b.line++;
			else if (c != ' ' && c != '\t' && c != '\r')
				jsonc_see(&b, c);
			b.at++;
		}
	}
	return MV_OK;
}
