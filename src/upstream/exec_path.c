/* SPDX-License-Identifier: MIT */
/*
 * Paths that a caller gives, below a folder that the conf gives.
 *
 * Owns: nothing. Driven by: exec_args.c.
 * Invariants: no look-up leaves the folder, not even for a moment; what is appended is
 * the path of the very file that was found. Whoever may change the folder can still
 * change what is there before a program opens it: this checks an intent, and is no cage.
 */
#include "upstream_exec_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_FLAGS (O_PATH | O_CLOEXEC)
#define PATH_TRIES 32

static int
path_walk(int root, const char *path)
{
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0);

	while (at >= 0 && *path != '\0') {
		size_t n = strcspn(path, "/");
		char part[NAME_MAX + 1];
		int next = -1;

		errno = n > NAME_MAX ? ENAMETOOLONG : EXDEV;
		if (n <= NAME_MAX && !(n == 2 && memcmp(path, "..", 2) == 0)) {
			memcpy(part, path, n);
			part[n] = '\0';
			next = openat(at, n == 0 ? "." : part,
			    PATH_FLAGS | O_NOFOLLOW | (path[n] == '/' ? O_DIRECTORY : 0),
			    0);
		}
		close(at);
		at = next;
		path += n;
		path += strspn(path, "/");
	}
	return at;
}

int
exec_path_walk(int root, const char *path)
{
	int fd = -1;
	char one[1];

	errno = ENOENT;
	if (*path != '\0')
		fd = path_walk(root, path);

	if (fd >= 0 && readlinkat(fd, "", one, sizeof(one)) >= 0) {
		close(fd);
		errno = EXDEV;
		return -1;
	}
	return fd;
}

static int
path_open_below(int root, const char *path)
{
	struct open_how how = {
	    .flags = PATH_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd = -1;

	/* Whenever anything is renamed on the way up, anywhere, the kernel is not sure.
	 */
	errno = EAGAIN;
	for (int i = 0; fd < 0 && errno == EAGAIN && i < PATH_TRIES; i++)
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return exec_path_walk(root, path);
	return (int)fd;
}

/* False: it has no name that could be told. */
static bool
path_put_name(int fd, struct buf *out)
{
	char proc[64], name[PATH_MAX];
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, name, sizeof(name));
	if (n <= 0 || (size_t)n >= sizeof(name) || name[0] != '/')
		return false;
	buf_add(out, name, (size_t)n);
	return true;
}

/* No word of where anything is: only of what was asked for. */
static const char *
path_fault(int err)
{
	static const struct {
		int err;
		const char *text;
	} rows[] = {
	    {EXDEV, "must stay below the folder that is meant"},
	    {ELOOP, "must not lead through a loop of links"},
	    {ENAMETOOLONG, "must not be that long"},
	    {EACCES, "must be accessible"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].err == err)
			return rows[i].text;
	return "must be the path of something that exists";
}

const char *
exec_path_resolve(const char *root, const char *path, struct buf *out)
{
	const char *fault = NULL;
	int dir, fd = -1;

	if (path[0] == '/')
		return "must be a relative path";
	dir = open(root, PATH_FLAGS | O_DIRECTORY);
	if (dir >= 0)
		fd = path_open_below(dir, path);
	if (fd < 0)
		fault = path_fault(errno);
	else if (!path_put_name(fd, out))
		fault = "must have a name";
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	return fault;
}
