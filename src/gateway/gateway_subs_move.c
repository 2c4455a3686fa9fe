/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions whose URI gets another owner, or none.
 *
 * Owns: nothing; it moves watches from one upstream to another.
 * Driven by: lists that changed, upstreams that leave.
 * Invariants: a subscriber that had its yes gets no second one; after subscriptions_leave
 * nothing is watched at an upstream that is on its way out.
 */
#include "gateway_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* All of sub's subscribers go over to one that is there already. */
static void
subscription_merge(struct subscription *into, struct subscription *sub)
{
	into->busy = true;
	while (sub->first != NULL) {
		struct subscriber *s = sub->first;

		subscriber_unlink(s);
		subscriber_link(into, s);
		if (into->watch.settled && !s->settled) {
			s->settled = true;
			s->on_settled(s->arg, NULL);
		}
	}
	into->busy = false;
	subscription_free(sub);
	if (into->first == NULL)
		subscription_free(into);
}

/* sub is watched at u from now on, under the URI own. False: no memory, and it stayed. */
static bool
subscription_move(struct subscription *sub, struct upstream *u, struct jtext own)
{
	struct gateway *g = sub->g;
	struct subscription *other;
	struct buf key, text;

	buf_init(&key, CAP_URI_BYTES + sizeof(u));
	buf_init(&text, CAP_URI_BYTES * 6 + 2);
	subscription_put_key(&key, u, own);
	json_put_string(&text, own.p, own.n);
	other = key.err == MV_OK ? strmap_get(g->subscriptions, key.data, key.len) : NULL;
	if (other != NULL || key.err != MV_OK || text.err != MV_OK ||
	    !strmap_put(g->subscriptions, key.data, key.len, sub)) {
		buf_fini(&key);
		buf_fini(&text);
		if (other != NULL)
			subscription_merge(other, sub);
		return other != NULL;
	}
	upstream_unwatch(&sub->watch);
	(void)strmap_del(g->subscriptions, sub->key.data, sub->key.len);
	buf_fini(&sub->key);
	buf_fini(&sub->text);
	sub->key = key;
	sub->text = text;
	sub->watch.uri = (struct jtext){sub->text.data, sub->text.len};
	upstream_watch(u, &sub->watch);
	return true;
}

/* Subscribers of one subscription who are shown the same and know the URI by the same
 * text: it is the same upstream's for all of them. */
struct flock {
	struct gateway *g;
	unsigned view;
	bool is_prefixed;
};

static bool
flock_has(const struct flock *f, const struct subscriber *s)
{
	return s->is_prefixed == f->is_prefixed && subscriber_view(f->g, s) == f->view;
}

/* Who has the URI of that flock of sub's, if that is somebody else; NULL: nobody. */
static struct upstream *
flock_owner(
    const struct flock *f, const struct subscription *sub, struct buf *uri, size_t *skip)
{
	const struct upstream *was = sub->watch.u;
	const char *prefix = upstream_conf_of(was)->uri_prefix;
	struct upstream *now;

	buf_reset(uri);
	if (f->is_prefixed && prefix != NULL)
		buf_add_str(uri, prefix);
	buf_add(uri, sub->key.data + sizeof(was), sub->key.len - sizeof(was));
	if (uri->err != MV_OK)
		return NULL;
	now = gateway_find_uri(f->g, f->view, (struct jtext){uri->data, uri->len}, skip);
	return now != NULL && upstream_caps(now)->subscribe &&
		       strcmp(upstream_name(now), upstream_name(was)) != 0
		   ? now
		   : NULL;
}

/* That of own at the shared u, maybe new and without a watch. NULL: no memory. */
static struct subscription *
subscription_at(struct gateway *g, const struct upstream *u, struct jtext own)
{
	struct subscription *sub = NULL;
	struct buf key;

	buf_init(&key, CAP_URI_BYTES + sizeof(u));
	subscription_put_key(&key, u, own);
	if (key.err == MV_OK)
		sub = strmap_get(g->subscriptions, key.data, key.len);
	if (sub == NULL && key.err == MV_OK)
		sub = subscription_new(g, (struct jtext){key.data, key.len}, own);
	buf_fini(&key);
	return sub;
}

/* Clients with instances of their own start at a new owner's shared one, too. */
static void
flock_move(const struct flock *f, struct subscription *sub)
{
	struct subscription *into = NULL;
	struct subscriber *next;
	struct upstream *now;
	struct buf uri;
	size_t skip;

	buf_init(&uri, CAP_URI_BYTES * 2);
	now = flock_owner(f, sub, &uri, &skip);
	if (now != NULL)
		into = subscription_at(
		    f->g, now, (struct jtext){uri.data + skip, uri.len - skip});
	buf_fini(&uri);
	if (into == NULL)
		return;
	for (struct subscriber *s = sub->first; s != NULL; s = next) {
		next = s->next;
		if (!flock_has(f, s))
			continue;
		subscriber_unlink(s);
		subscriber_link(into, s);
		s->is_prefixed = skip > 0;
	}
	if (into->watch.u == NULL)
		upstream_watch(now, &into->watch);
	else if (into->watch.settled)
		subscription_settle(into, NULL);
}

/* Each flock goes to whoever has its URI now. True: sub is gone with the last of them. */
static bool
subscription_move_by_uri(struct subscription *sub)
{
	struct flock f = {.g = sub->g};
	bool is_over;

	sub->busy = true;
	for (f.view = 0; f.view < f.g->n_views; f.view++) {
		for (unsigned i = 0; i < 2; i++) {
			const struct subscriber *s = sub->first;

			f.is_prefixed = i == 1;
			while (s != NULL && !flock_has(&f, s))
				s = s->next;
			if (s != NULL)
				flock_move(&f, sub);
		}
	}
	sub->busy = false;
	is_over = sub->first == NULL;
	if (is_over)
		subscription_free(sub);
	return is_over;
}

/* ---- all of them, one by one; each may take others with it ---- */

void
subscription_unwork(struct subscription *sub)
{
	if (sub->work_prev == NULL)
		return;
	*sub->work_prev = sub->work;
	if (sub->work != NULL)
		sub->work->work_prev = sub->work_prev;
	sub->work_prev = NULL;
}

static bool
subscription_collect(const char *key, size_t len, void *value, void *arg)
{
	struct subscription *sub = value, **all = arg;

	(void)key;
	(void)len;
	sub->work = *all;
	if (sub->work != NULL)
		sub->work->work_prev = &sub->work;
	sub->work_prev = all;
	*all = sub;
	return true;
}

static struct subscription *
subscription_pop(struct subscription **all)
{
	struct subscription *sub = *all;

	if (sub != NULL)
		subscription_unwork(sub);
	return sub;
}

void
subscriptions_follow(struct gateway *g)
{
	struct subscription *all = NULL, *sub;

	strmap_each(g->subscriptions, subscription_collect, &all);
	while ((sub = subscription_pop(&all)) != NULL)
		(void)subscription_move_by_uri(sub);
}

/* ---- upstreams that leave ---- */

static bool
subscription_move_on(struct subscription *sub, struct member *successor)
{
	struct upstream *u = successor->u;
	struct buf own;
	bool moved;

	if (sub->owner != NULL && gateway_pick_watcher(sub->g, &u, sub->owner) != MV_OK)
		u = successor->u; /* there are too many */
	if (u == successor->u)
		sub->owner = NULL;
	buf_init(&own, CAP_URI_BYTES);
	buf_add(&own, sub->key.data + sizeof(u), sub->key.len - sizeof(u));
	moved = own.err == MV_OK &&
		subscription_move(sub, u, (struct jtext){own.data, own.len});
	buf_fini(&own);
	return moved;
}

void
subscriptions_leave(struct gateway *g)
{
	struct outcome gone = {.kind = OUTCOME_FAILED, .err = MV_NOT_FOUND};
	struct subscription *all = NULL, *sub;

	strmap_each(g->subscriptions, subscription_collect, &all);
	while ((sub = subscription_pop(&all)) != NULL) {
		struct member *m = gateway_find_leaving(g, sub->watch.u);
		bool moved = m == NULL;

		if (!moved)
			moved = m->successor != NULL
				    ? subscription_move_on(sub, m->successor)
				    : subscription_move_by_uri(sub);
		/* Who has had its yes hears nothing: nothing will be updated any more. */
		if (!moved)
			subscription_settle(sub, &gone);
	}
}

void
subscriptions_end(struct gateway *g)
{
	struct outcome over = {.kind = OUTCOME_FAILED, .err = MV_STOPPING};
	struct subscription *all = NULL, *sub;

	strmap_each(g->subscriptions, subscription_collect, &all);
	while ((sub = subscription_pop(&all)) != NULL)
		subscription_settle(sub, &over);
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
