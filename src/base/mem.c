/* SPDX-License-Identifier: MIT */
/*
 * Allocation, and the fault injection that lets tests fail it.
 *
 * Owns: the injection counter.
 * Driven by: every layer; no other file calls the raw allocator.
 * Invariants: a size of 0 gives a pointer that can be freed, so NULL always
 * means that memory is short. The log never allocates, so it may report that.
 */
#include "mcpvisor/mem.h"

#include "mcpvisor/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned long g_mem_tries;
static unsigned long g_mem_fail_at;
static bool g_mem_sticky;

static _Noreturn void
mem_die(size_t size)
{
	LOG_ERROR("mem", "out_of_memory", "size=%zu", size);
	abort();
}

static bool
mem_must_fail(void)
{
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
	void *q = realloc(p, size > 0 ? size : 1);

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
	return realloc(p, size > 0 ? size : 1);
}

void
mem_free(void *p)
{
	free(p);
}

void
mem_fail_at(unsigned long n, int sticky)
{
	g_mem_tries = 0;
	g_mem_fail_at = n;
	g_mem_sticky = sticky != 0;
}

unsigned long
mem_try_count(void)
{
	return g_mem_tries;
}
