/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* A client's messages: ids, envelopes, methods, params, the lists. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA(reason) ",\"data\":{\"reason\":\"" reason "\",\"retryable\":false}}"
#define ENVELOPE                                                                         \
	"\"error\":{\"code\":-32600,\"message\":\"not a JSON-RPC 2.0 message; a retry "  \
	"will not help\"" DATA("envelope")
#define DUPLICATE                                                                        \
	"\"error\":{\"code\":-32600,\"message\":\"a member that decides the routing "    \
	"appears twice; a retry will not help\"" DATA("duplicate_member")
#define UNCHANGED ". Retrying unchanged will fail."
#define NO_METHOD(name)                                                                  \
	"\"error\":{\"code\":-32601,\"message\":\"Method not found: " name UNCHANGED "\"}"
#define PARAMS(text) "\"error\":{\"code\":-32602,\"message\":\"" text UNCHANGED "\"}"

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

static void
assert_nothing_sent(void)
{
	for (size_t i = 0; i < f->n; i++)
		ck_assert_uint_eq(fake_upstream_n_sent(f->u[i]), 0);
}

/* ---- one message, one answer ---- */

#define CALL(params)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":" params "}"
#define GET(method, params)                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define UNKNOWN(kind, name)                                                              \
	"\"error\":{\"code\":-32602,\"message\":\"Unknown " kind ": " name "\"}"
#define NO_TOOL(name) UNKNOWN("tool", name)
#define NO_URI(uri, raw)                                                                 \
	"\"error\":{\"code\":-32002,\"message\":\"Resource not found: " uri              \
	"\",\"data\":{\"uri\":\"" raw "\"}}"
#define REF_TEXT                                                                         \
	"params.ref must be an object with type ref/prompt and name, or ref/resource "   \
	"and uri"

static const struct {
	const char *said;
	const char *id; /* of the answer; NULL: none in it; "-": no answer */
	const char *answer;
} answers[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "1", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\\u0069ng\",\"params\":{\"x\":1}}", "1",
	"\"result\":{}"},
    /* Envelopes */
    {"{}", NULL, ENVELOPE},
    {"7", NULL, ENVELOPE},
    {"\"ping\"", NULL, ENVELOPE},
    {"{\"id\":1,\"method\":\"ping\"}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "1", ENVELOPE},
    {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", "1", ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":7}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"x\"}", "1",
	DUPLICATE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"Id\":2}", "1", DUPLICATE},
    {CALL("{\"name\":\"alpha__a\",\"name\":\"beta__a\"}"), "1", DUPLICATE},
    {CALL("{\"name\":\"alpha__a\",\"n\\u0041me\":\"beta__a\"}"), "1", DUPLICATE},
    /* Ids */
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":1e2,\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", NULL, ENVELOPE},
    {"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", "0", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"ping\"}", "-7", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":-0,\"method\":\"ping\"}", "-0", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}",
	"9007199254740993", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901234567890,\"method\":\"ping\"}",
	"123456789012345678901234567890", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"ping\"}", "\"7\"", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", "\"\"", "\"result\":{}"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\\u0041\",\"method\":\"ping\"}",
	"\"\\ud800\\u0041\"", "\"result\":{}"},
    /* Methods */
    {GET("foo/bar", "{}"), "1", NO_METHOD("foo/bar")},
    {GET("tools/cal", "{}"), "1", NO_METHOD("tools/cal")},
    {GET("Ping", "{}"), "1", NO_METHOD("Ping")},
    {GET("server/discover", "{}"), "1", NO_METHOD("server/discover")},
    {GET("subscriptions/listen", "{\"notifications\":{}}"), "1",
	NO_METHOD("subscriptions/listen")},
    {GET("notifications/initialized", "{}"), "1", NO_METHOD("notifications/initialized")},
    {GET("elicitation/create", "{}"), "1", NO_METHOD("elicitation/create")},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/foo\"}", "-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", "-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", "-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}", "-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
     "\"params\":{\"requestId\":1}}",
	"-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
     "\"params\":{\"requestId\":null}}",
	"-", NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", "-", NULL},
    /* Names that nobody has never leave us */
    {CALL("{\"name\":\"alpha__nope\"}"), "1", NO_TOOL("alpha__nope")},
    {CALL("{\"name\":\"nope\",\"arguments\":{\"\\ud800\":1}}"), "1", NO_TOOL("nope")},
    {CALL("{\"name\":\"__\"}"), "1", NO_TOOL("__")},
    {CALL("{\"name\":\"alpha__\"}"), "1", NO_TOOL("alpha__")},
    {CALL("{\"name\":\"\"}"), "1", NO_TOOL("")},
    {CALL("{\"name\":\"a\\\"b\"}"), "1", NO_TOOL("a\\\"b")},
    {CALL("{\"name\":7}"), "1", NO_TOOL("params.name must be a string" UNCHANGED)},
    {CALL("{}"), "1", NO_TOOL("params.name must be a string" UNCHANGED)},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", "1",
	NO_TOOL("params.name must be a string" UNCHANGED)},
    {GET("prompts/get", "{\"name\":\"x\"}"), "1", UNKNOWN("prompt", "x")},
    {GET("prompts/get", "{\"name\":{}}"), "1",
	UNKNOWN("prompt", "params.name must be a string" UNCHANGED)},
    {GET("resources/read", "{\"uri\":\"file:\\/\\/c\"}"), "1",
	NO_URI("file://c", "file:\\/\\/c")},
    {GET("resources/read", "{\"uri\":\"\"}"), "1", NO_URI("", "")},
    {GET("resources/read", "{}"), "1",
	UNKNOWN("resource", "params.uri must be a string" UNCHANGED)},
    {GET("resources/subscribe", "{\"uri\":\"file://c\"}"), "1",
	NO_URI("file://c", "file://c")},
    {GET("resources/subscribe", "{\"uri\":[]}"), "1",
	PARAMS("Invalid params: uri must be a string; got []")},
    {GET("resources/unsubscribe", "{\"uri\":\"file://c\"}"), "1", "\"result\":{}"},
    {GET("resources/unsubscribe", "{}"), "1",
	PARAMS("Invalid params: uri must be a string")},
    {GET("completion/complete", "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"x\"}}"),
	"1", UNKNOWN("reference", "x")},
    {GET("completion/complete", "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"x:/\"}}"),
	"1", UNKNOWN("reference", "x:/")},
    {GET("completion/complete", "{\"ref\":{\"type\":\"ref/x\",\"name\":\"x\"}}"), "1",
	UNKNOWN("reference", REF_TEXT UNCHANGED)},
    {GET("completion/complete", "{}"), "1", UNKNOWN("reference", REF_TEXT UNCHANGED)},
    /* Params of what we answer ourselves */
    {GET("tools/list", "{\"cursor\":\"x\"}"), "1",
	PARAMS("Invalid params: unknown cursor; the list has one page; got \\\"x\\\"")},
    {GET("tools/list", "{\"cursor\":7}"), "1",
	PARAMS("Invalid params: unknown cursor; the list has one page; got 7")},
    {GET("logging/setLevel", "{\"level\":\"loud\"}"), "1",
	PARAMS("Invalid params: level must be debug, info, notice, warning, error, "
	       "critical, alert or emergency; got \\\"loud\\\"")},
    {GET("logging/setLevel", "{\"level\":\"alert\"}"), "1", "\"result\":{}"},
    {GET("tools/list", "{\"_meta\":{\"progressToken\":1.5}}"), "1",
	PARAMS("Invalid params: _meta.progressToken must be a string or an integer; got "
	       "1.5")},
    {GET("tools/list", "{\"_meta\":{\"progressToken\":null}}"), "1",
	PARAMS("Invalid params: _meta.progressToken must be a string or an integer; got "
	       "null")},
};

START_TEST(answered_by_us)
{
	char want[600];

	peer_say(p, answers[_i].said);
	if (answers[_i].id == NULL)
		(void)snprintf(
		    want, sizeof(want), "{\"jsonrpc\":\"2.0\",%s}", answers[_i].answer);
	else
		(void)snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}",
		    answers[_i].id, answers[_i].answer ? answers[_i].answer : "");
	if (answers[_i].answer != NULL)
		peer_expect(p, want);
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	assert_nothing_sent();
}
END_TEST

/* ---- what is no message ---- */

static const struct {
	enum mv_err err;
	const char *id, *want;
} bads[] = {
    {MV_SYNTAX, "",
	"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"not valid JSON; a "
	"retry will not help\"" DATA("syntax") "}"},
    {MV_UTF8, "\"a\"",
	"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32700,\"message\":\"not "
	"valid UTF-8; a retry will not help\"" DATA("utf8") "}"},
    {MV_TOO_LONG, "0",
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32600,\"message\":\"message "
	"over the size limit; a retry will not help\"" DATA("too_long") "}"},
    {MV_TOO_DEEP, "1.5",
	"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"nested too deep; "
	"a "
	"retry will not help\"" DATA("too_deep") "}"},
};

START_TEST(lines_that_are_no_message)
{
	client_on_bad(p->c, bads[_i].err, text_of(bads[_i].id));
	peer_expect(p, bads[_i].want);
}
END_TEST

/* ---- ids in flight ---- */

static void
begin(const char *id)
{
	peer_ask(p, id, "tools/call", "{\"name\":\"alpha__a\"}");
	peer_expect_silence(p);
}

START_TEST(equal_ids_in_flight)
{
	/* Written in two ways, but one id; a number and its text are two. */
	static const struct {
		const char *one, *other;
		bool same;
	} rows[] = {
	    {"7", "7", true},
	    {"\"7\"", "7", false},
	    {"\"a\"", "\"\\u0061\"", true},
	    {"0", "-0", true},
	    {"0", "\"\"", false},
	    {"-1", "1", false},
	};
	/* Few are looked through, more are in a table. */
	unsigned others = _i == 0 ? 0 : 20;

	for (unsigned i = 0; i < others; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "%u", 1000 + i);
		begin(id);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = fake_upstream_n_sent(f->u[0]);

		begin(rows[i].one);
		peer_ask(p, rows[i].other, "ping", NULL);
		if (rows[i].same)
			peer_expect_error(p, rows[i].other,
			    "{\"code\":-32600,\"message\":\"Invalid request: the id is "
			    "that of a request still in flight; use another one\"}");
		else
			peer_expect_result(p, rows[i].other, "{}");
		ck_assert_uint_eq(client_in_flight(p->c), others + 1);
		client_rest(p->c);
		fake_upstream_result(f->u[0], n, "{}");
		peer_expect_result(p, rows[i].one, "{}");
		/* Free again. */
		peer_ask(p, rows[i].other, "ping", NULL);
		peer_expect_result(p, rows[i].other, "{}");
	}
	client_finish(p->c);
	p->taken = p->n;
	client_rest(p->c);
	begin("1000");
	peer_ask(p, "1000", "ping", NULL);
	(void)peer_expect_code(p, "1000", -32600);
	client_finish(p->c);
	p->taken = p->n;
}
END_TEST

START_TEST(many_ids_in_flight)
{
	char id[32];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(id, sizeof(id), i % 2 == 0 ? "%d" : "\"%d\"", i / 2);
		begin(id);
	}
	ck_assert_uint_eq(client_in_flight(p->c), 500);
	for (int i = 499; i >= 0; i -= 3) {
		(void)snprintf(id, sizeof(id), i % 2 == 0 ? "%d" : "\"%d\"", i / 2);
		fake_upstream_result(f->u[0], (size_t)i, "{\"x\":1.0}");
		peer_expect_result(p, id, "{\"x\":1.0}");
	}
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	while (client_in_flight(p->c) > 0)
		ck_abort_msg("something was forgotten");
	while (p->taken < p->n)
		ck_assert_ptr_nonnull(strstr(peer_read(p), "\"reason\":\"died\""));
	ck_assert_uint_eq(p->n, 500);
}
END_TEST

START_TEST(longest_id)
{
	static char id[CAP_ID_BYTES + 2];

	memset(id, 'i', sizeof(id) - 1);
	id[0] = '"';
	id[CAP_ID_BYTES - 1] = '"';
	id[CAP_ID_BYTES] = '\0';
	begin(id);
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect_result(p, id, "{}");
	id[CAP_ID_BYTES - 1] = 'i';
	id[CAP_ID_BYTES] = '"';
	peer_ask(p, id, "ping", NULL);
	peer_expect(p, "{\"jsonrpc\":\"2.0\"," ENVELOPE "}");
}
END_TEST

START_TEST(calls_in_flight_are_bounded)
{
	char id[32];

	for (unsigned i = 0; i < CAP_CLIENT_CALLS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		begin(id);
	}
	peer_ask(p, "\"more\"", "tools/call", "{\"name\":\"beta__a\"}");
	ck_assert_ptr_nonnull(
	    strstr(peer_expect_code(p, "\"more\"", -32603), "\"reason\":\"busy\""));
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect_result(p, "0", "{}");
	peer_ask(p, "\"more\"", "ping", NULL);
	peer_expect_result(p, "\"more\"", "{}");
	client_finish(p->c);
	p->taken = p->n;
}
END_TEST

START_TEST(short_of_memory)
{
	static char id[300];

	memset(id, 'i', sizeof(id) - 1);
	id[0] = id[sizeof(id) - 2] = '"';
	for (unsigned long n = 1; n < 12; n++) {
		struct json_msg json;
		struct link_msg m = fleet_scan("{\"jsonrpc\":\"2.0\",\"id\":\"a\","
					       "\"method\":\"tools/list\"}",
		    &json);

		mem_fail_at(n, 0);
		client_on_message(p->c, &m);
		mem_fail_at(0, 0);
		ck_assert_uint_eq(p->n, n);
		(void)peer_read(p);
		ck_assert_uint_eq(client_in_flight(p->c), 0);
	}
	peer_ask(p, id, "ping", NULL);
	peer_expect_result(p, id, "{}");
}
END_TEST

/* ---- lists ---- */

START_TEST(lists_are_one_page)
{
	peer_ask(p, "1", "tools/list", NULL);
	peer_expect_result(p, "1",
	    "{\"tools\":[{\"name\":\"alpha__a\"},{\"name\":\"alpha__b_x2ec\"},"
	    "{\"name\":\"alpha__d\"},{\"name\":\"beta__a\"}]}");
	peer_ask(p, "1", "prompts/list", "{}");
	peer_expect_result(
	    p, "1", "{\"prompts\":[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]}");
	peer_ask(p, "1", "resources/list", "{\"cursor\":null}");
	peer_expect_result(
	    p, "1", "{\"resources\":[{\"uri\":\"file:///a\"},{\"uri\":\"file:///b\"}]}");
	peer_ask(p, "1", "resources/templates/list", "{}");
	peer_expect_result(p, "1",
	    "{\"resourceTemplates\":[{\"uriTemplate\":\"db://{+any}\"},"
	    "{\"uriTemplate\":\"db://users/{id}\"}]}");
	ck_assert_uint_gt(p->idle, 0);
}
END_TEST

/* A list waits for upstreams that are starting; what can be answered is. */
START_TEST(lists_wait_and_pings_do_not)
{
	struct fleet *slow = fleet_new(2, NULL);
	struct peer *q = peer_new(slow);

	gateway_start(slow->g);
	peer_ask(q, "1", "tools/list", NULL);
	peer_ask(q, "2", "prompts/list", NULL);
	peer_ask(q, "3", "ping", NULL);
	peer_expect_result(q, "3", "{}");
	peer_expect_silence(q);
	ck_assert_uint_eq(client_in_flight(q->c), 2);
	peer_say(q, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":2}}");
	ck_assert_uint_eq(client_in_flight(q->c), 1);
	fleet_list(slow, 0, LIST_TOOLS, "a", NULL);
	fleet_ready(slow, 0);
	peer_expect_silence(q);
	fake_loop_advance(slow->loop, FLEET_WAIT_MS);
	peer_expect_result(q, "1", "{\"tools\":[{\"name\":\"alpha__a\"}]}");
	ck_assert_uint_eq(q->idle, 1);
	peer_free(q);
	fleet_free(slow);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client");
	TCase *tc = tcase_create("client");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, answered_by_us, 0, (int)(sizeof(answers) / sizeof(answers[0])));
	tcase_add_loop_test(
	    tc, lines_that_are_no_message, 0, (int)(sizeof(bads) / sizeof(bads[0])));
	tcase_add_loop_test(tc, equal_ids_in_flight, 0, 2);
	tcase_add_test(tc, many_ids_in_flight);
	tcase_add_test(tc, longest_id);
	tcase_add_test(tc, calls_in_flight_are_bounded);
	tcase_add_test(tc, short_of_memory);
	tcase_add_test(tc, lists_are_one_page);
	tcase_add_test(tc, lists_wait_and_pings_do_not);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
