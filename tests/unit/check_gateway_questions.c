/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Whose a question of an upstream is, and what upstreams are told of their clients. */
#include "questions_rig.h"

/* ---- whose it is ---- */

START_TEST(of_the_call_on_whose_stream_it_comes)
{
	setup_auto();
	fake_upstream_set_kind(u, true, false);
	(void)begin(&k[0], &a, 0);
	(void)begin(&k[1], &b, 0);
	(void)begin(&k[2], &crowd, 0);
	for (unsigned i = 0; i < 3; i++) {
		ask(u, &k[i].c.req);
		ck_assert_uint_eq(k[i].asked, 1);
	}
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked, 0);
	/* One that tells needs no mark. */
	ck_assert(!upstream_asks(u));
}
END_TEST

START_TEST(of_the_one_call_in_flight)
{
	(void)begin(&k[0], _i == 0 ? &a : &crowd, 0);
	ask(u, NULL);
	ck_assert_uint_eq(k[0].asked, 1);
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked, 0);
}
END_TEST

START_TEST(of_the_one_client_with_calls)
{
	(void)begin(&k[0], &a, 0);
	(void)begin(&k[1], &a, 0);
	ask(u, NULL);
	ck_assert_uint_eq(a.asked, 1);
	ck_assert_uint_eq(k[0].asked + k[1].asked + b.asked, 0);
}
END_TEST

START_TEST(of_nobody)
{
	if (_i == 1) {
		(void)begin(&k[0], &a, 0);
		end(&k[0]);
	}
	ask(u, NULL);
	ck_assert_str_eq(fake_upstream_answer(u), NOBODY);
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked + k[0].asked, 0);
}
END_TEST

#define OF_A_TASK                                                                        \
	"\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t\"}}"

/* One that has left, maybe: who has the only call in flight did not make it. */
START_TEST(of_a_task_that_nobody_knows)
{
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);
	uint64_t refused = metrics_get(METRIC_QUESTIONS_REFUSED);

	(void)begin(&k[0], &a, 0);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, "\"id\":7,\"params\":{" OF_A_TASK "}");
	ck_assert_str_eq(fake_upstream_answer(u), NOBODY);
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked + k[0].asked, 0);
	ck_assert_uint_eq(metrics_get(METRIC_QUESTIONS_REFUSED), refused + 1);
	fake_upstream_log(u, "{\"level\":\"error\",\"data\":1," OF_A_TASK "}");
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 1);
}
END_TEST

/* What is of one client alone speaks to that one. */
START_TEST(of_a_task_of_its_own_instance)
{
	struct fleet_conf *c = conf();
	struct upstream *own;

	teardown();
	c->confs[0]->isolation = ISOLATION_SESSION;
	start(c);
	own = begin(&k[0], &a, 0);
	ck_assert_ptr_ne(own, u);
	fake_upstream_ask(
	    own, NULL, METHOD_ELICIT, "\"id\":7,\"params\":{" OF_A_TASK "}");
	ck_assert_uint_eq(a.asked, 1);
}
END_TEST

/* Those of a crowd are as many clients. */
static void
begin_two(int i)
{
	(void)begin(&k[0], i == 2 ? &crowd : &a, 0);
	(void)begin(&k[1], i == 0 ? &b : &crowd, 0);
	ask(u, NULL);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked + k[0].asked + k[1].asked, 0);
}

START_TEST(one_of_several_is_left)
{
	begin_two(_i);
	fake_loop_advance(f->loop, OWNER_WAIT_MS - 1);
	fake_upstream_result(u, 0, "{}");
	ck_assert_uint_eq(k[0].done, 1);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k[1].asked, 1);
	ck_assert_uint_eq(a.asked + b.asked + crowd.asked + k[0].asked, 0);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
}
END_TEST

START_TEST(nobody_is_left)
{
	begin_two(_i);
	fake_upstream_result(u, 0, "{}");
	fake_upstream_result(u, 1, "{}");
	fake_loop_settle(f->loop);
	ck_assert_str_eq(fake_upstream_answer(u), NOBODY);
	ck_assert_uint_eq(k[0].asked + k[1].asked, 0);
}
END_TEST

START_TEST(several_stay)
{
	begin_two(_i);
	fake_loop_advance(f->loop, OWNER_WAIT_MS / 2);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, "\"id\":8,\"params\":{}");
	fake_loop_advance(f->loop, OWNER_WAIT_MS / 2 - 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	fake_loop_advance(f->loop, 1);
	ck_assert_str_eq(fake_upstream_answer(u), UNCERTAIN);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	fake_loop_advance(f->loop, OWNER_WAIT_MS / 2);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
	ck_assert_uint_eq(k[0].asked + k[1].asked, 0);
}
END_TEST

/* It may still be at work on what was given up. */
START_TEST(one_of_several_gave_up)
{
	begin_two(_i);
	give_up(&k[0]);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k[1].asked, 0);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_str_eq(fake_upstream_answer(u), UNCERTAIN);
}
END_TEST

START_TEST(late_after_a_cancel)
{
	(void)begin(&k[0], &a, 0);
	give_up(&k[0]);
	ask(u, NULL);
	ck_assert_str_eq(fake_upstream_answer(u), NOBODY);
	(void)begin(&k[1], &b, 0);
	ask(u, NULL);
	ck_assert_uint_eq(k[1].asked, 0);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
	fake_loop_advance(f->loop, WITHDRAWN_MS - OWNER_WAIT_MS);
	ask(u, NULL);
	ck_assert_uint_eq(k[1].asked, 1);
}
END_TEST

/* Whoever gave up a call may hear of it. */
START_TEST(late_after_its_own_cancel)
{
	(void)begin(&k[0], &a, 0);
	give_up(&k[0]);
	(void)begin(&k[1], &a, 0);
	ask(u, NULL);
	ck_assert_uint_eq(k[1].asked, 1);
	give_up(&k[1]);
	(void)begin(&k[0], &b, 0);
	ask(u, NULL);
	ck_assert_uint_eq(k[0].asked, 0);
}
END_TEST

START_TEST(withdrawn_while_it_waits)
{
	begin_two(0);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, "\"id\":8,\"params\":{}");
	fake_upstream_withdraw(u);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	ask(u, NULL);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
}
END_TEST

START_TEST(too_many_wait)
{
	begin_two(0);
	for (unsigned i = 1; i < CAP_UPSTREAM_QUESTIONS; i++)
		ask(u, NULL);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	ask(u, NULL);
	ck_assert_str_eq(fake_upstream_answer(u), UNCERTAIN);
	/* They all go to whoever is left. */
	fake_upstream_result(u, 0, "{}");
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k[1].asked, CAP_UPSTREAM_QUESTIONS);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
}
END_TEST

START_TEST(no_memory_to_wait)
{
	(void)begin(&k[0], &a, 0);
	(void)begin(&k[1], &b, 0);
	mem_fail_at(1, 0);
	ask(u, NULL);
	mem_fail_at(0, 0);
	ck_assert_str_eq(fake_upstream_answer(u), UNCERTAIN);
}
END_TEST

START_TEST(it_dies_while_one_waits)
{
	begin_two(0);
	fake_upstream_withdraw(u);
	fake_upstream_set_state(u, UPSTREAM_ST_DOWN, "died");
	ck_assert_uint_eq(k[0].done + k[1].done, 2);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
}
END_TEST

/* Its calls are over with it: what waits is not its any more. */
START_TEST(client_leaves_while_one_waits)
{
	begin_two(0);
	give_up(&k[0]);
	gateway_unobserve(f->g, &a.o);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k[1].asked, 0);
	fake_loop_advance(f->loop, OWNER_WAIT_MS);
	ck_assert_str_eq(fake_upstream_answer(u), UNCERTAIN);
	observe(&a, true, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_questions");
	TCase *tc = tcase_create("questions");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, of_the_call_on_whose_stream_it_comes);
	tcase_add_loop_test(tc, of_the_one_call_in_flight, 0, 2);
	tcase_add_test(tc, of_the_one_client_with_calls);
	tcase_add_loop_test(tc, of_nobody, 0, 2);
	tcase_add_test(tc, of_a_task_that_nobody_knows);
	tcase_add_test(tc, of_a_task_of_its_own_instance);
	tcase_add_loop_test(tc, one_of_several_is_left, 0, 3);
	tcase_add_loop_test(tc, nobody_is_left, 0, 3);
	tcase_add_loop_test(tc, several_stay, 0, 3);
	tcase_add_loop_test(tc, one_of_several_gave_up, 0, 3);
	tcase_add_test(tc, late_after_a_cancel);
	tcase_add_test(tc, late_after_its_own_cancel);
	tcase_add_test(tc, withdrawn_while_it_waits);
	tcase_add_test(tc, too_many_wait);
	tcase_add_test(tc, no_memory_to_wait);
	tcase_add_test(tc, it_dies_while_one_waits);
	tcase_add_test(tc, client_leaves_while_one_waits);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
