/* SPDX-License-Identifier: MIT */
/*
 * The labels of a result: what is put where.
 *
 * Owns: nothing. Driven by: label.
 * Invariants: every byte of the message stays, but for those of isError; what is put at
 * one place is put there in the order content, isError, _meta.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include <string.h>

/* ---- pieces ---- */

/* What is written from here on is put at a place of the message. */
static void
put_at(struct label_work *w, const char *place, size_t len)
{
	struct label_put *p = &w->puts[w->n_puts++];

	MCPVISOR_ASSERT(w->n_puts <= sizeof(w->puts) / sizeof(w->puts[0]));
	p->off = (uint32_t)(place - w->base);
	p->len = (uint32_t)len;
	p->from = p->to = w->l->text.len;
}

static void
put_end(struct label_work *w)
{
	w->puts[w->n_puts - 1].to = w->l->text.len;
}

/* The place of the bracket that ends it. */
static const char *
end_of(struct jtext container)
{
	return container.p + container.n - 1;
}

static bool
is_empty(struct jtext container)
{
	struct json_iter it;
	struct jtext value;

	json_iter_init(&it, container);
	return !json_next_element(&it, &value);
}

/* ---- sentences ---- */

/* It is the same in JSON and in JSON in a string: nothing in it is escaped. */
static void
put_sentence(struct buf *out, unsigned n)
{
	buf_addf(out,
	    LABEL_SENTENCE "%u field error(s) \xe2\x80\x94 some fields are missing or "
			   "null; see `errors`.",
	    n);
}

static void
put_warning(struct buf *out, const struct label_candidate *c)
{
	const char *quote = c->is_escaped ? "\\\"" : "\"";

	buf_addf(out, "%s_warning%s:%s", quote, quote, quote);
	put_sentence(out, c->n);
	buf_addf(out, "%s,", quote);
}

/* ---- content ---- */

/* Opens a text block at the end of content, which is made if there is none. False: it is
 * something else. What is written until blocks_end is what the block says, quoted. */
static bool
blocks_begin(struct label_work *w)
{
	struct buf *out = &w->l->text;

	if (w->content.n == 0) {
		put_at(w, end_of(w->result), 0);
		buf_add_str(out, ",\"content\":[");
	} else if (jtext_type(w->content) == '[') {
		put_at(w, end_of(w->content), 0);
		if (!is_empty(w->content))
			buf_add_char(out, ',');
	} else {
		return false;
	}
	buf_add_str(out, "{\"type\":\"text\",\"text\":");
	return true;
}

static void
blocks_next(struct label_work *w)
{
	buf_add_str(&w->l->text, "},{\"type\":\"text\",\"text\":");
}

static void
blocks_end(struct label_work *w)
{
	buf_add_str(&w->l->text, w->content.n == 0 ? "}]" : "}");
	put_end(w);
}

static void
put_quoted_sentence(struct label_work *w, unsigned n)
{
	buf_add_char(&w->l->text, '"');
	put_sentence(&w->l->text, n);
	buf_add_char(&w->l->text, '"');
}

static void
append_sentence(struct label_work *w, unsigned n)
{
	if (!blocks_begin(w))
		return;
	put_quoted_sentence(w, n);
	blocks_end(w);
}

/* structuredContent as a text, with the warning in it: by itself the sentence would hide
 * the data from whoever prefers content. */
static void
append_mirror(struct label_work *w, const struct label_candidate *c)
{
	struct jtext s = w->structured;
	size_t head = c->inside > 0 ? c->inside - (size_t)(s.p - w->base) : 0;
	struct buf copy;

	if (!blocks_begin(w))
		return;
	buf_init(&copy, s.n + LABEL_WARNING_BYTES);
	buf_add(&copy, s.p, head);
	if (c->inside > 0)
		put_warning(&copy, c);
	buf_add(&copy, s.p + head, s.n - head);
	if (copy.err == MV_OK)
		json_put_string(&w->l->text, copy.data, copy.len);
	else
		w->is_short = true;
	buf_fini(&copy);
	if (c->inside == 0) {
		blocks_next(w);
		put_quoted_sentence(w, c->n);
	}
	blocks_end(w);
}

/* ---- what is put ---- */

/* Whether the schema of structuredContent, if that is a candidate, forbids the warning.
 */
static bool
is_closed(const struct label_work *w)
{
	const char *pointer = label_has_root(w->o) ? w->o->root
			      : w->is_unwrapped	   ? "/result"
						   : "";

	return w->candidates[0].is_structured &&
	       !label_is_open(w->o->definition, pointer, w->is_string);
}

void
label_edit_partial(struct label_work *w)
{
	bool is_inline = !is_closed(w), is_said = w->has_sentence;
	const struct label_candidate *first = &w->candidates[0];

	if (w->o->is_meta_only)
		return;
	for (unsigned i = 0; i < w->n; i++) {
		const struct label_candidate *c = &w->candidates[i];

		if (is_inline && c->inside > 0 && !c->has_warning) {
			put_at(w, w->base + c->inside, 0);
			put_warning(&w->l->text, c);
			put_end(w);
		}
		if (!c->is_structured && (c->has_warning || (is_inline && c->inside > 0)))
			is_said = true;
	}
	if (is_said)
		return;
	if (w->is_usable)
		append_sentence(w, first->n);
	else if (!first->has_warning && (first->inside == 0 || !is_inline))
		append_mirror(w, first);
}

void
label_edit_failure(struct label_work *w)
{
	if (!w->has_failed_text && blocks_begin(w)) {
		json_put_string(&w->l->text, w->failure.data, w->failure.len);
		blocks_end(w);
	}
	label_edit_is_error(w);
}

void
label_edit_is_error(struct label_work *w)
{
	bool is_there = w->is_error.n > 0;

	put_at(w, is_there ? w->is_error.p : end_of(w->result), w->is_error.n);
	buf_add_str(&w->l->text, is_there ? "true" : ",\"isError\":true");
	put_end(w);
	w->l->is_error = true;
}

static void
put_members(struct label_work *w, const char *outcome)
{
	struct buf *out = &w->l->text;

	if (outcome != NULL)
		buf_addf(out,
		    "\"" LABEL_META_ANSWER "\":{\"outcome\":\"%s\",\"errors\":%u}",
		    outcome, w->l->n_errors);
	if (outcome != NULL && w->l->rule > 0)
		buf_add_char(out, ',');
	if (w->l->rule > 0)
		buf_addf(out, "\"" LABEL_META_RULE "\":%u", w->l->rule);
}

void
label_edit_meta(struct label_work *w, const char *outcome)
{
	struct buf *out = &w->l->text;

	if (w->meta.n == 0) {
		put_at(w, end_of(w->result), 0);
		buf_add_str(out, ",\"_meta\":{");
		put_members(w, outcome);
		buf_add_char(out, '}');
	} else if (jtext_type(w->meta) == '{') {
		put_at(w, w->meta.p + 1, 0);
		put_members(w, outcome);
		if (!is_empty(w->meta))
			buf_add_char(out, ',');
	} else {
		return;
	}
	put_end(w);
}
