/* SPDX-License-Identifier: MIT */
/*
 * Specifications as JSON Schema, in the few words that every host understands.
 *
 * Driven by: whoever lists tools; pure.
 * Invariants: one line; members in one order, so that equal specifications have equal
 * bytes.
 */
#include "argspec_priv.h"

#include <string.h>

/* An object that is being written. */
struct schema_out {
	struct buf *out;
	bool has_member;
};

static struct buf *
schema_key(struct schema_out *o, const char *key)
{
	buf_addf(o->out, "%s\"%s\":", o->has_member ? "," : "", key);
	o->has_member = true;
	return o->out;
}

static void
schema_put_text(struct schema_out *o, const char *key, const char *text)
{
	if (text != NULL)
		json_put_string(schema_key(o, key), text, strlen(text));
}

static void
schema_put_json(struct schema_out *o, const char *key, const char *text)
{
	if (text != NULL)
		json_put_compact(schema_key(o, key), argspec_text(text));
}

/* 0 is no bound, as a lower one and as an upper one. */
static void
schema_put_bound(struct schema_out *o, const char *key, uint32_t bound)
{
	if (bound > 0)
		buf_add_u64(schema_key(o, key), bound);
}

static void
schema_put_values(struct schema_out *o, const struct argspec *s)
{
	const char *comma = "";

	if (s->n_shown == 0)
		return;
	buf_add_char(schema_key(o, "enum"), '[');
	for (size_t i = 0; i < s->n_shown; i++) {
		if (s->values[i][0] == '\0')
			continue;
		buf_add_str(o->out, comma);
		json_put_string(o->out, s->values[i], strlen(s->values[i]));
		comma = ",";
	}
	buf_add_char(o->out, ']');
}

static void
schema_put_pattern(struct schema_out *o, const struct pattern *p)
{
	const char *text;
	struct buf whole;

	if (p == NULL)
		return;
	text = pattern_text(p);
	if (!pattern_is_anchored(p)) {
		schema_put_text(o, "pattern", text);
		return;
	}
	buf_init(&whole, SIZE_MAX / 2);
	buf_addf(&whole, "^(?:%s)$", text);
	if (buf_cstr(&whole) != NULL)
		schema_put_text(o, "pattern", whole.data);
	buf_fini(&whole);
}

static void
schema_put_required(struct schema_out *o, const struct argspec *s)
{
	bool has_one = false;

	for (size_t i = 0; i < s->n_members; i++) {
		const char *name = s->members[i]->name;

		if (!s->members[i]->is_required)
			continue;
		if (has_one)
			buf_add_char(o->out, ',');
		else
			buf_add_char(schema_key(o, "required"), '[');
		json_put_string(o->out, name, strlen(name));
		has_one = true;
	}
	if (has_one)
		buf_add_char(o->out, ']');
}

static void
schema_put_members(struct schema_out *o, const struct argspec *s)
{
	/* An open one without members is just an object. */
	if (s->n_members > 0 || !s->is_open) {
		buf_add_char(schema_key(o, "properties"), '{');
		for (size_t i = 0; i < s->n_members; i++) {
			const struct argspec *m = s->members[i];

			if (i > 0)
				buf_add_char(o->out, ',');
			json_put_string(o->out, m->name, strlen(m->name));
			buf_add_char(o->out, ':');
			argspec_put_schema(m, o->out);
		}
		buf_add_char(o->out, '}');
	}
	schema_put_required(o, s);
	if (!s->is_open)
		buf_add_str(schema_key(o, "additionalProperties"), "false");
	schema_put_bound(o, "minProperties", s->min_members);
	schema_put_bound(o, "maxProperties", s->max_members);
}

void
argspec_put_schema(const struct argspec *s, struct buf *out)
{
	struct schema_out o = {.out = out};

	buf_add_char(out, '{');
	if (s->type != ARG_ANY)
		schema_put_text(&o, "type", arg_type_words[s->type]);
	schema_put_text(&o, "description", s->description);
	if (s->type == ARG_STRING) {
		schema_put_values(&o, s);
		schema_put_bound(&o, "minLength", s->min_length);
		schema_put_bound(&o, "maxLength", s->max_length);
		schema_put_pattern(&o, s->pattern);
		schema_put_text(&o, "format", s->format);
	}
	if (s->type == ARG_INTEGER || s->type == ARG_NUMBER) {
		schema_put_json(&o, "minimum", s->min_text);
		schema_put_json(&o, "maximum", s->max_text);
	}
	if (s->type == ARG_ARRAY) {
		if (s->items != NULL)
			argspec_put_schema(s->items, schema_key(&o, "items"));
		schema_put_bound(&o, "maxItems", s->max_items);
	}
	if (s->type == ARG_OBJECT)
		schema_put_members(&o, s);
	schema_put_json(&o, "default", s->dflt);
	buf_add_char(out, '}');
}
