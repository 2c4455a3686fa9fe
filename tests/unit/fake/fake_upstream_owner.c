/* SPDX-License-Identifier: MIT */
/*
 * The owner of one upstream, and its server.
 *
 * Owns: the upstream, its conf and its loop.
 * Driven by: the test and the upstream's callbacks.
 * Invariants: settled and stopped come once; a call ends once, and never before its
 * send has returned.
 */
#include "fake/fake_upstream_owner.h"

#include "upstream_ops_priv.h"

#include "mcpvisor/mem.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Kinds that make their tools themselves: of suites of their own, which have no fakes. */
const struct kind_ops kind_graphql, kind_exec, kind_shell;

static const struct child_ladder hurry = {
    .term_ms = 200, .kill_ms = 500, .drain_ms = 100};

static void
on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	ck_assert(upstream_list(u, kind)->is_known);
	o->lists[kind]++;
	o->changes[kind] += changed;
}

static void
on_settled(void *arg, struct upstream *u)
{
	struct uowner *o = arg;

	ck_assert(upstream_is_settled(u));
	ck_assert_uint_eq(o->settled, 0);
	o->settled++;
	o->settled_in = upstream_state(u);
}

static void
uowner_keep(struct uowner *o, const struct link_msg *m)
{
	(void)snprintf(o->last, sizeof(o->last), "%.*s", (int)m->len, m->base);
}

static void
on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	o->logs++;
	uowner_keep(o, m);
}

static void
on_updated(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	o->updates++;
	uowner_keep(o, m);
}

static void
on_stopped(void *arg, struct upstream *u)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	ck_assert_uint_eq(o->stopped, 0);
	o->stopped++;
}

static void
on_memory(void *arg, struct upstream *u)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	o->memories++;
}

static void
on_idle(void *arg, struct upstream *u)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	ck_assert_uint_eq(upstream_in_flight(u), 0);
	o->idles++;
}

static void
on_withdrawn(void *arg, struct question *q)
{
	struct uowner *o = arg;

	o->withdrawn++;
	if (o->question == q)
		o->question = NULL;
}

const struct question_cb uowner_question_cb = {.on_withdrawn = on_withdrawn};

static void
on_question(void *arg, struct upstream *u, struct upstream_req *by, struct question *q)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	ck_assert_ptr_eq(q->u, u);
	o->asked++;
	o->asked_by = by;
	o->question = q;
	question_take(q, &uowner_question_cb, o, by);
}

static void
on_elicited(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct uowner *o = arg;

	ck_assert_ptr_eq(u, o->u);
	o->elicited++;
	uowner_keep(o, m);
}

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	struct uowner *o = arg;

	(void)level;
	if (len + 2 > sizeof(o->log) - o->log_len)
		return;
	memcpy(o->log + o->log_len, line, len);
	o->log_len += len;
	o->log[o->log_len++] = '\n';
	o->log[o->log_len] = '\0';
}

static const struct upstream_cb owner_cb = {
    .on_list = on_list,
    .on_settled = on_settled,
    .on_log = on_log,
    .on_updated = on_updated,
    .on_stopped = on_stopped,
    .on_memory = on_memory,
    .on_idle = on_idle,
    .on_question = on_question,
    .on_elicited = on_elicited,
};

struct uowner *
uowner_new(enum era_pin pin)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");

	conf->era = pin;
	return uowner_new_of(conf);
}

struct uowner *
uowner_new_of(struct upstream_conf *conf)
{
	struct uowner *o = mem_xcalloc(1, sizeof(*o));

	fake_link_forget_all();
	o->links = fake_link_live();
	o->https = fake_http_live();
	log_set_sink(on_line, o);
	o->loop = loop_new();
	o->conf = conf;
	o->u = upstream_new(&(struct upstream_env){.loop = o->loop, .curl = fake_curl()},
	    o->conf, &owner_cb, o);
	upstream_set_client_caps(o->u, 0);
	return o;
}

/* What keeps it from being stopped goes. */
static void
uowner_let_go(struct uowner *o)
{
	struct http_link *k = fake_http_last();

	if (o->u->child != NULL) {
		fake_child_die(o->u->child, "exited with status 0");
		return;
	}
	if (k != NULL && fake_http_is_ending(k))
		fake_http_ended(k);
	fake_loop_settle(o->loop);
}

void
uowner_free(struct uowner *o)
{
	if (o->stopped == 0)
		upstream_stop(o->u, &hurry);
	if (o->stopped == 0)
		uowner_let_go(o);
	ck_assert_uint_eq(o->stopped, 1);
	ck_assert_uint_eq(upstream_in_flight(o->u), 0);
	fake_loop_settle(o->loop);
	ck_assert_uint_eq(fake_loop_timers(o->loop), 0);
	upstream_free(o->u);
	ck_assert_uint_eq(fake_link_live(), o->links);
	ck_assert_uint_eq(fake_http_live(), o->https);
	loop_free(o->loop);
	upstream_conf_free(o->conf);
	fake_link_forget_all();
	fake_http_forget_all();
	log_set_sink(NULL, NULL);
	mem_free(o);
}

void
uowner_start(struct uowner *o)
{
	upstream_start(o->u);
	ck_assert_ptr_nonnull(o->u->link);
}

static void
uowner_greet(struct uowner *o, const char *method, const char *result)
{
	uowner_answer(o, uowner_heard_request(method), result);
	ck_assert(uowner_is_ready(o));
}

void
uowner_be_legacy(struct uowner *o, const char *revision, const char *caps)
{
	char result[1024];

	(void)snprintf(result, sizeof(result),
	    "{\"protocolVersion\":\"%s\",\"capabilities\":%s}", revision, caps);
	o->conf->era = ERA_LEGACY;
	o->u->known_era = ERA_LEGACY;
	if (o->u->link == NULL)
		uowner_start(o);
	uowner_greet(o, "initialize", result);
	uowner_heard(INITIALIZED);
}

void
uowner_be_modern(struct uowner *o, const char *caps)
{
	char result[1024];

	(void)snprintf(result, sizeof(result),
	    "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":%s}", caps);
	if (o->u->link == NULL)
		uowner_start(o);
	uowner_greet(o, "server/discover", result);
}

void
uowner_die(struct uowner *o)
{
	fake_child_die(o->u->child, "exited with status 1");
}

void
uowner_reborn(struct uowner *o)
{
	uowner_die(o);
	fake_child_pause_over(o->u->child);
	ck_assert_ptr_nonnull(o->u->link);
}

void
uowner_say(struct uowner *o, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = mem_xalloc((size_t)n + 1);
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	fake_link_say(o->u->link, text);
	mem_free(text);
}

void
uowner_answer(struct uowner *o, unsigned long long id, const char *result)
{
	uowner_say(o, RESULT, id, result);
}

void
uowner_refuse(struct uowner *o, unsigned long long id, const char *code)
{
	uowner_say(o, REFUSED, id, code, "");
}

void
uowner_heard(const char *text)
{
	const char *got = fake_link_take();

	ck_assert_msg(got != NULL, "nothing was sent, not %s", text);
	ck_assert_str_eq(got, text);
}

unsigned long long
uowner_heard_request(const char *method)
{
	const char *got = fake_link_take();
	struct json_msg json;
	struct link_msg m;
	int64_t id = 0;

	ck_assert_msg(got != NULL, "nothing was sent, no %s", method);
	ck_assert_int_eq(link_scan(got, strlen(got), &json, &m), MV_OK);
	ck_assert_msg(json_string_is(m.env.method, method), "%s: %s", method, got);
	ck_assert(m.env.kind == ENVELOPE_REQUEST && json_int(m.env.id, &id));
	return (unsigned long long)id;
}

void
uowner_heard_nothing(void)
{
	const char *got = fake_link_take();

	ck_assert_msg(got == NULL, "was sent: %s", got);
}

bool
uowner_is_ready(const struct uowner *o)
{
	return upstream_state(o->u) == UPSTREAM_ST_READY;
}

bool
uowner_log_has(const struct uowner *o, const char *text)
{
	return strstr(o->log, text) != NULL;
}

void
uowner_check(const struct uowner *o)
{
	const struct upstream *u = o->u;
	enum upstream_state st = upstream_state(u);
	bool greeting = st == UPSTREAM_ST_PROBE || st == UPSTREAM_ST_BOTH ||
			st == UPSTREAM_ST_INIT || st == UPSTREAM_ST_LATE ||
			st == UPSTREAM_ST_AGREED;
	bool going = child_state(u->child) == CHILD_ST_STOPPING;

	if (st == UPSTREAM_ST_ASLEEP || st == UPSTREAM_ST_WAKING)
		ck_assert_int_eq(u->link != NULL, going);
	else
		ck_assert_int_eq(u->link != NULL, greeting || st == UPSTREAM_ST_READY);
	ck_assert(st != UPSTREAM_ST_WAKING || going);
	ck_assert(!timer_is_set(&u->idle_timer) || st == UPSTREAM_ST_READY);
	ck_assert(u->held == NULL || greeting || st == UPSTREAM_ST_WAKING);
	ck_assert_int_eq(u->era != NULL, st == UPSTREAM_ST_READY);
	ck_assert_int_eq(timer_is_set(&u->probe_timer),
	    ((st == UPSTREAM_ST_PROBE && u->known_era != ERA_MODERN) ||
		st == UPSTREAM_ST_AGREED) &&
		!going);
	ck_assert_int_eq(timer_is_set(&u->start_timer), greeting && !going);
	ck_assert_int_eq(
	    u->discover.u != NULL, (st == UPSTREAM_ST_PROBE || st == UPSTREAM_ST_BOTH ||
				       st == UPSTREAM_ST_LATE) &&
				       !going);
	ck_assert_int_eq(
	    u->init.u != NULL, (st == UPSTREAM_ST_BOTH || st == UPSTREAM_ST_INIT ||
				   st == UPSTREAM_ST_AGREED) &&
				   !going);
	ck_assert(u->link == NULL || fake_link_is_closed(u->link) == going);
	ck_assert_int_eq(upstream_is_settled(u), o->settled == 1);
	if (st == UPSTREAM_ST_READY && !going)
		ck_assert_str_eq(upstream_reason(u), "");
	if (st == UPSTREAM_ST_PARKED)
		ck_assert_str_ne(upstream_reason(u), "");
}

/* ---- calls ---- */

static void
on_progress(void *arg, const struct link_msg *m)
{
	struct ucall *c = arg;

	ck_assert_uint_eq(c->done, 0);
	c->progressed++;
	uowner_keep(c->o, m);
}

static void
on_done(void *arg, const struct outcome *out)
{
	struct ucall *c = arg;

	ck_assert_ptr_null(c->req.u);
	c->done++;
	c->order = ++c->o->dones;
	c->kind = out->kind;
	c->err = out->err;
	(void)snprintf(c->detail, sizeof(c->detail), "%s",
	    out->kind == OUTCOME_FAILED && out->detail != NULL ? out->detail : "");
	if (out->kind == OUTCOME_FAILED)
		ck_assert_uint_eq(out->body.n, 0);
	else
		(void)snprintf(
		    c->body, sizeof(c->body), "%.*s", (int)out->body.n, out->body.p);
	if (c->then != NULL)
		c->then->err = ucall_try(c->o, c->then, c->then_text, NULL);
}

static void
on_call_log(void *arg, const struct link_msg *m)
{
	struct ucall *c = arg;

	ck_assert_uint_eq(c->done, 0);
	c->logged++;
	uowner_keep(c->o, m);
}

static const struct upstream_req_cb call_cb = {
    .on_progress = on_progress, .on_log = on_call_log, .on_done = on_done};

static struct json_edit
ucall_edit(const struct json_msg *json, const char *put)
{
	struct json_span at = json->slot[JSON_P_ARGUMENTS];

	if (at.len == 0) {
		at.off = json->slot[JSON_P_NAME].off + json->slot[JSON_P_NAME].len;
		ck_assert_int_eq(put[0], ',');
	}
	return (struct json_edit){at.off, at.len, put, strlen(put)};
}

enum mv_err
ucall_try(struct uowner *o, struct ucall *c, const char *text, const char *target)
{
	size_t len = strlen(text);
	char *copy = mem_xalloc(len);
	char *info = mem_xstrdup(CLIENT_INFO);
	char *name = target != NULL ? mem_xstrdup(target) : NULL;
	char *arguments = c->arguments != NULL ? mem_xstrdup(c->arguments) : NULL;
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct upstream_call call = {.base = copy,
	    .len = len,
	    .json = json,
	    .client_info = {info, strlen(info)},
	    .level = MCP_LV_MAX};
	unsigned done = c->done;
	enum mv_err err;

	memcpy(copy, text, len);
	ck_assert_int_eq(json_scan(json, copy, len, false), MV_OK);
	call.method = method_parse(jtext_of(copy, json->slot[JSON_METHOD]));
	if (target != NULL)
		call.target = (struct json_edit){json->slot[JSON_P_NAME].off,
		    json->slot[JSON_P_NAME].len, name, strlen(name)};
	if (arguments != NULL)
		call.arguments = ucall_edit(json, arguments);
	call.level = mcp_level_parse(jtext_of(copy, json->slot[JSON_M_LOG_LEVEL]));
	call.has_state = c->has_state;
	c->o = o;
	c->req.cb = &call_cb;
	c->req.arg = c;
	err = upstream_send(o->u, &c->req, &call);
	ck_assert_uint_eq(c->done, done);
	ck_assert_int_eq(c->req.u != NULL, err == MV_OK);
	mem_free(json);
	mem_free(info);
	mem_free(name);
	mem_free(arguments);
	mem_free(copy);
	return err;
}

void
ucall_send(struct uowner *o, struct ucall *c, const char *text)
{
	ck_assert_int_eq(ucall_try(o, c, text, NULL), MV_OK);
}

/* ---- watches ---- */

static void
on_watch_settled(void *arg, const struct outcome *out)
{
	struct watcher *w = arg;

	w->settled++;
	w->yes = out == NULL;
	if (out != NULL) {
		w->kind = out->kind;
		w->err = out->err;
	}
	if (w->unwatch)
		upstream_unwatch(&w->watch);
}

void
watcher_watch(struct uowner *o, struct watcher *w, const char *uri)
{
	*w = (struct watcher){.watch.uri = {uri, strlen(uri)}};
	w->watch.on_settled = on_watch_settled;
	w->watch.arg = w;
	upstream_watch(o->u, &w->watch);
}

void
watcher_check(const struct watcher *w, enum mv_err err)
{
	ck_assert_uint_eq(w->settled, 1);
	ck_assert_int_eq(w->yes, err == MV_OK);
	if (err == MV_OK)
		return;
	ck_assert_int_eq(w->kind, OUTCOME_FAILED);
	ck_assert_msg(
	    w->err == err, "%s, not %s", mv_err_reason(w->err), mv_err_reason(err));
}
