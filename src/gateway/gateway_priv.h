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
	struct spawner *spawner;
	struct instance *instances; /* of clients' own */
	size_t n_instances;
	uint32_t list_wait_ms;
	struct upstream **v;
	size_t n, n_settled, n_stopped;
	struct catalog *catalog;
	struct gateway_observer *observers;
	size_t n_observers;
	struct gateway_waiter *waiters, **waiters_tail;
	size_t waiting_bytes;
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
	uint64_t last_update; /* number of the last event of a resource */
	struct buf scratch;
	/* Stopping */
	bool stopping; /* nothing may start any more */
	void (*on_stopped)(void *);
	void *on_stopped_arg;
};

void gateway_uris_init(struct gateway *g);
void gateway_uris_fini(struct gateway *g);
/* A notification that a resource of u changed. */
void subscription_on_updated(
    struct gateway *g, struct upstream *u, const struct link_msg *m);
void subscriptions_fini(struct gateway *g);
/* Resources may have new owners. */
void subscriptions_follow(struct gateway *g);

/* A log message names no call: it is somebody's only if nobody else could have caused it:
 * the one call in flight, sole if there is one, or of all the one whose calls they are.
 */
void gateway_deliver_log(struct upstream *u, const struct link_msg *m,
    struct gateway_observer *sole, struct gateway_observer *all);
/* Tells whoever waits when everything has stopped. */
void gateway_check_stopped(struct gateway *g);
void gateway_release_instances(struct gateway *g, struct gateway_observer *owner);
void gateway_stop_instances(struct gateway *g, const struct child_ladder *ladder);
void gateway_set_instances_level(struct gateway *g, struct gateway_observer *owner);
void gateway_instances_fini(struct gateway *g);

#endif
