/* SPDX-License-Identifier: MIT */
/* Tasks as clients see them. */
#ifndef MCPVISOR_CLIENT_TASK_PRIV_H
#define MCPVISOR_CLIENT_TASK_PRIV_H

#include "client_priv.h"

/* handle_task.c */
/* The kind that r's client knows. */
enum task_kind task_kind_of(const struct request *r);
/* r, a call, brings a wish for a task. False: it has been answered. */
bool task_wish(struct request *r);
/* r, a listen, asks for news of tasks only if it may. False: it has been answered. */
bool task_may_listen(struct request *r, const struct link_msg *m);
/* What a result has of tasks; false for almost all. */
static inline bool
task_is_in(const struct json_msg *json)
{
	return (json->slot[JSON_RESULT_TASK].len | json->slot[JSON_RESULT_TASK_ID].len |
		   json->slot[JSON_RM_RELATED_TASK].len) != 0;
}
/* Notes a task that was made, and puts the ids that r's client knows into a result. */
enum mv_err task_edit_result(struct request *r, const struct outcome *o,
    struct json_edits *ed) MCPVISOR_MUST_CHECK;
/* r, a tasks/ request, has this answer. */
void task_note_answer(struct request *r, const struct outcome *o);
/* Whether an upstream's -32601 to r's call is about tasks. Then, if it is not for r's
 * client to know as it is, out has the error. */
bool task_is_refusal(const struct request *r, struct buf *out);
/* The same ids in a notification of u's. */
void task_edit_notice(struct client *c, const struct upstream *u,
    const struct link_msg *m, struct json_edits *ed);
/* The params of q for its client; in b if they are not as they came. */
struct jtext task_question_params(
    struct client *c, const struct question *q, struct buf *b);
/* Answers q with its client's result, under the id that its upstream knows. */
void task_answer_question(struct question *q, const struct link_msg *m);
void client_on_task(void *arg, const struct link_msg *m, struct json_edits *ed);

#endif
