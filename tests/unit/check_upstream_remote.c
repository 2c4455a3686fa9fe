/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* The life of a remote upstream: era and transport found, lost, tried again, refused. */
#include "remote_rig.h"

/* ---- which era ---- */

START_TEST(finds_a_modern_one)
{
	struct uowner *o = uowner_new_of(remote_conf());
	const struct fake_posted *m;

	ck_assert(upstream_is_remote(o->u) && upstream_tells_calls(o->u));
	upstream_start(o->u);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PROBE);
	m = server_heard("server/discover");
	ck_assert_str_eq(
	    m->lines, "MCP-Protocol-Version: 2026-07-28\nMcp-Method: server/discover\n");
	ck_assert(!m->is_initialize && m->id == 1);
	server_answers(1, "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"
			  "\"tools\":{\"listChanged\":true}}}");
	ck_assert(uowner_is_ready(o));
	ck_assert_int_eq(o->u->known_era, ERA_MODERN);
	ck_assert_int_eq(o->u->known_transport, TRANSPORT_STREAMABLE);
	ck_assert_str_eq(fake_http_revision(fake_http_last()), "");
	ck_assert(!fake_http_has_stream(fake_http_last()));
	uowner_free(o);
}
END_TEST

/* What becomes of a server/discover that fails so. */
static const struct {
	enum mv_err err;
	int status;
	bool is_legacy; /* else it is a death */
	const char *reason;
} discover_failures[] = {
    {MV_HTTP, 400, true, NULL},
    {MV_HTTP, 404, true, NULL},
    {MV_HTTP, 405, true, NULL},
    {MV_HTTP, 406, true, NULL},
    {MV_HTTP, 415, true, NULL},
    {MV_HTTP, 500, true, NULL},
    {MV_HTTP, 501, true, NULL},
    {MV_PROTOCOL, 200, true, NULL},
    {MV_HTTP, 302, false, "tools.example:7001: status 302"},
    {MV_HTTP, 408, false, "tools.example:7001: status 408"},
    {MV_HTTP, 429, false, "tools.example:7001: status 429"},
    {MV_HTTP, 502, false, "tools.example:7001: status 502"},
    {MV_HTTP, 503, false, "tools.example:7001: status 503"},
    {MV_CLOSED, 0, false, "tools.example:7001: no way"},
    {MV_UNREACHABLE, 0, false, "tools.example:7001 cannot be reached: no way"},
};

START_TEST(discover_fails)
{
	struct uowner *o = uowner_new_of(remote_conf());

	upstream_start(o->u);
	fake_http_fail(fake_http_last(), server_heard("server/discover")->id,
	    discover_failures[_i].err, discover_failures[_i].status, NULL);
	fake_loop_settle(o->loop);
	if (discover_failures[_i].is_legacy) {
		greet_legacy(o, "2025-11-25", "{}");
		ck_assert_int_eq(o->u->known_era, ERA_LEGACY);
	} else {
		ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
		ck_assert_str_eq(upstream_reason(o->u), discover_failures[_i].reason);
		ck_assert_uint_eq(o->settled, 1);
		ck_assert_uint_gt(upstream_stats(o->u).next_ms, 0);
		server_heard(NULL);
		fake_loop_advance(o->loop, o->conf->restart_base_ms);
		be_modern(o, "{}");
	}
	uowner_free(o);
}
END_TEST

/* Errors with a body; the last two name no request. */
static const struct {
	const char *text, *next;
} discover_errors[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"m\"}}",
	"initialize"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"m\","
     "\"data\":"
     "{\"supported\":[\"2026-07-28\"]}}}",
	"server/discover"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"m\","
     "\"data\":"
     "{\"supported\":[\"2025-11-25\"]}}}",
	"initialize"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}",
	"initialize"},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32022,\"message\":\"m\",\"data\":"
     "{\"supported\":[\"2026-07-28\"]}}}",
	"server/discover"},
};

START_TEST(discover_is_refused)
{
	struct uowner *o = uowner_new_of(remote_conf());

	upstream_start(o->u);
	(void)server_heard("server/discover");
	fake_http_say(fake_http_last(), 1, discover_errors[_i].text);
	fake_http_fail(fake_http_last(), 1, MV_HTTP, 400, NULL); /* over, for the link */
	(void)server_heard(discover_errors[_i].next);
	server_heard(NULL);
	uowner_free(o);
}
END_TEST

START_TEST(silence_makes_it_be_asked_twice)
{
	struct uowner *o = uowner_new_of(remote_conf());

	upstream_start(o->u);
	(void)server_heard("server/discover");
	fake_loop_advance(o->loop, o->conf->probe_ms);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_BOTH);
	if (_i == 0) {
		/* The answer comes late, and what else was asked is given up. */
		(void)server_heard("initialize");
		server_answers(1, "{\"supportedVersions\":[\"2026-07-28\"],"
				  "\"capabilities\":{}}");
		ck_assert_uint_eq(fake_http_cancelled(fake_http_last()), 2);
	} else {
		greet_legacy(o, "2025-06-18", "{}");
		ck_assert_uint_eq(fake_http_cancelled(fake_http_last()), 1);
	}
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

START_TEST(no_answer_at_all)
{
	struct uowner *o = uowner_new_of(remote_conf());

	upstream_start(o->u);
	fake_loop_advance(o->loop, o->conf->start_ms);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u), "not ready within 60000 ms of its start");
	uowner_free(o);
}
END_TEST

START_TEST(pinned_to_modern)
{
	struct upstream_conf *c = remote_conf();
	struct uowner *o;

	c->era = ERA_MODERN;
	o = uowner_new_of(c);
	upstream_start(o->u);
	fake_http_fail(
	    fake_http_last(), server_heard("server/discover")->id, MV_HTTP, 404, NULL);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "pinned to modern"));
	uowner_free(o);
}
END_TEST

/* ---- legacy ---- */

START_TEST(greets_a_legacy_one)
{
	static const struct {
		const char *revision, *header;
	} rows[] = {{"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"},
	    {"2025-03-26", ""}, {"2024-11-05", ""}};
	struct uowner *o = uowner_new_of(remote_conf());

	be_legacy(o, rows[_i].revision, "{\"tools\":{}}");
	ck_assert_str_eq(fake_http_revision(fake_http_last()), rows[_i].header);
	ck_assert(fake_http_has_stream(fake_http_last()));
	ck_assert_str_eq(server_heard("tools/list")->lines, "");
	uowner_free(o);
}
END_TEST

START_TEST(refused_word_is_no_obstacle)
{
	struct uowner *o = uowner_new_of(remote_conf());

	upstream_start(o->u);
	fake_http_fail(
	    fake_http_last(), server_heard("server/discover")->id, MV_HTTP, 400, NULL);
	server_answers(server_heard("initialize")->id,
	    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}");
	fake_http_note_fail(fake_http_last(), MV_HTTP, 400);
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

/* Changes are told on its stream: no list is asked for before that is there, or late. */
START_TEST(stream_comes_before_lists)
{
	struct uowner *o = uowner_new_of(remote_conf());

	fake_http_slow_streams(true);
	upstream_start(o->u);
	fake_http_fail(
	    fake_http_last(), server_heard("server/discover")->id, MV_HTTP, 400, NULL);
	server_answers(server_heard("initialize")->id,
	    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}");
	fake_http_note_taken(fake_http_last());
	ck_assert(fake_http_has_stream(fake_http_last()));
	ck_assert(!uowner_is_ready(o));
	if (_i == 0)
		fake_http_stream(fake_http_last());
	else
		fake_loop_advance(o->loop, 1000);
	ck_assert(uowner_is_ready(o));
	fake_http_stream(fake_http_last()); /* told late: nothing more */
	fake_loop_advance(o->loop, 1000);
	fake_http_slow_streams(false);
	uowner_free(o);
}
END_TEST

START_TEST(stop_ends_the_session)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct child_ladder l = {.term_ms = 100};

	be_legacy(o, "2025-11-25", "{}");
	fake_http_give_session(fake_http_last());
	upstream_stop(o->u, &l);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->stopped, 0);
	ck_assert(fake_http_is_ending(fake_http_last()));
	fake_http_ended(fake_http_last());
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->stopped, 1);
	uowner_free(o);
}
END_TEST

START_TEST(restart_ends_the_session_first)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct http_link *k;

	be_legacy(o, "2025-11-25", "{}");
	k = fake_http_last();
	fake_http_give_session(k);
	upstream_restart(o->u, "for the test");
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_WAKING);
	fake_loop_settle(o->loop);
	ck_assert_ptr_eq(fake_http_last(), k);
	fake_http_ended(k);
	fake_loop_settle(o->loop);
	ck_assert_ptr_ne(fake_http_last(), k);
	greet_legacy(o, "2025-11-25", "{}");
	ck_assert_uint_eq(upstream_stats(o->u).restarts, 1);
	uowner_free(o);
}
END_TEST

/* A server that takes its time over the end of its session does not delay ours. */
START_TEST(stop_cuts_a_restart_short)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct child_ladder l = {.term_ms = 100};

	be_legacy(o, "2025-11-25", "{}");
	fake_http_give_session(fake_http_last());
	upstream_restart(o->u, "for the test");
	fake_loop_settle(o->loop);
	upstream_stop(o->u, &l);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->stopped, 1);
	uowner_free(o);
}
END_TEST

/* ---- HTTP with SSE ---- */

static void
be_sse(struct uowner *o, int status)
{
	struct http_link *k;

	upstream_start(o->u);
	k = fake_http_last();
	fake_http_fail(k, server_heard("server/discover")->id, MV_HTTP, 404, NULL);
	fake_http_fail(k, server_heard("initialize")->id, MV_HTTP, status, NULL);
	ck_assert_int_eq(fake_http_mode(k), HTTP_MODE_SSE);
	server_heard(NULL);
	fake_http_endpoint(k, MV_OK, 0);
	greet_legacy(o, "2024-11-05", "{\"tools\":{}}");
	ck_assert_int_eq(o->u->known_transport, TRANSPORT_SSE);
	ck_assert(!upstream_tells_calls(o->u));
	ck_assert(!fake_http_has_stream(k));
}

START_TEST(finds_the_old_transport)
{
	static const int statuses[] = {400, 404, 405};
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_sse(o, statuses[_i]);
	(void)server_heard("tools/list");
	ucall_send(o, &c, CALL);
	server_says(0, server_heard("tools/call")->id, "{\"content\":[]}");
	ck_assert_uint_eq(c.done, 1);
	/* Its stream is its life. */
	fake_http_endpoint(fake_http_last(), MV_CLOSED, 0);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_str_eq(
	    upstream_reason(o->u), "tools.example:7001 ended its event stream: no way");
	/* It is remembered. */
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	ck_assert_int_eq(fake_http_mode(fake_http_last()), HTTP_MODE_SSE);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_INIT);
	server_heard(NULL);
	fake_http_endpoint(fake_http_last(), MV_OK, 0);
	greet_legacy(o, "2024-11-05", "{}");
	uowner_free(o);
}
END_TEST

START_TEST(speaks_neither)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct http_link *k;

	upstream_start(o->u);
	k = fake_http_last();
	fake_http_fail(k, server_heard("server/discover")->id, MV_HTTP, 404, NULL);
	fake_http_fail(k, server_heard("initialize")->id, MV_HTTP, 404, NULL);
	fake_http_endpoint(k, MV_HTTP, 405);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u),
	    "tools.example:7001 speaks no MCP: POST: status 404; GET: status 405");
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	(void)server_heard("server/discover");
	uowner_free(o);
}
END_TEST

/* One that was known to speak the old transport has been replaced. */
START_TEST(old_transport_is_gone)
{
	struct uowner *o = uowner_new_of(remote_conf());

	be_sse(o, 404);
	upstream_restart(o->u, "for the test");
	fake_http_forget_all();
	fake_loop_settle(o->loop);
	ck_assert_int_eq(fake_http_mode(fake_http_last()), HTTP_MODE_SSE);
	fake_http_endpoint(fake_http_last(), MV_HTTP, 404);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	be_modern(o, "{}");
	ck_assert_int_eq(o->u->known_transport, TRANSPORT_STREAMABLE);
	uowner_free(o);
}
END_TEST

START_TEST(pinned_transport)
{
	struct upstream_conf *c = remote_conf();
	struct uowner *o;

	c->transport = _i == 0 ? TRANSPORT_SSE : TRANSPORT_STREAMABLE;
	o = uowner_new_of(c);
	upstream_start(o->u);
	if (_i == 0) {
		server_heard(NULL);
		fake_http_endpoint(fake_http_last(), MV_HTTP, 404);
		fake_loop_settle(o->loop);
		ck_assert_str_eq(upstream_reason(o->u), "tools.example:7001: status 404");
		fake_loop_advance(o->loop, o->conf->restart_base_ms);
		ck_assert_int_eq(fake_http_mode(fake_http_last()), HTTP_MODE_SSE);
	} else {
		fake_http_fail(fake_http_last(), server_heard("server/discover")->id,
		    MV_HTTP, 404, NULL);
		fake_http_fail(
		    fake_http_last(), server_heard("initialize")->id, MV_HTTP, 404, NULL);
		ck_assert_int_eq(fake_http_mode(fake_http_last()), HTTP_MODE_STREAMABLE);
		fake_loop_settle(o->loop);
		ck_assert_str_eq(upstream_reason(o->u),
		    "tools.example:7001 refused initialize: status 404");
	}
	uowner_free(o);
}
END_TEST

/* ---- back-off ---- */

START_TEST(is_parked_after_its_budget)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	upstream_start(o->u);
	for (unsigned i = 0; i < o->conf->restart_limit; i++) {
		ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PROBE);
		fake_http_fail(fake_http_last(), server_heard("server/discover")->id,
		    MV_UNREACHABLE, 0, NULL);
		fake_loop_settle(o->loop);
		(void)fake_loop_advance_to_timer(o->loop);
	}
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_PARKED);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "cannot be reached"));
	upstream_wake(o->u);
	be_modern(o, "{}");
	uowner_free(o);
}
END_TEST

START_TEST(cannot_speak_http)
{
	struct uowner *o = uowner_new_of(remote_conf());

	fake_curl_refuse(true);
	upstream_start(o->u);
	fake_loop_settle(o->loop);
	fake_curl_refuse(false);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u), "cannot speak HTTP: no such library");
	uowner_free(o);
}
END_TEST

START_TEST(sleeps_and_wakes)
{
	struct upstream_conf *conf = remote_conf();
	struct ucall c = {0};
	struct uowner *o;

	conf->idle_stop_ms = 1000;
	o = uowner_new_of(conf);
	be_modern(o, "{}");
	fake_loop_advance(o->loop, 1000);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_ASLEEP);
	ck_assert_uint_eq(fake_http_live(), o->https);
	ucall_send(o, &c, CALL);
	be_modern(o, "{}");
	server_answers(server_heard("tools/call")->id, "{\"content\":[]}");
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

/* ---- memory ---- */

START_TEST(transport_is_remembered)
{
	struct uowner *a = uowner_new_of(remote_conf()), *b;
	struct buf text;

	be_sse(a, 405);
	buf_init(&text, 1u << 20);
	upstream_put_memory(a->u, &text);
	ck_assert_ptr_nonnull(memmem(text.data, text.len, "\"transport\":\"sse\"", 17));
	uowner_free(a);
	b = uowner_new_of(remote_conf());
	ck_assert_int_eq(upstream_take_memory(b->u, text.data, text.len), MV_OK);
	buf_fini(&text);
	ck_assert_int_eq(b->u->known_transport, TRANSPORT_SSE);
	upstream_start(b->u);
	ck_assert_int_eq(fake_http_mode(fake_http_last()), HTTP_MODE_SSE);
	/* What an earlier life of ours has learnt is out of date. */
	fake_http_endpoint(fake_http_last(), MV_HTTP, 405);
	ck_assert_int_eq(upstream_state(b->u), UPSTREAM_ST_PROBE);
	be_modern(b, "{}");
	uowner_free(b);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("upstream_remote");
	TCase *tc = tcase_create("life");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, finds_a_modern_one);
	tcase_add_loop_test(tc, discover_fails, 0, ROWS(discover_failures));
	tcase_add_loop_test(tc, discover_is_refused, 0, ROWS(discover_errors));
	tcase_add_loop_test(tc, silence_makes_it_be_asked_twice, 0, 2);
	tcase_add_test(tc, no_answer_at_all);
	tcase_add_test(tc, pinned_to_modern);
	tcase_add_loop_test(tc, greets_a_legacy_one, 0, 4);
	tcase_add_test(tc, refused_word_is_no_obstacle);
	tcase_add_loop_test(tc, stream_comes_before_lists, 0, 2);
	tcase_add_test(tc, stop_ends_the_session);
	tcase_add_test(tc, restart_ends_the_session_first);
	tcase_add_test(tc, stop_cuts_a_restart_short);
	tcase_add_loop_test(tc, finds_the_old_transport, 0, 3);
	tcase_add_test(tc, speaks_neither);
	tcase_add_test(tc, old_transport_is_gone);
	tcase_add_loop_test(tc, pinned_transport, 0, 2);
	tcase_add_test(tc, is_parked_after_its_budget);
	tcase_add_test(tc, cannot_speak_http);
	tcase_add_test(tc, sleeps_and_wakes);
	tcase_add_test(tc, transport_is_remembered);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
