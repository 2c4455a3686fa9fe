/* layer: gateway */
/* SPDX-License-Identifier: MIT */
/* Definitions and arguments by splice: what changes, and that nothing else does. */
#include "mcpvisor/shape.h"

#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The texts of a shape, as a conf has them. */
struct texts {
	const char *description, *fixed, *defaults;
};

static char *
dup_or_null(const char *s)
{
	return s != NULL ? mem_xstrdup(s) : NULL;
}

static struct tool_shape
shape_of(const struct texts *t)
{
	return (struct tool_shape){.description = dup_or_null(t->description),
	    .fixed = dup_or_null(t->fixed),
	    .defaults = dup_or_null(t->defaults)};
}

static void
shape_end(struct tool_shape *s)
{
	mem_free(s->description);
	mem_free(s->fixed);
	mem_free(s->defaults);
}

static struct jtext
jtext_from(const char *s)
{
	return (struct jtext){s, s != NULL ? strlen(s) : 0};
}

static void
assert_json(const struct buf *b)
{
	struct json_msg json;

	ck_assert_int_eq(b->err, MV_OK);
	ck_assert_msg(json_scan(&json, b->data, b->len, false) == MV_OK, "%.*s",
	    (int)b->len, b->data);
}

/* ---- definitions ---- */

static const struct {
	const char *definition;
	struct texts s;
	const char *want; /* with the name "P" */
} definitions[] = {
    {"{\"name\":\"t\"}", {NULL, NULL, NULL}, "{\"name\":\"P\"}"},
    {"{\"x\" : 1e400 , \"n\\u0061me\" : \"t\" ,\"description\":\"d\"}",
	{NULL, NULL, NULL},
	"{\"x\" : 1e400 , \"n\\u0061me\" : \"P\" ,\"description\":\"d\"}"},
    /* A description in place of its own, all of them, or behind the name. */
    {"{\"name\":\"t\",\"description\" : \"old\" }", {"new \"one\"\n", NULL, NULL},
	"{\"name\":\"P\",\"description\" : \"new \\\"one\\\"\\n\" }"},
    {"{\"descriptio\\u006e\":7,\"name\":\"t\",\"description\":\"x\"}", {"", NULL, NULL},
	"{\"descriptio\\u006e\":\"\",\"name\":\"P\",\"description\":\"\"}"},
    {"{\"name\":\"t\"}", {"d", NULL, NULL}, "{\"name\":\"P\",\"description\":\"d\"}"},
    {"{ \"a\" : {\"description\":\"x\"}, \"name\" : \"t\" }", {"d", NULL, NULL},
	"{ \"a\" : {\"description\":\"x\"}, \"name\" : \"P\",\"description\":\"d\" }"},
    /* Arguments that are ours. */
    {"{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{},"
     "\"b\":{\"x\":1.0},\"c\":{}},\"required\":[\"a\",\"b\",\"c\"]}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
	"\"b\":{\"x\":1.0},\"c\":{}},\"required\":[\"b\",\"c\"]}}"},
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},"
     "\"required\":[\"a\",\"b\",\"c\"]}}",
	{NULL, "{\"b\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{\"a\":{},\"c\":{}},"
	"\"required\":[\"a\",\"c\"]}}"},
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},"
     "\"required\":[\"a\",\"b\",\"c\"]}}",
	{NULL, "{\"c\":1}", "{\"a\":2}"},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{\"b\":{}},"
	"\"required\":[\"b\"]}}"},
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{}},\"required\":[\"a\"]}}",
	{NULL, NULL, "{\"a\":2}"},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{},\"required\":[]}}"},
    /* In any spelling, as often as it comes; white space of the others stays. */
    {"{\"name\":\"t\",\"inputSchem\\u0061\":{ \"propertie\\u0073\" : { \"\\u0061\" : 1 "
     ",\t\"b\" : 2 , \"a\" : 3 , \"c\":4 } , \"required\" : [ \"\\u0061\" , \"b\" ,"
     "\"a\" ] }}",
	{NULL, "{\"\\u0061\":1}", NULL},
	"{\"name\":\"P\",\"inputSchem\\u0061\":{ \"propertie\\u0073\" : { \"b\" : 2 , "
	"\"c\":4 } , \"required\" : [ \"b\" ] }}"},
    /* What is not there, or is no list, is not looked for. */
    {"{\"name\":\"t\",\"inputSchema\":{ \"properties\" : "
     "[\"a\"],\"required\":{\"a\":1}}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{ \"properties\" : [\"a\"],"
	"\"required\":{\"a\":1}}}"},
    {"{\"name\":\"t\",\"inputSchema\":true,\"properties\":{\"a\":1}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":true,\"properties\":{\"a\":1}}"},
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{ \"b\" : 1 },\"required\":[ 7, "
     "\"b\" ]}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{ \"b\" : 1 },\"required\":[ 7, "
	"\"b\" ]}}"},
    /* What else a schema says of them stays. */
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{},\"b\":{\"properties\":{"
     "\"a\":1}}},\"oneOf\":[{\"required\":[\"a\"]}],\"dependentRequired\":{\"a\":[\"b\"]"
     "}},\"outputSchema\":{\"properties\":{\"a\":{}},\"required\":[\"a\"]}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{\"b\":{\"properties\":{"
	"\"a\":1}}},\"oneOf\":[{\"required\":[\"a\"]}],\"dependentRequired\":{\"a\":["
	"\"b\"]}},\"outputSchema\":{\"properties\":{\"a\":{}},\"required\":[\"a\"]}}"},
    /* Case matters here: it is another argument. */
    {"{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"A\":{}}}}",
	{NULL, "{\"a\":1}", NULL},
	"{\"name\":\"P\",\"inputSchema\":{\"properties\":{\"A\":{}}}}"},
};

static void
put_definition(struct buf *out, const char *definition, const struct tool_shape *s)
{
	struct jtext def = jtext_from(definition);

	shape_put_definition(out, def, json_member(def, "name"), jtext_from("\"P\""), s);
}

START_TEST(definitions_are_spliced)
{
	struct tool_shape s = shape_of(&definitions[_i].s);
	struct buf b;

	buf_init(&b, 65536);
	put_definition(&b, definitions[_i].definition, &s);
	assert_json(&b);
	ck_assert_str_eq(buf_cstr(&b), definitions[_i].want);
	buf_reset(&b);
	put_definition(&b, "{\"name\":\"t\",\"description\":\"d\"}", NULL);
	ck_assert_str_eq(buf_cstr(&b), "{\"name\":\"P\",\"description\":\"d\"}");
	buf_fini(&b);
	shape_end(&s);
}
END_TEST

/* ---- arguments ---- */

static const struct {
	const char *arguments; /* NULL: absent */
	const char *fixed, *defaults;
	const char *want; /* NULL: refused, for bad */
	const char *bad;
} arguments[] = {
    {NULL, "{\"a\":1}", NULL, "{\"a\":1}", NULL},
    {NULL, NULL, "{\"a\":1}", "{\"a\":1}", NULL},
    {NULL, NULL, NULL, "{}", NULL},
    {"{}", "{}", "{}", "{}", NULL},
    {"{}", "{\"a\":1,\"b\":[2]}", "{\"c\":null}", "{\"a\":1,\"b\":[2],\"c\":null}", NULL},
    {"{ }", "{\"a\":1}", NULL, "{\"a\":1 }", NULL},
    {"{\"x\":1e400 }", "{\"a\":1}", "{\"b\":2}", "{\"x\":1e400,\"a\":1,\"b\":2 }", NULL},
    /* In place, in any spelling, as often as it comes. */
    {"{\"a\":\"mine\"}", "{\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"{ \"x\" : 1, \"\\u0061\" : {\"q\":2} , \"a\":3, \"y\":4}", "{\"a\":1}", NULL,
	"{ \"x\" : 1, \"\\u0061\" : 1 , \"a\":1, \"y\":4}", NULL},
    {"{\"b\":\"x\",\"a\":\"y\"}", "{\"a\":1,\"b\":2}", NULL, "{\"b\":2,\"a\":1}", NULL},
    {"{\"x\":{\"a\":7}}", "{\"a\":1}", NULL, "{\"x\":{\"a\":7},\"a\":1}", NULL},
    /* A default is for who says nothing; null is something. */
    {"{\"a\":null}", NULL, "{\"a\":1}", "{\"a\":null}", NULL},
    {"{\"\\u0061\":7}", NULL, "{\"a\":1,\"b\":2}", "{\"\\u0061\":7,\"b\":2}", NULL},
    {"{\"A\":7}", NULL, "{\"a\":1}", "{\"A\":7,\"a\":1}", NULL},
    /* What is fixed has no default, and counts once. */
    {"{}", "{\"a\":1}", "{\"\\u0061\":2}", "{\"a\":1}", NULL},
    {"{}", "{\"a\":1,\"a\":2}", NULL, "{\"a\":1}", NULL},
    {"{\"a\":0}", "{\"a\":1,\"a\":2}", NULL, "{\"a\":1}", NULL},
    /* No value of ours breaks a line. */
    {"{\"a\":0}", "{\"a\":[\n1,\r\n2]}", "{\"b\":{\n}}", "{\"a\":[ 1,  2],\"b\":{ }}",
	NULL},
    /* Another parser could take these for it. */
    {"{\"x\":1,\"A\":7}", "{\"a\":1}", NULL, NULL, "\"A\""},
    {"{\"\\u0041\":7}", "{\"a\":1}", NULL, NULL, "\"\\u0041\""},
    {"{\"a\":1,\"A\":7}", "{\"a\":1}", NULL, NULL, "\"A\""},
    {"{\"PA\xc5\xbf\xc5\xbf\":7}", "{\"pass\":1}", NULL, NULL, "\"PA\xc5\xbf\xc5\xbf\""},
    {"{\"\\u212aey\":7}", "{\"key\":1}", NULL, NULL, "\"\\u212aey\""},
    {"{\"key\":7}",
	"{\"\xe2\x84\xaa"
	"ey\":1}",
	NULL, NULL, "\"key\""},
    {"{\"\xc3\x84\":7}", "{\"\xc3\xa4\":1}", NULL, "{\"\xc3\x84\":7,\"\xc3\xa4\":1}",
	NULL},
    {"{\"ab\":7}", "{\"a\":1}", NULL, "{\"ab\":7,\"a\":1}", NULL},
    {"{\"\":7}", "{\"a\":1}", NULL, "{\"\":7,\"a\":1}", NULL},
    {"{\"\":7}", "{\"\":1}", NULL, "{\"\":1}", NULL},
    /* No object. */
    {"null", "{\"a\":1}", NULL, NULL, NULL},
    {"[]", "{\"a\":1}", NULL, NULL, NULL},
    {"\"{}\"", NULL, "{\"a\":1}", NULL, NULL},
    {"7", NULL, NULL, NULL, NULL},
};

START_TEST(arguments_are_spliced)
{
	const struct texts t = {NULL, arguments[_i].fixed, arguments[_i].defaults};
	struct tool_shape s = shape_of(&t);
	struct jtext bad, want = jtext_from(arguments[_i].bad);
	enum mv_err err;
	struct buf b;

	buf_init(&b, 65536);
	buf_add_str(&b, "x");
	err = shape_put_arguments(&b, jtext_from(arguments[_i].arguments), &s, &bad);
	if (arguments[_i].want != NULL) {
		ck_assert_int_eq(err, MV_OK);
		ck_assert_str_eq(buf_cstr(&b) + 1, arguments[_i].want);
		ck_assert_uint_eq(bad.n, 0);
	} else {
		ck_assert_int_eq(err, MV_PARAMS);
		ck_assert_uint_eq(bad.n, want.n);
		if (want.n > 0)
			ck_assert_mem_eq(bad.p, want.p, want.n);
	}
	buf_fini(&b);
	shape_end(&s);
}
END_TEST

START_TEST(no_room_for_arguments)
{
	const struct texts t = {NULL, "{\"a\":\"0123456789\"}", NULL};
	struct tool_shape s = shape_of(&t);
	struct jtext bad;
	struct buf b;

	buf_init(&b, 8);
	ck_assert_int_eq(
	    shape_put_arguments(&b, jtext_from("{}"), &s, &bad), MV_TOO_LONG);
	buf_fini(&b);
	shape_end(&s);
}
END_TEST

static const struct {
	const char *key, *text;
	bool like;
} likes[] = {
    {"\"arguments\"", "arguments", true},
    {"\"Arguments\"", "arguments", true},
    {"\"argument\\u0073\"", "arguments", true},
    {"\"argument\xc5\xbf\"", "arguments", true},
    {"\"argument\"", "arguments", false},
    {"\"arguments \"", "arguments", false},
    {"\"\"", "", true},
};

START_TEST(keys_that_are_like)
{
	ck_assert_int_eq(
	    shape_key_is_like(jtext_from(likes[_i].key), likes[_i].text), likes[_i].like);
}
END_TEST

/* ---- any object ---- */

static unsigned
pick(unsigned n)
{
	return (unsigned)rand() % n;
}

static void
put_space(struct buf *b)
{
	static const char *const spaces[] = {"", "", "", " ", "\t", "  "};

	buf_add_str(b, spaces[pick(6)]);
}

/* One of the letters a to f, in some spelling. Returns which. */
static unsigned
put_odd_key(struct buf *b)
{
	unsigned letter = pick(6);

	switch (pick(3)) {
	case 0:
		buf_addf(b, "\"\\u%04x\"", 'a' + letter);
		break;
	case 1:
		buf_addf(b, "\"\\u%04X\"", 'a' + letter);
		break;
	default:
		buf_addf(b, "\"%c\"", (int)('a' + letter));
		break;
	}
	return letter;
}

static void
put_odd_value(struct buf *b)
{
	static const char *const values[] = {"1.0", "\"a\"", "{\"a\" : [1,{\"b\":2}] }",
	    "[\"a\",\"}\"]", "\"\\\"],}\"", "null", "-1e400", "{}", "[ ]", "\"\\ud800\""};

	buf_add_str(b, values[pick(10)]);
}

struct odd {
	struct buf text;
	unsigned n;
	struct {
		unsigned letter;
		struct jtext key, value;
	} v[12];
};

static void
odd_make(struct odd *o)
{
	struct jtext key, value;
	struct json_iter it;

	buf_reset(&o->text);
	o->n = pick(12);
	buf_add_char(&o->text, '{');
	put_space(&o->text);
	for (unsigned i = 0; i < o->n; i++) {
		if (i > 0)
			buf_add_char(&o->text, ',');
		put_space(&o->text);
		o->v[i].letter = put_odd_key(&o->text);
		put_space(&o->text);
		buf_add_char(&o->text, ':');
		put_space(&o->text);
		put_odd_value(&o->text);
		put_space(&o->text);
	}
	buf_add_char(&o->text, '}');
	json_iter_init(&it, (struct jtext){o->text.data, o->text.len});
	for (unsigned i = 0; json_next_member(&it, &key, &value); i++) {
		o->v[i].key = key;
		o->v[i].value = value;
	}
}

static void
assert_same(struct jtext a, struct jtext b)
{
	ck_assert_msg(a.n == b.n && memcmp(a.p, b.p, a.n) == 0, "%.*s is not %.*s",
	    (int)a.n, a.p, (int)b.n, b.p);
}

/* a and b are fixed, c has a default. */
static void
check_arguments(const struct odd *o, const struct tool_shape *s, struct buf *out)
{
	struct jtext key, value, bad;
	struct json_iter it;
	unsigned seen = 0;

	buf_reset(out);
	ck_assert_int_eq(
	    shape_put_arguments(out, (struct jtext){o->text.data, o->text.len}, s, &bad),
	    MV_OK);
	assert_json(out);
	json_iter_init(&it, (struct jtext){out->data, out->len});
	for (unsigned i = 0; i < o->n; i++) {
		ck_assert(json_next_member(&it, &key, &value));
		assert_same(key, o->v[i].key);
		seen |= 1u << o->v[i].letter;
		if (o->v[i].letter < 2)
			assert_same(value, jtext_from(o->v[i].letter == 0 ? "10" : "20"));
		else
			assert_same(value, o->v[i].value);
	}
	for (unsigned letter = 0; letter < 3; letter++) {
		if (seen >> letter & 1)
			continue;
		ck_assert(json_next_member(&it, &key, &value));
		ck_assert(json_string_is(key, (const char[]){(char)('a' + letter), 0}));
		ck_assert_int_eq(value.p[0], (char)('1' + letter));
	}
	ck_assert(!json_next_member(&it, &key, &value));
}

static void
check_schema(const struct odd *o, const struct tool_shape *s, struct buf *out)
{
	struct jtext key, value, schema;
	struct json_iter it;
	struct buf def;
	bool cut = false;

	buf_init(&def, 1u << 16);
	buf_add_str(&def, "{\"name\":\"t\",\"inputSchema\":{\"properties\":");
	buf_add(&def, o->text.data, o->text.len);
	buf_add_str(&def, "}}");
	buf_reset(out);
	put_definition(out, buf_cstr(&def), s);
	assert_json(out);
	schema = json_member((struct jtext){out->data, out->len}, "inputSchema");
	json_iter_init(&it, json_member(schema, "properties"));
	for (unsigned i = 0; i < o->n; i++) {
		if (o->v[i].letter < 3) {
			cut = true;
			continue;
		}
		ck_assert(json_next_member(&it, &key, &value));
		assert_same(key, o->v[i].key);
		assert_same(value, o->v[i].value);
	}
	ck_assert(!json_next_member(&it, &key, &value));
	/* Nothing to cut: not a byte moves. */
	if (!cut) {
		def.data[9] = 'P';
		assert_same((struct jtext){out->data, out->len},
		    (struct jtext){def.data, def.len});
	}
	buf_fini(&def);
}

START_TEST(any_object)
{
	const struct texts t = {NULL, "{\"a\":10,\"\\u0062\":20}", "{\"c\":30}"};
	struct tool_shape s = shape_of(&t);
	struct odd o = {.n = 0};
	struct buf out;

	srand(11);
	buf_init(&o.text, 1u << 16);
	buf_init(&out, 1u << 16);
	for (unsigned i = 0; i < 20000; i++) {
		odd_make(&o);
		check_arguments(&o, &s, &out);
		check_schema(&o, &s, &out);
	}
	buf_fini(&out);
	buf_fini(&o.text);
	shape_end(&s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("shape");
	TCase *tc = tcase_create("shape");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, definitions_are_spliced, 0,
	    (int)(sizeof(definitions) / sizeof(definitions[0])));
	tcase_add_loop_test(tc, arguments_are_spliced, 0,
	    (int)(sizeof(arguments) / sizeof(arguments[0])));
	tcase_add_test(tc, no_room_for_arguments);
	tcase_add_loop_test(
	    tc, keys_that_are_like, 0, (int)(sizeof(likes) / sizeof(likes[0])));
	tcase_add_test(tc, any_object);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
