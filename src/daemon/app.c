/* SPDX-License-Identifier: MIT */
/*
 * The commands: one row a command, and the options of the command line.
 *
 * Driven by: main.
 * Invariants: stdout carries MCP messages or what was asked for, nothing else.
 */
#include "mcpvisor/app.h"

#include "app_priv.h"

#include "mcpvisor/demo.h"
#include "mcpvisor/log.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define N_COMMANDS 8
static const struct command commands[N_COMMANDS + 1];

static void
app_usage(FILE *to)
{
	fprintf(to, "usage: mcpvisor COMMAND [OPTION...] [ARGUMENT...]\n\ncommands:\n");
	for (const struct command *c = commands; c->name != NULL; c++)
		if (!c->hidden)
			fprintf(
			    to, "  %-8s %s\n           %s\n", c->name, c->args, c->help);
	fprintf(to,
	    "\noptions:\n"
	    "  --mcp-json FILE    start the servers of this mcpServers file; without it "
	    "two\n"
	    "                     built-in demo servers are fronted\n"
	    "  --log-level LEVEL  error, warning, notice, info (default) or debug\n"
	    "  --listen ADDRESS   serve: where to listen; may be given more than once\n"
	    "  --allow-unauthenticated, --allowed-host NAME, --allowed-origin ORIGIN\n"
	    "                     serve: what listening beyond loopback takes\n"
	    "\nexit codes: 0 success, 1 the tool reported an error, 2 usage, 3 "
	    "configuration,\n"
	    "4 unknown tool or invalid arguments, 5 upstream failed, 6 nothing listed\n");
}

static bool
app_usage_error(const struct app *a, const char *text, const char *what)
{
	fprintf(stderr, "mcpvisor %s: %s%s%s\nusage: mcpvisor %s %s\n", a->command->name,
	    text, what ? ": " : "", what ? what : "", a->command->name, a->command->args);
	return false;
}

static int
run_demo(struct app *a)
{
	return demo_run(a->argv[0]);
}

static int
run_version(struct app *a)
{
	(void)a;
	printf("mcpvisor %s\n", MCPVISOR_VERSION);
	return CLI_OK;
}

static int
run_help(struct app *a)
{
	(void)a;
	app_usage(stdout);
	return CLI_OK;
}

static bool
takes_nothing(struct app *a)
{
	return a->argc == 0 || app_usage_error(a, "unexpected argument", a->argv[0]);
}

static bool
takes_one(struct app *a)
{
	return a->argc == 1 || app_usage_error(a, "one argument is needed", NULL);
}

static bool
takes_one_or_none(struct app *a)
{
	return a->argc <= 1 || app_usage_error(a, "unexpected argument", a->argv[1]);
}

static bool
takes_tool(struct app *a)
{
	if (a->argc == 0)
		return app_usage_error(a, "the name of a tool is needed", NULL);
	a->cli.tool = a->argv[0];
	a->cli.pairs = (const char *const *)(a->argv + 1);
	a->cli.n_pairs = (size_t)a->argc - 1;
	return true;
}

static const struct command commands[N_COMMANDS + 1] = {
    {"stdio", "[--mcp-json FILE] [--log-level LEVEL]",
	"serve one MCP client on standard input and output", takes_nothing, run_stdio,
	"mcp-json log-level", false},
    {"tools", "[--mcp-json FILE] [--json]", "start the servers and list their tools",
	takes_nothing, run_cli, "mcp-json log-level json", false},
    {"call",
	"[--mcp-json FILE] [--output json] UPSTREAM__TOOL [key=value... | --json "
	"'{...}']",
	"start the servers and call a tool", takes_tool, run_cli,
	"mcp-json log-level json output", false},
    {"serve", "[--mcp-json FILE] [--listen ADDR:PORT|unix:PATH]...",
	"serve many MCP clients over HTTP (default 127.0.0.1:7332, path /mcp)",
	takes_nothing, run_serve,
	"mcp-json log-level listen allow-unauthenticated allowed-host allowed-origin",
	false},
    {"connect", "[SOCKET]", "serve one client on stdio by a running mcpvisor serve",
	takes_one_or_none, run_connect, "log-level", false},
    {"version", "", "print the version", takes_nothing, run_version, "", false},
    {"help", "", "print this text", takes_nothing, run_help, "", false},
    {"demo", "legacy|modern", "serve as one of the demo servers", takes_one, run_demo, "",
	true},
    {.name = NULL},
};

static bool
app_add(struct app *a, const char **list, const char *value)
{
	size_t n = 0;

	while (n < APP_LISTEN_MAX && list[n] != NULL)
		n++;
	if (n == APP_LISTEN_MAX)
		return app_usage_error(a, "given too often", value);
	list[n] = value;
	return true;
}

/* --json carries the arguments for call, and asks for JSON output for tools. */
static bool
app_option(struct app *a, const char *name, const char *value)
{
	enum log_level level;

	if (strcmp(name, "mcp-json") == 0) {
		a->file = value;
	} else if (strcmp(name, "json") == 0) {
		a->cli.args = value;
		a->cli.json = a->cli.json || value == NULL;
	} else if (strcmp(name, "output") == 0) {
		if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
			return app_usage_error(a, "--output is json or text, not", value);
		a->cli.json = value[0] == 'j';
	} else if (strcmp(name, "listen") == 0) {
		return app_add(a, a->listen, value);
	} else if (strcmp(name, "allowed-host") == 0) {
		return app_add(a, a->allowed_hosts, value);
	} else if (strcmp(name, "allowed-origin") == 0) {
		return app_add(a, a->allowed_origins, value);
	} else if (strcmp(name, "allow-unauthenticated") == 0) {
		a->allow_unauthenticated = true;
	} else {
		if (!log_level_parse(value, &level))
			return app_usage_error(a, "unknown log level", value);
		log_set_level(level);
	}
	return true;
}

static bool
app_knows_option(const struct command *c, const char *name)
{
	const char *at = strstr(c->options, name);
	size_t n = strlen(name);

	while (at != NULL &&
	       !((at == c->options || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')))
		at = strstr(at + 1, name);
	return at != NULL;
}

/* Options may stand anywhere before "--"; everything after it is an argument. */
static bool
app_options(struct app *a, int argc, char **argv)
{
	bool call = strcmp(a->command->name, "call") == 0;
	const struct option options[] = {
	    {"mcp-json", required_argument, NULL, 0},
	    {"log-level", required_argument, NULL, 0},
	    {"json", call ? required_argument : no_argument, NULL, 0},
	    {"output", required_argument, NULL, 0},
	    {"listen", required_argument, NULL, 0},
	    {"allow-unauthenticated", no_argument, NULL, 0},
	    {"allowed-host", required_argument, NULL, 0},
	    {"allowed-origin", required_argument, NULL, 0},
	    {NULL, 0, NULL, 0},
	};
	int i, which;

	opterr = 0;
	while ((i = getopt_long(argc, argv, "", options, &which)) != -1) {
		if (i != 0 || !app_knows_option(a->command, options[which].name))
			return app_usage_error(a,
			    "unknown option, or its value is missing", argv[optind - 1]);
		if (!app_option(a, options[which].name, optarg))
			return false;
	}
	a->argv = argv + optind;
	a->argc = argc - optind;
	return a->command->takes(a);
}

int
app_main(int argc, char **argv)
{
	struct app a = {.code = 0};
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	for (const struct command *c = commands; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			a.command = c;
	if (a.command == NULL) {
		if (name[0] != '\0')
			fprintf(stderr, "mcpvisor: unknown command: %s\n", name);
		app_usage(stderr);
		return CLI_USAGE;
	}
	/* A table is for people: life-cycle news would only stand in its way. */
	log_open(a.command->run == run_cli ? LOG_LV_WARNING : LOG_LV_INFO);
	if (!app_options(&a, argc - 1, argv + 1))
		return CLI_USAGE;
	return a.command->run(&a);
}
