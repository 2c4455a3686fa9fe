/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Variables in imported texts; the environment of a child. */
#include "mcpvisor/import.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"

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

static const struct import_env fake = {fake_env, NULL};

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
};

START_TEST(test_expand)
{
	struct mv_errtext et = {.line = 0};
	char *s = import_expand(expansions[_i].from, &fake, &et);

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

		ck_assert_ptr_null(import_expand(secrets[i], &fake, &et));
		ck_assert_ptr_null(strstr(et.message, "hunter2"));
	}
}
END_TEST

static void
env_check(char **got, const char *const *want)
{
	size_t n = 0;

	for (; want[n]; n++) {
		ck_assert_ptr_nonnull(got[n]);
		ck_assert_str_eq(got[n], want[n]);
	}
	ck_assert_ptr_null(got[n]);
	for (n = 0; got[n]; n++)
		mem_free(got[n]);
	mem_free(got);
}

START_TEST(test_child_env)
{
	char ours[][24] = {"HOME=/h", "SECRET=1", "PATH=/bin", "LC_ALL=C", "LC_=x",
	    "PATH=/twin", "LANGUAGE=en", "TMPDIR=/t", "TERM"};
	char extra[][24] = {"PATH=/opt/bin", "A=1=2", "A=3", "EMPTY="};
	char *ours_v[10] = {NULL}, *extra_v[4];
	const char *const want[] = {
	    "HOME=/h", "PATH=/opt/bin", "LC_ALL=C", "TMPDIR=/t", "A=3", "EMPTY=", NULL};
	const char *const none[] = {NULL};

	for (size_t i = 0; i < 9; i++)
		ours_v[i] = ours[i];
	for (size_t i = 0; i < 4; i++)
		extra_v[i] = extra[i];
	env_check(import_child_env(ours_v, extra_v, 4), want);
	env_check(import_child_env(NULL, NULL, 0), none);
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
	tcase_add_test(tc, test_child_env);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
