/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* Calls of tools and resources that are published otherwise than their upstream has
 * them, or not to everybody. */
#include "mcpvisor/call.h"

#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct tool_shape *
shape_add(struct upstream_conf *conf, const char *tool)
{
	size_t n = conf->n_shapes++;

	conf->shapes = mem_xrealloc(conf->shapes, (n + 1) * sizeof(*conf->shapes));
	conf->shapes[n] = (struct tool_shape){.tool = mem_xstrdup(tool)};
	return &conf->shapes[n];
}

/* alpha: a is published as b, with path fixed and n by default; c has a default and
 * limits of its own; p+ before its URIs. */
static struct fleet_conf *
shaped_conf(void)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct tool_shape *s = shape_add(c->confs[0], "a");

	s->name = mem_xstrdup("b");
	s->fixed = mem_xstrdup("{\"path\":\"/srv\"}");
	s->defaults = mem_xstrdup("{\"n\":10}");
	s = shape_add(c->confs[0], "c");
	s->defaults = mem_xstrdup("{\"n\":10}");
	s->call_ms = 5;
	s->call_max_ms = 50;
	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	return c;
}

static void
shaped_lists(struct fleet *f)
{
	fleet_list(f, 0, LIST_TOOLS, "a", "c", "d", NULL);
	fleet_list(f, 0, LIST_PROMPTS, "a", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "f:\\/a", NULL);
	fleet_list(f, 0, LIST_TEMPLATES, "db:/{id}", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "f:/a", NULL);
}

static struct fleet *
fleet_shaped(void)
{
	struct fleet *f = fleet_running_from(shaped_conf());

	shaped_lists(f);
	fake_loop_advance(f->loop, 1000);
	return f;
}

#define BAD(text) "Invalid params: " text ". Retrying unchanged will fail."

static const struct {
	const char *method, *params;
	int owner;	  /* -1: nobody */
	const char *sent; /* or why not */
	enum mv_err err;
} calls[] = {
    {"tools/call", "{\"name\":\"alpha__b\",\"arguments\":{\"x\":1e400}}", 0,
	"{\"name\":\"a\",\"arguments\":{\"x\":1e400,\"path\":\"/srv\",\"n\":10}}", MV_OK},
    {"tools/call",
	"{\"argument\\u0073\" : {\"path\":\"/etc\", \"n\":1} , \"name\" : \"alpha__b\" }",
	0, "{\"argument\\u0073\" : {\"path\":\"/srv\", \"n\":1} , \"name\" : \"a\" }",
	MV_OK},
    {"tools/call", "{\"name\":\"alpha__b\"}", 0,
	"{\"name\":\"a\",\"arguments\":{\"path\":\"/srv\",\"n\":10}}", MV_OK},
    {"tools/call", "{ \"x\":1, \"name\" : \"alpha__b\" , \"y\":2 }", 0,
	"{ \"x\":1, \"name\" : \"a\",\"arguments\":{\"path\":\"/srv\",\"n\":10} , "
	"\"y\":2 }",
	MV_OK},
    {"tools/call", "{\"name\":\"alpha__c\",\"arguments\":{}}", 0,
	"{\"name\":\"c\",\"arguments\":{\"n\":10}}", MV_OK},
    /* Nothing is said of this one. */
    {"tools/call", "{\"name\":\"alpha__d\",\"arguments\":[1],\"Arguments\":2}", 0,
	"{\"name\":\"d\",\"arguments\":[1],\"Arguments\":2}", MV_OK},
    {"tools/call", "{\"name\":\"alpha__a\"}", -1, "", MV_NOT_FOUND},
    {"prompts/get", "{\"name\":\"alpha__a\",\"arguments\":{}}", 0,
	"{\"name\":\"a\",\"arguments\":{}}", MV_OK},
    {"tools/call", "{\"name\":\"alpha__b\",\"arguments\":{\"Path\":\"/etc\"}}", -1,
	BAD("argument \"Path\" differs only by case from one that is fixed"), MV_PARAMS},
    {"tools/call", "{\"name\":\"alpha__b\",\"arguments\":null}", -1,
	BAD("arguments must be an object; got null"), MV_PARAMS},
    {"tools/call",
	"{\"name\":\"alpha__b\",\"arguments\":{},\"arguments\":{\"path\":\"/etc\"}}", -1,
	BAD("arguments must be given once; they were given twice"), MV_PARAMS},
    {"tools/call", "{\"name\":\"alpha__b\",\"Argument\\u017f\":{\"path\":\"/etc\"}}", -1,
	BAD("arguments must be given once; they were given twice"), MV_PARAMS},
    {"tools/call", "{\"name\":7}", -1, "", MV_PARAMS},
    /* URIs: what has the prefix loses it, and is the upstream's own spelling. */
    {"resources/read", "{\"uri\":\"p+f:/a\"}", 0, "{\"uri\":\"f:\\/a\"}", MV_OK},
    {"resources/read", "{\"uri\" : \"\\u0070+f:/a\" , \"x\":1}", 0,
	"{\"uri\" : \"f:\\/a\" , \"x\":1}", MV_OK},
    {"resources/read", "{\"uri\":\"f:/a\"}", 1, "{\"uri\":\"f:/a\"}", MV_OK},
    {"resources/read", "{\"uri\":\"p+db:\\/\\\"\\u0001\"}", 0,
	"{\"uri\":\"db:/\\\"\\u0001\"}", MV_OK},
    {"resources/read", "{\"uri\":\"db:/7\"}", -1, "", MV_NOT_FOUND},
    {"resources/read", "{\"uri\":\"p+\"}", -1, "", MV_NOT_FOUND},
    {"completion/complete",
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"p+db:/{id}\"},\"argument\":{}}", 0,
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db:/{id}\"},\"argument\":{}}",
	MV_OK},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"p+f:/a\"}}", 0,
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"f:\\/a\"}}", MV_OK},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"p+db:/7\"}}",
	0, "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db:/7\"}}", MV_OK},
};

START_TEST(sent_as_the_upstream_knows_it)
{
	struct fleet *f = fleet_shaped();
	int owner = calls[_i].owner;
	struct caller k;

	ck_assert_int_eq(
	    caller_start(f, &k, calls[_i].method, calls[_i].params), calls[_i].err);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(fake_upstream_n_sent(f->u[i]), i == owner);
	ck_assert_str_eq(k.c.why, owner >= 0 ? "" : calls[_i].sent);
	if (owner >= 0) {
		ck_assert_str_eq(fake_upstream_last(f->u[owner])->params, calls[_i].sent);
		fake_upstream_result(f->u[owner], 0, "{}");
		ck_assert_uint_eq(k.done, 1);
	}
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(a_name_that_is_too_long_to_tell)
{
	struct fleet *f = fleet_running_from(shaped_conf());
	struct caller k;
	struct buf b;

	mem_free(f->confs[0]->shapes[0].fixed);
	f->confs[0]->shapes[0].fixed = NULL;
	shaped_lists(f);
	buf_init(&b, 4096);
	buf_addf(&b, "{\"%0300d\":1}", 0);
	f->confs[0]->shapes[0].fixed = mem_xstrdup(buf_cstr(&b));
	memcpy(f->confs[0]->shapes[0].fixed + 2, "a", 1);
	buf_reset(&b);
	buf_addf(&b, "{\"name\":\"alpha__b\",\"arguments\":{\"%0300d\":1}}", 0);
	memcpy(strstr(b.data, "000"), "A", 1);
	ck_assert_int_eq(caller_start(f, &k, "tools/call", buf_cstr(&b)), MV_PARAMS);
	ck_assert_uint_lt(strlen(k.c.why), sizeof(k.c.why) - 1);
	call_fini(&k.c);
	buf_fini(&b);
	fleet_free(f);
}
END_TEST

START_TEST(limits_of_a_tool)
{
	struct fleet *f = fleet_shaped();
	struct caller k;

	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__c\"}");
	ck_assert_uint_eq(k.c.req.call_ms, 5);
	ck_assert_uint_eq(k.c.req.call_max_ms, 50);
	fake_upstream_result(f->u[0], 0, "{}");
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__d\"}");
	ck_assert_uint_eq(k.c.req.call_ms, 0);
	ck_assert_uint_eq(k.c.req.call_max_ms, 0);
	fake_upstream_result(f->u[0], 1, "{}");
	fleet_free(f);
}
END_TEST

/* A call that comes before the lists goes the same way. */
START_TEST(shaped_after_a_wait)
{
	struct fleet *f = fleet_from(shaped_conf());
	struct caller k[4];

	gateway_start(f->g);
	caller_begin(f, &k[0], "tools/call", "{\"name\":\"alpha__b\"}");
	caller_begin(
	    f, &k[1], "tools/call", "{\"name\":\"alpha__b\",\"arguments\":{\"PATH\":1}}");
	caller_begin(f, &k[2], "resources/read", "{\"uri\":\"p+db:/7\"}");
	caller_begin(f, &k[3], "tools/call", "{\"name\":\"alpha__a\"}");
	/* Held by their upstream, too, before it is ready. */
	shaped_lists(f);
	ck_assert_uint_eq(upstream_in_flight(f->u[0]), 2);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 2);
	ck_assert_str_eq(fake_upstream_sent(f->u[0], 0)->params,
	    "{\"name\":\"a\",\"arguments\":{\"path\":\"/srv\",\"n\":10}}");
	ck_assert_str_eq(fake_upstream_sent(f->u[0], 1)->params, "{\"uri\":\"db:/7\"}");
	ck_assert_uint_eq(k[1].done, 1);
	ck_assert_int_eq(k[1].last.err, MV_PARAMS);
	ck_assert_ptr_eq(k[1].last.detail, k[1].c.why);
	ck_assert_str_eq(k[1].c.why,
	    BAD("argument \"PATH\" differs only by case from one that is fixed"));
	fake_upstream_result(f->u[0], 0, "{}");
	fake_upstream_result(f->u[0], 1, "{}");
	call_cancel(&k[3].c, NULL);
	call_fini(&k[3].c);
	fleet_free(f);
}
END_TEST

/* ---- views ---- */

static const struct {
	unsigned view;
	const char *method, *params;
	int owner; /* -1: nobody */
} seen[] = {
    {0, "tools/call", "{\"name\":\"alpha__d\"}", 0},
    {0, "tools/call", "{\"name\":\"beta__a\"}", 1},
    {1, "tools/call", "{\"name\":\"alpha__d\"}", -1},
    {1, "tools/call", "{\"name\":\"beta__a\"}", 1},
    {1, "prompts/get", "{\"name\":\"alpha__a\"}", -1},
    {1, "resources/read", "{\"uri\":\"p+f:/a\"}", -1},
    {1, "resources/read", "{\"uri\":\"p+db:/7\"}", -1},
    {1, "resources/read", "{\"uri\":\"f:/a\"}", 1},
    {1, "completion/complete",
	"{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}}", -1},
    {1, "completion/complete",
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"p+db:/{id}\"}}", -1},
    {2, "tools/call", "{\"name\":\"alpha__d\"}", -1},
    {2, "tools/call", "{\"name\":\"alpha__c\"}", 0},
    {3, "tools/call", "{\"name\":\"alpha__c\"}", -1},
    {99, "tools/call", "{\"name\":\"alpha__c\"}", -1},
    {99, "resources/read", "{\"uri\":\"f:/a\"}", -1},
};

static struct fleet_conf *
conf_with_views(void)
{
	struct fleet_conf *c = shaped_conf();
	struct profile_conf *p;

	(void)fleet_conf_profile(c, "all", "*");
	(void)fleet_conf_profile(c, "beta", "b*");
	p = fleet_conf_profile(c, "few", "*");
	p->tools.deny = mem_xcalloc(2, sizeof(char *));
	p->tools.deny[0] = mem_xstrdup("*__d");
	(void)fleet_conf_profile(c, "none", "");
	return c;
}

START_TEST(hidden_is_unknown)
{
	struct fleet *f = fleet_running_from(conf_with_views());
	int owner = seen[_i].owner;
	struct caller k;

	shaped_lists(f);
	ck_assert_int_eq(
	    caller_start_in(f, &k, seen[_i].view, seen[_i].method, seen[_i].params),
	    owner >= 0 ? MV_OK : MV_NOT_FOUND);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(fake_upstream_n_sent(f->u[i]), i == owner);
	ck_assert(owner >= 0 || k.c.u == NULL);
	if (owner >= 0)
		fake_upstream_result(f->u[owner], 0, "{}");
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

/* Not even that a hidden upstream is down is told. */
START_TEST(hidden_upstreams_are_not_blamed)
{
	struct fleet *f = fleet_from(conf_with_views());
	struct caller k;

	gateway_start(f->g);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	fake_upstream_settle(f->u[0]);
	fleet_ready(f, 1);
	ck_assert_int_eq(
	    caller_start_in(f, &k, 0, "tools/call", "{\"name\":\"alpha__d\"}"),
	    MV_BACKOFF);
	ck_assert_ptr_eq(k.c.u, f->u[0]);
	call_fini(&k.c);
	ck_assert_int_eq(
	    caller_start_in(f, &k, 1, "tools/call", "{\"name\":\"alpha__d\"}"),
	    MV_NOT_FOUND);
	ck_assert_ptr_null(k.c.u);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

/* Nobody in particular is shown the first view. */
START_TEST(calls_without_an_owner)
{
	struct fleet *f = fleet_running_from(conf_with_views());
	struct json_msg json;
	struct link_msg m =
	    fleet_scan("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		       "\"tools/call\",\"params\":{\"name\":\"alpha__d\"}}",
		&json);
	struct upstream_call req = {.method = METHOD_TOOLS_CALL,
	    .base = m.base,
	    .len = m.len,
	    .json = m.json,
	    .level = MCP_LV_MAX};
	static const struct call_cb none = {.on_progress = NULL};
	struct call c = {.cb = &none};

	shaped_lists(f);
	ck_assert_int_eq(call_start(f->g, &c, &req), MV_OK);
	ck_assert_ptr_eq(c.u, f->u[0]);
	call_cancel(&c, NULL);
	call_fini(&c);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("call_shape");
	TCase *tc = tcase_create("shapes");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, sent_as_the_upstream_knows_it, 0,
	    (int)(sizeof(calls) / sizeof(calls[0])));
	tcase_add_test(tc, a_name_that_is_too_long_to_tell);
	tcase_add_test(tc, limits_of_a_tool);
	tcase_add_test(tc, shaped_after_a_wait);
	tcase_add_loop_test(
	    tc, hidden_is_unknown, 0, (int)(sizeof(seen) / sizeof(seen[0])));
	tcase_add_test(tc, hidden_upstreams_are_not_blamed);
	tcase_add_test(tc, calls_without_an_owner);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
