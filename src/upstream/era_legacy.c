/* SPDX-License-Identifier: MIT */
/*
 * The adapter for upstreams of 2024-11-05 to 2025-11-25: a session opened by
 * initialize, resources/subscribe, logging/setLevel.
 *
 * Invariants: modern per-request members never reach a legacy server, which might
 * otherwise take the request for a modern one.
 */
#include "upstream_priv.h"

#include "mcpvisor/log.h"

#include <stdio.h>
#include <string.h>

/* What only modern clients send, and the object it is sent in. */
static const struct {
	enum json_slot slot, object;
} modern_members[] = {
    {JSON_M_VERSION, JSON_P_META},
    {JSON_M_CLIENT_INFO, JSON_P_META},
    {JSON_M_CLIENT_CAPS, JSON_P_META},
    {JSON_M_LOG_LEVEL, JSON_P_META},
    {JSON_M_SUBSCRIPTION, JSON_P_META},
    {JSON_P_INPUT_RESPONSES, JSON_PARAMS},
    {JSON_P_REQUEST_STATE, JSON_PARAMS},
};

static const char *
legacy_edit_params(struct upstream *u, const struct upstream_call *c, uint64_t id,
    struct json_edits *ed, struct buf *scratch)
{
	const struct json_msg *json = c->json;
	struct json_span token = json->slot[JSON_M_PROGRESS_TOKEN];

	(void)u;
	for (size_t i = 0; i < sizeof(modern_members) / sizeof(modern_members[0]); i++) {
		enum json_slot slot = modern_members[i].slot;

		if (json->slot[slot].len != 0)
			json_edit_cut(ed, c->base, json->slot[modern_members[i].object],
			    json->key_off[slot], json->slot[slot]);
	}
	if (token.len != 0) {
		buf_add_u64(scratch, id);
		json_edit_add(ed, token.off, token.len, scratch->data, scratch->len);
	}
	return NULL;
}

static void
legacy_put_own_meta(struct upstream *u, struct buf *out)
{
	(void)u;
	(void)out;
}

static void
legacy_on_watched(void *arg, const struct outcome *o)
{
	struct upstream_watch *w = arg;
	bool refused = o->kind != OUTCOME_RESULT;

	if (w->settled) {
		if (refused)
			LOG_LIMITED(LOG_LV_WARNING, "upstream",
			    "subscription not renewed", "uri=%s",
			    LOG_ESC(w->uri.p, w->uri.n));
		return;
	}
	/* A process that died with the question open is asked again when it is back. */
	if (o->kind == OUTCOME_FAILED && !w->u->stopping &&
	    (w->u->era == NULL || o->err == MV_DIED))
		return;
	w->settled = true;
	w->on_settled(w->arg, refused ? o : NULL);
}

static const struct upstream_req_cb watched_cb = {.on_done = legacy_on_watched};

static void
legacy_send_watch(struct upstream *u, struct upstream_watch *w, enum method m)
{
	struct outcome o = {.kind = OUTCOME_FAILED};
	struct buf b;

	buf_init(&b, CAP_URI_BYTES * 6 + 64);
	buf_add_str(&b, "\"uri\":");
	json_put(&b, w->uri);
	(void)buf_cstr(&b);
	w->req.cb = &watched_cb;
	w->req.arg = w;
	if (m == METHOD_SUBSCRIBE) {
		o.err = b.err != MV_OK ? b.err : upstream_ask(u, &w->req, m, b.data);
		if (o.err != MV_OK && o.err != MV_CLOSED)
			legacy_on_watched(w, &o);
	} else if (b.err == MV_OK) {
		buf_reset(&u->scratch);
		buf_addf(&u->scratch,
		    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":{%s}}",
		    (unsigned long long)++u->last_id, method_name(m), b.data);
		(void)upstream_write(u, &u->scratch);
	}
	buf_fini(&b);
}

static void
legacy_watch(struct upstream *u, struct upstream_watch *w)
{
	legacy_send_watch(u, w, METHOD_SUBSCRIBE);
}

static void
legacy_unwatch(struct upstream *u, struct upstream_watch *w)
{
	/* Nobody waits for the answer; it is dropped as an answer to nothing. */
	legacy_send_watch(u, w, METHOD_UNSUBSCRIBE);
}

static void
legacy_on_level(void *arg, const struct outcome *o)
{
	struct upstream *u = arg;

	if (o->kind == OUTCOME_ERROR)
		LOG_INFO("upstream", "logging/setLevel refused", "upstream=%s",
		    LOG_ESC(u->conf->name, strlen(u->conf->name)));
}

static const struct upstream_req_cb level_cb = {.on_done = legacy_on_level};

static void
legacy_tell_level(struct upstream *u, enum mcp_level level)
{
	char members[32];

	if (!u->caps.logging || level == MCP_LV_MAX)
		return;
	(void)snprintf(
	    members, sizeof(members), "\"level\":\"%s\"", mcp_level_text(level));
	upstream_forget(&u->level_req);
	u->level_req.cb = &level_cb;
	u->level_req.arg = u;
	if (upstream_ask(u, &u->level_req, METHOD_SET_LEVEL, members) == MV_OK)
		u->told_level = level;
}

static void
legacy_set_level(struct upstream *u)
{
	legacy_tell_level(u, u->level);
}

/* The wish of one request: there is no way to say that it is over. Who wants less is not
 * sent what this brings. */
static void
legacy_raise_level(struct upstream *u, enum mcp_level wanted)
{
	if (wanted < u->told_level)
		legacy_tell_level(u, wanted);
}

static void
legacy_on_ready(struct upstream *u)
{
	struct upstream_watch *next;

	u->told_level = MCP_LV_MAX;
	legacy_set_level(u);
	for (struct upstream_watch *w = u->watches; w != NULL; w = next) {
		next = w->next;
		legacy_send_watch(u, w, METHOD_SUBSCRIBE);
	}
}

static void
legacy_on_down(struct upstream *u)
{
	upstream_forget(&u->level_req);
}

static void
legacy_on_notification(struct upstream *u, enum method m, const struct link_msg *msg)
{
	switch ((int)m) {
	case METHOD_N_UPDATED:
		u->cb->on_updated(u->arg, u, msg);
		break;
	case METHOD_N_CANCELLED:
		upstream_on_question_cancelled(u, msg);
		break;
	case METHOD_N_ELICITED:
		if (u->cb->on_elicited != NULL)
			u->cb->on_elicited(u->arg, u, msg);
		break;
	case METHOD_N_TASK_STATUS:
		if (u->cb->on_task != NULL)
			u->cb->on_task(u->arg, u, msg);
		break;
	default:
		upstream_list_changed(u, m);
		break;
	}
}

static const char *
legacy_fault_of(const struct outcome *o)
{
	(void)o;
	return NULL;
}

const struct era_ops era_legacy = {
    .name = "legacy",
    .edit_params = legacy_edit_params,
    .put_own_meta = legacy_put_own_meta,
    .on_ready = legacy_on_ready,
    .on_down = legacy_on_down,
    .watch = legacy_watch,
    .unwatch = legacy_unwatch,
    .set_level = legacy_set_level,
    .raise_level = legacy_raise_level,
    .on_notification = legacy_on_notification,
    .fault_of = legacy_fault_of,
};
