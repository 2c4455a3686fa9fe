/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What an upstream writes: requests, batches, noise, replies that are none. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/metrics.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\"}}"
#define PING(id)   "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define ASK(id, m) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" m "\"}"
#define PONG(id)   "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define NO_METHOD(id, name)                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                \
	",\"error\":{\"code\":-32601,\"message\":\"Method not found: " name              \
	". Retrying unchanged will fail.\"}}"
#define NOT_DECLARED(id)                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                \
	",\"error\":{\"code\":-32601,\"message\":\"Method not found: this client did "   \
	"not declare the capability; a retry will not help\"}}"
#define IS_LEGACY  "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}"
#define ANSWER(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define PROGRESS(id)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"        \
	"\"progressToken\":" id ",\"progress\":1}}"
#define LOG                                                                              \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"         \
	"\"level\":\"info\",\"data\":1}}"

static struct uowner *
owner_ready(const char *revision)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, revision, "{}");
	return o;
}

/* ---- requests of the upstream ---- */

START_TEST(requests)
{
	static const struct {
		const char *said, *heard, *ready; /* ready NULL: the same */
	} rows[] = {
	    {PING("1"), PONG("1"), NULL},
	    {PING("\"a\\u0062\""), PONG("\"a\\u0062\""), NULL},
	    {PING("-0"), PONG("-0"), NULL},
	    {ASK("7", "sampling/createMessage"), NO_METHOD("7", "sampling/createMessage"),
		NOT_DECLARED("7")},
	    {ASK("\"x\"", "roots/list"), NO_METHOD("\"x\"", "roots/list"),
		NOT_DECLARED("\"x\"")},
	    {ASK("2", "elicitation/create"), NO_METHOD("2", "elicitation/create"),
		NOT_DECLARED("2")},
	    {ASK("2", "tools/list"), NO_METHOD("2", "tools/list"), NULL},
	    {ASK("2", "no\\nmethod"), NO_METHOD("2", "no\\\\nmethod"), NULL},
	};
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	uowner_heard(INITIALIZE(1));
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		size_t row = i % (sizeof(rows) / sizeof(rows[0]));
		bool ready =
		    i >= sizeof(rows) / sizeof(rows[0]) && rows[row].ready != NULL;

		/* Once before it is ready, once after. */
		if (i == sizeof(rows) / sizeof(rows[0])) {
			uowner_answer(o, 1, IS_LEGACY);
			uowner_heard(INITIALIZED);
		}
		uowner_say(o, "%s", rows[row].said);
		uowner_heard(ready ? rows[row].ready : rows[row].heard);
	}
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* The request of an upstream has no more to do with ours than its id's digits. */
START_TEST(ids_of_both_directions)
{
	struct uowner *o = owner_ready("2025-11-25");
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 2);
	uowner_say(o, "%s", PING("2"));
	uowner_heard(PONG("2"));
	ck_assert_uint_eq(c.done, 0);
	uowner_answer(o, 2, "{}");
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

/* ---- batches ---- */

START_TEST(batch_of_everything)
{
	struct uowner *o = owner_ready("2025-03-26");
	struct ucall a = {.done = 0}, b = {.done = 0}, c = {.done = 0};
	uint64_t noise = metrics_get(METRIC_NOISE_LINES);

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	uowner_say(o, "%s",
	    " [ " PROGRESS("3") ", " ANSWER("3") " ," PING(
		"\"p\"") "," LOG
			 ",7,[]," ANSWER(
			     "2") ",{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":1}," ASK("9",
			     "roots/list") "] ");
	ck_assert_uint_eq(b.progressed, 1);
	ck_assert_uint_eq(b.order, 1);
	ck_assert_str_eq(b.body, "{}");
	ck_assert_uint_eq(a.order, 2);
	ck_assert_uint_eq(c.order, 3);
	ck_assert_int_eq(c.err, MV_PROTOCOL);
	ck_assert_uint_eq(o->logs, 1);
	ck_assert_str_eq(o->last, LOG);
	ck_assert_uint_eq(metrics_get(METRIC_NOISE_LINES), noise + 3);
	uowner_heard("[" PONG("\"p\"") "," NOT_DECLARED("9") "]");
	uowner_heard_nothing();
	/* The next answer to a request is no batch again. */
	uowner_say(o, "%s", PING("1"));
	uowner_heard(PONG("1"));
	uowner_free(o);
}
END_TEST

START_TEST(batch_without_requests_is_not_answered)
{
	static const char *const batches[] = {"[]", "[ ]", "[1,{}]", "[" LOG "]"};
	struct uowner *o = owner_ready("2025-03-26");

	uowner_say(o, "%s", batches[_i]);
	uowner_heard_nothing();
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

/* A call that is sent from within a batch is a message of its own. */
START_TEST(call_from_within_a_batch)
{
	struct uowner *o = owner_ready("2025-03-26");
	struct ucall b = {.done = 0};
	struct ucall a = {.then = &b, .then_text = CALL};

	ucall_send(o, &a, CALL);
	fake_link_forget_all();
	uowner_say(o, "%s", "[" PING("5") "," ANSWER("2") "," PING("6") "]");
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 3);
	uowner_heard("[" PONG("5") "," PONG("6") "]");
	uowner_free(o);
}
END_TEST

/* Only that revision has them. */
START_TEST(batch_of_another_revision)
{
	static const char *const revisions[] = {"2024-11-05", "2025-06-18", "2025-11-25"};
	struct uowner *o;
	struct ucall c = {.done = 0};
	uint64_t noise = metrics_get(METRIC_NOISE_LINES);

	if (_i < 3) {
		o = owner_ready(revisions[_i]);
	} else {
		o = uowner_new(ERA_AUTO);
		uowner_be_modern(o, "{}");
	}
	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	uowner_say(o, "%s", "[" ANSWER("2") "," PING("1") "]");
	uowner_heard_nothing();
	ck_assert_uint_eq(c.done, 0);
	ck_assert_uint_eq(metrics_get(METRIC_NOISE_LINES), noise + 1);
	uowner_free(o);
}
END_TEST

START_TEST(batch_before_it_is_ready)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	uowner_heard(INITIALIZE(1));
	uowner_say(o, "%s", "[" PING("1") "]");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- noise ---- */

START_TEST(noise_harms_nothing)
{
	static const char *const lines[] = {"Server listening on stdio", "{", "{\"a\":1}",
	    "null", "\"x\"", "{\"jsonrpc\":\"1.0\",\"method\":\"x\"}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1]}",
	    "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"id\":3,\"method\":\"ping\"}",
	    "\x1b[31mred\x1b[0m"};
	struct uowner *o = owner_ready("2025-06-18");
	struct ucall c = {.done = 0};
	uint64_t noise = metrics_get(METRIC_NOISE_LINES);

	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	uowner_say(o, "%s", lines[_i]);
	uowner_heard_nothing();
	ck_assert_uint_eq(metrics_get(METRIC_NOISE_LINES), noise + 1);
	ck_assert(uowner_log_has(o, "warning upstream: output is not JSON-RPC "
				    "upstream=\"alpha\" line="));
	ck_assert_ptr_null(strchr(o->log, '\x1b'));
	ck_assert(uowner_is_ready(o));
	ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
	uowner_answer(o, 2, "{}");
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

START_TEST(noise_is_limited)
{
	struct uowner *o = owner_ready("2025-06-18");
	unsigned lines = 0;

	for (int i = 0; i < 1000; i++)
		uowner_say(o, "%s", "noise");
	for (const char *p = o->log; (p = strstr(p, "not JSON-RPC")) != NULL; p++)
		lines++;
	ck_assert_uint_eq(lines, 10);
	uowner_free(o);
}
END_TEST

/* ---- replies that are none ---- */

START_TEST(bad_replies_end_their_call)
{
	static const char *const says[] = {
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[1]}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":\"no\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":\"E\",\"message\":\"m\"}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"error\":{}}",
	    "{\"id\":2,\"result\":{}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"result\":{}}",
	};
	struct uowner *o = owner_ready("2025-06-18");
	struct ucall c = {.done = 0}, other = {.done = 0};

	ucall_send(o, &c, CALL);
	ucall_send(o, &other, CALL);
	uowner_say(o, "%s", says[_i]);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.kind, OUTCOME_FAILED);
	ck_assert_int_eq(c.err, MV_PROTOCOL);
	ck_assert_uint_gt(strlen(c.detail), 0);
	ck_assert_uint_eq(other.done, 0);
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(other.done, 1);
	uowner_free(o);
}
END_TEST

/* Of what the link refused, a reply's id may still be known. */
START_TEST(refused_lines)
{
	static const struct {
		enum mv_err err;
		const char *id;
		bool is_reply, ends;
	} rows[] = {
	    {MV_SYNTAX, NULL, false, false},
	    {MV_SYNTAX, "2", false, false},
	    {MV_SYNTAX, "2", true, true},
	    {MV_UTF8, "2", true, true},
	    {MV_UTF8, "\"2\"", true, false},
	    {MV_UTF8, "99", true, false},
	    {MV_TOO_DEEP, "2", true, true},
	    {MV_TOO_DEEP, "2", false, false},
	    {MV_TOO_LONG, "2", false, true},
	    {MV_TOO_LONG, "2", true, true},
	    {MV_TOO_LONG, NULL, true, false},
	};
	struct uowner *o = owner_ready("2025-06-18");
	struct ucall c = {.done = 0};
	uint64_t noise = metrics_get(METRIC_NOISE_LINES);

	ucall_send(o, &c, CALL);
	fake_link_bad(
	    o->u->link, rows[_i].err, rows[_i].id, rows[_i].is_reply, "{\"jsonrpc\"");
	ck_assert_uint_eq(c.done, rows[_i].ends);
	if (rows[_i].ends) {
		ck_assert_int_eq(c.err, MV_PROTOCOL);
		ck_assert_str_eq(c.detail, mv_err_text(rows[_i].err));
	}
	ck_assert_uint_eq(metrics_get(METRIC_NOISE_LINES), noise + 1);
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

/* ---- notifications ---- */

START_TEST(unknown_notifications_are_ignored)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	if (_i == 0)
		uowner_be_legacy(o, "2025-11-25", "{}");
	else
		uowner_be_modern(o, "{}");
	uowner_say(o, "%s",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\"}");
	uowner_say(o, "%s",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":1}}");
	uowner_say(o, "%s", "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}");
	uowner_say(o, "%s",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
	    "acknowledged\",\"params\":{}}");
	uowner_heard_nothing();
	ck_assert(uowner_is_ready(o));
	ck_assert_uint_eq(o->logs + o->updates, 0);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_msg");
	TCase *tc = tcase_create("msg");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, requests);
	tcase_add_test(tc, ids_of_both_directions);
	tcase_add_test(tc, batch_of_everything);
	tcase_add_loop_test(tc, batch_without_requests_is_not_answered, 0, 4);
	tcase_add_test(tc, call_from_within_a_batch);
	tcase_add_loop_test(tc, batch_of_another_revision, 0, 4);
	tcase_add_test(tc, batch_before_it_is_ready);
	tcase_add_loop_test(tc, noise_harms_nothing, 0, 10);
	tcase_add_test(tc, noise_is_limited);
	tcase_add_loop_test(tc, bad_replies_end_their_call, 0, 8);
	tcase_add_loop_test(tc, refused_lines, 0, 11);
	tcase_add_loop_test(tc, unknown_notifications_are_ignored, 0, 2);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
