/* SPDX-License-Identifier: MIT */
/*
 * The fleet as one: its upstreams, the catalog, and what clients are told of both.
 */
#ifndef MCPVISOR_GATEWAY_H
#define MCPVISOR_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/catalog.h"
#include "mcpvisor/identity_gate.h"

struct gateway;

/* A client that wants to hear of changes; a member of its owner. */
struct gateway_observer {
	struct gateway_observer *next, **prev;
	unsigned view; /* what it is shown (gateway_view); set before gateway_observe */
	/* The merged bytes of its lists changed: bit 1 << kind for each. Once a burst. */
	void (*on_changed)(void *arg, unsigned kinds);
	/* A log message whose owner is this client for certain. */
	void (*on_log)(void *arg, struct upstream *u, const struct link_msg *m);
	void *arg;
	/* A question that is this client's for certain, of no call that is known; it
	 * takes or answers q. NULL: it is refused. */
	void (*on_question)(void *arg, struct upstream *u, struct question *q);
	/* notifications/elicitation/complete that is this client's; may be NULL. */
	void (*on_elicited)(void *arg, struct upstream *u, const struct link_msg *m);
	/* What becomes of a task of its, or progress of the request that it was made for;
	 * ed: what has to be changed in m for this client. May be NULL. */
	void (*on_task)(void *arg, const struct link_msg *m, struct json_edits *ed);
	/* What it can be asked (gateway_set_caps). */
	unsigned caps;
	uint64_t serial; /* the gateway's: no other one has it, ever */
	/* Its requests know nothing of each other: each is a client of its own. */
	bool is_crowd;
	bool has_instances;   /* it may have upstreams of its own (isolation) */
	bool has_stream;      /* set by gateway_set_stream */
	unsigned n_instances; /* that it has had; the gateway counts */
	unsigned n_tasks;     /* that it has; the same */
	enum mcp_level level; /* what its session asked for; MCP_LV_MAX: nothing */
};
void gateway_observe(struct gateway *g, struct gateway_observer *o);
/* o can be asked this from now on (a mask of client_caps.h). The first one to say so of a
 * gateway of one client decides what all upstreams are told. */
void gateway_set_caps(struct gateway *g, struct gateway_observer *o, unsigned caps);
/* o's roots have changed: upstreams of its own that were told of them hear of it. */
void gateway_roots_changed(struct gateway *g, struct gateway_observer *o);
/* o is sent to a URL under this elicitationId (a JSON string): the word that it is
 * complete goes to o. Bounded; the oldest is forgotten. */
void gateway_note_elicitation(
    struct gateway *g, struct gateway_observer *o, struct upstream *u, struct jtext id);
/* o has a stream on which it waits for notices, or none any more: upstreams of its own
 * do not sleep meanwhile. */
void gateway_set_stream(struct gateway *g, struct gateway_observer *o, bool has);
/* After the end of its calls and subscriptions. */
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

/* What it points to stays the caller's, valid until gateway_free or, after a
 * gateway_apply of others, until on_released says so. */
struct gateway_opts {
	struct upstream_conf *const *confs; /* the enabled ones, names differ */
	size_t n;
	const struct profile_conf *const *profiles;
	size_t n_profiles;     /* 0: one view, of everything */
	size_t name_bytes;     /* 0: CAP_NAME_BYTES */
	uint32_t list_wait_ms; /* 5000 */
	/* There is one client, and its upstreams are its own: they are told what it can
	 * do when that is known (gateway_set_caps). Else each shared one is told
	 * CLIENT_CAPS_SHARED, if anybody can be asked at all (can_ask). */
	bool one_client;
	bool can_ask;
	/* u was made and has not been started: what was kept of it can be given back
	 * (upstream_take_memory). Not for instances. From gateway_new on; may be NULL. */
	void (*on_made)(void *arg, struct upstream *u);
	/* What a fresh start could use of u is new: its lists, era or instructions. Once
	 * a burst. May be NULL. */
	void (*on_memory)(void *arg, struct upstream *u);
	/* Nothing points to the confs and profiles any more that gateway_apply replaced:
	 * comes once for each gateway_apply, in order, maybe before it returns. */
	void (*on_released)(void *arg);
	void *arg;
};

struct gateway *gateway_new(const struct upstream_env *env, const struct gateway_opts *o);
void gateway_free(struct gateway *g);
/* Starts those that start eagerly, and those of whose lists nothing is known yet. */
void gateway_start(struct gateway *g);

/* Another fleet (a reload). Upstreams are told apart by name. One whose process would
 * serve the new conf as well (upstream_conf_is_same_process) stays, with its calls,
 * sessions and subscriptions, and goes by the new limits; any other one that is new or
 * changed starts, a changed one with the lists of the old until it has its own; the old
 * process takes no more calls, finishes those in flight (for at most drain_ms), and
 * stops by its ladder. Clients hear of lists that changed. Without effect after
 * gateway_stop: then on_released does not come for it. */
struct gateway_apply_opts {
	struct gateway_opts fleet; /* callbacks and list_wait_ms are not looked at */
	uint32_t drain_ms;	   /* 30000 */
};
void gateway_apply(struct gateway *g, const struct gateway_apply_opts *o);
/* Starts u's processes anew, gracefully as above; a parked one as well. */
void gateway_restart(struct gateway *g, struct upstream *u, uint32_t drain_ms);
/* By its name in the conf; NULL: there is none. */
struct upstream *gateway_find_upstream(const struct gateway *g, const char *name);
/* The view of a profile. False: there is none of that name (NULL is the first). A view
 * keeps its number over gateway_apply; that of a profile which is gone shows nothing. */
bool gateway_view(const struct gateway *g, const char *profile, unsigned *view);
/* The number that the view of this profile has, or will have from the gateway_apply on
 * that brings it; until then it shows nothing. NULL is the first. False: there are too
 * many. */
bool gateway_reserve_view(struct gateway *g, const char *profile, unsigned *view);
/* The gateway_apply that was prepared for does not come: others may have the numbers. */
void gateway_unreserve_views(struct gateway *g);
/* Ends everybody's wait now, whatever is missing. */
void gateway_stop_waiting(struct gateway *g);
/* Ends all subscriptions, and stops all upstreams; fn comes once all are gone, maybe
 * before returning. */
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
struct gateway_list gateway_list(struct gateway *g, unsigned view, enum list_kind kind);
/* The union of what its upstreams offer; everything while some are still starting. */
struct upstream_caps gateway_caps(const struct gateway *g, unsigned view);
/* Appends the instructions of all in the view, each under its upstream's name. */
void gateway_put_instructions(const struct gateway *g, unsigned view, struct buf *out);
/* The definition of a tool by its published name (a JSON string); absent if the view
 * shows none. Valid until control returns to the loop. */
struct jtext gateway_tool_definition(struct gateway *g, unsigned view, struct jtext name);
struct catalog *gateway_catalog(struct gateway *g);
size_t gateway_count(const struct gateway *g);
struct upstream *gateway_upstream(const struct gateway *g, size_t i);

/* The instance of *u that serves a call of owner, which can be asked caps: *u itself; one
 * of owner's own, which is made and started when it is first asked for; or one without a
 * call, that declares caps (isolation "call", and a crowd's calls to one that asks).
 * MV_BUSY: there are too many. */
enum mv_err gateway_pick_instance(struct gateway *g, struct upstream **u,
    struct gateway_observer *owner, unsigned caps) MCPVISOR_MUST_CHECK;

/* A number that tells instance u from any other, before and after it; 0: it is gone. */
uint64_t gateway_serial(const struct gateway *g, const struct upstream *u);
/* The client of a call at instance u, which has that number, is asked: u is kept for the
 * call's return, or no more. Does nothing if it is gone. */
void gateway_keep_instance(
    struct gateway *g, const struct upstream *u, uint64_t serial, bool keep);
/* A call is over: a question whose owner was not certain may have one now. */
void gateway_note_call_over(struct gateway *g);
/* Instances of u beside itself. */
size_t gateway_count_instances(const struct gateway *g, const struct upstream *u);
/* upstream_in_flight and upstream_stats of u with all that its instances have, or had;
 * process and state are its own. */
size_t gateway_in_flight(const struct gateway *g, const struct upstream *u);
struct upstream_stats gateway_stats(const struct gateway *g, const struct upstream *u);

/* What the calls of a gateway share about results. */
struct gateway_answers {
	struct label label;	 /* of the call that ends now */
	struct buf hint;	 /* a text that label's edits point to */
	struct strmap *suspects; /* tools that were told of; NULL until the first */
	struct identity_gate *identities;
};
struct gateway_answers *gateway_answers(struct gateway *g);
struct loop *gateway_loop(struct gateway *g);
/* Whose credentials a call is made with that goes to instance u: text that is compared
 * with that of others (identity_gate.h). False: nobody can tell. */
#define PRINCIPAL_BYTES 24
bool gateway_principal(
    const struct gateway *g, const struct upstream *u, char out[PRINCIPAL_BYTES]);
/* Principals for whom u knows whom it acts for, or does not. */
void gateway_count_identities(
    const struct gateway *g, const struct upstream *u, struct identity_counts *out);

/* Whoever owns a URI: listed, named by a recent result, or fitting a template. uri is a
 * JSON string as clients write it. NULL: nobody that the view shows. */
struct upstream *gateway_route_uri(struct gateway *g, unsigned view, struct jtext uri);
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
	/* The gateway's. */
	struct subscription *sub;
	struct subscriber *next, **prev;
	bool settled;
	bool is_prefixed; /* it said the URI as it is published (uri_prefix) */
};

/* uri is a JSON string, copied. MV_NOT_FOUND, MV_UNSUPPORTED, MV_TOO_LONG, or why the
 * owner cannot take it: then nothing happened. */
enum mv_err subscription_add(
    struct gateway *g, struct jtext uri, struct subscriber *s) MCPVISOR_MUST_CHECK;
void subscription_remove(struct subscriber *s); /* fine when not added */

#endif
