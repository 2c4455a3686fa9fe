/* SPDX-License-Identifier: MIT */
/*
 * Tells the service manager how we are.
 *
 * Owns: a datagram socket, the heartbeat's timer.
 * Driven by: serve; the timer.
 * Invariants: never blocks; a message that cannot be sent is lost without harm.
 */
#include "mcpvisor/notify.h"

#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct notify {
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;
	struct timer beat;
	uint64_t beat_ms; /* 0: no watchdog */
};

static void
notify_send(struct notify *n, const char *text)
{
	if (n == NULL)
		return;
	if (sendto(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&n->to, n->to_len) < 0)
		LOG_DEBUG("notify", "not sent", "errno=%d", errno);
}

static void
on_beat(void *arg)
{
	struct notify *n = arg;

	notify_send(n, "WATCHDOG=1");
	timer_set(&n->beat, n->beat_ms);
}

/* Half of what the manager waits for, as sd_watchdog_enabled(3) advises. */
static uint64_t
notify_beat_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (usec == NULL || (pid != NULL && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10) / 2000;
}

struct notify *
notify_new(struct loop *l)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct notify *n;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(n->to.sun_path))
		return NULL;
	n = mem_xcalloc(1, sizeof(*n));
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, path, strlen(path));
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) +
				(path[0] == '/'));
	if (path[0] == '@')
		n->to.sun_path[0] = '\0';
	timer_init(&n->beat, l, on_beat, n);
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	n->beat_ms = notify_beat_ms();
	if (n->beat_ms > 0)
		timer_set(&n->beat, n->beat_ms);
	return n;
}

void
notify_free(struct notify *n)
{
	if (n == NULL)
		return;
	timer_fini(&n->beat);
	if (n->fd >= 0)
		(void)close(n->fd);
	mem_free(n);
}

void
notify_ready(struct notify *n)
{
	notify_send(n, "READY=1");
}

void
notify_reloading(struct notify *n)
{
	struct timespec ts;
	char text[96];

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	    (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
	notify_send(n, text);
}

void
notify_stopping(struct notify *n)
{
	notify_send(n, "STOPPING=1");
}

void
notify_status(struct notify *n, const char *text)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "STATUS=%s", text);
	notify_send(n, line);
}
