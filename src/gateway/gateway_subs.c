/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions to single resources, counted per URI.
 *
 * Owns: one watch at the owner for each URI that anybody wants.
 * Driven by: front (add, remove), the upstream (settled, updated).
 * Invariants: a subscription has at least one subscriber, except inside its own
 * callbacks; a refused one is gone from the table before its subscribers hear of it.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

struct subscription {
	struct gateway *g;
	struct upstream_watch watch;
	struct subscriber *first;
	bool busy; /* inside a callback of ours: not to be freed by a removal */
	struct subscription *moved; /* list of those that change their owner */
	struct buf key;		    /* the decoded URI */
	struct buf text;	    /* the URI as the first subscriber wrote it */
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

/* Subscriptions at different instances are different. */
static void
subscription_put_key(struct buf *out, const struct upstream *u, struct jtext uri)
{
	buf_add(out, &u, sizeof(u));
	json_put(out, uri);
}

static struct subscription *
subscription_new(struct gateway *g, struct jtext key, struct jtext uri)
{
	struct subscription *sub = mem_try(sizeof(*sub));

	if (sub == NULL)
		return NULL;
	memset(sub, 0, sizeof(*sub));
	sub->g = g;
	buf_init(&sub->key, CAP_URI_BYTES + sizeof(void *));
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
	struct upstream *shared = gateway_route_uri(g, uri), *u = shared;
	struct jtext text = gateway_text(g, uri);
	struct subscription *sub;
	enum mv_err err = MV_OK;
	struct buf key;
	bool fresh;

	if (text.n > CAP_URI_BYTES)
		return MV_TOO_LONG;
	if (u == NULL || text.n == 0)
		return MV_NOT_FOUND;
	if (!upstream_caps(shared)->subscribe)
		err = upstream_state(shared) == UPSTREAM_ST_READY ? MV_UNSUPPORTED
								  : MV_BACKOFF;
	if (err == MV_OK)
		err = gateway_pick_instance(g, &u, s->owner);
	if (err != MV_OK)
		return err;
	buf_init(&key, CAP_URI_BYTES + sizeof(u));
	subscription_put_key(&key, u, text);
	sub = strmap_get(g->subscriptions, key.data, key.len);
	fresh = sub == NULL;
	/* What is subscribed to already comes back with its owner. */
	if (fresh && u == shared && upstream_state(u) != UPSTREAM_ST_READY)
		err = MV_BACKOFF;
	else if (fresh)
		sub = subscription_new(g, (struct jtext){key.data, key.len}, uri);
	buf_fini(&key);
	if (sub == NULL)
		return err != MV_OK ? err : MV_NOMEM;
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

/* An update may name a sub-resource of what was subscribed to.
 * Spec: ResourceUpdatedNotification (every revision). */
static bool
subscription_covers(const struct subscription *sub, struct jtext uri)
{
	const char *key = sub->key.data + sizeof(sub->watch.u);
	size_t n = sub->key.len - sizeof(sub->watch.u);

	if (uri.n < n || memcmp(uri.p, key, n) != 0)
		return false;
	return uri.n == n || uri.p[n - 1] == '/' || uri.p[n] == '/' || uri.p[n] == '?' ||
	       uri.p[n] == '#';
}

struct update {
	struct upstream *u;
	const struct link_msg *m;
	struct jtext uri; /* decoded */
	uint64_t number;
};

static void
subscriber_tell(struct subscriber *s, const struct update *up)
{
	if (!s->settled || (s->heard != NULL && *s->heard == up->number))
		return;
	if (s->heard != NULL)
		*s->heard = up->number;
	s->on_updated(s->arg, up->m);
}

static bool
subscription_deliver(const char *key, size_t len, void *value, void *arg)
{
	struct subscription *sub = value;
	const struct update *up = arg;
	struct subscriber *next;

	(void)key;
	(void)len;
	/* Only the owner may speak of it. */
	if (sub->watch.u != up->u || !subscription_covers(sub, up->uri))
		return true;
	sub->busy = true;
	for (struct subscriber *s = sub->first; s != NULL; s = next) {
		next = s->next;
		subscriber_tell(s, up);
	}
	sub->busy = false;
	if (sub->first == NULL)
		subscription_free(sub); /* the visited one, which each allows */
	return true;
}

void
subscription_on_updated(struct gateway *g, struct upstream *u, const struct link_msg *m)
{
	struct update up = {.u = u, .m = m, .number = ++g->last_update};

	up.uri = gateway_text(g, jtext_of(m->base, m->json->slot[JSON_P_URI]));
	if (up.uri.n != 0)
		strmap_each(g->subscriptions, subscription_deliver, &up);
}

/* The URI may have got another owner since: what is watched follows it. */
static bool
subscription_check_owner(const char *key, size_t len, void *value, void *arg)
{
	struct subscription *sub = value, **moved = arg;
	struct upstream *now =
	    gateway_route_uri(sub->g, (struct jtext){sub->text.data, sub->text.len});

	(void)key;
	(void)len;
	if (now == NULL || upstream_conf_of(now) == upstream_conf_of(sub->watch.u) ||
	    !upstream_caps(now)->subscribe)
		return true;
	sub->moved = *moved;
	*moved = sub;
	return true;
}

static void
subscription_move(struct subscription *sub)
{
	struct gateway *g = sub->g;
	struct jtext uri = {sub->text.data, sub->text.len};
	struct upstream *now = gateway_route_uri(g, uri);
	struct buf key;

	buf_init(&key, CAP_URI_BYTES + sizeof(now));
	subscription_put_key(&key, now, gateway_text(g, uri));
	/* Clients with instances of their own start at a new owner's shared one, too. */
	if (key.err == MV_OK && strmap_get(g->subscriptions, key.data, key.len) == NULL &&
	    strmap_put(g->subscriptions, key.data, key.len, sub)) {
		upstream_unwatch(&sub->watch);
		(void)strmap_del(g->subscriptions, sub->key.data, sub->key.len);
		buf_fini(&sub->key);
		sub->key = key;
		upstream_watch(now, &sub->watch);
	} else {
		buf_fini(&key);
	}
}

void
subscriptions_follow(struct gateway *g)
{
	struct subscription *moved = NULL, *next;

	strmap_each(g->subscriptions, subscription_check_owner, &moved);
	for (struct subscription *sub = moved; sub != NULL; sub = next) {
		next = sub->moved;
		subscription_move(sub);
	}
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
