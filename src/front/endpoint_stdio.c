/* SPDX-License-Identifier: MIT */
/*
 * The stdio endpoint: one client, and the end of everything when it leaves.
 *
 *   OPEN --end of input--> DRAINING --idle or deadline--> CLOSING --> GONE
 *
 * Owns: the link and the client.
 * Driven by: the link, the client (idle), the gateway (stopped), a timer.
 * Invariants: GONE is reached after the upstreams have stopped and output has left, or
 * after a deadline; nothing is sent after CLOSING began but what closing sends.
 */
#include "mcpvisor/endpoint_stdio.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/client.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/link.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define ENDPOINT_MAGIC 0x656e6470u
/* After KILL: for what the kernel and the client's pipe still need. */
#define LAST_WAIT_MS 1000

enum endpoint_state { ST_OPEN, ST_DRAINING, ST_CLOSING, ST_GONE };

struct endpoint_stdio {
	unsigned magic;
	struct loop *loop;
	struct gateway *g;
	struct endpoint_stdio_opts o;
	struct link *link;
	struct client *client;
	enum endpoint_state state;
	uint64_t ended_ms;
	bool stopped; /* the gateway is */
	struct timer timer;
	struct deferred check;
	void (*on_gone)(void *);
	void *arg;
};

const struct endpoint_stdio_opts endpoint_stdio_defaults = {
    .rfd = 0, .wfd = 1, .drain_ms = 1000, .term_at_ms = 1200, .kill_at_ms = 1700};

static void
endpoint_gone(struct endpoint_stdio *e)
{
	if (e->state == ST_GONE)
		return;
	e->state = ST_GONE;
	timer_clear(&e->timer);
	e->on_gone(e->arg);
}

static void
endpoint_check_gone(struct endpoint_stdio *e)
{
	if (e->state == ST_CLOSING && e->stopped &&
	    (e->link == NULL || link_out_pending(e->link) == 0))
		endpoint_gone(e);
}

static void
on_gateway_stopped(void *arg)
{
	struct endpoint_stdio *e = arg;

	e->stopped = true;
	deferred_ask(&e->check);
}

static void
endpoint_close(struct endpoint_stdio *e)
{
	uint64_t spent = clock_now_ms() - e->ended_ms;
	struct child_ladder ladder = {.drain_ms = 100};

	if (e->state >= ST_CLOSING)
		return;
	e->state = ST_CLOSING;
	/* The rungs are counted from the end of input, however long draining took. */
	ladder.term_ms = spent < e->o.term_at_ms ? e->o.term_at_ms - (uint32_t)spent : 0;
	ladder.kill_ms = e->o.kill_at_ms - e->o.term_at_ms;
	gateway_stop_waiting(e->g);
	client_finish(e->client);
	if (e->link != NULL)
		link_end_write(e->link, false);
	timer_set(&e->timer, ladder.term_ms + ladder.kill_ms + LAST_WAIT_MS);
	gateway_stop(e->g, &ladder, on_gateway_stopped, e);
}

static void
endpoint_drain(struct endpoint_stdio *e)
{
	if (e->state != ST_OPEN)
		return;
	e->state = ST_DRAINING;
	e->ended_ms = clock_now_ms();
	timer_set(&e->timer, e->o.drain_ms);
	deferred_ask(&e->check);
}

static void
on_check(void *arg)
{
	struct endpoint_stdio *e = arg;

	MCPVISOR_ASSERT(e->magic == ENDPOINT_MAGIC);
	if (e->state == ST_DRAINING && client_in_flight(e->client) == 0)
		endpoint_close(e);
	else
		endpoint_check_gone(e);
}

static void
on_timer(void *arg)
{
	struct endpoint_stdio *e = arg;

	if (e->state == ST_DRAINING) {
		LOG_NOTICE("endpoint", "calls are given up at the end of input",
		    "calls=%zu", client_in_flight(e->client));
		endpoint_close(e);
	} else {
		LOG_WARNING("endpoint", "ended with something left",
		    "stopped=%d pending=%zu", (int)e->stopped,
		    e->link ? link_out_pending(e->link) : 0);
		endpoint_gone(e);
	}
}

void
endpoint_stdio_stop(struct endpoint_stdio *e)
{
	if (e->state == ST_OPEN) {
		if (e->link != NULL)
			link_pause(e->link, true);
		endpoint_drain(e);
	} else if (e->state == ST_DRAINING) {
		endpoint_close(e);
	}
}

/* The link's callbacks. */

static void
on_message(void *arg, const struct link_msg *m)
{
	struct endpoint_stdio *e = arg;

	MCPVISOR_ASSERT(e->magic == ENDPOINT_MAGIC);
	if (e->state <= ST_DRAINING)
		client_on_message(e->client, m);
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	struct endpoint_stdio *e = arg;

	LOG_LIMITED(LOG_LV_WARNING, "endpoint", "client sent no message",
	    "reason=%s line=%s", mv_err_reason(err), LOG_ESC(line, len));
	if (!is_reply && e->state <= ST_DRAINING)
		client_on_bad(e->client, err, id);
}

static void
on_end(void *arg)
{
	endpoint_drain(arg);
}

static void
on_write_end(void *arg, int errnum)
{
	struct endpoint_stdio *e = arg;

	LOG_INFO("endpoint", "client reads no more", "errno=%d", errnum);
	if (e->state == ST_OPEN)
		e->ended_ms = clock_now_ms();
	endpoint_close(e);
	deferred_ask(&e->check);
}

static void
on_drained(void *arg)
{
	struct endpoint_stdio *e = arg;

	if (e->state == ST_CLOSING)
		deferred_ask(&e->check);
}

static const struct link_cb link_callbacks = {
    .on_message = on_message,
    .on_bad = on_bad,
    .on_end = on_end,
    .on_write_end = on_write_end,
    .on_drained = on_drained,
};

/* The client's callbacks. */

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	struct endpoint_stdio *e = arg;

	return e->link != NULL ? link_send(e->link, iov, n) : MV_CLOSED;
}

static void
on_idle(void *arg)
{
	struct endpoint_stdio *e = arg;

	if (e->state == ST_DRAINING)
		deferred_ask(&e->check);
}

static void
on_dead(void *arg)
{
	struct endpoint_stdio *e = arg;

	LOG_ERROR("endpoint", "client is too slow and is left", "pending=%zu",
	    e->link ? link_out_pending(e->link) : 0);
	if (e->state == ST_OPEN)
		e->ended_ms = clock_now_ms();
	endpoint_close(e);
}

static const struct client_cb client_callbacks = {
    .send = on_send, .on_idle = on_idle, .on_dead = on_dead};

struct endpoint_stdio *
endpoint_stdio_new(struct loop *l, struct gateway *g, const struct endpoint_stdio_opts *o,
    void (*on_gone)(void *), void *arg)
{
	struct endpoint_stdio *e = mem_xcalloc(1, sizeof(*e));
	struct link_opts lo = {.rfd = o->rfd,
	    .wfd = o->wfd,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES};

	e->magic = ENDPOINT_MAGIC;
	e->loop = l;
	e->g = g;
	e->o = *o;
	e->on_gone = on_gone;
	e->arg = arg;
	timer_init(&e->timer, l, on_timer, e);
	deferred_init(&e->check, l, on_check, e);
	e->client = client_new(l, g, o->view, &client_callbacks, e);
	e->link = link_new(l, &lo, &link_callbacks, e);
	return e;
}

void
endpoint_stdio_free(struct endpoint_stdio *e)
{
	if (e == NULL)
		return;
	client_free(e->client);
	link_free(e->link);
	timer_fini(&e->timer);
	deferred_cancel(&e->check);
	e->magic = 0;
	mem_free(e);
}
