/* layer: base */
/* SPDX-License-Identifier: MIT */
/* The log: form of a line, levels, limits, escaping, and what stderr may be. */
#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char g_line[5000];
static unsigned g_lines;
static uint64_t g_now;
static int g_stderr = -1;

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	ck_assert_ptr_eq(arg, &g_lines);
	ck_assert_uint_lt(len, 4096);
	ck_assert_uint_eq(strlen(line), len);
	ck_assert_uint_le(level, LOG_LV_DEBUG);
	memcpy(g_line, line, len + 1);
	g_lines++;
}

static uint64_t
fake_now(void)
{
	return g_now;
}

static void
setup(void)
{
	g_lines = 0;
	g_now = 1000000;
	clock_set_source(fake_now);
	log_set_sink(on_line, &g_lines);
	log_set_level(LOG_LV_INFO);
}

static void
teardown(void)
{
	clock_set_source(NULL);
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_NOTICE);
	log_clear_module_levels();
	log_set_format(LOG_FMT_TEXT);
	log_set_limit(0, 0);
}

START_TEST(line_has_its_form)
{
	LOG_NOTICE("child", "exited", "upstream=%s pid=%d", "github", 12);
	ck_assert_str_eq(g_line, "notice child: exited upstream=github pid=12");
	log_event(LOG_LV_ERROR, "daemon", "stopped", "%s", "");
	ck_assert_str_eq(g_line, "error daemon: stopped");
	LOG_WARNING("a", "b", "v=%s", "x\ny\x1b[31m\x7f");
	ck_assert_str_eq(g_line, "warning a: b v=x?y?[31m?");
	errno = ENOENT;
	LOG_INFO("a", "b", "%s", "");
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_str_eq(g_line, "info a: b");
}
END_TEST

START_TEST(levels_filter)
{
	static const char *const names[] = {
	    "error", "warning", "notice", "info", "debug"};
	enum log_level level;

	for (unsigned i = 0; i < 5; i++) {
		ck_assert(log_level_parse(names[i], &level));
		ck_assert_uint_eq(level, i);
		log_set_level(level);
		g_lines = 0;
		LOG_ERROR("m", "e", "%s", "");
		LOG_WARNING("m", "e", "%s", "");
		LOG_NOTICE("m", "e", "%s", "");
		LOG_INFO("m", "e", "%s", "");
		LOG_DEBUG("m", "e", "%s", "");
		ck_assert_uint_eq(g_lines, i + 1);
		ck_assert(log_is_on(level));
	}
	ck_assert(!log_level_parse("Error", &level));
	ck_assert(!log_level_parse("", &level));
	ck_assert_uint_eq(level, LOG_LV_DEBUG);
}
END_TEST

START_TEST(long_line_is_cut)
{
	char big[5000];

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	LOG_INFO("m", "e", "v=%s", big);
	ck_assert_uint_eq(strlen(g_line), 4095);
	ck_assert_str_eq(g_line + 4095 - 5, "xx...");
	/* Two bytes a character, at both alignments. */
	for (int odd = 0; odd < 2; odd++) {
		for (size_t i = 0; i + 2 < sizeof(big); i += 2)
			memcpy(big + i, "\xc3\xa9", 2);
		LOG_INFO("m", "e", "%s%s", odd ? "-" : "", big);
		ck_assert_str_eq(g_line + strlen(g_line) - 5, "\xc3\xa9...");
	}
}
END_TEST

static void
limited_say(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		LOG_LIMITED(LOG_LV_INFO, "m", "noise", "i=%u", i);
}

START_TEST(site_is_limited)
{
	uint64_t before = metrics_get(METRIC_LOG_SUPPRESSED);

	limited_say(10);
	ck_assert_uint_eq(g_lines, 10);
	ck_assert_str_eq(g_line, "info m: noise i=9");
	limited_say(7);
	ck_assert_uint_eq(g_lines, 10);
	g_now += 9999;
	limited_say(1);
	ck_assert_uint_eq(g_lines, 10);
	g_now += 1;
	limited_say(1);
	ck_assert_uint_eq(g_lines, 11);
	ck_assert_str_eq(g_line, "info m: noise i=0 suppressed=8");
	limited_say(1);
	ck_assert_str_eq(g_line, "info m: noise i=0");
	ck_assert_uint_eq(metrics_get(METRIC_LOG_SUPPRESSED) - before, 8);
	log_set_level(LOG_LV_NOTICE);
	limited_say(100);
	ck_assert_uint_eq(metrics_get(METRIC_LOG_SUPPRESSED) - before, 8);
}
END_TEST

START_TEST(modules_have_levels_of_their_own)
{
	char name[40];

	log_set_level(LOG_LV_WARNING);
	ck_assert(log_set_module_level("loud", LOG_LV_DEBUG));
	ck_assert(log_set_module_level("quiet", LOG_LV_ERROR));
	ck_assert(log_is_on(LOG_LV_DEBUG));
	LOG_DEBUG("loud", "a", "%s", "");
	ck_assert_str_eq(g_line, "debug loud: a");
	LOG_DEBUG("other", "b", "%s", "");
	LOG_WARNING("quiet", "c", "%s", "");
	LOG_LIMITED(LOG_LV_WARNING, "quiet", "d", "%s", "");
	ck_assert_uint_eq(g_lines, 1);
	LOG_WARNING("other", "e", "%s", "");
	LOG_ERROR("quiet", "f", "%s", "");
	ck_assert_uint_eq(g_lines, 3);
	/* Again replaces; the general level goes for the others alone. */
	ck_assert(log_set_module_level("loud", LOG_LV_NOTICE));
	ck_assert(!log_is_on(LOG_LV_INFO));
	log_set_level(LOG_LV_ERROR);
	ck_assert(log_is_on(LOG_LV_NOTICE));
	log_clear_module_levels();
	ck_assert(!log_is_on(LOG_LV_WARNING));
	ck_assert(!log_set_module_level("", LOG_LV_DEBUG));
	ck_assert(
	    !log_set_module_level("a_word_of_more_than_thirty_one_bytes", LOG_LV_DEBUG));
	for (int i = 0; i < 33; i++) {
		(void)snprintf(name, sizeof(name), "m%d", i);
		ck_assert_int_eq(log_set_module_level(name, LOG_LV_DEBUG), i < 32);
	}
	ck_assert(log_set_module_level("m0", LOG_LV_ERROR));
}
END_TEST

START_TEST(limit_of_sites_is_set)
{
	static struct log_site own = {.burst = 5};

	log_set_limit(2, 500);
	for (unsigned round = 0; round < 2; round++) {
		g_lines = 0;
		limited_say(5);
		ck_assert_uint_eq(g_lines, 2);
		g_now += 500;
	}
	g_lines = 0;
	for (unsigned i = 0; i < 9; i++)
		log_limited(&own, LOG_LV_INFO, "m", "e", "%s", "");
	ck_assert_uint_eq(g_lines, 5);
}
END_TEST

/* The pairs of a line, and what the structured formats make of them. */
static const struct {
	const char *pairs, *logfmt, *json;
} pairs_rows[] = {
    {"", "", ""},
    {"pid=12", " pid=12", ",\"pid\":12"},
    {"a=-1.50 b=007 c=1e5 d=- e=.5 f=5. g=0 h=-0",
	" a=-1.50 b=007 c=1e5 d=- e=.5 f=5. g=0 h=-0",
	",\"a\":-1.50,\"b\":\"007\",\"c\":\"1e5\",\"d\":\"-\",\"e\":\".5\",\"f\":\"5.\","
	"\"g\":0,\"h\":-0"},
    {"id=18446744073709551615", " id=18446744073709551615",
	",\"id\":\"18446744073709551615\""},
    {"q=\"12\"", " q=\"12\"", ",\"q\":\"12\""},
    {"v=\"a\\\"b\\\\c\\x0a\\xff\" w=x", " v=\"a\\\"b\\\\c\\x0a\\xff\" w=x",
	",\"v\":\"a\\\"b\\\\c\\u000a\\\\xff\",\"w\":\"x\""},
    {"v=\"long\"... w=1", " v=\"long...\" w=1", ",\"v\":\"long...\",\"w\":1"},
    {"who=my own server pid=3", " who=\"my own server\" pid=3",
	",\"who\":\"my own server\",\"pid\":3"},
    {"a= b=", " a=\"\" b=\"\"", ",\"a\":\"\",\"b\":\"\""},
    {"no pair at all x=1", " text=\"no pair at all\" x=1",
	",\"text\":\"no pair at all\",\"x\":1"},
    {"state=up event=gone level=9 ts=x", " state=up event_=gone level_=9 ts_=x",
	",\"state\":\"up\",\"event_\":\"gone\",\"level_\":9,\"ts_\":\"x\""},
    {"v=\"a\"b\" w=1", " v=\"\\\"a\\\"b\\\"\" w=1", ",\"v\":\"\\\"a\\\"b\\\"\",\"w\":1"},
    {"v=\"open", " v=\"\\\"open\"", ",\"v\":\"\\\"open\""},
    {"v=x\ny\x1b\xc3\xa9\xc3", " v=\"x\\x0ay\\x1b\xc3\xa9\\xc3\"",
	",\"v\":\"x\\u000ay\\u001b\xc3\xa9\\\\xc3\""},
};

START_TEST(pairs_have_their_formats)
{
	char want[1000];

	log_set_format(LOG_FMT_LOGFMT);
	LOG_NOTICE("mod", "some event", "%s", pairs_rows[_i].pairs);
	(void)snprintf(want, sizeof(want),
	    "level=notice module=mod event=\"some event\"%s", pairs_rows[_i].logfmt);
	ck_assert_str_eq(g_line, want);
	log_set_format(LOG_FMT_JSON);
	LOG_NOTICE("mod", "some event", "%s", pairs_rows[_i].pairs);
	(void)snprintf(want, sizeof(want),
	    "{\"level\":\"notice\",\"module\":\"mod\",\"event\":\"some event\"%s}",
	    pairs_rows[_i].json);
	ck_assert_str_eq(g_line, want);
}
END_TEST

START_TEST(long_pairs_are_cut)
{
	char big[5000];
	size_t n;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	for (int f = LOG_FMT_LOGFMT; f < LOG_FMT_MAX; f++) {
		const char *end =
		    f == LOG_FMT_JSON ? "xx...\",\"cut\":true}" : "xx...\" cut=true";

		log_set_format((enum log_format)f);
		LOG_INFO("m", "e", "a=1 v=%s b=2", big);
		n = strlen(g_line);
		ck_assert_uint_gt(n, 4000);
		ck_assert_str_eq(g_line + n - strlen(end), end);
		/* What did not fit stays out whole. */
		LOG_INFO("m", "e", "a=%.1300s b=\"%.1300s\" c=\"%.1300s\" d=\"%.1300s\"",
		    big, big, big, big);
		n = strlen(g_line);
		ck_assert_uint_gt(n, 4000);
		ck_assert_str_eq(g_line + n - strlen(end), end);
		/* A number that lost its end is none. */
		LOG_INFO("m", "e", "a=%.4080s n=12345678901234", big);
		ck_assert_ptr_null(strstr(g_line, "\"n\":1"));
		ck_assert_ptr_null(strstr(g_line, " n=1"));
	}
}
END_TEST

static const struct {
	const char *in;
	size_t len;
	const char *want;
} escapes[] = {
    {NULL, 0, "\"\""},
    {"plain text~", 11, "\"plain text~\""},
    {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {"\0\n\r\t\x1b\x7f", 6, "\"\\x00\\x0a\\x0d\\x09\\x1b\\x7f\""},
    {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 11,
	"\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
    {"\xc2\x85\xc2\xa0", 4, "\"\\xc2\\x85\xc2\xa0\""},	 /* C1, then a good one */
    {"\xc0\xaf", 2, "\"\\xc0\\xaf\""},			 /* overlong */
    {"\xed\xa0\x80", 3, "\"\\xed\\xa0\\x80\""},		 /* surrogate */
    {"\xf4\x90\x80\x80", 4, "\"\\xf4\\x90\\x80\\x80\""}, /* over U+10FFFF */
    {"\xe2\x82", 2, "\"\\xe2\\x82\""},			 /* ends early */
    {"\xe2\x82x", 3, "\"\\xe2\\x82x\""},
    {"\xf0\x9f\x98", 3, "\"\\xf0\\x9f\\x98\""},
    {"\xff\x80", 2, "\"\\xff\\x80\""},
};

START_TEST(values_are_escaped)
{
	ck_assert_str_eq(LOG_ESC(escapes[_i].in, escapes[_i].len), escapes[_i].want);
}
END_TEST

START_TEST(long_value_is_cut)
{
	char big[2000];
	const char *four[4];
	const char *s;

	for (unsigned char c = 0; c < 2; c++) {
		memset(big, c == 0 ? 'x' : 0x01, sizeof(big));
		s = LOG_ESC(big, sizeof(big));
		ck_assert_uint_le(strlen(s), CAP_LOG_VALUE_BYTES);
		ck_assert_uint_gt(strlen(s), CAP_LOG_VALUE_BYTES - 4);
		ck_assert_str_eq(s + strlen(s) - 4, "\"...");
	}
	for (unsigned i = 0; i < 4; i++) {
		big[0] = (char)('a' + i);
		four[i] = LOG_ESC(big, 1);
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(four[i][1], (int)('a' + i));
}
END_TEST

/* The rest has a stderr of its own. */

static void
stderr_put(int fd, enum log_level max)
{
	g_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	ck_assert_int_ge(g_stderr, 0);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	log_set_sink(NULL, NULL);
	log_open(max);
}

static void
stderr_restore(void)
{
	if (g_stderr >= 0) {
		(void)dup2(g_stderr, STDERR_FILENO);
		(void)close(g_stderr);
		g_stderr = -1;
	}
	(void)unsetenv("JOURNAL_STREAM");
	log_open(LOG_LV_NOTICE);
	teardown();
}

static void
check_stamped(const char *line, const char *want)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";

	for (size_t i = 0; form[i] != '\0'; i++) {
		if (form[i] == 'd')
			ck_assert(line[i] >= '0' && line[i] <= '9');
		else
			ck_assert_int_eq(line[i], form[i]);
	}
	ck_assert_str_eq(line + sizeof(form) - 1, want);
}

static void
read_line(int fd)
{
	ssize_t n = read(fd, g_line, sizeof(g_line) - 1);

	ck_assert_int_gt(n, 0);
	g_line[n] = '\0';
}

START_TEST(full_pipe_never_blocks)
{
	uint64_t lost = metrics_get(METRIC_LOG_LOST);
	uint64_t now_lost;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	stderr_put(p[1], LOG_LV_INFO);
	for (unsigned i = 0; metrics_get(METRIC_LOG_LOST) == lost; i++) {
		ck_assert_uint_lt(i, 1000000);
		errno = EDOM;
		LOG_INFO("m", "e", "i=%u", i);
		ck_assert_int_eq(errno, EDOM);
	}
	now_lost = metrics_get(METRIC_LOG_LOST);
	/* Whoever shares the pipe keeps a blocking end. */
	ck_assert_int_eq(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0);
	for (size_t got = 0; got < 8192; got += strlen(g_line))
		read_line(p[0]);
	LOG_INFO("m", "again", "%s", "");
	ck_assert_uint_eq(metrics_get(METRIC_LOG_LOST), now_lost);
	stderr_restore();
	(void)close(p[0]);
	(void)close(p[1]);
}
END_TEST

START_TEST(pipe_and_journal)
{
	char name[64];
	struct stat st;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	(void)setenv("JOURNAL_STREAM", "1:2", 1);
	stderr_put(p[1], LOG_LV_INFO);
	LOG_INFO("m", "e", "k=%d", 1);
	read_line(p[0]);
	check_stamped(g_line, "info m: e k=1\n");
	ck_assert_int_eq(fstat(p[1], &st), 0);
	(void)snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)st.st_dev,
	    (unsigned long long)st.st_ino);
	(void)setenv("JOURNAL_STREAM", name, 1);
	log_open(LOG_LV_DEBUG);
	LOG_ERROR("m", "e", "k=%d", 2);
	read_line(p[0]);
	ck_assert_str_eq(g_line, "<3>error m: e k=2\n");
	LOG_DEBUG("m", "e", "k=%d", 3);
	read_line(p[0]);
	ck_assert_str_eq(g_line, "<7>debug m: e k=3\n");
	log_set_format(LOG_FMT_JSON);
	LOG_NOTICE("m", "e", "k=%d", 4);
	read_line(p[0]);
	ck_assert_str_eq(g_line,
	    "<5>{\"level\":\"notice\",\"module\":\"m\",\"event\":\"e\",\"k\":4}\n");
	log_set_format(LOG_FMT_LOGFMT);
	LOG_NOTICE("m", "e", "k=%d", 5);
	read_line(p[0]);
	ck_assert_str_eq(g_line, "<5>level=notice module=m event=\"e\" k=5\n");
	stderr_restore();
	(void)close(p[0]);
	(void)close(p[1]);
}
END_TEST

START_TEST(structured_lines_have_the_time)
{
	static const char *const leads[] = {"ts=", "{\"ts\":\""};
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	stderr_put(p[1], LOG_LV_INFO);
	for (int i = 0; i < 2; i++) {
		log_set_format(i == 0 ? LOG_FMT_LOGFMT : LOG_FMT_JSON);
		LOG_INFO("m", "e", "%s", "");
		read_line(p[0]);
		ck_assert_int_eq(strncmp(g_line, leads[i], strlen(leads[i])), 0);
		ck_assert_int_eq(g_line[strlen(leads[i]) + 10], 'T');
		ck_assert_int_eq(g_line[strlen(leads[i]) + 23], 'Z');
	}
	stderr_restore();
	(void)close(p[0]);
	(void)close(p[1]);
}
END_TEST

START_TEST(socket_never_blocks)
{
	uint64_t lost = metrics_get(METRIC_LOG_LOST);
	int s[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	stderr_put(s[1], LOG_LV_INFO);
	LOG_INFO("m", "e", "k=%d", 1);
	read_line(s[0]);
	check_stamped(g_line, "info m: e k=1\n");
	for (unsigned i = 0; metrics_get(METRIC_LOG_LOST) == lost; i++) {
		ck_assert_uint_lt(i, 1000000);
		LOG_INFO("m", "e", "i=%u", i);
	}
	/* A reader that left costs a line, not a signal. */
	(void)close(s[0]);
	LOG_INFO("m", "e", "%s", "");
	ck_assert_uint_eq(metrics_get(METRIC_LOG_LOST) - lost, 2);
	stderr_restore();
	(void)close(s[1]);
}
END_TEST

/* Started without a stderr: what is opened later does not get the lines. */
START_TEST(closed_stderr_is_nobodys)
{
	struct stat st;
	int fd;

	g_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	ck_assert_int_ge(g_stderr, 0);
	log_set_sink(NULL, NULL);
	ck_assert_int_eq(close(STDERR_FILENO), 0);
	log_open(LOG_LV_INFO);
	fd = memfd_create("state", MFD_CLOEXEC);
	LOG_INFO("m", "e", "%s", "");
	ck_assert_int_gt(fd, STDERR_FILENO);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	(void)close(fd);
	stderr_restore();
}
END_TEST

START_TEST(regular_file_is_shared)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	stderr_put(fd, LOG_LV_INFO);
	LOG_INFO("m", "one", "%s", "");
	ck_assert_int_eq(write(fd, "other\n", 6), 6);
	LOG_INFO("m", "two", "%s", "");
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	read_line(fd);
	ck_assert_ptr_nonnull(strstr(g_line, "info m: one\nother\n2"));
	ck_assert_ptr_nonnull(strstr(g_line, "info m: two\n"));
	stderr_restore();
	(void)close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("lines");
	TCase *out = tcase_create("stderr");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, line_has_its_form);
	tcase_add_test(tc, levels_filter);
	tcase_add_test(tc, long_line_is_cut);
	tcase_add_test(tc, site_is_limited);
	tcase_add_test(tc, modules_have_levels_of_their_own);
	tcase_add_test(tc, limit_of_sites_is_set);
	tcase_add_loop_test(
	    tc, pairs_have_their_formats, 0, sizeof(pairs_rows) / sizeof(pairs_rows[0]));
	tcase_add_test(tc, long_pairs_are_cut);
	tcase_add_loop_test(
	    tc, values_are_escaped, 0, sizeof(escapes) / sizeof(escapes[0]));
	tcase_add_test(tc, long_value_is_cut);
	suite_add_tcase(s, out);
	tcase_add_checked_fixture(out, setup, stderr_restore);
	tcase_add_test(out, full_pipe_never_blocks);
	tcase_add_test(out, pipe_and_journal);
	tcase_add_test(out, structured_lines_have_the_time);
	tcase_add_test(out, socket_never_blocks);
	tcase_add_test(out, closed_stderr_is_nobodys);
	tcase_add_test(out, regular_file_is_shared);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
