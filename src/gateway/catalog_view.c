/* SPDX-License-Identifier: MIT */
/*
 * What a profile shows: the bodies of its lists, and the rules behind them.
 *
 * Owns: the bodies, from their first look after a merge on.
 * Driven by: whoever lists, looks up a definition, or asks for an owner.
 * Invariants: a body has exactly the live routes with its view's bit, in order, but for
 * those that its bound leaves out.
 */
#include "catalog_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/naming.h"
#include "mcpvisor/shape.h"

#include <string.h>

static const struct filter *
filter_unless_open(const struct filter *f)
{
	return f->allow == NULL && f->deny == NULL ? NULL : f;
}

const struct filter *
catalog_conf_filter(const struct upstream_conf *conf, enum list_kind kind)
{
	if (kind == LIST_TOOLS)
		return filter_unless_open(&conf->tools);
	return filter_unless_open(
	    kind == LIST_PROMPTS ? &conf->prompts : &conf->resources);
}

const struct filter *
catalog_profile_filter(const struct profile_conf *p, enum list_kind kind)
{
	if (kind == LIST_TOOLS)
		return filter_unless_open(&p->tools);
	return filter_unless_open(kind == LIST_PROMPTS ? &p->prompts : &p->resources);
}

uint32_t
catalog_views_of(const struct merge *g, struct jtext published)
{
	uint32_t views = g->shows;

	for (uint32_t left = g->filtered; left != 0; left &= left - 1) {
		unsigned view = (unsigned)__builtin_ctz(left);
		const struct profile_conf *p = catalog_profile(g->c, view);

		if (!filter_allows(
			catalog_profile_filter(p, g->kind), published, g->annotations))
			views &= ~(UINT32_C(1) << view);
	}
	return views;
}

bool
catalog_shows_upstream(const struct catalog *c, unsigned view, const struct upstream *u)
{
	const struct profile_conf *p = catalog_profile(c, view);

	return view < c->n_views &&
	       (p == NULL || profile_has_upstream(p, upstream_name(u)));
}

bool
catalog_may_show_name(const struct catalog *c, unsigned view, enum list_kind kind,
    const struct upstream *u, struct jtext name, struct jtext own)
{
	const struct upstream_conf *conf = upstream_conf_of(u);
	const struct profile_conf *p = catalog_profile(c, view);
	const struct filter *mine = catalog_conf_filter(conf, kind);
	const struct filter *f = p != NULL ? catalog_profile_filter(p, kind) : NULL;
	struct buf original;
	bool may;

	if (!catalog_shows_upstream(c, view, u) ||
	    (f != NULL && !filter_may_allow(f, name)))
		return false;
	/* Of a renamed one the rule is for another name: that is for its list to say. */
	if (mine == NULL || conf->n_shapes > 0)
		return true;
	buf_init(&original, CAP_URI_BYTES);
	naming_unmap(own.p, own.n, &original);
	may = original.err != MV_OK ||
	      filter_may_allow(mine, (struct jtext){original.data, original.len});
	buf_fini(&original);
	return may;
}

struct jtext
catalog_own_uri(const struct upstream *u, struct jtext uri)
{
	const char *prefix = upstream_conf_of(u)->uri_prefix;
	size_t n = prefix != NULL ? strlen(prefix) : 0;

	if (n == 0 || uri.n <= n || memcmp(uri.p, prefix, n) != 0)
		return uri;
	return (struct jtext){uri.p + n, uri.n - n};
}

/* By u's own URI: a profile's patterns are for what is published, whichever form of it
 * a client knows. */
static bool
filter_allows_published(const struct filter *f, const char *prefix, struct jtext own)
{
	static const struct jtext none = {NULL, 0};
	struct buf b;
	bool allows;

	if (prefix == NULL)
		return filter_allows(f, own, none);
	buf_init(&b, CAP_URI_BYTES * 8);
	buf_add_str(&b, prefix);
	json_put(&b, own);
	allows = b.err == MV_OK && filter_allows(f, (struct jtext){b.data, b.len}, none);
	buf_fini(&b);
	return allows;
}

bool
catalog_shows_uri(
    const struct catalog *c, unsigned view, const struct upstream *u, struct jtext uri)
{
	static const struct jtext none = {NULL, 0};
	const struct upstream_conf *conf = upstream_conf_of(u);
	const struct filter *mine = catalog_conf_filter(conf, LIST_RESOURCES);
	const struct profile_conf *p = catalog_profile(c, view);
	const struct filter *f = p ? catalog_profile_filter(p, LIST_RESOURCES) : NULL;
	struct jtext own = catalog_own_uri(u, uri);

	return catalog_shows_upstream(c, view, u) &&
	       (mine == NULL || filter_allows(mine, own, none)) &&
	       (f == NULL || filter_allows_published(f, conf->uri_prefix, own));
}

/* False: r's item is gone, which only a list without its mark can do. */
static bool
put_item(struct buf *out, const struct route *r)
{
	const struct ulist *l = upstream_list(r->u, r->kind);
	const char *prefix = upstream_conf_of(r->u)->uri_prefix;
	struct jtext def, name;

	if (r->item >= l->n)
		return false;
	def = ulist_def(l, r->item);
	name = ulist_name(l, r->item);
	if (kind_is_named(r->kind)) {
		shape_put_definition(out, def, name,
		    (struct jtext){r->quoted, r->published.n + 2}, r->shape);
	} else if (prefix == NULL) {
		json_put(out, def);
	} else {
		buf_add(out, def.p, (size_t)(name.p - def.p));
		json_put_string(out, prefix, strlen(prefix));
		/* The URI goes on where the prefix would end. */
		if (out->err == MV_OK)
			out->len--;
		buf_add(out, name.p + 1, (size_t)(def.p + def.n - name.p - 1));
	}
	return true;
}

static void
view_put(struct catalog_view *v, const struct route *r)
{
	size_t before = v->body.len;
	const char *who;

	if (before > 1)
		buf_add_char(&v->body, ',');
	if (!put_item(&v->body, r)) {
		v->body.len = before;
		return;
	}
	if (v->body.err != MV_TOO_LONG && v->body.len < CATALOG_BODY_MAX)
		return;
	v->body.err = MV_OK;
	v->body.len = before;
	who = upstream_name(r->u);
	LOG_LIMITED(LOG_LV_WARNING, "catalog", "left out: the list is full",
	    "upstream=%s list=%s name=%s", LOG_ESC(who, strlen(who)),
	    list_member(r->kind), LOG_ESC(r->published.p, r->published.n));
}

static void
view_build(
    const struct merged *m, struct catalog_view *v, unsigned view, enum list_kind kind)
{
	buf_reset(&v->body);
	buf_add_char(&v->body, '[');
	for (size_t i = 0; i < m->n_live; i++)
		if (route_is_shown(m->live[i], m, view))
			view_put(v, m->live[i]);
	buf_add_char(&v->body, ']');
	if (v->body.err != MV_OK) {
		LOG_ERROR("catalog", "merged list does not fit", "list=%s reason=%s",
		    list_member(kind), mv_err_reason(v->body.err));
		buf_fini(&v->body);
		buf_add_str(&v->body, "[]");
	}
	v->hash = ulist_hash(HASH_STABLE_SEED, v->body.data, v->body.len);
	v->generation = m->generation;
}

/* NULL: there is no such view. */
static const struct catalog_view *
view_look(struct catalog *c, unsigned view, enum list_kind kind)
{
	struct merged *m = catalog_look(c, kind);

	if (view >= c->n_views)
		return NULL;
	if (m->views[view].generation != m->generation)
		view_build(m, &m->views[view], view, kind);
	return &m->views[view];
}

struct jtext
catalog_body(struct catalog *c, unsigned view, enum list_kind kind)
{
	const struct catalog_view *v = view_look(c, view, kind);

	if (v == NULL)
		return (struct jtext){"[]", 2};
	return (struct jtext){v->body.data, v->body.len};
}

uint64_t
catalog_hash(struct catalog *c, unsigned view, enum list_kind kind)
{
	const struct catalog_view *v = view_look(c, view, kind);

	return v != NULL ? v->hash : hash_stable(HASH_STABLE_SEED, "[]", 2);
}

struct jtext
catalog_definition(struct catalog *c, unsigned view, struct jtext name)
{
	static const struct jtext none = {NULL, 0};
	const struct route *r = catalog_find(c, view, LIST_TOOLS, name);

	buf_reset(&c->shown);
	if (r == NULL || !put_item(&c->shown, r) || c->shown.err != MV_OK)
		return none;
	return (struct jtext){c->shown.data, c->shown.len};
}
