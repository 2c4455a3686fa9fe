/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/*
 * The scanner: what it accepts, against the corpus and jansson, whole and in
 * pieces; depth and length.
 */
#include "scan_ways.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* What we take on purpose and jansson does not: lone surrogates, NUL in a key,
 * numbers that have no double or long long. */
static bool
jansson_agrees(bool accepted, const char *p, size_t n)
{
	json_error_t e;
	json_t *j = json_loadb(p, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);

	if (j != NULL) {
		json_decref(j);
		/* jansson 2.14 overlooks a NUL after a number or a literal. */
		return accepted || memchr(p, '\0', n) != NULL;
	}
	if (!accepted)
		return true;
	return json_error_code(&e) == json_error_numeric_overflow ||
	       json_error_code(&e) == json_error_null_byte_in_key ||
	       strstr(e.text, "invalid Unicode") != NULL;
}

static size_t
read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(buf, 1, size, f);
	ck_assert_uint_lt(n, size);
	fclose(f);
	return n;
}

static void
check_folder(const char *verdict, bool valid)
{
	const char *corpus = getenv("CORPUS");
	char folder[512], path[1024], text[4096];
	struct dirent *d;
	struct result r;
	unsigned files = 0;
	size_t n;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/json/%s",
	    corpus != NULL ? corpus : "tests/corpus", verdict);
	dir = opendir(folder);
	ck_assert_msg(dir != NULL, "no folder %s", folder);
	while ((d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		n = read_file(path, text, sizeof(text));
		scan_all_ways(&r, text, n);
		ck_assert_msg(
		    (r.err == MV_OK) == valid, "%s: %s", path, mv_err_text(r.err));
		ck_assert_msg(jansson_agrees(valid, text, n), "%s: jansson", path);
		files++;
	}
	closedir(dir);
	ck_assert_uint_ge(files, 20);
}

START_TEST(keeps_to_the_corpus)
{
	check_folder("valid", true);
	check_folder("invalid", false);
}
END_TEST

static const struct {
	const char *text;
	enum mv_err err;
} verdicts[] = {
    {"\"\xc3\xa9\"", MV_OK},
    {"\"\xff\"", MV_UTF8},
    {"\"\xe2\x82\"", MV_UTF8},
    {"\"\xed\xa0\x80\"", MV_UTF8},
    {"{\"a\":\"\xc0\xaf\",\"b\":1}", MV_UTF8},
    {"\xff", MV_SYNTAX},
    {"\"\xff", MV_UTF8},
    {"[\"\xff\",}", MV_UTF8},
    {"[1,}", MV_SYNTAX},
    {"", MV_SYNTAX},
    {"-", MV_SYNTAX},
    {"1e400", MV_OK},
    {"\"\\ud800\"", MV_OK},
};

START_TEST(tells_the_errors_apart)
{
	struct result r;

	scan_all_ways(&r, verdicts[_i].text, strlen(verdicts[_i].text));
	ck_assert_int_eq(r.err, verdicts[_i].err);
}
END_TEST

/* {"result":[[ … ]],"id":7} with depth containers in all. */
static char *
nested(size_t depth, bool closed, size_t *n)
{
	static const char head[] = "{\"result\":", tail[] = ",\"id\":7}";
	char *text = mem_xalloc(2 * depth + sizeof(head) + sizeof(tail)), *p = text;

	memcpy(p, head, sizeof(head) - 1);
	p += sizeof(head) - 1;
	memset(p, '[', depth - 1);
	p += depth - 1;
	if (closed) {
		memset(p, ']', depth - 1);
		p += depth - 1;
		memcpy(p, tail, sizeof(tail) - 1);
		p += sizeof(tail) - 1;
	}
	*n = (size_t)(p - text);
	return text;
}

static const struct {
	size_t depth;
	bool closed;
	enum mv_err err;
} depths[] = {
    {CAP_JSON_DEPTH, true, MV_OK},
    {CAP_JSON_DEPTH + 1, true, MV_TOO_DEEP},
    {CAP_JSON_DEPTH, false, MV_SYNTAX},
    {1000000, true, MV_TOO_DEEP},
    {1000000, false, MV_TOO_DEEP},
};

START_TEST(bounds_depth)
{
	struct result whole, pieces;
	size_t n;
	char *text = nested(depths[_i].depth, depths[_i].closed, &n);

	scan_pieces(&whole, text, n, 0, 0);
	ck_assert_int_eq(whole.err, depths[_i].err);
	ck_assert_uint_eq(whole.msg.slot[JSON_ID].len, depths[_i].closed ? 1 : 0);
	scan_pieces(&pieces, text, n, 3, 977);
	assert_same(&whole, &pieces);
	mem_free(text);
}
END_TEST

START_TEST(bounds_depth_of_objects)
{
	struct json_scan s;
	struct json_msg msg;
	unsigned i;

	json_scan_init(&s, &msg, false);
	for (i = 0; i < CAP_JSON_DEPTH; i++)
		ck_assert_int_eq(json_scan_feed(&s, "{\"a\":", 5), MV_OK);
	ck_assert_int_eq(json_scan_feed(&s, "{", 1), MV_TOO_DEEP);
}
END_TEST

START_TEST(reads_on_below_the_bound)
{
	static const char text[] = "{\"a\":[{\"b\":\"]}\\\"]\\\\\"},{},1,[[]]],"
				   "\"result\":[{\"id\":3}],\"id\":7}";
	struct json_scan s;
	struct json_msg msg;
	size_t i;

	json_scan_init(&s, &msg, false);
	s.max_depth = 2;
	for (i = 0; i < sizeof(text) - 1; i++)
		(void)!json_scan_feed(&s, text + i, 1);
	ck_assert_int_eq(json_scan_end(&s), MV_TOO_DEEP);
	ck_assert_mem_eq(text + msg.slot[JSON_RESULT].off, "[{\"id\":3}]", 10);
	ck_assert_mem_eq(text + msg.slot[JSON_ID].off, "7", 1);
}
END_TEST

START_TEST(stops_at_four_gigabytes)
{
	struct json_scan s;
	struct json_msg msg;

	json_scan_init(&s, &msg, false);
	ck_assert_int_eq(json_scan_feed(&s, "[ ", 2), MV_OK);
	s.pos = UINT32_MAX - 3;
	ck_assert_int_eq(json_scan_feed(&s, "   ", 3), MV_OK);
	ck_assert_int_eq(json_scan_feed(&s, "]", 1), MV_TOO_LONG);
	ck_assert_int_eq(json_scan_feed(&s, "]", 1), MV_TOO_LONG);
	ck_assert_int_eq(json_scan_end(&s), MV_TOO_LONG);
}
END_TEST

static uint64_t random_state = 0x9e3779b97f4a7c15;

static size_t
random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state >> 11) % n;
}

/* One byte changed, put in or taken out; returns the new length. */
static size_t
mutate(char *text, size_t n)
{
	static const char likely[] =
	    "{}[]\",:\\/u0123456789eE+-. \t\ntfanrul\xc3\xa9\xed";
	size_t at = random_below(n);
	char c = random_below(4) == 0 ? (char)random_below(256)
				      : likely[random_below(sizeof(likely))];

	switch (random_below(3)) {
	case 0:
		text[at] = c;
		return n;
	case 1:
		memmove(text + at + 1, text + at, n - at);
		text[at] = c;
		return n + 1;
	default:
		memmove(text + at, text + at + 1, n - at - 1);
		return n - 1;
	}
}

START_TEST(agrees_with_jansson)
{
	static const char *const seeds[] = {
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"name\":\"b\"}}",
	    "[1,-0.5e+10,true,false,null,\"\\u00e9\\n\\\\\",{\"a\":[]}]",
	    "{\"a\":\"\xe2\x82\xac\xf0\x9f\x98\x80 \xc3\xa9 text\",\"b\":0}",
	    " { \"id\" : \"\\ud83d\\ude00\" , \"result\" : { \"uri\" : \"file:///\" } } ",
	};
	struct result whole, pieces;
	char text[256];
	unsigned round, edits;
	size_t n;

	for (round = 0; round < 20000; round++) {
		n = strlen(seeds[round % 4]);
		memcpy(text, seeds[round % 4], n);
		for (edits = (unsigned)random_below(3); edits < 3; edits++)
			n = mutate(text, n);
		scan_pieces(&whole, text, n, 0, 0);
		ck_assert_msg(jansson_agrees(whole.err == MV_OK, text, n),
		    "round %u: %s: %.*s", round, mv_err_text(whole.err), (int)n, text);
		scan_pieces(&pieces, text, n, 1 + random_below(n), 1 + random_below(9));
		assert_same(&whole, &pieces);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json_scan");
	TCase *tc = tcase_create("json_scan");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, keeps_to_the_corpus);
	tcase_add_loop_test(tc, tells_the_errors_apart, 0, ROWS(verdicts));
	tcase_add_loop_test(tc, bounds_depth, 0, ROWS(depths));
	tcase_add_test(tc, bounds_depth_of_objects);
	tcase_add_test(tc, reads_on_below_the_bound);
	tcase_add_test(tc, stops_at_four_gigabytes);
	tcase_add_test(tc, agrees_with_jansson);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
