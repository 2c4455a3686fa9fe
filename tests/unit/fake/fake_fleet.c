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

struct fleet *
fleet_new(size_t n, const char *const *prefixes)
{
	static const char *const names[FLEET_MAX] = {"alpha", "beta", "gamma", "delta"};
	struct fleet *f = mem_xcalloc(1, sizeof(*f));
	struct gateway_opts o = {
	    .confs = f->confs, .n = n, .list_wait_ms = FLEET_WAIT_MS};

	log_set_sink(on_line, NULL);
	f->n = n;
	f->loop = loop_new();
	for (size_t i = 0; i < n; i++) {
		f->confs[i] = upstream_conf_new(names[i]);
		if (prefixes != NULL && prefixes[i] != NULL)
			f->confs[i]->prefix = mem_xstrdup(prefixes[i]);
	}
	f->g = gateway_new(f->loop, NULL, &o);
	ck_assert_uint_eq(gateway_count(f->g), n);
	for (size_t i = 0; i < n; i++)
		f->u[i] = gateway_upstream(f->g, i);
	return f;
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
fleet_running(size_t n)
{
	struct fleet *f = fleet_new(n, NULL);

	gateway_start(f->g);
	for (size_t i = 0; i < n; i++)
		fleet_ready(f, i);
	ck_assert(gateway_is_settled(f->g));
	return f;
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
	for (size_t i = 0; i < f->n; i++)
		upstream_conf_free(f->confs[i]);
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

	buf_init(&b, CAP_LIST_BYTES);
	buf_addf(&b, "{\"%s\":[", list_member(kind));
	va_start(ap, kind);
	while ((name = va_arg(ap, const char *)) != NULL)
		buf_addf(
		    &b, "%s{\"%s\":\"%s\"}", n++ > 0 ? "," : "", list_key(kind), name);
	va_end(ap);
	buf_add_str(&b, "]}");
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
