/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * How a process and its group end, with us and without us.
 *
 * With CHECK_SPAWN_HELPER set this program is a supervisor of its own: it starts
 * one group, says its number and waits to be killed.
 */
#include "mcpvisor/spawn.h"

#include "spawn_rig.h"

START_TEST(test_free_inside_exit)
{
	free_on_exit = true;
	start("exit 0");
	wait_until(has_exited);
	ck_assert_ptr_null(proc);
	ck_assert_int_eq(exits, 1);
}
END_TEST

/* A group whose members all ignore TERM; the command itself is gone. */
START_TEST(test_kill_reaches_grandchildren)
{
	start("trap '' TERM; (sleep 1000; :) & (sleep 1000; :) & echo up; exit 0");
	wait_until(has_line);
	wait_until(has_exited);
	ck_assert(proc_group_is_alive(proc));
	ck_assert(!out_ended); /* they hold it open */
	ck_assert(proc_signal_group(proc, SIGTERM));
	ck_assert(proc_group_is_alive(proc));
	ck_assert(proc_signal_group(proc, SIGKILL));
	wait_until(group_is_gone);
	ck_assert(!proc_signal_group(proc, SIGKILL));
	wait_until(all_is_told); /* the guard does not hold it open */
	ck_assert_int_eq(exits, 1);
}
END_TEST

START_TEST(test_free_kills_the_group)
{
	start("trap '' TERM; sleep 1000 & echo up; wait");
	wait_until(has_line);
	proc_free(proc);
	proc_free(proc);
	proc = NULL;
	wait_until(no_child_left);
	ck_assert_int_eq(exits, 0);
}
END_TEST

/* TERM ends an ordinary child and leaves the guard. */
START_TEST(test_term)
{
	start("exec sleep 1000");
	ck_assert(proc_signal_group(proc, SIGTERM));
	wait_until(has_exited);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	ck_assert(!no_child_left());
}
END_TEST

static uint64_t strays_before;

static bool
stray_is_counted(void)
{
	return metrics_get(METRIC_CHILD_STRAYS) > strays_before;
}

START_TEST(test_strays_are_reaped)
{
	strays_before = metrics_get(METRIC_CHILD_STRAYS);
	start("(read x; exit 0) & exit 0");
	wait_until(has_exited);
	close(fds.in);
	fds.in = -1;
	wait_until(stray_is_counted);
	ck_assert_uint_eq(metrics_get(METRIC_CHILD_STRAYS), strays_before + 1);
}
END_TEST

static pid_t left;

static bool
left_is_on_its_own(void)
{
	return getsid(left) == left;
}

static bool
turns_have_passed(void)
{
	static unsigned n;

	return ++n % 3 == 0;
}

/* What lives on outside of the group is told once, not at each end. */
START_TEST(test_what_is_left_running_is_told)
{
	strays_before = metrics_get(METRIC_CHILD_STRAYS);
	start("setsid sleep 1000 >&- 2>&- <&- & echo $!; exit 0");
	wait_until(has_line);
	left = (pid_t)strtol(buf_cstr(&out), NULL, 10);
	wait_until(left_is_on_its_own);
	wait_until(has_exited);
	proc_free(proc);
	proc = NULL;
	wait_until(turns_have_passed);
	ck_assert_uint_eq(metrics_get(METRIC_CHILD_STRAYS), strays_before + 1);
	watch_fini(&out_watch);
	close(fds.in);
	close(fds.out);
	close(fds.err);
	start("exit 0");
	proc_free(proc);
	proc = NULL;
	wait_until(turns_have_passed);
	ck_assert_uint_eq(metrics_get(METRIC_CHILD_STRAYS), strays_before + 1);
	ck_assert_int_eq(kill(left, SIGKILL), 0);
}
END_TEST

START_TEST(test_no_descriptor_is_left)
{
	int before;

	start("exit 0");
	wait_until(all_is_told);
	stop();
	before = count_fds();
	for (int i = 0; i < 10; i++) {
		exits = 0;
		out_ended = false;
		start(i % 2 ? "exit 0" : "sleep 1000");
		if (i % 2)
			wait_until(all_is_told);
		stop();
	}
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

/* Any process in the group, zombies aside, as the kernel sees it. */
static pid_t watched_group;

static bool
watched_group_is_gone(void)
{
	/* Orphans come to us, the nearest subreaper, and are reaped by the loop. */
	return kill(-watched_group, 0) != 0 && errno == ESRCH;
}

static const char *const helper_env[] = {
    "CHECK_SPAWN_HELPER=1", "ASAN_OPTIONS=detect_leaks=0", NULL};

/* We are killed and cannot clean up: the guard does, within its bound. */
START_TEST(test_guard)
{
	char self[256];
	const char *const argv[] = {self, NULL};
	const struct spawn_spec spec = {.name = "h", .argv = argv, .envp = helper_env};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint64_t start_ms;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	start_spec(&spec);
	wait_until(has_line);
	watched_group = (pid_t)strtol(buf_cstr(&out), NULL, 10);
	ck_assert_int_gt(watched_group, 1);
	ck_assert_int_eq(kill(-watched_group, 0), 0);
	start_ms = clock_now_ms();
	kill(proc_pid(proc), SIGKILL);
	wait_until(watched_group_is_gone);
	ck_assert_uint_lt(clock_now_ms() - start_ms, 5000);
}
END_TEST

static void
on_helper_output(void *arg, unsigned ready)
{
	char text[64];
	ssize_t n = read(fds.out, text, sizeof(text));

	(void)arg;
	(void)ready;
	if (n <= 0)
		_exit(2);
	/* "up": the traps are set. */
	n = snprintf(text, sizeof(text), "%d\n", (int)proc_pid(proc));
	(void)!write(STDOUT_FILENO, text, (size_t)n);
	watch_want(&out_watch, 0);
}

static int
helper_main(void)
{
	const char *const argv[] = {"sh", "-c",
	    "trap '' TERM; (trap '' TERM; sleep 1000; :) & sleep 1000 & echo up; wait; "
	    "wait",
	    NULL};
	const struct spawn_spec spec = {.name = "t", .argv = argv, .envp = env};

	l = loop_new();
	sp = spawner_new(l);
	if (spawner_start(sp, &spec, &cb, &proc, &proc, &fds) != MV_OK)
		return 1;
	watch_init(&out_watch, l, fds.out, on_helper_output, NULL);
	watch_want(&out_watch, WATCH_READ);
	return loop_run(l);
}

int
main(void)
{
	Suite *suite = suite_create("spawn");
	TCase *tc = tcase_create("spawn");

	if (getenv("CHECK_SPAWN_HELPER"))
		return helper_main();
	tcase_add_test(tc, test_free_inside_exit);
	tcase_add_test(tc, test_kill_reaches_grandchildren);
	tcase_add_test(tc, test_free_kills_the_group);
	tcase_add_test(tc, test_term);
	tcase_add_test(tc, test_strays_are_reaped);
	tcase_add_test(tc, test_what_is_left_running_is_told);
	tcase_add_test(tc, test_no_descriptor_is_left);
	tcase_add_test(tc, test_guard);
	return run_suite(suite, tc);
}
