/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* The words of our own errors: exact, and JSON whatever a peer named. */
#include "mcpvisor/wording.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_tree.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct buf out;

static void
setup(void)
{
	buf_init(&out, CAP_MESSAGE_BYTES);
}

static void
teardown(void)
{
	buf_fini(&out);
}

static struct jtext
text_of(const char *s)
{
	struct jtext t = {s, strlen(s)};

	return t;
}

static void
assert_out(const char *want)
{
	tree_assert_error(out.data, out.len);
	ck_assert_str_eq(buf_cstr(&out), want);
	buf_reset(&out);
}

static const struct {
	struct wording_failure f;
	const char *want;
} failures[] = {
    {{.err = MV_DIED, .upstream = "alpha", .method = METHOD_TOOLS_CALL},
	"{\"code\":-32603,\"message\":\"Upstream alpha: the upstream ended (tools/call); "
	"a "
	"retry may help\",\"data\":{\"upstream\":\"alpha\",\"reason\":\"died\","
	"\"retryable\":true}}"},
    {{.err = MV_TIMEOUT,
	 .upstream = "alpha",
	 .limit_ms = 300000,
	 .method = METHOD_RESOURCES_READ},
	"{\"code\":-32603,\"message\":\"Upstream alpha: no answer within the time limit "
	"of "
	"300000 ms (resources/read); a retry may help\",\"data\":{\"upstream\":\"alpha\","
	"\"reason\":\"timeout\",\"retryable\":true}}"},
    {{.err = MV_BUSY, .upstream = "alpha", .limit_ms = 5},
	"{\"code\":-32603,\"message\":\"Upstream alpha: the queue of the upstream is "
	"full; "
	"a retry may help\",\"data\":{\"upstream\":\"alpha\",\"reason\":\"busy\","
	"\"retryable\":true}}"},
    {{.err = MV_PARKED, .upstream = "my \"x\"", .detail = "exited\twith 1"},
	"{\"code\":-32603,\"message\":\"Upstream my \\\"x\\\": the upstream failed too "
	"often: exited\\\\u0009with 1; a retry will not "
	"help\",\"data\":{\"upstream\":\"my "
	"\\\"x\\\"\",\"reason\":\"parked\",\"retryable\":false}}"},
    {{.err = MV_SYNTAX, .detail = ""},
	"{\"code\":-32700,\"message\":\"not valid JSON; a retry will not help\","
	"\"data\":{\"reason\":\"syntax\",\"retryable\":false}}"},
    {{.err = MV_STOPPING},
	"{\"code\":-32603,\"message\":\"mcpvisor is stopping; a retry may help\","
	"\"data\":{\"reason\":\"stopping\",\"retryable\":true}}"},
};

START_TEST(failures_say_what_and_whether)
{
	wording_put_failure(&out, &failures[_i].f);
	assert_out(failures[_i].want);
}
END_TEST

/* Each row of the table, with all that can be said about it, and with nothing. */
START_TEST(every_error_has_words)
{
	struct wording_failure f = {.err = (enum mv_err)_i};
	char want[256];

	wording_put_failure(&out, &f);
	(void)snprintf(want, sizeof(want),
	    "\",\"data\":{\"reason\":\"%s\",\"retryable\":%s}}", mv_err_reason(f.err),
	    mv_err_retryable(f.err) ? "true" : "false");
	tree_assert_error(out.data, out.len);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&out), want));
	ck_assert_ptr_nonnull(strstr(out.data, mv_err_text(f.err)));
	buf_reset(&out);
	f.upstream = "a\x01\"\\\xff\xc3\xa4\n";
	f.detail = "\x7f\xed\xa0\x80 100%s %n \"";
	f.limit_ms = UINT32_MAX;
	for (unsigned m = 0; m < METHOD_MAX; m++) {
		f.method = (enum method)m;
		wording_put_failure(&out, &f);
		tree_assert_error(out.data, out.len);
		ck_assert_ptr_null(memchr(out.data, '\n', out.len));
		buf_reset(&out);
	}
}
END_TEST

START_TEST(longest_words_are_still_json)
{
	static char name[6000], detail[100000];
	struct wording_failure f = {.err = MV_DIED, .upstream = name, .detail = detail};

	memset(name, '"', sizeof(name) - 1);
	memset(detail, '\\', sizeof(detail) - 1);
	wording_put_failure(&out, &f);
	tree_assert_object(out.data, out.len);
	buf_reset(&out);
	f.upstream = "alpha";
	wording_put_failure(&out, &f);
	tree_assert_error(out.data, out.len);
}
END_TEST

START_TEST(failures_as_results)
{
	struct wording_failure f = {
	    .err = MV_DIED, .upstream = "a\"b", .method = METHOD_TOOLS_CALL};

	wording_put_failure_result(&out, "", &f);
	tree_assert_object(out.data, out.len);
	ck_assert_str_eq(buf_cstr(&out),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"Upstream a\\\"b: the upstream "
	    "ended "
	    "(tools/call); a retry may help\"}],\"isError\":true}");
	buf_reset(&out);
	wording_put_failure_result(&out, "\"resultType\":\"complete\",", &f);
	tree_assert_object(out.data, out.len);
	ck_assert_ptr_eq(
	    strstr(buf_cstr(&out), "{\"resultType\":\"complete\",\"content\":["),
	    out.data);
}
END_TEST

static const struct {
	int64_t code;
	const char *message, *text; /* message "": absent */
} rescued[] = {
    {-32602, "\"bad \\u0041\\\"\\n\"", "bad \\u0041\\\"\\n (JSON-RPC error -32602)"},
    {-32603, "\"\"", "(JSON-RPC error -32603)"},
    {-32603, "", "(JSON-RPC error -32603)"},
    {1, "{\"a\":1}", "(JSON-RPC error 1)"},
};

START_TEST(errors_as_results)
{
	char want[256];

	wording_put_error_result(
	    &out, "", rescued[_i].code, text_of(rescued[_i].message));
	(void)snprintf(want, sizeof(want),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"isError\":true}",
	    rescued[_i].text);
	tree_assert_object(out.data, out.len);
	ck_assert_str_eq(buf_cstr(&out), want);
}
END_TEST

START_TEST(plain_errors)
{
	wording_put_error(&out, -32601, "Method not found");
	assert_out("{\"code\":-32601,\"message\":\"Method not found\"}");
	wording_put_error(&out, -1, "a \"b\"\n\xff");
	assert_out("{\"code\":-1,\"message\":\"a \\\"b\\\"\\n\xef\xbf\xbd\"}");
}
END_TEST

#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X63   X50 "xxxxxxxxxxxxx"
#define OTHER "Unknown name: params must be a string. Retrying unchanged will fail."

static const struct {
	enum method method;
	const char *name, *message;
} unknowns[] = {
    {METHOD_TOOLS_CALL, "\"alpha__x\"", "Unknown tool: alpha__x"},
    {METHOD_PROMPTS_GET, "\"x\"", "Unknown prompt: x"},
    {METHOD_COMPLETE, "\"x\"", "Unknown reference: x"},
    {METHOD_RESOURCES_READ, "\"x:/\"", "Unknown resource: x:/"},
    {METHOD_TOOLS_CALL, "\"\"", "Unknown tool: "},
    {METHOD_TOOLS_CALL, "\"a\\u0062\\n\\\"\\ud83d\\ude00\"",
	"Unknown tool: ab\\\\u000a\\\"\xf0\x9f\x98\x80"},
    /* A lone surrogate is never written. */
    {METHOD_TOOLS_CALL, "\"\\ud800\"", "Unknown tool: \xef\xbf\xbd"},
    /* Cut at 64 bytes, never inside a character. */
    {METHOD_TOOLS_CALL, "\"" X63 "y\"", "Unknown tool: " X63 "y"},
    {METHOD_TOOLS_CALL, "\"" X63 "yz\"", "Unknown tool: " X63 "y..."},
    {METHOD_TOOLS_CALL, "\"" X63 "\xc3\xa4\"", "Unknown tool: " X63 "..."},
    {METHOD_TOOLS_CALL, "",
	"Unknown tool: params.name must be a string. Retrying unchanged will fail."},
    {METHOD_TOOLS_CALL, "7",
	"Unknown tool: params.name must be a string. Retrying unchanged will fail."},
    {METHOD_PROMPTS_GET, "{}",
	"Unknown prompt: params.name must be a string. Retrying unchanged will fail."},
    {METHOD_RESOURCES_READ, "null",
	"Unknown resource: params.uri must be a string. Retrying unchanged will fail."},
    {METHOD_COMPLETE, "",
	"Unknown reference: params.ref must be an object with type ref/prompt and name, "
	"or "
	"ref/resource and uri. Retrying unchanged will fail."},
    {METHOD_PING, "", OTHER},
};

START_TEST(unknown_names)
{
	char want[600];

	wording_put_unknown(&out, unknowns[_i].method, text_of(unknowns[_i].name));
	(void)snprintf(want, sizeof(want), "{\"code\":-32602,\"message\":\"%s\"}",
	    unknowns[_i].message);
	assert_out(want);
}
END_TEST

START_TEST(resource_not_found)
{
	wording_put_no_resource(&out, -32002, text_of("\"file:\\/\\/\\u0061\""));
	assert_out("{\"code\":-32002,\"message\":\"Resource not found: file://a\","
		   "\"data\":{\"uri\":\"file:\\/\\/\\u0061\"}}");
	wording_put_no_resource(&out, -32602, text_of("\"\""));
	assert_out("{\"code\":-32602,\"message\":\"Resource not found: \","
		   "\"data\":{\"uri\":\"\"}}");
}
END_TEST

/* What is named may be as long as a message: it is neither copied nor sent back. */
START_TEST(long_names_cost_little)
{
	struct buf name;

	buf_init(&name, 1u << 20);
	buf_add_char(&name, '"');
	for (int i = 0; i < 100000; i++)
		buf_add_str(&name, i % 2 ? "\\u0078" : "x");
	buf_add_char(&name, '"');
	ck_assert_int_eq(buf_reserve(&out, 8192), MV_OK);
	mem_fail_at(0, 0);
	wording_put_unknown(&out, METHOD_TOOLS_CALL, (struct jtext){name.data, name.len});
	ck_assert_uint_le(mem_try_count(), 8);
	assert_out("{\"code\":-32602,\"message\":\"Unknown tool: " X63 "x...\"}");
	wording_put_no_resource(&out, -32602, (struct jtext){name.data, name.len});
	assert_out("{\"code\":-32602,\"message\":\"Resource not found: " X63
		   "x...\",\"data\":{\"uri\":\"" X63 "x...\"}}");
	wording_put_revision(&out, "[]", (struct jtext){name.data, name.len});
	assert_out("{\"code\":-32022,\"message\":\"Unsupported protocol version: " X63
		   "x...; send one of data.supported\","
		   "\"data\":{\"supported\":[],\"requested\":\"" X63 "x...\"}}");
	buf_fini(&name);
}
END_TEST

START_TEST(revision_not_supported)
{
	wording_put_revision(&out, "[\"2026-07-28\"]", text_of("\"1\\u0039\""));
	assert_out(
	    "{\"code\":-32022,\"message\":\"Unsupported protocol version: 19; send one "
	    "of data.supported\","
	    "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"1\\u0039\"}}");
}
END_TEST

START_TEST(capabilities_needed)
{
	wording_put_needed(&out, CLIENT_CAP_ELICITATION | CLIENT_CAP_ELICITATION_URL);
	assert_out(
	    "{\"code\":-32021,\"message\":\"The upstream has to ask the client for "
	    "this: declare the client capabilities of data.requiredCapabilities to "
	    "be asked\",\"data\":"
	    "{\"requiredCapabilities\":{\"elicitation\":{\"url\":{}}}}}");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wording");
	TCase *tc = tcase_create("wording");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, failures_say_what_and_whether, 0,
	    (int)(sizeof(failures) / sizeof(failures[0])));
	tcase_add_loop_test(tc, every_error_has_words, 0, MV_ERR_MAX + 1);
	tcase_add_test(tc, longest_words_are_still_json);
	tcase_add_test(tc, failures_as_results);
	tcase_add_loop_test(
	    tc, errors_as_results, 0, (int)(sizeof(rescued) / sizeof(rescued[0])));
	tcase_add_test(tc, plain_errors);
	tcase_add_loop_test(
	    tc, unknown_names, 0, (int)(sizeof(unknowns) / sizeof(unknowns[0])));
	tcase_add_test(tc, resource_not_found);
	tcase_add_test(tc, long_names_cost_little);
	tcase_add_test(tc, revision_not_supported);
	tcase_add_test(tc, capabilities_needed);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
