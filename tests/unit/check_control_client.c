/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The blocking side of the control socket, against a child that serves; and where the
 * socket is. */
#include "control_rig.h"

#include "mcpvisor/clock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static uint64_t now_ms;

static pid_t
serve_in_child(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		loop_run(l);
		_exit(0);
	}
	return pid;
}

static void
end_child(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(test_ask)
{
	struct buf reply;
	pid_t pid;

	timer_clear(&bound);
	status_bytes = 3000000;
	pid = serve_in_child();
	buf_init(&reply, CAP_CONTROL_BYTES);
	ck_assert_int_eq(control_ask(path, "{\"command\":\"restart\",\"upstream\":\"a\"}",
			     &reply, &et),
	    MV_OK);
	ck_assert_str_eq(buf_cstr(&reply), "{\"ok\":true}");
	buf_reset(&reply);
	ck_assert_int_eq(
	    control_ask(path, "{\"command\":\"status\"}", &reply, &et), MV_OK);
	ck_assert_uint_eq(reply.len, 3000000 + strlen("{\"ok\":true,\"a\":\"\"}"));
	buf_fini(&reply);
	buf_init(&reply, 1000);
	ck_assert_int_eq(
	    control_ask(path, "{\"command\":\"status\"}", &reply, &et), MV_TOO_LONG);
	end_child(pid);
	buf_fini(&reply);
}
END_TEST

START_TEST(test_open_mcp)
{
	pid_t pid;
	int fd;

	timer_clear(&bound);
	pid = serve_in_child();
	ck_assert_int_eq(control_open_mcp(path, "dev", &fd, &et), MV_OK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	(void)close(fd);
	end_child(pid);
	next_err = MV_NOT_FOUND;
	pid = serve_in_child();
	ck_assert_int_eq(control_open_mcp(path, NULL, &fd, &et), MV_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(et.message, "no profile has this name"));
	ck_assert_int_eq(fd, -1);
	end_child(pid);
}
END_TEST

START_TEST(test_nobody_there)
{
	struct buf reply;
	char where[200];
	int fd;

	buf_init(&reply, 1000);
	(void)snprintf(where, sizeof(where), "%s/none", folder);
	ck_assert_int_eq(control_ask(where, "{}", &reply, &et), MV_CLOSED);
	ck_assert_ptr_nonnull(strstr(et.message, where));
	ck_assert_int_eq(control_open_mcp(where, NULL, &fd, &et), MV_CLOSED);
	ck_assert_int_eq(control_ask("", "{}", &reply, &et), MV_CONF);
	memset(where, 'x', sizeof(where));
	where[sizeof(where) - 1] = '\0';
	ck_assert_int_eq(control_ask(where, "{}", &reply, &et), MV_CONF);
	ck_assert_uint_eq(reply.len, 0);
	buf_fini(&reply);
	ck_assert(control_is_there(path));
	ck_assert(!control_is_there(where));
	ck_assert(!control_is_there(""));
}
END_TEST

/* Of one that takes nobody more, neither the look nor the question waits. */
START_TEST(test_full_backlog)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), first;
	struct buf reply;

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s/full", folder);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(first, (const struct sockaddr *)&to, sizeof(to)), 0);
	buf_init(&reply, 1000);
	ck_assert(control_is_there(to.sun_path));
	ck_assert_int_eq(control_ask(to.sun_path, "{}", &reply, &et), MV_SYSTEM);
	ck_assert_ptr_nonnull(strstr(et.message, "too many others"));
	buf_fini(&reply);
	(void)close(first);
	(void)close(fd);
	ck_assert_int_eq(unlink(to.sun_path), 0);
}
END_TEST

/* Each look at the clock is five seconds later, nearly: connected, and then nothing. */
static uint64_t
jumping_now(void)
{
	return now_ms += 4995;
}

START_TEST(test_no_answer)
{
	struct buf reply;

	buf_init(&reply, 1000);
	now_ms = 1;
	clock_set_source(jumping_now);
	ck_assert_int_eq(
	    control_ask(path, "{\"command\":\"status\"}", &reply, &et), MV_TIMEOUT);
	clock_set_source(NULL);
	ck_assert_uint_lt(now_ms, 20000);
	ck_assert_ptr_nonnull(strstr(et.message, "in time"));
	buf_fini(&reply);
}
END_TEST

START_TEST(test_path_taken_and_default)
{
	static const struct control_opts shared = {.path = path, .mode = 0660},
					 relative = {.path = "here", .mode = 0600};
	struct control *other;
	struct stat st;
	char out[100];

	ck_assert_int_eq(control_new(l, &opts, &ops, journal, &other, &et), MV_BUSY);
	ck_assert_ptr_null(other);
	control_free(it);
	ck_assert_int_eq(control_new(l, &shared, &ops, journal, &it, &et), MV_OK);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0660);
	ck_assert_int_eq(control_new(l, &relative, &ops, journal, &other, &et), MV_CONF);
	(void)setenv("RUNTIME_DIRECTORY", "/run/a:/run/b", 1);
	(void)setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	ck_assert_str_eq(control_default_path(out, sizeof(out)), "/run/a/control.sock");
	ck_assert_ptr_null(control_default_path(out, 10));
	(void)unsetenv("RUNTIME_DIRECTORY");
	ck_assert_str_eq(
	    control_default_path(out, sizeof(out)), "/run/user/7/mcpvisor.control");
	/* What is not absolute counts as unset. */
	(void)setenv("XDG_RUNTIME_DIR", "user/7", 1);
	if (geteuid() == 0)
		ck_assert_str_eq(
		    control_default_path(out, sizeof(out)), CONTROL_SYSTEM_PATH);
	else
		ck_assert_ptr_null(control_default_path(out, sizeof(out)));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("control_client");
	TCase *tc = tcase_create("control_client");

	tcase_add_test(tc, test_ask);
	tcase_add_test(tc, test_open_mcp);
	tcase_add_test(tc, test_nobody_there);
	tcase_add_test(tc, test_full_backlog);
	tcase_add_test(tc, test_no_answer);
	tcase_add_test(tc, test_path_taken_and_default);
	return run_suite(suite, tc);
}
