/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * Sessions over HTTP: how they begin, are lost and renewed, and end.
 */
#include "mcpvisor/http_link.h"

#include "http_link_rig.h"

#define LOST(want_)                                                                      \
	{                                                                                \
		.want = want_, .status = 404, .type = JSON, .body = ERROR("null")        \
	}
#define ANSWER(want_, id)                                                                \
	{                                                                                \
		.want = want_, .status = 200, .type = JSON, .body = RESULT(id)           \
	}

START_TEST(test_session)
{
	SCRIPT(HELLO,
	    ANSWER("mcp-session-id: s1\r\n|mcp-protocol-version: 2025-11-25", "2"),
	    {.want = "mcp-session-id: s1\r\n", .status = 202},
	    /* a later answer changes nothing */
	    {.want = "mcp-session-id: s1\r\n",
		.status = 200,
		.type = JSON,
		.body = RESULT("3"),
		.extra = "Mcp-Session-Id: other\r\n"},
	    ANSWER("mcp-session-id: s1\r\n", "4"), ANSWER("!mcp-session-id", "5"));
	ck_assert(!http_link_has_session(k));
	hello();
	ck_assert(http_link_has_session(k));
	http_link_set_revision(k, "2025-11-25", true);
	ask(2);
	await("2:r2 ");
	note();
	await("taken ");
	ask(3);
	await("3:r3 ");
	ask(4);
	await("4:r4 ");
	http_link_forget_session(k);
	ck_assert(!http_link_has_session(k));
	ask(5);
	await("5:r5 ");
}
END_TEST

/* On the answer's head, however the answer comes. */
START_TEST(test_session_of_stream)
{
	SCRIPT({.want = "\"initialize\"",
		   .status = 200,
		   .type = EVENTS,
		   .body = EV(RESULT("1")),
		   .extra = "mcp-session-id: s1\r\n"},
	    ANSWER("mcp-session-id: s1\r\n", "2"));
	hello();
	ask(2);
	await("2:r2 ");
}
END_TEST

/* Ids are visible ASCII: what is none is not sent back. */
START_TEST(test_session_of_odd_bytes)
{
	static const char *const ids[] = {"a b", "a\x01", "a\xc3\xa4"};
	struct step all[] = {HELLO, ANSWER("!mcp-session-id", "2")};
	char extra[64];

	(void)snprintf(extra, sizeof(extra), "Mcp-Session-Id: %s\r\n", ids[_i]);
	all[0].extra = extra;
	steps = all;
	n_steps = 2;
	at_step = 0;
	hello();
	ck_assert(!http_link_has_session(k));
	ask(2);
	await("2:r2 ");
}
END_TEST

START_TEST(test_no_session)
{
	SCRIPT(ANSWER("initialize", "1"), LOST("!mcp-session-id|\"id\":2"));
	hello();
	ck_assert(!http_link_has_session(k));
	/* Without a session a 404 is an answer like any other. */
	ask(2);
	await("2:e 2:failed(http_status,404) ");
	await_nothing();
}
END_TEST

/* Requests and notes that are refused, and what is sent meanwhile, wait for the new
 * session; one that is cancelled does not. */
START_TEST(test_renew)
{
	SCRIPT(
	    HELLO, LOST("s1\r\n|\"id\":2"), LOST("s1\r\n|\"id\":3"), LOST("s1\r\n|NOTE"));
	n_steps = 3;
	hello();
	ask(2);
	ask(3);
	await("lost ");
	await_step(3);
	ck_assert(!http_link_has_session(k));
	note();
	ask(4);
	ck_assert(http_link_cancel(k, 3));
	await_nothing();
	ck_assert_uint_gt(http_link_out_pending(k), 0);
	SCRIPT(HELLO_AGAIN, {.want = "s2\r\n|initialized", .status = 202});
	hello();
	ck_assert_int_eq(send_message(0, false, NULL, "\"initialized\""), MV_OK);
	await("taken ");
	await_nothing();
	SCRIPT({.want = "s2\r\n", .status = 202}, {.want = "s2\r\n", .status = 202},
	    {.want = "s2\r\n", .status = 202});
	http_link_renew(k);
	while (at_step < 3 || http_link_out_pending(k) > 0)
		loop_run(l);
	buf_reset(&seen);
	await_nothing();
}
END_TEST

/* An answer to a renewed request reaches it. */
START_TEST(test_renewed_answer)
{
	SCRIPT(
	    HELLO, LOST("s1\r\n|\"id\":2"), HELLO_AGAIN, ANSWER("s2\r\n|\"id\":2", "2"));
	hello();
	ask(2);
	await("lost ");
	hello();
	http_link_renew(k);
	await("2:r2 ");
	ck_assert_uint_eq(http_link_out_pending(k), 0);
	await_nothing();
}
END_TEST

/* A server that answers 404 to one request in every session is not asked a third time. */
START_TEST(test_renew_once)
{
	SCRIPT(HELLO, LOST("s1\r\n|\"id\":2"), HELLO_AGAIN, LOST("s2\r\n|\"id\":2"));
	hello();
	ask(2);
	await("lost ");
	hello();
	http_link_renew(k);
	await("2:e 2:failed(http_status,404) ");
	ck_assert(http_link_has_session(k));
	await_nothing();
}
END_TEST

#define SAYS(words)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":"       \
	"\"" words "\"}}"
#define REFUSES(want_, type_, body_)                                                     \
	{                                                                                \
		.want = want_, .status = 400, .type = type_, .body = body_               \
	}

/* Servers that say with 400 what 404 is for. */
START_TEST(test_lost_by_400)
{
	static const struct step refusals[] = {
	    REFUSES("s1\r\n", JSON, SAYS("Bad Request: No valid session ID provided")),
	    REFUSES("s1\r\n", JSON, SAYS("Bad Request: Server not initialized")),
	    REFUSES("s1\r\n", "text/plain", "Invalid or missing Session ID"),
	};
	struct step all[] = {HELLO, refusals[_i], HELLO_AGAIN, ANSWER("s2\r\n", "2"),
	    REFUSES("s2\r\n", "text/plain", "no session")};

	steps = all;
	n_steps = 5;
	at_step = 0;
	hello();
	ask(2);
	await("lost ");
	hello();
	http_link_renew(k);
	await("2:r2 ");
	/* So soon again, it is a habit. */
	ask(3);
	await("3:failed(http_status,400) ");
	ck_assert(http_link_has_session(k));
	await_nothing();
}
END_TEST

START_TEST(test_other_400)
{
	SCRIPT(HELLO, REFUSES("s1\r\n", JSON, SAYS("Bad Request")),
	    REFUSES("s1\r\n", "text/plain", "what is that"));
	hello();
	ask(2);
	await("2:e 2:failed(http_status,400) ");
	ask(3);
	await("3:failed(http_status,400) ");
	ck_assert(http_link_has_session(k));
	await_nothing();
}
END_TEST

/* What is of no session has nothing of one, and can lose none. */
START_TEST(test_apart)
{
	const struct http_message apart = {.id = 2, .is_apart = true};
	char text[] = ASK;
	struct iovec iov = {text, sizeof(text) - 1};

	SCRIPT(HELLO, LOST("!mcp-session-id|!mcp-protocol-version"),
	    ANSWER("s1\r\n|mcp-protocol-version: 2025-11-25", "3"));
	hello();
	http_link_set_revision(k, "2025-11-25", true);
	ck_assert_int_eq(http_link_send(k, &apart, &iov, 1), MV_OK);
	await("2:e 2:failed(http_status,404) ");
	ck_assert(http_link_has_session(k));
	ask(3);
	await("3:r3 ");
}
END_TEST

/* Refused for the session before, while the new one is in use already. */
START_TEST(test_late_refusal)
{
	struct conn *slow;
	static const struct step late = LOST("");

	SCRIPT(HELLO, {.want = "s1\r\n|\"id\":2", .how = NEVER}, LOST("s1\r\n|\"id\":3"),
	    HELLO_AGAIN, ANSWER("s2\r\n|\"id\":3", "3"), ANSWER("s2\r\n|\"id\":2", "2"));
	hello();
	ask(2);
	await_step(2);
	slow = last;
	ask(3);
	await("lost ");
	hello();
	http_link_renew(k);
	await("3:r3 ");
	conn_answer(slow, &late);
	await("2:r2 ");
	await_nothing();
}
END_TEST

/* The same, and the owner has forgotten the session on its own. */
START_TEST(test_refusal_after_forget)
{
	static const struct step late = LOST("");

	SCRIPT(HELLO, {.want = "s1\r\n|\"id\":2", .how = NEVER});
	hello();
	ask(2);
	await_step(2);
	http_link_forget_session(k);
	conn_answer(last, &late);
	await("2:failed(http_status,404) ");
	await_nothing();
}
END_TEST

START_TEST(test_lost_ends_link)
{
	SCRIPT(HELLO, LOST("s1\r\n|\"id\":2"));
	free_at = 2;
	hello();
	ask(2);
	await("lost ");
	await_nothing();
}
END_TEST

START_TEST(test_delete)
{
	SCRIPT(HELLO, {.want = "DELETE /mcp |s1\r\n|X-Own|!content-type", .status = 405});
	hello();
	http_link_end_session(k, 10000, on_done, &seen);
	ck_assert(!http_link_has_session(k));
	await("done ");
	/* There is none to end. */
	http_link_end_session(k, 10000, on_done, &seen);
	ck_assert_str_eq(buf_cstr(&seen), "done ");
	await("done ");
	await_nothing();
}
END_TEST

START_TEST(test_delete_redirected)
{
	SCRIPT(HELLO,
	    {.want = "DELETE /mcp |s1\r\n",
		.status = 307,
		.extra = "Location: /mcp/\r\n"},
	    {.want = "DELETE /mcp/ |s1\r\n", .status = 204});
	hello();
	http_link_end_session(k, 10000, on_done, &seen);
	ck_assert(!http_link_has_session(k));
	await("done ");
	ck_assert_uint_eq(at_step, 3);
}
END_TEST

/* Its limit is one for all of them. */
START_TEST(test_delete_redirected_to_nobody)
{
	SCRIPT(HELLO,
	    {.want = "DELETE /mcp |s1\r\n",
		.status = 308,
		.extra = "Location: /mcp/\r\n"},
	    {.want = "DELETE /mcp/ |s1\r\n", .how = NEVER});
	hello();
	http_link_end_session(k, 100, on_done, &seen);
	await("done ");
	await_nothing();
}
END_TEST

START_TEST(test_delete_unanswered)
{
	SCRIPT(HELLO, {.want = "DELETE /mcp |s1\r\n", .how = NEVER});
	hello();
	http_link_end_session(k, 30, on_done, &seen);
	await("done ");
	await_closed(1);
	await_nothing();
}
END_TEST

/* One that an initialize under way may still bring. */
START_TEST(test_delete_of_what_comes)
{
	static const struct step answers[] = {
	    HELLO, ANSWER("", "1"), {.status = 500}, {.how = NEVER}};
	const char *seen_then[] = {
	    "1:r1 done ", "1:r1 done ", "1:failed(http_status,500) done ", "done "};
	struct conn *first;

	SCRIPT({.want = "\"initialize\"", .how = NEVER},
	    {.want = "DELETE /mcp |s1\r\n", .status = 204});
	n_steps = 1; /* nothing is sent yet */
	ck_assert_int_eq(send_message(1, true, NULL,
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"),
	    MV_OK);
	await_step(1);
	first = last;
	http_link_end_session(k, _i == 3 ? 200 : 10000, on_done, &seen);
	await_nothing();
	n_steps = _i == 0 ? 2 : 1;
	if (_i < 3)
		conn_answer(first, &answers[_i]);
	while (seen.len < strlen(seen_then[_i]))
		loop_run(l);
	ck_assert(!http_link_has_session(k));
	await_step(n_steps);
	buf_reset(&seen);
	await_nothing();
}
END_TEST

START_TEST(test_delete_broken)
{
	/* On a connection that was used before curl tries once more itself. */
	SCRIPT(HELLO, {.want = "DELETE /mcp |s1\r\n", .how = BREAK},
	    {.want = "DELETE /mcp |s1\r\n", .how = BREAK});
	hello();
	http_link_end_session(k, 10000, on_done, &seen);
	await("done ");
}
END_TEST

START_TEST(test_delete_and_free)
{
	SCRIPT(HELLO, {.want = "DELETE /mcp |s1\r\n", .status = 200});
	n_steps = 1;
	hello();
	http_link_end_session(k, 10000, on_done, &seen);
	http_link_free(k);
	k = NULL;
	await_nothing();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_link_session");
	TCase *tc = tcase_create("http_link_session");

	tcase_add_test(tc, test_session);
	tcase_add_test(tc, test_session_of_stream);
	tcase_add_loop_test(tc, test_session_of_odd_bytes, 0, 3);
	tcase_add_test(tc, test_no_session);
	tcase_add_test(tc, test_renew);
	tcase_add_test(tc, test_renewed_answer);
	tcase_add_test(tc, test_renew_once);
	tcase_add_test(tc, test_apart);
	tcase_add_loop_test(tc, test_lost_by_400, 0, 3);
	tcase_add_test(tc, test_other_400);
	tcase_add_test(tc, test_late_refusal);
	tcase_add_test(tc, test_refusal_after_forget);
	tcase_add_test(tc, test_lost_ends_link);
	tcase_add_test(tc, test_delete);
	tcase_add_test(tc, test_delete_redirected);
	tcase_add_test(tc, test_delete_redirected_to_nobody);
	tcase_add_test(tc, test_delete_unanswered);
	tcase_add_test(tc, test_delete_broken);
	tcase_add_loop_test(tc, test_delete_of_what_comes, 0, 4);
	tcase_add_test(tc, test_delete_and_free);
	return run_suite(s, tc);
}
