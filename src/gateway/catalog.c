/* SPDX-License-Identifier: MIT */
/*
 * The merged lists: what is in them, who has what.
 *
 *   mark -> (look) merge: routes, once for all views -> (look) body of one view
 *
 * Owns: the routes and the merged arrays.
 * Driven by: looks; a mark only says that the next look must merge.
 * Invariants: order is conf order, then the upstream's own; a published name leads to
 * the upstream that had it first until a reload (but for the oldest of very many that
 * nobody offers any more); definitions are the upstream's bytes but for what the conf
 * wants otherwise.
 */
#include "mcpvisor/catalog.h"

#include "catalog_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

struct catalog *
catalog_new(const struct catalog_opts *o)
{
	struct catalog *c = mem_xcalloc(1, sizeof(*c));

	buf_init(&c->name, CAP_URI_BYTES * 8);
	buf_init(&c->key, CAP_URI_BYTES * 8);
	buf_init(&c->original, CAP_URI_BYTES * 8);
	buf_init(&c->shown, CATALOG_BODY_MAX);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct merged *m = &c->kinds[k];

		m->by_published = strmap_new();
		m->by_owner = strmap_new();
		for (unsigned i = 0; i < CATALOG_VIEWS_MAX; i++)
			buf_init(&m->views[i].body, CATALOG_BODY_MAX);
	}
	catalog_set(c, o);
	return c;
}

static void
views_fini(struct merged *m, unsigned from)
{
	for (unsigned i = from; i < CATALOG_VIEWS_MAX; i++)
		buf_fini(&m->views[i].body);
}

void
catalog_free(struct catalog *c)
{
	if (c == NULL)
		return;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct merged *m = &c->kinds[k];

		m->generation++;
		merged_drop_stale(m);
		strmap_free(m->by_published);
		strmap_free(m->by_owner);
		mem_free(m->live);
		views_fini(m, 0);
	}
	buf_fini(&c->name);
	buf_fini(&c->key);
	buf_fini(&c->original);
	buf_fini(&c->shown);
	mem_free(c);
}

static size_t
name_budget(size_t bytes)
{
	if (bytes == 0)
		return CAP_NAME_BYTES;
	if (bytes < NAMING_BUDGET_MIN)
		return NAMING_BUDGET_MIN;
	return bytes > NAMING_BUDGET_MAX ? NAMING_BUDGET_MAX : bytes;
}

void
catalog_set(struct catalog *c, const struct catalog_opts *o)
{
	MCPVISOR_ASSERT(o->n_profiles <= CATALOG_VIEWS_MAX);
	c->o = *o;
	c->o.name_bytes = name_budget(o->name_bytes);
	c->n_views = o->n_profiles > 0 ? (unsigned)o->n_profiles : 1;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct merged *m = &c->kinds[k];

		m->generation++;
		if (kind_is_named((enum list_kind)k))
			catalog_claim_names(c, (enum list_kind)k);
		/* Nothing is left that points to an upstream of before. */
		merged_drop_stale(m);
		m->n_live = 0;
		m->dirty = true;
		views_fini(m, c->n_views);
	}
}

void
catalog_mark(struct catalog *c, enum list_kind kind)
{
	c->kinds[kind].dirty = true;
}

static void
catalog_merge_one(struct catalog *c, enum list_kind kind, struct upstream *u)
{
	const struct ulist *l = upstream_list(u, kind);
	struct merge g;

	merge_init(&g, c, kind, u);
	for (uint32_t i = 0; i < l->n; i++) {
		struct jtext name = ulist_name(l, i);

		if (!merge_wants(&g, name, ulist_def(l, i)) || merge_item(&g, i))
			continue;
		LOG_LIMITED(LOG_LV_WARNING, "catalog",
		    "left out: offered twice or without room",
		    "upstream=%s list=%s name=%s",
		    LOG_ESC(g.conf->name, strlen(g.conf->name)), list_member(kind),
		    LOG_ESC(name.p, name.n));
	}
}

/* An upstream that invents names for ever must not fill our memory. */
static void
catalog_forget_stale(struct merged *m)
{
	size_t live = m->n_live - m->n_twins;

	if (strmap_count(m->by_published) - live > CAP_STALE_NAMES)
		merged_drop_stale(m);
}

struct merged *
catalog_look(struct catalog *c, enum list_kind kind)
{
	struct merged *m = &c->kinds[kind];

	if (!m->dirty)
		return m;
	m->dirty = false;
	m->generation++;
	m->n_live = 0;
	m->n_twins = 0;
	for (size_t i = 0; i < c->o.n; i++)
		catalog_merge_one(c, kind, c->o.v[i]);
	catalog_forget_stale(m);
	return m;
}

struct route *
catalog_find(struct catalog *c, unsigned view, enum list_kind kind, struct jtext name)
{
	struct merged *m = catalog_look(c, kind);
	struct route *r = strmap_get(m->by_published, name.p, name.n);

	if (view >= c->n_views)
		return NULL;
	while (r != NULL && !route_is_shown(r, m, view))
		r = r->twin;
	return r;
}

uint64_t
catalog_ttl_ms(struct catalog *c, unsigned view, enum list_kind kind)
{
	uint64_t ttl = UINT64_MAX, now = clock_now_ms();

	for (size_t i = 0; i < c->o.n; i++) {
		const struct upstream *u = c->o.v[i];
		const struct ulist *l = upstream_list(u, kind);
		uint64_t age = now - l->fetched_ms, left;

		if (!catalog_shows_upstream(c, view, u))
			continue;
		/* What is missing now may come at any time, unless it was given up. */
		if (!l->is_known && upstream_state(u) != UPSTREAM_ST_PARKED)
			return 0;
		if (!l->is_known || l->pages == 0)
			continue; /* it has no such list: nothing to go stale */
		left = l->ttl_ms < 0 || age >= (uint64_t)l->ttl_ms
			   ? 0
			   : (uint64_t)l->ttl_ms - age;
		if (left < ttl)
			ttl = left;
	}
	return ttl == UINT64_MAX ? 0 : ttl;
}

bool
catalog_is_private(struct catalog *c, unsigned view, enum list_kind kind)
{
	for (size_t i = 0; i < c->o.n; i++)
		if (upstream_list(c->o.v[i], kind)->is_private &&
		    catalog_shows_upstream(c, view, c->o.v[i]))
			return true;
	return false;
}
