/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * Streams over what a program may find as its stdin and stdout.
 */
#include "mcpvisor/stream.h"

#include "stream_rig.h"

#include <sys/resource.h>

/* One socket for both directions: closing ours leaves the other open. */
START_TEST(test_socket_half_close)
{
	char byte;
	int fd[2];

	connect_kind(1, fd);
	s = open_stream(fd[0], fd[0]);
	put(s, "q", 1);
	stream_end_write(s, false);
	loop_run(l);
	ck_assert_int_eq(read(fd[1], &byte, 1), 1);
	ck_assert_int_eq(read(fd[1], &byte, 1), 0);
	ck_assert_int_eq(write(fd[1], "r", 1), 1);
	close(fd[1]);
	want = 1;
	loop_run(l);
	ck_assert_str_eq(buf_cstr(&got), "r");
	if (!ends)
		loop_run(l);
	ck_assert_int_eq(ends, 1);
}
END_TEST

START_TEST(test_files)
{
	char name[] = "/tmp/check_stream.XXXXXX", back[8] = "";
	int out = mkstemp(name), in;
	struct stat st;

	ck_assert_int_ge(out, 0);
	s = open_stream(-1, out);
	put(s, "abc\n", 4);
	loop_run(l);
	ck_assert_int_eq(drained, 1);
	stream_end_write(s, false);
	stream_free(s);
	in = open(name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(fstat(in, &st), 0);
	ck_assert_int_eq(st.st_size, 4);
	s = open_stream(in, -1);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_int_eq(last_end, STREAM_END_EOF);
	memcpy(back, got.data, got.len);
	ck_assert_str_eq(back, "abc\n");
	unlink(name);
}
END_TEST

START_TEST(test_dev_null)
{
	s = open_stream(open("/dev/null", O_RDONLY | O_CLOEXEC),
	    open("/dev/null", O_WRONLY | O_CLOEXEC));
	put(s, "abc", 3);
	loop_run(l);
	if (!drained)
		loop_run(l);
	else if (!ends)
		loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_int_eq(drained, 1);
}
END_TEST

/* A named pipe whose writers had gone before we came. */
START_TEST(test_left_fifo)
{
	char dir[] = "/tmp/check_stream.XXXXXX", name[64];
	int in, out;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	in = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	out = open(name, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(out, "ab", 2), 2);
	close(out);
	s = open_stream(in, -1);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_str_eq(buf_cstr(&got), "ab");
	unlink(name);
	rmdir(dir);
}
END_TEST

/* The same when a reader with a budget first takes what was read before. */
START_TEST(test_left_fifo_with_bytes_put_back)
{
	char dir[] = "/tmp/check_stream.XXXXXX", name[64];
	int in, out;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	in = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	out = open(name, O_WRONLY | O_CLOEXEC);
	close(out);
	s = open_stream(in, -1);
	again = true;
	ck_assert_int_eq(stream_put_back(s, "abc", 3), MV_OK);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_str_eq(buf_cstr(&got), "abc");
	unlink(name);
	rmdir(dir);
}
END_TEST

/* What the shell shares with us must stay as it was. */
START_TEST(test_shared_descriptions_stay_blocking)
{
	int fd[2], in, out;

	connect_kind(_i, fd);
	in = fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
	out = fcntl(fd[1], F_DUPFD_CLOEXEC, 0);
	s = open_stream(fd[0], -1);
	open_peer(-1, fd[1]);
	put(peer, "x", 1);
	want = 1;
	loop_run(l);
	ck_assert_int_eq(fcntl(in, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fcntl(out, F_GETFL) & O_NONBLOCK, 0);
	close(in);
	close(out);
}
END_TEST

/* Opening anew fails (no /proc, another user's pipe): then nothing may block. */
START_TEST(test_pipe_that_cannot_be_reopened)
{
	char *text = big_text();
	struct rlimit old, none;
	int fd[2];

	connect_kind(0, fd);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	s = open_stream(fd[0], -1);
	open_peer(-1, fd[1]);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(fcntl(fd[1], F_GETFL) & O_NONBLOCK, 0);
	put(peer, text, BIG);
	stream_end_write(peer, false);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
	ck_assert_uint_eq(got.len, BIG);
	ck_assert(memcmp(got.data, text, BIG) == 0);
	mem_free(text);
}
END_TEST

/* The same for a pipe that nobody reads any more. */
START_TEST(test_pipe_without_reader)
{
	int fd[2];

	connect_kind(0, fd);
	close(fd[0]);
	s = open_stream(-1, fd[1]);
	put(s, "x", 1);
	loop_run(l);
	ck_assert_int_eq(write_ends, 1);
	ck_assert_int_eq(write_errno, EPIPE);
}
END_TEST

START_TEST(test_terminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	char back[8] = "";

	ck_assert_int_ge(master, 0);
	ck_assert(grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(slave, 0);
	s = open_stream(slave, fcntl(slave, F_DUPFD_CLOEXEC, 0));
	ck_assert_int_eq(write(master, "hi\n", 3), 3);
	want = 3;
	loop_run(l);
	ck_assert_str_eq(buf_cstr(&got), "hi\n");
	put(s, "yo", 2);
	loop_run(l);
	ck_assert_int_eq(drained, 1);
	ck_assert_int_gt(read(master, back, 4), 0); /* the echo comes first */
	close(master);
	loop_run(l);
	ck_assert_int_eq(ends, 1);
}
END_TEST

static int
count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(test_no_descriptor_is_left)
{
	int before = count_fds(), fd[2];

	connect_kind(_i, fd);
	s = open_stream(fd[0], -1);
	open_peer(-1, fd[1]);
	settle();
	stream_free(s);
	stream_free(s); /* still there for this turn */
	stream_free(peer);
	s = peer = NULL;
	settle();
	/* epoll and signal descriptors of the loop aside */
	ck_assert_int_le(count_fds(), before);
}
END_TEST

int
main(void)
{
	const TTest *const both_kinds[] = {
	    test_shared_descriptions_stay_blocking,
	    test_no_descriptor_is_left,
	};
	Suite *suite = suite_create("stream_kinds");
	TCase *tc = tcase_create("stream_kinds");

	for (size_t i = 0; i < sizeof(both_kinds) / sizeof(*both_kinds); i++)
		tcase_add_loop_test(tc, both_kinds[i], 0, 2);
	tcase_add_test(tc, test_socket_half_close);
	tcase_add_test(tc, test_files);
	tcase_add_test(tc, test_dev_null);
	tcase_add_test(tc, test_left_fifo);
	tcase_add_test(tc, test_left_fifo_with_bytes_put_back);
	tcase_add_test(tc, test_terminal);
	tcase_add_test(tc, test_pipe_that_cannot_be_reopened);
	tcase_add_test(tc, test_pipe_without_reader);
	return run_suite(suite, tc);
}
