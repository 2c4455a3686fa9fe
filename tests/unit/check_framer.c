/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * The framer: a table of inputs, each fed whole and then a byte at a time.
 */
#include "mcpvisor/framer.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#define MAX 8

/* Expected events: each line as "text|", one over the limit as "LONG(text)|". */
struct framer_case {
	const char *in;
	size_t len;
	const char *want;
};
#define IN(s) (s), sizeof(s) - 1

static const struct framer_case cases[] = {
    {IN(""), ""},
    {IN("a"), "a|"},
    {IN("a\n"), "a|"},
    {IN("a\nb"), "a|b|"},
    {IN("\n\n"), "||"},
    {IN("\r\n"), "|"},
    {IN("a\r\nb\r\n"), "a|b|"},
    {IN("a\r\r\n"), "a|"},
    {IN("a\rb\n"), "a\rb|"},
    {IN("a\r"), "a|"},
    {IN("\xef\xbb\xbf{}\n"), "{}|"},
    {IN("\xef\xbb\xbf"), "|"},
    {IN("\xef\xbb\xbf\n\xef\xbb\xbf\n"), "|\xef\xbb\xbf|"},
    {IN("\xef\xbb"), "\xef\xbb|"},
    {IN("\xef\nx\n"), "\xef|x|"},
    {IN("x\n\xef\xbb\xbfy\n"), "x|\xef\xbb\xbfy|"},
    {IN("12345678\n"), "12345678|"},
    {IN("12345678\r\n"), "12345678|"},
    {IN("12345678\r\r\r\r\n1\n"), "12345678|1|"},
    {IN("12345678"), "12345678|"},
    {IN("12345678\r"), "12345678|"},
    {IN("\xef\xbb\xbf"
	"12345678\n"),
	"12345678|"},
    {IN("\xef\xbb\xbf"
	"123456789\n"),
	"LONG(123456789)|"},
    {IN("123456789\na\n"), "LONG(123456789)|a|"},
    {IN("123456789"), "LONG(123456789)|"},
    {IN("12345678\rx\na"), "LONG(12345678\rx)|a|"},
    {IN("1234567890123456789012345\n\nb\n"), "LONG(1234567890123456789012345)||b|"},
    {IN("\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\n"), "|"},
    {IN("\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\na\n"),
	"LONG(\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r)|a|"},
};

static bool
take(struct buf *out, bool *in_long, enum framer_event ev, const char *line, size_t len)
{
	if (ev == FRAMER_NEED)
		return false;
	if (ev != FRAMER_LINE && !*in_long)
		buf_add_str(out, "LONG(");
	*in_long = ev == FRAMER_LONG;
	buf_add(out, line, len);
	if (ev == FRAMER_LONG_END)
		buf_add_str(out, ")");
	if (ev != FRAMER_LONG)
		buf_add_str(out, "|");
	return true;
}

/* Bytes arrive in steps; each look gets a copy of the exact size, so that a
 * sanitizer sees a read beyond it. */
static void
run(const struct framer_case *c, size_t step, struct buf *out)
{
	size_t at = 0, have = 0, len, consume;
	bool in_long = false;
	struct framer f;
	const char *line;

	framer_init(&f, MAX);
	for (;;) {
		bool last = at + have == c->len;
		char *copy = mem_xalloc(have + 1);
		enum framer_event ev;
		bool more;

		copy = mem_xrealloc(copy, have ? have : 1);
		memcpy(copy, c->in + at, have);
		ev = last ? framer_finish(&f, copy, have, &line, &len, &consume)
			  : framer_next(&f, copy, have, &line, &len, &consume);
		ck_assert_uint_le(consume, have);
		more = take(out, &in_long, ev, line, len);
		ck_assert(more || consume == 0);
		mem_free(copy);
		at += consume;
		have -= consume;
		if (!more && last)
			break;
		if (!more)
			have += step < c->len - at - have ? step : c->len - at - have;
	}
	ck_assert_uint_eq(at, c->len);
	ck_assert(!in_long);
}

START_TEST(test_table)
{
	const struct framer_case *c = &cases[_i];
	const size_t steps[] = {1, 2, 3, 7, 1000};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct buf out;

		buf_init(&out, 4096);
		run(c, steps[i], &out);
		ck_assert_str_eq(buf_cstr(&out), c->want);
		buf_fini(&out);
	}
}
END_TEST

/* A line that arrives slowly is not searched again from its start. */
START_TEST(test_scans_once)
{
	char text[4] = "ab\n";
	size_t len, consume;
	const char *line;
	struct framer f;

	framer_init(&f, 100);
	ck_assert_int_eq(framer_next(&f, text, 2, &line, &len, &consume), FRAMER_NEED);
	ck_assert_uint_eq(f.scanned, 2);
	text[0] = '\n'; /* behind the mark: not looked at */
	ck_assert_int_eq(framer_next(&f, text, 3, &line, &len, &consume), FRAMER_LINE);
	ck_assert_uint_eq(len, 2);
	ck_assert_uint_eq(f.scanned, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("framer");
	TCase *tc = tcase_create("framer");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, test_table, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_test(tc, test_scans_once);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
