/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* How a call ends, in the words of the client's era. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fleet *f;
static struct peer *p;

static void
setup(void)
{
	f = fleet_full();
	p = peer_new(f);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

#define CALL "tools/call", "\"name\":\"alpha__b_x2ec\""
#define GET  "prompts/get", "\"name\":\"alpha__a\""
#define READ "resources/read", "\"uri\":\"file:\\/\\/\\/a\""
#define COMPLETE                                                                         \
	"completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}"

static void
ask(bool modern, const char *method, const char *members)
{
	struct buf b;

	if (modern) {
		peer_ask_modern(p, "1", method, members);
		return;
	}
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{%s}", members);
	peer_ask(p, "1", method, buf_cstr(&b));
	buf_fini(&b);
}

/* ---- errors of upstreams ---- */

#define NO_TOOL(text)                                                                    \
	"{\"code\":-32602,\"message\":\"" text "\",\"data\":{\"upstreamCode\":-32601}}"
#define NO_URI(code)                                                                     \
	"{\"code\":" code ",\"message\":\"Resource not found: file:///a\",\"data\":"     \
	"{\"uri\":\"file:\\/\\/\\/a\"}}"
#define NO_NAMES                                                                         \
	"{\"code\":-32603,\"message\":\"Upstream alpha: the upstream broke the "         \
	"protocol "                                                                      \
	"(tools/call): it asks for URL elicitations and names none; a retry will not "   \
	"help\",\"data\":{\"upstream\":\"alpha\",\"reason\":\"protocol\","               \
	"\"retryable\":false}}"
#define URL_NEEDED                                                                       \
	"{\"code\":-32021,\"message\":\"The upstream has to ask the client for this: "   \
	"declare the client capabilities of data.requiredCapabilities to be asked\","    \
	"\"data\":"                                                                      \
	"{\"requiredCapabilities\":{\"elicitation\":{\"url\":{}}}}}"

static const struct {
	const char *method, *members, *error;
	const char *legacy, *modern; /* NULL: the same bytes */
} errors[] = {
    {CALL,
	"{ \"code\" : -32000 , \"message\":\"m\\u0041\",\"data\":{\"x\":1.0,\"y\":[]}}",
	NULL, NULL},
    {CALL, "{\"code\":-32602,\"message\":\"bad\",\"extra\":1e400}", NULL, NULL},
    {CALL, "{\"code\":-32603,\"message\":\"\"}", NULL, NULL},
    {CALL, "{\"code\":-32021,\"message\":\"\",\"data\":{}}", NULL, NULL},
    {CALL, "{\"code\":7,\"message\":\"\"}", NULL, NULL},
    {CALL, "{\"code\":-32601,\"message\":\"no such tool\"}", NO_TOOL("no such tool"),
	NO_TOOL("no such tool")},
    {CALL, "{\"data\":7,\"code\" : -32601,\"x\":[],\"message\":\"\\u0041\"}",
	"{\"data\":7,\"code\":-32602,\"x\":[],\"message\":\"\\u0041\"}",
	"{\"data\":7,\"code\":-32602,\"x\":[],\"message\":\"\\u0041\"}"},
    {GET, "{\"code\":-32601,\"message\":\"no\"}", NULL, NULL},
    {READ, "{\"code\":-32601,\"message\":\"no\"}", NULL, NULL},
    {COMPLETE, "{\"code\":-32601,\"message\":\"no\"}", NULL, NULL},
    /* Resource not found, in either era's way */
    {READ, "{\"code\":-32002,\"message\":\"gone\",\"data\":{\"uri\":\"file:///a\"}}",
	NULL, NO_URI("-32602")},
    {READ, "{\"code\":-32002,\"message\":\"gone\"}", NULL, NO_URI("-32602")},
    {READ, "{\"code\":-32602,\"message\":\"x\",\"data\":{\"uri\":\"file:\\/\\/\\/a\"}}",
	NO_URI("-32002"), NULL},
    {READ, "{\"code\":-32602,\"message\":\"x\"}", NULL, NULL},
    {READ, "{\"code\":-32602,\"message\":\"x\",\"data\":{\"uri\":7}}", NULL, NULL},
    {READ, "{\"code\":-32602,\"message\":\"x\",\"data\":\"uri\"}", NULL, NULL},
    {CALL, "{\"code\":-32002,\"message\":\"x\"}", NULL, NULL},
    {CALL, "{\"code\":-32602,\"message\":\"x\",\"data\":{\"uri\":\"a:/\"}}", NULL, NULL},
    /* A code that 2026-07-28 does not have */
    {CALL,
	"{\"code\":-32042,\"message\":\"x\",\"data\":{\"elicitations\":[{\"mode\":"
	"\"url\"}]"
	"}}",
	NULL, URL_NEEDED},
};

START_TEST(errors_of_upstreams)
{
	ask(false, errors[_i].method, errors[_i].members);
	fake_upstream_error(f->u[0], 0, errors[_i].error);
	peer_expect_error(
	    p, "1", errors[_i].legacy ? errors[_i].legacy : errors[_i].error);
	ask(true, errors[_i].method, errors[_i].members);
	fake_upstream_error(f->u[0], 1, errors[_i].error);
	peer_expect_error(
	    p, "1", errors[_i].modern ? errors[_i].modern : errors[_i].error);
}
END_TEST

/* ---- URL elicitations ---- */

static const struct {
	const char *data, *want; /* NULL: it names none */
} urls[] = {
    {"{\"elicitations\":[{\"mode\":\"url\",\"elicitationId\":\"7\",\"url\":\"https:\\/\\/"
     "x\",\"message\":\"m\"}]}",
	"{\"resultType\":\"input_required\",\"inputRequests\":{\"url-1\":{\"method\":"
	"\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"https:\\/\\/x\","
	"\"message\":\"m\"}}}}"},
    {"{\"elicitations\":[{\"elicitationId\":1},7,{\"x\":1.0}]}",
	"{\"resultType\":\"input_required\",\"inputRequests\":{\"url-1\":{\"method\":"
	"\"elicitation/create\",\"params\":{}},\"url-2\":{\"method\":\"elicitation/"
	"create\","
	"\"params\":{\"x\":1.0}}}}"},
    {"{\"elicitations\":[]}", NULL},
    {"{\"elicitations\":{}}", NULL},
    {"{}", NULL},
    {"7", NULL},
};

START_TEST(url_elicitations_become_input)
{
	char error[256];

	peer_ask(p, "1", "tools/call",
	    "{\"_meta\":{" MODERN_VERSION ",\"io.modelcontextprotocol/"
	    "clientCapabilities\":{\"elicitation\":{\"url\":{}}}},"
	    "\"name\":\"alpha__a\"}");
	(void)snprintf(error, sizeof(error),
	    "{\"code\":-32042,\"message\":\"x\",\"data\":%s}", urls[_i].data);
	fake_upstream_error(f->u[0], 0, error);
	if (urls[_i].want != NULL)
		peer_expect_result(p, "1", urls[_i].want);
	else
		peer_expect_error(p, "1", NO_NAMES);
}
END_TEST

/* No input can be asked for by the result of a completion. */
START_TEST(url_elicitations_of_a_completion)
{
	peer_ask(p, "1", "completion/complete",
	    "{\"_meta\":{" MODERN_VERSION ",\"io.modelcontextprotocol/"
	    "clientCapabilities\":{\"elicitation\":{\"url\":{}}}},"
	    "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__a\"}}");
	fake_upstream_error(f->u[0], 0,
	    "{\"code\":-32042,\"message\":\"x\",\"data\":{\"elicitations\":[{}]}}");
	(void)peer_expect_code(p, "1", -32603);
}
END_TEST

/* ---- no answer ---- */

#define FAILED(method, text, retry, reason, can)                                         \
	"{\"code\":-32603,\"message\":\"Upstream alpha: " text " (" method ")" retry     \
	"\",\"data\":{\"upstream\":\"alpha\",\"reason\":\"" reason                       \
	"\",\"retryable\":" can "}}"

static const struct {
	const char *method, *members;
	enum mv_err err;
	const char *detail, *want;
} failures[] = {
    {CALL, MV_DIED, "killed by signal 9 (Killed)",
	FAILED("tools/call", "the upstream ended",
	    ": killed by signal 9 (Killed); the call may have had effects, so check "
	    "before a retry",
	    "died", "true")},
    {READ, MV_TIMEOUT, NULL,
	FAILED("resources/read", "no answer within the time limit of 300000 ms",
	    "; a retry may help", "timeout", "true")},
    {GET, MV_PROTOCOL, "not valid UTF-8",
	FAILED("prompts/get", "the upstream broke the protocol",
	    ": not valid UTF-8; a retry will not help", "protocol", "false")},
    {COMPLETE, MV_STOPPING, NULL,
	FAILED("completion/complete", "mcpvisor is stopping", "; a retry may help",
	    "stopping", "true")},
};

START_TEST(calls_without_an_answer)
{
	for (unsigned round = 0; round < 2; round++) {
		ask(round == 1, failures[_i].method, failures[_i].members);
		fake_upstream_fail(f->u[0], round, failures[_i].err, failures[_i].detail);
		peer_expect_error(p, "1", failures[_i].want);
	}
}
END_TEST

/* What only reads has no effects; what was not sent has none either. */
START_TEST(calls_that_may_have_acted)
{
	static const struct {
		const char *annotations;
		bool acted;
	} rows[] = {
	    {"", true},
	    {",\"annotations\":{}", true},
	    {",\"annotations\":{\"readOnlyHint\":false}", true},
	    {",\"annotations\":{\"readOnlyHint\":\"true\"}", true},
	    {",\"annotations\":{\"readOnlyHint\":true}", false},
	};
	char list[200];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(list, sizeof(list), "{\"tools\":[{\"name\":\"a\"%s}]}",
		    rows[i].annotations);
		fake_upstream_list(f->u[1], LIST_TOOLS, list);
		fake_loop_advance(f->loop, 1000);
		while (p->taken < p->n)
			(void)peer_read(p);
		ask(i % 2, "tools/call", "\"name\":\"beta__a\"");
		fake_upstream_fail(f->u[1], i, MV_TIMEOUT, NULL);
		ck_assert_int_eq(
		    strstr(peer_read(p), "the call may have had effects") != NULL,
		    rows[i].acted);
	}
	fake_upstream_refuse(f->u[1], MV_BUSY);
	ask(false, "tools/call", "\"name\":\"beta__a\"");
	ck_assert_ptr_null(strstr(peer_read(p), "effects"));
	fake_upstream_refuse(f->u[1], MV_OK);
}
END_TEST

/* Its list may have changed since. */
START_TEST(a_tool_that_is_not_there)
{
	ask(false, CALL);
	fake_upstream_error(f->u[0], 0, "{\"code\":-32601,\"message\":\"no\"}");
	peer_expect_error(p, "1", NO_TOOL("no"));
	ck_assert_uint_eq(fake_upstream_doubts(f->u[0], LIST_TOOLS), 1);
	ask(true, READ);
	fake_upstream_error(f->u[0], 1, "{\"code\":-32601,\"message\":\"no\"}");
	(void)peer_expect_code(p, "1", -32601);
	ask(true, CALL);
	fake_upstream_error(f->u[0], 2, "{\"code\":-32602,\"message\":\"no\"}");
	(void)peer_expect_code(p, "1", -32602);
	ck_assert_uint_eq(fake_upstream_doubts(f->u[0], LIST_TOOLS), 1);
}
END_TEST

START_TEST(calls_that_cannot_be_sent)
{
	ask(false, "tools/call", "\"name\":\"beta__a\"");
	fake_upstream_refuse(f->u[0], MV_BUSY);
	ask(false, CALL);
	(void)peer_expect_code(p, "1", -32600); /* the id is in use */
	fake_upstream_result(f->u[1], 0, "{}");
	peer_expect_result(p, "1", "{}");
	ask(false, CALL);
	peer_expect_error(p, "1",
	    FAILED("tools/call", "the queue of the upstream is full",
		"; a retry may help", "busy", "true"));
	fake_upstream_refuse(f->u[0], MV_OK);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "exited with status 1");
	ask(true, CALL);
	peer_expect_error(p, "1",
	    FAILED("tools/call", "the upstream waits for its restart",
		": exited with status 1; a retry may help", "backoff", "true"));
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_PARKED, "no \"npx\"");
	ask(false, READ);
	peer_expect_error(p, "1",
	    FAILED("resources/read", "the upstream failed too often",
		": no \\\"npx\\\"; a retry will not help", "parked", "false"));
	/* The others go on. */
	ask(false, "tools/call", "\"name\":\"beta__a\"");
	fake_upstream_result(f->u[1], 1, "{}");
	peer_expect_result(p, "1", "{}");
}
END_TEST

/* ---- for a model to read ---- */

#define AS_RESULT(text)                                                                  \
	"\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}],\"isError\":true}"

static void
expect_as_result(bool modern, const char *rest)
{
	char want[1024];

	(void)snprintf(want, sizeof(want), "{%s%s",
	    modern ? "\"resultType\":\"complete\"," SERVER_META "," : "", rest);
	peer_expect_result(p, "1", want);
}

static const struct {
	enum mv_err err;
	const char *detail, *rest;
} unreachable[] = {
    {MV_DIED, "killed by signal 9 (Killed)",
	AS_RESULT("Upstream alpha: the upstream ended (tools/call): killed by signal 9 "
		  "(Killed); the call may have had effects, so check before a retry")},
    {MV_TIMEOUT, NULL,
	AS_RESULT(
	    "Upstream alpha: no answer within the time limit of 300000 ms (tools/call); "
	    "the call may have had effects, so check before a retry")},
    {MV_SPAWN, "no \"npx\"",
	AS_RESULT("Upstream alpha: the command could not be started (tools/call): no "
		  "\\\"npx\\\"; a retry may help")},
    {MV_PROTOCOL, NULL,
	AS_RESULT("Upstream alpha: the upstream broke the protocol (tools/call); the "
		  "call may have had effects, and a retry will not help")},
};

START_TEST(failures_become_results)
{
	size_t n = 0;

	f->confs[0]->failure = FAILURE_TOOL_ERROR;
	for (unsigned modern = 0; modern < 2; modern++) {
		ask(modern, CALL);
		fake_upstream_fail(
		    f->u[0], n++, unreachable[_i].err, unreachable[_i].detail);
		expect_as_result(modern, unreachable[_i].rest);
		/* Of tools alone. */
		ask(modern, READ);
		fake_upstream_fail(
		    f->u[0], n++, unreachable[_i].err, unreachable[_i].detail);
		(void)peer_expect_code(p, "1", -32603);
	}
	/* Of this upstream alone. */
	ask(false, "tools/call", "\"name\":\"beta__a\"");
	fake_upstream_fail(f->u[1], 0, unreachable[_i].err, unreachable[_i].detail);
	(void)peer_expect_code(p, "1", -32603);
}
END_TEST

START_TEST(refusals_become_results)
{
	f->confs[0]->failure = FAILURE_TOOL_ERROR;
	fake_upstream_refuse(f->u[0], MV_BUSY);
	ask(false, CALL);
	expect_as_result(false,
	    AS_RESULT("Upstream alpha: the queue of the upstream is full (tools/call); a "
		      "retry may help"));
	fake_upstream_refuse(f->u[0], MV_OK);
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_PARKED, "no \"npx\"");
	ask(true, CALL);
	expect_as_result(true,
	    AS_RESULT("Upstream alpha: the upstream failed too often (tools/call): no "
		      "\\\"npx\\\"; a retry will not help"));
	/* What nobody has is still an error. */
	ask(false, "tools/call", "\"name\":\"alpha__nope\"");
	(void)peer_expect_code(p, "1", -32602);
}
END_TEST

static const struct {
	const char *error, *rest; /* rest NULL: it stays an error */
} rescued[] = {
    {"{\"code\":-32602,\"message\":\"\\u0041 is \\\"bad\\\"\"}",
	AS_RESULT("\\u0041 is \\\"bad\\\" (JSON-RPC error -32602)")},
    {"{\"data\":{\"code\":1},\"message\":\"m\",\"code\":-32603}",
	AS_RESULT("m (JSON-RPC error -32603)")},
    {"{\"code\":-32603,\"message\":\"\"}", AS_RESULT("(JSON-RPC error -32603)")},
    {"{\"code\":-32000,\"message\":\"m\"}", NULL},
};

START_TEST(errors_become_results)
{
	size_t n = 0;

	f->confs[0]->rescue_errors = true;
	for (unsigned modern = 0; modern < 2; modern++) {
		ask(modern, CALL);
		fake_upstream_error(f->u[0], n++, rescued[_i].error);
		if (rescued[_i].rest != NULL)
			expect_as_result(modern, rescued[_i].rest);
		else
			peer_expect_error(p, "1", rescued[_i].error);
		/* Other methods, other upstreams and tools that are not known stay. */
		ask(modern, GET);
		fake_upstream_error(f->u[0], n++, rescued[_i].error);
		peer_expect_error(p, "1", rescued[_i].error);
		ask(modern, "tools/call", "\"name\":\"beta__a\"");
		fake_upstream_error(f->u[1], modern, rescued[_i].error);
		peer_expect_error(p, "1", rescued[_i].error);
		ask(modern, CALL);
		fake_upstream_error(f->u[0], n++, "{\"code\":-32601,\"message\":\"m\"}");
		peer_expect_error(p, "1", NO_TOOL("m"));
	}
}
END_TEST

/* ---- tools that the conf has shaped ---- */

#define SHAPED "\"name\":\"alpha__a\",\"arguments\":"

static const struct {
	const char *members, *want;
} shaped[] = {
    {SHAPED "{\"Owner\":1}", "{\"code\":-32602,\"message\":\"Invalid params: argument "
			     "\\\"Owner\\\" differs only by case from one that is fixed. "
			     "Retrying unchanged will fail.\"}"},
    {SHAPED "[]", "{\"code\":-32602,\"message\":\"Invalid params: arguments must be an "
		  "object; got []. Retrying unchanged will fail.\"}"},
};

START_TEST(arguments_that_a_shape_refuses)
{
	struct fleet_conf *c = fleet_conf_new(1);
	struct fleet *g;
	struct peer *q;

	c->confs[0]->n_shapes = 1;
	c->confs[0]->shapes = mem_xcalloc(1, sizeof(*c->confs[0]->shapes));
	*c->confs[0]->shapes = (struct tool_shape){.tool = mem_xstrdup("a"),
	    .fixed = mem_xstrdup("{\"owner\":\"me\"}"),
	    .call_ms = 70};
	g = fleet_running_from(c);
	fleet_list(g, 0, LIST_TOOLS, "a", NULL);
	q = peer_new(g);
	peer_ask_modern(q, "1", "tools/call", shaped[_i].members);
	peer_expect_error(q, "1", shaped[_i].want);
	ck_assert_uint_eq(fake_upstream_n_sent(g->u[0]), 0);
	/* An error names the limit that was met. */
	peer_ask_modern(q, "1", "tools/call", "\"name\":\"alpha__a\"");
	fake_upstream_fail(g->u[0], 0, MV_TIMEOUT, NULL);
	ck_assert_ptr_nonnull(strstr(peer_read(q), "the time limit of 70 ms"));
	peer_free(q);
	fleet_free(g);
}
END_TEST

/* ---- before the lists are in ---- */

START_TEST(calls_that_waited)
{
	struct fleet *slow = fleet_new(2, NULL);
	struct peer *q = peer_new(slow);

	gateway_start(slow->g);
	peer_ask(q, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	peer_ask(q, "2", "tools/call", "{\"name\":\"no\\u0070e\"}");
	peer_ask(q, "3", "tools/call", "{\"name\":\"beta__a\"}");
	peer_ask(q, "4", "resources/read", "{\"uri\":\"x:/\"}");
	peer_ask_modern(q, "5", "resources/read", "\"uri\":\"x:/\"");
	peer_ask(q, "6", "completion/complete",
	    "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"alpha__p\"}}");
	peer_ask(q, "7", "tools/call", "{\"name\":7}");
	(void)peer_expect_code(q, "7", -32602);
	peer_expect_silence(q);
	ck_assert_uint_eq(client_in_flight(q->c), 6);
	fake_upstream_set_state(slow->u[0], UPSTREAM_ST_READY, "");
	fleet_list(slow, 0, LIST_TOOLS, "a", NULL);
	fake_upstream_result(slow->u[0], 0, "{\"x\":1.0}");
	peer_expect_result(q, "1", "{\"x\":1.0}");
	fleet_list(slow, 0, LIST_PROMPTS, "p", NULL);
	peer_expect_result(
	    q, "6", "{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}");
	fake_loop_advance(slow->loop, FLEET_WAIT_MS);
	peer_expect_error(q, "2", "{\"code\":-32602,\"message\":\"Unknown tool: nope\"}");
	peer_expect_error(q, "3",
	    "{\"code\":-32603,\"message\":\"Upstream beta: the upstream is not ready "
	    "(tools/call); a retry may help\",\"data\":{\"upstream\":\"beta\","
	    "\"reason\":\"starting\",\"retryable\":true}}");
	peer_expect_error(q, "4",
	    "{\"code\":-32002,\"message\":\"Resource not found: x:/\","
	    "\"data\":{\"uri\":\"x:/\"}}");
	peer_expect_error(q, "5",
	    "{\"code\":-32602,\"message\":\"Resource not found: x:/\","
	    "\"data\":{\"uri\":\"x:/\"}}");
	ck_assert_uint_eq(client_in_flight(q->c), 0);
	ck_assert_uint_eq(fake_upstream_n_sent(slow->u[1]), 0);
	peer_free(q);
	fleet_free(slow);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_errors");
	TCase *tc = tcase_create("client_errors");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, errors_of_upstreams, 0, (int)(sizeof(errors) / sizeof(errors[0])));
	tcase_add_loop_test(
	    tc, url_elicitations_become_input, 0, (int)(sizeof(urls) / sizeof(urls[0])));
	tcase_add_test(tc, url_elicitations_of_a_completion);
	tcase_add_loop_test(tc, calls_without_an_answer, 0,
	    (int)(sizeof(failures) / sizeof(failures[0])));
	tcase_add_test(tc, calls_that_may_have_acted);
	tcase_add_test(tc, a_tool_that_is_not_there);
	tcase_add_test(tc, calls_that_cannot_be_sent);
	tcase_add_test(tc, calls_that_waited);
	tcase_add_loop_test(tc, arguments_that_a_shape_refuses, 0,
	    (int)(sizeof(shaped) / sizeof(shaped[0])));
	tcase_add_loop_test(tc, failures_become_results, 0,
	    (int)(sizeof(unreachable) / sizeof(unreachable[0])));
	tcase_add_test(tc, refusals_become_results);
	tcase_add_loop_test(
	    tc, errors_become_results, 0, (int)(sizeof(rescued) / sizeof(rescued[0])));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
