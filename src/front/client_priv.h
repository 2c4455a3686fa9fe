/* SPDX-License-Identifier: MIT */
/* What the files of front share. */
#ifndef MCPVISOR_CLIENT_PRIV_H
#define MCPVISOR_CLIENT_PRIV_H

#include "mcpvisor/call.h"
#include "mcpvisor/client.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"

#define CLIENT_MAGIC	   0x636c6965u
#define REQUEST_TEXT_BYTES 80
#define REQUEST_POOL	   64

struct batch;
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
	bool hashed;			/* in by_id */
	struct call call;
	struct gateway_waiter waiter; /* for what waits for the lists */
	struct listen *listen;
	struct legacy_sub *sub;	  /* resources/subscribe that waits for its answer */
	struct request *sub_next; /* another one that waits for the same */
	struct buf uri;		  /* of resources/read, for errors that name it */
	bool takes_url;		  /* its client can be sent to a URL (elicitation) */
	char *heap;
	char text[REQUEST_TEXT_BYTES];
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
	enum revision revision;
	enum mcp_level level; /* MCP_LV_MAX: it never said */
	struct buf client_info;
	struct strmap *subs; /* decoded URI: struct legacy_sub */
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
	struct idmap *by_id;
	struct listen *listens;
	struct batch *batch;		/* being walked */
	const struct client_port *port; /* of the message being looked at */
	bool is_shared;
	unsigned missed; /* lists that changed while its channel was closed */
	struct json_msg element_json;
	struct buf scratch; /* text of our own messages */
	struct buf id_key;
	struct deferred dead;
};

/* client.c */
struct request *request_find(struct client *c, struct jtext id);
/* The request is answered or dropped: gone from the client. Its memory goes back to the
 * pool. */
void request_end(struct request *r);
void request_cancel(struct request *r, const struct link_msg *m);
/* One answer less, or the walk is over; the last one sends it. */
void batch_close(struct client *c, struct batch *b);
void client_send(struct client *c, const struct iovec *iov, int n);
/* A message that belongs to r and comes before its answer. */
void request_notify(struct request *r, const struct iovec *iov, int n);
void request_notify_buf(struct request *r, const struct buf *b);
void client_send_buf(struct client *c, const struct buf *b);
/* Writes {"jsonrpc","id","result"|"error": body} and ends r. */
void request_reply(
    struct request *r, const char *member, const struct iovec *body, int n);
void request_reply_status(
    struct request *r, int status, const char *member, const struct iovec *body, int n);
void request_reply_buf(struct request *r, const char *member, const struct buf *body);
/* {"code","message"} and end. */
void request_fail(struct request *r, int code, const char *message);
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

/* handle_hello.c */
void client_session_init(struct client *c);
void client_session_fini(struct client *c);
#define SERVER_INFO                                                                      \
	"{\"name\":\"mcpvisor\",\"title\":\"mcpvisor\",\"version\":\"" MCPVISOR_VERSION  \
	"\"}"

/* notices.c and handle_listen.c */
void client_on_changed(void *arg, unsigned kinds);
void client_on_log(void *arg, struct upstream *u, const struct link_msg *m);
void listen_on_changed(struct client *c, unsigned kinds);
/* Ends a listen without a word (its client cancelled it). */
void listen_free(struct listen *l);
/* Ends it as we must when it is our decision. */
void listen_finish(struct listen *l);
/* Ends all of a session. answers: subscribes that still wait are told. */
void subs_clear(struct client *c, bool answers);

#endif
