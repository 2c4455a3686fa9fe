/* SPDX-License-Identifier: MIT */
/*
 * serve and connect: a fleet behind HTTP and unix sockets, and the way to it for a client
 * that speaks stdio.
 *
 * Owns: loop, spawner, state, gateway, endpoint, control socket, and every conf that is
 * or was in force and is still used.
 * Driven by: signals (the first stop drains, the second one does not; HUP reloads), the
 * control socket.
 * Invariants: nothing beyond loopback is bound unless it was said in words that anybody
 * who gets there may call every tool.
 */
#include "app_serve.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/client.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/control.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/notify.h"
#include "mcpvisor/relay.h"
#include "mcpvisor/spawn.h"
#include "mcpvisor/state.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ADDRESS "127.0.0.1:7332"
#define DEFAULT_PATH	"/mcp"
#define SWEEP_MS	(24 * 3600 * 1000) /* of the state */

static const struct child_ladder stop_ladder = {
    .term_ms = 1000, .kill_ms = 1000, .drain_ms = 100};

/* The socket that serve offers and connect looks for. */
const char *
serve_socket(char *out, size_t size)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (run == NULL || run[0] != '/')
		return geteuid() == 0 ? APP_SOCKET_PATH : NULL;
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
	notify_stopping(s->notify);
	endpoint_http_stop(s->endpoint, s->stopping, on_endpoint_gone, s);
	s->stopping = true;
}

static void
on_reload_signal(void *arg)
{
	struct server *s = arg;
	struct buf text;

	buf_init(&text, CAP_CONTROL_BYTES);
	(void)server_reload(s, false, &text); /* it has said so in the log */
	buf_fini(&text);
}

/* Only loopback is for everybody who gets there. */
static bool
serve_may_listen(const struct app *a, const char *address, struct mv_errtext *et)
{
	bool loopback = false;

	if (listener_check(address, &loopback, et) != MV_OK) {
		(void)snprintf(et->file, sizeof(et->file), "%s", address);
		return false;
	}
	if (loopback || (a->allow_unauthenticated && a->allowed_hosts[0] != NULL))
		return true;
	(void)snprintf(et->file, sizeof(et->file), "%s", address);
	mv_errtext_set(et,
	    "is not loopback, and clients are not authenticated: anybody who reaches it "
	    "could call every tool. If that is what you want, say "
	    "--allow-unauthenticated and name the hosts it is reached by: --allowed-host "
	    "NAME");
	return false;
}

/* The rows of the command line, or when nobody says anything the defaults. */
static size_t
rows_of_app(const struct app *a, struct endpoint_listen *rows, struct mv_errtext *et)
{
	static char socket[600]; /* the rows point to it */
	char path[512];
	const char *run = serve_socket(path, sizeof(path));
	const char *defaults[3] = {DEFAULT_ADDRESS, NULL, NULL};
	const char *const *from = a->listen;
	size_t n = 0;

	if (a->listen[0] == NULL) {
		from = defaults;
		(void)snprintf(socket, sizeof(socket), "unix:%s", run ? run : "");
		if (run != NULL && strcmp(run, APP_SOCKET_PATH) != 0)
			defaults[1] = socket;
	}
	for (; from[n] != NULL; n++) {
		if (!serve_may_listen(a, from[n], et))
			return 0;
		rows[n] = (struct endpoint_listen){.address = from[n],
		    .path = DEFAULT_PATH,
		    .profile = "",
		    .allowed_hosts = a->allowed_hosts,
		    .allowed_origins = a->allowed_origins,
		    .mode = 0600};
	}
	return n;
}

/* The rows that a conf and the command line make together: one allocation, for
 * mem_free. Views of profiles that the gateway does not know yet are reserved. */
static struct endpoint_listen *
server_rows(
    const struct server *s, const struct fleet *f, size_t *n, struct mv_errtext *et)
{
	const struct conf *c = f->conf;
	size_t max = c->n_listen > APP_LISTEN_MAX ? c->n_listen : APP_LISTEN_MAX;
	struct endpoint_listen *rows = mem_xcalloc(max, sizeof(*rows));

	if (s->a->listen[0] != NULL || c->n_listen == 0) {
		*n = rows_of_app(s->a, rows, et);
		if (*n == 0) {
			mem_free(rows);
			return NULL;
		}
		return rows;
	}
	for (size_t i = 0; i < c->n_listen; i++) {
		const struct conf_listen *l = &c->listen[i];

		rows[i] = (struct endpoint_listen){.address = l->address,
		    .path = l->path,
		    .sse_path = l->sse_path,
		    .profile = l->profile ? l->profile : "",
		    .allowed_hosts = (const char *const *)l->allowed_hosts,
		    .allowed_origins = (const char *const *)l->allowed_origins,
		    .mode = l->mode,
		    .group = l->group};
		if (!gateway_reserve_view(s->gateway, l->profile, &rows[i].view)) {
			(void)snprintf(et->file, sizeof(et->file), "%s", l->profile);
			mv_errtext_set(et, "too many profiles; a restart makes room");
			mem_free(rows);
			return NULL;
		}
	}
	*n = c->n_listen;
	return rows;
}

void
server_put_endpoint_opts(const struct fleet *f, struct endpoint_http_opts *o)
{
	const struct conf *c = f->conf;

	o->http = http_server_defaults;
	o->http.connections_max = c->limits.connections_max;
	o->http.pipeline_max = c->limits.pipeline_max;
	o->http.head_ms = c->http.head_ms;
	o->http.body_ms = c->http.body_ms;
	o->http.idle_ms = c->http.idle_ms;
	o->http.heartbeat_ms = c->http.heartbeat_ms;
	o->commit_ms = c->http.commit_ms;
	o->session_s = c->http.session_s;
	o->session_idle_ms = c->http.session_idle_ms;
	o->session_state_idle_ms = c->http.session_state_idle_ms;
	o->replay_bytes = c->http.replay_bytes;
	o->replay_ms = c->http.replay_ms;
	o->sessions_max = c->limits.sessions_max;
	o->drain_ms = c->drain_ms;
}

/* Rows may share an address. */
static bool
address_is_told(const struct server *s, size_t i)
{
	const char *bound = endpoint_http_address(s->endpoint, i);

	for (size_t k = 0; k < i; k++)
		if (strcmp(endpoint_http_address(s->endpoint, k), bound) == 0)
			return true;
	return false;
}

static void
server_log_addresses(const struct server *s)
{
	const char *bound;

	for (size_t i = 0; (bound = endpoint_http_address(s->endpoint, i)) != NULL; i++)
		if (!address_is_told(s, i))
			LOG_NOTICE("serve", "listening", "address=%s",
			    LOG_ESC(bound, strlen(bound)));
}

bool
server_listen(struct server *s, const struct fleet *f, struct mv_errtext *et)
{
	size_t n = 0;
	struct endpoint_listen *rows = server_rows(s, f, &n, et);
	bool by_default = s->a->listen[0] == NULL && f->conf->n_listen == 0;
	bool ok = rows != NULL;

	if (ok)
		ok = endpoint_http_set_listen(s->endpoint, rows, n, et) == MV_OK;
	/* Another one may serve at the default socket already; this one has its port. */
	if (!ok && rows != NULL && by_default && n > 1) {
		LOG_NOTICE("serve", "goes on without a socket", "reason=%s",
		    LOG_ESC(et->message, strlen(et->message)));
		ok = endpoint_http_set_listen(s->endpoint, rows, 1, et) == MV_OK;
	}
	if (ok)
		server_log_addresses(s);
	mem_free(rows);
	return ok;
}

static bool
serve_listen(struct server *s)
{
	struct mv_errtext et = {.line = 0};
	bool ok = server_listen(s, s->fleet, &et);

	if (!ok)
		fprintf(stderr, "mcpvisor serve: %s%s%s\n", et.file,
		    et.file[0] ? ": " : "", et.message);
	return ok;
}

static enum mv_err
on_restart(void *arg, const char *name)
{
	struct server *s = arg;
	struct upstream *u = gateway_find_upstream(s->gateway, name);

	if (u == NULL)
		return MV_NOT_FOUND;
	if (s->stopping)
		return MV_STOPPING;
	LOG_NOTICE("serve", "restarting an upstream on demand", "upstream=%s",
	    LOG_ESC(name, strlen(name)));
	gateway_restart(s->gateway, u, s->fleet->conf->reload_drain_ms);
	return MV_OK;
}

static enum mv_err
on_reload(void *arg, bool dry_run, struct buf *text)
{
	return server_reload(arg, dry_run, text);
}

static enum mv_err
on_take_mcp(
    void *arg, int fd, uid_t uid, const char *profile, const char *buffered, size_t n)
{
	struct server *s = arg;
	unsigned view;

	if (!gateway_view(s->gateway, profile, &view))
		return MV_NOT_FOUND;
	if (s->stopping)
		return MV_STOPPING;
	endpoint_http_add_lines(s->endpoint, fd, uid, view, buffered, n);
	return MV_OK;
}

static const struct control_ops control_callbacks = {
    .put_status = server_put_status,
    .restart = on_restart,
    .reload = on_reload,
    .take_mcp = on_take_mcp,
};

/* path, or what it is from here; its socket wants an absolute one. */
static const char *
serve_absolute(const char *path, char *out, size_t size)
{
	char here[PATH_MAX];

	if (path == NULL || path[0] == '\0' || path[0] == '/' ||
	    getcwd(here, sizeof(here)) == NULL)
		return path;
	(void)snprintf(out, size, "%s/%s", here, path);
	return out;
}

/* A socket that was asked for must be there; the default one is a convenience. */
static bool
serve_control(struct server *s)
{
	const struct conf *c = s->fleet->conf;
	const char *asked = s->a->socket ? s->a->socket : c->control.socket,
		   *path = asked;
	struct control_opts o = {.mode = c->control.mode, .group = c->control.group};
	struct mv_errtext et = {.line = 0};
	char text[512], whole[PATH_MAX + 512];

	if (path == NULL)
		path = control_default_path(text, sizeof(text));
	path = serve_absolute(path, whole, sizeof(whole));
	if (path == NULL || path[0] == '\0')
		return true;
	o.path = path;
	if (control_new(s->loop, &o, &control_callbacks, s, &s->control, &et) == MV_OK)
		return true;
	if (asked != NULL) {
		fprintf(
		    stderr, "mcpvisor serve: control socket %s: %s\n", path, et.message);
		return false;
	}
	LOG_NOTICE("serve", "goes on without a control socket", "path=%s reason=%s",
	    LOG_ESC(path, strlen(path)), LOG_ESC(et.message, strlen(et.message)));
	return true;
}

static void
on_made(void *arg, struct upstream *u)
{
	struct server *s = arg;

	if (s->fleet->conf->state.lists)
		state_recall(s->state, u);
}

static void
on_memory(void *arg, struct upstream *u)
{
	struct server *s = arg;

	if (s->fleet->conf->state.lists)
		state_remember(s->state, u);
}

/* Before anything is written or started. */
static bool
serve_may(const struct app *a)
{
	struct mv_errtext et = {.line = 0};

	for (size_t i = 0; a->listen[i] != NULL; i++) {
		if (serve_may_listen(a, a->listen[i], &et))
			continue;
		fprintf(stderr, "mcpvisor serve: %s: %s\n", et.file, et.message);
		return false;
	}
	return true;
}

/* Often enough that those who share the folder see what we use. */
static void
on_sweep(void *arg)
{
	struct server *s = arg;

	state_sweep(s->state, s->fleet->conf->state.keep_days);
	timer_set(&s->sweep, SWEEP_MS);
}

/* CLI_OK, or what to exit with. */
static int
serve_setup(struct server *s)
{
	struct endpoint_http_opts eo = endpoint_http_defaults;
	struct gateway_opts go = {.on_made = on_made,
	    .on_memory = on_memory,
	    .on_released = server_on_released,
	    .arg = s,
	    .can_ask = true};

	s->loop = loop_new();
	s->spawner = s->loop ? spawner_new(s->loop) : NULL;
	if (s->spawner == NULL)
		return app_no_loop(s->a);
	s->state = state_open(s->fleet->conf->state.dir);
	state_key(s->state, &eo.key);
	eo.mark_gone = state_mark_gone;
	eo.is_gone = state_is_gone;
	eo.gone_arg = s->state;
	server_put_endpoint_opts(s->fleet, &eo);
	fleet_put_opts(s->fleet, &go);
	s->curl = curl_loop_new(s->loop);
	s->gateway = gateway_new(
	    &(struct upstream_env){
		.loop = s->loop, .spawner = s->spawner, .curl = s->curl},
	    &go);
	/* Not before what is still wanted has been recalled, which makes it used. */
	timer_init(&s->sweep, s->loop, on_sweep, s);
	on_sweep(s);
	s->endpoint = endpoint_http_new(s->loop, s->gateway, &eo);
	mac_key_wipe(&eo.key);
	/* Whoever reads that we listen may stop us at once. */
	if (!loop_on_signal(s->loop, SIGTERM, on_stop_signal, s) ||
	    !loop_on_signal(s->loop, SIGINT, on_stop_signal, s) ||
	    !loop_on_signal(s->loop, SIGHUP, on_reload_signal, s))
		return app_no_loop(s->a);
	return serve_control(s) && serve_listen(s) ? CLI_OK : CLI_CONF;
}

static void
serve_end(struct server *s)
{
	control_free(s->control);
	timer_fini(&s->sweep);
	notify_free(s->notify);
	endpoint_http_free(s->endpoint);
	gateway_free(s->gateway);
	curl_loop_free(s->curl);
	if (s->spawner != NULL)
		spawner_free(s->spawner);
	loop_free(s->loop);
	state_close(s->state);
	while (s->old != NULL) {
		struct fleet *f = s->old;

		s->old = f->next;
		fleet_free(f);
	}
	fleet_free(s->fleet);
}

int
run_serve(struct app *a)
{
	struct server s = {.a = a, .started_ms = clock_now_ms()};
	int code;

	s.old_tail = &s.old;
	if (!a->demo && a->mcp_json == NULL)
		(void)app_find_conf(a);
	s.fleet = fleet_load_or_say(a);
	if (s.fleet == NULL)
		return CLI_CONF;
	fleet_settle(a, s.fleet);
	fleet_warn(s.fleet);
	client_log_calls(s.fleet->conf->log.calls);
	code = serve_may(a) ? serve_setup(&s) : CLI_CONF;
	if (code == CLI_OK) {
		s.notify = notify_new(s.loop);
		gateway_start(s.gateway);
		notify_ready(s.notify);
		code = loop_run(s.loop);
	}
	serve_end(&s);
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
		o.path = APP_SOCKET_PATH;
	if (c.loop == NULL)
		return app_no_loop(a);
	if (relay_new(c.loop, &o, &c.relay, &et) != MV_OK)
		fprintf(stderr, "mcpvisor connect: %s\n", et.message);
	else
		code = loop_run(c.loop);
	relay_free(c.relay);
	loop_free(c.loop);
	return code;
}
