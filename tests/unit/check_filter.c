/* layer: gateway */
/* SPDX-License-Identifier: MIT */
/* What annotations say, which patterns are ones, and what filters make of both. */
#include "mcpvisor/filter.h"

#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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
