/* SPDX-License-Identifier: MIT */
/*
 * Tools seen otherwise than their upstream offers them, by splice.
 *
 * Owns: nothing.
 * Driven by: the catalog (definitions) and call.c (arguments).
 * Invariants: one walk over each object, copying up to what changes; keys are compared
 * after decoding their escapes; every member of a name is treated, not the first alone.
 */
#include "mcpvisor/shape.h"

#include "mcpvisor/idmap.h"

#include <string.h>

/* Most keys have no escapes: then no memory is taken. */
static bool
key_is(struct jtext key, struct jtext text, bool (*same)(struct jtext, struct jtext))
{
	struct buf scratch;
	struct jtext mine;
	bool is;

	buf_init(&scratch, key.n);
	mine = json_text(key, &scratch);
	is = mine.p != NULL && same(mine, text);
	buf_fini(&scratch);
	return is;
}

bool
shape_key_is_like(struct jtext key, const char *text)
{
	return key_is(key, (struct jtext){text, strlen(text)}, jtext_is_like);
}

/* The first member of an object of ours whose key is that text; NULL is an empty object.
 */
static struct jtext
member_of(const char *object, struct jtext text, bool (*same)(struct jtext, struct jtext))
{
	struct jtext key, value, none = {NULL, 0};
	struct json_iter it;

	if (object == NULL)
		return none;
	json_iter_init(&it, (struct jtext){object, strlen(object)});
	while (json_next_member(&it, &key, &value))
		if (key_is(key, text, same))
			return value;
	return none;
}

/* ---- definitions ---- */

/* Whether an object of ours has a key that others wrote. */
static bool
object_has(const char *object, struct jtext key)
{
	struct buf scratch;
	struct jtext text;
	bool has;

	buf_init(&scratch, key.n);
	text = json_text(key, &scratch);
	has = text.p != NULL && member_of(object, text, jtext_is_equal).n != 0;
	buf_fini(&scratch);
	return has;
}

static bool
is_hidden(const struct tool_shape *s, struct jtext name)
{
	return object_has(s->fixed, name) || object_has(s->defaults, name);
}

/* What of an object or array stays, written one by one: the first of them comes where
 * the first of all was, the others keep the comma before them and the white space. */
struct keeper {
	struct buf *out;
	const char *end; /* of the last one, kept or not */
	bool any;
	struct jtext lead; /* white space before the first */
};

static void
keeper_take(struct keeper *k, const char *from, const char *to, bool keep)
{
	if (k->lead.p == NULL)
		k->lead = (struct jtext){k->end, (size_t)(from - k->end)};
	if (keep) {
		if (k->any)
			buf_add(k->out, k->end, (size_t)(from - k->end));
		else
			json_put(k->out, k->lead);
		buf_add(k->out, from, (size_t)(to - from));
		k->any = true;
	}
	k->end = to;
}

static void
put_properties(struct buf *out, struct jtext object, const struct tool_shape *s)
{
	struct keeper k = {.out = out, .end = object.p + 1};
	struct jtext key, value;
	struct json_iter it;

	buf_add_char(out, '{');
	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &value))
		keeper_take(&k, key.p, value.p + value.n, !is_hidden(s, key));
	buf_add(out, k.end, (size_t)(object.p + object.n - k.end));
}

static void
put_required(struct buf *out, struct jtext array, const struct tool_shape *s)
{
	struct keeper k = {.out = out, .end = array.p + 1};
	struct json_iter it;
	struct jtext value;

	buf_add_char(out, '[');
	json_iter_init(&it, array);
	while (json_next_element(&it, &value))
		keeper_take(&k, value.p, value.p + value.n, !is_hidden(s, value));
	buf_add(out, k.end, (size_t)(array.p + array.n - k.end));
}

/* Copies a text in pieces. */
struct copier {
	struct buf *out;
	const char *at; /* what is not copied yet begins here */
};

/* Copies up to t, which the caller puts something in place of. */
static void
copy_up_to(struct copier *c, struct jtext t)
{
	buf_add(c->out, c->at, (size_t)(t.p - c->at));
	c->at = t.p + t.n;
}

static void
copy_rest(struct copier *c, struct jtext whole)
{
	buf_add(c->out, c->at, (size_t)(whole.p + whole.n - c->at));
}

static void
put_schema(struct buf *out, struct jtext schema, const struct tool_shape *s)
{
	struct copier c = {.out = out, .at = schema.p};
	struct jtext key, value;
	struct json_iter it;

	json_iter_init(&it, schema);
	while (json_next_member(&it, &key, &value)) {
		if (jtext_type(value) == '{' && json_string_is(key, "properties")) {
			copy_up_to(&c, value);
			put_properties(out, value, s);
		} else if (jtext_type(value) == '[' && json_string_is(key, "required")) {
			copy_up_to(&c, value);
			put_required(out, value, s);
		}
	}
	copy_rest(&c, schema);
}

static void
put_text(struct buf *out, const char *text)
{
	json_put_string(out, text, strlen(text));
}

/* As a part of a JSON string. */
static void
put_inside(struct buf *out, const char *text)
{
	size_t at = out->len;

	put_text(out, text);
	if (out->err != MV_OK)
		return;
	out->len--; /* its last quote, and its first */
	memmove(out->data + at, out->data + at + 1, out->len - at - 1);
	out->len--;
}

/* In place of its own description (absent: it has none): that of the conf, and what it
 * returns. */
static void
put_description(
    struct buf *out, struct jtext own, const struct tool_shape *s, const char *returns)
{
	size_t at;

	if (returns == NULL) {
		put_text(out, s->description);
		return;
	}
	buf_add_char(out, '"');
	at = out->len;
	if (s->description != NULL)
		put_inside(out, s->description);
	else if (jtext_type(own) == '"')
		buf_add(out, own.p + 1, own.n - 2);
	if (out->len > at)
		buf_add_str(out, "\\n\\n");
	put_inside(out, returns);
	buf_add_char(out, '"');
}

/* What probe has found, unless the tool has become another one since. */
static const char *
returns_of(const struct tool_shape *s, struct jtext definition)
{
	return s->returns != NULL && s->returns_of == hash_stable(HASH_STABLE_SEED,
							  definition.p, definition.n)
		   ? s->returns
		   : NULL;
}

static bool
has_description(struct jtext definition)
{
	return json_member(definition, "description").n != 0;
}

/* The description behind the name, if the definition has no place for it. */
static void
put_missing_description(struct buf *out, struct jtext definition,
    const struct tool_shape *s, const char *returns)
{
	if (has_description(definition))
		return;
	buf_add_str(out, ",\"description\":");
	put_description(out, (struct jtext){NULL, 0}, s, returns);
}

void
shape_put_definition(struct buf *out, struct jtext definition, struct jtext name,
    struct jtext published, const struct tool_shape *s)
{
	struct copier c = {.out = out, .at = definition.p};
	bool cuts = s != NULL && (s->fixed != NULL || s->defaults != NULL), describes;
	struct jtext key, value;
	const char *returns;
	struct json_iter it;

	if (s == NULL) {
		copy_up_to(&c, name);
		json_put(out, published);
		copy_rest(&c, definition);
		return;
	}
	returns = returns_of(s, definition);
	describes = s->description != NULL || returns != NULL;
	json_iter_init(&it, definition);
	while (json_next_member(&it, &key, &value)) {
		if (value.p == name.p) {
			copy_up_to(&c, value);
			json_put(out, published);
			if (describes)
				put_missing_description(out, definition, s, returns);
		} else if (describes && json_string_is(key, "description")) {
			copy_up_to(&c, value);
			put_description(out, value, s, returns);
		} else if (cuts && jtext_type(value) == '{' &&
			   json_string_is(key, "inputSchema")) {
			copy_up_to(&c, value);
			put_schema(out, value, s);
		}
	}
	copy_rest(&c, definition);
}

/* ---- arguments ---- */

/* A value from the conf may be written over lines, which no message may. White space is
 * all that a line feed can be: a string has none. */
static void
put_ours(struct buf *out, struct jtext t)
{
	for (size_t i = 0; i < t.n; i++)
		buf_add_char(out, t.p[i] == '\n' || t.p[i] == '\r' ? ' ' : t.p[i]);
}

struct argument_walk {
	struct copier c;
	const struct tool_shape *s;
	struct jtext object; /* the client's; absent: none */
	const char *end;     /* of its last member, or its opening brace */
	bool any;	     /* something is written already */
	struct buf scratch;
};

/* The client's members, the fixed ones of them with our values. */
static enum mv_err
put_clients(struct argument_walk *w, struct jtext *bad)
{
	struct jtext key, value, text, ours;
	struct json_iter it;

	json_iter_init(&it, w->object);
	while (json_next_member(&it, &key, &value)) {
		w->any = true;
		w->end = value.p + value.n;
		text = json_text(key, &w->scratch);
		if (text.p == NULL)
			return MV_NOMEM;
		ours = member_of(w->s->fixed, text, jtext_is_equal);
		if (ours.n != 0) {
			copy_up_to(&w->c, value);
			put_ours(w->c.out, ours);
		} else if (member_of(w->s->fixed, text, jtext_is_like).n != 0) {
			*bad = key;
			return MV_PARAMS;
		}
	}
	return MV_OK;
}

static bool
client_has(struct argument_walk *w, struct jtext text)
{
	struct jtext key, value, mine;
	struct json_iter it;

	json_iter_init(&it, w->object);
	while (json_next_member(&it, &key, &value)) {
		mine = json_text(key, &w->scratch);
		if (mine.p != NULL && jtext_is_equal(mine, text))
			return true;
	}
	return false;
}

/* Whether the member (key, value) of ours is to be added: the client has none of that
 * name, nor has not_in, and it is the first one of ours. */
static bool
is_missing(struct argument_walk *w, const char *ours, const char *not_in,
    struct jtext key, struct jtext value)
{
	struct buf scratch;
	struct jtext text;
	bool is;

	buf_init(&scratch, key.n);
	text = json_text(key, &scratch);
	is = text.p != NULL && !client_has(w, text) &&
	     member_of(not_in, text, jtext_is_equal).n == 0 &&
	     member_of(ours, text, jtext_is_equal).p == value.p;
	buf_fini(&scratch);
	return is;
}

static void
put_missing(struct argument_walk *w, const char *ours, const char *not_in)
{
	struct jtext key, value;
	struct json_iter it;

	if (ours == NULL)
		return;
	json_iter_init(&it, (struct jtext){ours, strlen(ours)});
	while (json_next_member(&it, &key, &value)) {
		if (!is_missing(w, ours, not_in, key, value))
			continue;
		if (w->any)
			buf_add_char(w->c.out, ',');
		w->any = true;
		json_put(w->c.out, key);
		buf_add_char(w->c.out, ':');
		put_ours(w->c.out, value);
	}
}

enum mv_err
shape_put_arguments(struct buf *out, struct jtext arguments, const struct tool_shape *s,
    struct jtext *bad)
{
	struct argument_walk w = {.c = {.out = out}, .s = s, .object = arguments};
	enum mv_err err;

	*bad = (struct jtext){NULL, 0};
	if (arguments.n == 0)
		w.object = (struct jtext){"{}", 2};
	if (jtext_type(w.object) != '{')
		return MV_PARAMS;
	buf_init(&w.scratch, w.object.n);
	w.c.at = w.object.p;
	w.end = w.object.p + 1;
	err = put_clients(&w, bad);
	if (err == MV_OK) {
		copy_up_to(&w.c, (struct jtext){w.end, 0});
		put_missing(&w, s->fixed, NULL);
		put_missing(&w, s->defaults, s->fixed);
		copy_rest(&w.c, w.object);
		err = out->err;
	}
	buf_fini(&w.scratch);
	return err;
}

struct jtext
shape_fixed_in(struct jtext arguments, const struct tool_shape *s)
{
	static const struct jtext none = {NULL, 0};
	struct jtext key, value;
	struct json_iter it;

	if (s->fixed == NULL || jtext_type(arguments) != '{')
		return none;
	json_iter_init(&it, arguments);
	while (json_next_member(&it, &key, &value))
		if (object_has(s->fixed, key))
			return key;
	return none;
}
