/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Subscriptions: many subscribers, one watch, and nothing left behind. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URI_A "\"file:///a\""

/* ---- one subscriber ---- */

struct hearer {
	struct subscriber s;
	unsigned yes, no, updates;
	enum mv_err err; /* of the no */
	bool leaves_settled, leaves_updated;
	char text[256];
};

static void
on_settled(void *arg, const struct outcome *o)
{
	struct hearer *h = arg;

	if (o == NULL) {
		h->yes++;
	} else {
		h->no++;
		h->err = o->err;
		(void)snprintf(h->text, sizeof(h->text), "%.*s", (int)o->body.n,
		    o->body.n ? o->body.p : "");
		ck_assert_ptr_null(h->s.sub);
	}
	if (h->leaves_settled)
		subscription_remove(&h->s);
}

static void
on_updated(void *arg, const struct link_msg *m)
{
	struct hearer *h = arg;

	h->updates++;
	(void)snprintf(h->text, sizeof(h->text), "%.*s", (int)m->len, m->base);
	if (h->leaves_updated)
		subscription_remove(&h->s);
}

static void
hearer_init(struct hearer *h)
{
	memset(h, 0, sizeof(*h));
	h->s.on_settled = on_settled;
	h->s.on_updated = on_updated;
	h->s.arg = h;
}

static enum mv_err
hearer_add(struct fleet *f, struct hearer *h, const char *uri)
{
	return subscription_add(f->g, text_of(uri), &h->s);
}

static struct fleet *
fleet_with_resources(void)
{
	struct fleet *f = fleet_running(2);

	fleet_list(f, 0, LIST_RESOURCES, "file:///a", "file:///d/", "x:/n", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", NULL);
	return f;
}

static void
assert_answers(const struct hearer *h, unsigned yes, unsigned no, unsigned updates)
{
	ck_assert_uint_eq(h->yes, yes);
	ck_assert_uint_eq(h->no, no);
	ck_assert_uint_eq(h->updates, updates);
}

/* ---- counting ---- */

START_TEST(one_watch_for_all)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h[4];

	for (size_t i = 0; i < 4; i++)
		hearer_init(&h[i]);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	/* The same in other letters of JSON. */
	ck_assert_int_eq(hearer_add(f, &h[1], "\"file:\\/\\/\\/\\u0061\""), MV_OK);
	ck_assert_int_eq(hearer_add(f, &h[3], "\"file:///b\""), MV_OK);
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
	ck_assert_uint_eq(fake_upstream_watched(f->u[1]), 1);
	assert_answers(&h[0], 0, 0, 0);
	fake_upstream_settle_watch(f->u[0], NULL);
	assert_answers(&h[0], 1, 0, 0);
	assert_answers(&h[1], 1, 0, 0);
	assert_answers(&h[3], 0, 0, 0);
	/* A settled one answers the next at once. */
	ck_assert_int_eq(hearer_add(f, &h[2], URI_A), MV_OK);
	assert_answers(&h[2], 1, 0, 0);
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
	subscription_remove(&h[0].s);
	subscription_remove(&h[0].s);
	subscription_remove(&h[2].s);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	subscription_remove(&h[1].s);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	/* Anew is a new watch. */
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 2);
	subscription_remove(&h[0].s);
	subscription_remove(&h[3].s);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[1]), 0);
	fleet_free(f);
}
END_TEST

START_TEST(refused_leaves_nothing)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h[2];

	hearer_init(&h[0]);
	hearer_init(&h[1]);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	ck_assert_int_eq(hearer_add(f, &h[1], URI_A), MV_OK);
	fake_upstream_settle_watch(f->u[0], "{\"code\":-1,\"message\":\"no\"}");
	for (size_t i = 0; i < 2; i++) {
		assert_answers(&h[i], 0, 1, 0);
		ck_assert_str_eq(h[i].text, "{\"code\":-1,\"message\":\"no\"}");
		subscription_remove(&h[i].s);
	}
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	/* The answer may come before the add returns, either way. */
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_NO);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	assert_answers(&h[0], 0, 2, 0);
	ck_assert_int_eq(h[0].err, MV_UNSUPPORTED);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	assert_answers(&h[0], 1, 2, 0);
	subscription_remove(&h[0].s);
	fleet_free(f);
}
END_TEST

START_TEST(they_may_leave_in_their_callbacks)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h[3];

	for (size_t i = 0; i < 3; i++) {
		hearer_init(&h[i]);
		h[i].leaves_settled = true;
		ck_assert_int_eq(hearer_add(f, &h[i], URI_A), MV_OK);
	}
	fake_upstream_settle_watch(f->u[0], NULL);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_answers(&h[i], 1, 0, 0);
		ck_assert_int_eq(hearer_add(f, &h[i], URI_A), MV_OK);
	}
	fake_upstream_settle_watch(f->u[0], "{\"code\":-1,\"message\":\"no\"}");
	for (size_t i = 0; i < 3; i++) {
		assert_answers(&h[i], 1, 1, 0);
		h[i].leaves_settled = false;
		h[i].leaves_updated = true;
		ck_assert_int_eq(hearer_add(f, &h[i], URI_A), MV_OK);
	}
	fake_upstream_settle_watch(f->u[0], NULL);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	fake_upstream_updated(f->u[0], "{\"uri\":\"file:///a\"}");
	for (size_t i = 0; i < 3; i++)
		assert_answers(&h[i], 2, 1, 1);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	fleet_free(f);
}
END_TEST

/* ---- updates ---- */

static const struct {
	size_t from;
	const char *params;
	unsigned a, dir, b;
} updates[] = {
    {0, "{\"uri\":\"file:///a\"}", 1, 0, 0},
    {0, "{\"x\":1.0,\"uri\":\"file:\\/\\/\\/a\"}", 1, 0, 0},
    {0, "{\"uri\":\"file:///ab\"}", 0, 0, 0},
    {0, "{\"uri\":\"file:///\"}", 0, 0, 0},
    /* A part of what was subscribed to. */
    {0, "{\"uri\":\"file:///a/b/c\"}", 1, 0, 0},
    {0, "{\"uri\":\"file:///a?q\"}", 1, 0, 0},
    {0, "{\"uri\":\"file:///a#f\"}", 1, 0, 0},
    {0, "{\"uri\":\"file:///d/e\"}", 0, 1, 0},
    {0, "{\"uri\":\"file:///d\"}", 0, 0, 0},
    /* Somebody else's. */
    {1, "{\"uri\":\"file:///a\"}", 0, 0, 0},
    {0, "{\"uri\":\"file:///b\"}", 0, 0, 0},
    {1, "{\"uri\":\"file:///b\"}", 0, 0, 1},
    {1, "{\"uri\":7}", 0, 0, 0},
    {1, "{}", 0, 0, 0},
};

START_TEST(updates_reach_who_asked)
{
	struct fleet *f = fleet_with_resources();
	struct hearer a, dir, b, waits;
	char text[256];

	hearer_init(&a);
	hearer_init(&dir);
	hearer_init(&b);
	hearer_init(&waits);
	ck_assert_int_eq(hearer_add(f, &a, URI_A), MV_OK);
	ck_assert_int_eq(hearer_add(f, &dir, "\"file:///d/\""), MV_OK);
	ck_assert_int_eq(hearer_add(f, &b, "\"file:///b\""), MV_OK);
	fake_upstream_settle_watch(f->u[0], NULL);
	fake_upstream_settle_watch(f->u[1], NULL);
	ck_assert_int_eq(hearer_add(f, &waits, "\"x:/n\""), MV_OK);
	fake_upstream_updated(f->u[updates[_i].from], updates[_i].params);
	assert_answers(&a, 1, 0, updates[_i].a);
	assert_answers(&dir, 1, 0, updates[_i].dir);
	assert_answers(&b, 1, 0, updates[_i].b);
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
	    "\"params\":%s}",
	    updates[_i].params);
	if (updates[_i].a > 0)
		ck_assert_str_eq(a.text, text);
	/* Not before its yes. */
	fake_upstream_updated(f->u[0], "{\"uri\":\"x:/n\"}");
	assert_answers(&waits, 0, 0, 0);
	subscription_remove(&a.s);
	subscription_remove(&dir.s);
	subscription_remove(&b.s);
	subscription_remove(&waits.s);
	fleet_free(f);
}
END_TEST

/* ---- refusals of our own ---- */

START_TEST(what_cannot_be_subscribed_to)
{
	static char longer[CAP_URI_BYTES + 4];
	struct upstream_caps none = {.resources = true};
	struct fleet *f = fleet_with_resources();
	struct hearer h;

	hearer_init(&h);
	memset(longer, 'u', sizeof(longer) - 1);
	longer[0] = '"';
	longer[sizeof(longer) - 2] = '"';
	ck_assert_int_eq(hearer_add(f, &h, longer), MV_TOO_LONG);
	ck_assert_int_eq(hearer_add(f, &h, "\"file:///nobody\""), MV_NOT_FOUND);
	ck_assert_int_eq(hearer_add(f, &h, "\"\""), MV_NOT_FOUND);
	ck_assert_int_eq(hearer_add(f, &h, "7"), MV_NOT_FOUND);
	fake_upstream_set_caps(f->u[0], none);
	ck_assert_int_eq(hearer_add(f, &h, URI_A), MV_UNSUPPORTED);
	fake_upstream_set_state(f->u[1], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_eq(hearer_add(f, &h, "\"file:///b\""), MV_BACKOFF);
	subscription_remove(&h.s);
	assert_answers(&h, 0, 0, 0);
	fleet_free(f);
}
END_TEST

/* A known subscription takes more subscribers while its owner is down. */
START_TEST(kept_while_the_owner_is_down)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h[2];

	hearer_init(&h[0]);
	hearer_init(&h[1]);
	fake_upstream_set_watching(f->u[0], FAKE_WATCH_YES);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_eq(hearer_add(f, &h[1], URI_A), MV_OK);
	assert_answers(&h[1], 1, 0, 0);
	subscription_remove(&h[0].s);
	subscription_remove(&h[1].s);
	fleet_free(f);
}
END_TEST

START_TEST(short_of_memory)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h;
	enum mv_err err = MV_NOMEM;

	hearer_init(&h);
	(void)gateway_route_uri(f->g, 0, text_of(URI_A));
	for (unsigned long n = 1; n < 10 && err != MV_OK; n++) {
		mem_fail_at(n, 0);
		err = hearer_add(f, &h, URI_A);
		mem_fail_at(0, 0);
		ck_assert(err == MV_OK || err == MV_NOMEM);
	}
	ck_assert_int_eq(err, MV_OK);
	ck_assert_uint_eq(fake_upstream_watched(f->u[0]), 1);
	subscription_remove(&h.s);
	fleet_free(f);
}
END_TEST

START_TEST(gateway_may_go_first)
{
	struct fleet *f = fleet_with_resources();
	struct hearer h[2];

	hearer_init(&h[0]);
	hearer_init(&h[1]);
	ck_assert_int_eq(hearer_add(f, &h[0], URI_A), MV_OK);
	ck_assert_int_eq(hearer_add(f, &h[1], "\"file:///b\""), MV_OK);
	fleet_free(f);
	ck_assert_ptr_null(h[0].s.sub);
	subscription_remove(&h[0].s);
	subscription_remove(&h[1].s);
	assert_answers(&h[0], 0, 0, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("subscription");
	TCase *tc = tcase_create("subscription");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, one_watch_for_all);
	tcase_add_test(tc, refused_leaves_nothing);
	tcase_add_test(tc, they_may_leave_in_their_callbacks);
	tcase_add_loop_test(
	    tc, updates_reach_who_asked, 0, (int)(sizeof(updates) / sizeof(updates[0])));
	tcase_add_test(tc, what_cannot_be_subscribed_to);
	tcase_add_test(tc, kept_while_the_owner_is_down);
	tcase_add_test(tc, short_of_memory);
	tcase_add_test(tc, gateway_may_go_first);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
