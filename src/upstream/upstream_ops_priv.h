/* SPDX-License-Identifier: MIT */
/* What upstreams differ in: how they are reached, and which era they speak; and the
 * events by which that is told. */
#ifndef MCPVISOR_UPSTREAM_OPS_PRIV_H
#define MCPVISOR_UPSTREAM_OPS_PRIV_H

#include "mcpvisor/upstream.h"

#include <sys/uio.h>

/* X(EVENT, name) */
#define UPSTREAM_EVENTS(X)                                                               \
	X(UP, "up")                                                                      \
	X(DISCOVER_OK, "discover_ok")                                                    \
	X(DISCOVER_LEGACY, "discover_legacy") /* an error that is not a modern one */    \
	X(DISCOVER_BAD, "discover_bad")	      /* modern, but no revision in common */    \
	X(INIT_OK, "init_ok")                                                            \
	X(INIT_BAD, "init_bad")                                                          \
	X(PROBE_TIMER, "probe_timer")                                                    \
	X(START_TIMER, "start_timer")                                                    \
	X(RENEW, "renew") /* it has lost what initialize had set up */                   \
	X(DOWN, "down")                                                                  \
	X(GONE, "gone")	      /* down, as we had asked */                                \
	X(EXCUSED, "excused") /* down, maybe of the probe: another one comes at once */  \
	X(PARK, "park")                                                                  \
	X(SLEEP, "sleep") /* not needed for the time being */                            \
	X(WAKE, "wake")	  /* needed */                                                   \
	X(RESTART, "restart")

enum upstream_event {
#define X(id, name) UPSTREAM_EV_##id,
	UPSTREAM_EVENTS(X)
#undef X
	    UPSTREAM_EV_MAX
};

/* Errors that only a modern server sends. */
enum {
	RPC_HEADER_MISMATCH = -32020,
	RPC_MISSING_CAPABILITY = -32021,
	RPC_VERSION = -32022
};

/* What is sent. */
struct upstream_message {
	uint64_t id;			  /* of a request; 0: of anything else */
	enum method method;		  /* of a request of ours, or a call */
	const struct upstream_call *call; /* a client's; NULL: our own words */
};

/* How a server of a kind is reached and kept. It tells by events: UP; DOWN and then maybe
 * PARK; GONE. */
struct kind_ops {
	const char *name;
	bool is_remote;
	void (*init)(struct upstream *u, const struct upstream_env *env);
	void (*free)(struct upstream *u);
	/* As child_start, child_stop and so on. */
	void (*start)(struct upstream *u);
	void (*stop)(struct upstream *u);
	void (*restart)(struct upstream *u, const char *why);
	void (*fail)(struct upstream *u, const char *why);
	void (*set_ladder)(struct upstream *u, const struct child_ladder *l);
	void (*set_conf)(struct upstream *u); /* u->conf is another one */
	/* Nothing is there, and nothing is wanted. */
	bool (*is_resting)(const struct upstream *u);
	const struct child_end *(*last_end)(const struct upstream *u);
	void (*put_stats)(const struct upstream *u, struct upstream_stats *s);
	/* Initialize was answered: tells it notifications/initialized, and when that is
	 * done INIT_OK comes. */
	void (*on_greeted)(struct upstream *u);
	/* It is ready: before its era says a word, and after. The second may be NULL. */
	void (*note_ready)(struct upstream *u);
	void (*on_ready)(struct upstream *u);
	/* Whether anything can be sent. */
	bool (*is_open)(const struct upstream *u);
	/* As link_send. No callback comes before it returns. */
	enum mv_err (*send)(struct upstream *u, const struct upstream_message *what,
	    const struct iovec *iov, int n);
	size_t (*out_pending)(const struct upstream *u);
	/* The rest may be NULL. */
	/* It is parked, and is wanted: starts it if what was wrong has changed. */
	void (*look_again)(struct upstream *u);
	/* That call is in flight now. */
	void (*on_sent)(
	    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);
	/* Nobody waits for this answer any more. True: the server notices by itself. */
	bool (*drop)(struct upstream *u, uint64_t id);
	/* r got this error. True: it is not over, as it will be sent once more. */
	bool (*on_error)(
	    struct upstream *u, struct upstream_req *r, const struct outcome *o);
	/* A list was fetched; may take entries out. */
	void (*on_list)(struct upstream *u, enum list_kind kind, struct ulist *l);
	/* A list was fetched, or could not be. */
	void (*on_listed)(struct upstream *u, enum list_kind kind);
	bool (*tells_calls)(const struct upstream *u);
};
extern const struct kind_ops kind_stdio, kind_http, kind_graphql, kind_exec, kind_shell;

struct era_ops {
	const char *name;
	bool asks_in_results; /* a result may be input_required */
	bool mirrors;	      /* headers of HTTP repeat what is in the body */
	/* Adds to ed what this era wants changed in the params of a client's call;
	 * text that the edits point to goes into scratch, which must not grow after
	 * that. Returns text to use for absent params, or NULL. */
	const char *(*edit_params)(struct upstream *u, const struct upstream_call *c,
	    uint64_t id, struct json_edits *ed, struct buf *scratch);
	/* Appends the members every request of our own carries in params. */
	void (*put_own_meta)(struct upstream *u, struct buf *out);
	/* It just became ready. */
	void (*on_ready)(struct upstream *u);
	/* Its process is gone. */
	void (*on_down)(struct upstream *u);
	void (*watch)(struct upstream *u, struct upstream_watch *w);
	void (*unwatch)(struct upstream *u, struct upstream_watch *w);
	void (*set_level)(struct upstream *u);
	/* A call that is about to be sent wants log messages from this level on. */
	void (*raise_level)(struct upstream *u, enum mcp_level wanted);
	/* A notification that the common part does not handle. */
	void (*on_notification)(
	    struct upstream *u, enum method m, const struct link_msg *msg);
	/* What an error says of our use of the protocol, which no client can mend; NULL:
	 * nothing. */
	const char *(*fault_of)(const struct outcome *o);
};
extern const struct era_ops era_legacy, era_modern;

#endif
