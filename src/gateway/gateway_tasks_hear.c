/* SPDX-License-Identifier: MIT */
/*
 * What upstreams say of the tasks that they have made.
 *
 * Owns: nothing. Driven by: results, notices and questions that name a task.
 * Invariants: what is said of a task reaches its owner and nobody else, under the id
 * that it knows.
 * Spec: 2025-11-25 basic/utilities/tasks, Associating Task-Related Messages.
 */
#include "gateway_questions_priv.h"
#include "gateway_tasks_priv.h"

#include "mcpvisor/metrics.h"

void
task_edit(const struct task *t, const char *base, struct jtext id, struct json_edits *ed)
{
	json_edit_add(ed, (uint32_t)(id.p - base), (uint32_t)id.n, t->id.p, t->id.n);
}

void
task_edit_related(struct gateway *g, const struct gateway_observer *o,
    const struct upstream *u, const char *base, struct json_span related,
    struct json_edits *ed)
{
	struct jtext own = json_member(jtext_of(base, related), "taskId");
	const struct task *t = task_find_own(g, o, u, own);

	if (t != NULL)
		task_edit(t, base, own, ed);
}

bool
task_owner_by_meta(const struct member *m, const char *base, const struct json_msg *json,
    struct gateway_observer **o)
{
	struct jtext related = jtext_of(base, json->slot[JSON_M_RELATED_TASK]);
	const struct task *t;

	if (related.n == 0)
		return false;
	t = task_of_member(m, json_member(related, "taskId"));
	/* One that we have forgotten goes on, and is nobody else's for that. */
	*o = t != NULL ? t->o : member_sole_client(m);
	return true;
}

/* Whose request has become a task, and asked for progress under this token of ours. */
static struct task *
task_by_token(const struct member *m, struct jtext token)
{
	struct task *t = m->g->tasks != NULL ? m->g->tasks->first : NULL;
	int64_t v;

	if (!json_int(token, &v) || v <= 0)
		return NULL;
	while (t != NULL && (t->m != m || t->request != (uint64_t)v))
		t = t->next;
	return t != NULL && task_is_alive(t) ? t : NULL;
}

void
gateway_on_task(struct member *m, const struct link_msg *msg)
{
	const struct json_span *slot = msg->json->slot;
	struct jtext own = jtext_of(msg->base, slot[JSON_P_TASK_ID]);
	struct jtext token = jtext_of(msg->base, slot[JSON_P_PROGRESS_TOKEN]);
	struct json_edits ed;
	struct task *t;

	json_edits_init(&ed);
	if (method_parse(msg->env.method) == METHOD_N_PROGRESS) {
		t = task_by_token(m, token);
		if (t != NULL)
			json_edit_add(&ed, slot[JSON_P_PROGRESS_TOKEN].off,
			    slot[JSON_P_PROGRESS_TOKEN].len, t->token.p, t->token.n);
	} else {
		t = task_of_member(m, own);
		if (t != NULL) {
			task_edit(t, msg->base, own, &ed);
			task_heard(t, jtext_of(msg->base, slot[JSON_PARAMS]));
		}
	}
	if (t == NULL || t->o->on_task == NULL) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	task_edit_related(m->g, t->o, m->u, msg->base, slot[JSON_M_RELATED_TASK], &ed);
	t->o->on_task(t->o->arg, msg, &ed);
}
