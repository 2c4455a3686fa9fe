/* SPDX-License-Identifier: MIT */
/*
 * Sockets that the service manager opened for us: sd_listen_fds(3), without its library.
 *
 * Owns: nothing; what was inherited stays open as long as the process.
 * Driven by: listener.c.
 * Invariants: an inherited descriptor is never closed, and what listens is a copy: a
 * reload may let go of a socket and a later one must find the same under its number.
 */
#include "mcpvisor/listener.h"

#include "listener_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD     3
#define INHERIT_MAX  1024
#define UNNAMED_NAME "unknown" /* what sd_listen_fds_with_names calls it */

/* A decimal number from 1 to max; else 0. */
static long
inherit_number(const char *s, long max)
{
	long n = 0;

	if (s == NULL || s[0] == '\0')
		return 0;
	for (; *s >= '0' && *s <= '9' && n <= max; s++)
		n = n * 10 + (*s - '0');
	return *s == '\0' && n <= max ? n : 0;
}

static int
inherit_count(void)
{
	/* Set for somebody before us, maybe a shell. */
	if (inherit_number(getenv("LISTEN_PID"), INT32_MAX) != getpid())
		return 0;
	return (int)inherit_number(getenv("LISTEN_FDS"), INHERIT_MAX);
}

int
listener_find_inherited(const char *name, struct mv_errtext *et)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int n = inherit_count(), found = -1, matches = 0;

	for (int i = 0; i < n; i++) {
		const char *word = names != NULL ? names : UNNAMED_NAME;
		size_t len = strcspn(word, ":");

		/* Whatever we start is not to have them. */
		(void)fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC);
		if (len == strlen(name) && memcmp(word, name, len) == 0) {
			found = FIRST_FD + i;
			matches++;
		}
		if (names != NULL)
			names += names[len] == ':' ? len + 1 : len;
	}
	if (matches == 1)
		return found;
	if (matches == 0) {
		mv_errtext_set(et,
		    "systemd:%s: the service manager has handed over no socket of that "
		    "name (LISTEN_FDNAMES)",
		    name);
	} else {
		mv_errtext_set(et,
		    "systemd:%s: %d sockets have that name; give each its own "
		    "FileDescriptorName=",
		    name, matches);
	}
	return -1;
}

static bool
inherit_is_listening(int fd)
{
	int type = 0, listening = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM)
		return false;
	len = sizeof(listening);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) == 0 &&
	       listening;
}

enum mv_err
listener_adopt(const char *name, int *fd, struct mv_errtext *et)
{
	int found = listener_find_inherited(name, et), flags;

	if (found < 0)
		return MV_SYSTEM;
	if (!inherit_is_listening(found)) {
		mv_errtext_set(et,
		    "systemd:%s is not a stream socket that listens (ListenStream=, "
		    "Accept=no)",
		    name);
		return MV_SYSTEM;
	}
	*fd = fcntl(found, F_DUPFD_CLOEXEC, FIRST_FD);
	flags = *fd < 0 ? -1 : fcntl(*fd, F_GETFL);
	if (flags < 0 || fcntl(*fd, F_SETFL, flags | O_NONBLOCK) != 0) {
		mv_errtext_set(
		    et, "cannot use systemd:%s: %s", name, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	return MV_OK;
}
