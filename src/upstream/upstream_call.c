/* SPDX-License-Identifier: MIT */
/*
 * Requests to an upstream: composed by splicing, in flight by id, ended once.
 *
 * Owns: nothing of a request.
 * Driven by: the gateway (send, cancel), replies, the sweep timer, the life cycle.
 * Invariants: a request with u set is in exactly one of flying and held; by_id has
 * exactly the flying ones; only upstream_forget takes a request out.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define PIECES_MAX   (2 * JSON_EDITS_MAX + 8)
#define U64_DIGITS   20
#define SCRATCH_KEEP ((size_t)64 * 1024)

/* printf would cost more than the rest of a head. */
static size_t
put_u64(char *to, uint64_t v)
{
	char digits[U64_DIGITS];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	memcpy(to, digits + i, sizeof(digits) - i);
	return sizeof(digits) - i;
}

void
upstream_forget(struct upstream_req *r)
{
	struct upstream *u = r->u;

	if (u == NULL)
		return;
	if (r->n_questions > 0)
		upstream_questions_forget(u, r);
	if (r->id != 0) {
		(void)idmap_del(u->by_id, r->id);
	} else {
		u->n_held--;
		if (r->next == NULL)
			u->held_tail = r->prev;
	}
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	if (r->held != NULL) {
		u->held_bytes -= r->held->len;
		upstream_call_free(r->held);
		r->held = NULL;
	}
	r->u = NULL;
	r->next = NULL;
	r->prev = NULL;
	r->id = 0;
	if (!r->is_call)
		upstream_idle_arm(u);
	else if (--u->n_calls == 0)
		upstream_note_last_call(u);
}

bool
upstream_drop(struct upstream_req *r)
{
	struct upstream *u = r->u;
	uint64_t id = r->id;

	upstream_forget(r);
	return u != NULL && id != 0 && u->kind->drop != NULL && u->kind->drop(u, id);
}

void
upstream_drop_own(struct upstream *u)
{
	struct upstream_req *next;

	for (struct upstream_req *r = u->flying; r != NULL; r = next) {
		next = r->next;
		if (!r->is_call)
			(void)upstream_drop(r);
	}
}

void
upstream_finish(struct upstream *u, struct upstream_req *r, const struct outcome *o)
{
	if (r->is_call)
		upstream_count(u, o);
	r->cb->on_done(r->arg, o);
}

void
upstream_end(struct upstream_req *r, const struct outcome *o)
{
	struct upstream *u = r->u;

	upstream_forget(r);
	upstream_finish(u, r, o);
}

static uint64_t
req_due(const struct upstream *u, const struct upstream_req *r)
{
	uint64_t silent = r->heard_ms + (r->call_ms != 0 ? r->call_ms : u->conf->call_ms);
	uint64_t whole =
	    r->started_ms + (r->call_max_ms != 0 ? r->call_max_ms : u->conf->call_max_ms);

	if (r->n_questions > 0 || (r->is_call && u->n_loose > 0))
		return UINT64_MAX; /* its client's time, not its own */
	if (!r->is_call)
		return r->is_endless ? UINT64_MAX : r->started_ms + OWN_REQUEST_MS;
	return silent < whole ? silent : whole;
}

static void
calls_arm(struct upstream *u, uint64_t due)
{
	uint64_t now = clock_now_ms();

	if (due == UINT64_MAX ||
	    (timer_is_set(&u->call_timer) && u->call_timer_due <= due))
		return;
	u->call_timer_due = due;
	timer_set(&u->call_timer, due > now ? due - now : 0);
}

void
upstream_calls_arm(struct upstream *u, const struct upstream_req *r)
{
	calls_arm(u, req_due(u, r));
}

void
upstream_calls_look(struct upstream *u)
{
	calls_arm(u, 0);
}

static struct upstream_req *
calls_first_due(
    struct upstream *u, struct upstream_req *list, uint64_t now, uint64_t *next)
{
	for (struct upstream_req *r = list; r != NULL; r = r->next) {
		uint64_t due = req_due(u, r);

		if (due <= now)
			return r;
		if (due < *next)
			*next = due;
	}
	return NULL;
}

static void
call_log_unsent(const struct upstream *u, enum mv_err err)
{
	LOG_LIMITED(LOG_LV_WARNING, "upstream", "message not sent",
	    "upstream=%s reason=%s", UNAME(u), mv_err_reason(err));
}

enum mv_err
upstream_write_as(
    struct upstream *u, const struct upstream_message *what, const struct buf *b)
{
	enum mv_err err = b->err != MV_OK ? b->err : MV_CLOSED;
	struct iovec iov = {b->data, b->len};

	if (b->err == MV_OK && upstream_is_open(u))
		err = u->kind->send(u, what, &iov, 1);
	if (err != MV_OK)
		call_log_unsent(u, err);
	return err;
}

enum mv_err
upstream_write(struct upstream *u, const struct buf *b)
{
	return upstream_write_as(u, &(struct upstream_message){.id = 0}, b);
}

static void
on_call_timer(void *arg)
{
	struct upstream *u = arg;
	struct outcome o = {.kind = OUTCOME_FAILED, .err = MV_TIMEOUT};
	uint64_t now = clock_now_ms(), next;
	struct upstream_req *r;

	/* Ending one may start or end others: look again from the front each time. */
	do {
		next = UINT64_MAX;
		r = calls_first_due(u, u->flying, now, &next);
		if (r == NULL)
			r = calls_first_due(u, u->held, now, &next);
		if (r != NULL) {
			LOG_LIMITED(LOG_LV_WARNING, "upstream", "call timed out",
			    "upstream=%s method=%s id=%llu",
			    LOG_ESC(u->conf->name, strlen(u->conf->name)),
			    method_name(r->method), (unsigned long long)r->id);
			upstream_withdraw(r, NULL);
			upstream_finish(u, r, &o);
		}
	} while (r != NULL);
	calls_arm(u, next);
}

void
upstream_calls_init(struct upstream *u)
{
	u->by_id = idmap_new();
	u->held_tail = &u->held;
	timer_init(&u->call_timer, u->loop, on_call_timer, u);
}

void
upstream_calls_fini(struct upstream *u)
{
	upstream_fail_all(u, MV_STOPPING, NULL);
	timer_fini(&u->call_timer);
	idmap_free(u->by_id);
}

/* Sends r, composed with the id in what, and puts it into the tables. */
static enum mv_err
req_launch(struct upstream *u, struct upstream_req *r,
    const struct upstream_message *what, const struct iovec *iov, int n)
{
	enum mv_err err = MV_CLOSED;

	/* The memory first: what was sent cannot be taken back. */
	if (!idmap_put(u->by_id, what->id, r))
		return MV_NOMEM;
	if (upstream_is_open(u))
		err = u->kind->send(u, what, iov, n);
	if (err != MV_OK) {
		(void)idmap_del(u->by_id, what->id);
		return err;
	}
	r->id = what->id;
	r->is_sent = true;
	r->method = what->method;
	r->u = u;
	r->next = u->flying;
	if (r->next != NULL)
		r->next->prev = &r->next;
	r->prev = &u->flying;
	u->flying = r;
	if (r->is_call)
		u->n_calls++;
	r->started_ms = r->heard_ms = clock_now_ms();
	calls_arm(u, req_due(u, r));
	return MV_OK;
}

enum mv_err
upstream_ask_raw(
    struct upstream *u, struct upstream_req *r, enum method m, const char *params)
{
	struct upstream_message what = {.id = ++u->last_id, .method = m};
	struct buf b;
	enum mv_err err;
	struct iovec iov;

	r->level = MCP_LV_MAX;
	r->is_call = false;
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\"",
	    (unsigned long long)what.id, method_name(m));
	if (params != NULL) {
		buf_add_str(&b, ",\"params\":");
		buf_add_str(&b, params);
	}
	buf_add_char(&b, '}');
	iov = (struct iovec){b.data, b.len};
	err = b.err != MV_OK ? b.err : req_launch(u, r, &what, &iov, 1);
	if (err != MV_OK)
		call_log_unsent(u, err);
	buf_fini(&b);
	return err;
}

enum mv_err
upstream_ask(
    struct upstream *u, struct upstream_req *r, enum method m, const char *members)
{
	struct buf b;
	enum mv_err err;

	if (u->era == NULL)
		return MV_STARTING;
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_char(&b, '{');
	buf_add_str(&b, members);
	u->era->put_own_meta(u, &b);
	buf_add_char(&b, '}');
	(void)buf_cstr(&b);
	err =
	    b.err != MV_OK ? b.err : upstream_ask_raw(u, r, m, b.len > 2 ? b.data : NULL);
	buf_fini(&b);
	return err;
}

static struct iovec
piece_of(const char *p, size_t n)
{
	/* It is only read, but an iovec has no const. */
	return (struct iovec){(void *)(uintptr_t)p, n};
}

/* A wish for a task goes to whoever understands it as it is meant, and to nobody else. */
static void
call_cut_task(
    const struct upstream *u, const struct upstream_call *c, struct json_edits *ed)
{
	const struct json_span *slot = c->json->slot;

	if ((c->tasks == TASKS_CORE) != u->caps.tasks)
		json_edit_cut(ed, c->base, slot[JSON_PARAMS],
		    c->json->key_off[JSON_P_TASK], slot[JSON_P_TASK]);
}

enum mv_err
upstream_transmit(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct upstream_message what = {.method = c->method, .call = c};
	struct iovec iov[PIECES_MAX];
	struct json_edits ed;
	const struct json_edit *const own[] = {&c->input, &c->target, &c->arguments};
	char num[U64_DIGITS];
	const char *no_params;
	enum mv_err err;
	int n = 0;

	json_edits_init(&ed);
	if (c->has_state && !u->era->asks_in_results)
		return MV_PARAMS;
	u->era->raise_level(u, c->level);
	buf_reset(&u->scratch);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i]->put != NULL)
			json_edit_add(
			    &ed, own[i]->off, own[i]->len, own[i]->put, own[i]->put_len);
	what.id = ++u->last_id;
	no_params = u->era->edit_params(u, c, u->last_id, &ed, &u->scratch);
	if (c->json->slot[JSON_P_TASK].len != 0)
		call_cut_task(u, c, &ed);
	err = u->scratch.err;
	if (err != MV_OK)
		goto out;
	iov[n++] = piece_of("{\"jsonrpc\":\"2.0\",\"id\":", 22);
	iov[n++] = piece_of(num, put_u64(num, u->last_id));
	iov[n++] = piece_of(",\"method\":\"", 11);
	iov[n++] = piece_of(method_name(c->method), strlen(method_name(c->method)));
	/* Every byte of the params is copied once, into the queue. */
	if (c->json->slot[JSON_PARAMS].len != 0) {
		iov[n++] = piece_of("\",\"params\":", 11);
		n += json_edit_pieces(c->base, c->json->slot[JSON_PARAMS], &ed, iov + n);
		iov[n++] = piece_of("}", 1);
	} else if (no_params != NULL) {
		iov[n++] = piece_of("\",\"params\":", 11);
		iov[n++] = piece_of(no_params, strlen(no_params));
		iov[n++] = piece_of("}", 1);
	} else {
		iov[n++] = piece_of("\"}", 2);
	}
	err = req_launch(u, r, &what, iov, n);
	if (err == MV_OK && u->kind->on_sent != NULL)
		u->kind->on_sent(u, r, c);
out:
	/* Room for one client's huge _meta is not kept for the next. */
	if (u->scratch.cap > SCRATCH_KEEP)
		buf_fini(&u->scratch);
	return err;
}

enum mv_err
upstream_refusal(const struct upstream *u)
{
	if (u->conf->broken != MV_OK)
		return u->conf->broken;
	if (u->stopping)
		return MV_STOPPING;
	if (u->state == UPSTREAM_ST_PARKED)
		return u->park_err;
	if (u->state == UPSTREAM_ST_DOWN)
		return MV_BACKOFF;
	return MV_OK;
}

/* One that does not read must not make us keep what it is sent. */
static bool
call_would_pile_up(const struct upstream *u, const struct upstream_call *c)
{
	size_t pending = u->kind->out_pending(u);

	return pending > 0 && pending + c->len > u->conf->queue_bytes;
}

static enum mv_err
call_take(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	enum mv_err err = upstream_refusal(u);

	if (err != MV_OK)
		return err;
	if (u->n_calls >= u->conf->queue_calls)
		return MV_BUSY;
	if (u->era == NULL)
		return upstream_hold_call(u, r, c);
	if (!upstream_is_open(u))
		return MV_DIED;
	if (call_would_pile_up(u, c))
		return MV_BUSY;
	return upstream_transmit(u, r, c);
}

enum mv_err
upstream_send(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	enum mv_err err;

	r->level = c->level;
	r->is_call = true;
	r->is_sent = false;
	r->is_repaired = false;
	/* Its start may fail on the spot: then there is a reason to give. */
	if (u->state == UPSTREAM_ST_ASLEEP)
		upstream_wake(u);
	else if (u->state == UPSTREAM_ST_PARKED)
		upstream_look_again(u);
	err = call_take(u, r, c);
	if (err == MV_OK)
		u->stats.calls++;
	else
		upstream_count_refused(u, err);
	return err;
}

void
upstream_fail_flying(struct upstream *u, enum mv_err err, const char *detail)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err, .detail = detail};

	while (u->flying != NULL)
		upstream_end(u->flying, &o);
}

void
upstream_fail_all(struct upstream *u, enum mv_err err, const char *detail)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err, .detail = detail};

	upstream_fail_flying(u, err, detail);
	while (u->held != NULL)
		upstream_end(u->held, &o);
	timer_clear(&u->call_timer);
}

size_t
upstream_in_flight(const struct upstream *u)
{
	return u->n_calls;
}

void
upstream_each_req(
    struct upstream *u, bool (*fn)(struct upstream_req *r, void *arg), void *arg)
{
	struct upstream_req *next;

	for (struct upstream_req *r = u->flying; r != NULL; r = next) {
		next = r->next;
		if (r->is_call && !fn(r, arg))
			return;
	}
}
