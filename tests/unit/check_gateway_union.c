/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* The fleet as one: what it declares, who owns a log message, how it stops. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/call.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hearer {
	struct gateway_observer o;
	unsigned n_logs;
	char log[256];
};

static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct hearer *h = arg;

	h->n_logs++;
	(void)snprintf(
	    h->log, sizeof(h->log), "%s %.*s", upstream_name(u), (int)m->len, m->base);
}

static void
hearer_init(struct hearer *h, struct fleet *f)
{
	memset(h, 0, sizeof(*h));
	h->o.on_log = on_log;
	h->o.arg = h;
	gateway_observe(f->g, &h->o);
	ck_assert_int_eq(h->o.level, MCP_LV_MAX);
}

/* ---- what is declared ---- */

START_TEST(capabilities_are_the_union)
{
	struct fleet *f = fleet_new(2, NULL);
	struct upstream_caps one = {.tools = true, .logging = true},
			     two = {.resources = true, .completions = true}, c;

	gateway_start(f->g);
	fleet_ready(f, 0);
	fake_upstream_set_caps(f->u[0], one);
	/* While one may still come with anything, everything is declared. */
	c = gateway_caps(f->g, 0);
	ck_assert(c.tools && c.prompts && c.resources && c.completions && c.logging);
	ck_assert(c.subscribe);
	fleet_ready(f, 1);
	fake_upstream_set_caps(f->u[1], two);
	c = gateway_caps(f->g, 0);
	ck_assert(c.tools && c.resources && c.completions && c.logging);
	ck_assert(!c.prompts && !c.subscribe);
	ck_assert(c.tools_changed && c.prompts_changed && c.resources_changed);
	/* Down: what it had stays; one that was never up may come with anything. */
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	c = gateway_caps(f->g, 0);
	ck_assert(c.tools && !c.prompts && !c.subscribe);
	for (unsigned k = 0; k < LIST_MAX; k++)
		fake_upstream_unlist(f->u[0], (enum list_kind)k);
	c = gateway_caps(f->g, 0);
	ck_assert(c.tools && c.prompts && c.resources && !c.subscribe);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_PARKED, "died");
	ck_assert(!gateway_caps(f->g, 0).prompts);
	fleet_free(f);
}
END_TEST

START_TEST(instructions_under_their_names)
{
	struct fleet *f = fleet_running(3);
	struct buf b;

	buf_init(&b, 4096);
	gateway_put_instructions(f->g, 0, &b);
	ck_assert_uint_eq(b.len, 0);
	fake_upstream_set_instructions(f->u[0], "Use a.\nThen b.");
	fake_upstream_set_instructions(f->u[2], "\"q\"");
	gateway_put_instructions(f->g, 0, &b);
	ck_assert_str_eq(
	    buf_cstr(&b), "## alpha\n\nUse a.\nThen b.\n\n## gamma\n\n\"q\"");
	buf_fini(&b);
	fleet_free(f);
}
END_TEST

START_TEST(most_verbose_level_is_asked_for)
{
	struct fleet *f = fleet_running(2);
	struct hearer a, b;

	hearer_init(&a, f);
	hearer_init(&b, f);
	gateway_set_level(f->g, &a.o, MCP_LV_ERROR);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_ERROR);
	gateway_set_level(f->g, &b.o, MCP_LV_INFO);
	ck_assert_int_eq(fake_upstream_level(f->u[1]), MCP_LV_INFO);
	gateway_set_level(f->g, &a.o, MCP_LV_DEBUG);
	gateway_set_level(f->g, &a.o, MCP_LV_ALERT);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_INFO);
	gateway_set_level(f->g, &b.o, MCP_LV_MAX);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_ALERT);
	/* Who leaves wants nothing any more. */
	gateway_set_level(f->g, &b.o, MCP_LV_INFO);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_INFO);
	gateway_unobserve(f->g, &b.o);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_ALERT);
	ck_assert_int_eq(fake_upstream_level(f->u[1]), MCP_LV_ALERT);
	gateway_unobserve(f->g, &a.o);
	ck_assert_int_eq(fake_upstream_level(f->u[0]), MCP_LV_MAX);
	fleet_free(f);
}
END_TEST

/* ---- log messages ---- */

static void
ignore_progress(void *arg, const struct link_msg *m)
{
	(void)arg;
	(void)m;
}

/* Of the only call there: it is its caller's, who is told as such. */
static void
on_call_log(void *arg, const struct link_msg *m)
{
	struct hearer *h = arg;

	(void)m;
	h->n_logs++;
}

static void
ignore_done(void *arg, const struct outcome *o)
{
	(void)arg;
	(void)o;
}

static const struct call_cb quiet = {
    .on_progress = ignore_progress, .on_log = on_call_log, .on_done = ignore_done};

static void
call_tool(struct fleet *f, struct call *c, struct hearer *owner, const char *tool)
{
	struct upstream_call req = {.method = METHOD_TOOLS_CALL, .level = MCP_LV_MAX};
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m;
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"%s\"}}",
	    tool);
	m = fleet_scan(text, json);
	req.base = m.base;
	req.len = m.len;
	req.json = m.json;
	*c = (struct call){.cb = &quiet, .arg = owner, .owner = &owner->o};
	ck_assert_int_eq(call_start(f->g, c, &req), MV_OK);
	mem_free(json);
}

static void
assert_logged(struct fleet *f, size_t i, unsigned a, unsigned b, struct hearer h[2])
{
	uint64_t before = metrics_get(METRIC_NOTICES_DROPPED);

	h[0].n_logs = h[1].n_logs = 0;
	fake_upstream_log(f->u[i], "{\"level\":\"info\",\"data\":1.0}");
	ck_assert_uint_eq(h[0].n_logs, a);
	ck_assert_uint_eq(h[1].n_logs, b);
	ck_assert_uint_eq(
	    metrics_get(METRIC_NOTICES_DROPPED) - before, a + b > 0 ? 0 : 1);
}

START_TEST(log_goes_to_the_certain_owner)
{
	struct fleet *f = fleet_running(2);
	struct hearer h[2];
	struct call c[3];

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	/* Nobody is there; one client: whoever caused it, it is that one's. */
	hearer_init(&h[0], f);
	gateway_unobserve(f->g, &h[0].o);
	assert_logged(f, 0, 0, 0, h);
	hearer_init(&h[0], f);
	assert_logged(f, 0, 1, 0, h);
	ck_assert_str_eq(h[0].log,
	    "alpha {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
	    "\"params\":{\"level\":\"info\",\"data\":1.0}}");
	/* Two clients: who has the only calls there. */
	hearer_init(&h[1], f);
	assert_logged(f, 0, 0, 0, h);
	call_tool(f, &c[0], &h[1], "alpha__a");
	call_tool(f, &c[1], &h[1], "alpha__a");
	assert_logged(f, 0, 0, 1, h);
	assert_logged(f, 1, 0, 0, h);
	call_tool(f, &c[2], &h[0], "alpha__a");
	assert_logged(f, 0, 0, 0, h);
	call_cancel(&c[0], NULL);
	assert_logged(f, 0, 0, 0, h);
	/* It may be at work on the other one's calls still, for a while. */
	call_cancel(&c[1], NULL);
	assert_logged(f, 0, 0, 0, h);
	fake_loop_advance(f->loop, 60001);
	assert_logged(f, 0, 1, 0, h);
	call_cancel(&c[2], NULL);
	assert_logged(f, 0, 0, 0, h);
	for (size_t i = 0; i < 3; i++)
		call_fini(&c[i]);
	/* Of one client alone it is that one's all the same, but not of a crowd. */
	gateway_unobserve(f->g, &h[1].o);
	call_tool(f, &c[0], &h[0], "alpha__a");
	call_tool(f, &c[1], &h[0], "alpha__a");
	call_cancel(&c[1], NULL);
	h[0].log[0] = '\0';
	assert_logged(f, 0, 1, 0, h);
	ck_assert_str_eq(h[0].log, ""); /* to the call */
	h[0].o.is_crowd = true;
	assert_logged(f, 0, 1, 0, h);
	ck_assert_str_ne(h[0].log, ""); /* to the crowd, which drops it */
	call_cancel(&c[0], NULL);
	for (size_t i = 0; i < 2; i++)
		call_fini(&c[i]);
	gateway_unobserve(f->g, &h[0].o);
	fleet_free(f);
}
END_TEST

/* ---- stopping ---- */

static void
on_stopped(void *arg)
{
	++*(unsigned *)arg;
}

START_TEST(stopped_when_all_are)
{
	struct child_ladder ladder = {.term_ms = 1, .kill_ms = 2, .drain_ms = 3};
	struct fleet *f = fleet_running(3);
	unsigned n = 0;

	fake_upstream_stop_slowly(f->u[1], true);
	gateway_stop(f->g, &ladder, on_stopped, &n);
	ck_assert_uint_eq(n, 0);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(fake_upstream_stops(f->u[i]), 1);
		ck_assert_uint_eq(fake_upstream_ladder(f->u[i]).kill_ms, 2);
	}
	fake_upstream_stopped(f->u[1]);
	ck_assert_uint_eq(n, 1);
	fleet_free(f);
	f = fleet_running(0);
	gateway_stop(f->g, &ladder, on_stopped, &n);
	ck_assert_uint_eq(n, 2);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_union");
	TCase *tc = tcase_create("gateway_union");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, capabilities_are_the_union);
	tcase_add_test(tc, instructions_under_their_names);
	tcase_add_test(tc, most_verbose_level_is_asked_for);
	tcase_add_test(tc, log_goes_to_the_certain_owner);
	tcase_add_test(tc, stopped_when_all_are);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
