/* SPDX-License-Identifier: MIT */
/*
 * Child processes: fork, exec without a shell, process groups, guards, and the
 * only place that reaps.
 */
#ifndef MCPVISOR_SPAWN_H
#define MCPVISOR_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/err.h"

struct loop;
struct spawner;
struct proc;

/* Resource limits, hard ones too; 0: none. Lower ones of ours stay. */
struct spawn_limits {
	uint64_t cpu_s, as_bytes, nofile, nproc, fsize_bytes;
};

/* Whom the command runs as. Capabilities that we would pass on are given up. */
struct spawn_user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* all the others; NULL: none */
	size_t n_groups;
};

/* Borrowed until the start returns. What is 0 or NULL is not asked for. */
struct spawn_spec {
	const char *name;	 /* for the log */
	const char *const *argv; /* argv[0] is looked up in path if it has no slash */
	const char *const *envp; /* the whole environment, NULL-terminated */
	const char *path;	 /* the child's PATH; NULL: a default */
	const char *cwd;	 /* NULL: ours; changed to before the look-up */
	int stdin_fd;		 /* above 2: its stdin in place of a pipe */
	int extra_fd;		 /* above 2: its descriptor 3 */
	bool merges_err;	 /* its stderr is its stdout */
	bool no_terminal;	 /* it cannot open /dev/tty */
	bool no_new_privs;
	bool has_umask;
	mode_t umask;
	const struct spawn_limits *limits;
	const struct spawn_user *user; /* cwd and the look-up are with its rights */
};

struct spawn_fds {
	int in;	 /* we write: the child's stdin; -1 with a stdin_fd */
	int out; /* we read: its stdout */
	int err; /* we read: its stderr; -1 with merges_err */
};

enum spawn_step {
	SPAWN_STEP_NONE,
	SPAWN_STEP_SETUP, /* prctl, setpgid, dup2, setrlimit */
	SPAWN_STEP_USER,  /* setgroups, setgid, setuid */
	SPAWN_STEP_CWD,
	SPAWN_STEP_EXEC
};
/* "cannot execute"; for NONE: "cannot create a process". */
const char *spawn_step_text(enum spawn_step step);

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
/* First calls whoever waits for that; then no proc may be left. */
void spawner_free(struct spawner *sp);

/* For those that have a proc and no owner who would end them in time: fn frees it, with
 * the last turn of the loop over. A member of its owner. */
struct spawner_wait {
	struct spawner_wait *next, **prev;
	void (*fn)(void *arg);
	void *arg;
};
void spawner_wait_add(
    struct spawner *sp, struct spawner_wait *w, void (*fn)(void *arg), void *arg);
void spawner_wait_remove(struct spawner_wait *w);

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
/* After a KILL: nobody of the group runs any more, the guard included. */
bool proc_group_is_gone(const struct proc *p);
/* KILLs what is left of the group, guard included, and forgets it; what has come to us
 * and lives on in a session of its own is logged once, after the turn ("left running").
 * No callback comes after. Allowed inside callbacks. The exit status of a live child is
 * reaped silently later. */
void proc_free(struct proc *p);

#endif
