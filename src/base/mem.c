/* SPDX-License-Identifier: MIT */
/*
 * Allocation, the count of what is allocated, and the fault injection that lets
 * tests fail it.
 *
 * Owns: the count, the budget, the injection counter.
 * Driven by: every layer; no other file calls the raw allocator.
 * Invariants: a size of 0 gives a pointer that can be freed, so NULL always
 * means that memory is short. The log never allocates, so it may report that.
 * What is counted at an allocation is what is taken off at its end: the allocator
 * itself is asked both times, so no block needs a header.
 */
#include "mcpvisor/mem.h"

#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BLOCK_BYTES (4 * 1024 * 1024)
#define KEEP_FREE_BYTES	 (8 * 1024 * 1024)
#define SLACK_BYTES	 ((size_t)128 * 1024)

static struct {
	size_t in_use, peak;
	size_t budget; /* 0: none */
	bool is_short, is_exhausted;
} g_mem;
static unsigned long g_mem_tries;
static unsigned long g_mem_fail_at;
static bool g_mem_sticky;
static unsigned g_mem_holds;

static _Noreturn void
mem_die(size_t size)
{
	LOG_ERROR("mem", "out_of_memory", "size=%zu", size);
	abort();
}

static void
mem_count(size_t before, size_t now)
{
	g_mem.in_use += now - before;
	if (g_mem.in_use > g_mem.peak)
		g_mem.peak = g_mem.in_use;
}

/* NULL as realloc does; p stays valid then. */
static void *
mem_resize(void *p, size_t size)
{
	size_t before = p ? malloc_usable_size(p) : 0;
	void *q = realloc(p, size > 0 ? size : 1);

	if (q != NULL)
		mem_count(before, malloc_usable_size(q));
	return q;
}

static bool
mem_must_fail(void)
{
	if (g_mem_holds > 0)
		return false;
	g_mem_tries++;
	if (g_mem_fail_at == 0)
		return false;
	if (g_mem_sticky)
		return g_mem_tries >= g_mem_fail_at;
	return g_mem_tries == g_mem_fail_at;
}

void *
mem_xcalloc(size_t n, size_t size)
{
	void *p;

	if (n == 0 || size == 0)
		n = size = 1;
	if (n > SIZE_MAX / size)
		mem_die(SIZE_MAX);
	p = calloc(n, size);
	if (p == NULL)
		mem_die(size);
	mem_count(0, malloc_usable_size(p));
	return p;
}

void *
mem_xalloc(size_t size)
{
	return mem_xrealloc(NULL, size);
}

void *
mem_xrealloc(void *p, size_t size)
{
	void *q = mem_resize(p, size);

	if (q == NULL)
		mem_die(size);
	return q;
}

char *
mem_xstrdup(const char *s)
{
	return mem_xstrndup(s, strlen(s));
}

char *
mem_xstrndup(const char *s, size_t n)
{
	char *p;

	if (n == SIZE_MAX)
		mem_die(n);
	p = mem_xalloc(n + 1);
	if (n > 0)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

void *
mem_try(size_t size)
{
	return mem_try_realloc(NULL, size);
}

void *
mem_try_realloc(void *p, size_t size)
{
	if (mem_must_fail())
		return NULL;
	return mem_resize(p, size);
}

void *
mem_lib_alloc(size_t size)
{
	return mem_resize(NULL, size);
}

void *
mem_lib_realloc(void *p, size_t size)
{
	return mem_resize(p, size);
}

void
mem_free(void *p)
{
	size_t n = p ? malloc_usable_size(p) : 0;

	/* A block that was not counted, a library's own say, must not turn the count
	 * around. */
	g_mem.in_use -= n < g_mem.in_use ? n : g_mem.in_use;
	free(p);
}

void
mem_free_secret(void *p, size_t n)
{
	if (p != NULL)
		explicit_bzero(p, n);
	mem_free(p);
}

size_t
mem_in_use(void)
{
	return g_mem.in_use;
}

void
mem_set_budget(size_t bytes)
{
	g_mem.budget = bytes;
	g_mem.is_exhausted = false;
	(void)mem_is_short();
}

size_t
mem_budget(void)
{
	return g_mem.budget;
}

/* Said at the change alone, which is at most as often as an eighth of the budget fills
 * and empties; limited all the same. */
static void
mem_note_short(void)
{
	if (g_mem.is_short) {
		metrics_add(METRIC_MEMORY_SHORT, 1);
		LOG_LIMITED(LOG_LV_WARNING, "mem", "short", "in_use=%zu budget=%zu",
		    g_mem.in_use, g_mem.budget);
	} else {
		LOG_LIMITED(LOG_LV_NOTICE, "mem", "no longer short",
		    "in_use=%zu budget=%zu", g_mem.in_use, g_mem.budget);
	}
}

bool
mem_is_short(void)
{
	size_t from = g_mem.is_short ? g_mem.budget - g_mem.budget / 8 : g_mem.budget;
	bool is_short = g_mem.budget > 0 && g_mem.in_use >= from;

	if (is_short != g_mem.is_short) {
		g_mem.is_short = is_short;
		mem_note_short();
	}
	return is_short;
}

bool
mem_is_exhausted(void)
{
	size_t more = g_mem.is_exhausted ? 0 : g_mem.budget / 8;

	g_mem.is_exhausted = g_mem.budget > 0 && g_mem.in_use >= more &&
			     g_mem.in_use - more >= g_mem.budget;
	return g_mem.is_exhausted;
}

void
mem_keep_large(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, KEEP_BLOCK_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, KEEP_FREE_BYTES);
}

bool
mem_has_slack(void)
{
	return g_mem.peak - g_mem.in_use >= SLACK_BYTES &&
	       g_mem.in_use <= g_mem.peak - g_mem.peak / 8;
}

void
mem_trim(void)
{
	if (!mem_has_slack())
		return;
	(void)malloc_trim(0);
	g_mem.peak = g_mem.in_use;
}

void
mem_fail_at(unsigned long n, int sticky)
{
	g_mem_tries = 0;
	g_mem_fail_at = n;
	g_mem_sticky = sticky != 0;
}

void
mem_fail_hold(bool hold)
{
	g_mem_holds = hold ? g_mem_holds + 1 : g_mem_holds - 1;
}

unsigned long
mem_try_count(void)
{
	return g_mem_tries;
}
