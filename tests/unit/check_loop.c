/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * The loop: order within a turn, ends inside callbacks, timers, watches,
 * signals, slow callbacks.
 */
#include "mcpvisor/loop.h"

#include "../../src/io/loop_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <check.h>

static struct loop *l;
static char trace[256];
static struct deferred d[4];
static struct timer timers[3];
static struct watch w;
static int fds[2];
static int turns;

static void
note(const char *what)
{
	strncat(trace, what, sizeof(trace) - strlen(trace) - 1);
}

static void
on_note(void *arg)
{
	const char *what = arg;

	note(what);
}

static char a[] = "a", b[] = "b", c[] = "c", f[] = "f", t[] = "t";

static void
on_stop(void *arg)
{
	(void)arg;
	note("!");
	loop_stop(l, 7);
}

static void
setup(void)
{
	l = loop_new();
	ck_assert_ptr_nonnull(l);
	trace[0] = '\0';
	turns = 0;
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
}

static void
teardown(void)
{
	close(fds[0]);
	close(fds[1]);
	loop_free(l);
	l = NULL;
}

START_TEST(test_deferred_order)
{
	deferred_init(&d[0], l, on_note, a);
	deferred_init(&d[1], l, on_note, b);
	deferred_init(&d[2], l, on_note, c);
	deferred_init(&d[3], l, on_stop, NULL);
	deferred_ask(&d[0]);
	deferred_ask(&d[2]);
	deferred_ask(&d[1]);
	deferred_ask(&d[0]); /* twice is once */
	deferred_ask(&d[3]);
	deferred_cancel(&d[2]);
	deferred_cancel(&d[2]);
	loop_defer_free(l, on_note, f);
	ck_assert_int_eq(loop_run(l), 7);
	ck_assert_str_eq(trace, "ab!");
	/* What is left after a stop comes in the next run, or at the end. */
	loop_free(l);
	ck_assert_str_eq(trace, "ab!f");
	l = loop_new();
}
END_TEST

static void
on_cancel_all(void *arg)
{
	(void)arg;
	note("x");
	deferred_cancel(&d[1]);
	deferred_cancel(&d[2]);
	deferred_ask(&d[3]); /* next turn, but at once */
}

START_TEST(test_deferred_cancel_while_draining)
{
	deferred_init(&d[0], l, on_cancel_all, NULL);
	deferred_init(&d[1], l, on_note, b);
	deferred_init(&d[2], l, on_note, c);
	deferred_init(&d[3], l, on_stop, NULL);
	deferred_ask(&d[0]);
	deferred_ask(&d[1]);
	deferred_ask(&d[2]);
	loop_defer_free(l, on_note, f);
	loop_run(l);
	ck_assert_str_eq(trace, "xf!");
	/* The list still works after the removal of its tail. */
	deferred_ask(&d[1]);
	deferred_ask(&d[2]);
	deferred_cancel(&d[2]);
	deferred_ask(&d[3]);
	loop_run(l);
	ck_assert_str_eq(trace, "xf!b!");
}
END_TEST

START_TEST(test_stop_leaves_the_rest)
{
	deferred_init(&d[0], l, on_stop, NULL);
	deferred_init(&d[1], l, on_note, b);
	deferred_init(&d[2], l, on_stop, NULL);
	deferred_ask(&d[0]);
	deferred_ask(&d[1]);
	deferred_ask(&d[2]);
	loop_run(l);
	ck_assert_str_eq(trace, "!");
	loop_run(l);
	ck_assert_str_eq(trace, "!b!");
	loop_stop(l, 3); /* before the run counts too */
	ck_assert_int_eq(loop_run(l), 3);
}
END_TEST

static void
on_timer_reset(void *arg)
{
	(void)arg;
	ck_assert(!timer_is_set(&timers[0]));
	note("r");
	if (++turns < 3)
		timer_set(&timers[0], 1);
	else
		timer_fini(&timers[0]);
}

START_TEST(test_timers)
{
	uint64_t start = clock_now_ms();

	timer_init(&timers[0], l, on_timer_reset, NULL);
	timer_init(&timers[1], l, on_stop, NULL);
	timer_init(&timers[2], l, on_note, t);
	ck_assert(!timer_is_set(&timers[0]));
	timer_set(&timers[0], 0);
	timer_set(&timers[1], 3600 * 1000);
	timer_set(&timers[1], 60); /* replaces */
	timer_set(&timers[2], 20);
	timer_clear(&timers[2]);
	ck_assert(timer_is_set(&timers[1]));
	loop_run(l);
	ck_assert_str_eq(trace, "rrr!");
	ck_assert_uint_ge(clock_now_ms() - start, 50);
	timer_set(&timers[2], UINT64_MAX);
	for (int i = 0; i < 3; i++) {
		timer_fini(&timers[i]);
		timer_fini(&timers[i]);
	}
	memset(timers, 0, sizeof(timers));
	timer_fini(&timers[0]);
}
END_TEST

static void
on_pipe(void *arg, unsigned ready)
{
	char byte;

	(void)arg;
	if (ready & WATCH_WRITE)
		note("w");
	if (ready & WATCH_READ) {
		ck_assert_int_eq(read(w.fd, &byte, 1), 1);
		note("r");
	}
	deferred_ask(&d[0]);
	if (++turns == 2) {
		watch_want(&w, 0);
		deferred_ask(&d[1]);
	}
}

START_TEST(test_watch_is_level_triggered)
{
	deferred_init(&d[0], l, on_note, a);
	deferred_init(&d[1], l, on_stop, NULL);
	watch_init(&w, l, fds[0], on_pipe, NULL);
	ck_assert(!w.is_file);
	watch_want(&w, WATCH_READ);
	ck_assert_int_eq(write(fds[1], "123", 3), 3);
	loop_run(l);
	ck_assert_str_eq(trace, "rara!");
	watch_fini(&w);
	watch_fini(&w);
}
END_TEST

static void
on_end_itself(void *arg, unsigned ready)
{
	(void)arg;
	(void)ready;
	note("e");
	watch_fini(&w);
	deferred_ask(&d[1]);
}

/* Also with a second direction ready in the same turn. */
START_TEST(test_watch_ends_inside_its_callback)
{
	const char *const paths[] = {"/dev/null", "/dev/zero", "/proc/self/exe"};
	int both[2];

	deferred_init(&d[1], l, on_stop, NULL);
	ck_assert_int_eq(pipe2(both, O_CLOEXEC | O_NONBLOCK), 0);
	close(both[0]); /* an error is readiness for all */
	watch_init(&w, l, both[1], on_end_itself, NULL);
	watch_want(&w, WATCH_READ | WATCH_WRITE);
	loop_run(l);
	ck_assert_str_eq(trace, "e!");
	close(both[1]);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		trace[0] = '\0';
		watch_init(&w, l, fd, on_end_itself, NULL);
		ck_assert(w.is_file);
		watch_want(&w, WATCH_READ);
		loop_run(l);
		ck_assert_str_eq(trace, "e!");
		close(fd);
	}
}
END_TEST

START_TEST(test_file_is_always_ready)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	deferred_init(&d[0], l, on_note, a);
	deferred_init(&d[1], l, on_stop, NULL);
	watch_init(&w, l, fd, on_pipe, NULL);
	watch_want(&w, WATCH_READ);
	loop_run(l);
	/* Its turns are deferred work themselves. */
	ck_assert_str_eq(trace, "rra!");
	watch_fini(&w);
	close(fd);
}
END_TEST

START_TEST(test_signals)
{
	struct sigaction sa;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ck_assert(loop_on_signal(l, SIGUSR1, on_stop, NULL));
	ck_assert(!loop_on_signal(l, SIGUSR1, on_stop, NULL));
	ck_assert(!loop_on_signal(l, 0, on_stop, NULL));
	raise(SIGUSR1);
	ck_assert_int_eq(loop_run(l), 7);
	ck_assert(loop_on_signal(l, SIGUSR1, NULL, NULL));
	ck_assert(loop_on_signal(l, SIGUSR1, on_stop, NULL));
	sigaction(SIGPIPE, NULL, &sa);
	ck_assert(sa.sa_handler == SIG_IGN);
}
END_TEST

static uint64_t fake_now;

static uint64_t
fake_clock(void)
{
	return fake_now;
}

static void
on_slow(void *arg)
{
	const uint64_t *ms = arg;

	fake_now += *ms;
}

START_TEST(test_no_loop_without_descriptors)
{
	struct rlimit was, few;
	struct loop *other;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	for (rlim_t n = 0; n < 64; n++) {
		few.rlim_cur = n;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		other = loop_new();
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
		ck_assert(other != NULL || n < 40);
		if (other != NULL)
			loop_free(other);
	}
}
END_TEST

/* What libevent keeps for each descriptor is not among what comes and goes with it. */
START_TEST(test_what_is_kept_lies_apart)
{
	enum { N = 300, TABLE_BYTES = 8192 };
	struct watch all[N];
	int fd[N];
	size_t before;

	watch_init(&w, l, fds[0], on_pipe, NULL);
	watch_want(&w, WATCH_READ);
	before = mem_in_use();
	for (int i = 0; i < N; i++) {
		fd[i] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
		ck_assert_int_ge(fd[i], 0);
		watch_init(&all[i], l, fd[i], on_pipe, NULL);
		watch_want(&all[i], WATCH_READ);
	}
	ck_assert_uint_gt(mem_in_use() - before, N * 64);
	for (int i = 0; i < N; i++) {
		watch_fini(&all[i]);
		close(fd[i]);
	}
	ck_assert_uint_le(mem_in_use() - before, TABLE_BYTES);
	watch_fini(&w);
}
END_TEST

START_TEST(test_cells)
{
	static const char text[32] = "0123456789abcdef0123456789abcde";
	size_t before = mem_in_use();
	char *p = loop_cell_alloc(1), *q = loop_cell_realloc(NULL, 32), *r;

	p[0] = 'a';
	memcpy(q, text, sizeof(text));
	ck_assert_uint_eq(mem_in_use(), before);
	ck_assert_ptr_eq(loop_cell_realloc(q, 8), q);
	r = loop_cell_realloc(q, 1000);
	ck_assert_uint_gt(mem_in_use(), before);
	ck_assert_int_eq(memcmp(r, text, sizeof(text)), 0);
	r = loop_cell_realloc(r, 2000);
	ck_assert_int_eq(memcmp(r, text, sizeof(text)), 0);
	/* What has come back is given away first. */
	ck_assert_ptr_eq(loop_cell_alloc(16), q);
	ck_assert_int_eq(p[0], 'a');
	loop_cell_free(r);
	loop_cell_free(q);
	loop_cell_free(p);
	loop_cell_free(NULL);
	ck_assert_uint_eq(mem_in_use(), before);
}
END_TEST

/* Beyond the cells there is the allocator. */
START_TEST(test_cells_run_out)
{
	enum { N = 20000 };
	void **all = mem_xcalloc(N, sizeof(*all));
	size_t before = mem_in_use();

	for (int i = 0; i < N; i++) {
		all[i] = loop_cell_alloc(32);
		memset(all[i], 'x', 32);
	}
	ck_assert_uint_gt(mem_in_use(), before);
	for (int i = 0; i < N; i++)
		loop_cell_free(all[i]);
	ck_assert_uint_eq(mem_in_use(), before);
	mem_free(all);
}
END_TEST

START_TEST(test_slow_callbacks_are_counted)
{
	uint64_t before = metrics_get(METRIC_SLOW_TURNS), quick = 50, slow = 51;

	fake_now = 1000;
	clock_set_source(fake_clock);
	deferred_init(&d[0], l, on_slow, &quick);
	deferred_init(&d[1], l, on_slow, &slow);
	deferred_init(&d[2], l, on_stop, NULL);
	deferred_ask(&d[0]);
	deferred_ask(&d[1]);
	timer_init(&timers[0], l, on_slow, &slow);
	timer_set(&timers[0], 0);
	timer_init(&timers[1], l, on_stop, NULL);
	timer_set(&timers[1], 10);
	loop_run(l);
	clock_set_source(NULL);
	timer_fini(&timers[0]);
	timer_fini(&timers[1]);
	ck_assert_uint_eq(metrics_get(METRIC_SLOW_TURNS) - before, 2);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("loop");
	TCase *tc = tcase_create("loop");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_deferred_order);
	tcase_add_test(tc, test_deferred_cancel_while_draining);
	tcase_add_test(tc, test_stop_leaves_the_rest);
	tcase_add_test(tc, test_timers);
	tcase_add_test(tc, test_watch_is_level_triggered);
	tcase_add_test(tc, test_watch_ends_inside_its_callback);
	tcase_add_test(tc, test_file_is_always_ready);
	tcase_add_test(tc, test_signals);
	tcase_add_test(tc, test_no_loop_without_descriptors);
	tcase_add_test(tc, test_what_is_kept_lies_apart);
	tcase_add_test(tc, test_cells);
	tcase_add_test(tc, test_cells_run_out);
	tcase_add_test(tc, test_slow_callbacks_are_counted);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
