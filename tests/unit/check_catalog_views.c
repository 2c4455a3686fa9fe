/* layer: gateway, fakes: loop upstream upstream_script upstream_ask rig */
/* SPDX-License-Identifier: MIT */
/* What each profile is shown of the merged lists, and what an upstream's own filters
 * hide from all. */
#include "mcpvisor/catalog.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* alpha: tools read (read-only), write, delete_all; beta: tools read, x. */
static struct rig *
rig_tools(struct rig_conf *c)
{
	struct rig *r;

	(void)rig_upstream(c, "alpha", NULL);
	(void)rig_upstream(c, "beta", NULL);
	r = rig_new(c);
	fake_upstream_list(r->conf->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}},"
	    "{\"name\":\"write\",\"annotations\":{\"destructiveHint\":false,"
	    "\"idempotentHint\":true,\"openWorldHint\":false}},"
	    "{\"name\":\"delete_all\"}]}");
	rig_list(r, 1, LIST_TOOLS, "read x");
	return r;
}

static const struct {
	const char *upstreams, *allow, *deny;
	const char *shown;
} views[] = {
    {NULL, NULL, NULL, "alpha__read alpha__write alpha__delete_all beta__read beta__x"},
    {"alpha", NULL, NULL, "alpha__read alpha__write alpha__delete_all"},
    {"b*", NULL, NULL, "beta__read beta__x"},
    {"b* a?pha", NULL, NULL,
	"alpha__read alpha__write alpha__delete_all beta__read beta__x"},
    {"", NULL, NULL, ""},
    {"gamma", NULL, NULL, ""},
    {NULL, "", NULL, ""},
    {NULL, NULL, "", "alpha__read alpha__write alpha__delete_all beta__read beta__x"},
    {NULL, "*__read", NULL, "alpha__read beta__read"},
    {"alpha", "*__read", NULL, "alpha__read"},
    /* Names are those published. */
    {NULL, "read", NULL, ""},
    {NULL, NULL, "*delete_*", "alpha__read alpha__write beta__read beta__x"},
    {NULL, "alpha__*", "alpha__read", "alpha__write alpha__delete_all"},
    {NULL, "@read_only", NULL, "alpha__read"},
    {NULL, "@read_only *__x", NULL, "alpha__read beta__x"},
    {NULL, NULL, "@destructive", "alpha__read alpha__write"},
    {NULL, "@idempotent", NULL, "alpha__write"},
    {NULL, NULL, "@open_world", "alpha__write"},
};

START_TEST(profiles_show)
{
	struct rig_conf *c = rig_conf_new();
	struct profile_conf *p;
	struct rig *r;

	(void)rig_profile(c, "all", NULL);
	p = rig_profile(c, "p", views[_i].upstreams);
	p->tools = rig_filter(views[_i].allow, views[_i].deny);
	r = rig_tools(c);
	rig_assert_names(r, 0, LIST_TOOLS, views[0].shown);
	rig_assert_names(r, 1, LIST_TOOLS, views[_i].shown);
	/* What is not listed is not found either. */
	for (size_t i = 0; i < 2; i++) {
		const char *name = i == 0 ? "alpha__delete_all" : "beta__x";
		bool shown = strstr(views[_i].shown, name) != NULL;

		ck_assert_ptr_nonnull(rig_find(r, 0, LIST_TOOLS, name));
		ck_assert_int_eq(rig_find(r, 1, LIST_TOOLS, name) != NULL, shown);
		ck_assert_int_eq(
		    catalog_definition(r->c, 1, text_of(name)).n != 0, shown);
	}
	rig_free(r);
}
END_TEST

START_TEST(a_view_has_its_own_bytes)
{
	struct rig_conf *c = rig_conf_new();
	uint64_t all, alpha, beta;
	struct rig *r;

	c->profiles[c->n_profiles++] = NULL; /* everything */
	(void)rig_profile(c, "a", "alpha");
	(void)rig_profile(c, "b", "beta");
	r = rig_tools(c);
	all = catalog_hash(r->c, 0, LIST_TOOLS);
	alpha = catalog_hash(r->c, 1, LIST_TOOLS);
	beta = catalog_hash(r->c, 2, LIST_TOOLS);
	ck_assert_uint_ne(alpha, beta);
	rig_list(r, 1, LIST_TOOLS, "y");
	ck_assert_uint_eq(catalog_hash(r->c, 1, LIST_TOOLS), alpha);
	ck_assert_uint_ne(catalog_hash(r->c, 2, LIST_TOOLS), beta);
	ck_assert_uint_ne(catalog_hash(r->c, 0, LIST_TOOLS), all);
	rig_assert_body(r, 2, LIST_TOOLS, "[{\"name\":\"beta__y\"}]");
	/* A view that looks again gets the same bytes, and they stay. */
	ck_assert_ptr_eq(
	    catalog_body(r->c, 2, LIST_TOOLS).p, catalog_body(r->c, 2, LIST_TOOLS).p);
	rig_free(r);
}
END_TEST

START_TEST(no_such_view)
{
	struct rig *r = rig_tools(rig_conf_new());
	static const unsigned beyond[] = {1, 31, 32, 63, 1000000};

	rig_list(r, 0, LIST_TEMPLATES, "a:/{x}");
	for (size_t i = 0; i < 5; i++) {
		unsigned v = beyond[i];

		rig_assert_body(r, v, LIST_TOOLS, "[]");
		ck_assert_uint_eq(catalog_hash(r->c, v, LIST_TOOLS),
		    catalog_hash(r->c, 0, LIST_PROMPTS));
		ck_assert_ptr_null(rig_find(r, v, LIST_TOOLS, "alpha__read"));
		ck_assert_ptr_null(catalog_match_template(r->c, v, text_of("a:/1")));
		ck_assert(!catalog_shows_upstream(r->c, v, r->conf->u[0]));
		ck_assert(!catalog_shows_uri(r->c, v, r->conf->u[0], text_of("a:/1")));
		ck_assert_uint_eq(catalog_ttl_ms(r->c, v, LIST_TOOLS), 0);
		ck_assert(!catalog_is_private(r->c, v, LIST_TOOLS));
	}
	rig_free(r);
}
END_TEST

START_TEST(as_many_views_as_may_be)
{
	struct rig_conf *c = rig_conf_new();
	char name[16], want[32];
	struct rig *r;

	(void)rig_upstream(c, "alpha", "");
	for (unsigned i = 0; i < CATALOG_VIEWS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		rig_profile(c, name, NULL)->tools = rig_filter(name, NULL);
	}
	r = rig_new(c);
	rig_list(r, 0, LIST_TOOLS, "t0 t7 t31 u");
	for (unsigned i = 0; i < CATALOG_VIEWS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		(void)snprintf(want, sizeof(want), "[{\"name\":\"t%u\"}]", i);
		rig_assert_body(
		    r, i, LIST_TOOLS, i == 0 || i == 7 || i == 31 ? want : "[]");
		rig_assert_owner(r, i, LIST_TOOLS, name,
		    i == 0 || i == 7 || i == 31 ? "alpha" : "nobody");
		ck_assert_ptr_null(rig_find(r, i, LIST_TOOLS, "u"));
	}
	rig_free(r);
}
END_TEST

/* Its own names and URIs, hidden from all; such a name takes nobody's place. */
START_TEST(an_upstream_hides_its_own)
{
	struct rig_conf *c = rig_conf_new();
	struct upstream_conf *alpha = rig_upstream(c, "alpha", "");
	struct rig *r;

	(void)rig_upstream(c, "beta", "");
	alpha->tools = rig_filter(NULL, "secret_* @read_only");
	alpha->prompts = rig_filter("p", NULL);
	alpha->resources = rig_filter("f:/* p", "f:/no/*");
	r = rig_new(c);
	fake_upstream_list(r->conf->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"secret_a\"},{\"name\":\"\\u0073ecret_b\"},"
	    "{\"name\":\"ro\",\"annotations\":{\"readOnlyHint\":true}},"
	    "{\"name\":\"open\"}]}");
	rig_list(r, 0, LIST_PROMPTS, "p q");
	rig_list(r, 0, LIST_RESOURCES, "f:/a f:/no/a g:/a");
	rig_list(r, 0, LIST_TEMPLATES, "f:/{+any} f:/no/{x} g:/{x}");
	rig_list(r, 1, LIST_TOOLS, "secret_a ro");
	rig_list(r, 1, LIST_RESOURCES, "f:/no/a");
	rig_assert_names(r, 0, LIST_TOOLS, "open secret_a ro");
	rig_assert_owner(r, 0, LIST_TOOLS, "secret_a", "beta");
	rig_assert_owner(r, 0, LIST_TOOLS, "secret_b", "nobody");
	rig_assert_names(r, 0, LIST_PROMPTS, "p");
	rig_assert_names(r, 0, LIST_RESOURCES, "f:/a f:/no/a");
	rig_assert_owner(r, 0, LIST_RESOURCES, "f:/no/a", "beta");
	rig_assert_names(r, 0, LIST_TEMPLATES, "f:/{+any}");
	/* Not by the back door of a template that fits. */
	ck_assert_ptr_nonnull(catalog_match_template(r->c, 0, text_of("f:/yes")));
	ck_assert_ptr_null(catalog_match_template(r->c, 0, text_of("f:/no/b")));
	ck_assert(catalog_shows_uri(r->c, 0, r->conf->u[0], text_of("f:/b")));
	ck_assert(!catalog_shows_uri(r->c, 0, r->conf->u[0], text_of("f:/no/b")));
	ck_assert(!catalog_shows_uri(r->c, 0, r->conf->u[0], text_of("g:/b")));
	ck_assert(catalog_shows_uri(r->c, 0, r->conf->u[1], text_of("g:/b")));
	rig_free(r);
}
END_TEST

/* Who is first is a matter of each view. */
START_TEST(twins_by_view)
{
	struct rig_conf *c = rig_conf_new();
	struct rig *r;

	for (unsigned i = 0; i < 3; i++)
		(void)rig_upstream(c, i == 0 ? "alpha" : i == 1 ? "beta" : "gamma", NULL);
	(void)rig_profile(c, "all", NULL);
	(void)rig_profile(c, "b", "beta");
	(void)rig_profile(c, "bc", "beta gamma");
	(void)rig_profile(c, "none", "");
	rig_profile(c, "denied", NULL)->resources = rig_filter(NULL, "f:/a");
	r = rig_new(c);
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < 3; i++)
			rig_list(r, i, LIST_RESOURCES, i == 2 ? "f:/a f:/c" : "f:/a");
		rig_assert_owner(r, 0, LIST_RESOURCES, "f:/a", "alpha");
		rig_assert_owner(r, 1, LIST_RESOURCES, "f:/a", "beta");
		rig_assert_owner(r, 2, LIST_RESOURCES, "f:/a", "beta");
		rig_assert_owner(r, 3, LIST_RESOURCES, "f:/a", "nobody");
		rig_assert_owner(r, 4, LIST_RESOURCES, "f:/a", "nobody");
		rig_assert_names(r, 0, LIST_RESOURCES, "f:/a f:/c");
		rig_assert_names(r, 1, LIST_RESOURCES, "f:/a");
		rig_assert_names(r, 2, LIST_RESOURCES, "f:/a f:/c");
		rig_assert_names(r, 3, LIST_RESOURCES, "");
		rig_assert_names(r, 4, LIST_RESOURCES, "f:/c");
		rig_list(r, 1, LIST_RESOURCES, "f:/b");
		rig_assert_owner(r, 0, LIST_RESOURCES, "f:/a", "alpha");
		rig_assert_owner(r, 1, LIST_RESOURCES, "f:/a", "nobody");
		rig_assert_owner(r, 2, LIST_RESOURCES, "f:/a", "gamma");
		rig_list(r, 0, LIST_RESOURCES, "");
		rig_assert_owner(r, 0, LIST_RESOURCES, "f:/a", "gamma");
		rig_assert_names(r, 0, LIST_RESOURCES, "f:/b f:/a f:/c");
	}
	rig_free(r);
}
END_TEST

START_TEST(templates_by_view)
{
	struct rig_conf *c = rig_conf_new();
	struct profile_conf *p;
	struct rig *r;

	(void)rig_upstream(c, "alpha", NULL);
	(void)rig_upstream(c, "beta", NULL);
	(void)rig_profile(c, "all", NULL);
	(void)rig_profile(c, "a", "alpha");
	p = rig_profile(c, "few", NULL);
	p->resources = rig_filter(NULL, "db:/users/7*");
	r = rig_new(c);
	rig_list(r, 0, LIST_TEMPLATES, "db:/{+any}");
	rig_list(r, 1, LIST_TEMPLATES, "db:/users/{id}");
	ck_assert_ptr_eq(
	    catalog_match_template(r->c, 0, text_of("db:/users/7"))->u, r->conf->u[1]);
	ck_assert_ptr_eq(
	    catalog_match_template(r->c, 1, text_of("db:/users/7"))->u, r->conf->u[0]);
	ck_assert_ptr_null(catalog_match_template(r->c, 2, text_of("db:/users/7")));
	ck_assert_ptr_eq(
	    catalog_match_template(r->c, 2, text_of("db:/users/8"))->u, r->conf->u[1]);
	ck_assert(!catalog_shows_uri(r->c, 1, r->conf->u[1], text_of("x:/")));
	ck_assert(catalog_shows_uri(r->c, 1, r->conf->u[0], text_of("x:/")));
	ck_assert(!catalog_shows_uri(r->c, 2, r->conf->u[0], text_of("db:/users/77")));
	rig_free(r);
}
END_TEST

START_TEST(hints_by_view)
{
	struct rig_conf *c = rig_conf_new();
	struct rig *r;

	(void)rig_upstream(c, "alpha", NULL);
	(void)rig_upstream(c, "beta", NULL);
	(void)rig_profile(c, "all", NULL);
	(void)rig_profile(c, "a", "alpha");
	(void)rig_profile(c, "b", "beta");
	r = rig_new(c);
	fake_upstream_list(r->conf->u[0], LIST_TOOLS,
	    "{\"tools\":[],\"ttlMs\":5000,\"cacheScope\":\"public\"}");
	ck_assert_uint_eq(catalog_ttl_ms(r->c, 0, LIST_TOOLS), 0);
	ck_assert_uint_eq(catalog_ttl_ms(r->c, 1, LIST_TOOLS), 5000);
	fake_upstream_list(r->conf->u[1], LIST_TOOLS,
	    "{\"tools\":[],\"ttlMs\":3000,\"cacheScope\":\"private\"}");
	ck_assert_uint_eq(catalog_ttl_ms(r->c, 0, LIST_TOOLS), 3000);
	ck_assert_uint_eq(catalog_ttl_ms(r->c, 1, LIST_TOOLS), 5000);
	ck_assert_uint_eq(catalog_ttl_ms(r->c, 2, LIST_TOOLS), 3000);
	ck_assert(catalog_is_private(r->c, 0, LIST_TOOLS));
	ck_assert(!catalog_is_private(r->c, 1, LIST_TOOLS));
	ck_assert(catalog_is_private(r->c, 2, LIST_TOOLS));
	rig_free(r);
}
END_TEST

/* One body that does not fit leaves out what is over, and the rest is one JSON text. */
START_TEST(a_full_list_leaves_out)
{
	struct rig_conf *c = rig_conf_new();
	struct json_msg json;
	struct jtext body;
	struct buf b;
	struct rig *r;

	(void)rig_upstream(c, "alpha", NULL);
	(void)rig_upstream(c, "beta", NULL);
	r = rig_new(c);
	buf_init(&b, CAP_LIST_BYTES);
	buf_add_str(&b, "{\"tools\":[{\"name\":\"big\",\"x\":\"");
	for (size_t i = 0; i < 50u * 1024; i++)
		buf_addf(&b, "%1024s", "x");
	buf_add_str(&b, "\"},{\"name\":\"small\"}]}");
	fake_upstream_list(r->conf->u[0], LIST_TOOLS, buf_cstr(&b));
	fake_upstream_list(r->conf->u[1], LIST_TOOLS, buf_cstr(&b));
	buf_fini(&b);
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__big alpha__small beta__small");
	body = catalog_body(r->c, 0, LIST_TOOLS);
	ck_assert_int_eq(json_scan(&json, body.p, body.n, false), MV_OK);
	rig_free(r);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("catalog_views");
	TCase *tc = tcase_create("views");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, profiles_show, 0, (int)(sizeof(views) / sizeof(views[0])));
	tcase_add_test(tc, a_view_has_its_own_bytes);
	tcase_add_test(tc, no_such_view);
	tcase_add_test(tc, as_many_views_as_may_be);
	tcase_add_test(tc, an_upstream_hides_its_own);
	tcase_add_test(tc, twins_by_view);
	tcase_add_test(tc, templates_by_view);
	tcase_add_test(tc, hints_by_view);
	tcase_add_test(tc, a_full_list_leaves_out);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
