/* SPDX-License-Identifier: MIT */
/* What the parts of the loop share. */
#ifndef MCPVISOR_LOOP_PRIV_H
#define MCPVISOR_LOOP_PRIV_H

#include <stdint.h>

struct event_base;
struct loop;

struct event_base *loop_base(const struct loop *l);
/* Counts and logs a callback that began at start (clock_now_ms) and took too
 * long. fd is -1 if there is none. */
void loop_account(uint64_t start, const char *kind, int fd);

#endif
