/* SPDX-License-Identifier: MIT */
/*
 * One supervised process as a state x event table.
 *
 *            start              exited            output ended
 *   DOWN ----------> RUNNING ----------> REAPED ----------------> settle
 *    ^   BACKOFF -/   |   |  output ended        exited
 *    |   FAILED -/    |   +------------> CLOSED ----------------> settle
 *    |                | stop, restart, exec failed  ^    ^
 *    |                +------------> STOPPING ------+----+ (or REAPED)
 *    +-- settle: RUNNING | BACKOFF | FAILED | DOWN, by what is wanted and why it ended
 *
 * Owns: the process, its stderr, the one deadline.
 * Driven by: its owner, the spawner, the loop.
 * Invariants: at most one process; BACKOFF, STOPPING, REAPED and CLOSED have a
 * deadline, the others none; on_stopped is owed while nothing is wanted and the
 * state is not DOWN; a callback comes last in its handler, except where what
 * follows looks again at the state.
 */
#include "mcpvisor/child.h"

#include "child_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <signal.h>
#include <string.h>

#define CHILD_MAGIC_GONE 0x6368580du

const struct child_ladder child_ladder_defaults = {
    .term_ms = 2000,
    .kill_ms = 3000,
    .drain_ms = 1000,
};

static const char *const child_state_names[CHILD_ST_MAX] = {
#define X(id, name) [CHILD_ST_##id] = name,
    CHILD_STATES(X)
#undef X
};

static const char *const child_event_names[CHILD_EV_MAX] = {
#define X(id, name) [CHILD_EV_##id] = name,
    CHILD_EVENTS(X)
#undef X
};

/* ---- states ---- */

static void
child_enter_resting(struct child *c)
{
	timer_clear(&c->deadline);
}

void
child_enter_backoff(struct child *c)
{
	c->resume_ms = clock_now_ms() + c->delay_ms;
	timer_set(&c->deadline, c->delay_ms);
}

static void
child_arm(struct child *c, uint64_t begin_ms, uint32_t limit_ms)
{
	uint64_t spent = clock_now_ms() - begin_ms;

	timer_set(&c->deadline, limit_ms > spent ? limit_ms - spent : 0);
}

static void
child_arm_rung(struct child *c)
{
	switch (c->rung) {
	case CHILD_RUNG_NONE:
		break;
	case CHILD_RUNG_INPUT:
		child_arm(c, c->rung_ms, c->o.ladder.term_ms);
		break;
	case CHILD_RUNG_TERM:
		child_arm(c, c->rung_ms, c->o.ladder.kill_ms);
		break;
	case CHILD_RUNG_KILL:
		child_arm(c, c->rung_ms, c->o.ladder.drain_ms);
		break;
	}
}

static void
child_set_rung(struct child *c, enum child_rung rung)
{
	c->rung = rung;
	c->rung_ms = clock_now_ms();
	child_arm_rung(c);
}

/* CLOSED after STOPPING goes on where the ladder is. */
static void
child_enter_ladder(struct child *c)
{
	if (c->rung != CHILD_RUNG_NONE)
		return;
	child_set_rung(c, CHILD_RUNG_INPUT);
	c->cb.on_close_input(c->arg);
}

static void
child_enter_reaped(struct child *c)
{
	child_arm(c, c->since_ms, c->o.ladder.drain_ms);
}

static void (*const child_entry[CHILD_ST_MAX])(struct child *) = {
    [CHILD_ST_DOWN] = child_enter_resting,
    [CHILD_ST_BACKOFF] = child_enter_backoff,
    [CHILD_ST_RUNNING] = child_enter_resting,
    [CHILD_ST_STOPPING] = child_enter_ladder,
    [CHILD_ST_REAPED] = child_enter_reaped,
    [CHILD_ST_CLOSED] = child_enter_ladder,
    [CHILD_ST_FAILED] = child_enter_resting,
};

void
child_set_state(struct child *c, enum child_state next, const char *reason)
{
	if (next == c->state)
		return;
	LOG_DEBUG("child", "state", "upstream=%s pid=%d from=%s to=%s reason=%s",
	    c->o.spec.name, (int)c->pid, child_state_text(c->state),
	    child_state_text(next), reason);
	c->state = next;
	c->since_ms = clock_now_ms();
	c->transitions++;
	child_entry[next](c);
}

/* ---- handlers: one a kind of cell ---- */

static void
on_start(struct child *c)
{
	c->wanted = true;
	child_spawn(c, "start");
}

static void
on_start_parked(struct child *c)
{
	backoff_reset(&c->backoff);
	on_start(c);
}

static void
on_pause_over(struct child *c)
{
	child_respawn(c, "pause over");
}

static void
on_stop_resting(struct child *c)
{
	c->wanted = false;
	child_set_state(c, CHILD_ST_DOWN, "stop");
	c->cb.on_stopped(c->arg);
}

static void
on_stop_parked(struct child *c)
{
	backoff_reset(&c->backoff);
	on_stop_resting(c);
}

static void
on_stop_running(struct child *c)
{
	c->wanted = false;
	c->fate.err = MV_STOPPING;
	child_set_state(c, CHILD_ST_STOPPING, "stop");
}

static void
on_restart_running(struct child *c)
{
	c->fate.err = MV_STOPPING;
	child_set_state(c, CHILD_ST_STOPPING, "restart");
}

static void
on_fail_running(struct child *c)
{
	c->fate.err = MV_PROTOCOL;
	child_set_state(c, CHILD_ST_STOPPING, "of no use");
}

/* Remembered until it settles. */
static void
on_want_up(struct child *c)
{
	c->wanted = true;
}

static void
on_want_down(struct child *c)
{
	c->wanted = false;
}

/* Over a stop or restart that was asked for too: else a restart would be for ever. */
static void
on_no_exec(struct child *c)
{
	c->fate.err = MV_SPAWN;
}

static void
on_no_exec_running(struct child *c)
{
	c->fate.err = MV_SPAWN;
	child_set_state(c, CHILD_ST_STOPPING, "no exec");
}

static void
on_exited(struct child *c)
{
	child_set_state(c, CHILD_ST_REAPED, "exited");
}

static void
on_output_ended(struct child *c)
{
	child_set_state(c, CHILD_ST_CLOSED, "output ended");
}

static void
child_signal(struct child *c, enum child_rung rung, int signo)
{
	LOG_NOTICE("child", "signal", "upstream=%s pid=%d signal=%d", c->o.spec.name,
	    (int)c->pid, signo);
	child_set_rung(c, rung);
	(void)proc_signal_group(c->proc, signo);
}

static void
on_next_rung(struct child *c)
{
	switch (c->rung) {
	case CHILD_RUNG_INPUT:
		child_signal(c, CHILD_RUNG_TERM, SIGTERM);
		/* One that is stopped could not react. */
		(void)proc_signal_group(c->proc, SIGCONT);
		break;
	case CHILD_RUNG_TERM:
		child_signal(c, CHILD_RUNG_KILL, SIGKILL);
		break;
	case CHILD_RUNG_KILL:
		child_give_up(c);
		break;
	case CHILD_RUNG_NONE:
		MCPVISOR_ASSERT(false); /* a deadline off the ladder */
	}
}

/* A grandchild may hold the output for as long as it lives. */
static void
on_drain_over(struct child *c)
{
	uint64_t transitions = c->transitions;

	c->cb.on_force_close(c->arg);
	/* The owner may have reported the end by itself. */
	if (c->transitions == transitions)
		child_settle(c);
}

/* ---- the table ---- */

struct child_row {
	enum child_cell kind;
	void (*fn)(struct child *);
};

/* Columns: start, stop, restart, fail, exec failed, exited, output ended, deadline. */
/* clang-format off */
#define DO(f)  {CHILD_CELL_HANDLER, f}
#define IGNORE {CHILD_CELL_IGNORE, NULL}
#define BUG    {CHILD_CELL_BUG, NULL}
static const struct child_row child_table[CHILD_ST_MAX][CHILD_EV_MAX] = {
	[CHILD_ST_DOWN] = {
		DO(on_start), DO(on_stop_resting), DO(on_start), IGNORE,
		BUG, BUG, BUG, BUG},
	[CHILD_ST_BACKOFF] = {
		DO(on_start), DO(on_stop_resting), DO(on_start), IGNORE,
		BUG, BUG, BUG, DO(on_pause_over)},
	[CHILD_ST_RUNNING] = {
		IGNORE, DO(on_stop_running), DO(on_restart_running), DO(on_fail_running),
		DO(on_no_exec_running), DO(on_exited), DO(on_output_ended), BUG},
	[CHILD_ST_STOPPING] = {
		DO(on_want_up), DO(on_want_down), DO(on_want_up), IGNORE,
		DO(on_no_exec), DO(on_exited), DO(on_output_ended), DO(on_next_rung)},
	[CHILD_ST_REAPED] = {
		DO(on_want_up), DO(on_want_down), DO(on_want_up), IGNORE,
		BUG, BUG, DO(child_settle), DO(on_drain_over)},
	[CHILD_ST_CLOSED] = {
		DO(on_want_up), DO(on_want_down), DO(on_want_up), IGNORE,
		DO(on_no_exec), DO(child_settle), BUG, DO(on_next_rung)},
	[CHILD_ST_FAILED] = {
		DO(on_start_parked), DO(on_stop_parked), DO(on_start_parked), IGNORE,
		BUG, BUG, BUG, BUG},
};
/* clang-format on */

enum child_cell
child_cell_kind(enum child_state st, enum child_event ev)
{
	return child_table[st][ev].kind;
}

void
child_dispatch(struct child *c, enum child_event ev)
{
	const struct child_row *row = &child_table[c->state][ev];

	switch (row->kind) {
	case CHILD_CELL_HANDLER:
		row->fn(c);
		break;
	case CHILD_CELL_IGNORE:
		break;
	case CHILD_CELL_BUG:
		LOG_ERROR("child", "bug", "upstream=%s state=%s event=%s", c->o.spec.name,
		    child_state_text(c->state), child_event_names[ev]);
		MCPVISOR_ASSERT(false); /* an event that cannot be in this state */
	}
}

/* ---- interface ---- */

static void
on_deadline(void *arg)
{
	struct child *c = arg;

	MCPVISOR_ASSERT(c->magic == CHILD_MAGIC);
	child_dispatch(c, CHILD_EV_DEADLINE);
}

struct child *
child_new(struct loop *l, struct spawner *sp, const struct child_opts *o,
    const struct child_cb *cb, void *arg)
{
	struct child *c = mem_xcalloc(1, sizeof(*c));

	c->magic = CHILD_MAGIC;
	c->loop = l;
	c->spawner = sp;
	c->o = *o;
	c->cb = *cb;
	c->arg = arg;
	c->state = CHILD_ST_DOWN;
	c->since_ms = clock_now_ms();
	backoff_init(&c->backoff, &o->backoff);
	timer_init(&c->deadline, l, on_deadline, c);
	child_stderr_init(&c->err, l, c->o.spec.name);
	return c;
}

void
child_free(struct child *c)
{
	if (c == NULL)
		return;
	MCPVISOR_ASSERT(c->magic == CHILD_MAGIC);
	/* Its owner cannot wait any longer. */
	if (c->pid != 0)
		child_let_go(c);
	timer_fini(&c->deadline);
	c->magic = CHILD_MAGIC_GONE;
	/* Later: the caller may be its callback. */
	loop_defer_free(c->loop, mem_free, c);
}

void
child_start(struct child *c)
{
	child_dispatch(c, CHILD_EV_START);
}

void
child_stop(struct child *c)
{
	child_dispatch(c, CHILD_EV_STOP);
}

void
child_restart(struct child *c, const char *reason)
{
	LOG_NOTICE("child", "restart", "upstream=%s pid=%d reason=%s", c->o.spec.name,
	    (int)c->pid, LOG_ESC(reason, strlen(reason)));
	child_dispatch(c, CHILD_EV_RESTART);
}

void
child_fail(struct child *c, const char *reason)
{
	if (child_cell_kind(c->state, CHILD_EV_FAIL) != CHILD_CELL_IGNORE)
		LOG_NOTICE("child", "of no use", "upstream=%s pid=%d reason=%s",
		    c->o.spec.name, (int)c->pid, LOG_ESC(reason, strlen(reason)));
	child_dispatch(c, CHILD_EV_FAIL);
}

void
child_set_ladder(struct child *c, const struct child_ladder *l)
{
	c->o.ladder = *l;
	if (c->state == CHILD_ST_STOPPING || c->state == CHILD_ST_CLOSED)
		child_arm_rung(c);
	else if (c->state == CHILD_ST_REAPED)
		child_enter_reaped(c);
}

void
child_set_opts(struct child *c, const struct child_opts *o)
{
	c->o = *o;
	c->err.name = o->spec.name;
	backoff_set_opts(&c->backoff, &o->backoff);
	child_set_ladder(c, &o->ladder);
}

void
child_output_ended(struct child *c)
{
	child_dispatch(c, CHILD_EV_OUTPUT_ENDED);
}

void
child_note_ready(struct child *c)
{
	if (c->pid == 0 || c->ready)
		return;
	c->ready = true;
	c->ready_ms = clock_now_ms();
}

enum child_state
child_state(const struct child *c)
{
	return c->state;
}

const char *
child_state_text(enum child_state st)
{
	return child_state_names[st];
}

pid_t
child_pid(const struct child *c)
{
	return c->pid;
}

uint32_t
child_restarts(const struct child *c)
{
	return c->restarts;
}

uint64_t
child_next_ms(const struct child *c)
{
	uint64_t now = clock_now_ms();

	return c->state == CHILD_ST_BACKOFF && c->resume_ms > now ? c->resume_ms - now
								  : 0;
}

const struct child_end *
child_last_end(const struct child *c)
{
	return &c->end;
}
