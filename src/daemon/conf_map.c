/* SPDX-License-Identifier: MIT */
/*
 * Groups whose members have names of the user's choice: levels of modules, variables,
 * other names of tools.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: a variable is in own_env once.
 */
#include "conf_value_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/mem.h"

#define CONF_MODULE_NAME_MAX 31

void
conf_parse_levels(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	int n = config_setting_length(s), line = (int)config_setting_source_line(s);
	struct conf_log_module *v;

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	if ((uint64_t)n > r->hi) {
		conf_error(x, line, "has more than %u modules", (unsigned)r->hi);
		return;
	}
	v = mem_xcalloc((size_t)n + 1, sizeof(*v));
	x->c->log.modules = v;
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push(x, config_setting_name(e));
		int level;

		line = (int)config_setting_source_line(e);
		level = config_setting_type(e) == CONFIG_TYPE_STRING
			    ? conf_enum(x, r, e, line)
			    : -1;
		if (config_setting_type(e) != CONFIG_TYPE_STRING)
			conf_error(
			    x, line, "want a string, not %s", conf_setting_type(e));
		else if (strlen(config_setting_name(e)) > CONF_MODULE_NAME_MAX)
			conf_error(x, line, "is no module");
		else if (level >= 0)
			v[x->c->log.n_modules++] = (struct conf_log_module){
			    mem_xstrdup(config_setting_name(e)), (enum log_level)level};
		conf_pop(x, old);
	}
}

void
conf_env_set(char ***v, const char *pair, bool keep)
{
	size_t n = conf_strings_count(*v), key = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < n; i++) {
		if (strncmp((*v)[i], pair, key) != 0)
			continue;
		if (!keep)
			conf_set_string(&(*v)[i], mem_xstrdup(pair));
		return;
	}
	*v = mem_xrealloc(*v, (n + 2) * sizeof(**v));
	(*v)[n] = mem_xstrdup(pair);
	(*v)[n + 1] = NULL;
}

/* NAME = "value" */
static void
env_read_member(
    struct conf_ctx *x, const struct conf_row *r, char ***v, const config_setting_t *e)
{
	const char *name = config_setting_name(e);
	size_t old = conf_push(x, name), n;
	char *value = conf_string(x, r, e), *pair;

	conf_pop(x, old);
	if (!value)
		return;
	n = strlen(name) + strlen(value) + 2;
	pair = mem_xalloc(n);
	snprintf(pair, n, "%s=%s", name, value);
	conf_env_set(v, pair, x->keep_set);
	mem_free_secret(pair, n);
	mem_free_secret(value, strlen(value));
}

/* "NAME=value", for names that a setting cannot have. */
static void
env_read_element(struct conf_ctx *x, const struct conf_row *r, char ***v,
    const config_setting_t *e, int i)
{
	size_t old = conf_push_index(x, i);
	char *pair = conf_string(x, r, e);

	if (pair && (*pair == '=' || !strchr(pair, '=')))
		conf_error(
		    x, (int)config_setting_source_line(e), "is not \"NAME=value\"");
	else if (pair)
		conf_env_set(v, pair, x->keep_set);
	conf_set_string(&pair, NULL);
	conf_pop(x, old);
}

void
conf_parse_env(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char ***v = member;
	int n = config_setting_length(s);

	if (!config_setting_is_aggregate(s)) {
		conf_want(x, r, s);
		return;
	}
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);

		if (config_setting_is_group(s))
			env_read_member(x, r, v, e);
		else
			env_read_element(x, r, v, e, i);
	}
}

void
conf_parse_rename(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	const struct conf_row *name = conf_row_find(CONF_SHAPE, "name");
	struct conf_extra *extra = x->at[CONF_EXTRA];
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	if (n == 0)
		return;
	extra->rows =
	    mem_xrealloc(extra->rows, (extra->n_rows + (size_t)n) * sizeof(*extra->rows));
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push(x, config_setting_name(e));
		char *to = conf_string(x, name, e);

		conf_pop(x, old);
		if (!to)
			continue;
		extra->rows[extra->n_rows] =
		    (struct conf_shape_row){.line = (int)config_setting_source_line(e),
			.order = (unsigned)extra->n_rows,
			.is_rename = true,
			.s = {.tool = mem_xstrdup(config_setting_name(e)), .name = to}};
		extra->n_rows++;
	}
}

void
conf_each_level(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	(void)member;
	for (size_t i = 0; i < w->c->log.n_modules; i++) {
		const struct conf_log_module *m = &w->c->log.modules[i];
		struct conf_put p = {w->c, &w->shown, &w->real};
		size_t old = conf_walk_push(w, m->module);

		conf_put_enum(&p, r, &m->level);
		conf_walk_value(w, r);
		conf_walk_pop(w, old);
	}
}

void
conf_each_env(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	for (char *const *p = *(char *const *const *)member; p && *p; p++) {
		const char *eq = strchr(*p, '=');
		char name[256];
		size_t old;

		snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq - *p) : 255, *p);
		old = conf_walk_push(w, conf_label(name));
		buf_add_str(&w->shown, "(secret)");
		buf_add_str(&w->real, eq ? eq + 1 : "");
		conf_walk_value(w, r);
		conf_walk_pop(w, old);
	}
}
