/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* A call from its start to its one end: routes, waiting, cancelling. */
#include "mcpvisor/call.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t
total_sent(const struct fleet *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += fake_upstream_n_sent(f->u[i]);
	return n;
}

/* ---- routing ---- */

static const struct {
	const char *method, *params;
	int owner;	  /* -1: nobody */
	const char *sent; /* or the error */
	enum mv_err err;
} routes[] = {
    {"tools/call", "{\"name\":\"alpha__a\",\"arguments\":{\"n\":1e400}}", 0,
	"{\"name\":\"a\",\"arguments\":{\"n\":1e400}}", MV_OK},
    {"tools/call", "{\"arguments\":{\"name\":\"x\"}, \"name\" : \"beta__a\" }", 1,
	"{\"arguments\":{\"name\":\"x\"}, \"name\" : \"a\" }", MV_OK},
    {"tools/call", "{\"name\":\"alpha__b_x2ec\"}", 0, "{\"name\":\"b.c\"}", MV_OK},
    {"tools/call", "{\"n\\u0061me\":\"alph\\u0061__d\"}", 0,
	"{\"n\\u0061me\":\"\\u0064\"}", MV_OK},
    {"tools/call", "{\"name\":\"a\"}", -1, NULL, MV_NOT_FOUND},
    {"tools/call", "{\"name\":\"alpha__\"}", -1, NULL, MV_NOT_FOUND},
    {"tools/call", "{\"name\":\"__\"}", -1, NULL, MV_NOT_FOUND},
    {"tools/call", "{\"name\":\"\"}", -1, NULL, MV_NOT_FOUND},
    {"tools/call", "{\"name\":\"alpha__A\"}", -1, NULL, MV_NOT_FOUND},
    {"tools/call", "{\"name\":7}", -1, NULL, MV_PARAMS},
    {"tools/call", "{\"name\":null}", -1, NULL, MV_PARAMS},
    {"tools/call", "{}", -1, NULL, MV_PARAMS},
    {"prompts/get", "{\"name\":\"beta__a\"}", 1, "{\"name\":\"a\"}", MV_OK},
    {"prompts/get", "{\"name\":\"beta__b\"}", -1, NULL, MV_NOT_FOUND},
    {"prompts/get", "{\"name\":{}}", -1, NULL, MV_PARAMS},
    {"resources/read", "{\"uri\":\"file:\\/\\/\\/a\"}", 0,
	"{\"uri\":\"file:\\/\\/\\/a\"}", MV_OK},
    {"resources/read", "{\"uri\":\"file:///b\"}", 1, "{\"uri\":\"file:///b\"}", MV_OK},
    {"resources/read", "{\"uri\":\"db://x\"}", 0, "{\"uri\":\"db://x\"}", MV_OK},
    {"resources/read", "{\"uri\":\"db://users/7\"}", 1, "{\"uri\":\"db://users/7\"}",
	MV_OK},
    {"resources/read", "{\"uri\":\"file:///c\"}", -1, NULL, MV_NOT_FOUND},
    {"resources/read", "{\"uri\":\"\"}", -1, NULL, MV_NOT_FOUND},
    {"resources/read", "{\"uri\":[]}", -1, NULL, MV_PARAMS},
    {"resources/read", "{\"name\":\"alpha__a\"}", -1, NULL, MV_PARAMS},
    {"completion/complete",
	"{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"beta__a\"},\"argument\":{}}", 1,
	"{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"a\"},\"argument\":{}}", MV_OK},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"a\"}}", -1,
	NULL, MV_NOT_FOUND},
    {"completion/complete",
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db://users/{id}\"}}", 1,
	"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db://users/{id}\"}}", MV_OK},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"file:///b\"}}",
	1, "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"file:///b\"}}", MV_OK},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"x:/\"}}", -1,
	NULL, MV_NOT_FOUND},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/tool\",\"name\":\"alpha__a\"}}", -1,
	NULL, MV_PARAMS},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/prompt\"}}", -1, NULL, MV_PARAMS},
    {"completion/complete", "{\"ref\":{\"type\":\"ref/resource\"}}", -1, NULL, MV_PARAMS},
    {"completion/complete", "{\"ref\":7}", -1, NULL, MV_PARAMS},
    {"completion/complete", "{}", -1, NULL, MV_PARAMS},
    {"tools/list", "{}", -1, NULL, MV_NO_METHOD},
};

START_TEST(routed_by_table)
{
	struct fleet *f = fleet_full();
	struct caller k;
	const struct fake_sent *s;

	ck_assert_int_eq(
	    caller_start(f, &k, routes[_i].method, routes[_i].params), routes[_i].err);
	ck_assert_uint_eq(total_sent(f), routes[_i].owner >= 0);
	if (routes[_i].owner >= 0) {
		s = fake_upstream_last(f->u[routes[_i].owner]);
		ck_assert_str_eq(s->params, routes[_i].sent);
		ck_assert_str_eq(s->client_info, "{\"name\":\"c\",\"version\":\"1\"}");
		ck_assert_int_eq(s->level, MCP_LV_NOTICE);
		ck_assert_str_eq(method_name(s->method), routes[_i].method);
		ck_assert_ptr_eq(k.c.u, f->u[routes[_i].owner]);
		call_cancel(&k.c, NULL);
	}
	call_fini(&k.c);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(methods_that_are_forwarded)
{
	for (unsigned m = 0; m < METHOD_MAX; m++)
		ck_assert_int_eq(call_is_forwarded((enum method)m),
		    m == METHOD_TOOLS_CALL || m == METHOD_PROMPTS_GET ||
			m == METHOD_RESOURCES_READ || m == METHOD_COMPLETE ||
			(m >= METHOD_TASKS_GET && m <= METHOD_TASKS_CANCEL));
}
END_TEST

START_TEST(owner_without_completions)
{
	struct upstream_caps caps = {.prompts = true, .resources = true};
	struct fleet *f = fleet_full();
	struct caller k;

	fake_upstream_set_caps(f->u[1], caps);
	ck_assert_int_eq(caller_start(f, &k, "completion/complete",
			     "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"beta__a\"}}"),
	    MV_UNSUPPORTED);
	call_fini(&k.c);
	ck_assert_int_eq(
	    caller_start(f, &k, "completion/complete",
		"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"db://users/{id}\"}}"),
	    MV_UNSUPPORTED);
	call_fini(&k.c);
	ck_assert_uint_eq(total_sent(f), 0);
	fleet_free(f);
}
END_TEST

/* What a result names can be read, from whoever named it. */
START_TEST(results_name_resources)
{
	struct fleet *f = fleet_full();
	struct caller k;

	caller_begin(f, &k, "tools/call", "{\"name\":\"beta__a\"}");
	fake_upstream_result(f->u[1], 0,
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"tmp:\\/1\"},"
	    "{\"resource\":{\"uri\":\"db://x/1\"}},{\"uri\":\"file:///a\"}]}");
	ck_assert_uint_eq(k.done, 1);
	caller_begin(f, &k, "resources/read", "{\"uri\":\"tmp:/1\"}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), 2);
	fake_upstream_result(f->u[1], 1, "{\"contents\":[]}");
	/* Named lately is better than a template, and worse than a list. */
	caller_begin(f, &k, "resources/read", "{\"uri\":\"db://x/1\"}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), 3);
	fake_upstream_result(f->u[1], 2, "{}");
	caller_begin(f, &k, "resources/read", "{\"uri\":\"file:///a\"}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 1);
	fake_upstream_result(f->u[0], 0, "{\"contents\":[{\"uri\":\"tmp:/1\"}]}");
	/* The last one to name it has it. */
	caller_begin(f, &k, "resources/read", "{\"uri\":\"tmp:/1\"}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), 2);
	fake_upstream_result(f->u[0], 1, "{}");
	fleet_free(f);
}
END_TEST

static void
name_uri(struct fleet *f, const char *uri)
{
	size_t n = fake_upstream_n_sent(f->u[1]);
	struct caller k;
	struct buf b;

	caller_begin(f, &k, "tools/call", "{\"name\":\"beta__a\"}");
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"uri\":\"");
	buf_add_str(&b, uri);
	buf_add_str(&b, "\"}");
	fake_upstream_result(f->u[1], n, buf_cstr(&b));
	buf_fini(&b);
}

START_TEST(named_resources_are_bounded)
{
	struct fleet *f = fleet_full();
	static char uri[CAP_URI_BYTES + 2];

	name_uri(f, "x:/first");
	name_uri(f, "");
	memset(uri, 'u', sizeof(uri) - 1);
	name_uri(f, uri);
	ck_assert_ptr_null(gateway_route_uri(f->g, 0, text_of("\"\"")));
	ck_assert_ptr_eq(gateway_route_uri(f->g, 0, text_of("\"x:/first\"")), f->u[1]);
	for (unsigned i = 1; i < CAP_RECENT_URIS; i++) {
		(void)snprintf(uri, sizeof(uri), "x:/%u", i);
		name_uri(f, uri);
	}
	ck_assert_ptr_eq(gateway_route_uri(f->g, 0, text_of("\"x:/first\"")), f->u[1]);
	name_uri(f, "x:/one-too-many");
	ck_assert_ptr_null(gateway_route_uri(f->g, 0, text_of("\"x:/first\"")));
	ck_assert_ptr_eq(gateway_route_uri(f->g, 0, text_of("\"x:/1\"")), f->u[1]);
	ck_assert_ptr_eq(
	    gateway_route_uri(f->g, 0, text_of("\"x:/one-too-many\"")), f->u[1]);
	ck_assert_ptr_null(gateway_route_uri(f->g, 0, text_of("7")));
	fleet_free(f);
}
END_TEST

/* ---- ends ---- */

START_TEST(ends_are_counted)
{
	static const enum metric of[] = {METRIC_CALLS, METRIC_CALLS_RETURNED,
	    METRIC_CALLS_FAILED, METRIC_CALLS_TOOL_ERROR, METRIC_CALLS_CANCELLED};
	struct fleet *f = fleet_full();
	uint64_t before[5];
	struct caller k;

	for (size_t i = 0; i < 5; i++)
		before[i] = metrics_get(of[i]);
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_progress(f->u[0], 0, ",\"progress\":1");
	fake_upstream_progress(f->u[0], 0, ",\"progress\":2");
	fake_upstream_result(f->u[0], 0, "{\"isError\":true,\"n\":1.0}");
	ck_assert_uint_eq(k.progress, 2);
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(k.last.kind, OUTCOME_RESULT);
	ck_assert_str_eq(k.body, "{\"isError\":true,\"n\":1.0}");
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_error(f->u[0], 1, "{\"code\":-1,\"message\":\"no\"}");
	ck_assert_int_eq(k.last.kind, OUTCOME_ERROR);
	ck_assert_str_eq(k.body, "{\"code\":-1,\"message\":\"no\"}");
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_eq(k.last.kind, OUTCOME_FAILED);
	ck_assert_int_eq(k.last.err, MV_DIED);
	ck_assert_str_eq(k.owner_name, "alpha");
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_READY, "");
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	ck_assert_uint_eq(k.done, 0);
	ck_assert_uint_eq(metrics_get(of[0]) - before[0], 4);
	ck_assert_uint_eq(metrics_get(of[1]) - before[1], 2);
	ck_assert_uint_eq(metrics_get(of[2]) - before[2], 1);
	ck_assert_uint_eq(metrics_get(of[3]) - before[3], 1);
	ck_assert_uint_eq(metrics_get(of[4]) - before[4], 1);
	fleet_free(f);
}
END_TEST

/* The call keeps its route when the list changes under it. */
START_TEST(route_stays_for_the_call)
{
	struct fleet *f = fleet_full();
	struct caller k;

	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	fleet_list(f, 0, LIST_TOOLS, NULL);
	(void)catalog_body(gateway_catalog(f->g), 0, LIST_TOOLS);
	assert_text(k.c.route->published, "alpha__a");
	fake_upstream_result(f->u[0], 0, "{}");
	ck_assert_uint_eq(k.done, 1);
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"alpha__a\"}"), MV_NOT_FOUND);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

START_TEST(refusals_name_the_owner)
{
	struct fleet *f = fleet_full();
	struct caller k;

	fake_upstream_refuse(f->u[1], MV_BUSY);
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"beta__a\"}"), MV_BUSY);
	ck_assert_ptr_eq(k.c.u, f->u[1]);
	call_fini(&k.c);
	/* A full one holds back nobody else. */
	caller_begin(f, &k, "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_result(f->u[0], 0, "{}");
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "died");
	ck_assert_int_eq(
	    caller_start(f, &k, "tools/call", "{\"name\":\"alpha__a\"}"), MV_BACKOFF);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("call");
	TCase *tc = tcase_create("call");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, routed_by_table, 0, (int)(sizeof(routes) / sizeof(routes[0])));
	tcase_add_test(tc, methods_that_are_forwarded);
	tcase_add_test(tc, owner_without_completions);
	tcase_add_test(tc, results_name_resources);
	tcase_add_test(tc, named_resources_are_bounded);
	tcase_add_test(tc, ends_are_counted);
	tcase_add_test(tc, route_stays_for_the_call);
	tcase_add_test(tc, refusals_name_the_owner);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
