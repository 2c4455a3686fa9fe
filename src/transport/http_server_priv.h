/* SPDX-License-Identifier: MIT */
/* What the parts of the HTTP server share: the server, a connection, an exchange. */
#ifndef MCPVISOR_HTTP_SERVER_PRIV_H
#define MCPVISOR_HTTP_SERVER_PRIV_H

#include "mcpvisor/buf.h"
#include "mcpvisor/http_server.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/stream.h"

#include <time.h>

#define HTTP_SERVER_MAGIC   0x68747376u
#define HTTP_CONN_MAGIC	    0x6874636eu
#define HTTP_EXCHANGE_MAGIC 0x68747865u

/* Input that may wait while a connection is FULL. */
#define HTTP_READ_AHEAD ((size_t)64 * 1024)
/* How often to see whether the client of a paused connection has gone. */
#define HTTP_LOOK_MS 1000u
/* Connections over the limit that may still wait for their 503. */
#define HTTP_REFUSED_MAX 64u

#define HTTP_CONN_STATES(X)                                                              \
	X(IDLE, "idle")	    /* no byte of a request */                                   \
	X(HEAD, "head")	    /* a part of a head */                                       \
	X(BODY, "body")	    /* a head was taken, its body comes */                       \
	X(FULL, "full")	    /* as many exchanges as may be: input waits */               \
	X(LAST, "last")	    /* no further request is read; answers leave */              \
	X(LINGER, "linger") /* our side is closed, the client's not yet */               \
	X(DOOMED, "doomed") /* ends with this turn */                                    \
	X(GONE, "gone")

enum http_conn_state {
#define X(id, name) HTTP_CONN_ST_##id,
	HTTP_CONN_STATES(X)
#undef X
	    HTTP_CONN_ST_MAX
};

enum http_exchange_state {
	HTTP_X_TAKING, /* its body comes */
	HTTP_X_OPEN,   /* delivered, unanswered */
	HTTP_X_STREAM, /* an event stream */
	HTTP_X_DONE    /* answered; maybe not its turn yet */
};

struct http_conn;

struct http_exchange {
	unsigned magic;
	struct http_conn *conn; /* NULL: in the pool */
	struct http_exchange *next;
	enum http_exchange_state state;
	void *user;
	int minor;
	bool owed;	 /* on_end is */
	bool no_body;	 /* HEAD */
	bool close;	 /* the connection ends after this answer */
	struct buf held; /* what waits for the answers before it */
};

struct http_queue {
	struct http_exchange *first, *last;
	unsigned n;
};

struct http_conn {
	unsigned magic;
	struct http_server *server;
	struct http_conn *next, **prev; /* of the server; prev NULL: not there */
	struct stream *stream;
	int fd; /* the stream's */
	uid_t uid;
	void *door;		   /* the owner's */
	struct http_limits limits; /* as they were when it came: its input fits them */
	enum http_conn_state state;
	bool refused;		 /* over the limit: its first request gets 503 */
	bool in_ended;		 /* the client has closed its side */
	struct http_queue open;	 /* in order of arrival: answers leave so */
	struct http_queue ended; /* answered; on_end is due */
	size_t held;		 /* bytes in the open ones */

	/* The request that is being received. */
	struct http_exchange *taking; /* NULL: nobody wants its body */
	size_t head_len;
	bool no_skip; /* what is left of it cannot be skipped: the connection ends */
	struct http_body body;
	struct buf gather; /* chunked: the head, then the body's data */

	struct timer timer;
	uint64_t armed_at, deadline, beat_at; /* 0: none */
	struct deferred later;
	size_t out_seen; /* unsent bytes when last looked at */
	size_t lingered;
};

struct http_server {
	unsigned magic;
	struct loop *loop;
	struct http_server_opts o;
	struct http_server_cb cb;
	void *arg;
	struct http_conn *conns;
	unsigned n_conns;
	struct http_exchange *pool;
	unsigned n_pool;
	bool draining, dead;
	void (*drain_fn)(void *);
	void *drain_arg;
	struct deferred drained;
	struct deferred shed;  /* half-read bodies, while memory is exhausted */
	struct timer look;     /* whether it is, while there are any */
	struct http_head head; /* the one parsed last: of which connection, and where */
	const struct http_conn *head_conn;
	const char *head_base;
	struct buf scratch; /* for composing an answer's head */
	time_t date_at;
	char date[64]; /* "Date: ...\r\n" */
};

/* http_server.c */
struct http_exchange *http_exchange_new(struct http_conn *c);
void http_exchange_recycle(struct http_exchange *x);
void http_queue_put(struct http_queue *q, struct http_exchange *x);
struct http_exchange *http_queue_pop(struct http_queue *q);
/* A connection by door has gone and is in no list any more. */
void http_server_lost(struct http_server *s, void *door);
/* Ends half-read bodies after this turn, if memory is exhausted. */
void http_server_look(struct http_server *s);

/* http_conn.c */
void http_conn_new(struct http_server *s, int fd, uid_t uid, void *door, bool refused);
void http_conn_stop(struct http_conn *c); /* the server drains */
void http_conn_gone(struct http_conn *c);
void http_conn_set(struct http_conn *c, enum http_conn_state next, const char *reason);
void http_conn_arm(struct http_conn *c); /* deadline or beat_at has changed */

void http_conn_wait(struct http_conn *c, uint32_t ms); /* from now to TIMEOUT */

/* http_take.c */
void http_take_parse(struct http_conn *c);
void http_take_body(struct http_conn *c);
void http_take_hold(struct http_conn *c); /* input while FULL */
void http_take_resume(struct http_conn *c);
/* An answer of our own; nothing more is read. body: to the request being received. */
void http_refuse(struct http_conn *c, int status);
void http_refuse_body(struct http_conn *c, int status);
/* Bytes that are kept of a body whose rest is still to come. */
size_t http_take_half_read(const struct http_conn *c);

/* http_write.c */
const char *http_status_text(int status);
void http_reply_plain(struct http_exchange *x, int status);
void http_continue(struct http_exchange *x);
void http_heartbeat(struct http_conn *c);

#endif
