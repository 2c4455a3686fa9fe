/* layer: gateway, fakes: loop upstream upstream_script upstream_ask rig */
/* SPDX-License-Identifier: MIT */
/* A reload: who keeps which name, and that nothing points to what has gone. */
#include "mcpvisor/catalog.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/naming.h"

#include "fake/fake_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every upstream offers these. */
static const char *tools_of_all = "echo";

static void
fill(struct rig *r)
{
	for (size_t i = 0; i < r->conf->n; i++) {
		rig_list(r, i, LIST_TOOLS, tools_of_all);
		rig_list(r, i, LIST_PROMPTS, "p");
		rig_list(r, i, LIST_RESOURCES, "f:/a");
		rig_list(r, i, LIST_TEMPLATES, "f:/{x}");
	}
}

static void
fill_nothing(struct rig *r)
{
	(void)r;
}

/* Names separated by spaces; one that ends with "=" has an empty prefix. */
static struct rig_conf *
conf_of(const char *names)
{
	struct rig_conf *c = rig_conf_new();
	char **v = rig_words(names);

	for (char **p = v; *p != NULL; p++) {
		size_t n = strlen(*p);
		bool bare = (*p)[n - 1] == '=';

		if (bare)
			(*p)[n - 1] = '\0';
		(void)rig_upstream(c, *p, bare ? "" : NULL);
		mem_free(*p);
	}
	mem_free(v);
	return c;
}

static struct rig *
rig_of(const char *names)
{
	struct rig *r = rig_new(conf_of(names));

	fill(r);
	(void)catalog_body(r->c, 0, LIST_TOOLS);
	return r;
}

static const struct {
	const char *before, *tools, *after, *then;
} reloads[] = {
    {"alpha", "alpha__echo", "alpha", "alpha__echo"},
    {"alpha beta", "alpha__echo beta__echo", "beta", "beta__echo"},
    {"beta", "beta__echo", "alpha beta", "alpha__echo beta__echo"},
    {"alpha", "alpha__echo", "", ""},
    {"", "", "alpha", "alpha__echo"},
    /* Who had a name keeps it, wherever it is now. */
    {"beta=", "echo", "alpha= beta=", "alpha__echo echo"},
    {"beta= alpha=", "echo alpha__echo", "alpha= beta=", "alpha__echo echo"},
    /* Who had it and is gone, or would not get it again, does not. */
    {"alpha= beta=", "echo beta__echo", "beta=", "echo"},
    {"alpha= beta=", "echo beta__echo", "beta= gamma=", "echo gamma__echo"},
    {"alpha= beta=", "echo beta__echo", "gamma= beta=", "echo beta__echo"},
    {"alpha= beta=", "echo beta__echo", "alpha beta=", "alpha__echo echo"},
    {"alpha", "alpha__echo", "alpha=", "echo"},
    /* The form that was given for a collision is no name of its own. */
    {"alpha= beta=", "echo beta__echo", "alpha= beta", "echo beta__echo"},
};

START_TEST(names_after_a_reload)
{
	struct rig *r = rig_of(reloads[_i].before);

	rig_assert_names(r, 0, LIST_TOOLS, reloads[_i].tools);
	(void)catalog_body(r->c, 0, LIST_RESOURCES);
	rig_reload(r, conf_of(reloads[_i].after), fill);
	rig_assert_names(r, 0, LIST_TOOLS, reloads[_i].then);
	rig_assert_names(
	    r, 0, LIST_RESOURCES, reloads[_i].after[0] != '\0' ? "f:/a" : "");
	/* Every route leads to an upstream of today. */
	for (size_t i = 0; i < r->conf->n; i++) {
		const char *name = upstream_name(r->conf->u[i]);
		char qualified[32];
		const struct route *found;

		(void)snprintf(qualified, sizeof(qualified), "%s__echo", name);
		found = rig_find(r, 0, LIST_TOOLS, qualified);
		if (found == NULL)
			found = rig_find(r, 0, LIST_TOOLS, "echo");
		ck_assert_ptr_nonnull(found);
		ck_assert_ptr_eq(found->u, r->conf->u[i]);
	}
	/* A second one changes nothing, and neither do new lists. */
	rig_reload(r, conf_of(reloads[_i].after), fill);
	rig_assert_names(r, 0, LIST_TOOLS, reloads[_i].then);
	fill(r);
	rig_assert_names(r, 0, LIST_TOOLS, reloads[_i].then);
	rig_free(r);
}
END_TEST

/* The catalog is not looked at between two reloads. */
START_TEST(without_a_look)
{
	struct rig *r = rig_of("beta=");

	rig_reload(r, conf_of("alpha= beta="), fill);
	rig_reload(r, conf_of("gamma= alpha= beta="), fill);
	rig_assert_owner(r, 0, LIST_TOOLS, "echo", "beta");
	rig_assert_names(r, 0, LIST_TOOLS, "gamma__echo alpha__echo echo");
	rig_free(r);
}
END_TEST

START_TEST(routes_that_calls_hold)
{
	struct rig *r = rig_of("alpha beta");
	struct route *tool, *kept, *uri, *template;

	tool = route_ref(rig_find(r, 0, LIST_TOOLS, "alpha__echo"));
	kept = route_ref(rig_find(r, 0, LIST_TOOLS, "beta__echo"));
	uri = route_ref(rig_find(r, 0, LIST_RESOURCES, "f:/a"));
	template = route_ref(catalog_match_template(r->c, 0, text_of("f:/b")));
	rig_reload(r, conf_of("beta"), fill);
	ck_assert_ptr_null(tool->u);
	ck_assert_ptr_null(tool->shape);
	ck_assert_ptr_null(uri->u);
	ck_assert_ptr_null(template->u);
	ck_assert_ptr_eq(kept->u, r->conf->u[0]);
	rig_assert_text(tool->published, "alpha__echo");
	rig_assert_text(uri->original, "\"f:/a\"");
	ck_assert_ptr_eq(rig_find(r, 0, LIST_TOOLS, "beta__echo"), kept);
	rig_free(r);
	ck_assert_ptr_null(kept->u);
	route_unref(tool);
	route_unref(kept);
	route_unref(uri);
	route_unref(template);
}
END_TEST

/* An upstream whose new process has told nothing yet offers nothing. */
START_TEST(lists_that_are_not_there_yet)
{
	struct rig *r = rig_of("alpha= beta=");

	rig_reload(r, conf_of("alpha= beta="), fill_nothing);
	rig_assert_names(r, 0, LIST_TOOLS, "");
	rig_list(r, 1, LIST_TOOLS, "echo");
	rig_assert_names(r, 0, LIST_TOOLS, "echo");
	rig_list(r, 0, LIST_TOOLS, "echo");
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__echo echo");
	rig_free(r);
}
END_TEST

START_TEST(hidden_names_are_free)
{
	struct rig *r = rig_of("alpha= beta=");
	struct rig_conf *c = conf_of("alpha= beta=");

	c->confs[0]->tools = rig_filter(NULL, "ec*");
	rig_reload(r, c, fill);
	rig_assert_names(r, 0, LIST_TOOLS, "echo");
	rig_assert_owner(r, 0, LIST_TOOLS, "echo", "beta");
	rig_free(r);
}
END_TEST

START_TEST(views_after_a_reload)
{
	struct rig_conf *c = conf_of("alpha beta");
	struct rig *r;

	(void)rig_profile(c, "all", NULL);
	(void)rig_profile(c, "a", "alpha");
	r = rig_new(c);
	fill(r);
	rig_assert_names(r, 1, LIST_TOOLS, "alpha__echo");
	c = conf_of("alpha beta");
	(void)rig_profile(c, "all", NULL);
	(void)rig_profile(c, "a", "beta");
	(void)rig_profile(c, "b", NULL);
	rig_reload(r, c, fill);
	rig_assert_names(r, 1, LIST_TOOLS, "beta__echo");
	rig_assert_names(r, 2, LIST_TOOLS, "alpha__echo beta__echo");
	ck_assert_ptr_null(rig_find(r, 1, LIST_TOOLS, "alpha__echo"));
	rig_reload(r, conf_of("alpha"), fill);
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__echo");
	rig_assert_names(r, 1, LIST_TOOLS, "");
	rig_free(r);
}
END_TEST

static const struct {
	size_t bytes, want;
} budgets[] = {{0, CAP_NAME_BYTES}, {1, NAMING_BUDGET_MIN}, {24, 24}, {64, 64},
    {128, 128}, {1000, NAMING_BUDGET_MAX}};

START_TEST(budget_of_names)
{
	static const char *const long_name =
	    "a_name_that_is_so_long_that_even_the_largest_budget_has_no_room_for_it_"
	    "and_has_to_be_cut_somewhere_before_its_end_which_is_not_here_but_here";
	struct rig *r = rig_of("alpha");
	struct rig_conf *c = conf_of("alpha");
	struct json_iter it;
	struct jtext item;

	tools_of_all = long_name;
	c->name_bytes = budgets[_i].bytes;
	rig_reload(r, c, fill);
	json_iter_init(&it, catalog_body(r->c, 0, LIST_TOOLS));
	ck_assert(json_next_element(&it, &item));
	ck_assert_uint_eq(json_member(item, "name").n, budgets[_i].want + 2);
	tools_of_all = "echo";
	rig_free(r);
}
END_TEST

static void
rename_echo(struct rig_conf *c)
{
	struct tool_shape *shape = rig_shape(c->confs[0], "echo");

	shape->name = mem_xstrdup("say");
	shape->description = mem_xstrdup("Says.");
}

/* What was renamed goes by the rules of the new conf. */
START_TEST(renames_after_a_reload)
{
	struct rig *r = rig_of("alpha=");
	struct rig_conf *c = conf_of("alpha= beta=");

	rename_echo(c);
	rig_reload(r, c, fill);
	rig_assert_names(r, 0, LIST_TOOLS, "say echo");
	rig_assert_text(rig_find(r, 0, LIST_TOOLS, "say")->original, "\"echo\"");
	rig_assert_body(r, 0, LIST_TOOLS,
	    "[{\"name\":\"say\",\"description\":\"Says.\"},{\"name\":\"echo\"}]");
	/* The shape of before is freed with its conf. */
	c = conf_of("alpha= beta=");
	rename_echo(c);
	rig_reload(r, c, fill);
	rig_assert_body(r, 0, LIST_TOOLS,
	    "[{\"name\":\"say\",\"description\":\"Says.\"},{\"name\":\"echo\"}]");
	rig_reload(r, conf_of("alpha= beta="), fill);
	rig_assert_names(r, 0, LIST_TOOLS, "alpha__echo echo");
	rig_free(r);
}
END_TEST

/* Whatever allocation fails, nothing is lost but an item until the next merge. */
START_TEST(short_of_memory)
{
	for (unsigned long n = 1; n < 40; n++) {
		struct rig *r = rig_of("alpha= beta=");
		struct rig_conf *c = conf_of("beta= gamma=");
		struct json_msg json;
		struct jtext body;

		(void)rig_profile(c, "all", NULL);
		(void)rig_profile(c, "gamma", "gamma");
		rig_reload(r, c, fill);
		mem_fail_at(n, 0);
		for (unsigned k = 0; k < 2 * LIST_MAX; k++) {
			body = catalog_body(r->c, k % 2, (enum list_kind)(k / 2));
			ck_assert_int_eq(json_scan(&json, body.p, body.n, false), MV_OK);
		}
		mem_fail_at(0, 0);
		fill(r);
		rig_assert_owner(r, 1, LIST_RESOURCES, "f:/a", "gamma");
		rig_assert_owner(r, 0, LIST_RESOURCES, "f:/a", "beta");
		ck_assert_ptr_nonnull(rig_find(r, 0, LIST_TOOLS, "echo"));
		rig_free(r);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("catalog_set");
	TCase *tc = tcase_create("reloads");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, names_after_a_reload, 0, (int)(sizeof(reloads) / sizeof(reloads[0])));
	tcase_add_test(tc, without_a_look);
	tcase_add_test(tc, routes_that_calls_hold);
	tcase_add_test(tc, lists_that_are_not_there_yet);
	tcase_add_test(tc, hidden_names_are_free);
	tcase_add_test(tc, views_after_a_reload);
	tcase_add_loop_test(
	    tc, budget_of_names, 0, (int)(sizeof(budgets) / sizeof(budgets[0])));
	tcase_add_test(tc, renames_after_a_reload);
	tcase_add_test(tc, short_of_memory);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
