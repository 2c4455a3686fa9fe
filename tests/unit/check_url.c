/* layer: io */
/* SPDX-License-Identifier: MIT */
/* Origins, references, and which proxy a request takes. */
#include "mcpvisor/curl_loop.h"

#include "../../src/io/curl_loop_priv.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

static const struct {
	const char *url, *scheme, *host;
	unsigned port;
} origins[] = {
    {"http://example.org", "http", "example.org", 80},
    {"HTTPS://EXAMPLE.org/x?y#z", "https", "example.org", 443},
    {"http://a:1/", "http", "a", 1},
    {"http://a:65535", "http", "a", 65535},
    {"http://a:/", "http", "a", 80},
    {"http://a?q", "http", "a", 80},
    {"http://a#f", "http", "a", 80},
    {"http://a_b-c.d/", "http", "a_b-c.d", 80},
    {"http://127.0.0.1:8/", "http", "127.0.0.1", 8},
    {"http://1.example/", "http", "1.example", 80},
    {"https://[::1]:9/", "https", "[::1]", 9},
    {"https://[2001:DB8:0::1]/", "https", "[2001:db8::1]", 443},
    {"http://a/@b", "http", "a", 80},
    {"http://a?@b", "http", "a", 80},
    {"", NULL, NULL, 0},
    {"http", NULL, NULL, 0},
    {"http:", NULL, NULL, 0},
    {"http:/a", NULL, NULL, 0},
    {"http://", NULL, NULL, 0},
    {"http:///a", NULL, NULL, 0},
    {"//a", NULL, NULL, 0},
    {"ftp://a", NULL, NULL, 0},
    {"file:///etc/passwd", NULL, NULL, 0},
    {"httpx://a", NULL, NULL, 0},
    {" http://a", NULL, NULL, 0},
    {"http://a b", NULL, NULL, 0},
    {"http://a/b c", NULL, NULL, 0},
    {"http://a/b\r\nc", NULL, NULL, 0},
    {"http://a\\@b/", NULL, NULL, 0},
    {"http://u@a/", NULL, NULL, 0},
    {"http://u:p@a/", NULL, NULL, 0},
    {"http://@a/", NULL, NULL, 0},
    {"http://a:0/", NULL, NULL, 0},
    {"http://a:65536/", NULL, NULL, 0},
    {"http://a:123456/", NULL, NULL, 0},
    {"http://a:8x/", NULL, NULL, 0},
    {"http://a:+8/", NULL, NULL, 0},
    {"http://a./", NULL, NULL, 0},
    {"http://a..b/", NULL, NULL, 0},
    {"http://.a/", NULL, NULL, 0},
    {"http://a%2eb/", NULL, NULL, 0},
    {"http://b\xc3\xbc/", NULL, NULL, 0},
    {"http://127.1/", NULL, NULL, 0},
    {"http://2130706433/", NULL, NULL, 0},
    {"http://0x7f.1/", NULL, NULL, 0},
    {"http://a.0x7F/", NULL, NULL, 0},
    {"http://127.0.0.01/", NULL, NULL, 0},
    {"http://256.0.0.1/", NULL, NULL, 0},
    {"http://[::1/", NULL, NULL, 0},
    {"http://[]/", NULL, NULL, 0},
    {"http://[1.2.3.4]/", NULL, NULL, 0},
    {"http://[fe80::1%25eth0]/", NULL, NULL, 0},
    {"http://[::1]x/", NULL, NULL, 0},
};

START_TEST(test_origin)
{
	struct url_origin o;
	bool ok = url_read_origin(origins[_i].url, &o);

	ck_assert_msg(ok == (origins[_i].scheme != NULL), "%s", origins[_i].url);
	if (!ok)
		return;
	ck_assert_str_eq(o.scheme, origins[_i].scheme);
	ck_assert_str_eq(o.host, origins[_i].host);
	ck_assert_uint_eq(o.port, origins[_i].port);
}
END_TEST

START_TEST(test_long_host)
{
	char url[400] = "http://", *p = url + 7;
	struct url_origin o;

	/* 253 bytes in labels of 63 are the most. */
	memset(p, 'a', 256);
	p[63] = p[127] = p[191] = '.';
	p[253] = '\0';
	ck_assert(url_read_origin(url, &o));
	p[253] = 'a';
	p[254] = '\0';
	ck_assert(!url_read_origin(url, &o));
	p[63] = 'a';
	p[100] = '\0';
	ck_assert(!url_read_origin(url, &o));
}
END_TEST

static const struct {
	const char *a, *b;
	bool same;
} pairs[] = {
    {"http://a/x", "HTTP://A:80/y", true},
    {"https://a", "https://a:443", true},
    {"http://[::1]/", "http://[0:0::1]/", true},
    {"http://a", "https://a", false},
    {"http://a", "http://a:81", false},
    {"http://a", "http://b", false},
    {"ftp://a", "ftp://a", false},
};

START_TEST(test_same_origin)
{
	ck_assert_msg(url_is_same_origin(pairs[_i].a, pairs[_i].b) == pairs[_i].same,
	    "%s %s", pairs[_i].a, pairs[_i].b);
}
END_TEST

#define BASE "http://a/b/c/d?q"

static const struct {
	const char *base, *ref, *want;
} refs[] = {
    /* RFC 3986, 5.4, with a path without ";". */
    {BASE, "g", "http://a/b/c/g"},
    {BASE, "./g", "http://a/b/c/g"},
    {BASE, "g/", "http://a/b/c/g/"},
    {BASE, "/g", "http://a/g"},
    {BASE, "//g", "http://g"},
    {BASE, "?y", "http://a/b/c/d?y"},
    {BASE, "g?y", "http://a/b/c/g?y"},
    {BASE, "#s", BASE},
    {BASE, "g#s", "http://a/b/c/g"},
    {BASE, "g?y#s", "http://a/b/c/g?y"},
    {BASE, "g;x", "http://a/b/c/g;x"},
    {BASE, "", BASE},
    {BASE, ".", "http://a/b/c/"},
    {BASE, "./", "http://a/b/c/"},
    {BASE, "..", "http://a/b/"},
    {BASE, "../", "http://a/b/"},
    {BASE, "../g", "http://a/b/g"},
    {BASE, "../..", "http://a/"},
    {BASE, "../../", "http://a/"},
    {BASE, "../../g", "http://a/g"},
    {BASE, "../../../g", "http://a/g"},
    {BASE, "../../../../g", "http://a/g"},
    {BASE, "/./g", "http://a/g"},
    {BASE, "/../g", "http://a/g"},
    {BASE, "g.", "http://a/b/c/g."},
    {BASE, ".g", "http://a/b/c/.g"},
    {BASE, "g..", "http://a/b/c/g.."},
    {BASE, "..g", "http://a/b/c/..g"},
    {BASE, "./../g", "http://a/b/g"},
    {BASE, "./g/.", "http://a/b/c/g/"},
    {BASE, "g/./h", "http://a/b/c/g/h"},
    {BASE, "g/../h", "http://a/b/c/h"},
    {BASE, "g?y/./x", "http://a/b/c/g?y/./x"},
    {BASE, "g#s/../x", "http://a/b/c/g"},
    {BASE, "?", "http://a/b/c/d?"},
    {BASE, "https://x:1/y/../z", "https://x:1/z"},
    {"http://a", "g", "http://a/g"},
    {"http://a?q", "", "http://a?q"},
    {"http://a", "?x", "http://a?x"},
    {"http://a:8/sse", "/messages?id=1", "http://a:8/messages?id=1"},
    {"http://a//b", "..//c", "http://a//c"},
    {BASE, "g:h", NULL},
    {BASE, "http:g", NULL},
    {BASE, "file:///etc/passwd", NULL},
    {BASE, "//u:p@g", NULL},
    {BASE, "//", NULL},
    {BASE, "a b", NULL},
    {BASE, "/x\n", NULL},
    {"nothing", "http://a", NULL},
};

START_TEST(test_resolve)
{
	struct buf out;
	bool ok;

	buf_init(&out, 4096);
	buf_add_str(&out, "<");
	ok = url_resolve(refs[_i].base, refs[_i].ref, &out);
	ck_assert_msg(ok == (refs[_i].want != NULL), "%s", refs[_i].ref);
	ck_assert_str_eq(buf_cstr(&out) + 1, ok ? refs[_i].want : "");
	buf_fini(&out);
}
END_TEST

START_TEST(test_resolve_bound)
{
	struct buf out;

	for (size_t max = 0; max <= strlen("http://a/b/c/gggg"); max++) {
		buf_init(&out, max);
		ck_assert_int_eq(
		    url_resolve(BASE, "gggg", &out), max == strlen("http://a/b/c/gggg"));
		buf_fini(&out);
	}
}
END_TEST

static const struct {
	const char *list, *host;
	bool excepted;
} exceptions[] = {
    {"*", "a", true},
    {"a", "a", true},
    {"a", "b.a", true},
    {".a", "b.a", true},
    {".a", "a", true},
    {"a", "ba", false},
    {"A.B", "x.a.b", true},
    {"a.", "a", true},
    {"x, y a", "a", true},
    {"x,a", "a", true},
    {"", "a", false},
    {",,", "a", false},
    {".", "a", false},
    {"ab", "a", false},
    {"a,*", "b", false},
    {"127.0.0.1", "127.0.0.1", true},
    {"7.0.0.1", "127.0.0.1", false},
    {"10.0.0.0/8", "10.9.8.7", true},
    {"10.0.0.0/8", "11.0.0.1", false},
    {"10.0.0.0/9", "10.128.0.1", false},
    {"10.0.0.0/0", "11.0.0.1", true},
    {"10.0.0.0/33", "10.0.0.0", false},
    {"10.0.0.0/", "10.0.0.0", false},
    {"10.0.0.0/x", "10.0.0.0", false},
    {"[::1]", "[::1]", true},
    {"::1", "[::1]", true},
    {"2001:db8::/32", "[2001:db8:1::5]", true},
    {"2001:db8::/32", "[2001:db9::5]", false},
};

START_TEST(test_exceptions)
{
	ck_assert_msg(curl_proxy_is_excepted(exceptions[_i].list, exceptions[_i].host) ==
			  exceptions[_i].excepted,
	    "%s %s", exceptions[_i].list, exceptions[_i].host);
}
END_TEST

static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "https_proxy",
    "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"};

static const struct {
	const char *env[4]; /* name, value, ... */
	const char *wanted, *url, *proxy;
	unsigned port;
} proxies[] = {
    {{NULL}, NULL, "http://a", "", 80},
    {{"http_proxy", "p:1"}, NULL, "http://a", "http://p:1", 1},
    {{"http_proxy", "p"}, NULL, "http://a", "http://p:1080", 1080},
    {{"http_proxy", ""}, NULL, "http://a", "", 80},
    {{"HTTP_PROXY", "p:1"}, NULL, "http://a", "", 80},
    {{"http_proxy", "p:1"}, NULL, "https://a", "", 443},
    {{"https_proxy", "p:1", "HTTPS_PROXY", "q:2"}, NULL, "https://a", "http://p:1", 1},
    {{"HTTPS_PROXY", "https://q"}, NULL, "https://a", "https://q:443", 443},
    {{"all_proxy", "socks5://p"}, NULL, "http://a", "socks5h://p:1080", 1080},
    {{"ALL_PROXY", "SOCKS4://p:9/"}, NULL, "https://a", "socks4a://p:9", 9},
    {{"http_proxy", "p:1", "no_proxy", "a"}, NULL, "http://x.a", "", 80},
    {{"http_proxy", "p:1", "NO_PROXY", "a"}, NULL, "http://a", "", 80},
    {{"http_proxy", "p:1", "no_proxy", "b"}, NULL, "http://a", "http://p:1", 1},
    {{"http_proxy", "p:1"}, "", "http://a", "", 80},
    {{"no_proxy", "*"}, "http://u:w%40@p:1", "http://a", "http://u:w%40@p:1", 1},
    {{NULL}, "[::1]:3128", "http://a", "http://[::1]:3128", 3128},
    {{NULL}, "ftp://p", "http://a", NULL, 0},
    {{NULL}, "http://", "http://a", NULL, 0},
    {{NULL}, "p:x", "http://a", NULL, 0},
    {{NULL}, "u\r\nx@p", "http://a", NULL, 0},
};

START_TEST(test_proxy)
{
	struct url_origin o, via;
	struct buf out;
	bool ok;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	for (int i = 0; i < 4 && proxies[_i].env[i]; i += 2)
		setenv(proxies[_i].env[i], proxies[_i].env[i + 1], 1);
	ck_assert(url_read_origin(proxies[_i].url, &o));
	buf_init(&out, 4096);
	ok = curl_proxy_find(proxies[_i].wanted, &o, &out, &via);
	ck_assert_int_eq(ok, proxies[_i].proxy != NULL);
	if (ok) {
		ck_assert_str_eq(buf_cstr(&out), proxies[_i].proxy);
		ck_assert_uint_eq(via.port, proxies[_i].port);
	}
	buf_fini(&out);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

int
main(void)
{
	Suite *s = suite_create("url");
	TCase *tc = tcase_create("url");
	SRunner *r;
	int failed;

	tcase_add_loop_test(tc, test_origin, 0, COUNT(origins));
	tcase_add_test(tc, test_long_host);
	tcase_add_loop_test(tc, test_same_origin, 0, COUNT(pairs));
	tcase_add_loop_test(tc, test_resolve, 0, COUNT(refs));
	tcase_add_test(tc, test_resolve_bound);
	tcase_add_loop_test(tc, test_exceptions, 0, COUNT(exceptions));
	tcase_add_loop_test(tc, test_proxy, 0, COUNT(proxies));
	suite_add_tcase(s, tc);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
