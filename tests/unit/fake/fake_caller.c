/* SPDX-License-Identifier: MIT */
/*
 * Somebody who makes calls.
 *
 * Owns: nothing; the message of a call is gone when caller_start returns.
 * Driven by: the test.
 * Invariants: one end a call, no progress after it.
 */
#include "fake/fake_caller.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void
on_progress(void *arg, const struct link_msg *m)
{
	struct caller *k = arg;

	ck_assert_uint_eq(k->done, 0);
	k->progress++;
	(void)snprintf(k->body, sizeof(k->body), "%.*s", (int)m->len, m->base);
}

static void
on_log(void *arg, const struct link_msg *m)
{
	struct caller *k = arg;

	(void)m;
	ck_assert_uint_eq(k->done, 0);
	k->logs++;
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct caller *k = arg;

	k->done++;
	k->last = *o;
	(void)snprintf(
	    k->body, sizeof(k->body), "%.*s", (int)o->body.n, o->body.n ? o->body.p : "");
	(void)snprintf(k->owner_name, sizeof(k->owner_name), "%s",
	    k->c.u != NULL ? upstream_name(k->c.u) : "nobody");
	call_fini(&k->c);
}

static const struct call_cb caller_cb = {
    .on_progress = on_progress, .on_log = on_log, .on_done = on_done};

enum mv_err
caller_start(struct fleet *f, struct caller *k, const char *method, const char *params)
{
	return caller_start_in(f, k, 0, method, params);
}

enum mv_err
caller_start_in(struct fleet *f, struct caller *k, unsigned view, const char *method,
    const char *params)
{
	struct upstream_call req = {.level = MCP_LV_NOTICE,
	    .client_info = text_of("{\"name\":\"c\",\"version\":\"1\"}")};
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m;
	char *text;
	enum mv_err err;
	struct buf b;

	/* Gone afterwards: whatever a call needs later it has to keep. */
	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_addf(
	    &b, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":", method);
	buf_add_str(&b, params);
	buf_add_char(&b, '}');
	text = buf_take(&b, NULL);
	mem_fail_hold(false);
	m = fleet_scan(text, json);
	req.base = m.base;
	req.len = m.len;
	req.json = m.json;
	req.method = method_parse(m.env.method);
	memset(k, 0, sizeof(*k));
	k->c.cb = &caller_cb;
	k->c.arg = k;
	k->owner.view = view;
	k->c.owner = &k->owner;
	err = call_start(f->g, &k->c, &req);
	ck_assert_uint_eq(k->done, 0);
	mem_free(text);
	mem_free(json);
	return err;
}

void
caller_begin(struct fleet *f, struct caller *k, const char *method, const char *params)
{
	ck_assert_int_eq(caller_start(f, k, method, params), MV_OK);
}
