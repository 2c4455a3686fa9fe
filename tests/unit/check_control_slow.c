/* layer: daemon, fakes: loop */
/* SPDX-License-Identifier: MIT */
/* The control socket and those that take their time. */
#include "mcpvisor/control.h"

#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"

#include "fake/fake_loop.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct loop *l;
static struct control *it;
static char folder[64], path[96];
static const struct control_opts opts = {.path = path, .mode = 0600};

/* An answer that no socket takes at once. */
static void
big_status(void *arg, struct buf *out)
{
	(void)arg;
	buf_add_str(out, "{\"a\":\"");
	for (int i = 0; i < 4000000; i++)
		buf_add_char(out, 'a');
	buf_add_str(out, "\"}");
}

static const struct control_ops ops = {.put_status = big_status};

static void
setup(void)
{
	struct mv_errtext et;

	(void)snprintf(folder, sizeof(folder), "/tmp/check_control.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/control", folder);
	log_set_level(LOG_LV_ERROR);
	l = loop_new();
	ck_assert_int_eq(control_new(l, &opts, &ops, NULL, &it, &et), MV_OK);
}

static void
teardown(void)
{
	control_free(it);
	loop_free(l);
	log_set_level(LOG_LV_NOTICE);
	ck_assert_int_eq(rmdir(folder), 0);
}

static int
open_client(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(to.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	fake_loop_settle(l);
	return fd;
}

static void
say(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	fake_loop_settle(l);
}

static bool
is_closed(int fd)
{
	char bytes[65536];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		;
	return n == 0;
}

START_TEST(test_silent_and_slow_ones_go)
{
	int silent = open_client(), slow = open_client(), good = open_client();

	for (int s = 0; s < CONTROL_WAIT_MS / 1000; s++) {
		say(slow, "{");
		say(good, s % 2 ? "{\"command\":\"version\"}" : "\n");
		ck_assert(!is_closed(good));
		if (s > 0)
			ck_assert(!is_closed(silent) && !is_closed(slow));
		fake_loop_advance(l, 1000);
	}
	ck_assert(is_closed(silent));
	ck_assert(is_closed(slow));
	ck_assert(!is_closed(good));
	(void)close(silent);
	(void)close(slow);
	(void)close(good);
}
END_TEST

START_TEST(test_one_that_does_not_read_goes)
{
	int fd = open_client();
	char c;

	say(fd, "{\"command\":\"status\"}\n{\"command\":\"status\"}\n");
	fake_loop_advance(l, CONTROL_WAIT_MS - 1);
	ck_assert_int_eq(recv(fd, &c, 1, MSG_PEEK), 1);
	fake_loop_advance(l, 1);
	ck_assert(is_closed(fd));
	(void)close(fd);
}
END_TEST

START_TEST(test_ends_with_connections)
{
	int fd = open_client();

	say(fd, "{\"command\":\"status\"}\n{\"comm");
	control_free(it);
	it = NULL;
	fake_loop_settle(l);
	ck_assert(is_closed(fd));
	(void)close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("control_slow");
	TCase *tc = tcase_create("control_slow");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_silent_and_slow_ones_go);
	tcase_add_test(tc, test_one_that_does_not_read_goes);
	tcase_add_test(tc, test_ends_with_connections);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
