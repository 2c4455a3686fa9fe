/* SPDX-License-Identifier: MIT */
/* Between the parent's side of spawn and what runs after the fork. */
#ifndef MCPVISOR_SPAWN_PRIV_H
#define MCPVISOR_SPAWN_PRIV_H

#include "mcpvisor/loop.h"
#include "mcpvisor/spawn.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define SPAWNER_MAGIC 0x73707772u
#define PROC_MAGIC    0x70726f63u
#define SPAWN_BUCKETS 256u

struct proc {
	unsigned magic;
	struct spawner *sp;
	struct spawn_cb cb;
	void *arg;
	char *name;
	pid_t pid, guard; /* pid is the group's number too */
	int status_fd;	  /* -1: the exec has worked or its failure is told */
	int guard_fd;
	struct watch status;
	bool exited, guard_reaped, killed, dead;
};

/* A process that we forked or have told of. */
struct pidrec {
	struct pidrec *next;
	pid_t pid;
	struct proc *proc; /* NULL: its proc was freed, reap in silence */
	bool is_guard;
};

struct spawner {
	unsigned magic;
	struct loop *loop;
	struct pidrec *recs[SPAWN_BUCKETS]; /* by pid: a fleet has thousands */
	struct rlimit files;		    /* as we found it: children keep that */
	struct spawner_wait *waits;	    /* for the end */
	struct deferred look;
	char *after; /* the proc that ended last before the look; NULL: none has */
	bool dead;
};

/* What a child says over its status socket when it cannot become the command. */
struct spawn_report {
	enum spawn_step step;
	int errnum;
};

/* All that the child needs, ready before the fork. */
struct spawn_plan {
	const struct spawn_spec *spec;
	char **candidates; /* paths to try, NULL-terminated */
	/* The child's ends; all above 2. */
	int in, out, err, status;
	pid_t parent;
	const struct rlimit *files; /* its limit of descriptors */
};

/* spawn_recs.c */
void spawner_call_waits(struct spawner *sp);
struct pidrec *spawner_find(struct spawner *sp, pid_t pid);
void spawner_register(struct spawner *sp, pid_t pid, struct proc *p, bool is_guard);
void spawner_forget(struct spawner *sp, struct pidrec *r);
/* What p has forked is reaped in silence from now on. */
void spawner_disown(struct spawner *sp, const struct proc *p);
void spawner_forget_all(struct spawner *sp); /* no proc may be left */
/* A process that nobody has registered is about to be reaped. */
void spawner_note_stray(struct spawner *sp, pid_t pid);
/* Tells of what lives on in a session of its own, if a look was asked for. */
void spawner_look(struct spawner *sp);
/* At the end of the turn. Takes after, a name. */
void spawner_look_later(struct spawner *sp, char *after);

/* The paths that argv[0] may mean, in the order of path; ends with
 * spawn_candidates_free. */
char **spawn_candidates(const struct spawn_spec *spec);
void spawn_candidates_free(char **candidates);

/* The child, signals blocked. Waits for one byte on the status socket before it
 * execs, so that no command runs without its guard. */
_Noreturn void spawn_child_run(const struct spawn_plan *plan);
/* The guard, signals blocked. fd is its end of the pipe that tells that we are
 * gone; before is the group it was forked in, which it leaves alone. */
_Noreturn void spawn_guard_run(int fd, pid_t before);

/* Closes fds from low on. */
void spawn_close_from(unsigned low);

/* Neither allocates nor touches memory of others: the guard uses both. */
struct spawn_stat {
	char state;
	pid_t pgid;
	char comm[32];
};
bool spawn_stat_read(pid_t pid, struct spawn_stat *st);
/* Is a process other than except, and not a zombie, in the group? True also if
 * /proc cannot say. */
bool spawn_group_has_others(pid_t pgid, pid_t except);
/* Visits our children, those that came to us as orphans and zombies included; nobody
 * where the kernel does not tell. */
void spawn_each_child(void (*fn)(void *arg, pid_t pid), void *arg);

#endif
