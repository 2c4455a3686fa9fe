/* SPDX-License-Identifier: MIT */
/*
 * The process under test and the two pipes to it.
 */
#ifndef MCPVISOR_BENCH_PEER_H
#define MCPVISOR_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench_json.h"

#include "mcpvisor/buf.h"

struct peer {
	pid_t pid;
	int rfd, wfd;
	struct buf in, out; /* append to out; peer_turn writes it */
	size_t in_off;	    /* bytes of in that were handed out */
	size_t in_seen;	    /* bytes of in without a newline from in_off on */
	size_t out_off;
	bool ended;	   /* it reads or writes no more */
	uint64_t read_ns;  /* when the last read brought something */
	uint64_t bytes;	   /* read in all */
	uint64_t limit_ns; /* when patience ends */
};

/* Starts argv; its stderr is ours or, when quiet, nothing. False with a message on
 * stderr. */
bool peer_start(struct peer *p, char *const *argv, bool quiet, unsigned limit_s);
/* Writes what it takes and reads what there is, waiting for something to read. False
 * when no more comes: its end, or the end of patience. */
bool peer_turn(struct peer *p);
/* The next whole line that was read; valid until the next turn. */
bool peer_next_line(struct peer *p, struct piece *line);
/* Closes its input and waits for it. True if it ended by itself, with status 0. */
bool peer_end(struct peer *p);

#endif
