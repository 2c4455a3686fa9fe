/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* What is sent for an operation, and manifests of operations. */
#include "mcpvisor/graphql.h"

#include "graphql_rig.h"

/* ---- requests ---- */

#define LIB                                                                              \
	"fragment F on T{f{...G}}\n# c\nfragment G on T{g h}\n\"d\" fragment U on T{u}"

/* Of the first operation of the first document. */
static const struct {
	const char *docs[3];
	const char *sent, *why; /* one of both */
	uint32_t depth, n_selected;
} requests[] = {
    {{"query A{a} query B{b}"}, "query A{a}", NULL, 1, 1},
    {{"{a{...F}} " LIB}, "{a{...F}}\nfragment F on T{f{...G}}\nfragment G on T{g h}",
	NULL, 3, 4},
    {{"{...G ...G a{...G}}", LIB}, "{...G ...G a{...G}}\nfragment G on T{g h}", NULL, 2,
	7},
    {{"{...G}fragment F on T{f}", "fragment G on T{...F}"},
	"{...G}\nfragment F on T{f}\nfragment G on T{...F}", NULL, 1, 1},
    {{"{...X}", LIB}, NULL, "fragment X is nowhere", 0, 0},
    {{"{...F}", "fragment F on T{...X}"}, NULL, "fragment X is nowhere", 0, 0},
    {{"{...F}", LIB, LIB}, NULL, "two fragments are called F", 0, 0},
    {{"{a}", LIB, LIB}, "{a}", NULL, 1, 1},
    {{"{...F}", "fragment F on T{...F}"}, NULL, "fragment F spreads itself", 0, 0},
    {{"{...F}", "fragment F on T{a{...G}}fragment G on T{...F}"}, NULL,
	"fragment F spreads itself", 0, 0},
};

START_TEST(test_request)
{
	struct graphql_document *docs[3];
	struct mv_errtext t = {.message = ""};
	uint32_t depth = 0, n_selected = 0;
	size_t n = 0;
	struct buf b;
	bool ok;

	buf_init(&b, 1 << 16);
	for (; n < 3 && requests[_i].docs[n] != NULL; n++) {
		docs[n] = rig_document(requests[_i].docs[n], &t);
		ck_assert_msg(docs[n] != NULL, "%s", t.message);
	}
	ok = graphql_put_request(&b, &docs[0]->operations[0],
	    (const struct graphql_document *const *)docs, n, &depth, &n_selected, &t);
	ck_assert_msg(ok == (requests[_i].sent != NULL), "%s", t.message);
	if (ok) {
		ck_assert_str_eq(buf_cstr(&b), requests[_i].sent);
		ck_assert_uint_eq(depth, requests[_i].depth);
		ck_assert_uint_eq(n_selected, requests[_i].n_selected);
	} else {
		ck_assert_str_eq(t.message, requests[_i].why);
	}
	while (n-- > 0)
		graphql_document_free(docs[n]);
	buf_fini(&b);
}
END_TEST

/* Fragments that each spread the next one twice: what is executed doubles. And a chain
 * that is long is no deep recursion. */
START_TEST(test_request_grows)
{
	const unsigned n = 20000;
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d;
	uint32_t depth, n_selected;
	struct buf b, out;

	buf_init(&b, GRAPHQL_FILE_MAX);
	buf_init(&out, 2 * (size_t)GRAPHQL_FILE_MAX);
	buf_add_str(&b, "{...f0}");
	for (unsigned i = 0; i < n; i++)
		buf_addf(&b, "fragment f%u on T{...f%u...f%u}", i, i + 1, i + 1);
	buf_addf(&b, "fragment f%u on T{a}", n);
	d = graphql_document_read(b.data, b.len, &t);
	ck_assert_msg(d != NULL, "%s", t.message);
	ck_assert(graphql_put_request(&out, &d->operations[0],
	    (const struct graphql_document *const *)&d, 1, &depth, &n_selected, &t));
	ck_assert_uint_eq(depth, 1);
	ck_assert_uint_eq(n_selected, UINT32_MAX);
	graphql_document_free(d);
	buf_fini(&out);
	buf_fini(&b);
}
END_TEST

/* ---- manifests ---- */

#define MANIFEST(ops)                                                                    \
	"{\"format\":\"apollo-persisted-query-manifest\",\"version\":1,\"operations\":"  \
	"[" ops "]}"
#define ENTRY(name, body)                                                                \
	"{\"id\":\"1\",\"name\":\"" name "\",\"type\":\"query\",\"body\":\"" body "\"}"

static const struct {
	const char *text, *why;
	size_t n_operations, n_fragments;
} manifests[] = {
    {MANIFEST(""), NULL, 0, 0},
    {MANIFEST(ENTRY("A", "query A{a}") "," ENTRY("B", "mutation B{b}")), NULL, 2, 0},
    {MANIFEST(ENTRY("A", "query A{...F}fragment F on T{a}") "," ENTRY(
	 "B", "query B{...F}fragment F on T{a}")),
	NULL, 2, 1},
    {MANIFEST(ENTRY("A", "query A{...F}fragment F on T{a}") "," ENTRY(
	 "B", "query B{...F}fragment F on T{b}")),
	NULL, 2, 2},
    {MANIFEST(ENTRY("A", "query B{a}")), "operation 1 (A): body is not one", 0, 0},
    {MANIFEST(ENTRY("A", "{a}")), "operation 1 (A): body is not one", 0, 0},
    {MANIFEST(ENTRY("A", "query A{a} query B{a}")), "operation 1 (A): body is not one", 0,
	0},
    {MANIFEST(ENTRY("A", "query A{a}") "," ENTRY("B", "query B{\\n")),
	"operation 2 (B): body: line 2, column 1: expected a name", 0, 0},
    {MANIFEST("{\"name\":\"A\"}"), "operation 1 (A): body is no string", 0, 0},
    {MANIFEST("7"), "operation 1 (without a name): body is no string", 0, 0},
    {"{\"format\":\"other\",\"operations\":[]}", "not of format apollo-", 0, 0},
    {"{\"format\":\"apollo-persisted-query-manifest\"}", "not of format", 0, 0},
    {"[]", "not of format", 0, 0},
    {"{", "column", 0, 0},
    {"", "column", 0, 0},
};

START_TEST(test_manifest)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d =
	    graphql_manifest_read(manifests[_i].text, strlen(manifests[_i].text), &t);

	ck_assert_msg((d == NULL) == (manifests[_i].why != NULL), "%s: %s",
	    manifests[_i].text, t.message);
	if (d != NULL) {
		ck_assert_uint_eq(d->n_operations, manifests[_i].n_operations);
		ck_assert_uint_eq(d->n_fragments, manifests[_i].n_fragments);
	} else {
		ck_assert_msg(
		    strstr(t.message, manifests[_i].why) != NULL, "%s", t.message);
	}
	graphql_document_free(d);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {test_request, COUNT(requests)},
	    {test_request_grows, 1},
	    {test_manifest, COUNT(manifests)},
	};

	return rig_run("graphql_request", NULL, NULL, tests, COUNT(tests));
}
