/* SPDX-License-Identifier: MIT */
/*
 * When to start a failed thing again: exponential delay with jitter, reset by
 * stable uptime only, and a budget of deaths after which it is given up.
 */
#ifndef MCPVISOR_BACKOFF_H
#define MCPVISOR_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct backoff_opts {
	uint32_t base_ms;   /* first delay: 500 */
	uint32_t max_ms;    /* longest delay: 60000 */
	uint32_t stable_ms; /* uptime after which earlier deaths are forgotten: 30000 */
	uint32_t budget;    /* deaths in a row before giving up: 10; 0: never */
};
extern const struct backoff_opts backoff_defaults;

struct backoff {
	struct backoff_opts o;
	uint32_t deaths;
};

void backoff_init(struct backoff *b, const struct backoff_opts *o);
/* Other limits for the deaths to come; those so far stay counted. */
void backoff_set_opts(struct backoff *b, const struct backoff_opts *o);
/* Counts a death after uptime_ms. True: try again after *delay_ms, which is
 * base * 2^(deaths-1), capped, less up to a quarter at random. False: give up. */
bool backoff_death(struct backoff *b, uint64_t uptime_ms, uint32_t *delay_ms);
void backoff_reset(struct backoff *b);

#endif
