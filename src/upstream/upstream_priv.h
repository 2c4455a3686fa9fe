/* SPDX-License-Identifier: MIT */
/* What the files of an upstream share. */
#ifndef MCPVISOR_UPSTREAM_PRIV_H
#define MCPVISOR_UPSTREAM_PRIV_H

#include "mcpvisor/buf.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/upstream.h"

#include "upstream_ops_priv.h"
#include "upstream_parts_priv.h"

#define UPSTREAM_MAGIC	0x75707374u
#define OWN_REQUEST_MS	30000
#define RELIST_PAUSE_MS 200
#define MUTE_MS		50
#define MEMORY_MS	200 /* a burst of changes */
#define UNAME(u)	LOG_ESC((u)->conf->name, strlen((u)->conf->name))

void era_modern_init(struct upstream *u);
void era_modern_fini(struct upstream *u);

struct upstream {
	unsigned magic;
	const struct upstream_conf *conf;
	const struct upstream_cb *cb;
	void *arg;
	struct loop *loop;
	const struct kind_ops *kind; /* NULL: it cannot run */
	struct child *child;	     /* kind_stdio's */
	struct link *link;
	struct remote *remote;	   /* kind_http's */
	struct local *local;	   /* of the kinds that make their tools */
	uint64_t n_refused;	   /* times that our credentials were refused */
	uint64_t n_tools_changes;  /* times that it said that its tools are others */
	const struct era_ops *era; /* set while READY */
	enum upstream_state state;
	enum revision revision;
	enum era_pin known_era;		    /* learnt, or pinned */
	enum transport_pin known_transport; /* the same; of a remote one */
	enum mv_err park_err;		    /* why it is PARKED */
	unsigned silent_ends; /* exits with status 0 in a row before any message */
	uint32_t n_starts;
	unsigned holds, listen_now;
	unsigned client_caps; /* what it is told that its client can do */
	enum mcp_level level, told_level;
	bool skip_probe;    /* the last process may have died of it */
	bool excused;	    /* such a death was forgiven since it was last ready */
	bool probe_retried; /* discover was sent again after -32022 */
	bool recalled_era;  /* known_era was learnt by an earlier process of ours */
	bool caps_known;    /* client_caps is set */
	bool init_waits;    /* initialize goes out when it is */
	bool asks; /* it has asked where that names no call; kept in its memory */
	bool settled, stopping;
	bool heard;	 /* a message came from this process */
	bool relisten;	 /* the set changed while a listen was being opened */
	bool has_memory; /* it was ready, or recalled it */
	bool has_told;	 /* told_hash is set */
	struct upstream_caps caps;
	const char *restart_why;	 /* during that event */
	uint64_t since_ms;		 /* in this state */
	struct child_ladder stop_ladder; /* set while stopping */
	struct upstream_req discover, init, level_req;
	struct timer probe_timer, start_timer;
	struct timer mute_timer; /* output has ended, the process has not */
	/* Requests */
	struct idmap *by_id;
	uint64_t last_id;
	struct upstream_req *flying, *held, **held_tail;
	size_t n_calls, n_held, held_bytes;
	struct timer call_timer;
	uint64_t call_timer_due;
	struct json_msg batch_json; /* an element of a batch from the child */
	struct buf *batch_out;	    /* answers to its requests, while in one */
	/* Questions */
	struct question *questions;
	unsigned n_questions, n_loose; /* of those: that may be of any call */
	uint64_t loose_ms;	       /* since when there are such */
	size_t question_bytes;
	struct buf scratch;
	/* Use */
	uint64_t used_ms;      /* last time that it was in use */
	uint64_t withdrawn_ms; /* last time that a call of this process was given up */
	const void *withdrawn_owner;
	struct timer idle_timer;
	struct deferred idle_call; /* to say that no call is in flight */
	struct upstream_stats stats;
	/* Memory */
	uint64_t told_hash;	   /* of what on_memory came for last */
	struct timer memory_timer; /* end of a burst */
	/* What it said */
	char *instructions;
	struct ulist lists[LIST_MAX];
	struct lister listers[LIST_MAX];
	/* Subscriptions and log level */
	struct upstream_watch *watches;
	struct mlisten listens[2]; /* current, and the one that replaces it */
	unsigned listen_fails;	   /* that were not acknowledged, in a row */
	struct timer listen_timer;
	struct log_site noise_site;
	char reason[640];
	char told[512]; /* what clients hear of it; "": the same */
};

void upstream_event(struct upstream *u, enum upstream_event ev);
void upstream_set_reason(struct upstream *u, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void upstream_settle(struct upstream *u);
/* This process has to go, whatever it may still answer. */
void upstream_give_up(struct upstream *u, const char *why);

/* upstream_child.c */
void upstream_on_mute(void *arg);
/* After upstream_set_reason: what of it clients may hear. */
void upstream_set_told(struct upstream *u, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void upstream_set_end_reason(struct upstream *u, const struct child_end *end);

/* upstream_kind.c */
void upstream_kind_init(struct upstream *u, const struct upstream_env *env);
struct backoff_opts upstream_backoff_opts(const struct upstream_conf *c);
void upstream_look_again(struct upstream *u); /* it is parked, and wanted */
static inline bool
upstream_is_open(const struct upstream *u)
{
	return u->kind->is_open(u);
}

/* upstream_call.c */
void upstream_calls_init(struct upstream *u);
void upstream_calls_fini(struct upstream *u);
void upstream_calls_look(struct upstream *u); /* time limits have changed */
/* Keeps the sweep timer early enough for r. */
void upstream_calls_arm(struct upstream *u, const struct upstream_req *r);
/* Takes r out of every table; the upstream hears nothing of it. */
void upstream_forget(struct upstream_req *r);
/* The same, and nothing is kept open for its answer. True: the upstream notices. */
bool upstream_drop(struct upstream_req *r);
void upstream_drop_own(struct upstream *u); /* all that are no calls */
/* Takes it out and tells the upstream; cancel as in upstream_cancel. */
void upstream_withdraw(struct upstream_req *r, const struct link_msg *cancel);
/* Takes r out and tells its owner; the second half of that. */
void upstream_end(struct upstream_req *r, const struct outcome *o);
void upstream_finish(struct upstream *u, struct upstream_req *r, const struct outcome *o);
/* Ends those that were sent; ends all of them, held ones too. */
void upstream_fail_flying(struct upstream *u, enum mv_err err, const char *detail);
void upstream_fail_all(struct upstream *u, enum mv_err err, const char *detail);
enum mv_err upstream_transmit(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);
/* Sends text made by us, logging a failure. */
enum mv_err upstream_write_as(
    struct upstream *u, const struct upstream_message *what, const struct buf *b);
enum mv_err upstream_write(struct upstream *u, const struct buf *b); /* no request */
/* Starts a request of our own; era members added unless raw. */
enum mv_err upstream_ask_raw(
    struct upstream *u, struct upstream_req *r, enum method m, const char *params);

/* upstream_held.c */
enum mv_err upstream_hold_call(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);
void upstream_send_held(struct upstream *u);
/* r, in flight with a copy of its message, waits to be sent again. */
void upstream_hold_again(struct upstream_req *r);

/* upstream_sleep.c */
void upstream_use_init(struct upstream *u);
void upstream_use_fini(struct upstream *u);
bool upstream_is_used(const struct upstream *u); /* a call, watch or hold */
void upstream_note_use(struct upstream *u);
void upstream_note_last_call(struct upstream *u); /* it has left */
/* Something ended that may have kept it awake. Cheap. */
void upstream_idle_arm(struct upstream *u);

/* upstream_status.c */
void upstream_count(struct upstream *u, const struct outcome *o);
void upstream_count_refused(struct upstream *u, enum mv_err err);

/* upstream_memory.c */
void upstream_memory_init(struct upstream *u);
void upstream_memory_fini(struct upstream *u);
void upstream_memory_touch(struct upstream *u); /* it may have changed */
void upstream_memory_flush(struct upstream *u); /* tells now what it would tell soon */

/* upstream_msg.c */
/* r: whose; NULL: nobody's. */
void upstream_on_reply(
    struct upstream *u, struct upstream_req *r, const struct link_msg *m);
/* A reply that was unusable: ends its request. */
void upstream_on_bad_reply(struct upstream *u, struct jtext id, enum mv_err err);
struct upstream_req *upstream_find(struct upstream *u, struct jtext id);
/* by: the request on whose stream it came, as far as the transport tells. */
void upstream_on_message(
    struct upstream *u, struct upstream_req *by, const struct link_msg *m);
void upstream_on_bad(struct upstream *u, enum mv_err err, struct jtext id, bool is_reply,
    const char *line, size_t len);

/* upstream_list.c */
void upstream_lists_init(struct upstream *u);
void upstream_lists_fini(struct upstream *u);
void upstream_lists_start(struct upstream *u); /* fetch all that it declares */
void upstream_lists_stop(struct upstream *u);
bool upstream_lists_are_known(const struct upstream *u);
/* None is being fetched, nor missing for a reason that may pass soon. */
bool upstream_lists_are_idle(const struct upstream *u);
/* Nobody would tell of changes: they stay fresh no longer. */
void upstream_lists_go_stale(struct upstream *u);
void upstream_list_changed(struct upstream *u, enum method m);

/* upstream_question.c */
/* A request of the upstream; by: whose stream it came on, or NULL. */
void upstream_on_request(
    struct upstream *u, struct upstream_req *by, const struct link_msg *m);
void upstream_on_question_cancelled(struct upstream *u, const struct link_msg *m);
void upstream_questions_drop(struct upstream *u); /* nobody waits for answers any more */
/* r is over: its time is no longer theirs. */
void upstream_questions_forget(struct upstream *u, struct upstream_req *r);
unsigned upstream_declared_caps(const struct upstream *u); /* as initialize says */

/* upstream_watch.c: those that still wait for an answer get this one. */
void upstream_refuse_watches(struct upstream *u, const struct outcome *o);

/* upstream_hello.c */
void upstream_send_discover(struct upstream *u);
/* Asks one that is ready whether it is still a modern one; no event follows. */
void upstream_send_doubt(struct upstream *u, const struct upstream_req_cb *cb);
/* Whether what was answered to server/discover is what a modern one says. */
bool upstream_is_modern_answer(const struct outcome *o);
void upstream_send_initialize(struct upstream *u);
void upstream_send_initialized(struct upstream *u);
/* The members of params._meta that a modern request of ours needs. */
void upstream_put_modern_meta(
    struct buf *out, struct jtext client_info, struct jtext client_caps);
#define MCPVISOR_IDENTITY "{\"name\":\"mcpvisor\",\"version\":\"" MCPVISOR_VERSION "\"}"

#endif
