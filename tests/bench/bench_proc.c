/* SPDX-License-Identifier: MIT */
/*
 * What a process has cost so far.
 *
 * Driven by: bench_load, before and after a run.
 * Invariants: a process that ends meanwhile counts as nothing.
 */
#include "bench_proc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX  8
#define PATH_BYTES 64

static uint64_t
to_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

uint64_t
bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return to_ns(&t);
}

static uint64_t
cpu_ns_of_stat(pid_t pid)
{
	char path[PATH_BYTES], line[1024], *after;
	unsigned long long user, sys;
	uint64_t ns = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	/* The name may hold anything, so count from its last bracket. */
	if (fgets(line, sizeof(line), f) != NULL &&
	    (after = strrchr(line, ')')) != NULL &&
	    sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
		&user, &sys) == 2)
		ns = (user + sys) * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
	(void)fclose(f);
	return ns;
}

uint64_t
bench_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	/* The same count as in stat, which is cut to hundredths of a second. */
	if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
		return to_ns(&t);
	return cpu_ns_of_stat(pid);
}

static void
mem_add(pid_t pid, struct bench_mem *m)
{
	char path[PATH_BYTES], line[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	m->processes++;
	while (fgets(line, sizeof(line), f) != NULL) {
		unsigned long long kb;

		if (sscanf(line, "Rss: %llu", &kb) == 1)
			m->rss_kb += kb;
		else if (sscanf(line, "Pss_Anon: %llu", &kb) == 1)
			m->anon_kb += kb;
		else if (sscanf(line, "Private_Clean: %llu", &kb) == 1 ||
			 sscanf(line, "Private_Dirty: %llu", &kb) == 1)
			m->private_kb += kb;
	}
	(void)fclose(f);
}

static bool
program_of(pid_t pid, char *out, size_t size)
{
	char path[PATH_BYTES];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, out, size - 1);
	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

static void
mem_add_tree(pid_t pid, const char *program, unsigned depth, struct bench_mem *m)
{
	char path[PATH_BYTES], other[4096];
	int child;
	FILE *f;

	if (!program_of(pid, other, sizeof(other)) || strcmp(other, program) != 0)
		return;
	mem_add(pid, m);
	(void)snprintf(
	    path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = depth > 0 ? fopen(path, "re") : NULL;
	if (f == NULL)
		return;
	while (fscanf(f, "%d", &child) == 1)
		mem_add_tree((pid_t)child, program, depth - 1, m);
	(void)fclose(f);
}

void
bench_mem_of(pid_t pid, struct bench_mem *m)
{
	char program[4096];

	*m = (struct bench_mem){0};
	if (program_of(pid, program, sizeof(program)))
		mem_add_tree(pid, program, DEPTH_MAX, m);
}
