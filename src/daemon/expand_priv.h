/* SPDX-License-Identifier: MIT */
/* Shared by expand.c and child_env.c. */
#ifndef MCPVISOR_EXPAND_PRIV_H
#define MCPVISOR_EXPAND_PRIV_H

#include <stddef.h>

#include "mcpvisor/expand.h"

/* A file of values: a regular one of at most EXPAND_FILE_BYTES without NUL. As
 * expand_read_file. */
const char *expand_read_text(const char *path, char **text, size_t *n);

#endif
