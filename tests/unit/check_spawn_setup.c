/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * What a child is given beyond a command: descriptors, rights, limits.
 *
 * With CHECK_SETUP_HELPER set this program is such a child that looks at itself ("self"),
 * or a supervisor with a terminal ("terminal").
 */
#include "mcpvisor/spawn.h"

#include "spawn_rig.h"

#include <sys/prctl.h>

#define NOBODY	65534u
#define LOW_END 8 /* descriptors below are the tests' */

static char self[256];

static struct spawn_spec
spec_of(const char *const *argv)
{
	return (struct spawn_spec){.name = "t", .argv = argv, .envp = env};
}

#define SH(script) ((const char *const[]){"sh", "-c", script, NULL})

static const char *
run_spec(const struct spawn_spec *spec)
{
	start_spec(spec);
	wait_until(all_is_told);
	return buf_cstr(&out);
}

struct limit_case {
	const char *script, *out;
	struct spawn_limits limits;
};

static const struct limit_case limit_cases[] = {
    {"ulimit -St; ulimit -Ht", "7\n8\n", {.cpu_s = 7}},
    {"ulimit -Sn; ulimit -Hn", "10\n10\n", {.nofile = 10}},
    {"ulimit -Sp; ulimit -Hp", "77\n77\n", {.nproc = 77}},
    {"ulimit -Sf; ulimit -Hf", "16\n16\n", {.fsize_bytes = 8192}},
    {"ulimit -Sv; ulimit -Hv", "524288\n524288\n", {.as_bytes = 512ull << 20}},
    {"ulimit -n; ulimit -t; ulimit -v; ulimit -f", "64\n60\n1048576\n131072\n",
	{60, 1ull << 30, 64, 0, 64ull << 20}},
};

START_TEST(test_limits)
{
	struct spawn_spec spec = spec_of(SH(limit_cases[_i].script));

	spec.limits = &limit_cases[_i].limits;
	ck_assert_str_eq(run_spec(&spec), limit_cases[_i].out);
	ck_assert_int_eq(failures, 0);
}
END_TEST

/* More than we may have ourselves is what we have. */
START_TEST(test_limits_are_never_raised)
{
	static const struct spawn_limits limits = {.nofile = 1ull << 40};
	struct spawn_spec spec = spec_of(SH("ulimit -Hn"));
	struct rlimit ours;
	char want[32];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &ours), 0);
	snprintf(want, sizeof(want), "%llu\n", (unsigned long long)ours.rlim_max);
	spec.limits = &limits;
	ck_assert_str_eq(run_spec(&spec), want);
}
END_TEST

/* No room for a descriptor: the failure is told all the same. */
START_TEST(test_failure_is_told_with_no_descriptors)
{
	static const struct spawn_limits limits = {.nofile = 1, .as_bytes = 4096};
	struct spawn_spec spec = spec_of((const char *const[]){"/nowhere/run", NULL});

	spec.limits = &limits;
	run_spec(&spec);
	ck_assert_int_eq(failures, 1);
	ck_assert_int_eq(failed_step, SPAWN_STEP_EXEC);
	ck_assert_int_eq(failed_errno, ENOENT);
}
END_TEST

START_TEST(test_umask)
{
	struct spawn_spec spec = spec_of(SH("umask"));

	spec.has_umask = true;
	spec.umask = _i ? 077 : 0;
	ck_assert_str_eq(run_spec(&spec), _i ? "0077\n" : "0000\n");
}
END_TEST

START_TEST(test_no_new_privs)
{
	struct spawn_spec spec = spec_of(SH("grep NoNewPrivs /proc/self/status"));

	spec.no_new_privs = true;
	ck_assert_str_eq(run_spec(&spec), "NoNewPrivs:\t1\n");
}
END_TEST

/* All that are free, so that the loop and the suite have others. */
static void
low_fds_take(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd < LOW_END);
	close(fd);
}

/* Wherever the extra descriptor is, also where others are to go. */
START_TEST(test_extra_descriptor)
{
	struct spawn_spec spec = spec_of(SH("cat <&3; cat;"
					    "for i in 0 1 2 3 4 5 6 7 8 9 20; do"
					    " [ ! -e /proc/$$/fd/$i ] || echo $i; done"));
	int ends[2];

	close(_i);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(write(ends[1], "extra\n", 6), 6);
	close(ends[1]);
	ck_assert_int_eq(ends[0], _i);
	spec.extra_fd = _i;
	spec.stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	start_spec(&spec);
	close(spec.stdin_fd);
	close(_i);
	low_fds_take();
	ck_assert_int_eq(fds.in, -1);
	wait_until(all_is_told);
	ck_assert_str_eq(buf_cstr(&out), "extra\n0\n1\n2\n3\n");
}
END_TEST

START_TEST(test_merge)
{
	struct spawn_spec spec = spec_of(SH("echo a; echo b >&2; echo c"));

	spec.merges_err = true;
	ck_assert_str_eq(run_spec(&spec), "a\nb\nc\n");
	ck_assert_int_eq(fds.err, -1);
}
END_TEST

/* Who may not change the user fails at that step; who may gives up everything, and the
 * signal at our death is set after that, as the change clears it. */
START_TEST(test_user)
{
	static const gid_t groups[] = {12345, 23456};
	const struct spawn_user user = {
	    .uid = NOBODY, .gid = NOBODY, .groups = groups, .n_groups = _i ? 2 : 0};
	struct spawn_spec spec =
	    spec_of(SH("set -- $(grep -E '^([UG]id|Groups|Cap(Prm|Eff|Amb)):'"
		       " /proc/self/status); echo $*"));

	spec.user = &user;
	run_spec(&spec);
	if (geteuid() != 0) {
		ck_assert_int_eq(failures, 1);
		ck_assert_int_eq(failed_step, SPAWN_STEP_USER);
		ck_assert_int_eq(failed_errno, EPERM);
		fputs("not root: no change of user was made\n", stderr);
		return;
	}
	ck_assert_int_eq(failures, 0);
	ck_assert_str_eq(buf_cstr(&out),
	    _i ? "Uid: 65534 65534 65534 65534 Gid: 65534 65534 65534 65534 "
		 "Groups: 12345 23456 "
		 "CapPrm: 0000000000000000 CapEff: 0000000000000000 "
		 "CapAmb: 0000000000000000\n"
	       : "Uid: 65534 65534 65534 65534 Gid: 65534 65534 65534 65534 Groups: "
		 "CapPrm: 0000000000000000 CapEff: 0000000000000000 "
		 "CapAmb: 0000000000000000\n");
}
END_TEST

/* By name too, which asks who owns them. */
START_TEST(test_pipes_of_the_user)
{
	static const struct spawn_user user = {.uid = NOBODY, .gid = NOBODY};
	struct spawn_spec spec =
	    spec_of(SH("echo out >/dev/stdout; echo err >/dev/stderr; : </dev/stdin"));

	spec.user = &user;
	spec.merges_err = true;
	run_spec(&spec);
	ck_assert_str_eq(buf_cstr(&out), geteuid() == 0 ? "out\nerr\n" : "");
	ck_assert_int_eq(failures, geteuid() == 0 ? 0 : 1);
	ck_assert(geteuid() != 0 || status == 0);
}
END_TEST

/* Its rights, not ours, decide where it may go. */
START_TEST(test_directory_of_the_user)
{
	static const struct spawn_user user = {.uid = NOBODY, .gid = NOBODY};
	char dir[] = "/tmp/check_setup.XXXXXX";
	struct spawn_spec spec = spec_of(SH("exit 0"));

	if (geteuid() != 0)
		return;
	ck_assert_ptr_nonnull(mkdtemp(dir));
	spec.user = &user;
	spec.cwd = dir;
	run_spec(&spec);
	rmdir(dir);
	ck_assert_int_eq(failed_step, SPAWN_STEP_CWD);
	ck_assert_int_eq(failed_errno, EACCES);
}
END_TEST

static const char *const helper_env[] = {
    "CHECK_SETUP_HELPER=self", "ASAN_OPTIONS=detect_leaks=0", "PATH=/usr/bin:/bin", NULL};

START_TEST(test_signal_at_our_death)
{
	static const struct spawn_user user = {.uid = NOBODY, .gid = NOBODY};
	const char *const argv[] = {self, NULL};
	struct spawn_spec spec = {.name = "h", .argv = argv, .envp = helper_env};

	spec.no_new_privs = true;
	if (_i == 1 && geteuid() == 0)
		spec.user = &user;
	run_spec(&spec);
	if (failed_errno == EACCES && spec.user) {
		fputs("nobody may not run this program: not tested\n", stderr);
		return;
	}
	ck_assert_int_eq(failures, 0);
	ck_assert_str_eq(buf_cstr(&out), "15\n");
}
END_TEST

static const char *const terminal_env[] = {"CHECK_SETUP_HELPER=terminal",
    "ASAN_OPTIONS=detect_leaks=0", "PATH=/usr/bin:/bin", NULL};

/* It and what it starts; others of ours, and the guard's group, are as ever. */
START_TEST(test_no_terminal)
{
	const char *const argv[] = {"setsid", "-w", self, NULL};
	const struct spawn_spec spec = {.name = "h", .argv = argv, .envp = terminal_env};

	ck_assert_str_eq(run_spec(&spec), "with without\n");
	ck_assert_int_eq(status, 0);
}
END_TEST

static void
on_terminal_exec_failed(void *arg, enum spawn_step step, int errnum)
{
	(void)arg;
	(void)step;
	(void)errnum;
}

static void
on_terminal_exit(void *arg, int st)
{
	(void)arg;
	loop_stop(l, st);
}

/* The status of one that says 1 with a terminal. */
static int
terminal_ask(bool no_terminal)
{
	static const struct spawn_cb told = {on_terminal_exec_failed, on_terminal_exit};
	struct spawn_spec spec =
	    spec_of(SH("if (: </dev/tty) 2>/dev/null; then exit 1; else exit 0; fi"));
	struct proc *p = NULL;
	int st;

	spec.no_terminal = no_terminal;
	if (spawner_start(sp, &spec, &told, NULL, &p, &fds) != MV_OK)
		return -1;
	st = loop_run(l);
	proc_free(p);
	close(fds.in);
	close(fds.out);
	close(fds.err);
	return st;
}

/* Leads its session: a terminal that it opens is its own. No assertions here. */
static int
terminal_main(void)
{
	int pty = posix_openpt(O_RDWR | O_NOCTTY), tty = -1, with, without;
	sigset_t hangup;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hangup, NULL);
	if (pty < 0 || grantpt(pty) != 0 || unlockpt(pty) != 0 ||
	    (tty = open(ptsname(pty), O_RDWR)) < 0)
		return 2;
	l = loop_new();
	sp = spawner_new(l);
	with = terminal_ask(false);
	without = terminal_ask(true);
	spawner_free(sp);
	loop_free(l);
	dprintf(STDOUT_FILENO, "%s %s\n",
	    WIFEXITED(with) && WEXITSTATUS(with) == 1 ? "with" : "?",
	    without == 0 ? "without" : "?");
	close(tty);
	close(pty);
	return 0;
}

static int
self_main(void)
{
	int signo = 0;

	if (prctl(PR_GET_PDEATHSIG, &signo) != 0)
		return 2;
	dprintf(STDOUT_FILENO, "%d\n", signo);
	return 0;
}

int
main(void)
{
	const char *as = getenv("CHECK_SETUP_HELPER");
	Suite *suite = suite_create("spawn_setup");
	TCase *tc = tcase_create("spawn_setup");

	if (as)
		return strcmp(as, "self") == 0 ? self_main() : terminal_main();
	low_fds_take();
	(void)!readlink("/proc/self/exe", self, sizeof(self) - 1);
	tcase_add_loop_test(
	    tc, test_limits, 0, sizeof(limit_cases) / sizeof(*limit_cases));
	tcase_add_test(tc, test_limits_are_never_raised);
	tcase_add_test(tc, test_failure_is_told_with_no_descriptors);
	tcase_add_loop_test(tc, test_umask, 0, 2);
	tcase_add_test(tc, test_no_new_privs);
	tcase_add_loop_test(tc, test_extra_descriptor, 3, LOW_END);
	tcase_add_test(tc, test_merge);
	tcase_add_loop_test(tc, test_user, 0, 2);
	tcase_add_test(tc, test_pipes_of_the_user);
	tcase_add_test(tc, test_directory_of_the_user);
	tcase_add_loop_test(tc, test_signal_at_our_death, 0, 2);
	tcase_add_test(tc, test_no_terminal);
	return run_suite(suite, tc);
}
