/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Calls that come before the lists do, and calls that are taken back. */
#include "mcpvisor/call.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdlib.h>

#define CALL_ALPHA "{\"name\":\"alpha__a\",\"arguments\":{}}"
#define READ_A	   "{\"uri\":\"file:///a\"}"

static struct fleet *
fleet_started(size_t n)
{
	struct fleet *f = fleet_new(n, NULL);

	gateway_start(f->g);
	return f;
}

START_TEST(sent_as_soon_as_its_list_is_in)
{
	struct fleet *f = fleet_started(2);
	struct caller k, other;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	caller_begin(f, &other, "tools/call", "{\"name\":\"alpha__b\"}");
	ck_assert_ptr_null(k.c.u);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	fleet_list(f, 0, LIST_PROMPTS, "a", NULL);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 0);
	fleet_list(f, 0, LIST_TOOLS, "a", "b", NULL);
	/* In the order they came, and beta has not even started. */
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 2);
	ck_assert_str_eq(
	    fake_upstream_sent(f->u[0], 0)->params, "{\"name\":\"a\",\"arguments\":{}}");
	ck_assert_str_eq(fake_upstream_sent(f->u[0], 0)->client_info,
	    "{\"name\":\"c\",\"version\":\"1\"}");
	ck_assert_str_eq(fake_upstream_sent(f->u[0], 1)->params, "{\"name\":\"b\"}");
	fake_upstream_progress(f->u[0], 0, "");
	fake_upstream_result(f->u[0], 0, "{\"x\":1}");
	ck_assert_uint_eq(k.progress, 1);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_str_eq(k.body, "{\"x\":1}");
	fake_upstream_result(f->u[0], 1, "{}");
	ck_assert_uint_eq(other.done, 1);
	fleet_free(f);
}
END_TEST

/* A list may come while its upstream cannot be called yet: then that one holds it. */
START_TEST(held_by_a_starting_upstream)
{
	struct fleet *f = fleet_started(1);
	struct caller k;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	ck_assert_ptr_eq(k.c.u, f->u[0]);
	ck_assert_uint_eq(upstream_in_flight(f->u[0]), 1);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 0);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 1);
	fake_upstream_result(f->u[0], 0, "{}");
	ck_assert_uint_eq(k.done, 1);
	fleet_free(f);
}
END_TEST

/* How a wait ends when the thing does not turn up. */
static const struct {
	const char *method, *params;
	const char *prefix;  /* of alpha */
	bool alpha, settled; /* alpha came with empty lists; beta failed */
	enum mv_err err;
	const char *owner;
} ends[] = {
    {"tools/call", CALL_ALPHA, NULL, true, true, MV_NOT_FOUND, "nobody"},
    {"tools/call", CALL_ALPHA, NULL, true, false, MV_NOT_FOUND, "nobody"},
    {"tools/call", CALL_ALPHA, NULL, false, false, MV_STARTING, "alpha"},
    {"prompts/get", CALL_ALPHA, NULL, false, false, MV_STARTING, "alpha"},
    {"prompts/get", CALL_ALPHA, NULL, true, false, MV_NOT_FOUND, "nobody"},
    {"tools/call", "{\"name\":\"beta__x\"}", NULL, true, false, MV_STARTING, "beta"},
    {"tools/call", "{\"name\":\"beta__x\"}", NULL, true, true, MV_BACKOFF, "beta"},
    {"tools/call", "{\"name\":\"beta__\"}", NULL, true, true, MV_NOT_FOUND, "nobody"},
    {"tools/call", "{\"name\":\"gamma__x\"}", NULL, true, true, MV_NOT_FOUND, "nobody"},
    /* Without a prefix it could be anybody's: nobody is blamed. */
    {"tools/call", "{\"name\":\"a\"}", "", false, false, MV_NOT_FOUND, "nobody"},
    {"tools/call", CALL_ALPHA, "", false, false, MV_NOT_FOUND, "nobody"},
    {"tools/call", "{\"name\":\"p_x\"}", "p_", false, false, MV_STARTING, "alpha"},
    {"resources/read", READ_A, NULL, false, false, MV_NOT_FOUND, "nobody"},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}}",
	NULL, true, true, MV_NOT_FOUND, "nobody"},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"beta__a\"}}",
	NULL, true, true, MV_BACKOFF, "beta"},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"beta__a\"}}",
	NULL, true, false, MV_STARTING, "beta"},
    /* What is not the name blames nobody. */
    {"resources/read", "{\"uri\":\"x:/\",\"name\":\"beta__a\"}", NULL, true, true,
	MV_NOT_FOUND, "nobody"},
    {"completion/complete",
	"{\"name\":\"beta__a\",\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}}",
	NULL, true, true, MV_NOT_FOUND, "nobody"},
};

START_TEST(wait_is_over)
{
	const char *prefixes[] = {ends[_i].prefix, NULL};
	struct fleet *f = fleet_new(2, prefixes);
	struct caller k;

	gateway_start(f->g);
	caller_begin(f, &k, ends[_i].method, ends[_i].params);
	if (ends[_i].alpha)
		fleet_ready(f, 0);
	ck_assert_uint_eq(k.done, 0);
	if (ends[_i].settled) {
		fake_upstream_set_state(f->u[1], UPSTREAM_ST_DOWN, "died");
		fake_upstream_settle(f->u[1]);
	} else {
		fake_loop_advance(f->loop, FLEET_WAIT_MS - 1);
		ck_assert_uint_eq(k.done, 0);
		fake_loop_advance(f->loop, 1);
	}
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.kind, OUTCOME_FAILED);
	ck_assert_int_eq(k.last.err, ends[_i].err);
	ck_assert_str_eq(k.owner_name, ends[_i].owner);
	/* The next one is told at once. */
	ck_assert_int_eq(
	    caller_start(f, &k, ends[_i].method, ends[_i].params), ends[_i].err);
	call_fini(&k.c);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(fake_upstream_n_sent(f->u[i]), 0);
	fleet_free(f);
}
END_TEST

static void
on_woken(void *arg)
{
	(void)arg;
}

START_TEST(bytes_that_wait_are_bounded)
{
	struct gateway_waiter most = {.bytes = CAP_WAITING_BYTES - 100, .fn = on_woken};
	struct fleet *f = fleet_new(2, NULL);
	struct caller k;

	gateway_start(f->g);
	ck_assert(gateway_may_keep(f->g, CAP_WAITING_BYTES));
	ck_assert(!gateway_may_keep(f->g, CAP_WAITING_BYTES + 1u));
	ck_assert(gateway_wait(f->g, &most));
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"alpha__a\"}"), MV_BUSY);
	call_fini(&k.c);
	gateway_unwait(&most);
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	ck_assert(gateway_may_keep(f->g, CAP_WAITING_BYTES));
	fleet_free(f);
}
END_TEST

/* Whose upstream is known to be down need not wait for the others. */
START_TEST(no_wait_for_one_that_is_down)
{
	struct fleet *f = fleet_started(3);
	struct caller k;

	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_eq(caller_start(f, &k, "tools/call", CALL_ALPHA), MV_BACKOFF);
	ck_assert_ptr_eq(k.c.u, f->u[0]);
	call_fini(&k.c);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_PARKED, "died");
	ck_assert_int_eq(caller_start(f, &k, "tools/call", CALL_ALPHA), MV_PARKED);
	call_fini(&k.c);
	caller_begin(f, &k, "tools/call", "{\"name\":\"beta__a\"}");
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

static char **
one_pattern(const char *s)
{
	char **v = mem_xcalloc(2, sizeof(*v));

	v[0] = mem_xstrdup(s);
	return v;
}

/* What a profile or the upstream's own rules hide is unknown, not out of order. */
START_TEST(hidden_is_unknown_also_of_one_that_is_down)
{
	struct fleet_conf *fc = fleet_conf_new(2);
	struct fleet *f;
	struct caller k;
	struct profile_conf *p = fleet_conf_profile(fc, "default", "*");

	p->tools.deny = one_pattern("alpha__a");
	fleet_conf_profile(fc, "safe", "*")->tools.allow = one_pattern("@read_only");
	fc->confs[0]->tools.deny = one_pattern("b*");
	f = fleet_from(fc);
	gateway_start(f->g);
	for (unsigned i = 0; i < 2; i++)
		fake_upstream_set_state(f->u[i], UPSTREAM_ST_PARKED, "died");
	fake_loop_advance(f->loop, FLEET_WAIT_MS + 1);
	ck_assert_int_eq(caller_start(f, &k, "tools/call", CALL_ALPHA), MV_NOT_FOUND);
	call_fini(&k.c);
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"alpha__b2\"}"), MV_NOT_FOUND);
	call_fini(&k.c);
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"alpha__c\"}"), MV_PARKED);
	call_fini(&k.c);
	/* What it says of itself nobody knows. */
	ck_assert_int_eq(caller_start_in(f, &k, 1, "tools/call", CALL_ALPHA), MV_PARKED);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(refused_after_the_wait)
{
	struct fleet *f = fleet_started(2);
	struct caller k, c;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	caller_begin(f, &c, "completion/complete",
	    "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__p\"}}");
	fake_upstream_refuse(f->u[0], MV_BUSY);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.err, MV_BUSY);
	ck_assert_str_eq(k.owner_name, "alpha");
	fleet_list(f, 0, LIST_PROMPTS, "p", NULL);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.last.err, MV_UNSUPPORTED);
	fleet_free(f);
}
END_TEST

START_TEST(bad_params_do_not_wait)
{
	struct fleet *f = fleet_started(1);
	struct caller k;

	ck_assert_int_eq(caller_start(f, &k, "tools/call", "{\"name\":1}"), MV_PARAMS);
	call_fini(&k.c);
	ck_assert_int_eq(caller_start(f, &k, "resources/read", "{}"), MV_PARAMS);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(no_memory_to_wait_with)
{
	struct fleet *f = fleet_started(1);
	struct json_msg json;
	struct link_msg m = fleet_scan("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
				       "call\",\"params\":{\"name\":\"x\"}}",
	    &json);
	struct upstream_call req = {
	    .method = METHOD_TOOLS_CALL, .base = m.base, .len = m.len, .json = m.json};
	struct call c = {.cb = NULL};
	enum mv_err err;

	/* One look, so that only the copy takes memory. */
	(void)catalog_body(gateway_catalog(f->g), 0, LIST_TOOLS);
	mem_fail_at(1, 1);
	err = call_start(f->g, &c, &req);
	mem_fail_at(0, 0);
	ck_assert_int_eq(err, MV_NOMEM);
	call_fini(&c);
	gateway_stop_waiting(f->g);
	fleet_free(f);
}
END_TEST

/* ---- taken back ---- */

static struct link_msg
cancel_msg(struct json_msg *json)
{
	return fleet_scan("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			  "\"params\":{\"requestId\":7,\"reason\":\"bored\"}}",
	    json);
}

START_TEST(cancelled_in_every_phase)
{
	struct fleet *f = fleet_started(2);
	struct json_msg json;
	struct link_msg m = cancel_msg(&json);
	const struct fake_sent *s;
	struct caller k;

	/* While it waits for the lists. */
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	call_cancel(&k.c, &m);
	call_fini(&k.c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	/* While its owner holds it. */
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	ck_assert_uint_eq(upstream_in_flight(f->u[0]), 1);
	call_cancel(&k.c, &m);
	ck_assert_uint_eq(upstream_in_flight(f->u[0]), 0);
	call_fini(&k.c);
	fleet_ready(f, 0);
	fleet_ready(f, 1);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 0);
	/* In flight: the owner is told, in the client's words or in none. */
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	call_cancel(&k.c, &m);
	call_fini(&k.c);
	s = fake_upstream_sent(f->u[0], 0);
	ck_assert(s->cancelled);
	ck_assert_str_eq(s->cancel, "{\"requestId\":7,\"reason\":\"bored\"}");
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	s = fake_upstream_sent(f->u[0], 1);
	ck_assert(s->cancelled);
	ck_assert_ptr_null(s->cancel);
	/* When it is over, nobody. */
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fake_upstream_result(f->u[0], 2, "{}");
	call_cancel(&k.c, &m);
	call_fini(&k.c);
	ck_assert(!fake_upstream_sent(f->u[0], 2)->cancelled);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), 0);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("call_wait");
	TCase *tc = tcase_create("call_wait");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, sent_as_soon_as_its_list_is_in);
	tcase_add_test(tc, held_by_a_starting_upstream);
	tcase_add_loop_test(tc, wait_is_over, 0, (int)(sizeof(ends) / sizeof(ends[0])));
	tcase_add_test(tc, bytes_that_wait_are_bounded);
	tcase_add_test(tc, no_wait_for_one_that_is_down);
	tcase_add_test(tc, hidden_is_unknown_also_of_one_that_is_down);
	tcase_add_test(tc, refused_after_the_wait);
	tcase_add_test(tc, bad_params_do_not_wait);
	tcase_add_test(tc, no_memory_to_wait_with);
	tcase_add_test(tc, cancelled_in_every_phase);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
