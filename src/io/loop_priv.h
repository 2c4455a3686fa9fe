/* SPDX-License-Identifier: MIT */
/* What the parts of the loop share. */
#ifndef MCPVISOR_LOOP_PRIV_H
#define MCPVISOR_LOOP_PRIV_H

#include "mcpvisor/loop.h"

struct event_base;

/* Who waits for memory; loop_mem.c. */
struct mem_waits {
	struct mem_wait *ordinary, **ordinary_tail;
	struct mem_wait *vital, **vital_tail;
	struct timer timer; /* set while anybody waits */
	size_t n, skip;
};
void mem_waits_init(struct mem_waits *m, struct loop *l);
void mem_waits_fini(struct mem_waits *m);
struct mem_waits *loop_waits(struct loop *l);

struct event_base *loop_base(const struct loop *l);
/* libevent's allocator; loop_cells.c. */
void *loop_cell_alloc(size_t size);
void *loop_cell_realloc(void *p, size_t size);
void loop_cell_free(void *p);

/* Counts and logs a callback that began at start (clock_now_ms) and took too
 * long. fd is -1 if there is none. */
void loop_account(uint64_t start, const char *kind, int fd);

#endif
