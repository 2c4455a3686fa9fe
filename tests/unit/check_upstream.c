/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* The state x event table of an upstream: every cell. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- every cell ---- */

#define BOUNDS	 "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}"
#define LEGACY	 "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"
#define TEXT_DIE "exited with status 1"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"t\"}}"

/* What an event does: the state it leads to, and what is heard and asked. */
struct cell {
	bool legal;
	enum upstream_state next;
	const char *sent; /* methods, each with a blank behind it */
	unsigned fails, readies;
	bool settles;
};

#define TO(name) .legal = true, .next = UPSTREAM_ST_##name
#define BUG                                                                              \
	{                                                                                \
		.legal = false                                                           \
	}
#define D "server/discover "
#define I "initialize "
#define N "notifications/initialized "

/* clang-format off */
static const struct cell cells[UPSTREAM_ST_MAX][UPSTREAM_EV_MAX] = {
	[UPSTREAM_ST_DOWN] = {
		[UPSTREAM_EV_UP] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = BUG,
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = BUG,
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = {TO(PARKED), .settles = true},
		[UPSTREAM_EV_SLEEP] = {TO(ASLEEP), .settles = true},
		[UPSTREAM_EV_WAKE] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_RESTART] = {TO(PROBE), .sent = D}},
	[UPSTREAM_ST_PROBE] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = {TO(READY), .readies = 1, .settles = true},
		[UPSTREAM_EV_DISCOVER_LEGACY] = {TO(INIT), .sent = I},
		[UPSTREAM_EV_DISCOVER_BAD] = {TO(PROBE), .fails = 1},
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = {TO(BOTH), .sent = I},
		[UPSTREAM_EV_START_TIMER] = {TO(PROBE), .fails = 1},
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_EXCUSED] = {TO(INIT), .sent = I},
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(PROBE)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_BOTH] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = {TO(AGREED)},
		[UPSTREAM_EV_DISCOVER_LEGACY] = {TO(INIT)},
		[UPSTREAM_EV_DISCOVER_BAD] = {TO(BOTH), .fails = 1},
		[UPSTREAM_EV_INIT_OK] = {TO(READY), .sent = N, .readies = 1, .settles = true},
		[UPSTREAM_EV_INIT_BAD] = {TO(LATE)},
		[UPSTREAM_EV_RENEW] = {TO(BOTH), .fails = 1},
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = {TO(BOTH), .fails = 1},
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_EXCUSED] = {TO(INIT), .sent = I},
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(BOTH)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_INIT] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = {TO(READY), .sent = N, .readies = 1, .settles = true},
		[UPSTREAM_EV_INIT_BAD] = {TO(INIT), .fails = 1},
		[UPSTREAM_EV_RENEW] = {TO(INIT), .fails = 1},
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = {TO(INIT), .fails = 1},
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(INIT)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_LATE] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = {TO(READY), .readies = 1, .settles = true},
		[UPSTREAM_EV_DISCOVER_LEGACY] = {TO(LATE), .fails = 1},
		[UPSTREAM_EV_DISCOVER_BAD] = {TO(LATE), .fails = 1},
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = {TO(LATE), .fails = 1},
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(LATE)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_AGREED] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = {TO(READY), .sent = N, .readies = 1, .settles = true},
		[UPSTREAM_EV_INIT_BAD] = {TO(READY), .readies = 1, .settles = true},
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = {TO(READY), .readies = 1, .settles = true},
		[UPSTREAM_EV_START_TIMER] = {TO(AGREED), .fails = 1},
		[UPSTREAM_EV_DOWN] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_GONE] = {TO(DOWN), .settles = true},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(AGREED)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_READY] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = {TO(READY)},
		[UPSTREAM_EV_INIT_BAD] = {TO(READY)},
		[UPSTREAM_EV_RENEW] = {TO(INIT), .sent = I},
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = BUG,
		[UPSTREAM_EV_DOWN] = {TO(DOWN)},
		[UPSTREAM_EV_GONE] = {TO(DOWN)},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = {TO(ASLEEP)},
		[UPSTREAM_EV_WAKE] = {TO(READY)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_ASLEEP] = {
		[UPSTREAM_EV_UP] = BUG,
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = BUG,
		[UPSTREAM_EV_DOWN] = {TO(ASLEEP)},
		[UPSTREAM_EV_GONE] = {TO(ASLEEP)},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(WAKING)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_WAKING] = {
		[UPSTREAM_EV_UP] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = BUG,
		[UPSTREAM_EV_DOWN] = {TO(DOWN)},
		[UPSTREAM_EV_GONE] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = BUG,
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(WAKING)},
		[UPSTREAM_EV_RESTART] = {TO(WAKING)}},
	[UPSTREAM_ST_PARKED] = {
		[UPSTREAM_EV_UP] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_DISCOVER_OK] = BUG,
		[UPSTREAM_EV_DISCOVER_LEGACY] = BUG,
		[UPSTREAM_EV_DISCOVER_BAD] = BUG,
		[UPSTREAM_EV_INIT_OK] = BUG,
		[UPSTREAM_EV_INIT_BAD] = BUG,
		[UPSTREAM_EV_RENEW] = BUG,
		[UPSTREAM_EV_PROBE_TIMER] = BUG,
		[UPSTREAM_EV_START_TIMER] = BUG,
		[UPSTREAM_EV_DOWN] = {TO(DOWN)},
		[UPSTREAM_EV_GONE] = BUG,
		[UPSTREAM_EV_EXCUSED] = BUG,
		[UPSTREAM_EV_PARK] = {TO(PARKED)},
		[UPSTREAM_EV_SLEEP] = BUG,
		[UPSTREAM_EV_WAKE] = {TO(PROBE), .sent = D},
		[UPSTREAM_EV_RESTART] = {TO(PROBE), .sent = D}},
};
/* clang-format on */

static struct uowner *
owner_in_state(enum upstream_state st)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	if (st == UPSTREAM_ST_PARKED) {
		fake_child_set_budget(o->u->child, 1);
		fake_child_refuse(o->u->child, 1);
		upstream_start(o->u);
	} else if (st != UPSTREAM_ST_DOWN) {
		uowner_start(o);
	}
	if (st == UPSTREAM_ST_BOTH || st == UPSTREAM_ST_LATE || st == UPSTREAM_ST_AGREED)
		fake_loop_advance(o->loop, 3000);
	if (st == UPSTREAM_ST_LATE)
		uowner_refuse(o, 2, "-32601");
	if (st == UPSTREAM_ST_INIT)
		uowner_refuse(o, 1, "-32601");
	if (st == UPSTREAM_ST_READY || st == UPSTREAM_ST_ASLEEP ||
	    st == UPSTREAM_ST_WAKING || st == UPSTREAM_ST_AGREED)
		uowner_answer(o, 1, BOUNDS);
	/* Their process is still on its way out. */
	if (st == UPSTREAM_ST_ASLEEP && uowner_is_ready(o))
		upstream_event(o->u, UPSTREAM_EV_SLEEP);
	if (st == UPSTREAM_ST_WAKING)
		upstream_restart(o->u, "for the test");
	ck_assert_int_eq(upstream_state(o->u), st);
	fake_link_forget_all();
	return o;
}

/* Ids: discover is 1 and initialize 2, if they were sent. */
static void
owner_event(struct uowner *o, enum upstream_state st, enum upstream_event ev)
{
	switch (ev) {
	case UPSTREAM_EV_UP:
		if (st == UPSTREAM_ST_WAKING)
			fake_child_die(o->u->child, TEXT_DIE);
		else
			uowner_start(o);
		break;
	case UPSTREAM_EV_DISCOVER_OK:
		uowner_answer(o, 1, BOUNDS);
		break;
	case UPSTREAM_EV_DISCOVER_LEGACY:
		uowner_refuse(o, 1, "-32601");
		break;
	case UPSTREAM_EV_DISCOVER_BAD:
		uowner_refuse(o, 1, "-32021");
		break;
	case UPSTREAM_EV_INIT_OK:
		if (st == UPSTREAM_ST_READY)
			upstream_event(o->u, ev); /* its request is forgotten by then */
		else
			uowner_answer(o, 2, LEGACY);
		break;
	case UPSTREAM_EV_INIT_BAD:
		if (st == UPSTREAM_ST_READY)
			upstream_event(o->u, ev);
		else
			uowner_refuse(o, 2, "-32603");
		break;
	case UPSTREAM_EV_RENEW:
		upstream_event(o->u, ev); /* no process ever says so */
		break;
	case UPSTREAM_EV_PROBE_TIMER:
		fake_loop_advance(o->loop, o->conf->probe_ms);
		break;
	case UPSTREAM_EV_START_TIMER:
		timer_clear(&o->u->probe_timer);
		fake_loop_advance(o->loop, o->conf->start_ms);
		break;
	case UPSTREAM_EV_GONE:
		if (st != UPSTREAM_ST_WAKING)
			child_stop(o->u->child);
		fake_child_die(o->u->child, TEXT_DIE);
		break;
	case UPSTREAM_EV_SLEEP:
		upstream_event(o->u, ev); /* its timer is a test of its own */
		break;
	case UPSTREAM_EV_WAKE:
		upstream_wake(o->u);
		break;
	case UPSTREAM_EV_RESTART:
		upstream_restart(o->u, "for the test");
		break;
	case UPSTREAM_EV_EXCUSED:
		fake_child_die(o->u->child, TEXT_DIE);
		break;
	case UPSTREAM_EV_DOWN:
		o->u->excused = true; /* once is enough */
		if (st == UPSTREAM_ST_WAKING)
			fake_child_refuse(o->u->child, 1); /* the one after that */
		if (st == UPSTREAM_ST_ASLEEP)
			upstream_event(
			    o->u, ev); /* it had ended before it was asked to */
		else if (fake_link_live() > 0)
			fake_child_die(o->u->child, TEXT_DIE);
		else {
			fake_child_set_budget(o->u->child, 0);
			fake_child_refuse(o->u->child, 1);
			upstream_start(o->u);
		}
		break;
	case UPSTREAM_EV_PARK:
		fake_child_set_budget(o->u->child, 1);
		fake_child_refuse(o->u->child, 1);
		upstream_start(o->u);
		break;
	case UPSTREAM_EV_MAX:
		break;
	}
}

static jmp_buf g_last_words;

static void
on_last_words(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)level;
	(void)len;
	(void)arg;
	if (strncmp(line, "error assert: failed", 20) == 0)
		longjmp(g_last_words, 1);
}

static void
check_bug(struct uowner *o, enum upstream_event ev)
{
	static volatile bool survived;

	survived = false;
	log_set_sink(on_last_words, NULL);
	if (setjmp(g_last_words) == 0) {
		upstream_event(o->u, ev);
		survived = true;
	}
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_ERROR);
	ck_assert_msg(!survived, "%s: event %d",
	    upstream_state_text(upstream_state(o->u)), (int)ev);
}

static void
check_sent(const char *methods)
{
	struct json_msg json;
	struct link_msg m;
	const char *got;

	while ((got = fake_link_take()) != NULL) {
		size_t n = strcspn(methods, " ");

		ck_assert_int_eq(link_scan(got, strlen(got), &json, &m), MV_OK);
		ck_assert_uint_eq(m.env.method.n, n + 2);
		ck_assert_int_eq(strncmp(m.env.method.p + 1, methods, n), 0);
		methods += n + 1;
	}
	ck_assert_str_eq(methods, "");
}

static void
check_cell(enum upstream_state st, enum upstream_event ev)
{
	const struct cell *want = &cells[st][ev];
	struct uowner *o = owner_in_state(st);
	unsigned settled = o->settled, readies = fake_child_readies(o->u->child);

	log_set_level(LOG_LV_DEBUG); /* its texts are made too */
	if (!want->legal) {
		check_bug(o, ev);
		ck_assert_int_eq(upstream_state(o->u), st);
		uowner_free(o);
		return;
	}
	owner_event(o, st, ev);
	ck_assert_msg(upstream_state(o->u) == want->next, "%s: event %d leads to %s",
	    upstream_state_text(st), (int)ev, upstream_state_text(upstream_state(o->u)));
	check_sent(want->sent != NULL ? want->sent : "");
	ck_assert_uint_eq(fake_child_fails(o->u->child), want->fails);
	ck_assert_uint_eq(fake_child_readies(o->u->child) - readies, want->readies);
	ck_assert_uint_eq(o->settled - settled, want->settles);
	uowner_check(o);
	uowner_free(o);
}

START_TEST(every_cell)
{
	enum upstream_state st = (enum upstream_state)_i;

	for (int ev = 0; ev < UPSTREAM_EV_MAX; ev++)
		check_cell(st, (enum upstream_event)ev);
	log_set_level(LOG_LV_NOTICE);
}
END_TEST

/* An entry that cannot run is parked from its start, with its reason. */
START_TEST(broken_is_parked)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct ucall c = {.done = 0};
	struct uowner *o;

	conf->broken = MV_CONF;
	(void)snprintf(conf->broken_text, sizeof(conf->broken_text), "no such variable");
	o = uowner_new_of(conf);
	upstream_start(o->u);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	ck_assert_str_eq(upstream_reason(o->u), "no such variable");
	ck_assert_uint_eq(o->settled, 1);
	ck_assert_int_eq(ucall_try(o, &c, CALL, NULL), MV_CONF);
	upstream_start(o->u);
	ck_assert_int_eq(upstream_state(o->u), UPSTREAM_ST_PARKED);
	uowner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream");
	TCase *tc = tcase_create("table");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_cell, 0, UPSTREAM_ST_MAX);
	tcase_add_test(tc, broken_is_parked);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
