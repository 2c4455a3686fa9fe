/* layer: upstream, fakes: loop child link http_link local */
/* SPDX-License-Identifier: MIT */
/* Calls of kinds that make their tools themselves, and what their owners may do in the
 * ends of them. */
#include "fake/fake_local.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

#define ERROR_OF(code, message) "{\"code\":" code ",\"message\":\"" message "\"}"

static const struct {
	enum answering how;
	const char *params;
	enum outcome_kind kind;
	enum mv_err err;
	const char *body;
} replies[] = {
    {ANSWER_RESULT, "{\"name\":\"t\"}", OUTCOME_RESULT, MV_OK, "{\"content\":[]}"},
    {ANSWER_TEXT, "{\"name\":\"t\",\"arguments\":{}}", OUTCOME_RESULT, MV_OK,
	"{\"content\":[{\"type\":\"text\",\"text\":\"a\\n\xef\xbf\xbd\\\"\"}]}"},
    {ANSWER_FAILURE, "{\"name\":\"t\"}", OUTCOME_RESULT, MV_OK,
	"{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true}"},
    {ANSWER_ERROR, "{\"name\":\"t\"}", OUTCOME_ERROR, MV_OK,
	ERROR_OF("-32603", "It \\\"broke\\\"")},
    {ANSWER_NOBODY, "{\"name\":\"x\\\"y\"}", OUTCOME_ERROR, MV_OK,
	ERROR_OF("-32602", "Unknown tool: x\\\"y")},
    {ANSWER_RESULT, "{\"name\":\"t\",\"arguments\":[]}", OUTCOME_ERROR, MV_OK,
	ERROR_OF("-32602", "Invalid params: arguments must be an object; got []. "
			   "Retrying unchanged will fail.")},
    {ANSWER_RESULT, "{\"name\":\"t\",\"arguments\":null}", OUTCOME_ERROR, MV_OK,
	ERROR_OF("-32602", "Invalid params: arguments must be an object; got null. "
			   "Retrying unchanged will fail.")},
    {ANSWER_LONG, "{\"name\":\"t\"}", OUTCOME_FAILED, MV_TOO_LONG, ""},
};

START_TEST(every_reply)
{
	struct tcall c = {.done = 0};
	char text[256];

	owner_ready(replies[_i].how);
	(void)snprintf(text, sizeof(text), CALL("%s"), replies[_i].params);
	ck_assert_int_eq(tcall_try(&c, text), MV_OK);
	ck_assert_uint_eq(upstream_in_flight(g_owner.u), 1);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.kind, replies[_i].kind);
	ck_assert_int_eq(c.err, replies[_i].err);
	ck_assert_str_eq(c.body, replies[_i].body);
	ck_assert_uint_eq(upstream_in_flight(g_owner.u), 0);
	owner_free();
}
END_TEST

START_TEST(a_reply_later_has_a_turn_of_its_own_too)
{
	struct tcall c = {.done = 0};

	owner_ready(ANSWER_LATER);
	tcall_send(&c);
	fake_loop_settle(g_owner.loop);
	kind_answer(kind_take(&g_kind, 0), ANSWER_RESULT);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done, 1);
	owner_free();
}
END_TEST

static struct tcall g_next;

static void
then_call(void)
{
	tcall_send(&g_next);
}

START_TEST(a_call_from_an_end_has_a_turn_of_its_own)
{
	struct tcall c = {.then = then_call};

	g_next = (struct tcall){.done = 0};
	owner_ready(ANSWER_RESULT);
	tcall_send(&c);
	while (c.done == 0)
		ck_assert(fake_loop_turn(g_owner.loop));
	ck_assert_uint_eq(g_next.done, 0);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(g_next.done, 1);
	owner_free();
}
END_TEST

START_TEST(a_cancelled_call)
{
	struct tcall c = {.done = 0}, other = {.done = 0};

	owner_ready(ANSWER_LATER);
	tcall_send(&c);
	tcall_send(&other);
	upstream_cancel(&c.req, NULL);
	ck_assert_uint_eq(g_kind.cancels, 1);
	ck_assert_uint_eq(g_kind.n_open, 1);
	/* One whose answer is on its way. */
	kind_answer(kind_take(&g_kind, 0), ANSWER_RESULT);
	upstream_cancel(&other.req, NULL);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done + other.done, 0);
	ck_assert_uint_eq(g_kind.cancels, 1);
	owner_free();
}
END_TEST

/* ---- inside of callbacks ---- */

static void
then_die(void)
{
	local_down(g_owner.u, MV_DIED, "fell");
}

static void
then_restart(void)
{
	upstream_restart(g_owner.u, "asked");
}

static void
then_cancel(void)
{
	upstream_cancel(&g_next.req, NULL);
}

static void (*const thens[])(void) = {
    owner_stop, then_restart, then_die, then_call, then_cancel};

/* Two answers are due in one turn: the first one's end does something. */
START_TEST(inside_of_an_answer)
{
	struct tcall c = {.then = thens[_i / 2]};
	enum answering how = _i % 2 == 0 ? ANSWER_RESULT : ANSWER_LATER;

	owner_ready(ANSWER_RESULT);
	tcall_send(&c);
	g_next = (struct tcall){.done = 0};
	g_kind.answering = how;
	if (thens[_i / 2] != then_call)
		tcall_send(&g_next);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done, 1);
	if (thens[_i / 2] == then_cancel)
		ck_assert_uint_eq(g_next.done, 0);
	else if (thens[_i / 2] != then_call || how == ANSWER_RESULT)
		ck_assert_uint_eq(g_next.done, 1);
	owner_free();
}
END_TEST

/* The same in the end of a call that fails, when all is over already. */
START_TEST(inside_of_a_failure)
{
	struct tcall c = {.then = thens[_i]};

	if (thens[_i] == then_call)
		return; /* refused, as it is down */
	owner_ready(ANSWER_LATER);
	g_next = (struct tcall){.done = 0};
	tcall_send(&c);
	local_down(g_owner.u, MV_DIED, "fell");
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done, 1);
	owner_free();
}
END_TEST

START_TEST(freed_with_all_that_is_open)
{
	struct tcall c = {.done = 0}, answered = {.done = 0};

	owner_ready(ANSWER_LATER);
	tcall_send(&c);
	tcall_send(&answered);
	kind_answer(kind_take(&g_kind, 1), ANSWER_RESULT);
	owner_stop();
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_STOPPING);
	ck_assert_uint_eq(answered.done, 1);
	owner_free();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_local_calls");
	TCase *tc = tcase_create("upstream_local_calls");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	log_set_level(LOG_LV_ERROR);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, every_reply, 0, (int)(sizeof(replies) / sizeof(replies[0])));
	tcase_add_test(tc, a_reply_later_has_a_turn_of_its_own_too);
	tcase_add_test(tc, a_call_from_an_end_has_a_turn_of_its_own);
	tcase_add_test(tc, a_cancelled_call);
	tcase_add_loop_test(
	    tc, inside_of_an_answer, 0, 2 * (int)(sizeof(thens) / sizeof(thens[0])));
	tcase_add_loop_test(
	    tc, inside_of_a_failure, 0, (int)(sizeof(thens) / sizeof(thens[0])));
	tcase_add_test(tc, freed_with_all_that_is_open);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
