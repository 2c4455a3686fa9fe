/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* A remote upstream that is ready: what it is sent, what it says, what it contradicts. */
#include "remote_rig.h"

#define MESSAGE "{\"content\":[]}"
#define TOOLS	"{\"tools\":{\"listChanged\":true}}"

/* ---- failures of single requests ---- */

static const struct {
	enum mv_err err;
	int status;
	enum mv_err told;
	const char *detail;
} failures[] = {
    {MV_CLOSED, 0, MV_CLOSED, "tools.example:7001: no way"},
    {MV_PROTOCOL, 200, MV_PROTOCOL, "tools.example:7001: status 200"},
    {MV_TOO_LONG, 200, MV_PROTOCOL, "tools.example:7001: status 200"},
    {MV_HTTP, 429, MV_HTTP, "tools.example:7001: status 429"},
    {MV_HTTP, 500, MV_HTTP, "tools.example:7001: status 500"},
    {MV_HTTP, 503, MV_HTTP, "tools.example:7001: status 503"},
};

START_TEST(one_call_fails_alone)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c[2] = {{.done = 0}, {.done = 0}};
	uint64_t first;

	be_modern(o, "{}");
	ucall_send(o, &c[0], CALL);
	first = server_heard("tools/call")->id;
	ucall_send(o, &c[1], CALL);
	fake_http_fail(
	    fake_http_last(), first, failures[_i].err, failures[_i].status, NULL);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(c[0].done, 1);
	ck_assert_int_eq(c[0].err, failures[_i].told);
	ck_assert_str_eq(c[0].detail, failures[_i].detail);
	ck_assert(uowner_is_ready(o));
	server_answers(server_heard("tools/call")->id, MESSAGE);
	ck_assert_uint_eq(c[1].done, 1);
	ck_assert_int_eq(c[1].kind, OUTCOME_RESULT);
	uowner_free(o);
}
END_TEST

START_TEST(cannot_be_reached_any_more)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c[3] = {{.done = 0}, {.done = 0}, {.done = 0}};

	be_modern(o, "{}");
	ucall_send(o, &c[0], CALL);
	ucall_send(o, &c[1], CALL);
	fake_http_fail(
	    fake_http_last(), server_heard("tools/call")->id, MV_UNREACHABLE, 0, NULL);
	/* What comes in the same turn finds it gone. */
	ck_assert_int_eq(ucall_try(o, &c[2], CALL, NULL), MV_DIED);
	fake_loop_settle(o->loop);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(c[i].done, 1);
		ck_assert_int_eq(c[i].err, MV_UNREACHABLE);
		ck_assert_str_eq(
		    c[i].detail, "tools.example:7001 cannot be reached: no way");
	}
	ck_assert_int_eq(ucall_try(o, &c[2], CALL, NULL), MV_BACKOFF);
	fake_http_forget_all();
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	ucall_send(o, &c[2], CALL);
	be_modern(o, "{}");
	server_answers(server_heard("tools/call")->id, MESSAGE);
	ck_assert_uint_eq(c[2].done, 1);
	uowner_free(o);
}
END_TEST

/* ---- sessions ---- */

START_TEST(session_is_lost)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c[2] = {{.done = 0}, {.done = 0}};
	struct watcher w;
	struct http_link *k;
	uint64_t id;

	o->u->level = MCP_LV_INFO;
	be_legacy(o, "2025-11-25",
	    "{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true}}");
	k = fake_http_last();
	watcher_watch(o, &w, "\"file:///a\"");
	fake_http_forget_all();
	ucall_send(o, &c[0], CALL);
	id = server_heard("tools/call")->id;
	fake_http_lose_session(k);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_INIT);
	ck_assert_uint_eq(c[0].done, 0);
	/* Those that come now wait. */
	ucall_send(o, &c[1], CALL);
	greet_legacy(o, "2025-11-25",
	    "{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true}}");
	ck_assert_ptr_eq(fake_http_last(), k);
	ck_assert_uint_eq(fake_http_renewals(k), 2);
	(void)server_heard("logging/setLevel");
	(void)server_heard("resources/subscribe");
	(void)server_heard("tools/list");
	(void)server_heard("resources/list");
	(void)server_heard("resources/templates/list");
	server_answers(server_heard("tools/call")->id, MESSAGE);
	server_heard(NULL);
	ck_assert_uint_eq(c[1].done, 1);
	server_answers(id, MESSAGE);
	ck_assert_uint_eq(c[0].done, 1);
	ck_assert_int_eq(c[0].kind, OUTCOME_RESULT);
	upstream_unwatch(&w.watch);
	uowner_free(o);
}
END_TEST

/* In whatever state of the second greeting. */
START_TEST(session_is_lost_again)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	fake_http_forget_all();
	fake_http_lose_session(fake_http_last());
	if (_i == 1)
		server_answers(server_heard("initialize")->id,
		    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}");
	fake_http_lose_session(fake_http_last());
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u), "loses its session at once");
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

/* A server of another era has taken its place. */
START_TEST(session_is_lost_for_good)
{
	struct uowner *o = uowner_new_of(remote_conf());

	be_legacy(o, "2025-11-25", "{}");
	fake_http_lose_session(fake_http_last());
	server_refuses(server_heard("initialize")->id, "-32601");
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	be_modern(o, "{}");
	uowner_free(o);
}
END_TEST

/* A server that answers initialize with an error may have begun a session all the same,
 * and say later that it is none of its own. */
START_TEST(session_of_no_use_is_lost)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	struct http_link *k;
	uint64_t id;

	upstream_start(o->u);
	k = fake_http_last();
	id = server_heard("server/discover")->id;
	fake_http_give_session(k);
	fake_http_lose_session(k);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PROBE);
	fake_loop_advance(o->loop, o->conf->probe_ms);
	server_refuses(server_heard("initialize")->id, "-32602");
	fake_http_give_session(k);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_LATE);
	fake_http_lose_session(k);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_LATE);
	/* What waits for another one is sent without. */
	ck_assert(!http_link_has_session(k));
	ck_assert_uint_eq(fake_http_renewals(k), 2);
	server_answers(
	    id, "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}");
	ck_assert(uowner_is_ready(o));
	fake_http_lose_session(k);
	ck_assert(uowner_is_ready(o));
	ucall_send(o, &c, CALL);
	server_answers(server_heard("tools/call")->id, MESSAGE);
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

/* As several servers behind one name do. */
START_TEST(sessions_are_lost_one_after_the_other)
{
	struct uowner *o = uowner_new_of(remote_conf());
	bool is_seldom = _i == 1;

	be_legacy(o, "2025-11-25", "{}");
	for (unsigned i = 0; i < 3; i++) {
		fake_http_lose_session(fake_http_last());
		greet_legacy(o, "2025-11-25", "{}");
	}
	fake_loop_advance(o->loop, is_seldom ? 10001 : 9999);
	fake_http_lose_session(fake_http_last());
	fake_loop_settle(o->loop);
	if (is_seldom) {
		greet_legacy(o, "2025-11-25", "{}");
	} else {
		ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
		ck_assert_str_eq(upstream_reason(o->u),
		    "tools.example:7001 loses one session after the other");
	}
	uowner_free(o);
}
END_TEST

/* ---- contradictions ---- */

START_TEST(legacy_one_turns_modern)
{
	static const char *const codes[] = {"-32020", "-32022"};
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	server_refuses(server_heard("tools/call")->id, codes[_i]);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_DIED);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_WAKING);
	fake_loop_settle(o->loop);
	be_modern(o, "{}");
	uowner_free(o);
}
END_TEST

/* One whose tools have errors of these numbers is not started again for each. */
START_TEST(legacy_one_has_such_errors)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};

	be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	server_refuses(server_heard("tools/call")->id, "-32020");
	fake_loop_settle(o->loop);
	be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	server_refuses(server_heard("tools/call")->id, "-32020");
	ck_assert_uint_eq(c.done, 2);
	ck_assert_int_eq(c.kind, OUTCOME_ERROR);
	ck_assert(uowner_is_ready(o));
	uowner_free(o);
}
END_TEST

/* How it answers a call, and then the question whether it is still modern. */
enum doubt_end { STILL_MODERN, NO_ANSWER, OTHER_ERROR, OTHER_STATUS, OTHER_RESULT };
static const struct {
	enum mv_err err; /* of the call; MV_OK: an error with this code */
	int status;
	const char *code;
	enum doubt_end end;
} doubts[] = {
    {MV_HTTP, 400, NULL, STILL_MODERN},
    {MV_HTTP, 400, NULL, NO_ANSWER},
    {MV_HTTP, 400, NULL, OTHER_ERROR},
    {MV_HTTP, 404, NULL, OTHER_STATUS},
    {MV_OK, 0, "-32601", OTHER_RESULT},
    {MV_OK, 0, "-32601", STILL_MODERN},
    {MV_OK, 0, "-32000", OTHER_ERROR},
    {MV_OK, 0, "-32600", OTHER_STATUS},
};

static void
end_doubt(struct http_link *k, uint64_t id, enum doubt_end end)
{
	switch (end) {
	case STILL_MODERN:
		server_answers(id, "{\"supportedVersions\":[\"2026-07-28\"]}");
		break;
	case NO_ANSWER:
		fake_http_fail(k, id, MV_HTTP, 503, NULL);
		break;
	case OTHER_ERROR:
		server_refuses(id, "-32601");
		break;
	case OTHER_STATUS:
		fake_http_fail(k, id, MV_HTTP, 404, NULL);
		break;
	case OTHER_RESULT:
		server_answers(id, "{}");
		break;
	}
}

START_TEST(modern_one_is_doubted)
{
	bool flips = doubts[_i].end > NO_ANSWER;
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	uint64_t id;

	be_modern(o, "{}");
	ucall_send(o, &c, CALL);
	id = server_heard("tools/call")->id;
	if (doubts[_i].err != MV_OK)
		fake_http_fail(
		    fake_http_last(), id, doubts[_i].err, doubts[_i].status, NULL);
	else
		server_refuses(id, doubts[_i].code);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(
	    c.kind, doubts[_i].err != MV_OK ? OUTCOME_FAILED : OUTCOME_ERROR);
	end_doubt(fake_http_last(), server_heard("server/discover")->id, doubts[_i].end);
	fake_loop_settle(o->loop);
	if (flips) {
		be_legacy(o, "2025-11-25", "{}");
	} else {
		ck_assert(uowner_is_ready(o));
		/* Not with every call. */
		ucall_send(o, &c, CALL);
		server_refuses(server_heard("tools/call")->id, "-32601");
		server_heard(NULL);
	}
	uowner_free(o);
}
END_TEST

/* ---- who is meant ---- */

START_TEST(messages_tell_their_call)
{
	static const char log[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
	    "{\"level\":\"info\",\"data\":\"x\"}}";
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c[2] = {{.done = 0}, {.done = 0}};
	uint64_t id[2];
	char text[256];

	be_legacy(o, "2025-11-25", "{\"logging\":{}}");
	for (unsigned i = 0; i < 2; i++) {
		ucall_send(o, &c[i], CALL);
		id[i] = server_heard("tools/call")->id;
	}
	fake_http_say(fake_http_last(), id[1], log);
	ck_assert_uint_eq(c[0].logged, 0);
	ck_assert_uint_eq(c[1].logged, 1);
	ck_assert_uint_eq(o->logs, 0);
	fake_http_say(fake_http_last(), 0, log);
	ck_assert_uint_eq(o->logs, 1);
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
	    "{\"progressToken\":%llu,\"progress\":1}}",
	    (unsigned long long)id[0]);
	fake_http_say(fake_http_last(), id[0], text);
	ck_assert_uint_eq(c[0].progressed, 1);
	/* It is over when its answer has come. */
	server_answers(id[0], MESSAGE);
	fake_http_say(fake_http_last(), id[0], log);
	ck_assert_uint_eq(c[0].logged, 0);
	ck_assert_uint_eq(o->logs, 2);
	server_answers(id[1], MESSAGE);
	uowner_free(o);
}
END_TEST

START_TEST(batch_ends_its_call)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	char text[512];
	uint64_t id;

	be_legacy(o, "2025-03-26", "{\"logging\":{}}");
	ucall_send(o, &c, CALL);
	id = server_heard("tools/call")->id;
	(void)snprintf(text, sizeof(text),
	    "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
	    "{\"level\":\"info\",\"data\":1}},"
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{}},"
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
	    "{\"level\":\"info\",\"data\":2}}]",
	    (unsigned long long)id);
	fake_http_say(fake_http_last(), id, text);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_uint_eq(c.logged, 1);
	ck_assert_uint_eq(o->logs, 1);
	uowner_free(o);
}
END_TEST

START_TEST(cancel_is_told_in_its_way)
{
	struct uowner *o = uowner_new_of(remote_conf());
	struct ucall c = {0};
	uint64_t id;

	if (_i == 0)
		be_modern(o, "{}");
	else
		be_legacy(o, "2025-11-25", "{}");
	ucall_send(o, &c, CALL);
	id = server_heard("tools/call")->id;
	if (_i < 2)
		upstream_cancel(&c.req, NULL);
	else
		fake_loop_advance(o->loop, o->conf->call_ms);
	ck_assert_uint_eq(fake_http_cancelled(fake_http_last()), id);
	if (_i != 0)
		(void)server_heard("notifications/cancelled");
	server_heard(NULL);
	uowner_free(o);
}
END_TEST

/* ---- the listen ---- */

START_TEST(listen_is_opened_again)
{
	static const enum mv_err errs[] = {MV_CLOSED, MV_CLOSED, MV_HTTP, MV_NOMEM};
	struct uowner *o = uowner_new_of(remote_conf());
	char text[512];
	uint64_t id;

	be_modern(o, TOOLS);
	id = server_heard("subscriptions/listen")->id;
	(void)server_heard("tools/list");
	if (_i == 0) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":"
		    "\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{"
		    "\"io.modelcontextprotocol/subscriptionId\":%llu},\"notifications\":{"
		    "\"toolsListChanged\":true}}}",
		    (unsigned long long)id);
		fake_http_say(fake_http_last(), id, text);
	}
	fake_http_fail(
	    fake_http_last(), id, errs[_i], errs[_i] == MV_HTTP ? 503 : 0, NULL);
	fake_loop_advance(o->loop, 999);
	server_heard(NULL);
	/* One that was never opened is tried more and more seldom. */
	fake_loop_advance(o->loop, _i == 0 ? 1 : 1001);
	ck_assert_str_eq(server_heard("subscriptions/listen")->lines,
	    "MCP-Protocol-Version: 2026-07-28\nMcp-Method: subscriptions/listen\n");
	uowner_free(o);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("upstream_remote_talk");
	TCase *tc = tcase_create("talk");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, one_call_fails_alone, 0, ROWS(failures));
	tcase_add_test(tc, cannot_be_reached_any_more);
	tcase_add_test(tc, session_is_lost);
	tcase_add_loop_test(tc, session_is_lost_again, 0, 2);
	tcase_add_test(tc, session_is_lost_for_good);
	tcase_add_test(tc, session_of_no_use_is_lost);
	tcase_add_loop_test(tc, sessions_are_lost_one_after_the_other, 0, 2);
	tcase_add_loop_test(tc, legacy_one_turns_modern, 0, 2);
	tcase_add_test(tc, legacy_one_has_such_errors);
	tcase_add_loop_test(tc, modern_one_is_doubted, 0, ROWS(doubts));
	tcase_add_test(tc, messages_tell_their_call);
	tcase_add_test(tc, batch_ends_its_call);
	tcase_add_loop_test(tc, cancel_is_told_in_its_way, 0, 3);
	tcase_add_loop_test(tc, listen_is_opened_again, 0, 4);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
