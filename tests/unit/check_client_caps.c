/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* What clients can be asked, read and written. */
#include "mcpvisor/client_caps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE	 CLIENT_CAP_SAMPLING
#define ELICIT	 CLIENT_CAP_ELICITATION
#define FORM	 CLIENT_CAP_ELICITATION_FORM
#define URL_MODE CLIENT_CAP_ELICITATION_URL

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, strlen(s)};
}

START_TEST(reads_and_writes)
{
	static const struct {
		const char *in;
		unsigned caps;
		const char *legacy, *modern;
	} rows[] = {
	    {"", 0, "{}", "{}"},
	    {"[]", 0, "{}", "{}"},
	    {"{}", 0, "{}", "{}"},
	    {"{\"sampling\":{}}", SAMPLE, "{\"sampling\":{}}", "{\"sampling\":{}}"},
	    {"{\"sampling\":null,\"roots\":1}", 0, "{}", "{}"},
	    {"{\"s\\u0061mpling\":{\"tools\":{},\"x\":{}}}",
		SAMPLE | CLIENT_CAP_SAMPLING_TOOLS, "{\"sampling\":{\"tools\":{}}}",
		"{\"sampling\":{\"tools\":{}}}"},
	    /* Before modes had names there was only the form. */
	    {"{\"elicitation\":{}}", ELICIT | FORM, "{\"elicitation\":{\"form\":{}}}",
		"{\"elicitation\":{\"form\":{}}}"},
	    {"{\"elicitation\":{\"url\":{}}}", ELICIT | URL_MODE,
		"{\"elicitation\":{\"url\":{}}}", "{\"elicitation\":{\"url\":{}}}"},
	    {"{\"roots\":{\"listChanged\":true}}", CLIENT_CAPS_ROOTS,
		"{\"roots\":{\"listChanged\":true}}", "{\"roots\":{}}"},
	    {"{\"roots\":{\"listChanged\":false}}", CLIENT_CAP_ROOTS, "{\"roots\":{}}",
		"{\"roots\":{}}"},
	    {"{\"roots\":{},\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{}}",
		SAMPLE | ELICIT | FORM | URL_MODE | CLIENT_CAP_ROOTS,
		"{\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}},\"roots\":{}}",
		"{\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}},\"roots\":"
		"{}}"},
	};
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_uint_eq(client_caps_read(text_of(rows[i].in)), rows[i].caps);
		buf_reset(&b);
		client_caps_put(&b, rows[i].caps, false);
		ck_assert_str_eq(buf_cstr(&b), rows[i].legacy);
		buf_reset(&b);
		client_caps_put(&b, rows[i].caps, true);
		ck_assert_str_eq(buf_cstr(&b), rows[i].modern);
	}
	buf_fini(&b);
}
END_TEST

START_TEST(knows_what_a_question_needs)
{
	static const struct {
		enum method m;
		const char *params;
		unsigned needed;
	} rows[] = {
	    {METHOD_SAMPLE, "{\"messages\":[]}", SAMPLE},
	    {METHOD_SAMPLE, "{\"tools\":[]}", SAMPLE | CLIENT_CAP_SAMPLING_TOOLS},
	    {METHOD_ELICIT, "{\"message\":\"\"}", ELICIT | FORM},
	    {METHOD_ELICIT, "{\"mode\":\"form\"}", ELICIT | FORM},
	    {METHOD_ELICIT, "{\"mode\":\"url\"}", ELICIT | URL_MODE},
	    {METHOD_ROOTS, "", CLIENT_CAP_ROOTS},
	    {METHOD_PING, "", 0},
	    {METHOD_UNKNOWN, "{}", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_uint_eq(client_caps_needed(rows[i].m, text_of(rows[i].params)),
		    rows[i].needed);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_caps");
	TCase *tc = tcase_create("all");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, reads_and_writes);
	tcase_add_test(tc, knows_what_a_question_needs);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
