/* SPDX-License-Identifier: MIT */
/*
 * Operations made of root fields.
 *
 * Owns: the text until it is read as any document is.
 * Driven by: whoever makes tools of fields.
 * Invariants: of the schema only names, types made of names, and constants that were
 * read as such get into the text.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* False: an argument has to be given whose type is not known. */
static bool
generate_variables(const struct graphql_field *f, struct buf *out, struct mv_errtext *t)
{
	const char *before = "(";
	struct buf json, literal;
	bool is_sound = true;

	buf_init(&json, GRAPHQL_FILE_MAX);
	buf_init(&literal, GRAPHQL_FILE_MAX);
	for (size_t i = 0; i < f->n_args && is_sound; i++) {
		const struct graphql_field *arg = &f->args[i];

		if (arg->type == NULL) {
			mv_errtext_set(t,
			    "argument %.80s of field %.80s has a type that was not told "
			    "in full",
			    arg->name, f->name);
			is_sound = false;
			break;
		}
		buf_reset(&json);
		buf_reset(&literal);
		buf_addf(out, "%s$%s: %s", before, arg->name, arg->type);
		if (graphql_put_constant(arg->dflt, &json, &literal)) {
			buf_add_str(out, " = ");
			buf_add(out, literal.data, literal.len);
		}
		before = ", ";
	}
	buf_add_str(out, f->n_args > 0 ? ")" : "");
	buf_fini(&literal);
	buf_fini(&json);
	return is_sound;
}

static void
generate_arguments(const struct graphql_field *f, struct buf *out)
{
	for (size_t i = 0; i < f->n_args; i++)
		buf_addf(out, "%s%s: $%s", i > 0 ? ", " : "(", f->args[i].name,
		    f->args[i].name);
	buf_add_str(out, f->n_args > 0 ? ")" : "");
}

static bool
generate_put(const struct graphql_schema *s, enum graphql_op op,
    const struct graphql_field *f, const struct graphql_generate_opts *o, struct buf *out,
    struct mv_errtext *t)
{
	const struct graphql_type *ty = graphql_type_named(s, f->type);

	if (ty == NULL) {
		mv_errtext_set(t, "the type of field %.80s is not known", f->name);
		return false;
	}
	buf_addf(out, "%s %s", graphql_op_words[op], f->name);
	if (!generate_variables(f, out, t))
		return false;
	buf_addf(out, " { %s", f->name);
	generate_arguments(f, out);
	if (ty->kind != GRAPHQL_SCALAR && ty->kind != GRAPHQL_ENUM &&
	    !graphql_put_selection(s, op, ty, o, out)) {
		mv_errtext_set(t, "of field %.80s nothing can be selected", f->name);
		return false;
	}
	buf_add_str(out, " }");
	return true;
}

/* Variables are described as the arguments are. */
static void
generate_describe(struct graphql_operation *op, const struct graphql_field *f)
{
	for (size_t i = 0; i < op->n_vars; i++) {
		const char *description = f->args[i].description;

		MCPVISOR_ASSERT(strcmp(op->vars[i].name, f->args[i].name) == 0);
		if (description != NULL)
			op->vars[i].description = mem_xstrdup(description);
	}
}

struct graphql_document *
graphql_generate(const struct graphql_schema *s, enum graphql_op op, const char *field,
    const struct graphql_generate_opts *o, struct mv_errtext *t)
{
	const struct graphql_field *f = graphql_root_field(s, op, field);
	struct graphql_document *d = NULL;
	struct buf text;

	if (f == NULL) {
		mv_errtext_set(t, "the schema has no field %.100s", field);
		return NULL;
	}
	buf_init(&text, GRAPHQL_FILE_MAX);
	if (generate_put(s, op, f, o, &text, t)) {
		if (text.err == MV_OK)
			d = graphql_document_read(text.data, text.len, t);
		else
			mv_errtext_set(t, "%s", mv_err_text(text.err));
	}
	if (d != NULL)
		generate_describe(&d->operations[0], f);
	buf_fini(&text);
	return d;
}
