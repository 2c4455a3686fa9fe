/* SPDX-License-Identifier: MIT */
/*
 * What kind of JSON-RPC 2.0 message a scanned text is.
 * Spec: basic/index, Messages (every revision); JSON-RPC 2.0 sections 4 to 6.
 */
#ifndef MCPVISOR_ENVELOPE_H
#define MCPVISOR_ENVELOPE_H

#include "mcpvisor/json.h"

enum envelope_kind {
	ENVELOPE_REQUEST,
	ENVELOPE_NOTIFICATION,
	ENVELOPE_RESULT,
	ENVELOPE_ERROR,
	ENVELOPE_BATCH,	  /* a top-level array, not looked into */
	ENVELOPE_INVALID, /* JSON, but none of the above */
};

struct envelope {
	enum envelope_kind kind;
	enum mv_err err;     /* for INVALID: MV_ENVELOPE or MV_DUPLICATE */
	struct jtext id;     /* absent if none; for INVALID only a usable one; null on an
				ENVELOPE_ERROR is absent */
	struct jtext method; /* with quotes */
};

/* Rules: jsonrpc must be "2.0"; method a string; params absent or an object (an
 * array is INVALID: MCP has no positional params); a request's id a
 * json_is_id; result must be an object; error an object with an integer code
 * and a string message; exactly one of method, result, error. A response with
 * both result and error is INVALID with its id. */
struct envelope envelope_read(const char *base, const struct json_msg *msg);

#endif
