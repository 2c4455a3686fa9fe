/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * How listening sockets are opened: two processes at once, the file's mode and group,
 * what the service manager hands over.
 */
#include "mcpvisor/listener.h"

#include "listener_rig.h"

#include "mcpvisor/log.h"

#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

static void
put_file(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static int
bind_here(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Another process between bind and listen: its file looks stale, and must stay. */
START_TEST(test_unix_two_at_once)
{
	char lock[128];
	struct stat st;
	int fd, held;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	put_file(lock);
	held = open(lock, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(held, LOCK_EX | LOCK_NB), 0);
	fd = bind_here();
	ck_assert_int_eq(start(address), MV_BUSY);
	ck_assert_ptr_nonnull(strstr(et.message, "about to listen"));
	ck_assert_int_eq(lstat(path, &st), 0);
	/* It has died meanwhile: neither its file nor its lock's is in the way. */
	close(held);
	close(fd);
	ck_assert_int_eq(start(address), MV_OK);
	ck_assert_int_eq(lstat(lock, &st), -1);
	fd = dial(address);
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

/* No lock stays behind a start that fails. */
START_TEST(test_unix_lock_goes)
{
	char lock[128];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	put_file(path);
	ck_assert_int_eq(start(address), MV_SYSTEM);
	ck_assert_int_eq(access(lock, F_OK), -1);
	unlink(path);
	snprintf(lock, sizeof(lock), "unix:%s/none/sock", folder);
	ck_assert_int_eq(start(lock), MV_SYSTEM);
	ck_assert_ptr_nonnull(strstr(et.message, "No such file"));
}
END_TEST

static unsigned
mode_of(void)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

START_TEST(test_access)
{
	const struct group *ours = getgrgid(getgid()), *other;
	char name[64];
	struct stat st;

	ck_assert_ptr_nonnull(ours);
	snprintf(name, sizeof(name), "%s", ours->gr_name);
	ck_assert_int_eq(start(address), MV_OK);
	ck_assert_int_eq(listener_set_access(it, 0660, name, &et), MV_OK);
	ck_assert_uint_eq(mode_of(), 0660);
	ck_assert_int_eq(listener_set_access(it, 0604, NULL, &et), MV_OK);
	ck_assert_uint_eq(mode_of(), 0604);
	ck_assert_int_eq(listener_set_access(it, 0666, "no-such-group", &et), MV_CONF);
	ck_assert_ptr_nonnull(strstr(et.message, "no group \"no-such-group\""));
	ck_assert_uint_eq(mode_of(), 0604);
	/* Only root may give it to whom it likes; others are told. */
	other = getgrnam("daemon");
	if (other != NULL && other->gr_gid != getgid()) {
		gid_t gid = other->gr_gid;
		enum mv_err err = listener_set_access(it, 0660, "daemon", &et);

		ck_assert_int_eq(err, geteuid() == 0 ? MV_OK : MV_SYSTEM);
		ck_assert_uint_eq(mode_of(), err == MV_OK ? 0660 : 0604);
		ck_assert_int_eq(lstat(path, &st), 0);
		ck_assert(err != MV_OK || st.st_gid == gid);
	}
	/* Nothing of another's. */
	ck_assert_int_eq(unlink(path), 0);
	put_file(path);
	ck_assert_int_eq(listener_set_access(it, 0666, NULL, &et), MV_OK);
	ck_assert_uint_eq(mode_of(), 0600);
	listener_free(it);
	ck_assert_int_eq(start(":0"), MV_OK);
	ck_assert_int_eq(listener_set_access(it, 0666, NULL, &et), MV_OK);
}
END_TEST

static const struct {
	const char *made, *asked;
	bool same;
} served[] = {
    {":0", ":0", true}, /* as it was asked for, whatever port it got */
    {":0", "127.0.0.1:0", false},
    {"127.0.0.1:0", "PORT", true},
    {"127.0.0.1:0", "localhost:PORT", true},
    {"127.0.0.1:0", "0.0.0.0:PORT", false},
    {"127.0.0.1:0", "[::1]:PORT", false},
    {"127.0.0.1:0", "nonsense", false},
    {"127.0.0.1:0", "unix:/x", false},
    {"127.0.0.1:0", "systemd:x", false},
};

START_TEST(test_serves)
{
	const char *port, *asked = served[_i].asked;
	char text[128];

	ck_assert_int_eq(start(served[_i].made), MV_OK);
	port = strrchr(listener_address(it), ':') + 1;
	if (strcmp(asked, "PORT") == 0)
		snprintf(text, sizeof(text), "%s", listener_address(it));
	else if (strstr(asked, ":PORT") != NULL)
		snprintf(
		    text, sizeof(text), "%.*s%s", (int)(strlen(asked) - 4), asked, port);
	else
		snprintf(text, sizeof(text), "%s", asked);
	ck_assert_int_eq(listener_serves(it, text), served[_i].same);
}
END_TEST

/* Says that what has this number is the last of those that were handed over. */
static void
hand_over(int fd, const char *names)
{
	char text[512] = "";

	ck_assert_int_ge(fd, 3);
	ck_assert_int_lt(fd, 100);
	for (int i = 3; i < fd; i++)
		strncat(text, "x:", sizeof(text) - strlen(text) - 1);
	strncat(text, names, sizeof(text) - strlen(text) - 1);
	setenv("LISTEN_FDNAMES", text, 1);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof(text), "%d", fd - 2);
	setenv("LISTEN_FDS", text, 1);
}

static void
hand_over_nothing(void)
{
	unsetenv("LISTEN_FDNAMES");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
}

START_TEST(test_inherited_unix)
{
	int fd = bind_here(), c;

	ck_assert_int_eq(listen(fd, 8), 0);
	hand_over(fd, "web");
	ck_assert_int_eq(start("systemd:web"), MV_OK);
	ck_assert_str_eq(listener_address(it), address);
	ck_assert(listener_is_loopback(it));
	ck_assert(listener_serves(it, "systemd:web"));
	ck_assert(listener_serves(it, address));
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	c = dial(address);
	loop_run(l);
	ck_assert_int_eq(accepted, 1);
	ck_assert_uint_eq(last_uid, getuid());
	close(c);
	ck_assert_int_eq(listener_set_access(it, 0666, "no-such-group", &et), MV_OK);
	/* Its file is the service manager's; and it can be had again. */
	listener_free(it);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(start("systemd:web"), MV_OK);
	c = dial(address);
	ck_assert_int_ge(c, 0);
	loop_run(l);
	ck_assert_int_eq(accepted, 2);
	close(c);
	close(fd);
	hand_over_nothing();
}
END_TEST

static int
bind_tcp(in_addr_t host)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(host);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

START_TEST(test_inherited_tcp)
{
	int fd = bind_tcp(_i ? INADDR_ANY : INADDR_LOOPBACK);
	bool loopback = !_i;

	hand_over(fd, "web");
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	ck_assert_ptr_nonnull(strstr(et.message, "listens"));
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(listener_check("systemd:web", &loopback, &et), MV_OK);
	ck_assert_int_eq(loopback, !_i);
	ck_assert_int_eq(start("systemd:web"), MV_OK);
	ck_assert_int_eq(listener_is_loopback(it), !_i);
	ck_assert_int_eq(
	    strncmp(listener_address(it), _i ? "0.0.0.0:" : "127.0.0.1:", 8), 0);
	close(fd);
	hand_over_nothing();
}
END_TEST

static int complaints;

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)level;
	(void)len;
	(void)arg;
	complaints += strstr(line, "listener: cannot accept") != NULL;
}

/* Whoever has it as well can end it for all: then it is ready for ever. */
START_TEST(test_inherited_ends)
{
	int fd = bind_tcp(INADDR_LOOPBACK);

	ck_assert_int_eq(listen(fd, 8), 0);
	hand_over(fd, "web");
	ck_assert_int_eq(start("systemd:web"), MV_OK);
	complaints = 0;
	log_set_sink(on_line, NULL);
	ck_assert_int_eq(shutdown(fd, SHUT_RD), 0);
	for (int turns = 0; turns < 20; turns++)
		settle();
	log_set_sink(NULL, NULL);
	ck_assert_int_eq(complaints, 1);
	close(fd);
	hand_over_nothing();
}
END_TEST

/* Who reaches a family that is not known here is not known either. */
START_TEST(test_inherited_other)
{
	static const int families[] = {AF_VSOCK, AF_NETLINK};
	bool loopback = true;
	int fd = -1;

	for (size_t i = 0; i < 2 && fd < 0; i++)
		fd = socket(families[i], (i ? SOCK_RAW : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	hand_over(fd, "web");
	ck_assert_int_eq(listener_check("systemd:web", &loopback, &et), MV_OK);
	ck_assert(!loopback);
	close(fd);
	hand_over_nothing();
}
END_TEST

START_TEST(test_inherited_none)
{
	int fd = bind_here();

	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	ck_assert_ptr_nonnull(strstr(et.message, "systemd:web"));
	hand_over(fd, "we");
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	hand_over(fd, "web");
	setenv("LISTEN_PID", "1", 1); /* somebody else's */
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	hand_over(fd, "web");
	setenv("LISTEN_FDS", "9999999999", 1);
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	setenv("LISTEN_FDS", "-1", 1);
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	hand_over(fd, "web");
	setenv("LISTEN_FDNAMES", "web:web:web", 1);
	ck_assert_int_eq(start("systemd:web"), MV_SYSTEM);
	if (fd > 3)
		ck_assert_ptr_nonnull(strstr(et.message, "FileDescriptorName="));
	close(fd);
	hand_over_nothing();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("listener_open");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, test_unix_two_at_once);
	tcase_add_test(tc, test_unix_lock_goes);
	tcase_add_test(tc, test_access);
	tcase_add_loop_test(tc, test_serves, 0, sizeof(served) / sizeof(served[0]));
	tcase_add_test(tc, test_inherited_unix);
	tcase_add_loop_test(tc, test_inherited_tcp, 0, 2);
	tcase_add_test(tc, test_inherited_ends);
	tcase_add_test(tc, test_inherited_other);
	tcase_add_test(tc, test_inherited_none);
	return run_suite(suite, tc);
}
