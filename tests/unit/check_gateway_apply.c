/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Another fleet while calls are in flight. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL_ALPHA "{\"name\":\"alpha__a\"}"
#define CALL_BETA  "{\"name\":\"beta__a\"}"
#define CALL_GAMMA "{\"name\":\"gamma__a\"}"
#define TOOLS	   (1u << LIST_TOOLS)
#define DRAIN_MS   30000

/* alpha and beta, each with its tool a. */
static struct fleet *
fleet_of_two(void)
{
	struct fleet *f = fleet_running(2);

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 1000);
	return f;
}

/* n of them, of which the one at changed (-1: none) starts another process. */
static struct fleet_conf *
conf_of(size_t n, int changed)
{
	struct fleet_conf *c = fleet_conf_new(n);

	if (changed >= 0)
		c->confs[changed]->cwd = mem_xstrdup("/elsewhere");
	return c;
}

static void
assert_tools(struct fleet *f, unsigned view, const char *want)
{
	assert_text(gateway_list(f->g, view, LIST_TOOLS).body, want);
}

static void
assert_unknown(struct fleet *f, const char *params)
{
	struct caller k;

	ck_assert_int_eq(caller_start(f, &k, "tools/call", params), MV_NOT_FOUND);
	call_fini(&k.c);
}

static void
end_call(struct upstream *u, size_t i, const struct caller *k)
{
	fake_upstream_result(u, i, "{\"x\":1}");
	ck_assert_uint_eq(k->done, 1);
	ck_assert_str_eq(k->body, "{\"x\":1}");
}

/* ---- one at a time ---- */

START_TEST(what_is_the_same_stays)
{
	struct fleet *f = fleet_of_two();
	struct upstream *alpha = f->u[0], *beta = f->u[1];
	struct caller k;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fleet_apply(f, fleet_conf_new(2), DRAIN_MS);
	ck_assert_ptr_eq(f->u[0], alpha);
	ck_assert_ptr_eq(f->u[1], beta);
	ck_assert_ptr_eq(upstream_conf_of(alpha), f->confs[0]);
	ck_assert_uint_eq(fake_upstream_confs(beta), 1);
	/* Nobody points to the old conf: it went before gateway_apply returned. */
	ck_assert_uint_eq(f->released, 1);
	ck_assert_uint_eq(f->made, 2);
	ck_assert_uint_eq(fake_upstream_starts(alpha), 1);
	end_call(alpha, 0, &k);
	fleet_free(f);
}
END_TEST

START_TEST(new_one_starts)
{
	struct fleet *f = fleet_of_two();
	struct caller k;

	fleet_apply(f, fleet_conf_new(3), DRAIN_MS);
	ck_assert_uint_eq(f->made, 3);
	ck_assert_ptr_eq(f->last_made, f->u[2]);
	ck_assert_uint_eq(fake_upstream_starts(f->u[2]), 1);
	ck_assert_uint_eq(f->released, 1);
	ck_assert(!gateway_is_settled(f->g));
	ck_assert_ptr_eq(gateway_find_upstream(f->g, "gamma"), f->u[2]);
	fleet_ready(f, 2);
	ck_assert(gateway_is_settled(f->g));
	fleet_list(f, 2, LIST_TOOLS, "a", NULL);
	caller_begin(f, &k, "tools/call", CALL_GAMMA);
	end_call(f->u[2], 0, &k);
	fleet_free(f);
}
END_TEST

START_TEST(order_is_that_of_the_new_conf)
{
	struct fleet *f = fleet_of_two();
	struct fleet_conf *c = fleet_conf_new(0);

	(void)fleet_conf_add(c, "beta");
	(void)fleet_conf_add(c, "alpha");
	fleet_apply(f, c, DRAIN_MS);
	assert_tools(f, 0, "[{\"name\":\"beta__a\"},{\"name\":\"alpha__a\"}]");
	ck_assert_uint_eq(f->made, 2);
	fleet_free(f);
}
END_TEST

START_TEST(removed_one_finishes_its_calls)
{
	struct fleet *f = fleet_of_two();
	struct upstream *beta = f->u[1];
	struct caller k, other;

	f->confs[1]->kill_ms = 77;
	fake_upstream_stop_slowly(beta, true);
	caller_begin(f, &k, "tools/call", CALL_BETA);
	caller_begin(f, &other, "tools/call", CALL_BETA);
	fleet_apply(f, fleet_conf_new(1), DRAIN_MS);
	assert_unknown(f, CALL_BETA);
	assert_tools(f, 0, "[{\"name\":\"alpha__a\"}]");
	ck_assert_ptr_null(gateway_find_upstream(f->g, "beta"));
	end_call(beta, 0, &k);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(fake_upstream_stops(beta), 0);
	ck_assert_uint_eq(f->released, 0);
	call_cancel(&other.c, NULL);
	call_fini(&other.c);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(fake_upstream_stops(beta), 1);
	ck_assert_uint_eq(fake_upstream_ladder(beta).kill_ms, 77);
	ck_assert_uint_eq(f->released, 0);
	fake_upstream_stopped(beta);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	ck_assert_uint_eq(fake_loop_timers(f->loop), 0);
	fleet_free(f);
}
END_TEST

START_TEST(changed_one_gets_a_successor)
{
	struct fleet *f = fleet_of_two();
	struct upstream *old = f->u[0];
	struct gateway_observer o = {.arg = NULL};
	struct caller before, after;

	gateway_observe(f->g, &o);
	gateway_set_level(f->g, &o, MCP_LV_INFO);
	caller_begin(f, &before, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 0), DRAIN_MS);
	ck_assert_ptr_ne(f->u[0], old);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_INFO);
	/* It knows what the old one knew, until it knows better. */
	ck_assert(gateway_is_settled(f->g));
	assert_tools(f, 0, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	caller_begin(f, &after, "tools/call", CALL_ALPHA);
	ck_assert_uint_eq(upstream_in_flight(f->u[0]), 1);
	end_call(old, 0, &before);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	end_call(f->u[0], 0, &after);
	gateway_unobserve(f->g, &o);
	fleet_free(f);
}
END_TEST

/* Else it would sleep on what another process has offered. */
START_TEST(heir_that_is_for_use_looks_for_itself)
{
	struct fleet *f = fleet_of_two();
	struct fleet_conf *c = conf_of(2, 0);

	c->confs[0]->start = START_ON_USE;
	fleet_apply(f, c, DRAIN_MS);
	ck_assert_int_eq(upstream_state(f->u[0]), UPSTREAM_ST_PROBE);
	assert_tools(f, 0, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	fleet_free(f);
}
END_TEST

static void
give_memory(struct fleet *f, struct upstream *u)
{
	struct buf b;

	buf_init(&b, 4096);
	upstream_put_memory(f->u[1], &b);
	if (b.len > 0)
		ck_assert_int_eq(upstream_take_memory(u, b.data, b.len), MV_OK);
	buf_fini(&b);
}

START_TEST(what_was_kept_of_it_comes_first)
{
	struct fleet *f = fleet_of_two();

	fleet_list(f, 1, LIST_TOOLS, "kept", NULL);
	f->on_made = give_memory;
	fleet_apply(f, conf_of(2, 0), DRAIN_MS);
	assert_tools(f, 0, "[{\"name\":\"alpha__kept\"},{\"name\":\"beta__kept\"}]");
	fleet_free(f);
}
END_TEST

START_TEST(drain_is_bounded)
{
	struct fleet *f = fleet_of_two();
	struct caller k;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 0), 400);
	fake_loop_advance(f->loop, 399);
	ck_assert_uint_eq(k.done, 0);
	fake_loop_advance(f->loop, 1);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.err, MV_STOPPING);
	ck_assert_uint_eq(f->released, 1);
	fleet_free(f);
}
END_TEST

/* Each conf goes as soon as its own upstreams have, in order. */
START_TEST(twice_in_a_row)
{
	struct fleet *f = fleet_of_two();
	struct upstream *first = f->u[0], *second;
	struct caller one, two;

	caller_begin(f, &one, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 0), DRAIN_MS);
	second = f->u[0];
	fleet_ready(f, 0);
	caller_begin(f, &two, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 1), DRAIN_MS);
	ck_assert_ptr_ne(f->u[0], second);
	end_call(second, 0, &two);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 0); /* the first conf is older */
	end_call(first, 0, &one);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 2);
	fleet_apply(f, conf_of(2, 1), DRAIN_MS);
	ck_assert_uint_eq(f->released, 3);
	fleet_apply(f, fleet_conf_new(0), DRAIN_MS);
	assert_tools(f, 0, "[]");
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 4);
	fleet_free(f);
}
END_TEST

START_TEST(broken_one_is_replaced)
{
	struct fleet *f = fleet_of_two();
	struct fleet_conf *c = fleet_conf_new(2);
	struct caller k;

	c->confs[0]->broken = MV_CONF;
	fleet_apply(f, c, DRAIN_MS);
	ck_assert_int_eq(upstream_state(f->u[0]), UPSTREAM_ST_PARKED);
	ck_assert_int_eq(caller_start(f, &k, "tools/call", CALL_ALPHA), MV_CONF);
	call_fini(&k.c);
	fleet_apply(f, fleet_conf_new(2), DRAIN_MS);
	fleet_ready(f, 0);
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	end_call(f->u[0], 0, &k);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 2);
	fleet_free(f);
}
END_TEST

/* ---- who waits, who listens ---- */

START_TEST(who_waits_goes_on_waiting)
{
	struct fleet *f = fleet_new(2, NULL);
	struct caller k, other;

	gateway_start(f->g);
	caller_begin(f, &k, "tools/call", CALL_GAMMA);
	caller_begin(f, &other, "tools/call", CALL_BETA);
	fleet_apply(f, fleet_conf_new(3), DRAIN_MS);
	fleet_ready(f, 2);
	fleet_list(f, 2, LIST_TOOLS, "a", NULL);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[2]), 1);
	end_call(f->u[2], 0, &k);
	/* Without beta and alpha there is nothing left to wait for. */
	ck_assert_uint_eq(other.done, 0);
	{
		struct fleet_conf *c = fleet_conf_new(0);

		(void)fleet_conf_add(c, "gamma");
		fleet_apply(f, c, DRAIN_MS);
	}
	ck_assert_uint_eq(other.done, 1);
	ck_assert_int_eq(other.last.err, MV_NOT_FOUND);
	ck_assert(gateway_is_settled(f->g));
	fleet_free(f);
}
END_TEST

struct hearer {
	struct gateway_observer o;
	unsigned n, kinds;
};

static void
on_changed(void *arg, unsigned kinds)
{
	struct hearer *h = arg;

	h->n++;
	h->kinds |= kinds;
}

static void
hearer_init(struct hearer *h, struct fleet *f, unsigned view)
{
	memset(h, 0, sizeof(*h));
	h->o.view = view;
	h->o.on_changed = on_changed;
	h->o.arg = h;
	gateway_observe(f->g, &h->o);
	gateway_note_listener(f->g);
}

static void
assert_heard(struct fleet *f, struct hearer *h, unsigned n, unsigned kinds)
{
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h->n, n);
	ck_assert_uint_eq(h->kinds, kinds);
	h->n = h->kinds = 0;
}

START_TEST(changes_are_told)
{
	struct fleet *f = fleet_of_two();
	struct hearer h;

	hearer_init(&h, f, 0);
	fleet_apply(f, conf_of(2, 1), DRAIN_MS);
	assert_heard(f, &h, 0, 0); /* the same lists */
	fleet_apply(f, fleet_conf_new(1), DRAIN_MS);
	assert_heard(f, &h, 1, TOOLS);
	fleet_apply(f, fleet_conf_new(2), DRAIN_MS);
	assert_heard(f, &h, 0, 0);
	fleet_ready(f, 1);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 1, TOOLS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

/* ---- restart ---- */

START_TEST(restart_is_graceful)
{
	struct fleet *f = fleet_of_two();
	struct upstream *old = f->u[0];
	struct caller k, after;

	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	gateway_restart(f->g, f->u[0], DRAIN_MS);
	fleet_look(f);
	ck_assert_ptr_ne(f->u[0], old);
	ck_assert_ptr_eq(upstream_conf_of(f->u[0]), f->confs[0]);
	ck_assert_uint_eq(fake_upstream_wakes(f->u[0]), 1);
	caller_begin(f, &after, "tools/call", CALL_ALPHA);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	end_call(f->u[0], 0, &after);
	end_call(old, 0, &k);
	gateway_restart(f->g, f->u[1], 0);
	fleet_look(f);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 0); /* there was no other fleet */
	ck_assert_uint_eq(f->made, 4);
	/* A conf is held by what was restarted under it as well. */
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	old = f->u[0];
	gateway_restart(f->g, old, DRAIN_MS);
	fleet_apply(f, fleet_conf_new(2), DRAIN_MS);
	ck_assert_uint_eq(f->released, 0);
	end_call(old, 1, &k);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	fleet_free(f);
}
END_TEST

START_TEST(restart_of_a_parked_one)
{
	struct fleet *f = fleet_of_two();

	fake_upstream_set_state(f->u[0], UPSTREAM_ST_PARKED, "no");
	gateway_restart(f->g, f->u[0], DRAIN_MS);
	fleet_look(f);
	ck_assert_int_eq(upstream_state(f->u[0]), UPSTREAM_ST_PROBE);
	assert_tools(f, 0, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	fleet_free(f);
}
END_TEST

/* ---- the end ---- */

static void
on_stopped(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(stop_ends_a_drain)
{
	struct child_ladder ladder = {.term_ms = 1, .kill_ms = 2, .drain_ms = 3};
	struct fleet *f = fleet_of_two();
	struct upstream *old = f->u[0];
	struct fleet_conf *c;
	struct caller k;
	unsigned n = 0;

	fake_upstream_stop_slowly(old, true);
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 0), DRAIN_MS);
	gateway_stop(f->g, &ladder, on_stopped, &n);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.err, MV_STOPPING);
	ck_assert_uint_eq(fake_upstream_ladder(old).kill_ms, 2);
	ck_assert_uint_eq(n, 0);
	fake_upstream_stopped(old);
	ck_assert_uint_eq(n, 1);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	/* Too late for another one. */
	c = f->conf;
	fleet_apply(f, conf_of(2, 1), DRAIN_MS);
	gateway_restart(f->g, f->u[0], DRAIN_MS);
	fleet_look(f);
	ck_assert_ptr_eq(upstream_conf_of(f->u[0]), c->confs[0]);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	fleet_free(f);
}
END_TEST

START_TEST(freed_in_the_middle)
{
	struct fleet *f = fleet_of_two();
	struct upstream *old = f->u[0];
	struct caller k;

	fake_upstream_stop_slowly(old, true);
	caller_begin(f, &k, "tools/call", CALL_ALPHA);
	fleet_apply(f, conf_of(2, 0), 10);
	fake_loop_advance(f->loop, 10);
	fleet_apply(f, fleet_conf_new(1), DRAIN_MS);
	gateway_stop_waiting(f->g);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_apply");
	TCase *tc = tcase_create("gateway_apply");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, what_is_the_same_stays);
	tcase_add_test(tc, new_one_starts);
	tcase_add_test(tc, order_is_that_of_the_new_conf);
	tcase_add_test(tc, removed_one_finishes_its_calls);
	tcase_add_test(tc, changed_one_gets_a_successor);
	tcase_add_test(tc, heir_that_is_for_use_looks_for_itself);
	tcase_add_test(tc, what_was_kept_of_it_comes_first);
	tcase_add_test(tc, drain_is_bounded);
	tcase_add_test(tc, twice_in_a_row);
	tcase_add_test(tc, broken_one_is_replaced);
	tcase_add_test(tc, who_waits_goes_on_waiting);
	tcase_add_test(tc, changes_are_told);
	tcase_add_test(tc, restart_is_graceful);
	tcase_add_test(tc, restart_of_a_parked_one);
	tcase_add_test(tc, stop_ends_a_drain);
	tcase_add_test(tc, freed_in_the_middle);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
