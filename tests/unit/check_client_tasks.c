/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet peer */
/* SPDX-License-Identifier: MIT */
/* Tasks as a client sees them: the bytes around an id stay, and lists have pages. */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELATED	  "\"io.modelcontextprotocol/related-task\""
#define CALL_TASK "{\"name\":\"alpha__a\",\"task\":{}}"
#define PAGE	  32

static struct fleet *f;
static struct peer *p;
static char key[64]; /* our id of the last one */

static void
setup(void)
{
	struct upstream_caps caps = {.tools = true, .tasks = true, .tasks_cancel = true};

	f = fleet_full();
	fake_upstream_set_caps(f->u[0], caps);
	caps = (struct upstream_caps){.tools = true, .tasks_extension = true};
	fake_upstream_set_caps(f->u[1], caps);
	p = peer_new(f);
}

static void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

static size_t
last(size_t i)
{
	return fake_upstream_n_sent(f->u[i]) - 1;
}

/* Text with every "@" in it replaced by key; valid until the next one. */
static const char *
with_key(const char *text)
{
	static char out[4096];
	size_t at = 0;

	for (; *text != '\0'; text++) {
		ck_assert_uint_lt(at + sizeof(key), sizeof(out));
		if (*text != '@') {
			out[at++] = *text;
			continue;
		}
		memcpy(out + at, key, strlen(key));
		at += strlen(key);
	}
	out[at] = '\0';
	return out;
}

/* The id in an answer, behind taskId. */
static void
take_key(const char *line)
{
	const char *at = strstr(line, "\"taskId\":\"");

	ck_assert_msg(at != NULL, "%s", line);
	at += strlen("\"taskId\":\"");
	(void)snprintf(key, sizeof(key), "%.*s", (int)strcspn(at, "\""), at);
}

/* A task of alpha, whose own id is id. */
static void
make(const char *id)
{
	char body[128];

	peer_ask(p, "1", "tools/call", CALL_TASK);
	(void)snprintf(body, sizeof(body),
	    "{\"task\":{\"taskId\":\"%s\",\"status\":\"working\",\"ttl\":60000}}", id);
	fake_upstream_result(f->u[0], last(0), body);
	take_key(peer_read(p));
}

static const struct {
	const char *method;
	const char *body; /* of the upstream */
	const char *want; /* "@": our id */
} answers[] = {
    {"tasks/get",
	"{\"x\":1.0, \"taskId\" : \"t\\u0031\" ,\"status\":\"working\",\"y\":[]}",
	"{\"x\":1.0, \"taskId\" : \"@\" ,\"status\":\"working\",\"y\":[]}"},
    {"tasks/get", "{\"taskId\":\"t1\",\"taskId\":\"t1\"}",
	"{\"taskId\":\"@\",\"taskId\":\"t1\"}"},
    /* What is no id of its stays as it is. */
    {"tasks/get", "{\"taskId\":\"t2\"}", "{\"taskId\":\"t2\"}"},
    {"tasks/get", "{\"taskId\":{}}", "{\"taskId\":{}}"},
    {"tasks/cancel", "{\"taskId\":\"t1\",\"status\":\"cancelled\"}",
	"{\"taskId\":\"@\",\"status\":\"cancelled\"}"},
    {"tasks/result",
	"{\"_meta\":{" RELATED ":{\"a\":1,\"taskId\":\"t1\"}},\"content\":[]}",
	"{\"_meta\":{" RELATED ":{\"a\":1,\"taskId\":\"@\"}},\"content\":[]}"},
    {"tasks/result", "{\"_meta\":{" RELATED ":[]},\"content\":[]}",
	"{\"_meta\":{" RELATED ":[]},\"content\":[]}"},
    {"tasks/result", "{\"_meta\":{" RELATED ":{\"taskId\":\"t9\"}},\"content\":[]}",
	"{\"_meta\":{" RELATED ":{\"taskId\":\"t9\"}},\"content\":[]}"},
};

START_TEST(only_the_id_changes)
{
	peer_initialize(p, "2025-11-25");
	make("t1");
	peer_ask(
	    p, "2", answers[_i].method, with_key("{\"z\" : 1e400,\"taskId\":\"@\"}"));
	ck_assert_str_eq(
	    fake_upstream_last(f->u[0])->params, "{\"z\" : 1e400,\"taskId\":\"t1\"}");
	fake_upstream_result(f->u[0], last(0), answers[_i].body);
	peer_expect_result(p, "2", with_key(answers[_i].want));
}
END_TEST

START_TEST(a_result_ends_its_upstreams_wait)
{
	peer_initialize(p, "2025-11-25");
	make("t1");
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
	peer_ask(p, "2", "tasks/result", with_key("{\"taskId\":\"@\"}"));
	if (_i == 0)
		fake_upstream_result(f->u[0], last(0), "{\"content\":[]}");
	else
		fake_upstream_error(
		    f->u[0], last(0), "{\"code\":-32000,\"message\":\"\"}");
	(void)peer_read(p);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
}
END_TEST

START_TEST(what_its_upstream_has_lost_is_not_waited_for)
{
	peer_initialize(p, "2025-11-25");
	make("t1");
	peer_ask(p, "2", "tasks/get", with_key("{\"taskId\":\"@\"}"));
	fake_upstream_error(f->u[0], last(0), "{\"code\":-32602,\"message\":\"gone\"}");
	peer_expect_error(p, "2", "{\"code\":-32602,\"message\":\"gone\"}");
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
}
END_TEST

START_TEST(a_modern_task)
{
	static const char caps[] =
	    "\"_meta\":{" MODERN_VERSION
	    ",\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":"
	    "{\"io.modelcontextprotocol/tasks\":{}}}}";
	char params[512];

	peer_ask_modern(p, "1", "tools/call", "\"name\":\"beta__a\",\"arguments\":{}");
	fake_upstream_result(f->u[1], last(1),
	    "{\"resultType\":\"task\",\"taskId\":\"t1\",\"status\":\"working\"}");
	take_key(peer_read(p));
	(void)snprintf(params, sizeof(params), "{%s,\"taskId\":\"@\"}", caps);
	peer_ask(p, "2", "tasks/get", with_key(params));
	fake_upstream_result(f->u[1], last(1),
	    "{\"taskId\":\"t1\",\"status\":\"completed\",\"result\":{}}");
	peer_expect_result(p, "2",
	    with_key("{\"resultType\":\"complete\",\"taskId\":\"@\",\"status\":"
		     "\"completed\",\"result\":{}}"));
	ck_assert_uint_eq(fake_upstream_holds(f->u[1]), 0);
	/* One whose id is none cannot be passed on. */
	peer_ask_modern(p, "3", "tools/call", "\"name\":\"beta__a\",\"arguments\":{}");
	fake_upstream_result(f->u[1], last(1), "{\"resultType\":\"task\",\"taskId\":7}");
	(void)peer_expect_code(p, "3", -32603);
}
END_TEST

START_TEST(too_many_are_refused_before_they_are_made)
{
	char id[16];
	size_t sent;

	peer_initialize(p, "2025-11-25");
	for (unsigned i = 0; i < CAP_CLIENT_TASKS; i++) {
		(void)snprintf(id, sizeof(id), "t%u", i);
		make(id);
	}
	sent = fake_upstream_n_sent(f->u[0]);
	peer_ask(p, "1", "tools/call", CALL_TASK);
	(void)peer_expect_code(p, "1", -32603);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), sent);
	/* A plain call is as good as ever. */
	peer_ask(p, "1", "tools/call", "{\"name\":\"alpha__a\"}");
	fake_upstream_result(f->u[0], last(0), "{}");
	peer_expect_result(p, "1", "{}");
}
END_TEST

static void
answer_gets(size_t from, size_t n, unsigned first)
{
	char body[128];

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(body, sizeof(body),
		    "{\"status\":\"working\",\"taskId\":\"t%u\"}", first + (unsigned)i);
		fake_upstream_result(f->u[0], from + i, body);
	}
}

START_TEST(a_list_has_pages)
{
	const char *line;
	char id[16];
	size_t sent;

	peer_initialize(p, "2025-11-25");
	for (unsigned i = 0; i < PAGE + 1; i++) {
		(void)snprintf(id, sizeof(id), "t%u", i);
		make(id);
	}
	sent = fake_upstream_n_sent(f->u[0]);
	peer_ask(p, "1", "tasks/list", "{}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), sent + PAGE);
	ck_assert_str_eq(
	    fake_upstream_sent(f->u[0], sent)->params, "{\"taskId\":\"t0\"}");
	answer_gets(sent, PAGE, 0);
	line = peer_read(p);
	ck_assert_ptr_nonnull(strstr(line, ".t0\"},{\"status\":\"working\",\"taskId\":"));
	ck_assert_ptr_nonnull(strstr(line, "],\"nextCursor\":\"32\"}"));
	peer_ask(p, "2", "tasks/list", "{\"cursor\":\"32\"}");
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[0]), sent + PAGE + 1);
	answer_gets(sent + PAGE, 1, PAGE);
	peer_expect_result(
	    p, "2", with_key("{\"tasks\":[{\"status\":\"working\",\"taskId\":\"@\"}]}"));
	peer_ask(p, "3", "tasks/list", "{\"cursor\":\"33\"}");
	peer_expect_result(p, "3", "{\"tasks\":[]}");
	peer_ask(p, "4", "tasks/list", "{\"cursor\":\"34\"}");
	(void)peer_expect_code(p, "4", -32602);
}
END_TEST

START_TEST(a_list_that_nobody_waits_for)
{
	peer_initialize(p, "2025-11-25");
	make("t1");
	peer_ask(p, "1", "tasks/list", NULL);
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		    "\"params\":{\"requestId\":1}}");
	ck_assert(fake_upstream_last(f->u[0])->cancelled);
	peer_expect_silence(p);
	/* One whose upstream cannot be asked now is not in it. */
	fake_upstream_set_state(f->u[0], UPSTREAM_ST_DOWN, "");
	peer_ask(p, "1", "tasks/list", NULL);
	peer_expect_result(p, "1", "{\"tasks\":[]}");
}
END_TEST

START_TEST(a_question_and_its_answer)
{
	peer_ask(p, "1", "initialize",
	    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
	    "\"clientInfo\":{}}");
	(void)peer_read(p);
	make("t1");
	fake_upstream_ask(f->u[0], NULL, METHOD_ELICIT,
	    "\"id\":\"q\",\"params\":{\"message\":\"?\",\"_meta\":{" RELATED
	    ":{\"taskId\":\"t1\"}}}");
	peer_expect(
	    p, with_key("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\","
			"\"params\":{\"message\":\"?\",\"_meta\":{" RELATED
			":{\"taskId\":\"@\"}}}}"));
	peer_say(
	    p, with_key("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"_meta\":{" RELATED
			":{\"taskId\":\"@\"}},\"action\":\"decline\"}}"));
	ck_assert_str_eq(fake_upstream_answer(f->u[0]),
	    "\"q\" result {\"_meta\":{" RELATED ":{\"taskId\":\"t1\"}},"
	    "\"action\":\"decline\"}");
}
END_TEST

START_TEST(memory_that_is_short_costs_one_task)
{
	unsigned failures = 0, made = 0;
	char body[128];

	peer_initialize(p, "2025-11-25");
	make("t0");
	for (unsigned at = 1; at < 40; at++) {
		const char *line;

		peer_ask(p, "1", "tools/call", CALL_TASK);
		(void)snprintf(body, sizeof(body),
		    "{\"task\":{\"taskId\":\"t%u\",\"status\":\"working\"}}", at);
		mem_fail_at(at, 0);
		fake_upstream_result(f->u[0], last(0), body);
		mem_fail_at(0, 0);
		line = peer_read(p);
		if (strstr(line, "\"error\":") != NULL)
			failures++;
		else
			made++;
		ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1 + made);
	}
	ck_assert_uint_gt(failures, 0);
	ck_assert_uint_gt(made, 20);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_tasks");
	TCase *tc = tcase_create("client_tasks");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, only_the_id_changes, 0, (int)(sizeof(answers) / sizeof(answers[0])));
	tcase_add_loop_test(tc, a_result_ends_its_upstreams_wait, 0, 2);
	tcase_add_test(tc, what_its_upstream_has_lost_is_not_waited_for);
	tcase_add_test(tc, a_modern_task);
	tcase_add_test(tc, too_many_are_refused_before_they_are_made);
	tcase_add_test(tc, a_list_has_pages);
	tcase_add_test(tc, a_list_that_nobody_waits_for);
	tcase_add_test(tc, a_question_and_its_answer);
	tcase_add_test(tc, memory_that_is_short_costs_one_task);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
