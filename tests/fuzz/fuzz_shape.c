/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: definitions and arguments by splice.
 *
 * Lines: the fixed arguments, the defaults, the description (a JSON string, or nothing),
 * then the arguments of a client and a definition, if they are objects. What comes out is
 * one line of JSON; the fixed arguments are in it with our values, once each if the
 * client did not repeat them; every other member of the client's is there as it came; a
 * definition differs from what it was in its name, its description and the members that
 * are hidden.
 */
#include "mcpvisor/shape.h"

#include "fuzz_rig.h"

static bool
key_is(struct jtext key, struct jtext other)
{
	struct buf a, b;
	bool is;

	buf_init(&a, key.n);
	buf_init(&b, other.n);
	is = json_string_decode(key, &a) && json_string_decode(other, &b) &&
	     same_bytes((struct jtext){a.data, a.len}, (struct jtext){b.data, b.len});
	buf_fini(&a);
	buf_fini(&b);
	return is;
}

/* How often an object has the key, and its first value. Absent: none. */
static unsigned
count_of(struct jtext object, struct jtext wanted, struct jtext *value)
{
	struct json_iter it;
	struct jtext k, v;
	unsigned n = 0;

	json_iter_init(&it, object);
	while (json_next_member(&it, &k, &v))
		if (key_is(k, wanted) && n++ == 0 && value != NULL)
			*value = v;
	return n;
}

static bool
has(struct jtext object, struct jtext key)
{
	return count_of(object, key, NULL) > 0;
}

/* Equal but for line breaks, in place of which spaces are. */
static bool
is_ours(struct jtext a, struct jtext ours)
{
	if (a.n != ours.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (a.p[i] != ours.p[i] &&
		    !(a.p[i] == ' ' && (ours.p[i] == '\n' || ours.p[i] == '\r')))
			return false;
	return true;
}

static void
check_line(const struct buf *out)
{
	MCPVISOR_ASSERT(out->err == MV_OK);
	MCPVISOR_ASSERT(is_json((struct jtext){out->data, out->len}, JSON_K_OBJECT));
	MCPVISOR_ASSERT(memchr(out->data, '\n', out->len) == NULL);
}

struct texts {
	struct jtext fixed, defaults, arguments, definition;
	struct tool_shape s;
};

/* ---- arguments ---- */

/* The client's members come first, in their order. */
static void
check_clients(const struct texts *t, struct json_iter *out)
{
	struct json_iter it;
	struct jtext key, value, k, v, ours;

	json_iter_init(&it, t->arguments);
	while (json_next_member(&it, &key, &value)) {
		MCPVISOR_ASSERT(json_next_member(out, &k, &v) && same_bytes(k, key));
		if (count_of(t->fixed, key, &ours) > 0)
			MCPVISOR_ASSERT(is_ours(v, ours));
		else
			MCPVISOR_ASSERT(same_bytes(v, value));
	}
}

/* What we added: of ours, and nothing that the client had. */
static void
check_added(const struct texts *t, struct jtext after, struct json_iter *out)
{
	struct jtext k, v, ours;

	while (json_next_member(out, &k, &v)) {
		MCPVISOR_ASSERT(!has(t->arguments, k) && count_of(after, k, NULL) == 1);
		MCPVISOR_ASSERT(count_of(t->fixed, k, &ours) > 0 ||
				count_of(t->defaults, k, &ours) > 0);
		MCPVISOR_ASSERT(is_ours(v, ours));
	}
}

static void
check_all_there(struct jtext ours, struct jtext after)
{
	struct json_iter it;
	struct jtext key, value;

	json_iter_init(&it, ours);
	while (json_next_member(&it, &key, &value))
		MCPVISOR_ASSERT(has(after, key));
}

/* Whether the client wrote a fixed one in another case. */
static bool
has_variant(const struct texts *t, struct jtext key)
{
	struct json_iter it;
	struct jtext k, v;
	bool like = false;

	if (has(t->fixed, key))
		return false;
	json_iter_init(&it, t->fixed);
	while (!like && json_next_member(&it, &k, &v)) {
		struct buf text;

		buf_init(&text, k.n + 1);
		MCPVISOR_ASSERT(json_string_decode(k, &text));
		/* The function takes a text without NUL. */
		like = (text.len == 0 || memchr(text.data, '\0', text.len) == NULL) &&
		       shape_key_is_like(key, buf_cstr(&text));
		buf_fini(&text);
	}
	return like;
}

static void
check_arguments(const struct texts *t)
{
	struct jtext bad, after, key, value;
	struct json_iter it;
	struct buf out;
	enum mv_err err;

	buf_init(&out, SIZE_MAX / 2);
	err = shape_put_arguments(&out, t->arguments, &t->s, &bad);
	if (err == MV_OK) {
		after = (struct jtext){out.data, out.len};
		check_line(&out);
		json_iter_init(&it, after);
		check_clients(t, &it);
		check_added(t, after, &it);
		check_all_there(t->fixed, after);
		check_all_there(t->defaults, after);
	} else {
		MCPVISOR_ASSERT(err == MV_PARAMS && bad.n > 0);
		MCPVISOR_ASSERT(!has(t->fixed, bad));
	}
	json_iter_init(&it, t->arguments);
	while (json_next_member(&it, &key, &value))
		MCPVISOR_ASSERT(err != MV_OK || !has_variant(t, key));
	buf_fini(&out);
}

/* ---- definitions ---- */

static bool
is_hidden(const struct texts *t, struct jtext key)
{
	return has(t->fixed, key) || has(t->defaults, key);
}

static void
check_properties(const struct texts *t, struct jtext before, struct jtext after)
{
	struct json_iter a, b;
	struct jtext ka, va, kb, vb;

	json_iter_init(&a, before);
	json_iter_init(&b, after);
	while (json_next_member(&a, &ka, &va)) {
		if (is_hidden(t, ka))
			continue;
		MCPVISOR_ASSERT(json_next_member(&b, &kb, &vb));
		MCPVISOR_ASSERT(same_bytes(ka, kb) && same_bytes(va, vb));
	}
	MCPVISOR_ASSERT(!json_next_member(&b, &kb, &vb));
}

static void
check_required(const struct texts *t, struct jtext before, struct jtext after)
{
	struct json_iter a, b;
	struct jtext va, vb;

	json_iter_init(&a, before);
	json_iter_init(&b, after);
	while (json_next_element(&a, &va)) {
		if (jtext_type(va) == '"' && is_hidden(t, va))
			continue;
		MCPVISOR_ASSERT(json_next_element(&b, &vb) && same_bytes(va, vb));
	}
	MCPVISOR_ASSERT(!json_next_element(&b, &vb));
}

static void
check_schema(const struct texts *t, struct jtext before, struct jtext after)
{
	struct json_iter a, b;
	struct jtext ka, va, kb, vb;

	json_iter_init(&a, before);
	json_iter_init(&b, after);
	while (json_next_member(&a, &ka, &va)) {
		MCPVISOR_ASSERT(json_next_member(&b, &kb, &vb) && same_bytes(ka, kb));
		if (json_string_is(ka, "properties") && jtext_type(va) == '{')
			check_properties(t, va, vb);
		else if (json_string_is(ka, "required") && jtext_type(va) == '[')
			check_required(t, va, vb);
		else
			MCPVISOR_ASSERT(same_bytes(va, vb));
	}
	MCPVISOR_ASSERT(!json_next_member(&b, &kb, &vb));
}

#define PUBLISHED "\"p_x41\""

static void
check_member(const struct texts *t, struct jtext key, struct jtext before,
    struct jtext after, bool is_name)
{
	struct jtext published = {PUBLISHED, strlen(PUBLISHED)};

	if (is_name)
		MCPVISOR_ASSERT(same_bytes(after, published));
	else if (t->s.description != NULL && json_string_is(key, "description"))
		MCPVISOR_ASSERT(json_string_is(after, t->s.description));
	else if (json_string_is(key, "inputSchema") && jtext_type(before) == '{')
		check_schema(t, before, after);
	else
		MCPVISOR_ASSERT(same_bytes(after, before));
}

static void
check_members(const struct texts *t, struct jtext name, struct jtext after)
{
	bool adds =
	    t->s.description != NULL && json_member(t->definition, "description").n == 0;
	struct json_iter a, b;
	struct jtext ka, va, kb, vb;

	json_iter_init(&a, t->definition);
	json_iter_init(&b, after);
	while (json_next_member(&a, &ka, &va)) {
		MCPVISOR_ASSERT(json_next_member(&b, &kb, &vb) && same_bytes(ka, kb));
		check_member(t, ka, va, vb, va.p == name.p);
		if (va.p == name.p && adds) {
			MCPVISOR_ASSERT(json_next_member(&b, &kb, &vb));
			MCPVISOR_ASSERT(json_string_is(kb, "description"));
			MCPVISOR_ASSERT(json_string_is(vb, t->s.description));
		}
	}
	MCPVISOR_ASSERT(!json_next_member(&b, &kb, &vb));
}

static void
check_definition(const struct texts *t)
{
	struct jtext name = json_member(t->definition, "name");
	struct jtext published = {PUBLISHED, strlen(PUBLISHED)};
	struct buf out, plain;

	if (jtext_type(name) != '"')
		return;
	buf_init(&out, SIZE_MAX / 2);
	buf_init(&plain, SIZE_MAX / 2);
	shape_put_definition(&out, t->definition, name, published, &t->s);
	check_line(&out);
	check_members(t, name, (struct jtext){out.data, out.len});
	/* Without a shape the name alone. */
	shape_put_definition(&plain, t->definition, name, published, NULL);
	check_line(&plain);
	MCPVISOR_ASSERT(plain.len == t->definition.n - name.n + published.n);
	buf_fini(&out);
	buf_fini(&plain);
}

static struct jtext
line_of(struct jtext *rest, enum json_kind kind)
{
	struct jtext line = next_line(rest), none = {NULL, 0};

	/* An object stands alone, as a value of a message does. */
	if (!is_json(line, kind) || line.p[0] <= ' ' || line.p[line.n - 1] <= ' ')
		return none;
	return line;
}

/* As a conf may have it: broken into lines. */
static char *
conf_text(struct jtext t, struct jtext *out)
{
	char *text;

	*out = t;
	if (t.n == 0)
		return NULL;
	text = mem_xstrndup(t.p, t.n);
	out->p = text;
	for (char *c = text; *c; c++)
		if (*c == '\f')
			*c = '\n';
	return text;
}

static char *
description_of(struct jtext t)
{
	struct buf b;
	char *text = NULL;

	buf_init(&b, t.n + 1);
	if (json_string_decode(t, &b) &&
	    (b.len == 0 || memchr(b.data, '\0', b.len) == NULL))
		text = mem_xstrdup(buf_cstr(&b));
	buf_fini(&b);
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size);
	struct jtext rest = {text, size};
	struct texts t = {.s = {.tool = NULL}};

	t.s.fixed = conf_text(line_of(&rest, JSON_K_OBJECT), &t.fixed);
	t.s.defaults = conf_text(line_of(&rest, JSON_K_OBJECT), &t.defaults);
	t.s.description = description_of(line_of(&rest, JSON_K_STRING));
	t.arguments = line_of(&rest, JSON_K_OBJECT);
	t.definition = line_of(&rest, JSON_K_OBJECT);
	check_arguments(&t);
	if (t.definition.n > 0)
		check_definition(&t);
	mem_free(t.s.fixed);
	mem_free(t.s.defaults);
	mem_free(t.s.description);
	mem_free(text);
	return 0;
}
