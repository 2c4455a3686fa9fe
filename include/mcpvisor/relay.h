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

/* Connects to the socket at path. MV_SYSTEM with *et. rfd and wfd are taken. done comes
 * once, when both directions have ended; ok says whether the daemon's side ended after
 * ours. */
enum mv_err relay_new(struct loop *l, const char *path, int rfd, int wfd,
    void (*done)(void *arg, bool ok), void *arg, struct relay **out,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void relay_free(struct relay *r);

#endif
