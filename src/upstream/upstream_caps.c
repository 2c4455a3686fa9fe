/* SPDX-License-Identifier: MIT */
/*
 * What an upstream says of itself that it can do: read from its capabilities.
 *
 * Owns: nothing. Driven by: its answer to server/discover or initialize.
 * Invariants: what a revision does not have is never taken from one that speaks it.
 */
#include "mcpvisor/upstream_caps.h"

static bool
cap_flag(struct jtext caps, const char *cap, const char *flag)
{
	return json_is_true(json_member(json_member(caps, cap), flag));
}

static bool
cap_has(struct jtext caps, const char *cap)
{
	return jtext_type(json_member(caps, cap)) == '{';
}

struct upstream_caps
upstream_caps_read(enum revision revision, struct jtext capabilities)
{
	struct jtext caps = capabilities, tasks = json_member(caps, "tasks");
	struct jtext tools = json_member(json_member(tasks, "requests"), "tools");
	bool has_core = revision == REVISION_2025_11_25 && cap_has(tools, "call");

	return (struct upstream_caps){
	    .tools = cap_has(caps, "tools"),
	    .prompts = cap_has(caps, "prompts"),
	    .resources = cap_has(caps, "resources"),
	    /* The capability came with 2025-03-26; before, one just asked. */
	    .completions =
		cap_has(caps, "completions") || revision == REVISION_2024_11_05,
	    .logging = cap_has(caps, "logging"),
	    .tools_changed = cap_flag(caps, "tools", "listChanged"),
	    .prompts_changed = cap_flag(caps, "prompts", "listChanged"),
	    .resources_changed = cap_flag(caps, "resources", "listChanged"),
	    .subscribe = cap_flag(caps, "resources", "subscribe"),
	    .tasks = has_core,
	    .tasks_cancel = has_core && cap_has(tasks, "cancel"),
	    .tasks_extension =
		revision_is_modern(revision) &&
		cap_has(json_member(caps, "extensions"), "io.modelcontextprotocol/tasks"),
	};
}

bool
upstream_caps_has_tasks(const struct upstream_caps *c, enum task_kind kind)
{
	switch (kind) {
	case TASKS_NONE:
		return false;
	case TASKS_CORE:
		return c->tasks;
	case TASKS_EXTENSION:
		return c->tasks_extension;
	}
	return false;
}
