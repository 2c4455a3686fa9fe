/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* What a handle of a parked call is good for, and for whom. */
#include "parked_rig.h"

/* ---- handles that are none ---- */

#define ARGS  ",\"arguments\":{\"a\":1}"
#define STATE ",\"requestState\":"
static const struct {
	const char *method, *more, *rest;
	bool with; /* the handle is in between */
	bool flip; /* with another digit */
} foreign[] = {
    {"tools/call", A ",\"arguments\":{\"a\":2}" STATE "\"", "\"", true, false},
    {"tools/call", A ",\"arguments\":{\"a\": 1}" STATE "\"", "\"", true, false},
    {"tools/call", A STATE "\"", "\"", true, false},
    {"tools/call", "\"name\":\"alpha__d\"" ARGS STATE "\"", "\"", true, false},
    {"prompts/get", A ARGS STATE "\"", "\"", true, false},
    {"tools/call", A ARGS STATE "\"", "\"", true, true},
    {"tools/call", A ARGS STATE "\"", "A\"", true, false},
    {"tools/call", A ARGS STATE "\" ", "\"", true, false},
    {"tools/call", A ARGS STATE, "\"mv1.\"", false, false},
    {"tools/call", A ARGS STATE, "\"mv1\"", false, false},
    {"tools/call", A ARGS STATE, "\"\"", false, false},
    {"tools/call", A ARGS STATE, "7", false, false},
    {"tools/call", A ARGS STATE, "{}", false, false},
};
#define N_FOREIGN ((int)(sizeof(foreign) / sizeof(foreign[0])))

START_TEST(handles_that_are_none)
{
	char used[sizeof(handle)], text[1024];

	park("1");
	memcpy(used, handle, sizeof(used));
	if (foreign[_i].flip)
		used[strlen(used) - 3] = used[strlen(used) - 3] == '_' ? 'A' : '_';
	(void)snprintf(text, sizeof(text), "%s%s%s", foreign[_i].more,
	    foreign[_i].with ? used : "", foreign[_i].rest);
	ask_as("2", ALL, foreign[_i].method, text);
	(void)peer_expect_code(p, "2", NOT_OURS);
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	/* The right one still works. */
	come_back("3", "{\"input-1\":{}}");
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "3", "{\"resultType\":\"complete\"}");
}
END_TEST

START_TEST(handle_of_another_client)
{
	struct peer *mine = p, *other = peer_new(f);

	park("1");
	p = other;
	come_back("1", "{\"input-1\":{}}");
	(void)peer_expect_code(p, "1", NOT_OURS);
	p = mine;
	peer_free(other);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	ck_assert_uint_eq(fake_upstream_n_questions(u), 1);
}
END_TEST

/* A modern upstream's state is none of ours. */
START_TEST(state_of_a_modern_upstream)
{
	fake_upstream_set_kind(u, false, true);
	ask_as("1", ALL, "tools/call", with_state("mv1.theirs", "{}"));
	ck_assert_ptr_nonnull(strstr(fake_upstream_last(u)->params, "mv1.theirs"));
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "1", "{\"resultType\":\"complete\"}");
}
END_TEST

/* No tool: there is no model to read a result. */
START_TEST(used_handle_of_a_prompt)
{
	ask_as("1", ALL, "prompts/get", A);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_loop_advance(f->loop, 20);
	expect_asked("1", "\"input-1\":" ASKED_FORM);
	(void)snprintf(members, sizeof(members), A ",\"requestState\":\"%s\"", handle);
	for (int i = 0; i < 2; i++)
		ask_as(i == 0 ? "2" : "3", ALL, "prompts/get", members);
	(void)peer_expect_code(p, "3", -32602);
	fake_upstream_result(u, 0, "{}");
	peer_expect_result(p, "2", "{\"resultType\":\"complete\"}");
}
END_TEST

/* A name is none of a resource's, whatever its client writes beside the URI. */
START_TEST(handle_of_another_resource)
{
	static const char *const uris[] = {"file:///a", "db://x"};
	char text[1024];

	ask_as("1", ALL, "resources/read", "\"uri\":\"file:///a\",\"name\":\"x\"");
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	fake_loop_advance(f->loop, 20);
	expect_asked("1", "\"input-1\":" ASKED_FORM);
	for (size_t i = 2; i-- > 0;) {
		(void)snprintf(text, sizeof(text),
		    "\"uri\":\"%s\",\"name\":\"x\",\"requestState\":\"%s\","
		    "\"inputResponses\":{\"input-1\":{}}",
		    uris[i], handle);
		ask_as(i == 1 ? "2" : "3", ALL, "resources/read", text);
		ck_assert_uint_eq(fake_upstream_n_answers(u), i == 1 ? 0 : 1);
	}
	(void)peer_expect_code(p, "2", NOT_OURS);
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
}
END_TEST

START_TEST(its_time_is_over)
{
	park("1");
	fake_loop_advance(f->loop, upstream_conf_of(u)->question_ms - 1);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	fake_loop_advance(f->loop, 1);
	ck_assert(fake_upstream_last(u)->cancelled);
	ck_assert_str_eq(fake_upstream_answer(u),
	    "7 refused -32603 Nobody waits for this call any "
	    "more; a retry will not help");
	come_back("2", "{\"input-1\":{}}");
	expect_call_again("2");
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
}
END_TEST

/* ---- those that know nothing of each other ---- */

/* One exchange of somebody's. */
struct exchange {
	struct client_port port;
	const char *who;
	int status; /* 0: it has no answer yet */
	char text[2048];
};

static enum mv_err
on_notify(void *arg, const struct iovec *iov, int n)
{
	(void)arg;
	(void)iov;
	(void)n;
	return MV_CLOSED;
}

static void
on_answer(void *arg, int status, const struct iovec *iov, int n)
{
	struct exchange *x = arg;
	size_t len = 0;

	ck_assert_int_eq(x->status, 0);
	x->status = status;
	for (int i = 0; i < n; i++) {
		ck_assert_uint_lt(len + iov[i].iov_len, sizeof(x->text));
		memcpy(x->text + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	x->text[len] = '\0';
}

static void
on_open(void *arg, struct request *r)
{
	(void)arg;
	(void)r;
}

static void
on_closed(void *arg)
{
	(void)arg;
}

static bool
on_check(void *arg, const struct link_msg *m, struct jtext definition, struct buf *error)
{
	(void)arg;
	(void)m;
	(void)definition;
	(void)error;
	return true;
}

static void
put_principal(void *arg, struct buf *out)
{
	buf_add_str(out, ((const struct exchange *)arg)->who);
}

static const struct client_port_ops exchange_ops = {.notify = on_notify,
    .answer = on_answer,
    .open = on_open,
    .closed = on_closed,
    .check = on_check,
    .put_principal = put_principal};

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	return on_notify(arg, iov, n);
}

static const struct client_cb crowd_cb = {
    .send = on_send, .on_idle = on_closed, .on_dead = on_closed};

static void
exchange(struct client *c, struct exchange *x, const char *who, const char *more)
{
	static char text[4096];
	struct json_msg json;
	struct link_msg m;

	*x = (struct exchange){.who = who};
	x->port = (struct client_port){.ops = &exchange_ops, .arg = x, .modern = true};
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
	    "call\",\"params\":{\"_meta\":{" MODERN_VERSION
	    ",\"io.modelcontextprotocol/clientCapabilities\":" ALL "},%s}}",
	    more);
	m = fleet_scan(text, &json);
	client_on_message_by(c, &m, &x->port);
}

static void
keep_handle(const struct exchange *x)
{
	const char *at = strstr(x->text, "mv1.");

	ck_assert_msg(at != NULL, "%s", x->text);
	(void)snprintf(handle, sizeof(handle), "%.*s", (int)strcspn(at, "\""), at);
}

START_TEST(handle_of_another_principal)
{
	struct client *c = client_new_shared(f->loop, f->g, 0, &crowd_cb, NULL);
	struct exchange a, b, back;

	exchange(c, &a, "token-a", A ARGS);
	exchange(c, &b, "token-b", A ARGS);
	for (size_t i = 2; i-- > 0;)
		fake_upstream_ask(
		    u, fake_upstream_sent(u, i)->r, METHOD_ELICIT, ASK_FORM("7"));
	fake_loop_advance(f->loop, 20);
	ck_assert_int_eq(a.status, 200);
	ck_assert_int_eq(b.status, 200);
	keep_handle(&a);
	exchange(c, &back, "token-b", with_state(handle, "{\"input-1\":{}}"));
	ck_assert_ptr_nonnull(strstr(back.text, "\"code\":-32602"));
	ck_assert_uint_eq(fake_upstream_n_answers(u), 0);
	exchange(c, &back, "token-a", with_state(handle, "{\"input-1\":{}}"));
	ck_assert_int_eq(back.status, 0);
	ck_assert_uint_eq(fake_upstream_n_answers(u), 1);
	fake_upstream_result(u, 0, "{\"x\":1}");
	ck_assert_str_eq(back.text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
				    "\"resultType\":\"complete\",\"x\":1}}");
	client_free(c);
}
END_TEST

/* What cannot be asked has a status of its own. */
START_TEST(status_of_what_is_needed)
{
	struct client *c = client_new_shared(f->loop, f->g, 0, &crowd_cb, NULL);
	struct exchange a;

	exchange(c, &a, "", A ARGS);
	fake_upstream_ask(u, NULL, METHOD_SAMPLE, "\"id\":7,\"params\":{\"tools\":[]}");
	ck_assert_int_eq(a.status, 400);
	ck_assert_ptr_nonnull(strstr(a.text, "\"code\":-32021"));
	client_free(c);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_handles");
	TCase *tc = tcase_create("parked");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, handles_that_are_none, 0, N_FOREIGN);
	tcase_add_test(tc, handle_of_another_client);
	tcase_add_test(tc, state_of_a_modern_upstream);
	tcase_add_test(tc, used_handle_of_a_prompt);
	tcase_add_test(tc, handle_of_another_resource);
	tcase_add_test(tc, its_time_is_over);
	tcase_add_test(tc, handle_of_another_principal);
	tcase_add_test(tc, status_of_what_is_needed);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
