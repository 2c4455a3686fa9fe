/* SPDX-License-Identifier: MIT */
/*
 * The table of methods, and the log levels of notifications/message.
 *
 * Owns: both tables. Driven by: the adapters and the router.
 */
#include "mcpvisor/method.h"

#include <string.h>

struct method_row {
	const char *name;
	size_t len;
	unsigned from;
	bool legacy, modern, notification;
};

static const struct method_row rows[METHOD_MAX] = {
    [METHOD_UNKNOWN] = {"unknown", 0, 0, false, false, false},
#define X(id, name, from, legacy, modern, notification)                                  \
	[METHOD_##id] = {name, sizeof(name) - 1, from, legacy, modern, notification},
    METHOD_TABLE(X)
#undef X
};

enum method
method_parse(struct jtext t)
{
	bool escaped;
	unsigned m;

	if (jtext_type(t) != '"' || t.n < 2)
		return METHOD_UNKNOWN;
	escaped = memchr(t.p, '\\', t.n) != NULL;
	for (m = METHOD_UNKNOWN + 1; m < METHOD_MAX; m++) {
		if (escaped ? json_string_is(t, rows[m].name)
			    : rows[m].len == t.n - 2 &&
				  memcmp(rows[m].name, t.p + 1, t.n - 2) == 0)
			return (enum method)m;
	}
	return METHOD_UNKNOWN;
}

const char *
method_name(enum method m)
{
	return rows[m].name;
}

bool
method_is_from(enum method m, enum method_from from)
{
	return (rows[m].from & from) != 0;
}

bool
method_is_in_era(enum method m, bool modern)
{
	return modern ? rows[m].modern : rows[m].legacy;
}

bool
method_is_notification(enum method m)
{
	return rows[m].notification;
}

enum json_slot
method_name_slot(enum method m)
{
	switch ((int)m) {
	case METHOD_TOOLS_CALL:
	case METHOD_PROMPTS_GET:
		return JSON_P_NAME;
	case METHOD_RESOURCES_READ:
		return JSON_P_URI;
	case METHOD_TASKS_GET:
	case METHOD_TASKS_RESULT:
	case METHOD_TASKS_UPDATE:
	case METHOD_TASKS_CANCEL:
		return JSON_P_TASK_ID;
	default:
		return JSON_SLOT_MAX;
	}
}

bool
method_may_require_input(enum method m)
{
	return m == METHOD_TOOLS_CALL || m == METHOD_PROMPTS_GET ||
	       m == METHOD_RESOURCES_READ;
}

static const char *const levels[MCP_LV_MAX] = {
    [MCP_LV_DEBUG] = "debug",
    [MCP_LV_INFO] = "info",
    [MCP_LV_NOTICE] = "notice",
    [MCP_LV_WARNING] = "warning",
    [MCP_LV_ERROR] = "error",
    [MCP_LV_CRITICAL] = "critical",
    [MCP_LV_ALERT] = "alert",
    [MCP_LV_EMERGENCY] = "emergency",
};

enum mcp_level
mcp_level_parse(struct jtext t)
{
	unsigned lv;

	for (lv = 0; lv < MCP_LV_MAX; lv++) {
		if (json_string_is(t, levels[lv]))
			return (enum mcp_level)lv;
	}
	return MCP_LV_MAX;
}

const char *
mcp_level_text(enum mcp_level lv)
{
	return lv < MCP_LV_MAX ? levels[lv] : "none";
}
