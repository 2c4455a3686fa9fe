/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The conf over several files: folder, imports, environment files, and their order. */
#include "conf_rig.h"

#include <ftw.h>

#include "mcpvisor/import.h"

static char g_dir[64];

static int
on_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void
setup(void)
{
	char sub[80];

	snprintf(g_dir, sizeof(g_dir), "/tmp/check_conf.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(g_dir));
	snprintf(sub, sizeof(sub), "%s/upstream.d", g_dir);
	ck_assert_int_eq(mkdir(sub, 0700), 0);
}

static void
teardown(void)
{
	nftw(g_dir, on_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static struct conf *
load(struct conf_errors *e)
{
	/* The folder stands for the file in it. */
	return conf_load(g_dir, &rig_env, e);
}

static struct conf *
load_good(void)
{
	struct conf_errors e;
	struct conf *c = load(&e);

	ck_assert_msg(c != NULL, "%s", e.n ? e.v[0] : "?");
	conf_errors_free(&e);
	return c;
}

/* Error i must be "FOLDER/" and this. */
static void
expect_error(const struct conf_errors *e, size_t i, const char *text)
{
	ck_assert_uint_gt(e->n, i);
	ck_assert_str_eq(e->v[i] + strlen(g_dir) + 1, text);
}

START_TEST(test_order)
{
	static const char *const names[] = {"zz", "main", "A", "b", "c", "imp"};
	struct conf *c;

	rig_write(g_dir, "mcpvisor.conf",
	    "upstream : { zz : { command = \"x\" }; main : { command = \"x\" } }\n"
	    "mcp_servers = [\"s.json\"]\n");
	rig_write(g_dir, "upstream.d/c.conf", "command = \"c\"; cwd = \"w\"\n");
	rig_write(g_dir, "upstream.d/A.conf", "command = \"a\"\n");
	rig_write(g_dir, "upstream.d/b.conf", "command = \"b\"\ncall_ms = \"5s\"\n");
	rig_write(g_dir, "upstream.d/.c.conf", "nothing of ours");
	rig_write(g_dir, "upstream.d/c.conf~", "nothing of ours");
	rig_write(
	    g_dir, "s.json", "{\"mcpServers\":{\"imp\":{\"command\":\"i\",\"x\":1}}}");
	c = load_good();
	ck_assert_uint_eq(c->n_upstreams, 6);
	for (size_t i = 0; i < 6; i++)
		ck_assert_str_eq(c->upstreams[i]->name, names[i]);
	ck_assert_uint_eq(c->upstreams[3]->call_ms, 5000);
	ck_assert_str_eq(strstr(c->upstreams[4]->cwd, "/upstream.d"), "/upstream.d/w");
	ck_assert_uint_eq(c->n_warnings, 1);
	ck_assert_ptr_nonnull(strstr(c->warnings[0], "unknown member"));
	conf_free(c);
}
END_TEST

START_TEST(test_errors_of_all_files)
{
	struct conf_errors e;

	rig_write(g_dir, "mcpvisor.conf",
	    "upstream : { a : { command = \"x\" }; b : { } }\n"
	    "mcp_servers = [\"s.json\", \"none.json\", \"bad.json\"]\n");
	rig_write(g_dir, "upstream.d/a.conf", "command = \"c\"\n");
	rig_write(g_dir, "upstream.d/c.conf", "command = \"c\"\n}\n");
	rig_write(g_dir, "upstream.d/d.conf", "command = \"c\"\n\ncal_ms = 1\n");
	rig_write(g_dir, "s.json", "{\"servers\":{\"a\":{\"command\":\"i\"}}}");
	rig_write(g_dir, "bad.json", "{\n}");
	ck_assert_ptr_null(load(&e));
	ck_assert_uint_eq(e.n, 7);
	expect_error(&e, 0,
	    "mcpvisor.conf:1: upstream.b: command is missing (or url, if it is a remote "
	    "server)");
	ck_assert_ptr_nonnull(strstr(e.v[1], "mcpvisor.conf:2: mcp_servers: "));
	ck_assert_ptr_nonnull(strstr(e.v[1], "/none.json: No such file or directory"));
	ck_assert_ptr_nonnull(
	    strstr(e.v[2], "a.conf:1: upstream.a: the name is taken by"));
	ck_assert_ptr_nonnull(strstr(e.v[2], "mcpvisor.conf:1"));
	expect_error(&e, 3, "upstream.d/c.conf:2: syntax error");
	expect_error(&e, 4,
	    "upstream.d/d.conf:3: upstream.d.cal_ms: unknown setting; is \"call_ms\" "
	    "meant?");
	ck_assert_ptr_nonnull(strstr(e.v[5], "s.json: upstream.a: the name is taken by"));
	ck_assert_ptr_nonnull(strstr(e.v[6], "bad.json: neither"));
	conf_errors_free(&e);
}
END_TEST

START_TEST(test_folder)
{
	struct conf_errors e;
	struct conf *c;

	rig_write(g_dir, "mcpvisor.conf", "upstream_dir = \"none\"\n");
	ck_assert_ptr_null(load(&e));
	expect_error(&e, 0, "mcpvisor.conf:1: upstream_dir: No such file or directory");
	conf_errors_free(&e);
	rig_write(g_dir, "upstream.d/x y.conf", "command = \"x\"\n");
	rig_write(g_dir, "mcpvisor.conf", "upstream_dir = \"upstream.d\"\n");
	c = load_good();
	ck_assert_str_eq(c->upstreams[0]->name, "x y");
	conf_free(c);
	/* The default one may be missing; the conf may be named as a file. */
	c = rig_good("upstream : { a : { command = \"x\" } }");
	conf_free(c);
	ck_assert_ptr_null(conf_load("/nonexistent/x.conf", NULL, &e));
	ck_assert_str_eq(e.v[0], "/nonexistent/x.conf: No such file or directory");
	conf_errors_free(&e);
}
END_TEST

/* HOME ... of ours, then env_file, env, env_pass: a later one wins. */
/* A pipe would be waited for, in the middle of a reload. */
START_TEST(test_no_regular_files)
{
	static const char *const wrong = ": not a regular file";
	struct conf_errors e;
	char name[96];

	snprintf(name, sizeof(name), "%s/upstream.d/x.conf", g_dir);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	rig_write(g_dir, "mcpvisor.conf", "mcp_servers = [\"upstream.d/x.conf\"]\n");
	ck_assert_ptr_null(load(&e));
	ck_assert_uint_eq(e.n, 2);
	ck_assert_ptr_nonnull(strstr(e.v[0], wrong));
	ck_assert_ptr_nonnull(strstr(e.v[1], wrong));
	conf_errors_free(&e);
	ck_assert_ptr_null(conf_load(name, NULL, &e));
	ck_assert_ptr_nonnull(strstr(e.v[0], wrong));
	conf_errors_free(&e);
	conf_free(conf_load("/dev/null", NULL, &e));
	ck_assert_uint_eq(e.n, 0);
}
END_TEST

/* As an editor leaves it between two steps. */
START_TEST(test_empty_file)
{
	struct conf_errors e;

	rig_write(g_dir, "mcpvisor.conf", "");
	ck_assert_ptr_null(load(&e));
	ck_assert_uint_eq(e.n, 1);
	ck_assert_ptr_nonnull(strstr(e.v[0], "the file is empty"));
	conf_errors_free(&e);
}
END_TEST

/* One more file, of the command line: as those that the conf names. */
START_TEST(test_one_file_more)
{
	struct conf_errors e;
	struct conf *c;
	char name[96], text[256];

	rig_write(g_dir, "mcpvisor.conf",
	    "defaults : { call_ms = 1234 }\nupstream : { a : { command = \"x\" } }\n");
	rig_write(g_dir, "s.json", "{\"servers\":{\"b\":{\"command\":\"y\"}}}");
	snprintf(name, sizeof(name), "%s/s.json", g_dir);
	c = conf_load_with(g_dir, name, &rig_env, &e);
	ck_assert_ptr_nonnull(c);
	ck_assert_uint_eq(c->n_upstreams, 2);
	ck_assert_str_eq(c->upstreams[1]->name, "b");
	ck_assert_uint_eq(c->upstreams[1]->call_ms, 1234);
	conf_free(c);
	rig_write(g_dir, "s.json", "{\"servers\":{\"a\":{\"command\":\"y\"}}}");
	ck_assert_ptr_null(conf_load_with(g_dir, name, &rig_env, &e));
	snprintf(text, sizeof(text),
	    "s.json: upstream.a: the name is taken by that of %s/mcpvisor.conf:2", g_dir);
	expect_error(&e, 0, text);
	conf_errors_free(&e);
}
END_TEST

START_TEST(test_environment)
{
	const struct upstream_conf *u;
	struct conf *c;

	setenv("RIG_ONE", "ours", 1);
	setenv("RIG_TWO", "ours", 1);
	setenv("OTHER_THREE", "ours", 1);
	setenv("HOME", "/ours", 1);
	rig_write(g_dir, "e.env",
	    "# variables\nexport A=file\nB=\"file\"\nRIG_ONE=file\nHOME=/file\n");
	rig_write(g_dir, "mcpvisor.conf",
	    "upstream : { a : { command = \"x\"; env_pass = [\"RIG_*\"]\n"
	    "	env = [\"B=env\", \"RIG_TWO=env\", \"_C=${MARK}\"]; env_file = \"e.env\" "
	    "} }\n");
	c = load_good();
	u = c->upstreams[0];
	ck_assert_str_eq(rig_env_get(u->own_env, "A"), "file");
	ck_assert_str_eq(rig_env_get(u->own_env, "B"), "env");
	ck_assert_str_eq(rig_env_get(u->own_env, "_C"), RIG_MARK);
	ck_assert_str_eq(rig_env_get(u->own_env, "RIG_ONE"), "ours");
	ck_assert_str_eq(rig_env_get(u->own_env, "RIG_TWO"), "ours");
	ck_assert_ptr_null(rig_env_get(u->env, "OTHER_THREE"));
	ck_assert_str_eq(rig_env_get(u->env, "HOME"), "/file");
	ck_assert_str_eq(rig_env_get(u->env, "RIG_ONE"), "ours");
	conf_free(c);
	rig_write(g_dir, "e.env", "A=1\nno variable\n");
	rig_write(g_dir, "mcpvisor.conf",
	    "upstream : { a : { command = \"x\"\nenv_file = \"e.env\" } }\n");
	{
		struct conf_errors e;

		ck_assert_ptr_null(load(&e));
		ck_assert_ptr_nonnull(strstr(
		    e.v[0], "mcpvisor.conf:2: upstream.a: env_file: its line 2: "));
		ck_assert_ptr_null(strstr(e.v[0], "no variable"));
		conf_errors_free(&e);
	}
}
END_TEST

START_TEST(test_defaults_of_imported)
{
	const struct upstream_conf *u;
	struct conf *c;

	rig_write(g_dir, "mcpvisor.conf",
	    "mcp_servers = [\"s.json\"]\n"
	    "defaults : { call_ms = 7; start_ms = 8; cwd = \"w\"\n"
	    "	env : { A = \"d\"; B = \"d\" }; tools : { deny = [\"x\"] } }\n");
	rig_write(g_dir, "s.json",
	    "{\"mcpServers\":{\"a\":{\"command\":\"i\",\"cwd\":\"/own\","
	    "\"env\":{\"B\":\"own\"},\"mcpvisor\":{\"start_ms\":9}}}}");
	c = load_good();
	u = c->upstreams[0];
	ck_assert_uint_eq(u->call_ms, 7);
	ck_assert_uint_eq(u->start_ms, 9);
	ck_assert_str_eq(u->cwd, "/own");
	ck_assert_str_eq(u->tools.deny[0], "x");
	ck_assert_str_eq(rig_env_get(u->env, "A"), "d");
	ck_assert_str_eq(rig_env_get(u->env, "B"), "own");
	conf_free(c);
}
END_TEST

static void
import_text(const char *text, struct import_result *r)
{
	struct mv_errtext et = {.line = 0};

	ck_assert_int_eq(
	    import_parse("s.json", text, strlen(text), &rig_env, r, &et), MV_OK);
}

START_TEST(test_add_import)
{
	struct mv_errtext et = {.line = 0};
	struct conf *c = rig_good("upstream : { a : { command = \"x\" } }");
	struct import_result r;
	char *dump;

	import_text("{\"servers\":{\"b\":{\"command\":\"${MARK}\",\"args\":[\"" RIG_MARK
		    "\"],\"cwd\":\"/${MARK}\",\"zzz\":1}}}",
	    &r);
	ck_assert_int_eq(conf_add_import(c, &r, &et), MV_OK);
	ck_assert_uint_eq(r.n, 0);
	ck_assert_uint_eq(c->n_upstreams, 2);
	ck_assert_uint_eq(c->n_warnings, 1);
	dump = rig_dump(c, true);
	ck_assert_ptr_nonnull(strstr(dump, "upstream.b.args = [(secret)]"));
	ck_assert_ptr_nonnull(strstr(dump, "upstream.b.command = (secret)"));
	ck_assert_ptr_null(strstr(dump, RIG_MARK));
	mem_free(dump);
	import_text(
	    "{\"servers\":{\"c\":{\"command\":\"y\"},\"a\":{\"command\":\"y\"}}}", &r);
	ck_assert_int_eq(conf_add_import(c, &r, &et), MV_CONF);
	ck_assert_str_eq(
	    et.message, "upstream.a: the name is taken by that of /nonexistent/m.conf");
	ck_assert_uint_eq(c->n_upstreams, 2);
	import_free(&r);
	conf_free(c);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("conf_files");
	TCase *tc = tcase_create("files");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_errors_of_all_files);
	tcase_add_test(tc, test_folder);
	tcase_add_test(tc, test_no_regular_files);
	tcase_add_test(tc, test_empty_file);
	tcase_add_test(tc, test_one_file_more);
	tcase_add_test(tc, test_environment);
	tcase_add_test(tc, test_defaults_of_imported);
	tcase_add_test(tc, test_add_import);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
