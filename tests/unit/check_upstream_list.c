/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Fetching lists: what is declared, all pages under bounds, and failures. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS "{\"tools\":{\"listChanged\":true}}"
#define CHANGED(of)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" of "/list_changed\"}"
#define ONE_TOOL "{\"tools\":[{\"name\":\"a\"}]}"
#define AT_ONCE	 0

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

/* ---- the first time ---- */

START_TEST(what_is_declared_is_fetched)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	unsigned long long id[LIST_MAX];

	uowner_be_legacy(
	    o, "2025-06-18", "{\"tools\":{},\"prompts\":{},\"resources\":{}}");
	for (unsigned k = 0; k < LIST_MAX; k++)
		id[k] = uowner_heard_request(method_name(list_method((enum list_kind)k)));
	uowner_heard_nothing();
	ck_assert(!upstream_is_complete(o->u) && !upstream_is_settled(o->u));
	uowner_answer(o, id[LIST_TEMPLATES],
	    "{\"resourceTemplates\":[{\"uriTemplate\":\"file:///{x}\"}]}");
	uowner_answer(o, id[LIST_PROMPTS], "{\"prompts\":[]}");
	uowner_answer(o, id[LIST_TOOLS], ONE_TOOL);
	ck_assert_uint_eq(o->settled, 0);
	uowner_answer(
	    o, id[LIST_RESOURCES], "{\"resources\":[{\"uri\":\"a:\"},{\"uri\":\"b:\"}]}");
	ck_assert_uint_eq(o->settled, 1);
	ck_assert(upstream_is_complete(o->u));
	check_list(o, LIST_TOOLS, 1, 1, 1);
	check_list(o, LIST_PROMPTS, 0, 1, 1);
	check_list(o, LIST_RESOURCES, 2, 1, 1);
	check_list(o, LIST_TEMPLATES, 1, 1, 1);
	uowner_free(o);
}
END_TEST

START_TEST(nothing_declared_is_complete)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", "{}");
	uowner_heard_nothing();
	ck_assert_uint_eq(o->settled, 1);
	ck_assert(upstream_is_complete(o->u));
	for (unsigned k = 0; k < LIST_MAX; k++)
		check_list(o, (enum list_kind)k, 0, 1, 1);
	uowner_say(o, CHANGED("tools"));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(pages_are_drained)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	answer_tools(
	    o, AT_ONCE, "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"1\\u0020\"}");
	ck_assert_uint_eq(o->lists[LIST_TOOLS], 0);
	uowner_heard("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\","
		     "\"params\":{\"cursor\":\"1\\u0020\"}}");
	uowner_answer(o, 3, "{\"tools\":[],\"nextCursor\":\"\"}");
	uowner_heard("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\","
		     "\"params\":{\"cursor\":\"\"}}");
	uowner_answer(o, 4, "{\"tools\":[{\"name\":\"b\"},{\"name\":\"c\"},{}]}");
	uowner_heard_nothing();
	check_list(o, LIST_TOOLS, 3, 1, 1);
	ck_assert(uowner_log_has(o, "entries left out: no usable name upstream=\"alpha\" "
				    "list=tools count=1"));
	uowner_free(o);
}
END_TEST

/* ---- bounds ---- */

START_TEST(cursors_that_repeat)
{
	static const char *const cursors[][4] = {
	    {"x", "x"}, {"x", "y", "x"}, {"x", "y", "y"}};
	struct uowner *o = uowner_new(ERA_AUTO);
	char page[128];
	unsigned n = 0;

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	for (; cursors[_i][n] != NULL; n++) {
		(void)snprintf(page, sizeof(page),
		    "{\"tools\":[{\"name\":\"a%u\"}],\"nextCursor\":\"%s\"}", n,
		    cursors[_i][n]);
		answer_tools(o, AT_ONCE, page);
	}
	uowner_heard_nothing();
	check_list(o, LIST_TOOLS, n, 1, 1);
	ck_assert(uowner_log_has(o, "list cut short"));
	/* The next run may use them again. */
	fake_loop_advance(o->loop, RELIST_PAUSE_MS);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{\"tools\":[],\"nextCursor\":\"x\"}");
	answer_tools(o, AT_ONCE, "{\"tools\":[]}");
	check_list(o, LIST_TOOLS, 0, 2, 2);
	uowner_free(o);
}
END_TEST

START_TEST(pages_without_end)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	char page[128];

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	for (unsigned i = 0; i <= CAP_LIST_PAGES; i++) {
		(void)snprintf(page, sizeof(page),
		    "{\"tools\":[{\"name\":\"a%u\"}],\"nextCursor\":\"c%u\"}", i, i);
		answer_tools(o, AT_ONCE, page);
	}
	uowner_heard_nothing();
	check_list(o, LIST_TOOLS, CAP_LIST_PAGES, 1, 1);
	ck_assert(uowner_log_has(o, "list cut short"));
	uowner_free(o);
}
END_TEST

START_TEST(items_without_end)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"nextCursor\":\"x\",\"tools\":[{\"name\":\"a\"}");
	for (unsigned i = 0; i < CAP_LIST_ITEMS; i++)
		buf_add_str(&b, ",{\"name\":\"a\"}");
	buf_add_str(&b, "]}");
	uowner_be_legacy(o, "2025-06-18", TOOLS);
	answer_tools(o, AT_ONCE, buf_cstr(&b));
	uowner_heard_nothing();
	check_list(o, LIST_TOOLS, CAP_LIST_ITEMS, 1, 1);
	buf_fini(&b);
	uowner_free(o);
}
END_TEST

/* ---- failures ---- */

/* Declared but not there: asked for once a process. */
START_TEST(missing_method_is_remembered)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	uowner_refuse(o, uowner_heard_request("tools/list"), "-32601");
	ck_assert_uint_eq(o->settled, 1);
	check_list(o, LIST_TOOLS, 0, 1, 1);
	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	upstream_refresh_stale(o->u, LIST_TOOLS);
	fake_loop_advance(o->loop, 100000);
	uowner_heard_nothing();
	uowner_reborn(o);
	uowner_be_legacy(o, "2025-06-18", TOOLS);
	answer_tools(o, AT_ONCE, ONE_TOOL);
	check_list(o, LIST_TOOLS, 1, 2, 2);
	uowner_free(o);
}
END_TEST

/* Better an empty list than a fleet that waits; and what was there stays. */
START_TEST(failures)
{
	static const char *const says[] = {"{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{"
					   "\"code\":-32603,\"message\":\"m\"}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"tools\":7}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":[]}", NULL};
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	for (unsigned turn = 0; turn < 3; turn++) {
		unsigned long long id = uowner_heard_request("tools/list");
		char line[128];

		if (turn == 1) {
			uowner_answer(o, id, ONE_TOOL);
		} else if (says[_i] == NULL) {
			fake_loop_advance(o->loop, OWN_REQUEST_MS);
			ck_assert_ptr_nonnull(
			    strstr(fake_link_take(), "notifications/cancelled"));
		} else {
			const char *at = strstr(says[_i], "%llu");

			(void)snprintf(line, sizeof(line), "%.*s%llu%s",
			    (int)(at - says[_i]), says[_i], id, at + 4);
			uowner_say(o, "%s", line);
		}
		ck_assert_uint_eq(o->settled, 1);
		ck_assert(upstream_is_complete(o->u));
		fake_loop_advance(o->loop, 1000);
		uowner_heard_nothing();
		uowner_say(o, CHANGED("tools"));
	}
	check_list(o, LIST_TOOLS, 1, 2, 2);
	ck_assert(uowner_log_has(o, "list failed upstream=\"alpha\" list=tools"));
	uowner_free(o);
}
END_TEST

/* A page that fails leaves nothing of the pages before it. */
START_TEST(half_of_a_list)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);

	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{\"tools\":[{\"name\":\"n\"}],\"nextCursor\":\"x\"}");
	if (_i == 0)
		uowner_refuse(o, uowner_heard_request("tools/list"), "-32602");
	else
		uowner_die(o);
	check_list(o, LIST_TOOLS, 1, 1, 1);
	ck_assert_int_eq(
	    memcmp(ulist_name(upstream_list(o->u, LIST_TOOLS), 0).p, "\"a\"", 3), 0);
	uowner_free(o);
}
END_TEST

/* A lack of memory is no bound: what was there stays, and it is tried again. */
START_TEST(no_memory_for_a_page)
{
	struct uowner *o = owner_with_tools(ONE_TOOL);
	unsigned long long id;

	fake_loop_advance(o->loop, 1000);
	uowner_say(o, CHANGED("tools"));
	answer_tools(o, AT_ONCE, "{\"tools\":[{\"name\":\"n\"}],\"nextCursor\":\"x\"}");
	id = uowner_heard_request("tools/list");
	mem_fail_at((unsigned long)_i + 1, 0);
	/* More than the first room for entries and bytes, and a cursor to keep. */
	uowner_answer(o, id,
	    "{\"tools\":[{\"name\":\"1\"},{\"name\":\"2\"},{\"name\":\"3\"},{\"name\":"
	    "\"4\"},"
	    "{\"name\":\"5\"},{\"name\":\"6\"},{\"name\":\"7\"},{\"name\":\"8\"},{"
	    "\"name\":\"9\"},"
	    "{\"name\":\"10\"},{\"name\":\"11\"},{\"name\":\"12\"},{\"name\":\"13\"},"
	    "{\"name\":\"14\"},{\"name\":\"15\"},{\"name\":\"16\"}],\"nextCursor\":"
	    "\"y\"}");
	mem_fail_at(0, 0);
	check_list(o, LIST_TOOLS, 1, 1, 1);
	ck_assert_int_eq(
	    memcmp(ulist_name(upstream_list(o->u, LIST_TOOLS), 0).p, "\"a\"", 3), 0);
	uowner_heard_nothing();
	answer_tools(o, 5000, "{\"tools\":[]}");
	check_list(o, LIST_TOOLS, 0, 2, 2);
	uowner_free(o);
}
END_TEST

START_TEST(stop_and_silence_end_the_fetching)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, "2025-06-18", TOOLS);
	(void)uowner_heard_request("tools/list");
	if (_i == 0) {
		upstream_stop(o->u, &child_ladder_defaults);
		uowner_answer(o, 2, ONE_TOOL);
		uowner_say(o, CHANGED("tools"));
	} else {
		fake_link_end(o->u->link);
	}
	fake_loop_advance(o->loop, 100000);
	uowner_heard_nothing();
	ck_assert_uint_eq(o->lists[LIST_TOOLS], 0);
	ck_assert_uint_eq(o->settled, 0);
	uowner_die(o);
	ck_assert_uint_eq(o->settled, 1);
	ck_assert(!upstream_list(o->u, LIST_TOOLS)->is_known);
	uowner_free(o);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, what_is_declared_is_fetched);
	tcase_add_test(tc, nothing_declared_is_complete);
	tcase_add_test(tc, pages_are_drained);
	tcase_add_loop_test(tc, cursors_that_repeat, 0, 3);
	tcase_add_test(tc, pages_without_end);
	tcase_add_test(tc, items_without_end);
	tcase_add_test(tc, missing_method_is_remembered);
	tcase_add_loop_test(tc, failures, 0, 4);
	tcase_add_loop_test(tc, half_of_a_list, 0, 2);
	tcase_add_loop_test(tc, no_memory_for_a_page, 0, 3);
	tcase_add_loop_test(tc, stop_and_silence_end_the_fetching, 0, 2);
}

int
main(void)
{
	Suite *s = suite_create("upstream_list");
	TCase *tc = tcase_create("list");
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
