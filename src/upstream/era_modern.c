/* SPDX-License-Identifier: MIT */
/*
 * The adapter for upstreams of 2026-07-28: everything in the _meta of each
 * request, change notices by one subscriptions/listen of ours.
 *
 * Invariants: at most two listens are open, the current one and the one that is to
 * replace it; events count from the current one alone, so that none comes twice.
 * Spec: basic/index, _meta; basic/patterns/subscriptions.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <string.h>

#define RELISTEN_MS 1000
#define UNAME(u)    LOG_ESC((u)->conf->name, strlen((u)->conf->name))

static bool
member_is(const struct upstream_call *c, enum json_slot slot, struct jtext value)
{
	return c->json->slot[slot].len != 0 &&
	       value.p == c->base + c->json->slot[slot].off;
}

/* The client's own members go along, those that speak for us are ours. */
static void
modern_put_kept(const struct upstream_call *c, uint64_t id, struct buf *out)
{
	struct json_iter it;
	struct jtext key, value;

	json_iter_init(&it, jtext_of(c->base, c->json->slot[JSON_P_META]));
	while (json_next_member(&it, &key, &value)) {
		if (member_is(c, JSON_M_VERSION, value) ||
		    member_is(c, JSON_M_CLIENT_CAPS, value) ||
		    member_is(c, JSON_M_CLIENT_INFO, value) ||
		    member_is(c, JSON_M_SUBSCRIPTION, value) ||
		    member_is(c, JSON_M_LOG_LEVEL, value))
			continue;
		buf_add_char(out, ',');
		json_put(out, key);
		buf_add_char(out, ':');
		if (member_is(c, JSON_M_PROGRESS_TOKEN, value))
			buf_add_u64(out, id);
		else
			json_put(out, value);
	}
}

static void
modern_put_meta(
    struct upstream *u, const struct upstream_call *c, uint64_t id, struct buf *out)
{
	struct jtext info = jtext_of(c->base, c->json->slot[JSON_M_CLIENT_INFO]);
	struct json_span meta = c->json->slot[JSON_P_META];

	buf_add_char(out, '{');
	upstream_put_modern_meta(out, info.n ? info : c->client_info);
	if (c->level != MCP_LV_MAX && u->caps.logging) {
		buf_add_str(out, ",\"io.modelcontextprotocol/logLevel\":\"");
		buf_add_str(out, mcp_level_text(c->level));
		buf_add_char(out, '"');
	}
	if (meta.len != 0 && c->base[meta.off] == '{')
		modern_put_kept(c, id, out);
	buf_add_char(out, '}');
}

static const char *
modern_edit_params(struct upstream *u, const struct upstream_call *c, uint64_t id,
    struct json_edits *ed, struct buf *scratch)
{
	struct json_span meta = c->json->slot[JSON_P_META];
	struct json_span params = c->json->slot[JSON_PARAMS];
	struct json_iter it;
	struct jtext key, value;

	if (meta.len != 0) {
		modern_put_meta(u, c, id, scratch);
		json_edit_add(ed, meta.off, meta.len, scratch->data, scratch->len);
		return NULL;
	}
	buf_add_str(scratch, params.len ? "\"_meta\":" : "{\"_meta\":");
	modern_put_meta(u, c, id, scratch);
	if (params.len == 0) {
		buf_add_char(scratch, '}');
		return buf_cstr(scratch);
	}
	json_iter_init(&it, jtext_of(c->base, params));
	if (json_next_member(&it, &key, &value))
		buf_add_char(scratch, ',');
	json_edit_add(ed, params.off + 1, 0, scratch->data, scratch->len);
	return NULL;
}

static void
modern_put_own_meta(struct upstream *u, struct buf *out)
{
	(void)u;
	if (out->len > 1)
		buf_add_char(out, ',');
	buf_add_str(out, "\"_meta\":{");
	upstream_put_modern_meta(out, (struct jtext){NULL, 0});
	buf_add_char(out, '}');
}

/* Members of the filter that this upstream can honour; false: nothing to ask for. */
static bool
listen_put_filter(const struct upstream *u, struct buf *out)
{
	size_t start;
	const char *sep = "";

	buf_add_str(out, "\"notifications\":{");
	start = out->len;
	if (u->caps.tools_changed)
		buf_add_str(out, "\"toolsListChanged\":true,");
	if (u->caps.prompts_changed)
		buf_add_str(out, "\"promptsListChanged\":true,");
	if (u->caps.resources_changed)
		buf_add_str(out, "\"resourcesListChanged\":true,");
	if (u->caps.subscribe && u->watches != NULL) {
		buf_add_str(out, "\"resourceSubscriptions\":[");
		for (struct upstream_watch *w = u->watches; w != NULL; w = w->next) {
			buf_add_str(out, sep);
			json_put(out, w->uri);
			sep = ",";
		}
		buf_add_str(out, "],");
	}
	if (out->len == start)
		return false;
	out->data[out->len - 1] = '}';
	return true;
}

/* Servers may write the same URI with other escapes. */
static bool
uris_have(struct jtext uris, struct jtext wanted)
{
	struct buf b;
	struct json_iter it;
	struct jtext uri;
	bool found = false;

	if (jtext_type(uris) != '[')
		return false;
	buf_init(&b, CAP_URI_BYTES * 6);
	if (json_string_decode(wanted, &b) && buf_cstr(&b) != NULL) {
		json_iter_init(&it, uris);
		while (!found && json_next_element(&it, &uri))
			found = json_string_is(uri, b.data);
	}
	buf_fini(&b);
	return found;
}

/* Tells watches that were part of a listen: o NULL takes the acknowledged set. */
static void
listen_settle(struct upstream *u, struct jtext uris, const struct outcome *o)
{
	static const struct outcome left_out = {
	    .kind = OUTCOME_FAILED, .err = MV_UNSUPPORTED};
	struct upstream_watch *next;
	/* One that came after the listen was sent waits for the next listen. */
	bool more = u->relisten || timer_is_set(&u->listen_timer);

	for (struct upstream_watch *w = u->watches; w != NULL; w = next) {
		const struct outcome *answer = o != NULL ? o : &left_out;

		next = w->next;
		if (w->settled)
			continue;
		if (o == NULL && uris_have(uris, w->uri))
			answer = NULL;
		else if (o == NULL && more)
			continue;
		w->settled = true;
		w->on_settled(w->arg, answer);
	}
}

static void
modern_listen(struct upstream *u)
{
	struct mlisten *next = &u->listens[!u->listen_now];
	struct outcome o = {.kind = OUTCOME_FAILED};
	struct buf b;

	if (u->era != &era_modern || u->stopping)
		return;
	if (next->req.u != NULL) {
		u->relisten = true; /* one change at a time */
		return;
	}
	u->relisten = false;
	timer_clear(&u->listen_timer); /* whoever set it is in this one */
	buf_init(&b, CAP_MESSAGE_BYTES);
	if (listen_put_filter(u, &b) && buf_cstr(&b) != NULL) {
		next->acked = false;
		next->req.is_endless = false; /* until it is acknowledged */
		o.err = upstream_ask(u, &next->req, METHOD_LISTEN, b.data);
	} else {
		o.err = b.err != MV_OK ? b.err : MV_UNSUPPORTED;
		upstream_cancel(&u->listens[u->listen_now].req, NULL);
	}
	if (o.err != MV_OK && o.err != MV_CLOSED)
		listen_settle(u, (struct jtext){NULL, 0}, &o);
	buf_fini(&b);
}

static void
on_listen_timer(void *arg)
{
	modern_listen(arg);
}

/* It is over and has to be opened again. Who waits for its acknowledgement, which will
 * not come, must not wait for ever. */
static void
listen_lost(struct upstream *u, const struct mlisten *l)
{
	static const struct outcome ended = {.kind = OUTCOME_FAILED, .err = MV_PROTOCOL};

	if (!l->acked)
		listen_settle(u, (struct jtext){NULL, 0}, &ended);
	if (!timer_is_set(&u->listen_timer))
		timer_set(&u->listen_timer, RELISTEN_MS);
}

/* A listen ended. Cleanly or not, what it watched has to be watched again. */
static void
on_listen_done(void *arg, const struct outcome *o)
{
	struct mlisten *l = arg;
	struct upstream *u = l->u;

	if (o->kind == OUTCOME_FAILED && o->err != MV_TIMEOUT && o->err != MV_PROTOCOL)
		return; /* it comes back with the process */
	if (o->kind == OUTCOME_FAILED) {
		listen_settle(u, (struct jtext){NULL, 0}, o);
		return;
	}
	if (o->kind == OUTCOME_ERROR && !l->acked) {
		LOG_WARNING("upstream", "subscriptions/listen refused",
		    "upstream=%s error=%s", UNAME(u), LOG_ESC(o->body.p, o->body.n));
		listen_settle(u, (struct jtext){NULL, 0}, o);
		return;
	}
	listen_lost(u, l);
}

static const struct upstream_req_cb listen_cb = {.on_done = on_listen_done};

static void
listen_on_ack(struct upstream *u, const struct link_msg *msg)
{
	struct mlisten *next = &u->listens[!u->listen_now];
	struct jtext id = jtext_of(msg->base, msg->json->slot[JSON_M_SUBSCRIPTION]);
	struct upstream_req *r = upstream_find(u, id);

	if (r == NULL || r != &next->req || next->acked)
		return;
	next->acked = true;
	next->req.is_endless = true;
	upstream_cancel(&u->listens[u->listen_now].req, NULL);
	u->listen_now = !u->listen_now;
	listen_settle(u,
	    json_member(jtext_of(msg->base, msg->json->slot[JSON_P_NOTIFICATIONS]),
		"resourceSubscriptions"),
	    NULL);
	if (u->relisten)
		modern_listen(u);
	upstream_idle_arm(u);
}

static bool
listen_is_current(struct upstream *u, const struct link_msg *msg)
{
	struct jtext id = jtext_of(msg->base, msg->json->slot[JSON_M_SUBSCRIPTION]);

	/* Without an id it cannot be a double of another listen's. */
	return id.n == 0 || upstream_find(u, id) == &u->listens[u->listen_now].req;
}

static void
modern_on_notification(struct upstream *u, enum method m, const struct link_msg *msg)
{
	struct upstream_req *r;

	switch ((int)m) {
	case METHOD_N_ACKNOWLEDGED:
		listen_on_ack(u, msg);
		break;
	case METHOD_N_CANCELLED:
		/* Only a listen may be cancelled by a server. */
		r = upstream_find(
		    u, jtext_of(msg->base, msg->json->slot[JSON_P_REQUEST_ID]));
		if (r == &u->listens[0].req || r == &u->listens[1].req) {
			upstream_forget(r);
			listen_lost(u, r->arg);
		}
		break;
	case METHOD_N_UPDATED:
		if (listen_is_current(u, msg))
			u->cb->on_updated(u->arg, u, msg);
		break;
	default:
		if (listen_is_current(u, msg))
			upstream_list_changed(u, m);
		break;
	}
}

static void
modern_on_ready(struct upstream *u)
{
	modern_listen(u);
}

static void
modern_on_down(struct upstream *u)
{
	timer_clear(&u->listen_timer);
	upstream_forget(&u->listens[0].req);
	upstream_forget(&u->listens[1].req);
	u->relisten = false;
}

static void
modern_watch(struct upstream *u, struct upstream_watch *w)
{
	static const struct outcome refused = {
	    .kind = OUTCOME_FAILED, .err = MV_UNSUPPORTED};

	if (!u->caps.subscribe) {
		w->settled = true;
		w->on_settled(w->arg, &refused);
		return;
	}
	/* Several changes in one turn make one new listen. */
	timer_set(&u->listen_timer, 0);
}

static void
modern_unwatch(struct upstream *u, struct upstream_watch *w)
{
	(void)w;
	if (u->caps.subscribe)
		timer_set(&u->listen_timer, 0);
}

static void
modern_set_level(struct upstream *u)
{
	(void)u; /* each request says it */
}

static void
modern_raise_level(struct upstream *u, enum mcp_level wanted)
{
	(void)u;
	(void)wanted;
}

static bool
modern_refuses_us(const struct outcome *o)
{
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	return code == RPC_VERSION || code == RPC_HEADER_MISMATCH;
}

void
era_modern_init(struct upstream *u)
{
	timer_init(&u->listen_timer, u->loop, on_listen_timer, u);
	for (unsigned i = 0; i < 2; i++) {
		u->listens[i].u = u;
		u->listens[i].req.cb = &listen_cb;
		u->listens[i].req.arg = &u->listens[i];
	}
}

void
era_modern_fini(struct upstream *u)
{
	timer_fini(&u->listen_timer);
}

const struct era_ops era_modern = {
    .name = "modern",
    .asks_in_results = true,
    .edit_params = modern_edit_params,
    .put_own_meta = modern_put_own_meta,
    .on_ready = modern_on_ready,
    .on_down = modern_on_down,
    .watch = modern_watch,
    .unwatch = modern_unwatch,
    .set_level = modern_set_level,
    .raise_level = modern_raise_level,
    .on_notification = modern_on_notification,
    .refuses_us = modern_refuses_us,
};
