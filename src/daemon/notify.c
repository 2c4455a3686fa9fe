/* SPDX-License-Identifier: MIT */
/*
 * Tells the service manager how we are.
 *
 * Owns: a datagram socket, two timers.
 * Driven by: serve; the timers.
 * Invariants: never blocks; how we are is said again until it is taken, as a service that
 * never says that it is ready is ended; a heartbeat that is lost comes again by itself.
 */
#include "mcpvisor/notify.h"

#include "mcpvisor/err.h"
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

#define NOTIFY_MAGIC 0x6e746679u
#define AGAIN_MS     100

struct notify {
	unsigned magic;
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;
	struct timer beat, again;
	uint64_t beat_ms; /* 0: no watchdog */
	char unsent[96];  /* the newest, for again */
};

/* False: the other side takes nothing now. */
static bool
notify_send(struct notify *n, const char *text)
{
	if (sendto(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&n->to, n->to_len) >= 0)
		return true;
	LOG_DEBUG("notify", "not sent", "errno=%d", errno);
	return errno != EAGAIN;
}

static void
on_again(void *arg)
{
	struct notify *n = arg;

	MCPVISOR_ASSERT(n->magic == NOTIFY_MAGIC);
	if (!notify_send(n, n->unsent))
		timer_set(&n->again, AGAIN_MS);
}

static void
notify_say(struct notify *n, const char *text)
{
	if (n == NULL)
		return;
	(void)snprintf(n->unsent, sizeof(n->unsent), "%s", text);
	timer_clear(&n->again);
	on_again(n);
}

static void
on_beat(void *arg)
{
	struct notify *n = arg;

	MCPVISOR_ASSERT(n->magic == NOTIFY_MAGIC);
	(void)notify_send(n, "WATCHDOG=1");
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
	n->magic = NOTIFY_MAGIC;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, path, strlen(path));
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) +
				(path[0] == '/'));
	if (path[0] == '@')
		n->to.sun_path[0] = '\0';
	timer_init(&n->beat, l, on_beat, n);
	timer_init(&n->again, l, on_again, n);
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
	timer_fini(&n->again);
	if (n->fd >= 0)
		(void)close(n->fd);
	n->magic = 0;
	mem_free(n);
}

void
notify_ready(struct notify *n)
{
	notify_say(n, "READY=1");
}

void
notify_reloading(struct notify *n)
{
	struct timespec ts;
	char text[96];

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	    (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
	notify_say(n, text);
}

void
notify_stopping(struct notify *n)
{
	notify_say(n, "STOPPING=1");
}
