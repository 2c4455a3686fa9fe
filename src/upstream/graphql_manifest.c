/* SPDX-License-Identifier: MIT */
/*
 * Manifests of persisted queries, as Apollo's tools write them: each operation comes with
 * the fragments that it needs.
 *
 * Owns: the document until it is complete.
 * Driven by: whoever reads files of operations.
 * Invariants: each operation has the name that the manifest gives it; no two fragments
 * have the same name and the same text.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define MANIFEST_FORMAT "apollo-persisted-query-manifest"

static int
fragment_order(const void *a, const void *b)
{
	const struct graphql_fragment *x = a, *y = b;
	int by_name = strcmp(x->name, y->name);

	return by_name != 0 ? by_name : strcmp(x->text, y->text);
}

static void
manifest_merge(struct graphql_document *d)
{
	struct graphql_fragment *v = d->fragments;
	size_t k = 0;

	if (d->n_fragments < 2)
		return;
	qsort(v, d->n_fragments, sizeof(*v), fragment_order);
	for (size_t i = 1; i < d->n_fragments; i++) {
		if (fragment_order(&v[k], &v[i]) != 0)
			v[++k] = v[i];
		else
			graphql_fragment_fini(&v[i]);
	}
	d->n_fragments = k + 1;
}

static bool
manifest_entry(struct graphql_document *d, json_t *entry, struct mv_errtext *t)
{
	json_t *body = json_object_get(entry, "body");
	const char *name = json_string_value(json_object_get(entry, "name")), *found;
	struct graphql_document *one;
	struct mv_errtext why = {.line = 0};

	if (body == NULL || !json_is_string(body)) {
		mv_errtext_set(t, "body is no string");
		return false;
	}
	one = graphql_document_read(
	    json_string_value(body), json_string_length(body), &why);
	if (one == NULL) {
		mv_errtext_set(t, "body: line %d, %.300s", why.line, why.message);
		return false;
	}
	found = one->n_operations == 1 ? one->operations[0].name : NULL;
	if (found == NULL || (name != NULL && strcmp(found, name) != 0)) {
		mv_errtext_set(t, "body is not one operation with that name");
		graphql_document_free(one);
		return false;
	}
	graphql_document_move(d, one);
	return true;
}

struct graphql_document *
graphql_manifest_read(const char *text, size_t n, struct mv_errtext *t)
{
	struct graphql_document *d = mem_xcalloc(1, sizeof(*d));
	struct mv_errtext why = {.line = 0};
	json_error_t je = {.line = 0};
	json_t *root = NULL, *operations, *entry;
	const char *format, *name;
	bool is_sound = false;
	size_t i;

	if (n > GRAPHQL_FILE_MAX) {
		mv_errtext_set(t, "longer than %u bytes", GRAPHQL_FILE_MAX);
		goto out;
	}
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
	if (root == NULL) {
		if (t != NULL)
			t->line = je.line;
		mv_errtext_set(t, "column %d: %s", je.column, je.text);
		goto out;
	}
	format = json_string_value(json_object_get(root, "format"));
	operations = json_object_get(root, "operations");
	if (format == NULL || strcmp(format, MANIFEST_FORMAT) != 0 ||
	    !json_is_array(operations)) {
		mv_errtext_set(t, "not of format " MANIFEST_FORMAT);
		goto out;
	}
	is_sound = true;
	json_array_foreach(operations, i, entry)
	{
		is_sound = manifest_entry(d, entry, &why);
		if (is_sound)
			continue;
		name = json_string_value(json_object_get(entry, "name"));
		mv_errtext_set(t, "operation %zu (%.80s): %.350s", i + 1,
		    name != NULL ? name : "without a name", why.message);
		break;
	}
	manifest_merge(d);
out:
	json_decref(root);
	if (!is_sound) {
		graphql_document_free(d);
		d = NULL;
	}
	return d;
}
