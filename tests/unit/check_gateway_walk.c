/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Reloads, restarts, calls, subscriptions and deaths in any order: every call ends once,
 * every conf is let go of once, and nothing is left. */
#include "mcpvisor/call.h"

#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS	 12
#define SUBS	 6
#define CLIENTS	 3
#define SLOW_MAX 256
#define WALKS	 60
#define STEPS	 600

static const char *const names[FLEET_MAX] = {"alpha", "beta", "gamma", "delta"};

struct walk_call {
	struct call c;
	bool busy;
	unsigned owner;
};

struct walk_sub {
	struct subscriber s;
	bool busy, settled;
	unsigned owner;
};

static struct walk {
	uint64_t seed;
	struct fleet *f;
	struct walk_call calls[CALLS];
	struct walk_sub subs[SUBS];
	struct gateway_observer clients[CLIENTS];
	struct upstream *slow[SLOW_MAX]; /* whose stop takes its time */
	size_t n_slow;
	unsigned applied, stopped;
	unsigned begun, ended, updates;
} w;

static unsigned
dice(unsigned n)
{
	w.seed ^= w.seed << 13;
	w.seed ^= w.seed >> 7;
	w.seed ^= w.seed << 17;
	return (unsigned)(w.seed >> 33) % n;
}

/* ---- calls ---- */

static void
ignore_msg(void *arg, const struct link_msg *m)
{
	(void)arg;
	(void)m;
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct walk_call *k = arg;

	ck_assert(k->busy);
	ck_assert(o->kind != OUTCOME_FAILED || o->err != MV_OK);
	ck_assert(k->c.u == NULL || upstream_name(k->c.u) != NULL);
	k->busy = false;
	w.ended++;
	call_fini(&k->c);
}

static const struct call_cb call_cb = {
    .on_progress = ignore_msg, .on_log = ignore_msg, .on_done = on_done};

static void
walk_call(void)
{
	struct walk_call *k = &w.calls[dice(CALLS)];
	struct upstream_call req = {.method = METHOD_TOOLS_CALL, .level = MCP_LV_MAX};
	struct json_msg *json;
	struct link_msg m;
	char text[128];

	if (k->busy)
		return;
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"%s__a\"}}",
	    names[dice(FLEET_MAX)]);
	json = mem_xalloc(sizeof(*json));
	m = fleet_scan(text, json);
	req.base = m.base;
	req.len = m.len;
	req.json = m.json;
	k->owner = dice(CLIENTS);
	k->c = (struct call){.cb = &call_cb, .arg = k, .owner = &w.clients[k->owner]};
	k->busy = call_start(w.f->g, &k->c, &req) == MV_OK;
	w.begun += k->busy;
	if (!k->busy)
		call_fini(&k->c);
	mem_free(json);
}

static void
call_drop(struct walk_call *k)
{
	if (!k->busy)
		return;
	call_cancel(&k->c, NULL);
	call_fini(&k->c);
	k->busy = false;
	w.ended++;
}

/* The client gives up, or the upstream answers. */
static void
walk_end_call(void)
{
	struct walk_call *k = &w.calls[dice(CALLS)];
	struct upstream *u = k->c.req.u;

	if (dice(4) == 0)
		call_drop(k);
	for (size_t i = 0; k->busy && u != NULL && i < fake_upstream_n_sent(u); i++) {
		if (fake_upstream_sent(u, i)->r != &k->c.req)
			continue;
		fake_upstream_result(u, i,
		    "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"n:/x\","
		    "\"name\":\"n\"}]}");
		ck_assert(!k->busy);
		return;
	}
}

/* ---- subscriptions ---- */

static void
on_settled(void *arg, const struct outcome *o)
{
	struct walk_sub *s = arg;

	ck_assert(s->busy && !s->settled);
	s->settled = true;
	s->busy = o == NULL;
}

static void
on_updated(void *arg, const struct link_msg *m)
{
	struct walk_sub *s = arg;

	ck_assert(s->busy && s->settled);
	ck_assert_uint_gt(m->len, 0);
	w.updates++;
}

static void
sub_drop(struct walk_sub *s)
{
	subscription_remove(&s->s);
	s->busy = false;
}

static void
walk_subscribe(void)
{
	static const char *const uris[] = {"\"file:///alpha\"", "\"file:///beta\"",
	    "\"p+file:///gamma\"", "\"file:///twin\"", "\"n:/x\""};
	struct walk_sub *s = &w.subs[dice(SUBS)];

	if (s->busy) {
		sub_drop(s);
		return;
	}
	s->owner = dice(CLIENTS);
	s->s = (struct subscriber){.owner = &w.clients[s->owner],
	    .on_settled = on_settled,
	    .on_updated = on_updated,
	    .arg = s};
	s->settled = false;
	s->busy = true;
	if (subscription_add(w.f->g, text_of(uris[dice(5)]), &s->s) != MV_OK)
		s->busy = false;
}

/* ---- upstreams ---- */

/* One of the fleet, or whoever has a call: an instance, or one that is replaced. */
static struct upstream *
walk_upstream(void)
{
	struct walk_call *k = &w.calls[dice(CALLS)];

	if (dice(2) == 0 && k->busy && k->c.req.u != NULL)
		return k->c.req.u;
	return w.f->n > 0 ? w.f->u[dice((unsigned)w.f->n)] : NULL;
}

static void
put_list(struct upstream *u, enum list_kind kind)
{
	char text[256];

	if (kind == LIST_TOOLS)
		(void)snprintf(text, sizeof(text),
		    "{\"tools\":[{\"name\":\"a\"},{\"name\":\"v%u\"}]}", dice(3));
	else if (kind == LIST_RESOURCES)
		(void)snprintf(text, sizeof(text),
		    "{\"resources\":[{\"uri\":\"file:///%s\"}%s]}", upstream_name(u),
		    dice(2) ? ",{\"uri\":\"file:///twin\"}" : "");
	else
		(void)snprintf(text, sizeof(text), "{\"%s\":[]}", list_member(kind));
	fake_upstream_list(u, kind, text);
}

static void
walk_ready(void)
{
	static const struct upstream_caps caps = {
	    .tools = true, .resources = true, .subscribe = true};
	struct upstream *u = walk_upstream();

	if (u == NULL || upstream_conf_of(u)->broken != MV_OK)
		return;
	fake_upstream_set_caps(u, caps);
	fake_upstream_set_state(u, UPSTREAM_ST_READY, "");
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (!upstream_is_settled(u) || dice(2))
			put_list(u, (enum list_kind)k);
	fake_upstream_settle(u);
}

static void
walk_die(void)
{
	struct upstream *u = walk_upstream();

	if (u == NULL)
		return;
	fake_upstream_set_state(
	    u, dice(3) ? UPSTREAM_ST_DOWN : UPSTREAM_ST_PARKED, "died");
	fake_upstream_settle(u);
}

static void
walk_watch(void)
{
	struct upstream *u = walk_upstream();

	if (u == NULL)
		return;
	fake_upstream_settle_watch(
	    u, dice(4) ? NULL : "{\"code\":-1,\"message\":\"no\"}");
	fake_upstream_updated(u, "{\"uri\":\"file:///twin\"}");
	fake_upstream_updated(u, "{\"uri\":\"file:///gamma/x\"}");
}

static void
walk_slow(void)
{
	struct upstream *u = walk_upstream();
	bool known = u == NULL || w.n_slow == SLOW_MAX;

	for (size_t i = 0; i < w.n_slow && !known; i++)
		known = w.slow[i] == u;
	if (known || fake_upstream_stops(u) > 0)
		return;
	fake_upstream_stop_slowly(u, true);
	w.slow[w.n_slow++] = u;
}

/* Those whose stop was begun: they cannot have gone before they say so. */
static void
walk_finish(void)
{
	for (size_t i = w.n_slow; i > 0; i--) {
		struct upstream *u = w.slow[i - 1];

		if (fake_upstream_stops(u) == 0)
			continue;
		w.slow[i - 1] = w.slow[--w.n_slow];
		fake_upstream_stopped(u);
	}
}

/* ---- the fleet ---- */

static struct fleet_conf *
walk_conf(void)
{
	static const enum isolation isolations[] = {
	    ISOLATION_AUTO, ISOLATION_SHARED, ISOLATION_SESSION, ISOLATION_CALL};
	struct fleet_conf *c = fleet_conf_new(0);
	unsigned first = dice(FLEET_MAX);

	for (unsigned i = 0; i < FLEET_MAX; i++) {
		unsigned which = (first + i) % FLEET_MAX;
		struct upstream_conf *u;

		if (dice(4) == 0)
			continue;
		u = fleet_conf_add(c, names[which]);
		u->isolation = isolations[dice(6) ? which : dice(4)];
		u->max_instances = 1 + dice(3);
		u->start = dice(2) ? START_EAGER : START_ON_USE;
		u->cwd = dice(4) ? NULL : mem_xstrdup("/elsewhere");
		u->broken = dice(12) ? MV_OK : MV_CONF;
		u->uri_prefix = which == 2 ? mem_xstrdup("p+") : NULL;
	}
	if (dice(2)) {
		(void)fleet_conf_profile(c, "default", dice(2) ? "*" : "alpha beta");
		(void)fleet_conf_profile(c, "dev", "gamma");
	}
	return c;
}

static void
walk_apply(void)
{
	fleet_apply(w.f, walk_conf(), dice(3) ? 500 : 0);
	w.applied++;
}

static void
walk_restart(void)
{
	if (w.f->n > 0)
		gateway_restart(
		    w.f->g, w.f->u[dice((unsigned)w.f->n)], dice(2) ? 500 : 0);
	fleet_look(w.f);
}

static void
walk_time(void)
{
	if (dice(2))
		fake_loop_settle(w.f->loop);
	else
		fake_loop_advance(w.f->loop, dice(20) ? dice(300) : 70000);
}

static void
on_changed(void *arg, unsigned kinds)
{
	(void)arg;
	ck_assert_uint_ne(kinds, 0);
}

static void
client_join(unsigned i)
{
	w.clients[i] =
	    (struct gateway_observer){.on_changed = on_changed, .has_instances = i > 0};
	gateway_observe(w.f->g, &w.clients[i]);
	gateway_note_listener(w.f->g);
}

static void
client_leave(unsigned i)
{
	for (size_t k = 0; k < CALLS; k++)
		if (w.calls[k].owner == i)
			call_drop(&w.calls[k]);
	for (size_t k = 0; k < SUBS; k++)
		if (w.subs[k].owner == i)
			sub_drop(&w.subs[k]);
	gateway_unobserve(w.f->g, &w.clients[i]);
}

static void
walk_client(void)
{
	unsigned i = dice(CLIENTS);

	client_leave(i);
	client_join(i);
}

static void
assert_sound(void)
{
	bool settled = true;
	size_t busy = 0;

	for (size_t i = 0; i < w.f->n; i++) {
		ck_assert_ptr_eq(upstream_conf_of(w.f->u[i]), w.f->confs[i]);
		settled &= upstream_is_settled(w.f->u[i]);
	}
	ck_assert_int_eq(gateway_is_settled(w.f->g), settled);
	for (size_t i = 0; i < CALLS; i++)
		busy += w.calls[i].busy;
	ck_assert_uint_eq(w.begun - w.ended, busy);
	ck_assert_uint_le(w.f->released, w.applied);
}

static void
on_stopped(void *arg)
{
	(void)arg;
	w.stopped++;
}

static void
walk_end(void)
{
	struct child_ladder ladder = {.term_ms = 1, .kill_ms = 2, .drain_ms = 3};

	gateway_stop(w.f->g, &ladder, on_stopped, NULL);
	walk_finish();
	ck_assert_uint_eq(w.stopped, 1);
	fake_loop_settle(w.f->loop);
	/* What was in flight has ended; what waited for lists waits for its client. */
	for (size_t i = 0; i < CALLS; i++)
		ck_assert(!w.calls[i].busy || w.calls[i].c.waiter.g != NULL);
	ck_assert_uint_eq(w.f->released, w.applied);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_leave(i);
	ck_assert_uint_eq(w.begun, w.ended);
	fleet_free(w.f);
}

static const struct {
	unsigned weight;
	void (*step)(void);
} steps[] = {
    {12, walk_call},
    {13, walk_end_call},
    {5, walk_subscribe},
    {5, walk_watch},
    {10, walk_ready},
    {2, walk_die},
    {2, walk_slow},
    {3, walk_finish},
    {3, walk_apply},
    {2, walk_restart},
    {1, walk_client},
    {8, walk_time},
};

static void
walk_step(void)
{
	unsigned sum = 0, at;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		sum += steps[i].weight;
	at = dice(sum);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (at < steps[i].weight) {
			steps[i].step();
			return;
		}
		at -= steps[i].weight;
	}
}

START_TEST(any_order)
{
	memset(&w, 0, sizeof(w));
	w.seed = 0x9e3779b97f4a7c15ULL + (uint64_t)_i * 7919;
	w.f = fleet_from(walk_conf());
	gateway_start(w.f->g);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_join(i);
	for (unsigned i = 0; i < STEPS; i++) {
		walk_step();
		assert_sound();
	}
	ck_assert_uint_gt(w.applied, 5);
	ck_assert_uint_gt(w.ended, 10);
	walk_end();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_walk");
	TCase *tc = tcase_create("gateway_walk");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, any_order, 0, WALKS);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
