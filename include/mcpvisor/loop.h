/* SPDX-License-Identifier: MIT */
/*
 * The event loop: descriptors, timers, signals, deferred work. The only user
 * of libevent's base; nothing here is thread-safe.
 */
#ifndef MCPVISOR_LOOP_H
#define MCPVISOR_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct event;

struct loop *loop_new(void); /* NULL when the system refuses */
void loop_free(struct loop *l);
/* Runs until loop_stop; returns its code. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int code);

typedef void loop_fn(void *arg);

/* A one-shot timer, a member of its owner. The callback may set or finish it. */
struct timer {
	struct event *ev;
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	bool armed;
};
void timer_init(struct timer *t, struct loop *l, loop_fn *fn, void *arg);
void timer_set(struct timer *t, uint64_t ms); /* replaces an earlier setting */
void timer_clear(struct timer *t);
bool timer_is_set(const struct timer *t);
void timer_fini(struct timer *t); /* fine on zeroed or finished memory */

/* Work at the end of this turn, after all ready events, in order of request. A
 * member of its owner; asking twice before it ran is once. Work asked for by
 * deferred work runs in the next turn (which starts at once). */
struct deferred {
	struct deferred *next, **prev; /* list; owned by loop */
	struct loop *loop;
	loop_fn *fn;
	void *arg;
};
void deferred_init(struct deferred *d, struct loop *l, loop_fn *fn, void *arg);
void deferred_ask(struct deferred *d);
void deferred_cancel(struct deferred *d); /* fine when not asked */

/* Calls fn(p) after this turn: how an object ends inside its own callback. On
 * loop_free whatever is left is run. */
void loop_defer_free(struct loop *l, loop_fn *fn, void *p);

/* Readiness of a descriptor. The descriptor stays its owner's. A regular file,
 * which epoll refuses, counts as always ready. */
#define WATCH_READ  1u
#define WATCH_WRITE 2u
typedef void watch_fn(void *arg, unsigned ready);
struct watch {
	struct event *ev_read, *ev_write;
	struct loop *loop;
	watch_fn *fn;
	void *arg;
	int fd;
	unsigned want;
	bool is_file; /* always ready: driven by deferred work */
	struct deferred again;
};
void watch_init(struct watch *w, struct loop *l, int fd, watch_fn *fn, void *arg);
void watch_want(struct watch *w, unsigned want); /* level-triggered; 0 pauses */
void watch_fini(struct watch *w);

/* Waiting until there is memory again (mem.h): fn comes when mem_is_short is over, or
 * mem_is_exhausted for one that is vital; in the order of asking, the vital ones first,
 * looked at every 20 ms. Whoever is called looks anew before it takes memory. One whose
 * peer hangs up meanwhile becomes vital. A member of its owner. */
struct mem_wait {
	struct mem_wait *next, **prev;
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	int fd; /* where its peer is; -1: nowhere */
	bool is_vital;
};
void mem_wait_init(struct mem_wait *w, struct loop *l, loop_fn *fn, void *arg);
bool mem_wait_is_needed(const struct mem_wait *w);
void mem_wait_start(struct mem_wait *w);  /* again while waiting: nothing */
void mem_wait_cancel(struct mem_wait *w); /* fine on zeroed memory and when not waiting */
bool mem_wait_is_set(const struct mem_wait *w);
size_t loop_mem_waits(const struct loop *l); /* how many wait now */

/* A signal as an event; fn gets arg. One handler a signal: false if there is one
 * already or the system refuses. fn NULL ends it. Unblocks the signal. */
bool loop_on_signal(struct loop *l, int signo, loop_fn *fn, void *arg);

#endif
