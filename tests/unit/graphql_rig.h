/* SPDX-License-Identifier: MIT */
/*
 * What the suites over GraphQL share: text as a document, the schema of tests/corpus,
 * types written by hand, and how a suite runs.
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

struct rig_test {
	const TTest *test;
	int n; /* it runs so many times, with _i from 0 on */
};

/* setup and teardown may be NULL. */
static inline int
rig_run(const char *name, SFun setup, SFun teardown, const struct rig_test *tests, int n)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	for (int i = 0; i < n; i++)
		tcase_add_loop_test(tc, tests[i].test, 0, tests[i].n);
	suite_add_tcase(suite, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
