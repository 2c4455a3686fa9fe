/* SPDX-License-Identifier: MIT */
/* Which of some words a misspelt one was meant to be. */
#ifndef MCPVISOR_NEAREST_PRIV_H
#define MCPVISOR_NEAREST_PRIV_H

#include <stddef.h>

/* Edits that turn one word into the other; SIZE_MAX: a word is too long to look at. */
size_t nearest_distance(const char *a, const char *b);
/* One of n words, or NULL if none is near. */
const char *nearest_word(const char *wrong, const char *const *words, size_t n);

#endif
