/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The environment of a child: what of ours, files of variables, patterns. */
#include "mcpvisor/expand.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"
#include "temp_rig.h"

#include <check.h>

#define PAIRS_MAX 16

/* Copies of texts, as the functions take char *. */
struct pairs {
	char *v[PAIRS_MAX + 1];
	size_t n;
};

static void
pairs_fill(struct pairs *p, const char *const *texts)
{
	memset(p, 0, sizeof *p);
	while (texts && texts[p->n]) {
		p->v[p->n] = mem_xstrdup(texts[p->n]);
		p->n++;
	}
}

static void
pairs_free(struct pairs *p)
{
	for (size_t i = 0; i < p->n; i++)
		mem_free(p->v[i]);
}

/* got is NULL-terminated and freed. */
static void
env_check(char **got, const char *const *want)
{
	size_t n = 0;

	for (; want[n]; n++) {
		ck_assert_msg(got && got[n], "%s is missing", want[n]);
		ck_assert_str_eq(got[n], want[n]);
	}
	if (got)
		ck_assert_msg(!got[n], "%s is too much", got[n]);
	for (n = 0; got && got[n]; n++)
		mem_free(got[n]);
	mem_free(got);
}

START_TEST(test_child_env)
{
	static const char *const ours[] = {"HOME=/h", "SECRET=1", "PATH=/bin", "LC_ALL=C",
	    "LC_=x", "PATH=/twin", "LANGUAGE=en", "TMPDIR=/t", "TERM", NULL};
	static const char *const extra[] = {
	    "PATH=/opt/bin", "A=1=2", "A=3", "EMPTY=", NULL};
	static const char *const want[] = {
	    "HOME=/h", "PATH=/opt/bin", "LC_ALL=C", "TMPDIR=/t", "A=3", "EMPTY=", NULL};
	static const char *const none[] = {NULL};
	struct pairs o, e;

	pairs_fill(&o, ours);
	pairs_fill(&e, extra);
	env_check(expand_child_env(o.v, e.v, e.n), want);
	env_check(expand_child_env(NULL, NULL, 0), none);
	pairs_free(&o);
	pairs_free(&e);
}
END_TEST

/* One line, and its pair; NULL: none. */
static const struct {
	const char *line, *pair;
} lines[] = {
    {"A=b", "A=b"},
    {"A=", "A="},
    {"", NULL},
    {"   \t", NULL},
    {"# A=b", NULL},
    {"  # A=b", NULL},
    {"export A=b", "A=b"},
    {"  export\tA=b", "A=b"},
    {"export=b", "export=b"},
    {"exporter=b", "exporter=b"},
    {"A = b", "A=b"},
    {"  A=b  ", "A=b"},
    {"A=b c ", "A=b c"},
    {"A=b # c", "A=b"},
    {"A=b#c", "A=b#c"},
    {"A=#c", "A=#c"},
    {"A= #c", "A="},
    {"A=b=c", "A=b=c"},
    {"A=b\r", "A=b"},
    {"A=\"b c\"", "A=b c"},
    {"A=\"b c\"\r", "A=b c"},
    {"A=\" b # c \" # d", "A= b # c "},
    {"A=\"\"", "A="},
    {"A=\"a\\\"b\\\\c\\$d\\`e\"", "A=a\"b\\c$d`e"},
    {"A=\"a\\nb\\tc\"", "A=a\nb\\tc"},
    {"A='b \"c\" \\n $D'", "A=b \"c\" \\n $D"},
    {"A=${B}", "A=${B}"},
    {"A=\"${B}\"", "A=${B}"},
    {"A=b\"c\"", "A=b\"c\""},
    {"A=C:\\new", "A=C:\\new"},
    {"a.b-c_1=x", "a.b-c_1=x"},
    {"\xef\xbb\xbf"
     "A=b",
	"A=b"},
};

START_TEST(test_lines)
{
	struct mv_errtext et = {.line = 0};
	const char *want[] = {lines[_i].pair, NULL};
	char **v = NULL;
	size_t n = 0;
	struct temp t;

	temp_make(&t);
	temp_write(&t, ".env", lines[_i].line);
	ck_assert_msg(expand_env_file(temp_path(&t, ".env"), &v, &n, &et) == MV_OK,
	    "%s: %s", lines[_i].line, et.message);
	ck_assert_uint_eq(n, want[0] != NULL);
	env_check(v, want);
	temp_remove(&t);
}
END_TEST

/* A second line that is wrong, and what is said of it. */
static const struct {
	const char *line, *error;
} bad_lines[] = {
    {"hunter2", "not NAME=VALUE"},
    {"export hunter2", "not NAME=VALUE"},
    {"=hunter2", "no name"},
    {"1A=hunter2", "no name"},
    {"A$=hunter2", "not NAME=VALUE"},
    {"A=\"hunter2", "a quote has no end"},
    {"A='hunter2", "a quote has no end"},
    {"A=\"hunter2\\\"", "a quote has no end"},
    {"A=\"hunter2\" b", "behind the closing quote"},
    {"A=\"hunter2\"#b", "behind the closing quote"},
};

START_TEST(test_bad_lines)
{
	static const char *const before[] = {"OLD=1", NULL};
	struct mv_errtext et = {.line = 0};
	char **v = mem_xcalloc(2, sizeof *v);
	char text[128];
	size_t n = 1;
	struct temp t;

	v[0] = mem_xstrdup("OLD=1");
	temp_make(&t);
	snprintf(text, sizeof text, "GOOD=x\n%s\nMORE=y\n", bad_lines[_i].line);
	temp_write(&t, ".env", text);
	ck_assert_int_eq(expand_env_file(temp_path(&t, ".env"), &v, &n, &et), MV_CONF);
	ck_assert_str_eq(et.file, t.path);
	ck_assert_int_eq(et.line, 2);
	ck_assert_msg(strstr(et.message, bad_lines[_i].error) != NULL, "%s: %s",
	    bad_lines[_i].line, et.message);
	ck_assert_ptr_null(strstr(et.message, "hunter2"));
	ck_assert_uint_eq(n, 1);
	env_check(v, before);
	temp_remove(&t);
}
END_TEST

START_TEST(test_files)
{
	static const char *const want[] = {"OLD=1", "A=1", "B=2", "A=3", NULL};
	struct mv_errtext et = {.line = 7};
	char **v = mem_xcalloc(1, sizeof *v);
	char *big = mem_xcalloc(EXPAND_FILE_BYTES + 2, 1);
	size_t n = 1;
	struct temp t;

	v[0] = mem_xstrdup("OLD=1");
	temp_make(&t);
	temp_write(&t, ".env", "\nA=1\n# x\nB=2\nA=3");
	ck_assert_int_eq(expand_env_file(temp_path(&t, ".env"), &v, &n, &et), MV_OK);
	ck_assert_uint_eq(n, 4);
	ck_assert_int_eq(expand_env_file(temp_path(&t, "no"), &v, &n, &et), MV_CONF);
	ck_assert_int_eq(et.line, 0);
	ck_assert_str_eq(et.message, "No such file or directory");
	ck_assert_int_eq(expand_env_file(t.dir, &v, &n, &et), MV_CONF);
	ck_assert_str_eq(et.message, "not a regular file");
	temp_write_bytes(&t, "nul", "A=1\0\n", 5);
	ck_assert_int_eq(expand_env_file(temp_path(&t, "nul"), &v, &n, &et), MV_CONF);
	memset(big, 'x', EXPAND_FILE_BYTES + 1);
	temp_write(&t, "big", big);
	ck_assert_int_eq(expand_env_file(temp_path(&t, "big"), &v, &n, &et), MV_CONF);
	ck_assert_str_eq(et.message, "the file is too long");
	ck_assert_uint_eq(n, 4);
	env_check(v, want);
	mem_free(big);
	temp_remove(&t);
}
END_TEST

START_TEST(test_pass)
{
	static const char *const ours[] = {"AWS_KEY=1", "AWS_ID=2", "HOME=/h",
	    "AWS_KEY=3", "AB=4", "ABC=5", "aws_x=6", "ODD", "=7", NULL};
	static const char *const patterns[] = {"AWS_*", "A?", "HOME", NULL};
	static const char *const want[] = {
	    "OLD=1", "AWS_KEY=1", "AWS_ID=2", "HOME=/h", "AB=4", NULL};
	char **v = mem_xcalloc(1, sizeof *v);
	size_t n = 1;
	struct pairs o, p;

	pairs_fill(&o, ours);
	pairs_fill(&p, patterns);
	v[0] = mem_xstrdup("OLD=1");
	expand_env_pass(o.v, p.v, &v, &n);
	ck_assert_uint_eq(n, 5);
	expand_env_pass(o.v, NULL, &v, &n);
	expand_env_pass(NULL, p.v, &v, &n);
	ck_assert_uint_eq(n, 5);
	env_check(v, want);
	pairs_free(&o);
	pairs_free(&p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("child_env");
	TCase *tc = tcase_create("child_env");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, test_child_env);
	tcase_add_loop_test(tc, test_lines, 0, sizeof lines / sizeof *lines);
	tcase_add_loop_test(tc, test_bad_lines, 0, sizeof bad_lines / sizeof *bad_lines);
	tcase_add_test(tc, test_files);
	tcase_add_test(tc, test_pass);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
