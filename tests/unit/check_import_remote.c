/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Remote servers in the files of MCP clients. */
#include "import_rig.h"

#include <stdlib.h>

#include "mcpvisor/mem.h"

#define U "\"url\":\"https://h/mcp\""

static const struct {
	const char *entry;
	enum mv_err err;
	const char *text;
} broken[] = {
    {"{\"type\":\"http\"}", MV_CONF, "url is missing"},
    {"{\"type\":\"sse\",\"command\":\"x\"}", MV_CONF, "url is missing"},
    {"{\"type\":\"stdio\"," U "}", MV_CONF, "command is missing"},
    {"{\"command\":\"x\"," U "}", MV_CONF, "both a command and a url"},
    {"{\"type\":\"ws\",\"url\":\"ws://h\"}", MV_UNSUPPORTED, "WebSocket are not"},
    {"{\"transport\":\"websocket\"," U "}", MV_UNSUPPORTED, "WebSocket are not"},
    {"{\"url\":\"wss://h/mcp\"}", MV_CONF, "url is of a WebSocket"},
    {"{\"type\":7," U "}", MV_CONF, "type is not a string"},
    {"{\"type\":\"quic\"," U "}", MV_CONF, "type is none of stdio, http, sse"},
    {"{\"url\":7}", MV_CONF, "url is not a string"},
    {"{\"serverUrl\":\"h\"}", MV_CONF, "serverUrl does not begin with http://"},
    {"{\"httpUrl\":\"${NO}\"}", MV_CONF, "httpUrl: variable NO is not set"},
    {"{\"url\":\"http://u:hush@h/\"}", MV_CONF, "url has a user or a password"},
    {"{" U ",\"headers\":[]}", MV_CONF, "headers is not an object"},
    {"{" U ",\"headers\":{\"A\":1}}", MV_CONF, "headers.\"A\": is not a string"},
    {"{" U ",\"headers\":{\"A b\":\"c\"}}", MV_CONF, "is no name of a header"},
    {"{" U ",\"headers\":{\"host\":\"c\"}}", MV_CONF, "\"host\": is a header that"},
    {"{" U ",\"headers\":{\"A\":\"hush\\n\"}}", MV_CONF, "\"A\": has a line break"},
    {"{" U ",\"headers\":{\"A\":\"b\",\"a\":\"c\"}}", MV_CONF, "\"a\": is there twice"},
    {"{" U ",\"headers\":{\"A\":\"${input:t}\"}}", MV_CONF, "${input:...} is a question"},
    {"{" U ",\"mcpvisor\":{\"transport\":\"stdio\"}}", MV_CONF,
	"mcpvisor.transport is none of auto, streamable, sse"},
    {"{" U ",\"mcpvisor\":{\"tls_verify\":1}}", MV_CONF,
	"mcpvisor.tls_verify is neither"},
    {"{" U ",\"mcpvisor\":{\"proxy\":\"a b\"}}", MV_CONF,
	"mcpvisor.proxy has a character"},
    {"{" U ",\"mcpvisor\":{\"proxy\":1}}", MV_CONF, "mcpvisor.proxy is not a string"},
    {"{" U ",\"mcpvisor\":{\"ca_file\":\"\"}}", MV_CONF, "mcpvisor.ca_file is empty"},
    {"{" U ",\"mcpvisor\":{\"ca_file\":\"${NO}\"}}", MV_CONF,
	"mcpvisor.ca_file: variable NO"},
    {"{" U ",\"mcpvisor\":{\"key_file\":\"k\"}}", MV_CONF,
	"mcpvisor.key_file: there is no cert_file"},
    {"{" U ",\"mcpvisor\":{\"connect_ms\":0}}", MV_CONF, "mcpvisor.connect_ms"},
    {"{" U ",\"mcpvisor\":{\"roots\":1}}", MV_CONF, "mcpvisor.roots is no word"},
    {"{" U ",\"mcpvisor\":{\"roots\":\"x\"}}", MV_CONF,
	"mcpvisor.roots is none of auto, client, none"},
    {"{" U ",\"mcpvisor\":{\"roots\":[\"file:///a\",\"/b\"]}}", MV_CONF,
	"mcpvisor.roots has an element that does not begin with file:///"},
    {"{" U ",\"mcpvisor\":{\"roots\":[1]}}", MV_CONF, "element that is not a string"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"tls_verify\":false}}", MV_CONF,
	"mcpvisor.tls_verify is an option of remote servers"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"proxy\":\"\"}}", MV_CONF,
	"mcpvisor.proxy is an option of remote servers"},
    {"{" U ",\"mcpvisor\":{\"url\":\"http://h\"}}", MV_CONF, "is not a known option"},
};

START_TEST(test_broken)
{
	struct import_result r;
	struct upstream_conf *c = parse_entry(broken[_i].entry, &r);

	ck_assert_msg(
	    c->broken == broken[_i].err, "%s: %s", broken[_i].entry, c->broken_text);
	ck_assert_msg(strstr(c->broken_text, broken[_i].text) != NULL, "%s: %s",
	    broken[_i].entry, c->broken_text);
	ck_assert_ptr_null(strstr(c->broken_text, "hush"));
	import_free(&r);
}
END_TEST

static const struct {
	const char *entry;
	enum transport_pin transport;
} kinds[] = {
    {"{" U "}", TRANSPORT_AUTO},
    {"{\"serverUrl\":\"https://h/mcp\"}", TRANSPORT_AUTO},
    {"{\"httpUrl\":\"https://h/mcp\",\"url\":\"https://h/sse\"}", TRANSPORT_AUTO},
    {"{\"type\":\"http\"," U "}", TRANSPORT_AUTO},
    {"{\"type\":\"streamable-http\"," U "}", TRANSPORT_AUTO},
    {"{\"type\":\"streamableHttp\"," U "}", TRANSPORT_AUTO},
    {"{\"transport\":\"sse\"," U "}", TRANSPORT_SSE},
    {"{\"type\":\"sse\"," U ",\"mcpvisor\":{\"transport\":\"auto\"}}", TRANSPORT_AUTO},
    {"{" U ",\"mcpvisor\":{\"transport\":\"streamable\"}}", TRANSPORT_STREAMABLE},
    {"{" U ",\"command\":null,\"args\":[],\"env\":{},\"cwd\":\"\"}", TRANSPORT_AUTO},
};

START_TEST(test_kinds)
{
	struct import_result r;
	struct upstream_conf *c = parse_entry(kinds[_i].entry, &r);

	ck_assert_msg(c->broken == MV_OK, "%s: %s", kinds[_i].entry, c->broken_text);
	ck_assert_str_eq(c->url, "https://h/mcp");
	ck_assert_ptr_null(c->argv);
	ck_assert_int_eq(c->transport, kinds[_i].transport);
	ck_assert_uint_eq(r.n_warnings, 0);
	import_free(&r);
}
END_TEST

START_TEST(test_options)
{
	struct import_result r;
	struct upstream_conf *c = parse_entry(
	    "{" U ",\"headers\":{\"Authorization\":\"Bearer ${TOKEN}\",\"X\":\"y\"},"
	    "\"mcpvisor\":{\"tls_verify\":false,\"proxy\":\"http://p:1\","
	    "\"ca_file\":\"ca.pem\",\"cert_file\":\"/c\",\"key_file\":\"${TOKEN}\","
	    "\"connect_ms\":7,\"question_ms\":8,\"roots\":[\"file:///a\"]}}",
	    &r);

	ck_assert_msg(c->broken == MV_OK, "%s", c->broken_text);
	ck_assert_uint_eq(c->n_headers, 2);
	ck_assert_str_eq(c->headers[0].value, "Bearer hunter2 ${X}");
	ck_assert(c->put_headers == NULL);
	ck_assert(c->skip_verify);
	ck_assert_str_eq(c->proxy, "http://p:1");
	ck_assert_str_eq(c->ca_file, "ca.pem");
	ck_assert_str_eq(c->cert_file, "/c");
	ck_assert_uint_eq(c->connect_ms, 7);
	ck_assert_uint_eq(c->question_ms, 8);
	ck_assert_int_eq(c->roots, ROOTS_LIST);
	ck_assert_str_eq(c->root_uris[0], "file:///a");
	ck_assert_uint_eq(r.n_secrets, 1);
	ck_assert_ptr_eq(r.secrets[0], c->key_file);
	import_free(&r);
	c = parse_entry("{\"command\":\"x\",\"mcpvisor\":{\"roots\":\"client\"}}", &r);
	ck_assert_int_eq(c->roots, ROOTS_CLIENT);
	import_free(&r);
}
END_TEST

START_TEST(test_warnings)
{
	static const struct {
		const char *entry, *warning;
	} cases[] = {
	    {"{\"type\":\"http\",\"command\":\"x\"," U "}",
		"command is ignored: the server"},
	    {"{" U ",\"env\":{\"A\":\"b\"}}", "env is ignored: the server is remote"},
	    {"{" U ",\"args\":[\"b\"]}", "args is ignored: the server is remote"},
	    {"{\"type\":\"stdio\",\"command\":\"x\"," U "}",
		"url is ignored, as the type"},
	    {"{\"command\":\"x\",\"headers\":{\"A\":\"b\"}}",
		"headers is ignored: the server is a command"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct import_result r;
		struct upstream_conf *c = parse_entry(cases[i].entry, &r);

		ck_assert_msg(c->broken == MV_OK, "%s", c->broken_text);
		ck_assert_msg(r.n_warnings == 1, "%s", cases[i].entry);
		ck_assert_ptr_nonnull(strstr(r.warnings[0], cases[i].warning));
		import_free(&r);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("import_remote");
	TCase *tc = tcase_create("import_remote");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, test_broken, 0, sizeof broken / sizeof *broken);
	tcase_add_loop_test(tc, test_kinds, 0, sizeof kinds / sizeof *kinds);
	tcase_add_test(tc, test_options);
	tcase_add_test(tc, test_warnings);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
