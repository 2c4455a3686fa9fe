/* SPDX-License-Identifier: MIT */
/* What the files of a child share, and what its unit test walks. */
#ifndef MCPVISOR_CHILD_PRIV_H
#define MCPVISOR_CHILD_PRIV_H

#include "mcpvisor/caps.h"
#include "mcpvisor/child.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"

/* X(EVENT, name) */
#define CHILD_EVENTS(X)                                                                  \
	X(START, "start")                                                                \
	X(STOP, "stop")                                                                  \
	X(RESTART, "restart")                                                            \
	X(FAIL, "fail")                                                                  \
	X(EXEC_FAILED, "exec_failed")                                                    \
	X(EXITED, "exited")                                                              \
	X(OUTPUT_ENDED, "output_ended")                                                  \
	X(DEADLINE, "deadline")

enum child_event {
#define X(id, name) CHILD_EV_##id,
	CHILD_EVENTS(X)
#undef X
	    CHILD_EV_MAX
};

enum child_cell { CHILD_CELL_HANDLER, CHILD_CELL_IGNORE, CHILD_CELL_BUG };

/* Runs the cell of the current state. A bug cell ends the program. */
void child_dispatch(struct child *c, enum child_event ev);
enum child_cell child_cell_kind(enum child_state st, enum child_event ev);

/* stderr of one process after the other: always drained, logged line by line,
 * memory constant whatever is written to it. */
struct child_stderr {
	unsigned magic;
	struct loop *loop;
	const char *name;
	struct watch watch;
	int fd;	       /* -1: none */
	bool skipping; /* in the rest of a line that was already logged cut */
	size_t len;    /* of line */
	size_t last_len;
	struct log_site site; /* outlives the process: a crash loop is one flood */
	char line[CAP_LOG_VALUE_BYTES + 1]; /* one over, so that the log marks the cut */
	char last[256];
};

void child_stderr_init(struct child_stderr *s, struct loop *l, const char *name);
/* Takes fd, makes it non-blocking, forgets the last line of the process before. */
void child_stderr_open(struct child_stderr *s, int fd);
/* Takes what can be read without waiting, bounded, and closes. Fine when closed. */
void child_stderr_close(struct child_stderr *s);

#define CHILD_STATUS_NONE (-1) /* no status of waitpid is negative */

/* The facts that child_end_describe puts into words. */
struct child_fate {
	const struct spawn_spec *spec;
	enum mv_err err;      /* MV_SPAWN, MV_DIED, MV_STOPPING, MV_PROTOCOL */
	enum mv_err fork_err; /* MV_SPAWN: not MV_OK when there was no process */
	enum spawn_step step; /* MV_SPAWN: where the new process failed */
	int errnum;
	int status;
	const char *last; /* last line of stderr, not terminated */
	size_t last_len;
};
void child_end_describe(struct child_end *end, const struct child_fate *f);

#define CHILD_MAGIC 0x6368696cu

enum child_rung {
	CHILD_RUNG_NONE,
	CHILD_RUNG_INPUT, /* stdin closed */
	CHILD_RUNG_TERM,
	CHILD_RUNG_KILL
};

struct child {
	unsigned magic;
	struct loop *loop;
	struct spawner *spawner;
	struct child_opts o;
	struct child_cb cb;
	void *arg;
	enum child_state state;
	uint64_t since_ms;    /* when the state was entered */
	uint64_t transitions; /* tells code after a callback whether it is still true */
	bool wanted;	      /* up; apart from what is */
	struct timer deadline;
	struct backoff backoff;
	uint32_t delay_ms;  /* of the BACKOFF to come */
	uint64_t resume_ms; /* end of BACKOFF */
	uint32_t restarts;
	struct child_end end;
	/* Of the current process */
	struct proc *proc; /* NULL also when its status was given up */
	pid_t pid;
	uint64_t up_ms, ready_ms;
	bool ready;
	enum child_rung rung;
	uint64_t rung_ms;	/* when the rung was entered */
	struct child_fate fate; /* err says why it ends: of itself, asked, no exec */
	struct child_stderr err;
};

/* child.c: the one writer of state. May call back (on_close_input). */
void child_set_state(struct child *c, enum child_state next, const char *reason);
/* Its entry action for BACKOFF, to be called when that follows itself. */
void child_enter_backoff(struct child *c);

/* child_run.c: a process of a child from its fork to the last of it. */
void child_spawn(struct child *c, const char *reason);
void child_respawn(struct child *c, const char *reason); /* by ourselves: counted */
void child_settle(struct child *c);
/* Everything of the process goes, but for the facts about it. */
void child_let_go(struct child *c);
void child_give_up(struct child *c);

#endif
