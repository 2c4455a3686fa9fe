/* SPDX-License-Identifier: MIT */
/*
 * A connected MCP client of either era: takes its messages, keeps its session and its
 * requests, and writes what it is owed to a sink.
 */
#ifndef MCPVISOR_CLIENT_H
#define MCPVISOR_CLIENT_H

#include "mcpvisor/gateway.h"

struct client;

struct request;

/* Where what belongs to one message goes, when that is not the client's own channel: an
 * HTTP exchange. Valid until its last request has ended. */
struct client_port {
	const struct client_port_ops *ops;
	void *arg;
	bool modern;  /* the transport says so, whatever the message looks like */
	bool is_mute; /* it takes the answer and no notices */
};
struct client_port_ops {
	/* A message that belongs to a request and comes before its answer. */
	enum mv_err (*notify)(void *arg, const struct iovec *iov, int n);
	/* The last message. status is the one that HTTP gives it. */
	void (*answer)(void *arg, int status, const struct iovec *iov, int n);
	/* A request waits for its answer; r NULL: a batch does. */
	void (*open)(void *arg, struct request *r);
	/* That request is over; after its answer, or without one if it was cancelled. */
	void (*closed)(void *arg);
	/* What the transport has to say of a modern request; name and definition are
	 * those of the tool it calls, as far as it is known. False: error has the -32020.
	 */
	bool (*check)(void *arg, const struct link_msg *m, struct jtext definition,
	    struct buf *error);
	/* Appends whom its messages are from. */
	void (*put_principal)(void *arg, struct buf *out);
};

struct client_cb {
	/* One message to the client, in pieces. MV_OK or why it was not taken. */
	enum mv_err (*send)(void *arg, const struct iovec *iov, int n);
	/* The last request in flight (listens aside) has been answered. */
	void (*on_idle)(void *arg);
	/* It does not read what it asked for: it is of no use any more. Comes from a
	 * turn of its own. */
	void (*on_dead)(void *arg);
};

struct client *client_new(struct loop *l, struct gateway *g, unsigned view,
    const struct client_cb *cb, void *arg);
/* What it signs with that has to be known again after a restart; else that is a key of
 * its own. */
struct mac_key;
void client_set_key(struct client *c, const struct mac_key *key);
/* Whether it gets upstreams of its own where isolation asks for it. */
void client_set_own_instances(struct client *c, bool own);
/* Cancels what is in flight. Not inside its own callbacks. */
void client_free(struct client *c);
void client_on_message(struct client *c, const struct link_msg *m);
/* The same for a message that came by a port (NULL: the client's own channel). */
void client_on_message_by(
    struct client *c, const struct link_msg *m, const struct client_port *port);
/* A client of requests that know nothing of each other (modern HTTP, and legacy without a
 * session): ids may be the same, there is no session, nothing comes unasked. All come by
 * ports. */
struct client *client_new_shared(struct loop *l, struct gateway *g, unsigned view,
    const struct client_cb *cb, void *arg);
/* Whether a message shows the signs of 2026-07-28. */
bool client_is_modern(const struct json_msg *json);
bool client_request_is_modern(const struct request *r);
struct jtext client_request_id(const struct request *r); /* as it was written */

/* What a session is, for whoever has to name it or bring it back. */
struct client_session {
	bool open;
	enum revision revision;
	struct jtext client_info; /* JSON, absent if none; the client's */
	size_t n_subscriptions;
	unsigned n_instances; /* upstreams of its own */
	unsigned n_asks;      /* requests that it has not answered */
	unsigned n_tasks;     /* that it may still ask for */
	unsigned caps;	      /* what it can be asked (client_caps.h) */
	bool has_level;	      /* logging/setLevel was called */
};
struct client_session client_session_of(const struct client *c);
/* Opens the session that an earlier initialize opened. name may be "". */
void client_session_restore(
    struct client *c, enum revision revision, unsigned caps, const char *name);

/* Whether the end of each forwarded request is a line of the log (module "call", info):
 * it is. For all clients. */
void client_log_calls(bool on);

/* Ends a request without an answer and tells its owner, as if it had been cancelled. */
void client_cancel(struct request *r);
/* The same for what is open of a batch that came by port. */
void client_cancel_batch(struct client *c, const struct client_port *port);
/* The client's own channel takes messages (again): what it missed is said. */
void client_channel_opened(struct client *c);
void client_channel_closed(struct client *c);
/* What the channel has taken since it was closed is lost. */
void client_channel_lost(struct client *c);
/* A line that was no message; id may be absent. */
void client_on_bad(struct client *c, enum mv_err err, struct jtext id);
/* Gives back the memory that only requests need. Not inside its own callbacks. */
void client_rest(struct client *c);
/* Requests in flight, listens aside. */
size_t client_in_flight(const struct client *c);
/* Answers whatever is open: listens end as the protocol says, the rest fails with
 * MV_STOPPING. */
void client_finish(struct client *c);

#endif
