/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Fetching lists again: on change at a bounded rate, on expiry, after a restart. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdlib.h>

#define TOOLS "{\"tools\":{\"listChanged\":true}}"
#define CHANGED(of)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" of "/list_changed\"}"
#define ONE_TOOL    "{\"tools\":[{\"name\":\"a\"}]}"
#define LIVES(ms)   "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":" #ms "}"
#define AT_ONCE	    0
#define A_LONG_TIME 1000000000

/* Waits for the next tools/list, which has to come after exactly ms, and answers. */
static void
answer_tools(struct uowner *o, uint64_t ms, const char *result)
{
	if (ms > 0) {
		fake_loop_advance(o->loop, ms - 1);
		uowner_heard_nothing();
		fake_loop_advance(o->loop, 1);
	}
	uowner_answer(o, uowner_heard_request("tools/list"), result);
}

static void
check_list(const struct uowner *o, enum list_kind kind, unsigned n, unsigned fetched,
    unsigned changed)
{
	ck_assert_uint_eq(upstream_list(o->u, kind)->n, n);
	ck_assert_uint_eq(o->lists[kind], fetched);
	ck_assert_uint_eq(o->changes[kind], changed);
}

static struct uowner *
owner_with_tools(const char *result)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	answer_tools(o, AT_ONCE, result);
	ck_assert(upstream_is_complete(o->u));
	return o;
}

/* ---- again ---- */

START_TEST(change_and_no_change)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);

	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 2, 1);
	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{\"tools\":[{\"name\":\"a\" }]}");
	check_list(o, LIST_TOOLS, 1, 3, 2);
	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("prompts"));
	uowner_say(o, CHANGED("resources"));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(resources_are_two_lists)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", "{\"resources\":{}}");
	uowner_answer(o, uowner_heard_request("resources/list"), "{\"resources\":[]}");
	uowner_answer(o, uowner_heard_request("resources/templates/list"),
	    "{\"resourceTemplates\":[]}");
	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("resources"));
	(void)uowner_heard_request("resources/list");
	(void)uowner_heard_request("resources/templates/list");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* One under way and one asked for, with a pause between. */
START_TEST(storm)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);
	unsigned runs = 0;

	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	for (int i = 0; i < 50; i++)
		uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, ONE_TOOL);
	for (int i = 0; i < 50; i++)
		uowner_say(o, CHANGED("tools"));
	uowner_heard_nothing();
	answer_tools(o, RELIST_PAUSE_MS, ONE_TOOL);
	fake_loop_advance(o->loop, A_LONG_TIME);
	uowner_heard_nothing();
	/* Ten seconds of it, answered in a millisecond each. */
	for (int ms = 0; ms < 10000; ms++) {
		uowner_say(o, CHANGED("tools"));
		fake_loop_advance(o->loop, 1);
		if (o->u->listers[LIST_TOOLS].running) {
			answer_tools(o, AT_ONCE, ONE_TOOL);
			runs++;
		}
		uowner_heard_nothing();
	}
	ck_assert_uint_ge(runs, 40);
	ck_assert_uint_le(runs, 51);
	/* The last word is heard. */
	fake_loop_advance(o->loop, 1);
	uowner_say(o, CHANGED("tools"));
	fake_loop_advance(o->loop, RELIST_PAUSE_MS);
	(void)uowner_heard_request("tools/list");
	uowner_free(o);
}
END_TEST

/* Whether or not a ttl is running, a change right after a run is heard. */
START_TEST(change_right_after_a_run)
{
	struct uowner *o = owner_with_tools(_i == 0 ? ONE_TOOL : LIVES(3600000));

	fake_loop_advance(o->loop, 50);
	uowner_say(o, CHANGED("tools"));
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, RELIST_PAUSE_MS - 50, "{\"tools\":[]}");
	check_list(o, LIST_TOOLS, 0, 2, 2);
	uowner_free(o);
}
END_TEST

/* Nobody else would look again; but with ever longer pauses. */
START_TEST(failure_is_tried_again)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);
	uint64_t pause = 5000;

	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{}");
	for (int i = 0; i < 9; i++) {
		answer_tools(o, pause, "{}");
		pause = pause == 320000 ? pause : pause * 2;
	}
	answer_tools(o, 320000, ONE_TOOL);
	fake_loop_advance(o->loop, A_LONG_TIME);
	uowner_heard_nothing();
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{}");
	answer_tools(o, 5000, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 3, 1);
	uowner_free(o);
}
END_TEST

/* ---- expiry ---- */

START_TEST(ttl_expires)
{
	static const struct {
		const char *result;
		uint64_t after;
	} rows[] = {{LIVES(5000), 5000}, {LIVES(3), 1000}, {LIVES(999999999), 86400000}};
	struct uowner *o = owner_with_tools(rows[_i].result);

	answer_tools(o, rows[_i].after, rows[_i].result);
	check_list(o, LIST_TOOLS, 1, 2, 1);
	answer_tools(o, rows[_i].after, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 3, 1);
	fake_loop_advance(o->loop, A_LONG_TIME);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(ttl_runs_anew_after_a_failure)
{
	struct uowner *o = owner_with_tools(LIVES(5000));

	answer_tools(o, 5000, "{}");
	check_list(o, LIST_TOOLS, 1, 1, 1);
	answer_tools(o, 5000, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 2, 1);
	uowner_free(o);
}
END_TEST

START_TEST(stale_is_asked_for_on_use)
{
	struct uowner *o = owner_with_tools(LIVES(0));

	fake_loop_advance(o->loop, 999);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	uowner_heard_nothing();
	upstream_refresh_stale(o->u, LIST_TOOLS);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	upstream_refresh_stale(o->u, LIST_PROMPTS);
	/* Not oftener when it does not come. */
	uowner_refuse(o, uowner_heard_request("tools/list"), "-32603");
	upstream_refresh_stale(o->u, LIST_TOOLS);
	fake_loop_advance(o->loop, 999);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE_TOOL);
	fake_loop_advance(o->loop, A_LONG_TIME);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	uowner_heard_nothing(); /* no hint, never stale */
	uowner_free(o);
}
END_TEST

/* A tool was not there: at once, but not as often as somebody calls it. */
START_TEST(doubted)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);

	upstream_doubt_list(o->u, LIST_TOOLS);
	uowner_heard_nothing(); /* it has just come */
	fake_loop_advance(o->loop, 10000);
	upstream_doubt_list(o->u, LIST_TOOLS);
	upstream_doubt_list(o->u, LIST_TOOLS);
	upstream_doubt_list(o->u, LIST_PROMPTS);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE_TOOL);
	fake_loop_advance(o->loop, 9999);
	upstream_doubt_list(o->u, LIST_TOOLS);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	upstream_doubt_list(o->u, LIST_TOOLS);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE_TOOL);
	uowner_free(o);
}
END_TEST

/* ---- restarts ---- */

START_TEST(lists_are_kept_while_it_is_down)
{
	struct uowner *o = owner_with_tools(LIVES(5000));

	uowner_die(o);
	check_list(o, LIST_TOOLS, 1, 1, 1);
	ck_assert(!upstream_is_complete(o->u));
	fake_loop_advance(o->loop, 10000);
	upstream_refresh_stale(o->u, LIST_TOOLS);
	uowner_heard_nothing();
	fake_child_pause_over(o->u->child);
	uowner_be_legacy(o, "2025-06-18", TOOLS);
	answer_tools(o, AT_ONCE, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 2, 1);
	check_list(o, LIST_PROMPTS, 0, 1, 1);
	ck_assert_uint_eq(o->settled, 1);
	uowner_free(o);
}
END_TEST

/* What is no longer declared is no longer there. */
START_TEST(list_goes_with_its_capability)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);

	uowner_reborn(o);
	uowner_be_legacy(o, "2025-06-18", "{}");
	uowner_heard_nothing();
	check_list(o, LIST_TOOLS, 0, 2, 2);
	check_list(o, LIST_PROMPTS, 0, 1, 1);
	ck_assert(upstream_is_complete(o->u));
	uowner_free(o);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, change_and_no_change);
	tcase_add_test(tc, resources_are_two_lists);
	tcase_add_test(tc, storm);
	tcase_add_loop_test(tc, change_right_after_a_run, 0, 2);
	tcase_add_test(tc, failure_is_tried_again);
	tcase_add_loop_test(tc, ttl_expires, 0, 3);
	tcase_add_test(tc, ttl_runs_anew_after_a_failure);
	tcase_add_test(tc, stale_is_asked_for_on_use);
	tcase_add_test(tc, doubted);
	tcase_add_test(tc, lists_are_kept_while_it_is_down);
	tcase_add_test(tc, list_goes_with_its_capability);
}

int
main(void)
{
	Suite *s = suite_create("upstream_relist");
	TCase *tc = tcase_create("relist");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	add_tests(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
