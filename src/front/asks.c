/* SPDX-License-Identifier: MIT */
/*
 * Requests of ours to a legacy client, and its answers.
 *
 * Owns: every request that the client has not answered yet.
 * Driven by: questions of upstreams and input_required results (ask), the client's
 * responses, progress and channel, a timer.
 * Invariants: an answer goes to whoever asked and to nobody else; who asked hears of one
 * end: the answer, or that there will be none; the client is told of what it need not
 * answer any more.
 * Spec: 2025-11-25 client/elicitation, client/sampling, client/roots.
 */
#include "client_ask_priv.h"
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

static void
ask_unlink(struct ask *a)
{
	*a->prev = a->next;
	if (a->next != NULL)
		a->next->prev = a->prev;
	a->c->n_asks--;
}

static void
ask_free(struct ask *a)
{
	buf_fini(&a->unsent);
	mem_free(a);
}

static enum mv_err
port_write(const struct client_port *port, const struct iovec *iov, int n)
{
	if (port == NULL || port->is_mute)
		return MV_CLOSED;
	return port->ops->notify(port->arg, iov, n);
}

/* On the stream of its request, else on the client's own channel, else on whatever stream
 * the client has. */
static enum mv_err
ask_write(struct ask *a, const struct iovec *iov, int n)
{
	struct client *c = a->c;
	enum mv_err err = MV_CLOSED;

	if (a->r != NULL)
		err = port_write(a->r->port, iov, n);
	else if (!c->session.greeted)
		return MV_CLOSED; /* it is asked nothing before it has said so */
	if (err != MV_OK)
		err = c->cb->send(c->arg, iov, n);
	for (struct request *r = c->requests; r != NULL && err != MV_OK; r = r->next)
		if (!r->era->modern)
			err = port_write(r->port, iov, n);
	return err;
}

/* The client need not answer any more. */
static void
ask_send_cancelled(struct ask *a)
{
	struct iovec iov;
	struct buf b;

	if (!a->is_sent)
		return;
	buf_init(&b, 256);
	buf_addf(&b,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
	    "\"requestId\":%llu}}",
	    (unsigned long long)a->id);
	if (b.err == MV_OK) {
		iov = (struct iovec){b.data, b.len};
		(void)ask_write(a, &iov, 1);
	}
	buf_fini(&b);
}

void
ask_drop(struct ask *a)
{
	ask_send_cancelled(a);
	ask_unlink(a);
	ask_free(a);
}

/* a ends without an answer, and whoever asked is told. */
static void
ask_lose(struct ask *a, enum wording why)
{
	const struct ask_ops *ops = a->ops;
	void *arg = a->arg;

	ask_drop(a);
	ops->on_lost(arg, why);
}

static void
asks_arm(struct client *c)
{
	uint64_t now = clock_now_ms(), first = UINT64_MAX;

	for (const struct ask *a = c->asks; a != NULL; a = a->next)
		first = a->due_ms < first ? a->due_ms : first;
	if (first == UINT64_MAX)
		timer_clear(&c->ask_timer);
	else
		timer_set(&c->ask_timer, first > now ? first - now : 0);
}

void
client_on_ask_timer(void *arg)
{
	struct client *c = arg;
	uint64_t now = clock_now_ms();
	struct ask *a = c->asks;

	/* Whoever is told may end others: from the front each time. */
	while (a != NULL) {
		if (a->due_ms > now) {
			a = a->next;
			continue;
		}
		ask_lose(a, a->is_sent ? WORDING_ASK_SILENT : WORDING_ASK_NO_STREAM);
		a = c->asks;
	}
	asks_arm(c);
}

static struct iovec
piece_of(const char *p, size_t n)
{
	return (struct iovec){(void *)(uintptr_t)p, n};
}

static void
ask_put_params(const struct ask *a, const struct ask_what *what, struct buf *out)
{
	struct jtext params = what->params;
	struct jtext token = json_member(json_member(params, "_meta"), "progressToken");
	const char *at = params.p;

	if (what->first.n > 0) {
		buf_add_char(out, '{');
		json_put(out, what->first);
		at++;
	}
	if (token.n > 0 && json_is_id(token)) {
		buf_add(out, at, (size_t)(token.p - at));
		buf_add_u64(out, a->id);
		at = token.p + token.n;
	}
	buf_add(out, at, (size_t)(params.p + params.n - at));
}

/* What it is asked with: our id for its answer, and for its progress if that is wanted.
 */
static void
ask_put(const struct ask *a, const struct ask_what *what, struct buf *out)
{
	buf_addf(out, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\"",
	    (unsigned long long)a->id, method_name(what->method));
	if (what->params.n > 0) {
		buf_add_str(out, ",\"params\":");
		ask_put_params(a, what, out);
	}
	buf_add_char(out, '}');
}

void
client_note_greeted(struct client *c)
{
	if (c->session.greeted)
		return;
	c->session.greeted = true;
	client_asks_resend(c);
}

bool
client_can_be_asked(const struct client *c, enum method m, struct jtext params)
{
	unsigned needed = client_caps_needed(m, params);

	return needed != 0 && (needed & ~c->observer.caps) == 0;
}

struct ask *
client_ask(struct client *c, struct request *r, const struct ask_what *what,
    const struct ask_ops *ops, void *arg)
{
	struct ask *a = c->n_asks < CAP_CLIENT_ASKS ? mem_try(sizeof(*a)) : NULL;
	struct iovec iov;

	if (a == NULL)
		return NULL;
	*a = (struct ask){.c = c,
	    .r = r,
	    .id = ++c->last_ask,
	    .ops = ops,
	    .arg = arg,
	    .limit_ms = what->limit_ms};
	a->due_ms = clock_now_ms() + what->limit_ms;
	buf_init(&a->unsent, CAP_MESSAGE_BYTES);
	ask_put(a, what, &a->unsent);
	iov = piece_of(a->unsent.data, a->unsent.len);
	if (a->unsent.err != MV_OK) {
		ask_free(a);
		return NULL;
	}
	a->next = c->asks;
	if (a->next != NULL)
		a->next->prev = &a->next;
	a->prev = &c->asks;
	c->asks = a;
	c->n_asks++;
	a->is_sent = ask_write(a, &iov, 1) == MV_OK;
	if (a->is_sent)
		buf_fini(&a->unsent);
	else if (what->limit_ms > ASK_STREAM_MS)
		/* Its stream may be on its way. */
		a->due_ms = clock_now_ms() + ASK_STREAM_MS;
	asks_arm(c);
	return a;
}

static struct ask *
ask_first_unsent(const struct client *c)
{
	struct ask *first = NULL;

	/* They are few; the newest is at the front. */
	for (struct ask *a = c->asks; a != NULL; a = a->next)
		if (!a->is_sent && a->unsent.len > 0)
			first = a;
	return first;
}

void
client_asks_resend(struct client *c)
{
	struct ask *a;

	while ((a = ask_first_unsent(c)) != NULL) {
		struct iovec iov = piece_of(a->unsent.data, a->unsent.len);

		if (ask_write(a, &iov, 1) != MV_OK)
			return;
		a->is_sent = true;
		buf_fini(&a->unsent);
		a->due_ms = clock_now_ms() + a->limit_ms;
	}
	asks_arm(c);
}

static struct ask *
ask_find(struct client *c, struct jtext id)
{
	struct ask *a = c->asks;
	int64_t v;

	if (!json_int(id, &v) || v <= 0)
		return NULL;
	while (a != NULL && a->id != (uint64_t)v)
		a = a->next;
	return a;
}

bool
client_on_response(struct client *c, const struct link_msg *m)
{
	struct ask *a = ask_find(c, m->env.id);
	const struct ask_ops *ops;
	void *arg;

	if (a == NULL)
		return false;
	ops = a->ops;
	arg = a->arg;
	a->is_sent = false; /* it has answered */
	ask_drop(a);
	asks_arm(c);
	ops->on_answer(arg, m);
	return true;
}

void
client_on_progress(struct client *c, const struct link_msg *m)
{
	struct ask *a =
	    ask_find(c, jtext_of(m->base, m->json->slot[JSON_P_PROGRESS_TOKEN]));

	if (a != NULL && a->ops->on_progress != NULL)
		a->ops->on_progress(a->arg, m);
}

void
request_lose_asks(struct request *r, bool lose)
{
	struct ask *a = r->c->n_asks > 0 ? r->c->asks : NULL;

	while (a != NULL) {
		struct ask *next = a->next;

		if (a->r == r && lose) {
			ask_lose(a, WORDING_ASK_CANCELLED);
			next = r->c->asks;
		} else if (a->r == r) {
			a->r = NULL;
		}
		a = next;
	}
}

void
client_lose_asks(struct client *c)
{
	while (c->asks != NULL)
		ask_lose(c->asks, WORDING_ASK_GONE);
	asks_arm(c);
}

/* ---- questions of legacy upstreams ---- */

static void
asked_on_answer(void *arg, const struct link_msg *m)
{
	struct jtext body = jtext_of(m->base, m->json->slot[JSON_ERROR]);
	struct iovec iov = piece_of(body.p, body.n);

	if (m->env.kind == ENVELOPE_ERROR)
		question_answer(arg, "error", &iov, 1);
	else
		task_answer_question(arg, m);
}

static void
asked_on_lost(void *arg, enum wording why)
{
	question_refuse(arg, why);
}

static void
asked_on_progress(void *arg, const struct link_msg *m)
{
	question_progress(arg, m);
}

static const struct ask_ops asked_ops = {
    .on_answer = asked_on_answer,
    .on_lost = asked_on_lost,
    .on_progress = asked_on_progress,
};

static void
asked_on_withdrawn(void *arg, struct question *q)
{
	(void)q;
	ask_drop(arg);
}

static const struct question_cb asked_cb = {.on_withdrawn = asked_on_withdrawn};

void
request_note_elicitations(struct request *r, const struct outcome *o)
{
	struct client *c = r->c;
	struct json_iter it;
	struct jtext one, all = json_member(jtext_of(o->base, o->json->slot[JSON_E_DATA]),
			      "elicitations");

	if (jtext_type(all) != '[' || c->is_shared)
		return;
	json_iter_init(&it, all);
	while (json_next_element(&it, &one))
		gateway_note_elicitation(
		    c->g, &c->observer, r->call.u, json_member(one, "elicitationId"));
}

void
client_take_question(struct client *c, struct request *r, struct question *q)
{
	struct ask_what what = {
	    .method = q->method,
	    .params = question_params(q),
	    .limit_ms = upstream_conf_of(q->u)->question_ms,
	};
	struct ask *a;
	struct buf b;

	if (!client_can_be_asked(c, q->method, what.params)) {
		question_refuse(q, WORDING_ASK_UNDECLARED);
		return;
	}
	if (json_string_is(json_member(what.params, "mode"), "url"))
		gateway_note_elicitation(
		    c->g, &c->observer, q->u, json_member(what.params, "elicitationId"));
	/* It is taken first: no answer can come before. */
	question_take(q, NULL, NULL, r != NULL ? &r->call.req : NULL);
	what.params = task_question_params(c, q, &b);
	a = client_ask(c, r, &what, &asked_ops, q);
	buf_fini(&b);
	if (a == NULL) {
		question_refuse(q, WORDING_ASK_TOO_MANY);
		return;
	}
	q->cb = &asked_cb;
	q->arg = a;
}
