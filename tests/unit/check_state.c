/* layer: daemon, fakes: memory */
/* SPDX-License-Identifier: MIT */
/* State on disk: the folder, its key, the sessions that must not come back. */
#include "mcpvisor/state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../../src/daemon/state_priv.h"
#include "mcpvisor/buf.h"
#include "state_rig.h"

#include <check.h>

#define SOON ((uint64_t)time(NULL) + 3600)
#define LINE 34

static bool
key_is_same(const struct mac_key *a, const struct mac_key *b)
{
	return memcmp(a->bytes, b->bytes, MAC_KEY_BYTES) == 0;
}

static struct mac_key
key_of_folder(void)
{
	struct state *s = state_open(dir.dir);
	struct mac_key key, again;

	state_key(s, &key);
	state_key(s, &again);
	ck_assert(key_is_same(&key, &again));
	state_close(s);
	return key;
}

static mode_t
mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(temp_path(&dir, name), &st), 0);
	return st.st_mode & 0777;
}

/* ---- folder and key ---- */

START_TEST(test_key)
{
	struct mac_key a, b;

	rig_open();
	a = key_of_folder();
	b = key_of_folder();
	ck_assert(key_is_same(&a, &b));
	ck_assert_uint_eq(mode_of("session.key"), 0600);
	ck_assert_uint_eq(mode_of("sessions.gone"), 0600);
	ck_assert_uint_eq(rig_count(".", "session.key."), 0);
	ck_assert_uint_eq(rig_lines, 0);
	rig_close();
}
END_TEST

/* Keys that are none: each gives way to a new one that stays. */
START_TEST(test_bad_keys)
{
	static const char *const damages[] = {"", "short", "chmod", "symlink", "pipe"};
	struct mac_key a, b, c;

	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		const char *path;

		rig_open();
		a = key_of_folder();
		path = temp_path(&dir, "session.key");
		if (strcmp(damages[i], "chmod") == 0) {
			ck_assert_int_eq(chmod(path, 0644), 0);
		} else if (strcmp(damages[i], "symlink") == 0) {
			ck_assert_int_eq(unlink(path), 0);
			ck_assert_int_eq(symlink("/etc/passwd", path), 0);
		} else if (strcmp(damages[i], "pipe") == 0) {
			ck_assert_int_eq(unlink(path), 0);
			ck_assert_int_eq(mkfifo(path, 0600), 0);
		} else {
			temp_write(&dir, "session.key", damages[i]);
		}
		b = key_of_folder();
		ck_assert_uint_eq(rig_lines, 1);
		c = key_of_folder();
		ck_assert_msg(
		    !key_is_same(&a, &b) && key_is_same(&b, &c), "%s", damages[i]);
		ck_assert_uint_eq(mode_of("session.key"), 0600);
		rig_close();
	}
}
END_TEST

static void
crowd_key(unsigned who)
{
	struct mac_key key = key_of_folder();
	char name[16];

	snprintf(name, sizeof name, "key%u", who);
	temp_write_bytes(&dir, name, key.bytes, sizeof key.bytes);
}

/* Several at once go on with one key, whether there is none or a damaged one. */
START_TEST(test_crowd_has_one_key)
{
	for (int i = 0; i < 200; i++) {
		struct mac_key key;

		rig_open();
		if (i % 4 > 0)
			temp_write(&dir, "session.key", "damaged");
		rig_crowd(crowd_key);
		key = key_of_folder();
		for (unsigned who = 0; who < RIG_CROWD; who++) {
			struct mac_key own;
			char name[16];
			int fd;

			snprintf(name, sizeof name, "key%u", who);
			fd = open(temp_path(&dir, name), O_RDONLY | O_CLOEXEC);
			ck_assert_int_eq(
			    read(fd, own.bytes, sizeof own.bytes), sizeof own.bytes);
			close(fd);
			ck_assert_msg(key_is_same(&own, &key), "round %d: %u", i, who);
		}
		rig_close();
	}
}
END_TEST

static void
use_memory_only(struct state *s)
{
	struct mac_key a, b;

	state_key(s, &a);
	state_key(s, &b);
	ck_assert(key_is_same(&a, &b));
	state_mark_gone(s, 7, SOON);
	ck_assert(state_is_gone(s, 7));
	ck_assert(!state_is_gone(s, 8));
	state_sweep(s, 0);
	state_close(s);
}

START_TEST(test_no_folder)
{
	rig_open();
	temp_write(&dir, "file", "");
	use_memory_only(state_open(temp_path(&dir, "file")));
	ck_assert_uint_eq(rig_lines, 1);
	use_memory_only(state_open(temp_path(&dir, "file/below")));
	use_memory_only(state_open("/proc/none/at/all"));
	unsetenv("STATE_DIRECTORY");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	use_memory_only(state_open(NULL));
	setenv("HOME", "relative", 1);
	use_memory_only(state_open(NULL));
	rig_close();
}
END_TEST

START_TEST(test_folders)
{
	struct temp was;

	rig_open();
	was = dir;
	setenv("HOME", dir.dir, 1);
	state_close(state_open(NULL));
	ck_assert_uint_eq(mode_of(".local/state/mcpvisor"), 0700);
	setenv("XDG_STATE_HOME", temp_path(&dir, "xdg"), 1);
	state_close(state_open(NULL));
	ck_assert_uint_eq(mode_of("xdg/mcpvisor/sessions.gone"), 0600);
	snprintf(was.path, sizeof was.path, "%s/one:%s/two", dir.dir, dir.dir);
	setenv("STATE_DIRECTORY", was.path, 1);
	state_close(state_open(NULL));
	ck_assert_uint_eq(mode_of("one/sessions.gone"), 0600);
	ck_assert_int_ne(access(temp_path(&dir, "two"), F_OK), 0);
	/* The conf names one. */
	state_close(state_open(temp_path(&dir, "a:b")));
	ck_assert_uint_eq(mode_of("a:b/sessions.gone"), 0600);
	unsetenv("STATE_DIRECTORY");
	unsetenv("XDG_STATE_HOME");
	rig_close();
}
END_TEST

/* Of two euids the one that may read alone. */
START_TEST(test_read_only_folder)
{
	if (geteuid() != 0)
		return;
	rig_open();
	(void)key_of_folder();
	ck_assert_int_eq(chmod(dir.dir, 0755), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	use_memory_only(state_open(dir.dir));
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_uint_ge(rig_lines, 1);
	rig_close();
}
END_TEST

START_TEST(test_sweep_of_new_files)
{
	struct state *s;

	rig_open();
	s = state_open(dir.dir);
	temp_write(&dir, "session.key.1.2.old", "");
	temp_write(&dir, "session.key.1.2.new", "");
	temp_write(&dir, "sessions.gone.1.2.old", "");
	temp_write(&dir, "else.1.2.old", "");
	rig_set_age("session.key.1.2.old", 4000);
	rig_set_age("session.key.1.2.new", 3000);
	rig_set_age("sessions.gone.1.2.old", 4000);
	rig_set_age("else.1.2.old", 4000);
	rig_set_age("sessions.gone", 100L * 86400);
	state_sweep(s, 1);
	ck_assert_uint_eq(rig_count(".", "session.key."), 1);
	ck_assert_uint_eq(rig_count(".", "sessions.gone."), 0);
	ck_assert_uint_eq(rig_count(".", "sessions.gone"), 1);
	ck_assert_uint_eq(rig_count(".", "else."), 1);
	state_close(s);
	rig_close();
}
END_TEST

/* ---- sessions ---- */

START_TEST(test_gone)
{
	struct state *a, *b;

	rig_open();
	a = state_open(dir.dir);
	b = state_open(dir.dir);
	state_mark_gone(a, 1, SOON);
	state_mark_gone(a, UINT64_MAX, SOON);
	ck_assert(state_is_gone(a, 1));
	ck_assert(state_is_gone(b, 1));
	ck_assert(state_is_gone(b, UINT64_MAX));
	ck_assert(!state_is_gone(b, 2));
	state_mark_gone(b, 2, SOON);
	state_mark_gone(b, 3, 1);
	state_close(b);
	ck_assert(state_is_gone(a, 2));
	state_close(a);
	a = state_open(dir.dir);
	ck_assert(state_is_gone(a, 1));
	ck_assert(state_is_gone(a, 2));
	ck_assert(!state_is_gone(a, 3));
	ck_assert_uint_eq(rig_lines, 0);
	state_close(a);
	rig_close();
}
END_TEST

/* A file with junk, torn lines and one that is still being written. */
START_TEST(test_torn_lines)
{
	struct state *s;
	char text[512];

	rig_open();
	snprintf(text, sizeof text,
	    "junk\n%016x %016" PRIx64 "\n0000\n\n%016x 00%016x %016" PRIx64
	    "\nxxxxxxxxxxxxxxxx %016" PRIx64 "\n%016x %015" PRIx64,
	    1u, SOON, 2u, 3u, SOON, SOON, 4u, SOON >> 4);
	temp_write(&dir, "sessions.gone", text);
	s = state_open(dir.dir);
	ck_assert(state_is_gone(s, 1));
	ck_assert(!state_is_gone(s, 2));
	ck_assert(state_is_gone(s, 3));
	ck_assert(!state_is_gone(s, 4));
	state_mark_gone(s, 5, SOON);
	state_close(s);
	s = state_open(dir.dir);
	ck_assert(state_is_gone(s, 5));
	state_close(s);
	rig_close();
}
END_TEST

START_TEST(test_expired_leave_memory)
{
	struct state *s;

	rig_open();
	s = state_open(temp_path(&dir, "state"));
	state_mark_gone(s, 1, SOON);
	for (uint64_t i = 2; i <= 5000; i++)
		state_mark_gone(s, i, 1);
	ck_assert_uint_le(idmap_count(s->gone), 1100);
	ck_assert(state_is_gone(s, 1));
	ck_assert(!state_is_gone(s, 2));
	/* Of those that are valid none leaves. */
	for (uint64_t i = 10000; i < 13000; i++)
		state_mark_gone(s, i, SOON);
	for (uint64_t i = 10000; i < 13000; i++)
		ck_assert(state_is_gone(s, i));
	state_close(s);
	rig_close();
}
END_TEST

START_TEST(test_bound_of_memory)
{
	struct state *s;

	rig_open();
	s = state_open("/proc/none");
	rig_lines = 0;
	for (uint64_t i = 1; i <= STATE_GONE_MAX; i++)
		state_mark_gone(s, i, SOON);
	ck_assert_uint_eq(rig_lines, 0);
	state_mark_gone(s, STATE_GONE_MAX + 1, SOON);
	ck_assert_uint_eq(rig_lines, 1);
	ck_assert(!state_is_gone(s, STATE_GONE_MAX + 1));
	ck_assert(state_is_gone(s, STATE_GONE_MAX));
	ck_assert_uint_eq(idmap_count(s->gone), STATE_GONE_MAX);
	state_close(s);
	rig_close();
}
END_TEST

/* ---- a file that has grown ---- */

static off_t
gone_size(void)
{
	struct stat st;

	ck_assert_int_eq(stat(temp_path(&dir, "sessions.gone"), &st), 0);
	return st.st_size;
}

/* n lines: serials from 1, every 1000th of them still valid. */
static void
write_large(size_t n)
{
	struct buf b;

	buf_init(&b, n * LINE);
	for (size_t i = 1; i <= n; i++)
		buf_addf(&b, "%016zx %016" PRIx64 "\n", i, i % 1000 ? 1 : SOON);
	ck_assert_int_eq(b.err, MV_OK);
	temp_write_bytes(&dir, "sessions.gone", b.data, b.len);
	buf_fini(&b);
}

START_TEST(test_large_file_is_written_anew)
{
	struct state *a, *b, *c;

	rig_open();
	write_large(201000);
	a = state_open(dir.dir);
	b = state_open(dir.dir);
	ck_assert(state_is_gone(b, 1000));
	state_mark_gone(b, 900001, SOON);
	/* That was the one which has written anew: 201 lines, and the mark. */
	ck_assert_int_eq(gone_size(), 202 * LINE);
	state_mark_gone(a, 900002, SOON);
	ck_assert_int_eq(gone_size(), 203 * LINE);
	c = state_open(dir.dir);
	for (uint64_t i = 1000; i <= 201000; i += 1000)
		ck_assert(
		    state_is_gone(a, i) && state_is_gone(b, i) && state_is_gone(c, i));
	ck_assert(state_is_gone(a, 900001) && state_is_gone(b, 900002));
	ck_assert(state_is_gone(c, 900001) && state_is_gone(c, 900002));
	ck_assert(!state_is_gone(c, 1));
	ck_assert_uint_eq(rig_count(".", "sessions.gone"), 1);
	ck_assert_uint_eq(mode_of("sessions.gone"), 0600);
	ck_assert_uint_eq(rig_lines, 0);
	state_close(a);
	state_close(b);
	state_close(c);
	rig_close();
}
END_TEST

/* Full of what is valid: it is not written anew at each mark, by none of two. */
START_TEST(test_large_file_of_valid_ones)
{
	struct state *a, *b;
	struct stat st[2];
	struct buf l;

	rig_open();
	buf_init(&l, 201000 * LINE);
	for (size_t i = 1; i <= 201000; i++)
		buf_addf(&l, "%016zx %016" PRIx64 "\n", i, SOON);
	temp_write_bytes(&dir, "sessions.gone", l.data, l.len);
	buf_fini(&l);
	a = state_open(dir.dir);
	b = state_open(dir.dir);
	state_mark_gone(a, 900001, SOON);
	ck_assert_int_eq(stat(temp_path(&dir, "sessions.gone"), &st[0]), 0);
	state_mark_gone(b, 900002, SOON);
	state_mark_gone(a, 900003, SOON);
	state_mark_gone(b, 900004, SOON);
	ck_assert_int_eq(stat(temp_path(&dir, "sessions.gone"), &st[1]), 0);
	ck_assert_uint_eq(st[0].st_ino, st[1].st_ino);
	ck_assert_int_eq(st[1].st_size, 201004 * LINE);
	ck_assert(state_is_gone(a, 900004) && state_is_gone(b, 201000));
	state_close(a);
	state_close(b);
	rig_close();
}
END_TEST

#define CROWD_MARKS 300

static void
crowd_mark(unsigned who)
{
	struct state *s = state_open(dir.dir);

	for (uint64_t i = 1; i <= CROWD_MARKS; i++) {
		s->gone_limit = 0; /* written anew at each mark, by whoever can */
		state_mark_gone(s, who * 1000 + i, SOON);
	}
	state_close(s);
}

START_TEST(test_crowd)
{
	struct state *s;

	rig_open();
	rig_crowd(crowd_mark);
	s = state_open(dir.dir);
	for (unsigned who = 0; who < RIG_CROWD; who++) {
		for (uint64_t i = 1; i <= CROWD_MARKS; i++)
			ck_assert_msg(state_is_gone(s, who * 1000 + i),
			    "%u: %" PRIu64 " is lost", who, i);
	}
	ck_assert_uint_eq(rig_count(".", "sessions.gone"), 1);
	state_close(s);
	rig_close();
}
END_TEST

/* What may stand in the file's place while it is used. */
START_TEST(test_file_is_replaced)
{
	struct state *s;
	const char *path;

	rig_open();
	s = state_open(dir.dir);
	state_mark_gone(s, 1, SOON);
	path = temp_path(&dir, "sessions.gone");
	ck_assert_int_eq(unlink(path), 0);
	state_mark_gone(s, 2, SOON);
	ck_assert_int_eq(gone_size(), LINE);
	ck_assert(state_is_gone(s, 1) && state_is_gone(s, 2));
	ck_assert_int_eq(truncate(path, 0), 0);
	state_mark_gone(s, 3, SOON);
	ck_assert(state_is_gone(s, 1) && state_is_gone(s, 3));
	ck_assert_uint_eq(rig_lines, 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	state_mark_gone(s, 4, SOON);
	ck_assert(state_is_gone(s, 4));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	state_mark_gone(s, 5, SOON);
	ck_assert(state_is_gone(s, 5));
	ck_assert_uint_ge(rig_lines, 1);
	state_close(s);
	s = state_open(dir.dir);
	state_mark_gone(s, 6, SOON);
	ck_assert(state_is_gone(s, 6) && !state_is_gone(s, 5));
	state_close(s);
	rig_close();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("state");
	TCase *tc = tcase_create("state");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_key);
	tcase_add_test(tc, test_bad_keys);
	tcase_add_test(tc, test_crowd_has_one_key);
	tcase_add_test(tc, test_no_folder);
	tcase_add_test(tc, test_folders);
	tcase_add_test(tc, test_read_only_folder);
	tcase_add_test(tc, test_sweep_of_new_files);
	tcase_add_test(tc, test_gone);
	tcase_add_test(tc, test_torn_lines);
	tcase_add_test(tc, test_expired_leave_memory);
	tcase_add_test(tc, test_bound_of_memory);
	tcase_add_test(tc, test_large_file_is_written_anew);
	tcase_add_test(tc, test_large_file_of_valid_ones);
	tcase_add_test(tc, test_crowd);
	tcase_add_test(tc, test_file_is_replaced);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
