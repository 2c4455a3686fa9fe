/* SPDX-License-Identifier: MIT */
/* What the files of front share. */
#ifndef MCPVISOR_CLIENT_PRIV_H
#define MCPVISOR_CLIENT_PRIV_H

#include "mcpvisor/call.h"
#include "mcpvisor/client.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mac.h"
#include "mcpvisor/trace_context.h"
#include "mcpvisor/wording.h"

#define CLIENT_MAGIC	   0x636c6965u
#define REQUEST_TEXT_BYTES 80
#define REQUEST_POOL	   64
#define LOG_CLIENT_BYTES   64 /* of a client's name */

/* A client's name for the log: decoded, cut, not yet escaped. */
struct log_client {
	uint8_t n; /* 0: it has none */
	char text[LOG_CLIENT_BYTES];
};

/* What the line of a call has to say of its request when the message is gone. */
struct call_note {
	bool is_open;	/* its end has not been noted yet */
	bool is_logged; /* there will be a line */
	bool has_trace;
	uint64_t started_ms;
	size_t in; /* bytes of the message */
};

struct ask;
struct batch;
struct call_end;
struct input;
struct parked;
struct task_page;
struct front_era;
struct listen;
struct legacy_sub;

/* One request of the client that has no answer yet. */
struct request {
	struct client *c;
	const struct front_era *era;
	struct request *next, **prev; /* all of the client's */
	struct request *same_hash;    /* chain in by_id */
	uint64_t id_hash;
	struct jtext id;    /* as written; in text, or in heap */
	struct jtext token; /* its progress token, the same */
	enum method method;
	struct batch *batch;
	const struct client_port *port; /* NULL: the client's own channel */
	bool hashed;			/* in by_id, which all are or none */
	struct gateway_waiter waiter;	/* for what waits for the lists */
	struct listen *listen;
	struct legacy_sub *sub;	  /* resources/subscribe that waits for its answer */
	struct request *sub_next; /* another one that waits for the same */
	struct buf uri;		  /* of resources/read, for errors that name it */
	struct input *input;	  /* its legacy client is asked for its modern upstream */
	struct parked *parked;	  /* its modern client is asked for its legacy upstream */
	struct task_page *page;	  /* of tasks/list */
	bool wants_task;	  /* its client asks that it becomes one */
	bool is_ending;		  /* its client has given it up */
	bool is_detached;	  /* parked, and answered: it has no id and no port */
	bool is_bound;		  /* bound is set */
	struct call_note note;
	char *heap;
	struct call call;
	/* From call.own on not cleared at the start. */
	char text[REQUEST_TEXT_BYTES];
	unsigned char bound[MAC_BYTES]; /* what a handle for it is good for */
	struct log_client log_client;	/* if note.is_logged */
	char trace_id[TRACE_ID_BYTES];	/* if note.has_trace */
};

/* The client-side adapter of an era. */
struct front_era {
	const char *name;
	bool modern;
	int no_resource_code;
	/* What our own results begin with: members, each with its comma. */
	const char *result_members;
	/* Adds what this era wants in a forwarded result. */
	void (*edit_result)(
	    const struct request *r, const struct outcome *o, struct json_edits *ed);
	/* Writes what this era must see in place of an upstream's error, and returns the
	 * member that it is: "error" or "result". NULL: the error passes as it is. */
	const char *(*map_error)(const struct request *r, const struct outcome *o,
	    int64_t code, struct buf *out);
};
/* An elicitation as a request of 2026-07-28, which has no id for it. */
void front_put_elicitation(struct buf *out, struct jtext params);
/* map_error of -32601, in both eras. */
const char *front_map_no_method(
    const struct request *r, const struct outcome *o, struct buf *out);
/* The status that an error's code has over HTTP. */
int front_status_of(const struct front_era *era, int64_t code);
extern const struct front_era front_legacy, front_modern;
/* Checks of a modern request that come before its method. False: out has the error. */
bool front_modern_check_meta(const struct link_msg *m, struct buf *out);
bool front_modern_check_revision(const struct link_msg *m, struct buf *out);

/* Answers to a 2025-03-26 batch, collected. */
struct batch {
	struct buf out;
	const struct client_port *port;
	unsigned open; /* requests without an answer, and one while walking */
};

/* The session that initialize opened; a client has one or none. */
struct session {
	bool open;
	bool greeted; /* its initialize is over and done with */
	enum revision revision;
	enum mcp_level level; /* MCP_LV_MAX: it never said */
	struct buf client_info;
	struct buf client_caps; /* as 2026-07-28 writes them; empty: none */
	struct log_client log_client;
	struct strmap *subs; /* decoded URI: struct legacy_sub; NULL until the first */
	uint64_t heard;	     /* the last event that its subscriptions were told */
};

struct client {
	unsigned magic;
	struct loop *loop;
	struct gateway *g;
	const struct client_cb *cb;
	void *arg;
	struct gateway_observer observer;
	struct session session;
	struct request *requests;
	struct request *pool;
	unsigned n_pool;
	size_t n_requests, n_listens;
	struct idmap *by_id; /* NULL as long as the requests are few */
	struct listen *listens;
	struct batch *batch;		/* being walked */
	const struct client_port *port; /* of the message being looked at */
	bool is_shared;
	bool has_said_caps; /* what it can be asked is known */
	unsigned missed;    /* lists whose change its channel did not take */
	unsigned kept;	    /* ... took, but while nobody was there */
	struct ask *asks;
	unsigned n_asks;
	uint64_t last_ask;
	struct timer ask_timer;
	struct parked *parked;
	size_t n_parked;
	struct mac_key *park_key; /* NULL until one is needed */
	struct buf scratch;	  /* text of our own messages */
	struct deferred dead;
};

/* client.c and client_write.c */
struct request *request_find(struct client *c, struct jtext id);
/* The request is answered or dropped: gone from the client. Its memory goes back to the
 * pool. */
void request_end(struct request *r);
void request_cancel(struct request *r, const struct link_msg *m);
/* One answer less, or the walk is over; the last one sends it. */
void batch_close(struct client *c, struct batch *b);
void client_send(struct client *c, const struct iovec *iov, int n);
/* To the port a message came by, or to the client's own channel. */
void client_answer(struct client *c, const struct client_port *port, int status,
    const struct iovec *iov, int n);
/* Answers r, which stays: without id, port and notices. */
void request_detach(struct request *r, const struct iovec *result, int n);
/* A detached one goes on under the name and the port of fresh, which is no more. */
void request_take_over(struct request *r, struct request *fresh);
/* A message that belongs to r and comes before its answer. */
void request_notify(struct request *r, const struct iovec *iov, int n);
void request_notify_buf(struct request *r, const struct buf *b);
void client_send_buf(struct client *c, const struct buf *b);
/* Writes {"jsonrpc","id","result"|"error": body} and ends r. */
void request_reply(
    struct request *r, const char *member, const struct iovec *body, int n);
/* The same without the end of r. */
void request_write(
    struct request *r, int status, const char *member, const struct iovec *body, int n);
void request_reply_status(
    struct request *r, int status, const char *member, const struct iovec *body, int n);
void request_reply_buf(struct request *r, const char *member, const struct buf *body);
/* The tool that r calls, as its client is shown it; absent: there is none. */
struct jtext request_definition(const struct request *r);
/* Whether r calls a tool that changes something, and it may have done so though the call
 * has failed. */
bool request_may_have_acted(const struct request *r, enum mv_err err);
/* {"code","message"} and end. value is what the client sent there, or absent. */
void request_fail(struct request *r, enum wording w, struct jtext value);
/* An error that no request of ours carries. id may be absent. */
void client_reply_error(
    struct client *c, struct jtext id, int status, const struct buf *error);
void client_reply_err(struct client *c, struct jtext id, enum mv_err err);

/* dispatch.c */
struct request *request_new(struct client *c, const struct link_msg *m,
    const struct front_era *era, enum method method);
void client_on_cancelled(struct client *c, const struct link_msg *m);

/* handlers */
void handle_initialize(struct request *r, const struct link_msg *m);
void handle_discover(struct request *r, const struct link_msg *m);
void handle_ping(struct request *r, const struct link_msg *m);
void handle_set_level(struct request *r, const struct link_msg *m);
void handle_list(struct request *r, const struct link_msg *m);
void handle_forward(struct request *r, const struct link_msg *m);
void handle_subscribe(struct request *r, const struct link_msg *m);
void handle_unsubscribe(struct request *r, const struct link_msg *m);
void handle_listen(struct request *r, const struct link_msg *m);
void handle_task(struct request *r, const struct link_msg *m);
void handle_task_list(struct request *r, const struct link_msg *m);

/* handle_read.c */
/* Whether r asks for what it reads under a prefix of ours. */
bool read_is_prefixed(const struct request *r);
/* Appends pieces of a result (body, with edits) with the prefix before the URI of every
 * content. */
void read_put_prefixed(const struct request *r, struct jtext body,
    const struct iovec *iov, int n, struct buf *out);

/* handle_hello.c */
void client_session_init(struct client *c);
/* A request has come: what its client can be asked is known now. */
void client_note_caps(
    struct client *c, const struct link_msg *m, enum method method, bool modern);
void client_session_fini(struct client *c);
#define SERVER_INFO                                                                      \
	"{\"name\":\"mcpvisor\",\"title\":\"mcpvisor\",\"version\":\"" MCPVISOR_VERSION  \
	"\"}"

/* notices.c and handle_listen.c */
void client_on_changed(void *arg, unsigned kinds);
void client_on_log(void *arg, struct upstream *u, const struct link_msg *m);
void client_on_elicited(void *arg, struct upstream *u, const struct link_msg *m);
void listen_on_changed(struct client *c, unsigned kinds);
/* Ends a listen without a word (its client cancelled it). */
void listen_free(struct listen *l);
/* Ends it as we must when it is our decision. */
void listen_finish(struct listen *l);
/* Ends all of a session. answers: subscribes that still wait are told. */
void subs_clear(struct client *c, bool answers);

#endif
