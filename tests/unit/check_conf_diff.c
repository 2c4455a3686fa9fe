/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* What of a conf is shown: differences, and never a secret. */
#include "conf_rig.h"

#include <time.h>

#define UP "upstream : { a : { command = \"x\"; "

static const struct {
	const char *from, *to, *diff;
} cases[] = {
    {"", "", ""},
    {"drain_ms = 1000", "", ""},
    {"drain_ms = 1", "drain_ms = 2", "~ drain_ms: 1 -> 2\n"},
    {"", "list_wait_ms = 1", "~ list_wait_ms: 5000 -> 1 (needs a restart)\n"},
    {"", "limits : { sessions_max = 7 }",
	"~ limits.sessions_max: 10000 -> 7 (for new connections)\n"},
    {"", "state : { dir = \"/s\" }", "~ state.dir: (none) -> \"/s\" (needs a restart)\n"},
    {"state : { dir = \"/s\" }", "", "~ state.dir: \"/s\" -> (none) (needs a restart)\n"},
    {"", UP "} }", "+ upstream.a\n"},
    {UP "} }", "", "- upstream.a\n"},
    {UP "args = [\"1\"] } }", UP "args = [\"1\", \"2\"] } }",
	"~ upstream.a.args: [\"1\"] -> [\"1\", \"2\"] (restarts it)\n"},
    {UP "args = [\"1\"] } }", UP "} }",
	"~ upstream.a.args: [\"1\"] -> (none) (restarts it)\n"},
    {UP "args = [\"${MARK}\"] } }", UP "args = [\"${MARK}2\"] } }",
	"~ upstream.a.args: changed (restarts it)\n"},
    {UP "args = [\"${HOME}\"] } }", UP "args = [\"/home/u\"] } }", ""},
    {UP "env : { A = \"1\" } } }", UP "env : { A = \"2\" } } }",
	"~ upstream.a.env.A: changed (restarts it)\n"},
    {UP "env : { A = \"1\"; B = \"1\" } } }", UP "env : { B = \"1\"; C = \"1\" } } }",
	"~ upstream.a.env.A: (secret) -> (none) (restarts it)\n"
	"~ upstream.a.env.C: (none) -> (secret) (restarts it)\n"},
    {UP "call_ms = 1; enabled = false } }", UP "call_ms = 2 } }",
	"~ upstream.a.enabled: false -> true\n~ upstream.a.call_ms: 1 -> 2\n"},
    {UP "tool = ( { tool = \"t\"; name = \"u\" }, { tool = \"v\" } ) } }",
	UP "tool = ( { tool = \"t\"; name = \"w\" }, { tool = \"q\" } ) } }",
	"+ upstream.a.tool.q\n~ upstream.a.tool.t.name: \"u\" -> \"w\"\n"
	"- upstream.a.tool.v\n"},
    {"upstream : { a : { command = \"x\" }; b : { command = \"x\" } }",
	"upstream : { b : { command = \"x\" }; a : { command = \"x\" } }",
	"~ upstream: another order\n"},
    {"listen = ( { address = \":1\" } )",
	"listen = ( { address = \":2\" }, { address = \":1\"; mode = \"0660\" } )",
	"+ listen.:2/mcp\n"
	"~ listen.:1/mcp.mode: \"0600\" -> \"0660\" (for new connections)\n"},
    {"profile : { a : { upstreams = [\"x\"] } }",
	"profile : { a : { upstreams = [\"y\"] }; b : { } }",
	"~ profile.a.upstreams: [\"x\"] -> [\"y\"]\n+ profile.b\n"},
    {"log : { modules : { a = \"info\"; b = \"info\" } }",
	"log : { modules : { b = \"debug\" } }",
	"~ log.modules.a: \"info\" -> (none)\n"
	"~ log.modules.b: \"info\" -> \"debug\"\n"},
    {UP "} }", "upstream : { b : { command = \"x\" } }; drain_ms = 1",
	"~ drain_ms: 1000 -> 1\n- upstream.a\n+ upstream.b\n"},
};

START_TEST(test_diff)
{
	struct conf *from = rig_good(cases[_i].from), *to = rig_good(cases[_i].to);
	size_t lines = 0, n;
	struct buf out;

	buf_init(&out, 65536);
	n = conf_diff(from, to, &out);
	ck_assert_str_eq(buf_cstr(&out), cases[_i].diff);
	for (const char *p = cases[_i].diff; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(n, lines);
	buf_fini(&out);
	conf_free(from);
	conf_free(to);
}
END_TEST

/* Every string that may be expanded comes from a variable, and none is shown. */
static const char secretive[] =
    "state : { dir = \"/${MARK}\" }; control : { socket = \"${MARK}\"; group = "
    "\"${MARK}\" }\n"
    "listen = ( { address = \"unix:/${MARK}\"; path = \"/${MARK}\"; group = \"${MARK}\"\n"
    "	allowed_hosts = [\"${MARK}\"]; allowed_origins = [\"x\", \"${MARK}\"] } )\n"
    "defaults : { cwd = \"/${MARK}\"; env : { D = \"${MARK}\" }; env_pass = "
    "[\"${MARK}*\"] }\n"
    "upstream : { a : { command = \"${MARK}\"; args = [\"--key=${MARK}\"]\n"
    "	env : { A = \"${MARK}\"; B = \"hush-4711\" }; cwd = \"${MARK}\"\n"
    "	prefix = \"${MARK}\"; uri_prefix = \"${MARK}\"\n"
    "	tool = ( { tool = \"t\"; fixed : { k = \"${MARK}\" }; defaults : { k = "
    "[\"${MARK}\"] "
    "} } ) } }\n";

START_TEST(test_secrets)
{
	struct conf *c = rig_good(secretive), *none = conf_new_default();
	char *dump = rig_dump(c, false);
	struct buf out;

	ck_assert_msg(strstr(dump, RIG_MARK) == NULL, "%s", dump);
	ck_assert_ptr_nonnull(strstr(dump, "upstream.a.prefix = (secret)"));
	ck_assert_ptr_nonnull(strstr(dump, "upstream.a.tool.t.defaults = (secret)"));
	mem_free(dump);
	buf_init(&out, 65536);
	conf_diff(none, c, &out);
	conf_diff(c, none, &out);
	conf_diff(c, c, &out);
	ck_assert_ptr_null(strstr(buf_cstr(&out), RIG_MARK));
	buf_fini(&out);
	conf_free(c);
	conf_free(none);
}
END_TEST

/* Texts in which all strings but names are wrong and a secret. */
static const char *const wrong[] = {
    "log : { level = \"hush-4711\"; format = \"hush-4711\"; burst = \"hush-4711\" }",
    "state : { dir = [\"hush-4711\"]; lists = \"hush-4711\" }",
    "control : { mode = \"hush-4711\" }; limits : { memory_max = \"hush-4711\" }",
    "list_wait_ms = \"hush-4711\"; upstream_dir = \"/hush-4711\"",
    "listen = ( { address = \"hush-4711\"; path = \"hush-4711\" } )",
    "listen = ( { address = \"${MARK}\"; path = \"${MARK}\" }, \"hush-4711\" )",
    "upstream : { a : { command = (\"hush-4711\"); args = \"hush-4711\" } }",
    UP "env = [\"hush-4711\"]; prefix = \"hush-4711.\"; uri_prefix = \"1hush-4711\" } }",
    UP "env_file = \"/hush-4711\"; era = \"hush-4711\"; start = \"hush-4711\" } }",
    UP "env_file = \"/${MARK}\"; call_ms = \"hush-4711\"; enabled = \"hush-4711\" } }",
    UP "cwd = \"hush-4711${x\"; args = [\"hush-4711${NOT_SET}\"] } }",
    UP "env : { A = \"hush-4711${NOT_SET}\"; B = \"${hush-4711\" } } }",
    UP "tool = ( { tool = \"t\"; fixed = \"{\\\"hush-4711\\\"\" } ) } }",
    UP "tool = ( { tool = \"t\"; defaults : { a = \"hush-4711${NOT_SET}\" } } ) } }",
    UP "tools : { allow = [\"@hush-4711\"]; rename = \"hush-4711\" } } }",
    "profile : { p : { upstreams = \"hush-4711\"; tools = \"hush-4711\" } }",
    "state : { dir = \"hush-4711\" \"hush-4711\" = }",
};

START_TEST(test_errors_show_no_string)
{
	struct conf_errors e;

	ck_assert_ptr_null(rig_parse(wrong[_i], &e));
	ck_assert_uint_gt(e.n, 0);
	for (size_t i = 0; i < e.n; i++)
		ck_assert_msg(strstr(e.v[i], "hush") == NULL, "%s", e.v[i]);
	conf_errors_free(&e);
}
END_TEST

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A measurement: 100 upstreams with 100 shapes and a filter each. */
START_TEST(test_large)
{
	struct conf_errors e;
	struct conf *c;
	struct buf b;
	double start;

	buf_init(&b, 1u << 22);
	buf_add_str(&b, "upstream : {\n");
	for (int i = 0; i < 100; i++) {
		buf_addf(&b, "u%d : { command = \"x%d\"; args = [\"-y\", \"${HOME}\"]\n",
		    i, i);
		buf_add_str(
		    &b, "tools : { deny = [\"delete_*\", \"@destructive\"] }\ntool = (");
		for (int k = 0; k < 100; k++)
			buf_addf(&b,
			    "%s{ tool = \"tool_%d\"; name = \"name_%d\"; "
			    "description = \"Says what it does.\"; fixed : { a = %d } "
			    "}\n",
			    k ? "," : "", k, k, k);
		buf_add_str(&b, ") }\n");
	}
	buf_add_str(&b, "}\n");
	start = now_ms();
	c = rig_parse(buf_cstr(&b), &e);
	ck_assert_ptr_nonnull(c);
	if (getenv("CONF_TIME"))
		fprintf(stderr, "%zu bytes: %.1f ms\n", b.len, now_ms() - start);
	ck_assert_uint_eq(c->n_upstreams, 100);
	ck_assert_uint_eq(c->upstreams[99]->n_shapes, 100);
	conf_free(c);
	conf_errors_free(&e);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("conf_diff");
	TCase *tc = tcase_create("diff");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, test_diff, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_test(tc, test_secrets);
	tcase_add_loop_test(
	    tc, test_errors_show_no_string, 0, sizeof(wrong) / sizeof(*wrong));
	tcase_add_test(tc, test_large);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
