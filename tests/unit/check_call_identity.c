/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Calls that ask who somebody is: what is kept, and answers on their way. */
#include "mcpvisor/call.h"

#include "mcpvisor/metrics.h"

#include "fake/fake_caller.h"
#include "fake/fake_upstream_priv.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ANN                                                                              \
	"{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"user\\\":{\\\"id\\\":7}}\"}]}"
#define NOBODY	  "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"user\\\":null}\"}]}"
#define WHOAMI	  "{\"name\":\"alpha__whoami\"}"
#define CACHE_AGE "\"io.github.mcpvisor/cache\":{\"ageMs\":"

static struct fleet *
identity_fleet(uint32_t cache_ms)
{
	struct fleet_conf *conf = fleet_conf_new(1);
	struct fleet *f;

	conf->confs[0]->identity.cache_ms = cache_ms;
	f = fleet_running_from(conf);
	fleet_list(f, 0, LIST_TOOLS, "whoami", "other", NULL);
	fake_loop_settle(f->loop);
	return f;
}

static size_t
n_sent(const struct fleet *f)
{
	return fake_upstream_n_sent(f->u[0]);
}

/* Asks, and has it answered if that takes the upstream. True: it did. */
static bool
ask_as(struct fleet *f, struct caller *k, const char *params, const char *result)
{
	size_t sent = n_sent(f);

	caller_begin(f, k, "tools/call", params);
	if (n_sent(f) > sent)
		fake_upstream_result(f->u[0], sent, result);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k->done, 1);
	return n_sent(f) > sent;
}

static bool
ask(struct fleet *f)
{
	struct caller k;

	return ask_as(f, &k, WHOAMI, ANN);
}

START_TEST(known_has_its_age_and_a_turn_of_its_own)
{
	struct fleet *f = identity_fleet(1000);
	uint64_t hits = metrics_get(METRIC_IDENTITY_HITS);
	struct caller k;

	ck_assert(ask(f));
	fake_loop_advance(f->loop, 250);
	caller_begin(f, &k, "tools/call", WHOAMI);
	ck_assert_uint_eq(k.done, 0);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.kind, OUTCOME_RESULT);
	ck_assert_str_eq(k.body, "{\"_meta\":{" CACHE_AGE "250}},"
				 "\"content\":[{\"type\":\"text\",\"text\":"
				 "\"{\\\"user\\\":{\\\"id\\\":7}}\"}]}");
	ck_assert_uint_eq(metrics_get(METRIC_IDENTITY_HITS) - hits, 1);
	fake_loop_advance(f->loop, 750);
	ck_assert(ask(f)); /* it is too old */
	ck_assert(!ask(f));
	fleet_free(f);
}
END_TEST

START_TEST(given_up_on_its_way)
{
	struct fleet *f = identity_fleet(1000);
	uint64_t cancelled = metrics_get(METRIC_CALLS_CANCELLED);
	struct caller k;

	ck_assert(ask(f));
	caller_begin(f, &k, "tools/call", WHOAMI);
	if (_i > 0)
		call_cancel(&k.c, NULL);
	if (_i > 1)
		call_cancel(&k.c, NULL); /* twice is once */
	call_fini(&k.c);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k.done, 0);
	ck_assert_uint_eq(metrics_get(METRIC_CALLS_CANCELLED) - cancelled, _i > 0);
	ck_assert_uint_eq(n_sent(f), 1);
	fleet_free(f);
}
END_TEST

START_TEST(others_than_those_that_are_kept)
{
	static const char *const never[] = {NOBODY,
	    "{\"content\":[{\"type\":\"text\",\"text\":\"Ann\"}]}",
	    "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"{\\\"id\\\":1}"
	    "\"}]}",
	    /* It has an age, or no place for one. */
	    "{\"_meta\":{" CACHE_AGE "5}},\"structuredContent\":{\"id\":1}}",
	    "{\"_meta\":null,\"structuredContent\":{\"id\":1}}",
	    "{\"resultType\":\"task\",\"structuredContent\":{\"id\":1}}"};
	struct fleet *f = identity_fleet(1000);
	struct caller k;

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		ck_assert(ask(f));
		ck_assert(!ask(f));
		/* Nor stays what was known before. */
		f->u[0]->generation++;
		ck_assert(ask_as(f, &k, WHOAMI, never[i]));
		ck_assert(ask_as(f, &k, WHOAMI, never[i]));
	}
	fleet_free(f);
}
END_TEST

START_TEST(questions_that_are_special)
{
	static const char *const special[] = {"{\"name\":\"alpha__whoami\",\"task\":{}}",
	    "{\"name\":\"alpha__whoami\",\"inputResponses\":{}}"};
	struct fleet *f = identity_fleet(1000);
	struct caller k;

	ck_assert(ask(f));
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		ck_assert(ask_as(f, &k, special[i], ANN));
	f->u[0]->generation++;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		ck_assert(ask_as(f, &k, special[i], ANN));
	ck_assert(ask(f)); /* nothing was kept of them */
	fleet_free(f);
}
END_TEST

START_TEST(of_another_protocol)
{
	static const char modern[] =
	    "{\"name\":\"alpha__whoami\",\"_meta\":{\"io.modelcontextprotocol/"
	    "protocolVersion\":\"2026-07-28\"}}";
	struct fleet *f = identity_fleet(1000);
	struct caller k;

	ck_assert(ask(f));
	ck_assert(ask_as(f, &k, modern, ANN));
	ck_assert(!ask(f));
	ck_assert(!ask_as(f, &k, modern, ANN));
	fleet_free(f);
}
END_TEST

START_TEST(another_generation)
{
	struct fleet *f = identity_fleet(1000);
	struct caller k;

	ck_assert(ask(f));
	f->u[0]->generation++;
	ck_assert(ask(f));
	/* While the call is on its way. */
	f->u[0]->generation++;
	caller_begin(f, &k, "tools/call", WHOAMI);
	f->u[0]->generation++;
	fake_upstream_result(f->u[0], n_sent(f) - 1, ANN);
	ck_assert_uint_eq(k.done, 1);
	ck_assert(ask(f));
	ck_assert(!ask(f));
	fleet_free(f);
}
END_TEST

START_TEST(of_one_that_is_down_nothing_is_told)
{
	struct fleet *f = identity_fleet(1000);
	struct caller k;

	ck_assert(ask(f));
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_ne(caller_start(f, &k, "tools/call", WHOAMI), MV_OK);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(k.done, 0);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(a_refusal)
{
	struct fleet *f = identity_fleet(1000);
	struct identity_counts n;
	struct caller k;

	ck_assert(ask(f));
	gateway_count_identities(f->g, f->u[0], &n);
	ck_assert_uint_eq(n.resolved, 1);
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__other\"}");
	f->u[0]->n_refused++;
	fake_upstream_fail(f->u[0], n_sent(f) - 1, MV_AUTH, "401");
	gateway_count_identities(f->g, f->u[0], &n);
	ck_assert_uint_eq(n.unresolved, 1);
	ck_assert(ask(f));
	gateway_count_identities(f->g, f->u[0], &n);
	ck_assert_uint_eq(n.resolved, 1);
	fleet_free(f);
}
END_TEST

START_TEST(without_a_cache)
{
	struct fleet *f = identity_fleet(0);
	struct identity_counts n;

	ck_assert(ask(f));
	ck_assert(ask(f));
	gateway_count_identities(f->g, f->u[0], &n);
	ck_assert_uint_eq(n.resolved, 1);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("call_identity");
	TCase *tc = tcase_create("call_identity");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, known_has_its_age_and_a_turn_of_its_own);
	tcase_add_loop_test(tc, given_up_on_its_way, 0, 3);
	tcase_add_test(tc, others_than_those_that_are_kept);
	tcase_add_test(tc, questions_that_are_special);
	tcase_add_test(tc, of_another_protocol);
	tcase_add_test(tc, another_generation);
	tcase_add_test(tc, of_one_that_is_down_nothing_is_told);
	tcase_add_test(tc, a_refusal);
	tcase_add_test(tc, without_a_cache);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
