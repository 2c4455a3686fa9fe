/* SPDX-License-Identifier: MIT */
/*
 * Where libevent's small blocks live: apart from everything else.
 *
 * Owns: the cells.
 * Driven by: libevent, through the functions that loop_new gives it.
 * Invariants: whatever fits a cell gets one while there are any, else it comes from the
 * allocator as the rest does; whose a block is, its address says.
 */
#include "loop_priv.h"

#include "mcpvisor/mem.h"

#include <stdint.h>
#include <string.h>

/* libevent keeps an entry for each descriptor that it has ever seen, until it ends. Among
 * what comes and goes with connections each would hold back a whole page. */
#define CELL_BYTES 32
#define CELLS	   16384

union cell {
	union cell *next; /* of the free ones */
	char bytes[CELL_BYTES];
	long double align;
};

static union cell g_cells[CELLS]; /* costs what has been used of it */
static union cell *g_cells_free;
static size_t g_cells_used; /* beyond, none was ever given away */

static bool
is_cell(const void *p)
{
	return (uintptr_t)p - (uintptr_t)g_cells < sizeof(g_cells);
}

void *
loop_cell_alloc(size_t size)
{
	union cell *c = g_cells_free;

	if (size > CELL_BYTES || (c == NULL && g_cells_used == CELLS))
		return mem_lib_alloc(size);
	if (c != NULL)
		g_cells_free = c->next;
	else
		c = &g_cells[g_cells_used++];
	return c;
}

void
loop_cell_free(void *p)
{
	union cell *c = p;

	if (!is_cell(p)) {
		mem_free(p);
		return;
	}
	c->next = g_cells_free;
	g_cells_free = c;
}

void *
loop_cell_realloc(void *p, size_t size)
{
	void *q;

	if (p == NULL)
		return loop_cell_alloc(size);
	if (!is_cell(p))
		return mem_lib_realloc(p, size);
	if (size <= CELL_BYTES)
		return p;
	q = mem_lib_alloc(size);
	if (q == NULL)
		return NULL;
	memcpy(q, p, CELL_BYTES);
	loop_cell_free(p);
	return q;
}
