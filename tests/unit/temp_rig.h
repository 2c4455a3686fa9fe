/* SPDX-License-Identifier: MIT */
/* A folder of a test's own, and files in it. */
#ifndef TEMP_RIG_H
#define TEMP_RIG_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#define TEMP_PATH_MAX 512

struct temp {
	char dir[64];
	char path[TEMP_PATH_MAX + 72]; /* of the last temp_path */
};

static inline void
temp_make(struct temp *t)
{
	snprintf(t->dir, sizeof t->dir, "/tmp/mcpvisor.test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t->dir));
}

static inline int
temp_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)at;
	return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static inline void
temp_remove(struct temp *t)
{
	ck_assert_int_eq(nftw(t->dir, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline const char *
temp_path(struct temp *t, const char *name)
{
	int n = snprintf(t->path, sizeof t->path, "%s/%s", t->dir, name);

	ck_assert_int_lt(n, (int)sizeof t->path);
	return t->path;
}

static inline void
temp_write_bytes(struct temp *t, const char *name, const void *p, size_t n)
{
	int fd = open(temp_path(t, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
	ck_assert_int_eq(close(fd), 0);
}

static inline void
temp_write(struct temp *t, const char *name, const char *text)
{
	temp_write_bytes(t, name, text, strlen(text));
}

#endif
