/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait for their upstream to become ready.
 *
 * Owns: copies of their messages.
 * Driven by: upstream_send, readiness.
 * Invariants: held_bytes is the sum of the copies in the held list; they are sent in the
 * order in which they came.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* All that a copy of c takes, but for the name of its client. */
static size_t
call_bytes(const struct upstream_call *c)
{
	return c->len + c->target.put_len + c->arguments.put_len;
}

/* Copies what an edit puts to at; returns the place after it. */
static char *
edit_dup(struct json_edit *e, char *at)
{
	if (e->put == NULL)
		return at;
	memcpy(at, e->put, e->put_len);
	e->put = at;
	return at + e->put_len;
}

struct upstream_call_copy *
upstream_call_dup(const struct upstream_call *c)
{
	size_t bytes = call_bytes(c);
	struct upstream_call_copy *h = mem_try(sizeof(*h) + bytes);
	char *at;

	if (h == NULL)
		return NULL;
	memcpy(h->bytes, c->base, c->len);
	h->len = bytes;
	h->json = *c->json;
	h->call = *c;
	h->call.base = h->bytes;
	h->call.json = &h->json;
	at = edit_dup(&h->call.target, h->bytes + c->len);
	(void)edit_dup(&h->call.arguments, at);
	buf_init(&h->client_info, CAP_MESSAGE_BYTES);
	json_put(&h->client_info, c->client_info);
	h->call.client_info = (struct jtext){h->client_info.data, h->client_info.len};
	return h;
}

void
upstream_call_free(struct upstream_call_copy *c)
{
	if (c == NULL)
		return;
	buf_fini(&c->client_info);
	mem_free(c);
}

enum mv_err
upstream_hold_call(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct upstream_call_copy *h;

	if (u->held_bytes + call_bytes(c) > u->conf->queue_bytes)
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
upstream_send_held(struct upstream *u)
{
	while (u->held != NULL && u->era != NULL && u->link != NULL) {
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
