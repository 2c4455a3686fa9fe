/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: documents of operations, and answers to introspection.
 *
 * What is sent for an operation is a document of that one operation; read again it gives
 * the same text, variables and measures. Arguments that it becomes have a schema that is
 * JSON. A default is JSON. What is generated from a schema can be sent.
 */
#include "mcpvisor/graphql.h"

#include "fuzz_rig.h"
#include "mcpvisor/err.h"

static void
check_variables(const struct graphql_operation *op, const struct graphql_operation *again)
{
	MCPVISOR_ASSERT(again->n_vars == op->n_vars);
	for (size_t i = 0; i < op->n_vars; i++) {
		const struct graphql_var *v = &op->vars[i], *w = &again->vars[i];

		MCPVISOR_ASSERT(strcmp(v->name, w->name) == 0);
		MCPVISOR_ASSERT(strcmp(v->type, w->type) == 0);
		MCPVISOR_ASSERT((v->dflt == NULL) == (w->dflt == NULL));
		MCPVISOR_ASSERT(v->dflt == NULL || strcmp(v->dflt, w->dflt) == 0);
		MCPVISOR_ASSERT(w->description == NULL);
	}
}

static void
check_arguments(const struct graphql_operation *op, const struct graphql_schema *schema)
{
	struct graphql_types types = {.schema = schema};
	struct mv_errtext t = {.message = ""};
	struct argspec *s = graphql_arguments(&types, op, &t);
	struct buf b;

	if (s == NULL) {
		MCPVISOR_ASSERT(*t.message != '\0');
		return;
	}
	buf_init(&b, 64u << 20);
	argspec_put_schema(s, &b);
	MCPVISOR_ASSERT(is_json((struct jtext){b.data, b.len}, JSON_K_OBJECT));
	buf_fini(&b);
	argspec_free(s);
}

static void
check_operation(const struct graphql_operation *op, const struct graphql_document *d)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_document *again;
	struct buf sent, twice;
	uint32_t depth, n_selected;

	check_arguments(op, NULL);
	buf_init(&sent, 4 * (size_t)GRAPHQL_FILE_MAX);
	buf_init(&twice, 4 * (size_t)GRAPHQL_FILE_MAX);
	if (graphql_put_request(&sent, op, &d, 1, &depth, &n_selected, &t)) {
		MCPVISOR_ASSERT(depth >= op->depth && n_selected >= op->n_selected);
		again = graphql_document_read(sent.data, sent.len, &t);
		MCPVISOR_ASSERT(again && again->n_operations == 1);
		check_variables(op, &again->operations[0]);
		MCPVISOR_ASSERT(graphql_put_request(&twice, &again->operations[0],
		    (const struct graphql_document *const *)&again, 1, NULL, NULL, &t));
		MCPVISOR_ASSERT(same_bytes((struct jtext){sent.data, sent.len},
		    (struct jtext){twice.data, twice.len}));
		graphql_document_free(again);
	} else {
		MCPVISOR_ASSERT(sent.len == 0 && *t.message != '\0');
	}
	buf_fini(&twice);
	buf_fini(&sent);
}

static void
check_document(const char *text, size_t n)
{
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d = graphql_document_read(text, n, &t);

	if (d == NULL) {
		MCPVISOR_ASSERT(t.line > 0 && *t.message != '\0');
		return;
	}
	MCPVISOR_ASSERT(d->n_operations + d->n_fragments > 0);
	for (size_t i = 0; i < d->n_operations; i++)
		check_operation(&d->operations[i], d);
	graphql_document_free(d);
}

static void
check_field(void *arg, const char *type, const char *field)
{
	static const struct graphql_generate_opts o = {3, 60};
	struct graphql_schema *s = arg;
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d = graphql_generate(s, GRAPHQL_QUERY, field, &o, &t);

	MCPVISOR_ASSERT(strcmp(type, "Query") == 0);
	if (d == NULL) {
		MCPVISOR_ASSERT(*t.message != '\0');
		return;
	}
	MCPVISOR_ASSERT(d->n_operations == 1 && d->n_fragments == 0);
	MCPVISOR_ASSERT(d->operations[0].n_selected <= 62);
	MCPVISOR_ASSERT(strcmp(d->operations[0].fields[0], field) == 0);
	check_operation(&d->operations[0], d);
	check_arguments(&d->operations[0], s);
	graphql_document_free(d);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size);
	struct mv_errtext t = {.message = ""};
	struct graphql_schema *s;

	check_document(text, size);
	graphql_document_free(graphql_manifest_read(text, size, &t));
	s = graphql_schema_read(text, size, &t);
	if (s != NULL)
		graphql_each_field(s, GRAPHQL_QUERY, check_field, s);
	graphql_schema_free(s);
	mem_free(text);
	return 0;
}
