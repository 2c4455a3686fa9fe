/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Sessions, streams and calls of a profile while what is served changes. */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_rig.h"
#include "endpoint_talk.h"

static const struct endpoint_listen rows[] = {
    {.address = ":0", .path = "/mcp", .profile = ""},
    {.address = ":0", .path = "/dev", .profile = "dev", .view = 1},
    {.address = ":0", .path = "/dev2", .profile = "dev", .view = 1},
};

/* An id is good wherever its profile is served, and nowhere else. */
START_TEST(a_session_is_of_its_profile)
{
	char id[600], other[600];
	struct peer *p;

	SERVE(rows);
	p = dial(0);
	(void)snprintf(id, sizeof(id), "%s", open_session(p, "/dev"));
	(void)snprintf(other, sizeof(other), "%s", open_session(p, "/mcp"));
	ck_assert_str_eq(look_with(p, "/dev", id), "b");
	ck_assert_str_eq(look_with(p, "/dev2", id), "b");
	ck_assert_str_eq(look_with(p, "/mcp", id), "404");
	ck_assert_str_eq(look_with(p, "/mcp", other), "ab");
	ck_assert_str_eq(look_with(p, "/dev", other), "404");
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 2);
	/* The same from the id alone. */
	fake_loop_advance(f->loop, 180000);
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	p = dial(0);
	ck_assert_str_eq(look_with(p, "/mcp", id), "404");
	ck_assert_str_eq(look_with(p, "/dev2", id), "b");
	ck_assert_str_eq(look_with(p, "/mcp", other), "ab");
	hang_up(p);
}
END_TEST

/* What stays is not touched; what goes ends its streams, and is 404. */
START_TEST(streams_of_a_mount)
{
	char id[600], other[600];
	struct peer *p, *stays, *goes;

	SERVE(rows);
	p = dial(0);
	stays = dial(0);
	goes = dial(0);
	(void)snprintf(id, sizeof(id), "%s", open_session(p, "/mcp"));
	(void)snprintf(other, sizeof(other), "%s", open_session(p, "/dev"));
	get_stream(stays, "/mcp", id);
	get_stream(goes, "/dev", other);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 2);
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	expect(goes, "0" END);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 1);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	ck_assert_str_eq(look_with(p, "/dev", other), "404");
	ck_assert_str_eq(look_with(p, "/mcp", other), "404");
	/* The other one still hears of changes. */
	ck_assert_str_eq(look_with(p, "/mcp", id), "ab");
	fleet_list(f, 0, LIST_TOOLS, "a", "c", NULL);
	fake_loop_advance(f->loop, 1000);
	expect(stays, "notifications/tools/list_changed");
	/* It is back: nothing was lost but the stream. */
	SERVE(rows);
	ck_assert_str_eq(look_with(p, "/dev", other), "b");
	hang_up(p);
	hang_up(stays);
	hang_up(goes);
}
END_TEST

#define META                                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"x\",\"version\":\"1\"},"     \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define LISTEN                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"subscriptions/listen\","             \
	"\"params\":{" META ",\"notifications\":{\"toolsListChanged\":true}}}"
#define MODERN "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"

/* Listens end as when we end them; calls that were taken are answered. */
START_TEST(calls_of_a_mount)
{
	struct peer *p, *listen_, *body;
	char id[600];
	size_t sent = fake_upstream_n_sent(f->u[1]);

	SERVE(rows);
	p = dial(0);
	listen_ = dial(0);
	body = dial(0);
	post(listen_, "/dev", MODERN, LISTEN);
	expect(listen_, "notifications/subscriptions/acknowledged");
	(void)snprintf(id, sizeof(id), "%s", open_session(p, "/dev"));
	post(p, "/dev", id, CALL_B);
	/* One whose head was taken before. */
	say(body, "POST /dev HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
		  "Content-Type: application/json" END "{");
	hear(body);
	hear(p);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), sent + 1);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 1);
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	say(body, "}");
	expect(body, "HTTP/1.1 404 ");
	expect(listen_, "\"id\":9");
	expect(listen_, "0" END);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 1);
	fake_upstream_result(f->u[1], sent, "{\"content\":[]}");
	expect(p, "\"id\":2");
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 0);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 0);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	hang_up(p);
	hang_up(listen_);
	hang_up(body);
}
END_TEST

/* A call without a session keeps its mount, and a listen beside it, until it has ended.
 */
START_TEST(calls_without_a_session)
{
	struct peer *p, *listen_;
	size_t sent = fake_upstream_n_sent(f->u[1]);

	SERVE(rows);
	p = dial(0);
	listen_ = dial(0);
	post(listen_, "/dev", MODERN, LISTEN);
	expect(listen_, "notifications/subscriptions/acknowledged");
	post(p, "/dev", "", CALL_B);
	hear(p);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), sent + 1);
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 1);
	if (_i == 0) {
		fake_upstream_result(f->u[1], sent, "{\"content\":[]}");
		expect(p, "\"id\":2");
		expect(listen_, "0" END);
	} else if (_i == 1) {
		hang_up(p); /* cancels */
		p = dial(0);
		expect(listen_, "0" END);
	} /* else all of it is there at the end of the endpoint */
	hang_up(p);
	hang_up(listen_);
}
END_TEST

/* Everything open when it is stopped is ended, whatever has gone before. */
START_TEST(stop_with_a_mount_that_is_gone)
{
	struct peer *p;

	SERVE(rows);
	p = dial(0);
	post(p, "/dev", "", CALL_B);
	hear(p);
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	endpoint_http_stop(e, false, on_stopped, &stopped);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(stopped, 0);
	fake_loop_advance(f->loop, 1000);
	expect(p, "\"id\":2");
	expect(p, "\"error\"");
	expect_end(p);
	hang_up(p);
	ck_assert_uint_eq(stopped, 1);
}
END_TEST

/* Shorter from now on is shorter for those that wait as well. */
START_TEST(other_limits)
{
	struct endpoint_http_opts o = endpoint_http_defaults;
	struct peer *p, *q;

	SERVE(rows);
	p = dial(0);
	q = dial(0);
	post(p, "/mcp", "", CALL_B);
	hear(p);
	o.http = http_server_defaults;
	o.commit_ms = 100;
	o.sessions_max = 0;
	endpoint_http_set_opts(e, &o);
	post(q, "/mcp", "", CALL_B);
	hear(q);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 0);
	fake_loop_advance(f->loop, 100);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 2);
	expect(p, "text/event-stream");
	expect(q, "text/event-stream");
	hang_up(p);
	hang_up(q);
	ck_assert_uint_eq(endpoint_http_stats(e).streams, 0);
	p = dial(0);
	post(p, "/mcp", "", "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}");
	expect(p, "HTTP/1.1 503 ");
	expect(p, "Retry-After: 1\r\n");
	hang_up(p);
}
END_TEST

/* A session that could come back and has no room is told to come again. */
START_TEST(no_room_for_a_session)
{
	struct endpoint_http_opts o = endpoint_http_defaults;
	char id[600];
	struct peer *p;

	SERVE(rows);
	p = dial(0);
	(void)snprintf(id, sizeof(id), "%s", open_session(p, "/mcp"));
	fake_loop_advance(f->loop, 180000);
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	o.http = http_server_defaults;
	o.sessions_max = 0;
	endpoint_http_set_opts(e, &o);
	p = dial(0);
	post(p, "/mcp", id, LIST_ALL);
	expect(p, "HTTP/1.1 503 ");
	expect(p, "Retry-After: 1\r\n");
	expect(p, "\"error\"");
	hang_up(p);
	o.sessions_max = 1;
	endpoint_http_set_opts(e, &o);
	p = dial(0);
	ck_assert_str_eq(look_with(p, "/mcp", id), "ab");
	hang_up(p);
}
END_TEST

/* One line or several, by HTTP or by lines: what it took goes back when it is over. */
START_TEST(large_messages_leave_nothing)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":"
				   "\"resources/read\",\"params\":{\"uri\":\"";
	static const char tail[] = "\"}}";
	const size_t n = (size_t)4 << 20;
	size_t before;
	struct peer *p;
	struct buf b;

	SERVE(rows);
	p = dial(0);
	ck_assert_str_eq(look(p, "/mcp"), "ab");
	hang_up(p);
	fake_loop_advance(f->loop, 61000);
	before = mem_in_use();
	p = dial(0);
	buf_init(&b, 2 * n);
	buf_addf(&b,
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu" END "%s",
	    strlen(head) + n + strlen(tail), head);
	for (size_t i = 0; i < n; i++)
		buf_add_char(&b, 'x');
	buf_add_str(&b, tail);
	for (size_t sent = 0; sent < b.len;) {
		ssize_t some =
		    send(p->fd, b.data + sent, b.len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += some > 0 ? (size_t)some : 0;
		fake_loop_settle(f->loop);
	}
	buf_fini(&b);
	expect(p, "-32002");
	hang_up(p);
	fake_loop_advance(f->loop, 61000);
	ck_assert_uint_lt(mem_in_use() - before, n / 8);
}
END_TEST

/* Without a session nobody could come for the answers of a batch. */
START_TEST(a_batch_without_a_session)
{
	struct peer *p;
	size_t sent = fake_upstream_n_sent(f->u[1]);

	SERVE(rows);
	p = dial(0);
	post(p, "/mcp", "", "[" CALL_B "," LIST_ALL "]");
	hear(p);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), sent + 1);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 1);
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 0);
	ck_assert(fake_upstream_sent(f->u[1], sent)->cancelled);
}
END_TEST

/* A stream has begun before the lists are in, and with them the answer. */
START_TEST(a_session_that_takes_its_time)
{
	struct endpoint_http_opts o = endpoint_http_defaults;
	char id[600];
	struct peer *p;
	size_t n;

	endpoint_http_free(e);
	fake_loop_settle(f->loop);
	fleet_free(f);
	f = fleet_new(1, NULL);
	gateway_start(f->g);
	o.http = http_server_defaults;
	o.commit_ms = 100;
	e = endpoint_http_new(f->loop, f->g, &o);
	ck_assert_int_eq(serve(rows, 1), MV_OK);
	p = dial(0);
	post(p, "/mcp", "",
	    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
	    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}");
	hear(p);
	fake_loop_advance(f->loop, 100);
	expect(p, "Mcp-Session-Id: ");
	n = strcspn(buf_cstr(&p->in), "\r");
	(void)snprintf(id, sizeof(id), "Mcp-Session-Id: %.*s\r\n", (int)n, p->in.data);
	expect(p, "text/event-stream");
	fleet_ready(f, 0);
	expect(p, "\"protocolVersion\"");
	expect(p, "0" END);
	ck_assert_str_eq(look_with(p, "/mcp", id), "");
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	hang_up(p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_mounts");
	TCase *tc = tcase_create("http_mounts");

	tcase_add_test(tc, a_session_is_of_its_profile);
	tcase_add_test(tc, streams_of_a_mount);
	tcase_add_test(tc, calls_of_a_mount);
	tcase_add_loop_test(tc, calls_without_a_session, 0, 3);
	tcase_add_test(tc, stop_with_a_mount_that_is_gone);
	tcase_add_test(tc, other_limits);
	tcase_add_test(tc, no_room_for_a_session);
	tcase_add_test(tc, large_messages_leave_nothing);
	tcase_add_test(tc, a_batch_without_a_session);
	tcase_add_test(tc, a_session_that_takes_its_time);
	return run_suite(s, tc);
}
