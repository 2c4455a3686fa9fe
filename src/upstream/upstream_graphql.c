/* SPDX-License-Identifier: MIT */
/*
 * A GraphQL endpoint as an upstream: its life, and where its tools come from.
 *
 *   start: files are read -> schema: none, a file, or asked for -> tools -> up
 *   refresh: the same, by a timer and for another conf; what fails leaves what was good
 *
 * Owns: the files, the schema, the tools, the question for the schema.
 * Driven by: upstream_local.c; its timer; graphql_introspect.c.
 * Invariants: it is up once, however the first question ends; tools and schema are the
 * last good ones; calls are sent only while is_ready; a list is announced as changed only
 * if its bytes are others.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/file.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WHERE_OPEN  "introspect"
#define WHERE_NONE  "none"
#define JITTER_PART 5 /* of the pause between refreshes, up to a fifth more at random */

static bool
gql_asks(const struct gql *g)
{
	const char *schema = g->u->conf->graphql.schema;

	return schema == NULL || strcmp(schema, WHERE_OPEN) == 0;
}

static bool
gql_has_no_schema(const struct gql *g)
{
	const char *schema = g->u->conf->graphql.schema;

	return schema != NULL && strcmp(schema, WHERE_NONE) == 0;
}

/* ---- tools ---- */

static bool
tools_are_same(const struct gql_tools *a, const struct gql_tools *b)
{
	return a != NULL && b != NULL && a->listing.len == b->listing.len &&
	       (a->listing.len == 0 ||
		   memcmp(a->listing.data, b->listing.data, a->listing.len) == 0);
}

/* Makes them anew. False: the last ones stay, and t says why. */
static bool
tools_rebuild(struct gql *g, struct mv_errtext *t)
{
	struct gql_sources s = {.u = g->u, .files = &g->files, .schema = g->schema};
	struct gql_tools *fresh = gql_tools_new(&s, t);
	bool changed;

	if (fresh == NULL)
		return false;
	changed = !tools_are_same(g->tools, fresh);
	gql_tools_free(g->tools);
	g->tools = fresh;
	if (changed && g->is_up)
		local_tools_changed(g->u);
	return true;
}

/* What is wrong at the start ends it; later the last good tools stay. */
static bool
tools_make(struct gql *g)
{
	struct mv_errtext t = {.line = 0};

	if (tools_rebuild(g, &t))
		return true;
	if (!g->is_up && g->tools == NULL) {
		local_down(g->u, MV_CONF, "%s", t.message);
		return false;
	}
	LOG_WARNING("graphql", "tools kept", "upstream=%s why=%s", UNAME(g->u),
	    LOG_ESC(t.message, strlen(t.message)));
	return true;
}

/* ---- life ---- */

static void
refresh_arm(struct gql *g, uint32_t ms)
{
	uint32_t spread = ms / JITTER_PART;

	if (ms != 0)
		timer_set(
		    &g->refresh, (uint64_t)ms + (spread > 0 ? clock_random(spread) : 0));
	else
		timer_clear(&g->refresh);
}

/* A source of types has been tried, and there are tools of whatever is known. */
static void
gql_settle(struct gql *g)
{
	if (!g->is_started || !tools_make(g) || g->is_up)
		return;
	g->is_up = true;
	LOG_INFO("graphql", "up", "upstream=%s tools=%zu schema=%s", UNAME(g->u),
	    g->tools->n, g->schema != NULL ? "yes" : "no");
	local_up(g->u);
}

static void
gql_set_ready(struct gql *g, bool ready, const char *why)
{
	g->is_ready = ready;
	(void)snprintf(g->not_ready, sizeof(g->not_ready), "%.*s",
	    (int)sizeof(g->not_ready) - 1, why);
}

/* True: it is one, and another one than before. */
static bool
schema_take(struct gql *g, const char *text, size_t n, struct mv_errtext *t)
{
	uint64_t hash = hash_stable(HASH_STABLE_SEED, text, n) | 1;
	struct graphql_schema *fresh;

	if (g->schema != NULL && g->schema_hash == hash)
		return true;
	fresh = graphql_schema_read(text, n, t);
	if (fresh == NULL)
		return false;
	graphql_schema_free(g->schema);
	g->schema = fresh;
	g->schema_hash = hash;
	return true;
}

static bool
schema_read_file(struct gql *g, const char *path, struct mv_errtext *t)
{
	struct buf text;
	const char *fault;
	bool ok = false;

	buf_init(&text, GRAPHQL_SCHEMA_MAX);
	fault = gql_file_read(path, &text);
	if (fault != NULL)
		mv_errtext_set(t, "%s", fault);
	else
		ok = schema_take(g, text.data, text.len, t);
	buf_fini(&text);
	return ok;
}

static void
schema_log(const struct gql *g, const char *event, const char *path, const char *why)
{
	LOG_WARNING("graphql", event, "upstream=%s file=%s why=%s", UNAME(g->u),
	    LOG_ESC(path, strlen(path)), LOG_ESC(why, strlen(why)));
}

static void
schema_save(const struct gql *g, const char *text, size_t n)
{
	const char *path = g->u->conf->graphql.cache;

	if (path != NULL && !file_replace(path, text, n))
		schema_log(g, "schema not saved", path, strerror(errno));
}

void
gql_schema_came(struct gql *g, const char *text, size_t n)
{
	struct mv_errtext t = {.line = 0};
	uint64_t before = g->schema_hash;

	if (!schema_take(g, text, n, &t)) {
		gql_schema_failed(g, t.message);
		return;
	}
	if (g->schema_hash != before)
		schema_save(g, text, n);
	backoff_reset(&g->backoff);
	gql_set_ready(g, true, "");
	refresh_arm(g, g->u->conf->graphql.refresh_ms);
	gql_settle(g);
}

/* The last good schema stays; at the start the one that was saved has its place. */
void
gql_schema_failed(struct gql *g, const char *why)
{
	const char *cache = g->u->conf->graphql.cache;
	struct mv_errtext t = {.line = 0};
	uint32_t delay_ms = 0;

	if (g->schema == NULL && cache != NULL && !schema_read_file(g, cache, &t))
		schema_log(g, "saved schema not read", cache, t.message);
	gql_set_ready(g, g->schema != NULL, why);
	(void)backoff_death(&g->backoff, 0, &delay_ms);
	LOG_LIMITED(LOG_LV_WARNING, "graphql", "no schema",
	    "upstream=%s why=%s has_old=%s next_ms=%u", UNAME(g->u),
	    LOG_ESC(why, strlen(why)), g->schema != NULL ? "yes" : "no", delay_ms);
	timer_set(&g->refresh, delay_ms);
	gql_settle(g);
}

static void
schema_from_file(struct gql *g)
{
	const char *path = g->u->conf->graphql.schema;
	struct mv_errtext t = {.line = 0};
	bool ok = schema_read_file(g, path, &t);

	if (!ok)
		schema_log(g, "schema not read", path, t.message);
	/* Where it is is no business of who calls. */
	gql_set_ready(g, g->schema != NULL,
	    "the file with its schema cannot be read by the gateway");
	refresh_arm(g, g->u->conf->graphql.refresh_ms);
	gql_settle(g);
}

/* Looks at everything anew. */
static void
gql_refresh(struct gql *g)
{
	gql_files_look(&g->files, g->u->conf->name, g->u->conf->graphql.operations);
	if (gql_asks(g)) {
		gql_introspect(g);
	} else if (gql_has_no_schema(g)) {
		gql_set_ready(g, true, "");
		refresh_arm(g, g->u->conf->graphql.refresh_ms);
		gql_settle(g);
	} else {
		schema_from_file(g);
	}
}

static void
on_refresh(void *arg)
{
	struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	gql_refresh(g);
}

/* ---- as a kind ---- */

static void
gql_take_conf(struct gql *g)
{
	const struct upstream_conf *c = g->u->conf;
	struct backoff_opts o = {
	    .base_ms = c->restart_base_ms, .max_ms = c->restart_max_ms};
	struct url_origin origin;

	backoff_set_opts(&g->backoff, &o);
	if (!url_read_origin(c->url, &origin))
		(void)snprintf(g->where, sizeof(g->where), "its endpoint");
	else if (origin.port == (strcmp(origin.scheme, "https") == 0 ? 443 : 80))
		(void)snprintf(g->where, sizeof(g->where), "%s", origin.host);
	else
		(void)snprintf(g->where, sizeof(g->where), "%s:%u", origin.host,
		    (unsigned)origin.port);
}

static void *
gql_init(struct upstream *u, const struct upstream_env *env)
{
	struct gql *g = mem_xcalloc(1, sizeof(*g));

	g->magic = GQL_MAGIC;
	g->u = u;
	g->curl = env->curl;
	g->waiting_tail = &g->waiting;
	timer_init(&g->refresh, u->loop, on_refresh, g);
	gql_introspect_init(g);
	gql_take_conf(g);
	return g;
}

static void
gql_free(void *arg)
{
	struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	timer_fini(&g->refresh);
	gql_exchange_fini(&g->fetch);
	gql_tools_free(g->tools);
	graphql_schema_free(g->schema);
	gql_files_fini(&g->files);
	g->magic = 0;
	/* Later: the caller may be its callback. */
	loop_defer_free(g->u->loop, mem_free, g);
}

static void
gql_start(void *arg)
{
	struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	g->is_started = true;
	g->is_up = false;
	g->how = GRAPHQL_INTROSPECT_FULL;
	gql_refresh(g);
}

static void
gql_stop(void *arg)
{
	struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	g->is_started = g->is_up = false;
	timer_clear(&g->refresh);
	gql_introspect_stop(g);
}

static void
gql_set_conf(void *arg)
{
	struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	gql_take_conf(g);
	if (g->is_started)
		gql_refresh(g);
}

static void
gql_put_tools(void *arg, struct buf *out)
{
	const struct gql *g = arg;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	if (g->tools != NULL)
		buf_add(out, g->tools->listing.data, g->tools->listing.len);
}

const struct local_ops local_graphql = {
    .name = "graphql",
    .init = gql_init,
    .free = gql_free,
    .start = gql_start,
    .stop = gql_stop,
    .set_conf = gql_set_conf,
    .put_tools = gql_put_tools,
    .call = gql_call,
    .cancel = gql_call_cancel,
};
