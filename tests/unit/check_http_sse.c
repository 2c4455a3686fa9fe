/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* HTTP+SSE of 2024-11-05. */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_rig.h"
#include "endpoint_talk.h"

static const struct endpoint_listen rows[] = {
    {.address = ":0", .path = "/mcp", .sse_path = "/sse", .profile = ""},
    {.address = ":0", .path = "/dev", .sse_path = "/old", .profile = "dev", .view = 1},
    {.address = ":0", .path = "/new", .profile = "dev", .view = 1},
};

static struct peer *
open_stream(const char *where, char to[256])
{
	struct peer *p = dial(0);
	char text[256];
	size_t n;

	(void)snprintf(text, sizeof(text),
	    "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream" END, where);
	say(p, text);
	expect(p, "HTTP/1.1 200 ");
	expect(p, "text/event-stream");
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), "Mcp-Session-Id"));
	expect(p, "event: endpoint\ndata: ");
	while ((n = strcspn(buf_cstr(&p->in), "\n")) == p->in.len)
		hear(p);
	ck_assert_uint_lt(n, 256);
	memcpy(to, p->in.data, n);
	to[n] = '\0';
	expect(p, "\n\n");
	return p;
}

static const char *
send_to(struct peer *p, const char *to, const char *more, const char *message)
{
	static char status[4];

	post(p, to, more, message);
	expect(p, "HTTP/1.1 ");
	(void)snprintf(status, sizeof(status), "%.3s", buf_cstr(&p->in));
	expect(p, END);
	/* Only errors have a body. */
	if (status[0] == '4' && status[2] != '5')
		expect(p, "}}");
	return status;
}

#define INITIALIZE                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"           \
	"\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},"                        \
	"\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}"

START_TEST(a_session)
{
	char to[256];
	struct peer *p, *q;
	size_t sent = fake_upstream_n_sent(f->u[1]);

	SERVE(rows);
	p = open_stream(_i == 0 ? "/sse" : "/old", to);
	q = dial(0);
	ck_assert_str_eq(send_to(q, to, "", INITIALIZE), "202");
	expect(p, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":");
	expect(p, "2024-11-05");
	ck_assert_str_eq(send_to(q, to, "", LIST_ALL), "202");
	expect(p, "event: message\ndata: ");
	expect(p, "}}\n\n");
	ck_assert_str_eq(send_to(q, to, "", CALL_B), "202");
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 1);
	fake_upstream_result(f->u[1], sent, "{\"content\":[]}");
	expect(p, "\"id\":2,\"result\":{\"content\":[]}}\n\n");
	fleet_list(f, 1, LIST_TOOLS, "b", "c", NULL);
	fake_loop_advance(f->loop, 1000);
	expect(p, "notifications/tools/list_changed");
	/* However long nothing is said. */
	hang_up(q);
	fake_loop_advance(f->loop, (uint64_t)50 * 3600 * 1000);
	q = dial(0);
	ck_assert_str_eq(send_to(q, to, "", LIST_ALL), "202");
	expect(p, "beta__c");
	/* The end of the stream is that of all. */
	ck_assert_str_eq(send_to(q, to, "", CALL_B), "202");
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 0);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	ck_assert_str_eq(send_to(q, to, "", LIST_ALL), "404");
	hang_up(q);
}
END_TEST

/* Its name opens nothing else, and nothing else opens it. */
START_TEST(its_name_is_its_own)
{
	char to[256], header[400], text[300];
	struct peer *p, *q;

	SERVE(rows);
	p = open_stream("/sse", to);
	q = dial(0);
	(void)snprintf(
	    header, sizeof(header), "Mcp-Session-Id: %s\r\n", strchr(to, '=') + 1);
	ck_assert_str_eq(look_with(q, "/mcp", header), "404");
	(void)snprintf(text, sizeof(text), "/old%s", strchr(to, '?'));
	ck_assert_str_eq(send_to(q, text, "", LIST_ALL), "404");
	(void)snprintf(text, sizeof(text), "/sse?sessionId=%s",
	    strchr(open_session(q, "/mcp"), ' ') + 1);
	text[strcspn(text, "\r")] = '\0';
	ck_assert_str_eq(send_to(q, text, "", LIST_ALL), "404");
	ck_assert_str_eq(send_to(q, "/sse?sessionId=", "", LIST_ALL), "404");
	(void)snprintf(
	    text, sizeof(text), "/sse?a=b&sessionId=%s&c", strchr(to, '=') + 1);
	ck_assert_str_eq(send_to(q, text, "", LIST_ALL), "202");
	expect(p, "\"id\":1");
	hang_up(p);
	hang_up(q);
}
END_TEST

static const struct {
	const char *request, *status;
} refused[] = {
    {"POST /sse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
     "Content-Length: 2" END "{}",
	"405 "},
    {"POST /sse?sessionId=x HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
     "Content-Length: 2" END "{}",
	"415 "},
    {"POST /sse?sessionId=x HTTP/1.1\r\nHost: evil.example\r\n"
     "Content-Type: application/json\r\nContent-Length: 2" END "{}",
	"403 "},
    {"GET /sse HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example" END, "403 "},
    {"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: application/json" END, "406 "},
    {"DELETE /sse HTTP/1.1\r\nHost: localhost" END, "405 "},
    {"PUT /sse HTTP/1.1\r\nHost: localhost" END, "405 "},
    {"OPTIONS /sse HTTP/1.1\r\nHost: localhost" END, "204 "},
    {"GET /sse/ HTTP/1.1\r\nHost: localhost" END, "404 "},
    {"POST /sse?sessionId=x HTTP/1.1\r\nHost: localhost\r\n"
     "MCP-Protocol-Version: 2026-07-28\r\n"
     "Content-Type: application/json\r\nContent-Length: 2" END "{}",
	"404 "},
    {"POST /sse?sessionId=x HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 1\r\n"
     "Content-Type: application/json\r\nContent-Length: 2" END "{}",
	"400 "},
};

START_TEST(what_is_refused)
{
	struct peer *p;

	SERVE(rows);
	p = dial(0);
	say(p, refused[_i].request);
	expect(p, "HTTP/1.1 ");
	ck_assert_int_eq(strncmp(buf_cstr(&p->in), refused[_i].status, 4), 0);
	hang_up(p);
}
END_TEST

START_TEST(bad_messages)
{
	char to[256];
	struct peer *p, *q;

	SERVE(rows);
	p = open_stream("/sse", to);
	q = dial(0);
	ck_assert_str_eq(send_to(q, to, "", "{"), "400");
	ck_assert_str_eq(send_to(q, to, "", "{}"), "202");
	expect(p, "-32600");
	/* Its revision has none. */
	ck_assert_str_eq(send_to(q, to, "", INITIALIZE), "202");
	expect(p, "2024-11-05");
	ck_assert_str_eq(send_to(q, to, "", "[" LIST_ALL "]"), "202");
	expect(p, "-32600");
	hang_up(p);
	hang_up(q);
}
END_TEST

/* They count as sessions do, and their path may go. */
START_TEST(limits_and_reload)
{
	struct endpoint_http_opts o = endpoint_http_defaults;
	char to[256];
	struct peer *p, *q = NULL;

	o.http = http_server_defaults;
	o.sessions_max = 1;
	endpoint_http_set_opts(e, &o);
	SERVE(rows);
	p = open_stream("/sse", to);
	q = dial(0);
	say(q, "GET /sse HTTP/1.1\r\nHost: localhost" END);
	expect(q, "HTTP/1.1 503 ");
	expect(q, "}}");
	ck_assert_int_eq(serve(rows + 2, 1), MV_OK);
	expect(p, "0" END);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	post(q, to, "", LIST_ALL);
	expect(q, "HTTP/1.1 404 ");
	hang_up(p);
	hang_up(q);
}
END_TEST

/* What is in flight is answered, then the stream ends. */
START_TEST(a_stop)
{
	char to[256];
	struct peer *p, *q;

	SERVE(rows);
	p = open_stream("/sse", to);
	q = dial(0);
	ck_assert_str_eq(send_to(q, to, "", CALL_B), "202");
	if (_i == 0) {
		endpoint_http_stop(e, true, on_stopped, &stopped);
		expect(p, "\"id\":2,\"error\":");
		expect(p, "0" END);
	} /* else all of it is there at the end of the endpoint */
	hang_up(p);
	hang_up(q);
}
END_TEST

static const struct endpoint_listen twice[][2] = {
    {{.address = ":0", .path = "/a", .sse_path = "/a", .profile = ""}},
    {{.address = "127.0.0.1:39871", .path = "/a", .sse_path = "/b", .profile = ""},
	{.address = "127.0.0.1:39871", .path = "/b", .profile = ""}},
    {{.address = "127.0.0.1:39871", .path = "/a", .sse_path = "/c", .profile = ""},
	{.address = "127.0.0.1:39871", .path = "/b", .sse_path = "/c", .profile = ""}},
};

START_TEST(a_path_is_there_once)
{
	ck_assert_int_eq(serve(twice[_i], _i == 0 ? 1 : 2), MV_CONF);
	ck_assert_ptr_nonnull(strstr(et.message, "is there twice"));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_sse");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, a_session, 0, 2);
	tcase_add_test(tc, its_name_is_its_own);
	tcase_add_loop_test(
	    tc, what_is_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_test(tc, bad_messages);
	tcase_add_test(tc, limits_and_reload);
	tcase_add_loop_test(tc, a_stop, 0, 2);
	tcase_add_loop_test(
	    tc, a_path_is_there_once, 0, (int)(sizeof(twice) / sizeof(twice[0])));
	return run_suite(suite, tc);
}
