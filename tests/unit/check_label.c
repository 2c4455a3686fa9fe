/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Labels byte for byte, in every spelling, and on results that are nobody's. */
#include "label_names.h"

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

/* ---- byte for byte ---- */

#define ANSWER                                                                           \
	"'{\\'data\\':{\\'a\\':null,\\'b\\':1},\\'errors\\':[{\\'message\\':"            \
	"\\'boom\\',\\'path\\':[\\'a\\']}]}'"
#define FAILED                                                                           \
	"'{\\'data\\':null,\\'errors\\':[{\\'message\\':\\'boom\\',\\'path\\':"          \
	"[\\'a\\']}]}'"
#define META(outcome) "'io.github.mcpvisor/graphql':{'outcome':'" outcome "','errors':1}"

static const struct {
	const char *tool, *before, *after;
} exact[] = {
    {PLAIN, "{'content':[{'type':'text','text':" ANSWER "}]}",
	"{'content':[{'type':'text','text':'{\\'_warning\\':\\'$W\\',\\'data\\':{\\'a\\':"
	"null,\\'b\\':1},\\'errors\\':[{\\'message\\':\\'boom\\',\\'path\\':[\\'a\\']}]}'"
	"}],'_meta':{" META("partial") "}}"},
    {PLAIN,
	"{'content':[{'type':'text','text':" FAILED "}],'isError':false,'_meta':{'k':1}}",
	"{'content':[{'type':'text','text':" FAILED
	"}],'isError':true,'_meta':{" META("error") ",'k':1}}"},
    {CLOSED, "{'content':[{'type':'text','text':" ANSWER "}],'structuredContent':$P}",
	"{'content':[{'type':'text','text':" ANSWER "},{'type':'text','text':'$W'}],"
	"'structuredContent':$P,'_meta':{" META("partial") "}}"},
    {OPEN, "{'content':[{'type':'text','text':'3 rows'}],'structuredContent':$N}",
	"{'content':[{'type':'text','text':'3 rows'},{'type':'text','text':'GraphQL "
	"request failed: 1 error(s), no data. [1] boom at a'}],'structuredContent':$N,"
	"'isError':true,'_meta':{" META("error") "}}"},
    /* Without a place of its own one is made. */
    {OPEN, "{'structuredContent':$N}",
	"{'structuredContent':$N,'content':[{'type':'text','text':'GraphQL request "
	"failed: 1 error(s), no data. [1] boom at a'}],'isError':true,'_meta':{" META(
	    "error") "}}"},
    {CLOSED, "{'content':[ ],'_meta':{ },'structuredContent':$P}",
	"{'content':[ {'type':'text','text':'{\\'_warning\\':\\'$W\\',\\'data\\':{"
	"\\'a\\':null,\\'b\\':1},\\'errors\\':[{\\'message\\':\\'boom\\',\\'path\\':["
	"\\'a\\']}]}'}],'_meta':{" META("partial") " },'structuredContent':$P}"},
    {"{'outputSchema':{'properties':{'result':{'type':'string','maxLength':9}}}}",
	"{'structuredContent':{'result':" ANSWER "}}",
	"{'structuredContent':{'result':" ANSWER "},'content':[{'type':'text','text':"
	"'@{'result':'{\\'_warning\\':\\'$W\\',\\'data\\':{\\'a\\':null,\\'b\\':1},"
	"\\'errors\\':[{\\'message\\':\\'boom\\',\\'path\\':[\\'a\\']}]}'}@'}],'_meta':"
	"{" META("partial") "}}"},
};

START_TEST(label_is_exact)
{
	struct buf want;

	buf_init(&want, CAP_MESSAGE_BYTES);
	rig_expand(&want, exact[_i].after, exact[_i].after + strlen(exact[_i].after));
	rig_expand(
	    &rig.result, exact[_i].before, exact[_i].before + strlen(exact[_i].before));
	rig_set(&rig, "auto", exact[_i].tool);
	rig_run(&rig);
	ck_assert_str_eq(buf_cstr(&rig.after), buf_cstr(&want));
	tree_assert_object(rig.after.data, rig.after.len);
	buf_fini(&want);
}
END_TEST

/* ---- spelling ---- */

/* "text" stands for the place of the answer in another spelling. */
static const struct {
	const char *tool, *result, *edits;
} spelled[] = {
    {PLAIN,
	"R:{ 'content' : [ { 'type' : 'text' ,\n 'text' : '@ $p @' } ] , '_meta' : { } }",
	"text0 meta"},
    {PLAIN,
	"R:{'_meta':{'k':1},'isError':null,'content':[{'text':'@$P@','type':'text'}]}",
	"text0 meta"},
    {OPEN, "R:{'structuredContent':$p,'content':[{'type':'text','text':'@$p@'}]}",
	"sc text0 meta"},
    /* Keys, and the brace, as escapes; one of the keys has to be spelled plainly. */
    {PLAIN,
	"R:{'\\u0063ontent':[{'t\\u0079pe':'\\u0074ext','tex\\u0074':'\\ufeff\\n\\u007b"
	"\\u0022d\\\\u0061ta\\u0022:{\\'a\\':1},\\'errors\\':[{\\'m\\\\u0065ssage\\':"
	"\\'\\ud83d\\ude00\\'}]}\\t'}]}",
	"text0 meta"},
    {OPEN, "R:{'structuredContent':{'d\\u0061ta':{'\xc3\xa9':1},'errors':[$E]}}",
	"sc meta"},
    {PLAIN, "T:\xef\xbb\xbf $P", "text0 meta"},
    {PLAIN, "T:~~~~ $P", ""},
    {PLAIN, "T:````JSON \n $P \n  ````  ", "text0 meta"},
    {PLAIN, "T:```\n$P\n```", "text0 meta"},
    {PLAIN, "T:```json\n$P```", ""},
    {PLAIN, "T:```json\n$P\n``", ""},
    {PLAIN, "T:````json\n$P\n```", ""},
    {PLAIN, "T:```json5\n$P\n```", ""},
    {PLAIN, "T:```json\n$P\n```\n```json\n$P\n```", ""},
    {PLAIN, "T:```errors", ""},
    {PLAIN, "T:```\nerrors", ""},
    {PLAIN, "T:``` errors ```", ""},
    /* What is no JSON, or not to every reader. */
    {PLAIN, "T:{'data':{'a':1},'errors':[$E],}", ""},
    {PLAIN, "T:{'data':{'a':01},'errors':[$E]}", ""},
    {PLAIN, "T:{'data':{'a':NaN},'errors':[$E]}", ""},
    {PLAIN, "T:{'data':{'a':1},'errors':[$E],'\\u0065rrors':[]}", ""},
    {PLAIN, "R:{'content':[{'type':'text','text':'@$P@','text':'@$P@'}]}", ""},
    /* Numbers, and escapes that need not be, are as they were. */
    {OPEN,
	"B:{'data':{'n':12345678901234567890,'r':1.0,'e':1e3,'z':-0,'s':'\\/\\u00e9'},"
	"'errors':[$E]}",
	"sc text0 meta"},
    {PLAIN, "T:{'data':{'s':'\\\\u00e9\\\\ud800'},'errors':[$E]}", "text0 meta"},
};

START_TEST(spelling_does_not_matter)
{
	rig_set(&rig, "auto", spelled[_i].tool);
	rig_label(&rig, spelled[_i].result);
	rig_assert(&rig, spelled[_i].result,
	    spelled[_i].edits[0] != '\0' ? "partial" : "none", spelled[_i].edits);
	label_check_all(&rig.o, 1, rig.result.data, rig.result.len);
}
END_TEST

/* ---- results that are nobody's ---- */

static const struct {
	const char *mode, *result, *reason, *edits;
} odd[] = {
    {"auto", "T:$N|,'content':[]", "malformed", ""},
    {"auto", "S:$N|,'structuredContent':1", "malformed", ""},
    {"auto", "T:$N|,'isError':false,'isErr\\u006fr':false", "malformed", ""},
    {"auto", "T:$N|,'_meta':{},'_meta':{}", "malformed", ""},
    {"auto", "T:$N|,'resultType':'complete','resultType':'complete'", "malformed", ""},
    {"auto", "T:$N|,'resultType':'c\\u006fmplete'", "error", "flip meta"},
    {"auto", "T:$N|,'resultType':null", "not_complete", ""},
    {"auto", "T:$N|,'isError':0", "malformed", ""},
    {"auto", "T:$P|,'_meta':{'io.github.mcpvisor\\/graphql':1}", "already", ""},
    /* Where _meta can hold nothing it is left alone, and our words tell that we were
       here. */
    {"auto", "T:$P|,'_meta':null", "partial", "text0"},
    {"auto", "T:$N|,'_meta':[]", "error", "flip"},
    {"auto", "T:{'_warning':'$W','data':{'a':1},'errors':[$E]}|,'_meta':null", "already",
	""},
    {"auto", "R:{'content':null,'structuredContent':$P}", "partial", "sc meta"},
    {"auto", "R:{'content':null,'structuredContent':$N}", "error", "flip meta"},
    {"auto", "R:{'content':['errors',1,{},{'type':7},{'type':'text'}]}", "none", ""},
    {"auto", "R:['errors']", "none", ""},
    {"auto", "S:'errors'", "none", ""},
    {"auto", "S:[$N]", "none", ""},
    /* Lists have no place for the warning. */
    {"on", "S:[{'data':{'a':1}},$N]", "partial", "mirror meta"},
    {"on", "S:[$N,$N]", "error", "flip errtext meta"},
    {"on", "T:[{'data':{'a':1}},{'data':null,'errors':[]}]|,'x':'errors'", "clean", ""},
    {"on", "T:[$N,1]", "none", ""},
    {"on", "T:[$N,{'errors':1}]", "none", ""},
    {"on", "T:[]|,'x':'errors'", "none", ""},
    {"on", "S:{'result':[$N]}", "none", ""},
    {"on", "S:{'result':$P,'x':1}", "none", ""},
    {"on root=/r", "S:{'r':$P}", "partial", "sc meta"},
    {"on root=/r/s", "S:{'r':{'s':$P}}", "partial", "sc meta"},
    {"on root=/r", "T:{'r':$P,'r':1}", "none", ""},
    {"on root=/r", "T:$P", "none", ""},
    {"auto root=/r", "T:$P", "partial", "text0 meta"},
    /* A text that says it already. */
    {"on", "R:{'content':[{'type':'text','text':'$W'}],'structuredContent':[$P]}",
	"partial", "meta"},
    {"auto meta", "B:$P", "partial", "meta"},
    {"auto meta", "T:$N", "error", "flip meta"},
    {"auto deep", "T:{'data':{'a':[[{}],{'__typename':[1]}]},'errors':[$E]}", "error",
	"flip meta"},
    {"auto deep", "T:{'data':{'a':[ [ ] ]},'errors':[$E]}", "partial", "text0 meta"},
    {"auto deep", "T:{'data':{'a':{'__typename':'x', 'b' : 'y'}},'errors':[$E]}",
	"partial", "text0 meta"},
    {"auto deep", "T:{'data':[],'errors':[$E]}", "suspect", ""},
    {"auto", "T:{'data':{'a':null},'errors':[$E],'incremental':[{'items':[null]}]}",
	"error", "flip meta"},
    {"auto", "T:{'data':{'a':null},'errors':[$E],'incremental':[{'items':[1]}]}",
	"partial", "text0 meta"},
    {"on", "T:{'data':{'a':1},'completed':[{'errors':[$E]}]}", "partial", "text0 meta"},
    {"on", "T:{'data':{'a':1},'completed':[1,{'errors':3}],'pending':'errors'}", "clean",
	""},
    /* Fences. */
    {"auto", "T:````json\n$P\n`````", "partial", "text0 meta"},
    {"auto", "T:``` JSON \r\n$P\n```", "partial", "text0 meta"},
    {"auto", "R:{'content':[{'type':'text','text':'\\ufeff```\\n@$P@\\n```'}]}",
	"partial", "text0 meta"},
    {"auto", "T:```\xef\xbb\xbfjson\n$P\n```", "none", ""},
    {"auto", "T:```json5\n$P\n```", "none", ""},
    {"auto", "T:```json x\n$P\n```", "none", ""},
    {"auto", "T:````json\n$P\n```", "none", ""},
    {"auto", "T:```json\n$P```", "none", ""},
    {"auto", "T:```json\n$P\n```\n```json\n$P\n```", "none", ""},
    {"auto", "T:~~~\n$P\n~~~", "none", ""},
    /* Answers of others, and what only quotes one. */
    {"auto", "T:{'took':3,'errors':true,'items':[]}", "none", ""},
    {"auto", "T:{'errors':[{'status':'404','title':'x'}],'jsonapi':{}}", "none", ""},
    {"auto", "T:{'data':{'_meta':1},'errors':[$E],'_meta':{}}", "suspect", ""},
    {"auto", "T:{'status':'ok','result':$P}", "none", ""},
    {"auto", "S:{'result':{'result':$P}}", "none", ""},
    {"auto", "S:{'result':'@{'result':$P}@'}", "none", ""},
    /* None of it is ours, and it does not keep us away. */
    {"auto", "T:{'data':null,'errors':[{'message':'$W'}]}", "error", "flip meta"},
    {"auto",
	"R:{'content':[{'type':'text','text':'@$P@','_meta':{"
	"'io.github.mcpvisor/graphql':1}}]}",
	"partial", "text0 meta"},
    {"auto", "T:$N|,'x':{'_meta':{'io.github.mcpvisor/graphql':1},'isError':true}",
	"error", "flip meta"},
    {"auto", "T:{'data':null,'\\u0065rrors':[$E],'extensions':{'errors':1}}", "error",
	"flip meta"},
    {"auto max=120", "S:$P|,'x':1", "partial", "sc meta"},
    {"auto max=60", "S:$P", "too_large", ""},
};

START_TEST(odd_results_are_safe)
{
	struct label_opts o[4];

	rig_set(&rig, odd[_i].mode, PLAIN);
	if (odd[_i].result[0] == 'R' && odd[_i].result[2] == '[') {
		buf_add_str(&rig.result, "[\"errors\"]");
		rig_run(&rig);
	} else {
		rig_label(&rig, odd[_i].result);
	}
	rig_assert(&rig, odd[_i].result, odd[_i].reason, odd[_i].edits);
	for (size_t i = 0; i < 4; i++)
		o[i] = rig.o;
	o[1].mode = GRAPHQL_AUTO;
	o[2].mode = GRAPHQL_ON;
	o[3].definition.n = 0;
	label_check_all(o, 4, rig.result.data, rig.result.len);
}
END_TEST

START_TEST(error_of_json_rpc_is_none)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,"
				   "\"message\":\"errors\"}}";

	ck_assert_int_eq(json_scan(&rig.json, text, strlen(text), false), MV_OK);
	label_result(&rig.l, &rig.o, text, &rig.json);
	ck_assert_int_eq(rig.l.reason, LABEL_NONE);
	ck_assert_uint_eq(rig.l.edits.n, 0);
}
END_TEST

/* ---- results by the dice ---- */

static uint64_t dice = 1;

static unsigned
roll(unsigned n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(dice >> 33) % n;
}

static void
put_random_value(struct buf *out, unsigned depth)
{
	static const char *const scalars[] = {"null", "1", "-0", "1e3", "true", "false",
	    "''", "'x'", "'\\\\u00e9'", "'\\\\ud83d\\\\ude00'", "[]", "{}", "$E", "$P",
	    "$N", "[$E]", "[$E, $E]", "[null]", "{'a':null}", "{'__typename':'Q'}",
	    "12345678901234567890", "'errors'", "'\\''", "'{}'"};
	static const char *const keys[] = {"data", "errors", "d\\\\u0061ta", "extensions",
	    "incremental", "completed", "_warning", "result", "x", "hasNext"};
	const char *s = scalars[roll(sizeof(scalars) / sizeof(scalars[0]))];
	unsigned n = roll(4);

	if (depth == 0 || roll(3) == 0) {
		buf_add_str(out, s);
		return;
	}
	buf_add_char(out, roll(8) == 0 ? '[' : '{');
	if (out->data[out->len - 1] == '[') {
		put_random_value(out, depth - 1);
		buf_add_str(out, roll(2) == 0 ? "\n]" : ",$N]");
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		buf_addf(out, "%s'%s'%s:", i > 0 ? "," : "",
		    keys[i < 2 && roll(3) > 0 ? i : roll(sizeof(keys) / sizeof(keys[0]))],
		    roll(9) == 0 ? " " : "");
		put_random_value(out, depth - 1);
	}
	buf_add_char(out, '}');
}

static void
put_random_text(struct buf *out)
{
	static const char *const around[][2] = {{"", ""}, {"\\n ", " "},
	    {"```json\\n", "\\n```"}, {"see: ", ""}, {"\\ufeff", ""}};
	unsigned i = roll(5) < 2 ? roll(5) : 0;

	buf_addf(out, "{'type':'text','text':'%s@", around[i][0]);
	put_random_value(out, 3);
	buf_addf(out, "@%s'}", around[i][1]);
}

static void
put_random_result(struct buf *out)
{
	static const char *const more[] = {",'isError':false", ",'isError':null",
	    ",'isError':true", ",'_meta':{}", ",'_meta':{'k':1}", ",'_meta':null",
	    ",'resultType':'complete'", ",'resultType':'task'", ",'x':'errors'"};
	unsigned n = roll(4);

	buf_add_str(out, "{'content':[");
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			buf_add_char(out, ',');
		if (roll(8) == 0)
			buf_add_str(out, "{'type':'image','data':''}");
		else
			put_random_text(out);
	}
	buf_add_char(out, ']');
	if (roll(2) == 0) {
		buf_add_str(out, ",'structuredContent':");
		put_random_value(out, 3);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (roll(3) == 0)
			buf_add_str(out, more[roll(sizeof(more) / sizeof(more[0]))]);
	}
	buf_add_char(out, '}');
}

START_TEST(random_results_keep_all_guarantees)
{
	unsigned reasons[LABEL_REASON_MAX] = {0};
	struct buf form;

	buf_init(&form, CAP_MESSAGE_BYTES);
	for (unsigned i = 0; i < 20000; i++) {
		static const char *const sets[] = {"auto", "on", "auto deep", "on meta"};
		static const char *const defs[] = {PLAIN, CLOSED, EXEC, NOCAT};
		struct label_opts o[3];

		buf_reset(&form);
		buf_reset(&rig.result);
		put_random_result(&form);
		rig_expand(&rig.result, form.data, form.data + form.len);
		rig_set(&rig, sets[roll(4)], defs[roll(4)]);
		rig_run(&rig);
		reasons[rig.l.reason]++;
		o[0] = o[1] = o[2] = rig.o;
		o[1].mode = rig.o.mode == GRAPHQL_ON ? GRAPHQL_AUTO : GRAPHQL_ON;
		o[2].definition.n = 0;
		o[2].is_deep = !rig.o.is_deep;
		label_check_all(o, 3, rig.result.data, rig.result.len);
	}
	/* It has not all been one thing. */
	ck_assert_uint_gt(reasons[LABEL_PARTIAL], 200);
	ck_assert_uint_gt(reasons[LABEL_ERROR], 200);
	ck_assert_uint_gt(reasons[LABEL_CLEAN], 200);
	ck_assert_uint_gt(reasons[LABEL_SUSPECT], 50);
	ck_assert_uint_gt(reasons[LABEL_MALFORMED], 50);
	buf_fini(&form);
}
END_TEST

#define ADD_TABLE(tc, test, table)                                                       \
	tcase_add_loop_test(tc, test, 0, sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("label");
	TCase *tc = tcase_create("label");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	ADD_TABLE(tc, label_is_exact, exact);
	ADD_TABLE(tc, spelling_does_not_matter, spelled);
	ADD_TABLE(tc, odd_results_are_safe, odd);
	tcase_add_test(tc, error_of_json_rpc_is_none);
	tcase_add_test(tc, random_results_keep_all_guarantees);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
