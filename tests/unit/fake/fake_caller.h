/* SPDX-License-Identifier: MIT */
/* Somebody who makes calls of a fleet, and what came of the last one. */
#ifndef FAKE_CALLER_H
#define FAKE_CALLER_H

#include "mcpvisor/call.h"

#include "fake/fake_fleet.h"

struct caller {
	struct call c;
	struct gateway_observer owner;
	unsigned done, progress, logs;
	struct outcome last; /* kind and err; the rest is gone */
	char body[512];	     /* of the last progress or end */
	char owner_name[32]; /* who was to blame at the end; "nobody" */
};

/* Starts a call anew with client info {"name":"c","version":"1"} and level notice. */
enum mv_err caller_start(
    struct fleet *f, struct caller *k, const char *method, const char *params);
/* The same by somebody who is shown that view. */
enum mv_err caller_start_in(struct fleet *f, struct caller *k, unsigned view,
    const char *method, const char *params);
/* By one who is shown the first view, and it has to be taken. */
void caller_begin(
    struct fleet *f, struct caller *k, const char *method, const char *params);

#endif
