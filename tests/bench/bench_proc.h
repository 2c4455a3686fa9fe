/* SPDX-License-Identifier: MIT */
/*
 * What a process has cost so far, as the kernel tells.
 */
#ifndef MCPVISOR_BENCH_PROC_H
#define MCPVISOR_BENCH_PROC_H

#include <stdint.h>
#include <sys/types.h>

struct bench_mem {
	unsigned processes;
	uint64_t rss_kb;
	uint64_t private_kb; /* what would be gained by its end */
	uint64_t anon_kb;    /* not backed by files; what forks share counts once */
};

/* Monotonic. */
uint64_t bench_now_ns(void);
/* CPU time of all threads of pid, user and system, as in /proc/PID/stat. 0 when it
 * cannot be told. */
uint64_t bench_cpu_ns(pid_t pid);
/* Memory of pid and of those of its descendants that run the same program: helpers
 * that are a part of it, not the servers that it started. */
void bench_mem_of(pid_t pid, struct bench_mem *m);

#endif
