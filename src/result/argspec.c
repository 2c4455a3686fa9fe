/* SPDX-License-Identifier: MIT */
/*
 * Specifications of arguments as data: made, grown, searched and freed.
 *
 * Owns: all below a specification. Driven by: whoever reads a conf or an operation.
 * Invariants: members is NULL-terminated as soon as there is one; n_shown is never over
 * n_values.
 */
#include "mcpvisor/argspec.h"

#include "mcpvisor/mem.h"

#include <string.h>

const char *const arg_type_words[] = {
    [ARG_ANY] = "any",
    [ARG_STRING] = "string",
    [ARG_INTEGER] = "integer",
    [ARG_NUMBER] = "number",
    [ARG_BOOLEAN] = "boolean",
    [ARG_ARRAY] = "array",
    [ARG_OBJECT] = "object",
    NULL,
};

struct argspec *
argspec_new(enum arg_type type, const char *name)
{
	struct argspec *s = mem_xcalloc(1, sizeof(*s));

	s->type = type;
	if (name != NULL)
		s->name = mem_xstrdup(name);
	return s;
}

void
argspec_free(struct argspec *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n_members; i++)
		argspec_free(s->members[i]);
	mem_free(s->members);
	argspec_free(s->items);
	for (size_t i = 0; i < s->n_values; i++)
		mem_free(s->values[i]);
	mem_free(s->values);
	pattern_free(s->pattern);
	mem_free(s->format);
	mem_free(s->max_text);
	mem_free(s->min_text);
	mem_free(s->dflt);
	mem_free(s->origin);
	mem_free(s->description);
	mem_free(s->name);
	mem_free(s);
}

/* Room for one more and a NULL in a list of n. */
static void *
argspec_grow(void *list, size_t n, size_t size)
{
	/* At powers of two alone. */
	if (n > 0 && (n & (n + 1)) != 0)
		return list;
	return mem_xrealloc(list, (2 * n + 2) * size);
}

void
argspec_add_member(struct argspec *object, struct argspec *member)
{
	object->members =
	    argspec_grow(object->members, object->n_members, sizeof(*object->members));
	object->members[object->n_members++] = member;
	object->members[object->n_members] = NULL;
}

void
argspec_add_value(struct argspec *s, const char *value)
{
	s->values = argspec_grow(s->values, s->n_values, sizeof(*s->values));
	s->values[s->n_values++] = mem_xstrdup(value);
}

const struct argspec *
argspec_member(const struct argspec *object, const char *name)
{
	for (size_t i = 0; i < object->n_members; i++)
		if (strcmp(object->members[i]->name, name) == 0)
			return object->members[i];
	return NULL;
}

struct jtext
argspec_get(struct jtext arguments, const char *name)
{
	struct jtext value = json_member(arguments, name), none = {NULL, 0};

	return jtext_type(value) == 'n' ? none : value;
}
