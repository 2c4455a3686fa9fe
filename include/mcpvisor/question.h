/* SPDX-License-Identifier: MIT */
/*
 * A request of a legacy upstream to its client: sampling/createMessage,
 * elicitation/create, roots/list. Made for the upstream, handed to whoever it is for, who
 * answers it once, or hears that nobody waits for the answer any more.
 * Spec: 2025-11-25 client/sampling, client/elicitation, client/roots.
 */
#ifndef MCPVISOR_QUESTION_H
#define MCPVISOR_QUESTION_H

#include "mcpvisor/link.h"
#include "mcpvisor/method.h"
#include "mcpvisor/wording_table.h"

struct question;
struct upstream;
struct upstream_req;

/* The one who has to answer. */
struct question_cb {
	/* It was cancelled by its upstream, or that is gone; q is no more after this. */
	void (*on_withdrawn)(void *arg, struct question *q);
};

/* What the upstream does for it. */
struct question_ops {
	/* Somebody has it: the time limits of req rest while it is open; req NULL: of all
	 * calls of that upstream, as it may be of any. */
	void (*on_taken)(struct question *q, struct upstream_req *req);
	/* Sends the answer and takes q out of every table. */
	void (*answer)(
	    struct question *q, const char *member, const struct iovec *body, int n);
	/* Passes notifications/progress on, with the upstream's own token. */
	void (*progress)(struct question *q, const struct link_msg *m);
};

struct question {
	struct question *next, **prev; /* all of the upstream's that are open */
	const struct question_ops *ops;
	struct upstream *u;
	struct jtext id; /* the upstream's */
	enum method method;
	struct link_msg msg; /* a copy; whole, with the upstream's id */
	/* The taker's. */
	const struct question_cb *cb;
	void *arg;
	struct upstream_req *req; /* whose time limits rest; or NULL */
	bool is_loose;		  /* those of all calls do */
	uint64_t asked_ms;
	struct json_msg json;
	char bytes[];
};

/* A copy of m, which is in no table yet. NULL: no memory. */
struct question *question_new(const struct question_ops *ops, struct upstream *u,
    enum method method, const struct link_msg *m);
/* It is out of every table: tells its taker, and it is no more. */
void question_withdraw(struct question *q);
struct jtext question_params(const struct question *q); /* absent if it has none */

/* From now on q is the taker's to answer, in the place of whoever had it before. req: the
 * request of whose call it is a part, or NULL: that is not known. */
void question_take(struct question *q, const struct question_cb *cb, void *arg,
    struct upstream_req *req);
/* Sends the answer, member is "result" or "error", and ends q. */
void question_answer(
    struct question *q, const char *member, const struct iovec *body, int n);
/* The same with an error of our own; counted. */
void question_refuse(struct question *q, enum wording w);
/* Does nothing if q asked for no progress. */
void question_progress(struct question *q, const struct link_msg *m);

#endif
