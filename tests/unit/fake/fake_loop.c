/* SPDX-License-Identifier: MIT */
/*
 * The event loop for tests: virtual time, no waiting.
 *
 * Owns: the clock while it lives.
 * Driven by: the test.
 * Invariants: timers fire in the order of their times, then of their setting; a
 * callback may end any timer, watch or deferred, its own included.
 */
#include "fake/fake_loop.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"
#include "mcpvisor/mem.h"

#include <poll.h>
#include <string.h>

#define FAKE_START_MS  1000000
#define FAKE_TURNS_MAX 100000 /* a settle that long is a loop of two callbacks */
#define FAKE_SIGNALS   65

/* What timers and watches hang on; loop.h leaves the type to its implementer. */
struct event {
	struct event *next;
	uint64_t id;
	struct timer *timer;
	struct watch *watch;
	uint64_t due_ms, order;
};

struct fake_free {
	struct fake_free *next;
	loop_fn *fn;
	void *p;
};

struct loop {
	struct mem_wait *waits, **waits_tail;
	struct event *events;
	struct deferred *deferred, **deferred_tail;
	struct fake_free *frees, **frees_tail;
	uint64_t last_id, last_order;
	struct {
		loop_fn *fn;
		void *arg;
	} signals[FAKE_SIGNALS];
	bool stopped;
	int code;
};

static uint64_t g_fake_now_ms = FAKE_START_MS;

static uint64_t
fake_now(void)
{
	return g_fake_now_ms;
}

struct loop *
loop_new(void)
{
	struct loop *l = mem_xcalloc(1, sizeof(*l));

	l->waits_tail = &l->waits;
	l->deferred_tail = &l->deferred;
	l->frees_tail = &l->frees;
	clock_set_source(fake_now);
	return l;
}

static bool
fake_run_frees(struct loop *l)
{
	struct fake_free *f = l->frees;
	bool any = f != NULL;

	l->frees = NULL;
	l->frees_tail = &l->frees;
	while (f != NULL) {
		struct fake_free *next = f->next;

		f->fn(f->p);
		mem_free(f);
		f = next;
	}
	return any;
}

void
loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	while (fake_run_frees(l))
		;
	/* Whoever made it has to end it. */
	MCPVISOR_ASSERT(l->events == NULL);
	MCPVISOR_ASSERT(l->deferred == NULL);
	MCPVISOR_ASSERT(l->waits == NULL);
	clock_set_source(NULL);
	mem_free(l);
}

int
loop_run(struct loop *l)
{
	l->stopped = false;
	while (!l->stopped) {
		/* A loop without anything to wait for would hang. */
		if (!fake_loop_turn(l) && !l->stopped)
			MCPVISOR_ASSERT(fake_loop_advance_to_timer(l));
	}
	return l->code;
}

void
loop_stop(struct loop *l, int code)
{
	l->stopped = true;
	l->code = code;
}

/* ---- events ---- */

static struct event *
fake_event_new(struct loop *l)
{
	struct event *ev = mem_xcalloc(1, sizeof(*ev));

	ev->id = ++l->last_id;
	ev->next = l->events;
	l->events = ev;
	return ev;
}

static void
fake_event_free(struct loop *l, struct event *ev)
{
	struct event **at = &l->events;

	while (*at != ev)
		at = &(*at)->next;
	*at = ev->next;
	mem_free(ev);
}

static struct event *
fake_event_find(struct loop *l, uint64_t id)
{
	struct event *ev = l->events;

	while (ev != NULL && ev->id != id)
		ev = ev->next;
	return ev;
}

void
timer_init(struct timer *t, struct loop *l, loop_fn *fn, void *arg)
{
	*t = (struct timer){.loop = l, .fn = fn, .arg = arg};
	t->ev = fake_event_new(l);
	t->ev->timer = t;
}

void
timer_set(struct timer *t, uint64_t ms)
{
	t->armed = true;
	t->ev->due_ms = g_fake_now_ms + ms;
	t->ev->order = ++t->loop->last_order;
}

void
timer_clear(struct timer *t)
{
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
	if (t->ev != NULL)
		fake_event_free(t->loop, t->ev);
	*t = (struct timer){.ev = NULL};
}

void
watch_init(struct watch *w, struct loop *l, int fd, watch_fn *fn, void *arg)
{
	*w = (struct watch){.loop = l, .fd = fd, .fn = fn, .arg = arg};
	w->ev_read = fake_event_new(l);
	w->ev_read->watch = w;
}

void
watch_want(struct watch *w, unsigned want)
{
	w->want = want;
}

void
watch_fini(struct watch *w)
{
	if (w->ev_read != NULL)
		fake_event_free(w->loop, w->ev_read);
	*w = (struct watch){.fd = -1};
}

/* ---- deferred ---- */

void
deferred_init(struct deferred *d, struct loop *l, loop_fn *fn, void *arg)
{
	*d = (struct deferred){.loop = l, .fn = fn, .arg = arg};
}

void
deferred_ask(struct deferred *d)
{
	struct loop *l = d->loop;

	if (d->prev != NULL)
		return;
	d->next = NULL;
	d->prev = l->deferred_tail;
	*l->deferred_tail = d;
	l->deferred_tail = &d->next;
}

void
deferred_cancel(struct deferred *d)
{
	if (d->prev == NULL)
		return;
	*d->prev = d->next;
	if (d->next != NULL)
		d->next->prev = d->prev;
	else
		d->loop->deferred_tail = d->prev;
	d->next = NULL;
	d->prev = NULL;
}

/* A marker at the end: what is asked for meanwhile belongs to the next turn. */
static bool
fake_run_deferred(struct loop *l)
{
	struct deferred end;
	bool any = false;

	deferred_init(&end, l, NULL, NULL);
	deferred_ask(&end);
	while (l->deferred != &end) {
		struct deferred *d = l->deferred;

		deferred_cancel(d);
		d->fn(d->arg);
		any = true;
	}
	deferred_cancel(&end);
	return any;
}

void
loop_defer_free(struct loop *l, loop_fn *fn, void *p)
{
	struct fake_free *f = mem_xcalloc(1, sizeof(*f));

	f->fn = fn;
	f->p = p;
	*l->frees_tail = f;
	l->frees_tail = &f->next;
}

/* ---- memory ---- */

/* Looked at every turn, hang-ups not at all. */

void
mem_wait_init(struct mem_wait *w, struct loop *l, loop_fn *fn, void *arg)
{
	*w = (struct mem_wait){.loop = l, .fn = fn, .arg = arg, .fd = -1};
}

bool
mem_wait_is_needed(const struct mem_wait *w)
{
	return w->is_vital ? mem_is_exhausted() : mem_is_short();
}

void
mem_wait_start(struct mem_wait *w)
{
	struct loop *l = w->loop;

	if (w->prev != NULL)
		return;
	w->next = NULL;
	w->prev = l->waits_tail;
	*l->waits_tail = w;
	l->waits_tail = &w->next;
}

void
mem_wait_cancel(struct mem_wait *w)
{
	if (w->prev == NULL)
		return;
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	else
		w->loop->waits_tail = w->prev;
	w->next = NULL;
	w->prev = NULL;
}

bool
mem_wait_is_set(const struct mem_wait *w)
{
	return w->prev != NULL;
}

size_t
loop_mem_waits(const struct loop *l)
{
	size_t n = 0;

	for (const struct mem_wait *w = l->waits; w != NULL; w = w->next)
		n++;
	return n;
}

static bool
fake_run_waits(struct loop *l)
{
	struct mem_wait *w = l->waits;

	while (w != NULL && mem_wait_is_needed(w))
		w = w->next;
	if (w == NULL)
		return false;
	mem_wait_cancel(w);
	w->fn(w->arg);
	return true;
}

/* ---- signals ---- */

bool
loop_on_signal(struct loop *l, int signo, loop_fn *fn, void *arg)
{
	MCPVISOR_ASSERT(signo > 0 && signo < FAKE_SIGNALS);
	l->signals[signo].fn = fn;
	l->signals[signo].arg = arg;
	return true;
}

void
fake_loop_signal(struct loop *l, int signo)
{
	MCPVISOR_ASSERT(signo > 0 && signo < FAKE_SIGNALS);
	if (l->signals[signo].fn != NULL)
		l->signals[signo].fn(l->signals[signo].arg);
}

/* ---- turning ---- */

static bool
fake_poll_one(struct event *ev)
{
	struct watch *w = ev->watch;
	struct pollfd p = {.fd = w->fd};
	unsigned ready = 0;

	if ((w->want & WATCH_READ) != 0)
		p.events |= POLLIN;
	if ((w->want & WATCH_WRITE) != 0)
		p.events |= POLLOUT;
	if (poll(&p, 1, 0) <= 0)
		return false;
	MCPVISOR_ASSERT((p.revents & POLLNVAL) == 0);
	if ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		ready |= WATCH_READ;
	if ((p.revents & (POLLOUT | POLLHUP | POLLERR)) != 0)
		ready |= WATCH_WRITE;
	ready &= w->want;
	if (ready == 0)
		return false;
	w->fn(w->arg, ready);
	return true;
}

/* By number, not by pointer: callbacks add and end events. */
static bool
fake_run_watches(struct loop *l)
{
	uint64_t upto = l->last_id;
	bool any = false;

	for (uint64_t id = 0; id < upto;) {
		uint64_t next = upto + 1;
		struct event *ev;

		for (ev = l->events; ev != NULL; ev = ev->next) {
			if (ev->watch != NULL && ev->watch->want != 0 && ev->id > id &&
			    ev->id < next)
				next = ev->id;
		}
		id = next;
		ev = fake_event_find(l, id);
		if (id <= upto && ev != NULL && fake_poll_one(ev))
			any = true;
	}
	return any;
}

static struct event *
fake_next_timer(const struct loop *l)
{
	struct event *best = NULL;

	for (struct event *ev = l->events; ev != NULL; ev = ev->next) {
		if (ev->timer == NULL || !ev->timer->armed)
			continue;
		if (best == NULL || ev->due_ms < best->due_ms ||
		    (ev->due_ms == best->due_ms && ev->order < best->order))
			best = ev;
	}
	return best;
}

/* A timer that sets itself to now fires in the next turn. */
static bool
fake_run_timers(struct loop *l)
{
	uint64_t upto = l->last_order;
	struct event *ev;
	bool any = false;

	while ((ev = fake_next_timer(l)) != NULL && ev->due_ms <= g_fake_now_ms &&
	       ev->order <= upto) {
		ev->timer->armed = false;
		ev->timer->fn(ev->timer->arg);
		any = true;
	}
	return any;
}

bool
fake_loop_turn(struct loop *l)
{
	bool any = fake_run_watches(l);

	any |= fake_run_timers(l);
	any |= fake_run_waits(l);
	any |= fake_run_deferred(l);
	any |= fake_run_frees(l);
	return any;
}

void
fake_loop_settle(struct loop *l)
{
	unsigned turns = 0;

	while (fake_loop_turn(l))
		MCPVISOR_ASSERT(++turns < FAKE_TURNS_MAX);
}

void
fake_loop_advance(struct loop *l, uint64_t ms)
{
	uint64_t end = g_fake_now_ms + ms;

	fake_loop_settle(l);
	for (;;) {
		struct event *ev = fake_next_timer(l);

		if (ev == NULL || ev->due_ms > end)
			break;
		if (ev->due_ms > g_fake_now_ms)
			g_fake_now_ms = ev->due_ms;
		fake_loop_settle(l);
	}
	g_fake_now_ms = end;
	fake_loop_settle(l);
}

bool
fake_loop_advance_to_timer(struct loop *l)
{
	struct event *ev = fake_next_timer(l);

	if (ev == NULL)
		return false;
	fake_loop_advance(l, ev->due_ms > g_fake_now_ms ? ev->due_ms - g_fake_now_ms : 0);
	return true;
}

size_t
fake_loop_timers(const struct loop *l)
{
	size_t n = 0;

	for (const struct event *ev = l->events; ev != NULL; ev = ev->next)
		n += ev->timer != NULL && ev->timer->armed;
	return n;
}

size_t
fake_loop_watches(const struct loop *l)
{
	size_t n = 0;

	for (const struct event *ev = l->events; ev != NULL; ev = ev->next)
		n += ev->watch != NULL && ev->watch->want != 0;
	return n;
}
