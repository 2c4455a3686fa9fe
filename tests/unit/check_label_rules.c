/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Pointers, and what an operator has declared to be a failure. */
#include "label_names.h"

#include "mcpvisor/mem.h"

#include "fake/fake_tree.h"

static struct rig rig;
static struct fail_rule rules[4];
static size_t n_rules;
static struct mv_errtext text;

static void
setup(void)
{
	rig_init(&rig);
	n_rules = 0;
}

static void
teardown(void)
{
	for (size_t i = 0; i < n_rules; i++)
		fail_rule_fini(&rules[i]);
	rig_fini(&rig);
}

/* ---- pointers ---- */

static const struct {
	const char *pointer, *value, *found; /* found NULL: the pointer is none */
} pointers[] = {
    {"", "{'a':1}", "{'a':1}"},
    {"/a", "{'a':1}", "1"},
    {"/a/b", "{'x':[],'a':{'b':{'c':2}}}", "{'c':2}"},
    {"/", "{'':3}", "3"},
    {"/a//b", "{'a':{'':{'b':4}}}", "4"},
    {"/~1~0", "{'/~':5}", "5"},
    {"/~01", "{'~1':6}", "6"},
    {"/0a", "{'0a':7}", "7"},
    {"/a", "{'\\u0061':8}", "8"},
    {"/a", "{'a':1,'a':2}", ""},
    {"/a/b", "{'a':1}", ""},
    {"/a", "['a']", ""},
    {"/a", "'a'", ""},
    {"a", NULL, NULL},
    {"/~", NULL, NULL},
    {"/~2", NULL, NULL},
    {"/a/0", NULL, NULL},
    {"/a/-", NULL, NULL},
};

START_TEST(pointer_leads_through_objects)
{
	const char *wrong = pointer_check(pointers[_i].pointer);
	struct jtext found;

	ck_assert_int_eq(wrong == NULL, pointers[_i].found != NULL);
	if (wrong != NULL)
		return;
	rig_expand(&rig.result, pointers[_i].value,
	    pointers[_i].value + strlen(pointers[_i].value));
	rig_expand(&rig.after, pointers[_i].found,
	    pointers[_i].found + strlen(pointers[_i].found));
	found = pointer_get(
	    (struct jtext){rig.result.data, rig.result.len}, pointers[_i].pointer);
	ck_assert_uint_eq(found.n, rig.after.len);
	if (found.n > 0)
		ck_assert_mem_eq(found.p, rig.after.data, found.n);
}
END_TEST

START_TEST(steps_have_a_bound)
{
	char pointer[300];

	memset(pointer, 'a', sizeof(pointer));
	pointer[0] = '/';
	pointer[256] = '\0';
	ck_assert_ptr_null(pointer_check(pointer));
	pointer[256] = 'a';
	pointer[257] = '\0';
	ck_assert_ptr_nonnull(pointer_check(pointer));
	ck_assert_uint_eq(pointer_get((struct jtext){"{\"a\":1}", 7}, pointer).n, 0);
}
END_TEST

/* ---- reading ---- */

static const struct {
	const char *text, *pointer, *value, *wrong; /* wrong: words of the error */
} written[] = {
    {"json:/error", "/error", NULL, NULL},
    {"json:/a/b=false", "/a/b", "false", NULL},
    {"json:/a= \"x=y\" ", "/a", "\"x=y\"", NULL},
    {"json:/a=-1.5", "/a", "-1.5", NULL},
    {"text:^Error:", NULL, NULL, NULL},
    {"json:", NULL, NULL, "names no member"},
    {"json:=1", NULL, NULL, "names no member"},
    {"json:error", NULL, NULL, "begin with /"},
    {"json:/a=", NULL, NULL, "is no JSON string"},
    {"json:/a=x", NULL, NULL, "is no JSON string"},
    {"json:/a=[]", NULL, NULL, "is no JSON string"},
    {"json:/a=1 2", NULL, NULL, "is no JSON string"},
    {"text:", NULL, NULL, "regular expression"},
    {"text:(", NULL, NULL, ""},
    {"", NULL, NULL, "neither json: nor text:"},
    {"xpath:/a", NULL, NULL, "neither json: nor text:"},
};

START_TEST(rule_is_read)
{
	struct fail_rule r;
	bool is_read = fail_rule_read(&r, written[_i].text, &text);

	ck_assert_int_eq(is_read, written[_i].wrong == NULL);
	if (!is_read) {
		ck_assert_ptr_nonnull(strstr(text.message, written[_i].wrong));
		ck_assert(r.text == NULL && r.pointer == NULL && r.pattern == NULL);
		return;
	}
	ck_assert_str_eq(r.text, written[_i].text);
	ck_assert_pstr_eq(r.pointer, written[_i].pointer);
	ck_assert_pstr_eq(r.value, written[_i].value);
	ck_assert_int_eq(r.pattern != NULL, written[_i].pointer == NULL);
	fail_rule_fini(&r);
}
END_TEST

START_TEST(conf_owns_its_rules)
{
	struct label_conf c = {.root = mem_xstrdup("/a"), .n_rules = 2};

	c.rules = mem_xcalloc(2, sizeof(c.rules[0]));
	ck_assert(fail_rule_read(&c.rules[0], "json:/a=1", NULL));
	ck_assert(fail_rule_read(&c.rules[1], "text:x", NULL));
	label_conf_fini(&c);
	ck_assert(c.root == NULL && c.rules == NULL && c.n_rules == 0);
}
END_TEST

/* ---- judging ---- */

static const struct {
	const char *mode, *first, *second, *result, *reason, *edits;
	unsigned rule;
} judged[] = {
    {"auto", "json:/error", NULL, "T:{'error':'x'}", "rule", "flip meta", 1},
    {"off", "json:/error", NULL, "T:{'error':'x'}", "rule", "flip meta", 1},
    {"on", "json:/error", NULL, "S:{'error':0}", "rule", "flip meta", 1},
    {"auto", "json:/error", NULL, "T:```\n{'error':[1]}\n```", "rule", "flip meta", 1},
    {"auto", "json:/error", NULL, "T:{'error':null}", "none", "", 0},
    {"auto", "json:/error", NULL, "T:{'error':false}", "none", "", 0},
    {"auto", "json:/error", NULL, "T:{'error':''}", "none", "", 0},
    {"auto", "json:/error", NULL, "T:{'error':[ ]}", "none", "", 0},
    {"auto", "json:/error", NULL, "T:{'error':{\n}}", "none", "", 0},
    {"off", "json:/error", NULL, "T:{'error':{}}", "off", "", 0},
    {"auto", "json:/error", NULL, "T:it said {'error':1}", "none", "", 0},
    {"auto", "json:/ok=false", NULL, "T:{'ok':false}", "rule", "flip meta", 1},
    {"auto", "json:/ok=false", NULL, "T:{'ok':true}", "none", "", 0},
    {"auto", "json:/ok='no'", NULL, "T:{'ok':'n\\u006f'}", "rule", "flip meta", 1},
    {"auto", "json:/ok=1", NULL, "T:{'ok':'1'}", "none", "", 0},
    {"auto", "json:/error", NULL, "S:{'result':{'error':'x'}}", "rule", "flip meta", 1},
    {"auto", "json:/error", NULL, "S:{'result':'@{'error':'x'}@'}", "rule", "flip meta",
	1},
    {"auto", "json:/result/error", NULL, "S:{'result':{'error':'x'}}", "rule",
	"flip meta", 1},
    {"auto", "text:^Error:", NULL, "T:Error: no", "rule", "flip meta", 1},
    {"auto", "text:^Error:", NULL, "T:no Error:", "none", "", 0},
    {"auto", "text:Error", NULL, "S:{'error':'Error'}", "none", "", 0},
    {"auto", "text:Error", NULL, "R:{'content':[{'type':'resource','text':'Error'}]}",
	"none", "", 0},
    /* The first of the rules counts, wherever it hits. */
    {"auto", "json:/b", "json:/a", "T:{'a':1,'b':1}", "rule", "flip meta", 1},
    {"auto", "json:/b", "json:/a", "T:{'a':1}", "rule", "flip meta", 2},
    {"auto", "json:/b", "json:/a",
	"R:{'content':[{'type':'text','text':'@{'a':1}@'},{'type':'text','text':"
	"'@{'b':1}@'}]}",
	"rule", "flip meta", 1},
    {"auto", "json:/a", NULL, "T:{'a':1}|,'isError':false,'_meta':{'k':1}", "rule",
	"flip meta", 1},
    {"auto", "json:/a", NULL, "T:{'a':1}|,'_meta':7", "rule", "flip", 1},
    /* Beside what GraphQL says. */
    {"auto", "json:/data/b", NULL, "T:$P", "rule", "flip text0 meta", 1},
    {"auto", "json:/data/a", NULL, "T:$P", "partial", "text0 meta", 0},
    {"auto", "json:/errors", NULL, "T:$N", "error", "flip meta", 0},
    {"off", "json:/errors", NULL, "T:$N", "rule", "flip meta", 1},
    /* The same gates. */
    {"auto", "json:/a", NULL, "T:{'a':1}|,'resultType':'task'", "not_complete", "", 0},
    {"auto", "json:/a", NULL, "T:{'a':1}|,'isError':true", "upstream_error", "", 0},
    {"auto", "json:/a", NULL, "T:{'a':1}|,'isError':7", "malformed", "", 0},
    {"off", "json:/a", NULL, "T:{'a':1}|,'isError':7", "off", "", 0},
    {"auto", "json:/a", NULL, "T:{'a':1}|,'_meta':{'io.github.mcpvisor/graphql':1}",
	"already", "", 0},
    {"auto max=9", "json:/a", NULL, "T:{'a':1,'b':2}", "none", "", 0},
    {"auto max=9", "text:a", NULL, "T:aaaaaaaa", "none", "", 0},
    {"auto max=9", "json:/a", NULL, "S:{'a':1234}", "none", "", 0},
};

static void
add_rule(const char *s)
{
	struct buf b;

	if (s == NULL)
		return;
	buf_init(&b, CAP_MESSAGE_BYTES);
	rig_expand(&b, s, s + strlen(s));
	ck_assert(fail_rule_read(&rules[n_rules++], buf_cstr(&b), &text));
	buf_fini(&b);
}

START_TEST(rule_hits)
{
	add_rule(judged[_i].first);
	add_rule(judged[_i].second);
	rig_set(&rig, judged[_i].mode, PLAIN);
	rig.o.rules = rules;
	rig.o.n_rules = n_rules;
	rig_label(&rig, judged[_i].result);
	rig_assert(&rig, judged[_i].result, judged[_i].reason, judged[_i].edits);
	ck_assert_uint_eq(rig.l.rule, judged[_i].rule);
	tree_assert_object(rig.after.data, rig.after.len);
	label_check_all(&rig.o, 1, rig.result.data, rig.result.len);
}
END_TEST

START_TEST(rule_is_told_beside_the_answer)
{
	add_rule("json:/data/b");
	rig_set(&rig, "auto", PLAIN);
	rig.o.rules = rules;
	rig.o.n_rules = 1;
	rig_label(&rig, "T:$P");
	ck_assert_ptr_nonnull(strstr(buf_cstr(&rig.after),
	    "\"_meta\":{\"io.github.mcpvisor/graphql\":{\"outcome\":\"partial\","
	    "\"errors\":1},\"io.github.mcpvisor/rule\":1}}"));
	ck_assert_ptr_nonnull(strstr(buf_cstr(&rig.after), "],\"isError\":true,"));
	ck_assert(rig.l.is_error && rig.l.n_errors == 1);
}
END_TEST

#define ADD_TABLE(tc, test, table)                                                       \
	tcase_add_loop_test(tc, test, 0, sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("label_rules");
	TCase *tc = tcase_create("rules");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	ADD_TABLE(tc, pointer_leads_through_objects, pointers);
	tcase_add_test(tc, steps_have_a_bound);
	ADD_TABLE(tc, rule_is_read, written);
	tcase_add_test(tc, conf_owns_its_rules);
	ADD_TABLE(tc, rule_hits, judged);
	tcase_add_test(tc, rule_is_told_beside_the_answer);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
