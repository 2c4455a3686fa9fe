/* layer: result */
/* SPDX-License-Identifier: MIT */
/* Expressions: what fits, what is none, and that no text makes one run for long. */
#include "mcpvisor/pattern.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void
setup(void)
{
}

static void
teardown(void)
{
}

#define TEXT(s) s, sizeof(s) - 1

static const struct {
	const char *pattern;
	bool anchored;
	const char *s;
	size_t n;
	bool fits;
} matches[] = {
    {"[a-z]+", true, TEXT("abc"), true},
    {"[a-z]+", true, TEXT("abc1"), false},
    {"[a-z]+", false, TEXT("1abc1"), true},
    /* An alternative is tried again where the whole text is wanted. */
    {"a|ab", true, TEXT("ab"), true},
    {"a|ab", true, TEXT("abc"), false},
    {"^a$", false, TEXT("a\n"), false},
    {"a", true, TEXT("a\n"), false},
    {"", true, TEXT(""), true},
    {"", true, NULL, 0, true},
    {"x*", true, TEXT("y"), false},
    {".", true, TEXT("\xf0\x9f\x98\x80"), true},
    {"..", true, TEXT("\xc3\xa4"), false},
    {"a.b", true, TEXT("a\0b"), true},
    {"(a)(b)(c)", true, TEXT("abc"), true},
    /* No UTF-8 at all. */
    {".*", false, TEXT("\xff"), false},
    {".*", false, TEXT("a\xed\xa0\x80"), false},
    {".*", false, TEXT("\xc3"), false},
    /* Limits in the expression can only lower ours, and callouts do nothing. */
    {"(*LIMIT_MATCH=4000000000)a(?C1)b", true, TEXT("ab"), true},
};

START_TEST(texts_fit)
{
	struct pattern *p = pattern_new(matches[_i].pattern, matches[_i].anchored, NULL);

	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(pattern_text(p), matches[_i].pattern);
	ck_assert(pattern_is_anchored(p) == matches[_i].anchored);
	for (int i = 0; i < 2; i++)
		ck_assert(pattern_matches(p, matches[_i].s, matches[_i].n,
			      &(size_t){PATTERN_STEPS}) == matches[_i].fits);
	pattern_free(p);
}
END_TEST

static const struct {
	const char *pattern, *says;
} refused[] = {
    {"(", "no regular expression: missing closing parenthesis, at byte 1"},
    {"a[", "no regular expression: missing terminating ] for character class, at byte "
	   "2"},
    {"\\C", "no regular expression: using \\C is disabled by the application, at byte 2"},
    {"\xff",
	"no regular expression: UTF-8 error: illegal byte (0xfe or 0xff), at byte 0"},
};

START_TEST(refusals_say_why)
{
	struct mv_errtext t = {.line = 0};

	ck_assert_ptr_null(pattern_new(refused[_i].pattern, true, &t));
	ck_assert_str_eq(t.message, refused[_i].says);
	ck_assert_ptr_null(pattern_new(refused[_i].pattern, true, NULL));
}
END_TEST

START_TEST(long_expressions_are_refused)
{
	size_t n = 65537;
	char *text = mem_xalloc(n + 1);
	struct mv_errtext t = {.line = 0};

	memset(text, 'a', n);
	text[n] = '\0';
	ck_assert_ptr_null(pattern_new(text, false, &t));
	ck_assert_ptr_nonnull(strstr(t.message, "longer than the limit"));
	mem_free(text);
	pattern_free(NULL);
}
END_TEST

/* Each takes time beyond all bounds without a limit. Classes: a text without a byte that
 * has to be in it is refused unread. */
static const struct {
	const char *pattern;
	bool anchored;
} slow[] = {
    {"(a+)+", true},
    {"(a|a)*[bc]", true},
    {"(?:a|b)*", true},
    {"(a*)*[cd]", false},
    {"a+a+a+a+[bc]", false},
    /* Few steps by PCRE2's count, at each of as many beginnings. */
    {"[^x]*+[xy]", false},
    {"(?=(a*))\\1[bc]", false},
    {"(?:a*+x)?(?:a*+y)?(?:a*+z)?[qr]", false},
    {"((((((a?)?)?)?)?)*)*[xyz]", false},
    {"(?R)?a", true},
};

START_TEST(no_text_makes_it_run_for_long)
{
	size_t n = 1u << 20;
	char *s = mem_xalloc(n);
	struct pattern *p = pattern_new(slow[_i].pattern, slow[_i].anchored, NULL);
	uint64_t before, took;
	size_t held;

	ck_assert_ptr_nonnull(p);
	memset(s, 'a', n);
	s[n - 1] = '!';
	held = mem_in_use();
	before = clock_now_ms();
	ck_assert(!pattern_matches(p, s, n, &(size_t){PATTERN_STEPS}));
	took = clock_now_ms() - before;
	/* Mostly below a tenth of a second; a busy machine with sanitizers is slower. */
	ck_assert_uint_lt(took, 5000);
	ck_assert_uint_eq(mem_in_use(), held);
	pattern_free(p);
	mem_free(s);
}
END_TEST

/* What costs little per byte is found in a text of any length. */
START_TEST(long_texts_are_searched)
{
	size_t n = 16u << 20;
	char *s = mem_xalloc(n);
	struct pattern *p = pattern_new("needle \\d+", false, NULL);
	struct pattern *q = pattern_new("[a-z]{1,}[0-9]?", true, NULL);

	memset(s, 'a', n);
	ck_assert(!pattern_matches(p, s, n, &(size_t){PATTERN_STEPS}));
	memcpy(s + n - 8, "needle 7", 8);
	ck_assert(pattern_matches(p, s, n, &(size_t){PATTERN_STEPS}));
	memset(s, 'a', n);
	s[999999] = '0';
	ck_assert(pattern_matches(q, s, 1000000, &(size_t){PATTERN_STEPS}));
	pattern_free(p);
	pattern_free(q);
	mem_free(s);
}
END_TEST

/* One message has one number of steps, whatever it is asked. */
START_TEST(steps_are_shared)
{
	struct pattern *p = pattern_new("(a+)+", true, NULL);
	struct pattern *plain = pattern_new("a", true, NULL);
	size_t steps = PATTERN_STEPS;

	ck_assert(pattern_matches(plain, "a", 1, &steps));
	ck_assert_uint_lt(steps, PATTERN_STEPS);
	ck_assert_uint_gt(steps, PATTERN_STEPS - 100);
	ck_assert(
	    !pattern_matches(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 37, &steps));
	ck_assert_uint_eq(steps, 0);
	ck_assert(!pattern_matches(plain, "a", 1, &steps));
	ck_assert_uint_eq(steps, 0);
	/* Beginning takes some too. */
	for (steps = PATTERN_STEPS; pattern_matches(plain, "a", 1, &steps);)
		continue;
	ck_assert_uint_eq(steps, 0);
	pattern_free(plain);
	pattern_free(p);
}
END_TEST

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("pattern");

	tcase_add_loop_test(
	    tc, texts_fit, 0, (int)(sizeof(matches) / sizeof(matches[0])));
	tcase_add_loop_test(
	    tc, refusals_say_why, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_test(tc, long_expressions_are_refused);
	tcase_add_loop_test(
	    tc, no_text_makes_it_run_for_long, 0, (int)(sizeof(slow) / sizeof(slow[0])));
	tcase_add_test(tc, long_texts_are_searched);
	tcase_add_test(tc, steps_are_shared);
	return run_suite(suite_create("pattern"), tc);
}
