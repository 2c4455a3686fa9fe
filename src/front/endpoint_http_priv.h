/* SPDX-License-Identifier: MIT */
/* What the files of the HTTP endpoint share. */
#ifndef MCPVISOR_ENDPOINT_HTTP_PRIV_H
#define MCPVISOR_ENDPOINT_HTTP_PRIV_H

#include "mcpvisor/client.h"
#include "mcpvisor/endpoint_http.h"
#include "mcpvisor/http_guard.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/link.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/session_id.h"
#include "mcpvisor/wording.h"

#define ENDPOINT_MAGIC	    0x65687474u
#define HTTP_CALL_MAGIC	    0x6863616cu
#define DOOR_MAGIC	    0x646f6f72u
#define MOUNT_MAGIC	    0x6d6f756eu
#define EXTRA_BYTES	    1600
#define HTTP_METHODS_ALL    "POST, GET, DELETE, OPTIONS"
#define HTTP_METHODS_SSE    "GET, POST, OPTIONS"
#define HTTP_ALLOW(methods) "Allow: " methods "\r\n"

struct socket_client;
struct http_track;
struct http_replay;

/* What is served under a path: a profile. It lasts over reloads that keep both. */
struct http_mount {
	unsigned magic;
	struct endpoint_http *e;
	struct http_mount *next, **prev;
	char *path, *profile;
	unsigned view;
	struct client *shared; /* of all requests without a session */
	unsigned refs;	       /* rows of doors, calls, sessions */
	bool is_sse;	       /* HTTP+SSE of 2024-11-05 is spoken there */
	bool is_wanted;	       /* by the rows that are being put in place */
	bool is_gone;	       /* no row leads here any more */
	struct deferred reap;
};

/* A path of an address, and who may come to it there. */
struct http_row {
	struct http_mount *mount;
	struct http_guard guard;
	char **hosts, **origins; /* what the guard points to */
};

/* An address, for as long as it is bound or connections that came by it are open. */
struct http_door {
	unsigned magic;
	struct endpoint_http *e;
	struct http_door *next;	   /* of those that are bound */
	struct listener *listener; /* NULL: closed */
	unsigned refs;		   /* one for being bound, and the connections */
	struct http_row *rows;	   /* NULL: not yet in use */
	size_t n_rows;
	unsigned mode; /* of a unix socket */
	char *group;
};

/* One exchange as MCP sees it; lives until both it and its request are over. */
struct http_call {
	unsigned magic;
	struct endpoint_http *e;
	struct http_mount *mount; /* NULL: refused at the head */
	struct http_exchange *x;  /* NULL: over */
	struct client_port port;
	struct http_session *session; /* whose message or stream it is */
	struct request *request;
	struct http_track *track;     /* its stream, if that can be taken up again */
	const struct http_head *head; /* while its message is looked at */
	struct http_call *next,
	    **prev; /* in the queue of those that may become streams */
	uint64_t due_ms;
	struct http_call
	    *older;	  /* the session's stream that was opened before this one */
	bool no_batches;  /* its version header names a revision without */
	bool no_revision; /* ... or none at all */
	bool batch_open, answered, takes_json, takes_stream, is_get, is_stream;
	char origin[280]; /* to allow in the answer; "" if none */
};

/* A legacy session in memory. */
struct http_session {
	struct endpoint_http *e;
	struct http_mount *mount; /* where it came to be in memory */
	struct client *client;
	struct http_call *stream;   /* the newest GET; the others hang on to it */
	struct http_replay *replay; /* what its streams sent; NULL: nothing */
	char *text;	 /* its id, NUL, whose it is, NUL; NULL until initialize
			    has succeeded */
	size_t text_len; /* of its id */
	uint64_t serial, expires_s; /* as its id says */
	uint64_t used_ms;
	uint64_t away_ms; /* until then what comes unasked waits for the next stream */
	unsigned calls;	  /* exchanges that point here */
	bool is_marked;	  /* it holds what no restart can bring back */
	bool is_deleted;  /* goes with its last call */
	bool is_sse;	  /* of HTTP+SSE: it goes with its stream */
	struct deferred reap;
	struct http_session *next, **prev;
};

struct endpoint_http {
	unsigned magic;
	struct loop *loop;
	struct gateway *g;
	struct endpoint_http_opts o;
	struct http_server *server;
	struct http_door *doors;    /* bound */
	struct http_door **of_rows; /* that of each row */
	size_t n_rows;
	struct http_mount *mounts;
	size_t n_streams;
	struct strmap *sessions;
	struct http_session *first; /* most recently made first */
	size_t n_sessions;
	struct http_call *queue, **queue_tail;
	struct timer commit_timer, sweep_timer, stop_timer;
	bool is_trim_due; /* the sweep is to give memory back, soon */
	bool is_drained;  /* the last connection of the server has gone */
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
/* NULL: there are too many. */
struct http_session *http_session_new(struct http_mount *m);
/* By the header's text; may bring one back. 0, 404 (there is none such), or 503 (there
 * is no room for it now). */
int http_session_find(struct http_mount *m, struct http_text text, const char *principal,
    struct http_session **out);
/* Names a new one once initialize has opened it. False: it has not. */
bool http_session_seal(struct http_session *s, const char *principal);
/* The same for HTTP+SSE, at once. False: memory is short. */
bool http_session_name(struct http_session *s, const char *principal);
/* That of HTTP+SSE with this name; NULL: there is none. */
struct http_session *http_session_named(
    struct http_mount *m, struct http_text text, const char *principal);
void http_session_drop(struct http_session *s);
/* It holds what a restart loses, maybe: say so where it lasts. */
void http_session_note_state(struct http_session *s);
void http_session_delete(struct http_session *s);
/* Its mount is gone: out of memory with its last call. */
void http_session_retire(struct http_session *s);
void http_session_release(struct http_session *s); /* one call less */
void http_session_end_streams(struct http_session *s);
/* The same, for clients that are to come back to the session. */
void http_session_leave_streams(struct http_session *s);
void http_sessions_sweep(struct endpoint_http *e);
/* Whom a session of k's belongs to: the peer, and the profile. */
void http_principal(const struct http_call *k, char out[SESSION_ID_PRINCIPAL_MAX + 1]);

/* http_call.c */
extern const struct client_port_ops http_port_ops;
/* The whole answer, with the headers that any answer to k has; more has lines of its
 * own. type NULL: no body. */
void http_call_reply(struct http_call *k, int status, const char *more, const char *type,
    const struct iovec *body, int n);
void http_call_release(struct http_call *k);
void http_call_queue(struct http_call *k);
void http_call_unqueue(struct http_call *k);
void http_call_refuse(struct http_call *k, int status, enum wording w);
/* The same for what its bytes are not: 400. */
void http_call_refuse_bytes(struct http_call *k, enum mv_err err);
void http_call_become_stream(struct http_call *k);
void on_commit_timer(void *arg);
void http_calls_wait(struct endpoint_http *e); /* sets the timer for the first */

/* endpoint_http.c */
/* Reads the message of a POST. False: refused. */
bool http_call_scan(struct http_call *k, const char *body, size_t n, struct link_msg *m);
/* What has no body to say its revision in has but the header; requests are judged with
 * theirs. False: refused. */
bool http_call_knows_version(struct http_call *k, const struct http_head *h);

/* http_sse.c: HTTP+SSE of 2024-11-05. */
void http_sse_request(
    struct http_call *k, const struct http_head *h, const char *body, size_t n);
/* k, the stream of a session, is over: so is that. */
void http_sse_end(struct http_call *k);

/* http_head.c: what the head of a request decides. */
int http_call_on_head(
    void *arg, struct http_exchange *x, const struct http_head *h, void **user);
/* What a web page that asks first is told. */
void http_call_options(struct http_call *k);
/* The era that the version header speaks of. False: refused. */
bool http_call_read_version(struct http_call *k, const struct http_head *h);

/* endpoint_doors.c */
/* What a door has under a path. NULL: nothing. */
const struct http_row *http_door_find(const struct http_door *d, struct http_text path);
struct http_door *http_door_ref(struct http_door *d);
void http_door_unref(struct http_door *d); /* NULL is allowed */
void http_doors_close(struct endpoint_http *e);

/* endpoint_mounts.c */
/* The one that serves what a row says (is_sse: at its sse_path), made if there is none;
 * with one reference. */
struct http_mount *http_mount_get(
    struct endpoint_http *e, const struct endpoint_listen *row, bool is_sse);
/* Those that nobody has got since the last time. */
void http_mounts_retire(struct endpoint_http *e);
struct http_mount *http_mount_ref(struct http_mount *m);
void http_mount_unref(struct http_mount *m); /* NULL is allowed */
void http_mounts_free_clients(struct endpoint_http *e);
void http_mounts_free(struct endpoint_http *e);

/* endpoint_socket.c: newline-delimited messages on a unix socket. */
void socket_accept(struct http_door *d, int fd, uid_t uid);
/* While memory is short ends those who leave their answers unread, after http.idle_ms. */
void sockets_sweep(struct endpoint_http *e);
void sockets_finish(struct endpoint_http *e);
void sockets_free(struct endpoint_http *e);
size_t sockets_in_flight(const struct endpoint_http *e);

#endif
