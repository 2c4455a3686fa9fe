/* SPDX-License-Identifier: MIT */
/*
 * A kind that the test plays, its upstream and that one's owner.
 *
 * Owns: the upstream, its conf and its loop.
 * Driven by: the test and the upstream.
 * Invariants: nothing is called before a start or after a stop; a call ends once, and
 * never in the turn that asks.
 */
#include "fake/fake_local.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_http_link.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct kind g_kind;
struct owner g_owner;

static void *
kind_init(struct upstream *u, const struct upstream_env *env)
{
	ck_assert_ptr_nonnull(env->loop);
	g_kind.u = u;
	g_kind.is_there = true;
	return &g_kind;
}

static void
kind_free(void *arg)
{
	struct kind *k = arg;

	ck_assert(k->is_there);
	ck_assert_uint_eq(k->n_open, 0);
	k->is_there = false;
}

static void
kind_start(void *arg)
{
	struct kind *k = arg;

	ck_assert(k->is_there && !k->is_started);
	k->is_started = true;
	k->starts++;
	if (k->starting == START_UP)
		local_up(k->u);
	else if (k->starting == START_DOWN)
		local_down(k->u, MV_UNREACHABLE, "no %s", "way");
}

static void
kind_stop(void *arg)
{
	struct kind *k = arg;

	ck_assert(k->is_started);
	/* Nothing is called after it but free and start. */
	ck_assert_uint_eq(k->n_open, 0);
	k->is_started = false;
	k->stops++;
}

static bool
kind_has_changed(void *arg)
{
	struct kind *k = arg;

	ck_assert(k->is_there && !k->is_started);
	k->looks++;
	return k->has_changed;
}

static void
kind_set_conf(void *arg)
{
	struct kind *k = arg;

	k->confs++;
}

static void
kind_put_tools(void *arg, struct buf *out)
{
	struct kind *k = arg;

	ck_assert(k->is_started);
	buf_add_str(out, "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}");
}

static void
kind_put_instructions(void *arg, struct buf *out)
{
	(void)arg;
	buf_add_str(out, "Say \"t\".");
}

void
kind_answer(struct local_call *c, enum answering how)
{
	struct iovec iov[2] = {
	    {(void *)(uintptr_t) "{\"content\":", 11}, {(void *)(uintptr_t) "[]}", 3}};

	switch (how) {
	case ANSWER_LATER:
		break;
	case ANSWER_RESULT:
		local_reply(c, iov, 2);
		break;
	case ANSWER_TEXT:
		local_reply_text(c, "a\n\xff\"", 4, false);
		break;
	case ANSWER_FAILURE:
		local_reply_text(c, "no", 2, true);
		break;
	case ANSWER_ERROR:
		local_reply_error(c, -32603, "It \"broke\"");
		break;
	case ANSWER_NOBODY:
		local_reply_unknown(c);
		break;
	case ANSWER_LONG:
		iov[1].iov_len = CAP_MESSAGE_BYTES; /* more than is looked at */
		local_reply(c, iov, 2);
		break;
	}
}

static void
kind_call(void *arg, struct local_call *c)
{
	struct kind *k = arg;

	ck_assert(k->is_started);
	k->calls++;
	if (local_refuse_arguments(c))
		return;
	if (k->answering != ANSWER_LATER) {
		kind_answer(c, k->answering);
		return;
	}
	ck_assert_uint_lt(k->n_open, CALLS_MAX);
	k->open[k->n_open++] = c;
}

struct local_call *
kind_take(struct kind *k, size_t i)
{
	struct local_call *c = k->open[i];

	k->open[i] = k->open[--k->n_open];
	return c;
}

static void
kind_cancel(void *arg, struct local_call *c)
{
	struct kind *k = arg;

	ck_assert(k->is_started);
	for (size_t i = 0; i < k->n_open; i++) {
		if (k->open[i] != c)
			continue;
		(void)kind_take(k, i);
		k->cancels++;
		return;
	}
	ck_abort_msg("a call that is not open was cancelled");
}

/* exec has all that a kind may have but what graphql has, shell only what it must. */
#define KIND_MUST                                                                        \
	.init = kind_init, .free = kind_free, .call = kind_call, .cancel = kind_cancel,  \
	.put_tools = kind_put_tools
const struct local_ops local_exec = {.name = "exec",
    KIND_MUST,
    .start = kind_start,
    .stop = kind_stop,
    .set_conf = kind_set_conf,
    .put_instructions = kind_put_instructions};
const struct local_ops local_graphql = {.name = "graphql",
    KIND_MUST,
    .start = kind_start,
    .stop = kind_stop,
    .has_changed = kind_has_changed};

static void
shell_free(void *arg)
{
	(void)arg;
}

static void
shell_put_tools(void *arg, struct buf *out)
{
	(void)arg;
	(void)out;
}

static void
shell_call(void *arg, struct local_call *c)
{
	(void)arg;
	local_reply_unknown(c);
}

const struct local_ops local_shell = {.name = "shell",
    .init = kind_init,
    .free = shell_free,
    .put_tools = shell_put_tools,
    .call = shell_call};

/* ---- the owner ---- */

static void
on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	struct owner *o = arg;

	(void)u;
	o->lists += kind == LIST_TOOLS;
	o->changes += kind == LIST_TOOLS && changed;
}

static void
on_settled(void *arg, struct upstream *u)
{
	struct owner *o = arg;

	(void)u;
	o->settled++;
}

static void
on_message(void *arg, struct upstream *u, const struct link_msg *m)
{
	(void)arg;
	(void)u;
	(void)m;
	ck_abort_msg("it says something of its own");
}

static void
on_stopped(void *arg, struct upstream *u)
{
	struct owner *o = arg;

	(void)u;
	o->stopped++;
}

static void
on_question(void *arg, struct upstream *u, struct upstream_req *r, struct question *q)
{
	(void)arg;
	(void)u;
	(void)r;
	(void)q;
	ck_abort_msg("it asks");
}

static const struct upstream_cb owner_cb = {.on_list = on_list,
    .on_settled = on_settled,
    .on_log = on_message,
    .on_updated = on_message,
    .on_stopped = on_stopped,
    .on_question = on_question};

void
owner_new(enum upstream_kind kind, enum starting starting)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");

	conf->kind = kind;
	conf->restart_base_ms = conf->restart_max_ms = 100;
	conf->restart_limit = 3;
	conf->stable_ms = 60000;
	g_kind = (struct kind){.starting = starting};
	g_owner = (struct owner){.loop = loop_new(), .conf = conf};
	g_owner.u = upstream_new(
	    &(struct upstream_env){.loop = g_owner.loop, .curl = fake_curl()}, conf,
	    &owner_cb, &g_owner);
	upstream_set_client_caps(g_owner.u, 0);
}

void
owner_stop(void)
{
	static const struct child_ladder hurry = {.term_ms = 1, .kill_ms = 1};

	upstream_stop(g_owner.u, &hurry);
}

void
owner_free(void)
{
	if (g_owner.stopped == 0)
		owner_stop();
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(g_owner.stopped, 1);
	ck_assert(!g_kind.is_started);
	ck_assert_uint_eq(upstream_in_flight(g_owner.u), 0);
	upstream_free(g_owner.u);
	fake_loop_settle(g_owner.loop);
	ck_assert_uint_eq(fake_loop_timers(g_owner.loop), 0);
	loop_free(g_owner.loop);
	upstream_conf_free(g_owner.conf);
}

bool
owner_is_ready(void)
{
	return upstream_state(g_owner.u) == UPSTREAM_ST_READY;
}

/* From nothing to ready, as a kind that answers so. */
void
owner_ready(enum answering how)
{
	owner_new(KIND_EXEC, START_UP);
	upstream_start(g_owner.u);
	fake_loop_settle(g_owner.loop);
	ck_assert(owner_is_ready());
	g_kind.answering = how;
}

/* ---- calls ---- */

static void
on_notice(void *arg, const struct link_msg *m)
{
	(void)arg;
	(void)m;
	ck_abort_msg("a notice");
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct tcall *c = arg;

	ck_assert_ptr_null(c->req.u);
	c->done++;
	c->kind = o->kind;
	c->err = o->err;
	if (o->kind != OUTCOME_FAILED)
		(void)snprintf(
		    c->body, sizeof(c->body), "%.*s", (int)o->body.n, o->body.p);
	if (c->then != NULL)
		c->then();
	/* Whatever that was, what it was told is still there. */
	if (o->kind != OUTCOME_FAILED)
		ck_assert_int_eq(strncmp(c->body, o->body.p, strlen(c->body)), 0);
}

static const struct upstream_req_cb call_cb = {
    .on_progress = on_notice, .on_log = on_notice, .on_done = on_done};

enum mv_err
tcall_try(struct tcall *c, const char *text)
{
	char *copy = mem_xstrdup(text);
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct upstream_call call = {.base = copy,
	    .len = strlen(text),
	    .json = json,
	    .method = METHOD_TOOLS_CALL,
	    .level = MCP_LV_MAX};
	unsigned done = c->done;
	enum mv_err err;

	ck_assert_int_eq(json_scan(json, copy, call.len, false), MV_OK);
	c->req.cb = &call_cb;
	c->req.arg = c;
	err = upstream_send(g_owner.u, &c->req, &call);
	ck_assert_uint_eq(c->done, done); /* never in the turn that asks */
	mem_free(json);
	mem_free(copy);
	return err;
}

void
tcall_send(struct tcall *c)
{
	ck_assert_int_eq(tcall_try(c, CALL_T), MV_OK);
}
