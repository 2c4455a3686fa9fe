/* SPDX-License-Identifier: MIT */
/*
 * The upstreams of a gateway from their making to their end.
 *
 *   NEW --> ACTIVE --leave--> DRAINING --idle or deadline--> STOPPING --> STOPPED
 *              |                 |                              ^
 *              +-----------------+------------ stop ------------+
 *
 * Owns: every struct member, and with it the upstream.
 * Driven by: the upstreams' callbacks, a timer each, apply, stop, clients that leave.
 * Invariants: only an active one changes what clients see; a shared one that stops in its
 * place stays there until the gateway ends; any other one is freed in a turn of its own,
 * after its last call has ended, and then alone its conf may go.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"
#include "gateway_tasks_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

/* From the exit of a process to giving up on its output. */
#define OUTPUT_MS 1000

static const char *const state_names[] = {
#define X(id, name) [MEMBER_ST_##id] = name,
    MEMBER_STATES(X)
#undef X
};

static void
member_set_state(struct member *m, enum member_state next)
{
	LOG_DEBUG("gateway", "member", "upstream=%s from=%s to=%s",
	    LOG_ESC(upstream_name(m->u), strlen(upstream_name(m->u))),
	    state_names[m->state], state_names[next]);
	m->state = next;
}

void
member_link(struct member **list, struct member *m)
{
	m->next = *list;
	if (m->next != NULL)
		m->next->prev = &m->next;
	m->prev = list;
	*list = m;
}

static void
member_unlink(struct member *m)
{
	if (m->prev == NULL)
		return;
	*m->prev = m->next;
	if (m->next != NULL)
		m->next->prev = m->prev;
	m->prev = NULL;
}

static bool
member_is_public(const struct member *m)
{
	return m->state == MEMBER_ST_ACTIVE && !m->is_instance;
}

/* ---- what upstreams report ---- */

static void
on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	struct member *m = arg;
	char principal[PRINCIPAL_BYTES];

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (changed && kind == LIST_TOOLS && gateway_principal(m->g, u, principal))
		identity_gate_drop(m->g->answers.identities, principal, upstream_name(u));
	if (changed && member_is_public(m))
		gateway_changed(m->g, kind);
}

static void
on_settled(void *arg, struct upstream *u)
{
	struct member *m = arg;
	enum upstream_state st = upstream_state(u);

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (!member_is_public(m))
		return;
	if (st != UPSTREAM_ST_READY && st != UPSTREAM_ST_ASLEEP)
		LOG_WARNING("gateway", "upstream is not available",
		    "upstream=%s reason=%s",
		    LOG_ESC(upstream_name(u), strlen(upstream_name(u))),
		    LOG_ESC(upstream_reason(u), strlen(upstream_reason(u))));
	gateway_check_settled(m->g);
}

static void
on_log(void *arg, struct upstream *u, const struct link_msg *msg)
{
	struct member *m = arg;
	struct gateway_observer *o;

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (!task_owner_by_meta(m, msg->base, msg->json, &o))
		gateway_deliver_log(m, msg);
	else if (o != NULL)
		o->on_log(o->arg, u, msg);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

static void
on_updated(void *arg, struct upstream *u, const struct link_msg *msg)
{
	struct member *m = arg;

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (m->state == MEMBER_ST_ACTIVE)
		subscription_on_updated(m->g, u, msg);
}

static void
on_memory(void *arg, struct upstream *u)
{
	struct member *m = arg;
	const struct gateway_opts *o = &m->g->opts;

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	/* Also of one that stops in its place: what it has learnt last it tells then. */
	if (!m->is_instance && m->prev == NULL && o->on_memory != NULL)
		o->on_memory(o->arg, u);
}

static void
on_idle(void *arg, struct upstream *u)
{
	struct member *m = arg;

	(void)u;
	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (m->n_unfinished > 0)
		return; /* that is its work too */
	if (m->state == MEMBER_ST_DRAINING)
		member_stop(m, NULL);
	else if (m->state == MEMBER_ST_ACTIVE && m->is_instance)
		instance_on_idle(m);
}

static void
on_stopped(void *arg, struct upstream *u)
{
	struct member *m = arg;
	struct gateway *g = m->g;

	(void)u;
	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (m->state != MEMBER_ST_STOPPING)
		return;
	member_set_state(m, MEMBER_ST_STOPPED);
	tasks_forget(m);
	if (m->prev != NULL) {
		if (m->shared != NULL)
			instance_bequeath(m);
		/* Its own code is on the stack. */
		member_unlink(m);
		member_link(&g->gone, m);
		deferred_ask(&g->reap);
	} else {
		g->n_stopped++;
	}
	gateway_check_stopped(g);
}

static void
on_question(void *arg, struct upstream *u, struct upstream_req *by, struct question *q)
{
	struct member *m = arg;

	(void)u;
	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	gateway_on_question(m, by, q);
}

static void
on_elicited(void *arg, struct upstream *u, const struct link_msg *msg)
{
	struct member *m = arg;

	(void)u;
	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	gateway_on_elicited(m, msg);
}

static void
on_task(void *arg, struct upstream *u, const struct link_msg *msg)
{
	struct member *m = arg;

	(void)u;
	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	gateway_on_task(m, msg);
}

static const struct upstream_cb member_callbacks = {
    .on_list = on_list,
    .on_settled = on_settled,
    .on_log = on_log,
    .on_updated = on_updated,
    .on_stopped = on_stopped,
    .on_memory = on_memory,
    .on_idle = on_idle,
    .on_question = on_question,
    .on_elicited = on_elicited,
    .on_task = on_task,
};

/* ---- life ---- */

static void
on_timer(void *arg)
{
	struct member *m = arg;

	MCPVISOR_ASSERT(m->magic == MEMBER_MAGIC);
	if (m->state == MEMBER_ST_DRAINING)
		member_stop(m, NULL);
	else if (m->state == MEMBER_ST_ACTIVE && upstream_in_flight(m->u) == 0 &&
		 m->n_unfinished == 0)
		member_leave(m, 0);
}

struct member *
member_new(struct gateway *g, const struct upstream_conf *conf, struct upstream *shared)
{
	struct member *m = mem_xcalloc(1, sizeof(*m));

	m->magic = MEMBER_MAGIC;
	m->g = g;
	m->epoch = g->epoch;
	m->serial = ++g->last_serial;
	m->is_instance = shared != NULL;
	m->shared = shared;
	timer_init(&m->timer, g->loop, on_timer, m);
	m->u = upstream_new(&g->env, conf, &member_callbacks, m);
	return m;
}

void
member_activate(struct member *m)
{
	if (m->state == MEMBER_ST_NEW)
		member_set_state(m, MEMBER_ST_ACTIVE);
}

static void
member_free(struct member *m)
{
	timer_fini(&m->timer);
	upstream_free(m->u);
	m->g->n_instances -= m->is_instance;
	m->magic = 0;
	mem_free(m);
}

void
member_leave(struct member *m, uint32_t drain_ms)
{
	if (m->state != MEMBER_ST_ACTIVE)
		return;
	member_unlink(m);
	member_link(&m->g->leaving, m);
	member_set_state(m, MEMBER_ST_DRAINING);
	/* Never from here: whoever makes it leave has not tidied up yet. */
	timer_set(&m->timer,
	    upstream_in_flight(m->u) > 0 || m->n_unfinished > 0 ? drain_ms : 0);
}

void
member_keep(struct member *m)
{
	m->n_unfinished++;
	upstream_hold(m->u, true);
}

void
member_let_go(struct member *m)
{
	upstream_hold(m->u, false);
	if (--m->n_unfinished > 0 || upstream_in_flight(m->u) > 0)
		return;
	if (m->state == MEMBER_ST_DRAINING)
		timer_set(&m->timer, 0);
	else if (m->state == MEMBER_ST_ACTIVE && m->is_instance)
		instance_on_idle(m);
}

void
member_stop(struct member *m, const struct child_ladder *ladder)
{
	const struct upstream_conf *conf = upstream_conf_of(m->u);
	struct child_ladder own = {
	    .term_ms = conf->term_ms, .kill_ms = conf->kill_ms, .drain_ms = OUTPUT_MS};

	if (m->state == MEMBER_ST_STOPPED)
		return;
	timer_clear(&m->timer);
	if (m->is_instance && m->state == MEMBER_ST_ACTIVE) {
		member_unlink(m);
		member_link(&m->g->leaving, m);
	}
	if (m->state != MEMBER_ST_STOPPING)
		member_set_state(m, MEMBER_ST_STOPPING);
	upstream_stop(m->u, ladder != NULL ? ladder : &own);
}

struct member *
gateway_find_member(const struct gateway *g, const struct upstream *u)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i] == u)
			return g->m[i];
	return NULL;
}

static struct member *
members_find(struct member *list, const struct upstream *u)
{
	while (list != NULL && list->u != u)
		list = list->next;
	return list;
}

struct member *
gateway_find_leaving(const struct gateway *g, const struct upstream *u)
{
	return members_find(g->leaving, u);
}

struct member *
gateway_member_of(const struct gateway *g, const struct upstream *u)
{
	struct member *m = gateway_find_member(g, u);

	if (m == NULL)
		m = members_find(g->instances, u);
	return m != NULL ? m : members_find(g->leaving, u);
}

void
gateway_keep_instance(
    struct gateway *g, const struct upstream *u, uint64_t serial, bool keep)
{
	struct member *m = gateway_member_of(g, u);

	if (m == NULL || m->serial != serial)
		return;
	if (keep)
		member_keep(m);
	else
		member_let_go(m);
}

uint64_t
gateway_serial(const struct gateway *g, const struct upstream *u)
{
	const struct member *m = gateway_member_of(g, u);

	return m != NULL ? m->serial : 0;
}

/* ---- what is let go of ---- */

static bool
members_hold(const struct member *list, unsigned epoch)
{
	for (const struct member *m = list; m != NULL; m = m->next)
		if (m->epoch <= epoch)
			return true;
	return false;
}

void
gateway_check_released(struct gateway *g)
{
	while (g->released < g->epoch && !members_hold(g->instances, g->released) &&
	       !members_hold(g->leaving, g->released) &&
	       !members_hold(g->gone, g->released)) {
		g->released++;
		if (g->opts.on_released != NULL)
			g->opts.on_released(g->opts.arg);
	}
}

static void
members_free(struct member **list)
{
	while (*list != NULL) {
		struct member *m = *list;

		member_unlink(m);
		member_free(m);
	}
}

static void
on_reap(void *arg)
{
	struct gateway *g = arg;

	members_free(&g->gone);
	gateway_check_released(g);
}

void
members_init(struct gateway *g)
{
	deferred_init(&g->reap, g->loop, on_reap, g);
}

void
members_fini(struct gateway *g)
{
	deferred_cancel(&g->reap);
	members_free(&g->instances);
	members_free(&g->leaving);
	members_free(&g->gone);
	for (size_t i = 0; i < g->n; i++)
		member_free(g->m[i]);
	mem_free(g->m);
	mem_free(g->v);
}
