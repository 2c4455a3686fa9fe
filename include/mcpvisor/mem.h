/* SPDX-License-Identifier: MIT */
/*
 * Allocation. mem_x* abort on failure and are for small sizes of our choice;
 * mem_try* fail and are for sizes that a peer or a file chose.
 */
#ifndef MCPVISOR_MEM_H
#define MCPVISOR_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Never NULL; zero-filled. The caller owns the result and ends it with mem_free. */
void *mem_xcalloc(size_t n, size_t size);
void *mem_xalloc(size_t size); /* not zero-filled */
void *mem_xrealloc(void *p, size_t size);
char *mem_xstrdup(const char *s);
char *mem_xstrndup(const char *s, size_t n); /* copies n bytes, adds NUL */

/* NULL when memory is short; on failure mem_try_realloc leaves p valid. */
void *mem_try(size_t size) __attribute__((warn_unused_result));
void *mem_try_realloc(void *p, size_t size) __attribute__((warn_unused_result));

void mem_free(void *p); /* NULL is allowed */
/* Wipes n bytes first; NULL is allowed. */
void mem_free_secret(void *p, size_t n);

/* For libraries that let us choose their allocator, with mem_free: counted, NULL when
 * memory is short, never failed by mem_fail_at. */
void *mem_lib_alloc(size_t size);
void *mem_lib_realloc(void *p, size_t size);

/* Bytes that are allocated now through this module, by the allocator's own measure. */
size_t mem_in_use(void);
/* The budget over everything: while it is passed mem_is_short, and who reads from a peer
 * stops to. 0: none. */
void mem_set_budget(size_t bytes);
size_t mem_budget(void);
/* From the budget on, until an eighth of it is free again. Logged and counted when a look
 * finds it changed. */
bool mem_is_short(void);
/* From an eighth over the budget on, until below the budget: then those pause as well
 * whose input may be needed to get memory free. */
bool mem_is_exhausted(void);

/* For a process that passes large messages on for long: their blocks are kept for the
 * next ones and not given back to the system after each. */
void mem_keep_large(void);
/* Whether a good part of what was in use since the last mem_trim is free now. */
bool mem_has_slack(void);
/* Then gives it back to the system, which may take milliseconds. */
void mem_trim(void);

/* Fault injection for tests: the nth mem_try* from now fails (1: the next),
 * and all after it when sticky. 0 switches it off. */
void mem_fail_at(unsigned long n, int sticky);
/* Between true and false none fails or counts: for what a test does for itself amid the
 * code under test. Nests. */
void mem_fail_hold(bool hold);
/* Number of mem_try* calls since the last mem_fail_at. */
unsigned long mem_try_count(void);

#endif
