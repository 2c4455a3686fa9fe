/* SPDX-License-Identifier: MIT */
/*
 * check: what the conf says, what is wrong with it, and what clients would see of the
 * tools that are known from earlier runs. Nothing is started, nothing is written.
 *
 * Owns: a fleet and a catalog that never run.
 * Driven by: main.
 */
#include "app_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/catalog.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/spawn.h"
#include "mcpvisor/state.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* What clients cut a name to, or refuse it at, their own prefix included. */
static const size_t client_limits[] = {60, 64};
#define N_LIMITS (sizeof(client_limits) / sizeof(client_limits[0]))

struct check {
	struct app *a;
	struct fleet *fleet;
	struct state *state;
	struct gateway *gateway;
	json_t *findings; /* array of {"level", "text"} */
	unsigned n_errors;
	size_t known[LIST_MAX];
};

static void __attribute__((format(printf, 3, 4)))
check_add(struct check *k, bool is_error, const char *fmt, ...)
{
	char what[1024];
	json_t *t;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	k->n_errors += is_error;
	/* Names of upstreams are text by LOG_ESC; those of files may be anything. */
	t = json_string(what);
	if (t == NULL)
		t = json_string(LOG_ESC(what, strlen(what)));
	(void)json_array_append_new(k->findings,
	    json_pack("{s:s, s:o?}", "level", is_error ? "error" : "note", "text", t));
}

static void
check_errors(struct check *k, const struct conf_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		check_add(k, true, "%s", e->v[i]);
	if (e->n_more > 0)
		check_add(k, true, "and %zu more errors", e->n_more);
}

static void
on_made(void *arg, struct upstream *u)
{
	struct check *k = arg;

	state_recall(k->state, u);
}

static void
on_finding(void *arg, const struct catalog_finding *f)
{
	struct check *k = arg;
	const char *who = upstream_name(f->u), *kind = list_member(f->kind);

	who = LOG_ESC(who, strlen(who));
	if (f->published.n == 0) {
		check_add(k, false, "%s of %s: %s cannot be published", kind, who,
		    LOG_ESC(f->original.p, f->original.n));
	} else if (f->owner != NULL) {
		const char *owner = upstream_name(f->owner);

		check_add(k, false,
		    "%s of %s: %s is published as %s, its name is taken by %s", kind, who,
		    LOG_ESC(f->original.p, f->original.n),
		    LOG_ESC(f->published.p, f->published.n),
		    LOG_ESC(owner, strlen(owner)));
	} else {
		check_add(k, false, "%s of %s: %s is published as %s (%s)", kind, who,
		    LOG_ESC(f->original.p, f->original.n),
		    LOG_ESC(f->published.p, f->published.n),
		    f->is_short ? "shortened" : "characters are mapped");
	}
}

/* Whether a view before this one shows the tool as well. */
static bool
check_is_told(struct catalog *c, unsigned view, const struct buf *name)
{
	const struct route *r = catalog_find(
	    c, view, LIST_TOOLS, (struct jtext){.p = name->data, .n = name->len});

	return r != NULL && (r->views & ((1u << view) - 1)) != 0;
}

static void
check_name(struct check *k, const struct buf *name, unsigned long prefix)
{
	size_t limit = 0;

	for (size_t i = N_LIMITS; i-- > 0;)
		if (name->len + prefix > client_limits[i] && limit == 0)
			limit = client_limits[i];
	if (limit == 0)
		return;
	check_add(k, false,
	    "%s has %zu characters, with %lu in front %lu: over the %zu that "
	    "clients take",
	    LOG_ESC(name->data, name->len), name->len, prefix,
	    (unsigned long)name->len + prefix, limit);
}

/* Names that a client which puts prefix bytes in front would cut or refuse, whatever
 * profile shows them. */
static void
check_prefix(struct check *k, unsigned long prefix)
{
	struct catalog *c = gateway_catalog(k->gateway);
	unsigned view = 0;
	struct json_iter it;
	struct jtext def;
	struct buf name;

	buf_init(&name, CAP_URI_BYTES);
	do {
		json_iter_init(&it, catalog_body(c, view, LIST_TOOLS));
		while (json_next_element(&it, &def)) {
			buf_reset(&name);
			if (json_string_decode(json_member(def, "name"), &name) &&
			    !check_is_told(c, view, &name))
				check_name(k, &name, prefix);
		}
	} while (++view < k->fleet->n_profiles);
	buf_fini(&name);
}

static void
check_fleet(struct check *k)
{
	const struct conf *c = k->fleet->conf;

	for (size_t i = 0; i < c->n_warnings; i++)
		check_add(k, false, "%s", c->warnings[i]);
	for (size_t i = 0; i < k->fleet->n; i++) {
		const struct upstream_conf *u = k->fleet->enabled[i];

		if (u->broken != MV_OK)
			check_add(k, true, "upstream %s: %s",
			    LOG_ESC(u->name, strlen(u->name)), u->broken_text);
	}
	for (unsigned kind = 0; kind < LIST_MAX; kind++) {
		for (size_t i = 0; i < gateway_count(k->gateway); i++)
			k->known[kind] += upstream_list(
			    gateway_upstream(k->gateway, i), (enum list_kind)kind)
					      ->n;
		catalog_each_finding(
		    gateway_catalog(k->gateway), (enum list_kind)kind, on_finding, k);
	}
	if (k->a->client_prefix != NULL)
		check_prefix(k, strtoul(k->a->client_prefix, NULL, 10));
}

static void
check_print(const struct check *k)
{
	const json_t *f;
	size_t i;

	json_array_foreach(k->findings, i, f)
	{
		bool is_error =
		    strcmp(json_string_value(json_object_get(f, "level")), "error") == 0;
		const char *what = json_string_value(json_object_get(f, "text"));

		(void)fprintf(is_error ? stderr : stdout, "%s%s\n",
		    is_error ? "" : "note: ", what ? what : "?");
	}
	if (k->fleet == NULL || k->n_errors > 0) {
		(void)fprintf(
		    stderr, "%u error%s\n", k->n_errors, k->n_errors == 1 ? "" : "s");
	} else {
		(void)printf(
		    "ok: %zu upstreams, %zu profiles; known of earlier runs: %zu "
		    "tools, %zu prompts, %zu resources\n",
		    k->fleet->n, k->fleet->conf->n_profiles, k->known[LIST_TOOLS],
		    k->known[LIST_PROMPTS], k->known[LIST_RESOURCES]);
	}
}

static void
check_print_json(const struct check *k)
{
	json_t *o =
	    json_pack("{s:b, s:O}", "ok", k->n_errors == 0, "findings", k->findings);

	if (k->fleet != NULL)
		(void)json_object_set_new(
		    o, "upstreams", json_integer((json_int_t)k->fleet->n));
	(void)json_dumpf(o, stdout, JSON_INDENT(2));
	(void)putchar('\n');
	json_decref(o);
}

static void
check_dump(const struct check *k)
{
	struct buf b;

	buf_init(&b, CAP_CONTROL_BYTES);
	conf_dump(k->fleet->conf, false, &b);
	if (b.err == MV_OK)
		(void)fwrite(b.data, 1, b.len, stdout);
	else
		(void)fprintf(stderr, "mcpvisor check: too long to be shown\n");
	buf_fini(&b);
}

int
run_check(struct app *a)
{
	struct check k = {.a = a, .findings = json_array()};
	struct loop *loop = loop_new();
	struct spawner *spawner = loop ? spawner_new(loop) : NULL;
	struct curl_loop *curl = NULL;
	struct gateway_opts go = {.on_made = on_made, .arg = &k};
	struct conf_errors e;

	if (!a->demo && a->mcp_json == NULL)
		(void)app_find_conf(a);
	k.fleet = fleet_load(a, &e);
	check_errors(&k, &e);
	conf_errors_free(&e);
	if (spawner == NULL)
		check_add(&k, true, "cannot set up the event loop");
	if (k.fleet != NULL && spawner != NULL) {
		k.state = state_open_to_look(k.fleet->conf->state.dir);
		fleet_put_opts(k.fleet, &go);
		curl = curl_loop_new(loop);
		k.gateway = gateway_new(
		    &(struct upstream_env){
			.loop = loop, .spawner = spawner, .curl = curl},
		    &go);
		check_fleet(&k);
	}
	if (a->json)
		check_print_json(&k);
	else if (a->dump && k.fleet != NULL && k.n_errors == 0)
		check_dump(&k);
	else
		check_print(&k);
	gateway_free(k.gateway);
	curl_loop_free(curl);
	state_close(k.state);
	fleet_free(k.fleet);
	if (spawner != NULL)
		spawner_free(spawner);
	loop_free(loop);
	json_decref(k.findings);
	return k.n_errors > 0 ? CLI_TOOL_ERROR : CLI_OK;
}
