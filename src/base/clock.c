/* SPDX-License-Identifier: MIT */
/*
 * Monotonic time and randomness from the kernel.
 *
 * Owns: the replaceable time source.
 * Driven by: timers, rate limits, back-off.
 * Invariants: time never goes back; randomness has no seed to guess.
 */
#include "mcpvisor/clock.h"

#include "mcpvisor/err.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

static uint64_t (*g_clock_source)(void);

uint64_t
clock_now_ms(void)
{
	struct timespec ts;

	if (g_clock_source != NULL)
		return g_clock_source();
	MCPVISOR_ASSERT(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
clock_set_source(uint64_t (*fn)(void))
{
	g_clock_source = fn;
}

void
clock_random_bytes(void *p, size_t n)
{
	ssize_t got;

	MCPVISOR_ASSERT(n <= 256);
	do {
		got = getrandom(p, n, 0);
	} while (got < 0 && errno == EINTR);
	MCPVISOR_ASSERT(got == (ssize_t)n);
}

uint32_t
clock_random(uint32_t limit)
{
	uint32_t r, below;

	MCPVISOR_ASSERT(limit > 0);
	/* 2^32 mod limit: draws below it would favour the small remainders. */
	below = -limit % limit;
	do {
		clock_random_bytes(&r, sizeof(r));
	} while (r < below);
	return r % limit;
}
