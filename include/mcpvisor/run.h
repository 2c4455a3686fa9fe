/* SPDX-License-Identifier: MIT */
/*
 * One program run to its end, for one answer: what it writes is collected within bounds,
 * its time is limited, its whole process group is ended with it.
 */
#ifndef MCPVISOR_RUN_H
#define MCPVISOR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/spawn.h"

struct loop;
struct run;

/* Where input goes. */
enum run_input {
	RUN_INPUT_NONE,	 /* stdin is /dev/null */
	RUN_INPUT_STDIN, /* stdin has it, and ends */
	RUN_INPUT_FD3	 /* stdin is /dev/null, descriptor 3 has it */
};

/* Borrowed until run_start returns. */
struct run_opts {
	struct spawn_spec
	    spec; /* without its descriptors and merges_err: those are ours */
	enum run_input input_to;
	struct run_bytes {
		const char *p;
		size_t n;
	} input;	       /* at most CAP_MESSAGE_BYTES */
	bool merges;	       /* stderr into stdout, in the order it was written */
	size_t out_max;	       /* more is read and dropped */
	bool ends_on_overflow; /* the group is ended instead */
	size_t err_max;	       /* the last so many bytes of stderr are kept */
	uint32_t timeout_ms;   /* then TERM to the group; 0: never */
	uint32_t kill_ms;      /* from TERM to KILL, for all of the group */
	uint32_t drain_ms;     /* from its exit to giving up on its output; 0: 1000 */
};

enum run_how {
	RUN_EXITED,	/* status: its exit status */
	RUN_SIGNALED,	/* status: the signal, not ours */
	RUN_TIMED_OUT,	/* we ended it, whatever it then made of that */
	RUN_OVERFLOWED, /* the same, also if it was faster */
	RUN_CANCELLED,	/* run_end_early was called */
	RUN_NOT_STARTED /* error says why; it never ran */
};

struct run_end {
	enum run_how how;
	int status;
	struct run_text {
		const char *p;
		size_t n;
	} out, err;	    /* valid until the callback returns */
	uint64_t out_total; /* bytes that it wrote, kept or not */
	const char *error;  /* for the log; "" if there is none */
};

/* Starts it. on_end comes once, never before this returns, when the program is over and
 * its output has ended or was given up: nothing of its group runs then (but what the
 * kernel cannot end within a second of KILL: that is logged). The run is gone after it.
 * NULL: too much input, no memory, or no process could be made (errno, error has words):
 * nothing happened. */
struct run *run_start(struct loop *l, struct spawner *sp, const struct run_opts *o,
    void (*on_end)(void *arg, const struct run_end *e), void *arg,
    struct mv_errtext *error);
/* TERM now, KILL after kill_ms: nobody wants what it writes, which is dropped. on_end
 * comes when it is over. */
void run_end_early(struct run *r);
/* The same in the background; no callback comes, nothing is kept.
 * Fine inside on_end, and on a run that is being ended for its time. What is left when
 * the spawner is freed is killed there, runs that were not cancelled included: theirs
 * is no callback either. */
void run_cancel(struct run *r);

#endif
