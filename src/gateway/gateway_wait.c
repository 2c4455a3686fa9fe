/* SPDX-License-Identifier: MIT */
/*
 * Those who wait for the lists of upstreams that are starting.
 *
 * Owns: the list of them; each is a member of its owner.
 * Driven by: front and calls (wait), lists that come in (retry), the last of them or the
 * time limit (wake).
 * Invariants: woken once, in order; once the wait is over nobody waits any more.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <string.h>

void
gateway_wake(struct gateway *g)
{
	g->wait_over = true;
	timer_clear(&g->wait_timer);
	while (g->waiters != NULL) {
		struct gateway_waiter *w = g->waiters;

		gateway_unwait(w);
		w->fn(w->arg);
	}
	gateway_note_listener(g);
}

static void
on_wait_timer(void *arg)
{
	struct gateway *g = arg;

	for (size_t i = 0; i < g->n; i++) {
		struct upstream *u = g->v[i];

		if (upstream_is_settled(u))
			continue;
		LOG_NOTICE("gateway", "lists go out without an upstream",
		    "upstream=%s state=%s",
		    LOG_ESC(upstream_name(u), strlen(upstream_name(u))),
		    upstream_state_text(upstream_state(u)));
	}
	gateway_wake(g);
}

void
gateway_waits_init(struct gateway *g)
{
	g->waiters_tail = &g->waiters;
	timer_init(&g->wait_timer, g->loop, on_wait_timer, g);
}

void
gateway_retry(struct gateway *g)
{
	struct gateway_waiter *next;

	for (struct gateway_waiter *w = g->waiters; w != NULL; w = next) {
		next = w->next;
		if (w->retry != NULL)
			w->retry(w->arg);
	}
}

bool
gateway_wait(struct gateway *g, struct gateway_waiter *w)
{
	if (g->wait_over)
		return false;
	w->g = g;
	w->next = NULL;
	w->prev = g->waiters_tail;
	*g->waiters_tail = w;
	g->waiters_tail = &w->next;
	g->waiting_bytes += w->bytes;
	return true;
}

bool
gateway_may_keep(const struct gateway *g, size_t bytes)
{
	return bytes <= CAP_WAITING_BYTES &&
	       g->waiting_bytes <= CAP_WAITING_BYTES - bytes;
}

void
gateway_unwait(struct gateway_waiter *w)
{
	if (w->g == NULL)
		return;
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	else
		w->g->waiters_tail = w->prev;
	w->g->waiting_bytes -= w->bytes;
	w->g = NULL;
}

void
gateway_stop_waiting(struct gateway *g)
{
	gateway_wake(g);
}
