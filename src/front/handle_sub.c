/* SPDX-License-Identifier: MIT */
/*
 * resources/subscribe and resources/unsubscribe of legacy clients.
 *
 * Owns: one legacy_sub a subscribed URI, in the session's table.
 * Driven by: dispatch; the owner's answer; updates.
 * Invariants: a subscribe is answered when its owner has answered; a refused one
 * leaves nothing behind.
 */
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#include <string.h>

struct legacy_sub {
	struct client *c;
	struct subscriber s;
	struct request *waiting; /* the request that asked; NULL once answered */
	struct buf uri;		 /* decoded; its key */
};

static void
sub_free(struct legacy_sub *l)
{
	subscription_remove(&l->s);
	if (strmap_get(l->c->session.subs, l->uri.data, l->uri.len) == l)
		(void)strmap_del(l->c->session.subs, l->uri.data, l->uri.len);
	if (l->waiting != NULL)
		l->waiting->sub = NULL;
	buf_fini(&l->uri);
	mem_free(l);
}

static void
sub_reply_empty(struct request *r)
{
	struct iovec empty = {(void *)(uintptr_t) "{}", 2};

	request_reply(r, "result", &empty, 1);
}

/* The answer to a subscribe that came to nothing. uri is a JSON string. */
static void
sub_reply_refused(struct request *r, enum mv_err err, struct jtext uri)
{
	struct wording_failure f = {.err = err, .method = r->method};
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	if (err == MV_NOT_FOUND)
		wording_put_no_resource(out, r->era->no_resource_code, uri);
	else if (err == MV_UNSUPPORTED)
		wording_put_error(
		    out, -32601, "The upstream of this resource takes no subscriptions");
	else
		wording_put_failure(out, &f);
	request_reply_buf(r, "error", out);
}

static void
sub_on_settled(void *arg, const struct outcome *o)
{
	struct legacy_sub *l = arg;
	struct request *r = l->waiting;
	struct iovec iov;

	l->waiting = NULL;
	if (r == NULL) {
		if (o != NULL)
			sub_free(l);
		return;
	}
	r->sub = NULL;
	if (o == NULL) {
		sub_reply_empty(r);
		return;
	}
	if (o->kind == OUTCOME_ERROR) {
		iov = (struct iovec){(void *)(uintptr_t)o->body.p, o->body.n};
		request_reply(r, "error", &iov, 1);
	} else {
		sub_reply_refused(r, o->err, (struct jtext){"\"\"", 2});
	}
	sub_free(l);
}

static void
sub_on_updated(void *arg, const struct link_msg *m)
{
	struct legacy_sub *l = arg;
	struct json_edits ed = {.n = 0};
	struct json_span whole = {0, (uint32_t)m->len};
	struct json_span id = m->json->slot[JSON_M_SUBSCRIPTION], cut;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	/* The id of our own listen at a modern upstream means nothing to this client. */
	if (id.len != 0) {
		cut = json_cut(m->base, m->json->slot[JSON_P_META],
		    m->json->key_off[JSON_M_SUBSCRIPTION], id);
		json_edit_add(&ed, cut.off, cut.len, "", 0);
	}
	client_send(l->c, iov, json_edit_pieces(m->base, whole, &ed, iov));
}

void
handle_subscribe(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct jtext uri = jtext_of(m->base, m->json->slot[JSON_P_URI]);
	struct legacy_sub *l;
	enum mv_err err;

	if (json_type(uri) != '"') {
		request_fail(r, -32602, "Invalid params: uri must be a string");
		return;
	}
	l = mem_xcalloc(1, sizeof(*l));
	l->c = c;
	buf_init(&l->uri, CAP_URI_BYTES);
	if (!json_string_decode(uri, &l->uri) || l->uri.err != MV_OK) {
		sub_free(l);
		sub_reply_refused(r, MV_NOT_FOUND, uri);
		return;
	}
	if (strmap_get(c->session.subs, l->uri.data, l->uri.len) != NULL) {
		sub_free(l);
		sub_reply_empty(r); /* it has it already */
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
		l->waiting = r;
		r->sub = l;
		err = subscription_add(c->g, uri, &l->s);
		if (err == MV_OK)
			return; /* answered, or about to be */
	}
	sub_free(l);
	sub_reply_refused(r, err, uri);
}

/* m NULL: r is a subscribe that its client cancelled while it waited. */
void
handle_unsubscribe(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct legacy_sub *l;
	struct buf uri;

	if (m == NULL) {
		sub_free(r->sub);
		request_end(r);
		return;
	}
	buf_init(&uri, CAP_URI_BYTES);
	if (!json_string_decode(jtext_of(m->base, m->json->slot[JSON_P_URI]), &uri)) {
		request_fail(r, -32602, "Invalid params: uri must be a string");
	} else {
		l = strmap_get(c->session.subs, uri.data, uri.len);
		/* A subscribe that still waits is overtaken: it has succeeded and is
		 * over. */
		if (l != NULL && l->waiting != NULL)
			sub_reply_empty(l->waiting);
		if (l != NULL) {
			l->waiting = NULL;
			sub_free(l);
		}
		sub_reply_empty(r);
	}
	buf_fini(&uri);
}

static bool
sub_clear_one(const char *key, size_t len, void *value, void *arg)
{
	(void)key;
	(void)len;
	(void)arg;
	sub_free(value);
	return true;
}

void
subs_clear(struct client *c)
{
	strmap_each(c->session.subs, sub_clear_one, NULL);
}
