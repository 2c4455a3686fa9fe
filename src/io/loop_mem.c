/* SPDX-License-Identifier: MIT */
/*
 * Those who wait for memory.
 *
 * Owns: nothing; the waits are members of their owners.
 * Driven by: one timer, set while anybody waits.
 * Invariants: who is called next is the first of its list, so everybody's turn comes; a
 * callback may end any wait, its own included; how much is looked at in a turn is
 * bounded.
 */
#include "mcpvisor/loop.h"

#include "loop_priv.h"

#include "mcpvisor/err.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <poll.h>
#include <string.h>

#define LOOK_MS	       20
#define CALLS_A_TURN   64
#define HANGUPS_A_TURN 256

static void
mem_wait_append(struct mem_waits *m, struct mem_wait *w)
{
	struct mem_wait ***tail = w->is_vital ? &m->vital_tail : &m->ordinary_tail;

	w->next = NULL;
	w->prev = *tail;
	**tail = w;
	*tail = &w->next;
	m->n++;
}

/* A peer that has hung up sends no more, so what it has sent is a bounded rest, and its
 * end is what frees memory: it need not wait behind others. */
static void
mem_waits_find_hangups(struct mem_waits *m)
{
	struct mem_wait *all[HANGUPS_A_TURN], *w = m->ordinary;
	struct pollfd p[HANGUPS_A_TURN];
	size_t n = 0, i = 0;

	for (; w && i < m->skip; i++)
		w = w->next;
	for (; w && n < HANGUPS_A_TURN; w = w->next) {
		all[n] = w;
		p[n++] = (struct pollfd){.fd = w->fd, .events = POLLRDHUP};
	}
	/* Where the next look begins. */
	m->skip = w ? m->skip + n : 0;
	if (n == 0 || poll(p, (nfds_t)n, 0) <= 0)
		return;
	for (i = 0; i < n; i++) {
		if (!(p[i].revents & (POLLRDHUP | POLLHUP | POLLERR)))
			continue;
		mem_wait_cancel(all[i]);
		all[i]->is_vital = true;
		mem_wait_append(m, all[i]);
	}
}

static void
on_look(void *arg)
{
	struct mem_waits *m = arg;
	bool more = true;

	mem_waits_find_hangups(m);
	for (int i = 0; i < CALLS_A_TURN && more; i++) {
		struct mem_wait *w = m->vital;

		if (!w || mem_wait_is_needed(w))
			w = m->ordinary;
		more = w && !mem_wait_is_needed(w);
		if (!more)
			break;
		mem_wait_cancel(w);
		w->fn(w->arg);
	}
	if (m->n > 0)
		timer_set(&m->timer, more ? 0 : LOOK_MS);
}

void
mem_waits_init(struct mem_waits *m, struct loop *l)
{
	m->ordinary_tail = &m->ordinary;
	m->vital_tail = &m->vital;
	timer_init(&m->timer, l, on_look, m);
}

void
mem_waits_fini(struct mem_waits *m)
{
	timer_fini(&m->timer);
}

void
mem_wait_init(struct mem_wait *w, struct loop *l, loop_fn *fn, void *arg)
{
	memset(w, 0, sizeof(*w));
	w->loop = l;
	w->fn = fn;
	w->arg = arg;
	w->fd = -1;
}

bool
mem_wait_is_needed(const struct mem_wait *w)
{
	return mem_is_short() && (!w->is_vital || mem_is_exhausted());
}

void
mem_wait_start(struct mem_wait *w)
{
	struct mem_waits *m = loop_waits(w->loop);

	if (w->prev)
		return;
	mem_wait_append(m, w);
	metrics_add(METRIC_SOURCES_PAUSED, 1);
	if (!timer_is_set(&m->timer))
		timer_set(&m->timer, LOOK_MS);
}

void
mem_wait_cancel(struct mem_wait *w)
{
	struct mem_waits *m;

	if (!w->prev)
		return;
	m = loop_waits(w->loop);
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else if (m->vital_tail == &w->next)
		m->vital_tail = w->prev;
	else
		m->ordinary_tail = w->prev;
	w->next = NULL;
	w->prev = NULL;
	m->n--;
}

bool
mem_wait_is_set(const struct mem_wait *w)
{
	return w->prev != NULL;
}
