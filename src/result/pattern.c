/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions on text of peers, by PCRE2.
 *
 * Owns: the compiled expression. Driven by: whoever holds the text; pure.
 * Invariants: a match takes no more steps, over all its beginnings, than are left, and at
 * most HEAP_KIB of memory, which is gone when it ends. PCRE2's own limit starts anew at
 * each beginning, and it sees no bytes that one item runs over: so a callout before each
 * item adds up by how far the text was moved in. (A reference back to a group counts as
 * one, however long that is: who writes the conf knows its groups.)
 */
#include "mcpvisor/pattern.h"

#include "mcpvisor/mem.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define TEXT_MAX_BYTES 65536 /* of an expression */
#define HEAP_KIB       8192
#define STEPS_START    64 /* what a match takes before its first step */
#define PATTERN_MAGIC  0x70617474u

struct pattern {
	unsigned magic;
	char *text;
	bool anchored;
	pcre2_general_context *general;
	pcre2_match_context *match;
	pcre2_code *code;
};

struct pattern_walk {
	unsigned magic;
	size_t left;	  /* steps */
	size_t start, at; /* offsets: where this attempt began, and where it was last */
};

static void *
pattern_alloc(size_t n, void *arg)
{
	(void)arg;
	return mem_lib_alloc(n);
}

static void
pattern_release(void *p, void *arg)
{
	(void)arg;
	mem_free(p);
}

static int
on_item(pcre2_callout_block *b, void *arg)
{
	struct pattern_walk *w = arg;
	size_t from, steps;

	MCPVISOR_ASSERT(w->magic == PATTERN_MAGIC);
	/* How far PCRE2 skips to the next beginning costs next to nothing. */
	from = w->start == b->start_match ? w->at : b->start_match;
	steps = 1 + (b->current_position > from ? b->current_position - from
						: from - b->current_position);
	w->left -= steps < w->left ? steps : w->left;
	w->start = b->start_match;
	w->at = b->current_position;
	return w->left == 0 ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static bool
pattern_compile(struct pattern *p, struct mv_errtext *t)
{
	uint32_t options = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_DOLLAR_ENDONLY |
			   PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *cc = pcre2_compile_context_create(p->general);
	PCRE2_SIZE where = 0;
	PCRE2_UCHAR words[128];
	int err = 0;

	if (cc == NULL) {
		mv_errtext_set(t, "%s", mv_err_text(MV_NOMEM));
		return false;
	}
	if (p->anchored)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	pcre2_set_max_pattern_length(cc, TEXT_MAX_BYTES);
	p->code = pcre2_compile(
	    (PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED, options, &err, &where, cc);
	pcre2_compile_context_free(cc);
	if (p->code != NULL)
		return true;
	if (pcre2_get_error_message(err, words, sizeof(words)) < 0)
		words[0] = '\0';
	mv_errtext_set(
	    t, "no regular expression: %s, at byte %zu", (const char *)words, where);
	return false;
}

struct pattern *
pattern_new(const char *text, bool anchored, struct mv_errtext *t)
{
	struct pattern *p = mem_xcalloc(1, sizeof(*p));

	p->magic = PATTERN_MAGIC;
	p->text = mem_xstrdup(text);
	p->anchored = anchored;
	p->general = pcre2_general_context_create(pattern_alloc, pattern_release, NULL);
	if (p->general != NULL)
		p->match = pcre2_match_context_create(p->general);
	if (p->match == NULL) {
		mv_errtext_set(t, "%s", mv_err_text(MV_NOMEM));
		pattern_free(p);
		return NULL;
	}
	pcre2_set_match_limit(p->match, PATTERN_STEPS);
	pcre2_set_depth_limit(p->match, PATTERN_STEPS);
	pcre2_set_heap_limit(p->match, HEAP_KIB);
	if (!pattern_compile(p, t)) {
		pattern_free(p);
		return NULL;
	}
	return p;
}

void
pattern_free(struct pattern *p)
{
	if (p == NULL)
		return;
	pcre2_code_free(p->code);
	pcre2_match_context_free(p->match);
	pcre2_general_context_free(p->general);
	mem_free(p->text);
	mem_free(p);
}

bool
pattern_matches(const struct pattern *p, const char *s, size_t n, size_t *steps)
{
	struct pattern_walk walk = {.magic = PATTERN_MAGIC};
	pcre2_match_data *data;
	int found;

	*steps -= STEPS_START < *steps ? STEPS_START : *steps;
	if (*steps == 0)
		return false;
	walk.left = *steps;
	/* Not kept: it holds the memory of the longest match. */
	data = pcre2_match_data_create(1, p->general);
	if (data == NULL)
		return false;
	/* The context is ours alone, and matches do not nest. */
	pcre2_set_callout(p->match, on_item, &walk);
	found =
	    pcre2_match(p->code, (PCRE2_SPTR)(n > 0 ? s : ""), n, 0, 0, data, p->match);
	pcre2_set_callout(p->match, NULL, NULL);
	pcre2_match_data_free(data);
	*steps = found == PCRE2_ERROR_MATCHLIMIT ? 0 : walk.left;
	/* 0: it matched, and has more groups than anybody asked for. */
	return found >= 0;
}

const char *
pattern_text(const struct pattern *p)
{
	return p->text;
}

bool
pattern_is_anchored(const struct pattern *p)
{
	return p->anchored;
}
