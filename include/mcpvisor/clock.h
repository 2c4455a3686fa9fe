/* SPDX-License-Identifier: MIT */
/* Monotonic time in milliseconds, replaceable by tests. */
#ifndef MCPVISOR_CLOCK_H
#define MCPVISOR_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_now_ms(void);
/* Tests: fn gives the time from now on; NULL restores the real clock. */
void clock_set_source(uint64_t (*fn)(void));
/* n random bytes, at most 256, from getrandom(2). */
void clock_random_bytes(void *p, size_t n);
/* A uniform random number below limit (limit > 0). */
uint32_t clock_random(uint32_t limit);

#endif
