/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Values that stand in variables, files and credentials. */
#include "mcpvisor/expand.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mcpvisor/mem.h"
#include "temp_rig.h"

#include <check.h>

static const char *
fake_env(const char *name, void *arg)
{
	static const char *const vars[][2] = {{"SET", "value"}, {"EMPTY", ""},
	    {"NESTED", "${SET}"}, {"HOME", "/home/u"}, {"_u1", "under"}, {"env", "e"}};

	(void)arg;
	for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) {
		if (strcmp(vars[i][0], name) == 0)
			return vars[i][1];
	}
	return NULL;
}

static const struct expand_env fake = {.get = fake_env};

/* to NULL: refused, with error in the message. */
static const struct {
	const char *from, *to, *error;
} expansions[] = {
    {"", "", NULL},
    {"plain", "plain", NULL},
    {"${SET}", "value", NULL},
    {"a${SET}b", "avalueb", NULL},
    {"${SET}${SET}", "valuevalue", NULL},
    {"${_u1}", "under", NULL},
    {"${EMPTY}", "", NULL},
    {"${NESTED}", "${SET}", NULL},
    {"${env:SET}", "value", NULL},
    {"${env}", "e", NULL},
    {"${env:UNSET:-d}", "d", NULL},
    {"${userHome}/x", "/home/u/x", NULL},
    {"${UNSET:-d}", "d", NULL},
    {"${UNSET:-}", "", NULL},
    {"${EMPTY:-d}", "d", NULL},
    {"${SET:-d}", "value", NULL},
    {"${UNSET:-a:-b c}", "a:-b c", NULL},
    {"$$", "$$", NULL},
    {"$", "$", NULL},
    {"$SET", "$SET", NULL},
    {"$${SET}", "$value", NULL},
    {"a}b{c", "a}b{c", NULL},
    {"100%s %n", "100%s %n", NULL},
    {"${", NULL, "no closing brace"},
    {"x${SET", NULL, "no closing brace"},
    {"${}", NULL, "names no variable"},
    {"${ SET}", NULL, "names no variable"},
    {"${1x}", NULL, "names no variable"},
    {"${a-b}", NULL, "names no variable"},
    {"${UNSET}", NULL, "variable UNSET is not set"},
    {"${env:UNSET}", NULL, "variable UNSET is not set"},
    {"${env:}", NULL, "${env:...} is not a known form"},
    {"${command:pick}", NULL, "${command:...} is not a known form"},
    {"${input:token}", NULL, "question of the editor"},
    {"${workspaceFolder}/x", NULL, "variable of the editor"},
    {"${UNSET:-${SET}}", NULL, "inside another"},
    {"${file:${SET}}", NULL, "inside another"},
    {"${file:}", NULL, "names no file"},
    {"${file:/nonexistent/x}", NULL, "file \"/nonexistent/x\": No such file"},
    {"${file:/nonexistent\n}", NULL, "file \"/nonexistent\\x0a\": No such file"},
    {"${file:/dev/null}", NULL, "not a regular file"},
    {"${credential:}", NULL, "names no credential"},
    {"${credential:a/b}", NULL, "names no credential"},
    {"${credential:..}", NULL, "names no credential"},
    {"${credential:t}", NULL, "credential \"t\": there is no folder of credentials"},
};

START_TEST(test_expand)
{
	struct mv_errtext et = {.line = 0};
	char *s = expand_text(expansions[_i].from, &fake, NULL, &et);

	if (expansions[_i].to) {
		ck_assert_ptr_nonnull(s);
		ck_assert_str_eq(s, expansions[_i].to);
	} else {
		ck_assert_ptr_null(s);
		ck_assert_msg(strstr(et.message, expansions[_i].error) != NULL, "%s: %s",
		    expansions[_i].from, et.message);
	}
	mem_free(s);
}
END_TEST

/* What stands between the braces may be a secret that only looks like a variable. */
START_TEST(test_messages_show_no_text)
{
	static const char *const secrets[] = {
	    "pw${hunter2!}", "hunter2${x", "${hunter2 :-x}", "${UNSET}hunter2"};

	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		struct mv_errtext et = {.line = 0};

		ck_assert_ptr_null(expand_text(secrets[i], &fake, NULL, &et));
		ck_assert_ptr_null(strstr(et.message, "hunter2"));
	}
}
END_TEST

/* What is in the folder of test_files, and what comes of it. */
static const struct {
	const char *bytes;
	size_t n;
	const char *to, *error;
} files[] = {
    {"secret", 6, "<secret>", NULL},
    {"secret\n", 7, "<secret>", NULL},
    {"secret\r\n", 8, "<secret>", NULL},
    {"secret\n\n", 8, "<secret\n>", NULL},
    {" a b\r", 5, "< a b\r>", NULL},
    {"${SET}", 6, "<${SET}>", NULL},
    {"", 0, "<>", NULL},
    {"\n", 1, "<>", NULL},
    {"hunter2\0x", 9, NULL, "NUL"},
};

static void
file_check(
    const char *from, const struct expand_env *env, const char *to, const char *error)
{
	struct mv_errtext et = {.line = 0};
	bool secret = false;
	char *s = expand_text(from, env, &secret, &et);

	if (to) {
		ck_assert_msg(s != NULL, "%s: %s", from, et.message);
		ck_assert_str_eq(s, to);
		ck_assert(secret);
	} else {
		ck_assert_ptr_null(s);
		ck_assert_msg(
		    strstr(et.message, error) != NULL, "%s: %s", from, et.message);
		ck_assert_ptr_null(strstr(et.message, "hunter2"));
	}
	mem_free(s);
}

START_TEST(test_files)
{
	struct expand_env env = fake;
	struct temp t;
	char from[TEMP_PATH_MAX + 16];

	temp_make(&t);
	temp_write_bytes(&t, "f.txt", files[_i].bytes, files[_i].n);
	snprintf(from, sizeof from, "<${file:%s/f.txt}>", t.dir);
	file_check(from, &env, files[_i].to, files[_i].error);
	env.dir = t.dir;
	file_check("<${file:f.txt}>", &env, files[_i].to, files[_i].error);
	file_check(from, &env, files[_i].to, files[_i].error);
	env.credentials = t.dir;
	env.dir = NULL;
	file_check("<${credential:f.txt}>", &env, files[_i].to, files[_i].error);
	temp_remove(&t);
}
END_TEST

START_TEST(test_file_limits)
{
	struct expand_env env = fake;
	char *big = mem_xcalloc(EXPAND_FILE_BYTES + 1, 1);
	struct temp t;

	temp_make(&t);
	env.dir = t.dir;
	memset(big, 'x', EXPAND_FILE_BYTES + 1);
	temp_write_bytes(&t, "max", big, EXPAND_FILE_BYTES);
	temp_write_bytes(&t, "over", big, EXPAND_FILE_BYTES + 1);
	big[EXPAND_FILE_BYTES] = '\0';
	file_check("${file:max}", &env, big, NULL);
	file_check("${file:over}", &env, NULL, "the file is too long");
	file_check("${file:.}", &env, NULL, "not a regular file");
	/* Nobody writes to it: an open that waits would never end. */
	ck_assert_int_eq(mkfifo(temp_path(&t, "pipe"), 0600), 0);
	file_check("${file:pipe}", &env, NULL, "not a regular file");
	memset(big, 'n', 5000);
	memcpy(big, "${file:", 7);
	snprintf(big + 4990, 16, "}");
	file_check(big, &env, NULL, "the name is too long");
	mem_free(big);
	temp_remove(&t);
}
END_TEST

START_TEST(test_credentials_of_the_process)
{
	struct mv_errtext et = {.line = 0};
	struct temp t;
	char *s;

	temp_make(&t);
	temp_write(&t, "token", "hunter2\n");
	setenv("CREDENTIALS_DIRECTORY", t.dir, 1);
	s = expand_text("${credential:token}", &expand_env_process, NULL, &et);
	ck_assert_str_eq(s, "hunter2");
	mem_free(s);
	file_check("${credential:none}", &expand_env_process, NULL,
	    "credential \"none\": No such file");
	unsetenv("CREDENTIALS_DIRECTORY");
	temp_remove(&t);
}
END_TEST

START_TEST(test_secret)
{
	static const struct {
		const char *from;
		bool secret;
	} cases[] = {{"", false}, {"plain $SET", false}, {"${SET}", true},
	    {"${env:SET}x", true}, {"${EMPTY}", false}, {"${UNSET:-d}", false},
	    {"${EMPTY:-d}", false}, {"${SET:-d}", true}, {"${userHome}/x", false},
	    {"${HOME}", true}, {"${SET}${userHome}", true}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mv_errtext et = {.line = 0};
		bool secret = false, before = true;

		mem_free(expand_text(cases[i].from, &fake, &secret, &et));
		ck_assert_msg(secret == cases[i].secret, "%s", cases[i].from);
		mem_free(expand_text(cases[i].from, &fake, &before, &et));
		ck_assert(before);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("expand");
	TCase *tc = tcase_create("expand");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, test_expand, 0, sizeof expansions / sizeof *expansions);
	tcase_add_test(tc, test_messages_show_no_text);
	tcase_add_loop_test(tc, test_files, 0, sizeof files / sizeof *files);
	tcase_add_test(tc, test_file_limits);
	tcase_add_test(tc, test_credentials_of_the_process);
	tcase_add_test(tc, test_secret);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
