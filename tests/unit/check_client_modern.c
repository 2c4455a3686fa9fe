/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Requests of 2026-07-28: the order of their checks, and our own results. */
#include "mcpvisor/client.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IO	  "\"io.modelcontextprotocol/"
#define UNCHANGED ". Retrying unchanged will fail."
#define BAD(t)	  "{\"code\":-32602,\"message\":\"Invalid params: " t UNCHANGED "\"}"
#define NEEDS(t)  BAD("params._meta must have io.modelcontextprotocol/" t)
#define NO_METHOD(name)                                                                  \
	"{\"code\":-32601,\"message\":\"Method not found: " name UNCHANGED "\"}"
#define NO_INITIALIZE                                                                    \
	"{\"code\":-32601,\"message\":\"Method not found: initialize belongs to "        \
	"earlier "                                                                       \
	"revisions; this request is one of 2026-07-28. Retrying unchanged will fail.\"}"
#define REVISION(text, asked)                                                            \
	"{\"code\":-32022,\"message\":\"Unsupported protocol version: " text             \
	"; send one of data.supported\",\"data\":"                                       \
	"{\"supported\":[\"2026-07-28\"],\"requested\":\"" asked "\"}}"
#define OWN "{\"resultType\":\"complete\"," SERVER_META ","

static struct fleet *f;
static struct peer *p;

static void
setup(void)
{
	f = fleet_full();
	p = peer_new(f);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

/* ---- checks ---- */

static const struct {
	const char *method, *params, *error;
} checks[] = {
    /* Members of _meta that make it modern, one missing or of a wrong type */
    {"tools/list", "{\"_meta\":{" MODERN_CAPS "}}", NEEDS("protocolVersion, a string")},
    {"tools/list", "{\"_meta\":{" IO "clientInfo\":{}}}",
	NEEDS("protocolVersion, a string")},
    {"tools/list", "{\"_meta\":{" IO "protocolVersion\":7," MODERN_CAPS "}}",
	NEEDS("protocolVersion, a string; got 7")},
    {"tools/list", "{\"_meta\":{" MODERN_VERSION "}}",
	NEEDS("clientCapabilities, an object")},
    {"tools/list", "{\"_meta\":{" MODERN_VERSION "," IO "clientCapabilities\":null}}",
	NEEDS("clientCapabilities, an object; got null")},
    {"tools/list",
	"{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "," IO "clientInfo\":\"c\"}}",
	BAD("io.modelcontextprotocol/clientInfo must be an object; got \\\"c\\\"")},
    {"tools/list",
	"{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "," IO "logLevel\":\"loud\"}}",
	BAD("io.modelcontextprotocol/logLevel must be debug, info, notice, warning, "
	    "error, critical, alert or emergency; got \\\"loud\\\"")},
    /* The revision comes after them, and before the method */
    {"nope", "{\"_meta\":{" IO "protocolVersion\":\"2099-01-01\"}}",
	NEEDS("clientCapabilities, an object")},
    {"nope", "{\"_meta\":{" IO "protocolVersion\":\"2099-01-01\"," MODERN_CAPS "}}",
	REVISION("2099-01-01", "2099-01-01")},
    {"nope", "{\"_meta\":{" IO "protocolVersion\":\"2025-11-2\\u0035\"," MODERN_CAPS "}}",
	REVISION("2025-11-25", "2025-11-2\\u0035")},
    {"server/discover", "{\"_meta\":{" IO "protocolVersion\":\"\"," MODERN_CAPS "}}",
	REVISION("", "")},
    /* The method before its params */
    {"nope", "{" MODERN_META ",\"cursor\":7}", NO_METHOD("nope")},
    {"initialize", "{" MODERN_META "}", NO_INITIALIZE},
    {"ping", "{" MODERN_META "}", NO_METHOD("ping")},
    {"logging/setLevel", "{" MODERN_META ",\"level\":\"info\"}",
	NO_METHOD("logging/setLevel")},
    {"resources/subscribe", "{" MODERN_META ",\"uri\":\"file:///a\"}",
	NO_METHOD("resources/subscribe")},
    {"resources/unsubscribe", "{" MODERN_META ",\"uri\":\"file:///a\"}",
	NO_METHOD("resources/unsubscribe")},
    {"notifications/cancelled", "{" MODERN_META "}",
	NO_METHOD("notifications/cancelled")},
    {"tools/list", "{" MODERN_META ",\"cursor\":7}",
	BAD("unknown cursor; the list has one page; got 7")},
    {"tools/list",
	"{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS ",\"progressToken\":{}}}",
	BAD("_meta.progressToken must be a string or an integer; got {}")},
    {"tools/call", "{" MODERN_META ",\"name\":\"nope\"}",
	"{\"code\":-32602,\"message\":\"Unknown tool: nope\"}"},
    {"tools/call", "{" MODERN_META "}",
	"{\"code\":-32602,\"message\":\"Unknown tool: params.name must be a "
	"string" UNCHANGED "\"}"},
    {"resources/read", "{" MODERN_META ",\"uri\":\"x:/\"}",
	"{\"code\":-32602,\"message\":\"Resource not found: "
	"x:/\",\"data\":{\"uri\":\"x:/\"}"
	"}"},
};

START_TEST(checked_in_order)
{
	/* A session of another era on the same connection changes nothing. */
	for (unsigned round = 0; round < 2; round++) {
		peer_ask(p, "\"x\"", checks[_i].method, checks[_i].params);
		peer_expect_error(p, "\"x\"", checks[_i].error);
		for (size_t i = 0; i < f->n; i++)
			ck_assert_uint_eq(fake_upstream_n_sent(f->u[i]), 0);
		peer_initialize(p, "2025-06-18");
	}
}
END_TEST

/* A key that could be taken for one that decides is none of ours to guess. */
START_TEST(double_meaning_is_refused)
{
	peer_ask(p, "1", "tools/list", "{" MODERN_META ",\"_Meta\":{}}");
	(void)peer_expect_code(p, "1", -32600);
	peer_ask(p, "1", "tools/list",
	    "{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "," MODERN_VERSION "}}");
	(void)peer_expect_code(p, "1", -32600);
}
END_TEST

/* ---- our own results ---- */

START_TEST(lists_have_hints)
{
	peer_ask_modern(p, "1", "tools/list", "");
	peer_expect_result(p, "1",
	    OWN "\"tools\":[{\"name\":\"alpha__a\"},{\"name\":\"alpha__b_x2ec\"},"
		"{\"name\":\"alpha__d\"},{\"name\":\"beta__a\"}],\"ttlMs\":0,"
		"\"cacheScope\":\"private\"}");
	fake_upstream_list(f->u[0], LIST_PROMPTS,
	    "{\"prompts\":[],\"ttlMs\":9000,\"cacheScope\":\"public\"}");
	fake_upstream_list(f->u[1], LIST_PROMPTS,
	    "{\"prompts\":[{\"name\":\"p\"}],\"ttlMs\":5000,\"cacheScope\":\"public\"}");
	fake_loop_advance(f->loop, 1000);
	peer_ask_modern(p, "1", "prompts/list", "");
	peer_expect_result(p, "1",
	    OWN "\"prompts\":[{\"name\":\"beta__p\"}],\"ttlMs\":4000,"
		"\"cacheScope\":\"public\"}");
	peer_ask_modern(p, "1", "resources/list", "");
	peer_expect_result(p, "1",
	    OWN "\"resources\":[{\"uri\":\"file:///a\"},{\"uri\":\"file:///b\"}],"
		"\"ttlMs\":0,\"cacheScope\":\"private\"}");
	peer_ask_modern(p, "1", "resources/templates/list", "");
	peer_expect_result(p, "1",
	    OWN "\"resourceTemplates\":[{\"uriTemplate\":\"db://{+any}\"},"
		"{\"uriTemplate\":\"db://users/{id}\"}],\"ttlMs\":0,"
		"\"cacheScope\":\"private\"}");
	/* A legacy request on the same connection gets none. */
	peer_ask(p, "1", "prompts/list", NULL);
	peer_expect_result(p, "1", "{\"prompts\":[{\"name\":\"beta__p\"}]}");
}
END_TEST

START_TEST(no_completions_is_no_error)
{
	static const struct upstream_caps caps = {.prompts = true};
	static const char ref[] =
	    "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}";
	char legacy[128];

	fake_upstream_set_caps(f->u[0], caps);
	peer_ask_modern(p, "1", "completion/complete", ref);
	peer_expect_result(
	    p, "1", OWN "\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}");
	(void)snprintf(legacy, sizeof(legacy), "{%s}", ref);
	peer_ask(p, "2", "completion/complete", legacy);
	peer_expect_result(
	    p, "2", "{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}");
}
END_TEST

/* ---- results of upstreams ---- */

#define TYPE  "\"resultType\":\"complete\""
#define TTL   "\"ttlMs\":0"
#define SCOPE "\"cacheScope\":\"private\""
#define CALL  "tools/call", "\"name\":\"alpha__a\""
#define GET   "prompts/get", "\"name\":\"alpha__a\""
#define READ  "resources/read", "\"uri\":\"file:///a\""
#define COMPLETE                                                                         \
	"completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}"

static const struct {
	const char *method, *members, *result, *want; /* NULL: the same bytes */
} results[] = {
    {CALL, "{}", "{" TYPE "}"},
    {CALL, "{ }", "{" TYPE " }"},
    {CALL, "{\"content\":[]}", "{" TYPE ",\"content\":[]}"},
    {CALL, "{ \"n\":1.0,\"n\":1e400, \"s\":\"\\ud800\" }",
	"{" TYPE ", \"n\":1.0,\"n\":1e400, \"s\":\"\\ud800\" }"},
    {CALL, "{\"isError\":true,\"content\":[{\"x\":9007199254740993}]}",
	"{" TYPE ",\"isError\":true,\"content\":[{\"x\":9007199254740993}]}"},
    {CALL, "{\"content\":[],\"resultType\":\"complete\"}", NULL},
    {CALL, "{\"r\\u0065sultType\":\"complete\"}", NULL},
    {CALL, "{\"resultType\":\"other\"}", NULL},
    {CALL, "{\"x\":{\"resultType\":\"complete\"}}",
	"{" TYPE ",\"x\":{\"resultType\":\"complete\"}}"},
    {CALL, "{\"_meta\":{\"k\":[1,2.50]}}", "{" TYPE ",\"_meta\":{\"k\":[1,2.50]}}"},
    {GET, "{\"messages\":[]}", "{" TYPE ",\"messages\":[]}"},
    {COMPLETE, "{\"completion\":{\"values\":[]}}",
	"{" TYPE ",\"completion\":{\"values\":[]}}"},
    /* Only what may be cached says how long. */
    {READ, "{}", "{" TYPE "," TTL "," SCOPE "}"},
    {READ, "{\"contents\":[]}", "{" TYPE "," TTL "," SCOPE ",\"contents\":[]}"},
    {READ, "{\"ttlMs\":5}", "{" TYPE "," SCOPE ",\"ttlMs\":5}"},
    {READ, "{\"cacheScope\":\"public\"}", "{" TYPE "," TTL ",\"cacheScope\":\"public\"}"},
    {READ, "{\"ttlMs\":5,\"cacheScope\":\"public\"}",
	"{" TYPE ",\"ttlMs\":5,\"cacheScope\":\"public\"}"},
    {READ, "{\"resultType\":\"complete\"}",
	"{" TTL "," SCOPE ",\"resultType\":\"complete\"}"},
    {READ, "{\"resultType\":\"complete\",\"ttlMs\":5}",
	"{" SCOPE ",\"resultType\":\"complete\",\"ttlMs\":5}"},
    {READ, "{\"resultType\":\"complete\",\"cacheScope\":\"x\"}",
	"{" TTL ",\"resultType\":\"complete\",\"cacheScope\":\"x\"}"},
    {READ, "{\"resultType\":\"complete\",\"cacheScope\":\"x\",\"ttlMs\":1}", NULL},
    /* Input is asked for by a result, which is not cached. */
    {CALL, "{\"inputRequests\":{},\"resultType\":\"input_required\"}", NULL},
    {READ, "{\"inputRequests\":{},\"resultType\":\"input_required\"}", NULL},
};

START_TEST(results_get_what_they_lack)
{
	struct buf legacy;

	peer_ask_modern(p, "\"m\"", results[_i].method, results[_i].members);
	fake_upstream_result(f->u[0], 0, results[_i].result);
	peer_expect_result(
	    p, "\"m\"", results[_i].want ? results[_i].want : results[_i].result);
	/* To a legacy client not a byte is changed. */
	buf_init(&legacy, 1024);
	buf_addf(&legacy, "{%s}", results[_i].members);
	peer_ask(p, "0", results[_i].method, buf_cstr(&legacy));
	buf_fini(&legacy);
	fake_upstream_result(f->u[0], 1, results[_i].result);
	if (strstr(results[_i].result, "input_required") != NULL)
		ck_assert_ptr_nonnull(
		    strstr(peer_expect_code(p, "0", -32603), "\"reason\":\"protocol\""));
	else
		peer_expect_result(p, "0", results[_i].result);
}
END_TEST

/* ---- what goes to the upstream ---- */

START_TEST(level_goes_along)
{
	peer_ask(p, "1", "tools/call",
	    "{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "," IO
	    "logLevel\":\"debug\"},\"name\":\"alpha__a\"}");
	ck_assert_int_eq(fake_upstream_last(f->u[0])->level, MCP_LV_DEBUG);
	ck_assert_str_eq(fake_upstream_last(f->u[0])->params,
	    "{\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "," IO
	    "logLevel\":\"debug\"},\"name\":\"a\"}");
	fake_upstream_result(f->u[0], 0, "{}");
	peer_expect_result(p, "1", "{" TYPE "}");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_modern");
	TCase *tc = tcase_create("client_modern");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, checked_in_order, 0, (int)(sizeof(checks) / sizeof(checks[0])));
	tcase_add_test(tc, double_meaning_is_refused);
	tcase_add_test(tc, lists_have_hints);
	tcase_add_test(tc, no_completions_is_no_error);
	tcase_add_loop_test(tc, results_get_what_they_lack, 0,
	    (int)(sizeof(results) / sizeof(results[0])));
	tcase_add_test(tc, level_goes_along);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
