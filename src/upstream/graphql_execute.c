/* SPDX-License-Identifier: MIT */
/*
 * The tool that runs what the model writes: what it takes, and what of it may be sent.
 *
 * Owns: nothing. Driven by: graphql_tools.c, graphql_call.c.
 * Invariants: what is sent is what was looked at: the bytes of the arguments, each member
 * there once; no operation of a document that is sent may change what it must not,
 * whichever of them the endpoint takes.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/mem.h"

#include <string.h>

bool
gql_execute_may_change(const struct graphql_conf *c)
{
	return c->execute == EXECUTE_ALL && c->mutations == MUTATIONS_ALL;
}

static struct argspec *
execute_argument(enum arg_type type, const char *name, const char *description)
{
	struct argspec *a = argspec_new(type, name);

	a->description = mem_xstrdup(description);
	return a;
}

struct argspec *
gql_execute_arguments(void)
{
	struct argspec *root = argspec_new(ARG_OBJECT, NULL);
	struct argspec *query = execute_argument(
	    ARG_STRING, "query", "The GraphQL document, with its fragments.");
	struct argspec *variables =
	    execute_argument(ARG_OBJECT, "variables", "Values of its variables.");
	struct argspec *name = execute_argument(ARG_STRING, "operationName",
	    "Which operation to run, if the document has several.");

	query->is_required = true;
	query->min_length = 1;
	variables->is_open = true;
	variables->is_nullable = true;
	name->is_nullable = true;
	argspec_add_member(root, query);
	argspec_add_member(root, variables);
	argspec_add_member(root, name);
	return root;
}

/* The one that would run; NULL: none would, and why says so. Of two that share a name
 * endpoints that do not validate take either. */
static const struct graphql_operation *
execute_choose(const struct graphql_document *d, struct jtext name, struct buf *why)
{
	const struct graphql_operation *found = NULL;
	size_t n_found = 0;

	if (name.n == 0 && d->n_operations == 1)
		return &d->operations[0];
	for (size_t i = 0; name.n != 0 && i < d->n_operations; i++) {
		if (d->operations[i].name == NULL ||
		    !json_string_is(name, d->operations[i].name))
			continue;
		found = &d->operations[i];
		n_found++;
	}
	if (n_found == 1)
		return found;
	if (name.n != 0) {
		buf_addf(why,
		    "Argument 'operationName' must name one operation of the document; "
		    "it names %s. Retrying unchanged will fail.",
		    n_found == 0 ? "none" : "several");
	} else {
		buf_addf(why,
		    "Argument 'query' must have one operation unless 'operationName' "
		    "names one; it has %zu. Retrying unchanged will fail.",
		    d->n_operations);
	}
	return NULL;
}

/* All of the document: which one runs is up to the endpoint in the end. */
static bool
execute_is_allowed(
    const struct graphql_conf *c, const struct graphql_document *d, struct buf *why)
{
	bool may_change = gql_execute_may_change(c);

	for (size_t i = 0; i < d->n_operations; i++) {
		enum graphql_op op = d->operations[i].op;

		if (op == GRAPHQL_QUERY || (op == GRAPHQL_MUTATION && may_change))
			continue;
		buf_addf(why,
		    "Argument 'query' must be a query%s; got %s%s. Retrying unchanged "
		    "will fail.",
		    may_change ? " or a mutation" : "",
		    op == GRAPHQL_MUTATION ? "a mutation" : "a subscription",
		    d->n_operations > 1 ? " beside others" : "");
		return false;
	}
	return true;
}

static void
execute_say_no_document(struct buf *why, const struct mv_errtext *t)
{
	buf_add_str(why, "Argument 'query' must be a GraphQL document: ");
	if (t->line != 0)
		buf_addf(why, "line %d: ", t->line);
	buf_addf(why, "%s. Retrying unchanged will fail.", t->message);
}

static bool
execute_fits(
    const struct graphql_document *d, const struct graphql_operation *op, struct buf *why)
{
	struct mv_errtext t = {.line = 0};
	uint32_t depth = 0, n = 0;
	struct buf text;
	bool ok;

	buf_init(&text, 2 * GRAPHQL_FILE_MAX);
	ok = graphql_put_request(&text, op, &d, 1, &depth, &n, &t);
	buf_fini(&text);
	if (!ok) {
		execute_say_no_document(why, &t);
	} else if (depth > GQL_EXECUTE_DEPTH) {
		buf_addf(why,
		    "Argument 'query' must be at most %d levels deep; it has %u. "
		    "Retrying unchanged will fail.",
		    GQL_EXECUTE_DEPTH, depth);
	} else if (n > GQL_EXECUTE_FIELDS) {
		buf_addf(why,
		    "Argument 'query' must select at most %d fields; it selects %u. "
		    "Retrying unchanged will fail.",
		    GQL_EXECUTE_FIELDS, n);
	}
	return ok && why->len == 0;
}

bool
gql_execute_check(const struct graphql_conf *c, struct jtext arguments,
    enum graphql_op *kind, struct buf *why)
{
	const struct graphql_operation *op = NULL;
	struct graphql_document *d = NULL;
	struct mv_errtext t = {.line = 0};
	struct buf text;

	buf_init(&text, GRAPHQL_FILE_MAX);
	if (!json_string_decode(argspec_get(arguments, "query"), &text) ||
	    text.err != MV_OK) {
		mv_errtext_set(&t, "it is too long");
	} else {
		d = graphql_document_read(
		    text.data != NULL ? text.data : "", text.len, &t);
	}
	buf_fini(&text);
	if (d == NULL)
		execute_say_no_document(why, &t);
	else if (execute_is_allowed(c, d, why))
		op = execute_choose(d, argspec_get(arguments, "operationName"), why);
	if (op != NULL && !execute_fits(d, op, why))
		op = NULL;
	if (op != NULL)
		*kind = op->op;
	graphql_document_free(d);
	return op != NULL;
}

static void
execute_put_member(struct buf *out, const char *key, struct jtext value)
{
	if (value.n == 0)
		return;
	buf_addf(out, "%c\"%s\":", out->len == 0 ? '{' : ',', key);
	json_put(out, value);
}

void
gql_execute_put_request(struct buf *out, struct jtext arguments)
{
	static const char *const keys[] = {"query", "operationName", "variables"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		execute_put_member(out, keys[i], argspec_get(arguments, keys[i]));
	buf_add_char(out, '}');
}
