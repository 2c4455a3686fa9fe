/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions to single resources, counted per URI.
 *
 * Owns: one watch at the owner for each URI that anybody wants.
 * Driven by: front (add, remove), the upstream (settled, updated).
 * Invariants: a subscription has at least one subscriber, except inside its own
 * callbacks; a refused one is gone from the table before its subscribers hear of it.
 */
#include "mcpvisor/subscription.h"

#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

struct subscription {
	struct gateway *g;
	struct upstream_watch watch;
	struct subscriber *first;
	bool busy; /* inside a callback of ours: not to be freed by a removal */
	size_t key_len;
	struct buf key;	 /* the decoded URI */
	struct buf text; /* the URI as the first subscriber wrote it */
};

static void
subscription_free(struct subscription *sub)
{
	upstream_unwatch(&sub->watch);
	if (strmap_get(sub->g->subscriptions, sub->key.data, sub->key.len) == sub)
		(void)strmap_del(sub->g->subscriptions, sub->key.data, sub->key.len);
	buf_fini(&sub->key);
	buf_fini(&sub->text);
	mem_free(sub);
}

static void
subscriber_unlink(struct subscriber *s)
{
	*s->prev = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	s->sub = NULL;
}

void
subscription_remove(struct subscriber *s)
{
	struct subscription *sub = s->sub;

	if (sub == NULL)
		return;
	subscriber_unlink(s);
	if (sub->first == NULL && !sub->busy)
		subscription_free(sub);
}

/* Each subscriber that has not been told yet; it may remove itself, no other. */
static void
on_settled(void *arg, const struct outcome *o)
{
	struct subscription *sub = arg;
	struct subscriber *next;

	sub->busy = true;
	if (o != NULL)
		(void)strmap_del(sub->g->subscriptions, sub->key.data, sub->key.len);
	for (struct subscriber *s = sub->first; s != NULL; s = next) {
		next = s->next;
		if (o != NULL)
			subscriber_unlink(s);
		if (!s->settled) {
			s->settled = true;
			s->on_settled(s->arg, o);
		}
	}
	sub->busy = false;
	if (sub->first == NULL)
		subscription_free(sub);
}

static struct subscription *
subscription_new(struct gateway *g, struct jtext key, struct jtext uri)
{
	struct subscription *sub = mem_try(sizeof(*sub));

	if (sub == NULL)
		return NULL;
	memset(sub, 0, sizeof(*sub));
	sub->g = g;
	buf_init(&sub->key, CAP_URI_BYTES);
	buf_init(&sub->text, CAP_URI_BYTES * 6 + 2);
	json_put(&sub->key, key);
	json_put(&sub->text, uri);
	sub->watch.uri = (struct jtext){sub->text.data, sub->text.len};
	sub->watch.on_settled = on_settled;
	sub->watch.arg = sub;
	if (sub->key.err != MV_OK || sub->text.err != MV_OK ||
	    !strmap_put(g->subscriptions, key.p, key.n, sub)) {
		subscription_free(sub);
		return NULL;
	}
	return sub;
}

enum mv_err
subscription_add(struct gateway *g, struct jtext uri, struct subscriber *s)
{
	struct upstream *u = gateway_route_uri(g, uri);
	struct jtext key = gateway_text(g, uri);
	struct subscription *sub;
	bool fresh;

	if (key.n > CAP_URI_BYTES)
		return MV_TOO_LONG;
	if (u == NULL || key.n == 0)
		return MV_NOT_FOUND;
	sub = strmap_get(g->subscriptions, key.p, key.n);
	fresh = sub == NULL;
	if (fresh) {
		if (upstream_state(u) != UPSTREAM_ST_READY)
			return MV_BACKOFF;
		if (!upstream_caps(u)->subscribe)
			return MV_UNSUPPORTED;
		sub = subscription_new(g, key, uri);
		if (sub == NULL)
			return MV_NOMEM;
	}
	s->sub = sub;
	s->settled = false;
	s->next = sub->first;
	if (s->next != NULL)
		s->next->prev = &s->next;
	s->prev = &sub->first;
	sub->first = s;
	if (fresh) {
		upstream_watch(u, &sub->watch);
	} else if (sub->watch.settled) {
		s->settled = true;
		s->on_settled(s->arg, NULL);
	}
	return MV_OK;
}

void
subscription_on_updated(struct gateway *g, struct upstream *u, const struct link_msg *m)
{
	struct jtext uri = gateway_text(g, jtext_of(m->base, m->json->slot[JSON_P_URI]));
	struct subscription *sub =
	    uri.n ? strmap_get(g->subscriptions, uri.p, uri.n) : NULL;
	struct subscriber *next;

	/* Only the owner may speak of it. */
	if (sub == NULL || sub->watch.u != u)
		return;
	sub->busy = true;
	for (struct subscriber *s = sub->first; s != NULL; s = next) {
		next = s->next;
		if (s->settled)
			s->on_updated(s->arg, m);
	}
	sub->busy = false;
	if (sub->first == NULL)
		subscription_free(sub);
}

static bool
subscription_drop(const char *key, size_t len, void *value, void *arg)
{
	struct subscription *sub = value;

	(void)key;
	(void)len;
	(void)arg;
	while (sub->first != NULL)
		subscriber_unlink(sub->first);
	subscription_free(sub); /* deletes the visited key, which each allows */
	return true;
}

void
subscriptions_fini(struct gateway *g)
{
	strmap_each(g->subscriptions, subscription_drop, NULL);
}
