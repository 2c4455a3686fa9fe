/* SPDX-License-Identifier: MIT */
/*
 * spawn.h without processes: the test says what each of them does. The pipes are
 * real, so that what reads them is tested too.
 */
#ifndef FAKE_SPAWN_H
#define FAKE_SPAWN_H

#include "mcpvisor/spawn.h"

/* The next n starts fail with this errno. */
void fake_spawner_fail(struct spawner *sp, unsigned n, int errnum);
/* Obedient processes die of TERM at the end of the turn; all die of KILL. */
void fake_spawner_set_obedient(struct spawner *sp, bool obedient);
/* Processes that even KILL does not end. */
void fake_spawner_set_unkillable(struct spawner *sp, bool unkillable);
unsigned fake_spawner_starts(const struct spawner *sp); /* that worked */
unsigned fake_spawner_live(const struct spawner *sp);	/* not yet proc_free'd */
/* The newest, gone or not; valid until spawner_free. NULL: none yet. */
struct proc *fake_spawner_last(const struct spawner *sp);

/* The process does something. Both call back at once. */
void fake_proc_fail_exec(struct proc *p, enum spawn_step step, int errnum);
void fake_proc_exit(struct proc *p, int status); /* as of waitpid */
/* Its ends of the pipes; -1 when closed. It closes them itself, also after its exit
 * (somebody in its group may hold them). */
int fake_proc_stdin(const struct proc *p);
int fake_proc_stdout(const struct proc *p);
int fake_proc_stderr(const struct proc *p);
void fake_proc_close(struct proc *p, int fd);
void fake_proc_close_all(struct proc *p);
/* Somebody else in its group lives on. */
void fake_proc_set_group_alive(struct proc *p, bool alive);
unsigned fake_proc_signals(const struct proc *p, int signo); /* how often it came */
bool fake_proc_is_freed(const struct proc *p);

#endif
