/* SPDX-License-Identifier: MIT */
/*
 * What outlives the process: the key that signs session ids, and the sessions that must
 * not come back. Everything here may be missing, unreadable or foreign: then it is made
 * anew, or kept in memory only.
 */
#ifndef MCPVISOR_STATE_H
#define MCPVISOR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/mac.h"

struct state;

/* dir NULL: $STATE_DIRECTORY, else $XDG_STATE_HOME/mcpvisor, else
 * ~/.local/state/mcpvisor. Never fails; what is wrong with the folder is logged once. */
struct state *state_open(const char *dir);
/* The same to look at only: nothing is made, written or touched. */
struct state *state_open_to_look(const char *dir);
void state_close(struct state *s);
/* The key of this folder: shared by all processes that use it, made by the first. */
void state_key(struct state *s, struct mac_key *key);
/* Remembers, until it expires, that a session must not come back. */
void state_mark_gone(void *state, uint64_t serial, uint64_t expires_s);
/* Also sees what other processes have marked. */
bool state_is_gone(void *state, uint64_t serial);

/* What upstreams remember (upstream_put_memory), a file each, named by the upstream and a
 * keyed digest of its conf's identity: whoever shares this folder and runs the same
 * upstream finds it. */
struct upstream;
/* Gives u what was kept for it, before upstream_start. What is missing, cut, altered,
 * foreign or of another version is left alone and counts as nothing. */
void state_recall(struct state *s, struct upstream *u);
/* Writes what u would say now, to a new name that is then renamed. A folder that cannot
 * be written only costs the warmth. */
void state_remember(struct state *s, const struct upstream *u);
/* Removes what has not been used (recalled or written) for that many days. */
void state_sweep(struct state *s, unsigned keep_days);

#endif
