/* SPDX-License-Identifier: MIT */
/*
 * A client and its requests: the table by id, the pool, and all that is written.
 *
 * Owns: every request from its arrival to its one answer.
 * Driven by: the endpoint (messages in), handlers and calls (answers out).
 * Invariants: an id is in the table at most once; a request is answered or dropped by
 * request_end, once.
 */
#include "mcpvisor/client.h"

#include "client_ask_priv.h"
#include "client_log_priv.h"
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/tasks.h"
#include "mcpvisor/wording.h"

#include <string.h>

/* As many are looked through; more get a table. */
#define FEW_REQUESTS 8

/* Of json_id_key's text. */
static uint64_t
id_hash(struct jtext id)
{
	bool is_string = jtext_type(id) == '"';
	struct buf key;
	uint64_t h;

	if (!json_id_is_spelled(id)) {
		h = hash_stable(HASH_STABLE_SEED, is_string ? "s" : "i", 1);
		return is_string ? hash_stable(h, id.p + 1, id.n - 2)
				 : hash_stable(h, id.p, id.n);
	}
	buf_init(&key, CAP_ID_BYTES + 16);
	json_id_key(id, &key);
	h = hash_stable(HASH_STABLE_SEED, key.data, key.len);
	buf_fini(&key);
	return h;
}

static struct request *
request_find_hashed(struct client *c, struct jtext id, uint64_t h)
{
	bool few = c->by_id == NULL;
	struct request *r = few ? c->requests : idmap_get(c->by_id, h);

	while (r != NULL && (r->id_hash != h || !json_id_is_same(r->id, id)))
		r = few ? r->next : r->same_hash;
	return r;
}

struct request *
request_find(struct client *c, struct jtext id)
{
	/* Those of a shared one know nothing of each other. */
	return c->is_shared ? NULL : request_find_hashed(c, id, id_hash(id));
}

static bool
request_keep_text(struct request *r, struct jtext id, struct jtext token)
{
	char *p = r->text;

	if (id.n + token.n > sizeof(r->text)) {
		p = r->heap = mem_try(id.n + token.n);
		if (p == NULL)
			return false;
	}
	memcpy(p, id.p, id.n);
	r->id = (struct jtext){p, id.n};
	if (token.n != 0)
		memcpy(p + id.n, token.p, token.n);
	r->token = (struct jtext){token.n ? p + id.n : NULL, token.n};
	return true;
}

static struct request *
request_alloc(struct client *c)
{
	struct request *r = c->pool;

	if (r != NULL) {
		c->pool = r->next;
		c->n_pool--;
	} else {
		r = mem_try(sizeof(*r));
	}
	return r;
}

static void
request_release(struct client *c, struct request *r)
{
	mem_free(r->heap);
	buf_fini(&r->uri);
	if (c->n_pool >= REQUEST_POOL) {
		mem_free(r);
		return;
	}
	r->next = c->pool;
	c->pool = r;
	c->n_pool++;
}

static bool
request_hash(struct client *c, struct request *r)
{
	r->same_hash = idmap_get(c->by_id, r->id_hash);
	r->hashed = idmap_put(c->by_id, r->id_hash, r);
	return r->hashed;
}

static bool
requests_hash_all(struct client *c)
{
	struct request *r;

	c->by_id = idmap_new();
	/* Those that are parked have no id to be found by. */
	for (r = c->requests; r != NULL; r = r->next)
		if (!r->is_detached && !request_hash(c, r))
			break;
	if (r == NULL)
		return true;
	for (r = c->requests; r != NULL; r = r->next)
		r->hashed = false;
	idmap_free(c->by_id);
	c->by_id = NULL;
	return false;
}

/* Makes r be found by its id, once it is one of the client's requests. */
static bool
request_enter(struct client *c, struct request *r)
{
	if (c->is_shared || (c->by_id == NULL && c->n_requests < FEW_REQUESTS))
		return true;
	return (c->by_id != NULL || requests_hash_all(c)) && request_hash(c, r);
}

/* NULL, and m answered, when the client may not have another one. */
struct request *
request_new(struct client *c, const struct link_msg *m, const struct front_era *era,
    enum method method)
{
	uint64_t hash = c->is_shared ? 0 : id_hash(m->env.id);
	struct request *r;

	if (!c->is_shared && request_find_hashed(c, m->env.id, hash) != NULL) {
		buf_reset(&c->scratch);
		wording_put(&c->scratch, WORDING_ID_IN_FLIGHT, (struct jtext){NULL, 0});
		client_reply_error(c, m->env.id, 400, &c->scratch);
		return NULL;
	}
	r = c->n_requests < CAP_CLIENT_CALLS ? request_alloc(c) : NULL;
	if (r == NULL) {
		client_reply_err(c, m->env.id, MV_BUSY);
		return NULL;
	}
	memset(r, 0, offsetof(struct request, call.own));
	buf_init(&r->uri, CAP_URI_BYTES * 6 + 2);
	r->c = c;
	r->era = era;
	r->method = method;
	r->port = c->port;
	r->id_hash = hash;
	if (!request_keep_text(
		r, m->env.id, jtext_of(m->base, m->json->slot[JSON_M_PROGRESS_TOKEN]))) {
		request_release(c, r);
		client_reply_err(c, m->env.id, MV_NOMEM);
		return NULL;
	}
	if (!request_enter(c, r)) {
		request_release(c, r);
		client_reply_err(c, m->env.id, MV_NOMEM);
		return NULL;
	}
	r->next = c->requests;
	if (r->next != NULL)
		r->next->prev = &r->next;
	r->prev = &c->requests;
	c->requests = r;
	c->n_requests++;
	r->batch = c->batch;
	if (r->batch != NULL)
		r->batch->open++;
	else if (r->port != NULL)
		r->port->ops->open(r->port->arg, r);
	return r;
}

static void
request_unhash(struct client *c, struct request *r)
{
	struct request *first = idmap_get(c->by_id, r->id_hash);

	if (first != r) {
		while (first->same_hash != r)
			first = first->same_hash;
		first->same_hash = r->same_hash;
	} else if (r->same_hash == NULL ||
		   !idmap_put(c->by_id, r->id_hash, r->same_hash)) {
		(void)idmap_del(c->by_id, r->id_hash);
	}
}

void
request_detach(struct request *r, const struct iovec *result, int n)
{
	struct client *c = r->c;
	const struct client_port *port = r->port;

	MCPVISOR_ASSERT(r->batch == NULL && !r->is_detached);
	request_write(r, 200, "result", result, n);
	if (r->hashed)
		request_unhash(c, r);
	r->hashed = false;
	r->is_detached = true;
	r->id = r->token = (struct jtext){NULL, 0};
	r->id_hash = 0;
	r->port = NULL;
	c->n_parked++;
	if (port != NULL)
		port->ops->closed(port->arg);
	if (client_in_flight(c) == 0)
		c->cb->on_idle(c->arg);
}

void
request_take_over(struct request *r, struct request *fresh)
{
	struct client *c = r->c;

	mem_free(r->heap);
	memcpy(r->text, fresh->text, sizeof(r->text));
	r->heap = fresh->heap;
	r->id = fresh->id;
	r->token = fresh->token;
	if (r->heap == NULL) {
		r->id.p = r->text;
		r->token.p = r->token.n != 0 ? r->text + r->id.n : NULL;
	}
	fresh->heap = NULL;
	r->id_hash = fresh->id_hash;
	r->port = fresh->port;
	fresh->port = NULL;
	r->is_detached = false;
	c->n_parked--;
	request_end(fresh);
	/* Where one more has no place in the table it cannot be cancelled; no more. */
	(void)request_enter(c, r);
	if (r->port != NULL)
		r->port->ops->open(r->port->arg, r);
}

void
request_end(struct request *r)
{
	struct client *c = r->c;
	struct batch *b = r->batch;
	const struct client_port *port = b == NULL ? r->port : NULL;

	request_lose_asks(r, r->is_ending);
	input_free(r->input);
	parked_free(r->parked);
	task_page_free(r->page);
	call_fini(&r->call);
	gateway_unwait(&r->waiter);
	if (r->hashed)
		request_unhash(c, r);
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	c->n_requests--;
	c->n_parked -= r->is_detached;
	request_release(c, r);
	if (b != NULL)
		batch_close(c, b);
	if (port != NULL)
		port->ops->closed(port->arg);
	if (client_in_flight(c) == 0)
		c->cb->on_idle(c->arg);
}

static void
on_dead(void *arg)
{
	struct client *c = arg;

	c->cb->on_dead(c->arg);
}

struct client *
client_new_shared(struct loop *l, struct gateway *g, unsigned view,
    const struct client_cb *cb, void *arg)
{
	struct client *c = mem_xcalloc(1, sizeof(*c));

	c->is_shared = true;
	c->magic = CLIENT_MAGIC;
	c->loop = l;
	c->g = g;
	c->cb = cb;
	c->arg = arg;
	buf_init(&c->scratch, CAP_OUT_BYTES);
	deferred_init(&c->dead, l, on_dead, c);
	c->observer.on_changed = client_on_changed;
	c->observer.on_log = client_on_log;
	c->observer.on_question = client_on_question;
	c->observer.on_elicited = client_on_elicited;
	c->observer.on_task = client_on_task;
	c->observer.is_crowd = true;
	timer_init(&c->ask_timer, l, client_on_ask_timer, c);
	c->observer.arg = c;
	c->observer.view = view;
	gateway_observe(g, &c->observer);
	client_session_init(c);
	return c;
}

struct client *
client_new(struct loop *l, struct gateway *g, unsigned view, const struct client_cb *cb,
    void *arg)
{
	struct client *c = client_new_shared(l, g, view, cb, arg);

	c->is_shared = false;
	c->observer.is_crowd = false;
	return c;
}

/* r ends without an answer; m is its client's notification, if there was one. */
void
request_cancel(struct request *r, const struct link_msg *m)
{
	r->is_ending = true;
	call_look(&r->call);
	call_log_failed(r, MV_CANCELLED, (struct jtext){NULL, 0}, 0);
	call_cancel(&r->call, m);
	if (r->listen != NULL)
		listen_free(r->listen);
	if (r->sub != NULL)
		handle_unsubscribe(r, NULL);
	else
		request_end(r);
}

void
client_cancel(struct request *r)
{
	request_cancel(r, NULL);
}

void
client_cancel_batch(struct client *c, const struct client_port *port)
{
	struct request *next;

	/* With the last of them the port goes: it is only compared. */
	for (struct request *r = c->requests; r != NULL; r = next) {
		next = r->next;
		if (r->batch != NULL && r->port == port)
			request_cancel(r, NULL);
	}
}

void
client_rest(struct client *c)
{
	while (c->pool != NULL) {
		struct request *r = c->pool;

		c->pool = r->next;
		mem_free(r);
	}
	c->n_pool = 0;
	buf_fini(&c->scratch);
	if (c->requests == NULL) {
		idmap_free(c->by_id);
		c->by_id = NULL;
	}
}

void
client_free(struct client *c)
{
	if (c == NULL)
		return;
	subs_clear(c, false);
	while (c->requests != NULL)
		request_cancel(c->requests, NULL);
	client_lose_asks(c);
	timer_fini(&c->ask_timer);
	client_set_key(c, NULL);
	client_session_fini(c);
	gateway_unobserve(c->g, &c->observer);
	client_rest(c);
	deferred_cancel(&c->dead);
	c->magic = 0;
	mem_free(c);
}

void
client_set_key(struct client *c, const struct mac_key *key)
{
	if (c->park_key != NULL) {
		mac_key_wipe(c->park_key);
		mem_free(c->park_key);
		c->park_key = NULL;
	}
	if (key != NULL) {
		c->park_key = mem_xalloc(sizeof(*key));
		*c->park_key = *key;
	}
}

void
client_set_own_instances(struct client *c, bool own)
{
	c->observer.has_instances = own;
}

size_t
client_in_flight(const struct client *c)
{
	return c->n_requests - c->n_listens - c->n_parked;
}

void
client_finish(struct client *c)
{
	struct wording_failure f = {.err = MV_STOPPING};

	subs_clear(c, false);
	while (c->requests != NULL) {
		struct request *r = c->requests;

		if (r->listen != NULL) {
			listen_finish(r->listen);
			continue;
		}
		if (r->is_detached) {
			request_cancel(r, NULL);
			continue;
		}
		call_look(&r->call); /* the log names its upstream */
		call_cancel(&r->call, NULL);
		buf_reset(&c->scratch);
		f.has_acted = request_may_have_acted(r, f.err);
		wording_put_failure(&c->scratch, &f);
		call_log_failed(r, f.err, (struct jtext){NULL, 0}, c->scratch.len);
		request_reply_buf(r, "error", &c->scratch);
	}
}
