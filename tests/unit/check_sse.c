/* layer: rpc */
/* SPDX-License-Identifier: MIT */
/*
 * Event streams: what becomes an event, however the bytes arrive.
 */
#include "mcpvisor/sse.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/mem.h"

#include <string.h>

#include <check.h>

#define DATA_MAX 40

static struct sse_parser parser;
static struct buf seen, part;
static int events, stop_at;

static void
put_text(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add_char(&seen, p[i] == '\n' ? '/' : p[i] == '\0' ? '0' : p[i]);
}

static bool
on_event(void *arg, const struct sse_event *e)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_addf(&seen, "%s=", e->type);
	put_text(e->data, e->len);
	if (*e->id)
		buf_addf(&seen, "@%s", e->id);
	buf_add_char(&seen, ' ');
	for (size_t i = 0; i < e->len; i++)
		e->data[i] = 'x'; /* it is the receiver's */
	return ++events != stop_at;
}

static void
on_id(void *arg, const char *id)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_addf(&seen, "@%s ", id);
}

static void
on_retry(void *arg, uint64_t ms)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_addf(&seen, "retry%llu ", (unsigned long long)ms);
}

static bool
on_long(void *arg, const char *text, size_t len, bool end)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add(&part, text, len);
	if (!end)
		return true;
	ck_assert_uint_eq(len, 0);
	buf_add_str(&seen, "long=");
	put_text(part.data, part.len);
	buf_add_char(&seen, ' ');
	buf_reset(&part);
	return ++events != stop_at;
}

static const struct sse_cb cb = {on_event, on_id, on_retry, on_long};

static void
setup(void)
{
	buf_init(&seen, 1u << 20);
	buf_init(&part, 1u << 20);
	sse_init(&parser, DATA_MAX, &cb, &seen);
	events = stop_at = 0;
}

static void
teardown(void)
{
	sse_fini(&parser);
	buf_fini(&seen);
	buf_fini(&part);
}

#include "suite_rig.h"

/* As a piece of exactly so many bytes. */
static enum mv_err
feed(const char *p, size_t n)
{
	char *copy = mem_xalloc(n + 1);
	enum mv_err err;

	memcpy(copy, p, n);
	err = sse_feed(&parser, copy, n);
	mem_free(copy);
	return err;
}

/* '~' stands for NUL. */
struct sse_case {
	const char *in, *want;
};

#define TEN   "0123456789"
#define FORTY TEN TEN TEN TEN

static const struct sse_case cases[] = {
    {"", ""},
    {"\n\n\r\n\r", ""},
    {"data: a\n\n", "message=a "},
    {"data:a\n\n", "message=a "},
    {"data:  a\n\n", "message= a "},
    {"data: a\r\rdata: b\r\n\r\n", "message=a message=b "},
    {"data: a\n\rdata: b\r\n\n", "message=a message=b "},
    {"data: a\r\n\r\ndata: b\r\n\r", "message=a message=b "},
    {"data: a\ndata\ndata: b\ndata:\n\n", "message=a//b/ "},
    {"data\n\n", "message= "},
    {"data:\n\n", "message= "},
    {"data\ndata\n\n", "message=/ "},
    {"data: a: b :c\n\n", "message=a: b :c "},
    {"data: a~b\n\n", "message=a0b "},
    /* unfinished */
    {"data: a\n", ""},
    {"data: a\n\ndata: b", "message=a "},
    /* types */
    {"event: x\ndata: a\n\ndata: b\n\n", "x=a message=b "},
    {"event: x\nevent:y\ndata: a\n\n", "y=a "},
    {"event: x\nevent\ndata: a\n\n", "message=a "},
    {"event: x\n\ndata: a\n\n", "message=a "},
    {"event: " FORTY FORTY "\ndata: a\n\n", FORTY TEN TEN "0123=a "},
    /* comments, unknown fields, names that are nearly ours */
    {":\n: data: a\n:\n\ndata: b\n\n", "message=b "},
    {"data : a\nDATA: a\n data: a\ndat: a\ndataa: a\ndatadata: a\nx\ndata: b\n\n",
	"message=b "},
    {"eventually: x\nid2: 4\nretry : 3\ndata: b\n\n", "message=b "},
    /* ids */
    {"id: 1\ndata: a\n\ndata: b\n\n", "message=a@1 message=b@1 "},
    {"id: 1\n\n", "@1 "},
    {"id: 1\n\nid: 1\n\nid: 2\n\n", "@1 @2 "},
    {"id: 1\ndata: a\n\nid\ndata: b\n\n", "message=a@1 message=b "},
    {"id: 1\ndata:\n\n", "message=@1 "},
    {"id: 1\nid: 2~3\ndata: a\n\n", "message=a@1 "},
    {"id: 1\n\nid: 2\n", "@1 "},
    {"id: \xe2\x82\xac x\n\n", "@\xe2\x82\xac x "},
    /* retry */
    {"retry: 500\n\n", "retry500 "},
    {"retry:0\n", "retry0 "},
    {"retry: 5x\nretry: -5\nretry:  5\nretry:\nretry\nretry: 1.5\n", ""},
    {"retry: 99999999999999999999999999\n", "retry4294967295 "},
    /* the mark */
    {"\xef\xbb\xbf"
     "data: a\n\n",
	"message=a "},
    {"\xef\xbb\xbf\n\xef\xbb\xbf"
     "data: a\n\ndata: b\n\n",
	"message=b "},
    {"\xef\xbb"
     "data: a\n\ndata: b\n\n",
	"message=b "},
    {"\xef\xbb\n\n", ""},
    /* the limit */
    {"data: " FORTY "\n\n", "message=" FORTY " "},
    {"data: " FORTY "x\nid: 3\n\ndata: a\n\n", "long=" FORTY "x message=a@3 "},
    {"data: " FORTY "\ndata\n\n", "long=" FORTY "/ "},
    {"data: " TEN "\ndata: " FORTY "\ndata: " FORTY "\n\ndata: b\n\n",
	"long=" TEN "/" FORTY "/" FORTY " message=b "},
    {"event: x\ndata: " FORTY TEN "\n\n", "long=" FORTY TEN " "},
    {"data: " FORTY FORTY "\n", ""},
};
#define N_CASES ((int)(sizeof(cases) / sizeof(*cases)))

static size_t
expand(const char *in, char *out)
{
	size_t n = strlen(in);

	for (size_t i = 0; i < n; i++)
		out[i] = in[i] == '~' ? '\0' : in[i];
	return n;
}

static void
again(void)
{
	teardown();
	setup();
}

START_TEST(test_whole)
{
	char in[512];
	size_t n = expand(cases[_i].in, in);

	ck_assert_int_eq(feed(in, n), MV_OK);
	ck_assert_str_eq(buf_cstr(&seen), cases[_i].want);
}
END_TEST

START_TEST(test_bytes)
{
	char in[512];
	size_t n = expand(cases[_i].in, in);

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(feed(in + i, 1), MV_OK);
	ck_assert_str_eq(buf_cstr(&seen), cases[_i].want);
}
END_TEST

START_TEST(test_cuts)
{
	char in[512];
	size_t n = expand(cases[_i].in, in);

	for (size_t cut = 0; cut <= n; cut++) {
		again();
		ck_assert_int_eq(feed(in, cut), MV_OK);
		ck_assert_int_eq(feed(in + cut, n - cut), MV_OK);
		ck_assert_str_eq(buf_cstr(&seen), cases[_i].want);
	}
}
END_TEST

static void
feed_str(const char *text)
{
	ck_assert_int_eq(feed(text, strlen(text)), MV_OK);
}

START_TEST(test_reset)
{
	ck_assert_str_eq(sse_last_id(&parser), "");
	feed_str("id: 7\ndata: a\n\nid: 8\nevent: x\ndata: lost\n");
	ck_assert_str_eq(sse_last_id(&parser), "7");
	sse_reset(&parser);
	ck_assert_str_eq(sse_last_id(&parser), "7");
	/* A new stream: its mark is skipped, and a line feed ends an empty line. */
	feed_str("\xef\xbb\xbf"
		 "data: b\n\n");
	feed_str("data: " FORTY FORTY);
	sse_reset(&parser);
	buf_reset(&part);
	feed_str("data: c\n\n");
	ck_assert_str_eq(buf_cstr(&seen), "message=a@7 message=b@7 message=c@7 ");
}
END_TEST

START_TEST(test_stop)
{
	stop_at = 2;
	feed_str("data: a\n\ndata: b\n\ndata: c\n\n");
	feed_str("data: d\n\n");
	ck_assert_str_eq(buf_cstr(&seen), "message=a message=b ");
	sse_reset(&parser);
	feed_str("data: e\n\n");
	ck_assert_str_eq(buf_cstr(&seen), "message=a message=b message=e ");
}
END_TEST

START_TEST(test_stop_long)
{
	stop_at = 1;
	feed_str("data: " FORTY "x\n\ndata: b\n\n");
	ck_assert_str_eq(buf_cstr(&seen), "long=" FORTY "x ");
}
END_TEST

/* An id that is too long to be sent back is none. */
START_TEST(test_long_id)
{
	static const size_t lens[] = {SSE_ID_BYTES - 1, SSE_ID_BYTES, SSE_ID_BYTES + 1};
	size_t want = lens[_i] <= SSE_ID_BYTES ? lens[_i] : 0;
	char id[SSE_ID_BYTES + 2];

	memset(id, 'i', sizeof(id));
	feed_str("id: 1\n\nid: ");
	ck_assert_int_eq(feed(id, lens[_i]), MV_OK);
	feed_str("\n\n");
	ck_assert_uint_eq(strlen(sse_last_id(&parser)), want);
}
END_TEST

/* A large event leaves no large buffer behind. */
START_TEST(test_memory_given_back)
{
	size_t n = 1u << 20, before;
	char *big = mem_xalloc(n);

	memset(big, 'x', n);
	sse_fini(&parser);
	sse_init(&parser, n, &cb, &seen);
	feed_str("data: a\n\n");
	before = parser.data.cap;
	feed_str("data: ");
	ck_assert_int_eq(feed(big, n), MV_OK);
	ck_assert_uint_ge(parser.data.cap, n);
	stop_at = 2;
	buf_fini(&seen);
	buf_init(&seen, 2 * n);
	feed_str("\n\n");
	ck_assert_uint_le(parser.data.cap, before);
	mem_free(big);
}
END_TEST

/* Whichever allocation fails, the stream says so and goes no further. */
START_TEST(test_no_memory)
{
	static const char text[] = "id: 1\nevent: x\ndata: a\n\nid: 2\ndata: b\n\n";
	unsigned long nth = 1;
	enum mv_err err;

	for (;; nth++) {
		again();
		(void)buf_reserve(&seen, 1000);
		mem_fail_at(nth, 0);
		err = sse_feed(&parser, text, sizeof(text) - 1);
		if (mem_try_count() < nth)
			break;
		mem_fail_at(0, 0);
		ck_assert_int_eq(err, MV_NOMEM);
		ck_assert_int_eq(sse_feed(&parser, "\n", 1), MV_NOMEM);
	}
	mem_fail_at(0, 0);
	ck_assert_int_eq(err, MV_OK);
	ck_assert_uint_gt(nth, 3);
	ck_assert_str_eq(buf_cstr(&seen), "x=a@1 message=b@2 ");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("sse");
	TCase *tc = tcase_create("sse");

	tcase_add_loop_test(tc, test_whole, 0, N_CASES);
	tcase_add_loop_test(tc, test_bytes, 0, N_CASES);
	tcase_add_loop_test(tc, test_cuts, 0, N_CASES);
	tcase_add_test(tc, test_reset);
	tcase_add_test(tc, test_stop);
	tcase_add_test(tc, test_stop_long);
	tcase_add_loop_test(tc, test_long_id, 0, 3);
	tcase_add_test(tc, test_memory_given_back);
	tcase_add_test(tc, test_no_memory);
	return run_suite(s, tc);
}
