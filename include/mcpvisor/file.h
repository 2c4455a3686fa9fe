/* SPDX-License-Identifier: MIT */
/* Files of ours that others may read at any moment. */
#ifndef MCPVISOR_FILE_H
#define MCPVISOR_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* All of them, whatever signals come. False: errno. */
bool file_write(int fd, const void *p, size_t n);
/* Puts n bytes in place of what path has: written to a new file of the same folder (mode
 * 0600), which takes the name when it is whole and on the disk. False: errno, and path is
 * as it was. */
bool file_replace(const char *path, const void *p, size_t n);

#endif
