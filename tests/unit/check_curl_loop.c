/* layer: io, fakes: web */
/* SPDX-License-Identifier: MIT */
/* Transfers: what is sent, what comes back, and broken answers. */
#include "curl_rig.h"

#define OK_HEAD(n) "HTTP/1.1 200 OK\r\nContent-Length: " #n "\r\n"

#define BIG_BYTES (3u * 1024 * 1024)

static char big[BIG_BYTES];
static char long_head[300 * 1024];
static const char gz[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57"
    "\xc8\x20\x8b\x04\x00\xe4\x4d\xd0\x59\x3c\x00\x00\x00";

static const struct canned table[] = {
    {"/hello",
	OK_HEAD(5) "Content-Type: Text/HTML ; charset=x\r\nmcp-session-id:  s-1 \r\n\r\n",
	"hello", 5, .is_silent = false},
    {"/empty", OK_HEAD(0) "\r\n", "", 0, .is_silent = false},
    {"/none", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "", 0,
	.is_silent = false},
    {"/chunked",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n"
	"3;e=1\r\nabc\r\n4\r\ndefg\r\n0\r\nMcp-Session-Id: late\r\n\r\n",
	"", 0, .is_silent = false},
    {"/gzip", OK_HEAD(29) "Content-Encoding: gzip\r\n\r\n", gz, sizeof(gz) - 1,
	.is_silent = false},
    {"/close", "HTTP/1.1 200 OK\r\n\r\n", "to the end", 10, .ends = true},
    {"/hints",
	"HTTP/1.1 103 Early Hints\r\nMcp-Session-Id: early\r\n\r\n" OK_HEAD(1) "\r\n",
	"x", 1, .is_silent = false},
    {"/auth",
	"HTTP/1.1 401 No\r\nContent-Length: 0\r\nWWW-Authenticate: A x=1\r\n"
	"Www-authenticate: B y=2\r\n\r\n",
	"", 0, .is_silent = false},
    {"/redirect",
	"HTTP/1.1 302 There\r\nContent-Length: 0\r\nLocation: /hello?a#b\r\n\r\n", "", 0,
	.is_silent = false},
    {"/later", "HTTP/1.1 503 Later\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n", "", 0,
	.is_silent = false},
    {"/date",
	"HTTP/1.1 503 Later\r\nContent-Length: 0\r\nRetry-After: Fri, 31 Dec 1999 "
	"23:59:59 "
	"GMT\r\n\r\n",
	"", 0, .is_silent = false},
    {"/long-wait",
	"HTTP/1.1 503 Later\r\nContent-Length: 0\r\nRetry-After: 99999999999999\r\n\r\n",
	"", 0, .is_silent = false},
    {"/once", OK_HEAD(2) "\r\n", "ok", 2, .is_once = true},
    {"/silent", "", "", 0, .is_silent = true},
    {"/hangup", "", "", 0, .ends = true},
    {"/cut", OK_HEAD(100) "\r\n", "first", 5, .ends = true},
    {"/cut-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nabc", 6,
	.ends = true},
    {"/cut-head", "HTTP/1.1 200 OK\r\nContent-Le", "", 0, .ends = true},
    {"/bad-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "zz\r\nabc",
	7, .ends = true},
    {"/bad-gzip", OK_HEAD(9) "Content-Encoding: gzip\r\n\r\n", "not at al", 9,
	.is_silent = false},
    {"/garbage", "what is this\r\n\r\n", "", 0, .ends = true},
    {"/long-head", long_head, "", 0, .ends = true},
    {NULL, NULL, NULL, 0, .is_silent = false},
};

/* First, while nothing has loaded it. */
START_TEST(test_loaded_late)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	struct mv_errtext t;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		ck_assert_ptr_null(strstr(line, "libcurl"));
	fclose(f);
	ck_assert_int_eq(curl_loop_load(it, &t), MV_OK);
	ck_assert_int_eq(curl_loop_load(it, &t), MV_OK);
	ck_assert_uint_eq(curl_loop_count(it), 0);
	curl_loop_free(NULL);
}
END_TEST

static const struct {
	const char *path, *body;
	int status;
	const char *type, *session, *location, *auth;
	uint32_t retry_after_s;
} good[] = {
    {"/hello", "hello", 200, "text/html", "s-1", "-", "-", 0},
    {"/empty", "", 200, "", "-", "-", "-", 0},
    {"/none", "", 202, "", "-", "-", "-", 0},
    {"/chunked", "abcdefg", 200, "", "-", "-", "-", 0},
    {"/gzip", "hello hello hello hello hello hello hello hello hello hello ", 200, "",
	"-", "-", "-", 0},
    {"/close", "to the end", 200, "", "-", "-", "-", 0},
    {"/hints", "x", 200, "", "-", "-", "-", 0},
    {"/auth", "", 401, "", "-", "-", "A x=1, B y=2", 0},
    {"/redirect", "", 302, "", "-", "/hello?a#b", "-", 0},
    {"/later", "", 503, "", "-", "-", "-", 7},
    {"/date", "", 503, "", "-", "-", "-", 0},
    {"/long-wait", "", 503, "", "-", "-", "-", 1000000},
};

START_TEST(test_good)
{
	struct seen s;

	get(&s, good[_i].path);
	ck_assert_uint_eq(curl_loop_count(it), 1);
	finish(&s);
	ck_assert_msg(s.err == MV_OK, "%s: %s", good[_i].path, s.text);
	ck_assert_str_eq(s.text, "");
	ck_assert_int_eq(s.heads, 1);
	ck_assert_int_eq(s.status, good[_i].status);
	ck_assert_str_eq(s.type, good[_i].type);
	ck_assert_str_eq(s.session, good[_i].session);
	ck_assert_str_eq(s.location, good[_i].location);
	ck_assert_str_eq(s.auth, good[_i].auth);
	ck_assert_uint_eq(s.retry_after_s, good[_i].retry_after_s);
	ck_assert_str_eq(buf_cstr(&s.body), good[_i].body);
	ck_assert_uint_eq(curl_loop_count(it), 0);
	ck_assert_uint_eq(web.n_requests, 1);
	buf_fini(&s.body);
}
END_TEST

static const struct {
	const char *path, *words;
	int heads;
} broken[] = {
    {"/hangup", "Empty reply", 0},
    {"/cut", "transfer closed", 1},
    {"/cut-chunk", "transfer closed", 1},
    {"/cut-head", "", 0},
    {"/bad-chunk", "", 1},
    {"/bad-gzip", "", 1},
    {"/garbage", "HTTP/0.9", 0},
    {"/long-head", "the head of the answer is too long", 0},
};

START_TEST(test_broken)
{
	struct seen s;

	get(&s, broken[_i].path);
	finish(&s);
	ck_assert_msg(s.err == MV_CLOSED, "%s: %s", broken[_i].path, s.text);
	ck_assert_int_eq(s.heads, broken[_i].heads);
	ck_assert_ptr_nonnull(strstr(s.text, "127.0.0.1:"));
	ck_assert_msg(strstr(s.text, broken[_i].words) != NULL, "%s", s.text);
	buf_fini(&s.body);
}
END_TEST

/* Sends, waits for the end, and says whether the request had these words. */
static bool
sent(struct transfer_opts *o, const char *words)
{
	struct seen s = {0};

	o->url = o->url ? o->url : url_of("http", "127.0.0.1", "/none?key=1");
	o->proxy = o->proxy ? o->proxy : "";
	start(&s, o);
	finish(&s);
	buf_fini(&s.body);
	ck_assert_msg(s.err == MV_OK, "%s", s.text);
	return strstr(web.last.data, words) != NULL;
}

START_TEST(test_requests)
{
	static const char *const headers[] = {
	    "X-One: 1", "X-Empty: ", "User-Agent: me", "Content-Type: a/b", NULL};
	struct iovec iov[] = {
	    {(char *)(uintptr_t) "{\"a\":", 5}, {NULL, 0}, {(char *)(uintptr_t) "1}", 2}};
	struct transfer_opts o = {.headers = headers};
	struct transfer_opts post = {
	    .method = TRANSFER_POST, .headers = headers, .body = iov, .n_body = 3};
	struct transfer_opts bare = {.method = TRANSFER_POST};
	struct transfer_opts del = {.method = TRANSFER_DELETE};

	ck_assert(sent(&o, "GET /none?key=1 HTTP/1.1\r\n"));
	ck_assert(sent(&o, "\r\nX-One: 1\r\n"));
	ck_assert(sent(&o, "\r\nX-Empty:\r\n"));
	ck_assert(sent(&o, "\r\nUser-Agent: me\r\n"));
	ck_assert(sent(&o, "\r\nAccept-Encoding: gzip\r\n"));
	ck_assert(sent(&post, "POST /none?key=1 HTTP/1.1\r\n"));
	ck_assert(sent(&post, "\r\nContent-Length: 7\r\n"));
	ck_assert(sent(&post, "\r\nContent-Type: a/b\r\n"));
	ck_assert(sent(&post, "\r\n\r\n{\"a\":1}"));
	ck_assert(!sent(&post, "Expect"));
	ck_assert(sent(&bare, "\r\nContent-Length: 0\r\n"));
	ck_assert(sent(&bare, "\r\nUser-Agent: mcpvisor/"));
	ck_assert(sent(&del, "DELETE /none?key=1 HTTP/1.1\r\n"));
	ck_assert(!sent(&del, "Content-Type"));
	/* All over one connection. */
	ck_assert_int_eq(web.n_conns, 1);
}
END_TEST

START_TEST(test_big_post)
{
	struct iovec iov = {big, BIG_BYTES};
	struct transfer_opts o = {.method = TRANSFER_POST, .body = &iov, .n_body = 1};

	ck_assert(sent(&o, "Content-Length: 3145728\r\n"));
	ck_assert(!sent(&o, "Expect"));
	ck_assert_mem_eq(web.last.data + web.last.len - BIG_BYTES, big, BIG_BYTES);
}
END_TEST

START_TEST(test_many_at_once)
{
	static struct seen all[WEB_CONNS];

	for (int i = 0; i < 150; i++)
		get(&all[i], "/silent");
	while (web.n_requests < 150)
		settle(5);
	ck_assert_uint_eq(curl_loop_count(it), 150);
	ck_assert_int_eq(web.n_conns, 150);
	for (int i = 0; i < 150; i++)
		transfer_cancel(all[i].t);
	ck_assert_uint_eq(curl_loop_count(it), 0);
	settle(5);
}
END_TEST

/* The server ends a kept connection while a request is on its way. */
START_TEST(test_stale_connection)
{
	struct iovec iov = {(char *)(uintptr_t) "x", 1};
	struct transfer_opts post = {.method = TRANSFER_POST, .body = &iov, .n_body = 1};
	struct seen s;

	get(&s, "/once");
	finish(&s);
	buf_fini(&s.body);
	memset(&s, 0, sizeof(s));
	post.url = url_of("http", "127.0.0.1", "/once");
	post.proxy = "";
	start(&s, &post);
	finish(&s);
	ck_assert_int_eq(s.err, MV_CLOSED);
	ck_assert_ptr_nonnull(strstr(s.text, "connection was closed"));
	ck_assert_uint_eq(web.n_requests, 2);
	buf_fini(&s.body);
	/* What has no body is tried anew. */
	get(&s, "/once");
	finish(&s);
	buf_fini(&s.body);
	web.n_requests = 0;
	get(&s, "/once");
	finish(&s);
	ck_assert_int_eq(s.err, MV_OK);
	ck_assert_uint_eq(web.n_requests, 2);
	buf_fini(&s.body);
}
END_TEST

START_TEST(test_unreachable)
{
	uint16_t nobody;
	int fd = web_socket(SOCK_STREAM, &nobody);
	char url[64];
	struct transfer_opts o = {.url = url, .proxy = ""};
	struct seen s = {0};

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/x?secret", nobody);
	start(&s, &o);
	finish(&s);
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_int_eq(s.heads, 0);
	ck_assert_ptr_nonnull(strstr(s.text, "127.0.0.1:"));
	ck_assert_ptr_null(strstr(s.text, "secret"));
	buf_fini(&s.body);
	close(fd);
}
END_TEST

static const struct {
	const char *url, *header, *proxy, *words;
} refused[] = {
    {"ftp://a/secret", NULL, "", "the URL: it cannot be fetched"},
    {"http://u:secret@a/", NULL, "", "the URL: it cannot be fetched"},
    {"http://127.0.0.1:1/", "A: secret\r\nB: 1", "", "a header is malformed"},
    {"http://127.0.0.1:1/", "secret", "", "a header is malformed"},
    {"http://127.0.0.1:1/", NULL, "gopher://u:secret@x", "its proxy"},
};

START_TEST(test_refused)
{
	const char *headers[] = {refused[_i].header, NULL};
	struct transfer_opts o = {
	    .url = refused[_i].url, .headers = headers, .proxy = refused[_i].proxy};
	struct seen s = {0};

	start(&s, &o);
	finish(&s);
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_msg(strstr(s.text, refused[_i].words) != NULL, "%s", s.text);
	ck_assert_ptr_null(strstr(s.text, "secret"));
	buf_fini(&s.body);
}
END_TEST

/* A server that takes the connection and never says a word of TLS. */
START_TEST(test_connect_time)
{
	struct transfer_opts o = {.proxy = "", .connect_ms = 60};
	struct seen s = {0};

	o.url = url_of("https", "127.0.0.1", "/x");
	web_listen(&web, false);
	start(&s, &o);
	finish(&s);
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	buf_fini(&s.body);
	web_listen(&web, true);
}
END_TEST

START_TEST(test_no_memory)
{
	struct iovec iov = {big, BIG_BYTES};
	struct transfer_opts o = {.method = TRANSFER_POST, .body = &iov, .n_body = 1};

	o.url = url_of("http", "127.0.0.1", "/hello");
	mem_fail_at(1, 0);
	ck_assert_ptr_null(transfer_start(it, &o, &cb, NULL));
	mem_fail_at(0, 0);
	ck_assert_uint_eq(curl_loop_count(it), 0);
}
END_TEST

START_TEST(test_proxy)
{
	char proxy[64];
	struct transfer_opts o = {.url = "http://far.test/none", .proxy = proxy};
	struct seen s = {0};

	snprintf(proxy, sizeof(proxy), "http://u:secret@127.0.0.1:%u", web.port);
	/* A name that is the proxy's to find. */
	ck_assert(sent(&o, "GET http://far.test/none HTTP/1.1\r\nHost: far.test\r\n"));
	ck_assert(sent(&o, "\r\nProxy-Authorization: Basic "));
	o.url = "https://far.test/none";
	web.answers = (const struct canned[]){
	    {"far.test:443", "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "", 0,
		.is_silent = false},
	    {NULL, NULL, NULL, 0, .is_silent = false}};
	start(&s, &o);
	finish(&s);
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_int_eq(s.heads, 0);
	ck_assert_ptr_nonnull(
	    strstr(s.text, "far.test:443 through the proxy 127.0.0.1:"));
	ck_assert_ptr_nonnull(strstr(s.text, "407"));
	ck_assert_ptr_null(strstr(s.text, "secret"));
	buf_fini(&s.body);
}
END_TEST

static void
setup_answers(void)
{
	web.answers = table;
	for (size_t i = 0; i < BIG_BYTES; i++)
		big[i] = (char)(i * 2654435761u >> 13);
	memset(long_head, 'x', sizeof(long_head) - 1);
	memcpy(long_head, "HTTP/1.1 200 OK\r\n", 17);
	for (size_t i = 1000; i + 10 < sizeof(long_head); i += 1000)
		memcpy(long_head + i, "\r\nX: ", 5);
	memcpy(long_head + 17, "X: ", 3);
}

#define COUNT(t) ((int)(sizeof(t) / sizeof((t)[0])))

int
main(void)
{
	Suite *s = suite_create("curl_loop");
	TCase *tc = tcase_create("curl_loop");

	setup_more = setup_answers;
	tcase_add_test(tc, test_loaded_late);
	tcase_add_loop_test(tc, test_good, 0, COUNT(good));
	tcase_add_loop_test(tc, test_broken, 0, COUNT(broken));
	tcase_add_test(tc, test_requests);
	tcase_add_test(tc, test_big_post);
	tcase_add_test(tc, test_many_at_once);
	tcase_add_test(tc, test_stale_connection);
	tcase_add_test(tc, test_unreachable);
	tcase_add_loop_test(tc, test_refused, 0, COUNT(refused));
	tcase_add_test(tc, test_connect_time);
	tcase_add_test(tc, test_no_memory);
	tcase_add_test(tc, test_proxy);
	return run_suite(s, tc);
}
