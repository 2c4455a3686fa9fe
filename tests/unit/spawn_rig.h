/* SPDX-License-Identifier: MIT */
/* A loop with a bound on each wait, a spawner, and one real process at a time. */
#ifndef CHECK_SPAWN_RIG_H
#define CHECK_SPAWN_RIG_H

#include "mcpvisor/spawn.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#define BOUND_MS 20000

static struct loop *l;
static struct spawner *sp;
static struct proc *proc;
static struct spawn_fds fds;
static struct timer bound, tick;
static struct buf out;
static struct watch out_watch;
static int exits, failures, status, failed_errno;
static enum spawn_step failed_step;
static bool free_on_exit, out_ended;
static bool (*condition)(void);

static const char *const env[] = {"A=1", "PATH=/usr/bin:/bin", NULL};

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static inline void
on_tick(void *arg)
{
	(void)arg;
	if (condition())
		loop_stop(l, 0);
	else
		timer_set(&tick, 5);
}

static inline void
wait_until(bool (*fn)(void))
{
	condition = fn;
	timer_set(&tick, 0);
	loop_run(l);
}

static inline bool
has_exited(void)
{
	return exits > 0;
}

static inline bool
all_is_told(void)
{
	return exits > 0 && out_ended;
}

static inline bool
group_is_gone(void)
{
	return !proc_group_is_alive(proc);
}

/* Zombies included: nothing of ours is left to reap. */
static inline bool
no_child_left(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 &&
	       errno == ECHILD;
}

static inline bool
has_line(void)
{
	return out.len && memchr(out.data, '\n', out.len);
}

static inline void
on_exec_failed(void *arg, enum spawn_step step, int errnum)
{
	(void)arg;
	ck_assert_int_eq(exits, 0);
	failures++;
	failed_step = step;
	failed_errno = errnum;
}

static inline void
on_exit_status(void *arg, int st)
{
	ck_assert_ptr_eq(arg, &proc);
	exits++;
	status = st;
	ck_assert(proc_has_exited(proc));
	if (free_on_exit) {
		proc_free(proc);
		proc = NULL;
	}
}

static inline void
on_output(void *arg, unsigned ready)
{
	char text[4096];
	ssize_t n = read(fds.out, text, sizeof(text));

	(void)arg;
	(void)ready;
	if (n > 0) {
		buf_add(&out, text, (size_t)n);
		return;
	}
	out_ended = true;
	watch_want(&out_watch, 0);
}

static const struct spawn_cb cb = {on_exec_failed, on_exit_status};

static inline void
start_spec(const struct spawn_spec *spec)
{
	enum mv_err err = spawner_start(sp, spec, &cb, &proc, &proc, &fds);

	ck_assert_int_eq(err, MV_OK);
	watch_init(&out_watch, l, fds.out, on_output, NULL);
	watch_want(&out_watch, WATCH_READ);
}

static inline void
start_env(const char *script, const char *const *envp)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const struct spawn_spec spec = {.name = "t", .argv = argv, .envp = envp};

	start_spec(&spec);
}

static inline void
start(const char *script)
{
	start_env(script, env);
}

static inline void
setup(void)
{
	l = loop_new();
	sp = spawner_new(l);
	ck_assert_ptr_nonnull(sp);
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	timer_init(&tick, l, on_tick, NULL);
	buf_init(&out, 1u << 20);
	proc = NULL;
	fds = (struct spawn_fds){-1, -1, -1};
	exits = failures = status = failed_errno = 0;
	failed_step = SPAWN_STEP_NONE;
	free_on_exit = out_ended = false;
}

static inline void
stop(void)
{
	const int all[] = {fds.in, fds.out, fds.err};

	proc_free(proc);
	proc = NULL;
	watch_fini(&out_watch);
	for (size_t i = 0; i < 3; i++)
		if (all[i] >= 0)
			close(all[i]);
	fds = (struct spawn_fds){-1, -1, -1};
	wait_until(no_child_left);
}

static inline void
teardown(void)
{
	stop();
	spawner_free(sp);
	timer_fini(&bound);
	timer_fini(&tick);
	buf_fini(&out);
	loop_free(l);
}

static inline int
count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#include "suite_rig.h"

#endif
