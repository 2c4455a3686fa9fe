/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* What definitions of tools decide, what is said of errors, bounds and options. */
#include "label_names.h"

#include "label_priv.h"

#include "mcpvisor/mem.h"

#include "fake/fake_tree.h"

static struct rig rig;

static void
setup(void)
{
	rig_init(&rig);
	rig_set(&rig, "auto", PLAIN);
}

static void
teardown(void)
{
	rig_fini(&rig);
}

/* ---- schemas ---- */

/* Whether the warning may go into structuredContent. */
static const struct {
	const char *schema, *result;
	bool is_open;
} schemas[] = {
    {"true", "B:$P", true},
    {"{}", "B:$P", true},
    {"{'type':'object'}", "B:$P", true},
    {"{'properties':{'_warning':{'type':'string','title':'w'}}}", "B:$P", true},
    {"{'properties':{'_warning':true},'required':['data'],'$defs':{'a':{'not':{}}}}",
	"B:$P", true},
    {"{'additionalProperties':{ },'unevaluatedProperties':true}", "B:$P", true},
    {"false", "B:$P", false},
    {"null", "B:$P", false},
    {"{'type':['object','null']}", "B:$P", false},
    {"{'additionalProperties':false}", "B:$P", false},
    {"{'additionalProperties':{'type':'string'}}", "B:$P", false},
    {"{'unevaluatedProperties':false}", "B:$P", false},
    {"{'additionalProperties':true,'additionalProperties':false}", "B:$P", false},
    {"{'patternProperties':{}}", "B:$P", false},
    {"{'propertyNames':{}}", "B:$P", false},
    {"{'maxProperties':9}", "B:$P", false},
    {"{'allOf':[]}", "B:$P", false},
    {"{'anyOf':[]}", "B:$P", false},
    {"{'oneOf':[]}", "B:$P", false},
    {"{'not':{}}", "B:$P", false},
    {"{'if':{}}", "B:$P", false},
    {"{'const':{}}", "B:$P", false},
    {"{'enum':[]}", "B:$P", false},
    {"{'$dynamicRef':'#a'}", "B:$P", false},
    {"{'dependentSchemas':{}}", "B:$P", false},
    {"{'\\u0024ref':'#a'}", "B:$P", false},
    {"{'properties':{'_warning':{'type':'null'}}}", "B:$P", false},
    {"{'properties':{'_warning':false}}", "B:$P", false},
    {"{'properties':{'_warning':{'minLength':999}}}", "B:$P", false},
    {"{'properties':{},'properties':{'_warning':false}}", "B:$P", false},
    {"{'type':'object'},'outputSchema':false", "B:$P", false},
    /* Inside of "result". */
    {"{'properties':{'result':{}},'additionalProperties':false}", "S:{'result':$P}",
	true},
    {"{'type':'object'}", "S:{'result':$P}", true},
    {"{'additionalProperties':false}", "S:{'result':$P}", false},
    {"{'properties':{'result':{'additionalProperties':false}}}", "S:{'result':$P}",
	false},
    {"{'allOf':[],'properties':{'result':{}}}", "S:{'result':$P}", false},
    {"{'properties':{'result':{'type':'string'}}}", "S:{'result':'@$P@'}", true},
    {"{'properties':{'result':{}}}", "S:{'result':'@$P@'}", true},
    {"{'properties':{'result':{'type':'string','pattern':'x'}}}", "S:{'result':'@$P@'}",
	false},
    {"{'properties':{'result':{'format':'json'}}}", "S:{'result':'@$P@'}", false},
    {"{'properties':{'result':{'enum':[]}}}", "S:{'result':'@$P@'}", false},
};

START_TEST(schema_decides_the_place)
{
	struct buf tool;
	bool is_inside = false;
	char name[16];

	buf_init(&tool, CAP_MESSAGE_BYTES);
	buf_addf(&tool, "{'outputSchema':%s}", schemas[_i].schema);
	rig_set(&rig, "on", buf_cstr(&tool));
	rig_label(&rig, schemas[_i].result);
	ck_assert_int_eq(rig.l.reason, LABEL_PARTIAL);
	for (unsigned i = 0; i < rig.l.edits.n; i++) {
		rig_name(&rig, &rig.l.edits.e[i], name);
		is_inside = is_inside || strncmp(name, "sc", 2) == 0;
	}
	ck_assert_msg(is_inside == schemas[_i].is_open, "%s", schemas[_i].schema);
	buf_fini(&tool);
}
END_TEST

/* What proves that a tool answers GraphQL, and what speaks against it. */
static const struct {
	const char *tool, *alone, *beside; /* reasons: errors alone, and beside null */
} tools[] = {
    {PLAIN, "suspect", "error"},
    {NOCAT, "suspect", "suspect"},
    {EXEC, "error", "error"},
    {OPEN, "error", "error"},
    {OUTPUT("{'properties':{'errors':{}}}"), "suspect", "error"},
    {INPUT_OF("'variables':{},'document':{'type':'string'}"), "error", "error"},
    {INPUT_OF("'variables':{},'document':{}"), "suspect", "error"},
    {INPUT_OF("'query':{'type':'string'}"), "suspect", "error"},
    {INPUT("File-Paths"), "suspect", "suspect"},
    {INPUT("URL"), "suspect", "suspect"},
    {INPUT("command_line"), "suspect", "suspect"},
    {INPUT("s_q_l"), "suspect", "suspect"},
    {INPUT("pathology"), "suspect", "error"},
    {INPUT("a_name_that_is_rather_long_path"), "suspect", "error"},
    {"{'inputSchema':7,'outputSchema':[]}", "suspect", "error"},
    {"7", "suspect", "error"},
};

START_TEST(tool_decides_what_it_is)
{
	rig_set(&rig, "auto", tools[_i].tool);
	rig_label(&rig, "T:{'errors':[$E]}");
	ck_assert_str_eq(label_reason_text(rig.l.reason), tools[_i].alone);
	rig_label(&rig, "T:$N");
	ck_assert_str_eq(label_reason_text(rig.l.reason), tools[_i].beside);
}
END_TEST

/* ---- what is said of errors ---- */

static const struct {
	const char *errors, *code, *path, *words;
} said[] = {
    {"{'message':'m','path':['a',0,'b'],'extensions':{'code':'C'},'type':'T'}", "C",
	"a.0.b", "1 error(s), no data. [1] m at a.0.b (C)"},
    {"{'message':'m','errorType':'T','type':'U'},'n',{'message':7},4", "T", "",
	"4 error(s), no data. [1] m (T) [2] n [3]"},
    {"{'message':'a\\u0000b\\nc\\u007f','type':'U','path':'x'}", "U", "",
	"1 error(s), no data. [1] a b c  (U)"},
    {"{'extensions':{'code':429},'path':[1,2,3,4,5,6,7,8,9,10]}", "429",
	"1.2.3.4.5.6.7.8", "1 error(s), no data. [1] at 1.2.3.4.5.6.7.8 (429)"},
    {"{'message':'a\\u009bb\xc2\x85"
     "c','type':7}",
	"7", "", "[1] a b c (7)"},
    {"{'extensions':[],'errorType':'','type':null,'path':[null,{}]}", "", ".",
	"1 error(s), no data. [1] at ."},
    {"null", "", "", "1 error(s), no data. [1]"},
};

START_TEST(errors_are_told)
{
	struct buf form;

	buf_init(&form, CAP_MESSAGE_BYTES);
	buf_addf(&form, "S:{'errors':[%s]}", said[_i].errors);
	rig_set(&rig, "on", PLAIN);
	rig_label(&rig, buf_cstr(&form));
	rig_assert(&rig, said[_i].errors, "error", "flip errtext meta");
	ck_assert_str_eq(rig.l.code, said[_i].code);
	ck_assert_str_eq(rig.l.path, said[_i].path);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&rig.after), said[_i].words));
	ck_assert(rig.l.is_error);
	buf_fini(&form);
}
END_TEST

/* On a character's boundary. */
START_TEST(long_errors_are_cut)
{
	struct buf form;
	const char *at;

	buf_init(&form, CAP_MESSAGE_BYTES);
	buf_add_str(&form, "S:{'errors':[{'message':'m");
	for (int i = 0; i < 400; i++)
		buf_add_str(&form, i % 2 == 0 ? "\\u20ac" : "\xe2\x82\xac");
	buf_add_str(&form, "','path':['");
	for (int i = 0; i < 200; i++)
		buf_add_str(&form, "\xc3\xa9");
	buf_add_str(&form, "','x'],'type':'$X'}]}");
	rig_set(&rig, "on", PLAIN);
	rig_label(&rig, buf_cstr(&form));
	ck_assert_int_eq(rig.l.reason, LABEL_ERROR);
	ck_assert_uint_eq(strlen(rig.l.code), LABEL_TEXT_BYTES - 1);
	/* An even number of bytes of the first step, and the dot. */
	ck_assert_uint_eq(strlen(rig.l.path), LABEL_TEXT_BYTES - 1);
	at = strstr(buf_cstr(&rig.after), "[1] m");
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq(strcspn(at + 4, " "), 1 + 66 * 3);
	buf_fini(&form);
}
END_TEST

/* ---- bounds ---- */

static void
put_many(unsigned n, const char *block)
{
	buf_reset(&rig.result);
	buf_add_str(&rig.result, "{\"content\":[");
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			buf_add_char(&rig.result, ',');
		rig_expand(&rig.result, block, block + strlen(block));
	}
	buf_add_str(&rig.result, "]}");
}

START_TEST(candidates_have_a_bound)
{
	put_many(CAP_RESULT_CANDIDATES, "{'type':'text','text':'@$P@'}");
	rig_run(&rig);
	ck_assert_int_eq(rig.l.reason, LABEL_PARTIAL);
	ck_assert_uint_eq(rig.l.edits.n, CAP_RESULT_CANDIDATES + 1);
	tree_assert_object(rig.after.data, rig.after.len);
	label_check_all(&rig.o, 1, rig.result.data, rig.result.len);
	put_many(CAP_RESULT_CANDIDATES + 1, "{'type':'text','text':'@$P@'}");
	rig_run(&rig);
	rig_assert(&rig, "one more", "too_large", "");
	/* Prose is none. */
	put_many(1000, "{'type':'text','text':'some errors'}");
	rig_run(&rig);
	rig_assert(&rig, "prose", "none", "");
}
END_TEST

START_TEST(depth_has_a_bound)
{
	struct buf form;

	buf_init(&form, CAP_MESSAGE_BYTES);
	for (int depth = 253; depth < 257; depth++) {
		buf_reset(&form);
		buf_add_str(&form, "B:{'data':{'a':");
		for (int i = 0; i < depth; i++)
			buf_add_char(&form, '[');
		for (int i = 0; i < depth; i++)
			buf_add_char(&form, ']');
		buf_add_str(&form, "},'errors':[$E]}");
		rig_label(&rig, buf_cstr(&form));
		ck_assert_int_eq(
		    rig.l.reason, depth < 255 ? LABEL_PARTIAL : LABEL_UNPARSED);
	}
	buf_fini(&form);
}
END_TEST

START_TEST(bytes_have_a_bound)
{
	size_t n;

	rig_label(&rig, "T:{'data':{'big':'$X'},'errors':[$E]}");
	ck_assert_int_eq(rig.l.reason, LABEL_PARTIAL);
	/* The string with its quotes. */
	n = rig.result.len - strlen("{\"content\":[{\"type\":\"text\",\"text\":}]}");
	rig.o.max_bytes = n;
	rig_run(&rig);
	ck_assert_int_eq(rig.l.reason, LABEL_PARTIAL);
	rig.o.max_bytes = n - 1;
	rig_run(&rig);
	rig_assert(&rig, "over", "too_large", "");
}
END_TEST

/* What is beside a candidate takes time as well. */
START_TEST(results_have_a_bound)
{
	static const char end[] = ",{'type':'text','text':'@$P@'}]}";
	size_t sizes[] = {CAP_RESULT_WALK_BYTES, CAP_RESULT_WALK_BYTES + 1};

	for (size_t i = 0; i < 2; i++) {
		buf_reset(&rig.result);
		rig_expand(&rig.result, end, end + strlen(end));
		size_t n = sizes[i] - rig.result.len;

		buf_reset(&rig.result);
		buf_add_str(&rig.result, "{\"content\":[\"");
		while (rig.result.len < n - 1)
			buf_add_char(&rig.result, 'x');
		buf_add_char(&rig.result, '"');
		rig_expand(&rig.result, end, end + strlen(end));
		ck_assert_uint_eq(rig.result.len, sizes[i]);
		rig_run(&rig);
		rig_assert(&rig, "size", i == 0 ? "partial" : "too_large",
		    i == 0 ? "text1 meta" : "");
	}
	/* Whoever lets candidates be larger, pays for it. */
	rig.o.max_bytes = CAP_RESULT_WALK_BYTES / 2;
	rig_run(&rig);
	rig_assert(&rig, "bound set", "partial", "text1 meta");
	rig.o.max_bytes = CAP_RESULT_WALK_BYTES / 8;
	rig_run(&rig);
	rig_assert(&rig, "bound set low", "too_large", "");
}
END_TEST

/* A definition that takes long to read is none. */
START_TEST(definitions_have_a_bound)
{
	struct label_conf c = {.mode = GRAPHQL_AUTO};
	struct jtext d = {"{}", CAP_DEFINITION_WALK_BYTES};

	label_opts_set(&rig.o, &c, NULL, d);
	ck_assert_uint_eq(rig.o.definition.n, d.n);
	d.n++;
	label_opts_set(&rig.o, &c, NULL, d);
	ck_assert_uint_eq(rig.o.definition.n, 0);
}
END_TEST

/* The word at each place of texts of each length, and what only looks like it. */
START_TEST(word_is_found_anywhere)
{
	static const char *const like[] = {
	    "error.", "Errors", "err.rs", "erross", "e.rors"};

	for (size_t n = 0; n < 150; n++) {
		char *copy = mem_xalloc(n);

		memset(copy, 'r', n);
		ck_assert(!label_has_errors((struct jtext){copy, n}));
		for (size_t at = 0; at + 6 <= n; at++) {
			for (size_t i = 0; i < sizeof(like) / sizeof(like[0]); i++) {
				memcpy(copy + at, like[i], 6);
				ck_assert(!label_has_errors((struct jtext){copy, n}));
			}
			memcpy(copy + at, "errors", 6);
			ck_assert(label_has_errors((struct jtext){copy, n}));
			memset(copy, at % 2 == 0 ? '.' : 's', n);
		}
		mem_free(copy);
	}
}
END_TEST

/* Without memory a result is as it was, whichever allocation fails. */
static const char *const short_of[] = {
    "T:$P", "S:$P", "S:$N", "B:$N", "S:{'result':'@$P@'}"};

START_TEST(no_memory_no_label)
{
	bool is_short = true;

	rig_set(&rig, "auto", CLOSED);
	rig_put_result(&rig.result, short_of[_i]);
	for (unsigned long nth = 1; is_short; nth++) {
		label_check_wrap(&rig.message, rig.result.data, rig.result.len);
		ck_assert_int_eq(
		    json_scan(&rig.json, rig.message.data, rig.message.len, false),
		    MV_OK);
		label_fini(&rig.l);
		label_init(&rig.l);
		mem_fail_at(nth, 0);
		label_result(&rig.l, &rig.o, rig.message.data, &rig.json);
		is_short = mem_try_count() >= nth;
		mem_fail_at(0, 0);
		label_check_edits(&rig.l, rig.message.data, &rig.json);
		ck_assert(rig.l.reason == LABEL_TOO_LARGE ? rig.l.edits.n == 0
							  : rig.l.edits.n > 0);
		ck_assert(rig.l.is_error == (rig.l.reason == LABEL_ERROR));
		ck_assert(is_short || rig.l.edits.n > 0);
	}
}
END_TEST

/* ---- options ---- */

START_TEST(tool_overrides_upstream)
{
	struct fail_rule rules[2] = {{.pointer = NULL}, {.pointer = NULL}};
	char up_root[] = "/up", root[] = "/tool";
	struct label_conf up = {
	    GRAPHQL_ON, SURVIVAL_DEEP, ANNOTATE_META, up_root, 5, rules, 1};
	struct label_conf tool = {
	    GRAPHQL_OFF, SURVIVAL_SHALLOW, ANNOTATE_FULL, root, 6, rules + 1, 0};
	struct label_conf none = {.mode = GRAPHQL_INHERIT};
	struct jtext definition = {"{}", 2};
	struct label_opts o;

	label_opts_set(&o, &none, NULL, definition);
	ck_assert(o.mode == GRAPHQL_AUTO && !o.is_deep && !o.is_meta_only);
	ck_assert(o.root == NULL && o.max_bytes == 1024 * 1024 && o.n_rules == 0);
	ck_assert_ptr_eq(o.definition.p, definition.p);
	label_opts_set(&o, &up, &none, definition);
	ck_assert(o.mode == GRAPHQL_ON && o.is_deep && o.is_meta_only);
	ck_assert(o.root == up_root && o.max_bytes == 5 && o.n_rules == 1);
	label_opts_set(&o, &up, &tool, definition);
	ck_assert(o.mode == GRAPHQL_OFF && !o.is_deep && !o.is_meta_only);
	ck_assert(o.root == root && o.max_bytes == 6 && o.n_rules == 0);
	ck_assert_str_eq(graphql_mode_words[GRAPHQL_OFF], "off");
	ck_assert_str_eq(graphql_survival_words[SURVIVAL_DEEP], "deep");
	ck_assert_str_eq(graphql_annotate_words[ANNOTATE_META], "meta");
}
END_TEST

#define ADD_TABLE(tc, test, table)                                                       \
	tcase_add_loop_test(tc, test, 0, sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("label_bounds");
	TCase *tc = tcase_create("label");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	ADD_TABLE(tc, schema_decides_the_place, schemas);
	ADD_TABLE(tc, tool_decides_what_it_is, tools);
	ADD_TABLE(tc, errors_are_told, said);
	tcase_add_test(tc, long_errors_are_cut);
	tcase_add_test(tc, candidates_have_a_bound);
	tcase_add_test(tc, depth_has_a_bound);
	tcase_add_test(tc, results_have_a_bound);
	tcase_add_test(tc, definitions_have_a_bound);
	tcase_add_test(tc, bytes_have_a_bound);
	tcase_add_test(tc, word_is_found_anywhere);
	ADD_TABLE(tc, no_memory_no_label, short_of);
	tcase_add_test(tc, tool_overrides_upstream);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
