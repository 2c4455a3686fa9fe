/* SPDX-License-Identifier: MIT */
/*
 * The fleet as one.
 *
 * Owns: the upstreams, the catalog.
 * Driven by: upstreams' callbacks and front's requests.
 * Invariants: m and v have one entry for each upstream in conf order; it is settled
 * exactly while each of them is.
 */
#include "mcpvisor/gateway.h"

#include "gateway_priv.h"
#include "gateway_questions_priv.h"
#include "gateway_tasks_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

bool
gateway_is_settled(const struct gateway *g)
{
	return g->settled;
}

static bool
gateway_look_settled(const struct gateway *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!upstream_is_settled(g->v[i]))
			return false;
	return true;
}

void
gateway_check_settled(struct gateway *g)
{
	bool before = g->settled;

	g->settled = gateway_look_settled(g);
	if (!g->settled || !g->started)
		return;
	if (!before)
		LOG_NOTICE("gateway", "all lists are in", "upstreams=%zu", g->n);
	if (!g->wait_over)
		gateway_wake(g);
}

void
gateway_check_stopped(struct gateway *g)
{
	void (*fn)(void *) = g->on_stopped;

	if (fn == NULL || g->n_stopped < g->n || g->instances != NULL ||
	    g->leaving != NULL)
		return;
	g->on_stopped = NULL;
	fn(g->on_stopped_arg);
}

struct catalog_opts
gateway_catalog_opts(const struct gateway *g)
{
	struct catalog_opts o = {.v = g->v,
	    .n = g->n,
	    .profiles = g->profiles,
	    .n_profiles = g->n_views,
	    .name_bytes = g->opts.name_bytes};

	return o;
}

struct gateway *
gateway_new(const struct upstream_env *env, const struct gateway_opts *o)
{
	struct gateway *g = mem_xcalloc(1, sizeof(*g));
	struct catalog_opts co;

	g->magic = GATEWAY_MAGIC;
	g->loop = env->loop;
	g->env = *env;
	g->opts = *o;
	g->n = o->n;
	g->m = mem_xcalloc(o->n + 1, sizeof(struct member *));
	g->v = mem_xcalloc(o->n + 1, sizeof(struct upstream *));
	buf_init(&g->scratch, CAP_MESSAGE_BYTES);
	buf_init(&g->answers.hint, CAP_MESSAGE_BYTES);
	label_init(&g->answers.label);
	g->answers.identities = identity_gate_new();
	members_init(g);
	gateway_waits_init(g);
	gateway_questions_init(g);
	gateway_uris_init(g);
	gateway_views_init(g, o);
	for (size_t i = 0; i < o->n; i++) {
		g->m[i] = member_new(g, o->confs[i], NULL);
		g->v[i] = g->m[i]->u;
	}
	co = gateway_catalog_opts(g);
	g->catalog = catalog_new(&co);
	for (size_t i = 0; i < o->n; i++) {
		if (o->on_made != NULL)
			o->on_made(o->arg, g->v[i]);
		member_activate(g->m[i]);
	}
	gateway_check_settled(g);
	return g;
}

void
gateway_free(struct gateway *g)
{
	if (g == NULL)
		return;
	timer_fini(&g->wait_timer);
	subscriptions_fini(g);
	catalog_free(g->catalog);
	tasks_fini(g);
	members_fini(g);
	gateway_questions_fini(g);
	gateway_views_fini(g);
	gateway_uris_fini(g);
	buf_fini(&g->scratch);
	label_fini(&g->answers.label);
	buf_fini(&g->answers.hint);
	strmap_free(g->answers.suspects);
	identity_gate_free(g->answers.identities);
	g->magic = 0;
	mem_free(g);
}

void
gateway_start(struct gateway *g)
{
	timer_set(&g->wait_timer, g->opts.list_wait_ms);
	g->started = true;
	for (size_t i = 0; i < g->n; i++) {
		g->m[i]->is_started = true;
		member_declare(g->m[i]);
		upstream_start(g->v[i]);
	}
	gateway_check_settled(g); /* maybe all is known from before */
}

void
gateway_stop(
    struct gateway *g, const struct child_ladder *ladder, void (*fn)(void *), void *arg)
{
	struct member *next;

	g->stopping = true;
	g->on_stopped = fn;
	g->on_stopped_arg = arg;
	subscriptions_end(g); /* before the upstreams that they watch */
	for (struct member *m = g->leaving; m != NULL; m = next) {
		next = m->next;
		member_stop(m, ladder);
	}
	for (struct member *m = g->instances; m != NULL; m = next) {
		next = m->next;
		member_stop(m, ladder);
	}
	for (size_t i = 0; i < g->n; i++)
		member_stop(g->m[i], ladder);
	gateway_check_stopped(g); /* there may have been nothing to stop */
}

struct gateway_list
gateway_list(struct gateway *g, unsigned view, enum list_kind kind)
{
	struct gateway_list l = {.body = catalog_body(g->catalog, view, kind),
	    .ttl_ms = g->settled ? catalog_ttl_ms(g->catalog, view, kind) : 0,
	    .is_private = catalog_is_private(g->catalog, view, kind)};

	gateway_note_given(g, view, kind);
	for (size_t i = 0; i < g->n; i++)
		if (catalog_shows_upstream(g->catalog, view, g->v[i]))
			upstream_refresh_stale(g->v[i], kind);
	return l;
}

struct upstream_caps
gateway_caps(const struct gateway *g, unsigned view)
{
	bool all = !g->settled;
	struct upstream_caps sum = {.tools = all,
	    .prompts = all,
	    .resources = all,
	    .completions = all,
	    .logging = all,
	    .subscribe = all};

	for (size_t i = 0; i < g->n; i++) {
		const struct upstream_caps *c = upstream_caps(g->v[i]);

		if (!catalog_shows_upstream(g->catalog, view, g->v[i]))
			continue;
		sum.tools |= c->tools;
		sum.prompts |= c->prompts;
		sum.resources |= c->resources;
		sum.completions |= c->completions;
		sum.logging |= c->logging;
		sum.subscribe |= c->subscribe;
		/* Only what is certain: who does not know of a task lacks nothing. */
		sum.tasks |= c->tasks;
		sum.tasks_cancel |= c->tasks_cancel;
		sum.tasks_extension |= c->tasks_extension;
		/* One that has never answered yet may bring anything when it does. */
		if (!upstream_list(g->v[i], LIST_TOOLS)->is_known &&
		    upstream_state(g->v[i]) != UPSTREAM_ST_PARKED)
			sum.tools = sum.prompts = sum.resources = true;
	}
	sum.tools_changed = sum.prompts_changed = sum.resources_changed = true;
	return sum;
}

void
gateway_put_instructions(const struct gateway *g, unsigned view, struct buf *out)
{
	for (size_t i = 0; i < g->n; i++) {
		const char *text = upstream_instructions(g->v[i]);

		if (text == NULL || !catalog_shows_upstream(g->catalog, view, g->v[i]))
			continue;
		if (out->len > 0)
			buf_add_str(out, "\n\n");
		buf_add_str(out, "## ");
		buf_add_str(out, upstream_name(g->v[i]));
		buf_add_str(out, "\n\n");
		buf_add_str(out, text);
	}
}

struct jtext
gateway_tool_definition(struct gateway *g, unsigned view, struct jtext name)
{
	struct jtext text = gateway_text(g, name);

	return text.n != 0 ? catalog_definition(g->catalog, view, text) : text;
}

struct gateway_answers *
gateway_answers(struct gateway *g)
{
	return &g->answers;
}

struct loop *
gateway_loop(struct gateway *g)
{
	return g->loop;
}

struct catalog *
gateway_catalog(struct gateway *g)
{
	return g->catalog;
}

size_t
gateway_count(const struct gateway *g)
{
	return g->n;
}

struct upstream *
gateway_upstream(const struct gateway *g, size_t i)
{
	return g->v[i];
}

struct upstream *
gateway_find_upstream(const struct gateway *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(upstream_name(g->v[i]), name) == 0)
			return g->v[i];
	return NULL;
}
