/* layer: io */
/* SPDX-License-Identifier: MIT */
/*
 * What a child starts with, and how it fails to start.
 */
#include "mcpvisor/spawn.h"

#include "spawn_rig.h"

START_TEST(test_output_and_status)
{
	start("cat; echo \"$A\"; exit 3");
	ck_assert_int_gt(proc_pid(proc), 1);
	ck_assert_int_eq(write(fds.in, "in ", 3), 3);
	close(fds.in);
	fds.in = -1;
	wait_until(all_is_told);
	ck_assert_str_eq(buf_cstr(&out), "in 1\n");
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	ck_assert_int_eq(failures, 0);
	ck_assert(!proc_group_is_alive(proc));
	ck_assert(!proc_signal_group(proc, SIGTERM));
}
END_TEST

/* 0, 1, 2, whatever we have open; empty mask; nothing ignored; own group. */
START_TEST(test_clean_start)
{
	int extra = open("/dev/null", O_RDONLY); /* not close-on-exec */
	char want[256];
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	start(
	    "i=0; while [ $i -lt 64 ]; do"
	    " [ ! -e /proc/$$/fd/$i ] || echo $i; i=$((i + 1)); done;"
	    "while read -r k v; do case $k in SigBlk:|SigIgn:) echo $k $v;; esac; done "
	    "</proc/$$/status; read -r st </proc/$$/stat; set -- ${st##*) }; echo $3 $$");
	sigprocmask(SIG_SETMASK, &old, NULL);
	wait_until(all_is_told);
	snprintf(want, sizeof(want),
	    "0\n1\n2\nSigBlk: 0000000000000000\nSigIgn: 0000000000000000\n%d %d\n",
	    (int)proc_pid(proc), (int)proc_pid(proc));
	ck_assert_str_eq(buf_cstr(&out), want);
	close(extra);
}
END_TEST

struct fail_case {
	const char *command, *path, *cwd;
	enum spawn_step step;
	int errnum;
};

static char scratch[] = "/tmp/check_spawn.XXXXXX";

static const struct fail_case fail_cases[] = {
    {"no-such-command", NULL, NULL, SPAWN_STEP_EXEC, ENOENT},
    {"no-such-command", "", NULL, SPAWN_STEP_EXEC, ENOENT},
    {"sh", "/nowhere:/dev/null", NULL, SPAWN_STEP_EXEC, ENOTDIR},
    {"/nowhere/sh", NULL, NULL, SPAWN_STEP_EXEC, ENOENT},
    {"./sh", "/bin", "/nowhere", SPAWN_STEP_CWD, ENOENT},
    {"./sh", "/bin", "/", SPAWN_STEP_EXEC, ENOENT},
    {"", "/bin", NULL, SPAWN_STEP_EXEC, ENOENT},
    {"etc", "/nowhere:/:/usr", NULL, SPAWN_STEP_EXEC, EACCES},
    {"/etc/passwd", NULL, NULL, SPAWN_STEP_EXEC, EACCES},
    {"noexec", "/bin:.", scratch, SPAWN_STEP_EXEC, EACCES},
    {"text", "/bin:", scratch, SPAWN_STEP_EXEC, ENOEXEC},
};

static void
make_file(const char *name, unsigned mode, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void
remove_file(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	unlink(path);
}

START_TEST(test_exec_fails)
{
	const struct fail_case *c = &fail_cases[_i];
	const char *const argv[] = {c->command, NULL};
	const struct spawn_spec spec = {
	    .name = "t", .argv = argv, .envp = env, .path = c->path, .cwd = c->cwd};

	start_spec(&spec);
	wait_until(all_is_told);
	ck_assert_int_eq(failures, 1);
	ck_assert_int_eq(failed_step, c->step);
	ck_assert_int_eq(failed_errno, c->errnum);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) >= 126);
}
END_TEST

/* The child's PATH, after the change of directory, past what does not fit. */
START_TEST(test_look_up_goes_on)
{
	const char *const argv[] = {"run", NULL};
	const struct spawn_spec spec = {.name = "t",
	    .argv = argv,
	    .envp = env,
	    .path = "/nowhere:/dev/null:sub:.",
	    .cwd = scratch};

	start_spec(&spec);
	wait_until(all_is_told);
	ck_assert_int_eq(failures, 0);
	ck_assert_str_eq(buf_cstr(&out), "ran\n");
}
END_TEST

START_TEST(test_out_of_descriptors)
{
	const char *const argv[] = {"sh", NULL};
	const struct spawn_spec spec = {.name = "t", .argv = argv, .envp = env};
	struct rlimit old, few;
	int used = 0;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	while (fcntl(used, F_GETFD) >= 0)
		used++;
	for (unsigned room = 0; room < 10; room++) {
		enum mv_err err;
		int before = count_fds();

		few = old;
		few.rlim_cur = (rlim_t)used + room;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = spawner_start(sp, &spec, &cb, &proc, &proc, &fds);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
		ck_assert_int_eq(err, MV_SYSTEM);
		ck_assert_int_eq(errno, EMFILE);
		ck_assert_int_eq(count_fds(), before);
	}
	ck_assert(no_child_left());
}
END_TEST

static void
scratch_setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(scratch));
	make_file("noexec", 0600, "#!/bin/sh\n");
	make_file("text", 0700, "echo no shell\n");
	make_file("run", 0700, "#!/bin/sh\necho ran\n");
}

static void
scratch_teardown(void)
{
	remove_file("noexec");
	remove_file("text");
	remove_file("run");
	rmdir(scratch);
}

int
main(void)
{
	Suite *suite = suite_create("spawn_start");
	TCase *tc = tcase_create("spawn_start");

	tcase_add_test(tc, test_output_and_status);
	tcase_add_test(tc, test_clean_start);
	tcase_add_test(tc, test_look_up_goes_on);
	tcase_add_test(tc, test_out_of_descriptors);
	tcase_add_loop_test(
	    tc, test_exec_fails, 0, sizeof(fail_cases) / sizeof(*fail_cases));
	tcase_add_unchecked_fixture(tc, scratch_setup, scratch_teardown);
	return run_suite(suite, tc);
}
