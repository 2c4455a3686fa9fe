/* SPDX-License-Identifier: MIT */
/*
 * The method table: one row a request or notification that we know, and which
 * eras have it.
 */
#ifndef MCPVISOR_METHOD_H
#define MCPVISOR_METHOD_H

#include <stdbool.h>

#include "mcpvisor/json.h"

enum method_from { METHOD_FROM_CLIENT = 1, METHOD_FROM_SERVER = 2 };

/* X(ID, name, from, legacy, modern, is a notification) */
#define METHOD_TABLE(X)                                                                  \
	X(INITIALIZE, "initialize", 1, true, false, false)                               \
	X(DISCOVER, "server/discover", 1, false, true, false)                            \
	X(PING, "ping", 3, true, false, false)                                           \
	X(TOOLS_LIST, "tools/list", 1, true, true, false)                                \
	X(TOOLS_CALL, "tools/call", 1, true, true, false)                                \
	X(PROMPTS_LIST, "prompts/list", 1, true, true, false)                            \
	X(PROMPTS_GET, "prompts/get", 1, true, true, false)                              \
	X(RESOURCES_LIST, "resources/list", 1, true, true, false)                        \
	X(TEMPLATES_LIST, "resources/templates/list", 1, true, true, false)              \
	X(RESOURCES_READ, "resources/read", 1, true, true, false)                        \
	X(SUBSCRIBE, "resources/subscribe", 1, true, false, false)                       \
	X(UNSUBSCRIBE, "resources/unsubscribe", 1, true, false, false)                   \
	X(LISTEN, "subscriptions/listen", 1, false, true, false)                         \
	X(COMPLETE, "completion/complete", 1, true, true, false)                         \
	X(SET_LEVEL, "logging/setLevel", 1, true, false, false)                          \
	X(N_INITIALIZED, "notifications/initialized", 1, true, false, true)              \
	X(N_CANCELLED, "notifications/cancelled", 3, true, true, true)                   \
	X(N_PROGRESS, "notifications/progress", 3, true, true, true)                     \
	X(N_MESSAGE, "notifications/message", 2, true, true, true)                       \
	X(N_TOOLS_CHANGED, "notifications/tools/list_changed", 2, true, true, true)      \
	X(N_PROMPTS_CHANGED, "notifications/prompts/list_changed", 2, true, true, true)  \
	X(N_RESOURCES_CHANGED, "notifications/resources/list_changed", 2, true, true,    \
	    true)                                                                        \
	X(N_UPDATED, "notifications/resources/updated", 2, true, true, true)             \
	X(N_ACKNOWLEDGED, "notifications/subscriptions/acknowledged", 2, false, true,    \
	    true)                                                                        \
	X(N_ROOTS_CHANGED, "notifications/roots/list_changed", 1, true, false, true)     \
	X(SAMPLE, "sampling/createMessage", 2, true, false, false)                       \
	X(ELICIT, "elicitation/create", 2, true, false, false)                           \
	X(ROOTS, "roots/list", 2, true, false, false)                                    \
	X(N_ELICITED, "notifications/elicitation/complete", 2, true, false, true)        \
	X(TASKS_GET, "tasks/get", 1, true, true, false)                                  \
	X(TASKS_RESULT, "tasks/result", 1, true, false, false)                           \
	X(TASKS_UPDATE, "tasks/update", 1, false, true, false)                           \
	X(TASKS_CANCEL, "tasks/cancel", 1, true, true, false)                            \
	X(TASKS_LIST, "tasks/list", 1, true, false, false)                               \
	X(N_TASK_STATUS, "notifications/tasks/status", 2, true, false, true)

enum method {
	METHOD_UNKNOWN,
#define X(id, name, from, legacy, modern, notification) METHOD_##id,
	METHOD_TABLE(X)
#undef X
	    METHOD_MAX
};

/* From a JSON string (escapes decoded); METHOD_UNKNOWN if no row has it. */
enum method method_parse(struct jtext t);
const char *method_name(enum method m);
bool method_is_from(enum method m, enum method_from from);
bool method_is_in_era(enum method m, bool modern);
bool method_is_notification(enum method m);

/* The member of params that names what m is about, as Mcp-Name says it once more;
 * JSON_SLOT_MAX: there is none. */
enum json_slot method_name_slot(enum method m);

/* Whether a result of m may be input_required. Spec: 2026-07-28 basic/patterns/mrtr. */
bool method_may_require_input(enum method m);

/* The two ways of tasks, which have nothing but the word in common. */
enum task_kind {
	TASKS_NONE,
	TASKS_CORE,	/* of 2025-11-25: the client asks for one */
	TASKS_EXTENSION /* io.modelcontextprotocol/tasks: the server makes one */
};

/* Log levels of notifications/message, RFC 5424 order. */
enum mcp_level {
	MCP_LV_DEBUG,
	MCP_LV_INFO,
	MCP_LV_NOTICE,
	MCP_LV_WARNING,
	MCP_LV_ERROR,
	MCP_LV_CRITICAL,
	MCP_LV_ALERT,
	MCP_LV_EMERGENCY,
	MCP_LV_MAX /* also: none */
};
enum mcp_level mcp_level_parse(struct jtext t); /* MCP_LV_MAX: not a level */
const char *mcp_level_text(enum mcp_level lv);

#endif
