/* SPDX-License-Identifier: MIT */
/*
 * What the definition of a tool proves of its results.
 *
 * Owns: nothing. Driven by: label_scan, label_edit.
 * Invariants: what cannot be decided here counts against a change; no schema is applied
 * to anything.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include <string.h>

static bool
is_one_of(struct jtext t, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (json_string_is(t, *words))
			return true;
	}
	return false;
}

/* ---- what it answers ---- */

/* A tool with such an argument hands through what is elsewhere. Lower case, and without
 * '_' and '-'. */
static const char *const foreign[] = {"path", "paths", "file", "files", "filename",
    "filenames", "filepath", "filepaths", "uri", "uris", "url", "urls", "command", "cmd",
    "commandline", "script", "code", "sql", NULL};

static bool
is_foreign(struct jtext name)
{
	char text[16];
	size_t n = 0;
	struct buf b;
	bool is = false;

	buf_init(&b, name.n);
	if (!json_string_decode(name, &b) || b.err != MV_OK)
		goto out;
	for (size_t i = 0; i < b.len; i++) {
		char c = b.data[i];

		if (c == '_' || c == '-')
			continue;
		if (n == sizeof(text) - 1)
			goto out;
		text[n++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	text[n] = '\0';
	for (const char *const *word = foreign; *word != NULL && !is; word++)
		is = strlen(*word) == n && memcmp(*word, text, n) == 0;
out:
	buf_fini(&b);
	return is;
}

static bool
takes_document(struct jtext properties)
{
	static const char *const documents[] = {
	    "query", "mutation", "document", "operation", NULL};
	struct jtext key, value;
	struct json_iter it;

	if (jtext_type(properties) != '{' || json_member(properties, "variables").n == 0)
		return false;
	json_iter_init(&it, properties);
	while (json_next_member(&it, &key, &value)) {
		if (is_one_of(key, documents) &&
		    json_string_is(json_member(value, "type"), "string"))
			return true;
	}
	return false;
}

static bool
has_foreign(struct jtext properties)
{
	struct jtext key, value;
	struct json_iter it;

	if (jtext_type(properties) != '{')
		return false;
	json_iter_init(&it, properties);
	while (json_next_member(&it, &key, &value)) {
		if (is_foreign(key))
			return true;
	}
	return false;
}

void
label_tool_read(struct label_tool *t, struct jtext definition)
{
	struct jtext in =
	    json_member(json_member(definition, "inputSchema"), "properties");
	struct jtext out =
	    json_member(json_member(definition, "outputSchema"), "properties");

	t->is_read = true;
	t->is_evident =
	    (json_member(out, "data").n > 0 && json_member(out, "errors").n > 0) ||
	    takes_document(in);
	t->is_vetoed = !t->is_evident && (definition.n == 0 || has_foreign(in));
}

/* ---- what it lets be added ---- */

/* What is not looked into: with any of these nothing is known. */
static const char *const undecided[] = {"$ref", "$dynamicRef", "$recursiveRef", "allOf",
    "anyOf", "oneOf", "not", "if", "const", "enum", "dependentSchemas",
    "dependentRequired", "dependencies", "patternProperties", NULL};
static const char *const of_objects[] = {"propertyNames", "maxProperties", NULL};
static const char *const of_strings[] = {"maxLength", "pattern", "format", NULL};
/* What a schema may say of our member. */
static const char *const of_warning[] = {"type", "title", "description", NULL};

bool
label_member_once(struct jtext object, const char *name, struct jtext *value)
{
	struct jtext key, v;
	struct json_iter it;

	*value = (struct jtext){NULL, 0};
	if (jtext_type(object) != '{')
		return true;
	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &v)) {
		if (!json_string_is(key, name))
			continue;
		if (value->n > 0)
			return false;
		*value = v;
	}
	return true;
}

/* Absent, true or {}. */
static bool
is_any(struct jtext schema)
{
	struct jtext key, value;
	struct json_iter it;

	if (schema.n == 0 || json_is_true(schema))
		return true;
	if (jtext_type(schema) != '{')
		return false;
	json_iter_init(&it, schema);
	return !json_next_member(&it, &key, &value);
}

/* Whether it is a schema of values of a type that can be decided, with none of words. */
static bool
is_plain(struct jtext schema, const char *type, const char *const *words)
{
	struct jtext key, value;
	struct json_iter it;

	if (jtext_type(schema) != '{')
		return false;
	json_iter_init(&it, schema);
	while (json_next_member(&it, &key, &value)) {
		if (is_one_of(key, undecided) || is_one_of(key, words) ||
		    (json_string_is(key, "type") && !json_string_is(value, type)))
			return false;
	}
	return true;
}

static bool
allows_more(struct jtext schema)
{
	static const char *const more[] = {
	    "additionalProperties", "unevaluatedProperties", NULL};
	struct jtext key, value;
	struct json_iter it;

	json_iter_init(&it, schema);
	while (json_next_member(&it, &key, &value)) {
		if (is_one_of(key, more) && !is_any(value))
			return false;
	}
	return true;
}

/* Whether the schema of our member, if there is one, takes a string. */
static bool
allows_warning(struct jtext schema)
{
	struct jtext properties, warning, key, value;
	struct json_iter it;

	if (!label_member_once(schema, "properties", &properties) ||
	    !label_member_once(properties, "_warning", &warning))
		return false;
	if (is_any(warning))
		return true;
	if (!is_plain(warning, "string", of_strings))
		return false;
	json_iter_init(&it, warning);
	while (json_next_member(&it, &key, &value)) {
		if (!is_one_of(key, of_warning))
			return false;
	}
	return true;
}

bool
label_is_open(struct jtext definition, const char *pointer, bool is_string)
{
	static const char *const none[] = {NULL};
	char step[LABEL_STEP_BYTES];
	struct jtext schema, properties, inner;

	if (definition.n == 0 || !label_member_once(definition, "outputSchema", &schema))
		return false;
	while (pointer != NULL && *pointer != '\0' && !is_any(schema)) {
		pointer = label_pointer_step(pointer, step);
		if (pointer == NULL || !is_plain(schema, "object", none) ||
		    !label_member_once(schema, "properties", &properties) ||
		    !label_member_once(properties, step, &inner))
			return false;
		if (inner.n == 0)
			return allows_more(schema);
		schema = inner;
	}
	if (is_any(schema))
		return true;
	if (is_string)
		return is_plain(schema, "string", of_strings);
	return is_plain(schema, "object", of_objects) && allows_more(schema) &&
	       allows_warning(schema);
}
