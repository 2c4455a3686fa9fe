/* SPDX-License-Identifier: MIT */
/*
 * The parser's lower half: what it keeps of the text, names, values and types.
 *
 * Owns: the text of what is being read.
 * Driven by: the reader of documents, and of defaults in a schema.
 * Invariants: of the text nothing is left out but comments, descriptions, and the white
 * space around them; what text has, read again, gives the same text. Recursion goes
 * GRAPHQL_DEPTH_MAX deep.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <string.h>

void
graphql_parse_init(
    struct graphql_parse *g, const char *text, size_t n, struct mv_errtext *err)
{
	*g = (struct graphql_parse){.depth = 0};
	graphql_lex_init(&g->lex, text, n, err);
	buf_init(&g->text, 2 * (size_t)GRAPHQL_FILE_MAX);
	graphql_lex_next(&g->lex);
}

static bool
parse_is_break(char c)
{
	return c == '\n' || c == '\r';
}

/* What stands between the last token and the next one. Where something was left out of
 * it, one line break or space is enough. */
static void
parse_put_gap(struct graphql_parse *g)
{
	const char *p = g->last_end, *at = g->lex.at, *indent = at;

	if (p == NULL)
		return;
	if (!g->is_cut && !g->lex.after_comment) {
		buf_add(&g->text, p, (size_t)(at - p));
		return;
	}
	while (p < at && !parse_is_break(*p))
		p++;
	if (p == at) {
		buf_add_char(&g->text, ' ');
		return;
	}
	while (indent > p && (indent[-1] == ' ' || indent[-1] == '\t'))
		indent--;
	buf_add_char(&g->text, '\n');
	buf_add(&g->text, indent, (size_t)(at - indent));
}

void
graphql_parse_shift(struct graphql_parse *g)
{
	if (g->lex.kind == GRAPHQL_T_BAD)
		return;
	parse_put_gap(g);
	buf_add(&g->text, g->lex.at, g->lex.n);
	g->last_end = g->lex.at + g->lex.n;
	g->is_cut = false;
	graphql_lex_next(&g->lex);
}

void
graphql_parse_skip(struct graphql_parse *g)
{
	g->is_cut = true;
	graphql_lex_next(&g->lex);
}

bool
graphql_parse_accept(struct graphql_parse *g, char punct)
{
	if (!graphql_lex_is(&g->lex, punct))
		return false;
	graphql_parse_shift(g);
	return true;
}

/* What stands there instead of what was expected. */
static bool
parse_fail(struct graphql_parse *g, const char *wanted)
{
	struct graphql_lex *x = &g->lex;

	if (x->kind == GRAPHQL_T_END)
		return graphql_lex_fail(x, "expected %s before the end", wanted);
	return graphql_lex_fail(
	    x, "expected %s, not \"%.*s\"", wanted, (int)(x->n < 40 ? x->n : 40), x->at);
}

bool
graphql_parse_expect(struct graphql_parse *g, char punct)
{
	char wanted[] = {'\'', punct, '\'', '\0'};

	return graphql_parse_accept(g, punct) || parse_fail(g, wanted);
}

char *
graphql_parse_name(struct graphql_parse *g)
{
	char *name;

	if (g->lex.kind != GRAPHQL_T_NAME) {
		parse_fail(g, "a name");
		return NULL;
	}
	name = mem_xstrndup(g->lex.at, g->lex.n);
	graphql_parse_shift(g);
	return name;
}

bool
graphql_parse_enter(struct graphql_parse *g)
{
	if (g->depth >= GRAPHQL_DEPTH_MAX)
		return graphql_lex_fail(
		    &g->lex, "nested deeper than %d", GRAPHQL_DEPTH_MAX);
	g->depth++;
	return true;
}

void
graphql_parse_leave(struct graphql_parse *g)
{
	g->depth--;
}

char *
graphql_parse_take(struct graphql_parse *g, struct buf *b)
{
	char *s = buf_take(b, NULL);

	if (s == NULL)
		graphql_lex_fail(&g->lex, "%s", mv_err_text(b->err));
	return s;
}

/* ---- values ---- */

static void
value_put(struct buf *out, const char *s, size_t n)
{
	if (out != NULL)
		buf_add(out, s, n);
}

static bool
value_list(struct graphql_parse *g, struct buf *out)
{
	if (!graphql_parse_enter(g))
		return false;
	graphql_parse_shift(g);
	value_put(out, "[", 1);
	for (bool is_first = true; !graphql_parse_accept(g, ']'); is_first = false) {
		value_put(out, ",", !is_first);
		if (!graphql_parse_value(g, out))
			return false;
	}
	value_put(out, "]", 1);
	graphql_parse_leave(g);
	return true;
}

static bool
value_object(struct graphql_parse *g, struct buf *out)
{
	if (!graphql_parse_enter(g))
		return false;
	graphql_parse_shift(g);
	value_put(out, "{", 1);
	for (bool is_first = true; !graphql_parse_accept(g, '}'); is_first = false) {
		if (g->lex.kind != GRAPHQL_T_NAME)
			return parse_fail(g, "a name or '}'");
		value_put(out, ",", !is_first);
		value_put(out, "\"", 1);
		value_put(out, g->lex.at, g->lex.n);
		value_put(out, "\":", 2);
		graphql_parse_shift(g);
		if (!graphql_parse_expect(g, ':') || !graphql_parse_value(g, out))
			return false;
	}
	value_put(out, "}", 1);
	graphql_parse_leave(g);
	return true;
}

static bool
value_string(struct graphql_parse *g, struct buf *out)
{
	struct buf text;
	bool is_sound = true;

	if (out != NULL) {
		buf_init(&text, GRAPHQL_FILE_MAX);
		is_sound = graphql_lex_decode(&g->lex, &text);
		json_put_string(out, text.data, text.len);
		if (text.err != MV_OK)
			out->err = text.err;
		buf_fini(&text);
	}
	graphql_parse_shift(g);
	return is_sound;
}

/* true, false and null are themselves, other names constants of an enum. */
static void
value_name(struct graphql_parse *g, struct buf *out)
{
	bool is_word = graphql_lex_is_name(&g->lex, "true") ||
		       graphql_lex_is_name(&g->lex, "false") ||
		       graphql_lex_is_name(&g->lex, "null");

	value_put(out, "\"", !is_word);
	value_put(out, g->lex.at, g->lex.n);
	value_put(out, "\"", !is_word);
	graphql_parse_shift(g);
}

static bool
value_variable(struct graphql_parse *g, const struct buf *out)
{
	if (out != NULL)
		return graphql_lex_fail(&g->lex, "a default has no variables");
	graphql_parse_shift(g);
	if (g->lex.kind != GRAPHQL_T_NAME)
		return parse_fail(g, "a name");
	graphql_parse_shift(g);
	return true;
}

bool
graphql_parse_value(struct graphql_parse *g, struct buf *out)
{
	if (graphql_lex_is(&g->lex, '['))
		return value_list(g, out);
	if (graphql_lex_is(&g->lex, '{'))
		return value_object(g, out);
	if (graphql_lex_is(&g->lex, '$'))
		return value_variable(g, out);
	if (graphql_lex_is_string(&g->lex))
		return value_string(g, out);
	if (g->lex.kind == GRAPHQL_T_NAME) {
		value_name(g, out);
	} else if (g->lex.kind == GRAPHQL_T_NUMBER) {
		value_put(out, g->lex.at, g->lex.n);
		graphql_parse_shift(g);
	} else {
		return parse_fail(g, "a value");
	}
	return true;
}

bool
graphql_put_constant(const char *text, struct buf *json, struct buf *literal)
{
	size_t before = json->len;
	struct graphql_parse g;
	bool is_sound;

	if (text == NULL || strlen(text) > GRAPHQL_FILE_MAX)
		return false;
	graphql_parse_init(&g, text, strlen(text), NULL);
	is_sound = graphql_parse_value(&g, json) && g.lex.kind == GRAPHQL_T_END &&
		   json->err == MV_OK && g.text.err == MV_OK;
	if (!is_sound)
		json->len = before;
	else if (literal != NULL)
		buf_add(literal, g.text.data, g.text.len);
	buf_fini(&g.text);
	return is_sound;
}

/* ---- types ---- */

static bool
type_put(struct graphql_parse *g, struct buf *out)
{
	bool is_list = graphql_lex_is(&g->lex, '[');

	if (!graphql_parse_enter(g))
		return false;
	if (is_list) {
		buf_add_char(out, '[');
		graphql_parse_shift(g);
		if (!type_put(g, out) || !graphql_parse_expect(g, ']'))
			return false;
		buf_add_char(out, ']');
	} else if (g->lex.kind == GRAPHQL_T_NAME) {
		buf_add(out, g->lex.at, g->lex.n);
		graphql_parse_shift(g);
	} else {
		return parse_fail(g, "a type");
	}
	if (graphql_parse_accept(g, '!'))
		buf_add_char(out, '!');
	graphql_parse_leave(g);
	return true;
}

char *
graphql_parse_type(struct graphql_parse *g)
{
	struct buf out;
	char *type = NULL;

	buf_init(&out, GRAPHQL_FILE_MAX);
	if (type_put(g, &out))
		type = graphql_parse_take(g, &out);
	buf_fini(&out);
	return type;
}
