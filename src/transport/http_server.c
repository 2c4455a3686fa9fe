/* SPDX-License-Identifier: MIT */
/*
 * The HTTP/1.1 server: its connections as a whole, and the pool of exchanges.
 *
 * Owns: the connections, and the exchanges in the pool.
 * Driven by: its owner; http_conn.c has the life of a connection, http_write.c the
 * answers.
 * Invariants: an exchange is in one queue of its connection, or in the pool; memory
 * of the server outlives the turn in which it was freed.
 */
#include "mcpvisor/http_server.h"

#include "http_server_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRATCH_MAX ((size_t)64 * 1024)

const struct http_server_opts http_server_defaults = {
    .limits = {.line_max = 8192, .head_max = 32768, .body_max = CAP_MESSAGE_BYTES},
    .connections_max = 1000,
    .pipeline_max = 64,
    .head_ms = 10000,
    .body_ms = 30000,
    .idle_ms = 60000,
    .heartbeat_ms = 15000,
    .out_max = CAP_OUT_BYTES,
};

void
http_queue_put(struct http_queue *q, struct http_exchange *x)
{
	x->next = NULL;
	if (q->last)
		q->last->next = x;
	else
		q->first = x;
	q->last = x;
	q->n++;
}

struct http_exchange *
http_queue_pop(struct http_queue *q)
{
	struct http_exchange *x = q->first;

	if (!x)
		return NULL;
	q->first = x->next;
	if (!q->first)
		q->last = NULL;
	q->n--;
	x->next = NULL;
	return x;
}

struct http_exchange *
http_exchange_new(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_exchange *x = s->pool;

	if (x) {
		s->pool = x->next;
	} else {
		x = mem_xcalloc(1, sizeof(*x));
		x->magic = HTTP_EXCHANGE_MAGIC;
		buf_init(&x->held, s->o.out_max);
	}
	x->conn = c;
	x->state = HTTP_X_TAKING;
	x->user = NULL;
	x->minor = 1;
	x->owed = x->no_body = x->close = false;
	http_queue_put(&c->open, x);
	return x;
}

void
http_exchange_recycle(struct http_exchange *x)
{
	struct http_conn *c = x->conn;

	if (c->taking == x)
		c->taking = NULL;
	c->held -= x->held.len;
	buf_fini(&x->held);
	x->conn = NULL;
	x->next = c->server->pool;
	c->server->pool = x;
}

static void
on_drained(void *arg)
{
	struct http_server *s = arg;
	void (*fn)(void *) = s->drain_fn;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	s->drain_fn = NULL;
	if (fn)
		fn(s->drain_arg);
}

struct http_server *
http_server_new(struct loop *l, const struct http_server_opts *o,
    const struct http_server_cb *cb, void *arg)
{
	struct http_server *s = mem_xcalloc(1, sizeof(*s));

	s->magic = HTTP_SERVER_MAGIC;
	s->loop = l;
	s->o = *o;
	s->cb = *cb;
	s->arg = arg;
	buf_init(&s->scratch, SCRATCH_MAX);
	deferred_init(&s->drained, l, on_drained, s);
	return s;
}

static void
on_destroy(void *p)
{
	struct http_server *s = p;
	struct http_exchange *x, *next;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	for (x = s->pool; x; x = next) {
		next = x->next;
		x->magic = 0;
		mem_free(x);
	}
	buf_fini(&s->scratch);
	s->magic = 0;
	mem_free(s);
}

void
http_server_free(struct http_server *s)
{
	if (!s || s->dead)
		return;
	s->dead = true;
	while (s->conns)
		http_conn_gone(s->conns);
	deferred_cancel(&s->drained);
	loop_defer_free(s->loop, on_destroy, s);
}

void
http_server_lost(struct http_server *s)
{
	s->n_conns--;
	if (s->draining && s->n_conns == 0 && !s->dead)
		deferred_ask(&s->drained);
}

/* Nothing is kept for this one: what its socket takes now is what it gets. */
static void
http_server_turn_away(int fd)
{
	static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
				     "Retry-After: 1\r\n"
				     "Content-Length: 0\r\n"
				     "Connection: close\r\n"
				     "\r\n";

	(void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

void
http_server_add(struct http_server *s, int fd, uid_t uid)
{
	unsigned max = s->o.connections_max;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	if (s->dead || s->draining) {
		close(fd);
	} else if (s->n_conns >= max + HTTP_REFUSED_MAX) {
		http_server_turn_away(fd);
	} else {
		if (s->n_conns >= max)
			LOG_LIMITED(LOG_LV_WARNING, "http", "too many connections",
			    "limit=%u", max);
		http_conn_new(s, fd, uid, s->n_conns >= max);
	}
}

void
http_server_drain(struct http_server *s, void (*fn)(void *), void *arg)
{
	struct http_conn *c, *next;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	s->draining = true;
	s->drain_fn = fn;
	s->drain_arg = arg;
	for (c = s->conns; c; c = next) {
		next = c->next;
		http_conn_stop(c);
	}
	if (s->n_conns == 0)
		deferred_ask(&s->drained);
}

unsigned
http_server_connections(const struct http_server *s)
{
	return s->n_conns;
}

uid_t
http_exchange_uid(const struct http_exchange *x)
{
	return x->conn ? x->conn->uid : (uid_t)-1;
}
