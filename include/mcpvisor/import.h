/* SPDX-License-Identifier: MIT */
/*
 * Reads the server lists that people have in their MCP clients: the
 * mcpServers object of Claude Desktop, Claude Code and Cursor, the servers
 * object of VS Code.
 */
#ifndef MCPVISOR_IMPORT_H
#define MCPVISOR_IMPORT_H

#include "mcpvisor/expand.h"
#include "mcpvisor/upstream_conf.h"

struct import_result {
	struct upstream_conf **v; /* in the file's order */
	size_t n;
	char **warnings; /* one line each: unknown members and the like */
	size_t n_warnings;
	/* Texts of v that are shown, but came from somewhere else than the file. */
	const char **secrets;
	size_t n_secrets;
};

/* Parses text (n bytes) of file name (for messages). MV_CONF with *et filled
 * (file, line, message) when the file as a whole is no use: then *r is empty. An
 * entry that cannot run (unset variable, neither command nor URL) is in the result with
 * its broken set. Relative files start at the folder in name file, which then wins over
 * env's. Frees nothing of the caller's; end *r with import_free. */
enum mv_err import_parse(const char *file, const char *text, size_t n,
    const struct expand_env *env, struct import_result *r,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* The same from a file, with the process's environment. */
enum mv_err import_file(
    const char *file, struct import_result *r, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void import_free(struct import_result *r); /* also the confs */

#endif
