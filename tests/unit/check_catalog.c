/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* The merged lists: order, bytes, names that are kept, twins, hints. */
#include "mcpvisor/catalog.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const no_prefixes[FLEET_MAX] = {"", "", "", ""};

static struct catalog *
catalog_of(struct fleet *f)
{
	return gateway_catalog(f->g);
}

static struct route *
find(struct fleet *f, enum list_kind kind, const char *name)
{
	return catalog_find(catalog_of(f), 0, kind, text_of(name));
}

static void
assert_body(struct fleet *f, enum list_kind kind, const char *want)
{
	assert_text(catalog_body(catalog_of(f), 0, kind), want);
}

static void
assert_route(struct fleet *f, const char *name, size_t owner, const char *original)
{
	struct route *r = find(f, LIST_TOOLS, name);

	ck_assert_msg(r != NULL, "nobody has %s", name);
	ck_assert_ptr_eq(r->u, f->u[owner]);
	ck_assert_int_eq(r->kind, LIST_TOOLS);
	assert_text(r->original, original);
	assert_text(r->published, name);
	ck_assert_mem_eq(r->quoted + 1, name, strlen(name));
	ck_assert_int_eq(r->quoted[0], '"');
	ck_assert_int_eq(r->quoted[strlen(name) + 1], '"');
}

START_TEST(empty_lists)
{
	struct fleet *f = fleet_new(2, NULL);

	for (unsigned k = 0; k < LIST_MAX; k++) {
		assert_body(f, (enum list_kind)k, "[]");
		ck_assert_ptr_null(find(f, (enum list_kind)k, "x"));
		ck_assert_uint_eq(catalog_ttl_ms(catalog_of(f), 0, (enum list_kind)k), 0);
		ck_assert(!catalog_is_private(catalog_of(f), 0, (enum list_kind)k));
	}
	fleet_free(f);
}
END_TEST

START_TEST(definitions_keep_their_bytes)
{
	struct fleet *f = fleet_new(2, NULL);

	/* beta's come first and are published second. */
	fake_upstream_list(f->u[1], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"a\",\"n\":1e400,\"n\":9007199254740993}]}");
	fake_upstream_list(f->u[0], LIST_TOOLS,
	    "{\"tools\":[ {\"title\" : \"T\", \"name\" :\"b\", \"x\":{\"name\":1.0}} ,\t"
	    "{\"na\\u006de\":\"a\\u002fb\",\"_meta\":{\"k\":[\"\\ud800\"]}}, "
	    "{\"name\":\"c\"}]}");
	assert_body(f, LIST_TOOLS,
	    "[{\"title\" : \"T\", \"name\" :\"alpha__b\", \"x\":{\"name\":1.0}},"
	    "{\"na\\u006de\":\"alpha__a_x2fb\",\"_meta\":{\"k\":[\"\\ud800\"]}},"
	    "{\"name\":\"alpha__c\"},"
	    "{\"name\":\"beta__a\",\"n\":1e400,\"n\":9007199254740993}]");
	assert_route(f, "alpha__b", 0, "\"b\"");
	assert_route(f, "alpha__a_x2fb", 0, "\"a\\u002fb\"");
	assert_route(f, "beta__a", 1, "\"a\"");
	ck_assert_ptr_null(find(f, LIST_TOOLS, "b"));
	ck_assert_ptr_null(find(f, LIST_TOOLS, "alpha__a/b"));
	ck_assert_ptr_null(find(f, LIST_TOOLS, "ALPHA__B"));
	ck_assert_ptr_null(find(f, LIST_TOOLS, ""));
	/* Tools and prompts are different things. */
	ck_assert_ptr_null(find(f, LIST_PROMPTS, "alpha__b"));
	fleet_list(f, 0, LIST_PROMPTS, "b", NULL);
	assert_body(f, LIST_PROMPTS, "[{\"name\":\"alpha__b\"}]");
	fleet_free(f);
}
END_TEST

START_TEST(first_published_keeps_its_name)
{
	struct fleet *f = fleet_new(3, no_prefixes);

	fleet_list(f, 1, LIST_TOOLS, "echo", NULL);
	assert_body(f, LIST_TOOLS, "[{\"name\":\"echo\"}]");
	/* Earlier in conf order, but later to come. */
	fleet_list(f, 0, LIST_TOOLS, "echo", "gamma__echo", NULL);
	assert_body(f, LIST_TOOLS,
	    "[{\"name\":\"alpha__echo\"},{\"name\":\"gamma__echo\"},{\"name\":\"echo\"}"
	    "]");
	/* The qualified form is taken as well. */
	fleet_list(f, 2, LIST_TOOLS, "echo", NULL);
	assert_body(f, LIST_TOOLS,
	    "[{\"name\":\"alpha__echo\"},{\"name\":\"gamma__echo\"},{\"name\":\"echo\"},"
	    "{\"name\":\"echo_bab76c84f317047f\"}]");
	assert_route(f, "echo", 1, "\"echo\"");
	assert_route(f, "alpha__echo", 0, "\"echo\"");
	assert_route(f, "gamma__echo", 0, "\"gamma__echo\"");
	assert_route(f, "echo_bab76c84f317047f", 2, "\"echo\"");
	/* Nobody inherits a name. */
	fleet_list(f, 1, LIST_TOOLS, NULL);
	assert_body(f, LIST_TOOLS,
	    "[{\"name\":\"alpha__echo\"},{\"name\":\"gamma__echo\"},"
	    "{\"name\":\"echo_bab76c84f317047f\"}]");
	ck_assert_ptr_null(find(f, LIST_TOOLS, "echo"));
	fleet_list(f, 1, LIST_TOOLS, "x", "echo", NULL);
	assert_route(f, "echo", 1, "\"echo\"");
	assert_route(f, "alpha__echo", 0, "\"echo\"");
	fleet_free(f);
}
END_TEST

START_TEST(offered_twice_is_published_once)
{
	struct fleet *f = fleet_new(1, NULL);

	fake_upstream_list(f->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"a\",\"v\":1},{\"name\":\"\\u0061\",\"v\":2}]}");
	assert_body(f, LIST_TOOLS, "[{\"name\":\"alpha__a\",\"v\":1}]");
	fleet_free(f);
}
END_TEST

START_TEST(a_route_outlives_its_item)
{
	struct fleet *f = fleet_new(1, NULL);
	struct route *tool, *uri;

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	tool = route_ref(find(f, LIST_TOOLS, "alpha__a"));
	uri = route_ref(find(f, LIST_RESOURCES, "file:///a"));
	fleet_list(f, 0, LIST_TOOLS, NULL);
	fleet_list(f, 0, LIST_RESOURCES, NULL);
	ck_assert_ptr_null(find(f, LIST_TOOLS, "alpha__a"));
	ck_assert_ptr_null(find(f, LIST_RESOURCES, "file:///a"));
	fleet_free(f);
	assert_text(tool->original, "\"a\"");
	assert_text(uri->original, "\"file:///a\"");
	route_unref(tool);
	route_unref(uri);
	route_unref(NULL);
}
END_TEST

START_TEST(uri_goes_to_the_first_in_order)
{
	struct fleet *f = fleet_new(3, NULL);

	fake_upstream_list(f->u[1], LIST_RESOURCES,
	    "{\"resources\":[{\"uri\":\"file:///a\",\"by\":1},{\"uri\":\"b:/\"}]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[1]);
	fake_upstream_list(f->u[2], LIST_RESOURCES,
	    "{\"resources\":[{\"uri\":\"file:///a\",\"by\":2}]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[1]);
	/* The same URI in other letters of JSON. */
	fake_upstream_list(f->u[0], LIST_RESOURCES,
	    "{\"resources\":[{\"by\":0,\"uri\":\"file:\\/\\/\\/\\u0061\"}]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[0]);
	assert_body(f, LIST_RESOURCES,
	    "[{\"by\":0,\"uri\":\"file:\\/\\/\\/\\u0061\"},{\"uri\":\"b:/\"}]");
	/* The first is gone: its twins take over, in order. */
	fake_upstream_list(f->u[0], LIST_RESOURCES, "{\"resources\":[]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[1]);
	fake_upstream_list(f->u[1], LIST_RESOURCES, "{\"resources\":[]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[2]);
	assert_body(f, LIST_RESOURCES, "[{\"uri\":\"file:///a\",\"by\":2}]");
	ck_assert_ptr_null(find(f, LIST_RESOURCES, "b:/"));
	fake_upstream_list(
	    f->u[0], LIST_RESOURCES, "{\"resources\":[{\"uri\":\"file:///a\"}]}");
	ck_assert_ptr_eq(find(f, LIST_RESOURCES, "file:///a")->u, f->u[0]);
	fleet_free(f);
}
END_TEST

static const struct {
	const char *pattern, *uri;
	long literal;
} matches[] = {
    {"file:///a", "file:///a", 9},
    {"file:///a", "file:///ab", -1},
    {"file:///a", "file:///", -1},
    {"db://{table}", "db://users", 5},
    {"db://{table}", "db://", 5},
    {"db://{table}", "db:/", -1},
    {"db://{table}/rows", "db://users/rows", 10},
    {"db://{table}/rows", "db://users/row", -1},
    {"db://{table}/rows", "db:///rows", 10},
    {"db://{table}/rows", "db://rows", -1},
    {"db://{t}/{id}", "db://users/7", 6},
    {"db://{t}/{id}", "db://users", -1},
    {"db://{t}/{id}/x", "db://a/b/c/x", 8},
    {"db://{t}/x/{id}", "db://a/x/x/7", 8},
    {"file://{+path}", "file:///a/b/c.txt", 7},
    {"file://{+path}", "http:///a", -1},
    {"{scheme}://x", "a://x", 4},
    {"{scheme}{rest}", "anything", 0},
    {"x{a}{b}y", "x12y", 2},
    {"x{a}{b}y", "xy", 2},
    {"x{a}{b}y", "x", -1},
    {"a{?q,r}", "a?q=1", 1},
    {"{a}", "", 0},
    {"aba{x}aba", "aba", -1},
    {"aba{x}aba", "abaaba", 6},
    /* Not a template: nothing fits it. */
    {"a{b", "a{b", -1},
    {"a{b", "axyz", -1},
};

START_TEST(templates_match)
{
	ck_assert_int_eq(
	    template_match(text_of(matches[_i].pattern), text_of(matches[_i].uri)),
	    matches[_i].literal);
}
END_TEST

static struct upstream *
template_owner(struct fleet *f, const char *uri)
{
	struct route *r = catalog_match_template(catalog_of(f), 0, text_of(uri));

	return r != NULL ? r->u : NULL;
}

START_TEST(longest_literal_wins)
{
	struct fleet *f = fleet_new(3, NULL);

	fleet_list(f, 0, LIST_TEMPLATES, "db://{any}", "log://{x}", NULL);
	fleet_list(f, 1, LIST_TEMPLATES, "db://users/{id}", "db://{t}", NULL);
	fleet_list(f, 2, LIST_TEMPLATES, "db://users/{+path}", "db://{t}/7", NULL);
	ck_assert_ptr_eq(template_owner(f, "db://x"), f->u[0]);
	/* As good as another: conf order. */
	ck_assert_ptr_eq(template_owner(f, "db://users/8"), f->u[1]);
	ck_assert_ptr_eq(template_owner(f, "db://cars/7"), f->u[2]);
	ck_assert_ptr_eq(template_owner(f, "log://"), f->u[0]);
	ck_assert_ptr_null(template_owner(f, "x"));
	fleet_list(f, 1, LIST_TEMPLATES, NULL);
	ck_assert_ptr_eq(template_owner(f, "db://users/8"), f->u[2]);
	assert_body(f, LIST_TEMPLATES,
	    "[{\"uriTemplate\":\"db://{any}\"},{\"uriTemplate\":\"log://{x}\"},"
	    "{\"uriTemplate\":\"db://users/{+path}\"},{\"uriTemplate\":\"db://{t}/7\"}]");
	fleet_free(f);
}
END_TEST

START_TEST(hints_of_freshness)
{
	struct fleet *f = fleet_new(3, NULL);
	struct catalog *c = catalog_of(f);

	fake_upstream_list(f->u[0], LIST_TOOLS,
	    "{\"tools\":[],\"ttlMs\":5000,\"cacheScope\":\"public\"}");
	/* What is missing may come at any time, unless it was given up. */
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 0);
	for (size_t i = 1; i < 3; i++)
		fake_upstream_set_state(f->u[i], UPSTREAM_ST_PARKED, "no");
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 5000);
	ck_assert(!catalog_is_private(c, 0, LIST_TOOLS));
	fake_loop_advance(f->loop, 1500);
	fake_upstream_list(f->u[1], LIST_TOOLS,
	    "{\"tools\":[],\"ttlMs\":3000,\"cacheScope\":\"private\"}");
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 3000);
	ck_assert(catalog_is_private(c, 0, LIST_TOOLS));
	fake_loop_advance(f->loop, 2000);
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 1000);
	fake_loop_advance(f->loop, 1000);
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 0);
	fake_loop_advance(f->loop, 100000);
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 0);
	/* One without a hint makes the whole stale, and private. */
	for (size_t i = 0; i < 2; i++)
		fake_upstream_list(f->u[i], LIST_TOOLS,
		    "{\"tools\":[],\"ttlMs\":5000,\"cacheScope\":\"public\"}");
	ck_assert(!catalog_is_private(c, 0, LIST_TOOLS));
	fleet_list(f, 2, LIST_TOOLS, NULL);
	ck_assert_uint_eq(catalog_ttl_ms(c, 0, LIST_TOOLS), 0);
	ck_assert(catalog_is_private(c, 0, LIST_TOOLS));
	fleet_free(f);
}
END_TEST

START_TEST(hash_follows_the_bytes)
{
	struct fleet *f = fleet_new(2, NULL);
	struct catalog *c = catalog_of(f);
	uint64_t empty = catalog_hash(c, 0, LIST_TOOLS), one;

	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	one = catalog_hash(c, 0, LIST_TOOLS);
	ck_assert_uint_ne(one, empty);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	ck_assert_uint_ne(catalog_hash(c, 0, LIST_TOOLS), one);
	fleet_list(f, 1, LIST_TOOLS, NULL);
	ck_assert_uint_eq(catalog_hash(c, 0, LIST_TOOLS), one);
	ck_assert_uint_eq(catalog_hash(c, 0, LIST_PROMPTS), empty);
	fleet_free(f);
}
END_TEST

/* One that invents names for ever does not fill our memory; what is offered stays. */
START_TEST(old_names_are_forgotten_some_time)
{
	struct fleet *f = fleet_new(2, no_prefixes);
	struct route *kept;
	char name[32];

	fleet_list(f, 0, LIST_TOOLS, "t0", NULL);
	kept = find(f, LIST_TOOLS, "t0");
	for (unsigned i = 0; i <= CAP_STALE_NAMES; i++) {
		ck_assert_ptr_eq(find(f, LIST_TOOLS, "t0"), kept);
		(void)snprintf(name, sizeof(name), "t%u", i);
		fleet_list(f, 1, LIST_TOOLS, name, NULL);
	}
	/* beta's t0 was published under another name, t1 not so long ago. */
	fleet_list(f, 1, LIST_TOOLS, "t1", "t0", NULL);
	assert_body(f, LIST_TOOLS,
	    "[{\"name\":\"t0\"},{\"name\":\"t1\"},{\"name\":\"beta__t0\"}]");
	fleet_list(f, 0, LIST_TOOLS, "t1", NULL);
	assert_body(f, LIST_TOOLS,
	    "[{\"name\":\"alpha__t1\"},{\"name\":\"t1\"},{\"name\":\"beta__t0\"}]");
	fleet_free(f);
}
END_TEST

/* Whatever allocation fails, what is published is one JSON text and routes work. */
START_TEST(short_of_memory)
{
	for (unsigned long n = 1; n < 60; n++) {
		struct fleet *f = fleet_new(2, no_prefixes);
		struct json_msg json;
		struct jtext body;

		for (size_t i = 0; i < 2; i++) {
			fleet_list(f, i, LIST_TOOLS, "a", "b", "c.d", NULL);
			fleet_list(f, i, LIST_RESOURCES, "a:/1", "a:/2", NULL);
		}
		mem_fail_at(n, 0);
		for (unsigned k = 0; k < LIST_MAX; k++) {
			body = catalog_body(catalog_of(f), 0, (enum list_kind)k);
			ck_assert_int_eq(json_scan(&json, body.p, body.n, false), MV_OK);
		}
		mem_fail_at(0, 0);
		for (size_t i = 0; i < 2; i++)
			fleet_list(f, i, LIST_TOOLS, "a", "b", "c.d", "e", NULL);
		/* The names may differ: that of a was free for both. */
		body = catalog_body(catalog_of(f), 0, LIST_TOOLS);
		ck_assert_uint_gt(body.n, 100);
		ck_assert_ptr_nonnull(find(f, LIST_TOOLS, "a"));
		fleet_free(f);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("catalog");
	TCase *tc = tcase_create("catalog");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, empty_lists);
	tcase_add_test(tc, definitions_keep_their_bytes);
	tcase_add_test(tc, first_published_keeps_its_name);
	tcase_add_test(tc, offered_twice_is_published_once);
	tcase_add_test(tc, a_route_outlives_its_item);
	tcase_add_test(tc, uri_goes_to_the_first_in_order);
	tcase_add_loop_test(
	    tc, templates_match, 0, (int)(sizeof(matches) / sizeof(matches[0])));
	tcase_add_test(tc, longest_literal_wins);
	tcase_add_test(tc, hints_of_freshness);
	tcase_add_test(tc, hash_follows_the_bytes);
	tcase_add_test(tc, old_names_are_forgotten_some_time);
	tcase_add_test(tc, short_of_memory);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
