/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Tools that are programs in a conf: arguments, parameters, what does not go together. */
#include "conf_rig.h"

#include "temp_rig.h"

#define TOOL                                                                             \
	"upstream : { a : { kind = \"exec\"; tool = ( { tool = \"t\"; command = "        \
	"\"/bin/ls\"\n"
#define END " } ) } }"
#define PARAMS                                                                           \
	"params : { s : { required = true }; o : { }\n l : { type = \"array\" } }\n"
#define ON ": upstream.a.tool.0: "
#define AT ": upstream.a.tool.0."

static const struct {
	const char *text, *words;
} bad[] = {
    {"upstream : { a : { kind = \"exec\"\n tool = ( { tool = \"t\" } ) } }",
	"m.conf:2" ON "command is missing"},
    {"upstream : { a : { kind = \"exec\"; tool = ( {\n tool = \"t;id\"; command = "
     "\"/bin/ls\" } ) } }",
	"m.conf:2" ON "tool: may have letters, digits"},
    {"upstream : { a : { kind = \"exec\"; tool = ( {\n tool = \"t\"; command = \"ls\" "
     "} ) } }",
	"m.conf:2" AT "command: is no absolute path"},
    {"upstream : { a : { kind = \"exec\"; tool = ( { tool = \"t\"; command = "
     "\"/no/such\" } ) } }",
	"command: No such file or directory"},
    {"upstream : { a : { kind = \"exec\"; tool = ( { tool = \"t\"; command = "
     "\"/bin/ls\" } )\n tools : { rename : {\n x = \"y\" } } } }",
	"m.conf:3: upstream.a: tools.rename: there is no tool x"},
    /* Placeholders. */
    {TOOL PARAMS "args = [\"-a\",\n \"{nobody}\"]" END,
	"m.conf:5" AT "args.1: {nobody}: there is no such parameter"},
    {TOOL "args = [\"{nobody}\"]" END, "args.0: {nobody}: there is no such parameter"},
    {TOOL PARAMS "args = [\"--o={o}\"]" END,
	"m.conf:4" AT "args.0: {o}: a call may have no value for it"},
    {TOOL PARAMS "args = ( { each = \"{s}\" } )" END,
	"m.conf:4" AT "args.0: {s}: each is for an array"},
    {TOOL PARAMS "args = [\"{l}\"]" END, "args.0: {l}: of an array each element is"},
    {TOOL PARAMS "args = ( { optional = \"{l}\" } )" END, "{l}: of an array each"},
    {TOOL PARAMS "args = ( { each = \"-x{l}\" } )" END, "each wants \"{name}\" and"},
    {TOOL PARAMS "args = ( { each = \"x\" } )" END, "each wants \"{name}\" and nothing"},
    {TOOL PARAMS "args = ( { optional = \"x\" } )" END, "there is no {name} on which"},
    {TOOL PARAMS "args = [\"{s\"]" END, "m.conf:4" AT "args.0: a brace has no partner"},
    {TOOL PARAMS "args = [\"s}\"]" END, "args.0: a brace has no partner"},
    {TOOL PARAMS "args = [\"{}\"]" END, "args.0: a brace has no partner"},
    {TOOL PARAMS "args = [\"{{{s}\", \"{{s}\"]" END, "args.1: a brace has no partner"},
    {TOOL PARAMS "args = [\"{s{s}}\"]" END, "args.0: a brace has no partner"},
    {TOOL "args = ( 1 )" END, "args.0: want a string, { optional = \"...\" } or { each"},
    {TOOL "args = ( { } )" END, "args.0: want a string, { optional = "},
    {TOOL "args = ( { any = \"x\" } )" END, "args.0: want a string, { optional = "},
    {TOOL "args = ( { each = 1 } )" END, "args.0: want a string, { optional = "},
    {TOOL "args = ( { each = \"a\"; optional = \"b\" } )" END, "args.0: want a string"},
    {TOOL "args = \"x\"" END, "args: want a list of strings, "},
    /* Standard input. */
    {TOOL PARAMS "stdin = \"all\"" END,
	"m.conf:4" AT "stdin: is none of \"none\", \"json\", \"{name}\""},
    {TOOL PARAMS "stdin = \"{s}{o}\"" END, "stdin: is none of"},
    {TOOL PARAMS "stdin = \"{}\"" END, "stdin: is none of"},
    {TOOL PARAMS "stdin = \"{l}\"" END, "stdin: {l}: is no string"},
    {TOOL PARAMS "stdin = \"{x}\"" END, "stdin: {x}: there is no such parameter"},
    /* Output. */
    {TOOL "output = \"base64\"" END, "m.conf:2" ON "output: base64 wants a mime"},
    {TOOL "mime = \"image/png\"" END, "m.conf:2" ON "mime: is for output = \"base64\""},
    {TOOL "output = \"base64\"; mime = \"text/plain\"" END, "mime: begins with neither"},
    {TOOL "output = \"base64\"; mime = \"image/\"" END, "mime: is no media type"},
    {TOOL "output = \"base64\"; mime = \"image/a b\"" END, "mime: is no media type"},
    {TOOL "success_exit = [0,\n 256]" END,
	"m.conf:3" AT "success_exit.1: 256 is not from 0 to 255"},
    {TOOL "success_exit = []" END, "success_exit: want an array of whole numbers"},
    {TOOL "success_exit = 1" END, "success_exit: want an array of whole numbers"},
    {TOOL "success_exit = [\"1\"]" END, "success_exit.0: want a whole number"},
    {TOOL "timeout_ms = 0" END, "timeout_ms: 0 is not from 1 to"},
    {TOOL "stderr = \"\"" END, "is none of \"drop\", \"log\", \"on_error\", \"merge\""},
    /* Parameters. */
    {TOOL "params : { p = 1 }" END, "m.conf:2" AT "params.p: want a group"},
    {TOOL "params : { p : {\n typ = \"string\" } }" END,
	"m.conf:3" AT "params.p.typ: unknown setting; is \"type\" meant?"},
    {TOOL "params : { p : { type = \"text\" } }" END, "params.p.type: is none of"},
    {TOOL "params : { p : { type = \"object\" } }" END, "params.p.type: is none of"},
    {TOOL "params : { p : {\n min = 1 } }" END,
	"m.conf:3" AT "params.p: min: is an option of type integer or number"},
    {TOOL "params : { p : { type = \"boolean\"; max = 1 } }" END, "p: max: is an option"},
    {TOOL "params : { p : { type = \"integer\"; min_length = 1 } }" END, "min_length: "},
    {TOOL "params : { p : { type = \"integer\"; max_length = 1 } }" END, "max_length: "},
    {TOOL "params : { p : { type = \"number\"; pattern = \"1\" } }" END, "pattern: is "},
    {TOOL "params : { p : { type = \"json\"; enum = [\"1\"] } }" END, "enum: is an opt"},
    {TOOL "params : { p : { type = \"json\"; path = \"/\" } }" END, "path: is an option"},
    {TOOL "params : { p : { max_items = 1 } }" END, "max_items: is an option of type ar"},
    {TOOL "params : { p : { type = \"integer\"\n min = 2; max = 1 } }" END,
	"m.conf:3" AT "params.p: min: is above max"},
    {TOOL "params : { p : {\n min_length = 2; max_length = 1 } }" END,
	"m.conf:3" AT "params.p: min_length: is above max_length"},
    {TOOL "params : { p : { pattern = \"(\" } }" END, "m.conf:2" AT "params.p.pattern: "},
    {TOOL "params : { p : { enum = [] } }" END, "params.p.enum: is empty"},
    {TOOL "params : { p : { enum = [\"\"] } }" END, "params.p.enum.0: is empty"},
    {TOOL "params : { p : { type = \"integer\"; max = 3\n default = 4 } }" END,
	"m.conf:3" AT "params.p: default: is not what the parameter may be"},
    {TOOL "params : { p : { type = \"integer\"; default = \"x\" } }" END, "default: is "},
    {TOOL "params : { p : { type = \"array\"; default = [1] } }" END, "default: is not"},
    {TOOL "params : { p : { enum = [\"a\"]; default = \"b\" } }" END, "default: is not"},
    /* A default that no call could be made with. */
    {TOOL "params : { p : { default = \"-a\" } }\n args = [\"x\", \"{p}\"]" END,
	"m.conf:3" AT "args.1: {p}: its default begins with a dash"},
    {TOOL "params : { p : { default = \"-a\" } }; args = [\"{p}=1\", \"--\"]" END,
	"args.0: {p}: its default begins"},
    {TOOL "params : { p : { type = \"integer\"; default = -1 } }\n"
	  "args = ( { optional = \"{p}\" } )" END,
	"args.0: {p}: its default begins"},
    {TOOL "params : { l : { type = \"array\"; default = [\"a\", \"-b\"] } }\n"
	  "args = ( { each = \"{l}\" } )" END,
	"args.0: {l}: its default begins"},
    {TOOL "params : { p* : { } }" END, "params.p*: the name is longer than 64"},
    {TOOL "params : { }\n input_schema = \"none.json\"" END,
	"m.conf:3" AT "input_schema: No such file"},
};

START_TEST(test_bad)
{
	rig_bad(bad[_i].text, bad[_i].words);
}
END_TEST

/* It does not stand there as a word of its own, or may. */
static const char *const dashed[] = {
    TOOL "params : { p : { default = \"-a\" } }; args = [\"--\", \"{p}\"]" END,
    TOOL "params : { p : { default = \"-a\" } }; args = [\"--p={p}\"]" END,
    TOOL "params : { p : { default = \"-a\" } }; stdin = \"{p}\"" END,
    TOOL "params : { p : { default = \"-a\"; dash = true } }; args = [\"{p}\"]" END,
    TOOL "params : { p : { default = \"-a\"; path = \"/\" } }; args = [\"{p}\"]" END,
    TOOL "params : { p : { default = \"a-\" } }; args = [\"{p}\"]" END,
};

START_TEST(test_defaults_with_a_dash)
{
	conf_free(rig_good(dashed[_i]));
}
END_TEST

static const char good[] = TOOL
    "description = \"Lists.\"; read_only = true; open_world = false\n"
    "args = ( \"-C\", \"{{{dir}}}\", { optional = \"--by={by}\" }, \"--max={n}\",\n"
    "	\"--\", { each = \"{more}\" } )\n"
    "params : {\n"
    "	dir : { required = true; path = \"sub\"; description = \"Where.\" }\n"
    "	by : { max_length = 80; pattern = \"[a-z]+\"; secret = true; dash = true }\n"
    "	n : { type = \"integer\"; default = 10; min = 1; max = 100 }\n"
    "	more : { type = \"array\"; max_items = 20; enum = [\"a\", \"b\"]\n"
    "		min_length = 1; path = \"/srv\" }\n"
    "	raw : { type = \"json\"; default : { a = 1 } } }\n"
    "stdin = \"{by}\"; output = \"base64\"; mime = \"image/png\"\n"
    "success_exit = [0, 1]; timeout_ms = \"20s\"; stop_ms = 5; output_max = \"1k\"\n"
    "stderr = \"drop\"; overflow = \"kill\"" END;

START_TEST(test_dump)
{
	struct conf *c = rig_good(good);
	char *dump = rig_dump(c, true);

#define T "upstream.a.tool.t."
	ck_assert_str_eq(dump,
	    "upstream.a.kind = \"exec\"\n" T "tool = \"t\"\n" T
	    "description = \"Lists.\"\n" T "read_only = true\n" T "open_world = false\n" T
	    "command = \"/bin/ls\"\n" T
	    "args = (\"-C\", \"{{{dir}}}\", { optional = \"--by={by}\" }, "
	    "\"--max={n}\", \"--\", { each = \"{more}\" })\n" T
	    "params.dir.description = \"Where.\"\n" T "params.dir.required = true\n" T
	    "params.dir.path = \"/nonexistent/sub\"\n" T "params.by.max_length = 80\n" T
	    "params.by.pattern = \"[a-z]+\"\n" T "params.by.dash = true\n" T
	    "params.by.secret = true\n" T "params.n.type = \"integer\"\n" T
	    "params.n.default = 10\n" T "params.n.min = 1\n" T "params.n.max = 100\n" T
	    "params.more.type = \"array\"\n" T "params.more.min_length = 1\n" T
	    "params.more.enum = [\"a\", \"b\"]\n" T "params.more.max_items = 20\n" T
	    "params.more.path = \"/srv\"\n" T "params.raw.type = \"json\"\n" T
	    "params.raw.default = {\"a\":1}\n" T "stdin = \"{by}\"\n" T
	    "output = \"base64\"\n" T "mime = \"image/png\"\n" T
	    "success_exit = [0, 1]\n" T "timeout_ms = 20000\n" T "stop_ms = 5\n" T
	    "output_max = 1024\n" T "stderr = \"drop\"\n" T "overflow = \"kill\"\n");
	mem_free(dump);
	conf_free(c);
}
END_TEST

START_TEST(test_members)
{
	struct conf *c = rig_good(good);
	const struct tool_shape *s = &c->upstreams[0]->shapes[0];
	const struct exec_tool *t = &s->exec;
	const struct argspec *p;

	ck_assert_int_eq(s->hints.read_only, HINT_YES);
	ck_assert_int_eq(s->hints.open_world, HINT_NO);
	ck_assert_int_eq(s->hints.destructive, HINT_INHERIT);
	ck_assert_str_eq(t->command, "/bin/ls");
	ck_assert_uint_eq(t->n_args, 6);
	ck_assert_int_eq(t->args[2].kind, EXEC_ARG_OPTIONAL);
	ck_assert_str_eq(t->args[2].text, "--by={by}");
	ck_assert_int_eq(t->args[5].kind, EXEC_ARG_EACH);
	ck_assert_int_eq(t->params->type, ARG_OBJECT);
	ck_assert(!t->params->is_open);
	ck_assert_uint_eq(t->params->n_members, 5);
	p = argspec_member(t->params, "by");
	ck_assert(p->must_be_plain && p->is_secret && !p->is_required);
	ck_assert_uint_eq(p->max_length, 80);
	ck_assert_str_eq(pattern_text(p->pattern), "[a-z]+");
	p = argspec_member(t->params, "n");
	ck_assert_int_eq(p->type, ARG_INTEGER);
	ck_assert_str_eq(p->max_text, "100");
	ck_assert(p->min < 1.5 && p->max > 99.5);
	ck_assert_str_eq(p->dflt, "10");
	p = argspec_member(t->params, "more");
	ck_assert_ptr_null(p->values);
	ck_assert_uint_eq(p->max_items, 20);
	ck_assert(p->items->must_be_plain);
	ck_assert_uint_eq(p->items->n_values, 2);
	ck_assert_uint_eq(p->items->n_shown, 2);
	p = argspec_member(t->params, "raw");
	ck_assert_int_eq(p->type, ARG_ANY);
	ck_assert(!p->must_be_plain);
	ck_assert_uint_eq(t->n_rules, 3);
	ck_assert_str_eq(t->rules[0].name, "dir");
	ck_assert_str_eq(t->rules[0].root, "/nonexistent/sub");
	ck_assert(t->rules[1].may_dash && !t->rules[1].root);
	ck_assert_int_eq(t->success[1], 1);
	conf_free(c);
}
END_TEST

/* A conf text with a folder in place of its @. */
static struct conf *
parse_in(const char *dir, const char *fmt, struct conf_errors *e)
{
	const char *at = strchr(fmt, '@');
	char text[1024];

	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - fmt), fmt, dir, at + 1);
	return rig_parse(text, e);
}

static void
bad_in(const char *dir, const char *fmt, const char *words)
{
	struct conf_errors e;

	ck_assert_ptr_null(parse_in(dir, fmt, &e));
	ck_assert_msg(e.n > 0 && strstr(e.v[0], words), "%s", e.n ? e.v[0] : fmt);
	conf_errors_free(&e);
}

START_TEST(test_input_schema)
{
	const char *dir;
	struct temp tmp;
	static const char fmt[] = TOOL "input_schema = \"@/s.json\"\n"
				       "args = [\"{q}\"]" END;
	struct conf_errors e;
	const struct exec_tool *t;
	struct conf *c;
	char *dump, line[512];

	temp_make(&tmp);
	dir = tmp.dir;
	rig_write(dir, "s.json",
	    " {\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"}},"
	    "\"required\":[\"q\"]}\n");
	c = parse_in(dir, fmt, &e);
	ck_assert_msg(c != NULL, "%s", e.n ? e.v[0] : "");
	t = &c->upstreams[0]->shapes[0].exec;
	ck_assert(argspec_member(t->params, "q")->must_be_plain);
	dump = rig_dump(c, true);
	snprintf(line, sizeof(line), T "input_schema = \"%s/s.json\"", dir);
	ck_assert_msg(rig_has_line(dump, line), "%s", dump);
	ck_assert_ptr_null(strstr(dump, "params"));
	mem_free(dump);
	conf_free(c);
	bad_in(dir, TOOL "input_schema = \"@/s.json\"; params : { }" END,
	    ON "input_schema: there are params as well");
	bad_in(dir, TOOL "params : { }; input_schema = \"@/s.json\"" END,
	    ON "input_schema: there are params as well");
	rig_write(dir, "s.json", "{\"type\":\"object\",\"oneOf\":[]}");
	bad_in(dir, fmt, "m.conf:2" AT "input_schema: ");
	rig_write(dir, "s.json", "{\"type\":\"string\"}");
	bad_in(dir, fmt, "input_schema: the file is no schema of an object");
	rig_write(dir, "s.json", "[]");
	bad_in(dir, fmt, "input_schema: the file is no JSON object");
	rig_write(dir, "s.json", "{");
	bad_in(dir, fmt, "input_schema: the file is no JSON object: ");
	temp_remove(&tmp);
}
END_TEST

START_TEST(test_programs)
{
	static const char fmt[] = "upstream : { a : { kind = \"exec\"\n tool = ( { tool "
				  "= \"t\"\n command = \"@/p\" } ) } }";
	const char *dir;
	struct temp tmp;
	struct conf_errors e;
	char path[512];

	temp_make(&tmp);
	dir = tmp.dir;
	snprintf(path, sizeof(path), "%s/p", dir);
	rig_write(dir, "p", "#!/bin/sh\n");
	ck_assert_int_eq(chmod(path, 0600), 0);
	bad_in(dir, fmt, "m.conf:3" AT "command: is not executable");
	ck_assert_int_eq(chmod(path, 0757), 0);
	bad_in(dir, fmt, "command: is a program that everybody may write to");
	ck_assert_int_eq(chmod(path, 0755), 0);
	conf_free(parse_in(dir, fmt, &e));
	ck_assert_uint_eq(e.n, 0);
	temp_remove(&tmp);
}
END_TEST

/* What a default, a pattern or an argument is stays out of errors. */
START_TEST(test_errors_show_nothing)
{
	static const char *const texts[] = {
	    TOOL "params : { p : { enum = [\"a\"]; default = \"" RIG_MARK "\" } }" END,
	    TOOL "args = [\"{" RIG_MARK "\"]" END,
	    TOOL "stdin = \"" RIG_MARK "\"" END,
	    "upstream : { a : { kind = \"exec\"; tool = ( { tool = \"t\"; command = "
	    "\"/" RIG_MARK "\" } ) } }",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		rig_bad_unshown(texts[i]);
}
END_TEST

static const struct {
	const char *from, *to, *diff;
} diffs[] = {
    {TOOL "args = [\"a\"]" END, TOOL "args = [\"b\"]" END,
	"~ " T "args: (\"a\") -> (\"b\") (restarts it)\n"},
    {TOOL "params : { p : { } }" END, TOOL "params : { p : { }; q : { } }" END,
	"+ " T "params.q\n"},
    {TOOL "params : { p : { } }" END, TOOL "params : { p : { required = true } }" END,
	"~ " T "params.p.required: false -> true (restarts it)\n"},
    {TOOL "graphql = \"off\"" END, TOOL "" END, "~ " T "graphql: \"off\" -> (none)\n"},
};

START_TEST(test_diff)
{
	struct conf *from = rig_good(diffs[_i].from), *to = rig_good(diffs[_i].to);
	struct buf out;

	buf_init(&out, 65536);
	conf_diff(from, to, &out);
	ck_assert_str_eq(buf_cstr(&out), diffs[_i].diff);
	ck_assert(upstream_conf_is_same_process(from->upstreams[0], to->upstreams[0]) ==
		  (_i == 3));
	buf_fini(&out);
	conf_free(from);
	conf_free(to);
}
END_TEST

START_TEST(test_no_memory)
{
	rig_no_memory(good, 200);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("conf_tools");

	tcase_add_loop_test(tc, test_bad, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_loop_test(
	    tc, test_defaults_with_a_dash, 0, (int)(sizeof(dashed) / sizeof(*dashed)));
	tcase_add_test(tc, test_dump);
	tcase_add_test(tc, test_members);
	tcase_add_test(tc, test_input_schema);
	tcase_add_test(tc, test_programs);
	tcase_add_test(tc, test_errors_show_nothing);
	tcase_add_loop_test(tc, test_diff, 0, sizeof(diffs) / sizeof(*diffs));
	tcase_add_test(tc, test_no_memory);
	return rig_run("conf_tools", tc);
}
