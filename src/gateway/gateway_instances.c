/* SPDX-License-Identifier: MIT */
/*
 * Instances of an upstream beside the shared one: of one client alone (isolation
 * "session"), or of one call at a time (isolation "call").
 *
 * Owns: which of them serves whom.
 * Driven by: calls and subscriptions (pick), clients that leave (release), calls that
 * end. Invariants: the shared instance tells what there is (lists, names); the others
 * only run; one of a client is never used by another and stops when its own has gone; one
 * of a pool has at most one call, and stops when it has had none for a while.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <stdio.h>
#include <string.h>

#define POOL_IDLE_MS 60000

size_t
gateway_count_instances(const struct gateway *g, const struct upstream *u)
{
	size_t n = 0;

	for (const struct member *m = g->instances; m != NULL; m = m->next)
		n += m->shared == u;
	for (const struct member *m = g->leaving; m != NULL; m = m->next)
		n += m->shared == u;
	return n;
}

void
observer_put_principal(const struct gateway_observer *o, char out[PRINCIPAL_BYTES])
{
	(void)snprintf(out, PRINCIPAL_BYTES, "o%llu", (unsigned long long)o->serial);
}

bool
gateway_principal(
    const struct gateway *g, const struct upstream *u, char out[PRINCIPAL_BYTES])
{
	const struct member *m = gateway_member_of(g, u);

	if (m == NULL || !m->is_instance) {
		(void)snprintf(out, PRINCIPAL_BYTES, "%s", IDENTITY_SHARED);
		return true;
	}
	if (m->owner == NULL)
		return false;
	observer_put_principal(m->owner, out);
	return true;
}

void
gateway_count_identities(
    const struct gateway *g, const struct upstream *u, struct identity_counts *out)
{
	identity_gate_count(g->answers.identities, upstream_name(u), out);
}

size_t
gateway_in_flight(const struct gateway *g, const struct upstream *u)
{
	size_t n = upstream_in_flight(u);

	for (const struct member *m = g->instances; m != NULL; m = m->next)
		n += m->shared == u ? upstream_in_flight(m->u) : 0;
	for (const struct member *m = g->leaving; m != NULL; m = m->next)
		n += m->shared == u ? upstream_in_flight(m->u) : 0;
	return n;
}

/* What has been counted, and what is queued now; not what is of one process alone. */
static void
stats_add(struct upstream_stats *sum, const struct upstream_stats *s)
{
	sum->calls += s->calls;
	sum->returned += s->returned;
	sum->rpc_errors += s->rpc_errors;
	sum->tool_errors += s->tool_errors;
	for (unsigned i = 0; i < LABEL_REASON_MAX; i++)
		sum->labels[i] += s->labels[i];
	for (unsigned i = 0; i < ANSWER_MAX; i++)
		sum->answers[i] += s->answers[i];
	sum->failed += s->failed;
	sum->timeouts += s->timeouts;
	sum->busy += s->busy;
	sum->cancelled += s->cancelled;
	sum->noise_lines += s->noise_lines;
	sum->restarts += s->restarts;
	sum->held += s->held;
	sum->held_bytes += s->held_bytes;
	sum->out_bytes += s->out_bytes;
}

static void
stats_add_of(
    struct upstream_stats *sum, const struct member *list, const struct upstream *u)
{
	for (const struct member *m = list; m != NULL; m = m->next) {
		struct upstream_stats s;

		if (m->shared != u)
			continue;
		s = upstream_stats(m->u);
		stats_add(sum, &s);
	}
}

struct upstream_stats
gateway_stats(const struct gateway *g, const struct upstream *u)
{
	const struct member *m = gateway_find_member(g, u);
	struct upstream_stats sum = upstream_stats(u);

	if (m != NULL)
		stats_add(&sum, &m->past);
	stats_add_of(&sum, g->instances, u);
	stats_add_of(&sum, g->leaving, u);
	return sum;
}

void
instance_bequeath(const struct member *m)
{
	struct member *heir = gateway_find_member(m->g, m->shared);
	struct upstream_stats s = upstream_stats(m->u);

	s.held = 0;
	s.held_bytes = s.out_bytes = 0;
	if (heir != NULL)
		stats_add(&heir->past, &s);
}

/* It was told to give a call up, because its time was over or its client has: it may be
 * at it still. The next one would wait for that, and be asked what was not its own. */
static bool
instance_is_stuck(const struct member *m)
{
	return upstream_withdrawn_ms(m->u) != 0;
}

void
instance_on_idle(struct member *m)
{
	uint32_t ms = upstream_conf_of(m->u)->idle_stop_ms;

	if (m->owner != NULL)
		return;
	if (instance_is_stuck(m))
		member_leave(m, 0);
	else
		timer_set(&m->timer, ms != 0 ? ms : POOL_IDLE_MS);
}

/* caps: what it declares that its client can do. */
static enum mv_err
instance_new(struct gateway *g, struct upstream *shared, struct gateway_observer *owner,
    unsigned caps, struct member **out)
{
	const struct upstream_conf *conf = upstream_conf_of(shared);
	struct member *m;

	/* The end waits for all that run: one more would hold it for ever. */
	if (g->stopping)
		return MV_STOPPING;
	if (g->n_instances >= CAP_INSTANCES ||
	    gateway_count_instances(g, shared) >= conf->max_instances) {
		upstream_note_busy(shared);
		return MV_BUSY;
	}
	m = member_new(g, conf, shared);
	m->owner = owner;
	m->caps = caps;
	member_link(&g->instances, m);
	member_activate(m);
	g->n_instances++;
	if (owner != NULL)
		owner->n_instances++;
	LOG_INFO("gateway", "instance", "upstream=%s for=%s",
	    LOG_ESC(upstream_name(shared), strlen(upstream_name(shared))),
	    owner != NULL ? "one client" : "one call at a time");
	upstream_set_level(m->u, owner != NULL ? owner->level : gateway_level(g));
	if (owner != NULL && owner->has_stream)
		upstream_hold(m->u, true);
	member_declare(m);
	upstream_follow(m->u, shared);
	upstream_start(m->u);
	if (owner == NULL)
		instance_on_idle(m); /* its call may never come */
	*out = m;
	return MV_OK;
}

void
gateway_set_stream(struct gateway *g, struct gateway_observer *o, bool has)
{
	if (o->has_stream == has)
		return;
	o->has_stream = has;
	for (struct member *m = g->instances; m != NULL; m = m->next)
		if (m->owner == o)
			upstream_hold(m->u, has);
}

static enum mv_err
pick_for_client(struct gateway *g, struct upstream **u, struct gateway_observer *owner)
{
	struct member *m = g->instances;
	enum mv_err err = MV_OK;

	if (owner == NULL || !owner->has_instances)
		return MV_OK;
	while (m != NULL && (m->shared != *u || m->owner != owner))
		m = m->next;
	if (m == NULL)
		err = instance_new(g, *u, owner, owner->caps, &m);
	if (err == MV_OK)
		*u = m->u;
	return err;
}

static enum mv_err
pick_for_call(struct gateway *g, struct upstream **u, unsigned caps)
{
	struct member *found = NULL, *down = NULL;
	bool some_work = false;
	enum mv_err err = MV_OK;

	for (struct member *m = g->instances; m != NULL && found == NULL; m = m->next) {
		bool works;

		if (m->shared != *u || m->owner != NULL || m->caps != caps ||
		    m->n_unfinished > 0 || instance_is_stuck(m))
			continue;
		works = upstream_refusal(m->u) == MV_OK;
		some_work |= works;
		if (upstream_in_flight(m->u) == 0)
			*(works ? &found : &down) = m;
	}
	/* Where none works one more would not either: what ails the last one is the
	 * answer, not ever more of them. */
	if (found == NULL && !some_work)
		found = down;
	if (found == NULL)
		err = instance_new(g, *u, NULL, caps, &found);
	if (err == MV_OK)
		*u = found->u;
	return err;
}

enum mv_err
gateway_pick_instance(
    struct gateway *g, struct upstream **u, struct gateway_observer *owner, unsigned caps)
{
	const struct upstream_conf *conf = upstream_conf_of(*u);

	if (conf->broken != MV_OK)
		return MV_OK; /* the shared one says why */
	if (!g->opts.can_ask)
		caps = CLIENT_CAP_NONE;
	switch (conf->isolation) {
	case ISOLATION_AUTO:
		if (!gateway_needs_own(g, *u, caps))
			break;
		return owner != NULL && owner->has_instances
			   ? pick_for_client(g, u, owner)
			   : pick_for_call(g, u, caps);
	case ISOLATION_SHARED:
		break;
	case ISOLATION_SESSION:
		/* One of a crowd has no session; what may ask it may not be shared. */
		if ((owner == NULL || !owner->has_instances) && caps != CLIENT_CAP_NONE &&
		    upstream_may_ask_by_request(*u))
			return pick_for_call(g, u, caps);
		return pick_for_client(g, u, owner);
	case ISOLATION_CALL:
		return pick_for_call(g, u, caps);
	}
	return MV_OK;
}

enum mv_err
gateway_pick_watcher(
    struct gateway *g, struct upstream **u, struct gateway_observer *owner)
{
	enum isolation isolation = upstream_conf_of(*u)->isolation;

	/* What outlives a call cannot be an instance's that is for one. */
	if (isolation == ISOLATION_CALL || owner == NULL ||
	    (isolation == ISOLATION_AUTO && !owner->has_instances))
		return MV_OK;
	return gateway_pick_instance(g, u, owner, owner->caps);
}

static void
instances_release(struct member *list, struct gateway_observer *owner)
{
	struct member *next;

	for (struct member *m = list; m != NULL; m = next) {
		next = m->next;
		if (!m->is_instance || m->owner != owner)
			continue;
		m->owner = NULL;
		member_stop(m, NULL);
	}
}

void
gateway_release_instances(struct gateway *g, struct gateway_observer *owner)
{
	instances_release(g->leaving, owner); /* first: the others become such */
	instances_release(g->instances, owner);
}
