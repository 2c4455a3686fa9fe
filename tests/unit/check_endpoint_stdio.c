/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* The stdio endpoint: lines in and out, and how it comes to its end. */
#include "mcpvisor/endpoint_stdio.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"alpha__a\"}}\n"
#define CALLED "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":1.0}}\n"
#define STOPPED(id)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32603,\"message\":"     \
	"\"mcpvisor is stopping; the call may have had effects, so check before a "      \
	"retry\",\"data\":{\"reason\":\"stopping\","                                     \
	"\"retryable\":true}}}\n"

static struct fleet *f;
static struct endpoint_stdio *e;
static int to, from; /* the client's ends */
static unsigned gone;

static void
on_gone(void *arg)
{
	(void)arg;
	gone++;
	/* It may end itself here. */
	endpoint_stdio_free(e);
	e = NULL;
}

static void
setup(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct endpoint_stdio_opts o = endpoint_stdio_defaults;
	int in[2], out[2];

	ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	to = in[1];
	from = out[0];
	ck_assert_int_eq(fcntl(from, F_SETFL, O_NONBLOCK), 0);
	o.rfd = in[0];
	o.wfd = out[1];
	gone = 0;
	f = fleet_full();
	e = endpoint_stdio_new(f->loop, f->g, &o, on_gone, NULL);
}

static void
teardown(void)
{
	if (e != NULL)
		endpoint_stdio_free(e);
	fleet_free(f);
	if (to >= 0)
		(void)close(to);
	if (from >= 0)
		(void)close(from);
}

static void
say(const char *text)
{
	ck_assert_int_eq(write(to, text, strlen(text)), (ssize_t)strlen(text));
	fake_loop_settle(f->loop);
}

static void
end_input(void)
{
	(void)close(to);
	to = -1;
	fake_loop_settle(f->loop);
}

/* What has come since, exactly; at the end of output that as well. */
static void
expect(const char *want, bool is_end)
{
	static char got[65536];
	size_t n = 0;
	ssize_t k;

	fake_loop_settle(f->loop);
	while ((k = read(from, got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)k;
	got[n] = '\0';
	ck_assert_str_eq(got, want);
	if (is_end)
		ck_assert_int_eq(k, 0);
	else
		ck_assert(k < 0 && errno == EAGAIN);
}

static void
assert_ladder(uint32_t term_ms)
{
	for (size_t i = 0; i < f->n; i++) {
		struct child_ladder l = fake_upstream_ladder(f->u[i]);

		ck_assert_uint_eq(fake_upstream_stops(f->u[i]), 1);
		ck_assert_uint_eq(l.term_ms, term_ms);
		ck_assert_uint_eq(l.kill_ms, 500);
	}
}

START_TEST(a_line_for_a_line)
{
	say(PING);
	expect(PONG, false);
	/* However they are cut. */
	say("{\"jsonrpc\":\"2.0\",\"id\":1,");
	expect("", false);
	say("\"method\":\"ping\"}\r\n\n" PING);
	expect(PONG PONG, false);
	say("nonsense\n");
	expect("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"not valid "
	       "JSON; "
	       "a retry will not "
	       "help\",\"data\":{\"reason\":\"syntax\",\"retryable\":false}}"
	       "}\n",
	    false);
	/* A reply that is none of ours to ask for gets no answer, broken or not. */
	say("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}\n");
	say("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
	expect("", false);
	say(CALL);
	expect("", false);
	fake_upstream_result(f->u[0], 0, "{\"n\":1.0}");
	expect(CALLED, false);
	ck_assert_uint_eq(gone, 0);
}
END_TEST

START_TEST(ends_at_once_when_nothing_is_open)
{
	say(PING);
	end_input();
	ck_assert_uint_eq(gone, 1);
	assert_ladder(1200);
	expect(PONG, true);
}
END_TEST

START_TEST(last_line_without_a_newline)
{
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	end_input();
	ck_assert_uint_eq(gone, 1);
	expect(PONG, true);
}
END_TEST

START_TEST(calls_may_finish)
{
	say(CALL);
	end_input();
	fake_loop_advance(f->loop, 600);
	ck_assert_uint_eq(fake_upstream_stops(f->u[0]), 0);
	fake_upstream_result(f->u[0], 0, "{\"n\":1.0}");
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(gone, 1);
	assert_ladder(600); /* counted from the end of input */
	expect(CALLED, true);
}
END_TEST

START_TEST(but_not_for_ever)
{
	say(CALL);
	end_input();
	fake_loop_advance(f->loop, 999);
	expect("", false);
	fake_loop_advance(f->loop, 1);
	ck_assert_uint_eq(gone, 1);
	assert_ladder(200);
	expect(STOPPED("2"), true);
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
}
END_TEST

START_TEST(waits_for_upstreams_to_stop)
{
	fake_upstream_stop_slowly(f->u[1], true);
	end_input();
	expect("", true);
	ck_assert_uint_eq(gone, 0);
	fake_loop_advance(f->loop, 1500);
	fake_upstream_stopped(f->u[1]);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(gone, 1);
}
END_TEST

START_TEST(but_not_for_ever_either)
{
	fake_upstream_stop_slowly(f->u[1], true);
	end_input();
	fake_loop_advance(f->loop, 1700 + 999);
	ck_assert_uint_eq(gone, 0);
	fake_loop_advance(f->loop, 1);
	ck_assert_uint_eq(gone, 1);
}
END_TEST

START_TEST(stopped_from_outside)
{
	say(CALL);
	endpoint_stdio_stop(e);
	/* Nothing more is read, what is open may finish. */
	say(PING);
	fake_loop_advance(f->loop, 500);
	expect("", false);
	ck_assert_uint_eq(gone, 0);
	endpoint_stdio_stop(e);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(gone, 1);
	assert_ladder(700);
	expect(STOPPED("2"), true);
}
END_TEST

START_TEST(client_that_reads_no_more)
{
	say(CALL);
	(void)close(from);
	from = -1;
	say(PING);
	ck_assert_uint_eq(gone, 1);
	assert_ladder(1200);
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
}
END_TEST

START_TEST(freed_in_the_middle)
{
	say(CALL);
	endpoint_stdio_free(e);
	e = NULL;
	ck_assert(fake_upstream_sent(f->u[0], 0)->cancelled);
	fake_loop_advance(f->loop, 10000);
	ck_assert_uint_eq(gone, 0);
	endpoint_stdio_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("endpoint_stdio");
	TCase *tc = tcase_create("endpoint_stdio");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_line_for_a_line);
	tcase_add_test(tc, ends_at_once_when_nothing_is_open);
	tcase_add_test(tc, last_line_without_a_newline);
	tcase_add_test(tc, calls_may_finish);
	tcase_add_test(tc, but_not_for_ever);
	tcase_add_test(tc, waits_for_upstreams_to_stop);
	tcase_add_test(tc, but_not_for_ever_either);
	tcase_add_test(tc, stopped_from_outside);
	tcase_add_test(tc, client_that_reads_no_more);
	tcase_add_test(tc, freed_in_the_middle);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
