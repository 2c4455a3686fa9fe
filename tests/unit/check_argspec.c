/* layer: result */
/* SPDX-License-Identifier: MIT */
/* Arguments of tools: each sentence that refuses what was sent, and what passes. */
#include "mcpvisor/argspec.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

#include "argspec_rig.h"

/* why NULL: they pass. */
static void
assert_check(const struct argspec *s, struct jtext arguments, const char *why)
{
	bool ok = argspec_check(s, arguments, &out);

	if (why == NULL) {
		ck_assert_msg(ok, "%s", buf_cstr(&out));
		ck_assert_uint_eq(out.len, 0);
	} else {
		ck_assert_str_eq(buf_cstr(&out), why);
		ck_assert(!ok);
	}
	buf_reset(&out);
}

/* ---- the check, by schemas ---- */

#define BIG	  "12345678901234567890"
#define A64	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define UNCHANGED " Retrying unchanged will fail."
#define OBJECT(p) "{\"type\":\"object\",\"properties\":{" p "}}"
#define CLOSED(p)                                                                        \
	"{\"type\":\"object\",\"properties\":{" p "},\"additionalProperties\":false}"
#define INT(range)     OBJECT("\"n\":{\"type\":\"integer\"" range "}")
#define NUMBER(range)  OBJECT("\"n\":{\"type\":\"number\"" range "}")
#define STRING(words)  OBJECT("\"s\":{\"type\":\"string\"" words "}")
#define ARRAY(words)   OBJECT("\"a\":{\"type\":\"array\"" words "}")
#define COUNTED(words) OBJECT("\"o\":{\"type\":\"object\"" words "}")
#define MUST_N(rest)   "Argument 'n' must be " rest "." UNCHANGED
#define MUST_S(rest)   "Argument 's' must " rest "." UNCHANGED
#define ONE_TO_100     ",\"minimum\":1,\"maximum\":100"
#define OVER_2_53      ",\"maximum\":9007199254740993"
#define OVER_2_64      ",\"minimum\":" BIG
#define E_16	       "0000000000000000"

static const struct {
	const char *schema, *arguments, *why; /* NULL: it passes */
} checks[] = {
    {OBJECT(""), NULL, NULL},
    {OBJECT(""), "{}", NULL},
    {OBJECT(""), "[1]", "The arguments must be an object; got [1]." UNCHANGED},
    /* Integers, exactly. */
    {INT(""), "{\"n\":" BIG "}", NULL},
    {INT(""), "{\"n\":-0}", NULL},
    {INT(""), "{\"n\":1.0}", NULL},
    {INT(""), "{\"n\":1e2}", NULL},
    {INT(""), "{\"n\":120E-1}", NULL},
    {INT(""), "{\"n\":0e-999999999999999999999}", NULL},
    {INT(""), "{\"n\":1.5}", MUST_N("an integer; got 1.5")},
    {INT(""), "{\"n\":12e-2}", MUST_N("an integer; got 12e-2")},
    {INT(""), "{\"n\":1e399}", NULL},
    {INT(""), "{\"n\":1e400}", MUST_N("an integer; got 1e400")},
    {INT(""), "{\"n\":1e99999999999999999999}",
	MUST_N("an integer; got 1e99999999999999999999")},
    {INT(""), "{\"n\":true}", MUST_N("an integer; got true")},
    {INT(""), "{\"n\":null}", MUST_N("an integer; got null")},
    {INT(ONE_TO_100), "{\"n\":\"ten\"}", MUST_N("an integer from 1 to 100; got \"ten\"")},
    {INT(ONE_TO_100), "{\"n\":-5}", MUST_N("an integer from 1 to 100; got -5")},
    {INT(ONE_TO_100), "{\"n\":101}", MUST_N("an integer from 1 to 100; got 101")},
    {INT(ONE_TO_100), "{\"n\":1e2}", NULL},
    {INT(ONE_TO_100), "{\"n\":0}", MUST_N("an integer from 1 to 100; got 0")},
    {INT(",\"minimum\":1"), "{\"n\":0}", MUST_N("an integer of at least 1; got 0")},
    {INT(",\"maximum\":-1"), "{\"n\":-0.0}",
	MUST_N("an integer of at most -1; got -0.0")},
    {INT(OVER_2_53), "{\"n\":9007199254740993}", NULL},
    {INT(OVER_2_53), "{\"n\":9007199254740993.0}", NULL},
    {INT(OVER_2_53), "{\"n\":9007199254740994}",
	MUST_N("an integer of at most 9007199254740993; got 9007199254740994")},
    {INT(OVER_2_64), "{\"n\":" BIG "}", NULL},
    {INT(OVER_2_64), "{\"n\":12345678901234567889}",
	MUST_N("an integer of at least " BIG "; got 12345678901234567889")},
    {INT(",\"minimum\":-10,\"maximum\":-2"), "{\"n\":-1}",
	MUST_N("an integer from -10 to -2; got -1")},
    {INT(",\"minimum\":-10,\"maximum\":-2"), "{\"n\":-11}",
	MUST_N("an integer from -10 to -2; got -11")},
    {INT(",\"minimum\":-10,\"maximum\":-2"),
	"{\"n\":-1"
	"0}",
	NULL},
    /* Numbers. */
    {NUMBER(""), "{\"n\":1e400}", NULL},
    {NUMBER(""), "{\"n\":\"1\"}", MUST_N("a number; got \"1\"")},
    {NUMBER(",\"maximum\":0.1"), "{\"n\":0.1" E_16 "0}", NULL},
    {NUMBER(",\"maximum\":0.1"), "{\"n\":0.1" E_16 "1}",
	MUST_N("a number of at most 0.1; got 0.1" E_16 "1")},
    {NUMBER(",\"minimum\":0.01"), "{\"n\":1e-3}",
	MUST_N("a number of at least 0.01; got 1e-3")},
    {NUMBER(",\"minimum\":0.01"), "{\"n\":0.001e1}", NULL},
    {NUMBER(",\"minimum\":0"), "{\"n\":-0}", NULL},
    {NUMBER(",\"minimum\":0"), "{\"n\":-1e-99999999999999}",
	MUST_N("a number of at least 0; got -1e-99999999999999")},
    {NUMBER(",\"maximum\":1e1000"), "{\"n\":1e1001}",
	MUST_N("a number of at most 1e1000; got 1e1001")},
    /* Strings. */
    {STRING(""), "{\"s\":5}", MUST_S("be a string; got 5")},
    {STRING(""), "{\"s\":\"\\u0000\\ud800\"}", NULL},
    {STRING(",\"minLength\":2,\"maxLength\":3"), "{\"s\":\"\\u00e4\xc3\xa4\"}", NULL},
    {STRING(",\"minLength\":2,\"maxLength\":3"),
	"{\"s\":\"\\ud83d\\ude00\xf0\x9f\x98\x80xy\"}",
	MUST_S("be a string of 2 to 3 characters; got "
	       "\"\\ud83d\\ude00\xf0\x9f\x98\x80xy\" (4 characters)")},
    {STRING(",\"minLength\":2,\"maxLength\":3"), "{\"s\":\"x\"}",
	MUST_S("be a string of 2 to 3 characters; got \"x\" (1 character)")},
    {STRING(",\"minLength\":1"), "{\"s\":\"\"}",
	MUST_S("be a string of at least 1 character; got \"\" (0 characters)")},
    {STRING(",\"maxLength\":5"), "{\"s\":[]}",
	MUST_S("be a string of at most 5 characters; got []")},
    {STRING(",\"pattern\":\"^[a-z]+$\""), "{\"s\":\"abc\"}", NULL},
    {STRING(",\"pattern\":\"^[a-z]+$\""), "{\"s\":\"ab\\n\"}",
	MUST_S("match the pattern ^[a-z]+$; got \"ab\\n\"")},
    {STRING(",\"pattern\":\"b\""), "{\"s\":\"abc\"}", NULL},
    {STRING(",\"pattern\":\"^\xc3\xa4$\""), "{\"s\":\"\\u00e4\"}", NULL},
    {STRING(",\"enum\":[\"OPEN\",\"CLOSED\"]"), "{\"s\":\"OP\\u0045N\"}", NULL},
    {STRING(",\"enum\":[\"OPEN\",\"CLOSED\"]"), "{\"s\":\"open\"}",
	MUST_S("be one of OPEN, CLOSED; got \"open\"")},
    {STRING(",\"enum\":[\"OPEN\",\"CLOSED\"]"), "{\"s\":1}",
	MUST_S("be one of OPEN, CLOSED; got 1")},
    /* 64 bytes of a value, no part of a character or an escape. */
    {STRING(",\"maxLength\":1"), "{\"s\":\"" A64 "\"}",
	MUST_S("be a string of at most 1 character; got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... (64 characters)")},
    {STRING(",\"maxLength\":1"), "{\"s\":\"" A64 "\xc3\xa4\"}",
	MUST_S("be a string of at most 1 character; got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... (65 characters)")},
    {INT(""), "{\"n\":\"" E_16 E_16 E_16 "0000000000\\u0041\"}",
	MUST_N("an integer; got \"" E_16 E_16 E_16 "0000000000...")},
    {INT(""), "{\"n\":\"\x7f\xc2\x85\xe2\x80\x8b\"}",
	MUST_N("an integer; got \"\\u007f\\u0085\xe2\x80\x8b\"")},
    {INT(""), "{\"n\":[1,\n\t2]}", MUST_N("an integer; got [1,\\u000a\\u00092]")},
    /* Ours as well: no escapes are in it any more. */
    {STRING(",\"enum\":[\"a\\\\\\r\\\\u0\"]"), "{\"s\":1}",
	MUST_S("be one of a\\\\u000d\\u0; got 1")},
    /* Booleans, arrays and objects. */
    {OBJECT("\"b\":{\"type\":\"boolean\"}"), "{\"b\":false}", NULL},
    {OBJECT("\"b\":{\"type\":\"boolean\"}"), "{\"b\":\"yes\"}",
	"Argument 'b' must be true or false; got \"yes\"." UNCHANGED},
    {ARRAY(""), "{\"a\":[{},[[[]]],null]}", NULL},
    {ARRAY(""), "{\"a\":{}}", "Argument 'a' must be an array; got {}." UNCHANGED},
    {ARRAY(",\"maxItems\":2"), "{\"a\":[1,2]}", NULL},
    {ARRAY(",\"maxItems\":2"), "{\"a\":[1,2,3]}",
	"Argument 'a' must be an array of at most 2 items; got 3 items." UNCHANGED},
    {ARRAY(",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"),
	"{\"a\":[[],[\"x\",7]]}",
	"Argument 'a[1][1]' must be a string; got 7." UNCHANGED},
    {COUNTED(",\"minProperties\":1,\"maxProperties\":1"), "{\"o\":{\"x\":1}}", NULL},
    {COUNTED(",\"minProperties\":1,\"maxProperties\":1"), "{\"o\":{}}",
	"Argument 'o' must be an object of exactly 1 member; got 0 members." UNCHANGED},
    {COUNTED(",\"minProperties\":2"), "{\"o\":{\"x\":1}}",
	"Argument 'o' must be an object of at least 2 members; got 1 member." UNCHANGED},
    {COUNTED(",\"maxProperties\":1"), "{\"o\":{\"x\":1,\"x\":2}}",
	"Argument 'o' must be an object of at most 1 member; got 2 members." UNCHANGED},
    /* Members. */
    {OBJECT("\"o\":" OBJECT("\"a\":{\"type\":\"array\",\"items\":" INT("") "}")),
	"{\"o\":{\"a\":[{\"n\":1},{\"n\":\"\"}]}}",
	"Argument 'o.a[1].n' must be an integer; got \"\"." UNCHANGED},
    {OBJECT("\"a\":{}"), "{\"a\":null,\"b\":[]}", NULL},
    {CLOSED("\"a\":{},\"b\":{}"), "{\"c\":1}",
	"Unknown argument 'c'; known are a, b." UNCHANGED},
    {CLOSED(""), "{\"c\":1}", "Unknown argument 'c'; there are none." UNCHANGED},
    {OBJECT("\"o\":" CLOSED("\"a\":{}")), "{\"o\":{\"\\u0000'\x7f\":1}}",
	"Unknown argument 'o.\\u0000'\\u007f'; known are a." UNCHANGED},
    {CLOSED("\"limit\":{}"), "{\"Lim\\u0049t\":1}",
	"Unknown argument 'Lim\\u0049t'; it is spelled 'limit'." UNCHANGED},
    {OBJECT("\"limits\":{}"), "{\"limit\\u017f\":1}",
	"Unknown argument 'limit\\u017f'; it is spelled 'limits'." UNCHANGED},
    {OBJECT("\"k\":{}"), "{\"\xe2\x84\xaa\":1}",
	"Unknown argument '\xe2\x84\xaa'; it is spelled 'k'." UNCHANGED},
    /* Both are known. */
    {CLOSED("\"user\":{},\"User\":{}"), "{\"User\":1,\"user\":2}", NULL},
    {OBJECT("\"a\":{}"), "{\"a\":1,\"\\u0061\":1}",
	"Argument 'a' must be given once; it was given twice." UNCHANGED},
    {"{\"type\":\"object\",\"properties\":{\"id\":{},\"x\":{}},\"required\":[\"id\"]}",
	"{\"x\":1}", "Missing required argument 'id'. Add it and call again."},
    {"{\"type\":\"object\",\"properties\":{\"id\":{}},\"required\":[\"id\"]}", NULL,
	"Missing required argument 'id'. Add it and call again."},
    {OBJECT("\"o\":{\"type\":\"object\",\"properties\":{\"id\":{}},\"required\":"
	    "[\"id\"]}"),
	"{\"o\":{}}", "Missing required argument 'o.id'. Add it and call again."},
};

START_TEST(arguments_are_checked)
{
	struct argspec *s = spec_of(checks[_i].schema);

	assert_check(s, text_of(checks[_i].arguments), checks[_i].why);
	/* The words are no part of the verdict. */
	ck_assert(argspec_check(s, text_of(checks[_i].arguments), NULL) ==
		  (checks[_i].why == NULL));
	argspec_free(s);
}
END_TEST

/* ---- what no schema says ---- */

static struct argspec *
spec_with(struct argspec *member)
{
	struct argspec *s = argspec_new(ARG_OBJECT, NULL);

	argspec_add_member(s, member);
	return s;
}

START_TEST(origin_and_null)
{
	struct argspec *id = argspec_new(ARG_STRING, "id"), *s = spec_with(id);

	id->origin = mem_xstrdup("GraphQL type ID!");
	id->is_required = true;
	id->takes_integer = true;
	id->max_length = 3;
	assert_check(s, text_of("{}"),
	    "Missing required argument 'id' (GraphQL type ID!). Add it and call again.");
	assert_check(s, text_of("{\"id\":12}"), NULL);
	assert_check(s, text_of("{\"id\":-123}"),
	    "Argument 'id' must be a string or an integer of at most 3 characters; got "
	    "-123 (4 characters)." UNCHANGED);
	assert_check(s, text_of("{\"id\":1.0}"),
	    "Argument 'id' must be a string or an integer of at most 3 characters; got "
	    "1.0." UNCHANGED);
	assert_check(s, text_of("{\"id\":null}"),
	    "Argument 'id' must be a string or an integer of at most 3 characters; got "
	    "null." UNCHANGED);
	id->is_nullable = true;
	assert_check(s, text_of("{\"id\":null}"), NULL);
	argspec_put_schema(s, &out);
	ck_assert_str_eq(buf_cstr(&out),
	    "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\","
	    "\"maxLength\":3}},\"required\":[\"id\"],\"additionalProperties\":false}");
	argspec_free(s);
}
END_TEST

START_TEST(patterns_of_the_conf_fit_the_whole)
{
	struct argspec *a = argspec_new(ARG_STRING, "a"), *s = spec_with(a);

	a->pattern = pattern_new("x|xy", true, NULL);
	assert_check(s, text_of("{\"a\":\"xy\"}"), NULL);
	assert_check(s, text_of("{\"a\":\"xyz\"}"),
	    "Argument 'a' must match the pattern x|xy; got \"xyz\"." UNCHANGED);
	argspec_put_schema(a, &out);
	ck_assert_str_eq(
	    buf_cstr(&out), "{\"type\":\"string\",\"pattern\":\"^(?:x|xy)$\"}");
	argspec_free(s);
}
END_TEST

static const struct {
	const char *value;
	bool passes;
} plain[] = {
    {"\"a\\tb\\nc\\u000a\x7f\"", true},
    {"\"\\u0000\"", false},
    {"\"a\\r\"", false},
    {"\"\\u001B\"", false},
};

START_TEST(control_characters)
{
	struct argspec *a = argspec_new(ARG_STRING, "a"), *s = spec_with(a);
	struct buf text, why;

	a->must_be_plain = true;
	buf_init(&text, 256);
	buf_init(&why, 256);
	buf_addf(&text, "{\"a\":%s}", plain[_i].value);
	buf_addf(&why,
	    "Argument 'a' must have no control characters other than tab and newline; "
	    "got %s." UNCHANGED,
	    plain[_i].value);
	assert_check(
	    s, text_of(buf_cstr(&text)), plain[_i].passes ? NULL : buf_cstr(&why));
	buf_fini(&text);
	buf_fini(&why);
	argspec_free(s);
}
END_TEST

#define SECRET	"hunter2"
#define UNSHOWN "; its value is not shown." UNCHANGED

/* Whatever is wrong with it, and wherever it stands. */
static const struct {
	const char *arguments, *why;
} secrets[] = {
    {"{\"token\":[\"" SECRET "\"]}",
	"Argument 'token' must be a string of at least 8 characters" UNSHOWN},
    {"{\"token\":\"" SECRET "\"}",
	"Argument 'token' must be a string of at least 8 characters" UNSHOWN},
    {"{\"token\":\"\\u0068unter22" SECRET "\"}",
	"Argument 'token' must match the pattern [a-z]*" UNSHOWN},
    {"{\"token\":\"" SECRET "\",\"token\":\"" SECRET "\"}",
	"Argument 'token' must be a string of at least 8 characters" UNSHOWN},
    {"{\"auth\":[\"" SECRET "\"]}", "Argument 'auth' must be an object" UNSHOWN},
    {"{\"auth\":{\"key\":{\"" SECRET "\":1}}}",
	"Argument 'auth.key' has a member that is not known; known are in." UNCHANGED},
    {"{\"auth\":{\"key\":{\"in\":\"" SECRET "\"}}}",
	"Argument 'auth.key.in' must be an integer" UNSHOWN},
};

START_TEST(secrets_are_not_shown)
{
	struct argspec *token = argspec_new(ARG_STRING, "token"), *s = spec_with(token);
	struct argspec *auth = argspec_new(ARG_OBJECT, "auth");
	struct argspec *key = argspec_new(ARG_OBJECT, "key");

	token->is_secret = true;
	token->min_length = 8;
	token->pattern = pattern_new("[a-z]*", true, NULL);
	key->is_secret = true;
	argspec_add_member(key, argspec_new(ARG_INTEGER, "in"));
	argspec_add_member(auth, key);
	argspec_add_member(s, auth);
	assert_check(s, text_of(secrets[_i].arguments), secrets[_i].why);
	argspec_free(s);
}
END_TEST

START_TEST(lists_of_values_are_cut)
{
	struct argspec *e = argspec_new(ARG_STRING, "e"), *s = spec_with(e);
	char word[8] = "V00";

	for (int i = 0; i < 30; i++) {
		word[1] = (char)('0' + i / 10);
		word[2] = (char)('0' + i % 10);
		argspec_add_value(e, word);
	}
	argspec_put_schema(e, &out);
	ck_assert_str_eq(buf_cstr(&out), "{\"type\":\"string\"}");
	buf_reset(&out);
	assert_check(s, text_of("{\"e\":\"W\"}"),
	    "Argument 'e' must be one of V00, V01, V02, V03, V04, V05, V06, V07, V08, "
	    "V09, V10, V11, V12, V13, V14, V15, V16, V17, V18, V19 and 10 more; got "
	    "\"W\"." UNCHANGED);
	/* Others are taken, and not talked of. */
	e->n_shown = 2;
	assert_check(s, text_of("{\"e\":\"V29\"}"), NULL);
	assert_check(s, text_of("{\"e\":\"W\"}"),
	    "Argument 'e' must be one of V00, V01; got \"W\"." UNCHANGED);
	argspec_put_schema(e, &out);
	ck_assert_str_eq(
	    buf_cstr(&out), "{\"type\":\"string\",\"enum\":[\"V00\",\"V01\"]}");
	argspec_free(s);
}
END_TEST

START_TEST(lists_of_names_are_cut)
{
	struct argspec *s = argspec_new(ARG_OBJECT, NULL);
	char name[2] = "a";

	for (; name[0] <= 'w'; name[0]++)
		argspec_add_member(s, argspec_new(ARG_ANY, name));
	ck_assert_str_eq(argspec_member(s, "w")->name, "w");
	ck_assert_ptr_null(argspec_member(s, "x"));
	ck_assert_ptr_null(s->members[s->n_members]);
	assert_check(s, text_of("{\"xx\":1}"),
	    "Unknown argument 'xx'; known are a, b, c, d, e, f, g, h, i, j, k, l, m, n, "
	    "o, p, q, r, s, t and 3 more." UNCHANGED);
	argspec_free(s);
}
END_TEST

/* ---- what helps others ---- */

START_TEST(values_by_name)
{
	struct jtext arguments = text_of("{\"\\u0061\":" BIG ",\"b\":null}");
	struct jtext a = argspec_get(arguments, "a");

	ck_assert_uint_eq(a.n, strlen(BIG));
	ck_assert_ptr_eq(a.p, arguments.p + 10);
	ck_assert_uint_eq(argspec_get(arguments, "b").n, 0);
	ck_assert_uint_eq(argspec_get(arguments, "c").n, 0);
	ck_assert_uint_eq(argspec_get(text_of(NULL), "a").n, 0);
	argspec_free(NULL);
}
END_TEST

static const struct {
	const char *number, *digits; /* NULL: it is no integer */
} integers[] = {
    {"0", "0"},
    {"-0.0e5", "0"},
    {"7", "7"},
    {"-120", "-120"},
    {"1.0", "1"},
    {"1.20e3", "1200"},
    {"0.0012e4", "12"},
    {"1200e-2", "12"},
    {"1e+2", "100"},
    {BIG, BIG},
    {BIG ".000", BIG},
    {"12e-3", NULL},
    {"0.5", NULL},
    {"1e400", NULL},
    {"1e18446744073709551616", NULL},
    {"\"1\"", NULL},
    {"", NULL},
};

START_TEST(integers_as_digits)
{
	bool is = argspec_put_integer(text_of(integers[_i].number), &out);

	ck_assert(is == (integers[_i].digits != NULL));
	ck_assert_str_eq(
	    out.len > 0 ? buf_cstr(&out) : "", is ? integers[_i].digits : "");
}
END_TEST

/* ---- sizes ---- */

#define BIG_BYTES (1u << 20)

START_TEST(long_arguments)
{
	struct argspec *s = spec_of(CLOSED(
	    "\"s\":{\"type\":\"string\",\"pattern\":\"^x*$\",\"maxLength\":2000000},"
	    "\"a\":{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"maximum\":0}}"));
	struct buf text;

	buf_init(&text, 4 * BIG_BYTES);
	/* An escape makes it be decoded. */
	buf_add_str(&text, "{\"s\":\"\\u0078");
	for (size_t i = 0; i < BIG_BYTES; i++)
		buf_add_char(&text, 'x');
	buf_add_str(&text, "\",\"a\":[0");
	for (size_t i = 0; i < BIG_BYTES / 16; i++)
		buf_add_str(&text, ",0");
	buf_add_str(&text, "]}");
	ck_assert_int_eq(text.err, MV_OK);
	assert_check(s, (struct jtext){text.data, text.len}, NULL);
	/* Room for the sentence is the caller's business. */
	ck_assert_int_eq(buf_reserve(&out, 256), MV_OK);
	mem_fail_at(1, 1);
	assert_check(s, (struct jtext){text.data, text.len},
	    "Argument 's' could not be checked: out of memory. A retry may succeed.");
	/* A key that cannot be looked at may be like a known one. */
	assert_check(s, text_of("{\"\\u0053\":1}"),
	    "The arguments could not be checked: out of memory. A retry may succeed.");
	mem_fail_at(0, 0);
	buf_fini(&text);
	argspec_free(s);
}
END_TEST

/* One number of a million digits, against another. */
START_TEST(long_numbers)
{
	struct argspec *s = spec_of(NUMBER(",\"maximum\":1e1000000"));
	struct buf text;

	buf_init(&text, 2 * BIG_BYTES);
	buf_add_str(&text, "{\"n\":1");
	for (size_t i = 0; i < 1000000; i++)
		buf_add_char(&text, '0');
	buf_add_char(&text, '}');
	assert_check(s, (struct jtext){text.data, text.len}, NULL);
	text.data[text.len - 2] = '1';
	assert_check(s, (struct jtext){text.data, text.len},
	    MUST_N("a number of at most 1e1000000; got "
		   "1" E_16 E_16 E_16 "000000000000000..."));
	buf_fini(&text);
	argspec_free(s);
}
END_TEST

/* Depth is that of the schema, not that of a value. */
START_TEST(deep_values)
{
	struct argspec *s = spec_of(OBJECT("\"x\":{},\"n\":{\"type\":\"integer\"}"));
	struct buf text;

	buf_init(&text, 4 * BIG_BYTES);
	buf_add_str(&text, "{\"x\":");
	for (size_t i = 0; i < BIG_BYTES; i++)
		buf_add_char(&text, '[');
	for (size_t i = 0; i < BIG_BYTES; i++)
		buf_add_char(&text, ']');
	buf_add_char(&text, '}');
	assert_check(s, (struct jtext){text.data, text.len}, NULL);
	text.data[2] = 'n';
	ck_assert(!argspec_check(s, (struct jtext){text.data, text.len}, &out));
	ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "must be an integer; got [[[["));
	ck_assert_uint_lt(out.len, 200);
	buf_fini(&text);
	argspec_free(s);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("argspec");

	tcase_add_loop_test(tc, arguments_are_checked, 0, N(checks));
	tcase_add_test(tc, origin_and_null);
	tcase_add_test(tc, patterns_of_the_conf_fit_the_whole);
	tcase_add_loop_test(tc, control_characters, 0, N(plain));
	tcase_add_loop_test(tc, secrets_are_not_shown, 0, N(secrets));
	tcase_add_test(tc, lists_of_values_are_cut);
	tcase_add_test(tc, lists_of_names_are_cut);
	tcase_add_test(tc, values_by_name);
	tcase_add_loop_test(tc, integers_as_digits, 0, N(integers));
	tcase_add_test(tc, long_arguments);
	tcase_add_test(tc, long_numbers);
	tcase_add_test(tc, deep_values);
	return run_suite(suite_create("argspec"), tc);
}
