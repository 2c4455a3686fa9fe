/* SPDX-License-Identifier: MIT */
/*
 * Calls of modern clients that their legacy upstreams have questions about: the call
 * stays open there, its client is answered input_required and comes back with the
 * answers.
 *
 *   LIVE --question, a moment--> answered input_required: DETACHED --retry--> LIVE
 *     |                              | its time is over, or its client's
 *     +--> its end, told             +--> its end, kept for the retry
 *
 * Owns: the open questions of such a call, and an end that nobody waited for.
 * Driven by: questions, retries, the call's end, a timer each.
 * Invariants: a handle works once, for the request that it was given out with, and for
 * whom; what a client says reaches only the questions of its own call; the end of the
 * exchange that carried input_required ends nothing.
 * Spec: 2026-07-28 basic/patterns/mrtr.
 */
#include "client_ask_priv.h"
#include "client_log_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#include <stdio.h>
#include <string.h>

/* Servers that have several questions ask them in one go. */
#define COLLECT_MS 20

enum { RPC_NEEDS_CAPABILITY = -32021 };

struct parked_question {
	struct parked *p;
	struct parked_question *next, **prev;
	struct question *q;
	unsigned number; /* of its key */
};

struct parked {
	struct request *r;
	struct parked *next, **prev; /* all of the client's */
	struct parked_question *questions, **questions_tail;
	unsigned last_number;
	unsigned char nonce[PARKED_NONCE_BYTES];
	struct timer timer; /* live: the moment; detached: its time */
	/* Its end, while nobody waits for it. */
	const char *end_member; /* NULL: it has none */
	int end_status;
	struct buf end;
};

static void
question_free(struct parked_question *pq)
{
	struct parked *p = pq->p;

	*pq->prev = pq->next;
	if (pq->next != NULL)
		pq->next->prev = pq->prev;
	else
		p->questions_tail = pq->prev;
	mem_free(pq);
}

void
parked_free(struct parked *p)
{
	if (p == NULL)
		return;
	while (p->questions != NULL) {
		struct question *q = p->questions->q;

		question_free(p->questions);
		question_refuse(q, WORDING_ASK_OVER);
	}
	*p->prev = p->next;
	if (p->next != NULL)
		p->next->prev = p->prev;
	p->r->parked = NULL;
	timer_fini(&p->timer);
	buf_fini(&p->end);
	mem_free(p);
}

/* ---- asking ---- */

static void
parked_put_request(struct buf *out, const struct question *q)
{
	struct jtext params = question_params(q);

	if (q->method == METHOD_ELICIT && jtext_type(params) == '{') {
		front_put_elicitation(out, params);
		return;
	}
	buf_addf(out, "{\"method\":\"%s\"", method_name(q->method));
	if (params.n > 0) {
		buf_add_str(out, ",\"params\":");
		json_put(out, params);
	}
	buf_add_char(out, '}');
}

/* Its client is told what is asked, and the call waits for it without a request. */
static void
parked_ask(struct parked *p)
{
	struct request *r = p->r;
	struct client *c = r->c;
	uint32_t ms = upstream_conf_of(r->call.u)->question_ms;
	struct buf out;
	struct iovec iov;

	buf_init(&out, CAP_OUT_BYTES);
	buf_add_str(&out, "{\"resultType\":\"input_required\",\"inputRequests\":{");
	for (struct parked_question *pq = p->questions; pq != NULL; pq = pq->next) {
		buf_addf(
		    &out, "%s\"input-%u\":", pq == p->questions ? "" : ",", pq->number);
		parked_put_request(&out, pq->q);
	}
	buf_add_str(&out, "},\"requestState\":\"");
	parked_put_handle(r, ms, p->nonce, &out);
	buf_add_str(&out, "\"}");
	if (out.err != MV_OK || c->n_parked >= CAP_PARKED_CALLS) {
		enum mv_err err = out.err != MV_OK ? out.err : MV_BUSY;

		buf_fini(&out);
		call_cancel(&r->call, NULL);
		request_fail_call(r, err, wording_text(WORDING_WHY_PARKED_MANY));
		return;
	}
	iov = (struct iovec){out.data, out.len};
	timer_set(&p->timer, ms);
	request_detach(r, &iov, 1);
	buf_fini(&out);
}

static void
on_timer(void *arg)
{
	struct parked *p = arg;

	if (!p->r->is_detached) {
		if (p->questions != NULL)
			parked_ask(p);
		return;
	}
	LOG_INFO("client", "call given up: its client did not come back", "method=%s",
	    method_name(p->r->method));
	request_cancel(p->r, NULL);
}

static struct parked *
parked_new(struct request *r)
{
	struct client *c = r->c;
	struct parked *p = mem_try(sizeof(*p));

	if (p == NULL)
		return NULL;
	*p = (struct parked){.r = r};
	p->questions_tail = &p->questions;
	timer_init(&p->timer, c->loop, on_timer, p);
	buf_init(&p->end, CAP_OUT_BYTES);
	p->next = c->parked;
	if (p->next != NULL)
		p->next->prev = &p->next;
	p->prev = &c->parked;
	c->parked = p;
	r->parked = p;
	return p;
}

static void
on_withdrawn(void *arg, struct question *q)
{
	(void)q;
	question_free(arg);
}

static const struct question_cb question_callbacks = {.on_withdrawn = on_withdrawn};

static bool
request_can_be_asked(const struct request *r, const struct question *q)
{
	return (client_caps_needed(q->method, question_params(q)) & ~r->call.caps) == 0;
}

/* Its client did not say that it can be asked this. */
static void
parked_refuse(struct request *r, struct question *q)
{
	unsigned needed = client_caps_needed(q->method, question_params(q));
	struct buf *out = &r->c->scratch;
	struct iovec iov;

	question_refuse(q, WORDING_ASK_CALLER_UNDECLARED);
	if (r->is_detached)
		return; /* it may still do without */
	call_cancel(&r->call, NULL);
	buf_reset(out);
	wording_put_needed(out, needed);
	iov = (struct iovec){out->data, out->len};
	call_log_failed(r, MV_UNSUPPORTED, (struct jtext){NULL, 0}, out->len);
	request_reply_status(
	    r, front_status_of(r->era, RPC_NEEDS_CAPABILITY), "error", &iov, 1);
}

/* req: whose time limits rest, NULL: it is not certain whose. */
static void
parked_take(struct request *r, struct question *q, struct upstream_req *req)
{
	struct parked_question *pq;
	struct parked *p;

	if (!method_may_require_input(r->method)) {
		question_refuse(q, WORDING_ASK_NOT_HERE);
		return;
	}
	if (!request_can_be_asked(r, q)) {
		parked_refuse(r, q);
		return;
	}
	p = r->parked != NULL ? r->parked : parked_new(r);
	pq = p != NULL && r->is_bound ? mem_try(sizeof(*pq)) : NULL;
	if (pq == NULL) {
		question_refuse(q, WORDING_ASK_NOT_NOW);
		return;
	}
	*pq = (struct parked_question){.p = p, .q = q, .number = ++p->last_number};
	pq->prev = p->questions_tail;
	*p->questions_tail = pq;
	p->questions_tail = &pq->next;
	question_take(q, &question_callbacks, pq, req);
	if (!r->is_detached && !timer_is_set(&p->timer))
		timer_set(&p->timer, COLLECT_MS);
}

void
parked_take_question(struct request *r, struct question *q)
{
	parked_take(r, q, &r->call.req);
}

/* ---- its end, and its client's return ---- */

void
parked_keep_end(
    struct request *r, int status, const char *member, const struct iovec *body, int n)
{
	struct parked *p = r->parked;

	buf_reset(&p->end);
	for (int i = 0; i < n; i++)
		buf_add(&p->end, body[i].iov_base, body[i].iov_len);
	p->end_status = status;
	p->end_member = member;
}

static void
parked_tell_end(struct parked *p)
{
	struct request *r = p->r;
	const char *member = p->end_member;
	int status = p->end_status;
	struct buf end = p->end;
	struct iovec iov;

	buf_init(&p->end, 0);
	iov = (struct iovec){end.data, end.len};
	if (end.err == MV_OK)
		request_reply_status(r, status, member, &iov, 1);
	else
		request_reply_buf(r, "error", &end);
	buf_fini(&end);
}

/* What its client says goes to whoever asked; what it does not say is asked again. */
static void
parked_take_answers(struct parked *p, struct jtext responses)
{
	struct parked_question *next;
	char key[32];

	for (struct parked_question *pq = p->questions; pq != NULL; pq = next) {
		struct question *q = pq->q;
		struct jtext answer;
		struct iovec iov;

		next = pq->next;
		(void)snprintf(key, sizeof(key), "input-%u", pq->number);
		answer = json_member(responses, key);
		if (jtext_type(answer) != '{')
			continue;
		iov = (struct iovec){(void *)(uintptr_t)answer.p, answer.n};
		question_free(pq);
		question_answer(q, "result", &iov, 1);
	}
}

/* What its client does not declare any more is not asked again. */
static void
parked_refuse_rest(struct parked *p)
{
	struct parked_question *next;

	for (struct parked_question *pq = p->questions; pq != NULL; pq = next) {
		struct question *q = pq->q;

		next = pq->next;
		if (request_can_be_asked(p->r, q))
			continue;
		question_free(pq);
		question_refuse(q, WORDING_ASK_CALLER_UNDECLARED);
	}
}

static struct parked *
parked_find(const struct client *c, const unsigned char *nonce)
{
	struct parked *p = c->parked;

	while (p != NULL &&
	       (!p->r->is_detached || memcmp(p->nonce, nonce, PARKED_NONCE_BYTES) != 0))
		p = p->next;
	return p;
}

/* Its time is over, or it has been used. */
static void
parked_reply_gone(struct request *r)
{
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	if (r->method == METHOD_TOOLS_CALL)
		wording_put_call_again(out, r->era->result_members);
	else
		wording_put(out, WORDING_STATE_GONE, (struct jtext){NULL, 0});
	request_reply_buf(r, r->method == METHOD_TOOLS_CALL ? "result" : "error", out);
}

bool
parked_resume(struct request *fresh, const struct link_msg *m)
{
	struct jtext state = jtext_of(m->base, m->json->slot[JSON_P_REQUEST_STATE]);
	struct jtext responses = jtext_of(m->base, m->json->slot[JSON_P_INPUT_RESPONSES]);
	unsigned char nonce[PARKED_NONCE_BYTES];
	struct parked *p;
	struct request *r;

	if (state.n == 0 || !method_may_require_input(fresh->method))
		return false;
	if (!fresh->is_bound)
		parked_bind(fresh, m);
	if (!fresh->is_bound || !parked_read_handle(fresh, state, nonce))
		return false;
	p = parked_find(fresh->c, nonce);
	if (p == NULL) {
		parked_reply_gone(fresh);
		return true;
	}
	r = p->r;
	timer_clear(&p->timer);
	request_take_over(r, fresh);
	r->call.caps =
	    client_caps_read(jtext_of(m->base, m->json->slot[JSON_M_CLIENT_CAPS]));
	parked_take_answers(p, responses);
	parked_refuse_rest(p);
	if (p->end_member != NULL)
		parked_tell_end(p);
	else if (p->questions != NULL)
		timer_set(&p->timer, 0); /* from a turn of its own: m is on the stack */
	return true;
}

void
client_on_question(void *arg, struct upstream *u, struct question *q)
{
	struct client *c = arg;
	struct request *oldest = NULL;

	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	if (c->session.open) {
		client_take_question(c, NULL, q);
		return;
	}
	/* Those of a shared one know nothing of each other. */
	for (struct request *r = c->is_shared ? NULL : c->requests; r != NULL;
	     r = r->next)
		if (r->era->modern && r->call.u == u && r->call.req.u == u &&
		    method_may_require_input(r->method) && request_can_be_asked(r, q))
			oldest = r;
	if (oldest != NULL)
		parked_take(oldest, q, NULL);
	else
		question_refuse(q, WORDING_ASK_NO_CALL);
}
