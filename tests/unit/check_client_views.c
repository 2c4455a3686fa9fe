/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Clients of different views: what one is not shown does not exist for it. */
#include "mcpvisor/client.h"

#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fleet *f;
static struct peer *all, *dev; /* dev is shown beta alone */

static void
setup(void)
{
	struct fleet_conf *c = fleet_conf_new(2);
	unsigned view = 0;

	(void)fleet_conf_profile(c, "default", "*");
	(void)fleet_conf_profile(c, "dev", "beta");
	f = fleet_running_from(c);
	for (size_t i = 0; i < 2; i++) {
		const char *uri = i == 0 ? "file:///a" : "file:///b";

		fleet_list(f, i, LIST_TOOLS, "t", NULL);
		fleet_list(f, i, LIST_PROMPTS, "p", NULL);
		fleet_list(f, i, LIST_RESOURCES, uri, NULL);
	}
	fake_loop_advance(f->loop, 1000);
	ck_assert(gateway_view(f->g, "dev", &view));
	ck_assert_uint_eq(view, 1);
	all = peer_new(f);
	dev = peer_new_view(f, view);
}

static void
teardown(void)
{
	peer_free(all);
	peer_free(dev);
	fleet_free(f);
}

START_TEST(lists_of_its_view)
{
	peer_ask(all, "1", "tools/list", NULL);
	peer_expect_result(
	    all, "1", "{\"tools\":[{\"name\":\"alpha__t\"},{\"name\":\"beta__t\"}]}");
	peer_ask(dev, "1", "tools/list", NULL);
	peer_expect_result(dev, "1", "{\"tools\":[{\"name\":\"beta__t\"}]}");
	peer_ask(dev, "1", "prompts/list", NULL);
	peer_expect_result(dev, "1", "{\"prompts\":[{\"name\":\"beta__p\"}]}");
	peer_ask(dev, "1", "resources/list", NULL);
	peer_expect_result(dev, "1", "{\"resources\":[{\"uri\":\"file:///b\"}]}");
}
END_TEST

START_TEST(what_is_hidden_is_unknown)
{
	peer_ask(dev, "1", "tools/call", "{\"name\":\"alpha__t\"}");
	peer_expect_error(
	    dev, "1", "{\"code\":-32602,\"message\":\"Unknown tool: alpha__t\"}");
	peer_ask_modern(dev, "1", "tools/call", "\"name\":\"alpha__t\"");
	peer_expect_error(
	    dev, "1", "{\"code\":-32602,\"message\":\"Unknown tool: alpha__t\"}");
	peer_ask(dev, "1", "prompts/get", "{\"name\":\"alpha__p\"}");
	(void)peer_expect_code(dev, "1", -32602);
	peer_ask(dev, "1", "resources/read", "{\"uri\":\"file:///a\"}");
	(void)peer_expect_code(dev, "1", -32002);
	peer_initialize(dev, "2025-11-25");
	peer_ask(dev, "1", "resources/subscribe", "{\"uri\":\"file:///a\"}");
	(void)peer_expect_code(dev, "1", -32002);
	peer_ask(dev, "1", "completion/complete",
	    "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__p\"}}");
	(void)peer_expect_code(dev, "1", -32602);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 0);
	/* The rest is there. */
	peer_ask(dev, "1", "tools/call", "{\"name\":\"beta__t\"}");
	fake_upstream_result(f->u[1], 0, "{}");
	peer_expect_result(dev, "1", "{}");
	peer_ask(all, "1", "tools/call", "{\"name\":\"alpha__t\"}");
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect_result(all, "1", "{}");
}
END_TEST

START_TEST(hello_of_its_view)
{
	const char *said;

	fake_upstream_set_caps(
	    f->u[0], (struct upstream_caps){.tools = true, .prompts = true});
	fake_upstream_set_caps(f->u[1], (struct upstream_caps){.tools = true});
	fake_upstream_set_instructions(f->u[0], "Of alpha.");
	fake_upstream_set_instructions(f->u[1], "Of beta.");
	for (unsigned modern = 0; modern < 2; modern++) {
		if (modern)
			peer_ask_modern(dev, "1", "server/discover", "");
		else
			peer_ask(dev, "1", "initialize",
			    "{\"protocolVersion\":\"2025-11-25\"}");
		said = peer_read(dev);
		ck_assert_ptr_nonnull(
		    strstr(said, "\"capabilities\":{\"tools\":{\"listChanged\":true}},"));
		ck_assert_ptr_nonnull(strstr(said, "Of beta."));
		ck_assert_ptr_null(strstr(said, "Of alpha."));
	}
	peer_ask(all, "1", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	said = peer_read(all);
	ck_assert_ptr_nonnull(strstr(said, "\"prompts\""));
	ck_assert_ptr_nonnull(strstr(said, "Of alpha."));
}
END_TEST

#define CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"

START_TEST(hears_of_its_view)
{
	peer_initialize(all, "2025-11-25");
	peer_initialize(dev, "2025-11-25");
	peer_ask(all, "1", "tools/list", NULL);
	(void)peer_read(all);
	peer_ask(dev, "1", "tools/list", NULL);
	(void)peer_read(dev);
	fleet_list(f, 0, LIST_TOOLS, "t", "new", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(all, CHANGED);
	peer_expect_silence(dev);
	fleet_list(f, 1, LIST_TOOLS, "t", "new", NULL);
	fake_loop_advance(f->loop, 1000);
	peer_expect(all, CHANGED);
	peer_expect(dev, CHANGED);
}
END_TEST

START_TEST(listens_to_its_view)
{
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	fake_upstream_set_watching(f->u[1], FAKE_WATCH_YES);
	peer_ask_modern(dev, "1", "subscriptions/listen",
	    "\"notifications\":{\"resourceSubscriptions\":[\"file:///a\",\"file:///"
	    "b\"]}");
	ck_assert_ptr_nonnull(
	    strstr(peer_read(dev), "\"resourceSubscriptions\":[\"file:///b\"]"));
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 0);
	client_finish(dev->c);
	dev->taken = dev->n;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_views");
	TCase *tc = tcase_create("client_views");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, lists_of_its_view);
	tcase_add_test(tc, what_is_hidden_is_unknown);
	tcase_add_test(tc, hello_of_its_view);
	tcase_add_test(tc, hears_of_its_view);
	tcase_add_test(tc, listens_to_its_view);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
