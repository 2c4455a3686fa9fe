/* SPDX-License-Identifier: MIT */
/*
 * Where a result may hold a GraphQL answer: in structuredContent and in the texts of
 * content.
 *
 * Owns: nothing. Driven by: label.
 * Invariants: what is decoded is one string at a time, within the bound of a candidate;
 * offsets are those of the message as it came.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"
#include "payload_priv.h"

#include <string.h>

bool
label_find_members(struct label_work *w)
{
	const struct {
		const char *key;
		struct jtext *value;
	} members[] = {
	    {"content", &w->content},
	    {"structuredContent", &w->structured},
	    {"_meta", &w->meta},
	    {"isError", &w->is_error},
	    {"resultType", &w->result_type},
	};
	struct jtext key, value;
	struct json_iter it;

	json_iter_init(&it, w->result);
	while (json_next_member(&it, &key, &value)) {
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			if (!json_string_is(key, members[i].key))
				continue;
			if (members[i].value->n > 0)
				return false;
			*members[i].value = value;
		}
	}
	return true;
}

static bool
is_over(const struct label_work *w, struct jtext t)
{
	return t.n > w->o->max_bytes;
}

/* ---- strings ---- */

static unsigned
hex4(const char *p)
{
	unsigned u = 0;

	for (int i = 0; i < 4; i++)
		u = u * 16 + ((unsigned)p[i] & 0xf) + (p[i] > '9' ? 9 : 0);
	return u;
}

/* The length of what begins with a backslash, and of what it stands for. */
static size_t
escape_length(const char *p, const char *end, size_t *decoded)
{
	unsigned u;

	*decoded = 1;
	if (p[1] != 'u')
		return 2;
	u = hex4(p + 2);
	*decoded = u < 0x80 ? 1 : u < 0x800 ? 2 : 3;
	if (u < 0xd800 || u > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u')
		return 6;
	u = hex4(p + 8);
	if (u < 0xdc00 || u > 0xdfff)
		return 6;
	*decoded = 4;
	return 12;
}

/* How far a string has to be read to decode n bytes of it. */
static size_t
raw_length(struct jtext literal, size_t n)
{
	const char *p = literal.p + 1, *end = literal.p + literal.n - 1;
	size_t decoded;

	while (n > 0 && p < end) {
		size_t len = 1;

		decoded = 1;
		if (*p == '\\')
			len = escape_length(p, end, &decoded);
		p += len;
		n -= decoded < n ? decoded : n;
	}
	return (size_t)(p - literal.p);
}

/* The first byte that is no white space, as it is written; 0: there is none. */
static char
first_of(struct jtext literal)
{
	const char *p = literal.p + 1, *end = literal.p + literal.n - 1;

	while (p < end) {
		if (json_is_space(*p))
			p++;
		else if (*p == '\\' && strchr("ntr", p[1]) != NULL)
			p += 2;
		else if (*p == '\\' && p[1] == 'u' && json_is_space((char)hex4(p + 2)) &&
			 hex4(p + 2) < 0x80)
			p += 6;
		else
			return *p;
	}
	return '\0';
}

struct jtext
label_decode(struct label_work *w, struct jtext literal)
{
	struct jtext t = {NULL, 0};

	buf_reset(&w->text);
	w->text.max = literal.n;
	if (buf_reserve(&w->text, literal.n) != MV_OK)
		w->is_short = true;
	else if (json_string_decode(literal, &w->text))
		t = (struct jtext){w->text.data, w->text.len};
	return t;
}

/* The JSON that is all of a text; absent: none is, or it is nothing that answers. */
static struct jtext
whole_value(const struct label_work *w, struct jtext text)
{
	struct jtext none = {NULL, 0};
	char first = jtext_type(payload_trim(text));

	if (first != '{' && (first != '[' || w->o->mode != GRAPHQL_ON))
		return none;
	return payload_json(text);
}

struct jtext
label_text_value(const struct label_work *w, struct jtext text)
{
	struct jtext value = whole_value(w, text);

	return value.n > 0 ? value : whole_value(w, payload_unfence(text));
}

/* ---- candidates ---- */

/* literal: the string that the value stands in; absent: it is in the message itself. */
static void
look_at(
    struct label_work *w, struct jtext value, struct jtext literal, bool is_structured)
{
	struct label_candidate *c = &w->candidates[w->n];
	struct label_verdict v;

	if (value.n == 0 || ++w->n_seen > CAP_RESULT_CANDIDATES)
		return;
	label_classify(w, value, &v);
	w->classes |= 1u << v.class;
	if (v.class != CLASS_PARTIAL && v.class != CLASS_FAILED)
		return;
	if (w->n++ == 0) {
		w->l->n_errors = v.n;
		label_error_read(v.first[0], w->l->code, w->l->path);
	}
	*c = (struct label_candidate){.n = v.n,
	    .is_escaped = literal.n > 0,
	    .is_structured = is_structured,
	    .has_warning = v.has_warning};
	if (jtext_type(value) == '{' && literal.n > 0)
		c->inside = (uint32_t)(literal.p - w->base +
				       (ptrdiff_t)raw_length(literal,
					   (size_t)(value.p - w->text.data) + 1));
	else if (jtext_type(value) == '{')
		c->inside = (uint32_t)(value.p - w->base) + 1;
	if (v.class != CLASS_FAILED)
		return;
	if (!is_structured)
		w->has_failed_text = true;
	else
		label_put_failure(&w->failure, &v);
}

struct jtext
label_structured_value(struct label_work *w)
{
	struct jtext inner, none = {NULL, 0};
	char type = jtext_type(w->structured);

	w->is_string = w->is_unwrapped = false;
	if (type != '{' && (type != '[' || w->o->mode != GRAPHQL_ON))
		return none;
	if (label_has_root(w->o))
		return pointer_get(w->structured, w->o->root);
	inner = payload_unwrap(w->structured);
	w->is_unwrapped = true;
	if (jtext_type(inner) == '{')
		return inner;
	if (jtext_type(inner) == '"' && first_of(inner) != '\0') {
		w->is_string = true;
		inner = payload_json(label_decode(w, inner));
		if (jtext_type(inner) == '{')
			return inner;
	}
	w->is_string = w->is_unwrapped = false;
	return w->structured;
}

static void
look_at_structured(struct label_work *w)
{
	struct jtext value, literal = {NULL, 0};

	if (w->structured.n == 0)
		return;
	if (is_over(w, w->structured)) {
		if (label_has_errors(w->structured))
			w->classes |= 1u << CLASS_TOO_LARGE;
		return;
	}
	if (payload_json(w->structured).n == 0) {
		w->is_too_deep = true;
		return;
	}
	value = label_structured_value(w);
	if (w->is_string)
		literal = payload_unwrap(w->structured);
	look_at(w, value, literal, true);
}

bool
label_next_block(struct json_iter *it, struct label_block *b)
{
	struct jtext block, key, value, none = {NULL, 0};
	unsigned n_types = 0, n_texts = 0;
	struct json_iter members;

	if (!json_next_element(it, &block))
		return false;
	b->type = b->text = none;
	if (jtext_type(block) != '{')
		return true;
	json_iter_init(&members, block);
	while (json_next_member(&members, &key, &value)) {
		if (json_string_is(key, "type")) {
			b->type = value;
			n_types++;
		} else if (json_string_is(key, "text")) {
			b->text = value;
			n_texts++;
		}
	}
	if (n_types > 1 || n_texts > 1)
		b->text = none;
	return true;
}

static void
look_at_text(struct label_work *w, struct jtext literal)
{
	static const struct jtext sentence = {LABEL_SENTENCE, sizeof(LABEL_SENTENCE) - 1};
	struct jtext value;

	if (jtext_type(literal) != '"' || first_of(literal) == '\0')
		return;
	w->is_usable = true;
	if (literal.n > sentence.n && memcmp(literal.p + 1, sentence.p, sentence.n) == 0)
		w->has_sentence = true;
	if (is_over(w, literal)) {
		if (label_has_errors(literal))
			w->classes |= 1u << CLASS_TOO_LARGE;
		return;
	}
	/* A byte order mark begins with ef, or is an escape. */
	if (strchr("{[`\\\xef", first_of(literal)) == NULL)
		return;
	value = label_text_value(w, label_decode(w, literal));
	if (value.n > 0 && label_has_root(w->o))
		value = pointer_get(value, w->o->root);
	look_at(w, value, literal, false);
}

static bool
is_media(struct jtext type)
{
	static const char *const media[] = {
	    "image", "audio", "resource", "resource_link"};

	for (size_t i = 0; i < sizeof(media) / sizeof(media[0]); i++) {
		if (json_string_is(type, media[i]))
			return true;
	}
	return false;
}

void
label_find_candidates(struct label_work *w)
{
	struct label_block b;
	struct json_iter it;

	look_at_structured(w);
	if (jtext_type(w->content) != '[' || w->is_too_deep)
		return;
	json_iter_init(&it, w->content);
	while (w->n_seen <= CAP_RESULT_CANDIDATES && label_next_block(&it, &b)) {
		if (json_string_is(b.type, "text")) {
			look_at_text(w, b.text);
		} else if (jtext_type(b.type) == '"') {
			w->is_usable = true;
			w->has_media = w->has_media || is_media(b.type);
		}
	}
}
