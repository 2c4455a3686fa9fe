/* SPDX-License-Identifier: MIT */
/*
 * The types of an endpoint, out of its answer to introspection.
 *
 * Owns: what is kept: names, kinds, fields without their arguments but for roots.
 * Driven by: whoever fetched the answer.
 * Invariants: every name is one of GraphQL's, so that it can be written into a document;
 * what has another one is left out. types are sorted by name. The text is read in place
 * and each object once: an answer can be long, and a tree of it takes a hundred times as
 * much memory.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

#define WRAPPERS_MAX 32 /* lists and non-nulls around a name */

static const char *const kind_words[] = {[GRAPHQL_SCALAR] = "SCALAR",
    [GRAPHQL_ENUM] = "ENUM",
    [GRAPHQL_INPUT] = "INPUT_OBJECT",
    [GRAPHQL_OBJECT] = "OBJECT",
    [GRAPHQL_INTERFACE] = "INTERFACE",
    [GRAPHQL_UNION] = "UNION"};
#define N_KINDS (sizeof(kind_words) / sizeof(kind_words[0]))

static const char *const root_words[] = {[GRAPHQL_QUERY] = "queryType",
    [GRAPHQL_MUTATION] = "mutationType",
    [GRAPHQL_SUBSCRIPTION] = "subscriptionType"};
#define N_ROOTS (sizeof(root_words) / sizeof(root_words[0]))

/* ---- the end ---- */

static void
fields_free(struct graphql_field *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct graphql_field *f = &v[i];

		for (size_t j = 0; j < f->n_args; j++) {
			mem_free(f->args[j].name);
			mem_free(f->args[j].type);
			mem_free(f->args[j].description);
			mem_free(f->args[j].dflt);
		}
		mem_free(f->args);
		mem_free(f->name);
		mem_free(f->type);
		mem_free(f->description);
		mem_free(f->dflt);
	}
	mem_free(v);
}

static void
type_fini(struct graphql_type *ty)
{
	fields_free(ty->fields, ty->n_fields);
	for (size_t i = 0; i < ty->n_values; i++)
		mem_free(ty->values[i].name);
	mem_free(ty->values);
	graphql_strings_free(ty->possible);
	mem_free(ty->name);
}

void
graphql_schema_free(struct graphql_schema *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n_types; i++)
		type_fini(&s->types[i]);
	mem_free(s->types);
	for (size_t i = 0; i < N_ROOTS; i++)
		mem_free(s->roots[i]);
	mem_free(s);
}

/* ---- reading ---- */

/* The members that we look at, of whatever has them. */
enum member {
	MEMBER_NAME,
	MEMBER_KIND,
	MEMBER_TYPE,
	MEMBER_OF_TYPE,
	MEMBER_DESCRIPTION,
	MEMBER_DEFAULT,
	MEMBER_DEPRECATED,
	MEMBER_ARGS,
	MEMBER_ONE_OF,
	MEMBER_FIELDS,
	MEMBER_INPUTS,
	MEMBER_VALUES,
	MEMBER_POSSIBLE,
	MEMBER_MAX
};

static const char *const member_keys[] = {[MEMBER_NAME] = "name",
    [MEMBER_KIND] = "kind",
    [MEMBER_TYPE] = "type",
    [MEMBER_OF_TYPE] = "ofType",
    [MEMBER_DESCRIPTION] = "description",
    [MEMBER_DEFAULT] = "defaultValue",
    [MEMBER_DEPRECATED] = "isDeprecated",
    [MEMBER_ARGS] = "args",
    [MEMBER_ONE_OF] = "isOneOf",
    [MEMBER_FIELDS] = "fields",
    [MEMBER_INPUTS] = "inputFields",
    [MEMBER_VALUES] = "enumValues",
    [MEMBER_POSSIBLE] = "possibleTypes"};

struct members {
	struct jtext of[MEMBER_MAX];
};

static void
members_read(struct members *m, struct jtext object)
{
	struct json_iter it;
	struct jtext key, value;

	*m = (struct members){.of = {{NULL, 0}}};
	if (jtext_type(object) != '{')
		return;
	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &value)) {
		unsigned i = 0;

		while (i < MEMBER_MAX && !json_string_is(key, member_keys[i]))
			i++;
		if (i < MEMBER_MAX && m->of[i].n == 0)
			m->of[i] = value;
	}
}

static void
list_init(struct json_iter *it, struct jtext list)
{
	const struct jtext none = {NULL, 0};

	json_iter_init(it, jtext_type(list) == '[' ? list : none);
}

/* NULL: it is none, or empty. */
static char *
read_string(struct jtext t)
{
	char *s = NULL;
	struct buf text;

	if (jtext_type(t) != '"' || t.n <= 2)
		return NULL;
	buf_init(&text, GRAPHQL_SCHEMA_MAX);
	if (json_string_decode(t, &text) && text.len > 0)
		s = buf_take(&text, NULL);
	buf_fini(&text);
	return s;
}

/* NULL: it has none that can be written. */
static char *
read_name(const struct members *m)
{
	char *name = read_string(m->of[MEMBER_NAME]);

	if (name == NULL || graphql_is_name(name))
		return name;
	mem_free(name);
	return NULL;
}

static char *
read_name_of(struct jtext object)
{
	struct members m;

	members_read(&m, object);
	return read_name(&m);
}

/* The next element that has a name, and what else it has; NULL: the list ends. */
static char *
read_next(struct json_iter *it, struct members *m)
{
	char *name = NULL;
	struct jtext of;

	while (name == NULL && json_next_element(it, &of)) {
		members_read(m, of);
		name = read_name(m);
	}
	return name;
}

/* A reference as it is written in a document; NULL: it does not end in a name, as the
 * query that asked for it was not deep enough. */
static char *
read_type(struct jtext ref)
{
	char tail[WRAPPERS_MAX], *type = NULL, *name;
	struct members m;
	unsigned n = 0;
	struct buf out;

	buf_init(&out, GRAPHQL_SCHEMA_MAX);
	members_read(&m, ref);
	for (; n < sizeof(tail); members_read(&m, m.of[MEMBER_OF_TYPE])) {
		if (json_string_is(m.of[MEMBER_KIND], "NON_NULL"))
			tail[n++] = '!';
		else if (json_string_is(m.of[MEMBER_KIND], "LIST"))
			tail[n++] = ']';
		else
			break;
		if (tail[n - 1] == ']')
			buf_add_char(&out, '[');
	}
	name = n < sizeof(tail) ? read_name(&m) : NULL;
	if (name != NULL) {
		buf_add_str(&out, name);
		while (n > 0)
			buf_add_char(&out, tail[--n]);
		type = buf_take(&out, NULL);
	}
	mem_free(name);
	buf_fini(&out);
	return type;
}

static bool
read_needs_args(struct jtext args)
{
	struct json_iter it;
	struct jtext arg;
	struct members m;

	list_init(&it, args);
	while (json_next_element(&it, &arg)) {
		members_read(&m, arg);
		if (jtext_type(m.of[MEMBER_DEFAULT]) == '"')
			continue;
		members_read(&m, m.of[MEMBER_TYPE]);
		if (json_string_is(m.of[MEMBER_KIND], "NON_NULL"))
			return true;
	}
	return false;
}

/* Of all three kinds; what only some have is absent in the others. Takes name. */
static void
read_field(const struct members *m, char *name, struct graphql_field *f)
{
	*f = (struct graphql_field){.name = name,
	    .type = read_type(m->of[MEMBER_TYPE]),
	    .is_deprecated = json_is_true(m->of[MEMBER_DEPRECATED])};
}

/* Arguments, or members of an input object. */
static struct graphql_field *
read_inputs(struct jtext list, size_t *n)
{
	struct graphql_field *v = NULL;
	struct json_iter it;
	struct members m;
	char *name;

	*n = 0;
	list_init(&it, list);
	while ((name = read_next(&it, &m)) != NULL) {
		v = graphql_grow(v, *n, sizeof(*v));
		read_field(&m, name, &v[*n]);
		v[*n].description = read_string(m.of[MEMBER_DESCRIPTION]);
		v[*n].dflt = read_string(m.of[MEMBER_DEFAULT]);
		++*n;
	}
	return v;
}

static void
read_fields(struct jtext list, bool is_root, struct graphql_type *ty)
{
	struct json_iter it;
	struct members m;
	char *name;

	list_init(&it, list);
	while ((name = read_next(&it, &m)) != NULL) {
		struct graphql_field *f;

		if (strncmp(name, "__", 2) == 0) {
			mem_free(name);
			continue;
		}
		ty->fields = graphql_grow(ty->fields, ty->n_fields, sizeof(*ty->fields));
		f = &ty->fields[ty->n_fields++];
		read_field(&m, name, f);
		f->needs_args = read_needs_args(m.of[MEMBER_ARGS]);
		if (!is_root)
			continue;
		f->description = read_string(m.of[MEMBER_DESCRIPTION]);
		f->args = read_inputs(m.of[MEMBER_ARGS], &f->n_args);
	}
}

static void
read_values(struct jtext list, struct graphql_type *ty)
{
	struct json_iter it;
	struct members m;
	char *name;

	list_init(&it, list);
	while ((name = read_next(&it, &m)) != NULL) {
		ty->values = graphql_grow(ty->values, ty->n_values, sizeof(*ty->values));
		ty->values[ty->n_values++] = (struct graphql_value){
		    .name = name, .is_deprecated = json_is_true(m.of[MEMBER_DEPRECATED])};
	}
}

static void
read_possible(struct jtext list, struct graphql_type *ty)
{
	struct json_iter it;
	struct members m;
	size_t n = 0;
	char *name;

	list_init(&it, list);
	while ((name = read_next(&it, &m)) != NULL) {
		ty->possible = graphql_grow(ty->possible, n, sizeof(*ty->possible));
		ty->possible[n++] = name;
	}
	ty->possible = graphql_grow(ty->possible, n, sizeof(*ty->possible));
	ty->possible[n] = NULL;
}

static bool
schema_is_root(const struct graphql_schema *s, const char *name)
{
	for (size_t i = 0; i < N_ROOTS; i++) {
		if (s->roots[i] != NULL && strcmp(s->roots[i], name) == 0)
			return true;
	}
	return false;
}

/* False: it is of a kind that is not known, or one of introspection's own. */
static bool
read_one(const struct graphql_schema *s, struct jtext of, struct graphql_type *ty)
{
	struct members m;
	unsigned kind = 0;
	char *name;

	members_read(&m, of);
	while (kind < N_KINDS && !json_string_is(m.of[MEMBER_KIND], kind_words[kind]))
		kind++;
	name = kind < N_KINDS ? read_name(&m) : NULL;
	if (name == NULL || strncmp(name, "__", 2) == 0) {
		mem_free(name);
		return false;
	}
	*ty = (struct graphql_type){.name = name,
	    .kind = (enum graphql_kind)kind,
	    .is_one_of = json_is_true(m.of[MEMBER_ONE_OF])};
	if (kind == GRAPHQL_ENUM)
		read_values(m.of[MEMBER_VALUES], ty);
	else if (kind == GRAPHQL_INPUT)
		ty->fields = read_inputs(m.of[MEMBER_INPUTS], &ty->n_fields);
	else if (kind == GRAPHQL_UNION)
		read_possible(m.of[MEMBER_POSSIBLE], ty);
	else
		read_fields(m.of[MEMBER_FIELDS], schema_is_root(s, name), ty);
	return true;
}

static int
type_order(const void *a, const void *b)
{
	const struct graphql_type *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct graphql_schema *
read_schema(struct jtext schema)
{
	struct graphql_schema *s = mem_xcalloc(1, sizeof(*s));
	struct graphql_type ty;
	struct json_iter it;
	struct jtext of;

	for (size_t i = 0; i < N_ROOTS; i++)
		s->roots[i] = read_name_of(json_member(schema, root_words[i]));
	list_init(&it, json_member(schema, "types"));
	while (json_next_element(&it, &of)) {
		if (!read_one(s, of, &ty))
			continue;
		s->types = graphql_grow(s->types, s->n_types, sizeof(*s->types));
		s->types[s->n_types++] = ty;
	}
	if (s->n_types > 0)
		qsort(s->types, s->n_types, sizeof(*s->types), type_order);
	return s;
}

struct jtext
graphql_json(const char *text, size_t n)
{
	struct jtext t = {text, n}, none = {NULL, 0};
	struct json_msg msg;

	if (t.n >= 3 && memcmp(t.p, "\xef\xbb\xbf", 3) == 0)
		t = (struct jtext){t.p + 3, t.n - 3};
	while (t.n > 0 && json_is_space(t.p[0]))
		t = (struct jtext){t.p + 1, t.n - 1};
	while (t.n > 0 && json_is_space(t.p[t.n - 1]))
		t.n--;
	if (t.n == 0 || json_scan(&msg, t.p, t.n, false) != MV_OK)
		return none;
	return t;
}

struct graphql_schema *
graphql_schema_read(const char *text, size_t n, struct mv_errtext *t)
{
	struct jtext whole, data, schema;
	struct graphql_schema *s;

	if (n > GRAPHQL_SCHEMA_MAX) {
		mv_errtext_set(t, "longer than %u bytes", GRAPHQL_SCHEMA_MAX);
		return NULL;
	}
	whole = graphql_json(text, n);
	if (whole.n == 0) {
		mv_errtext_set(t, "it is no JSON");
		return NULL;
	}
	data = json_member(whole, "data");
	schema = json_member(data.n != 0 ? data : whole, "__schema");
	s = jtext_type(json_member(schema, "types")) == '[' ? read_schema(schema) : NULL;
	if (s != NULL && s->roots[GRAPHQL_QUERY] != NULL)
		return s;
	graphql_schema_free(s);
	mv_errtext_set(t, "not an answer to introspection: it has no __schema");
	return NULL;
}
