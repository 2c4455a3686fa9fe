/* SPDX-License-Identifier: MIT */
/*
 * stdio, tools and call: a fleet around one client; or, for the latter two, the daemon
 * that runs already.
 *
 * Owns: loop, spawner, state, gateway, endpoint, in that order of creation and the other
 * way round at the end.
 * Driven by: the endpoint's end; signals; for tools and call our own client.
 */
#include "app_priv.h"

#include "mcpvisor/client.h"
#include "mcpvisor/control.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/endpoint_stdio.h"
#include "mcpvisor/gateway.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/spawn.h"
#include "mcpvisor/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct runner {
	struct app *a;
	struct fleet *fleet;
	struct loop *loop;
	struct spawner *spawner;
	struct curl_loop *curl;
	struct state *state; /* NULL: nothing is recalled or kept */
	struct gateway *gateway;
	struct endpoint_stdio *endpoint;
	struct cli *client;
	int code;
};

static void
on_gone(void *arg)
{
	struct runner *r = arg;

	loop_stop(r->loop, 0);
}

static void
on_signal(void *arg)
{
	struct runner *r = arg;

	LOG_NOTICE("app", "stopping on a signal", "%s", "");
	endpoint_stdio_stop(r->endpoint);
}

static void
on_made(void *arg, struct upstream *u)
{
	struct runner *r = arg;

	if (r->state != NULL)
		state_recall(r->state, u);
}

static void
on_memory(void *arg, struct upstream *u)
{
	struct runner *r = arg;

	if (r->state != NULL)
		state_remember(r->state, u);
}

/* Sets everything up around a client on these descriptors. */
static int
runner_setup(struct runner *r, int rfd, int wfd)
{
	struct endpoint_stdio_opts eo = endpoint_stdio_defaults;
	struct gateway_opts go = {.on_made = on_made,
	    .on_memory = on_memory,
	    .arg = r,
	    .one_client = true,
	    .can_ask = true};

	r->loop = loop_new();
	r->spawner = r->loop ? spawner_new(r->loop) : NULL;
	if (r->spawner == NULL)
		return app_no_loop(r->a);
	fleet_put_opts(r->fleet, &go);
	r->curl = curl_loop_new(r->loop);
	r->gateway = gateway_new(
	    &(struct upstream_env){
		.loop = r->loop, .spawner = r->spawner, .curl = r->curl},
	    &go);
	if (!gateway_view(r->gateway, r->a->profile, &eo.view)) {
		fprintf(stderr, "mcpvisor %s: no such profile: %s\n", r->a->command->name,
		    r->a->profile);
		return CLI_CONF;
	}
	eo.rfd = rfd;
	eo.wfd = wfd;
	eo.drain_ms = r->fleet->conf->drain_ms;
	r->endpoint = endpoint_stdio_new(r->loop, r->gateway, &eo, on_gone, r);
	return loop_on_signal(r->loop, SIGTERM, on_signal, r) &&
		       loop_on_signal(r->loop, SIGINT, on_signal, r)
		   ? CLI_OK
		   : app_no_loop(r->a);
}

static void
runner_end(struct runner *r)
{
	cli_free(r->client);
	endpoint_stdio_free(r->endpoint);
	gateway_free(r->gateway);
	curl_loop_free(r->curl);
	if (r->spawner != NULL)
		spawner_free(r->spawner);
	loop_free(r->loop);
	state_close(r->state);
	fleet_free(r->fleet);
}

/* CLI_OK or CLI_CONF. */
static int
runner_load(struct runner *r)
{
	r->fleet = fleet_load_or_say(r->a);
	if (r->fleet == NULL)
		return CLI_CONF;
	fleet_settle(r->a, r->fleet);
	fleet_warn(r->fleet);
	return CLI_OK;
}

int
run_stdio(struct app *a)
{
	struct runner r = {.a = a};
	int code;

	if (!a->demo && a->mcp_json == NULL)
		(void)app_find_conf(a);
	code = runner_load(&r);
	if (code != CLI_OK)
		return code;
	client_log_calls(r.fleet->conf->log.calls);
	if (r.fleet->conf->state.lists && (a->conf_file || a->mcp_json))
		r.state = state_open(r.fleet->conf->state.dir);
	code = runner_setup(&r, STDIN_FILENO, STDOUT_FILENO);
	if (code == CLI_OK) {
		gateway_start(r.gateway);
		code = loop_run(r.loop);
	}
	runner_end(&r);
	return code;
}

static void
on_cli_done(void *arg, int exit_code)
{
	struct runner *r = arg;

	r->code = exit_code;
	cli_free(r->client);
	r->client = NULL;
	if (r->endpoint != NULL)
		endpoint_stdio_stop(r->endpoint);
	else
		loop_stop(r->loop, 0);
}

static unsigned
runner_starting(void *arg)
{
	struct runner *r = arg;
	unsigned n = 0;

	for (size_t i = 0; i < gateway_count(r->gateway); i++)
		n += !upstream_is_settled(gateway_upstream(r->gateway, i));
	return n;
}

/* Our own client at one end of a socket pair, our own endpoint at the other. Nothing is
 * recalled: what is printed comes from the servers themselves. */
static int
cli_own(struct runner *r)
{
	int fds[2], code = runner_load(r);

	if (code != CLI_OK)
		return code;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		fprintf(stderr, "mcpvisor: cannot make a socket pair\n");
		return CLI_UPSTREAM;
	}
	r->a->cli.starting = runner_starting;
	r->a->cli.starting_arg = r;
	r->code = CLI_UPSTREAM;
	code = runner_setup(r, fds[0], fds[0]);
	if (code != CLI_OK)
		return code;
	gateway_start(r->gateway);
	r->client = cli_new(r->loop, &r->a->cli, fds[1], fds[1], on_cli_done, r);
	(void)loop_run(r->loop);
	return r->code;
}

/* Our own client at the daemon's control socket. */
static int
cli_daemon(struct runner *r, const char *path)
{
	struct mv_errtext et = {.line = 0};
	int fd = -1;
	enum mv_err err = control_open_mcp(path, r->a->profile, &fd, &et);

	if (err != MV_OK) {
		fprintf(stderr, "mcpvisor %s: %s%s%s\n", r->a->command->name,
		    r->a->profile ? r->a->profile : "", r->a->profile ? ": " : "",
		    et.message);
		return err == MV_NOT_FOUND ? CLI_CONF : CLI_UPSTREAM;
	}
	r->loop = loop_new();
	if (r->loop == NULL) {
		(void)close(fd);
		return app_no_loop(r->a);
	}
	r->code = CLI_UPSTREAM;
	r->client = cli_new(r->loop, &r->a->cli, fd, fd, on_cli_done, r);
	(void)loop_run(r->loop);
	return r->code;
}

/* Whoever names a file means its servers; else the running daemon; else what would run
 * if there were one. */
int
run_cli(struct app *a)
{
	struct runner r = {.a = a};
	const char *path = NULL;
	char text[512];
	int code;

	a->cli.out = stdout;
	a->cli.err = stderr;
	a->cli.width = cli_width(stdout);
	code = cli_check(&a->cli);
	if (code != CLI_OK)
		return code;
	if (a->socket != NULL || (!a->demo && !a->conf_file && !a->mcp_json))
		path = app_control_path(a, text, sizeof(text));
	if (path == NULL && !a->demo && a->mcp_json == NULL)
		(void)app_find_conf(a);
	code = path != NULL ? cli_daemon(&r, path) : cli_own(&r);
	runner_end(&r);
	return code;
}
