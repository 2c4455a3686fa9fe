/* SPDX-License-Identifier: MIT */
/*
 * The wishes for updates of single resources, and the log level: kept here over
 * restarts, carried out by the era's adapter while ready.
 *
 * Invariants: a watch is in the list from upstream_watch to upstream_unwatch; the
 * adapters walk the list when they become ready.
 */
#include "upstream_priv.h"

void
upstream_watch(struct upstream *u, struct upstream_watch *w)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = upstream_refusal(u)};

	w->u = u;
	w->settled = false;
	w->next = u->watches;
	if (w->next != NULL)
		w->next->prev = &w->next;
	w->prev = &u->watches;
	u->watches = w;
	/* One that is down comes back, and is asked then. */
	if (o.err != MV_OK && o.err != MV_BACKOFF) {
		w->settled = true;
		w->on_settled(w->arg, &o);
	} else if (u->era != NULL) {
		u->era->watch(u, w);
	} else if (u->state == UPSTREAM_ST_ASLEEP) {
		upstream_wake(u);
	}
}

void
upstream_unwatch(struct upstream_watch *w)
{
	struct upstream *u = w->u;

	if (u == NULL)
		return;
	upstream_forget(&w->req);
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	w->u = NULL;
	if (u->era != NULL)
		u->era->unwatch(u, w);
	upstream_note_use(u); /* until now */
}

void
upstream_refuse_watches(struct upstream *u, const struct outcome *o)
{
	struct upstream_watch *next;

	for (struct upstream_watch *w = u->watches; w != NULL; w = next) {
		next = w->next;
		if (w->settled)
			continue;
		w->settled = true;
		w->on_settled(w->arg, o);
	}
}

void
upstream_set_level(struct upstream *u, enum mcp_level level)
{
	u->level = level;
	if (u->era != NULL)
		u->era->set_level(u);
}
