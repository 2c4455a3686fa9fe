/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Command lines: what a value becomes, and what it never becomes. */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "temp_rig.h"

#include <limits.h>

#define WORDS_MAX 12

static struct argspec *params;
static struct temp temp;
static char root[80];
static struct exec_line line;
static struct buf why;

static struct argspec *
add(enum arg_type type, const char *name)
{
	struct argspec *s = argspec_new(type, name);

	s->is_nullable = true; /* null is absent */
	argspec_add_member(params, s);
	return s;
}

static void
make_params(void)
{
	struct argspec *s;

	params = argspec_new(ARG_OBJECT, NULL);
	s = add(ARG_INTEGER, "limit");
	s->dflt = mem_xstrdup("10");
	s->min_text = mem_xstrdup("1");
	s->min = 1;
	s->max_text = mem_xstrdup("100");
	s->max = 100;
	s = add(ARG_STRING, "author");
	s->max_length = 80;
	add(ARG_STRING, "text");
	add(ARG_STRING, "ref");
	add(ARG_STRING, "loose");
	add(ARG_STRING, "pin")->is_secret = true;
	add(ARG_ARRAY, "paths")->items = argspec_new(ARG_STRING, NULL);
	add(ARG_ARRAY, "files")->items = argspec_new(ARG_STRING, NULL);
	add(ARG_STRING, "file");
	add(ARG_BOOLEAN, "flag");
	add(ARG_NUMBER, "ratio");
	add(ARG_ANY, "any");
	add(ARG_INTEGER, "whole");
}

static void
make_tree(void)
{
	temp_make(&temp);
	snprintf(root, sizeof(root), "%s/root", temp.dir);
	ck_assert_int_eq(mkdir(root, 0700), 0);
	temp_write(&temp, "root/a.txt", "a");
	temp_write(&temp, "root/-b.txt", "b");
}

static void
setup(void)
{
	make_params();
	make_tree();
	exec_line_init(&line);
	buf_init(&why, 8192);
}

static void
teardown(void)
{
	exec_line_fini(&line);
	buf_fini(&why);
	argspec_free(params);
	temp_remove(&temp);
}

/* Words of a template: ?word is optional, *word is one for each, else plain. */
static enum mv_err
make(const char *const *words, const char *input, const char *arguments)
{
	struct exec_arg args[WORDS_MAX];
	struct exec_param rules[] = {
	    {.name = (char[]){"loose"}, .may_dash = true},
	    {.name = (char[]){"files"}, .root = root},
	    {.name = (char[]){"file"}, .root = root},
	};
	struct exec_tool t = {.params = params, .rules = rules, .n_rules = 3};
	struct jtext j = {arguments, arguments ? strlen(arguments) : 0};
	enum mv_err err;

	for (size_t i = 0; words[i] != NULL; i++) {
		const char *w = words[i];
		enum exec_arg_kind kind = *w == '?'   ? EXEC_ARG_OPTIONAL
					  : *w == '*' ? EXEC_ARG_EACH
						      : EXEC_ARG_PLAIN;

		args[t.n_args++] = (struct exec_arg){
		    kind, mem_xstrdup(kind != EXEC_ARG_PLAIN ? w + 1 : w)};
	}
	t.args = args;
	t.input = input != NULL ? mem_xstrdup(input) : NULL;
	err = exec_line_make(&line, &t, j, &why);
	for (size_t i = 0; i < t.n_args; i++)
		mem_free(args[i].text);
	mem_free(t.input);
	return err;
}

static const struct {
	const char *words[WORDS_MAX];
	const char *arguments;
	const char *want[WORDS_MAX];
} good[] = {
    /* Nothing of a value is syntax. */
    {{"{text}"}, "{\"text\":\"; rm -rf /\"}", {"; rm -rf /"}},
    {{"{text}"}, "{\"text\":\"$(id) `id` ${HOME}\"}", {"$(id) `id` ${HOME}"}},
    {{"{text}"}, "{\"text\":\"'\\\" * ? ~ | & < >\"}", {"'\" * ? ~ | & < >"}},
    {{"{text}"}, "{\"text\":\"a\\nb\\tc\"}", {"a\nb\tc"}},
    {{"{text}"}, "{\"text\":\"\"}", {""}},
    {{"{text}"}, "{\"text\":\"\\u00e4\\ud83d\\ude00\"}", {"\xc3\xa4\xf0\x9f\x98\x80"}},
    {{"x={text}"}, "{\"text\":\"a b\"}", {"x=a b"}},
    {{"{text}{ref}"}, "{\"text\":\"{ref}\",\"ref\":\"{text}\"}", {"{ref}{text}"}},
    {{"--author={author}", "{text}"}, "{\"author\":\"me\",\"text\":\"{author}\"}",
	{"--author=me", "{author}"}},
    {{"{{text}}", "{{}}", "a{{{text}}}b", "%s %n"}, "{\"text\":\"v\"}",
	{"{text}", "{}", "a{v}b", "%s %n"}},
    /* Options. */
    {{"{text}"}, "{\"text\":\"a-b\"}", {"a-b"}},
    {{"--", "{text}"}, "{\"text\":\"--upload-pack=evil\"}", {"--", "--upload-pack=evil"}},
    {{"{loose}", "--"}, "{\"loose\":\"-x\"}", {"-x", "--"}},
    {{"--since={text}"}, "{\"text\":\"--evil\"}", {"--since=--evil"}},
    {{"-C", "{text}"}, "{\"text\":\"x\"}", {"-C", "x"}},
    /* Types. */
    {{"--max-count={limit}"}, "{}", {"--max-count=10"}},
    {{"--max-count={limit}"}, NULL, {"--max-count=10"}},
    {{"--max-count={limit}"}, "{\"limit\":null}", {"--max-count=10"}},
    {{"n={whole}"}, "{\"whole\":-0}", {"n=0"}},
    {{"n={whole}"}, "{\"whole\":5.0}", {"n=5"}},
    {{"n={whole}"}, "{\"whole\":-12345678901234567890}", {"n=-12345678901234567890"}},
    {{"n={ratio}"}, "{\"ratio\":1.50e3}", {"n=1.50e3"}},
    {{"{flag}"}, "{\"flag\":false}", {"false"}},
    {{"{any}"}, "{\"any\":{\"a\": [1, \"x y\"] ,\n\"b\":null}}",
	{"{\"a\":[1,\"x y\"],\"b\":null}"}},
    {{"{any}"}, "{\"any\":\"\\u0000 \\\" {text}\"}", {"\"\\u0000 \\\" {text}\""}},
    /* Words that are there, or not. */
    {{"a", "?--author={author}", "b"}, "{}", {"a", "b"}},
    {{"a", "?--author={author}", "b"}, "{\"author\":null}", {"a", "b"}},
    {{"?--author={author}"}, "{\"author\":\"x\"}", {"--author=x"}},
    {{"?--author={author}"}, "{\"author\":\"\"}", {"--author="}},
    {{"?{author}/{text}"}, "{\"author\":\"x\"}", {NULL}},
    {{"?{limit}"}, "{}", {"10"}},
    {{"*{paths}", "z"}, "{\"paths\":[]}", {"z"}},
    {{"*{paths}", "z"}, "{}", {"z"}},
    {{"*{paths}"}, "{\"paths\":[\"a\",\"b c\",\"*\"]}", {"a", "b c", "*"}},
    {{"--", "*{paths}"}, "{\"paths\":[\"-a\",\"--\",\"-b\"]}", {"--", "-a", "--", "-b"}},
};

static void
assert_line(const char *const *want)
{
	const char **argv = exec_line_argv(&line, "/bin/x");
	size_t n = 0;

	ck_assert_str_eq(argv[0], "/bin/x");
	for (; want[n] != NULL; n++)
		ck_assert_str_eq(argv[n + 1], want[n]);
	ck_assert_uint_eq(line.n_words, n);
	ck_assert_ptr_null(argv[n + 1]);
	mem_free(argv);
}

START_TEST(values_become_words)
{
	ck_assert_int_eq(make(good[_i].words, NULL, good[_i].arguments), MV_OK);
	ck_assert_uint_eq(why.len, 0);
	assert_line(good[_i].want);
	ck_assert_int_eq(line.input_to, RUN_INPUT_NONE);
}
END_TEST

static const struct {
	const char *words[WORDS_MAX];
	const char *arguments;
	const char *says[3]; /* all of it */
} bad[] = {
    {{"{text}", "--"}, "{\"text\":\"--upload-pack=evil\"}",
	{"'text'", "dash", "--upload-pack=evil"}},
    {{"{text}"}, "{\"text\":\"-x\"}", {"'text'", "dash"}},
    {{"{text}.txt"}, "{\"text\":\"-x\"}", {"'text'", "dash"}},
    {{"{author}{text}"}, "{\"author\":\"\",\"text\":\"-x\"}", {"'text'", "dash"}},
    {{"?{text}"}, "{\"text\":\"-x\"}", {"'text'", "dash"}},
    {{"*{paths}", "--"}, "{\"paths\":[\"a\",\"-x\"]}", {"'paths'", "dash", "-x"}},
    {{"{whole}"}, "{\"whole\":-5}", {"'whole'", "dash", "-5"}},
    {{"{text}", "--"}, "{\"text\":\"--\"}", {"'text'", "dash"}},
    {{"--max-count={limit}"}, "{\"limit\":-5}", {"'limit'", "1", "-5"}},
    {{"{text}"}, "{\"text\":\"a\\u0000b\"}", {"'text'", "control"}},
    {{"{text}"}, "{\"text\":\"a\\u001b[2J\"}", {"'text'", "control"}},
    {{"{text}"}, "{\"text\":\"a\\rb\"}", {"'text'", "control"}},
    {{"*{paths}"}, "{\"paths\":[\"\\u0000\"]}", {"'paths'", "control"}},
    {{"{text}"}, "{\"text\":\"x\",\"more\":1}", {"more"}},
    {{"{text}"}, "{\"text\":7}", {"'text'", "string"}},
    {{"*{paths}"}, "{\"paths\":\"a\"}", {"'paths'", "array"}},
    {{"{text}"}, "{\"text\":\"a\",\"text\":\"b\"}", {"text"}},
};

START_TEST(what_is_refused_says_why)
{
	ck_assert_int_eq(make(bad[_i].words, NULL, bad[_i].arguments), MV_PARAMS);
	for (size_t i = 0; i < 3 && bad[_i].says[i] != NULL; i++)
		ck_assert_msg(strstr(buf_cstr(&why), bad[_i].says[i]) != NULL,
		    "%s lacks %s", why.data, bad[_i].says[i]);
	ck_assert_ptr_nonnull(strstr(why.data, "Retrying unchanged will fail."));
	ck_assert_ptr_null(memchr(why.data, '\x1b', why.len));
}
END_TEST

START_TEST(secrets_are_not_shown)
{
	static const char *const words[] = {"{pin}", NULL};

	ck_assert_int_eq(make(words, NULL, "{\"pin\":\"-1234\"}"), MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "'pin'"));
	ck_assert_ptr_null(strstr(why.data, "1234"));
}
END_TEST

START_TEST(a_required_one_is_missed)
{
	static const char *const words[] = {"{text}", NULL};

	params->members[2]->is_required = true;
	ck_assert_str_eq(params->members[2]->name, "text");
	ck_assert_int_eq(make(words, NULL, "{}"), MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "'text'"));
}
END_TEST

/* ---- paths ---- */

/* What was found takes the place of what was given, and begins with no dash. */
START_TEST(paths_are_those_that_were_found)
{
	static const char *const words[] = {"{file}", "*{files}", NULL};
	char want[2][PATH_MAX + 16], real[PATH_MAX];
	const char *found[] = {want[0], want[1], NULL};

	ck_assert_ptr_nonnull(realpath(root, real));
	snprintf(want[0], sizeof(want[0]), "%s/a.txt", real);
	snprintf(want[1], sizeof(want[1]), "%s/-b.txt", real);
	ck_assert_int_eq(
	    make(words, NULL, "{\"file\":\"./a.txt\",\"files\":[\"-b.txt\"]}"), MV_OK);
	assert_line(found);
}
END_TEST

START_TEST(paths_that_leave_are_refused)
{
	static const char *const words[] = {"{file}", "*{files}", NULL};

	ck_assert_int_eq(
	    make(words, NULL, "{\"file\":\"a.txt\",\"files\":[\"a.txt\",\"../x\"]}"),
	    MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "'files'"));
	ck_assert_ptr_nonnull(strstr(why.data, "../x"));
	ck_assert_ptr_null(strstr(why.data, root));
}
END_TEST

/* ---- sizes ---- */

static char *
long_arguments(const char *name, size_t n)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"%s\":\"", name);
	for (size_t i = 0; i < n; i++)
		buf_add_char(&b, 'x');
	buf_add_str(&b, "\"}");
	return buf_take(&b, NULL);
}

START_TEST(a_word_has_a_bound)
{
	static const char *const words[] = {"{text}", NULL}, *const more[] = {
								 "y{text}", NULL};
	char *fits = long_arguments("text", EXEC_WORD_MAX);
	char *over = long_arguments("text", EXEC_WORD_MAX + 1);

	ck_assert_int_eq(make(words, NULL, fits), MV_OK);
	ck_assert_uint_eq(line.words.len, EXEC_WORD_MAX + 1);
	exec_line_fini(&line);
	ck_assert_int_eq(make(words, NULL, over), MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "stdin"));
	ck_assert_ptr_nonnull(strstr(why.data, "'text'"));
	ck_assert_uint_lt(why.len, 400);
	buf_reset(&why);
	exec_line_fini(&line);
	ck_assert_int_eq(make(more, NULL, fits), MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "stdin"));
	mem_free(fits);
	mem_free(over);
}
END_TEST

START_TEST(all_words_have_a_bound)
{
	static const char *const words[] = {"*{paths}", NULL};
	size_t most = (size_t)sysconf(_SC_ARG_MAX) / 2, n = most / 101 + 2;
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"paths\":[");
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%s\"%0100u\"", i > 0 ? "," : "", (unsigned)i);
	buf_add_str(&b, "]}");
	ck_assert_int_eq(make(words, NULL, buf_cstr(&b)), MV_PARAMS);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "stdin"));
	buf_fini(&b);
}
END_TEST

/* ---- input ---- */

static const struct {
	const char *input, *arguments, *want;
} inputs[] = {
    {"json", "{\"text\": \"a\\nb\" }", "{\"text\": \"a\\nb\" }"},
    {"json", NULL, "{}"},
    {"{text}", "{\"text\":\"a\\nb\"}", "a\nb"},
    {"{text}", "{\"text\":\"-x\"}", "-x"},
    {"{text}", "{}", ""},
    {"{limit}", "{}", "10"},
};

START_TEST(input_is_what_was_asked_for)
{
	static const char *const none[] = {NULL};

	ck_assert_int_eq(make(none, inputs[_i].input, inputs[_i].arguments), MV_OK);
	ck_assert_int_eq(line.input_to, RUN_INPUT_STDIN);
	ck_assert_uint_eq(line.input.n, strlen(inputs[_i].want));
	ck_assert_mem_eq(line.input.p ? line.input.p : "", inputs[_i].want, line.input.n);
}
END_TEST

START_TEST(input_may_be_long)
{
	static const char *const none[] = {NULL};
	char *arguments = long_arguments("text", 10 * EXEC_WORD_MAX);

	ck_assert_int_eq(make(none, "{text}", arguments), MV_OK);
	ck_assert_uint_eq(line.input.n, 10 * EXEC_WORD_MAX);
	mem_free(arguments);
}
END_TEST

START_TEST(a_tool_may_take_nothing)
{
	struct exec_tool t = {.params = NULL};
	struct jtext none = {NULL, 0}, empty = {"{}", 2}, some = {"{\"a\":1}", 7};

	ck_assert_int_eq(exec_line_make(&line, &t, none, &why), MV_OK);
	ck_assert_int_eq(exec_line_make(&line, &t, empty, &why), MV_OK);
	ck_assert_uint_eq(line.n_words, 0);
	ck_assert_int_eq(exec_line_make(&line, &t, some, &why), MV_PARAMS);
}
END_TEST

/* Each allocation that may fail does: what comes is the line, or none. */
START_TEST(memory_may_be_short)
{
	static const char *const words[] = {
	    "x={text}", "?{limit}", "--", "*{paths}", "{file}", NULL};
	static const char arguments[] =
	    "{\"text\":\"\\u0061\",\"paths\":[\"a\",\"b\"],\"file\":\"a.txt\"}";
	enum mv_err err = MV_NOMEM;
	unsigned long n;

	for (n = 1; err != MV_OK; n++) {
		exec_line_fini(&line);
		mem_fail_at(n, 0);
		err = make(words, "{text}", arguments);
		mem_fail_at(0, 0);
		ck_assert(err == MV_OK || err == MV_NOMEM || err == MV_PARAMS);
		ck_assert_uint_lt(n, 200);
		buf_reset(&why);
	}
	ck_assert_uint_gt(n, 3);
	ck_assert_uint_eq(line.n_words, 6);
}
END_TEST

#define ROWS(t) (int)(sizeof(t) / sizeof((t)[0]))

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("exec_args");

	tcase_add_loop_test(tc, values_become_words, 0, ROWS(good));
	tcase_add_loop_test(tc, what_is_refused_says_why, 0, ROWS(bad));
	tcase_add_test(tc, secrets_are_not_shown);
	tcase_add_test(tc, a_required_one_is_missed);
	tcase_add_test(tc, paths_are_those_that_were_found);
	tcase_add_test(tc, paths_that_leave_are_refused);
	tcase_add_test(tc, a_word_has_a_bound);
	tcase_add_test(tc, all_words_have_a_bound);
	tcase_add_loop_test(tc, input_is_what_was_asked_for, 0, ROWS(inputs));
	tcase_add_test(tc, input_may_be_long);
	tcase_add_test(tc, a_tool_may_take_nothing);
	tcase_add_test(tc, memory_may_be_short);
	return run_suite(suite_create("exec_args"), tc);
}
