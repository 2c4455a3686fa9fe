/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Instances of one client's own, and of one call at a time. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL_A "{\"name\":\"alpha__a\"}"

/* alpha, with its tool a. */
static struct fleet_conf *
conf_of(enum isolation isolation, uint32_t max)
{
	struct fleet_conf *c = fleet_conf_new(1);

	c->confs[0]->isolation = isolation;
	c->confs[0]->max_instances = max;
	return c;
}

static struct fleet *
fleet_of(enum isolation isolation, uint32_t max)
{
	struct fleet *f = fleet_running_from(conf_of(isolation, max));

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	return f;
}

static void
observe(struct fleet *f, struct gateway_observer *o, size_t n)
{
	memset(o, 0, n * sizeof(*o));
	for (size_t i = 0; i < n; i++) {
		o[i].has_instances = true;
		gateway_observe(f->g, &o[i]);
	}
}

static struct upstream *
pick(struct fleet *f, struct gateway_observer *o, enum mv_err want)
{
	struct upstream *u = f->u[0];

	ck_assert_int_eq(gateway_pick_instance(f->g, &u, o, 0), want);
	if (want != MV_OK)
		ck_assert_ptr_eq(u, f->u[0]);
	return u;
}

static void
make_ready(struct upstream *u)
{
	fake_upstream_set_state(u, UPSTREAM_ST_READY, "");
}

/* ---- one client's own ---- */

START_TEST(shared_unless_asked_otherwise)
{
	static const enum isolation kinds[] = {ISOLATION_AUTO, ISOLATION_SHARED};
	struct fleet *f = fleet_of(kinds[_i], 1);
	struct gateway_observer o;

	observe(f, &o, 1);
	ck_assert_ptr_eq(pick(f, &o, MV_OK), f->u[0]);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 0);
	gateway_unobserve(f->g, &o);
	fleet_free(f);
}
END_TEST

START_TEST(one_for_each_client)
{
	struct fleet *f = fleet_of(ISOLATION_SESSION, 2);
	struct gateway_observer o[3];
	struct upstream *a, *b;

	observe(f, o, 3);
	gateway_set_level(f->g, &o[0], MCP_LV_ERROR);
	a = pick(f, &o[0], MV_OK);
	b = pick(f, &o[1], MV_OK);
	ck_assert_ptr_ne(a, f->u[0]);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(pick(f, &o[0], MV_OK), a);
	ck_assert_int_eq(fake_upstream_level(a), MCP_LV_ERROR);
	ck_assert_int_eq(fake_upstream_level(b), MCP_LV_MAX);
	ck_assert_uint_eq(o[0].n_instances, 1);
	ck_assert_uint_eq(f->made, 1); /* nothing is kept of them */
	/* One more than there may be. */
	(void)pick(f, &o[2], MV_BUSY);
	ck_assert_uint_eq(upstream_stats(f->u[0]).busy, 1);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 2);
	gateway_unobserve(f->g, &o[0]);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 1);
	(void)pick(f, &o[2], MV_OK);
	/* Nobody in particular, or one whose endpoint has only one client. */
	o[1].has_instances = false;
	ck_assert_ptr_eq(pick(f, &o[1], MV_OK), f->u[0]);
	ck_assert_ptr_eq(pick(f, NULL, MV_OK), f->u[0]);
	gateway_unobserve(f->g, &o[1]);
	gateway_unobserve(f->g, &o[2]);
	fleet_free(f);
}
END_TEST

START_TEST(kept_awake_by_a_stream)
{
	struct fleet *f = fleet_of(ISOLATION_SESSION, 2);
	struct gateway_observer o[2];
	struct upstream *a, *b;

	observe(f, o, 2);
	a = pick(f, &o[0], MV_OK);
	gateway_set_stream(f->g, &o[0], true);
	gateway_set_stream(f->g, &o[0], true);
	gateway_set_stream(f->g, &o[1], true);
	b = pick(f, &o[1], MV_OK);
	ck_assert_uint_eq(fake_upstream_holds(a), 1);
	ck_assert_uint_eq(fake_upstream_holds(b), 1);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
	gateway_set_stream(f->g, &o[0], false);
	gateway_set_stream(f->g, &o[0], false);
	ck_assert_uint_eq(fake_upstream_holds(a), 0);
	gateway_unobserve(f->g, &o[0]);
	gateway_unobserve(f->g, &o[1]);
	fleet_free(f);
}
END_TEST

START_TEST(bounded_in_all)
{
	struct fleet *f = fleet_of(ISOLATION_SESSION, CAP_INSTANCES + 1);
	struct gateway_observer *o = mem_xcalloc(CAP_INSTANCES + 1, sizeof(*o));

	observe(f, o, CAP_INSTANCES + 1);
	for (size_t i = 0; i < CAP_INSTANCES; i++)
		(void)pick(f, &o[i], MV_OK);
	(void)pick(f, &o[CAP_INSTANCES], MV_BUSY);
	for (size_t i = 0; i < CAP_INSTANCES + 1; i++)
		gateway_unobserve(f->g, &o[i]);
	fleet_free(f);
	mem_free(o);
}
END_TEST

START_TEST(broken_one_has_none)
{
	struct fleet_conf *c = conf_of(ISOLATION_CALL, 1);
	struct fleet *f;

	c->confs[0]->broken = MV_CONF;
	f = fleet_from(c);
	gateway_start(f->g);
	ck_assert_ptr_eq(pick(f, NULL, MV_OK), f->u[0]);
	fleet_free(f);
}
END_TEST

/* ---- one call at a time ---- */

static struct upstream *
begin(struct fleet *f, struct caller *k)
{
	caller_begin(f, k, "tools/call", CALL_A);
	ck_assert_ptr_ne(k->c.u, f->u[0]);
	ck_assert_uint_eq(upstream_in_flight(k->c.u), 1);
	if (upstream_state(k->c.u) != UPSTREAM_ST_READY)
		make_ready(k->c.u);
	return k->c.u;
}

static void
end(struct upstream *u, struct caller *k)
{
	fake_upstream_result(u, fake_upstream_n_sent(u) - 1, "{}");
	ck_assert_uint_eq(k->done, 1);
}

START_TEST(pool_gives_each_call_its_own)
{
	struct fleet *f = fleet_of(ISOLATION_CALL, 2);
	struct caller k[3];
	struct upstream *a, *b;

	a = begin(f, &k[0]);
	b = begin(f, &k[1]);
	ck_assert_ptr_ne(a, b);
	ck_assert_int_eq(caller_start(f, &k[2], "tools/call", CALL_A), MV_BUSY);
	call_fini(&k[2].c);
	ck_assert_uint_eq(upstream_stats(f->u[0]).busy, 1);
	end(a, &k[0]);
	/* It may be used again, at once. */
	ck_assert_ptr_eq(begin(f, &k[2]), a);
	end(a, &k[2]);
	end(b, &k[1]);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 2);
	fleet_free(f);
}
END_TEST

START_TEST(pool_shrinks_when_idle)
{
	struct fleet_conf *c = conf_of(ISOLATION_CALL, 2);
	struct fleet *f;
	struct caller k[2];
	struct upstream *a, *b;
	uint64_t ms = _i == 0 ? 60000 : 500;

	c->confs[0]->idle_stop_ms = _i == 0 ? 0 : 500;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 6000);
	a = begin(f, &k[0]);
	b = begin(f, &k[1]);
	fake_loop_advance(f->loop, ms + 10);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 2); /* in use */
	end(b, &k[1]);
	fake_loop_advance(f->loop, ms - 1);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 2);
	fake_loop_advance(f->loop, 2);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 1);
	end(a, &k[0]);
	fake_loop_advance(f->loop, ms + 1);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 0);
	ck_assert_uint_eq(fake_upstream_stops(f->u[0]), 0);
	fleet_free(f);
}
END_TEST

START_TEST(pool_that_does_not_work_does_not_grow)
{
	struct fleet *f = fleet_of(ISOLATION_CALL, 8);
	struct caller k[2];
	struct upstream *a = begin(f, &k[0]);

	fake_upstream_set_state(a, UPSTREAM_ST_DOWN, "died");
	ck_assert_uint_eq(k[0].done, 1);
	ck_assert_int_eq(caller_start(f, &k[1], "tools/call", CALL_A), MV_BACKOFF);
	call_fini(&k[1].c);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 1);
	/* While another one works, one that does not is passed over. */
	make_ready(a);
	ck_assert_ptr_eq(begin(f, &k[0]), a);
	ck_assert_ptr_ne(begin(f, &k[1]), a);
	fake_upstream_set_state(a, UPSTREAM_ST_DOWN, "died");
	ck_assert_uint_eq(k[0].done, 1);
	ck_assert_ptr_ne(begin(f, &k[0]), a);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 3);
	fake_upstream_set_state(k[0].c.u, UPSTREAM_ST_DOWN, "died");
	fake_upstream_set_state(k[1].c.u, UPSTREAM_ST_DOWN, "died");
	fleet_free(f);
}
END_TEST

/* One that has not answered in all that time, or not before its client gave up, may be at
 * it still, and could ask or log for that call when the next one is there: it is not used
 * again, not even in the same turn. */
START_TEST(pool_lets_go_of_a_stuck_one)
{
	struct fleet *f = fleet_of(ISOLATION_CALL, 2);
	struct caller k;
	struct upstream *a = begin(f, &k), *b;

	if (_i == 0) {
		fake_upstream_fail(a, 0, MV_TIMEOUT, NULL);
	} else {
		call_cancel(&k.c, NULL);
		call_fini(&k.c);
	}
	b = begin(f, &k);
	ck_assert_ptr_ne(a, b);
	fake_loop_settle(f->loop);
	fake_loop_advance(f->loop, 1);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 1);
	end(b, &k);
	ck_assert_ptr_eq(begin(f, &k), b);
	end(b, &k);
	fleet_free(f);
}
END_TEST

/* ---- counts ---- */

START_TEST(counts_are_of_all)
{
	struct fleet *f = fleet_of(ISOLATION_CALL, 2);
	struct caller k[2];
	struct upstream *a = begin(f, &k[0]), *b = begin(f, &k[1]);
	struct upstream_stats s;

	upstream_note_busy(f->u[0]);
	fake_upstream_stats(a)->tool_errors = 3;
	fake_upstream_stats(b)->cancelled = 5;
	ck_assert_uint_eq(gateway_in_flight(f->g, f->u[0]), 2);
	s = gateway_stats(f->g, f->u[0]);
	ck_assert_uint_eq(s.calls, 3);
	ck_assert_uint_eq(s.busy, 1);
	ck_assert_uint_eq(s.tool_errors, 3);
	ck_assert_uint_eq(s.cancelled, 5);
	end(a, &k[0]);
	end(b, &k[1]);
	/* They stay when those who counted them are gone. */
	fake_loop_advance(f->loop, 60001);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 0);
	ck_assert_uint_eq(gateway_in_flight(f->g, f->u[0]), 0);
	s = gateway_stats(f->g, f->u[0]);
	ck_assert_uint_eq(s.calls, 3);
	ck_assert_uint_eq(s.tool_errors, 3);
	ck_assert_uint_eq(s.cancelled, 5);
	fleet_free(f);
}
END_TEST

/* ---- another fleet ---- */

START_TEST(instances_follow_their_upstream)
{
	struct fleet *f = fleet_of(ISOLATION_CALL, 2);
	struct upstream *shared = f->u[0], *a;
	struct fleet_conf *c;
	struct caller k, other;

	a = begin(f, &k);
	fleet_apply(f, conf_of(ISOLATION_CALL, 1), 30000);
	ck_assert_ptr_eq(f->u[0], shared);
	ck_assert_ptr_eq(upstream_conf_of(a), f->confs[0]);
	ck_assert_uint_eq(f->released, 1);
	ck_assert_int_eq(caller_start(f, &other, "tools/call", CALL_A), MV_BUSY);
	call_fini(&other.c);
	/* Another process: the instances of the old one finish as well. */
	c = conf_of(ISOLATION_CALL, 1);
	c->confs[0]->cwd = mem_xstrdup("/elsewhere");
	fleet_apply(f, c, 30000);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 0);
	ck_assert_uint_eq(f->released, 1);
	ck_assert_uint_eq(fake_upstream_stops(a), 0);
	end(a, &k);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 2);
	fleet_free(f);
}
END_TEST

START_TEST(client_leaves_while_its_instance_drains)
{
	struct fleet *f = fleet_of(ISOLATION_SESSION, 2);
	struct gateway_observer o;
	struct caller k;
	struct upstream *a;

	observe(f, &o, 1);
	a = pick(f, &o, MV_OK);
	make_ready(a);
	caller_begin(f, &k, "tools/call", CALL_A);
	fleet_apply(f, conf_of(ISOLATION_SHARED, 2), 30000);
	ck_assert_ptr_eq(pick(f, &o, MV_OK), f->u[0]);
	gateway_unobserve(f->g, &o);
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	fleet_free(f);
}
END_TEST

static void
on_stopped(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(stop_waits_for_all)
{
	struct child_ladder ladder = {.term_ms = 1, .kill_ms = 2, .drain_ms = 3};
	struct fleet *f = fleet_of(ISOLATION_CALL, 2);
	struct caller k;
	struct upstream *a = begin(f, &k), *u = f->u[0];
	unsigned n = 0;

	fake_upstream_stop_slowly(a, true);
	gateway_stop(f->g, &ladder, on_stopped, &n);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(gateway_pick_instance(f->g, &u, NULL, 0), MV_STOPPING);
	fake_upstream_stopped(a);
	ck_assert_uint_eq(n, 1);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_instances");
	TCase *tc = tcase_create("gateway_instances");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, shared_unless_asked_otherwise, 0, 2);
	tcase_add_test(tc, one_for_each_client);
	tcase_add_test(tc, kept_awake_by_a_stream);
	tcase_add_test(tc, bounded_in_all);
	tcase_add_test(tc, broken_one_has_none);
	tcase_add_test(tc, pool_gives_each_call_its_own);
	tcase_add_loop_test(tc, pool_shrinks_when_idle, 0, 2);
	tcase_add_test(tc, pool_that_does_not_work_does_not_grow);
	tcase_add_loop_test(tc, pool_lets_go_of_a_stuck_one, 0, 2);
	tcase_add_test(tc, counts_are_of_all);
	tcase_add_test(tc, instances_follow_their_upstream);
	tcase_add_test(tc, client_leaves_while_its_instance_drains);
	tcase_add_test(tc, stop_waits_for_all);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
