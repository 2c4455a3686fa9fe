/* layer: upstream, fakes: loop spawn */
/* SPDX-License-Identifier: MIT */
/* Delays between starts and the budget of deaths. */
#include "mcpvisor/backoff.h"

#include <check.h>
#include <stdlib.h>

#define ROUNDS 200

static void
check_range(uint32_t delay, uint32_t full)
{
	ck_assert_uint_le(delay, full);
	ck_assert_uint_ge(delay, full - full / 4);
}

START_TEST(delay_doubles_up_to_its_cap)
{
	static const uint32_t full[] = {
	    500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
	struct backoff b;
	uint32_t delay;

	for (unsigned round = 0; round < ROUNDS; round++) {
		backoff_init(&b, &backoff_defaults);
		for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
			delay = 0;
			ck_assert(backoff_death(&b, 0, &delay));
			check_range(delay, full[i]);
		}
		ck_assert(!backoff_death(&b, 0, &delay));
		ck_assert(!backoff_death(&b, 0, &delay));
		backoff_reset(&b);
		ck_assert(backoff_death(&b, 0, &delay));
		check_range(delay, 500);
	}
}
END_TEST

START_TEST(only_stable_uptime_forgets)
{
	struct backoff b;
	uint32_t delay;

	backoff_init(&b, &backoff_defaults);
	for (unsigned i = 0; i < 9; i++)
		ck_assert(backoff_death(&b, 29999, &delay));
	ck_assert_uint_eq(b.deaths, 9);
	ck_assert(backoff_death(&b, 30000, &delay));
	ck_assert_uint_eq(b.deaths, 1);
	check_range(delay, 500);
}
END_TEST

START_TEST(other_options_keep_the_tally)
{
	struct backoff_opts o = backoff_defaults;
	struct backoff b;
	uint32_t delay;

	backoff_init(&b, &o);
	ck_assert(backoff_death(&b, 0, &delay));
	ck_assert(backoff_death(&b, 0, &delay));
	o.base_ms = 10;
	backoff_set_opts(&b, &o);
	ck_assert(backoff_death(&b, 0, &delay));
	check_range(delay, 40);
	o.budget = 4;
	backoff_set_opts(&b, &o);
	ck_assert(!backoff_death(&b, 0, &delay));
}
END_TEST

START_TEST(jitter_spreads)
{
	struct backoff b;
	uint32_t delay, low = UINT32_MAX, high = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		backoff_init(&b, &backoff_defaults);
		ck_assert(backoff_death(&b, 0, &delay));
		low = delay < low ? delay : low;
		high = delay > high ? delay : high;
	}
	ck_assert_uint_gt(high - low, 30);
}
END_TEST

START_TEST(odd_options)
{
	static const struct {
		struct backoff_opts o;
		uint32_t full;
	} rows[] = {
	    {{0, 0, 0, 0}, 0},
	    {{1, 1, 1, 0}, 1},
	    {{1000, 10, 1000, 0}, 10},
	    {{UINT32_MAX, UINT32_MAX, 1, 0}, UINT32_MAX},
	};
	struct backoff b;
	uint32_t delay;

	/* A budget of 0 is none; the number of doublings has an end. */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		backoff_init(&b, &rows[i].o);
		for (unsigned n = 0; n < 100; n++) {
			ck_assert(backoff_death(&b, 0, &delay));
			check_range(delay, rows[i].full);
		}
	}
	b.o.budget = 1;
	ck_assert(!backoff_death(&b, 0, &delay));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("backoff");
	TCase *tc = tcase_create("backoff");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, delay_doubles_up_to_its_cap);
	tcase_add_test(tc, only_stable_uptime_forgets);
	tcase_add_test(tc, other_options_keep_the_tally);
	tcase_add_test(tc, jitter_spreads);
	tcase_add_test(tc, odd_options);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
