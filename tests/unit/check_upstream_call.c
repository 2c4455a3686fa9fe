/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Requests of clients: whose answer is whose, and the limits of time and number. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\"}}"
#define CALL_OF(x)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\",\"arguments\":{\"x\":" #x "}}}"
#define PROGRESS(token)                                                                  \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"        \
	"\"progressToken\":" token ",\"progress\":1}}"

static struct uowner *
owner_ready(void)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", "{}");
	return o;
}

static void
check_failed(const struct ucall *c, enum mv_err err)
{
	ck_assert_uint_eq(c->done, 1);
	ck_assert_int_eq(c->kind, OUTCOME_FAILED);
	ck_assert_msg(
	    c->err == err, "%s, not %s", mv_err_reason(c->err), mv_err_reason(err));
}

/* ---- answers ---- */

START_TEST(answers_find_their_calls)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0}, c = {.done = 0};

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	ucall_send(o, &c, CALL);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 2);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 3);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 4);
	ck_assert_uint_eq(upstream_in_flight(o->u), 3);
	uowner_answer(o, 4, "{ \"isError\":true,\"x\" : 1e2 }");
	uowner_say(o, REFUSED, 2ULL, "-32602", ",\"data\":{\"a\":[1, 2]}");
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(c.order, 1);
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	ck_assert_str_eq(c.body, "{ \"isError\":true,\"x\" : 1e2 }");
	ck_assert_uint_eq(a.order, 2);
	ck_assert_int_eq(a.kind, OUTCOME_ERROR);
	ck_assert_str_eq(
	    a.body, "{\"code\":-32602,\"message\":\"m\",\"data\":{\"a\":[1, 2]}}");
	ck_assert_uint_eq(b.order, 3);
	ck_assert_str_eq(b.body, "{}");
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	uowner_free(o);
}
END_TEST

/* Some answers mean something in one era only. */
START_TEST(answers_of_an_era)
{
	static const struct {
		const char *says;
		enum outcome_kind legacy, modern;
	} rows[] = {
	    {"\"result\":{\"resultType\":\"input_required\",\"x\":1}", OUTCOME_RESULT,
		OUTCOME_INPUT_REQUIRED},
	    {"\"result\":{\"resultType\":\"complete\"}", OUTCOME_RESULT, OUTCOME_RESULT},
	    {"\"error\":{\"code\":-32020,\"message\":\"m\"}", OUTCOME_ERROR,
		OUTCOME_FAILED},
	    {"\"error\":{\"code\":-32022,\"message\":\"m\"}", OUTCOME_ERROR,
		OUTCOME_FAILED},
	    {"\"error\":{\"code\":-32021,\"message\":\"m\"}", OUTCOME_ERROR,
		OUTCOME_ERROR},
	    {"\"error\":{\"code\":-32602,\"message\":\"m\"}", OUTCOME_ERROR,
		OUTCOME_ERROR},
	};
	size_t n = sizeof(rows) / sizeof(rows[0]), row = (size_t)_i % n;
	bool modern = (size_t)_i >= n;
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};

	if (modern)
		uowner_be_modern(o, "{}");
	else
		uowner_be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":2,%s}", rows[row].says);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.kind, modern ? rows[row].modern : rows[row].legacy);
	if (c.kind == OUTCOME_FAILED)
		ck_assert_int_eq(c.err, MV_PROTOCOL);
	uowner_free(o);
}
END_TEST

/* What flies goes on while a lost session is set up anew, and its errors are its own. */
START_TEST(error_while_a_session_is_renewed)
{
	struct uowner *o = owner_ready();
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	upstream_event(o->u, UPSTREAM_EV_RENEW);
	ck_assert_uint_eq(c.done, 0);
	uowner_refuse(o, 2, "-32022");
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.kind, OUTCOME_ERROR);
	uowner_free(o);
}
END_TEST

START_TEST(strange_answers_are_dropped)
{
	static const char *const ids[] = {"1", "3", "0", "-2", "\"2\"", "\"c\"", "2.0",
	    "99999999999999999999", "18446744073709551618"};
	struct uowner *o = owner_ready();
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[_i]);
	uowner_say(o, "%s",
	    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}");
	ck_assert_uint_eq(c.done, 0);
	uowner_answer(o, 2, "{}");
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

START_TEST(late_and_double_answers_are_dropped)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};
	uint64_t late = metrics_get(METRIC_REPLIES_LATE);

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	uowner_answer(o, 2, "{\"n\":1}");
	uowner_answer(o, 2, "{\"n\":2}");
	uowner_refuse(o, 2, "-32603");
	ck_assert_uint_eq(a.done, 1);
	ck_assert_str_eq(a.body, "{\"n\":1}");
	upstream_cancel(&b.req, NULL);
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(b.done, 0);
	ck_assert_uint_eq(metrics_get(METRIC_REPLIES_LATE), late + 3);
	uowner_free(o);
}
END_TEST

START_TEST(a_call_may_follow_in_the_end_of_another)
{
	struct uowner *o = owner_ready();
	struct ucall b = {.done = 0};
	struct ucall a = {.then = &b, .then_text = CALL};

	ucall_send(o, &a, CALL);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 2);
	uowner_answer(o, 2, "{}");
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 3);
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(b.done, 1);
	/* The same request again. */
	ucall_send(o, &b, CALL);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 4);
	uowner_answer(o, 4, "{}");
	ck_assert_uint_eq(b.done, 2);
	uowner_free(o);
}
END_TEST

START_TEST(progress_finds_its_call)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	uowner_say(o, PROGRESS("3"));
	ck_assert_uint_eq(b.progressed, 1);
	ck_assert_str_eq(o->last, PROGRESS("3"));
	uowner_say(o, PROGRESS("2"));
	uowner_say(o, PROGRESS("2"));
	ck_assert_uint_eq(a.progressed, 2);
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped);
	uowner_say(o, PROGRESS("\"2\""));
	uowner_say(o, PROGRESS("1"));
	uowner_say(o, PROGRESS("0"));
	uowner_say(o, PROGRESS("null"));
	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}");
	uowner_answer(o, 2, "{}");
	uowner_say(o, PROGRESS("2"));
	ck_assert_uint_eq(a.progressed, 2);
	ck_assert_uint_eq(b.progressed, 1);
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 6);
	uowner_free(o);
}
END_TEST

/* ---- time ---- */

START_TEST(silence_has_a_limit)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL);
	fake_loop_advance(o->loop, 1000);
	ucall_send(o, &b, CALL);
	fake_link_forget_all();
	fake_loop_advance(o->loop, 298999);
	ck_assert_uint_eq(a.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&a, MV_TIMEOUT);
	uowner_heard(CANCELLED(2));
	fake_loop_advance(o->loop, 999);
	ck_assert_uint_eq(b.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&b, MV_TIMEOUT);
	uowner_heard(CANCELLED(3));
	uowner_heard_nothing();
	ck_assert(
	    uowner_log_has(o, "call timed out upstream=\"alpha\" method=tools/call"));
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

START_TEST(progress_gives_time_but_not_for_ever)
{
	struct uowner *o = owner_ready();
	struct ucall c = {.done = 0};
	unsigned minutes = 0;

	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	for (; c.done == 0 && minutes < 100; minutes += 4) {
		fake_loop_advance(o->loop, 4 * 60000 - 1);
		uowner_say(o, PROGRESS("2"));
		fake_loop_advance(o->loop, 1);
	}
	check_failed(&c, MV_TIMEOUT);
	ck_assert_uint_eq(minutes, 60);
	uowner_heard(CANCELLED(2));
	uowner_free(o);
}
END_TEST

START_TEST(time_of_a_held_call)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};

	o->conf->call_ms = 5000;
	uowner_start(o);
	ucall_send(o, &c, CALL);
	fake_loop_advance(o->loop, 4999);
	ck_assert_uint_eq(c.done, 0);
	fake_link_forget_all();
	fake_loop_advance(o->loop, 1);
	check_failed(&c, MV_TIMEOUT);
	uowner_heard_nothing();
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	uowner_free(o);
}
END_TEST

/* Ours have a shorter limit, whatever a client's is. */
START_TEST(time_of_our_own)
{
	struct uowner *o = owner_ready();
	struct ucall c = {.done = 0};

	o->conf->call_ms = 1000;
	ucall_send(o, &c, CALL); /* lends its callbacks */
	uowner_answer(o, 2, "{}");
	ck_assert_int_eq(upstream_ask(o->u, &c.req, METHOD_PING, ""), MV_OK);
	fake_link_forget_all();
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	fake_loop_advance(o->loop, 29999);
	ck_assert_uint_eq(c.done, 1);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(c.done, 2);
	ck_assert_int_eq(c.err, MV_TIMEOUT);
	uowner_heard(CANCELLED(3));
	uowner_free(o);
}
END_TEST

START_TEST(timed_out_calls_may_start_others)
{
	struct uowner *o = owner_ready();
	struct ucall b = {.done = 0};
	struct ucall a = {.then = &b, .then_text = CALL};

	ucall_send(o, &a, CALL);
	fake_link_forget_all();
	fake_loop_advance(o->loop, 300000);
	check_failed(&a, MV_TIMEOUT);
	ck_assert_int_eq(b.err, MV_OK);
	uowner_heard(CANCELLED(2));
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 3);
	fake_loop_advance(o->loop, 299999);
	ck_assert_uint_eq(b.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&b, MV_TIMEOUT);
	uowner_free(o);
}
END_TEST

/* ---- bounds ---- */

START_TEST(number_is_bounded)
{
	struct uowner *o = _i == 0 ? owner_ready() : uowner_new(ERA_AUTO);
	struct ucall *calls = mem_xcalloc(CAP_UPSTREAM_CALLS + 1, sizeof(*calls));
	struct ucall *more = &calls[CAP_UPSTREAM_CALLS];

	if (_i == 1)
		uowner_start(o);
	for (unsigned i = 0; i < CAP_UPSTREAM_CALLS; i++)
		ucall_send(o, &calls[i], CALL);
	ck_assert_int_eq(ucall_try(o, more, CALL, NULL), MV_BUSY);
	ck_assert_uint_eq(upstream_in_flight(o->u), CAP_UPSTREAM_CALLS);
	upstream_cancel(&calls[7].req, NULL);
	ucall_send(o, more, CALL);
	ck_assert_int_eq(ucall_try(o, &calls[7], CALL, NULL), MV_BUSY);
	uowner_free(o);
	ck_assert_uint_eq(more->done, 1);
	ck_assert_uint_eq(calls[7].done, 0);
	mem_free(calls);
}
END_TEST

/* A message of this many bytes. */
static char *
call_of_bytes(size_t n)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				   "\"tools/call\",\"params\":{\"name\":\"";
	char *text = mem_xalloc(n + 1);

	memset(text, 'x', n);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + n - 3, "\"}}", 4);
	return text;
}

START_TEST(held_bytes_are_bounded)
{
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct ucall big[3] = {{.done = 0}}, small = {.done = 0};
	char *text = call_of_bytes(CAP_UPSTREAM_HELD_BYTES / 3 - strlen(CLIENT_INFO));

	uowner_start(o);
	for (int i = 0; i < 3; i++)
		ucall_send(o, &big[i], text);
	ck_assert_int_eq(ucall_try(o, &small, CALL, NULL), MV_BUSY);
	upstream_cancel(&big[1].req, NULL);
	ucall_send(o, &small, CALL);
	ck_assert_int_eq(ucall_try(o, &big[1], text, NULL), MV_BUSY);
	/* All is given back. */
	uowner_die(o);
	check_failed(&small, MV_DIED);
	ck_assert_uint_eq(o->u->held_bytes, 0);
	mem_free(text);
	uowner_free(o);
}
END_TEST

START_TEST(no_memory_fails_one_call)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall a = {.done = 0}, b = {.done = 0};

	uowner_start(o);
	mem_fail_at(1, 0);
	ck_assert_int_eq(ucall_try(o, &a, CALL, NULL), MV_NOMEM);
	mem_fail_at(0, 0);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	ucall_send(o, &b, CALL);
	uowner_free(o);
	check_failed(&b, MV_STOPPING);
	ck_assert_uint_eq(a.done, 0);
}
END_TEST

/* A call that is said to have failed has not been sent: it may be one to make once. */
START_TEST(no_memory_sends_nothing)
{
	struct uowner *o = owner_ready();
	struct ucall calls[64] = {{.done = 0}};
	enum mv_err err = MV_OK;
	unsigned n = 0;

	/* The table of what is in flight has to grow at some point. */
	while (err == MV_OK && n < 64) {
		fake_link_forget_all();
		mem_fail_at(1, 0);
		err = ucall_try(o, &calls[n++], CALL, NULL);
		mem_fail_at(0, 0);
	}
	ck_assert_int_eq(err, MV_NOMEM);
	uowner_heard_nothing();
	ck_assert_uint_eq(upstream_in_flight(o->u), n - 1);
	ucall_send(o, &calls[n - 1], CALL);
	(void)uowner_heard_request("tools/call");
	/* Nor is it in any table if it cannot be queued. */
	upstream_cancel(&calls[n - 1].req, NULL);
	fake_link_refuse(o->u->link, MV_BUSY);
	ck_assert_int_eq(ucall_try(o, &calls[n - 1], CALL, NULL), MV_BUSY);
	uowner_answer(o, o->u->last_id, "{}");
	ck_assert_uint_eq(calls[n - 1].done, 0);
	fake_link_refuse(o->u->link, MV_OK);
	uowner_free(o);
}
END_TEST

/* What one call needed to be composed is not kept. */
START_TEST(composing_leaves_no_memory)
{
	static const char head[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"t\",\"_meta\":{\"x\":\"";
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};
	size_t n = 1024 * 1024;
	char *text = mem_xalloc(n + 1);

	memset(text, 'x', n);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + n - 4, "\"}}}", 5);
	uowner_be_modern(o, "{}");
	ucall_send(o, &c, text);
	ck_assert_uint_lt(o->u->scratch.cap, n / 8);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_uint_eq(c.done, 1);
	mem_free(text);
	uowner_free(o);
}
END_TEST

START_TEST(full_queue_fails_one_call)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	fake_link_refuse(o->u->link, MV_BUSY);
	ck_assert_int_eq(ucall_try(o, &a, CALL, NULL), MV_BUSY);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	fake_link_refuse(o->u->link, MV_OK);
	ucall_send(o, &b, CALL);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_uint_eq(b.done, 1);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_call");
	TCase *tc = tcase_create("call");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, answers_find_their_calls);
	tcase_add_loop_test(tc, answers_of_an_era, 0, 12);
	tcase_add_test(tc, error_while_a_session_is_renewed);
	tcase_add_loop_test(tc, strange_answers_are_dropped, 0, 9);
	tcase_add_test(tc, late_and_double_answers_are_dropped);
	tcase_add_test(tc, a_call_may_follow_in_the_end_of_another);
	tcase_add_test(tc, progress_finds_its_call);
	tcase_add_test(tc, silence_has_a_limit);
	tcase_add_test(tc, progress_gives_time_but_not_for_ever);
	tcase_add_test(tc, time_of_a_held_call);
	tcase_add_test(tc, time_of_our_own);
	tcase_add_test(tc, timed_out_calls_may_start_others);
	tcase_add_loop_test(tc, number_is_bounded, 0, 2);
	tcase_add_test(tc, held_bytes_are_bounded);
	tcase_add_test(tc, no_memory_fails_one_call);
	tcase_add_test(tc, no_memory_sends_nothing);
	tcase_add_test(tc, composing_leaves_no_memory);
	tcase_add_test(tc, full_queue_fails_one_call);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
