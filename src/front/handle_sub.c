/* SPDX-License-Identifier: MIT */
/*
 * resources/subscribe and resources/unsubscribe of legacy clients.
 *
 * Owns: one legacy_sub a subscribed URI, in the session's table.
 * Driven by: dispatch; the owner's answer; updates.
 * Invariants: a subscribe is answered when its owner has answered, a second one of the
 * same URI too; a refused one leaves nothing behind.
 */
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#include <string.h>

struct legacy_sub {
	struct client *c;
	struct subscriber s;
	struct request *waiting; /* the requests that asked; NULL once answered */
	char *owner;		 /* its name, which outlives it; NULL: nobody */
	struct buf uri;		 /* decoded; its key */
};

static struct legacy_sub *
sub_find(const struct client *c, const struct buf *uri)
{
	struct strmap *subs = c->session.subs;

	return subs != NULL ? strmap_get(subs, uri->data, uri->len) : NULL;
}

static void
sub_free(struct legacy_sub *l)
{
	subscription_remove(&l->s);
	if (sub_find(l->c, &l->uri) == l)
		(void)strmap_del(l->c->session.subs, l->uri.data, l->uri.len);
	for (struct request *r = l->waiting; r != NULL; r = r->sub_next)
		r->sub = NULL;
	buf_fini(&l->uri);
	mem_free(l->owner);
	mem_free(l);
}

static void
sub_reply_empty(struct request *r)
{
	struct iovec empty = {(void *)(uintptr_t) "{}", 2};

	request_reply(r, "result", &empty, 1);
}

/* The answer to a subscribe that came to nothing. uri is a JSON string; owner may be
 * NULL. */
static void
sub_reply_refused(struct request *r, enum mv_err err, struct jtext uri, const char *owner)
{
	struct wording_failure f = {.err = err, .method = r->method, .upstream = owner};
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	if (err == MV_NOT_FOUND)
		wording_put_no_resource(out, r->era->no_resource_code, uri);
	else if (err == MV_UNSUPPORTED)
		wording_put(out, WORDING_NO_SUBSCRIPTIONS, uri);
	else
		wording_put_failure(out, &f);
	request_reply_buf(r, "error", out);
}

/* The end of a wait for l without an answer of its owner. */
static void
sub_reply_failed(struct request *r, const struct legacy_sub *l, enum mv_err err)
{
	struct buf uri;

	buf_init(&uri, CAP_URI_BYTES * 6 + 2);
	json_put_string(&uri, l->uri.data, l->uri.len);
	sub_reply_refused(r, uri.err == MV_OK ? err : uri.err,
	    (struct jtext){uri.data, uri.len}, l->owner);
	buf_fini(&uri);
}

/* o NULL: yes. */
static void
sub_reply(struct request *r, const struct legacy_sub *l, const struct outcome *o)
{
	struct iovec iov;

	if (o == NULL) {
		sub_reply_empty(r);
	} else if (o->kind == OUTCOME_ERROR) {
		iov = (struct iovec){(void *)(uintptr_t)o->body.p, o->body.n};
		request_reply(r, "error", &iov, 1);
	} else {
		sub_reply_failed(r, l, o->kind == OUTCOME_FAILED ? o->err : MV_PROTOCOL);
	}
}

/* All requests that wait for l get the same answer. */
static void
sub_answer(struct legacy_sub *l, const struct outcome *o)
{
	struct request *r = l->waiting, *next;

	l->waiting = NULL;
	for (; r != NULL; r = next) {
		next = r->sub_next;
		r->sub = NULL;
		sub_reply(r, l, o);
	}
}

static void
sub_on_settled(void *arg, const struct outcome *o)
{
	struct legacy_sub *l = arg;

	sub_answer(l, o);
	if (o != NULL)
		sub_free(l);
}

static void
sub_on_updated(void *arg, const struct link_msg *m)
{
	struct legacy_sub *l = arg;
	struct json_edits ed;
	struct json_span whole = {0, (uint32_t)m->len};
	struct json_span id = m->json->slot[JSON_M_SUBSCRIPTION], cut;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	json_edits_init(&ed);
	/* The id of our own listen at a modern upstream means nothing to this client. */
	if (id.len != 0) {
		cut = json_cut(m->base, m->json->slot[JSON_P_META],
		    m->json->key_off[JSON_M_SUBSCRIPTION], id);
		json_edit_add(&ed, cut.off, cut.len, "", 0);
	}
	client_send(l->c, iov, json_edit_pieces(m->base, whole, &ed, iov));
}

static void
sub_wait(struct legacy_sub *l, struct request *r)
{
	r->sub = l;
	r->sub_next = l->waiting;
	l->waiting = r;
}

/* Its upstream has left, or wants it no more, since its yes: nobody was told, and nothing
 * is watched. */
static bool
sub_is_over(const struct legacy_sub *l)
{
	return l->s.sub == NULL && l->waiting == NULL;
}

/* It is there already, or about to be. */
static void
sub_join(struct legacy_sub *l, struct request *r)
{
	if (l->waiting != NULL)
		sub_wait(l, r);
	else
		sub_reply_empty(r);
}

static void
sub_begin(struct request *r, struct jtext uri)
{
	struct client *c = r->c;
	struct legacy_sub *l = mem_xcalloc(1, sizeof(*l)), *other;
	struct upstream *owner = gateway_route_uri(c->g, c->observer.view, uri);
	enum mv_err err;

	l->c = c;
	if (owner != NULL)
		l->owner = mem_xstrdup(upstream_name(owner));
	buf_init(&l->uri, CAP_URI_BYTES);
	if (!json_string_decode(uri, &l->uri) || l->uri.err != MV_OK) {
		sub_free(l);
		sub_reply_refused(r, MV_NOT_FOUND, uri, NULL);
		return;
	}
	if (c->session.subs == NULL)
		c->session.subs = strmap_new();
	other = sub_find(c, &l->uri);
	if (other != NULL && sub_is_over(other)) {
		sub_free(other);
		other = NULL;
	}
	if (other != NULL) {
		sub_free(l);
		sub_join(other, r);
		return;
	}
	err = strmap_count(c->session.subs) >= CAP_CLIENT_SUBSCRIPTIONS ||
		      !strmap_put(c->session.subs, l->uri.data, l->uri.len, l)
		  ? MV_BUSY
		  : MV_OK;
	if (err == MV_OK) {
		l->s.on_settled = sub_on_settled;
		l->s.on_updated = sub_on_updated;
		l->s.arg = l;
		l->s.owner = &c->observer;
		l->s.heard = &c->session.heard;
		sub_wait(l, r);
		err = subscription_add(c->g, uri, &l->s);
		if (err == MV_OK)
			return; /* answered, or about to be */
	}
	sub_free(l);
	sub_reply_refused(r, err, uri, owner != NULL ? upstream_name(owner) : NULL);
}

/* The lists are in, or their time is over. */
static void
sub_on_lists(void *arg)
{
	struct request *r = arg;

	sub_begin(r, (struct jtext){r->uri.data, r->uri.len});
}

/* One more list is in. */
static void
sub_on_list(void *arg)
{
	struct request *r = arg;

	if (gateway_route_uri(r->c->g, r->c->observer.view,
		(struct jtext){r->uri.data, r->uri.len}) == NULL)
		return;
	gateway_unwait(&r->waiter);
	sub_on_lists(r);
}

void
handle_subscribe(struct request *r, const struct link_msg *m)
{
	struct gateway *g = r->c->g;
	struct jtext uri = jtext_of(m->base, m->json->slot[JSON_P_URI]);

	if (jtext_type(uri) != '"') {
		request_fail(r, WORDING_URI, uri);
		return;
	}
	r->waiter.fn = sub_on_lists;
	r->waiter.retry = sub_on_list;
	r->waiter.arg = r;
	if (gateway_route_uri(g, r->c->observer.view, uri) == NULL) {
		json_put(&r->uri, uri);
		r->waiter.bytes = r->uri.len;
		if (!gateway_may_keep(g, r->waiter.bytes)) {
			sub_reply_refused(r, MV_BUSY, uri, NULL);
			return;
		}
		if (r->uri.err == MV_OK && gateway_wait(g, &r->waiter))
			return;
	}
	sub_begin(r, uri);
}

/* r was cancelled while it waited; others may go on waiting. */
static void
sub_leave(struct request *r)
{
	struct legacy_sub *l = r->sub;
	struct request **at = &l->waiting;

	while (*at != r)
		at = &(*at)->sub_next;
	*at = r->sub_next;
	if (l->waiting == NULL)
		sub_free(l);
	request_end(r);
}

/* Subscribes that still wait are overtaken: they have succeeded and are over. uri is a
 * JSON string, key the same decoded. */
static void
sub_overtake(struct client *c, struct jtext uri, const struct buf *key)
{
	struct legacy_sub *l = sub_find(c, key);
	struct request *next;

	if (l != NULL) {
		sub_answer(l, NULL);
		sub_free(l);
	}
	/* Those that wait for the lists have no l yet. */
	for (struct request *r = c->requests; r != NULL; r = next) {
		next = r->next;
		if (r->method == METHOD_SUBSCRIBE && r->waiter.g != NULL &&
		    json_id_is_same((struct jtext){r->uri.data, r->uri.len}, uri))
			sub_reply_empty(r);
	}
}

/* m NULL: r is a subscribe that its client cancelled while it waited. */
void
handle_unsubscribe(struct request *r, const struct link_msg *m)
{
	struct jtext uri;
	struct buf key;

	if (m == NULL) {
		sub_leave(r);
		return;
	}
	uri = jtext_of(m->base, m->json->slot[JSON_P_URI]);
	buf_init(&key, CAP_URI_BYTES);
	if (!json_string_decode(uri, &key)) {
		request_fail(r, WORDING_URI, uri);
	} else {
		sub_overtake(r->c, uri, &key);
		sub_reply_empty(r);
	}
	buf_fini(&key);
}

static bool
sub_clear_one(const char *key, size_t len, void *value, void *arg)
{
	static const struct outcome over = {.kind = OUTCOME_FAILED, .err = MV_CANCELLED};
	struct legacy_sub *l = value;
	const bool *answers = arg;

	(void)key;
	(void)len;
	if (*answers)
		sub_answer(l, &over);
	sub_free(l);
	return true;
}

void
subs_clear(struct client *c, bool answers)
{
	if (c->session.subs != NULL)
		strmap_each(c->session.subs, sub_clear_one, &answers);
}
