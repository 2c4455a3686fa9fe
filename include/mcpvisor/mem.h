/* SPDX-License-Identifier: MIT */
/*
 * Allocation. mem_x* abort on failure and are for small sizes of our choice;
 * mem_try* fail and are for sizes that a peer or a file chose.
 */
#ifndef MCPVISOR_MEM_H
#define MCPVISOR_MEM_H

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

/* Fault injection for tests: the nth mem_try* from now fails (1: the next),
 * and all after it when sticky. 0 switches it off. */
void mem_fail_at(unsigned long n, int sticky);
/* Number of mem_try* calls since the last mem_fail_at. */
unsigned long mem_try_count(void);

#endif
