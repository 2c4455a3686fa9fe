/* SPDX-License-Identifier: MIT */
/*
 * The life of an upstream: process up, era found, ready, asleep, gone, again.
 *
 *   DOWN --up--> PROBE --timer--> BOTH ----> READY --down--> DOWN
 *     |            |  refused        |         |  idle
 *     +--> INIT <--+                 +--> LATE +--> ASLEEP --use--> WAKING --up--> PROBE
 *                                    +--> AGREED
 *
 * Owns: the child, the link, the lists and every request in flight.
 * Driven by: callbacks of child and link, its timers, and the gateway.
 * Invariants: link is set exactly while a process runs and its output is open; era
 * is set exactly in READY; calls are held from WAKING on; upstream_set_state is the
 * only writer of state.
 */
#include "mcpvisor/upstream.h"

#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The answer to initialize follows that to discover, or does not come at all. */
#define AGREE_MS 1000

static const char *const state_names[] = {
#define X(id, name) [UPSTREAM_ST_##id] = name,
    UPSTREAM_STATES(X)
#undef X
};

static const char *const event_names[] = {
#define X(id, name) [UPSTREAM_EV_##id] = name,
    UPSTREAM_EVENTS(X)
#undef X
};

const char *
upstream_state_text(enum upstream_state st)
{
	return state_names[st];
}

void
upstream_set_reason(struct upstream *u, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(u->reason, sizeof(u->reason), fmt, ap);
	va_end(ap);
	u->told[0] = '\0';
}

void
upstream_set_told(struct upstream *u, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(u->told, sizeof(u->told), fmt, ap);
	va_end(ap);
}

void
upstream_settle(struct upstream *u)
{
	if (u->settled)
		return;
	u->settled = true;
	u->cb->on_settled(u->arg, u);
}

static void
upstream_set_state(struct upstream *u, enum upstream_state next, const char *reason)
{
	if (u->state == next)
		return;
	LOG_DEBUG("upstream", "state", "upstream=%s from=%s to=%s reason=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)), state_names[u->state],
	    state_names[next], reason);
	u->state = next;
	u->since_ms = clock_now_ms();
}

/* The conversation with this process is over. */
static void
upstream_hang_up(struct upstream *u)
{
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	timer_clear(&u->mute_timer);
	timer_clear(&u->idle_timer);
	upstream_lists_stop(u);
	upstream_questions_drop(u);
	if (u->era != NULL)
		u->era->on_down(u);
	u->era = NULL;
	u->init_waits = false;
	upstream_forget(&u->discover);
	upstream_forget(&u->init);
}

/* Handlers of the table. Each ends by at most one upstream_set_state. */

static void
st_up(struct upstream *u)
{
	u->probe_retried = false;
	timer_set(&u->start_timer, u->conf->start_ms);
	if (u->known_era == ERA_LEGACY || u->skip_probe) {
		upstream_send_initialize(u);
		upstream_set_state(u, UPSTREAM_ST_INIT, "up");
		return;
	}
	upstream_send_discover(u);
	/* What was learnt in an earlier life may be out of date. */
	if (u->known_era != ERA_MODERN || (u->recalled_era && u->conf->era == ERA_AUTO))
		timer_set(&u->probe_timer, u->conf->probe_ms);
	upstream_set_state(u, UPSTREAM_ST_PROBE, "up");
}

static void
st_ready(struct upstream *u, const struct era_ops *era, enum era_pin learnt)
{
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	(void)upstream_drop(&u->discover);
	u->init_waits = false;
	u->era = era;
	u->known_era = learnt;
	u->skip_probe = u->excused = u->recalled_era = false;
	u->has_memory = true;
	u->reason[0] = '\0';
	upstream_set_state(u, UPSTREAM_ST_READY, era->name);
	u->kind->note_ready(u);
	LOG_NOTICE("upstream", "ready", "upstream=%s era=%s revision=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)), era->name,
	    revision_text(u->revision));
	era->on_ready(u);
	if (u->kind->on_ready != NULL)
		u->kind->on_ready(u);
	upstream_lists_start(u);
	upstream_send_held(u);
	upstream_note_use(u);
}

static void
st_modern(struct upstream *u)
{
	(void)upstream_drop(&u->init);
	st_ready(u, &era_modern, ERA_MODERN);
}

/* Both are on their way to one process, and its answer to initialize comes next. If it
 * takes that as well, it is legacy from then on: servers of both eras settle on one. */
static void
st_agree(struct upstream *u)
{
	if (u->kind->is_remote || u->init_waits || u->conf->era == ERA_MODERN) {
		st_modern(u);
		return;
	}
	upstream_forget(&u->discover);
	u->known_era = ERA_MODERN; /* if it dies of initialize, the next is spared that */
	timer_set(&u->probe_timer, AGREE_MS);
	upstream_set_state(u, UPSTREAM_ST_AGREED, "discover_ok");
}

static void
st_legacy(struct upstream *u)
{
	st_ready(u, &era_legacy, ERA_LEGACY);
}

void
upstream_give_up(struct upstream *u, const char *why)
{
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	upstream_forget(&u->discover);
	upstream_forget(&u->init);
	u->kind->fail(u, why);
}

static void
st_initialize(struct upstream *u)
{
	timer_clear(&u->probe_timer);
	if (u->conf->era == ERA_MODERN) {
		upstream_set_reason(u, "era is pinned to modern, but the server refused "
				       "server/discover");
		upstream_give_up(u, "not modern");
		return;
	}
	upstream_send_initialize(u);
	upstream_set_state(u, UPSTREAM_ST_INIT, "discover_refused");
}

static void
st_both(struct upstream *u)
{
	upstream_send_initialize(u);
	upstream_set_state(u, UPSTREAM_ST_BOTH, "probe_silent");
}

static void
st_init_alone(struct upstream *u)
{
	upstream_set_state(u, UPSTREAM_ST_INIT, "discover_refused");
}

static void
st_late(struct upstream *u)
{
	upstream_set_state(u, UPSTREAM_ST_LATE, "initialize_refused");
}

static void
st_fail(struct upstream *u)
{
	/* What was learnt may be what is wrong now: look again next time. */
	u->known_era = u->conf->era;
	upstream_give_up(u, "handshake failed");
}

/* What an earlier life of ours learnt is out of date, or the one before did not die of
 * the probe after all: this process can still be asked. */
static void
st_init_bad(struct upstream *u)
{
	if (u->conf->era != ERA_AUTO || (!u->recalled_era && !u->skip_probe)) {
		st_fail(u);
		return;
	}
	u->recalled_era = u->skip_probe = false;
	u->known_era = ERA_AUTO;
	u->reason[0] = '\0';
	upstream_send_discover(u);
	timer_set(&u->probe_timer, u->conf->probe_ms);
	upstream_set_state(u, UPSTREAM_ST_PROBE, "initialize_refused");
}

static void
st_slow(struct upstream *u)
{
	/* A reason that is already known says more than the time limit. */
	if (u->reason[0] == '\0')
		upstream_set_reason(
		    u, "not ready within %u ms of its start", u->conf->start_ms);
	st_fail(u);
}

static void
st_down(struct upstream *u)
{
	const struct child_end *end = u->kind->last_end(u);

	upstream_hang_up(u);
	upstream_set_state(u, UPSTREAM_ST_DOWN, "down");
	if (u->reason[0] == '\0' && end->err != MV_OK)
		upstream_set_end_reason(u, end);
	upstream_fail_all(u, end->err == MV_OK ? MV_DIED : end->err, upstream_told(u));
}

/* There was no process to ask anything: the reason is its end, and none from before. */
static void
st_no_start(struct upstream *u)
{
	u->reason[0] = '\0';
	st_down(u);
}

/* The next process is spared the probe. Calls that wait were never sent: they wait on. */
static void
st_excused(struct upstream *u)
{
	upstream_hang_up(u);
	upstream_set_state(u, UPSTREAM_ST_WAKING, "excused");
}

/* The process that we had sent away is gone; what comes next is decided already. */
static void
st_gone(struct upstream *u)
{
	timer_clear(&u->mute_timer);
}

static void
st_sleep(struct upstream *u)
{
	upstream_hang_up(u);
	upstream_lists_go_stale(u);
	upstream_set_reason(u, "asleep until it is used");
	upstream_set_state(u, UPSTREAM_ST_ASLEEP, "unused");
	LOG_NOTICE("upstream", "asleep", "upstream=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)));
	u->kind->stop(u);
	upstream_settle(u);
}

static void
st_wake(struct upstream *u)
{
	u->reason[0] = '\0';
	upstream_set_state(u, UPSTREAM_ST_WAKING, "used");
	u->kind->start(u);
}

static void
st_start(struct upstream *u)
{
	u->kind->start(u);
}

static void
st_restart(struct upstream *u)
{
	const char *why = u->restart_why;

	upstream_hang_up(u);
	upstream_set_reason(u, "restarts: %s", why);
	upstream_set_state(u, UPSTREAM_ST_WAKING, "restart");
	u->kind->restart(u, why);
	/* Those that were never sent wait on. */
	upstream_fail_flying(u, MV_DIED, why);
}

/* Forgotten before it was of any use. */
static void
st_init_lost(struct upstream *u)
{
	upstream_set_reason(u, "loses its session at once");
	st_fail(u);
}

/* It is there, but has forgotten what we had agreed on: what flies goes on. */
static void
st_renew(struct upstream *u)
{
	upstream_questions_drop(u);
	upstream_drop_own(u);
	upstream_lists_stop(u);
	u->era->on_down(u);
	u->era = NULL;
	timer_set(&u->start_timer, u->conf->start_ms);
	upstream_send_initialize(u);
	upstream_set_state(u, UPSTREAM_ST_INIT, "session_lost");
}

static void
st_park(struct upstream *u)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .detail = upstream_told(u)};

	u->park_err =
	    u->kind != NULL && u->kind->last_end(u)->err == MV_AUTH ? MV_AUTH : MV_PARKED;
	o.err = u->park_err;
	upstream_set_state(u, UPSTREAM_ST_PARKED, "parked");
	LOG_ERROR("upstream", "parked", "upstream=%s reason=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)),
	    LOG_ESC(u->reason, strlen(u->reason)));
	upstream_refuse_watches(u, &o);
	upstream_settle(u);
}

static void
st_ignore(struct upstream *u)
{
	(void)u;
}

static void
st_bug(struct upstream *u)
{
	LOG_ERROR("upstream", "impossible event", "state=%s", state_names[u->state]);
	MCPVISOR_ASSERT(false); /* an event that cannot be in this state */
}

/* clang-format off */
static void (*const table[UPSTREAM_ST_MAX][UPSTREAM_EV_MAX])(struct upstream *) = {
#define ROW(up, d_ok, d_leg, d_bad, i_ok, i_bad, renew, probe, start, down, gone, excused, park, sleep, wake, restart) \
	{[UPSTREAM_EV_UP] = st_##up, [UPSTREAM_EV_DISCOVER_OK] = st_##d_ok,              \
	 [UPSTREAM_EV_DISCOVER_LEGACY] = st_##d_leg, [UPSTREAM_EV_DISCOVER_BAD] = st_##d_bad, \
	 [UPSTREAM_EV_INIT_OK] = st_##i_ok, [UPSTREAM_EV_INIT_BAD] = st_##i_bad,         \
	 [UPSTREAM_EV_RENEW] = st_##renew,                                               \
	 [UPSTREAM_EV_PROBE_TIMER] = st_##probe, [UPSTREAM_EV_START_TIMER] = st_##start, \
	 [UPSTREAM_EV_DOWN] = st_##down, [UPSTREAM_EV_GONE] = st_##gone,                 \
	 [UPSTREAM_EV_EXCUSED] = st_##excused,                                           \
	 [UPSTREAM_EV_PARK] = st_##park, [UPSTREAM_EV_SLEEP] = st_##sleep,               \
	 [UPSTREAM_EV_WAKE] = st_##wake, [UPSTREAM_EV_RESTART] = st_##restart}
	/*                         up   d_ok    d_legacy    d_bad     i_ok    i_bad     renew      probe  start  down      gone    excused  park    sleep  wake    restart */
	[UPSTREAM_ST_DOWN]   = ROW(up,  bug,    bug,        bug,      bug,    bug,      bug,       bug,   bug,   no_start, bug,    bug,     park,   sleep, start,  start),
	[UPSTREAM_ST_PROBE]  = ROW(bug, modern, initialize, fail,     bug,    bug,      bug,       both,  slow,  down,     down,   excused, bug,    bug,   ignore, restart),
	[UPSTREAM_ST_BOTH]   = ROW(bug, agree,  init_alone, fail,     legacy, late,     init_lost, bug,   slow,  down,     down,   excused, bug,    bug,   ignore, restart),
	[UPSTREAM_ST_INIT]   = ROW(bug, bug,    bug,        bug,      legacy, init_bad, init_lost, bug,   slow,  down,     down,   bug,     bug,    bug,   ignore, restart),
	[UPSTREAM_ST_LATE]   = ROW(bug, modern, fail,       fail,     bug,    bug,      bug,       bug,   slow,  down,     down,   bug,     bug,    bug,   ignore, restart),
	[UPSTREAM_ST_AGREED] = ROW(bug, bug,    bug,        bug,      legacy, modern,   bug,       modern, slow, down,     down,   bug,     bug,    bug,   ignore, restart),
	[UPSTREAM_ST_READY]  = ROW(bug, bug,    bug,        bug,      ignore, ignore,   renew,     bug,   bug,   down,     down,   bug,     bug,    sleep, ignore, restart),
	[UPSTREAM_ST_ASLEEP] = ROW(bug, bug,    bug,        bug,      bug,    bug,      bug,       bug,   bug,   gone,     gone,   bug,     bug,    bug,   wake,   wake),
	[UPSTREAM_ST_WAKING] = ROW(up,  bug,    bug,        bug,      bug,    bug,      bug,       bug,   bug,   no_start, gone,   bug,     bug,    bug,   ignore, ignore),
	[UPSTREAM_ST_PARKED] = ROW(up,  bug,    bug,        bug,      bug,    bug,      bug,       bug,   bug,   no_start, bug,    bug,     ignore, bug,   start,  start),
#undef ROW
};
/* clang-format on */

void
upstream_event(struct upstream *u, enum upstream_event ev)
{
	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	LOG_DEBUG("upstream", "event", "upstream=%s state=%s event=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)), state_names[u->state],
	    event_names[ev]);
	table[u->state][ev](u);
}

static void
on_probe_timer(void *arg)
{
	upstream_event(arg, UPSTREAM_EV_PROBE_TIMER);
}

static void
on_start_timer(void *arg)
{
	upstream_event(arg, UPSTREAM_EV_START_TIMER);
}

struct upstream *
upstream_new(const struct upstream_env *env, const struct upstream_conf *conf,
    const struct upstream_cb *cb, void *arg)
{
	struct upstream *u = mem_xcalloc(1, sizeof(*u));
	struct loop *l = env->loop;

	u->magic = UPSTREAM_MAGIC;
	u->conf = conf;
	u->cb = cb;
	u->arg = arg;
	u->loop = l;
	u->known_era = conf->era;
	u->known_transport = conf->transport;
	u->level = MCP_LV_MAX;
	u->since_ms = clock_now_ms();
	buf_init(&u->scratch, CAP_MESSAGE_BYTES);
	timer_init(&u->probe_timer, l, on_probe_timer, u);
	timer_init(&u->start_timer, l, on_start_timer, u);
	timer_init(&u->mute_timer, l, upstream_on_mute, u);
	upstream_calls_init(u);
	upstream_lists_init(u);
	upstream_use_init(u);
	upstream_memory_init(u);
	era_modern_init(u);
	if (conf->broken == MV_OK)
		upstream_kind_init(u, env);
	return u;
}

void
upstream_follow(struct upstream *u, const struct upstream *of)
{
	if (u->known_era != ERA_AUTO || of->known_era == ERA_AUTO)
		return;
	u->known_era = of->known_era;
	u->recalled_era = true;
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	upstream_questions_drop(u);
	if (u->kind != NULL)
		u->kind->free(u);
	upstream_lists_fini(u);
	upstream_calls_fini(u);
	timer_fini(&u->probe_timer);
	timer_fini(&u->start_timer);
	timer_fini(&u->mute_timer);
	upstream_use_fini(u);
	upstream_memory_fini(u);
	era_modern_fini(u);
	buf_fini(&u->scratch);
	mem_free(u->instructions);
	u->magic = 0;
	mem_free(u);
}
