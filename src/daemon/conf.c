/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of the conf: how it comes to be, and its end.
 *
 * Owns: the snapshot, until conf_free.
 * Driven by: main at start, reload, check.
 * Invariants: a snapshot is whole or is not; after the load nothing in it changes.
 */
#include "mcpvisor/conf.h"

#include "conf_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

static int
mark_order(const void *a, const void *b)
{
	const char *const *p = a, *const *q = b;

	return *p < *q ? -1 : *p > *q;
}

void
conf_mark(struct conf *c, const char *value)
{
	struct conf_more *m = c->more;

	/* Doubles, so that thousands of them cost little. */
	if ((m->n_marks & (m->n_marks - 1)) == 0)
		m->marks = mem_xrealloc(
		    m->marks, (m->n_marks ? m->n_marks * 2 : 1) * sizeof(*m->marks));
	m->marks[m->n_marks++] = value;
}

void
conf_unmark(struct conf *c, const char *value)
{
	struct conf_more *m = c->more;

	for (size_t i = m->n_marks; value && i > 0; i--) {
		if (m->marks[i - 1] == value)
			m->marks[i - 1] = "";
	}
}

bool
conf_is_marked(const struct conf *c, const char *value)
{
	const struct conf_more *m = c->more;

	return m->n_marks > 0 &&
	       bsearch(&value, m->marks, m->n_marks, sizeof(*m->marks), mark_order);
}

void
conf_sort_marks(struct conf *c)
{
	if (c->more->n_marks > 0)
		qsort(c->more->marks, c->more->n_marks, sizeof(*c->more->marks),
		    mark_order);
}

static struct conf *
conf_new(const char *file)
{
	struct conf *c = mem_xcalloc(1, sizeof(*c));

	c->file = file ? mem_xstrdup(file) : NULL;
	c->more = mem_xcalloc(1, sizeof(*c->more));
	conf_set_defaults(CONF_CONF, c);
	return c;
}

struct conf *
conf_new_default(void)
{
	return conf_new(NULL);
}

static void
listen_fini(struct conf_listen *l)
{
	conf_set_string(&l->address, NULL);
	conf_set_string(&l->path, NULL);
	conf_set_string(&l->sse_path, NULL);
	conf_set_string(&l->profile, NULL);
	conf_set_string(&l->group, NULL);
	conf_strings_free(l->allowed_hosts);
	conf_strings_free(l->allowed_origins);
}

static void
more_free(struct conf_more *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		conf_extra_free(m->extras[i]);
	mem_free(m->extras);
	mem_free(m->marks);
	mem_free(m);
}

void
conf_free(struct conf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_listen; i++)
		listen_fini(&c->listen[i]);
	for (size_t i = 0; i < c->n_profiles; i++)
		profile_conf_free(c->profiles[i]);
	for (size_t i = 0; i < c->log.n_modules; i++)
		mem_free(c->log.modules[i].module);
	for (size_t i = 0; i < c->n_warnings; i++)
		mem_free(c->warnings[i]);
	more_free(c->more, c->n_upstreams);
	for (size_t i = 0; i < c->n_upstreams; i++)
		upstream_conf_free(c->upstreams[i]);
	conf_set_string(&c->state.dir, NULL);
	conf_set_string(&c->control.socket, NULL);
	conf_set_string(&c->control.group, NULL);
	conf_set_string(&c->upstream_dir, NULL);
	conf_set_string(&c->probe.file, NULL);
	conf_strings_free(c->mcp_servers);
	mem_free(c->listen);
	mem_free(c->profiles);
	mem_free(c->log.modules);
	mem_free(c->warnings);
	mem_free(c->upstreams);
	mem_free(c->file);
	mem_free(c);
}

/* "default" without a profile of that name is what no name means. */
static void
load_finish(struct conf_ctx *x)
{
	struct conf *c = x->c;
	bool has = c->n_profiles > 0 && strcmp(c->profiles[0]->name, "default") == 0;

	for (size_t i = 0; i < c->n_listen && !has; i++) {
		if (c->listen[i].profile && strcmp(c->listen[i].profile, "default") == 0)
			conf_set_string(&c->listen[i].profile, NULL);
	}
	conf_sort_marks(c);
}

static struct conf *
load_text(const char *name, struct jtext text, const char *mcp_json,
    const struct expand_env *env, struct conf_errors *e)
{
	struct conf_ctx x = {
	    .c = conf_new(name), .file = name, .main_file = name, .mcp_json = mcp_json};
	char *dir = conf_file_dir(name);
	config_t cfg;

	x.env = env ? *env : expand_env_process;
	x.env.dir = dir;
	x.main_dir = dir;
	x.at[CONF_CONF] = x.c;
	if (conf_file_parse(&x, &cfg, text.p, text.n)) {
		x.root = config_root_setting(&cfg);
		x.defaults = config_setting_get_member(x.root, "defaults");
		if (x.defaults && !config_setting_is_group(x.defaults))
			x.defaults = NULL;
		conf_read_group(&x, CONF_CONF, x.root);
		conf_check_listens(&x);
	}
	conf_read_folder(&x);
	conf_read_imports(&x);
	config_destroy(&cfg);
	load_finish(&x);
	conf_take_errors(&x, e);
	mem_free(x.listen_lines);
	mem_free(dir);
	if (e->n == 0)
		return x.c;
	conf_free(x.c);
	return NULL;
}

struct conf *
conf_parse(const char *name, const char *text, const struct expand_env *env,
    struct conf_errors *e)
{
	return load_text(name, (struct jtext){text, strlen(text)}, NULL, env, e);
}

struct conf *
conf_load(const char *file, const struct expand_env *env, struct conf_errors *e)
{
	return conf_load_with(file, NULL, env, e);
}

struct conf *
conf_load_with(const char *file, const char *mcp_json, const struct expand_env *env,
    struct conf_errors *e)
{
	struct conf_ctx x = {.file = file};
	const char *wrong;
	char *inside = NULL, *text;
	struct conf *c = NULL;
	struct stat st;
	size_t n = 0;

	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
		x.file = inside = conf_file_join(file, "mcpvisor.conf");
	wrong = expand_read_file(x.file, S_IFCHR, CAP_CONF_BYTES, &text, &n);
	/* As an editor leaves it between two steps; a reload would take everything away.
	 */
	if (text && n == 0 && stat(x.file, &st) == 0 && S_ISREG(st.st_mode)) {
		mem_free(text);
		text = NULL;
		wrong = "the file is empty; if that is meant, a comment in it says so";
	}
	if (text) {
		c = load_text(x.file, (struct jtext){text, n}, mcp_json, env, e);
		mem_free_secret(text, n);
	} else {
		conf_file_error(&x, 0, "%s", wrong);
		conf_take_errors(&x, e);
	}
	mem_free(inside);
	return c;
}
