/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* A client that is finished, freed, or does not read. */
#include "mcpvisor/client.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define STOPPING_(end)                                                                   \
	"{\"code\":-32603,\"message\":\"mcpvisor is stopping; " end "\","                \
	"\"data\":{\"reason\":\"stopping\",\"retryable\":true}}"
#define STOPPING STOPPING_("a retry may help")
/* Of a call that has gone out. */
#define STOPPING_SENT STOPPING_("the call may have had effects, so check before a retry")

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
	fleet_free(f);
}

/* Something of every kind in flight, at a fleet of which beta has not come yet. */
static void
begin_everything(void)
{
	struct fleet *was = f;

	peer_free(p);
	f = fleet_new(2, NULL);
	p = peer_new(f);
	gateway_start(f->g);
	fleet_free(was);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	fleet_ready(f, 0);
	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_ask(p, "2", "tools/call", "{\"name\":\"beta__a\"}"); /* waits for beta */
	peer_ask(p, "3", "tools/list", NULL);
	peer_ask(p, "4", "resources/subscribe", "{\"uri\":\"file:///a\"}");
	peer_ask(p, "5", "initialize", "{\"protocolVersion\":\"2025-11-25\"}");
	/* The new session took the subscribe with it. */
	(void)peer_expect_code(p, "4", -32603);
	peer_ask(p, "4", "resources/subscribe", "{\"uri\":\"file:///a\"}");
	peer_expect_silence(p);
	ck_assert_uint_eq(client_in_flight(p->c), 5);
}

START_TEST(finished_with_an_answer_for_all)
{
	begin_everything();
	client_finish(p->c);
	peer_expect_error(p, "4", STOPPING);
	peer_expect_error(p, "5", STOPPING);
	peer_expect_error(p, "3", STOPPING);
	peer_expect_error(p, "2", STOPPING);
	peer_expect_error(p, "1", STOPPING_SENT);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	ck_assert_uint_eq(p->idle, 1);
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fleet_ready(f, 1);
	peer_expect_silence(p);
	peer_free(p);
}
END_TEST

START_TEST(freed_without_a_word)
{
	begin_everything();
	peer_free(p);
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fleet_ready(f, 1);
	fleet_list(f, 0, LIST_TOOLS, "b", NULL);
	fake_loop_advance(f->loop, 1000);
	client_free(NULL);
}
END_TEST

/* One that does not read is of no use: told once, from a turn of its own. */
START_TEST(answers_that_are_not_taken)
{
	p->refuses = MV_BUSY;
	peer_ask(p, "1", "ping", NULL);
	peer_ask(p, "2", "ping", NULL);
	ck_assert_uint_eq(p->dead, 0);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(p->dead, 1);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	/* A closed one is known to be closed. */
	p->refuses = MV_CLOSED;
	peer_ask(p, "3", "ping", NULL);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(p->dead, 1);
	/* Freed before it is told. */
	p->refuses = MV_NOMEM;
	peer_ask(p, "4", "ping", NULL);
	peer_free(p);
	fake_loop_settle(f->loop);
}
END_TEST

START_TEST(idle_when_the_last_is_answered)
{
	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_ask(p, "2", "tools/call", "{\"name\":\"beta__a\"}");
	peer_ask_modern(p, "3", "subscriptions/listen", "\"notifications\":{}");
	(void)peer_read(p);
	ck_assert_uint_eq(client_in_flight(p->c), 2);
	fake_upstream_result(f->u[0], 0, "{}");
	ck_assert_uint_eq(p->idle, 0);
	fake_upstream_result(f->u[1], 0, "{}");
	ck_assert_uint_eq(p->idle, 1);
	peer_expect_result(p, "1", "{}");
	peer_expect_result(p, "2", "{}");
	peer_free(p);
}
END_TEST

/* Two clients use the same ids at the same time. */
START_TEST(clients_do_not_meet)
{
	struct peer *q = peer_new(f);

	peer_ask(
	    p, "0", "tools/call", "{\"name\":\"alpha__a\",\"arguments\":{\"t\":\"p\"}}");
	peer_ask(
	    q, "0", "tools/call", "{\"name\":\"alpha__a\",\"arguments\":{\"t\":\"q\"}}");
	ck_assert_uint_ne(
	    fake_upstream_sent(f->u[0], 0)->id, fake_upstream_sent(f->u[0], 1)->id);
	fake_upstream_result(f->u[0], 1, "{\"t\":\"q\"}");
	fake_upstream_result(f->u[0], 0, "{\"t\":\"p\"}");
	peer_expect_result(p, "0", "{\"t\":\"p\"}");
	peer_expect_result(q, "0", "{\"t\":\"q\"}");
	/* Nor does one's cancel touch the other's call. */
	peer_ask(p, "0", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_say(q, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":0}}");
	ck_assert(!fake_upstream_sent(f->u[0], 2)->cancelled);
	peer_free(q);
	ck_assert(!fake_upstream_sent(f->u[0], 2)->cancelled);
	peer_free(p);
	ck_assert(fake_upstream_sent(f->u[0], 2)->cancelled);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_end");
	TCase *tc = tcase_create("client_end");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, finished_with_an_answer_for_all);
	tcase_add_test(tc, freed_without_a_word);
	tcase_add_test(tc, answers_that_are_not_taken);
	tcase_add_test(tc, idle_when_the_last_is_answered);
	tcase_add_test(tc, clients_do_not_meet);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
