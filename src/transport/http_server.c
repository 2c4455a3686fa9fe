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
/* What even an idle connection may keep. */
#define SHED_MIN     ((size_t)4096)
#define SHED_LOOK_MS 200
#define POOL_MAX     64u

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
		s->n_pool--;
	} else {
		x = mem_xcalloc(1, sizeof(*x));
		x->magic = HTTP_EXCHANGE_MAGIC;
	}
	buf_init(&x->held, s->o.out_max);
	x->conn = c;
	x->state = HTTP_X_TAKING;
	x->user = NULL;
	x->minor = 1;
	x->owed = x->no_body = x->close = false;
	http_queue_put(&c->open, x);
	return x;
}

/* Whoever is on the stack may look at x once more. A few wait for the next ones; more,
 * left by a crowd, would lie about among what it has freed. */
void
http_exchange_recycle(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	struct http_server *s = c->server;

	if (c->taking == x)
		c->taking = NULL;
	c->held -= x->held.len;
	buf_fini(&x->held);
	x->conn = NULL;
	if (s->n_pool == POOL_MAX) {
		loop_defer_free(s->loop, mem_free, x);
		return;
	}
	x->next = s->pool;
	s->pool = x;
	s->n_pool++;
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

void
http_server_look(struct http_server *s)
{
	if (mem_is_exhausted())
		deferred_ask(&s->shed);
	else if (mem_budget() > 0 && !timer_is_set(&s->look))
		timer_set(&s->look, SHED_LOOK_MS);
}

static struct http_conn *
http_server_largest_body(const struct http_server *s, size_t *most)
{
	struct http_conn *largest = NULL;

	*most = SHED_MIN;
	for (struct http_conn *c = s->conns; c; c = c->next) {
		size_t n = http_take_half_read(c);

		if (n > *most) {
			*most = n;
			largest = c;
		}
	}
	return largest;
}

/* While memory is exhausted nothing is read, so no input says that it is. */
static void
on_look(void *arg)
{
	struct http_server *s = arg;
	size_t most;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	if (http_server_largest_body(s, &most))
		http_server_look(s);
}

/* One a turn: what the last one gave back is to be seen first. */
static void
on_shed(void *arg)
{
	struct http_server *s = arg;
	struct http_conn *largest;
	size_t most;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	largest = http_server_largest_body(s, &most);
	if (!largest)
		return;
	if (!mem_is_exhausted()) {
		http_server_look(s); /* from time to time, as long as there are any */
		return;
	}
	LOG_LIMITED(LOG_LV_WARNING, "http", "body ended, memory is exhausted",
	    "fd=%d bytes=%zu", largest->fd, most);
	http_refuse_body(largest, 503);
	/* Going on, it gives back the buffer that it does not need any more. */
	stream_pause(largest->stream, true);
	stream_pause(largest->stream, false);
	deferred_ask(&s->shed);
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
	deferred_init(&s->shed, l, on_shed, s);
	timer_init(&s->look, l, on_look, s);
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
	deferred_cancel(&s->shed);
	timer_fini(&s->look);
	loop_defer_free(s->loop, on_destroy, s);
}

static void
http_server_close(struct http_server *s, void *door)
{
	if (s->cb.on_close)
		s->cb.on_close(s->arg, door);
}

void
http_server_lost(struct http_server *s, void *door)
{
	s->n_conns--;
	http_server_close(s, door);
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
http_server_add(struct http_server *s, int fd, uid_t uid, void *door)
{
	unsigned max = s->o.connections_max;

	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC && !s->dead);
	if (s->draining) {
		close(fd);
		http_server_close(s, door);
	} else if (s->n_conns >= max + HTTP_REFUSED_MAX) {
		http_server_turn_away(fd);
		http_server_close(s, door);
	} else {
		if (s->n_conns >= max)
			LOG_LIMITED(LOG_LV_WARNING, "http", "too many connections",
			    "limit=%u", max);
		http_conn_new(s, fd, uid, door, s->n_conns >= max || mem_is_short());
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
	/* The owner may have freed it when it heard of the last one. */
	if (s->n_conns == 0 && !s->dead)
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

void *
http_exchange_door(const struct http_exchange *x)
{
	return x->conn ? x->conn->door : NULL;
}

void
http_server_set_opts(struct http_server *s, const struct http_server_opts *o)
{
	MCPVISOR_ASSERT(s->magic == HTTP_SERVER_MAGIC);
	s->o = *o;
}
