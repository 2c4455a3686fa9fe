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
void state_close(struct state *s);
/* The key of this folder: shared by all processes that use it, made by the first. */
void state_key(struct state *s, struct mac_key *key);
/* Remembers, until it expires, that a session must not come back. */
void state_mark_gone(void *state, uint64_t serial, uint64_t expires_s);
/* Also sees what other processes have marked. */
bool state_is_gone(void *state, uint64_t serial);

#endif
