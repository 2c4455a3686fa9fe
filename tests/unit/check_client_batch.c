/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Batches: 2025-03-26 has them, nobody else has. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENVELOPE                                                                         \
	"\"error\":{\"code\":-32600,\"message\":\"not a JSON-RPC 2.0 message; a retry "  \
	"will not help\",\"data\":{\"reason\":\"envelope\",\"retryable\":false}}"
#define NO_ID	 "{\"jsonrpc\":\"2.0\"," ENVELOPE "}"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define CALL(id, it)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","                  \
	"\"params\":{\"name\":\"" it "\"}}"
#define NOTICE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define BAD(id, text)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32600,\"message\":\""   \
	"Invalid request: " text "\"}}"

static struct fleet *f;
static struct peer *p;

static void
setup(void)
{
	f = fleet_full();
	p = peer_new(f);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

static const struct {
	const char *said, *answer; /* NULL: none */
} batches[] = {
    {"[]", NO_ID},
    {"[ \t]", NO_ID},
    {"[" PING("1") "]", "[" PONG("1") "]"},
    {" [ " PING("1") " , " PING("\"2\"") " ] ", "[" PONG("1") "," PONG("\"2\"") "]"},
    {"[" NOTICE "]", NULL},
    {"[" NOTICE "," NOTICE "]", NULL},
    {"[" NOTICE "," PING("1") "]", "[" PONG("1") "]"},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]", NULL},
    {"[1,{},[],null]", "[" NO_ID "," NO_ID "," NO_ID "," NO_ID "]"},
    {"[[" PING("1") "]]", "[" NO_ID "]"},
    {"[" PING("1") ",[" PING("2") "],{\"id\":3}]",
	"[" PONG("1") "," NO_ID ",{\"jsonrpc\":\"2.0\",\"id\":3," ENVELOPE "}]"},
    {"[" CALL("1", "nope") "," PING("2") "]",
	"[{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"Unknown "
	"tool: nope\"}}," PONG("2") "]"},
    /* What may not be in one */
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
     "\"params\":{\"protocolVersion\":\"2025-03-26\"}}," PING("2") "]",
	"[" BAD("1", "initialize must not be part of a batch. Retrying unchanged will "
		     "fail.") "," PONG("2") "]"},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\","
     "\"params\":{" MODERN_META ",\"notifications\":{}}}]",
	"[" BAD("1", "2026-07-28 has no batches. Retrying unchanged will fail.") "]"},
};

START_TEST(answered_as_a_batch)
{
	/* With a session of that revision and without any. */
	for (unsigned round = 0; round < 2; round++) {
		peer_say(p, batches[_i].said);
		if (batches[_i].answer != NULL)
			peer_expect(p, batches[_i].answer);
		peer_expect_silence(p);
		ck_assert_uint_eq(client_in_flight(p->c), 0);
		peer_initialize(p, "2025-03-26");
	}
}
END_TEST

START_TEST(other_revisions_have_none)
{
	static const char *const revisions[] = {"2024-11-05", "2025-06-18", "2025-11-25"};

	for (size_t i = 0; i < 3; i++) {
		peer_initialize(p, revisions[i]);
		peer_say(p, "[" PING("1") "," PING("2") "]");
		peer_expect(p, NO_ID);
		peer_say(p, "[]");
		peer_expect(p, NO_ID);
		peer_expect_silence(p);
	}
}
END_TEST

/* One array, when the last of them has its answer. */
START_TEST(calls_are_collected)
{
	peer_say(p, "[" CALL("1", "alpha__a") "," NOTICE
					      "," CALL("2", "beta__a") "," PING("3") "]");
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 2);
	/* Others are answered meanwhile. */
	peer_ask(p, "4", "ping", NULL);
	peer_expect_result(p, "4", "{}");
	fake_upstream_result(f->u[1], 0, "{\"n\":1.0}");
	peer_expect_silence(p);
	fake_upstream_error(f->u[0], 0, "{\"code\":1,\"message\":\"\"}");
	peer_expect(p,
	    "[" PONG("3") ",{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":1.0}},"
			  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,"
			  "\"message\":\"\"}}]");
}
END_TEST

/* A cancelled one has no answer, and does not hold up the rest. */
START_TEST(cancelled_in_a_batch)
{
	peer_say(p, "[" CALL("1", "alpha__a") "," CALL("2", "beta__a") "]");
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	peer_expect_silence(p);
	fake_upstream_result(f->u[1], 0, "{}");
	peer_expect(p, "[" PONG("2") "]");
	peer_say(p, "[" CALL("1", "alpha__a") "]");
	peer_say(p, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}]");
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

START_TEST(same_id_twice)
{
	peer_say(p, "[" CALL("1", "alpha__a") "," PING("1") "]");
	peer_expect_silence(p);
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect(p, "[" BAD("1", "the id is that of a request still in flight; use "
				    "another one") "," PONG("1") "]");
}
END_TEST

START_TEST(progress_does_not_wait)
{
	peer_say(p, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
		    "{\"name\":\"alpha__a\",\"_meta\":{\"progressToken\":0}}}]");
	fake_upstream_progress(f->u[0], 0, ",\"progress\":1.0");
	peer_expect(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
		       "\"params\":{\"progressToken\":0,\"progress\":1.0}}");
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect(p, "[" PONG("1") "]");
}
END_TEST

START_TEST(size_is_bounded)
{
	struct buf b;
	size_t n = 0;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_char(&b, '[');
	for (unsigned i = 0; i < CAP_BATCH_ITEMS + 5; i++)
		buf_addf(&b, "%s{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"ping\"}",
		    i > 0 ? "," : "", i);
	buf_add_char(&b, ']');
	peer_say(p, buf_cstr(&b));
	buf_fini(&b);
	for (const char *s = peer_read(p); (s = strstr(s, "\"result\"")) != NULL; s++)
		n++;
	ck_assert_uint_eq(n, CAP_BATCH_ITEMS);
	ck_assert_ptr_nonnull(strstr(p->lines[p->n - 1], "\"reason\":\"too_long\""));
}
END_TEST

/* All answers, or one error that has no id and a client that is of no use any more. */
START_TEST(short_of_memory)
{
	unsigned whole = 0, lost = 0;

	for (unsigned long n = 1; n < 12; n++) {
		const char *line;

		mem_fail_at(n, 1);
		peer_say(p, "[" PING("1") "," CALL("2", "nope") "," PING("3") "]");
		mem_fail_at(0, 0);
		fake_loop_settle(f->loop);
		line = peer_read(p);
		if (line[0] == '[') {
			whole++;
			ck_assert_ptr_nonnull(strstr(line, "\"id\":3"));
		} else {
			lost++;
			ck_assert_ptr_nonnull(strstr(line, "\"reason\":\"no_memory\""));
		}
		ck_assert_uint_eq(p->dead, lost);
		ck_assert_uint_eq(client_in_flight(p->c), 0);
	}
	ck_assert_uint_ge(whole, 1);
	ck_assert_uint_ge(lost, 1);
}
END_TEST

START_TEST(unfinished_batches_end_with_the_client)
{
	peer_say(p, "[" CALL("1", "alpha__a") "," PING("2") "]");
	peer_say(p, "[" CALL("3", "alpha__a") "]");
	client_finish(p->c);
	ck_assert_ptr_nonnull(strstr(peer_read(p), "\"reason\":\"stopping\""));
	ck_assert_ptr_nonnull(strstr(peer_read(p), PONG("2") ","));
	peer_say(p, "[" CALL("1", "alpha__a") "," NOTICE "]");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_batch");
	TCase *tc = tcase_create("client_batch");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, answered_as_a_batch, 0, (int)(sizeof(batches) / sizeof(batches[0])));
	tcase_add_test(tc, other_revisions_have_none);
	tcase_add_test(tc, calls_are_collected);
	tcase_add_test(tc, cancelled_in_a_batch);
	tcase_add_test(tc, same_id_twice);
	tcase_add_test(tc, progress_does_not_wait);
	tcase_add_test(tc, size_is_bounded);
	tcase_add_test(tc, short_of_memory);
	tcase_add_test(tc, unfinished_batches_end_with_the_client);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
