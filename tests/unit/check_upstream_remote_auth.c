/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Credentials of a remote upstream: refused, looked at again, not there. */
#include "remote_rig.h"

/* ---- credentials ---- */

static char g_token[64]; /* "": there is none */

static bool
put_token(const struct upstream_conf *c, struct buf *out, struct mv_errtext *why)
{
	(void)c;
	if (g_token[0] == '\0') {
		mv_errtext_set(why, "TOKEN is not set");
		return false;
	}
	buf_addf(out, "Authorization: Bearer %s", g_token);
	buf_add_char(out, '\0');
	return true;
}

static struct uowner *
owner_with_token(const char *token)
{
	struct upstream_conf *c = remote_conf();

	c->put_headers = put_token;
	(void)snprintf(g_token, sizeof(g_token), "%s", token);
	return uowner_new_of(c);
}

#define CHALLENGE                                                                        \
	"Bearer realm=\"a b\", error=\"invalid_token\", nonce=\"n\", "                   \
	"resource_metadata=\"https://tools.example/x\", scope=\"r\x1b w\", Basic"

static void
refuse(struct uowner *o, int status)
{
	fake_http_fail(fake_http_last(), server_heard("server/discover")->id, MV_AUTH,
	    status, CHALLENGE);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
}

START_TEST(credentials_are_refused)
{
	static const int statuses[] = {401, 403};
	struct uowner *o = owner_with_token("old");
	struct ucall c = {0};
	char reason[512];

	upstream_start(o->u);
	ck_assert_str_eq(
	    fake_http_headers(fake_http_last()), "Authorization: Bearer old\n");
	refuse(o, statuses[_i]);
	(void)snprintf(reason, sizeof(reason),
	    "tools.example:7001 refused our credentials: status %d scheme=\"Bearer\" "
	    "realm=\"a b\" error=\"invalid_token\" "
	    "resource_metadata=\"https://tools.example/x\" scope=\"r\\x1b w\" "
	    "scheme=\"Basic\"",
	    statuses[_i]);
	ck_assert_str_eq(upstream_reason(o->u), reason);
	/* What the header says is for the operator. */
	(void)snprintf(reason, sizeof(reason),
	    "tools.example:7001 refused our credentials: status %d", statuses[_i]);
	ck_assert_str_eq(upstream_told(o->u), reason);
	ck_assert(uowner_log_has(o, "parked"));
	ck_assert(!uowner_log_has(o, "Bearer old"));
	o->log_len = 0;
	o->log[0] = '\0';
	/* Nobody asks again with the same. */
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_AUTH);
	fake_loop_advance(o->loop, 60000);
	ck_assert_uint_eq(fake_http_live(), o->https);
	ck_assert_str_eq(o->log, "");
	uowner_free(o);
}
END_TEST

enum healing { BY_CALL, BY_TIME, BY_RELOAD, BY_RESTART, HEALINGS };

START_TEST(credentials_are_better_now)
{
	struct uowner *o = owner_with_token("old");
	struct ucall c = {0};

	upstream_start(o->u);
	refuse(o, 401);
	if (_i == BY_CALL || _i == BY_TIME)
		(void)snprintf(g_token, sizeof(g_token), "new");
	switch ((enum healing)_i) {
	case BY_CALL:
		ucall_send(o, &c, CALL);
		break;
	case BY_TIME:
		fake_loop_advance(o->loop, 5000);
		break;
	case BY_RELOAD:
		upstream_set_conf(o->u, o->conf);
		break;
	case BY_RESTART:
		upstream_restart(o->u, "for the test");
		break;
	case HEALINGS:
		break;
	}
	be_modern(o, "{}");
	if (_i == BY_CALL)
		server_answers(server_heard("tools/call")->id, "{\"content\":[]}");
	ck_assert_uint_eq(c.done, _i == BY_CALL);
	uowner_free(o);
}
END_TEST

START_TEST(credentials_are_not_there)
{
	struct uowner *o = owner_with_token("");

	upstream_start(o->u);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "TOKEN is not set"));
	(void)snprintf(g_token, sizeof(g_token), "new");
	fake_loop_advance(o->loop, 5000);
	be_modern(o, "{}");
	uowner_free(o);
}
END_TEST

/* It may be the ones of before that were refused. */
START_TEST(credentials_change_meanwhile)
{
	struct uowner *o = owner_with_token("old");
	struct ucall c[2] = {{.done = 0}, {.done = 0}};
	uint64_t id;

	be_modern(o, "{}");
	ucall_send(o, &c[0], CALL);
	id = server_heard("tools/call")->id;
	(void)snprintf(g_token, sizeof(g_token), "new");
	ucall_send(o, &c[1], CALL);
	fake_http_fail(fake_http_last(), id, MV_AUTH, 401, NULL);
	fake_http_forget_all();
	fake_loop_settle(o->loop);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_DOWN);
	ck_assert_uint_eq(c[0].done + c[1].done, 2);
	fake_loop_advance(o->loop, o->conf->restart_base_ms);
	refuse(o, 401);
	uowner_free(o);
}
END_TEST

/* 401 is about us; 403 may be about that one tool. */
START_TEST(a_call_is_refused)
{
	struct uowner *o = owner_with_token("old");
	struct ucall c = {0};

	be_modern(o, "{}");
	ucall_send(o, &c, CALL);
	fake_http_fail(fake_http_last(), server_heard("tools/call")->id, MV_AUTH,
	    _i == 0 ? 403 : 401, CHALLENGE);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_AUTH);
	ck_assert_int_eq(
	    upstream_state(o->u), _i == 0 ? UPSTREAM_ST_READY : UPSTREAM_ST_PARKED);
	uowner_free(o);
}
END_TEST

/* Nor is a resource that one client may not watch. */
START_TEST(a_subscription_is_refused)
{
	struct uowner *o = owner_with_token("old");
	struct watcher w;

	be_legacy(o, "2025-11-25", "{\"resources\":{\"subscribe\":true}}");
	fake_http_forget_all();
	watcher_watch(o, &w, "\"file:///a\"");
	fake_http_fail(fake_http_last(), server_heard("resources/subscribe")->id, MV_AUTH,
	    _i == 0 ? 403 : 401, CHALLENGE);
	fake_loop_settle(o->loop);
	ck_assert_int_eq(
	    upstream_state(o->u), _i == 0 ? UPSTREAM_ST_READY : UPSTREAM_ST_PARKED);
	ck_assert(w.watch.settled);
	upstream_unwatch(&w.watch);
	uowner_free(o);
}
END_TEST

/* ---- what a server asks for ---- */

static const struct {
	const char *header, *shown;
} challenges[] = {
    {"", ""},
    {"Bearer", " scheme=\"Bearer\""},
    {"  ,, Bearer ,", " scheme=\"Bearer\""},
    {"Bearer realm=x", " scheme=\"Bearer\" realm=\"x\""},
    {"Bearer realm = \"x\" , scope=\"a b\"",
	" scheme=\"Bearer\" realm=\"x\" scope=\"a b\""},
    {"Bearer Scope=\"a\\\"b\"", " scheme=\"Bearer\" Scope=\"a\\\"b\""},
    {"Bearer realm=\"never ends", " scheme=\"Bearer\" realm=\"never ends\""},
    {"Negotiate abc==, Bearer realm=\"x\"",
	" scheme=\"Negotiate\" scheme=\"abc\" scheme=\"Bearer\" realm=\"x\""},
    {"Digest nonce=\"n, realm=y\", realm=\"x\"", " scheme=\"Digest\" realm=\"x\""},
    {"\"\"\"=,=", ""},
    {"Bearer realm=", " scheme=\"Bearer\" realm=\"\""},
    {"Bearer realm=\"a\nb\x01\"", " scheme=\"Bearer\" realm=\"a\\x0ab\\x01\""},
};

START_TEST(challenges_are_shown)
{
	struct buf b;

	buf_init(&b, 4096);
	challenge_put(&b, challenges[_i].header);
	ck_assert_str_eq(buf_cstr(&b), challenges[_i].shown);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_remote_auth");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, credentials_are_refused, 0, 2);
	tcase_add_loop_test(tc, credentials_are_better_now, 0, HEALINGS);
	tcase_add_test(tc, credentials_are_not_there);
	tcase_add_test(tc, credentials_change_meanwhile);
	tcase_add_loop_test(tc, a_call_is_refused, 0, 2);
	tcase_add_loop_test(tc, a_subscription_is_refused, 0, 2);
	tcase_add_loop_test(tc, challenges_are_shown, 0,
	    (int)(sizeof(challenges) / sizeof(challenges[0])));
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
