/* SPDX-License-Identifier: MIT */
/* Shared by expand.c and child_env.c. */
#ifndef MCPVISOR_EXPAND_PRIV_H
#define MCPVISOR_EXPAND_PRIV_H

#include <stddef.h>

#include "mcpvisor/expand.h"

/* Takes in a regular file of at most EXPAND_FILE_BYTES without NUL: *text of *n bytes,
 * NUL behind; ends with expand_free_file. Returns NULL, or else why not. */
const char *expand_read_file(const char *path, char **text, size_t *n);
void expand_free_file(char *text, size_t n);

#endif
