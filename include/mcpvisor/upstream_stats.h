/* SPDX-License-Identifier: MIT */
/* What is counted of an upstream. */
#ifndef MCPVISOR_UPSTREAM_STATS_H
#define MCPVISOR_UPSTREAM_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/outcome.h"

/* Counts since it was made. */
struct upstream_stats {
	uint64_t calls;			  /* that came, refused ones too */
	uint64_t returned;		  /* answered, by a result or an error */
	uint64_t rpc_errors, tool_errors; /* of those: JSON-RPC errors, isError results */
	uint64_t
	    labels[LABEL_REASON_MAX]; /* results of tools, by what was made of them */
	uint64_t answers[ANSWER_MAX]; /* those that are no errors, by their answer */
	uint64_t failed;	      /* ended without an answer */
	uint64_t timeouts, busy;      /* of those */
	uint64_t cancelled;
	uint64_t noise_lines;
	uint32_t restarts;	      /* starts after the first */
	uint32_t held;		      /* calls that wait now */
	size_t held_bytes, out_bytes; /* that wait for the start, for its reading */
	uint64_t state_ms;	      /* in its state */
	pid_t pid;		      /* 0: none */
	uint64_t next_ms;	      /* until the next start; 0: none is due */
};

#endif
