/* layer: upstream, fakes: loop child link http_link local */
/* SPDX-License-Identifier: MIT */
/* The base of kinds that make their tools themselves: every cell of its table, lives,
 * walks. */
#include "fake/fake_local.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define WALK_STEPS 4000
#define WALK_SEEDS 16

/* ---- the table ---- */

static void
state_is(enum local_state want)
{
	ck_assert_int_eq(g_owner.u->local->state, want);
}

static void
to_state(enum local_state st)
{
	owner_new(KIND_EXEC, START_LATER);
	g_owner.conf->restart_limit = st == LOCAL_ST_FAILED ? 1 : 3;
	if (st == LOCAL_ST_FAILED)
		g_owner.u->kind->set_conf(g_owner.u);
	if (st != LOCAL_ST_DOWN)
		upstream_start(g_owner.u);
	if (st == LOCAL_ST_UP || st == LOCAL_ST_ENDING)
		local_up(g_owner.u);
	if (st == LOCAL_ST_ENDING || st == LOCAL_ST_BACKOFF || st == LOCAL_ST_FAILED)
		local_down(g_owner.u, MV_UNREACHABLE, "gone");
	if (st == LOCAL_ST_BACKOFF || st == LOCAL_ST_FAILED)
		fake_loop_settle(g_owner.loop);
	state_is(st);
}

static void
do_event(enum local_event ev)
{
	struct upstream *u = g_owner.u;

	switch (ev) {
	case LOCAL_EV_START:
		u->kind->start(u);
		break;
	case LOCAL_EV_STOP:
		u->kind->stop(u);
		break;
	case LOCAL_EV_RESTART:
		u->kind->restart(u, "asked");
		break;
	case LOCAL_EV_UP:
		local_up(u);
		break;
	case LOCAL_EV_DIE:
		local_down(u, MV_UNREACHABLE, "gone");
		break;
	case LOCAL_EV_OVER:
		fake_loop_settle(g_owner.loop);
		break;
	case LOCAL_EV_TIMER:
		ck_assert(fake_loop_advance_to_timer(g_owner.loop));
		break;
	case LOCAL_EV_MAX:
		break;
	}
}

/* Where an event leads at once, and at the end of the turn. What is not here cannot
 * happen: nobody but itself ends a turn or a pause. */
static const struct {
	enum local_state in;
	enum local_event ev;
	enum local_state next, settled;
} cells[] = {
#define CELL(in, ev, next, settled)                                                      \
	{                                                                                \
		LOCAL_ST_##in, LOCAL_EV_##ev, LOCAL_ST_##next, LOCAL_ST_##settled        \
	}
    CELL(DOWN, START, STARTING, STARTING),
    CELL(DOWN, STOP, DOWN, DOWN),
    CELL(DOWN, RESTART, STARTING, STARTING),
    CELL(DOWN, UP, DOWN, DOWN),
    CELL(DOWN, DIE, DOWN, DOWN),
    CELL(STARTING, START, STARTING, STARTING),
    CELL(STARTING, STOP, ENDING, DOWN),
    CELL(STARTING, RESTART, ENDING, STARTING),
    CELL(STARTING, UP, UP, UP),
    CELL(STARTING, DIE, ENDING, BACKOFF),
    CELL(UP, START, UP, UP),
    CELL(UP, STOP, ENDING, DOWN),
    CELL(UP, RESTART, ENDING, STARTING),
    CELL(UP, UP, UP, UP),
    CELL(UP, DIE, ENDING, BACKOFF),
    CELL(ENDING, START, ENDING, BACKOFF),
    CELL(ENDING, STOP, ENDING, DOWN),
    CELL(ENDING, RESTART, ENDING, BACKOFF),
    CELL(ENDING, UP, ENDING, BACKOFF),
    CELL(ENDING, DIE, ENDING, BACKOFF),
    CELL(ENDING, OVER, BACKOFF, BACKOFF),
    CELL(BACKOFF, START, STARTING, STARTING),
    CELL(BACKOFF, STOP, DOWN, DOWN),
    CELL(BACKOFF, RESTART, STARTING, STARTING),
    CELL(BACKOFF, UP, BACKOFF, BACKOFF),
    CELL(BACKOFF, DIE, BACKOFF, BACKOFF),
    CELL(BACKOFF, TIMER, STARTING, STARTING),
    CELL(FAILED, START, STARTING, STARTING),
    CELL(FAILED, STOP, DOWN, DOWN),
    CELL(FAILED, RESTART, STARTING, STARTING),
    CELL(FAILED, UP, FAILED, FAILED),
    CELL(FAILED, DIE, FAILED, FAILED),
#undef CELL
};

START_TEST(every_cell)
{
	to_state(cells[_i].in);
	do_event(cells[_i].ev);
	state_is(cells[_i].next);
	ck_assert_int_eq(g_kind.is_started,
	    cells[_i].next == LOCAL_ST_STARTING || cells[_i].next == LOCAL_ST_UP);
	fake_loop_settle(g_owner.loop);
	state_is(cells[_i].settled);
	ck_assert_uint_eq(g_kind.starts, g_kind.stops + g_kind.is_started);
	owner_free();
}
END_TEST

/* As its upstream is told to, wherever it is. */
START_TEST(stop_in_every_state)
{
	to_state((enum local_state)_i);
	owner_stop();
	fake_loop_settle(g_owner.loop);
	state_is(LOCAL_ST_DOWN);
	ck_assert_uint_eq(g_owner.stopped, 1);
	owner_free();
}
END_TEST

START_TEST(restart_in_every_state)
{
	to_state((enum local_state)_i);
	upstream_restart(g_owner.u, "asked");
	fake_loop_settle(g_owner.loop);
	ck_assert(g_owner.u->local->state == LOCAL_ST_STARTING ||
		  g_owner.u->local->state == LOCAL_ST_BACKOFF);
	owner_free();
}
END_TEST

/* ---- lives ---- */

START_TEST(its_greeting)
{
	const struct ulist *l;

	owner_new((enum upstream_kind)_i, START_UP);
	upstream_start(g_owner.u);
	ck_assert(!owner_is_ready());
	fake_loop_settle(g_owner.loop);
	ck_assert(owner_is_ready());
	ck_assert_uint_eq(g_owner.settled, 1);
	l = upstream_list(g_owner.u, LIST_TOOLS);
	ck_assert(l->is_known);
	ck_assert_uint_eq(l->n, _i == KIND_EXEC);
	ck_assert_int_eq(upstream_instructions(g_owner.u) != NULL, _i == KIND_EXEC);
	if (_i == KIND_EXEC)
		ck_assert_str_eq(upstream_instructions(g_owner.u), "Say \"t\".");
	ck_assert(upstream_caps(g_owner.u)->tools);
	ck_assert(!upstream_caps(g_owner.u)->prompts);
	owner_free();
}
END_TEST

START_TEST(a_start_that_fails)
{
	owner_new(KIND_EXEC, START_DOWN);
	upstream_start(g_owner.u);
	fake_loop_settle(g_owner.loop);
	ck_assert_str_eq(upstream_reason(g_owner.u), "no way");
	ck_assert_uint_eq(g_owner.settled, 1);
	ck_assert_uint_gt(upstream_stats(g_owner.u).next_ms, 0);
	/* Pauses, then no more. */
	while (fake_loop_advance_to_timer(g_owner.loop))
		continue;
	state_is(LOCAL_ST_FAILED);
	ck_assert_uint_eq(g_kind.starts, g_owner.conf->restart_limit);
	ck_assert_int_eq(upstream_state(g_owner.u), UPSTREAM_ST_PARKED);
	/* Whoever starts it anew gives it as much again. */
	upstream_restart(g_owner.u, "asked");
	while (fake_loop_advance_to_timer(g_owner.loop))
		continue;
	ck_assert_uint_eq(g_kind.starts, 2 * g_owner.conf->restart_limit);
	g_kind.starting = START_UP;
	upstream_restart(g_owner.u, "asked");
	fake_loop_settle(g_owner.loop);
	ck_assert(owner_is_ready());
	ck_assert_str_eq(upstream_reason(g_owner.u), "");
	owner_free();
}
END_TEST

/* Through all of its pauses, and no further. */
static void
until_failed(void)
{
	fake_loop_settle(g_owner.loop);
	while (g_owner.u->local->state != LOCAL_ST_FAILED) {
		ck_assert(fake_loop_advance_to_timer(g_owner.loop));
		fake_loop_settle(g_owner.loop);
	}
}

START_TEST(a_parked_one_comes_back_when_it_has_changed)
{
	owner_new(KIND_GRAPHQL, START_DOWN);
	upstream_start(g_owner.u);
	until_failed();
	ck_assert_uint_eq(g_kind.starts, g_owner.conf->restart_limit);
	for (unsigned i = 1; i < 4; i++) {
		ck_assert_uint_eq(g_kind.looks, i - 1);
		ck_assert(fake_loop_advance_to_timer(g_owner.loop));
		state_is(LOCAL_ST_FAILED);
	}
	/* It has changed, and is no better: as often as the first time. */
	g_kind.has_changed = true;
	ck_assert(fake_loop_advance_to_timer(g_owner.loop));
	g_kind.has_changed = false;
	until_failed();
	ck_assert_uint_eq(g_kind.starts, 2 * g_owner.conf->restart_limit);
	g_kind.has_changed = true;
	g_kind.starting = START_UP;
	ck_assert(fake_loop_advance_to_timer(g_owner.loop));
	fake_loop_settle(g_owner.loop);
	ck_assert(owner_is_ready());
	ck_assert(!timer_is_set(&g_owner.u->local->timer));
	owner_free();
}
END_TEST

/* Nobody looks any more. */
START_TEST(a_parked_one_is_stopped)
{
	owner_new(KIND_GRAPHQL, START_DOWN);
	g_owner.conf->restart_limit = 1;
	g_owner.u->kind->set_conf(g_owner.u);
	upstream_start(g_owner.u);
	until_failed();
	owner_stop();
	fake_loop_settle(g_owner.loop);
	state_is(LOCAL_ST_DOWN);
	ck_assert(!fake_loop_advance_to_timer(g_owner.loop));
	owner_free();
}
END_TEST

START_TEST(a_death_fails_calls_and_comes_back)
{
	struct tcall c = {.done = 0}, held = {.done = 0};

	owner_ready(ANSWER_LATER);
	tcall_send(&c);
	local_down(g_owner.u, MV_DIED, "it %s", "fell");
	ck_assert_uint_eq(g_kind.cancels, 1);
	ck_assert_uint_eq(c.done, 0);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(c.done, 1);
	ck_assert_int_eq(c.err, MV_DIED);
	ck_assert_str_eq(upstream_reason(g_owner.u), "it fell");
	ck_assert_int_ne(tcall_try(&held, CALL_T), MV_OK);
	ck_assert(fake_loop_advance_to_timer(g_owner.loop));
	fake_loop_settle(g_owner.loop);
	ck_assert(owner_is_ready());
	owner_free();
}
END_TEST

START_TEST(other_tools_are_listed_anew)
{
	unsigned lists;
	uint64_t generation;

	owner_ready(ANSWER_LATER);
	lists = g_owner.lists;
	generation = upstream_generation(g_owner.u);
	local_tools_changed(g_owner.u);
	fake_loop_advance(g_owner.loop, 60000);
	ck_assert_uint_eq(g_owner.lists, lists + 1);
	ck_assert_uint_eq(g_owner.changes, 1);
	ck_assert(upstream_generation(g_owner.u) != generation);
	generation = upstream_generation(g_owner.u);
	local_note_refused(g_owner.u);
	ck_assert_uint_eq(upstream_refusals(g_owner.u), 1);
	ck_assert(upstream_generation(g_owner.u) != generation);
	owner_free();
}
END_TEST

START_TEST(another_conf)
{
	owner_ready(ANSWER_LATER);
	upstream_set_conf(g_owner.u, g_owner.conf);
	ck_assert_uint_eq(g_kind.confs, 1);
	ck_assert(owner_is_ready());
	owner_free();
}
END_TEST

/* ---- annotations ---- */

START_TEST(annotations)
{
	static const struct tool_hints dflt = {HINT_NO, HINT_YES, HINT_NO, HINT_YES};
	static const struct {
		struct tool_hints own;
		const char *want; /* of the four, in their order */
	} rows[] = {
	    {{HINT_INHERIT, HINT_INHERIT, HINT_INHERIT, HINT_INHERIT}, "0101"},
	    {{HINT_YES, HINT_INHERIT, HINT_INHERIT, HINT_INHERIT}, "1001"},
	    {{HINT_YES, HINT_YES, HINT_YES, HINT_NO}, "1110"},
	    {{HINT_NO, HINT_NO, HINT_INHERIT, HINT_INHERIT}, "0001"},
	};
	static const char *const keys[] = {
	    "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tool_shape s = {.hints = rows[i].own};
		struct jtext got;
		struct buf b;

		buf_init(&b, 1024);
		buf_add_str(&b, "{\"name\":\"t\"");
		local_put_annotations(&b, i == 0 ? NULL : &s, &dflt);
		buf_add_char(&b, '}');
		got = json_member((struct jtext){b.data, b.len}, "annotations");
		for (size_t k = 0; k < 4; k++)
			ck_assert_int_eq(jtext_type(json_member(got, keys[k])),
			    rows[i].want[k] == '1' ? 't' : 'f');
		buf_fini(&b);
	}
}
END_TEST

/* ---- walks ---- */

static void
walk_step(unsigned *seed, struct tcall *calls, size_t n)
{
	struct tcall *c = &calls[(unsigned)rand_r(seed) % n];
	unsigned what = (unsigned)rand_r(seed) % 16;

	g_kind.starting = (enum starting)((unsigned)rand_r(seed) % 3);
	g_kind.answering = (enum answering)((unsigned)rand_r(seed) % ANSWER_LONG);
	if (what < 5 && c->req.u == NULL)
		(void)tcall_try(c, CALL_T);
	else if (what < 6)
		upstream_cancel(&c->req, NULL);
	else if (what < 8 && g_kind.n_open > 0)
		kind_answer(kind_take(&g_kind, 0), ANSWER_RESULT);
	else if (what < 9)
		upstream_restart(g_owner.u, "walk");
	else if (what < 10 && g_kind.is_started)
		local_down(g_owner.u, MV_DIED, "walk");
	else if (what < 11 && g_kind.is_started)
		local_up(g_owner.u);
	else if (what < 12)
		local_tools_changed(g_owner.u);
	else if (what < 13)
		upstream_wake(g_owner.u);
	else if (what < 14)
		fake_loop_advance(g_owner.loop, (unsigned)rand_r(seed) % 200);
	else
		(void)fake_loop_turn(g_owner.loop);
}

static void
walk_check(const struct tcall *calls, size_t n)
{
	const struct local *l = g_owner.u->local;
	size_t open = 0;

	ck_assert_int_eq(
	    g_kind.is_started, l->state == LOCAL_ST_STARTING || l->state == LOCAL_ST_UP);
	ck_assert(l->calls == NULL || l->state == LOCAL_ST_UP);
	ck_assert(l->answers == NULL || l->state == LOCAL_ST_UP);
	ck_assert_int_eq(timer_is_set(&l->timer), l->state == LOCAL_ST_BACKOFF);
	ck_assert_uint_eq(g_kind.starts, g_kind.stops + g_kind.is_started);
	for (const struct local_call *c = l->calls; c != NULL; c = c->next)
		open++;
	ck_assert_uint_eq(open, g_kind.n_open);
	for (size_t i = 0; i < n; i++)
		ck_assert(calls[i].req.u == NULL || calls[i].req.u == g_owner.u);
}

START_TEST(walks)
{
	unsigned seed = (unsigned)_i + 1;
	struct tcall calls[8] = {{.done = 0}};

	owner_new(KIND_EXEC, START_UP);
	g_owner.conf->restart_limit = 1000000;
	g_owner.conf->start = _i % 2 == 0 ? START_EAGER : START_ON_USE;
	g_owner.u->kind->set_conf(g_owner.u);
	upstream_start(g_owner.u);
	for (unsigned k = 0; k < WALK_STEPS; k++) {
		walk_step(&seed, calls, 8);
		walk_check(calls, 8);
	}
	owner_free();
	ck_assert_uint_eq(g_kind.n_open, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_local");
	TCase *tc = tcase_create("upstream_local");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	log_set_level(LOG_LV_ERROR);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_cell, 0, (int)(sizeof(cells) / sizeof(cells[0])));
	tcase_add_loop_test(tc, stop_in_every_state, 0, LOCAL_ST_MAX);
	tcase_add_loop_test(tc, restart_in_every_state, 0, LOCAL_ST_MAX);
	tcase_add_loop_test(tc, its_greeting, KIND_EXEC, KIND_SHELL + 1);
	tcase_add_test(tc, a_start_that_fails);
	tcase_add_test(tc, a_parked_one_comes_back_when_it_has_changed);
	tcase_add_test(tc, a_parked_one_is_stopped);
	tcase_add_test(tc, a_death_fails_calls_and_comes_back);
	tcase_add_test(tc, other_tools_are_listed_anew);
	tcase_add_test(tc, another_conf);
	tcase_add_test(tc, annotations);
	tcase_add_loop_test(tc, walks, 0, WALK_SEEDS);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
