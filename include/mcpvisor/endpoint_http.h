/* SPDX-License-Identifier: MIT */
/*
 * The HTTP endpoint: Streamable HTTP of both eras at one path, and on unix sockets
 * newline-delimited messages as well.
 * Spec: basic/transports, Streamable HTTP (2025-03-26 to 2026-07-28).
 */
#ifndef MCPVISOR_ENDPOINT_HTTP_H
#define MCPVISOR_ENDPOINT_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/gateway.h"
#include "mcpvisor/http_guard.h"
#include "mcpvisor/http_server.h"
#include "mcpvisor/mac.h"

struct endpoint_http;

struct endpoint_http_opts {
	const char *path; /* "/mcp" */
	struct http_guard guard;
	struct http_server_opts http;
	uint32_t commit_ms; /* an answer that takes longer becomes a stream: 10000 */
	uint32_t session_s; /* life of a session id: 86400 */
	uint32_t session_idle_ms; /* then its memory goes, not its id: 120000 */
	/* The same for one that holds what its id does not say, and then is over:
	 * 1800000. */
	uint32_t session_state_idle_ms;
	unsigned sessions_max; /* in memory: 10000 */
	uint32_t drain_ms;     /* calls may finish when we stop: 1000 */
	struct mac_key key;    /* of session ids */
	/* Sessions that must not come back after a restart. Both may be NULL. */
	void (*mark_gone)(void *arg, uint64_t serial, uint64_t expires_s);
	bool (*is_gone)(void *arg, uint64_t serial);
	void *gone_arg;
};
extern const struct endpoint_http_opts endpoint_http_defaults;

struct endpoint_http *endpoint_http_new(
    struct loop *l, struct gateway *g, const struct endpoint_http_opts *o);
/* Binds one more address (see listener_new). bound (may be NULL) is what it became, valid
 * as long as the endpoint. */
enum mv_err endpoint_http_listen(struct endpoint_http *e, const char *address,
    const char **bound, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* No new connections; calls may finish for drain_ms (now: none); then everything is
 * answered and closed and fn comes, once. */
void endpoint_http_stop(struct endpoint_http *e, bool now, void (*fn)(void *), void *arg);
void endpoint_http_free(struct endpoint_http *e);
size_t endpoint_http_sessions(const struct endpoint_http *e);

#endif
