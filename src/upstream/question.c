/* SPDX-License-Identifier: MIT */
/*
 * A question of an upstream, between the upstream and whoever answers it.
 *
 * Owns: the copy of the message. Driven by: both sides.
 * Invariants: it ends once, by an answer or a withdrawal, and is no more after that.
 */
#include "mcpvisor/question.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

struct question *
question_new(const struct question_ops *ops, struct upstream *u, enum method method,
    const struct link_msg *m)
{
	struct question *q = mem_try(sizeof(*q) + m->len);

	if (q == NULL)
		return NULL;
	memset(q, 0, offsetof(struct question, json));
	memcpy(q->bytes, m->base, m->len);
	q->json = *m->json;
	q->msg = *m;
	q->msg.base = q->bytes;
	q->msg.json = &q->json;
	q->msg.env.id = jtext_of(q->bytes, q->json.slot[JSON_ID]);
	q->msg.env.method = jtext_of(q->bytes, q->json.slot[JSON_METHOD]);
	q->id = q->msg.env.id;
	q->ops = ops;
	q->u = u;
	q->method = method;
	q->asked_ms = clock_now_ms();
	return q;
}

struct jtext
question_params(const struct question *q)
{
	return jtext_of(q->bytes, q->json.slot[JSON_PARAMS]);
}

void
question_take(
    struct question *q, const struct question_cb *cb, void *arg, struct upstream_req *req)
{
	q->cb = cb;
	q->arg = arg;
	q->ops->on_taken(q, req);
}

void
question_answer(struct question *q, const char *member, const struct iovec *body, int n)
{
	q->ops->answer(q, member, body, n);
	mem_free(q);
}

void
question_refuse(struct question *q, enum wording w)
{
	static char no_memory[] = WORDING_NO_MEMORY;
	struct iovec iov = {no_memory, sizeof(no_memory) - 1};
	struct buf b;

	metrics_add(METRIC_QUESTIONS_REFUSED, 1);
	buf_init(&b, CAP_MESSAGE_BYTES);
	wording_put(&b, w, (struct jtext){NULL, 0});
	if (b.err == MV_OK)
		iov = (struct iovec){b.data, b.len};
	question_answer(q, "error", &iov, 1);
	buf_fini(&b);
}

void
question_progress(struct question *q, const struct link_msg *m)
{
	q->ops->progress(q, m);
}

void
question_withdraw(struct question *q)
{
	if (q->cb != NULL)
		q->cb->on_withdrawn(q->arg, q);
	mem_free(q);
}
