/* SPDX-License-Identifier: MIT */
/*
 * From a message to its handler: envelope, era, method.
 *
 * Driven by: the endpoint.
 * Invariants: the era is the request's own, never the connection's; checks come in
 * the order envelope, _meta, revision, method, params; an element of a batch is
 * treated like any message, but for where its answer goes.
 */
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/wording.h"

#include <string.h>

typedef void handler_fn(struct request *r, const struct link_msg *m);

/* One row a request method; eras are the method table's business. */
static handler_fn *const handlers[METHOD_MAX] = {
    [METHOD_INITIALIZE] = handle_initialize,
    [METHOD_DISCOVER] = handle_discover,
    [METHOD_PING] = handle_ping,
    [METHOD_SET_LEVEL] = handle_set_level,
    [METHOD_TOOLS_LIST] = handle_list,
    [METHOD_PROMPTS_LIST] = handle_list,
    [METHOD_RESOURCES_LIST] = handle_list,
    [METHOD_TEMPLATES_LIST] = handle_list,
    [METHOD_TOOLS_CALL] = handle_forward,
    [METHOD_PROMPTS_GET] = handle_forward,
    [METHOD_RESOURCES_READ] = handle_forward,
    [METHOD_COMPLETE] = handle_forward,
    [METHOD_SUBSCRIBE] = handle_subscribe,
    [METHOD_UNSUBSCRIBE] = handle_unsubscribe,
    [METHOD_LISTEN] = handle_listen,
};

static void
dispatch_request(struct client *c, const struct link_msg *m)
{
	bool modern = front_is_modern(m->json);
	struct jtext token = jtext_of(m->base, m->json->slot[JSON_M_PROGRESS_TOKEN]);
	enum method method = method_parse(m->env.method);
	struct request *r;

	buf_reset(&c->scratch);
	if (modern && !front_modern_check(m, &c->scratch)) {
		client_reply_error(c, m->env.id, &c->scratch);
		return;
	}
	if (handlers[method] == NULL || !method_is_in_era(method, modern)) {
		wording_put_error(&c->scratch, -32601,
		    method == METHOD_INITIALIZE ? "Method not found: initialize belongs "
						  "to earlier revisions; this "
						  "request is one of 2026-07-28"
						: "Method not found");
		client_reply_error(c, m->env.id, &c->scratch);
		return;
	}
	if (token.n != 0 && !json_is_id(token)) {
		wording_put_error(&c->scratch, -32602,
		    "Invalid params: _meta.progressToken must be a string or an integer");
		client_reply_error(c, m->env.id, &c->scratch);
		return;
	}
	if (method == METHOD_INITIALIZE && c->batch != NULL) {
		wording_put_error(&c->scratch, -32600,
		    "Invalid request: initialize must not be part of a batch");
		client_reply_error(c, m->env.id, &c->scratch);
		return;
	}
	r = request_new(c, m, modern ? &front_modern : &front_legacy, method);
	if (r != NULL)
		handlers[method](r, m);
}

void
client_on_cancelled(struct client *c, const struct link_msg *m)
{
	struct jtext id = jtext_of(m->base, m->json->slot[JSON_P_REQUEST_ID]);
	struct request *r = json_is_id(id) ? request_find(c, id) : NULL;

	/* initialize must not be cancelled; an unknown id is a race, not a fault. */
	if (r == NULL || r->method == METHOD_INITIALIZE)
		return;
	call_cancel(&r->call, m);
	if (r->listen != NULL)
		listen_free(r->listen);
	if (r->sub != NULL)
		handle_unsubscribe(r, NULL);
	else
		request_end(r);
}

static void
dispatch_one(struct client *c, const struct link_msg *m)
{
	switch (m->env.kind) {
	case ENVELOPE_REQUEST:
		dispatch_request(c, m);
		break;
	case ENVELOPE_NOTIFICATION:
		/* initialized, progress, roots changes: nothing here waits for them. */
		if (method_parse(m->env.method) == METHOD_N_CANCELLED)
			client_on_cancelled(c, m);
		break;
	case ENVELOPE_RESULT:
	case ENVELOPE_ERROR:
		metrics_add(METRIC_REPLIES_LATE, 1);
		LOG_DEBUG("client", "answer to nothing", "id=%s",
		    LOG_ESC(m->env.id.p, m->env.id.n));
		break;
	case ENVELOPE_BATCH:
	case ENVELOPE_INVALID:
		client_reply_err(c, m->env.id,
		    m->env.kind == ENVELOPE_BATCH ? MV_ENVELOPE : m->env.err);
		break;
	}
}

static void
dispatch_batch(struct client *c, const struct link_msg *m)
{
	struct jtext all = {m->base, m->len}, item;
	struct batch *b;
	struct link_msg one;
	struct json_iter it;
	unsigned n = 0;

	json_iter_init(&it, all);
	if (!json_next_element(&it, &item)) {
		client_reply_err(c, m->env.id, MV_ENVELOPE);
		return;
	}
	b = mem_xcalloc(1, sizeof(*b));
	buf_init(&b->out, CAP_OUT_BYTES);
	b->open = 1;
	c->batch = b;
	do {
		if (++n > CAP_BATCH_ITEMS) {
			client_reply_err(c, (struct jtext){NULL, 0}, MV_TOO_LONG);
			break;
		}
		if (link_scan(item.p, item.n, &c->element_json, &one) == MV_OK)
			dispatch_one(c, &one);
	} while (json_next_element(&it, &item));
	c->batch = NULL;
	batch_close(c, b);
}

void
client_on_message(struct client *c, const struct link_msg *m)
{
	/* Outside a session it is as if 2025-03-26 were spoken. */
	enum revision revision =
	    c->session.open ? c->session.revision : REVISION_2025_03_26;

	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	if (m->env.kind == ENVELOPE_BATCH && revision_has_batches(revision))
		dispatch_batch(c, m);
	else
		dispatch_one(c, m);
}

void
client_on_bad(struct client *c, enum mv_err err, struct jtext id)
{
	client_reply_err(c, json_is_id(id) ? id : (struct jtext){NULL, 0}, err);
}
