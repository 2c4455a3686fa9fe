/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* Operations made of root fields. */
#include "mcpvisor/graphql.h"

#include "graphql_rig.h"

static const struct {
	enum graphql_op op;
	const char *field;
	uint32_t depth, max_fields;
	const char *text, *why; /* one of both */
} rows[] = {
    {GRAPHQL_QUERY, "version", 2, 60, "query version { version }", NULL},
    {GRAPHQL_QUERY, "version", 0, 0, "query version { version }", NULL},
    {GRAPHQL_QUERY, "user", 1, 60,
	"query user($by: By!) { user(by: $by) { id name banner } }", NULL},
    {GRAPHQL_QUERY, "user", 2, 60,
	"query user($by: By!) { user(by: $by) { id name banner company { id title } "
	"orders { totalCount edges { cursor node { id title total } } nodes { id title "
	"total } pageInfo { hasNextPage endCursor } } } }",
	NULL},
    {GRAPHQL_QUERY, "user", 3, 12,
	"query user($by: By!) { user(by: $by) { id name banner company { id title "
	"address "
	"{ street } } orders { totalCount edges { cursor } } } }",
	NULL},
    {GRAPHQL_QUERY, "user", 3, 2, "query user($by: By!) { user(by: $by) { id name } }",
	NULL},
    {GRAPHQL_QUERY, "users", 1, 60,
	"query users($filter: Filter, $matrix: [[Int!]!]!, $first: Int = 10, $code: "
	"Country, $since: DateTime = \"2020-01-01\") { users(filter: $filter, matrix: "
	"$matrix, first: $first, code: $code, since: $since) { id name banner } }",
	NULL},
    {GRAPHQL_QUERY, "orders", 1, 60,
	"query orders($first: Int! = 5, $after: String) { orders(first: $first, after: "
	"$after) { totalCount edges { cursor node { id title total } } nodes { id title "
	"total } pageInfo { hasNextPage endCursor } } }",
	NULL},
    {GRAPHQL_QUERY, "find", 2, 60,
	"query find($text: String!) { find(text: $text) { __typename ... on User { id "
	"name banner } ... on Company { id title } ... on Order { id Order_title: title "
	"total } } }",
	NULL},
    {GRAPHQL_QUERY, "node", 2, 60,
	"query node($id: ID!) { node(id: $id) { __typename id } }", NULL},
    {GRAPHQL_QUERY, "named", 1, 60, "query named { named { __typename id name } }", NULL},
    {GRAPHQL_QUERY, "named", 2, 60,
	"query named { named { __typename id name owner { id name banner } } }", NULL},
    {GRAPHQL_QUERY, "hollow", 3, 60, NULL, "of field hollow nothing can be selected"},
    {GRAPHQL_QUERY, "holder", 3, 60, NULL, "of field holder nothing can be selected"},
    {GRAPHQL_QUERY, "query", 3, 60, NULL, "of field query nothing can be selected"},
    {GRAPHQL_QUERY, "user", 0, 60, NULL, "of field user nothing can be selected"},
    {GRAPHQL_QUERY, "user", 2, 0, NULL, "of field user nothing can be selected"},
    {GRAPHQL_QUERY, "nobody", 2, 60, NULL, "the schema has no field nobody"},
    {GRAPHQL_SUBSCRIPTION, "user", 2, 60, NULL, "the schema has no field user"},
    {GRAPHQL_MUTATION, "setStatus", 1, 60,
	"mutation setStatus($id: ID!, $status: Status! = OPEN, $big: BigInt, $money: "
	"Money, $any: JSON) { setStatus(id: $id, status: $status, big: $big, money: "
	"$money, any: $any) { id title total } }",
	NULL},
    {GRAPHQL_MUTATION, "setPhoto", 1, 60,
	"mutation setPhoto($photo: Photo!) { setPhoto(photo: $photo) }", NULL},
};

/* What becomes of a field: text, or none, and why not. Ends s. */
static void
generates(struct graphql_schema *s, enum graphql_op op, const char *field,
    const struct graphql_generate_opts *o, const char *text, const char *why)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d = graphql_generate(s, op, field, o, &t);

	if (text != NULL) {
		ck_assert_msg(d != NULL, "%s: %s", field, t.message);
		ck_assert_str_eq(d->operations[0].text, text);
		ck_assert_str_eq(d->operations[0].name, field);
		ck_assert_int_eq(d->operations[0].op, op);
	} else {
		ck_assert_ptr_null(d);
		ck_assert_str_eq(t.message, why);
	}
	graphql_document_free(d);
	graphql_schema_free(s);
}

START_TEST(test_row)
{
	struct graphql_generate_opts o = {rows[_i].depth, rows[_i].max_fields};

	generates(
	    rig_schema(), rows[_i].op, rows[_i].field, &o, rows[_i].text, rows[_i].why);
}
END_TEST

START_TEST(test_descriptions)
{
	struct graphql_schema *s = rig_schema();
	struct graphql_generate_opts o = {2, 60};
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d = graphql_generate(s, GRAPHQL_QUERY, "user", &o, &t);

	ck_assert_ptr_nonnull(d);
	ck_assert_str_eq(d->operations[0].vars[0].description, "Who.");
	graphql_document_free(d);
	graphql_schema_free(s);
}
END_TEST

/* Defaults of a schema that would break out of the text, and types cut off. */
#define FIELD(args)                                                                      \
	"{\"kind\":\"SCALAR\",\"name\":\"Int\"},{\"kind\":\"OBJECT\",\"name\":"          \
	"\"Query\",\"fields\":[{\"name\":\"a\",\"type\":{\"kind\":\"SCALAR\",\"name\":"  \
	"\"Int\"},\"args\":[" args "]}]}"
#define ARG(type, dflt) "{\"name\":\"x\",\"defaultValue\":\"" dflt "\",\"type\":" type "}"
#define INT		"{\"kind\":\"SCALAR\",\"name\":\"Int\"}"

static const struct {
	const char *types, *text, *why;
} odd[] = {
    {FIELD(ARG(INT, "1")), "query a($x: Int = 1) { a(x: $x) }", NULL},
    {FIELD(ARG(INT, "1 # c")), "query a($x: Int = 1) { a(x: $x) }", NULL},
    {FIELD(ARG(INT, "1){b} #")), "query a($x: Int) { a(x: $x) }", NULL},
    {FIELD(ARG(INT, "$y")), "query a($x: Int) { a(x: $x) }", NULL},
    {FIELD(ARG(INT, "[1,{b:\\\"}\\\"}]")),
	"query a($x: Int = [1,{b:\"}\"}]) { a(x: $x) }", NULL},
    {FIELD(ARG("{\"kind\":\"LIST\",\"name\":null}", "")), NULL,
	"argument x of field a has a type that was not told in full"},
    {FIELD(ARG("{\"kind\":\"SCALAR\",\"name\":\"Int){a}\"}", "")), NULL,
	"argument x of field a has a type that was not told in full"},
    {FIELD(ARG(INT, "") "," ARG(INT, "")), NULL, "column 19: variable $x is there twice"},
};

START_TEST(test_odd)
{
	struct graphql_generate_opts o = {2, 60};

	generates(
	    rig_types(odd[_i].types), GRAPHQL_QUERY, "a", &o, odd[_i].text, odd[_i].why);
}
END_TEST

/* Types that each lead to all the others, as deep and wide as one may ask for. */
START_TEST(test_wide)
{
	struct graphql_generate_opts o = {UINT32_MAX, UINT32_MAX};
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d;
	struct graphql_schema *s;
	struct buf b;

	buf_init(&b, GRAPHQL_SCHEMA_MAX);
	buf_add_str(&b, INT);
	for (unsigned i = 0; i <= 100; i++) {
		if (i < 100)
			buf_addf(&b, ",{\"kind\":\"OBJECT\",\"name\":\"T%u\"", i);
		else
			buf_add_str(&b, ",{\"kind\":\"OBJECT\",\"name\":\"Query\"");
		buf_addf(&b, ",\"fields\":[{\"name\":\"leaf\",\"type\":" INT "}");
		for (unsigned j = 0; j < 100; j++)
			buf_addf(&b,
			    ",{\"name\":\"f%u\",\"type\":{\"kind\":\"OBJECT\",\"name\":"
			    "\"T%u\"}}",
			    j, j);
		buf_add_str(&b, "]}");
	}
	s = rig_types(buf_cstr(&b));
	d = graphql_generate(s, GRAPHQL_QUERY, "f0", &o, &t);
	ck_assert_msg(d != NULL, "%s", t.message);
	ck_assert_uint_lt(d->operations[0].n_selected, 40000);
	graphql_document_free(d);
	graphql_schema_free(s);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {test_row, COUNT(rows)},
	    {test_descriptions, 1},
	    {test_odd, COUNT(odd)},
	    {test_wide, 1},
	};

	return rig_run("graphql_generate", NULL, NULL, tests, COUNT(tests));
}
