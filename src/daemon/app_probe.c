/* SPDX-License-Identifier: MIT */
/*
 * probe: calls each harmless tool once and writes down what it returned.
 *
 *   lists are in --> a line for each upstream (app_probe_line.c) --> file
 *
 * Owns: the fleet that it starts, the records.
 * Driven by: the lists, the ends of lines, a timer, signals.
 * Invariants: what is not looked at now stays as it was known; the file is written once,
 * at the end, and by an interrupted run not at all.
 */
#include "app_probe_priv.h"

#include "overlay.h"
#include "probe_record.h"

#include "mcpvisor/cli.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/spawn.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

void
probe_keep(struct probe *p, json_t *record)
{
	(void)json_array_append_new(p->records, record);
}

static bool
probe_wants(const struct probe *p, const struct upstream *u)
{
	return p->a->argc == 0 || strcmp(p->a->argv[0], upstream_name(u)) == 0;
}

/* Of upstreams that were not looked at now, or do not run, what was known stays. */
static void
probe_keep_others(struct probe *p)
{
	json_t *r;
	size_t i;

	json_array_foreach(p->old, i, r)
	{
		const struct upstream *u =
		    gateway_find_upstream(p->gateway, record_text(r, "upstream"));

		if (u != NULL && (!probe_wants(p, u) || !upstream_is_complete(u)))
			probe_keep(p, json_incref(r));
	}
}

static void
on_stopped(void *arg)
{
	struct probe *p = arg;

	loop_stop(p->loop, 0);
}

static const char *
probe_path(const struct probe *p)
{
	return p->a->to != NULL ? p->a->to : p->fleet->conf->probe.file;
}

static void
probe_write(struct probe *p)
{
	bool changed = false;

	if (!overlay_write(probe_path(p), p->records, &changed)) {
		fprintf(
		    stderr, "mcpvisor probe: %s: %s\n", probe_path(p), strerror(errno));
		p->code = CLI_UPSTREAM;
		return;
	}
	fprintf(stdout, "%u called, %u sampled; %s is %s\n", p->n_called, p->n_sampled,
	    probe_path(p), changed ? "written" : "as it was");
}

void
probe_finish(struct probe *p)
{
	if (!p->stopping)
		probe_write(p);
	p->stopping = true;
	gateway_stop(p->gateway, &child_ladder_defaults, on_stopped, p);
}

/* Hands each tool that is shown to the line of its upstream. */
static void
probe_deal(struct probe *p)
{
	struct jtext body = gateway_list(p->gateway, p->self.view, LIST_TOOLS).body, def;
	struct catalog *c = gateway_catalog(p->gateway);
	struct json_iter it;

	json_iter_init(&it, body);
	while (json_next_element(&it, &def)) {
		struct jtext name = gateway_text(p->gateway, json_member(def, "name"));
		struct route *r = catalog_find(c, p->self.view, LIST_TOOLS, name);

		for (size_t i = 0; r != NULL && i < p->n_lines; i++) {
			struct probe_line *line = &p->lines[i];

			if (line->u != r->u)
				continue;
			line->routes = mem_xrealloc(
			    line->routes, (line->n + 1) * sizeof(struct route *));
			line->routes[line->n++] = route_ref(r);
		}
	}
}

static void
probe_begin(struct probe *p)
{
	timer_clear(&p->settle);
	p->n_lines = gateway_count(p->gateway);
	p->lines = mem_xcalloc(p->n_lines + 1, sizeof(*p->lines));
	probe_keep_others(p);
	for (size_t i = 0; i < p->n_lines; i++)
		p->lines[i].u = gateway_upstream(p->gateway, i);
	probe_deal(p);
	p->n_open = 1; /* ours, while they start */
	for (size_t i = 0; i < p->n_lines; i++) {
		struct probe_line *line = &p->lines[i];

		line->p = p;
		line_init(line);
		if (!probe_wants(p, line->u))
			continue;
		if (!upstream_is_complete(line->u)) {
			fprintf(stderr, "mcpvisor probe: %s does not run: %s\n",
			    upstream_name(line->u), upstream_reason(line->u));
			p->code = CLI_UPSTREAM;
			continue;
		}
		line_begin(line);
	}
	if (--p->n_open == 0)
		probe_finish(p);
}

/* Waits until all upstreams are what they will be. */
static void
on_settle(void *arg)
{
	struct probe *p = arg;
	bool over = clock_now_ms() - p->started_ms >= PROBE_SETTLE_MS;

	if (gateway_is_settled(p->gateway) || over)
		probe_begin(p);
	else
		timer_set(&p->settle, 20);
}

static void
on_signal(void *arg)
{
	struct probe *p = arg;

	if (p->stopping)
		return;
	p->code = CLI_UPSTREAM;
	for (size_t i = 0; i < p->n_lines; i++)
		line_stop(&p->lines[i]);
	timer_clear(&p->settle);
	p->stopping = true;
	fprintf(stderr, "mcpvisor probe: interrupted; %s is as it was\n", probe_path(p));
	probe_finish(p);
}

static int
probe_setup(struct probe *p)
{
	struct gateway_opts go = {.one_client = true};
	struct mv_errtext et = {.line = 0};
	time_t now = time(NULL);
	struct tm tm;

	p->fleet = fleet_load_or_say(p->a);
	if (p->fleet == NULL)
		return CLI_CONF;
	fleet_settle(p->a, p->fleet);
	fleet_warn(p->fleet);
	if (probe_path(p) == NULL) {
		fprintf(stderr, "mcpvisor probe: nowhere to write: set probe.file, or "
				"say --to FILE\n");
		return CLI_USAGE;
	}
	p->old = overlay_read(probe_path(p), &et);
	if (p->old == NULL) {
		fprintf(stderr, "mcpvisor probe: %s: %s\n", et.file, et.message);
		return CLI_CONF;
	}
	p->records = json_array();
	(void)strftime(
	    p->time, sizeof(p->time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	p->loop = loop_new();
	p->spawner = p->loop != NULL ? spawner_new(p->loop) : NULL;
	if (p->spawner == NULL)
		return app_no_loop(p->a);
	fleet_put_opts(p->fleet, &go);
	p->curl = curl_loop_new(p->loop);
	p->gateway = gateway_new(
	    &(struct upstream_env){
		.loop = p->loop, .spawner = p->spawner, .curl = p->curl},
	    &go);
	if (p->a->argc > 0 && gateway_find_upstream(p->gateway, p->a->argv[0]) == NULL) {
		fprintf(stderr, "mcpvisor probe: no such upstream: %s\n", p->a->argv[0]);
		return CLI_PARAMS;
	}
	timer_init(&p->settle, p->loop, on_settle, p);
	return loop_on_signal(p->loop, SIGTERM, on_signal, p) &&
		       loop_on_signal(p->loop, SIGINT, on_signal, p)
		   ? CLI_OK
		   : app_no_loop(p->a);
}

static void
probe_end(struct probe *p)
{
	for (size_t i = 0; i < p->n_lines; i++)
		line_fini(&p->lines[i]);
	mem_free(p->lines);
	timer_fini(&p->settle);
	json_decref(p->old);
	json_decref(p->records);
	gateway_free(p->gateway);
	curl_loop_free(p->curl);
	if (p->spawner != NULL)
		spawner_free(p->spawner);
	loop_free(p->loop);
	fleet_free(p->fleet);
}

static void
on_changed(void *arg, unsigned kinds)
{
	(void)arg;
	(void)kinds;
}

static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	(void)arg;
	(void)u;
	(void)m;
}

int
run_probe(struct app *a)
{
	struct probe p = {.a = a, .code = CLI_OK};
	int code;

	if (!a->demo && a->mcp_json == NULL)
		(void)app_find_conf(a);
	code = probe_setup(&p);
	if (code == CLI_OK) {
		p.self.on_changed = on_changed;
		p.self.on_log = on_log;
		gateway_observe(p.gateway, &p.self);
		gateway_set_caps(p.gateway, &p.self, CLIENT_CAP_NONE);
		p.started_ms = clock_now_ms();
		gateway_start(p.gateway);
		timer_set(&p.settle, 0);
		(void)loop_run(p.loop);
		gateway_unobserve(p.gateway, &p.self);
		code = cli_flush(stdout, stderr, p.code);
	}
	probe_end(&p);
	return code;
}
