/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* Types of an endpoint, and variables as arguments of a tool. */
#include "mcpvisor/graphql.h"

#include "graphql_rig.h"

/* The properties of the tool that "query Q(VARIABLES){a}" becomes, or why it becomes
 * none. */
static char *
arguments_of(
    const struct graphql_types *types, const char *variables, struct argspec **spec)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d;
	struct argspec *s;
	struct buf b;
	char *text;

	buf_init(&b, GRAPHQL_FILE_MAX);
	buf_addf(&b, "query Q(%s){a}", variables);
	d = graphql_document_read(b.data, b.len, &t);
	ck_assert_msg(d != NULL, "%s: %s", variables, t.message);
	buf_reset(&b);
	s = graphql_arguments(types, &d->operations[0], &t);
	if (s != NULL)
		argspec_put_schema(s, &b);
	else
		buf_add_str(&b, t.message);
	text = buf_take(&b, NULL);
	ck_assert_ptr_nonnull(text);
	graphql_document_free(d);
	if (spec != NULL)
		*spec = s;
	else
		argspec_free(s);
	buf_fini(&b);
	return text;
}

#define SCALARS                                                                          \
	"{\"Money\":{\"type\":\"string\",\"pattern\":\"^[0-9]+$\"},"                     \
	"\"Float\":{\"type\":\"number\",\"minimum\":0},\"JSON\":{\"oneOf\":[]},"         \
	"\"Upload\":{\"type\":\"string\"}}"

/* What schema has to have, or has to be without. */
static const struct {
	const char *variables;
	bool has_schema, has_scalars;
	const char *has[4], *lacks[4];
} rows[] = {
    {"$a:Int!$b:Float$c:String!=\"x\"$d:Boolean=true$e:ID!", true, false,
	{"\"a\":{\"type\":\"integer\",\"minimum\":-2147483648,\"maximum\":2147483647}",
	    "\"e\":{\"type\":\"string\"}",
	    "\"d\":{\"type\":\"boolean\",\"default\":true}",
	    "\"required\":[\"a\",\"e\"]"},
	{"\"c\"]", "null"}},
    {"$a:[[Int!]!]!", true, false,
	{"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":"
	 "\"integer\"",
	    "\"required\":[\"a\"]"},
	{NULL}},
    {"\"which\" $s:Status=OPEN", true, false,
	{"\"enum\":[\"OPEN\",\"CLOSED\"]", "\"default\":\"OPEN\"", "\"which\""},
	{"LOST", "required\":[\"s"}},
    {"$c:Country", true, false, {"One of: C000, C001, ", "C229"}, {"enum"}},
    {"$d:DateTime$b:BigInt$m:Money$j:JSON", true, false,
	{"\"format\":\"date-time\"", "\"b\":{\"type\":\"string\"}",
	    "\"m\":{\"description\":\"GraphQL scalar Money\"}", "\"j\":{}"},
	{NULL}},
    {"\"Price.\" $m:Money", true, false, {"Price.\\nGraphQL scalar Money"}, {NULL}},
    {"$m:Money$f:[Float]", true, true,
	{"\"pattern\":\"^[0-9]+$\"", "\"items\":{\"type\":\"number\",\"minimum\":0"},
	{"scalar Money"}},
    {"$j:JSON", true, true, {"variable $j: scalar JSON: "}, {NULL}},
    {"$m:Money$i:ID", false, false,
	{"\"m\":{\"description\":\"GraphQL type Money\"}", "\"i\":{\"type\":\"string\"}"},
	{NULL}},
    {"$m:Money", false, true, {"pattern"}, {"GraphQL type"}},
    {"$u:[Upload!]", true, false, {"variable $u: files cannot be uploaded"}, {NULL}},
    {"$u:Upload", false, false, {"variable $u: files cannot be uploaded"}, {NULL}},
    {"$u:Upload", true, true, {"\"u\":{\"type\":\"string\"}"}, {NULL}},
    {"$p:Photo", true, false, {"variable $p: files cannot be uploaded"}, {NULL}},
    {"$x:Nowhere!", true, false, {"variable $x: the schema has no type Nowhere"}, {NULL}},
    {"$x:User", true, false, {"variable $x: no type of variables is User"}, {NULL}},
    {"$b:By!", true, false,
	{"\"minProperties\":1", "\"maxProperties\":1",
	    "Exactly one member has to be given.", "\"required\":[\"b\"]"},
	{"oneOf", "[\"id\"]"}},
    {"$f:Filter", true, false,
	{"\"text\":{\"type\":\"string\",\"description\":\"Part of a title.\"}",
	    "\"default\":[\"OPEN\"]", "\"default\":{\"from\":2,\"to\":null}",
	    "\"required\":[\"must\"]"},
	{"\"status\",", "\"range\"]"}},
    {"$f:Filter", true, false,
	{"\"not\":{\"type\":\"object\",\"description\":\"GraphQL input type Filter\"",
	    "\"and\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"description\":"
	    "\"GraphQL input type Filter\""},
	{"$ref"}},
    {"$l:L1", true, false, {"GraphQL input type L6", "\"l5\":{\"type\":\"object\""},
	{"GraphQL input type L5", "\"x\""}},
    {"$l:L2", true, false, {"\"x\":{\"type\":\"integer\""}, {"GraphQL input type"}},
    {"$a:Int=null", true, false, {"\"a\":{\"type\":\"integer\""}, {"default"}},
};

START_TEST(test_row)
{
	struct graphql_schema *s = rows[_i].has_schema ? rig_schema() : NULL;
	struct graphql_types types = {.schema = s};
	char *text;

	if (rows[_i].has_scalars)
		types.scalars = (struct jtext){SCALARS, sizeof(SCALARS) - 1};
	text = arguments_of(&types, rows[_i].variables, NULL);
	for (unsigned i = 0; i < 4 && rows[_i].has[i] != NULL; i++)
		ck_assert_msg(strstr(text, rows[_i].has[i]) != NULL, "%s: no %s in %s",
		    rows[_i].variables, rows[_i].has[i], text);
	for (unsigned i = 0; i < 4 && rows[_i].lacks[i] != NULL; i++)
		ck_assert_msg(strstr(text, rows[_i].lacks[i]) == NULL, "%s: %s in %s",
		    rows[_i].variables, rows[_i].lacks[i], text);
	mem_free(text);
	graphql_schema_free(s);
}
END_TEST

/* What is sent to "query Q(VARIABLES){a}". */
static const struct {
	const char *variables, *arguments;
	const char *why; /* NULL: it passes */
} checks[] = {
    {"$s:Status!", "{\"s\":\"LOST\"}", NULL},
    {"$s:Status!", "{\"s\":\"open\"}", "OPEN, CLOSED"},
    {"$s:Status!", "{}", "GraphQL type Status!"},
    {"$s:Status!", "{\"s\":null}", "s"},
    {"$s:Status", "{\"s\":null}", NULL},
    {"$s:Status!=OPEN", "{}", NULL},
    {"$s:Status!=OPEN", "{\"s\":null}", "s"},
    {"$c:Country", "{\"c\":\"C229\"}", NULL},
    {"$c:Country", "{\"c\":\"C230\"}", "c"},
    {"$i:ID!", "{\"i\":7}", NULL},
    {"$i:ID!", "{\"i\":true}", "i"},
    {"$b:BigInt", "{\"b\":12345678901234567890}", NULL},
    {"$l:[Int]", "{\"l\":[1,null]}", NULL},
    {"$l:[Int!]", "{\"l\":[1,null]}", "l"},
    {"$m:[[Int!]!]!", "{\"m\":[[1],[]]}", NULL},
    {"$m:[[Int!]!]!", "{\"m\":[1]}", "m"},
    {"$n:Int", "{\"n\":2147483648}", "n"},
    {"$b:By!", "{\"b\":{\"id\":\"1\"}}", NULL},
    {"$b:By!", "{\"b\":{}}", "b"},
    {"$b:By!", "{\"b\":{\"id\":\"1\",\"email\":\"x\"}}", "b"},
    {"$b:By!", "{\"b\":{\"id\":null}}", "id"},
    {"$f:Filter", "{\"f\":{\"must\":true,\"not\":{\"anything\":1}}}", NULL},
    {"$f:Filter", "{\"f\":{\"text\":\"x\"}}", "must"},
    {"$f:Filter", "{\"f\":{\"must\":true,\"txt\":\"x\"}}", "txt"},
    {"$a:Int", "{\"b\":1}", "b"},
};

START_TEST(test_check)
{
	struct graphql_schema *s = rig_schema();
	struct graphql_types types = {.schema = s};
	struct jtext a = {checks[_i].arguments, strlen(checks[_i].arguments)};
	struct argspec *spec = NULL;
	struct buf why;
	bool ok;

	buf_init(&why, 4096);
	mem_free(arguments_of(&types, checks[_i].variables, &spec));
	ck_assert_ptr_nonnull(spec);
	ok = argspec_check(spec, a, &why);
	ck_assert_msg(ok == (checks[_i].why == NULL), "%s %s: %s", checks[_i].variables,
	    checks[_i].arguments, buf_cstr(&why));
	if (!ok)
		ck_assert_msg(
		    strstr(buf_cstr(&why), checks[_i].why) != NULL, "%s", buf_cstr(&why));
	argspec_free(spec);
	buf_fini(&why);
	graphql_schema_free(s);
}
END_TEST

/* Input types that each have all the others within: told less deep, and all of them. */
START_TEST(test_wide)
{
	struct graphql_types types;
	struct graphql_schema *s;
	struct buf b;
	char *text;

	buf_init(&b, GRAPHQL_SCHEMA_MAX);
	for (unsigned i = 0; i < 40; i++) {
		buf_addf(&b,
		    "%s{\"kind\":\"INPUT_OBJECT\",\"name\":\"I%u\",\"inputFields\":[",
		    i > 0 ? "," : "", i);
		for (unsigned j = 0; j < 40; j++)
			buf_addf(&b,
			    "%s{\"name\":\"f%u\",\"type\":{\"kind\":\"INPUT_OBJECT\","
			    "\"name\":\"I%u\"}}",
			    j > 0 ? "," : "", j, j);
		buf_add_str(&b, "]}");
	}
	s = rig_types(buf_cstr(&b));
	types = (struct graphql_types){.schema = s};
	text = arguments_of(&types, "$a:I0$b:I1", NULL);
	ck_assert_uint_lt(strlen(text), 100000);
	ck_assert_ptr_nonnull(strstr(text, "GraphQL input type I39"));
	ck_assert_ptr_null(strstr(text, "GraphQL input type I0\"},\"f1\":{\"type\":"
					"\"object\",\"properties\""));
	mem_free(text);
	graphql_schema_free(s);
	buf_fini(&b);
}
END_TEST

/* ---- the answer itself ---- */

static const struct {
	const char *text, *why;
} answers[] = {
    {"{\"__schema\":{\"queryType\":{\"name\":\"Q\"},\"types\":[]}}", NULL},
    {"{\"data\":{\"__schema\":{\"queryType\":{\"name\":\"Q\"},\"types\":[1,{},null,"
     "{\"kind\":\"ENUM\",\"name\":\"a-b\"},{\"kind\":\"ENUM\",\"name\":\"E\","
     "\"enumValues\":[{\"name\":\"\"},{\"name\":7}]},{\"kind\":\"OBJECT\",\"name\":"
     "\"Q\",\"fields\":[{\"name\":\"a\",\"args\":7},{\"name\":\"__a\"},{\"name\":\"b "
     "c\"}]},{\"kind\":\"UNION\",\"name\":\"U\",\"possibleTypes\":null}]}}}",
	NULL},
    {"\xef\xbb\xbf{\"__schema\":{\"queryType\":{\"name\":\"Q\"},\"types\":[]}}", NULL},
    {"{\"data\":{\"__schema\":{\"types\":[]}}}", "it has no __schema"},
    {"{\"data\":null,\"errors\":[]}", "it has no __schema"},
    {"[]", "it has no __schema"},
    {" {\"__schema\" : {\"queryType\":{\"name\":\"Q\"},\"types\":{\"kind\":1}}}\n",
	"it has no __schema"},
    {" \n{\"__schema\":{\"queryType\":{\"name\":\"\\u0051\"},\"types\":[[1],{\"kind\":"
     "\"INPUT_OBJECT\",\"name\":\"I\",\"inputFields\":{\"a\":{}}}]}} \n",
	NULL},
    {"{\"__schema\":{\"queryType\":{\"name\":\"Q\"},\"types\":[\"\xff\"]}}", "no JSON"},
    {"{", "no JSON"},
    {" ", "no JSON"},
    {"", "no JSON"},
};

START_TEST(test_answer)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_schema *s =
	    graphql_schema_read(answers[_i].text, strlen(answers[_i].text), &t);

	ck_assert_msg((s == NULL) == (answers[_i].why != NULL), "%s", answers[_i].text);
	if (s == NULL)
		ck_assert_msg(strstr(t.message, answers[_i].why), "%s", t.message);
	graphql_schema_free(s);
}
END_TEST

static void
on_field(void *arg, const char *type, const char *field)
{
	buf_addf(arg, "%s.%s ", type, field);
}

START_TEST(test_roots)
{
	struct graphql_schema *s = rig_schema();
	struct buf b;

	buf_init(&b, 4096);
	graphql_each_field(s, GRAPHQL_MUTATION, on_field, &b);
	graphql_each_field(s, GRAPHQL_SUBSCRIPTION, on_field, &b);
	ck_assert_str_eq(buf_cstr(&b), "Mutation.setStatus Mutation.setPhoto ");
	ck_assert_str_eq(
	    graphql_field_description(s, GRAPHQL_QUERY, "user"), "One user.");
	ck_assert_ptr_null(graphql_field_description(s, GRAPHQL_QUERY, "users"));
	ck_assert_ptr_null(graphql_field_description(s, GRAPHQL_QUERY, "nobody"));
	ck_assert_ptr_null(graphql_field_description(NULL, GRAPHQL_QUERY, "user"));
	graphql_schema_free(s);
	buf_fini(&b);
}
END_TEST

/* How deep each query asks, and that it is one. */
static const struct {
	enum graphql_introspection how;
	unsigned levels;
	bool is_full;
} queries[] = {
    {GRAPHQL_INTROSPECT_FULL, 7, true},
    {GRAPHQL_INTROSPECT_OLD, 7, false},
    {GRAPHQL_INTROSPECT_SHALLOW, 4, false},
};

START_TEST(test_query)
{
	struct graphql_document *d;
	struct mv_errtext t = {.message = ""};
	unsigned levels = 0;
	struct buf b;

	buf_init(&b, 4096);
	graphql_put_introspection(&b, queries[_i].how);
	d = graphql_document_read(b.data, b.len, &t);
	ck_assert_msg(d != NULL, "%s", t.message);
	ck_assert_str_eq(d->operations[0].name, "IntrospectionQuery");
	for (const char *p = buf_cstr(&b); (p = strstr(p, "ofType")) != NULL; p++)
		levels++;
	ck_assert_uint_eq(levels, queries[_i].levels);
	ck_assert(queries[_i].is_full == (strstr(b.data, "isOneOf") != NULL));
	graphql_document_free(d);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {test_row, COUNT(rows)},
	    {test_check, COUNT(checks)},
	    {test_wide, 1},
	    {test_answer, COUNT(answers)},
	    {test_roots, 1},
	    {test_query, COUNT(queries)},
	};

	return rig_run("graphql_schema", NULL, NULL, tests, COUNT(tests));
}
