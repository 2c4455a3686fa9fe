/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Progress, cancelling, log messages, changed lists. */
#include "mcpvisor/client.h"

#include "mcpvisor/metrics.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IO "\"io.modelcontextprotocol/"

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
cancel(const char *id)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s,\"reason\":\"r\"}}",
	    id);
	peer_say(p, text);
}

/* ---- progress ---- */

static const struct {
	const char *meta, *token; /* token NULL: no progress is wanted */
} tokens[] = {
    {"{\"progressToken\":0}", "0"},
    {"{\"progressToken\":7}", "7"},
    {"{\"progressToken\":\"7\"}", "\"7\""},
    {"{\"progressToken\":\"\"}", "\"\""},
    {"{\"progressToken\":-1}", "-1"},
    {"{\"x\":{\"progressToken\":1},\"progressToken\":\"\\u0061\\ud800\"}",
	"\"\\u0061\\ud800\""},
    {"{\"progressToken\":9007199254740993}", "9007199254740993"},
    {"{\"progressToken\":\"a token that is longer than what fits beside an id in the "
     "room that every request has for them\"}",
	"\"a token that is longer than what fits beside an id in the room that every "
	"request has for them\""},
    {"{}", NULL},
    {"{\"x\":{\"progressToken\":1}}", NULL},
};

START_TEST(progress_has_its_token_back)
{
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);
	char text[512];

	(void)snprintf(
	    text, sizeof(text), "{\"name\":\"alpha__a\",\"_meta\":%s}", tokens[_i].meta);
	peer_ask(p, "\"id\"", "tools/call", text);
	fake_upstream_progress(
	    f->u[0], 0, ",\"progress\":1.0,\"total\":1e400,\"message\":\"\\u00e4\"");
	fake_upstream_progress(f->u[0], 0, "");
	if (tokens[_i].token != NULL) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
		    "\"params\":{\"progressToken\":%s,\"progress\":1.0,\"total\":1e400,"
		    "\"message\":\"\\u00e4\"}}",
		    tokens[_i].token);
		peer_expect(p, text);
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
		    "\"params\":{\"progressToken\":%s}}",
		    tokens[_i].token);
		peer_expect(p, text);
	}
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED) - dropped,
	    tokens[_i].token == NULL ? 2 : 0);
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect_result(p, "\"id\"", "{}");
}
END_TEST

/* ---- cancelling ---- */

START_TEST(cancel_goes_to_the_owner_only)
{
	peer_ask(p, "101", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_ask(p, "\"101\"", "tools/call", "{\"name\":\"beta__a\"}");
	cancel("1");
	cancel("true");
	ck_assert_uint_eq(client_in_flight(p->c), 2);
	cancel("101");
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
	ck_assert_str_eq(fake_upstream_sent(f->u[0], 0)->cancel,
	    "{\"requestId\":101,\"reason\":\"r\"}");
	ck_assert(!fake_upstream_sent(f->u[1], 0)->cancelled);
	cancel("101"); /* over: nothing more */
	ck_assert_uint_eq(p->idle, 0);
	cancel("\"\\u0031\\u00301\"");
	ck_assert(fake_upstream_sent(f->u[1], 0)->cancelled);
	ck_assert_uint_eq(p->idle, 1);
	/* No answer came, and the id is free. */
	peer_expect_silence(p);
	peer_ask(p, "101", "ping", NULL);
	peer_expect_result(p, "101", "{}");
}
END_TEST

START_TEST(modern_cancel_is_the_same)
{
	peer_ask_modern(p, "1", "tools/call", "\"name\":\"alpha__a\"");
	cancel("1");
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

START_TEST(cancelled_while_it_waits)
{
	struct fleet *slow = fleet_new(1, NULL);
	struct peer *q = peer_new(slow), *was = p;

	gateway_start(slow->g);
	peer_ask(q, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_ask(q, "2", "tools/list", NULL);
	peer_ask(q, "3", "server/discover", "{" MODERN_META "}");
	peer_ask(q, "4", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	p = q;
	cancel("1");
	cancel("2");
	cancel("3");
	cancel("4");
	p = was;
	ck_assert_uint_eq(client_in_flight(q->c), 1); /* initialize stays */
	fleet_list(slow, 0, LIST_TOOLS, "a", NULL);
	fleet_ready(slow, 0);
	ck_assert_uint_eq(fake_upstream_n_sent(slow->u[0]), 0);
	ck_assert_ptr_nonnull(strstr(peer_read(q), "\"id\":4,\"result\""));
	peer_free(q);
	fleet_free(slow);
}
END_TEST

/* ---- log messages ---- */

#define LOG_PARAMS(level)                                                                \
	"{\"level\":\"" level "\",\"logger\":\"l\",\"data\":{\"x\":1.0}}"
#define LOG_LINE(level)                                                                  \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"                               \
	"message\",\"params\":" LOG_PARAMS(level) "}"

static void
assert_log(const char *params, const char *line)
{
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);

	fake_upstream_log(f->u[0], params);
	if (line != NULL)
		peer_expect(p, line);
	peer_expect_silence(p);
	ck_assert_uint_eq(
	    metrics_get(METRIC_NOTICES_DROPPED) - dropped, line == NULL ? 1 : 0);
}

START_TEST(sessions_hear_from_their_level_up)
{
	peer_initialize(p, "2025-11-25");
	/* It never said: what comes is for the upstream to say. */
	assert_log(LOG_PARAMS("debug"), LOG_LINE("debug"));
	peer_ask(p, "1", "logging/setLevel", "{\"level\":\"warning\"}");
	peer_expect_result(p, "1", "{}");
	assert_log(LOG_PARAMS("notice"), NULL);
	assert_log(LOG_PARAMS("warning"), LOG_LINE("warning"));
	assert_log(LOG_PARAMS("emergency"), LOG_LINE("emergency"));
	peer_ask(p, "1", "logging/setLevel", "{\"level\":\"debug\"}");
	peer_expect_result(p, "1", "{}");
	assert_log(LOG_PARAMS("debug"), LOG_LINE("debug"));
	assert_log(LOG_PARAMS("loud"), NULL);
	assert_log("{}", NULL);
}
END_TEST

static void
call_with_level(const char *id, const char *level)
{
	char members[256];

	(void)snprintf(members, sizeof(members),
	    "{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS
	    "%s%s%s},\"name\":\"alpha__a\"}",
	    level ? "," IO "logLevel\":\"" : "", level ? level : "", level ? "\"" : "");
	peer_ask(p, id, "tools/call", members);
}

/* A modern request gets what it asked for, and nobody else's. */
START_TEST(modern_requests_hear_what_they_asked_for)
{
	assert_log(LOG_PARAMS("error"), NULL);
	call_with_level("1", "warning");
	assert_log(LOG_PARAMS("warning"), LOG_LINE("warning"));
	assert_log(LOG_PARAMS("notice"), NULL);
	/* It could be the other's, who wants less. */
	call_with_level("2", "error");
	assert_log(LOG_PARAMS("warning"), NULL);
	assert_log(LOG_PARAMS("error"), LOG_LINE("error"));
	/* Or one's who wants nothing. */
	call_with_level("3", NULL);
	assert_log(LOG_PARAMS("emergency"), NULL);
	cancel("3");
	cancel("2");
	assert_log(LOG_PARAMS("warning"), LOG_LINE("warning"));
	cancel("1");
	assert_log(LOG_PARAMS("emergency"), NULL);
}
END_TEST

/* ---- changed lists ---- */

#define CHANGED(what)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" what "/list_changed\"}"

/* A channel that was full takes the next one, and with it what it has missed. */
START_TEST(a_change_that_was_not_taken)
{
	peer_initialize(p, "2025-11-25");
	p->refuses = MV_BUSY;
	fleet_list(f, 0, LIST_TOOLS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	p->refuses = MV_OK;
	fake_loop_advance(f->loop, 1000);
	peer_expect_silence(p);
	fleet_list(f, 1, LIST_PROMPTS, "p", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, CHANGED("tools"));
	peer_expect(p, CHANGED("prompts"));
	fleet_list(f, 1, LIST_PROMPTS, "q", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, CHANGED("prompts"));
	peer_expect_silence(p);
}
END_TEST

START_TEST(sessions_hear_of_changes)
{
	/* Nobody has a session. */
	fleet_list(f, 0, LIST_TOOLS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect_silence(p);
	peer_initialize(p, "2024-11-05");
	fleet_list(f, 0, LIST_TOOLS, "y", NULL);
	fleet_list(f, 0, LIST_TEMPLATES, "t:/{x}", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "r:/", NULL);
	fleet_list(f, 1, LIST_PROMPTS, "p", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, CHANGED("tools"));
	peer_expect(p, CHANGED("prompts"));
	peer_expect(p, CHANGED("resources")); /* one for both kinds */
	peer_expect_silence(p);
	fleet_list(f, 1, LIST_TEMPLATES, "t:/{y}", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, CHANGED("resources"));
	fleet_list(f, 1, LIST_TEMPLATES, "t:/{y}", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect_silence(p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_notices");
	TCase *tc = tcase_create("client_notices");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, progress_has_its_token_back, 0,
	    (int)(sizeof(tokens) / sizeof(tokens[0])));
	tcase_add_test(tc, cancel_goes_to_the_owner_only);
	tcase_add_test(tc, modern_cancel_is_the_same);
	tcase_add_test(tc, cancelled_while_it_waits);
	tcase_add_test(tc, sessions_hear_from_their_level_up);
	tcase_add_test(tc, modern_requests_hear_what_they_asked_for);
	tcase_add_test(tc, a_change_that_was_not_taken);
	tcase_add_test(tc, sessions_hear_of_changes);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
