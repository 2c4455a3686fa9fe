/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* How a program's end reads as a tool's answer. */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"

#include "fake/fake_tree.h"

#include <check.h>

static struct buf out;

static void
setup(void)
{
	buf_init(&out, CAP_MESSAGE_BYTES);
}

static void
teardown(void)
{
	buf_fini(&out);
}

#define T(s)                                                                             \
	{                                                                                \
		(s), sizeof(s) - 1                                                       \
	}
#define BLOCK(s)  "{\"type\":\"text\",\"text\":\"" s "\"}"
#define GOOD(s)	  "{\"content\":[" s "]}"
#define FAILED(s) "{\"content\":[" s "],\"isError\":true}"
#define ON_ERROR  .limits = {.err = EXEC_STDERR_ON_ERROR, .timeout_ms = 30000}
#define JSON_FAULT                                                                       \
	"Tool 'x' promised JSON and wrote something that is not one JSON value. "

static const int zero_one[] = {0, 1};

static const struct {
	struct exec_rules rules;
	struct run_end end;
	const char *want;
} rows[] = {
    /* Exits. */
    {{ON_ERROR}, {.out = T("hello\n")}, GOOD(BLOCK("hello"))},
    {{ON_ERROR}, {.out = T("a\n\nb\n\n\n")}, GOOD(BLOCK("a\\n\\nb"))},
    {{ON_ERROR}, {.out = T("")}, GOOD(BLOCK(""))},
    {{ON_ERROR}, {.out = T("ok"), .err = T("warned")}, GOOD(BLOCK("ok"))},
    {{ON_ERROR}, {.status = 1, .out = T("Invalid age\n")}, FAILED(BLOCK("Invalid age"))},
    {{ON_ERROR}, {.status = 3}, FAILED(BLOCK("Tool 'x' failed with exit status 3"))},
    {{ON_ERROR}, {.status = 1, .err = T("no such\n")}, FAILED(BLOCK("no such"))},
    {{ON_ERROR}, {.status = 1, .out = T("a"), .err = T("b\n")},
	FAILED(BLOCK("a") "," BLOCK("b"))},
    {{ON_ERROR}, {.status = 127, .err = T("sh: gone")}, FAILED(BLOCK("sh: gone"))},
    {{.limits.err = EXEC_STDERR_DROP}, {.status = 1, .err = T("hidden")},
	FAILED(BLOCK("Tool 'x' failed with exit status 1"))},
    {{.limits.err = EXEC_STDERR_LOG}, {.status = 1, .out = T("a"), .err = T("hidden")},
	FAILED(BLOCK("a"))},
    {{.success = zero_one, .n_success = 2, ON_ERROR}, {.status = 1}, GOOD(BLOCK(""))},
    {{.success = zero_one, .n_success = 2, ON_ERROR}, {.status = 2, .err = T("bad")},
	FAILED(BLOCK("bad"))},
    {{.success = zero_one + 1, .n_success = 1, ON_ERROR}, {.status = 0},
	FAILED(BLOCK("Tool 'x' failed with exit status 0"))},
    /* Other ends. */
    {{ON_ERROR}, {.how = RUN_SIGNALED, .status = 9},
	FAILED(BLOCK("Tool 'x' was ended by signal 9 (KILL)"))},
    {{ON_ERROR}, {.how = RUN_SIGNALED, .status = 11, .out = T("part\n"), .err = T("e")},
	FAILED(BLOCK("Tool 'x' was ended by signal 11 (SEGV)") "," BLOCK(
	    "part") "," BLOCK("e"))},
    {{ON_ERROR}, {.how = RUN_TIMED_OUT, .out = T("so far")},
	FAILED(BLOCK("Tool 'x' did not finish within 30 s and was stopped. Output so far "
		     "follows. Retrying unchanged will probably time out again; ask for "
		     "less.") "," BLOCK("so far"))},
    {{.has_effects = true, .limits = {.timeout_ms = 1500}}, {.how = RUN_TIMED_OUT},
	FAILED(BLOCK("Tool 'x' did not finish within 1.500 s and was stopped. Retrying "
		     "unchanged will probably time out again; ask for less. It may have "
		     "had effects."))},
    {{.limits = {.output_max = 4}},
	{.how = RUN_OVERFLOWED, .out = T("abcd"), .out_total = 9},
	FAILED(BLOCK(
	    "Tool 'x' wrote more than 4 bytes and was stopped. Output so far "
	    "follows. Retrying unchanged will fail again; ask for less.") "," BLOCK("abc"
										    "d") "," BLOCK("Output cut: kept 4 of at least 9 bytes"))},
    /* Cuts and repairs. */
    {{ON_ERROR}, {.out = T("abc\n"), .out_total = 100},
	GOOD(BLOCK("abc\\n") "," BLOCK("Output cut: kept 4 of at least 100 bytes"))},
    {{ON_ERROR}, {.out = T("ab\xe2\x82"), .out_total = 100},
	GOOD(BLOCK("ab") "," BLOCK("Output cut: kept 2 of at least 100 bytes"))},
    {{ON_ERROR}, {.out = T("ab\xe2\x82\xac"), .out_total = 100},
	GOOD(BLOCK("ab\xe2\x82\xac") "," BLOCK(
	    "Output cut: kept 5 of at least 100 bytes"))},
    {{ON_ERROR}, {.status = 1, .out = T("abc"), .out_total = 100},
	FAILED(BLOCK("abc") "," BLOCK("Output cut: kept 3 of at least 100 bytes"))},
    {{ON_ERROR},
	{.out = T("a\xff"
		  "b")},
	GOOD(BLOCK("a\xef\xbf\xbd"
		   "b") "," BLOCK("Output repaired: 1 bytes that are not UTF-8 are shown "
				  "as U+FFFD"))},
    {{ON_ERROR},
	{.out = T("a\x01\0"
		  "b\"\\")},
	GOOD(BLOCK("a\\u0001\\u0000b\\\"\\\\"))},
    /* JSON. */
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("{\"a\":12345678901234567890}\n")},
	"{\"content\":[" BLOCK(
	    "{\\\"a\\\":12345678901234567890}") "],"
						"\"structuredContent\":{\"a\":"
						"12345678901234567890}}"},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T(" {\"a\":\n\t1.0, \"a\" : 2}\n")},
	"{\"content\":[" BLOCK(
	    " {\\\"a\\\":\\n\\t1.0, \\\"a\\\" : 2}") "],"
						     "\"structuredContent\":{\"a\": "
						     "\t1.0, \"a\" : 2}}"},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("[1,2]")}, GOOD(BLOCK("[1,2]"))},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("12")}, GOOD(BLOCK("12"))},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("{} {}")},
	FAILED(BLOCK(JSON_FAULT "Output begins: {} {}"))},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("")},
	FAILED(BLOCK(JSON_FAULT "It wrote nothing."))},
    {{.output = EXEC_OUTPUT_JSON}, {.out = T("{}"), .out_total = 3},
	FAILED(BLOCK(JSON_FAULT "Output begins: {}") "," BLOCK(
	    "Output cut: kept 2 of at least 3 bytes"))},
    {{.output = EXEC_OUTPUT_JSON}, {.status = 1, .out = T("{\"a\":1}")},
	FAILED(BLOCK("{\\\"a\\\":1}"))},
    /* Bytes. */
    {{.output = EXEC_OUTPUT_BASE64, .mime = "image/png"}, {.out = T("\x89PNG\n\xff")},
	"{\"content\":[{\"type\":\"image\",\"data\":\"iVBORwr/\","
	"\"mimeType\":\"image/png\"}]}"},
    {{.output = EXEC_OUTPUT_BASE64, .mime = "audio/wav"}, {.out = T("a")},
	"{\"content\":[{\"type\":\"audio\",\"data\":\"YQ==\","
	"\"mimeType\":\"audio/wav\"}]}"},
    {{.output = EXEC_OUTPUT_BASE64, .mime = "image/png"}, {.status = 1, .out = T("no")},
	FAILED(BLOCK("no"))},
    {{.output = EXEC_OUTPUT_BASE64, .mime = "image/png", .limits = {.output_max = 1}},
	{.out = T("a"), .out_total = 2},
	FAILED(BLOCK("Tool 'x' wrote more than 1 bytes, which are of no use when cut"))},
};

START_TEST(ends_are_results)
{
	struct exec_rules rules = rows[_i].rules;
	struct run_end end = rows[_i].end;

	rules.tool = "x";
	if (end.out_total == 0)
		end.out_total = end.out.n;
	exec_result_put(&out, &rules, &end);
	ck_assert_str_eq(buf_cstr(&out), rows[_i].want);
	ck_assert_ptr_null(memchr(out.data, '\n', out.len));
}
END_TEST

/* A name that is hostile stays a text. */
START_TEST(names_are_text)
{
	struct exec_rules rules = {.tool = "a\"\n\x01\\", .output = EXEC_OUTPUT_TEXT};
	struct run_end end = {.status = 5};

	exec_result_put(&out, &rules, &end);
	tree_assert_object(out.data, out.len);
	ck_assert_ptr_null(memchr(out.data, '\n', out.len));
}
END_TEST

/* Whatever is written, in all kinds of output and of ends. */
START_TEST(any_bytes_are_one_object)
{
	unsigned char bytes[64];
	unsigned seed = (unsigned)_i;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		seed = seed * 1103515245u + 12345u;
		bytes[i] = (unsigned char)(seed >> 16);
		if (bytes[i] == 0) /* the other parser takes none */
			bytes[i] = 0x80;
	}
	for (unsigned k = 0; k < 3 * 4; k++) {
		struct exec_rules rules = {.tool = "x",
		    .output = (enum exec_output)(k % 3),
		    .mime = "image/png",
		    ON_ERROR};
		struct run_end end = {.how = (enum run_how)(k / 3),
		    .out = {(const char *)bytes, seed % 64},
		    .err = {(const char *)bytes + 32, 32},
		    .out_total = seed % 64 + (seed >> 8) % 2};

		buf_reset(&out);
		exec_result_put(&out, &rules, &end);
		tree_assert_object(out.data, out.len);
		ck_assert_ptr_null(memchr(out.data, '\n', out.len));
	}
}
END_TEST

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("exec_result");

	tcase_add_loop_test(
	    tc, ends_are_results, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tc, names_are_text);
	tcase_add_loop_test(tc, any_bytes_are_one_object, 0, 200);
	return run_suite(suite_create("exec_result"), tc);
}
