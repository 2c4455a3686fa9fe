/* SPDX-License-Identifier: MIT */
/*
 * What a client can be asked for: read from and written as ClientCapabilities.
 *
 * Owns: nothing. Driven by: both sides' adapters.
 * Invariants: a member of a capability is never set without the capability.
 */
#include "mcpvisor/client_caps.h"

#include <string.h>

struct cap_row {
	const char *name;
	const char *member; /* NULL: the row is the capability itself */
	bool modern;	    /* 2026-07-28 still has it */
};

/* The one member that went away with the requests that it announced. */
#define IS_MODERN(id) (CLIENT_CAP_BIT_##id != CLIENT_CAP_BIT_ROOTS_CHANGED)

static const struct cap_row rows[CLIENT_CAP_BITS] = {
#define X(id, name, member) [CLIENT_CAP_BIT_##id] = {name, member, IS_MODERN(id)},
    CLIENT_CAP_TABLE(X)
#undef X
};

unsigned
client_caps_read(struct jtext capabilities)
{
	unsigned caps = 0,
		 any_mode = CLIENT_CAP_ELICITATION_FORM | CLIENT_CAP_ELICITATION_URL;

	if (capabilities.n <= 2)
		return CLIENT_CAP_NONE; /* as most do */
	for (unsigned i = 0; i < CLIENT_CAP_BITS; i++) {
		struct jtext v = json_member(capabilities, rows[i].name);

		if (jtext_type(v) != '{')
			continue;
		if (rows[i].member != NULL)
			v = json_member(v, rows[i].member);
		if (jtext_type(v) == '{' || json_is_true(v))
			caps |= 1u << i;
	}
	if ((caps & CLIENT_CAP_ELICITATION) != 0 && (caps & any_mode) == 0)
		caps |= CLIENT_CAP_ELICITATION_FORM;
	return caps;
}

/* The members of one capability. */
static void
caps_put_members(struct buf *out, unsigned caps, const char *name, bool modern)
{
	const char *sep = "";

	for (unsigned i = 0; i < CLIENT_CAP_BITS; i++) {
		const struct cap_row *row = &rows[i];

		if (row->member == NULL || strcmp(row->name, name) != 0 ||
		    (caps & 1u << i) == 0 || (modern && !row->modern))
			continue;
		buf_addf(out, "%s\"%s\":%s", sep, row->member,
		    i == CLIENT_CAP_BIT_ROOTS_CHANGED ? "true" : "{}");
		sep = ",";
	}
}

void
client_caps_put(struct buf *out, unsigned caps, bool modern)
{
	const char *sep = "";

	buf_add_char(out, '{');
	for (unsigned i = 0; i < CLIENT_CAP_BITS; i++) {
		if (rows[i].member != NULL || (caps & 1u << i) == 0)
			continue;
		buf_addf(out, "%s\"%s\":{", sep, rows[i].name);
		caps_put_members(out, caps, rows[i].name, modern);
		buf_add_char(out, '}');
		sep = ",";
	}
	buf_add_char(out, '}');
}

unsigned
client_caps_needed(enum method m, struct jtext params)
{
	switch ((int)m) {
	case METHOD_SAMPLE:
		return CLIENT_CAP_SAMPLING |
		       (json_member(params, "tools").n != 0 ? CLIENT_CAP_SAMPLING_TOOLS
							    : 0u);
	case METHOD_ELICIT:
		return CLIENT_CAP_ELICITATION |
		       (json_string_is(json_member(params, "mode"), "url")
			       ? CLIENT_CAP_ELICITATION_URL
			       : CLIENT_CAP_ELICITATION_FORM);
	case METHOD_ROOTS:
		return CLIENT_CAP_ROOTS;
	default:
		return CLIENT_CAP_NONE;
	}
}
