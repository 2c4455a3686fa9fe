/* SPDX-License-Identifier: MIT */
/*
 * The annotations x-mcp-header of a tool's inputSchema, found and checked, with the
 * values at their places in the arguments.
 *
 * Owns: nothing beyond a call.
 * Driven by: whoever checks, sends or filters what has such headers.
 * Invariants: an annotation is found wherever it is in the schema, also behind escapes.
 * Spec: 2026-07-28 basic/transports/streamable-http, Custom Headers.
 */
#include "mcpvisor/param_headers.h"

#include <string.h>

#define ANNOTATION   "x-mcp-header"
#define PARAM_PREFIX "Mcp-Param-"

#define ANNOTATIONS_BYTES (16u * 1024)
/* How deep in the schema an annotation may be; deeper ones are refused. */
#define SCHEMA_DEPTH 64
/* What the members of an object in a schema are. */
enum schema_kind {
	SCHEMA_ITSELF, /* keywords */
	SCHEMA_NAMED   /* names of schemas */
};

/* One step of the chain of properties. */
struct schema_step {
	const struct schema_step *up;
	struct jtext key;
};

/* A place in the schema. */
struct schema_at {
	enum schema_kind kind;
	bool reachable; /* by properties alone */
	unsigned depth;
	const struct schema_step *path; /* NULL: the root */
};

static const char *schema_walk(
    struct param_headers *m, struct jtext t, struct schema_at at);

/* False if there is no annotation in t for certain. */
static bool
schema_may_annotate(struct jtext t)
{
	return memmem(t.p, t.n, ANNOTATION, sizeof(ANNOTATION) - 1) != NULL ||
	       memmem(t.p, t.n, "\\u", 2) != NULL;
}

/* The first member of that key, and whether there are more. */
static struct jtext
member_at(struct jtext object, struct jtext wanted, bool *doubled)
{
	struct jtext found = {NULL, 0}, key, value;
	struct json_iter it;

	if (jtext_type(object) != '{')
		return found;
	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &value)) {
		if (!json_id_is_same(key, wanted))
			continue;
		if (found.n != 0)
			*doubled = true;
		else
			found = value;
	}
	return found;
}

static struct jtext
argument_at(struct jtext params, const struct schema_step *path, bool *doubled)
{
	static const struct jtext arguments = {
	    "\"arguments\"", sizeof("\"arguments\"") - 1};

	if (path == NULL)
		return member_at(params, arguments, doubled);
	return member_at(argument_at(params, path->up, doubled), path->key, doubled);
}

static bool
name_is_token(const char *p, size_t n)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (!(c >= '0' && c <= '9') &&
		    !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') &&
		    (c == '\0' || strchr(others, c) == NULL))
			return false;
	}
	return true;
}

static const char *
headers_add(struct param_headers *m, struct jtext name, const struct schema_step *path)
{
	struct param_header *one = &m->of[m->n];
	size_t start;

	if (jtext_type(name) != '"' || name.n == 2)
		return ANNOTATION " must be a string that is not empty";
	if (m->n == PARAM_HEADERS_MAX)
		return "more than 100 parameters have " ANNOTATION;
	one->name = m->names.len;
	buf_add_str(&m->names, PARAM_PREFIX);
	start = m->names.len;
	(void)json_string_decode(name, &m->names);
	buf_add_char(&m->names, '\0');
	if (m->names.err != MV_OK)
		return "the names in " ANNOTATION " are too long";
	if (!name_is_token(m->names.data + start, m->names.len - start - 1))
		return ANNOTATION " must be a token: letters, digits and !#$%&'*+-.^_`|~";
	for (unsigned i = 0; i < m->n; i++) {
		if (strcasecmp(
			m->names.data + m->of[i].name, m->names.data + one->name) == 0)
			return "two parameters have the same " ANNOTATION;
	}
	one->doubled = false;
	one->value = argument_at(m->params, path, &one->doubled);
	m->n++;
	return NULL;
}

static const char *
annotation_take(struct param_headers *m, struct jtext schema, struct jtext name,
    const struct schema_at *at)
{
	struct jtext type = json_member(schema, "type");

	if (!at->reachable || at->path == NULL)
		return ANNOTATION " is only allowed on parameters that are reached by "
				  "properties alone";
	if (!json_string_is(type, "string") && !json_string_is(type, "integer") &&
	    !json_string_is(type, "boolean"))
		return ANNOTATION
		    " is only allowed on parameters of type string, integer "
		    "or boolean";
	return headers_add(m, name, at->path);
}

/* Where a keyword's value leads. False: it holds data, no schema. */
static bool
keyword_leads(struct jtext key, const struct schema_at *from, struct schema_at *to)
{
	static const char *const data[] = {"const", "default", "enum", "examples"};
	static const char *const named[] = {"$defs", "definitions", "dependencies",
	    "dependentSchemas", "patternProperties"};

	*to = (struct schema_at){SCHEMA_ITSELF, false, from->depth + 1, from->path};
	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		if (json_string_is(key, data[i]))
			return false;
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (json_string_is(key, named[i]))
			to->kind = SCHEMA_NAMED;
	}
	if (json_string_is(key, "properties")) {
		to->kind = SCHEMA_NAMED;
		to->reachable = from->reachable;
	}
	return true;
}

static const char *
schema_walk_member(struct param_headers *m, struct jtext schema, struct jtext key,
    struct jtext value, const struct schema_at *at)
{
	struct schema_step step = {at->path, key};
	struct schema_at next = {SCHEMA_ITSELF, at->reachable, at->depth + 1, &step};

	if (at->kind == SCHEMA_ITSELF) {
		if (json_string_is(key, ANNOTATION))
			return annotation_take(m, schema, value, at);
		if (!keyword_leads(key, at, &next))
			return NULL;
	}
	return schema_walk(m, value, next);
}

/* t is a schema, an object of named schemas, an array of either, or anything else. */
static const char *
schema_walk(struct param_headers *m, struct jtext t, struct schema_at at)
{
	char type = jtext_type(t);
	const char *wrong = NULL;
	struct jtext key, value;
	struct json_iter it;

	if ((type != '{' && type != '[') || !schema_may_annotate(t))
		return NULL;
	if (at.depth > SCHEMA_DEPTH)
		return "the schema is nested too deep for " ANNOTATION;
	json_iter_init(&it, t);
	if (type == '{') {
		while (wrong == NULL && json_next_member(&it, &key, &value))
			wrong = schema_walk_member(m, t, key, value, &at);
	} else {
		at.depth++;
		at.reachable = false;
		while (wrong == NULL && json_next_element(&it, &value))
			wrong = schema_walk(m, value, at);
	}
	return wrong;
}

const char *
param_headers_find(struct param_headers *m, struct jtext definition, struct jtext params)
{
	struct schema_at root = {SCHEMA_ITSELF, true, 0, NULL};

	m->n = 0;
	m->params = params;
	buf_init(&m->names, ANNOTATIONS_BYTES);
	if (definition.n == 0 || !schema_may_annotate(definition))
		return NULL;
	return schema_walk(m, json_member(definition, "inputSchema"), root);
}

void
param_headers_fini(struct param_headers *m)
{
	buf_fini(&m->names);
}

const char *
param_headers_check(struct jtext definition, bool *any)
{
	struct param_headers m;
	const char *wrong = param_headers_find(&m, definition, (struct jtext){NULL, 0});

	if (any != NULL)
		*any = wrong != NULL || m.n > 0;
	param_headers_fini(&m);
	return wrong;
}
