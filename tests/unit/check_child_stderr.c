/* layer: upstream, fakes: loop spawn child_owner */
/* SPDX-License-Identifier: MIT */
/* A child's stderr: drained whatever happens, logged line by line, within limits. */
#include "fake/fake_child_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOOD_BYTES (10u * 1024 * 1024)

static struct owner *
owner_running(void)
{
	struct child_opts opts = owner_opts();
	struct owner *o = owner_new(&opts);

	owner_start(o);
	owner_log_clear(o);
	return o;
}

static void
owner_says(struct owner *o, const char *text)
{
	int fd = fake_proc_stderr(owner_proc(o));

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

START_TEST(lines_are_logged_under_the_name)
{
	uint64_t lines = metrics_get(METRIC_STDERR_LINES);
	struct owner *o = owner_running();

	owner_says(o, "one\n\n  \r\ntw");
	fake_loop_settle(o->loop);
	owner_says(o, "o\r\n\x1b[31mred\n");
	fake_loop_settle(o->loop);
	ck_assert_str_eq(o->log, "info child: stderr upstream=alpha line=\"one\"\n"
				 "info child: stderr upstream=alpha line=\"two\"\n"
				 "info child: stderr upstream=alpha "
				 "line=\"\\x1b[31mred\"\n");
	ck_assert_uint_eq(metrics_get(METRIC_STDERR_LINES) - lines, 5);
	owner_free(o);
}
END_TEST

START_TEST(limit_is_a_child_s_own)
{
	struct owner *o = owner_running();

	for (unsigned i = 0; i < 200; i++)
		owner_says(o, "again\n");
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->lines, 50);
	/* A new process is no new allowance. */
	owner_proc_dies(o, status_exit(1));
	fake_loop_advance(o->loop, 1000);
	owner_log_clear(o);
	owner_says(o, "still\n");
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->lines, 0);
	fake_loop_advance(o->loop, 10000);
	owner_says(o, "later\n");
	fake_loop_settle(o->loop);
	ck_assert(owner_log_has(o, "line=\"later\" suppressed=151\n"));
	owner_free(o);
}
END_TEST

/* A full pipe would stop the child: all of it is taken, in one line's memory. */
START_TEST(flood_without_newline_is_taken)
{
	static char block[32768];
	struct owner *o = owner_running();
	int fd = fake_proc_stderr(owner_proc(o));

	memset(block, 'x', sizeof(block));
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (size_t done = 0; done < FLOOD_BYTES; done += sizeof(block)) {
		ck_assert_int_eq(write(fd, block, sizeof(block)), (ssize_t)sizeof(block));
		fake_loop_settle(o->loop);
	}
	ck_assert_uint_eq(o->lines, 1);
	ck_assert_uint_lt(o->log_len, CAP_LOG_VALUE_BYTES + 100);
	ck_assert(owner_log_has(o, "xxx\"...\n"));
	owner_says(o, "x\nshort\n");
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(o->lines, 2);
	ck_assert(owner_log_has(o, "line=\"short\"\n"));
	owner_free(o);
}
END_TEST

START_TEST(drained_when_the_log_is_silent)
{
	static char block[32768];
	struct owner *o = owner_running();
	int fd = fake_proc_stderr(owner_proc(o));

	log_set_level(LOG_LV_ERROR);
	memset(block, '\n', sizeof(block));
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(write(fd, block, sizeof(block)), (ssize_t)sizeof(block));
		fake_loop_settle(o->loop);
	}
	owner_says(o, "last words\n");
	owner_proc_dies(o, status_exit(1));
	ck_assert_str_eq(
	    o->last_end.text, "exited with status 1; last on stderr: \"last words\"");
	ck_assert_str_eq(
	    o->last_end.told, "exited with status 1; last on stderr: \"last words\"");
	owner_free(o);
}
END_TEST

/* Clients hear of no frame of a stack, and of a long line only how it begins. */
START_TEST(what_clients_hear)
{
	static const char *const frames[] = {"    at f (/srv/x.js:3)\n",
	    "  File \"/srv/x.py\", line 1\n", "\tfrom /srv/x.rb:3:in `f'\n",
	    "#0 0x1 in f\n"};
	struct owner *o;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		o = owner_running();
		owner_says(o, frames[i]);
		owner_proc_dies(o, status_exit(1));
		ck_assert_str_eq(o->last_end.told, "exited with status 1");
		ck_assert_str_ne(o->last_end.text, o->last_end.told);
		owner_free(o);
	}
	o = owner_running();
	owner_says(
	    o, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxyz\n");
	owner_proc_dies(o, status_exit(1));
	ck_assert_ptr_nonnull(strstr(o->last_end.told, "xxxx\"..."));
	owner_free(o);
	/* A character of which one byte would fit. */
	o = owner_running();
	owner_says(o,
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9\n");
	owner_proc_dies(o, status_exit(1));
	ck_assert_ptr_nonnull(strstr(o->last_end.told, "xxxx\"..."));
	owner_free(o);
}
END_TEST

START_TEST(last_line_goes_into_the_end)
{
	static const struct {
		const char *said, *text;
	} rows[] = {
	    {"Traceback\n  File x\nValueError: no\n\n",
		"exited with status 1; last on stderr: \"ValueError: no\""},
	    {"no newline", "exited with status 1; last on stderr: \"no newline\""},
	    {"\x1b[0m\"q\"\n",
		"exited with status 1; last on stderr: \"\\x1b[0m\\\"q\\\"\""},
	    {"\n \t\r\n", "exited with status 1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct owner *o = owner_running();

		/* Still in the pipe when it settles. */
		owner_says(o, rows[i].said);
		owner_proc_dies(o, status_exit(1));
		ck_assert_str_eq(o->last_end.text, rows[i].text);
		/* The next process starts with nothing said. */
		fake_loop_advance(o->loop, 500);
		owner_proc_dies(o, status_exit(1));
		ck_assert_str_eq(o->last_end.text, "exited with status 1");
		owner_free(o);
	}
}
END_TEST

START_TEST(long_last_line_is_cut)
{
	static char line[3000];
	struct owner *o = owner_running();
	size_t len;

	memset(line, '\x01', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	owner_says(o, line);
	owner_proc_dies(o, status_exit(1));
	len = strlen(o->last_end.text);
	ck_assert_uint_lt(len, sizeof(o->last_end.text));
	ck_assert_uint_gt(len, 200);
	ck_assert_str_eq(o->last_end.text + len - 8, "\\x01\"...");
	owner_free(o);
}
END_TEST

START_TEST(ending_does_not_wait_for_stderr)
{
	struct owner *o = owner_running();

	owner_says(o, "left behind");
	/* Somebody in the group still holds it. */
	fake_proc_exit(owner_proc(o), status_exit(1));
	ck_assert_uint_eq(fake_loop_watches(o->loop), 1);
	owner_output_ends(o);
	ck_assert_uint_eq(o->downs, 1);
	ck_assert_uint_eq(fake_loop_watches(o->loop), 0);
	ck_assert(owner_log_has(o, "line=\"left behind\"\n"));
	owner_free(o);
}
END_TEST

START_TEST(closing_stderr_is_no_end)
{
	struct owner *o = owner_running();

	fake_proc_close(owner_proc(o), fake_proc_stderr(owner_proc(o)));
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(fake_loop_watches(o->loop), 0);
	ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	owner_free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("child_stderr");
	TCase *tc = tcase_create("stderr");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, lines_are_logged_under_the_name);
	tcase_add_test(tc, limit_is_a_child_s_own);
	tcase_add_test(tc, flood_without_newline_is_taken);
	tcase_add_test(tc, drained_when_the_log_is_silent);
	tcase_add_test(tc, what_clients_hear);
	tcase_add_test(tc, last_line_goes_into_the_end);
	tcase_add_test(tc, long_last_line_is_cut);
	tcase_add_test(tc, ending_does_not_wait_for_stderr);
	tcase_add_test(tc, closing_stderr_is_no_end);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
