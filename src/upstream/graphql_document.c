/* SPDX-License-Identifier: MIT */
/*
 * The reader of executable documents: what a tool is made of, the rest only as far as to
 * find its end.
 *
 * Owns: the document until it is complete.
 * Driven by: text of files, of models, and of our own.
 * Invariants: a document that is returned has at least one definition; no variable comes
 * twice in an operation.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/utf8.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_words[] = {"schema", "scalar", "type", "interface", "union",
    "enum", "input", "directive", "extend"};
#define N_TYPES (sizeof(type_words) / sizeof(type_words[0]))

struct names {
	char **v;
	size_t n;
};

/* The definition that is being read. */
struct def {
	struct graphql_parse g;
	struct names fields;
	struct graphql_spread *spreads;
	size_t n_spreads;
	uint32_t depth, n_selected, level;
};

static void
names_add(struct names *a, char *name)
{
	a->v = graphql_grow(a->v, a->n, sizeof(*a->v));
	a->v[a->n++] = name;
}

static bool def_selections(struct def *f);

/* ---- what any of them has ---- */

/* Its own, or, where notes count, what stands above it as a comment. */
static bool
def_description(struct def *f, bool with_notes, char **description)
{
	struct graphql_lex *x = &f->g.lex;
	bool is_string = graphql_lex_is_string(x), is_sound = true;
	struct buf text;

	buf_init(&text, GRAPHQL_FILE_MAX);
	if (is_string)
		is_sound = graphql_lex_decode(x, &text);
	else if (with_notes && x->notes != NULL)
		graphql_put_notes(x->notes, x->notes_end, &text);
	if (is_sound && text.len > 0) {
		*description = graphql_parse_take(&f->g, &text);
		is_sound = *description != NULL;
	}
	buf_fini(&text);
	if (is_string)
		graphql_parse_skip(&f->g);
	return is_sound;
}

static bool
def_arguments(struct def *f)
{
	struct graphql_parse *g = &f->g;

	if (!graphql_parse_accept(g, '('))
		return true;
	do {
		char *name = graphql_parse_name(g);

		mem_free(name);
		if (name == NULL || !graphql_parse_expect(g, ':') ||
		    !graphql_parse_value(g, NULL))
			return false;
	} while (!graphql_parse_accept(g, ')'));
	return true;
}

static bool
def_directives(struct def *f)
{
	while (graphql_parse_accept(&f->g, '@')) {
		char *name = graphql_parse_name(&f->g);

		mem_free(name);
		if (name == NULL || !def_arguments(f))
			return false;
	}
	return true;
}

/* ---- selections ---- */

static bool
def_field(struct def *f)
{
	struct graphql_parse *g = &f->g;
	char *name = graphql_parse_name(g);
	bool is_sound;

	/* That was an alias. */
	if (name != NULL && graphql_parse_accept(g, ':')) {
		mem_free(name);
		name = graphql_parse_name(g);
	}
	if (name == NULL)
		return false;
	if (f->level == 0)
		names_add(&f->fields, name);
	else
		mem_free(name);
	f->n_selected++;
	if (f->depth <= f->level)
		f->depth = f->level + 1;
	if (!def_arguments(f) || !def_directives(f))
		return false;
	if (!graphql_lex_is(&g->lex, '{'))
		return true;
	f->level++;
	is_sound = def_selections(f);
	f->level--;
	return is_sound;
}

static bool
def_spread(struct def *f)
{
	struct graphql_parse *g = &f->g;
	char *name;

	graphql_parse_shift(g);
	if (g->lex.kind == GRAPHQL_T_NAME && !graphql_lex_is_name(&g->lex, "on")) {
		f->spreads = graphql_grow(f->spreads, f->n_spreads, sizeof(*f->spreads));
		f->spreads[f->n_spreads++] = (struct graphql_spread){
		    .name = graphql_parse_name(g), .above = f->level, .times = 1};
		return def_directives(f);
	}
	if (graphql_lex_is_name(&g->lex, "on")) {
		graphql_parse_shift(g);
		name = graphql_parse_name(g);
		mem_free(name);
		if (name == NULL)
			return false;
	}
	return def_directives(f) && def_selections(f);
}

static bool
def_selections(struct def *f)
{
	struct graphql_parse *g = &f->g;

	if (!graphql_parse_enter(g) || !graphql_parse_expect(g, '{'))
		return false;
	do {
		if (g->lex.kind == GRAPHQL_T_SPREAD ? !def_spread(f) : !def_field(f))
			return false;
	} while (!graphql_parse_accept(g, '}'));
	graphql_parse_leave(g);
	return true;
}

static int
spread_order(const void *a, const void *b)
{
	const struct graphql_spread *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Sorts them, so that each name is there once. */
static size_t
spreads_merge(struct graphql_spread *v, size_t n)
{
	size_t k = 0;

	if (n < 2)
		return n;
	qsort(v, n, sizeof(*v), spread_order);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(v[k].name, v[i].name) != 0) {
			v[++k] = v[i];
			continue;
		}
		if (v[k].above < v[i].above)
			v[k].above = v[i].above;
		v[k].times += v[i].times;
		mem_free(v[i].name);
	}
	return k + 1;
}

/* What both kinds of definitions end with; whatever comes of it, what was found goes to
 * them. */
static bool
def_body(struct def *f, struct graphql_spread **spreads, size_t *n_spreads, char **text)
{
	bool is_sound = def_directives(f) && def_selections(f);

	*n_spreads = spreads_merge(f->spreads, f->n_spreads);
	*spreads = f->spreads;
	f->spreads = NULL;
	f->n_spreads = 0;
	if (!is_sound)
		return false;
	*text = graphql_parse_take(&f->g, &f->g.text);
	f->g.last_end = NULL;
	f->g.is_cut = false;
	return *text != NULL;
}

/* ---- operations ---- */

static bool
def_variable(struct def *f, struct graphql_operation *op, struct graphql_var *v)
{
	struct graphql_parse *g = &f->g;
	struct buf json;
	bool is_sound;

	if (!def_description(f, false, &v->description) || !graphql_parse_expect(g, '$'))
		return false;
	for (size_t i = 0; i + 1 < op->n_vars; i++) {
		if (graphql_lex_is_name(&g->lex, op->vars[i].name))
			return graphql_lex_fail(
			    &g->lex, "variable $%s is there twice", op->vars[i].name);
	}
	v->name = graphql_parse_name(g);
	if (v->name == NULL || !graphql_parse_expect(g, ':'))
		return false;
	v->type = graphql_parse_type(g);
	if (v->type == NULL)
		return false;
	if (graphql_parse_accept(g, '=')) {
		buf_init(&json, 8 * (size_t)GRAPHQL_FILE_MAX);
		is_sound = graphql_parse_value(g, &json);
		if (is_sound)
			v->dflt = graphql_parse_take(g, &json);
		buf_fini(&json);
		if (v->dflt == NULL)
			return false;
	}
	return def_directives(f);
}

static bool
def_variables(struct def *f, struct graphql_operation *op)
{
	if (!graphql_parse_accept(&f->g, '('))
		return true;
	do {
		if (op->n_vars >= GRAPHQL_VARS_MAX)
			return graphql_lex_fail(
			    &f->g.lex, "more than %d variables", GRAPHQL_VARS_MAX);
		op->vars = graphql_grow(op->vars, op->n_vars, sizeof(*op->vars));
		op->vars[op->n_vars] = (struct graphql_var){.name = NULL};
		op->n_vars++;
		if (!def_variable(f, op, &op->vars[op->n_vars - 1]))
			return false;
	} while (!graphql_parse_accept(&f->g, ')'));
	return true;
}

/* A selection set alone is a query. */
static bool
def_operation(struct def *f, struct graphql_operation *op, bool has_head)
{
	struct graphql_parse *g = &f->g;
	bool is_sound = true;

	op->line = g->lex.at_line;
	if (has_head) {
		graphql_parse_shift(g);
		if (g->lex.kind == GRAPHQL_T_NAME)
			op->name = graphql_parse_name(g);
		is_sound = def_variables(f, op);
	}
	is_sound = is_sound && def_body(f, &op->spreads, &op->n_spreads, &op->text);
	names_add(&f->fields, NULL);
	op->fields = f->fields.v;
	op->depth = f->depth;
	op->n_selected = f->n_selected;
	return is_sound;
}

static bool
def_fragment(struct def *f, struct graphql_fragment *fragment)
{
	struct graphql_parse *g = &f->g;
	char *on;
	bool is_sound;

	graphql_parse_shift(g);
	if (graphql_lex_is_name(&g->lex, "on"))
		return graphql_lex_fail(&g->lex, "a fragment cannot be called \"on\"");
	fragment->name = graphql_parse_name(g);
	if (fragment->name == NULL)
		return false;
	if (!graphql_lex_is_name(&g->lex, "on"))
		return graphql_lex_fail(&g->lex, "expected \"on\" and a type");
	graphql_parse_shift(g);
	on = graphql_parse_name(g);
	mem_free(on);
	f->level = 1; /* none of its fields is one of a root */
	f->depth = 1;
	is_sound = on != NULL &&
		   def_body(f, &fragment->spreads, &fragment->n_spreads, &fragment->text);
	for (size_t i = 0; i < fragment->n_spreads; i++)
		fragment->spreads[i].above--;
	fragment->depth = f->depth - 1;
	fragment->n_selected = f->n_selected;
	return is_sound;
}

/* ---- documents ---- */

static int
def_word(const struct def *f, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (graphql_lex_is_name(&f->g.lex, words[i]))
			return (int)i;
	}
	return -1;
}

static bool
def_read(struct def *f, struct graphql_document *d)
{
	struct graphql_lex *x = &f->g.lex;
	struct graphql_operation op = {.name = NULL};
	int word;

	f->fields = (struct names){NULL, 0};
	f->depth = f->n_selected = f->level = 0;
	if (!def_description(f, true, &op.description))
		return false;
	f->g.is_cut = false;
	word = def_word(f, graphql_op_words, GRAPHQL_N_OPS);
	if (word >= 0 || graphql_lex_is(x, '{')) {
		op.op = word >= 0 ? (enum graphql_op)word : GRAPHQL_QUERY;
		d->operations =
		    graphql_grow(d->operations, d->n_operations, sizeof(*d->operations));
		d->operations[d->n_operations] = op;
		return def_operation(f, &d->operations[d->n_operations++], word >= 0);
	}
	mem_free(op.description);
	if (graphql_lex_is_name(x, "fragment")) {
		d->fragments =
		    graphql_grow(d->fragments, d->n_fragments, sizeof(*d->fragments));
		d->fragments[d->n_fragments] = (struct graphql_fragment){.name = NULL};
		return def_fragment(f, &d->fragments[d->n_fragments++]);
	}
	if (def_word(f, type_words, N_TYPES) >= 0)
		return graphql_lex_fail(x,
		    "\"%.*s\" defines types; only operations and fragments belong here",
		    (int)x->n, x->at);
	return graphql_lex_fail(x, "expected an operation or a fragment");
}

/* UTF-8 without NUL. */
static bool
text_is_sound(struct graphql_lex *x)
{
	const char *p = x->p;
	size_t len;

	while (p < x->end) {
		len = utf8_length((const unsigned char *)p, (size_t)(x->end - p));
		if (len == 0 || *p == '\0') {
			x->at = p;
			return graphql_lex_fail(
			    x, len == 0 ? "not UTF-8" : "there is a NUL byte");
		}
		p += len;
		if (p[-1] == '\n') {
			x->at_line++;
			x->at_line_start = p;
		}
	}
	return true;
}

struct graphql_document *
graphql_document_read(const char *text, size_t n, struct mv_errtext *t)
{
	struct graphql_document *d = NULL;
	struct graphql_lex check;
	struct def f;
	bool is_sound;

	graphql_lex_init(&check, text, n, t);
	if (n > GRAPHQL_FILE_MAX) {
		graphql_lex_fail(&check, "longer than %u bytes", GRAPHQL_FILE_MAX);
		return NULL;
	}
	if (!text_is_sound(&check))
		return NULL;
	f = (struct def){.level = 0};
	graphql_parse_init(&f.g, text, n, t);
	d = mem_xcalloc(1, sizeof(*d));
	do {
		if (f.g.lex.kind == GRAPHQL_T_END)
			is_sound = graphql_lex_fail(
			    &f.g.lex, "there is neither an operation nor a fragment");
		else
			is_sound = def_read(&f, d);
	} while (is_sound && f.g.lex.kind != GRAPHQL_T_END);
	if (!is_sound) {
		graphql_document_free(d);
		d = NULL;
	}
	buf_fini(&f.g.text);
	return d;
}
