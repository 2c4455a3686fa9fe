/* SPDX-License-Identifier: MIT */
/* Patterns of names: * stands for any bytes, ? for one; everything else for itself. */
#ifndef MCPVISOR_GLOB_H
#define MCPVISOR_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Linear in practice: never more than pattern times text. text may be NULL if n is 0. */
bool glob_match(const char *pattern, const char *text, size_t n);

#endif
