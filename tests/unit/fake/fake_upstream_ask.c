/* SPDX-License-Identifier: MIT */
/*
 * What a fake upstream asks its client, and what it is told that this can do.
 *
 * Owns: the open questions and their answers.
 * Driven by: the test.
 */
#include "fake/fake_upstream.h"

#include "fake/fake_upstream_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <string.h>

void
upstream_set_client_caps(struct upstream *u, unsigned caps)
{
	u->client_caps = caps;
	u->caps_known = true;
}

void
upstream_follow(struct upstream *u, const struct upstream *of)
{
	u->is_modern = of->is_modern;
}

unsigned
fake_upstream_client_caps(const struct upstream *u)
{
	return u->client_caps;
}

bool
fake_upstream_caps_are_known(const struct upstream *u)
{
	return u->caps_known;
}

bool
upstream_asks(const struct upstream *u)
{
	return u->asks;
}

void
upstream_note_asks(struct upstream *u)
{
	u->asks = true;
}

bool
upstream_tells_calls(const struct upstream *u)
{
	return u->is_remote;
}

bool
upstream_is_remote(const struct upstream *u)
{
	return u->is_remote;
}

bool
upstream_may_ask_in_results(const struct upstream *u)
{
	return u->is_modern;
}

bool
upstream_may_ask_by_request(const struct upstream *u)
{
	return !u->is_modern;
}

void
fake_note_withdrawn(struct upstream *u, const struct upstream_req *r)
{
	if (u->withdrawn_ms == 0)
		u->withdrawn_owner = r->owner;
	else if (u->withdrawn_owner != r->owner)
		u->withdrawn_owner = NULL;
	u->withdrawn_ms = clock_now_ms();
}

const void *
upstream_withdrawn_owner(const struct upstream *u)
{
	return u->withdrawn_owner;
}

void
upstream_forget_owner(struct upstream *u, const void *owner)
{
	if (u->withdrawn_owner == owner)
		u->withdrawn_owner = NULL;
}

uint64_t
upstream_withdrawn_ms(const struct upstream *u)
{
	return u->withdrawn_ms;
}

void
upstream_tell_roots_changed(struct upstream *u)
{
	u->roots_changes++;
}

unsigned
fake_upstream_roots_changes(const struct upstream *u)
{
	return u->roots_changes;
}

void
fake_upstream_set_kind(struct upstream *u, bool is_remote, bool is_modern)
{
	u->is_remote = is_remote;
	u->is_modern = is_modern;
}

static void
fake_unlink(struct question *q)
{
	struct upstream *u = q->u;

	if (q->req != NULL)
		q->req->n_questions--;
	*q->prev = q->next;
	if (q->next != NULL)
		q->next->prev = q->prev;
	u->n_questions--;
}

static void
fake_on_taken(struct question *q, struct upstream_req *req)
{
	q->req = req;
	if (req != NULL)
		req->n_questions++;
}

/* What question_refuse sends, or another error that has a code of JSON-RPC's own. */
static bool
fake_put_refusal(struct buf *out, const char *member, struct jtext body)
{
	struct jtext message = json_member(body, "message");
	int64_t code = 0;

	if (strcmp(member, "error") != 0 || !json_int(json_member(body, "code"), &code) ||
	    code > -32000 || json_member(body, "data").n != 0)
		return false;
	buf_addf(out, " refused %lld ", (long long)code);
	return json_string_decode(message, out);
}

static void
fake_on_answer(struct question *q, const char *member, const struct iovec *body, int n)
{
	struct upstream *u = q->u;
	struct buf b, text;

	mem_fail_hold(true);
	buf_init(&text, CAP_MESSAGE_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&text, body[i].iov_base, body[i].iov_len);
	buf_init(&b, CAP_MESSAGE_BYTES);
	json_put(&b, q->id);
	if (!fake_put_refusal(&b, member, (struct jtext){text.data, text.len})) {
		buf_addf(&b, " %s ", member);
		buf_add(&b, text.data, text.len);
	}
	buf_fini(&text);
	mem_free(u->answer);
	u->answer = buf_take(&b, NULL);
	mem_fail_hold(false);
	u->n_answers++;
	fake_unlink(q);
}

static void
fake_on_progress(struct question *q, const struct link_msg *m)
{
	(void)m;
	q->u->n_question_progress++;
}

static const struct question_ops fake_ops = {
    .on_taken = fake_on_taken, .answer = fake_on_answer, .progress = fake_on_progress};

void
fake_upstream_ask(struct upstream *u, struct upstream_req *by, enum method method,
    const char *id_params)
{
	struct json_msg *json;
	struct question *q;
	struct link_msg m;
	struct buf b;

	mem_fail_hold(true);
	json = mem_xalloc(sizeof(*json));
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",%s}", method_name(method),
	    id_params);
	ck_assert_int_eq(link_scan(b.data, b.len, json, &m), MV_OK);
	q = question_new(&fake_ops, u, method, &m);
	mem_fail_hold(false);
	buf_fini(&b);
	mem_free(json);
	q->next = u->questions;
	if (q->next != NULL)
		q->next->prev = &q->next;
	q->prev = &u->questions;
	u->questions = q;
	u->n_questions++;
	ck_assert(u->cb->on_question != NULL);
	u->cb->on_question(u->arg, u, by, q);
}

void
fake_upstream_elicited(struct upstream *u, const char *params)
{
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m;
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}",
	    method_name(METHOD_N_ELICITED), params);
	ck_assert_int_eq(link_scan(b.data, b.len, json, &m), MV_OK);
	mem_fail_hold(false);
	u->cb->on_elicited(u->arg, u, &m);
	buf_fini(&b);
	mem_free(json);
}

void
fake_upstream_withdraw(struct upstream *u)
{
	while (u->questions != NULL) {
		struct question *q = u->questions;

		fake_unlink(q);
		question_withdraw(q);
	}
}

unsigned
fake_upstream_n_question_progress(const struct upstream *u)
{
	return u->n_question_progress;
}

unsigned
fake_upstream_n_questions(const struct upstream *u)
{
	return u->n_questions;
}

unsigned
fake_upstream_n_answers(const struct upstream *u)
{
	return u->n_answers;
}

const char *
fake_upstream_answer(const struct upstream *u)
{
	return u->answer != NULL ? u->answer : "";
}
