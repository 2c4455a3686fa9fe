/* SPDX-License-Identifier: MIT */
/* What the commands share. */
#ifndef MCPVISOR_APP_PRIV_H
#define MCPVISOR_APP_PRIV_H

#include "mcpvisor/cli.h"
#include "mcpvisor/conf.h"
#include "mcpvisor/gateway.h"

#include <stdbool.h>
#include <stdio.h>

#define APP_LISTEN_MAX	16
#define APP_SOCKET_PATH "/run/mcpvisor/mcpvisor.sock"

struct command;

struct app {
	const struct command *command;
	const char *conf_file; /* --conf, or the one that was found */
	const char *mcp_json;  /* --mcp-json */
	const char *profile, *socket;
	bool demo, dump, dry_run, json, again;
	const char *to; /* probe: the file that is written */
	const char *client_prefix;
	struct cli_opts cli;
	char **argv; /* what follows the options */
	int argc;
	/* NULL-terminated: --listen and what goes with it */
	const char *listen[APP_LISTEN_MAX + 1];
	const char *allowed_hosts[APP_LISTEN_MAX + 1];
	const char *allowed_origins[APP_LISTEN_MAX + 1];
	bool allow_unauthenticated;
	bool has_level; /* --log-level: it wins over the conf */
	enum log_level level;
	char found[512]; /* text of conf_file when it was found */
};

struct command {
	const char *name, *args, *help;
	bool (*takes)(struct app *a); /* looks at the arguments; says what is wrong */
	int (*run)(struct app *a);
	const char *options; /* long options it knows */
	bool hidden;
	bool is_table; /* prints for people: life-cycle news would stand in the way */
};

/* One row an option of the command line. */
struct app_option {
	const char *name, *metavar; /* metavar NULL: see app_option_has_value */
	bool (*set)(struct app *a, const char *value);
	const char *help;
	const char *complete; /* "file", or the words that it takes; NULL */
};
extern const struct command app_commands[];
extern const struct app_option app_options[];
bool app_command_has(const struct command *c, const char *option);
bool app_option_has_value(const struct command *c, const struct app_option *o);

/* app_conf.c */

/* A conf, and what the gateway reads of it. Lives until the gateway lets go of it. */
struct fleet {
	struct conf *conf;
	const struct upstream_conf **enabled;
	const struct profile_conf **profiles;
	size_t n, n_profiles;
	struct fleet *next; /* older ones that are still in use */
};
/* Reads what the command line names. NULL with *e filled. */
struct fleet *fleet_load(const struct app *a, struct conf_errors *e);
/* The same, errors printed. NULL: CLI_CONF. */
struct fleet *fleet_load_or_say(const struct app *a);
void fleet_free(struct fleet *f); /* NULL is allowed */
void fleet_put_opts(const struct fleet *f, struct gateway_opts *o);
/* Puts into force what is the process's own: log, memory budget. */
void fleet_settle(const struct app *a, const struct fleet *f);
/* Says what its files had that was ignored. */
void fleet_warn(const struct fleet *f);
/* Looks for a conf where nobody named one: false if there is none. */
bool app_find_conf(struct app *a);

/* app_run.c */
int run_stdio(struct app *a);
int run_cli(struct app *a);
/* app_serve.c */
int run_serve(struct app *a);
int run_connect(struct app *a);
const char *serve_socket(char *out, size_t size);
/* app_probe.c */
int run_probe(struct app *a);
/* app_check.c */
int run_check(struct app *a);
/* app_control.c */
int run_status(struct app *a);
int run_restart(struct app *a);
int run_reload(struct app *a);
/* The daemon's control socket: the one that was named, else one that answers; NULL: none
 * does. out has size bytes. */
const char *app_control_path(const struct app *a, char *out, size_t size);
/* app_complete.c */
int run_completion(struct app *a);

bool app_usage_error(const struct app *a, const char *text, const char *what);
/* Says that the system refuses what an event loop needs. CLI_UPSTREAM. */
int app_no_loop(const struct app *a);

#endif
