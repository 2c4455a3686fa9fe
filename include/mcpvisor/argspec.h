/* SPDX-License-Identifier: MIT */
/*
 * What arguments a tool of ours takes: as the JSON Schema that clients are shown, and as
 * the check of what they send. Values are looked at where they are; nothing is built.
 * Pure functions.
 *
 * The schema never has: type arrays, oneOf, anyOf, allOf, const, boolean schemas, $ref,
 * empty strings in enum; hosts refuse whole requests for those.
 */
#ifndef MCPVISOR_ARGSPEC_H
#define MCPVISOR_ARGSPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"
#include "mcpvisor/pattern.h"

#define ARGSPEC_DEPTH_MAX  32 /* of a schema that is read */
#define ARGSPEC_ENUM_SHOWN 20 /* values that an error names */

enum arg_type {
	ARG_ANY, /* any JSON value */
	ARG_STRING,
	ARG_INTEGER,
	ARG_NUMBER,
	ARG_BOOLEAN,
	ARG_ARRAY,
	ARG_OBJECT
};
/* "any", "string", "integer", ...; NULL-terminated. */
extern const char *const arg_type_words[];

struct argspec {
	enum arg_type type;
	char *name; /* of a member; NULL: the root, or what an array holds */
	char *description;
	char *origin; /* what errors call its type: "GraphQL type ID!"; NULL: no word */
	bool is_required;
	bool is_nullable; /* null passes, without being advertised */
	bool is_secret;	  /* its value is in no error */
	char *dflt;	  /* JSON text; NULL: none */
	/* Numbers: as they are written, NULL: none. min and max have their values. */
	char *min_text, *max_text;
	double min, max;
	bool takes_integer; /* STRING: an integer passes as well */
	bool must_be_plain; /* STRING: no control characters but tab and newline */
	uint32_t min_length, max_length; /* STRING: characters; max 0: no bound */
	struct pattern *pattern;	 /* STRING; shown as ^(?:...)$ if anchored */
	char *format;			 /* STRING; only shown */
	/* STRING: what it may be; the first n_shown of them are advertised, if n_shown is
	 * not 0. */
	char **values;
	size_t n_values, n_shown;
	uint32_t max_items;	  /* ARRAY; 0: no bound */
	struct argspec *items;	  /* ARRAY; NULL: anything */
	struct argspec **members; /* OBJECT, NULL-terminated */
	size_t n_members;
	uint32_t min_members, max_members; /* OBJECT; 0: no bound */
	bool is_open;			   /* OBJECT: other members pass */
};

struct argspec *argspec_new(enum arg_type type, const char *name); /* name may be NULL */
void argspec_free(struct argspec *s); /* with all below; NULL is allowed */
void argspec_add_member(struct argspec *object, struct argspec *member); /* taken */
void argspec_add_value(struct argspec *s, const char *value); /* not advertised yet */
const struct argspec *argspec_member(const struct argspec *object, const char *name);

/* Appends the JSON Schema. */
void argspec_put_schema(const struct argspec *s, struct buf *out);
/* A schema of a file, of which this subset is understood: type, properties, required,
 * additionalProperties (boolean), description, title, default, enum of strings, minimum,
 * maximum, minLength, maxLength, pattern, format, items, maxItems, minProperties,
 * maxProperties, $schema, $comment, examples. As there, a pattern is not anchored, and an
 * object without additionalProperties is open. The title stands in for a description;
 * $schema, $comment and examples are lost. NULL: it has another keyword, one that does
 * not go with its type, or is none; t says where. schema may be any text. */
struct argspec *argspec_read(struct jtext schema, struct mv_errtext *t);
/* Whether arguments, an object, may be sent. False: why has one sentence that names the
 * argument, the constraint, the value (64 bytes of it, none of a secret one), and that
 * retrying unchanged will fail; why may be NULL. arguments may be absent: {}. A known
 * member that is given twice is refused, as is one whose name differs only by case from a
 * known one; an object that is open is not looked at for others that are there twice.
 * Refused as well: what is over CAP_ARGUMENTS_BYTES, or takes too many steps. */
bool argspec_check(const struct argspec *s, struct jtext arguments, struct buf *why);
/* Whether t is a number with an integral value of at most that many digits: what passes
 * as an integer, 1.0 and 1e2 among them. Appends it as plain digits, unless out is NULL.
 */
#define ARGSPEC_INTEGER_DIGITS 400
bool argspec_put_integer(struct jtext t, struct buf *out);
/* The value of a member of arguments; absent if it is not there or null. */
struct jtext argspec_get(struct jtext arguments, const char *name);

#endif
