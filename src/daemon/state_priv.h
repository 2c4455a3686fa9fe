/* SPDX-License-Identifier: MIT */
/* Shared by state.c, state_gone.c and state_lists.c. */
#ifndef MCPVISOR_STATE_PRIV_H
#define MCPVISOR_STATE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/idmap.h"
#include "mcpvisor/state.h"

#define KEY_NAME  "session.key"
#define GONE_NAME "sessions.gone"

/* Ended sessions that are remembered at once. */
#define STATE_GONE_MAX 500000

struct state {
	int dir; /* -1: none */
	bool only_looks;
	struct mac_key key;
	bool has_key;	 /* key is set */
	bool shares_key; /* and is the folder's */

	int gone_fd;
	off_t gone_read;		 /* how far it has been taken in */
	off_t gone_limit;		 /* beyond it the file is written anew */
	struct idmap *gone;		 /* serial: struct gone_session */
	struct gone_session *gone_first; /* all of them */
	struct gone_session *gone_free;	 /* places that are free again */
	struct gone_block *gone_blocks;	 /* where both are; ours */
	size_t gone_purge;		 /* count from which the expired go */
	uint64_t gone_purge_s;		 /* and not before */

	struct strmap *lists; /* name of a file: struct list_kept, ours */
	bool lists_complained;
};

/* Says once in a while that what cannot be kept on disk, by errno. */
void state_complain(const char *what);
/* A new file in folder dir that nobody else writes: name is filled, its beginning is
 * head, and is for reading and writing. -1 with errno. */
#define STATE_NAME_MAX 128
int state_create(int dir, const char *head, char name[STATE_NAME_MAX]);
/* The key; whether it is the folder's and thus known to who comes later. */
bool state_load_key(struct state *s);
/* Calls fn for each entry of a folder; it may remove that one. */
void state_each_file(
    int dir, void (*fn)(int dir, const char *name, void *arg), void *arg);
/* Removes what state_create has made with this head and somebody left an hour ago. */
void state_sweep_new(int dir, const char *head);

void state_gone_open(struct state *s);
void state_gone_close(struct state *s);
void state_lists_close(struct state *s);

#endif
