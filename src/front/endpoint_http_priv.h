/* SPDX-License-Identifier: MIT */
/* What the files of the HTTP endpoint share. */
#ifndef MCPVISOR_ENDPOINT_HTTP_PRIV_H
#define MCPVISOR_ENDPOINT_HTTP_PRIV_H

#include "mcpvisor/client.h"
#include "mcpvisor/endpoint_http.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/link.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/session_id.h"

#define ENDPOINT_MAGIC	0x65687474u
#define HTTP_CALL_MAGIC 0x6863616cu
#define LISTENERS_MAX	16
#define EXTRA_BYTES	1600
#define HTTP_ALLOW_ALL	"Allow: POST, GET, DELETE, OPTIONS\r\n"

struct socket_client;

/* One exchange as MCP sees it; lives until both it and its request are over. */
struct http_call {
	unsigned magic;
	struct endpoint_http *e;
	struct http_exchange *x; /* NULL: over */
	struct client_port port;
	struct http_session *session; /* whose message or stream it is */
	struct request *request;
	const struct http_head *head; /* while its message is looked at */
	struct http_call *next,
	    **prev; /* in the queue of those that may become streams */
	uint64_t due_ms;
	struct http_call
	    *older;	  /* the session's stream that was opened before this one */
	bool no_batches;  /* its version header names a revision without */
	bool no_revision; /* ... or none at all */
	bool batch_open, answered, takes_json, takes_stream, is_get;
	char origin[280]; /* to allow in the answer; "" if none */
};

/* A legacy session in memory. */
struct http_session {
	struct endpoint_http *e;
	struct client *client;
	struct http_call *stream; /* the newest GET; the others hang on to it */
	struct session_id id;
	char text[SESSION_ID_TEXT_MAX + 1]; /* "" until initialize has succeeded */
	size_t text_len;
	uint64_t used_ms;
	unsigned calls;	 /* exchanges that point here */
	bool is_marked;	 /* it holds what no restart can bring back */
	bool is_deleted; /* goes with its last call */
	struct deferred reap;
	struct http_session *next, **prev;
};

struct endpoint_http {
	unsigned magic;
	struct loop *loop;
	struct gateway *g;
	struct endpoint_http_opts o;
	struct http_server *server;
	struct listener *listeners[LISTENERS_MAX];
	unsigned n_listeners;
	struct client *shared;
	struct strmap *sessions;
	struct http_session *first; /* most recently made first */
	size_t n_sessions;
	struct http_call *queue, **queue_tail;
	struct timer commit_timer, sweep_timer, stop_timer;
	struct deferred check;
	struct socket_client *sockets;
	unsigned n_sockets;
	struct json_msg json;
	struct buf body; /* one whose line breaks had to go */
	enum { HTTP_ST_OPEN, HTTP_ST_DRAINING, HTTP_ST_CLOSING, HTTP_ST_GONE } state;
	void (*on_stopped)(void *);
	void *on_stopped_arg;
};

/* http_session.c */
struct http_session *http_session_new(struct endpoint_http *e);
/* By the header's text; may bring one back. NULL: there is none such. */
struct http_session *http_session_find(
    struct endpoint_http *e, struct http_text text, const char *principal);
/* Names a new one once initialize has opened it. False: it has not. */
bool http_session_seal(struct http_session *s, const char *principal);
void http_session_drop(struct http_session *s);
/* It holds what a restart loses, maybe: say so where it lasts. */
void http_session_note_state(struct http_session *s);
void http_session_delete(struct http_session *s);
void http_session_release(struct http_session *s); /* one call less */
void http_session_end_streams(struct http_session *s);
void http_sessions_sweep(struct endpoint_http *e);
void http_principal(const struct http_exchange *x, char out[32]);

/* http_call.c */
extern const struct client_port_ops http_port_ops;
/* The whole answer, with the headers that any answer to k has; more has lines of its
 * own. type NULL: no body. */
void http_call_reply(struct http_call *k, int status, const char *more, const char *type,
    const struct iovec *body, int n);
void http_call_release(struct http_call *k);
void http_call_queue(struct http_call *k);
void http_call_unqueue(struct http_call *k);
void http_call_refuse(struct http_call *k, int status, int code, const char *message);
void http_call_become_stream(struct http_call *k);
void on_commit_timer(void *arg);

/* http_head.c: what the head of a request decides. */
int http_call_on_head(
    void *arg, struct http_exchange *x, const struct http_head *h, void **user);
/* The era that the version header speaks of. False: refused. */
bool http_call_read_version(struct http_call *k, const struct http_head *h);

/* endpoint_socket.c: newline-delimited messages on a unix socket. */
void socket_accept(struct endpoint_http *e, int fd, uid_t uid);
void sockets_finish(struct endpoint_http *e);
void sockets_free(struct endpoint_http *e);
size_t sockets_in_flight(const struct endpoint_http *e);

void endpoint_check(struct endpoint_http *e);

#endif
