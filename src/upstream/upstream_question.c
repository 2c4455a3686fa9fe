/* SPDX-License-Identifier: MIT */
/*
 * What an upstream asks its client: kept until it is answered, or asked for no more.
 *
 * Owns: the open questions, each a copy of its message.
 * Driven by: requests of a legacy upstream; whoever took a question.
 * Invariants: a question is answered once, or withdrawn; nothing is asked that was not
 * declared to this process; a modern upstream asks in its results and never here.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"

#include <string.h>

/* Errors that a client gives for what it cannot do. */
#define PIECES_MAX (2 * JSON_EDITS_MAX + 8)

static struct iovec
piece_of(const char *p, size_t n)
{
	/* It is only read, but an iovec has no const. */
	return (struct iovec){(void *)(uintptr_t)p, n};
}

static struct iovec
piece_str(const char *s)
{
	return piece_of(s, strlen(s));
}

unsigned
upstream_declared_caps(const struct upstream *u)
{
	unsigned caps = u->client_caps;

	if (u->conf->roots == ROOTS_NONE || u->conf->roots == ROOTS_LIST)
		caps &= ~CLIENT_CAPS_ROOTS;
	if (u->conf->roots == ROOTS_LIST)
		caps |= CLIENT_CAP_ROOTS;
	return caps;
}

static void
question_send(struct upstream *u, struct jtext id, const char *member,
    const struct iovec *body, int n)
{
	struct buf b;

	buf_init(&b, CAP_OUT_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
	json_put(&b, id);
	buf_addf(&b, ",\"%s\":", member);
	for (int i = 0; i < n; i++)
		buf_add(&b, body[i].iov_base, body[i].iov_len);
	buf_add_char(&b, '}');
	if (u->batch_out != NULL && b.err == MV_OK) {
		if (u->batch_out->len > 1)
			buf_add_char(u->batch_out, ',');
		buf_add(u->batch_out, b.data, b.len);
	} else {
		(void)upstream_write(u, &b);
	}
	buf_fini(&b);
}

static void
question_send_error(
    struct upstream *u, struct jtext id, enum wording w, struct jtext value)
{
	struct iovec iov;
	struct buf b;

	buf_init(&b, 1024);
	wording_put(&b, w, value);
	iov = piece_of(b.data, b.len);
	if (b.err == MV_OK)
		question_send(u, id, "error", &iov, 1);
	buf_fini(&b);
}

/* The time since then was its client's, not its upstream's. */
static void
req_resume(struct upstream_req *r, uint64_t since)
{
	uint64_t now = clock_now_ms();

	if (since < r->started_ms)
		since = r->started_ms;
	r->started_ms += now - since;
	r->heard_ms = now;
}

static void
question_resume_all(struct question *q)
{
	struct upstream *u = q->u;

	if (!q->is_loose)
		return;
	q->is_loose = false;
	if (--u->n_loose > 0 || u->n_calls == 0)
		return;
	for (struct upstream_req *r = u->flying; r != NULL; r = r->next)
		if (r->is_call)
			req_resume(r, u->loose_ms);
	upstream_calls_look(u);
}

static void
question_resume(struct question *q)
{
	struct upstream_req *r = q->req;

	question_resume_all(q);
	if (r == NULL)
		return;
	q->req = NULL;
	if (--r->n_questions > 0)
		return;
	req_resume(r, r->rest_ms);
	upstream_calls_arm(q->u, r);
}

/* Out of every table; only its memory is left. */
static void
question_unlink(struct question *q)
{
	question_resume(q);
	*q->prev = q->next;
	if (q->next != NULL)
		q->next->prev = q->prev;
	q->u->n_questions--;
	q->u->question_bytes -= q->msg.len;
	upstream_idle_arm(q->u);
}

static void
question_on_taken(struct question *q, struct upstream_req *req)
{
	if (q->req != NULL)
		return;
	if (req == NULL || req->u != q->u) {
		if (!q->is_loose && q->u->n_loose++ == 0)
			q->u->loose_ms = clock_now_ms();
		q->is_loose = true;
		return;
	}
	question_resume_all(q);
	q->req = req;
	if (req->n_questions++ == 0)
		req->rest_ms = clock_now_ms();
}

static void
question_on_answer(
    struct question *q, const char *member, const struct iovec *body, int n)
{
	question_unlink(q);
	if (upstream_is_open(q->u))
		question_send(q->u, q->id, member, body, n);
}

static void
question_on_progress(struct question *q, const struct link_msg *m)
{
	struct json_span token = q->json.slot[JSON_M_PROGRESS_TOKEN];
	struct json_span at = m->json->slot[JSON_P_PROGRESS_TOKEN];
	struct json_span whole = {0, (uint32_t)m->len};
	struct json_edits ed;
	struct iovec iov[PIECES_MAX];
	struct buf b;
	int n;

	json_edits_init(&ed);
	if (token.len == 0 || at.len == 0 || !upstream_is_open(q->u))
		return;
	json_edit_add(&ed, at.off, at.len, q->bytes + token.off, token.len);
	n = json_edit_pieces(m->base, whole, &ed, iov);
	buf_init(&b, CAP_MESSAGE_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	(void)upstream_write(q->u, &b);
	buf_fini(&b);
}

static const struct question_ops question_ops = {
    .on_taken = question_on_taken,
    .answer = question_on_answer,
    .progress = question_on_progress,
};

static void
question_end(struct question *q)
{
	question_unlink(q);
	question_withdraw(q);
}

void
upstream_questions_drop(struct upstream *u)
{
	while (u->questions != NULL)
		question_end(u->questions);
	u->withdrawn_ms = 0; /* nor is anybody at work on what was given up */
}

void
upstream_questions_forget(struct upstream *u, struct upstream_req *r)
{
	for (struct question *q = u->questions; q != NULL; q = q->next)
		if (q->req == r)
			q->req = NULL;
	r->n_questions = 0;
}

void
upstream_on_question_cancelled(struct upstream *u, const struct link_msg *m)
{
	struct jtext id = jtext_of(m->base, m->json->slot[JSON_P_REQUEST_ID]);

	for (struct question *q = u->questions; q != NULL; q = q->next)
		if (json_id_is_same(q->id, id)) {
			question_end(q);
			return;
		}
}

/* The folders that the conf gives it. */
static void
question_answer_roots(struct upstream *u, struct jtext id)
{
	struct iovec iov;
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"roots\":[");
	for (char **uri = u->conf->root_uris; uri != NULL && *uri != NULL; uri++) {
		buf_add_str(&b, uri == u->conf->root_uris ? "{\"uri\":" : ",{\"uri\":");
		json_put_string(&b, *uri, strlen(*uri));
		buf_add_char(&b, '}');
	}
	buf_add_str(&b, "]}");
	iov = piece_of(b.data, b.len);
	if (b.err == MV_OK)
		question_send(u, id, "result", &iov, 1);
	buf_fini(&b);
}

static struct question *
question_enter(struct upstream *u, enum method method, const struct link_msg *m)
{
	struct question *q = NULL;

	if (u->n_questions < CAP_UPSTREAM_QUESTIONS &&
	    u->question_bytes + m->len <= u->conf->queue_bytes)
		q = question_new(&question_ops, u, method, m);
	if (q == NULL)
		return NULL;
	q->next = u->questions;
	if (q->next != NULL)
		q->next->prev = &q->next;
	q->prev = &u->questions;
	u->questions = q;
	u->n_questions++;
	u->question_bytes += m->len;
	return q;
}

/* It may ask this, of this client: hands it up. */
static void
question_ask(struct upstream *u, struct upstream_req *by, enum method method,
    const struct link_msg *m)
{
	struct question *q;

	if (method == METHOD_ROOTS && u->conf->roots == ROOTS_LIST) {
		question_answer_roots(u, m->env.id);
		return;
	}
	q = u->cb->on_question != NULL ? question_enter(u, method, m) : NULL;
	if (q == NULL) {
		question_send_error(
		    u, m->env.id, WORDING_ASK_NOBODY_NOW, (struct jtext){NULL, 0});
		return;
	}
	u->cb->on_question(u->arg, u, by, q);
}

void
upstream_on_request(struct upstream *u, struct upstream_req *by, const struct link_msg *m)
{
	enum method method = method_parse(m->env.method);
	unsigned needed =
	    client_caps_needed(method, jtext_of(m->base, m->json->slot[JSON_PARAMS]));
	struct iovec empty = piece_str("{}");

	if (method == METHOD_PING) {
		question_send(u, m->env.id, "result", &empty, 1);
		return;
	}
	if (needed == 0 || u->era == NULL || u->era->asks_in_results) {
		question_send_error(
		    u, m->env.id, WORDING_NO_METHOD, wording_inside(m->env.method));
		return;
	}
	if ((needed & ~upstream_declared_caps(u)) != 0) {
		LOG_LIMITED(LOG_LV_WARNING, "upstream", "asks what was not offered",
		    "upstream=%s method=%s",
		    LOG_ESC(u->conf->name, strlen(u->conf->name)), method_name(method));
		question_send_error(
		    u, m->env.id, WORDING_ASK_UNDECLARED, (struct jtext){NULL, 0});
		return;
	}
	question_ask(u, by, method, m);
}

void
upstream_set_client_caps(struct upstream *u, unsigned caps)
{
	u->client_caps = caps;
	u->caps_known = true;
	if (u->init_waits)
		upstream_send_initialize(u);
}

bool
upstream_asks(const struct upstream *u)
{
	return u->asks;
}

void
upstream_note_asks(struct upstream *u)
{
	if (u->asks)
		return;
	u->asks = true;
	/* At once: another process may take its place. */
	upstream_memory_touch(u);
	upstream_memory_flush(u);
}

void
upstream_tell_roots_changed(struct upstream *u)
{
	struct buf b;

	if (u->era == NULL || u->era->asks_in_results ||
	    (upstream_declared_caps(u) & CLIENT_CAP_ROOTS_CHANGED) == 0)
		return;
	buf_init(&b, 256);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}",
	    method_name(METHOD_N_ROOTS_CHANGED));
	(void)upstream_write(u, &b);
	buf_fini(&b);
}

bool
upstream_may_ask_in_results(const struct upstream *u)
{
	return u->era != NULL ? u->era->asks_in_results : u->known_era != ERA_LEGACY;
}

bool
upstream_may_ask_by_request(const struct upstream *u)
{
	return u->era != NULL ? !u->era->asks_in_results : u->known_era != ERA_MODERN;
}

uint64_t
upstream_withdrawn_ms(const struct upstream *u)
{
	return u->withdrawn_ms;
}

const void *
upstream_withdrawn_owner(const struct upstream *u)
{
	return u->withdrawn_ms != 0 ? u->withdrawn_owner : NULL;
}

void
upstream_forget_owner(struct upstream *u, const void *owner)
{
	/* Another one may come to lie in its place. */
	if (u->withdrawn_owner == owner)
		u->withdrawn_owner = NULL;
}
