/* SPDX-License-Identifier: MIT */
/*
 * One request to a GraphQL endpoint, until it is answered, late, or of no more use.
 *
 * Owns: its transfer, its timer, the body as far as it came.
 * Driven by: who starts it; the transfer; the timer.
 * Invariants: on_end comes once and last; a body that passes its bound ends the transfer
 * at once; redirects are answers.
 */
#include "upstream_graphql_priv.h"

#include "upstream_http_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

static const char *const own_lines[] = {
    "Content-Type: application/json",
    "Accept: application/graphql-response+json, application/json;q=0.9",
};

static void
exchange_note(struct gql_exchange *x, enum gql_end end, const char *why)
{
	x->end = end;
	(void)snprintf(x->why, sizeof(x->why), "%.*s", (int)sizeof(x->why) - 1, why);
}

/* The last thing that is done with x. */
static void
exchange_over(struct gql_exchange *x)
{
	timer_clear(&x->timer);
	x->transfer = NULL;
	x->on_end(x->arg);
}

static void
exchange_log_redirect(const struct gql_exchange *x, const struct transfer_head *h)
{
	char *to = mem_xstrdup(h->location != NULL ? h->location : "");

	upstream_headers_hide(&x->headers, to, strlen(to));
	LOG_LIMITED(LOG_LV_WARNING, "graphql", "redirect not followed",
	    "upstream=%s status=%d location=%s", UNAME(x->u), h->status,
	    LOG_ESC(to, strlen(to)));
	mem_free(to);
}

static void
on_head(void *arg, const struct transfer_head *h)
{
	struct gql_exchange *x = arg;

	MCPVISOR_ASSERT(x->magic == GQL_EXCHANGE_MAGIC);
	x->status = h->status;
	x->retry_after_s = h->retry_after_s;
	(void)snprintf(x->type, sizeof(x->type), "%s", h->content_type);
	if (h->status >= 300 && h->status < 400)
		exchange_log_redirect(x, h);
}

static void
on_body(void *arg, const char *p, size_t n)
{
	struct gql_exchange *x = arg;
	enum mv_err err;

	MCPVISOR_ASSERT(x->magic == GQL_EXCHANGE_MAGIC);
	buf_add(&x->body, p, n);
	err = x->body.err;
	if (err == MV_OK)
		return;
	transfer_cancel(x->transfer);
	exchange_note(x, err == MV_TOO_LONG ? GQL_TOO_LARGE : GQL_NO_MEMORY, "");
	exchange_over(x);
}

/* The place is named where this is told. */
static void
exchange_note_failure(struct gql_exchange *x, enum mv_err err, const char *text)
{
	struct url_origin o;
	char place[sizeof(o.host) + 8] = "";

	if (url_read_origin(x->u->conf->url, &o))
		(void)snprintf(place, sizeof(place), "%s:%u", o.host, (unsigned)o.port);
	exchange_note(x, err == MV_UNREACHABLE ? GQL_UNREACHABLE : GQL_BROKEN,
	    upstream_skip_place(text, place));
}

static void
on_end(void *arg, enum mv_err err, const char *text)
{
	struct gql_exchange *x = arg;

	MCPVISOR_ASSERT(x->magic == GQL_EXCHANGE_MAGIC);
	if (err == MV_OK)
		exchange_note(x, GQL_ANSWERED, "");
	else
		exchange_note_failure(x, err, text);
	exchange_over(x);
}

/* Late; or what was wrong from the start, which is told in a turn of its own. */
static void
on_timer(void *arg)
{
	struct gql_exchange *x = arg;

	MCPVISOR_ASSERT(x->magic == GQL_EXCHANGE_MAGIC);
	if (x->transfer != NULL) {
		transfer_cancel(x->transfer);
		exchange_note(x, GQL_TIMEOUT, "");
	}
	exchange_over(x);
}

void
gql_exchange_init(
    struct gql_exchange *x, struct upstream *u, void (*on_over)(void *arg), void *arg)
{
	*x = (struct gql_exchange){
	    .magic = GQL_EXCHANGE_MAGIC, .u = u, .on_end = on_over, .arg = arg};
	timer_init(&x->timer, u->loop, on_timer, x);
	buf_init(&x->body, CAP_MESSAGE_BYTES);
	buf_init(&x->headers, UPSTREAM_HEADERS_BYTES);
}

static void
exchange_forget_headers(struct gql_exchange *x)
{
	mem_free_secret(x->headers.data, x->headers.cap);
	buf_init(&x->headers, UPSTREAM_HEADERS_BYTES);
}

static void
exchange_put_lines(
    const struct gql_exchange *x, const struct gql_request *rq, struct buf *lines)
{
	for (size_t i = 0; i < sizeof(own_lines) / sizeof(own_lines[0]); i++)
		buf_add(lines, own_lines[i], strlen(own_lines[i]) + 1);
	for (size_t i = 0; rq->lines != NULL && rq->lines[i] != NULL; i++)
		buf_add(lines, rq->lines[i], strlen(rq->lines[i]) + 1);
	buf_add(lines, x->headers.data, x->headers.len);
}

static bool
exchange_send(
    struct gql_exchange *x, struct curl_loop *curl, const struct gql_request *rq)
{
	static const struct transfer_cb cb = {on_head, on_body, on_end};
	const struct upstream_conf *c = x->u->conf;
	const char *headers[UPSTREAM_HEADERS_MAX + 1];
	struct transfer_opts o = {.method = TRANSFER_POST,
	    .url = c->url,
	    .headers = headers,
	    .body = rq->body,
	    .n_body = rq->n_body,
	    .ca_file = c->ca_file,
	    .cert_file = c->cert_file,
	    .key_file = c->key_file,
	    .proxy = c->proxy,
	    .skip_verify = c->skip_verify,
	    .connect_ms = c->connect_ms,
	    .is_vital = true}; /* what it brings ends calls */
	struct buf lines;

	buf_init(&lines, 2 * UPSTREAM_HEADERS_BYTES);
	exchange_put_lines(x, rq, &lines);
	transfer_split_headers(&lines, headers, UPSTREAM_HEADERS_MAX);
	if (lines.err == MV_OK)
		x->transfer = transfer_start(curl, &o, &cb, x);
	/* Among them are secrets. */
	mem_free_secret(lines.data, lines.cap);
	return x->transfer != NULL;
}

/* Fails without having been sent. */
static void
exchange_fail(struct gql_exchange *x, enum gql_end end, const char *why)
{
	exchange_note(x, end, why);
	timer_set(&x->timer, 0);
}

void
gql_exchange_start(
    struct gql_exchange *x, struct curl_loop *curl, const struct gql_request *rq)
{
	struct mv_errtext why = {.line = 0};

	buf_fini(&x->body);
	buf_init(&x->body, rq->body_max);
	x->status = 0;
	x->retry_after_s = 0;
	x->type[0] = x->why[0] = '\0';
	exchange_forget_headers(x);
	if (!upstream_headers_put(x->u->conf, &x->headers, &why) ||
	    x->headers.err != MV_OK) {
		LOG_LIMITED(LOG_LV_WARNING, "graphql", "no headers", "upstream=%s why=%s",
		    UNAME(x->u), LOG_ESC(why.message, strlen(why.message)));
		exchange_fail(x, GQL_NO_HEADERS, "its credentials cannot be read");
	} else if (curl == NULL || curl_loop_load(curl, &why) != MV_OK) {
		exchange_fail(x, GQL_UNREACHABLE, why.message);
	} else if (!exchange_send(x, curl, rq)) {
		exchange_fail(x, GQL_NO_MEMORY, "");
	} else {
		timer_set(&x->timer, rq->timeout_ms);
	}
}

void
gql_exchange_hide(struct gql_exchange *x)
{
	upstream_headers_hide(&x->headers, x->body.data, x->body.len);
	upstream_headers_hide(&x->headers, x->type, strlen(x->type));
	upstream_headers_hide(&x->headers, x->why, strlen(x->why));
}

void
gql_exchange_cancel(struct gql_exchange *x)
{
	timer_clear(&x->timer);
	if (x->transfer != NULL)
		transfer_cancel(x->transfer);
	x->transfer = NULL;
}

void
gql_exchange_fini(struct gql_exchange *x)
{
	gql_exchange_cancel(x);
	timer_fini(&x->timer);
	buf_fini(&x->body);
	exchange_forget_headers(x);
	x->magic = 0;
}
