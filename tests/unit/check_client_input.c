/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* A modern upstream that asks a legacy client for input. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL		  "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{}}"
#define FORM		  "{\"message\":\"\\u0041\",\"requestedSchema\":{\"n\":1.0}}"
#define ELICIT(params)	  "{\"method\":\"elicitation/create\",\"params\":" params "}"
#define REQUIRED(members) "{\"resultType\":\"input_required\"," members "}"
#define REQUESTS(members) "\"inputRequests\":{" members "}"
#define ASKED(id, method, params)                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                        \
	"\",\"params\":" params "}"
#define FORM_ASKED(id)	 ASKED(id, "elicitation/create", FORM)
#define ANSWER(id, body) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" body "}"
#define REFUSAL(id)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                \
	",\"error\":{\"code\":-1,\"message\":\"User \\\"said\\\" no\"}}"
#define CANCEL(id)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"       \
	"\"requestId\":" id "}}"
#define PARAMS	   "{\"name\":\"alpha__a\",\"arguments\":{\"a\":1.0}}"
#define ROUNDS_MAX 64

static struct fleet *f;
static struct peer *p;
static struct upstream *u;

static void
initialize(const char *caps)
{
	char params[512];

	(void)snprintf(params, sizeof(params),
	    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,"
	    "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}",
	    caps);
	peer_ask(p, "\"init\"", "initialize", params);
	(void)peer_read(p);
}

static void
setup(void)
{
	f = fleet_full();
	u = f->u[0];
	fake_upstream_set_kind(u, false, true);
	p = peer_new(f);
	initialize(ALL);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

/* A call whose upstream has ended it so. */
static void
call(const char *required)
{
	peer_ask(p, "5", "tools/call", PARAMS);
	fake_upstream_result(u, fake_upstream_n_sent(u) - 1, required);
}

static void
expect_sent(size_t n, const char *params)
{
	ck_assert_uint_eq(fake_upstream_n_sent(u), n);
	ck_assert_str_eq(fake_upstream_last(u)->params, params);
}

static void
finish(void)
{
	fake_upstream_result(
	    u, fake_upstream_n_sent(u) - 1, "{\"resultType\":\"complete\"}");
	peer_expect_result(p, "5", "{\"resultType\":\"complete\"}");
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}

/* The call ended by an error that says this. */
static void
expect_failed(const char *why)
{
	const char *line = peer_expect_code(p, "5", -32603);

	ck_assert_msg(strstr(line, why) != NULL, "%s", line);
	ck_assert_uint_eq(client_session_of(p->c).n_asks, 0);
}

/* ---- there and back ---- */

START_TEST(asked_and_answered)
{
	call(REQUIRED(
	    REQUESTS("\"k\\u0031\":" ELICIT(FORM)) ",\"requestState\":\"s\\u0074\""));
	peer_expect(p, FORM_ASKED("1"));
	peer_say(p, ANSWER("1", "{ \"action\":\"accept\"}"));
	expect_sent(2,
	    "{\"inputResponses\":{\"k\\u0031\":{ \"action\":\"accept\"}},"
	    "\"requestState\":\"s\\u0074\",\"name\":\"a\",\"arguments\":{\"a\":1.0}}");
	finish();
}
END_TEST

START_TEST(all_of_them_first)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(
	    FORM) ",\"b\":{\"method\":"
		  "\"sampling/createMessage\",\"params\":{\"maxTokens\":1}},"
		  "\"c\":{\"method\":\"roots/list\"}")));
	peer_expect(p, FORM_ASKED("1"));
	peer_expect(p, ASKED("2", "sampling/createMessage", "{\"maxTokens\":1}"));
	peer_expect(p, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"roots/list\"}");
	peer_say(p, ANSWER("3", "{\"roots\":[]}"));
	peer_say(p, ANSWER("1", "{}"));
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
	peer_say(p, ANSWER("2", "{\"role\":\"x\"}"));
	expect_sent(2,
	    "{\"inputResponses\":{\"c\":{\"roots\":[]},\"a\":{},\"b\":{\"role\":\"x\"}},"
	    "\"name\":\"a\",\"arguments\":{\"a\":1.0}}");
	finish();
}
END_TEST

/* A state alone asks nothing of anybody. */
START_TEST(state_alone)
{
	static const char *const rows[] = {REQUIRED("\"requestState\":\"s\""),
	    REQUIRED("\"requestState\":\"s\",\"inputRequests\":{}")};

	call(rows[_i]);
	expect_sent(
	    2, "{\"requestState\":\"s\",\"name\":\"a\",\"arguments\":{\"a\":1.0}}");
	/* What is new replaces what was before. */
	fake_upstream_result(u, 1, REQUIRED(REQUESTS("\"k\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	peer_say(p, ANSWER("1", "{}"));
	expect_sent(3,
	    "{\"inputResponses\":{\"k\":{}},\"name\":\"a\",\"arguments\":{\"a\":1.0}}");
	finish();
}
END_TEST

START_TEST(url_gets_an_id)
{
	call(REQUIRED(
	    REQUESTS("\"k\":" ELICIT("{\"mode\":\"url\",\"url\":\"https://x\",\"_meta\":"
				     "{\"progressToken\":7}}"))));
	peer_expect(p, ASKED("1", "elicitation/create",
			   "{\"elicitationId\":\"mcpvisor-1\",\"mode\":\"url\",\"url\":"
			   "\"https://x\","
			   "\"_meta\":{\"progressToken\":1}}"));
	/* Progress of it is nobody's. */
	peer_say(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
	    "{\"progressToken\":1,\"progress\":1}}");
	peer_say(p, ANSWER("1", "{}"));
	finish();
}
END_TEST

/* Who does not show a form has given no answer to it; else there is nothing to go on. */
START_TEST(refused_by_the_client)
{
	call(REQUIRED(
	    REQUESTS("\"k\":" ELICIT(FORM) ",\"s\":{\"method\":"
					   "\"sampling/createMessage\",\"params\":{}}")));
	p->taken = p->n;
	peer_say(p, REFUSAL("1"));
	if (_i == 0) {
		peer_say(p, ANSWER("2", "{}"));
		expect_sent(2,
		    "{\"inputResponses\":{\"k\":{\"action\":\"cancel\"},\"s\":{}},"
		    "\"name\":\"a\",\"arguments\":{\"a\":1.0}}");
		finish();
	} else {
		peer_say(p, REFUSAL("2"));
		expect_failed("the client refused sampling/createMessage");
		ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
	}
}
END_TEST

/* ---- upstreams that do wrong ---- */

static const struct {
	const char *required, *why;
} wrong[] = {
    {REQUIRED("\"x\":1"), "does not say for which"},
    {REQUIRED("\"inputRequests\":{}"), "does not say for which"},
    {REQUIRED("\"inputRequests\":[]"), "does not say for which"},
    {REQUIRED(REQUESTS("\"k\":{}")), "not offered"},
    {REQUIRED(REQUESTS("\"k\":7")), "not offered"},
    {REQUIRED(REQUESTS("\"k\":{\"method\":\"tools/call\",\"params\":{}}")),
	"not offered"},
    {REQUIRED(REQUESTS("\"a\":" ELICIT(FORM) ",\"k\":{\"method\":"
					     "\"sampling/createMessage\",\"params\":{"
					     "\"tools\":[]}}")),
	"not offered"},
};
#define N_WRONG ((int)(sizeof(wrong) / sizeof(wrong[0])))

START_TEST(asks_wrongly)
{
	call(wrong[_i].required);
	if (_i == N_WRONG - 1) {
		/* What was asked before is taken back. */
		peer_expect(p, FORM_ASKED("1"));
		peer_expect(p, CANCEL("1"));
	}
	expect_failed(wrong[_i].why);
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
}
END_TEST

/* Who brings what only a retry of ours brings would bring it twice. */
START_TEST(client_of_two_revisions)
{
	static const char *const rows[] = {
	    "{\"name\":\"alpha__a\",\"requestState\":\"s\"}",
	    "{\"inputResponses\":{},\"name\":\"alpha__a\"}",
	};

	peer_ask(p, "5", "tools/call", rows[_i]);
	(void)peer_expect_code(p, "5", -32602);
	ck_assert_uint_eq(fake_upstream_n_sent(u), 0);
}
END_TEST

START_TEST(asks_a_client_that_has_nothing)
{
	initialize("{}");
	call(REQUIRED(REQUESTS("\"k\":" ELICIT(FORM))));
	expect_failed("not offered");
}
END_TEST

START_TEST(asks_for_ever)
{
	call(REQUIRED("\"requestState\":\"s\""));
	for (size_t i = 1; i < ROUNDS_MAX; i++)
		fake_upstream_result(u, i, REQUIRED("\"requestState\":\"s\""));
	ck_assert_uint_eq(fake_upstream_n_sent(u), ROUNDS_MAX + 1);
	fake_upstream_result(u, ROUNDS_MAX, REQUIRED("\"requestState\":\"s\""));
	expect_failed("again and again");
}
END_TEST

/* ---- ends ---- */

START_TEST(no_answer_in_time)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM) ",\"b\":" ELICIT(FORM))));
	p->taken = p->n;
	fake_loop_advance(f->loop, upstream_conf_of(u)->question_ms);
	peer_expect(p, CANCEL("2"));
	peer_expect(p, CANCEL("1"));
	expect_failed("no answer in time");
}
END_TEST

START_TEST(cancelled)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM) ",\"b\":" ELICIT(FORM))));
	p->taken = p->n;
	peer_say(p, CANCEL("5"));
	ck_assert_uint_eq(p->n - p->taken, 2);
	p->taken = p->n;
	ck_assert_uint_eq(client_session_of(p->c).n_asks, 0);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	peer_say(p, ANSWER("1", "{}"));
	ck_assert_uint_eq(fake_upstream_n_sent(u), 1);
}
END_TEST

START_TEST(stop)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	client_finish(p->c);
	p->taken = p->n;
	ck_assert_uint_eq(client_in_flight(p->c), 0);
	ck_assert_uint_eq(client_session_of(p->c).n_asks, 0);
}
END_TEST

static char line[1024];

static void
on_line(enum log_level level, const char *text, size_t len, void *arg)
{
	(void)level;
	(void)len;
	(void)arg;
	if (strstr(text, "call: done") != NULL)
		(void)snprintf(line, sizeof(line), "%s", text);
}

/* While its client thinks nothing holds the instance, and another one takes its place. */
START_TEST(its_instance_goes)
{
	line[0] = '\0';
	log_set_sink(on_line, NULL);
	log_set_level(LOG_LV_INFO);
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	gateway_restart(f->g, u, 0);
	fake_loop_settle(f->loop);
	fake_loop_advance(f->loop, 10);
	fleet_look(f);
	ck_assert_ptr_ne(f->u[0], u);
	switch (_i) {
	case 0:
		peer_say(p, ANSWER("1", "{}"));
		expect_failed("went while the client was asked");
		break;
	case 1:
		peer_say(p, CANCEL("5"));
		peer_expect(p, CANCEL("1"));
		break;
	case 2:
		fake_loop_advance(f->loop, 600000);
		peer_expect(p, CANCEL("1"));
		expect_failed("no answer in time");
		break;
	case 3:
		client_finish(p->c);
		p->taken = p->n;
		break;
	default:
		break; /* the client leaves */
	}
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_NOTICE);
	if (_i < 4) {
		ck_assert_uint_eq(client_in_flight(p->c), 0);
		ck_assert_msg(strstr(line, " upstream=- ") != NULL, "%s", line);
	} else {
		p->refuses = MV_CLOSED;
	}
}
END_TEST

/* The instance that a call of the client would get now. */
static struct upstream *
instance(void)
{
	struct upstream *x = f->u[0];

	ck_assert_int_eq(
	    gateway_pick_instance(f->g, &x, NULL, client_session_of(p->c).caps), MV_OK);
	fake_upstream_set_state(x, UPSTREAM_ST_READY, "");
	return x;
}

/* Meanwhile its instance neither sleeps nor ends, nor is there for anybody else's call.
 */
START_TEST(its_instance_waits)
{
	struct fleet_conf *c = fleet_conf_new(1);
	struct upstream *own, *other;

	teardown();
	c->confs[0]->isolation = ISOLATION_CALL;
	c->confs[0]->max_instances = 2;
	c->confs[0]->question_ms = 600000;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 6000);
	fake_upstream_set_kind(f->u[0], false, true);
	p = peer_new(f);
	initialize(ALL);
	u = own = instance();
	peer_ask(p, "5", "tools/call", PARAMS);
	fake_upstream_result(own, 0, REQUIRED(REQUESTS("\"a\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	ck_assert_uint_eq(fake_upstream_holds(own), 1);
	other = instance();
	ck_assert_ptr_ne(own, other);
	peer_ask(p, "6", "tools/call", PARAMS);
	fake_upstream_result(other, 0, "{\"resultType\":\"complete\"}");
	peer_expect_result(p, "6", "{\"resultType\":\"complete\"}");
	fake_loop_advance(f->loop, 300000);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 1);
	if (_i == 0) {
		peer_say(p, ANSWER("1", "{}"));
		ck_assert_uint_eq(fake_upstream_holds(own), 0);
		finish();
	} else {
		peer_say(p, CANCEL("5"));
		ck_assert_uint_eq(fake_upstream_holds(own), 0);
		p->taken = p->n;
	}
	fake_loop_advance(f->loop, 300000);
	ck_assert_uint_eq(gateway_count_instances(f->g, f->u[0]), 0);
}
END_TEST

START_TEST(it_ends_after_the_retry)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	peer_say(p, ANSWER("1", "{}"));
	if (_i == 0)
		fake_upstream_error(u, 1, "{\"code\":-7,\"message\":\"m\"}");
	else
		fake_upstream_fail(u, 1, MV_DIED, NULL);
	(void)peer_expect_code(p, "5", _i == 0 ? -7 : -32603);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}
END_TEST

/* It is refused on its way back. */
START_TEST(no_room_for_the_retry)
{
	call(REQUIRED(REQUESTS("\"a\":" ELICIT(FORM))));
	peer_expect(p, FORM_ASKED("1"));
	fake_upstream_refuse(u, MV_BUSY);
	peer_say(p, ANSWER("1", "{}"));
	expect_failed("busy");
}
END_TEST

/* ---- without memory ---- */

START_TEST(without_memory)
{
	for (unsigned long nth = 1; nth <= 16; nth++) {
		setup();
		peer_ask(p, "5", "tools/call", PARAMS);
		mem_fail_at(_i % 2 == 0 ? nth : 0, _i / 2);
		fake_upstream_result(u, 0,
		    REQUIRED(REQUESTS("\"a\":" ELICIT(FORM) ",\"b\":" ELICIT(
			FORM)) ",\"requestState\":\"s\""));
		mem_fail_at(_i % 2 == 1 ? nth : 0, _i / 2);
		peer_say(p, ANSWER("1", "{}"));
		peer_say(p, ANSWER("2", "{}"));
		mem_fail_at(0, 0);
		if (fake_upstream_n_sent(u) > 1)
			fake_upstream_result(u, 1, "{}");
		/* It has an end, whatever happened. */
		ck_assert_uint_eq(client_in_flight(p->c), 0);
		ck_assert_uint_eq(client_session_of(p->c).n_asks, 0);
		p->taken = p->n;
		teardown();
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_input");
	TCase *tc = tcase_create("input");
	TCase *mem = tcase_create("memory");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_tcase(s, mem);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, asked_and_answered);
	tcase_add_test(tc, all_of_them_first);
	tcase_add_loop_test(tc, state_alone, 0, 2);
	tcase_add_test(tc, url_gets_an_id);
	tcase_add_loop_test(tc, refused_by_the_client, 0, 2);
	tcase_add_loop_test(tc, asks_wrongly, 0, N_WRONG);
	tcase_add_loop_test(tc, client_of_two_revisions, 0, 2);
	tcase_add_test(tc, asks_a_client_that_has_nothing);
	tcase_add_test(tc, asks_for_ever);
	tcase_add_test(tc, no_answer_in_time);
	tcase_add_test(tc, cancelled);
	tcase_add_test(tc, stop);
	tcase_add_loop_test(tc, its_instance_goes, 0, 5);
	tcase_add_loop_test(tc, its_instance_waits, 0, 2);
	tcase_add_loop_test(tc, it_ends_after_the_retry, 0, 2);
	tcase_add_test(tc, no_room_for_the_retry);
	tcase_add_loop_test(mem, without_memory, 0, 4);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
