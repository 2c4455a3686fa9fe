/* SPDX-License-Identifier: MIT */
/*
 * Error identities and the one table that says what each means to an
 * operator and to a client.
 */
#ifndef MCPVISOR_ERR_H
#define MCPVISOR_ERR_H

#include <stdbool.h>

/* X(NAME, reason token, JSON-RPC code, retryable, text) */
#define MV_ERR_TABLE(X)                                                                  \
	X(OK, "ok", 0, false, "success")                                                 \
	X(NOMEM, "no_memory", -32603, true, "out of memory")                             \
	X(SYSTEM, "system", -32603, true, "a system call failed")                        \
	X(CONF, "configuration", -32603, false, "the configuration is not valid")        \
	X(SYNTAX, "syntax", -32700, false, "not valid JSON")                             \
	X(UTF8, "utf8", -32700, false, "not valid UTF-8")                                \
	X(TOO_DEEP, "too_deep", -32600, false, "nested too deep")                        \
	X(TOO_LONG, "too_long", -32600, false, "message over the size limit")            \
	X(ENVELOPE, "envelope", -32600, false, "not a JSON-RPC 2.0 message")             \
	X(DUPLICATE, "duplicate_member", -32600, false,                                  \
	    "a member that decides the routing appears twice")                           \
	X(NOT_FOUND, "not_found", -32602, false, "no such entry")                        \
	X(NO_METHOD, "no_method", -32601, false, "method not found")                     \
	X(PARAMS, "params", -32602, false, "invalid params")                             \
	X(CLOSED, "closed", -32603, true, "the connection is closed")                    \
	X(SPAWN, "spawn_failed", -32603, true, "the command could not be started")       \
	X(DIED, "died", -32603, true, "the upstream ended")                              \
	X(STARTING, "starting", -32603, true, "the upstream is not ready")               \
	X(BACKOFF, "backoff", -32603, true, "the upstream waits for its restart")        \
	X(PARKED, "parked", -32603, false, "the upstream failed too often")              \
	X(UNREACHABLE, "unreachable", -32603, true, "the upstream cannot be reached")    \
	X(AUTH, "auth", -32603, false, "the upstream refused our credentials")           \
	X(HTTP, "http_status", -32603, true, "the upstream answered with an HTTP error") \
	X(TIMEOUT, "timeout", -32603, true, "no answer within the time limit")           \
	X(BUSY, "busy", -32603, true, "the queue of the upstream is full")               \
	X(PROTOCOL, "protocol", -32603, false, "the upstream broke the protocol")        \
	X(UNSUPPORTED, "unsupported", -32603, false, "not supported")                    \
	X(STOPPING, "stopping", -32603, true, "mcpvisor is stopping")                    \
	X(CANCELLED, "cancelled", -32603, false, "cancelled by the client")

enum mv_err {
#define X(name, reason, code, retry, text) MV_##name,
	MV_ERR_TABLE(X)
#undef X
	    MV_ERR_MAX
};

#define MCPVISOR_MUST_CHECK __attribute__((warn_unused_result))

/* Detail for a human: configuration and start-up only. Truncated, never fails. */
struct mv_errtext {
	char file[256];
	int line; /* 0: none */
	char message[512];
};

/* All return constant text or values; an unknown value reads as MV_SYSTEM. */
const char *mv_err_text(enum mv_err err);
const char *mv_err_reason(enum mv_err err);
int mv_err_rpc_code(enum mv_err err);
bool mv_err_retryable(enum mv_err err);

/* Sets message (printf form); file and line stay as they are. t may be NULL. */
void mv_errtext_set(struct mv_errtext *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Our own faults only, never a peer's bytes. Stays on in release builds. */
#define MCPVISOR_ASSERT(cond)                                                            \
	do {                                                                             \
		if (!(cond))                                                             \
			mv_assert_failed(#cond, __FILE__, __LINE__);                     \
	} while (0)
_Noreturn void mv_assert_failed(const char *cond, const char *file, int line);

#endif
