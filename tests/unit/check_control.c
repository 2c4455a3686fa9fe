/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/*
 * The control socket over a real one: requests and refusals, order, bounds, and the turn
 * to MCP.
 */
#include "control_rig.h"

#include "../../src/daemon/control_priv.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY 65534

#define REQUEST_ERROR(text) "{\"ok\":false,\"error\":\"" text "\",\"reason\":\"request\"}"

static const struct {
	const char *request;
	enum mv_err err;
	const char *answer, *journal;
} rows[] = {
    {"{\"command\":\"status\"}", MV_OK, "{\"ok\":true,\"upstreams\":[]}", ""},
    {"{\"command\":\"restart\",\"upstream\":\"git\"}", MV_OK, "{\"ok\":true}",
	"restart(git) "},
    {"{\"command\":\"restart\",\"upstream\":\"git\"}", MV_NOT_FOUND,
	"{\"ok\":false,\"error\":\"no upstream has this name\",\"reason\":\"not_found\"}",
	"restart(git) "},
    {"{\"command\":\"reload\"}", MV_OK, "{\"ok\":true,\"text\":\"+ upstream.new\\n\"}",
	"reload(real) "},
    {"{\"command\":\"reload\",\"dry_run\":true}", MV_CONF,
	"{\"ok\":false,\"error\":\"the conf has errors\",\"reason\":\"conf\","
	"\"text\":\"a.conf:3: \\\"x\\\"\\n\"}",
	"reload(dry) "},
    {"{\"command\":\"reload\"}", MV_UNSUPPORTED,
	"{\"ok\":false,\"error\":\"there is no conf file to read\","
	"\"reason\":\"unsupported\"}",
	"reload(real) "},
    {"{\"command\":\"mcp\",\"profile\":\"dev\"}", MV_NOT_FOUND,
	"{\"ok\":false,\"error\":\"no profile has this name\",\"reason\":\"not_found\"}",
	"mcp(dev) "},
    {"not JSON", MV_OK, REQUEST_ERROR("not JSON, or a member twice"), ""},
    {"{\"command\":\"status\",\"command\":\"status\"}", MV_OK,
	REQUEST_ERROR("not JSON, or a member twice"), ""},
    {"[]", MV_OK, REQUEST_ERROR("want an object with a member \\\"command\\\""), ""},
    {"17", MV_OK, REQUEST_ERROR("want an object with a member \\\"command\\\""), ""},
    {"{\"command\":3}", MV_OK,
	REQUEST_ERROR("want an object with a member \\\"command\\\""), ""},
    {"{\"command\":\"stauts\"}", MV_OK,
	REQUEST_ERROR("there is no command \\\"stauts\\\"; did you mean \\\"status\\\"?"),
	""},
    {"{\"command\":\"x\"}", MV_OK, REQUEST_ERROR("there is no command \\\"x\\\""), ""},
    {"{\"command\":\"restart\"}", MV_OK,
	REQUEST_ERROR("restart needs a member \\\"upstream\\\""), ""},
    {"{\"command\":\"restart\",\"upstream\":1}", MV_OK,
	REQUEST_ERROR("\\\"upstream\\\" of restart has to be a string"), ""},
    {"{\"command\":\"reload\",\"dry_run\":\"yes\"}", MV_OK,
	REQUEST_ERROR("\\\"dry_run\\\" of reload has to be true or false"), ""},
    {"{\"command\":\"reload\",\"dryrun\":true}", MV_OK,
	REQUEST_ERROR(
	    "reload has no member \\\"dryrun\\\"; did you mean \\\"dry_run\\\"?"),
	""},
    {"{\"command\":\"status\",\"upstream\":\"git\"}", MV_OK,
	REQUEST_ERROR("status has no member \\\"upstream\\\""), ""},
};

START_TEST(test_requests)
{
	int fd = open_client();

	next_err = rows[_i].err;
	ck_assert_str_eq(ask(fd, rows[_i].request), rows[_i].answer);
	ck_assert_str_eq(journal, rows[_i].journal);
	/* Whatever it was, the connection goes on. */
	ck_assert_int_eq(
	    strncmp(ask(fd, "{\"command\":\"version\"}"),
		"{\"ok\":true,\"version\":\"" MCPVISOR_VERSION "\",\"pid\":", 32),
	    0);
	(void)close(fd);
}
END_TEST

static enum mv_err
no_take(void *conn, const char *profile)
{
	(void)conn;
	(void)profile;
	return MV_OK;
}

START_TEST(test_others_may_look)
{
	static const struct {
		const char *request;
		bool allowed;
	} looks[] = {
	    {"{\"command\":\"status\"}", true},
	    {"{\"command\":\"version\"}", true},
	    {"{\"command\":\"restart\",\"upstream\":\"a\"}", false},
	    {"{\"command\":\"reload\",\"dry_run\":true}", false},
	    {"{\"command\":\"mcp\"}", false},
	};
	const uid_t uids[] = {geteuid() + 1, (uid_t)-1, geteuid(), 0};

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]) * 4; i++) {
		struct control_asker a = {
		    .ops = &ops, .arg = journal, .uid = uids[i % 4], .take = no_take};
		struct buf out;

		buf_init(&out, 1000);
		control_run(&a, looks[i / 4].request, strlen(looks[i / 4].request), &out);
		if (i % 4 < 2 && !looks[i / 4].allowed)
			ck_assert_str_eq(buf_cstr(&out),
			    "{\"ok\":false,\"error\":\"not permitted\","
			    "\"reason\":\"not_permitted\"}");
		else
			ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "\"ok\":true"));
		buf_fini(&out);
	}
	ck_assert_str_eq(journal, "restart(a) restart(a) reload(dry) reload(dry) ");
}
END_TEST

START_TEST(test_pipelined_in_order)
{
	static const char text[] = "{\"command\":\"restart\",\"upstream\":\"a\"}\r\n\n\n"
				   "{\"command\":\"nothing\"}\n"
				   "{\"command\":\"restart\",\"upstream\":\"b\"}\n"
				   "{\"command\":\"status\"}";
	int fd = open_client();

	say(fd, text, sizeof(text) - 1);
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0); /* ends the last line as well */
	ck_assert_str_eq(hear(fd), "{\"ok\":true}");
	ck_assert_ptr_nonnull(strstr(hear(fd), "there is no command"));
	ck_assert_str_eq(hear(fd), "{\"ok\":true}");
	ck_assert_str_eq(hear(fd), "{\"ok\":true,\"upstreams\":[]}");
	ck_assert_str_eq(hear(fd), "");
	ck_assert_str_eq(journal, "restart(a) restart(b) ");
	(void)close(fd);
}
END_TEST

START_TEST(test_long_request)
{
	size_t n = CONTROL_REQUEST_BYTES;
	char *text = mem_xalloc(2 * n);
	int fd = open_client();

	memset(text, ' ', 2 * n);
	memcpy(text, "{\"command\":\"status\"}", 20);
	text[n] = '\n'; /* as long as may be */
	say(fd, text, n + 1);
	ck_assert_str_eq(hear(fd), "{\"ok\":true,\"upstreams\":[]}");
	text[n] = ' ';
	text[n + 1] = '\n';
	say(fd, text, n + 2);
	ck_assert_ptr_nonnull(strstr(hear(fd), "\"reason\":\"too_long\""));
	text[n + 1] = ' ';
	for (int i = 0; i < 10; i++)
		say(fd, text, 2 * n);
	ck_assert_ptr_nonnull(strstr(ask(fd, ""), "\"reason\":\"too_long\""));
	ck_assert_ptr_nonnull(strstr(ask(fd, "{\"command\":\"status\"}"), "true"));
	mem_free(text);
	(void)close(fd);
}
END_TEST

/* An answer at a time, also for one that does not read. */
START_TEST(test_answers_wait_for_their_reader)
{
	static const char restart[] = "{\"command\":\"restart\",\"upstream\":\"a\"}\n";
	static const char status[] = "{\"command\":\"status\"}\n";
	int fd = open_client();
	char c;

	status_bytes = (size_t)4 * 1024 * 1024;
	say(fd, status, sizeof(status) - 1);
	say(fd, restart, sizeof(restart) - 1);
	for (int i = 0; i < 5; i++)
		turn();
	ck_assert_str_eq(journal, "");
	for (size_t got = 0; got < status_bytes;) {
		char bytes[65536];
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

		got += n > 0 ? (size_t)n : 0;
		if (got < status_bytes / 2)
			ck_assert_str_eq(journal, "");
		turn();
	}
	while (journal[0] == '\0')
		turn();
	while (recv(fd, &c, 1, 0) == 1)
		turn();
	/* What does not fit at all is said to. */
	status_bytes = CAP_CONTROL_BYTES;
	ck_assert_str_eq(ask(fd, "{\"command\":\"status\"}"),
	    "{\"ok\":false,\"error\":\"the status does not fit\","
	    "\"reason\":\"too_long\"}");
	(void)close(fd);
}
END_TEST

START_TEST(test_connections_are_bounded)
{
	int fd[CONTROL_CONNECTIONS], more;

	for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
		fd[i] = open_client();
		ck_assert_str_ne(ask(fd[i], "{\"command\":\"version\"}"), "");
	}
	more = open_client();
	ck_assert_str_eq(hear(more),
	    "{\"ok\":false,\"error\":\"too many connections\",\"reason\":\"busy\"}");
	ck_assert_str_eq(hear(more), "");
	(void)close(more);
	(void)close(fd[3]);
	turn();
	more = open_client();
	ck_assert_str_ne(ask(more, "{\"command\":\"version\"}"), "");
	(void)close(more);
	for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
		if (i != 3)
			(void)close(fd[i]);
	}
}
END_TEST

/* As many connections as there may be, by another user, until they are killed. */
static pid_t
open_others(void)
{
	int ready[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(chmod(path, 0666), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct sockaddr_un to = {.sun_family = AF_UNIX};

		memcpy(to.sun_path, path, strlen(path) + 1);
		if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
			_exit(1);
		for (int i = 0; i < CONTROL_CONNECTIONS; i++)
			if (connect(socket(AF_UNIX, SOCK_STREAM, 0),
				(const struct sockaddr *)&to, sizeof(to)) != 0)
				_exit(2);
		(void)!write(ready[1], "x", 1);
		pause();
	}
	(void)close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	return pid;
}

START_TEST(test_others_leave_room)
{
	int fd[CONTROL_CONNECTIONS - CONTROL_OTHERS];
	pid_t pid;

	if (geteuid() != 0)
		return; /* needs a second user */
	pid = open_others();
	for (int i = 0; i < CONTROL_CONNECTIONS - CONTROL_OTHERS; i++) {
		fd[i] = open_client();
		ck_assert_ptr_nonnull(
		    strstr(ask(fd[i], "{\"command\":\"version\"}"), "\"pid\""));
	}
	for (int i = 0; i < CONTROL_CONNECTIONS - CONTROL_OTHERS; i++)
		(void)close(fd[i]);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(test_becomes_mcp)
{
	static const char text[] = "{\"command\":\"mcp\"}\n{\"jsonrpc\":\"2.0\"}\nhalf";
	int fd = open_client();
	char c = 'x';

	say(fd, text, sizeof(text) - 1);
	ck_assert_str_eq(hear(fd), "{\"ok\":true}");
	ck_assert_str_eq(journal, "mcp(-) ");
	ck_assert_str_eq(taken_bytes, "{\"jsonrpc\":\"2.0\"}\nhalf");
	for (int i = 0; i < 3; i++)
		turn();
	/* It is the new owner's alone, both ways. */
	ck_assert_int_ge(fcntl(taken_fd, F_GETFD) & FD_CLOEXEC, 1);
	ck_assert_int_eq(write(taken_fd, "a", 1), 1);
	ck_assert_int_eq(read(fd, &c, 1), 1);
	ck_assert_int_eq(c, 'a');
	ck_assert_int_eq(write(fd, "b", 1), 1);
	turn();
	ck_assert_int_eq(read(taken_fd, &c, 1), 1);
	ck_assert_int_eq(c, 'b');
	(void)close(fd);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("control");

	tcase_add_loop_test(tc, test_requests, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(tc, test_others_may_look);
	tcase_add_test(tc, test_pipelined_in_order);
	tcase_add_test(tc, test_long_request);
	tcase_add_test(tc, test_answers_wait_for_their_reader);
	tcase_add_test(tc, test_connections_are_bounded);
	tcase_add_test(tc, test_others_leave_room);
	tcase_add_test(tc, test_becomes_mcp);
	return run_suite(suite, tc);
}
