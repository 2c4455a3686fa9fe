/* SPDX-License-Identifier: MIT */
/*
 * What of the published names is worth an operator's look.
 *
 * Owns: nothing.
 * Driven by: the check of a conf.
 * Invariants: nothing is published or changed by looking.
 */
#include "catalog_priv.h"

#include <string.h>

/* Longer than any name may be. */
#define WHOLE_NAME (1024u * 1024)

struct finder {
	struct merge g;
	uint32_t item;
	struct catalog_finding f;
	bool is_odd;
};

static bool
buf_is(const struct buf *b, struct jtext t)
{
	return b->len == t.n && (t.n == 0 || memcmp(b->data, t.p, t.n) == 0);
}

/* Appends the preferred name as it would be without charset and budget. */
static void
put_plain_name(const struct merge *g, const struct tool_shape *shape, struct buf *out)
{
	const struct buf *original = &g->c->original;

	buf_add_str(out, g->conf->prefix != NULL ? g->conf->prefix : g->conf->name);
	if (g->conf->prefix == NULL)
		buf_add_str(out, "__");
	if (shape != NULL && shape->name != NULL)
		buf_add_str(out, shape->name);
	else
		buf_add(out, original->data, original->len);
}

static void
find_name(struct finder *s)
{
	struct merge *g = &s->g;
	struct catalog *c = g->c;
	const struct tool_shape *shape = merge_shape(g);
	const struct route *r = merge_known_name(g), *other;

	if (r != NULL && r->generation == g->m->generation && r->item == s->item)
		s->f.published = r->published;
	buf_reset(&c->name);
	buf_reset(&c->shown);
	merge_put_name(g, shape, NAMING_PREFERRED, WHOLE_NAME, &c->name);
	put_plain_name(g, shape, &c->shown);
	s->f.is_mapped = !buf_is(&c->name, (struct jtext){c->shown.data, c->shown.len});
	s->f.is_short = c->name.len > c->o.name_bytes;
	buf_reset(&c->name);
	merge_put_name(g, shape, NAMING_PREFERRED, c->o.name_bytes, &c->name);
	other = strmap_get(g->m->by_published, c->name.data, c->name.len);
	if (other != NULL && other->u != g->u)
		s->f.owner = other->u;
	s->is_odd = s->f.is_mapped || s->f.is_short || !buf_is(&c->name, s->f.published);
}

static void
find_uri(struct finder *s)
{
	struct merge *g = &s->g;
	struct jtext uri = merge_uri(g);
	const struct route *head = strmap_get(g->m->by_published, uri.p, uri.n);

	if (head != NULL && head->u != g->u)
		s->f.owner = head->u;
	for (const struct route *r = head; r != NULL; r = r->twin)
		if (r->generation == g->m->generation && r->u == g->u &&
		    r->item == s->item)
			s->f.published = r->published;
	s->is_odd = s->f.owner != NULL || s->f.published.p == NULL;
}

void
catalog_each_finding(struct catalog *c, enum list_kind kind,
    void (*fn)(void *arg, const struct catalog_finding *f), void *arg)
{
	(void)catalog_look(c, kind);
	for (size_t k = 0; k < c->o.n; k++) {
		const struct ulist *l = upstream_list(c->o.v[k], kind);
		struct finder s;

		merge_init(&s.g, c, kind, c->o.v[k]);
		for (uint32_t i = 0; i < l->n; i++) {
			if (!merge_wants(&s.g, ulist_name(l, i), ulist_def(l, i)))
				continue;
			s.item = i;
			s.f = (struct catalog_finding){.kind = kind,
			    .u = c->o.v[k],
			    .original = {c->original.data, c->original.len}};
			if (kind_is_named(kind))
				find_name(&s);
			else
				find_uri(&s);
			if (s.is_odd)
				fn(arg, &s.f);
		}
	}
}
