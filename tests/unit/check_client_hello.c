/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* initialize and server/discover: revisions, what is declared, sessions. */
#include "mcpvisor/client.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVER                                                                           \
	"\"serverInfo\":{\"name\":\"mcpvisor\",\"title\":\"mcpvisor\",\"version\":"      \
	"\"" MCPVISOR_VERSION "\"}"
#define ALL                                                                              \
	"{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},"          \
	"\"resources\":{\"subscribe\":true,\"listChanged\":true},\"completions\":{},"    \
	"\"logging\":{}}"
#define NO_VERSION(got)                                                                  \
	"{\"code\":-32602,\"message\":\"Invalid params: protocolVersion must be a "      \
	"non-empty string" got ". Retrying unchanged will fail.\"}"

/* ---- revisions ---- */

static const struct {
	const char *params, *revision; /* NULL: refused */
	const char *got;
} asked[] = {
    {"{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"clientInfo\":{}}",
	"2024-11-05", ""},
    {"{\"protocolVersion\":\"2025-03-26\"}", "2025-03-26", ""},
    {"{\"protocolVersion\":\"2025-06-18\"}", "2025-06-18", ""},
    {"{\"protocolVersion\":\"2025-11-25\"}", "2025-11-25", ""},
    {"{\"protocolVersion\":\"2025-11-2\\u0035\"}", "2025-11-25", ""},
    /* Unknown, or not to be spoken after initialize: the latest that is. */
    {"{\"protocolVersion\":\"2026-07-28\"}", "2025-11-25", ""},
    {"{\"protocolVersion\":\"2099-01-01\"}", "2025-11-25", ""},
    {"{\"protocolVersion\":\"1\"}", "2025-11-25", ""},
    {"{\"protocolVersion\":\"\"}", NULL, "; got \\\"\\\""},
    {"{\"protocolVersion\":20251125}", NULL, "; got 20251125"},
    {"{\"protocolVersion\":null}", NULL, "; got null"},
    {"{}", NULL, ""},
    {NULL, NULL, ""},
};

START_TEST(revision_is_agreed_on)
{
	struct fleet *f = fleet_running(1);
	struct peer *p = peer_new(f);
	char want[600];

	peer_ask(p, "0", "initialize", asked[_i].params);
	if (asked[_i].revision == NULL) {
		(void)snprintf(want, sizeof(want), NO_VERSION("%s"), asked[_i].got);
		peer_expect_error(p, "0", want);
	} else {
		(void)snprintf(want, sizeof(want),
		    "{\"protocolVersion\":\"%s\",\"capabilities\":" ALL "," SERVER "}",
		    asked[_i].revision);
		peer_expect_result(p, "0", want);
	}
	peer_free(p);
	fleet_free(f);
}
END_TEST

/* ---- what is declared ---- */

static const struct {
	struct upstream_caps caps;
	const char *want;
} declared[] = {
    {{.tools = false}, "{}"},
    {{.tools = true}, "{\"tools\":{\"listChanged\":true}}"},
    {{.prompts = true, .logging = true},
	"{\"prompts\":{\"listChanged\":true},\"logging\":{}}"},
    {{.resources = true, .completions = true},
	"{\"resources\":{\"subscribe\":false,\"listChanged\":true},\"completions\":{}}"},
    {{.resources = true, .subscribe = true},
	"{\"resources\":{\"subscribe\":true,\"listChanged\":true}}"},
};

START_TEST(declares_what_upstreams_offer)
{
	struct fleet *f = fleet_running(1);
	struct peer *p = peer_new(f);
	char want[900];

	fake_upstream_set_caps(f->u[0], declared[_i].caps);
	fake_upstream_set_instructions(f->u[0], "Say \"a\".\n");
	peer_ask(p, "0", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	(void)snprintf(want, sizeof(want),
	    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s," SERVER
	    ",\"instructions\":\"## alpha\\n\\nSay \\\"a\\\".\\n\"}",
	    declared[_i].want);
	peer_expect_result(p, "0", want);
	peer_ask_modern(p, "1", "server/discover", "");
	(void)snprintf(want, sizeof(want),
	    "{\"resultType\":\"complete\"," SERVER_META
	    ",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":%s"
	    ",\"instructions\":\"## alpha\\n\\nSay \\\"a\\\".\\n\""
	    ",\"ttlMs\":0,\"cacheScope\":\"private\"}",
	    declared[_i].want);
	peer_expect_result(p, "1", want);
	peer_free(p);
	fleet_free(f);
}
END_TEST

START_TEST(hello_waits_for_the_lists)
{
	struct upstream_caps tools = {.tools = true};
	struct fleet *f = fleet_new(2, NULL);
	struct peer *p = peer_new(f);

	gateway_start(f->g);
	peer_ask(p, "0", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	peer_ask_modern(p, "1", "server/discover", "");
	/* initialize must not be cancelled; the other may. */
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":0}}");
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	fleet_ready(f, 0);
	fake_loop_advance(f->loop, FLEET_WAIT_MS - 1);
	peer_expect_silence(p);
	fleet_ready(f, 1);
	for (size_t i = 0; i < 2; i++)
		fake_upstream_set_caps(f->u[i], tools);
	(void)peer_read(p);
	peer_expect_silence(p);
	peer_free(p);
	fleet_free(f);
}
END_TEST

/* Past the wait, what is still missing is declared in advance. */
START_TEST(declares_everything_when_it_cannot_know)
{
	struct upstream_caps none = {.tools = true};
	struct fleet *f = fleet_new(2, NULL);
	struct peer *p = peer_new(f);

	gateway_start(f->g);
	fleet_ready(f, 0);
	fake_upstream_set_caps(f->u[0], none);
	peer_ask(p, "0", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	peer_expect_silence(p);
	fake_loop_advance(f->loop, FLEET_WAIT_MS);
	peer_expect_result(p, "0",
	    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" ALL "," SERVER "}");
	peer_free(p);
	fleet_free(f);
}
END_TEST

/* ---- sessions ---- */

START_TEST(client_info_goes_along)
{
	struct fleet *f = fleet_full();
	struct peer *p = peer_new(f);

	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	ck_assert_str_eq(fake_upstream_last(f->u[0])->client_info, "");
	ck_assert_int_eq(fake_upstream_last(f->u[0])->level, MCP_LV_MAX);
	peer_initialize(p, "2025-06-18");
	peer_ask(p, "2", "logging/setLevel", "{\"level\":\"warning\"}");
	peer_expect_result(p, "2", "{}");
	peer_ask(p, "3", "tools/call", "{\"name\":\"alpha__a\"}");
	ck_assert_str_eq(fake_upstream_last(f->u[0])->client_info,
	    "{\"name\":\"c\",\"version\":\"1\"}");
	ck_assert_int_eq(fake_upstream_last(f->u[0])->level, MCP_LV_WARNING);
	ck_assert_int_eq(fake_upstream_level(f->u[1]), MCP_LV_WARNING);
	/* A modern request speaks for itself. */
	peer_ask_modern(p, "4", "tools/call", "\"name\":\"alpha__a\"");
	ck_assert_int_eq(fake_upstream_last(f->u[0])->level, MCP_LV_MAX);
	/* The next session starts with nothing. */
	peer_initialize(p, "2025-06-18");
	peer_ask(p, "5", "tools/call", "{\"name\":\"alpha__a\"}");
	ck_assert_int_eq(fake_upstream_last(f->u[0])->level, MCP_LV_MAX);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_MAX);
	peer_free(p);
	fleet_free(f);
}
END_TEST

/* A subscribe that still waits belongs to the session that ends: it is answered. */
START_TEST(second_initialize_ends_the_first_session)
{
	struct fleet *f = fleet_full();
	struct peer *p = peer_new(f);

	peer_initialize(p, "2025-11-25");
	peer_ask(p, "1", "resources/subscribe", "{\"uri\":\"file:///a\"}");
	peer_ask(p, "2", "resources/subscribe", "{\"uri\":\"file:///b\"}");
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "1", "{}");
	peer_ask(p, "3", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	(void)peer_expect_code(p, "2", -32603);
	ck_assert_ptr_nonnull(strstr(peer_read(p), "\"id\":3,\"result\""));
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(fake_upstream_n_watches(f->u[i]), 0);
	peer_free(p);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_hello");
	TCase *tc = tcase_create("client_hello");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(
	    tc, revision_is_agreed_on, 0, (int)(sizeof(asked) / sizeof(asked[0])));
	tcase_add_loop_test(tc, declares_what_upstreams_offer, 0,
	    (int)(sizeof(declared) / sizeof(declared[0])));
	tcase_add_test(tc, hello_waits_for_the_lists);
	tcase_add_test(tc, declares_everything_when_it_cannot_know);
	tcase_add_test(tc, client_info_goes_along);
	tcase_add_test(tc, second_initialize_ends_the_first_session);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
