/* SPDX-License-Identifier: MIT */
/* What the files of the base of our own kinds share; no business of the kinds. */
#ifndef MCPVISOR_UPSTREAM_LOCAL_BASE_PRIV_H
#define MCPVISOR_UPSTREAM_LOCAL_BASE_PRIV_H

#include "upstream_local_priv.h"

#define LOCAL_MAGIC   0x6c6f6361u
#define LOCAL_LOOK_MS 2000 /* between looks for a change, while it is parked */

/* X(STATE, name) */
#define LOCAL_STATES(X)                                                                  \
	X(DOWN, "down")                                                                  \
	X(STARTING, "starting")                                                          \
	X(UP, "up")                                                                      \
	X(ENDING, "ending")                                                              \
	X(BACKOFF, "backoff")                                                            \
	X(FAILED, "failed")

enum local_state {
#define X(id, name) LOCAL_ST_##id,
	LOCAL_STATES(X)
#undef X
	    LOCAL_ST_MAX
};

/* X(EVENT, name) */
#define LOCAL_EVENTS(X)                                                                  \
	X(START, "start")                                                                \
	X(STOP, "stop")                                                                  \
	X(RESTART, "restart")                                                            \
	X(UP, "up")                                                                      \
	X(DIE, "die")                                                                    \
	X(OVER, "over")                                                                  \
	X(TIMER, "timer")

enum local_event {
#define X(id, name) LOCAL_EV_##id,
	LOCAL_EVENTS(X)
#undef X
	    LOCAL_EV_MAX
};

/* An answer that waits for its turn. */
struct local_answer {
	struct local_answer *next;
	uint64_t id;
	struct buf text; /* the whole message */
};

struct local {
	unsigned magic;
	struct upstream *u;
	const struct local_ops *ops;
	void *arg; /* the kind's own */
	enum local_state state;
	bool wanted;
	struct backoff backoff;
	struct timer timer;
	struct deferred over, deliver;
	struct local_call *calls;
	uint64_t waiting; /* server/discover, until it is up; 0: none */
	struct local_answer *answers, **answers_tail;
	size_t n_answers;
	uint64_t up_ms, resume_ms;
	struct child_end end;
	/* Of the answer that is delivered; of a call that comes, maybe meanwhile. */
	struct json_msg json, asked;
};

/* upstream_local_serve.c */
void local_serve_init(struct local *l);
void local_serve_waiting(struct local *l); /* it is up */
void local_drop_calls(struct local *l);
void local_drop_answers(struct local *l);
/* As the operations of a kind. */
enum mv_err local_send(struct upstream *u, const struct upstream_message *what,
    const struct iovec *iov, int n);
bool local_drop(struct upstream *u, uint64_t id);
void local_on_sent(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);

#endif
