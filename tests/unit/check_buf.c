/* layer: base */
/* SPDX-License-Identifier: MIT */
/* Buffers: growth, the maximum, the sticky error, taking. */
#include "mcpvisor/buf.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(appends_every_kind)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_add(&b, NULL, 0);
	ck_assert_ptr_null(b.data);
	buf_add_char(&b, '{');
	buf_add_str(&b, "ab");
	buf_add(&b, "\0x", 2);
	buf_add_u64(&b, 0);
	buf_add_char(&b, ' ');
	buf_add_u64(&b, UINT64_MAX);
	buf_addf(&b, " %s=%d", "k", -7);
	ck_assert_uint_eq(b.len, 1 + 2 + 2 + 1 + 1 + 20 + 5);
	ck_assert_int_eq(memcmp(b.data, "{ab\0x0 18446744073709551615 k=-7", b.len), 0);
	ck_assert_uint_eq(strlen(buf_cstr(&b) + 5), b.len - 5);
	ck_assert_int_eq(b.err, MV_OK);
	buf_fini(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_uint_eq(b.max, SIZE_MAX);
	buf_fini(&b);
}
END_TEST

START_TEST(doubles_and_keeps_memory)
{
	struct buf b;
	unsigned grown = 0;
	size_t cap = 0;

	buf_init(&b, 1u << 20);
	for (unsigned i = 0; i < 1u << 20; i++) {
		buf_add_char(&b, (char)('a' + i % 26));
		if (b.cap != cap)
			grown++;
		cap = b.cap;
	}
	ck_assert_uint_le(grown, 14);
	ck_assert_int_eq(b.err, MV_OK);
	for (unsigned i = 0; i < 1u << 20; i++)
		ck_assert(b.data[i] == (char)('a' + i % 26));
	buf_reset(&b);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_uint_eq(b.cap, cap);
	ck_assert_int_eq(buf_reserve(&b, 1u << 20), MV_OK);
	ck_assert_uint_eq(b.cap, cap);
	buf_fini(&b);
}
END_TEST

static const struct {
	size_t max;
	size_t have;
	size_t add;
	enum mv_err want;
} limits[] = {
    {0, 0, 0, MV_OK},
    {0, 0, 1, MV_TOO_LONG},
    {8, 8, 0, MV_OK},
    {8, 3, 5, MV_OK},
    {8, 3, 6, MV_TOO_LONG},
    {8, 8, SIZE_MAX, MV_TOO_LONG},
    {8, 1, SIZE_MAX - 1, MV_TOO_LONG},
    {300, 256, 44, MV_OK},
    {300, 256, 45, MV_TOO_LONG},
};

START_TEST(keeps_to_the_maximum)
{
	struct buf b;

	buf_init(&b, limits[_i].max);
	for (size_t i = 0; i < limits[_i].have; i++)
		buf_add_char(&b, 'x');
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_int_eq(buf_reserve(&b, limits[_i].add), limits[_i].want);
	ck_assert_uint_eq(b.len, limits[_i].have);
	ck_assert_uint_le(b.cap, limits[_i].max + 1);
	if (limits[_i].want == MV_OK) {
		for (size_t i = 0; i < limits[_i].add; i++)
			buf_addf(&b, "%c", 'y');
		ck_assert_uint_eq(b.len, limits[_i].have + limits[_i].add);
		ck_assert_uint_eq(strlen(buf_cstr(&b)), b.len);
	}
	buf_fini(&b);
}
END_TEST

START_TEST(error_is_sticky)
{
	struct buf b;
	size_t len = 77;

	buf_init(&b, 4);
	buf_add_str(&b, "abc");
	buf_add_str(&b, "de");
	ck_assert_int_eq(b.err, MV_TOO_LONG);
	buf_add_char(&b, 'd');
	buf_addf(&b, "%d", 1);
	buf_add_u64(&b, 1);
	ck_assert_uint_eq(b.len, 3);
	ck_assert_int_eq(buf_reserve(&b, 0), MV_TOO_LONG);
	ck_assert_ptr_null(buf_cstr(&b));
	ck_assert_ptr_null(buf_take(&b, &len));
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(b.err, MV_TOO_LONG);
	buf_reset(&b);
	buf_add_str(&b, "wxyz");
	ck_assert_str_eq(buf_cstr(&b), "wxyz");
	buf_fini(&b);
}
END_TEST

START_TEST(short_memory_leaves_the_data)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_add_str(&b, "first");
	mem_fail_at(1, 0);
	ck_assert_int_eq(buf_reserve(&b, 1000), MV_NOMEM);
	mem_fail_at(0, 0);
	buf_add_str(&b, "second");
	ck_assert_int_eq(b.err, MV_NOMEM);
	ck_assert_uint_eq(b.len, 5);
	ck_assert_int_eq(memcmp(b.data, "first", 5), 0);
	buf_fini(&b);
	ck_assert_int_eq(b.err, MV_OK);
}
END_TEST

START_TEST(drops_from_the_front)
{
	struct buf b;

	buf_init(&b, 100);
	buf_drop(&b, 0);
	buf_add_str(&b, "hello world");
	buf_drop(&b, 6);
	ck_assert_str_eq(buf_cstr(&b), "world");
	buf_drop(&b, 5);
	ck_assert_uint_eq(b.len, 0);
	buf_add_char(&b, '!');
	ck_assert_str_eq(buf_cstr(&b), "!");
	buf_fini(&b);
}
END_TEST

START_TEST(takes_the_memory)
{
	struct buf b;
	size_t len = 77;
	char *s;

	buf_init(&b, 100);
	s = buf_take(&b, &len);
	ck_assert_str_eq(s, "");
	ck_assert_uint_eq(len, 0);
	mem_free(s);
	buf_add_str(&b, "mine");
	s = buf_take(&b, &len);
	ck_assert_str_eq(s, "mine");
	ck_assert_uint_eq(len, 4);
	ck_assert_ptr_null(b.data);
	buf_add_str(&b, "other");
	ck_assert_str_eq(s, "mine");
	mem_free(s);
	s = buf_take(&b, NULL);
	ck_assert_str_eq(s, "other");
	mem_free(s);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("buf");
	TCase *tc = tcase_create("buf");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, appends_every_kind);
	tcase_add_test(tc, doubles_and_keeps_memory);
	tcase_add_loop_test(
	    tc, keeps_to_the_maximum, 0, sizeof(limits) / sizeof(limits[0]));
	tcase_add_test(tc, error_is_sticky);
	tcase_add_test(tc, short_memory_leaves_the_data);
	tcase_add_test(tc, drops_from_the_front);
	tcase_add_test(tc, takes_the_memory);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
