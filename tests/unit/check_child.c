/* layer: upstream, fakes: loop spawn child_owner */
/* SPDX-License-Identifier: MIT */
/* The state x event table of a child: every cell, and random walks through it. */
#include "fake/fake_child_owner.h"

#include "child_priv.h"

#include "mcpvisor/clock.h"

#include <check.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WALK_STEPS 4000
#define WALK_SEEDS 12

/* ---- every cell ---- */

/* What an event does: the state it leads to, and how often what is called. */
struct cell {
	enum child_cell kind;
	enum child_state next;
	unsigned ups, downs, stopped, closes, forces, terms;
};

#define ST(name)     .kind = CHILD_CELL_HANDLER, .next = CHILD_ST_##name
#define IGNORE(name) .kind = CHILD_CELL_IGNORE, .next = CHILD_ST_##name
#define BUG	     .kind = CHILD_CELL_BUG

/* clang-format off */
static const struct cell cells[CHILD_ST_MAX][CHILD_EV_MAX] = {
	[CHILD_ST_DOWN] = {
		[CHILD_EV_START] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_STOP] = {ST(DOWN), .stopped = 1},
		[CHILD_EV_RESTART] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_FAIL] = {IGNORE(DOWN)},
		[CHILD_EV_EXEC_FAILED] = {BUG},
		[CHILD_EV_EXITED] = {BUG},
		[CHILD_EV_OUTPUT_ENDED] = {BUG},
		[CHILD_EV_DEADLINE] = {BUG}},
	[CHILD_ST_BACKOFF] = {
		[CHILD_EV_START] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_STOP] = {ST(DOWN), .stopped = 1},
		[CHILD_EV_RESTART] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_FAIL] = {IGNORE(BACKOFF)},
		[CHILD_EV_EXEC_FAILED] = {BUG},
		[CHILD_EV_EXITED] = {BUG},
		[CHILD_EV_OUTPUT_ENDED] = {BUG},
		[CHILD_EV_DEADLINE] = {ST(RUNNING), .ups = 1}},
	[CHILD_ST_RUNNING] = {
		[CHILD_EV_START] = {IGNORE(RUNNING)},
		[CHILD_EV_STOP] = {ST(STOPPING), .closes = 1},
		[CHILD_EV_RESTART] = {ST(STOPPING), .closes = 1},
		[CHILD_EV_FAIL] = {ST(STOPPING), .closes = 1},
		[CHILD_EV_EXEC_FAILED] = {ST(STOPPING), .closes = 1},
		[CHILD_EV_EXITED] = {ST(REAPED)},
		[CHILD_EV_OUTPUT_ENDED] = {ST(CLOSED), .closes = 1},
		[CHILD_EV_DEADLINE] = {BUG}},
	[CHILD_ST_STOPPING] = {
		[CHILD_EV_START] = {ST(STOPPING)},
		[CHILD_EV_STOP] = {ST(STOPPING)},
		[CHILD_EV_RESTART] = {ST(STOPPING)},
		[CHILD_EV_FAIL] = {IGNORE(STOPPING)},
		[CHILD_EV_EXEC_FAILED] = {ST(STOPPING)},
		[CHILD_EV_EXITED] = {ST(REAPED)},
		[CHILD_EV_OUTPUT_ENDED] = {ST(CLOSED)},
		[CHILD_EV_DEADLINE] = {ST(STOPPING), .terms = 1}},
	[CHILD_ST_REAPED] = {
		[CHILD_EV_START] = {ST(REAPED)},
		[CHILD_EV_STOP] = {ST(REAPED)},
		[CHILD_EV_RESTART] = {ST(REAPED)},
		[CHILD_EV_FAIL] = {IGNORE(REAPED)},
		[CHILD_EV_EXEC_FAILED] = {BUG},
		[CHILD_EV_EXITED] = {BUG},
		[CHILD_EV_OUTPUT_ENDED] = {ST(BACKOFF), .downs = 1},
		[CHILD_EV_DEADLINE] = {ST(BACKOFF), .downs = 1, .forces = 1}},
	[CHILD_ST_CLOSED] = {
		[CHILD_EV_START] = {ST(CLOSED)},
		[CHILD_EV_STOP] = {ST(CLOSED)},
		[CHILD_EV_RESTART] = {ST(CLOSED)},
		[CHILD_EV_FAIL] = {IGNORE(CLOSED)},
		[CHILD_EV_EXEC_FAILED] = {ST(CLOSED)},
		[CHILD_EV_EXITED] = {ST(BACKOFF), .downs = 1},
		[CHILD_EV_OUTPUT_ENDED] = {BUG},
		[CHILD_EV_DEADLINE] = {ST(CLOSED), .terms = 1}},
	[CHILD_ST_FAILED] = {
		[CHILD_EV_START] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_STOP] = {ST(DOWN), .stopped = 1},
		[CHILD_EV_RESTART] = {ST(RUNNING), .ups = 1},
		[CHILD_EV_FAIL] = {IGNORE(FAILED)},
		[CHILD_EV_EXEC_FAILED] = {BUG},
		[CHILD_EV_EXITED] = {BUG},
		[CHILD_EV_OUTPUT_ENDED] = {BUG},
		[CHILD_EV_DEADLINE] = {BUG}},
};
/* clang-format on */

static struct owner *
owner_in_state(enum child_state st)
{
	struct child_opts opts = owner_opts();
	struct owner *o;

	opts.backoff.budget = st == CHILD_ST_FAILED ? 1 : 10;
	o = owner_new(&opts);
	fake_spawner_set_obedient(o->spawner, false);
	if (st != CHILD_ST_DOWN)
		owner_start(o);
	switch (st) {
	case CHILD_ST_DOWN:
	case CHILD_ST_RUNNING:
	case CHILD_ST_MAX:
		break;
	case CHILD_ST_BACKOFF:
	case CHILD_ST_FAILED:
		owner_proc_dies(o, status_exit(1));
		break;
	case CHILD_ST_STOPPING:
		owner_stop(o);
		break;
	case CHILD_ST_REAPED:
		fake_proc_exit(owner_proc(o), status_exit(1));
		break;
	case CHILD_ST_CLOSED:
		owner_output_ends(o);
		break;
	}
	ck_assert_int_eq(owner_state(o), st);
	return o;
}

static void
owner_event(struct owner *o, enum child_event ev)
{
	switch (ev) {
	case CHILD_EV_START:
		owner_start(o);
		break;
	case CHILD_EV_STOP:
		owner_stop(o);
		break;
	case CHILD_EV_RESTART:
		owner_restart(o);
		break;
	case CHILD_EV_FAIL:
		owner_fail(o);
		break;
	case CHILD_EV_EXEC_FAILED:
		fake_proc_fail_exec(owner_proc(o), SPAWN_STEP_EXEC, ENOENT);
		break;
	case CHILD_EV_EXITED:
		fake_proc_exit(owner_proc(o), status_exit(1));
		break;
	case CHILD_EV_OUTPUT_ENDED:
		owner_output_ends(o);
		break;
	case CHILD_EV_DEADLINE:
		ck_assert(fake_loop_advance_to_timer(o->loop));
		break;
	case CHILD_EV_MAX:
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
check_bug(struct owner *o, enum child_event ev)
{
	static volatile bool survived;

	survived = false;
	log_set_sink(on_last_words, NULL);
	if (setjmp(g_last_words) == 0) {
		child_dispatch(o->child, ev);
		survived = true;
	}
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_ERROR);
	ck_assert(!survived);
}

static bool
has_deadline(enum child_state st)
{
	return st == CHILD_ST_BACKOFF || st == CHILD_ST_STOPPING ||
	       st == CHILD_ST_REAPED || st == CHILD_ST_CLOSED;
}

static void
check_cell(enum child_state st, enum child_event ev)
{
	const struct cell *want = &cells[st][ev];
	struct owner *o = owner_in_state(st);
	struct owner was = *o;

	ck_assert_msg(child_cell_kind(st, ev) == want->kind, "%s: event %d is %d",
	    child_state_text(st), (int)ev, (int)child_cell_kind(st, ev));
	if (want->kind == CHILD_CELL_BUG) {
		check_bug(o, ev);
		ck_assert_int_eq(owner_state(o), st);
		owner_free(o);
		return;
	}
	owner_event(o, ev);
	ck_assert_msg(owner_state(o) == want->next, "%s: event %d leads to %s",
	    child_state_text(st), (int)ev, child_state_text(owner_state(o)));
	ck_assert_uint_eq(o->ups - was.ups, want->ups);
	ck_assert_uint_eq(o->downs - was.downs, want->downs);
	ck_assert_uint_eq(o->stopped - was.stopped, want->stopped);
	ck_assert_uint_eq(o->closes - was.closes, want->closes);
	ck_assert_uint_eq(o->forces - was.forces, want->forces);
	ck_assert_uint_eq(o->parked, st == CHILD_ST_FAILED ? 1 : 0);
	if (owner_proc(o) != NULL)
		ck_assert_uint_eq(fake_proc_signals(owner_proc(o), SIGTERM), want->terms);
	ck_assert_uint_eq(fake_loop_timers(o->loop), has_deadline(want->next) ? 1 : 0);
	owner_free(o);
}

START_TEST(every_cell)
{
	enum child_state st = (enum child_state)_i;

	for (int ev = 0; ev < CHILD_EV_MAX; ev++)
		check_cell(st, (enum child_event)ev);
}
END_TEST

/* What was remembered shows when it settles. */
START_TEST(what_is_wanted_is_remembered)
{
	static const struct {
		enum child_state st;
		enum child_event ev;
		enum child_state next;
	} rows[] = {
	    {CHILD_ST_RUNNING, CHILD_EV_FAIL, CHILD_ST_BACKOFF},
	    {CHILD_ST_STOPPING, CHILD_EV_START, CHILD_ST_RUNNING},
	    {CHILD_ST_STOPPING, CHILD_EV_STOP, CHILD_ST_DOWN},
	    {CHILD_ST_STOPPING, CHILD_EV_RESTART, CHILD_ST_RUNNING},
	    {CHILD_ST_REAPED, CHILD_EV_START, CHILD_ST_BACKOFF},
	    {CHILD_ST_REAPED, CHILD_EV_STOP, CHILD_ST_DOWN},
	    {CHILD_ST_REAPED, CHILD_EV_RESTART, CHILD_ST_BACKOFF},
	    {CHILD_ST_CLOSED, CHILD_EV_START, CHILD_ST_BACKOFF},
	    {CHILD_ST_CLOSED, CHILD_EV_STOP, CHILD_ST_DOWN},
	    {CHILD_ST_CLOSED, CHILD_EV_RESTART, CHILD_ST_BACKOFF},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct owner *o = owner_in_state(rows[i].st);

		owner_event(o, rows[i].ev);
		if (rows[i].st != CHILD_ST_REAPED)
			fake_proc_exit(owner_proc(o), status_exit(0));
		if (rows[i].st != CHILD_ST_CLOSED)
			owner_output_ends(o);
		ck_assert_int_eq(owner_state(o), rows[i].next);
		ck_assert_int_eq(o->last_wanted, rows[i].ev != CHILD_EV_STOP);
		ck_assert_uint_eq(o->stopped, rows[i].ev == CHILD_EV_STOP ? 1 : 0);
		owner_free(o);
	}
}
END_TEST

/* ---- random walks ---- */

struct walk {
	struct owner *o;
	unsigned seed;
	bool no_exec; /* the process has said that it is none */
	struct proc *proc;
};

static unsigned
walk_random(struct walk *w, unsigned limit)
{
	return (unsigned)rand_r(&w->seed) % limit;
}

static bool
walk_can_act(const struct walk *w)
{
	return w->proc != NULL && !fake_proc_is_freed(w->proc) &&
	       !proc_has_exited(w->proc);
}

static void
walk_process_step(struct walk *w)
{
	static const char noise[] = "one\ntwo \xff\x1b[1m three";
	int fd;

	if (owner_proc(w->o) != w->proc) {
		w->proc = owner_proc(w->o);
		w->no_exec = false;
	}
	if (!walk_can_act(w))
		return;
	switch (walk_random(w, 4)) {
	case 0:
		if (!w->no_exec)
			fake_proc_fail_exec(w->proc, SPAWN_STEP_CWD, ENOENT);
		w->no_exec = true;
		break;
	case 1:
		fd = fake_proc_stderr(w->proc);
		if (fd >= 0)
			ck_assert_int_gt(
			    write(fd, noise, walk_random(w, sizeof(noise) - 1) + 1), 0);
		break;
	case 2:
		fake_proc_close(w->proc, fake_proc_stderr(w->proc));
		break;
	default:
		fake_proc_set_group_alive(w->proc, walk_random(w, 2) == 0);
		fake_proc_exit(w->proc, walk_random(w, 2) == 0
					    ? status_exit((int)walk_random(w, 2))
					    : status_signal(SIGSEGV));
		break;
	}
}

static void
walk_habits(struct walk *w)
{
	struct owner *o = w->o;

	o->verdict = walk_random(w, 4) == 0 ? CHILD_EXCUSE : CHILD_COUNT;
	o->in_down =
	    walk_random(w, 8) == 0 ? (enum owner_do)walk_random(w, 4) : OWNER_NOTHING;
	/* Starting again at once what cannot be started would be for ever. */
	if (o->in_down == OWNER_STOP || o->in_down == OWNER_NOTHING)
		fake_spawner_fail(o->spawner, walk_random(w, 2), EAGAIN);
	else
		fake_spawner_fail(o->spawner, 0, 0);
	o->report_in_force = walk_random(w, 2) == 0;
	fake_spawner_set_obedient(o->spawner, walk_random(w, 2) == 0);
	fake_spawner_set_unkillable(o->spawner, walk_random(w, 4) == 0);
}

static void
walk_step(struct walk *w)
{
	struct owner *o = w->o;
	struct child_ladder ladder = child_ladder_defaults;

	walk_habits(w);
	switch (walk_random(w, 12)) {
	case 0:
		owner_start(o);
		break;
	case 1:
		owner_stop(o);
		break;
	case 2:
		owner_restart(o);
		break;
	case 3:
		child_note_ready(o->child);
		break;
	case 4:
		ladder.term_ms = walk_random(w, 3000);
		ladder.kill_ms = walk_random(w, 3000);
		ladder.drain_ms = walk_random(w, 2000);
		child_set_ladder(o->child, &ladder);
		break;
	case 5:
	case 6:
		if (o->up && o->out_open)
			owner_output_ends(o);
		break;
	case 7:
		fake_loop_advance(o->loop, walk_random(w, 60000));
		break;
	case 8:
		fake_loop_advance(o->loop, walk_random(w, 1500));
		break;
	default:
		walk_process_step(w);
		break;
	}
}

static void
walk_check(const struct walk *w)
{
	struct owner *o = w->o;
	enum child_state st = owner_state(o);
	bool there = st == CHILD_ST_RUNNING || st == CHILD_ST_STOPPING ||
		     st == CHILD_ST_REAPED || st == CHILD_ST_CLOSED;

	ck_assert_uint_le(fake_spawner_live(o->spawner), there ? 1 : 0);
	ck_assert_int_eq(child_pid(o->child) != 0, there);
	ck_assert_int_eq(o->up, there);
	ck_assert_uint_eq(fake_loop_timers(o->loop), has_deadline(st) ? 1 : 0);
	if (st != CHILD_ST_BACKOFF)
		ck_assert_uint_eq(child_next_ms(o->child), 0);
	if (st == CHILD_ST_DOWN || st == CHILD_ST_BACKOFF || st == CHILD_ST_FAILED)
		ck_assert(!o->stop_owed);
	if (!there)
		ck_assert_uint_eq(fake_loop_watches(o->loop), 0);
}

START_TEST(random_walks_keep_the_invariants)
{
	struct child_opts opts = owner_opts();
	struct walk w = {.seed = (unsigned)_i + 1};
	unsigned visits[CHILD_ST_MAX] = {0};

	opts.backoff.budget = 3;
	w.o = owner_new(&opts);
	for (unsigned i = 0; i < WALK_STEPS; i++) {
		walk_step(&w);
		walk_check(&w);
		visits[owner_state(w.o)]++;
	}
	for (int st = 0; st < CHILD_ST_MAX; st++)
		ck_assert_msg(
		    visits[st] > 0, "never %s", child_state_text((enum child_state)st));
	owner_free(w.o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("child");
	TCase *tc = tcase_create("table");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_cell, 0, CHILD_ST_MAX);
	tcase_add_test(tc, what_is_wanted_is_remembered);
	tcase_add_loop_test(tc, random_walks_keep_the_invariants, 0, WALK_SEEDS);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
