/* SPDX-License-Identifier: MIT */
/*
 * Looking things up in a schema, and the query that asks an endpoint for it.
 *
 * Owns: nothing.
 * Driven by: who makes tools of operations and of fields.
 * Invariants: what is found is borrowed from the schema.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"

#include <stdlib.h>
#include <string.h>

static int
type_name_order(const void *key, const void *item)
{
	const struct graphql_type *ty = item;

	return strcmp(key, ty->name);
}

const struct graphql_type *
graphql_type_find(const struct graphql_schema *s, const char *name)
{
	if (s == NULL || name == NULL || s->n_types == 0)
		return NULL;
	return bsearch(name, s->types, s->n_types, sizeof(*s->types), type_name_order);
}

const struct graphql_type *
graphql_root(const struct graphql_schema *s, enum graphql_op op)
{
	return s != NULL ? graphql_type_find(s, s->roots[op]) : NULL;
}

const struct graphql_field *
graphql_root_field(const struct graphql_schema *s, enum graphql_op op, const char *field)
{
	const struct graphql_type *ty = graphql_root(s, op);

	for (size_t i = 0; ty != NULL && i < ty->n_fields; i++) {
		if (strcmp(ty->fields[i].name, field) == 0)
			return &ty->fields[i];
	}
	return NULL;
}

const char *
graphql_field_description(
    const struct graphql_schema *s, enum graphql_op op, const char *field)
{
	const struct graphql_field *f = graphql_root_field(s, op, field);

	return f != NULL ? f->description : NULL;
}

void
graphql_each_field(const struct graphql_schema *s, enum graphql_op op,
    void (*fn)(void *arg, const char *type, const char *field), void *arg)
{
	static const char *const words[] = {[GRAPHQL_QUERY] = "Query",
	    [GRAPHQL_MUTATION] = "Mutation",
	    [GRAPHQL_SUBSCRIPTION] = "Subscription"};
	const struct graphql_type *ty = graphql_root(s, op);

	for (size_t i = 0; ty != NULL && i < ty->n_fields; i++)
		fn(arg, words[op], ty->fields[i].name);
}

const struct graphql_type *
graphql_type_named(const struct graphql_schema *s, const char *type)
{
	const struct graphql_type *ty = NULL;
	struct buf name;

	if (type == NULL)
		return NULL;
	type += strspn(type, "[");
	buf_init(&name, GRAPHQL_SCHEMA_MAX);
	buf_add(&name, type, strcspn(type, "!]"));
	ty = graphql_type_find(s, buf_cstr(&name));
	buf_fini(&name);
	return ty;
}

bool
graphql_type_is_required(const char *type)
{
	size_t n = strlen(type);

	return n > 0 && type[n - 1] == '!';
}

void
graphql_put_introspection(struct buf *out, enum graphql_introspection how)
{
	bool is_full = how == GRAPHQL_INTROSPECT_FULL;
	unsigned levels = how == GRAPHQL_INTROSPECT_SHALLOW ? 4 : 7;

	buf_add_str(out,
	    "query IntrospectionQuery{__schema{queryType{name}mutationType{name}"
	    "subscriptionType{name}types{kind name ");
	buf_add_str(out, is_full ? "specifiedByURL isOneOf " : "");
	buf_addf(out,
	    "fields(includeDeprecated:true){name description isDeprecated "
	    "args%s{...Input}type{...Ref}}inputFields%s{...Input}"
	    "enumValues(includeDeprecated:true){name isDeprecated}"
	    "possibleTypes{kind name}}}}"
	    "fragment Input on __InputValue{name description defaultValue type{...Ref}}"
	    "fragment Ref on __Type{kind name",
	    is_full ? "(includeDeprecated:true)" : "",
	    is_full ? "(includeDeprecated:true)" : "");
	for (unsigned i = 0; i < levels; i++)
		buf_add_str(out, " ofType{kind name");
	for (unsigned i = 0; i <= levels; i++)
		buf_add_char(out, '}');
}
