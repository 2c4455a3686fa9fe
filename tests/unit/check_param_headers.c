/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* x-mcp-header annotations: what makes a tool unusable, and what is no annotation. */
#include "mcpvisor/param_headers.h"

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

/* Properties of a tool's inputSchema. */
static const struct {
	const char *properties;
	bool any;
	const char *part; /* NULL: sound */
} tools[] = {
#define P(type, header) "{\"type\":\"" type "\",\"x-mcp-header\":" header "}"
    {"{}", false, NULL},
    {"{\"a\":{\"type\":\"string\"}}", false, NULL},
    {"{\"a\":" P("string", "\"Region\"") "}", true, NULL},
    {"{\"a\":" P("integer", "\"A\"") ",\"b\":" P("boolean", "\"B\"") "}", true, NULL},
    {"{\"a\":" P("string", "\"!#$%&'*+-.^_`|~09azAZ\"") "}", true, NULL},
    {"{\"a\":{\"x-mcp-header\":\"A\",\"type\":\"string\"}}", true, NULL},
    {"{\"a\":" P("string", "\"\\u0052egion\"") "}", true, NULL},
    {"{\"a\":{\"type\":\"string\",\"x-mcp-h\\u0065ader\":\"\"}}", true, "not empty"},
    {"{\"a\":{\"type\":\"object\",\"properties\":{\"b\":" P("string", "\"B\"") "}}}",
	true, NULL},
    /* Names. */
    {"{\"a\":" P("string", "\"\"") "}", true, "a string that is not empty"},
    {"{\"a\":" P("string", "7") "}", true, "a string that is not empty"},
    {"{\"a\":" P("string", "null") "}", true, "a string that is not empty"},
    {"{\"a\":" P("string", "[\"A\"]") "}", true, "a string that is not empty"},
    {"{\"a\":" P("string", "\"My Region\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"Region:Primary\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"R\xc3\xa9gion\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"Region\\t1\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A\\r\\nB: c\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A\\u0000\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A\\u007f\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"(A)\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A/B\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A,B\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A@B\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"{A}\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A\\\\B\"") "}", true, "a token"},
    {"{\"a\":" P("string", "\"A\\\"\"") "}", true, "a token"},
    /* Uniqueness. */
    {"{\"a\":" P("string", "\"A\"") ",\"b\":" P("string", "\"A\"") "}", true, "the same"},
    {"{\"a\":" P("string", "\"MyField\"") ",\"b\":" P("string", "\"myfield\"") "}", true,
	"the same"},
    {"{\"a\":" P("string", "\"A\"") ",\"b\":{\"properties\":{\"c\":" P(
	 "string", "\"\\u0061\"") "}}}",
	true, "the same"},
    {"{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\",\"x-mcp-header\":\"A\"}}", true,
	"the same"},
    /* Types. */
    {"{\"a\":" P("number", "\"A\"") "}", true, "of type string, integer or boolean"},
    {"{\"a\":" P("object", "\"A\"") "}", true, "of type string, integer or boolean"},
    {"{\"a\":" P("array", "\"A\"") "}", true, "of type string, integer or boolean"},
    {"{\"a\":" P("null", "\"A\"") "}", true, "of type string, integer or boolean"},
    {"{\"a\":{\"x-mcp-header\":\"A\"}}", true, "of type string, integer or boolean"},
    {"{\"a\":{\"type\":[\"string\",\"null\"],\"x-mcp-header\":\"A\"}}", true, "of type"},
    {"{\"a\":{\"enum\":[\"x\"],\"x-mcp-header\":\"A\"}}", true, "of type"},
    /* Places. */
    {"{\"a\":{\"type\":\"array\",\"items\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"prefixItems\":[" P("string", "\"A\"") "]}}", true, "reached"},
    {"{\"a\":{\"contains\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"oneOf\":[{\"type\":\"null\"}," P("string", "\"A\"") "]}}", true,
	"reached"},
    {"{\"a\":{\"anyOf\":[" P("string", "\"A\"") "]}}", true, "reached"},
    {"{\"a\":{\"allOf\":[" P("string", "\"A\"") "]}}", true, "reached"},
    {"{\"a\":{\"not\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"if\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"then\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"else\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"additionalProperties\":" P("string", "\"A\"") "}}", true, "reached"},
    {"{\"a\":{\"patternProperties\":{\"^x\":" P("string", "\"A\"") "}}}", true,
	"reached"},
    {"{\"a\":{\"dependentSchemas\":{\"b\":" P("string", "\"A\"") "}}}", true, "reached"},
    {"{\"a\":{\"$defs\":{\"b\":" P("string", "\"A\"") "}}}", true, "reached"},
    {"{\"a\":{\"items\":{\"properties\":{\"b\":" P("string", "\"A\"") "}}}}", true,
	"reached"},
    {"{\"a\":{\"allOf\":[{\"properties\":{\"b\":" P("string", "\"A\"") "}}]}}", true,
	"reached"},
    {"{\"a\":{\"x-vendor\":{\"deep\":" P("string", "\"A\"") "}}}", true, "reached"},
    /* It is a name, or data, and no annotation. */
    {"{\"x-mcp-header\":{\"type\":\"string\"}}", false, NULL},
    {"{\"x-mcp-header\":" P("string", "\"A\"") "}", true, NULL},
    {"{\"items\":" P("string", "\"A\"") "}", true, NULL},
    {"{\"default\":" P("string", "\"A\"") "}", true, NULL},
    {"{\"a\":{\"default\":{\"x-mcp-header\":\"\"}}}", false, NULL},
    {"{\"a\":{\"const\":{\"x-mcp-header\":\"\"}}}", false, NULL},
    {"{\"a\":{\"enum\":[{\"x-mcp-header\":\"\"}]}}", false, NULL},
    {"{\"a\":{\"examples\":[{\"x-mcp-header\":\"\"}]}}", false, NULL},
    {"{\"a\":{\"$defs\":{\"x-mcp-header\":{\"type\":\"string\"}}}}", false, NULL},
    {"{\"a\":{\"description\":\"see x-mcp-header\"}}", false, NULL},
    {"{\"a\":{\"required\":[\"x-mcp-header\"]}}", false, NULL},
    {"{\"a\":true,\"b\":" P("string", "\"B\"") "}", true, NULL},
#undef P
};

static void
assert_tool(const char *definition, bool any, const char *part)
{
	bool got = !any;
	const char *wrong = param_headers_check(text_of(definition), &got);

	if (part == NULL)
		ck_assert_msg(wrong == NULL, "%s", wrong);
	else
		ck_assert_msg(wrong != NULL && strstr(wrong, part) != NULL,
		    "got \"%s\", want \"%s\"", wrong != NULL ? wrong : "", part);
	ck_assert_int_eq(got, any);
	ck_assert_ptr_eq(param_headers_check(text_of(definition), NULL), wrong);
}

START_TEST(checks_a_tool)
{
	char definition[1024];

	(void)snprintf(definition, sizeof(definition),
	    "{\"name\":\"x-mcp-header\",\"inputSchema\":{\"type\":\"object\","
	    "\"properties\":%s},\"outputSchema\":{\"x-mcp-header\":\"\"}}",
	    tools[_i].properties);
	assert_tool(definition, tools[_i].any, tools[_i].part);
}
END_TEST

START_TEST(checks_the_root)
{
	assert_tool("{}", false, NULL);
	assert_tool("{\"inputSchema\":true}", false, NULL);
	assert_tool("{\"inputSchema\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}",
	    true, "reached");
	assert_tool("{\"inputSchema\":{\"$defs\":{\"a\":{\"type\":\"string\","
		    "\"x-mcp-header\":\"A\"}}}}",
	    true, "reached");
	assert_tool("{\"inputSchema\":[{\"x-mcp-header\":\"A\"}]}", true, "reached");
	ck_assert_ptr_null(param_headers_check(text_of(NULL), NULL));
}
END_TEST

/* The caller ends it with buf_fini. levels: chained properties around the annotation. */
static struct buf
nested_tool(int levels)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_add_str(&b, "{\"inputSchema\":{");
	for (int i = 0; i < levels; i++)
		buf_add_str(&b, "\"properties\":{\"a\":{");
	buf_add_str(&b, "\"type\":\"string\",\"x-mcp-header\":\"A\"");
	for (int i = 0; i < levels; i++)
		buf_add_str(&b, "}}");
	buf_add_str(&b, "}}");
	return b;
}

START_TEST(bounds_the_depth)
{
	struct buf deep = nested_tool(32), deeper = nested_tool(33), b;
	int i;

	assert_tool(buf_cstr(&deep), true, NULL);
	assert_tool(buf_cstr(&deeper), true, "nested too deep");
	buf_fini(&deep);
	buf_fini(&deeper);

	/* Deep schemas without annotations are nobody's business. */
	buf_init(&b, 1u << 20);
	buf_add_str(&b, "{\"inputSchema\":{\"properties\":{\"a\":"
			"{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":");
	for (i = 0; i < 400; i++)
		buf_add_str(&b, "{\"items\":");
	buf_add_str(&b, "true");
	for (i = 0; i < 400; i++)
		buf_add_char(&b, '}');
	buf_add_str(&b, "}}}");
	assert_tool(buf_cstr(&b), true, NULL);
	buf_fini(&b);
}
END_TEST

/* The caller ends it with buf_fini. */
static struct buf
wide_tool(int n, const char *filler)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_add_str(&b, "{\"inputSchema\":{\"properties\":{");
	for (int i = 0; i < n; i++)
		buf_addf(&b, "%s\"p%d\":{\"type\":\"string\",\"x-mcp-header\":\"H%s%d\"}",
		    i > 0 ? "," : "", i, filler, i);
	buf_add_str(&b, "}}}");
	return b;
}

START_TEST(bounds_the_number)
{
	struct buf most = wide_tool(PARAM_HEADERS_MAX, "");
	struct buf more = wide_tool(PARAM_HEADERS_MAX + 1, ""), wide;
	char filler[1025];

	assert_tool(buf_cstr(&most), true, NULL);
	assert_tool(buf_cstr(&more), true, "more than 100 parameters");
	buf_fini(&most);
	buf_fini(&more);
	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	wide = wide_tool(16, filler);
	assert_tool(buf_cstr(&wide), true, "too long");
	buf_fini(&wide);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("param_headers");
	TCase *tc = tcase_create("param_headers");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, checks_a_tool, 0, ROWS(tools));
	tcase_add_test(tc, checks_the_root);
	tcase_add_test(tc, bounds_the_depth);
	tcase_add_test(tc, bounds_the_number);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
