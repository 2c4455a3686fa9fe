/* layer: base */
/* SPDX-License-Identifier: MIT */
/* The small modules of the layer: errors, allocation, clock, counters. */
#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <check.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

START_TEST(error_has_its_row)
{
	enum mv_err err = (enum mv_err)_i;
	const char *reason = mv_err_reason(err);

	ck_assert_uint_gt(strlen(mv_err_text(err)), 0);
	ck_assert_uint_gt(strlen(reason), 0);
	ck_assert_uint_eq(
	    strspn(reason, "abcdefghijklmnopqrstuvwxyz_0123456789"), strlen(reason));
	if (err == MV_OK)
		ck_assert_int_eq(mv_err_rpc_code(err), 0);
	else
		ck_assert_int_lt(mv_err_rpc_code(err), -32000);
	for (int other = 0; other < _i; other++)
		ck_assert_str_ne(reason, mv_err_reason((enum mv_err)other));
}
END_TEST

START_TEST(unknown_error_reads_as_system)
{
	static const int odd[] = {-1, MV_ERR_MAX, MV_ERR_MAX + 1};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		enum mv_err err;

		memcpy(&err, &odd[i], sizeof(err));
		ck_assert_str_eq(mv_err_reason(err), "system");
		ck_assert_str_eq(mv_err_text(err), mv_err_text(MV_SYSTEM));
		ck_assert_int_eq(mv_err_rpc_code(err), -32603);
		ck_assert(mv_err_retryable(err));
	}
	ck_assert_int_eq(mv_err_rpc_code(MV_SYNTAX), -32700);
	ck_assert(mv_err_retryable(MV_BUSY));
	ck_assert(!mv_err_retryable(MV_PARKED));
}
END_TEST

START_TEST(errtext_truncates)
{
	struct mv_errtext t = {.file = "a.conf", .line = 3};
	char big[2000];

	mv_errtext_set(&t, "unknown key %s", "colour");
	ck_assert_str_eq(t.message, "unknown key colour");
	ck_assert_str_eq(t.file, "a.conf");
	ck_assert_int_eq(t.line, 3);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	mv_errtext_set(&t, "%s", big);
	ck_assert_uint_eq(strlen(t.message), sizeof(t.message) - 1);
	mv_errtext_set(NULL, "%s", big);
}
END_TEST

static jmp_buf g_last_words;
static char g_line[512];

/* What ends the process logs first: leave from there. */
static void
on_last_words(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)arg;
	ck_assert_uint_eq(level, LOG_LV_ERROR);
	ck_assert_uint_lt(len, sizeof(g_line));
	memcpy(g_line, line, len + 1);
	longjmp(g_last_words, 1);
}

START_TEST(fatal_faults_are_logged)
{
	static volatile int step;
	static volatile size_t huge = SIZE_MAX / 2 + 1;

	log_set_sink(on_last_words, NULL);
	step = 0;
	if (setjmp(g_last_words) == 0) {
		MCPVISOR_ASSERT(step == 0);
		MCPVISOR_ASSERT(step == 1);
		step = 99;
	}
	ck_assert_int_eq(step, 0);
	ck_assert_ptr_nonnull(
	    strstr(g_line, "error assert: failed cond=\"step == 1\" file="));
	if (setjmp(g_last_words) == 0) {
		mem_free(mem_xcalloc(huge, 4));
		step = 99;
	}
	ck_assert_int_eq(step, 0);
	ck_assert_ptr_nonnull(strstr(g_line, "error mem: out_of_memory size="));
	log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(allocation_gives_what_it_says)
{
	static const char zero[64];
	char *p = mem_xcalloc(8, 8);

	ck_assert_int_eq(memcmp(p, zero, 64), 0);
	p = mem_xrealloc(p, 128);
	ck_assert_int_eq(memcmp(p, zero, 64), 0);
	mem_free(p);
	mem_free(NULL);
	p = mem_xstrdup("name");
	ck_assert_str_eq(p, "name");
	mem_free(p);
	p = mem_xstrndup("a\0bcd", 4);
	ck_assert_int_eq(memcmp(p, "a\0bc", 5), 0);
	mem_free(p);
	p = mem_xstrndup(NULL, 0);
	ck_assert_str_eq(p, "");
	mem_free(p);
	for (int i = 0; i < 4; i++) {
		p = i == 0   ? mem_xalloc(0)
		    : i == 1 ? mem_xcalloc(0, 8)
		    : i == 2 ? mem_try(0)
			     : mem_xrealloc(NULL, 0);
		ck_assert_ptr_nonnull(p);
		mem_free(p);
	}
}
END_TEST

/* The allocator may give more than was asked for, never less. */
START_TEST(memory_is_counted)
{
	size_t before = mem_in_use(), with;
	char *p = mem_xalloc(100000), *q, *lib;

	ck_assert_uint_ge(mem_in_use() - before, 100000);
	p = mem_xrealloc(p, 500000);
	with = mem_in_use();
	ck_assert_uint_ge(with - before, 500000);
	ck_assert_uint_lt(with - before, 600000);
	q = mem_xcalloc(100, 100);
	lib = mem_lib_realloc(mem_lib_alloc(10), 10000);
	ck_assert_uint_ge(mem_in_use() - with, 20000);
	mem_fail_at(1, 1);
	ck_assert_ptr_null(mem_try_realloc(p, 1));
	mem_fail_at(0, 0);
	memset(q, 's', 10000);
	mem_free_secret(q, 10000);
	mem_free_secret(NULL, 10);
	mem_free(lib);
	ck_assert_uint_eq(mem_in_use(), with);
	mem_free(p);
	ck_assert_uint_eq(mem_in_use(), before);
}
END_TEST

/* Worth going back is what is much, and much of all that there was. */
START_TEST(much_that_is_free_is_slack)
{
	enum { N = 100, PIECE = 4096 };
	char *p[N], *most;

	mem_trim();
	ck_assert(!mem_has_slack());
	for (int i = 0; i < N; i++)
		p[i] = mem_xalloc(PIECE);
	ck_assert(!mem_has_slack());
	mem_free(p[0]);
	ck_assert(!mem_has_slack());
	for (int i = 1; i < N; i++)
		mem_free(p[i]);
	ck_assert(mem_has_slack());
	mem_trim();
	ck_assert(!mem_has_slack());
	most = mem_xcalloc(N, 100 * PIECE);
	p[0] = mem_xalloc((size_t)N * PIECE);
	mem_free(p[0]);
	ck_assert(!mem_has_slack());
	mem_free(most);
	ck_assert(mem_has_slack());
	mem_trim();
}
END_TEST

START_TEST(budget_has_two_edges)
{
	enum { UNIT = 1 << 20 };
	uint64_t times = metrics_get(METRIC_MEMORY_SHORT);
	char *p[10] = {NULL};
	/* For 0 to 9 pieces, going up, then down; eight are the budget. */
	static const char *const up = "nnnnnnnnSE", *const down = "nnnnnnnnSE";

	log_set_level(LOG_LV_ERROR);
	ck_assert_uint_eq(mem_budget(), 0);
	ck_assert(!mem_is_short() && !mem_is_exhausted());
	mem_set_budget(mem_in_use() + (size_t)8 * UNIT);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(mem_is_short(), up[i] != 'n');
		ck_assert_int_eq(mem_is_exhausted(), up[i] == 'E');
		p[i] = mem_xalloc(UNIT);
	}
	ck_assert(mem_is_short() && mem_is_exhausted());
	for (int i = 9; i >= 0; i--) {
		mem_free(p[i]);
		ck_assert_int_eq(mem_is_short(), down[i] != 'n' || i == 7);
		ck_assert_int_eq(mem_is_exhausted(), i >= 8);
	}
	ck_assert_uint_eq(metrics_get(METRIC_MEMORY_SHORT) - times, 1);
	p[0] = mem_xalloc(UNIT);
	mem_set_budget(1);
	ck_assert(mem_is_short() && mem_is_exhausted());
	mem_free(p[0]);
	mem_set_budget(0);
	log_set_level(LOG_LV_NOTICE);
	ck_assert(!mem_is_short() && !mem_is_exhausted());
}
END_TEST

START_TEST(injected_failures_hit_their_call)
{
	static const struct {
		unsigned long at;
		int sticky;
		const char *want; /* of five calls: y worked, n failed */
	} rows[] = {
	    {0, 0, "yyyyy"},
	    {0, 1, "yyyyy"},
	    {1, 0, "nyyyy"},
	    {3, 0, "yynyy"},
	    {3, 1, "yynnn"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *kept = mem_xstrdup("kept");

		mem_fail_at(rows[i].at, rows[i].sticky);
		for (unsigned call = 0; call < 5; call++) {
			char *p =
			    call % 2 ? mem_try(16) : mem_try_realloc(kept, 16 + call);

			ck_assert_int_eq(p != NULL ? 'y' : 'n', rows[i].want[call]);
			if (call % 2)
				mem_free(p);
			else if (p != NULL)
				kept = p;
			ck_assert_str_eq(kept, "kept");
		}
		ck_assert_uint_eq(mem_try_count(), 5);
		mem_free(kept);
	}
	mem_fail_at(0, 0);
	ck_assert_uint_eq(mem_try_count(), 0);
}
END_TEST

START_TEST(injected_failures_can_be_held)
{
	void *p, *q;

	mem_fail_at(1, 1);
	mem_fail_hold(true);
	mem_fail_hold(true);
	p = mem_try(1);
	mem_fail_hold(false);
	q = mem_try(1);
	mem_fail_hold(false);
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(q);
	ck_assert_uint_eq(mem_try_count(), 0);
	ck_assert_ptr_null(mem_try(1));
	mem_fail_at(0, 0);
	mem_free(p);
	mem_free(q);
}
END_TEST

static uint64_t
fake_now(void)
{
	return 42;
}

START_TEST(clock_goes_on_and_is_replaceable)
{
	uint64_t before = clock_now_ms();

	ck_assert(clock_now_ms() >= before);
	clock_set_source(fake_now);
	ck_assert_uint_eq(clock_now_ms(), 42);
	clock_set_source(NULL);
	ck_assert(clock_now_ms() >= before);
}
END_TEST

START_TEST(random_stays_below_and_is_even)
{
	static const uint32_t limits[] = {1, 2, 7, 1000, 0x80000001u, UINT32_MAX};
	unsigned seen[7] = {0};
	unsigned high = 0;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (unsigned n = 0; n < 1000; n++)
			ck_assert_uint_lt(clock_random(limits[i]), limits[i]);
	}
	for (unsigned n = 0; n < 7000; n++)
		seen[clock_random(7)]++;
	for (unsigned i = 0; i < 7; i++) /* more than nine sigmas */
		ck_assert(seen[i] > 700 && seen[i] < 1300);
	/* A plain remainder would give the lower third two thirds of the draws. */
	for (unsigned n = 0; n < 6000; n++)
		high += clock_random(0xc0000000u) >= 0x40000000u;
	ck_assert(high > 3650 && high < 4350);
}
END_TEST

START_TEST(counters_count)
{
	for (int i = 0; i < METRIC_MAX; i++) {
		enum metric m = (enum metric)i;
		uint64_t before = metrics_get(m);

		metrics_add(m, 3);
		ck_assert_uint_eq(metrics_get(m), before + 3);
		ck_assert_int_eq(strncmp(metrics_name(m), "mcpvisor_", 9), 0);
		ck_assert_uint_gt(strlen(metrics_help(m)), 0);
	}
	ck_assert_str_eq(metrics_name(METRIC_LOG_LOST), "mcpvisor_log_lost_total");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("base");
	TCase *tc = tcase_create("base");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, error_has_its_row, 0, MV_ERR_MAX);
	tcase_add_test(tc, unknown_error_reads_as_system);
	tcase_add_test(tc, errtext_truncates);
	tcase_add_test(tc, fatal_faults_are_logged);
	tcase_add_test(tc, allocation_gives_what_it_says);
	tcase_add_test(tc, memory_is_counted);
	tcase_add_test(tc, much_that_is_free_is_slack);
	tcase_add_test(tc, budget_has_two_edges);
	tcase_add_test(tc, injected_failures_hit_their_call);
	tcase_add_test(tc, injected_failures_can_be_held);
	tcase_add_test(tc, clock_goes_on_and_is_replaceable);
	tcase_add_test(tc, random_stays_below_and_is_even);
	tcase_add_test(tc, counters_count);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
