/* SPDX-License-Identifier: MIT */
/*
 * One client request on its way through: routed by table, sent to its owner, ended
 * once.
 */
#ifndef MCPVISOR_CALL_H
#define MCPVISOR_CALL_H

#include "mcpvisor/gateway.h"
#include "mcpvisor/wording_table.h"

struct call_cb {
	/* Progress of this call; comes before on_done and never after. */
	void (*on_progress)(void *arg, const struct link_msg *m);
	/* A log message that is this call's for certain. */
	void (*on_log)(void *arg, const struct link_msg *m);
	/* A question for whoever made this call, for certain; takes or answers q. */
	void (*on_question)(void *arg, struct question *q);
	/* The one end. The call's memory is the owner's again. */
	void (*on_done)(void *arg, const struct outcome *o);
};

/* A member of its owner, zeroed up to own. */
struct call {
	const struct call_cb *cb;
	void *arg;
	struct gateway *g;
	struct gateway_observer *owner;
	struct route *route; /* by name; NULL for what goes by URI */
	struct upstream *u;  /* NULL while waiting for lists */
	struct upstream_req req;
	struct gateway_waiter waiter;
	/* Set by the owner: what its client can be asked, and whether the message is kept
	 * for call_retry if its upstream may ask in a result. */
	unsigned caps;
	bool keeps;
	struct upstream_call_copy *copy; /* while waiting */
	struct upstream_call_copy *kept; /* for call_retry */
	struct call_identity *identity;	 /* it asks who somebody is; NULL: it does not */
	uint64_t refusals;		 /* of its upstream, when it was sent */
	uint64_t serial;		 /* of the instance that it was sent to */
	bool is_asked;			 /* its client is: that instance is kept */
	/* Set by the owner: the task that a tasks/ request is about; for call_start
	 * alone, which keeps its number. NULL: there is no such task. */
	const struct task *task;
	uint64_t task_serial;
	/* From here on set by call_start. */
	struct buf own;	  /* what we put in place of the client's words */
	struct buf input; /* the answers of a call_retry */
	/* Of MV_PARAMS: the sentence that says what is wrong, if it is not the name; or
	 * "". */
	char why[WORDING_BYTES];
};

/* Starts c, whose cb, arg and owner (NULL: nobody, who is shown the first view) are set.
 * req->target and req->arguments are filled in here. MV_OK: on_done will come, not before
 * returning; an outcome of MV_PARAMS has c->why as its detail. Otherwise nothing
 * happened: MV_NOT_FOUND (no such tool, prompt, resource that the owner's view shows),
 * MV_PARAMS (see c->why), MV_UNSUPPORTED (the owner completes nothing), or why the owner
 * cannot take it; c->u and c->route tell the owner, if one was found, until call_fini. */
enum mv_err call_start(struct gateway *g, struct call *c,
    const struct upstream_call *req) MCPVISOR_MUST_CHECK;
/* c, which keeps, ended with OUTCOME_INPUT_REQUIRED, and its client was asked: sends it
 * again, to the same instance, with the answers (an object) and the state as the upstream
 * wrote it; either may be absent. As call_start; MV_DIED: that instance is gone. */
enum mv_err call_retry(
    struct call *c, struct jtext responses, struct jtext state) MCPVISOR_MUST_CHECK;
/* While its client is asked the instance of c does not end of its own, but it may die or
 * be replaced: c->u is NULL after this if it has gone. To be called before c->u is used
 * then. */
void call_look(struct call *c);
/* Ends c without an answer and tells its owner. cancel as in upstream_cancel. */
void call_cancel(struct call *c, const struct link_msg *cancel);
/* Lets go of the route; c may be used again. */
void call_fini(struct call *c);
/* Whether the gateway forwards m to the owner of something. */
bool call_is_forwarded(enum method m);

#endif
