/* SPDX-License-Identifier: MIT */
/*
 * The kinds of upstream whose tools we make ourselves: what upstream.c asks of them, as a
 * state x event table.
 *
 *            start              up             stop, restart, die        over
 *   DOWN -----------> STARTING ----> UP -------------------------> ENDING ----> settle
 *    ^   BACKOFF, FAILED -/
 *    +-- settle: STARTING | BACKOFF | FAILED | DOWN, by what is wanted and why
 *
 * Owns: what the kind has made of itself, from init to free.
 * Driven by: upstream.c; the kind (local_up, local_down); its timer and the ends of
 * turns. Invariants: outside of UP the kind has no call.
 */
#include "upstream_local_base_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const local_state_names[] = {
#define X(id, name) [LOCAL_ST_##id] = name,
    LOCAL_STATES(X)
#undef X
};

static const char *const local_event_names[] = {
#define X(id, name) [LOCAL_EV_##id] = name,
    LOCAL_EVENTS(X)
#undef X
};

static void
local_set_state(struct local *l, enum local_state next, const char *reason)
{
	if (l->state == next)
		return;
	LOG_DEBUG("local", "state", "upstream=%s from=%s to=%s reason=%s", UNAME(l->u),
	    local_state_names[l->state], local_state_names[next], reason);
	l->state = next;
}

/* ---- handlers ---- */

static void
lo_start(struct local *l)
{
	struct upstream *u = l->u;

	timer_clear(&l->timer);
	l->wanted = true;
	l->up_ms = 0;
	l->end = (struct child_end){.err = MV_OK};
	u->reason[0] = '\0';
	u->heard = false;
	u->n_starts++;
	local_set_state(l, LOCAL_ST_STARTING, "start");
	/* It may be spoken to: calls wait for its answer to server/discover. */
	upstream_event(u, UPSTREAM_EV_UP);
	if (l->ops->start != NULL)
		l->ops->start(l->arg);
	else
		local_up(u);
}

static void
lo_start_anew(struct local *l)
{
	backoff_reset(&l->backoff);
	lo_start(l);
}

/* Whoever has mended it need not say so. */
static void
lo_look(struct local *l)
{
	if (l->ops->has_changed(l->arg))
		lo_start_anew(l);
	else
		timer_set(&l->timer, LOCAL_LOOK_MS);
}

static void
lo_up(struct local *l)
{
	l->up_ms = clock_now_ms();
	local_set_state(l, LOCAL_ST_UP, "up");
	local_serve_waiting(l);
}

static void
local_end(struct local *l, const char *reason)
{
	local_set_state(l, LOCAL_ST_ENDING, reason);
	local_drop_calls(l);
	local_drop_answers(l);
	if (l->ops->stop != NULL)
		l->ops->stop(l->arg);
	l->waiting = 0;
	deferred_ask(&l->over);
}

static void
lo_stop(struct local *l)
{
	l->wanted = false;
	l->end = (struct child_end){.err = MV_STOPPING};
	local_end(l, "stop");
}

static void
lo_restart(struct local *l)
{
	l->end = (struct child_end){.err = MV_STOPPING};
	local_end(l, "restart");
}

static void
lo_die(struct local *l)
{
	local_end(l, "of no use");
}

static void
local_stopped(struct local *l)
{
	struct upstream *u = l->u;

	if (u->stopping)
		u->cb->on_stopped(u->arg, u);
}

static void
lo_rest(struct local *l)
{
	timer_clear(&l->timer);
	backoff_reset(&l->backoff);
	l->wanted = false;
	local_set_state(l, LOCAL_ST_DOWN, "stop");
	local_stopped(l);
}

static void
lo_want_up(struct local *l)
{
	l->wanted = true;
}

static void
lo_want_down(struct local *l)
{
	l->wanted = false;
}

static void
local_back_off(struct local *l, uint32_t delay_ms)
{
	l->resume_ms = clock_now_ms() + delay_ms;
	timer_set(&l->timer, delay_ms);
	local_set_state(l, LOCAL_ST_BACKOFF, "died");
	LOG_WARNING("local", "ended", "upstream=%s reason=%s next_ms=%u", UNAME(l->u),
	    LOG_ESC(l->u->reason, strlen(l->u->reason)), delay_ms);
}

static void
lo_settle(struct local *l)
{
	struct upstream *u = l->u;
	uint64_t useful_ms = l->up_ms != 0 ? clock_now_ms() - l->up_ms : 0;
	enum mv_err err = l->end.err;
	uint32_t delay_ms = 0;

	upstream_event(u, err == MV_STOPPING ? UPSTREAM_EV_GONE : UPSTREAM_EV_DOWN);
	if (err != MV_STOPPING && u->state == UPSTREAM_ST_DOWN)
		upstream_settle(u);
	if (!l->wanted) {
		local_set_state(l, LOCAL_ST_DOWN, "not wanted");
		local_stopped(l);
	} else if (err == MV_STOPPING) {
		lo_start(l);
	} else if (!backoff_death(&l->backoff, useful_ms, &delay_ms)) {
		local_set_state(l, LOCAL_ST_FAILED, "budget spent");
		if (l->ops->has_changed != NULL)
			timer_set(&l->timer, LOCAL_LOOK_MS);
		upstream_event(u, UPSTREAM_EV_PARK);
	} else {
		local_back_off(l, delay_ms);
	}
}

static void
lo_ignore(struct local *l)
{
	(void)l;
}

static void
lo_bug(struct local *l)
{
	LOG_ERROR("local", "impossible event", "state=%s", local_state_names[l->state]);
	MCPVISOR_ASSERT(false); /* an event that cannot be in this state */
}

/* clang-format off */
static void (*const table[LOCAL_ST_MAX][LOCAL_EV_MAX])(struct local *) = {
#define ROW(start, stop, restart, up, die, over, timer)                                  \
	{[LOCAL_EV_START] = lo_##start, [LOCAL_EV_STOP] = lo_##stop,                     \
	 [LOCAL_EV_RESTART] = lo_##restart, [LOCAL_EV_UP] = lo_##up,                     \
	 [LOCAL_EV_DIE] = lo_##die, [LOCAL_EV_OVER] = lo_##over,                         \
	 [LOCAL_EV_TIMER] = lo_##timer}
	/*                          start        stop       restart      up      die     over    timer */
	[LOCAL_ST_DOWN]     = ROW(start,       rest,      start,       ignore, ignore, bug,    bug),
	[LOCAL_ST_STARTING] = ROW(ignore,      stop,      restart,     up,     die,    bug,    bug),
	[LOCAL_ST_UP]       = ROW(ignore,      stop,      restart,     ignore, die,    bug,    bug),
	[LOCAL_ST_ENDING]   = ROW(want_up,     want_down, want_up,     ignore, ignore, settle, bug),
	[LOCAL_ST_BACKOFF]  = ROW(start,       rest,      start,       ignore, ignore, bug,    start),
	[LOCAL_ST_FAILED]   = ROW(start_anew,  rest,      start_anew,  ignore, ignore, bug,    look),
#undef ROW
};
/* clang-format on */

static void
local_dispatch(struct local *l, enum local_event ev)
{
	LOG_DEBUG("local", "event", "upstream=%s state=%s event=%s", UNAME(l->u),
	    local_state_names[l->state], local_event_names[ev]);
	table[l->state][ev](l);
}

static void
on_over(void *arg)
{
	struct local *l = arg;

	MCPVISOR_ASSERT(l->magic == LOCAL_MAGIC);
	local_dispatch(l, LOCAL_EV_OVER);
}

static void
on_timer(void *arg)
{
	struct local *l = arg;

	MCPVISOR_ASSERT(l->magic == LOCAL_MAGIC);
	local_dispatch(l, LOCAL_EV_TIMER);
}

/* ---- what the kinds call ---- */

void *
local_arg(const struct upstream *u)
{
	return u->local->arg;
}

void
local_up(struct upstream *u)
{
	local_dispatch(u->local, LOCAL_EV_UP);
}

void
local_down(struct upstream *u, enum mv_err err, const char *fmt, ...)
{
	struct local *l = u->local;
	va_list ap;

	if (l->state != LOCAL_ST_STARTING && l->state != LOCAL_ST_UP)
		return;
	l->end = (struct child_end){.err = err};
	va_start(ap, fmt);
	(void)vsnprintf(l->end.text, sizeof(l->end.text), fmt, ap);
	va_end(ap);
	u->reason[0] = '\0';
	local_dispatch(l, LOCAL_EV_DIE);
}

void
local_tools_changed(struct upstream *u)
{
	if (u->era != NULL)
		upstream_list_changed(u, METHOD_N_TOOLS_CHANGED);
}

void
local_note_refused(struct upstream *u)
{
	u->n_refused++;
}

const struct tool_shape *
local_shape(const struct upstream *u, struct jtext name)
{
	const struct tool_shape *s = NULL;
	struct buf text;

	buf_init(&text, CAP_URI_BYTES);
	if (json_string_decode(name, &text) && text.err == MV_OK)
		s = upstream_conf_shape(u->conf, text.data, text.len);
	buf_fini(&text);
	return s;
}

void
local_put_annotations(
    struct buf *out, const struct tool_shape *shape, const struct tool_hints *dflt)
{
	const struct tool_hints none = {.read_only = HINT_INHERIT},
				*own = shape != NULL ? &shape->hints : &none;
	const enum tool_hint read_only =
	    own->read_only != HINT_INHERIT ? own->read_only : dflt->read_only;
	/* What only reads destroys nothing, unless somebody says both. */
	const enum tool_hint destructive = own->read_only == HINT_YES ? HINT_NO
					   : dflt->destructive != HINT_INHERIT
					       ? dflt->destructive
					   : read_only == HINT_YES ? HINT_NO
								   : HINT_YES;
	const struct {
		const char *key;
		enum tool_hint own, dflt;
	} rows[] = {
	    {"readOnlyHint", read_only, HINT_NO},
	    {"destructiveHint", own->destructive, destructive},
	    {"idempotentHint", own->idempotent, dflt->idempotent},
	    {"openWorldHint", own->open_world, dflt->open_world},
	};

	buf_add_str(out, ",\"annotations\":{");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum tool_hint h =
		    rows[i].own != HINT_INHERIT ? rows[i].own : rows[i].dflt;

		buf_addf(out, "%s\"%s\":%s", i > 0 ? "," : "", rows[i].key,
		    h == HINT_YES ? "true" : "false");
	}
	buf_add_char(out, '}');
}

/* ---- as a kind ---- */

static void
local_init(
    struct upstream *u, const struct upstream_env *env, const struct local_ops *ops)
{
	struct local *l = mem_xcalloc(1, sizeof(*l));
	struct backoff_opts o = upstream_backoff_opts(u->conf);

	l->magic = LOCAL_MAGIC;
	l->u = u;
	l->ops = ops;
	backoff_init(&l->backoff, &o);
	timer_init(&l->timer, u->loop, on_timer, l);
	deferred_init(&l->over, u->loop, on_over, l);
	local_serve_init(l);
	u->local = l;
	l->arg = ops->init(u, env);
}

static void
local_destroy(struct upstream *u)
{
	struct local *l = u->local;

	local_drop_calls(l);
	local_drop_answers(l);
	l->ops->free(l->arg);
	timer_fini(&l->timer);
	deferred_cancel(&l->over);
	l->magic = 0;
	/* Later: the caller may be its callback. */
	loop_defer_free(u->loop, mem_free, l);
}

static void
local_start(struct upstream *u)
{
	local_dispatch(u->local, LOCAL_EV_START);
}

static void
local_stop(struct upstream *u)
{
	local_dispatch(u->local, LOCAL_EV_STOP);
}

static void
local_restart(struct upstream *u, const char *why)
{
	LOG_NOTICE("local", "restart", "upstream=%s reason=%s", UNAME(u),
	    LOG_ESC(why, strlen(why)));
	local_dispatch(u->local, LOCAL_EV_RESTART);
}

static void
local_fail(struct upstream *u, const char *why)
{
	local_down(u, MV_PROTOCOL, "%s", why);
}

static void
local_set_ladder(struct upstream *u, const struct child_ladder *ladder)
{
	(void)u; /* calls that run are ended by their own limits */
	(void)ladder;
}

static void
local_set_conf(struct upstream *u)
{
	struct local *l = u->local;
	struct backoff_opts o = upstream_backoff_opts(u->conf);

	backoff_set_opts(&l->backoff, &o);
	if (l->ops->set_conf != NULL)
		l->ops->set_conf(l->arg);
}

static bool
local_is_resting(const struct upstream *u)
{
	return u->local->state == LOCAL_ST_DOWN;
}

static const struct child_end *
local_last_end(const struct upstream *u)
{
	return &u->local->end;
}

static void
local_put_stats(const struct upstream *u, struct upstream_stats *s)
{
	const struct local *l = u->local;
	uint64_t now = clock_now_ms();

	if (l->state == LOCAL_ST_BACKOFF && l->resume_ms > now)
		s->next_ms = l->resume_ms - now;
}

static void
local_on_greeted(struct upstream *u)
{
	upstream_event(u, UPSTREAM_EV_INIT_OK);
}

static void
local_note_ready(struct upstream *u)
{
	(void)u;
}

static bool
local_is_open(const struct upstream *u)
{
	return u->local->state == LOCAL_ST_UP || u->local->state == LOCAL_ST_STARTING;
}

static size_t
local_out_pending(const struct upstream *u)
{
	(void)u;
	return 0;
}

#define LOCAL_KIND(kind)                                                                 \
	static void kind##_init(struct upstream *u, const struct upstream_env *env)      \
	{                                                                                \
		local_init(u, env, &local_##kind);                                       \
	}                                                                                \
	const struct kind_ops kind_##kind = {                                            \
	    .name = #kind,                                                               \
	    .init = kind##_init,                                                         \
	    .free = local_destroy,                                                       \
	    .start = local_start,                                                        \
	    .stop = local_stop,                                                          \
	    .restart = local_restart,                                                    \
	    .fail = local_fail,                                                          \
	    .set_ladder = local_set_ladder,                                              \
	    .set_conf = local_set_conf,                                                  \
	    .is_resting = local_is_resting,                                              \
	    .last_end = local_last_end,                                                  \
	    .put_stats = local_put_stats,                                                \
	    .on_greeted = local_on_greeted,                                              \
	    .note_ready = local_note_ready,                                              \
	    .is_open = local_is_open,                                                    \
	    .send = local_send,                                                          \
	    .out_pending = local_out_pending,                                            \
	    .on_sent = local_on_sent,                                                    \
	    .drop = local_drop,                                                          \
	}

LOCAL_KIND(exec);
LOCAL_KIND(shell);
LOCAL_KIND(graphql);
