/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Calls that wait for an upstream to start, and what ends those that it leaves behind. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL_OF(x)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"x\":" #x  \
	"}}"
#define SENT(id, x)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id                                               \
	",\"method\":\"tools/call\",\"params\":{\"x\":" #x "}}"
#define IS_LEGACY "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"

static struct uowner *
owner_starting(void)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	uowner_heard(INITIALIZE(1));
	return o;
}

static struct uowner *
owner_ready(void)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_be_legacy(o, "2025-06-18", "{}");
	return o;
}

static void
check_failed(const struct ucall *c, enum mv_err err, const char *detail)
{
	ck_assert_uint_eq(c->done, 1);
	ck_assert_int_eq(c->kind, OUTCOME_FAILED);
	ck_assert_msg(
	    c->err == err, "%s, not %s", mv_err_reason(c->err), mv_err_reason(err));
	ck_assert_str_eq(c->detail, detail);
}

/* ---- waiting ---- */

START_TEST(held_calls_go_in_order)
{
	struct uowner *o = owner_starting();
	struct ucall a = {.done = 0}, b = {.done = 0}, c = {.done = 0}, d = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &b, CALL_OF(2));
	ucall_send(o, &c, CALL_OF(3));
	upstream_cancel(&c.req, NULL); /* the last one */
	ucall_send(o, &d, CALL_OF(4));
	upstream_cancel(&a.req, NULL); /* the first one */
	ucall_send(o, &a, CALL_OF(5));
	ck_assert_uint_eq(upstream_in_flight(o->u), 3);
	uowner_heard_nothing();
	uowner_answer(o, 1, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_heard(SENT(2, 2));
	uowner_heard(SENT(3, 4));
	uowner_heard(SENT(4, 5));
	uowner_heard_nothing();
	uowner_answer(o, 4, "{}");
	uowner_answer(o, 2, "{}");
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(a.order, 1);
	ck_assert_uint_eq(b.order, 2);
	ck_assert_uint_eq(d.order, 3);
	ck_assert_uint_eq(c.done, 0);
	ck_assert_uint_eq(o->u->held_bytes, 0);
	uowner_free(o);
}
END_TEST

/* All of them, to the last; then there are others. */
START_TEST(the_only_held_call_is_cancelled)
{
	struct uowner *o = owner_starting();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	upstream_cancel(&a.req, NULL);
	upstream_cancel(&a.req, NULL); /* is idle by now */
	ck_assert_uint_eq(o->u->held_bytes, 0);
	ucall_send(o, &b, CALL_OF(2));
	ucall_send(o, &a, CALL_OF(3));
	uowner_answer(o, 1, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_heard(SENT(2, 2));
	uowner_heard(SENT(3, 3));
	upstream_cancel(&a.req, NULL);
	uowner_heard(CANCELLED(3));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(held_call_that_cannot_be_sent)
{
	struct uowner *o = owner_starting();
	struct ucall b = {.done = 0};
	struct ucall a = {.then = &b, .then_text = CALL_OF(2)}, c = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &c, CALL_OF(3));
	fake_link_refuse(o->u->link, MV_BUSY);
	uowner_answer(o, 1, IS_LEGACY);
	check_failed(&a, MV_BUSY, "");
	check_failed(&c, MV_BUSY, "");
	ck_assert_int_eq(b.err, MV_BUSY);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	uowner_free(o);
}
END_TEST

/* No legacy server has given out a state: what brings one is not run, whether or not that
 * was known when it came. */
START_TEST(state_of_somebody_else)
{
	struct uowner *o = owner_starting();
	struct ucall a = {.has_state = true}, b = {.has_state = true}, c = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &c, CALL_OF(2));
	uowner_answer(o, 1, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_heard(SENT(2, 2));
	check_failed(&a, MV_PARAMS, "");
	ck_assert_int_eq(ucall_try(o, &b, CALL_OF(3), NULL), MV_PARAMS);
	uowner_heard_nothing();
	ck_assert_uint_eq(upstream_in_flight(o->u), 1);
	ck_assert_uint_eq(o->u->held_bytes, 0);
	uowner_free(o);
}
END_TEST

/* The limit of time begins anew with the sending. */
START_TEST(waiting_is_not_running)
{
	struct uowner *o = owner_starting();
	struct ucall c = {.done = 0};

	o->conf->call_ms = 10000;
	ucall_send(o, &c, CALL_OF(1));
	fake_loop_advance(o->loop, 9000);
	uowner_answer(o, 1, IS_LEGACY);
	fake_loop_advance(o->loop, 9999);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&c, MV_TIMEOUT, "");
	uowner_free(o);
}
END_TEST

static bool
count_up_to(struct upstream_req *r, void *arg)
{
	unsigned *n = arg;

	ck_assert(r->is_call);
	return ++*n % 10 != 2;
}

/* What was not sent yet cannot be the cause of anything. */
START_TEST(visits_what_is_in_flight)
{
	struct uowner *o = owner_ready();
	struct ucall calls[3] = {{.done = 0}};
	unsigned n = 0;

	upstream_each_req(o->u, count_up_to, &n);
	ck_assert_uint_eq(n, 0);
	ucall_send(o, &calls[0], CALL_OF(1));
	upstream_each_req(o->u, count_up_to, &n);
	ck_assert_uint_eq(n, 1);
	ucall_send(o, &calls[1], CALL_OF(1));
	ucall_send(o, &calls[2], CALL_OF(1));
	n = 0;
	upstream_each_req(o->u, count_up_to, &n);
	ck_assert_uint_eq(n, 2); /* it said so */
	n = 10;
	uowner_reborn(o);
	ucall_send(o, &calls[0], CALL_OF(1));
	upstream_each_req(o->u, count_up_to, &n);
	ck_assert_uint_eq(n, 10);
	uowner_free(o);
}
END_TEST

/* ---- ends ---- */

/* Each fails at once, also one that is sent in the end of another. */
START_TEST(death_fails_all)
{
	struct uowner *o = _i == 0 ? owner_ready() : owner_starting();
	struct ucall c = {.done = 0}, d = {.done = 0};
	struct ucall a = {.then = &c, .then_text = CALL_OF(3)}, b = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &b, CALL_OF(2));
	uowner_die(o);
	check_failed(&a, MV_DIED, "exited with status 1");
	check_failed(&b, MV_DIED, "exited with status 1");
	ck_assert_int_eq(c.err, MV_BACKOFF);
	ck_assert_uint_eq(c.done, 0);
	ck_assert_int_eq(ucall_try(o, &d, CALL_OF(4), NULL), MV_BACKOFF);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	fake_child_pause_over(o->u->child);
	ucall_send(o, &d, CALL_OF(4));
	uowner_free(o);
	check_failed(&d, MV_STOPPING, "");
}
END_TEST

START_TEST(parked_refuses)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	fake_child_set_budget(o->u->child, 1);
	uowner_die(o);
	check_failed(&a, MV_DIED, "exited with status 1");
	ck_assert_int_eq(ucall_try(o, &b, CALL_OF(2), NULL), MV_PARKED);
	uowner_free(o);
}
END_TEST

/* A handshake that failed says why to those who waited for it. */
START_TEST(refused_greeting_fails_the_held)
{
	struct uowner *o = owner_starting();
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL_OF(1));
	uowner_refuse(o, 1, "-32603");
	ck_assert_uint_eq(c.done, 0);
	uowner_die(o);
	check_failed(&c, MV_PROTOCOL, "refused initialize");
	uowner_free(o);
}
END_TEST

START_TEST(stop_fails_all_and_takes_no_more)
{
	struct uowner *o = _i == 0 ? owner_ready() : owner_starting();
	struct ucall b = {.done = 0}, c = {.done = 0};
	struct ucall a = {.then = &c, .then_text = CALL_OF(3)};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &b, CALL_OF(2));
	fake_link_forget_all();
	upstream_stop(o->u, &child_ladder_defaults);
	check_failed(&a, MV_STOPPING, "");
	check_failed(&b, MV_STOPPING, "");
	ck_assert_int_eq(c.err, MV_STOPPING);
	uowner_answer(o, 2, "{}");
	uowner_heard_nothing();
	uowner_die(o);
	ck_assert_uint_eq(o->stopped, 1);
	uowner_free(o);
}
END_TEST

/* The output has ended, but the process stays. */
START_TEST(mute_upstream)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	fake_link_end(o->u->link);
	ck_assert_uint_eq(fake_child_ends(o->u->child), 1);
	fake_loop_advance(o->loop, MUTE_MS - 1);
	ck_assert_uint_eq(a.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&a, MV_DIED, "closed its standard output");
	ck_assert_int_eq(ucall_try(o, &b, CALL_OF(2), NULL), MV_DIED);
	ck_assert_ptr_null(o->u->link);
	uowner_reborn(o);
	ck_assert_ptr_nonnull(o->u->link);
	uowner_free(o);
}
END_TEST

/* Its exit follows at once and says more. */
START_TEST(end_of_output_and_exit)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	fake_link_end(o->u->link);
	fake_loop_advance(o->loop, MUTE_MS - 1);
	fake_child_die(o->u->child, "killed by signal 9 (Killed)");
	check_failed(&a, MV_DIED, "killed by signal 9 (Killed)");
	fake_loop_advance(o->loop, 1000);
	uowner_free(o);
}
END_TEST

START_TEST(closed_input_of_a_ready_one)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL_OF(1));
	ucall_send(o, &b, CALL_OF(2));
	fake_link_write_end(o->u->link, 32);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	/* What it has worked out still counts. */
	uowner_answer(o, 2, "{}");
	ck_assert_int_eq(a.kind, OUTCOME_RESULT);
	uowner_die(o);
	check_failed(&b, MV_PROTOCOL, "exited with status 1");
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	uowner_free(o);
}
END_TEST

START_TEST(never_started)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};

	ck_assert_int_eq(ucall_try(o, &c, CALL_OF(1), NULL), MV_BACKOFF);
	upstream_stop(o->u, &child_ladder_defaults);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_int_eq(ucall_try(o, &c, CALL_OF(1), NULL), MV_STOPPING);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_held");
	TCase *tc = tcase_create("held");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, held_calls_go_in_order);
	tcase_add_test(tc, the_only_held_call_is_cancelled);
	tcase_add_test(tc, held_call_that_cannot_be_sent);
	tcase_add_test(tc, state_of_somebody_else);
	tcase_add_test(tc, waiting_is_not_running);
	tcase_add_test(tc, visits_what_is_in_flight);
	tcase_add_loop_test(tc, death_fails_all, 0, 2);
	tcase_add_test(tc, parked_refuses);
	tcase_add_test(tc, refused_greeting_fails_the_held);
	tcase_add_loop_test(tc, stop_fails_all_and_takes_no_more, 0, 2);
	tcase_add_test(tc, mute_upstream);
	tcase_add_test(tc, end_of_output_and_exit);
	tcase_add_test(tc, closed_input_of_a_ready_one);
	tcase_add_test(tc, never_started);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
