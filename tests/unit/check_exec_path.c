/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Paths of callers: none leads out of its folder, whichever way. */
#include "upstream_exec_priv.h"

#include "temp_rig.h"

#include <limits.h>

static struct temp temp;
static char root[80];
static struct buf out;

/* A folder, what is in it, links within and out of it; beside it a namesake. */
static void
setup(void)
{
	temp_make(&temp);
	snprintf(root, sizeof(root), "%s/root", temp.dir);
	ck_assert_int_eq(mkdir(root, 0700), 0);
	ck_assert_int_eq(mkdir(temp_path(&temp, "rootkit"), 0700), 0);
	ck_assert_int_eq(mkdir(temp_path(&temp, "root/sub"), 0700), 0);
	temp_write(&temp, "root/a.txt", "a");
	temp_write(&temp, "root/-b.txt", "b");
	temp_write(&temp, "root/sub/c.txt", "c");
	temp_write(&temp, "rootkit/evil", "e");
	ck_assert_int_eq(symlink("sub/c.txt", temp_path(&temp, "root/in")), 0);
	ck_assert_int_eq(symlink("../rootkit", temp_path(&temp, "root/out")), 0);
	ck_assert_int_eq(symlink("/etc", temp_path(&temp, "root/etc")), 0);
	ck_assert_int_eq(symlink("/proc/self/root", temp_path(&temp, "root/magic")), 0);
	ck_assert_int_eq(symlink("loop", temp_path(&temp, "root/loop")), 0);
	buf_init(&out, PATH_MAX);
}

static void
teardown(void)
{
	buf_fini(&out);
	temp_remove(&temp);
}

/* want: below the folder, with the slash; NULL: refused. walks: without the kernel's
 * help, where no link is followed and there is no way up. */
static const struct {
	const char *path, *want;
	bool walks;
} paths[] = {
    {"a.txt", "/a.txt", true},
    {"./a.txt", "/a.txt", true},
    {"sub//c.txt", "/sub/c.txt", true},
    {"sub", "/sub", true},
    {"sub/", "/sub", true},
    {".", "", true},
    {"-b.txt", "/-b.txt", true},
    {"sub/../a.txt", "/a.txt", false},
    {"in", "/sub/c.txt", false},
    {"../../etc/passwd", NULL, false},
    {"..", NULL, false},
    {"sub/../..", NULL, false},
    {"sub/../../rootkit/evil", NULL, false},
    {"../rootkit/evil", NULL, false},
    {"../root/a.txt", NULL, false},
    {"out/evil", NULL, false},
    {"out", NULL, false},
    {"etc/passwd", NULL, false},
    {"magic/etc/passwd", NULL, false},
    {"/etc/passwd", NULL, false},
    {"loop", NULL, false},
    {"missing", NULL, false},
    {"a.txt/x", NULL, false},
    {"a.txt/", NULL, false},
    {"a.txt/.", NULL, false},
    {"", NULL, false},
};

START_TEST(paths_stay_below)
{
	const char *fault = exec_path_resolve(root, paths[_i].path, &out);
	char real[PATH_MAX], want[PATH_MAX + 32];

	if (paths[_i].want == NULL) {
		ck_assert_ptr_nonnull(fault);
		ck_assert_int_eq(strncmp(fault, "must ", 5), 0);
		ck_assert_uint_eq(out.len, 0);
		return;
	}
	ck_assert_ptr_null(fault);
	ck_assert_ptr_nonnull(realpath(root, real));
	snprintf(want, sizeof(want), "%s%s", real, paths[_i].want);
	ck_assert_str_eq(buf_cstr(&out), want);
}
END_TEST

START_TEST(a_walk_follows_nothing)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	ck_assert_int_ge(dir, 0);
	/* What is absolute is refused before. */
	if (paths[_i].path[0] != '/') {
		fd = exec_path_walk(dir, paths[_i].path);
		ck_assert_int_eq(fd >= 0, paths[_i].walks);
		if (fd >= 0)
			close(fd);
	}
	close(dir);
}
END_TEST

/* The namesake of the folder, from the outside; and a folder that is not there. */
START_TEST(a_longer_name_is_another_folder)
{
	char path[120];

	snprintf(path, sizeof(path), "%skit/evil", root);
	ck_assert_ptr_nonnull(exec_path_resolve(root, path, &out));
	snprintf(path, sizeof(path), "%s-missing", root);
	ck_assert_ptr_nonnull(exec_path_resolve(path, "a.txt", &out));
}
END_TEST

#define ROWS(t) (int)(sizeof(t) / sizeof((t)[0]))

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("exec_path");

	tcase_add_loop_test(tc, paths_stay_below, 0, ROWS(paths));
	tcase_add_loop_test(tc, a_walk_follows_nothing, 0, ROWS(paths));
	tcase_add_test(tc, a_longer_name_is_another_folder);
	return run_suite(suite_create("exec_path"), tc);
}
