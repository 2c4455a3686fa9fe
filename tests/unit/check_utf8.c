/* layer: base */
/* SPDX-License-Identifier: MIT */
/* Well-formed UTF-8: every character, the surrogates, and what is above U+10FFFF. */
#include "mcpvisor/utf8.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* By the code point; also of those that have no UTF-8. */
static size_t
encode(unsigned u, unsigned char out[4])
{
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t len = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;

	if (len == 1)
		out[0] = (unsigned char)u;
	for (size_t i = len; len > 1 && i-- > 0; u >>= 6)
		out[i] = (unsigned char)((i ? 0x80 : leads[len]) | (u & 0x3f));
	return len;
}

START_TEST(every_character_has_its_length)
{
	for (unsigned u = 0; u < 0x140000; u++) {
		bool good = u < 0xd800 || (u > 0xdfff && u < 0x110000);
		unsigned char c[4];
		size_t n = encode(u, c);

		ck_assert_uint_eq(utf8_length(c, n), good ? n : 0);
		for (size_t i = 1; i < n; i++)
			ck_assert_uint_eq(utf8_length(c, i), 0);
	}
}
END_TEST

/* Overlong ones, lead bytes of none, wrong bytes behind. */
static const char *const bad[] = {"\x80", "\xbf\x80", "\xc0\x80", "\xc1\xbf", "\xc2",
    "\xc2\x7f", "\xc2\xc0", "\xe0\x9f\xbf", "\xe0\xa0\x7f", "\xe1\x80\xc0",
    "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80\x7f", "\xf1\x80\xc0\x80",
    "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"};

START_TEST(nothing_else_is_one)
{
	const unsigned char *p = (const unsigned char *)bad[_i];

	ck_assert_uint_eq(utf8_length(p, strlen(bad[_i])), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("utf8");
	TCase *tc = tcase_create("utf8");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, every_character_has_its_length);
	tcase_add_loop_test(
	    tc, nothing_else_is_one, 0, (int)(sizeof(bad) / sizeof(bad[0])));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
