/* SPDX-License-Identifier: MIT */
/*
 * Which kind of server an upstream is, and what is asked of that from above: to start, to
 * stop, to go by another conf.
 *
 * Owns: nothing.
 * Driven by: upstream_new; the gateway.
 * Invariants: the kind is set once and for all, and NULL where there is nothing to start;
 * a conf that takes the place of another names the same server.
 */
#include "upstream_priv.h"

void
upstream_kind_init(struct upstream *u, const struct upstream_env *env)
{
	static const struct kind_ops *const kinds[] = {
	    [KIND_STDIO] = &kind_stdio,
	    [KIND_HTTP] = &kind_http,
	    [KIND_GRAPHQL] = &kind_graphql,
	    [KIND_EXEC] = &kind_exec,
	    [KIND_SHELL] = &kind_shell,
	};

	u->kind = kinds[u->conf->kind];
	u->kind->init(u, env);
}

struct backoff_opts
upstream_backoff_opts(const struct upstream_conf *c)
{
	return (struct backoff_opts){.base_ms = c->restart_base_ms,
	    .max_ms = c->restart_max_ms,
	    .stable_ms = c->stable_ms,
	    .budget = c->restart_limit};
}

bool
upstream_is_remote(const struct upstream *u)
{
	return u->kind != NULL && u->kind->is_remote;
}

bool
upstream_tells_calls(const struct upstream *u)
{
	return upstream_is_remote(u) && u->kind->tells_calls(u);
}

void
upstream_look_again(struct upstream *u)
{
	if (u->kind != NULL && u->kind->look_again != NULL)
		u->kind->look_again(u);
}

void
upstream_set_conf(struct upstream *u, const struct upstream_conf *conf)
{
	bool eager = u->conf->start == START_ON_USE && conf->start == START_EAGER;

	u->conf = conf;
	if (u->kind == NULL)
		return;
	u->kind->set_conf(u);
	upstream_calls_look(u);
	timer_clear(&u->idle_timer);
	upstream_idle_arm(u);
	if (eager && u->state == UPSTREAM_ST_ASLEEP)
		upstream_wake(u);
}

void
upstream_start(struct upstream *u)
{
	if (u->kind == NULL) {
		upstream_set_reason(u, "%s", u->conf->broken_text);
		upstream_event(u, UPSTREAM_EV_PARK);
		return;
	}
	if (u->conf->start == START_ON_USE && u->kind->is_resting(u) &&
	    u->state == UPSTREAM_ST_DOWN && upstream_lists_are_known(u))
		upstream_event(u, UPSTREAM_EV_SLEEP);
	else if (u->state == UPSTREAM_ST_DOWN || u->state == UPSTREAM_ST_PARKED)
		u->kind->start(u);
}

void
upstream_wake(struct upstream *u)
{
	if (u->stopping)
		return;
	if (u->kind == NULL) {
		upstream_start(u); /* says why it cannot run */
		return;
	}
	upstream_event(u, UPSTREAM_EV_WAKE);
	upstream_note_use(u);
}

void
upstream_restart(struct upstream *u, const char *reason)
{
	if (u->stopping || u->kind == NULL)
		return;
	u->restart_why = reason;
	upstream_event(u, UPSTREAM_EV_RESTART);
	u->restart_why = NULL;
}

void
upstream_stop(struct upstream *u, const struct child_ladder *ladder)
{
	static const struct outcome over = {.kind = OUTCOME_FAILED, .err = MV_STOPPING};

	if (!u->stopping)
		upstream_memory_flush(u);
	u->stopping = true;
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	timer_clear(&u->idle_timer);
	upstream_lists_stop(u);
	upstream_questions_drop(u);
	upstream_fail_all(u, MV_STOPPING, NULL);
	upstream_refuse_watches(u, &over);
	if (u->kind == NULL) {
		u->cb->on_stopped(u->arg, u);
		return;
	}
	u->stop_ladder = *ladder;
	u->kind->set_ladder(u, ladder);
	u->kind->stop(u);
}
