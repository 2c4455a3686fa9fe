/* SPDX-License-Identifier: MIT */
/*
 * Variables of an operation as arguments of a tool.
 *
 * Owns: the arguments until they are complete.
 * Driven by: whoever makes tools, when operations or types are others.
 * Invariants: input objects are told at most NESTING_MAX deep and MEMBERS_MAX members in
 * all; where that is not enough, all of them are told less deep, so that what comes
 * first does not hide what comes after. A type within itself is an open object.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define NESTING_MAX	5
#define MEMBERS_MAX	1000
#define ENUM_SHOWN_MAX	200  /* values; of more the description has the names */
#define ENUM_NAMES_MAX	4096 /* bytes of those */
#define DESCRIPTION_MAX (64u * 1024)

struct arguments {
	const struct graphql_types *types;
	struct mv_errtext *t;
	const char *var; /* that is being told */
	unsigned nesting_max;
	size_t n_members;
	bool has_failed;
	/* Input types around what is being told. */
	const struct graphql_type *path[NESTING_MAX];
	unsigned n_path;
};

/* A scalar that is known by its name. */
struct scalar_row {
	const char *name, *format;
	enum arg_type type;
	bool takes_integer;
	bool is_builtin; /* of the language; the others are guesses */
};

static const struct scalar_row scalar_rows[] = {
    {"Int", NULL, ARG_INTEGER, false, true},
    {"Float", NULL, ARG_NUMBER, false, true},
    {"String", NULL, ARG_STRING, false, true},
    {"Boolean", NULL, ARG_BOOLEAN, false, true},
    {"ID", NULL, ARG_STRING, true, true},
    {"DateTime", "date-time", ARG_STRING, false, false},
    {"Date", "date", ARG_STRING, false, false},
    {"Time", "time", ARG_STRING, false, false},
    {"UUID", "uuid", ARG_STRING, false, false},
    {"URI", "uri", ARG_STRING, false, false},
    {"URL", "uri", ARG_STRING, false, false},
    {"Email", "email", ARG_STRING, false, false},
    {"BigInt", NULL, ARG_STRING, true, false},
    {"Long", NULL, ARG_STRING, true, false},
    {"Decimal", NULL, ARG_STRING, true, false},
    {"JSON", NULL, ARG_ANY, false, false},
    {"JSONObject", NULL, ARG_ANY, false, false},
    {"Any", NULL, ARG_ANY, false, false},
};
#define N_SCALARS (sizeof(scalar_rows) / sizeof(scalar_rows[0]))

static struct argspec *arguments_spec(
    struct arguments *a, const char *type, const char *name);

/* Adds a line to what s says of itself. */
static void
spec_note(struct argspec *s, const char *text)
{
	struct buf b;
	char *joined;

	buf_init(&b, DESCRIPTION_MAX);
	if (s->description != NULL)
		buf_addf(&b, "%s\n", s->description);
	buf_add_str(&b, text);
	joined = buf_take(&b, NULL);
	buf_fini(&b);
	if (joined == NULL)
		return;
	mem_free(s->description);
	s->description = joined;
}

static struct argspec *
arguments_fail(struct arguments *a, const char *what)
{
	a->has_failed = true;
	mv_errtext_set(a->t, "variable $%.80s: %s", a->var, what);
	return NULL;
}

static struct argspec *
spec_named(const char *name, enum arg_type type, const char *note, const char *core)
{
	struct argspec *s = argspec_new(type, name);
	struct buf b;

	buf_init(&b, DESCRIPTION_MAX);
	buf_addf(&b, "%s %s", note, core);
	if (buf_cstr(&b) != NULL)
		spec_note(s, b.data);
	buf_fini(&b);
	return s;
}

/* ---- scalars ---- */

static struct argspec *
spec_scalar_row(const struct scalar_row *row, const char *name)
{
	struct argspec *s = argspec_new(row->type, name);

	s->takes_integer = row->takes_integer;
	if (row->format != NULL)
		s->format = mem_xstrdup(row->format);
	if (row->type == ARG_INTEGER) {
		s->min_text = mem_xstrdup("-2147483648");
		s->max_text = mem_xstrdup("2147483647");
		s->min = INT32_MIN;
		s->max = INT32_MAX;
	}
	return s;
}

/* As the conf says; it wins over what we know. */
static struct argspec *
spec_mapped(struct arguments *a, struct jtext schema, const char *core, const char *name)
{
	struct mv_errtext why = {.line = 0};
	struct argspec *s = argspec_read(schema, &why);

	if (s == NULL) {
		char text[400];

		(void)snprintf(
		    text, sizeof(text), "scalar %.60s: %.300s", core, why.message);
		return arguments_fail(a, text);
	}
	mem_free(s->name);
	s->name = name != NULL ? mem_xstrdup(name) : NULL;
	return s;
}

static const struct scalar_row *
scalar_find(const char *core)
{
	for (size_t i = 0; i < N_SCALARS; i++) {
		if (strcmp(scalar_rows[i].name, core) == 0)
			return &scalar_rows[i];
	}
	return NULL;
}

/* ---- enums ---- */

static void
spec_note_values(struct argspec *s)
{
	struct buf b;

	buf_init(&b, DESCRIPTION_MAX);
	buf_add_str(&b, "One of: ");
	for (size_t i = 0; i < s->n_shown; i++) {
		if (b.len > ENUM_NAMES_MAX) {
			buf_addf(&b, " and %zu more", s->n_shown - i);
			break;
		}
		buf_addf(&b, "%s%s", i > 0 ? ", " : "", s->values[i]);
	}
	if (buf_cstr(&b) != NULL)
		spec_note(s, b.data);
	buf_fini(&b);
	s->n_shown = 0;
}

static struct argspec *
spec_enum(const struct graphql_type *ty, const char *name)
{
	struct argspec *s = argspec_new(ARG_STRING, name);
	size_t n_shown = 0;

	for (int deprecated = 0; deprecated <= 1; deprecated++) {
		for (size_t i = 0; i < ty->n_values; i++) {
			if (ty->values[i].is_deprecated == (deprecated == 1)) {
				argspec_add_value(s, ty->values[i].name);
				n_shown += deprecated == 0;
			}
		}
	}
	s->n_shown = n_shown;
	if (s->n_shown > ENUM_SHOWN_MAX)
		spec_note_values(s);
	return s;
}

/* ---- input objects ---- */

static void
spec_default(struct argspec *s, const char *json)
{
	/* null is what it is without one, to a client. */
	if (json != NULL && strcmp(json, "null") != 0)
		s->dflt = mem_xstrdup(json);
}

/* What is there says more than the type does. */
static void
spec_describe(struct argspec *s, const char *description)
{
	char *note = s->description;

	if (description == NULL)
		return;
	s->description = NULL;
	spec_note(s, description);
	if (note != NULL)
		spec_note(s, note);
	mem_free(note);
}

static bool
arguments_is_inside(const struct arguments *a, const struct graphql_type *ty)
{
	for (unsigned i = 0; i < a->n_path; i++) {
		if (a->path[i] == ty)
			return true;
	}
	return false;
}

static bool
spec_add_input(struct arguments *a, struct argspec *object, const struct graphql_type *ty,
    const struct graphql_field *f)
{
	struct argspec *s;
	struct buf json;

	a->n_members++;
	s = f->type != NULL ? arguments_spec(a, f->type, f->name)
			    : argspec_new(ARG_ANY, f->name);
	if (s == NULL)
		return false;
	spec_describe(s, f->description);
	s->is_required = !ty->is_one_of && f->type != NULL &&
			 graphql_type_is_required(f->type) && f->dflt == NULL;
	if (ty->is_one_of)
		s->is_nullable = false;
	buf_init(&json, GRAPHQL_FILE_MAX);
	if (graphql_put_constant(f->dflt, &json, NULL))
		spec_default(s, buf_cstr(&json));
	buf_fini(&json);
	argspec_add_member(object, s);
	return true;
}

static struct argspec *
spec_input(struct arguments *a, const struct graphql_type *ty, const char *name)
{
	struct argspec *s;
	bool is_sound = true;

	if (a->n_path >= a->nesting_max || arguments_is_inside(a, ty)) {
		s = spec_named(name, ARG_OBJECT, "GraphQL input type", ty->name);
		s->is_open = true;
		return s;
	}
	s = argspec_new(ARG_OBJECT, name);
	a->path[a->n_path++] = ty;
	for (size_t i = 0; i < ty->n_fields && is_sound; i++) {
		/* Then it is told anew, less deep. */
		if (a->n_members > MEMBERS_MAX && a->nesting_max > 1)
			break;
		is_sound = spec_add_input(a, s, ty, &ty->fields[i]);
	}
	a->n_path--;
	if (!is_sound) {
		argspec_free(s);
		return NULL;
	}
	if (ty->is_one_of) {
		s->min_members = s->max_members = 1;
		spec_note(s, "Exactly one member has to be given.");
	}
	return s;
}

/* ---- types ---- */

static struct argspec *
spec_core(struct arguments *a, const char *core, const char *name)
{
	const struct graphql_schema *schema = a->types->schema;
	const struct graphql_type *ty = graphql_type_find(schema, core);
	const struct scalar_row *row = scalar_find(core);
	struct jtext mapped = json_member(a->types->scalars, core);
	char text[160];

	if (mapped.n > 0 && (ty == NULL || ty->kind == GRAPHQL_SCALAR))
		return spec_mapped(a, mapped, core, name);
	if (strcmp(core, "Upload") == 0)
		return arguments_fail(a, "files cannot be uploaded (Upload)");
	if (row != NULL && row->is_builtin)
		return spec_scalar_row(row, name);
	if (schema == NULL)
		return spec_named(name, ARG_ANY, "GraphQL type", core);
	if (ty != NULL && ty->kind == GRAPHQL_SCALAR)
		return row != NULL ? spec_scalar_row(row, name)
				   : spec_named(name, ARG_ANY, "GraphQL scalar", core);
	if (ty != NULL && ty->kind == GRAPHQL_ENUM)
		return spec_enum(ty, name);
	if (ty != NULL && ty->kind == GRAPHQL_INPUT)
		return spec_input(a, ty, name);
	(void)snprintf(text, sizeof(text), "%s %.80s",
	    ty != NULL ? "no type of variables is" : "the schema has no type", core);
	return arguments_fail(a, text);
}

/* type is a sound one, as the parser of documents or of the schema wrote it. */
static struct argspec *
arguments_spec(struct arguments *a, const char *type, const char *name)
{
	size_t n = strlen(type), origin_size = n + sizeof("GraphQL type ");
	bool is_required = graphql_type_is_required(type);
	char *inner;
	struct argspec *s, *items;

	inner = type[0] == '[' ? mem_xstrndup(type + 1, n - 2 - is_required)
			       : mem_xstrndup(type, n - is_required);
	if (type[0] == '[') {
		items = arguments_spec(a, inner, NULL);
		s = items != NULL ? argspec_new(ARG_ARRAY, name) : NULL;
		if (s != NULL)
			s->items = items;
	} else {
		s = spec_core(a, inner, name);
	}
	mem_free(inner);
	if (s == NULL)
		return NULL;
	s->is_nullable = !is_required;
	mem_free(s->origin);
	s->origin = mem_xalloc(origin_size);
	(void)snprintf(s->origin, origin_size, "GraphQL type %s", type);
	return s;
}

static struct argspec *
arguments_try(struct arguments *a, const struct graphql_operation *op)
{
	struct argspec *root = argspec_new(ARG_OBJECT, NULL), *s;

	for (size_t i = 0; i < op->n_vars && !a->has_failed; i++) {
		const struct graphql_var *v = &op->vars[i];

		a->var = v->name;
		s = arguments_spec(a, v->type, v->name);
		if (s == NULL)
			continue;
		spec_describe(s, v->description);
		s->is_required = graphql_type_is_required(v->type) && v->dflt == NULL;
		spec_default(s, v->dflt);
		argspec_add_member(root, s);
	}
	if (!a->has_failed)
		return root;
	argspec_free(root);
	return NULL;
}

struct argspec *
graphql_arguments(const struct graphql_types *types, const struct graphql_operation *op,
    struct mv_errtext *t)
{
	for (unsigned nesting = NESTING_MAX;; nesting--) {
		struct arguments a = {.types = types, .t = t, .nesting_max = nesting};
		struct argspec *s = arguments_try(&a, op);

		if (s == NULL || a.n_members <= MEMBERS_MAX || nesting == 1)
			return s;
		argspec_free(s);
	}
}
