/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet caller */
/* SPDX-License-Identifier: MIT */
/* What no list has: whoever may not see it reaches it by none of its names. */
#include "mcpvisor/gateway.h"

#include "mcpvisor/mem.h"

#include "fake/fake_caller.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL, SOME };

static char **
patterns(const char *one)
{
	char **v = mem_xcalloc(2, sizeof(*v));

	v[0] = mem_xstrdup(one);
	return v;
}

/* alpha publishes under p+; the second view has rules for what is published. */
static struct fleet *
fleet_with_rules(const char *allow, const char *deny)
{
	struct fleet_conf *c = fleet_conf_new(1);
	struct profile_conf *p;
	struct fleet *f;

	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	(void)fleet_conf_profile(c, "default", "*");
	p = fleet_conf_profile(c, "some", "*");
	p->resources.allow = allow != NULL ? patterns(allow) : NULL;
	p->resources.deny = deny != NULL ? patterns(deny) : NULL;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "t", NULL);
	fake_loop_advance(f->loop, 1000);
	return f;
}

static void
name_uri(struct fleet *f, size_t i, const char *uri)
{
	struct caller k;
	char text[256];

	(void)snprintf(text, sizeof(text), "{\"name\":\"%s__t\"}", f->confs[i]->name);
	caller_begin(f, &k, "tools/call", text);
	(void)snprintf(text, sizeof(text),
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"%s\",\"name\":\"n\"}]}",
	    uri);
	fake_upstream_result(f->u[i], fake_upstream_n_sent(f->u[i]) - 1, text);
	ck_assert_uint_eq(k.done, 1);
}

/* ---- rules of a profile are for published URIs ---- */

static const struct {
	const char *allow, *deny, *uri;
	bool shown;
} rules[] = {
    {NULL, "p+secret:*", "secret:1", false},
    {NULL, "p+secret:*", "p+secret:1", false},
    {NULL, "p+secret:*", "s\\u0065cret:1", false},
    {NULL, "secret:*", "secret:1", true},
    {"p+secret:*", NULL, "secret:1", true},
    {"p+secret:*", NULL, "p+secret:1", true},
    {"secret:*", NULL, "secret:1", false},
};
#define N_RULES ((int)(sizeof(rules) / sizeof(rules[0])))

static void
on_settled(void *arg, const struct outcome *o)
{
	(void)arg;
	(void)o;
}

static void
on_updated(void *arg, const struct link_msg *m)
{
	(void)m;
	++*(unsigned *)arg;
}

START_TEST(both_forms_obey_the_view)
{
	static const char *const methods[] = {"resources/read", "completion/complete"};
	struct fleet *f = fleet_with_rules(rules[_i].allow, rules[_i].deny);
	struct gateway_observer o = {.view = SOME};
	unsigned updates = 0;
	struct subscriber s = {.owner = &o,
	    .on_settled = on_settled,
	    .on_updated = on_updated,
	    .arg = &updates};
	enum mv_err want = rules[_i].shown ? MV_OK : MV_NOT_FOUND;
	char quoted[64], params[256];
	struct caller k;

	name_uri(f, 0, "secret:1");
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", rules[_i].uri);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(params, sizeof(params),
		    i == 0 ? "{\"uri\":%s}"
			   : "{\"ref\":{\"type\":\"ref/resource\",\"uri\":%s}}",
		    quoted);
		ck_assert_int_eq(caller_start_in(f, &k, SOME, methods[i], params), want);
		call_cancel(&k.c, NULL);
		call_fini(&k.c);
		caller_begin(f, &k, methods[i], params);
		call_cancel(&k.c, NULL);
		call_fini(&k.c);
	}
	ck_assert_int_eq(subscription_add(f->g, text_of(quoted), &s), want);
	fake_upstream_settle_watch(f->u[0], NULL);
	fake_upstream_updated(f->u[0], "{\"uri\":\"secret:1\"}");
	ck_assert_uint_eq(updates, rules[_i].shown);
	subscription_remove(&s);
	fleet_free(f);
}
END_TEST

/* A reload hides what somebody has subscribed to, by either name. */
START_TEST(hidden_later)
{
	struct fleet *f = fleet_with_rules(NULL, NULL);
	struct fleet_conf *c = fleet_conf_new(1);
	struct gateway_observer o = {.view = SOME};
	unsigned updates = 0;
	struct subscriber s[2];

	name_uri(f, 0, "secret:1");
	for (int i = 0; i < 2; i++) {
		s[i] = (struct subscriber){.owner = &o,
		    .on_settled = on_settled,
		    .on_updated = on_updated,
		    .arg = &updates};
		ck_assert_int_eq(
		    subscription_add(
			f->g, text_of(i == 0 ? "\"secret:1\"" : "\"p+secret:1\""), &s[i]),
		    MV_OK);
	}
	fake_upstream_settle_watch(f->u[0], NULL);
	fake_upstream_updated(f->u[0], "{\"uri\":\"secret:1\"}");
	ck_assert_uint_eq(updates, 2);
	c->confs[0]->uri_prefix = mem_xstrdup("p+");
	(void)fleet_conf_profile(c, "default", "*");
	fleet_conf_profile(c, "some", "*")->resources.deny = patterns("p+secret:*");
	fleet_apply(f, c, 0);
	fake_upstream_updated(f->u[0], "{\"uri\":\"secret:1\"}");
	ck_assert_uint_eq(updates, 2);
	subscription_remove(&s[0]);
	subscription_remove(&s[1]);
	fleet_free(f);
}
END_TEST

/* What begins with the prefix is a published URI, and leads to what is sent. */
START_TEST(own_uri_like_a_published_one)
{
	struct fleet *f = fleet_with_rules(NULL, NULL);
	struct caller k;

	name_uri(f, 0, "p+a:1");
	ck_assert_int_eq(
	    caller_start(f, &k, "resources/read", "{\"uri\":\"p+a:1\"}"), MV_NOT_FOUND);
	call_fini(&k.c);
	caller_begin(f, &k, "resources/read", "{\"uri\":\"p+p+a:1\"}");
	ck_assert_str_eq(fake_upstream_last(f->u[0])->params, "{\"uri\":\"p+a:1\"}");
	call_cancel(&k.c, NULL);
	call_fini(&k.c);
	fleet_free(f);
}
END_TEST

/* ---- a list that somebody else is shown ---- */

/* Who does not see beta's list reads the URI from alpha, who has named it. */
START_TEST(named_here_and_listed_elsewhere)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct fleet *f;

	(void)fleet_conf_profile(c, "default", "*");
	(void)fleet_conf_profile(c, "some", "alpha");
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "t", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "x:1", NULL);
	fake_loop_advance(f->loop, 1000);
	ck_assert_ptr_null(gateway_route_uri(f->g, SOME, text_of("\"x:1\"")));
	name_uri(f, 0, "x:1");
	ck_assert_ptr_eq(gateway_route_uri(f->g, SOME, text_of("\"x:1\"")), f->u[0]);
	ck_assert_ptr_eq(gateway_route_uri(f->g, ALL, text_of("\"x:1\"")), f->u[1]);
	fleet_free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_uris");
	TCase *tc = tcase_create("gateway_uris");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, both_forms_obey_the_view, 0, N_RULES);
	tcase_add_test(tc, hidden_later);
	tcase_add_test(tc, own_uri_like_a_published_one);
	tcase_add_test(tc, named_here_and_listed_elsewhere);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
