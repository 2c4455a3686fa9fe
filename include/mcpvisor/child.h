/* SPDX-License-Identifier: MIT */
/*
 * One supervised process: started, watched, restarted, stopped by a ladder.
 *
 * State x event is a table in child.c. "Wanted" (child_start, child_stop) is
 * apart from what is. Spec: basic/transports/stdio, Shutdown and Unexpected
 * Termination.
 */
#ifndef MCPVISOR_CHILD_H
#define MCPVISOR_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/backoff.h"
#include "mcpvisor/err.h"
#include "mcpvisor/spawn.h"

struct child;
struct loop;

/* X(STATE, name) */
#define CHILD_STATES(X)                                                                  \
	X(DOWN, "down")	      /* not wanted, nothing there */                            \
	X(BACKOFF, "backoff") /* wanted, waits for its next start */                     \
	X(RUNNING, "running")                                                            \
	X(STOPPING, "stopping") /* on the ladder */                                      \
	X(REAPED, "reaped")	/* status known, output still open */                    \
	X(CLOSED, "closed")	/* output ended, status unknown */                       \
	X(FAILED, "failed")	/* budget spent: parked */

enum child_state {
#define X(id, name) CHILD_ST_##id,
	CHILD_STATES(X)
#undef X
	    CHILD_ST_MAX
};

struct child_ladder {
	uint32_t term_ms;  /* from closing stdin to TERM */
	uint32_t kill_ms;  /* from TERM to KILL */
	uint32_t drain_ms; /* from exit to giving up on its output, and from KILL to
			      giving up on its exit: 1000 */
};
/* 2000, 3000, 1000 */
extern const struct child_ladder child_ladder_defaults;

struct child_opts {
	struct spawn_spec spec; /* name and all strings stay valid as long as the child */
	struct backoff_opts backoff;
	struct child_ladder ladder;
};

enum child_verdict {
	CHILD_COUNT, /* a death like any other: tally and delay */
	CHILD_EXCUSE /* start again at once, not counted; only for MV_DIED */
};

/* How the last process ended, for messages. */
struct child_end {
	enum mv_err err; /* MV_SPAWN, MV_DIED, MV_STOPPING (we ended it), MV_PROTOCOL
			    (child_fail) */
	bool is_clean;	 /* it exited with status 0 */
	char text[512];	 /* "exited with status 1", "killed by signal 9 (Killed)", "cannot
			    execute foo (PATH=...): No such file or directory"; then the
			    last line of stderr in quotes, if any, escaped and cut */
	char told[400];	 /* the same for clients: without PATH, and of stderr only the
			    beginning of a line that is no frame of a stack */
};

struct child_cb {
	/* A process runs. in_fd (its stdin) and out_fd (its stdout) are the
	 * receiver's from here on. */
	void (*on_up)(void *arg, int in_fd, int out_fd);
	/* The ladder's first rung: close the child's stdin (what is queued may
	 * still leave if that takes no waiting). */
	void (*on_close_input)(void *arg);
	/* The drain deadline passed: treat the output as ended, close out_fd. */
	void (*on_force_close)(void *arg);
	/* The process is gone and its output has ended: everything about it is over.
	 * wanted tells whether a new one will be started. May call start, stop and
	 * restart, which decide what comes next; may not free, except after a start
	 * that made no process (no on_up before it). */
	enum child_verdict (*on_down)(
	    void *arg, const struct child_end *end, bool wanted);
	/* No more starts: the budget is spent. Comes after on_down. */
	void (*on_parked)(void *arg);
	/* child_stop has done its work (or nothing was there). Once for the child_stops
	 * since the last one, not at all when child_start or child_restart took them
	 * back; the child may be freed in it. */
	void (*on_stopped)(void *arg);
};

/* Does nothing yet. */
struct child *child_new(struct loop *l, struct spawner *sp, const struct child_opts *o,
    const struct child_cb *cb, void *arg);
/* In DOWN, FAILED or BACKOFF state; fine in any callback that says so. In another one
 * the process is killed and its end is not waited for. */
void child_free(struct child *c);

/* Wanted up. Also ends BACKOFF early and clears FAILED: who starts on use asks for
 * the state first. May call on_up or, when the fork failed, on_down and on_parked
 * before returning. */
void child_start(struct child *c);
/* Wanted down, by the ladder. May call on_stopped before returning. */
void child_stop(struct child *c);
/* Wanted up, but this process has to go (ladder), then start again. reason is
 * logged. */
void child_restart(struct child *c, const char *reason);
/* This process has to go by the ladder and counts as a death: it runs, but is of no use.
 * Without effect on one that is on its way out, or on none. */
void child_fail(struct child *c, const char *reason);
/* Replaces the ladder, also for a stop under way. */
void child_set_ladder(struct child *c, const struct child_ladder *l);
/* Replaces all of it: strings, ladder, back-off. The strings before may go then. What is
 * running or waits for its start goes on; its death is the first that is counted so. */
void child_set_opts(struct child *c, const struct child_opts *o);
/* The owner of out_fd saw its end. Once a process, not after on_down; not needed in
 * on_force_close. */
void child_output_ended(struct child *c);
/* It has become useful: uptime for the back-off counts from here; an exit with
 * status 0 after this is no crash and restarts after the base delay. */
void child_note_ready(struct child *c);

enum child_state child_state(const struct child *c);
const char *child_state_text(enum child_state st);
pid_t child_pid(const struct child *c); /* 0: none */
uint32_t child_restarts(const struct child *c);
/* Milliseconds until the next start; 0 unless in BACKOFF. */
uint64_t child_next_ms(const struct child *c);
const struct child_end *child_last_end(const struct child *c); /* err MV_OK: none yet */

#endif
