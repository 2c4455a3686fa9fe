/* SPDX-License-Identifier: MIT */
/*
 * The check of arguments against their specification.
 *
 * Owns: nothing. Driven by: upstreams whose tools are ours, before they start anything.
 * Invariants: the depth of the walk is that of the specification, never that of what was
 * sent; each byte is looked at a bounded number of times per level, and values, compared
 * names and patterns share a number of steps; the first fault ends it, with one sentence.
 */
#include "argspec_priv.h"

#include "mcpvisor/mem.h"

#include <string.h>

static bool
check_fault(struct buf *why, const struct argspec_place *at, enum argspec_fault fault,
    struct jtext value, size_t count)
{
	if (why != NULL)
		argspec_say_fault(why, at, fault, value, count);
	return false;
}

/* What it takes, in steps of a pattern, to look at a value, or to compare a name or a
 * value with another one. */
#define STEPS_LOOK 8

/* False: there are too few steps left for n looks. */
static bool
check_spend(const struct argspec_place *at, size_t n)
{
	size_t *left = at->steps;

	*left -= n * STEPS_LOOK < *left ? n * STEPS_LOOK : *left;
	return *left > 0;
}

static bool
check_is_kind(const struct argspec *s, struct jtext value)
{
	char first = jtext_type(value);
	bool is_number = first == '-' || (first >= '0' && first <= '9');

	switch (s->type) {
	case ARG_ANY:
		return true;
	case ARG_STRING:
		/* No other spelling of an integer is one to those who take it for text.
		 */
		return first == '"' ||
		       (s->takes_integer && is_number && json_is_id(value));
	case ARG_INTEGER:
		return argspec_put_integer(value, NULL);
	case ARG_NUMBER:
		return is_number;
	case ARG_BOOLEAN:
		return first == 't' || first == 'f';
	case ARG_ARRAY:
		return first == '[';
	case ARG_OBJECT:
		return first == '{';
	}
	return false;
}

static bool
check_is_in_range(const struct argspec *s, struct jtext value)
{
	struct jtext min = argspec_text(s->min_text), max = argspec_text(s->max_text);

	return (min.n == 0 || argspec_compare(value, min) >= 0) &&
	       (max.n == 0 || argspec_compare(value, max) <= 0);
}

static size_t
check_characters(struct jtext text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return n;
}

static bool
check_is_plain(struct jtext text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c < 0x20 && c != '\t' && c != '\n')
			return false;
	}
	return true;
}

static bool
check_is_value(const struct argspec *s, struct jtext text)
{
	for (size_t i = 0; i < s->n_values; i++)
		if (jtext_is_equal(text, argspec_text(s->values[i])))
			return true;
	return s->n_values == 0;
}

static bool
check_text(const struct argspec_place *at, struct jtext value, struct jtext text,
    struct buf *why)
{
	const struct argspec *s = at->spec;
	size_t n = check_characters(text);

	if (!check_spend(at, s->n_values))
		return check_fault(why, at, ARGSPEC_FAULT_STEPS, value, 0);
	if (!check_is_value(s, text))
		return check_fault(why, at, ARGSPEC_FAULT_KIND, value, 0);
	if (n < s->min_length || (s->max_length > 0 && n > s->max_length))
		return check_fault(why, at, ARGSPEC_FAULT_LENGTH, value, n);
	if (s->must_be_plain && !check_is_plain(text))
		return check_fault(why, at, ARGSPEC_FAULT_CONTROL, value, 0);
	if (s->pattern == NULL || pattern_matches(s->pattern, text.p, text.n, at->steps))
		return true;
	return check_fault(why, at,
	    *at->steps == 0 ? ARGSPEC_FAULT_STEPS : ARGSPEC_FAULT_PATTERN, value, 0);
}

static bool
check_string(const struct argspec_place *at, struct jtext value, struct buf *why)
{
	struct jtext text = value;
	struct buf scratch;
	bool ok;

	buf_init(&scratch, value.n);
	if (jtext_type(value) == '"')
		text = json_text(value, &scratch);
	if (text.p == NULL)
		ok = check_fault(why, at, ARGSPEC_FAULT_MEMORY, value, 0);
	else
		ok = check_text(at, value, text, why);
	if (at->spec->is_secret && scratch.data != NULL)
		explicit_bzero(scratch.data, scratch.len);
	buf_fini(&scratch);
	return ok;
}

static bool
check_array(const struct argspec_place *at, struct jtext value, struct buf *why)
{
	const struct argspec *s = at->spec;
	struct argspec_place item = {.up = at, .spec = s->items, .steps = at->steps};
	struct json_iter it;
	struct jtext v;
	size_t n = 0;

	if (s->max_items > 0) {
		json_iter_init(&it, value);
		while (json_next_element(&it, &v))
			n++;
		if (n > s->max_items)
			return check_fault(why, at, ARGSPEC_FAULT_COUNT, value, n);
	}
	if (s->items == NULL)
		return true;
	json_iter_init(&it, value);
	for (; json_next_element(&it, &v); item.index++)
		if (!argspec_check_value(&item, v, why))
			return false;
	return true;
}

/* The one whose name differs from the key by case alone. False: nobody knows. */
static bool
check_find_like(const struct argspec *s, struct jtext key, const struct argspec **like)
{
	struct jtext text;
	struct buf scratch;
	bool ok;

	buf_init(&scratch, key.n);
	text = json_text(key, &scratch);
	ok = text.p != NULL;
	for (size_t i = 0; ok && i < s->n_members && *like == NULL; i++)
		if (jtext_is_like(text, argspec_text(s->members[i]->name)))
			*like = s->members[i];
	buf_fini(&scratch);
	return ok;
}

static bool
check_stranger(const struct argspec_place *at, struct jtext key, struct buf *why)
{
	const struct argspec *like = NULL;

	if (!check_find_like(at->spec, key, &like))
		return check_fault(why, at, ARGSPEC_FAULT_MEMORY, key, 0);
	if (like == NULL && at->spec->is_open)
		return true;
	if (why != NULL)
		argspec_say_unknown(why, at, key, like);
	return false;
}

static bool
check_member(const struct argspec_place *at, struct jtext key, struct jtext value,
    unsigned char *seen, struct buf *why)
{
	const struct argspec *s = at->spec;
	struct argspec_place member = {.up = at, .steps = at->steps};
	size_t i = 0;

	if (!check_spend(at, s->n_members))
		return check_fault(why, at, ARGSPEC_FAULT_STEPS, value, 0);
	while (i < s->n_members && !json_string_is(key, s->members[i]->name))
		i++;
	if (i == s->n_members)
		return check_stranger(at, key, why);
	member.spec = s->members[i];
	if (seen[i]++ == 0)
		return argspec_check_value(&member, value, why);
	if (why != NULL)
		argspec_say_twice(why, &member);
	return false;
}

static bool
check_members(const struct argspec_place *at, struct jtext value, unsigned char *seen,
    struct buf *why)
{
	const struct argspec *s = at->spec;
	struct json_iter it;
	struct jtext k, v;
	size_t n = 0;

	json_iter_init(&it, value);
	for (; json_next_member(&it, &k, &v); n++)
		if (!check_member(at, k, v, seen, why))
			return false;
	for (size_t i = 0; i < s->n_members; i++) {
		if (!s->members[i]->is_required || seen[i] > 0)
			continue;
		if (why != NULL)
			argspec_say_missing(why,
			    &(struct argspec_place){.up = at, .spec = s->members[i]});
		return false;
	}
	if (n < s->min_members || (s->max_members > 0 && n > s->max_members))
		return check_fault(why, at, ARGSPEC_FAULT_COUNT, value, n);
	return true;
}

static bool
check_object(const struct argspec_place *at, struct jtext value, struct buf *why)
{
	unsigned char *seen;
	bool ok;

	if (!check_spend(at, at->spec->n_members))
		return check_fault(why, at, ARGSPEC_FAULT_STEPS, value, 0);
	seen = mem_xcalloc(at->spec->n_members + 1, 1);
	ok = check_members(at, value, seen, why);
	mem_free(seen);
	return ok;
}

bool
argspec_check_value(const struct argspec_place *at, struct jtext value, struct buf *why)
{
	const struct argspec *s = at->spec;

	if (!check_spend(at, 1))
		return check_fault(why, at, ARGSPEC_FAULT_STEPS, value, 0);
	if (s->is_nullable && jtext_type(value) == 'n')
		return true;
	if (!check_is_kind(s, value))
		return check_fault(why, at, ARGSPEC_FAULT_KIND, value, 0);
	switch (s->type) {
	case ARG_STRING:
		return check_string(at, value, why);
	case ARG_INTEGER:
	case ARG_NUMBER:
		return check_is_in_range(s, value) ||
		       check_fault(why, at, ARGSPEC_FAULT_KIND, value, 0);
	case ARG_ARRAY:
		return check_array(at, value, why);
	case ARG_OBJECT:
		return check_object(at, value, why);
	case ARG_ANY:
	case ARG_BOOLEAN:
		return true;
	}
	return true;
}

bool
argspec_check(const struct argspec *s, struct jtext arguments, struct buf *why)
{
	size_t steps = PATTERN_STEPS;
	struct argspec_place root = {.spec = s, .steps = &steps};

	if (arguments.n == 0)
		arguments = (struct jtext){"{}", 2};
	if (arguments.n > CAP_ARGUMENTS_BYTES)
		return check_fault(why, &root, ARGSPEC_FAULT_BYTES, arguments, 0);
	return argspec_check_value(&root, arguments, why);
}
