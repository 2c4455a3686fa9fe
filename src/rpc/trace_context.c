/* SPDX-License-Identifier: MIT */
/*
 * Trace context as _meta has it.
 *
 * Owns: nothing. Driven by: who logs calls, and who sends them on by HTTP.
 * Invariants: nothing is decoded; what has escapes is not well-formed.
 */
#include "mcpvisor/trace_context.h"

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool
trace_context_id(struct jtext t, char out[TRACE_ID_BYTES])
{
	static const char form[] =
	    "\"vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-"
	    "ff";
	enum { VERSION = 1, TRACE = 4, PARENT = 37, LEN = sizeof(form) - 1 };
	char text[LEN + 1];

	/* Later versions may go on after another dash. */
	if (t.n < LEN + 1 || jtext_type(t) != '"' ||
	    (t.n > LEN + 1 && (memcmp(t.p + VERSION, "00", 2) == 0 || t.p[LEN] != '-')))
		return false;
	memcpy(text, t.p, LEN);
	text[LEN] = '\0';
	for (size_t i = VERSION; i < LEN; i++)
		if (form[i] == '-' ? text[i] != '-' : !is_hex(text[i]))
			return false;
	if (memcmp(text + VERSION, "ff", 2) == 0 ||
	    strspn(text + TRACE, "0") == TRACE_ID_BYTES ||
	    strspn(text + PARENT, "0") == 16)
		return false;
	if (out != NULL)
		memcpy(out, text + TRACE, TRACE_ID_BYTES);
	return true;
}
