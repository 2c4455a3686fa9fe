/* SPDX-License-Identifier: MIT */
/*
 * What an operator has declared to be a failure, and the pointers by which he says where.
 *
 * Owns: the texts of a rule. Driven by: conf (reading), label.
 * Invariants: a rule is a rule only with a valid pointer or pattern; a pointer leads
 * through objects, and nowhere where a key is there twice.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include "mcpvisor/json_scan.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* ---- pointers ---- */

const char *
label_pointer_step(const char *p, char step[LABEL_STEP_BYTES])
{
	size_t n = 0;

	for (p++; *p != '\0' && *p != '/'; p++) {
		char c = *p;

		if (c == '~') {
			p++;
			if (*p != '0' && *p != '1')
				return NULL;
			c = *p == '0' ? '~' : '/';
		}
		if (n == LABEL_STEP_BYTES - 1)
			return NULL;
		step[n++] = c;
	}
	step[n] = '\0';
	return p;
}

const char *
pointer_check(const char *s)
{
	char step[LABEL_STEP_BYTES];

	if (*s != '\0' && *s != '/')
		return "it does not begin with /";
	while (*s != '\0') {
		const char *next = label_pointer_step(s, step);

		if (next == NULL)
			return "a ~ is not ~0 or ~1, or a step is longer than 255 bytes";
		if ((step[0] != '\0' && strspn(step, "0123456789") == strlen(step)) ||
		    strcmp(step, "-") == 0)
			return "a step is an index, and it may lead through objects only";
		s = next;
	}
	return NULL;
}

struct jtext
pointer_get(struct jtext value, const char *pointer)
{
	struct jtext member, none = {NULL, 0};
	char step[LABEL_STEP_BYTES];

	while (*pointer != '\0' && value.n > 0) {
		pointer = label_pointer_step(pointer, step);
		if (pointer == NULL)
			return none;
		/* If it is there twice, readers differ. */
		if (!label_member_once(value, step, &member))
			return none;
		value = member;
	}
	return value;
}

/* ---- reading ---- */

static bool
is_scalar(const char *s)
{
	struct json_msg json;

	return json_scan(&json, s, strlen(s), false) == MV_OK &&
	       (json.kind == JSON_K_STRING || json.kind == JSON_K_SCALAR);
}

/* Without the white space around it. */
static char *
copy_trimmed(const char *s)
{
	size_t n = strlen(s);

	while (n > 0 && json_is_space(s[n - 1]))
		n--;
	for (; n > 0 && json_is_space(*s); n--)
		s++;
	return mem_xstrndup(s, n);
}

static bool
read_pointer(struct fail_rule *r, const char *s, struct mv_errtext *t)
{
	const char *equals = strchr(s, '='), *wrong;

	r->pointer = mem_xstrndup(s, equals != NULL ? (size_t)(equals - s) : strlen(s));
	wrong = *r->pointer != '\0' ? pointer_check(r->pointer) : "it names no member";
	if (wrong != NULL) {
		mv_errtext_set(t, "\"%s\" is no JSON Pointer: %s", r->pointer, wrong);
		return false;
	}
	if (equals == NULL)
		return true;
	if (!is_scalar(equals + 1)) {
		mv_errtext_set(t, "\"%s\" is no JSON string, number, true, false or null",
		    equals + 1);
		return false;
	}
	r->value = copy_trimmed(equals + 1);
	return true;
}

bool
fail_rule_read(struct fail_rule *r, const char *text, struct mv_errtext *t)
{
	static const char json[] = "json:", pattern[] = "text:";
	bool is_read = false;

	memset(r, 0, sizeof(*r));
	if (strncmp(text, json, sizeof(json) - 1) == 0) {
		is_read = read_pointer(r, text + sizeof(json) - 1, t);
	} else if (strncmp(text, pattern, sizeof(pattern) - 1) != 0) {
		mv_errtext_set(t, "\"%s\" begins with neither json: nor text:", text);
	} else if (text[sizeof(pattern) - 1] == '\0') {
		mv_errtext_set(t, "text: takes a regular expression");
	} else {
		r->pattern = pattern_new(text + sizeof(pattern) - 1, false, t);
		is_read = r->pattern != NULL;
	}
	if (is_read)
		r->text = mem_xstrdup(text);
	else
		fail_rule_fini(r);
	return is_read;
}

void
fail_rule_fini(struct fail_rule *r)
{
	mem_free(r->text);
	mem_free(r->pointer);
	mem_free(r->value);
	pattern_free(r->pattern);
	memset(r, 0, sizeof(*r));
}

/* ---- judging ---- */

/* What a member holds that has nothing to say: null, false, "", [] or {}. */
static bool
is_void(struct jtext t)
{
	struct json_iter it;
	struct jtext value;

	switch (jtext_type(t)) {
	case 'n':
	case 'f':
		return true;
	case '"':
		return t.n == 2;
	case '{':
	case '[':
		json_iter_init(&it, t);
		return !json_next_element(&it, &value);
	default:
		return false;
	}
}

static bool
is_failure(const struct fail_rule *r, struct jtext value)
{
	struct jtext found = pointer_get(value, r->pointer), want;

	if (found.n == 0)
		return false;
	if (r->value == NULL)
		return !is_void(found);
	want = (struct jtext){r->value, strlen(r->value)};
	if (jtext_type(want) == '"' && jtext_type(found) == '"')
		return json_id_is_same(found, want);
	return found.n == want.n && memcmp(found.p, want.p, want.n) == 0;
}

/* The first that hits of those before the one that has: text is what is decoded, value
 * the JSON in it; either may be absent. */
static unsigned
first_hit(struct label_work *w, struct jtext text, struct jtext value, unsigned hit)
{
	const struct label_opts *o = w->o;

	for (unsigned i = 0; i < o->n_rules && (hit == 0 || i + 1 < hit); i++) {
		const struct fail_rule *r = &o->rules[i];

		if (r->pointer != NULL ? is_failure(r, value)
				       : text.n > 0 && pattern_matches(r->pattern, text.p,
							   text.n, &w->steps))
			return i + 1;
	}
	return hit;
}

static bool
has_pointers(const struct label_opts *o)
{
	for (size_t i = 0; i < o->n_rules; i++)
		if (o->rules[i].pointer != NULL)
			return true;
	return false;
}

static unsigned
hit_texts(struct label_work *w, unsigned hit)
{
	struct jtext text, value = {NULL, 0};
	bool wants_value = has_pointers(w->o);
	struct label_block b;
	struct json_iter it;

	if (jtext_type(w->content) != '[')
		return hit;
	json_iter_init(&it, w->content);
	while (hit != 1 && label_next_block(&it, &b)) {
		if (!json_string_is(b.type, "text") || jtext_type(b.text) != '"' ||
		    b.text.n > w->o->max_bytes)
			continue;
		text = label_decode(w, b.text);
		if (wants_value)
			value = label_text_value(w, text);
		hit = first_hit(w, text, value, hit);
	}
	return hit;
}

unsigned
label_rules_hit(struct label_work *w)
{
	struct jtext none = {NULL, 0}, value;
	unsigned hit = 0;

	if (w->structured.n > 0 && w->structured.n <= w->o->max_bytes) {
		hit = first_hit(w, none, w->structured, hit);
		value = label_structured_value(w);
		hit = first_hit(w, none, value, hit);
	}
	return hit_texts(w, hit);
}
