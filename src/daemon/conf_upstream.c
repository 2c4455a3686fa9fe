/* SPDX-License-Identifier: MIT */
/*
 * One upstream of the conf: its group, and what "defaults" adds.
 *
 * Owns: nothing; the result is the snapshot's.
 * Driven by: conf_group.c for the main file, conf_import.c for the others.
 * Invariants: every upstream of the snapshot has a conf_extra; names differ; each has a
 * kind, and no option of another one.
 */
#include "conf_value_priv.h"

#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

void
conf_extra_free(struct conf_extra *extra)
{
	if (!extra)
		return;
	for (size_t i = 0; i < extra->n_rows; i++)
		tool_shape_fini(&extra->rows[i].s);
	mem_free(extra->rows);
	conf_strings_free(extra->env_pass);
	conf_set_string(&extra->env_file, NULL);
	mem_free(extra->name);
	mem_free(extra->file);
	mem_free(extra);
}

static struct conf_extra *
upstream_taken(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_upstreams; i++) {
		if (strcmp(c->upstreams[i]->name, name) == 0)
			return c->more->extras[i];
	}
	return NULL;
}

void
conf_append_upstream(struct conf *c, struct upstream_conf *u, struct conf_extra *extra)
{
	size_t n = c->n_upstreams++;

	c->upstreams = mem_xrealloc(c->upstreams, (n + 1) * sizeof(*c->upstreams));
	c->more->extras =
	    mem_xrealloc(c->more->extras, (n + 1) * sizeof(*c->more->extras));
	c->upstreams[n] = u;
	c->more->extras[n] = extra;
}

bool
conf_add_upstream(struct conf_ctx *x, struct upstream_conf *u, struct conf_extra *extra)
{
	const struct conf_extra *other = upstream_taken(x->c, u->name);

	if (!other && x->c->n_upstreams < CAP_UPSTREAMS) {
		conf_append_upstream(x->c, u, extra);
		return true;
	}
	if (other && other->line > 0)
		conf_error(x, extra->line, "the name is taken by that of %s:%d",
		    other->file, other->line);
	else if (other)
		conf_error(x, extra->line, "the name is taken by that of %s",
		    other->file ? other->file : "another file");
	else
		conf_error(
		    x, extra->line, "there are more than %d upstreams", CAP_UPSTREAMS);
	upstream_conf_free(u);
	conf_extra_free(extra);
	return false;
}

void
conf_at_upstream(struct conf_ctx *x, struct upstream_conf *u, struct conf_extra *extra)
{
	x->at[CONF_UPSTREAM] = u;
	x->at[CONF_OWN] = u;
	x->at[CONF_EXTRA] = extra;
}

/* Reads "defaults" into the upstream of x->at as though its members stood there. Its
 * errors have been reported when it was read for itself. */
void
conf_apply_defaults(struct conf_ctx *x)
{
	const char *dir = x->env.dir;

	if (!x->defaults)
		return;
	x->quiet = true;
	x->in_defaults = true;
	x->env.dir = x->main_dir;
	conf_read_group(x, CONF_UPSTREAM, x->defaults);
	x->env.dir = dir;
	x->in_defaults = false;
	x->quiet = false;
}

void
conf_parse_defaults(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct upstream_conf *u = upstream_conf_new("defaults");
	struct conf_extra *extra = mem_xcalloc(1, sizeof(*extra));
	size_t n_marks = x->c->more->n_marks;

	(void)member;
	conf_at_upstream(x, u, extra);
	x->in_defaults = true;
	if (config_setting_is_group(s))
		conf_read_group(x, CONF_UPSTREAM, s);
	else
		conf_want(x, r, s);
	x->in_defaults = false;
	/* Nothing of it stays. */
	x->c->more->n_marks = n_marks;
	upstream_conf_free(u);
	conf_extra_free(extra);
}

/* Its member "name" in place of its key. */
static const char *
upstream_name(struct conf_ctx *x, const char *key, const config_setting_t *group)
{
	const config_setting_t *s = config_setting_get_member(group, "name");
	const char *name = key;

	if (s && config_setting_type(s) == CONFIG_TYPE_STRING)
		name = config_setting_get_string(s);
	if (*name && !conf_check_name(name))
		return name;
	/* The member is reported when it is read. */
	if (!s)
		conf_file_error(x, (int)config_setting_source_line(group),
		    "the name of an upstream %s", conf_check_name(name));
	return key;
}

static void
upstream_finish(struct conf_ctx *x, const config_setting_t *group)
{
	const config_setting_t *key = config_setting_get_member(group, "key_file");
	struct upstream_conf *u = x->at[CONF_UPSTREAM];
	const struct conf_extra *extra = x->at[CONF_EXTRA];

	conf_check_kind(x, group);
	if (u->kind == KIND_GRAPHQL)
		u->label.mode = GRAPHQL_ON; /* there is nothing else behind it */
	if (u->key_file && !u->cert_file)
		conf_error(x, key ? (int)config_setting_source_line(key) : extra->line,
		    "key_file: there is no cert_file");
	if (CONF_K(u->kind) & CONF_K_PROGRAM) {
		conf_finish_env(x, group);
		conf_make_env(u);
	}
	conf_finish_shapes(x);
}

void
conf_read_upstream(struct conf_ctx *x, const char *key, const config_setting_t *group)
{
	size_t old = conf_push(x, "upstream"), old_name;
	const char *name = upstream_name(x, key, group);
	const config_setting_t *enabled = config_setting_get_member(group, "enabled");
	struct conf_extra *extra = mem_xcalloc(1, sizeof(*extra));
	struct upstream_conf *u = upstream_conf_new(name);
	int line = (int)config_setting_source_line(group);

	extra->file = mem_xstrdup(x->file);
	/* The root of a file of its own has no line. */
	extra->line = line > 0 ? line : 1;
	old_name = conf_push(x, conf_label(name));
	conf_at_upstream(x, u, extra);
	x->lenient = enabled && config_setting_type(enabled) == CONFIG_TYPE_BOOL &&
		     !config_setting_get_bool(enabled);
	conf_read_kind(x, group);
	conf_apply_defaults(x);
	conf_read_group(x, CONF_UPSTREAM, group);
	upstream_finish(x, group);
	x->lenient = false;
	x->kind = 0;
	(void)conf_add_upstream(x, u, extra);
	conf_pop(x, old_name);
	conf_pop(x, old);
}

void
conf_parse_upstreams(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	/* The path begins anew in conf_read_upstream. */
	conf_pop(x, 0);
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);

		if (config_setting_is_group(e)) {
			conf_read_upstream(x, config_setting_name(e), e);
		} else {
			size_t old = conf_push(x, "upstream");

			conf_push(x, config_setting_name(e));
			conf_error(x, (int)config_setting_source_line(e),
			    "want a group, not %s", conf_setting_type(e));
			conf_pop(x, old);
		}
	}
}
