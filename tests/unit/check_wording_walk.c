/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* A walk over every sentence that an error of ours can be: each has the one form. */
#include "mcpvisor/wording.h"

#include "mcpvisor/argspec.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/shown.h"

#include "fake/fake_tree.h"
#include "wording_form.h"

#include <stdio.h>
#include <stdlib.h>

#define EVIL                                                                             \
	"\"a\x01\x1b[31m\xff\xc2\x85\\n\\u0000\\ud800 /home/u/x.py\\\"                 " \
	"                                                        \""

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

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, strlen(s)};
}

static struct jtext
written(void)
{
	ck_assert_int_eq(out.err, MV_OK);
	tree_assert_object(out.data, out.len);
	return (struct jtext){out.data, out.len};
}

/* ---- the table ---- */

static const char *const values[] = {
    "", "7", "null", "\"\"", "\"x\"", "{\"a\":[1,2]}", "\"%s%n\"", "\"\\n\\u001b\""};

static bool
row_is_part(enum wording w)
{
	return wording_code(w) == 0;
}

/* Those that say themselves what to do have a gap for a value, or no use for one. */
static bool
row_shows(enum wording w)
{
	static const bool said[WORDING_MAX] = {
#define X(id, code, end, text) [WORDING_##id] = ENDS_##end,
#define ENDS_SAID	       true
#define ENDS_UNCHANGED	       false
#define ENDS_NEVER	       false
#define ENDS_MAY	       false
#define ENDS_PART	       false
	    WORDINGS(X)
#undef X
	};

	return strchr(wording_text(w), '%') != NULL || !said[w];
}

START_TEST(each_row_has_the_form)
{
	enum wording w = (enum wording)_i;
	char s[WORDING_BYTES];

	if (row_is_part(w))
		return;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		bool has_gap = strchr(wording_text(w), '%') != NULL;

		if (has_gap && values[i][0] == '\0')
			continue;
		if (strchr(values[i], '%') != NULL)
			continue; /* a value's own, looked at below */
		wording_put(&out, w, text_of(values[i]));
		form_assert_object(written(), false);
		buf_reset(&out);
		wording_print(s, sizeof(s), w, text_of(values[i]));
		form_assert_sentence(s, false);
		/* It is shown, and as it was spelled. */
		ck_assert(!row_shows(w) || strstr(s, values[i]) != NULL);
	}
	wording_print(s, sizeof(s), w, text_of("\"%s%n\""));
	ck_assert(!row_shows(w) || strstr(s, "%s%n") != NULL);
}
END_TEST

/* Whatever is sent, 64 bytes of it and none that moves a cursor; and all of it fits. */
START_TEST(each_row_bounds_its_value)
{
	enum wording w = (enum wording)_i;
	static char big[100000];
	char s[WORDING_BYTES];
	struct jtext evil = text_of(EVIL);

	memset(big, 'y', sizeof(big));
	wording_print(s, sizeof(s), w, (struct jtext){big, sizeof(big)});
	if (row_shows(w)) {
		const char *at = strstr(s, "yyyyyyyy");

		ck_assert_ptr_nonnull(at);
		ck_assert_uint_eq(strspn(at, "y"), SHOWN_BYTES);
		ck_assert_int_eq(strncmp(at + SHOWN_BYTES, "...", 3), 0);
	}
	if (!row_is_part(w))
		ck_assert(form_says_retry(s));
	wording_print(s, sizeof(s), w, evil);
	for (const char *p = s; *p != '\0'; p++)
		ck_assert((unsigned char)*p >= 0x20);
}
END_TEST

/* Details of failures go on with our words: lower case, and no end of their own. */
START_TEST(each_part_is_a_part)
{
	const char *s = wording_text((enum wording)_i);

	if (!row_is_part((enum wording)_i))
		return;
	ck_assert(islower((unsigned char)s[0]));
	ck_assert(isalnum((unsigned char)s[strlen(s) - 1]) || s[strlen(s) - 1] == '%');
	ck_assert(!form_says_retry(s));
}
END_TEST

START_TEST(no_row_is_there_twice)
{
	for (int w = 1; w < WORDING_MAX; w++)
		for (int v = 1; v < w; v++)
			ck_assert_str_ne(
			    wording_text((enum wording)w), wording_text((enum wording)v));
	ck_assert_str_eq(wording_text(WORDING_MAX), "");
	ck_assert_int_eq(wording_code(WORDING_MAX), -32603);
}
END_TEST

START_TEST(those_for_no_memory)
{
	form_assert_object(text_of(WORDING_ANSWER_LARGE), false);
	form_assert_object(text_of(WORDING_NO_MEMORY), false);
	form_assert_object(text_of(WORDING_NOT_KEPT), false);
}
END_TEST

/* ---- failures ---- */

static const char *const details[] = {NULL, "", "exited with status 1",
    "cannot execute /opt/x/server.py (PATH=/usr/bin:/home/u/bin): No such file",
    "cannot read \"/etc/mcpvisor/token\": Permission denied",
    "error setting certificate file: /etc/ssl/ca.pem", "./run.sh: line 3: boom",
    "Traceback: File \"/home/u/a.py\", line 1, in <module>", "file:///tmp/x",
    "../secrets/key and ~/.ssh/id", "a\x01\x1b[31m\n\r\t\x7f\xff\xc2\x85"};

static void
assert_failure(const struct wording_failure *f)
{
	wording_put_failure(&out, f);
	form_assert_object(written(), false);
	buf_reset(&out);
	wording_put_failure_result(&out, "", f);
	form_assert_object(written(), false);
	buf_reset(&out);
}

START_TEST(each_failure_has_the_form)
{
	static const char *const upstreams[] = {NULL, "alpha", "a\x01\"\\\xff\n"};
	const unsigned n_details = sizeof(details) / sizeof(details[0]);
	struct wording_failure f = {.err = (enum mv_err)_i};

	/* Every upstream with every detail, limit and effect, then every method. */
	for (unsigned k = 0; k < 3 * n_details * 4; k++) {
		f.has_acted = (k & 1) != 0;
		f.limit_ms = k & 2 ? 300000 : 0;
		f.detail = details[k / 4 % n_details];
		f.upstream = upstreams[k / 4 / n_details];
		f.method = k % 3 == 0 ? METHOD_TOOLS_CALL : METHOD_UNKNOWN;
		assert_failure(&f);
	}
	for (unsigned m = 0; m < METHOD_MAX; m++) {
		f.method = (enum method)m;
		assert_failure(&f);
	}
}
END_TEST

static const struct {
	const char *detail, *want;
} cleaned[] = {
    {"cannot execute /opt/x/server.py (PATH=/usr/bin:/bin): No such file",
	"cannot execute (path) (PATH=(path)): No such file"},
    {"cannot read /etc/token: Permission denied",
	"cannot read (path): Permission denied"},
    {"api.example:443: answered 503 to tools/call", NULL},
    {"it redirects to https://example.com/a/b", NULL},
    {"a / b and 1/2", NULL},
    {"\xc3\xa4\xe2\x82\xac", NULL},
    {"open('/srv/x')", "open('(path)')"},
    {"/srv", "(path)"},
    {"file:///etc/passwd", "(path)"},
    {"~/x ./y ../z", "(path) (path) (path)"},
};

START_TEST(details_name_no_file)
{
	struct wording_failure f = {.err = MV_DIED, .detail = cleaned[_i].detail};
	const char *want = cleaned[_i].want ? cleaned[_i].want : cleaned[_i].detail;

	wording_put_failure(&out, &f);
	ck_assert_msg(strstr(buf_cstr(&out), want) != NULL, "%s", out.data);
}
END_TEST

START_TEST(details_are_bounded)
{
	static char detail[100000];
	struct wording_failure f = {
	    .err = MV_DIED, .upstream = detail, .detail = detail, .has_acted = true};

	memset(detail, '\\', sizeof(detail) - 1);
	wording_put_failure(&out, &f);
	form_assert_object(written(), false);
}
END_TEST

/* ---- the others ---- */

static void
put_unknown(struct jtext name)
{
	for (unsigned m = 0; m < METHOD_MAX; m++) {
		wording_put_unknown(&out, (enum method)m, name);
		form_assert_object(written(), jtext_type(name) == '"');
		buf_reset(&out);
	}
}

START_TEST(those_that_name_something)
{
	static const char *const names[] = {
	    "\"\"", "\"x\"", "\"a\\u0001\\n\\u001b[2J\"", "", "7", "null", "{}"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put_unknown(text_of(names[i]));
		if (names[i][0] != '"')
			continue;
		wording_put_no_resource(&out, -32602, text_of(names[i]));
		form_assert_object(written(), true);
		buf_reset(&out);
		wording_put_revision(&out, "[]", text_of(names[i]));
		form_assert_object(written(), false);
		buf_reset(&out);
	}
	wording_put_needed(&out, CLIENT_CAP_ELICITATION);
	form_assert_object(written(), false);
	buf_reset(&out);
	wording_put_needs_tasks(&out);
	form_assert_object(written(), false);
	buf_reset(&out);
	wording_put_call_again(&out, "");
	form_assert_object(written(), false);
}
END_TEST

static const struct {
	const char *error, *want;
} recoded[] = {
    {"{\"code\":-32601,\"message\":\"m\"}",
	"{\"code\":-32602,\"message\":\"m\",\"data\":{\"upstreamCode\":-32601}}"},
    {"{ \"message\" : \"m\\u0041\" , \"x\":1.0, \"code\" : -32601 }",
	"{\"message\":\"m\\u0041\",\"x\":1.0,\"code\":-32602,\"data\":{"
	"\"upstreamCode\":-32601}}"},
    {"{\"code\":-32601,\"data\":null,\"message\":\"m\"}",
	"{\"code\":-32602,\"data\":null,\"message\":\"m\"}"},
    {"{\"code\":-32601.0,\"message\":\"m\",\"data\":{\"a\":[]}}",
	"{\"code\":-32602,\"message\":\"m\",\"data\":{\"a\":[]}}"},
};

START_TEST(upstreams_code_is_kept)
{
	wording_put_recoded(&out, text_of(recoded[_i].error), -32602);
	(void)written();
	ck_assert_str_eq(buf_cstr(&out), recoded[_i].want);
}
END_TEST

/* ---- arguments ---- */

#define SPEC                                                                             \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"id\"],"     \
	"\"properties\":{\"id\":{\"type\":\"string\",\"maxLength\":5,\"minLength\":2,"   \
	"\"pattern\":\"^[a-z]*$\"},\"n\":{\"type\":\"integer\",\"minimum\":1,"           \
	"\"maximum\":100},\"b\":{\"type\":\"boolean\"},\"e\":{\"enum\":[\"OPEN\","       \
	"\"CLOSED\"]},\"l\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":"     \
	"\"number\"}},\"o\":{\"type\":\"object\",\"additionalProperties\":false,"        \
	"\"required\":[\"k\"],\"properties\":{\"k\":{\"type\":\"string\"}}}}}"

static const char *const wrong[] = {"{}", "{\"id\":7}", "{\"id\":\"a\"}",
    "{\"id\":\"abcdef\"}", "{\"id\":\"AB\"}", "{\"id\":\"ab\",\"n\":0}",
    "{\"id\":\"ab\",\"n\":1.5}", "{\"id\":\"ab\",\"n\":\"\"}", "{\"id\":\"ab\",\"b\":1}",
    "{\"id\":\"ab\",\"e\":\"open\"}", "{\"id\":\"ab\",\"l\":[1,2,3]}",
    "{\"id\":\"ab\",\"l\":[1,\"x\"]}", "{\"id\":\"ab\",\"l\":{}}",
    "{\"id\":\"ab\",\"o\":{}}", "{\"id\":\"ab\",\"o\":{\"k\":1}}",
    "{\"id\":\"ab\",\"o\":{\"k\":\"\",\"z\":1}}", "{\"id\":\"ab\",\"ID\":1}",
    "{\"id\":\"ab\",\"id\":\"cd\"}", "{\"id\":\"ab\\u0001\"}",
    "{\"id\":\"ab\",\"x\\u001b[2J\":1}", "[]"};

START_TEST(arguments_have_the_form)
{
	struct mv_errtext et = {.line = 0};
	struct argspec *s = argspec_read(text_of(SPEC), &et);
	struct buf why;

	ck_assert_msg(s != NULL, "%s", et.message);
	buf_init(&why, CAP_MESSAGE_BYTES);
	ck_assert(!argspec_check(s, text_of(wrong[_i]), &why));
	form_assert_sentence(buf_cstr(&why), false);
	buf_fini(&why);
	argspec_free(s);
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

int
main(void)
{
	Suite *s = suite_create("wording_walk");
	TCase *tc = tcase_create("walk");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, each_row_has_the_form, 1, WORDING_MAX);
	tcase_add_loop_test(tc, each_row_bounds_its_value, 1, WORDING_MAX);
	tcase_add_loop_test(tc, each_part_is_a_part, 1, WORDING_MAX);
	tcase_add_test(tc, no_row_is_there_twice);
	tcase_add_test(tc, those_for_no_memory);
	tcase_add_loop_test(tc, each_failure_has_the_form, 1, MV_ERR_MAX + 1);
	tcase_add_loop_test(tc, details_name_no_file, 0, N(cleaned));
	tcase_add_test(tc, details_are_bounded);
	tcase_add_test(tc, those_that_name_something);
	tcase_add_loop_test(tc, upstreams_code_is_kept, 0, N(recoded));
	tcase_add_loop_test(tc, arguments_have_the_form, 0, N(wrong));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
