/* SPDX-License-Identifier: MIT */
/*
 * Just enough JSON for the two ends of a benchmark: the members of an object, by
 * their keys. Deliberately not the scanner under test, so that the check of an
 * answer does not share its faults.
 */
#ifndef MCPVISOR_BENCH_JSON_H
#define MCPVISOR_BENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* A borrowed piece of a message. n 0: absent. */
struct piece {
	const char *p;
	size_t n;
};

/* Fills values with those of the members named by keys (n of them, as written,
 * without escapes). The others become absent. False if object is no object whose
 * braces and strings close where it ends. */
bool bench_members(
    struct piece object, const char *const *keys, struct piece *values, size_t n);
/* The same for one key; absent too if object is none. */
struct piece bench_member(struct piece object, const char *key);
/* Calls fn with each element. False if array is no sound array. */
bool bench_elements(
    struct piece array, void (*fn)(void *arg, struct piece element), void *arg);
/* What is between the quotes, as written; absent if t is no string. */
struct piece bench_string(struct piece t);
/* Digits alone. */
bool bench_number(struct piece t, unsigned long long *v);
bool bench_is(struct piece t, const char *s);

#endif
