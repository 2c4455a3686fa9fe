/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait for their upstream to become ready, or to be sent again.
 *
 * Owns: copies of their messages.
 * Driven by: upstream_send, readiness.
 * Invariants: held_bytes is the sum of the copies in the held list, and of those that
 * requests in flight keep; they are sent in the order in which they came.
 */
#include "upstream_priv.h"

#include "mcpvisor/clock.h"

enum mv_err
upstream_hold_call(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct upstream_call_copy *h;

	if (u->held_bytes + upstream_call_bytes(c) > u->conf->queue_bytes)
		return MV_BUSY;
	h = upstream_call_dup(c);
	if (h == NULL)
		return MV_NOMEM;
	r->held = h;
	r->id = 0;
	r->method = c->method;
	r->u = u;
	r->next = NULL;
	r->prev = u->held_tail;
	*u->held_tail = r;
	u->held_tail = &r->next;
	u->n_calls++;
	u->n_held++;
	u->held_bytes += h->len;
	r->started_ms = r->heard_ms = clock_now_ms();
	upstream_calls_arm(u, r);
	return MV_OK;
}

void
upstream_hold_again(struct upstream_req *r)
{
	struct upstream *u = r->u;

	MCPVISOR_ASSERT(r->held != NULL && r->id != 0);
	(void)idmap_del(u->by_id, r->id);
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	r->id = 0;
	r->next = NULL;
	r->prev = u->held_tail;
	*u->held_tail = r;
	u->held_tail = &r->next;
	u->n_held++;
}

void
upstream_send_held(struct upstream *u)
{
	while (u->held != NULL && u->era != NULL && upstream_is_open(u)) {
		struct upstream_req *r = u->held;
		struct upstream_call_copy *h = r->held;
		struct outcome o = {.kind = OUTCOME_FAILED};

		r->held = NULL;
		upstream_forget(r);
		o.err = upstream_transmit(u, r, &h->call);
		u->held_bytes -= h->len;
		upstream_call_free(h);
		if (o.err != MV_OK)
			upstream_finish(u, r, &o);
	}
}
