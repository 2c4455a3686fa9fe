/* SPDX-License-Identifier: MIT */
/*
 * The scanner: one validating, resumable, non-recursive pass over one JSON
 * text (RFC 8259) that records where the few members are that we act on.
 *
 * Strict: valid UTF-8 (no surrogates, no overlong forms), no control bytes in
 * strings, no leading zeros, depth bounded. Escaped lone surrogates, any number
 * and duplicate members elsewhere are well-formed and pass. Offsets count from
 * the first byte fed. Keys are compared after decoding their escapes.
 */
#ifndef MCPVISOR_JSON_SCAN_H
#define MCPVISOR_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/err.h"

/* Objects whose members are looked at. */
enum json_level {
	JSON_LV_OTHER,
	JSON_LV_TOP,
	JSON_LV_PARAMS,	     /* params */
	JSON_LV_META,	     /* params._meta */
	JSON_LV_REF,	     /* params.ref */
	JSON_LV_RESULT,	     /* result */
	JSON_LV_RESULT_META, /* result._meta */
	JSON_LV_ERROR,	     /* error */
	JSON_LV_MAX
};

/* X(SLOT, level, key, level of its value if that is an object, routes)
 * routes: a second member with this key, or one equal under case folding
 * (U+017F as s, U+212A as k), sets json_msg.duplicate. */
#define JSON_SLOT_TABLE(X)                                                               \
	X(JSONRPC, TOP, "jsonrpc", OTHER, true)                                          \
	X(ID, TOP, "id", OTHER, true)                                                    \
	X(METHOD, TOP, "method", OTHER, true)                                            \
	X(PARAMS, TOP, "params", PARAMS, true)                                           \
	X(RESULT, TOP, "result", RESULT, true)                                           \
	X(ERROR, TOP, "error", ERROR, true)                                              \
	X(P_NAME, PARAMS, "name", OTHER, true)                                           \
	X(P_URI, PARAMS, "uri", OTHER, true)                                             \
	X(P_META, PARAMS, "_meta", META, true)                                           \
	X(P_ARGUMENTS, PARAMS, "arguments", OTHER, false)                                \
	X(P_CURSOR, PARAMS, "cursor", OTHER, true)                                       \
	X(P_REF, PARAMS, "ref", REF, true)                                               \
	X(P_REQUEST_ID, PARAMS, "requestId", OTHER, true)                                \
	X(P_PROGRESS_TOKEN, PARAMS, "progressToken", OTHER, true)                        \
	X(P_LEVEL, PARAMS, "level", OTHER, true)                                         \
	X(P_VERSION, PARAMS, "protocolVersion", OTHER, true)                             \
	X(P_CAPABILITIES, PARAMS, "capabilities", OTHER, true)                           \
	X(P_CLIENT_INFO, PARAMS, "clientInfo", OTHER, true)                              \
	X(P_INPUT_RESPONSES, PARAMS, "inputResponses", OTHER, false)                     \
	X(P_REQUEST_STATE, PARAMS, "requestState", OTHER, false)                         \
	X(P_NOTIFICATIONS, PARAMS, "notifications", OTHER, true)                         \
	X(P_TASK, PARAMS, "task", OTHER, true)                                           \
	X(P_TASK_ID, PARAMS, "taskId", OTHER, true)                                      \
	X(M_PROGRESS_TOKEN, META, "progressToken", OTHER, true)                          \
	X(M_VERSION, META, "io.modelcontextprotocol/protocolVersion", OTHER, true)       \
	X(M_CLIENT_INFO, META, "io.modelcontextprotocol/clientInfo", OTHER, true)        \
	X(M_CLIENT_CAPS, META, "io.modelcontextprotocol/clientCapabilities", OTHER,      \
	    true)                                                                        \
	X(M_LOG_LEVEL, META, "io.modelcontextprotocol/logLevel", OTHER, true)            \
	X(M_TRACEPARENT, META, "traceparent", OTHER, false)                              \
	X(M_SUBSCRIPTION, META, "io.modelcontextprotocol/subscriptionId", OTHER, true)   \
	X(M_RELATED_TASK, META, "io.modelcontextprotocol/related-task", OTHER, true)     \
	X(R_TYPE, REF, "type", OTHER, true)                                              \
	X(R_NAME, REF, "name", OTHER, true)                                              \
	X(R_URI, REF, "uri", OTHER, true)                                                \
	X(RESULT_TYPE, RESULT, "resultType", OTHER, false)                               \
	X(IS_ERROR, RESULT, "isError", OTHER, false)                                     \
	X(TTL_MS, RESULT, "ttlMs", OTHER, false)                                         \
	X(CACHE_SCOPE, RESULT, "cacheScope", OTHER, false)                               \
	X(RESULT_TASK, RESULT, "task", OTHER, false)                                     \
	X(RESULT_TASK_ID, RESULT, "taskId", OTHER, false)                                \
	X(RESULT_META, RESULT, "_meta", RESULT_META, false)                              \
	X(RM_SUBSCRIPTION, RESULT_META, "io.modelcontextprotocol/subscriptionId", OTHER, \
	    false)                                                                       \
	X(RM_RELATED_TASK, RESULT_META, "io.modelcontextprotocol/related-task", OTHER,   \
	    false)                                                                       \
	X(E_CODE, ERROR, "code", OTHER, false)                                           \
	X(E_MESSAGE, ERROR, "message", OTHER, false)                                     \
	X(E_DATA, ERROR, "data", OTHER, false)

enum json_slot {
#define X(slot, level, key, inner, routes) JSON_##slot,
	JSON_SLOT_TABLE(X)
#undef X
	    JSON_SLOT_MAX
};

/* Bytes of a value, brackets and quotes included. len 0: absent. */
struct json_span {
	uint32_t off;
	uint32_t len;
};

/* The white space that may stand between tokens. */
static inline bool
json_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

enum json_kind { JSON_K_NONE, JSON_K_OBJECT, JSON_K_ARRAY, JSON_K_STRING, JSON_K_SCALAR };

/* What a scan found. For a repeated member the first one is recorded. */
struct json_msg {
	struct json_span slot[JSON_SLOT_MAX];
	uint32_t key_off[JSON_SLOT_MAX]; /* opening quote of the member's key */
	enum json_kind kind;		 /* of the whole text */
	bool duplicate;
	/* Values of string members "uri" anywhere inside result, in order, the
	 * first CAP_RESULT_URIS of them; for scanners that asked for it. */
	uint32_t n_uris;
	struct json_span uris[CAP_RESULT_URIS];
};

/* Deepest container that can be the value of a slot. */
#define JSON_SCAN_NEST 4

struct json_scan {
	struct json_msg *msg;
	uint64_t pos; /* bytes fed */
	unsigned max_depth;
	unsigned depth;
	bool want_uris;
	enum mv_err err;
	/* The machine's state; nobody else's business. */
	struct {
		const unsigned char *chunk; /* bytes being fed */
		uint8_t state;
		uint8_t level;	 /* of the innermost open container */
		uint8_t slot;	 /* slot that the next value fills */
		uint8_t literal; /* which of true, false, null */
		uint8_t literal_pos;
		uint8_t utf8_left, utf8_lo, utf8_hi;
		uint8_t hex_left;
		uint8_t key_len;
		bool in_key, key_wanted, key_lost; /* lost: equals no key of ours */
		bool is_uri;			   /* the next value has key "uri" */
		uint16_t hex;
		uint32_t key_off, value_off;
		uint32_t result_depth; /* depth of the recorded result, 0: not in it */
		uint32_t skipped;      /* open containers below the depth bound */
		uint64_t seen;	       /* slots whose key, or one like it, was seen */
		/* By depth of an open container; deeper ones are never looked at. */
		uint8_t levels[JSON_SCAN_NEST + 1];
		uint8_t slots[JSON_SCAN_NEST + 1];
		uint32_t opened[JSON_SCAN_NEST + 1];
		/* From here on not cleared at the start. */
		unsigned char key[72];
		uint64_t is_array[(CAP_JSON_DEPTH + 64) / 64];
	} st;
};

/* Starts a text; clears *msg (all slots absent; uris only by count). */
void json_scan_init(struct json_scan *s, struct json_msg *msg, bool want_uris);
/* Feeds the next n bytes. MV_OK as long as the text can still become valid;
 * MV_SYNTAX, MV_UTF8, MV_TOO_DEEP are final; so is MV_TOO_LONG, past UINT32_MAX.
 * What was found before is kept, so that the id of a bad message may still be
 * known: a slot is set when its value is complete. After MV_UTF8 and MV_TOO_DEEP
 * the machine reads on for that reason (many peers write the id last), so it is
 * worth feeding it the rest. */
enum mv_err json_scan_feed(
    struct json_scan *s, const char *bytes, size_t n) MCPVISOR_MUST_CHECK;
/* Ends the text: MV_OK if it is one complete value. */
enum mv_err json_scan_end(struct json_scan *s) MCPVISOR_MUST_CHECK;
/* The three in one. */
enum mv_err json_scan(
    struct json_msg *msg, const char *p, size_t n, bool want_uris) MCPVISOR_MUST_CHECK;

#endif
