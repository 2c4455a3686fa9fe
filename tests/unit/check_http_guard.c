/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * Host and Origin: who may talk to a loopback endpoint and to one beyond.
 */
#include "mcpvisor/http_guard.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

static const char *const hosts[] = {"mcp.example.org", "api.example.org:8443",
    "*.sub.example.org", "[2001:db8::1]", NULL};
static const char *const origins[] = {"https://app.example.org", "vscode://x", NULL};
static const char *const any[] = {"*", NULL};

static const struct http_guard local = {.loopback = true};
static const struct http_guard open_ = {
    .loopback = false, .allowed_hosts = hosts, .allowed_origins = origins};
static const struct http_guard both = {
    .loopback = true, .allowed_hosts = hosts, .allowed_origins = any};
static const struct http_guard none = {.loopback = false};

static struct http_text
text(const char *s)
{
	return (struct http_text){s, s ? strlen(s) : 0};
}

static const struct {
	const struct http_guard *g;
	const char *host; /* NULL: absent */
	int status;
} host_rows[] = {
    {&local, "localhost", 0},
    {&local, "LocalHost:7332", 0},
    {&local, "127.0.0.1", 0},
    {&local, "127.255.1.2:1", 0},
    {&local, "[::1]", 0},
    {&local, "[::1]:80", 0},
    {&local, "[0:0::1]", 0},
    {&local, NULL, 400},
    {&local, "", 400},
    {&local, "a b", 400},
    {&local, "localhost:", 400},
    {&local, "localhost:99999", 400},
    {&local, "localhost.evil.org", 403},
    {&local, "evil.localhost", 403},
    {&local, "127.0.0.1.evil.org", 403},
    {&local, "127.1", 403},
    {&local, "0x7f.0.0.1", 403},
    {&local, "2130706433", 403},
    {&local, "128.0.0.1", 403},
    {&local, "0.0.0.0", 403},
    {&local, "[::]", 403},
    {&local, "[::ffff:127.0.0.1]", 403},
    {&local, "evil.org", 403},
    {&local, "mcp.example.org", 403},
    {&open_, "localhost", 403},
    {&open_, "127.0.0.1", 403},
    {&open_, "mcp.example.org", 0},
    {&open_, "MCP.example.ORG:1234", 0},
    {&open_, "xmcp.example.org", 403},
    {&open_, "mcp.example.org.evil", 403},
    {&open_, "api.example.org:8443", 0},
    {&open_, "api.example.org:8444", 403},
    {&open_, "api.example.org", 403},
    {&open_, "a.sub.example.org", 0},
    {&open_, "a.b.sub.example.org:80", 0},
    {&open_, "sub.example.org", 403},
    {&open_, ".sub.example.org", 403},
    {&open_, "xsub.example.org", 403},
    {&open_, "[2001:db8::1]:80", 0},
    {&open_, "[2001:db8::2]", 403},
    {&both, "localhost:1", 0},
    {&both, "mcp.example.org", 0},
    {&none, "localhost", 403},
};

START_TEST(test_host)
{
	struct http_head h = {.host = text(host_rows[_i].host)};

	ck_assert_msg(http_guard_host(host_rows[_i].g, &h) == host_rows[_i].status,
	    "row %d: %s", _i, host_rows[_i].host ? host_rows[_i].host : "(absent)");
}
END_TEST

static const struct {
	const struct http_guard *g;
	const char *origin;
	int status;
} origin_rows[] = {
    {&local, NULL, 0},
    {&none, NULL, 0},
    {&local, "http://localhost", 0},
    {&local, "https://localhost:3000", 0},
    {&local, "HTTP://127.0.0.1:6274", 0},
    {&local, "http://[::1]:1", 0},
    {&local, "null", 403},
    {&local, "", 403},
    {&local, "http://localhost/", 403},
    {&local, "http://localhost.evil.org", 403},
    {&local, "http://evil.org", 403},
    {&local, "http://x@localhost", 403},
    {&local, "ftp://localhost", 403},
    {&local, "http://", 403},
    {&local, "localhost", 403},
    {&none, "http://localhost", 403},
    {&open_, "http://localhost", 403},
    {&open_, "https://app.example.org", 0},
    {&open_, "https://APP.example.org", 0},
    {&open_, "http://app.example.org", 403},
    {&open_, "https://app.example.org:444", 403},
    {&open_, "https://app.example.org.evil", 403},
    {&open_, "vscode://x", 0},
    {&both, "https://anything.example", 0},
    {&both, "null", 403},
    {&both, "https://a, https://b", 403},
    {&both, "https://a\xff", 403},
};

START_TEST(test_origin)
{
	const char *origin = origin_rows[_i].origin;
	struct http_head h = {.n_headers = 0};
	struct http_text cors = {"x", 1};
	int status;

	if (origin)
		h.headers[h.n_headers++] =
		    (struct http_header){text("oRigin"), text(origin)};
	status = http_guard_origin(origin_rows[_i].g, &h, &cors);
	ck_assert_msg(status == origin_rows[_i].status, "row %d: %s", _i,
	    origin ? origin : "(absent)");
	if (status == 0 && origin)
		ck_assert(http_text_is(cors, origin));
	else
		ck_assert(cors.p == NULL && cors.n == 0);
}
END_TEST

START_TEST(test_two_origins)
{
	struct http_head h = {.n_headers = 2};
	struct http_text cors;

	h.headers[0] = (struct http_header){text("Origin"), text("http://localhost")};
	h.headers[1] = h.headers[0];
	ck_assert_int_eq(http_guard_origin(&both, &h, &cors), 403);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_guard");
	TCase *tc = tcase_create("all");
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, test_host, 0, sizeof(host_rows) / sizeof(host_rows[0]));
	tcase_add_loop_test(
	    tc, test_origin, 0, sizeof(origin_rows) / sizeof(origin_rows[0]));
	tcase_add_test(tc, test_two_origins);
	suite_add_tcase(suite, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
