/* layer: upstream, fakes: loop spawn child_owner */
/* SPDX-License-Identifier: MIT */
/* Another command, back-off and ladder for a child that is there already. */
#include "fake/fake_child_owner.h"

#include "mcpvisor/mem.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

START_TEST(next_death_is_counted_by_them)
{
	struct child_opts o = owner_opts();
	struct owner *w;

	o.backoff.budget = 0;
	w = owner_new(&o);
	owner_start(w);
	for (unsigned i = 0; i < 5; i++) {
		owner_proc_dies(w, status_exit(1));
		fake_loop_advance(w->loop, 60000);
	}
	ck_assert_int_eq(owner_state(w), CHILD_ST_RUNNING);
	o.backoff.max_ms = 100;
	child_set_opts(w->child, &o);
	owner_proc_dies(w, status_exit(1));
	ck_assert_uint_le(child_next_ms(w->child), 100);
	fake_loop_advance(w->loop, 100);
	o.backoff.budget = 7; /* of which six are used */
	child_set_opts(w->child, &o);
	owner_proc_dies(w, status_exit(1));
	ck_assert_int_eq(owner_state(w), CHILD_ST_FAILED);
	owner_free(w);
}
END_TEST

/* The strings before are gone after it. */
START_TEST(strings_are_the_new_ones)
{
	char *name = mem_xstrdup("beta");
	struct child_opts o = owner_opts(), other = owner_opts();
	struct owner *w;

	o.spec.name = name;
	w = owner_new(&o);
	owner_start(w);
	other.spec.name = "gamma";
	child_set_opts(w->child, &other);
	mem_free(name);
	owner_log_clear(w);
	owner_proc_dies(w, status_exit(1));
	fake_loop_advance(w->loop, 1000);
	ck_assert(owner_log_has(w, "upstream=gamma"));
	owner_free(w);
}
END_TEST

START_TEST(ladder_under_way_follows)
{
	struct child_opts o = owner_opts();
	struct owner *w = owner_new(&o);

	fake_spawner_set_obedient(w->spawner, false);
	owner_start(w);
	owner_stop(w);
	o.ladder.term_ms = 100;
	child_set_opts(w->child, &o);
	fake_loop_advance(w->loop, 99);
	ck_assert_uint_eq(fake_proc_signals(owner_proc(w), SIGTERM), 0);
	fake_loop_advance(w->loop, 1);
	ck_assert_uint_eq(fake_proc_signals(owner_proc(w), SIGTERM), 1);
	owner_free(w);
}
END_TEST

START_TEST(clean_ends_are_told)
{
	struct child_opts o = owner_opts();
	struct owner *w = owner_new(&o);

	owner_start(w);
	owner_proc_dies(w, status_exit(0));
	ck_assert(w->last_end.is_clean);
	fake_loop_advance(w->loop, 60000);
	owner_proc_dies(w, status_exit(1));
	ck_assert(!w->last_end.is_clean);
	fake_loop_advance(w->loop, 60000);
	owner_proc_dies(w, status_signal(SIGKILL));
	ck_assert(!w->last_end.is_clean);
	owner_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("child_opts");
	TCase *tc = tcase_create("opts");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, next_death_is_counted_by_them);
	tcase_add_test(tc, strings_are_the_new_ones);
	tcase_add_test(tc, ladder_under_way_follows);
	tcase_add_test(tc, clean_ends_are_told);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
