/* SPDX-License-Identifier: MIT */
/* A control socket in a folder of its own, with a daemon that only notes what it is
 * asked, and a client that lets the other side run while it waits. */
#ifndef CHECK_CONTROL_RIG_H
#define CHECK_CONTROL_RIG_H

#include "mcpvisor/control.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BOUND_MS 20000

static struct loop *l;
static struct control *it;
static char folder[64], path[96];
static const struct control_opts opts = {.path = path, .mode = 0600};
static struct timer bound;
static struct mv_errtext et;
static char journal[256]; /* what the daemon was asked to do */
static enum mv_err next_err;
static size_t status_bytes;
static int taken_fd = -1;
static char taken_bytes[64];

static inline void
note(const char *what, const char *of)
{
	size_t n = strlen(journal);

	(void)snprintf(journal + n, sizeof(journal) - n, "%s(%s) ", what, of);
}

static inline void
fake_put_status(void *arg, struct buf *out)
{
	ck_assert_ptr_eq(arg, journal);
	if (status_bytes == 0) {
		buf_add_str(out, "{\"upstreams\":[]}");
		return;
	}
	buf_add_str(out, "{\"a\":\"");
	for (size_t i = 0; i < status_bytes; i++)
		buf_add_char(out, 'a');
	buf_add_str(out, "\"}");
}

static inline enum mv_err
fake_restart(void *arg, const char *upstream)
{
	(void)arg;
	note("restart", upstream);
	return next_err;
}

static inline enum mv_err
fake_reload(void *arg, bool dry_run, struct buf *text)
{
	(void)arg;
	note("reload", dry_run ? "dry" : "real");
	buf_add_str(text, next_err == MV_CONF ? "a.conf:3: \"x\"\n" : "+ upstream.new\n");
	return next_err;
}

static inline enum mv_err
fake_take_mcp(
    void *arg, int fd, uid_t uid, const char *profile, const char *buffered, size_t n)
{
	(void)arg;
	ck_assert_uint_eq(uid, geteuid());
	note("mcp", profile ? profile : "-");
	if (next_err != MV_OK)
		return next_err;
	ck_assert_uint_lt(n, sizeof(taken_bytes));
	memcpy(taken_bytes, buffered, n);
	taken_bytes[n] = '\0';
	taken_fd = fd;
	return MV_OK;
}

static const struct control_ops ops = {
    fake_put_status, fake_restart, fake_reload, fake_take_mcp};

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_stop(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

static inline void
turn(void)
{
	struct timer soon;

	timer_init(&soon, l, on_stop, NULL);
	timer_set(&soon, 1);
	loop_run(l);
	timer_fini(&soon);
}

static inline void
setup(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/check_control.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/control", folder);
	log_set_level(LOG_LV_ERROR);
	l = loop_new();
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	journal[0] = '\0';
	next_err = MV_OK;
	status_bytes = 0;
	taken_fd = -1;
	ck_assert_int_eq(control_new(l, &opts, &ops, journal, &it, &et), MV_OK);
}

static inline void
teardown(void)
{
	control_free(it);
	it = NULL;
	timer_fini(&bound);
	loop_free(l);
	log_set_level(LOG_LV_NOTICE);
	if (taken_fd >= 0)
		(void)close(taken_fd);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(rmdir(folder), 0);
}

static inline int
open_client(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(to.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Writes all of text while the other side runs. */
static inline void
say(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			turn();
			continue;
		}
		text += sent;
		n -= (size_t)sent;
	}
}

/* One line, or "" when the other side has closed. Valid until the next. */
static inline const char *
hear(int fd)
{
	static char line[4096];
	size_t n = 0;

	for (;;) {
		ssize_t got = recv(fd, line + n, 1, 0);

		if (got == 0 || (got < 0 && errno == ECONNRESET))
			break;
		if (got < 0) {
			turn();
		} else if (line[n] == '\n') {
			break;
		} else {
			ck_assert_uint_lt(++n, sizeof(line));
		}
	}
	line[n] = '\0';
	return line;
}

static inline const char *
ask(int fd, const char *request)
{
	say(fd, request, strlen(request));
	say(fd, "\n", 1);
	return hear(fd);
}

#include "suite_rig.h"

#endif
