/* SPDX-License-Identifier: MIT */
/* What the files of the gateway share. */
#ifndef MCPVISOR_GATEWAY_PRIV_H
#define MCPVISOR_GATEWAY_PRIV_H

#include "mcpvisor/gateway.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"

#define GATEWAY_MAGIC 0x67617465u

/* A URI that a result named, in order of age. */
struct recent_uri {
	struct upstream *u;
	struct recent_uri *next;
	size_t len;
	char uri[];
};

struct gateway {
	unsigned magic;
	struct loop *loop;
	uint32_t list_wait_ms;
	struct upstream **v;
	size_t n, n_settled, n_stopped;
	struct catalog *catalog;
	struct gateway_observer *observers;
	size_t n_observers;
	struct gateway_waiter *waiters, **waiters_tail;
	struct timer wait_timer;
	bool wait_over;
	/* Change notices */
	struct timer burst_timer;
	unsigned burst_mask;
	bool announced[LIST_MAX];
	uint64_t announced_hash[LIST_MAX];
	/* Resources */
	struct strmap *recent;
	struct recent_uri *recent_first, **recent_tail;
	struct strmap *subscriptions;
	struct buf scratch;
	/* Stopping */
	void (*on_stopped)(void *);
	void *on_stopped_arg;
};

void gateway_uris_init(struct gateway *g);
void gateway_uris_fini(struct gateway *g);
/* A notification that a resource of u changed. */
void subscription_on_updated(
    struct gateway *g, struct upstream *u, const struct link_msg *m);
void subscriptions_fini(struct gateway *g);

/* The decoded text of a JSON string: in place when it has no escapes, else in scratch.
 * Absent if t is no string. */
struct jtext gateway_text(struct gateway *g, struct jtext t);

#endif
