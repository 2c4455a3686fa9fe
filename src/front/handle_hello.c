/* SPDX-License-Identifier: MIT */
/*
 * initialize, server/discover, ping, logging/setLevel: what opens and tunes a
 * conversation.
 *
 * Invariants: a session's revision is fixed when initialize arrives; what is declared
 * comes from the catalog once the lists are in.
 * Spec: 2025-11-25 basic/lifecycle, server/utilities/logging; 2026-07-28
 * server/discover.
 */
#include "client_ask_priv.h"
#include "client_log_priv.h"
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <string.h>

void
client_session_init(struct client *c)
{
	c->session.level = MCP_LV_MAX;
	buf_init(&c->session.client_info, 0);
	buf_init(&c->session.client_caps, 0);
}

void
client_session_fini(struct client *c)
{
	strmap_free(c->session.subs);
	buf_fini(&c->session.client_info);
	buf_fini(&c->session.client_caps);
}

/* It is kept as long as the session, so with no byte to spare. */
static void
session_set_info(struct session *s, struct jtext info)
{
	/* Beyond the bound we name ourselves to upstreams. */
	size_t n = info.n <= CAP_CLIENT_INFO_BYTES ? info.n : 0;

	buf_fini(&s->client_info);
	buf_init(&s->client_info, n);
	if (n > 0)
		buf_add(&s->client_info, info.p, n);
	log_client_set(&s->log_client, info);
}

/* The same; most clients can be asked nothing. */
static void
client_set_caps(struct client *c, unsigned caps)
{
	struct buf *b = &c->session.client_caps;

	c->has_said_caps = true;
	gateway_set_caps(c->g, &c->observer, caps);
	buf_fini(b);
	buf_init(b, 256);
	if (caps != CLIENT_CAP_NONE)
		client_caps_put(b, caps, true);
}

/* On a channel of its own a client says it once: by initialize, by its first modern
 * request, or by doing without either. */
void
client_note_caps(
    struct client *c, const struct link_msg *m, enum method method, bool modern)
{
	enum json_slot slot = modern ? JSON_M_CLIENT_CAPS : JSON_P_CAPABILITIES;

	if (c->is_shared || method == METHOD_PING ||
	    (c->has_said_caps && method != METHOD_INITIALIZE))
		return;
	client_set_caps(c, modern || method == METHOD_INITIALIZE
			       ? client_caps_read(jtext_of(m->base, m->json->slot[slot]))
			       : CLIENT_CAP_NONE);
}

struct client_session
client_session_of(const struct client *c)
{
	const struct session *s = &c->session;

	return (struct client_session){.open = s->open,
	    .revision = s->revision,
	    .client_info = {s->client_info.data, s->client_info.len},
	    .n_subscriptions = s->subs != NULL ? strmap_count(s->subs) : 0,
	    .n_instances = c->observer.n_instances,
	    .n_asks = c->n_asks,
	    .n_tasks = c->observer.n_tasks,
	    .caps = c->observer.caps,
	    .has_level = s->level != MCP_LV_MAX};
}

void
client_session_restore(
    struct client *c, enum revision revision, unsigned caps, const char *name)
{
	struct buf info;

	client_set_caps(c, caps);
	c->session.open = c->session.greeted = true;
	c->session.revision = revision;
	if (name[0] == '\0')
		return;
	buf_init(&info, CAP_CLIENT_INFO_BYTES);
	buf_add_str(&info, "{\"name\":");
	json_put_string(&info, name, strlen(name));
	buf_add_str(&info, ",\"version\":\"\"}");
	session_set_info(&c->session, (struct jtext){info.data, info.len});
	buf_fini(&info);
}

bool
client_request_is_modern(const struct request *r)
{
	return r->era->modern;
}

struct jtext
client_request_id(const struct request *r)
{
	return r->id;
}

/* Lists of tasks are our own; the rest is what the upstreams do. */
static const char *
hello_tasks(const struct request *r, const struct upstream_caps *caps)
{
	if (r->era->modern)
		return "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}},";
	return caps->tasks_cancel
		   ? "\"tasks\":{\"list\":{},\"cancel\":{},"
		     "\"requests\":{\"tools\":{\"call\":{}}}},"
		   : "\"tasks\":{\"list\":{},\"requests\":{\"tools\":{\"call\":{}}}},";
}

static void
hello_put_caps(const struct request *r, struct buf *out)
{
	const struct client *c = r->c;
	struct upstream_caps caps = gateway_caps(c->g, c->observer.view);
	size_t start;

	buf_add_char(out, '{');
	start = out->len;
	if (caps.tools)
		buf_add_str(out, "\"tools\":{\"listChanged\":true},");
	if (caps.prompts)
		buf_add_str(out, "\"prompts\":{\"listChanged\":true},");
	if (caps.resources)
		buf_addf(out, "\"resources\":{\"subscribe\":%s,\"listChanged\":true},",
		    caps.subscribe ? "true" : "false");
	if (caps.completions)
		buf_add_str(out, "\"completions\":{},");
	if (caps.logging)
		buf_add_str(out, "\"logging\":{},");
	if (upstream_caps_has_tasks(&caps, task_kind_of(r)))
		buf_add_str(out, hello_tasks(r, &caps));
	if (out->err == MV_OK && out->len > start)
		out->len--;
	buf_add_char(out, '}');
}

static void
hello_put_instructions(const struct client *c, struct buf *out)
{
	struct buf text;

	buf_init(&text, CAP_OUT_BYTES);
	gateway_put_instructions(c->g, c->observer.view, &text);
	if (text.len > 0 && text.err == MV_OK) {
		buf_add_str(out, ",\"instructions\":");
		json_put_string(out, text.data, text.len);
	}
	buf_fini(&text);
}

static void
hello_reply_initialize(void *arg)
{
	struct request *r = arg;
	struct client *c = r->c;
	struct buf *out = &c->scratch;

	/* A session hears of changes without asking for them. */
	gateway_note_listener(c->g);
	buf_reset(out);
	buf_addf(out, "{\"protocolVersion\":\"%s\",\"capabilities\":",
	    revision_text(c->session.revision));
	hello_put_caps(r, out);
	buf_add_str(out, ",\"serverInfo\":" SERVER_INFO);
	hello_put_instructions(c, out);
	buf_add_char(out, '}');
	request_reply_buf(r, "result", out);
}

static void
hello_reply_discover(void *arg)
{
	struct request *r = arg;
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	buf_addf(out,
	    "{%s\"supportedVersions\":[\"%s\"],\"capabilities\":", r->era->result_members,
	    revision_text(REVISION_LATEST_MODERN));
	hello_put_caps(r, out);
	hello_put_instructions(r->c, out);
	/* Upstreams come and go: what is offered is as fresh as the lists are. */
	buf_add_str(out, ",\"ttlMs\":0,\"cacheScope\":\"private\"}");
	request_reply_buf(r, "result", out);
}

static void
hello_when_listed(struct request *r, void (*fn)(void *))
{
	r->waiter.fn = fn;
	r->waiter.arg = r;
	if (!gateway_wait(r->c->g, &r->waiter))
		fn(r);
}

void
handle_initialize(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	struct jtext version = jtext_of(m->base, m->json->slot[JSON_P_VERSION]);
	struct jtext info = jtext_of(m->base, m->json->slot[JSON_P_CLIENT_INFO]);
	enum revision asked = revision_parse(version);

	if (jtext_type(version) != '"' || version.n <= 2) {
		request_fail(r, WORDING_VERSION, version);
		return;
	}
	if (asked == REVISION_NONE || revision_is_modern(asked))
		asked = REVISION_LATEST_LEGACY;
	/* A second initialize on the same connection opens a new session. */
	subs_clear(c, true);
	c->session.open = true;
	c->session.greeted = false;
	c->session.revision = asked;
	gateway_set_level(c->g, &c->observer, MCP_LV_MAX);
	c->session.level = MCP_LV_MAX;
	session_set_info(
	    &c->session, jtext_type(info) == '{' ? info : (struct jtext){NULL, 0});
	LOG_INFO("client", "session", "revision=%s client=%s", revision_text(asked),
	    info.n ? LOG_ESC(info.p, info.n) : "none");
	hello_when_listed(r, hello_reply_initialize);
}

void
handle_discover(struct request *r, const struct link_msg *m)
{
	(void)m;
	hello_when_listed(r, hello_reply_discover);
}

void
handle_ping(struct request *r, const struct link_msg *m)
{
	struct iovec empty = {(void *)(uintptr_t) "{}", 2};

	(void)m;
	request_reply(r, "result", &empty, 1);
}

void
handle_set_level(struct request *r, const struct link_msg *m)
{
	struct client *c = r->c;
	enum mcp_level level =
	    mcp_level_parse(jtext_of(m->base, m->json->slot[JSON_P_LEVEL]));

	if (level == MCP_LV_MAX) {
		request_fail(
		    r, WORDING_LEVEL, jtext_of(m->base, m->json->slot[JSON_P_LEVEL]));
		return;
	}
	c->session.level = level;
	gateway_set_level(c->g, &c->observer, level);
	handle_ping(r, m);
}
