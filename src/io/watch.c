/* SPDX-License-Identifier: MIT */
/*
 * Readiness of descriptors, as two persistent events or, where epoll refuses
 * the descriptor, as deferred work of every turn.
 *
 * Owns: the events of a watch; never the descriptor.
 * Driven by: loop.
 * Invariants: after watch_want(w, 0) or watch_fini no callback comes, not even
 * for readiness that this turn has already seen.
 */
#include "mcpvisor/loop.h"

#include "loop_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

/* Regular files, and devices such as /dev/null. */
static bool
watch_is_always_ready(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct stat st;
	bool refused;
	int ep;

	if (fstat(fd, &st) != 0 || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep < 0)
		return false;
	refused = epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0 && errno == EPERM;
	close(ep);
	return refused;
}

static void
on_file_turn(void *arg)
{
	struct watch *w = arg;

	if (!w->want)
		return;
	/* First, because the callback may end w. */
	deferred_ask(&w->again);
	w->fn(w->arg, w->want);
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	uint64_t start = clock_now_ms();
	unsigned ready = 0;

	if (what & EV_READ)
		ready |= WATCH_READ;
	if (what & EV_WRITE)
		ready |= WATCH_WRITE;
	w->fn(w->arg, ready);
	loop_account(start, "descriptor", (int)fd);
}

void
watch_init(struct watch *w, struct loop *l, int fd, watch_fn *fn, void *arg)
{
	memset(w, 0, sizeof(*w));
	w->loop = l;
	w->fn = fn;
	w->arg = arg;
	w->fd = fd;
	w->is_file = watch_is_always_ready(fd);
	deferred_init(&w->again, l, on_file_turn, w);
}

static bool
watch_arm(struct watch *w, struct event **ev, short what, bool on)
{
	if (!on)
		return !*ev || event_del(*ev) == 0;
	if (!*ev)
		*ev = event_new(
		    loop_base(w->loop), w->fd, (short)(what | EV_PERSIST), on_ready, w);
	MCPVISOR_ASSERT(*ev != NULL);
	return event_add(*ev, NULL) == 0;
}

void
watch_want(struct watch *w, unsigned want)
{
	unsigned changed = w->want ^ want;

	if (!changed)
		return;
	w->want = want;
	if (!w->is_file) {
		bool ok = true;

		if (changed & WATCH_READ)
			ok = watch_arm(w, &w->ev_read, EV_READ, want & WATCH_READ);
		if (changed & WATCH_WRITE)
			ok = watch_arm(w, &w->ev_write, EV_WRITE, want & WATCH_WRITE) &&
			     ok;
		if (ok)
			return;
		/* Let the owner's read or write find out what is wrong. */
		w->is_file = true;
	}
	if (want)
		deferred_ask(&w->again);
	else
		deferred_cancel(&w->again);
}

void
watch_fini(struct watch *w)
{
	if (w->ev_read)
		event_free(w->ev_read);
	if (w->ev_write)
		event_free(w->ev_write);
	w->ev_read = NULL;
	w->ev_write = NULL;
	w->want = 0;
	deferred_cancel(&w->again);
}
