/* SPDX-License-Identifier: MIT */
/*
 * Our HTTP/1.1 server: connections over io/stream, keep-alive, pipelining, limits, and
 * one exchange for each request. It knows nothing of MCP.
 *
 * RFC 9110, 9112; Server-Sent Events as WHATWG HTML 9.2 has them.
 */
#ifndef MCPVISOR_HTTP_SERVER_H
#define MCPVISOR_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "mcpvisor/err.h"
#include "mcpvisor/http_parse.h"

struct loop;
struct http_server;
struct http_exchange;

struct http_server_opts {
	struct http_limits limits; /* body_max: CAP_MESSAGE_BYTES */
	unsigned connections_max;  /* 1000; one more gets 503 with Retry-After and goes */
	unsigned pipeline_max; /* exchanges of one connection that are open: 64; then its
				  input waits */
	uint32_t head_ms;      /* from first byte to the whole head: 10000 */
	uint32_t body_ms;      /* without a byte of the body: 30000 */
	uint32_t idle_ms;      /* keep-alive: 60000 */
	uint32_t heartbeat_ms; /* comment on a silent event stream: 15000 */
	size_t out_max;	       /* unread output of one connection: CAP_OUT_BYTES */
};
extern const struct http_server_opts http_server_defaults;

struct http_server_cb {
	/* The head is in and sound, and memory is not short (then it is answered with
	 * 503). Return 0 to take the body, or a status to refuse (the
	 * reply is the callee's by http_reply, or the server's plain one). *user is kept
	 * with the exchange. */
	int (*on_head)(void *arg, struct http_exchange *x, const struct http_head *head,
	    void **user);
	/* The whole request is in; head and body are valid until this returns. The callee
	 * answers now or later. */
	void (*on_request)(void *arg, struct http_exchange *x, void *user,
	    const struct http_head *head, const char *body, size_t n);
	/* The exchange is over: answered and handed to the connection (gone false), or
	 * its connection has gone before the end of its answer (gone true; half-close of
	 * the client counts). Comes exactly once for each exchange whose on_head
	 * returned; x is invalid after. */
	void (*on_end)(void *arg, struct http_exchange *x, void *user, bool gone);
	/* A connection that was added has gone, after its exchanges; once for each, maybe
	 * before http_server_add returns. May be NULL. */
	void (*on_close)(void *arg, void *door);
};

/* Never calls back before returning. */
struct http_server *http_server_new(struct loop *l, const struct http_server_opts *o,
    const struct http_server_cb *cb, void *arg);
/* Ends every connection; on_end comes for open exchanges, before it returns, and nothing
 * after. Allowed inside callbacks; an exchange whose on_head has not returned then gets
 * no on_end. */
void http_server_free(struct http_server *s);
/* A connection that was accepted; fd is taken. uid as listener says; door is what
 * http_exchange_door gives back. */
void http_server_add(struct http_server *s, int fd, uid_t uid, void *door);
/* Limits of what comes from now on; a connection keeps those of its input. */
void http_server_set_opts(struct http_server *s, const struct http_server_opts *o);
/* No more keep-alive; open exchanges may end. fn comes when the last connection has gone.
 */
void http_server_drain(struct http_server *s, void (*fn)(void *), void *arg);
unsigned http_server_connections(const struct http_server *s);

uid_t http_exchange_uid(const struct http_exchange *x);
void *http_exchange_door(const struct http_exchange *x);

/* A whole answer: extra holds header lines, each "Name: value\r\n" (may be NULL); body in
 * pieces, copied once. type NULL: no body, no Content-Type. Content-Length, Date and
 * Connection are added. Answers of pipelined requests leave in order. Ends the exchange;
 * on_end comes later, never before returning. After the client has gone it does nothing.
 */
void http_reply(struct http_exchange *x, int status, const char *extra, const char *type,
    const struct iovec *body, int n);
/* Begins an event stream: 200, text/event-stream, no-cache, X-Accel-Buffering: no,
 * chunked (or, for HTTP/1.0, until close). Heartbeats start. */
void http_stream_begin(struct http_exchange *x, const char *extra);
bool http_stream_is_open(const struct http_exchange *x);
/* One event: "id: ID\n" if id, "event: message\n" is left out, "data: " + the pieces
 * (which hold no raw newline) + "\n\n". MV_CLOSED, MV_BUSY (the reader is too slow: the
 * connection ends and on_end comes), MV_NOMEM. */
enum mv_err http_stream_event(struct http_exchange *x, const char *id,
    const struct iovec *data, int n) MCPVISOR_MUST_CHECK;
/* The same with "event: TYPE\n" and no id. */
enum mv_err http_stream_typed_event(struct http_exchange *x, const char *type,
    const struct iovec *data, int n) MCPVISOR_MUST_CHECK;
/* Tells the client how long to wait before it comes back. */
void http_stream_retry(struct http_exchange *x, uint32_t ms);
/* Ends the stream and the exchange. */
void http_stream_end(struct http_exchange *x);

#endif
