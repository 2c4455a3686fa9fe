/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Tools of a GraphQL endpoint: which there are, what they are called, what they send, and
 * what keeps an operation from being one. */
#include "upstream_graphql_priv.h"

#include "mcpvisor/mem.h"

#include "graphql_rig.h"
#include "temp_rig.h"

#include "fake/fake_tree.h"

static struct upstream u;
static struct upstream_conf *conf;
static struct gql_files files;
static struct graphql_schema *schema;
static struct gql_tools *tools;
static struct mv_errtext why;
static struct temp temp;
static char *patterns[2];
static char log_text[16384];

static void
on_log(enum log_level level, const char *line, size_t len, void *arg)
{
	size_t n = strlen(log_text);

	(void)level;
	(void)arg;
	if (n + len + 2 < sizeof(log_text))
		(void)snprintf(log_text + n, sizeof(log_text) - n, "%s\n", line);
}

static void
setup(void)
{
	temp_make(&temp);
	patterns[0] = mem_xstrdup(temp_path(&temp, "*.graphql"));
	conf = upstream_conf_new("crm");
	conf->kind = KIND_GRAPHQL;
	u = (struct upstream){.magic = UPSTREAM_MAGIC, .conf = conf};
	schema = NULL;
	tools = NULL;
	why = (struct mv_errtext){.line = 0};
	log_text[0] = '\0';
	log_set_sink(on_log, NULL);
}

static void
teardown(void)
{
	log_set_sink(NULL, NULL);
	gql_tools_free(tools);
	graphql_schema_free(schema);
	gql_files_fini(&files);
	upstream_conf_free(conf);
	mem_free(patterns[0]);
	temp_remove(&temp);
}

/* False: there are none, and why says so. */
static bool
build(void)
{
	struct gql_sources s = {.u = &u, .files = &files, .schema = schema};
	struct buf all;

	gql_files_look(&files, "crm", patterns);
	gql_tools_free(tools);
	tools = gql_tools_new(&s, &why);
	if (tools == NULL)
		return false;
	buf_init(&all, 1u << 24);
	buf_add_str(&all, "{\"tools\":[");
	buf_add(&all, tools->listing.data, tools->listing.len);
	buf_add_str(&all, "]}");
	tree_assert_object(all.data, all.len);
	buf_fini(&all);
	return true;
}

static const struct gql_tool *
tool(const char *quoted)
{
	return gql_tools_find(tools, (struct jtext){quoted, strlen(quoted)});
}

static bool
listing_has(const char *s)
{
	return strstr(buf_cstr(&tools->listing), s) != NULL;
}

static char **
list_of(const char *one)
{
	char **v = mem_xcalloc(2, sizeof(*v));

	v[0] = mem_xstrdup(one);
	return v;
}

START_TEST(operations_become_tools)
{
	temp_write(&temp, "a.graphql",
	    "# Looks up.\nquery GetUser($id: ID!) { user(by: {id: $id}) { ...F } }\n"
	    "\"Of the list\" query users { users { id } }");
	temp_write(&temp, "f.graphql", "# lib\nfragment F on User { id }");
	temp_write(&temp, "top-level.graphql", "{ version }");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert_uint_eq(tools->n, 3);
	ck_assert_ptr_nonnull(tool("\"GetUser\""));
	ck_assert_ptr_nonnull(tool("\"top-level\""));
	ck_assert_ptr_null(tool("\"F\""));
	ck_assert(listing_has("{\"name\":\"GetUser\",\"description\":\"Looks up.\","
			      "\"inputSchema\":{\"type\":\"object\""));
	ck_assert(listing_has("\"description\":\"Of the list\""));
	ck_assert(listing_has("\"description\":\"GraphQL query top-level\""));
	ck_assert(listing_has(
	    "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,"
	    "\"idempotentHint\":true,\"openWorldHint\":true}"));
	ck_assert_ptr_null(strstr(tools->listing.data, "outputSchema"));
}
END_TEST

START_TEST(requests_have_their_fragments)
{
	const struct gql_tool *t;

	temp_write(&temp, "a.graphql", "query A { user(by: {id: 1}) { ...F } }");
	temp_write(&temp, "f.graphql",
	    "\"told\" fragment F on User { id } # c\nfragment G on User { name }");
	ck_assert_msg(build(), "%s", why.message);
	t = tool("\"A\"");
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(memcmp(t->head.data, "{\"query\":\"query A", 16), 0);
	ck_assert_ptr_nonnull(strstr(buf_cstr((struct buf *)(uintptr_t)&t->head),
	    "\",\"operationName\":\"A\",\"variables\":"));
	ck_assert_ptr_nonnull(strstr(t->head.data, "fragment F on User"));
	ck_assert_ptr_null(strstr(t->head.data, "fragment G"));
	ck_assert_ptr_null(strstr(t->head.data, "told"));
}
END_TEST

START_TEST(field_descriptions)
{
	schema = rig_schema();
	temp_write(&temp, "a.graphql", "query A { user(by: {id: 1}) { id } }");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert(listing_has("\"name\":\"A\",\"description\":\"One user.\""));
}
END_TEST

START_TEST(output_schema_is_open)
{
	conf->graphql.output_schema = true;
	temp_write(&temp, "a.graphql", "query A { version }");
	ck_assert(build());
	ck_assert(listing_has("\"outputSchema\":{\"type\":\"object\""));
	ck_assert(listing_has("\"_warning\""));
	conf->graphql.plain = true;
	ck_assert(build());
	ck_assert(!listing_has("outputSchema"));
}
END_TEST

/* What of a file, a field and the free form there is in each mode. */
static const struct {
	enum graphql_mutations mutations;
	enum graphql_execute execute;
	bool has_file, has_field, may_change;
} modes[] = {
    {MUTATIONS_NONE, EXECUTE_OFF, false, false, false},
    {MUTATIONS_NONE, EXECUTE_QUERIES, false, false, false},
    {MUTATIONS_NONE, EXECUTE_ALL, false, false, false},
    {MUTATIONS_EXPLICIT, EXECUTE_OFF, true, false, false},
    {MUTATIONS_EXPLICIT, EXECUTE_ALL, true, false, false},
    {MUTATIONS_ALL, EXECUTE_QUERIES, true, true, false},
    {MUTATIONS_ALL, EXECUTE_ALL, true, true, true},
};

static bool
executes(const char *arguments, enum graphql_op *op, struct buf *text)
{
	struct jtext args = {arguments, strlen(arguments)};

	buf_reset(text);
	return gql_execute_check(&conf->graphql, args, op, text);
}

START_TEST(mutation_modes)
{
	enum graphql_op op = GRAPHQL_QUERY;
	struct buf text;

	buf_init(&text, 8192);
	schema = rig_schema();
	conf->graphql.mutations = modes[_i].mutations;
	conf->graphql.execute = modes[_i].execute;
	conf->graphql.fields = list_of("Mutation.setStatus");
	temp_write(&temp, "a.graphql",
	    "mutation M($id: ID!) { setStatus(id: $id, status: OPEN) { id } }\n"
	    "subscription S { tick }\nquery Q { version }");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert(tool("\"Q\"") != NULL && tool("\"S\"") == NULL);
	ck_assert((tool("\"M\"") != NULL) == modes[_i].has_file);
	ck_assert_msg(
	    (tool("\"setStatus\"") != NULL) == modes[_i].has_field, "%s", log_text);
	ck_assert(
	    (tool("\"crm_execute\"") != NULL) == (modes[_i].execute != EXECUTE_OFF));
	ck_assert_ptr_nonnull(strstr(log_text, "subscriptions are not supported"));
	if (modes[_i].has_file)
		ck_assert(listing_has("\"readOnlyHint\":false,\"destructiveHint\":true,"
				      "\"idempotentHint\":false,\"openWorldHint\":true"));
	ck_assert(
	    executes("{\"query\":\"mutation{a}\"}", &op, &text) == modes[_i].may_change);
	ck_assert(!modes[_i].may_change || op == GRAPHQL_MUTATION);
	buf_fini(&text);
}
END_TEST

START_TEST(snake_names)
{
	conf->graphql.names = NAMES_SNAKE;
	conf->graphql.mutations = MUTATIONS_ALL;
	conf->graphql.fields = list_of("*.set*");
	schema = rig_schema();
	temp_write(&temp, "a.graphql", "query GetUserById { version }");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert_ptr_nonnull(tool("\"get_user_by_id\""));
	ck_assert_ptr_nonnull(tool("\"mutate_set_status\""));
}
END_TEST

START_TEST(generated_fields)
{
	const struct gql_tool *t;

	conf->graphql.fields = list_of("Query.us*");
	schema = rig_schema();
	ck_assert_msg(build(), "%s", why.message);
	ck_assert_uint_eq(tools->n, 2);
	t = tool("\"users\"");
	ck_assert_ptr_nonnull(t);
	ck_assert_ptr_nonnull(
	    strstr(buf_cstr((struct buf *)(uintptr_t)&t->head), "\"variables\":"));
}
END_TEST

START_TEST(names_that_collide)
{
	temp_write(&temp, "a.graphql", "query A { version }");
	temp_write(&temp, "b.graphql", "query A { version }");
	ck_assert(!build());
	ck_assert_ptr_nonnull(strstr(why.message, "two tools would be called A"));
	ck_assert_ptr_nonnull(strstr(why.message, "/a.graphql:1"));
	ck_assert_ptr_nonnull(strstr(why.message, "/b.graphql:1"));
}
END_TEST

START_TEST(too_many)
{
	conf->graphql.max_tools = 1;
	temp_write(&temp, "a.graphql", "query A { version } query B { version }");
	ck_assert(!build());
	ck_assert_ptr_nonnull(strstr(why.message, "2 tools"));
	ck_assert_ptr_nonnull(strstr(why.message, "max_tools is 1"));
	conf->graphql.max_tools = 2;
	ck_assert(build());
}
END_TEST

START_TEST(broken_files)
{
	const struct graphql_document *a, *b;

	temp_write(&temp, "a.graphql", "query A { version }");
	temp_write(&temp, "b.graphql", "query B {\n version");
	ck_assert(build());
	ck_assert(tool("\"A\"") != NULL && tools->n == 1);
	ck_assert_ptr_nonnull(strstr(log_text, "b.graphql"));
	ck_assert_ptr_nonnull(strstr(log_text, "line=2"));
	/* Mended, then broken again: what it had stays, and it is told once. */
	temp_write(&temp, "b.graphql", "query B { version }");
	ck_assert(build() && tools->n == 2);
	a = files.of[0].doc;
	b = files.of[1].doc;
	temp_write(&temp, "b.graphql", "type T { a: Int }");
	log_text[0] = '\0';
	ck_assert(build() && tool("\"B\"") != NULL);
	ck_assert_ptr_nonnull(strstr(log_text, "operation file refused"));
	log_text[0] = '\0';
	ck_assert(build() && tool("\"B\"") != NULL);
	ck_assert_ptr_null(strstr(log_text, "operation file refused"));
	ck_assert(files.of[0].doc == a && files.of[1].doc == b);
	ck_assert_int_eq(unlink(temp_path(&temp, "b.graphql")), 0);
	ck_assert(build() && tool("\"B\"") == NULL);
}
END_TEST

/* A fragment that is nowhere, and a variable that cannot be an argument. */
START_TEST(operations_that_cannot_be)
{
	schema = rig_schema();
	conf->graphql.mutations = MUTATIONS_ALL;
	temp_write(&temp, "a.graphql",
	    "query A { ...Nowhere } mutation B($p: Upload) { setPhoto(photo: $p) }\n"
	    "query C($x: NoSuchType) { version } query D { version }");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert_uint_eq(tools->n, 1);
	ck_assert_ptr_nonnull(tool("\"D\""));
	ck_assert_ptr_nonnull(strstr(log_text, "Nowhere"));
	ck_assert_ptr_nonnull(strstr(log_text, "Upload"));
	ck_assert_ptr_nonnull(strstr(log_text, "NoSuchType"));
}
END_TEST

START_TEST(manifests)
{
	temp_write(&temp, "m.graphql",
	    "{\"format\":\"apollo-persisted-query-manifest\",\"version\":1,"
	    "\"operations\":["
	    "{\"id\":\"1\",\"name\":\"A\",\"type\":\"query\",\"body\":\"query A { ...F } "
	    "fragment F on Query { version }\"},{\"id\":\"2\",\"name\":\"B\",\"type\":"
	    "\"query\",\"body\":\"query B { ...F } fragment F on Query { version }\"}]}");
	ck_assert_msg(build(), "%s", why.message);
	ck_assert_msg(tools->n == 2, "%s", log_text);
	ck_assert(tool("\"A\"") != NULL && tool("\"B\"") != NULL);
}
END_TEST

static const struct {
	const char *arguments;
	const char *why; /* NULL: it may be sent */
} executed[] = {
    {"{\"query\":\"{a}\"}", NULL},
    {"{\"query\":\"query A{a} query B{b}\",\"operationName\":\"B\"}", NULL},
    {"{\"query\":\"query A{a} query B{b}\"}", "one operation unless"},
    {"{\"query\":\"query A{a}\",\"operationName\":\"C\"}", "names none"},
    {"{\"query\":\"{a\"}", "must be a GraphQL document"},
    {"{\"query\":\"type A { b: C }\"}", "must be a GraphQL document"},
    {"{\"query\":\"subscription{a}\"}", "got a subscription"},
    {"{\"query\":\"mutation{a}\"}", "got a mutation"},
    /* Whichever of them the endpoint takes. */
    {"{\"query\":\"mutation A{a} query A{b}\",\"operationName\":\"A\"}",
	"got a mutation"},
    {"{\"query\":\"mutation A{a} query B{b}\",\"operationName\":\"B\"}",
	"got a mutation"},
    {"{\"query\":\"query A{a} subscription B{b}\",\"operationName\":\"A\"}",
	"got a subscription"},
    {"{\"query\":\"query A{a{b}} query A{a}\",\"operationName\":\"A\"}", "names several"},
    {"{\"query\":\"{...F} fragment F on Q{...F}\"}", "must be a GraphQL document"},
    {"{\"query\":\"{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a}}}}}}}}}}}}}}}\"}", NULL},
    {"{\"query\":\"{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a}}}}}}}}}}}}}}}}\"}",
	"at most 15 levels deep; it has 16"},
};

START_TEST(what_the_model_writes)
{
	enum graphql_op op = GRAPHQL_MUTATION;
	struct buf text;
	bool ok;

	buf_init(&text, 8192);
	conf->graphql.execute = EXECUTE_QUERIES;
	ok = executes(executed[_i].arguments, &op, &text);
	ck_assert_msg(ok == (executed[_i].why == NULL), "%s: %s", executed[_i].arguments,
	    buf_cstr(&text));
	if (ok) {
		ck_assert_int_eq(op, GRAPHQL_QUERY);
	} else {
		ck_assert_msg(
		    strstr(buf_cstr(&text), executed[_i].why) != NULL, "%s", text.data);
		ck_assert_ptr_nonnull(strstr(text.data, "Retrying unchanged will fail."));
	}
	buf_fini(&text);
}
END_TEST

START_TEST(too_many_fields)
{
	enum graphql_op op;
	struct buf text, args;

	buf_init(&text, 8192);
	buf_init(&args, 1u << 20);
	buf_add_str(&args, "{\"query\":\"{");
	for (int i = 0; i <= GQL_EXECUTE_FIELDS; i++)
		buf_addf(&args, " f%d", i);
	buf_add_str(&args, "}\"}");
	ck_assert(!executes(buf_cstr(&args), &op, &text));
	ck_assert_ptr_nonnull(
	    strstr(buf_cstr(&text), "at most 500 fields; it selects 501"));
	buf_fini(&text);
	buf_fini(&args);
}
END_TEST

START_TEST(request_of_the_model)
{
	static const char args[] =
	    "{\"variables\":{\"n\":12345678901234567890, \"x\":null},"
	    "\"query\":\"{\\u0061}\",\"operationName\":null}";
	struct buf out;

	buf_init(&out, 8192);
	gql_execute_put_request(&out, (struct jtext){args, sizeof(args) - 1});
	ck_assert_str_eq(buf_cstr(&out),
	    "{\"query\":\"{\\u0061}\",\"variables\":{\"n\":12345678901234567890, "
	    "\"x\":null}}");
	buf_fini(&out);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {operations_become_tools, 1},
	    {requests_have_their_fragments, 1},
	    {field_descriptions, 1},
	    {output_schema_is_open, 1},
	    {mutation_modes, COUNT(modes)},
	    {snake_names, 1},
	    {generated_fields, 1},
	    {names_that_collide, 1},
	    {too_many, 1},
	    {broken_files, 1},
	    {operations_that_cannot_be, 1},
	    {manifests, 1},
	    {what_the_model_writes, COUNT(executed)},
	    {too_many_fields, 1},
	    {request_of_the_model, 1},
	};

	return rig_run("graphql_tools", setup, teardown, tests, COUNT(tests));
}
