/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * One message over HTTP: what is sent, and what its answer becomes.
 */
#include "mcpvisor/http_link.h"

#include "http_link_rig.h"

#include "mcpvisor/caps.h"

/* 200 characters */
#define LONG                                                                             \
	"0123456789012345678901234567890123456789012345678901234567890123456789"         \
	"0123456789012345678901234567890123456789012345678901234567890123456789"         \
	"012345678901234567890123456789012345678901234567890123456789"
#define LONG5 LONG LONG LONG LONG LONG
#define HUGE  LONG5 LONG5 LONG5

/* What becomes of the answer to a request with id 5; of the text of its failure, a part.
 */
struct answer_case {
	struct step step;
	const char *want;
	const char *text;
};

#define GOT(status_, type_, body_)                                                       \
	{                                                                                \
		.want = "POST /mcp ", .status = (status_), .type = (type_),              \
		.body = (body_)                                                          \
	}
#define GOT_AS(how_, status_, type_, body_)                                              \
	{                                                                                \
		.want = "POST /mcp ", .how = (how_), .status = (status_),                \
		.type = (type_), .body = (body_)                                         \
	}
#define GOT_WITH(status_, type_, body_, extra_)                                          \
	{                                                                                \
		.want = "POST /mcp ", .status = (status_), .type = (type_),              \
		.body = (body_), .extra = (extra_)                                       \
	}

static const struct answer_case answer_cases[] = {
    /* JSON */
    {GOT(200, JSON, RESULT("5")), "5:r5 ", NULL},
    {GOT(200, JSON "; charset=utf-8", ERROR("5")), "5:e5 ", NULL},
    {GOT(200, "Application/JSON", RESULT("5")), "5:r5 ", NULL},
    {GOT_AS(CLOSE, 200, JSON, RESULT("5")), "5:r5 ", NULL},
    {GOT(201, JSON, RESULT("5")), "5:r5 ", NULL},
    {GOT(200, JSON, "\xef\xbb\xbf " RESULT("5") "\r\n"), "5:r5 ", NULL},
    {GOT(200, JSON, "{\r\n\t\"jsonrpc\":\n\"2.0\",\r\"id\" : 5,\n \"result\": {\n}\n}\n"),
	"5:r5 ", NULL},
    {GOT(200, JSON, "[" NOTE ",\n" RESULT("5") "]"), "5:b ", NULL},
    /* no response in it */
    {GOT(200, JSON, "[" NOTE "," RESULT("6") "]"), "5:b 5:failed(protocol,200) ",
	"without the response"},
    {GOT(200, JSON, NOTE), "5:n 5:failed(protocol,200) ", "without the response"},
    {GOT(200, JSON, RESULT("6")), "5:r6 5:failed(protocol,200) ", NULL},
    {GOT(200, JSON, "{}"), "5:i 5:failed(protocol,200) ", NULL},
    {GOT(200, JSON, ""), "5:failed(protocol,200) ", NULL},
    {GOT(200, JSON, " \r\n"), "5:failed(protocol,200) ", NULL},
    {GOT(202, NULL, NULL), "5:failed(protocol,202) ", "status 202"},
    {GOT(204, NULL, NULL), "5:failed(protocol,204) ", NULL},
    {GOT(200, NULL, RESULT("5")), "5:failed(protocol,200) ", NULL},
    {GOT(200, "text/html", "<html>"), "5:failed(protocol,200) ", "type \"text/html\""},
    /* no message */
    {GOT(200, JSON, RESULT("5") "\n" RESULT("5")), "5:syntax/reply=5 ", NULL},
    {GOT(200, JSON, "oops"), "5:syntax 5:failed(protocol,200) ", "not valid JSON"},
    {GOT(200, JSON, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"a\nb\"}"),
	"5:syntax/reply=5 ", NULL},
    {GOT(200, JSON, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"\xff\"}"),
	"5:utf8/reply=5 ", NULL},
    {GOT(200, JSON, "{\"jsonrpc\":\"2.0\",\"result\":\"" HUGE "\",\"id\":5}"),
	"5:too_long/reply=5 ", NULL},
    {GOT(200, JSON, "{\"result\":\"" HUGE "\",\"id\":6}"),
	"5:too_long/reply=6 5:failed(too_long,200) ", NULL},
    {GOT(200, JSON, "\"" HUGE "\""), "5:too_long 5:failed(too_long,200) ", NULL},
    /* streams */
    {GOT(200, EVENTS, EV(NOTE) EV(RESULT("5"))), "5:n 5:r5 ", NULL},
    {GOT_AS(CLOSE, 200, EVENTS "; charset=utf-8", EV(RESULT("5"))), "5:r5 ", NULL},
    {GOT_AS(STAY, 200, EVENTS, EV(NOTE) EV(ASK) EV(NOTE) EV(RESULT("5"))),
	"5:n 5:q70 5:n 5:r5 ", NULL},
    {GOT_AS(STAY, 200, EVENTS,
	 ":hi\n\nretry: 5\nid: 1\ndata:\n\nevent: message\nid: 2\n" EV(RESULT("5"))),
	"5:r5 ", NULL},
    {GOT_AS(STAY, 200, EVENTS,
	 "event: ping\n" EV(NOTE) "event: error\n" EV("oops") EV(RESULT("5"))),
	"5:r5 ", NULL},
    {GOT_AS(STAY, 200, EVENTS,
	 "data: {\"jsonrpc\":\ndata: \"2.0\",\rdata:\"id\":5,\r\ndata: "
	 "\"result\":{}}\n\n"),
	"5:r5 ", NULL},
    {GOT_AS(STAY, 200, EVENTS, EV("oops") EV("[" RESULT("5") "]")), "5:syntax 5:b ",
	NULL},
    {GOT_AS(STAY, 200, EVENTS,
	 EV("{\"jsonrpc\":\"2.0\",\"method\":\"" HUGE "\"}") EV(RESULT("5"))),
	"5:too_long 5:r5 ", NULL},
    {GOT_AS(CLOSE, 200, EVENTS,
	 EV("{\"jsonrpc\":\"2.0\",\"result\":\"" HUGE "\",\"id\":5}")),
	"5:too_long/reply=5 ", NULL},
    {GOT(200, EVENTS, EV(NOTE)), "5:n 5:failed(closed,200) ", "before the response"},
    {GOT(200, EVENTS, "id: 1\n" EV(NOTE)), "5:n 5:failed(closed,200) ", NULL},
    {GOT_AS(CUT, 200, EVENTS, EV(NOTE) "data: " NOTE), "5:n 5:failed(closed,200) ", NULL},
    /* other statuses */
    {GOT(400, JSON, ERROR("5")), "5:e5 ", NULL},
    {GOT(404, JSON, ERROR("5")), "5:e5 ", NULL},
    {GOT(400, JSON, ERROR("null")), "5:e 5:failed(http_status,400) ", "status 400: \"{"},
    {GOT(400, JSON, "{\"error\":\"x\"}"), "5:failed(http_status,400) ", "x"},
    {GOT(400, JSON, "oops"), "5:failed(http_status,400) ", "status 400: \"oops\""},
    {GOT(400, JSON, "\"" HUGE "\""), "5:failed(http_status,400) ", "status 400"},
    {GOT(405, NULL, NULL), "5:failed(http_status,405) ", "status 405"},
    {GOT(500, "text/plain", "a\tb " HUGE), "5:failed(http_status,500) ",
	"status 500: \"a\\x09b 0"},
    {GOT(500, "text/html", "<b>"), "5:failed(http_status,500) ", "status 500"},
    {GOT(500, EVENTS, EV(RESULT("5"))), "5:failed(http_status,500) ", NULL},
    {GOT_WITH(503, NULL, NULL, "Retry-After: 7\r\n"),
	"5:failed(http_status,503,after=7) ", NULL},
    {GOT_WITH(401, JSON, ERROR("5"), "WWW-Authenticate: Bearer\r\n"),
	"5:failed(auth,401,Bearer) ", "status 401"},
    {GOT(403, "text/plain", "no"), "5:failed(auth,403) ", "status 403: \"no\""},
    /* redirections that are not followed */
    {GOT_WITH(307, NULL, NULL, "Location: http://example.com/secret?a=b\r\n"),
	"5:failed(http_status,307) ", "another origin, \"example.com\""},
    {GOT_WITH(308, NULL, NULL, "Location: file:///etc/passwd\r\n"),
	"5:failed(http_status,308) ", "redirects to"},
    {GOT_WITH(302, NULL, NULL, "Location: /there\r\n"), "5:failed(http_status,302) ",
	"not a redirection that repeats a POST"},
    {GOT(307, NULL, NULL), "5:failed(http_status,307) ", "no place"},
    {GOT(304, NULL, NULL), "5:failed(http_status,304) ", NULL},
    /* connections that break */
    {GOT_AS(BREAK, 0, NULL, NULL), "5:failed(closed,0) ", NULL},
    {GOT_AS(CUT, 200, JSON, "{\"jsonrpc\":"), "5:failed(closed,200) ", NULL},
};
#define N_ANSWERS ((int)(sizeof(answer_cases) / sizeof(*answer_cases)))

static void
check_answer(const struct answer_case *c)
{
	steps = &c->step;
	n_steps = 1;
	ask(5);
	ck_assert_uint_gt(http_link_out_pending(k), 0);
	await(c->want);
	if (c->text)
		ck_assert_msg(strstr(buf_cstr(&fail_text), c->text) != NULL, "%s",
		    buf_cstr(&fail_text));
	ck_assert_uint_eq(http_link_out_pending(k), 0);
	ck_assert(!http_link_cancel(k, 5));
	ck_assert_int_eq(at_step, n_steps);
}

START_TEST(test_answer)
{
	check_answer(&answer_cases[_i]);
}
END_TEST

START_TEST(test_answer_in_bytes)
{
	piece = 1;
	check_answer(&answer_cases[_i]);
}
END_TEST

/* The link ends in the first callback. */
START_TEST(test_answer_ends_link)
{
	const struct answer_case *c = &answer_cases[_i];
	char want[64];

	(void)snprintf(want, sizeof(want), "%.*s ", (int)strcspn(c->want, " "), c->want);
	steps = &c->step;
	n_steps = free_at = 1;
	ask(5);
	await(want);
	await_nothing();
}
END_TEST

/* The same to a notification. */
struct note_case {
	struct step step;
	const char *want;
};

static const struct note_case note_cases[] = {
    {GOT(202, NULL, NULL), "taken "},
    {GOT(204, NULL, NULL), "taken "},
    {GOT(200, NULL, NULL), "taken "},
    {GOT(202, "text/plain", "Accepted"), "taken "},
    {GOT(200, JSON, ""), "taken "},
    {GOT(200, JSON, "{}"), "taken "},
    {GOT(200, JSON, "oops"), "taken "},
    {GOT_AS(CUT, 200, JSON, "{"), "taken "},
    {GOT(200, JSON, "\"" HUGE "\""), "taken "},
    {GOT(200, JSON, NOTE), "taken 0:n "},
    {GOT_AS(STAY, 200, EVENTS, EV(NOTE) EV(ASK)), "taken 0:n 0:q70 "},
    {GOT(400, NULL, NULL), "note-failed(http_status,400) "},
    {GOT(400, JSON, ERROR("null")), "0:e note-failed(http_status,400) "},
    {GOT(401, NULL, NULL), "note-failed(auth,401) "},
    {GOT_AS(BREAK, 0, NULL, NULL), "note-failed(closed,0) "},
};
#define N_NOTES ((int)(sizeof(note_cases) / sizeof(*note_cases)))

START_TEST(test_note)
{
	steps = &note_cases[_i].step;
	n_steps = 1;
	note();
	await_step(1);
	await(note_cases[_i].want);
	await_nothing();
	ck_assert_uint_eq(http_link_out_pending(k), 0);
}
END_TEST

START_TEST(test_request_head)
{
	static const char lines[] = "Mcp-Method: tools/call\0Mcp-Name: x\0";

	SCRIPT({.want = "POST /mcp HTTP/1.1\r\n|\r\nContent-Type: application/json\r\n|"
			"\r\nAccept: application/json, text/event-stream\r\n|"
			"\r\nX-Own: 1\r\n|\r\nAuthorization: Bearer secret\r\n|"
			"!mcp-session|!mcp-protocol|!mcp-method|!last-event|\r\n\r\n{",
		   .status = 200,
		   .type = JSON,
		   .body = RESULT("1")},
	    {.want = "\r\nMCP-Protocol-Version: 2025-06-18\r\n|"
		     "\r\nMcp-Method: tools/call\r\n|\r\nMcp-Name: x\r\n|X-Own",
		.status = 200,
		.type = JSON,
		.body = RESULT("2")},
	    {.want = "!mcp-protocol|!mcp-method|X-Own", .status = 202});
	ask(1);
	await("1:r1 ");
	http_link_set_revision(k, "2025-06-18", true);
	ck_assert_int_eq(send_message(2, false, lines, "{}"), MV_OK);
	await("2:r2 ");
	http_link_set_revision(k, NULL, false);
	note();
	await("taken ");
	await_nothing();
}
END_TEST

START_TEST(test_no_headers)
{
	has_headers = false;
	ck_assert_int_eq(send_message(1, false, NULL, "{}"), MV_AUTH);
	ck_assert_uint_eq(http_link_out_pending(k), 0);
	ck_assert(!http_link_cancel(k, 1));
	await_nothing();
}
END_TEST

START_TEST(test_unreachable)
{
	opts.url = "http://127.0.0.1:1/mcp";
	open_link();
	ask(3);
	await("3:failed(unreachable,0) ");
	note();
	await("note-failed(unreachable,0) ");
}
END_TEST

START_TEST(test_busy)
{
	char *big = mem_xcalloc(1, OUT_MAX + 2);

	SCRIPT({.want = "POST", .how = NEVER});
	memset(big, ' ', OUT_MAX + 1);
	ck_assert_int_eq(send_message(1, false, NULL, big), MV_BUSY);
	big[OUT_MAX - 10] = '\0';
	ck_assert_int_eq(send_message(1, false, NULL, big), MV_OK);
	ck_assert_uint_eq(http_link_out_pending(k), OUT_MAX - 10);
	ck_assert_int_eq(send_message(2, false, NULL, "12345678901"), MV_BUSY);
	ck_assert(http_link_cancel(k, 1));
	ck_assert_uint_eq(http_link_out_pending(k), 0);
	n_steps = 0;
	await_nothing();
	mem_free(big);
}
END_TEST

/* Answers of any order, each to its own. */
START_TEST(test_several)
{
	struct conn *first;

	SCRIPT({.want = "\"id\":1",
		   .how = STAY,
		   .status = 200,
		   .type = EVENTS,
		   .body = EV(NOTE)},
	    {.want = "\"id\":2", .status = 200, .type = JSON, .body = RESULT("2")});
	ask(1);
	await("1:n ");
	first = last;
	ask(2);
	await("2:r2 ");
	say_chunk(first, EV(NOTE));
	await("1:n ");
	say_chunk(first, EV(RESULT("1")) EV(NOTE));
	await("1:r1 1:n ");
	ck_assert(!http_link_cancel(k, 1));
}
END_TEST

/* What goes on after the response is let out, and its connection used again. */
START_TEST(test_connection_is_kept)
{
	SCRIPT({.want = "\"id\":1",
		   .how = STAY,
		   .status = 200,
		   .type = EVENTS,
		   .body = EV(RESULT("1"))},
	    {.want = "\"id\":2", .status = 200, .type = JSON, .body = RESULT("2")});
	ask(1);
	await("1:r1 ");
	buf_add_str(&last->out, "0\r\n\r\n");
	conn_write(last);
	for (int i = 0; i < 20; i++) {
		timer_set(&tick, 1);
		loop_run(l);
	}
	ask(2);
	await("2:r2 ");
	ck_assert_int_eq(n_conns, 1);
}
END_TEST

/* A stream that stays open after its response is closed by us in the end. */
START_TEST(test_drain_ends)
{
	SCRIPT({.want = "\"id\":1",
	    .how = STAY,
	    .status = 200,
	    .type = EVENTS,
	    .body = EV(RESULT("1"))});
	ask(1);
	await("1:r1 ");
	await_closed(1);
}
END_TEST

/* So is the answer to a notification that does not end. */
START_TEST(test_note_ends)
{
	SCRIPT({.want = "\"n\"", .how = STAY, .status = 202});
	note();
	await("taken ");
	await_closed(1);
	await_nothing();
}
END_TEST

/* A server that asks faster than it takes answers must not make us keep them all. */
START_TEST(test_notes_are_bounded)
{
	opts.out_max = 1u << 20;
	open_link();
	for (unsigned i = 0; i < CAP_HTTP_NOTES; i++)
		note();
	ck_assert_int_eq(send_message(0, false, NULL, NOTE), MV_BUSY);
	/* Requests have a bound of their own. */
	ask(1);
}
END_TEST

START_TEST(test_cancel)
{
	static const enum how ways[] = {NEVER, STAY};
	static struct step s = {
	    .want = "\"id\":1", .status = 200, .type = EVENTS, .body = EV(NOTE)};

	s.how = ways[_i];
	steps = &s;
	n_steps = 1;
	ask(1);
	await_step(1);
	await(_i ? "1:n " : "");
	ck_assert(http_link_cancel(k, 1));
	ck_assert(!http_link_cancel(k, 1));
	ck_assert(!http_link_cancel(k, 2));
	await_closed(1);
	await_nothing();
}
END_TEST

/* Redirections that are followed. */
START_TEST(test_redirect)
{
	SCRIPT({.want = "POST /mcp ", .status = 307, .extra = "Location: /there?x=1\r\n"},
	    {.want = "POST /there?x=1 |\"id\":1|X-Own",
		.status = 308,
		.extra = "Location: ../mcp/\r\n",
		.type = "text/html",
		.body = "<html>"},
	    {.want = "POST /mcp/ |\"id\":1",
		.status = 200,
		.type = JSON,
		.body = RESULT("1")},
	    {.want = "POST /mcp ", .status = 202});
	ask(1);
	await("1:r1 ");
	note();
	await("taken ");
	await_nothing();
}
END_TEST

START_TEST(test_redirect_loop)
{
#define AGAIN {.want = "POST /mcp ", .status = 307, .extra = "Location: /mcp\r\n"}
	SCRIPT(AGAIN, AGAIN, AGAIN, AGAIN, AGAIN, AGAIN);
	ask(1);
	await("1:failed(http_status,307) ");
	ck_assert_ptr_nonnull(strstr(buf_cstr(&fail_text), "too often"));
	await_nothing();
}
END_TEST

/* The credentials are asked for anew, and are gone. */
START_TEST(test_redirect_without_headers)
{
	SCRIPT(AGAIN);
	ask(1);
	has_headers = false;
	await("1:failed(auth,0) ");
}
END_TEST

START_TEST(test_set_opts)
{
	SCRIPT({.want = "POST /else ", .status = 202});
	buf_reset(&url);
	buf_addf(&url, "http://127.0.0.1:%d/else", port);
	opts.url = buf_cstr(&url);
	http_link_set_opts(k, &opts);
	note();
	await("taken ");
	await_nothing();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_link");
	TCase *tc = tcase_create("http_link");

	tcase_add_loop_test(tc, test_answer, 0, N_ANSWERS);
	tcase_add_loop_test(tc, test_answer_in_bytes, 0, N_ANSWERS);
	tcase_add_loop_test(tc, test_answer_ends_link, 0, N_ANSWERS);
	tcase_add_loop_test(tc, test_note, 0, N_NOTES);
	tcase_add_test(tc, test_request_head);
	tcase_add_test(tc, test_no_headers);
	tcase_add_test(tc, test_unreachable);
	tcase_add_test(tc, test_busy);
	tcase_add_test(tc, test_several);
	tcase_add_test(tc, test_connection_is_kept);
	tcase_add_test(tc, test_drain_ends);
	tcase_add_test(tc, test_note_ends);
	tcase_add_test(tc, test_notes_are_bounded);
	tcase_add_loop_test(tc, test_cancel, 0, 2);
	tcase_add_test(tc, test_redirect);
	tcase_add_test(tc, test_redirect_loop);
	tcase_add_test(tc, test_redirect_without_headers);
	tcase_add_test(tc, test_set_opts);
	return run_suite(s, tc);
}
