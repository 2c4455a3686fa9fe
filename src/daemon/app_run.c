/* SPDX-License-Identifier: MIT */
/*
 * stdio, tools and call: a fleet around one client.
 *
 * Owns: loop, spawner, gateway, endpoint, in that order of creation and the other way
 * round at the end.
 * Driven by: the endpoint's end; signals; for tools and call our own client.
 */
#include "app_priv.h"

#include "mcpvisor/demo.h"
#include "mcpvisor/endpoint_stdio.h"
#include "mcpvisor/gateway.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/spawn.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads the servers to front. CLI_OK or CLI_CONF, which has been explained. */
int
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

int
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
int
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
