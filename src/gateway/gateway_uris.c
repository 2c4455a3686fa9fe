/* SPDX-License-Identifier: MIT */
/*
 * Which upstream a URI belongs to.
 *
 * Owns: the bounded table of URIs that results named lately, oldest first.
 * Invariants: a listed URI wins over a remembered one, which wins over a template.
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

void
gateway_uris_fini(struct gateway *g)
{
	while (g->recent_first != NULL) {
		struct recent_uri *r = g->recent_first;

		g->recent_first = r->next;
		mem_free(r);
	}
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
recent_drop_oldest(struct gateway *g)
{
	struct recent_uri *r = g->recent_first;

	g->recent_first = r->next;
	if (g->recent_first == NULL)
		g->recent_tail = &g->recent_first;
	(void)strmap_del(g->recent, r->uri, r->len);
	mem_free(r);
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
	*g->recent_tail = r;
	g->recent_tail = &r->next;
	if (strmap_count(g->recent) > CAP_RECENT_URIS)
		recent_drop_oldest(g);
}

void
gateway_note_uris(
    struct gateway *g, struct upstream *u, const char *base, const struct json_msg *json)
{
	for (uint32_t i = 0; i < json->n_uris; i++) {
		struct jtext uri = gateway_text(g, jtext_of(base, json->uris[i]));

		if (uri.n != 0 && catalog_find(g->catalog, LIST_RESOURCES, uri) == NULL)
			recent_note(g, u, uri);
	}
}

struct upstream *
gateway_route_uri(struct gateway *g, struct jtext uri)
{
	struct jtext text = gateway_text(g, uri);
	struct recent_uri *recent;
	struct route *r;

	if (text.n == 0 || text.n > CAP_URI_BYTES)
		return NULL;
	r = catalog_find(g->catalog, LIST_RESOURCES, text);
	if (r != NULL)
		return r->u;
	recent = strmap_get(g->recent, text.p, text.n);
	if (recent != NULL)
		return recent->u;
	r = catalog_match_template(g->catalog, text);
	return r != NULL ? r->u : NULL;
}
