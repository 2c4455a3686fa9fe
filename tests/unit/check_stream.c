/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * Streams: input, output, ends, bounds, over a pipe and a socket each.
 */
#include "mcpvisor/stream.h"

#include "stream_rig.h"

START_TEST(test_big_transfer_and_end)
{
	char *text = big_text();
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], _i ? fd[0] : -1);
	open_peer(_i ? fd[1] : -1, fd[1]);
	put(peer, "", 0);
	put(peer, "x", 1);
	put(peer, text, BIG);
	put(peer, "y", 1);
	ck_assert_uint_eq(stream_out_pending(peer), BIG + 2);
	stream_end_write(peer, false);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_int_eq(last_end, STREAM_END_EOF);
	ck_assert_uint_eq(got.len, BIG + 2);
	ck_assert(memcmp(got.data + 1, text, BIG) == 0);
	ck_assert(got.data[0] == 'x' && got.data[BIG + 1] == 'y');
	ck_assert_uint_eq(stream_out_pending(peer), 0);
	mem_free(text);
}
END_TEST

/* The reader leaves bytes; they come again in one piece. */
START_TEST(test_input_accumulates)
{
	char *text = big_text();
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	open_peer(-1, fd[1]);
	keep = SIZE_MAX;
	put(peer, text, BIG);
	stream_end_write(peer, false);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	{
		size_t n;
		const char *p = stream_peek(s, &n);

		ck_assert_uint_eq(n, BIG);
		ck_assert(memcmp(p, text, BIG) == 0);
		stream_consume(s, BIG - 10);
		p = stream_peek(s, &n);
		ck_assert(n == 10 && memcmp(p, text + BIG - 10, 10) == 0);
	}
	mem_free(text);
}
END_TEST

START_TEST(test_in_max_pauses)
{
	const struct stream_opts o = {
	    .rfd = 0, .wfd = -1, .in_max = 100000, .out_max = 1};
	struct stream_opts mine = o;
	char *text = big_text();
	size_t n;
	int fd[2];

	connect_kind(_i, fd);
	mine.rfd = fd[0];
	s = stream_new(l, &mine, &cb, NULL);
	open_peer(-1, fd[1]);
	keep = SIZE_MAX;
	put(peer, text, BIG);
	settle();
	settle();
	stream_peek(s, &n);
	ck_assert_uint_le(n, 100000);
	ck_assert_uint_gt(stream_out_pending(peer), 0);
	keep = 0;
	stream_end_write(peer, false);
	stream_pause(s, true);
	stream_pause(s, false); /* offers what is left */
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_uint_eq(got.len, BIG);
	ck_assert(memcmp(got.data, text, BIG) == 0);
	mem_free(text);
}
END_TEST

/* A reader with a budget gets all before the end, one call after the other. */
START_TEST(test_again)
{
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	again = true;
	ck_assert_int_eq(write(fd[1], "abcde", 5), 5);
	close(fd[1]);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_int_eq(inputs, 5);
	ck_assert_str_eq(buf_cstr(&got), "abcde");
}
END_TEST

START_TEST(test_pause)
{
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	stream_pause(s, true);
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	close(fd[1]);
	settle();
	ck_assert_int_eq(inputs + ends, 0);
	stream_pause(s, false);
	loop_run(l);
	ck_assert_int_eq(inputs, 1);
	ck_assert_int_eq(ends, 1);
}
END_TEST

START_TEST(test_free_inside_callback)
{
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	free_in_input = true;
	ck_assert_int_eq(write(fd[1], "abx", 3), 3);
	loop_run(l);
	settle();
	ck_assert_int_eq(inputs, 1);
	ck_assert_int_eq(ends, 0);
	close(fd[1]);
}
END_TEST

/* What has left makes room for what comes. */
START_TEST(test_steady_writes_allocate_nothing)
{
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(-1, fd[1]);
	open_peer(fd[0], -1);
	put(s, "first", 5);
	stream_flush(s);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	mem_fail_at(0, 0);
	for (int i = 0; i < 10; i++) {
		put(s, "more", 4);
		stream_flush(s);
		ck_assert_uint_eq(stream_out_pending(s), 0);
	}
	ck_assert_uint_eq(mem_try_count(), 0);
}
END_TEST

/* What has been read leaves no buffer with its stream, and the next takes none. */
START_TEST(test_idle_streams_have_no_buffer)
{
	enum { N = 8 };
	struct stream *all[N];
	size_t first = 0;
	int fd[N][2];

	ck_assert_int_eq(buf_reserve(&got, N), MV_OK);
	for (size_t i = 0; i < N; i++) {
		connect_kind(_i, fd[i]);
		s = all[i] = open_stream(fd[i][0], -1);
		want++;
		ck_assert_int_eq(write(fd[i][1], "x", 1), 1);
		loop_run(l);
		settle();
		if (i == 0)
			first = mem_in_use();
		if (i == 1)
			mem_fail_at(0, 0);
	}
	ck_assert_uint_eq(mem_try_count(), 0);
	ck_assert_uint_lt(mem_in_use() - first, (N - 1) * 2048);
	for (size_t i = 0; i < N; i++) {
		stream_free(all[i]);
		close(fd[i][1]);
	}
	s = NULL;
}
END_TEST

/* A pipe that was full is larger afterwards; another stays as it is. */
START_TEST(test_full_pipes_grow)
{
	static const struct {
		size_t bytes;
		bool grows;
	} rows[] = {{1000, false}, {65536, true}};
	char *text = big_text();
	int fd[2], before;

	ck_assert_int_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	before = fcntl(fd[1], F_GETPIPE_SZ);
	ck_assert_int_eq(before, 65536);
	s = open_stream(fd[0], -1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(
		    write(fd[1], text, rows[i].bytes), (ssize_t)rows[i].bytes);
		want += rows[i].bytes;
		loop_run(l);
		ck_assert(rows[i].grows == (fcntl(fd[1], F_GETPIPE_SZ) > before));
	}
	ck_assert(memcmp(got.data + 1000, text, 65536) == 0);
	close(fd[1]);
	mem_free(text);
}
END_TEST

START_TEST(test_no_memory_for_a_write)
{
	struct iovec iov = {big_text(), 100000};
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(-1, fd[1]);
	mem_fail_at(1, 1);
	ck_assert_int_eq(stream_writev(s, &iov, 1), MV_NOMEM);
	mem_fail_at(0, 0);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	ck_assert_int_eq(stream_writev(s, &iov, 1), MV_OK);
	close(fd[0]);
	mem_free(iov.iov_base);
}
END_TEST

/* Nobody reads: the queue ends at its bound, whole writes or nothing. */
START_TEST(test_out_max)
{
	const struct stream_opts o = {
	    .rfd = -1, .wfd = -1, .in_max = 1, .out_max = 300000};
	struct stream_opts mine = o;
	char *text = big_text();
	struct iovec iov[3] = {{text, 100000}, {text, 199999}, {text, 2}};
	int fd[2];

	connect_kind(_i, fd);
	mine.wfd = fd[1];
	s = stream_new(l, &mine, &cb, NULL);
	ck_assert_int_eq(stream_writev(s, iov, 3), MV_BUSY);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	ck_assert_int_eq(stream_writev(s, iov, 2), MV_OK);
	ck_assert_int_eq(stream_writev(s, iov + 2, 1), MV_BUSY);
	ck_assert_uint_eq(stream_out_pending(s), 299999);
	stream_flush(s);
	ck_assert_uint_lt(stream_out_pending(s), 299999);
	settle();
	ck_assert_uint_gt(stream_out_pending(s), 0);
	ck_assert_int_eq(drained, 0);
	stream_end_write(s, true);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	ck_assert_int_eq(stream_writev(s, iov, 1), MV_CLOSED);
	close(fd[0]);
	mem_free(text);
}
END_TEST

START_TEST(test_small_writes_in_order)
{
	struct buf all;
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	open_peer(-1, fd[1]);
	buf_init(&all, BIG);
	for (unsigned i = 0; i < 20000; i++) {
		char text[16];
		int n = snprintf(text, sizeof(text), "%u,", i);

		buf_add(&all, text, (size_t)n);
		put(peer, text, (size_t)n);
	}
	want = all.len;
	loop_run(l);
	ck_assert_uint_eq(got.len, all.len);
	ck_assert(memcmp(got.data, all.data, all.len) == 0);
	buf_fini(&all);
}
END_TEST

/* The reader of our output goes while nothing is queued. */
START_TEST(test_write_end)
{
	struct iovec iov = {&want, 1};
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(-1, fd[1]);
	settle();
	ck_assert_int_eq(write_ends, 0);
	close(fd[0]);
	if (_i) /* a socket tells on the next write only */
		ck_assert_int_eq(stream_writev(s, &iov, 1), MV_OK);
	loop_run(l);
	ck_assert_int_eq(write_ends, 1);
	ck_assert_int_eq(write_errno, EPIPE);
	ck_assert_int_eq(stream_writev(s, &iov, 1), MV_CLOSED);
	settle();
	ck_assert_int_eq(write_ends, 1);
}
END_TEST

START_TEST(test_write_end_with_queue)
{
	char *text = big_text();
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(-1, fd[1]);
	put(s, text, BIG);
	settle();
	close(fd[0]);
	loop_run(l);
	ck_assert_int_eq(write_ends, 1);
	ck_assert_int_eq(write_errno, EPIPE);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	ck_assert_int_eq(drained, 0);
	mem_free(text);
}
END_TEST

START_TEST(test_drained)
{
	int fd[2];

	connect_kind(_i, fd);
	s = open_stream(-1, fd[1]);
	put(s, "x", 1);
	stream_flush(s);
	ck_assert_uint_eq(stream_out_pending(s), 0);
	ck_assert_int_eq(drained, 0); /* from the loop only */
	loop_run(l);
	ck_assert_int_eq(drained, 1);
	close(fd[0]);
}
END_TEST

int
main(void)
{
	const TTest *const both_kinds[] = {
	    test_big_transfer_and_end,
	    test_input_accumulates,
	    test_in_max_pauses,
	    test_again,
	    test_pause,
	    test_free_inside_callback,
	    test_steady_writes_allocate_nothing,
	    test_idle_streams_have_no_buffer,
	    test_no_memory_for_a_write,
	    test_out_max,
	    test_small_writes_in_order,
	    test_write_end,
	    test_write_end_with_queue,
	    test_drained,
	};
	Suite *suite = suite_create("stream");
	TCase *tc = tcase_create("stream");

	for (size_t i = 0; i < sizeof(both_kinds) / sizeof(*both_kinds); i++)
		tcase_add_loop_test(tc, both_kinds[i], 0, 2);
	tcase_add_test(tc, test_full_pipes_grow);
	return run_suite(suite, tc);
}
