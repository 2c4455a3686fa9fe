/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What an upstream makes of what an earlier process left, and when it tells what it
 * leaves. */
#include "memory_rig.h"

#define ONE "{\"tools\":[{\"name\":\"a\"}]}"
#define IS_MODERN                                                                        \
	"{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}"
#define IS_LEGACY "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","                       \
	"\"params\":{\"name\":\"t\"}}"

/* ---- what comes of it ---- */

START_TEST(the_same_list_is_no_change)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	take_ok(o, OF_MODERN);
	ck_assert_uint_eq(o->lists[LIST_TOOLS], 0);
	uowner_be_modern(o, "{\"tools\":{}}");
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	ck_assert_uint_eq(o->lists[LIST_TOOLS], 1);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ck_assert_uint_eq(o->changes[k], 0);
	uowner_free(o);
}
END_TEST

START_TEST(another_list_is_a_change)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	take_ok(o, OF_MODERN);
	uowner_be_modern(o, "{\"tools\":{}}");
	uowner_answer(o, uowner_heard_request("tools/list"), "{\"tools\":[]}");
	ck_assert_uint_eq(o->changes[LIST_TOOLS], 1);
	uowner_free(o);
}
END_TEST

/* A list that cannot be had again stays as it was known. */
START_TEST(known_list_survives_a_failure)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct buf b;

	take_ok(o, OF_MODERN);
	uowner_be_modern(o, "{\"tools\":{}}");
	uowner_refuse(o, uowner_heard_request("tools/list"), "-32603");
	ck_assert_uint_eq(upstream_list(o->u, LIST_TOOLS)->n, 1);
	b = memory_of(o);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&b), "12 {\"name\":\"a\"}\n"));
	buf_fini(&b);
	uowner_free(o);
}
END_TEST

/* A list that never came is not remembered as an empty one. */
START_TEST(guess_is_not_remembered)
{
	struct uowner *a = uowner_new(ERA_AUTO), *b;
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct buf text;

	uowner_be_modern(a, "{\"tools\":{}}");
	uowner_refuse(a, uowner_heard_request("tools/list"), "-32603");
	ck_assert(upstream_list(a->u, LIST_TOOLS)->is_known);
	text = memory_of(a);
	conf->start = START_ON_USE;
	b = uowner_new_of(conf);
	ck_assert_int_eq(take(b, text.data, text.len), MV_OK);
	ck_assert(!upstream_list(b->u, LIST_TOOLS)->is_known);
	ck_assert(upstream_list(b->u, LIST_PROMPTS)->is_known);
	ck_assert_uint_eq(b->settled, 0);
	upstream_start(b->u); /* not to sleep: somebody has to ask */
	ck_assert_int_eq(upstream_state(b->u), UPSTREAM_ST_PROBE);
	buf_fini(&text);
	uowner_free(b);
	uowner_free(a);
}
END_TEST

START_TEST(pin_wins_over_memory)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	take_ok(o, OF_MODERN);
	uowner_start(o);
	(void)uowner_heard_request("initialize");
	uowner_free(o);
}
END_TEST

/* ---- contradiction ---- */

static struct uowner *
owner_woken(const char *memory, struct ucall *c)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct uowner *o;

	conf->start = START_ON_USE;
	o = uowner_new_of(conf);
	take_ok(o, memory);
	upstream_start(o->u);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_ASLEEP);
	ucall_send(o, c, CALL);
	return o;
}

/* It was legacy and is a modern server now that knows no initialize. */
START_TEST(legacy_became_modern)
{
	struct ucall c = {.done = 0};
	struct uowner *o = owner_woken(OF_LEGACY, &c);

	uowner_refuse(o, uowner_heard_request("initialize"), "-32601");
	uowner_answer(o, uowner_heard_request("server/discover"), IS_MODERN);
	ck_assert(uowner_is_ready(o));
	ck_assert_int_eq(o->u->known_era, ERA_MODERN);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 1);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	uowner_free(o);
}
END_TEST

/* One that wants neither fails as any other would. */
START_TEST(neither_is_a_failure)
{
	struct ucall c = {.done = 0};
	struct uowner *o = owner_woken(OF_LEGACY, &c);

	uowner_refuse(o, uowner_heard_request("initialize"), "-32601");
	uowner_refuse(o, uowner_heard_request("server/discover"), "-32601");
	uowner_refuse(o, uowner_heard_request("initialize"), "-32601");
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	uowner_free(o);
}
END_TEST

START_TEST(modern_became_legacy)
{
	struct ucall c = {.done = 0};
	struct uowner *o = owner_woken(OF_MODERN, &c);
	unsigned long long discover = uowner_heard_request("server/discover");

	if (_i == 0)
		uowner_refuse(o, discover, "-32601");
	else
		fake_loop_advance(o->loop, o->conf->probe_ms); /* it says nothing */
	uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
	ck_assert(uowner_is_ready(o));
	ck_assert_int_eq(o->u->known_era, ERA_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	uowner_free(o);
}
END_TEST

/* It dies of what was known: what was known goes first. */
START_TEST(died_of_what_was_known)
{
	struct ucall c = {.done = 0};
	struct uowner *o = owner_woken(_i == 0 ? OF_LEGACY : OF_MODERN, &c);

	(void)uowner_heard_request(_i == 0 ? "initialize" : "server/discover");
	uowner_die(o);
	if (_i == 0)
		fake_child_pause_over(o->u->child);
	(void)uowner_heard_request(_i == 0 ? "server/discover" : "initialize");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- telling ---- */

START_TEST(told_once_a_burst)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_modern(o, ALL);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 0); /* lists are still coming */
	answer_lists(o, "[]");
	fake_loop_advance(o->loop, MEMORY_MS - 1);
	ck_assert_uint_eq(o->memories, 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(o->memories, 1);
	/* The same again is no news, whoever brings it. */
	uowner_reborn(o);
	uowner_be_modern(o, ALL);
	answer_lists(o, "[]");
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 1);
	uowner_reborn(o);
	uowner_be_modern(o, ALL);
	answer_lists(o, "[{\"name\":\"a\"}]");
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 2);
	uowner_reborn(o);
	uowner_be_modern(o, "{\"tools\":{}}");
	answer_lists(o, "[{\"name\":\"a\"}]");
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 3);
	uowner_free(o);
}
END_TEST

/* One that took its memory from elsewhere tells once that it is true. */
START_TEST(recalled_is_told_when_confirmed)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	take_ok(o, OF_MODERN);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 0);
	uowner_be_modern(o, "{\"tools\":{}}");
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 1);
	uowner_free(o);
}
END_TEST

/* A short life leaves its memory too. */
START_TEST(stop_tells_at_once)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_modern(o, "{}");
	if (_i == 1)
		fake_loop_advance(o->loop, 1000);
	upstream_stop(o->u, &child_ladder_defaults);
	ck_assert_uint_eq(o->memories, 1);
	uowner_free(o);
}
END_TEST

/* Neither a stop nor a death waits for a list that does not come: the others are kept. */
START_TEST(told_while_a_list_hangs)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct buf b;

	uowner_be_modern(o, "{\"tools\":{},\"prompts\":{}}");
	uowner_answer(o, uowner_heard_request("tools/list"), ONE);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->memories, 0);
	if (_i == 0) {
		upstream_stop(o->u, &child_ladder_defaults);
	} else {
		uowner_die(o);
		fake_loop_advance(o->loop, MEMORY_MS);
	}
	ck_assert_uint_eq(o->memories, 1);
	b = memory_of(o);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&b), "12 {\"name\":\"a\"}\n"));
	ck_assert_ptr_nonnull(strstr(buf_cstr(&b), "\"prompts\":null"));
	buf_fini(&b);
	uowner_free(o);
}
END_TEST

static void
suite_add_all(TCase *tc)
{
	tcase_add_test(tc, the_same_list_is_no_change);
	tcase_add_test(tc, another_list_is_a_change);
	tcase_add_test(tc, known_list_survives_a_failure);
	tcase_add_test(tc, guess_is_not_remembered);
	tcase_add_test(tc, pin_wins_over_memory);
	tcase_add_test(tc, legacy_became_modern);
	tcase_add_test(tc, neither_is_a_failure);
	tcase_add_loop_test(tc, modern_became_legacy, 0, 2);
	tcase_add_loop_test(tc, died_of_what_was_known, 0, 2);
	tcase_add_test(tc, told_once_a_burst);
	tcase_add_test(tc, recalled_is_told_when_confirmed);
	tcase_add_loop_test(tc, stop_tells_at_once, 0, 2);
	tcase_add_loop_test(tc, told_while_a_list_hangs, 0, 2);
}

int
main(void)
{
	Suite *s = suite_create("upstream_recall");
	TCase *tc = tcase_create("memory");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_all(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
