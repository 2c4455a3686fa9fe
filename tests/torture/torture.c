/* SPDX-License-Identifier: MIT */
/*
 * Linked into each suite of a torture build: memory fails at one place in every test.
 *
 * Owns: what contrib/dev/torture says in the environment: MCPVISOR_FAIL_AT, the number of
 * the mem_try* that fails; MCPVISOR_TRIES, a file to add the number of calls to.
 * Driven by: the loader, before main; exit, once a test, as each is a process.
 * Invariants: a test that fails memory itself has its way from then on; one that merely
 * switches it off, in case it was on, changes nothing.
 */
#include "mcpvisor/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The linker gives calls of mem_fail_at from elsewhere to __wrap_mem_fail_at. */
void __real_mem_fail_at(unsigned long n, int sticky);
void __wrap_mem_fail_at(unsigned long n, int sticky);

static bool g_torture_own;

void
__wrap_mem_fail_at(unsigned long n, int sticky)
{
	if (n == 0 && !g_torture_own)
		return;
	g_torture_own = true;
	__real_mem_fail_at(n, sticky);
}

static void __attribute__((constructor)) torture_begin(void)
{
	const char *text = getenv("MCPVISOR_FAIL_AT");

	if (text != NULL)
		__real_mem_fail_at(strtoul(text, NULL, 10), 0);
}

static void __attribute__((destructor)) torture_end(void)
{
	const char *path = getenv("MCPVISOR_TRIES");
	char line[32];
	int fd, n;

	if (path == NULL || g_torture_own)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	n = snprintf(line, sizeof(line), "%lu\n", mem_try_count());
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		_exit(98);
	close(fd);
}
