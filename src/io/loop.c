/* SPDX-License-Identifier: MIT */
/*
 * The event loop on libevent: turns, timers, deferred work, signals.
 *
 * Owns: the event base, the lists of deferred work and of postponed frees.
 * Driven by: loop_run.
 * Invariants: a turn is all ready events, then the deferred work asked for so
 * far, then the postponed frees; after loop_stop no callback of that run comes
 * any more; no callback's owner is touched after the callback.
 */
#include "mcpvisor/loop.h"

#include "loop_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#define LOOP_MAGIC  0x6c6f6f70u
#define SLOW_MS	    50u
#define MAX_TIMER_S (365u * 24 * 3600)
/* Epoll's, and a pair for signals; one to spare. */
#define LIBEVENT_FDS 4

struct loop_signal {
	struct event *ev;
	struct loop *loop;
	loop_fn *fn;
	void *arg;
};

struct garbage {
	struct garbage *next;
	loop_fn *fn;
	void *p;
};

struct loop {
	unsigned magic;
	struct event_base *base;
	struct deferred *asked, **asked_tail;
	struct deferred *running; /* what is left of this turn's work */
	struct garbage *garbage, **garbage_tail;
	struct loop_signal signals[NSIG];
	struct mem_waits waits;
	bool stopping;
	int code;
};

static void
on_libevent_log(int severity, const char *msg)
{
	enum log_level level = LOG_LV_DEBUG;

	if (severity == EVENT_LOG_ERR)
		level = LOG_LV_ERROR;
	else if (severity == EVENT_LOG_WARN)
		level = LOG_LV_WARNING;
	else if (severity == EVENT_LOG_MSG)
		level = LOG_LV_INFO;
	LOG_LIMITED(level, "loop", "libevent", "text=%s", LOG_ESC(msg, strlen(msg)));
}

static void
on_libevent_fatal(int err)
{
	LOG_ERROR("loop", "libevent gave up", "code=%d", err);
	abort();
}

/* Without some libevent ends the process, in place of saying no. */
static bool
loop_has_descriptors(void)
{
	int fd[LIBEVENT_FDS], n = 0;

	while (n < LIBEVENT_FDS && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fd[i]);
	return n == LIBEVENT_FDS;
}

struct loop *
loop_new(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct event_config *conf;
	struct loop *l;

	/* Before libevent takes any: what it holds for us counts as ours. */
	event_set_mem_functions(loop_cell_alloc, loop_cell_realloc, loop_cell_free);
	event_set_log_callback(on_libevent_log);
	event_set_fatal_callback(on_libevent_fatal);
	/* A peer that reads no more is an error of that write, not our end. */
	sigaction(SIGPIPE, &ignore, NULL);
	conf = loop_has_descriptors() ? event_config_new() : NULL;
	if (!conf)
		return NULL;
	l = mem_xcalloc(1, sizeof(*l));
	l->magic = LOOP_MAGIC;
	l->asked_tail = &l->asked;
	l->garbage_tail = &l->garbage;
	event_config_set_flag(conf, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(conf);
	event_config_free(conf);
	if (!l->base) {
		mem_free(l);
		return NULL;
	}
	mem_waits_init(&l->waits, l);
	return l;
}

static void
loop_collect(struct loop *l)
{
	struct garbage *g = l->garbage, *next;

	l->garbage = NULL;
	l->garbage_tail = &l->garbage;
	for (; g; g = next) {
		next = g->next;
		g->fn(g->p);
		mem_free(g);
	}
}

void
loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->garbage)
		loop_collect(l);
	for (int i = 0; i < NSIG; i++)
		if (l->signals[i].ev)
			event_free(l->signals[i].ev);
	mem_waits_fini(&l->waits);
	event_base_free(l->base);
	l->magic = 0;
	mem_free(l);
}

struct event_base *
loop_base(const struct loop *l)
{
	return l->base;
}

struct mem_waits *
loop_waits(struct loop *l)
{
	return &l->waits;
}

size_t
loop_mem_waits(const struct loop *l)
{
	return l->waits.n;
}

void
loop_account(uint64_t start, const char *kind, int fd)
{
	uint64_t now = clock_now_ms();

	if (now <= start + SLOW_MS)
		return;
	metrics_add(METRIC_SLOW_TURNS, 1);
	LOG_LIMITED(LOG_LV_DEBUG, "loop", "slow callback", "kind=%s fd=%d ms=%" PRIu64,
	    kind, fd, now - start);
}

static void
loop_drain(struct loop *l)
{
	if (!l->running && l->asked) {
		l->running = l->asked;
		l->running->prev = &l->running;
		l->asked = NULL;
		l->asked_tail = &l->asked;
	}
	while (l->running && !l->stopping) {
		struct deferred *d = l->running;
		uint64_t start = clock_now_ms();

		deferred_cancel(d);
		d->fn(d->arg);
		loop_account(start, "deferred", -1);
	}
	if (!l->stopping)
		loop_collect(l);
}

int
loop_run(struct loop *l)
{
	MCPVISOR_ASSERT(l->magic == LOOP_MAGIC);
	while (!l->stopping) {
		int flags = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY;

		if (l->asked || l->running || l->garbage)
			flags |= EVLOOP_NONBLOCK;
		if (event_base_loop(l->base, flags) < 0) {
			LOG_ERROR("loop", "cannot wait for events", "%s", "");
			abort();
		}
		if (!l->stopping)
			loop_drain(l);
	}
	l->stopping = false;
	return l->code;
}

void
loop_stop(struct loop *l, int code)
{
	l->stopping = true;
	l->code = code;
	event_base_loopbreak(l->base);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct timer *t = arg;
	uint64_t start = clock_now_ms();

	(void)fd;
	(void)what;
	t->armed = false;
	t->fn(t->arg);
	loop_account(start, "timer", -1);
}

void
timer_init(struct timer *t, struct loop *l, loop_fn *fn, void *arg)
{
	memset(t, 0, sizeof(*t));
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
}

void
timer_set(struct timer *t, uint64_t ms)
{
	struct timeval tv;

	if (ms / 1000 > MAX_TIMER_S)
		ms = MAX_TIMER_S * UINT64_C(1000);
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (!t->ev)
		t->ev = evtimer_new(t->loop->base, on_timer, t);
	MCPVISOR_ASSERT(t->ev != NULL);
	if (t->armed)
		evtimer_del(t->ev);
	t->armed = evtimer_add(t->ev, &tv) == 0;
	MCPVISOR_ASSERT(t->armed);
}

void
timer_clear(struct timer *t)
{
	if (t->armed)
		evtimer_del(t->ev);
	t->armed = false;
}

bool
timer_is_set(const struct timer *t)
{
	return t->armed;
}

void
timer_fini(struct timer *t)
{
	if (t->ev)
		event_free(t->ev);
	t->ev = NULL;
	t->armed = false;
}

void
deferred_init(struct deferred *d, struct loop *l, loop_fn *fn, void *arg)
{
	memset(d, 0, sizeof(*d));
	d->loop = l;
	d->fn = fn;
	d->arg = arg;
}

void
deferred_ask(struct deferred *d)
{
	struct loop *l = d->loop;

	if (d->prev)
		return;
	d->next = NULL;
	d->prev = l->asked_tail;
	*d->prev = d;
	l->asked_tail = &d->next;
}

void
deferred_cancel(struct deferred *d)
{
	if (!d->prev)
		return;
	*d->prev = d->next;
	if (d->next)
		d->next->prev = d->prev;
	else if (d->loop->asked_tail == &d->next)
		d->loop->asked_tail = d->prev;
	d->next = NULL;
	d->prev = NULL;
}

void
loop_defer_free(struct loop *l, loop_fn *fn, void *p)
{
	struct garbage *g = mem_xalloc(sizeof(*g));

	g->next = NULL;
	g->fn = fn;
	g->p = p;
	*l->garbage_tail = g;
	l->garbage_tail = &g->next;
}

static void
on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *s = arg;
	uint64_t start = clock_now_ms();

	(void)signo;
	(void)what;
	s->fn(s->arg);
	loop_account(start, "signal", -1);
}

bool
loop_on_signal(struct loop *l, int signo, loop_fn *fn, void *arg)
{
	struct loop_signal *s;
	sigset_t set;

	if (signo <= 0 || signo >= NSIG)
		return false;
	s = &l->signals[signo];
	if (!fn) {
		if (s->ev)
			event_free(s->ev);
		memset(s, 0, sizeof(*s));
		return true;
	}
	if (s->ev)
		return false;
	s->loop = l;
	s->fn = fn;
	s->arg = arg;
	s->ev = evsignal_new(l->base, signo, on_signal, s);
	if (!s->ev)
		return false;
	if (evsignal_add(s->ev, NULL) != 0) {
		event_free(s->ev);
		s->ev = NULL;
		return false;
	}
	/* Some launchers leave signals blocked for whoever comes after them. */
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return true;
}
