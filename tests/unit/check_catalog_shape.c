/* layer: gateway, fakes: loop upstream upstream_script upstream_ask rig */
/* SPDX-License-Identifier: MIT */
/* Tools and URIs that are published otherwise than their upstream has them, and what of
 * that is worth a look. */
#include "mcpvisor/catalog.h"

#include "mcpvisor/mem.h"

#include "fake/fake_rig.h"

#include <check.h>
#include <stdlib.h>

static struct rig *
rig_renamed(const char *from, const char *to)
{
	struct rig_conf *c = rig_conf_new();

	rig_shape(rig_upstream(c, "alpha", NULL), from)->name = mem_xstrdup(to);
	(void)rig_upstream(c, "beta", "alpha__");
	return rig_new(c);
}

START_TEST(renamed_before_the_prefix)
{
	struct rig *r = rig_renamed("search_issues", "find.issues");
	const struct route *found;

	fake_upstream_list(r->conf->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"v\":1.0,\"name\":\"search\\u005fissues\"},{\"name\":\"x\"}]"
	    "}");
	rig_list(r, 0, LIST_PROMPTS, "search_issues");
	rig_assert_body(r, 0, LIST_TOOLS,
	    "[{\"v\":1.0,\"name\":\"alpha__find_x2eissues\"},{\"name\":\"alpha__x\"}]");
	found = rig_find(r, 0, LIST_TOOLS, "alpha__find_x2eissues");
	ck_assert_ptr_nonnull(found);
	rig_assert_text(found->original, "\"search\\u005fissues\"");
	ck_assert_ptr_eq(found->shape, &r->conf->confs[0]->shapes[0]);
	ck_assert_ptr_null(rig_find(r, 0, LIST_TOOLS, "alpha__search_issues"));
	/* Tools alone. */
	rig_assert_names(r, 0, LIST_PROMPTS, "alpha__search_issues");
	rig_free(r);
}
END_TEST

START_TEST(renamed_onto_another)
{
	struct rig *r = rig_renamed("a", "b");

	rig_list(r, 0, LIST_TOOLS, "a b");
	rig_assert_owner(r, 0, LIST_TOOLS, "alpha__b", "alpha");
	rig_assert_text(rig_find(r, 0, LIST_TOOLS, "alpha__b")->original, "\"a\"");
	/* b has a name of its own all the same, and beta's yet another. */
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__b alpha__b_13fae2a3f6d6ee69");
	rig_list(r, 1, LIST_TOOLS, "b");
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__b alpha__b_13fae2a3f6d6ee69 beta__b");
	rig_free(r);
}
END_TEST

START_TEST(profiles_see_the_new_name)
{
	struct rig_conf *c = rig_conf_new();
	struct upstream_conf *alpha = rig_upstream(c, "alpha", NULL);
	struct rig *r;

	rig_shape(alpha, "a")->name = mem_xstrdup("b");
	alpha->tools = rig_filter("a", NULL);
	rig_profile(c, "p", NULL)->tools = rig_filter("alpha__b", NULL);
	rig_profile(c, "q", NULL)->tools = rig_filter("alpha__a", NULL);
	r = rig_new(c);
	rig_list(r, 0, LIST_TOOLS, "a b");
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__b");
	rig_assert_names(r, 1, LIST_TOOLS, "");
	rig_free(r);
}
END_TEST

START_TEST(arguments_of_ours_are_not_shown)
{
	struct rig_conf *c = rig_conf_new();
	struct tool_shape *s = rig_shape(rig_upstream(c, "alpha", NULL), "t");
	static const char *const want =
	    "{\"name\":\"alpha__t\",\"inputSchema\":{\"properties\":{\"b\":{}},"
	    "\"required\":[\"b\"]}}";
	struct rig *r;
	struct buf b;

	s->fixed = mem_xstrdup("{\"a\":1}");
	r = rig_new(c);
	fake_upstream_list(r->conf->u[0], LIST_TOOLS,
	    "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{},"
	    "\"b\":{}},\"required\":[\"b\",\"a\"]}}]}");
	buf_init(&b, 4096);
	buf_addf(&b, "[%s]", want);
	rig_assert_body(r, 0, LIST_TOOLS, buf_cstr(&b));
	rig_assert_text(catalog_definition(r->c, 0, text_of("alpha__t")), want);
	ck_assert_uint_eq(catalog_definition(r->c, 0, text_of("t")).n, 0);
	buf_fini(&b);
	rig_free(r);
}
END_TEST

/* ---- URIs ---- */

static struct rig *
rig_prefixed(const char *prefix)
{
	struct rig_conf *c = rig_conf_new();

	(void)rig_upstream(c, "alpha", NULL);
	rig_upstream(c, "beta", NULL)->uri_prefix = mem_xstrdup(prefix);
	return rig_new(c);
}

START_TEST(prefixed_uris)
{
	struct rig *r = rig_prefixed("b+\"\\\x01+");
	const struct route *found;

	rig_list(r, 0, LIST_RESOURCES, "f:/a");
	fake_upstream_list(r->conf->u[1], LIST_RESOURCES,
	    "{\"resources\":[{\"x\":\"uri\", \"uri\" : \"f:\\/a\" ,\"n\":1.0}]}");
	rig_list(r, 1, LIST_TEMPLATES, "db:/{id}");
	rig_list(r, 1, LIST_PROMPTS, "p");
	/* The twin is reachable, and its bytes are its own but for the prefix. */
	rig_assert_body(r, 0, LIST_RESOURCES,
	    "[{\"uri\":\"f:/a\"},{\"x\":\"uri\", \"uri\" : "
	    "\"b+\\\"\\\\\\u0001+f:\\/a\" ,\"n\":1.0}]");
	rig_assert_body(
	    r, 0, LIST_TEMPLATES, "[{\"uriTemplate\":\"b+\\\"\\\\\\u0001+db:/{id}\"}]");
	rig_assert_names(r, 0, LIST_PROMPTS, "beta__p");
	rig_assert_owner(r, 0, LIST_RESOURCES, "f:/a", "alpha");
	found = rig_find(r, 0, LIST_RESOURCES, "b+\"\\\x01+f:/a");
	ck_assert_ptr_nonnull(found);
	ck_assert_ptr_eq(found->u, r->conf->u[1]);
	rig_assert_text(found->original, "\"f:\\/a\"");
	ck_assert_ptr_nonnull(
	    catalog_match_template(r->c, 0, text_of("b+\"\\\x01+db:/7")));
	ck_assert_ptr_null(catalog_match_template(r->c, 0, text_of("db:/7")));
	rig_free(r);
}
END_TEST

static const struct {
	const char *prefix, *uri, *own;
} owns[] = {
    {"p+", "p+f:/a", "f:/a"},
    {"p+", "p+", "p+"},
    {"p+", "p", "p"},
    {"p+", "f:/a", "f:/a"},
    {"p+", "p+p+f:/a", "p+f:/a"},
    {"p+", "", ""},
    {"", "f:/a", "f:/a"},
};

START_TEST(own_uris)
{
	struct rig *r = rig_prefixed(owns[_i].prefix);

	rig_assert_text(
	    catalog_own_uri(r->conf->u[1], text_of(owns[_i].uri)), owns[_i].own);
	rig_assert_text(
	    catalog_own_uri(r->conf->u[0], text_of(owns[_i].uri)), owns[_i].uri);
	rig_free(r);
}
END_TEST

/* An upstream's filter is about its own URIs, a profile's about those published. */
START_TEST(filters_of_prefixed_uris)
{
	struct rig_conf *c = rig_conf_new();
	struct upstream_conf *alpha = rig_upstream(c, "alpha", NULL);
	struct rig *r;

	alpha->uri_prefix = mem_xstrdup("p+");
	alpha->resources = rig_filter("f:/*", NULL);
	(void)rig_profile(c, "all", NULL);
	rig_profile(c, "p", NULL)->resources = rig_filter(NULL, "p+f:/b*");
	r = rig_new(c);
	rig_list(r, 0, LIST_RESOURCES, "f:/a f:/b g:/a");
	rig_assert_names(r, 0, LIST_RESOURCES, "p+f:/a p+f:/b");
	rig_assert_names(r, 1, LIST_RESOURCES, "p+f:/a");
	ck_assert(catalog_shows_uri(r->c, 0, r->conf->u[0], text_of("p+f:/bb")));
	ck_assert(!catalog_shows_uri(r->c, 1, r->conf->u[0], text_of("p+f:/bb")));
	ck_assert(!catalog_shows_uri(r->c, 0, r->conf->u[0], text_of("p+g:/b")));
	rig_free(r);
}
END_TEST

/* ---- findings ---- */

static void
note(void *arg, const struct catalog_finding *f)
{
	struct buf *b = arg;

	buf_addf(b, "%s:%.*s->%.*s%s%s%s%s;", upstream_name(f->u), (int)f->original.n,
	    f->original.n ? f->original.p : "", (int)f->published.n,
	    f->published.n ? f->published.p : "", f->is_mapped ? " mapped" : "",
	    f->is_short ? " short" : "", f->owner != NULL ? " of " : "",
	    f->owner != NULL ? upstream_name(f->owner) : "");
}

static void
assert_findings(struct rig *r, enum list_kind kind, const char *want)
{
	struct buf b;

	buf_init(&b, 65536);
	catalog_each_finding(r->c, kind, note, &b);
	ck_assert_str_eq(b.len ? buf_cstr(&b) : "", want);
	buf_fini(&b);
}

START_TEST(findings)
{
	struct rig_conf *c = rig_conf_new();
	struct upstream_conf *alpha = rig_upstream(c, "alpha", "");
	struct rig *r;

	c->name_bytes = 24;
	alpha->tools = rig_filter(NULL, "hidden");
	rig_shape(alpha, "old")->name = mem_xstrdup("n.w");
	(void)rig_upstream(c, "beta", "");
	(void)rig_upstream(c, "my srv", NULL);
	r = rig_new(c);
	rig_list(r, 0, LIST_TOOLS, "a hidden old plain a");
	rig_list(r, 1, LIST_TOOLS, "a b.c this_is_a_very_long_name_x");
	rig_list(r, 2, LIST_TOOLS, "x");
	assert_findings(r, LIST_TOOLS,
	    "alpha:old->n_x2ew mapped;alpha:a->;beta:a->beta__a of alpha;"
	    "beta:b.c->b_x2ec mapped;"
	    "beta:this_is_a_very_long_name_x->this_is_a_very__60c2e5bb short;"
	    "my srv:x->my_x20srv__x mapped;");
	assert_findings(r, LIST_PROMPTS, "");
	rig_list(r, 0, LIST_RESOURCES, "f:/a f:/a f:/b");
	rig_list(r, 1, LIST_RESOURCES, "f:/a f:/c");
	assert_findings(r, LIST_RESOURCES, "alpha:f:/a->;beta:f:/a-> of alpha;");
	rig_free(r);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("catalog_shape");
	TCase *tc = tcase_create("shapes");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, renamed_before_the_prefix);
	tcase_add_test(tc, renamed_onto_another);
	tcase_add_test(tc, profiles_see_the_new_name);
	tcase_add_test(tc, arguments_of_ours_are_not_shown);
	tcase_add_test(tc, prefixed_uris);
	tcase_add_loop_test(tc, own_uris, 0, (int)(sizeof(owns) / sizeof(owns[0])));
	tcase_add_test(tc, filters_of_prefixed_uris);
	tcase_add_test(tc, findings);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
