/* SPDX-License-Identifier: MIT */
/*
 * What /proc says about processes and groups.
 *
 * Owns: nothing. Driven by: spawn, and the guard, which has given up its heap:
 * system calls and the stack only.
 */
#include "spawn_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A number and the byte after it; -1 if there is none. */
static pid_t
spawn_number(const char *p, const char **end)
{
	pid_t v = 0;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9' && v < 100000000; p++)
		v = v * 10 + (*p - '0');
	*end = p;
	return v;
}

static void
spawn_stat_path(pid_t pid, char *path)
{
	char digits[16], *d = digits;

	memcpy(path, "/proc/", 7);
	path += 6;
	do
		*d++ = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (d > digits)
		*path++ = *--d;
	memcpy(path, "/stat", 6);
}

/* "pid (comm) state ppid pgrp ...": comm may hold anything, so from the back. */
bool
spawn_stat_read(pid_t pid, struct spawn_stat *st)
{
	char path[40], text[512], *open_paren, *close_paren;
	const char *p;
	ssize_t n;
	size_t len;
	int fd;

	spawn_stat_path(pid, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren < open_paren ||
	    text + n - close_paren < 5)
		return false;
	len = (size_t)(close_paren - open_paren) - 1;
	if (len >= sizeof(st->comm))
		len = sizeof(st->comm) - 1;
	memcpy(st->comm, open_paren + 1, len);
	st->comm[len] = '\0';
	st->state = close_paren[2];
	p = close_paren + 4;
	if (spawn_number(p, &p) < 0 || *p != ' ')
		return false;
	st->pgid = spawn_number(p + 1, &p);
	return st->pgid >= 0;
}

static bool
spawn_is_member(pid_t pid, pid_t pgid)
{
	struct spawn_stat st;

	/* getpgid first: cheap, and nearly always enough. */
	if (getpgid(pid) != pgid || !spawn_stat_read(pid, &st))
		return false;
	return st.pgid == pgid && st.state != 'Z' && st.state != 'X';
}

bool
spawn_group_has_others(pid_t pgid, pid_t except)
{
	_Alignas(struct dirent64) char buf[2048];
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	long n = 0;

	if (fd < 0)
		return true;
	while (!found && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long off = 0; off < n && !found;) {
			const struct dirent64 *e = (const void *)(buf + off);
			const char *end = e->d_name;
			pid_t pid = spawn_number(e->d_name, &end);

			off += e->d_reclen;
			if (pid > 0 && *end == '\0' && pid != except)
				found = spawn_is_member(pid, pgid);
		}
	}
	close(fd);
	return found || n < 0;
}

void
spawn_each_child(void (*fn)(void *arg, pid_t pid), void *arg)
{
	int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, text + have, sizeof(text) - have)) > 0) {
		const char *at = text, *end;

		/* Each number has a space behind it; the last one may be half read. */
		for (have += (size_t)n;
		     (end = memchr(at, ' ', have - (size_t)(at - text))) != NULL;
		     at = end + 1)
			fn(arg, spawn_number(at, &end));
		have -= (size_t)(at - text);
		memmove(text, at, have);
	}
	close(fd);
}
