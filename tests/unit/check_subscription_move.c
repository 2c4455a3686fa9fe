/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Subscriptions and remembered URIs over reloads, and under a prefix. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hearer {
	struct gateway_observer o;
	struct subscriber s;
	unsigned yes, no, updates;
	enum mv_err err;
	struct subscriber *takes_along; /* leaves with its yes or no */
	char text[256];
};

static void
on_settled(void *arg, const struct outcome *o)
{
	struct hearer *h = arg;

	h->yes += o == NULL;
	h->no += o != NULL;
	h->err = o != NULL ? o->err : MV_OK;
	if (h->takes_along != NULL)
		subscription_remove(h->takes_along);
}

static void
on_updated(void *arg, const struct link_msg *m)
{
	struct hearer *h = arg;

	h->updates++;
	(void)snprintf(h->text, sizeof(h->text), "%.*s", (int)m->len, m->base);
}

static void
subscribe(struct fleet *f, struct hearer *h, const char *uri, bool answer)
{
	memset(h, 0, sizeof(*h));
	h->s.owner = &h->o;
	h->s.on_settled = on_settled;
	h->s.on_updated = on_updated;
	h->s.arg = h;
	ck_assert_int_eq(subscription_add(f->g, text_of(uri), &h->s), MV_OK);
	for (size_t i = 0; i < f->n && answer; i++)
		fake_upstream_settle_watch(f->u[i], NULL);
	ck_assert(h->yes == 1 || !answer);
}

static struct fleet_conf *
conf_of(size_t n, int changed)
{
	struct fleet_conf *c = fleet_conf_new(n);

	if (changed >= 0)
		c->confs[changed]->cwd = mem_xstrdup("/elsewhere");
	return c;
}

static struct fleet *
fleet_with_resources(struct fleet_conf *c)
{
	struct fleet *f = fleet_running_from(c);

	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", NULL);
	fake_loop_advance(f->loop, 1000);
	return f;
}

static void
assert_updates(struct hearer *h, struct upstream *u, const char *params, unsigned n)
{
	unsigned before = h->updates;

	fake_upstream_updated(u, params);
	ck_assert_uint_eq(h->updates - before, n);
}

static void
name_uri(struct fleet *f, size_t i, const char *uri)
{
	struct caller k;
	char text[256];

	fleet_list(f, i, LIST_TOOLS, "t", NULL);
	(void)snprintf(text, sizeof(text), "{\"name\":\"%s__t\"}", f->confs[i]->name);
	caller_begin(f, &k, "tools/call", text);
	(void)snprintf(text, sizeof(text),
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"%s\",\"name\":\"n\"}]}",
	    uri);
	fake_upstream_result(k.c.u, fake_upstream_n_sent(k.c.u) - 1, text);
	ck_assert_uint_eq(k.done, 1);
}

/* ---- a successor ---- */

START_TEST(moves_to_the_successor)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct upstream *old = f->u[0];
	struct hearer a, waits;
	struct caller k;

	fleet_list(f, 0, LIST_TOOLS, "t", NULL);
	subscribe(f, &a, "\"file:///a\"", true);
	subscribe(f, &waits, "\"file:///a\"", false);
	ck_assert_uint_eq(waits.yes, 1); /* at once: it is watched already */
	subscription_remove(&waits.s);
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__t\"}");
	fleet_apply(f, conf_of(2, 0), 30000);
	ck_assert_uint_eq(fake_upstream_n_watches(old), 0);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	assert_updates(&a, old, "{\"uri\":\"file:///a\"}", 0);
	/* A second yes is nobody's business; the next subscriber waits for it. */
	subscribe(f, &waits, "\"file:///a\"", false);
	fake_upstream_settle_watch(f->u[0], NULL);
	ck_assert_uint_eq(a.yes, 1);
	ck_assert_uint_eq(waits.yes, 1);
	assert_updates(&a, f->u[0], "{\"uri\":\"file:///a\"}", 1);
	fake_upstream_result(old, 0, "{}");
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	gateway_restart(f->g, f->u[0], 0);
	fleet_look(f);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	/* The new one does not want to: the end of it, without a word. */
	fake_upstream_settle_watch(f->u[0], "{\"code\":-1,\"message\":\"no\"}");
	ck_assert_uint_eq(a.no + waits.no, 0);
	ck_assert_ptr_null(a.s.sub);
	subscription_remove(&a.s);
	subscription_remove(&waits.s);
	fleet_free(f);
}
END_TEST

START_TEST(unanswered_one_is_answered_by_the_successor)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct hearer a;

	subscribe(f, &a, "\"file:///a\"", false);
	fleet_apply(f, conf_of(2, 0), 0);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	fake_upstream_settle_watch(f->u[0], "{\"code\":-1,\"message\":\"no\"}");
	ck_assert_uint_eq(a.no, 1);
	fleet_free(f);
}
END_TEST

/* ---- none ---- */

START_TEST(removed_owner_ends_it)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct hearer b, waits, c;

	subscribe(f, &b, "\"file:///b\"", true);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", "file:///c", "file:///d", NULL);
	subscribe(f, &waits, "\"file:///c\"", false);
	subscribe(f, &c, "\"file:///d\"", false);
	/* Whichever comes first takes the other one along. */
	waits.takes_along = &c.s;
	c.takes_along = &waits.s;
	fleet_apply(f, fleet_conf_new(1), 1000);
	ck_assert_uint_eq(b.no, 0);
	ck_assert_ptr_null(b.s.sub);
	ck_assert_uint_eq(waits.no + c.no, 1);
	ck_assert_int_eq(waits.no ? waits.err : c.err, MV_NOT_FOUND);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	subscription_remove(&b.s);
	subscription_remove(&waits.s);
	subscription_remove(&c.s);
	fleet_free(f);
}
END_TEST

START_TEST(twin_takes_over)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct fleet_conf *c = fleet_conf_new(0);
	struct hearer a, b;

	fleet_list(f, 1, LIST_RESOURCES, "file:///b", "file:///a", NULL);
	subscribe(f, &a, "\"file:///a\"", true);
	subscribe(f, &b, "\"file:///b\"", true);
	(void)fleet_conf_add(c, "beta");
	fleet_apply(f, c, 0);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 2);
	fake_upstream_settle_watch(f->u[0], NULL);
	assert_updates(&a, f->u[0], "{\"uri\":\"file:///a\"}", 1);
	ck_assert_uint_eq(a.yes, 1);
	subscription_remove(&a.s);
	subscription_remove(&b.s);
	fleet_free(f);
}
END_TEST

/* A client's own instance watches for it: its successor's does from then on. Where there
 * are too many of them, the shared one does for all. */
/* Two see the same URI, one of them no other owner of it: it stays where it is. */
START_TEST(each_moves_by_what_it_is_shown)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer all, dev;
	struct fleet *f;
	unsigned first = (unsigned)_i;

	(void)fleet_conf_profile(c, "default", "*");
	(void)fleet_conf_profile(c, "dev", "alpha");
	f = fleet_with_resources(c);
	fleet_list(f, 1, LIST_RESOURCES, "file:///a", NULL);
	fake_loop_advance(f->loop, 1000);
	for (unsigned i = 0; i < 2; i++) {
		struct hearer *h = i == first ? &dev : &all;

		memset(h, 0, sizeof(*h));
		h->o.view = h == &dev;
		h->s = (struct subscriber){.owner = &h->o,
		    .on_settled = on_settled,
		    .on_updated = on_updated,
		    .arg = h};
		ck_assert_int_eq(
		    subscription_add(f->g, text_of("\"file:///a\""), &h->s), MV_OK);
	}
	fake_upstream_settle_watch(f->u[0], NULL);
	assert_updates(&all, f->u[0], "{\"uri\":\"file:///a\"}", 1);
	/* What dev is shown was never listed, and still is by a template. */
	fleet_list(f, 0, LIST_TEMPLATES, "file:///{x}", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "file:///z", NULL);
	fake_loop_advance(f->loop, 1000);
	fake_upstream_settle_watch(f->u[1], NULL);
	ck_assert_uint_eq(all.yes + dev.yes, 2);
	dev.updates = all.updates = 0;
	assert_updates(&all, f->u[1], "{\"uri\":\"file:///a\"}", 1);
	assert_updates(&dev, f->u[0], "{\"uri\":\"file:///a\"}", 1);
	ck_assert_uint_eq(all.updates + dev.updates, 2);
	subscription_remove(&all.s);
	subscription_remove(&dev.s);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 0);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[1]), 0);
	fleet_free(f);
}
END_TEST

/* The same text is another's for who knows it without the prefix. */
START_TEST(each_moves_by_what_it_said)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer with, without;
	struct fleet *f;

	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	f = fleet_with_resources(c);
	name_uri(f, 0, "n:/a");
	subscribe(f, &with, "\"p+n:/a\"", true);
	subscribe(f, &without, "\"n:/a\"", false);
	fleet_list(f, 1, LIST_RESOURCES, "n:/a", NULL);
	fake_loop_advance(f->loop, 1000);
	fake_upstream_settle_watch(f->u[1], NULL);
	assert_updates(&with, f->u[0], "{\"uri\":\"n:/a\"}", 1);
	ck_assert_ptr_nonnull(strstr(with.text, "\"p+n:/a\""));
	assert_updates(&with, f->u[1], "{\"uri\":\"n:/a\"}", 0);
	ck_assert_uint_eq(without.updates, 1);
	subscription_remove(&with.s);
	subscription_remove(&without.s);
	fleet_free(f);
}
END_TEST

START_TEST(own_instances_move_as_well)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer h[2];
	struct fleet *f;
	uint32_t max = _i == 0 ? 2 : 0;

	c->confs[0]->isolation = ISOLATION_SESSION;
	f = fleet_with_resources(c);
	for (size_t i = 0; i < 2; i++) {
		memset(&h[i], 0, sizeof(h[i]));
		h[i].o.has_instances = true;
		h[i].s = (struct subscriber){.owner = &h[i].o,
		    .on_settled = on_settled,
		    .on_updated = on_updated,
		    .arg = &h[i]};
		gateway_observe(f->g, &h[i].o);
		ck_assert_int_eq(
		    subscription_add(f->g, text_of("\"file:///a\""), &h[i].s), MV_OK);
	}
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 2);
	c = conf_of(2, 0);
	c->confs[0]->isolation = ISOLATION_SESSION;
	c->confs[0]->max_instances = max;
	fleet_apply(f, c, 0);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), max);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), max == 0);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(f->released, 1);
	if (max == 0)
		fake_upstream_settle_watch(f->u[0], NULL);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(h[i].yes, max == 0);
		subscription_remove(&h[i].s);
		gateway_unobserve(f->g, &h[i].o);
	}
	fleet_free(f);
}
END_TEST

/* ---- URIs that results named ---- */

static struct upstream *
owner_of(struct fleet *f, const char *uri)
{
	return gateway_route_uri(f->g, 0, text_of(uri));
}

START_TEST(named_uris_move_too)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));

	name_uri(f, 0, "n:/a");
	name_uri(f, 1, "n:/b");
	name_uri(f, 1, "n:/b2");
	ck_assert_ptr_eq(owner_of(f, "\"n:/a\""), f->u[0]);
	fleet_apply(f, conf_of(1, 0), 0);
	ck_assert_ptr_eq(owner_of(f, "\"n:/a\""), f->u[0]);
	ck_assert_ptr_null(owner_of(f, "\"n:/b\""));
	ck_assert_ptr_null(owner_of(f, "\"n:/b2\""));
	fleet_ready(f, 0);
	name_uri(f, 0, "n:/b");
	ck_assert_ptr_eq(owner_of(f, "\"n:/b\""), f->u[0]);
	fleet_free(f);
}
END_TEST

/* One of a pool names what all can read. */
START_TEST(named_by_an_instance)
{
	struct fleet_conf *c = fleet_conf_new(1);
	struct fleet *f;
	struct caller k;
	struct upstream *own;

	c->confs[0]->isolation = ISOLATION_CALL;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "t", NULL);
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__t\"}");
	own = k.c.u;
	fake_upstream_set_state(own, UPSTREAM_ST_READY, "");
	fake_upstream_result(own, 0,
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"n:/a\","
	    "\"name\":\"n\"}]}");
	ck_assert_ptr_eq(owner_of(f, "\"n:/a\""), f->u[0]);
	fleet_free(f);
}
END_TEST

/* ---- under a prefix ---- */

static const struct {
	const char *params, *published; /* as who knows the prefix is told; NULL: not */
} prefixed[] = {
    {"{\"uri\":\"file:///a\"}", "{\"uri\":\"p+file:///a\"}"},
    {"{\"x\":1.0,\"uri\":\"file:\\/\\/\\/\\u0061\"}",
	"{\"x\":1.0,\"uri\":\"p+file:///a\"}"},
    {"{\"uri\":\"file:///a/b\",\"y\":[]}", "{\"uri\":\"p+file:///a/b\",\"y\":[]}"},
    {"{\"uri\":\"p+file:///a\"}", NULL},
};

START_TEST(heard_as_it_was_asked_for)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer with, again, b;
	struct fleet *f;
	char want[256];

	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	f = fleet_with_resources(c);
	subscribe(f, &with, "\"p+file:///a\"", true);
	subscribe(f, &again, "\"p\\u002bfile:///a\"", false);
	subscribe(f, &b, "\"file:///b\"", true);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	assert_updates(
	    &with, f->u[0], prefixed[_i].params, prefixed[_i].published != NULL);
	ck_assert_uint_eq(again.updates, with.updates);
	ck_assert_uint_eq(b.updates, 0);
	if (prefixed[_i].published != NULL) {
		(void)snprintf(want, sizeof(want),
		    "{\"jsonrpc\":\"2.0\","
		    "\"method\":\"notifications/resources/updated\",\"params\":%s}",
		    prefixed[_i].published);
		ck_assert_str_eq(with.text, want);
		ck_assert_str_eq(again.text, want);
	}
	subscription_remove(&with.s);
	subscription_remove(&again.s);
	subscription_remove(&b.s);
	fleet_free(f);
}
END_TEST

/* A result names a URI as its upstream knows it: both forms lead there, and each is told
 * what it asked for. */
START_TEST(both_forms_of_a_named_uri)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer with, without;
	struct fleet *f;

	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	f = fleet_with_resources(c);
	ck_assert_ptr_null(owner_of(f, "\"file:///a\""));
	ck_assert_ptr_eq(owner_of(f, "\"p+file:///a\""), f->u[0]);
	ck_assert_ptr_null(owner_of(f, "\"p+n:/a\""));
	name_uri(f, 0, "n:/a");
	ck_assert_ptr_eq(owner_of(f, "\"p+n:/a\""), f->u[0]);
	ck_assert_ptr_eq(owner_of(f, "\"n:/a\""), f->u[0]);
	ck_assert_ptr_null(owner_of(f, "\"p+\""));
	subscribe(f, &with, "\"p+n:/a\"", true);
	subscribe(f, &without, "\"n:/a\"", false);
	ck_assert_uint_eq(without.yes, 1);
	ck_assert_uint_eq(fake_upstream_n_watches(f->u[0]), 1);
	fake_upstream_updated(f->u[0], "{\"uri\":\"n:/a\"}");
	ck_assert_ptr_nonnull(strstr(with.text, "\"p+n:/a\""));
	ck_assert_ptr_nonnull(strstr(without.text, "\"n:/a\""));
	subscription_remove(&with.s);
	subscription_remove(&without.s);
	fleet_free(f);
}
END_TEST

/* What a reload hides is not told any more. */
START_TEST(hidden_by_a_reload)
{
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct fleet_conf *c = fleet_conf_new(2);
	struct hearer a, b;

	subscribe(f, &a, "\"file:///a\"", true);
	subscribe(f, &b, "\"file:///b\"", true);
	(void)fleet_conf_profile(c, "default", "beta");
	fleet_apply(f, c, 0);
	assert_updates(&a, f->u[0], "{\"uri\":\"file:///a\"}", 0);
	assert_updates(&b, f->u[1], "{\"uri\":\"file:///b\"}", 1);
	subscription_remove(&a.s);
	subscription_remove(&b.s);
	fleet_free(f);
}
END_TEST

/* A sleeper wakes for it; one that is starting with lists from before takes it. */
START_TEST(owner_need_not_be_up)
{
	static const enum upstream_state states[] = {
	    UPSTREAM_ST_ASLEEP, UPSTREAM_ST_PROBE, UPSTREAM_ST_PARKED};
	struct fleet *f = fleet_with_resources(fleet_conf_new(2));
	struct hearer h = {.yes = 0};

	fake_upstream_set_state(f->u[0], states[_i], "");
	h.s.owner = &h.o;
	h.s.on_settled = on_settled;
	h.s.on_updated = on_updated;
	h.s.arg = &h;
	ck_assert_int_eq(subscription_add(f->g, text_of("\"file:///a\""), &h.s),
	    states[_i] == UPSTREAM_ST_PARKED ? MV_BACKOFF : MV_OK);
	subscription_remove(&h.s);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("subscription_move");
	TCase *tc = tcase_create("subscription_move");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, moves_to_the_successor);
	tcase_add_test(tc, unanswered_one_is_answered_by_the_successor);
	tcase_add_test(tc, removed_owner_ends_it);
	tcase_add_test(tc, twin_takes_over);
	tcase_add_loop_test(tc, each_moves_by_what_it_is_shown, 0, 2);
	tcase_add_test(tc, each_moves_by_what_it_said);
	tcase_add_loop_test(tc, own_instances_move_as_well, 0, 2);
	tcase_add_test(tc, named_uris_move_too);
	tcase_add_test(tc, named_by_an_instance);
	tcase_add_loop_test(tc, heard_as_it_was_asked_for, 0,
	    (int)(sizeof(prefixed) / sizeof(prefixed[0])));
	tcase_add_test(tc, both_forms_of_a_named_uri);
	tcase_add_test(tc, hidden_by_a_reload);
	tcase_add_loop_test(tc, owner_need_not_be_up, 0, 3);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
