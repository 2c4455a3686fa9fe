/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* Documents of operations: what is read, what is refused and where. */
#include "mcpvisor/graphql.h"

#include "graphql_rig.h"

static const char *const ops[] = {"query", "mutation", "subscription"};

/* ---- what an operation is ---- */

static void
put_operation(struct buf *out, const struct graphql_operation *op)
{
	buf_addf(
	    out, "%d %s %s", op->line, ops[op->op], op->name != NULL ? op->name : "-");
	if (op->description != NULL)
		buf_addf(out, " '%s'", op->description);
	for (size_t i = 0; i < op->n_vars; i++) {
		const struct graphql_var *v = &op->vars[i];

		buf_addf(out, " $%s:%s", v->name, v->type);
		if (v->dflt != NULL)
			buf_addf(out, "=%s", v->dflt);
		if (v->description != NULL)
			buf_addf(out, "'%s'", v->description);
	}
	buf_add_str(out, " fields");
	for (size_t i = 0; op->fields[i] != NULL; i++)
		buf_addf(out, "%c%s", i > 0 ? ',' : '=', op->fields[i]);
	for (size_t i = 0; i < op->n_spreads; i++)
		buf_addf(out, " ...%s@%ux%u", op->spreads[i].name, op->spreads[i].above,
		    op->spreads[i].times);
	buf_addf(out, " depth=%u n=%u", op->depth, op->n_selected);
}

#define ONE " fields=a depth=1 n=1"

static const struct {
	const char *text, *what, *sent; /* sent NULL: the text itself */
} good[] = {
    {"{a}", "1 query -" ONE, NULL},
    {"\xef\xbb\xbf{a}", "1 query -" ONE, "{a}"},
    {"query {a}", "1 query -" ONE, NULL},
    {"\n\nmutation  Do\r\n{ a }\n", "3 mutation Do" ONE, "mutation  Do\r\n{ a }"},
    {"subscription S{a}", "1 subscription S" ONE, NULL},
    {"query query {a}", "1 query query" ONE, NULL},
    {"{x:a b,c}", "1 query - fields=a,b,c depth=1 n=3", NULL},
    {"{a{b c{d}}e}", "1 query - fields=a,e depth=3 n=5", NULL},
    {"{...on Q{a}...{b}...@include(if:$x){c}}", "1 query - fields=a,b,c depth=1 n=3",
	NULL},
    {"{...F ...E@skip(if:true) a{...F}}",
	"1 query - fields=a ...E@0x1 ...F@1x2 depth=1 n=1", NULL},
    {"{a(s:\"}#\",b:\"\"\"}\n# \\\"\"\" \"\"\",v:$v,l:[1,$w]o:{k:ON,}) @d(x:null)}",
	"1 query -" ONE, NULL},
    /* Descriptions. */
    {"\"d\" query A{a}", "1 query A 'd'" ONE, "query A{a}"},
    {"\"\"\"\n  d\n    e\n\n  f\n  \"\"\"\nquery A{a}", "7 query A 'd\n  e\n\nf'" ONE,
	"query A{a}"},
    {"\"\"\"d\\\"\"\" \\n\"\"\"query A{a}", "1 query A 'd\"\"\" \\n'" ONE, "query A{a}"},
    {"\"\\u00e9\\u{1F600}\\ud83d\\ude00\\\"\\t\" query A{a}",
	"1 query A '\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"\t'" ONE, "query A{a}"},
    {"\"\" query A{a}", "1 query A" ONE, "query A{a}"},
    {"# one\n#two\nquery A{a}", "3 query A 'one\ntwo'" ONE, "query A{a}"},
    {"# far\n\n# near\n  query A{a}", "4 query A 'near'" ONE, "query A{a}"},
    {"# far\n\nquery A{a}", "3 query A" ONE, "query A{a}"},
    {"# not this\n\"d\" query A{a}", "2 query A 'd'" ONE, "query A{a}"},
    {"query A # x\n{ # y\n  a # z\n}# end", "1 query A" ONE, "query A\n{\n  a\n}"},
    {"query A(\"v\" $a:Int){a}", "1 query A $a:Int'v'" ONE, "query A( $a:Int){a}"},
    {"query A(\n  \"\"\"v\"\"\"\n  $a:Int\n){a}", "1 query A $a:Int'v'" ONE,
	"query A(\n  $a:Int\n){a}"},
    /* Variables. */
    {"query A($a:Int=1$b:[ [ID ! ] ]!=[\"x\",2]){a}",
	"1 query A $a:Int=1 $b:[[ID!]]!=[\"x\",2]" ONE, NULL},
    {"query A($a:I={a:ENUM,b:[true null]c:-0.50e+1}$b:T=null){a}",
	"1 query A $a:I={\"a\":\"ENUM\",\"b\":[true,null],\"c\":-0.50e+1} $b:T=null" ONE,
	NULL},
    {"query A($a:B=12345678901234567890){a}", "1 query A $a:B=12345678901234567890" ONE,
	NULL},
    {"query A($a:S=\"\"\"\n   x\n    \"y\"\n\"\"\"){a}",
	"1 query A $a:S=\"x\\n \\\"y\\\"\"" ONE, NULL},
    {"query A($a:S=\"\\u0001/\\/\"){a}", "1 query A $a:S=\"\\u0001//\"" ONE, NULL},
    {"query A($a:S@d(x:1)@e $b:S=\"\"@f){a}", "1 query A $a:S $b:S=\"\"" ONE, NULL},
    {"query A($on:Int,$fragment:[Int]){a}", "1 query A $on:Int $fragment:[Int]" ONE,
	NULL},
};

START_TEST(test_good)
{
	struct mv_errtext t = {.message = ""};
	struct graphql_document *d = rig_document(good[_i].text, &t), *again;
	struct buf b;

	ck_assert_msg(d != NULL, "%s: %d %s", good[_i].text, t.line, t.message);
	ck_assert_uint_eq(d->n_operations, 1);
	buf_init(&b, 1 << 16);
	put_operation(&b, &d->operations[0]);
	ck_assert_str_eq(buf_cstr(&b), good[_i].what);
	ck_assert_str_eq(
	    d->operations[0].text, good[_i].sent != NULL ? good[_i].sent : good[_i].text);
	again = rig_document(d->operations[0].text, &t);
	ck_assert_ptr_nonnull(again);
	ck_assert_str_eq(again->operations[0].text, d->operations[0].text);
	graphql_document_free(again);
	graphql_document_free(d);
	buf_fini(&b);
}
END_TEST

/* ---- what is none ---- */

static const struct {
	const char *text;
	int line;
	const char *message;
} bad[] = {
    {"", 1, "column 1: there is neither"},
    {"# only this\n", 2, "column 1: there is neither"},
    {"{", 1, "column 2: expected a name before the end"},
    {"{a", 1, "column 3: expected a name before the end"},
    {"{}", 1, "column 2: expected a name, not \"}\""},
    {"{a}}", 1, "column 4: expected an operation"},
    {"{a{}}", 1, "column 4: expected a name"},
    {"{a()}", 1, "column 4: expected a name"},
    {"{a(b)}", 1, "column 5: expected ':', not \")\""},
    {"{a(b:)}", 1, "column 6: expected a value"},
    {"{a:}", 1, "column 4: expected a name"},
    {"{a @}", 1, "column 5: expected a name"},
    {"{...}", 1, "column 5: expected '{'"},
    {"{... on {a}}", 1, "column 9: expected a name"},
    {"{a . b}", 1, "column 4: unexpected character '.'"},
    {"{a} %", 1, "column 5: unexpected character '%'"},
    {"{a(b:01)}", 1, "column 6: not a number"},
    {"{a(b:-)}", 1, "column 6: not a number"},
    {"{a(b:1.)}", 1, "column 6: not a number"},
    {"{a(b:1e)}", 1, "column 6: not a number"},
    {"{a(b:1x)}", 1, "column 6: not a number"},
    {"{a(b:1.2.3)}", 1, "column 6: not a number"},
    {"{\n  \xc3\xa4}", 2, "column 3: unexpected character (byte 0xc3)"},
    {"{a(\xc3\xa4:1)}", 1, "column 4: unexpected"},
    {"{a(b:\"\xc3\xa4\", c:\"no end\n\")}", 1, "column 13: the string has no end"},
    {"{\r\n  a(b:\"no end", 2, "column 7: the string has no end"},
    {"{a(b:\"no end\\", 1, "column 6: the string has no end"},
    {"{a(b:\"\"\"\n\n\"\" \\\"\"\"", 1, "column 6: the block string has no end"},
    {"query A($a:S=\"\\x\"){a}", 1, "column 14: the string has an escape"},
    {"query A($a:S=\"\\ud800\"){a}", 1, "column 14: the string has an escape"},
    {"query A($a:S=\"\\udc00\"){a}", 1, "column 14: the string has an escape"},
    {"query A($a:S=\"\\u{110000}\"){a}", 1, "column 14: the string has an escape"},
    {"query A($a:S=\"\\u12\"){a}", 1, "column 14: the string has an escape"},
    {"query A($a:S=\"\\u{}\"){a}", 1, "column 14: the string has an escape"},
    {"\"\\x\" query A{a}", 1, "column 1: the string has an escape"},
    {"query A(){a}", 1, "column 9: expected '$'"},
    {"query A($a){a}", 1, "column 11: expected ':'"},
    {"query A($a:){a}", 1, "column 12: expected a type"},
    {"query A($a:[Int){a}", 1, "column 16: expected ']'"},
    {"query A($a:Int!!){a}", 1, "column 16: expected '$'"},
    {"query A($a:Int=$b){a}", 1, "column 16: a default has no variables"},
    {"query A($a:Int=[{b:$c}]){a}", 1, "column 20: a default has no variables"},
    {"query A($a:Int,\n $b:Int, $a:Int){a}", 2, "column 11: variable $a is there twice"},
    {"query A", 1, "expected '{' before the end"},
    {"fragment on on T{a}", 1, "column 10: a fragment cannot be called"},
    {"fragment F{a}", 1, "column 11: expected \"on\""},
    {"fragment F($a:Int) on T{a}", 1, "column 11: expected \"on\""},
    {"fragment F on T", 1, "expected '{'"},
    {"{a}\n\"d\" type T{a:Int}", 2, "column 5: \"type\" defines types"},
    {"extend type T{a:Int}", 1, "\"extend\" defines types"},
    {"schema{query:Q}", 1, "\"schema\" defines types"},
    {"input I{a:Int}", 1, "\"input\" defines types"},
    {"directive @a on FIELD", 1, "\"directive\" defines types"},
    {"Query{a}", 1, "column 1: expected an operation"},
    {"\"d\"", 1, "column 4: expected an operation"},
    {"{a(b:\"\x80\")}", 1, "column 7: not UTF-8"},
    {"{a}\n\xed\xa0\x80", 2, "column 1: not UTF-8"},
};

START_TEST(test_bad)
{
	struct mv_errtext t = {.line = -1};
	struct graphql_document *d = rig_document(bad[_i].text, &t);

	ck_assert_msg(d == NULL, "%s", bad[_i].text);
	ck_assert_msg(t.line == bad[_i].line && strstr(t.message, bad[_i].message),
	    "%s: %d %s", bad[_i].text, t.line, t.message);
	ck_assert_ptr_null(rig_document(bad[_i].text, NULL));
}
END_TEST

START_TEST(test_nul)
{
	static const char text[] = "{a\n\0}";
	struct mv_errtext t = {.line = 0};

	ck_assert_ptr_null(graphql_document_read(text, sizeof(text) - 1, &t));
	ck_assert_int_eq(t.line, 2);
	ck_assert_str_eq(t.message, "column 1: there is a NUL byte");
}
END_TEST

/* At the bound it is read, above it is not. */
START_TEST(test_longest)
{
	size_t n = GRAPHQL_FILE_MAX;
	char *text = mem_xalloc(n + 1);
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d;

	memset(text, ' ', n + 1);
	memcpy(text, "{a", 2);
	text[n - 1] = '}';
	d = graphql_document_read(text, n, &t);
	ck_assert_ptr_nonnull(d);
	ck_assert_uint_eq(strlen(d->operations[0].text), n);
	graphql_document_free(d);
	ck_assert_ptr_null(graphql_document_read(text, n + 1, &t));
	ck_assert_ptr_nonnull(strstr(t.message, "longer than 1048576 bytes"));
	mem_free(text);
}
END_TEST

/* Each {before}{open}*n{core}{close}*n{after} is read up to a depth, and above it is an
 * error, not the end of the stack. */
static const struct {
	const char *before, *open, *core, *close, *after;
	unsigned most;
} nests[] = {
    {"", "{a", "", "}", "", GRAPHQL_DEPTH_MAX},
    {"{", "...{", "a", "}", "}", GRAPHQL_DEPTH_MAX - 1},
    {"{a(b:", "[", "1", "]", ")}", GRAPHQL_DEPTH_MAX - 1},
    {"{a(b:", "{c:", "1", "}", ")}", GRAPHQL_DEPTH_MAX - 1},
    {"query($a:Int=", "[", "1", "]", "){a}", GRAPHQL_DEPTH_MAX},
    {"query($a:", "[", "T", "]", "){a}", GRAPHQL_DEPTH_MAX - 1},
};

static bool
nest_is_read(int i, unsigned n)
{
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d;
	struct buf b;

	buf_init(&b, GRAPHQL_FILE_MAX);
	buf_add_str(&b, nests[i].before);
	for (unsigned k = 0; k < n; k++)
		buf_add_str(&b, nests[i].open);
	buf_add_str(&b, nests[i].core);
	for (unsigned k = 0; k < n; k++)
		buf_add_str(&b, nests[i].close);
	buf_add_str(&b, nests[i].after);
	d = graphql_document_read(b.data, b.len, &t);
	ck_assert_msg(
	    d != NULL || strstr(t.message, "nested deeper than 64"), "%s", t.message);
	graphql_document_free(d);
	buf_fini(&b);
	return d != NULL;
}

START_TEST(test_nest)
{
	ck_assert(nest_is_read(_i, nests[_i].most));
	ck_assert(!nest_is_read(_i, nests[_i].most + 1));
	ck_assert(!nest_is_read(_i, 100000));
}
END_TEST

START_TEST(test_most_variables)
{
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d;
	struct buf b;

	for (unsigned n = 1000; n <= 1001; n++) {
		buf_init(&b, GRAPHQL_FILE_MAX);
		buf_add_str(&b, "query A(");
		for (unsigned i = 0; i < n; i++)
			buf_addf(&b, "$v%u:Int", i);
		buf_add_str(&b, "){a}");
		d = graphql_document_read(b.data, b.len, &t);
		ck_assert(n == 1000 ? d && d->operations[0].n_vars == n : !d);
		graphql_document_free(d);
		buf_fini(&b);
	}
	ck_assert_ptr_nonnull(strstr(t.message, "more than 1000 variables"));
}
END_TEST

/* ---- names ---- */

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *name, *keep, *snake;
} names[] = {
    {"getUser", "getUser", "get_user"},
    {"GetUserByID", "GetUserByID", "get_user_by_id"},
    {"HTTPServer", "HTTPServer", "http_server"},
    {"get_User", "get_User", "get_user"},
    {"v2Users", "v2Users", "v2_users"},
    {"already_snake", "already_snake", "already_snake"},
    {"a-b.c", "a-b.c", "a-b.c"},
    {"my file\xc3\xa4\xff", "my_file__", "my_file__"},
    {"", "_", "_"},
    {"ABC", "ABC", "abc"},
    {A64 A64 "b", A64 A64, A64 A64},
    {A64 A64 "B", A64 A64, A64 A64},
};

START_TEST(test_name)
{
	struct buf b;

	buf_init(&b, 1024);
	buf_add_str(&b, "x:");
	graphql_put_tool_name(&b, names[_i].name, false);
	ck_assert_str_eq(buf_cstr(&b) + 2, names[_i].keep);
	buf_reset(&b);
	graphql_put_tool_name(&b, names[_i].name, true);
	/* The letter that no longer fits leaves its underscore out as well. */
	ck_assert_str_eq(buf_cstr(&b), names[_i].snake);
	buf_fini(&b);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {test_good, COUNT(good)},
	    {test_bad, COUNT(bad)},
	    {test_nul, 1},
	    {test_longest, 1},
	    {test_nest, COUNT(nests)},
	    {test_most_variables, 1},
	    {test_name, COUNT(names)},
	};

	return rig_run("graphql_document", NULL, NULL, tests, COUNT(tests));
}
