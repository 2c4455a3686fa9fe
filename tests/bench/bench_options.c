/* SPDX-License-Identifier: MIT */
/*
 * Command lines of the load generators: one table is parser and help.
 *
 * Owns: nothing. Driven by: main of each. Invariants: none.
 */
#include "bench_options.h"

#include "bench_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void
bench_usage(const char *usage, const struct bench_option *rows, size_t n, int code)
{
	FILE *f = code ? stderr : stdout;

	fprintf(f, "usage: %s\n", usage);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "  --%-7s %s  %s\n", rows[i].name, rows[i].flag ? " " : "N",
		    rows[i].doc);
	exit(code);
}

static bool
take_number(const struct bench_option *row, const char *text)
{
	unsigned long long v;

	if (!bench_number((struct piece){text, strlen(text)}, &v) || v > row->max)
		return false;
	*row->number = (unsigned)v;
	return true;
}

int
bench_take_options(
    const char *usage, const struct bench_option *rows, size_t n, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + (strncmp(argv[i], "--", 2) == 0 ? 2 : 0);
		size_t k = 0;

		if (strcmp(argv[i], "--") == 0)
			return i + 1;
		if (strcmp(name, "help") == 0)
			bench_usage(usage, rows, n, 0);
		while (k < n && strcmp(rows[k].name, name) != 0)
			k++;
		if (k < n && rows[k].flag != NULL)
			*rows[k].flag = true;
		else if (k == n || ++i == argc || !take_number(&rows[k], argv[i]))
			bench_usage(usage, rows, n, 2);
	}
	return argc;
}
