/* SPDX-License-Identifier: MIT */
/*
 * One program run to its end, for one answer.
 *
 * Owns: the proc, its output, one timer. Driven by: spawn, the pipes, the timer.
 *
 *   runs --exit--> drains --output ended, or time--> sweeps --> (gone)
 *    |time, overflow, cancel                           ^
 *    +--> ends (TERM) --time--> killed --over, or time-+
 *
 * Invariants: every state but the last has a deadline, if a time limit was given; the
 * callback is the last act and comes from the loop; how it ended is settled by the first
 * reason, but what we did goes before what the program made of it; the group is gone
 * before the callback.
 */
#include "mcpvisor/run.h"

#include "run_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_DRAIN_MS	  1000
#define RUN_SWEEP_MS	  1000
#define RUN_SWEEP_STEP_MS 2

/* X(NAME, word) */
#define RUN_STATE_TABLE(X)                                                               \
	X(RUNS, "runs")                                                                  \
	X(DRAINS, "drains") /* it has exited, its output has not ended */                \
	X(ENDS, "ends")	    /* TERM was sent */                                          \
	X(KILLED, "killed") /* KILL was sent; the output may bring more */               \
	X(SWEEPS, "sweeps") /* all is known; the last of the group are going */          \
	X(GONE, "gone")

enum run_state {
#define X(name, word) RUN_ST_##name,
	RUN_STATE_TABLE(X)
#undef X
};

struct run {
	unsigned magic;
	enum run_state state;
	struct loop *loop;
	struct proc *proc;
	struct spawner_wait wait;
	void (*on_end)(void *arg, const struct run_end *e); /* NULL: cancelled */
	void *arg;
	char *command, *name;
	struct run_pipe out, err;
	struct timer timer;
	uint32_t kill_ms, drain_ms;
	uint64_t sweep_end_ms;
	bool ends_on_overflow;
	bool exited;
	enum run_how how;
	int status;
	char error[256];
};

static void
on_run_destroy(void *arg)
{
	struct run *r = arg;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	r->magic = 0;
	r->out.magic = r->err.magic = 0;
	mem_free(r->command);
	mem_free(r->name);
	mem_free(r);
}

static void
run_set_state(struct run *r, enum run_state next, const char *reason)
{
	static const char *const words[] = {
#define X(name, word) word,
	    RUN_STATE_TABLE(X)
#undef X
	};

	LOG_DEBUG("run", "state", "of=%s pid=%d from=%s to=%s reason=%s",
	    LOG_ESC(r->name, strlen(r->name)), (int)proc_pid(r->proc), words[r->state],
	    words[next], LOG_ESC(reason, strlen(reason)));
	r->state = next;
}

/* No callback of others comes after. */
static void
run_let_go(struct run *r, const char *reason)
{
	run_set_state(r, RUN_ST_GONE, reason);
	run_pipe_close(&r->out);
	run_pipe_close(&r->err);
	timer_fini(&r->timer);
	spawner_wait_remove(&r->wait);
	proc_free(r->proc);
	r->proc = NULL;
}

static void
run_free(struct run *r)
{
	run_pipe_drop(&r->out);
	run_pipe_drop(&r->err);
	loop_defer_free(r->loop, on_run_destroy, r);
}

static void
run_settle(struct run *r)
{
	struct run_end e = {.how = r->how,
	    .status = r->status,
	    .out = run_pipe_text(&r->out),
	    .err = run_pipe_text(&r->err),
	    .out_total = r->out.total,
	    .error = r->error};

	run_let_go(r, "over");
	if (r->on_end)
		r->on_end(r->arg, &e);
	run_free(r);
}

/* Whatever is left of the group has no business any more. */
static void
run_sweep(struct run *r)
{
	run_pipe_close(&r->out);
	run_pipe_close(&r->err);
	run_set_state(r, RUN_ST_SWEEPS, r->exited ? "over" : "not ended by KILL");
	if (!proc_signal_group(r->proc, SIGKILL)) {
		run_settle(r);
		return;
	}
	r->sweep_end_ms = clock_now_ms() + RUN_SWEEP_MS;
	timer_set(&r->timer, RUN_SWEEP_STEP_MS);
}

static void
run_sweep_more(struct run *r)
{
	bool is_gone = proc_group_is_gone(r->proc);

	if (!is_gone && clock_now_ms() < r->sweep_end_ms) {
		timer_set(&r->timer, RUN_SWEEP_STEP_MS);
		return;
	}
	if (!is_gone)
		LOG_LIMITED(LOG_LV_WARNING, "run", "not gone", "of=%s pid=%d",
		    LOG_ESC(r->name, strlen(r->name)), (int)proc_pid(r->proc));
	run_settle(r);
}

static void
run_sweep_if_over(struct run *r)
{
	if (r->exited && r->out.fd < 0 && r->err.fd < 0 && r->state < RUN_ST_SWEEPS)
		run_sweep(r);
}

static void
run_stop(struct run *r, const char *reason)
{
	run_set_state(r, RUN_ST_ENDS, reason);
	(void)proc_signal_group(r->proc, SIGTERM);
	/* A stopped process takes TERM only when it goes on. */
	(void)proc_signal_group(r->proc, SIGCONT);
	timer_set(&r->timer, r->kill_ms);
}

static void
run_out_of_time(struct run *r)
{
	r->how = RUN_TIMED_OUT;
	run_stop(r, "time");
}

static void
run_kill(struct run *r)
{
	run_set_state(r, RUN_ST_KILLED, "time");
	(void)proc_signal_group(r->proc, SIGKILL);
	timer_set(&r->timer, r->drain_ms);
}

static void
on_deadline(void *arg)
{
	static void (*const acts[])(struct run * r) = {
	    [RUN_ST_RUNS] = run_out_of_time,
	    [RUN_ST_DRAINS] = run_sweep,
	    [RUN_ST_ENDS] = run_kill,
	    [RUN_ST_KILLED] = run_sweep,
	    [RUN_ST_SWEEPS] = run_sweep_more,
	};
	struct run *r = arg;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC && r->state < RUN_ST_GONE);
	acts[r->state](r);
}

static void
on_exec_failed(void *arg, enum spawn_step step, int errnum)
{
	struct run *r = arg;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	r->how = RUN_NOT_STARTED;
	snprintf(r->error, sizeof(r->error), "%s: %s: %s", spawn_step_text(step),
	    r->command, strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "?");
}

static void
on_exit_status(void *arg, int status)
{
	struct run *r = arg;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	r->exited = true;
	if (r->how == RUN_EXITED) {
		r->how = WIFSIGNALED(status) ? RUN_SIGNALED : RUN_EXITED;
		r->status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	}
	if (r->state == RUN_ST_RUNS) {
		run_set_state(r, RUN_ST_DRAINS, "exit");
		timer_set(&r->timer, r->drain_ms);
	}
	run_sweep_if_over(r);
}

void
run_on_pipe(struct run *r)
{
	bool is_over_max = r->ends_on_overflow && r->out.total > r->out.max;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	if (is_over_max && (r->how == RUN_EXITED || r->how == RUN_SIGNALED)) {
		r->how = RUN_OVERFLOWED;
		r->status = 0;
		if (r->state < RUN_ST_ENDS)
			run_stop(r, "too much output");
	}
	run_sweep_if_over(r);
}

/* The owner of what it would tell is going: nothing may be left running. */
static void
on_spawner_end(void *arg)
{
	struct run *r = arg;

	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	run_let_go(r, "no spawner");
	run_free(r);
}

static struct run *
run_new(struct loop *l, const struct run_opts *o)
{
	struct run *r = mem_xcalloc(1, sizeof(*r));
	const char *command = o->spec.argv[0];

	r->magic = RUN_MAGIC;
	r->loop = l;
	r->how = RUN_EXITED;
	r->kill_ms = o->kill_ms;
	r->drain_ms = o->drain_ms ? o->drain_ms : RUN_DRAIN_MS;
	r->ends_on_overflow = o->ends_on_overflow;
	r->command = mem_xstrdup(command);
	r->name = mem_xstrdup(o->spec.name ? o->spec.name : command);
	run_pipe_init(&r->out, r, o->out_max, false);
	run_pipe_init(&r->err, r, o->err_max, true);
	timer_init(&r->timer, l, on_deadline, r);
	return r;
}

/* False: errno, error has words. */
static bool
run_spawn(struct run *r, struct spawner *sp, const struct run_opts *o,
    struct spawn_fds *fds, struct mv_errtext *error)
{
	static const struct spawn_cb cb = {on_exec_failed, on_exit_status};
	struct spawn_spec spec = o->spec;
	int input = -1, null = -1, saved;
	bool ok = true;

	spec.merges_err = o->merges;
	if (o->input_to != RUN_INPUT_NONE)
		ok = (input = run_input_open(&o->input)) >= 0;
	if (o->input_to != RUN_INPUT_STDIN)
		ok = ok && (null = run_null_open()) >= 0;
	spec.stdin_fd = o->input_to == RUN_INPUT_STDIN ? input : null;
	spec.extra_fd = o->input_to == RUN_INPUT_FD3 ? input : -1;
	if (!ok)
		mv_errtext_set(error, "cannot make the input of %s: %s", r->command,
		    strerrordesc_np(errno));
	else if (spawner_start(sp, &spec, &cb, r, &r->proc, fds) != MV_OK) {
		ok = false;
		mv_errtext_set(error, "%s: %s: %s", spawn_step_text(SPAWN_STEP_NONE),
		    r->command, strerrordesc_np(errno));
	}
	saved = errno;
	if (input >= 0)
		close(input);
	if (null >= 0)
		close(null);
	errno = saved;
	return ok;
}

struct run *
run_start(struct loop *l, struct spawner *sp, const struct run_opts *o,
    void (*on_end)(void *arg, const struct run_end *e), void *arg,
    struct mv_errtext *error)
{
	struct spawn_fds fds = {-1, -1, -1};
	struct run *r = run_new(l, o);

	if (!run_spawn(r, sp, o, &fds, error)) {
		int saved = errno;

		timer_fini(&r->timer);
		on_run_destroy(r);
		errno = saved;
		return NULL;
	}
	r->on_end = on_end;
	r->arg = arg;
	run_pipe_open(&r->out, l, fds.out);
	run_pipe_open(&r->err, l, fds.err);
	spawner_wait_add(sp, &r->wait, on_spawner_end, r);
	if (o->timeout_ms)
		timer_set(&r->timer, o->timeout_ms);
	return r;
}

void
run_end_early(struct run *r)
{
	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	if (r->state == RUN_ST_GONE)
		return;
	r->how = RUN_CANCELLED;
	/* It is read on: the end of the output tells that all of the group are done
	 * before KILL would. */
	run_pipe_drop(&r->out);
	run_pipe_drop(&r->err);
	r->ends_on_overflow = false;
	if (r->state < RUN_ST_ENDS)
		run_stop(r, "cancelled");
}

void
run_cancel(struct run *r)
{
	MCPVISOR_ASSERT(r->magic == RUN_MAGIC);
	r->on_end = NULL;
	r->arg = NULL;
	run_end_early(r);
}
