/* SPDX-License-Identifier: MIT */
/*
 * A connected MCP client of either era: takes its messages, keeps its session and its
 * requests, and writes what it is owed to a sink.
 */
#ifndef MCPVISOR_CLIENT_H
#define MCPVISOR_CLIENT_H

#include "mcpvisor/gateway.h"

struct client;

struct client_cb {
	/* One message to the client, in pieces. MV_OK or why it was not taken. */
	enum mv_err (*send)(void *arg, const struct iovec *iov, int n);
	/* The last request in flight (listens aside) has been answered. */
	void (*on_idle)(void *arg);
	/* It does not read what it asked for: it is of no use any more. Comes from a
	 * turn of its own. */
	void (*on_dead)(void *arg);
};

struct client *client_new(
    struct loop *l, struct gateway *g, const struct client_cb *cb, void *arg);
/* Cancels what is in flight. Not inside its own callbacks. */
void client_free(struct client *c);
void client_on_message(struct client *c, const struct link_msg *m);
/* A line that was no message; id may be absent. */
void client_on_bad(struct client *c, enum mv_err err, struct jtext id);
/* Requests in flight, listens aside. */
size_t client_in_flight(const struct client *c);
/* Answers whatever is open: listens end as the protocol says, the rest fails with
 * MV_STOPPING. */
void client_finish(struct client *c);

#endif
