/* layer: transport */
/* SPDX-License-Identifier: MIT */
/* The HTTP server while memory is short, and limits that change under way. */
#include "mcpvisor/http_server.h"

#include "http_rig.h"

#define END "\r\n\r\n"

static struct client *
half_body(const char *way, size_t n)
{
	struct client *c = dial();

	say(c, "POST /hold/a HTTP/1.1\r\n" H);
	say(c, way);
	for (size_t sent = 0; sent < n; sent += 8192) {
		say_n(c, big, 8192);
		settle();
	}
	return c;
}

/* Heads are answered while memory is short, and nothing of their body is read. */
START_TEST(test_memory_short)
{
	struct client *c, *body, *late;
	void *room = mem_xalloc(sizeof(big)); /* beside which all here is little */

	start();
	c = dial();
	say(c, GET("/echo"));
	expect(c, END "empty");
	body = half_body("Content-Length: 8193\r\n\r\n", 8192);
	mem_set_budget(mem_in_use());
	ck_assert(mem_is_short());
	ck_assert(!mem_is_exhausted());
	heads = requests = ends = 0;
	say(c, "POST /echo HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\n");
	expect(c, "HTTP/1.1 503 Service Unavailable\r\n");
	expect(c, "Retry-After: 1\r\n");
	expect(c, "Connection: close" END);
	late = dial();
	say(late, GET("/echo"));
	expect(late, "HTTP/1.1 503 Service Unavailable\r\n");
	ck_assert_int_eq(heads, 0);
	/* What is on its way goes on. */
	say(body, "x");
	wait_held('a');
	answer(held['a'], "whole");
	expect(body, END "whole");
	mem_set_budget(0);
	say(body, GET("/echo"));
	expect(body, END "empty");
	heads = ends;
	hang_up(c);
	hang_up(late);
	hang_up(body);
	mem_free(room);
}
END_TEST

static const char *const ways[] = {
    "Content-Length: 10000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nFFFFFF\r\n"};

/* Of bodies that come while memory is exhausted the largest go, as many as need to. */
START_TEST(test_memory_exhausted)
{
	struct client *c[3];
	size_t base;

	start();
	c[0] = half_body(ways[_i], (size_t)64 * 8192);
	mem_set_budget((size_t)1 << 40);
	base = mem_in_use();
	c[1] = half_body(ways[_i], (size_t)128 * 8192);
	c[2] = half_body(ways[_i], (size_t)8 * 8192);
	/* Passed by more than an eighth; without the second it is not. */
	mem_set_budget(base + (mem_in_use() - base) / 2);
	say(c[2], "x");
	expect(c[1], "HTTP/1.1 503 Service Unavailable\r\n");
	expect(c[1], "Retry-After: 1\r\n");
	expect(c[1], "Connection: close" END);
	settle();
	ck_assert(!mem_is_exhausted());
	ck_assert_int_eq(ends, 1);
	ck_assert_uint_eq(c[0]->in.len + c[2]->in.len, 0);
	/* Nothing is left of it, though its client sends on. */
	base = mem_in_use();
	for (int i = 0; i < 8; i++) {
		say_n(c[1], big, 8192);
		settle();
	}
	ck_assert_uint_lt(mem_in_use(), base + 8192);
	/* When others take what there is, all go, though none of them comes on. */
	mem_set_budget(4096);
	expect(c[0], "HTTP/1.1 503 Service Unavailable\r\n");
	expect(c[2], "HTTP/1.1 503 Service Unavailable\r\n");
	until(&ends, 3);
	for (int i = 0; i < 3; i++)
		hang_up(c[i]);
}
END_TEST

/* New limits are for what comes; what is on its way has those that it came with. */
START_TEST(test_set_opts)
{
	struct http_server_opts less = opts;
	struct client *c, *other;

	start();
	c = half_body("Content-Length: 16384\r\n\r\n", 8192);
	other = dial();
	settle();
	less.limits.body_max = 100;
	less.limits.head_max = 200;
	less.limits.line_max = 100;
	less.connections_max = 2;
	http_server_set_opts(srv, &less);
	say_n(c, big, 8192);
	wait_held('a');
	ck_assert_uint_eq(last_body.len, 16384);
	answer(held['a'], "whole");
	expect(c, END "whole");
	hang_up(c);
	hang_up(other);
	while (http_server_connections(srv))
		settle();
	c = dial();
	say(c, "POST /hold/a HTTP/1.1\r\n" H "Content-Length: 101\r\n\r\n");
	expect(c, "HTTP/1.1 413 ");
	other = dial();
	hang_up(dial());
	hang_up(c);
	hang_up(other);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_memory");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, test_memory_short);
	tcase_add_loop_test(tc, test_memory_exhausted, 0, sizeof(ways) / sizeof(ways[0]));
	tcase_add_test(tc, test_set_opts);
	return run_suite(suite, tc);
}
