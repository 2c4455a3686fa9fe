/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* Walking, decoding, ids, writing strings, cuts and edits. */
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static struct jtext
text_of(const char *s)
{
	struct jtext t = {s, strlen(s)};

	return t;
}

static void
assert_text(struct jtext t, const char *want)
{
	ck_assert_uint_eq(t.n, strlen(want));
	if (t.n > 0)
		ck_assert_mem_eq(t.p, want, t.n);
}

static void
assert_buf(struct buf *b, const char *want, size_t n)
{
	ck_assert_int_eq(b->err, MV_OK);
	ck_assert_msg(b->len == n && (n == 0 || memcmp(b->data, want, n) == 0),
	    "got %.*s, want %.*s", (int)b->len, b->data != NULL ? b->data : "", (int)n,
	    want);
}

/* Members as key=value; of an array as value;. */
static const struct {
	const char *text, *walked;
} walks[] = {
    {"{}", ""},
    {"{ }", ""},
    {"[]", ""},
    {"[ \n]", ""},
    {"{\"a\":1}", "\"a\"=1;"},
    {" {\"a\":1}", ""},
    {"{ \"a\" : 1 , \"b\\\"\" : [1,{\"x\":\"]\"}] , \"c\":\"}\\\\\" }",
	"\"a\"=1;\"b\\\"\"=[1,{\"x\":\"]\"}];\"c\"=\"}\\\\\";"},
    {"[1,\"a,b\",{\"k\":[2]},null , -1.5e3]", "1;\"a,b\";{\"k\":[2]};null;-1.5e3;"},
    {"\"a\"", ""},
    {"12", ""},
    {"[\"\\", ""},
    {"{\"a\":[[", "\"a\"=[;"},
};

START_TEST(walks_containers)
{
	struct jtext t = text_of(walks[_i].text), k, v;
	struct json_iter it;
	struct buf out;

	buf_init(&out, 1000);
	json_iter_init(&it, t);
	while (jtext_type(t) == '{' ? json_next_member(&it, &k, &v)
				    : json_next_element(&it, &v)) {
		if (jtext_type(t) == '{') {
			json_put(&out, k);
			buf_add_char(&out, '=');
		}
		json_put(&out, v);
		buf_add_char(&out, ';');
	}
	if (strcmp(walks[_i].text, "[\"\\") != 0)
		assert_buf(&out, walks[_i].walked, strlen(walks[_i].walked));
	buf_fini(&out);
}
END_TEST

START_TEST(looks_up_members)
{
	struct jtext o = text_of("{\"a\":{\"n\":1},\"n\":2,\"\\u006e\":3,\"m\\n\":4}");

	assert_text(json_member(o, "n"), "2");
	assert_text(json_member(o, "a"), "{\"n\":1}");
	assert_text(json_member(json_member(o, "a"), "n"), "1");
	assert_text(json_member(o, "m\n"), "4");
	assert_text(json_member(o, "x"), "");
	assert_text(json_member(json_member(o, "x"), "n"), "");
	assert_text(json_member(text_of("[1]"), "n"), "");
	ck_assert_int_eq(jtext_type(json_member(o, "x")), 0);
	ck_assert_int_eq(jtext_type(o), '{');
}
END_TEST

static const struct {
	const char *text;
	const char *decoded; /* NULL: no string */
	bool is;	     /* json_string_is with the decoded text */
} strings[] = {
    {"\"\"", "", true},
    {"\"abc\"", "abc", true},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", true},
    {"\"n\\u0061me\"", "name", true},
    {"\"\\u00E9\\u20ac\"", "\xc3\xa9\xe2\x82\xac", true},
    {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", true},
    {"\"a\\uDBFF\\uDFFFb\"",
	"a\xf4\x8f\xbf\xbf"
	"b",
	true},
    {"\"\\ud83d\"", "\xef\xbf\xbd", false},
    {"\"\\ude00\\ud83dx\"", "\xef\xbf\xbd\xef\xbf\xbdx", false},
    {"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", false},
    {"\"\\ud83d\\u0041\"",
	"\xef\xbf\xbd"
	"A",
	false},
    {"\"\\ud83d\\n\"", "\xef\xbf\xbd\n", false},
    {"\"\xed\x95\x9c\"", "\xed\x95\x9c", true},
    {"12", NULL, false},
    {"", NULL, false},
    {"{}", NULL, false},
};

START_TEST(decodes_strings)
{
	struct jtext t = text_of(strings[_i].text);
	const char *want = strings[_i].decoded;
	struct buf out;

	buf_init(&out, 100);
	buf_add_char(&out, '>');
	ck_assert_int_eq(json_string_decode(t, &out), want != NULL);
	ck_assert_uint_eq(out.len, 1 + (want != NULL ? strlen(want) : 0));
	if (want != NULL) {
		ck_assert_mem_eq(out.data + 1, want, strlen(want));
		ck_assert_int_eq(json_string_is(t, want), strings[_i].is);
	}
	ck_assert(!json_string_is(t, "other"));
	buf_fini(&out);
}
END_TEST

START_TEST(compares_strings)
{
	ck_assert(!json_string_is(text_of("\"name\""), "nam"));
	ck_assert(!json_string_is(text_of("\"name\""), "names"));
	ck_assert(!json_string_is(text_of("\"n\\u0061me\""), "nam"));
	ck_assert(!json_string_is(text_of("\"n\\u0061me\""), "names"));
	ck_assert(!json_string_is(text_of("\"n\\u0061me\""), "n\\u0061me"));
	ck_assert(!json_string_is(text_of("\"a\\u0000\""), "a"));
	ck_assert(!json_string_is(text_of("name"), "name"));
}
END_TEST

static const struct {
	const char *text;
	bool is;
	int64_t v;
} ints[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"42", true, 42},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"99999999999999999999999", false, 0},
    {"1.0", false, 0},
    {"1e2", false, 0},
    {"\"1\"", false, 0},
    {"true", false, 0},
    {"-", false, 0},
    {"", false, 0},
};

START_TEST(reads_integers)
{
	int64_t v = 77;

	ck_assert_int_eq(json_int(text_of(ints[_i].text), &v), ints[_i].is);
	ck_assert_int_eq(v, ints[_i].is ? ints[_i].v : 77);
}
END_TEST

static const struct {
	const char *text;
	const char *key; /* NULL: no id */
	size_t n;
} ids[] = {
    {"1", "i1", 2},
    {"0", "i0", 2},
    {"-0", "i0", 2},
    {"-7", "i-7", 3},
    {"9007199254740993", "i9007199254740993", 17},
    {"123456789012345678901234567890", "i123456789012345678901234567890", 31},
    {"\"1\"", "s1", 2},
    {"\"\"", "s", 1},
    {"\"\\u0061\"", "sa", 2},
    {"\"a\"", "sa", 2},
    {"\"a\\u0000b\"", "sa\0b", 4},
    {"\"\\ud800\"", "s\xed\xa0\x80", 4},
    {"\"\\ud801\"", "s\xed\xa0\x81", 4},
    {"\"\\ud83d\\ude00\\u00e9\\u20acx\"", "s\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xacx", 11},
    {"\"\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xacx\"",
	"s\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xacx", 11},
    {"\"\xf0\x9f\x98\x80\\u00e9\"", "s\xf0\x9f\x98\x80\xc3\xa9", 7},
    {"\"\xef\xbf\xbd\"", "s\xef\xbf\xbd", 4},
    {"1.5", NULL, 0},
    {"1.0", NULL, 0},
    {"1e3", NULL, 0},
    {"null", NULL, 0},
    {"true", NULL, 0},
    {"{}", NULL, 0},
    {"[1]", NULL, 0},
    {"", NULL, 0},
};

/* Same value and same key are one. */
START_TEST(ids_are_the_same_however_spelled)
{
	struct jtext a = text_of(ids[_i].text);

	mem_fail_at(1, 1); /* it needs none */
	for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
		bool same = ids[_i].key != NULL && ids[k].key != NULL &&
			    ids[_i].n == ids[k].n &&
			    memcmp(ids[_i].key, ids[k].key, ids[k].n) == 0;

		if (ids[_i].key != NULL && ids[k].key != NULL)
			ck_assert_int_eq(json_id_is_same(a, text_of(ids[k].text)), same);
	}
	mem_fail_at(0, 0);
}
END_TEST

START_TEST(makes_keys_of_ids)
{
	struct jtext t = text_of(ids[_i].text);
	struct buf out;

	ck_assert_int_eq(json_is_id(t), ids[_i].key != NULL);
	if (ids[_i].key == NULL)
		return;
	buf_init(&out, 100);
	json_id_key(t, &out);
	assert_buf(&out, ids[_i].key, ids[_i].n);
	buf_fini(&out);
}
END_TEST

START_TEST(bounds_ids)
{
	char id[CAP_ID_BYTES + 1];
	struct jtext t = {id, CAP_ID_BYTES};

	memset(id, '1', sizeof(id));
	ck_assert(json_is_id(t));
	t.n++;
	ck_assert(!json_is_id(t));
	id[0] = id[CAP_ID_BYTES] = '"';
	ck_assert(!json_is_id(t));
	t.n--;
	ck_assert(json_is_id(t));
	ck_assert(json_is_true(text_of("true")));
	ck_assert(!json_is_true(text_of("false")));
	ck_assert(!json_is_true(text_of("\"true\"")));
	ck_assert(!json_is_true(text_of("")));
}
END_TEST

#define BAD "\xef\xbf\xbd"

static const struct {
	const char *raw;
	size_t n;
	const char *text;
} writes[] = {
    {"", 0, "\"\""},
    {NULL, 0, "\"\""},
    {"abc", 3, "\"abc\""},
    {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
    {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
    {"/\xc3\xa9\xf0\x9f\x98\x80", 7, "\"/\xc3\xa9\xf0\x9f\x98\x80\""},
    {"a\xff"
     "b",
	3, "\"a" BAD "b\""},
    {"\x80", 1, "\"" BAD "\""},
    {"\xe2\x82", 2, "\"" BAD BAD "\""},
    {"\xc0\xaf", 2, "\"" BAD BAD "\""},
    {"\xed\xa0\x80", 3, "\"" BAD BAD BAD "\""},
    {"\xf4\x90\x80\x80", 4, "\"" BAD BAD BAD BAD "\""},
    {"\xe2\"", 2, "\"" BAD "\\\"\""},
};

START_TEST(writes_strings)
{
	struct json_msg msg;
	struct buf out;

	buf_init(&out, 100);
	json_put_string(&out, writes[_i].raw, writes[_i].n);
	assert_buf(&out, writes[_i].text, strlen(writes[_i].text));
	ck_assert_int_eq(json_scan(&msg, out.data, out.len, false), MV_OK);
	buf_fini(&out);
}
END_TEST

static void
assert_edited(const char *base, struct json_span span, const struct json_edits *ed,
    const char *want)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int i, n = json_edit_pieces(base, span, ed, iov);
	struct buf out;

	ck_assert_int_le(n, 2 * JSON_EDITS_MAX + 1);
	buf_init(&out, 1000);
	for (i = 0; i < n; i++) {
		ck_assert_uint_gt(iov[i].iov_len, 0);
		buf_add(&out, iov[i].iov_base, iov[i].iov_len);
	}
	assert_buf(&out, want, strlen(want));
	buf_fini(&out);
}

/* Cuts the members whose keys are the letters of cut from the object. */
static const struct {
	const char *text, *cut, *left;
} cuts[] = {
    {"{\"a\":1,\"b\":2,\"c\":3}", "a", "{\"b\":2,\"c\":3}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "b", "{\"a\":1,\"c\":3}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "c", "{\"a\":1,\"b\":2}"},
    {"{\"a\":1}", "a", "{}"},
    {"{ \"a\" : 1 }", "a", "{}"},
    {"x{ \"a\" : 1 , \"b\" : 2 , \"c\" : 3 }y", "a", "{ \"b\" : 2 , \"c\" : 3 }"},
    {"x{ \"a\" : 1 , \"b\" : 2 , \"c\" : 3 }y", "b", "{ \"a\" : 1 , \"c\" : 3 }"},
    {"x{ \"a\" : 1 , \"b\" : 2 , \"c\" : 3 }y", "c", "{ \"a\" : 1 , \"b\" : 2  }"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "ab", "{\"c\":3}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "ba", "{\"c\":3}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "bc", "{\"a\":1}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "cb", "{\"a\":1}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "ac", "{\"b\":2}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "abc", "{}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "cba", "{}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "bca", "{}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "cab", "{}"},
    {"{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3\n}", "cb", "{\n \"a\": 1\n}"},
    {"{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3\n}", "acb", "{\n}"},
    {"{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", "dbc", "{\"a\":1}"},
    {"{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", "dac", "{\"b\":2}"},
    {"{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", "bd", "{\"a\":1,\"c\":3}"},
};

START_TEST(cuts_members)
{
	const char *base = cuts[_i].text, *start = strchr(base, '{'), *c;
	struct json_span object = {
	    (uint32_t)(start - base), (uint32_t)(strrchr(base, '}') + 1 - start)};
	struct json_edits ed = {0};
	struct json_span value;
	struct json_msg msg;
	char key[2] = "";

	for (c = cuts[_i].cut; *c != '\0'; c++) {
		struct jtext v;

		key[0] = *c;
		v = json_member(jtext_of(base, object), key);
		value.off = (uint32_t)(v.p - base);
		value.len = (uint32_t)v.n;
		json_edit_cut(
		    &ed, base, object, (uint32_t)(strchr(base, *c) - 1 - base), value);
	}
	assert_edited(base, object, &ed, cuts[_i].left);
	ck_assert_int_eq(
	    json_scan(&msg, cuts[_i].left, strlen(cuts[_i].left), false), MV_OK);
}
END_TEST

START_TEST(edits_in_order)
{
	static const char base[] = "..{\"id\":1,\"x\":2}..";
	struct json_span span = {2, 14};
	struct json_edits ed = {0};

	assert_edited(base, span, &ed, "{\"id\":1,\"x\":2}");
	json_edit_add(&ed, 14, 1, "99", 2);
	json_edit_add(&ed, 8, 1, "\"q\"", 3);
	json_edit_add(&ed, 3, 0, "\"a\":0,", 6);
	json_edit_add(&ed, 3, 0, "\"b\":0,", 6);
	json_edit_add(&ed, 15, 0, ",\"z\":3", 6);
	assert_edited(base, span, &ed, "{\"a\":0,\"b\":0,\"id\":\"q\",\"x\":99,\"z\":3}");
}
END_TEST

START_TEST(inserts_before_a_cut)
{
	static const char base[] = "{\"a\":1,\"b\":2}";
	struct json_span span = {0, sizeof(base) - 1}, value = {5, 1};
	struct json_edits ed = {0};

	json_edit_cut(&ed, base, span, 1, value);
	json_edit_add(&ed, 1, 0, "\"x\":0,", 6);
	assert_edited(base, span, &ed, "{\"x\":0,\"b\":2}");
	ck_assert_int_eq(ed.n, 2);
}
END_TEST

START_TEST(takes_all_edits)
{
	char base[2 * JSON_EDITS_MAX + 1], want[2 * JSON_EDITS_MAX + 1] = "";
	struct json_span span = {0, 2 * JSON_EDITS_MAX};
	struct json_edits ed = {0};
	uint32_t i;

	memset(base, '.', sizeof(base));
	for (i = 0; i < JSON_EDITS_MAX; i++) {
		base[2 * i] = '+';
		want[2 * i] = '-';
		want[2 * i + 1] = '.';
	}
	/* The last one first. */
	for (i = JSON_EDITS_MAX; i-- > 0;)
		json_edit_add(&ed, 2 * i, 1, "-", 1);
	assert_edited(base, span, &ed, want);
}
END_TEST

#define ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

int
main(void)
{
	Suite *s = suite_create("json");
	TCase *tc = tcase_create("json");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, walks_containers, 0, ROWS(walks));
	tcase_add_test(tc, looks_up_members);
	tcase_add_loop_test(tc, decodes_strings, 0, ROWS(strings));
	tcase_add_test(tc, compares_strings);
	tcase_add_loop_test(tc, reads_integers, 0, ROWS(ints));
	tcase_add_loop_test(tc, makes_keys_of_ids, 0, ROWS(ids));
	tcase_add_loop_test(tc, ids_are_the_same_however_spelled, 0, ROWS(ids));
	tcase_add_test(tc, bounds_ids);
	tcase_add_loop_test(tc, writes_strings, 0, ROWS(writes));
	tcase_add_loop_test(tc, cuts_members, 0, ROWS(cuts));
	tcase_add_test(tc, edits_in_order);
	tcase_add_test(tc, inserts_before_a_cut);
	tcase_add_test(tc, takes_all_edits);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
