/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions to single resources, counted per URI.
 *
 * Owns: one watch at the owner for each URI that anybody wants.
 * Driven by: front (add, remove), the upstream (settled, updated).
 * Invariants: a subscription has at least one subscriber, except inside its own
 * callbacks; a refused one is gone from the table before its subscribers hear of it. It
 * is kept by the upstream's own URI: who said it with the prefix hears it with the
 * prefix.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

void
subscription_free(struct subscription *sub)
{
	upstream_unwatch(&sub->watch);
	subscription_unwork(sub);
	if (strmap_get(sub->g->subscriptions, sub->key.data, sub->key.len) == sub)
		(void)strmap_del(sub->g->subscriptions, sub->key.data, sub->key.len);
	buf_fini(&sub->key);
	buf_fini(&sub->text);
	mem_free(sub);
}

void
subscriber_link(struct subscription *sub, struct subscriber *s)
{
	s->sub = sub;
	s->next = sub->first;
	if (s->next != NULL)
		s->next->prev = &s->next;
	s->prev = &sub->first;
	sub->first = s;
}

void
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
void
subscription_settle(struct subscription *sub, const struct outcome *o)
{
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

static void
on_settled(void *arg, const struct outcome *o)
{
	subscription_settle(arg, o);
}

/* Subscriptions at different instances are different. */
void
subscription_put_key(struct buf *out, const struct upstream *u, struct jtext uri)
{
	buf_add(out, &u, sizeof(u));
	json_put(out, uri);
}

struct subscription *
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
	json_put_string(&sub->text, uri.p, uri.n);
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

unsigned
subscriber_view(const struct gateway *g, const struct subscriber *s)
{
	return s->owner != NULL ? s->owner->view : g->first_view;
}

/* Whether a watch that nobody has yet can begin at a shared upstream: one that is down
 * may not come back, and the subscriber would wait. What is subscribed to already comes
 * back with its owner. */
static enum mv_err
subscription_refusal(const struct upstream *u)
{
	if (upstream_state(u) == UPSTREAM_ST_READY ||
	    upstream_state(u) == UPSTREAM_ST_ASLEEP)
		return MV_OK;
	/* With lists from before it may not have been up yet. */
	return upstream_state(u) != UPSTREAM_ST_PARKED && upstream_is_settled(u)
		   ? upstream_refusal(u)
		   : MV_BACKOFF;
}

/* The subscription of own at u, which may be new: then it has no watch yet. */
static enum mv_err
subscription_get(struct gateway *g, struct upstream *u, bool is_shared, struct jtext own,
    struct subscription **out)
{
	struct subscription *sub;
	enum mv_err err = MV_OK;
	struct buf key;

	buf_init(&key, CAP_URI_BYTES + sizeof(u));
	subscription_put_key(&key, u, own);
	if (key.err != MV_OK) {
		err = key.err;
		goto out;
	}
	sub = strmap_get(g->subscriptions, key.data, key.len);
	if (sub == NULL && is_shared)
		err = subscription_refusal(u);
	if (sub == NULL && err == MV_OK) {
		sub = subscription_new(g, (struct jtext){key.data, key.len}, own);
		err = sub == NULL ? MV_NOMEM : MV_OK;
	}
	*out = sub;
out:
	buf_fini(&key);
	return err;
}

static enum mv_err
subscription_add_text(struct gateway *g, struct jtext text, struct subscriber *s)
{
	struct upstream *shared, *u;
	struct subscription *sub = NULL;
	enum mv_err err = MV_OK;
	size_t skip;

	u = shared = gateway_find_uri(g, subscriber_view(g, s), text, &skip);
	if (u == NULL)
		return MV_NOT_FOUND;
	if (!upstream_caps(shared)->subscribe)
		err = upstream_state(shared) == UPSTREAM_ST_READY ||
			      upstream_state(shared) == UPSTREAM_ST_ASLEEP
			  ? MV_UNSUPPORTED
			  : MV_BACKOFF;
	if (err == MV_OK)
		err = gateway_pick_watcher(g, &u, s->owner);
	if (err == MV_OK)
		err = subscription_get(g, u, u == shared,
		    (struct jtext){text.p + skip, text.n - skip}, &sub);
	if (err != MV_OK)
		return err;
	s->settled = false;
	s->is_prefixed = skip > 0;
	subscriber_link(sub, s);
	if (sub->watch.u == NULL) {
		sub->owner = u != shared ? s->owner : NULL;
		upstream_watch(u, &sub->watch);
	} else if (sub->watch.settled) {
		s->settled = true;
		s->on_settled(s->arg, NULL);
	}
	return MV_OK;
}

enum mv_err
subscription_add(struct gateway *g, struct jtext uri, struct subscriber *s)
{
	struct jtext text = gateway_text(g, uri);
	enum mv_err err;
	struct buf copy;

	if (text.n > CAP_URI_BYTES)
		return MV_TOO_LONG;
	if (text.n == 0)
		return MV_NOT_FOUND;
	/* It may be in the scratch that others use as well. */
	buf_init(&copy, CAP_URI_BYTES);
	json_put(&copy, text);
	err = copy.err != MV_OK
		  ? copy.err
		  : subscription_add_text(g, (struct jtext){copy.data, copy.len}, s);
	buf_fini(&copy);
	return err;
}

/* ---- updates ---- */

struct update {
	struct gateway *g;
	struct upstream *u;
	uint64_t number;
	struct buf uri; /* the prefix of u, and its own URI, decoded */
	size_t skip;	/* bytes of the prefix */
	const struct link_msg *m;
	/* The same with the published URI, made when it is wanted first. */
	bool is_made;
	struct buf text;
	struct json_msg *json;
	struct link_msg prefixed;
};

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

/* The message as who knows the URI with its prefix has to hear it; NULL: no memory. */
static const struct link_msg *
update_prefixed(struct update *up)
{
	struct json_span at = up->m->json->slot[JSON_P_URI];
	const char *base = up->m->base;

	if (up->is_made)
		return up->json != NULL ? &up->prefixed : NULL;
	up->is_made = true;
	buf_add(&up->text, base, at.off);
	json_put_string(&up->text, up->uri.data, up->uri.len);
	buf_add(&up->text, base + at.off + at.len, up->m->len - at.off - at.len);
	up->json = up->text.err == MV_OK ? mem_try(sizeof(*up->json)) : NULL;
	if (up->json == NULL ||
	    link_scan(up->text.data, up->text.len, up->json, &up->prefixed) == MV_OK)
		return up->json != NULL ? &up->prefixed : NULL;
	mem_free(up->json);
	up->json = NULL;
	return NULL;
}

static void
subscriber_tell(struct subscriber *s, struct update *up)
{
	struct jtext uri = {up->uri.data, up->uri.len};
	const struct link_msg *m;

	if (!s->settled || (s->heard != NULL && *s->heard == up->number))
		return;
	/* Its profile may have been changed since it asked. */
	if (!catalog_shows_uri(up->g->catalog, subscriber_view(up->g, s), up->u, uri))
		return;
	m = s->is_prefixed && up->skip > 0 ? update_prefixed(up) : up->m;
	if (m == NULL)
		return;
	if (s->heard != NULL)
		*s->heard = up->number;
	s->on_updated(s->arg, m);
}

static bool
subscription_deliver(const char *key, size_t len, void *value, void *arg)
{
	struct subscription *sub = value;
	struct update *up = arg;
	struct jtext own = {up->uri.data + up->skip, up->uri.len - up->skip};
	struct subscriber *next;

	(void)key;
	(void)len;
	/* Only the owner may speak of it. */
	if (sub->watch.u != up->u || !subscription_covers(sub, own))
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
	struct update up = {.g = g, .u = u, .m = m, .number = ++g->last_update};
	const char *prefix = upstream_conf_of(u)->uri_prefix;
	struct jtext own = gateway_text(g, jtext_of(m->base, m->json->slot[JSON_P_URI]));

	if (own.n == 0)
		return;
	buf_init(&up.uri, CAP_MESSAGE_BYTES);
	buf_init(&up.text, CAP_MESSAGE_BYTES);
	up.skip = prefix != NULL ? strlen(prefix) : 0;
	buf_add(&up.uri, prefix, up.skip);
	json_put(&up.uri, own);
	if (up.uri.err == MV_OK)
		strmap_each(g->subscriptions, subscription_deliver, &up);
	buf_fini(&up.uri);
	buf_fini(&up.text);
	mem_free(up.json);
}
