/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* The line that each forwarded request leaves in the log, and what is counted. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fleet *f;
static struct peer *p;
/* The last line, without what comes before its first field. */
static char line[4096];
static unsigned n_lines;

static void
on_line(enum log_level level, const char *text, size_t len, void *arg)
{
	static const char mark[] = "call: done ";
	const char *at = strstr(text, mark);

	(void)level;
	(void)len;
	(void)arg;
	if (at == NULL)
		return;
	n_lines++;
	(void)snprintf(line, sizeof(line), "%s", at + sizeof(mark) - 1);
}

static void
setup(void)
{
	f = fleet_full();
	p = peer_new(f);
	log_set_sink(on_line, NULL);
	log_set_level(LOG_LV_INFO);
	n_lines = 0;
	line[0] = '\0';
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_NOTICE);
	client_log_calls(true);
}

static void
assert_line(const char *want)
{
	ck_assert_str_eq(line, want);
	ck_assert_uint_eq(n_lines, 1);
	n_lines = 0;
	line[0] = '\0';
}

#define A "{\"name\":\"alpha__a\"}"

/* Bytes of {"jsonrpc":"2.0","id":1,"method":M,"params":P}. */
static size_t
size_of(const char *method, const char *params)
{
	return strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\",\"params\":}") +
	       strlen(method) + strlen(params);
}

/* ---- answers of the upstream ---- */

static const struct {
	const char *method, *params, *body;
	bool error; /* body is one */
	const char *tool, *rest;
} answers[] = {
    {"tools/call", A, "{\"x\":1}", false, "\"alpha__a\"",
	"end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown"},
    {"tools/call", "{\"name\":\"alpha__b_x2ec\"}", "{\"isError\":true}", false,
	"\"alpha__b_x2ec\"",
	"end=returned reason=- ok=1 is_err=1 err_src=upstream ans=none"},
    {"tools/call", A, "{\"isError\":false}", false, "\"alpha__a\"",
	"end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown"},
    {"tools/call", A, "{\"code\":-32602,\"message\":\"\"}", true, "\"alpha__a\"",
	"end=error reason=-32602 ok=0 is_err=- err_src=upstream ans=-"},
    {"tools/call", A, "{\"code\":7,\"message\":\"\"}", true, "\"alpha__a\"",
	"end=error reason=7 ok=0 is_err=- err_src=upstream ans=-"},
    {"prompts/get", A, "{}", false, "\"alpha__a\"",
	"end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown"},
    {"resources/read", "{\"uri\":\"file:\\/\\/\\/\\u0061\"}", "{\"contents\":[]}", false,
	"\"file:///a\"", "end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown"},
    {"completion/complete",
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db://{+any}\"}}", "{}", false,
	"\"db://{+any}\"", "end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown"},
};

START_TEST(answers_of_upstreams)
{
	char want[512];

	peer_ask(p, "1", answers[_i].method, answers[_i].params);
	ck_assert_uint_eq(n_lines, 0);
	fake_loop_advance(f->loop, 250);
	if (answers[_i].error)
		fake_upstream_error(f->u[0], 0, answers[_i].body);
	else
		fake_upstream_result(f->u[0], 0, answers[_i].body);
	(void)peer_read(p);
	(void)snprintf(want, sizeof(want),
	    "client=- method=%s upstream=\"alpha\" tool=%s %s ms=250 in=%zu out=%zu "
	    "added=0 trace=-",
	    answers[_i].method, answers[_i].tool, answers[_i].rest,
	    size_of(answers[_i].method, answers[_i].params), strlen(answers[_i].body));
	assert_line(want);
}
END_TEST

/* ---- no answer ---- */

static const struct {
	enum mv_err err;
	const char *rest;
	enum metric counter;
} failures[] = {
    {MV_TIMEOUT, "end=timeout reason=timeout ok=0 is_err=- err_src=upstream ans=-",
	METRIC_CALLS_TIMEOUT},
    {MV_DIED, "end=died reason=died ok=0 is_err=- err_src=upstream ans=-",
	METRIC_CALLS_DIED},
    {MV_SPAWN, "end=died reason=spawn_failed ok=0 is_err=- err_src=upstream ans=-",
	METRIC_CALLS_DIED},
    {MV_PARKED, "end=died reason=parked ok=0 is_err=- err_src=upstream ans=-",
	METRIC_CALLS_DIED},
    {MV_BUSY, "end=busy reason=busy ok=0 is_err=- err_src=proxy ans=-",
	METRIC_CALLS_BUSY},
    {MV_NOMEM, "end=busy reason=no_memory ok=0 is_err=- err_src=proxy ans=-",
	METRIC_CALLS_BUSY},
    {MV_PROTOCOL, "end=error reason=protocol ok=0 is_err=- err_src=upstream ans=-",
	METRIC_CALLS_FAILED},
    {MV_STOPPING, "end=error reason=stopping ok=0 is_err=- err_src=proxy ans=-",
	METRIC_CALLS_FAILED},
};

static void
assert_ends(const char *rest)
{
	const char *end = strstr(line, "end=");

	ck_assert_ptr_nonnull(end);
	ck_assert_msg(strncmp(end, rest, strlen(rest)) == 0, "%s", line);
	ck_assert_uint_eq(n_lines, 1);
	n_lines = 0;
}

START_TEST(calls_without_an_answer)
{
	uint64_t before = metrics_get(failures[_i].counter);

	peer_ask(p, "1", "tools/call", A);
	fake_upstream_fail(f->u[0], 0, failures[_i].err, NULL);
	(void)peer_expect_code(p, "1", -32603);
	assert_ends(failures[_i].rest);
	ck_assert_uint_eq(metrics_get(failures[_i].counter), before + 1);
}
END_TEST

START_TEST(a_failure_as_result_is_no_answer)
{
	f->confs[0]->failure = FAILURE_TOOL_ERROR;
	f->confs[0]->rescue_errors = true;
	peer_ask(p, "1", "tools/call", A);
	fake_upstream_fail(f->u[0], 0, MV_DIED, NULL);
	(void)peer_read(p);
	assert_ends("end=died reason=died ok=0 is_err=- err_src=upstream ans=-");
	peer_ask(p, "1", "tools/call", A);
	fake_upstream_error(f->u[0], 1, "{\"code\":-32602,\"message\":\"m\"}");
	(void)peer_read(p);
	assert_ends("end=error reason=-32602 ok=0 is_err=- err_src=upstream ans=-");
}
END_TEST

/* ---- what never left us ---- */

#define X100                                                                             \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
	"xx"                                                                             \
	"xxxxxxxxxxxxxxxxxxxx"

static const struct {
	const char *method, *params, *upstream, *tool, *rest;
} refused[] = {
    {"tools/call", "{\"name\":\"nope\"}", "-", "\"nope\"",
	"end=error reason=not_found ok=0 is_err=- err_src=proxy ans=-"},
    {"tools/call", "{\"name\":\"a\\u001b\\\"\\\\ z=1\"}", "-", "\"a\\x1b\\\"\\\\ z=1\"",
	"end=error reason=not_found ok=0 is_err=- err_src=proxy ans=-"},
    {"tools/call", "{\"name\":7}", "-", "-",
	"end=error reason=params ok=0 is_err=- err_src=proxy ans=-"},
    {"tools/call", "{}", "-", "-",
	"end=error reason=params ok=0 is_err=- err_src=proxy ans=-"},
    {"resources/read", "{\"uri\":\"x:" X100 X100 X100 "\"}", "-",
	"\"x:" X100
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxx\"...",
	"end=error reason=not_found ok=0 is_err=- err_src=proxy ans=-"},
};

START_TEST(refused_by_us)
{
	uint64_t before = metrics_get(METRIC_CALLS_REFUSED);
	char want[1024];

	peer_ask(p, "1", refused[_i].method, refused[_i].params);
	(void)peer_read(p);
	(void)snprintf(want, sizeof(want),
	    "client=- method=%s upstream=%s tool=%s %s ms=0 in=%zu ", refused[_i].method,
	    refused[_i].upstream, refused[_i].tool, refused[_i].rest,
	    size_of(refused[_i].method, refused[_i].params));
	ck_assert_msg(strncmp(line, want, strlen(want)) == 0, "%s", line);
	ck_assert_uint_eq(n_lines, 1);
	ck_assert_uint_eq(metrics_get(METRIC_CALLS_REFUSED), before + 1);
}
END_TEST

START_TEST(refused_by_its_queue)
{
	fake_upstream_refuse(f->u[0], MV_BUSY);
	peer_ask(p, "1", "tools/call", A);
	(void)peer_read(p);
	ck_assert_ptr_nonnull(strstr(line, "upstream=\"alpha\" tool=\"alpha__a\" "));
	assert_ends("end=busy reason=busy ok=0 is_err=- err_src=proxy ans=-");
}
END_TEST

START_TEST(nothing_completed)
{
	fake_upstream_set_caps(f->u[0], (struct upstream_caps){.prompts = true});
	peer_ask(p, "1", "completion/complete",
	    "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}}");
	(void)peer_read(p);
	assert_ends("end=returned reason=- ok=1 is_err=0 err_src=- ans=unknown ms=0 ");
}
END_TEST

/* What is no call leaves no line. */
START_TEST(others_have_no_line)
{
	peer_initialize(p, "2025-11-25");
	peer_ask(p, "1", "ping", NULL);
	peer_ask(p, "1", "tools/list", NULL);
	peer_ask(p, "1", "no/method", NULL);
	peer_ask(p, "1", "resources/subscribe", "{\"uri\":\"file:///none\"}");
	p->taken = p->n;
	ck_assert_uint_eq(n_lines, 0);
}
END_TEST

/* ---- without an end of the upstream's ---- */

START_TEST(cancelled_and_left)
{
	peer_ask(p, "1", "tools/call", A);
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	ck_assert_ptr_nonnull(strstr(line, "upstream=\"alpha\" tool=\"alpha__a\" "));
	assert_ends("end=cancelled reason=cancelled ok=0 is_err=- err_src=- ans=- ms=0 ");
	peer_ask(p, "1", "tools/call", A);
	client_finish(p->c);
	(void)peer_read(p);
	assert_ends("end=error reason=stopping ok=0 is_err=- err_src=proxy ans=- ms=0 ");
	peer_ask(p, "1", "tools/call", A);
	peer_free(p);
	assert_ends("end=cancelled reason=cancelled ok=0 is_err=- err_src=- ans=- ms=0 ");
	p = peer_new(f);
}
END_TEST

START_TEST(waited_for_lists)
{
	struct fleet *slow = fleet_new(2, NULL);
	struct peer *q = peer_new(slow);

	log_set_sink(on_line, NULL);
	gateway_start(slow->g);
	peer_ask(q, "1", "tools/call", "{\"name\":\"beta__a\"}");
	peer_ask(q, "2", "tools/call", "{\"name\":\"no\\u0070e\"}");
	peer_say(q, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	ck_assert_ptr_nonnull(strstr(line, "upstream=- tool=\"beta__a\" end=cancelled "));
	n_lines = 0;
	fleet_ready(slow, 0);
	fleet_ready(slow, 1);
	fake_loop_settle(slow->loop);
	(void)peer_read(q);
	ck_assert_ptr_nonnull(strstr(line, "upstream=- tool=\"nope\" end=error "));
	ck_assert_uint_eq(n_lines, 1);
	peer_free(q);
	fleet_free(slow);
}
END_TEST

/* ---- who asks ---- */

#define INFO(name)                                                                       \
	"\"_meta\":{" MODERN_VERSION "," MODERN_CAPS                                     \
	",\"io.modelcontextprotocol/clientInfo\":{\"name\":" name "}}"

static const struct {
	const char *info, *client;
} clients[] = {
    {"\"Claude Code\"", "\"Claude Code\""},
    {"\"\\u00e4\\n\"", "\"\xc3\xa4\\x0a\""},
    {"\"\"", "-"},
    {"7", "-"},
    {"\"" X100 "\"",
	"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""},
    {"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa4\"",
	"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""},
};

START_TEST(names_its_client)
{
	char text[1024], want[256];
	unsigned n = 0;

	(void)snprintf(want, sizeof(want), "client=%s method=", clients[_i].client);
	/* A session names itself once, a request of 2026-07-28 for itself. */
	(void)snprintf(text, sizeof(text),
	    "{\"protocolVersion\":\"2025-11-25\",\"clientInfo\":{\"version\":\"\","
	    "\"name\":%s}}",
	    clients[_i].info);
	peer_ask(p, "0", "initialize", text);
	(void)peer_read(p);
	for (unsigned round = 0; round < 2; round++) {
		if (round == 0)
			(void)snprintf(text, sizeof(text), A);
		else
			(void)snprintf(text, sizeof(text),
			    "{\"name\":\"alpha__a\"," INFO("%s") "}", clients[_i].info);
		peer_ask(p, "1", "tools/call", text);
		fake_upstream_result(f->u[0], n++, "{\"resultType\":\"complete\"}");
		(void)peer_read(p);
		ck_assert_msg(strncmp(line, want, strlen(want)) == 0, "%s", line);
	}
}
END_TEST

START_TEST(sessions_that_came_back_have_a_name)
{
	client_session_restore(p->c, REVISION_2025_11_25, 0, "c \"d\"");
	peer_ask(p, "1", "tools/call", A);
	fake_upstream_result(f->u[0], 0, "{}");
	(void)peer_read(p);
	ck_assert_ptr_eq(strstr(line, "client=\"c \\\"d\\\"\" "), line);
}
END_TEST

START_TEST(what_was_added_is_counted)
{
	peer_ask_modern(p, "1", "tools/call", "\"name\":\"alpha__a\"");
	fake_upstream_result(f->u[0], 0, "{\"content\":[]}");
	peer_expect_result(p, "1", "{\"resultType\":\"complete\",\"content\":[]}");
	ck_assert_ptr_nonnull(strstr(line, " out=38 added=24 trace=-"));
}
END_TEST

/* ---- trace context ---- */

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

static const struct {
	const char *parent; /* JSON */
	bool good;
} traces[] = {
    {"\"00-" TRACE "-00f067aa0ba902b7-01\"", true},
    {"\"00-" TRACE "-00f067aa0ba902b7-00\"", true},
    {"\"cc-" TRACE "-00f067aa0ba902b7-01-what-comes-then\"", true},
    {"\"cc-" TRACE "-00f067aa0ba902b7-01\"", true},
    {"\"cc-" TRACE "-00f067aa0ba902b7-01x\"", false},
    {"\"00-" TRACE "-00f067aa0ba902b7-01-\"", false},
    {"\"ff-" TRACE "-00f067aa0ba902b7-01\"", false},
    {"\"00-" TRACE "-0000000000000000-01\"", false},
    {"\"00-00000000000000000000000000000000-00f067aa0ba902b7-01\"", false},
    {"\"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01\"", false},
    {"\"00-" TRACE "_00f067aa0ba902b7-01\"", false},
    {"\"00-" TRACE "-00f067aa0ba902b7-0\"", false},
    {"\"00-" TRACE "-00f067aa0ba902b7-0\\u0031\"", false},
    {"\"\"", false},
    {"7", false},
    {"{\"a\":\"00-" TRACE "-00f067aa0ba902b7-01\"}", false},
};

START_TEST(carries_the_trace)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
	    "{\"name\":\"alpha__a\",\"_meta\":{\"traceparent\":%s,\"tracestate\":\"a=b\","
	    "\"baggage\":\"c=d\"}}",
	    traces[_i].parent);
	peer_ask(p, "1", "tools/call", text);
	/* Whatever it is, it goes along. */
	(void)snprintf(text, sizeof(text),
	    "{\"name\":\"a\",\"_meta\":{\"traceparent\":%s,\"tracestate\":\"a=b\","
	    "\"baggage\":\"c=d\"}}",
	    traces[_i].parent);
	ck_assert_str_eq(fake_upstream_last(f->u[0])->params, text);
	fake_upstream_result(f->u[0], 0, "{}");
	(void)peer_read(p);
	ck_assert_str_eq(
	    strstr(line, " trace="), traces[_i].good ? " trace=" TRACE : " trace=-");
}
END_TEST

/* ---- switched off ---- */

START_TEST(can_be_switched_off)
{
	client_log_calls(false);
	peer_ask(p, "1", "tools/call", A);
	client_log_calls(true); /* of what has started nothing was kept */
	fake_upstream_result(f->u[0], 0, "{}");
	(void)peer_read(p);
	log_set_level(LOG_LV_NOTICE);
	peer_ask(p, "1", "tools/call", A);
	log_set_level(LOG_LV_INFO);
	fake_upstream_fail(f->u[0], 1, MV_TIMEOUT, NULL);
	(void)peer_read(p);
	ck_assert_uint_eq(n_lines, 0);
}
END_TEST

#define N(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))

int
main(void)
{
	Suite *s = suite_create("client_log");
	TCase *tc = tcase_create("client_log");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, answers_of_upstreams, 0, N(answers));
	tcase_add_loop_test(tc, calls_without_an_answer, 0, N(failures));
	tcase_add_test(tc, a_failure_as_result_is_no_answer);
	tcase_add_loop_test(tc, refused_by_us, 0, N(refused));
	tcase_add_test(tc, refused_by_its_queue);
	tcase_add_test(tc, nothing_completed);
	tcase_add_test(tc, others_have_no_line);
	tcase_add_test(tc, cancelled_and_left);
	tcase_add_test(tc, waited_for_lists);
	tcase_add_loop_test(tc, names_its_client, 0, N(clients));
	tcase_add_test(tc, sessions_that_came_back_have_a_name);
	tcase_add_test(tc, what_was_added_is_counted);
	tcase_add_loop_test(tc, carries_the_trace, 0, N(traces));
	tcase_add_test(tc, can_be_switched_off);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
