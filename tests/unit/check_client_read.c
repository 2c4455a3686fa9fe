/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* resources/read of an upstream whose URIs are published under a prefix. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fleet *f;
static struct peer *p;

static void
setup(void)
{
	struct fleet_conf *c = fleet_conf_new(2);

	c->confs[0]->uri_prefix = mem_xstrdup("a\"+");
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", NULL);
	fake_loop_advance(f->loop, 1000);
	p = peer_new(f);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

#define URI "\"uri\":\"a\\\"+file:///a\""

static const struct {
	const char *body, *want;
} results[] = {
    {"{\"contents\":[{\"uri\":\"file:///a\",\"text\":\"x\"}]}",
	"{\"contents\":[{" URI ",\"text\":\"x\"}]}"},
    {"{ \"x\" : 1.0,\"contents\":[ { \"uri\" : \"file:\\/\\/\\/a\" } , 7, {\"uri\":8},{} "
     ", "
     "{\"a\":{\"uri\":\"b\"},\"uri\":\"\"}],\"uri\":\"c\"}",
	"{ \"x\" : 1.0,\"contents\":[ { \"uri\" : \"a\\\"+file:\\/\\/\\/a\" } , 7, "
	"{\"uri\":8},{} , {\"a\":{\"uri\":\"b\"},\"uri\":\"a\\\"+\"}],\"uri\":\"c\"}"},
    {"{\"contents\":[]}", "{\"contents\":[]}"},
    {"{\"contents\":{\"uri\":\"b\"}}", "{\"contents\":{\"uri\":\"b\"}}"},
    {"{}", "{}"},
};

START_TEST(contents_get_the_prefix)
{
	peer_ask(p, "1", "resources/read", "{" URI "}");
	fake_upstream_result(f->u[0], 0, results[_i].body);
	peer_expect_result(p, "1", results[_i].want);
}
END_TEST

/* Beside what the revision wants in a result. */
START_TEST(in_either_era)
{
	peer_ask_modern(p, "1", "resources/read", URI);
	fake_upstream_result(
	    f->u[0], 0, "{\"contents\":[{\"uri\":\"file:///a\"}],\"ttlMs\":5}");
	peer_expect_result(p, "1",
	    "{\"resultType\":\"complete\",\"cacheScope\":\"private\",\"contents\":[{" URI
	    "}],\"ttlMs\":5}");
}
END_TEST

START_TEST(any_number_of_contents)
{
	struct buf body, want;

	buf_init(&body, CAP_OUT_BYTES);
	buf_init(&want, CAP_OUT_BYTES);
	buf_add_str(&body, "{\"contents\":[");
	buf_add_str(&want, "{\"contents\":[");
	for (unsigned i = 0; i < 1000; i++) {
		buf_addf(&body, "%s{\"text\":\"\",\"uri\":\"u:%u\"}", i ? "," : "", i);
		buf_addf(
		    &want, "%s{\"text\":\"\",\"uri\":\"a\\\"+u:%u\"}", i ? "," : "", i);
	}
	buf_add_str(&body, "]}");
	buf_add_str(&want, "]}");
	peer_ask(p, "1", "resources/read", "{" URI "}");
	fake_upstream_result(f->u[0], 0, buf_cstr(&body));
	peer_expect_result(p, "1", buf_cstr(&want));
	buf_fini(&body);
	buf_fini(&want);
}
END_TEST

START_TEST(others_stay)
{
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	peer_ask(p, "1", "resources/read", "{\"uri\":\"file:///b\"}");
	fake_upstream_result(f->u[1], 0, "{\"contents\":[{\"uri\":\"file:///b\"}]}");
	peer_expect_result(p, "1", "{\"contents\":[{\"uri\":\"file:///b\"}]}");
	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_result(f->u[0], 0, "{\"contents\":[{\"uri\":\"file:///b\"}]}");
	peer_expect_result(p, "1", "{\"contents\":[{\"uri\":\"file:///b\"}]}");
}
END_TEST

/* A result names a URI as the upstream does; who asks for that is answered in kind. */
START_TEST(asked_without_the_prefix)
{
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	peer_ask(p, "1", "resources/read", "{\"uri\":\"file:///c\"}");
	(void)peer_expect_code(p, "1", -32002);
	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_result(f->u[0], 0, "{\"x\":[{\"uri\":\"file:///c\"}]}");
	peer_expect_result(p, "1", "{\"x\":[{\"uri\":\"file:///c\"}]}");
	peer_ask(p, "1", "resources/read", "{\"uri\":\"file:///c\"}");
	fake_upstream_result(f->u[0], 1, "{\"contents\":[{\"uri\":\"file:///c\"}]}");
	peer_expect_result(p, "1", "{\"contents\":[{\"uri\":\"file:///c\"}]}");
	peer_ask(p, "1", "resources/read", "{\"uri\":\"a\\\"+file:///c\"}");
	ck_assert_str_eq(fake_upstream_last(f->u[0])->params, "{\"uri\":\"file:///c\"}");
	fake_upstream_result(f->u[0], 2, "{\"contents\":[{\"uri\":\"file:///c\"}]}");
	peer_expect_result(p, "1", "{\"contents\":[{\"uri\":\"a\\\"+file:///c\"}]}");
}
END_TEST

/* The prefix alone is no URI of its upstream's, which hears it as it is. */
START_TEST(nothing_but_the_prefix)
{
	fleet_list(f, 0, LIST_TEMPLATES, "{+any}", NULL);
	peer_ask(p, "1", "resources/read", "{\"uri\":\"a\\\"+\"}");
	ck_assert_str_eq(fake_upstream_last(f->u[0])->params, "{\"uri\":\"a\\\"+\"}");
	fake_upstream_result(f->u[0], 0, "{\"contents\":[{\"uri\":\"a\\\"+\"}]}");
	peer_expect_result(p, "1", "{\"contents\":[{\"uri\":\"a\\\"+\"}]}");
}
END_TEST

/* An error names the URI that the client knows. */
START_TEST(errors_name_the_client_s_uri)
{
	static const char *const errors[] = {
	    "{\"code\":-32002,\"message\":\"gone\",\"data\":{\"uri\":\"file:///a\"}}",
	    "{\"code\":-32602,\"message\":\"gone\",\"data\":{\"uri\":\"file:///a\"}}"};
	size_t n = 0;

	for (unsigned i = 0; i < 2; i++) {
		peer_ask(p, "1", "resources/read", "{" URI "}");
		fake_upstream_error(f->u[0], n++, errors[i]);
		peer_expect_error(p, "1",
		    "{\"code\":-32002,\"message\":\"Resource not found: "
		    "a\\\"+file:///a\","
		    "\"data\":{" URI "}}");
	}
	peer_ask_modern(p, "1", "resources/read", URI);
	fake_upstream_error(f->u[0], n++, errors[0]);
	peer_expect_error(p, "1",
	    "{\"code\":-32602,\"message\":\"Resource not found: a\\\"+file:///a\","
	    "\"data\":{" URI "}}");
	peer_ask(p, "1", "resources/read", "{" URI "}");
	fake_upstream_error(f->u[0], n++, "{\"code\":-32602,\"message\":\"x\"}");
	peer_expect_error(p, "1", "{\"code\":-32602,\"message\":\"x\"}");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_read");
	TCase *tc = tcase_create("client_read");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, contents_get_the_prefix, 0, (int)(sizeof(results) / sizeof(results[0])));
	tcase_add_test(tc, in_either_era);
	tcase_add_test(tc, any_number_of_contents);
	tcase_add_test(tc, others_stay);
	tcase_add_test(tc, asked_without_the_prefix);
	tcase_add_test(tc, nothing_but_the_prefix);
	tcase_add_test(tc, errors_name_the_client_s_uri);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
