/* SPDX-License-Identifier: MIT */
/*
 * Groups of settings: each member is a row of the table, a section of such, or unknown.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf.c and conf_upstream.c.
 */
#include "conf_value_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/filter.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/mem.h"

static void
group_unknown(struct conf_ctx *x, enum conf_where scope, const char *key, int line)
{
	const char *near = conf_row_nearest(scope, key);

	if (near)
		conf_error(x, line, "unknown setting; is \"%s\" meant?", near);
	else
		conf_error(x, line, "unknown setting");
}

static bool
row_is_default(const struct conf_ctx *x, const struct conf_row *r, const void *member)
{
	struct buf shown, real;
	struct conf_put p = {x->c, &shown, &real};
	bool same = true;

	buf_init(&shown, CAP_CONF_BYTES);
	buf_init(&real, CAP_CONF_BYTES);
	if (conf_type_of(r)->put && conf_type_of(r)->put(&p, r, member))
		same = r->dflt && strlen(r->dflt) == real.len &&
		       memcmp(r->dflt, real.data, real.len) == 0;
	buf_fini(&shown);
	buf_fini(&real);
	return same;
}

/* Of "defaults" each upstream takes what is for its kind. */
static void
group_other_kind(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s)
{
	char theirs[CONF_KINDS_BYTES], its[CONF_KINDS_BYTES];

	if (!x->in_defaults)
		conf_error(x, (int)config_setting_source_line(s),
		    "is an option of kind %s, and this upstream is of kind %s",
		    conf_kinds_text(r->flags, theirs), conf_kinds_text(x->kind, its));
}

static void group_members(struct conf_ctx *x, enum conf_where scope, const char *prefix,
    const config_setting_t *group);

static void
group_member(struct conf_ctx *x, enum conf_where scope, const char *prefix,
    const config_setting_t *s)
{
	const struct conf_row *r;
	char key[128];
	void *member;

	snprintf(key, sizeof(key), "%s%s", prefix, config_setting_name(s));
	r = conf_row_find(scope, key);
	if (r && x->in_defaults && (r->flags & CONF_F_O)) {
		conf_error(x, (int)config_setting_source_line(s),
		    "is an option of one upstream, not of all");
	} else if (r && x->kind != 0 && !CONF_IS_OF(r->flags, x->kind)) {
		group_other_kind(x, r, s);
	} else if (r) {
		member = (char *)x->at[r->where] + r->offset;
		if (!x->keep_set || row_is_default(x, r, member))
			conf_type_of(r)->parse(x, r, member, s);
	} else if (!conf_is_section(scope, key)) {
		group_unknown(x, scope, key, (int)config_setting_source_line(s));
	} else if (!config_setting_is_group(s)) {
		conf_error(x, (int)config_setting_source_line(s), "want a group, not %s",
		    conf_setting_type(s));
	} else {
		snprintf(key, sizeof(key), "%s%s.", prefix, config_setting_name(s));
		group_members(x, scope, key, s);
	}
}

static void
group_members(struct conf_ctx *x, enum conf_where scope, const char *prefix,
    const config_setting_t *group)
{
	int n = config_setting_length(group);

	for (int i = 0; i < n; i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		size_t old = conf_push(x, config_setting_name(s));

		group_member(x, scope, prefix, s);
		conf_pop(x, old);
	}
}

void
conf_read_group(struct conf_ctx *x, enum conf_where scope, const config_setting_t *group)
{
	size_t first, end;

	group_members(x, scope, "", group);
	if (x->in_defaults)
		return;
	conf_scope_range(scope, &first, &end);
	for (size_t i = first; i < end; i++) {
		const char *key = conf_rows[i].key;

		if (!(conf_rows[i].flags & CONF_F_Q) ||
		    config_setting_get_member(group, key))
			continue;
		conf_error(
		    x, (int)config_setting_source_line(group), "%s is missing", key);
	}
}

/* Calls fn for each group of a list. */
static void
group_each(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s,
    void (*fn)(struct conf_ctx *x, const config_setting_t *group))
{
	int n = config_setting_length(s);

	/* An empty pair of brackets is an array to libconfig. */
	if (!config_setting_is_list(s) && !(config_setting_is_array(s) && n == 0)) {
		conf_want(x, r, s);
		return;
	}
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push_index(x, i);

		if (config_setting_is_group(e))
			fn(x, e);
		else
			conf_error(x, (int)config_setting_source_line(e),
			    "want a group, not %s", conf_setting_type(e));
		conf_pop(x, old);
	}
}

static void
group_read_listen(struct conf_ctx *x, const config_setting_t *group)
{
	struct conf *c = x->c;
	struct conf_listen *l;

	c->listen = mem_xrealloc(c->listen, (c->n_listen + 1) * sizeof(*c->listen));
	x->listen_lines =
	    mem_xrealloc(x->listen_lines, (c->n_listen + 1) * sizeof(*x->listen_lines));
	x->listen_lines[c->n_listen] = (int)config_setting_source_line(group);
	l = &c->listen[c->n_listen++];
	memset(l, 0, sizeof(*l));
	conf_set_defaults(CONF_LISTEN, l);
	x->at[CONF_LISTEN] = l;
	conf_read_group(x, CONF_LISTEN, group);
}

void
conf_parse_listens(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	(void)member;
	group_each(x, r, s, group_read_listen);
}

static void
group_read_tool(struct conf_ctx *x, const config_setting_t *group)
{
	struct conf_extra *extra = x->at[CONF_EXTRA];
	struct conf_shape_row *row;

	extra->rows =
	    mem_xrealloc(extra->rows, (extra->n_rows + 1) * sizeof(*extra->rows));
	row = &extra->rows[extra->n_rows];
	*row = (struct conf_shape_row){.line = (int)config_setting_source_line(group),
	    .order = (unsigned)extra->n_rows};
	extra->n_rows++;
	x->at[CONF_SHAPE] = &row->s;
	conf_read_group(x, CONF_SHAPE, group);
	conf_finish_tool(x, group);
}

void
conf_parse_tools(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	(void)member;
	group_each(x, r, s, group_read_tool);
}

static void
group_read_profile(struct conf_ctx *x, const config_setting_t *group)
{
	struct conf *c = x->c;
	const char *name = config_setting_name(group);
	struct profile_conf *p = mem_xcalloc(1, sizeof(*p));
	size_t at = strcmp(name, "default") == 0 ? 0 : c->n_profiles;

	p->name = mem_xstrdup(name);
	c->profiles =
	    mem_xrealloc(c->profiles, (c->n_profiles + 1) * sizeof(*c->profiles));
	memmove(c->profiles + at + 1, c->profiles + at,
	    (c->n_profiles - at) * sizeof(*c->profiles));
	c->profiles[at] = p;
	c->n_profiles++;
	x->at[CONF_PROFILE] = p;
	conf_read_group(x, CONF_PROFILE, group);
}

void
conf_parse_profiles(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	if (n > CAP_PROFILES)
		conf_error(x, (int)config_setting_source_line(s),
		    "has more than %d profiles", CAP_PROFILES);
	for (int i = 0; i < n && i < CAP_PROFILES; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push(x, config_setting_name(e));

		if (!config_setting_is_group(e))
			conf_error(x, (int)config_setting_source_line(e),
			    "want a group, not %s", conf_setting_type(e));
		else if (strlen(config_setting_name(e)) > CONF_NAME_MAX)
			conf_error(x, (int)config_setting_source_line(e),
			    "the name is longer than %d bytes", CONF_NAME_MAX);
		else
			group_read_profile(x, e);
		conf_pop(x, old);
	}
}

static bool
listen_has_path(const struct conf_listen *l, const char *path)
{
	return path && (strcmp(l->path, path) == 0 ||
			   (l->sse_path && strcmp(l->sse_path, path) == 0));
}

static void
listen_check(struct conf_ctx *x, size_t at)
{
	const struct conf *c = x->c;
	const struct conf_listen *l = &c->listen[at];
	int line = x->listen_lines[at];
	bool loopback = true, known;

	known = !l->profile || strcmp(l->profile, "default") == 0;
	for (size_t i = 0; i < c->n_profiles && !known; i++)
		known = strcmp(c->profiles[i]->name, l->profile) == 0;
	if (!known)
		conf_error(
		    x, line, "profile: there is no profile %s", conf_label(l->profile));
	if (l->sse_path && strcmp(l->sse_path, l->path) == 0)
		conf_error(x, line, "sse_path: it must not be path");
	if (!l->address || listener_check(l->address, &loopback, NULL) != MV_OK)
		return;
	if (!loopback &&
	    (!l->allow_unauthenticated || !l->allowed_hosts || !l->allowed_hosts[0]))
		conf_error(x, line,
		    "an address beyond loopback wants allow_unauthenticated = true, "
		    "which lets everybody who reaches it call every tool, and "
		    "allowed_hosts");
	for (size_t i = 0; i < at; i++) {
		if (!c->listen[i].address ||
		    strcmp(c->listen[i].address, l->address) != 0 ||
		    (!listen_has_path(&c->listen[i], l->path) &&
			!listen_has_path(&c->listen[i], l->sse_path)))
			continue;
		conf_error(x, line, "address and path are those of listen.%zu", i);
		break;
	}
}

void
conf_check_listens(struct conf_ctx *x)
{
	for (size_t i = 0; i < x->c->n_listen; i++) {
		size_t old = conf_push(x, "listen"), index = conf_push_index(x, (int)i);

		listen_check(x, i);
		conf_pop(x, index);
		conf_pop(x, old);
	}
}
