/* SPDX-License-Identifier: MIT */
/*
 * The commands: one row a command, one row an option.
 *
 * Driven by: main.
 * Invariants: stdout carries MCP messages or what was asked for, nothing else.
 */
#include "mcpvisor/app.h"

#include "app_priv.h"

#include "mcpvisor/demo.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

static void
app_usage(FILE *to)
{
	fprintf(to, "usage: mcpvisor COMMAND [OPTION...] [ARGUMENT...]\n\ncommands:\n");
	for (const struct command *c = app_commands; c->name != NULL; c++)
		if (!c->hidden)
			fprintf(to, "  %-10s %s\n             %s\n", c->name, c->args,
			    c->help);
	fprintf(to, "\noptions:\n");
	for (const struct app_option *o = app_options; o->name != NULL; o++)
		fprintf(to, "  --%s%s%s\n             %s\n", o->name,
		    o->metavar ? " " : "", o->metavar ? o->metavar : "", o->help);
	fprintf(to, "\nexit codes: 0 success, 1 the tool reported an error or the check "
		    "found one, 2 usage,\n3 configuration, 4 unknown tool or invalid "
		    "arguments, 5 upstream or daemon failed,\nor the output was "
		    "not taken, 6 nothing listed\n");
}

bool
app_usage_error(const struct app *a, const char *text, const char *what)
{
	fprintf(stderr, "mcpvisor %s: %s%s%s\nusage: mcpvisor %s %s\n", a->command->name,
	    text, what ? ": " : "", what ? what : "", a->command->name, a->command->args);
	return false;
}

int
app_no_loop(const struct app *a)
{
	fprintf(stderr, "mcpvisor %s: cannot set up the event loop\n", a->command->name);
	return CLI_UPSTREAM;
}

static int
run_demo(struct app *a)
{
	int code = demo_run(a->argv[0]);

	if (code == CLI_USAGE)
		(void)app_usage_error(a, "the demo is legacy or modern, not", a->argv[0]);
	return code;
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

#define FLEET_OPTIONS "conf mcp-json demo log-level"

const struct command app_commands[] = {
    {"stdio", "[--conf FILE] [--mcp-json FILE] [--profile NAME] [--log-level LEVEL]",
	"serve one MCP client on standard input and output", takes_nothing, run_stdio,
	FLEET_OPTIONS " profile", false, false},
    {"serve", "[--conf FILE] [--mcp-json FILE] [--listen ADDR:PORT|unix:PATH]...",
	"serve many MCP clients over HTTP (default 127.0.0.1:7332, path /mcp)",
	takes_nothing, run_serve,
	FLEET_OPTIONS " listen allow-unauthenticated allowed-host allowed-origin socket",
	false, false},
    {"connect", "[SOCKET]", "serve one client on stdio by a running mcpvisor serve",
	takes_one_or_none, run_connect, "log-level", false, false},
    {"check", "[--conf FILE] [--mcp-json FILE] [--dump] [--client-prefix N] [--json]",
	"read the conf, say what is wrong or worth a look; nothing is started",
	takes_nothing, run_check, "conf mcp-json demo log-level dump client-prefix json",
	false, true},
    {"tools", "[--conf FILE | --mcp-json FILE | --socket PATH] [--profile NAME] [--json]",
	"list the tools, of a running daemon or of servers started for it", takes_nothing,
	run_cli, FLEET_OPTIONS " json profile socket", false, true},
    {"call",
	"[--conf FILE | --mcp-json FILE | --socket PATH] [--profile NAME] "
	"[--output json] UPSTREAM__TOOL [key=value... | --json '{...}']",
	"call a tool, of a running daemon or of servers started for it", takes_tool,
	run_cli, FLEET_OPTIONS " json output profile socket", false, true},
    {"probe", "[--conf FILE | --mcp-json FILE] [--to FILE] [--again] [UPSTREAM]",
	"call each read-only tool once and write down what it returns", takes_one_or_none,
	run_probe, FLEET_OPTIONS " to again", false, true},
    {"status", "[--socket PATH] [--json]",
	"what the running daemon does: upstreams, calls, memory", takes_nothing,
	run_status, "socket json log-level", false, true},
    {"restart", "[--socket PATH] UPSTREAM",
	"start one upstream of the running daemon anew", takes_one, run_restart,
	"socket json log-level", false, true},
    {"reload", "[--socket PATH] [--dry-run]",
	"make the running daemon read its conf again; says what changes", takes_nothing,
	run_reload, "socket dry-run json log-level", false, true},
    {"completion", "bash|zsh|fish", "print what makes a shell complete these commands",
	takes_one, run_completion, "", false, true},
    {"version", "", "print the version", takes_nothing, run_version, "", false, true},
    {"help", "", "print this text", takes_nothing, run_help, "", false, true},
    {"demo", "legacy|modern", "serve as one of the demo servers", takes_one, run_demo, "",
	true, false},
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

static bool
set_conf(struct app *a, const char *value)
{
	a->conf_file = value;
	return true;
}

static bool
set_mcp_json(struct app *a, const char *value)
{
	a->mcp_json = value;
	return true;
}

static bool
set_demo(struct app *a, const char *value)
{
	(void)value;
	a->demo = true;
	return true;
}

static bool
set_profile(struct app *a, const char *value)
{
	a->profile = value;
	return true;
}

static bool
set_socket(struct app *a, const char *value)
{
	a->socket = value;
	return true;
}

/* --json carries the arguments for call, and asks for JSON output elsewhere. */
static bool
set_json(struct app *a, const char *value)
{
	a->cli.args = value;
	a->json = a->cli.json = a->cli.json || value == NULL;
	return true;
}

static bool
set_output(struct app *a, const char *value)
{
	if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
		return app_usage_error(a, "--output is json or text, not", value);
	a->cli.json = value[0] == 'j';
	return true;
}

static bool
set_listen(struct app *a, const char *value)
{
	return app_add(a, a->listen, value);
}

static bool
set_allowed_host(struct app *a, const char *value)
{
	return app_add(a, a->allowed_hosts, value);
}

static bool
set_allowed_origin(struct app *a, const char *value)
{
	return app_add(a, a->allowed_origins, value);
}

static bool
set_allow_unauthenticated(struct app *a, const char *value)
{
	(void)value;
	a->allow_unauthenticated = true;
	return true;
}

static bool
set_dump(struct app *a, const char *value)
{
	(void)value;
	a->dump = true;
	return true;
}

static bool
set_dry_run(struct app *a, const char *value)
{
	(void)value;
	a->dry_run = true;
	return true;
}

static bool
set_to(struct app *a, const char *value)
{
	a->to = value;
	return true;
}

static bool
set_again(struct app *a, const char *value)
{
	(void)value;
	a->again = true;
	return true;
}

static bool
set_client_prefix(struct app *a, const char *value)
{
	size_t n = strspn(value, "0123456789");

	if (n == 0 || n > 3 || value[n] != '\0')
		return app_usage_error(a, "--client-prefix is a number of bytes", value);
	a->client_prefix = value;
	return true;
}

static bool
set_log_level(struct app *a, const char *value)
{
	if (!log_level_parse(value, &a->level))
		return app_usage_error(a, "unknown log level", value);
	a->has_level = true;
	log_set_level(a->level);
	return true;
}

const struct app_option app_options[] = {
    {"conf", "FILE", set_conf, "the conf: a file, or a folder that holds mcpvisor.conf",
	"file"},
    {"mcp-json", "FILE", set_mcp_json,
	"the servers of this mcpServers file, beside those of the conf", "file"},
    {"demo", NULL, set_demo,
	"two small servers of our own; they run when there is no conf at all", NULL},
    {"profile", "NAME", set_profile, "what to show: a profile of the conf", NULL},
    {"socket", "PATH", set_socket, "the control socket of the daemon", "file"},
    {"log-level", "LEVEL", set_log_level,
	"error, warning, notice, info or debug; wins over the conf",
	"error warning notice info debug"},
    {"json", NULL, set_json, "print JSON; for call: the arguments as one object", NULL},
    {"output", "FORM", set_output, "call: print text (default) or json", "text json"},
    {"listen", "ADDRESS", set_listen,
	"serve: where to listen, in place of the conf's; may be given more than once",
	NULL},
    {"allow-unauthenticated", NULL, set_allow_unauthenticated,
	"serve: listen beyond loopback although anybody there could call", NULL},
    {"allowed-host", "NAME", set_allowed_host, "serve: a Host to answer to", NULL},
    {"allowed-origin", "ORIGIN", set_allowed_origin, "serve: an Origin to answer to",
	NULL},
    {"dump", NULL, set_dump, "check: print every option with its value", NULL},
    {"client-prefix", "N", set_client_prefix,
	"check: say which names are too long for clients that put N bytes in front",
	NULL},
    {"to", "FILE", set_to, "probe: the file to write, in place of probe.file of the conf",
	"file"},
    {"again", NULL, set_again, "probe: call those as well that were called before", NULL},
    {"dry-run", NULL, set_dry_run, "reload: say what would change, and do nothing", NULL},
    {.name = NULL},
};

#define N_OPTIONS (sizeof(app_options) / sizeof(app_options[0]) - 1)

bool
app_command_has(const struct command *c, const char *name)
{
	const char *at = strstr(c->options, name);
	size_t n = strlen(name);

	while (at != NULL &&
	       !((at == c->options || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')))
		at = strstr(at + 1, name);
	return at != NULL;
}

bool
app_option_has_value(const struct command *c, const struct app_option *o)
{
	return o->metavar != NULL || (o->set == set_json && c->takes == takes_tool);
}

/* Of what was given nothing may be silently of no effect. */
static bool
app_agrees(const struct app *a)
{
	bool has_file = a->conf_file != NULL || a->mcp_json != NULL;

	if (a->demo && has_file)
		return app_usage_error(
		    a, "--demo is in place of files, not beside them", NULL);
	if (a->socket != NULL && a->command->run == run_cli && (a->demo || has_file))
		return app_usage_error(a,
		    "--socket means the running daemon, which has its own servers", NULL);
	return true;
}

/* A short option, of which there are none, may be one of several in a word. */
static bool
app_unknown_option(const struct app *a, const char *word)
{
	const char letter[] = {'-', (char)optopt, '\0'};

	return app_usage_error(
	    a, "unknown option, or its value is missing", optopt != 0 ? letter : word);
}

/* Options may stand anywhere before "--"; everything after it is an argument. */
static bool
app_parse(struct app *a, int argc, char **argv)
{
	struct option longs[N_OPTIONS + 1] = {{.name = NULL}};
	int i, which = 0;

	for (size_t k = 0; k < N_OPTIONS; k++) {
		longs[k].name = app_options[k].name;
		longs[k].has_arg = app_option_has_value(a->command, &app_options[k])
				       ? required_argument
				       : no_argument;
	}
	opterr = 0;
	while ((i = getopt_long(argc, argv, "", longs, &which)) != -1) {
		if (i != 0 || !app_command_has(a->command, app_options[which].name))
			return app_unknown_option(a, argv[optind - 1]);
		if (!app_options[which].set(a, optarg))
			return false;
	}
	a->argv = argv + optind;
	a->argc = argc - optind;
	return app_agrees(a) && a->command->takes(a);
}

/* Whoever starts us with one of them closed means that nobody is there; left so, the next
 * socket or file would get its number, and what is written there would go into that. */
static void
app_open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", O_RDWR);
}

int
app_main(int argc, char **argv)
{
	struct app a = {.level = LOG_LV_INFO};
	const char *name = argc > 1 ? argv[1] : "";

	app_open_standard();
	/* Before anything of jansson's: its memory counts as ours. */
	json_set_alloc_funcs(mem_lib_alloc, mem_free);
	mem_keep_large();

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	for (const struct command *c = app_commands; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			a.command = c;
	if (a.command == NULL) {
		if (name[0] != '\0')
			fprintf(stderr, "mcpvisor: unknown command: %s\n", name);
		app_usage(stderr);
		return CLI_USAGE;
	}
	if (a.command->is_table)
		a.level = LOG_LV_WARNING;
	log_open(a.level);
	if (!app_parse(&a, argc - 1, argv + 1))
		return CLI_USAGE;
	return cli_flush(stdout, stderr, a.command->run(&a));
}
