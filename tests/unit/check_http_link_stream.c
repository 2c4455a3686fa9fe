/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * Streams that break and are taken up again, the stream of what belongs to no request,
 * and the transport of 2024-11-05, which is one stream.
 */
#include "mcpvisor/http_link.h"

#include "http_link_rig.h"

/* A stream with an id after which it goes on, and a short pause. */
#define BEGUN                                                                            \
	{                                                                                \
		.want = "POST /mcp ", .status = 200, .type = EVENTS,                     \
		.body = "id: 1\nretry: 30\ndata:\n\n"                                    \
	}
#define RESUMED(id_, body_)                                                              \
	{                                                                                \
		.want = "GET /mcp |\r\nLast-Event-ID: " id_ "\r\n|"                      \
			"\r\nAccept: text/event-stream\r\n|X-Own|!content-type",         \
		.status = 200, .type = EVENTS, .body = body_                             \
	}
#define OPENED(body_)                                                                    \
	{                                                                                \
		.want = "GET /mcp |\r\nAccept: text/event-stream\r\n|!last-event",       \
		.how = STAY, .status = 200, .type = EVENTS, .body = body_                \
	}

static void
resumable(void)
{
	http_link_set_revision(k, "2025-11-25", true);
}

/* ---- answers ---- */

static void
await_streams(unsigned n)
{
	while (n_streams < n) {
		timer_set(&tick, 5);
		loop_run(l);
	}
	ck_assert_uint_eq(n_streams, n);
}

START_TEST(test_resume)
{
	uint64_t at;

	SCRIPT(BEGUN, RESUMED("1", "id: 2\n" EV(NOTE)),
	    /* no event, no other id */
	    RESUMED("2", ":\n\n"), RESUMED("2", EV(NOTE) "id: 3\n" EV(RESULT("5"))));
	resumable();
	ask(5);
	await_step(1);
	at = clock_now_ms();
	await_step(2);
	ck_assert_uint_ge(clock_now_ms() - at, 30 - 2);
	await("5:n ");
	await("5:n 5:r5 ");
	await_nothing();
}
END_TEST

/* It breaks within an event, which is told anew. */
START_TEST(test_resume_after_cut)
{
	SCRIPT({.want = "POST /mcp ",
		   .how = CUT,
		   .status = 200,
		   .type = EVENTS,
		   .body = "retry: 20\nid: a\n" EV(NOTE) "id: b\ndata: {"},
	    RESUMED("a", EV(RESULT("5"))));
	resumable();
	ask(5);
	await("5:n ");
	await("5:r5 ");
}
END_TEST

/* What comes of it if it is not taken up. */
struct gone_case {
	struct step step;
	const char *want;
};

static const struct gone_case gone_cases[] = {
    {{.want = "GET", .status = 405}, "5:failed(closed,405) "},
    {{.want = "GET", .status = 404}, "5:failed(closed,404) "},
    {{.want = "GET", .status = 401}, "5:failed(auth,401) "},
    {{.want = "GET", .status = 200, .type = JSON, .body = RESULT("5")},
	"5:failed(protocol,200) "},
};

START_TEST(test_resume_refused)
{
	struct step both[2] = {BEGUN, gone_cases[_i].step};

	steps = both;
	n_steps = 2;
	resumable();
	ask(5);
	await(gone_cases[_i].want);
	await_nothing();
}
END_TEST

/* Five tries without an event. */
START_TEST(test_resume_tries)
{
	SCRIPT(BEGUN, RESUMED("1", ""), RESUMED("1", ":\n"), RESUMED("1", "\n"),
	    RESUMED("1", ""), RESUMED("1", ""));
	resumable();
	ask(5);
	await("5:failed(closed,200) ");
	ck_assert_int_eq(at_step, n_steps);
	await_nothing();
}
END_TEST

/* A server that is away for a moment. */
START_TEST(test_resume_passing)
{
	SCRIPT(BEGUN, {.want = "GET", .status = 503}, {.want = "GET", .how = BREAK},
	    RESUMED("1", EV(RESULT("5"))));
	resumable();
	ask(5);
	await("5:r5 ");
}
END_TEST

START_TEST(test_not_resumable)
{
	SCRIPT(BEGUN);
	ask(5);
	await("5:failed(closed,200) ");
	await_nothing();
}
END_TEST

START_TEST(test_cancel_while_waiting)
{
	SCRIPT(BEGUN);
	resumable();
	ask(5);
	await_step(1);
	timer_set(&tick, 15);
	loop_run(l);
	ck_assert(http_link_cancel(k, 5));
	await_nothing();
}
END_TEST

/* The session ends while the answer is to be taken up: it cannot be had any more. */
START_TEST(test_resume_without_session)
{
	SCRIPT(HELLO, BEGUN, {.want = "GET|s1\r\n", .status = 404});
	hello();
	resumable();
	ask(5);
	await("lost 5:failed(closed,404) ");
	await_nothing();
}
END_TEST

/* ---- the stream of what belongs to no request ---- */

START_TEST(test_stream)
{
	SCRIPT(HELLO, OPENED("retry: 20\nid: x\n" EV(NOTE)),
	    {.want = "\"id\":2", .status = 200, .type = JSON, .body = RESULT("2")},
	    {.want = "GET /mcp |s1\r\n|Last-Event-ID: x\r\n",
		.how = STAY,
		.status = 200,
		.type = EVENTS,
		.body = EV(ASK)});
	hello();
	resumable();
	n_streams = 0;
	http_link_open_stream(k);
	http_link_open_stream(k);
	ck_assert_uint_eq(n_streams, 0);
	await("0:n ");
	await_streams(1);
	ask(2);
	await("2:r2 ");
	say_chunk(&conns[0], EV(NOTE));
	await("0:n ");
	conn_close(&conns[0]);
	await("0:q70 ");
	http_link_forget_session(k);
	await_closed(2);
	ck_assert_uint_eq(n_streams, 1);
	await_nothing();
}
END_TEST

/* Where there is none, nobody asks again. */
static const struct step none_steps[] = {
    {.want = "GET", .status = 405},
    {.want = "GET", .status = 404},
    {.want = "GET", .status = 501},
    {.want = "GET", .status = 400},
    {.want = "GET", .status = 200, .type = "text/html", .body = "<html>"},
    {.want = "GET", .status = 401},
};
#define N_NONE ((int)(sizeof(none_steps) / sizeof(*none_steps)))

START_TEST(test_no_stream)
{
	struct step both[2] = {HELLO, none_steps[_i]};

	steps = both;
	n_steps = 2;
	hello();
	n_streams = 0;
	http_link_open_stream(k);
	await_streams(1);
	http_link_open_stream(k);
	await_streams(2);
	await_nothing();
	ck_assert(http_link_has_session(k));
}
END_TEST

/* Reopened by the server's own pause, also if it brings nothing; and by a longer one if
 * it cannot be had. */
START_TEST(test_stream_reopened)
{
	uint64_t at;

	SCRIPT(OPENED("retry: 20\n"), OPENED(""), OPENED(""),
	    {.want = "GET", .how = BREAK}, {.want = "GET", .status = 500},
	    OPENED(EV(NOTE)));
	http_link_open_stream(k);
	for (int i = 1; i <= 2; i++) {
		await_step(i);
		timer_set(&tick, 5);
		loop_run(l);
		conn_close(last);
	}
	await_step(3);
	timer_set(&tick, 5);
	loop_run(l);
	at = clock_now_ms();
	conn_close(last);
	await("0:n ");
	ck_assert_uint_ge(clock_now_ms() - at, 20 + 40);
}
END_TEST

START_TEST(test_stream_after_renewal)
{
	SCRIPT(HELLO, OPENED("id: 7\n" EV(NOTE)), {.want = "\"id\":2", .status = 404},
	    HELLO_AGAIN, OPENED(EV(NOTE)), {.want = "s2\r\n|\"id\":2", .status = 202});
	n_streams = 0;
	hello();
	resumable();
	http_link_open_stream(k);
	await("0:n ");
	ask(2);
	await("lost ");
	hello();
	http_link_renew(k);
	await_step(6);
	while (seen.len < strlen("0:n 2:failed(protocol,202) "))
		loop_run(l);
	buf_reset(&seen);
	await_streams(2); /* in each session */
	await_nothing();
}
END_TEST

/* An open stream that ends, and then has no session: that is a lost one. */
START_TEST(test_stream_loses_session)
{
	SCRIPT(HELLO, OPENED("retry: 20\n" EV(NOTE)), {.want = "GET", .status = 404});
	hello();
	http_link_open_stream(k);
	await("0:n ");
	conn_close(last);
	await("lost ");
	await_nothing();
	SCRIPT(HELLO_AGAIN, OPENED(EV(NOTE)));
	hello();
	http_link_renew(k);
	await("0:n ");
}
END_TEST

/* ---- 2024-11-05 ---- */

#define ENDPOINT(text) "event: endpoint\ndata: " text "\n\n"

START_TEST(test_endpoint)
{
	SCRIPT(OPENED(ENDPOINT("/messages?session=1")),
	    {.want = "POST /messages?session=1 |\"id\":1|X-Own",
		.status = 202,
		.type = "text/plain",
		.body = "Accepted"},
	    {.want = "POST /messages?session=1 ", .status = 202},
	    {.want = "POST /messages?session=1 ",
		.status = 200,
		.type = JSON,
		.body = RESULT("2")},
	    {.want = "POST /messages?session=1 ",
		.status = 400,
		.type = JSON,
		.body = ERROR("null")});
	ck_assert_int_eq(send_message(1, false, NULL, "{}"), MV_OK);
	ck_assert(http_link_cancel(k, 1));
	http_link_set_mode(k, HTTP_MODE_SSE);
	ck_assert_int_eq(send_message(1, false, NULL, "{}"), MV_CLOSED);
	await("endpoint ");
	ask(1);
	await_step(2);
	ck_assert(!http_link_cancel(k, 1));
	say_chunk(&conns[0], "event: message\n" EV(RESULT("1")) EV(ASK));
	await("0:r1 0:q70 ");
	note();
	await("taken ");
	/* Answers come on the stream, and nowhere else. */
	ask(2);
	await_step(4);
	ask(3);
	await("3:e 3:failed(http_status,400) ");
	await_nothing();
	ck_assert_uint_eq(http_link_out_pending(k), 0);
}
END_TEST

/* How it can fail, and be opened again. */
struct endpoint_case {
	struct step step;
	const char *want;
	const char *text;
};

static const struct endpoint_case endpoint_cases[] = {
    {{.want = "GET", .status = 404}, "endpoint(http_status,404) ", NULL},
    {{.want = "GET", .status = 401, .extra = "WWW-Authenticate: Bearer\r\n"},
	"endpoint(auth,401,Bearer) ", NULL},
    {{.want = "GET", .status = 200, .type = JSON, .body = "{}"},
	"endpoint(protocol,200) ", NULL},
    {{.want = "GET", .status = 200, .type = EVENTS, .body = EV(NOTE)},
	"0:n endpoint(closed,200) ", NULL},
    {{.want = "GET",
	 .status = 200,
	 .type = EVENTS,
	 .body = ENDPOINT("http://127.0.0.1:1/x")},
	"endpoint(protocol,200) ", "another origin"},
    {{.want = "GET", .status = 200, .type = EVENTS, .body = ENDPOINT("file:///x")},
	"endpoint(protocol,200) ", "no URL"},
    {{.want = "GET", .status = 200, .type = EVENTS, .body = ENDPOINT("")},
	"endpoint(protocol,200) ", NULL},
    {{.want = "GET", .status = 200, .type = EVENTS, .body = ENDPOINT("x")},
	"endpoint endpoint(closed,200) ", NULL},
    {{.want = "GET", .how = CUT, .status = 200, .type = EVENTS, .body = ENDPOINT("x")},
	"endpoint endpoint(closed,200) ", NULL},
    {{.want = "GET", .how = BREAK}, "endpoint(closed,0) ", NULL},
};
#define N_ENDPOINTS ((int)(sizeof(endpoint_cases) / sizeof(*endpoint_cases)))

START_TEST(test_endpoint_fails)
{
	const struct endpoint_case *c = &endpoint_cases[_i];
	struct step both[3] = {
	    c->step, OPENED(ENDPOINT("sub")), {.want = "POST /sub ", .status = 202}};

	steps = both;
	n_steps = 3;
	http_link_set_mode(k, HTTP_MODE_SSE);
	await(c->want);
	if (c->text)
		ck_assert_ptr_nonnull(strstr(buf_cstr(&fail_text), c->text));
	ck_assert_int_eq(send_message(1, false, NULL, "{}"), MV_CLOSED);
	http_link_set_mode(k, HTTP_MODE_SSE);
	await("endpoint ");
	note();
	await("taken ");
}
END_TEST

/* Bytes, a redirection before, and an end of the link in the callback. */
START_TEST(test_endpoint_redirected)
{
	SCRIPT({.want = "GET /mcp ", .status = 302, .extra = "Location: /a/sse\r\n"},
	    {.want = "GET /a/sse ",
		.how = STAY,
		.status = 200,
		.type = EVENTS,
		.body = ENDPOINT("post") ENDPOINT("other")},
	    {.want = "POST /a/post ", .status = 202});
	piece = 1;
	http_link_set_mode(k, HTTP_MODE_SSE);
	await("endpoint ");
	free_at = 2;
	note();
	await("taken ");
	await_nothing();
}
END_TEST

START_TEST(test_endpoint_left)
{
	SCRIPT(OPENED(ENDPOINT("/m")), {.want = "POST /mcp ", .status = 202});
	http_link_set_mode(k, HTTP_MODE_SSE);
	await("endpoint ");
	http_link_set_mode(k, HTTP_MODE_STREAMABLE);
	await_closed(1);
	note();
	await("taken ");
	await_nothing();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_link_stream");
	TCase *tc = tcase_create("http_link_stream");

	tcase_add_test(tc, test_resume);
	tcase_add_test(tc, test_resume_after_cut);
	tcase_add_loop_test(
	    tc, test_resume_refused, 0, (int)(sizeof(gone_cases) / sizeof(*gone_cases)));
	tcase_add_test(tc, test_resume_tries);
	tcase_add_test(tc, test_resume_passing);
	tcase_add_test(tc, test_not_resumable);
	tcase_add_test(tc, test_cancel_while_waiting);
	tcase_add_test(tc, test_resume_without_session);
	tcase_add_test(tc, test_stream);
	tcase_add_loop_test(tc, test_no_stream, 0, N_NONE);
	tcase_add_test(tc, test_stream_reopened);
	tcase_add_test(tc, test_stream_after_renewal);
	tcase_add_test(tc, test_stream_loses_session);
	tcase_add_test(tc, test_endpoint);
	tcase_add_loop_test(tc, test_endpoint_fails, 0, N_ENDPOINTS);
	tcase_add_test(tc, test_endpoint_redirected);
	tcase_add_test(tc, test_endpoint_left);
	return run_suite(s, tc);
}
