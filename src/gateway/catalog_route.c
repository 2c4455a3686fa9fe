/* SPDX-License-Identifier: MIT */
/*
 * Routes: which published name or URI leads to which item of which upstream.
 *
 * Owns: the routes, by the references of by_published; a twin by its head.
 * Driven by: catalog.c, once for each item of a merge.
 * Invariants: no route of the tables points to an upstream that is not in the catalog;
 * one that leaves the tables points to none. The first route of a URI is its head; what
 * other upstreams have under the same URI are its twins, and no two of them are shown in
 * one view.
 */
#include "catalog_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

struct route *
route_ref(struct route *r)
{
	r->refs++;
	return r;
}

void
route_unref(struct route *r)
{
	while (r != NULL && --r->refs == 0) {
		struct route *twin = r->twin;

		mem_free(r);
		r = twin;
	}
}

static struct route *
route_new(const struct merge *g, struct jtext original, struct jtext published)
{
	struct route *r = mem_try(sizeof(*r) + original.n + published.n + 2);

	if (r == NULL)
		return NULL;
	*r = (struct route){.refs = 1, .kind = g->kind, .u = g->u};
	memcpy(r->bytes, original.p, original.n);
	r->bytes[original.n] = '"';
	memcpy(r->bytes + original.n + 1, published.p, published.n);
	r->bytes[original.n + 1 + published.n] = '"';
	r->original = (struct jtext){r->bytes, original.n};
	r->quoted = r->bytes + original.n;
	r->published = (struct jtext){r->quoted + 1, published.n};
	return r;
}

/* Takes the table's reference. Calls may hold on to r; its upstream and its conf they
 * may not. */
static void
route_leave(struct route *r)
{
	for (struct route *t = r; t != NULL; t = t->twin) {
		t->u = NULL;
		t->shape = NULL;
	}
	route_unref(r);
}

void
merge_init(struct merge *g, struct catalog *c, enum list_kind kind, struct upstream *u)
{
	*g = (struct merge){.c = c,
	    .m = &c->kinds[kind],
	    .kind = kind,
	    .u = u,
	    .conf = upstream_conf_of(u)};
	g->own = catalog_conf_filter(g->conf, kind);
	for (unsigned view = 0; view < c->n_views; view++) {
		const struct profile_conf *p = catalog_profile(c, view);
		uint32_t bit = UINT32_C(1) << view;

		if (p != NULL && !profile_has_upstream(p, g->conf->name))
			continue;
		g->shows |= bit;
		if (p != NULL && catalog_profile_filter(p, kind) != NULL)
			g->filtered |= bit;
	}
}

bool
merge_wants(struct merge *g, struct jtext name, struct jtext definition)
{
	struct buf *b = &g->c->original;

	buf_reset(b);
	if (!json_string_decode(name, b) || b->err != MV_OK)
		return false;
	if (g->kind == LIST_TOOLS && (g->own != NULL || g->filtered != 0))
		g->annotations = json_member(definition, "annotations");
	return g->own == NULL ||
	       filter_allows(g->own, (struct jtext){b->data, b->len}, g->annotations);
}

const struct tool_shape *
merge_shape(const struct merge *g)
{
	const struct buf *b = &g->c->original;

	if (g->kind != LIST_TOOLS || g->conf->n_shapes == 0)
		return NULL;
	return upstream_conf_shape(g->conf, b->data, b->len);
}

void
merge_put_name(const struct merge *g, const struct tool_shape *shape,
    enum naming_form form, size_t budget, struct buf *out)
{
	struct naming y = {g->conf->name, g->conf->prefix, budget};
	struct jtext name = {g->c->original.data, g->c->original.len};

	if (shape != NULL && shape->name != NULL)
		name = (struct jtext){shape->name, strlen(shape->name)};
	naming_publish(&y, name.p, name.n, form, out);
}

struct route *
merge_known_name(const struct merge *g)
{
	struct catalog *c = g->c;

	buf_reset(&c->key);
	buf_add(&c->key, g->conf->name, strlen(g->conf->name) + 1);
	buf_add(&c->key, c->original.data, c->original.len);
	return c->key.err == MV_OK ? strmap_get(g->m->by_owner, c->key.data, c->key.len)
				   : NULL;
}

/* Leaves in c->name a published name that nobody has: the preferred form, then the
 * qualified, then the hashed. False: even that is taken. */
static bool
merge_choose_name(const struct merge *g, const struct tool_shape *shape)
{
	struct buf *name = &g->c->name;

	for (unsigned form = NAMING_PREFERRED; form <= NAMING_HASHED; form++) {
		const struct route *other;
		const char *owner;

		buf_reset(name);
		merge_put_name(
		    g, shape, (enum naming_form)form, g->c->o.name_bytes, name);
		if (name->err != MV_OK)
			return false;
		other = strmap_get(g->m->by_published, name->data, name->len);
		if (other == NULL)
			return true;
		owner = upstream_name(other->u);
		LOG_LIMITED(LOG_LV_WARNING, "catalog", "name is taken",
		    "name=%s upstream=%s owner=%s", LOG_ESC(name->data, name->len),
		    LOG_ESC(g->conf->name, strlen(g->conf->name)),
		    LOG_ESC(owner, strlen(owner)));
	}
	return false;
}

/* Enters r, which may be NULL, under its published name; NULL if there is no room. */
static struct route *
merge_enter(const struct merge *g, struct route *r)
{
	if (r != NULL &&
	    !strmap_put(g->m->by_published, r->published.p, r->published.n, r)) {
		route_unref(r);
		return NULL;
	}
	return r;
}

/* A name stays with whoever had it first. */
static struct route *
merge_name(const struct merge *g, struct jtext original)
{
	struct catalog *c = g->c;
	struct route *r = merge_known_name(g);
	const struct tool_shape *shape;

	if (r != NULL || c->key.err != MV_OK)
		return r;
	shape = merge_shape(g);
	if (!merge_choose_name(g, shape))
		return NULL;
	r = merge_enter(
	    g, route_new(g, original, (struct jtext){c->name.data, c->name.len}));
	if (r == NULL)
		return NULL;
	r->shape = shape;
	if (strmap_put(g->m->by_owner, c->key.data, c->key.len, r))
		return r;
	(void)strmap_del(g->m->by_published, r->published.p, r->published.n);
	route_leave(r);
	return NULL;
}

struct jtext
merge_uri(const struct merge *g)
{
	struct catalog *c = g->c;

	buf_reset(&c->name);
	if (g->conf->uri_prefix == NULL)
		return (struct jtext){c->original.data, c->original.len};
	buf_add_str(&c->name, g->conf->uri_prefix);
	buf_add(&c->name, c->original.data, c->original.len);
	return (struct jtext){c->name.data, c->name.len};
}

/* Another upstream has this URI already: *views keeps those that do not show it. */
static struct route *
merge_twin(
    const struct merge *g, struct jtext original, struct route *head, uint32_t *views)
{
	struct route *r;

	for (r = head; r != NULL; r = r->twin) {
		if (r->u == g->u)
			return NULL;
		*views &= ~r->views;
	}
	if (*views == 0)
		return NULL;
	r = route_new(g, original, head->published);
	if (r == NULL)
		return NULL;
	r->twin = head->twin;
	head->twin = r;
	g->m->n_twins++;
	return r;
}

/* A URI goes to whoever offers it first in conf order, today. */
static struct route *
merge_uri_route(
    const struct merge *g, struct jtext original, struct jtext uri, uint32_t *views)
{
	struct merged *m = g->m;
	struct route *r = strmap_get(m->by_published, uri.p, uri.n);

	if (g->c->name.err != MV_OK)
		return NULL;
	if (r != NULL && r->generation == m->generation)
		return merge_twin(g, original, r, views);
	if (r != NULL && r->u == g->u) {
		/* The twins of the merge before. */
		if (r->twin != NULL)
			route_leave(r->twin);
		r->twin = NULL;
		return r;
	}
	if (r != NULL) {
		(void)strmap_del(m->by_published, uri.p, uri.n);
		route_leave(r);
	}
	return merge_enter(g, route_new(g, original, uri));
}

static bool
merged_reserve(struct merged *m)
{
	size_t cap = m->cap_live > 0 ? 2 * m->cap_live : 64;
	struct route **live;

	if (m->n_live < m->cap_live)
		return true;
	live = mem_try_realloc(m->live, cap * sizeof(struct route *));
	if (live == NULL)
		return false;
	m->live = live;
	m->cap_live = cap;
	return true;
}

bool
merge_item(const struct merge *g, uint32_t i)
{
	const struct ulist *l = upstream_list(g->u, g->kind);
	struct jtext name = ulist_name(l, i), uri;
	struct merged *m = g->m;
	uint32_t views, wanted = 0;
	struct route *r;

	if (!merged_reserve(m))
		return false;
	if (kind_is_named(g->kind)) {
		r = merge_name(g, name);
		if (r == NULL || r->generation == m->generation)
			return false;
		views = catalog_views_of(g, r->published);
	} else {
		uri = merge_uri(g);
		wanted = views = catalog_views_of(g, uri);
		r = merge_uri_route(g, name, uri, &views);
		if (r == NULL)
			return false;
	}
	r->generation = m->generation;
	r->item = i;
	r->identity = ROUTE_IDENTITY_UNKNOWN;
	r->views = views;
	m->live[m->n_live++] = r;
	return (wanted & ~views) == 0;
}

/* r, which may be NULL, stays with the item in c->original if it would get that name
 * again. */
static void
merge_claim(const struct merge *g, struct route *r)
{
	const struct tool_shape *shape = merge_shape(g);
	struct buf *name = &g->c->name;

	if (r == NULL || r->generation == g->m->generation)
		return;
	buf_reset(name);
	merge_put_name(g, shape, NAMING_PREFERRED, g->c->o.name_bytes, name);
	if (name->err != MV_OK || name->len != r->published.n ||
	    memcmp(name->data, r->published.p, name->len) != 0)
		return;
	r->generation = g->m->generation;
	r->u = g->u;
	r->shape = shape;
}

void
catalog_claim_names(struct catalog *c, enum list_kind kind)
{
	for (size_t k = 0; k < c->o.n; k++) {
		const struct ulist *l = upstream_list(c->o.v[k], kind);
		struct merge g;

		merge_init(&g, c, kind, c->o.v[k]);
		for (uint32_t i = 0; i < l->n; i++)
			if (merge_wants(&g, ulist_name(l, i), ulist_def(l, i)))
				merge_claim(&g, merge_known_name(&g));
	}
}

static bool
owner_drop_stale(const char *key, size_t len, void *value, void *arg)
{
	const struct route *r = value;
	struct merged *m = arg;

	if (r->generation != m->generation)
		(void)strmap_del(m->by_owner, key, len);
	return true;
}

static bool
route_drop_stale(const char *key, size_t len, void *value, void *arg)
{
	struct route *r = value;
	struct merged *m = arg;

	if (r->generation == m->generation)
		return true;
	(void)strmap_del(m->by_published, key, len);
	route_leave(r);
	return true;
}

void
merged_drop_stale(struct merged *m)
{
	strmap_each(m->by_owner, owner_drop_stale, m);
	strmap_each(m->by_published, route_drop_stale, m);
}
