/* SPDX-License-Identifier: MIT */
/*
 * The fleet as one.
 *
 * Owns: the upstreams, the catalog, the waiters' list.
 * Driven by: upstreams' callbacks and front's requests.
 * Invariants: a list that was given to a client, or announced, is the baseline that
 * list_changed compares with; waiters are woken once, in order.
 */
#include "mcpvisor/gateway.h"

#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

#define BURST_MS 50

static void
gateway_wake(struct gateway *g)
{
	g->wait_over = true;
	timer_clear(&g->wait_timer);
	while (g->waiters != NULL) {
		struct gateway_waiter *w = g->waiters;

		gateway_unwait(w);
		w->fn(w->arg);
	}
	gateway_note_listener(g);
}

static void
on_wait_timer(void *arg)
{
	struct gateway *g = arg;

	for (size_t i = 0; i < g->n; i++) {
		struct upstream *u = g->v[i];

		if (upstream_is_settled(u))
			continue;
		LOG_NOTICE("gateway", "lists go out without an upstream",
		    "upstream=%s state=%s",
		    LOG_ESC(upstream_name(u), strlen(upstream_name(u))),
		    upstream_state_text(upstream_state(u)));
	}
	gateway_wake(g);
}

bool
gateway_is_settled(const struct gateway *g)
{
	return g->n_settled == g->n;
}

bool
gateway_wait(struct gateway *g, struct gateway_waiter *w)
{
	if (g->wait_over)
		return false;
	w->g = g;
	w->next = NULL;
	w->prev = g->waiters_tail;
	*g->waiters_tail = w;
	g->waiters_tail = &w->next;
	g->waiting_bytes += w->bytes;
	return true;
}

bool
gateway_may_keep(const struct gateway *g, size_t bytes)
{
	return bytes <= CAP_WAITING_BYTES &&
	       g->waiting_bytes <= CAP_WAITING_BYTES - bytes;
}

void
gateway_unwait(struct gateway_waiter *w)
{
	if (w->g == NULL)
		return;
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	else
		w->g->waiters_tail = w->prev;
	w->g->waiting_bytes -= w->bytes;
	w->g = NULL;
}

void
gateway_stop_waiting(struct gateway *g)
{
	gateway_wake(g);
}

/* Sets the bytes that later changes are compared with. */
static void
gateway_baseline(struct gateway *g, enum list_kind kind)
{
	g->announced[kind] = true;
	g->announced_hash[kind] = catalog_hash(g->catalog, kind);
}

static void
on_burst_timer(void *arg)
{
	struct gateway *g = arg;
	struct gateway_observer *next;
	unsigned changed = 0;

	for (unsigned k = 0; k < LIST_MAX; k++) {
		enum list_kind kind = (enum list_kind)k;

		if ((g->burst_mask & (1u << k)) == 0 ||
		    g->announced_hash[k] == catalog_hash(g->catalog, kind))
			continue;
		gateway_baseline(g, kind);
		changed |= 1u << k;
	}
	if (g->burst_mask & (1u << LIST_RESOURCES | 1u << LIST_TEMPLATES))
		subscriptions_follow(g);
	g->burst_mask = 0;
	for (struct gateway_observer *o = changed ? g->observers : NULL; o; o = next) {
		next = o->next;
		o->on_changed(o->arg, changed);
	}
}

void
gateway_note_listener(struct gateway *g)
{
	/* While upstreams start, lists grow: that is no change of what somebody had. */
	for (unsigned k = 0; k < LIST_MAX && g->wait_over; k++)
		if (!g->announced[k])
			gateway_baseline(g, (enum list_kind)k);
}

static void
gateway_retry(struct gateway *g)
{
	struct gateway_waiter *next;

	for (struct gateway_waiter *w = g->waiters; w != NULL; w = next) {
		next = w->next;
		if (w->retry != NULL)
			w->retry(w->arg);
	}
}

static void
on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	struct gateway *g = arg;

	(void)u;
	MCPVISOR_ASSERT(g->magic == GATEWAY_MAGIC);
	if (!changed)
		return;
	catalog_mark(g->catalog, kind);
	gateway_retry(g);
	/* Nobody can have an old copy of what was never given out. */
	if (!g->announced[kind])
		return;
	if (g->burst_mask == 0)
		timer_set(&g->burst_timer, BURST_MS);
	g->burst_mask |= 1u << kind;
}

static void
on_settled(void *arg, struct upstream *u)
{
	struct gateway *g = arg;

	MCPVISOR_ASSERT(g->magic == GATEWAY_MAGIC);
	g->n_settled++;
	if (upstream_state(u) != UPSTREAM_ST_READY)
		LOG_WARNING("gateway", "upstream is not available",
		    "upstream=%s reason=%s",
		    LOG_ESC(upstream_name(u), strlen(upstream_name(u))),
		    LOG_ESC(upstream_reason(u), strlen(upstream_reason(u))));
	if (!gateway_is_settled(g))
		return;
	LOG_NOTICE("gateway", "all lists are in", "upstreams=%zu", g->n);
	gateway_wake(g);
}

struct owner_search {
	struct upstream_req *req;
	size_t n;
	bool several;
};

static bool
owner_of_req(struct upstream_req *r, void *arg)
{
	struct owner_search *s = arg;

	if (s->n++ > 0 && s->req->owner != r->owner)
		s->several = true;
	s->req = r;
	return !s->several;
}

void
gateway_deliver_log(struct upstream *u, const struct link_msg *m,
    struct gateway_observer *sole, struct gateway_observer *all)
{
	struct owner_search s = {.n = 0};
	struct gateway_observer *o = sole;

	upstream_each_req(u, owner_of_req, &s);
	if (s.n == 1 && s.req->cb->on_log != NULL) {
		s.req->cb->on_log(s.req->arg, m);
		return;
	}
	if (o == NULL && s.n > 0 && !s.several)
		for (o = all; o != NULL && o != s.req->owner;)
			o = o->next;
	if (o != NULL)
		o->on_log(o->arg, u, m);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct gateway *g = arg;

	gateway_deliver_log(
	    u, m, g->n_observers == 1 ? g->observers : NULL, g->observers);
}

static void
on_updated(void *arg, struct upstream *u, const struct link_msg *m)
{
	subscription_on_updated(arg, u, m);
}

void
gateway_check_stopped(struct gateway *g)
{
	void (*fn)(void *) = g->on_stopped;

	if (fn == NULL || g->n_stopped < g->n || g->n_instances > 0)
		return;
	g->on_stopped = NULL;
	fn(g->on_stopped_arg);
}

static void
on_stopped(void *arg, struct upstream *u)
{
	struct gateway *g = arg;

	(void)u;
	g->n_stopped++;
	gateway_check_stopped(g);
}

static const struct upstream_cb upstream_callbacks = {
    .on_list = on_list,
    .on_settled = on_settled,
    .on_log = on_log,
    .on_updated = on_updated,
    .on_stopped = on_stopped,
};

struct gateway *
gateway_new(struct loop *l, struct spawner *sp, const struct gateway_opts *o)
{
	struct gateway *g = mem_xcalloc(1, sizeof(*g));

	g->magic = GATEWAY_MAGIC;
	g->loop = l;
	g->spawner = sp;
	g->list_wait_ms = o->list_wait_ms;
	g->n = o->n;
	g->v = mem_xcalloc(o->n ? o->n : 1, sizeof(*g->v));
	g->waiters_tail = &g->waiters;
	timer_init(&g->wait_timer, l, on_wait_timer, g);
	timer_init(&g->burst_timer, l, on_burst_timer, g);
	buf_init(&g->scratch, CAP_MESSAGE_BYTES);
	gateway_uris_init(g);
	for (size_t i = 0; i < o->n; i++)
		g->v[i] = upstream_new(l, sp, o->confs[i], &upstream_callbacks, g);
	g->catalog = catalog_new(g->v, g->n);
	return g;
}

void
gateway_free(struct gateway *g)
{
	if (g == NULL)
		return;
	timer_fini(&g->wait_timer);
	timer_fini(&g->burst_timer);
	subscriptions_fini(g);
	catalog_free(g->catalog);
	gateway_instances_fini(g);
	for (size_t i = 0; i < g->n; i++)
		upstream_free(g->v[i]);
	gateway_uris_fini(g);
	buf_fini(&g->scratch);
	mem_free(g->v);
	g->magic = 0;
	mem_free(g);
}

void
gateway_start(struct gateway *g)
{
	timer_set(&g->wait_timer, g->list_wait_ms);
	for (size_t i = 0; i < g->n; i++)
		upstream_start(g->v[i]);
	if (g->n == 0)
		gateway_wake(g);
}

void
gateway_stop(
    struct gateway *g, const struct child_ladder *ladder, void (*fn)(void *), void *arg)
{
	g->stopping = true;
	g->on_stopped = fn;
	g->on_stopped_arg = arg;
	gateway_stop_instances(g, ladder);
	for (size_t i = 0; i < g->n; i++)
		upstream_stop(g->v[i], ladder);
	gateway_check_stopped(g); /* there may have been nothing to stop */
}

void
gateway_observe(struct gateway *g, struct gateway_observer *o)
{
	o->level = MCP_LV_MAX;
	o->next = g->observers;
	if (o->next != NULL)
		o->next->prev = &o->next;
	o->prev = &g->observers;
	g->observers = o;
	g->n_observers++;
}

void
gateway_unobserve(struct gateway *g, struct gateway_observer *o)
{
	*o->prev = o->next;
	if (o->next != NULL)
		o->next->prev = o->prev;
	g->n_observers--;
	gateway_release_instances(g, o);
}

void
gateway_set_level(struct gateway *g, struct gateway_observer *o, enum mcp_level level)
{
	enum mcp_level most = MCP_LV_MAX;

	o->level = level;
	for (struct gateway_observer *x = g->observers; x != NULL; x = x->next)
		if (x->level < most)
			most = x->level;
	for (size_t i = 0; i < g->n; i++)
		upstream_set_level(g->v[i], most);
	gateway_set_instances_level(g, o);
}

struct gateway_list
gateway_list(struct gateway *g, enum list_kind kind)
{
	struct gateway_list l = {.body = catalog_body(g->catalog, kind),
	    .ttl_ms = gateway_is_settled(g) ? catalog_ttl_ms(g->catalog, kind) : 0,
	    .is_private = catalog_is_private(g->catalog, kind)};

	/* What others were given before stays what changes are measured by: they still
	 * have to hear of this one. */
	if (!g->announced[kind])
		gateway_baseline(g, kind);
	for (size_t i = 0; i < g->n; i++)
		upstream_refresh_stale(g->v[i], kind);
	return l;
}

struct upstream_caps
gateway_caps(const struct gateway *g)
{
	bool all = !gateway_is_settled(g);
	struct upstream_caps sum = {.tools = all,
	    .prompts = all,
	    .resources = all,
	    .completions = all,
	    .logging = all,
	    .subscribe = all};

	for (size_t i = 0; i < g->n; i++) {
		const struct upstream_caps *c = upstream_caps(g->v[i]);

		sum.tools |= c->tools;
		sum.prompts |= c->prompts;
		sum.resources |= c->resources;
		sum.completions |= c->completions;
		sum.logging |= c->logging;
		sum.subscribe |= c->subscribe;
		/* One that has never answered yet may bring anything when it does. */
		if (!upstream_list(g->v[i], LIST_TOOLS)->is_known &&
		    upstream_state(g->v[i]) != UPSTREAM_ST_PARKED)
			sum.tools = sum.prompts = sum.resources = true;
	}
	sum.tools_changed = sum.prompts_changed = sum.resources_changed = true;
	return sum;
}

void
gateway_put_instructions(const struct gateway *g, struct buf *out)
{
	for (size_t i = 0; i < g->n; i++) {
		const char *text = upstream_instructions(g->v[i]);

		if (text == NULL)
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
gateway_tool_definition(struct gateway *g, struct jtext name)
{
	struct jtext text = gateway_text(g, name), none = {NULL, 0};
	struct route *r = text.n ? catalog_find(g->catalog, LIST_TOOLS, text) : NULL;

	return r != NULL ? ulist_def(upstream_list(r->u, LIST_TOOLS), r->item) : none;
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
