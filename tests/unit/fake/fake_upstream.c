/* SPDX-License-Identifier: MIT */
/*
 * Upstreams that a test plays.
 *
 * Owns: what was sent, and copies of all that it says, for the time of one callback.
 * Driven by: the test.
 * Invariants: as upstream.h has them: a request ends once, not before upstream_send
 * returned, and its memory is its owner's again before on_done.
 */
#include "fake/fake_upstream.h"

#include "fake/fake_upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <string.h>
#include <sys/uio.h>

/* ---- life ---- */

static void
on_idle(void *arg)
{
	struct upstream *u = arg;

	if (u->n_calls == 0 && u->cb->on_idle != NULL)
		u->cb->on_idle(u->arg, u);
}

struct upstream *
upstream_new(const struct upstream_env *env, const struct upstream_conf *conf,
    const struct upstream_cb *cb, void *arg)
{
	struct upstream *u = mem_xcalloc(1, sizeof(*u));

	u->magic = FAKE_MAGIC;
	u->conf = conf;
	u->cb = cb;
	u->arg = arg;
	u->level = MCP_LV_MAX;
	u->held_tail = &u->held;
	deferred_init(&u->idle, env->loop, on_idle, u);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ulist_init(&u->lists[k], (enum list_kind)k);
	return u;
}

void
fake_forget(struct upstream_req *r)
{
	struct upstream *u = r->u;

	for (size_t i = 0; i < u->n_sent; i++)
		if (u->sent[i].r == r)
			u->sent[i].r = NULL;
	if (r->id == 0 && r->next == NULL)
		u->held_tail = r->prev;
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	upstream_call_free(r->held);
	r->held = NULL;
	u->n_calls -= r->is_call;
	if (u->n_calls == 0)
		deferred_ask(&u->idle);
	r->u = NULL;
	r->next = NULL;
	r->prev = NULL;
	r->id = 0;
}

void
fake_end(struct upstream_req *r, const struct outcome *o)
{
	fake_forget(r);
	r->cb->on_done(r->arg, o);
}

void
fake_fail_all(struct upstream *u, enum mv_err err)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err, .detail = u->reason};

	while (u->flying != NULL)
		fake_end(u->flying, &o);
	while (u->held != NULL)
		fake_end(u->held, &o);
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	fake_upstream_withdraw(u);
	fake_fail_all(u, MV_STOPPING);
	deferred_cancel(&u->idle);
	ck_assert_msg(u->watches == NULL, "a watch outlives its upstream");
	for (size_t i = 0; i < u->n_sent; i++) {
		mem_free(u->sent[i].params);
		mem_free(u->sent[i].client_info);
		mem_free(u->sent[i].cancel);
	}
	mem_free(u->sent);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ulist_fini(&u->lists[k]);
	mem_free(u->instructions);
	mem_free(u->answer);
	u->magic = 0;
	mem_free(u);
}

void
fake_begin(struct upstream *u)
{
	if (u->conf->broken != MV_OK) {
		fake_upstream_set_state(u, UPSTREAM_ST_PARKED, u->conf->broken_text);
		fake_upstream_settle(u);
	} else {
		u->state = UPSTREAM_ST_PROBE;
	}
}

void
upstream_start(struct upstream *u)
{
	ck_assert_uint_eq(u->magic, FAKE_MAGIC);
	u->starts++;
	if (u->conf->broken == MV_OK && u->conf->start == START_ON_USE &&
	    u->lists[LIST_TOOLS].is_known)
		u->state = UPSTREAM_ST_ASLEEP;
	else
		fake_begin(u);
}

void
upstream_wake(struct upstream *u)
{
	ck_assert_uint_eq(u->magic, FAKE_MAGIC);
	u->wakes++;
	if (u->state == UPSTREAM_ST_ASLEEP || u->state == UPSTREAM_ST_DOWN ||
	    u->state == UPSTREAM_ST_PARKED)
		fake_begin(u);
}

void
upstream_restart(struct upstream *u, const char *reason)
{
	ck_assert_ptr_nonnull(reason);
	u->restarts++;
	fake_fail_all(u, MV_DIED);
	fake_begin(u);
}

void
upstream_set_conf(struct upstream *u, const struct upstream_conf *conf)
{
	ck_assert_str_eq(u->conf->name, conf->name);
	u->confs++;
	u->conf = conf;
}

void
upstream_hold(struct upstream *u, bool hold)
{
	ck_assert(hold || u->holds > 0);
	u->holds += hold ? 1u : -1u;
}

void
upstream_stop(struct upstream *u, const struct child_ladder *ladder)
{
	u->stops++;
	u->stopping = true;
	u->ladder = *ladder;
	fake_fail_all(u, MV_STOPPING);
	if (!u->stop_slowly)
		u->cb->on_stopped(u->arg, u);
}

/* ---- what it is ---- */

const char *
upstream_name(const struct upstream *u)
{
	ck_assert_uint_eq(u->magic, FAKE_MAGIC);
	return u->conf->name;
}

const struct upstream_conf *
upstream_conf_of(const struct upstream *u)
{
	return u->conf;
}

enum upstream_state
upstream_state(const struct upstream *u)
{
	return u->state;
}

const char *
upstream_state_text(enum upstream_state st)
{
	static const char *const names[] = {
#define X(id, name) [UPSTREAM_ST_##id] = name,
	    UPSTREAM_STATES(X)
#undef X
	};

	return names[st];
}

bool
upstream_is_settled(const struct upstream *u)
{
	return u->settled;
}

bool
upstream_is_complete(const struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (!u->lists[k].is_known)
			return false;
	return u->state == UPSTREAM_ST_READY;
}

const struct upstream_caps *
upstream_caps(const struct upstream *u)
{
	return &u->caps;
}

const char *
upstream_instructions(const struct upstream *u)
{
	return u->instructions;
}

const struct ulist *
upstream_list(const struct upstream *u, enum list_kind kind)
{
	return &u->lists[kind];
}

const char *
upstream_reason(const struct upstream *u)
{
	return u->reason;
}

const char *
upstream_told(const struct upstream *u)
{
	return u->reason;
}

/* ---- requests ---- */

static char *
fake_text(struct jtext t)
{
	return mem_xstrndup(t.n ? t.p : "", t.n);
}

void
fake_transmit(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	struct json_edits ed = {.n = 0};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	struct fake_sent *s;
	struct buf b;
	int n = 0;

	r->is_sent = true;
	u->sent = mem_xrealloc(u->sent, (u->n_sent + 1) * sizeof(*u->sent));
	s = &u->sent[u->n_sent++];
	*s = (struct fake_sent){.r = r, .method = c->method, .level = c->level};
	if (c->input.put != NULL)
		json_edit_add(
		    &ed, c->input.off, c->input.len, c->input.put, c->input.put_len);
	if (c->target.put != NULL)
		json_edit_add(
		    &ed, c->target.off, c->target.len, c->target.put, c->target.put_len);
	if (c->arguments.put != NULL)
		json_edit_add(&ed, c->arguments.off, c->arguments.len, c->arguments.put,
		    c->arguments.put_len);
	if (c->json->slot[JSON_PARAMS].len != 0)
		n = json_edit_pieces(c->base, c->json->slot[JSON_PARAMS], &ed, iov);
	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	s->params = buf_take(&b, NULL);
	mem_fail_hold(false);
	s->client_info = fake_text(c->client_info);
	s->id = r->id = ++u->last_id;
	r->method = c->method;
	r->u = u;
	r->started_ms = r->heard_ms = clock_now_ms();
	r->next = u->flying;
	if (r->next != NULL)
		r->next->prev = &r->next;
	r->prev = &u->flying;
	u->flying = r;
	u->n_calls++;
}

static enum mv_err
fake_hold(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	r->held = upstream_call_dup(c);
	if (r->held == NULL)
		return MV_NOMEM;
	r->id = 0;
	r->method = c->method;
	r->u = u;
	r->next = NULL;
	r->prev = u->held_tail;
	*u->held_tail = r;
	u->held_tail = &r->next;
	u->n_calls++;
	return MV_OK;
}

enum mv_err
upstream_refusal(const struct upstream *u)
{
	if (u->refusal != MV_OK)
		return u->refusal;
	if (u->conf->broken != MV_OK)
		return u->conf->broken;
	if (u->stopping)
		return MV_STOPPING;
	if (u->state == UPSTREAM_ST_PARKED)
		return MV_PARKED;
	return u->state == UPSTREAM_ST_DOWN ? MV_BACKOFF : MV_OK;
}

enum mv_err
upstream_send(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	enum mv_err err = upstream_refusal(u);

	ck_assert_uint_eq(u->magic, FAKE_MAGIC);
	ck_assert_ptr_null(r->u);
	ck_assert_ptr_nonnull(r->cb);
	r->level = c->level;
	r->is_call = true;
	r->is_sent = false;
	if (err != MV_OK)
		return err;
	u->stats.calls++;
	if (u->state == UPSTREAM_ST_ASLEEP)
		upstream_wake(u);
	if (u->state != UPSTREAM_ST_READY)
		return fake_hold(u, r, c);
	if (c->has_state && !u->is_modern)
		return MV_PARAMS;
	fake_transmit(u, r, c);
	return MV_OK;
}

enum mv_err
upstream_ask(
    struct upstream *u, struct upstream_req *r, enum method m, const char *members)
{
	struct upstream_call c = {.method = m, .level = MCP_LV_MAX};
	struct json_msg json;
	struct link_msg msg;
	struct buf b;

	if (u->state != UPSTREAM_ST_READY)
		return MV_STARTING;
	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{%s}}",
	    method_name(m), members);
	ck_assert_int_eq(link_scan(b.data, b.len, &json, &msg), MV_OK);
	mem_fail_hold(false);
	c.base = msg.base;
	c.len = msg.len;
	c.json = msg.json;
	fake_transmit(u, r, &c);
	u->n_calls--;
	r->is_call = false;
	buf_fini(&b);
	return MV_OK;
}

void
upstream_cancel(struct upstream_req *r, const struct link_msg *cancel)
{
	struct upstream *u = r->u;

	if (u == NULL)
		return;
	fake_note_withdrawn(u, r);
	for (size_t i = 0; i < u->n_sent; i++) {
		struct fake_sent *s = &u->sent[i];

		if (s->r != r)
			continue;
		s->cancelled = true;
		if (cancel != NULL)
			s->cancel = fake_text(
			    jtext_of(cancel->base, cancel->json->slot[JSON_PARAMS]));
	}
	fake_forget(r);
}

size_t
upstream_in_flight(const struct upstream *u)
{
	return u->n_calls;
}

struct upstream_stats
upstream_stats(const struct upstream *u)
{
	struct upstream_stats st = u->stats;

	for (const struct upstream_req *r = u->held; r != NULL; r = r->next)
		st.held++;
	return st;
}

void
upstream_note_busy(struct upstream *u)
{
	u->stats.calls++;
	u->stats.failed++;
	u->stats.busy++;
}

void
upstream_note_answer(struct upstream *u, const struct outcome *o)
{
	u->stats.labels[o->label->reason]++;
	u->stats.answers[o->answer]++;
}

uint64_t
upstream_generation(const struct upstream *u)
{
	return u->generation;
}

uint64_t
upstream_refusals(const struct upstream *u)
{
	return u->n_refused;
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

/* ---- wishes ---- */

void
upstream_watch(struct upstream *u, struct upstream_watch *w)
{
	static const struct outcome no = {.kind = OUTCOME_FAILED, .err = MV_UNSUPPORTED};

	w->u = u;
	w->settled = false;
	w->next = u->watches;
	if (w->next != NULL)
		w->next->prev = &w->next;
	w->prev = &u->watches;
	u->watches = w;
	u->watched++;
	if (u->watching == FAKE_WATCH_LATER)
		return;
	w->settled = true;
	w->on_settled(w->arg, u->watching == FAKE_WATCH_NO ? &no : NULL);
}

void
upstream_unwatch(struct upstream_watch *w)
{
	if (w->u == NULL)
		return;
	*w->prev = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	w->u = NULL;
}

void
upstream_set_level(struct upstream *u, enum mcp_level level)
{
	u->level = level;
}

void
upstream_refresh_stale(struct upstream *u, enum list_kind kind)
{
	u->refreshes[kind]++;
}

void
upstream_doubt_list(struct upstream *u, enum list_kind kind)
{
	u->doubts[kind]++;
}

unsigned
fake_upstream_doubts(const struct upstream *u, enum list_kind kind)
{
	return u->doubts[kind];
}
