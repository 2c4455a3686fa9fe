/* SPDX-License-Identifier: MIT */
/*
 * Command lines of the load generators.
 */
#ifndef MCPVISOR_BENCH_OPTIONS_H
#define MCPVISOR_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct bench_option {
	const char *name, *doc;
	bool *flag;	  /* or */
	unsigned *number; /* up to max */
	unsigned max;
};

/* Returns the index of what follows "--", else argc. Ends the program after --help, and
 * with status 2 on what it does not know. */
int bench_take_options(
    const char *usage, const struct bench_option *rows, size_t n, int argc, char **argv);
/* Says how it is used and ends the program. */
_Noreturn void bench_usage(
    const char *usage, const struct bench_option *rows, size_t n, int code);

#endif
