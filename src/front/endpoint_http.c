/* SPDX-License-Identifier: MIT */
/*
 * The HTTP endpoint.
 *
 *   OPEN --stop--> DRAINING --idle or deadline--> CLOSING --connections gone--> GONE
 *
 * Owns: server, sessions; endpoint_doors.c has the addresses and what is served there.
 * Driven by: the server; its timers; the owner.
 * Invariants: Host and Origin are looked at before anything else of a request; the era is
 * the request's own; whatever decides a status is decided before a stream begins.
 * Spec: 2026-07-28 and 2025-11-25 basic/transports, Streamable HTTP.
 */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_http_priv.h"
#include "http_replay_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define SWEEP_MS       30000
#define SWEEP_LEAST_MS 250
#define LAST_WAIT_MS   1000

const struct endpoint_http_opts endpoint_http_defaults = {
    .commit_ms = 10000,
    .session_s = 86400,
    .session_idle_ms = 120000,
    .session_state_idle_ms = 1800000,
    .sessions_max = 10000,
    .replay_bytes = (size_t)1024 * 1024,
    .replay_ms = 300000,
    .drain_ms = 1000,
};

/* The session that the header names: its exchanges hold it. False: refused. */
static bool
call_join_session(struct http_call *k, const struct http_head *h, bool required)
{
	bool doubled;
	struct http_text text = http_header(h, "mcp-session-id", &doubled);
	char principal[SESSION_ID_PRINCIPAL_MAX + 1];
	int status = 404;

	if (text.p == NULL) {
		if (required)
			http_call_refuse(k, 400, WORDING_SESSION_HEADER);
		return !required;
	}
	http_principal(k, principal);
	if (!doubled)
		status = http_session_find(k->mount, text, principal, &k->session);
	if (status == 503)
		http_call_refuse(k, 503, WORDING_SESSIONS_FULL);
	else if (status != 0)
		http_call_refuse(k, 404, WORDING_SESSION_UNKNOWN);
	else
		k->session->calls++;
	return status == 0;
}

bool
http_call_knows_version(struct http_call *k, const struct http_head *h)
{
	if (!http_call_read_version(k, h))
		return false;
	if (k->no_revision)
		http_call_refuse(k, 400, WORDING_VERSION_HEADER);
	return !k->no_revision;
}

/* A modern client has no session, whatever header it sends along. False: refused. */
static bool
call_of_session(struct http_call *k, const struct http_head *h)
{
	if (!http_call_knows_version(k, h))
		return false;
	if (k->port.modern) {
		http_call_reply(k, 405, "Allow: POST, OPTIONS\r\n", NULL, NULL, 0);
		return false;
	}
	return call_join_session(k, h, true);
}

static void
call_get(struct http_call *k, const struct http_head *h)
{
	if (http_header(h, "mcp-session-id", NULL).p == NULL) {
		/* Without a session there is nothing that could come unasked. */
		http_call_reply(
		    k, 405, "Allow: POST, DELETE, OPTIONS\r\n", NULL, NULL, 0);
		return;
	}
	if (call_of_session(k, h))
		http_session_get(k, h);
}

static void
call_delete(struct http_call *k, const struct http_head *h)
{
	if (!call_of_session(k, h))
		return;
	http_session_delete(k->session);
	http_call_reply(k, 204, "", NULL, NULL, 0);
}

/* One line, as every other transport has it: in valid JSON a raw line break is white
 * space between tokens. */
static const char *
call_one_line(struct endpoint_http *e, const char *body, size_t n)
{
	if (memchr(body, '\n', n) == NULL && memchr(body, '\r', n) == NULL)
		return body;
	buf_reset(&e->body);
	buf_add(&e->body, body, n);
	if (e->body.err != MV_OK)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (e->body.data[i] == '\n' || e->body.data[i] == '\r')
			e->body.data[i] = ' ';
	return e->body.data;
}

bool
http_call_scan(struct http_call *k, const char *body, size_t n, struct link_msg *m)
{
	struct endpoint_http *e = k->e;
	const char *text = body;
	/* As it came, first: in a string a line break is no white space. */
	enum mv_err err = link_scan(body, n, &e->json, m);

	if (err == MV_OK)
		text = call_one_line(e, body, n);
	if (text != body)
		err = text == NULL ? MV_NOMEM : link_scan(text, n, &e->json, m);
	if (err != MV_OK)
		http_call_refuse_bytes(k, err);
	return err == MV_OK;
}

/* Whose message it is. NULL: refused. */
static struct client *
call_client(struct http_call *k, const struct http_head *h, const struct link_msg *m)
{
	bool modern = k->port.modern || client_is_modern(m->json);

	k->port.modern = modern && m->env.kind == ENVELOPE_REQUEST;
	if (modern)
		return k->mount->shared;
	if (m->env.kind == ENVELOPE_REQUEST &&
	    method_parse(m->env.method) == METHOD_INITIALIZE) {
		k->session = http_session_new(k->mount);
		if (k->session == NULL) {
			http_call_refuse(k, 503, WORDING_SESSIONS_FULL);
			return NULL;
		}
		k->session->calls++;
		return k->session->client;
	}
	if (!call_join_session(k, h, false))
		return NULL;
	return k->session != NULL ? k->session->client : k->mount->shared;
}

static void
call_post(struct http_call *k, const struct http_head *h, const char *body, size_t n)
{
	struct link_msg m;
	struct client *c;

	if (!http_call_read_version(k, h) || !http_call_scan(k, body, n, &m))
		return;
	if (m.env.kind == ENVELOPE_BATCH && k->no_batches) {
		http_call_refuse(k, 400, WORDING_BATCH_REVISION);
		return;
	}
	if (m.env.kind != ENVELOPE_REQUEST && !http_call_knows_version(k, h))
		return;
	c = call_client(k, h, &m);
	if (c == NULL)
		return;
	k->head = h;
	k->port.is_mute = !k->takes_stream;
	client_on_message_by(c, &m, &k->port);
	k->head = NULL;
	if (k->session != NULL)
		http_session_note_state(k->session);
	if (k->answered || k->x == NULL)
		return;
	if (k->request == NULL && !k->batch_open) {
		/* A notification or a response: taken, and nothing to say. */
		http_call_reply(k, 202, "", NULL, NULL, 0);
		return;
	}
	http_call_queue(k);
}

static void
on_request(void *arg, struct http_exchange *x, void *user, const struct http_head *h,
    const char *body, size_t n)
{
	struct http_call *k = user;

	(void)arg;
	(void)x;
	MCPVISOR_ASSERT(k->magic == HTTP_CALL_MAGIC);
	if (k->mount->is_gone) { /* since its head */
		http_call_reply(k, 404, "", NULL, NULL, 0);
		return;
	}
	if (k->mount->is_sse) {
		http_sse_request(k, h, body, n);
		return;
	}
	switch (h->method) {
	case HTTP_M_OPTIONS:
		http_call_options(k);
		break;
	case HTTP_M_GET:
		call_get(k, h);
		break;
	case HTTP_M_DELETE:
		call_delete(k, h);
		break;
	case HTTP_M_POST:
		call_post(k, h, body, n);
		break;
	case HTTP_M_HEAD:
	case HTTP_M_OTHER:
		break; /* refused at the head */
	}
}

static void
on_end(void *arg, struct http_exchange *x, void *user, bool gone)
{
	struct http_call *k = user;
	bool lost;

	(void)arg;
	(void)x;
	if (k == NULL)
		return;
	MCPVISOR_ASSERT(k->magic == HTTP_CALL_MAGIC);
	k->x = NULL;
	k->e->n_streams -= k->is_stream;
	http_call_unqueue(k);
	if (k->is_get)
		http_session_leave(k);
	http_track_leave(k, gone);
	if (k->is_get && k->session->is_sse)
		http_sse_end(k);
	/* The end of a modern stream is the cancellation; a legacy session may just have
	 * lost its line; without a session nobody could come for the answer. */
	lost = k->request != NULL &&
	       (k->session == NULL || client_request_is_modern(k->request));
	if (gone && lost)
		client_cancel(k->request); /* lets go of k */
	else if (gone && k->batch_open && k->session == NULL)
		client_cancel_batch(k->mount->shared, &k->port); /* the same */
	else
		http_call_release(k);
}

static void
on_close(void *arg, void *door)
{
	(void)arg;
	http_door_unref(door);
}

static const struct http_server_cb server_callbacks = {
    .on_head = http_call_on_head,
    .on_request = on_request,
    .on_end = on_end,
    .on_close = on_close,
};

/* So often that nothing lives much longer than it was said to. */
static uint64_t
sweep_ms(const struct endpoint_http_opts *o)
{
	uint64_t least = o->session_idle_ms < o->session_state_idle_ms
			     ? o->session_idle_ms
			     : o->session_state_idle_ms;

	least = o->replay_ms < least ? o->replay_ms : least;
	least = (o->http.idle_ms < least ? o->http.idle_ms : least) / 2;
	if (least < SWEEP_LEAST_MS)
		return SWEEP_LEAST_MS;
	return least < SWEEP_MS ? least : SWEEP_MS;
}

static void
on_sweep(void *arg)
{
	struct endpoint_http *e = arg;

	http_sessions_sweep(e);
	sockets_sweep(e);
	/* What single large messages took is not kept for ever. */
	buf_fini(&e->body);
	for (struct http_mount *m = e->mounts; m != NULL; m = m->next)
		client_rest(m->shared);
	mem_trim();
	e->is_trim_due = false;
	timer_set(&e->sweep_timer, sweep_ms(&e->o));
}

static size_t
endpoint_in_flight(const struct endpoint_http *e)
{
	size_t n = sockets_in_flight(e);

	for (const struct http_mount *m = e->mounts; m != NULL; m = m->next)
		n += client_in_flight(m->shared);
	for (const struct http_session *s = e->first; s != NULL; s = s->next)
		n += client_in_flight(s->client);
	return n;
}

static void
endpoint_gone(struct endpoint_http *e)
{
	if (e->state == HTTP_ST_GONE)
		return;
	e->state = HTTP_ST_GONE;
	timer_clear(&e->stop_timer);
	e->on_stopped(e->on_stopped_arg);
}

/* Lines have their last answers to take as well, and the stop timer for it. */
static void
endpoint_check_gone(struct endpoint_http *e)
{
	if (e->state == HTTP_ST_CLOSING && e->is_drained && e->sockets == NULL)
		endpoint_gone(e);
}

static void
on_drained(void *arg)
{
	struct endpoint_http *e = arg;

	e->is_drained = true;
	endpoint_check_gone(e);
}

static void
endpoint_close(struct endpoint_http *e)
{
	if (e->state >= HTTP_ST_CLOSING)
		return;
	e->state = HTTP_ST_CLOSING;
	gateway_stop_waiting(e->g);
	for (struct http_mount *m = e->mounts; m != NULL; m = m->next)
		client_finish(m->shared);
	for (struct http_session *s = e->first; s != NULL; s = s->next) {
		client_finish(s->client);
		http_session_leave_streams(s);
	}
	sockets_finish(e);
	timer_set(&e->stop_timer, LAST_WAIT_MS);
	http_server_drain(e->server, on_drained, e);
}

static void
on_check(void *arg)
{
	struct endpoint_http *e = arg;

	if (e->state == HTTP_ST_DRAINING && endpoint_in_flight(e) == 0)
		endpoint_close(e);
	else
		endpoint_check_gone(e);
}

static void
on_stop_timer(void *arg)
{
	struct endpoint_http *e = arg;

	if (e->state == HTTP_ST_DRAINING)
		endpoint_close(e);
	else
		endpoint_gone(e);
}

void
endpoint_http_stop(struct endpoint_http *e, bool now, void (*fn)(void *), void *arg)
{
	e->on_stopped = fn;
	e->on_stopped_arg = arg;
	http_doors_close(e);
	if (e->state == HTTP_ST_OPEN) {
		e->state = HTTP_ST_DRAINING;
		timer_set(&e->stop_timer, e->o.drain_ms);
		deferred_ask(&e->check);
	}
	if (now)
		endpoint_close(e);
}

struct endpoint_http *
endpoint_http_new(struct loop *l, struct gateway *g, const struct endpoint_http_opts *o)
{
	struct endpoint_http *e = mem_xcalloc(1, sizeof(*e));

	e->magic = ENDPOINT_MAGIC;
	e->loop = l;
	e->g = g;
	e->o = *o;
	e->queue_tail = &e->queue;
	e->sessions = strmap_new();
	buf_init(&e->body, CAP_MESSAGE_BYTES);
	timer_init(&e->commit_timer, l, on_commit_timer, e);
	timer_init(&e->sweep_timer, l, on_sweep, e);
	timer_init(&e->stop_timer, l, on_stop_timer, e);
	timer_set(&e->sweep_timer, sweep_ms(o));
	deferred_init(&e->check, l, on_check, e);
	e->server = http_server_new(l, &o->http, &server_callbacks, e);
	return e;
}

void
endpoint_http_free(struct endpoint_http *e)
{
	if (e == NULL)
		return;
	http_doors_close(e);
	http_server_free(e->server);
	sockets_free(e);
	http_mounts_free_clients(e);
	while (e->first != NULL)
		http_session_drop(e->first);
	http_mounts_free(e);
	strmap_free(e->sessions);
	timer_fini(&e->commit_timer);
	timer_fini(&e->sweep_timer);
	timer_fini(&e->stop_timer);
	deferred_cancel(&e->check);
	buf_fini(&e->body);
	mac_key_wipe(&e->o.key);
	e->magic = 0;
	mem_free(e);
}

void
endpoint_http_set_opts(struct endpoint_http *e, const struct endpoint_http_opts *o)
{
	struct endpoint_http_opts was = e->o;
	uint64_t latest = clock_now_ms() + o->commit_ms;

	e->o = *o;
	e->o.key = was.key;
	e->o.mark_gone = was.mark_gone;
	e->o.is_gone = was.is_gone;
	e->o.gone_arg = was.gone_arg;
	mac_key_wipe(&was.key);
	http_server_set_opts(e->server, &o->http);
	if (sweep_ms(o) != sweep_ms(&was))
		timer_set(&e->sweep_timer, sweep_ms(o));
	/* The queue is in order of time: nobody in it waits longer than the next one. */
	for (struct http_call *k = e->queue; k != NULL; k = k->next)
		k->due_ms = k->due_ms < latest ? k->due_ms : latest;
	if (e->queue != NULL && timer_is_set(&e->commit_timer))
		http_calls_wait(e);
}

struct endpoint_stats
endpoint_http_stats(const struct endpoint_http *e)
{
	return (struct endpoint_stats){
	    .sessions = e->n_sessions,
	    .connections = http_server_connections(e->server) + e->n_sockets,
	    .streams = e->n_streams,
	    .in_flight = endpoint_in_flight(e),
	};
}
