/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* The tables of methods, log levels and revisions. */
#include "mcpvisor/method.h"
#include "mcpvisor/revision.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jtext
text_of(const char *s)
{
	struct jtext t = {s, strlen(s)};

	return t;
}

static struct jtext
quoted(char *out, size_t size, const char *s)
{
	snprintf(out, size, "\"%s\"", s);
	return text_of(out);
}

START_TEST(knows_every_method)
{
	static const struct {
		enum method m;
		const char *name;
		unsigned from;
		bool legacy, modern, notification;
	} rows[] = {
#define X(id, name, from, legacy, modern, notification)                                  \
	{METHOD_##id, name, from, legacy, modern, notification},
	    METHOD_TABLE(X)
#undef X
	};
	char text[128];
	enum method m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m = method_parse(quoted(text, sizeof(text), rows[i].name));
		ck_assert_int_eq(m, rows[i].m);
		ck_assert_str_eq(method_name(m), rows[i].name);
		ck_assert_int_eq(method_is_in_era(m, false), rows[i].legacy);
		ck_assert_int_eq(method_is_in_era(m, true), rows[i].modern);
		ck_assert_int_eq(method_is_notification(m), rows[i].notification);
		ck_assert_int_eq(
		    method_is_from(m, METHOD_FROM_CLIENT), (rows[i].from & 1) != 0);
		ck_assert_int_eq(
		    method_is_from(m, METHOD_FROM_SERVER), (rows[i].from & 2) != 0);
		ck_assert_int_eq(strncmp(rows[i].name, "notifications/", 14) == 0,
		    rows[i].notification);
	}
}
END_TEST

static const struct {
	const char *text;
	enum method m;
} methods[] = {
    {"\"tools\\/call\"", METHOD_TOOLS_CALL},
    {"\"\\u0070ing\"", METHOD_PING},
    {"\"Ping\"", METHOD_UNKNOWN},
    {"\"pin\"", METHOD_UNKNOWN},
    {"\"pings\"", METHOD_UNKNOWN},
    {"\"ping\\u0000\"", METHOD_UNKNOWN},
    {"\"unknown\"", METHOD_UNKNOWN},
    {"\"\"", METHOD_UNKNOWN},
    {"ping", METHOD_UNKNOWN},
    {"12", METHOD_UNKNOWN},
    {"", METHOD_UNKNOWN},
};

START_TEST(parses_methods)
{
	ck_assert_int_eq(method_parse(text_of(methods[_i].text)), methods[_i].m);
}
END_TEST

START_TEST(unknown_method_is_nobodys)
{
	ck_assert(!method_is_in_era(METHOD_UNKNOWN, false));
	ck_assert(!method_is_in_era(METHOD_UNKNOWN, true));
	ck_assert(!method_is_from(METHOD_UNKNOWN, METHOD_FROM_CLIENT));
	ck_assert(!method_is_from(METHOD_UNKNOWN, METHOD_FROM_SERVER));
	ck_assert_ptr_nonnull(method_name(METHOD_UNKNOWN));
}
END_TEST

START_TEST(knows_what_may_require_input)
{
	unsigned n = 0;

	for (unsigned m = 0; m < METHOD_MAX; m++)
		n += method_may_require_input((enum method)m);
	ck_assert_uint_eq(n, 3);
	ck_assert(method_may_require_input(METHOD_TOOLS_CALL));
	ck_assert(method_may_require_input(METHOD_PROMPTS_GET));
	ck_assert(method_may_require_input(METHOD_RESOURCES_READ));
}
END_TEST

START_TEST(knows_the_levels)
{
	char text[32];
	unsigned lv;

	for (lv = 0; lv < MCP_LV_MAX; lv++) {
		ck_assert_int_eq(mcp_level_parse(quoted(text, sizeof(text),
				     mcp_level_text((enum mcp_level)lv))),
		    lv);
	}
	ck_assert_str_eq(mcp_level_text(MCP_LV_WARNING), "warning");
	ck_assert_ptr_nonnull(mcp_level_text(MCP_LV_MAX));
	ck_assert_int_eq(mcp_level_parse(text_of("\"warn\"")), MCP_LV_MAX);
	ck_assert_int_eq(mcp_level_parse(text_of("\"none\"")), MCP_LV_MAX);
	ck_assert_int_eq(mcp_level_parse(text_of("4")), MCP_LV_MAX);
	ck_assert_int_eq(mcp_level_parse(text_of("")), MCP_LV_MAX);
}
END_TEST

START_TEST(knows_the_revisions)
{
	char text[32];
	unsigned r;

	for (r = REVISION_NONE + 1; r < REVISION_MAX; r++) {
		const char *name = revision_text((enum revision)r);

		ck_assert_int_eq(revision_parse(quoted(text, sizeof(text), name)), r);
		ck_assert_int_eq(
		    revision_is_modern((enum revision)r), r >= REVISION_LATEST_MODERN);
		ck_assert_int_eq(
		    revision_has_batches((enum revision)r), r == REVISION_2025_03_26);
		ck_assert_int_eq(revision_has_event_ids((enum revision)r),
		    r >= REVISION_2025_03_26 && r <= REVISION_LATEST_LEGACY);
		ck_assert_int_eq(
		    revision_has_priming((enum revision)r), r == REVISION_2025_11_25);
		if (r > REVISION_NONE + 1)
			ck_assert_str_lt(revision_text((enum revision)(r - 1)), name);
	}
	ck_assert_int_eq(revision_parse(text_of("\"2025-03-27\"")), REVISION_NONE);
	ck_assert_int_eq(revision_parse(text_of("\"none\"")), REVISION_NONE);
	ck_assert_int_eq(revision_parse(text_of("2025")), REVISION_NONE);
	ck_assert_int_eq(revision_parse(text_of("")), REVISION_NONE);
	ck_assert(!revision_is_modern(REVISION_NONE));
	ck_assert(!revision_has_batches(REVISION_NONE));
	ck_assert(!revision_has_event_ids(REVISION_NONE));
	ck_assert(!revision_has_priming(REVISION_NONE));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("method");
	TCase *tc = tcase_create("method");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, knows_every_method);
	tcase_add_loop_test(
	    tc, parses_methods, 0, (int)(sizeof(methods) / sizeof(methods[0])));
	tcase_add_test(tc, unknown_method_is_nobodys);
	tcase_add_test(tc, knows_what_may_require_input);
	tcase_add_test(tc, knows_the_levels);
	tcase_add_test(tc, knows_the_revisions);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
