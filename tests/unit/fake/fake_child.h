/* SPDX-License-Identifier: MIT */
/*
 * child.h without a process: the test says when it ends, the fake keeps the states
 * and asks the owner as the real one does.
 */
#ifndef FAKE_CHILD_H
#define FAKE_CHILD_H

#include "mcpvisor/child.h"

/* The next n starts make no process. */
void fake_child_refuse(struct child *c, unsigned n);
/* Deaths that count until it is parked; 0: never. */
void fake_child_set_budget(struct child *c, unsigned deaths);
/* The process is gone and its output has ended; text as of child_end. What comes next
 * is decided as the real one decides it. */
void fake_child_die(struct child *c, const char *text);
/* It would not go: the owner has to treat its output as ended. */
void fake_child_force(struct child *c);
/* The pause of the back-off is over. */
void fake_child_pause_over(struct child *c);

unsigned fake_child_ups(const struct child *c);	    /* processes so far */
unsigned fake_child_fails(const struct child *c);   /* child_fail, by effect */
unsigned fake_child_readies(const struct child *c); /* child_note_ready */
unsigned fake_child_counted(const struct child *c); /* deaths that were tallied */
unsigned fake_child_ends(const struct child *c);    /* child_output_ended */
const struct child_ladder *fake_child_ladder(const struct child *c);
const struct child_opts *fake_child_opts(const struct child *c);

#endif
