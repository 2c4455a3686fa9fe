/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Upstreams without a process: when they go to sleep, and what wakes them. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MS 5000
#define TOOLS	"{\"tools\":{\"listChanged\":true}}"
#define ONE	"{\"tools\":[{\"name\":\"a\"}]}"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"t\"}}"
#define ACK                                                                              \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","  \
	"\"params\":{\"notifications\":{},\"_meta\":{"                                   \
	"\"io.modelcontextprotocol/subscriptionId\":%llu}}}"
#define IS_LEGACY "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}"
/* What an earlier process left, of a legacy upstream with one tool. */
#define MEMORY                                                                           \
	"{\"mcpvisor_memory\":1,\"era\":\"legacy\",\"revision\":\"2025-06-18\","         \
	"\"capabilities\":[\"tools\"],\"lists\":{\"tools\":{\"count\":1,\"private\":"    \
	"true},\"prompts\":{\"count\":0,\"private\":true},\"resources\":{\"count\":0,"   \
	"\"private\":true},\"resourceTemplates\":{\"count\":0,\"private\":true}}}\n"     \
	"\"\"\n"                                                                         \
	"12 {\"name\":\"a\"}\n"

static void
check_state(const struct uowner *o, enum upstream_state st)
{
	ck_assert_msg(upstream_state(o->u) == st, "is %s, not %s",
	    upstream_state_text(upstream_state(o->u)), upstream_state_text(st));
	uowner_check(o);
}

static struct uowner *
owner_of(enum start_mode start, uint32_t idle_ms)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");

	conf->start = start;
	conf->idle_stop_ms = idle_ms;
	return uowner_new_of(conf);
}

/* A legacy one with one tool, just listed. */
static struct uowner *
owner_idle(uint32_t idle_ms)
{
	struct uowner *o = owner_of(START_EAGER, idle_ms);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	return o;
}

static struct uowner *
owner_asleep(void)
{
	struct uowner *o = owner_of(START_ON_USE, IDLE_MS);

	ck_assert_int_eq(upstream_take_memory(o->u, MEMORY, strlen(MEMORY)), MV_OK);
	upstream_start(o->u);
	check_state(o, UPSTREAM_ST_ASLEEP);
	return o;
}

/* It is asked who it is and answers. */
static void
greet(struct uowner *o)
{
	uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	check_state(o, UPSTREAM_ST_READY);
}

/* ---- start ---- */

START_TEST(on_use_with_lists_sleeps)
{
	struct uowner *o = owner_asleep();

	ck_assert_uint_eq(fake_child_ups(o->u->child), 0);
	ck_assert_uint_eq(o->settled, 1);
	ck_assert(upstream_list(o->u, LIST_TOOLS)->is_known);
	ck_assert_int_eq(upstream_list(o->u, LIST_TOOLS)->ttl_ms, -1);
	ck_assert_int_eq(upstream_refusal(o->u), MV_OK);
	upstream_start(o->u); /* is no use */
	check_state(o, UPSTREAM_ST_ASLEEP);
	fake_loop_advance(o->loop, 10 * IDLE_MS);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 0);
	uowner_free(o);
}
END_TEST

/* Somebody has to tell what it has: it starts once. */
START_TEST(on_use_without_lists_starts_for_them)
{
	struct uowner *o = owner_of(START_ON_USE, _i == 0 ? IDLE_MS : 0);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	fake_loop_advance(o->loop, IDLE_MS);
	check_state(o, _i == 0 ? UPSTREAM_ST_ASLEEP : UPSTREAM_ST_READY);
	uowner_free(o);
}
END_TEST

/* ---- waking ---- */

START_TEST(calls_wake_it_once)
{
	struct uowner *o = owner_asleep();
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	check_state(o, UPSTREAM_ST_INIT);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 1);
	ck_assert_uint_eq(upstream_stats(o->u).held, 2);
	greet(o);
	ck_assert_uint_eq(upstream_stats(o->u).held, 0);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert(a.done == 1 && b.done == 1);
	ck_assert_uint_eq(o->settled, 1);
	/* The list that came is the one that was known. */
	ck_assert_uint_eq(o->changes[LIST_TOOLS], 0);
	uowner_free(o);
}
END_TEST

/* There is nothing to wake, but whoever waits for it hears so. */
START_TEST(one_that_cannot_run_says_so)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct uowner *o;

	conf->broken = MV_CONF;
	(void)snprintf(conf->broken_text, sizeof(conf->broken_text), "no command");
	o = uowner_new_of(conf);
	upstream_wake(o->u);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	ck_assert_uint_eq(o->settled, 1);
	ck_assert_str_eq(upstream_reason(o->u), "no command");
	upstream_wake(o->u);
	ck_assert_uint_eq(o->settled, 1);
	uowner_free(o);
}
END_TEST

START_TEST(watch_and_wish_wake_it)
{
	struct uowner *o = owner_asleep();
	struct watcher w;

	if (_i == 0)
		upstream_wake(o->u);
	else
		watcher_watch(o, &w, "\"a:\"");
	uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
	uowner_heard(INITIALIZED);
	if (_i == 1) {
		uowner_answer(o, uowner_heard_request("resources/subscribe"), "{}");
		watcher_check(&w, MV_OK);
		upstream_unwatch(&w.watch);
	}
	check_state(o, UPSTREAM_ST_READY);
	uowner_free(o);
}
END_TEST

/* None of these is a use. */
START_TEST(sleeps_on)
{
	struct uowner *o = owner_asleep();
	struct ucall c = {.done = 0};

	for (unsigned k = 0; k < LIST_MAX; k++)
		upstream_refresh_stale(o->u, (enum list_kind)k);
	upstream_set_level(o->u, MCP_LV_DEBUG);
	upstream_hold(o->u, true);
	upstream_hold(o->u, false);
	ck_assert_int_eq(upstream_ask(o->u, &c.req, METHOD_PING, ""), MV_STARTING);
	fake_loop_settle(o->loop);
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 0);
	uowner_free(o);
}
END_TEST

START_TEST(start_that_fails_says_so)
{
	struct uowner *o = owner_asleep();
	struct ucall c = {.done = 0};

	fake_child_refuse(o->u->child, 1);
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_BACKOFF);
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u), "cannot create a process");
	uowner_free(o);
}
END_TEST

/* It is used while its last process is still on its way out. */
START_TEST(woken_before_it_is_gone)
{
	struct uowner *o = owner_idle(IDLE_MS);
	struct ucall c = {.done = 0};

	fake_loop_advance(o->loop, IDLE_MS);
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert(fake_link_is_closed(o->u->link));
	ucall_send(o, &c, CALL);
	check_state(o, UPSTREAM_ST_WAKING);
	/* Its last words are not for anybody, and the end of them is no death. */
	uowner_say(o, "%s", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
	fake_link_end(o->u->link);
	fake_loop_advance(o->loop, 10 * MUTE_MS);
	ck_assert_uint_eq(c.done, 0);
	uowner_die(o);
	check_state(o, UPSTREAM_ST_INIT);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 2);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 0);
	greet(o);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	uowner_free(o);
}
END_TEST

/* ---- falling asleep ---- */

START_TEST(sleeps_when_unused)
{
	struct uowner *o = owner_idle(IDLE_MS);
	struct ucall c = {.done = 0};

	fake_loop_advance(o->loop, IDLE_MS - 1);
	ucall_send(o, &c, CALL);
	fake_loop_advance(o->loop, 3 * IDLE_MS);
	check_state(o, UPSTREAM_ST_READY);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	fake_loop_advance(o->loop, IDLE_MS - 1);
	check_state(o, UPSTREAM_ST_READY);
	fake_loop_advance(o->loop, 1);
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_STOPPING);
	ck_assert_uint_eq(upstream_list(o->u, LIST_TOOLS)->n, 1);
	uowner_die(o);
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_DOWN);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 0);
	/* An eager one sleeps and wakes like any other. */
	ucall_send(o, &c, CALL);
	greet(o);
	uowner_free(o);
}
END_TEST

START_TEST(watch_and_hold_keep_it_awake)
{
	struct uowner *o = owner_idle(IDLE_MS);
	struct watcher w;

	if (_i == 0) {
		watcher_watch(o, &w, "\"a:\"");
		uowner_answer(o, uowner_heard_request("resources/subscribe"), "{}");
	} else {
		upstream_hold(o->u, true);
		upstream_hold(o->u, true);
		upstream_hold(o->u, false);
	}
	fake_loop_advance(o->loop, 10 * IDLE_MS);
	check_state(o, UPSTREAM_ST_READY);
	if (_i == 0) {
		upstream_unwatch(&w.watch);
		(void)uowner_heard_request("resources/unsubscribe");
	} else {
		upstream_hold(o->u, false);
	}
	fake_loop_advance(o->loop, IDLE_MS - 1);
	check_state(o, UPSTREAM_ST_READY);
	fake_loop_advance(o->loop, 1);
	check_state(o, UPSTREAM_ST_ASLEEP);
	uowner_free(o);
}
END_TEST

/* A list that is being fetched is waited for, but gives no more time. */
START_TEST(listing_is_no_use)
{
	struct uowner *o = owner_idle(IDLE_MS);

	fake_loop_advance(o->loop, IDLE_MS - 1);
	uowner_say(o, "%s",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	fake_loop_advance(o->loop, 100);
	check_state(o, UPSTREAM_ST_READY);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	check_state(o, UPSTREAM_ST_READY); /* not on the stack of an answer */
	fake_loop_advance(o->loop, 0);
	check_state(o, UPSTREAM_ST_ASLEEP);
	uowner_free(o);
}
END_TEST

/* Nor is our own listen at a modern one; but it is waited for until acknowledged. */
START_TEST(own_listen_is_no_use)
{
	struct uowner *o = owner_of(START_EAGER, IDLE_MS);
	unsigned long long listen;

	uowner_be_modern(o, TOOLS);
	listen = uowner_heard_request("subscriptions/listen");
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	fake_loop_advance(o->loop, IDLE_MS + 100);
	check_state(o, UPSTREAM_ST_READY);
	uowner_say(o, ACK, listen);
	fake_loop_advance(o->loop, 0);
	check_state(o, UPSTREAM_ST_ASLEEP);
	uowner_free(o);
}
END_TEST

/* A list that failed is asked for again before its emptiness is believed. */
START_TEST(failed_list_is_tried_again)
{
	struct uowner *o = owner_of(START_EAGER, 1000);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	uowner_refuse(o, uowner_heard_request("tools/list"), "-32603");
	ck_assert_uint_eq(o->settled, 1);
	fake_loop_advance(o->loop, 4999);
	check_state(o, UPSTREAM_ST_READY);
	fake_loop_advance(o->loop, 1);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	fake_loop_advance(o->loop, 0);
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert_uint_eq(upstream_list(o->u, LIST_TOOLS)->n, 1);
	uowner_free(o);
}
END_TEST

/* ---- ends of its own ---- */

START_TEST(leaving_when_unused_is_sleep)
{
	struct uowner *o = owner_asleep();
	struct ucall c = {.done = 0};

	upstream_wake(o->u);
	greet(o);
	fake_child_die(o->u->child, "exited with status 0");
	check_state(o, UPSTREAM_ST_ASLEEP);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_DOWN);
	/* With a call in flight it is an end like any other. */
	ucall_send(o, &c, CALL);
	greet(o);
	fake_child_die(o->u->child, "exited with status 0");
	ck_assert_int_eq(c.err, MV_DIED);
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_BACKOFF);
	uowner_free(o);
}
END_TEST

START_TEST(crash_when_unused_is_a_crash)
{
	struct uowner *o = owner_asleep();

	upstream_wake(o->u);
	greet(o);
	uowner_reborn(o);
	check_state(o, UPSTREAM_ST_INIT);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	uowner_free(o);
}
END_TEST

START_TEST(eager_one_that_leaves_comes_back)
{
	struct uowner *o = owner_idle(IDLE_MS);

	fake_child_die(o->u->child, "exited with status 0");
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_BACKOFF);
	uowner_free(o);
}
END_TEST

/* ---- the end ---- */

START_TEST(stopped_asleep)
{
	struct uowner *o = owner_asleep();
	struct ucall c = {.done = 0};

	upstream_stop(o->u, &child_ladder_defaults);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_STOPPING);
	upstream_wake(o->u);
	upstream_restart(o->u, "too late");
	ck_assert_uint_eq(fake_child_ups(o->u->child), 0);
	uowner_free(o);
}
END_TEST

START_TEST(stopped_while_waking)
{
	struct uowner *o = owner_idle(IDLE_MS);
	struct ucall c = {.done = 0};

	fake_loop_advance(o->loop, IDLE_MS);
	ucall_send(o, &c, CALL);
	upstream_stop(o->u, &child_ladder_defaults);
	ck_assert_int_eq(c.err, MV_STOPPING);
	uowner_die(o);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 1);
	uowner_free(o);
}
END_TEST

/* ---- no call in flight ---- */

START_TEST(idle_is_told_in_a_turn_of_its_own)
{
	struct uowner *o = owner_idle(0);
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->idles, 0);
	upstream_cancel(&b.req, NULL);
	ck_assert_uint_eq(o->idles, 0);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->idles, 1);
	/* Not when another one has come meanwhile. */
	ucall_send(o, &a, CALL);
	upstream_cancel(&a.req, NULL);
	ucall_send(o, &b, CALL);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->idles, 1);
	uowner_free(o);
}
END_TEST

static void
suite_add_all(TCase *tc)
{
	tcase_add_test(tc, on_use_with_lists_sleeps);
	tcase_add_loop_test(tc, on_use_without_lists_starts_for_them, 0, 2);
	tcase_add_test(tc, calls_wake_it_once);
	tcase_add_test(tc, one_that_cannot_run_says_so);
	tcase_add_loop_test(tc, watch_and_wish_wake_it, 0, 2);
	tcase_add_test(tc, sleeps_on);
	tcase_add_test(tc, start_that_fails_says_so);
	tcase_add_test(tc, woken_before_it_is_gone);
	tcase_add_test(tc, sleeps_when_unused);
	tcase_add_loop_test(tc, watch_and_hold_keep_it_awake, 0, 2);
	tcase_add_test(tc, listing_is_no_use);
	tcase_add_test(tc, own_listen_is_no_use);
	tcase_add_test(tc, failed_list_is_tried_again);
	tcase_add_test(tc, leaving_when_unused_is_sleep);
	tcase_add_test(tc, crash_when_unused_is_a_crash);
	tcase_add_test(tc, eager_one_that_leaves_comes_back);
	tcase_add_test(tc, stopped_asleep);
	tcase_add_test(tc, stopped_while_waking);
	tcase_add_test(tc, idle_is_told_in_a_turn_of_its_own);
}

int
main(void)
{
	Suite *s = suite_create("upstream_sleep");
	TCase *tc = tcase_create("sleep");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_all(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
