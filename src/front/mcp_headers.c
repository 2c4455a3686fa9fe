/* SPDX-License-Identifier: MIT */
/*
 * The headers of 2026-07-28 that mirror the body, and the annotations of a tool's
 * inputSchema that add to them.
 *
 * Owns: nothing beyond a call. Driven by: the HTTP endpoint, once a request, and what
 * filters lists of tools for its clients.
 * Invariants: an annotation is found wherever it is in the schema, also behind escapes;
 * a header that is checked is there once or not at all; a value that cannot be mirrored
 * is refused, or it would pass whoever goes by the headers.
 * Spec: 2026-07-28 basic/transports/streamable-http, Request Metadata.
 */
#include "mcpvisor/mcp_headers.h"

#include "mcp_headers_priv.h"

#include <string.h>

#define ANNOTATION   "x-mcp-header"
#define PARAM_PREFIX "Mcp-Param-"

/* Of one tool: a request cannot have more headers. */
#define ANNOTATIONS_MAX	  HTTP_HEADERS_MAX
#define ANNOTATIONS_BYTES (16u * 1024)
/* How deep in the schema an annotation may be; deeper ones are refused. */
#define SCHEMA_DEPTH 64
/* Of a value, in a message. */
#define SHOWN_BYTES 100

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

/* The annotations found, with the values at their places in the arguments. */
struct mirrors {
	struct jtext params;
	struct buf names; /* "Mcp-Param-X\0" each */
	unsigned n;
	struct mirror {
		size_t name; /* offset */
		struct jtext value;
		bool doubled; /* a name on the way to it is there twice */
	} of[ANNOTATIONS_MAX];
};

/* A place in the schema. */
struct schema_at {
	enum schema_kind kind;
	bool reachable; /* by properties alone */
	unsigned depth;
	const struct schema_step *path; /* NULL: the root */
};

static const char *schema_walk(struct mirrors *m, struct jtext t, struct schema_at at);

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
mirrors_add(struct mirrors *m, struct jtext name, const struct schema_step *path)
{
	struct mirror *one = &m->of[m->n];
	size_t start;

	if (jtext_type(name) != '"' || name.n == 2)
		return ANNOTATION " must be a string that is not empty";
	if (m->n == ANNOTATIONS_MAX)
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
annotation_take(
    struct mirrors *m, struct jtext schema, struct jtext name, const struct schema_at *at)
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
	return mirrors_add(m, name, at->path);
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
schema_walk_member(struct mirrors *m, struct jtext schema, struct jtext key,
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
schema_walk(struct mirrors *m, struct jtext t, struct schema_at at)
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

/* What is wrong with the definition's annotations, or NULL. Ends with mirrors_fini. */
static const char *
mirrors_find(struct mirrors *m, struct jtext definition, struct jtext params)
{
	struct schema_at root = {SCHEMA_ITSELF, true, 0, NULL};

	m->n = 0;
	m->params = params;
	buf_init(&m->names, ANNOTATIONS_BYTES);
	if (definition.n == 0 || !schema_may_annotate(definition))
		return NULL;
	return schema_walk(m, json_member(definition, "inputSchema"), root);
}

static void
mirrors_fini(struct mirrors *m)
{
	buf_fini(&m->names);
}

const char *
mcp_headers_check_tool(struct jtext definition, bool *any)
{
	struct mirrors m;
	const char *wrong = mirrors_find(&m, definition, (struct jtext){NULL, 0});

	if (any != NULL)
		*any = wrong != NULL || m.n > 0;
	mirrors_fini(&m);
	return wrong;
}

/* A piece of what the peer sent, cut before a character that does not fit. */
static void
message_show(struct buf *out, const char *p, size_t n)
{
	size_t shown = n;

	if (n > SHOWN_BYTES) {
		shown = SHOWN_BYTES;
		while (shown > 0 && ((unsigned char)p[shown] & 0xc0) == 0x80)
			shown--;
	}
	buf_add_char(out, '\'');
	buf_add(out, p, shown);
	buf_add_str(out, shown < n ? "...'" : "'");
}

static void
message_show_json(struct buf *out, struct jtext value)
{
	struct buf text;

	buf_init(&text, value.n * 3);
	if (json_string_decode(value, &text))
		message_show(out, text.data != NULL ? text.data : "", text.len);
	else
		message_show(out, value.p, value.n);
	buf_fini(&text);
}

static const char *
message_end(struct buf *out)
{
	const char *text = buf_cstr(out);

	return text != NULL ? text : "Header mismatch";
}

static const char *
message_wrong(struct buf *out, const char *name, const char *what)
{
	buf_add_str(out, "Header mismatch: ");
	buf_add_str(out, name);
	buf_add_char(out, ' ');
	buf_add_str(out, what);
	return message_end(out);
}

static const char *
message_differs(
    struct buf *out, const char *name, struct http_text header, struct jtext body)
{
	buf_add_str(out, "Header mismatch: ");
	buf_add_str(out, name);
	buf_add_str(out, " header value ");
	message_show(out, header.p, header.n);
	buf_add_str(out, " does not match body value ");
	message_show_json(out, body);
	return message_end(out);
}

/* match decides; body is there and is to be mirrored. */
static const char *
header_check(const struct http_head *h, const char *name, struct jtext body,
    enum header_match (*match)(struct http_text, struct jtext), struct buf *out)
{
	bool doubled = false;
	struct http_text header = http_header(h, name, &doubled);
	enum header_match m;

	if (doubled)
		return message_wrong(out, name, "is there more than once");
	if (header.p == NULL)
		return message_wrong(out, name, "is missing; it has to mirror the body");
	m = match(header, body);
	if (m == HEADER_SAME)
		return NULL;
	if (m == HEADER_DIFFERS)
		return message_differs(out, name, header, body);
	return message_wrong(out, name, header_match_text(m));
}

static const char *
mirror_check(const struct http_head *h, const char *name, const struct mirror *one,
    struct buf *out)
{
	enum header_match possible;

	if (one->doubled)
		return message_wrong(
		    out, name, "mirrors an argument that is there more than once");
	if (one->value.n == 0 || jtext_type(one->value) == 'n') {
		if (http_header(h, name, NULL).p == NULL)
			return NULL;
		return message_wrong(
		    out, name, "is there, but the argument that it mirrors is not");
	}
	/* Before the header: its absence would not be the client's fault. */
	possible = header_match_possible(one->value);
	if (possible != HEADER_SAME)
		return message_wrong(out, name, header_match_text(possible));
	return header_check(h, name, one->value, header_match_value, out);
}

static const char *
mirrors_check(
    const struct http_head *h, const struct mcp_headers_body *b, struct buf *out)
{
	const char *wrong = NULL;
	struct mirrors m;

	/* Clients of HTTP were not shown a tool whose annotations are unusable. */
	if (mirrors_find(&m, b->definition, b->params) == NULL) {
		for (unsigned i = 0; i < m.n && wrong == NULL; i++)
			wrong =
			    mirror_check(h, m.names.data + m.of[i].name, &m.of[i], out);
	}
	mirrors_fini(&m);
	return wrong;
}

const char *
mcp_headers_check(
    const struct http_head *h, const struct mcp_headers_body *b, struct buf *out)
{
	const char *wrong;

	wrong =
	    header_check(h, "MCP-Protocol-Version", b->version, header_match_exact, out);
	if (wrong == NULL)
		wrong = header_check(h, "Mcp-Method", b->method, header_match_exact, out);
	if (wrong == NULL && b->name.n != 0)
		wrong = header_check(h, "Mcp-Name", b->name, header_match_value, out);
	if (wrong == NULL)
		wrong = mirrors_check(h, b, out);
	return wrong;
}
