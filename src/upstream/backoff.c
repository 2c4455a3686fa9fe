/* SPDX-License-Identifier: MIT */
/*
 * The delay before the next start, and when there is none.
 *
 * Owns: nothing.
 * Driven by: child.
 * Invariants: deaths only grows, except after stable uptime or a reset; a delay is
 * never over max_ms.
 */
#include "mcpvisor/backoff.h"

#include "mcpvisor/clock.h"

/* Doubling more often than this is over any max_ms. */
#define BACKOFF_DOUBLINGS_MAX 31

const struct backoff_opts backoff_defaults = {
    .base_ms = 500,
    .max_ms = 60000,
    .stable_ms = 30000,
    .budget = 10,
};

void
backoff_init(struct backoff *b, const struct backoff_opts *o)
{
	b->o = *o;
	b->deaths = 0;
}

void
backoff_set_opts(struct backoff *b, const struct backoff_opts *o)
{
	b->o = *o;
}

void
backoff_reset(struct backoff *b)
{
	b->deaths = 0;
}

bool
backoff_death(struct backoff *b, uint64_t uptime_ms, uint32_t *delay_ms)
{
	uint64_t delay = b->o.base_ms;
	uint32_t doublings;

	if (uptime_ms >= b->o.stable_ms)
		b->deaths = 0;
	if (b->deaths < UINT32_MAX)
		b->deaths++;
	if (b->o.budget > 0 && b->deaths >= b->o.budget)
		return false;

	doublings = b->deaths - 1;
	if (doublings > BACKOFF_DOUBLINGS_MAX)
		doublings = BACKOFF_DOUBLINGS_MAX;
	delay <<= doublings;
	if (delay > b->o.max_ms)
		delay = b->o.max_ms;
	/* Upstreams that fell together should not come back together. */
	*delay_ms = (uint32_t)delay - clock_random((uint32_t)delay / 4 + 1);
	return true;
}
