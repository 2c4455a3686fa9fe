/* SPDX-License-Identifier: MIT */
/*
 * A gateway over fake upstreams.
 *
 * Owns: the loop, the confs and the gateway.
 * Driven by: the test.
 */
#include "fake/fake_fleet.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdarg.h>
#include <string.h>

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)level;
	(void)line;
	(void)len;
	(void)arg;
}

/* ---- confs ---- */

struct upstream_conf *
fleet_conf_add(struct fleet_conf *c, const char *name)
{
	ck_assert_uint_lt(c->n, FLEET_MAX);
	c->confs[c->n] = upstream_conf_new(name);
	c->confs[c->n]->enabled = true;
	return c->confs[c->n++];
}

struct fleet_conf *
fleet_conf_new(size_t n)
{
	static const char *const names[FLEET_MAX] = {"alpha", "beta", "gamma", "delta"};
	struct fleet_conf *c = mem_xcalloc(1, sizeof(*c));

	for (size_t i = 0; i < n; i++)
		(void)fleet_conf_add(c, names[i]);
	return c;
}

struct profile_conf *
fleet_conf_profile(struct fleet_conf *c, const char *name, const char *upstreams)
{
	struct profile_conf *p = mem_xcalloc(1, sizeof(*p));
	size_t n = 0;

	ck_assert_uint_lt(c->n_profiles, FLEET_MAX);
	p->name = mem_xstrdup(name);
	p->upstreams = mem_xcalloc(strlen(upstreams) + 2, sizeof(char *));
	while (*upstreams != '\0') {
		size_t len = strcspn(upstreams, " ");

		p->upstreams[n++] = mem_xstrndup(upstreams, len);
		upstreams += len + (upstreams[len] == ' ');
	}
	c->profiles[c->n_profiles++] = p;
	return p;
}

static void
fleet_conf_free(struct fleet_conf *c)
{
	for (size_t i = 0; i < c->n; i++)
		upstream_conf_free(c->confs[i]);
	for (size_t i = 0; i < c->n_profiles; i++)
		profile_conf_free(c->profiles[i]);
	mem_free(c);
}

/* ---- what the gateway calls ---- */

static void
on_made(void *arg, struct upstream *u)
{
	struct fleet *f = arg;

	f->made++;
	f->last_made = u;
	if (f->on_made != NULL)
		f->on_made(f, u);
}

static void
on_memory(void *arg, struct upstream *u)
{
	struct fleet *f = arg;

	f->memories++;
	f->last_memory = u;
}

static void
on_released(void *arg)
{
	struct fleet *f = arg;
	struct fleet_conf *c = f->old;

	ck_assert_msg(c != NULL, "released more often than replaced");
	f->released++;
	f->old = c->next;
	fleet_conf_free(c);
}

static struct gateway_opts
fleet_opts(struct fleet *f)
{
	struct gateway_opts o = {.confs = f->conf->confs,
	    .n = f->conf->n,
	    .profiles = (const struct profile_conf *const *)f->conf->profiles,
	    .n_profiles = f->conf->n_profiles,
	    .list_wait_ms = FLEET_WAIT_MS,
	    .one_client = f->conf->one_client,
	    .can_ask = f->conf->can_ask,
	    .on_made = on_made,
	    .on_memory = on_memory,
	    .on_released = on_released,
	    .arg = f};

	return o;
}

/* ---- fleets ---- */

void
fleet_look(struct fleet *f)
{
	f->n = gateway_count(f->g);
	f->confs = f->conf->confs;
	for (size_t i = 0; i < f->n; i++)
		f->u[i] = gateway_upstream(f->g, i);
}

struct fleet *
fleet_from(struct fleet_conf *c)
{
	struct fleet *f = mem_xcalloc(1, sizeof(*f));
	struct gateway_opts o;

	log_set_sink(on_line, NULL);
	f->loop = loop_new();
	f->conf = c;
	o = fleet_opts(f);
	f->g = gateway_new(&(struct upstream_env){.loop = f->loop}, &o);
	ck_assert_uint_eq(gateway_count(f->g), c->n);
	fleet_look(f);
	return f;
}

struct fleet *
fleet_new(size_t n, const char *const *prefixes)
{
	struct fleet_conf *c = fleet_conf_new(n);

	for (size_t i = 0; i < n; i++)
		if (prefixes != NULL && prefixes[i] != NULL)
			c->confs[i]->prefix = mem_xstrdup(prefixes[i]);
	return fleet_from(c);
}

void
fleet_apply(struct fleet *f, struct fleet_conf *c, uint32_t drain_ms)
{
	struct gateway_apply_opts o = {.drain_ms = drain_ms};
	struct fleet_conf **at = &f->old;

	while (*at != NULL)
		at = &(*at)->next;
	*at = f->conf;
	f->conf = c;
	o.fleet = fleet_opts(f);
	gateway_apply(f->g, &o);
	ck_assert_uint_eq(gateway_count(f->g), c->n);
	fleet_look(f);
}

void
fleet_ready(struct fleet *f, size_t i)
{
	static const struct upstream_caps all = {.tools = true,
	    .prompts = true,
	    .resources = true,
	    .completions = true,
	    .logging = true,
	    .tools_changed = true,
	    .prompts_changed = true,
	    .resources_changed = true,
	    .subscribe = true};

	fake_upstream_set_caps(f->u[i], all);
	fake_upstream_set_state(f->u[i], UPSTREAM_ST_READY, "");
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (!upstream_list(f->u[i], (enum list_kind)k)->is_known)
			fleet_list(f, i, (enum list_kind)k, NULL);
	fake_upstream_settle(f->u[i]);
}

struct fleet *
fleet_running_from(struct fleet_conf *c)
{
	struct fleet *f = fleet_from(c);

	gateway_start(f->g);
	for (size_t i = 0; i < f->n; i++)
		fleet_ready(f, i);
	ck_assert(gateway_is_settled(f->g));
	return f;
}

struct fleet *
fleet_running(size_t n)
{
	return fleet_running_from(fleet_conf_new(n));
}

struct fleet *
fleet_full(void)
{
	struct fleet *f = fleet_running(2);

	fleet_list(f, 0, LIST_TOOLS, "a", "b.c", "\\u0064", NULL);
	fleet_list(f, 0, LIST_PROMPTS, "a", NULL);
	fleet_list(f, 0, LIST_RESOURCES, "file:///a", NULL);
	fleet_list(f, 0, LIST_TEMPLATES, "db://{+any}", NULL);
	fleet_list(f, 1, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_PROMPTS, "a", NULL);
	fleet_list(f, 1, LIST_RESOURCES, "file:///b", "file:///a", NULL);
	fleet_list(f, 1, LIST_TEMPLATES, "db://users/{id}", NULL);
	fake_loop_advance(f->loop, 1000); /* no change is left to be told of */
	return f;
}

void
fleet_free(struct fleet *f)
{
	fake_loop_settle(f->loop);
	gateway_free(f->g);
	while (f->old != NULL) {
		struct fleet_conf *c = f->old;

		f->old = c->next;
		fleet_conf_free(c);
	}
	fleet_conf_free(f->conf);
	loop_free(f->loop);
	mem_free(f);
}

void
fleet_list(struct fleet *f, size_t i, enum list_kind kind, ...)
{
	const char *name;
	struct buf b;
	va_list ap;
	size_t n = 0;

	mem_fail_hold(true);
	buf_init(&b, CAP_LIST_BYTES);
	buf_addf(&b, "{\"%s\":[", list_member(kind));
	va_start(ap, kind);
	while ((name = va_arg(ap, const char *)) != NULL)
		buf_addf(
		    &b, "%s{\"%s\":\"%s\"}", n++ > 0 ? "," : "", list_key(kind), name);
	va_end(ap);
	buf_add_str(&b, "]}");
	mem_fail_hold(false);
	fake_upstream_list(f->u[i], kind, buf_cstr(&b));
	buf_fini(&b);
}

struct link_msg
fleet_scan(const char *text, struct json_msg *json)
{
	struct link_msg m;

	ck_assert_msg(link_scan(text, strlen(text), json, &m) == MV_OK, "%s", text);
	return m;
}

void
assert_text(struct jtext t, const char *want)
{
	char *got = mem_xstrndup(t.n ? t.p : "", t.n);

	ck_assert_str_eq(got, want);
	mem_free(got);
}
