/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * How a run ends, what is kept of it, and that nothing of it stays.
 */
#include "mcpvisor/run.h"

#include "run_rig.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "temp_rig.h"

static struct temp temp;

struct end_case {
	const char *script;
	bool merges;
	enum run_how how;
	int status;
	const char *out, *err;
};

static const struct end_case end_cases[] = {
    {"exit 0", false, RUN_EXITED, 0, "", ""},
    {"echo hi; echo there >&2", false, RUN_EXITED, 0, "hi\n", "there\n"},
    {"printf 'a\\n\\n'; exit 3", false, RUN_EXITED, 3, "a\n\n", ""},
    {"exit 126", false, RUN_EXITED, 126, "", ""},
    {"echo no; exit 127", false, RUN_EXITED, 127, "no\n", ""},
    {"no-such-command-here 2>/dev/null", false, RUN_EXITED, 127, "", ""},
    {"echo part; kill -9 $$", false, RUN_SIGNALED, SIGKILL, "part\n", ""},
    {"kill -TERM $$", false, RUN_SIGNALED, SIGTERM, "", ""},
    {"echo a; echo b >&2; echo c", true, RUN_EXITED, 0, "a\nb\nc\n", ""},
    {"cat; echo end", false, RUN_EXITED, 0, "end\n", ""},
    {"exec >&- 2>&-; exit 4", false, RUN_EXITED, 4, "", ""},
};

START_TEST(test_ends)
{
	const struct end_case *c = &end_cases[_i];
	struct run_opts o = run_opts_of(SH(c->script));
	const struct seen *s;

	o.merges = c->merges;
	s = run_to_end(&o);
	ck_assert_int_eq(s->how, c->how);
	ck_assert_int_eq(s->status, c->status);
	ck_assert_str_eq(buf_cstr(&seen[0].out), c->out);
	ck_assert_str_eq(buf_cstr(&seen[0].err), c->err);
	ck_assert_uint_eq(s->total, strlen(c->out));
	ck_assert_str_eq(s->error, "");
}
END_TEST

struct start_case {
	const char *command, *cwd, *error;
};

static const struct start_case start_cases[] = {
    {"/nowhere/run", NULL, "cannot execute: /nowhere/run: No such file or directory"},
    {"no-such", NULL, "cannot execute: no-such: No such file or directory"},
    {"/etc/passwd", NULL, "cannot execute: /etc/passwd: Permission denied"},
    {"/bin/true", "/nowhere",
	"cannot change directory: /bin/true: No such file or directory"},
};

START_TEST(test_not_started)
{
	const struct start_case *c = &start_cases[_i];
	struct run_opts o = run_opts_of((const char *const[]){c->command, NULL});
	const struct seen *s;

	o.spec.cwd = c->cwd;
	s = run_to_end(&o);
	ck_assert_int_eq(s->how, RUN_NOT_STARTED);
	ck_assert_str_eq(s->error, c->error);
	ck_assert_uint_eq(s->out.len, 0);
}
END_TEST

static size_t mem_before, mem_most;

static bool
end_with_memory_seen(void)
{
	size_t now = mem_in_use();

	if (now - mem_before > mem_most && now > mem_before)
		mem_most = now - mem_before;
	return all_have_ended();
}

/* All of it is read, the maximum is kept, the status is the program's. */
START_TEST(test_much_output)
{
	struct run_opts o = run_opts_of(
	    SH("head -c 10000000 /dev/zero | tr '\\0' x; echo end >&2; exit 5"));

	o.out_max = 262144;
	mem_before = mem_in_use();
	mem_most = 0;
	wanted_ends = 1;
	run_begin(0, &o);
	wait_until(end_with_memory_seen);
	ck_assert_int_eq(seen[0].how, RUN_EXITED);
	ck_assert_int_eq(seen[0].status, 5);
	ck_assert_uint_eq(seen[0].total, 10000000);
	ck_assert_uint_eq(seen[0].out.len, 262144);
	ck_assert_int_eq(seen[0].out.data[262143], 'x');
	ck_assert_str_eq(buf_cstr(&seen[0].err), "end\n");
	ck_assert_uint_lt(mem_most, 2u << 20);
}
END_TEST

/* Exactly the maximum is none too many; one byte more is, also from who is done. */
START_TEST(test_overflow_ends)
{
	static const struct {
		const char *script;
		enum run_how how;
		size_t kept;
	} cases[] = {
	    {"yes", RUN_OVERFLOWED, 1000},
	    {"trap '' TERM; yes", RUN_OVERFLOWED, 1000},
	    {"head -c 1000 /dev/zero", RUN_EXITED, 1000},
	    {"head -c 1001 /dev/zero", RUN_OVERFLOWED, 1000},
	};
	struct run_opts o = run_opts_of(SH(cases[_i].script));

	o.out_max = 1000;
	o.ends_on_overflow = true;
	o.kill_ms = 50;
	run_to_end(&o);
	ck_assert_int_eq(seen[0].how, cases[_i].how);
	ck_assert_uint_eq(seen[0].out.len, cases[_i].kept);
	ck_assert_int_eq(seen[0].status, 0);
}
END_TEST

START_TEST(test_stderr_tail)
{
	static const size_t keeps[] = {0, 1, 100, 13000, 20000};
	struct run_opts o = run_opts_of(
	    SH("i=1000; while [ $i -lt 3000 ]; do echo $i; i=$((i + 1)); done >&2"));
	char want[10001];

	for (int i = 0; i < 2000; i++)
		snprintf(want + (ptrdiff_t)i * 5, 6, "%d\n", 1000 + i);
	o.err_max = keeps[_i];
	run_to_end(&o);
	ck_assert_str_eq(
	    buf_cstr(&seen[0].err), want + (keeps[_i] < 10000 ? 10000 - keeps[_i] : 0));
}
END_TEST

/* Two that ignore TERM; of both nothing is left. */
START_TEST(test_timeout_of_the_stubborn)
{
	struct run_opts o = run_opts_of(
	    SH("trap '' TERM; (while :; do sleep 1000; done) & echo $! up; wait; wait"));
	uint64_t began = clock_now_ms();

	o.timeout_ms = 1500;
	o.kill_ms = 50;
	run_to_end(&o);
	ck_assert_int_eq(seen[0].how, RUN_TIMED_OUT);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&seen[0].out), " up\n"));
	ck_assert(!was_running);
	ck_assert_uint_ge(clock_now_ms() - began, 1550);
}
END_TEST

/* Who goes at TERM is not waited for, and has timed out even when it says 0. */
START_TEST(test_timeout_of_the_obedient)
{
	static const char *const scripts[] = {"echo $$; exec sleep 1000",
	    "trap 'exit 0' TERM; echo $$; while :; do sleep 0.01; done",
	    "echo $$; kill -STOP $$"};
	struct run_opts o = run_opts_of(SH(scripts[_i]));

	o.timeout_ms = 1000;
	run_to_end(&o);
	ck_assert_int_eq(seen[0].how, RUN_TIMED_OUT);
	ck_assert_uint_gt(seen[0].out.len, 0);
	ck_assert(!was_running);
}
END_TEST

/* One that holds the output open, and one that does not. */
START_TEST(test_lingering_child)
{
	static const char *const scripts[] = {"sleep 1000 & echo $!; exit 2",
	    "trap '' TERM; sleep 1000 & echo $!; exit 2",
	    "sleep 1000 >/dev/null 2>&1 & echo $!; exit 2"};
	struct run_opts o = run_opts_of(SH(scripts[_i]));

	o.drain_ms = 50;
	run_to_end(&o);
	ck_assert_int_eq(seen[0].how, RUN_EXITED);
	ck_assert_int_eq(seen[0].status, 2);
	ck_assert_int_gt(strtol(buf_cstr(&seen[0].out), NULL, 10), 1);
	ck_assert(!was_running);
}
END_TEST

static bool
has_file(const char *name)
{
	return access(temp_path(&temp, name), F_OK) == 0;
}

static bool
is_up(void)
{
	return has_file("up");
}

static struct run *
run_begin_in_temp(const char *script, uint32_t kill_ms)
{
	struct run_opts o = run_opts_of(SH(script));
	struct run *r;

	o.spec.cwd = temp.dir;
	o.kill_ms = kill_ms;
	r = run_begin(0, &o);
	wait_until(is_up);
	return r;
}

START_TEST(test_cancel)
{
	struct run *r = run_begin_in_temp(
	    "trap '' TERM; sleep 1000 & : >up; while :; do sleep 1; done", 20);

	run_cancel(r);
	run_cancel(r);
	wait_until(no_child_left);
	ck_assert_int_eq(seen[0].n, 0);
}
END_TEST

/* It is told when all of the group are gone, and may be given up until then. */
START_TEST(test_an_early_end)
{
	struct run *r = run_begin_in_temp(
	    "trap '' TERM; echo $$; sleep 1000 & : >up; while :; do sleep 1; done", 20);

	wanted_ends = 1;
	run_end_early(r);
	run_end_early(r);
	wait_until(all_have_ended);
	ck_assert_int_eq(seen[0].n, 1);
	ck_assert_int_eq(seen[0].how, RUN_CANCELLED);
	ck_assert_uint_eq(seen[0].out.len, 0);
	wait_until(no_child_left);
	ck_assert_int_eq(unlink(temp_path(&temp, "up")), 0);
	seen_reset();
	r = run_begin_in_temp("trap '' TERM; : >up; while :; do sleep 1; done", 20);
	run_end_early(r);
	run_cancel(r);
	wait_until(no_child_left);
	ck_assert_int_eq(seen[0].n, 0);
}
END_TEST

/* The first of the group goes at once; the others have their time. */
START_TEST(test_cancel_is_gentle)
{
	run_cancel(run_begin_in_temp(
	    "(trap 'sleep 0.2; : >done; exit' TERM; : >up; while :; do sleep 0.01; done) "
	    "& wait",
	    NEVER_MS));
	wait_until(no_child_left);
	ck_assert(has_file("done"));
	ck_assert_int_eq(seen[0].n, 0);
}
END_TEST

static struct run *to_cancel;

static void
on_end_cancels(void *arg, const struct run_end *e)
{
	on_run_end(arg, e);
	run_cancel(to_cancel);
}

START_TEST(test_cancel_inside_end)
{
	struct run_opts o = run_opts_of(SH("exit 0"));
	struct mv_errtext error;

	wanted_ends = 1;
	to_cancel = run_start(l, sp, &o, on_end_cancels, &seen[0], &error);
	wait_until(all_have_ended);
	wait_until(no_child_left);
	ck_assert_int_eq(seen[0].n, 1);
}
END_TEST

/* Cancelled or not: with the spawner all go. */
START_TEST(test_end_of_the_spawner)
{
	struct run_opts o = run_opts_of(SH("sleep 1000"));
	struct run *r = run_begin_in_temp(
	    "trap '' TERM; sleep 1000 & : >up; while :; do sleep 1; done", NEVER_MS);
	int before;

	run_cancel(r);
	run_begin(1, &o);
	before = count_fds();
	spawner_free(sp);
	ck_assert_int_lt(count_fds(), before);
	sp = spawner_new(l);
	ck_assert_ptr_nonnull(sp);
	wait_until(no_child_left);
	ck_assert_int_eq(seen[0].n + seen[1].n, 0);
}
END_TEST

START_TEST(test_input)
{
	static const struct {
		enum run_input to;
		size_t n;
		const char *script;
	} cases[] = {
	    {RUN_INPUT_STDIN, 200000, "cat"},
	    {RUN_INPUT_FD3, 200000, "cat; cat <&3"},
	    {RUN_INPUT_STDIN, 0, "cat"},
	    {RUN_INPUT_FD3, 0, "cat; cat <&3"},
	    {RUN_INPUT_NONE, 0, "cat"},
	    {RUN_INPUT_STDIN, 200000, "cat /dev/stdin"},
	    {RUN_INPUT_FD3, 200000, "x=$(cat <&3); printf '%s' \"$x\""},
	};
	static char text[200000];
	struct run_opts o = run_opts_of(SH(cases[_i].script));

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 23);
	o.input_to = cases[_i].to;
	o.input = (struct run_bytes){.p = text, .n = cases[_i].n};
	run_to_end(&o);
	ck_assert_int_eq(seen[0].status, 0);
	ck_assert_uint_eq(seen[0].out.len, cases[_i].n);
	ck_assert(cases[_i].n == 0 || memcmp(seen[0].out.data, text, cases[_i].n) == 0);
}
END_TEST

START_TEST(test_input_is_not_read)
{
	struct run_opts o = run_opts_of(SH("exit 0"));

	o.input_to = RUN_INPUT_STDIN;
	o.input = (struct run_bytes){.p = "xyz", .n = 3};
	run_to_end(&o);
	ck_assert_int_eq(seen[0].how, RUN_EXITED);
}
END_TEST

START_TEST(test_no_start)
{
	struct run_opts o = run_opts_of(SH("exit 0"));
	struct mv_errtext error = {.message = ""};
	int before = count_fds();

	o.input_to = RUN_INPUT_STDIN;
	o.input = (struct run_bytes){.p = "", .n = (size_t)CAP_MESSAGE_BYTES + 1};
	errno = 0;
	ck_assert_ptr_null(run_start(l, sp, &o, on_run_end, &seen[0], &error));
	ck_assert_int_eq(errno, EFBIG);
	ck_assert_str_eq(error.message, "cannot make the input of sh: File too large");
	ck_assert_int_eq(count_fds(), before);
	ck_assert(no_child_left());
}
END_TEST

/* At each descriptor that could be the one too many. */
START_TEST(test_out_of_descriptors)
{
	struct run_opts o = run_opts_of(SH("exit 0"));
	struct mv_errtext error;
	struct rlimit old, few;
	int used = 0;

	o.input_to = RUN_INPUT_FD3;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	while (fcntl(used, F_GETFD) >= 0)
		used++;
	for (unsigned room = 0; room < 10; room++) {
		int before = count_fds();
		struct run *r;

		few = old;
		few.rlim_cur = (rlim_t)used + room;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		r = run_start(l, sp, &o, on_run_end, &seen[0], &error);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
		ck_assert_ptr_null(r);
		ck_assert_int_eq(errno, EMFILE);
		ck_assert_int_eq(count_fds(), before);
	}
}
END_TEST

/* No shell, which adds names of its own. */
START_TEST(test_environment)
{
	static const char *const given[] = {
	    "Z=last one", "A=", "PATH=/usr/bin:/bin", NULL};
	struct run_opts o =
	    run_opts_of((const char *const[]){"/usr/bin/env", "-0", NULL});

	o.spec.envp = given;
	run_to_end(&o);
	ck_assert_uint_eq(seen[0].out.len, 33);
	ck_assert_mem_eq(seen[0].out.data, "Z=last one\0A=\0PATH=/usr/bin:/bin", 33);
}
END_TEST

START_TEST(test_descriptors)
{
	static const char *const wants[] = {
	    [RUN_INPUT_NONE] = "0\n1\n2\n",
	    [RUN_INPUT_STDIN] = "0\n1\n2\n",
	    [RUN_INPUT_FD3] = "0\n1\n2\n3\n",
	};
	struct run_opts o =
	    run_opts_of(SH("i=0; while [ $i -lt 64 ]; do"
			   " [ ! -e /proc/$$/fd/$i ] || echo $i; i=$((i + 1)); done"));
	int extra = open("/dev/null", O_RDONLY); /* not close-on-exec */

	o.input_to = (enum run_input)(_i / 2);
	o.merges = _i % 2 == 1;
	run_to_end(&o);
	close(extra);
	ck_assert_str_eq(buf_cstr(&seen[0].out), wants[_i / 2]);
}
END_TEST

START_TEST(test_many_at_once)
{
	static const char *const argv[] = {
	    "sh", "-c", "read x; echo \"$x\"; exit ${#x}", NULL};
	int before = count_fds();

	wanted_ends = RUNS_MAX;
	for (int i = 0; i < RUNS_MAX; i++) {
		struct run_opts o = run_opts_of(argv);
		char text[16];
		int n = snprintf(text, sizeof(text), "%d\n", 9 * i);

		o.input_to = RUN_INPUT_STDIN;
		o.input = (struct run_bytes){.p = text, .n = (size_t)n};
		run_begin(i, &o);
	}
	wait_until(all_have_ended);
	for (int i = 0; i < RUNS_MAX; i++) {
		ck_assert_int_eq(seen[i].n, 1);
		ck_assert_int_eq(strtol(buf_cstr(&seen[i].out), NULL, 10), 9 * i);
		ck_assert_int_eq(seen[i].status, (int)seen[i].out.len - 1);
	}
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

static void
run_setup(void)
{
	seen_reset();
	temp_make(&temp);
}

static void
run_teardown(void)
{
	seen_reset();
	temp_remove(&temp);
}

#define LOOP(tc, test, cases)                                                            \
	tcase_add_loop_test(tc, test, 0, sizeof(cases) / sizeof(*(cases)))

int
main(void)
{
	Suite *suite = suite_create("spawn_run");
	TCase *tc = tcase_create("spawn_run");

	LOOP(tc, test_ends, end_cases);
	LOOP(tc, test_not_started, start_cases);
	tcase_add_test(tc, test_much_output);
	tcase_add_loop_test(tc, test_overflow_ends, 0, 4);
	tcase_add_loop_test(tc, test_stderr_tail, 0, 5);
	tcase_add_test(tc, test_timeout_of_the_stubborn);
	tcase_add_loop_test(tc, test_timeout_of_the_obedient, 0, 3);
	tcase_add_loop_test(tc, test_lingering_child, 0, 3);
	tcase_add_test(tc, test_cancel);
	tcase_add_test(tc, test_an_early_end);
	tcase_add_test(tc, test_cancel_is_gentle);
	tcase_add_test(tc, test_cancel_inside_end);
	tcase_add_test(tc, test_end_of_the_spawner);
	tcase_add_loop_test(tc, test_input, 0, 7);
	tcase_add_test(tc, test_input_is_not_read);
	tcase_add_test(tc, test_no_start);
	tcase_add_test(tc, test_out_of_descriptors);
	tcase_add_test(tc, test_environment);
	tcase_add_loop_test(tc, test_descriptors, 0, 6);
	tcase_add_test(tc, test_many_at_once);
	tcase_add_checked_fixture(tc, run_setup, run_teardown);
	return run_suite(suite, tc);
}
