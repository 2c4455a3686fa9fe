/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Headers that mirror bodies, and what is done when they were wrong. */
#include "remote_rig.h"

#define MESSAGE "{\"content\":[]}"
#define TOOLS	"{\"tools\":{\"listChanged\":true}}"
#define HEAD	"MCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\n"
#define CALL_OF(name, arguments)                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":" name ",\"arguments\":" arguments "}}"

/* ---- headers ---- */

#define B64(text) "=?base64?" text "?="
static const struct {
	const char *call, *target, *lines;
} names[] = {
    {CALL_OF("\"t\"", "{}"), NULL, HEAD "Mcp-Name: t\n"},
    {CALL_OF("\"t\"", "{}"), "\"other\"", HEAD "Mcp-Name: other\n"},
    {CALL_OF("\"a b\"", "{}"), NULL, HEAD "Mcp-Name: a b\n"},
    {CALL_OF("\" padded \"", "{}"), NULL, HEAD "Mcp-Name: " B64("IHBhZGRlZCA=") "\n"},
    {CALL_OF("\"a\\tb\"", "{}"), NULL, HEAD "Mcp-Name: a\tb\n"},
    {CALL_OF("\"line1\\nline2\"", "{}"), NULL,
	HEAD "Mcp-Name: " B64("bGluZTEKbGluZTI=") "\n"},
    {CALL_OF("\"Hello, \xe4\xb8\x96\xe7\x95\x8c\"", "{}"), NULL,
	HEAD "Mcp-Name: " B64("SGVsbG8sIOS4lueVjA==") "\n"},
    {CALL_OF("\"=?base64?literal?=\"", "{}"), NULL,
	HEAD "Mcp-Name: " B64("PT9iYXNlNjQ/bGl0ZXJhbD89") "\n"},
    {CALL_OF("\"=?base64?literal\"", "{}"), NULL, HEAD "Mcp-Name: =?base64?literal\n"},
    {CALL_OF("\"\\u0000\"", "{}"), NULL, HEAD "Mcp-Name: " B64("AA==") "\n"},
    {CALL_OF("\"\"", "{}"), NULL, HEAD "Mcp-Name: \n"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":"
     "\"file:///a\",\"name\":\"n\"}}",
	NULL,
	"MCP-Protocol-Version: 2026-07-28\nMcp-Method: resources/read\n"
	"Mcp-Name: file:///a\n"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\",\"params\":{\"name\":"
     "\"p\",\"uri\":\"u\"}}",
	NULL, "MCP-Protocol-Version: 2026-07-28\nMcp-Method: prompts/get\nMcp-Name: p\n"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\",\"params\":{"
     "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"}}}",
	NULL, "MCP-Protocol-Version: 2026-07-28\nMcp-Method: completion/complete\n"},
};

START_TEST(names_go_into_headers)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_modern(o, "{}");
	ck_assert_int_eq(ucall_try(o, &c, names[_i].call, names[_i].target), MV_OK);
	ck_assert_str_eq(fake_http_take()->lines, names[_i].lines);
	uowner_free(o);
}
END_TEST

#define P(name, type, header)                                                            \
	"\"" name "\":{\"type\":\"" type "\",\"x-mcp-header\":\"" header "\"}"
#define TOOL(name, properties)                                                           \
	"{\"name\":\"" name                                                              \
	"\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" properties "}}}"
#define ANNOTATED                                                                        \
	TOOL("t", P("s", "string", "S") "," P("i", "integer", "I") "," P("b", "boolean", \
		      "B") ",\"o\":{\"type\":\"object\",\"properties\":{" P("x",         \
		      "string", "X") "}}")
#define LIST(tools) "{\"tools\":[" tools "]}"

static const struct {
	const char *arguments, *lines;
} params[] = {
    {"{}", ""},
    {"{\"s\":\"us-west1\"}", "Mcp-Param-S: us-west1\n"},
    {"{\"s\":null,\"i\":1}", "Mcp-Param-I: 1\n"},
    {"{\"i\":42.0}", "Mcp-Param-I: 42\n"},
    {"{\"i\":-12e2}", "Mcp-Param-I: -1200\n"},
    {"{\"i\":-0}", "Mcp-Param-I: 0\n"},
    {"{\"i\":1.5}", "Mcp-Param-I: 1.5\n"},
    {"{\"i\":9007199254740991}", "Mcp-Param-I: 9007199254740991\n"},
    {"{\"i\":9007199254740992}", ""},
    {"{\"b\":true,\"s\":\"\"}", "Mcp-Param-S: \nMcp-Param-B: true\n"},
    {"{\"b\":false}", "Mcp-Param-B: false\n"},
    {"{\"s\":[1],\"o\":{\"x\":\"\xc3\xa9\"}}", "Mcp-Param-X: " B64("w6k=") "\n"},
    {"{\"s\":\"a\",\"s\":\"b\"}", ""},
    {"{\"\\u0073\":\"a\"}", "Mcp-Param-S: a\n"},
    {"{\"s\":\"a\\r\\nB: c\"}", "Mcp-Param-S: " B64("YQ0KQjogYw==") "\n"},
};

static void
be_annotated(struct uowner *o)
{
	be_modern(o, TOOLS);
	(void)server_heard("subscriptions/listen");
	server_answers(
	    server_heard("tools/list")->id, LIST(ANNOTATED ",{\"name\":\"u\"}"));
	server_heard(NULL);
}

START_TEST(params_go_into_headers)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	char call[512], lines[512];

	be_annotated(o);
	(void)snprintf(call, sizeof(call),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	    "\"name\":\"T\",\"arguments\":%s}}",
	    params[_i].arguments);
	(void)snprintf(lines, sizeof(lines), HEAD "Mcp-Name: t\n%s", params[_i].lines);
	/* By the name that the upstream knows. */
	ck_assert_int_eq(ucall_try(o, &c, call, "\"t\""), MV_OK);
	ck_assert_str_eq(server_heard("tools/call")->lines, lines);
	uowner_free(o);
}
END_TEST

/* Those that we put in place of the client's. */
START_TEST(params_of_ours_go_into_headers)
{
	static const struct {
		const char *call, *ours;
	} rows[] = {
	    {CALL_OF("\"t\"", "{\"s\":\"theirs\"}"), "{\"s\":\"ours\"}"},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	     "\"name\":\"t\"}}",
		",\"arguments\":{\"s\":\"ours\"}"},
	};
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {.arguments = rows[_i].ours};

	be_annotated(o);
	ucall_send(o, &c, rows[_i].call);
	ck_assert_str_eq(
	    server_heard("tools/call")->lines, HEAD "Mcp-Name: t\nMcp-Param-S: ours\n");
	uowner_free(o);
}
END_TEST

START_TEST(unusable_tools_are_left_out)
{
	struct uowner *o = uowner_new_of(remote_conf());

	be_modern(o, TOOLS);
	(void)server_heard("subscriptions/listen");
	server_answers(server_heard("tools/list")->id,
	    LIST(TOOL("bad", P("s", "number", "S")) "," ANNOTATED "," TOOL(
		"worse", P("s", "string", ""))));
	ck_assert_uint_eq(upstream_list(o->u, LIST_TOOLS)->n, 1);
	ck_assert(uowner_log_has(o, "tool left out"));
	ck_assert(uowner_log_has(o, "bad"));
	ck_assert(uowner_log_has(o, "worse"));
	ck_assert(uowner_log_has(o, "x-mcp-header is only allowed on parameters"));
	uowner_free(o);
}
END_TEST

/* Headers do not concern a legacy one. */
START_TEST(legacy_tools_stay)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_legacy(o, "2025-11-25", TOOLS);
	server_answers(server_heard("tools/list")->id,
	    LIST(TOOL("bad", P("s", "number", "S")) "," ANNOTATED));
	ck_assert_uint_eq(upstream_list(o->u, LIST_TOOLS)->n, 2);
	ucall_send(o, &c, CALL_OF("\"t\"", "{\"s\":\"a\"}"));
	ck_assert_str_eq(server_heard("tools/call")->lines, "");
	uowner_free(o);
}
END_TEST

/* ---- headers that were wrong ---- */

static uint64_t
call_with_wrong_headers(struct uowner *o, struct ucall *c)
{
	uint64_t id;

	be_annotated(o);
	fake_loop_advance(o->loop, RELIST_PAUSE_MS);
	ucall_send(o, c, CALL_OF("\"t\"", "{\"s\":\"a\",\"n\":\"b\"}"));
	id = server_heard("tools/call")->id;
	server_refuses(id, "-32020");
	ck_assert_uint_eq(c->done, 0);
	return server_heard("tools/list")->id;
}

START_TEST(headers_are_repaired)
{
	struct uowner *o = uowner_new_of(remote_conf());
	const struct fake_posted *m;
	struct ucall c = {0};
	uint64_t list = call_with_wrong_headers(o, &c);

	server_heard(NULL);
	server_answers(list, LIST(TOOL("t", P("n", "string", "N"))));
	fake_loop_settle(o->loop);
	m = server_heard("tools/call");
	ck_assert_str_eq(m->lines, HEAD "Mcp-Name: t\nMcp-Param-N: b\n");
	ck_assert_ptr_nonnull(strstr(m->text, "{\"s\":\"a\",\"n\":\"b\"}"));
	if (_i == 0) {
		server_answers(m->id, MESSAGE);
		ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	} else {
		/* Once is enough. */
		server_refuses(m->id, "-32020");
		ck_assert_int_eq(c.kind, OUTCOME_FAILED);
		ck_assert_int_eq(c.err, MV_PROTOCOL);
	}
	ck_assert_uint_eq(c.done, 1);
	ck_assert_uint_eq(o->u->held_bytes, 0);
	uowner_free(o);
}
END_TEST

/* The list does not come; the call is given up; all of it ends. */
START_TEST(headers_are_not_repaired)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	uint64_t list = call_with_wrong_headers(o, &c);

	switch (_i) {
	case 0:
		fake_http_fail(fake_http_last(), list, MV_HTTP, 503, NULL);
		fake_loop_settle(o->loop);
		server_answers(server_heard("tools/call")->id, MESSAGE);
		break;
	case 1:
		upstream_cancel(&c.req, NULL);
		c.done++;
		server_answers(list, LIST(""));
		fake_loop_settle(o->loop);
		server_heard(NULL);
		break;
	case 2:
		fake_http_fail(fake_http_last(), list, MV_UNREACHABLE, 0, NULL);
		fake_loop_settle(o->loop);
		ck_assert_int_eq(c.err, MV_UNREACHABLE);
		break;
	default:
		break;
	}
	if (_i < 3)
		ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
	ck_assert_uint_eq(c.done, 1);
}
END_TEST

/* No copy of it was kept; but the next one will have them right. */
START_TEST(headers_of_a_plain_call)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_annotated(o);
	fake_loop_advance(o->loop, RELIST_PAUSE_MS);
	ucall_send(o, &c, CALL_OF("\"u\"", "{\"s\":\"a\"}"));
	ck_assert_uint_eq(o->u->held_bytes, 0);
	server_refuses(server_heard("tools/call")->id, "-32020");
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_PROTOCOL);
	server_answers(
	    server_heard("tools/list")->id, LIST(TOOL("u", P("s", "string", "S"))));
	ucall_send(o, &c, CALL_OF("\"u\"", "{\"s\":\"a\"}"));
	ck_assert_str_eq(
	    server_heard("tools/call")->lines, HEAD "Mcp-Name: u\nMcp-Param-S: a\n");
	uowner_free(o);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("upstream_remote_headers");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, names_go_into_headers, 0, ROWS(names));
	tcase_add_loop_test(tc, params_go_into_headers, 0, ROWS(params));
	tcase_add_loop_test(tc, params_of_ours_go_into_headers, 0, 2);
	tcase_add_test(tc, unusable_tools_are_left_out);
	tcase_add_test(tc, legacy_tools_stay);
	tcase_add_loop_test(tc, headers_are_repaired, 0, 2);
	tcase_add_loop_test(tc, headers_are_not_repaired, 0, 4);
	tcase_add_test(tc, headers_of_a_plain_call);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
