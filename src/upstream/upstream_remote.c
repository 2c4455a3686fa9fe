/* SPDX-License-Identifier: MIT */
/*
 * The kind of upstream that is reached over HTTP, as a state x event table.
 *
 *            start            stop, restart, die         over
 *   DOWN ----------> UP -------------------------> ENDING ----> settle
 *    ^   BACKOFF -/
 *    |   FAILED, REFUSED -/
 *    +-- settle: UP | BACKOFF | FAILED | REFUSED | DOWN, by what is wanted and why
 *
 * Owns: the link, from UP to the end of ENDING; its back-off.
 * Driven by: upstream.c, what the server answers (upstream_remote_link.c), its timer.
 * Invariants: nothing is there to be started: UP is entered at once, and left for ENDING,
 * from which nothing is sent and nothing is heard; what follows comes in a later turn, so
 * that no callback of the link ends it.
 */
#include "upstream_remote_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 5000 /* between two looks at credentials */

static const char *const remote_state_names[] = {
#define X(id, name) [REMOTE_ST_##id] = name,
    REMOTE_STATES(X)
#undef X
};

static const char *const remote_event_names[] = {
#define X(id, name) [REMOTE_EV_##id] = name,
    REMOTE_EVENTS(X)
#undef X
};

static void
remote_set_state(struct remote *rm, enum remote_state next, const char *reason)
{
	if (rm->state == next)
		return;
	LOG_DEBUG("remote", "state", "upstream=%s from=%s to=%s reason=%s", UNAME(rm->u),
	    remote_state_names[rm->state], remote_state_names[next], reason);
	rm->state = next;
}

/* ---- handlers ---- */

static void
rm_up(struct remote *rm)
{
	struct upstream *u = rm->u;
	struct mv_errtext why = {.line = 0};

	timer_clear(&rm->timer);
	rm->wanted = true;
	rm->ready_ms = 0;
	rm->least_ms = 0;
	rm->end = (struct child_end){.err = MV_OK};
	u->reason[0] = '\0';
	u->heard = false;
	u->n_starts++;
	remote_set_state(rm, REMOTE_ST_UP, "start");
	LOG_INFO("remote", "start", "upstream=%s server=%s", UNAME(u), rm->where);
	if (rm->curl != NULL && curl_loop_load(rm->curl, &why) == MV_OK)
		remote_open(rm);
	else
		remote_die(rm, MV_SYSTEM, "cannot speak HTTP: %s", why.message);
	upstream_event(u, UPSTREAM_EV_UP);
}

static void
rm_up_anew(struct remote *rm)
{
	backoff_reset(&rm->backoff);
	rm_up(rm);
}

/* Maybe the end of u: nothing comes after it. */
static void
remote_stopped(struct remote *rm)
{
	struct upstream *u = rm->u;

	if (u->stopping)
		u->cb->on_stopped(u->arg, u);
}

static void
rm_rest(struct remote *rm)
{
	timer_clear(&rm->timer);
	backoff_reset(&rm->backoff);
	rm->wanted = false;
	remote_set_state(rm, REMOTE_ST_DOWN, "stop");
	remote_stopped(rm);
}

static void
rm_want_up(struct remote *rm)
{
	rm->wanted = true;
}

static void
rm_want_down(struct remote *rm)
{
	rm->wanted = false;
	/* Our end does not wait as long as a restart would. */
	if (rm->u->stopping)
		deferred_ask(&rm->over);
}

static void
on_session_ended(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	deferred_ask(&rm->over);
}

/* Its session ends with it. */
static void
remote_leave(struct remote *rm, const char *reason)
{
	rm->end = (struct child_end){.err = MV_STOPPING};
	remote_set_state(rm, REMOTE_ST_ENDING, reason);
	http_link_end_session(rm->link, rm->ladder.term_ms, on_session_ended, rm);
}

static void
rm_stop(struct remote *rm)
{
	rm->wanted = false;
	remote_leave(rm, "stop");
}

static void
rm_restart(struct remote *rm)
{
	remote_leave(rm, "restart");
}

static void
rm_die(struct remote *rm)
{
	remote_set_state(rm, REMOTE_ST_ENDING, "of no use");
	deferred_ask(&rm->over);
}

static void
remote_park(struct remote *rm, enum remote_state next)
{
	bool may_change = rm->u->conf->put_headers != NULL;

	remote_set_state(
	    rm, next, next == REMOTE_ST_REFUSED ? "refused" : "budget spent");
	if (next == REMOTE_ST_REFUSED && may_change)
		timer_set(&rm->timer, LOOK_MS);
	upstream_event(rm->u, UPSTREAM_EV_PARK);
}

static void
remote_back_off(struct remote *rm, uint32_t delay_ms)
{
	if (delay_ms < rm->least_ms)
		delay_ms = rm->least_ms;
	rm->resume_ms = clock_now_ms() + delay_ms;
	timer_set(&rm->timer, delay_ms);
	remote_set_state(rm, REMOTE_ST_BACKOFF, "died");
	LOG_WARNING("remote", "ended", "upstream=%s reason=%s next_ms=%u", UNAME(rm->u),
	    LOG_ESC(rm->u->reason, strlen(rm->u->reason)), delay_ms);
}

static void
remote_close(struct remote *rm)
{
	http_link_free(rm->link);
	rm->link = NULL;
	rm->init_id = 0;
	buf_reset(&rm->init);
	timer_clear(&rm->stream_timer);
	rm->greeting = rm->opening = rm->has_endpoint = false;
}

/* What the upstream does when it hears of the end is seen before it is decided what comes
 * next. */
static void
rm_settle(struct remote *rm)
{
	struct upstream *u = rm->u;
	uint64_t useful_ms = rm->ready_ms != 0 ? clock_now_ms() - rm->ready_ms : 0;
	enum mv_err err = rm->end.err;
	uint32_t delay_ms = 0;

	remote_close(rm);
	upstream_event(u, err == MV_STOPPING ? UPSTREAM_EV_GONE : UPSTREAM_EV_DOWN);
	if (err != MV_STOPPING && u->state == UPSTREAM_ST_DOWN)
		upstream_settle(u);
	if (!rm->wanted) {
		remote_set_state(rm, REMOTE_ST_DOWN, "not wanted");
		remote_stopped(rm);
	} else if (err == MV_STOPPING) {
		rm_up(rm);
	} else if (err == MV_AUTH) {
		remote_park(rm, REMOTE_ST_REFUSED);
	} else if (!backoff_death(&rm->backoff, useful_ms, &delay_ms)) {
		remote_park(rm, REMOTE_ST_FAILED);
	} else {
		remote_back_off(rm, delay_ms);
	}
}

static void
rm_look(struct remote *rm)
{
	if (remote_has_other_credentials(rm))
		rm_up_anew(rm);
	else
		timer_set(&rm->timer, LOOK_MS);
}

static void
rm_ignore(struct remote *rm)
{
	(void)rm;
}

static void
rm_bug(struct remote *rm)
{
	LOG_ERROR(
	    "remote", "impossible event", "state=%s", remote_state_names[rm->state]);
	MCPVISOR_ASSERT(false); /* an event that cannot be in this state */
}

/* clang-format off */
static void (*const table[REMOTE_ST_MAX][REMOTE_EV_MAX])(struct remote *) = {
#define ROW(start, stop, restart, die, over, timer)                                      \
	{[REMOTE_EV_START] = rm_##start, [REMOTE_EV_STOP] = rm_##stop,                   \
	 [REMOTE_EV_RESTART] = rm_##restart, [REMOTE_EV_DIE] = rm_##die,                 \
	 [REMOTE_EV_OVER] = rm_##over, [REMOTE_EV_TIMER] = rm_##timer}
	/*                          start    stop       restart  die     over    timer */
	[REMOTE_ST_DOWN]    = ROW(up,      rest,      up,      ignore, bug,    bug),
	[REMOTE_ST_UP]      = ROW(ignore,  stop,      restart, die,    bug,    bug),
	[REMOTE_ST_ENDING]  = ROW(want_up, want_down, want_up, ignore, settle, bug),
	[REMOTE_ST_BACKOFF] = ROW(up,      rest,      up,      ignore, bug,    up),
	[REMOTE_ST_FAILED]  = ROW(up_anew, rest,      up_anew, ignore, bug,    bug),
	[REMOTE_ST_REFUSED] = ROW(up_anew, rest,      up_anew, ignore, bug,    look),
#undef ROW
};
/* clang-format on */

void
remote_dispatch(struct remote *rm, enum remote_event ev)
{
	LOG_DEBUG("remote", "event", "upstream=%s state=%s event=%s", UNAME(rm->u),
	    remote_state_names[rm->state], remote_event_names[ev]);
	table[rm->state][ev](rm);
}

void
remote_die(struct remote *rm, enum mv_err err, const char *fmt, ...)
{
	va_list ap;

	if (!remote_is_up(rm))
		return;
	rm->end.err = err;
	va_start(ap, fmt);
	(void)vsnprintf(rm->end.text, sizeof(rm->end.text), fmt, ap);
	va_end(ap);
	if (err != MV_AUTH)
		rm->end.told[0] = '\0'; /* else it is told already */
	rm->u->reason[0] = '\0';
	remote_dispatch(rm, REMOTE_EV_DIE);
}
