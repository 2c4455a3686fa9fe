/* SPDX-License-Identifier: MIT */
/* A listener under test, its clients, and a folder for unix sockets. */
#ifndef CHECK_LISTENER_RIG_H
#define CHECK_LISTENER_RIG_H

#include "mcpvisor/listener.h"

#include "mcpvisor/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>

#define BOUND_MS 20000

static struct loop *l;
static struct timer bound;
static struct listener *it;
static struct mv_errtext et;
static int accepted, fds[8];
static uid_t last_uid;
static bool free_inside;
static char folder[64], path[96], address[128];

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_accept(void *arg, int fd, uid_t uid)
{
	ck_assert_ptr_eq(arg, &accepted);
	ck_assert_int_lt(accepted, 8);
	fds[accepted++] = fd;
	last_uid = uid;
	if (free_inside) {
		listener_free(it);
		it = NULL;
	}
	loop_stop(l, 0);
}

static const struct listener_cb cb = {on_accept};

static inline void
on_stop(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

static inline void
settle(void)
{
	struct timer soon;

	timer_init(&soon, l, on_stop, NULL);
	for (int i = 0; i < 2; i++) {
		timer_set(&soon, 0);
		loop_run(l);
	}
	timer_fini(&soon);
}

static inline enum mv_err
start(const char *where)
{
	return listener_new(l, where, &cb, &accepted, &it, &et);
}

static inline int
dial(const char *where)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
	} a;
	socklen_t len = sizeof(a);
	const char *port = strrchr(where, ':') + 1;
	int fd;

	memset(&a, 0, sizeof(a));
	if (strncmp(where, "unix:", 5) == 0) {
		a.un.sun_family = AF_UNIX;
		ck_assert_uint_lt(strlen(where + 5), sizeof(a.un.sun_path));
		memcpy(a.un.sun_path, where + 5, strlen(where + 5) + 1);
		len = sizeof(a.un);
	} else if (where[0] == '[') {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_addr = in6addr_loopback;
		a.v6.sin6_port = htons((uint16_t)strtoul(port, NULL, 10));
		len = sizeof(a.v6);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a.v4.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
		len = sizeof(a.v4);
	}
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, &a.sa, len) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline void
setup(void)
{
	l = loop_new();
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	it = NULL;
	accepted = 0;
	free_inside = false;
	memset(&et, 0, sizeof(et));
	snprintf(folder, sizeof(folder), "/tmp/check-listener-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(address, sizeof(address), "unix:%s", path);
}

static inline void
teardown(void)
{
	listener_free(it);
	for (int i = 0; i < accepted; i++)
		close(fds[i]);
	timer_fini(&bound);
	loop_free(l);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

#include "suite_rig.h"

#endif
