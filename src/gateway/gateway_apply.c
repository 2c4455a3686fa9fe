/* SPDX-License-Identifier: MIT */
/*
 * One fleet in place of another, while clients go on.
 *
 * Owns: nothing beyond one call.
 * Driven by: a reload (gateway_apply), an operator (gateway_restart).
 * Invariants: what is seen changes at once, from the old fleet to the new; whatever
 * pointed to an upstream that leaves points to its successor, or to nothing, before
 * control returns to the loop, but for calls in flight, which it outlives.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* The fleet that is to come. */
struct plan {
	struct member **m;
	struct upstream **v;
	size_t n;
};

static void
plan_init(struct plan *p, size_t n)
{
	p->n = n;
	p->m = mem_xcalloc(n + 1, sizeof(struct member *));
	p->v = mem_xcalloc(n + 1, sizeof(struct upstream *));
}

static void
plan_keep(struct plan *p, size_t i, struct member *m)
{
	m->is_kept = true;
	p->m[i] = m;
	p->v[i] = m->u;
}

/* What old knew serves until the new one knows better. */
static void
member_inherit(struct member *m, const struct member *old)
{
	struct buf b;
	enum mv_err err = MV_OK;

	if (upstream_is_settled(m->u))
		return; /* it has its own, from the disk */
	buf_init(&b, CAP_MEMORY_BYTES);
	upstream_put_memory(old->u, &b);
	if (b.err == MV_OK && b.len > 0) {
		err = upstream_take_memory(m->u, b.data, b.len);
		m->is_heir = err == MV_OK;
	}
	if (b.err != MV_OK || err != MV_OK)
		LOG_INFO("gateway", "lists are not taken over", "upstream=%s reason=%s",
		    LOG_ESC(upstream_name(m->u), strlen(upstream_name(m->u))),
		    mv_err_text(b.err != MV_OK ? b.err : err));
	buf_fini(&b);
}

/* A new member at place i, in the stead of old if that is not NULL. */
static void
plan_replace(struct gateway *g, struct plan *p, size_t i, struct member *old,
    const struct upstream_conf *conf)
{
	struct member *m = member_new(g, conf, NULL);

	if (g->opts.on_made != NULL)
		g->opts.on_made(g->opts.arg, m->u);
	if (old != NULL) {
		if (upstream_asks(old->u))
			upstream_note_asks(m->u);
		old->successor = m;
		member_inherit(m, old);
	}
	plan_keep(p, i, m);
}

/* The instances of one that leaves go with it. */
static void
member_take_along(struct member *m, uint32_t drain_ms)
{
	struct gateway *g = m->g;
	struct member *next;

	for (struct member *x = g->leaving; x != NULL; x = x->next)
		if (x->shared == m->u)
			x->shared = NULL;
	for (struct member *x = g->instances; x != NULL; x = next) {
		next = x->next;
		if (x->shared != m->u)
			continue;
		x->shared = NULL;
		x->successor = m->successor;
		member_leave(x, drain_ms);
	}
}

/* Puts the plan in force, and empties it. */
static void
gateway_switch(struct gateway *g, struct plan *p, uint32_t drain_ms)
{
	struct plan old = {.m = g->m, .v = g->v, .n = g->n};
	struct catalog_opts co;

	g->m = p->m;
	g->v = p->v;
	g->n = p->n;
	for (size_t i = 0; i < g->n; i++)
		member_activate(g->m[i]);
	co = gateway_catalog_opts(g);
	catalog_set(g->catalog, &co);
	for (size_t i = 0; i < old.n; i++) {
		if (old.m[i]->is_kept)
			continue;
		member_take_along(old.m[i], drain_ms);
		member_leave(old.m[i], drain_ms);
	}
	mem_free(old.m);
	mem_free(old.v);
	gateway_uris_follow(g);
	subscriptions_leave(g);
	for (struct member *m = g->leaving; m != NULL; m = m->next)
		m->successor = NULL;
}

/* One whose lists are only inherited may not sleep on them: its own would never come. */
static void
member_launch(struct member *m, bool wake)
{
	m->is_started = true;
	member_declare(m);
	if (wake || m->is_heir)
		upstream_wake(m->u);
	else
		upstream_start(m->u);
}

/* Sets those going that the plan made, and tells who waits or listens. */
static void
gateway_launch(struct gateway *g, bool wake)
{
	enum mcp_level level = gateway_level(g);

	for (size_t i = 0; i < g->n; i++) {
		if (g->m[i]->is_started || !g->started)
			continue;
		upstream_set_level(g->v[i], level);
		member_launch(g->m[i], wake);
	}
	gateway_check_settled(g);
	for (unsigned k = 0; k < LIST_MAX; k++)
		gateway_changed(g, (enum list_kind)k);
	gateway_check_released(g);
}

static void
member_adopt(struct member *m, const struct upstream_conf *conf)
{
	struct gateway *g = m->g;

	upstream_set_conf(m->u, conf);
	m->epoch = g->epoch;
	for (struct member *x = g->instances; x != NULL; x = x->next) {
		if (x->shared != m->u)
			continue;
		upstream_set_conf(x->u, conf);
		x->epoch = g->epoch;
	}
}

void
gateway_apply(struct gateway *g, const struct gateway_apply_opts *ao)
{
	const struct gateway_opts *o = &ao->fleet;
	struct plan p;

	if (g->stopping)
		return;
	identity_gate_forget(g->answers.identities, NULL, NULL);
	plan_init(&p, o->n);
	g->epoch++;
	g->opts.name_bytes = o->name_bytes;
	for (size_t i = 0; i < g->n; i++)
		g->m[i]->is_kept = false;
	for (size_t i = 0; i < o->n; i++) {
		struct upstream *u = gateway_find_upstream(g, o->confs[i]->name);
		struct member *m = u != NULL ? gateway_find_member(g, u) : NULL;

		if (m != NULL &&
		    upstream_conf_is_same_process(upstream_conf_of(u), o->confs[i])) {
			plan_keep(&p, i, m);
			member_adopt(m, o->confs[i]);
		} else {
			plan_replace(g, &p, i, m, o->confs[i]);
		}
	}
	gateway_views_set(g, o);
	gateway_switch(g, &p, ao->drain_ms);
	gateway_launch(g, false);
}

void
gateway_restart(struct gateway *g, struct upstream *u, uint32_t drain_ms)
{
	struct member *old = gateway_find_member(g, u);
	struct plan p;

	if (g->stopping || old == NULL)
		return;
	LOG_NOTICE("gateway", "restart", "upstream=%s",
	    LOG_ESC(upstream_name(u), strlen(upstream_name(u))));
	plan_init(&p, g->n);
	old->is_kept = false;
	for (size_t i = 0; i < g->n; i++) {
		if (g->m[i] == old)
			plan_replace(g, &p, i, old, upstream_conf_of(u));
		else
			plan_keep(&p, i, g->m[i]);
	}
	gateway_switch(g, &p, drain_ms);
	gateway_launch(g, true);
}
