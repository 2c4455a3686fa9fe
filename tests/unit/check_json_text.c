/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* Whole texts of JSON: decoded, compared, and without white space. */
#include "mcpvisor/json.h"

#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct buf out;

static void
setup(void)
{
	buf_init(&out, 4096);
}

static void
teardown(void)
{
	buf_fini(&out);
}

#include "suite_rig.h"

#define N(table) (int)(sizeof(table) / sizeof((table)[0]))

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, strlen(s)};
}

static const struct {
	const char *t, *text; /* NULL: it is no string */
	bool in_place;
} texts[] = {
    {"\"abc\"", "abc", true},
    {"\"\"", "", true},
    {"\"a\\n\\u00e4\"", "a\n\xc3\xa4", false},
    {"\"\\ud800\"", "\xef\xbf\xbd", false},
    {"7", NULL, false},
    {"{\"a\":1}", NULL, false},
    {"\"", NULL, false},
    {"", NULL, false},
};

START_TEST(text_is_decoded)
{
	struct jtext t = text_of(texts[_i].t), text;

	/* What scratch held before is gone. */
	buf_add_str(&out, "before");
	text = json_text(t, &out);
	if (texts[_i].text == NULL) {
		ck_assert_ptr_null(text.p);
		ck_assert_uint_eq(text.n, 0);
		return;
	}
	ck_assert(jtext_is_equal(text, text_of(texts[_i].text)));
	ck_assert_ptr_nonnull(text.p);
	ck_assert((text.p == t.p + 1) == texts[_i].in_place);
}
END_TEST

START_TEST(text_without_memory)
{
	mem_fail_at(1, 1);
	ck_assert_ptr_nonnull(json_text(text_of("\"abc\""), &out).p);
	ck_assert_ptr_null(json_text(text_of("\"\\u0061\""), &out).p);
	mem_fail_at(0, 0);
}
END_TEST

static const struct {
	const char *a, *b;
	bool like;
} likes[] = {
    {"", "", true},
    {"limit", "LiMiT", true},
    {"limit", "limits", false},
    {"limit", "", false},
    {"sk", "\xc5\xbf\xe2\x84\xaa", true},
    {"\xc3\xa4", "\xc3\x84", false},
    {"[", "{", false},
    {"@", "`", false},
};

START_TEST(texts_are_alike)
{
	struct jtext a = text_of(likes[_i].a), b = text_of(likes[_i].b);

	ck_assert(jtext_is_like(a, b) == likes[_i].like);
	ck_assert(jtext_is_like(b, a) == likes[_i].like);
}
END_TEST

static const struct {
	const char *t, *compact;
} compacts[] = {
    {"1", "1"},
    {" { \"a b\" :\t[ 1 ,\r\n2 ] } ", "{\"a b\":[1,2]}"},
    {"[ \" \\\" x \" , \"\\\\\" , \" \" ]", "[\" \\\" x \",\"\\\\\",\" \"]"},
    {"", ""},
};

START_TEST(white_space_goes)
{
	json_put_compact(&out, text_of(compacts[_i].t));
	ck_assert(jtext_is_equal(
	    (struct jtext){out.data, out.len}, text_of(compacts[_i].compact)));
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("json_text");

	tcase_add_loop_test(tc, text_is_decoded, 0, N(texts));
	tcase_add_test(tc, text_without_memory);
	tcase_add_loop_test(tc, texts_are_alike, 0, N(likes));
	tcase_add_loop_test(tc, white_space_goes, 0, N(compacts));
	return run_suite(suite_create("json_text"), tc);
}
