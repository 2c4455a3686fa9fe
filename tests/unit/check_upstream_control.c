/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What operators do with an upstream and see of it: restarts, other limits, figures,
 * bounds of its queue, arguments that the conf chose. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"t\"}}"
#define IS_LEGACY "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"
#define WHY	  "restarts: the operator asked"

static void
check_state(const struct uowner *o, enum upstream_state st)
{
	ck_assert_msg(upstream_state(o->u) == st, "is %s, not %s",
	    upstream_state_text(upstream_state(o->u)), upstream_state_text(st));
	uowner_check(o);
}

static struct uowner *
owner_ready(void)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_be_legacy(o, "2025-06-18", "{}");
	return o;
}

static void
check_failed(const struct ucall *c, enum mv_err err, const char *detail)
{
	ck_assert_uint_eq(c->done, 1);
	ck_assert_int_eq(c->kind, OUTCOME_FAILED);
	ck_assert_int_eq(c->err, err);
	ck_assert_str_eq(c->detail, detail);
}

/* ---- restart ---- */

START_TEST(restart_of_a_ready_one)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};
	struct ucall c = {.then = &b, .then_text = CALL};

	ucall_send(o, &a, CALL);
	ucall_send(o, &c, CALL);
	fake_link_forget_all();
	upstream_restart(o->u, "the operator asked");
	check_state(o, UPSTREAM_ST_WAKING);
	ck_assert_str_eq(upstream_reason(o->u), WHY);
	check_failed(&a, MV_DIED, "the operator asked");
	check_failed(&c, MV_DIED, "the operator asked");
	/* What comes from now on waits for the next process. */
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_ptr_eq(b.req.u, o->u);
	upstream_restart(o->u, "twice is once");
	uowner_die(o);
	check_state(o, UPSTREAM_ST_INIT);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 2);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 0);
	uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_int_eq(b.kind, OUTCOME_RESULT);
	ck_assert_uint_eq(upstream_stats(o->u).restarts, 1);
	uowner_free(o);
}
END_TEST

/* Those that wait were never sent: they wait on. */
START_TEST(restart_while_starting)
{
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct ucall c = {.done = 0};

	uowner_start(o);
	(void)uowner_heard_request("initialize");
	ucall_send(o, &c, CALL);
	upstream_restart(o->u, "the operator asked");
	check_state(o, UPSTREAM_ST_WAKING);
	uowner_die(o);
	ck_assert_uint_eq(o->settled, 0);
	uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_answer(o, uowner_heard_request("tools/call"), "{}");
	ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	uowner_free(o);
}
END_TEST

START_TEST(restart_of_one_at_rest)
{
	struct uowner *o = owner_ready();

	fake_child_set_budget(o->u->child, _i == 0 ? 1 : 0);
	uowner_die(o);
	check_state(o, _i == 0 ? UPSTREAM_ST_PARKED : UPSTREAM_ST_DOWN);
	if (_i == 2)
		upstream_wake(o->u);
	else
		upstream_restart(o->u, "the operator asked");
	check_state(o, UPSTREAM_ST_INIT);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 2);
	uowner_free(o);
}
END_TEST

START_TEST(broken_has_nothing_to_restart)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct uowner *o;

	conf->broken = MV_CONF;
	o = uowner_new_of(conf);
	upstream_start(o->u);
	upstream_restart(o->u, "the operator asked");
	upstream_wake(o->u);
	upstream_set_conf(o->u, conf);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	ck_assert_uint_eq(upstream_stats(o->u).pid, 0);
	uowner_free(o);
}
END_TEST

/* ---- another conf ---- */

/* The conf before may be gone: nothing may point to it. */
static void
owner_set_conf(struct uowner *o, struct upstream_conf *conf)
{
	struct upstream_conf *before = o->conf;

	o->conf = conf;
	upstream_set_conf(o->u, conf);
	upstream_conf_free(before);
}

START_TEST(limits_are_live)
{
	struct uowner *o = owner_ready();
	struct upstream_conf *conf = upstream_conf_new("alpha");
	const struct child_opts *got = fake_child_opts(o->u->child);
	struct ucall a = {.done = 0}, b = {.done = 0};

	ucall_send(o, &a, CALL);
	conf->era = ERA_LEGACY;
	conf->call_ms = 100;
	conf->queue_calls = 1;
	conf->restart_base_ms = 7;
	conf->restart_max_ms = 8;
	conf->restart_limit = 9;
	conf->stable_ms = 10;
	conf->term_ms = 11;
	conf->kill_ms = 12;
	owner_set_conf(o, conf);
	ck_assert_ptr_eq(upstream_conf_of(o->u), conf);
	ck_assert_ptr_eq(got->spec.name, conf->name);
	ck_assert_uint_eq(got->backoff.base_ms, 7);
	ck_assert_uint_eq(got->backoff.max_ms, 8);
	ck_assert_uint_eq(got->backoff.budget, 9);
	ck_assert_uint_eq(got->backoff.stable_ms, 10);
	ck_assert_uint_eq(got->ladder.term_ms, 11);
	ck_assert_uint_eq(got->ladder.kill_ms, 12);
	ck_assert_int_eq(ucall_try(o, &b, CALL, NULL), MV_BUSY);
	fake_loop_advance(o->loop, 99);
	ck_assert_uint_eq(a.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&a, MV_TIMEOUT, "");
	uowner_free(o);
}
END_TEST

START_TEST(sleep_is_live)
{
	struct uowner *o = owner_ready();
	struct upstream_conf *conf = upstream_conf_new("alpha");

	fake_loop_advance(o->loop, 10000);
	conf->era = ERA_LEGACY;
	conf->start = START_ON_USE;
	conf->idle_stop_ms = 10001;
	owner_set_conf(o, conf);
	fake_loop_settle(o->loop);
	check_state(o, UPSTREAM_ST_READY);
	fake_loop_advance(o->loop, 1);
	check_state(o, UPSTREAM_ST_ASLEEP);
	/* Eager from now on: it comes back by itself. */
	conf = upstream_conf_new("alpha");
	conf->era = ERA_LEGACY;
	owner_set_conf(o, conf);
	check_state(o, UPSTREAM_ST_WAKING);
	uowner_die(o);
	check_state(o, UPSTREAM_ST_INIT);
	uowner_free(o);
}
END_TEST

START_TEST(stop_keeps_its_ladder)
{
	static const struct child_ladder hurry = {
	    .term_ms = 200, .kill_ms = 500, .drain_ms = 100};
	struct uowner *o = owner_ready();
	struct upstream_conf *conf = upstream_conf_new("alpha");

	upstream_stop(o->u, &hurry);
	owner_set_conf(o, conf);
	ck_assert_uint_eq(fake_child_ladder(o->u->child)->term_ms, 200);
	uowner_free(o);
}
END_TEST

/* ---- bounds ---- */

START_TEST(queue_has_the_conf_s_bounds)
{
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct ucall a = {.done = 0}, b = {.done = 0},
		     c = {.arguments = ",\"x\":\"yyyy\""};

	o->conf->queue_calls = 2;
	o->conf->queue_bytes = 2 * strlen(CALL CLIENT_INFO) + 3;
	uowner_start(o);
	ucall_send(o, &a, CALL);
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_BUSY); /* what is put counts */
	ck_assert_int_eq(ucall_try(o, &b, CALL, "\"tttt\""), MV_BUSY);
	ucall_send(o, &b, CALL);
	c.arguments = NULL;
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_BUSY);
	ck_assert_uint_eq(upstream_stats(o->u).held_bytes, 2 * strlen(CALL CLIENT_INFO));
	ck_assert_uint_eq(upstream_stats(o->u).busy, 3);
	uowner_free(o);
}
END_TEST

/* One that does not read fills up its own queue and no more. */
START_TEST(unread_output_is_bounded)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.done = 0}, b = {.done = 0};

	o->conf->queue_bytes = 1000;
	fake_link_set_pending(o->u->link, 1000 - strlen(CALL));
	ucall_send(o, &a, CALL);
	fake_link_set_pending(o->u->link, 1000 - strlen(CALL) + 1);
	ck_assert_int_eq(ucall_try(o, &b, CALL, NULL), MV_BUSY);
	ck_assert_uint_eq(upstream_stats(o->u).out_bytes, 1000 - strlen(CALL) + 1);
	/* One that is read takes a single message of any size. */
	fake_link_set_pending(o->u->link, 0);
	o->conf->queue_bytes = 1;
	ucall_send(o, &b, CALL);
	uowner_free(o);
}
END_TEST

/* A tool may have limits of its own. */
START_TEST(limits_of_one_call)
{
	struct uowner *o = owner_ready();
	struct ucall a = {.req.call_ms = 50}, b = {.req.call_ms = 500000};
	struct ucall c = {.req.call_max_ms = 70};

	ucall_send(o, &a, CALL);
	ucall_send(o, &b, CALL);
	ucall_send(o, &c, CALL);
	fake_loop_advance(o->loop, 50);
	check_failed(&a, MV_TIMEOUT, "");
	ck_assert_uint_eq(c.done, 0);
	fake_loop_advance(o->loop, 20);
	check_failed(&c, MV_TIMEOUT, "");
	fake_loop_advance(o->loop, 499929);
	ck_assert_uint_eq(b.done, 0);
	fake_loop_advance(o->loop, 1);
	check_failed(&b, MV_TIMEOUT, "");
	uowner_free(o);
}
END_TEST

/* ---- arguments ---- */

static const struct {
	const char *in, *arguments, *out; /* params */
} edits[] = {
    {"{\"name\":\"t\",\"arguments\":{\"a\":1}}", "{\"a\":2}",
	"{\"name\":\"r\",\"arguments\":{\"a\":2}}"},
    {"{\"arguments\":[ ] ,\"name\":\"t\"}", "{}", "{\"arguments\":{} ,\"name\":\"r\"}"},
    {"{\"name\":\"t\"}", ",\"arguments\":{\"a\":2}",
	"{\"name\":\"r\",\"arguments\":{\"a\":2}}"},
    {"{\"name\":\"t\" , \"x\":1}", ",\"arguments\":{}",
	"{\"name\":\"r\",\"arguments\":{} , \"x\":1}"},
    /* Next to what is cut for a legacy upstream. */
    {"{\"name\":\"t\",\"requestState\":\"s\"}", ",\"arguments\":{}",
	"{\"name\":\"r\",\"arguments\":{}}"},
    {"{\"requestState\":\"s\",\"arguments\":{\"a\":1},\"inputResponses\":{},\"name\":"
     "\"t\"}",
	"{}", "{\"arguments\":{},\"name\":\"r\"}"},
};
#define N_EDITS ((int)(sizeof(edits) / sizeof(edits[0])))

START_TEST(arguments_are_replaced)
{
	static const char frame[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":%s}";
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct ucall c = {.arguments = edits[_i].arguments};
	struct buf in, out;

	buf_init(&in, 1000);
	buf_init(&out, 1000);
	buf_addf(&in, frame, "1", edits[_i].in);
	buf_addf(&out, frame, "2", edits[_i].out);
	uowner_start(o);
	(void)uowner_heard_request("initialize");
	/* Held, so that it goes out from a copy. */
	ck_assert_int_eq(ucall_try(o, &c, buf_cstr(&in), "\"r\""), MV_OK);
	uowner_answer(o, 1, IS_LEGACY);
	uowner_heard(INITIALIZED);
	uowner_heard(buf_cstr(&out));
	upstream_cancel(&c.req, NULL);
	uowner_heard(CANCELLED(2));
	/* And straight. */
	ck_assert_int_eq(ucall_try(o, &c, buf_cstr(&in), "\"r\""), MV_OK);
	strstr(out.data, "\"id\":2")[5] = '3';
	uowner_heard(buf_cstr(&out));
	buf_fini(&in);
	buf_fini(&out);
	uowner_free(o);
}
END_TEST

START_TEST(no_memory_for_a_copy)
{
	struct uowner *o = uowner_new(ERA_LEGACY);
	struct ucall c = {.arguments = ",\"arguments\":{}"};

	uowner_start(o);
	mem_fail_at(1, 0);
	ck_assert_int_eq(ucall_try(o, &c, CALL, "\"r\""), MV_NOMEM);
	mem_fail_at(0, 0);
	ck_assert_uint_eq(upstream_stats(o->u).held_bytes, 0);
	ck_assert_uint_eq(upstream_stats(o->u).failed, 1);
	uowner_free(o);
}
END_TEST

/* ---- figures ---- */

START_TEST(figures)
{
	struct uowner *o = owner_ready();
	struct ucall c[7] = {{.done = 0}};
	struct upstream_stats s;

	fake_link_forget_all();
	for (unsigned i = 0; i < 6; i++)
		ucall_send(o, &c[i], CALL);
	uowner_answer(o, 2, "{}");
	uowner_answer(o, 3, "{\"isError\":true}");
	uowner_refuse(o, 4, "-32602");
	upstream_cancel(&c[3].req, NULL);
	fake_loop_advance(o->loop, o->conf->call_ms); /* c[4], c[5] */
	uowner_say(o, "%s", "no JSON");
	upstream_note_busy(o->u);
	ucall_send(o, &c[6], CALL);
	s = upstream_stats(o->u);
	ck_assert_uint_eq(s.calls, 8);
	ck_assert_uint_eq(s.returned, 3);
	ck_assert_uint_eq(s.rpc_errors, 1);
	ck_assert_uint_eq(s.tool_errors, 1);
	ck_assert_uint_eq(s.failed, 3);
	ck_assert_uint_eq(s.timeouts, 2);
	ck_assert_uint_eq(s.busy, 1);
	ck_assert_uint_eq(s.cancelled, 1);
	ck_assert_uint_eq(s.noise_lines, 1);
	ck_assert_uint_eq(
	    s.calls, s.returned + s.failed + s.cancelled + upstream_in_flight(o->u));
	ck_assert_uint_eq(s.restarts, 0);
	ck_assert_uint_eq(s.state_ms, o->conf->call_ms);
	ck_assert_int_eq(s.pid, child_pid(o->u->child));
	uowner_die(o);
	s = upstream_stats(o->u);
	ck_assert_uint_eq(s.failed, 4);
	ck_assert_uint_eq(s.state_ms, 0);
	ck_assert_int_eq(s.pid, 0);
	ck_assert_uint_eq(s.next_ms, child_next_ms(o->u->child));
	uowner_free(o);
}
END_TEST

/* ---- servers that do not read ---- */

#define HINT " before it answered: does it read standard input? (docker run needs -i)"
START_TEST(silent_ends_have_a_hint)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	fake_child_set_budget(o->u->child, 3);
	uowner_start(o);
	fake_child_die(o->u->child, "exited with status 0"); /* excused */
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_RUNNING);
	fake_child_die(o->u->child, "exited with status 0; last on stderr: \"bye\"");
	ck_assert_str_eq(upstream_reason(o->u),
	    "exited with status 0" HINT "; last on stderr: \"bye\"");
	fake_child_pause_over(o->u->child);
	fake_child_die(o->u->child, "exited with status 0");
	ck_assert_str_eq(upstream_reason(o->u), "exited with status 0" HINT);
	fake_child_pause_over(o->u->child);
	fake_child_die(o->u->child, "exited with status 0");
	check_state(o, UPSTREAM_ST_PARKED);
	ck_assert(uowner_log_has(o, "docker run needs -i"));
	uowner_free(o);
}
END_TEST

START_TEST(others_have_none)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	for (unsigned i = 0; i < 4; i++) {
		/* A message, or another status, is a sign of life. */
		if (i == 1)
			uowner_say(o, "%s",
			    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
		fake_child_die(o->u->child,
		    i == 3 ? "exited with status 1" : "exited with status 0");
		ck_assert_ptr_null(strstr(upstream_reason(o->u), "docker"));
		fake_child_pause_over(o->u->child);
	}
	uowner_free(o);
}
END_TEST

static void
suite_add_all(TCase *tc)
{
	tcase_add_test(tc, restart_of_a_ready_one);
	tcase_add_test(tc, restart_while_starting);
	tcase_add_loop_test(tc, restart_of_one_at_rest, 0, 3);
	tcase_add_test(tc, broken_has_nothing_to_restart);
	tcase_add_test(tc, limits_are_live);
	tcase_add_test(tc, sleep_is_live);
	tcase_add_test(tc, stop_keeps_its_ladder);
	tcase_add_test(tc, queue_has_the_conf_s_bounds);
	tcase_add_test(tc, unread_output_is_bounded);
	tcase_add_test(tc, limits_of_one_call);
	tcase_add_loop_test(tc, arguments_are_replaced, 0, N_EDITS);
	tcase_add_test(tc, no_memory_for_a_copy);
	tcase_add_test(tc, figures);
	tcase_add_test(tc, silent_ends_have_a_hint);
	tcase_add_test(tc, others_have_none);
}

int
main(void)
{
	Suite *s = suite_create("upstream_control");
	TCase *tc = tcase_create("control");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	suite_add_all(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
