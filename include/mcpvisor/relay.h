/* SPDX-License-Identifier: MIT */
/*
 * "connect": standard input and output in front, the unix socket of a running daemon
 * behind, bytes as they are.
 */
#ifndef MCPVISOR_RELAY_H
#define MCPVISOR_RELAY_H

#include <stdbool.h>

#include "mcpvisor/err.h"

struct loop;
struct relay;

struct relay_opts {
	const char *path; /* of the daemon's socket */
	int rfd, wfd;	  /* the client's; taken */
	/* Once, when both directions have ended; ok says whether the daemon's side ended
	 * after ours. */
	void (*done)(void *arg, bool ok);
	void *arg;
};
/* Connects to the socket. MV_SYSTEM with *et. */
enum mv_err relay_new(struct loop *l, const struct relay_opts *o, struct relay **out,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void relay_free(struct relay *r);

#endif
