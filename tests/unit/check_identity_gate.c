/* layer: gateway */
/* SPDX-License-Identifier: MIT */
/* Answers of somebody are kept for nobody else, and not for long. */
#include "mcpvisor/identity_gate.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_AGE_MS 300000

static struct identity_gate *g;
static struct identity_key key;
static struct identity_answer answer;

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, strlen(s)};
}

static void
setup(void)
{
	g = identity_gate_new();
	key = (struct identity_key){.principal = "ann",
	    .upstream = "crm",
	    .generation = 7,
	    .is_modern = true,
	    .tool = text_of("whoami"),
	    .arguments = text_of("{}")};
	answer = (struct identity_answer){.verdict = IDENTITY_RESOLVED,
	    .generation = 7,
	    .max_bytes = 65536,
	    .result = text_of("{\"content\":[]}"),
	    .now_ms = 1000};
}

static void
teardown(void)
{
	identity_gate_free(g);
}

static bool
put(void)
{
	return identity_gate_answer(g, &key, &answer);
}

static bool
is_kept_at(uint64_t now_ms)
{
	uint64_t age;

	return identity_gate_get(g, &key, now_ms, MAX_AGE_MS, &age).n > 0;
}

static bool
is_kept(void)
{
	return is_kept_at(answer.now_ms);
}

static size_t
n_entries(void)
{
	size_t bytes;

	return identity_gate_entries(g, &bytes);
}

static void
assert_state(enum identity_verdict is, uint64_t since_ms, uint64_t n_unresolved)
{
	struct identity_state s;

	(void)identity_gate_state(g, key.principal, key.upstream, &s);
	ck_assert_int_eq(s.is, is);
	ck_assert_uint_eq(s.since_ms, since_ms);
	ck_assert_uint_eq(s.n_unresolved, n_unresolved);
}

static void
assert_counts(
    const char *upstream, unsigned unknown, unsigned resolved, unsigned unresolved)
{
	struct identity_counts c;

	identity_gate_count(g, upstream, &c);
	ck_assert_uint_eq(c.unknown, unknown);
	ck_assert_uint_eq(c.resolved, resolved);
	ck_assert_uint_eq(c.unresolved, unresolved);
}

/* K01, and the end of its time. */
START_TEST(answers_are_kept_for_a_while)
{
	struct jtext got;
	uint64_t age;

	ck_assert(!is_kept());
	ck_assert(put());
	got = identity_gate_get(g, &key, 1042, MAX_AGE_MS, &age);
	ck_assert(jtext_is_equal(got, answer.result));
	/* A copy. */
	ck_assert_ptr_ne(got.p, answer.result.p);
	ck_assert_uint_eq(age, 42);
	ck_assert(is_kept_at(1000 + MAX_AGE_MS - 1));
	ck_assert_uint_eq(n_entries(), 1);
	ck_assert(!is_kept_at(1000 + MAX_AGE_MS));
	ck_assert_uint_eq(n_entries(), 0);
	assert_state(IDENTITY_RESOLVED, 1000, 0);
}
END_TEST

/* A later one takes its place, and its age. */
START_TEST(answers_are_renewed)
{
	uint64_t age;

	ck_assert(put());
	answer.now_ms = 5000;
	answer.result = text_of("{\"a\":1}");
	ck_assert(put());
	ck_assert_uint_eq(n_entries(), 1);
	ck_assert(jtext_is_equal(
	    identity_gate_get(g, &key, 5001, MAX_AGE_MS, &age), answer.result));
	ck_assert_uint_eq(age, 1);
	assert_state(IDENTITY_RESOLVED, 1000, 0);
}
END_TEST

/* K02, K04, K08: whatever is otherwise makes it another question. */
START_TEST(questions_differ)
{
	struct identity_key mine = key;
	const struct identity_key others[] = {
	    {"bob", "crm", 7, true, mine.tool, mine.arguments},
	    {"ann", "hub", 7, true, mine.tool, mine.arguments},
	    {"ann", "crm", 8, true, mine.tool, mine.arguments},
	    {"ann", "crm", 7, false, mine.tool, mine.arguments},
	    {"ann", "crm", 7, true, text_of("get_me"), mine.arguments},
	    {"ann", "crm", 7, true, mine.tool, text_of("{\"a\":1}")},
	    {"ann", "crm", 7, true, mine.tool, {NULL, 0}},
	    /* The same bytes in a row. */
	    {"ann", "crm", 7, true, text_of("whoami{"), text_of("}")},
	    {"anncrm", "", 7, true, mine.tool, mine.arguments},
	    {NULL, "crm", 7, true, mine.tool, mine.arguments},
	};

	ck_assert(put());
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		key = others[i];
		ck_assert(!is_kept());
	}
	key = mine;
	ck_assert(is_kept());
	/* K08: both are kept. */
	key.arguments = text_of("{\"a\":1}");
	ck_assert(put());
	ck_assert_uint_eq(n_entries(), 2);
}
END_TEST

/* K03: and what was known before is not believed any more. */
START_TEST(nobody_is_not_kept)
{
	static const enum identity_verdict others[] = {
	    IDENTITY_UNRESOLVED, IDENTITY_UNKNOWN, IDENTITY_ERROR};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		answer.verdict = others[i];
		ck_assert(!put());
		ck_assert(!is_kept());
		answer.verdict = IDENTITY_RESOLVED;
		ck_assert(put());
		answer.verdict = others[i];
		ck_assert(!put());
		ck_assert(!is_kept());
	}
	ck_assert(!is_kept());
	/* It was not asked who. */
	answer.verdict = IDENTITY_RESOLVED;
	ck_assert(put());
	answer.verdict = IDENTITY_NONE;
	ck_assert(!put());
	ck_assert(is_kept());
}
END_TEST

/* K07, K09, K10, K11: answered, not kept, and the state says it all the same. */
START_TEST(some_answers_are_not_kept)
{
	const struct identity_answer mine = answer;

	answer.is_partial = true;
	ck_assert(!put());
	answer = mine;
	answer.generation = 8;
	ck_assert(!put());
	answer = mine;
	answer.is_retry = true;
	ck_assert(!put());
	answer = mine;
	answer.max_bytes = answer.result.n - 1;
	ck_assert(!put());
	answer.max_bytes = 0;
	ck_assert(!put());
	ck_assert(!is_kept());
	assert_state(IDENTITY_RESOLVED, 1000, 0);
	answer.max_bytes = answer.result.n;
	ck_assert(put());
	/* Nor is the one before. */
	answer.is_partial = true;
	ck_assert(!put());
	ck_assert(!is_kept());
}
END_TEST

/* K12 */
START_TEST(nobody_knows_the_principal)
{
	struct identity_state s;

	key.principal = NULL;
	ck_assert(!put());
	ck_assert(!is_kept());
	identity_gate_refused(g, NULL, "crm", 1000);
	ck_assert(!identity_gate_state(g, NULL, "crm", &s));
	assert_counts(NULL, 0, 0, 0);
}
END_TEST

/* K13 */
START_TEST(all_have_the_same_credentials)
{
	key.principal = IDENTITY_SHARED;
	ck_assert(put());
	ck_assert(is_kept());
	assert_counts("crm", 0, 1, 0);
}
END_TEST

/* K05 */
START_TEST(credentials_are_refused)
{
	struct identity_key mine = key;

	ck_assert(put());
	key.principal = "bob";
	ck_assert(put());
	identity_gate_refused(g, "ann", "crm", 2000);
	ck_assert(is_kept());
	key = mine;
	ck_assert(!is_kept());
	assert_state(IDENTITY_UNRESOLVED, 2000, 1);
	identity_gate_refused(g, "ann", "crm", 3000);
	assert_state(IDENTITY_UNRESOLVED, 2000, 2);
	assert_counts("crm", 0, 1, 1);
	answer.now_ms = 4000;
	ck_assert(put());
	assert_state(IDENTITY_RESOLVED, 4000, 0);
}
END_TEST

/* K06 and its like. Bits: ann at crm, ann at hub, bob at crm, bob at hub. */
static const struct {
	const char *principal, *upstream;
	unsigned left;
} drops[] = {
    {"ann", "crm", 0xe},
    {"ann", NULL, 0xc},
    {NULL, "crm", 0xa},
    {NULL, NULL, 0x0},
    {"eve", NULL, 0xf},
    {"ann", "git", 0xf},
    {"an", "crm", 0xf},
};

static unsigned
what_is_kept(bool states)
{
	struct identity_state s;
	unsigned left = 0;

	for (unsigned i = 0; i < 4; i++) {
		key.principal = i < 2 ? "ann" : "bob";
		key.upstream = i % 2 == 0 ? "crm" : "hub";
		if (states ? identity_gate_state(g, key.principal, key.upstream, &s)
			   : is_kept())
			left |= 1u << i;
	}
	return left;
}

START_TEST(answers_are_dropped)
{
	for (unsigned i = 0; i < 4; i++) {
		key.principal = i < 2 ? "ann" : "bob";
		key.upstream = i % 2 == 0 ? "crm" : "hub";
		ck_assert(put());
	}
	identity_gate_drop(g, drops[_i].principal, drops[_i].upstream);
	ck_assert_uint_eq(what_is_kept(false), drops[_i].left);
	ck_assert_uint_eq(what_is_kept(true), 0xf);
	identity_gate_forget(g, drops[_i].principal, drops[_i].upstream);
	ck_assert_uint_eq(what_is_kept(false), drops[_i].left);
	ck_assert_uint_eq(what_is_kept(true), drops[_i].left);
}
END_TEST

START_TEST(states_follow_answers)
{
	struct identity_state s;

	ck_assert(!identity_gate_state(g, "ann", "crm", &s));
	assert_state(IDENTITY_UNKNOWN, 0, 0);
	answer.verdict = IDENTITY_ERROR;
	(void)put();
	ck_assert(identity_gate_state(g, "ann", "crm", &s));
	ck_assert_uint_eq(s.error_ms, 1000);
	assert_state(IDENTITY_UNKNOWN, 0, 0);
	assert_counts("crm", 1, 0, 0);
	answer.verdict = IDENTITY_UNRESOLVED;
	(void)put();
	answer.now_ms = 2000;
	(void)put();
	assert_state(IDENTITY_UNRESOLVED, 1000, 2);
	answer.verdict = IDENTITY_UNKNOWN;
	(void)put();
	assert_state(IDENTITY_UNRESOLVED, 1000, 2);
	answer.verdict = IDENTITY_ERROR;
	(void)put();
	assert_state(IDENTITY_UNRESOLVED, 1000, 2);
	answer.now_ms = 3000;
	answer.verdict = IDENTITY_RESOLVED;
	(void)put();
	assert_state(IDENTITY_RESOLVED, 3000, 0);
	(void)identity_gate_state(g, "ann", "crm", &s);
	ck_assert_uint_eq(s.error_ms, 2000);
	assert_counts("crm", 0, 1, 0);
	assert_counts("hub", 0, 0, 0);
	assert_counts(NULL, 0, 1, 0);
}
END_TEST

/* ---- bounds ---- */

static void
set_tool(unsigned i)
{
	static char name[32];

	(void)snprintf(name, sizeof(name), "t%u", i);
	key.tool = text_of(name);
}

START_TEST(entries_are_bounded)
{
	for (unsigned i = 0; i < CAP_IDENTITY_ENTRIES; i++) {
		set_tool(i);
		ck_assert(put());
	}
	/* The first one is young again. */
	set_tool(0);
	ck_assert(put());
	ck_assert_uint_eq(n_entries(), CAP_IDENTITY_ENTRIES);
	set_tool(CAP_IDENTITY_ENTRIES);
	ck_assert(put());
	ck_assert_uint_eq(n_entries(), CAP_IDENTITY_ENTRIES);
	set_tool(1);
	ck_assert(!is_kept());
	set_tool(0);
	ck_assert(is_kept());
	set_tool(2);
	ck_assert(is_kept());
}
END_TEST

START_TEST(bytes_are_bounded)
{
	size_t most = CAP_IDENTITY_BYTES / 4, bytes;
	char *large = mem_xcalloc(1, most + 1);

	answer.max_bytes = UINT64_MAX;
	answer.result = (struct jtext){large, most + 1};
	ck_assert(!put());
	answer.result.n = most;
	for (unsigned i = 0; i < 4; i++) {
		set_tool(i);
		ck_assert(put());
		ck_assert(is_kept());
	}
	ck_assert_uint_eq(identity_gate_entries(g, &bytes), 3);
	ck_assert_uint_le(bytes, CAP_IDENTITY_BYTES);
	set_tool(0);
	ck_assert(!is_kept());
	identity_gate_drop(g, NULL, NULL);
	ck_assert_uint_eq(identity_gate_entries(g, &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	mem_free(large);
}
END_TEST

START_TEST(questions_are_bounded)
{
	static char arguments[CAP_IDENTITY_KEY_BYTES + 1];

	memset(arguments, 'a', sizeof(arguments));
	key.arguments = (struct jtext){arguments, sizeof(arguments)};
	ck_assert(!put());
	ck_assert(!is_kept());
	assert_state(IDENTITY_RESOLVED, 1000, 0);
	/* What comes next is not the worse for it. */
	key.arguments.n = CAP_IDENTITY_KEY_BYTES / 2;
	ck_assert(put());
	ck_assert(is_kept());
}
END_TEST

START_TEST(states_are_bounded)
{
	struct identity_state s;
	char name[32];

	for (unsigned i = 0; i <= CAP_IDENTITY_STATES; i++) {
		(void)snprintf(name, sizeof(name), "p%u", i);
		identity_gate_refused(g, name, "crm", 1);
		/* The first one is noted once more, in time. */
		if (i + 1 == CAP_IDENTITY_STATES)
			identity_gate_refused(g, "p0", "crm", 2);
	}
	assert_counts("crm", 0, 0, CAP_IDENTITY_STATES);
	ck_assert(identity_gate_state(g, "p0", "crm", &s));
	ck_assert(!identity_gate_state(g, "p1", "crm", &s));
	ck_assert(identity_gate_state(g, "p2", "crm", &s));
}
END_TEST

/* Each place in turn: then it is not kept, or its state is not known, and that is all. */
START_TEST(memory_is_short)
{
	bool is_done = false;

	for (unsigned long n = 1; !is_done; n++) {
		bool kept;

		identity_gate_free(g);
		g = identity_gate_new();
		mem_fail_at(n, 0);
		kept = put();
		is_done = mem_try_count() < n;
		mem_fail_at(0, 0);
		ck_assert_int_eq(is_kept(), kept);
		ck_assert(kept || !is_done);
		ck_assert_uint_lt(n, 100);
	}
	assert_counts("crm", 0, 1, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("identity_gate");
	TCase *tc = tcase_create("identity_gate");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, answers_are_kept_for_a_while);
	tcase_add_test(tc, answers_are_renewed);
	tcase_add_test(tc, questions_differ);
	tcase_add_test(tc, nobody_is_not_kept);
	tcase_add_test(tc, some_answers_are_not_kept);
	tcase_add_test(tc, nobody_knows_the_principal);
	tcase_add_test(tc, all_have_the_same_credentials);
	tcase_add_test(tc, credentials_are_refused);
	tcase_add_loop_test(
	    tc, answers_are_dropped, 0, (int)(sizeof(drops) / sizeof(drops[0])));
	tcase_add_test(tc, states_follow_answers);
	tcase_add_test(tc, entries_are_bounded);
	tcase_add_test(tc, bytes_are_bounded);
	tcase_add_test(tc, questions_are_bounded);
	tcase_add_test(tc, states_are_bounded);
	tcase_add_test(tc, memory_is_short);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
