/* SPDX-License-Identifier: MIT */
/*
 * GraphQL documents and schemas, as far as tools are made of them: operations of a file,
 * types by introspection, what arguments an operation takes. Nothing is validated that a
 * GraphQL server validates anyway.
 *
 * Spec: GraphQL September 2025, 2 Language, 4 Introspection.
 */
#ifndef MCPVISOR_GRAPHQL_H
#define MCPVISOR_GRAPHQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/argspec.h"
#include "mcpvisor/buf.h"
#include "mcpvisor/err.h"
#include "mcpvisor/json.h"

#define GRAPHQL_FILE_MAX   (1024u * 1024)      /* of one file of operations */
#define GRAPHQL_SCHEMA_MAX (32u * 1024 * 1024) /* of an answer to introspection */
#define GRAPHQL_DEPTH_MAX  64		       /* of selections, types, values */

enum graphql_op { GRAPHQL_QUERY, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION };
#define GRAPHQL_N_OPS 3
extern const char *const graphql_op_words[GRAPHQL_N_OPS]; /* "query" ... */

/* A variable of an operation. */
struct graphql_var {
	char *name;
	char *type;	   /* as written, without white space: "[ID!]!" */
	char *dflt;	   /* its default as JSON (enum values are strings); NULL: none */
	char *description; /* NULL: none */
};

/* A fragment that a definition spreads. */
struct graphql_spread {
	char *name;
	uint32_t above; /* fields around it, where they are most */
	uint32_t times;
};

struct graphql_operation {
	enum graphql_op op;
	char *name;	   /* NULL: it has none */
	char *description; /* its own, or of the lines with # right above; NULL: none */
	struct graphql_var *vars;
	size_t n_vars;
	char **fields; /* names of its root fields, as the schema has them;
			  NULL-terminated */
	struct graphql_spread *spreads; /* by name */
	size_t n_spreads;
	char *text;		    /* itself, without descriptions and comments */
	uint32_t depth, n_selected; /* of its selections, without fragments */
	int line;
};

struct graphql_fragment {
	char *name, *text;
	struct graphql_spread *spreads; /* by name */
	size_t n_spreads;
	uint32_t depth, n_selected;
};

struct graphql_document {
	struct graphql_operation *operations;
	size_t n_operations;
	struct graphql_fragment *fragments;
	size_t n_fragments;
};

/* Reads executable definitions. NULL: t has line and message; type definitions, NUL bytes
 * and what is longer than GRAPHQL_FILE_MAX are errors. */
struct graphql_document *graphql_document_read(
    const char *text, size_t n, struct mv_errtext *t);
/* The same of a manifest of persisted queries (Apollo's), JSON: all its bodies. A
 * fragment that several of them have in one form is there once. */
struct graphql_document *graphql_manifest_read(
    const char *text, size_t n, struct mv_errtext *t);
void graphql_document_free(struct graphql_document *d); /* NULL is allowed */
/* Appends what is sent: the operation and the fragments that it reaches in the documents,
 * each once, in their order. False: one is nowhere, or two have its name, and t says
 * which; a fragment that reaches itself is an error. depth and n_selected are those of
 * what a server executes, where a fragment counts each time that it is spread, at most
 * UINT32_MAX. Both may be NULL. */
bool graphql_put_request(struct buf *out, const struct graphql_operation *op,
    const struct graphql_document *const *docs, size_t n_docs, uint32_t *depth,
    uint32_t *n_selected, struct mv_errtext *t);

/* Appends a name that a tool may have, 1 to 128 of [A-Za-z0-9_.-]; snake: getUserById
 * becomes get_user_by_id. */
#define GRAPHQL_TOOL_NAME_MAX 128
void graphql_put_tool_name(struct buf *out, const char *name, bool snake);

/* Text as JSON: without byte order mark and white space around; absent: it is none. */
struct jtext graphql_json(const char *text, size_t n);

/* The types of an endpoint. */
struct graphql_schema;
/* What asks for it: a query. */
enum graphql_introspection {
	GRAPHQL_INTROSPECT_FULL,
	GRAPHQL_INTROSPECT_OLD,	   /* without isOneOf and specifiedByURL */
	GRAPHQL_INTROSPECT_SHALLOW /* the same, lists and non-nulls 4 deep */
};
void graphql_put_introspection(struct buf *out, enum graphql_introspection how);
/* Reads {"data":{"__schema":...}} or {"__schema":...}. NULL: it is none, and t says why.
 */
struct graphql_schema *graphql_schema_read(
    const char *text, size_t n, struct mv_errtext *t);
void graphql_schema_free(struct graphql_schema *s); /* NULL is allowed */
/* The description of a root field; NULL: none. */
const char *graphql_field_description(
    const struct graphql_schema *s, enum graphql_op op, const char *field);

/* JSON Schemas of scalars by name: an object of objects, as in the option; absent: none.
 */
struct graphql_types {
	const struct graphql_schema *schema; /* NULL: none, types are unknown */
	struct jtext scalars;
};
/* What the variables of op are as arguments of a tool. NULL: it cannot be a tool (Upload,
 * a type that the schema does not have), and t says why. */
struct argspec *graphql_arguments(const struct graphql_types *types,
    const struct graphql_operation *op, struct mv_errtext *t);

/* An operation made of a root field: with a variable for each argument, and selections
 * down to a depth. */
struct graphql_generate_opts {
	uint32_t depth, max_fields;
};
/* A document of one operation with the name of the field. NULL: nothing can be selected,
 * and t says so. */
struct graphql_document *graphql_generate(const struct graphql_schema *s,
    enum graphql_op op, const char *field, const struct graphql_generate_opts *o,
    struct mv_errtext *t);
/* Calls fn for each root field, in the order of the schema; "Query", "Mutation": its
 * type. */
void graphql_each_field(const struct graphql_schema *s, enum graphql_op op,
    void (*fn)(void *arg, const char *type, const char *field), void *arg);

#endif
