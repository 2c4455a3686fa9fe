/* SPDX-License-Identifier: MIT */
/*
 * The HTTP endpoint: Streamable HTTP of both eras at a path for each profile, and on
 * unix sockets newline-delimited messages as well; where wanted the HTTP+SSE of old.
 * Spec: basic/transports, Streamable HTTP (2025-03-26 to 2026-07-28), HTTP with SSE
 * (2024-11-05).
 */
#ifndef MCPVISOR_ENDPOINT_HTTP_H
#define MCPVISOR_ENDPOINT_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/gateway.h"
#include "mcpvisor/http_server.h"
#include "mcpvisor/mac.h"

struct endpoint_http;

/* One row of the conf: an address, a path there, and what it shows. */
struct endpoint_listen {
	const char *address; /* see listener_new; several rows may share one */
	const char *path;    /* "/mcp" */
	/* Where HTTP+SSE of 2024-11-05 is spoken as well; NULL: nowhere. */
	const char *sse_path;
	const char *profile; /* its name, part of what a session id is bound to; "" */
	unsigned view;
	const char *const *allowed_hosts, *const *allowed_origins; /* see http_guard */
	unsigned
	    mode; /* of a unix socket; 0: 0600. The first row of an address says it */
	const char *group; /* owner of a unix socket; NULL: ours */
};

struct endpoint_http_opts {
	struct http_server_opts http;
	uint32_t commit_ms; /* an answer that takes longer becomes a stream: 10000 */
	uint32_t session_s; /* life of a session id: 86400 */
	uint32_t session_idle_ms; /* then its memory goes, not its id: 120000 */
	/* The same for one that holds what its id does not say, and then is over:
	 * 1800000. */
	uint32_t session_state_idle_ms;
	unsigned sessions_max; /* in memory: 10000 */
	size_t replay_bytes; /* of a session's streams, kept for a client that lost them:
				1 MiB; 0: streams cannot be taken up again */
	uint32_t replay_ms;  /* so long an answer waits for its client: 300000 */
	uint32_t drain_ms;   /* calls may finish when we stop: 1000 */
	struct mac_key key;  /* of session ids */
	/* Sessions that must not come back after a restart. Both may be NULL. */
	void (*mark_gone)(void *arg, uint64_t serial, uint64_t expires_s);
	bool (*is_gone)(void *arg, uint64_t serial);
	void *gone_arg;
};
extern const struct endpoint_http_opts endpoint_http_defaults;

struct endpoint_http *endpoint_http_new(
    struct loop *l, struct gateway *g, const struct endpoint_http_opts *o);
/* Serves exactly these rows from now on (copied). Addresses that are bound already stay
 * so, new ones are bound, and only when all have worked the others are closed;
 * otherwise nothing has changed, and *et names the address. Connections live on, and so
 * do sessions and streams whose path and profile are still served somewhere; a path that
 * is gone answers 404, its streams end, its calls may finish. Lines on a unix socket get
 * what the first row of their address shows. MV_CONF, MV_BUSY, MV_SYSTEM; MV_STOPPING. */
enum mv_err endpoint_http_set_listen(struct endpoint_http *e,
    const struct endpoint_listen *rows, size_t n,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Other limits for what comes from now on. The key and the callbacks stay as they were.
 */
void endpoint_http_set_opts(struct endpoint_http *e, const struct endpoint_http_opts *o);
/* What row i became when it was bound ("127.0.0.1:43211"); NULL: no such row. Valid until
 * the next endpoint_http_set_listen. */
const char *endpoint_http_address(const struct endpoint_http *e, size_t i);
/* Serves one client that speaks lines on fd (taken); there may be too many, then it is
 * closed. buffered: n bytes that were read from it already. */
void endpoint_http_add_lines(struct endpoint_http *e, int fd, uid_t uid, unsigned view,
    const char *buffered, size_t n);
/* No new connections; calls may finish for drain_ms (now: none); then everything is
 * answered and closed and fn comes, once. */
void endpoint_http_stop(struct endpoint_http *e, bool now, void (*fn)(void *), void *arg);
void endpoint_http_free(struct endpoint_http *e);

struct endpoint_stats {
	size_t sessions;    /* of legacy clients over HTTP, in memory */
	size_t connections; /* of HTTP and of lines */
	size_t streams;	    /* event streams that are open */
	size_t in_flight;   /* requests, listens aside */
};
struct endpoint_stats endpoint_http_stats(const struct endpoint_http *e);

#endif
