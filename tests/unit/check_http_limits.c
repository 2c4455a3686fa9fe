/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server at its bounds: slow and many clients, slow readers, event streams,
 * draining, and an owner that ends it inside callbacks.
 */
#include "mcpvisor/http_server.h"

#include "http_rig.h"

#include <malloc.h>

#define END "\r\n\r\n"

static const struct {
	const char *text; /* sent at once, and then nothing */
	const char *answer;
	int ends;
} slow[] = {
    {"G", "HTTP/1.1 408 Request Timeout\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 408 Request Timeout\r\n", 0},
    {"\r", "HTTP/1.1 408 Request Timeout\r\n", 0},
    {"POST /x HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhell",
	"HTTP/1.1 408 Request Timeout\r\n", 1},
    {"POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhell",
	"HTTP/1.1 408 Request Timeout\r\n", 1},
    {"POST /403 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhell",
	"HTTP/1.1 403 Forbidden\r\n", 1},
};

START_TEST(test_slow)
{
	struct client *c;

	opts.head_ms = opts.body_ms = 20;
	start();
	c = dial();
	say(c, slow[_i].text);
	expect(c, slow[_i].answer);
	while (!c->eof)
		loop_run(l);
	until(&ends, slow[_i].ends);
	hang_up(c);
}
END_TEST

/* A drip does not extend the time for a head. */
START_TEST(test_drip)
{
	const char *head = "GET / HTTP/1.1\r\nX: " /* never ends */;
	struct client *c;

	opts.head_ms = 30;
	start();
	c = dial();
	say(c, head);
	while (!c->eof && !strstr(buf_cstr(&c->in), "408")) {
		(void)!send(c->fd, "x", 1, MSG_NOSIGNAL);
		settle();
	}
	hang_up(c);
}
END_TEST

START_TEST(test_idle)
{
	struct client *c;

	opts.idle_ms = 20;
	start();
	c = dial();
	expect_end(c, "");
	hang_up(c);
	c = dial();
	say(c, GET("/hold/a"));
	wait_held('a');
	/* Not idle while an answer is due: this one waits for another's end. */
	{
		struct client *other = dial();

		expect_end(other, "");
		hang_up(other);
	}
	ck_assert(!c->eof && held['a']);
	answer(held['a'], "1");
	expect(c, END "1");
	expect_end(c, "");
	ck_assert_int_eq(gones, 0);
	hang_up(c);
}
END_TEST

START_TEST(test_stream)
{
	char d1[] = "{\"a\":", d2[] = "1}";
	struct iovec many[60], v[2] = {{d1, 5}, {d2, 2}};
	struct http_exchange *x;
	struct client *c;

	opts.heartbeat_ms = 10;
	start();
	c = dial();
	say(c, GET("/stream/s") GET("/echo"));
	x = wait_held('s');
	ck_assert(http_stream_is_open(x));
	expect(c, "HTTP/1.1 200 OK\r\n");
	expect(c, "X-Extra: 2\r\n"
		  "Content-Type: text/event-stream\r\n"
		  "Cache-Control: no-cache, no-store\r\n"
		  "X-Accel-Buffering: no\r\n"
		  "Transfer-Encoding: chunked" END);
	expect(c, "3\r\n:\n\n\r\n");
	expect(c, "3\r\n:\n\n\r\n");
	ck_assert_int_eq(http_stream_event(x, NULL, v, 2), MV_OK);
	expect(c, "f\r\ndata: {\"a\":1}\n\n\r\n");
	ck_assert_int_eq(http_stream_event(x, "i-1", v, 2), MV_OK);
	expect(c, "17\r\nid: i-1\ndata: {\"a\":1}\n\n\r\n");
	for (int i = 0; i < 60; i++)
		many[i] = v[1];
	ck_assert_int_eq(http_stream_event(x, NULL, many, 60), MV_OK);
	expect(c, "80\r\ndata: 1}1}1}");
	expect(c, "1}\n\n\r\n");
	ck_assert_int_eq(http_stream_event(x, "i-2", NULL, 0), MV_OK);
	expect(c, "10\r\nid: i-2\ndata: \n\n\r\n");
	ck_assert_int_eq(http_stream_typed_event(x, "endpoint", v, 2), MV_OK);
	expect(c, "1f\r\nevent: endpoint\ndata: {\"a\":1}\n\n\r\n");
	http_stream_retry(x, 1000);
	expect(c, "d\r\nretry: 1000\n\n\r\n");
	http_stream_end(x);
	http_stream_retry(x, 1000);
	ck_assert(!http_stream_is_open(x));
	ck_assert_int_eq(http_stream_event(x, NULL, v, 2), MV_CLOSED);
	expect(c, "0\r\n\r\nHTTP/1.1 200 OK\r\n");
	expect(c, END "empty");
	until(&ends, 2);
	ck_assert_str_eq(buf_cstr(&ended), "so");
	hang_up(c);
}
END_TEST

/* A stream behind an open answer is held back whole. */
START_TEST(test_stream_in_order)
{
	char text[] = "x";
	struct iovec v = {text, 1};
	struct client *c;

	opts.heartbeat_ms = 10;
	start();
	c = dial();
	say(c, GET("/hold/a") GET("/stream/s") GET("/stream/t"));
	wait_held('t');
	ck_assert_int_eq(http_stream_event(held['t'], NULL, &v, 1), MV_OK);
	http_stream_end(held['t']);
	ck_assert_int_eq(http_stream_event(held['s'], NULL, &v, 1), MV_OK);
	settle();
	ck_assert_uint_eq(c->in.len, 0);
	answer(held['a'], "first");
	expect(c, "firstHTTP/1.1 200 OK");
	expect(c, END "9\r\ndata: x\n\n\r\n");
	expect(c, "3\r\n:\n\n\r\n"); /* only now */
	http_stream_end(held['s']);
	expect(c, "0\r\n\r\nHTTP/1.1 200 OK");
	expect(c, "9\r\ndata: x\n\n\r\n0\r\n\r\n");
	hang_up(c);
}
END_TEST

START_TEST(test_stream_http10)
{
	char text[] = "x";
	struct iovec v = {text, 1};
	struct client *c;

	opts.heartbeat_ms = 10;
	start();
	c = dial();
	say(c, "GET /stream/s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET("/echo"));
	expect(c, "HTTP/1.1 200 OK\r\n");
	ck_assert_ptr_null(strstr(buf_cstr(&c->in), "chunked"));
	expect(c, "Connection: close" END);
	expect(c, ":\n\n");
	ck_assert_int_eq(http_stream_event(held['s'], "1", &v, 1), MV_OK);
	expect(c, "id: 1\ndata: x\n\n");
	http_stream_end(held['s']);
	while (!c->eof)
		loop_run(l);
	ck_assert_int_eq(requests, 1);
	hang_up(c);
}
END_TEST

START_TEST(test_stream_left)
{
	struct client *c;

	start();
	c = dial();
	say(c, GET("/stream/s"));
	expect(c, END);
	hang_up(c);
	until(&gones, 1);
}
END_TEST

/* Nobody reads: the stream ends at the bound, and its connection. */
START_TEST(test_slow_reader)
{
	struct iovec v = {big, 50000};
	enum mv_err err = MV_OK;
	struct http_exchange *x;
	struct client *c;
	int events = 0;

	opts.out_max = 500000;
	start();
	c = dial();
	say(c, _i ? GET("/hold/a") GET("/stream/s") : GET("/stream/s"));
	x = wait_held('s');
	watch_want(&c->watch, 0);
	while (err == MV_OK && events++ < 100) {
		err = http_stream_event(x, NULL, &v, 1);
		if (_i == 0 && events == 2)
			settle();
	}
	ck_assert_int_eq(err, MV_BUSY);
	ck_assert_int_ge(events, 9);
	ck_assert(!http_stream_is_open(x));
	ck_assert_int_eq(ends, 0);
	ck_assert_int_eq(http_stream_event(x, NULL, &v, 1), MV_CLOSED);
	http_stream_end(x);
	until(&gones, _i ? 2 : 1);
	ck_assert_uint_eq(http_server_connections(srv), 0);
	hang_up(c);
}
END_TEST

/* An answer over the bound ends the connection. */
START_TEST(test_answer_over_bound)
{
	struct client *c;

	opts.out_max = 1000;
	start();
	c = dial();
	say(c, GET("/big"));
	expect_end(c, "");
	until(&gones, 1);
	hang_up(c);
	c = dial();
	for (int i = 0; i < 100; i++) /* refused while nobody reads is no better */
		say(c, GET("/hold/a"));
	say(c, "\n");
	wait_held('a');
	settle();
	hang_up(c);
	settle();
	ck_assert_uint_eq(http_server_connections(srv), 0);
}
END_TEST

START_TEST(test_connections_max)
{
	struct client *c[200], *late;
	int i;

	opts.connections_max = 2;
	opts.head_ms = 20;
	start();
	for (i = 0; i < 2; i++)
		c[i] = dial();
	for (; i < 2 + 64; i++)
		c[i] = dial();
	ck_assert_uint_eq(http_server_connections(srv), 66);
	late = dial();
	expect(late, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n");
	while (!late->eof)
		loop_run(l);
	hang_up(late);
	say(c[2], GET("/echo"));
	expect(c[2], "HTTP/1.1 503 Service Unavailable\r\n");
	expect(c[2], "Retry-After: 1\r\n");
	expect(c[2], "Connection: close" END);
	/* One that says nothing is told as well. */
	expect(c[3], "HTTP/1.1 503 Service Unavailable\r\n");
	ck_assert_int_eq(heads, 0);
	say(c[0], GET("/echo"));
	expect(c[0], END "empty");
	for (i = 0; i < 66; i++)
		hang_up(c[i]);
	while (http_server_connections(srv))
		settle();
	c[0] = dial();
	say(c[0], GET("/echo"));
	expect(c[0], END "empty");
	hang_up(c[0]);
}
END_TEST

static void
on_drain(void *arg)
{
	ck_assert_ptr_eq(arg, &drains);
	drains++;
	loop_stop(l, 0);
}

START_TEST(test_drain)
{
	struct client *idle, *busy, *body;

	start();
	idle = dial();
	busy = dial();
	body = dial();
	say(busy, GET("/hold/a") GET("/hold/b"));
	say(body, "POST /echo HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nx");
	wait_held('b');
	while (heads < 3)
		settle();
	http_server_drain(srv, on_drain, &drains);
	expect_end(idle, "");
	hang_up(idle);
	say(busy, GET("/echo")); /* too late */
	answer(held['a'], "1");
	expect(busy, "Content-Length: 1" END "1");
	answer(held['b'], "2");
	expect(busy, "Connection: close" END);
	expect_end(busy, "2");
	hang_up(busy);
	ck_assert_int_eq(drains, 0);
	say(body, "y");
	expect(body, "Connection: close" END);
	expect_end(body, "xy");
	hang_up(body);
	until(&drains, 1);
	idle = dial();
	expect_end(idle, "");
	hang_up(idle);
}
END_TEST

START_TEST(test_drain_nobody)
{
	start();
	http_server_drain(srv, on_drain, &drains);
	ck_assert_int_eq(drains, 0);
	until(&drains, 1);
}
END_TEST

START_TEST(test_free_inside)
{
	struct client *c, *other;

	start();
	other = dial();
	say(other, GET("/hold/x") GET("/stream/s"));
	wait_held('s');
	c = dial();
	say(c, GET("/hold/a") GET("/hold/b"));
	wait_held('b');
	free_in_head = _i == 0;
	free_in_request = _i == 1;
	free_in_end = _i == 2;
	if (_i == 2)
		answer(held['a'], "1");
	else
		say(c, GET("/hold/c"));
	while (srv)
		settle();
	settle();
	ck_assert_int_eq(ends, _i == 1 ? 5 : 4);
	while (!c->eof || !other->eof)
		loop_run(l);
	hang_up(c);
	hang_up(other);
}
END_TEST

/* Who ends the server when the last connection has gone hears of no drain. */
START_TEST(test_free_in_drain)
{
	struct client *c;

	start();
	c = dial();
	settle();
	free_in_close = true;
	http_server_drain(srv, on_drain, &drains);
	ck_assert_ptr_null(srv);
	settle();
	ck_assert_int_eq(drains, 0);
	hang_up(c);
}
END_TEST

START_TEST(test_free_while_open)
{
	struct client *c;

	start();
	c = dial();
	say(c, GET("/hold/a"));
	wait_held('a');
	end_server();
	ck_assert_int_eq(gones, 1); /* at once */
	expect_end(c, "");
	hang_up(c);
}
END_TEST

/* Whatever allocation fails, each exchange ends once and the server goes on. */
START_TEST(test_no_memory)
{
	struct client *c;

	start();
	for (unsigned long nth = 1; nth < 20; nth++) {
		c = dial();
		say(c, GET("/hold/a") "POST /echo HTTP/1.1\r\n" H
				      "Transfer-Encoding: chunked\r\n\r\n"
				      "2\r\nhi\r\n0\r\n\r\n" GET("/stream/s"));
		mem_fail_at(nth, 0);
		settle();
		if (held['a'])
			answer(held['a'], "1");
		settle();
		mem_fail_at(0, 0);
		hang_up(c);
		while (http_server_connections(srv))
			settle();
		ck_assert_int_eq(ends, heads);
	}
	c = dial();
	say(c, GET("/echo"));
	expect(c, "empty");
	hang_up(c);
}
END_TEST

#define IDLE 200

/* What an idle connection that has had requests costs. */
START_TEST(test_idle_memory)
{
	struct client *c[IDLE];
	struct mallinfo2 before, after;

	start();
	for (int i = 0; i < IDLE; i++) {
		c[i] = dial();
		say(c[i], GET("/echo"));
		expect(c[i], "empty");
	}
	settle();
	after = mallinfo2();
	end_server();
	settle();
	before = mallinfo2();
	if (after.uordblks > before.uordblks) /* not under a sanitizer */
		ck_assert_uint_lt((after.uordblks - before.uordblks) / IDLE, 12 * 1024);
	for (int i = 0; i < IDLE; i++)
		hang_up(c[i]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_limits");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, test_slow, 0, sizeof(slow) / sizeof(slow[0]));
	tcase_add_test(tc, test_drip);
	tcase_add_test(tc, test_idle);
	tcase_add_test(tc, test_stream);
	tcase_add_test(tc, test_stream_in_order);
	tcase_add_test(tc, test_stream_http10);
	tcase_add_test(tc, test_stream_left);
	tcase_add_loop_test(tc, test_slow_reader, 0, 2);
	tcase_add_test(tc, test_answer_over_bound);
	tcase_add_test(tc, test_connections_max);
	tcase_add_test(tc, test_drain);
	tcase_add_test(tc, test_drain_nobody);
	tcase_add_loop_test(tc, test_free_inside, 0, 3);
	tcase_add_test(tc, test_free_in_drain);
	tcase_add_test(tc, test_free_while_open);
	tcase_add_test(tc, test_no_memory);
	tcase_add_test(tc, test_idle_memory);
	return run_suite(suite, tc);
}
