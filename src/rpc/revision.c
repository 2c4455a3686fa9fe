/* SPDX-License-Identifier: MIT */
/*
 * The table of protocol revisions.
 *
 * Owns: the table. Driven by: the adapters of front and upstream.
 */
#include "mcpvisor/revision.h"

struct revision_row {
	const char *text;
	bool modern, batches, event_ids, priming;
};

static const struct revision_row rows[REVISION_MAX] = {
    [REVISION_NONE] = {"none", false, false, false, false},
#define X(id, ...) [REVISION_##id] = {__VA_ARGS__},
    REVISION_TABLE(X)
#undef X
};

const char *
revision_text(enum revision r)
{
	return rows[r].text;
}

bool
revision_is_modern(enum revision r)
{
	return rows[r].modern;
}

bool
revision_has_batches(enum revision r)
{
	return rows[r].batches;
}

bool
revision_has_event_ids(enum revision r)
{
	return rows[r].event_ids;
}

bool
revision_has_priming(enum revision r)
{
	return rows[r].priming;
}

enum revision
revision_parse(struct jtext t)
{
	unsigned r;

	for (r = REVISION_NONE + 1; r < REVISION_MAX; r++) {
		if (json_string_is(t, rows[r].text))
			return (enum revision)r;
	}
	return REVISION_NONE;
}
