/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Questions and the time limits of calls; what is kept of one that asks. */
#include "ask_rig.h"

/* ---- time ---- */

/* For q, which came without a word of whose it is. */
static void
take_for(struct uowner *o, struct ucall *c)
{
	question_take(o->question, &uowner_question_cb, o, &c->req);
}

START_TEST(time_rests)
{
	struct uowner *o = ready(ALL);
	struct ucall c = {.done = 0}, other = {.done = 0};
	struct question *first;

	ucall_send(o, &c, CALL);
	ucall_send(o, &other, CALL);
	fake_link_forget_all();
	fake_loop_advance(o->loop, 900);
	uowner_say(o, "%s", ELICIT("1"));
	take_for(o, &c);
	first = o->question;
	fake_loop_advance(o->loop, 50);
	uowner_say(o, "%s", ELICIT("2"));
	take_for(o, &c);
	/* Others wait for nobody. */
	fake_loop_advance(o->loop, 60000);
	ck_assert_uint_eq(other.done, 1);
	ck_assert_uint_eq(c.done, 0);
	answer(first, "result", "{}");
	fake_loop_advance(o->loop, 60000);
	ck_assert_uint_eq(c.done, 0);
	answer(o->question, "result", "{}");
	/* The whole of the silent time anew, and what is left of the other. */
	fake_loop_advance(o->loop, 999);
	ck_assert_uint_eq(c.done, 0);
	for (unsigned i = 0; i < 3; i++) {
		uowner_say(o,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
		    "\"params\":{\"progressToken\":2,\"progress\":1}}");
		fake_loop_advance(o->loop, 990);
		ck_assert_uint_eq(c.done, 0);
	}
	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
		      "\"params\":{\"progressToken\":2,\"progress\":1}}");
	/* 900 before it, 999 and 2970 behind. */
	fake_loop_advance(o->loop, 5000 - 900 - 999 - 2970 - 1);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_TIMEOUT);
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

/* It may be of either, and both wait for it. */
START_TEST(time_of_all_rests)
{
	struct uowner *o = ready(ALL);
	struct ucall c[3] = {{.done = 0}};

	ucall_send(o, &c[0], CALL);
	fake_loop_advance(o->loop, 400);
	ucall_send(o, &c[1], CALL);
	fake_link_forget_all();
	uowner_say(o, "%s", ELICIT("1"));
	uowner_say(o, "%s", ELICIT("2"));
	fake_loop_advance(o->loop, 20000);
	ucall_send(o, &c[2], CALL);
	fake_loop_advance(o->loop, 20000);
	fake_link_forget_all();
	uowner_say(o, "%s", IS_CANCELLED("1"));
	fake_loop_advance(o->loop, 20000);
	ck_assert_uint_eq(o->dones, 0);
	answer(o->question, "result", "{}");
	fake_loop_advance(o->loop, 999);
	ck_assert_uint_eq(o->dones, 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(o->dones, 3);
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

/* The same, of the time in all. */
START_TEST(time_in_all_rests)
{
	struct upstream_conf *cf = conf();
	struct ucall c = {.done = 0};
	struct uowner *o;

	cf->call_ms = 100000;
	o = ready_of(cf, ALL);
	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	fake_loop_advance(o->loop, 3000);
	uowner_say(o, "%s", ELICIT("1"));
	fake_loop_advance(o->loop, 20000);
	if (_i == 1)
		take_for(o, &c);
	fake_loop_advance(o->loop, 20000);
	answer(o->question, "result", "{}");
	fake_loop_advance(o->loop, 1999);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(c.done, 1);
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

START_TEST(time_runs_again_when_it_is_withdrawn)
{
	struct uowner *o = ready(ALL);
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	uowner_say(o, "%s", ELICIT("1"));
	take_for(o, &c);
	fake_loop_advance(o->loop, 60000);
	uowner_say(o, "%s", IS_CANCELLED("1"));
	fake_loop_advance(o->loop, 999);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(c.done, 1);
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

/* Its call may be over before it. */
START_TEST(call_ends_first)
{
	struct uowner *o = ready(ALL);
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	uowner_say(o, "%s", ELICIT("1"));
	take_for(o, &c);
	if (_i == 0)
		uowner_answer(o, 2, "{}");
	else
		upstream_cancel(&c.req, NULL);
	memset(&c, 0xa5, sizeof(c));
	fake_link_forget_all();
	answer(o->question, "result", "{}");
	uowner_heard(ANSWERED("1", "\"result\":{}"));
	uowner_free(o);
}
END_TEST

/* ---- what is kept of it ---- */

START_TEST(asks_is_remembered)
{
	struct uowner *o = ready(ALL), *next;
	unsigned memories;
	struct buf b;

	fake_loop_advance(o->loop, 1000);
	memories = o->memories;
	ck_assert(!upstream_asks(o->u));
	upstream_note_asks(o->u);
	upstream_note_asks(o->u);
	ck_assert(upstream_asks(o->u));
	ck_assert_uint_eq(o->memories, memories + 1);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, memories + 1);
	buf_init(&b, 65536);
	upstream_put_memory(o->u, &b);
	uowner_free(o);
	next = uowner_new_of(conf());
	ck_assert(!upstream_asks(next->u));
	ck_assert_int_eq(upstream_take_memory(next->u, b.data, b.len), MV_OK);
	ck_assert(upstream_asks(next->u));
	buf_fini(&b);
	uowner_start(next);
	fake_link_forget_all();
	uowner_free(next);
}
END_TEST

/* What was given up is at work for as long as the process is. */
START_TEST(given_up)
{
	struct uowner *o = ready(ALL);
	struct ucall c = {.done = 0};

	ck_assert_uint_eq(upstream_withdrawn_ms(o->u), 0);
	ucall_send(o, &c, CALL);
	if (_i == 0)
		upstream_cancel(&c.req, NULL);
	else
		fake_loop_advance(o->loop, 1000);
	ck_assert_uint_ne(upstream_withdrawn_ms(o->u), 0);
	fake_link_forget_all();
	uowner_reborn(o);
	ck_assert_uint_eq(upstream_withdrawn_ms(o->u), 0);
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

START_TEST(word_of_a_url)
{
	struct uowner *o = ready(ALL);

	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"method\":"
		      "\"notifications/elicitation/complete\",\"params\":{"
		      "\"elicitationId\":\"e\"}}");
	ck_assert_uint_eq(o->elicited, 1);
	ck_assert_ptr_nonnull(strstr(o->last, "\"elicitationId\":\"e\""));
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_question_time");
	TCase *tc = tcase_create("question");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, time_rests);
	tcase_add_test(tc, time_of_all_rests);
	tcase_add_loop_test(tc, time_in_all_rests, 0, 2);
	tcase_add_test(tc, time_runs_again_when_it_is_withdrawn);
	tcase_add_loop_test(tc, call_ends_first, 0, 2);
	tcase_add_test(tc, asks_is_remembered);
	tcase_add_loop_test(tc, given_up, 0, 2);
	tcase_add_test(tc, word_of_a_url);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
