/* SPDX-License-Identifier: MIT */
/*
 * The tools of one upstream, called one after another.
 *
 *   look -> call -> record -> pause -> look ...; end
 *
 * Owns: its call, the record of that.
 * Driven by: app_probe.c, the ends of its calls, its timers.
 * Invariants: one call at a time; a tool that was called before, and is what it was, is
 * not called again; what cannot be called stays as it was known.
 */
#include "app_probe_priv.h"

#include "overlay.h"
#include "probe_record.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/cli.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define SPACING_MS    200 /* between two calls */
#define RPC_NO_METHOD (-32601)

/* The record of an earlier run about the same tool, if it is what it was then. */
static json_t *
probe_known(const struct probe *p, const json_t *fresh)
{
	json_t *old = overlay_find(
	    p->old, record_text(fresh, "upstream"), record_text(fresh, "tool"));

	return old != NULL && record_is_of_same(old, fresh) ? old : NULL;
}

static void
line_end(struct probe_line *line)
{
	struct probe *p = line->p;

	if (--p->n_open == 0)
		probe_finish(p);
}

static void
line_say(const struct probe_line *line, const char *tool, const char *what)
{
	fprintf(stdout, "%s: ", upstream_name(line->u));
	cli_print_cut(stdout, tool, strlen(tool), 0);
	fprintf(stdout, ": %s\n", what);
}

/* The open call is over, however it ended. */
static void
line_take(struct probe_line *line, const struct outcome *o)
{
	struct probe *p = line->p;
	json_t *r = line->record;

	timer_clear(&line->limit);
	line->is_open = false;
	line->record = NULL;
	record_set(r, "time", p->time);
	if (record_fill(r, o, clock_now_ms() - line->started_ms,
		p->fleet->conf->probe.sample_max)) {
		p->n_sampled++;
		line_say(line, record_text(r, "tool"), "sampled");
	} else {
		line_say(line, record_text(r, "tool"), record_text(r, "why"));
	}
	probe_keep(p, r);
	call_fini(&line->call);
	timer_set(&line->pause, SPACING_MS);
}

/* It could not even be called: that says nothing of the tool. */
static void
line_miss(struct probe_line *line, enum mv_err err)
{
	json_t *r = line->record, *old = probe_known(line->p, r);

	timer_clear(&line->limit);
	line->is_open = false;
	line->record = NULL;
	line->p->code = CLI_UPSTREAM;
	line_say(line, record_text(r, "tool"), mv_err_reason(err));
	if (old != NULL)
		probe_keep(line->p, json_incref(old));
	json_decref(r);
	call_fini(&line->call);
	timer_set(&line->pause, SPACING_MS);
}

static void
on_call_done(void *arg, const struct outcome *o)
{
	line_take(arg, o);
}

static void
on_call_notice(void *arg, const struct link_msg *m)
{
	(void)arg;
	(void)m;
}

static void
on_call_question(void *arg, struct question *q)
{
	(void)arg;
	question_refuse(q, WORDING_ASK_PROBE);
}

static const struct call_cb call_callbacks = {.on_progress = on_call_notice,
    .on_log = on_call_notice,
    .on_question = on_call_question,
    .on_done = on_call_done};

static void
on_limit(void *arg)
{
	struct probe_line *line = arg;
	struct outcome o = {.kind = OUTCOME_FAILED, .err = MV_TIMEOUT};

	call_cancel(&line->call, NULL);
	line_take(line, &o);
}

/* Calls a tool by its published name. */
static void
line_call(struct probe_line *line, const struct route *route, const char *args)
{
	struct upstream_call call = {.method = METHOD_TOOLS_CALL, .level = MCP_LV_MAX};
	struct json_msg json;
	struct link_msg m;
	enum mv_err err;
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			"\"params\":{\"name\":");
	json_put_string(&b, route->published.p, route->published.n);
	buf_addf(&b, ",\"arguments\":%s}}", args != NULL ? args : "{}");
	memset(&line->call, 0, sizeof(line->call));
	line->call.cb = &call_callbacks;
	line->call.arg = line;
	line->call.owner = &line->p->self;
	line->is_open = true;
	line->started_ms = clock_now_ms();
	timer_set(&line->limit, line->p->fleet->conf->probe.timeout_ms);
	err = b.err != MV_OK ? b.err : link_scan(b.data, b.len, &json, &m);
	if (err == MV_OK) {
		call.base = m.base;
		call.len = m.len;
		call.json = m.json;
		err = call_start(line->p->gateway, &line->call, &call);
	}
	buf_fini(&b);
	if (err == MV_OK)
		line->p->n_called++;
	else
		line_miss(line, err);
}

/* What decides about one tool. False: it is another list now, the next run will see. */
static bool
line_see(struct probe_line *line, const struct route *route, struct buf *name,
    struct candidate *c)
{
	const struct ulist *l = upstream_list(line->u, LIST_TOOLS);

	buf_reset(name);
	if (route->u != line->u || route->item >= l->n ||
	    !jtext_is_equal(ulist_name(l, route->item), route->original) ||
	    !json_string_decode(route->original, name) || name->err != MV_OK)
		return false;
	*c = (struct candidate){.conf = upstream_conf_of(line->u), .shape = route->shape};
	c->name = (struct jtext){name->data, name->len};
	c->definition = ulist_def(l, route->item);
	return true;
}

/* It is not called: why, if that is new. */
static void
line_skip(struct probe_line *line, json_t *record, const json_t *old, const char *why)
{
	record_set(record, "skipped", why);
	if (old == NULL || !json_equal(old, record))
		line_say(line, record_text(record, "tool"), why);
	probe_keep(line->p, record);
}

/* Decides about one tool. True: it is being called. */
static bool
line_look(struct probe_line *line, const struct route *route, struct buf *name)
{
	struct candidate c;
	const char *refusal;
	json_t *record, *old;

	if (!line_see(line, route, name, &c))
		return false;
	refusal = candidate_refusal(&c);
	if (refusal != NULL && refusal[0] == '\0')
		return false;
	record = record_new(&c);
	old = probe_known(line->p, record);
	if (refusal != NULL) {
		line_skip(line, record, old, refusal);
		return false;
	}
	if (old != NULL && !record_is_skipped(old) && !line->p->a->again) {
		probe_keep(line->p, json_incref(old));
		json_decref(record);
		return false;
	}
	line->record = record;
	line_call(line, route, c.shape != NULL ? c.shape->probe_args : NULL);
	return true;
}

/* What is known of the tools that are left stays. */
static void
line_give_up(struct probe_line *line, enum mv_err err)
{
	struct candidate c;
	struct buf name;

	fprintf(stderr, "mcpvisor probe: %s cannot be called any more: %s\n",
	    upstream_name(line->u), mv_err_reason(err));
	line->p->code = CLI_UPSTREAM;
	buf_init(&name, CAP_URI_BYTES);
	for (; line->next < line->n; line->next++) {
		json_t *record, *old;

		if (!line_see(line, line->routes[line->next], &name, &c))
			continue;
		record = record_new(&c);
		old = probe_known(line->p, record);
		if (old != NULL)
			probe_keep(line->p, json_incref(old));
		json_decref(record);
	}
	buf_fini(&name);
}

/* Whether it can be called; else its time has come or will. */
static bool
line_is_up(struct probe_line *line)
{
	enum mv_err err = upstream_refusal(line->u);
	uint64_t now = clock_now_ms();

	if (err == MV_OK || line->next == line->n) {
		line->down_ms = 0;
		return true;
	}
	if (line->down_ms == 0)
		line->down_ms = now;
	if ((err == MV_BACKOFF || err == MV_STARTING) &&
	    now - line->down_ms < PROBE_SETTLE_MS) {
		timer_set(&line->pause, SPACING_MS);
		return false;
	}
	line_give_up(line, err);
	line_end(line);
	return false;
}

static void
line_go_on(void *arg)
{
	struct probe_line *line = arg;
	struct buf name;
	bool is_calling = false;

	if (!line_is_up(line))
		return;
	buf_init(&name, CAP_URI_BYTES);
	while (!is_calling && line->next < line->n)
		is_calling = line_look(line, line->routes[line->next++], &name);
	buf_fini(&name);
	if (!is_calling)
		line_end(line);
}

/* ---- its life ---- */

void
line_init(struct probe_line *line)
{
	timer_init(&line->limit, line->p->loop, on_limit, line);
	timer_init(&line->pause, line->p->loop, line_go_on, line);
}

void
line_begin(struct probe_line *line)
{
	line->p->n_open++;
	timer_set(&line->pause, 0);
}

void
line_stop(struct probe_line *line)
{
	timer_clear(&line->limit);
	timer_clear(&line->pause);
	if (line->is_open)
		call_cancel(&line->call, NULL);
	line->is_open = false;
}

void
line_fini(struct probe_line *line)
{
	timer_fini(&line->limit);
	timer_fini(&line->pause);
	call_fini(&line->call);
	for (size_t k = 0; k < line->n; k++)
		route_unref(line->routes[k]);
	mem_free(line->routes);
	json_decref(line->record);
}
