/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Requests of ours to a legacy client, and its answers. */
#include "asks_rig.h"

/* ---- there and back ---- */

START_TEST(asked_and_answered)
{
	static const struct {
		const char *said, *passed;
	} rows[] = {
	    {"\"result\":{\"a\": 1.0}", "\"q\" result {\"a\": 1.0}"},
	    {"\"error\":{\"code\":-1,\"message\":\"User said \\u006eo\",\"data\":[]}",
		"\"q\" error {\"code\":-1,\"message\":\"User said "
		"\\u006eo\",\"data\":[]}"},
	};
	char line[256];

	question("\"q\"");
	peer_expect(p, ASKED("1"));
	(void)snprintf(
	    line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", rows[_i].said);
	peer_say(p, line);
	ck_assert_str_eq(fake_upstream_answer(u), rows[_i].passed);
	/* Once. */
	peer_say(p, line);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	question("8");
	peer_expect(p, ASKED("2"));
	peer_say(p, RESULT("2"));
}
END_TEST

/* Ids that were never given out, and answers that are none. */
#define BOTH "\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}"
static const char *const no_answers[] = {RESULT("\"1\""), RESULT("0"), RESULT("-1"),
    RESULT("2"), RESULT("18446744073709551617"), RESULT("1.5"), RESULT("null"),
    "{\"jsonrpc\":\"2.0\",\"id\":1," BOTH "}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", "{\"id\":1,\"result\":{}}"};
#define N_NO_ANSWERS ((int)(sizeof(no_answers) / sizeof(no_answers[0])))

START_TEST(answers_that_are_none)
{
	question("7");
	peer_expect(p, ASKED("1"));
	peer_say(p, no_answers[_i]);
	p->taken = p->n; /* what is no message may be told so */
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	peer_say(p, RESULT("1"));
	ck_assert_str_eq(fake_upstream_answer(u), "7 result {\"action\":\"accept\"}");
}
END_TEST

START_TEST(each_answer_is_of_its_question)
{
	question("7");
	fake_upstream_ask(u, NULL, METHOD_ROOTS, "\"id\":8");
	fake_upstream_ask(u, NULL, METHOD_SAMPLE, "\"id\":9,\"params\":{}");
	peer_expect(p, ASKED("1"));
	peer_expect(p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}");
	peer_expect(p, REQUEST("3", "sampling/createMessage", "{}"));
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"roots\":[]}}");
	ck_assert_str_eq(fake_upstream_answer(u), "8 result {\"roots\":[]}");
	peer_say(p, RESULT("3"));
	ck_assert_str_eq(fake_upstream_answer(u), "9 result {\"action\":\"accept\"}");
	ck_assert_uint_eq(fake_upstream_n_questions(u), 1);
	peer_say(p, RESULT("1"));
	ck_assert_uint_eq(fake_upstream_n_questions(u), 0);
}
END_TEST

static const struct {
	const char *caps;
	enum method method;
	const char *params;
} unable[] = {
    {"{}", METHOD_ELICIT, FORM},
    {"{\"elicitation\":{\"url\":{}}}", METHOD_ELICIT, FORM},
    {"{\"elicitation\":{}}", METHOD_ELICIT, "{\"mode\":\"url\"}"},
    {"{\"elicitation\":{}}", METHOD_SAMPLE, "{}"},
    {"{\"sampling\":{}}", METHOD_SAMPLE, "{\"tools\":[]}"},
    {"{\"sampling\":{}}", METHOD_ROOTS, "{}"},
};
#define N_UNABLE ((int)(sizeof(unable) / sizeof(unable[0])))

START_TEST(cannot_be_asked)
{
	char text[256];

	start();
	initialize("2025-11-25", unable[_i].caps);
	(void)snprintf(text, sizeof(text), "\"id\":7,\"params\":%s", unable[_i].params);
	fake_upstream_ask(u, NULL, unable[_i].method, text);
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), "7 refused -32601 "));
	teardown();
}
END_TEST

/* It is asked nothing before it has the answer to its initialize. */
START_TEST(not_before_it_is_initialized)
{
	start();
	initialize("2025-06-18", "{\"elicitation\":{}}");
	question("7");
	peer_ask(p, "1", "ping", NULL);
	peer_expect_result(p, "1", "{}");
	peer_expect_silence(p);
	switch (_i) {
	case 0:
		peer_say(p, INITIALIZED);
		peer_expect(p, ASKED("1"));
		break;
	case 1:
		/* Who forgets to say so says it by what it does. */
		peer_ask(p, "2", "tools/call", A);
		peer_expect(p, ASKED("1"));
		break;
	default:
		fake_loop_advance(f->loop, STREAM_MS);
		ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	}
	if (_i < 2)
		peer_say(p, RESULT("1"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	if (_i == 1) {
		fake_upstream_result(u, 0, "{}");
		peer_expect_result(p, "2", "{}");
	}
	teardown();
}
END_TEST

/* ---- progress ---- */

#define WITH_TOKEN(t) "{\"x\":1,\"_meta\":{\"progressToken\":" t ",\"y\":2}}"
#define PROGRESS(t)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"        \
	"\"progressToken\":" t ",\"progress\":1}}"

START_TEST(progress)
{
	fake_upstream_ask(
	    u, NULL, METHOD_ELICIT, "\"id\":7,\"params\":" WITH_TOKEN("\"t\""));
	peer_expect(p, REQUEST("1", "elicitation/create", WITH_TOKEN("1")));
	peer_say(p, PROGRESS("1"));
	ck_assert_uint_eq(fake_upstream_n_question_progress(u), 1);
	peer_say(p, PROGRESS("\"t\""));
	peer_say(p, PROGRESS("2"));
	peer_say(p, PROGRESS("\"1\""));
	ck_assert_uint_eq(fake_upstream_n_question_progress(u), 1);
	peer_say(p, RESULT("1"));
	peer_say(p, PROGRESS("1"));
	ck_assert_uint_eq(fake_upstream_n_question_progress(u), 1);
}
END_TEST

/* ---- ends without an answer ---- */

START_TEST(withdrawn)
{
	question("7");
	peer_expect(p, ASKED("1"));
	fake_upstream_withdraw(u);
	peer_expect(p, TAKEN_BACK("1"));
	peer_say(p, RESULT("1"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
}
END_TEST

START_TEST(no_answer_in_time)
{
	uint32_t ms = upstream_conf_of(u)->question_ms;

	question("7");
	peer_expect(p, ASKED("1"));
	fake_loop_advance(f->loop, ms / 2);
	question("8");
	peer_expect(p, ASKED("2"));
	fake_loop_advance(f->loop, ms / 2 - 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	fake_loop_advance(f->loop, 1);
	ck_assert_str_eq(fake_upstream_answer(u),
	    "7 refused -32603 The client gave no answer in time; a retry may help");
	peer_expect(p, TAKEN_BACK("1"));
	peer_say(p, RESULT("2"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
}
END_TEST

START_TEST(it_leaves)
{
	question("7");
	peer_expect(p, ASKED("1"));
	p->refuses = MV_CLOSED;
	question("8");
	client_free(p->c);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
	ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u), " refused -32603 "));
	p->c = client_new(f->loop, f->g, 0, NULL, NULL);
}
END_TEST

START_TEST(too_many)
{
	char id[32];

	for (unsigned i = 0; i < CAP_CLIENT_ASKS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		question(id);
		(void)peer_read(p);
	}
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	question("\"more\"");
	ck_assert_str_eq(fake_upstream_answer(u),
	    "\"more\" refused -32603 The client has too many "
	    "open questions; a retry may help");
	ck_assert_uint_eq(client_session_of(p->c).n_asks, CAP_CLIENT_ASKS);
	fake_upstream_withdraw(u);
	p->taken = p->n;
	ck_assert_uint_eq(client_session_of(p->c).n_asks, 0);
}
END_TEST

/* ---- URLs ---- */

#define GO_TO(id)                                                                        \
	"{\"mode\":\"url\",\"url\":\"https://x\",\"elicitationId\":" id                  \
	",\"message\":\"\"}"
#define IS_DONE(id)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/"                   \
	"complete\",\"params\":"                                                         \
	"{\"elicitationId\":" id "}}"

START_TEST(word_of_a_url)
{
	fake_upstream_ask(u, NULL, METHOD_ELICIT, "\"id\":7,\"params\":" GO_TO("\"e\""));
	peer_expect(p, REQUEST("1", "elicitation/create", GO_TO("\"e\"")));
	peer_say(p, RESULT("1"));
	fake_upstream_elicited(u, "{\"elicitationId\":\"\\u0065\"}");
	peer_expect(p, IS_DONE("\"\\u0065\""));
}
END_TEST

/* Clients of before know no such word. */
START_TEST(no_word_to_older_ones)
{
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);

	initialize("2025-06-18", ALL);
	peer_say(p, INITIALIZED);
	fake_upstream_elicited(u, "{\"elicitationId\":\"e\"}");
	peer_expect_silence(p);
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 1);
}
END_TEST

START_TEST(roots_have_changed)
{
	peer_say(
	    p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}");
	ck_assert_uint_eq(fake_upstream_roots_changes(u), 1);
}
END_TEST

/* ---- without memory ---- */

START_TEST(without_memory)
{
	for (unsigned long nth = 1; nth <= 8; nth++) {
		setup();
		mem_fail_at(nth, _i);
		question("7");
		mem_fail_at(0, 0);
		/* Asked, or refused; never both, and never nothing. */
		ck_assert_uint_eq(p->n - p->taken + fake_upstream_n_answers(u), 1);
		p->taken = p->n;
		mem_fail_at(nth, _i);
		fake_loop_advance(f->loop, upstream_conf_of(u)->question_ms);
		mem_fail_at(0, 0);
		ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
		p->taken = p->n;
		teardown();
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_asks");
	TCase *tc = tcase_create("asks");
	TCase *own = tcase_create("own");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_tcase(s, own);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, asked_and_answered, 0, 2);
	tcase_add_loop_test(tc, answers_that_are_none, 0, N_NO_ANSWERS);
	tcase_add_test(tc, each_answer_is_of_its_question);
	tcase_add_test(tc, progress);
	tcase_add_test(tc, withdrawn);
	tcase_add_test(tc, no_answer_in_time);
	tcase_add_test(tc, it_leaves);
	tcase_add_test(tc, too_many);
	tcase_add_test(tc, word_of_a_url);
	tcase_add_test(tc, no_word_to_older_ones);
	tcase_add_test(tc, roots_have_changed);
	tcase_add_loop_test(own, cannot_be_asked, 0, N_UNABLE);
	tcase_add_loop_test(own, not_before_it_is_initialized, 0, 3);
	tcase_add_loop_test(own, without_memory, 0, 2);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
