/* SPDX-License-Identifier: MIT */
/* Shared by cli.c (the exchange), cli_args.c (arguments) and cli_table.c (printing). */
#ifndef MCPVISOR_CLI_PRIV_H
#define MCPVISOR_CLI_PRIV_H

#include "mcpvisor/buf.h"
#include "mcpvisor/cli.h"
#include "mcpvisor/json.h"

/* A listed tool. */
struct cli_tool {
	char *name;
	char *def; /* as it came */
	size_t def_len;
};

struct cli_list {
	struct cli_tool *v;
	size_t n;
	size_t bytes; /* of all definitions */
};

static inline struct jtext
cli_tool_def(const struct cli_tool *t)
{
	struct jtext def = {t->def, t->def_len};

	return def;
}

/* Appends the tools of one page; false when they are over the bounds or not tools. */
bool cli_list_add(struct cli_list *l, struct jtext tools);
void cli_list_clear(struct cli_list *l);
const struct cli_tool *cli_list_find(const struct cli_list *l, const char *name);

/* Appends the arguments object of a call of t; CLI_PARAMS with a text on err when a
 * value is not of the type that the tool's schema wants. */
enum cli_exit cli_args_build(
    const struct cli_opts *o, const struct cli_tool *t, struct buf *out);
/* Says that o->tool is unknown, and which names are near. */
void cli_print_unknown(const struct cli_opts *o, const struct cli_list *l);

void cli_print_tools(const struct cli_opts *o, const struct cli_list *l);
/* Prints a result of tools/call; CLI_OK or CLI_TOOL_ERROR. */
enum cli_exit cli_print_result(const struct cli_opts *o, struct jtext result);
/* Prints a JSON-RPC error and says what it means for the exit code. */
enum cli_exit cli_print_error(const struct cli_opts *o, struct jtext error);

#endif
