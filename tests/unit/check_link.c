/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * Links over pipes and sockets: what becomes a message, what is refused and
 * with which id, turns, ends, sending.
 */
#include "mcpvisor/link.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#define BOUND_MS    20000
#define MESSAGE_MAX 4096

static struct loop *l;
static struct timer bound, soon;
static struct link *k;
static struct buf seen; /* what came, one word each */
static int in_fd, ends, write_errno, messages, free_at, pause_at;
static bool sees_end_free;

static void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time");
}

static void
count_message(void)
{
	if (++messages == free_at) {
		link_free(k);
		k = NULL;
		loop_stop(l, 0);
	}
	if (messages == pause_at)
		link_pause(k, true);
}

static void
on_message(void *arg, const struct link_msg *m)
{
	static const char kinds[] = "qnrebi";

	(void)arg;
	buf_addf(&seen, "%c", kinds[m->env.kind]);
	buf_add(&seen, m->env.id.p, m->env.id.n);
	buf_add_str(&seen, " ");
	ck_assert(
	    m->base[0] == '{' || m->base[0] == '[' || m->env.kind == ENVELOPE_INVALID);
	ck_assert(m->json->kind != JSON_K_NONE);
	count_message();
	if (!k) /* still there for this callback */
		ck_assert(m->base[m->len - 1] == '}');
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	(void)arg;
	ck_assert_uint_le(len, 1024);
	buf_addf(&seen, "%s%s", mv_err_reason(err), is_reply ? "/reply" : "");
	if (id.n)
		buf_add_str(&seen, "=");
	buf_add(&seen, id.p, id.n);
	buf_add_str(&seen, " ");
	ck_assert(len == 0 || line[0] != '\n');
	count_message();
}

static void
on_end(void *arg)
{
	(void)arg;
	ends++;
	if (sees_end_free) {
		link_free(k);
		k = NULL;
	}
	loop_stop(l, 0);
}

static void
on_write_end(void *arg, int errnum)
{
	(void)arg;
	write_errno = errnum;
	loop_stop(l, 0);
}

static void
on_stop(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

static const struct link_cb cb = {on_message, on_bad, on_end, on_write_end, on_stop};

static void
open_link(int rfd, int wfd)
{
	const struct link_opts o = {
	    .rfd = rfd, .wfd = wfd, .message_max = MESSAGE_MAX, .out_max = 3000000};

	k = link_new(l, &o, &cb, NULL);
}

static void
setup(void)
{
	int fd[2];

	l = loop_new();
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	timer_init(&soon, l, on_stop, NULL);
	buf_init(&seen, 1u << 20);
	ends = write_errno = messages = free_at = pause_at = 0;
	sees_end_free = false;
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	in_fd = fd[1];
	ck_assert_int_eq(fcntl(in_fd, F_SETFL, O_NONBLOCK), 0); /* no write waits */
	open_link(fd[0], -1);
}

static void
teardown(void)
{
	link_free(k);
	if (in_fd >= 0)
		close(in_fd);
	timer_fini(&bound);
	timer_fini(&soon);
	loop_free(l);
	buf_fini(&seen);
}

static void
feed(const char *p, size_t n)
{
	ck_assert_int_eq(write(in_fd, p, n), (ssize_t)n);
}

static void
feed_str(const char *text)
{
	feed(text, strlen(text));
}

static void
end_input(void)
{
	close(in_fd);
	in_fd = -1;
	loop_run(l);
}

/* '#' stands for 3000 bytes, '@' and '~' for 1200 brackets, '^' for a bad byte. */
struct line_case {
	const char *in, *want;
};

#define CALL(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"m\"}"

static const struct line_case line_cases[] = {
    {"", ""},
    {"\n\r\n\n", ""},
    {CALL("1") "\n" CALL("\"a\"") "\r\n", "q1 q\"a\" "},
    {CALL("1"), "q1 "},
    {"\xef\xbb\xbf" CALL("1") "\n", "q1 "},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n", "n "},
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n", "r7 "},
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,\"message\":\"\"}}\n", "e7 "},
    {"[" CALL("1") "]\n", "b "},
    {"{}\n17\n", "i i "},
    /* not JSON: an id only if it says what it is */
    {"hello\n", "syntax "},
    {"hello {\"jsonrpc\":\"2.0\",\"id\":1}\n", "syntax "},
    {"{\"id\":1,\"x\":nan}\n", "syntax "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":NaN}}\n", "syntax/reply=1 "},
    {"{\"result\":{\"x\":NaN},\"jsonrpc\":\"2.0\",\"id\":1}\n", "syntax/reply=1 "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"\n", "syntax=1 "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1", "syntax "},
    {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"\n", "syntax "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"\n", "syntax "},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"\n", "syntax "},
    {"{\"jsonrpc\":\"2.0\" \"id\":1}\n", "syntax "},
    {"{\"jsonrpc\":\"2.0\",\"params\":{\"id\":9,\"a\":\"}\\\"\"},\"id\":1 \"\n",
	"syntax=1 "},
    /* bad bytes, depth */
    {"{\"jsonrpc\":\"2.0\",\"result\":\"^\",\"id\":\"x\\\"y\"}\n",
	"utf8/reply=\"x\\\"y\" "},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"^\",\"method\":\"m\"}\n", "utf8 "},
    {"{\"result\":@~,\"id\":3}\n", "too_deep/reply=3 "},
    {"{\"result\":@,\"id\":3}\n", "too_deep/reply "},
    {"{\"id\":3,\"error\":@}\n", "too_deep/reply=3 "},
    /* over the limit, the id at either end, other lines around */
    {CALL("1") "\n{\"id\":5,\"result\":\"##\"}\n" CALL("2") "\n",
	"q1 too_long/reply=5 q2 "},
    {"{\"result\":{\"a\":[\"##\",{\"id\":8}]},\"id\":5}\n", "too_long/reply=5 "},
    {"{\"id\":5,\"method\":\"##\"}\n", "too_long=5 "},
    {"{\"id\":\"##\",\"id\":5}\n", "too_long "},
    {"##\n##\n", "too_long too_long "},
    {"{\"id\":5,\"method\":\"##", "too_long=5 "},
    /* cut off by the end: a reply fails nothing, whole lines before it do */
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"y", "syntax/reply "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":NaN}\n{\"jsonrpc\":\"2.0\",\"id\":2,"
     "\"error\":{",
	"syntax/reply=1 syntax/reply "},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{", "syntax=1 "},
};

static void
expand(const char *in, struct buf *b)
{
	for (; *in; in++) {
		if (*in == '#')
			for (int i = 0; i < 3000; i++)
				buf_add_char(b, 'x');
		else if (*in == '@' || *in == '~')
			for (int i = 0; i < 1200; i++)
				buf_add_char(b, *in == '@' ? '[' : ']');
		else
			buf_add_char(b, *in == '^' ? '\xff' : *in);
	}
}

START_TEST(test_lines)
{
	const struct line_case *c = &line_cases[_i];
	struct buf b;

	buf_init(&b, 60000);
	expand(c->in, &b);
	feed(b.data ? b.data : "", b.len);
	end_input();
	ck_assert_int_eq(ends, 1);
	ck_assert_str_eq(seen.len ? buf_cstr(&seen) : "", c->want);
	buf_fini(&b);
}
END_TEST

/* The same, in parts with turns in between. */
START_TEST(test_lines_in_parts)
{
	const struct line_case *c = &line_cases[_i];
	struct buf b;

	buf_init(&b, 60000);
	expand(c->in, &b);
	for (size_t at = 0, n; at < b.len; at += n) {
		n = b.len - at < 997 ? b.len - at : b.len < 500 ? 1 : 997;
		feed(b.data + at, n);
		timer_set(&soon, 0);
		loop_run(l);
	}
	end_input();
	ck_assert_str_eq(seen.len ? buf_cstr(&seen) : "", c->want);
	buf_fini(&b);
}
END_TEST

START_TEST(test_long_line_without_end)
{
	char block[10000];

	memset(block, 'x', sizeof(block));
	feed_str("{\"jsonrpc\":\"2.0\",\"id\":\"late\",\"result\":\"");
	for (int i = 0; i < 300; i++) {
		feed(block, sizeof(block));
		timer_set(&soon, 0);
		loop_run(l);
	}
	ck_assert_uint_eq(seen.len, 0);
	feed_str("\"}\n" CALL("1") "\n");
	end_input();
	ck_assert_str_eq(buf_cstr(&seen), "too_long/reply=\"late\" q1 ");
}
END_TEST

static void
feed_calls(int n)
{
	for (int i = 0; i < n; i++)
		feed_str(CALL("1") "\n");
}

START_TEST(test_budget)
{
	feed_calls(1000);
	timer_set(&soon, 0);
	loop_run(l);
	ck_assert_int_ge(messages, 64);
	ck_assert_int_lt(messages, 1000);
	end_input();
	ck_assert_int_eq(messages, 1000);
	ck_assert_int_eq(ends, 1);
}
END_TEST

START_TEST(test_pause_inside_message)
{
	pause_at = 3;
	feed_calls(10);
	close(in_fd);
	in_fd = -1;
	for (int i = 0; i < 5; i++) {
		timer_set(&soon, 0);
		loop_run(l);
	}
	ck_assert_int_eq(messages, 3);
	ck_assert_int_eq(ends, 0);
	link_pause(k, false);
	loop_run(l);
	ck_assert_int_eq(messages, 10);
	ck_assert_int_eq(ends, 1);
}
END_TEST

/* Freed in a message, a refused line, or the end: nothing comes after. */
START_TEST(test_free_inside_callback)
{
	free_at = _i < 3 ? _i + 1 : 0;
	sees_end_free = true;
	feed_str(CALL("1") "\n{\"jsonrpc\":\n" CALL("2") "\n");
	end_input();
	ck_assert_ptr_null(k);
	ck_assert_int_eq(messages, free_at ? free_at : 3);
	ck_assert_int_eq(ends, free_at ? 0 : 1);
}
END_TEST

START_TEST(test_send)
{
	char a[] = "{\"a\":", b[] = "1}", back[64] = "";
	struct iovec iov[100] = {{a, 5}, {NULL, 0}, {b, 2}};
	struct buf text;
	int fd[2];

	link_free(k);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	open_link(fd[0], fd[0]);
	ck_assert_int_eq(link_send(k, iov, 3), MV_OK);
	for (int i = 0; i < 100; i++)
		iov[i] = (struct iovec){b, i == 99};
	ck_assert_int_eq(link_send(k, iov, 100), MV_OK);
	buf_init(&text, 100);
	buf_add_str(&text, "[]");
	ck_assert_int_eq(link_send_buf(k, &text), MV_OK);
	ck_assert_uint_eq(link_out_pending(k), 8 + 2 + 3);
	loop_run(l);
	ck_assert_uint_eq(link_out_pending(k), 0);
	ck_assert_int_eq(read(fd[1], back, sizeof(back) - 1), 13);
	ck_assert_str_eq(back, "{\"a\":1}\n1\n[]\n");
	buf_fini(&text);
	link_end_write(k, false);
	ck_assert_int_eq(link_send(k, iov, 1), MV_CLOSED);
	ck_assert_int_eq(read(fd[1], back, 1), 0);
	close(fd[1]);
}
END_TEST

START_TEST(test_send_is_all_or_nothing)
{
	size_t most = 3000000;
	struct iovec iov = {mem_xcalloc(1, most), most};
	int fd[2];

	link_free(k);
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	open_link(-1, fd[1]);
	ck_assert_int_eq(link_send(k, &iov, 1), MV_BUSY);
	ck_assert_uint_eq(link_out_pending(k), 0);
	iov.iov_len = most - 1;
	ck_assert_int_eq(link_send(k, &iov, 1), MV_OK);
	iov.iov_len = 0;
	ck_assert_int_eq(link_send(k, &iov, 1), MV_BUSY);
	close(fd[0]);
	loop_run(l);
	ck_assert_int_eq(write_errno, EPIPE);
	ck_assert_uint_eq(link_out_pending(k), 0);
	mem_free(iov.iov_base);
}
END_TEST

/* What somebody has read before us comes first, whole lines and the beginning of one. */
START_TEST(test_buffered)
{
	static const char text[] = CALL("1") "\n" CALL("2") "\n" CALL("3") "\n";
	struct link_opts o = {.wfd = -1, .message_max = MESSAGE_MAX};
	size_t all = sizeof(text) - 1, part = (size_t)_i * 7 > all ? all : (size_t)_i * 7;
	int fd[2];

	link_free(k);
	close(in_fd);
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	in_fd = fd[1];
	o.rfd = fd[0];
	o.buffered = text;
	o.n_buffered = part;
	k = link_new(l, &o, &cb, NULL);
	ck_assert_ptr_nonnull(k);
	ck_assert_int_eq(messages, 0);
	/* Nobody has to say more for what is there to be heard. */
	while (part == all && messages < 3) {
		timer_set(&soon, 1); /* at 0 the loop would stop before its own work */
		loop_run(l);
	}
	feed(text + part, all - part);
	end_input();
	ck_assert_str_eq(buf_cstr(&seen), "q1 q2 q3 ");
	ck_assert_int_eq(ends, 1);
}
END_TEST

START_TEST(test_buffered_no_memory)
{
	struct link_opts o = {.wfd = -1, .message_max = MESSAGE_MAX};
	int fd[2];

	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	o.rfd = fd[0];
	o.buffered = "x";
	o.n_buffered = 1;
	mem_fail_at(1, 1);
	ck_assert_ptr_null(link_new(l, &o, &cb, NULL));
	mem_fail_at(0, 0);
	ck_assert_int_eq(fcntl(fd[0], F_GETFD), -1);
	close(fd[1]);
}
END_TEST

START_TEST(test_scan)
{
	static const char text[] = CALL("\"x\"");
	struct json_msg json;
	struct link_msg m;

	ck_assert_int_eq(link_scan(text, sizeof(text) - 1, &json, &m), MV_OK);
	ck_assert_int_eq(m.env.kind, ENVELOPE_REQUEST);
	ck_assert(m.env.id.n == 3 && m.json == &json && m.base == text);
	ck_assert_int_eq(link_scan(text, sizeof(text) - 2, &json, &m), MV_SYNTAX);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("link");
	TCase *tc = tcase_create("link");
	SRunner *r = srunner_create(s);
	int failed, n = sizeof(line_cases) / sizeof(*line_cases);

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_lines, 0, n);
	tcase_add_loop_test(tc, test_lines_in_parts, 0, n);
	tcase_add_test(tc, test_long_line_without_end);
	tcase_add_test(tc, test_budget);
	tcase_add_test(tc, test_pause_inside_message);
	tcase_add_loop_test(tc, test_free_inside_callback, 0, 4);
	tcase_add_test(tc, test_send);
	tcase_add_test(tc, test_send_is_all_or_nothing);
	tcase_add_loop_test(tc, test_buffered, 0, 18);
	tcase_add_test(tc, test_buffered_no_memory);
	tcase_add_test(tc, test_scan);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
