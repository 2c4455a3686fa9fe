/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* Whatever is logged, a line in JSON is one well-formed object. */
#include "mcpvisor/json_scan.h"
#include "mcpvisor/log.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 20000

static unsigned g_lines;
static uint64_t g_state;

static unsigned
pick(unsigned limit)
{
	g_state = g_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(g_state >> 33) % limit;
}

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	struct json_msg json;

	(void)level;
	(void)arg;
	g_lines++;
	ck_assert_uint_lt(len, 4096);
	ck_assert_ptr_null(memchr(line, '\n', len));
	if (json_scan(&json, line, len, false) != MV_OK || json.kind != JSON_K_OBJECT)
		ck_abort_msg("not JSON: %s", line);
}

/* Bytes that mean something to one of the two formats, and any others. */
static void
fill(char *out, size_t n)
{
	static const char likely[] =
	    "\"\"\\\\  ==xn0.1-e{}[],:\x01\n\x7f\xc3\xa9\xe2\x82";

	for (size_t i = 0; i < n; i++) {
		out[i] =
		    pick(4) ? likely[pick(sizeof(likely) - 1)] : (char)(1 + pick(255));
	}
	out[n] = '\0';
}

static void
say(unsigned form, const char *a, const char *b)
{
	switch (form) {
	case 0:
		LOG_INFO("m", "e", "%s", a);
		break;
	case 1:
		LOG_INFO("m", "e", "a=%s b=\"%s\" c=%u", a, b, pick(1000));
		break;
	case 2:
		LOG_INFO("m", "e", "a=%s b=%s c=-%u.5", LOG_ESC(a, strlen(a)),
		    LOG_ESC(b, strlen(b)), pick(1000));
		break;
	default:
		LOG_INFO("m", "e", "n=%s a=%s n=%s", b, LOG_ESC(a, strlen(a)), a);
		break;
	}
}

START_TEST(every_line_is_json)
{
	static char a[6000], b[6000];

	log_set_sink(on_line, NULL);
	log_set_level(LOG_LV_INFO);
	log_set_format(LOG_FMT_JSON);
	g_state = (uint64_t)_i + 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* Short ones, and such as end around the bound of a line. */
		fill(a, pick(8) ? pick(40) : pick(5000));
		fill(b, pick(8) ? pick(40) : pick(5000));
		say(pick(4), a, b);
	}
	ck_assert_uint_eq(g_lines, ROUNDS * (unsigned)(_i + 1));
	log_set_format(LOG_FMT_TEXT);
	log_set_level(LOG_LV_NOTICE);
	log_set_sink(NULL, NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log_json");
	TCase *tc = tcase_create("log_json");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_line_is_json, 0, 3);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
