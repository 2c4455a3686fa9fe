/* SPDX-License-Identifier: MIT */
/* Between a run's life and its descriptors. */
#ifndef MCPVISOR_RUN_PRIV_H
#define MCPVISOR_RUN_PRIV_H

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/run.h"

#define RUN_MAGIC      0x72756e21u
#define RUN_PIPE_MAGIC 0x72756e70u

/* One of its outputs. */
struct run_pipe {
	unsigned magic;
	struct run *run;
	int fd; /* -1: it has ended or was given up */
	struct watch watch;
	struct buf kept;
	size_t max;
	bool is_tail; /* of all that came the last bytes are kept, not the first */
	uint64_t total;
};

void run_pipe_init(struct run_pipe *p, struct run *r, size_t max, bool is_tail);
/* Takes fd; -1: there is none, it has ended. */
void run_pipe_open(struct run_pipe *p, struct loop *l, int fd);
/* What is kept stays. */
void run_pipe_close(struct run_pipe *p);
/* Gives up what is kept, and keeps nothing from then on. */
void run_pipe_drop(struct run_pipe *p);
/* Valid until the next byte or run_pipe_drop. */
struct run_text run_pipe_text(const struct run_pipe *p);

/* run.c hears of it: bytes were taken in, or the end. */
void run_on_pipe(struct run *r);

/* A descriptor above 2 that reads as those bytes, for the child; -1: errno. */
int run_input_open(const struct run_bytes *b);
/* /dev/null, above 2; -1: errno. */
int run_null_open(void);

#endif
