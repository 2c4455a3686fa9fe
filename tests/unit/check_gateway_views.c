/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* What each profile is shown and told, and a fleet that is known from before. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS (1u << LIST_TOOLS)

enum { ALL, DEV, OPS };

/* alpha and beta, each with a tool, a resource and instructions; everything, alpha alone,
 * beta alone. */
static struct fleet *
fleet_of_views(void)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct fleet *f;
	unsigned view;

	(void)fleet_conf_profile(c, "default", "*");
	(void)fleet_conf_profile(c, "dev", "alpha");
	(void)fleet_conf_profile(c, "ops", "beta");
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "b", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", NULL);
	fake_upstream_set_instructions(f->u[0], "Use a.");
	fake_upstream_set_instructions(f->u[1], "Use b.");
	ck_assert(gateway_view(f->g, NULL, &view) && view == ALL);
	ck_assert(gateway_view(f->g, "default", &view) && view == ALL);
	ck_assert(gateway_view(f->g, "dev", &view) && view == DEV);
	ck_assert(gateway_view(f->g, "ops", &view) && view == OPS);
	ck_assert(!gateway_view(f->g, "", &view));
	fake_loop_advance(f->loop, 1000);
	return f;
}

/* ---- what is shown ---- */

START_TEST(each_view_shows_its_own)
{
	struct upstream_caps one = {.tools = true, .prompts = true},
			     two = {.tools = true, .resources = true, .subscribe = true};
	struct fleet *f = fleet_of_views();
	struct upstream_caps c;
	struct buf b;

	assert_text(gateway_list(f->g, ALL, LIST_TOOLS).body,
	    "[{\"name\":\"alpha__a\"},{\"name\":\"beta__b\"}]");
	assert_text(
	    gateway_list(f->g, DEV, LIST_TOOLS).body, "[{\"name\":\"alpha__a\"}]");
	assert_text(gateway_list(f->g, OPS, LIST_TOOLS).body, "[{\"name\":\"beta__b\"}]");
	fake_upstream_set_caps(f->u[0], one);
	fake_upstream_set_caps(f->u[1], two);
	c = gateway_caps(f->g, DEV);
	ck_assert(c.tools && c.prompts && !c.resources && !c.subscribe);
	c = gateway_caps(f->g, OPS);
	ck_assert(c.tools && !c.prompts && c.resources && c.subscribe);
	c = gateway_caps(f->g, ALL);
	ck_assert(c.tools && c.prompts && c.resources && c.subscribe);
	buf_init(&b, 4096);
	gateway_put_instructions(f->g, OPS, &b);
	ck_assert_str_eq(buf_cstr(&b), "## beta\n\nUse b.");
	buf_fini(&b);
	assert_text(gateway_tool_definition(f->g, DEV, text_of("\"alpha__a\"")),
	    "{\"name\":\"alpha__a\"}");
	assert_text(gateway_tool_definition(f->g, OPS, text_of("\"alpha__a\"")), "");
	assert_text(gateway_tool_definition(f->g, DEV, text_of("7")), "");
	ck_assert_ptr_eq(gateway_route_uri(f->g, DEV, text_of("\"file:///a\"")), f->u[0]);
	ck_assert_ptr_null(gateway_route_uri(f->g, OPS, text_of("\"file:///a\"")));
	fleet_free(f);
}
END_TEST

START_TEST(freshness_of_each_view)
{
	struct fleet *f = fleet_of_views();
	struct gateway_list l;

	fake_upstream_list(f->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":60000,\"cacheScope\":\"public\"}");
	fake_upstream_list(f->u[1], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"b\"}],\"ttlMs\":9000,\"cacheScope\":\"private\"}");
	l = gateway_list(f->g, DEV, LIST_TOOLS);
	ck_assert_uint_eq(l.ttl_ms, 60000);
	ck_assert(!l.is_private);
	ck_assert_uint_eq(fake_upstream_refreshes(f->u[1], LIST_TOOLS), 0);
	l = gateway_list(f->g, OPS, LIST_TOOLS);
	ck_assert_uint_eq(l.ttl_ms, 9000);
	ck_assert(l.is_private);
	l = gateway_list(f->g, ALL, LIST_TOOLS);
	ck_assert_uint_eq(l.ttl_ms, 9000);
	ck_assert(l.is_private);
	ck_assert_uint_eq(fake_upstream_refreshes(f->u[0], LIST_TOOLS), 2);
	fleet_free(f);
}
END_TEST

/* ---- what is told ---- */

struct hearer {
	struct gateway_observer o;
	struct gateway *g;
	struct hearer *takes_along; /* this one leaves when it is told */
	unsigned n, kinds, logs;
};

static void
on_changed(void *arg, unsigned kinds)
{
	struct hearer *h = arg;

	h->n++;
	h->kinds |= kinds;
	if (h->takes_along != NULL)
		gateway_unobserve(h->g, &h->takes_along->o);
	h->takes_along = NULL;
}

static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct hearer *h = arg;

	(void)u;
	(void)m;
	h->logs++;
}

static void
hearer_init(struct hearer *h, struct fleet *f, unsigned view)
{
	memset(h, 0, sizeof(*h));
	h->g = f->g;
	h->o.view = view;
	h->o.on_changed = on_changed;
	h->o.on_log = on_log;
	h->o.arg = h;
	gateway_observe(f->g, &h->o);
	gateway_note_listener(f->g);
}

static void
assert_heard(struct fleet *f, struct hearer *h, unsigned all, unsigned dev, unsigned ops)
{
	const unsigned want[] = {all, dev, ops};

	fake_loop_advance(f->loop, 1000);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(h[i].n, want[i] != 0);
		ck_assert_uint_eq(h[i].kinds, want[i]);
		h[i].n = h[i].kinds = 0;
	}
}

START_TEST(only_changes_of_the_own_view_are_told)
{
	struct fleet *f = fleet_of_views();
	struct hearer h[3];

	for (unsigned i = 0; i < 3; i++)
		hearer_init(&h[i], f, i);
	fleet_list(f, 0, LIST_TOOLS, "a", "a2", NULL);
	assert_heard(f, h, TOOLS, TOOLS, 0);
	fleet_list(f, 1, LIST_PROMPTS, "p", NULL);
	assert_heard(f, h, 1u << LIST_PROMPTS, 0, 1u << LIST_PROMPTS);
	/* A twin of what alpha has: nothing new for the view of both. */
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", "file:///a", NULL);
	assert_heard(f, h, 0, 0, 1u << LIST_RESOURCES);
	for (size_t i = 0; i < 3; i++)
		gateway_unobserve(f->g, &h[i].o);
	fleet_free(f);
}
END_TEST

/* Where nobody listened for a while, the next change tells of what was missed. */
/* Who was given what was there for a moment has to hear that it is gone. */
START_TEST(a_change_and_back_is_told_to_who_saw_it)
{
	struct fleet *f = fleet_of_views();
	struct hearer h[3];

	for (unsigned i = 0; i < 3; i++)
		hearer_init(&h[i], f, i);
	fleet_list(f, 0, LIST_TOOLS, "a", "a2", NULL);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, h, 0, 0, 0);
	fleet_list(f, 0, LIST_TOOLS, "a", "a2", NULL);
	(void)gateway_list(f->g, DEV, LIST_TOOLS);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	assert_heard(f, h, 0, TOOLS, 0);
	for (unsigned i = 0; i < 3; i++)
		gateway_unobserve(f->g, &h[i].o);
	fleet_free(f);
}
END_TEST

START_TEST(who_comes_back_is_told)
{
	struct fleet *f = fleet_of_views();
	struct hearer h;

	hearer_init(&h, f, DEV);
	gateway_unobserve(f->g, &h.o);
	fleet_list(f, 0, LIST_TOOLS, "a", "a2", NULL);
	fake_loop_advance(f->loop, 1000);
	hearer_init(&h, f, DEV);
	fleet_list(f, 1, LIST_TOOLS, "b", "b2", NULL);
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h.kinds, TOOLS);
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

START_TEST(observers_may_take_each_other_along)
{
	struct fleet *f = fleet_of_views();
	struct hearer h[3];

	for (unsigned i = 0; i < 3; i++)
		hearer_init(&h[i], f, ALL);
	/* The last is told first. */
	h[2].takes_along = &h[1];
	fleet_list(f, 0, LIST_TOOLS, NULL);
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h[0].n, 1);
	ck_assert_uint_eq(h[1].n, 0);
	ck_assert_uint_eq(h[2].n, 1);
	gateway_unobserve(f->g, &h[0].o);
	gateway_unobserve(f->g, &h[2].o);
	fleet_free(f);
}
END_TEST

START_TEST(log_goes_to_the_only_one_who_sees_it)
{
	uint64_t before = metrics_get(METRIC_NOTICES_DROPPED);
	struct fleet *f = fleet_of_views();
	struct hearer dev, ops, all;

	hearer_init(&dev, f, DEV);
	fake_upstream_log(f->u[1], "{\"data\":1}");
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED) - before, 1);
	hearer_init(&ops, f, OPS);
	fake_upstream_log(f->u[0], "{\"data\":1}");
	ck_assert_uint_eq(dev.logs, 1);
	hearer_init(&all, f, ALL);
	fake_upstream_log(f->u[0], "{\"data\":1}");
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED) - before, 2);
	ck_assert_uint_eq(dev.logs + all.logs, 1);
	ck_assert_uint_eq(ops.logs, 0);
	gateway_unobserve(f->g, &dev.o);
	gateway_unobserve(f->g, &ops.o);
	gateway_unobserve(f->g, &all.o);
	fleet_free(f);
}
END_TEST

static void
assert_tools(struct fleet *f, unsigned view, const char *want)
{
	assert_text(gateway_list(f->g, view, LIST_TOOLS).body, want);
}

static void
assert_told(struct fleet *f, struct hearer *h)
{
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(h->n, 1);
	ck_assert_uint_eq(h->kinds, TOOLS);
	h->n = h->kinds = 0;
}

START_TEST(views_keep_their_numbers)
{
	struct fleet *f = fleet_running(2);
	struct fleet_conf *c;
	unsigned dev, ops, view;
	struct hearer h;

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 1000);
	ck_assert(gateway_view(f->g, NULL, &view) && view == 0);
	ck_assert(!gateway_view(f->g, "dev", &view));
	hearer_init(&h, f, 0);
	/* Who named none is shown the first. */
	c = fleet_conf_new(2);
	(void)fleet_conf_profile(c, "dev", "alpha");
	(void)fleet_conf_profile(c, "ops", "be*");
	fleet_apply(f, c, 0);
	ck_assert(gateway_view(f->g, "dev", &dev) && gateway_view(f->g, "ops", &ops));
	ck_assert(gateway_view(f->g, NULL, &view) && view == dev && dev == 0);
	assert_tools(f, dev, "[{\"name\":\"alpha__a\"}]");
	assert_tools(f, ops, "[{\"name\":\"beta__a\"}]");
	assert_told(f, &h);
	/* Gone: it shows nothing, whoever is first now. */
	c = fleet_conf_new(2);
	(void)fleet_conf_profile(c, "ops", "*");
	fleet_apply(f, c, 0);
	ck_assert(!gateway_view(f->g, "dev", &view));
	ck_assert(gateway_view(f->g, NULL, &view) && view == ops);
	assert_tools(f, dev, "[]");
	assert_tools(f, ops, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	assert_told(f, &h);
	/* Back again; and without any the default one is not dev. */
	fleet_apply(f, fleet_conf_new(2), 0);
	ck_assert(gateway_view(f->g, NULL, &view) && view != dev && view != ops);
	assert_tools(f, dev, "[]");
	assert_tools(f, view, "[{\"name\":\"alpha__a\"},{\"name\":\"beta__a\"}]");
	gateway_unobserve(f->g, &h.o);
	fleet_free(f);
}
END_TEST

/* As many names as one likes, but not at once: a number goes to another one when its own
 * profile is gone, nobody looks at it and nobody was promised it. */
START_TEST(names_without_end)
{
	struct fleet *f = fleet_running(1);
	struct hearer h[CATALOG_VIEWS_MAX];
	unsigned view, kept, n = 0;
	char name[16];

	for (unsigned i = 1; i < CATALOG_VIEWS_MAX + 4; i++) {
		struct fleet_conf *c = fleet_conf_new(1);

		(void)snprintf(name, sizeof(name), "p%u", i);
		(void)fleet_conf_profile(c, "default", "*");
		(void)fleet_conf_profile(c, name, "*");
		fleet_apply(f, c, 0);
		ck_assert(gateway_view(f->g, "default", &view) && view == 0);
		if (!gateway_view(f->g, name, &view))
			continue;
		hearer_init(&h[n++], f, view);
		ck_assert_uint_eq(n, view);
	}
	ck_assert_uint_eq(n, CATALOG_VIEWS_MAX - 1);
	ck_assert(!gateway_reserve_view(f->g, "q", &view));
	gateway_unobserve(f->g, &h[7].o);
	ck_assert(gateway_reserve_view(f->g, "q", &kept) && kept == 8);
	ck_assert(gateway_reserve_view(f->g, "q", &view) && view == kept);
	ck_assert(!gateway_reserve_view(f->g, "r", &view));
	/* As the first did not come after all, another one gets it. */
	gateway_unreserve_views(f->g);
	ck_assert(gateway_reserve_view(f->g, "r", &view) && view == kept);
	gateway_unreserve_views(f->g);
	ck_assert(gateway_reserve_view(f->g, "q", &view) && view == kept);
	ck_assert(!gateway_view(f->g, "q", &view));
	assert_text(gateway_list(f->g, kept, LIST_TOOLS).body, "[]");
	ck_assert(gateway_reserve_view(f->g, NULL, &view) && view == 0);
	for (unsigned i = 0; i < n; i++)
		if (i != 7)
			gateway_unobserve(f->g, &h[i].o);
	/* What is listed keeps its own, whatever is new before it. */
	{
		struct fleet_conf *c = fleet_conf_new(1);

		(void)fleet_conf_profile(c, "new", "*");
		(void)fleet_conf_profile(c, "p1", "*");
		(void)fleet_conf_profile(c, "q", "*");
		fleet_apply(f, c, 0);
	}
	ck_assert(gateway_view(f->g, "p1", &view) && view == 1);
	ck_assert(gateway_view(f->g, "q", &view) && view == kept);
	ck_assert(gateway_view(f->g, "new", &view) && view != 1 && view != kept);
	fleet_free(f);
}
END_TEST

/* ---- known from before ---- */

static void
remember(struct fleet *f, struct upstream *u)
{
	static const char text[] =
	    "{\"tools\":[{\"name\":\"kept\"}],\"prompts\":[],\"resources\":[],"
	    "\"resourceTemplates\":[]}";
	struct fleet *other;
	struct buf b;

	if (f->made > 2)
		return;
	f->on_made = NULL;
	other = fleet_running(1);
	fake_upstream_list(other->u[0], LIST_TOOLS, text);
	buf_init(&b, 4096);
	upstream_put_memory(other->u[0], &b);
	ck_assert_int_eq(upstream_take_memory(u, b.data, b.len), MV_OK);
	buf_fini(&b);
	fleet_free(other);
}

static void
on_woken(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(known_lists_need_no_wait)
{
	struct fleet *f = fleet_new(1, NULL);
	struct fleet_conf *c = fleet_conf_new(2);
	struct gateway_waiter w = {.fn = on_woken};
	unsigned woken = 0;
	struct caller k;

	w.arg = &woken;
	/* gateway_new has called on_made already: the apply's one is the same. */
	f->on_made = remember;
	c->confs[1]->start = START_ON_USE;
	ck_assert(gateway_wait(f->g, &w));
	fleet_apply(f, c, 0);
	ck_assert_uint_eq(woken, 0);
	gateway_start(f->g);
	ck_assert_int_eq(upstream_state(f->u[1]), UPSTREAM_ST_ASLEEP);
	ck_assert_uint_eq(woken, 0); /* alpha is missing */
	/* Its tool is there, though. */
	caller_begin(f, &k, "tools/call", "{\"name\":\"beta__kept\"}");
	ck_assert_int_eq(upstream_state(f->u[1]), UPSTREAM_ST_PROBE);
	fleet_ready(f, 0);
	ck_assert_uint_eq(woken, 1);
	ck_assert(gateway_is_settled(f->g));
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

static struct gateway_opts known_opts;

static void
remember_each(void *arg, struct upstream *u)
{
	struct fleet f = {.made = 0};

	(void)arg;
	remember(&f, u);
}

START_TEST(whole_fleet_known_wakes_at_once)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct loop *l = loop_new();
	struct gateway_waiter w = {.fn = on_woken};
	unsigned woken = 0;
	struct gateway *g;

	known_opts = (struct gateway_opts){
	    .confs = c->confs, .n = 2, .list_wait_ms = 5000, .on_made = remember_each};
	g = gateway_new(&(struct upstream_env){.loop = l}, &known_opts);
	w.arg = &woken;
	ck_assert(gateway_is_settled(g));
	ck_assert(gateway_wait(g, &w));
	gateway_start(g);
	ck_assert_uint_eq(woken, 1);
	ck_assert(!gateway_wait(g, &w));
	assert_text(gateway_list(g, 0, LIST_TOOLS).body,
	    "[{\"name\":\"alpha__kept\"},{\"name\":\"beta__kept\"}]");
	ck_assert_uint_eq(gateway_list(g, 0, LIST_TOOLS).ttl_ms, 0);
	gateway_free(g);
	loop_free(l);
	for (size_t i = 0; i < 2; i++)
		upstream_conf_free(c->confs[i]);
	mem_free(c);
}
END_TEST

static void
on_stopped(void *arg)
{
	unsigned *n = arg;

	++*n;
}

START_TEST(memory_is_passed_on)
{
	struct fleet *f = fleet_of_views();
	struct upstream *u = f->u[1];
	unsigned stopped = 0;

	fake_upstream_memory(u);
	ck_assert_uint_eq(f->memories, 1);
	ck_assert_ptr_eq(f->last_memory, u);
	/* Not of one that is on its way out. */
	fleet_apply(f, fleet_conf_new(1), 1000);
	fake_upstream_memory(u);
	ck_assert_uint_eq(f->memories, 1);
	/* The last words at the end of all are heard. */
	fake_upstream_stop_slowly(f->u[0], true);
	gateway_stop(f->g, &child_ladder_defaults, on_stopped, &stopped);
	fake_upstream_memory(f->u[0]);
	ck_assert_uint_eq(f->memories, 2);
	fake_upstream_stopped(f->u[0]);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_views");
	TCase *tc = tcase_create("gateway_views");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, each_view_shows_its_own);
	tcase_add_test(tc, freshness_of_each_view);
	tcase_add_test(tc, only_changes_of_the_own_view_are_told);
	tcase_add_test(tc, a_change_and_back_is_told_to_who_saw_it);
	tcase_add_test(tc, who_comes_back_is_told);
	tcase_add_test(tc, observers_may_take_each_other_along);
	tcase_add_test(tc, log_goes_to_the_only_one_who_sees_it);
	tcase_add_test(tc, views_keep_their_numbers);
	tcase_add_test(tc, names_without_end);
	tcase_add_test(tc, known_lists_need_no_wait);
	tcase_add_test(tc, whole_fleet_known_wakes_at_once);
	tcase_add_test(tc, memory_is_passed_on);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
