/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* Which texts are which kind of message. */
#include "mcpvisor/envelope.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define RPC "{\"jsonrpc\":\"2.0\","

static const struct {
	const char *text;
	enum envelope_kind kind;
	enum mv_err err;
	const char *id, *method; /* NULL: absent */
} rows[] = {
    {RPC "\"id\":1,\"method\":\"ping\"}", ENVELOPE_REQUEST, MV_OK, "1", "\"ping\""},
    {RPC "\"id\":\"\",\"method\":\"\",\"params\":{}}", ENVELOPE_REQUEST, MV_OK, "\"\"",
	"\"\""},
    {"{\"method\":\"a\",\"id\":0,\"json\\u0072pc\":\"\\u0032.0\"}", ENVELOPE_REQUEST,
	MV_OK, "0", "\"a\""},
    {RPC "\"method\":\"a\"}", ENVELOPE_NOTIFICATION, MV_OK, NULL, "\"a\""},
    {RPC "\"method\":\"a\",\"params\":{\"id\":1}}", ENVELOPE_NOTIFICATION, MV_OK, NULL,
	"\"a\""},
    {RPC "\"id\":1,\"result\":{}}", ENVELOPE_RESULT, MV_OK, "1", NULL},
    {"{\"result\":{},\"jsonrpc\":\"2.0\",\"id\":\"x\"}", ENVELOPE_RESULT, MV_OK, "\"x\"",
	NULL},
    {RPC "\"id\":1,\"error\":{\"code\":-1,\"message\":\"\"}}", ENVELOPE_ERROR, MV_OK, "1",
	NULL},
    {RPC "\"id\":null,\"error\":{\"code\":0,\"message\":\"m\",\"data\":[]}}",
	ENVELOPE_ERROR, MV_OK, NULL, NULL},
    {RPC "\"error\":{\"code\":0,\"message\":\"m\"}}", ENVELOPE_ERROR, MV_OK, NULL, NULL},
    {"[]", ENVELOPE_BATCH, MV_OK, NULL, NULL},
    {"[" RPC "\"id\":1,\"id\":2}]", ENVELOPE_BATCH, MV_OK, NULL, NULL},
    /* not JSON-RPC 2.0 */
    {"{}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {"1", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {"null", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {"\"jsonrpc\"", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {"{\"Output\":{},\"Version\":1}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {"{\"id\":1,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE,
	"1", NULL},
    {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, "1",
	NULL},
    {"{\"JSONRPC\":\"2.0\",\"id\":1,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE,
	"1", NULL},
    {RPC "\"id\":1}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"method\":5}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"params\":[]}", ENVELOPE_INVALID, MV_ENVELOPE, "1",
	NULL},
    {RPC "\"method\":\"a\",\"params\":null}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"params\":\"x\"}", ENVELOPE_INVALID, MV_ENVELOPE,
	"1", NULL},
    /* ids */
    {RPC "\"id\":null,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":true,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":1.5,\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":{},\"method\":\"a\"}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":null,\"result\":{}}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"result\":{}}", ENVELOPE_INVALID, MV_ENVELOPE, NULL, NULL},
    {RPC "\"id\":[1],\"error\":{\"code\":1,\"message\":\"\"}}", ENVELOPE_INVALID,
	MV_ENVELOPE, NULL, NULL},
    /* responses */
    {RPC "\"id\":1,\"result\":[]}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"result\":null}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"error\":\"no\"}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"error\":{\"message\":\"\"}}", ENVELOPE_INVALID, MV_ENVELOPE, "1",
	NULL},
    {RPC "\"id\":1,\"error\":{\"code\":1.5,\"message\":\"\"}}", ENVELOPE_INVALID,
	MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"\"}}", ENVELOPE_INVALID,
	MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"error\":{\"code\":1}}", ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    /* more than one */
    {RPC "\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
	ENVELOPE_INVALID, MV_ENVELOPE, "1", NULL},
    {RPC "\"id\":1,\"result\":{},\"error\":null}", ENVELOPE_INVALID, MV_ENVELOPE, "1",
	NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"result\":{}}", ENVELOPE_INVALID, MV_ENVELOPE, "1",
	NULL},
    /* duplicates */
    {RPC "\"id\":1,\"method\":\"a\",\"method\":\"b\"}", ENVELOPE_INVALID, MV_DUPLICATE,
	"1", NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"Method\":\"b\"}", ENVELOPE_INVALID, MV_DUPLICATE,
	"1", NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"params\":{\"name\":1,\"n\\u0061me\":2}}",
	ENVELOPE_INVALID, MV_DUPLICATE, "1", NULL},
    {RPC "\"id\":1,\"method\":\"a\",\"params\":{\"arguments\":{\"a\":1,\"a\":2}}}",
	ENVELOPE_REQUEST, MV_OK, "1", "\"a\""},
};

static void
assert_text(struct jtext t, const char *want)
{
	ck_assert_uint_eq(t.n, want != NULL ? strlen(want) : 0);
	if (want != NULL)
		ck_assert_mem_eq(t.p, want, t.n);
}

START_TEST(reads_the_kind)
{
	struct json_msg msg;
	struct envelope e;

	ck_assert_int_eq(
	    json_scan(&msg, rows[_i].text, strlen(rows[_i].text), false), MV_OK);
	e = envelope_read(rows[_i].text, &msg);
	ck_assert_int_eq(e.kind, rows[_i].kind);
	ck_assert_int_eq(e.err, rows[_i].err);
	assert_text(e.id, rows[_i].id);
	assert_text(e.method, rows[_i].method);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("envelope");
	TCase *tc = tcase_create("envelope");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, reads_the_kind, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
