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
#include "mcpvisor/idmap.h"
#include "mcpvisor/log.h"

#include <string.h>

#define RELISTEN_MS	   1000
#define RELISTEN_DOUBLINGS 6

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
modern_put_meta(const struct upstream_call *c, uint64_t id, struct buf *out)
{
	struct jtext info = jtext_of(c->base, c->json->slot[JSON_M_CLIENT_INFO]);
	struct jtext caps = jtext_of(c->base, c->json->slot[JSON_M_CLIENT_CAPS]);
	struct json_span meta = c->json->slot[JSON_P_META];

	buf_add_char(out, '{');
	upstream_put_modern_meta(out, info.n ? info : c->client_info,
	    jtext_type(caps) == '{' ? caps : c->client_caps);
	/* Servers log without having declared it; one that does not, takes no notice. */
	if (c->level != MCP_LV_MAX) {
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

	(void)u;
	if (meta.len != 0) {
		modern_put_meta(c, id, scratch);
		json_edit_add(ed, meta.off, meta.len, scratch->data, scratch->len);
		return NULL;
	}
	buf_add_str(scratch, params.len ? "\"_meta\":" : "{\"_meta\":");
	modern_put_meta(c, id, scratch);
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
	upstream_put_modern_meta(out, (struct jtext){NULL, 0}, (struct jtext){NULL, 0});
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

static void *
wish_find(const struct strmap *wishes, struct jtext uri, struct buf *text)
{
	buf_reset(text);
	return json_string_decode(uri, text) && text->err == MV_OK
		   ? strmap_get(wishes, text->data, text->len)
		   : NULL;
}

/* The decoded URIs of the watches that wait, each with its watch, or with u if it is
 * among those that were acknowledged; absent: no memory. In one walk over these, of
 * which there may be millions. Servers may write the same URI with other escapes. */
static struct strmap *
wishes_match(struct upstream *u, struct jtext uris, struct buf *text)
{
	struct strmap *wishes = strmap_new();
	struct json_iter it;
	struct jtext uri;

	for (struct upstream_watch *w = u->watches; w != NULL; w = w->next) {
		buf_reset(text);
		if (!w->settled && json_string_decode(w->uri, text) && text->err == MV_OK)
			(void)!strmap_put(wishes, text->data, text->len, w);
	}
	if (jtext_type(uris) != '[')
		return wishes;
	json_iter_init(&it, uris);
	/* In place of what is there, which takes no memory. */
	while (json_next_element(&it, &uri))
		if (wish_find(wishes, uri, text) != NULL)
			(void)!strmap_put(wishes, text->data, text->len, u);
	return wishes;
}

static void
watch_settle(struct upstream_watch *w, const struct outcome *o)
{
	w->settled = true;
	w->on_settled(w->arg, o);
}

/* Tells watches that were part of a listen which ones were acknowledged. */
static void
listen_honour(struct upstream *u, struct jtext uris)
{
	static const struct outcome left_out = {
	    .kind = OUTCOME_FAILED, .err = MV_UNSUPPORTED};
	static const struct outcome no_memory = {.kind = OUTCOME_FAILED, .err = MV_NOMEM};
	/* One that came after the listen was sent waits for the next listen. */
	bool more = u->relisten || timer_is_set(&u->listen_timer);
	struct upstream_watch *next;
	struct strmap *wishes;
	struct buf text;

	buf_init(&text, CAP_URI_BYTES * 6);
	wishes = wishes_match(u, uris, &text);
	for (struct upstream_watch *w = u->watches; w != NULL; w = next) {
		const void *found = w->settled ? NULL : wish_find(wishes, w->uri, &text);

		next = w->next;
		if (w->settled)
			continue;
		if (found == u)
			watch_settle(w, NULL);
		else if (!more)
			watch_settle(w, found != NULL ? &left_out : &no_memory);
	}
	strmap_free(wishes);
	buf_fini(&text);
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
	if (!listen_put_filter(u, &b) && b.err == MV_OK) {
		o.err = MV_UNSUPPORTED;
		upstream_cancel(&u->listens[u->listen_now].req, NULL);
	} else {
		next->acked = false;
		next->req.is_endless = false; /* until it is acknowledged */
		o.err = buf_cstr(&b) == NULL
			    ? b.err
			    : upstream_ask(u, &next->req, METHOD_LISTEN, b.data);
	}
	buf_fini(&b);
	if (o.err == MV_OK || o.err == MV_CLOSED)
		return;
	upstream_refuse_watches(u, &o);
	/* The one that is open goes on; what has changed is asked for later. */
	if (mv_err_retryable(o.err) && !timer_is_set(&u->listen_timer))
		timer_set(&u->listen_timer, RELISTEN_MS);
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

	if (!l->acked) {
		upstream_refuse_watches(u, &ended);
		if (u->listen_fails < RELISTEN_DOUBLINGS)
			u->listen_fails++;
	}
	if (!timer_is_set(&u->listen_timer))
		timer_set(&u->listen_timer, (uint64_t)RELISTEN_MS << u->listen_fails);
}

/* Its stream broke, and the server is still there. */
static bool
listen_is_cut(const struct outcome *o)
{
	return o->err == MV_CLOSED || o->err == MV_HTTP || o->err == MV_UNREACHABLE ||
	       o->err == MV_NOMEM;
}

/* A listen ended. Cleanly or not, what it watched has to be watched again. */
static void
on_listen_done(void *arg, const struct outcome *o)
{
	struct mlisten *l = arg;
	struct upstream *u = l->u;

	if (o->kind == OUTCOME_FAILED && listen_is_cut(o) && u->era == &era_modern) {
		listen_lost(u, l);
		return;
	}
	if (o->kind == OUTCOME_FAILED && o->err != MV_TIMEOUT && o->err != MV_PROTOCOL)
		return; /* it comes back with the process */
	if (l->acked || (o->kind != OUTCOME_FAILED && o->kind != OUTCOME_ERROR)) {
		listen_lost(u, l);
		return;
	}
	if (o->kind == OUTCOME_ERROR)
		LOG_WARNING("upstream", "subscriptions/listen refused",
		    "upstream=%s error=%s", UNAME(u), LOG_ESC(o->body.p, o->body.n));
	upstream_refuse_watches(u, o);
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
	u->listen_fails = 0;
	next->req.is_endless = true;
	upstream_cancel(&u->listens[u->listen_now].req, NULL);
	u->listen_now = !u->listen_now;
	listen_honour(
	    u, json_member(jtext_of(msg->base, msg->json->slot[JSON_P_NOTIFICATIONS]),
		   "resourceSubscriptions"));
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

static const char *
modern_fault_of(const struct outcome *o)
{
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	if (code == RPC_HEADER_MISMATCH)
		return "it refuses the headers of our request";
	return code == RPC_VERSION ? "it refuses the revision it offered" : NULL;
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
    .mirrors = true,
    .edit_params = modern_edit_params,
    .put_own_meta = modern_put_own_meta,
    .on_ready = modern_on_ready,
    .on_down = modern_on_down,
    .watch = modern_watch,
    .unwatch = modern_unwatch,
    .set_level = modern_set_level,
    .raise_level = modern_raise_level,
    .on_notification = modern_on_notification,
    .fault_of = modern_fault_of,
};
