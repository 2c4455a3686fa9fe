/* SPDX-License-Identifier: MIT */
/*
 * Reads the server lists that people have in their MCP clients: the
 * mcpServers object of Claude Desktop, Claude Code and Cursor, the servers
 * object of VS Code.
 */
#ifndef MCPVISOR_IMPORT_H
#define MCPVISOR_IMPORT_H

#include "mcpvisor/upstream_conf.h"

struct import_result {
	struct upstream_conf **v; /* in the file's order */
	size_t n;
	char **warnings; /* one line each: unknown members and the like */
	size_t n_warnings;
};

/* Where variables are looked up; get gives NULL for one that is not set. */
struct import_env {
	const char *(*get)(const char *name, void *arg);
	void *arg;
};

/* Parses text (n bytes) of file name (for messages). MV_CONF with *et filled
 * (file, line, message) when the file as a whole is no use: then *r is empty. An
 * entry that cannot run (unset variable, remote, no command) is in the result with
 * its broken set. Frees nothing of the caller's; end *r with import_free. */
enum mv_err import_parse(const char *file, const char *text, size_t n,
    const struct import_env *env, struct import_result *r,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* The same from a file, with the process's environment. */
enum mv_err import_file(
    const char *file, struct import_result *r, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void import_free(struct import_result *r); /* also the confs */

/* Expands ${VAR}, ${VAR:-default}, ${env:VAR}, ${userHome} once, without looking at
 * what was put in. Everything else, a lone $ and $$ included, stays. NULL with *et
 * set for an unset variable, an unknown form or a missing brace. */
char *import_expand(const char *s, const struct import_env *env, struct mv_errtext *et);

/* The environment of a child: HOME LOGNAME PATH SHELL TERM USER LANG LC_* TMPDIR of
 * ours, then extra ("K=V", n of them) over them. NULL-terminated, caller frees each and
 * the array. */
char **import_child_env(char *const *ours, char *const *extra, size_t n);

#endif
