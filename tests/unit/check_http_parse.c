/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * The request parser: what is taken, what is refused and with which status, whole
 * and cut at every point.
 */
#include "mcpvisor/http_parse.h"

#include "mcpvisor/buf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#define H    "Host: a\r\n"
#define P    "POST /m HTTP/1.1\r\n" H
#define C    P "Transfer-Encoding: chunked\r\n\r\n"
#define A10  "aaaaaaaaaa"
#define A100 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10

static const struct http_limits limits = {
    .line_max = 64, .head_max = 512, .body_max = 1000};

struct example {
	int status;
	const char *text;
	size_t n; /* 0: strlen */
};

/* One request, given up to `cut` first and then whole. */
static int
take(const char *p, size_t n, size_t cut, struct http_head *h, struct buf *body)
{
	struct http_body b;
	size_t used = 0, end = cut;
	int status = http_parse_head(&limits, p, cut, h, &used);

	if (status == HTTP_MORE) {
		status = http_parse_head(&limits, p, n, h, &used);
		end = n;
	}
	if (status)
		return status;
	http_body_init(&b, h, &limits);
	for (;;) {
		const char *data;
		size_t len, eaten;

		status = http_body_next(&b, p + used, end - used, &data, &len, &eaten);
		if (status != 0 && status != HTTP_MORE)
			return status;
		if (len)
			buf_add(body, data, len);
		used += eaten;
		if (status == 0)
			return 0;
		if (eaten == 0 && end == n)
			return HTTP_MORE;
		if (eaten == 0)
			end = n;
	}
}

static void
check_cuts(const char *name, const char *p, size_t n, int want, const char *want_body)
{
	for (size_t cut = 0; cut <= n; cut++) {
		struct http_head h;
		struct buf body;
		int got;

		buf_init(&body, 4096);
		got = take(p, n, cut, &h, &body);
		ck_assert_msg(
		    got == want, "%s cut at %zu: want %d, got %d", name, cut, want, got);
		if (want_body)
			ck_assert_str_eq(buf_cstr(&body), want_body);
		buf_fini(&body);
	}
}

static const struct example refused[] = {
    /* request line */
    {400, "\n", 0},
    {400, "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", 0},
    {400, "\rGET / HTTP/1.1\r\n" H "\r\n", 0},
    {400, " GET / HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET  / HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET\t/ HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET /  HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET / HTTP/1.1 \r\n" H "\r\n", 0},
    {400, "GET / HTTP/1.1\n" H "\r\n", 0},
    {400, "GET / HTTP/1.1\r" H "\r\n", 0},
    {400, "GET /\r\n" H "\r\n", 0},
    {400, "GET\r\n" H "\r\n", 0},
    {400, "GET / http/1.1\r\n" H "\r\n", 0},
    {400, "GET / HTTP/1\r\n" H "\r\n", 0},
    {400, "GET / HTTP/1.\r\n" H "\r\n", 0},
    {400, "GET / HTTP/11.1\r\n" H "\r\n", 0},
    {400, "GET / HTTP/1.10\r\n" H "\r\n", 0},
    {400, "GET / HTTP /1.1\r\n" H "\r\n", 0},
    {400, "GET / HTTPS/1.1\r\n" H "\r\n", 0},
    {505, "GET / HTTP/2.0\r\n" H "\r\n", 0},
    {505, "GET / HTTP/1.2\r\n" H "\r\n", 0},
    {505, "GET / HTTP/0.9\r\n\r\n", 0},
    {400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
    {400, "G(T / HTTP/1.1\r\n" H "\r\n", 0},
    {400, "G\0T / HTTP/1.1\r\n" H "\r\n", 26},
    {400, "GET /\0 HTTP/1.1\r\n" H "\r\n", 28},
    {400, "GET /\x01 HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET /\x7f HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET /a#b HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET a HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET * HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET ftp://a/ HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET http:///a HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET http://u@a/ HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET http://b/ HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET http://a:80/ HTTP/1.1\r\n" H "\r\n", 0},
    {400, "GET http://a/ HTTP/1.1\r\n\r\n", 0},
    {501, "CONNECT a:443 HTTP/1.1\r\n" H "\r\n", 0},
    {400, "\x16\x03\x01\x02", 0}, /* TLS */
    {414, "GET /" A100 " HTTP/1.1\r\n" H "\r\n", 0},
    {414, A100, 0},
    /* Host */
    {400, "GET / HTTP/1.1\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H H "\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "host: b\r\n\r\n", 0},
    {400, "GET / HTTP/1.0\r\n" H H "\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: []\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 0},
    /* header lines */
    {400, "GET / HTTP/1.1\r\n " H "\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H " folded\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "\tfolded\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "No colon\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H ": none\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X(: a\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X\xe9: a\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n", 34},
    {400, "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n", 36},
    {400,
	"GET / HTTP/1.1\r\n" H "X: a\x0b"
	"b\r\n\r\n",
	0},
    {400, "GET / HTTP/1.1\r\n" H "X: a\x7f\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X: a\nY: b\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "X: a\r\r\n\r\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "\n", 0},
    {400, "GET / HTTP/1.1\r\n" H "\rX", 0},
    {431, "GET / HTTP/1.1\r\n" H "X: " A100 A100 A100 A100 A100 "\r\n\r\n", 0},
    {431, "GET / HTTP/1.1\r\n" H A100 A100 A100 A100 A100 ": x\r\n\r\n", 0},
    /* lengths */
    {400, P "Content-Length: +5\r\n\r\nhello", 0},
    {400, P "Content-Length: -5\r\n\r\nhello", 0},
    {400, P "Content-Length: 0x5\r\n\r\nhello", 0},
    {400, P "Content-Length: 5 5\r\n\r\nhello", 0},
    {400, P "Content-Length: 5, 5\r\n\r\nhello", 0},
    {400, P "Content-Length: 5.\r\n\r\nhello", 0},
    {400, P "Content-Length:\r\n\r\nhello", 0},
    {400, P "Content-Length: \xb2\r\n\r\n", 0},
    {400, P "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 0},
    {400, P "Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello", 0},
    {400, P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
    {400, P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 0},
    {413, P "Content-Length: 1001\r\n\r\n", 0},
    {413, P "Content-Length: 18446744073709551615\r\n\r\n", 0},
    {413, P "Content-Length: 18446744073709551621\r\n\r\nhello", 0},
    {413, P "Content-Length: 99999999999999999999999999\r\n\r\n", 0},
    /* codings */
    {501, P "Transfer-Encoding: gzip\r\n\r\n", 0},
    {501, P "Transfer-Encoding: identity\r\n\r\n", 0},
    {501, P "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0},
    {501, P "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 0},
    {501, P "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 0},
    {501, P "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", 0},
    {501, P "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 0},
    {400, P "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 0},
    {400, P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
    {400, P "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n", 0},
    {400, P "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 0},
    {400,
	P "Transfer-Encoding:\x0b"
	  "chunked\r\n\r\n0\r\n\r\n",
	0},
    {400, P "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 0},
    {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
    /* expectations */
    {417, P "Expect: 200-ok\r\n\r\n", 0},
    {417, P "Expect: 100-continue, x\r\nContent-Length: 1\r\n\r\nx", 0},
    {417, P "Expect: x\r\nExpect: 100-continue\r\n\r\n", 0},
    /* chunks */
    {400, C "0x5\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "+5\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "-5\r\nhello\r\n0\r\n\r\n", 0},
    {400, C " 5\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5 \r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5 ;a\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5_\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5\nhello\r\n0\r\n\r\n", 0},
    {400, C "5\rhello\r\n0\r\n\r\n", 0},
    {400, C "\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "g\r\n", 0},
    {400, C ";a\r\n", 0},
    {400, C "00000000000000005\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5\r\nhello0\r\n\r\n", 0},
    {400, C "5\r\nhello\n0\r\n\r\n", 0},
    {400, C "5\r\nhello\rX", 0},
    {400, C "4\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5;a\rb\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5;a\nb\r\nhello\r\n0\r\n\r\n", 0},
    {400, C "5;a\0\r\nhello\r\n0\r\n\r\n", sizeof(C) - 1 + 6},
    {400, C "5;" A100 A100 A100 "\r\nhello\r\n0\r\n\r\n", 0},
    {413, C "3e9\r\n", 0},
    {413, C "ffffffffffffffff\r\n", 0},
    {413, C "1\r\na\r\nffffffffffffffff\r\n", 0},
    {413, C "1\r\na\r\n3e8\r\n", 0},
    {400, C "0\r\nX\r\n\r\n", 0},
    {400, C "0\r\n X: a\r\n\r\n", 0},
    {400, C "0\r\nX : a\r\n\r\n", 0},
    {400, C "0\r\nX: a\n\r\n", 0},
    {400, C "0\r\n: a\r\n\r\n", 0},
    {400, C "0\r\nX: a\x01\r\n\r\n", 0},
    {400, C "0\r\n\n", 0},
    {400, C "0\r\n\rX", 0},
};

START_TEST(test_refused)
{
	const struct example *e = &refused[_i];
	char name[48];

	snprintf(name, sizeof(name), "refused[%d]", _i);
	check_cuts(name, e->text, e->n ? e->n : strlen(e->text), e->status, NULL);
}
END_TEST

static const struct {
	const char *text, *body;
} taken[] = {
    {"GET / HTTP/1.1\r\n" H "\r\n", ""},
    {"\r\nGET / HTTP/1.1\r\n" H "\r\n", ""},
    {"GET / HTTP/1.1\r\nhOST:a\r\n\r\n", ""},
    {"GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n", ""},
    {"GET /?q=a|b&c=%20 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", ""},
    {"GET / HTTP/1.0\r\n\r\n", ""},
    {"GET / HTTP/1.0\r\n" H "Expect: x\r\n\r\n", ""},
    {"OPTIONS * HTTP/1.1\r\n" H "\r\n", ""},
    {"GET http://a HTTP/1.1\r\nHost: A\r\n\r\n", ""},
    {"GET / HTTP/1.1\r\n" H "X:\r\nY: \r\nZ: \xc3\xa9\t\xff\r\n\r\n", ""},
    {"M-SEARCH / HTTP/1.1\r\n" H "!#$%&'*+-.^_`|~09: a\r\n\r\n", ""},
    {P "\r\n", ""},
    {P "Content-Length: 0\r\n\r\n", ""},
    {P "Content-Length: 005\r\n\r\nhello", "hello"},
    {P "Content-Length: 5\r\n\r\nhelloGET", "hello"},
    {P "Content-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello", "hello"},
    {C "0\r\n\r\n", ""},
    {C "5\r\nhello\r\n0\r\n\r\n", "hello"},
    {C "0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"},
    {C "1\r\na\r\nA\r\n" A10 "\r\n00\r\n\r\n", "a" A10},
    {C "5;a=b;c=\"d e\"\r\nhello\r\n0;z\r\n\r\n", "hello"},
    {C "5\r\nhello\r\n0\r\nX: a\r\nY:\r\n\r\nrest", "hello"},
    {P "transfer-encoding: Chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n", "\r\n"},
};

START_TEST(test_taken)
{
	char name[48];

	snprintf(name, sizeof(name), "taken[%d]", _i);
	check_cuts(name, taken[_i].text, strlen(taken[_i].text), 0, taken[_i].body);
}
END_TEST

/* Incomplete is neither sound nor refused. */
START_TEST(test_prefixes)
{
	const char *whole = P "X: y\r\n\r\n";
	size_t used, n = strlen(whole);
	struct http_head h;

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(
		    http_parse_head(&limits, whole, i, &h, &used), HTTP_MORE);
	ck_assert_int_eq(http_parse_head(&limits, whole, n, &h, &used), 0);
	ck_assert_uint_eq(used, n);
}
END_TEST

static void
parse(const char *text, struct http_head *h)
{
	size_t used;

	ck_assert_int_eq(http_parse_head(&limits, text, strlen(text), h, &used), 0);
	ck_assert_uint_eq(used, strlen(text));
}

START_TEST(test_fields)
{
	struct http_head h;
	struct http_text t;
	bool doubled;

	parse("DELETE http://a:1/p/q?x HTTP/1.1\r\nHost: A:1\r\nx-one: 1\r\nX-TWO: 2\r\n"
	      "x-two: 3\r\nEmpty:\r\n\r\n",
	    &h);
	ck_assert_int_eq(h.method, HTTP_M_DELETE);
	ck_assert(http_text_is(h.method_text, "DELETE"));
	ck_assert(http_text_is(h.target, "http://a:1/p/q?x"));
	ck_assert(http_text_is(h.path, "/p/q"));
	ck_assert(http_text_is(h.authority, "a:1"));
	ck_assert(http_text_is(h.host, "a:1"));
	ck_assert_uint_eq(h.n_headers, 5);
	t = http_header(&h, "X-One", &doubled);
	ck_assert(http_text_is(t, "1") && !doubled);
	t = http_header(&h, "x-two", &doubled);
	ck_assert(http_text_is(t, "2") && doubled);
	t = http_header(&h, "empty", NULL);
	ck_assert(t.p != NULL && t.n == 0);
	t = http_header(&h, "absent", &doubled);
	ck_assert(t.p == NULL && !doubled);
	ck_assert(http_text_is_token(h.method_text, "delete"));
	ck_assert(!http_text_is_token(h.method_text, "delet"));
	ck_assert(!http_text_is(h.method_text, "delete"));
	parse("GET HTTP://a?x HTTP/1.1\r\nHost: a\r\n\r\n", &h);
	ck_assert(http_text_is(h.path, "/"));
	parse("GET http://b/ HTTP/1.0\r\n\r\n", &h);
	ck_assert(http_text_is(h.host, "b"));
	parse("get / HTTP/1.0\r\n\r\n", &h);
	ck_assert_int_eq(h.method, HTTP_M_OTHER);
	ck_assert(h.host.p == NULL);
}
END_TEST

static const struct {
	const char *line;
	int minor;
	bool keep;
} keeps[] = {
    {"", 1, true},
    {"Connection: close\r\n", 1, false},
    {"Connection: Keep-Alive, CLOSE\r\n", 1, false},
    {"Connection: x\r\nConnection: y ,close\r\n", 1, false},
    {"Connection: closed, not-close\r\n", 1, true},
    {"Connection: upgrade\r\n", 1, true},
    {"", 0, false},
    {"Connection: keep-alive\r\n", 0, true},
    {"Connection: keep-alive, close\r\n", 0, false},
};

START_TEST(test_keep_alive)
{
	char text[256];
	struct http_head h;

	snprintf(text, sizeof(text), "GET / HTTP/1.%d\r\n" H "%s\r\n", keeps[_i].minor,
	    keeps[_i].line);
	parse(text, &h);
	ck_assert_int_eq(h.minor, keeps[_i].minor);
	ck_assert_int_eq(h.keep_alive, keeps[_i].keep);
}
END_TEST

START_TEST(test_expect)
{
	struct http_head h;

	parse(P "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", &h);
	ck_assert(h.expect_continue);
	parse(P "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", &h);
	ck_assert(h.expect_continue && h.chunked && !h.has_length);
	parse(P "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", &h);
	ck_assert(!h.expect_continue && h.has_length);
	parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", &h);
	ck_assert(!h.expect_continue && h.length == 1);
}
END_TEST

/* Each limit is reached exactly, and passed by one. */
START_TEST(test_limits)
{
	struct http_limits l = {.line_max = 20, .head_max = 40, .body_max = 5};
	struct http_head h;
	char text[8192];
	size_t used, n;

	n = (size_t)snprintf(
	    text, sizeof(text), "GET /123456 HTTP/1.1\r\n" H "X: 12\r\n\r\n");
	ck_assert_uint_eq(n, 40);
	ck_assert_int_eq(http_parse_head(&l, text, n, &h, &used), 0);
	l.head_max = 39;
	ck_assert_int_eq(http_parse_head(&l, text, n, &h, &used), 431);
	ck_assert_int_eq(http_parse_head(&l, text, 39, &h, &used), HTTP_MORE);
	l.head_max = 100;
	l.line_max = 19;
	ck_assert_int_eq(http_parse_head(&l, text, n, &h, &used), 414);
	l = (struct http_limits){.line_max = 100, .head_max = 8192, .body_max = 5};
	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H);
	for (int i = 1; i < HTTP_HEADERS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "X: %d\r\n", i);
	memcpy(text + n, "\r\nX: 1\r\n\r\n", 11);
	ck_assert_int_eq(http_parse_head(&l, text, n + 2, &h, &used), 0);
	ck_assert_uint_eq(h.n_headers, HTTP_HEADERS_MAX);
	memcpy(text + n, "Y: 1\r\n\r\n", 9);
	ck_assert_int_eq(http_parse_head(&l, text, n + 8, &h, &used), 431);
}
END_TEST

/* Extension and trailer bounds, one byte below and above. */
START_TEST(test_chunk_bounds)
{
	static const struct {
		const char *before, *after;
		size_t max;
	} row[] = {
	    {"5;", "\r\nhello\r\n0\r\n\r\n", 256 - 1}, {"0\r\nX:", "\r\n\r\n", 8192 - 4}};
	const char *head = C;
	struct buf text, body;
	struct http_head h;

	for (size_t i = 0; i < 2; i++)
		for (size_t over = 0; over < 2; over++) {
			buf_init(&text, 65536);
			buf_init(&body, 4096);
			buf_add_str(&text, head);
			buf_add_str(&text, row[i].before);
			for (size_t k = 0; k < row[i].max + over; k++)
				buf_add_char(&text, 'e');
			buf_add_str(&text, row[i].after);
			ck_assert_int_eq(take(text.data, text.len, text.len, &h, &body),
			    over ? 400 : 0);
			buf_fini(&text);
			buf_fini(&body);
		}
}
END_TEST

/* valid/NAME: 0; invalid/STATUS-NAME. */
static unsigned
check_folder(const char *kind)
{
	const char *corpus = getenv("CORPUS");
	char folder[512], path[1024], text[8192];
	struct dirent *d;
	unsigned files = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/http/%s",
	    corpus != NULL ? corpus : "tests/corpus", kind);
	dir = opendir(folder);
	ck_assert_msg(dir != NULL, "no folder %s", folder);
	while ((d = readdir(dir)) != NULL) {
		FILE *f;
		size_t n;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		f = fopen(path, "rb");
		ck_assert(f != NULL);
		n = fread(text, 1, sizeof(text), f);
		fclose(f);
		check_cuts(d->d_name, text, n,
		    strcmp(kind, "valid") ? (int)strtol(d->d_name, NULL, 10) : 0, NULL);
		files++;
	}
	closedir(dir);
	return files;
}

START_TEST(test_corpus)
{
	ck_assert_uint_gt(check_folder("valid"), 0);
	ck_assert_uint_gt(check_folder("invalid"), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_parse");
	TCase *tc = tcase_create("all");
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, test_refused, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_loop_test(tc, test_taken, 0, sizeof(taken) / sizeof(taken[0]));
	tcase_add_loop_test(tc, test_keep_alive, 0, sizeof(keeps) / sizeof(keeps[0]));
	tcase_add_test(tc, test_prefixes);
	tcase_add_test(tc, test_fields);
	tcase_add_test(tc, test_expect);
	tcase_add_test(tc, test_limits);
	tcase_add_test(tc, test_chunk_bounds);
	tcase_add_test(tc, test_corpus);
	suite_add_tcase(suite, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
