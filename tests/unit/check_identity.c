/* layer: result */
/* SPDX-License-Identifier: MIT */
/* Which tools tell who it is, what their answers say, and the hint. */
#include "mcpvisor/identity.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static struct json_msg json;
static struct buf msg;

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, s == NULL ? 0 : strlen(s)};
}

static void
scan(void)
{
	ck_assert_int_eq(json_scan(&json, msg.data, msg.len, false), MV_OK);
}

/* members: of the message, after the id. */
static void
message(const char *members)
{
	buf_fini(&msg);
	buf_init(&msg, CAP_MESSAGE_BYTES);
	buf_addf(&msg, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", members);
	scan();
}

/* A result of one text block. */
static void
message_of_text(const char *text, size_t n)
{
	buf_fini(&msg);
	buf_init(&msg, CAP_MESSAGE_BYTES);
	buf_add_str(
	    &msg, "{\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(&msg, text, n);
	buf_add_str(&msg, "}]}}");
	scan();
}

static void
setup(void)
{
	buf_init(&msg, CAP_MESSAGE_BYTES);
}

static void
teardown(void)
{
	buf_fini(&msg);
}

/* ---- verdicts ---- */

#define NOT_LOGGED_IN "(?i)not (logged|signed) in"

/* T is a text, M are members of the message. */
static const struct {
	const char *id, *text, *members, *path, *null_text;
	enum identity_verdict verdict;
} vectors[] = {
#define T(id, text, verdict)                                                             \
	{                                                                                \
		id, text, NULL, NULL, NULL, IDENTITY_##verdict                           \
	}
#define M(id, members, verdict)                                                          \
	{                                                                                \
		id, NULL, members, NULL, NULL, IDENTITY_##verdict                        \
	}
#define SC(id, value, verdict)                                                           \
	M(id,                                                                            \
	    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}],"             \
	    "\"structuredContent\":" value "}",                                          \
	    verdict)
    T("I01", "{\"data\":{\"viewer\":{\"id\":\"1\",\"login\":\"ann\"}}}", RESOLVED),
    T("I02", "{\"data\":{\"viewer\":null}}", UNRESOLVED),
    SC("I03", "{\"data\":{\"viewer\":null}}", UNRESOLVED),
    T("I04", "{\"viewer\":null}", UNRESOLVED),
    T("I05", "null", UNRESOLVED),
    T("I06", "   ", UNRESOLVED),
    M("I07", "\"result\":{\"content\":[]}", UNRESOLVED),
    T("I08", "\"{\\\"user\\\":null}\"", UNRESOLVED),
    T("I09", "```json\n{\"data\":{\"me\":null}}\n```", UNRESOLVED),
    T("I10", "{\"data\":{\"me\":{\"id\":null,\"email\":null,\"__typename\":\"User\"}}}",
	UNRESOLVED),
    T("I11", "{\"data\":{\"me\":null,\"rateLimit\":{\"left\":3}}}", UNRESOLVED),
    T("I12", "{\"ok\":true,\"user\":null}", UNRESOLVED),
    T("I13", "{\"authenticated\":false,\"host\":\"x\"}", UNRESOLVED),
    T("I14", "{\"login\":\"ann\",\"email\":null}", RESOLVED),
    T("I15", "Not logged in", UNKNOWN),
    {"I16", "Not logged in", NULL, NULL, NOT_LOGGED_IN, IDENTITY_UNRESOLVED},
    M("I17", "\"result\":{\"content\":[],\"isError\":true}", ERROR),
    M("I18", "\"error\":{\"code\":-32603,\"message\":\"x\"}", ERROR),
    M("I19", "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{}}",
	UNKNOWN),
    {"I20", "{\"data\":{\"viewer\":{\"id\":\"1\"}}}", NULL, "/data/viewer/id", NULL,
	IDENTITY_RESOLVED},
    {"I21", "{\"data\":{\"viewer\":{\"id\":\"\"}}}", NULL, "/data/viewer/id", NULL,
	IDENTITY_UNRESOLVED},
    SC("I22", "{\"result\":\"{\\\"data\\\":{\\\"viewer\\\":null}}\"}", UNRESOLVED),
    SC("I23", "null", UNRESOLVED),
    T("I24", "{\"user\":{\"id\":7},\"account\":null}", RESOLVED),
    T("I25", "[]", UNRESOLVED),
    T("I26", "{}", UNRESOLVED),
    /* Beside the list. */
    T("word", "ann", UNKNOWN),
    T("word in quotes", "\"ann\"", UNKNOWN),
    T("nothing in quotes", "\" \"", UNRESOLVED),
    T("three times in quotes", "\"\\\"\\\\\\\"null\\\\\\\"\\\"\"", UNRESOLVED),
    T("number", "7", RESOLVED),
    T("false", "false", UNRESOLVED),
    T("fence without a word", "```\n{\"me\":{\"id\":1}}\n```\n", RESOLVED),
    T("fence of another kind", "```yaml\nme: null\n```", UNKNOWN),
    T("fence in prose", "You are:\n```\n{\"me\":null}\n```", UNKNOWN),
    T("fence that is empty", "```json\n```", UNKNOWN),
    T("fence that is open", "```json\n{\"me\":null}", UNKNOWN),
    T("byte order mark", "\xef\xbb\xbf{\"me\":null}", UNRESOLVED),
    T("errors alone", "{\"errors\":[{\"message\":\"x\"}]}", UNRESOLVED),
    T("errors and no data", "{\"data\":null,\"errors\":[{\"message\":\"x\"}]}",
	UNRESOLVED),
    T("errors and data",
	"{\"data\":{\"me\":{\"id\":1}},\"errors\":[{\"message\":\"x\"}]}", RESOLVED),
    T("errors of another", "{\"errors\":[\"x\"],\"login\":\"ann\"}", RESOLVED),
    T("signed in", "{\"logged_in\":true,\"name\":\"ann\"}", RESOLVED),
    T("signed in, and nobody", "{\"logged_in\":true,\"user\":null}", UNRESOLVED),
    T("signed out within", "{\"user\":{\"isAuthenticated\":false,\"id\":1}}", UNRESOLVED),
    T("hidden members alone", "{\"__typename\":\"User\"}", UNRESOLVED),
    T("key with escapes", "{\"us\\u0065r\":null,\"ok\":true}", UNRESOLVED),
    T("JSON in a member", "{\"user\":\"{\\\"id\\\":null}\"}", UNRESOLVED),
    T("list of nobody", "[null,{\"id\":null},\"\"]", UNRESOLVED),
    T("list of somebody", "[null,{\"id\":1}]", RESOLVED),
    M("blank before",
	"\"result\":{\"content\":[{\"type\":\"text\",\"text\":\" \\n\"},"
	"{\"type\":\"text\",\"text\":\"{\\\"me\\\":null}\"}]}",
	UNRESOLVED),
    M("image", "\"result\":{\"content\":[{\"type\":\"image\",\"data\":\"\"}]}", UNKNOWN),
    M("image, then JSON",
	"\"result\":{\"content\":[{\"type\":\"image\"},"
	"{\"type\":\"text\",\"text\":\"{\\\"id\\\":1}\"}]}",
	RESOLVED),
    M("no content", "\"result\":{}", UNKNOWN),
    M("complete", "\"result\":{\"resultType\":\"complete\",\"content\":[]}", UNRESOLVED),
    M("task", "\"result\":{\"resultType\":\"task\",\"taskId\":\"1\"}", UNKNOWN),
    M("type of no kind", "\"result\":{\"resultType\":1,\"content\":[]}", UNKNOWN),
    {"path to null", "{\"me\":{\"id\":null},\"x\":1}", NULL, "/me/id", NULL,
	IDENTITY_UNRESOLVED},
    {"path to nothing", "{\"me\":{\"name\":\"ann\"}}", NULL, "/me/id", NULL,
	IDENTITY_UNRESOLVED},
    {"path in quotes", "\"{\\\"me\\\":{\\\"id\\\":1}}\"", NULL, "/me/id", NULL,
	IDENTITY_RESOLVED},
    {"path in prose", "ann", NULL, "/me/id", NULL, IDENTITY_UNKNOWN},
    {"pattern in quotes", "\"You are not signed in.\"", NULL, NULL, NOT_LOGGED_IN,
	IDENTITY_UNRESOLVED},
    {"pattern in JSON", "{\"note\":\"not logged in\"}", NULL, NULL, NOT_LOGGED_IN,
	IDENTITY_UNRESOLVED},
    {"pattern in a wrapper", NULL,
	"\"result\":{\"structuredContent\":{\"result\":\"Not logged in\"}}", NULL,
	NOT_LOGGED_IN, IDENTITY_UNRESOLVED},
    /* A text that a pattern could not be held against may be nobody's. */
    {"pattern that ends early", "{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"}",
	NULL, NULL, "(a+)+[\\x22b]", IDENTITY_UNKNOWN},
    {"no pattern", "ann is logged in", NULL, NULL, NOT_LOGGED_IN, IDENTITY_UNKNOWN},
#undef T
#undef M
#undef SC
};
#define N_VECTORS ((int)(sizeof(vectors) / sizeof(vectors[0])))

START_TEST(answers_are_judged)
{
	struct identity_conf c = {0};
	enum identity_verdict v;
	struct mv_errtext t;
	bool is_error;

	if (vectors[_i].text != NULL)
		message_of_text(vectors[_i].text, strlen(vectors[_i].text));
	else
		message(vectors[_i].members);
	if (vectors[_i].path != NULL)
		c.path = mem_xstrdup(vectors[_i].path);
	if (vectors[_i].null_text != NULL) {
		c.null_texts = mem_xcalloc(2, sizeof(char *));
		c.null_texts[0] = mem_xstrdup(vectors[_i].null_text);
		c.patterns = mem_xcalloc(2, sizeof(struct pattern *));
		c.patterns[0] = pattern_new(vectors[_i].null_text, false, &t);
		ck_assert_ptr_nonnull(c.patterns[0]);
	}
	is_error = json_is_true(jtext_of(msg.data, json.slot[JSON_IS_ERROR]));
	v = identity_judge(&c, msg.data, &json, is_error);
	ck_assert_msg(
	    v == vectors[_i].verdict, "%s: %s", vectors[_i].id, identity_verdict_text(v));
	identity_conf_fini(&c);
}
END_TEST

/* Label may have made it a failure. */
START_TEST(failures_are_no_answers)
{
	static const struct identity_conf c;

	message_of_text("{\"id\":1}", 8);
	ck_assert_int_eq(identity_judge(&c, msg.data, &json, true), IDENTITY_ERROR);
	message("\"result\":{\"resultType\":\"input_required\"}");
	ck_assert_int_eq(identity_judge(&c, msg.data, &json, true), IDENTITY_UNKNOWN);
}
END_TEST

/* An answer that is too deep or too long to look at is nobody's, and costs little. */
START_TEST(answers_are_bounded)
{
	static const struct identity_conf c;
	static const struct {
		size_t n;
		enum identity_verdict verdict;
	} deep[] = {{31, IDENTITY_UNRESOLVED}, {32, IDENTITY_UNKNOWN},
	    {200, IDENTITY_UNKNOWN}, {300, IDENTITY_UNKNOWN}};
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		buf_reset(&text);
		for (size_t k = 0; k < deep[i].n; k++)
			buf_add_char(&text, '[');
		buf_add_str(&text, "null");
		for (size_t k = 0; k < deep[i].n; k++)
			buf_add_char(&text, ']');
		message_of_text(text.data, text.len);
		ck_assert_int_eq(
		    identity_judge(&c, msg.data, &json, false), deep[i].verdict);
	}
	buf_reset(&text);
	buf_add_str(&text, "{\"id\":");
	for (size_t k = 0; k < 300 * 1024; k++)
		buf_add_char(&text, '1');
	buf_add_char(&text, '}');
	message_of_text(text.data, text.len);
	ck_assert_int_eq(identity_judge(&c, msg.data, &json, false), IDENTITY_UNKNOWN);
	ck_assert(!identity_is_null_answer(msg.data, &json));
	/* What is beside it takes time too. */
	for (size_t i = 0; i < 2; i++) {
		buf_reset(&text);
		buf_add_str(
		    &text, "\"result\":{\"structuredContent\":{\"id\":1},\"x\":\"");
		while (text.len < CAP_RESULT_WALK_BYTES + (i == 0 ? 0 : 64))
			buf_add_char(&text, 'x');
		buf_add_str(&text, "\"}");
		message(buf_cstr(&text));
		ck_assert_int_eq(identity_judge(&c, msg.data, &json, false),
		    i == 0 ? IDENTITY_RESOLVED : IDENTITY_UNKNOWN);
	}
	buf_fini(&text);
}
END_TEST

START_TEST(definitions_are_bounded)
{
	static const struct identity_conf c;
	struct jtext name = {"me", 2}, definition = {"{}", CAP_DEFINITION_WALK_BYTES + 1};

	ck_assert(!identity_is_tool(&c, "crm", name, definition));
	definition.n = 2;
	ck_assert(identity_is_tool(&c, "crm", name, definition));
}
END_TEST

static const struct {
	const char *members;
	bool is;
} answers[] = {
    {"\"result\":{\"content\":[]}", true},
    {"\"result\":{}", true},
    {"\"result\":{\"structuredContent\":{\"items\":[]}}", true},
    {"\"result\":{\"structuredContent\":{\"items\":[1]}}", false},
    {"\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}", false},
    {"\"result\":{\"content\":[{\"type\":\"image\"}]}", false},
};

START_TEST(answers_are_null)
{
	message(answers[_i].members);
	ck_assert_int_eq(identity_is_null_answer(msg.data, &json), answers[_i].is);
}
END_TEST

START_TEST(values_are_null)
{
	ck_assert(identity_is_null_like(text_of("{\"data\":{\"viewer\":null}}")));
	ck_assert(!identity_is_null_like(text_of("{\"data\":{\"viewer\":1}}")));
	ck_assert(!identity_is_null_like(text_of("0")));
	ck_assert(!identity_is_null_like(text_of("true")));
}
END_TEST

START_TEST(verdicts_have_names)
{
	ck_assert_str_eq(identity_verdict_text(IDENTITY_NONE), "none");
	ck_assert_str_eq(identity_verdict_text(IDENTITY_RESOLVED), "resolved");
	ck_assert_str_eq(identity_verdict_text(IDENTITY_VERDICT_MAX), "?");
}
END_TEST

/* ---- tools ---- */

#define NO_ARGS	 "{\"inputSchema\":{\"type\":\"object\",\"required\":[]}}"
#define REQUIRED "{\"inputSchema\":{\"required\":[\"id\"]}}"
#define WRITES	 "{\"annotations\":{\"readOnlyHint\":false}}"
#define READS	 "{\"annotations\":{\"readOnlyHint\":true}}"

static const struct {
	const char *tools; /* words; NULL: auto */
	const char *upstream, *name, *definition;
	bool is;
} tools[] = {
    {NULL, "github", "get_me", NO_ARGS, true},
    {NULL, "gitlab", "whoami", READS, true},
    {NULL, "monday", "get_user_context", NULL, true},
    {NULL, "notion", "notion-get-self", NO_ARGS, true},
    {NULL, "wiki", "notion-get-self", NO_ARGS, false},
    {NULL, "atlassian", "atlassianUserInfo", NO_ARGS, true},
    {NULL, "atlassian", "atlassian_user.info", NO_ARGS, true},
    {NULL, "jira", "getCurrentUser", NO_ARGS, true},
    {NULL, "slack", "auth.test", NO_ARGS, true},
    {NULL, "hf", "hf_whoami", NO_ARGS, true},
    {NULL, "My-Crm", "mycrm_viewer", NO_ARGS, true},
    {NULL, "my_crm", "my.crm.ME", NO_ARGS, true},
    /* The segment ends where it ends. */
    {NULL, "crm", "crmme", NO_ARGS, false},
    {NULL, "me", "me", NO_ARGS, true},
    {NULL, "me", "me_", NO_ARGS, true},
    {NULL, "me", "me_list", NO_ARGS, false},
    {NULL, "crm", "crm", NO_ARGS, false},
    {NULL, "crm", "crm_", NO_ARGS, false},
    {NULL, "-", "-me", NO_ARGS, true},
    {NULL, "crm", "me2", NO_ARGS, false},
    {NULL, "crm", "get_user", NO_ARGS, false},
    {NULL, "crm", "", NO_ARGS, false},
    /* K15 */
    {NULL, "crm", "me", REQUIRED, false},
    {NULL, "crm", "me", WRITES, false},
    {"auto", "crm", "me", NO_ARGS, true},
    {"auto", "crm", "who", NO_ARGS, false},
    {"none", "crm", "me", NO_ARGS, false},
    {"who", "crm", "who", NO_ARGS, true},
    {"who", "crm", "me", NO_ARGS, false},
    {"user_*", "crm", "user_now", REQUIRED, true},
    {"user_*", "crm", "my_user_now", NO_ARGS, false},
    {"auto user_*", "crm", "user_now", NO_ARGS, true},
    {"auto user_*", "crm", "whoami", NO_ARGS, true},
    {"none who", "crm", "none", NO_ARGS, false},
};

START_TEST(tools_are_found)
{
	struct identity_conf c = {0};
	const char *words = tools[_i].tools, *space;

	if (words != NULL) {
		c.tools = mem_xcalloc(3, sizeof(char *));
		space = strchrnul(words, ' ');
		c.tools[0] = mem_xstrndup(words, (size_t)(space - words));
		if (*space != '\0')
			c.tools[1] = mem_xstrdup(space + 1);
	}
	ck_assert_int_eq(identity_is_tool(&c, tools[_i].upstream, text_of(tools[_i].name),
			     text_of(tools[_i].definition)),
	    tools[_i].is);
	identity_conf_fini(&c);
}
END_TEST

/* ---- the hint ---- */

#define HINT                                                                             \
	"{\"type\":\"text\",\"text\":\"Identity check: crm returned no user. The "       \
	"stored credentials may have expired; reconnect before relying on who the "      \
	"current user is.\"}"
#define OTHER_HINT                                                                       \
	"{\"type\":\"text\",\"text\":\"Identity check: all returned no user. The "       \
	"stored credentials may have expired; reconnect before relying on who the "      \
	"current user is.\"}"

static const struct {
	const char *before, *after; /* results; after NULL: no hint */
} hints[] = {
    {"{\"content\":[{\"type\":\"text\",\"text\":\"null\"}],\"isError\":false}",
	"{\"content\":[{\"type\":\"text\",\"text\":\"null\"}," HINT
	"],\"isError\":false}"},
    {"{\"content\":[]}", "{\"content\":[" HINT "]}"},
    {"{\"content\":[ ]}", "{\"content\":[ " HINT "]}"},
    {"{\"structuredContent\":null}", NULL},
    {"{\"content\":null}", NULL},
    {"{\"content\":[" HINT "]}", NULL},
    {"{\"content\":[{\"type\":\"text\",\"text\":\"null\"}," OTHER_HINT "]}", NULL},
    /* Somebody else's sentence. */
    {"{\"content\":[{\"type\":\"text\",\"text\":\"Identity check: fine\"}]}",
	"{\"content\":[{\"type\":\"text\",\"text\":\"Identity check: fine\"}," HINT "]}"},
};

static void
apply(const struct json_edits *ed, struct buf *out)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n = json_edit_pieces(msg.data, json.slot[JSON_RESULT], ed, iov);

	for (int i = 0; i < n; i++)
		buf_add(out, iov[i].iov_base, iov[i].iov_len);
}

static void
result(const char *text)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "\"result\":%s", text);
	message(buf_cstr(&b));
	buf_fini(&b);
}

START_TEST(hints_are_put_once)
{
	struct json_edits ed = {.n = 0};
	struct buf text, got;

	buf_init(&text, 4096);
	buf_init(&got, 4096);
	result(hints[_i].before);
	ck_assert_int_eq(identity_put_hint(&ed, "crm", msg.data, &json, &text),
	    hints[_i].after != NULL);
	apply(&ed, &got);
	ck_assert_str_eq(
	    buf_cstr(&got), hints[_i].after != NULL ? hints[_i].after : hints[_i].before);
	/* K14: the next proxy finds it. */
	result(buf_cstr(&got));
	ed.n = 0;
	buf_reset(&text);
	ck_assert(!identity_put_hint(&ed, "all", msg.data, &json, &text));
	ck_assert_uint_eq(ed.n, 0);
	buf_fini(&got);
	buf_fini(&text);
}
END_TEST

/* After another block that is put into a list that was empty. */
START_TEST(hints_come_last)
{
	struct json_edits ed = {.n = 0};
	uint32_t end;
	struct buf text, got;

	buf_init(&text, 4096);
	buf_init(&got, 4096);
	result("{\"content\":[]}");
	end = (uint32_t)(strchr(buf_cstr(&msg), ']') - msg.data);
	json_edit_add(&ed, end, 0, "{}", 2);
	ck_assert(identity_put_hint(&ed, "crm", msg.data, &json, &text));
	apply(&ed, &got);
	ck_assert_str_eq(buf_cstr(&got), "{\"content\":[{}," HINT "]}");
	buf_fini(&got);
	buf_fini(&text);
}
END_TEST

START_TEST(hints_have_their_bound)
{
	struct json_edits ed = {.n = 0};
	struct buf text;

	buf_init(&text, 20);
	result("{\"content\":[]}");
	ck_assert(!identity_put_hint(&ed, "crm", msg.data, &json, &text));
	ck_assert_uint_eq(ed.n, 0);
	buf_fini(&text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("identity");
	TCase *tc = tcase_create("identity");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, answers_are_judged, 0, N_VECTORS);
	tcase_add_test(tc, failures_are_no_answers);
	tcase_add_test(tc, answers_are_bounded);
	tcase_add_test(tc, definitions_are_bounded);
	tcase_add_loop_test(
	    tc, answers_are_null, 0, (int)(sizeof(answers) / sizeof(answers[0])));
	tcase_add_test(tc, values_are_null);
	tcase_add_test(tc, verdicts_have_names);
	tcase_add_loop_test(
	    tc, tools_are_found, 0, (int)(sizeof(tools) / sizeof(tools[0])));
	tcase_add_loop_test(
	    tc, hints_are_put_once, 0, (int)(sizeof(hints) / sizeof(hints[0])));
	tcase_add_test(tc, hints_come_last);
	tcase_add_test(tc, hints_have_their_bound);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
