/* SPDX-License-Identifier: MIT */
/*
 * One process of a child: from the fork to the last of its group.
 *
 * Owns: the process and its stderr, while there is one.
 * Driven by: handlers of child.c, the spawner.
 * Invariants: on_up comes last in a start and on_down once an end; whatever the
 * owner does in on_down is seen before it is decided what comes next.
 */
#include "mcpvisor/child.h"

#include "child_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/metrics.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

static void
on_exec_failed(void *arg, enum spawn_step step, int errnum)
{
	struct child *c = arg;

	MCPVISOR_ASSERT(c->magic == CHILD_MAGIC);
	c->fate.step = step;
	c->fate.errnum = errnum;
	child_dispatch(c, CHILD_EV_EXEC_FAILED);
}

static void
on_exit_status(void *arg, int status)
{
	struct child *c = arg;

	MCPVISOR_ASSERT(c->magic == CHILD_MAGIC);
	c->fate.status = status;
	child_dispatch(c, CHILD_EV_EXITED);
}

static const struct spawn_cb child_spawn_cb = {
    .on_exec_failed = on_exec_failed,
    .on_exit = on_exit_status,
};

/* Counts a death and says where that leads. */
static enum child_state
child_count_death(struct child *c, uint64_t useful_ms)
{
	return backoff_death(&c->backoff, useful_ms, &c->delay_ms) ? CHILD_ST_BACKOFF
								   : CHILD_ST_FAILED;
}

static void
child_log_parked(struct child *c)
{
	LOG_ERROR("child", "parked", "upstream=%s deaths=%u last=%s", c->o.spec.name,
	    c->backoff.deaths, LOG_ESC(c->end.text, strlen(c->end.text)));
}

/* No process came to be. The state is settled before the owner hears of it, so
 * that it may stop and free in on_down as if nothing were there. */
static void
child_start_failed(struct child *c, enum mv_err err, int errnum)
{
	enum child_state next = child_count_death(c, 0);
	uint64_t transitions;

	c->fate = (struct child_fate){.spec = &c->o.spec,
	    .err = MV_SPAWN,
	    .fork_err = err,
	    .step = SPAWN_STEP_NONE,
	    .errnum = errnum};
	child_end_describe(&c->end, &c->fate);
	metrics_add(METRIC_CHILD_DEATHS, 1);
	LOG_WARNING("child", "start_failed",
	    "upstream=%s error=%s restarts=%u next_ms=%d", c->o.spec.name,
	    LOG_ESC(c->end.text, strlen(c->end.text)), c->restarts,
	    next == CHILD_ST_BACKOFF ? (int)c->delay_ms : -1);
	if (next == CHILD_ST_FAILED)
		child_log_parked(c);
	if (next == CHILD_ST_BACKOFF && c->state == CHILD_ST_BACKOFF)
		child_enter_backoff(c);
	else
		child_set_state(c, next, "no process");
	transitions = c->transitions;
	(void)c->cb.on_down(c->arg, &c->end, c->wanted);
	if (next == CHILD_ST_FAILED && c->transitions == transitions)
		c->cb.on_parked(c->arg);
}

void
child_spawn(struct child *c, const char *reason)
{
	struct spawn_fds fds = {-1, -1, -1};
	enum mv_err err;

	MCPVISOR_ASSERT(c->proc == NULL);
	errno = 0;
	err = spawner_start(c->spawner, &c->o.spec, &child_spawn_cb, c, &c->proc, &fds);
	if (err != MV_OK) {
		c->proc = NULL;
		child_start_failed(c, err, errno);
		return;
	}
	c->pid = proc_pid(c->proc);
	c->up_ms = clock_now_ms();
	c->ready = false;
	c->rung = CHILD_RUNG_NONE;
	c->fate = (struct child_fate){
	    .spec = &c->o.spec, .err = MV_DIED, .status = CHILD_STATUS_NONE};
	child_stderr_open(&c->err, fds.err);
	child_set_state(c, CHILD_ST_RUNNING, reason);
	LOG_NOTICE("child", "started", "upstream=%s pid=%d", c->o.spec.name, (int)c->pid);
	c->cb.on_up(c->arg, fds.in, fds.out);
}

void
child_respawn(struct child *c, const char *reason)
{
	c->restarts++;
	child_spawn(c, reason);
}

static void
child_log_end(
    struct child *c, pid_t pid, uint64_t up_ms, enum child_state next, bool warn)
{
	int status = c->fate.status;
	const char *key = "status";
	int value = -1;

	if (status != CHILD_STATUS_NONE && WIFSIGNALED(status)) {
		key = "signal";
		value = WTERMSIG(status);
	} else if (status != CHILD_STATUS_NONE) {
		value = WEXITSTATUS(status);
	}
	log_event(warn ? LOG_LV_WARNING : LOG_LV_NOTICE, "child", "ended",
	    "upstream=%s pid=%d %s=%d uptime_ms=%llu restarts=%u next_ms=%d%s%s",
	    c->o.spec.name, (int)pid, key, value, (unsigned long long)up_ms, c->restarts,
	    next == CHILD_ST_RUNNING   ? 0
	    : next == CHILD_ST_BACKOFF ? (int)c->delay_ms
				       : -1,
	    c->end.err == MV_SPAWN ? " error=" : "",
	    c->end.err == MV_SPAWN ? LOG_ESC(c->end.text, strlen(c->end.text)) : "");
}

void
child_let_go(struct child *c)
{
	if (c->proc != NULL) {
		if (proc_group_is_alive(c->proc))
			LOG_NOTICE("child", "leftover", "upstream=%s pid=%d action=kill",
			    c->o.spec.name, (int)c->pid);
		proc_free(c->proc);
		c->proc = NULL;
	}
	c->pid = 0;
	child_stderr_close(&c->err);
}

static enum child_state
child_next_state(struct child *c, enum child_verdict verdict, uint64_t useful_ms)
{
	bool clean = c->ready && c->fate.status == 0;

	if (!c->wanted)
		return CHILD_ST_DOWN;
	if (c->end.err == MV_STOPPING)
		return CHILD_ST_RUNNING;
	if (c->end.err == MV_DIED && verdict == CHILD_EXCUSE)
		return CHILD_ST_RUNNING;
	if (c->end.err == MV_DIED && clean) {
		c->delay_ms = c->o.backoff.base_ms;
		return CHILD_ST_BACKOFF;
	}
	return child_count_death(c, useful_ms);
}

/* Exit and end of output are known, or given up: by what is wanted and why. */
void
child_settle(struct child *c)
{
	pid_t pid = c->pid;
	uint64_t now = clock_now_ms();
	enum child_verdict verdict;
	enum child_state next;
	bool unasked = c->fate.err != MV_STOPPING;

	/* Else the owner reported an end inside on_down. */
	MCPVISOR_ASSERT(pid != 0);
	/* It went before anything forced it: closing its input and ending are one act
	 * that reaches us in two pieces. */
	if (c->fate.err == MV_PROTOCOL && c->rung == CHILD_RUNG_INPUT)
		c->fate.err = MV_DIED;
	child_let_go(c);
	c->fate.last = c->err.last;
	c->fate.last_len = c->err.last_len;
	child_end_describe(&c->end, &c->fate);
	if (unasked)
		metrics_add(METRIC_CHILD_DEATHS, 1);
	/* start, stop and restart are remembered in it: the state has not moved. */
	verdict = c->cb.on_down(c->arg, &c->end, c->wanted);
	next = child_next_state(c, verdict, c->ready ? now - c->ready_ms : 0);
	child_log_end(c, pid, now - c->up_ms, next, unasked);
	switch (next) {
	case CHILD_ST_RUNNING:
		child_respawn(c, "at once");
		break;
	case CHILD_ST_FAILED:
		child_log_parked(c);
		child_set_state(c, next, "budget spent");
		c->cb.on_parked(c->arg);
		break;
	case CHILD_ST_DOWN:
		child_set_state(c, next, "not wanted");
		c->cb.on_stopped(c->arg);
		break;
	case CHILD_ST_BACKOFF:
		child_set_state(c, next, "died");
		break;
	case CHILD_ST_STOPPING:
	case CHILD_ST_REAPED:
	case CHILD_ST_CLOSED:
	case CHILD_ST_MAX:
		MCPVISOR_ASSERT(false); /* no state to settle in */
	}
}

/* Not even KILL ended it: it hangs in the kernel. The spawner reaps it when it can,
 * and nobody waits for that. */
void
child_give_up(struct child *c)
{
	LOG_WARNING(
	    "child", "unkillable", "upstream=%s pid=%d", c->o.spec.name, (int)c->pid);
	proc_free(c->proc);
	c->proc = NULL;
	if (c->state == CHILD_ST_STOPPING)
		child_set_state(c, CHILD_ST_REAPED, "status given up");
	else
		child_settle(c);
}
