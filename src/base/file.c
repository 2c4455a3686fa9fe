/* SPDX-License-Identifier: MIT */
/*
 * Files of ours that others may read at any moment.
 *
 * Owns: nothing.
 * Driven by: whoever keeps something.
 * Invariants: under its name there is the old text or the new one, never half of either.
 */
#include "mcpvisor/file.h"

#include "mcpvisor/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
file_write(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t put = write(fd, at, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

bool
file_replace(const char *path, const void *p, size_t n)
{
	struct buf name;
	int fd = -1, fault;
	bool ok = false;

	buf_init(&name, 4096);
	buf_add_str(&name, path);
	buf_add_str(&name, ".XXXXXX");
	errno = ENAMETOOLONG;
	if (buf_cstr(&name) != NULL)
		fd = mkostemp(name.data, O_CLOEXEC);
	if (fd >= 0) {
		ok = file_write(fd, p, n) && fsync(fd) == 0 &&
		     rename(name.data, path) == 0;
		fault = errno;
		(void)close(fd);
		if (!ok)
			(void)unlink(name.data);
		errno = fault;
	}
	fault = errno;
	buf_fini(&name);
	errno = fault;
	return ok;
}
