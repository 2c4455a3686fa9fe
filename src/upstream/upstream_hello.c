/* SPDX-License-Identifier: MIT */
/*
 * How we introduce ourselves: server/discover and initialize, and what their
 * answers say of the upstream.
 *
 * Driven by: upstream.c, which turns the answers into events.
 * Spec: 2026-07-28 basic/transports/stdio, Backward Compatibility; server/discover;
 * 2025-11-25 basic/lifecycle.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

static void
hello_take_answer(struct upstream *u, struct jtext result)
{
	struct jtext text = json_member(result, "instructions");
	struct buf b;

	u->caps = upstream_caps_read(u->revision, json_member(result, "capabilities"));
	mem_free(u->instructions);
	u->instructions = NULL;
	buf_init(&b, CAP_INSTRUCTIONS_BYTES);
	if (json_string_decode(text, &b) && b.err == MV_OK && b.len > 0)
		u->instructions = mem_xstrndup(b.data, b.len);
	else if (b.err != MV_OK)
		LOG_WARNING("upstream", "instructions left out: too long", "upstream=%s",
		    LOG_ESC(u->conf->name, strlen(u->conf->name)));
	buf_fini(&b);
}

static bool
versions_have(struct jtext list, bool modern)
{
	struct json_iter it;
	struct jtext v;

	if (jtext_type(list) != '[')
		return false;
	json_iter_init(&it, list);
	while (json_next_element(&it, &v)) {
		enum revision r = revision_parse(v);

		if (r != REVISION_NONE && revision_is_modern(r) == modern)
			return true;
	}
	return false;
}

static enum upstream_event
hello_discover_refused(struct upstream *u, const struct outcome *o)
{
	struct jtext offered = json_member(json_member(o->body, "data"), "supported");
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	if (code == RPC_VERSION && versions_have(offered, true) && !u->probe_retried) {
		u->probe_retried = true;
		upstream_send_discover(u);
		return UPSTREAM_EV_MAX;
	}
	if (code == RPC_VERSION && versions_have(offered, false))
		return UPSTREAM_EV_DISCOVER_LEGACY;
	if (code == RPC_VERSION || code == RPC_HEADER_MISMATCH ||
	    code == RPC_MISSING_CAPABILITY) {
		upstream_set_reason(
		    u, "refused server/discover: %s", LOG_ESC(o->body.p, o->body.n));
		upstream_set_told(u, "refused server/discover");
		return UPSTREAM_EV_DISCOVER_BAD;
	}
	return UPSTREAM_EV_DISCOVER_LEGACY;
}

static void
on_discover_done(void *arg, const struct outcome *o)
{
	struct upstream *u = arg;
	enum upstream_event ev;

	switch (o->kind) {
	case OUTCOME_FAILED:
		if (o->err != MV_PROTOCOL)
			return; /* the process is gone, which is an event of its own */
		ev = UPSTREAM_EV_DISCOVER_LEGACY; /* an error with a string for a code */
		break;
	case OUTCOME_ERROR:
		ev = hello_discover_refused(u, o);
		break;
	case OUTCOME_INPUT_REQUIRED:
	case OUTCOME_RESULT:
		if (versions_have(json_member(o->body, "supportedVersions"), true)) {
			u->revision = REVISION_LATEST_MODERN;
			hello_take_answer(u, o->body);
			ev = UPSTREAM_EV_DISCOVER_OK;
		} else {
			/* An answer that is no DiscoverResult, or one of a server that
			 * speaks only what came before. */
			ev = UPSTREAM_EV_DISCOVER_LEGACY;
		}
		break;
	default:
		return;
	}
	if (ev != UPSTREAM_EV_MAX)
		upstream_event(u, ev);
}

static void
on_init_done(void *arg, const struct outcome *o)
{
	struct upstream *u = arg;
	struct jtext version;
	enum revision r;

	if (o->kind == OUTCOME_FAILED) {
		if (o->err != MV_PROTOCOL)
			return;
		upstream_set_reason(
		    u, "answered initialize with what is no answer: %s", o->detail);
		upstream_event(u, UPSTREAM_EV_INIT_BAD);
		return;
	}
	if (o->kind == OUTCOME_ERROR) {
		upstream_set_reason(
		    u, "refused initialize: %s", LOG_ESC(o->body.p, o->body.n));
		upstream_set_told(u, "refused initialize");
		upstream_event(u, UPSTREAM_EV_INIT_BAD);
		return;
	}
	version = json_member(o->body, "protocolVersion");
	r = revision_parse(version);
	if (r == REVISION_NONE || revision_is_modern(r)) {
		upstream_set_reason(u, "answered initialize with revision %s",
		    version.n ? LOG_ESC(version.p, version.n) : "(none)");
		upstream_event(u, UPSTREAM_EV_INIT_BAD);
		return;
	}
	u->revision = r;
	hello_take_answer(u, o->body);
	u->kind->on_greeted(u);
}

static const struct upstream_req_cb discover_cb = {.on_done = on_discover_done};
static const struct upstream_req_cb init_cb = {.on_done = on_init_done};

void
upstream_put_modern_meta(
    struct buf *out, struct jtext client_info, struct jtext client_caps)
{
	buf_add_str(out, "\"io.modelcontextprotocol/protocolVersion\":\"");
	buf_add_str(out, revision_text(REVISION_LATEST_MODERN));
	buf_add_str(out, "\",\"io.modelcontextprotocol/clientCapabilities\":");
	if (client_caps.n)
		json_put(out, client_caps);
	else
		buf_add_str(out, "{}");
	buf_add_str(out, ",\"io.modelcontextprotocol/clientInfo\":");
	if (client_info.n)
		json_put(out, client_info);
	else
		buf_add_str(out, MCPVISOR_IDENTITY);
}

static void
hello_ask(struct upstream *u, const struct upstream_req_cb *cb)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_add_str(&b, "{\"_meta\":{");
	upstream_put_modern_meta(&b, (struct jtext){NULL, 0}, (struct jtext){NULL, 0});
	buf_add_str(&b, "}}");
	u->discover.cb = cb;
	u->discover.arg = u;
	/* What cannot be asked is not answered: the limits of time deal with both. */
	if (buf_cstr(&b) != NULL)
		(void)upstream_ask_raw(u, &u->discover, METHOD_DISCOVER, b.data);
	buf_fini(&b);
}

void
upstream_send_discover(struct upstream *u)
{
	u->discover.is_endless = true; /* the start limit ends it */
	hello_ask(u, &discover_cb);
}

void
upstream_send_doubt(struct upstream *u, const struct upstream_req_cb *cb)
{
	u->discover.is_endless = false;
	hello_ask(u, cb);
}

bool
upstream_is_modern_answer(const struct outcome *o)
{
	struct jtext data;
	int64_t code = 0;

	if (o->kind == OUTCOME_RESULT || o->kind == OUTCOME_INPUT_REQUIRED)
		return versions_have(json_member(o->body, "supportedVersions"), true);
	if (o->kind != OUTCOME_ERROR)
		return false;
	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	data = json_member(o->body, "data");
	return code == RPC_HEADER_MISMATCH || code == RPC_MISSING_CAPABILITY ||
	       (code == RPC_VERSION &&
		   versions_have(json_member(data, "supported"), true));
}

void
upstream_send_initialize(struct upstream *u)
{
	struct buf b;

	u->init_waits = !u->caps_known;
	if (u->init_waits) {
		/* Its client may take its time. */
		timer_clear(&u->start_timer);
		return;
	}
	if (!timer_is_set(&u->start_timer))
		timer_set(&u->start_timer, u->conf->start_ms);
	buf_init(&b, 4096);
	buf_addf(&b, "{\"protocolVersion\":\"%s\",\"capabilities\":",
	    revision_text(REVISION_LATEST_LEGACY));
	client_caps_put(&b, upstream_declared_caps(u), false);
	buf_addf(&b, ",\"clientInfo\":%s}", MCPVISOR_IDENTITY);
	u->init.cb = &init_cb;
	u->init.arg = u;
	u->init.is_endless = true;
	if (buf_cstr(&b) != NULL)
		(void)upstream_ask_raw(u, &u->init, METHOD_INITIALIZE, b.data);
	buf_fini(&b);
}

void
upstream_send_initialized(struct upstream *u)
{
	struct buf b;

	buf_init(&b, 256);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	(void)upstream_write(u, &b);
	buf_fini(&b);
}
