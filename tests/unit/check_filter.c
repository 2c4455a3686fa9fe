/* layer: gateway */
/* SPDX-License-Identifier: MIT */
/* Patterns, what annotations say, and what filters make of both. */
#include "mcpvisor/filter.h"

#include "mcpvisor/mem.h"

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

static const struct {
	const char *pattern;
	bool valid;
} patterns[] = {
    {"", false},
    {"a", true},
    {"*", true},
    {"a@b", true},
    {"@", false},
    {"@read_only", true},
    {"@destructive", true},
    {"@idempotent", true},
    {"@open_world", true},
    {"@read_onl", false},
    {"@read_only ", false},
    {"@Read_only", false},
    {"@*", false},
    {" ", true},
};

START_TEST(patterns_are_checked)
{
	ck_assert_int_eq(
	    filter_pattern_is_valid(patterns[_i].pattern), patterns[_i].valid);
}
END_TEST

#define READ_ONLY   1u
#define DESTRUCTIVE 2u
#define IDEMPOTENT  4u
#define OPEN_WORLD  8u

static const struct {
	const char *annotations;
	unsigned says;
} hints[] = {
    {"", DESTRUCTIVE | OPEN_WORLD},
    {"{}", DESTRUCTIVE | OPEN_WORLD},
    {"7", DESTRUCTIVE | OPEN_WORLD},
    {"[true]", DESTRUCTIVE | OPEN_WORLD},
    {"{\"readOnlyHint\":true}", READ_ONLY | OPEN_WORLD},
    {"{\"readOnly\\u0048int\" : true }", READ_ONLY | OPEN_WORLD},
    {"{\"readOnlyHint\":false}", DESTRUCTIVE | OPEN_WORLD},
    /* What is no boolean says nothing. */
    {"{\"readOnlyHint\":\"true\"}", DESTRUCTIVE | OPEN_WORLD},
    {"{\"readOnlyHint\":1,\"destructiveHint\":0,\"openWorldHint\":null}",
	DESTRUCTIVE | OPEN_WORLD},
    {"{\"readonlyhint\":true}", DESTRUCTIVE | OPEN_WORLD},
    {"{\"x\":{\"readOnlyHint\":true}}", DESTRUCTIVE | OPEN_WORLD},
    {"{\"readOnlyHint\":true,\"destructiveHint\":true,\"idempotentHint\":true}",
	READ_ONLY | OPEN_WORLD},
    {"{\"destructiveHint\":false}", OPEN_WORLD},
    {"{\"idempotentHint\":true}", DESTRUCTIVE | IDEMPOTENT | OPEN_WORLD},
    {"{\"openWorldHint\":false}", DESTRUCTIVE},
    {"{\"readOnlyHint\":true,\"openWorldHint\":false}", READ_ONLY},
};

START_TEST(annotations_say)
{
	static const char *const words[] = {
	    "@read_only", "@destructive", "@idempotent", "@open_world"};
	const char *a = hints[_i].annotations;
	struct jtext name = {"x", 1}, annotations = {a[0] ? a : NULL, strlen(a)};

	for (unsigned i = 0; i < 4; i++) {
		char *list[] = {mem_xstrdup(words[i]), NULL};
		struct filter allow = {.allow = list}, deny = {.deny = list};
		bool holds = hints[_i].says >> i & 1;

		ck_assert_int_eq(filter_allows(&allow, name, annotations), holds);
		ck_assert_int_eq(filter_allows(&deny, name, annotations), !holds);
		mem_free(list[0]);
	}
}
END_TEST

static char **
words_of(const char *a, const char *b)
{
	char **v = mem_xcalloc(3, sizeof(char *));

	v[0] = a != NULL ? mem_xstrdup(a) : NULL;
	v[1] = b != NULL ? mem_xstrdup(b) : NULL;
	return v;
}

static const struct {
	const char *upstreams[2];
	const char *name;
	bool has;
} profiles[] = {
    {{NULL, NULL}, "a", false},
    {{"a", NULL}, "a", true},
    {{"a", NULL}, "ab", false},
    {{"a*", NULL}, "ab", true},
    {{"x", "?b"}, "ab", true},
    {{"*", NULL}, "my server", true},
};

START_TEST(profiles_have_upstreams)
{
	struct profile_conf *p = mem_xcalloc(1, sizeof(*p));

	ck_assert(profile_has_upstream(p, profiles[_i].name));
	p->name = mem_xstrdup("p");
	p->upstreams = words_of(profiles[_i].upstreams[0], profiles[_i].upstreams[1]);
	ck_assert_int_eq(profile_has_upstream(p, profiles[_i].name), profiles[_i].has);
	/* All that one may hold is freed with it. */
	p->tools.allow = words_of("a", "b");
	p->prompts.deny = words_of("a", NULL);
	p->resources.allow = words_of(NULL, NULL);
	profile_conf_free(p);
	profile_conf_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filter");
	TCase *tc = tcase_create("filter");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, globs_match, 0, (int)(sizeof(globs) / sizeof(globs[0])));
	tcase_add_test(tc, globs_of_bytes);
	tcase_add_test(tc, globs_are_bounded);
	tcase_add_loop_test(
	    tc, patterns_are_checked, 0, (int)(sizeof(patterns) / sizeof(patterns[0])));
	tcase_add_loop_test(
	    tc, annotations_say, 0, (int)(sizeof(hints) / sizeof(hints[0])));
	tcase_add_loop_test(tc, profiles_have_upstreams, 0,
	    (int)(sizeof(profiles) / sizeof(profiles[0])));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
