/* SPDX-License-Identifier: MIT */
/* A client's message on its way to an upstream, and a copy of it for when it has to wait.
 */
#ifndef MCPVISOR_UPCALL_H
#define MCPVISOR_UPCALL_H

#include "mcpvisor/json.h"
#include "mcpvisor/method.h"

/* A client's message on its way to the owner. Borrowed for the call. */
struct upstream_call {
	enum method method;
	const char *base;
	size_t len;
	const struct json_msg *json;
	struct json_edit
	    target; /* name or URI as the upstream knows it; put NULL: none */
	/* Arguments that replace the client's, or, with len 0, go in at off after a
	 * comma or "{" that they bring along; put NULL: none. */
	struct json_edit arguments;
	/* Answers to an input_required, members with a comma at their end, that go in
	 * behind the "{" of params; put NULL: none. */
	struct json_edit input;
	struct jtext client_info; /* for a message that carries none itself */
	struct jtext client_caps; /* the same: a ClientCapabilities object; absent: {} */
	/* It answers a requestState, which is not ours: none but a modern one can have
	 * given it out. */
	bool has_state;
	enum mcp_level level; /* MCP_LV_MAX: none asked for */
	enum task_kind tasks; /* that its client knows */
};

/* A call with a copy of all bytes it needs, for one that has to wait. */
struct upstream_call_copy {
	struct upstream_call call; /* points into here */
	struct json_msg json;
	size_t len;
	char bytes[];
};
/* All that a copy of c takes. */
size_t upstream_call_bytes(const struct upstream_call *c);
struct upstream_call_copy *upstream_call_dup(const struct upstream_call *c); /* or NULL */
void upstream_call_free(struct upstream_call_copy *c); /* NULL is allowed */

#endif
