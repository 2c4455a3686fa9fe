/* SPDX-License-Identifier: MIT */
/*
 * Methods that the demo servers of both eras have, over the tables of each: lists,
 * tools/call, prompts/get, resources/read, completion/complete.
 *
 * Owns: nothing.
 * Driven by: demo.c.
 * Invariants: every path replies exactly once; wrong arguments of a tool are a result of
 * that tool (isError), wrong params of a method are -32602.
 */
#include "demo_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/caps.h"

static json_t *
json_of(const char *text)
{
	json_t *v = json_loads(text, 0, NULL);

	MCPVISOR_ASSERT(v);
	return v;
}

void
demo_reply_value(struct demo *d, const struct demo_req *r, json_t *text, bool is_error)
{
	json_t *result =
	    json_pack("{s:[{s:s,s:O}]}", "content", "type", "text", "text", text);

	if (is_error)
		json_object_set_new(result, "isError", json_true());
	demo_reply_take(d, r, DEMO_CACHE_NONE, result);
}

void
demo_reply_text(struct demo *d, const struct demo_req *r, const char *text, bool is_error)
{
	json_t *value = json_string(text);

	demo_reply_value(d, r, value, is_error);
	json_decref(value);
}

static int
on_dump(const char *p, size_t n, void *arg)
{
	buf_add(arg, p, n);
	return 0;
}

void
demo_reply_structured_take(struct demo *d, const struct demo_req *r, json_t *object)
{
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	json_dump_callback(object, on_dump, &text, JSON_COMPACT);
	demo_reply_take(d, r, DEMO_CACHE_NONE,
	    json_pack("{s:[{s:s,s:s}],s:o}", "content", "type", "text", "text",
		buf_cstr(&text), "structuredContent", object));
	buf_fini(&text);
}

const char *
demo_arg_string(struct demo *d, const struct demo_req *r, json_t *args, const char *name)
{
	json_t *v = json_object_get(args, name);
	char text[128];

	if (json_is_string(v))
		return json_string_value(v);
	snprintf(text, sizeof text, "%s must be a string; it is %s. Call again with one.",
	    name, v ? "something else" : "missing");
	demo_reply_text(d, r, text, true);
	return NULL;
}

bool
demo_arg_int(struct demo *d, const struct demo_req *r, json_t *args, const char *name,
    int64_t max, int64_t *value)
{
	json_t *v = json_object_get(args, name);
	char text[160];

	if (!v)
		return true;
	*value = json_integer_value(v);
	if (json_is_integer(v) && *value >= 0 && *value <= max)
		return true;
	snprintf(text, sizeof text,
	    "%s must be a whole number from 0 to %lld. Call again with one.", name,
	    (long long)max);
	demo_reply_text(d, r, text, true);
	return false;
}

/* A reply that lists what is under member; no page ever follows, so every cursor is
 * one that we did not give. */
static void
demo_reply_list_take(
    struct demo *d, const struct demo_req *r, const char *member, json_t *items)
{
	if (json_object_get(r->params, "cursor")) {
		json_decref(items);
		demo_error_take(
		    d, r, DEMO_RPC_PARAMS, NULL, "cursor: not one that this server gave");
		return;
	}
	demo_reply_take(d, r, DEMO_CACHE_LIST, json_pack("{s:o}", member, items));
}

static void
on_tools_list(struct demo *d, const struct demo_req *r)
{
	json_t *items = json_array();

	for (const struct demo_tool *t = d->kind->tools; t->name; t++) {
		if (!t->hidden || d->revealed)
			json_array_append_new(items, json_of(t->def));
	}
	demo_reply_list_take(d, r, "tools", items);
}

static void
on_tools_call(struct demo *d, const struct demo_req *r)
{
	const char *name = json_string_value(json_object_get(r->params, "name"));
	json_t *args = json_object_get(r->params, "arguments");
	const struct demo_tool *t = d->kind->tools;
	json_t *none = NULL;

	if (!name || (args && !json_is_object(args))) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "%s",
		    name ? "arguments is not an object" : "name is not a string");
		return;
	}
	while (t->name && (strcmp(t->name, name) != 0 || (t->hidden && !d->revealed)))
		t++;
	if (!t->name) {
		demo_error_take(
		    d, r, DEMO_RPC_PARAMS, NULL, "Unknown tool: %.200s", name);
		return;
	}
	if (!args)
		args = none = json_object();
	t->fn(d, r, args);
	json_decref(none);
}

static void
on_prompts_list(struct demo *d, const struct demo_req *r)
{
	demo_reply_list_take(
	    d, r, "prompts", json_pack("[o]", json_of(d->kind->prompt->def)));
}

static void
on_prompts_get(struct demo *d, const struct demo_req *r)
{
	const struct demo_form *p = d->kind->prompt;
	const char *name = json_string_value(json_object_get(r->params, "name"));
	const char *value = json_string_value(
	    json_object_get(json_object_get(r->params, "arguments"), p->variable));

	if (!name || strcmp(name, p->name) != 0)
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "Unknown prompt: %.200s",
		    name ? name : "(no name)");
	else if (!value)
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL,
		    "arguments.%s must be a string", p->variable);
	else
		demo_reply_take(d, r, DEMO_CACHE_NONE,
		    json_pack("{s:[{s:s,s:{s:s,s:s++}}]}", "messages", "role", "user",
			"content", "type", "text", "text", p->before, value, p->after));
}

static void
on_resources_list(struct demo *d, const struct demo_req *r)
{
	json_t *items = json_array();

	for (const struct demo_resource *e = d->kind->resources; e->uri; e++)
		json_array_append_new(items, json_of(e->def));
	demo_reply_list_take(d, r, "resources", items);
}

static void
on_templates_list(struct demo *d, const struct demo_req *r)
{
	demo_reply_list_take(
	    d, r, "resourceTemplates", json_pack("[o]", json_of(d->kind->template->def)));
}

static const struct demo_resource *
resource_find(const struct demo *d, const char *uri)
{
	const struct demo_resource *e = d->kind->resources;

	while (e->uri && strcmp(e->uri, uri) != 0)
		e++;
	return e->uri ? e : NULL;
}

/* The value that makes uri of the template; NULL: it does not. */
static const char *
template_value(const struct demo *d, const char *uri)
{
	size_t n = strlen(d->kind->template->prefix);
	const char *value = uri + n;

	if (strncmp(uri, d->kind->template->prefix, n) != 0)
		return NULL;
	return *value && strlen(value) <= 200 && !strpbrk(value, "/?# ") ? value : NULL;
}

bool
demo_has_resource(const struct demo *d, const char *uri)
{
	return resource_find(d, uri) || template_value(d, uri);
}

static void
on_resources_read(struct demo *d, const struct demo_req *r)
{
	const char *uri = json_string_value(json_object_get(r->params, "uri"));
	const struct demo_resource *e = uri ? resource_find(d, uri) : NULL;
	const char *value = uri && !e ? template_value(d, uri) : NULL;
	const struct demo_form *t = d->kind->template;
	char count[32];
	json_t *text;

	if (!uri) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "uri is not a string");
		return;
	}
	if (!e && !value) {
		demo_error_take(d, r, d->kind->not_found, json_pack("{s:s}", "uri", uri),
		    "Resource not found");
		return;
	}
	snprintf(count, sizeof count, "%lld", (long long)d->counter);
	if (value)
		text = json_pack("s++", t->before, value, t->after);
	else
		text = json_string(e->text ? e->text : count);
	demo_reply_take(d, r, DEMO_CACHE_LIVE,
	    json_pack("{s:[{s:s,s:s,s:o}]}", "contents", "uri", uri, "mimeType",
		"text/plain", "text", text));
}

static const struct demo_form *
form_of_ref(const struct demo *d, json_t *ref)
{
	const char *type = json_string_value(json_object_get(ref, "type"));
	const struct demo_form *f;
	const char *name;

	if (!type)
		return NULL;
	if (strcmp(type, "ref/prompt") == 0) {
		f = d->kind->prompt;
		name = json_string_value(json_object_get(ref, "name"));
	} else if (strcmp(type, "ref/resource") == 0) {
		f = d->kind->template;
		name = json_string_value(json_object_get(ref, "uri"));
	} else {
		return NULL;
	}
	return name && strcmp(name, f->name) == 0 ? f : NULL;
}

static void
on_complete(struct demo *d, const struct demo_req *r)
{
	const struct demo_form *f = form_of_ref(d, json_object_get(r->params, "ref"));
	json_t *argument = json_object_get(r->params, "argument");
	const char *name = json_string_value(json_object_get(argument, "name"));
	const char *value = json_string_value(json_object_get(argument, "value"));
	json_t *values;

	if (!f || !name || !value || strcmp(name, f->variable) != 0) {
		demo_error_take(d, r, DEMO_RPC_PARAMS, NULL, "%s",
		    f ? "argument: not one of this reference"
		      : "ref: no such prompt or template");
		return;
	}
	values = json_array();
	for (const char *const *v = f->values; *v; v++) {
		if (strncmp(*v, value, strlen(value)) == 0)
			json_array_append_new(values, json_string(*v));
	}
	demo_reply_take(d, r, DEMO_CACHE_NONE,
	    json_pack("{s:{s:O,s:I,s:b}}", "completion", "values", values, "total",
		(json_int_t)json_array_size(values), "hasMore", 0));
	json_decref(values);
}

const struct demo_method demo_features[] = {
    {"tools/list", on_tools_list},
    {"tools/call", on_tools_call},
    {"prompts/list", on_prompts_list},
    {"prompts/get", on_prompts_get},
    {"resources/list", on_resources_list},
    {"resources/templates/list", on_templates_list},
    {"resources/read", on_resources_read},
    {"completion/complete", on_complete},
    {NULL, NULL},
};

void
demo_tool_slow(struct demo *d, const struct demo_req *r, json_t *args)
{
	int64_t ms = 1000, steps = 5;

	if (!demo_arg_int(d, r, args, "ms", 3600000, &ms) ||
	    !demo_arg_int(d, r, args, "steps", 10000, &steps))
		return;
	demo_slow_start(d, r, ms, steps > 0 ? steps : 1);
}

void
demo_tool_fail(struct demo *d, const struct demo_req *r, json_t *args)
{
	(void)args;
	demo_reply_text(
	    d, r, "This tool always fails; calling it again will not help.", true);
}

void
demo_tool_bump(struct demo *d, const struct demo_req *r, json_t *args)
{
	char text[64];

	(void)args;
	d->counter++;
	d->kind->on_bump(d);
	snprintf(text, sizeof text, "the counter is %lld", (long long)d->counter);
	demo_reply_text(d, r, text, false);
}
