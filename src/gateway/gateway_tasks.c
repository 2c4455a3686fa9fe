/* SPDX-License-Identifier: MIT */
/*
 * Tasks that upstreams have made for clients.
 *
 *   made --> held --its owner has the result--> settled --+
 *              |                                          +--> gone
 *              +--its time is over, owner or process gone-+
 *
 * Owns: every task, and with a held one the wakefulness of its upstream.
 * Driven by: results and notices that tell of tasks, clients that ask for one, the end of
 * clients and of upstreams, a timer.
 * Invariants: the id that a client knows is the upstream's own behind a prefix that
 * nobody can guess, and means something to that client alone; a task is no more when the
 * process that made it has ended, since the next one may give the same id to another.
 * Spec: 2025-11-25 basic/utilities/tasks, Task Isolation and Access Control.
 */
#include "gateway_tasks_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mac.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define PREFIX_BYTES 12 /* 16 letters of base64url */
#define PREFIX_CHARS 16
/* One without a limit is forgotten when nothing was heard of it for so long. */
#define UNLIMITED_MS ((uint64_t)24 * 3600 * 1000)

/* ---- keys ---- */

static bool
key_put_id(struct buf *out, struct jtext id)
{
	buf_reset(out);
	return json_string_decode(id, out) && out->err == MV_OK && out->len > 0;
}

static bool
key_put_own(struct buf *out, const struct member *m, struct jtext own)
{
	buf_reset(out);
	buf_add(out, (const char *)&m->serial, sizeof(m->serial));
	return json_string_decode(own, out) && out->err == MV_OK;
}

static void
key_init(struct buf *b)
{
	buf_init(b, CAP_TASK_ID_BYTES * 2);
}

/* ---- life ---- */

bool
task_is_alive(const struct task *t)
{
	const struct member *m = t->m;

	return (m->state == MEMBER_ST_ACTIVE || m->state == MEMBER_ST_DRAINING) &&
	       upstream_stats(m->u).restarts == t->restarts;
}

void
task_settle(struct task *t)
{
	if (!t->is_held)
		return;
	t->is_held = false;
	member_let_go(t->m);
}

static void
task_free(struct task *t)
{
	struct tasks *all = t->m->g->tasks;
	struct buf key;

	task_settle(t);
	key_init(&key);
	if (key_put_id(&key, t->id))
		(void)strmap_del(all->by_id, key.data, key.len);
	if (key_put_own(&key, t->m, t->own))
		(void)strmap_del(all->by_own, key.data, key.len);
	buf_fini(&key);
	*t->prev = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	else
		all->tail = t->prev;
	all->n--;
	t->o->n_tasks--;
	mem_free(t);
}

static void
tasks_arm(struct tasks *all, uint64_t due)
{
	uint64_t now = clock_now_ms();

	if (due > now + UNLIMITED_MS)
		due = now + UNLIMITED_MS; /* it looks again then */
	if (timer_is_set(&all->timer) && all->timer_due <= due)
		return;
	all->timer_due = due;
	timer_set(&all->timer, due > now ? due - now : 0);
}

static void
on_timer(void *arg)
{
	struct tasks *all = arg;
	uint64_t now = clock_now_ms(), first = UINT64_MAX;
	struct task *next;

	for (struct task *t = all->first; t != NULL; t = next) {
		next = t->next;
		if (t->due_ms <= now || !task_is_alive(t))
			task_free(t);
		else if (t->due_ms < first)
			first = t->due_ms;
	}
	if (first != UINT64_MAX)
		tasks_arm(all, first);
}

static struct tasks *
tasks_of(struct gateway *g)
{
	struct tasks *all = g->tasks;

	if (all == NULL) {
		all = g->tasks = mem_xcalloc(1, sizeof(*all));
		all->g = g;
		all->tail = &all->first;
		all->by_id = strmap_new();
		all->by_own = strmap_new();
		timer_init(&all->timer, g->loop, on_timer, all);
	}
	return all;
}

void
tasks_fini(struct gateway *g)
{
	struct tasks *all = g->tasks;

	if (all == NULL)
		return;
	while (all->first != NULL)
		task_free(all->first);
	timer_fini(&all->timer);
	strmap_free(all->by_id);
	strmap_free(all->by_own);
	mem_free(all);
	g->tasks = NULL;
}

/* Those of o, or of m; either may be NULL. */
static void
tasks_drop(struct gateway *g, const struct gateway_observer *o, const struct member *m)
{
	struct task *next;

	for (struct task *t = g->tasks != NULL ? g->tasks->first : NULL; t != NULL;
	     t = next) {
		next = t->next;
		if (m != NULL ? t->m == m : o != NULL && t->o == o)
			task_free(t);
	}
}

void
tasks_leave(struct gateway *g, const struct gateway_observer *o)
{
	tasks_drop(g, o, NULL);
}

void
tasks_forget(const struct member *m)
{
	tasks_drop(m->g, NULL, m);
}

/* ---- making ---- */

/* Takes out the oldest one that its owner is done with; o NULL: whoever's. */
static bool
tasks_evict(struct tasks *all, const struct gateway_observer *o)
{
	struct task *t = all->first;

	while (t != NULL && (t->is_held || (o != NULL && t->o != o)))
		t = t->next;
	if (t == NULL)
		return false;
	task_free(t);
	return true;
}

bool
tasks_have_room(struct gateway *g, const struct gateway_observer *o)
{
	struct tasks *all = tasks_of(g);

	if (o->n_tasks >= CAP_CLIENT_TASKS && !tasks_evict(all, o))
		return false;
	return all->n < CAP_TASKS || tasks_evict(all, NULL);
}

static struct jtext
bytes_add(char **at, struct jtext t)
{
	struct jtext copy = {*at, t.n};

	if (t.n > 0)
		memcpy(*at, t.p, t.n);
	*at += t.n;
	return copy;
}

/* In no table yet. NULL: no memory. */
static struct task *
task_new(const struct task_owner *who, struct member *m, const struct task_made *made,
    struct jtext own)
{
	struct task *t = mem_try(
	    sizeof(*t) + made->token.n + who->principal.n + 2 * own.n + PREFIX_CHARS + 1);
	unsigned char random[PREFIX_BYTES];
	struct buf prefix;
	char *at;

	if (t == NULL)
		return NULL;
	*t = (struct task){.o = who->o,
	    .m = m,
	    .kind = who->kind,
	    .restarts = upstream_stats(m->u).restarts,
	    .made_ms = clock_now_ms(),
	    .request = made->token.n > 0 ? made->request : 0};
	at = t->bytes;
	t->token = bytes_add(&at, made->token);
	t->principal = bytes_add(&at, who->principal);
	t->own = bytes_add(&at, own);
	clock_random_bytes(random, sizeof(random));
	buf_init(&prefix, 2 * PREFIX_CHARS);
	buf_add_char(&prefix, '"');
	base64url_put(&prefix, random, sizeof(random));
	buf_add_char(&prefix, '.');
	t->id = bytes_add(&at, (struct jtext){prefix.data, prefix.len});
	(void)bytes_add(&at, (struct jtext){own.p + 1, own.n - 1});
	t->id.n += own.n - 1;
	if (prefix.err != MV_OK) {
		mem_free(t);
		t = NULL;
	}
	buf_fini(&prefix);
	return t;
}

/* Into the tables. False: no memory, and t is in none. */
static bool
task_enter(struct tasks *all, struct task *t)
{
	struct buf key;
	bool done = false;

	key_init(&key);
	if (key_put_id(&key, t->id) && strmap_put(all->by_id, key.data, key.len, t)) {
		done = key_put_own(&key, t->m, t->own) &&
		       strmap_put(all->by_own, key.data, key.len, t);
		if (!done && key_put_id(&key, t->id))
			(void)strmap_del(all->by_id, key.data, key.len);
	}
	buf_fini(&key);
	if (!done)
		return false;
	t->serial = ++all->last_serial;
	t->prev = all->tail;
	*all->tail = t;
	all->tail = &t->next;
	all->n++;
	t->o->n_tasks++;
	t->is_held = true;
	member_keep(t->m);
	return true;
}

struct task *
task_of_member(const struct member *m, struct jtext own)
{
	const struct tasks *all = m->g->tasks;
	struct task *t = NULL;
	struct buf key;

	if (all == NULL || jtext_type(own) != '"')
		return NULL;
	key_init(&key);
	if (key_put_own(&key, m, own))
		t = strmap_get(all->by_own, key.data, key.len);
	buf_fini(&key);
	if (t != NULL && !task_is_alive(t)) {
		task_free(t);
		t = NULL;
	}
	return t;
}

static bool
task_is_of(const struct task *t, const struct task_owner *who)
{
	return t->o == who->o && t->kind == who->kind &&
	       t->principal.n == who->principal.n &&
	       (t->principal.n == 0 ||
		   memcmp(t->principal.p, who->principal.p, t->principal.n) == 0);
}

enum mv_err
task_note(struct gateway *g, const struct task_owner *who, struct upstream *u,
    const struct task_made *made, struct task **out)
{
	struct jtext own = json_member(made->body, "taskId");
	struct member *m = gateway_member_of(g, u);
	struct task *t;

	if (m == NULL || jtext_type(own) != '"')
		return MV_PROTOCOL;
	if (own.n > CAP_TASK_ID_BYTES)
		return MV_TOO_LONG;
	t = task_of_member(m, own);
	if (t != NULL && !task_is_of(t, who))
		return MV_PROTOCOL;
	if (t == NULL) {
		if (!tasks_have_room(g, who->o))
			return MV_BUSY;
		t = task_new(who, m, made, own);
		if (t == NULL)
			return MV_NOMEM;
		if (!task_enter(g->tasks, t)) {
			mem_free(t);
			return MV_NOMEM;
		}
		LOG_DEBUG("gateway", "task", "upstream=%s id=%s",
		    LOG_ESC(upstream_name(u), strlen(upstream_name(u))),
		    LOG_ESC(t->id.p, t->id.n));
	}
	task_heard(t, made->body);
	*out = t;
	return MV_OK;
}

void
task_heard(struct task *t, struct jtext body)
{
	bool core = t->kind == TASKS_CORE;
	struct jtext status = json_member(body, "status");
	int64_t ttl;

	t->due_ms = clock_now_ms() + UNLIMITED_MS;
	if (json_int(json_member(body, core ? "ttl" : "ttlMs"), &ttl))
		t->due_ms = t->made_ms + (ttl < 0 ? 0 : (uint64_t)ttl);
	tasks_arm(t->m->g->tasks, t->due_ms);
	/* One of the core that is completed or has failed still has its result. */
	if (json_string_is(status, "cancelled") ||
	    (!core && (json_string_is(status, "completed") ||
			  json_string_is(status, "failed"))))
		task_settle(t);
}

/* ---- finding ---- */

struct task *
task_find(struct gateway *g, const struct task_owner *who, struct jtext id)
{
	struct task *t = NULL;
	struct buf key;

	if (g->tasks == NULL)
		return NULL;
	key_init(&key);
	if (key_put_id(&key, id))
		t = strmap_get(g->tasks->by_id, key.data, key.len);
	buf_fini(&key);
	if (t != NULL && !task_is_alive(t)) {
		task_free(t);
		t = NULL;
	}
	return t != NULL && task_is_of(t, who) ? t : NULL;
}

struct task *
task_find_own(struct gateway *g, const struct gateway_observer *o,
    const struct upstream *u, struct jtext own)
{
	struct member *m = g->tasks != NULL ? gateway_member_of(g, u) : NULL;
	struct task *t = m != NULL ? task_of_member(m, own) : NULL;

	return t != NULL && t->o == o ? t : NULL;
}

struct task *
task_get(const struct gateway *g, uint64_t serial)
{
	struct task *t = g->tasks != NULL ? g->tasks->first : NULL;

	while (t != NULL && t->serial != serial)
		t = t->next;
	return t;
}

struct task *
task_next(const struct gateway *g, const struct task_owner *who, uint64_t serial)
{
	struct task *t = g->tasks != NULL ? g->tasks->first : NULL;

	while (t != NULL &&
	       (t->serial <= serial || !task_is_of(t, who) || !task_is_alive(t)))
		t = t->next;
	return t;
}

uint64_t
task_serial(const struct task *t)
{
	return t->serial;
}

uint64_t
tasks_last_serial(const struct gateway *g)
{
	return g->tasks != NULL ? g->tasks->last_serial : 0;
}

struct upstream *
task_upstream(const struct task *t)
{
	return t->m->u;
}

struct jtext
task_id(const struct task *t)
{
	return t->id;
}

struct jtext
task_own_id(const struct task *t)
{
	return t->own;
}
