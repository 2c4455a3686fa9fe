/* layer: result */
/* SPDX-License-Identifier: MIT */
/* Shapes without values, samples without secrets. */
#include "mcpvisor/sample.h"

#include "mcpvisor/caps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct json_msg json;
static struct buf msg, out;

static void
setup(void)
{
	buf_init(&msg, CAP_MESSAGE_BYTES);
	buf_init(&out, CAP_MESSAGE_BYTES);
}

static void
teardown(void)
{
	buf_fini(&msg);
	buf_fini(&out);
}

static void
result(const char *p, size_t n)
{
	buf_reset(&msg);
	buf_add_str(&msg, "{\"id\":1,\"result\":");
	buf_add(&msg, p, n);
	buf_add_char(&msg, '}');
	ck_assert_int_eq(json_scan(&json, msg.data, msg.len, false), MV_OK);
}

static void
result_of_text(const char *text, size_t n)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(&b, text, n);
	buf_add_str(&b, "}]}");
	result(b.data, b.len);
	buf_fini(&b);
}

/* A text; where it is the first, a result. */
static const struct {
	const char *result, *text, *want;
} shapes[] = {
    {NULL, "{\"id\":\"x\",\"items\":[{\"name\":\"a\"},{\"name\":\"b\"},{}]}",
	"{id: string, items: [3 of {name: string}]}"},
    {NULL, "{}", "{}"},
    {NULL, "[]", "[]"},
    {NULL, "[1,2]", "[2 of number]"},
    {NULL, "[1,null,\"a\",true,false]", "[5 of number or null or string or boolean]"},
    {NULL, "[[1],[2,3]]", "[2 of [1 of number]]"},
    {NULL, "[[[[1]]]]", "[1 of [1 of [1 of [1]]]]"},
    {NULL, "{\"a\":{\"b\":{\"c\":{\"d\":1}}}}", "{a: {b: {c: object}}}"},
    {NULL, "{\"a\":{\"b\":{\"c\":[1]}}}", "{a: {b: {c: [1]}}}"},
    {NULL, "{\"a\":-1.5e3,\"b\":null,\"c\":true,\"d\":\"\"}",
	"{a: number, b: null, c: boolean, d: string}"},
    {NULL, "7", "number"},
    {NULL, "```json\n{\"a\":1}\n```", "{a: number}"},
    {NULL, "\"{\\\"a\\\":1}\"", "{a: number}"},
    /* Keys that are data: all of an object are one. */
    {NULL, "{\"ann@example.com\":{\"n\":1},\"bob@example.com\":{\"m\":1}}",
	"{*: {n: number}}"},
    {NULL, "{\"2026-01-02\":1,\"a b\":2,\"\":3,\"n\":4}", "{*: number, n: number}"},
    {NULL, "{\"say: \\\"ignore\\\"\":1}", "{*: number}"},
    {NULL, "{\"$ref\":1,\"_id\":1,\"x-y.z\":1}",
	"{$ref: number, _id: number, "
	"x-y.z: number}"},
    {NULL, "hello", "text"},
    {"{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
     "\"structuredContent\":{\"a\":1}}",
	NULL, "{a: number}"},
    {"{\"structuredContent\":{\"result\":\"{\\\"a\\\":1}\"}}", NULL, "{a: number}"},
    {"{\"structuredContent\":{\"result\":\"hello\"}}", NULL, "{result: string}"},
    {"{\"structuredContent\":{\"result\":[1]}}", NULL, "{result: [1 of number]}"},
    {"{\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"x\"},"
     "{\"type\":\"text\",\"text\":\"y\"},{\"type\":\"<b>\"},7]}",
	NULL, "2 of text, image, 2 of other"},
    {"{\"content\":[{\"type\":\"resource_link\",\"uri\":\"x:y\"}]}", NULL,
	"resource_link"},
    {"{\"content\":[]}", NULL, NULL},
    {"{}", NULL, NULL},
};

START_TEST(shapes_are_told)
{
	bool is;

	if (shapes[_i].result != NULL)
		result(shapes[_i].result, strlen(shapes[_i].result));
	else
		result_of_text(shapes[_i].text, strlen(shapes[_i].text));
	is = sample_put_shape(&out, msg.data, &json);
	ck_assert_int_eq(is, shapes[_i].want != NULL);
	ck_assert_str_eq(buf_cstr(&out), is ? shapes[_i].want : "");
}
END_TEST

/* n members like "memberNNNN": value. */
static void
result_of_members(unsigned n, const char *value)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_char(&b, '{');
	for (unsigned i = 0; i < n; i++)
		buf_addf(&b, "%s\"member%04u\":%s", i == 0 ? "" : ",", i, value);
	buf_add_char(&b, '}');
	result_of_text(b.data, b.len);
	buf_fini(&b);
}

START_TEST(shapes_are_bounded)
{
	static const struct {
		unsigned n;
		const char *value, *begin, *end;
	} cases[] = {
	    {10, "{\"a\":{\"b\":1}}", "{member0000: {a: {b: number}}, ",
		"member0009: {a: {b: number}}}"},
	    {23, "{\"a\":{\"b\":1}}", "{member0000: {a: object}, ",
		"member0022: {a: object}}"},
	    {30, "{\"abcdef\":{\"b\":1}}", "{member0000: object, ",
		"member0029: object}"},
	    {40, "{\"a\":{\"b\":1}}", "{member0000: object, ", "object, ...}"},
	    {10000, "[1]", "{member0000: [1], ", "[1], ...}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = strlen(cases[i].end);

		buf_reset(&out);
		result_of_members(cases[i].n, cases[i].value);
		ck_assert(sample_put_shape(&out, msg.data, &json));
		ck_assert_uint_le(out.len, 600);
		ck_assert_str_eq(buf_cstr(&out) + out.len - n, cases[i].end);
		ck_assert(memcmp(out.data, cases[i].begin, strlen(cases[i].begin)) == 0);
	}
}
END_TEST

static const struct {
	const char *text, *want;
} samples[] = {
    {"{ \"a\": 1, \"b\": [true, null, \"x\"] }", "{\"a\":1,\"b\":[true,null,\"x\"]}"},
    {"{\"n\":12345678901234567890.10}", "{\"n\":12345678901234567890.10}"},
    {"{\"accessToken\":\"abc\",\"x\":1}", "{\"accessToken\":\"[redacted]\",\"x\":1}"},
    {"{\"API_KEY\":{\"a\":[1]},\"x\":[{\"Set-Cookie\":[\"a\"]}]}",
	"{\"API_KEY\":\"[redacted]\",\"x\":[{\"Set-Cookie\":\"[redacted]\"}]}"},
    {"{\"passw\\u006frd\":\"x\"}", "{\"password\":\"[redacted]\"}"},
    {"{\"client_secret\":1,\"authorization\":null}",
	"{\"client_secret\":\"[redacted]\",\"authorization\":\"[redacted]\"}"},
    {"{\"to\":\"Ann <ann.b+c@mail.example.com>, bob@x\"}",
	"{\"to\":\"Ann <[e-mail]>, [e-mail]\"}"},
    {"{\"ann@example.com\":1}", "{\"[e-mail]\":1}"},
    {"{\"body\":\"{\\\"token\\\":\\\"x\\\",\\\"a\\\":1}\"}",
	"{\"body\":\"{\\\"token\\\":\\\"[redacted]\\\",\\\"a\\\":1}\"}"},
    {"{\"log\":\"ok\\nAuthorization: Bearer abc\\nend\"}",
	"{\"log\":\"ok\\nAuthorization:[redacted]\\nend\"}"},
    {"hello", "hello"},
    {"at 5 pm @ home @", "at 5 pm @ home @"},
    {"mail ann@example.com or m\xc3\xbcller@example.com!", "mail [e-mail] or [e-mail]!"},
    {"api_key=abc&x=1\nnext", "api_key=[redacted]\nnext"},
    {"'password' : 'x'", "'password' :[redacted]"},
    {"no key here, password", "no key here, password"},
    {"ann@b.c token=x", "[e-mail] token=[redacted]"},
    {"\"ann@b.c\"", "\"[e-mail]\""},
    {"7", "7"},
};

START_TEST(samples_are_redacted)
{
	result_of_text(samples[_i].text, strlen(samples[_i].text));
	sample_put_redacted(&out, msg.data, &json, 4096);
	ck_assert_str_eq(buf_cstr(&out), samples[_i].want);
	/* Cut anywhere, it is the beginning of the same. */
	for (size_t max = 0; max < out.len; max++) {
		struct buf cut;

		buf_init(&cut, CAP_MESSAGE_BYTES);
		sample_put_redacted(&cut, msg.data, &json, max);
		ck_assert_uint_le(cut.len, max);
		ck_assert(cut.len == 0 || memcmp(cut.data, out.data, cut.len) == 0);
		buf_fini(&cut);
	}
}
END_TEST

START_TEST(samples_of_structured_content)
{
	static const char text[] =
	    "{\"content\":[],\"structuredContent\":{\"key\":1,\"a\":2}}";
	static const char image[] = "{\"content\":[{\"type\":\"image\"}]}";

	result(text, strlen(text));
	sample_put_redacted(&out, msg.data, &json, 4096);
	ck_assert_str_eq(buf_cstr(&out), "{\"key\":\"[redacted]\",\"a\":2}");
	buf_reset(&out);
	result(image, strlen(image));
	sample_put_redacted(&out, msg.data, &json, 4096);
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

/* R12: 5 MB of two-byte characters after one, so that the cut is within one. */
START_TEST(samples_are_cut)
{
	static const char *const begins[] = {"a", "[\""};
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	for (size_t i = 0; i < 2; i++) {
		buf_reset(&text);
		buf_reset(&out);
		buf_add_str(&text, begins[i]);
		while (text.len < (size_t)5 * 1000 * 1000)
			buf_add_str(&text, "\xc3\xa9");
		buf_add_str(&text, i == 0 ? "" : "\"]");
		result_of_text(text.data, text.len);
		sample_put_redacted(&out, msg.data, &json, 4096);
		ck_assert_uint_eq(out.len, i == 0 ? 4095 : 4096);
		ck_assert(memcmp(out.data, text.data, out.len) == 0);
	}
	buf_fini(&text);
}
END_TEST

/* As deep as a message may be, and long: it is read once. */
START_TEST(samples_are_read_once)
{
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	buf_add_str(&text, "{\"structuredContent\":");
	for (unsigned i = 0; i < 900; i++)
		buf_add_char(&text, '[');
	for (unsigned i = 0; i < 1000000; i++)
		buf_add_str(&text, i == 0 ? "1" : ",1");
	for (unsigned i = 0; i < 900; i++)
		buf_add_char(&text, ']');
	buf_add_char(&text, '}');
	result(text.data, text.len);
	sample_put_redacted(&out, msg.data, &json, 4096);
	ck_assert_uint_eq(out.len, 4096);
	buf_reset(&out);
	ck_assert(sample_put_shape(&out, msg.data, &json));
	ck_assert_str_eq(buf_cstr(&out), "[1 of [1 of [1 of [1]]]]");
	buf_fini(&text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("sample");
	TCase *tc = tcase_create("sample");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, shapes_are_told, 0, (int)(sizeof(shapes) / sizeof(shapes[0])));
	tcase_add_test(tc, shapes_are_bounded);
	tcase_add_loop_test(
	    tc, samples_are_redacted, 0, (int)(sizeof(samples) / sizeof(samples[0])));
	tcase_add_test(tc, samples_of_structured_content);
	tcase_add_test(tc, samples_are_cut);
	tcase_add_test(tc, samples_are_read_once);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
