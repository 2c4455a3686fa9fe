/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: addresses, accepting, unix sockets and their files, and a lack
 * of descriptors.
 */
#include "mcpvisor/listener.h"

#include "listener_rig.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct {
	const char *address;
	bool ok, loopback;
} addresses[] = {
    {"127.0.0.1:7332", true, true},
    {"127.9.9.9:0", true, true},
    {"[::1]:7332", true, true},
    {":0", true, true},
    {"localhost:80", true, true},
    {"unix:/run/x", true, true},
    {"systemd:web", true, true},
    {"systemd:", false, false},
    {"systemd:a:b", false, false},
    {"systemd:a b", false, false},
    {"0.0.0.0:80", true, false},
    {"[::]:80", true, false},
    {"192.0.2.1:65535", true, false},
    {"", false, false},
    {"127.0.0.1", false, false},
    {"127.0.0.1:", false, false},
    {"127.0.0.1:65536", false, false},
    {"127.0.0.1:-1", false, false},
    {"127.0.0.1:8 ", false, false},
    {"127.1:80", false, false},
    {"::1:80", false, false},
    {"[::1:80", false, false},
    {"[]:80", false, false},
    {"[127.0.0.1]:80", false, false},
    {"example.org:80", false, false},
    {"unix:", false, false},
    {"unix:relative", false, false},
};

START_TEST(test_addresses)
{
	bool loopback = !addresses[_i].loopback;
	enum mv_err err = listener_check(addresses[_i].address, &loopback, &et);

	ck_assert_msg(
	    err == (addresses[_i].ok ? MV_OK : MV_CONF), "%s", addresses[_i].address);
	if (err == MV_OK)
		ck_assert_int_eq(loopback, addresses[_i].loopback);
	else
		ck_assert_ptr_nonnull(strstr(et.message, "not an address"));
}
END_TEST

START_TEST(test_long_path)
{
	char longer[256];
	bool loopback;

	snprintf(longer, sizeof(longer), "unix:/%0200d", 0);
	ck_assert_int_eq(listener_check(longer, &loopback, NULL), MV_CONF);
}
END_TEST

static const char *const tcp[] = {":0", "127.0.0.1:0", "localhost:0", "[::1]:0"};

START_TEST(test_tcp)
{
	enum mv_err err = start(tcp[_i]);
	struct listener *first = it;
	int fd;

	if (err == MV_SYSTEM && tcp[_i][0] == '[')
		return; /* a machine without IPv6 */
	ck_assert_int_eq(err, MV_OK);
	ck_assert(listener_is_loopback(it));
	ck_assert_ptr_null(strstr(listener_address(it), ":0\0"));
	fd = dial(listener_address(it));
	ck_assert_int_ge(fd, 0);
	loop_run(l);
	ck_assert_int_eq(accepted, 1);
	ck_assert(last_uid == (uid_t)-1);
	close(fd);
	/* The port is taken. */
	ck_assert_int_eq(
	    listener_new(l, listener_address(first), &cb, &accepted, &it, &et),
	    MV_SYSTEM);
	ck_assert_ptr_null(it);
	ck_assert_ptr_nonnull(strstr(et.message, "cannot listen on"));
	it = first;
}
END_TEST

START_TEST(test_unix)
{
	struct stat st;
	int fd;

	ck_assert_int_eq(start(address), MV_OK);
	ck_assert_str_eq(listener_address(it), address);
	ck_assert(listener_is_loopback(it));
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	fd = dial(address);
	ck_assert_int_ge(fd, 0);
	loop_run(l);
	ck_assert_int_eq(accepted, 1);
	ck_assert_uint_eq(last_uid, getuid());
	close(fd);
	listener_free(it);
	it = NULL;
	ck_assert_int_eq(lstat(path, &st), -1);
}
END_TEST

START_TEST(test_unix_taken)
{
	struct listener *first;
	struct stat st;

	ck_assert_int_eq(start(address), MV_OK);
	first = it;
	ck_assert_int_eq(start(address), MV_BUSY);
	ck_assert_ptr_nonnull(strstr(et.message, "already"));
	ck_assert_int_eq(lstat(path, &st), 0);
	/* Another's file in its place stays. */
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(start(address), MV_OK);
	listener_free(first);
	ck_assert_int_eq(lstat(path, &st), 0);
}
END_TEST

START_TEST(test_unix_stale)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *f;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	ck_assert_int_eq(start(address), MV_OK);
	listener_free(it);
	it = NULL;
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_int_eq(start(address), MV_SYSTEM);
	ck_assert_ptr_nonnull(strstr(et.message, "not a socket"));
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(test_free_inside)
{
	int a, b;

	ck_assert_int_eq(start(address), MV_OK);
	free_inside = true;
	a = dial(address);
	b = dial(address);
	loop_run(l);
	settle();
	ck_assert_int_eq(accepted, 1);
	ck_assert_ptr_null(it);
	close(a);
	close(b);
}
END_TEST

/* valgrind plays the limit itself: the kernel's accept has worked by then, and what it
 * gave is closed before we hear EMFILE, so that client is lost and never comes again. */
static bool
limit_is_played(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/* Without a free descriptor nothing spins, and later it goes on by itself. */
START_TEST(test_shortage)
{
	struct rlimit old, tight;
	int fd, probe, turns = 0, again = -1;

	ck_assert_int_eq(start(":0"), MV_OK);
	fd = dial(listener_address(it));
	ck_assert_int_ge(fd, 0);
	probe = dup(fd);
	close(probe);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	tight.rlim_cur = (rlim_t)probe;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	for (turns = 0; turns < 3; turns++)
		settle();
	ck_assert_int_eq(accepted, 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	if (limit_is_played())
		again = dial(listener_address(it));
	settle();
	ck_assert_int_eq(accepted, 0); /* its second is not over */
	loop_run(l);
	ck_assert_int_eq(accepted, 1);
	if (again >= 0)
		close(again);
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("listener");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(
	    tc, test_addresses, 0, sizeof(addresses) / sizeof(addresses[0]));
	tcase_add_loop_test(tc, test_tcp, 0, sizeof(tcp) / sizeof(tcp[0]));
	tcase_add_test(tc, test_long_path);
	tcase_add_test(tc, test_unix);
	tcase_add_test(tc, test_unix_taken);
	tcase_add_test(tc, test_unix_stale);
	tcase_add_test(tc, test_free_inside);
	tcase_add_test(tc, test_shortage);
	return run_suite(suite, tc);
}
