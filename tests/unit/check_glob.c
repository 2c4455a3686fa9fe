/* layer: base */
/* SPDX-License-Identifier: MIT */
/* Names and patterns. */
#include "mcpvisor/glob.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *pattern, *text;
	bool fits;
} globs[] = {
    {"", "", true},
    {"", "a", false},
    {"a", "", false},
    {"a", "a", true},
    {"a", "ab", false},
    {"ab", "a", false},
    {"*", "", true},
    {"*", "anything", true},
    {"**", "", true},
    {"?", "", false},
    {"?", "a", true},
    {"?", "ab", false},
    {"*?", "", false},
    {"*?", "a", true},
    {"?*?", "a", false},
    {"?*?", "ab", true},
    {"delete_*", "delete_", true},
    {"delete_*", "delete_all", true},
    {"delete_*", "Delete_all", false},
    {"*_all", "delete_all", true},
    {"*_all", "delete_all_", false},
    {"a*b*c", "abc", true},
    {"a*b*c", "axbxc", true},
    {"a*b*c", "acb", false},
    {"a*b*c", "abcbc", true},
    {"*ab", "aab", true},
    {"*aab", "aaab", true},
    {"a**b", "ab", true},
    {"a?c", "abc", true},
    {"a?c", "ac", false},
    /* Nothing else is special. */
    {"[ab]", "a", false},
    {"[ab]", "[ab]", true},
    {"a\\*", "a\\b", true},
    {"a.c", "abc", false},
    {"{a,b}", "a", false},
    /* Bytes: two of them are this letter. */
    {"?", "\xc3\xa9", false},
    {"??", "\xc3\xa9", true},
    {"*\xa9", "\xc3\xa9", true},
};

START_TEST(globs_match)
{
	const char *text = globs[_i].text;

	ck_assert_int_eq(
	    glob_match(globs[_i].pattern, text, strlen(text)), globs[_i].fits);
}
END_TEST

/* What a text may hold is no pattern, and a text may hold anything. */
START_TEST(globs_of_bytes)
{
	ck_assert(glob_match("*", NULL, 0));
	ck_assert(!glob_match("a", NULL, 0));
	ck_assert(glob_match("a?b", "a\0b", 3));
	ck_assert(glob_match("a*b", "a\0\0b", 4));
	ck_assert(!glob_match("a", "a\0", 2));
	ck_assert(!glob_match("ab", "*b", 2));
	ck_assert(!glob_match("ab", "?b", 2));
}
END_TEST

/* As slow as it gets: pattern times text, not two to the power of either. */
START_TEST(globs_are_bounded)
{
	static char pattern[401], text[20001];

	for (size_t i = 0; i < 400; i++)
		pattern[i] = i % 2 == 0 ? '*' : 'a';
	memset(text, 'a', 20000);
	text[19999] = 'b';
	ck_assert(!glob_match(pattern, text, 20000));
	pattern[399] = '*';
	ck_assert(glob_match(pattern, text, 20000));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("glob");
	TCase *tc = tcase_create("glob");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, globs_match, 0, (int)(sizeof(globs) / sizeof(globs[0])));
	tcase_add_test(tc, globs_of_bytes);
	tcase_add_test(tc, globs_are_bounded);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
