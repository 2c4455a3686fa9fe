/* SPDX-License-Identifier: MIT */
/*
 * What the suites over GraphQL share: text as a document, the schema of tests/corpus,
 * and types written by hand.
 */
#ifndef MCPVISOR_GRAPHQL_RIG_H
#define MCPVISOR_GRAPHQL_RIG_H

#include "mcpvisor/graphql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"

#include <check.h>

static inline struct graphql_document *
rig_document(const char *text, struct mv_errtext *t)
{
	struct graphql_document *d;
	size_t n = strlen(text);
	char *copy = mem_xalloc(n + 1);

	/* Of exactly its size, for the sanitizer. */
	memcpy(copy, text, n);
	copy = mem_xrealloc(copy, n > 0 ? n : 1);
	d = graphql_document_read(copy, n, t);
	mem_free(copy);
	return d;
}

/* Ends with graphql_schema_free. */
static inline struct graphql_schema *
rig_schema(void)
{
	const char *corpus = getenv("CORPUS");
	struct mv_errtext t = {.message = ""};
	struct graphql_schema *s;
	char path[4096], chunk[4096];
	struct buf b;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/introspection/shop.json", corpus ? corpus : ".");
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "%s", path);
	buf_init(&b, GRAPHQL_SCHEMA_MAX);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&b, chunk, n);
	fclose(f);
	s = graphql_schema_read(b.data, b.len, &t);
	ck_assert_msg(s != NULL, "%s", t.message);
	buf_fini(&b);
	return s;
}

/* Of JSON types, with a root Query. */
static inline struct graphql_schema *
rig_types(const char *types)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_schema *s;
	struct buf b;

	buf_init(&b, GRAPHQL_SCHEMA_MAX);
	buf_addf(&b, "{\"__schema\":{\"queryType\":{\"name\":\"Query\"},\"types\":[%s]}}",
	    types);
	s = graphql_schema_read(b.data, b.len, &t);
	ck_assert_msg(s != NULL, "%s", t.message);
	buf_fini(&b);
	return s;
}

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static inline int
rig_run(Suite *s)
{
	SRunner *sr = srunner_create(s);
	int failed;

	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
