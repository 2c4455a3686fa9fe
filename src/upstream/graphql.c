/* SPDX-License-Identifier: MIT */
/*
 * Documents after they were read: their end, and what tools are called after them.
 *
 * Owns: the definitions of a document.
 * Driven by: the reader and whoever it reads for.
 * Invariants: a definition that was read in part can be freed.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/utf8.h"

#include <string.h>

const char *const graphql_op_words[GRAPHQL_N_OPS] = {[GRAPHQL_QUERY] = "query",
    [GRAPHQL_MUTATION] = "mutation",
    [GRAPHQL_SUBSCRIPTION] = "subscription"};

void
graphql_strings_free(char **v)
{
	for (size_t i = 0; v != NULL && v[i] != NULL; i++)
		mem_free(v[i]);
	mem_free(v);
}

static void
spreads_free(struct graphql_spread *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mem_free(v[i].name);
	mem_free(v);
}

void
graphql_operation_fini(struct graphql_operation *op)
{
	for (size_t i = 0; i < op->n_vars; i++) {
		mem_free(op->vars[i].name);
		mem_free(op->vars[i].type);
		mem_free(op->vars[i].dflt);
		mem_free(op->vars[i].description);
	}
	mem_free(op->vars);
	graphql_strings_free(op->fields);
	spreads_free(op->spreads, op->n_spreads);
	mem_free(op->name);
	mem_free(op->description);
	mem_free(op->text);
}

void
graphql_fragment_fini(struct graphql_fragment *f)
{
	spreads_free(f->spreads, f->n_spreads);
	mem_free(f->name);
	mem_free(f->text);
}

void
graphql_document_free(struct graphql_document *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->n_operations; i++)
		graphql_operation_fini(&d->operations[i]);
	for (size_t i = 0; i < d->n_fragments; i++)
		graphql_fragment_fini(&d->fragments[i]);
	mem_free(d->operations);
	mem_free(d->fragments);
	mem_free(d);
}

void *
graphql_grow(void *v, size_t n, size_t size)
{
	return (n & (n - 1)) == 0 ? mem_xrealloc(v, (n > 0 ? 2 * n : 1) * size) : v;
}

void
graphql_document_move(struct graphql_document *d, struct graphql_document *from)
{
	for (size_t i = 0; i < from->n_operations; i++) {
		d->operations =
		    graphql_grow(d->operations, d->n_operations, sizeof(*d->operations));
		d->operations[d->n_operations++] = from->operations[i];
	}
	for (size_t i = 0; i < from->n_fragments; i++) {
		d->fragments =
		    graphql_grow(d->fragments, d->n_fragments, sizeof(*d->fragments));
		d->fragments[d->n_fragments++] = from->fragments[i];
	}
	from->n_operations = from->n_fragments = 0;
	graphql_document_free(from);
}

/* ---- names of tools ---- */

static bool
is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool
is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether a word begins at s[i]: the U of getUser, the S of HTTPServer. */
static bool
is_word_start(const char *s, size_t i)
{
	if (i == 0 || !is_upper(s[i]))
		return false;
	return is_lower(s[i - 1]) || is_digit(s[i - 1]) ||
	       (is_upper(s[i - 1]) && is_lower(s[i + 1]));
}

void
graphql_put_tool_name(struct buf *out, const char *name, bool snake)
{
	size_t n = strlen(name), most = out->len + GRAPHQL_TOOL_NAME_MAX, len;

	if (n == 0)
		buf_add_char(out, '_');
	for (size_t i = 0; i < n && out->err == MV_OK && out->len < most; i += len) {
		char c = name[i];

		len = utf8_length((const unsigned char *)name + i, n - i);
		len = len > 0 ? len : 1;
		if (snake && is_word_start(name, i))
			buf_add_char(out, '_');
		if (snake && is_upper(c))
			c = (char)(c - 'A' + 'a');
		if (!is_lower(c) && !is_upper(c) && !is_digit(c) && !strchr("_.-", c))
			c = '_';
		if (out->len < most)
			buf_add_char(out, c);
	}
}
