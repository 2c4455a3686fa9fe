/* layer: daemon, fakes: memory */
/* SPDX-License-Identifier: MIT */
/* What upstreams remember, on disk: who finds it, and what is not believed. */
#include "mcpvisor/state.h"

#include <stdlib.h>

#include "fake/fake_memory.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "state_rig.h"

#include <check.h>

static struct state *st;
static struct upstream *u;
static char file[TEMP_PATH_MAX]; /* of u, below the folder */

/* The only file in lists. */
static void
find_only(char name[TEMP_PATH_MAX])
{
	DIR *d = opendir(temp_path(&dir, "lists"));
	struct dirent *e;

	ck_assert_ptr_nonnull(d);
	name[0] = '\0';
	while ((e = readdir(d))) {
		if (e->d_name[0] != '.')
			snprintf(name, TEMP_PATH_MAX, "lists/%.200s", e->d_name);
	}
	closedir(d);
	ck_assert_str_ne(name, "");
}

/* One upstream that says "memory", kept. */
static void
setup_kept(void)
{
	rig_open();
	st = state_open(dir.dir);
	u = fake_memory_new("up", "cmd", "memory");
	state_remember(st, u);
	find_only(file);
	ck_assert_uint_eq(rig_lines, 0);
}

static void
teardown(void)
{
	fake_memory_free(u);
	state_close(st);
	rig_close();
}

/* What a new process takes in for an upstream; NULL: nothing. */
static const char *
recalled_by(struct upstream *by)
{
	struct state *s = state_open(dir.dir);

	state_recall(s, by);
	state_close(s);
	return fake_memory_taken(by);
}

static void
check_recall(const char *name, const char *command, bool found)
{
	struct upstream *other = fake_memory_new(name, command, "");

	ck_assert_int_eq(recalled_by(other) != NULL, found);
	fake_memory_free(other);
}

static char *
slurp(size_t *n)
{
	char *text = mem_xcalloc(1, 4096);
	int fd = open(temp_path(&dir, file), O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	*n = (size_t)read(fd, text, 4096);
	close(fd);
	return text;
}

static struct stat
stat_of(const char *name)
{
	struct stat s;

	ck_assert_int_eq(lstat(temp_path(&dir, name), &s), 0);
	return s;
}

/* ---- who finds it ---- */

START_TEST(test_recall)
{
	ck_assert_str_eq(recalled_by(u), "memory");
	check_recall("up", "cmd", true);
	check_recall("up", "other", false);
	check_recall("other", "cmd", false);
	ck_assert_uint_eq(rig_lines, 0);
	ck_assert_uint_eq(stat_of("lists").st_mode & 0777, 0700);
	ck_assert_uint_eq(stat_of(file).st_mode & 0777, 0600);
	ck_assert_int_eq(strncmp(file, "lists/up-", 9), 0);
	ck_assert_uint_eq(strlen(file), 9 + 16 + 7);
	/* To the next. */
	fake_memory_set(u, "more memory");
	state_remember(st, u);
	ck_assert_str_eq(recalled_by(u), "more memory");
	ck_assert_uint_eq(rig_count("lists", ""), 1);
}
END_TEST

START_TEST(test_names)
{
	char name[400];
	struct upstream *other;

	for (size_t i = 0; i + 2 < sizeof name; i += 2)
		memcpy(name + i, "\xc3\xa9", 3);
	other = fake_memory_new(name, "cmd", "long");
	state_remember(st, other);
	ck_assert_str_eq(recalled_by(other), "long");
	fake_memory_free(other);
	other = fake_memory_new("../../x/\n", "cmd", "odd");
	state_remember(st, other);
	ck_assert_str_eq(recalled_by(other), "odd");
	fake_memory_free(other);
	ck_assert_uint_eq(rig_count("lists", ""), 3);
	ck_assert_uint_eq(rig_lines, 0);
}
END_TEST

START_TEST(test_nothing_to_keep)
{
	struct upstream *other = fake_memory_new("other", "cmd", "");

	state_remember(st, other);
	fake_memory_set(other, "x");
	fake_memory_conf(other)->broken = MV_CONF;
	state_remember(st, other);
	state_recall(st, other);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
	ck_assert_uint_eq(rig_lines, 0);
	fake_memory_conf(other)->broken = MV_OK;
	/* Said once, until it works again. */
	fake_memory_fail(other, MV_TOO_LONG);
	state_remember(st, other);
	state_remember(st, other);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
	ck_assert_uint_eq(rig_lines, 1);
	fake_memory_fail(other, MV_OK);
	state_remember(st, other);
	ck_assert_str_eq(recalled_by(other), "x");
	fake_memory_fail(other, MV_NOMEM);
	state_remember(st, other);
	ck_assert_uint_eq(rig_lines, 2);
	fake_memory_free(other);
}
END_TEST

START_TEST(test_same_bytes_are_not_written)
{
	struct stat before, after;

	before = stat_of(file);
	rig_set_age(file, 5000);
	state_remember(st, u);
	after = stat_of(file);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert_int_ge(after.st_mtime, before.st_mtime);
	/* Nor by who has only recalled them. */
	state_close(st);
	st = state_open(dir.dir);
	rig_set_age(file, 5000);
	state_recall(st, u);
	ck_assert_int_ge(stat_of(file).st_mtime, before.st_mtime);
	state_remember(st, u);
	ck_assert_uint_eq(before.st_ino, stat_of(file).st_ino);
	/* Unless they are gone. */
	ck_assert_int_eq(unlink(temp_path(&dir, file)), 0);
	state_remember(st, u);
	ck_assert_str_eq(recalled_by(u), "memory");
}
END_TEST

/* ---- what is not believed ---- */

START_TEST(test_each_byte_counts)
{
	size_t n;
	char *text = slurp(&n);

	for (size_t i = 0; i < n; i++) {
		text[i] = (char)(text[i] ^ 1);
		temp_write_bytes(&dir, file, text, n);
		ck_assert_msg(!recalled_by(u), "byte %zu", i);
		text[i] = (char)(text[i] ^ 1);
		temp_write_bytes(&dir, file, text, i);
		ck_assert_msg(!recalled_by(u), "cut at %zu", i);
	}
	ck_assert_uint_eq(rig_lines, 2 * n); /* one for each */
	temp_write_bytes(&dir, file, text, n + 1);
	ck_assert_ptr_null(recalled_by(u));
	temp_write_bytes(&dir, file, text, n);
	ck_assert_str_eq(recalled_by(u), "memory");
	mem_free(text);
}
END_TEST

static const struct {
	const char *text, *reason;
} foreign[] = {
    {"", "not such a file"},
    {"mcpvisor memor", "not such a file"},
    {"{\"tools\":[]}", "not such a file"},
    {"mcpvisor memory ", "of another version"},
    {"mcpvisor memory 2 6 x\nmemory", "of another version"},
    {"mcpvisor memory 10 6 x\nmemory", "of another version"},
    {"mcpvisor memory 1 ", "its header is damaged"},
    {"mcpvisor memory 1 6", "its header is damaged"},
    {"mcpvisor memory 1 6\n", "its header is damaged"},
    {"mcpvisor memory 1 6 00\nmemory", "its header is damaged"},
    {"mcpvisor memory 1 7 "
     "0000000000000000000000000000000000000000000000000000000000000000\nmemory",
	"cut, or longer"},
    {"mcpvisor memory 1  6 "
     "0000000000000000000000000000000000000000000000000000000000000000\nmemory",
	"its header is damaged"},
    {"mcpvisor memory 1 +6 "
     "0000000000000000000000000000000000000000000000000000000000000000\nmemory",
	"cut, or longer"},
    {"mcpvisor memory 1 6 "
     "0000000000000000000000000000000000000000000000000000000000000000\nmemory",
	"altered, or signed with another key"},
};

START_TEST(test_foreign)
{
	temp_write(&dir, file, foreign[_i].text);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 1);
	ck_assert_msg(strstr(rig_line, foreign[_i].reason) != NULL, "%s", rig_line);
	/* It is in nobody's way. */
	fake_memory_set(u, "again");
	state_remember(st, u);
	ck_assert_str_eq(recalled_by(u), "again");
}
END_TEST

/* A whole file of this folder under the name of another upstream. */
START_TEST(test_renamed)
{
	struct upstream *other = fake_memory_new("up", "other", "theirs");
	char was[sizeof dir.path], theirs[TEMP_PATH_MAX], from[sizeof dir.path];

	snprintf(was, sizeof was, "%s", temp_path(&dir, file));
	ck_assert_int_eq(rename(was, temp_path(&dir, "mine")), 0);
	state_remember(st, other);
	find_only(theirs);
	snprintf(from, sizeof from, "%s", temp_path(&dir, theirs));
	ck_assert_int_eq(rename(from, was), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_ptr_nonnull(strstr(rig_line, "altered"));
	fake_memory_free(other);
}
END_TEST

START_TEST(test_other_key)
{
	ck_assert_int_eq(unlink(temp_path(&dir, "session.key")), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 0);
}
END_TEST

START_TEST(test_refused_by_the_upstream)
{
	fake_memory_fail(u, MV_PROTOCOL);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 1);
	ck_assert_ptr_nonnull(strstr(rig_line, "of another version"));
	fake_memory_fail(u, MV_NOMEM);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 2);
	fake_memory_fail(u, MV_OK);
	mem_fail_at(1, 1);
	state_recall(st, u);
	mem_fail_at(0, 0);
	ck_assert_ptr_null(fake_memory_taken(u));
}
END_TEST

/* ---- what may stand in its place ---- */

START_TEST(test_symlink)
{
	char to[sizeof dir.path];
	size_t n;
	char *text = slurp(&n);

	temp_write_bytes(&dir, "to", text, n);
	snprintf(to, sizeof to, "%s", temp_path(&dir, "to"));
	ck_assert_int_eq(unlink(temp_path(&dir, file)), 0);
	ck_assert_int_eq(symlink(to, temp_path(&dir, file)), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 1);
	fake_memory_set(u, "new");
	state_remember(st, u);
	ck_assert_str_eq(recalled_by(u), "new");
	ck_assert_int_eq((int)stat_of("to").st_size, (int)n);
	mem_free(text);
}
END_TEST

START_TEST(test_folder_in_its_place)
{
	ck_assert_int_eq(unlink(temp_path(&dir, file)), 0);
	ck_assert_int_eq(mkdir(temp_path(&dir, file), 0700), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 1);
	fake_memory_set(u, "new");
	state_remember(st, u);
	ck_assert_uint_eq(rig_lines, 2);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
	state_sweep(st, 1);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
}
END_TEST

START_TEST(test_pipe_in_its_place)
{
	ck_assert_int_eq(unlink(temp_path(&dir, file)), 0);
	ck_assert_int_eq(mkfifo(temp_path(&dir, file), 0600), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_ptr_nonnull(strstr(rig_line, "not a regular file"));
}
END_TEST

START_TEST(test_too_large)
{
	ck_assert_int_eq(
	    truncate(temp_path(&dir, file), (off_t)CAP_MEMORY_BYTES + 129), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_uint_eq(rig_lines, 1);
	ck_assert_ptr_nonnull(strstr(rig_line, "too large"));
}
END_TEST

/* Another user's file, or folder, or one that may only be read. */
START_TEST(test_other_users)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(temp_path(&dir, file), 65534, 65534), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_ptr_nonnull(strstr(rig_line, "somebody else's file"));
	ck_assert_int_eq(chown(temp_path(&dir, file), 0, 0), 0);
	ck_assert_int_eq(chown(temp_path(&dir, "lists"), 65534, 65534), 0);
	rig_lines = 0;
	ck_assert_ptr_null(recalled_by(u));
	fake_memory_set(u, "new");
	state_remember(st, u);
	ck_assert_uint_eq(rig_lines, 1);
	/* All of it another's, for whom it can be read. */
	ck_assert_int_eq(chmod(dir.dir, 0755), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_ptr_null(recalled_by(u));
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chown(temp_path(&dir, "lists"), 0, 0), 0);
	ck_assert_str_eq(recalled_by(u), "memory");
}
END_TEST

START_TEST(test_folder_cannot_be_written)
{
	if (geteuid() != 0)
		return;
	state_close(st);
	/* All of it a user's own, who has taken the right to write from himself. */
	ck_assert_int_eq(chown(dir.dir, 65534, 65534), 0);
	ck_assert_int_eq(chown(temp_path(&dir, "lists"), 65534, 65534), 0);
	ck_assert_int_eq(chown(temp_path(&dir, file), 65534, 65534), 0);
	ck_assert_int_eq(chown(temp_path(&dir, "session.key"), 65534, 65534), 0);
	ck_assert_int_eq(chmod(temp_path(&dir, "lists"), 0500), 0);
	ck_assert_int_eq(chmod(dir.dir, 0500), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	st = state_open(dir.dir);
	rig_lines = 0;
	state_recall(st, u);
	ck_assert_str_eq(fake_memory_taken(u), "memory");
	fake_memory_set(u, "new");
	state_remember(st, u);
	state_remember(st, u);
	ck_assert_uint_eq(rig_lines, 1);
	state_sweep(st, 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
}
END_TEST

START_TEST(test_lists_is_no_folder)
{
	static const char *const kinds[] = {"file", "symlink"};

	for (size_t i = 0; i < 2; i++) {
		struct state *s;
		char to[sizeof dir.path];

		snprintf(to, sizeof to, "other%zu", i);
		ck_assert_int_eq(mkdir(temp_path(&dir, to), 0700), 0);
		s = state_open(temp_path(&dir, to));
		if (strcmp(kinds[i], "file") == 0) {
			snprintf(to, sizeof to, "other%zu/lists", i);
			temp_write(&dir, to, "");
		} else {
			snprintf(to, sizeof to, "%s", temp_path(&dir, "lists"));
			ck_assert_int_eq(symlink(to, temp_path(&dir, "other1/lists")), 0);
		}
		rig_lines = 0;
		state_recall(s, u);
		ck_assert_ptr_null(fake_memory_taken(u));
		state_remember(s, u);
		ck_assert_uint_eq(rig_lines, 1);
		state_sweep(s, 0);
		state_close(s);
	}
	ck_assert_uint_eq(rig_count("lists", ""), 1);
}
END_TEST

/* Who only looks finds it, and leaves no trace. */
START_TEST(test_look)
{
	struct state *s;

	rig_set_age(file, 1000);
	ck_assert_int_eq(unlink(temp_path(&dir, "sessions.gone")), 0);
	s = state_open_to_look(dir.dir);
	state_recall(s, u);
	ck_assert_str_eq(fake_memory_taken(u), "memory");
	fake_memory_set(u, "new");
	state_remember(s, u);
	state_sweep(s, 0);
	state_close(s);
	ck_assert_int_le(stat_of(file).st_mtime, time(NULL) - 1000);
	ck_assert_int_ne(access(temp_path(&dir, "sessions.gone"), F_OK), 0);
	ck_assert_str_eq(recalled_by(u), "memory");
	/* Nor does it make what is not there. */
	s = state_open_to_look(temp_path(&dir, "none"));
	state_recall(s, u);
	state_close(s);
	ck_assert_int_ne(access(temp_path(&dir, "none"), F_OK), 0);
	ck_assert_int_eq(unlink(temp_path(&dir, "session.key")), 0);
	s = state_open_to_look(dir.dir);
	state_recall(s, u);
	state_close(s);
	ck_assert_int_ne(access(temp_path(&dir, "session.key"), F_OK), 0);
	ck_assert_uint_eq(rig_lines, 0);
}
END_TEST

START_TEST(test_no_folder)
{
	struct state *s = state_open("/proc/none");

	rig_lines = 0;
	state_remember(s, u);
	state_recall(s, u);
	ck_assert_ptr_null(fake_memory_taken(u));
	state_sweep(s, 0);
	state_close(s);
	ck_assert_uint_eq(rig_lines, 0);
}
END_TEST

/* ---- at once ---- */

static void
crowd_remember(unsigned who)
{
	static const char *const texts[] = {"one", "number two", "three", ""};
	struct state *s = state_open(dir.dir);

	for (unsigned i = 0; i < 200; i++) {
		const char *taken;

		fake_memory_set(u, texts[(who + i) % 3]);
		state_remember(s, u);
		state_recall(s, u);
		/* Whole, whosever it is. */
		taken = fake_memory_taken(u);
		if (!taken ||
		    (strcmp(taken, "one") != 0 && strcmp(taken, "number two") != 0 &&
			strcmp(taken, "three") != 0))
			_exit(1);
	}
	state_close(s);
}

START_TEST(test_crowd)
{
	rig_crowd(crowd_remember);
	ck_assert_uint_eq(rig_count("lists", ""), 1);
}
END_TEST

/* ---- sweep ---- */

START_TEST(test_sweep)
{
	struct upstream *old = fake_memory_new("old", "cmd", "x");

	state_remember(st, old);
	fake_memory_free(old);
	temp_write(&dir, "lists/aged-0.memory", "");
	temp_write(&dir, "lists/young-0.memory", "");
	temp_write(&dir, "lists/else", "");
	temp_write(&dir, "lists/.memory", "");
	temp_write(&dir, "lists/new.1.2.old", "");
	temp_write(&dir, "lists/new.1.2.now", "");
	rig_set_age(file, 10L * 86400);
	rig_set_age("lists/aged-0.memory", 10L * 86400 + 10);
	rig_set_age("lists/young-0.memory", 10L * 86400 - 10);
	rig_set_age("lists/else", 100L * 86400);
	rig_set_age("lists/new.1.2.old", 4000);
	state_sweep(st, 10);
	ck_assert_uint_eq(rig_count("lists", "aged-0"), 0);
	ck_assert_uint_eq(rig_count("lists", "young-0"), 1);
	ck_assert_uint_eq(rig_count("lists", "else"), 1);
	ck_assert_uint_eq(rig_count("lists", "new."), 1);
	/* What this process uses stays, and is as good as new to others. */
	ck_assert_int_ge(stat_of(file).st_mtime, time(NULL) - 60);
	rig_set_age(file, 20L * 86400);
	state_close(st);
	st = state_open(dir.dir);
	state_sweep(st, 21);
	ck_assert_uint_eq(rig_count("lists", "up-"), 1);
	state_sweep(st, 19);
	ck_assert_uint_eq(rig_count("lists", "up-"), 0);
	ck_assert_uint_eq(rig_count("lists", "old-"), 1);
	ck_assert_uint_eq(rig_lines, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("state_lists");
	TCase *tc = tcase_create("state_lists");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_kept, teardown);
	tcase_add_test(tc, test_recall);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_nothing_to_keep);
	tcase_add_test(tc, test_same_bytes_are_not_written);
	tcase_add_test(tc, test_each_byte_counts);
	tcase_add_loop_test(tc, test_foreign, 0, sizeof foreign / sizeof *foreign);
	tcase_add_test(tc, test_renamed);
	tcase_add_test(tc, test_other_key);
	tcase_add_test(tc, test_refused_by_the_upstream);
	tcase_add_test(tc, test_symlink);
	tcase_add_test(tc, test_folder_in_its_place);
	tcase_add_test(tc, test_pipe_in_its_place);
	tcase_add_test(tc, test_too_large);
	tcase_add_test(tc, test_other_users);
	tcase_add_test(tc, test_folder_cannot_be_written);
	tcase_add_test(tc, test_lists_is_no_folder);
	tcase_add_test(tc, test_look);
	tcase_add_test(tc, test_no_folder);
	tcase_add_test(tc, test_crowd);
	tcase_add_test(tc, test_sweep);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
