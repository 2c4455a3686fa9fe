/* layer: result, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* Results of every kind: what they are taken for, and what is put where. */
#include "label_names.h"

#include "fake/fake_tree.h"

static const struct {
	const char *id, *mode, *tool, *result, *reason, *edits;
} vectors[] = {
    {"A01", "auto", PLAIN, "T:{'data':{'a':1}}", "none", ""},
    {"A02", "auto", PLAIN, "T:$N", "error", "flip meta"},
    {"A03", "auto", PLAIN, "T:$F", "error", "flip meta"},
    {"A04", "auto", PLAIN, "T:$P", "partial", "text0 meta"},
    {"A05", "auto", OPEN, "B:$P", "partial", "sc text0 meta"},
    {"A06", "auto", OPEN, "B:$N", "error", "flip meta"},
    {"A07", "auto", PLAIN, "T:$P|,'isError':true", "upstream_error", ""},
    {"A08", "auto", PLAIN, "T:$N|,'isError':false", "error", "flip meta"},
    {"A09", "off", PLAIN, "T:$N", "off", ""},
    {"A10", "on", PLAIN, "T:{'errors':[$E]}", "error", "flip meta"},
    {"B01", "auto", PLAIN, "T:{'data':{},'errors':[$E]}", "error", "flip meta"},
    {"B02", "auto", PLAIN, "T:{'data':{'a':null,'b':null},'errors':[$E]}", "error",
	"flip meta"},
    {"B03", "auto", PLAIN, "T:{'data':{'a':null,'b':false},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B04", "auto", PLAIN, "T:{'data':{'a':null,'b':0},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B05", "auto", PLAIN, "T:{'data':{'a':null,'b':''},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B06", "auto", PLAIN, "T:{'data':{'a':null,'b':[]},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B07", "auto", PLAIN, "T:{'data':{'a':{'x':null}},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B08", "auto deep", PLAIN, "T:{'data':{'a':{'x':null}},'errors':[$E]}", "error",
	"flip meta"},
    {"B09", "auto", PLAIN, "T:{'data':{'a':[null,null]},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B10", "auto deep", PLAIN, "T:{'data':{'a':[null,null]},'errors':[$E]}", "error",
	"flip meta"},
    {"B11", "auto", PLAIN, "T:{'data':{'__typename':'Query','a':null},'errors':[$E]}",
	"error", "flip meta"},
    {"B12", "auto deep", PLAIN,
	"T:{'data':{'a':{'__typename':'U','x':null}},'errors':[$E]}", "error",
	"flip meta"},
    {"B13", "auto deep", PLAIN, "T:{'data':{'a':[]},'errors':[$E]}", "partial",
	"text0 meta"},
    {"B14", "auto deep", PLAIN, "T:{'data':{'a':{}},'errors':[$E]}", "error",
	"flip meta"},
    {"B15", "auto", PLAIN, "T:{'data':{'a':{}},'errors':[$E]}", "partial", "text0 meta"},
    {"B16", "on", PLAIN, "T:{'data':[1,null],'errors':[$E]}", "partial", "text0 meta"},
    {"B17", "on", PLAIN, "T:{'data':'x','errors':[$E]}", "error", "flip meta"},
    {"B18", "on", PLAIN, "T:{'data':0,'errors':[$E]}", "error", "flip meta"},
    {"B19", "auto", PLAIN,
	"T:{'data':{'me':null,'feed':[1]},'errors':[{'message':'feed "
	"slow','path':['feed',3]}]}",
	"partial", "text0 meta"},
    {"C01", "auto", PLAIN, "T:{'data':{'a':1},'errors':[]}", "clean", ""},
    {"C02", "auto", PLAIN, "T:{'data':{'a':1},'errors':null}", "clean", ""},
    {"C03", "on", PLAIN, "T:{'data':null,'errors':[]}", "clean", ""},
    {"C04", "on", PLAIN, "T:{'errors':'Not Found'}", "malformed", ""},
    {"C05", "on", PLAIN, "T:{'data':{'a':1},'errors':{'code':1}}", "malformed", ""},
    {"C06", "on", PLAIN, "T:{'data':null,'errors':['boom']}", "error", "flip meta"},
    {"C07", "auto", PLAIN, "T:{'data':null,'errors':['boom']}", "none", ""},
    {"C08", "auto", PLAIN, "T:{'data':null,'errors':[{'code':'X'}]}", "none", ""},
    {"C09", "auto", PLAIN, "T:{'data':null,'errors':[{'message':null}]}", "none", ""},
    {"C10", "auto", PLAIN,
	"T:{'data':null,'errors':[{'message':'x','path':null,'locations':null,'errorType'"
	":'Unauthorized'}]}",
	"error", "flip meta"},
    {"C11", "auto", PLAIN,
	"T:{'data':{'r':1},'errors':[{'type':'NOT_FOUND','path':['u'],'message':'x'}]}",
	"partial", "text0 meta"},
    {"C12", "on", PLAIN, "T:{'data':{'a':1,'b':null},'errors':[$E,$E,$E]}", "partial",
	"text0 meta"},
    {"D01", "auto", PLAIN, "T:{'errors':[$E]}", "suspect", ""},
    {"D02", "auto", EXEC, "T:{'errors':[$E]}", "error", "flip meta"},
    {"D03", "auto", PLAIN, "T:{'errors':[{'message':'Unexpected var','line':3}]}",
	"suspect", ""},
    {"D04", "auto", PLAIN, "T:{'valid':false,'errors':[{'message':'must be string'}]}",
	"none", ""},
    {"D05", "auto", PLAIN,
	"T:{'success':false,'errors':[{'code':9109,'message':'bad "
	"token'}],'messages':[],'result':null}",
	"none", ""},
    {"D06", "auto", PLAIN, "T:{'data':[{'id':1}],'errors':[{'message':'x'}]}", "suspect",
	""},
    {"D07", "auto", PLAIN,
	"T:{'data':{'id':1},'errors':[{'title':'Not Found','detail':'...'}]}", "none",
	""},
    {"D08", "auto", PLAIN, "T:{'data':null,'errors':[$E],'status':200}", "suspect", ""},
    {"D09", "on", PLAIN, "T:{'data':null,'errors':[$E],'account_id':7}", "error",
	"flip meta"},
    {"D10", "auto", PLAIN, "T:the word 'errors' in prose", "none", ""},
    {"D11", "auto", PLAIN, "T:Response error: x {'data':null,'errors':[{'message':'m'}]}",
	"none", ""},
    {"D12", "auto", PLAIN, "T:{'data':null,'errors':[{'message':'m'}]} trailing", "none",
	""},
    {"D13", "auto", PLAIN, "T:{'data':null,'errors':[{'message':'m'}", "none", ""},
    {"D14", "auto", PLAIN, "T:{'data':{'a':1},'data':null,'errors':[{'message':'m'}]}",
	"none", ""},
    {"D15", "auto", PLAIN, "T:['errors']", "none", ""},
    {"D16", "auto", PLAIN, "T:{'data':{'a':1,'errors':[{'message':'row 3'}]}}", "clean",
	""},
    {"D17", "auto", PLAIN,
	"T:{'data':{'a':null,'b':1},'errors':[$E],'extensions':{'cost':1}}", "partial",
	"text0 meta"},
    {"D18", "auto", PLAIN, "T:{'data':{'a':1,'b':null},'errors':[$E],'extensions':'x'}",
	"suspect", ""},
    {"D19", "auto", INPUT("path"), "T:$N", "suspect", ""},
    {"D20", "auto", INPUT("file_path"), "T:$P", "suspect", ""},
    {"D21", "auto", INPUT_QUERY, "T:$N", "error", "flip meta"},
    {"D22", "auto", NOCAT, "T:$N", "suspect", ""},
    {"D23", "on", INPUT("path"), "T:$N", "error", "flip meta"},
    {"E01", "auto", PLAIN, "T:```json\n$p\n```", "partial", "text0 meta"},
    {"E02", "auto", PLAIN, "T:\n  $p\n", "partial", "text0 meta"},
    {"E03", "auto", PLAIN, "T:Here you go:\n```json\n$P\n```", "none", ""},
    {"E04", "auto", CLOSED, "B:$P", "partial", "block meta"},
    {"E05", "auto", OPEN, "S:$P", "partial", "sc meta"},
    {"E06", "auto", CLOSED, "S:$P", "partial", "mirror meta"},
    {"E07", "auto", OPEN,
	"R:{'content':[{'type':'text','text':'3 rows'}],'structuredContent':$P}",
	"partial", "sc block meta"},
    {"E08", "auto", OPEN,
	"R:{'content':[{'type':'text','text':'3 rows'}],'structuredContent':$N}", "error",
	"flip errtext meta"},
    {"E09", "auto", OPEN, "S:$N", "error", "flip errtext meta"},
    {"E10", "auto",
	OUTPUT("{'type':'object','properties':{'result':{'type':'string'}},'required':['"
	       "result']}"),
	"R:{'content':[{'type':'text','text':'@$P@'}],'structuredContent':{'result':'@$P@"
	"'}}",
	"partial", "scstr text0 meta"},
    {"E11", "auto",
	OUTPUT("{'type':'object','properties':{'result':{'type':'object','"
	       "additionalProperties':true}}}"),
	"R:{'content':[{'type':'text','text':'@$P@'}],'structuredContent':{'result':$P}}",
	"partial", "sc text0 meta"},
    {"E12", "on", NOCAT, "B:$P", "partial", "block meta"},
    {"E13", "auto", OUTPUT("{'$ref':'#/$defs/R'}"), "B:$P", "partial", "block meta"},
    {"E14", "auto", PLAIN,
	"R:{'content':[{'type':'text','text':'@$F@'},{'type':'text','text':'type Query { "
	"a: Int }'}]}",
	"error", "flip meta"},
    {"E15", "auto", PLAIN,
	"R:{'content':[{'type':'text','text':'@$F@'},{'type':'image','data':'AA==','"
	"mimeType':'image/png'}]}",
	"partial", "text0 meta"},
    {"E16", "auto", PLAIN,
	"R:{'content':[{'type':'text','text':'@$F@'},{'type':'text','text':'@{'data':{'z'"
	":1}}@'}]}",
	"partial", "text0 meta"},
    {"E17", "auto", PLAIN,
	"R:{'content':[{'type':'text','text':'@$F@'},{'type':'text','text':'@$N@'}]}",
	"error", "flip meta"},
    {"E18", "auto", PLAIN, "R:{'content':[{'type':'text','text':{'error':'errors'}}]}",
	"none", ""},
    {"E19", "auto", PLAIN,
	"R:{'content':[{'type':'resource','resource':{'uri':'x:y','text':'@$N@'}}]}",
	"none", ""},
    {"E20", "on root=/response", PLAIN, "T:{'ok':true,'response':$P}", "partial",
	"text0 meta"},
    {"F01", "auto", PLAIN,
	"R:{'resultType':'input_required','inputRequests':{'k':{'method':'elicitation/"
	"create','params':{'message':'errors'}}}}",
	"not_complete", ""},
    {"F02", "auto", PLAIN, "T:$N|,'resultType':'complete'", "error", "flip meta"},
    {"F03", "auto", PLAIN, "T:$N|,'resultType':'task'", "not_complete", ""},
    {"F04", "auto", PLAIN,
	"T:$P|,'_meta':{'io.modelcontextprotocol/serverInfo':{'name':'c','version':'1'}}",
	"partial", "text0 meta"},
    {"F05", "auto", PLAIN, "T:$N|,'isError':null", "error", "flip meta"},
    {"F06", "auto", PLAIN, "T:$N|,'isError':'true'", "malformed", ""},
    {"F07", "on", PLAIN, "T:{'data':{'a':1},'errors':[$E],'_warning':'$W'}", "partial",
	"meta"},
    {"F08", "auto", PLAIN,
	"T:$P|,'_meta':{'io.github.mcpvisor/graphql':{'outcome':'partial'}}", "already",
	""},
    {"G01", "auto", PLAIN,
	"T:{'data':{'a':1},'errors':[$E],'pending':[{'id':'0','path':[]}],'hasNext':"
	"true}",
	"partial", "text0 meta"},
    {"G02", "auto", PLAIN,
	"T:{'data':{'a':null},'errors':[$E],'incremental':[{'id':'0','data':{'z':1}}],'"
	"hasNext':false}",
	"partial", "text0 meta"},
    {"G03", "on", PLAIN,
	"T:{'data':{'a':1},'incremental':[{'id':'0','data':{'z':null},'errors':[$E]}],'"
	"hasNext':false}",
	"partial", "text0 meta"},
    {"G04", "on", PLAIN, "T:[{'data':{'a':1}},$N]", "partial", "block meta"},
    {"G05", "on", PLAIN, "T:[$N,{'errors':[$E]}]", "error", "flip meta"},
    {"G06", "auto", PLAIN, "T:[$N]", "none", ""},
    {"G07", "on", PLAIN,
	"T:{'data':{'a':1},'extensions':{'warnings':[{'message':'deprecated'}]}}", "none",
	""},
    {"H01", "auto max=1024", PLAIN, "T:{'data':{'big':'$X'},'errors':[$E]}", "too_large",
	""},
    {"H02", "on", PLAIN, "T:{'message':'Unauthorized errors'}", "none", ""},
};
#define N_VECTORS (sizeof(vectors) / sizeof(vectors[0]))

static struct rig rig;

static void
setup(void)
{
	rig_init(&rig);
}

static void
teardown(void)
{
	rig_fini(&rig);
}

START_TEST(vector_is_labelled)
{
	rig_set(&rig, vectors[_i].mode, vectors[_i].tool);
	rig_label(&rig, vectors[_i].result);
	rig_assert(&rig, vectors[_i].id, vectors[_i].reason, vectors[_i].edits);
	tree_assert_object(rig.after.data, rig.after.len);
	if (rig.l.edits.n == 0) {
		ck_assert_uint_eq(rig.after.len, rig.result.len);
		ck_assert_mem_eq(rig.after.data, rig.result.data, rig.result.len);
	}
}
END_TEST

/* By its own options, by others', and by each after each. */
START_TEST(vector_keeps_all_guarantees)
{
	struct label_opts o[6];

	rig_set(&rig, vectors[_i].mode, vectors[_i].tool);
	for (size_t i = 0; i < 6; i++)
		o[i] = rig.o;
	o[1].mode = GRAPHQL_AUTO;
	o[2].mode = GRAPHQL_ON;
	o[3].is_deep = !o[3].is_deep;
	o[4].is_meta_only = true;
	o[5].definition = (struct jtext){NULL, 0};
	rig_put_result(&rig.result, vectors[_i].result);
	label_check_all(o, 6, rig.result.data, rig.result.len);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("label_vectors");
	TCase *tc = tcase_create("vectors");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, vector_is_labelled, 0, N_VECTORS);
	tcase_add_loop_test(tc, vector_keeps_all_guarantees, 0, N_VECTORS);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
