/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* How long sessions of HTTP clients stay in memory. */
#include "endpoint_http_priv.h"

#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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
serve(const char *profile)
{
	const struct endpoint_listen rows[] = {
	    {.address = ":0", .path = "/mcp", .profile = ""},
	    {.address = ":0", .path = "/more", .profile = profile},
	};
	struct mv_errtext et;

	ck_assert_int_eq(
	    endpoint_http_set_listen(e, rows, profile != NULL ? 2 : 1, &et), MV_OK);
}

static struct http_mount *
mount(const char *profile)
{
	struct http_mount *m = e->mounts;

	while (m->is_gone || strcmp(m->profile, profile) != 0) {
		m = m->next;
		ck_assert_ptr_nonnull(m);
	}
	return m;
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
	serve("dev");
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
	struct http_session *s = http_session_new(mount(""));

	ck_assert_ptr_nonnull(s);
	client_session_restore(s->client, REVISION_2025_11_25, 0, "x");
	ck_assert(http_session_seal(s, ""));
	return s;
}

START_TEST(what_can_come_back_goes_soon)
{
	(void)session();
	fake_loop_advance(f->loop, MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	fake_loop_advance(f->loop, 2 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	ck_assert_uint_eq(marked, 0);
}
END_TEST

START_TEST(what_cannot_come_back_goes_late)
{
	session()->is_marked = true;
	fake_loop_advance(f->loop, 29 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	fake_loop_advance(f->loop, 2 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
}
END_TEST

/* Of an idle one, and of those that have come and gone. */
START_TEST(memory_of_many)
{
	enum { N = 1000, EACH_MAX = 1024 };
	size_t before = mem_in_use(), all;

	e->o.sessions_max = N;
	for (int i = 0; i < N; i++) {
		struct http_session *s = session();
		struct json_msg json;
		struct link_msg m =
		    fleet_scan("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}", &json);

		s->calls++;
		client_on_message(s->client, &m);
		http_session_release(s);
		fake_loop_turn(f->loop);
	}
	all = mem_in_use() - before;
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, N);
	ck_assert_uint_le(all / N, EACH_MAX);
	fake_loop_advance(f->loop, 3 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	ck_assert_uint_lt(mem_in_use() - before, all / 10);
}
END_TEST

START_TEST(in_use_is_not_idle)
{
	struct http_session *s = session();

	s->calls = 1;
	fake_loop_advance(f->loop, 60 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	s->calls = 0;
}
END_TEST

START_TEST(what_can_come_back_makes_room)
{
	for (int i = 0; i < 3; i++)
		(void)session();
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 3);
	/* As much as is needed goes, and no more. */
	(void)session();
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 3);
}
END_TEST

START_TEST(what_cannot_come_back_makes_none)
{
	for (int i = 0; i < 3; i++)
		session()->is_marked = true;
	ck_assert_ptr_null(http_session_new(mount("")));
	fake_loop_advance(f->loop, 31 * MINUTE);
	(void)session();
}
END_TEST

static struct http_text
text_of_session(const struct http_session *s)
{
	static char copy[SESSION_ID_TEXT_MAX + 1];

	memcpy(copy, s->text, s->text_len);
	return (struct http_text){copy, s->text_len};
}

/* What cannot come back into memory now is told so, and not that it is no more. */
START_TEST(no_room_is_not_the_end)
{
	struct http_session *first = session(), *found;
	struct http_text text = text_of_session(first);

	http_session_drop(first);
	for (int i = 0; i < 3; i++)
		session()->is_marked = true;
	ck_assert_int_eq(http_session_find(mount(""), text, "", &found), 503);
	ck_assert_ptr_null(found);
	fake_loop_advance(f->loop, 31 * MINUTE);
	ck_assert_int_eq(http_session_find(mount(""), text, "", &found), 0);
	ck_assert_ptr_nonnull(found);
	/* A forged one is no more either way. */
	text.n--;
	ck_assert_int_eq(http_session_find(mount(""), text, "", &found), 404);
	ck_assert_ptr_null(found);
}
END_TEST

static const struct {
	const char *made_by, *asked_by;
	int status;
} principals[] = {
    {"", "", 0},
    {"uid:1", "uid:1", 0},
    {"uid:1", "uid:1@dev", 404},
    {"uid:1@dev", "uid:1", 404},
    {"uid:1@dev", "uid:1@dev", 0},
    {"uid:1@dev", "@dev", 404},
    {"@dev", "", 404},
};

START_TEST(an_id_is_its_principals)
{
	struct http_session *s = http_session_new(mount("")), *found;
	struct http_text text;

	client_session_restore(s->client, REVISION_2025_11_25, 0, "x");
	ck_assert(http_session_seal(s, principals[_i].made_by));
	text = text_of_session(s);
	/* In memory, and by its text alone. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(
		    http_session_find(mount(""), text, principals[_i].asked_by, &found),
		    principals[_i].status);
		ck_assert((found != NULL) == (principals[_i].status == 0));
		if (i == 0)
			http_session_drop(s);
	}
}
END_TEST

/* A profile that is gone takes its sessions along; their ids are as good as before once
 * it is back, but for what no id says. */
START_TEST(a_mount_that_is_gone)
{
	struct http_session *s = http_session_new(mount("dev")), *busy, *other, *found;
	struct http_text text;

	client_session_restore(s->client, REVISION_2025_11_25, 0, "x");
	ck_assert(http_session_seal(s, "@dev"));
	text = text_of_session(s);
	busy = http_session_new(mount("dev"));
	busy->calls = 1;
	other = session();
	serve(NULL);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 2);
	ck_assert(busy->is_deleted);
	ck_assert(!other->is_deleted);
	ck_assert_ptr_eq(other->mount, mount(""));
	serve("dev");
	ck_assert_int_eq(http_session_find(mount("dev"), text, "@dev", &found), 0);
	ck_assert_ptr_eq(found->mount, mount("dev"));
	ck_assert_uint_eq(marked, 0);
	found->is_marked = true;
	http_session_release(busy);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 2);
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
	tcase_add_test(tc, memory_of_many);
	tcase_add_test(tc, in_use_is_not_idle);
	tcase_add_test(tc, what_can_come_back_makes_room);
	tcase_add_test(tc, what_cannot_come_back_makes_none);
	tcase_add_test(tc, no_room_is_not_the_end);
	tcase_add_loop_test(
	    tc, an_id_is_its_principals, 0, sizeof(principals) / sizeof(principals[0]));
	tcase_add_test(tc, a_mount_that_is_gone);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
