/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The import of client files: verdicts on a corpus, and entry by entry. */
#include "mcpvisor/import.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import_rig.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>

/* Entries that cannot run, each with what its text must name. */
static const struct {
	const char *entry;
	enum mv_err err;
	const char *text;
} broken[] = {
    {"[]", MV_CONF, "not an object"},
    {"{}", MV_CONF, "command is missing"},
    {"{\"command\":null}", MV_CONF, "command is missing"},
    {"{\"command\":7}", MV_CONF, "command is not a string"},
    {"{\"command\":\"\"}", MV_CONF, "command is empty"},
    {"{\"command\":\"${NO:-}\"}", MV_CONF, "command is empty"},
    {"{\"command\":\"${NO}\"}", MV_CONF, "command: variable NO is not set"},
    {"{\"command\":\"x\",\"args\":\"y\"}", MV_CONF, "args is not an array"},
    {"{\"command\":\"x\",\"args\":[\"y\",1]}", MV_CONF, "args[1] is not a string"},
    {"{\"command\":\"x\",\"args\":[\"${NO}\"]}", MV_CONF, "args[0]: variable NO"},
    {"{\"command\":\"x\",\"env\":[]}", MV_CONF, "env is not an object"},
    {"{\"command\":\"x\",\"env\":{\"A\":[]}}", MV_CONF, "env.A is not a string"},
    {"{\"command\":\"x\",\"env\":{\"A\":null}}", MV_CONF, "env.A is not a string"},
    {"{\"command\":\"x\",\"env\":{\"A=B\":\"\"}}", MV_CONF, "env.A=B: not a name"},
    {"{\"command\":\"x\",\"env\":{\"T\":\"${GITHUB_TOKEN}\"}}", MV_CONF,
	"env.T: variable GITHUB_TOKEN is not set"},
    {"{\"command\":\"x\",\"env\":{\"T\":\"${input:t}\"}}", MV_CONF,
	"env.T: ${input:...} is a question"},
    {"{\"command\":\"x\",\"cwd\":1}", MV_CONF, "cwd is not a string"},
    {"{\"command\":\"x\",\"cwd\":\"${NO}\"}", MV_CONF, "cwd: variable NO"},
    {"{\"command\":\"x\",\"envFile\":1}", MV_CONF, "envFile is not a string"},
    {"{\"command\":\"x\",\"envFile\":\"\"}", MV_CONF, "envFile is empty"},
    {"{\"command\":\"x\",\"envFile\":\"${NO}\"}", MV_CONF, "envFile: variable NO"},
    {"{\"command\":\"x\",\"envFile\":\"${workspaceFolder}/.env\"}", MV_CONF,
	"envFile: ${workspaceFolder} is a variable of the editor"},
    {"{\"command\":\"x\",\"envFile\":\"/nonexistent/.env\"}", MV_CONF,
	"envFile \"/nonexistent/.env\": No such file"},
    {"{\"command\":\"x\",\"env\":{\"A\":\"${file:/nonexistent}\"}}", MV_CONF,
	"env.A: file \"/nonexistent\": No such file"},
    {"{\"command\":\"x\",\"env\":{\"A\":\"${credential:t}\"}}", MV_CONF,
	"env.A: credential \"t\""},
    {"{\"command\":\"x\",\"disabled\":\"yes\"}", MV_CONF, "disabled is neither"},
    {"{\"command\":\"x\",\"enabled\":0}", MV_CONF, "enabled is neither"},
    {"{\"type\":\"carrier\",\"command\":\"x\"}", MV_CONF, "type is none of"},
    {"{\"type\":1,\"command\":\"x\"}", MV_CONF, "type is not a string"},
    {"{\"command\":\"x\",\"mcpvisor\":1}", MV_CONF, "mcpvisor is not an object"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"era\":\"old\"}}", MV_CONF, "mcpvisor.era"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"era\":1}}", MV_CONF, "mcpvisor.era"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"prefix\":\"a.b\"}}", MV_CONF,
	"mcpvisor.prefix may have"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"prefix\":"
     "\"0123456789012345678901234\"}}",
	MV_CONF, "mcpvisor.prefix is longer"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"call_ms\":0}}", MV_CONF, "mcpvisor.call_ms"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"call_ms\":1.5}}", MV_CONF, "mcpvisor.call_ms"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"probe_ms\":99999999999}}", MV_CONF,
	"mcpvisor.probe_ms"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"cal_ms\":1}}", MV_CONF, "cal_ms"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"isolation\":\"none\"}}", MV_CONF,
	"mcpvisor.isolation is none of auto, shared, session, call"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"start\":\"lazy\"}}", MV_CONF,
	"mcpvisor.start is none of eager, on_use"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"upstream_failure\":true}}", MV_CONF,
	"mcpvisor.upstream_failure is none of error, tool_error"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"rescue_errors\":1}}", MV_CONF,
	"mcpvisor.rescue_errors is neither true nor false"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"uri_prefix\":1}}", MV_CONF,
	"mcpvisor.uri_prefix is not a string"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"uri_prefix\":\"1+\"}}", MV_CONF,
	"mcpvisor.uri_prefix does not begin with a letter"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"uri_prefix\":\"a b\"}}", MV_CONF,
	"mcpvisor.uri_prefix has a character"},
    {"{\"command\":\"x\",\"mcpvisor\":{\"queue_bytes\":0}}", MV_CONF,
	"mcpvisor.queue_bytes is not a whole number from 1 to"},
};

START_TEST(test_broken)
{
	struct import_result r;
	struct upstream_conf *c = parse_entry(broken[_i].entry, &r);

	ck_assert_msg(
	    c->broken == broken[_i].err, "%s: %s", broken[_i].entry, c->broken_text);
	ck_assert_msg(strstr(c->broken_text, broken[_i].text) != NULL, "%s: %s",
	    broken[_i].entry, c->broken_text);
	ck_assert_str_eq(c->name, "a");
	import_free(&r);
}
END_TEST

START_TEST(test_entry)
{
	struct import_result r;
	struct upstream_conf *c =
	    parse_entry("{\"type\":\"stdio\",\"command\":\"n${NO:-px}\","
			"\"args\":[\"-y\",\"${TOKEN}\"],"
			"\"env\":{\"A\":\"${env:TOKEN}\",\"N\":8080,"
			"\"V\":3.10,\"B\":true,\"PATH\":\"/x\"},"
			"\"cwd\":\"${userHome}/w\"}",
		&r);

	ck_assert_int_eq(c->broken, MV_OK);
	ck_assert_str_eq(c->argv[0], "npx");
	ck_assert_str_eq(c->argv[1], "-y");
	ck_assert_str_eq(c->argv[2], "hunter2 ${X}");
	ck_assert_ptr_null(c->argv[3]);
	ck_assert_str_eq(env_get(c, "A"), "hunter2 ${X}");
	ck_assert_str_eq(env_get(c, "N"), "8080");
	ck_assert_str_eq(env_get(c, "V"), "3.10");
	ck_assert_str_eq(env_get(c, "B"), "true");
	ck_assert_str_eq(env_get(c, "PATH"), "/x");
	ck_assert_str_eq(c->path, "/x");
	ck_assert_str_eq(c->cwd, "/home/u/w");
	ck_assert_ptr_null(c->prefix);
	ck_assert_uint_eq(r.n_warnings, 0);
	import_free(&r);
}
END_TEST

START_TEST(test_own_path_stays)
{
	struct import_result r;
	struct upstream_conf *c;

	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("MCPVISOR_TEST_SECRET", "hunter2", 1);
	c = parse_entry("{\"command\":\"x\",\"env\":{\"MY\":\"\"}}", &r);
	ck_assert_str_eq(c->path, "/usr/bin:/bin");
	ck_assert_str_eq(env_get(c, "PATH"), "/usr/bin:/bin");
	ck_assert_str_eq(env_get(c, "MY"), "");
	ck_assert_ptr_null(env_get(c, "MCPVISOR_TEST_SECRET"));
	unsetenv("MCPVISOR_TEST_SECRET");
	import_free(&r);
}
END_TEST

START_TEST(test_warnings)
{
	static const char text[] =
	    "{\"mcpServers\":{\n\"a\":{\"command\":\"x\",\"comand\":\"y\"},\n"
	    "\"b\":{\"disabled\":true},\n\"c\":{\"enabled\":false},\n"
	    "\"d\":{\"command\":\"x\",\"timeout\":1,\"alwaysAllow\":[]}},\n\"servers\":{}"
	    "}";
	static const char *const want[] = {
	    "f.json: \"servers\" is ignored, as \"mcpServers\" is there too",
	    "f.json:2: entry \"a\": unknown member \"comand\"",
	    "f.json:3: entry \"b\": left out, as it is disabled",
	    "f.json:4: entry \"c\": left out, as it is disabled",
	    "f.json:5: entry \"d\": timeout is ignored; see call_ms in \"mcpvisor\""};
	struct import_result r;
	struct mv_errtext et = {.line = 0};

	ck_assert_int_eq(parse(text, &r, &et), MV_OK);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_str_eq(r.v[0]->name, "a");
	ck_assert_str_eq(r.v[1]->name, "d");
	ck_assert_uint_eq(r.n_warnings, 5);
	for (size_t i = 0; i < 5; i++)
		ck_assert_str_eq(r.warnings[i], want[i]);
	import_free(&r);
}
END_TEST

/* A list of n entries, or members of one entry, in the caller's memory. */
static char *
text_with(size_t n, const char *head, const char *item, const char *tail)
{
	size_t max = strlen(head) + n * (strlen(item) + 24) + strlen(tail) + 1;
	char *text = mem_xalloc(max);
	size_t len = (size_t)snprintf(text, max, "%s", head);

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(
		    text + len, max - len, "%s\"k%zu\":%s", i ? "," : "", i, item);
	snprintf(text + len, max - len, "%s", tail);
	return text;
}

START_TEST(test_caps)
{
	struct import_result r;
	struct mv_errtext et = {.line = 0};
	char *text = text_with(CAP_UPSTREAMS + 1, "{\"servers\":{", "{}", "}}");
	char *big = mem_xalloc(CAP_IMPORT_BYTES + 1);

	ck_assert_int_eq(parse(text, &r, &et), MV_CONF);
	ck_assert_str_eq(et.message, "too many servers in one file");
	ck_assert_uint_eq(r.n, 0);
	mem_free(text);
	text = text_with(CAP_UPSTREAMS, "{\"servers\":{", "{}", "}}");
	ck_assert_int_eq(parse(text, &r, &et), MV_OK);
	ck_assert_uint_eq(r.n, CAP_UPSTREAMS);
	import_free(&r);
	mem_free(text);
	text = text_with(200, "{\"servers\":{\"a\":{\"command\":\"x\",", "1", "}}}");
	ck_assert_int_eq(parse(text, &r, &et), MV_OK);
	ck_assert_uint_eq(r.n_warnings, 101);
	ck_assert_str_eq(r.warnings[100], "more warnings are left out");
	import_free(&r);
	mem_free(text);
	memset(big, ' ', CAP_IMPORT_BYTES + 1);
	ck_assert_int_eq(
	    import_parse("f", big, CAP_IMPORT_BYTES + 1, &fake, &r, &et), MV_CONF);
	ck_assert_str_eq(et.message, "the file is too long");
	mem_free(big);
}
END_TEST

START_TEST(test_no_memory)
{
	struct import_result r;
	struct mv_errtext et = {.line = 0};

	mem_fail_at(1, 1);
	ck_assert_int_eq(parse("{\"servers\":{}}", &r, &et), MV_CONF);
	mem_fail_at(0, 0);
	ck_assert_uint_eq(r.n, 0);
}
END_TEST

START_TEST(test_messages_show_no_value)
{
	struct import_result r;
	struct mv_errtext et = {.line = 0};

	ck_assert_int_eq(
	    parse("{\"servers\":{\"a\":{\"k\":\"v\" \"hunter2\"}}}", &r, &et), MV_CONF);
	ck_assert_ptr_null(strstr(et.message, "hunter2"));
	ck_assert_int_eq(
	    parse("{\"servers\":{\"twin\":{},\n\"twin\":{}}}", &r, &et), MV_CONF);
	ck_assert_ptr_nonnull(strstr(et.message, "twin"));
	ck_assert_int_eq(et.line, 2);
}
END_TEST

START_TEST(test_files)
{
	struct import_result r;
	struct mv_errtext et = {.line = 0};

	ck_assert_int_eq(import_file("/nonexistent/f.json", &r, &et), MV_CONF);
	ck_assert_str_eq(et.file, "/nonexistent/f.json");
	ck_assert_str_eq(et.message, "No such file or directory");
	ck_assert_int_eq(import_file("/", &r, &et), MV_CONF);
	ck_assert_str_eq(et.message, "not a regular file");
	ck_assert_int_eq(import_file("/dev/zero", &r, &et), MV_CONF);
	ck_assert_str_eq(et.message, "the file is too long");
	ck_assert_uint_eq(r.n, 0);
}
END_TEST

/* Reads the number at *p and moves behind it. */
static unsigned long
take_number(char **p)
{
	char *end;
	unsigned long v = strtoul(*p, &end, 10);

	ck_assert_ptr_ne(end, *p);
	*p = end;
	return v;
}

/* Each file's first line is its verdict: "// ok ENTRIES BROKEN WARNINGS" or
 * "// error LINE TEXT". */
static void
corpus_check(const char *path)
{
	struct import_result r;
	struct mv_errtext et = {.line = 0};
	char verdict[256], *p = verdict;
	size_t n_bad = 0;
	FILE *f = fopen(path, "r");
	enum mv_err err;

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(verdict, sizeof verdict, f));
	fclose(f);
	verdict[strcspn(verdict, "\r\n")] = '\0';
	err = import_file(path, &r, &et);
	for (size_t i = 0; i < r.n; i++)
		n_bad += r.v[i]->broken != MV_OK;
	if (strncmp(p, "// ok ", 6) == 0) {
		p += 6;
		ck_assert_msg(err == MV_OK, "%s:%d: %s", path, et.line, et.message);
		ck_assert_msg(r.n == take_number(&p) && n_bad == take_number(&p) &&
				  r.n_warnings == take_number(&p),
		    "%s: %zu %zu %zu", path, r.n, n_bad, r.n_warnings);
	} else {
		ck_assert_msg(strncmp(p, "// error ", 9) == 0, "%s: no verdict", path);
		p += 9;
		ck_assert_msg(err == MV_CONF && et.line == (int)take_number(&p) &&
				  strstr(et.message, p + 1) != NULL,
		    "%s:%d: %s", path, et.line, et.message);
	}
	import_free(&r);
}

START_TEST(test_corpus)
{
	const char *corpus = getenv("CORPUS");
	char path[4096];
	struct dirent *d;
	unsigned n = 0;
	DIR *dir;

	ck_assert_ptr_nonnull(corpus);
	snprintf(path, sizeof path, "%s/import", corpus);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((d = readdir(dir))) {
		if (!strstr(d->d_name, ".json"))
			continue;
		snprintf(path, sizeof path, "%s/import/%s", corpus, d->d_name);
		corpus_check(path);
		n++;
	}
	closedir(dir);
	ck_assert_uint_ge(n, 12);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("import");
	TCase *tc = tcase_create("import");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, test_broken, 0, sizeof broken / sizeof *broken);
	tcase_add_test(tc, test_entry);
	tcase_add_test(tc, test_own_path_stays);
	tcase_add_test(tc, test_warnings);
	tcase_add_test(tc, test_caps);
	tcase_add_test(tc, test_no_memory);
	tcase_add_test(tc, test_messages_show_no_value);
	tcase_add_test(tc, test_files);
	tcase_add_test(tc, test_corpus);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
