/* SPDX-License-Identifier: MIT */
/*
 * An upstream: an MCP server that we front, of either era, with its process,
 * its lists and the requests it still owes an answer.
 *
 * Its life is a state x event table in upstream.c; the two eras are adapters
 * behind struct era_ops. Nothing above asks which revision it speaks.
 */
#ifndef MCPVISOR_UPSTREAM_H
#define MCPVISOR_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/child.h"
#include "mcpvisor/client_caps.h"
#include "mcpvisor/link.h"
#include "mcpvisor/method.h"
#include "mcpvisor/outcome.h"
#include "mcpvisor/question.h"
#include "mcpvisor/revision.h"
#include "mcpvisor/ulist.h"
#include "mcpvisor/upcall.h"
#include "mcpvisor/upstream_caps.h"
#include "mcpvisor/upstream_conf.h"
#include "mcpvisor/upstream_stats.h"

struct curl_loop;
struct upstream;
struct upstream_req;

/* X(STATE, name) */
#define UPSTREAM_STATES(X)                                                               \
	X(DOWN, "down")	    /* no process */                                             \
	X(PROBE, "probe")   /* server/discover sent */                                   \
	X(BOTH, "both")	    /* initialize sent as well */                                \
	X(INIT, "init")	    /* initialize sent alone, or discover refused */             \
	X(LATE, "late")	    /* initialize refused, discover may still answer */          \
	X(AGREED, "agreed") /* discover answered, initialize may still be */             \
	X(READY, "ready")   /* takes calls */                                            \
	X(ASLEEP, "asleep") /* no process until it is used; its lists are known */       \
	X(WAKING, "waking") /* wanted again; its last process is on its way out */       \
	X(PARKED, "parked") /* failed too often, or cannot run */

enum upstream_state {
#define X(id, name) UPSTREAM_ST_##id,
	UPSTREAM_STATES(X)
#undef X
	    UPSTREAM_ST_MAX
};

struct upstream_req_cb {
	/* notifications/progress for this request. */
	void (*on_progress)(void *arg, const struct link_msg *m);
	/* A log message that only this request can have caused. NULL: not wanted. */
	void (*on_log)(void *arg, const struct link_msg *m);
	/* A question of the upstream that is about this request for certain. NULL: it has
	 * nobody to ask. */
	void (*on_question)(void *arg, struct question *q);
	/* The end; the request is out of every table and its memory is the owner's
	 * again. Comes exactly once unless cancelled. */
	void (*on_done)(void *arg, const struct outcome *o);
};

/* One request in flight or held; a member of its owner, who sets cb and arg and
 * zeroes the rest. */
struct upstream_req {
	const struct upstream_req_cb *cb;
	void *arg;
	const void *owner;  /* whom it is for; the upstream only carries it */
	struct upstream *u; /* NULL: idle */
	uint64_t id;	    /* ours; 0 while held */
	struct upstream_req *next, **prev;
	uint64_t started_ms, heard_ms, rest_ms;
	uint32_t call_ms, call_max_ms; /* 0: the upstream's; set by the owner */
	enum method method;
	enum mcp_level level; /* what it wants of log messages; MCP_LV_MAX: nothing */
	bool is_call;	      /* a client's; set by upstream_send */
	bool is_sent;	      /* it went out: it may have had effects */
	bool is_endless;      /* of our own and without a time limit */
	bool is_repaired;     /* it was sent a second time, with other headers */
	unsigned n_questions; /* open ones: its time limits rest, since rest_ms */
	struct upstream_call_copy *held;
};

struct upstream_cb {
	/* A list was fetched whole; changed: its bytes differ from before. */
	void (*on_list)(void *arg, struct upstream *u, enum list_kind kind, bool changed);
	/* It became ready with all lists, or failed for the first time. Once. */
	void (*on_settled)(void *arg, struct upstream *u);
	/* notifications/message, whole. */
	void (*on_log)(void *arg, struct upstream *u, const struct link_msg *m);
	/* notifications/resources/updated, whole, once an event. */
	void (*on_updated)(void *arg, struct upstream *u, const struct link_msg *m);
	/* upstream_stop has done its work. */
	void (*on_stopped)(void *arg, struct upstream *u);
	/* What upstream_put_memory would say is new: not what it said when this came
	 * last, or this never came. Once a burst of changes, maybe inside of
	 * upstream_stop; may be NULL. */
	void (*on_memory)(void *arg, struct upstream *u);
	/* The last call in flight has ended; may be NULL. From a turn of its own. */
	void (*on_idle)(void *arg, struct upstream *u);
	/* It asks its client. r: the call that it asks for, as far as the transport
	 * tells; NULL: it does not. The receiver takes q (question_take), or answers it,
	 * before returning. */
	void (*on_question)(
	    void *arg, struct upstream *u, struct upstream_req *r, struct question *q);
	/* notifications/elicitation/complete, whole; may be NULL. */
	void (*on_elicited)(void *arg, struct upstream *u, const struct link_msg *m);
	/* A task's status, or progress of a request that is over; may be NULL. */
	void (*on_task)(void *arg, struct upstream *u, const struct link_msg *m);
};

/* What upstreams are reached with. curl: needed for remote ones. */
struct upstream_env {
	struct loop *loop;
	struct spawner *spawner;
	struct curl_loop *curl;
};
/* conf stays the caller's and valid. Starts nothing. */
struct upstream *upstream_new(const struct upstream_env *env,
    const struct upstream_conf *conf, const struct upstream_cb *cb, void *arg);
/* What a legacy one is told that its client can do. As long as this is not known its
 * initialize waits, and no time limit runs; a later change counts from the next start.
 * What it asks beyond that is refused without a word to anybody. */
void upstream_set_client_caps(struct upstream *u, unsigned caps);
/* Whether it is known to ask its client by a way that does not tell which call a question
 * belongs to; kept in its memory. */
bool upstream_asks(const struct upstream *u);
void upstream_note_asks(struct upstream *u);
/* Tells one that was told of roots that they have changed. */
void upstream_tell_roots_changed(struct upstream *u);
/* A remote one, whose messages say which call they belong to. */
bool upstream_tells_calls(const struct upstream *u);
bool upstream_is_remote(const struct upstream *u);
/* How it may ask: in the results of calls, so that questions go to whoever calls; by
 * requests of its own. Both as long as nothing is known of it. */
bool upstream_may_ask_in_results(const struct upstream *u);
bool upstream_may_ask_by_request(const struct upstream *u);
/* When it was told last to give up a call, on which it may still be at work; 0: never. */
uint64_t upstream_withdrawn_ms(const struct upstream *u);
/* The owner of all the calls that this process was told to give up; NULL: there are none,
 * or several. */
const void *upstream_withdrawn_owner(const struct upstream *u);
/* owner is no more. */
void upstream_forget_owner(struct upstream *u, const void *owner);

/* Before it starts: the same server is behind of, so what is known of its era holds. */
void upstream_follow(struct upstream *u, const struct upstream *of);
/* Stopped, parked or never started; else its process is killed on the spot. */
void upstream_free(struct upstream *u);
/* By its start mode: an on_use one whose lists are known goes to sleep instead. */
void upstream_start(struct upstream *u);
/* Whatever the mode; ends sleep, back-off and parking, but not of one that cannot run. */
void upstream_wake(struct upstream *u);
/* Its process goes by the ladder and a new one comes; what is in flight fails. */
void upstream_restart(struct upstream *u, const char *reason);
/* Goes by another conf from now on; upstream_conf_is_same_process of both. */
void upstream_set_conf(struct upstream *u, const struct upstream_conf *conf);
/* Keeps one more reason not to stop u when it is idle (a stream, a task), or one less. */
void upstream_hold(struct upstream *u, bool hold);

/* What a later process can use of u before it has answered: lists, capabilities, era,
 * instructions. Nothing is appended before u was ready, or took such bytes, once. Lists
 * that never came are not among them. */
void upstream_put_memory(const struct upstream *u, struct buf *out);
/* Takes it back, before upstream_start; u then has lists that are known, stale (ttl 0),
 * and is settled if they are all there. MV_PROTOCOL: not such bytes, and nothing
 * happened; MV_NOMEM. */
enum mv_err upstream_take_memory(
    struct upstream *u, const char *p, size_t n) MCPVISOR_MUST_CHECK;
/* Fails what is in flight (MV_STOPPING), then the ladder. on_stopped may come before
 * returning. */
void upstream_stop(struct upstream *u, const struct child_ladder *ladder);

const char *upstream_name(const struct upstream *u);
const struct upstream_conf *upstream_conf_of(const struct upstream *u);
enum upstream_state upstream_state(const struct upstream *u);
const char *upstream_state_text(enum upstream_state st);
bool upstream_is_settled(const struct upstream *u);
/* Ready and all of its lists are in. */
bool upstream_is_complete(const struct upstream *u);
const struct upstream_caps *upstream_caps(const struct upstream *u);
/* Its instructions, NULL if none. */
const char *upstream_instructions(const struct upstream *u);
const struct ulist *upstream_list(const struct upstream *u, enum list_kind kind);
/* The revision it spoke when it was ready the last time; "" if it never was. */
const char *upstream_revision_text(const struct upstream *u);
/* Why it is not ready, for people; "" if it is. */
const char *upstream_reason(const struct upstream *u);
/* The same for clients: without the frames of a stack, what a server said to
 * its operator, where a command was looked for. */
const char *upstream_told(const struct upstream *u);

/* Why it cannot even hold a call; MV_OK if it can. */
enum mv_err upstream_refusal(const struct upstream *u);
/* Sends a client's request, or holds it while the upstream starts. On MV_OK r is in
 * flight and on_done will come, never before returning. Otherwise (MV_BUSY,
 * MV_BACKOFF, MV_PARKED, MV_NOMEM, ...) nothing happened. MV_PARAMS, also as the end of a
 * held one: has_state, and it is a legacy one. */
enum mv_err upstream_send(struct upstream *u, struct upstream_req *r,
    const struct upstream_call *c) MCPVISOR_MUST_CHECK;
/* A request of our own: members are the members of params without braces ("" for
 * none). Only while ready. */
enum mv_err upstream_ask(struct upstream *u, struct upstream_req *r, enum method m,
    const char *members) MCPVISOR_MUST_CHECK;
/* Forgets r and tells the upstream. cancel is the client's notification, whose params
 * go along with our id in them; NULL: a plain one. No callback comes. r may be idle. */
void upstream_cancel(struct upstream_req *r, const struct link_msg *cancel);
size_t upstream_in_flight(const struct upstream *u); /* of clients; or held */
struct upstream_stats upstream_stats(const struct upstream *u);
/* A result of a tool of u was looked at (o->label, o->answer). */
void upstream_note_answer(struct upstream *u, const struct outcome *o);
/* Another number when who it acts for is not known any more: after a start, a refusal or
 * change of credentials (their files are read), word that tools are others. */
uint64_t upstream_generation(const struct upstream *u);
uint64_t upstream_refusals(const struct upstream *u); /* of credentials */
/* A call that was refused before it came to upstream_send (there is no instance). */
void upstream_note_busy(struct upstream *u);
/* Visits each of them. fn returns false to stop. */
void upstream_each_req(
    struct upstream *u, bool (*fn)(struct upstream_req *r, void *arg), void *arg);

/* A wish for notifications/resources/updated about one URI, kept over restarts; a
 * member of its owner, who sets uri (JSON string text, valid until unwatch), on_settled
 * and arg. One watch a URI: the owner counts. */
struct upstream_watch {
	struct jtext uri;
	/* The upstream's first answer: o NULL is yes. Once, maybe before
	 * upstream_watch returns. May unwatch this one, no other. */
	void (*on_settled)(void *arg, const struct outcome *o);
	void *arg;
	struct upstream *u;
	struct upstream_watch *next, **prev;
	bool settled;
	struct upstream_req req;
};
void upstream_watch(struct upstream *u, struct upstream_watch *w);
void upstream_unwatch(struct upstream_watch *w);

/* The most verbose level that any session wants; MCP_LV_MAX: nobody asked. */
void upstream_set_level(struct upstream *u, enum mcp_level level);
/* What it lists was not there: asks for the list again, if it was not just asked for. */
void upstream_doubt_list(struct upstream *u, enum list_kind kind);
/* Asks for a list again if it has gone stale by its ttl. Never more than once a
 * second. */
void upstream_refresh_stale(struct upstream *u, enum list_kind kind);

#endif
