/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* On which stream a legacy client is asked. */
#include "asks_rig.h"

/* ---- of a call ---- */

START_TEST(its_call_is_cancelled)
{
	peer_ask(p, "5", "tools/call", A);
	question("7");
	peer_expect(p, ASKED("1"));
	peer_say(p, CANCEL("5"));
	peer_expect(p, TAKEN_BACK("1"));
	ck_assert_str_eq(fake_upstream_answer(u),
	    "7 refused -32603 The client has cancelled the "
	    "request; a retry will not help");
	ck_assert(fake_upstream_last(u)->cancelled);
}
END_TEST

/* What an upstream still wants to know is its own business. */
START_TEST(its_call_ends)
{
	peer_ask(p, "5", "tools/call", A);
	question("7");
	peer_expect(p, ASKED("1"));
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "5", "{}");
	ck_assert_uint_eq(fake_upstream_n_questions(u), 1);
	peer_say(p, RESULT("1"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
}
END_TEST

START_TEST(time_of_its_call_rests)
{
	peer_ask(p, "5", "tools/call", A);
	question("7");
	ck_assert_uint_eq(fake_upstream_last(u)->r->n_questions, 1);
	(void)peer_read(p);
	peer_say(p, RESULT("1"));
	ck_assert_uint_eq(fake_upstream_last(u)->r->n_questions, 0);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "5", "{}");
}
END_TEST

/* ---- over streams ---- */

struct port {
	struct client_port port;
	enum mv_err refuses;
	char text[1024]; /* the last notice */
	unsigned notices, answers;
};

static enum mv_err
port_notify(void *arg, const struct iovec *iov, int n)
{
	struct port *k = arg;
	size_t len = 0;

	if (k->refuses != MV_OK)
		return k->refuses;
	for (int i = 0; i < n; i++) {
		ck_assert_uint_lt(len + iov[i].iov_len, sizeof(k->text));
		memcpy(k->text + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	k->text[len] = '\0';
	k->notices++;
	return MV_OK;
}

static void
port_answer(void *arg, int status, const struct iovec *iov, int n)
{
	struct port *k = arg;

	(void)status;
	(void)iov;
	(void)n;
	k->answers++;
	k->refuses = MV_CLOSED;
}

static void
port_open(void *arg, struct request *r)
{
	(void)arg;
	(void)r;
}

static void
port_closed(void *arg)
{
	(void)arg;
}

static const struct client_port_ops port_ops = {.notify = port_notify,
    .answer = port_answer,
    .open = port_open,
    .closed = port_closed};

static void
port_say(struct port *k, const char *text)
{
	struct json_msg json;
	struct link_msg m = fleet_scan(text, &json);

	k->port.ops = &port_ops;
	k->port.arg = k;
	client_on_message_by(p->c, &m, &k->port);
}

#define CALL(id) REQUEST(id, "tools/call", A)

START_TEST(stream_of_its_call)
{
	struct port a = {.notices = 0}, b = {.notices = 0};

	p->refuses = MV_CLOSED;
	port_say(&a, CALL("5"));
	port_say(&b, CALL("6"));
	fake_upstream_ask(
	    u, fake_upstream_sent(u, 1)->r, METHOD_ELICIT, "\"id\":7,\"params\":" FORM);
	ck_assert_str_eq(b.text, ASKED("1"));
	fake_upstream_ask(
	    u, fake_upstream_sent(u, 0)->r, METHOD_ELICIT, "\"id\":8,\"params\":" FORM);
	ck_assert_str_eq(a.text, ASKED("2"));
	/* What is taken back is so where it was asked. */
	fake_upstream_withdraw(u);
	ck_assert_str_eq(a.text, TAKEN_BACK("2"));
	ck_assert_str_eq(b.text, TAKEN_BACK("1"));
	fake_upstream_result(u, 0, "{}");
	fake_upstream_result(u, 1, "{}");
	peer_expect_silence(p);
}
END_TEST

/* Its own stream takes none, so another one of the client's does. */
START_TEST(some_other_stream)
{
	struct port a = {.notices = 0}, b = {.notices = 0};

	p->refuses = _i == 0 ? MV_OK : MV_CLOSED;
	a.port.is_mute = _i == 2;
	a.refuses = _i == 2 ? MV_OK : MV_CLOSED;
	port_say(&a, CALL("5"));
	port_say(&b, CALL("6"));
	fake_upstream_ask(
	    u, fake_upstream_sent(u, 0)->r, METHOD_ELICIT, "\"id\":7,\"params\":" FORM);
	ck_assert_uint_eq(a.notices, 0);
	if (_i == 0)
		peer_expect(p, ASKED("1"));
	else
		ck_assert_str_eq(b.text, ASKED("1"));
	/* One that names no call: the channel first, if it is there. */
	question("8");
	if (_i == 0)
		peer_expect(p, ASKED("2"));
	else
		ck_assert_str_eq(b.text, ASKED("2"));
	ck_assert_uint_eq(a.notices, 0);
	fake_upstream_result(u, 0, "{}");
	fake_upstream_result(u, 1, "{}");
	peer_say(p, RESULT("1"));
	peer_say(p, RESULT("2"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
}
END_TEST

START_TEST(no_stream_yet)
{
	uint32_t ms = upstream_conf_of(u)->question_ms;

	p->refuses = MV_CLOSED;
	question("7");
	question("8");
	fake_loop_advance(f->loop, STREAM_MS - 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	if (_i == 0) {
		fake_loop_advance(f->loop, 1);
		ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
		ck_assert_ptr_nonnull(strstr(fake_upstream_answer(u),
		    " refused -32603 The client has no stream to be asked on"));
		p->refuses = MV_OK;
		client_channel_opened(p->c);
		return;
	}
	client_channel_opened(p->c); /* and closed at once */
	p->refuses = MV_OK;
	client_channel_opened(p->c);
	peer_expect(p, ASKED("1"));
	peer_expect(p, ASKED("2"));
	client_channel_opened(p->c);
	peer_expect_silence(p);
	/* It has all of its time from then on. */
	fake_loop_advance(f->loop, ms - 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	peer_say(p, RESULT("1"));
	fake_loop_advance(f->loop, 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 2);
	peer_expect(p, TAKEN_BACK("2"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_ask_streams");
	TCase *tc = tcase_create("asks");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, its_call_is_cancelled);
	tcase_add_test(tc, its_call_ends);
	tcase_add_test(tc, time_of_its_call_rests);
	tcase_add_test(tc, stream_of_its_call);
	tcase_add_loop_test(tc, some_other_stream, 0, 3);
	tcase_add_loop_test(tc, no_stream_yet, 0, 2);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
