/* layer: result */
/* SPDX-License-Identifier: MIT */
/* Arguments of tools as JSON Schema: what is shown, what is read, and what is not. */
#include "mcpvisor/argspec.h"

#include "mcpvisor/caps.h"

#include <stdlib.h>
#include <string.h>

#include "argspec_rig.h"

#define BIG "12345678901234567890"

static const struct {
	const char *schema, *shown; /* NULL: the same */
} schemas[] = {
    {"{}", NULL},
    {" {\n} ", "{}"},
    {"{\"type\":\"string\"}", NULL},
    {"{\"type\":\"string\",\"description\":\"a \\\"b\\\"\\n\",\"enum\":[\"a\",\"b\"],"
     "\"minLength\":1,\"maxLength\":80,\"pattern\":\"^[a-z]\",\"format\":\"uri\","
     "\"default\":\"a\"}",
	NULL},
    {"{\"type\":\"integer\",\"minimum\":-2147483648,\"maximum\":2147483647}", NULL},
    {"{\"type\":\"number\",\"minimum\":0.50,\"maximum\":1e400,\"default\":" BIG "}",
	NULL},
    {"{\"type\":\"boolean\",\"default\":true}", NULL},
    {"{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":20}", NULL},
    {"{\"type\":\"array\"}", NULL},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{}},"
     "\"required\":[\"a\"],\"additionalProperties\":false,\"minProperties\":1,"
     "\"maxProperties\":2}",
	NULL},
    {"{\"type\":\"object\"}", NULL},
    {"{\"type\":\"object\",\"additionalProperties\":true,\"required\":[]}",
	"{\"type\":\"object\"}"},
    {"{\"type\":\"object\",\"additionalProperties\":false}",
	"{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"},
    /* An enum of strings says what the type is. */
    {"{\"enum\":[\"x\"]}", "{\"type\":\"string\",\"enum\":[\"x\"]}"},
    /* What people look at. */
    {"{\"$schema\":\"s\",\"$comment\":1,\"examples\":[{}],\"title\":\"T\"}",
	"{\"description\":\"T\"}"},
    {"{\"title\":\"T\",\"description\":\"D\"}", "{\"description\":\"D\"}"},
    {"{\"default\" : { \"a b\\\"  \" : [ 1 ,\n2 ] } }",
	"{\"default\":{\"a b\\\"  \":[1,2]}}"},
    {"{\"type\":\"string\",\"default\":null}", NULL},
    {"{\"type\":\"object\",\"properties\":{\"\":{},\"\\u0061\":{}}}",
	"{\"type\":\"object\",\"properties\":{\"\":{},\"a\":{}}}"},
};

START_TEST(schemas_are_shown_as_they_are_read)
{
	const char *want = schemas[_i].shown ? schemas[_i].shown : schemas[_i].schema;
	struct argspec *s = spec_of(schemas[_i].schema);

	argspec_put_schema(s, &out);
	ck_assert_str_eq(buf_cstr(&out), want);
	argspec_free(s);
}
END_TEST

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *schema, *says;
} refused[] = {
    {"", "not valid JSON"},
    {"{", "not valid JSON"},
    {"true", "#: a schema must be an object"},
    {"{\"type\":[\"string\",\"null\"]}",
	"#: type must be string, integer, number, boolean, array or object"},
    {"{\"type\":\"any\"}",
	"#: type must be string, integer, number, boolean, array or object"},
    {"{\"oneOf\":[]}", "#: \"oneOf\" is no keyword that is understood"},
    {"{\"" A64 "b\":1}", "#: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			 "aaaaaa is no keyword that is understood"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":"
     "{\"const\":1}}}}",
	"#/properties/a/items: \"const\" is no keyword that is understood"},
    {"{\"type\":\"object\",\"properties\":{\"a\":true}}",
	"#/properties/a: a schema must be an object"},
    {"{\"type\":\"object\",\"properties\":[]}", "#: properties must be an object"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{},\"\\u0061\":{}}}",
	"#: properties has one name twice"},
    {"{\"type\":\"object\",\"properties\":{\"\\u0000\":{}}}",
	"#: a name in properties has a NUL"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"b\"]}",
	"#: required: \"b\" is none of properties"},
    {"{\"type\":\"object\",\"required\":[1]}", "#: required: 1 is none of properties"},
    {"{\"type\":\"object\",\"required\":[\"a\",\"a\"],\"properties\":{\"a\":{}}}",
	"#: required: \"a\" is there twice"},
    {"{\"type\":\"object\",\"required\":true}", "#: required must be an array"},
    {"{\"type\":\"object\",\"additionalProperties\":{}}",
	"#: additionalProperties must be true or false"},
    {"{\"type\":\"object\",\"minProperties\":2,\"maxProperties\":1}",
	"#: minProperties is over maxProperties"},
    {"{\"type\":\"string\",\"type\":\"string\"}", "#: type is there twice"},
    {"{\"minimum\":1}", "#: minimum does not go with type any"},
    {"{\"type\":\"integer\",\"maxLength\":1}",
	"#: maxLength does not go with type integer"},
    {"{\"type\":\"integer\",\"enum\":[1]}", "#: enum does not go with type integer"},
    {"{\"enum\":[1]}", "#: enum may hold strings alone, no empty one"},
    {"{\"enum\":[\"\"]}", "#: enum may hold strings alone, no empty one"},
    {"{\"enum\":[]}", "#: enum is empty"},
    {"{\"enum\":\"a\"}", "#: enum must be an array"},
    {"{\"type\":\"integer\",\"minimum\":\"1\"}", "#: minimum must be a number"},
    {"{\"type\":\"integer\",\"minimum\":2,\"maximum\":1.9e0}",
	"#: minimum is over maximum"},
    {"{\"type\":\"string\",\"minLength\":-1}",
	"#: minLength must be an integer from 0 to 4294967295"},
    {"{\"type\":\"string\",\"maxLength\":4294967296}",
	"#: maxLength must be an integer from 0 to 4294967295"},
    {"{\"type\":\"string\",\"maxLength\":0}", "#: maxLength must be at least 1"},
    {"{\"type\":\"array\",\"maxItems\":0}", "#: maxItems must be at least 1"},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":1}",
	"#: minLength is over maxLength"},
    {"{\"type\":\"string\",\"pattern\":\"(\"}",
	"#: pattern is no regular expression: missing closing parenthesis, at byte 1"},
    {"{\"type\":\"string\",\"pattern\":1}", "#: pattern must be a string without NUL"},
    {"{\"type\":\"string\",\"format\":\"a\\u0000\"}",
	"#: format must be a string without NUL"},
    {"{\"description\":1}", "#: description must be a string without NUL"},
    {"{\"title\":1}", "#: title must be a string"},
    {"{\"type\":\"integer\",\"maximum\":5,\"default\":6}",
	"#: default is none of the values that it takes"},
};

START_TEST(other_schemas_are_refused)
{
	struct mv_errtext t = {.line = 0};

	ck_assert_ptr_null(argspec_read(text_of(refused[_i].schema), &t));
	ck_assert_str_eq(t.message, refused[_i].says);
	ck_assert_ptr_null(argspec_read(text_of(refused[_i].schema), NULL));
}
END_TEST

static void
put_nested(struct buf *b, int depth)
{
	for (int i = 1; i < depth; i++)
		buf_add_str(b, "{\"type\":\"array\",\"items\":");
	buf_add_str(b, "{}");
	for (int i = 1; i < depth; i++)
		buf_add_char(b, '}');
}

START_TEST(depth_of_a_schema_is_bounded)
{
	struct mv_errtext t = {.line = 0};
	struct argspec *s;

	put_nested(&out, ARGSPEC_DEPTH_MAX);
	s = spec_of(buf_cstr(&out));
	argspec_free(s);
	buf_reset(&out);
	put_nested(&out, ARGSPEC_DEPTH_MAX + 1);
	ck_assert_ptr_null(argspec_read(text_of(buf_cstr(&out)), &t));
	/* Of its place as much as fits. */
	ck_assert_ptr_nonnull(strstr(t.message, "items/items: deeper than 32"));
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("argspec_schema");

	tcase_add_loop_test(tc, schemas_are_shown_as_they_are_read, 0, N(schemas));
	tcase_add_loop_test(tc, other_schemas_are_refused, 0, N(refused));
	tcase_add_test(tc, depth_of_a_schema_is_bounded);
	return run_suite(suite_create("argspec_schema"), tc);
}
