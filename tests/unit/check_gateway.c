/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* The fleet as one: waiting for lists, and telling of their changes. */
#include "mcpvisor/gateway.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS 4
#define TOOLS	(1u << LIST_TOOLS)

/* ---- waiting ---- */

static struct {
	struct gateway_waiter w[WAITERS];
	unsigned woken[WAITERS]; /* the how-manyeth; 0: not yet */
	unsigned n;
	unsigned retries;
	int drops; /* this one leaves: in the first wake, or in its own retry */
} waiting;

static void
on_woken(void *arg)
{
	struct gateway_waiter *w = arg;
	size_t i = (size_t)(w - waiting.w);

	ck_assert_ptr_null(w->g);
	ck_assert_uint_eq(waiting.woken[i], 0);
	waiting.woken[i] = ++waiting.n;
	if (waiting.drops >= 0)
		gateway_unwait(&waiting.w[waiting.drops]);
	waiting.drops = -1;
}

static void
wait_all(struct fleet *f)
{
	memset(&waiting, 0, sizeof(waiting));
	waiting.drops = -1;
	for (size_t i = 0; i < WAITERS; i++) {
		waiting.w[i].fn = on_woken;
		waiting.w[i].arg = &waiting.w[i];
		ck_assert(gateway_wait(f->g, &waiting.w[i]));
	}
}

static void
assert_woken(unsigned a, unsigned b, unsigned c, unsigned d)
{
	ck_assert_uint_eq(waiting.woken[0], a);
	ck_assert_uint_eq(waiting.woken[1], b);
	ck_assert_uint_eq(waiting.woken[2], c);
	ck_assert_uint_eq(waiting.woken[3], d);
}

START_TEST(woken_in_order_when_all_are_in)
{
	struct fleet *f = fleet_new(2, NULL);

	wait_all(f);
	gateway_start(f->g);
	fleet_ready(f, 1);
	ck_assert(!gateway_is_settled(f->g));
	assert_woken(0, 0, 0, 0);
	fleet_ready(f, 0);
	ck_assert(gateway_is_settled(f->g));
	assert_woken(1, 2, 3, 4);
	ck_assert(!gateway_wait(f->g, &waiting.w[0]));
	ck_assert_uint_eq(fake_loop_timers(f->loop), 0);
	fleet_free(f);
}
END_TEST

START_TEST(wait_is_bounded)
{
	struct fleet *f = fleet_new(2, NULL);

	gateway_start(f->g);
	fleet_ready(f, 0);
	wait_all(f);
	fake_loop_advance(f->loop, FLEET_WAIT_MS - 1);
	assert_woken(0, 0, 0, 0);
	fake_loop_advance(f->loop, 1);
	assert_woken(1, 2, 3, 4);
	/* It is over for good: nobody waits a second time. */
	ck_assert(!gateway_wait(f->g, &waiting.w[0]));
	ck_assert(!gateway_is_settled(f->g));
	fleet_ready(f, 1);
	ck_assert(gateway_is_settled(f->g));
	assert_woken(1, 2, 3, 4);
	fleet_free(f);
}
END_TEST

START_TEST(who_left_is_not_woken)
{
	struct fleet *f = fleet_new(1, NULL);
	struct gateway_waiter idle = {.g = NULL};

	wait_all(f);
	gateway_unwait(&waiting.w[3]); /* the last */
	gateway_unwait(&waiting.w[3]);
	gateway_unwait(&waiting.w[1]);
	gateway_unwait(&idle);
	ck_assert(gateway_wait(f->g, &waiting.w[1]));
	waiting.drops = 2;
	gateway_stop_waiting(f->g);
	assert_woken(1, 2, 0, 0);
	gateway_stop_waiting(f->g);
	assert_woken(1, 2, 0, 0);
	fleet_free(f);
}
END_TEST

START_TEST(nothing_to_wait_for)
{
	struct fleet *f = fleet_new(0, NULL);

	wait_all(f);
	gateway_start(f->g);
	assert_woken(1, 2, 3, 4);
	ck_assert(gateway_is_settled(f->g));
	fleet_free(f);
}
END_TEST

START_TEST(one_that_cannot_run_holds_up_nobody)
{
	struct fleet *f = fleet_new(2, NULL);

	f->confs[0]->broken = MV_CONF;
	(void)snprintf(f->confs[0]->broken_text, sizeof(f->confs[0]->broken_text), "no");
	wait_all(f);
	gateway_start(f->g);
	assert_woken(0, 0, 0, 0);
	fake_upstream_set_state(f->u[1], UPSTREAM_ST_DOWN, "died");
	fake_upstream_settle(f->u[1]);
	assert_woken(1, 2, 3, 4);
	fleet_free(f);
}
END_TEST

static void
on_retry(void *arg)
{
	struct gateway_waiter *w = arg;

	waiting.retries++;
	if (w - waiting.w == waiting.drops)
		gateway_unwait(w);
}

START_TEST(tried_again_at_each_list)
{
	struct fleet *f = fleet_new(1, NULL);

	wait_all(f);
	gateway_start(f->g);
	waiting.w[0].retry = waiting.w[1].retry = waiting.w[3].retry = on_retry;
	waiting.drops = 1;
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	ck_assert_uint_eq(waiting.retries, 3);
	/* The same again is nothing new. */
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	ck_assert_uint_eq(waiting.retries, 3);
	fleet_list(f, 0, LIST_PROMPTS, "a", NULL);
	ck_assert_uint_eq(waiting.retries, 5);
	waiting.drops = -1;
	fleet_ready(f, 0);
	assert_woken(1, 0, 2, 3);
	fleet_free(f);
}
END_TEST

/* ---- changes ---- */

struct hearer {
	struct gateway_observer o;
	struct gateway *g;
	unsigned n, kinds;
	bool leaves;
};

static void
on_changed(void *arg, unsigned kinds)
{
	struct hearer *h = arg;

	h->n++;
	h->kinds |= kinds;
	if (h->leaves)
		gateway_unobserve(h->g, &h->o);
}

static void
hearer_init(struct hearer *h, struct fleet *f)
{
	memset(h, 0, sizeof(*h));
	h->g = f->g;
	h->o.on_changed = on_changed;
	h->o.arg = h;
	gateway_observe(f->g, &h->o);
	ck_assert_int_eq(h->o.level, MCP_LV_MAX);
}

static void
assert_heard(struct fleet *f, struct hearer *h, unsigned n, unsigned kinds)
{
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h->n, n);
	ck_assert_uint_eq(h->kinds, kinds);
	h->n = 0;
	h->kinds = 0;
}

START_TEST(told_once_a_burst)
{
	struct fleet *f = fleet_running(2);
	struct hearer h;

	hearer_init(&h, f);
	(void)gateway_list(f->g, 0, LIST_TOOLS);
	(void)gateway_list(f->g, 0, LIST_RESOURCES);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 20);
	fleet_list(f, 0, LIST_TOOLS, "a", "b", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "a:/", NULL);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(h.n, 0);
	assert_heard(f, &h, 1, TOOLS | 1u << LIST_RESOURCES);
	assert_heard(f, &h, 0, 0);
	/* The next one is another burst, whether anybody looked or not. */
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 1, TOOLS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

START_TEST(told_only_of_real_changes)
{
	struct fleet *f = fleet_running(2);
	struct hearer h;

	hearer_init(&h, f);
	/* Who relies on hearing of changes hears of them, whether it asked or not. */
	gateway_note_listener(f->g);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 1, TOOLS);
	/* The same bytes again; there and back; something that is left out. */
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 0, 0);
	fleet_list(f, 0, LIST_TOOLS, NULL);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 0, 0);
	fleet_list(f, 0, LIST_TOOLS, "a", "a", NULL);
	assert_heard(f, &h, 0, 0);
	/* One client that was quicker to ask does not keep it from the others. */
	fleet_list(f, 0, LIST_TOOLS, "b", NULL);
	(void)gateway_list(f->g, 0, LIST_TOOLS);
	assert_heard(f, &h, 1, TOOLS);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, &h, 1, TOOLS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

/* While they come in, lists grow: nobody has an old copy. */
START_TEST(starting_is_no_change)
{
	struct fleet *f = fleet_new(2, NULL);
	struct hearer h;

	hearer_init(&h, f);
	gateway_start(f->g);
	gateway_note_listener(f->g);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_ready(f, 0);
	fake_loop_advance(f->loop, 100);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fleet_ready(f, 1);
	assert_heard(f, &h, 0, 0);
	fleet_list(f, 1, LIST_TOOLS, NULL);
	assert_heard(f, &h, 1, TOOLS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

/* Past the wait whoever listens is told of what comes late. */
START_TEST(listener_hears_of_the_late_one)
{
	struct fleet *f = fleet_new(2, NULL);
	struct hearer h;

	hearer_init(&h, f);
	gateway_start(f->g);
	fleet_ready(f, 0);
	fake_loop_advance(f->loop, FLEET_WAIT_MS);
	gateway_note_listener(f->g);
	fleet_list(f, 1, LIST_PROMPTS, "p", NULL);
	fleet_ready(f, 1);
	assert_heard(f, &h, 1, 1u << LIST_PROMPTS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

START_TEST(late_upstream_is_a_change)
{
	struct fleet *f = fleet_new(2, NULL);
	struct gateway_list l;
	struct hearer h;

	hearer_init(&h, f);
	gateway_start(f->g);
	fake_upstream_list(f->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":60000,\"cacheScope\":\"public\"}");
	fleet_ready(f, 0);
	fake_loop_advance(f->loop, FLEET_WAIT_MS);
	l = gateway_list(f->g, 0, LIST_TOOLS);
	assert_text(l.body, "[{\"name\":\"alpha__a\"}]");
	ck_assert_uint_eq(l.ttl_ms, 0); /* incomplete */
	ck_assert(!l.is_private);
	fake_upstream_list(f->u[1], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":90000,\"cacheScope\":\"public\"}");
	fleet_ready(f, 1);
	assert_heard(f, &h, 1, TOOLS);
	l = gateway_list(f->g, 0, LIST_TOOLS);
	assert_text(l.body, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	ck_assert_uint_eq(l.ttl_ms, 60000 - FLEET_WAIT_MS - 1000);
	ck_assert_uint_eq(fake_upstream_refreshes(f->u[0], LIST_TOOLS), 2);
	ck_assert_uint_eq(fake_upstream_refreshes(f->u[1], LIST_TOOLS), 2);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

START_TEST(observers_may_leave_when_told)
{
	struct fleet *f = fleet_running(1);
	struct hearer h[3];

	for (size_t i = 0; i < 3; i++)
		hearer_init(&h[i], f);
	h[1].leaves = h[2].leaves = true;
	(void)gateway_list(f->g, 0, LIST_TOOLS);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 1000);
	fleet_list(f, 0, LIST_TOOLS, "b", NULL);
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h[0].n, 2);
	ck_assert_uint_eq(h[1].n, 1);
	ck_assert_uint_eq(h[2].n, 1);
	gateway_unobserve(f->g, &h[0].o);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway");
	TCase *tc = tcase_create("gateway");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, woken_in_order_when_all_are_in);
	tcase_add_test(tc, wait_is_bounded);
	tcase_add_test(tc, who_left_is_not_woken);
	tcase_add_test(tc, nothing_to_wait_for);
	tcase_add_test(tc, one_that_cannot_run_holds_up_nobody);
	tcase_add_test(tc, tried_again_at_each_list);
	tcase_add_test(tc, told_once_a_burst);
	tcase_add_test(tc, starting_is_no_change);
	tcase_add_test(tc, listener_hears_of_the_late_one);
	tcase_add_test(tc, told_only_of_real_changes);
	tcase_add_test(tc, late_upstream_is_a_change);
	tcase_add_test(tc, observers_may_leave_when_told);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
