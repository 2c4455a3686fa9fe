/* SPDX-License-Identifier: MIT */
/*
 * JSON Schema of a file as a specification: a subset, all of which is enforced.
 *
 * Owns: what it has read, until it is all read. Driven by: the conf's readers.
 * Invariants: a keyword that is not enforced is no keyword that is read, but for those
 * that only people look at; depth is bounded.
 */
#include "argspec_priv.h"

#include "mcpvisor/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_BYTES 256 /* that an error shows */

/* Where in the schema. */
struct read_place {
	const struct read_place *up; /* NULL: its top */
	const char *word;	     /* "/items", "/properties/" */
	struct jtext key;	     /* behind it; absent: none */
	unsigned depth;
};

/* One schema while it is read. */
struct read_work {
	const struct read_place *at;
	const char *keyword; /* that is being read */
	struct argspec *s;
	struct jtext title, required;
	struct mv_errtext *t;
};

static void
read_put_place(struct buf *out, const struct read_place *at)
{
	if (at == NULL || at->up == NULL) {
		buf_add_char(out, '#');
		return;
	}
	read_put_place(out, at->up);
	buf_add_str(out, at->word);
	if (at->key.n >= 2)
		buf_add(out, at->key.p + 1, at->key.n - 2);
}

/* false, with "#/properties/limit: maximum must be a number". */
static bool __attribute__((format(printf, 2, 3)))
read_fail(const struct read_work *w, const char *fmt, ...)
{
	struct buf place;
	char words[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	buf_init(&place, SIZE_MAX / 2);
	read_put_place(&place, w->at);
	mv_errtext_set(w->t, "%.*s%s: %s",
	    (int)(place.len < PLACE_BYTES ? place.len : PLACE_BYTES), place.data,
	    place.len < PLACE_BYTES ? "" : "...", words);
	buf_fini(&place);
	return false;
}

static bool
read_fail_kind(const struct read_work *w, const char *kind)
{
	return read_fail(w, "%s must be %s", w->keyword, kind);
}

/* Without NUL, so that it is a C string. NULL: it is none. */
static char *
read_string(struct jtext t)
{
	char *text = NULL;
	struct buf b;

	buf_init(&b, t.n);
	if (json_string_decode(t, &b) && b.err == MV_OK &&
	    (b.len == 0 || memchr(b.data, '\0', b.len) == NULL))
		text = mem_xstrndup(b.len > 0 ? b.data : "", b.len);
	buf_fini(&b);
	return text;
}

static bool
read_text(struct read_work *w, struct jtext value, char **text)
{
	*text = read_string(value);
	return *text != NULL || read_fail_kind(w, "a string without NUL");
}

static bool
read_count(struct read_work *w, struct jtext value, uint32_t *count)
{
	int64_t v;

	if (!json_int(value, &v) || v < 0 || v > UINT32_MAX)
		return read_fail_kind(w, "an integer from 0 to 4294967295");
	*count = (uint32_t)v;
	return true;
}

/* 0 would be no bound. */
static bool
read_most(struct read_work *w, struct jtext value, uint32_t *count)
{
	return read_count(w, value, count) &&
	       (*count > 0 || read_fail_kind(w, "at least 1"));
}

static bool
read_bound(struct read_work *w, struct jtext value, char **text, double *bound)
{
	char first = jtext_type(value);

	if (first != '-' && (first < '0' || first > '9'))
		return read_fail_kind(w, "a number");
	*text = mem_xstrndup(value.p, value.n);
	*bound = strtod(*text, NULL);
	return true;
}

static struct argspec *read_schema(
    const struct read_place *at, struct jtext schema, struct mv_errtext *t);

/* ---- keywords ---- */

static bool
read_skip(struct read_work *w, struct jtext value)
{
	(void)w;
	(void)value;
	return true;
}

static bool
read_description(struct read_work *w, struct jtext value)
{
	return read_text(w, value, &w->s->description);
}

static bool
read_title(struct read_work *w, struct jtext value)
{
	w->title = value;
	return jtext_type(value) == '"' || read_fail_kind(w, "a string");
}

static bool
read_default(struct read_work *w, struct jtext value)
{
	w->s->dflt = mem_xstrndup(value.p, value.n);
	return true;
}

static bool
read_enum(struct read_work *w, struct jtext value)
{
	struct json_iter it;
	struct jtext v;

	if (jtext_type(value) != '[')
		return read_fail_kind(w, "an array");
	json_iter_init(&it, value);
	while (json_next_element(&it, &v)) {
		char *text = read_string(v);
		bool ok = text != NULL && text[0] != '\0';

		if (ok)
			argspec_add_value(w->s, text);
		mem_free(text);
		if (!ok)
			return read_fail(w, "enum may hold strings alone, no empty one");
	}
	w->s->n_shown = w->s->n_values;
	return w->s->n_values > 0 || read_fail(w, "enum is empty");
}

static bool
read_minimum(struct read_work *w, struct jtext value)
{
	return read_bound(w, value, &w->s->min_text, &w->s->min);
}

static bool
read_maximum(struct read_work *w, struct jtext value)
{
	return read_bound(w, value, &w->s->max_text, &w->s->max);
}

static bool
read_min_length(struct read_work *w, struct jtext value)
{
	return read_count(w, value, &w->s->min_length);
}

static bool
read_max_length(struct read_work *w, struct jtext value)
{
	return read_most(w, value, &w->s->max_length);
}

static bool
read_pattern(struct read_work *w, struct jtext value)
{
	struct mv_errtext why = {.line = 0};
	char *text;

	if (!read_text(w, value, &text))
		return false;
	w->s->pattern = pattern_new(text, false, &why);
	mem_free(text);
	return w->s->pattern != NULL || read_fail(w, "pattern is %s", why.message);
}

static bool
read_format(struct read_work *w, struct jtext value)
{
	return read_text(w, value, &w->s->format);
}

static bool
read_items(struct read_work *w, struct jtext value)
{
	struct read_place at = {.up = w->at, .word = "/items", .depth = w->at->depth + 1};

	w->s->items = read_schema(&at, value, w->t);
	return w->s->items != NULL;
}

static bool
read_max_items(struct read_work *w, struct jtext value)
{
	return read_most(w, value, &w->s->max_items);
}

static bool
read_property(struct read_work *w, struct jtext key, struct jtext value)
{
	struct read_place at = {
	    .up = w->at, .word = "/properties/", .key = key, .depth = w->at->depth + 1};
	char *name = read_string(key);
	struct argspec *member;

	if (name == NULL)
		return read_fail(w, "a name in properties has a NUL");
	if (argspec_member(w->s, name) != NULL) {
		mem_free(name);
		return read_fail(w, "properties has one name twice");
	}
	member = read_schema(&at, value, w->t);
	if (member == NULL) {
		mem_free(name);
		return false;
	}
	member->name = name;
	argspec_add_member(w->s, member);
	return true;
}

static bool
read_properties(struct read_work *w, struct jtext value)
{
	struct json_iter it;
	struct jtext k, v;

	if (jtext_type(value) != '{')
		return read_fail_kind(w, "an object");
	json_iter_init(&it, value);
	while (json_next_member(&it, &k, &v))
		if (!read_property(w, k, v))
			return false;
	return true;
}

static bool
read_required(struct read_work *w, struct jtext value)
{
	w->required = value;
	return jtext_type(value) == '[' || read_fail_kind(w, "an array");
}

static bool
read_additional(struct read_work *w, struct jtext value)
{
	w->s->is_open = json_is_true(value);
	return w->s->is_open || jtext_type(value) == 'f' ||
	       read_fail_kind(w, "true or false");
}

static bool
read_min_members(struct read_work *w, struct jtext value)
{
	return read_count(w, value, &w->s->min_members);
}

static bool
read_max_members(struct read_work *w, struct jtext value)
{
	return read_most(w, value, &w->s->max_members);
}

#define OF(type) (1u << ARG_##type)
#define OF_ALL	 (~0u)

static const struct read_keyword {
	const char *word;
	unsigned types; /* that it goes with */
	bool (*read)(struct read_work *, struct jtext);
} keywords[] = {
    {"type", OF_ALL, read_skip}, /* was read first */
    {"$schema", OF_ALL, read_skip},
    {"$comment", OF_ALL, read_skip},
    {"examples", OF_ALL, read_skip},
    {"title", OF_ALL, read_title},
    {"description", OF_ALL, read_description},
    {"default", OF_ALL, read_default},
    {"enum", OF(STRING), read_enum},
    {"minLength", OF(STRING), read_min_length},
    {"maxLength", OF(STRING), read_max_length},
    {"pattern", OF(STRING), read_pattern},
    {"format", OF(STRING), read_format},
    {"minimum", OF(INTEGER) | OF(NUMBER), read_minimum},
    {"maximum", OF(INTEGER) | OF(NUMBER), read_maximum},
    {"items", OF(ARRAY), read_items},
    {"maxItems", OF(ARRAY), read_max_items},
    {"properties", OF(OBJECT), read_properties},
    {"required", OF(OBJECT), read_required},
    {"additionalProperties", OF(OBJECT), read_additional},
    {"minProperties", OF(OBJECT), read_min_members},
    {"maxProperties", OF(OBJECT), read_max_members},
};
#define N_KEYWORDS (sizeof(keywords) / sizeof(keywords[0]))
_Static_assert(N_KEYWORDS <= 32, "read_keywords has a bit for each");

static bool
read_keywords(struct read_work *w, struct jtext schema)
{
	struct json_iter it;
	struct jtext k, v;
	uint32_t seen = 0;
	size_t i;

	json_iter_init(&it, schema);
	while (json_next_member(&it, &k, &v)) {
		for (i = 0; i < N_KEYWORDS && !json_string_is(k, keywords[i].word);)
			i++;
		if (i == N_KEYWORDS)
			return read_fail(w, "%.*s is no keyword that is understood",
			    k.n < ARGSPEC_VALUE_BYTES ? (int)k.n : ARGSPEC_VALUE_BYTES,
			    k.p);
		w->keyword = keywords[i].word;
		if ((seen & 1u << i) != 0)
			return read_fail(w, "%s is there twice", w->keyword);
		seen |= 1u << i;
		if ((keywords[i].types & 1u << w->s->type) == 0)
			return read_fail(w, "%s does not go with type %s", w->keyword,
			    arg_type_words[w->s->type]);
		if (!keywords[i].read(w, v))
			return false;
	}
	return true;
}

/* Absent: any, or a string if there is an enum. */
static bool
read_type(struct read_work *w, struct jtext schema)
{
	struct jtext type = json_member(schema, "type");

	if (type.n == 0) {
		w->s->type = json_member(schema, "enum").n > 0 ? ARG_STRING : ARG_ANY;
		return true;
	}
	for (int i = ARG_STRING; arg_type_words[i] != NULL; i++)
		if (json_string_is(type, arg_type_words[i])) {
			w->s->type = (enum arg_type)i;
			return true;
		}
	return read_fail(w, "type must be string, integer, number, boolean, array or "
			    "object");
}

/* The member of that name; NULL: none. */
static struct argspec *
read_find(const struct argspec *s, struct jtext name)
{
	for (size_t i = 0; i < s->n_members; i++)
		if (json_string_is(name, s->members[i]->name))
			return s->members[i];
	return NULL;
}

static bool
read_settle_required(struct read_work *w)
{
	struct json_iter it;
	struct jtext v;

	json_iter_init(&it, w->required);
	while (json_next_element(&it, &v)) {
		struct argspec *m = read_find(w->s, v);

		if (m == NULL || m->is_required)
			return read_fail(w, "required: %.*s %s",
			    v.n < ARGSPEC_VALUE_BYTES ? (int)v.n : ARGSPEC_VALUE_BYTES,
			    v.p, m == NULL ? "is none of properties" : "is there twice");
		m->is_required = true;
	}
	return true;
}

static bool
read_settle_bounds(struct read_work *w)
{
	const struct argspec *s = w->s;

	if (s->min_text != NULL && s->max_text != NULL &&
	    argspec_compare(argspec_text(s->min_text), argspec_text(s->max_text)) > 0)
		return read_fail(w, "minimum is over maximum");
	if (s->max_length > 0 && s->min_length > s->max_length)
		return read_fail(w, "minLength is over maxLength");
	if (s->max_members > 0 && s->min_members > s->max_members)
		return read_fail(w, "minProperties is over maxProperties");
	return true;
}

/* What keywords say of each other. */
static bool
read_settle(struct read_work *w)
{
	size_t steps = PATTERN_STEPS;
	struct argspec_place root = {.spec = w->s, .steps = &steps};
	struct argspec *s = w->s;
	struct jtext dflt = argspec_text(s->dflt);

	if (!read_settle_required(w) || !read_settle_bounds(w))
		return false;
	w->keyword = "title";
	if (w->title.n > 0 && s->description == NULL &&
	    !read_text(w, w->title, &s->description))
		return false;
	/* Generators write null where they mean that there is none. */
	if (dflt.n > 0 && jtext_type(dflt) != 'n' &&
	    !argspec_check_value(&root, dflt, NULL))
		return read_fail(w, "default is none of the values that it takes");
	return true;
}

static struct argspec *
read_schema(const struct read_place *at, struct jtext schema, struct mv_errtext *t)
{
	struct read_work w = {.at = at, .t = t};

	if (at->depth >= ARGSPEC_DEPTH_MAX) {
		read_fail(&w, "deeper than %d", ARGSPEC_DEPTH_MAX);
		return NULL;
	}
	if (jtext_type(schema) != '{') {
		read_fail(&w, "a schema must be an object");
		return NULL;
	}
	w.s = argspec_new(ARG_ANY, NULL);
	if (!read_type(&w, schema))
		goto out;
	w.s->is_open = w.s->type == ARG_OBJECT;
	if (read_keywords(&w, schema) && read_settle(&w))
		return w.s;
out:
	argspec_free(w.s);
	return NULL;
}

struct argspec *
argspec_read(struct jtext schema, struct mv_errtext *t)
{
	struct read_place top = {.depth = 0};
	struct json_msg json;
	enum mv_err err = json_scan(&json, schema.p, schema.n, false);

	if (err != MV_OK) {
		mv_errtext_set(t, "%s", mv_err_text(err));
		return NULL;
	}
	while (json_is_space(schema.p[0])) {
		schema.p++;
		schema.n--;
	}
	while (json_is_space(schema.p[schema.n - 1]))
		schema.n--;
	return read_schema(&top, schema, t);
}
