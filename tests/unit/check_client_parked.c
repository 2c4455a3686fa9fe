/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* A modern client's call that its legacy upstream has questions about. */
#include "parked_rig.h"

/* ---- there and back ---- */

START_TEST(asked_and_answered)
{
	park("1");
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
	ck_assert(!fake_upstream_last(u)->cancelled);
	come_back("2", "{\"input-1\":" ACCEPT "}");
	ck_assert_str_eq(fake_upstream_answer(u), "7 result " ACCEPT);
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
	ck_assert_uint_eq(client_in_flight(p->c), 1);
	fake_upstream_result(u, 0, "{\"content\":[]}");
	peer_expect_result(p, "2", "{\"resultType\":\"complete\",\"content\":[]}");
	/* Once. */
	come_back("3", "{\"input-1\":" ACCEPT "}");
	expect_call_again("3");
}
END_TEST

START_TEST(several_in_one_go)
{
	call("\"x\"");
	fake_upstream_ask(u, NULL, METHOD_ELICIT,
	    "\"id\":\"e\",\"params\":{\"mode\":\"url\",\"url\":\"https:\\/\\/x\","
	    "\"elicitationId\":\"i\",\"message\":\"\\u0041\"}");
	fake_loop_advance(f->loop, 19);
	fake_upstream_ask(u, NULL, METHOD_SAMPLE,
	    "\"id\":\"s\",\"params\":{\"maxTokens\":1e1,\"messages\":[]}");
	fake_upstream_ask(u, fake_upstream_last(u)->r, METHOD_ROOTS, "\"id\":0");
	fake_loop_advance(f->loop, 1);
	expect_asked("\"x\"",
	    "\"input-1\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\","
	    "\"url\":\"https:\\/\\/x\",\"message\":\"\\u0041\"}},"
	    "\"input-2\":{\"method\":\"sampling/createMessage\",\"params\":"
	    "{\"maxTokens\":1e1,\"messages\":[]}},"
	    "\"input-3\":{\"method\":\"roots/list\"}");
	come_back("2", "{\"input-3\":{\"roots\":[]},\"input-2\":{\"role\":\"a\"},"
		       "\"input-1\":{\"action\":\"decline\"}}");
	ck_assert_uint_eq(fake_upstream_n_answers(u), 3);
	ck_assert_uint_eq(fake_upstream_n_questions(u), 0);
	/* And on it goes. */
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("8"));
	fake_loop_advance(f->loop, 20);
	expect_asked("2", "\"input-4\":" ASKED_FORM);
	come_back("3", "{\"input-4\":" ACCEPT "}");
	ck_assert_str_eq(fake_upstream_answer(u), "8 result " ACCEPT);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "3", "{\"resultType\":\"complete\"}");
}
END_TEST

/* What is no answer leaves the question open; what was not asked is nobody's. */
static const char *const no_answers[] = {"{}", "[]", "\"x\"", "7", "null",
    "{\"input-1\":\"accept\"}", "{\"input-1\":null}", "{\"input-1\":[{}]}",
    "{\"input-2\":" ACCEPT "}", "{\"input-01\":" ACCEPT "}",
    "{\"Input-1\":" ACCEPT ",\"\":{}}"};
#define N_NO_ANSWERS ((int)(sizeof(no_answers) / sizeof(no_answers[0])))

START_TEST(asked_again)
{
	char old[sizeof(handle)];

	park("1");
	memcpy(old, handle, sizeof(old));
	come_back("2", no_answers[_i]);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	fake_loop_settle(f->loop);
	fake_loop_advance(f->loop, 1);
	expect_asked("2", "\"input-1\":" ASKED_FORM);
	ck_assert_str_ne(handle, old);
	ask_as("3", ALL, "tools/call", with_state(old, "{\"input-1\":" ACCEPT "}"));
	expect_call_again("3");
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	come_back("4", "{\"input-1\":" ACCEPT "}");
	ck_assert_str_eq(fake_upstream_answer(u), "7 result " ACCEPT);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "4", "{\"resultType\":\"complete\"}");
}
END_TEST

START_TEST(some_answers)
{
	call("1");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("8"));
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("9"));
	fake_loop_advance(f->loop, 20);
	expect_asked("1", "\"input-1\":" ASKED_FORM ",\"input-2\":" ASKED_FORM
			  ",\"input-3\":" ASKED_FORM);
	come_back("2", "{\"input-2\":" ACCEPT ",\"more\":{}}");
	ck_assert_str_eq(fake_upstream_answer(u), "8 result " ACCEPT);
	fake_loop_advance(f->loop, 1);
	expect_asked("2", "\"input-1\":" ASKED_FORM ",\"input-3\":" ASKED_FORM);
	come_back("3", "{\"input-1\":{},\"input-2\":{},\"input-3\":{}}");
	ck_assert_uint_eq(fake_upstream_n_answers(u), 3);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "3", "{\"resultType\":\"complete\"}");
}
END_TEST

/* The wait is the new request's from then on. */
START_TEST(retry_takes_over)
{
	park("1");
	fake_upstream_progress(u, 0, ",\"progress\":1");
	(void)snprintf(members, sizeof(members),
	    "{\"_meta\":{" MODERN_VERSION
	    ",\"io.modelcontextprotocol/clientCapabilities\":" ALL
	    ",\"progressToken\":\"t\"}," A
	    ",\"arguments\":{\"a\":1},\"requestState\":\"%s\","
	    "\"inputResponses\":{\"input-1\":{}}}",
	    handle);
	peer_ask(p, "2", "tools/call", members);
	fake_upstream_progress(u, 0, ",\"progress\":2");
	peer_expect(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
	    "{\"progressToken\":\"t\",\"progress\":2}}");
	/* It goes by the new id. */
	peer_say(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	    "{\"requestId\":1}}");
	ck_assert(!fake_upstream_last(u)->cancelled);
	peer_say(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	    "{\"requestId\":2}}");
	ck_assert(fake_upstream_last(u)->cancelled);
	peer_expect_silence(p);
}
END_TEST

/* ---- ends ---- */

static void
end_of_it(int how)
{
	switch (how) {
	case 0:
		fake_upstream_result(u, 0, "{\"x\":1.0}");
		break;
	case 1:
		fake_upstream_error(u, 0, "{\"code\":-7,\"message\":\"m\"}");
		break;
	default:
		fake_upstream_fail(u, 0, MV_DIED, NULL);
	}
}

static void
expect_end(const char *id, int how)
{
	if (how == 0)
		peer_expect_result(p, id, "{\"resultType\":\"complete\",\"x\":1.0}");
	else
		(void)peer_read(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}

START_TEST(it_ends_while_nobody_waits)
{
	park("1");
	fake_upstream_withdraw(u);
	end_of_it(_i);
	peer_expect_silence(p);
	come_back("2", "{\"input-1\":{}}");
	expect_end("2", _i);
	come_back("3", "{}");
	expect_call_again("3");
	/* The end of one that nobody asks for is forgotten. */
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
}
END_TEST

START_TEST(an_end_that_nobody_asks_for)
{
	park("1");
	fake_upstream_withdraw(u);
	end_of_it(_i);
	fake_loop_advance(f->loop, upstream_conf_of(u)->question_ms);
	come_back("2", "{}");
	expect_call_again("2");
}
END_TEST

/* It ends with its question still open. */
START_TEST(it_ends_in_the_moment)
{
	call("1");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	end_of_it(_i);
	expect_end("1", _i);
	ck_assert_uint_eq(fake_upstream_n_questions(u), 0);
	fake_loop_advance(f->loop, 100);
}
END_TEST

START_TEST(withdrawn)
{
	call("1");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_upstream_withdraw(u);
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_loop_advance(f->loop, 20);
	expect_asked("1", "\"input-2\":" ASKED_FORM);
	fake_upstream_withdraw(u);
	/* There is nothing to ask again: its client waits for the end. */
	come_back("2", "{\"input-2\":{}}");
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "2", "{\"resultType\":\"complete\"}");
}
END_TEST

START_TEST(asked_more_while_nobody_waits)
{
	park("1");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("8"));
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
	come_back("2", "{\"input-1\":{}}");
	fake_loop_advance(f->loop, 1);
	expect_asked("2", "\"input-2\":" ASKED_FORM);
	come_back("3", "{\"input-2\":{}}");
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "3", "{\"resultType\":\"complete\"}");
}
END_TEST

START_TEST(cancelled)
{
	call("1");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	if (_i == 1) {
		fake_loop_advance(f->loop, 20);
		expect_asked("1", "\"input-1\":" ASKED_FORM);
	}
	peer_say(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	    "{\"requestId\":1}}");
	/* A request that has its answer cannot be cancelled. */
	ck_assert_int_eq(fake_upstream_last(u)->cancelled, _i == 0);
	ck_assert_uint_eq(fake_upstream_n_questions(u), (unsigned)_i);
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
}
END_TEST

START_TEST(stop)
{
	park("1");
	if (_i == 1)
		end_of_it(0);
	client_finish(p->c);
	ck_assert_uint_eq(fake_upstream_n_questions(u), 0);
	peer_expect_silence(p);
}
END_TEST

/* ---- what its client can be asked ---- */

static const struct {
	const char *caps, *needed;
	enum method method;
	const char *params;
} unable[] = {
    {"{}", "{\"elicitation\":{\"form\":{}}}", METHOD_ELICIT, FORM},
    {"{\"elicitation\":{\"url\":{}}}", "{\"elicitation\":{\"form\":{}}}", METHOD_ELICIT,
	FORM},
    {"{\"elicitation\":{}}", "{\"elicitation\":{\"url\":{}}}", METHOD_ELICIT,
	"{\"mode\":\"url\"}"},
    {"{\"elicitation\":{}}", "{\"sampling\":{}}", METHOD_SAMPLE, "{}"},
    {"{\"sampling\":{}}", "{\"sampling\":{\"tools\":{}}}", METHOD_SAMPLE,
	"{\"tools\":[]}"},
    {"{\"sampling\":{}}", "{\"roots\":{}}", METHOD_ROOTS, "{}"},
};
#define N_UNABLE ((int)(sizeof(unable) / sizeof(unable[0])))

START_TEST(cannot_be_asked)
{
	const char *line;
	char want[256], question[256];

	ask_as("1", unable[_i].caps, "tools/call", A);
	(void)snprintf(
	    question, sizeof(question), "\"id\":7,\"params\":%s", unable[_i].params);
	fake_upstream_ask(u, NULL, unable[_i].method, question);
	line = peer_expect_code(p, "1", -32021);
	(void)snprintf(want, sizeof(want), "\"data\":{\"requiredCapabilities\":%s}",
	    unable[_i].needed);
	ck_assert_msg(strstr(line, want) != NULL, "%s", line);
	ck_assert(fake_upstream_last(u)->cancelled);
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), "7 refused -32603 "));
}
END_TEST

/* Its result can be no input_required. */
START_TEST(not_for_a_completion)
{
	ask_as("1", ALL, "completion/complete",
	    "\"ref\":{\"type\":\"ref/prompt\"," A "},\"argument\":{}");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	ck_assert_str_eq(fake_upstream_answer(u),
	    "7 refused -32603 Its client cannot be asked for "
	    "this; a retry will not help");
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "1", "{\"resultType\":\"complete\"}");
}
END_TEST

/* One that is asked already may do without; so may one that says less the second time. */
START_TEST(cannot_be_asked_any_more)
{
	park("1");
	fake_upstream_ask(u, NULL, METHOD_SAMPLE, "\"id\":8,\"params\":{\"tools\":[]}");
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), "8 refused -32603 "));
	ck_assert(!fake_upstream_last(u)->cancelled);
	ask_as("2", "{\"sampling\":{}}", "tools/call", with_state(handle, "{}"));
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), "7 refused -32603 "));
	fake_loop_advance(f->loop, 100);
	peer_expect_silence(p);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "2", "{\"resultType\":\"complete\"}");
}
END_TEST

/* Of several calls of the one client the oldest that can be asked is. */
START_TEST(no_call_is_named)
{
	struct fleet_conf *c = fleet_conf_new(1);

	teardown();
	c->one_client = c->can_ask = true;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 1000);
	u = f->u[0];
	p = peer_new(f);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("6"));
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), "6 refused -32603 "));
	ask_as("1", "{}", "tools/call", A);
	call("2");
	call("3");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_loop_advance(f->loop, 20);
	expect_asked("2", "\"input-1\":" ASKED_FORM);
	peer_expect_silence(p);
}
END_TEST

/* ---- many ---- */

START_TEST(too_many)
{
	char id[32], question[64];

	for (unsigned i = 0; i <= CAP_PARKED_CALLS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		(void)snprintf(question, sizeof(question), "\"id\":%u,\"params\":{}", i);
		call(id);
		fake_upstream_ask(u, fake_upstream_last(u)->r, METHOD_ELICIT, question);
		fake_loop_advance(f->loop, 20);
		if (i < CAP_PARKED_CALLS)
			(void)peer_read(p);
	}
	(void)peer_expect_code(p, id, -32603);
	ck_assert(fake_upstream_last(u)->cancelled);
	ck_assert_uint_eq(fake_upstream_n_questions(u), CAP_PARKED_CALLS);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

/* Those that are parked have no id, while the others get a table of theirs. */
START_TEST(beside_many_others)
{
	char id[32], kept[2][sizeof(handle)];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(id, sizeof(id), "\"p%u\"", i);
		call(id);
		fake_upstream_ask(
		    u, fake_upstream_last(u)->r, METHOD_ELICIT, ASK_FORM("7"));
		fake_loop_advance(f->loop, 20);
		expect_asked(id, "\"input-1\":" ASKED_FORM);
		memcpy(kept[i], handle, sizeof(handle));
	}
	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		call(id);
	}
	for (unsigned i = 0; i < 2; i++) {
		memcpy(handle, kept[i], sizeof(handle));
		(void)snprintf(id, sizeof(id), "\"r%u\"", i);
		come_back(id, "{\"input-1\":{}}");
		/* Its id is in use. */
		call(id);
		(void)peer_expect_code(p, id, -32600);
	}
	for (unsigned i = 0; i < 22; i++) {
		fake_upstream_result(u, i, "{}");
		(void)peer_read(p);
	}
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	call("\"r0\"");
	fake_upstream_result(u, 22, "{}");
	(void)peer_read(p);
}
END_TEST

/* ---- without memory ---- */

static unsigned
n_replies(const char *id)
{
	char head[64];
	unsigned n = 0;

	(void)snprintf(head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":%s,", id);
	for (size_t i = 0; i < p->n; i++)
		n += strncmp(p->lines[i], head, strlen(head)) == 0;
	p->taken = p->n;
	return n;
}

START_TEST(without_memory)
{
	for (unsigned long nth = 1; nth <= 24; nth++) {
		setup();
		mem_fail_at(_i == 0 ? nth : 0, 0);
		call("1");
		if (fake_upstream_n_sent(u) > 0)
			fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
		fake_loop_advance(f->loop, 20);
		mem_fail_at(0, 0);
		if (fake_upstream_n_questions(u) > 0 && p->n > 0 &&
		    strstr(p->lines[0], "mv1.") != NULL) {
			expect_asked("1", "\"input-1\":" ASKED_FORM);
			mem_fail_at(_i == 1 ? nth : 0, 0);
			come_back("2", _i == 1 ? "{\"input-1\":{}}" : "{}");
			fake_loop_advance(f->loop, 20);
			mem_fail_at(0, 0);
		}
		if (fake_upstream_n_sent(u) > 0 && fake_upstream_last(u)->r != NULL)
			fake_upstream_result(u, 0, "{}");
		ck_assert_uint_eq(n_replies("1"), 1);
		ck_assert_uint_le(n_replies("2"), 1);
		ck_assert_uint_eq(client_in_flight(p->c), 0);
		teardown();
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_parked");
	TCase *tc = tcase_create("parked");
	TCase *mem = tcase_create("memory");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_tcase(s, mem);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, asked_and_answered);
	tcase_add_test(tc, several_in_one_go);
	tcase_add_loop_test(tc, asked_again, 0, N_NO_ANSWERS);
	tcase_add_test(tc, some_answers);
	tcase_add_test(tc, retry_takes_over);
	tcase_add_loop_test(tc, it_ends_while_nobody_waits, 0, 3);
	tcase_add_loop_test(tc, an_end_that_nobody_asks_for, 0, 3);
	tcase_add_loop_test(tc, it_ends_in_the_moment, 0, 3);
	tcase_add_test(tc, withdrawn);
	tcase_add_test(tc, asked_more_while_nobody_waits);
	tcase_add_loop_test(tc, cancelled, 0, 2);
	tcase_add_loop_test(tc, stop, 0, 2);
	tcase_add_loop_test(tc, cannot_be_asked, 0, N_UNABLE);
	tcase_add_test(tc, not_for_a_completion);
	tcase_add_test(tc, cannot_be_asked_any_more);
	tcase_add_test(tc, no_call_is_named);
	tcase_add_test(tc, too_many);
	tcase_add_test(tc, beside_many_others);
	tcase_add_loop_test(mem, without_memory, 0, 2);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
