/* SPDX-License-Identifier: MIT */
/*
 * The fleet as one: its upstreams, the catalog, and what clients are told of both.
 */
#ifndef MCPVISOR_GATEWAY_H
#define MCPVISOR_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/catalog.h"

struct gateway;

/* A client that wants to hear of changes; a member of its owner. */
struct gateway_observer {
	struct gateway_observer *next, **prev;
	/* The merged bytes of lists changed: bit 1 << kind for each. Once a burst. */
	void (*on_changed)(void *arg, unsigned kinds);
	/* A log message whose owner is this client for certain. */
	void (*on_log)(void *arg, struct upstream *u, const struct link_msg *m);
	void *arg;
	bool has_instances;   /* it may have upstreams of its own (isolation) */
	unsigned n_instances; /* that it has had; the gateway counts */
	enum mcp_level level; /* what its session asked for; MCP_LV_MAX: nothing */
};
void gateway_observe(struct gateway *g, struct gateway_observer *o);
void gateway_unobserve(struct gateway *g, struct gateway_observer *o);
/* o's level is new: the upstreams are told the most verbose that anybody wants. */
void gateway_set_level(
    struct gateway *g, struct gateway_observer *o, enum mcp_level level);

/* Somebody who waits for the lists of upstreams that are starting, for at most
 * list_wait_ms after gateway_start; a member of its owner. */
struct gateway_waiter {
	struct gateway_waiter *next, **prev;
	struct gateway *g; /* set while waiting */
	size_t bytes;	   /* what its owner keeps meanwhile */
	void (*fn)(void *arg);
	/* One more list is in; it may unwait itself. NULL: it wants them all. */
	void (*retry)(void *arg);
	void *arg;
};
/* False: there is nothing to wait for. Else fn comes, in order of waiting. */
bool gateway_wait(struct gateway *g, struct gateway_waiter *w);
void gateway_unwait(struct gateway_waiter *w); /* fine when not waiting */
/* Whether waiters may keep that many bytes more. */
bool gateway_may_keep(const struct gateway *g, size_t bytes);

struct gateway_opts {
	struct upstream_conf *const *confs; /* the caller's, valid until gateway_free */
	size_t n;
	uint32_t list_wait_ms; /* 5000 */
};

struct gateway *gateway_new(
    struct loop *l, struct spawner *sp, const struct gateway_opts *o);
void gateway_free(struct gateway *g);
void gateway_start(struct gateway *g);
/* Ends everybody's wait now, whatever is missing. */
void gateway_stop_waiting(struct gateway *g);
/* Stops all upstreams; fn comes once all are gone, maybe before returning. */
void gateway_stop(
    struct gateway *g, const struct child_ladder *ladder, void (*fn)(void *), void *arg);

/* Every upstream is ready with its lists, or has failed at least once. */
bool gateway_is_settled(const struct gateway *g);

struct gateway_list {
	struct jtext body; /* "[...]" */
	uint64_t ttl_ms;
	bool is_private;
};
/* Somebody relies on hearing of changes from now on, whether it was given lists or has
 * them from before. */
void gateway_note_listener(struct gateway *g);
/* Valid until control returns to the loop. */
struct gateway_list gateway_list(struct gateway *g, enum list_kind kind);
/* The union of what upstreams offer; everything while some are still starting. */
struct upstream_caps gateway_caps(const struct gateway *g);
/* Appends the instructions of all, each under its upstream's name. */
void gateway_put_instructions(const struct gateway *g, struct buf *out);
/* The definition of a tool by its published name (a JSON string); absent if there is
 * none. Valid until control returns to the loop. */
struct jtext gateway_tool_definition(struct gateway *g, struct jtext name);
struct catalog *gateway_catalog(struct gateway *g);
size_t gateway_count(const struct gateway *g);
struct upstream *gateway_upstream(const struct gateway *g, size_t i);

/* The instance of *u that serves owner: *u itself, or one of owner's own, which is made
 * and started when it is first asked for. MV_BUSY: there are too many. */
enum mv_err gateway_pick_instance(struct gateway *g, struct upstream **u,
    struct gateway_observer *owner) MCPVISOR_MUST_CHECK;

/* Whoever owns a URI: listed, named by a recent result, or fitting a template. uri is a
 * JSON string. NULL: nobody. */
struct upstream *gateway_route_uri(struct gateway *g, struct jtext uri);
/* A result of u names these URIs. */
void gateway_note_uris(
    struct gateway *g, struct upstream *u, const char *base, const struct json_msg *json);

/* The decoded text of a JSON string: in place when it has no escapes, else in scratch.
 * Absent if t is no string. */
struct jtext gateway_text(struct gateway *g, struct jtext t);

/* Subscriptions to single resources: many subscribers, one watch at the owner. */
struct subscription;

/* One client's wish about one URI; a member of its owner, who sets the first part. */
struct subscriber {
	struct gateway_observer *owner;
	/* The owner's answer, o NULL for yes; once. After a no it is removed. May come
	 * before subscription_add returns. */
	void (*on_settled)(void *arg, const struct outcome *o);
	void (*on_updated)(void *arg, const struct link_msg *m);
	void *arg;
	/* Shared by the subscribers of one receiver, which hears of an event once however
	 * many of them it fits; NULL: each hears of it. */
	uint64_t *heard;
	struct subscription *sub;
	struct subscriber *next, **prev;
	bool settled;
};

/* uri is a JSON string, copied. MV_NOT_FOUND, MV_UNSUPPORTED, MV_TOO_LONG, or why the
 * owner cannot take it: then nothing happened. */
enum mv_err subscription_add(
    struct gateway *g, struct jtext uri, struct subscriber *s) MCPVISOR_MUST_CHECK;
void subscription_remove(struct subscriber *s); /* fine when not added */

#endif
