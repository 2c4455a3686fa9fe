/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* What members of an imported entry become: our own options, lists of tools, envFile. */
#include "mcpvisor/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/daemon/option_table.h"
#include "import_rig.h"
#include "temp_rig.h"

#include <check.h>

START_TEST(test_options)
{
	struct import_result r;
	struct upstream_conf *c;

	c = parse_entry(
	    "{\"command\":\"x\",\"mcpvisor\":{\"prefix\":\"\",\"era\":\"modern\","
	    "\"probe_ms\":1,\"start_ms\":2,\"call_ms\":3,\"call_max_ms\":4,"
	    "\"restart_base_ms\":5}}",
	    &r);
	ck_assert_int_eq(c->broken, MV_OK);
	ck_assert_str_eq(c->prefix, "");
	ck_assert_int_eq(c->era, ERA_MODERN);
	ck_assert_uint_eq(c->probe_ms, 1);
	ck_assert_uint_eq(c->start_ms, 2);
	ck_assert_uint_eq(c->call_ms, 3);
	ck_assert_uint_eq(c->call_max_ms, 4);
	ck_assert_uint_eq(c->restart_base_ms, 5);
	import_free(&r);
}
END_TEST

START_TEST(test_more_options)
{
	struct import_result r;
	struct upstream_conf *c = parse_entry(
	    "{\"command\":\"x\",\"mcpvisor\":{\"isolation\":\"call\",\"start\":\"on_"
	    "use\","
	    "\"upstream_failure\":\"tool_error\",\"rescue_errors\":true,"
	    "\"uri_prefix\":\"gh+\",\"max_instances\":2,\"idle_stop_ms\":3,"
	    "\"queue_calls\":4,\"queue_bytes\":5,\"restart_max_ms\":6,"
	    "\"restart_limit\":7,\"stable_ms\":8,\"term_ms\":9,\"kill_ms\":0}}",
	    &r);

	ck_assert_msg(c->broken == MV_OK, "%s", c->broken_text);
	ck_assert_int_eq(c->isolation, ISOLATION_CALL);
	ck_assert_int_eq(c->start, START_ON_USE);
	ck_assert_int_eq(c->failure, FAILURE_TOOL_ERROR);
	ck_assert(c->rescue_errors);
	ck_assert_str_eq(c->uri_prefix, "gh+");
	ck_assert_uint_eq(c->max_instances, 2);
	ck_assert_uint_eq(c->idle_stop_ms, 3);
	ck_assert_uint_eq(c->queue_calls, 4);
	ck_assert_uint_eq(c->queue_bytes, 5);
	ck_assert_uint_eq(c->restart_max_ms, 6);
	ck_assert_uint_eq(c->restart_limit, 7);
	ck_assert_uint_eq(c->stable_ms, 8);
	ck_assert_uint_eq(c->term_ms, 9);
	ck_assert_uint_eq(c->kill_ms, 0);
	import_free(&r);
}
END_TEST

/* The numbers of the conf's table that an import takes as well. */
static const struct {
	const char *where, *name, *type;
	long long least, most;
	bool is_remote;
} conf_rows[] = {
#define X(where, key, type, member, lowest, highest, dflt, reload, flags, doc)           \
	{#where, key, #type, (long long)(lowest), (long long)(highest),                  \
	    !CONF_IS_OF(flags, CONF_K_STDIO)},
    CONF_ROWS(X)
#undef X
};

static bool
takes(const char *option, bool is_remote, long long value)
{
	struct import_result r;
	char entry[256];
	bool good;

	snprintf(entry, sizeof entry, "{%s,\"mcpvisor\":{\"%s\":%lld}}",
	    is_remote ? "\"url\":\"http://h\"" : "\"command\":\"x\"", option, value);
	good = parse_entry(entry, &r)->broken == MV_OK;
	import_free(&r);
	return good;
}

START_TEST(test_ranges_are_the_conf_s)
{
	unsigned n = 0;

	for (size_t i = 0; i < sizeof conf_rows / sizeof *conf_rows; i++) {
		const char *name = conf_rows[i].name, *type = conf_rows[i].type;
		bool far = conf_rows[i].is_remote;

		if (strcmp(conf_rows[i].where, "UPSTREAM") != 0 ||
		    (strcmp(type, "MS") != 0 && strcmp(type, "INT") != 0 &&
			strcmp(type, "SIZE") != 0))
			continue;
		ck_assert_msg(!takes(name, far, conf_rows[i].least - 1), "%s", name);
		ck_assert_msg(takes(name, far, conf_rows[i].least), "%s", name);
		ck_assert_msg(takes(name, far, conf_rows[i].most), "%s", name);
		ck_assert_msg(!takes(name, far, conf_rows[i].most + 1), "%s", name);
		n++;
	}
	ck_assert_uint_eq(n, 19);
}
END_TEST

/* Names that are in a filter, with a space behind each; "-" for no list. */
static void
filter_text(char **v, char text[128])
{
	size_t n = 0;

	snprintf(text, 128, "%s", v ? "" : "-");
	for (; v && *v; v++)
		n += (size_t)snprintf(text + n, 128 - n, "%s ", *v);
}

static const struct {
	const char *members, *allow, *deny, *warning;
} tool_lists[] = {
    {"\"alwaysAllow\":[\"a\"]", "-", "-", NULL},
    {"\"enabledTools\":[\"a\",\"b\"]", "a b ", "-", NULL},
    {"\"includeTools\":[\"a\"]", "a ", "-", NULL},
    {"\"disabledTools\":[\"a\"]", "-", "a ", NULL},
    {"\"excludeTools\":[\"a\"],\"disabledTools\":[\"b\"]", "-", "b a ", NULL},
    {"\"includeTools\":[\"a\"],\"enabledTools\":[\"b\"]", "b a ", "-", NULL},
    {"\"includeTools\":[\"a\",\"b\"],\"excludeTools\":[\"b\"]", "a b ", "b ", NULL},
    {"\"disabledTools\":[]", "-", "-", NULL},
    {"\"disabledTools\":null,\"enabledTools\":null", "-", "-", NULL},
    {"\"enabledTools\":[]", "", "-", "the list of tools is empty"},
    {"\"enabledTools\":\"a\"", "-", "-", "enabledTools is ignored: it is not an array"},
    {"\"excludeTools\":[\"a\",1]", "-", "-", "excludeTools is ignored"},
    {"\"disabledTools\":{\"a\":1}", "-", "-", "disabledTools is ignored"},
    {"\"disabledTools\":[\"@read_only\",\"a\"]", "-", "a ",
	"disabledTools: \"@read_only\" is not a tool's name"},
};

START_TEST(test_tool_lists)
{
	struct import_result r;
	struct upstream_conf *c;
	char entry[256], text[128];

	snprintf(entry, sizeof entry, "{\"command\":\"x\",%s}", tool_lists[_i].members);
	c = parse_entry(entry, &r);
	ck_assert_int_eq(c->broken, MV_OK);
	filter_text(c->tools.allow, text);
	ck_assert_str_eq(text, tool_lists[_i].allow);
	filter_text(c->tools.deny, text);
	ck_assert_str_eq(text, tool_lists[_i].deny);
	ck_assert_uint_eq(r.n_warnings, tool_lists[_i].warning != NULL);
	if (r.n_warnings)
		ck_assert_ptr_nonnull(strstr(r.warnings[0], tool_lists[_i].warning));
	import_free(&r);
}
END_TEST

START_TEST(test_env_file)
{
	static const char text[] =
	    "{\"servers\":{\"a\":{\"command\":\"x\",\"envFile\":\"${NO:-}s.env\","
	    "\"env\":{\"B\":\"env\",\"C\":\"${file:secret}\"}},"
	    "\"b\":{\"command\":\"x\",\"envFile\":\"bad.env\"},"
	    "\"c\":{\"command\":\"x\"}}}";
	static const char *const own[] = {"A=1", "B=env", "PATH=/f", "C=hunter2"};
	struct expand_env env = fake;
	struct import_result r;
	struct mv_errtext et = {.line = 0};
	struct temp t;

	setenv("PATH", "/usr/bin:/bin", 1);
	temp_make(&t);
	temp_write(&t, "s.env", "A=1\nB=file\nPATH=/f\n");
	temp_write(&t, "bad.env", "A=1\nhunter2\n");
	temp_write(&t, "secret", "hunter2\n");
	/* Relative to the file, wherever else relative names start. */
	env.dir = "/nonexistent";
	ck_assert_int_eq(
	    import_parse(temp_path(&t, "mcp.json"), text, strlen(text), &env, &r, &et),
	    MV_OK);
	ck_assert_uint_eq(r.n, 3);
	ck_assert_msg(r.v[0]->broken == MV_OK, "%s", r.v[0]->broken_text);
	for (size_t i = 0; i < 4; i++)
		ck_assert_str_eq(r.v[0]->own_env[i], own[i]);
	ck_assert_ptr_null(r.v[0]->own_env[4]);
	ck_assert_str_eq(env_get(r.v[0], "B"), "env");
	ck_assert_str_eq(env_get(r.v[0], "A"), "1");
	ck_assert_str_eq(r.v[0]->path, "/f");
	ck_assert_int_eq(r.v[1]->broken, MV_CONF);
	ck_assert_ptr_nonnull(strstr(r.v[1]->broken_text, "bad.env"));
	ck_assert_ptr_nonnull(strstr(r.v[1]->broken_text, "line 2: the line is not"));
	ck_assert_ptr_null(strstr(r.v[1]->broken_text, "hunter2"));
	ck_assert_ptr_null(r.v[2]->own_env);
	ck_assert_str_eq(r.v[2]->path, "/usr/bin:/bin");
	import_free(&r);
	/* A name without a folder: where the caller's relative names start. */
	env.dir = t.dir;
	ck_assert_int_eq(
	    import_parse("mcp.json", text, strlen(text), &env, &r, &et), MV_OK);
	ck_assert_msg(r.v[0]->broken == MV_OK, "%s", r.v[0]->broken_text);
	import_free(&r);
	temp_remove(&t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("import_entry");
	TCase *tc = tcase_create("import_entry");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, test_options);
	tcase_add_test(tc, test_more_options);
	tcase_add_test(tc, test_ranges_are_the_conf_s);
	tcase_add_loop_test(
	    tc, test_tool_lists, 0, sizeof tool_lists / sizeof *tool_lists);
	tcase_add_test(tc, test_env_file);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
