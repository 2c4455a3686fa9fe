/* layer: io, fakes: web */
/* SPDX-License-Identifier: MIT */
/* Transfers that are given up, paused, or wait for memory. */
#include "curl_rig.h"

#define OK_HEAD(n) "HTTP/1.1 200 OK\r\nContent-Length: " #n "\r\n"
#define BIG_BYTES  (3u * 1024 * 1024)

static char big[BIG_BYTES];
static const char gz[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57"
    "\xc8\x20\x8b\x04\x00\xe4\x4d\xd0\x59\x3c\x00\x00\x00";

static const struct canned table[] = {
    {"/hello", OK_HEAD(5) "\r\n", "hello", 5, .is_silent = false},
    {"/silent", "", "", 0, .is_silent = true},
    {"/open", OK_HEAD(100) "\r\n", "first", 5, .is_silent = false},
    {"/big", OK_HEAD(3145728) "\r\n", big, BIG_BYTES, .is_silent = false},
    {"/gzip", OK_HEAD(29) "Content-Encoding: gzip\r\n\r\n", gz, sizeof(gz) - 1,
	.is_silent = false},
    {NULL, NULL, NULL, 0, .is_silent = false},
};

START_TEST(test_cancel_early)
{
	struct seen s;

	get(&s, "/hello");
	transfer_cancel(s.t);
	ck_assert_uint_eq(curl_loop_count(it), 0);
	settle(20);
	ck_assert_uint_eq(web.n_requests, 0);
	get(&s, "/silent");
	while (web.n_requests == 0)
		settle(5);
	transfer_cancel(s.t);
	settle(20);
	ck_assert_int_eq(s.heads + s.ends, 0);
	ck_assert_int_lt(web.conns[0].fd, 0);
}
END_TEST

START_TEST(test_cancel_in_head)
{
	struct seen s;

	get(&s, "/open");
	s.cancel_in_head = true;
	loop_run(l);
	settle(20);
	ck_assert_int_eq(s.heads, 1);
	ck_assert_int_eq(s.ends, 0);
	ck_assert_uint_eq(s.body.len, 0);
	ck_assert_int_lt(web.conns[0].fd, 0);
	buf_fini(&s.body);
}
END_TEST

START_TEST(test_cancel_in_body)
{
	struct seen s;

	get(&s, "/big");
	s.cancel_in_body = true;
	loop_run(l);
	settle(20);
	ck_assert_int_eq(s.ends, 0);
	ck_assert_uint_gt(s.body.len, 0);
	ck_assert_uint_lt(s.body.len, BIG_BYTES / 4);
	ck_assert_int_lt(web.conns[0].fd, 0);
	buf_fini(&s.body);
}
END_TEST

START_TEST(test_cancel_in_end)
{
	struct seen s;

	get(&s, "/hello");
	s.cancel_in_end = true;
	finish(&s);
	settle(5);
	ck_assert_int_eq(s.err, MV_OK);
	buf_fini(&s.body);
}
END_TEST

START_TEST(test_cancel_another)
{
	struct seen a, b;

	get(&a, "/silent");
	while (web.n_requests == 0)
		settle(5);
	get(&b, "/hello");
	b.cancel_too = &a;
	finish(&b);
	settle(20);
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_int_eq(a.heads + a.ends, 0);
	ck_assert_uint_eq(curl_loop_count(it), 0);
	buf_fini(&b.body);
}
END_TEST

START_TEST(test_pause)
{
	struct seen s;

	get(&s, "/big");
	s.pause_in_head = true;
	while (s.heads == 0)
		settle(5);
	settle(50);
	ck_assert_uint_eq(s.body.len, 0);
	ck_assert_int_eq(s.ends, 0);
	/* What nobody takes stays at the server. */
	ck_assert_uint_gt(web.conns[0].out.len, 0);
	transfer_pause(s.t, false);
	ck_assert_uint_eq(s.body.len, 0);
	finish(&s);
	ck_assert_int_eq(s.err, MV_OK);
	ck_assert_uint_eq(s.body.len, BIG_BYTES);
	ck_assert_mem_eq(s.body.data, big, BIG_BYTES);
	buf_fini(&s.body);
	/* Given up while paused. */
	get(&s, "/big");
	s.pause_in_head = true;
	while (s.heads == 0)
		settle(5);
	transfer_cancel(s.t);
	settle(5);
	ck_assert_int_eq(s.ends, 0);
}
END_TEST

START_TEST(test_pause_packed)
{
	struct seen s;

	get(&s, "/gzip");
	s.pause_in_head = true;
	settle(30);
	ck_assert_int_eq(s.heads, 1);
	ck_assert_uint_eq(s.body.len, 0);
	transfer_pause(s.t, false);
	finish(&s);
	ck_assert_int_eq(s.err, MV_OK);
	ck_assert_uint_eq(s.body.len, 60);
	buf_fini(&s.body);
}
END_TEST

START_TEST(test_memory)
{
	struct transfer_opts o = {.proxy = ""};
	struct seen s = {0}, vital;

	o.url = url_of("http", "127.0.0.1", "/hello");
	mem_set_budget(mem_in_use() + 100000);
	void *much = mem_xalloc(105000);

	ck_assert(mem_is_short() && !mem_is_exhausted());
	start(&s, &o);
	get(&vital, "/hello");
	finish(&vital);
	settle(30);
	ck_assert_int_eq(s.heads, 1);
	ck_assert_uint_eq(s.body.len, 0);
	mem_free(much);
	finish(&s);
	ck_assert_int_eq(s.err, MV_OK);
	ck_assert_uint_eq(s.body.len, 5);
	mem_set_budget(0);
	buf_fini(&s.body);
	buf_fini(&vital.body);
}
END_TEST

/* In each of the states. */
START_TEST(test_free_amid)
{
	struct seen a, b, c;

	get(&a, "/silent");
	get(&b, "/big");
	b.pause_in_head = true;
	while (web.n_requests < 2 || b.heads == 0)
		settle(5);
	get(&c, "/hello");
	curl_loop_free(it);
	it = NULL;
	settle(20);
	ck_assert_int_eq(a.ends + b.ends + c.ends, 0);
}
END_TEST

static void
setup_answers(void)
{
	web.answers = table;
	for (size_t i = 0; i < BIG_BYTES; i++)
		big[i] = (char)(i * 2654435761u >> 13);
}

int
main(void)
{
	Suite *s = suite_create("curl_end");
	TCase *tc = tcase_create("curl_end");

	setup_more = setup_answers;
	tcase_add_test(tc, test_cancel_early);
	tcase_add_test(tc, test_cancel_in_head);
	tcase_add_test(tc, test_cancel_in_body);
	tcase_add_test(tc, test_cancel_in_end);
	tcase_add_test(tc, test_cancel_another);
	tcase_add_test(tc, test_pause);
	tcase_add_test(tc, test_pause_packed);
	tcase_add_test(tc, test_memory);
	tcase_add_test(tc, test_free_amid);
	return run_suite(s, tc);
}
