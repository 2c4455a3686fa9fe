/* SPDX-License-Identifier: MIT */
/*
 * One HTTP connection.
 *
 *	IDLE --bytes--> HEAD --head in--> BODY --request in--> IDLE
 *	                                    |
 *	                                    +--pipeline full--> FULL --answered--> IDLE
 *	IDLE, HEAD, BODY, FULL --refused, late, "close", drain--> LAST
 *	LAST --all answers have left--> LINGER --client closed, late--> GONE
 *	any --output over its bound--> DOOMED --end of turn--> GONE
 *	any --client closed--> LAST while answers leave, else GONE
 *
 * Owns: the stream, the open exchanges. Driven by: the stream, one timer, deferred work.
 * Invariants: http_conn_set alone writes the state; a client that closes its side
 * ends its exchanges at once in every state; the timer is set anew only to ring
 * earlier, so a busy connection hardly touches it; after a callback of the owner
 * the state is looked at first, for GONE.
 */
#include "mcpvisor/http_server.h"

#include "http_server_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <poll.h>
#include <string.h>

#define LINGER_MS    1000
#define LINGER_BYTES ((size_t)256 * 1024)

#define HTTP_CONN_EVENTS(X)                                                              \
	X(INPUT)                                                                         \
	X(CLOSED)  /* the client has closed its side */                                  \
	X(FAILED)  /* reading or writing has */                                          \
	X(DRAINED) /* all output has left */                                             \
	X(TIMEOUT)                                                                       \
	X(SETTLE) /* exchanges have ended, or the state was just entered */              \
	X(STOP)	  /* the server drains */

enum conn_event {
#define X(id) CONN_EV_##id,
	HTTP_CONN_EVENTS(X)
#undef X
	    CONN_EV_MAX
};

static const char *const conn_state_names[] = {
#define X(id, name) name,
    HTTP_CONN_STATES(X)
#undef X
};

void
http_conn_arm(struct http_conn *c)
{
	uint64_t at = c->deadline, now;

	if (c->state == HTTP_CONN_ST_GONE)
		return;
	if (c->beat_at && (!at || c->beat_at < at))
		at = c->beat_at;
	if (!at || (c->armed_at && c->armed_at <= at))
		return;
	now = clock_now_ms();
	timer_set(&c->timer, at > now ? at - now : 0);
	c->armed_at = at;
}

void
http_conn_wait(struct http_conn *c, uint32_t ms)
{
	c->deadline = clock_now_ms() + ms;
	c->out_seen = stream_out_pending(c->stream);
	http_conn_arm(c);
}

static void
conn_wait_idle(struct http_conn *c)
{
	const struct http_server_opts *o = &c->server->o;

	c->deadline = 0;
	if (!c->open.first)
		http_conn_wait(c, c->refused ? o->head_ms : o->idle_ms);
}

static void
conn_drop_input(struct http_conn *c)
{
	size_t n;

	(void)stream_peek(c->stream, &n);
	stream_consume(c->stream, n);
}

static void
conn_enter(struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_ST_IDLE:
		conn_wait_idle(c);
		break;
	case HTTP_CONN_ST_HEAD:
		http_conn_wait(c, c->server->o.head_ms);
		break;
	case HTTP_CONN_ST_LAST:
		c->taking = NULL;
		buf_fini(&c->gather);
		conn_drop_input(c);
		deferred_ask(&c->later);
		break;
	case HTTP_CONN_ST_LINGER:
		http_conn_wait(c, LINGER_MS);
		break;
	case HTTP_CONN_ST_DOOMED:
		c->beat_at = 0;
		deferred_ask(&c->later);
		break;
	case HTTP_CONN_ST_BODY: /* its deadline starts when bytes are missing */
	case HTTP_CONN_ST_FULL:
	case HTTP_CONN_ST_GONE:
	case HTTP_CONN_ST_MAX:
		break;
	}
}

void
http_conn_set(struct http_conn *c, enum http_conn_state next, const char *reason)
{
	enum http_conn_state from = c->state;

	if (from == next || from == HTTP_CONN_ST_GONE ||
	    (from == HTTP_CONN_ST_DOOMED && next != HTTP_CONN_ST_GONE))
		return;
	LOG_DEBUG("http", "state", "fd=%d from=%s to=%s reason=%s", c->fd,
	    conn_state_names[from], conn_state_names[next], reason);
	c->state = next;
	c->deadline = 0;
	if (from == HTTP_CONN_ST_FULL && next != HTTP_CONN_ST_GONE)
		stream_pause(c->stream, false);
	conn_enter(c);
}

/* The end of x, told once. */
static void
conn_end_exchange(struct http_conn *c, struct http_exchange *x, bool gone)
{
	x->state = HTTP_X_DONE;
	if (x->owed) {
		x->owed = false;
		c->server->cb.on_end(c->server->arg, x, x->user, gone);
	}
	http_exchange_recycle(x);
}

static void
conn_tell_ended(struct http_conn *c)
{
	struct http_exchange *x;

	while ((x = http_queue_pop(&c->ended)) != NULL)
		conn_end_exchange(c, x, false);
}

static void
conn_abandon(struct http_conn *c)
{
	struct http_exchange *x;

	conn_tell_ended(c);
	while ((x = http_queue_pop(&c->open)) != NULL)
		conn_end_exchange(c, x, true);
	c->beat_at = 0;
}

static void
on_conn_destroy(void *p)
{
	struct http_conn *c = p;

	MCPVISOR_ASSERT(c->magic == HTTP_CONN_MAGIC);
	c->magic = 0;
	buf_fini(&c->gather);
	mem_free(c);
}

/* May be entered again by what the owner does in on_end; the innermost finishes. */
void
http_conn_gone(struct http_conn *c)
{
	http_conn_set(c, HTTP_CONN_ST_GONE, "gone");
	stream_free(c->stream);
	timer_fini(&c->timer);
	deferred_cancel(&c->later);
	conn_abandon(c);
	if (!c->prev)
		return;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->prev = NULL;
	loop_defer_free(c->server->loop, on_conn_destroy, c);
	http_server_lost(c->server, c->door);
}

/* A reader that takes something, however slow, is not idle. */
static bool
conn_has_moved(struct http_conn *c, uint32_t ms)
{
	size_t pending = stream_out_pending(c->stream);

	if (pending == 0 || pending == c->out_seen)
		return false;
	http_conn_wait(c, ms);
	return true;
}

static void
conn_idle_over(struct http_conn *c)
{
	if (c->refused)
		http_refuse(c, 503);
	else if (!conn_has_moved(c, c->server->o.idle_ms))
		http_conn_gone(c);
}

static void
conn_stalled(struct http_conn *c)
{
	if (!conn_has_moved(c, c->server->o.body_ms))
		http_conn_gone(c);
}

static void
conn_late_head(struct http_conn *c)
{
	http_refuse(c, 408);
}

static void
conn_late_body(struct http_conn *c)
{
	http_refuse_body(c, 408);
}

/* All that is to be answered is: out with it, then wait for the client to close, as
 * closing on unread input could take the answer from it. */
static void
conn_finish(struct http_conn *c)
{
	if (c->open.first)
		return;
	stream_end_write(c->stream, false);
	if (stream_out_pending(c->stream)) {
		if (!c->deadline)
			http_conn_wait(c, c->server->o.body_ms);
	} else if (c->in_ended) {
		http_conn_gone(c);
	} else {
		http_conn_set(c, HTTP_CONN_ST_LINGER, "answered");
	}
}

/* What has been answered may still leave. */
static void
conn_leave(struct http_conn *c)
{
	c->in_ended = true;
	conn_abandon(c);
	if (c->state == HTTP_CONN_ST_GONE)
		return;
	http_conn_set(c, HTTP_CONN_ST_LAST, "client closed");
	conn_finish(c);
}

/* Whether the client closed its side although we do not read. */
static void
conn_look(struct http_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		conn_leave(c);
	else
		http_conn_wait(c, HTTP_LOOK_MS);
}

static void
conn_linger(struct http_conn *c)
{
	size_t n;

	(void)stream_peek(c->stream, &n);
	c->lingered += n;
	stream_consume(c->stream, n);
	if (c->lingered > LINGER_BYTES)
		http_conn_gone(c);
}

static void
conn_last(struct http_conn *c)
{
	http_conn_set(c, HTTP_CONN_ST_LAST, "drain");
}

/* One that only waits for more has nothing to end. */
static void
conn_stop_idle(struct http_conn *c)
{
	if (c->open.first == NULL && stream_out_pending(c->stream) == 0)
		http_conn_gone(c);
	else
		conn_last(c);
}

static void
conn_ignore(struct http_conn *c)
{
	(void)c;
}

static void
conn_bug(struct http_conn *c)
{
	MCPVISOR_ASSERT(c->state != HTTP_CONN_ST_GONE);
}

#define ROW(state, ...) [HTTP_CONN_ST_##state] = {__VA_ARGS__}
/* clang-format off */
static void (*const conn_table[HTTP_CONN_ST_MAX][CONN_EV_MAX])(struct http_conn *) = {
	/*  input, closed, failed, drained,
	    timeout, settle, stop */
	ROW(IDLE,
	    http_take_parse, conn_leave, http_conn_gone, conn_ignore,
	    conn_idle_over, conn_wait_idle, conn_stop_idle),
	ROW(HEAD,
	    http_take_parse, conn_leave, http_conn_gone, conn_ignore,
	    conn_late_head, conn_ignore, conn_last),
	ROW(BODY,
	    http_take_body, conn_leave, http_conn_gone, conn_ignore,
	    conn_late_body, conn_ignore, conn_ignore),
	ROW(FULL,
	    http_take_hold, conn_leave, http_conn_gone, conn_ignore,
	    conn_look, http_take_resume, conn_last),
	ROW(LAST,
	    conn_drop_input, conn_leave, http_conn_gone, conn_finish,
	    conn_stalled, conn_finish, conn_ignore),
	ROW(LINGER,
	    conn_linger, http_conn_gone, http_conn_gone, conn_ignore,
	    http_conn_gone, conn_ignore, conn_ignore),
	ROW(DOOMED,
	    conn_ignore, http_conn_gone, http_conn_gone, conn_ignore,
	    conn_ignore, http_conn_gone, conn_ignore),
	ROW(GONE,
	    conn_bug, conn_bug, conn_bug, conn_bug,
	    conn_bug, conn_bug, conn_ignore),
};
/* clang-format on */

static void
conn_handle(struct http_conn *c, enum conn_event ev)
{
	MCPVISOR_ASSERT(c->magic == HTTP_CONN_MAGIC);
	conn_table[c->state][ev](c);
}

static void
on_input(void *arg)
{
	conn_handle(arg, CONN_EV_INPUT);
}

static void
on_drained(void *arg)
{
	conn_handle(arg, CONN_EV_DRAINED);
}

static void
on_read_end(void *arg, enum stream_end end)
{
	conn_handle(arg, end == STREAM_END_EOF ? CONN_EV_CLOSED : CONN_EV_FAILED);
}

static void
on_write_end(void *arg, int errnum)
{
	(void)errnum;
	conn_handle(arg, CONN_EV_FAILED);
}

static void
on_later(void *arg)
{
	struct http_conn *c = arg;

	MCPVISOR_ASSERT(c->magic == HTTP_CONN_MAGIC);
	conn_tell_ended(c);
	if (c->state != HTTP_CONN_ST_GONE)
		conn_handle(c, CONN_EV_SETTLE);
}

static void
on_timer(void *arg)
{
	struct http_conn *c = arg;
	uint64_t now = clock_now_ms();

	MCPVISOR_ASSERT(c->magic == HTTP_CONN_MAGIC);
	c->armed_at = 0;
	if (c->deadline && now >= c->deadline) {
		c->deadline = 0;
		conn_handle(c, CONN_EV_TIMEOUT);
	}
	if (c->state == HTTP_CONN_ST_GONE)
		return;
	if (c->beat_at && now >= c->beat_at)
		http_heartbeat(c);
	http_conn_arm(c);
}

void
http_conn_new(struct http_server *s, int fd, uid_t uid, void *door, bool refused)
{
	static const struct stream_cb cb = {
	    on_input, on_drained, on_read_end, on_write_end};
	const struct http_limits *l = &s->o.limits;
	const struct stream_opts o = {
	    .rfd = fd,
	    .wfd = fd,
	    .in_max = l->head_max + (size_t)l->body_max + 2 * HTTP_READ_AHEAD,
	    .out_max = s->o.out_max,
	    .is_vital = true, /* a head is answered, and a body has its own bound */
	};
	struct http_conn *c = mem_xcalloc(1, sizeof(*c));

	c->magic = HTTP_CONN_MAGIC;
	c->server = s;
	c->fd = fd;
	c->uid = uid;
	c->door = door;
	c->limits = *l;
	c->refused = refused;
	c->state = HTTP_CONN_ST_IDLE;
	buf_init(&c->gather, l->head_max + (size_t)l->body_max + 2);
	timer_init(&c->timer, s->loop, on_timer, c);
	deferred_init(&c->later, s->loop, on_later, c);
	c->stream = stream_new(s->loop, &o, &cb, c);
	c->next = s->conns;
	if (c->next)
		c->next->prev = &c->next;
	c->prev = &s->conns;
	s->conns = c;
	s->n_conns++;
	conn_wait_idle(c);
}

void
http_conn_stop(struct http_conn *c)
{
	conn_handle(c, CONN_EV_STOP);
}
