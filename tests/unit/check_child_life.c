/* layer: upstream, fakes: loop spawn child_owner */
/* SPDX-License-Identifier: MIT */
/* Lives of a child as stories: the ladder in time, failing starts, restarts. */
#include "fake/fake_child_owner.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/metrics.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct owner *
owner_default(void)
{
	struct child_opts opts = owner_opts();

	return owner_new(&opts);
}

/* ---- stopping ---- */

START_TEST(stop_climbs_the_ladder)
{
	struct owner *o = owner_default();
	struct proc *p;

	fake_spawner_set_obedient(o->spawner, false);
	owner_start(o);
	p = owner_proc(o);
	owner_stop(o);
	ck_assert_uint_eq(o->closes, 1);
	fake_loop_advance(o->loop, 1999);
	ck_assert_uint_eq(fake_proc_signals(p, SIGTERM), 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(fake_proc_signals(p, SIGTERM), 1);
	ck_assert_uint_eq(fake_proc_signals(p, SIGCONT), 1);
	fake_loop_advance(o->loop, 2999);
	ck_assert_uint_eq(fake_proc_signals(p, SIGKILL), 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(fake_proc_signals(p, SIGKILL), 1);
	ck_assert_int_eq(owner_state(o), CHILD_ST_REAPED);
	owner_output_ends(o);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_int_eq(o->last_end.err, MV_STOPPING);
	ck_assert_str_eq(o->last_end.text, "killed by signal 9 (Killed)");
	ck_assert(owner_log_has(o,
	    "notice child: ended upstream=alpha pid=1000 signal=9 uptime_ms=5000 "
	    "restarts=0 next_ms=-1\n"));
	owner_free(o);
}
END_TEST

START_TEST(end_of_input_is_enough_for_most)
{
	uint64_t deaths = metrics_get(METRIC_CHILD_DEATHS);
	struct owner *o = owner_default();

	owner_start(o);
	owner_stop(o);
	fake_loop_advance(o->loop, 100);
	owner_proc_dies(o, status_exit(0));
	ck_assert_int_eq(owner_state(o), CHILD_ST_DOWN);
	ck_assert_uint_eq(fake_proc_signals(owner_proc(o), SIGTERM), 0);
	ck_assert_uint_eq(fake_proc_signals(owner_proc(o), SIGKILL), 0);
	ck_assert(fake_proc_is_freed(owner_proc(o)));
	ck_assert_str_eq(o->last_end.text, "exited with status 0");
	ck_assert(!o->last_wanted);
	ck_assert_uint_eq(metrics_get(METRIC_CHILD_DEATHS), deaths);
	owner_free(o);
}
END_TEST

START_TEST(ladder_changes_under_way)
{
	static const struct child_ladder hurry = {
	    .term_ms = 1200, .kill_ms = 500, .drain_ms = 100};
	struct owner *o = owner_default();
	struct proc *p;

	fake_spawner_set_obedient(o->spawner, false);
	owner_start(o);
	p = owner_proc(o);
	owner_stop(o);
	fake_loop_advance(o->loop, 1000);
	child_set_ladder(o->child, &hurry);
	fake_loop_advance(o->loop, 199);
	ck_assert_uint_eq(fake_proc_signals(p, SIGTERM), 0);
	fake_loop_advance(o->loop, 1);
	ck_assert_uint_eq(fake_proc_signals(p, SIGTERM), 1);
	fake_loop_advance(o->loop, 500);
	ck_assert_uint_eq(fake_proc_signals(p, SIGKILL), 1);
	ck_assert_int_eq(owner_state(o), CHILD_ST_REAPED);
	fake_loop_advance(o->loop, 100);
	ck_assert_uint_eq(o->stopped, 1);
	/* Shorter than what has passed already: at once. */
	owner_start(o);
	owner_stop(o);
	child_set_ladder(o->child, &child_ladder_defaults);
	fake_loop_advance(o->loop, 1900);
	child_set_ladder(o->child, &hurry);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(fake_proc_signals(owner_proc(o), SIGTERM), 1);
	owner_free(o);
}
END_TEST

START_TEST(unkillable_is_given_up)
{
	struct owner *o = owner_default();

	fake_spawner_set_obedient(o->spawner, false);
	fake_spawner_set_unkillable(o->spawner, true);
	owner_start(o);
	owner_stop(o);
	fake_loop_advance(o->loop, 5999);
	ck_assert_int_eq(owner_state(o), CHILD_ST_STOPPING);
	fake_loop_advance(o->loop, 1);
	ck_assert_int_eq(owner_state(o), CHILD_ST_REAPED);
	fake_loop_advance(o->loop, 1000);
	ck_assert_uint_eq(o->forces, 1);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_str_eq(o->last_end.text, "did not end when killed");
	owner_free(o);
}
END_TEST

START_TEST(output_may_outlive_the_process)
{
	for (int report = 0; report <= 1; report++) {
		struct owner *o = owner_default();

		o->report_in_force = report == 1;
		owner_start(o);
		fake_proc_set_group_alive(owner_proc(o), true);
		fake_proc_exit(owner_proc(o), status_exit(3));
		fake_loop_advance(o->loop, 999);
		ck_assert_uint_eq(o->downs, 0);
		fake_loop_advance(o->loop, 1);
		ck_assert_uint_eq(o->forces, 1);
		ck_assert_uint_eq(o->downs, 1);
		ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
		ck_assert(owner_log_has(o, "leftover upstream=alpha pid=1000"));
		owner_free(o);
	}
}
END_TEST

START_TEST(closing_its_output_is_an_end)
{
	struct owner *o = owner_default();

	owner_start(o);
	owner_output_ends(o);
	ck_assert_uint_eq(o->closes, 1);
	fake_loop_advance(o->loop, 2000);
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	ck_assert_int_eq(o->last_end.err, MV_DIED);
	owner_free(o);
}
END_TEST

START_TEST(stop_taken_back_comes_up_again)
{
	struct owner *o = owner_default();

	owner_start(o);
	owner_stop(o);
	owner_stop(o);
	owner_start(o);
	owner_proc_dies(o, status_exit(0));
	ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	ck_assert_uint_eq(o->stopped, 0);
	ck_assert(o->last_wanted);
	owner_stop(o);
	owner_stop(o);
	owner_proc_dies(o, status_exit(0));
	ck_assert_uint_eq(o->stopped, 1);
	owner_free(o);
}
END_TEST

START_TEST(may_be_freed_when_stopped)
{
	struct owner *o = owner_default();

	o->free_in_stopped = true;
	owner_start(o);
	owner_stop(o);
	owner_proc_dies(o, status_exit(0));
	ck_assert_ptr_null(o->child);
	owner_free(o);

	/* No process came to be, and its owner has had enough. */
	o = owner_default();
	o->free_in_stopped = true;
	o->in_down = OWNER_STOP;
	fake_spawner_fail(o->spawner, 1, EAGAIN);
	owner_start(o);
	ck_assert_ptr_null(o->child);
	ck_assert_uint_eq(o->parked, 0);
	owner_free(o);
}
END_TEST

/* ---- coming back ---- */

START_TEST(crash_loop_is_slow_and_ends)
{
	struct owner *o = owner_default();
	uint64_t begin = clock_now_ms();
	unsigned in_first_minute = 0;

	owner_start(o);
	while (owner_state(o) != CHILD_ST_FAILED) {
		ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
		owner_proc_dies(o, status_exit(1));
		ck_assert_uint_le(fake_spawner_live(o->spawner), 1);
		if (clock_now_ms() - begin < 60000)
			in_first_minute = fake_spawner_starts(o->spawner);
		if (owner_state(o) == CHILD_ST_BACKOFF) {
			uint64_t next_ms = child_next_ms(o->child);

			ck_assert_uint_gt(next_ms, 0);
			fake_loop_advance(o->loop, next_ms - 1);
			ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
			fake_loop_advance(o->loop, 1);
		}
	}
	ck_assert_uint_le(in_first_minute, 10);
	ck_assert_uint_eq(fake_spawner_starts(o->spawner), 10);
	ck_assert_uint_eq(child_restarts(o->child), 9);
	ck_assert_uint_eq(o->parked, 1);
	ck_assert(owner_log_has(o, "error child: parked upstream=alpha deaths=10"));
	fake_loop_advance(o->loop, 1000000);
	ck_assert_int_eq(owner_state(o), CHILD_ST_FAILED);
	/* Asked for again: with a new budget. */
	owner_start(o);
	owner_proc_dies(o, status_exit(1));
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	owner_free(o);
}
END_TEST

START_TEST(stable_uptime_forgives)
{
	struct owner *o = owner_default();

	owner_start(o);
	for (unsigned i = 0; i < 30; i++) {
		child_note_ready(o->child);
		fake_loop_advance(o->loop, 30000);
		owner_proc_dies(o, status_signal(SIGSEGV));
		ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
		ck_assert_uint_le(child_next_ms(o->child), 500);
		fake_loop_advance(o->loop, 500);
	}
	/* Up for long but never useful does not count. */
	for (unsigned i = 0; owner_state(o) != CHILD_ST_FAILED; i++) {
		ck_assert_uint_lt(i, 10);
		fake_loop_advance(o->loop, 60000);
		owner_proc_dies(o, status_signal(SIGSEGV));
		fake_loop_advance(o->loop, 60000);
	}
	owner_free(o);
}
END_TEST

START_TEST(leaving_politely_is_no_crash)
{
	struct owner *o = owner_default();

	owner_start(o);
	for (unsigned i = 0; i < 30; i++) {
		child_note_ready(o->child);
		owner_proc_dies(o, status_exit(0));
		ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
		ck_assert_uint_eq(child_next_ms(o->child), 500);
		fake_loop_advance(o->loop, 500);
	}
	/* Without having been of use it is one. */
	owner_proc_dies(o, status_exit(0));
	fake_loop_advance(o->loop, 500);
	owner_proc_dies(o, status_exit(0));
	ck_assert_uint_gt(child_next_ms(o->child), 500);
	owner_free(o);
}
END_TEST

START_TEST(excused_death_is_not_counted)
{
	struct owner *o = owner_default();

	o->verdict = CHILD_EXCUSE;
	owner_start(o);
	for (unsigned i = 0; i < 30; i++) {
		owner_proc_dies(o, status_exit(1));
		ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	}
	/* A command that does not exist has no excuse. */
	fake_proc_fail_exec(owner_proc(o), SPAWN_STEP_EXEC, ENOENT);
	owner_proc_dies(o, status_exit(127));
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	ck_assert_uint_le(child_next_ms(o->child), 500);
	owner_free(o);
}
END_TEST

START_TEST(restart_is_at_once)
{
	uint64_t deaths = metrics_get(METRIC_CHILD_DEATHS);
	struct owner *o = owner_default();

	owner_start(o);
	for (unsigned i = 0; i < 30; i++) {
		owner_restart(o);
		ck_assert_int_eq(owner_state(o), CHILD_ST_STOPPING);
		owner_proc_dies(o, status_exit(0));
		ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	}
	ck_assert_uint_eq(child_restarts(o->child), 30);
	ck_assert_uint_eq(metrics_get(METRIC_CHILD_DEATHS), deaths);
	ck_assert(owner_log_has(o, "reason=\"because \\x1b\""));
	/* One that turns out to be no command is counted all the same. */
	owner_restart(o);
	fake_proc_fail_exec(owner_proc(o), SPAWN_STEP_EXEC, ENOENT);
	owner_proc_dies(o, status_exit(127));
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	owner_free(o);
}
END_TEST

START_TEST(owner_decides_in_on_down)
{
	static const struct {
		enum owner_do act;
		enum child_state next;
	} rows[] = {
	    {OWNER_STOP, CHILD_ST_DOWN},
	    {OWNER_START, CHILD_ST_BACKOFF},
	    {OWNER_RESTART, CHILD_ST_BACKOFF},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct owner *o = owner_default();

		o->in_down = rows[i].act;
		owner_start(o);
		owner_proc_dies(o, status_exit(1));
		ck_assert_int_eq(owner_state(o), rows[i].next);
		owner_free(o);
	}
}
END_TEST

/* ---- what cannot be started ---- */

START_TEST(fork_that_fails_is_a_death)
{
	struct owner *o = owner_default();

	fake_spawner_fail(o->spawner, 2, EAGAIN);
	owner_start(o);
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	ck_assert_uint_eq(o->downs, 1);
	ck_assert(o->last_wanted);
	ck_assert_int_eq(o->last_end.err, MV_SPAWN);
	ck_assert_str_eq(o->last_end.text,
	    "cannot create a process for tool (PATH=/opt/bin): Resource temporarily "
	    "unavailable");
	ck_assert_str_eq(o->last_end.told,
	    "cannot create a process for tool: Resource temporarily unavailable");
	ck_assert_str_eq(child_last_end(o->child)->text, o->last_end.text);
	/* The pause goes on after a second failure, and longer. */
	fake_loop_advance(o->loop, 500);
	ck_assert_uint_eq(o->downs, 2);
	ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
	ck_assert_uint_gt(child_next_ms(o->child), 0);
	fake_loop_advance(o->loop, 1000);
	ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	owner_proc_dies(o, status_exit(1));
	fake_spawner_fail(o->spawner, 100, ENOMEM);
	while (owner_state(o) == CHILD_ST_BACKOFF)
		fake_loop_advance_to_timer(o->loop);
	ck_assert_int_eq(owner_state(o), CHILD_ST_FAILED);
	ck_assert_uint_eq(o->downs, 10);
	ck_assert_uint_eq(o->parked, 1);
	owner_free(o);
}
END_TEST

START_TEST(failed_exec_names_everything)
{
	static const struct {
		enum spawn_step step;
		int errnum;
		const char *text;
	} rows[] = {
	    {SPAWN_STEP_EXEC, ENOENT,
		"cannot execute tool (PATH=/opt/bin): No such file or directory"},
	    {SPAWN_STEP_EXEC, EACCES,
		"cannot execute tool (PATH=/opt/bin): Permission denied"},
	    {SPAWN_STEP_CWD, ENOENT,
		"cannot change directory to /srv for tool (PATH=/opt/bin): "
		"No such file or directory"},
	    {SPAWN_STEP_SETUP, EPERM,
		"cannot set up the process for tool (PATH=/opt/bin): "
		"Operation not permitted"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct owner *o = owner_default();

		owner_start(o);
		fake_proc_fail_exec(owner_proc(o), rows[i].step, rows[i].errnum);
		ck_assert_int_eq(owner_state(o), CHILD_ST_STOPPING);
		owner_proc_dies(o, status_exit(126));
		ck_assert_int_eq(owner_state(o), CHILD_ST_BACKOFF);
		ck_assert_int_eq(o->last_end.err, MV_SPAWN);
		ck_assert_str_eq(o->last_end.text, rows[i].text);
		ck_assert(owner_log_has(o, rows[i].text));
		owner_free(o);
	}
}
END_TEST

START_TEST(long_names_leave_the_reason)
{
	static char path[5000], dir[5000], command[5000];
	const char *const argv[] = {command, NULL};
	struct child_opts opts = owner_opts();
	struct owner *o;

	memset(path, 'p', sizeof(path) - 1);
	memset(dir, 'd', sizeof(dir) - 1);
	memset(command, 'c', sizeof(command) - 1);
	opts.spec.argv = argv;
	opts.spec.path = path;
	opts.spec.cwd = dir;
	for (int step = SPAWN_STEP_SETUP; step <= SPAWN_STEP_EXEC; step++) {
		o = owner_new(&opts);
		owner_start(o);
		fake_proc_fail_exec(owner_proc(o), (enum spawn_step)step, ENAMETOOLONG);
		owner_proc_dies(o, status_exit(126));
		ck_assert_ptr_nonnull(
		    strstr(o->last_end.text, "...): File name too long"));
		owner_free(o);
	}
	opts.spec.path = NULL;
	opts.spec.cwd = NULL;
	o = owner_new(&opts);
	owner_start(o);
	fake_proc_fail_exec(owner_proc(o), SPAWN_STEP_CWD, ENOENT);
	owner_proc_dies(o, status_exit(126));
	ck_assert_ptr_nonnull(strstr(o->last_end.text, "(PATH=default)"));
	owner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("child_life");
	TCase *tc = tcase_create("life");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, stop_climbs_the_ladder);
	tcase_add_test(tc, end_of_input_is_enough_for_most);
	tcase_add_test(tc, ladder_changes_under_way);
	tcase_add_test(tc, unkillable_is_given_up);
	tcase_add_test(tc, output_may_outlive_the_process);
	tcase_add_test(tc, closing_its_output_is_an_end);
	tcase_add_test(tc, stop_taken_back_comes_up_again);
	tcase_add_test(tc, may_be_freed_when_stopped);
	tcase_add_test(tc, crash_loop_is_slow_and_ends);
	tcase_add_test(tc, stable_uptime_forgives);
	tcase_add_test(tc, leaving_politely_is_no_crash);
	tcase_add_test(tc, excused_death_is_not_counted);
	tcase_add_test(tc, restart_is_at_once);
	tcase_add_test(tc, owner_decides_in_on_down);
	tcase_add_test(tc, fork_that_fails_is_a_death);
	tcase_add_test(tc, failed_exec_names_everything);
	tcase_add_test(tc, long_names_leave_the_reason);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
