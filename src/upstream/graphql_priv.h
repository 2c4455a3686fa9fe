/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the reader share: tokens, the parser over them, and the types that a
 * schema keeps.
 */
#ifndef MCPVISOR_GRAPHQL_PRIV_H
#define MCPVISOR_GRAPHQL_PRIV_H

#include "mcpvisor/graphql.h"

#define GRAPHQL_VARS_MAX 1000 /* of an operation */

/* ---- tokens ---- */

enum graphql_token {
	GRAPHQL_T_START, /* nothing was read yet */
	GRAPHQL_T_END,
	GRAPHQL_T_PUNCT, /* one character */
	GRAPHQL_T_SPREAD,
	GRAPHQL_T_NAME,
	GRAPHQL_T_NUMBER,
	GRAPHQL_T_STRING,
	GRAPHQL_T_BLOCK,
	GRAPHQL_T_BAD /* it has failed and stays so; err says why */
};

struct graphql_lex {
	const char *p, *end; /* not read yet */
	const char *line_start;
	int line;
	struct mv_errtext *err;
	/* The token that comes next. */
	enum graphql_token kind;
	const char *at;
	size_t n;
	const char *at_line_start;
	int at_line;
	bool after_comment; /* one stands between it and the token before */
	/* Lines with # alone right above it; NULL: none. */
	const char *notes, *notes_end;
	int notes_line;
};

/* text has to be UTF-8 without NUL. The first token comes by graphql_lex_next. */
void graphql_lex_init(
    struct graphql_lex *x, const char *text, size_t n, struct mv_errtext *err);
void graphql_lex_next(struct graphql_lex *x);
/* Sets the error, at the token; the first one stays. False. */
bool graphql_lex_fail(struct graphql_lex *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool graphql_lex_is(const struct graphql_lex *x, char punct);
bool graphql_lex_is_name(const struct graphql_lex *x, const char *name);
bool graphql_lex_is_string(const struct graphql_lex *x);
/* Appends what a string token stands for. False: an escape is none. */
bool graphql_lex_decode(struct graphql_lex *x, struct buf *out);
/* Appends the text of comment lines. */
void graphql_put_notes(const char *notes, const char *end, struct buf *out);
bool graphql_is_name(const char *s);

/* ---- the parser ---- */

/* It writes what it passes, without comments and descriptions, to text. */
struct graphql_parse {
	struct graphql_lex lex;
	struct buf text;
	const char *last_end; /* of what is in text; NULL: that is empty */
	bool is_cut;	      /* something was left out since */
	unsigned depth;	      /* of what is being read */
};

void graphql_parse_init(
    struct graphql_parse *g, const char *text, size_t n, struct mv_errtext *err);
/* Over the token: into text, or not. */
void graphql_parse_shift(struct graphql_parse *g);
void graphql_parse_skip(struct graphql_parse *g);
/* False and failed, if the next token is not that. */
bool graphql_parse_expect(struct graphql_parse *g, char punct);
/* Also: is it that? Then over it. */
bool graphql_parse_accept(struct graphql_parse *g, char punct);
/* A copy of a name, and over it; NULL: it is none. */
char *graphql_parse_name(struct graphql_parse *g);
bool graphql_parse_enter(struct graphql_parse *g); /* false: too deep */
void graphql_parse_leave(struct graphql_parse *g);
/* A value. out has it as JSON after that, and then variables are errors; NULL: they may
 * be there. */
bool graphql_parse_value(struct graphql_parse *g, struct buf *out);
/* A type, without its white space; NULL: it is none. */
char *graphql_parse_type(struct graphql_parse *g);
/* Takes what buf has; NULL: memory was short, and it has failed. */
char *graphql_parse_take(struct graphql_parse *g, struct buf *b);
/* Appends a constant as JSON, and, unless literal is NULL, as it can stand in a document.
 * False: it is none, nothing was appended. text may be NULL. */
bool graphql_put_constant(const char *text, struct buf *json, struct buf *literal);

/* Room for one more after n, where it grew by one each time. */
void *graphql_grow(void *v, size_t n, size_t size);
void graphql_strings_free(char **v); /* NULL-terminated; NULL is allowed */
void graphql_operation_fini(struct graphql_operation *op);
void graphql_fragment_fini(struct graphql_fragment *f);
/* Moves all of from, which is gone then, to the end of d. */
void graphql_document_move(struct graphql_document *d, struct graphql_document *from);

/* ---- types ---- */

enum graphql_kind {
	GRAPHQL_SCALAR,
	GRAPHQL_ENUM,
	GRAPHQL_INPUT,
	GRAPHQL_OBJECT,
	GRAPHQL_INTERFACE,
	GRAPHQL_UNION
};

/* A field, an argument or a member of an input object. */
struct graphql_field {
	char *name;
	char *type;	   /* as in struct graphql_var; NULL: it is not known in full */
	char *description; /* of root fields, arguments and members; else NULL */
	char *dflt;	   /* of arguments and members: a literal; NULL: none */
	struct graphql_field *args; /* of root fields */
	size_t n_args;
	bool is_deprecated;
	bool needs_args; /* at least one has to be given */
};

struct graphql_value {
	char *name;
	bool is_deprecated;
};

struct graphql_type {
	char *name;
	enum graphql_kind kind;
	bool is_one_of;
	struct graphql_field *fields; /* members of an INPUT */
	size_t n_fields;
	struct graphql_value *values; /* of an ENUM */
	size_t n_values;
	char **possible; /* of a UNION; names, NULL-terminated */
};

struct graphql_schema {
	struct graphql_type *types; /* by name */
	size_t n_types;
	char *roots[3]; /* by enum graphql_op; NULL: it has none */
};

/* NULL: there is none. */
const struct graphql_type *graphql_type_find(
    const struct graphql_schema *s, const char *name);
const struct graphql_type *graphql_root(
    const struct graphql_schema *s, enum graphql_op op);
const struct graphql_field *graphql_root_field(
    const struct graphql_schema *s, enum graphql_op op, const char *field);
/* The type that type names in the end: ID of "[ID!]!". */
const struct graphql_type *graphql_type_named(
    const struct graphql_schema *s, const char *type);
bool graphql_type_is_required(const char *type); /* it ends with "!" */

/* Appends a selection set of ty, with its braces, for a root field of op. False: it would
 * be empty. */
bool graphql_put_selection(const struct graphql_schema *schema, enum graphql_op op,
    const struct graphql_type *ty, const struct graphql_generate_opts *o,
    struct buf *out);

#endif
