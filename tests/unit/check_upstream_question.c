/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What a legacy upstream asks its client, until it is answered or asked for no more. */
#include "ask_rig.h"

/* ---- what it is told ---- */

#define TOLD(id, caps)                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"initialize\",\"params\":{"      \
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":" caps                      \
	",\"clientInfo\":" MCPVISOR_IDENTITY "}}"

static const struct {
	unsigned caps;
	enum roots_mode roots;
	const char *told;
} declared[] = {
    {0, ROOTS_AUTO, TOLD("1", "{}")},
    {CLIENT_CAPS_SHARED, ROOTS_AUTO,
	TOLD("1", "{\"sampling\":{\"tools\":{},\"context\":{}},\"elicitation\":{"
		  "\"form\":{},\"url\":{}}}")},
    {CLIENT_CAPS_ROOTS, ROOTS_AUTO, TOLD("1", "{\"roots\":{\"listChanged\":true}}")},
    {CLIENT_CAPS_ROOTS, ROOTS_CLIENT, TOLD("1", "{\"roots\":{\"listChanged\":true}}")},
    {CLIENT_CAPS_ROOTS, ROOTS_NONE, TOLD("1", "{}")},
    {0, ROOTS_LIST, TOLD("1", "{\"roots\":{}}")},
    {CLIENT_CAPS_ROOTS, ROOTS_LIST, TOLD("1", "{\"roots\":{}}")},
};
#define N_DECLARED ((int)(sizeof(declared) / sizeof(declared[0])))

START_TEST(told_what_its_client_can_do)
{
	struct upstream_conf *c = conf();
	struct uowner *o;

	c->roots = declared[_i].roots;
	o = uowner_new_of(c);
	upstream_set_client_caps(o->u, declared[_i].caps);
	ck_assert_uint_eq(o->u->client_caps, declared[_i].caps);
	uowner_start(o);
	uowner_heard(declared[_i].told);
	uowner_free(o);
}
END_TEST

/* Its greeting waits for it, and its time does as well. */
START_TEST(not_told_before_it_is_known)
{
	struct uowner *o = uowner_new_of(conf());

	o->u->caps_known = false;
	uowner_start(o);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, o->conf->start_ms * 3);
	if (_i == 1) {
		/* Nor is it greeted when it has gone meanwhile. */
		uowner_die(o);
		upstream_set_client_caps(o->u, 0);
		uowner_heard_nothing();
		fake_child_pause_over(o->u->child);
		uowner_heard(INITIALIZE(1));
	} else {
		upstream_set_client_caps(o->u, 0);
		uowner_heard(INITIALIZE(1));
		fake_loop_advance(o->loop, o->conf->start_ms - 1);
		uowner_answer(
		    o, 1, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}");
		ck_assert(uowner_is_ready(o));
	}
	fake_link_forget_all();
	uowner_free(o);
}
END_TEST

/* ---- what it may ask ---- */

static const struct {
	unsigned caps;
	const char *method, *params;
	bool may;
} asks[] = {
    {ALL, "sampling/createMessage", "{}", true},
    {ALL, "sampling/createMessage", "{\"tools\":[]}", true},
    {ALL, "elicitation/create", "{}", true},
    {ALL, "elicitation/create", "{\"mode\":\"url\"}", true},
    {ALL, "roots/list", "{}", true},
    {ALL & ~CLIENT_CAP_SAMPLING_TOOLS, "sampling/createMessage", "{\"tools\":[]}", false},
    {CLIENT_CAP_ELICITATION | CLIENT_CAP_ELICITATION_FORM, "elicitation/create",
	"{\"m\\u006fde\":\"u\\u0072l\"}", false},
    {CLIENT_CAP_ELICITATION | CLIENT_CAP_ELICITATION_URL, "elicitation/create",
	"{\"mode\":\"form\"}", false},
    {CLIENT_CAPS_SHARED, "roots/list", "{}", false},
    {CLIENT_CAP_NONE, "sampling/createMessage", "{}", false},
};
#define N_ASKS ((int)(sizeof(asks) / sizeof(asks[0])))

START_TEST(asks_what_was_offered)
{
	struct uowner *o = ready(asks[_i].caps);

	uowner_say(o,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"%s\",\"params\":%s}",
	    asks[_i].method, asks[_i].params);
	ck_assert_uint_eq(o->asked, asks[_i].may);
	if (asks[_i].may) {
		uowner_heard_nothing();
		ck_assert_ptr_null(o->asked_by); /* stdio does not tell */
		answer(o->question, "result", "{\"a\": 1.0}");
		uowner_heard(ANSWERED("\"q\"", "\"result\":{\"a\": 1.0}"));
	} else {
		uowner_heard(NOT_DECLARED("\"q\""));
	}
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(not_before_it_is_ready)
{
	struct uowner *o = uowner_new_of(conf());

	upstream_set_client_caps(o->u, ALL);
	uowner_start(o);
	(void)uowner_heard_request("initialize");
	uowner_say(o, "%s", ELICIT("7"));
	uowner_heard(NO_METHOD("7", "elicitation/create"));
	ck_assert_uint_eq(o->asked, 0);
	uowner_free(o);
}
END_TEST

/* A modern one asks in its results. */
START_TEST(not_a_modern_one)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	upstream_set_client_caps(o->u, ALL);
	uowner_be_modern(o, "{}");
	uowner_say(o, "%s", ELICIT("7"));
	uowner_heard(NO_METHOD("7", "elicitation/create"));
	upstream_tell_roots_changed(o->u);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(roots_of_the_conf)
{
	struct upstream_conf *c = conf();
	struct uowner *o;

	c->roots = ROOTS_LIST;
	if (_i == 1) {
		c->root_uris = mem_xcalloc(3, sizeof(char *));
		c->root_uris[0] = mem_xstrdup("file:///a");
		c->root_uris[1] = mem_xstrdup("file:///\"b\"");
	}
	o = ready_of(c, 0);
	uowner_say(o, "%s", ASK("7", "roots/list", "{}"));
	uowner_heard(_i == 0
			 ? ANSWERED("7", "\"result\":{\"roots\":[]}")
			 : ANSWERED("7", "\"result\":{\"roots\":[{\"uri\":\"file:///a\"},"
					 "{\"uri\":\"file:///\\\"b\\\"\"}]}"));
	ck_assert_uint_eq(o->asked, 0);
	upstream_tell_roots_changed(o->u);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(roots_have_changed)
{
	struct uowner *o = ready(_i == 0 ? ALL : (unsigned)CLIENT_CAP_ROOTS);

	upstream_tell_roots_changed(o->u);
	if (_i == 0)
		uowner_heard("{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/roots/list_changed\"}");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(in_a_batch)
{
	struct uowner *o = uowner_new_of(conf());

	upstream_set_client_caps(o->u, CLIENT_CAP_SAMPLING);
	uowner_be_legacy(o, "2025-03-26", "{}");
	uowner_say(o, "%s",
	    "[" ELICIT("1") "," ASK("2", "sampling/createMessage", "{}") "," ELICIT(
		"3") "]");
	uowner_heard("[" NOT_DECLARED("1") "," NOT_DECLARED("3") "]");
	ck_assert_uint_eq(o->asked, 1);
	answer(o->question, "result", "{}");
	uowner_heard(ANSWERED("2", "\"result\":{}"));
	uowner_free(o);
}
END_TEST

/* ---- ends ---- */

START_TEST(each_ends_by_itself)
{
	struct uowner *o = ready(ALL);
	struct question *q[3];

	for (unsigned i = 0; i < 3; i++) {
		uowner_say(
		    o, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"roots/list\"}", i);
		q[i] = o->question;
	}
	answer(q[1], "error", "{\"code\":1,\"message\":\"\"}");
	uowner_heard(ANSWERED("1", "\"error\":{\"code\":1,\"message\":\"\"}"));
	question_refuse(q[2], WORDING_ASK_NO_CALL);
	uowner_heard(ANSWERED("2", "\"error\":{\"code\":-32603,\"message\":\"There is no "
				   "call to ask it for; a retry will not help\"}"));
	answer(q[0], "result", "{}");
	uowner_heard(ANSWERED("0", "\"result\":{}"));
	uowner_free(o);
}
END_TEST

START_TEST(cancelled_by_the_upstream)
{
	struct uowner *o = ready(ALL);

	uowner_say(o, "%s", ELICIT("\"a\""));
	uowner_say(o, "%s", ELICIT("7"));
	uowner_say(o, "%s", IS_CANCELLED("\"7\""));
	uowner_say(o, "%s", IS_CANCELLED("8"));
	ck_assert_uint_eq(o->withdrawn, 0);
	uowner_say(o, "%s", IS_CANCELLED("\"\\u0061\""));
	uowner_say(o, "%s", IS_CANCELLED("\"a\""));
	ck_assert_uint_eq(o->withdrawn, 1);
	answer(o->question, "result", "{}");
	uowner_heard(ANSWERED("7", "\"result\":{}"));
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(its_process_goes)
{
	struct uowner *o = ready(ALL);

	uowner_say(o, "%s", ELICIT("1"));
	uowner_say(o, "%s", ELICIT("2"));
	if (_i == 0)
		uowner_die(o);
	else
		upstream_stop(o->u, &(struct child_ladder){.term_ms = 1, .kill_ms = 1});
	ck_assert_uint_eq(o->withdrawn, 2);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- progress ---- */

#define TOKEN(id, t)                                                                     \
	ASK(id, "elicitation/create", "{\"_meta\":{\"progressToken\":" t "}}")

static void
progress(struct question *q)
{
	static const char text[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":4,\"progress\":1.0}}";
	struct json_msg json;
	struct link_msg m;

	ck_assert_int_eq(link_scan(text, sizeof(text) - 1, &json, &m), MV_OK);
	question_progress(q, &m);
}

START_TEST(progress_goes_by_its_token)
{
	struct uowner *o = ready(ALL);

	uowner_say(o, "%s", TOKEN("1", "\"t\\u0031\""));
	progress(o->question);
	uowner_heard(
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
	    "{\"progressToken\":\"t\\u0031\",\"progress\":1.0}}");
	uowner_say(o, "%s", ELICIT("2"));
	progress(o->question);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* ---- limits ---- */

START_TEST(too_many)
{
	struct uowner *o = ready(ALL);

	for (unsigned i = 0; i < CAP_UPSTREAM_QUESTIONS; i++)
		uowner_say(o, "%s", ELICIT("1"));
	ck_assert_uint_eq(o->asked, CAP_UPSTREAM_QUESTIONS);
	uowner_heard_nothing();
	uowner_say(o, "%s", ELICIT("2"));
	uowner_heard(NOBODY("2"));
	answer(o->question, "result", "{}");
	uowner_heard(ANSWERED("1", "\"result\":{}"));
	uowner_say(o, "%s", ELICIT("3"));
	ck_assert_uint_eq(o->asked, CAP_UPSTREAM_QUESTIONS + 1);
	uowner_free(o);
}
END_TEST

START_TEST(too_much)
{
	struct upstream_conf *c = conf();
	struct uowner *o;

	c->queue_bytes = 2 * strlen(ELICIT("1"));
	o = ready_of(c, ALL);
	for (unsigned i = 0; i < 3; i++)
		uowner_say(o, "%s", ELICIT("1"));
	ck_assert_uint_eq(o->asked, 2);
	uowner_heard(NOBODY("1"));
	uowner_free(o);
}
END_TEST

START_TEST(no_memory)
{
	struct uowner *o = ready(ALL);
	char line[] = ELICIT("1");

	/* Each allocation in turn; the last round has enough. */
	for (unsigned long nth = 1; nth <= 4; nth++) {
		unsigned asked = o->asked;
		struct json_msg json;
		struct link_msg m;

		ck_assert_int_eq(link_scan(line, strlen(line), &json, &m), MV_OK);
		mem_fail_at(nth, 0);
		upstream_on_request(o->u, NULL, &m);
		mem_fail_at(0, 0);
		if (o->asked == asked)
			uowner_heard(NOBODY("1"));
		else
			uowner_heard_nothing();
	}
	ck_assert_uint_eq(o->asked, 3);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_question");
	TCase *tc = tcase_create("question");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, told_what_its_client_can_do, 0, N_DECLARED);
	tcase_add_loop_test(tc, not_told_before_it_is_known, 0, 2);
	tcase_add_loop_test(tc, asks_what_was_offered, 0, N_ASKS);
	tcase_add_test(tc, not_before_it_is_ready);
	tcase_add_test(tc, not_a_modern_one);
	tcase_add_loop_test(tc, roots_of_the_conf, 0, 2);
	tcase_add_loop_test(tc, roots_have_changed, 0, 2);
	tcase_add_test(tc, in_a_batch);
	tcase_add_test(tc, each_ends_by_itself);
	tcase_add_test(tc, cancelled_by_the_upstream);
	tcase_add_loop_test(tc, its_process_goes, 0, 2);
	tcase_add_test(tc, progress_goes_by_its_token);
	tcase_add_test(tc, too_many);
	tcase_add_test(tc, too_much);
	tcase_add_test(tc, no_memory);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
