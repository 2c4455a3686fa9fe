/* SPDX-License-Identifier: MIT */
/* The text behind an imported tree; see import_text.c. */
#ifndef MCPVISOR_IMPORT_TEXT_PRIV_H
#define MCPVISOR_IMPORT_TEXT_PRIV_H

#include <stdbool.h>
#include <stddef.h>

/* A value's text: object, string, number. n 0: absent. Borrowed. */
struct import_text {
	const char *p;
	size_t n;
};

struct import_text import_text_member(struct import_text object, const char *key);
/* Newlines in [from, to). */
int import_text_lines(const char *from, const char *to);

/* Walks the members of an object in the order of the text. */
struct import_cursor {
	const char *at, *end, *counted;
	int line; /* of the current member's key */
};
/* base is where line 1 begins. */
void import_cursor_init(
    struct import_cursor *c, const char *base, struct import_text object);
bool import_cursor_next(struct import_cursor *c, struct import_text *value);

#endif
