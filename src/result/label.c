/* SPDX-License-Identifier: MIT */
/*
 * What a result says of itself, and the labels by which a model sees it.
 *
 * Owns: the texts of labels. Driven by: whoever passes a result on.
 * Invariants: what is untouched has no edits; isError only ever becomes true; a result
 * that an earlier hop has labelled is untouched. A result without the word "errors",
 * where no rules are set, costs a search for that word.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define DEFAULT_MAX_BYTES (1024u * 1024)
/* What the labels of a result take beside a copy of structuredContent. */
#define TEXT_BYTES ((size_t)(CAP_RESULT_CANDIDATES + 4) * LABEL_WARNING_BYTES + 16384)

const char *const graphql_mode_words[] = {"", "auto", "on", "off", NULL};
const char *const graphql_survival_words[] = {"", "shallow", "deep", NULL};
const char *const graphql_annotate_words[] = {"", "full", "meta", NULL};

const char *
label_reason_text(enum label_reason r)
{
	static const char *const texts[] = {
#define X(id, name) name,
	    LABEL_REASONS(X)
#undef X
	};

	return (unsigned)r < LABEL_REASON_MAX ? texts[r] : "none";
}

/* ---- conf ---- */

void
label_conf_fini(struct label_conf *c)
{
	mem_free(c->root);
	for (size_t i = 0; i < c->n_rules; i++)
		fail_rule_fini(&c->rules[i]);
	mem_free(c->rules);
	memset(c, 0, sizeof(*c));
}

/* What c sets of o. */
static void
opts_override(struct label_opts *o, const struct label_conf *c)
{
	if (c->mode != GRAPHQL_INHERIT)
		o->mode = c->mode;
	if (c->survival != SURVIVAL_INHERIT)
		o->is_deep = c->survival == SURVIVAL_DEEP;
	if (c->annotate != ANNOTATE_INHERIT)
		o->is_meta_only = c->annotate == ANNOTATE_META;
	if (c->root != NULL)
		o->root = c->root;
	if (c->max_bytes != 0)
		o->max_bytes = c->max_bytes;
	if (c->rules != NULL) {
		o->rules = c->rules;
		o->n_rules = c->n_rules;
	}
}

void
label_opts_set(struct label_opts *o, const struct label_conf *upstream,
    const struct label_conf *tool, struct jtext definition)
{
	*o = (struct label_opts){.mode = GRAPHQL_AUTO,
	    .max_bytes = DEFAULT_MAX_BYTES,
	    .definition = definition};
	if (definition.n > CAP_DEFINITION_WALK_BYTES)
		o->definition = (struct jtext){NULL, 0};
	opts_override(o, upstream);
	if (tool != NULL)
		opts_override(o, tool);
}

/* As if nothing had been looked at. */
static void
label_forget(struct label *l, enum label_reason reason)
{
	l->reason = reason;
	l->n_errors = 0;
	l->rule = 0;
	l->is_error = false;
	l->code[0] = l->path[0] = '\0';
}

void
label_init(struct label *l)
{
	json_edits_init(&l->edits);
	buf_init(&l->text, 0);
	label_forget(l, LABEL_NONE);
}

void
label_fini(struct label *l)
{
	buf_fini(&l->text);
}

/* ---- one result ---- */

static bool
is_set(const struct label_work *w, enum label_class class)
{
	return (w->classes & 1u << class) != 0;
}

/* Whether an earlier hop has been here. Where _meta is nothing that could say so, our
 * words say it. */
static bool
is_labelled(const struct label_work *w)
{
	if (w->meta.n == 0)
		return false;
	if (jtext_type(w->meta) == '{')
		return json_member(w->meta, LABEL_META_ANSWER).n > 0;
	return memmem(w->result.p, w->result.n, LABEL_SENTENCE,
		   sizeof(LABEL_SENTENCE) - 1) != NULL;
}

/* Most of the time that a look takes depends on the whole of it. A candidate that is as
 * large as allowed may be there twice, once in a string. */
static bool
is_too_large(const struct label_work *w)
{
	return w->result.n > CAP_RESULT_WALK_BYTES &&
	       (w->result.n + 2) / 3 > w->o->max_bytes;
}

/* What the members of the result say; NONE: it may be looked at. */
static enum label_reason
work_gate(struct label_work *w, const struct json_msg *json)
{
	if (is_too_large(w))
		return LABEL_TOO_LARGE;
	if (json->duplicate || !label_find_members(w))
		return LABEL_MALFORMED;
	if (w->is_error.n > 0 && strchr("fn", w->is_error.p[0]) == NULL)
		return LABEL_MALFORMED;
	return is_labelled(w) ? LABEL_ALREADY : LABEL_NONE;
}

static enum label_reason
work_combine(const struct label_work *w)
{
	static const struct {
		enum label_class class;
		enum label_reason reason;
	} reasons[] = {
	    {CLASS_CLEAN, LABEL_CLEAN},
	    {CLASS_SUSPECT, LABEL_SUSPECT},
	    {CLASS_MALFORMED, LABEL_MALFORMED},
	    {CLASS_TOO_LARGE, LABEL_TOO_LARGE},
	};

	if (w->n_seen > CAP_RESULT_CANDIDATES)
		return LABEL_TOO_LARGE;
	if (w->is_too_deep)
		return LABEL_UNPARSED;
	if (is_set(w, CLASS_FAILED) && !is_set(w, CLASS_PARTIAL) &&
	    !is_set(w, CLASS_CLEAN) && !w->has_media)
		return LABEL_ERROR;
	if (w->n > 0)
		return LABEL_PARTIAL;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (is_set(w, reasons[i].class))
			return reasons[i].reason;
	}
	return LABEL_NONE;
}

static void
work_answer(struct label_work *w)
{
	struct label *l = w->l;

	label_find_candidates(w);
	l->reason = work_combine(w);
	if (l->reason == LABEL_PARTIAL)
		label_edit_partial(w);
	else if (l->reason == LABEL_ERROR)
		label_edit_failure(w);
	else
		label_forget(l, l->reason);
}

static void
work_rules(struct label_work *w)
{
	struct label *l = w->l;

	if (w->o->n_rules == 0 || l->is_error || w->n_seen > CAP_RESULT_CANDIDATES)
		return;
	l->rule = label_rules_hit(w);
	if (l->rule == 0)
		return;
	label_edit_is_error(w);
	l->reason = LABEL_RULE;
}

static void
work_end(struct label_work *w)
{
	struct label *l = w->l;

	if (w->is_short || w->failure.err != MV_OK || l->text.err != MV_OK) {
		label_forget(l, LABEL_TOO_LARGE);
		return;
	}
	for (unsigned i = 0; i < w->n_puts; i++) {
		const struct label_put *p = &w->puts[i];

		json_edit_add(
		    &l->edits, p->off, p->len, l->text.data + p->from, p->to - p->from);
	}
}

static void __attribute__((noinline))
label_look(struct label *l, const struct label_opts *o, const char *base,
    const struct json_msg *json, bool has_answer)
{
	struct label_work w = {.l = l, .o = o, .base = base, .steps = PATTERN_STEPS};
	size_t max = o->max_bytes < CAP_MESSAGE_BYTES ? o->max_bytes : CAP_MESSAGE_BYTES;
	enum label_reason gate;
	const char *outcome;

	w.result = jtext_of(base, json->slot[JSON_RESULT]);
	buf_init(&w.text, 0);
	buf_init(&w.failure, TEXT_BYTES);
	/* In a string each byte of JSON text takes two at most. */
	l->text.max = 2 * max + TEXT_BYTES;
	gate = work_gate(&w, json);
	if (gate != LABEL_NONE) {
		l->reason = has_answer || o->mode != GRAPHQL_OFF ? gate : LABEL_OFF;
		goto out;
	}
	if (has_answer)
		work_answer(&w);
	outcome = l->reason == LABEL_PARTIAL ? "partial"
		  : l->reason == LABEL_ERROR ? "error"
					     : NULL;
	work_rules(&w);
	if (outcome != NULL || l->rule > 0)
		label_edit_meta(&w, outcome);
	work_end(&w);
out:
	buf_fini(&w.text);
	buf_fini(&w.failure);
}

/* Nearly always it is spelled plainly. */
static bool
is_complete(struct jtext type)
{
	static const char plain[] = "\"complete\"";

	return (type.n == sizeof(plain) - 1 && memcmp(type.p, plain, type.n) == 0) ||
	       json_string_is(type, "complete");
}

/* What most results come to without being walked: there is nothing to look for, or no
 * word of it. */
enum label_start { START_DONE, START_RULES, START_ANSWER };

static inline enum label_start
label_start(struct label *l, enum graphql_mode mode, bool has_rules, const char *base,
    const struct json_msg *json)
{
	struct jtext result = jtext_of(base, json->slot[JSON_RESULT]);
	struct jtext type = jtext_of(base, json->slot[JSON_RESULT_TYPE]);
	bool is_off = mode == GRAPHQL_OFF;

	json_edits_init(&l->edits);
	label_forget(l, is_off ? LABEL_OFF : LABEL_NONE);
	if (jtext_type(result) != '{')
		return START_DONE;
	l->is_error = json_is_true(jtext_of(base, json->slot[JSON_IS_ERROR]));
	if (is_off && !has_rules)
		return START_DONE;
	if (type.n > 0 && !is_complete(type)) {
		l->reason = is_off ? LABEL_OFF : LABEL_NOT_COMPLETE;
		return START_DONE;
	}
	if (l->is_error) {
		l->reason = is_off ? LABEL_OFF : LABEL_UPSTREAM_ERROR;
		return START_DONE;
	}
	if (!is_off && label_has_errors(result))
		return START_ANSWER;
	return has_rules ? START_RULES : START_DONE;
}

void
label_result(struct label *l, const struct label_opts *o, const char *base,
    const struct json_msg *json)
{
	enum label_start start = label_start(l, o->mode, o->n_rules > 0, base, json);

	buf_reset(&l->text);
	if (start != START_DONE)
		label_look(l, o, base, json, start == START_ANSWER);
}

bool
label_is_settled(struct label *l, const struct label_conf *upstream,
    const struct label_conf *tool, const char *base, const struct json_msg *json)
{
	enum graphql_mode mode = upstream->mode;
	bool has_rules = upstream->n_rules > 0;

	if (tool != NULL && tool->mode != GRAPHQL_INHERIT)
		mode = tool->mode;
	if (tool != NULL && tool->rules != NULL)
		has_rules = tool->n_rules > 0;
	return label_start(l, mode, has_rules, base, json) == START_DONE;
}
