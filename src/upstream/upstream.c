/* SPDX-License-Identifier: MIT */
/*
 * The life of an upstream: process up, era found, ready, gone, again.
 *
 *   DOWN --up--> PROBE --timer--> BOTH ----> READY --down--> DOWN
 *     |            |  refused        |  initialize refused
 *     +--> INIT <--+                 +--> LATE
 *
 * Owns: the child, the link, the lists and every request in flight.
 * Driven by: callbacks of child and link, its timers, and the gateway.
 * Invariants: link is set exactly while a process runs and its output is open; era
 * is set exactly in READY; upstream_set_state is the only writer of state.
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
	if (u->known_era != ERA_MODERN)
		timer_set(&u->probe_timer, u->conf->probe_ms);
	upstream_set_state(u, UPSTREAM_ST_PROBE, "up");
}

static void
st_ready(struct upstream *u, const struct era_ops *era, enum era_pin learnt)
{
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	upstream_forget(&u->discover);
	u->era = era;
	u->known_era = learnt;
	u->skip_probe = u->excused = false;
	u->was_ready = true;
	u->reason[0] = '\0';
	upstream_set_state(u, UPSTREAM_ST_READY, era->name);
	child_note_ready(u->child);
	LOG_NOTICE("upstream", "ready", "upstream=%s era=%s revision=%s",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)), era->name,
	    revision_text(u->revision));
	era->on_ready(u);
	upstream_lists_start(u);
	upstream_send_held(u);
}

static void
st_modern(struct upstream *u)
{
	upstream_forget(&u->init);
	st_ready(u, &era_modern, ERA_MODERN);
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
	child_fail(u->child, why);
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
	const struct child_end *end = child_last_end(u->child);

	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	timer_clear(&u->mute_timer);
	upstream_lists_stop(u);
	if (u->era != NULL)
		u->era->on_down(u);
	u->era = NULL;
	upstream_forget(&u->discover);
	upstream_forget(&u->init);
	upstream_set_state(u, UPSTREAM_ST_DOWN, "down");
	if (u->reason[0] == '\0' && end->err != MV_OK)
		upstream_set_reason(u, "%s", end->text);
	upstream_fail_all(u, end->err == MV_OK ? MV_DIED : end->err, u->reason);
}

static void
st_park(struct upstream *u)
{
	struct outcome o = {
	    .kind = OUTCOME_FAILED, .err = MV_PARKED, .detail = u->reason};

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
#define ROW(up, d_ok, d_leg, d_bad, i_ok, i_bad, probe, start, down, park)               \
	{[UPSTREAM_EV_UP] = st_##up, [UPSTREAM_EV_DISCOVER_OK] = st_##d_ok,              \
	 [UPSTREAM_EV_DISCOVER_LEGACY] = st_##d_leg, [UPSTREAM_EV_DISCOVER_BAD] = st_##d_bad, \
	 [UPSTREAM_EV_INIT_OK] = st_##i_ok, [UPSTREAM_EV_INIT_BAD] = st_##i_bad,         \
	 [UPSTREAM_EV_PROBE_TIMER] = st_##probe, [UPSTREAM_EV_START_TIMER] = st_##start, \
	 [UPSTREAM_EV_DOWN] = st_##down, [UPSTREAM_EV_PARK] = st_##park}
	/*                       up   disc_ok disc_legacy disc_bad init_ok init_bad probe start down  park */
	[UPSTREAM_ST_DOWN]   = ROW(up,  bug,    bug,        bug,   bug,    bug,    bug,    bug,    down,   park),
	[UPSTREAM_ST_PROBE]  = ROW(bug, modern, initialize, fail,  bug,    bug,    both,   slow,   down,   bug),
	[UPSTREAM_ST_BOTH]   = ROW(bug, modern, init_alone, fail,  legacy, late,   bug,    slow,   down,   bug),
	[UPSTREAM_ST_INIT]   = ROW(bug, bug,    bug,        bug,   legacy, fail,   bug,    slow,   down,   bug),
	[UPSTREAM_ST_LATE]   = ROW(bug, modern, fail,       fail,  bug,    bug,    bug,    slow,   down,   bug),
	[UPSTREAM_ST_READY]  = ROW(bug, bug,    bug,        bug,   ignore, ignore, bug,    bug,    down,   bug),
	[UPSTREAM_ST_PARKED] = ROW(up,  bug,    bug,        bug,   bug,    bug,    bug,    bug,    ignore, ignore),
#undef ROW
};
/* clang-format on */

void
upstream_event(struct upstream *u, enum upstream_event ev)
{
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

/* The child's callbacks. */

static void
on_child_up(void *arg, int in_fd, int out_fd)
{
	struct upstream *u = arg;
	struct link_opts o = {.rfd = out_fd,
	    .wfd = in_fd,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES,
	    .want_uris = true};

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC && u->link == NULL);
	u->reason[0] = '\0';
	u->link = link_new(u->loop, &o, &upstream_link_cb, u);
	upstream_event(u, UPSTREAM_EV_UP);
}

static void
on_child_close_input(void *arg)
{
	struct upstream *u = arg;

	if (u->link != NULL)
		link_end_write(u->link, false);
}

static void
on_child_force_close(void *arg)
{
	struct upstream *u = arg;

	link_free(u->link);
	u->link = NULL;
}

static enum child_verdict
on_child_down(void *arg, const struct child_end *end, bool wanted)
{
	struct upstream *u = arg;
	enum upstream_state was = u->state;
	bool probing = was == UPSTREAM_ST_PROBE || was == UPSTREAM_ST_BOTH, excuse;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	link_free(u->link);
	u->link = NULL;
	/* A legacy server may end because something came before initialize: it gets one
	 * more start, uncounted, that spares it the probe. After that, failed starts
	 * with and without it take turns. */
	probing = probing && end->err == MV_DIED && u->conf->era == ERA_AUTO &&
		  u->reason[0] == '\0'; /* else we gave it up, for what it said */
	excuse = probing && wanted && !u->excused;
	upstream_event(u, UPSTREAM_EV_DOWN);
	u->skip_probe = probing;
	if (excuse) {
		u->excused = true;
		u->reason[0] = '\0';
		return CHILD_EXCUSE;
	}
	upstream_settle(u);
	return CHILD_COUNT;
}

static void
on_child_parked(void *arg)
{
	upstream_event(arg, UPSTREAM_EV_PARK);
}

static void
on_child_stopped(void *arg)
{
	struct upstream *u = arg;

	if (u->stopping)
		u->cb->on_stopped(u->arg, u);
}

static const struct child_cb child_callbacks = {
    .on_up = on_child_up,
    .on_close_input = on_child_close_input,
    .on_force_close = on_child_force_close,
    .on_down = on_child_down,
    .on_parked = on_child_parked,
    .on_stopped = on_child_stopped,
};

static struct child *
upstream_new_child(struct upstream *u, struct spawner *sp)
{
	struct child_opts o = {
	    .spec = {.name = u->conf->name,
		.argv = (const char *const *)u->conf->argv,
		.envp = (const char *const *)u->conf->env,
		.path = u->conf->path,
		.cwd = u->conf->cwd},
	    .backoff = backoff_defaults,
	    .ladder = child_ladder_defaults,
	};

	o.backoff.base_ms = u->conf->restart_base_ms;
	return child_new(u->loop, sp, &o, &child_callbacks, u);
}

struct upstream *
upstream_new(struct loop *l, struct spawner *sp, const struct upstream_conf *conf,
    const struct upstream_cb *cb, void *arg)
{
	struct upstream *u = mem_xcalloc(1, sizeof(*u));

	u->magic = UPSTREAM_MAGIC;
	u->conf = conf;
	u->cb = cb;
	u->arg = arg;
	u->loop = l;
	u->known_era = conf->era;
	u->level = MCP_LV_MAX;
	buf_init(&u->scratch, CAP_MESSAGE_BYTES);
	timer_init(&u->probe_timer, l, on_probe_timer, u);
	timer_init(&u->start_timer, l, on_start_timer, u);
	timer_init(&u->mute_timer, l, upstream_on_mute, u);
	upstream_calls_init(u);
	upstream_lists_init(u);
	era_modern_init(u);
	if (conf->broken == MV_OK)
		u->child = upstream_new_child(u, sp);
	return u;
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	link_free(u->link);
	child_free(u->child);
	upstream_lists_fini(u);
	upstream_calls_fini(u);
	timer_fini(&u->probe_timer);
	timer_fini(&u->start_timer);
	timer_fini(&u->mute_timer);
	era_modern_fini(u);
	buf_fini(&u->scratch);
	mem_free(u->instructions);
	u->magic = 0;
	mem_free(u);
}

void
upstream_start(struct upstream *u)
{
	if (u->conf->broken != MV_OK) {
		upstream_set_reason(u, "%s", u->conf->broken_text);
		upstream_event(u, UPSTREAM_EV_PARK);
		return;
	}
	child_start(u->child);
}

void
upstream_stop(struct upstream *u, const struct child_ladder *ladder)
{
	u->stopping = true;
	timer_clear(&u->probe_timer);
	timer_clear(&u->start_timer);
	upstream_lists_stop(u);
	upstream_fail_all(u, MV_STOPPING, NULL);
	if (u->child == NULL) {
		u->cb->on_stopped(u->arg, u);
		return;
	}
	child_set_ladder(u->child, ladder);
	child_stop(u->child);
}

const char *
upstream_name(const struct upstream *u)
{
	return u->conf->name;
}

const struct upstream_conf *
upstream_conf_of(const struct upstream *u)
{
	return u->conf;
}

enum upstream_state
upstream_state(const struct upstream *u)
{
	return u->state;
}

bool
upstream_is_settled(const struct upstream *u)
{
	return u->settled;
}

const struct upstream_caps *
upstream_caps(const struct upstream *u)
{
	return &u->caps;
}

const char *
upstream_instructions(const struct upstream *u)
{
	return u->instructions;
}

const struct ulist *
upstream_list(const struct upstream *u, enum list_kind kind)
{
	return &u->lists[kind];
}

const char *
upstream_reason(const struct upstream *u)
{
	return u->reason;
}
