/* SPDX-License-Identifier: MIT */
/*
 * The words of every error that we write ourselves: JSON-RPC error objects.
 *
 * A text names what failed, the constraint, the current value (64 bytes of it at most)
 * and whether a retry can help; it has no control characters and no path of this host.
 */
#ifndef MCPVISOR_WORDING_H
#define MCPVISOR_WORDING_H

#include <stdint.h>

#include "mcpvisor/client_caps.h"
#include "mcpvisor/err.h"
#include "mcpvisor/json.h"
#include "mcpvisor/method.h"
#include "mcpvisor/wording_table.h"

/* An upstream that owes an answer and will not give it. */
struct wording_failure {
	enum mv_err err;
	const char *upstream; /* NULL: none is to blame */
	const char *detail;   /* or NULL */
	enum method method;
	uint32_t limit_ms; /* of MV_TIMEOUT */
	bool has_acted;	   /* what was asked for may have been done nevertheless */
};
/* Appends {"code","message","data":{"upstream","reason","retryable"}}. */
void wording_put_failure(struct buf *out, const struct wording_failure *f);

/* The same as the result of a tools/call, with isError true and the message as its text.
 * members come first, each with its comma. */
void wording_put_failure_result(
    struct buf *out, const char *members, const struct wording_failure *f);
/* Such a result with an upstream's own error. message is a JSON string, whose escapes
 * stay as they are; absent: it gave none. */
void wording_put_error_result(
    struct buf *out, const char *members, int64_t code, struct jtext message);

/* Appends {"code","message"} of a sentence that others have put together; message is
 * plain text. */
void wording_put_error(struct buf *out, int code, const char *message);
/* "Unknown tool: NAME" and its like for what m names. name is a JSON string; absent: not
 * named at all. */
void wording_put_unknown(struct buf *out, enum method m, struct jtext name);
/* "Resource not found: URI" with data.uri; code differs by era. */
void wording_put_no_resource(struct buf *out, int code, struct jtext uri);
/* -32021: the client would have to declare these (client_caps.h). */
void wording_put_needed(struct buf *out, unsigned caps);
/* -32021: tasks are for those who declare their extension. */
void wording_put_needs_tasks(struct buf *out);
/* The result of a tools/call whose requestState is of no more use. */
void wording_put_call_again(struct buf *out, const char *members);
/* An upstream's error that must not keep its code: code in its place, and the one that it
 * had in data.upstreamCode if it has no data. error is an object. */
void wording_put_recoded(struct buf *out, struct jtext error, int code);
/* -32022 with data.supported (JSON text) and data.requested. */
void wording_put_revision(struct buf *out, const char *supported, struct jtext requested);

#endif
