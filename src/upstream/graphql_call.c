/* SPDX-License-Identifier: MIT */
/*
 * One call of a tool of a GraphQL endpoint: its arguments are looked at, it waits for a
 * place, is sent, and answered.
 *
 *   new -> waiting -> running -> answered      cancelled, from either of the middle two
 *
 * Owns: each call that has no answer yet, with its exchange.
 * Driven by: the local upstream; its exchange; its timer while it waits.
 * Invariants: what is sent has the client's bytes of its arguments; a call is in one of
 * the two lists; it is sent once; the tools may be others while it waits.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/header_value.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/trace_context.h"

#include <stdio.h>
#include <string.h>

#define TRACE_STATE_BYTES 512
#define RPC_INTERNAL	  (-32603)

struct gql_call {
	unsigned magic;
	struct gql *g;
	struct local_call *c;
	struct gql_call *next, **prev; /* of one of the lists */
	bool is_running;
	enum graphql_op op;
	bool is_execute;
	uint64_t due_ms;
	struct buf head;    /* of the request, up to the variables */
	struct timer timer; /* while it waits */
	struct gql_exchange x;
};

/* ---- lists ---- */

static void
call_link(struct gql_call **list, struct gql_call *k)
{
	k->next = *list;
	k->prev = list;
	if (k->next != NULL)
		k->next->prev = &k->next;
	*list = k;
}

static void
call_wait(struct gql *g, struct gql_call *k)
{
	k->next = NULL;
	k->prev = g->waiting_tail;
	*g->waiting_tail = k;
	g->waiting_tail = &k->next;
	g->n_waiting++;
}

static void
call_unlink(struct gql_call *k)
{
	struct gql *g = k->g;

	*k->prev = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	else if (!k->is_running)
		g->waiting_tail = k->prev;
	if (k->is_running)
		g->n_running--;
	else
		g->n_waiting--;
}

/* Later: it may be its own callback. */
static void
call_free(struct gql_call *k)
{
	gql_exchange_fini(&k->x);
	timer_fini(&k->timer);
	buf_fini(&k->head);
	k->magic = 0;
	loop_defer_free(k->g->u->loop, mem_free, k);
}

/* ---- answers ---- */

static struct gql_asked
call_asked(const struct gql_call *k)
{
	const struct upstream_conf *c = k->g->u->conf;

	return (struct gql_asked){.upstream = c->name,
	    .host = k->g->where,
	    .op = k->op,
	    .is_execute = k->is_execute,
	    .is_plain = c->graphql.plain,
	    .timeout_ms = c->graphql.timeout_ms,
	    .inflight = c->graphql.inflight,
	    .response_max = c->graphql.response_max};
}

static void
call_reply(struct gql_call *k)
{
	static char close[] = "}";
	struct gql_asked q = call_asked(k);
	struct gql_answer a;

	gql_answer_init(&a);
	gql_answer_make(&a, &q, &k->x);
	if (a.is_refused)
		local_note_refused(k->g->u);
	if (a.is_internal) {
		local_reply_error(k->c, RPC_INTERNAL, "Internal error: no memory");
	} else {
		struct iovec iov[] = {{a.head.data, a.head.len},
		    {(char *)(uintptr_t)a.structured.p, a.structured.n}, {close, 1}};

		local_reply(k->c, iov, a.structured.n != 0 ? 3 : 1);
	}
	k->c = NULL;
	gql_answer_fini(&a);
}

static void call_send(struct gql_call *k);

static void
calls_go_on(struct gql *g)
{
	while (g->waiting != NULL && g->n_running < g->u->conf->graphql.inflight)
		call_send(g->waiting);
}

static void
call_end(struct gql_call *k)
{
	struct gql *g = k->g;

	call_unlink(k);
	call_reply(k);
	call_free(k);
	calls_go_on(g);
}

static void
on_answer(void *arg)
{
	struct gql_call *k = arg;

	MCPVISOR_ASSERT(k->magic == GQL_CALL_MAGIC);
	LOG_DEBUG("graphql", "answer", "upstream=%s status=%d bytes=%zu end=%d",
	    UNAME(k->g->u), k->x.status, k->x.body.len, (int)k->x.end);
	call_end(k);
}

static void
on_waited(void *arg)
{
	struct gql_call *k = arg;

	MCPVISOR_ASSERT(k->magic == GQL_CALL_MAGIC);
	k->x.end = GQL_BUSY;
	call_end(k);
}

/* ---- sending ---- */

/* Appends a header of the trace that the client is in, if it is one that a header can
 * have. */
static void
trace_put(struct buf *out, const char *name, struct jtext value)
{
	if (jtext_type(value) != '"' || value.n <= 2 || value.n > TRACE_STATE_BYTES + 2 ||
	    !header_value_is_ascii(value.p + 1, value.n - 2) ||
	    memchr(value.p, '\\', value.n) != NULL)
		return;
	buf_addf(out, "%s: ", name);
	buf_add(out, value.p + 1, value.n - 2);
	buf_add_char(out, '\0');
}

static void
call_put_trace(const struct gql_call *k, struct buf *out)
{
	struct jtext message = {k->c->message.data, k->c->message.len};
	struct jtext meta = json_member(json_member(message, "params"), "_meta");
	struct jtext parent = json_member(meta, "traceparent");

	if (!trace_context_id(parent, NULL))
		return;
	trace_put(out, "traceparent", parent);
	trace_put(out, "tracestate", json_member(meta, "tracestate"));
}

static void
call_send(struct gql_call *k)
{
	static char none[] = "{}", close[] = "}";
	struct gql *g = k->g;
	const struct graphql_conf *conf = &g->u->conf->graphql;
	struct jtext args = k->c->arguments;
	uint64_t now = clock_now_ms();
	struct iovec body[] = {{k->head.data, k->head.len},
	    {args.n != 0 ? (char *)(uintptr_t)args.p : none,
		args.n != 0 ? args.n : sizeof(none) - 1},
	    {close, 1}};
	const char *lines[4];
	struct gql_request rq = {.body = body,
	    .n_body = k->is_execute ? 1 : 3,
	    .lines = lines,
	    .body_max = conf->response_max,
	    .timeout_ms = k->due_ms > now ? (uint32_t)(k->due_ms - now) : 1};
	struct buf trace;

	timer_clear(&k->timer);
	call_unlink(k);
	k->is_running = true;
	call_link(&g->running, k);
	g->n_running++;
	buf_init(&trace, 4 * TRACE_STATE_BYTES);
	call_put_trace(k, &trace);
	transfer_split_headers(&trace, lines, 3);
	gql_exchange_start(&k->x, g->curl, &rq);
	buf_fini(&trace);
}

static void
call_begin(struct gql_call *k)
{
	struct gql *g = k->g;

	call_wait(g, k);
	if (g->n_running < g->u->conf->graphql.inflight)
		call_send(k);
	else
		timer_set(&k->timer, g->u->conf->graphql.timeout_ms);
}

/* ---- arguments ---- */

static void
reply_why(struct local_call *c, const struct buf *why)
{
	if (why->err != MV_OK || why->len == 0)
		local_reply_error(c, RPC_INTERNAL, "Internal error: no memory");
	else
		local_reply_text(c, why->data, why->len, true);
}

/* What a request of t is; false: it was refused, and k->c is gone. */
static bool
call_compose(struct gql_call *k, const struct gql_tool *t)
{
	const struct graphql_conf *conf = &k->g->u->conf->graphql;
	struct buf why;
	bool ok;

	buf_init(&why, GQL_ERROR_BYTES);
	ok = argspec_check(t->args, k->c->arguments, &why) &&
	     (!t->is_execute || gql_execute_check(conf, k->c->arguments, &k->op, &why));
	if (ok && t->is_execute)
		gql_execute_put_request(&k->head, k->c->arguments);
	else if (ok)
		buf_add(&k->head, t->head.data, t->head.len);
	if (ok && k->head.err != MV_OK) {
		local_reply_error(k->c, RPC_INTERNAL, "Internal error: no memory");
		ok = false;
	} else if (!ok) {
		reply_why(k->c, &why);
	}
	buf_fini(&why);
	return ok;
}

static struct gql_call *
call_new(struct gql *g, struct local_call *c, const struct gql_tool *t)
{
	struct gql_call *k = mem_xcalloc(1, sizeof(*k));

	k->magic = GQL_CALL_MAGIC;
	k->g = g;
	k->c = c;
	k->op = t->op;
	k->is_execute = t->is_execute;
	k->due_ms = clock_now_ms() + g->u->conf->graphql.timeout_ms;
	buf_init(&k->head, CAP_MESSAGE_BYTES);
	timer_init(&k->timer, g->u->loop, on_waited, k);
	gql_exchange_init(&k->x, g->u, on_answer, k);
	c->state = k;
	return k;
}

/* What keeps it from being sent at all. GQL_ANSWERED: nothing. */
static enum gql_end
call_obstacle(const struct gql *g)
{
	if (!g->is_ready)
		return GQL_NOT_READY;
	if (g->n_running >= g->u->conf->graphql.inflight && g->n_waiting >= GQL_QUEUE_MAX)
		return GQL_BUSY;
	return GQL_ANSWERED;
}

void
gql_call(void *arg, struct local_call *c)
{
	struct gql *g = arg;
	const struct gql_tool *t = gql_tools_find(g->tools, c->name);
	struct gql_call *k;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC);
	if (t == NULL) {
		local_reply_unknown(c);
		return;
	}
	if (local_refuse_arguments(c))
		return;
	k = call_new(g, c, t);
	k->x.end = call_obstacle(g);
	if (k->x.end != GQL_ANSWERED) {
		(void)snprintf(k->x.why, sizeof(k->x.why), "%s",
		    k->x.end == GQL_NOT_READY ? g->not_ready : "");
		call_reply(k);
		call_free(k);
	} else if (call_compose(k, t)) {
		call_begin(k);
	} else {
		call_free(k);
	}
}

void
gql_call_cancel(void *arg, struct local_call *c)
{
	struct gql *g = arg;
	struct gql_call *k = c->state;

	MCPVISOR_ASSERT(g->magic == GQL_MAGIC && k->magic == GQL_CALL_MAGIC);
	call_unlink(k);
	call_free(k);
	if (g->is_started)
		calls_go_on(g);
}
