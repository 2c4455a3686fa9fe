/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The commands "tools" and "call" against a scripted endpoint. */
#include "mcpvisor/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/link.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/method.h"

#include <check.h>

#define TOOLS                                                                            \
	"[{\"name\":\"a__add\",\"description\":\"Adds.\\nSecond "                        \
	"line\",\"inputSchema\":{"                                                       \
	"\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\"},\"b\":{"        \
	"\"type\":"                                                                      \
	"\"boolean\"},\"o\":{\"type\":\"object\"},\"l\":{\"type\":[\"array\",\"null\"]}" \
	","                                                                              \
	"\"m\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},\"s\":{"         \
	"\"type\":"                                                                      \
	"\"string\"},\"e\":{\"type\":[\"string\",\"integer\"]}}}},"                      \
	"{\"name\":\"b__echo\",\"title\":\"Say "                                         \
	"\\u001b[31mred\",\"inputSchema\":{\"type\":"                                    \
	"\"object\"},\"x\":1.0}]"

/* What the endpoint does, and what was seen of the client. */
struct script {
	const char *first_list; /* result of tools/list at first; NULL: as list */
	const char *list;	/* ... and then */
	const char *answer; /* to tools/call: "\"result\":{...}"; NULL: it goes away */
	unsigned starting;  /* so many times an upstream is still starting */
	bool announces;	    /* list_changed after the first list */
	unsigned lists;
	char call[1024]; /* params of the call that came */
	struct loop *loop;
	struct link *link;
	int code;
};

struct outcome {
	int code;
	char *out, *err;
	size_t out_len, err_len;
};

static void
endpoint_send(struct script *s, const char *text)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, text);
	ck_assert_int_eq(link_send_buf(s->link, &b), MV_OK);
	buf_fini(&b);
}

static void
endpoint_answer(struct script *s, struct jtext id, const char *member)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
	json_put(&b, id);
	buf_addf(&b, ",%s}", member);
	ck_assert_int_eq(link_send_buf(s->link, &b), MV_OK);
	buf_fini(&b);
}

static void
endpoint_list(struct script *s, struct jtext id)
{
	const char *list = s->lists++ == 0 && s->first_list ? s->first_list : s->list;
	char *member = mem_xalloc(strlen(list) + 64);

	snprintf(member, strlen(list) + 64, "\"result\":%s%s%s",
	    *list == '[' ? "{\"tools\":" : "", list, *list == '[' ? "}" : "");
	endpoint_answer(s, id, member);
	mem_free(member);
	if (s->lists == 1 && s->announces)
		endpoint_send(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/"
				 "list_changed\"}");
}

static void
on_message(void *arg, const struct link_msg *m)
{
	struct script *s = arg;
	struct jtext params = jtext_of(m->base, m->json->slot[JSON_PARAMS]);

	switch ((int)method_parse(m->env.method)) {
	case METHOD_INITIALIZE:
		ck_assert(
		    json_string_is(json_member(params, "protocolVersion"), "2025-11-25"));
		endpoint_answer(s, m->env.id, "\"result\":{}");
		break;
	case METHOD_TOOLS_LIST:
		endpoint_list(s, m->env.id);
		break;
	case METHOD_TOOLS_CALL:
		snprintf(s->call, sizeof s->call, "%.*s", (int)params.n,
		    params.n ? params.p : "");
		if (s->answer)
			endpoint_answer(s, m->env.id, s->answer);
		else
			link_end_write(s->link, true);
		break;
	default:
		ck_assert_int_eq(m->env.kind, ENVELOPE_NOTIFICATION);
	}
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	(void)arg;
	(void)id;
	(void)is_reply;
	ck_abort_msg("%s: %.*s", mv_err_text(err), (int)len, line);
}

static void
on_end(void *arg)
{
	struct script *s = arg;

	link_end_write(s->link, true);
}

static void
on_write_end(void *arg, int errnum)
{
	(void)arg;
	(void)errnum;
}

static void
on_done(void *arg, int code)
{
	struct script *s = arg;

	s->code = code;
	loop_stop(s->loop, 0);
}

static unsigned
count_starting(void *arg)
{
	struct script *s = arg;

	return s->starting ? s->starting-- : 0;
}

static struct outcome
run(struct script *s, struct cli_opts o)
{
	const struct link_cb cb = {.on_message = on_message,
	    .on_bad = on_bad,
	    .on_end = on_end,
	    .on_write_end = on_write_end};
	struct outcome r = {.code = -1};
	struct link_opts lo;
	struct cli *c;
	int fds[2];

	o.out = open_memstream(&r.out, &r.out_len);
	o.err = open_memstream(&r.err, &r.err_len);
	o.starting = count_starting;
	o.starting_arg = s;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	lo = (struct link_opts){.rfd = fds[1],
	    .wfd = fds[1],
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES};
	s->loop = loop_new();
	s->link = link_new(s->loop, &lo, &cb, s);
	c = cli_new(s->loop, &o, fds[0], fds[0], on_done, s);
	loop_run(s->loop);
	cli_free(c);
	link_free(s->link);
	loop_free(s->loop);
	fclose(o.out);
	fclose(o.err);
	r.code = s->code;
	return r;
}

static void
outcome_free(struct outcome *r)
{
	free(r->out);
	free(r->err);
}

static void
expect(struct outcome r, int code, const char *out, const char *err)
{
	ck_assert_msg(r.code == code, "code %d: %s", r.code, r.err);
	ck_assert_str_eq(r.out, out);
	ck_assert_msg(strstr(r.err, err) != NULL, "%s", r.err);
	outcome_free(&r);
}

START_TEST(test_table)
{
	struct script s = {.list = TOOLS};
	struct cli_opts o = {.width = 0};

	expect(run(&s, o), CLI_OK,
	    "NAME      DESCRIPTION\n"
	    "a__add    Adds.\n"
	    "b__echo   Say ?[31mred\n",
	    "");
	s = (struct script){.list = TOOLS};
	o.width = 20;
	expect(run(&s, o), CLI_OK,
	    "NAME      DESCRIPTION\n"
	    "a__add    Adds.\n"
	    "b__echo   Say ?[3...\n",
	    "");
}
END_TEST

START_TEST(test_table_json)
{
	struct script s = {.list = "[{\"name\":\"x\",\"n\":1.0},{\"name\":\"y\"}]"};
	struct cli_opts o = {.json = true};

	expect(run(&s, o), CLI_OK,
	    "[\n{\"name\":\"x\",\"n\":1.0},\n{\"name\":\"y\"}\n]\n", "");
	s = (struct script){.list = "[]"};
	expect(run(&s, o), CLI_NOTHING, "[]\n", "no tools");
}
END_TEST

START_TEST(test_pages)
{
	struct script s = {
	    .first_list = "{\"tools\":[{\"name\":\"x\"}],\"nextCursor\":\"p\\u0032\"}",
	    .list = "[{\"name\":\"y\"}]"};
	struct cli_opts o = {.json = true};

	expect(run(&s, o), CLI_OK, "[\n{\"name\":\"x\"},\n{\"name\":\"y\"}\n]\n", "");
	ck_assert_uint_eq(s.lists, 2);
}
END_TEST

START_TEST(test_not_a_list)
{
	struct script s = {.list = "{\"tools\":7}"};
	struct cli_opts o = {.json = true};

	expect(run(&s, o), CLI_UPSTREAM, "", "not a list");
	s = (struct script){.list = "[{\"title\":\"no name\"}]"};
	expect(run(&s, o), CLI_UPSTREAM, "", "not a list");
}
END_TEST

/* A list that was asked for while an upstream was starting is asked for again. */
START_TEST(test_waits_for_starting)
{
	struct script s = {
	    .first_list = "[]", .list = "[{\"name\":\"y\"}]", .starting = 3};
	struct cli_opts o = {.json = true};

	expect(run(&s, o), CLI_OK, "[\n{\"name\":\"y\"}\n]\n", "");
	ck_assert_uint_eq(s.lists, 2);
	s = (struct script){.list = "[]", .starting = 1000000};
	o.wait_ms = 120;
	expect(run(&s, o), CLI_NOTHING, "[]\n", "still starting");
}
END_TEST

START_TEST(test_call_waits_for_tool)
{
	struct script s = {.first_list = "[]",
	    .list = "[{\"name\":\"y\"}]",
	    .starting = 1000000,
	    .announces = true,
	    .answer = "\"result\":{\"content\":[]}"};
	struct cli_opts o = {.tool = "y"};

	expect(run(&s, o), CLI_OK, "", "");
	ck_assert_str_eq(s.call, "{\"name\":\"y\",\"arguments\":{}}");
}
END_TEST

/* Arguments as typed, and what the endpoint gets; NULL: refused with CLI_PARAMS. */
static const struct {
	const char *pair, *sent;
} typed[] = {
    {"n=1.50", "{\"n\":1.50}"},
    {"n=-1e400", "{\"n\":-1e400}"},
    {"n=x", NULL},
    {"n=\"1\"", NULL},
    {"n=", NULL},
    {"b=true", "{\"b\":true}"},
    {"b=false", "{\"b\":false}"},
    {"b=yes", NULL},
    {"b=1", NULL},
    {"o={\"k\":\n[1]}", "{\"o\":{\"k\": [1]}}"},
    {"o=[1]", NULL},
    {"l=[1,2]", "{\"l\":[1,2]}"},
    {"l=null", "{\"l\":null}"},
    {"m=7", "{\"m\":7}"},
    {"m=null", "{\"m\":null}"},
    {"m=seven", NULL},
    {"s=7", "{\"s\":\"7\"}"},
    {"s=a=b\n\"", "{\"s\":\"a=b\\n\\\"\"}"},
    {"s=", "{\"s\":\"\"}"},
    {"e=7", "{\"e\":\"7\"}"},
    {"unknown=7", "{\"unknown\":\"7\"}"},
};

START_TEST(test_typed_arguments)
{
	struct script s = {.list = TOOLS, .answer = "\"result\":{\"content\":[]}"};
	const char *pairs[] = {typed[_i].pair};
	struct cli_opts o = {.tool = "a__add", .pairs = pairs, .n_pairs = 1};
	char want[256];

	if (typed[_i].sent) {
		snprintf(want, sizeof want, "{\"name\":\"a__add\",\"arguments\":%s}",
		    typed[_i].sent);
		expect(run(&s, o), CLI_OK, "", "");
		ck_assert_str_eq(s.call, want);
	} else {
		expect(run(&s, o), CLI_PARAMS, "", "must be of type");
		ck_assert_str_eq(s.call, "");
	}
}
END_TEST

START_TEST(test_arguments_as_json)
{
	struct script s = {.list = TOOLS, .answer = "\"result\":{\"content\":[]}"};
	struct cli_opts o = {.tool = "b__echo", .args = "{\"n\":\n1.0}"};

	expect(run(&s, o), CLI_OK, "", "");
	ck_assert_str_eq(s.call, "{\"name\":\"b__echo\",\"arguments\":{\"n\": 1.0}}");
}
END_TEST

/* Answers and what is printed. */
static const struct {
	const char *answer;
	int code;
	const char *out, *err;
} answers[] = {
    {"\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\","
     "\"text\":\"two\\n\"}],\"structuredContent\":{\"a\":1}}",
	CLI_OK, "one\ntwo\n", ""},
    {"\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"bad\"}],\"isError\":true}",
	CLI_TOOL_ERROR, "bad\n", ""},
    {"\"result\":{\"content\":[],\"structuredContent\":{\"a\":0.1,\"b\":[],\"c\":[{},"
     "\"x\\\"y\"]}}",
	CLI_OK,
	"{\n  \"a\": 0.1,\n  \"b\": [],\n  \"c\": [\n    {},\n    \"x\\\"y\"\n  ]\n}\n",
	""},
    {"\"result\":{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":"
     "\"AAAA\"},{\"type\":\"resource_link\",\"uri\":\"f:\\u001bx\"},{\"type\":"
     "\"resource\","
     "\"resource\":{\"uri\":\"u\",\"text\":\"t\"}},7]}",
	CLI_OK,
	"[image image/png, about 3 bytes]\n[resource_link f:?x]\n[resource u]\n[block]\n",
	""},
    {"\"error\":{\"code\":-32602,\"message\":\"no \\u001b\"}", CLI_PARAMS, "",
	"error -32602: no ?"},
    {"\"error\":{\"code\":-32603,\"message\":\"m\",\"data\":{\"reason\":\"died\"}}",
	CLI_UPSTREAM, "", "m {\"reason\":\"died\"}"},
    {"\"error\":{\"code\":-1,\"message\":\"m\"}", CLI_UPSTREAM, "", "error -1"},
    {NULL, CLI_UPSTREAM, "", "ended before its answer"},
};

START_TEST(test_answers)
{
	struct script s = {.list = TOOLS, .answer = answers[_i].answer};
	struct cli_opts o = {.tool = "b__echo"};

	expect(run(&s, o), answers[_i].code, answers[_i].out, answers[_i].err);
}
END_TEST

START_TEST(test_answer_as_json)
{
	struct script s = {
	    .list = TOOLS, .answer = "\"result\":{\"isError\":true, \"n\":1.0}"};
	struct cli_opts o = {.tool = "b__echo", .json = true};

	expect(run(&s, o), CLI_TOOL_ERROR, "{\"isError\":true, \"n\":1.0}\n", "");
}
END_TEST

START_TEST(test_unknown_tool)
{
	struct script s = {.list = TOOLS};
	struct cli_opts o = {.tool = "echo"};

	expect(run(&s, o), CLI_PARAMS, "", "unknown tool \"echo\"; near: b__echo\n");
	s = (struct script){.list = TOOLS};
	o.tool = "a_add";
	expect(run(&s, o), CLI_PARAMS, "", "near: a__add\n");
	s = (struct script){.list = TOOLS};
	o.tool = "zzzzzzzz";
	expect(run(&s, o), CLI_PARAMS, "", "unknown tool \"zzzzzzzz\"\n");
	s = (struct script){.list = "[{\"name\":\"a\\u001b[31m\"}]"};
	o.tool = "a?[31";
	expect(run(&s, o), CLI_PARAMS, "", "near: a?[31m\n");
}
END_TEST

/* Command lines that are wrong before anything is started. */
static const struct {
	const char *args, *pairs[2];
	enum cli_exit code;
} lines[] = {
    {NULL, {NULL, NULL}, CLI_OK},
    {NULL, {"a=1", "b=1"}, CLI_OK},
    {NULL, {"a=1", "ab=1"}, CLI_OK},
    {NULL, {"a=1", "a=2"}, CLI_USAGE},
    {NULL, {"a", NULL}, CLI_USAGE},
    {NULL, {"=a", NULL}, CLI_USAGE},
    {"{}", {NULL, NULL}, CLI_OK},
    {"{}", {"a=1", NULL}, CLI_USAGE},
    {"[]", {NULL, NULL}, CLI_USAGE},
    {"{", {NULL, NULL}, CLI_USAGE},
    {"", {NULL, NULL}, CLI_USAGE},
};

START_TEST(test_check)
{
	struct outcome r = {.code = 0};
	struct cli_opts o = {.tool = "x",
	    .args = lines[_i].args,
	    .pairs = lines[_i].pairs,
	    .n_pairs =
		(size_t)(lines[_i].pairs[0] != NULL) + (lines[_i].pairs[1] != NULL)};

	o.err = open_memstream(&r.err, &r.err_len);
	r.code = cli_check(&o);
	fclose(o.err);
	ck_assert_int_eq(r.code, lines[_i].code);
	ck_assert_int_eq(r.err_len > 0, lines[_i].code != CLI_OK);
	outcome_free(&r);
}
END_TEST

#define N(table) (int)(sizeof(table) / sizeof *(table))

int
main(void)
{
	Suite *s = suite_create("cli");
	TCase *tc = tcase_create("cli");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, test_table);
	tcase_add_test(tc, test_table_json);
	tcase_add_test(tc, test_pages);
	tcase_add_test(tc, test_not_a_list);
	tcase_add_test(tc, test_waits_for_starting);
	tcase_add_test(tc, test_call_waits_for_tool);
	tcase_add_loop_test(tc, test_typed_arguments, 0, N(typed));
	tcase_add_test(tc, test_arguments_as_json);
	tcase_add_loop_test(tc, test_answers, 0, N(answers));
	tcase_add_test(tc, test_answer_as_json);
	tcase_add_test(tc, test_unknown_tool);
	tcase_add_loop_test(tc, test_check, 0, N(lines));
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
