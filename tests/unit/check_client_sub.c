/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* resources/subscribe and unsubscribe of a legacy client. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URI_A	"{\"uri\":\"file:///a\"}"
#define UPDATED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","

static struct fleet *f;
static struct peer *p;

static void
setup(void)
{
	f = fleet_full();
	p = peer_new(f);
	peer_initialize(p, "2025-11-25");
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
subscribe(const char *id, const char *params)
{
	peer_ask(p, id, "resources/subscribe", params);
}

START_TEST(answered_when_the_owner_has_answered)
{
	subscribe("1", URI_A);
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 1);
	/* Not before its yes. */
	fake_upstream_updated(f->u[0], URI_A);
	peer_expect_silence(p);
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "1", "{}");
	fake_upstream_updated(f->u[0], "{\"x\":1.0,\"uri\":\"file:\\/\\/\\/a\"}");
	peer_expect(p, UPDATED "\"params\":{\"x\":1.0,\"uri\":\"file:\\/\\/\\/a\"}}");
	fake_upstream_updated(f->u[1], URI_A);
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///other\"}");
	peer_expect_silence(p);
	peer_ask(p, "2", "resources/unsubscribe", "{\"uri\":\"file:///\\u0061\"}");
	peer_expect_result(p, "2", "{}");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fake_upstream_updated(f->u[0], URI_A);
	peer_expect_silence(p);
}
END_TEST

/* The id of our own listen at a modern upstream is none of its business. */
START_TEST(our_subscription_id_is_cut)
{
	static const struct {
		const char *said, *passed;
	} rows[] = {
	    {"{\"uri\":\"file:///a\",\"_meta\":{\"io.modelcontextprotocol/"
	     "subscriptionId\":"
	     "7}}",
		"{\"uri\":\"file:///a\",\"_meta\":{}}"},
	    {"{\"_meta\":{\"k\":1.0,\"io.modelcontextprotocol/subscriptionId\":\"x\" "
	     "},\"uri\":\"file:///a\"}",
		"{\"_meta\":{\"k\":1.0 },\"uri\":\"file:///a\"}"},
	    {"{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":7,\"k\":1.0},"
	     "\"uri\":\"file:///a\"}",
		"{\"_meta\":{\"k\":1.0},\"uri\":\"file:///a\"}"},
	    {"{\"_meta\":{\"k\":[]},\"uri\":\"file:///a\"}",
		"{\"_meta\":{\"k\":[]},\"uri\":\"file:///a\"}"},
	};
	char line[512];

	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	subscribe("1", URI_A);
	peer_expect_result(p, "1", "{}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_upstream_updated(f->u[0], rows[i].said);
		(void)snprintf(
		    line, sizeof(line), UPDATED "\"params\":%s}", rows[i].passed);
		peer_expect(p, line);
	}
}
END_TEST

START_TEST(second_subscribe_is_the_same)
{
	subscribe("1", URI_A);
	/* It is about to have it: both get the owner's answer. */
	subscribe("2", "{\"uri\":\"file:\\/\\/\\/a\"}");
	peer_expect_silence(p);
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "2", "{}");
	peer_expect_result(p, "1", "{}");
	/* It has it already. */
	subscribe("3", URI_A);
	peer_expect_result(p, "3", "{}");
	fake_upstream_updated(f->u[0], URI_A);
	peer_expect(p, UPDATED "\"params\":" URI_A "}");
	peer_expect_silence(p);
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
}
END_TEST

START_TEST(refused_by_the_owner)
{
	subscribe("1", URI_A);
	fake_upstream_settle_watch(
	    f->u[0], "{ \"code\":-32002,\"message\":\"no\",\"data\":1e400}");
	peer_expect_error(p, "1", "{ \"code\":-32002,\"message\":\"no\",\"data\":1e400}");
	subscribe("1", URI_A);
	fake_upstream_fail_watch(f->u[0], MV_TIMEOUT);
	peer_expect_error(p, "1",
	    "{\"code\":-32603,\"message\":\"Upstream alpha: no answer within the time "
	    "limit "
	    "(resources/subscribe); a retry may help\",\"data\":{\"upstream\":\"alpha\","
	    "\"reason\":\"timeout\",\"retryable\":true}}");
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_NO);
	subscribe("1", URI_A);
	peer_expect_error(p, "1",
	    "{\"code\":-32601,\"message\":\"The upstream of resource \\\"file:///a\\\" "
	    "takes no subscriptions. Retrying unchanged will fail.\"}");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

START_TEST(refused_by_us)
{
	static const struct upstream_caps none = {.resources = true};
	static char uri[CAP_URI_BYTES + 64];

	subscribe("1", "{\"uri\":\"x:/\"}");
	peer_expect_error(p, "1",
	    "{\"code\":-32002,\"message\":\"Resource not found: x:/\","
	    "\"data\":{\"uri\":\"x:/\"}}");
	fake_upstream_set_caps(f->u[0], none);
	subscribe("1", URI_A);
	peer_expect_error(p, "1",
	    "{\"code\":-32601,\"message\":\"The upstream of resource \\\"file:///a\\\" "
	    "takes no subscriptions. Retrying unchanged will fail.\"}");
	fake_upstream_set_state(f->u[1], UPSTREAM_ST_DOWN, "died");
	subscribe("1", "{\"uri\":\"file:///b\"}");
	(void)peer_expect_code(p, "1", -32603);
	memset(uri, 'u', sizeof(uri) - 1);
	memcpy(uri, "{\"uri\":\"", 8);
	memcpy(uri + sizeof(uri) - 3, "\"}", 2);
	subscribe("1", uri);
	(void)peer_expect_code(p, "1", -32002);
	subscribe("1", "{\"uri\":7}");
	(void)peer_expect_code(p, "1", -32602);
}
END_TEST

START_TEST(cancelled_while_it_waits)
{
	subscribe("1", URI_A);
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	/* Overtaken by the opposite: both are answered. */
	subscribe("2", URI_A);
	peer_ask(p, "3", "resources/unsubscribe", URI_A);
	peer_expect_result(p, "2", "{}");
	peer_expect_result(p, "3", "{}");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
}
END_TEST

START_TEST(two_clients_one_watch)
{
	struct peer *q = peer_new(f);

	peer_initialize(q, "2025-11-25");
	subscribe("1", URI_A);
	peer_ask(q, "1", "resources/subscribe", URI_A);
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "1", "{}");
	peer_expect_result(q, "1", "{}");
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
	fake_upstream_updated(f->u[0], URI_A);
	peer_expect(p, UPDATED "\"params\":" URI_A "}");
	peer_expect(q, UPDATED "\"params\":" URI_A "}");
	peer_ask(q, "2", "resources/unsubscribe", URI_A);
	peer_expect_result(q, "2", "{}");
	fake_upstream_updated(f->u[0], URI_A);
	peer_expect(p, UPDATED "\"params\":" URI_A "}");
	peer_expect_silence(q);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	peer_free(q);
}
END_TEST

START_TEST(subscriptions_are_bounded)
{
	char params[64], id[16];

	fleet_list(f, 0, LIST_TEMPLATES, "n:{x}", NULL);
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	for (unsigned i = 0; i <= CAP_CLIENT_SUBSCRIPTIONS; i++) {
		(void)snprintf(params, sizeof(params), "{\"uri\":\"n:%u\"}", i);
		(void)snprintf(id, sizeof(id), "%u", i);
		subscribe(id, params);
		if (i < CAP_CLIENT_SUBSCRIPTIONS)
			peer_expect_result(p, id, "{}");
		else
			(void)peer_expect_code(p, id, -32603);
	}
	peer_ask(p, "\"u\"", "resources/unsubscribe", "{\"uri\":\"n:0\"}");
	peer_expect_result(p, "\"u\"", "{}");
	subscribe("\"s\"", params);
	peer_expect_result(p, "\"s\"", "{}");
	/* A new session has none of them. */
	peer_initialize(p, "2025-11-25");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
}
END_TEST

/* A fleet with another alpha, or without one. */
static void
reload(bool alpha)
{
	struct fleet_conf *c = fleet_conf_new(0);

	if (alpha)
		fleet_conf_add(c, "alpha")->cwd = mem_xstrdup("/elsewhere");
	(void)fleet_conf_add(c, "beta");
	fleet_apply(f, c, 0);
	fake_loop_settle(f->loop);
}

/* What was dropped without a word is no subscription: who asks again gets a new answer.
 */
START_TEST(dropped_is_not_there)
{
	subscribe("1", "{\"uri\":\"db://1\"}");
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "1", "{}");
	reload(true);
	fleet_ready(f, 0);
	fake_upstream_settle_watch(f->u[0], "{\"code\":-1,\"message\":\"no\"}");
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	subscribe("2", "{\"uri\":\"db://1\"}");
	peer_expect_silence(p);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	fake_upstream_settle_watch(f->u[0], NULL);
	peer_expect_result(p, "2", "{}");
	fake_upstream_updated(f->u[0], "{\"uri\":\"db://1\"}");
	peer_expect(p, UPDATED "\"params\":{\"uri\":\"db://1\"}}");
}
END_TEST

/* Its owner goes while it is asked. */
START_TEST(refusal_names_the_resource)
{
	subscribe("1", "{\"uri\":\"db:\\/\\/1\"}");
	peer_expect_silence(p);
	reload(false);
	peer_expect_error(p, "1",
	    "{\"code\":-32002,\"message\":\"Resource not found: db://1\","
	    "\"data\":{\"uri\":\"db://1\"}}");
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

static void
on_woken(void *arg)
{
	(void)arg;
}

/* While the lists come in: what waits is bounded, and what is taken back is over. */
START_TEST(before_the_lists)
{
	struct gateway_waiter most = {.bytes = CAP_WAITING_BYTES - 4, .fn = on_woken};
	struct fleet *slow = fleet_new(1, NULL);
	struct peer *q = peer_new(slow);

	peer_ask(q, "1", "resources/subscribe", "{\"uri\":\"x:/\"}");
	peer_ask(q, "2", "resources/subscribe", "{\"uri\":\"y:/\"}");
	peer_expect_silence(q);
	peer_ask(q, "3", "resources/unsubscribe", "{\"uri\":\"\\u0078:/\"}");
	peer_expect_result(q, "1", "{}");
	peer_expect_result(q, "3", "{}");
	peer_say(q, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":2}}");
	ck_assert_uint_eq(client_in_flight(q->c), 0);
	ck_assert(gateway_may_keep(slow->g, CAP_WAITING_BYTES));
	ck_assert(gateway_wait(slow->g, &most));
	peer_ask(q, "4", "resources/subscribe", "{\"uri\":\"x:/\"}");
	ck_assert_ptr_nonnull(
	    strstr(peer_expect_code(q, "4", -32603), "\"reason\":\"busy\""));
	gateway_start(slow->g);
	fleet_list(slow, 0, LIST_RESOURCES, "x:/", NULL);
	fleet_ready(slow, 0);
	ck_assert_uint_eq(fake_upstream_watched(slow->u[0]), 0);
	peer_free(q);
	fleet_free(slow);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_sub");
	TCase *tc = tcase_create("client_sub");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, answered_when_the_owner_has_answered);
	tcase_add_test(tc, our_subscription_id_is_cut);
	tcase_add_test(tc, second_subscribe_is_the_same);
	tcase_add_test(tc, refused_by_the_owner);
	tcase_add_test(tc, refused_by_us);
	tcase_add_test(tc, cancelled_while_it_waits);
	tcase_add_test(tc, two_clients_one_watch);
	tcase_add_test(tc, subscriptions_are_bounded);
	tcase_add_test(tc, dropped_is_not_there);
	tcase_add_test(tc, refusal_names_the_resource);
	tcase_add_test(tc, before_the_lists);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
