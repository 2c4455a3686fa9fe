/* layer: front, fakes: loop upstream upstream_script fleet */
/* SPDX-License-Identifier: MIT */
/* How long sessions of HTTP clients stay in memory. */
#include "endpoint_http_priv.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdlib.h>

#define MINUTE 60000

static struct fleet *f;
static struct endpoint_http *e;
static unsigned marked;

static void
on_mark(void *arg, uint64_t serial, uint64_t expires_s)
{
	(void)arg;
	(void)serial;
	(void)expires_s;
	marked++;
}

static void
setup(void)
{
	struct endpoint_http_opts o = endpoint_http_defaults;

	marked = 0;
	o.http = http_server_defaults;
	o.mark_gone = on_mark;
	o.sessions_max = 3;
	f = fleet_running(1);
	e = endpoint_http_new(f->loop, f->g, &o);
}

static void
teardown(void)
{
	endpoint_http_free(e);
	fleet_free(f);
}

static struct http_session *
session(void)
{
	struct http_session *s = http_session_new(e);

	ck_assert_ptr_nonnull(s);
	client_session_restore(s->client, REVISION_2025_11_25, "x");
	ck_assert(http_session_seal(s, ""));
	return s;
}

START_TEST(what_can_come_back_goes_soon)
{
	(void)session();
	fake_loop_advance(f->loop, MINUTE);
	ck_assert_uint_eq(endpoint_http_sessions(e), 1);
	fake_loop_advance(f->loop, 2 * MINUTE);
	ck_assert_uint_eq(endpoint_http_sessions(e), 0);
	ck_assert_uint_eq(marked, 0);
}
END_TEST

START_TEST(what_cannot_come_back_goes_late)
{
	session()->is_marked = true;
	fake_loop_advance(f->loop, 29 * MINUTE);
	ck_assert_uint_eq(endpoint_http_sessions(e), 1);
	fake_loop_advance(f->loop, 2 * MINUTE);
	ck_assert_uint_eq(endpoint_http_sessions(e), 0);
}
END_TEST

START_TEST(in_use_is_not_idle)
{
	struct http_session *s = session();

	s->calls = 1;
	fake_loop_advance(f->loop, 60 * MINUTE);
	ck_assert_uint_eq(endpoint_http_sessions(e), 1);
	s->calls = 0;
}
END_TEST

START_TEST(what_can_come_back_makes_room)
{
	for (int i = 0; i < 3; i++)
		(void)session();
	ck_assert_uint_eq(endpoint_http_sessions(e), 3);
	/* As much as is needed goes, and no more. */
	(void)session();
	ck_assert_uint_eq(endpoint_http_sessions(e), 3);
}
END_TEST

START_TEST(what_cannot_come_back_makes_none)
{
	for (int i = 0; i < 3; i++)
		session()->is_marked = true;
	ck_assert_ptr_null(http_session_new(e));
	fake_loop_advance(f->loop, 31 * MINUTE);
	(void)session();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_session");
	TCase *tc = tcase_create("http_session");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_can_come_back_goes_soon);
	tcase_add_test(tc, what_cannot_come_back_goes_late);
	tcase_add_test(tc, in_use_is_not_idle);
	tcase_add_test(tc, what_can_come_back_makes_room);
	tcase_add_test(tc, what_cannot_come_back_makes_none);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
