/* SPDX-License-Identifier: MIT */
/*
 * Tells requests, notifications and responses apart.
 *
 * Owns: nothing. Driven by: links, for each message that was scanned.
 * Invariants: whatever is not certainly one of them is INVALID; bytes that
 * another parser could take for something else are never sent on.
 */
#include "mcpvisor/envelope.h"

#include <string.h>

static bool
is_null(struct jtext t)
{
	return t.n == 4 && memcmp(t.p, "null", 4) == 0;
}

static bool
is_absent_or_object(struct jtext t)
{
	return t.n == 0 || jtext_type(t) == '{';
}

static struct envelope
invalid(enum mv_err err, struct jtext id)
{
	struct envelope e = {.kind = ENVELOPE_INVALID, .err = err};

	if (json_is_id(id))
		e.id = id;
	return e;
}

static struct envelope
read_call(const char *base, const struct json_msg *msg, struct jtext id)
{
	struct jtext method = jtext_of(base, msg->slot[JSON_METHOD]);
	struct envelope e = {.kind = ENVELOPE_NOTIFICATION, .method = method};

	if (jtext_type(method) != '"' ||
	    !is_absent_or_object(jtext_of(base, msg->slot[JSON_PARAMS])))
		return invalid(MV_ENVELOPE, id);
	if (id.n == 0)
		return e;
	/* null is no notification: MCP forbids it as an id. */
	if (!json_is_id(id))
		return invalid(MV_ENVELOPE, id);
	e.kind = ENVELOPE_REQUEST;
	e.id = id;
	return e;
}

static struct envelope
read_result(const char *base, const struct json_msg *msg, struct jtext id)
{
	struct envelope e = {.kind = ENVELOPE_RESULT, .id = id};

	if (!json_is_id(id) || jtext_type(jtext_of(base, msg->slot[JSON_RESULT])) != '{')
		return invalid(MV_ENVELOPE, id);
	return e;
}

static struct envelope
read_error(const char *base, const struct json_msg *msg, struct jtext id)
{
	struct envelope e = {.kind = ENVELOPE_ERROR};
	int64_t code;

	if (jtext_type(jtext_of(base, msg->slot[JSON_ERROR])) != '{' ||
	    !json_int(jtext_of(base, msg->slot[JSON_E_CODE]), &code) ||
	    jtext_type(jtext_of(base, msg->slot[JSON_E_MESSAGE])) != '"')
		return invalid(MV_ENVELOPE, id);
	if (id.n == 0 || is_null(id))
		return e;
	if (!json_is_id(id))
		return invalid(MV_ENVELOPE, id);
	e.id = id;
	return e;
}

struct envelope
envelope_read(const char *base, const struct json_msg *msg)
{
	struct jtext id = jtext_of(base, msg->slot[JSON_ID]);
	bool method = msg->slot[JSON_METHOD].len > 0;
	bool result = msg->slot[JSON_RESULT].len > 0;
	bool error = msg->slot[JSON_ERROR].len > 0;
	struct envelope batch = {.kind = ENVELOPE_BATCH};

	if (msg->kind == JSON_K_ARRAY)
		return batch;
	if (msg->duplicate)
		return invalid(MV_DUPLICATE, id);
	if (msg->kind != JSON_K_OBJECT ||
	    !json_string_is(jtext_of(base, msg->slot[JSON_JSONRPC]), "2.0") ||
	    method + result + error != 1)
		return invalid(MV_ENVELOPE, id);
	if (method)
		return read_call(base, msg, id);
	return result ? read_result(base, msg, id) : read_error(base, msg, id);
}
