/* SPDX-License-Identifier: MIT */
/* What the commands share. */
#ifndef MCPVISOR_APP_PRIV_H
#define MCPVISOR_APP_PRIV_H

#include "mcpvisor/cli.h"
#include "mcpvisor/import.h"

#include <stdbool.h>

#define LIST_WAIT_MS   5000
#define APP_LISTEN_MAX 16

struct command;

struct app {
	const struct command *command;
	const char *file; /* --mcp-json; NULL: the demo */
	struct cli_opts cli;
	char **argv; /* what follows the options */
	int argc;
	const char
	    *listen[APP_LISTEN_MAX + 1]; /* --listen, NULL-terminated; the same below */
	const char *allowed_hosts[APP_LISTEN_MAX + 1];
	const char *allowed_origins[APP_LISTEN_MAX + 1];
	bool allow_unauthenticated;
	struct import_result import;
	struct loop *loop;
	struct spawner *spawner;
	struct gateway *gateway;
	struct endpoint_stdio *endpoint;
	struct cli *client;
	int code;
};

struct command {
	const char *name, *args, *help;
	bool (*takes)(struct app *a); /* looks at the arguments; says what is wrong */
	int (*run)(struct app *a);
	const char *options; /* long options it knows */
	bool hidden;
};

/* app_run.c */
int app_load(struct app *a);
int run_stdio(struct app *a);
int run_cli(struct app *a);
/* app_serve.c */
int run_serve(struct app *a);
int run_connect(struct app *a);

#endif
