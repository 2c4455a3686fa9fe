/* SPDX-License-Identifier: MIT */
/* What an upstream says of itself that it can do. */
#ifndef MCPVISOR_UPSTREAM_CAPS_H
#define MCPVISOR_UPSTREAM_CAPS_H

#include <stdbool.h>

#include "mcpvisor/json.h"
#include "mcpvisor/method.h"
#include "mcpvisor/revision.h"

/* Known once it was ready; kept while it is down. Bytes of truth, without gaps. */
struct upstream_caps {
	bool tools, prompts, resources, completions, logging;
	bool tools_changed, prompts_changed, resources_changed, subscribe;
	bool tasks, tasks_cancel; /* of tools/call, as 2025-11-25 has them */
	bool tasks_extension;
};

/* From a ServerCapabilities object of that revision. */
struct upstream_caps upstream_caps_read(
    enum revision revision, struct jtext capabilities);
/* Whether tasks of that kind can be made of its tools. */
bool upstream_caps_has_tasks(const struct upstream_caps *c, enum task_kind kind);

#endif
