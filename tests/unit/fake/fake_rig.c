/* SPDX-License-Identifier: MIT */
/*
 * A catalog over fake upstreams.
 *
 * Owns: the loop, the catalog, and the conf in use with its upstreams.
 * Driven by: the test.
 */
#include "fake/fake_rig.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include "fake/fake_loop.h"

#include <check.h>

char **
rig_words(const char *s)
{
	char **v;
	size_t n = 0;

	if (s == NULL)
		return NULL;
	v = mem_xcalloc(strlen(s) + 2, sizeof(char *));
	while (*s != '\0') {
		size_t len = strcspn(s, " ");

		v[n++] = mem_xstrndup(s, len);
		s += len + (s[len] == ' ');
	}
	return v;
}

struct filter
rig_filter(const char *allow, const char *deny)
{
	return (struct filter){.allow = rig_words(allow), .deny = rig_words(deny)};
}

struct rig_conf *
rig_conf_new(void)
{
	return mem_xcalloc(1, sizeof(struct rig_conf));
}

struct upstream_conf *
rig_upstream(struct rig_conf *c, const char *name, const char *prefix)
{
	struct upstream_conf *conf = upstream_conf_new(name);

	ck_assert_uint_lt(c->n, RIG_MAX);
	conf->prefix = prefix != NULL ? mem_xstrdup(prefix) : NULL;
	c->confs[c->n++] = conf;
	return conf;
}

struct profile_conf *
rig_profile(struct rig_conf *c, const char *name, const char *upstreams)
{
	struct profile_conf *p = mem_xcalloc(1, sizeof(*p));

	p->name = mem_xstrdup(name);
	p->upstreams = rig_words(upstreams);
	c->profiles[c->n_profiles++] = p;
	return p;
}

struct tool_shape *
rig_shape(struct upstream_conf *conf, const char *tool)
{
	size_t n = conf->n_shapes++;

	conf->shapes = mem_xrealloc(conf->shapes, (n + 1) * sizeof(*conf->shapes));
	conf->shapes[n] = (struct tool_shape){.tool = mem_xstrdup(tool)};
	return &conf->shapes[n];
}

static void
rig_on_list(void *arg, struct upstream *u, enum list_kind kind, bool changed)
{
	struct rig *r = arg;

	(void)u;
	(void)changed;
	if (r->c != NULL)
		catalog_mark(r->c, kind);
}

static void
rig_on_settled(void *arg, struct upstream *u)
{
	(void)arg;
	(void)u;
}

static void
rig_quiet(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)level;
	(void)line;
	(void)len;
	(void)arg;
}

static struct catalog_opts
rig_make(struct rig *r, struct rig_conf *c)
{
	static const struct upstream_cb cb = {
	    .on_list = rig_on_list, .on_settled = rig_on_settled};
	struct catalog_opts o = {.v = c->u,
	    .n = c->n,
	    .profiles = (const struct profile_conf *const *)c->profiles,
	    .n_profiles = c->n_profiles,
	    .name_bytes = c->name_bytes};

	for (size_t i = 0; i < c->n; i++)
		c->u[i] = upstream_new(
		    &(struct upstream_env){.loop = r->loop}, c->confs[i], &cb, r);
	r->conf = c;
	return o;
}

struct rig *
rig_new(struct rig_conf *c)
{
	struct rig *r = mem_xcalloc(1, sizeof(*r));
	struct catalog_opts o;

	log_set_sink(rig_quiet, NULL);
	r->loop = loop_new();
	o = rig_make(r, c);
	r->c = catalog_new(&o);
	return r;
}

static void
rig_conf_free(struct rig_conf *c)
{
	for (size_t i = 0; i < c->n; i++) {
		upstream_free(c->u[i]);
		upstream_conf_free(c->confs[i]);
	}
	for (size_t i = 0; i < c->n_profiles; i++)
		profile_conf_free(c->profiles[i]);
	mem_free(c);
}

void
rig_reload(struct rig *r, struct rig_conf *c, void (*fill)(struct rig *r))
{
	struct rig_conf *old = r->conf;
	struct catalog *catalog = r->c;
	struct catalog_opts o = rig_make(r, c);

	r->c = NULL;
	fill(r);
	r->c = catalog;
	catalog_set(r->c, &o);
	rig_conf_free(old);
}

void
rig_free(struct rig *r)
{
	catalog_free(r->c);
	rig_conf_free(r->conf);
	loop_free(r->loop);
	mem_free(r);
}

void
rig_list(struct rig *r, size_t i, enum list_kind kind, const char *names)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_addf(&b, "{\"%s\":[", list_member(kind));
	while (*names != '\0') {
		size_t len = strcspn(names, " ");

		buf_addf(&b, "{\"%s\":\"%.*s\"}", list_key(kind), (int)len, names);
		names += len;
		if (*names++ != ' ')
			break;
		buf_add_char(&b, ',');
	}
	buf_add_str(&b, "]}");
	fake_upstream_list(r->conf->u[i], kind, buf_cstr(&b));
	buf_fini(&b);
}

void
rig_assert_text(struct jtext t, const char *want)
{
	char *got = mem_xstrndup(t.n ? t.p : "", t.n);

	ck_assert_str_eq(got, want);
	mem_free(got);
}

void
rig_assert_body(struct rig *r, unsigned view, enum list_kind kind, const char *want)
{
	rig_assert_text(catalog_body(r->c, view, kind), want);
}

void
rig_assert_names(struct rig *r, unsigned view, enum list_kind kind, const char *want)
{
	struct json_iter it;
	struct jtext item;
	struct buf b;

	buf_init(&b, 1u << 20);
	json_iter_init(&it, catalog_body(r->c, view, kind));
	while (json_next_element(&it, &item)) {
		if (b.len > 0)
			buf_add_char(&b, ' ');
		ck_assert(json_string_decode(json_member(item, list_key(kind)), &b));
	}
	ck_assert_str_eq(b.len ? buf_cstr(&b) : "", want);
	buf_fini(&b);
}

struct route *
rig_find(struct rig *r, unsigned view, enum list_kind kind, const char *name)
{
	return catalog_find(r->c, view, kind, text_of(name));
}

void
rig_assert_owner(
    struct rig *r, unsigned view, enum list_kind kind, const char *name, const char *want)
{
	const struct route *found = rig_find(r, view, kind, name);

	ck_assert_str_eq(found ? upstream_name(found->u) : "nobody", want);
}
