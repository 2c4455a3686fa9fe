/* SPDX-License-Identifier: MIT */
/* Clients and calls of a fleet that can be asked, and what they were. */
#ifndef QUESTIONS_RIG_H
#define QUESTIONS_RIG_H

#include "mcpvisor/gateway.h"

#include "mcpvisor/call.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNER_WAIT_MS 30000
#define WITHDRAWN_MS  60000
#define UNCERTAIN                                                                        \
	"7 refused -32603 It cannot be told which of several clients this is for; a "    \
	"retry may help"
#define NOBODY "7 refused -32603 There is no client to ask; a retry may help"

/* A client, with what it was asked and told. */
struct asker {
	struct gateway_observer o;
	unsigned asked, told, withdrawn;
	struct question *q;
};

/* One call, the same. */
struct acall {
	struct call c;
	unsigned asked, done, withdrawn;
	struct question *q;
};

static inline void
on_withdrawn(void *arg, struct question *q)
{
	(void)q;
	++*(unsigned *)arg;
}

static const struct question_cb question_cb = {.on_withdrawn = on_withdrawn};

static inline void
asker_on_question(void *arg, struct upstream *u, struct question *q)
{
	struct asker *a = arg;

	ck_assert_ptr_eq(q->u, u);
	a->asked++;
	a->q = q;
	question_take(q, &question_cb, &a->withdrawn, NULL);
}

static inline void
asker_on_elicited(void *arg, struct upstream *u, const struct link_msg *m)
{
	(void)u;
	(void)m;
	((struct asker *)arg)->told++;
}

static inline void
acall_on_question(void *arg, struct question *q)
{
	struct acall *k = arg;

	k->asked++;
	k->q = q;
	question_take(q, &question_cb, &k->withdrawn, NULL);
}

static inline void
acall_on_done(void *arg, const struct outcome *o)
{
	(void)o;
	((struct acall *)arg)->done++;
}

static const struct call_cb acall_cb = {
    .on_question = acall_on_question, .on_done = acall_on_done};

/* ---- the stage ---- */

static struct fleet *f;
static struct upstream *u;
static struct asker a, b, crowd;
static struct acall k[4];

static inline void
observe(struct asker *who, bool own, unsigned caps)
{
	memset(who, 0, sizeof(*who));
	who->o.on_question = asker_on_question;
	who->o.on_elicited = asker_on_elicited;
	who->o.arg = who;
	who->o.has_instances = own;
	gateway_observe(f->g, &who->o);
	gateway_set_caps(f->g, &who->o, caps);
}

static inline void
start(struct fleet_conf *c)
{
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 6000);
	u = f->u[0];
	memset(k, 0, sizeof(k));
	observe(&a, true, CLIENT_CAPS_SHARED);
	observe(&b, true, CLIENT_CAPS_SHARED);
	observe(&crowd, false, 0);
	crowd.o.is_crowd = true;
}

static inline struct fleet_conf *
conf(void)
{
	struct fleet_conf *c = fleet_conf_new(1);

	c->can_ask = true;
	return c;
}

/* One that is not replaced when it has asked. */
static inline void
setup(void)
{
	struct fleet_conf *c = conf();

	c->confs[0]->isolation = ISOLATION_SHARED;
	start(c);
}

static inline void
teardown(void)
{
	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
		call_cancel(&k[i].c, NULL);
		call_fini(&k[i].c);
	}
	gateway_unobserve(f->g, &a.o);
	gateway_unobserve(f->g, &b.o);
	gateway_unobserve(f->g, &crowd.o);
	fleet_free(f);
}

static inline void
setup_auto(void)
{
	teardown();
	start(conf());
}

/* The call of who, which can be asked as it says. */
static inline struct upstream *
begin(struct acall *c, struct asker *who, unsigned caps)
{
	static const char text[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"alpha__a\"}}";
	struct json_msg json;
	struct link_msg m = fleet_scan(text, &json);
	struct upstream_call call = {.method = METHOD_TOOLS_CALL,
	    .base = m.base,
	    .len = m.len,
	    .json = &json,
	    .level = MCP_LV_MAX};

	call_fini(&c->c);
	memset(c, 0, sizeof(*c));
	c->c.cb = &acall_cb;
	c->c.arg = c;
	c->c.owner = &who->o;
	c->c.caps = caps;
	ck_assert_int_eq(call_start(f->g, &c->c, &call), MV_OK);
	fake_upstream_set_state(c->c.u, UPSTREAM_ST_READY, "");
	return c->c.u;
}

static inline void
end(struct acall *c)
{
	fake_upstream_result(c->c.u, fake_upstream_n_sent(c->c.u) - 1, "{}");
}

static inline void
ask(struct upstream *of, struct upstream_req *by)
{
	fake_upstream_ask(of, by, METHOD_ELICIT, "\"id\":7,\"params\":{}");
}

static inline void
give_up(struct acall *c)
{
	call_cancel(&c->c, NULL);
	call_fini(&c->c);
}

#endif
