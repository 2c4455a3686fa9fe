/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* How the era of an upstream is found, remembered and looked for again. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/metrics.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define IS_MODERN  "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}"
#define IS_LEGACY  "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"
#define OFFERS(v)  ",\"data\":{\"supported\":[" v "],\"requested\":\"2026-07-28\"}"
#define MODERN	   "\"2026-07-28\""
#define LEGACY	   "\"2025-11-25\""
#define N_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
check_state(const struct uowner *o, enum upstream_state st)
{
	ck_assert_msg(upstream_state(o->u) == st, "is %s, not %s",
	    upstream_state_text(upstream_state(o->u)), upstream_state_text(st));
}

static struct uowner *
owner_probing(void)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_start(o);
	uowner_heard(DISCOVER(1));
	uowner_heard_nothing();
	return o;
}

/* ---- server/discover is answered ---- */

START_TEST(discover_result_is_enough)
{
	struct uowner *o = owner_probing();

	uowner_answer(o, 1, IS_MODERN);
	ck_assert(uowner_is_ready(o));
	uowner_heard_nothing();
	ck_assert_uint_eq(o->settled, 1);
	ck_assert_uint_eq(fake_child_readies(o->u->child), 1);
	fake_loop_advance(o->loop, 100000);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Whatever is not an error of a modern server is one of a server that is none. */
START_TEST(other_answers_lead_to_initialize)
{
	static const char *const says[] = {
	    "\"error\":{\"code\":-32601,\"message\":\"m\"}",
	    "\"error\":{\"code\":-32602,\"message\":\"m\"}",
	    "\"error\":{\"code\":-32600,\"message\":\"m\"}",
	    "\"error\":{\"code\":-32000,\"message\":\"m\"}",
	    "\"error\":{\"code\":-32603,\"message\":\"m\",\"data\":{}}",
	    "\"error\":{\"code\":-32700,\"message\":\"m\"}",
	    "\"error\":{\"code\":0,\"message\":\"m\"}",
	    "\"error\":{\"code\":\"ENOMETHOD\",\"message\":\"m\"}",
	    "\"error\":{\"message\":\"m\"}",
	    "\"error\":\"no\"",
	    "\"error\":{\"code\":-32022,\"message\":\"m\"" OFFERS(LEGACY) "}",
	    "\"error\":{\"code\":-32022,\"message\":\"m\"" OFFERS(
		"\"2024-11-05\",\"x\",7") "}",
	    "\"result\":{}",
	    "\"result\":null",
	    "\"result\":{\"supportedVersions\":[" LEGACY "],\"capabilities\":{}}",
	    "\"result\":{\"supportedVersions\":\"2026-07-28\"}",
	    "\"result\":{\"supportedVersions\":[" MODERN "]},"
	    "\"error\":{\"code\":1,\"message\":\"both\"}",
	};
	struct uowner *o = owner_probing();

	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", says[_i]);
	uowner_heard(INITIALIZE(2));
	check_state(o, UPSTREAM_ST_INIT);
	fake_loop_advance(o->loop, 10000);
	uowner_heard_nothing();
	uowner_answer(o, 2, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_heard_nothing();
	ck_assert(uowner_is_ready(o));
	ck_assert_uint_eq(o->settled, 1);
	uowner_free(o);
}
END_TEST
#define N_OTHER_ANSWERS 17

/* A refused revision is tried again once if it is offered, even the same one. */
START_TEST(offered_revision_is_tried_once)
{
	static const char *const offers[] = {
	    OFFERS(MODERN), OFFERS(LEGACY "," MODERN), OFFERS("\"2027-01-01\"," MODERN)};
	struct uowner *o = owner_probing();

	uowner_say(o, REFUSED, 1ULL, "-32022", offers[_i]);
	uowner_heard(DISCOVER(2));
	uowner_heard_nothing();
	check_state(o, UPSTREAM_ST_PROBE);
	uowner_answer(o, 2, IS_MODERN);
	ck_assert(uowner_is_ready(o));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(second_refusal_of_the_revision)
{
	static const struct {
		const char *offer;
		enum upstream_state next;
	} rows[] = {
	    {OFFERS(MODERN), UPSTREAM_ST_PROBE},
	    {OFFERS(LEGACY "," MODERN), UPSTREAM_ST_INIT},
	    {OFFERS(LEGACY), UPSTREAM_ST_INIT},
	    {"", UPSTREAM_ST_PROBE},
	};

	for (size_t i = 0; i < N_OF(rows); i++) {
		struct uowner *o = owner_probing();

		uowner_say(o, REFUSED, 1ULL, "-32022", OFFERS(MODERN));
		uowner_heard(DISCOVER(2));
		uowner_say(o, REFUSED, 2ULL, "-32022", rows[i].offer);
		check_state(o, rows[i].next);
		if (rows[i].next == UPSTREAM_ST_INIT)
			uowner_heard(INITIALIZE(3));
		ck_assert_uint_eq(fake_child_fails(o->u->child),
		    rows[i].next == UPSTREAM_ST_PROBE ? 1 : 0);
		uowner_heard_nothing();
		uowner_free(o);
	}
}
END_TEST

/* The next process may be asked twice again. */
START_TEST(retry_is_once_a_process)
{
	struct uowner *o = owner_probing();

	uowner_say(o, REFUSED, 1ULL, "-32022", OFFERS(MODERN));
	uowner_heard(DISCOVER(2));
	uowner_say(o, REFUSED, 2ULL, "-32022", OFFERS(MODERN));
	uowner_reborn(o);
	uowner_heard(DISCOVER(3));
	uowner_say(o, REFUSED, 3ULL, "-32022", OFFERS(MODERN));
	uowner_heard(DISCOVER(4));
	uowner_free(o);
}
END_TEST

/* Errors that only a modern server sends do not make us fall back. */
START_TEST(modern_errors_are_final)
{
	static const char *const codes[] = {"-32020", "-32021", "-32022"};
	struct uowner *o = owner_probing();

	uowner_refuse(o, 1, codes[_i]);
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "refused server/discover"));
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), codes[_i]));
	fake_loop_advance(o->loop, 100000);
	uowner_heard_nothing();
	ck_assert_uint_eq(o->settled, 0);
	uowner_reborn(o);
	ck_assert_uint_eq(o->settled, 1);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	uowner_heard(DISCOVER(2));
	uowner_free(o);
}
END_TEST

/* ---- silence ---- */

static struct uowner *
owner_asking_both(void)
{
	struct uowner *o = owner_probing();

	fake_loop_advance(o->loop, 2999);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	uowner_heard(INITIALIZE(2));
	uowner_heard_nothing();
	check_state(o, UPSTREAM_ST_BOTH);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_RUNNING);
	return o;
}

START_TEST(initialize_decides_if_it_is_answered_first)
{
	struct uowner *o = owner_asking_both();
	uint64_t late = metrics_get(METRIC_REPLIES_LATE);

	uowner_answer(o, 2, IS_LEGACY);
	uowner_heard(INITIALIZED);
	ck_assert_ptr_eq(o->u->era, &era_legacy);
	uowner_answer(o, 1, IS_MODERN);
	ck_assert_ptr_eq(o->u->era, &era_legacy);
	uowner_heard_nothing();
	ck_assert(uowner_is_ready(o));
	ck_assert_uint_eq(metrics_get(METRIC_REPLIES_LATE), late + 1);
	ck_assert_uint_eq(o->settled, 1);
	uowner_free(o);
}
END_TEST

/* A server of both eras that was asked both is what it answered last. */
START_TEST(discover_first_then_what_initialize_says)
{
	struct uowner *o = owner_asking_both();

	uowner_answer(o, 1, IS_MODERN);
	check_state(o, UPSTREAM_ST_AGREED);
	uowner_check(o);
	ck_assert_ptr_null(o->u->era);
	switch (_i) {
	case 0:
		uowner_answer(o, 2, IS_LEGACY);
		uowner_heard(INITIALIZED);
		ck_assert_ptr_eq(o->u->era, &era_legacy);
		break;
	case 1:
		uowner_refuse(o, 2, "-32601");
		ck_assert_ptr_eq(o->u->era, &era_modern);
		ck_assert_str_eq(upstream_reason(o->u), "");
		break;
	default:
		fake_loop_advance(o->loop, 999);
		check_state(o, UPSTREAM_ST_AGREED);
		fake_loop_advance(o->loop, 1);
		ck_assert_ptr_eq(o->u->era, &era_modern);
		uowner_answer(o, 2, IS_LEGACY);
		ck_assert_ptr_eq(o->u->era, &era_modern);
	}
	uowner_heard_nothing();
	uowner_check(o);
	ck_assert(uowner_is_ready(o));
	ck_assert_uint_eq(o->settled, 1);
	uowner_free(o);
}
END_TEST

START_TEST(late_discover_counts_when_initialize_was_refused)
{
	struct uowner *o = owner_asking_both();

	uowner_refuse(o, 2, "-32601");
	check_state(o, UPSTREAM_ST_LATE);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "refused initialize"));
	fake_loop_advance(o->loop, 50000);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
	uowner_answer(o, 1, IS_MODERN);
	ck_assert_ptr_eq(o->u->era, &era_modern);
	ck_assert_str_eq(upstream_reason(o->u), "");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(both_refused)
{
	struct uowner *o = owner_asking_both();

	if (_i == 0) {
		uowner_refuse(o, 2, "-32601");
		uowner_refuse(o, 1, "-32601");
	} else {
		uowner_refuse(o, 1, "-32601");
		check_state(o, UPSTREAM_ST_INIT);
		uowner_refuse(o, 2, "-32601");
	}
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "refused initialize"));
	uowner_free(o);
}
END_TEST

/* An offered revision is tried again while initialize is under way too. */
START_TEST(retry_while_both_are_asked)
{
	struct uowner *o = owner_asking_both();

	uowner_say(o, REFUSED, 1ULL, "-32022", OFFERS(MODERN));
	uowner_heard(DISCOVER(3));
	check_state(o, UPSTREAM_ST_BOTH);
	uowner_answer(o, 3, IS_MODERN);
	uowner_refuse(o, 2, "-32601");
	ck_assert_ptr_eq(o->u->era, &era_modern);
	uowner_free(o);
}
END_TEST

START_TEST(start_limit)
{
	struct uowner *o = owner_asking_both();

	fake_loop_advance(o->loop, 60000 - 3000 - 1);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_str_eq(upstream_reason(o->u), "not ready within 60000 ms of its start");
	/* What it answers on its way out makes it no better. */
	uowner_answer(o, 2, IS_LEGACY);
	uowner_answer(o, 1, IS_MODERN);
	uowner_heard_nothing();
	ck_assert(!uowner_is_ready(o));
	uowner_die(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	ck_assert_str_eq(upstream_reason(o->u), "not ready within 60000 ms of its start");
	ck_assert_uint_eq(o->settled, 1);
	ck_assert_int_eq(o->settled_in, UPSTREAM_ST_DOWN);
	uowner_free(o);
}
END_TEST

/* ---- remembered and pinned ---- */

START_TEST(modern_is_remembered)
{
	struct uowner *o = owner_probing();

	uowner_answer(o, 1, IS_MODERN);
	uowner_reborn(o);
	uowner_heard(DISCOVER(2));
	fake_loop_advance(o->loop, 59999);
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	/* Then it is no longer taken for granted. */
	uowner_reborn(o);
	uowner_heard(DISCOVER(3));
	fake_loop_advance(o->loop, 3000);
	uowner_heard(INITIALIZE(4));
	uowner_free(o);
}
END_TEST

START_TEST(modern_became_legacy)
{
	struct uowner *o = owner_probing();

	uowner_answer(o, 1, IS_MODERN);
	uowner_reborn(o);
	uowner_heard(DISCOVER(2));
	uowner_refuse(o, 2, "-32601");
	uowner_heard(INITIALIZE(3));
	uowner_answer(o, 3, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_reborn(o);
	uowner_heard(INITIALIZE(4));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(legacy_became_modern)
{
	struct uowner *o = owner_probing();

	uowner_refuse(o, 1, "-32601");
	uowner_heard(INITIALIZE(2));
	uowner_answer(o, 2, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_reborn(o);
	uowner_heard(INITIALIZE(3));
	uowner_refuse(o, 3, "-32601");
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	uowner_reborn(o);
	uowner_heard(DISCOVER(4));
	uowner_answer(o, 4, IS_MODERN);
	ck_assert_ptr_eq(o->u->era, &era_modern);
	uowner_free(o);
}
END_TEST

START_TEST(pinned_to_legacy)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	uowner_heard(INITIALIZE(1));
	fake_loop_advance(o->loop, 50000);
	uowner_heard_nothing();
	uowner_refuse(o, 1, "-32601");
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	uowner_reborn(o);
	uowner_heard(INITIALIZE(2));
	uowner_free(o);
}
END_TEST

START_TEST(pinned_to_modern)
{
	struct uowner *o = uowner_new(ERA_MODERN);

	uowner_start(o);
	uowner_heard(DISCOVER(1));
	fake_loop_advance(o->loop, 50000);
	uowner_heard_nothing();
	uowner_refuse(o, 1, "-32601");
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_str_eq(upstream_reason(o->u),
	    "era is pinned to modern, but the server refused server/discover");
	uowner_heard_nothing();
	uowner_reborn(o);
	uowner_heard(DISCOVER(2));
	/* Nothing to spare it, so nothing to excuse. */
	uowner_reborn(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 2);
	uowner_heard(DISCOVER(3));
	uowner_free(o);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, discover_result_is_enough);
	tcase_add_loop_test(tc, other_answers_lead_to_initialize, 0, N_OTHER_ANSWERS);
	tcase_add_loop_test(tc, offered_revision_is_tried_once, 0, 3);
	tcase_add_test(tc, second_refusal_of_the_revision);
	tcase_add_test(tc, retry_is_once_a_process);
	tcase_add_loop_test(tc, modern_errors_are_final, 0, 3);
	tcase_add_test(tc, initialize_decides_if_it_is_answered_first);
	tcase_add_loop_test(tc, discover_first_then_what_initialize_says, 0, 3);
	tcase_add_test(tc, late_discover_counts_when_initialize_was_refused);
	tcase_add_loop_test(tc, both_refused, 0, 2);
	tcase_add_test(tc, retry_while_both_are_asked);
	tcase_add_test(tc, start_limit);
	tcase_add_test(tc, modern_is_remembered);
	tcase_add_test(tc, modern_became_legacy);
	tcase_add_test(tc, legacy_became_modern);
	tcase_add_test(tc, pinned_to_legacy);
	tcase_add_test(tc, pinned_to_modern);
}

int
main(void)
{
	Suite *s = suite_create("upstream_era");
	TCase *tc = tcase_create("era");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	add_tests(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
