/* SPDX-License-Identifier: MIT */
/*
 * The modern demo server: revision 2026-07-28, each request on its own.
 *
 * Owns: the open subscriptions.
 * Driven by: demo.c.
 * Invariants: a subscription's acknowledgement precedes its notices; every notice carries
 * its subscription's id; nothing of a request outlives it but what a listen asked for.
 * Spec: 2026-07-28, basic/index (_meta), basic/patterns/subscriptions.
 */
#include "demo_priv.h"

#include <string.h>
#include <time.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/utf8.h"

#define MODERN_VERSION "2026-07-28"
#define MODERN_COUNTER "demo://modern/counter"
#define META_VERSION   "io.modelcontextprotocol/protocolVersion"
#define META_CAPS      "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER    "io.modelcontextprotocol/serverInfo"
#define META_LISTEN    "io.modelcontextprotocol/subscriptionId"

struct demo_listen {
	struct demo_listen *next;
	json_t *id;
	json_t *uris; /* array; those it will hear of */
};

static void
tool_time(struct demo *d, const struct demo_req *r, json_t *args)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	(void)args;
	gmtime_r(&now, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	demo_reply_structured_take(
	    d, r, json_pack("{s:s,s:I}", "utc", text, "unix", (json_int_t)now));
}

static void
tool_reverse(struct demo *d, const struct demo_req *r, json_t *args)
{
	const char *text = demo_arg_string(d, r, args, "text");
	size_t n = text ? strlen(text) : 0;
	char *back = text ? mem_try(n + 1) : NULL;
	size_t at = 0;

	if (!text)
		return;
	if (!back) {
		demo_reply_text(d, r, "out of memory; try a shorter text", true);
		return;
	}
	/* By characters: the bytes of one stay in order. */
	for (size_t end = n; end > 0;) {
		size_t start = utf8_cut(text, n, end - 1);

		memcpy(back + at, text + start, end - start);
		at += end - start;
		end = start;
	}
	back[n] = '\0';
	demo_reply_text(d, r, back, false);
	mem_free(back);
}

/* clang-format off */
static const struct demo_tool tools[] = {
	{"time", DEMO_JSON({"name": "time", "title": "Time",
		"description": "The time of day, in UTC.",
		"inputSchema": {"type": "object", "additionalProperties": false},
		"outputSchema": {"type": "object", "properties": {
			"utc": {"type": "string"}, "unix": {"type": "integer"}},
			"required": ["utc", "unix"]},
		"annotations": {"readOnlyHint": true}}), tool_time, false},
	{"reverse", DEMO_JSON({"name": "reverse", "title": "Reverse",
		"description": "Says a text backwards.",
		"inputSchema": {"type": "object", "properties": {
			"text": {"type": "string", "description": "what to turn round"}},
			"required": ["text"]},
		"annotations": {"readOnlyHint": true}}), tool_reverse, false},
	{"slow", DEMO_JSON({"name": "slow",
		"description": "Takes its time and reports progress.",
		"inputSchema": {"type": "object", "properties": {
			"ms": {"type": "integer", "minimum": 0, "default": 1000},
			"steps": {"type": "integer", "minimum": 1, "default": 5}}}}),
		demo_tool_slow, false},
	{"fail", DEMO_JSON({"name": "fail",
		"description": "Always fails, as a tool does (isError).",
		"inputSchema": {"type": "object", "additionalProperties": false}}),
		demo_tool_fail, false},
	{"bump", DEMO_JSON({"name": "bump",
		"description": "Adds one to the counter and tells its subscribers.",
		"inputSchema": {"type": "object", "additionalProperties": false}}),
		demo_tool_bump, false},
	{NULL, NULL, NULL, false},
};

static const struct demo_resource resources[] = {
	{"demo://modern/status", DEMO_JSON({"uri": "demo://modern/status",
		"name": "status", "title": "State of this server",
		"mimeType": "text/plain"}), "All is well.\n"},
	{MODERN_COUNTER, DEMO_JSON({"uri": "demo://modern/counter",
		"name": "counter", "description": "Counts the calls of bump; can be listened to.",
		"mimeType": "text/plain"}), NULL},
	{NULL, NULL, NULL},
};

static const char *const topic_values[] = {"architecture", "archives", "protocols", "tests", NULL};
static const struct demo_form prompt = {
	.name = "summarize", .variable = "topic", .before = "Please summarize what you know of ",
	.after = ".", .values = topic_values,
	.def = DEMO_JSON({"name": "summarize", "title": "Summarize",
		"description": "Asks for a summary.",
		"arguments": [{"name": "topic", "description": "what it is about",
			"required": true}]})};

static const char *const note_values[] = {"today", "tomorrow", "yesterday", NULL};
static const struct demo_form template = {
	.name = "demo://modern/note/{name}", .prefix = "demo://modern/note/", .variable = "name",
	.before = "Nothing is noted for ", .after = ".", .values = note_values,
	.def = DEMO_JSON({"uriTemplate": "demo://modern/note/{name}", "name": "note",
		"description": "A note by its name.", "mimeType": "text/plain"})};
/* clang-format on */

static json_t *
modern_dress(json_t *result, enum demo_cache cache)
{
	json_t *out = json_pack("{s:s}", "resultType", "complete");
	json_t *meta = json_object_get(result, "_meta");

	if (!meta) {
		meta = json_object();
		json_object_set_new(result, "_meta", meta);
	}
	json_object_set_new(meta, META_SERVER,
	    json_pack("{s:s,s:s,s:s}", "name", "mcpvisor-demo-modern", "title",
		"Modern demo", "version", MCPVISOR_VERSION));
	json_object_update(out, result);
	json_decref(result);
	if (cache != DEMO_CACHE_NONE) {
		bool is_list = cache == DEMO_CACHE_LIST;

		json_object_set_new(out, "ttlMs", json_integer(is_list ? 300000 : 0));
		json_object_set_new(
		    out, "cacheScope", json_string(is_list ? "public" : "private"));
	}
	return out;
}

static void
on_discover(struct demo *d, const struct demo_req *r)
{
	demo_reply_take(d, r, DEMO_CACHE_LIST,
	    json_pack("{s:[s],s:{s:{},s:{},s:{s:b},s:{}},s:s}", "supportedVersions",
		MODERN_VERSION, "capabilities", "tools", "prompts", "resources",
		"subscribe", 1, "completions", "instructions",
		"A demo: try time and reverse, or read demo://modern/status."));
}

static json_t *
listen_meta(const json_t *id)
{
	json_t *copy = json_deep_copy(id);

	return json_pack("{s:{s:o}}", "_meta", META_LISTEN, copy);
}

static void
listen_unlink(struct demo_listen **at)
{
	struct demo_listen *l = *at;

	*at = l->next;
	json_decref(l->id);
	json_decref(l->uris);
	mem_free(l);
}

/* Those of the wanted resources that are here. */
static json_t *
listen_uris(const struct demo *d, json_t *wanted)
{
	json_t *uris = json_array(), *uri;
	size_t i;

	json_array_foreach(wanted, i, uri)
	{
		const char *s = json_string_value(uri);

		if (s && demo_has_resource(d, s))
			json_array_append(uris, uri);
	}
	return uris;
}

static void
on_listen(struct demo *d, const struct demo_req *r)
{
	json_t *filter = json_object_get(r->params, "notifications");
	json_t *agreed = json_object();
	struct demo_listen *l, **at = &d->listens;
	unsigned n = 0;
	json_t *params;

	for (; *at; at = &(*at)->next)
		n++;
	if (!json_is_object(filter) || n >= CAP_CLIENT_LISTENS) {
		json_decref(agreed);
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "%s",
		    n >= CAP_CLIENT_LISTENS ? "too many subscriptions are open"
					    : "notifications is not an object");
		return;
	}
	*at = l = mem_xcalloc(1, sizeof *l);
	l->id = json_incref(r->id);
	l->uris = listen_uris(d, json_object_get(filter, "resourceSubscriptions"));
	if (json_array_size(l->uris) > 0)
		json_object_set(agreed, "resourceSubscriptions", l->uris);
	params = listen_meta(l->id);
	json_object_set_new(params, "notifications", agreed);
	demo_notify_take(d, "notifications/subscriptions/acknowledged", params);
}

static const struct demo_method methods[] = {
    {"server/discover", on_discover},
    {"subscriptions/listen", on_listen},
    {NULL, NULL},
};

static bool
modern_admit_meta(struct demo *d, const struct demo_req *r)
{
	json_t *meta = json_object_get(r->params, "_meta");
	json_t *version = json_object_get(meta, META_VERSION);
	const char *missing = NULL;

	if (!json_is_string(version))
		missing = META_VERSION;
	else if (!json_is_object(json_object_get(meta, META_CAPS)))
		missing = META_CAPS;
	if (missing) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL,
		    "params._meta: %s is missing or of the wrong type", missing);
		return false;
	}
	if (strcmp(json_string_value(version), MODERN_VERSION) != 0) {
		demo_error_take(d, r, -32022,
		    json_pack(
			"{s:[s],s:O}", "supported", MODERN_VERSION, "requested", version),
		    "Unsupported protocol version");
		return false;
	}
	return true;
}

static bool
modern_admit(struct demo *d, const struct demo_req *r, bool known)
{
	/* A legacy client has nothing but this text to show to its user. */
	if (strcmp(r->method, "initialize") == 0) {
		demo_error_take(d, r, DEMO_RPC_NO_METHOD,
		    json_pack("{s:[s]}", "supported", MODERN_VERSION),
		    "Method not found: initialize. This server speaks %s, which has no "
		    "handshake",
		    MODERN_VERSION);
		return false;
	}
	if (!modern_admit_meta(d, r))
		return false;
	if (!known)
		demo_error_take(d, r, DEMO_RPC_NO_METHOD, NULL,
		    "Method not found: %.200s", r->method);
	return known;
}

static bool
listen_has(const struct demo_listen *l, const char *uri)
{
	json_t *v;
	size_t i;

	json_array_foreach(l->uris, i, v)
	{
		if (strcmp(json_string_value(v), uri) == 0)
			return true;
	}
	return false;
}

static void
modern_on_bump(struct demo *d)
{
	for (const struct demo_listen *l = d->listens; l; l = l->next) {
		json_t *params;

		if (!listen_has(l, MODERN_COUNTER))
			continue;
		params = listen_meta(l->id);
		json_object_set_new(params, "uri", json_string(MODERN_COUNTER));
		demo_notify_take(d, "notifications/resources/updated", params);
	}
}

static void
modern_on_cancelled(struct demo *d, json_t *id)
{
	struct demo_listen **at = &d->listens;

	while (*at && !json_equal((*at)->id, id))
		at = &(*at)->next;
	if (*at)
		listen_unlink(at);
}

/* The graceful end of what is still listened to. */
static void
modern_on_end(struct demo *d)
{
	while (d->listens) {
		struct demo_req r = {
		    .method = "subscriptions/listen", .id = d->listens->id};

		demo_reply_take(d, &r, DEMO_CACHE_NONE, listen_meta(r.id));
		demo_notify_take(d, "notifications/cancelled",
		    json_pack("{s:O,s:s}", "requestId", r.id, "reason", "end of input"));
		listen_unlink(&d->listens);
	}
}

const struct demo_kind demo_kind_modern = {
    .name = "modern",
    .methods = methods,
    .tools = tools,
    .resources = resources,
    .prompt = &prompt,
    .template = &template,
    .not_found = DEMO_RPC_PARAMS,
    .admit = modern_admit,
    .dress = modern_dress,
    .on_bump = modern_on_bump,
    .on_cancelled = modern_on_cancelled,
    .on_end = modern_on_end,
};
