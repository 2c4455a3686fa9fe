/* SPDX-License-Identifier: MIT */
/*
 * The shape of an answer, and a sample of it.
 *
 * Owns: nothing. Driven by: what probe writes down.
 * Invariants: a shape holds no value, nor a key that may be one: a description that is
 * made of it is read by models. It is never longer than its bound.
 */
#include "mcpvisor/sample.h"

#include "payload_priv.h"
#include "sample_priv.h"

#include "mcpvisor/utf8.h"

#include <string.h>

#define SHAPE_BYTES 600
#define SHAPE_DEPTH 3
#define SHAPE_MORE  ", ...}"
/* Longer ones are no names of members. */
#define SHAPE_KEY_BYTES 64
/* Of a list: "[N of A or B ...]". */
#define SHAPE_KINDS 6

static const char *
kind_of(struct jtext value)
{
	switch (jtext_type(value)) {
	case '{':
		return "object";
	case '[':
		return "list";
	case '"':
		return "string";
	case 't':
	case 'f':
		return "boolean";
	case 'n':
		return "null";
	default:
		return "number";
	}
}

/* What a program would call a member. All else may be data: names of people, addresses,
 * ids, or a sentence that a model would read. */
static bool
is_name(struct jtext key)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "_$0123456789.-";
	const size_t n_first = sizeof(chars) - 1 - 12;

	if (key.n < 3 || key.n > SHAPE_KEY_BYTES + 2 ||
	    memchr(chars, key.p[1], n_first) == NULL)
		return false;
	for (size_t i = 2; i < key.n - 1; i++)
		if (memchr(chars, key.p[i], sizeof(chars) - 1) == NULL)
			return false;
	return true;
}

static void put_shape(struct buf *out, struct jtext value, unsigned depth);

/* With a bound it ends early, after what still fits; 0: none. */
static void
put_object(struct buf *out, struct jtext object, unsigned depth, size_t bound)
{
	bool has_data = false, is_first = true;
	struct jtext key, value;
	struct json_iter it;

	buf_add_char(out, '{');
	json_iter_init(&it, object);
	while (out->err == MV_OK && json_next_member(&it, &key, &value)) {
		size_t before = out->len;
		bool names = is_name(key);

		if (!names && has_data)
			continue;
		has_data = has_data || !names;
		buf_add_str(out, is_first ? "" : ", ");
		if (names)
			buf_add(out, key.p + 1, key.n - 2);
		else
			buf_add_char(out, '*');
		buf_add_str(out, ": ");
		put_shape(out, value, depth);
		if (bound > 0 && out->len + sizeof(SHAPE_MORE) > bound) {
			out->len = before;
			buf_add_str(out, SHAPE_MORE);
			return;
		}
		is_first = false;
	}
	buf_add_char(out, '}');
}

/* A kind of elements is shown by the first of them. */
static void
put_list(struct buf *out, struct jtext list, unsigned depth)
{
	struct jtext first[SHAPE_KINDS], value;
	unsigned n_kinds = 0, i;
	struct json_iter it;
	uint64_t n = 0;

	json_iter_init(&it, list);
	for (; json_next_element(&it, &value); n++) {
		for (i = 0; i < n_kinds && kind_of(first[i]) != kind_of(value); i++)
			continue;
		if (i == n_kinds && n_kinds < SHAPE_KINDS)
			first[n_kinds++] = value;
	}
	buf_add_char(out, '[');
	if (n > 0)
		buf_add_u64(out, n);
	for (i = 0; depth > 0 && i < n_kinds; i++) {
		buf_add_str(out, i == 0 ? " of " : " or ");
		put_shape(out, first[i], depth - 1);
	}
	buf_add_char(out, ']');
}

/* depth: of containers that are opened. */
static void
put_shape(struct buf *out, struct jtext value, unsigned depth)
{
	char type = jtext_type(value);

	if (type == '[')
		put_list(out, value, depth);
	else if (type != '{')
		buf_add_str(out, kind_of(value));
	else if (depth > 0)
		put_object(out, value, depth - 1, 0);
	else
		buf_add_str(out, "object");
}

/* Rather all members and less of each than the other way round. */
static void
put_value(struct buf *out, struct jtext value)
{
	struct buf shape;
	unsigned depth = SHAPE_DEPTH;

	buf_init(&shape, SHAPE_BYTES);
	put_shape(&shape, value, depth);
	while (shape.err != MV_OK && depth > 1) {
		buf_reset(&shape);
		put_shape(&shape, value, --depth);
	}
	if (shape.err != MV_OK) {
		buf_reset(&shape);
		/* Room for the member that is taken back. */
		shape.max = SHAPE_BYTES + SHAPE_KEY_BYTES + 32;
		if (jtext_type(value) == '{')
			put_object(&shape, value, 0, SHAPE_BYTES);
		else
			put_shape(&shape, value, 0);
	}
	buf_add(out, shape.data, shape.len);
	buf_fini(&shape);
}

static bool
put_blocks(struct buf *out, struct jtext content)
{
	/* What MCP knows; the last one stands for all else. */
	static const char *const types[] = {
	    "text", "image", "audio", "resource", "resource_link", "other"};
	enum { N_TYPES = sizeof(types) / sizeof(types[0]) };
	uint64_t n[N_TYPES] = {0};
	struct json_iter it;
	struct jtext block;
	bool is_first = true;

	json_iter_init(&it, content);
	while (json_next_element(&it, &block)) {
		struct jtext type = json_member(block, "type");
		unsigned i = 0;

		while (i < N_TYPES - 1 && !json_string_is(type, types[i]))
			i++;
		n[i]++;
	}
	for (unsigned i = 0; i < N_TYPES; i++) {
		if (n[i] == 0)
			continue;
		buf_add_str(out, is_first ? "" : ", ");
		if (n[i] > 1) {
			buf_add_u64(out, n[i]);
			buf_add_str(out, " of ");
		}
		buf_add_str(out, types[i]);
		is_first = false;
	}
	return !is_first;
}

bool
sample_put_shape(struct buf *out, const char *base, const struct json_msg *json)
{
	struct payload p;
	bool is = true;

	payload_find(&p, base, json, CAP_SAMPLED_BYTES);
	if (p.kind == PAYLOAD_VALUE)
		put_value(out, p.value);
	else
		is = put_blocks(out, p.content);
	payload_fini(&p);
	return is;
}

void
sample_put_redacted_text(struct buf *out, struct jtext text, size_t max)
{
	struct buf clean;

	buf_init(&clean, CAP_MESSAGE_BYTES);
	sample_redact_text(&clean, text, max);
	if (clean.len > 0)
		buf_add(out, clean.data, utf8_cut(clean.data, clean.len, max));
	buf_fini(&clean);
}

void
sample_put_redacted(
    struct buf *out, const char *base, const struct json_msg *json, size_t max)
{
	struct payload p;
	struct buf clean;

	buf_init(&clean, CAP_MESSAGE_BYTES);
	payload_find(&p, base, json, CAP_SAMPLED_BYTES);
	if (p.kind == PAYLOAD_VALUE)
		sample_redact_json(&clean, p.value, max);
	else if (p.kind == PAYLOAD_PROSE)
		sample_redact_text(&clean, p.text, max);
	if (clean.len > 0)
		buf_add(out, clean.data, utf8_cut(clean.data, clean.len, max));
	payload_fini(&p);
	buf_fini(&clean);
}
