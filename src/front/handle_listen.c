/* SPDX-License-Identifier: MIT */
/*
 * subscriptions/listen of modern clients.
 *
 * Owns: a listen from its request to its end, and its resource subscriptions.
 * Driven by: dispatch; owners' answers; list changes and updates.
 * Invariants: the acknowledgement is the first message of a listen: what comes before
 * it is kept as a mark and sent after; it names only what is honoured.
 * Spec: 2026-07-28 basic/patterns/subscriptions.
 */
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

#define ACK_WAIT_MS 5000
/* Of a filter's URIs, kept while the lists that have them come in. */
#define WAIT_MAX_BYTES	((size_t)512 * 1024)
#define SUBSCRIPTION_ID "\"io.modelcontextprotocol/subscriptionId\":"

struct listen_sub {
	struct listen *l;
	struct subscriber s;
	struct buf uri; /* as the client wrote it */
	bool is_missed; /* changed before the acknowledgement */
};

struct listen {
	struct request *r;
	struct listen *next, **prev;
	unsigned kinds;	 /* bit 1 << list kind: wanted */
	unsigned missed; /* changed before the acknowledgement */
	struct listen_sub *subs;
	size_t n_subs, n_waiting;
	uint64_t heard;	 /* the last event that its subscriptions were told */
	struct buf uris; /* array text, while it waits for lists */
	bool acked;
	struct timer timer;
};

static void
listen_subs_fini(struct listen *l)
{
	for (size_t i = 0; i < l->n_subs; i++) {
		subscription_remove(&l->subs[i].s);
		buf_fini(&l->subs[i].uri);
	}
	mem_free(l->subs);
	l->subs = NULL;
	l->n_subs = 0;
}

void
listen_free(struct listen *l)
{
	struct client *c = l->r->c;

	listen_subs_fini(l);
	buf_fini(&l->uris);
	timer_fini(&l->timer);
	*l->prev = l->next;
	if (l->next != NULL)
		l->next->prev = l->prev;
	c->n_listens--;
	l->r->listen = NULL;
	mem_free(l);
}

/* {"jsonrpc","method","params":{"_meta":{id}, members}}; NULL: there was no memory for
 * them, and without them it would say something else. */
static void
listen_notify(struct listen *l, enum method m, const char *members)
{
	struct buf b;

	if (members == NULL) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{\"_meta\":{%s",
	    method_name(m), SUBSCRIPTION_ID);
	json_put(&b, l->r->id);
	buf_add_char(&b, '}');
	buf_add_str(&b, members);
	buf_add_str(&b, "}}");
	request_notify_buf(l->r, &b);
	buf_fini(&b);
}

void
listen_finish(struct listen *l)
{
	struct request *r = l->r;
	struct client *c = r->c;
	bool tell = r->port == NULL;
	struct buf b, cancelled;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_init(&cancelled, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"resultType\":\"complete\",\"_meta\":{" SUBSCRIPTION_ID);
	json_put(&b, r->id);
	buf_add_str(&b, "}}");
	buf_add_str(&cancelled,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":");
	json_put(&cancelled, r->id);
	buf_add_str(&cancelled, "}}");
	listen_free(l);
	request_reply_buf(r, "result", &b);
	/* On a channel of its own the end of the stream says it. */
	if (tell)
		client_send_buf(c, &cancelled);
	buf_fini(&b);
	buf_fini(&cancelled);
}

static void
listen_send_kinds(struct listen *l, unsigned kinds)
{
	enum method sent = METHOD_UNKNOWN;

	for (unsigned k = 0; k < LIST_MAX; k++) {
		enum method m = list_changed_method((enum list_kind)k);

		/* Kinds that share a notification are neighbours in the table. */
		if ((kinds & l->kinds & (1u << k)) == 0 || m == sent)
			continue;
		sent = m;
		listen_notify(l, m, "");
	}
}

void
listen_on_changed(struct client *c, unsigned kinds)
{
	for (struct listen *l = c->listens; l != NULL; l = l->next) {
		if (l->acked)
			listen_send_kinds(l, kinds);
		else
			l->missed |= kinds;
	}
}

static void
listen_put_uri_member(struct buf *out, const struct listen_sub *s)
{
	buf_add_str(out, ",\"uri\":");
	buf_add(out, s->uri.data, s->uri.len);
}

static void
listen_send_missed(struct listen *l)
{
	struct buf b;

	listen_send_kinds(l, l->missed);
	l->missed = 0;
	buf_init(&b, CAP_MESSAGE_BYTES);
	for (size_t i = 0; i < l->n_subs; i++) {
		if (!l->subs[i].is_missed)
			continue;
		buf_reset(&b);
		listen_put_uri_member(&b, &l->subs[i]);
		listen_notify(l, METHOD_N_UPDATED, buf_cstr(&b));
	}
	buf_fini(&b);
}

static void
listen_put_honoured(struct listen *l, struct buf *out)
{
	static const struct {
		enum list_kind kind;
		const char *member;
	} flags[] = {{LIST_TOOLS, "\"toolsListChanged\":true,"},
	    {LIST_PROMPTS, "\"promptsListChanged\":true,"},
	    {LIST_RESOURCES, "\"resourcesListChanged\":true,"}};
	const char *sep = "";
	size_t start, n = 0;

	buf_add_str(out, ",\"notifications\":{");
	start = out->len;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (l->kinds & (1u << flags[i].kind))
			buf_add_str(out, flags[i].member);
	for (size_t i = 0; i < l->n_subs; i++) {
		if (!l->subs[i].s.settled || l->subs[i].s.sub == NULL)
			continue;
		buf_add_str(out, n++ == 0 ? "\"resourceSubscriptions\":[" : sep);
		sep = ",";
		buf_add(out, l->subs[i].uri.data, l->subs[i].uri.len);
	}
	buf_add_str(out, n > 0 ? "]," : "");
	if (out->err == MV_OK && out->len > start)
		out->len--;
	buf_add_char(out, '}');
}

static void
listen_ack(struct listen *l)
{
	struct buf b;

	if (l->acked)
		return;
	l->acked = true;
	timer_clear(&l->timer);
	for (size_t i = 0; i < l->n_subs; i++)
		if (!l->subs[i].s.settled)
			subscription_remove(&l->subs[i].s); /* too late to be honoured */
	buf_init(&b, CAP_MESSAGE_BYTES);
	listen_put_honoured(l, &b);
	listen_notify(l, METHOD_N_ACKNOWLEDGED, buf_cstr(&b));
	buf_fini(&b);
	listen_send_missed(l);
}

static void
on_ack_timer(void *arg)
{
	listen_ack(arg);
}

static void
listen_on_settled(void *arg, const struct outcome *o)
{
	struct listen_sub *s = arg;

	(void)o; /* a refused one is simply not acknowledged */
	if (--s->l->n_waiting == 0)
		listen_ack(s->l);
}

/* The upstream's words, with this listen's id in place of ours. */
static void
listen_on_updated(void *arg, const struct link_msg *m)
{
	struct listen_sub *s = arg;
	struct json_iter it;
	struct jtext key, value;
	struct json_span id = m->json->slot[JSON_M_SUBSCRIPTION];
	struct buf b;

	if (!s->l->acked) {
		s->is_missed = true;
		return;
	}
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
	    "\"params\":{\"_meta\":{" SUBSCRIPTION_ID);
	json_put(&b, s->l->r->id);
	json_iter_init(&it, jtext_of(m->base, m->json->slot[JSON_P_META]));
	while (json_next_member(&it, &key, &value)) {
		if (id.len != 0 && value.p == m->base + id.off)
			continue;
		buf_add_char(&b, ',');
		json_put(&b, key);
		buf_add_char(&b, ':');
		json_put(&b, value);
	}
	buf_add_char(&b, '}');
	json_iter_init(&it, jtext_of(m->base, m->json->slot[JSON_PARAMS]));
	while (json_next_member(&it, &key, &value)) {
		if (value.p == m->base + m->json->slot[JSON_P_META].off)
			continue;
		buf_add_char(&b, ',');
		json_put(&b, key);
		buf_add_char(&b, ':');
		json_put(&b, value);
	}
	buf_add_str(&b, "}}");
	request_notify_buf(s->l->r, &b);
	buf_fini(&b);
}

static bool
array_has_strings_only(struct jtext array)
{
	struct json_iter it;
	struct jtext v;

	json_iter_init(&it, array);
	while (json_next_element(&it, &v))
		if (jtext_type(v) != '"')
			return false;
	return true;
}

/* What is wrong with a filter, and its value; WORDING_NONE: nothing. */
static enum wording
listen_filter_fault(struct jtext filter, struct jtext *value)
{
	static const char *const flags[] = {
	    "toolsListChanged", "promptsListChanged", "resourcesListChanged"};
	struct jtext v;

	*value = filter;
	if (jtext_type(filter) != '{')
		return WORDING_LISTEN_FILTER;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		*value = v = json_member(filter, flags[i]);
		if (v.n != 0 && jtext_type(v) != 't' && jtext_type(v) != 'f')
			return WORDING_LISTEN_FLAG;
	}
	*value = v = json_member(filter, "resourceSubscriptions");
	if (v.n != 0 && (jtext_type(v) != '[' || !array_has_strings_only(v)))
		return WORDING_LISTEN_URIS;
	return WORDING_NONE;
}

static size_t
array_count(struct jtext array)
{
	struct json_iter it;
	struct jtext v;
	size_t n = 0;

	if (jtext_type(array) != '[')
		return 0;
	json_iter_init(&it, array);
	while (json_next_element(&it, &v))
		n += jtext_type(v) == '"';
	return n;
}

static void
listen_subscribe(struct listen *l, struct jtext uris)
{
	struct json_iter it;
	struct jtext uri;
	size_t n = array_count(uris);

	if (n == 0)
		return;
	l->subs = mem_try(n * sizeof(*l->subs));
	if (l->subs == NULL)
		return; /* what cannot be kept is not honoured */
	memset(l->subs, 0, n * sizeof(*l->subs));
	/* Not before all are asked for may the count come down to zero. */
	l->n_waiting = 1;
	json_iter_init(&it, uris);
	while (json_next_element(&it, &uri)) {
		struct listen_sub *s = &l->subs[l->n_subs];

		if (jtext_type(uri) != '"')
			continue;
		l->n_subs++;
		s->l = l;
		buf_init(&s->uri, CAP_URI_BYTES * 6 + 2);
		json_put(&s->uri, uri);
		s->s.on_settled = listen_on_settled;
		s->s.on_updated = listen_on_updated;
		s->s.arg = s;
		s->s.owner = &l->r->c->observer;
		s->s.heard = &l->heard;
		l->n_waiting++;
		if (s->uri.err != MV_OK ||
		    subscription_add(l->r->c->g, uri, &s->s) != MV_OK)
			l->n_waiting--;
	}
	l->n_waiting--;
}

static void
listen_begin(struct listen *l, struct jtext uris)
{
	listen_subscribe(l, uris);
	if (l->n_waiting == 0)
		listen_ack(l);
	else
		timer_set(&l->timer, ACK_WAIT_MS);
}

static bool
listen_has_owners(struct listen *l, struct jtext uris)
{
	const struct client *c = l->r->c;
	struct json_iter it;
	struct jtext uri;

	json_iter_init(&it, uris);
	while (json_next_element(&it, &uri))
		if (gateway_route_uri(c->g, c->observer.view, uri) == NULL)
			return false;
	return true;
}

/* The lists are in, or their time is over. */
static void
listen_on_lists(void *arg)
{
	struct listen *l = arg;
	struct buf uris = l->uris;

	buf_init(&l->uris, WAIT_MAX_BYTES);
	listen_begin(l, (struct jtext){uris.data, uris.len});
	buf_fini(&uris);
}

/* One more list is in. */
static void
listen_on_list(void *arg)
{
	struct listen *l = arg;

	if (!listen_has_owners(l, (struct jtext){l->uris.data, l->uris.len}))
		return;
	gateway_unwait(&l->r->waiter);
	listen_on_lists(l);
}

/* A client that has just connected may listen before the lists are in. */
static bool
listen_wait(struct listen *l, struct jtext uris)
{
	struct gateway_waiter *w = &l->r->waiter;

	buf_init(&l->uris, WAIT_MAX_BYTES);
	if (listen_has_owners(l, uris))
		return false;
	json_put(&l->uris, uris);
	w->fn = listen_on_lists;
	w->retry = listen_on_list;
	w->arg = l;
	w->bytes = l->uris.len;
	return l->uris.err == MV_OK && gateway_wait(l->r->c->g, w);
}

static bool
listen_has_room(const struct client *c, struct jtext uris)
{
	size_t n = array_count(uris);

	if (!gateway_may_keep(c->g, uris.n))
		return false;
	/* Of requests that know nothing of each other each is measured alone; their
	 * number is the transport's to bound. */
	if (c->is_shared)
		return n <= CAP_CLIENT_SUBSCRIPTIONS;
	for (const struct listen *l = c->listens; l != NULL; l = l->next)
		n += l->n_subs + array_count((struct jtext){l->uris.data, l->uris.len});
	return c->n_listens < CAP_CLIENT_LISTENS && n <= CAP_CLIENT_SUBSCRIPTIONS;
}

void
handle_listen(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct jtext filter = jtext_of(m->base, m->json->slot[JSON_P_NOTIFICATIONS]);
	struct jtext uris, value;
	enum wording fault = listen_filter_fault(filter, &value);
	struct listen *l;

	if (fault != WORDING_NONE) {
		request_fail(r, fault, value);
		return;
	}
	if (r->port != NULL && r->port->is_mute) {
		request_fail(r, WORDING_LISTEN_MUTE, (struct jtext){NULL, 0});
		return;
	}
	if (!task_may_listen(r, m))
		return;
	uris = json_member(filter, "resourceSubscriptions");
	if (!listen_has_room(c, uris)) {
		request_fail(r, WORDING_LISTEN_FULL, (struct jtext){NULL, 0});
		return;
	}
	l = mem_xcalloc(1, sizeof(*l));
	l->r = r;
	r->listen = l;
	timer_init(&l->timer, c->loop, on_ack_timer, l);
	l->next = c->listens;
	if (l->next != NULL)
		l->next->prev = &l->next;
	l->prev = &c->listens;
	c->listens = l;
	c->n_listens++;
	if (json_is_true(json_member(filter, "toolsListChanged")))
		l->kinds |= 1u << LIST_TOOLS;
	if (json_is_true(json_member(filter, "promptsListChanged")))
		l->kinds |= 1u << LIST_PROMPTS;
	if (json_is_true(json_member(filter, "resourcesListChanged")))
		l->kinds |= 1u << LIST_RESOURCES | 1u << LIST_TEMPLATES;
	gateway_note_listener(c->g);
	if (!listen_wait(l, uris))
		listen_begin(l, uris);
	/* What remains is no call: the endpoint need not wait for it. */
	if (client_in_flight(c) == 0)
		c->cb->on_idle(c->arg);
}
