/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* subscriptions/listen: the acknowledgement, what comes after it, the end. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUB(id) "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":" id "}"
#define NOTE(method, id, more)                                                           \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" method                        \
	"\",\"params\":{" SUB(id) more "}}"
#define ACK(id, honoured)                                                                \
	NOTE("subscriptions/acknowledged", id, ",\"notifications\":{" honoured "}")
#define UPDATED(id, more) NOTE("resources/updated", id, more)
#define ALL                                                                              \
	"\"toolsListChanged\":true,\"promptsListChanged\":true,"                         \
	"\"resourcesListChanged\":true"
#define URIS(list) "\"resourceSubscriptions\":[" list "]"
#define BAD(t)                                                                           \
	"{\"code\":-32602,\"message\":\"Invalid params: " t                              \
	". Retrying unchanged will fail.\"}"

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
	for (size_t i = 0; i < f->n; i++)
		ck_assert_uint_eq(fake_upstream_n_watches(f->u[i]), 0);
	fleet_free(f);
}

static void
listen_to(const char *id, const char *filter)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "\"notifications\":{");
	buf_add_str(&b, filter);
	buf_add_char(&b, '}');
	peer_ask_modern(p, id, "subscriptions/listen", buf_cstr(&b));
	buf_fini(&b);
}

static void
cancel(const char *id)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s}}",
	    id);
	peer_say(p, text);
}

/* ---- the acknowledgement ---- */

static const struct {
	const char *filter, *honoured;
} filters[] = {
    {"", ""},
    {"\"toolsListChanged\":false,\"unknown\":true", ""},
    {"\"toolsListChanged\":true", "\"toolsListChanged\":true"},
    {"\"resourcesListChanged\":true,\"promptsListChanged\":true",
	"\"promptsListChanged\":true,\"resourcesListChanged\":true"},
    {ALL, ALL},
    {URIS(""), ""},
    {URIS("\"file:\\/\\/\\/a\""), URIS("\"file:\\/\\/\\/a\"")},
    {URIS("\"file:///a\",\"x:/nobody\",\"file:///b\""),
	URIS("\"file:///a\",\"file:///b\"")},
    {URIS("\"x:/nobody\",\"\""), ""},
    {ALL "," URIS("\"file:///b\""), ALL "," URIS("\"file:///b\"")},
};

START_TEST(only_what_is_honoured)
{
	char want[700];

	for (size_t i = 0; i < f->n; i++)
		fake_upstream_set_watching(f->u[i], FAKE_WATCH_YES);
	listen_to("\"l\"", filters[_i].filter);
	(void)snprintf(want, sizeof(want), ACK("\"l\"", "%s"), filters[_i].honoured);
	peer_expect(p, want);
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	ck_assert_uint_eq(p->idle, 1);
}
END_TEST

static const struct {
	const char *params, *error;
} faults[] = {
    {"{" MODERN_META "}", BAD("notifications must be an object")},
    {"{" MODERN_META ",\"notifications\":[]}",
	BAD("notifications must be an object; got []")},
    {"{" MODERN_META ",\"notifications\":{\"toolsListChanged\":1}}",
	BAD("toolsListChanged, promptsListChanged and resourcesListChanged must be "
	    "booleans; got 1")},
    {"{" MODERN_META ",\"notifications\":{\"resourceSubscriptions\":\"x:/\"}}",
	BAD("resourceSubscriptions must be an array of strings; got \\\"x:/\\\"")},
    {"{" MODERN_META ",\"notifications\":{\"resourceSubscriptions\":[\"x:/\",7]}}",
	BAD("resourceSubscriptions must be an array of strings; got [\\\"x:/\\\",7]")},
};

START_TEST(filters_that_are_none)
{
	peer_ask(p, "1", "subscriptions/listen", faults[_i].params);
	peer_expect_error(p, "1", faults[_i].error);
	peer_expect_silence(p);
}
END_TEST

/* What its owners refuse, or do not answer in time, is left out. */
START_TEST(acknowledged_when_owners_have_answered)
{
	listen_to("1", URIS("\"file:///a\",\"file:///b\",\"db://1\""));
	peer_expect_silence(p);
	fake_upstream_settle_watch(f->u[0], "{\"code\":1,\"message\":\"\"}");
	peer_expect_silence(p);
	fake_upstream_settle_watch(f->u[1], NULL);
	peer_expect(p, ACK("1", URIS("\"file:///b\"")));
	fake_loop_advance(f->loop, 100000);
	peer_expect_silence(p);
	listen_to("2", "\"toolsListChanged\":true," URIS("\"file:///a\",\"file:///b\""));
	fake_loop_advance(f->loop, 4999);
	peer_expect_silence(p);
	fake_loop_advance(f->loop, 1);
	peer_expect(p, ACK("2", "\"toolsListChanged\":true," URIS("\"file:///b\"")));
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[1]), 1);
	cancel("2");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[1]), 1);
	cancel("1");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[1]), 0);
}
END_TEST

/* Changes before the acknowledgement are told after it, once each. */
START_TEST(acknowledgement_is_first)
{
	listen_to("0", "\"toolsListChanged\":true,\"resourcesListChanged\":true," URIS(
			   "\"file:\\/\\/\\/b\",\"file:///a\",\"n:/\""));
	fake_upstream_settle_watch(f->u[1], NULL);
	fake_upstream_updated(f->u[1], "{\"uri\":\"file:///b\",\"x\":1}");
	fake_upstream_updated(f->u[1], "{\"uri\":\"file:///b\",\"x\":2}");
	for (unsigned i = 0; i < 2; i++) {
		fleet_list(f, 0, LIST_TOOLS, i == 0 ? "x" : "y", NULL);
		fleet_list(f, 0, LIST_PROMPTS, i == 0 ? "x" : "y", NULL);
		fleet_list(f, 0, LIST_TEMPLATES, i == 0 ? "x" : "y", NULL);
		fake_loop_advance(f->loop, 1000);
	}
	peer_expect_silence(p);
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect(
	    p, ACK("0", "\"toolsListChanged\":true,\"resourcesListChanged\":true," URIS(
			    "\"file:\\/\\/\\/b\",\"file:///a\"")));
	peer_expect(p, NOTE("tools/list_changed", "0", ""));
	peer_expect(p, NOTE("resources/list_changed", "0", ""));
	peer_expect(p, UPDATED("0", ",\"uri\":\"file:\\/\\/\\/b\""));
	peer_expect_silence(p);
}
END_TEST

/* ---- what comes ---- */

START_TEST(ids_keep_their_type)
{
	static const char *const ids[] = {
	    "0", "7", "\"7\"", "\"\"", "-1", "\"\\u0061\"", "9007199254740993"};
	char want[300];

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		listen_to(ids[i], "\"toolsListChanged\":true");
		(void)snprintf(
		    want, sizeof(want), ACK("%s", "\"toolsListChanged\":true"), ids[i]);
		peer_expect(p, want);
	}
	fleet_list(f, 0, LIST_TOOLS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	for (size_t i = sizeof(ids) / sizeof(ids[0]); i-- > 0;) {
		(void)snprintf(
		    want, sizeof(want), NOTE("tools/list_changed", "%s", ""), ids[i]);
		peer_expect(p, want);
	}
	/* An id in use is in use, for listens too. */
	peer_ask_modern(p, "7", "tools/list", "");
	(void)peer_expect_code(p, "7", -32600);
}
END_TEST

START_TEST(only_what_was_asked_for)
{
	listen_to("1", "\"promptsListChanged\":true");
	listen_to("2", "\"resourcesListChanged\":true");
	(void)peer_read(p);
	(void)peer_read(p);
	fleet_list(f, 0, LIST_TOOLS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect_silence(p);
	fleet_list(f, 0, LIST_PROMPTS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, NOTE("prompts/list_changed", "1", ""));
	/* Resources and templates are one matter. */
	fleet_list(f, 0, LIST_RESOURCES, "x", NULL);
	fleet_list(f, 0, LIST_TEMPLATES, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, NOTE("resources/list_changed", "2", ""));
	fleet_list(f, 0, LIST_TEMPLATES, "y", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(p, NOTE("resources/list_changed", "2", ""));
	/* A session on the same connection hears in its own way. */
	peer_initialize(p, "2025-11-25");
	fleet_list(f, 0, LIST_PROMPTS, "y", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(
	    p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}");
	peer_expect(p, NOTE("prompts/list_changed", "1", ""));
}
END_TEST

static const struct {
	const char *said, *passed; /* after the id; before it in _meta: more */
	const char *meta;
} updates[] = {
    {"{\"uri\":\"file:///a\"}", ",\"uri\":\"file:///a\"", ""},
    {"{ \"x\" : 1.0, \"uri\":\"file:\\/\\/\\/a\", \"x\":[ ] }",
	",\"x\":1.0,\"uri\":\"file:\\/\\/\\/a\",\"x\":[ ]", ""},
    {"{\"_meta\":{},\"uri\":\"file:///a\"}", ",\"uri\":\"file:///a\"", ""},
    {"{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"ours\"},"
     "\"uri\":\"file:///a\"}",
	",\"uri\":\"file:///a\"", ""},
    {"{\"uri\":\"file:///a\",\"_meta\":{\"k\":1e400,"
     "\"io.modelcontextprotocol/subscriptionId\":7,\"l\":{}}}",
	",\"uri\":\"file:///a\"", ",\"k\":1e400,\"l\":{}"},
    {"{\"uri\":\"file:///a/part\"}", ",\"uri\":\"file:///a/part\"", ""},
};

START_TEST(updates_in_the_words_of_their_owner)
{
	char want[512];

	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	listen_to("\"l\"", URIS("\"file:///a\""));
	peer_expect(p, ACK("\"l\"", URIS("\"file:///a\"")));
	fake_upstream_updated(f->u[0], updates[_i].said);
	(void)snprintf(want, sizeof(want),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
	    "\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
	    "subscriptionId\":\"l\"%s}%s}}",
	    updates[_i].meta, updates[_i].passed);
	peer_expect(p, want);
	fake_upstream_updated(f->u[1], "{\"uri\":\"file:///a\"}");
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///other\"}");
	peer_expect_silence(p);
}
END_TEST

START_TEST(several_listens_one_watch)
{
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	listen_to("1", URIS("\"file:///a\""));
	listen_to("2", URIS("\"file:///a\""));
	peer_expect(p, ACK("1", URIS("\"file:///a\"")));
	peer_expect(p, ACK("2", URIS("\"file:///a\"")));
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///a\"}");
	peer_expect(p, UPDATED("2", ",\"uri\":\"file:///a\""));
	peer_expect(p, UPDATED("1", ",\"uri\":\"file:///a\""));
	cancel("2");
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///a\"}");
	peer_expect(p, UPDATED("1", ",\"uri\":\"file:///a\""));
	peer_expect_silence(p);
}
END_TEST

/* ---- the end ---- */

START_TEST(cancelled_in_silence)
{
	listen_to("1", ALL "," URIS("\"file:///a\""));
	cancel("1"); /* before its acknowledgement */
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fake_loop_advance(f->loop, 100000);
	peer_expect_silence(p);
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	listen_to("1", ALL "," URIS("\"file:///a\""));
	(void)peer_read(p);
	cancel("1");
	cancel("1");
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///a\"}");
	fleet_list(f, 0, LIST_TOOLS, "x", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect_silence(p);
	peer_ask_modern(p, "1", "tools/list", "");
	(void)peer_read(p);
}
END_TEST

#define DONE(id)                                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                \
	",\"result\":{\"resultType\":\"complete\"," SUB(id) "}}"
#define OVER(id)                                                                         \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"        \
	"{\"requestId\":" id "}}"

START_TEST(ended_by_us)
{
	listen_to("\"l\"", ALL "," URIS("\"file:///b\""));
	fake_upstream_settle_watch(f->u[1], NULL);
	(void)peer_read(p);
	listen_to("0", URIS("\"file:///a\"")); /* not acknowledged yet */
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	client_finish(p->c);
	peer_expect(p, DONE("0"));
	peer_expect(p, OVER("0"));
	peer_expect(p, DONE("\"l\""));
	peer_expect(p, OVER("\"l\""));
	client_finish(p->c);
	peer_expect_silence(p);
}
END_TEST

START_TEST(listens_are_bounded)
{
	struct buf b;
	char id[16];

	for (unsigned i = 0; i < CAP_CLIENT_LISTENS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		listen_to(id, "\"toolsListChanged\":true");
		(void)peer_read(p);
	}
	listen_to("\"more\"", "");
	peer_expect_error(p, "\"more\"",
	    "{\"code\":-32603,\"message\":\"Too many subscriptions on this connection "
	    "are open; a retry may help\"}");
	cancel("0");
	listen_to("\"more\"", "");
	(void)peer_read(p);
	cancel("1");
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "\"resourceSubscriptions\":[\"x:/\"");
	for (unsigned i = 0; i < CAP_CLIENT_SUBSCRIPTIONS; i++)
		buf_addf(&b, ",\"x:/%u\"", i);
	buf_add_char(&b, ']');
	listen_to("\"most\"", buf_cstr(&b));
	buf_fini(&b);
	(void)peer_expect_code(p, "\"most\"", -32603);
}
END_TEST

static void
on_woken(void *arg)
{
	(void)arg;
}

/* What waits for the lists is bounded, whoever it belongs to. */
START_TEST(waiting_listens_are_bounded)
{
	struct gateway_waiter most = {.bytes = CAP_WAITING_BYTES - 10, .fn = on_woken};
	struct fleet *full = f;

	peer_free(p);
	fleet_free(full);
	f = fleet_new(1, NULL);
	p = peer_new(f);
	listen_to("1", URIS("\"x:/\""));
	ck_assert(!gateway_may_keep(f->g, CAP_WAITING_BYTES));
	cancel("1");
	ck_assert(gateway_may_keep(f->g, CAP_WAITING_BYTES));
	ck_assert(gateway_wait(f->g, &most));
	listen_to("1", URIS("\"x:/0123456789\""));
	(void)peer_expect_code(p, "1", -32603);
	listen_to("1", URIS("\"x:/\""));
	peer_expect_silence(p);
	gateway_unwait(&most);
	cancel("1");
}
END_TEST

/* Without memory for its resources none of them is honoured. */
START_TEST(short_of_memory)
{
	struct json_msg json;
	struct link_msg m = fleet_scan(
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\","
	    "\"params\":{" MODERN_META ",\"notifications\":{" URIS("\"file:///a\"") "}}}",
	    &json);
	unsigned none = 0;

	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	for (unsigned long n = 1; n < 12; n++) {
		mem_fail_at(n, 0);
		client_on_message(p->c, &m);
		mem_fail_at(0, 0);
		ck_assert_uint_le(p->n - p->taken, 1);
		if (p->n > p->taken)
			none += strstr(peer_read(p), "\"notifications\":{}") != NULL;
		cancel("1");
	}
	ck_assert_uint_ge(none, 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("listen");
	TCase *tc = tcase_create("listen");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, only_what_is_honoured, 0, (int)(sizeof(filters) / sizeof(filters[0])));
	tcase_add_loop_test(
	    tc, filters_that_are_none, 0, (int)(sizeof(faults) / sizeof(faults[0])));
	tcase_add_test(tc, acknowledged_when_owners_have_answered);
	tcase_add_test(tc, acknowledgement_is_first);
	tcase_add_test(tc, ids_keep_their_type);
	tcase_add_test(tc, only_what_was_asked_for);
	tcase_add_loop_test(tc, updates_in_the_words_of_their_owner, 0,
	    (int)(sizeof(updates) / sizeof(updates[0])));
	tcase_add_test(tc, several_listens_one_watch);
	tcase_add_test(tc, cancelled_in_silence);
	tcase_add_test(tc, ended_by_us);
	tcase_add_test(tc, listens_are_bounded);
	tcase_add_test(tc, waiting_listens_are_bounded);
	tcase_add_test(tc, short_of_memory);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
