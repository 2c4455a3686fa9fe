/* SPDX-License-Identifier: MIT */
/*
 * Which upstream a URI belongs to.
 *
 * Owns: the bounded table of URIs that results named lately, oldest first.
 * Invariants: a listed URI wins over a remembered one, which wins over a template; what
 * is remembered leads to an upstream of the fleet, never to an instance, and is as the
 * upstream wrote it, without the prefix under which it is published.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

void
gateway_uris_init(struct gateway *g)
{
	g->recent = strmap_new();
	g->recent_tail = &g->recent_first;
	g->subscriptions = strmap_new();
}

static void
recent_drop(struct gateway *g, struct recent_uri *r)
{
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	else
		g->recent_tail = r->prev;
	(void)strmap_del(g->recent, r->uri, r->len);
	mem_free(r);
}

void
gateway_uris_fini(struct gateway *g)
{
	while (g->recent_first != NULL)
		recent_drop(g, g->recent_first);
	strmap_free(g->recent);
	strmap_free(g->subscriptions);
}

struct jtext
gateway_text(struct gateway *g, struct jtext t)
{
	struct jtext none = {NULL, 0};

	if (jtext_type(t) != '"')
		return none;
	if (memchr(t.p, '\\', t.n) == NULL)
		return (struct jtext){t.p + 1, t.n - 2};
	buf_reset(&g->scratch);
	if (!json_string_decode(t, &g->scratch) || g->scratch.err != MV_OK)
		return none;
	return (struct jtext){g->scratch.data, g->scratch.len};
}

static void
recent_note(struct gateway *g, struct upstream *u, struct jtext uri)
{
	struct recent_uri *r = strmap_get(g->recent, uri.p, uri.n);

	if (r != NULL) {
		r->u = u;
		return;
	}
	if (uri.n == 0 || uri.n > CAP_URI_BYTES)
		return;
	r = mem_try(sizeof(*r) + uri.n);
	if (r == NULL)
		return;
	r->u = u;
	r->next = NULL;
	r->len = uri.n;
	memcpy(r->uri, uri.p, uri.n);
	if (!strmap_put(g->recent, uri.p, uri.n, r)) {
		mem_free(r);
		return;
	}
	r->prev = g->recent_tail;
	*g->recent_tail = r;
	g->recent_tail = &r->next;
	if (strmap_count(g->recent) > CAP_RECENT_URIS)
		recent_drop(g, g->recent_first);
}

/* Whoever is shown u finds the URI in a list: u's name for it would never be looked at.
 */
static bool
uri_is_listed(struct gateway *g, const struct upstream *u, struct jtext uri)
{
	for (unsigned i = 0; i < g->n_views; i++)
		if (catalog_shows_upstream(g->catalog, i, u) &&
		    catalog_find(g->catalog, i, LIST_RESOURCES, uri) == NULL)
			return false;
	return true;
}

void
gateway_note_uris(
    struct gateway *g, struct upstream *u, const char *base, const struct json_msg *json)
{
	/* u may be an instance, or on its way out. */
	struct upstream *owner = gateway_find_upstream(g, upstream_name(u));

	for (uint32_t i = 0; i < json->n_uris && owner != NULL; i++) {
		struct jtext uri = gateway_text(g, jtext_of(base, json->uris[i]));

		if (uri.n != 0 && !uri_is_listed(g, owner, uri))
			recent_note(g, owner, uri);
	}
}

void
gateway_uris_follow(struct gateway *g)
{
	struct recent_uri *next;

	for (struct recent_uri *r = g->recent_first; r != NULL; r = next) {
		struct member *m = gateway_find_leaving(g, r->u);

		next = r->next;
		if (m != NULL && m->successor != NULL)
			r->u = m->successor->u;
		else if (m != NULL)
			recent_drop(g, r);
	}
}

/* Bytes at the start of a published URI of u that it does not know. */
static size_t
uri_prefix_len(const struct upstream *u, struct jtext text)
{
	return text.n - catalog_own_uri(u, text).n;
}

static struct upstream *
recent_find(struct gateway *g, unsigned view, struct jtext text, size_t *skip)
{
	struct recent_uri *r = strmap_get(g->recent, text.p, text.n);

	*skip = 0;
	/* What begins with its owner's prefix is the published form of another. */
	if (r != NULL && uri_prefix_len(r->u, text) == 0 &&
	    catalog_shows_uri(g->catalog, view, r->u, text))
		return r->u;
	for (size_t i = 0; i < g->n; i++) {
		*skip = uri_prefix_len(g->v[i], text);
		if (*skip == 0)
			continue;
		r = strmap_get(g->recent, text.p + *skip, text.n - *skip);
		if (r != NULL && r->u == g->v[i] &&
		    catalog_shows_uri(g->catalog, view, r->u, text))
			return r->u;
	}
	return NULL;
}

struct upstream *
gateway_find_uri(struct gateway *g, unsigned view, struct jtext text, size_t *skip)
{
	struct upstream *u;
	struct route *r;

	*skip = 0;
	if (text.n == 0 || text.n > CAP_URI_BYTES)
		return NULL;
	r = catalog_find(g->catalog, view, LIST_RESOURCES, text);
	u = r == NULL ? recent_find(g, view, text, skip) : NULL;
	if (u != NULL)
		return u;
	if (r == NULL)
		r = catalog_match_template(g->catalog, view, text);
	if (r == NULL)
		return NULL;
	*skip = uri_prefix_len(r->u, text);
	return r->u;
}

struct upstream *
gateway_route_uri(struct gateway *g, unsigned view, struct jtext uri)
{
	size_t skip;

	return gateway_find_uri(g, view, gateway_text(g, uri), &skip);
}
