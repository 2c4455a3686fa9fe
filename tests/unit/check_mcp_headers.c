/* layer: front */
/* SPDX-License-Identifier: MIT */
/* Headers that mirror the body: the tables of the specification and what is near them. */
#include "mcpvisor/mcp_headers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jtext
text_of(const char *s)
{
	struct jtext t = {s, s != NULL ? strlen(s) : 0};

	return t;
}

/* Lines "Name: value"; the values as the parser leaves them, without outer spaces. */
static struct http_head
head_of(const char *lines)
{
	struct http_head h = {.method = HTTP_M_POST};

	while (*lines != '\0') {
		size_t n = strcspn(lines, "\n"), colon = strcspn(lines, ":");
		struct http_header *one = &h.headers[h.n_headers++];

		ck_assert_uint_lt(colon, n);
		one->name = (struct http_text){lines, colon};
		one->value = (struct http_text){lines + colon + 1, n - colon - 1};
		while (one->value.n > 0 && one->value.p[0] == ' ') {
			one->value.p++;
			one->value.n--;
		}
		while (one->value.n > 0 && one->value.p[one->value.n - 1] == ' ')
			one->value.n--;
		lines += n + (lines[n] == '\n');
	}
	return h;
}

/* part: what the message has to hold; NULL: the headers agree. */
static void
assert_check(const char *lines, const struct mcp_headers_body *b, const char *part)
{
	struct http_head h = head_of(lines);
	struct buf out;
	const char *wrong;

	buf_init(&out, 4096);
	wrong = mcp_headers_check(&h, b, &out);
	if (part == NULL)
		ck_assert_msg(wrong == NULL, "%s", wrong);
	else
		ck_assert_msg(wrong != NULL && strstr(wrong, part) != NULL &&
				  strncmp(wrong, "Header mismatch: ", 17) == 0,
		    "got \"%s\", want \"%s\"", wrong != NULL ? wrong : "", part);
	buf_fini(&out);
}

#define V    "MCP-Protocol-Version: 2026-07-28\n"
#define M    "Mcp-Method: tools/call\n"
#define N    "Mcp-Name: do\n"
#define HEAD V M N

static const struct {
	const char *lines;
	const char *part;
} standard[] = {
    {V M N, NULL},
    {"mcp-protocol-version: 2026-07-28\nMCP-METHOD: tools/call\nmcp-name: do\n", NULL},
    {N M V "Accept: a\nAccept: b\n", NULL},
    /* Missing, in the order in which they are named. */
    {"", "MCP-Protocol-Version is missing"},
    {M N, "MCP-Protocol-Version is missing"},
    {V N, "Mcp-Method is missing"},
    {V M, "Mcp-Name is missing"},
    {V M "Mcp-Name:\n", "Mcp-Name does not match the body, which has \"do\""},
    /* There twice, even with the same value. */
    {V V M N, "MCP-Protocol-Version is there more than once"},
    {V M M N, "Mcp-Method is there more than once"},
    {V M N "mcp-name: do\n", "Mcp-Name is there more than once"},
    /* Another value. */
    {"MCP-Protocol-Version: 2025-11-25\n" M N,
	"MCP-Protocol-Version does not match the body, which has \"2026-07-28\""},
    {"MCP-Protocol-Version: 2026-07-28, 2026-07-28\n" M N, "MCP-Protocol-Version"},
    {V "Mcp-Method: Tools/call\n" N,
	"Mcp-Method does not match the body, which has \"tools/call\""},
    {V "Mcp-Method: tools/list\n" N, "Mcp-Method"},
    {V M "Mcp-Name: Do\n", "Mcp-Name does not match the body, which has \"do\""},
    {V M "Mcp-Name: do,do\n", "Mcp-Name"},
    /* Only names and parameters have a Base64 form. */
    {V M "Mcp-Name: =?base64?ZG8=?=\n", NULL},
    {V "Mcp-Method: =?base64?dG9vbHMvY2FsbA==?=\n" N, "Mcp-Method"},
    {"MCP-Protocol-Version: =?base64?MjAyNi0wNy0yOA==?=\n" M N, "MCP-Protocol-Version"},
    {V M "Mcp-Name: =?base64?ZG8?=\n", "Mcp-Name is not valid padded Base64"},
    {V M "Mcp-Name: =?base64?Z!8=?=\n", "Mcp-Name is not valid padded Base64"},
    {V M "Mcp-Name: =?BASE64?ZG8=?=\n", "does not match"},
    {V M "Mcp-Name: =?base64?eG8=?=\n", "does not match"},
    /* Bytes that a header cannot carry. */
    {V M "Mcp-Name: d\xc3\xb6\n", "Mcp-Name holds a character other than"},
    {V "Mcp-Method: tools\x01/call\n" N, "Mcp-Method holds a character other than"},
    {V M "Mcp-Name: do\x7f\n", "Mcp-Name holds a character other than"},
};

START_TEST(checks_the_standard_headers)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"tools/call\""),
	    .name = text_of("\"do\""),
	};

	assert_check(standard[_i].lines, &b, standard[_i].part);
}
END_TEST

START_TEST(asks_for_no_name_where_there_is_none)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"tools/list\""),
	};

	assert_check(V "Mcp-Method: tools/list\n", &b, NULL);
	assert_check(V "Mcp-Method: tools/list\n" N, &b, NULL);
}
END_TEST

/* Body values as JSON, and the header value that carries each. */
static const struct {
	const char *value, *header;
	const char *part;
} values[] = {
    /* The specification's examples of encoding. */
    {"\"us-west1\"", "us-west1", NULL},
    {"\"Hello, \xe4\xb8\x96\xe7\x95\x8c\"", "=?base64?SGVsbG8sIOS4lueVjA==?=", NULL},
    {"\"\\u0048ello, \\u4e16\\u754c\"", "=?base64?SGVsbG8sIOS4lueVjA==?=", NULL},
    {"\" padded \"", "=?base64?IHBhZGRlZCA=?=", NULL},
    {"\"line1\\nline2\"", "=?base64?bGluZTEKbGluZTI=?=", NULL},
    {"\"=?base64?literal?=\"", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", NULL},
    {"\"us-west1\"", "=?base64?dXMtd2VzdDE=?=", NULL},
    {"\"\"", "", NULL},
    {"\"\"", "=?base64?\?=", NULL},
    {"\"a\\tb c\"", "a\tb c", NULL},
    {"\"\\\"q\\\\\"", "\"q\\", NULL},
    {"\"file:///a%20b?c=d\"", "file:///a%20b?c=d", NULL},
    /* Without start or end it is what it says. */
    {"\"SGVsbG8=\"", "SGVsbG8=", NULL},
    {"\"=?base64?SGVsbG8=\"", "=?base64?SGVsbG8=", NULL},
    {"\"SGVsbG8=?=\"", "SGVsbG8=?=", NULL},
    {"\"=?base64?=\"", "=?base64?=", NULL},
    {"\"=?Base64?SGVsbG8=?=\"", "=?Base64?SGVsbG8=?=", NULL},
    {"\"Hello\"", "=?base64?SGVsbG8=", "does not match"},
    {"\"Hello\"", "SGVsbG8=", "does not match"},
    /* What is no value of ours. */
    {"\"=?base64?literal?=\"", "=?base64?literal?=", "is not valid padded Base64"},
    {"\"Hello\"", "=?base64?SGVsbG8?=", "is not valid padded Base64"},
    {"\"Hello\"", "=?base64?SGVs!!!bG8=?=", "is not valid padded Base64"},
    {"\"Hello\"", "=?base64?SGVsbG9=?=", "is not valid padded Base64"},
    {"\"?\"", "=?base64?Pw==\t?=", "is not valid padded Base64"},
    {"\"\xc3\xa4\"", "\xc3\xa4", "holds a character other than"},
    {"\"\xc3\xa4\"", "\xe4", "holds a character other than"},
    {"\"\xef\xbf\xbd\"", "=?base64?/w==?=", "does not match"},
    {"\" padded \"", "padded", "does not match"},
    {"\"A\"", "a", "does not match"},
    {"\"42\"", "42.0", "does not match"},
    /* Integers, as numbers. */
    {"42", "42", NULL},
    {"-7", "-7", NULL},
    {"0", "0", NULL},
    {"42", "42.0", NULL},
    {"42.0", "42", NULL},
    {"42.000", "4.2e1", NULL},
    {"4.2E+1", "42", NULL},
    {"420e-1", "42", NULL},
    {"1e3", "1000", NULL},
    {"-0", "0", NULL},
    {"0", "-0.0", NULL},
    {"0e5", "0", NULL},
    {"42", "=?base64?NDI=?=", NULL},
    {"9007199254740991", "9007199254740991", NULL},
    {"-9007199254740991", "-9007199254740991", NULL},
    {"9007199254740991.0", "9.007199254740991e15", NULL},
    {"9007199254740991", "9007199254740990", "does not match"},
    {"42", "-42", "does not match"},
    {"42", "43", "does not match"},
    {"42", "42.5", "does not match"},
    {"42", "420", "does not match"},
    {"42", "4.2", "does not match"},
    {"42", "", "does not match"},
    {"42", "+42", "does not match"},
    {"42", "042", "does not match"},
    {"42", "42.", "does not match"},
    {"42", ".42e2", "does not match"},
    {"42", "0x2a", "does not match"},
    {"42", "42abc", "does not match"},
    {"42", "42e", "does not match"},
    {"42", "4 2", "does not match"},
    {"42", "42, 42", "does not match"},
    {"42", "42e0000000000", "does not match"},
    {"42", "-", "does not match"},
    /* Out of what every reader can hold. */
    {"9007199254740992", "9007199254740992", "can mirror integers from"},
    {"-9007199254740992", "-9007199254740992", "can mirror integers from"},
    {"9007199254740993", "9007199254740992", "can mirror integers from"},
    {"1e400", "1e400", "can mirror integers from"},
    {"1e9999999999", "1", "can mirror integers from"},
    {"10000000000000000", "10000000000000000", "can mirror integers from"},
    /* No integer, which is for the tool to say, but it is mirrored. */
    {"4.5", "4.5", NULL},
    {"4.50", "4.5", NULL},
    {"4.5", "4.4", "does not match"},
    /* Booleans. */
    {"true", "true", NULL},
    {"false", "false", NULL},
    {"true", "=?base64?dHJ1ZQ==?=", NULL},
    {"true", "True", "does not match"},
    {"true", "1", "does not match"},
    {"false", "true", "does not match"},
    /* Neither. */
    {"{\"a\":1}", "{\"a\":1}", "can mirror a string, an integer or a boolean only"},
    {"[\"us-west1\"]", "us-west1", "can mirror a string, an integer or a boolean only"},
};

static const char region_tool[] =
    "{\"name\":\"do\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
    "\"query\":{\"type\":\"string\"}}}}";

static void
assert_params(const char *tool, const char *params, const char *lines, const char *part)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"tools/call\""),
	    .name = text_of("\"do\""),
	    .definition = text_of(tool),
	    .params = text_of(params),
	};
	char all[2048];

	(void)snprintf(all, sizeof(all), HEAD "%s", lines);
	assert_check(all, &b, part);
}

static void
assert_call(const char *tool, const char *arguments, const char *lines, const char *part)
{
	char params[2048];

	(void)snprintf(params, sizeof(params), "{\"name\":\"do\"%s%s}",
	    arguments != NULL ? ",\"arguments\":" : "",
	    arguments != NULL ? arguments : "");
	assert_params(tool, params, lines, part);
}

START_TEST(compares_values)
{
	const char *part = values[_i].part;
	char arguments[256], lines[256];

	(void)snprintf(arguments, sizeof(arguments), "{\"query\":1,\"region\":%s}",
	    values[_i].value);
	(void)snprintf(lines, sizeof(lines), "Mcp-Param-Region: %s\n", values[_i].header);
	assert_call(region_tool, arguments, lines, part);
}
END_TEST

START_TEST(compares_names_alike)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"resources/read\""),
	    .name = text_of(values[_i].value),
	};
	char lines[256];

	if (jtext_type(b.name) != '"')
		return;
	(void)snprintf(lines, sizeof(lines),
	    V "Mcp-Method: resources/read\nMcp-Name: %s\n", values[_i].header);
	assert_check(lines, &b, values[_i].part);
}
END_TEST

#define REGION "Mcp-Param-Region: eu\n"

static const struct {
	const char *arguments, *lines;
	const char *part;
} presence[] = {
    {"{\"region\":\"eu\"}", REGION, NULL},
    {"{\"region\":\"eu\"}", "MCP-PARAM-REGION: eu\n", NULL},
    {"{\"region\":\"eu\"}", "", "Mcp-Param-Region is missing"},
    {"{\"region\":\"eu\"}", REGION REGION, "Mcp-Param-Region is there more than once"},
    {"{\"region\":\"eu\"}", REGION "mcp-param-region: us\n", "more than once"},
    {"{\"region\":null}", "", NULL},
    {"{\"query\":\"x\"}", "", NULL},
    {"{}", "", NULL},
    {NULL, "", NULL},
    {"{\"region\":null}", REGION, "the argument that it mirrors is not"},
    {"{\"region\":null}", "Mcp-Param-Region: null\n",
	"the argument that it mirrors is not"},
    {"{}", REGION, "the argument that it mirrors is not"},
    {"{}", "Mcp-Param-Region:\n", "the argument that it mirrors is not"},
    {NULL, REGION, "the argument that it mirrors is not"},
    {"[\"eu\"]", "", NULL},
    /* Headers that no parameter asks for are none of ours. */
    {"{\"region\":\"eu\"}", REGION "Mcp-Param-Other: x\nMcp-Param-Other: y\n", NULL},
    {"{\"region\":\"eu\"}", REGION "Mcp-Param-: x\n", NULL},
    {"{\"query\":\"x\"}", "Mcp-Param-Query: y\n", NULL},
    /* Another reader could take the other one. */
    {"{\"region\":\"eu\",\"region\":\"us\"}", REGION, "an argument that is there more"},
    {"{\"region\":\"eu\",\"\\u0072egion\":\"eu\"}", REGION, "an argument that is there"},
    {"{\"\\u0072egion\":\"eu\"}", REGION, NULL},
    /* Without its header nobody could go by it, so it does not pass. */
    {"{\"region\":{\"eu\":1}}", "", "can mirror a string"},
    {"{\"region\":9007199254740993}", "", "can mirror integers from"},
};

START_TEST(checks_what_is_there)
{
	assert_call(
	    region_tool, presence[_i].arguments, presence[_i].lines, presence[_i].part);
}
END_TEST

/* Another reader could go by the others. */
START_TEST(refuses_to_mirror_one_of_two_arguments)
{
	static const char part[] = "an argument that is there more than once";
	static const char *const params[] = {
	    "{\"arguments\":{\"region\":\"eu\"},\"arguments\":{\"region\":\"us\"}}",
	    "{\"arguments\":{\"region\":\"eu\"},\"argument\\u0073\":{}}",
	    "{\"arguments\":{},\"name\":\"do\",\"arguments\":{\"region\":\"eu\"}}",
	};

	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
		assert_params(region_tool, params[i], REGION, part);
	assert_params("{\"inputSchema\":{}}", params[0], "", NULL);
}
END_TEST

START_TEST(follows_nested_properties)
{
	static const char tool[] =
	    "{\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":"
	    "{"
	    "\"b.c\":{\"properties\":{\"properties\":{\"type\":\"integer\","
	    "\"x-mcp-header\":\"Deep\"}}},"
	    "\"d\":{\"x-mcp-header\":\"D\",\"type\":\"boolean\"}}}}}}";

	assert_call(tool, "{\"a\":{\"b.c\":{\"properties\":5},\"d\":true}}",
	    "Mcp-Param-Deep: 5\nMcp-Param-D: true\n", NULL);
	assert_call(tool, "{\"a\":{\"b.c\":{\"properties\":5}}}", "Mcp-Param-Deep: 6\n",
	    "Mcp-Param-Deep does not match the argument that it mirrors");
	assert_call(tool, "{\"a\":{\"d\":false}}", "Mcp-Param-Deep: 6\n",
	    "the argument that it mirrors is not");
	assert_call(tool, "{\"properties\":5,\"b.c\":1,\"d\":2,\"a\":7}", "", NULL);
	assert_call(tool, "{\"a\":{\"d\":true},\"a\":{}}", "", "more than once");
}
END_TEST

/* A header may carry what nobody is to see, and so may the argument that it mirrors. */
START_TEST(shows_no_argument)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"tools/call\""),
	    .name = text_of("\"do\""),
	    .definition = text_of(region_tool),
	    .params = text_of("{\"arguments\":{\"region\":\"body-secret\"}}"),
	};
	struct http_head h = head_of(V M N "Mcp-Param-Region: head-secret\n");
	const char *text;
	struct buf out;

	buf_init(&out, 4096);
	text = mcp_headers_check(&h, &b, &out);
	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_nonnull(strstr(text, "Mcp-Param-Region does not match"));
	ck_assert_ptr_null(strstr(text, "secret"));
	buf_fini(&out);
}
END_TEST

START_TEST(says_something_even_without_room)
{
	struct mcp_headers_body b = {
	    .version = text_of("\"2026-07-28\""),
	    .method = text_of("\"ping\""),
	};
	struct http_head h = head_of("");
	struct buf out;

	buf_init(&out, 10);
	ck_assert_str_eq(mcp_headers_check(&h, &b, &out),
	    "Header mismatch. Retrying unchanged will fail.");
	buf_fini(&out);
}
END_TEST

/* Whoever lists tools leaves such a one out; here nothing is to be mirrored. */
START_TEST(leaves_an_unusable_tool_alone)
{
	assert_call("{\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"number\","
		    "\"x-mcp-header\":\"A\"}}}}",
	    "{\"a\":1}", "", NULL);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("mcp_headers");
	TCase *tc = tcase_create("mcp_headers");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, checks_the_standard_headers, 0, ROWS(standard));
	tcase_add_test(tc, asks_for_no_name_where_there_is_none);
	tcase_add_loop_test(tc, compares_values, 0, ROWS(values));
	tcase_add_loop_test(tc, compares_names_alike, 0, ROWS(values));
	tcase_add_loop_test(tc, checks_what_is_there, 0, ROWS(presence));
	tcase_add_test(tc, refuses_to_mirror_one_of_two_arguments);
	tcase_add_test(tc, follows_nested_properties);
	tcase_add_test(tc, shows_no_argument);
	tcase_add_test(tc, says_something_even_without_room);
	tcase_add_test(tc, leaves_an_unusable_tool_alone);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
