/* SPDX-License-Identifier: MIT */
/*
 * What a fake upstream is, was told and says.
 *
 * Owns: copies of all that it says, for the time of one callback.
 * Driven by: the test.
 * Invariants: a message is scanned as a link would scan it.
 */
#include "fake/fake_upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- what it is ---- */

void
fake_upstream_list(struct upstream *u, enum list_kind kind, const char *result)
{
	struct ulist *l = &u->lists[kind], before = *l;
	struct jtext text = {result, strlen(result)}, cursor;
	struct json_msg json;
	unsigned skipped;
	bool changed;

	ck_assert_int_eq(json_scan(&json, text.p, text.n, false), MV_OK);
	ulist_init(l, kind);
	mem_fail_hold(true);
	ck_assert_int_eq(ulist_add_page(l, text, &cursor, &skipped), MV_OK);
	mem_fail_hold(false);
	l->is_known = true;
	l->fetched_ms = clock_now_ms();
	changed = !before.is_known || before.hash != l->hash || before.n != l->n;
	ulist_fini(&before);
	u->cb->on_list(u->arg, u, kind, changed);
}

/* ---- what it would remember: a text of the fake's own ---- */

#define FAKE_MEMORY "fake memory\n"

static void
fake_put_part(struct buf *out, const void *p, size_t n)
{
	uint32_t len = (uint32_t)n;

	buf_add(out, &len, sizeof(len));
	buf_add(out, p, n);
}

static bool
fake_take_part(struct jtext *in, struct jtext *part)
{
	uint32_t len;

	if (in->n < sizeof(len))
		return false;
	memcpy(&len, in->p, sizeof(len));
	if (in->n - sizeof(len) < len)
		return false;
	*part = (struct jtext){in->p + sizeof(len), len};
	*in = (struct jtext){part->p + len, in->n - sizeof(len) - len};
	return true;
}

void
upstream_put_memory(const struct upstream *u, struct buf *out)
{
	struct buf b;

	if (!u->lists[LIST_TOOLS].is_known)
		return;
	buf_add_str(out, FAKE_MEMORY);
	fake_put_part(out, &u->caps, sizeof(u->caps));
	fake_put_part(out, u->instructions ? u->instructions : "",
	    u->instructions ? strlen(u->instructions) : 0);
	buf_init(&b, CAP_MESSAGE_BYTES);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *l = &u->lists[k];

		buf_reset(&b);
		buf_addf(&b, "{\"%s\":[", list_member((enum list_kind)k));
		for (uint32_t i = 0; i < l->n; i++) {
			buf_add_str(&b, i > 0 ? "," : "");
			json_put(&b, ulist_def(l, i));
		}
		buf_add_str(&b, "]}");
		fake_put_part(out, b.data, b.len);
	}
	buf_fini(&b);
}

enum mv_err
upstream_take_memory(struct upstream *u, const char *p, size_t n)
{
	struct jtext in = {p, n}, part[LIST_MAX + 2], cursor;
	size_t head = strlen(FAKE_MEMORY);
	unsigned skipped;

	ck_assert_uint_eq(u->starts, 0);
	if (n < head || memcmp(p, FAKE_MEMORY, head) != 0)
		return MV_PROTOCOL;
	in = (struct jtext){p + head, n - head};
	for (size_t i = 0; i < LIST_MAX + 2; i++)
		if (!fake_take_part(&in, &part[i]))
			return MV_PROTOCOL;
	memcpy(&u->caps, part[0].p, sizeof(u->caps));
	mem_free(u->instructions);
	u->instructions = part[1].n ? mem_xstrndup(part[1].p, part[1].n) : NULL;
	mem_fail_hold(true);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct ulist *l = &u->lists[k];

		ulist_fini(l);
		ulist_init(l, (enum list_kind)k);
		ck_assert_int_eq(
		    ulist_add_page(l, part[k + 2], &cursor, &skipped), MV_OK);
		l->is_known = true;
		l->ttl_ms = 0;
	}
	mem_fail_hold(false);
	u->settled = true;
	return MV_OK;
}

void
fake_upstream_unlist(struct upstream *u, enum list_kind kind)
{
	ulist_fini(&u->lists[kind]);
}

void
fake_upstream_set_caps(struct upstream *u, struct upstream_caps caps)
{
	u->caps = caps;
}

void
fake_upstream_set_instructions(struct upstream *u, const char *text)
{
	mem_free(u->instructions);
	u->instructions = mem_xstrdup(text);
}

void
fake_upstream_set_state(struct upstream *u, enum upstream_state st, const char *reason)
{
	u->state = st;
	(void)snprintf(u->reason, sizeof(u->reason), "%s", reason);
	if (st == UPSTREAM_ST_DOWN || st == UPSTREAM_ST_PARKED)
		fake_fail_all(u, MV_DIED);
	while (st == UPSTREAM_ST_READY && u->held != NULL) {
		struct upstream_req *r = u->held;
		struct upstream_call_copy *h = r->held;

		r->held = NULL;
		fake_forget(r);
		fake_transmit(u, r, &h->call);
		upstream_call_free(h);
	}
}

void
fake_upstream_settle(struct upstream *u)
{
	if (u->settled)
		return;
	u->settled = true;
	u->cb->on_settled(u->arg, u);
}

void
fake_upstream_memory(struct upstream *u)
{
	if (u->cb->on_memory != NULL)
		u->cb->on_memory(u->arg, u);
}

struct upstream_stats *
fake_upstream_stats(struct upstream *u)
{
	return &u->stats;
}

void
fake_upstream_refuse(struct upstream *u, enum mv_err err)
{
	u->refusal = err;
}

void
fake_upstream_stop_slowly(struct upstream *u, bool slowly)
{
	u->stop_slowly = slowly;
}

void
fake_upstream_stopped(struct upstream *u)
{
	u->cb->on_stopped(u->arg, u);
}

/* ---- what it was told ---- */

size_t
fake_upstream_n_sent(const struct upstream *u)
{
	return u->n_sent;
}

const struct fake_sent *
fake_upstream_sent(const struct upstream *u, size_t i)
{
	ck_assert_uint_lt(i, u->n_sent);
	return &u->sent[i];
}

const struct fake_sent *
fake_upstream_last(const struct upstream *u)
{
	ck_assert_uint_gt(u->n_sent, 0);
	return &u->sent[u->n_sent - 1];
}

enum mcp_level
fake_upstream_level(const struct upstream *u)
{
	return u->level;
}

unsigned
fake_upstream_refreshes(const struct upstream *u, enum list_kind kind)
{
	return u->refreshes[kind];
}

unsigned
fake_upstream_starts(const struct upstream *u)
{
	return u->starts;
}

unsigned
fake_upstream_wakes(const struct upstream *u)
{
	return u->wakes;
}

unsigned
fake_upstream_restarts(const struct upstream *u)
{
	return u->restarts;
}

unsigned
fake_upstream_confs(const struct upstream *u)
{
	return u->confs;
}

unsigned
fake_upstream_holds(const struct upstream *u)
{
	return u->holds;
}

unsigned
fake_upstream_stops(const struct upstream *u)
{
	return u->stops;
}

struct child_ladder
fake_upstream_ladder(const struct upstream *u)
{
	return u->ladder;
}

size_t
fake_upstream_n_watches(const struct upstream *u)
{
	size_t n = 0;

	for (const struct upstream_watch *w = u->watches; w != NULL; w = w->next)
		n++;
	return n;
}

unsigned
fake_upstream_watched(const struct upstream *u)
{
	return u->watched;
}

/* ---- what it says ---- */

/* One message out of pieces, scanned into json; text is the caller's to free. */
static struct link_msg
fake_say(struct json_msg *json, char **text, const char *head, uint64_t id,
    const char *middle, const char *body)
{
	struct link_msg m = {.json = json};
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, head);
	if (id != 0)
		buf_add_u64(&b, id);
	buf_add_str(&b, middle);
	buf_add_str(&b, body);
	buf_add_char(&b, '}');
	*text = buf_take(&b, &m.len);
	mem_fail_hold(false);
	m.base = *text;
	ck_assert_msg(json_scan(json, m.base, m.len, true) == MV_OK, "%s", *text);
	m.env = envelope_read(m.base, json);
	ck_assert_msg(m.env.kind != ENVELOPE_INVALID, "%s", *text);
	return m;
}

static struct upstream_req *
fake_flying(const struct upstream *u, size_t i)
{
	ck_assert_uint_lt(i, u->n_sent);
	ck_assert_ptr_nonnull(u->sent[i].r);
	return u->sent[i].r;
}

static void
fake_reply(struct upstream *u, size_t i, enum json_slot slot, const char *body)
{
	struct upstream_req *r = fake_flying(u, i);
	struct json_msg *json = mem_xalloc(sizeof(*json));
	char *text;
	struct link_msg m = fake_say(json, &text, "{\"jsonrpc\":\"2.0\",\"id\":", r->id,
	    slot == JSON_RESULT ? ",\"result\":" : ",\"error\":", body);
	struct outcome o = {
	    .base = m.base, .json = m.json, .body = jtext_of(m.base, m.json->slot[slot])};

	if (slot == JSON_ERROR)
		o.kind = OUTCOME_ERROR;
	else if (json_string_is(
		     jtext_of(m.base, json->slot[JSON_RESULT_TYPE]), "input_required"))
		o.kind = OUTCOME_INPUT_REQUIRED;
	fake_end(r, &o);
	mem_free(text);
	mem_free(json);
}

void
fake_upstream_result(struct upstream *u, size_t i, const char *body)
{
	fake_reply(u, i, JSON_RESULT, body);
}

void
fake_upstream_error(struct upstream *u, size_t i, const char *body)
{
	fake_reply(u, i, JSON_ERROR, body);
}

void
fake_upstream_fail(struct upstream *u, size_t i, enum mv_err err, const char *detail)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err, .detail = detail};

	if (err == MV_TIMEOUT)
		fake_note_withdrawn(u, fake_flying(u, i));
	fake_end(fake_flying(u, i), &o);
}

void
fake_upstream_progress(struct upstream *u, size_t i, const char *members)
{
	struct upstream_req *r = fake_flying(u, i);
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct buf b;
	char *text;
	struct link_msg m;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, members);
	buf_add_char(&b, '}');
	m = fake_say(json, &text,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
	    "{\"progressToken\":",
	    r->id, "", buf_cstr(&b));
	mem_fail_hold(false);
	r->cb->on_progress(r->arg, &m);
	buf_fini(&b);
	mem_free(text);
	mem_free(json);
}

static void
fake_notify(struct upstream *u, enum method method, const char *params,
    void (*fn)(void *, struct upstream *, const struct link_msg *))
{
	struct json_msg *json = mem_xalloc(sizeof(*json));
	char head[128], *text;
	struct link_msg m;

	(void)snprintf(head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"",
	    method_name(method));
	m = fake_say(json, &text, head, 0, ",\"params\":", params);
	fn(u->arg, u, &m);
	mem_free(text);
	mem_free(json);
}

void
fake_upstream_task(struct upstream *u, enum method m, const char *params)
{
	fake_notify(u, m, params, u->cb->on_task);
}

void
fake_upstream_log(struct upstream *u, const char *params)
{
	fake_notify(u, METHOD_N_MESSAGE, params, u->cb->on_log);
}

void
fake_upstream_updated(struct upstream *u, const char *params)
{
	fake_notify(u, METHOD_N_UPDATED, params, u->cb->on_updated);
}

void
fake_upstream_set_watching(struct upstream *u, enum fake_watching how)
{
	u->watching = how;
}

static void
fake_answer_watches(struct upstream *u, const struct outcome *o)
{
	struct upstream_watch *next;

	for (struct upstream_watch *w = u->watches; w != NULL; w = next) {
		next = w->next;
		if (w->settled)
			continue;
		w->settled = true;
		w->on_settled(w->arg, o);
	}
}

void
fake_upstream_settle_watch(struct upstream *u, const char *error)
{
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct outcome o = {.kind = OUTCOME_ERROR};
	struct link_msg m;
	char *text;

	if (error != NULL) {
		m = fake_say(
		    json, &text, "{\"jsonrpc\":\"2.0\",\"id\":", 1, ",\"error\":", error);
		o.base = m.base;
		o.json = m.json;
		o.body = jtext_of(m.base, json->slot[JSON_ERROR]);
		fake_answer_watches(u, &o);
		mem_free(text);
	} else {
		fake_answer_watches(u, NULL);
	}
	mem_free(json);
}

void
fake_upstream_fail_watch(struct upstream *u, enum mv_err err)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err};

	fake_answer_watches(u, &o);
}
