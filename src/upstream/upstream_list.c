/* SPDX-License-Identifier: MIT */
/*
 * Fetching an upstream's lists: all pages, one run at a time, again when they
 * change or expire, and no faster than a bounded rate.
 *
 * Owns: the list being filled; on completion it replaces the upstream's.
 * Driven by: readiness, list_changed, ttl.
 * Invariants: at most one run of a kind is under way and one asked for; a list that
 * fails to come again stays as it was.
 * Spec: server/utilities/pagination, server/utilities/caching.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"

#include <string.h>

#define RETRY_MS	5000 /* after a failure; doubles with each in a row */
#define RETRY_DOUBLINGS 6
#define DOUBT_MS	10000
#define TTL_FLOOR_MS	1000
#define TTL_CEIL_MS	(24u * 3600 * 1000)

static void lister_run(struct lister *l);

static bool
list_is_declared(const struct upstream *u, enum list_kind kind)
{
	switch (kind) {
	case LIST_TOOLS:
		return u->caps.tools;
	case LIST_PROMPTS:
		return u->caps.prompts;
	case LIST_RESOURCES:
	case LIST_TEMPLATES:
		return u->caps.resources;
	case LIST_MAX:
		break;
	}
	return false;
}

bool
upstream_lists_are_known(const struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (!u->lists[k].is_known)
			return false;
	return true;
}

bool
upstream_lists_are_idle(const struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct lister *l = &u->listers[k];

		if (l->running || l->again ||
		    (l->is_guess && l->fails > 0 && l->fails < RETRY_DOUBLINGS))
			return false;
	}
	return true;
}

void
upstream_lists_go_stale(struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++)
		u->lists[k].ttl_ms = -1;
}

bool
upstream_is_complete(const struct upstream *u)
{
	return u->state == UPSTREAM_ST_READY && upstream_lists_are_known(u);
}

/* Takes the filled list as the upstream's own. */
static void
lister_take(struct lister *l)
{
	struct upstream *u = l->u;
	struct ulist *now = &u->lists[l->kind];
	bool changed;

	if (u->kind->on_list != NULL)
		u->kind->on_list(u, l->kind, &l->next);
	changed = !now->is_known || now->hash != l->next.hash || now->n != l->next.n;

	l->is_guess = false;
	ulist_fini(now);
	*now = l->next;
	now->is_known = true;
	now->fetched_ms = clock_now_ms();
	ulist_init(&l->next, l->kind);
	u->cb->on_list(u->arg, u, l->kind, changed);
}

static void
lister_finish(struct lister *l)
{
	struct upstream *u = l->u;
	uint64_t ttl =
	    u->lists[l->kind].ttl_ms > 0 ? (uint64_t)u->lists[l->kind].ttl_ms : 0;

	l->running = false;
	strmap_free(l->seen);
	l->seen = NULL;
	if (l->again)
		timer_set(&l->timer, RELIST_PAUSE_MS);
	else if (ttl > 0 && !l->unsupported)
		timer_set(&l->timer, ttl < TTL_FLOOR_MS	 ? TTL_FLOOR_MS
				     : ttl > TTL_CEIL_MS ? TTL_CEIL_MS
							 : ttl);
	upstream_memory_touch(u);
	if (upstream_is_complete(u))
		upstream_settle(u);
	upstream_idle_arm(u);
	if (u->kind->on_listed != NULL)
		u->kind->on_listed(u, l->kind);
}

static void
lister_fail(struct lister *l, enum mv_err err, const char *detail)
{
	struct upstream *u = l->u;

	LOG_WARNING("upstream", "list failed", "upstream=%s list=%s reason=%s detail=%s",
	    UNAME(u), list_member(l->kind), mv_err_reason(err),
	    LOG_ESC(detail, strlen(detail)));
	ulist_fini(&l->next);
	if (!u->lists[l->kind].is_known) {
		lister_take(l); /* better an empty list than a fleet that waits */
		l->is_guess = true;
	}
	lister_finish(l);
	/* It may have been a bad moment, and nobody else would look again. */
	if (!timer_is_set(&l->timer))
		timer_set(&l->timer, (uint64_t)RETRY_MS << l->fails);
	if (l->fails < RETRY_DOUBLINGS)
		l->fails++;
}

static void
lister_ask_page(struct lister *l, struct jtext cursor)
{
	struct buf b;
	enum mv_err err;

	buf_init(&b, CAP_MESSAGE_BYTES);
	if (cursor.n) {
		buf_add_str(&b, "\"cursor\":");
		json_put(&b, cursor);
	}
	(void)buf_cstr(&b);
	err = b.err != MV_OK
		  ? b.err
		  : upstream_ask(l->u, &l->req, list_method(l->kind), buf_cstr(&b));
	buf_fini(&b);
	if (err != MV_OK)
		lister_fail(l, err, "");
}

static void
lister_on_refused(struct lister *l, const struct outcome *o)
{
	int64_t code = 0;

	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	if (code == -32601) {
		/* Declared but not there: not asked for again until it restarts. */
		l->unsupported = true;
		LOG_INFO("upstream", "list is not supported", "upstream=%s list=%s",
		    UNAME(l->u), list_member(l->kind));
		ulist_fini(&l->next);
		lister_take(l);
		lister_finish(l);
		return;
	}
	lister_fail(l, MV_PROTOCOL, LOG_ESC(o->body.p, o->body.n));
}

/* MV_DUPLICATE: it came before in this run. By hash: a cursor may be as long as a
 * message, and there may be a thousand. */
static enum mv_err
lister_note_cursor(struct lister *l, struct jtext cursor)
{
	uint64_t hash = hash_stable(HASH_STABLE_SEED, cursor.p, cursor.n);
	const char *key = (const char *)&hash;

	if (strmap_get(l->seen, key, sizeof(hash)) != NULL)
		return MV_DUPLICATE;
	return strmap_put(l->seen, key, sizeof(hash), l) ? MV_OK : MV_NOMEM;
}

static void
on_page(void *arg, const struct outcome *o)
{
	struct lister *l = arg;
	struct jtext cursor;
	unsigned skipped;
	enum mv_err err;

	if (o->kind == OUTCOME_FAILED) {
		/* When the process is gone the lists were stopped before. */
		if (l->running)
			lister_fail(l, o->err, o->detail ? o->detail : "");
		return;
	}
	if (o->kind != OUTCOME_RESULT) {
		lister_on_refused(l, o);
		return;
	}
	err = ulist_add_page(&l->next, o->body, &cursor, &skipped);
	if (skipped > 0)
		LOG_LIMITED(LOG_LV_WARNING, "upstream",
		    "entries left out: no usable name", "upstream=%s list=%s count=%u",
		    UNAME(l->u), list_member(l->kind), skipped);
	if (err == MV_OK && cursor.n)
		err = lister_note_cursor(l, cursor);
	/* A bound cuts a list short for good; a lack of memory passes. */
	if (err == MV_NOMEM || (err != MV_OK && l->next.n == 0)) {
		lister_fail(l, err, mv_err_text(err));
		return;
	}
	if (err != MV_OK) {
		LOG_LIMITED(LOG_LV_WARNING, "upstream", "list cut short",
		    "upstream=%s list=%s why=%s", UNAME(l->u), list_member(l->kind),
		    err == MV_DUPLICATE ? "cursor_repeats" : mv_err_reason(err));
		cursor.n = 0;
	}
	if (cursor.n) {
		lister_ask_page(l, cursor);
		return;
	}
	l->fails = 0;
	lister_take(l);
	lister_finish(l);
}

static const struct upstream_req_cb page_cb = {.on_done = on_page};

static void
lister_run(struct lister *l)
{
	timer_clear(&l->timer);
	if (l->unsupported || l->u->era == NULL || l->u->stopping)
		return;
	if (l->running) {
		l->again = true;
		return;
	}
	l->running = true;
	l->again = false;
	l->started_ms = clock_now_ms();
	l->seen = strmap_new();
	ulist_fini(&l->next);
	lister_ask_page(l, (struct jtext){NULL, 0});
}

static void
on_lister_timer(void *arg)
{
	lister_run(arg);
}

void
upstream_lists_init(struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &u->listers[k];

		l->u = u;
		l->kind = (enum list_kind)k;
		l->req.cb = &page_cb;
		l->req.arg = l;
		ulist_init(&l->next, l->kind);
		ulist_init(&u->lists[k], l->kind);
		timer_init(&l->timer, u->loop, on_lister_timer, l);
	}
}

void
upstream_lists_fini(struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		upstream_forget(&u->listers[k].req);
		ulist_fini(&u->listers[k].next);
		ulist_fini(&u->lists[k]);
		strmap_free(u->listers[k].seen);
		timer_fini(&u->listers[k].timer);
	}
}

void
upstream_lists_start(struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &u->listers[k];

		l->unsupported = false;
		if (list_is_declared(u, l->kind))
			lister_run(l);
		else if (!u->lists[k].is_known || u->lists[k].n > 0)
			lister_take(l);
	}
	upstream_memory_touch(u);
	if (upstream_is_complete(u))
		upstream_settle(u);
}

void
upstream_lists_stop(struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &u->listers[k];

		/* What the others brought was not told while this one ran. */
		if (l->running)
			upstream_memory_touch(u);
		timer_clear(&l->timer);
		upstream_forget(&l->req);
		l->running = l->again = false;
		l->fails = 0;
		strmap_free(l->seen);
		l->seen = NULL;
		ulist_fini(&l->next);
	}
}

void
upstream_list_changed(struct upstream *u, enum method m)
{
	u->n_tools_changes += m == METHOD_N_TOOLS_CHANGED;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &u->listers[k];
		uint64_t since = clock_now_ms() - l->started_ms;

		if (list_changed_method(l->kind) != m || !list_is_declared(u, l->kind))
			continue;
		/* The first goes at once; a storm is one run at a time with a pause. The
		 * timer may be set already, but for the ttl. */
		if (l->running || since >= RELIST_PAUSE_MS)
			lister_run(l);
		else
			timer_set(&l->timer, RELIST_PAUSE_MS - since);
	}
}

void
upstream_doubt_list(struct upstream *u, enum list_kind kind)
{
	struct lister *l = &u->listers[kind];

	/* An upstream may say so of a tool that it lists as often as it is called. */
	if (!l->running && list_is_declared(u, kind) &&
	    clock_now_ms() - l->started_ms >= DOUBT_MS)
		lister_run(l);
}

void
upstream_refresh_stale(struct upstream *u, enum list_kind kind)
{
	struct lister *l = &u->listers[kind];
	const struct ulist *now = &u->lists[kind];
	uint64_t age = clock_now_ms() - now->fetched_ms;

	/* Only an upstream that gives hints says that its lists go stale. */
	if (now->is_known && now->ttl_ms >= 0 && age > (uint64_t)now->ttl_ms &&
	    age >= TTL_FLOOR_MS && clock_now_ms() - l->started_ms >= TTL_FLOOR_MS &&
	    !l->running && list_is_declared(u, kind))
		lister_run(l);
}
