/* SPDX-License-Identifier: MIT */
/* Tasks, inside the gateway. */
#ifndef MCPVISOR_GATEWAY_TASKS_PRIV_H
#define MCPVISOR_GATEWAY_TASKS_PRIV_H

#include "gateway_priv.h"

#include "mcpvisor/tasks.h"

struct task {
	struct task *next, **prev; /* all of them, oldest first */
	struct gateway_observer *o;
	struct member *m;
	enum task_kind kind;
	uint64_t serial;
	uint32_t restarts; /* tells the process that made it */
	bool is_held;
	uint64_t made_ms, due_ms;
	uint64_t request; /* 0: it has no progress */
	struct jtext token, principal, id, own;
	char bytes[];
};

struct tasks {
	struct gateway *g;
	struct task *first, **tail;
	size_t n;
	uint64_t last_serial;
	struct strmap *by_id;  /* by the decoded id that clients know */
	struct strmap *by_own; /* by member and decoded id of its upstream */
	struct timer timer;
	uint64_t timer_due;
};

/* gateway_tasks.c */
void tasks_fini(struct gateway *g);
/* o is gone; m's upstream is. */
void tasks_leave(struct gateway *g, const struct gateway_observer *o);
void tasks_forget(const struct member *m);
/* Whether the process that made it is still there to be asked. */
bool task_is_alive(const struct task *t);
/* By the id that m's upstream gave it. */
struct task *task_of_member(const struct member *m, struct jtext own);

/* gateway_tasks_hear.c */
/* False: a message of m's upstream names no task in its _meta. *o: the client whose task
 * it is; NULL: it is none that anybody here knows. */
bool task_owner_by_meta(const struct member *m, const char *base,
    const struct json_msg *json, struct gateway_observer **o);
/* A notification about a task. */
void gateway_on_task(struct member *m, const struct link_msg *msg);

#endif
