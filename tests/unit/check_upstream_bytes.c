/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What an upstream of each era is sent for a call of a client of each era, byte for
 * byte, at once or held. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a message that gets id 2. */
#define CALL(params)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"tools/call\",\"params\":" params \
	"}"
#define SENT(params)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":" params "}"
#define VERSION_IS(v) "\"io.modelcontextprotocol/protocolVersion\":\"" v "\""
#define CAPS_ARE(c)   "\"io.modelcontextprotocol/clientCapabilities\":" c
#define INFO_IS(i)    "\"io.modelcontextprotocol/clientInfo\":" i
#define LEVEL_IS(l)   "\"io.modelcontextprotocol/logLevel\":\"" l "\""
#define SUB_IS(s)     "\"io.modelcontextprotocol/subscriptionId\":" s
#define OURS(info)    VERSION_IS("2026-07-28") "," CAPS_ARE("{}") "," INFO_IS(info)
#define THEIRS	      VERSION_IS("2026-07-28") "," CAPS_ARE("{\"sampling\":{}}")
#define BY_CLIENT     OURS(CLIENT_INFO)
#define ASKED(info)   THEIRS "," INFO_IS(info)
#define OTHER	      "{\"name\":\"other\",\"version\":\"7\"}"
#define TRACE                                                                            \
	"\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\","   \
	"\"tracestate\":\"a=b\",\"baggage\":\"c=d\""

enum era { LEGACY, MODERN, MODERN_LOGGING };

struct row {
	const char *what;
	enum era era; /* of the upstream */
	const char *target;
	const char *in, *out;
};

/* clang-format off */
static const struct row rows[] = {
	/* A legacy client at a legacy upstream. */
	{"nothing to change", LEGACY, NULL,
	    CALL("{\"name\":\"a\",\"arguments\":{\"name\":\"b\"}}"),
	    SENT("{\"name\":\"a\",\"arguments\":{\"name\":\"b\"}}")},
	{"name, and its white space", LEGACY, "\"real one\"",
	    CALL("{ \"arguments\" : {} , \"name\" : \"u__a\" , \"x\":[ 1 ] }"),
	    SENT("{ \"arguments\" : {} , \"name\" : \"real one\" , \"x\":[ 1 ] }")},
	{"token that is a string", LEGACY, "\"r\"",
	    CALL("{\"_meta\":{\"progressToken\":\"tok\"},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{\"progressToken\":2},\"name\":\"r\"}")},
	{"trace context", LEGACY, NULL,
	    CALL("{\"_meta\":{" TRACE "," THEIRS "},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{" TRACE "},\"name\":\"a\"}")},
	{"token that is 0, other members of _meta", LEGACY, "\"r\"",
	    CALL("{\"name\":\"a\",\"_meta\":{\"x\":{},\"progressToken\":0,\"y\":\"\\u00e9\"}}"),
	    SENT("{\"name\":\"r\",\"_meta\":{\"x\":{},\"progressToken\":2,\"y\":\"\\u00e9\"}}")},
	{"_meta that is no object", LEGACY, NULL,
	    CALL("{\"_meta\":null,\"name\":\"a\"}"), SENT("{\"_meta\":null,\"name\":\"a\"}")},
	{"no params", LEGACY, NULL,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/read\"}"},
	{"members of the message stay behind", LEGACY, NULL,
	    "{\"x\":1,\"params\":{},\"method\":\"prompts\\/get\",\"id\":7,\"jsonrpc\":\"2.0\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"prompts/get\",\"params\":{}}"},

	/* A modern client at a legacy upstream. */
	{"modern members are cut", LEGACY, "\"r\"",
	    CALL("{\"name\":\"a\",\"_meta\":{" THEIRS "," INFO_IS(OTHER) "}}"),
	    SENT("{\"name\":\"r\",\"_meta\":{}}")},
	{"what else there is stays", LEGACY, "\"r\"",
	    CALL("{\"_meta\":{\"a\":1," VERSION_IS("2026-07-28") ",\"progressToken\":\"p\","
		CAPS_ARE("{}") "," LEVEL_IS("info") ",\"z\":{\"progressToken\":3},"
		SUB_IS("4") "},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{\"a\":1,\"progressToken\":2,\"z\":{\"progressToken\":3}},"
		"\"name\":\"r\"}")},
	{"modern members last, with white space", LEGACY, NULL,
	    CALL("{\"name\":\"a\",\"_meta\":{ \"t\" : 1 , " THEIRS " }}"),
	    SENT("{\"name\":\"a\",\"_meta\":{ \"t\" : 1  }}")},

	/* A legacy client at a modern upstream. */
	{"_meta in front of members", MODERN, "\"r\"",
	    CALL("{\"name\":\"a\",\"arguments\":{}}"),
	    SENT("{\"_meta\":{" BY_CLIENT "},\"name\":\"r\",\"arguments\":{}}")},
	{"no members", MODERN, NULL, CALL("{}"), SENT("{\"_meta\":{" BY_CLIENT "}}")},
	{"no members but a blank", MODERN, NULL,
	    CALL("{ }"), SENT("{\"_meta\":{" BY_CLIENT "} }")},
	{"no params to put it in", MODERN, NULL,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/read\",\"params\":"
	    "{\"_meta\":{" BY_CLIENT "}}}"},
	{"token of a legacy client", MODERN, "\"r\"",
	    CALL("{\"name\":\"a\",\"_meta\":{\"progressToken\":\"tok\",\"x\":[1, 2]}}"),
	    SENT("{\"name\":\"r\",\"_meta\":{" BY_CLIENT ",\"progressToken\":2,\"x\":[1, 2]}}")},
	{"trace context", MODERN, NULL,
	    CALL("{\"_meta\":{" TRACE "},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{" BY_CLIENT "," TRACE "},\"name\":\"a\"}")},
	{"empty _meta", MODERN, NULL,
	    CALL("{\"_meta\":{},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{" BY_CLIENT "},\"name\":\"a\"}")},
	{"no object for a _meta", MODERN, NULL,
	    CALL("{\"_meta\":\"x\",\"name\":\"a\"}"),
	    SENT("{\"_meta\":{" BY_CLIENT "},\"name\":\"a\"}")},

	/* A modern client at a modern upstream. */
	{"its name and its capabilities go along", MODERN, "\"r\"",
	    CALL("{\"name\":\"a\",\"_meta\":{" THEIRS "," INFO_IS(OTHER) "}}"),
	    SENT("{\"name\":\"r\",\"_meta\":{" ASKED(OTHER) "}}")},
	{"all members", MODERN, "\"r\"",
	    CALL("{\"_meta\":{\"traceparent\":\"00-1\"," SUB_IS("\"s\"") "," LEVEL_IS("info") ","
		INFO_IS(OTHER) "," THEIRS ",\"progressToken\":\"p\",\"z\":0},\"name\":\"a\"}"),
	    SENT("{\"_meta\":{" ASKED(OTHER) "," LEVEL_IS("info") ",\"traceparent\":\"00-1\",\"progressToken\":2,"
		"\"z\":0},\"name\":\"r\"}")},
	{"level, whether logging was declared or not", MODERN, NULL,
	    CALL("{\"name\":\"a\",\"_meta\":{" THEIRS "," LEVEL_IS("notice") "}}"),
	    SENT("{\"name\":\"a\",\"_meta\":{" ASKED(CLIENT_INFO) "," LEVEL_IS("notice") "}}")},
	{"no level", MODERN_LOGGING, NULL,
	    CALL("{\"name\":\"a\",\"_meta\":{" THEIRS "}}"),
	    SENT("{\"name\":\"a\",\"_meta\":{" ASKED(CLIENT_INFO) "}}")},
};
/* clang-format on */
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void
owner_become(struct uowner *o, enum era era)
{
	if (era == LEGACY)
		uowner_be_legacy(o, "2025-06-18", "{}");
	else
		uowner_be_modern(o, era == MODERN ? "{}" : "{\"logging\":{}}");
}

static void
check_row(const struct row *r, bool held)
{
	struct uowner *o = uowner_new(r->era == LEGACY ? ERA_LEGACY : ERA_AUTO);
	struct ucall c = {.done = 0};

	if (held)
		uowner_start(o);
	else
		owner_become(o, r->era);
	ck_assert_int_eq(ucall_try(o, &c, r->in, r->target), MV_OK);
	if (held)
		owner_become(o, r->era);
	uowner_heard(r->out);
	uowner_heard_nothing();
	uowner_answer(o, 2, "{ \"content\" : [] }");
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	ck_assert_str_eq(c.body, "{ \"content\" : [] }");
	uowner_free(o);
}

START_TEST(exact_bytes)
{
	check_row(&rows[_i], false);
	check_row(&rows[_i], true);
}
END_TEST

/* Requests of our own carry what the era wants. */
START_TEST(own_requests)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};

	ck_assert_int_eq(upstream_ask(o->u, &c.req, METHOD_TOOLS_LIST, ""), MV_STARTING);
	if (_i == 0)
		uowner_be_legacy(o, "2025-06-18", "{\"tools\":{}}");
	else
		uowner_be_modern(o, "{\"tools\":{}}");
	uowner_heard(_i == 0 ? "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"
			     : "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\","
			       "\"params\":{" OWN_META "}}");
	uowner_answer(o, 2, "{\"tools\":[],\"nextCursor\":\"\\u0061\"}");
	uowner_heard(_i == 0 ? "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\","
			       "\"params\":{\"cursor\":\"\\u0061\"}}"
			     : "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\","
			       "\"params\":{\"cursor\":\"\\u0061\"," OWN_META "}}");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

struct cancel_row {
	const char *client, *params;
};

START_TEST(cancel_of_a_client)
{
	static const struct cancel_row cancels[] = {
	    {"{\"requestId\":\"c\"}", "{\"requestId\":2}"},
	    {"{\"requestId\":\"c\",\"reason\":\"no \\n more\"}",
		"{\"requestId\":2,\"reason\":\"no \\n more\"}"},
	    {"{ \"x\":1, \"requestId\" : 99 }", "{ \"x\":1, \"requestId\" : 2 }"},
	    {"{\"requestId\":1,\"_meta\":{\"a\":1}}", "{\"requestId\":2}"},
	    {"{}", "{\"requestId\":2}"},
	};
	struct uowner *o = uowner_new(ERA_AUTO);
	struct ucall c = {.done = 0};
	struct json_msg json;
	struct link_msg m;
	char in[256], out[256];

	(void)snprintf(in, sizeof(in),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":%s}",
	    cancels[_i].client);
	(void)snprintf(out, sizeof(out),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":%s}",
	    cancels[_i].params);
	ck_assert_int_eq(link_scan(in, strlen(in), &json, &m), MV_OK);
	owner_become(o, _i % 2 == 0 ? LEGACY : MODERN);
	ucall_send(o, &c, CALL("{\"name\":\"a\"}"));
	ck_assert_uint_eq(uowner_heard_request("tools/call"), 2);
	upstream_cancel(&c.req, &m);
	uowner_heard(out);
	uowner_heard_nothing();
	uowner_answer(o, 2, "{}");
	ck_assert_uint_eq(c.done, 0);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_bytes");
	TCase *tc = tcase_create("bytes");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, exact_bytes, 0, (int)N_ROWS);
	tcase_add_loop_test(tc, own_requests, 0, 2);
	tcase_add_loop_test(tc, cancel_of_a_client, 0, 5);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
