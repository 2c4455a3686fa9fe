/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/* The members that the scanner records, and the duplicate rule. */
#include "scan_ways.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[JSON_SLOT_MAX] = {
#define X(slot, level, key, inner, routes) [JSON_##slot] = #slot,
    JSON_SLOT_TABLE(X)
#undef X
};

/* Members found: a list of SLOT=text, in the order of the table, absent ones left
 * out, then dup and uri=text. */
static const struct {
	const char *text, *found;
} members[] = {
    {"{}", ""},
    {"[{\"id\":1}]", ""},
    {"\"id\"", ""},
    {" { \"jsonrpc\" : \"2.0\" , \"id\" : 12 , \"method\":\"a\"} ",
	"JSONRPC=\"2.0\" ID=12 METHOD=\"a\" "},
    {"{\"id\":-1.5e3}", "ID=-1.5e3 "},
    {"{\"id\":null,\"result\":[ ]}", "ID=null RESULT=[ ] "},
    {"{\"params\":{\"name\":\"x\",\"arguments\":{\"name\":1,\"a\":[{}]}}}",
	"PARAMS={\"name\":\"x\",\"arguments\":{\"name\":1,\"a\":[{}]}} P_NAME=\"x\" "
	"P_ARGUMENTS={\"name\":1,\"a\":[{}]} "},
    {"{\"params\":[{\"name\":\"x\"}]}", "PARAMS=[{\"name\":\"x\"}] "},
    {"{\"params\":{\"_meta\":{\"progressToken\":0,\"io.modelcontextprotocol/clientInfo\":"
     "{\"name\":\"c\"}},\"ref\":{\"type\":\"t\",\"name\":\"n\",\"uri\":\"u\"}}}",
	"PARAMS={\"_meta\":{\"progressToken\":0,\"io.modelcontextprotocol/clientInfo\":"
	"{\"name\":\"c\"}},\"ref\":{\"type\":\"t\",\"name\":\"n\",\"uri\":\"u\"}} "
	"P_META={\"progressToken\":0,\"io.modelcontextprotocol/clientInfo\":"
	"{\"name\":\"c\"}} P_REF={\"type\":\"t\",\"name\":\"n\",\"uri\":\"u\"} "
	"M_PROGRESS_TOKEN=0 M_CLIENT_INFO={\"name\":\"c\"} R_TYPE=\"t\" R_NAME=\"n\" "
	"R_URI=\"u\" "},
    {"{\"result\":{\"isError\":true,\"_meta\":{\"io.modelcontextprotocol/"
     "subscriptionId\":5}},\"id\":1}",
	"ID=1 RESULT={\"isError\":true,\"_meta\":{\"io.modelcontextprotocol/"
	"subscriptionId\":5}} IS_ERROR=true "
	"RESULT_META={\"io.modelcontextprotocol/subscriptionId\":5} "
	"RM_SUBSCRIPTION=5 "},
    {"{\"error\":{\"code\":-1,\"message\":\"m\",\"data\":{\"code\":2}}}",
	"ERROR={\"code\":-1,\"message\":\"m\",\"data\":{\"code\":2}} E_CODE=-1 "
	"E_MESSAGE=\"m\" E_DATA={\"code\":2} "},
    {"{\"params\":{\"_meta\":{\"traceparent\":\"a\",\"tracestate\":\"b\",\"Traceparent\":"
     "1,"
     "\"traceparent\":2}}}",
	"PARAMS={\"_meta\":{\"traceparent\":\"a\",\"tracestate\":\"b\",\"Traceparent\":"
	"1,"
	"\"traceparent\":2}} P_META={\"traceparent\":\"a\",\"tracestate\":\"b\","
	"\"Traceparent\":1,\"traceparent\":2} M_TRACEPARENT=\"a\" "},
    {"{\"params\":{\"traceparent\":\"a\"},\"traceparent\":\"b\"}",
	"PARAMS={\"traceparent\":\"a\"} "},
    /* escapes in keys */
    {"{\"params\":{\"n\\u0061me\":1,\"\\u005Fmeta\":2}}",
	"PARAMS={\"n\\u0061me\":1,\"\\u005Fmeta\":2} P_NAME=1 P_META=2 "},
    {"{\"id\\u0000\":1,\"i\\d\":2}", ""},
    {"{\"id\\u0000\":1,\"\\ud800id\":2,\"i\\td\":3,\"\\u00e9\":4,\"\\u20ac\":5}", ""},
    /* the duplicate rule */
    {"{\"id\":1,\"id\":2}", "ID=1 dup "},
    {"{\"id\":1,\"i\\u0064\":2}", "ID=1 dup "},
    {"{\"Id\":1}", ""},
    {"{\"Id\":1,\"id\":2}", "ID=2 dup "},
    {"{\"id\":1,\"ID\":2}", "ID=1 dup "},
    {"{\"params\":{\"name\":\"a\",\"NAME\":1}}",
	"PARAMS={\"name\":\"a\",\"NAME\":1} P_NAME=\"a\" dup "},
    {"{\"params\":{\"name\":\"a\",\"_meta\":{\"name\":\"b\"}}}",
	"PARAMS={\"name\":\"a\",\"_meta\":{\"name\":\"b\"}} P_NAME=\"a\" "
	"P_META={\"name\":\"b\"} "},
    {"{\"params\":{},\"param\xc5\xbf\":1}", "PARAMS={} dup "},
    {"{\"param\\u017F\":1,\"params\":{}}", "PARAMS={} dup "},
    {"{\"params\":{},\"parameter\xc5\xbf\":1}", "PARAMS={} "},
    {"{\"params\":{\"_meta\":{\"progressToken\":1,\"progressTo\xe2\x84\xaa"
     "en\":2}}}",
	"PARAMS={\"_meta\":{\"progressToken\":1,\"progressTo\xe2\x84\xaa"
	"en\":2}} P_META={\"progressToken\":1,\"progressTo\xe2\x84\xaa"
	"en\":2} M_PROGRESS_TOKEN=1 dup "},
    {"{\"params\":{\"_meta\":{\"progressTo\\u212aen\":2,\"PROGRE\\u017F\xc5\xbfTOKEN\":"
     "1}}}",
	"PARAMS={\"_meta\":{\"progressTo\\u212aen\":2,\"PROGRE\\u017F\xc5\xbfTOKEN\":1}} "
	"P_META={\"progressTo\\u212aen\":2,\"PROGRE\\u017F\xc5\xbfTOKEN\":1} dup "},
    {"{\"params\":{\"name\":1},\"params\":{\"name\":2,\"uri\":3}}",
	"PARAMS={\"name\":1} P_NAME=1 dup "},
    {"{\"params\":{\"arguments\":1,\"arguments\":2}}",
	"PARAMS={\"arguments\":1,\"arguments\":2} P_ARGUMENTS=1 "},
    {"{\"params\":{\"arguments\":{\"id\":1,\"id\":2,\"ID\":3}}}",
	"PARAMS={\"arguments\":{\"id\":1,\"id\":2,\"ID\":3}} "
	"P_ARGUMENTS={\"id\":1,\"id\":2,\"ID\":3} "},
    {"{\"result\":{\"_meta\":{\"x\":1},\"_meta\":2,\"isError\":1,\"isError\":2}}",
	"RESULT={\"_meta\":{\"x\":1},\"_meta\":2,\"isError\":1,\"isError\":2} "
	"IS_ERROR=1 RESULT_META={\"x\":1} "},
    /* uris of a result */
    {"{\"result\":{\"uri\":\"a\",\"c\":[{\"uri\":\"b\"},{\"r\":{\"\\u0075ri\":\"c\"}},"
     "{\"uri\":3},{\"uri\":{\"uri\":\"d\"}},\"uri\",{\"URI\":\"e\"}]},\"uri\":\"f\"}",
	"RESULT={\"uri\":\"a\",\"c\":[{\"uri\":\"b\"},{\"r\":{\"\\u0075ri\":\"c\"}},"
	"{\"uri\":3},{\"uri\":{\"uri\":\"d\"}},\"uri\",{\"URI\":\"e\"}]} "
	"uri=\"a\" uri=\"b\" uri=\"c\" uri=\"d\" "},
    {"{\"params\":{\"a\":{\"uri\":\"x\"}}}", "PARAMS={\"a\":{\"uri\":\"x\"}} "},
    /* what comes after a soft error is still found */
    {"{\"result\":\"\xff\",\"id\":7}", "ID=7 RESULT=\"\xff\" "},
    {"{\"result\":{\"a\":\"\xe2\x82\"},\"id\":7}", "ID=7 RESULT={\"a\":\"\xe2\x82\"} "},
    {"{\"id\":7,\"result\":{,", "ID=7 "},
};

static void
describe(char *out, size_t size, const char *text, const struct json_msg *m)
{
	size_t n = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; i < JSON_SLOT_MAX; i++) {
		if (m->slot[i].len == 0)
			continue;
		n += (size_t)snprintf(out + n, size - n, "%s=%.*s ", names[i],
		    (int)m->slot[i].len, text + m->slot[i].off);
		ck_assert_int_eq(text[m->key_off[i]], '"');
	}
	if (m->duplicate)
		n += (size_t)snprintf(out + n, size - n, "dup ");
	for (i = 0; i < m->n_uris; i++)
		n += (size_t)snprintf(out + n, size - n, "uri=%.*s ", (int)m->uris[i].len,
		    text + m->uris[i].off);
}

START_TEST(finds_members)
{
	const char *text = members[_i].text;
	struct result r;
	char got[2048];

	scan_all_ways(&r, text, strlen(text));
	describe(got, sizeof(got), text, &r.msg);
	ck_assert_str_eq(got, members[_i].found);
}
END_TEST

START_TEST(finds_every_row)
{
	static const char *const before[JSON_LV_MAX] = {
	    [JSON_LV_TOP] = "{",
	    [JSON_LV_PARAMS] = "{\"params\":{",
	    [JSON_LV_META] = "{\"params\":{\"_meta\":{",
	    [JSON_LV_REF] = "{\"params\":{\"ref\":{",
	    [JSON_LV_RESULT] = "{\"result\":{",
	    [JSON_LV_RESULT_META] = "{\"result\":{\"_meta\":{",
	    [JSON_LV_ERROR] = "{\"error\":{",
	};
	static const struct {
		enum json_level level;
		const char *key;
		bool routes;
	} rows[] = {
#define X(slot, level, key, inner, routes) {JSON_LV_##level, key, routes},
	    JSON_SLOT_TABLE(X)
#undef X
	};
	char text[256], upper[64];
	struct result r;
	size_t i;

	for (i = 0; rows[_i].key[i] != '\0'; i++)
		upper[i] =
		    (char)(rows[_i].key[i] & (rows[_i].key[i] >= 'a' ? 0xdf : 0xff));
	upper[i] = '\0';
	snprintf(
	    text, sizeof(text), "%s\"%s\":123456", before[rows[_i].level], rows[_i].key);
	scan_pieces(&r, text, strlen(text), 0, 0);
	ck_assert_uint_eq(r.msg.slot[_i].len, 0);
	snprintf(text, sizeof(text), "%s\"%s\":123456,\"%s\":0}", before[rows[_i].level],
	    rows[_i].key, upper);
	scan_pieces(&r, text, strlen(text), 1, 1);
	ck_assert_uint_eq(r.msg.slot[_i].len, 6);
	ck_assert_int_eq(r.msg.duplicate, rows[_i].routes);
}
END_TEST

START_TEST(takes_uris_when_asked)
{
	static const char text[] = "{\"result\":{\"uri\":\"a\"}}";
	struct json_msg msg;
	char many[4096];
	int i, n;

	ck_assert_int_eq(json_scan(&msg, text, sizeof(text) - 1, false), MV_OK);
	ck_assert_uint_eq(msg.n_uris, 0);
	n = snprintf(many, sizeof(many), "{\"result\":[{\"uri\":0}");
	for (i = 0; i < CAP_RESULT_URIS + 5; i++)
		n += snprintf(many + n, sizeof(many) - (size_t)n, ",{\"uri\":\"%d\"}", i);
	n += snprintf(many + n, sizeof(many) - (size_t)n, "]}");
	ck_assert_int_eq(json_scan(&msg, many, (size_t)n, true), MV_OK);
	ck_assert_uint_eq(msg.n_uris, CAP_RESULT_URIS);
	ck_assert_mem_eq(many + msg.uris[63].off, "\"63\"", 4);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json_slots");
	TCase *tc = tcase_create("json_slots");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, finds_members, 0, ROWS(members));
	tcase_add_loop_test(tc, finds_every_row, 0, JSON_SLOT_MAX);
	tcase_add_test(tc, takes_uris_when_asked);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
