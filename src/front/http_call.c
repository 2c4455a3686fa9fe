/* SPDX-License-Identifier: MIT */
/*
 * One HTTP exchange as MCP sees it: a JSON answer when that comes first, an event stream
 * from the first notice on or when the answer takes its time.
 *
 * Owns: nothing; the exchange is the server's, the request the client's.
 * Driven by: the client (port callbacks), the server (end), the commit timer.
 * Invariants: it is in the queue exactly while it may yet become a stream by time; after
 * x is NULL nothing is written; it goes when exchange and request are both over.
 * Spec: 2026-07-28 basic/transports/streamable-http, Receiving Messages.
 */
#include "endpoint_http_priv.h"
#include "http_replay_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mcp_headers.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#include <string.h>

/* Header lines; what has no room is left out. printf would cost as much as much of a
 * call.
 */
struct extra {
	size_t n;
	char text[EXTRA_BYTES];
};

static void
extra_put(struct extra *x, const char *p, size_t n)
{
	if (n >= sizeof(x->text) - x->n)
		return;
	memcpy(x->text + x->n, p, n);
	x->n += n;
	x->text[x->n] = '\0';
}

static void
extra_put_str(struct extra *x, const char *s)
{
	extra_put(x, s, strlen(s));
}

static void
call_put_extra(const struct http_call *k, int status, struct extra *x)
{
	x->n = 0;
	x->text[0] = '\0';
	if (k->session != NULL && k->session->text_len > 0 && !k->session->is_sse) {
		extra_put_str(x, "Mcp-Session-Id: ");
		extra_put(x, k->session->text, k->session->text_len);
		extra_put_str(x, "\r\n");
	}
	if (status == 503)
		extra_put_str(x, "Retry-After: 1\r\n");
	if (k->origin[0] != '\0') {
		extra_put_str(x, "Access-Control-Allow-Origin: ");
		extra_put_str(x, k->origin);
		extra_put_str(x, "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: "
				 "Mcp-Session-Id, WWW-Authenticate\r\n");
	}
}

void
http_call_reply(struct http_call *k, int status, const char *more, const char *type,
    const struct iovec *body, int n)
{
	struct extra extra;

	k->answered = true;
	http_call_unqueue(k);
	call_put_extra(k, status, &extra);
	extra_put_str(&extra, more);
	http_reply(k->x, status, extra.text, type, body, n);
}

void
http_call_queue(struct http_call *k)
{
	struct endpoint_http *e = k->e;

	if (!k->takes_stream || http_stream_is_open(k->x))
		return;
	k->due_ms = clock_now_ms() + e->o.commit_ms;
	k->next = NULL;
	k->prev = e->queue_tail;
	*e->queue_tail = k;
	e->queue_tail = &k->next;
	/* Nobody waits longer than who comes next: the first in the queue is the first
	 * that is due. */
	if (!timer_is_set(&e->commit_timer))
		timer_set(&e->commit_timer, e->o.commit_ms);
}

void
http_call_unqueue(struct http_call *k)
{
	if (k->prev == NULL)
		return;
	*k->prev = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	else
		k->e->queue_tail = k->prev;
	k->next = NULL;
	k->prev = NULL;
}

/* A session is named by the head of the answer to its initialize, also when the answer
 * itself is not there yet. */
static void
call_name_session(struct http_call *k)
{
	char principal[SESSION_ID_PRINCIPAL_MAX + 1];

	if (k->session == NULL || k->session->text_len > 0)
		return;
	http_principal(k, principal);
	(void)http_session_seal(k->session, principal);
}

static void
call_begin_stream(struct http_call *k)
{
	struct extra extra;

	http_call_unqueue(k);
	call_name_session(k);
	call_put_extra(k, 200, &extra);
	http_stream_begin(k->x, extra.text);
	if (http_stream_is_open(k->x) && !k->is_stream) {
		k->is_stream = true;
		k->e->n_streams++;
	}
}

void
http_call_become_stream(struct http_call *k)
{
	call_begin_stream(k);
	if (!http_stream_is_open(k->x))
		return;
	if (k->session != NULL && k->track == NULL)
		http_track_begin(k);
	if (k->track != NULL)
		http_track_prime(k);
}

void
http_calls_wait(struct endpoint_http *e)
{
	uint64_t now = clock_now_ms();

	if (e->queue != NULL)
		timer_set(&e->commit_timer,
		    e->queue->due_ms > now ? e->queue->due_ms - now : 0);
}

void
on_commit_timer(void *arg)
{
	struct endpoint_http *e = arg;
	uint64_t now = clock_now_ms();

	MCPVISOR_ASSERT(e->magic == ENDPOINT_MAGIC);
	while (e->queue != NULL && e->queue->due_ms <= now)
		http_call_become_stream(e->queue);
	http_calls_wait(e);
}

void
http_call_release(struct http_call *k)
{
	struct endpoint_http *e = k->e;

	if (k->x != NULL || k->request != NULL || k->batch_open)
		return;
	http_call_unqueue(k);
	if (k->session != NULL)
		http_session_release(k->session);
	http_mount_unref(k->mount);
	k->magic = 0;
	mem_free(k);
	deferred_ask(&e->check);
}

static enum mv_err
port_notify(void *arg, const struct iovec *iov, int n)
{
	struct http_call *k = arg;

	MCPVISOR_ASSERT(k->magic == HTTP_CALL_MAGIC);
	if (k->answered || !k->takes_stream)
		return MV_CLOSED;
	if (k->track == NULL && k->x != NULL && !http_stream_is_open(k->x))
		http_call_become_stream(k);
	if (k->track != NULL)
		return http_track_send(k->track, iov, n);
	return k->x != NULL ? http_stream_event(k->x, NULL, iov, n) : MV_CLOSED;
}

/* As an event; the stream ends with it. */
static void
call_answer_stream(struct http_call *k, const struct iovec *iov, int n)
{
	struct jtext none = {NULL, 0};

	if (k->track != NULL)
		http_track_answer(k->track,
		    k->request != NULL ? client_request_id(k->request) : none, iov, n);
	/* A reader too slow for it loses the connection, which is all it can be told. */
	else if (http_stream_event(k->x, NULL, iov, n) == MV_OK)
		http_stream_end(k->x);
}

static void
port_answer(void *arg, int status, const struct iovec *iov, int n)
{
	struct http_call *k = arg;

	MCPVISOR_ASSERT(k->magic == HTTP_CALL_MAGIC);
	k->answered = true;
	/* What had to wait for the lists may have got its child only now; whoever has the
	 * answer must find that kept. */
	if (k->session != NULL && k->session->text_len > 0)
		http_session_note_state(k->session);
	if (k->x == NULL && k->track == NULL)
		return;
	if (k->track == NULL)
		call_name_session(k);
	if (k->track == NULL && !http_stream_is_open(k->x)) {
		if (k->takes_json || status != 200) {
			http_call_reply(k, status, "", "application/json", iov, n);
			return;
		}
		http_call_become_stream(k);
	}
	call_answer_stream(k, iov, n);
}

static void
port_open(void *arg, struct request *r)
{
	struct http_call *k = arg;

	k->request = r;
	k->batch_open = r == NULL;
}

/* Over without an answer: a batch that asked nothing, or a request that was cancelled. */
static void
call_end_silent(struct http_call *k)
{
	if (k->track != NULL) {
		http_track_end(k->track);
		return;
	}
	/* An empty stream says it best, to those that take one. */
	if ((k->batch_open || !k->takes_stream) && !http_stream_is_open(k->x)) {
		http_call_reply(k, 202, "", NULL, NULL, 0);
		return;
	}
	k->answered = true;
	if (!http_stream_is_open(k->x))
		call_begin_stream(k); /* with no id, to which a client would come back */
	http_stream_end(k->x);
}

static void
port_closed(void *arg)
{
	struct http_call *k = arg;

	MCPVISOR_ASSERT(k->magic == HTTP_CALL_MAGIC);
	if ((k->x != NULL || k->track != NULL) && !k->answered)
		call_end_silent(k);
	k->request = NULL;
	k->batch_open = false;
	if (k->track != NULL && k->track->carrier != k)
		k->track = NULL; /* it is over, and goes when it likes */
	http_call_release(k);
}

static bool
port_check(
    void *arg, const struct link_msg *m, struct jtext definition, struct buf *error)
{
	struct http_call *k = arg;
	enum json_slot slot = method_name_slot(method_parse(m->env.method));
	struct mcp_headers_body b = {
	    .version = jtext_of(m->base, m->json->slot[JSON_M_VERSION]),
	    .method = m->env.method,
	    .definition = definition,
	    .params = jtext_of(m->base, m->json->slot[JSON_PARAMS]),
	};
	struct buf text;
	const char *fault;

	/* The extension has the client send it and no server demand it. */
	if (slot != JSON_SLOT_MAX &&
	    (slot != JSON_P_TASK_ID || http_header(k->head, "Mcp-Name", NULL).p != NULL))
		b.name = jtext_of(m->base, m->json->slot[slot]);
	buf_init(&text, 4096);
	fault = mcp_headers_check(k->head, &b, &text);
	if (fault != NULL)
		wording_put_error(error, -32020, fault);
	buf_fini(&text);
	return fault == NULL;
}

static void
port_put_principal(void *arg, struct buf *out)
{
	const struct http_call *k = arg;
	char principal[SESSION_ID_PRINCIPAL_MAX + 1];

	http_principal(k, principal);
	buf_add_str(out, principal);
}

const struct client_port_ops http_port_ops = {
    .notify = port_notify,
    .answer = port_answer,
    .open = port_open,
    .closed = port_closed,
    .check = port_check,
    .put_principal = port_put_principal,
};

static void
call_reply_error(struct http_call *k, int status, const struct buf *error)
{
	static char head[] = "{\"jsonrpc\":\"2.0\",\"error\":";
	static char tail[] = "}";
	const struct iovec iov[] = {{head, sizeof(head) - 1}, {error->data, error->len},
	    {tail, sizeof(tail) - 1}};

	http_call_reply(k, status, "", "application/json", iov, 3);
}

void
http_call_refuse(struct http_call *k, int status, enum wording w)
{
	struct buf b;

	buf_init(&b, 4096);
	wording_put(&b, w, (struct jtext){NULL, 0});
	call_reply_error(k, status, &b);
	buf_fini(&b);
}

void
http_call_refuse_bytes(struct http_call *k, enum mv_err err)
{
	struct wording_failure f = {.err = err};
	struct buf b;

	buf_init(&b, 4096);
	wording_put_failure(&b, &f);
	call_reply_error(k, 400, &b);
	buf_fini(&b);
}
