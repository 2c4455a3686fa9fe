/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with arguments, in one sentence each for a model to read.
 *
 * Driven by: the check; pure.
 * Invariants: what a client sent is shown as it is spelled, at most 64 bytes of it and no
 * control characters, and not at all where it is secret or has a secret in it.
 */
#include "argspec_priv.h"

#include <string.h>

#define UNCHANGED     ". Retrying unchanged will fail."
#define PATTERN_BYTES 256 /* that are shown */

/* JSON text of a client, or what stands between the quotes of a string. */
static void
say_spelled(struct buf *out, struct jtext t)
{
	shown_put_spelled(out, t, ARGSPEC_VALUE_BYTES);
}

static void
say_word(struct buf *out, const char *s)
{
	shown_put(out, s, strlen(s), ARGSPEC_VALUE_BYTES);
}

static void
say_path(struct buf *out, const struct argspec_place *at)
{
	if (at->up == NULL)
		return;
	say_path(out, at->up);
	if (at->spec->name == NULL) {
		buf_addf(out, "[%zu]", at->index);
		return;
	}
	if (at->up->up != NULL)
		buf_add_char(out, '.');
	say_word(out, at->spec->name);
}

/* "Argument 'filter.id[3]'" and its like. */
static void
say_argument(struct buf *out, const char *what, const struct argspec_place *at)
{
	if (at->up == NULL) {
		buf_add_str(out, "The arguments");
		return;
	}
	buf_addf(out, "%s '", what);
	say_path(out, at);
	buf_add_char(out, '\'');
}

static bool
say_has_secret(const struct argspec *s)
{
	if (s->is_secret || (s->items != NULL && say_has_secret(s->items)))
		return true;
	for (size_t i = 0; i < s->n_members; i++)
		if (say_has_secret(s->members[i]))
			return true;
	return false;
}

/* It is, or it is within one that is. */
static bool
say_is_secret(const struct argspec_place *at)
{
	for (; at != NULL; at = at->up)
		if (at->spec->is_secret)
			return true;
	return false;
}

/* One of a list whose end may be cut. */
static void
say_listed(struct buf *out, size_t i, const char *word)
{
	if (i > 0)
		buf_add_str(out, ", ");
	say_word(out, word);
}

static void
say_rest(struct buf *out, size_t n)
{
	if (n > ARGSPEC_ENUM_SHOWN)
		buf_addf(out, " and %zu more", n - ARGSPEC_ENUM_SHOWN);
}

static void
say_values(struct buf *out, const struct argspec *s)
{
	size_t n = s->n_shown > 0 ? s->n_shown : s->n_values;

	buf_add_str(out, "one of ");
	for (size_t i = 0; i < n && i < ARGSPEC_ENUM_SHOWN; i++)
		say_listed(out, i, s->values[i]);
	say_rest(out, n);
}

/* " from 1 to 100", " of at least 1", ... of numbers as they are written. */
static void
say_range(struct buf *out, const char *min, const char *max)
{
	if (min != NULL && max != NULL)
		buf_addf(out, " from %s to %s", min, max);
	else if (min != NULL)
		buf_addf(out, " of at least %s", min);
	else if (max != NULL)
		buf_addf(out, " of at most %s", max);
}

static const char *
say_plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* " of 3 to 80 characters", " of exactly 1 member", ...; max 0: no bound. */
static void
say_size(struct buf *out, uint32_t min, uint32_t max, const char *unit)
{
	if (min > 0 && min == max)
		buf_addf(out, " of exactly %u %s%s", min, unit, say_plural(min));
	else if (min > 0 && max > 0)
		buf_addf(out, " of %u to %u %ss", min, max, unit);
	else if (min > 0)
		buf_addf(out, " of at least %u %s%s", min, unit, say_plural(min));
	else if (max > 0)
		buf_addf(out, " of at most %u %s%s", max, unit, say_plural(max));
}

static void
say_kind(struct buf *out, const struct argspec *s)
{
	static const char *const nouns[] = {
	    [ARG_ANY] = "a JSON value",
	    [ARG_STRING] = "a string",
	    [ARG_INTEGER] = "an integer",
	    [ARG_NUMBER] = "a number",
	    [ARG_BOOLEAN] = "true or false",
	    [ARG_ARRAY] = "an array",
	    [ARG_OBJECT] = "an object",
	};

	if (s->n_values > 0) {
		say_values(out, s);
		return;
	}
	buf_add_str(out, nouns[s->type]);
	if (s->type == ARG_STRING && s->takes_integer)
		buf_add_str(out, " or an integer");
	say_range(out, s->min_text, s->max_text);
	say_size(out, s->min_length, s->max_length, "character");
	say_size(out, 0, s->max_items, "item");
	say_size(out, s->min_members, s->max_members, "member");
}

static void
say_constraint(struct buf *out, const struct argspec *s, enum argspec_fault fault)
{
	if (fault == ARGSPEC_FAULT_PATTERN) {
		buf_add_str(out, "match the pattern ");
		shown_put(out, pattern_text(s->pattern), strlen(pattern_text(s->pattern)),
		    PATTERN_BYTES);
	} else if (fault == ARGSPEC_FAULT_CONTROL) {
		buf_add_str(out, "have no control characters other than tab and newline");
	} else {
		buf_add_str(out, "be ");
		say_kind(out, s);
	}
}

void
argspec_say_fault(struct buf *why, const struct argspec_place *at,
    enum argspec_fault fault, struct jtext value, size_t count)
{
	const struct argspec *s = at->spec;

	say_argument(why, "Argument", at);
	if (fault == ARGSPEC_FAULT_MEMORY) {
		buf_add_str(why, " could not be checked: out of memory. A retry may "
				 "succeed.");
		return;
	}
	if (fault == ARGSPEC_FAULT_STEPS) {
		buf_add_str(why, " could not be checked: too long or too many for their "
				 "constraints" UNCHANGED);
		return;
	}
	buf_add_str(why, " must ");
	if (fault == ARGSPEC_FAULT_BYTES) {
		buf_addf(why, "be at most %u bytes of JSON; got %zu" UNCHANGED,
		    CAP_ARGUMENTS_BYTES, value.n);
		return;
	}
	say_constraint(why, s, fault);
	if (say_is_secret(at) || (fault != ARGSPEC_FAULT_COUNT && say_has_secret(s))) {
		buf_add_str(why, "; its value is not shown");
	} else if (fault == ARGSPEC_FAULT_COUNT) {
		buf_addf(why, "; got %zu %s%s", count,
		    s->type == ARG_ARRAY ? "item" : "member", say_plural(count));
	} else {
		buf_add_str(why, "; got ");
		say_spelled(why, value);
		if (fault == ARGSPEC_FAULT_LENGTH)
			buf_addf(why, " (%zu character%s)", count, say_plural(count));
	}
	buf_add_str(why, UNCHANGED);
}

void
argspec_say_missing(struct buf *why, const struct argspec_place *at)
{
	say_argument(why, "Missing required argument", at);
	if (at->spec->origin != NULL) {
		buf_add_str(why, " (");
		say_word(why, at->spec->origin);
		buf_add_char(why, ')');
	}
	buf_add_str(why, ". Add it and call again.");
}

/* The key of a member that is none of ours stands for it. */
static void
say_unknown_path(struct buf *why, const struct argspec_place *at, struct jtext key)
{
	buf_add_str(why, "Unknown argument '");
	say_path(why, at);
	if (at->up != NULL)
		buf_add_char(why, '.');
	if (key.n >= 2)
		say_spelled(why, (struct jtext){key.p + 1, key.n - 2});
	buf_add_char(why, '\'');
}

void
argspec_say_unknown(struct buf *why, const struct argspec_place *at, struct jtext key,
    const struct argspec *known)
{
	const struct argspec *s = at->spec;

	if (say_is_secret(at)) {
		say_argument(why, "Argument", at);
		buf_add_str(why, " has a member that is not known");
	} else {
		say_unknown_path(why, at, key);
	}
	if (known != NULL) {
		buf_add_str(why, "; it is spelled '");
		say_word(why, known->name);
		buf_add_char(why, '\'');
	} else if (s->n_members == 0) {
		buf_add_str(why, "; there are none");
	} else {
		buf_add_str(why, "; known are ");
		for (size_t i = 0; i < s->n_members && i < ARGSPEC_ENUM_SHOWN; i++)
			say_listed(why, i, s->members[i]->name);
		say_rest(why, s->n_members);
	}
	buf_add_str(why, UNCHANGED);
}

void
argspec_say_twice(struct buf *why, const struct argspec_place *at)
{
	say_argument(why, "Argument", at);
	buf_add_str(why, " must be given once; it was given twice" UNCHANGED);
}
