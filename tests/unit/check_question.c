/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* A question between its upstream and its taker: copied, ended once. */
#include "mcpvisor/question.h"

#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/upstream.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char heard[512]; /* the last answer: MEMBER BODY */
static unsigned n_taken, n_answers, n_progress, n_withdrawn;

static void
on_taken(struct question *q, struct upstream_req *req)
{
	(void)q;
	n_taken += req != NULL;
}

static void
on_answer(struct question *q, const char *member, const struct iovec *body, int n)
{
	size_t len = (size_t)snprintf(
	    heard, sizeof(heard), "%.*s %s ", (int)q->id.n, q->id.p, member);

	for (int i = 0; i < n; i++) {
		ck_assert_uint_lt(len + body[i].iov_len, sizeof(heard));
		memcpy(heard + len, body[i].iov_base, body[i].iov_len);
		len += body[i].iov_len;
	}
	heard[len] = '\0';
	n_answers++;
}

static void
on_progress(struct question *q, const struct link_msg *m)
{
	(void)q;
	(void)m;
	n_progress++;
}

static const struct question_ops ops = {
    .on_taken = on_taken, .answer = on_answer, .progress = on_progress};

static void
on_withdrawn(void *arg, struct question *q)
{
	ck_assert_ptr_eq(arg, &n_withdrawn);
	ck_assert(q->id.n > 0);
	n_withdrawn++;
}

static const struct question_cb cb = {.on_withdrawn = on_withdrawn};

static void
setup(void)
{
	heard[0] = '\0';
	n_taken = n_answers = n_progress = n_withdrawn = 0;
}

/* The text and its scan are gone when this returns. */
static struct question *
try_made_of(const char *text)
{
	size_t len = strlen(text);
	char *copy = mem_xstrndup(text, len);
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct question *q;
	struct link_msg m;

	ck_assert_int_eq(link_scan(copy, len, json, &m), MV_OK);
	q = question_new(&ops, NULL, METHOD_ELICIT, &m);
	memset(copy, 'x', len);
	memset(json, 0xff, sizeof(*json));
	mem_free(json);
	mem_free(copy);
	return q;
}

static struct question *
made_of(const char *text)
{
	struct question *q = try_made_of(text);

	ck_assert_ptr_nonnull(q);
	return q;
}

#define ASK(id, rest)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"elicitation/create\"" rest "}"

static void
assert_text(struct jtext t, const char *want)
{
	ck_assert_uint_eq(t.n, strlen(want));
	ck_assert_mem_eq(t.p, want, t.n);
}

START_TEST(is_a_copy)
{
	struct question *q = made_of(ASK("\"a\\u0062\"", ",\"params\":{\"x\": 1.0}"));

	assert_text(q->id, "\"a\\u0062\"");
	assert_text(q->msg.env.id, "\"a\\u0062\"");
	assert_text(q->msg.env.method, "\"elicitation/create\"");
	assert_text(question_params(q), "{\"x\": 1.0}");
	ck_assert_ptr_eq(q->msg.base, q->bytes);
	ck_assert_ptr_eq(q->msg.json, &q->json);
	question_answer(q, "result", NULL, 0);
	ck_assert_str_eq(heard, "\"a\\u0062\" result ");
}
END_TEST

START_TEST(without_params)
{
	struct question *q = made_of(ASK("-0", ""));

	ck_assert_uint_eq(question_params(q).n, 0);
	question_withdraw(q);
	ck_assert_uint_eq(n_answers + n_withdrawn, 0); /* nobody had it */
}
END_TEST

START_TEST(taken_over)
{
	struct question *q = made_of(ASK("7", ""));
	struct upstream_req req = {.id = 0};
	unsigned other = 0;

	question_take(q, &cb, &other, NULL);
	ck_assert_uint_eq(n_taken, 0);
	question_take(q, &cb, &n_withdrawn, &req);
	ck_assert_uint_eq(n_taken, 1);
	question_progress(q, NULL);
	ck_assert_uint_eq(n_progress, 1);
	question_withdraw(q);
	ck_assert_uint_eq(n_withdrawn, 1);
	ck_assert_uint_eq(n_answers, 0);
}
END_TEST

START_TEST(refused)
{
	uint64_t counted = metrics_get(METRIC_QUESTIONS_REFUSED);

	question_refuse(made_of(ASK("7", "")), WORDING_ASK_GONE);
	ck_assert_str_eq(heard,
	    "7 error {\"code\":-32603,\"message\":\"The client has gone; a retry will "
	    "not help\"}");
	ck_assert_uint_eq(n_answers, 1);
	ck_assert_uint_eq(metrics_get(METRIC_QUESTIONS_REFUSED), counted + 1);
}
END_TEST

/* What it says then is still an error. */
START_TEST(refused_without_memory)
{
	struct question *q = made_of(ASK("7", ""));

	mem_fail_at(1, 1);
	question_refuse(q, WORDING_ASK_GONE);
	mem_fail_at(0, 0);
	ck_assert_str_eq(heard, "7 error " WORDING_NO_MEMORY);
}
END_TEST

START_TEST(no_memory)
{
	mem_fail_at(1, 0);
	ck_assert_ptr_null(try_made_of(ASK("7", "")));
	mem_fail_at(0, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("question");
	TCase *tc = tcase_create("question");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, is_a_copy);
	tcase_add_test(tc, without_params);
	tcase_add_test(tc, taken_over);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, refused_without_memory);
	tcase_add_test(tc, no_memory);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
