/* SPDX-License-Identifier: MIT */
/*
 * loop.h in virtual time. loop_new puts the clock under its control; loop_free
 * gives it back. Descriptors are polled, never waited for.
 */
#ifndef FAKE_LOOP_H
#define FAKE_LOOP_H

#include "mcpvisor/loop.h"

#include <stddef.h>
#include <stdint.h>

/* One turn: ready descriptors, timers that are due, deferred work, frees. True
 * when there was anything. */
bool fake_loop_turn(struct loop *l);
/* Turns until one does nothing. */
void fake_loop_settle(struct loop *l);
/* Time passes, stopping at every timer on the way; settles first and last. */
void fake_loop_advance(struct loop *l, uint64_t ms);
/* As advance, to the next timer; false when there is none. */
bool fake_loop_advance_to_timer(struct loop *l);
size_t fake_loop_timers(const struct loop *l);	  /* how many are set */
size_t fake_loop_watches(const struct loop *l);	  /* how many are wanted */
void fake_loop_signal(struct loop *l, int signo); /* as if it had come */

#endif
