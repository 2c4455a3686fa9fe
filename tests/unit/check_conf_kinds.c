/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Kinds of upstreams in a conf, what each needs and has, and options about results. */
#include "conf_rig.h"

#define GRAPHQL "upstream : { a : { kind = \"graphql\"\n url = \"http://h/\"\n"
#define EXEC                                                                             \
	"upstream : { a : { kind = \"exec\"\n"                                           \
	"tool = ( { tool = \"t\"; command = \"/bin/ls\" } )\n"
#define SHELL                                                                            \
	"upstream : { a : { kind = \"shell\"\n"                                          \
	"file = \"f\"; tools_file = \"t\"\n"

static const struct {
	const char *text, *words;
} bad[] = {
    {"upstream : { a : {\n kind = \"grpc\" } }",
	"m.conf:2: upstream.a.kind: is none of \"stdio\", \"http\", \"graphql\", "
	"\"exec\", \"shell\""},
    {"upstream : { a : { kind = \"stdio\" } }",
	"m.conf:1: upstream.a: command is missing: it is of kind stdio"},
    {"upstream : { a : { kind = \"http\" } }", ":1: upstream.a: url is missing"},
    {"upstream : { a : { kind = \"graphql\" } }", "url is missing: it is of kind graph"},
    {"upstream : { a : { kind = \"exec\" } }", "tool is missing: it is of kind exec"},
    {"upstream : { a : { kind = \"shell\"; tools_file = \"t\" } }",
	"upstream.a: file is missing: it is of kind shell"},
    {"upstream : { a : { kind = \"shell\"; file = \"t\" } }",
	"upstream.a: tools_file is missing: it is of kind shell"},
    {"upstream : { a : { kind = \"http\"\n command = \"x\"; url = \"http://h/\" } }",
	":2: upstream.a: there are both a command and a url"},
    {"upstream : { a : { kind = \"http\"\n command = \"x\" } }", "url is missing"},
    {"defaults : { kind = \"exec\" }", "defaults.kind: is an option of one upstream"},
    {"defaults : { file = \"f\" }", "defaults.file: is an option of one upstream"},
    {GRAPHQL "args = [] } }",
	"m.conf:3: upstream.a.args: is an option of kind stdio, and this upstream is of "
	"kind graphql"},
    {GRAPHQL "cwd = \"/\" } }", ":3: upstream.a.cwd: is an option of kind stdio, exec "
				"or shell, and this upstream is of kind graphql"},
    {GRAPHQL "transport = \"sse\" } }", "is an option of kind http, and"},
    {GRAPHQL "era = \"modern\" } }", "is an option of kind stdio or http, and"},
    {GRAPHQL "graphql = \"on\" } }",
	":3: upstream.a.graphql: is an option of kind stdio, http, exec or shell"},
    {GRAPHQL "tool = ( { tool = \"t\"\n graphql = \"off\" } ) } }",
	":4: upstream.a.tool.0.graphql: is an option of kind stdio, http, exec"},
    {GRAPHQL "tool = ( { tool = \"t\"\n command = \"/bin/ls\" } ) } }",
	":4: upstream.a.tool.0.command: is an option of kind exec, and"},
    {GRAPHQL "timeout_ms = 1 } }", "is an option of kind exec or shell, and"},
    {GRAPHQL "mutations = \"some\" } }", "is none of \"none\", \"explicit\", \"all\""},
    {GRAPHQL "operations = \"x\" } }", "operations: want an array of strings"},
    {GRAPHQL "schema = \"\" } }", "upstream.a.schema: is empty"},
    {GRAPHQL "scalars = \"{\" } }", "upstream.a.scalars: is no JSON object"},
    {GRAPHQL "scalers : { } } }", ":3: upstream.a.scalers: unknown setting; is "
				  "\"scalars\" meant?"},
    {EXEC "url = \"http://h/\" } }", "url: is an option of kind http or graphql, and"},
    {EXEC "file = \"f\" } }", ":3: upstream.a.file: is an option of kind shell, and"},
    {EXEC "depth = 2 } }", "depth: is an option of kind graphql, and"},
    {EXEC "term_ms = 2 } }", "term_ms: is an option of kind stdio or http, and"},
    {EXEC "user = \"no such user\" } }", ":3: upstream.a.user: is no user of this"},
    {EXEC "rlimits : { files = 2 } } }", "rlimits.files: unknown setting"},
    {EXEC "rlimits : {\n nofiles = 2 } } }",
	":4: upstream.a.rlimits.nofiles: unknown setting; is \"nofile\" meant?"},
    {EXEC "env_pass = [\"TZ\",\n \"LD_PRELOAD\"] } }",
	":4: upstream.a.env_pass.1: programs of this kind must not get that"},
    {EXEC "env_pass = [\"LD_*\"] } }", "env_pass.0: programs of this kind must not"},
    {EXEC "env_pass = [\"PYTHON*\"] } }", "env_pass.0: programs of this kind must not"},
    {EXEC "env_pass = [\"PERL5OPT\"] } }", "env_pass.0: programs of this kind must not"},
    {EXEC "env_pass = [\"BASH_ENV\"] } }", "env_pass.0: programs of this kind must not"},
    {SHELL "env_pass = [\"BASH_FUNC_x\"] } }", "env_pass.0: programs of this kind must"},
    {SHELL "env_pass = [\"IFS\"] } }", "env_pass.0: programs of this kind must not"},
    {SHELL "env_pass = [\"NODE_OPTIONS\"] } }", "env_pass.0: programs of this kind"},
    {SHELL "interpreter = \"bash\" } }", ":3: upstream.a.interpreter: is no absolute"},
    {SHELL "interpreter = \"/no/such\" } }", "interpreter: No such file"},
    {SHELL "interpreter = \"/\" } }", "interpreter: is no file"},
    {SHELL "interpreter = \"/etc/passwd\" } }", "interpreter: is not executable"},
    {SHELL "tool = ( { tool = \"t\"; read_only = 1 } ) } }", "want true or false"},
    {"upstream : { a : { command = \"x\"\n tool = ( { tool = \"t\"\n read_only = true "
     "} ) } }",
	":3: upstream.a.tool.0.read_only: is an option of kind graphql, exec or shell"},
    {"upstream : { a : { command = \"x\"\n fail_if = [\"text:a\",\n \"json\"] } }",
	":3: upstream.a.fail_if.1: "},
    {"upstream : { a : { command = \"x\"\n fail_if = \"text:a\" } }",
	":2: upstream.a.fail_if: want an array of strings"},
    {"upstream : { a : { command = \"x\"\n fail_if = [\"text:(\"] } }",
	":2: upstream.a.fail_if.0: "},
    {"upstream : { a : { command = \"x\"\n graphql_root = \"data\" } }",
	":2: upstream.a.graphql_root: "},
    {"upstream : { a : { command = \"x\"\n graphql = \"yes\" } }",
	":2: upstream.a.graphql: is none of \"auto\", \"on\", \"off\""},
    {"upstream : { a : { command = \"x\"\n identity_path = \"data\" } }",
	":2: upstream.a.identity_path: "},
    {"upstream : { a : { command = \"x\"\n identity_tools = \"whoami\" } }",
	":2: upstream.a.identity_tools: is none of \"auto\", \"none\""},
    {"upstream : { a : { command = \"x\"\n identity_tools = 1 } }",
	":2: upstream.a.identity_tools: want a word or an array of strings"},
    {"upstream : { a : { command = \"x\"\n identity_null_text = [\"a\",\n \"(\"] } }",
	":3: upstream.a.identity_null_text.1: "},
    {"upstream : { a : { command = \"x\"\n probe : { allow = [\"@x\"] } } }",
	":2: upstream.a.probe.allow.0: is no pattern"},
    {"probe : { fil = \"x\" }", ":1: probe.fil: unknown setting; is \"file\" meant?"},
};

START_TEST(test_bad)
{
	rig_bad(bad[_i].text, bad[_i].words);
}
END_TEST

START_TEST(test_dump)
{
	rig_dumps(GRAPHQL
	    "headers : { A = \"${MARK}\" }; operations = [\"crm/*.graphql\", \"/o\"]\n"
	    "schema = \"s.json\"; schema_cache = \"${MARK}\"; fields = [\"Query.*\"]\n"
	    "structured = false; scalars : { Date : { type = \"string\" } } } }",
	    "upstream.a.kind = \"graphql\"\n"
	    "upstream.a.url = \"http://h/\"\n"
	    "upstream.a.headers.A = (secret)\n"
	    "upstream.a.operations = [\"/nonexistent/crm/*.graphql\", \"/o\"]\n"
	    "upstream.a.schema = \"/nonexistent/s.json\"\n"
	    "upstream.a.schema_cache = (secret)\n"
	    "upstream.a.fields = [\"Query.*\"]\n"
	    "upstream.a.structured = false\n"
	    "upstream.a.scalars = {\"Date\":{\"type\":\"string\"}}\n");
	rig_dumps(GRAPHQL "schema = \"none\"; tool = ( { tool = \"t\"\n"
			  "read_only = true; destructive = false } ) } }",
	    "upstream.a.kind = \"graphql\"\nupstream.a.url = \"http://h/\"\n"
	    "upstream.a.schema = \"none\"\nupstream.a.tool.t.tool = \"t\"\n"
	    "upstream.a.tool.t.read_only = true\n"
	    "upstream.a.tool.t.destructive = false\n");
	rig_dumps(SHELL "rlimits : { cpu_s = \"1m\"; as = 0 }; user = \"root\" } }",
	    "upstream.a.kind = \"shell\"\n"
	    "upstream.a.file = \"/nonexistent/f\"\n"
	    "upstream.a.tools_file = \"/nonexistent/t\"\n"
	    "upstream.a.user = \"root\"\nupstream.a.rlimits.as = 0\n");
	rig_dumps("probe : { file = \"p\"; sample_max = \"8k\" }",
	    "probe.file = \"/nonexistent/p\"\nprobe.sample_max = 8192\n");
	rig_dumps("upstream : { a : { kind = \"http\"; url = \"http://h/\" }\n"
		  "	b : { kind = \"stdio\"; command = \"x\" } }",
	    "upstream.a.url = \"http://h/\"\nupstream.b.command = \"x\"\n");
}
END_TEST

START_TEST(test_dump_of_labels)
{
	rig_dumps("upstream : { a : { command = \"x\"; graphql = \"off\"\n"
		  "	fail_if = [\"json:/ok=false\", \"text:^Error\"]\n"
		  "	identity_tools = [\"me\", \"who*\"]; identity_path = \"/a\"\n"
		  "	identity_null_text = [\"nobody\"]\n"
		  "	probe : { deny = [\"@open_world\"] }\n"
		  "	tool = ( { tool = \"t\"; graphql_root = \"/r\"; fail_if = []\n"
		  "		probe_args : { a = \"${MARK}\" } } ) } }",
	    "upstream.a.command = \"x\"\n"
	    "upstream.a.graphql = \"off\"\n"
	    "upstream.a.fail_if = [\"json:/ok=false\", \"text:^Error\"]\n"
	    "upstream.a.identity_tools = [\"me\", \"who*\"]\n"
	    "upstream.a.identity_path = \"/a\"\n"
	    "upstream.a.identity_null_text = [\"nobody\"]\n"
	    "upstream.a.probe.deny = [\"@open_world\"]\n"
	    "upstream.a.tool.t.tool = \"t\"\n"
	    "upstream.a.tool.t.graphql_root = \"/r\"\n"
	    "upstream.a.tool.t.fail_if = []\n"
	    "upstream.a.tool.t.probe_args = (secret)\n");
	rig_dumps("upstream : { a : { command = \"x\"; identity_tools = \"none\" }\n"
		  "	b : { command = \"x\"; identity_tools = \"auto\" } }",
	    "upstream.a.command = \"x\"\nupstream.a.identity_tools = \"none\"\n"
	    "upstream.b.command = \"x\"\n");
}
END_TEST

START_TEST(test_members)
{
	struct conf *c = rig_good(
	    "defaults : { fail_if = [\"json:/error\"]; timeout_ms = 7; mutations = "
	    "\"all\"\n"
	    "	identity_null_text = [\"d\"]; tls_verify = false }\n" GRAPHQL
	    "structured = false }\n"
	    "b : { command = \"x\"; fail_if = [\"text:a\", \"text:b\"]\n"
	    "	identity_null_text = [\"b\", \"c\"] }\n"
	    "e : { kind = \"exec\"; stderr = \"merge\"; overflow = \"kill\"\n"
	    "	tool = ( { tool = \"t\"; command = \"/bin/ls\" } ) } }");
	const struct upstream_conf *a = c->upstreams[0], *b = c->upstreams[1],
				   *e = c->upstreams[2];

	ck_assert_int_eq(a->kind, KIND_GRAPHQL);
	ck_assert(a->graphql.plain && a->skip_verify);
	ck_assert_int_eq(a->graphql.mutations, MUTATIONS_ALL);
	ck_assert_uint_eq(a->label.n_rules, 1);
	ck_assert_str_eq(a->label.rules[0].pointer, "/error");
	ck_assert_ptr_null(a->env);
	ck_assert_int_eq(b->kind, KIND_STDIO);
	ck_assert_uint_eq(b->label.n_rules, 2);
	ck_assert_ptr_nonnull(b->label.rules[1].pattern);
	ck_assert_str_eq(b->identity.null_texts[1], "c");
	ck_assert(
	    pattern_matches(b->identity.patterns[1], "c", 1, &(size_t){PATTERN_STEPS}));
	ck_assert_ptr_null(b->identity.patterns[2]);
	ck_assert_int_eq(b->graphql.mutations, MUTATIONS_NONE);
	ck_assert_int_eq(e->kind, KIND_EXEC);
	ck_assert_uint_eq(e->exec.limits.timeout_ms, 7);
	ck_assert_int_eq(e->exec.limits.err, EXEC_STDERR_MERGE);
	ck_assert_int_eq(e->exec.limits.overflow, EXEC_OVERFLOW_KILL);
	conf_free(c);
}
END_TEST

static size_t
count(char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

/* Programs that are run for calls have PATH and what the conf says, and nothing that
 * makes them run something else, however a pattern came to name it. */
START_TEST(test_environment)
{
	struct conf *c;
	const struct upstream_conf *a, *b;

	ck_assert_int_eq(setenv("LD_PRELOAD_X", "no", 1), 0);
	ck_assert_int_eq(setenv("RIG_TZ", "yes", 1), 0);
	c = rig_good("defaults : { env_pass = [\"LD_PRELOAD_X\", \"RIG_*\"] }\n" EXEC
		     "env : { A = \"1\" } }\n"
		     "b : { command = \"x\" }\n"
		     "s : { kind = \"shell\"; file = \"f\"; tools_file = \"t\"\n"
		     "	env_pass = [\"*_X\"]; env : { PATH = \"/p\" } } }");
	a = c->upstreams[0];
	b = c->upstreams[1];
	ck_assert_uint_eq(count(a->env), 3);
	ck_assert_str_eq(rig_env_get(a->env, "PATH"), "/usr/bin:/bin");
	ck_assert_str_eq(a->path, "/usr/bin:/bin");
	ck_assert_str_eq(rig_env_get(a->env, "A"), "1");
	ck_assert_str_eq(rig_env_get(a->env, "RIG_TZ"), "yes");
	ck_assert_str_eq(rig_env_get(b->env, "LD_PRELOAD_X"), "no");
	ck_assert_uint_eq(count(c->upstreams[2]->env), 1);
	ck_assert_str_eq(c->upstreams[2]->path, "/p");
	conf_free(c);
	ck_assert_int_eq(unsetenv("LD_PRELOAD_X"), 0);
	ck_assert_int_eq(unsetenv("RIG_TZ"), 0);
}
END_TEST

/* A machine that lacks what a disabled one needs can have it in its conf. */
START_TEST(test_a_disabled_one_may_lack_its_programs)
{
	conf_free(rig_good(
	    "upstream : { a : { kind = \"shell\"; enabled = false; file = \"f\"\n"
	    "	tools_file = \"t\"; interpreter = \"/no/such\" }\n"
	    "b : { kind = \"exec\"; enabled = false; tool = ( { tool = \"t\"\n"
	    "	command = \"/no/such\"; input_schema = \"none.json\"\n"
	    "	args = [\"{x}\"] } ) } }"));
}
END_TEST

START_TEST(test_diff)
{
	struct conf *from = rig_good(GRAPHQL "max_tools = 1; fail_if = [\"text:a\"] } }"),
		    *to = rig_good(GRAPHQL "max_tools = 2; fail_if = [\"text:b\"] } }");
	struct buf out;

	buf_init(&out, 65536);
	ck_assert_uint_eq(conf_diff(from, to, &out), 2);
	ck_assert_str_eq(buf_cstr(&out),
	    "~ upstream.a.fail_if: [\"text:a\"] -> [\"text:b\"]\n"
	    "~ upstream.a.max_tools: 1 -> 2 (restarts it)\n");
	buf_fini(&out);
	conf_free(from);
	conf_free(to);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("conf_kinds");

	tcase_add_loop_test(tc, test_bad, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(tc, test_dump);
	tcase_add_test(tc, test_dump_of_labels);
	tcase_add_test(tc, test_members);
	tcase_add_test(tc, test_environment);
	tcase_add_test(tc, test_a_disabled_one_may_lack_its_programs);
	tcase_add_test(tc, test_diff);
	return rig_run("conf_kinds", tc);
}
