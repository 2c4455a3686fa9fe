/* SPDX-License-Identifier: MIT */
/*
 * The revisions of the protocol and what differs between them. Only rpc and
 * the adapters of front and upstream ask.
 */
#ifndef MCPVISOR_REVISION_H
#define MCPVISOR_REVISION_H

#include <stdbool.h>

#include "mcpvisor/json.h"

/* X(ID, text, modern, batches) in order of date */
#define REVISION_TABLE(X)                                                                \
	X(2024_11_05, "2024-11-05", false, false)                                        \
	X(2025_03_26, "2025-03-26", false, true)                                         \
	X(2025_06_18, "2025-06-18", false, false)                                        \
	X(2025_11_25, "2025-11-25", false, false)                                        \
	X(2026_07_28, "2026-07-28", true, false)

enum revision {
	REVISION_NONE,
#define X(id, text, modern, batches) REVISION_##id,
	REVISION_TABLE(X)
#undef X
	    REVISION_MAX
};

#define REVISION_LATEST_LEGACY REVISION_2025_11_25
#define REVISION_LATEST_MODERN REVISION_2026_07_28

const char *revision_text(enum revision r);
bool revision_is_modern(enum revision r);
bool revision_has_batches(enum revision r);
/* From a JSON string; REVISION_NONE if it names none that we know. */
enum revision revision_parse(struct jtext t);

#endif
