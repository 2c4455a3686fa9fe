/* SPDX-License-Identifier: MIT */
/*
 * The legacy demo server: revisions 2024-11-05 to 2025-11-25, by initialize.
 *
 * Owns: nothing beyond struct demo.
 * Driven by: demo.c.
 * Invariants: nothing but initialize and ping is served before initialize; list changes,
 * updates and log messages go out only as far as this client asked for them.
 */
#include "demo_priv.h"

#include <string.h>

#include "mcpvisor/mem.h"

#define LEGACY_COUNTER	 "demo://legacy/counter"
#define LEGACY_BIG_BYTES (32 * 1024 * 1024)

static const struct {
	const char *text;
	bool batches;
} versions[] = {
    {"2025-11-25", false},
    {"2025-06-18", false},
    {"2025-03-26", true},
    {"2024-11-05", false},
};

static const char *const levels[] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
#define LEVELS (sizeof levels / sizeof *levels)

static unsigned
level_parse(const char *s)
{
	unsigned i = 0;

	while (i < LEVELS && (!s || strcmp(levels[i], s) != 0))
		i++;
	return i;
}

static void
tool_echo(struct demo *d, const struct demo_req *r, json_t *args)
{
	if (demo_arg_string(d, r, args, "text"))
		demo_reply_value(d, r, json_object_get(args, "text"), false);
}

static void
tool_add(struct demo *d, const struct demo_req *r, json_t *args)
{
	json_t *a = json_object_get(args, "a"), *b = json_object_get(args, "b");
	long long whole;
	json_t *sum;

	if (!json_is_number(a) || !json_is_number(b)) {
		demo_reply_text(
		    d, r, "a and b must be numbers. Call again with both.", true);
		return;
	}
	if (json_is_integer(a) && json_is_integer(b) &&
	    !__builtin_add_overflow(json_integer_value(a), json_integer_value(b), &whole))
		sum = json_integer(whole);
	else
		sum = json_real(json_number_value(a) + json_number_value(b));
	if (sum)
		demo_reply_structured_take(d, r, json_pack("{s:o}", "sum", sum));
	else
		demo_reply_text(d, r, "The sum is too large. Try smaller numbers.", true);
}

static void
tool_big(struct demo *d, const struct demo_req *r, json_t *args)
{
	int64_t bytes = 65536;
	char *text;

	if (!demo_arg_int(d, r, args, "bytes", LEGACY_BIG_BYTES, &bytes))
		return;
	text = mem_try((size_t)bytes + 1);
	if (!text) {
		demo_reply_text(d, r, "out of memory; try fewer bytes", true);
		return;
	}
	for (int64_t i = 0; i < bytes; i++)
		text[i] = (char)('a' + i % 26);
	text[bytes] = '\0';
	demo_reply_text(d, r, text, false);
	mem_free(text);
}

static void
tool_log(struct demo *d, const struct demo_req *r, json_t *args)
{
	const char *name = demo_arg_string(d, r, args, "level");
	const char *text = name ? demo_arg_string(d, r, args, "text") : NULL;
	unsigned level = level_parse(name);

	if (!text)
		return;
	if (level == LEVELS) {
		demo_reply_text(d, r, "level must be one of debug to emergency", true);
		return;
	}
	if (level >= d->level)
		demo_notify_take(d, "notifications/message",
		    json_pack("{s:s,s:s,s:s}", "level", levels[level], "logger", "demo",
			"data", text));
	demo_reply_text(d, r, level >= d->level ? "sent" : "below the level set", false);
}

static void
tool_reveal(struct demo *d, const struct demo_req *r, json_t *args)
{
	(void)args;
	if (!d->revealed) {
		d->revealed = true;
		demo_notify_take(d, "notifications/tools/list_changed", NULL);
	}
	demo_reply_text(d, r, "the tool \"hidden\" is there now", false);
}

static void
tool_hidden(struct demo *d, const struct demo_req *r, json_t *args)
{
	(void)args;
	demo_reply_text(d, r, "found", false);
}

/* clang-format off */
static const struct demo_tool tools[] = {
	{"echo", DEMO_JSON({"name": "echo", "title": "Echo",
		"description": "Says back what it is told.",
		"inputSchema": {"type": "object", "properties": {
			"text": {"type": "string", "description": "what to say"}},
			"required": ["text"]},
		"annotations": {"readOnlyHint": true}}), tool_echo, false},
	{"add", DEMO_JSON({"name": "add", "title": "Add",
		"description": "Adds two numbers.",
		"inputSchema": {"type": "object", "properties": {
			"a": {"type": "number"}, "b": {"type": "number"}},
			"required": ["a", "b"]},
		"outputSchema": {"type": "object", "properties": {
			"sum": {"type": "number"}}, "required": ["sum"]},
		"annotations": {"readOnlyHint": true}}), tool_add, false},
	{"fail", DEMO_JSON({"name": "fail",
		"description": "Always fails, as a tool does (isError).",
		"inputSchema": {"type": "object"}}), demo_tool_fail, false},
	{"slow", DEMO_JSON({"name": "slow",
		"description": "Takes its time and reports progress.",
		"inputSchema": {"type": "object", "properties": {
			"ms": {"type": "integer", "minimum": 0, "default": 1000},
			"steps": {"type": "integer", "minimum": 1, "default": 5}}}}),
		demo_tool_slow, false},
	{"big", DEMO_JSON({"name": "big",
		"description": "Returns a text of the given size.",
		"inputSchema": {"type": "object", "properties": {
			"bytes": {"type": "integer", "minimum": 0, "maximum": 33554432,
				"default": 65536}}}}), tool_big, false},
	{"bump", DEMO_JSON({"name": "bump",
		"description": "Adds one to the counter and tells its subscribers.",
		"inputSchema": {"type": "object"}}), demo_tool_bump, false},
	{"log", DEMO_JSON({"name": "log",
		"description": "Sends a log message.",
		"inputSchema": {"type": "object", "properties": {
			"level": {"type": "string", "enum": ["debug", "info", "notice", "warning",
				"error", "critical", "alert", "emergency"]},
			"text": {"type": "string"}}, "required": ["level", "text"]}}),
		tool_log, false},
	{"reveal", DEMO_JSON({"name": "reveal",
		"description": "Adds the tool hidden to the list.",
		"inputSchema": {"type": "object"}}), tool_reveal, false},
	{"hidden", DEMO_JSON({"name": "hidden",
		"description": "Was not in the list at first.",
		"inputSchema": {"type": "object"}}), tool_hidden, true},
	{NULL, NULL, NULL, false},
};

static const struct demo_resource resources[] = {
	{"demo://legacy/readme", DEMO_JSON({"uri": "demo://legacy/readme",
		"name": "readme", "title": "About this server",
		"mimeType": "text/plain", "annotations": {"audience": ["user"]}}),
		"A demo server of mcpvisor that speaks the revisions up to 2025-11-25.\n"},
	{LEGACY_COUNTER, DEMO_JSON({"uri": "demo://legacy/counter",
		"name": "counter", "description": "Counts the calls of bump; can be subscribed to.",
		"mimeType": "text/plain"}), NULL},
	{NULL, NULL, NULL},
};

static const char *const greet_values[] = {"Ada", "Alan", "Barbara", "Dennis", "Grace", NULL};
static const struct demo_form prompt = {
	.name = "greet", .variable = "name", .before = "Please greet ", .after = " warmly.",
	.values = greet_values,
	.def = DEMO_JSON({"name": "greet", "title": "Greet",
		"description": "Asks for a greeting.",
		"arguments": [{"name": "name", "description": "who is greeted",
			"required": true}]})};

static const char *const item_values[] = {"1", "2", "10", "11", NULL};
static const struct demo_form template = {
	.name = "demo://legacy/item/{id}", .prefix = "demo://legacy/item/", .variable = "id",
	.before = "This is item ", .after = ".", .values = item_values,
	.def = DEMO_JSON({"uriTemplate": "demo://legacy/item/{id}", "name": "item",
		"description": "One item by its id.", "mimeType": "text/plain"})};
/* clang-format on */

static void
on_initialize(struct demo *d, const struct demo_req *r)
{
	const char *asked =
	    json_string_value(json_object_get(r->params, "protocolVersion"));

	if (!asked) {
		demo_error_take(
		    d, r, DEMO_RPC_PARAMS, NULL, "protocolVersion is not a string");
		return;
	}
	d->version = versions[0].text;
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		if (strcmp(versions[i].text, asked) == 0)
			d->version = versions[i].text;
	}
	demo_reply_take(d, r, DEMO_CACHE_NONE,
	    json_pack("{s:s,s:{s:{s:b},s:{},s:{s:b},s:{},s:{}},s:{s:s,s:s,s:s},s:s}",
		"protocolVersion", d->version, "capabilities", "tools", "listChanged", 1,
		"prompts", "resources", "subscribe", 1, "completions", "logging",
		"serverInfo", "name", "mcpvisor-demo-legacy", "title", "Legacy demo",
		"version", MCPVISOR_VERSION, "instructions",
		"A demo: try echo, add and slow, or read demo://legacy/readme."));
}

static void
on_ping(struct demo *d, const struct demo_req *r)
{
	demo_reply_take(d, r, DEMO_CACHE_NONE, json_object());
}

static void
on_set_level(struct demo *d, const struct demo_req *r)
{
	unsigned level =
	    level_parse(json_string_value(json_object_get(r->params, "level")));

	if (level == LEVELS) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "level: not a log level");
		return;
	}
	d->level = level;
	on_ping(d, r);
}

static void
on_subscription(struct demo *d, const struct demo_req *r)
{
	const char *uri = json_string_value(json_object_get(r->params, "uri"));

	if (!uri) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "uri is not a string");
		return;
	}
	if (!demo_has_resource(d, uri)) {
		demo_error_take(d, r, d->kind->not_found, json_pack("{s:s}", "uri", uri),
		    "Resource not found");
		return;
	}
	if (strcmp(r->method, "resources/subscribe") == 0)
		json_object_set_new(d->subscribed, uri, json_true());
	else
		json_object_del(d->subscribed, uri);
	on_ping(d, r);
}

static const struct demo_method methods[] = {
    {"initialize", on_initialize},
    {"ping", on_ping},
    {"logging/setLevel", on_set_level},
    {"resources/subscribe", on_subscription},
    {"resources/unsubscribe", on_subscription},
    {NULL, NULL},
};

static bool
legacy_admit(struct demo *d, const struct demo_req *r, bool known)
{
	if (!known) {
		demo_error_take(d, r, DEMO_RPC_NO_METHOD, NULL,
		    "Method not found: %.200s", r->method);
		return false;
	}
	if (!d->version && strcmp(r->method, "initialize") != 0 &&
	    strcmp(r->method, "ping") != 0) {
		demo_error_take(d, r, DEMO_RPC_INVALID, NULL, "initialize comes first");
		return false;
	}
	return true;
}

static void
legacy_on_bump(struct demo *d)
{
	if (json_object_get(d->subscribed, LEGACY_COUNTER))
		demo_notify_take(d, "notifications/resources/updated",
		    json_pack("{s:s}", "uri", LEGACY_COUNTER));
}

static bool
legacy_takes_batches(const struct demo *d)
{
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		if (versions[i].text == d->version)
			return versions[i].batches;
	}
	return false;
}

const struct demo_kind demo_kind_legacy = {
    .name = "legacy",
    .methods = methods,
    .tools = tools,
    .resources = resources,
    .prompt = &prompt,
    .template = &template,
    .not_found = -32002,
    .admit = legacy_admit,
    .on_bump = legacy_on_bump,
    .takes_batches = legacy_takes_batches,
};
