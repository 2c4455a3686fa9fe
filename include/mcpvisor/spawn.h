/* SPDX-License-Identifier: MIT */
/*
 * Child processes: fork, exec without a shell, process groups, guards, and the
 * only place that reaps.
 */
#ifndef MCPVISOR_SPAWN_H
#define MCPVISOR_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mcpvisor/err.h"

struct loop;
struct spawner;
struct proc;

struct spawn_spec {
	const char *name;	 /* for the log */
	const char *const *argv; /* argv[0] is looked up in path if it has no slash */
	const char *const *envp; /* the whole environment, NULL-terminated */
	const char *path;	 /* the child's PATH; NULL: a default */
	const char *cwd;	 /* NULL: ours; changed to before the look-up */
};

struct spawn_fds {
	int in;	 /* we write: the child's stdin */
	int out; /* we read: its stdout */
	int err; /* we read: its stderr */
};

enum spawn_step {
	SPAWN_STEP_NONE,
	SPAWN_STEP_SETUP, /* prctl, setpgid, dup2 */
	SPAWN_STEP_CWD,
	SPAWN_STEP_EXEC
};

struct spawn_cb {
	/* The child could not become the command; its exit follows. Always comes
	 * before on_exit. */
	void (*on_exec_failed)(void *arg, enum spawn_step step, int errnum);
	/* Status as of waitpid. Comes once; the group may still have members. */
	void (*on_exit)(void *arg, int status);
};

/* One a process. Makes us a subreaper, handles SIGCHLD. Processes that come to
 * us as orphans are reaped, counted and logged once ("stray").
 * NULL: SIGCHLD is taken. */
struct spawner *spawner_new(struct loop *l);
void spawner_free(struct spawner *sp); /* no proc may be left */

/* Forks. On success *fds are the caller's (close-on-exec, not yet
 * non-blocking). Fails with MV_SYSTEM and errno set (EAGAIN, EMFILE, ...), with
 * nothing left behind. The child: its own process group, SIGTERM when we die,
 * default signal dispositions, empty mask, no other descriptor, cwd, exec. A guard
 * process in the same group (so that the group's number stays taken) ends the
 * group, TERM then KILL, when we are gone. No callback before return. */
enum mv_err spawner_start(struct spawner *sp, const struct spawn_spec *spec,
    const struct spawn_cb *cb, void *arg, struct proc **out,
    struct spawn_fds *fds) MCPVISOR_MUST_CHECK;

pid_t proc_pid(const struct proc *p);
bool proc_has_exited(const struct proc *p);
/* To the whole group; the guard blocks all but KILL. True if anybody else was there. */
bool proc_signal_group(struct proc *p, int signo);
/* True while a process other than the guard is in the group (looks at /proc). */
bool proc_group_is_alive(const struct proc *p);
/* KILLs what is left of the group, guard included, and forgets it; what has come to us
 * and lives on in a session of its own is logged once, after the turn ("left running").
 * No callback comes after. Allowed inside callbacks. The exit status of a live child is
 * reaped silently later. */
void proc_free(struct proc *p);

#endif
