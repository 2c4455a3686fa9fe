/* SPDX-License-Identifier: MIT */
/*
 * The owner of one child, on the fake loop and spawner: does what an owner has to
 * do, counts what it hears and checks the order of it.
 */
#ifndef FAKE_CHILD_OWNER_H
#define FAKE_CHILD_OWNER_H

#include "mcpvisor/child.h"

#include "fake/fake_loop.h"
#include "fake/fake_spawn.h"

#include <stddef.h>

enum owner_do { OWNER_NOTHING, OWNER_START, OWNER_STOP, OWNER_RESTART };

struct owner {
	struct loop *loop;
	struct spawner *spawner;
	struct child *child; /* NULL: freed */
	/* What to do inside callbacks */
	enum child_verdict verdict;
	enum owner_do in_down;
	bool report_in_force; /* child_output_ended inside on_force_close */
	bool free_in_stopped;
	/* What happened */
	unsigned ups, downs, parked, stopped, closes, forces;
	bool up;	/* between on_up and on_down */
	bool out_open;	/* up, and its end was neither seen nor forced */
	bool stop_owed; /* an on_stopped has to come */
	int in, out;
	bool last_wanted;
	struct child_end last_end;
	/* The log */
	size_t lines;
	char log[65536]; /* all lines with newlines, until it is full */
	size_t log_len;
	int fds; /* open descriptors at the beginning */
};

/* Options with the defaults, and a command "tool -v" with PATH /opt/bin. */
struct child_opts owner_opts(void);
struct owner *owner_new(const struct child_opts *o);
/* Brings the child down if need be, frees all; nothing may be left or owed. */
void owner_free(struct owner *o);

void owner_start(struct owner *o);
void owner_stop(struct owner *o);
void owner_restart(struct owner *o);
void owner_fail(struct owner *o);
/* The process ends with this status, and its output with it. */
void owner_proc_dies(struct owner *o, int status);
void owner_output_ends(struct owner *o);
struct proc *owner_proc(const struct owner *o); /* the newest */
enum child_state owner_state(const struct owner *o);
bool owner_log_has(const struct owner *o, const char *text);
void owner_log_clear(struct owner *o);
/* Of waitpid, from an exit status or a signal. */
int status_exit(int code);
int status_signal(int signo);

#endif
