/* SPDX-License-Identifier: MIT */
/*
 * All values of a snapshot, one after another, as texts.
 *
 * Owns: the buffers of a walk.
 * Driven by: conf_dump, conf_diff.
 * Invariants: in the order of the table; what is secret is in "real" alone, which is
 * wiped.
 */
#include "conf_value_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

size_t
conf_walk_push(struct conf_walk *w, const char *part)
{
	size_t old = w->path.len;

	if (old > 0)
		buf_add_char(&w->path, '.');
	buf_add_str(&w->path, part);
	return old;
}

void
conf_walk_pop(struct conf_walk *w, size_t len)
{
	w->path.len = len;
}

void
conf_walk_object(struct conf_walk *w, const struct conf_row *r, bool end)
{
	struct conf_item item = {.row = r, .path = buf_cstr(&w->path), .end = end};

	/* What begins also ends, whatever it is called. */
	if (!item.path) {
		w->lost = true;
		item.path = "";
	}
	w->fn(w->arg, &item);
}

void
conf_walk_value(struct conf_walk *w, const struct conf_row *r)
{
	struct conf_item item = {.row = r, .path = buf_cstr(&w->path)};

	item.shown = buf_cstr(&w->shown);
	item.real = buf_cstr(&w->real);
	if (item.path && item.shown && item.real) {
		item.is_default = r->dflt && strcmp(r->dflt, item.real) == 0;
		w->fn(w->arg, &item);
	} else {
		w->lost = true;
	}
	if (w->real.len > 0)
		explicit_bzero(w->real.data, w->real.len);
	buf_reset(&w->shown);
	buf_reset(&w->real);
}

void
conf_walk_rows(struct conf_walk *w, enum conf_where scope)
{
	struct conf_put p = {w->c, &w->shown, &w->real};
	/* Beyond upstreams no row has a kind. */
	const struct upstream_conf *u = w->at[CONF_UPSTREAM];
	unsigned kind = u ? CONF_K(u->kind) : 0;
	size_t first, end;

	conf_scope_range(scope, &first, &end);
	for (size_t i = first; i < end; i++) {
		const struct conf_row *r = &conf_rows[i];
		const struct conf_type *t = conf_type_of(r);
		const void *member = (const char *)w->at[r->where] + r->offset;
		size_t old;

		if (!CONF_IS_OF(r->flags, kind))
			continue;
		old = conf_walk_push(w, r->key);
		if (t->each)
			t->each(w, r, member);
		else if (t->put && t->put(&p, r, member))
			conf_walk_value(w, r);
		conf_walk_pop(w, old);
	}
}

/* An address that was expanded is not shown, so its place in the list stands for it. */
void
conf_each_listen(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	(void)member;
	for (size_t i = 0; i < w->c->n_listen; i++) {
		const struct conf_listen *l = &w->c->listen[i];
		char label[600];
		size_t old;

		if (conf_is_marked(w->c, l->address) || conf_is_marked(w->c, l->path))
			snprintf(label, sizeof(label), "%zu", i);
		else
			snprintf(label, sizeof(label), "%s%s", l->address, l->path);
		old = conf_walk_push(w, label);
		w->at[CONF_LISTEN] = l;
		conf_walk_object(w, r, false);
		conf_walk_rows(w, CONF_LISTEN);
		conf_walk_object(w, r, true);
		conf_walk_pop(w, old);
	}
}

void
conf_each_upstream(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	(void)member;
	for (size_t i = 0; i < w->c->n_upstreams; i++) {
		size_t old = conf_walk_push(w, conf_label(w->c->upstreams[i]->name));

		w->at[CONF_UPSTREAM] = w->c->upstreams[i];
		w->at[CONF_EXTRA] = w->c->more->extras[i];
		w->at[CONF_OWN] = w->c->upstreams[i];
		conf_walk_object(w, r, false);
		conf_walk_rows(w, CONF_UPSTREAM);
		conf_walk_object(w, r, true);
		conf_walk_pop(w, old);
	}
}

void
conf_each_tool(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	const struct upstream_conf *u = w->at[CONF_UPSTREAM];

	(void)member;
	for (size_t i = 0; i < u->n_shapes; i++) {
		size_t old;

		if (u->shapes[i].is_found)
			continue; /* no file of the conf has it */
		old = conf_walk_push(w, conf_label(u->shapes[i].tool));
		w->at[CONF_SHAPE] = &u->shapes[i];
		conf_walk_object(w, r, false);
		conf_walk_rows(w, CONF_SHAPE);
		conf_walk_object(w, r, true);
		conf_walk_pop(w, old);
	}
}

void
conf_each_profile(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	(void)member;
	for (size_t i = 0; i < w->c->n_profiles; i++) {
		size_t old = conf_walk_push(w, conf_label(w->c->profiles[i]->name));

		w->at[CONF_PROFILE] = w->c->profiles[i];
		conf_walk_object(w, r, false);
		conf_walk_rows(w, CONF_PROFILE);
		conf_walk_object(w, r, true);
		conf_walk_pop(w, old);
	}
}

bool
conf_walk_all(
    const struct conf *c, void (*fn)(void *arg, const struct conf_item *item), void *arg)
{
	struct conf_walk w = {.c = c, .fn = fn, .arg = arg};

	buf_init(&w.path, 64 * 1024);
	buf_init(&w.shown, 8 * (size_t)CAP_CONF_BYTES);
	buf_init(&w.real, 8 * (size_t)CAP_CONF_BYTES);
	w.at[CONF_CONF] = c;
	conf_walk_rows(&w, CONF_CONF);
	buf_fini(&w.path);
	buf_fini(&w.shown);
	buf_fini(&w.real);
	return !w.lost;
}

struct dump {
	bool changed_only;
	struct buf *out;
};

static void
on_dump_item(void *arg, const struct conf_item *item)
{
	const struct dump *d = arg;

	if (!item->shown || (d->changed_only && item->is_default))
		return;
	buf_add_str(d->out, item->path);
	buf_add_str(d->out, " = ");
	buf_add_str(d->out, item->shown);
	buf_add_char(d->out, '\n');
}

void
conf_dump(const struct conf *c, bool changed_only, struct buf *out)
{
	struct dump d = {changed_only, out};

	if (!conf_walk_all(c, on_dump_item, &d))
		buf_add_str(out, CONF_WALK_LOST);
}
