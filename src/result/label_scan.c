/* SPDX-License-Identifier: MIT */
/*
 * What one JSON value is as a GraphQL answer.
 *
 * Owns: nothing. Driven by: label_find.
 * Invariants: linear in the value, whatever it is nested; nothing is decided by the
 * wording of an error. The keys that stand in an answer are one table.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include "mcpvisor/json_scan.h"

#include <string.h>

/* X(KEY, key) */
#define ANSWER_KEYS(X)                                                                   \
	X(DATA, "data")                                                                  \
	X(ERRORS, "errors")                                                              \
	X(EXTENSIONS, "extensions")                                                      \
	X(HAS_NEXT, "hasNext")                                                           \
	X(PENDING, "pending")                                                            \
	X(INCREMENTAL, "incremental")                                                    \
	X(COMPLETED, "completed")                                                        \
	X(WARNING, "_warning")

enum answer_key {
#define X(id, key) KEY_##id,
	ANSWER_KEYS(X)
#undef X
	    KEY_MAX
};

struct answer {
	struct jtext of[KEY_MAX]; /* the first of each */
	bool has_other;
	bool is_bare;	   /* nothing but errors and extensions */
	bool is_ambiguous; /* data or errors twice */
};

/* ---- the word ---- */

#define WORD  "errors"
#define LANES 16
#define STEP  (2 * LANES)
#define BLOCK (STEP + sizeof(WORD) - 2)

struct lanes {
	unsigned char v __attribute__((vector_size(LANES)));
};

/* Where the word may begin in LANES bytes: three of its letters are where they have to
 * be. Few other words have them there. */
static inline struct lanes
word_begins(const char *p)
{
	struct lanes r, o, s;

	memcpy(&r, p + 1, LANES);
	memcpy(&o, p + 3, LANES);
	memcpy(&s, p + 5, LANES);
	r.v = (r.v == 'r') & (o.v == 'o') & (s.v == 's');
	return r;
}

/* All of a step at once: this is all that a result costs which has nothing. */
static bool
may_have_word(const char *p)
{
	struct lanes low = word_begins(p), high = word_begins(p + LANES);
	uint64_t hits[2];

	low.v |= high.v;
	memcpy(hits, &low, sizeof(hits));
	return (hits[0] | hits[1]) != 0;
}

bool
label_has_errors(struct jtext t)
{
	size_t at = 0, last = t.n - BLOCK;

	if (t.n < BLOCK)
		return t.n > 0 && memmem(t.p, t.n, WORD, sizeof(WORD) - 1) != NULL;
	for (;; at += STEP) {
		/* The rest is looked at with some of what is before it. */
		if (at > last)
			at = last;
		if (may_have_word(t.p + at) &&
		    memmem(t.p + at, BLOCK, WORD, sizeof(WORD) - 1) != NULL)
			return true;
		if (at == last)
			return false;
	}
}

/* ---- answers ---- */

/* Nearly always it is spelled plainly. */
static unsigned
answer_key_of(struct jtext key)
{
	static const struct {
		struct jtext plain;
		const char *text;
	} keys[] = {
#define X(id, key) {{"\"" key "\"", sizeof(key) + 1}, key},
	    ANSWER_KEYS(X)
#undef X
	};
	bool is_plain = memchr(key.p, '\\', key.n) == NULL;
	unsigned i = 0;

	while (i < KEY_MAX && !(is_plain ? jtext_is_equal(key, keys[i].plain)
					 : json_string_is(key, keys[i].text)))
		i++;
	return i;
}

static void
answer_read(struct answer *a, struct jtext object)
{
	struct jtext key, value;
	struct json_iter it;
	unsigned i;

	memset(a, 0, sizeof(*a));
	a->is_bare = true;
	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &value)) {
		i = answer_key_of(key);
		a->is_bare = a->is_bare && (i == KEY_ERRORS || i == KEY_EXTENSIONS);
		if (i == KEY_MAX)
			a->has_other = true;
		else if (a->of[i].n == 0)
			a->of[i] = value;
		else if (i == KEY_DATA || i == KEY_ERRORS)
			a->is_ambiguous = true;
	}
}

static bool
is_absent_or(struct jtext t, char type)
{
	return t.n == 0 || t.p[0] == 'n' || t.p[0] == type;
}

/* ---- survival ---- */

/* Goes on behind the bracket of a list. Whether the list ends there. */
static bool
enter_list(struct json_iter *it)
{
	do
		it->p++;
	while (it->p < it->end && json_is_space(*it->p));
	return it->p < it->end && *it->p == ']';
}

/* Whether there is a scalar or an empty list in it. The text is read token by token: by
 * going down into each value it would be read as often as it is deep. */
static bool
has_leaf(struct jtext value)
{
	struct json_iter it = {value.p, value.p + value.n};
	struct jtext token;

	while (it.p < it.end) {
		char c = *it.p;

		if (json_is_space(c) || strchr("{}],", c) != NULL) {
			it.p++;
			continue;
		}
		if (c == '[') {
			if (enter_list(&it))
				return true;
			continue;
		}
		if (!json_next_element(&it, &token))
			break;
		/* The comma, colon or bracket after it was taken too. */
		if (it.p[-1] != ':') {
			if (c != 'n')
				return true;
		} else if (json_string_is(token, "__typename")) {
			(void)json_next_element(&it, &token);
		}
	}
	return false;
}

static bool
survives(struct jtext data, bool is_deep)
{
	struct jtext key = {NULL, 0}, value;
	bool is_object = jtext_type(data) == '{';
	struct json_iter it;

	if (!is_object && jtext_type(data) != '[')
		return false;
	json_iter_init(&it, data);
	while (is_object ? json_next_member(&it, &key, &value)
			 : json_next_element(&it, &value)) {
		if (json_string_is(key, "__typename"))
			continue;
		if (is_deep ? has_leaf(value) : jtext_type(value) != 'n')
			return true;
	}
	return false;
}

static bool
answer_survives(const struct answer *a, bool is_deep)
{
	struct json_iter it;
	struct jtext part;

	if (survives(a->of[KEY_DATA], is_deep))
		return true;
	if (jtext_type(a->of[KEY_INCREMENTAL]) != '[')
		return false;
	json_iter_init(&it, a->of[KEY_INCREMENTAL]);
	while (json_next_element(&it, &part)) {
		if (survives(json_member(part, "data"), is_deep) ||
		    survives(json_member(part, "items"), is_deep))
			return true;
	}
	return false;
}

/* ---- verdicts ---- */

static void
count_errors(struct label_verdict *v, struct jtext errors)
{
	struct json_iter it;
	struct jtext error;

	if (jtext_type(errors) != '[')
		return;
	json_iter_init(&it, errors);
	while (json_next_element(&it, &error)) {
		if (v->n < LABEL_ERRORS_SHOWN)
			v->first[v->n] = error;
		v->n++;
	}
}

static void
count_errors_of_parts(struct label_verdict *v, struct jtext parts)
{
	struct json_iter it;
	struct jtext part;

	if (jtext_type(parts) != '[')
		return;
	json_iter_init(&it, parts);
	while (json_next_element(&it, &part))
		count_errors(v, json_member(part, "errors"));
}

/* Where the operator has said that it is GraphQL. */
static enum label_class
classify_known(
    const struct label_opts *o, const struct answer *a, struct label_verdict *v)
{
	unsigned before = v->n;

	if (a->is_ambiguous || (a->of[KEY_DATA].n == 0 && a->of[KEY_ERRORS].n == 0))
		return CLASS_NOTHING;
	if (!is_absent_or(a->of[KEY_ERRORS], '['))
		return CLASS_MALFORMED;
	count_errors(v, a->of[KEY_ERRORS]);
	count_errors_of_parts(v, a->of[KEY_INCREMENTAL]);
	count_errors_of_parts(v, a->of[KEY_COMPLETED]);
	if (v->n == before)
		return CLASS_CLEAN;
	return answer_survives(a, o->is_deep) ? CLASS_PARTIAL : CLASS_FAILED;
}

/* Of a batch. */
static enum label_class
classify_list(const struct label_opts *o, struct jtext list, struct label_verdict *v)
{
	bool is_empty = true, has_failed_all = true;
	struct json_iter it;
	struct jtext one;
	struct answer a;

	json_iter_init(&it, list);
	while (json_next_element(&it, &one)) {
		enum label_class class = CLASS_NOTHING;

		if (jtext_type(one) == '{') {
			answer_read(&a, one);
			class = classify_known(o, &a, v);
		}
		if (class == CLASS_NOTHING || class == CLASS_MALFORMED)
			return CLASS_NOTHING;
		is_empty = false;
		has_failed_all = has_failed_all && class == CLASS_FAILED;
	}
	if (is_empty)
		return CLASS_NOTHING;
	if (v->n == 0)
		return CLASS_CLEAN;
	return has_failed_all ? CLASS_FAILED : CLASS_PARTIAL;
}

/* Whether all have the one member that GraphQL asks for. */
static bool
are_errors(struct jtext errors)
{
	struct json_iter it;
	struct jtext error;

	json_iter_init(&it, errors);
	while (json_next_element(&it, &error)) {
		if (jtext_type(json_member(error, "message")) != '"')
			return false;
	}
	return true;
}

/* Where nobody has said what it is: only what can hardly be anything else. */
static enum label_class
classify_guess(struct label_work *w, const struct answer *a, struct label_verdict *v)
{
	struct jtext data = a->of[KEY_DATA], errors = a->of[KEY_ERRORS];

	if (a->is_ambiguous)
		return CLASS_NOTHING;
	count_errors(v, errors);
	if (is_absent_or(errors, '[') && v->n == 0)
		return !a->has_other && jtext_type(data) == '{' ? CLASS_CLEAN
								: CLASS_NOTHING;
	if (v->n == 0 || !are_errors(errors))
		return CLASS_NOTHING;
	if (a->has_other || !is_absent_or(a->of[KEY_EXTENSIONS], '{') ||
	    !is_absent_or(data, '{'))
		return data.n > 0 || a->is_bare ? CLASS_SUSPECT : CLASS_NOTHING;
	if (!w->tool.is_read)
		label_tool_read(&w->tool, w->o->definition);
	if (data.n == 0 ? !w->tool.is_evident : w->tool.is_vetoed)
		return CLASS_SUSPECT;
	return answer_survives(a, w->o->is_deep) ? CLASS_PARTIAL : CLASS_FAILED;
}

void
label_classify(struct label_work *w, struct jtext value, struct label_verdict *v)
{
	struct answer a;

	memset(v, 0, sizeof(*v));
	v->class = CLASS_NOTHING;
	if (jtext_type(value) == '{') {
		answer_read(&a, value);
		v->has_warning = a.of[KEY_WARNING].n > 0;
		v->class = w->o->mode == GRAPHQL_ON ? classify_known(w->o, &a, v)
						    : classify_guess(w, &a, v);
	} else if (jtext_type(value) == '[' && w->o->mode == GRAPHQL_ON) {
		v->class = classify_list(w->o, value, v);
	}
}
