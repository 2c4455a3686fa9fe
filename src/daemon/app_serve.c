/* SPDX-License-Identifier: MIT */
/*
 * serve and connect: a fleet behind HTTP and unix sockets, and the way to it for a client
 * that speaks stdio.
 *
 * Owns: loop, spawner, gateway, endpoint, state.
 * Driven by: signals: the first one drains, the second one does not.
 * Invariants: nothing beyond loopback is bound unless it was said in words that anybody
 * who gets there may call every tool.
 */
#include "app_priv.h"

#include "mcpvisor/endpoint_http.h"
#include "mcpvisor/gateway.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/relay.h"
#include "mcpvisor/spawn.h"
#include "mcpvisor/state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ADDRESS "127.0.0.1:7332"
#define SYSTEM_SOCKET	"/run/mcpvisor/mcpvisor.sock"

struct server {
	struct app *a;
	struct loop *loop;
	struct spawner *spawner;
	struct gateway *gateway;
	struct endpoint_http *endpoint;
	struct state *state;
	bool stopping;
};

static const struct child_ladder stop_ladder = {
    .term_ms = 1000, .kill_ms = 1000, .drain_ms = 100};

/* The socket that serve offers and connect looks for. */
static const char *
serve_socket(char *out, size_t size)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (run == NULL || run[0] != '/')
		return geteuid() == 0 ? SYSTEM_SOCKET : NULL;
	(void)snprintf(out, size, "%s/mcpvisor.sock", run);
	return out;
}

static void
on_gateway_gone(void *arg)
{
	struct server *s = arg;

	loop_stop(s->loop, CLI_OK);
}

static void
on_endpoint_gone(void *arg)
{
	struct server *s = arg;

	gateway_stop(s->gateway, &stop_ladder, on_gateway_gone, s);
}

static void
on_stop_signal(void *arg)
{
	struct server *s = arg;

	LOG_NOTICE("serve", s->stopping ? "stopping now" : "stopping", "%s", "");
	endpoint_http_stop(s->endpoint, s->stopping, on_endpoint_gone, s);
	s->stopping = true;
}

/* Only loopback is for everybody who gets there. */
static bool
serve_may_listen(const struct app *a, const char *address, bool *loopback)
{
	struct mv_errtext et = {.line = 0};

	if (listener_check(address, loopback, &et) != MV_OK) {
		fprintf(stderr, "mcpvisor serve: %s: %s\n", address, et.message);
		return false;
	}
	if (*loopback || (a->allow_unauthenticated && a->allowed_hosts[0] != NULL))
		return true;
	fprintf(stderr,
	    "mcpvisor serve: %s is not loopback, and clients are not authenticated: "
	    "anybody "
	    "who\nreaches it could call every tool. If that is what you want, say\n"
	    "--allow-unauthenticated and name the hosts it is reached by: --allowed-host "
	    "NAME\n",
	    address);
	return false;
}

static bool
serve_listen(struct server *s, const char *address)
{
	struct mv_errtext et = {.line = 0};
	const char *bound;

	if (endpoint_http_listen(s->endpoint, address, &bound, &et) != MV_OK) {
		fprintf(stderr, "mcpvisor serve: %s: %s\n", address, et.message);
		return false;
	}
	LOG_NOTICE("serve", "listening", "address=%s", LOG_ESC(bound, strlen(bound)));
	return true;
}

static bool
serve_listen_all(struct server *s)
{
	const struct app *a = s->a;
	char path[512], address[600];
	const char *socket;

	for (size_t i = 0; a->listen[i] != NULL; i++)
		if (!serve_listen(s, a->listen[i]))
			return false;
	if (a->listen[0] != NULL)
		return true;
	socket = serve_socket(path, sizeof(path));
	if (socket != NULL && strcmp(socket, SYSTEM_SOCKET) != 0) {
		(void)snprintf(address, sizeof(address), "unix:%s", socket);
		/* Another one may serve there already; this one has its port. */
		if (!serve_listen(s, address))
			LOG_NOTICE("serve", "goes on without a socket", "%s", "");
	}
	return serve_listen(s, DEFAULT_ADDRESS);
}

static bool
serve_setup(struct server *s)
{
	struct app *a = s->a;
	struct endpoint_http_opts eo = endpoint_http_defaults;
	struct gateway_opts go = {
	    .confs = a->import.v, .n = a->import.n, .list_wait_ms = LIST_WAIT_MS};
	bool loopback;

	for (size_t i = 0; a->listen[i] != NULL; i++) {
		if (!serve_may_listen(a, a->listen[i], &loopback))
			return false;
		eo.guard.loopback = eo.guard.loopback && loopback;
	}
	s->loop = loop_new();
	s->spawner = s->loop ? spawner_new(s->loop) : NULL;
	if (s->spawner == NULL) {
		fprintf(stderr, "mcpvisor: cannot set up the event loop\n");
		return false;
	}
	s->state = state_open(NULL);
	state_key(s->state, &eo.key);
	eo.mark_gone = state_mark_gone;
	eo.is_gone = state_is_gone;
	eo.gone_arg = s->state;
	eo.http = http_server_defaults;
	eo.guard.allowed_hosts = a->allowed_hosts;
	eo.guard.allowed_origins = a->allowed_origins;
	s->gateway = gateway_new(s->loop, s->spawner, &go);
	s->endpoint = endpoint_http_new(s->loop, s->gateway, &eo);
	mac_key_wipe(&eo.key);
	/* Whoever reads that we listen may stop us at once. */
	return loop_on_signal(s->loop, SIGTERM, on_stop_signal, s) &&
	       loop_on_signal(s->loop, SIGINT, on_stop_signal, s) && serve_listen_all(s);
}

int
run_serve(struct app *a)
{
	struct server s = {.a = a};
	int code = app_load(a);

	if (code != CLI_OK)
		return code;
	code = CLI_CONF;
	if (serve_setup(&s)) {
		gateway_start(s.gateway);
		code = loop_run(s.loop);
	}
	endpoint_http_free(s.endpoint);
	gateway_free(s.gateway);
	if (s.spawner != NULL)
		spawner_free(s.spawner);
	loop_free(s.loop);
	state_close(s.state);
	import_free(&a->import);
	return code;
}

struct connection {
	struct loop *loop;
	struct relay *relay;
};

static void
on_relay_done(void *arg, bool ok)
{
	struct connection *c = arg;

	if (!ok)
		LOG_ERROR("connect", "the daemon has gone", "%s", "");
	loop_stop(c->loop, ok ? CLI_OK : CLI_UPSTREAM);
}

int
run_connect(struct app *a)
{
	struct connection c = {.loop = loop_new()};
	struct mv_errtext et = {.line = 0};
	char path[512];
	struct relay_opts o = {
	    .path = a->argc > 0 ? a->argv[0] : serve_socket(path, sizeof(path)),
	    .rfd = STDIN_FILENO,
	    .wfd = STDOUT_FILENO,
	    .done = on_relay_done,
	    .arg = &c};
	int code = CLI_UPSTREAM;

	if (o.path == NULL)
		o.path = SYSTEM_SOCKET;
	if (c.loop == NULL || relay_new(c.loop, &o, &c.relay, &et) != MV_OK)
		fprintf(stderr, "mcpvisor connect: %s\n", et.message);
	else
		code = loop_run(c.loop);
	relay_free(c.relay);
	loop_free(c.loop);
	return code;
}
