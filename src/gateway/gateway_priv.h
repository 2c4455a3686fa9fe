/* SPDX-License-Identifier: MIT */
/* What the files of the gateway share. */
#ifndef MCPVISOR_GATEWAY_PRIV_H
#define MCPVISOR_GATEWAY_PRIV_H

#include "mcpvisor/gateway.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"

#define GATEWAY_MAGIC 0x67617465u
#define MEMBER_MAGIC  0x6d656d62u

/* X(STATE, name) */
#define MEMBER_STATES(X)                                                                 \
	X(NEW, "new")		/* made; nobody sees it yet */                           \
	X(ACTIVE, "active")	/* takes calls */                                        \
	X(DRAINING, "draining") /* finishes its calls, takes no more */                  \
	X(STOPPING, "stopping") /* on its ladder */                                      \
	X(STOPPED, "stopped")	/* nothing runs */

enum member_state {
#define X(id, name) MEMBER_ST_##id,
	MEMBER_STATES(X)
#undef X
};

/* One upstream of the gateway: a shared one, which has its place in g->m, or an instance
 * of one (g->instances), or either on its way out (g->leaving, then g->gone). */
struct member {
	unsigned magic;
	struct gateway *g;
	struct upstream *u;
	enum member_state state;
	unsigned epoch;	    /* of the fleet that its conf belongs to */
	struct timer timer; /* the end of its drain, or of a pooled one's idle time */
	struct member *next, **prev;
	/* While a fleet replaces another. */
	bool is_started, is_kept;
	bool is_heir;		    /* its lists are its predecessor's */
	struct member *successor;   /* of the same name */
	struct upstream_stats past; /* of a shared one: of instances that are gone */
	bool must_replace;	    /* it has turned out to ask */
	uint64_t serial;	    /* no other one has it, ever */
	unsigned n_unfinished;	    /* tasks, and calls whose clients are asked */
	/* Instances. */
	bool is_instance;
	unsigned caps;			/* what it declares that its client can do */
	struct upstream *shared;	/* NULL once that is on its way out */
	struct gateway_observer *owner; /* NULL: nobody's, it is one of a pool */
};

/* What one profile shows, under a number that it keeps. */
struct view {
	char *name;
	bool is_reserved; /* for a profile that is about to come */
	size_t n_observers;
	bool announced[LIST_MAX];
	/* Somebody was given other bytes since: they hear of the next, whatever it is. */
	bool differs[LIST_MAX];
	uint64_t announced_hash[LIST_MAX];
};

/* A URI that a result named, in order of age. */
struct recent_uri {
	struct upstream *u;
	struct recent_uri *next, **prev;
	size_t len;
	char uri[];
};

struct gateway {
	unsigned magic;
	bool started, settled, wait_over;
	bool stopping; /* nothing may start any more */
	struct loop *loop;
	struct upstream_env env;
	struct gateway_opts opts; /* of it the callbacks, list_wait_ms and name_bytes */
	/* Upstreams */
	struct member **m;   /* the shared ones in conf order */
	struct upstream **v; /* theirs */
	size_t n, n_stopped;
	struct member *instances, *leaving, *gone;
	size_t n_instances;	  /* whatever their state */
	struct deferred reap;	  /* frees what is gone */
	unsigned epoch, released; /* fleets replaced; of those let go */
	struct catalog *catalog;
	/* Clients */
	struct gateway_observer *observers, *observer_next;
	struct gateway_waiter *waiters, **waiters_tail;
	size_t waiting_bytes;
	struct timer wait_timer;
	/* Views and change notices */
	struct view *views[CATALOG_VIEWS_MAX];
	const struct profile_conf *profiles[CATALOG_VIEWS_MAX]; /* NULL: everything */
	size_t n_views;
	struct timer burst_timer;
	unsigned first_view; /* of endpoints that name none */
	unsigned burst_mask;
	/* Resources */
	struct strmap *recent;
	struct recent_uri *recent_first, **recent_tail;
	struct strmap *subscriptions;
	uint64_t last_update; /* number of the last event of a resource */
	struct buf scratch;
	/* Questions */
	unsigned client_caps; /* of the one client, once they are known */
	bool caps_known;
	struct pending_question *pending; /* whose owner is not certain */
	unsigned n_pending, n_elicitations;
	struct timer pending_timer;
	struct deferred look_again, replace;
	struct elicitation *elicitations, **elicitations_tail;
	uint64_t last_serial; /* of a member or an observer */
	struct tasks *tasks;  /* NULL until the first */
	struct gateway_answers answers;
	/* Stopping */
	void (*on_stopped)(void *);
	void *on_stopped_arg;
};

/* gateway.c */
struct catalog_opts gateway_catalog_opts(const struct gateway *g);
/* Whether all are settled may have changed. */
void gateway_check_settled(struct gateway *g);
/* Tells whoever waits when everything has stopped. */
void gateway_check_stopped(struct gateway *g);
enum mcp_level gateway_level(const struct gateway *g);

/* gateway_members.c */
struct member *member_new(
    struct gateway *g, const struct upstream_conf *conf, struct upstream *shared);
/* It takes no more calls, and goes when those in flight are over, or drain_ms are; into
 * g->leaving, from g->instances if it is there. */
void member_leave(struct member *m, uint32_t drain_ms);
/* It goes now. ladder NULL: that of its conf. */
void member_stop(struct member *m, const struct child_ladder *ladder);
/* One thing more that it must not end of its own for, nor take another's call where one
 * is all that it takes; or one less. */
void member_keep(struct member *m);
void member_let_go(struct member *m);
void member_activate(struct member *m);
void members_init(struct gateway *g);
void members_fini(struct gateway *g);
/* Of the shared ones; NULL: u is none of them. */
struct member *gateway_find_member(const struct gateway *g, const struct upstream *u);
/* NULL: u is none of those that are on their way out. */
struct member *gateway_find_leaving(const struct gateway *g, const struct upstream *u);
/* Whichever it is; NULL: it is gone. */
struct member *gateway_member_of(const struct gateway *g, const struct upstream *u);
void member_link(struct member **list, struct member *m);
/* Tells of each fleet to whose confs nobody points any more. */
void gateway_check_released(struct gateway *g);

/* gateway_wait.c */
/* One more list is in. */
void gateway_retry(struct gateway *g);
void gateway_wake(struct gateway *g);
void gateway_waits_init(struct gateway *g);

/* gateway_views.c */
void gateway_views_init(struct gateway *g, const struct gateway_opts *o);
void gateway_views_fini(struct gateway *g);
/* Gives the profiles of o their numbers. */
void gateway_views_set(struct gateway *g, const struct gateway_opts *o);
/* A list of some upstream has changed: observers of a view hear of it if it has. */
void gateway_changed(struct gateway *g, enum list_kind kind);
/* Sets the bytes that later changes are compared with, if there are none. */
void gateway_baseline(struct gateway *g, unsigned view, enum list_kind kind);
/* Somebody is given the list of a view as it is now. */
void gateway_note_given(struct gateway *g, unsigned view, enum list_kind kind);
/* A log message names no call: it is somebody's only if nobody else could have caused it:
 * the one call in flight, the one client that m is for or that is shown m's upstream, or
 * of all the one whose calls they are. */
void gateway_deliver_log(struct member *m, const struct link_msg *msg);

/* gateway_instances.c */
/* The instance that watches for owner. */
enum mv_err gateway_pick_watcher(struct gateway *g, struct upstream **u,
    struct gateway_observer *owner) MCPVISOR_MUST_CHECK;
void gateway_release_instances(struct gateway *g, struct gateway_observer *owner);
/* Its calls are over. */
void instance_on_idle(struct member *m);
/* What stands for a client among principals. */
void observer_put_principal(const struct gateway_observer *o, char out[PRINCIPAL_BYTES]);
/* It is gone: what it has counted stays with the shared one. */
void instance_bequeath(const struct member *m);

/* gateway_uris.c */
void gateway_uris_init(struct gateway *g);
void gateway_uris_fini(struct gateway *g);
/* Forgets or passes on what leaving upstreams have been remembered for. */
void gateway_uris_follow(struct gateway *g);
/* As gateway_route_uri, by decoded text. *skip: bytes at its start that are the prefix of
 * the upstream, not part of its own URI. */
struct upstream *gateway_find_uri(
    struct gateway *g, unsigned view, struct jtext text, size_t *skip);

/* gateway_subs.c, gateway_subs_move.c */
struct subscription {
	struct gateway *g;
	struct upstream_watch watch;
	struct subscriber *first;
	struct gateway_observer *owner; /* whose instance watches; NULL: the shared one */
	bool busy; /* inside a callback of ours: not to be freed by a removal */
	struct subscription *work, **work_prev; /* list of those that are looked at */
	struct buf key;				/* the upstream and its URI, decoded */
	struct buf text;			/* its URI as a JSON string */
};
/* A notification that a resource of u changed. */
void subscription_on_updated(
    struct gateway *g, struct upstream *u, const struct link_msg *m);
void subscriptions_fini(struct gateway *g);
/* Nothing will be updated any more: those without an answer get one. */
void subscriptions_end(struct gateway *g);
/* Resources may have new owners. */
void subscriptions_follow(struct gateway *g);
/* Upstreams have left: what they watched goes to their successors, or to whoever has the
 * URI now, or is over. */
void subscriptions_leave(struct gateway *g);
void subscription_put_key(struct buf *out, const struct upstream *u, struct jtext uri);
/* Without a watch and subscribers. NULL: no memory. */
struct subscription *subscription_new(
    struct gateway *g, struct jtext key, struct jtext uri);
void subscription_free(struct subscription *sub);
/* The answer to all that have none yet; o NULL: yes. After a no sub is gone. */
void subscription_settle(struct subscription *sub, const struct outcome *o);
unsigned subscriber_view(const struct gateway *g, const struct subscriber *s);
void subscriber_link(struct subscription *sub, struct subscriber *s);
void subscriber_unlink(struct subscriber *s);
/* Out of the list that it is in while all are looked at. */
void subscription_unwork(struct subscription *sub);

#endif
