/* SPDX-License-Identifier: MIT */
/*
 * What is written to a client: answers with their envelopes, notices, batches.
 *
 * Driven by: handlers, calls, listens.
 * Invariants: an answer goes to the port that its request came by, or into its batch,
 * else to the client's own channel; one that does not take an answer is left, in a turn
 * of its own.
 */
#include "client_ask_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/wording.h"

#include <string.h>

/* The most that an element of a batch takes which has only an error to say. */
#define BATCH_ERROR_BYTES (CAP_ID_BYTES + 128)

/* An iovec has no const. */
static char too_large_text[] = WORDING_ANSWER_LARGE;
static const struct iovec too_large = {too_large_text, sizeof(too_large_text) - 1};
static char no_memory_text[] = WORDING_NO_MEMORY;
static const struct iovec no_memory = {no_memory_text, sizeof(no_memory_text) - 1};

void
client_send(struct client *c, const struct iovec *iov, int n)
{
	enum mv_err err = c->cb->send(c->arg, iov, n);

	if (err == MV_OK || err == MV_CLOSED)
		return;
	/* An answer that cannot be queued would be lost without a trace: better no
	 * client than one that waits for ever. */
	LOG_LIMITED(LOG_LV_WARNING, "client", "does not take its answers", "reason=%s",
	    mv_err_reason(err));
	deferred_ask(&c->dead);
}

void
client_answer(struct client *c, const struct client_port *port, int status,
    const struct iovec *iov, int n)
{
	if (port != NULL)
		port->ops->answer(port->arg, status, iov, n);
	else
		client_send(c, iov, n);
}

#define LITERAL(s)                                                                       \
	(struct iovec)                                                                   \
	{                                                                                \
		(void *)(uintptr_t)(s), sizeof(s) - 1                                    \
	}

/* Its answers did not all fit into memory. Who sees no id in the one that comes would
 * wait for ever on a channel that stays. */
static void
batch_lose(struct client *c, const struct batch *b)
{
	const struct iovec iov[] = {
	    LITERAL("{\"jsonrpc\":\"2.0\",\"error\":"), no_memory, LITERAL("}")};

	LOG_LIMITED(LOG_LV_WARNING, "client", "answers of a batch are lost", "reason=%s",
	    mv_err_reason(b->out.err));
	client_answer(c, b->port, 503, iov, 3);
	if (b->port == NULL)
		deferred_ask(&c->dead);
}

void
batch_close(struct client *c, struct batch *b)
{
	if (--b->open > 0)
		return;
	if (b->out.len > 0)
		buf_add_char(&b->out, ']');
	if (b->out.err != MV_OK) {
		batch_lose(c, b);
	} else if (b->out.len > 0) {
		client_answer(
		    c, b->port, 200, &(struct iovec){b->out.data, b->out.len}, 1);
	}
	if (b->port != NULL)
		b->port->ops->closed(b->port->arg);
	buf_fini(&b->out);
	mem_free(b);
}

/* Whether an answer leaves too little for those that may still come. */
static bool
batch_is_full(const struct batch *b, const struct iovec *body, int n)
{
	size_t total = b->out.len;

	for (int i = 0; i < n; i++)
		total += body[i].iov_len;
	return total > CAP_OUT_BYTES - CAP_BATCH_ITEMS * BATCH_ERROR_BYTES;
}

static void
batch_add(struct batch *b, const struct iovec *iov, int n)
{
	buf_add_char(&b->out, b->out.len == 0 ? '[' : ',');
	for (int i = 0; i < n; i++)
		buf_add(&b->out, iov[i].iov_base, iov[i].iov_len);
}

void
request_notify(struct request *r, const struct iovec *iov, int n)
{
	if (r->is_detached)
		metrics_add(METRIC_NOTICES_DROPPED, 1);
	else if (r->port == NULL)
		client_send(r->c, iov, n);
	else if (r->port->ops->notify(r->port->arg, iov, n) != MV_OK)
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

void
request_notify_buf(struct request *r, const struct buf *b)
{
	struct iovec iov = {b->data, b->len};

	if (b->err == MV_OK)
		request_notify(r, &iov, 1);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

void
client_send_buf(struct client *c, const struct buf *b)
{
	struct iovec iov = {b->data, b->len};

	if (b->err != MV_OK)
		LOG_LIMITED(LOG_LV_ERROR, "client", "message of our own is lost",
		    "reason=%s", mv_err_reason(b->err));
	else
		client_send(c, &iov, 1);
}

void
request_reply(struct request *r, const char *member, const struct iovec *body, int n)
{
	request_reply_status(r, 200, member, body, n);
}

void
request_write(
    struct request *r, int status, const char *member, const struct iovec *body, int n)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 8];
	int k = 0;

	MCPVISOR_ASSERT(n <= 2 * JSON_EDITS_MAX + 2);
	if (r->batch != NULL && batch_is_full(r->batch, body, n)) {
		member = "error";
		body = &too_large;
		n = 1;
	}
	iov[k++] = LITERAL("{\"jsonrpc\":\"2.0\",\"id\":");
	iov[k++] = (struct iovec){(void *)(uintptr_t)r->id.p, r->id.n};
	iov[k++] = LITERAL(",\"");
	iov[k++] = (struct iovec){(void *)(uintptr_t)member, strlen(member)};
	iov[k++] = LITERAL("\":");
	memcpy(iov + k, body, (size_t)n * sizeof(*body));
	k += n;
	iov[k++] = LITERAL("}");
	if (r->batch != NULL)
		batch_add(r->batch, iov, k);
	else
		client_answer(r->c, r->port, status, iov, k);
}

void
request_reply_status(
    struct request *r, int status, const char *member, const struct iovec *body, int n)
{
	if (r->is_detached) {
		parked_keep_end(r, status, member, body, n);
		return;
	}
	request_write(r, status, member, body, n);
	request_end(r);
}

void
request_reply_buf(struct request *r, const char *member, const struct buf *body)
{
	struct iovec iov = {body->data, body->len};

	if (body->err == MV_OK) {
		request_reply(r, member, &iov, 1);
		return;
	}
	request_reply(r, "error", body->err == MV_NOMEM ? &no_memory : &too_large, 1);
}

void
request_fail(struct request *r, enum wording w, struct jtext value)
{
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	wording_put(out, w, value);
	request_reply_buf(r, "error", out);
}

void
client_reply_error(struct client *c, struct jtext id, int status, const struct buf *error)
{
	struct iovec iov[6];
	int k = 0;

	iov[k++] = LITERAL("{\"jsonrpc\":\"2.0\"");
	if (id.n != 0) {
		iov[k++] = LITERAL(",\"id\":");
		iov[k++] = (struct iovec){(void *)(uintptr_t)id.p, id.n};
	}
	iov[k++] = LITERAL(",\"error\":");
	iov[k++] =
	    error->err == MV_OK ? (struct iovec){error->data, error->len} : no_memory;
	iov[k++] = LITERAL("}");
	if (c->batch != NULL)
		batch_add(c->batch, iov, k);
	else
		client_answer(c, c->port, status, iov, k);
}

void
client_reply_err(struct client *c, struct jtext id, enum mv_err err)
{
	struct wording_failure f = {.err = err};

	buf_reset(&c->scratch);
	wording_put_failure(&c->scratch, &f);
	client_reply_error(c, id, mv_err_retryable(err) ? 503 : 400, &c->scratch);
}
