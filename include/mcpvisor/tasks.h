/* SPDX-License-Identifier: MIT */
/*
 * Tasks that upstreams have made for clients: whose they are, and under which id each
 * side knows them.
 * Spec: 2025-11-25 basic/utilities/tasks; the extension io.modelcontextprotocol/tasks.
 */
#ifndef MCPVISOR_TASKS_H
#define MCPVISOR_TASKS_H

#include "mcpvisor/err.h"
#include "mcpvisor/json.h"
#include "mcpvisor/method.h"

struct gateway;
struct gateway_observer;
struct task;
struct upstream;

/* Who may know of a task. */
struct task_owner {
	struct gateway_observer *o;
	struct jtext principal; /* tells the clients of a crowd apart; else absent */
	enum task_kind kind;
};

/* Of one that was made just now. */
struct task_made {
	struct jtext body;  /* an object with taskId, a string, and the rest */
	struct jtext token; /* its client's progress token; absent: none */
	uint64_t request;   /* the id that its request had at the upstream; 0: unknown */
};

/* False: o must not make one more. */
bool tasks_have_room(struct gateway *g, const struct gateway_observer *o);
/* u has made one for who. MV_BUSY: there are too many; MV_TOO_LONG, MV_NOMEM;
 * MV_PROTOCOL: it has no id that could be passed on, or one of somebody else's. */
enum mv_err task_note(struct gateway *g, const struct task_owner *who, struct upstream *u,
    const struct task_made *made, struct task **out) MCPVISOR_MUST_CHECK;

/* By the id (a JSON string) that we gave out for it. NULL: none of who's. Valid until
 * control returns to the loop. */
struct task *task_find(struct gateway *g, const struct task_owner *who, struct jtext id);
/* By the id that u gave it; the same. */
struct task *task_find_own(struct gateway *g, const struct gateway_observer *o,
    const struct upstream *u, struct jtext own);
/* By its number, which no other one gets. */
struct task *task_get(const struct gateway *g, uint64_t serial);
/* The next one of who's after that number; NULL: it was the last. */
struct task *task_next(
    const struct gateway *g, const struct task_owner *who, uint64_t serial);
uint64_t task_serial(const struct task *t);
uint64_t tasks_last_serial(const struct gateway *g);
struct upstream *task_upstream(const struct task *t);
struct jtext task_id(const struct task *t);	/* ours, a JSON string */
struct jtext task_own_id(const struct task *t); /* the upstream's, the same */

/* Its owner was told this of it: an object with status and the rest. */
void task_heard(struct task *t, struct jtext body);
/* Its owner has what it was made for: its upstream need not wait any more. */
void task_settle(struct task *t);

/* Puts t's id in place of the upstream's, at id, which is in base. */
void task_edit(
    const struct task *t, const char *base, struct jtext id, struct json_edits *ed);
/* The same for the value of a related-task member of u's message, if o knows of it. */
void task_edit_related(struct gateway *g, const struct gateway_observer *o,
    const struct upstream *u, const char *base, struct json_span related,
    struct json_edits *ed);

/* One page of a list of tasks, as their upstreams describe them now. */
struct task_page;
struct task_page_cb {
	/* All have answered; maybe before task_page_start returns. May free the page. */
	void (*on_done)(void *arg, struct task_page *p);
};
/* Of who's tasks after that number; who->o must stay until task_page_free. */
struct task_page *task_page_new(struct gateway *g, const struct task_owner *who,
    uint64_t after, const struct task_page_cb *cb, void *arg);
void task_page_start(struct task_page *p);
void task_page_free(struct task_page *p); /* NULL is allowed */
/* Appends {"tasks":[...]} and, if there are more, "nextCursor". */
void task_page_put(const struct task_page *p, struct buf *out);

#endif
