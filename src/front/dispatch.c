/* SPDX-License-Identifier: MIT */
/*
 * From a message to its handler: envelope, era, method.
 *
 * Driven by: the endpoint.
 * Invariants: the era is the request's own, never the connection's; checks come in
 * the order envelope, _meta, revision, method, params; an element of a batch is
 * treated like any message, but for where its answer goes.
 */
#include "client_ask_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/wording.h"

#include <string.h>

static const struct jtext no_value = {NULL, 0};

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
    [METHOD_TASKS_GET] = handle_task,
    [METHOD_TASKS_RESULT] = handle_task,
    [METHOD_TASKS_UPDATE] = handle_task,
    [METHOD_TASKS_CANCEL] = handle_task,
    [METHOD_TASKS_LIST] = handle_task_list,
};

/* What a client without a session cannot ask for. */
static const bool needs_session[METHOD_MAX] = {
    [METHOD_INITIALIZE] = true,
    [METHOD_SET_LEVEL] = true,
    [METHOD_SUBSCRIBE] = true,
    [METHOD_UNSUBSCRIBE] = true,
    [METHOD_TASKS_GET] = true,
    [METHOD_TASKS_RESULT] = true,
    [METHOD_TASKS_CANCEL] = true,
    [METHOD_TASKS_LIST] = true,
};

/* The definition of the tool that m calls, for the transport's checks. */
static struct jtext
dispatch_definition(struct client *c, const struct link_msg *m, enum method method)
{
	struct jtext none = {NULL, 0};

	if (method != METHOD_TOOLS_CALL)
		return none;
	return gateway_tool_definition(
	    c->g, c->observer.view, jtext_of(m->base, m->json->slot[JSON_P_NAME]));
}

/* The checks of a modern request that come before its method. A status, and the error in
 * out; 0: it may go on. */
static int
dispatch_check_modern(
    struct client *c, const struct link_msg *m, enum method method, struct buf *out)
{
	const struct client_port *port = c->port;

	if (c->batch != NULL) {
		/* A revision without batches has none inside another's either. */
		wording_put(out, WORDING_BATCH_MODERN, no_value);
		return 400;
	}
	if (!front_modern_check_meta(m, out))
		return 400;
	if (port != NULL &&
	    !port->ops->check(port->arg, m, dispatch_definition(c, m, method), out))
		return 400;
	return front_modern_check_revision(m, out) ? 0 : 400;
}

/* The same for its method and what every method has. */
static int
dispatch_check_method(struct client *c, const struct link_msg *m, enum method method,
    bool modern, struct buf *out)
{
	struct jtext token = jtext_of(m->base, m->json->slot[JSON_M_PROGRESS_TOKEN]);
	struct jtext name = wording_inside(m->env.method);

	if (handlers[method] == NULL || !method_is_in_era(method, modern)) {
		if (method == METHOD_INITIALIZE)
			wording_put(out, WORDING_METHOD_OF_BEFORE, no_value);
		else
			wording_put(out, WORDING_NO_METHOD, name);
		return modern ? 404 : 200;
	}
	if (token.n != 0 && !json_is_id(token)) {
		wording_put(out, WORDING_META_TOKEN, token);
		return 400;
	}
	if (method == METHOD_INITIALIZE && c->batch != NULL) {
		wording_put(out, WORDING_BATCH_INITIALIZE, no_value);
		return 400;
	}
	if (c->is_shared && !modern && needs_session[method]) {
		wording_put(out, WORDING_NEEDS_SESSION, name);
		return 400;
	}
	return 0;
}

static void
dispatch_request(struct client *c, const struct link_msg *m)
{
	bool modern = client_is_modern(m->json) || (c->port != NULL && c->port->modern);
	enum method method = method_parse(m->env.method);
	struct request *r;
	int status;

	buf_reset(&c->scratch);
	status = modern ? dispatch_check_modern(c, m, method, &c->scratch) : 0;
	if (status == 0)
		status = dispatch_check_method(c, m, method, modern, &c->scratch);
	if (status != 0) {
		client_reply_error(c, m->env.id, status, &c->scratch);
		return;
	}
	client_note_caps(c, m, method, modern);
	if (method != METHOD_INITIALIZE && method != METHOD_PING)
		client_note_greeted(c);
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
	request_cancel(r, m);
}

static void
dispatch_response(struct client *c, const struct link_msg *m)
{
	if (m->env.kind != ENVELOPE_INVALID && client_on_response(c, m))
		return;
	metrics_add(METRIC_REPLIES_LATE, 1);
	LOG_DEBUG(
	    "client", "answer to nothing", "id=%s", LOG_ESC(m->env.id.p, m->env.id.n));
}

static void
dispatch_notification(struct client *c, const struct link_msg *m)
{
	switch ((int)method_parse(m->env.method)) {
	case METHOD_N_INITIALIZED:
		client_note_greeted(c);
		break;
	case METHOD_N_CANCELLED:
		client_on_cancelled(c, m);
		break;
	case METHOD_N_PROGRESS:
		client_on_progress(c, m);
		break;
	case METHOD_N_ROOTS_CHANGED:
		gateway_roots_changed(c->g, &c->observer);
		break;
	default:
		break; /* nothing here waits for it */
	}
}

static void
dispatch_one(struct client *c, const struct link_msg *m)
{
	switch (m->env.kind) {
	case ENVELOPE_REQUEST:
		dispatch_request(c, m);
		break;
	case ENVELOPE_NOTIFICATION:
		dispatch_notification(c, m);
		break;
	case ENVELOPE_RESULT:
	case ENVELOPE_ERROR:
		dispatch_response(c, m);
		break;
	case ENVELOPE_BATCH:
		client_reply_err(c, m->env.id, MV_ENVELOPE);
		break;
	case ENVELOPE_INVALID:
		/* A spoilt answer is nothing to answer. */
		if (m->json->slot[JSON_METHOD].len != 0 ||
		    (m->json->slot[JSON_RESULT].len == 0 &&
			m->json->slot[JSON_ERROR].len == 0))
			client_reply_err(c, m->env.id, m->env.err);
		else
			dispatch_response(c, m);
		break;
	}
}

/* Without the white space around it, which a line may have. */
static struct jtext
text_trim(struct jtext t)
{
	static const char space[] = " \t\r\n";

	for (; t.n > 0 && strchr(space, t.p[0]) != NULL; t.n--)
		t.p++;
	while (t.n > 0 && strchr(space, t.p[t.n - 1]) != NULL)
		t.n--;
	return t;
}

static void
dispatch_batch(struct client *c, const struct link_msg *m)
{
	struct jtext all = text_trim((struct jtext){m->base, m->len}), item;
	struct batch *b;
	struct link_msg one;
	struct json_msg json;
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
	b->port = c->port;
	c->batch = b;
	if (b->port != NULL)
		b->port->ops->open(b->port->arg, NULL);
	do {
		if (++n > CAP_BATCH_ITEMS) {
			client_reply_err(c, (struct jtext){NULL, 0}, MV_TOO_LONG);
			break;
		}
		if (link_scan(item.p, item.n, &json, &one) == MV_OK)
			dispatch_one(c, &one);
	} while (json_next_element(&it, &item));
	c->batch = NULL;
	batch_close(c, b);
}

void
client_on_message(struct client *c, const struct link_msg *m)
{
	client_on_message_by(c, m, NULL);
}

void
client_on_message_by(
    struct client *c, const struct link_msg *m, const struct client_port *port)
{
	/* Outside a session it is as if 2025-03-26 were spoken. */
	enum revision revision =
	    c->session.open ? c->session.revision : REVISION_2025_03_26;

	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	c->port = port;
	if (m->env.kind == ENVELOPE_BATCH && revision_has_batches(revision))
		dispatch_batch(c, m);
	else
		dispatch_one(c, m);
	c->port = NULL;
}

void
client_on_bad(struct client *c, enum mv_err err, struct jtext id)
{
	client_reply_err(c, json_is_id(id) ? id : (struct jtext){NULL, 0}, err);
}
