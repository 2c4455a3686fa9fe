/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Addresses of the HTTP endpoint and what is served there, and how they change. */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_rig.h"
#include "endpoint_talk.h"

#include <grp.h>

static const struct endpoint_listen both[] = {
    {.address = ":0", .path = "/mcp", .profile = ""},
    {.address = ":0", .path = "/mcp/dev", .profile = "dev", .view = 1},
};

START_TEST(a_path_shows_its_profile)
{
	struct peer *p;

	SERVE(both);
	ck_assert_str_eq(endpoint_http_address(e, 0), endpoint_http_address(e, 1));
	ck_assert_ptr_null(endpoint_http_address(e, 2));
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	ck_assert_str_eq(look(p, "/mcp/dev"), "b");
	ck_assert_str_eq(look(p, "/mcp/"), "404");
	ck_assert_str_eq(look(p, "/mcp/dev/x"), "404");
	hang_up(p);
}
END_TEST

static const char *const hosts_a[] = {"a.example", NULL};
static const char *const hosts_b[] = {"b.example", NULL};
static const char *const origins_b[] = {"https://b.example", NULL};

static const struct {
	const char *path, *headers;
	int status;
} guarded[] = {
    {"/a", "Host: a.example", 200},
    {"/a", "Host: localhost", 200},
    {"/a", "Host: b.example", 403},
    {"/b", "Host: b.example", 200},
    {"/b", "Host: a.example", 403},
    {"/b", "Host: a b", 400},
    {"/a", "Host: a.example\r\nOrigin: https://b.example", 403},
    {"/b", "Host: b.example\r\nOrigin: https://b.example", 200},
    {"/b", "Host: a.example\r\nOrigin: https://b.example", 403},
    /* what is not there tells nobody so who could not have come */
    {"/c", "Host: a.example", 404},
    {"/c", "Host: b.example", 404},
    {"/c", "Host: localhost", 404},
    {"/c", "Host: c.example", 403},
    {"/c", "Host: a.example\r\nOrigin: https://b.example", 403},
    {"/c", "Host: b.example\r\nOrigin: https://b.example", 404},
};

START_TEST(a_path_has_its_guard)
{
	const struct endpoint_listen rows[] = {
	    {.address = ":0", .path = "/a", .profile = "", .allowed_hosts = hosts_a},
	    {.address = ":0",
		.path = "/b",
		.profile = "",
		.allowed_hosts = hosts_b,
		.allowed_origins = origins_b},
	};
	char text[512];
	struct peer *p;

	SERVE(rows);
	p = dial(0);
	(void)snprintf(text, sizeof(text),
	    "POST %s HTTP/1.1\r\n%s\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu" END LIST_ALL,
	    guarded[_i].path, guarded[_i].headers, strlen(LIST_ALL));
	say(p, text);
	(void)snprintf(text, sizeof(text), "HTTP/1.1 %d ", guarded[_i].status);
	expect(p, text);
	hang_up(p);
}
END_TEST

/* Guards that change are for the next request, sessions or not. */
START_TEST(guards_change)
{
	struct endpoint_listen row = {.address = ":0", .path = "/mcp", .profile = ""};
	const char *session;
	struct peer *p, *stream;

	ck_assert_int_eq(serve(&row, 1), MV_OK);
	p = dial(0);
	stream = dial(0);
	session = open_session(p, "/mcp");
	get_stream(stream, "/mcp", session);
	say(p, "OPTIONS /mcp HTTP/1.1\r\nHost: a.example" END);
	expect(p, "HTTP/1.1 403 ");
	expect(p, "}}");
	row.allowed_hosts = hosts_a;
	ck_assert_int_eq(serve(&row, 1), MV_OK);
	say(p, "OPTIONS /mcp HTTP/1.1\r\nHost: a.example" END);
	expect(p, "HTTP/1.1 204 ");
	expect(p, END);
	ck_assert_str_eq(look_with(p, "/mcp", session), "ab");
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 1);
	hear(stream);
	ck_assert(!stream->eof);
	ck_assert_ptr_null(strstr(buf_cstr(&stream->in), "0" END));
	hang_up(p);
	hang_up(stream);
}
END_TEST

/* Bound addresses stay, the path moves, whoever is there goes on. */
START_TEST(addresses_stay)
{
	const struct endpoint_listen moved[] = {
	    {.address = ":0", .path = "/new", .profile = ""},
	};
	struct endpoint_listen fixed = moved[0];
	char was[64];
	struct peer *p;

	SERVE(both);
	(void)snprintf(was, sizeof(was), "%s", endpoint_http_address(e, 0));
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	SERVE(moved);
	ck_assert_str_eq(endpoint_http_address(e, 0), was);
	ck_assert_ptr_null(endpoint_http_address(e, 1));
	ck_assert_str_eq(look(p, "/mcp"), "404");
	ck_assert_str_eq(look(p, "/new"), "ab");
	/* The same place by another name. */
	fixed.address = was;
	ck_assert_int_eq(serve(&fixed, 1), MV_OK);
	ck_assert_str_eq(endpoint_http_address(e, 0), was);
	ck_assert_str_eq(look(p, "/new"), "ab");
	hang_up(p);
}
END_TEST

/* Who came by an address that is closed is served as long as the path is. */
START_TEST(a_closed_door)
{
	struct endpoint_listen rows[] = {both[0], both[1]};
	char was[64];
	struct peer *p;
	int fd;

	SERVE(rows);
	(void)snprintf(was, sizeof(was), "%s", endpoint_http_address(e, 0));
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	rows[0].address = address;
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	ck_assert_int_eq(try_dial(was), -1);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	ck_assert_str_eq(look(p, "/mcp/dev"), "404");
	/* Nobody at all. */
	ck_assert_int_eq(serve(NULL, 0), MV_OK);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_str_eq(look(p, "/mcp"), "404");
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).connections, 0);
	/* One that connected and is closed before it is accepted. */
	SERVE(both);
	fd = try_dial(endpoint_http_address(e, 0));
	ck_assert_int_eq(endpoint_http_set_listen(e, NULL, 0, &et), MV_OK);
	fake_loop_settle(f->loop);
	close(fd);
}
END_TEST

static void
refuse(const struct endpoint_listen *rows, size_t n, enum mv_err err, const char *word)
{
	memset(&et, 0, sizeof(et));
	ck_assert_int_eq(serve(rows, n), err);
	ck_assert_msg(
	    strstr(et.message, word) != NULL, "no \"%s\" in \"%s\"", word, et.message);
}

/* All of it or nothing. */
START_TEST(nothing_changes_on_a_failure)
{
	struct endpoint_listen rows[] = {
	    {.address = address, .path = "/x", .profile = "", .mode = 0660},
	    {.address = ":0", .path = "/y", .profile = ""},
	    {.address = "127.0.0.1:1x", .path = "/z", .profile = ""},
	};
	struct endpoint_listen old = {
	    .address = address, .path = "/mcp", .profile = "", .mode = 0640};
	char longer[200], other[160];
	struct stat st;
	struct peer *p;

	ck_assert_int_eq(serve(&old, 1), MV_OK);
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	refuse(rows, 3, MV_CONF, "127.0.0.1:1x");
	(void)snprintf(other, sizeof(other), "unix:%s/none/x", folder);
	rows[2].address = other;
	refuse(rows, 3, MV_SYSTEM, other);
	/* A group that there is not, of a socket that was made for it. */
	(void)snprintf(other, sizeof(other), "unix:%s/other", folder);
	rows[2].group = "no-such-group";
	refuse(rows, 3, MV_CONF, "no-such-group");
	ck_assert_int_eq(access(other + 5, F_OK), -1);
	/* Twice the same path; by another name of the same address too. */
	rows[2] = rows[0];
	refuse(rows, 3, MV_CONF, "/x");
	memset(longer, 'p', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	rows[2].path = "/z";
	rows[2].profile = longer;
	refuse(rows, 3, MV_CONF, "profile");
	ck_assert_str_eq(endpoint_http_address(e, 0), address);
	ck_assert_ptr_null(endpoint_http_address(e, 1));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	ck_assert_str_eq(look(p, "/x"), "404");
	hang_up(p);
}
END_TEST

START_TEST(a_sockets_file_stays)
{
	struct endpoint_listen row = {.address = address, .path = "/mcp", .profile = ""};
	const struct group *ours = getgrgid(getgid());
	struct stat before, after;
	char name[64];

	ck_assert_ptr_nonnull(ours);
	(void)snprintf(name, sizeof(name), "%s", ours->gr_name);
	ck_assert_int_eq(serve(&row, 1), MV_OK);
	ck_assert_int_eq(stat(path, &before), 0);
	ck_assert_uint_eq(before.st_mode & 0777, 0600);
	row.mode = 0660;
	row.group = name;
	ck_assert_int_eq(serve(&row, 1), MV_OK);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	ck_assert_uint_eq(after.st_mode & 0777, 0660);
	row.mode = 0;
	row.group = NULL;
	ck_assert_int_eq(serve(&row, 1), MV_OK);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(after.st_mode & 0777, 0600);
	ck_assert_uint_eq(after.st_gid, before.st_gid);
	/* Somebody has removed it: there is one again. */
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(serve(&row, 1), MV_OK);
	ck_assert_int_eq(stat(path, &after), 0);
	hang_up(dial(0));
}
END_TEST

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n";

/* Lines show what the first row of their address shows. */
START_TEST(lines_by_a_door)
{
	struct endpoint_listen rows[] = {
	    {.address = address, .path = "/dev", .profile = "dev", .view = 1},
	    {.address = address, .path = "/mcp", .profile = ""},
	};
	struct peer *p, *late, *http;

	SERVE(rows);
	p = dial(0);
	late = dial(0);
	http = dial(0);
	ck_assert_str_eq(look(http, "/mcp"), "ab");
	say(p, hello);
	expect(p, "\"protocolVersion\"");
	expect(p, "\n");
	say(p, LIST_ALL "\n");
	expect(p, "beta__b");
	expect(p, "\n");
	ck_assert_uint_eq(endpoint_http_stats(e).connections, 3);
	/* It goes on when its profile has gone; who has not spoken yet is too late. */
	ck_assert_int_eq(serve(rows + 1, 1), MV_OK);
	ck_assert_int_eq(serve(NULL, 0), MV_OK);
	say(p, LIST_ALL "\n");
	expect(p, "beta__b");
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), "alpha__a"));
	say(late, hello);
	expect_end(late);
	hang_up(p);
	hang_up(late);
	hang_up(http);
	fake_loop_advance(f->loop, 2000);
	ck_assert_uint_eq(endpoint_http_stats(e).connections, 0);
}
END_TEST

/* Somebody else has read the beginning. */
START_TEST(lines_that_are_given)
{
	size_t half = strlen(hello) / 2;
	struct peer *p;
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	endpoint_http_add_lines(e, fd[1], getuid(), 1, hello, half);
	p = peer_of(fd[0]);
	ck_assert_uint_eq(endpoint_http_stats(e).connections, 1);
	say(p, hello + half);
	expect(p, "\"protocolVersion\"");
	expect(p, "\n");
	say(p, LIST_ALL "\n");
	expect(p, "\"tools\":[");
	while (strstr(buf_cstr(&p->in), "\n") == NULL)
		hear(p);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&p->in), "beta__b"));
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), "alpha__a"));
	hang_up(p);
	/* No memory for what was read: closed, and no more than that. */
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	mem_fail_at(1, 0);
	endpoint_http_add_lines(e, fd[1], getuid(), 1, hello, half);
	mem_fail_at(0, 0);
	p = peer_of(fd[0]);
	expect_end(p);
	hang_up(p);
	fake_loop_advance(f->loop, 2000);
	ck_assert_uint_eq(endpoint_http_stats(e).connections, 0);
	/* Too late. */
	endpoint_http_stop(e, true, on_stopped, &stopped);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	endpoint_http_add_lines(e, fd[1], getuid(), 1, NULL, 0);
	p = peer_of(fd[0]);
	expect_end(p);
	hang_up(p);
}
END_TEST

/* A client of lines takes its answer at its own pace, also from one that stops. */
START_TEST(lines_have_their_answers)
{
	struct endpoint_listen row = {.address = address, .path = "/mcp", .profile = ""};
	const size_t bytes = (size_t)4 << 20;
	struct peer *p, *quiet;
	struct buf b;

	ck_assert_int_eq(serve(&row, 1), MV_OK);
	p = dial(0);
	quiet = dial(0);
	say(p, hello);
	expect(p, "\n");
	say(p, CALL_B "\n");
	fake_loop_settle(f->loop);
	buf_init(&b, 2 * bytes);
	buf_add_str(&b, "{\"x\":\"");
	for (size_t i = 0; i < bytes; i++)
		buf_add_char(&b, 'x');
	buf_add_str(&b, "\"}");
	fake_upstream_result(f->u[1], 0, buf_cstr(&b));
	buf_fini(&b);
	endpoint_http_stop(e, false, on_stopped, &stopped);
	fake_loop_settle(f->loop);
	/* Too late to be called. */
	say(p, CALL_B "\n");
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(stopped, 0);
	expect_end(quiet);
	expect_end(p);
	ck_assert_uint_gt(p->in.len, bytes);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), 1);
	ck_assert_uint_eq(stopped, 1);
	hang_up(p);
	hang_up(quiet);
}
END_TEST

START_TEST(stopped_is_stopped)
{
	struct peer *p;

	SERVE(both);
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	endpoint_http_stop(e, true, on_stopped, &stopped);
	ck_assert_ptr_null(endpoint_http_address(e, 0));
	ck_assert_int_eq(serve(both, 2), MV_STOPPING);
	expect_end(p);
	ck_assert_uint_eq(stopped, 1);
	hang_up(p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_doors");
	TCase *tc = tcase_create("http_doors");

	tcase_add_test(tc, a_path_shows_its_profile);
	tcase_add_loop_test(
	    tc, a_path_has_its_guard, 0, sizeof(guarded) / sizeof(guarded[0]));
	tcase_add_test(tc, guards_change);
	tcase_add_test(tc, addresses_stay);
	tcase_add_test(tc, a_closed_door);
	tcase_add_test(tc, nothing_changes_on_a_failure);
	tcase_add_test(tc, a_sockets_file_stays);
	tcase_add_test(tc, lines_by_a_door);
	tcase_add_test(tc, lines_that_are_given);
	tcase_add_test(tc, lines_have_their_answers);
	tcase_add_test(tc, stopped_is_stopped);
	return run_suite(s, tc);
}
