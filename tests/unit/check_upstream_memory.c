/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What an upstream leaves to a later process: there and back, and what is refused. */
#include "memory_rig.h"

static void
check_equal(const struct uowner *a, const struct uowner *b)
{
	ck_assert_mem_eq(upstream_caps(a->u), upstream_caps(b->u), sizeof(a->u->caps));
	ck_assert_pstr_eq(upstream_instructions(a->u), upstream_instructions(b->u));
	ck_assert_int_eq(a->u->known_era, b->u->known_era);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *x = upstream_list(a->u, (enum list_kind)k);
		const struct ulist *y = upstream_list(b->u, (enum list_kind)k);

		ck_assert_int_eq(x->is_known, y->is_known);
		ck_assert_uint_eq(x->n, y->n);
		ck_assert_uint_eq(x->hash, y->hash);
		ck_assert_int_eq(x->is_private, y->is_private);
		ck_assert_uint_eq(x->bytes.len, y->bytes.len);
		if (x->bytes.len > 0)
			ck_assert_mem_eq(x->bytes.data, y->bytes.data, x->bytes.len);
		for (uint32_t i = 0; i < x->n; i++)
			ck_assert_mem_eq(&x->items[i], &y->items[i], sizeof(*x->items));
	}
}

/* ---- there and back ---- */

static const char *const odd_lists[] = {
    "[]",
    "[{\"name\":\"a\"}]",
    "[ {\"name\" : \"a\" , \"x\":1e400}\t,\r{\"y\":9007199254740993.10,\"name\":\"b\"} ]",
    "[{\"n\\u0061me\":\"\\ud800\\u0000\",\"x\":{\"name\":[{}]}},{\"name\":\"\\\"\\\\\"}]",
    "[{\"name\":\"dup\",\"x\":1,\"x\":2},{\"name\":\"dup\",\"x\":1,\"x\":2}]",
    "[{\"name\":\"\xc3\xa9\xf0\x9f\x98\x80\",\"description\":\"12 {}\\n13 {\"}]",
    "[{\"name\":\"a\",\"x\":[[[[[[]]]]]],\"y\":{\"\":{\"\":null}},\"z\":-0.0E-0}]",
};
#define N_ODD ((int)(sizeof(odd_lists) / sizeof(odd_lists[0])))

START_TEST(odd_definitions_come_back)
{
	struct uowner *a = uowner_new(ERA_AUTO), *b;
	struct buf text, again;

	ck_assert_uint_eq(memory_of(a).len, 0);
	uowner_be_modern(a, ALL);
	answer_lists(a, odd_lists[_i]);
	text = memory_of(a);
	b = uowner_new(ERA_AUTO);
	ck_assert_int_eq(take(b, text.data, text.len), MV_OK);
	ck_assert_uint_eq(b->settled, 1);
	ck_assert(b->settled_in == UPSTREAM_ST_DOWN);
	check_equal(a, b);
	again = memory_of(b);
	ck_assert_uint_eq(again.len, text.len);
	ck_assert_mem_eq(again.data, text.data, text.len);
	buf_fini(&again);
	buf_fini(&text);
	uowner_free(b);
	uowner_free(a);
}
END_TEST

START_TEST(instructions_come_back)
{
	struct uowner *a = uowner_new(ERA_AUTO), *b;
	struct buf text;

	uowner_start(a);
	uowner_answer(a, 1,
	    "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{},"
	    "\"instructions\":\"a\\n\\\"b\\\" \\u00e9\\u0007\"}");
	text = memory_of(a);
	b = uowner_new(ERA_AUTO);
	ck_assert_int_eq(take(b, text.data, text.len), MV_OK);
	ck_assert_str_eq(upstream_instructions(b->u), "a\n\"b\" \xc3\xa9\a");
	check_equal(a, b);
	buf_fini(&text);
	uowner_free(b);
	uowner_free(a);
}
END_TEST

#define TWO_WITH(gap)                                                                    \
	HEAD("modern", "2026-07-28", TOOLS_CAP, LIST_OF(2))                              \
	"\"x\"\n"                                                                        \
	"20 {" gap "\"name\":" gap "\"a\"" gap gap "}\n"                                 \
	"12 {\"name\":\"b\"}\n"

/* A body over HTTP may have line breaks between its tokens; no message may. */
START_TEST(line_breaks_in_a_definition)
{
	static const char text[] = TWO_WITH("\n\r"), flat[] = TWO_WITH("  ");
	struct uowner *o = uowner_new(ERA_AUTO), *same = uowner_new(ERA_AUTO);
	const struct ulist *l = upstream_list(o->u, LIST_TOOLS);
	struct buf again;

	take_ok(o, text);
	ck_assert_uint_eq(l->n, 2);
	ck_assert_ptr_null(memchr(l->bytes.data, '\n', l->bytes.len));
	ck_assert_ptr_null(memchr(l->bytes.data, '\r', l->bytes.len));
	again = memory_of(o);
	ck_assert_uint_eq(again.len, strlen(flat));
	ck_assert_mem_eq(again.data, flat, again.len);
	take_ok(same, flat);
	ck_assert(upstream_list(same->u, LIST_TOOLS)->hash == l->hash);
	uowner_free(same);
	buf_fini(&again);
	uowner_free(o);
}
END_TEST

/* ---- what is refused ---- */

static const char *const bad_texts[] = {
    "",
    "\n",
    "{}\n\"\"\n",
    "null\n\"\"\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(0)), /* no instructions */
    HEAD("legacy", "2025-06-18", "", LIST_OF(0)) "\"\"",
    HEAD("legacy", "2025-06-18", "", LIST_OF(0)) "null\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(0)) "\"\"\n\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(0)) "\"\"\n12 {\"name\":\"a\"}\n",
    HEAD("legacy", "2026-07-28", "", LIST_OF(0)) "\"\"\n",
    HEAD("modern", "2025-06-18", "", LIST_OF(0)) "\"\"\n",
    HEAD("modern", "none", "", LIST_OF(0)) "\"\"\n",
    HEAD("postmodern", "2025-06-18", "", LIST_OF(0)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "\"flight\"", LIST_OF(0)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "1", LIST_OF(0)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "", "{}") "\"\"\n",
    HEAD("legacy", "2025-06-18", "", "0") "\"\"\n",
    HEAD("legacy", "2025-06-18", "", "{\"count\":0}") "\"\"\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(-1)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(100001)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n12 {\"name\":\"a\"}",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n11 {\"name\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n13 {\"name\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n012 {\"name\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n+12 {\"name\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n{\"name\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n13 {\"name\":\"a\"} \n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n8 {\"x\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n9 {\"x\":\"a\"}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n12 {\"name\":'a'}\n",
    HEAD("legacy", "2025-06-18", "", LIST_OF(1)) "\"\"\n12 {\"name\":\"\xff\"}\n",
    HEAD("legacy", "2025-06-18", "",
	LIST_OF(1)) "\"\"\n99999999999999999999999999 {\"name\":\"a\"}\n",
};
#define N_BAD ((int)(sizeof(bad_texts) / sizeof(bad_texts[0])))

static void
check_untouched(const struct uowner *o)
{
	ck_assert_uint_eq(o->settled, 0);
	ck_assert_int_eq(o->u->known_era, ERA_AUTO);
	ck_assert(!upstream_caps(o->u)->tools);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ck_assert(!upstream_list(o->u, (enum list_kind)k)->is_known);
}

START_TEST(other_bytes_change_nothing)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	const char *text = bad_texts[_i];

	ck_assert_int_eq(take(o, text, strlen(text)), MV_PROTOCOL);
	check_untouched(o);
	uowner_free(o);
}
END_TEST

START_TEST(other_version_changes_nothing)
{
	char text[] = OF_LEGACY;
	struct uowner *o = uowner_new(ERA_AUTO);

	*strstr(text, ":1,") = ' ';
	ck_assert_int_eq(take(o, text, strlen(text)), MV_PROTOCOL);
	(void)memcpy(text, OF_LEGACY, sizeof(text));
	strstr(text, ":1,")[1] = '2';
	ck_assert_int_eq(take(o, text, strlen(text)), MV_PROTOCOL);
	check_untouched(o);
	uowner_free(o);
}
END_TEST

/* Cut anywhere, it is nothing. Changed anywhere, it is nothing, or something that is put
 * the same way again. */
START_TEST(cut_and_altered_bytes)
{
	static const char text[] = OF_LEGACY;
	size_t len = strlen(text);

	for (size_t n = 0; n < len; n++) {
		struct uowner *o = uowner_new(ERA_AUTO);

		ck_assert_int_eq(take(o, text, n), MV_PROTOCOL);
		check_untouched(o);
		uowner_free(o);
	}
	for (size_t n = 0; n < len; n++) {
		struct uowner *o = uowner_new(ERA_AUTO);
		char other[sizeof(text)];

		memcpy(other, text, sizeof(text));
		other[n] ^= (char)(1 << (n % 8));
		if (take(o, other, len) == MV_OK) {
			struct buf b = memory_of(o);

			ck_assert_uint_le(b.len, len + 16);
			buf_fini(&b);
		} else {
			check_untouched(o);
		}
		uowner_free(o);
	}
}
END_TEST

START_TEST(no_memory_changes_nothing)
{
	unsigned failed = 0;

	for (unsigned n = 1; n < 100; n++) {
		struct uowner *o = uowner_new(ERA_AUTO);
		enum mv_err err;

		mem_fail_at(n, false);
		err = upstream_take_memory(o->u, OF_LEGACY, strlen(OF_LEGACY));
		mem_fail_at(0, false);
		failed += err == MV_NOMEM;
		if (err != MV_OK) {
			ck_assert_int_eq(err, MV_NOMEM);
			check_untouched(o);
		}
		uowner_free(o);
		if (err == MV_OK)
			break;
	}
	ck_assert_uint_ge(failed, 1);
}
END_TEST

START_TEST(too_long_is_refused_unread)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	ck_assert_int_eq(
	    upstream_take_memory(o->u, NULL, (size_t)CAP_MEMORY_BYTES + 1), MV_PROTOCOL);
	uowner_free(o);
}
END_TEST

static void
suite_add_all(TCase *tc)
{
	tcase_add_loop_test(tc, odd_definitions_come_back, 0, N_ODD);
	tcase_add_test(tc, instructions_come_back);
	tcase_add_test(tc, line_breaks_in_a_definition);
	tcase_add_loop_test(tc, other_bytes_change_nothing, 0, N_BAD);
	tcase_add_test(tc, other_version_changes_nothing);
	tcase_add_test(tc, cut_and_altered_bytes);
	tcase_add_test(tc, no_memory_changes_nothing);
	tcase_add_test(tc, too_long_is_refused_unread);
}

int
main(void)
{
	Suite *s = suite_create("upstream_memory");
	TCase *tc = tcase_create("memory");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_all(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
