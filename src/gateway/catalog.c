/* SPDX-License-Identifier: MIT */
/*
 * Merging the upstreams' lists.
 *
 * Owns: the routes and the merged arrays.
 * Driven by: looks; a mark only says that the next look must merge.
 * Invariants: order is conf order, then the upstream's own; a published name leads to
 * the upstream that had it first as long as the catalog lives (but for the oldest of
 * very many that nobody offers any more); definitions are the upstream's bytes but for
 * the name.
 */
#include "mcpvisor/catalog.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/naming.h"

#include <string.h>

/* A merged list must fit into what may wait for a client, with some room for others. */
#define BODY_MAX (CAP_OUT_BYTES - 1024u * 1024)
/* The two brackets, a comma and what a longer name adds. */
#define ITEM_EXTRA_BYTES (CAP_NAME_BYTES + 8)

struct merged {
	struct buf body;
	uint64_t hash;
	unsigned generation;
	bool dirty;
	size_t n_live;		     /* routes of this generation */
	struct strmap *by_published; /* routes, earlier ones too: one reference each */
	struct strmap *by_owner;     /* upstream index + original: the same routes */
};

struct catalog {
	struct upstream *const *v;
	size_t n;
	struct merged kinds[LIST_MAX];
	struct buf name, key, original; /* scratch */
};

struct route *
route_ref(struct route *r)
{
	r->refs++;
	return r;
}

void
route_unref(struct route *r)
{
	if (r != NULL && --r->refs == 0)
		mem_free(r);
}

static struct route *
route_new(enum list_kind kind, struct upstream *u, struct jtext original,
    struct jtext published)
{
	struct route *r = mem_try(sizeof(*r) + original.n + published.n + 2);

	if (r == NULL)
		return NULL;
	*r = (struct route){.refs = 1, .kind = kind, .u = u};
	memcpy(r->bytes, original.p, original.n);
	r->bytes[original.n] = '"';
	memcpy(r->bytes + original.n + 1, published.p, published.n);
	r->bytes[original.n + 1 + published.n] = '"';
	r->original = (struct jtext){r->bytes, original.n};
	r->quoted = r->bytes + original.n;
	r->published = (struct jtext){r->quoted + 1, published.n};
	return r;
}

struct catalog *
catalog_new(struct upstream *const *v, size_t n)
{
	struct catalog *c = mem_xcalloc(1, sizeof(*c));

	c->v = v;
	c->n = n;
	buf_init(&c->name, CAP_URI_BYTES * 8);
	buf_init(&c->key, CAP_URI_BYTES * 8);
	buf_init(&c->original, CAP_URI_BYTES * 8);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		buf_init(&c->kinds[k].body, BODY_MAX);
		c->kinds[k].dirty = true;
		c->kinds[k].by_published = strmap_new();
		c->kinds[k].by_owner = strmap_new();
	}
	return c;
}

static bool
route_drop(const char *key, size_t len, void *value, void *arg)
{
	(void)key;
	(void)len;
	(void)arg;
	route_unref(value);
	return true;
}

void
catalog_free(struct catalog *c)
{
	if (c == NULL)
		return;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		strmap_each(c->kinds[k].by_published, route_drop, NULL);
		strmap_free(c->kinds[k].by_published);
		strmap_free(c->kinds[k].by_owner);
		buf_fini(&c->kinds[k].body);
	}
	buf_fini(&c->name);
	buf_fini(&c->key);
	buf_fini(&c->original);
	mem_free(c);
}

void
catalog_mark(struct catalog *c, enum list_kind kind)
{
	c->kinds[kind].dirty = true;
}

static bool
kind_is_named(enum list_kind kind)
{
	return kind == LIST_TOOLS || kind == LIST_PROMPTS;
}

/* Leaves in c->name a published name that nobody has: the preferred form, then the
 * qualified, then the hashed. False: even that is taken. */
static bool
catalog_choose_name(struct catalog *c, enum list_kind kind, const struct upstream *u)
{
	const struct upstream_conf *conf = upstream_conf_of(u);

	for (unsigned form = NAMING_PREFERRED; form <= NAMING_HASHED; form++) {
		struct route *other;

		buf_reset(&c->name);
		naming_publish(conf->name, conf->prefix, c->original.data,
		    c->original.len, (enum naming_form)form, &c->name);
		if (c->name.err != MV_OK)
			return false;
		other =
		    strmap_get(c->kinds[kind].by_published, c->name.data, c->name.len);
		if (other == NULL)
			return true;
		LOG_WARNING("catalog", "name is taken", "name=%s upstream=%s owner=%s",
		    LOG_ESC(c->name.data, c->name.len),
		    LOG_ESC(conf->name, strlen(conf->name)),
		    LOG_ESC(upstream_name(other->u), strlen(upstream_name(other->u))));
	}
	return false;
}

/* Enters r, which may be NULL, under its published name; NULL if there is no room. */
static struct route *
catalog_enter(struct merged *m, struct route *r)
{
	if (r != NULL &&
	    !strmap_put(m->by_published, r->published.p, r->published.n, r)) {
		route_unref(r);
		return NULL;
	}
	return r;
}

/* A URI goes to whoever offers it first in conf order, today. */
static struct route *
catalog_route_uri(
    struct catalog *c, enum list_kind kind, struct upstream *u, struct jtext name)
{
	struct merged *m = &c->kinds[kind];
	struct jtext uri = {c->original.data, c->original.len};
	struct route *r = strmap_get(m->by_published, uri.p, uri.n);

	if (r != NULL && (r->u == u || r->generation == m->generation))
		return r->u == u ? r : NULL;
	if (r != NULL) {
		(void)strmap_del(m->by_published, uri.p, uri.n);
		route_unref(r);
	}
	return catalog_enter(m, route_new(kind, u, name, uri));
}

/* A name stays with whoever had it first. */
static struct route *
catalog_route_name(
    struct catalog *c, enum list_kind kind, uint32_t owner, struct jtext name)
{
	struct merged *m = &c->kinds[kind];
	struct route *r;

	buf_reset(&c->key);
	buf_add(&c->key, &owner, sizeof(owner));
	buf_add(&c->key, c->original.data, c->original.len);
	if (c->key.err != MV_OK)
		return NULL;
	r = strmap_get(m->by_owner, c->key.data, c->key.len);
	if (r != NULL)
		return r;
	if (!catalog_choose_name(c, kind, c->v[owner]))
		return NULL;
	r = catalog_enter(m, route_new(kind, c->v[owner], name,
				 (struct jtext){c->name.data, c->name.len}));
	if (r != NULL && !strmap_put(m->by_owner, c->key.data, c->key.len, r)) {
		(void)strmap_del(m->by_published, r->published.p, r->published.n);
		route_unref(r);
		return NULL;
	}
	return r;
}

/* The route of one item, known or new. NULL: it cannot be published. */
static struct route *
catalog_route(struct catalog *c, enum list_kind kind, uint32_t owner, struct jtext name)
{
	buf_reset(&c->original);
	if (!json_string_decode(name, &c->original) || c->original.err != MV_OK)
		return NULL;
	return kind_is_named(kind) ? catalog_route_name(c, kind, owner, name)
				   : catalog_route_uri(c, kind, c->v[owner], name);
}

static void
catalog_put_item(
    struct merged *m, const struct ulist *l, uint32_t i, const struct route *r)
{
	struct jtext def = ulist_def(l, i), name = ulist_name(l, i);
	size_t head = (size_t)(name.p - def.p);

	if (m->body.len > 1)
		buf_add_char(&m->body, ',');
	if (!kind_is_named(r->kind)) {
		json_put(&m->body, def);
		return;
	}
	buf_add(&m->body, def.p, head);
	buf_add(&m->body, r->quoted, r->published.n + 2);
	buf_add(&m->body, name.p + name.n, def.n - head - name.n);
}

static bool
catalog_has_room(const struct merged *m, const struct ulist *l, uint32_t i)
{
	return m->body.len + ulist_def(l, i).n + ITEM_EXTRA_BYTES <= BODY_MAX;
}

static void
catalog_merge_one(struct catalog *c, enum list_kind kind, uint32_t owner)
{
	struct merged *m = &c->kinds[kind];
	const struct ulist *l = upstream_list(c->v[owner], kind);
	const char *who = upstream_name(c->v[owner]);

	for (uint32_t i = 0; i < l->n; i++) {
		struct jtext name = ulist_name(l, i);
		struct route *r = catalog_route(c, kind, owner, name);

		if (r == NULL || r->generation == m->generation ||
		    !catalog_has_room(m, l, i)) {
			LOG_LIMITED(LOG_LV_WARNING, "catalog",
			    "left out: offered twice or without room",
			    "upstream=%s list=%s name=%s", LOG_ESC(who, strlen(who)),
			    list_member(kind), LOG_ESC(name.p, name.n));
			continue;
		}
		r->generation = m->generation;
		r->item = i;
		m->n_live++;
		catalog_put_item(m, l, i, r);
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
	route_unref(r);
	return true;
}

/* An upstream that invents names for ever must not fill our memory. */
static void
catalog_forget_stale(struct merged *m)
{
	if (strmap_count(m->by_published) - m->n_live <= CAP_STALE_NAMES)
		return;
	strmap_each(m->by_owner, owner_drop_stale, m);
	strmap_each(m->by_published, route_drop_stale, m);
}

static struct merged *
catalog_look(struct catalog *c, enum list_kind kind)
{
	struct merged *m = &c->kinds[kind];

	if (!m->dirty)
		return m;
	m->dirty = false;
	m->generation++;
	m->n_live = 0;
	buf_reset(&m->body);
	buf_add_char(&m->body, '[');
	for (uint32_t i = 0; i < c->n; i++)
		catalog_merge_one(c, kind, i);
	catalog_forget_stale(m);
	buf_add_char(&m->body, ']');
	if (m->body.err != MV_OK) {
		LOG_ERROR("catalog", "merged list does not fit", "list=%s reason=%s",
		    list_member(kind), mv_err_reason(m->body.err));
		buf_fini(&m->body);
		buf_add_str(&m->body, "[]");
	}
	m->hash = hash_stable(HASH_STABLE_SEED, m->body.data, m->body.len);
	return m;
}

struct jtext
catalog_body(struct catalog *c, enum list_kind kind)
{
	struct merged *m = catalog_look(c, kind);
	struct jtext t = {m->body.data, m->body.len};

	return t;
}

uint64_t
catalog_hash(struct catalog *c, enum list_kind kind)
{
	return catalog_look(c, kind)->hash;
}

struct route *
catalog_find(struct catalog *c, enum list_kind kind, struct jtext name)
{
	struct merged *m = catalog_look(c, kind);
	struct route *r = strmap_get(m->by_published, name.p, name.n);

	return r != NULL && r->generation == m->generation ? r : NULL;
}

long
template_match(struct jtext pattern, struct jtext uri)
{
	const char *p = pattern.p, *pe = p + pattern.n, *u = uri.p, *ue = u + uri.n;
	const char *brace = memchr(p, '{', pattern.n), *close;
	size_t n = brace ? (size_t)(brace - p) : pattern.n;
	long literal = (long)n;

	if ((size_t)(ue - u) < n || memcmp(p, u, n) != 0)
		return -1;
	u += n;
	p += n;
	while (p < pe) {
		/* At an expression: the literal after it is looked for, the last one at
		 * the end of the URI. */
		close = memchr(p, '}', (size_t)(pe - p));
		if (close == NULL)
			return -1;
		p = close + 1;
		brace = memchr(p, '{', (size_t)(pe - p));
		n = (size_t)((brace ? brace : pe) - p);
		if (brace == NULL) {
			if ((size_t)(ue - u) < n || memcmp(p, ue - n, n) != 0)
				return -1;
			return literal + (long)n;
		}
		u = n ? memmem(u, (size_t)(ue - u), p, n) : u;
		if (u == NULL)
			return -1;
		u += n;
		p += n;
		literal += (long)n;
	}
	return u == ue ? literal : -1;
}

struct template_search {
	const struct merged *m;
	struct jtext uri;
	struct catalog *c;
	struct route *best;
	long best_literal;
};

static void
template_try(struct template_search *s, struct jtext name)
{
	struct route *r;
	long literal;

	buf_reset(&s->c->original);
	if (!json_string_decode(name, &s->c->original))
		return;
	r = strmap_get(s->m->by_published, s->c->original.data, s->c->original.len);
	if (r == NULL || r->generation != s->m->generation)
		return;
	literal = template_match(r->published, s->uri);
	if (literal > s->best_literal) {
		s->best = r;
		s->best_literal = literal;
	}
}

struct route *
catalog_match_template(struct catalog *c, struct jtext uri)
{
	struct template_search s = {
	    .m = catalog_look(c, LIST_TEMPLATES), .uri = uri, .c = c, .best_literal = -1};

	for (size_t i = 0; i < c->n; i++) {
		const struct ulist *l = upstream_list(c->v[i], LIST_TEMPLATES);

		for (uint32_t k = 0; k < l->n; k++)
			template_try(&s, ulist_name(l, k));
	}
	return s.best;
}

uint64_t
catalog_ttl_ms(struct catalog *c, enum list_kind kind)
{
	uint64_t ttl = UINT64_MAX, now = clock_now_ms();

	for (size_t i = 0; i < c->n; i++) {
		const struct ulist *l = upstream_list(c->v[i], kind);
		uint64_t age = now - l->fetched_ms, left;

		/* What is missing now may come at any time, unless it was given up. */
		if (!l->is_known && upstream_state(c->v[i]) != UPSTREAM_ST_PARKED)
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
catalog_is_private(struct catalog *c, enum list_kind kind)
{
	for (size_t i = 0; i < c->n; i++)
		if (upstream_list(c->v[i], kind)->is_private)
			return true;
	return false;
}
