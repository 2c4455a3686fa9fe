/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Change notices of a modern upstream: one listen that follows what is wanted. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHABLE "{\"resources\":{\"subscribe\":true}}"
#define ALL                                                                              \
	"{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},"          \
	"\"resources\":{\"listChanged\":true,\"subscribe\":true}}"
#define TOOLS	   "{\"tools\":{\"listChanged\":true}}"
#define TOOLS_WISH "\"toolsListChanged\":true"
#define ALL_WISH   TOOLS_WISH ",\"promptsListChanged\":true,\"resourcesListChanged\":true"
#define URIS(list) "\"resourceSubscriptions\":[" list "]"
#define ACK                                                                              \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","  \
	"\"params\":{\"notifications\":{%s},\"_meta\":{"                                 \
	"\"io.modelcontextprotocol/subscriptionId\":%llu}}}"
#define UPDATED                                                                          \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","           \
	"\"params\":{\"uri\":\"a:\",\"_meta\":{"                                         \
	"\"io.modelcontextprotocol/subscriptionId\":%llu}}}"
#define CHANGED                                                                          \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","          \
	"\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%llu}}}"
#define A "\"a:\""
#define B "\"b:\""

/* The next message is a listen with this filter; its id. */
static unsigned long long
heard_listen(const char *filter)
{
	const char *got = fake_link_take();
	char want[1024];
	struct json_msg json;
	struct link_msg m;
	int64_t id = 0;

	ck_assert_msg(got != NULL, "no listen for %s", filter);
	ck_assert_int_eq(link_scan(got, strlen(got), &json, &m), MV_OK);
	ck_assert(json_int(m.env.id, &id));
	(void)snprintf(want, sizeof(want),
	    "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"subscriptions/listen\","
	    "\"params\":{\"notifications\":{%s}," OWN_META "}}",
	    (long long)id, filter);
	ck_assert_str_eq(got, want);
	return (unsigned long long)id;
}

static void
heard_cancelled(unsigned long long id)
{
	char want[128];

	(void)snprintf(want, sizeof(want),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%llu}}",
	    id);
	uowner_heard(want);
}

/* Answers every list with nothing. */
static void
answer_lists(struct uowner *o)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &o->u->listers[k];

		if (!l->running)
			continue;
		uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"%s\":[]}}",
		    (unsigned long long)l->req.id, list_member(l->kind));
		(void)uowner_heard_request(method_name(list_method(l->kind)));
	}
}

static struct uowner *
owner_watchable(void)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_modern(o, WATCHABLE);
	answer_lists(o);
	uowner_heard_nothing();
	return o;
}

/* The listen of one watch, acknowledged; its id. */
static unsigned long long
owner_watch_a(struct uowner *o, struct watcher *w)
{
	unsigned long long id;

	watcher_watch(o, w, A);
	uowner_heard_nothing();
	fake_loop_settle(o->loop);
	id = heard_listen(URIS(A));
	ck_assert_uint_eq(w->settled, 0);
	uowner_say(o, ACK, URIS(A), id);
	watcher_check(w, MV_OK);
	uowner_heard_nothing();
	return id;
}

/* ---- one listen ---- */

START_TEST(lists_are_listened_for_at_once)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	unsigned long long id;

	uowner_be_modern(o, ALL);
	id = heard_listen(ALL_WISH);
	answer_lists(o);
	uowner_say(o, ACK, ALL_WISH, id);
	uowner_say(o, ACK, ALL_WISH, id);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 3600000);
	uowner_heard_nothing(); /* it has no limit of time */
	uowner_say(o, CHANGED, id + 100);
	uowner_heard_nothing();
	uowner_say(o, CHANGED, id);
	(void)uowner_heard_request("tools/list");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(nothing_to_listen_for)
{
	struct uowner *o = owner_watchable();
	struct watcher w;
	unsigned long long id = owner_watch_a(o, &w);

	upstream_unwatch(&w.watch);
	uowner_heard_nothing();
	fake_loop_settle(o->loop);
	heard_cancelled(id);
	fake_loop_advance(o->loop, 10000);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(no_subscriptions_here)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct watcher before, w;
	unsigned long long id;

	watcher_watch(o, &before, A);
	uowner_be_modern(o, _i == 0 ? TOOLS : "{}");
	if (_i == 0) {
		id = heard_listen(TOOLS_WISH);
		answer_lists(o);
		uowner_say(o, ACK, TOOLS_WISH, id);
	}
	watcher_check(&before, MV_UNSUPPORTED);
	watcher_watch(o, &w, B);
	watcher_check(&w, MV_UNSUPPORTED);
	upstream_unwatch(&before.watch);
	upstream_unwatch(&w.watch);
	fake_loop_settle(o->loop);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- change: open the new, await its acknowledgement, close the old ---- */

START_TEST(a_second_watch_replaces_the_listen)
{
	struct uowner *o = owner_watchable();
	struct watcher a, b;
	unsigned long long old = owner_watch_a(o, &a), new;

	watcher_watch(o, &b, B);
	fake_loop_settle(o->loop);
	new = heard_listen(URIS(B "," A));
	/* Until then the old one counts, and it alone. */
	uowner_say(o, UPDATED, old);
	uowner_say(o, UPDATED, new);
	ck_assert_uint_eq(o->updates, 1);
	uowner_heard_nothing();
	uowner_say(o, ACK, URIS(A "," B), new);
	heard_cancelled(old);
	watcher_check(&b, MV_OK);
	watcher_check(&a, MV_OK);
	uowner_say(o, UPDATED, old);
	uowner_say(o, UPDATED, new);
	ck_assert_uint_eq(o->updates, 2);
	uowner_say(o, "%s", UPDATED_OF(A));
	ck_assert_uint_eq(o->updates, 3); /* names no listen: no double */
	uowner_answer(o, old, "{}");
	fake_loop_advance(o->loop, 10000);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(one_turn_one_listen)
{
	struct uowner *o = owner_watchable();
	struct watcher a, b, c;
	unsigned long long id;

	watcher_watch(o, &a, A);
	watcher_watch(o, &b, B);
	watcher_watch(o, &c, "\"c:\"");
	upstream_unwatch(&b.watch);
	fake_loop_settle(o->loop);
	id = heard_listen(URIS("\"c:\"," A));
	uowner_heard_nothing();
	uowner_say(o, ACK, URIS(A), id);
	watcher_check(&a, MV_OK);
	watcher_check(&c, MV_UNSUPPORTED);
	ck_assert_uint_eq(b.settled, 0);
	uowner_free(o);
}
END_TEST

/* One that comes while a listen is being opened is not in it, and is no refusal. */
START_TEST(watch_while_one_is_opened)
{
	struct uowner *o = owner_watchable();
	struct watcher a, b, c;
	unsigned long long first, second;

	watcher_watch(o, &a, A);
	fake_loop_settle(o->loop);
	first = heard_listen(URIS(A));
	watcher_watch(o, &b, B);
	fake_loop_settle(o->loop);
	uowner_heard_nothing();
	watcher_watch(o, &c, "\"c:\""); /* in the turn of the acknowledgement */
	uowner_say(o, ACK, URIS(A), first);
	watcher_check(&a, MV_OK);
	ck_assert_uint_eq(b.settled + c.settled, 0);
	second = heard_listen(URIS("\"c:\"," B "," A));
	fake_loop_settle(o->loop);
	uowner_heard_nothing();
	uowner_say(o, ACK, URIS(A "," B ",\"c:\""), second);
	heard_cancelled(first);
	watcher_check(&b, MV_OK);
	watcher_check(&c, MV_OK);
	fake_loop_settle(o->loop);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Servers write the same URI with other escapes. */
START_TEST(acknowledged_with_other_escapes)
{
	static const char *const uris[] = {"\"file:///\\u00e9\"",
	    "\"file:\\/\\/\\/\xc3\xa9\"", "\"f\\u0069le:///\\u00E9\""};
	struct uowner *o = owner_watchable();
	struct watcher w;

	watcher_watch(o, &w, uris[0]);
	fake_loop_settle(o->loop);
	uowner_say(o,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
	    "acknowledged\","
	    "\"params\":{\"notifications\":{\"resourceSubscriptions\":[7,%s]},\"_meta\":{"
	    "\"io.modelcontextprotocol/subscriptionId\":%llu}}}",
	    uris[_i], uowner_heard_request("subscriptions/listen"));
	watcher_check(&w, MV_OK);
	uowner_free(o);
}
END_TEST

START_TEST(unwatch_in_the_answer)
{
	struct uowner *o = owner_watchable();
	struct watcher a, b;
	unsigned long long id;

	watcher_watch(o, &a, A);
	watcher_watch(o, &b, B);
	a.unwatch = true;
	b.unwatch = true;
	fake_loop_settle(o->loop);
	id = heard_listen(URIS(B "," A));
	uowner_refuse(o, id, "-32603");
	ck_assert_uint_eq(a.settled + b.settled, 2);
	ck_assert_ptr_null(o->u->watches);
	fake_loop_advance(o->loop, 10000);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- ends ---- */

START_TEST(refused_listens)
{
	struct uowner *o = owner_watchable();
	struct watcher w;
	unsigned long long id;

	watcher_watch(o, &w, A);
	fake_loop_settle(o->loop);
	id = heard_listen(URIS(A));
	switch (_i) {
	case 0:
		uowner_refuse(o, id, "-32601");
		ck_assert_uint_eq(w.settled, 1);
		ck_assert_int_eq(w.kind, OUTCOME_ERROR);
		ck_assert(uowner_log_has(o, "subscriptions/listen refused"));
		break;
	case 1:
		uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":7}", id);
		watcher_check(&w, MV_PROTOCOL);
		break;
	default:
		/* It says nothing at all. */
		fake_loop_advance(o->loop, OWN_REQUEST_MS);
		watcher_check(&w, MV_TIMEOUT);
		heard_cancelled(id);
		break;
	}
	fake_loop_advance(o->loop, 100000);
	uowner_heard_nothing();
	uowner_say(o, ACK, URIS(A), id);
	uowner_heard_nothing();
	/* The next wish is tried. */
	upstream_unwatch(&w.watch);
	watcher_watch(o, &w, B);
	fake_loop_settle(o->loop);
	(void)heard_listen(URIS(B));
	uowner_free(o);
}
END_TEST

/* An upstream that ends an open listen is asked for a new one a second later. */
START_TEST(ended_listens_are_opened_again)
{
	struct uowner *o = owner_watchable();
	struct watcher w;
	unsigned long long id = owner_watch_a(o, &w);

	switch (_i) {
	case 0:
		uowner_answer(o, id, "{}");
		break;
	case 1:
		uowner_refuse(o, id, "-32603");
		break;
	case 2:
		uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":7}", id);
		break;
	default:
		uowner_say(o,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":%llu}}",
		    id);
		break;
	}
	fake_loop_advance(o->loop, 999);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	id = heard_listen(URIS(A));
	uowner_heard_nothing();
	uowner_say(o, ACK, URIS(A), id);
	uowner_say(o, UPDATED, id);
	ck_assert_uint_eq(o->updates, 1);
	watcher_check(&w, MV_OK);
	uowner_free(o);
}
END_TEST

/* Only a listen is a server's to cancel. */
START_TEST(cancel_of_something_else)
{
	struct uowner *o = owner_watchable();
	struct ucall c = {.done = 0};

	ucall_send(o, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}");
	uowner_say(o,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%llu}}",
	    uowner_heard_request("tools/call"));
	uowner_say(
	    o, "%s", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}");
	ck_assert_uint_eq(c.done, 0);
	ck_assert_uint_eq(upstream_in_flight(o->u), 1);
	uowner_free(o);
}
END_TEST

START_TEST(listened_for_again_after_a_restart)
{
	struct uowner *o = owner_watchable();
	struct watcher a, b;
	unsigned long long id;

	(void)owner_watch_a(o, &a);
	watcher_watch(o, &b, B);
	fake_loop_settle(o->loop);
	(void)heard_listen(URIS(B "," A));
	uowner_reborn(o); /* with a listen open and another asked for */
	ck_assert_uint_eq(b.settled, 0);
	uowner_be_modern(o, WATCHABLE);
	id = heard_listen(URIS(B "," A));
	answer_lists(o);
	uowner_say(o, ACK, URIS(B), id);
	watcher_check(&b, MV_OK);
	watcher_check(&a, MV_OK);
	uowner_say(o, UPDATED, id);
	ck_assert_uint_eq(o->updates, 1);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Its output has ended; the wish waits for the next process. */
START_TEST(watch_at_a_mute_one)
{
	struct uowner *o = owner_watchable();
	struct watcher a;

	fake_link_end(o->u->link);
	fake_loop_advance(o->loop, MUTE_MS);
	watcher_watch(o, &a, A);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(a.settled, 0);
	uowner_reborn(o);
	uowner_be_modern(o, WATCHABLE);
	(void)heard_listen(URIS(A));
	ck_assert_uint_eq(a.settled, 0);
	uowner_free(o);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, lists_are_listened_for_at_once);
	tcase_add_test(tc, nothing_to_listen_for);
	tcase_add_loop_test(tc, no_subscriptions_here, 0, 2);
	tcase_add_test(tc, a_second_watch_replaces_the_listen);
	tcase_add_test(tc, one_turn_one_listen);
	tcase_add_test(tc, watch_while_one_is_opened);
	tcase_add_loop_test(tc, acknowledged_with_other_escapes, 0, 3);
	tcase_add_test(tc, unwatch_in_the_answer);
	tcase_add_loop_test(tc, refused_listens, 0, 3);
	tcase_add_loop_test(tc, ended_listens_are_opened_again, 0, 4);
	tcase_add_test(tc, cancel_of_something_else);
	tcase_add_test(tc, listened_for_again_after_a_restart);
	tcase_add_test(tc, watch_at_a_mute_one);
}

int
main(void)
{
	Suite *s = suite_create("upstream_listen");
	TCase *tc = tcase_create("listen");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	add_tests(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
