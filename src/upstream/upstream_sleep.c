/* SPDX-License-Identifier: MIT */
/*
 * Whether an upstream is in use, and what follows when it has not been for a while.
 *
 * Driven by: calls, watches and holds that come and go; its timer.
 * Invariants: used_ms is when the last of them went; requests of our own keep an upstream
 * awake while they run, but are no use; only the timer sends one to sleep, so that
 * nothing ends on the stack of whoever used it last.
 */
#include "upstream_priv.h"

#include "mcpvisor/clock.h"

bool
upstream_is_used(const struct upstream *u)
{
	return u->n_calls > 0 || u->watches != NULL || u->holds > 0 ||
	       u->questions != NULL;
}

static bool
upstream_may_sleep(const struct upstream *u)
{
	if (u->state != UPSTREAM_ST_READY || u->stopping || u->conf->idle_stop_ms == 0 ||
	    upstream_is_used(u) || !upstream_lists_are_known(u) ||
	    !upstream_lists_are_idle(u))
		return false;
	/* A listen that waits for news is no work that an end would spoil. */
	for (const struct upstream_req *r = u->flying; r != NULL; r = r->next)
		if (!r->is_endless)
			return false;
	return true;
}

void
upstream_idle_arm(struct upstream *u)
{
	uint64_t now, due;

	/* One that is set looks again when it is due: uses may come by the thousand. */
	if (u->conf->idle_stop_ms == 0 || u->state != UPSTREAM_ST_READY || u->stopping ||
	    timer_is_set(&u->idle_timer) || upstream_is_used(u))
		return;
	now = clock_now_ms();
	due = u->used_ms + u->conf->idle_stop_ms;
	timer_set(&u->idle_timer, due > now ? due - now : 0);
}

static void
on_idle_timer(void *arg)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	if (clock_now_ms() < u->used_ms + u->conf->idle_stop_ms)
		upstream_idle_arm(u);
	else if (upstream_may_sleep(u))
		upstream_event(u, UPSTREAM_EV_SLEEP);
	/* Else the end of what keeps it awake sets the timer again. */
}

void
upstream_note_use(struct upstream *u)
{
	u->used_ms = clock_now_ms();
	upstream_idle_arm(u);
}

void
upstream_note_last_call(struct upstream *u)
{
	if (u->cb->on_idle != NULL)
		deferred_ask(&u->idle_call);
	if (u->conf->idle_stop_ms != 0)
		upstream_note_use(u);
}

static void
on_idle_call(void *arg)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	if (u->n_calls == 0)
		u->cb->on_idle(u->arg, u);
}

void
upstream_hold(struct upstream *u, bool hold)
{
	MCPVISOR_ASSERT(hold || u->holds > 0);
	u->holds += hold ? 1 : -1u;
	upstream_note_use(u);
}

void
upstream_use_init(struct upstream *u)
{
	timer_init(&u->idle_timer, u->loop, on_idle_timer, u);
	deferred_init(&u->idle_call, u->loop, on_idle_call, u);
}

void
upstream_use_fini(struct upstream *u)
{
	timer_fini(&u->idle_timer);
	deferred_cancel(&u->idle_call);
}
