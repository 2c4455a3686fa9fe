/* SPDX-License-Identifier: MIT */
/*
 * The commands: one row a command, one function to set a fleet up, serve and take it
 * down.
 *
 * Owns: loop, spawner, gateway, endpoint, in that order of creation and the other way
 * round at the end.
 * Driven by: the command line; signals; the endpoint's end.
 * Invariants: stdout carries MCP messages or what was asked for, nothing else.
 */
#include "mcpvisor/app.h"

#include "mcpvisor/cli.h"
#include "mcpvisor/demo.h"
#include "mcpvisor/endpoint_stdio.h"
#include "mcpvisor/gateway.h"
#include "mcpvisor/import.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/spawn.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIST_WAIT_MS 5000

struct command;

struct app {
	const struct command *command;
	const char *file; /* --mcp-json; NULL: the demo */
	struct cli_opts cli;
	char **argv; /* what follows the options */
	int argc;
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

#define N_COMMANDS 6
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
	    "  --log-level LEVEL  error, warning, notice (default), info or debug\n"
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

/* Reads the servers to front. CLI_OK or CLI_CONF, which has been explained. */
static int
app_load(struct app *a)
{
	struct mv_errtext et = {.line = 0};
	char self[PATH_MAX];
	ssize_t n;

	if (a->file == NULL) {
		n = readlink("/proc/self/exe", self, sizeof(self) - 1);
		if (n <= 0) {
			fprintf(stderr, "mcpvisor: cannot find itself for the demo\n");
			return CLI_CONF;
		}
		self[n] = '\0';
		demo_import(self, &a->import);
		return CLI_OK;
	}
	if (import_file(a->file, &a->import, &et) != MV_OK) {
		if (et.line > 0)
			fprintf(stderr, "%s:%d: %s\n", et.file, et.line, et.message);
		else
			fprintf(stderr, "%s: %s\n", et.file, et.message);
		return CLI_CONF;
	}
	for (size_t i = 0; i < a->import.n_warnings; i++)
		LOG_WARNING("import", "noticed", "file=%s text=%s",
		    LOG_ESC(a->file, strlen(a->file)),
		    LOG_ESC(a->import.warnings[i], strlen(a->import.warnings[i])));
	return CLI_OK;
}

static void
on_gone(void *arg)
{
	struct app *a = arg;

	loop_stop(a->loop, 0);
}

static void
on_signal(void *arg)
{
	struct app *a = arg;

	LOG_NOTICE("app", "stopping on a signal", "%s", "");
	endpoint_stdio_stop(a->endpoint);
}

/* Sets everything up around a client on these descriptors. */
static bool
app_setup(struct app *a, int rfd, int wfd)
{
	struct endpoint_stdio_opts eo = endpoint_stdio_defaults;
	struct gateway_opts go = {
	    .confs = a->import.v, .n = a->import.n, .list_wait_ms = LIST_WAIT_MS};

	a->loop = loop_new();
	a->spawner = a->loop ? spawner_new(a->loop) : NULL;
	if (a->spawner == NULL) {
		fprintf(stderr, "mcpvisor: cannot set up the event loop\n");
		return false;
	}
	a->gateway = gateway_new(a->loop, a->spawner, &go);
	eo.rfd = rfd;
	eo.wfd = wfd;
	a->endpoint = endpoint_stdio_new(a->loop, a->gateway, &eo, on_gone, a);
	return loop_on_signal(a->loop, SIGTERM, on_signal, a) &&
	       loop_on_signal(a->loop, SIGINT, on_signal, a);
}

static void
app_teardown(struct app *a)
{
	cli_free(a->client);
	endpoint_stdio_free(a->endpoint);
	gateway_free(a->gateway);
	if (a->spawner != NULL)
		spawner_free(a->spawner);
	loop_free(a->loop);
	import_free(&a->import);
}

static int
run_stdio(struct app *a)
{
	int code = app_load(a);

	if (code != CLI_OK)
		return code;
	if (app_setup(a, STDIN_FILENO, STDOUT_FILENO)) {
		gateway_start(a->gateway);
		code = loop_run(a->loop);
	} else {
		code = CLI_UPSTREAM;
	}
	app_teardown(a);
	return code;
}

static void
on_cli_done(void *arg, int exit_code)
{
	struct app *a = arg;

	a->code = exit_code;
	cli_free(a->client);
	a->client = NULL;
	endpoint_stdio_stop(a->endpoint);
}

static unsigned
app_starting(void *arg)
{
	struct app *a = arg;
	unsigned n = 0;

	for (size_t i = 0; i < gateway_count(a->gateway); i++)
		n += !upstream_is_settled(gateway_upstream(a->gateway, i));
	return n;
}

/* Our own client at one end of a socket pair, our own endpoint at the other. */
static int
run_cli(struct app *a)
{
	int fds[2], code;

	a->cli.out = stdout;
	a->cli.err = stderr;
	a->cli.width = cli_width(stdout);
	a->cli.starting = app_starting;
	a->cli.starting_arg = a;
	code = cli_check(&a->cli);
	if (code == CLI_OK)
		code = app_load(a);
	if (code != CLI_OK)
		return code;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		fprintf(stderr, "mcpvisor: cannot make a socket pair\n");
		return CLI_UPSTREAM;
	}
	a->code = CLI_UPSTREAM;
	if (app_setup(a, fds[0], fds[0])) {
		gateway_start(a->gateway);
		a->client = cli_new(a->loop, &a->cli, fds[1], fds[1], on_cli_done, a);
		(void)loop_run(a->loop);
	}
	app_teardown(a);
	return a->code;
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
    {"version", "", "print the version", takes_nothing, run_version, "", false},
    {"help", "", "print this text", takes_nothing, run_help, "", false},
    {"demo", "legacy|modern", "serve as one of the demo servers", takes_one, run_demo, "",
	true},
    {.name = NULL},
};

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
	log_open(a.command->run == run_cli ? LOG_LV_WARNING : LOG_LV_NOTICE);
	if (!app_options(&a, argc - 1, argv + 1))
		return CLI_USAGE;
	return a.command->run(&a);
}
