/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: requests and answers, their order, and the life of a connection.
 */
#include "mcpvisor/http_server.h"

#include "http_rig.h"

#define POST5 "POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"
#define CHUNKED                                                                          \
	"POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"                 \
	"2;x\r\nhe\r\n3\r\nllo\r\n0\r\nT: x\r\n\r\n"
#define END "\r\n\r\n"

START_TEST(test_answer)
{
	struct client *c;

	start();
	c = dial();
	say(c, POST5);
	expect(c, "HTTP/1.1 200 OK\r\nDate: ");
	expect(c, " GMT\r\nX-Extra: 1\r\nContent-Type: application/json\r\n"
		  "Content-Length: 5\r\n\r\nhello");
	say(c, GET("/none"));
	expect(c, "HTTP/1.1 202 Accepted\r\n");
	expect(c, "Content-Length: 0" END);
	say(c, GET("/204"));
	expect(c, "HTTP/1.1 204 No Content\r\n");
	expect(c, END);
	ck_assert_ptr_null(strstr(buf_cstr(&c->in), "Content-Length"));
	say(c, "HEAD /echo HTTP/1.1\r\n" H "\r\n" GET("/echo"));
	expect(c, "Content-Length: 5" END "HTTP/1.1 200 OK");
	expect(c, END "empty");
	ck_assert_uint_eq(c->in.len, 0);
	until(&ends, 5);
	ck_assert_int_eq(gones, 0);
	ck_assert_uint_eq(http_server_connections(srv), 1);
	hang_up(c);
}
END_TEST

/* One request in two pieces, cut anywhere. */
START_TEST(test_cuts)
{
	static const char *const texts[] = {POST5, CHUNKED};
	const char *text = texts[_i];
	struct client *c;

	start();
	c = dial();
	for (size_t cut = 1; cut < strlen(text); cut++) {
		say_n(c, text, cut);
		settle();
		say(c, text + cut);
		expect(c, END "hello");
		ck_assert_uint_eq(c->in.len, 0);
	}
	hang_up(c);
}
END_TEST

START_TEST(test_pipelined)
{
	struct buf many;
	struct client *c;

	start();
	c = dial();
	buf_init(&many, 1 << 20);
	for (int i = 0; i < 100; i++) {
		buf_add_str(&many, POST5);
		buf_add_str(&many, CHUNKED);
	}
	say_n(c, many.data, many.len);
	for (int i = 0; i < 200; i++)
		expect(c, END "hello");
	ck_assert_uint_eq(c->in.len, 0);
	ck_assert_int_eq(requests, 200);
	buf_fini(&many);
	hang_up(c);
}
END_TEST

/* Answers given out of order leave in order. */
START_TEST(test_order)
{
	struct client *c;

	start();
	c = dial();
	say(c, GET("/hold/a") GET("/hold/b") GET("/echo") GET("/hold/c"));
	answer(wait_held('c'), "3");
	answer(wait_held('b'), "2");
	settle();
	ck_assert_uint_eq(c->in.len, 0);
	ck_assert_int_eq(ends, 0);
	answer(wait_held('a'), "1");
	expect(c, END "1HTTP/1.1");
	expect(c, END "2HTTP/1.1");
	expect(c, END "emptyHTTP/1.1");
	expect(c, END "3");
	until(&ends, 4);
	ck_assert_str_eq(buf_cstr(&ended), "aboc");
	hang_up(c);
}
END_TEST

START_TEST(test_pipeline_max)
{
	struct client *c;

	opts.pipeline_max = 2;
	start();
	c = dial();
	say(c, GET("/hold/a") GET("/hold/b") GET("/hold/c"));
	wait_held('b');
	settle();
	ck_assert_int_eq(requests, 2);
	answer(held['b'], "2");
	settle();
	ck_assert_int_eq(requests, 2);
	answer(held['a'], "1");
	answer(wait_held('c'), "3");
	expect(c, END "1");
	expect(c, END "2");
	expect(c, END "3");
	hang_up(c);
}
END_TEST

/* Input behind a full pipeline is bounded, and its client's end is seen. */
START_TEST(test_full_and_gone)
{
	struct client *c;
	ssize_t n, sent = 0;

	opts.pipeline_max = 1;
	start();
	c = dial();
	say(c, GET("/hold/a"));
	wait_held('a');
	for (int i = 0; i < 50; i++) {
		n = send(c->fd, big, sizeof(big), MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? n : 0;
		settle();
	}
	ck_assert_int_lt(sent, 4 * 1024 * 1024);
	hang_up(c);
	until(&ends, 1);
	ck_assert_int_eq(gones, 1);
}
END_TEST

/* As one that is read from: what was answered before it left its side still arrives. */
START_TEST(test_full_and_half_closed)
{
	struct client *c;

	opts.pipeline_max = 1;
	start();
	c = dial();
	watch_want(&c->watch, 0); /* it reads nothing for now */
	say(c, GET("/big") GET("/hold/a"));
	wait_held('a');
	for (int i = 0; i < 50; i++) {
		(void)!send(c->fd, big, 4096, MSG_NOSIGNAL | MSG_DONTWAIT);
		settle();
	}
	ck_assert_int_eq(shutdown(c->fd, SHUT_WR), 0);
	until(&ends, 2);
	ck_assert_int_eq(gones, 1);
	watch_want(&c->watch, WATCH_READ);
	while (!c->eof)
		loop_run(l);
	ck_assert_uint_gt(c->in.len, sizeof(big));
	hang_up(c);
}
END_TEST

static const struct {
	const char *request, *has, *has_not;
	bool stays;
} lives[] = {
    {"GET /echo HTTP/1.1\r\n" H "\r\n", "200 OK", "Connection:", true},
    {"GET /echo HTTP/1.1\r\n" H "Connection: close\r\n\r\n", "Connection: close", "zz",
	false},
    {"GET /echo HTTP/1.0\r\n\r\n", "Connection: close", "keep-alive", false},
    {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive",
	"close", true},
    {"POST /early HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", "early", "close", true},
    {"POST /early HTTP/1.1\r\n" H "Connection: close\r\nContent-Length: 2\r\n\r\n{}",
	"early", "zz", false},
    {"POST /early HTTP/1.1\r\n" H "Content-Length: 70000\r\n\r\n", "Connection: close",
	"zz", false},
    {"POST /early HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
	"Connection: close", "zz", false},
    {"POST /403 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", "403 Forbidden\r\n",
	"close", true},
    {"POST /403 HTTP/1.1\r\n" H "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n",
	"403 Forbidden\r\n", "100 Continue", false},
    {"GET /own HTTP/1.1\r\n" H "\r\n", "Allow: POST\r\nContent-Length: 0\r\n", "close",
	true},
};

START_TEST(test_life)
{
	struct client *c;

	start();
	c = dial();
	say(c, lives[_i].request);
	if (lives[_i].stays)
		say(c, "GET /hold/z HTTP/1.1\r\n" H "\r\n");
	else
		while (!c->eof)
			loop_run(l);
	if (lives[_i].stays) {
		answer(wait_held('z'), "next");
		await(c, "next");
	}
	ck_assert_msg(
	    strstr(buf_cstr(&c->in), lives[_i].has) != NULL, "%s", buf_cstr(&c->in));
	ck_assert_msg(
	    strstr(buf_cstr(&c->in), lives[_i].has_not) == NULL, "%s", buf_cstr(&c->in));
	hang_up(c);
}
END_TEST

/* A handful over a socket: the answer arrives although input is left unread. */
static const struct {
	const char *text, *status;
} bad[] = {
    {"GET / HTTP/1.1\n\n", "400 Bad Request"},
    {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
    {"GET / HTTP/3.0\r\n" H "\r\n", "505 HTTP Version Not Supported"},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	"400 Bad Request"},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 999999999\r\n\r\nxxxxx",
	"413 Content Too Large"},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\nxxxxx",
	"501 Not Implemented"},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
	"400 Bad Request"},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n",
	"413 Content Too Large"},
    {"POST / HTTP/1.1\r\n" H "Expect: cake\r\nContent-Length: 1\r\n\r\n",
	"417 Expectation Failed"},
    {"\x16\x03\x01\x02", "400 Bad Request"},
};

START_TEST(test_bad)
{
	struct client *c;
	char want[64];

	start();
	c = dial();
	say(c, GET("/hold/a"));
	say(c, bad[_i].text);
	say(c, GET("/echo")); /* never seen */
	answer(wait_held('a'), "first");
	expect(c, "first");
	snprintf(want, sizeof(want), "HTTP/1.1 %s\r\n", bad[_i].status);
	expect(c, want);
	expect(c, "Connection: close" END);
	snprintf(want, sizeof(want), "%s\n", bad[_i].status);
	expect_end(c, want);
	hang_up(c);
	settle();
	ck_assert_uint_eq(http_server_connections(srv), 0);
}
END_TEST

START_TEST(test_long_line_and_head)
{
	struct client *c;

	start();
	c = dial();
	say(c, "GET /");
	say_n(c, big, 9000);
	expect(c, "HTTP/1.1 414 URI Too Long\r\n");
	hang_up(c);
	c = dial();
	say(c, "GET / HTTP/1.1\r\nX: ");
	say_n(c, big, 40000);
	expect(c, "HTTP/1.1 431 ");
	hang_up(c);
}
END_TEST

START_TEST(test_expect)
{
	struct client *c;

	start();
	c = dial();
	say(c, "POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n"
	       "\r\n");
	expect(c, "HTTP/1.1 100 Continue\r\n\r\n");
	ck_assert_uint_eq(c->in.len, 0);
	say(c, "hi");
	expect(c, END "hi");
	/* The body has not waited. */
	say(c, "POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n"
	       "\r\nho");
	expect(c, "HTTP/1.1 200 OK");
	expect(c, END "ho");
	/* Not before the answers that come first. */
	say(c, GET("/hold/a") "POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\n"
			      "Transfer-Encoding: chunked\r\n\r\n");
	wait_held('a');
	settle();
	ck_assert_uint_eq(c->in.len, 0);
	answer(held['a'], "first");
	expect(c, "firstHTTP/1.1 100 Continue\r\n\r\n");
	say(c, "2\r\nha\r\n0\r\n\r\n");
	expect(c, END "ha");
	hang_up(c);
}
END_TEST

/* Half-close ends what is open, but what is answered still arrives. */
START_TEST(test_half_close)
{
	struct client *c;

	start();
	c = dial();
	say(c, GET("/big") GET("/hold/a") GET("/hold/b"));
	wait_held('b');
	answer(held['b'], "never");
	ck_assert_int_eq(shutdown(c->fd, SHUT_WR), 0);
	until(&ends, 3);
	ck_assert_str_eq(buf_cstr(&ended), "gAB");
	while (!c->eof)
		loop_run(l);
	ck_assert_uint_gt(c->in.len, sizeof(big));
	settle();
	ck_assert_uint_eq(http_server_connections(srv), 0);
	hang_up(c);
}
END_TEST

START_TEST(test_half_close_with_request)
{
	struct client *c;

	start();
	c = dial();
	say(c, POST5 GET("/hold/a") "GET / HTTP/1.1\r\nHo");
	shutdown(c->fd, SHUT_WR);
	expect(c, END "hello");
	expect_end(c, "");
	ck_assert_str_eq(buf_cstr(&ended), "oA");
	hang_up(c);
}
END_TEST

START_TEST(test_leaves_while_waiting)
{
	struct client *c;

	start();
	c = dial();
	say(c, GET("/hold/a") GET("/hold/b"));
	wait_held('b');
	ck_assert_uint_eq(http_exchange_uid(held['b']), 7);
	hang_up(c);
	until(&ends, 2);
	ck_assert_int_eq(gones, 2);
	/* In the middle of a body, too. */
	c = dial();
	say(c, "POST /x HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhe");
	while (heads < 3)
		settle();
	hang_up(c);
	until(&ends, 3);
	ck_assert_int_eq(gones, 3);
	ck_assert_int_eq(requests, 2);
}
END_TEST

START_TEST(test_big)
{
	struct client *c;
	char head[128];

	start();
	c = dial();
	snprintf(head, sizeof(head),
	    "POST /hold/a HTTP/1.1\r\n" H "Content-Length: %zu\r\n\r\n", sizeof(big));
	say(c, head);
	for (size_t sent = 0; sent < sizeof(big);) {
		ssize_t n = send(c->fd, big + sent, sizeof(big) - sent, MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		settle();
	}
	wait_held('a');
	ck_assert_uint_eq(last_body.len, sizeof(big));
	ck_assert_int_eq(memcmp(last_body.data, big, sizeof(big)), 0);
	answer(held['a'], "ok");
	expect(c, END "ok");
	say(c, GET("/big"));
	expect(c, "Content-Length: 1048576" END);
	await_bytes(c, sizeof(big));
	ck_assert_uint_eq(c->in.len, sizeof(big));
	ck_assert_int_eq(memcmp(c->in.data, big, sizeof(big)), 0);
	hang_up(c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_server");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, test_answer);
	tcase_add_loop_test(tc, test_cuts, 0, 2);
	tcase_add_test(tc, test_pipelined);
	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_pipeline_max);
	tcase_add_test(tc, test_full_and_gone);
	tcase_add_test(tc, test_full_and_half_closed);
	tcase_add_loop_test(tc, test_life, 0, sizeof(lives) / sizeof(lives[0]));
	tcase_add_loop_test(tc, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, test_long_line_and_head);
	tcase_add_test(tc, test_expect);
	tcase_add_test(tc, test_half_close);
	tcase_add_test(tc, test_half_close_with_request);
	tcase_add_test(tc, test_leaves_while_waiting);
	tcase_add_test(tc, test_big);
	return run_suite(suite, tc);
}
