/* SPDX-License-Identifier: MIT */
/*
 * Instances of an upstream that belong to one client alone (isolation "session").
 *
 * Owns: each such instance, from the first use by its client to the client's end.
 * Driven by: calls and subscriptions (pick), clients that leave (release).
 * Invariants: the shared instance tells what there is (lists, names); a private one only
 * runs; it is never used by another client, and stops when its own has gone.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

struct instance {
	struct gateway *g;
	struct instance *next, **prev;
	struct upstream *shared, *u;
	struct gateway_observer *owner; /* NULL: it is on its way out */
};

static void
on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	(void)arg;
	(void)u;
	(void)kind;
	(void)changed;
}

static void
on_settled(void *arg, struct upstream *u)
{
	(void)arg;
	(void)u;
}

/* Whoever the message is for, it is this client. */
static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct instance *i = arg;

	gateway_deliver_log(u, m, i->owner, NULL);
}

static void
on_updated(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct instance *i = arg;

	subscription_on_updated(i->g, u, m);
}

static void
instance_free(void *arg)
{
	struct instance *i = arg;

	upstream_free(i->u);
	mem_free(i);
}

static void
on_stopped(void *arg, struct upstream *u)
{
	struct instance *i = arg;
	struct gateway *g = i->g;

	(void)u;
	*i->prev = i->next;
	if (i->next != NULL)
		i->next->prev = i->prev;
	g->n_instances--;
	/* Its own code is on the stack. */
	loop_defer_free(g->loop, instance_free, i);
	gateway_check_stopped(g);
}

static const struct upstream_cb instance_callbacks = {
    .on_list = on_list,
    .on_settled = on_settled,
    .on_log = on_log,
    .on_updated = on_updated,
    .on_stopped = on_stopped,
};

static enum mv_err
instance_new(struct gateway *g, struct upstream *shared, struct gateway_observer *owner,
    struct instance **out)
{
	struct instance *i;

	/* The end waits for all that run: one more would hold it for ever. */
	if (g->stopping)
		return MV_STOPPING;
	if (g->n_instances >= CAP_INSTANCES)
		return MV_BUSY;
	i = mem_xcalloc(1, sizeof(*i));
	i->g = g;
	i->shared = shared;
	i->owner = owner;
	i->u = upstream_new(
	    g->loop, g->spawner, upstream_conf_of(shared), &instance_callbacks, i);
	i->next = g->instances;
	if (i->next != NULL)
		i->next->prev = &i->next;
	i->prev = &g->instances;
	g->instances = i;
	g->n_instances++;
	owner->n_instances++;
	LOG_INFO("gateway", "instance for one client", "upstream=%s",
	    LOG_ESC(upstream_name(shared), strlen(upstream_name(shared))));
	upstream_set_level(i->u, owner->level);
	upstream_start(i->u);
	*out = i;
	return MV_OK;
}

enum mv_err
gateway_pick_instance(
    struct gateway *g, struct upstream **u, struct gateway_observer *owner)
{
	struct instance *i = g->instances;
	enum mv_err err;

	if (owner == NULL || !owner->has_instances ||
	    upstream_conf_of(*u)->isolation != ISOLATION_SESSION)
		return MV_OK;
	while (i != NULL && (i->shared != *u || i->owner != owner))
		i = i->next;
	if (i == NULL) {
		err = instance_new(g, *u, owner, &i);
		if (err != MV_OK)
			return err;
	}
	*u = i->u;
	return MV_OK;
}

static const struct child_ladder release_ladder = {
    .term_ms = 1000, .kill_ms = 1000, .drain_ms = 100};

void
gateway_release_instances(struct gateway *g, struct gateway_observer *owner)
{
	struct instance *next;

	for (struct instance *i = g->instances; i != NULL; i = next) {
		next = i->next;
		if (i->owner != owner)
			continue;
		i->owner = NULL;
		upstream_stop(i->u, &release_ladder);
	}
}

void
gateway_stop_instances(struct gateway *g, const struct child_ladder *ladder)
{
	struct instance *next;

	for (struct instance *i = g->instances; i != NULL; i = next) {
		next = i->next;
		i->owner = NULL;
		upstream_stop(i->u, ladder);
	}
}

void
gateway_set_instances_level(struct gateway *g, struct gateway_observer *owner)
{
	for (struct instance *i = g->instances; i != NULL; i = i->next)
		if (i->owner == owner)
			upstream_set_level(i->u, owner->level);
}

void
gateway_instances_fini(struct gateway *g)
{
	while (g->instances != NULL) {
		struct instance *i = g->instances;

		g->instances = i->next;
		instance_free(i);
	}
}
