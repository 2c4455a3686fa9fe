/* SPDX-License-Identifier: MIT */
/*
 * The revisions of the protocol and what differs between them. Only rpc and
 * the adapters of front and upstream ask.
 */
#ifndef MCPVISOR_REVISION_H
#define MCPVISOR_REVISION_H

#include <stdbool.h>

#include "mcpvisor/json.h"

/* X(ID, text, modern, batches, event_ids, priming) in order of date */
#define REVISION_TABLE(X)                                                                \
	X(2024_11_05, "2024-11-05", false, false, false, false)                          \
	X(2025_03_26, "2025-03-26", false, true, true, false)                            \
	X(2025_06_18, "2025-06-18", false, false, true, false)                           \
	X(2025_11_25, "2025-11-25", false, false, true, true)                            \
	X(2026_07_28, "2026-07-28", true, false, false, false)

enum revision {
	REVISION_NONE,
#define X(id, ...) REVISION_##id,
	REVISION_TABLE(X)
#undef X
	    REVISION_MAX
};

#define REVISION_LATEST_LEGACY REVISION_2025_11_25
#define REVISION_LATEST_MODERN REVISION_2026_07_28

const char *revision_text(enum revision r);
bool revision_is_modern(enum revision r);
bool revision_has_batches(enum revision r);
/* Whether events of a stream have ids, so that it can be taken up again; and whether a
 * stream begins with an event that has nothing but its id. */
bool revision_has_event_ids(enum revision r);
bool revision_has_priming(enum revision r);
/* From a JSON string; REVISION_NONE if it names none that we know. */
enum revision revision_parse(struct jtext t);

#endif
