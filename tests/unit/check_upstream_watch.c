/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Watching resources, and the log level, at an upstream of the time before 2026-07-28. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CAPS "{\"logging\":{}}"
#define SUBSCRIBE(id, uri)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"resources/subscribe\","        \
	"\"params\":{\"uri\":" uri "}}"
#define UNSUBSCRIBE(id, uri)                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"resources/unsubscribe\","      \
	"\"params\":{\"uri\":" uri "}}"
#define SET_LEVEL(id, level)                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"logging/setLevel\","           \
	"\"params\":{\"level\":\"" level "\"}}"
#define URI "\"file:\\/\\/\\/a\""

static struct uowner *
owner_ready(void)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", CAPS);
	return o;
}

/* ---- watches ---- */

START_TEST(subscribe_and_unsubscribe)
{
	struct uowner *o = owner_ready();
	struct watcher w;

	watcher_watch(o, &w, URI);
	uowner_heard(SUBSCRIBE(2, URI));
	ck_assert_uint_eq(w.settled, 0);
	uowner_answer(o, 2, "{}");
	watcher_check(&w, MV_OK);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	uowner_say(o, UPDATED_OF("\"file:///a\""));
	ck_assert_uint_eq(o->updates, 1);
	ck_assert_str_eq(o->last, UPDATED_OF("\"file:///a\""));
	upstream_unwatch(&w.watch);
	uowner_heard(UNSUBSCRIBE(3, URI));
	uowner_answer(o, 3, "{}");
	upstream_unwatch(&w.watch); /* is none by now */
	uowner_heard_nothing();
	watcher_check(&w, MV_OK);
	uowner_free(o);
}
END_TEST

START_TEST(refusals)
{
	struct uowner *o = owner_ready();
	struct watcher w;

	watcher_watch(o, &w, URI);
	uowner_heard(SUBSCRIBE(2, URI));
	switch (_i) {
	case 0:
		uowner_refuse(o, 2, "-32002");
		ck_assert_uint_eq(w.settled, 1);
		ck_assert_int_eq(w.kind, OUTCOME_ERROR);
		break;
	case 1:
		uowner_say(o, "%s", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":7}");
		watcher_check(&w, MV_PROTOCOL);
		break;
	case 2:
		fake_loop_advance(o->loop, OWN_REQUEST_MS);
		watcher_check(&w, MV_TIMEOUT);
		uowner_heard(CANCELLED(2));
		break;
	default:
		upstream_stop(o->u, &child_ladder_defaults);
		watcher_check(&w, MV_STOPPING);
		break;
	}
	uowner_heard_nothing();
	upstream_unwatch(&w.watch);
	uowner_free(o);
	ck_assert_uint_eq(w.settled, 1);
}
END_TEST

START_TEST(full_queue_refuses_at_once)
{
	struct uowner *o = owner_ready();
	struct watcher w;

	fake_link_refuse(o->u->link, MV_BUSY);
	watcher_watch(o, &w, URI);
	watcher_check(&w, MV_BUSY);
	upstream_unwatch(&w.watch);
	uowner_free(o);
}
END_TEST

START_TEST(unwatched_before_the_answer)
{
	struct uowner *o = owner_ready();
	struct watcher w;

	watcher_watch(o, &w, URI);
	uowner_heard(SUBSCRIBE(2, URI));
	upstream_unwatch(&w.watch);
	uowner_heard(UNSUBSCRIBE(3, URI));
	uowner_answer(o, 2, "{}");
	uowner_answer(o, 3, "{}");
	ck_assert_uint_eq(w.settled, 0);
	uowner_free(o);
}
END_TEST

/* The wish lives longer than the process. */
START_TEST(watched_over_restarts)
{
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct watcher w, gone;

	watcher_watch(o, &gone, "\"gone:\"");
	watcher_watch(o, &w, URI);
	upstream_unwatch(&gone.watch);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard(SUBSCRIBE(2, URI));
	uowner_heard_nothing();
	/* It dies with the question open. */
	uowner_reborn(o);
	ck_assert_uint_eq(w.settled, 0);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard(SUBSCRIBE(4, URI));
	uowner_answer(o, 4, "{}");
	watcher_check(&w, MV_OK);
	uowner_reborn(o);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard(SUBSCRIBE(6, URI));
	uowner_refuse(o, 6, "-32603");
	watcher_check(&w, MV_OK);
	ck_assert(uowner_log_has(o, "subscription not renewed"));
	uowner_die(o);
	upstream_unwatch(&w.watch);
	uowner_heard_nothing();
	fake_child_pause_over(o->u->child);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Its output has ended; the wish waits for the next process. */
START_TEST(watch_at_a_mute_one)
{
	struct uowner *o = owner_ready();
	struct watcher before, after;

	watcher_watch(o, &before, URI);
	uowner_heard(SUBSCRIBE(2, URI));
	fake_link_end(o->u->link);
	fake_loop_advance(o->loop, MUTE_MS);
	watcher_watch(o, &after, "\"b:\"");
	uowner_reborn(o);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	ck_assert_uint_eq(before.settled + after.settled, 0);
	(void)uowner_heard_request("resources/subscribe");
	(void)uowner_heard_request("resources/subscribe");
	uowner_heard_nothing();
	upstream_unwatch(&before.watch);
	upstream_unwatch(&after.watch);
	uowner_free(o);
}
END_TEST

/* One that does not come back by itself would let them wait for ever. */
START_TEST(watch_at_one_that_is_over)
{
	struct uowner *o = owner_ready();
	struct watcher before, after;

	if (_i == 0) {
		fake_child_set_budget(o->u->child, 1);
		uowner_die(o);
		watcher_watch(o, &after, URI);
		watcher_check(&after, MV_PARKED);
		/* It was told no; it is asked for all the same when there is a process.
		 */
		upstream_restart(o->u, "the operator asked");
		uowner_be_legacy(o, "2025-06-18", CAPS);
		uowner_heard(SUBSCRIBE(3, URI));
		uowner_answer(o, 3, "{}");
		ck_assert_uint_eq(after.settled, 1);
	} else {
		uowner_die(o);
		watcher_watch(o, &before, URI);
		ck_assert_uint_eq(before.settled, 0); /* it comes back */
		upstream_stop(o->u, &child_ladder_defaults);
		watcher_check(&before, MV_STOPPING);
		watcher_watch(o, &after, "\"b:\"");
		watcher_check(&after, MV_STOPPING);
	}
	uowner_free(o);
}
END_TEST

/* ---- log level ---- */

START_TEST(level_is_set)
{
	struct uowner *o = owner_ready();

	upstream_set_level(o->u, MCP_LV_WARNING);
	uowner_heard(SET_LEVEL(2, "warning"));
	uowner_answer(o, 2, "{}");
	upstream_set_level(o->u, MCP_LV_DEBUG);
	uowner_heard(SET_LEVEL(3, "debug"));
	upstream_set_level(o->u, MCP_LV_EMERGENCY);
	uowner_heard(SET_LEVEL(4, "emergency"));
	uowner_answer(o, 3, "{}");
	uowner_refuse(o, 4, "-32603");
	upstream_set_level(o->u, MCP_LV_MAX);
	uowner_heard_nothing();
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

START_TEST(level_is_set_again_after_a_restart)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	upstream_set_level(o->u, MCP_LV_ERROR);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard(SET_LEVEL(2, "error"));
	uowner_reborn(o);
	uowner_be_legacy(o, "2025-06-18", CAPS);
	uowner_heard(SET_LEVEL(4, "error"));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(level_where_there_is_none)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	if (_i == 0)
		uowner_be_legacy(o, "2025-06-18", "{}");
	else
		uowner_be_modern(o, CAPS);
	upstream_set_level(o->u, MCP_LV_DEBUG);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* A level that could not be told is told with the next call that wants it. */
START_TEST(level_that_was_not_sent)
{
	struct uowner *o = owner_ready();
	struct ucall c = {.done = 0};

	fake_link_refuse(o->u->link, MV_BUSY);
	upstream_set_level(o->u, MCP_LV_DEBUG);
	fake_link_refuse(o->u->link, MV_OK);
	ucall_send(o, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	    "\"name\":\"t\",\"_meta\":{\"io.modelcontextprotocol/"
	    "logLevel\":\"debug\"}}}");
	(void)uowner_heard_request("logging/setLevel");
	(void)uowner_heard_request("tools/call");
	uowner_free(o);
}
END_TEST

START_TEST(log_messages_are_told)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
	    "\"params\":{\"level\":\"info\",\"data\":[ 1]}}";
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	uowner_say(o, "%s", line);
	ck_assert_uint_eq(o->logs, 0); /* of no call and no session */
	uowner_be_legacy(o, "2025-06-18", "{}");
	uowner_say(o, "%s", line);
	ck_assert_uint_eq(o->logs, 1);
	ck_assert_str_eq(o->last, line);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_watch");
	TCase *tc = tcase_create("watch");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, subscribe_and_unsubscribe);
	tcase_add_loop_test(tc, refusals, 0, 4);
	tcase_add_test(tc, full_queue_refuses_at_once);
	tcase_add_test(tc, unwatched_before_the_answer);
	tcase_add_test(tc, watched_over_restarts);
	tcase_add_test(tc, watch_at_a_mute_one);
	tcase_add_loop_test(tc, watch_at_one_that_is_over, 0, 2);
	tcase_add_test(tc, level_is_set);
	tcase_add_test(tc, level_is_set_again_after_a_restart);
	tcase_add_loop_test(tc, level_where_there_is_none, 0, 2);
	tcase_add_test(tc, level_that_was_not_sent);
	tcase_add_test(tc, log_messages_are_told);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
