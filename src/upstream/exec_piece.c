/* SPDX-License-Identifier: MIT */
/*
 * Texts of arguments of programs in pieces: literal bytes and {name}.
 *
 * Owns: nothing. Driven by: whoever reads a conf or runs a program.
 * Invariants: the pieces of a text, with their braces, are the text.
 */
#include "mcpvisor/exec_conf.h"

#include <string.h>

bool
exec_piece_next(const char **at, struct exec_piece *piece)
{
	const char *p = *at, *end;

	*piece = (struct exec_piece){.p = p, .n = 1};
	if (*p == '\0')
		return false;
	if (*p != '{' && *p != '}') {
		piece->n = strcspn(p, "{}");
		*at = p + piece->n;
		return true;
	}
	if (p[1] == *p) {
		*at = p + 2;
		return true;
	}
	end = *p == '{' ? strpbrk(p + 1, "{}") : NULL;
	if (end != NULL && *end == '}' && end > p + 1) {
		*piece = (struct exec_piece){p + 1, (size_t)(end - p) - 1, true, false};
		*at = end + 1;
		return true;
	}
	piece->is_bad = true;
	*at = p + 1;
	return true;
}
