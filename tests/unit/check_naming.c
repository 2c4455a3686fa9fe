/* layer: gateway */
/* SPDX-License-Identifier: MIT */
/* Published names: charset, the reversible map, the budget, the forms. */
#include "mcpvisor/naming.h"

#include "mcpvisor/caps.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHARSET                                                                          \
	"abcdefghijklmnopqrstuvwxyz"                                                     \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"                                                     \
	"0123456789_-"
#define X10 "xxxxxxxxxx"
#define X60 X10 X10 X10 X10 X10 X10

static const struct {
	const char *name, *mapped;
} maps[] = {
    {"", ""},
    {"search_issues", "search_issues"},
    {CHARSET, CHARSET},
    {"a.b", "a_x2eb"},
    {"a/b c", "a_x2fb_x20c"},
    {"a\xc3\xa4", "a_xc3_xa4"},
    {"\x01\x7f", "_x01_x7f"},
    /* What looks like an escape is escaped itself. */
    {"a_x2e", "a_x5fx2e"},
    {"_x5f", "_x5fx5f"},
    {"_x5fx2e", "_x5fx5fx2e"},
    {"__x2e", "__x5fx2e"},
    {"_x2e_x2e", "_x5fx2e_x5fx2e"},
    /* What does not stays. */
    {"_x", "_x"},
    {"_x2", "_x2"},
    {"_x2E", "_x2E"},
    {"_xyz", "_xyz"},
    {"_.", "__x2e"},
    {"_x.", "_x_x2e"},
    {"_x2.", "_x2_x2e"},
};

START_TEST(maps_reversibly)
{
	const char *name = maps[_i].name;
	struct buf there, back;

	buf_init(&there, 4096);
	buf_init(&back, 4096);
	naming_map(name, strlen(name), &there);
	ck_assert_str_eq(buf_cstr(&there), maps[_i].mapped);
	naming_unmap(there.data, there.len, &back);
	ck_assert_str_eq(buf_cstr(&back), name);
	buf_fini(&there);
	buf_fini(&back);
}
END_TEST

/* Bytes from a small alphabet, so that escapes come up by chance. */
static size_t
random_name(char *name, size_t max, bool any)
{
	static const char likely[] = "_xXeEfF0259._";
	size_t n = (size_t)rand() % (max + 1);

	for (size_t i = 0; i < n; i++)
		name[i] = any ? (char)(rand() & 0xff)
			      : likely[(size_t)rand() % (sizeof(likely) - 1)];
	return n;
}

START_TEST(any_bytes_come_back)
{
	struct buf there, back;
	char name[40];

	srand(7);
	buf_init(&there, 4096);
	buf_init(&back, 4096);
	for (unsigned i = 0; i < 50000; i++) {
		size_t n = random_name(name, sizeof(name), i % 2 == 0);

		buf_reset(&there);
		buf_reset(&back);
		naming_map(name, n, &there);
		for (size_t k = 0; k < there.len; k++)
			ck_assert_ptr_nonnull(
			    memchr(CHARSET, there.data[k], strlen(CHARSET)));
		naming_unmap(there.data, there.len, &back);
		ck_assert_uint_eq(back.len, n);
		if (n > 0)
			ck_assert_mem_eq(back.data, name, n);
	}
	buf_fini(&there);
	buf_fini(&back);
}
END_TEST

static const struct {
	const char *upstream, *prefix, *name;
	enum naming_form form;
	const char *published;
} names[] = {
    {"alpha", NULL, "echo", NAMING_PREFERRED, "alpha__echo"},
    {"alpha", "", "echo", NAMING_PREFERRED, "echo"},
    {"alpha", "a_", "echo", NAMING_PREFERRED, "a_echo"},
    {"alpha", "a.", "echo", NAMING_PREFERRED, "a_x2eecho"},
    {"my server/x", NULL, "a.b", NAMING_PREFERRED, "my_x20server_x2fx__a_x2eb"},
    {"alpha", "", "echo", NAMING_QUALIFIED, "alpha__echo"},
    {"alpha", "a_", "echo", NAMING_QUALIFIED, "alpha__echo"},
    {"alpha", NULL, "t", NAMING_HASHED, "alpha__t_13fad4a3f6d6d69f"},
    {"alpha", "", "t", NAMING_HASHED, "t_13fad4a3f6d6d69f"},
    /* 48 bytes are the budget. */
    {"alpha", "", X10 X10 X10 X10 "12345678", NAMING_PREFERRED,
	X10 X10 X10 X10 "12345678"},
    {"alpha", NULL, X60 "one", NAMING_PREFERRED, "alpha__" X10 X10 X10 "xx_b0d58a34"},
    {"alpha", NULL, X60 "two", NAMING_PREFERRED, "alpha__" X10 X10 X10 "xx_59ae13ba"},
    /* Upstream and name alone decide the hash, not the prefix. */
    {"alpha", "", X60 "one", NAMING_PREFERRED, X10 X10 X10 "xxxxxxxxx_b0d58a34"},
    {"alpha", "p", X60 "one", NAMING_PREFERRED, "p" X10 X10 X10 "xxxxxxxx_b0d58a34"},
    {"beta", "", X60 "one", NAMING_PREFERRED, X10 X10 X10 "xxxxxxxxx_514f4e85"},
    {"alpha", "", X60 "one", NAMING_QUALIFIED, "alpha__" X10 X10 X10 "xx_b0d58a34"},
    {"alpha", "", X60 "one", NAMING_HASHED, X10 X10 X10 "x_6a0ce63fdad96c0b"},
};

START_TEST(publishes_names)
{
	struct buf out;

	buf_init(&out, 4096);
	/* What stands before it is not part of it. */
	buf_add_str(&out, "before:");
	naming_publish(
	    &(struct naming){names[_i].upstream, names[_i].prefix, CAP_NAME_BYTES},
	    names[_i].name, strlen(names[_i].name), names[_i].form, &out);
	ck_assert_str_eq(buf_cstr(&out) + 7, names[_i].published);
	ck_assert_uint_le(out.len - 7, CAP_NAME_BYTES);
	buf_fini(&out);
}
END_TEST

/* A thousand names that begin alike: short, in the charset, and all different. */
START_TEST(short_forms_differ)
{
	static char seen[1000][CAP_NAME_BYTES + 1];
	char name[80];
	struct buf out;

	buf_init(&out, 4096);
	for (unsigned i = 0; i < 1000; i++) {
		int n = snprintf(name, sizeof(name), "%s%03u", X60, i);

		buf_reset(&out);
		naming_publish(&(struct naming){"alpha", NULL, CAP_NAME_BYTES}, name,
		    (size_t)n, NAMING_PREFERRED, &out);
		ck_assert_uint_eq(out.len, CAP_NAME_BYTES);
		memcpy(seen[i], buf_cstr(&out), out.len + 1);
		for (unsigned k = 0; k < i; k++)
			ck_assert_str_ne(seen[k], seen[i]);
	}
	buf_fini(&out);
}
END_TEST

static const struct {
	size_t budget;
	const char *name, *published;
	enum naming_form form;
} budgets[] = {
    {24, "123456789012345678901234", "123456789012345678901234", NAMING_PREFERRED},
    {24, "1234567890123456789012345", "123456789012345_13c9856f", NAMING_PREFERRED},
    {25, "1234567890123456789012345", "1234567890123456789012345", NAMING_PREFERRED},
    {24, "123456789012345678901234", "1234567_49ee39ee5f350739", NAMING_HASHED},
    {24, "t", "t_13fad4a3f6d6d69f", NAMING_HASHED},
    {128, X60 X60 "12345678", X60 X60 "12345678", NAMING_PREFERRED},
    {128, X60 X60 "123456789", X60 "xxxxxxxxxx" X10 X10 X10 X10 "xxxxxxxxx_88f98900",
	NAMING_PREFERRED},
};

START_TEST(budget_is_kept)
{
	struct naming y = {"alpha", "", budgets[_i].budget};
	struct buf out;

	buf_init(&out, 4096);
	naming_publish(
	    &y, budgets[_i].name, strlen(budgets[_i].name), budgets[_i].form, &out);
	ck_assert_str_eq(buf_cstr(&out), budgets[_i].published);
	ck_assert_uint_le(out.len, y.budget);
	buf_fini(&out);
}
END_TEST

START_TEST(full_buffer_is_no_name)
{
	struct buf out;

	buf_init(&out, 5);
	naming_publish(&(struct naming){"alpha", NULL, CAP_NAME_BYTES}, "echo", 4,
	    NAMING_HASHED, &out);
	ck_assert_int_eq(out.err, MV_TOO_LONG);
	buf_fini(&out);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("naming");
	TCase *tc = tcase_create("naming");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(
	    tc, maps_reversibly, 0, (int)(sizeof(maps) / sizeof(maps[0])));
	tcase_add_test(tc, any_bytes_come_back);
	tcase_add_loop_test(
	    tc, publishes_names, 0, (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_loop_test(
	    tc, budget_is_kept, 0, (int)(sizeof(budgets) / sizeof(budgets[0])));
	tcase_add_test(tc, short_forms_differ);
	tcase_add_test(tc, full_buffer_is_no_name);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
