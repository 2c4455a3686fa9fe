/* SPDX-License-Identifier: MIT */
/*
 * Values that stand elsewhere: ${VAR}, ${VAR:-x}, ${env:VAR}, ${userHome}, ${file:PATH},
 * ${credential:NAME}; and the environment of a child.
 */
#ifndef MCPVISOR_EXPAND_H
#define MCPVISOR_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mcpvisor/err.h"

/* Where they are looked up. */
struct expand_env {
	/* NULL for a variable that is not set. */
	const char *(*get)(const char *name, void *arg);
	void *arg;
	const char *dir;	 /* relative files start here; NULL: the working folder */
	const char *credentials; /* folder; NULL: $CREDENTIALS_DIRECTORY */
	/* Told of each file before it is read. NULL: nobody is. */
	void (*on_file)(const char *path, void *file_arg);
	void *file_arg;
};
extern const struct expand_env expand_env_process;

/* The most that a file with a value, or with variables, may have. */
#define EXPAND_FILE_BYTES (64u * 1024)

/* Expands s once, without looking at what was put in. A file's last line break is left
 * out; it is a regular one of at most EXPAND_FILE_BYTES without NUL. Everything else, a
 * lone $ and $$ included, stays. NULL with *et set, which names the variable, file or
 * credential and never a value, for what is not there, an unknown form or a missing
 * brace. *secret (may be NULL) becomes true, and never false, when a value came from a
 * variable other than ${userHome}, a file or a credential. */
char *expand_text(
    const char *s, const struct expand_env *env, bool *secret, struct mv_errtext *et);

/* The environment of a child: HOME LOGNAME PATH SHELL TERM USER LANG LC_* TMPDIR of
 * ours, then extra ("K=V", n of them; a later one wins) over them. NULL-terminated, the
 * caller frees each and the array. */
char **expand_child_env(char *const *ours, char *const *extra, size_t n);

/* Reads lines of K=V ("export " in front, quotes around V and # comments as shells have
 * them, \n in double quotes as editors do; nothing is expanded) and appends "K=V" for
 * each to *v of *n, with a NULL behind. MV_CONF with *et (file, line, no value), and
 * nothing is appended. */
enum mv_err expand_env_file(
    const char *path, char ***v, size_t *n, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Appends "K=V" for each variable of ours that a pattern (* and ? allowed) names, in the
 * same way; patterns is NULL-terminated, or NULL. */
void expand_env_pass(char *const *ours, char *const *patterns, char ***v, size_t *n);

/* Takes in a regular file, or one of the kind that also names (S_IFCHR for /dev/null), of
 * at most max bytes: *text of *n bytes, NUL behind, for mem_free_secret. Never waits, as
 * a reload reads too. Returns NULL, or else why not, with *text NULL. */
const char *expand_read_file(const char *path, mode_t also, size_t max, char **text,
    size_t *n) MCPVISOR_MUST_CHECK;

#endif
