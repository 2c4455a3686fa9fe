/* SPDX-License-Identifier: MIT */
/*
 * What a reload would change.
 *
 * Both snapshots are flattened to lists of paths with their values; a path that only one
 * has, or that has another value in the other, is a line. An object that only one has
 * (an upstream, a profile, an endpoint, a shape) is one line and not one for each value.
 *
 * Owns: copies of the texts while it runs; they are wiped.
 * Driven by: reload.
 * Invariants: lines are in the order of the newer snapshot, and what is gone stands
 * behind what came before it.
 */
#include "conf_priv.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"

struct diff_item {
	const struct conf_row *row;
	char *path, *shown, *real; /* shown NULL: an object */
	size_t order;		   /* in its list */
	size_t object;		   /* that it is in, by order + 1; 0: none */
	size_t last;		   /* item of the object that it is; else itself */
	const struct diff_item *other;
};

struct diff_line {
	size_t place;
	bool gone;
	size_t order;
	const struct diff_item *d;
};

struct diff_list {
	struct diff_item *v;
	size_t n, cap;
	size_t object; /* that is open, by order + 1 */
	const struct diff_item **by_path;
};

static void
on_diff_item(void *arg, const struct conf_item *item)
{
	struct diff_list *l = arg;
	struct diff_item *d;

	if (item->end) {
		l->v[l->object - 1].last = l->n - 1;
		l->object = l->v[l->object - 1].object;
		return;
	}
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 256;
		l->v = mem_xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	d = &l->v[l->n++];
	*d = (struct diff_item){
	    .row = item->row, .order = l->n - 1, .last = l->n - 1, .object = l->object};
	d->path = mem_xstrdup(item->path);
	if (item->shown) {
		d->shown = mem_xstrdup(item->shown);
		d->real = mem_xstrdup(item->real);
	} else {
		l->object = l->n;
	}
}

static int
diff_order(const void *a, const void *b)
{
	const struct diff_item *const *p = a, *const *q = b;
	int d = strcmp((*p)->path, (*q)->path);

	if (d != 0)
		return d;
	/* An object is none of its values. */
	return ((*p)->shown != NULL) - ((*q)->shown != NULL);
}

static bool
diff_read(struct diff_list *l, const struct conf *c)
{
	bool whole;

	*l = (struct diff_list){.n = 0};
	whole = conf_walk_all(c, on_diff_item, l);
	l->by_path = mem_xcalloc(l->n + 1, sizeof(*l->by_path));
	for (size_t i = 0; i < l->n; i++)
		l->by_path[i] = &l->v[i];
	qsort(l->by_path, l->n, sizeof(*l->by_path), diff_order);
	return whole;
}

static void
diff_fini(struct diff_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct diff_item *d = &l->v[i];

		mem_free(d->path);
		mem_free(d->shown);
		conf_set_string(&d->real, NULL);
	}
	mem_free(l->v);
	mem_free(l->by_path);
}

static void
diff_match(struct diff_list *l, const struct diff_list *others)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct diff_item *key = &l->v[i];
		const struct diff_item **found = bsearch(&key, others->by_path, others->n,
		    sizeof(*others->by_path), diff_order);

		l->v[i].other = found ? *found : NULL;
	}
}

/* Whether an object that it is in is in one list only. */
static bool
diff_is_inside(const struct diff_list *l, const struct diff_item *d)
{
	return d->object > 0 &&
	       (!l->v[d->object - 1].other || diff_is_inside(l, &l->v[d->object - 1]));
}

static void
diff_put_effect(const struct conf_row *r, struct buf *out)
{
	static const char *const texts[] = {
	    [CONF_LIVE] = "",
	    [CONF_CONN] = " (for new connections)",
	    [CONF_RESTARTS_UPSTREAM] = " (restarts it)",
	    [CONF_NEEDS_RESTART] = " (needs a restart)",
	};

	buf_add_str(out, texts[r->reload]);
	buf_add_char(out, '\n');
}

/* "~ path: OLD -> NEW" */
static void
diff_put_change(
    const struct diff_item *any, const char *a, const char *b, struct buf *out)
{
	buf_add_str(out, "~ ");
	buf_add_str(out, any->path);
	buf_add_str(out, ": ");
	if (strcmp(a, b) == 0) {
		buf_add_str(out, "changed");
	} else {
		buf_add_str(out, a);
		buf_add_str(out, " -> ");
		buf_add_str(out, b);
	}
	diff_put_effect(any->row, out);
}

static void
diff_put_object(char sign, const struct diff_item *d, struct buf *out)
{
	buf_add_char(out, sign);
	buf_add_char(out, ' ');
	buf_add_str(out, d->path);
	buf_add_char(out, '\n');
}

/* Where in the other list the line of something that is gone belongs: behind what came
 * before it. seen has that place for each object that is open, by order + 1. */
static size_t
diff_place(size_t *seen, const struct diff_item *d)
{
	if (d->other) {
		seen[d->object] = d->other->last;
		seen[d->order + 1] = d->other->order;
	}
	return seen[d->object];
}

/* What is in one list only, as an object counts once. */
static bool
diff_is_alone(const struct diff_list *l, const struct diff_item *d)
{
	return !d->other && !diff_is_inside(l, d);
}

static int
diff_line_order(const void *a, const void *b)
{
	const struct diff_line *p = a, *q = b;

	if (p->place != q->place)
		return p->place < q->place ? -1 : 1;
	if (p->gone != q->gone)
		return p->gone ? 1 : -1;
	return p->order < q->order ? -1 : p->order > q->order;
}

static struct diff_line *
diff_lines(const struct diff_list *from, const struct diff_list *to, size_t *n)
{
	struct diff_line *v = mem_xcalloc(from->n + to->n + 1, sizeof(*v));
	size_t *seen = mem_xcalloc(from->n + 1, sizeof(*seen));

	*n = 0;
	for (size_t i = 0; i < to->n; i++) {
		const struct diff_item *d = &to->v[i];

		if (diff_is_alone(to, d) ||
		    (d->other && d->shown && strcmp(d->other->real, d->real) != 0))
			v[(*n)++] = (struct diff_line){i, false, i, d};
	}
	for (size_t i = 0; i < from->n; i++) {
		size_t place = diff_place(seen, &from->v[i]);

		if (diff_is_alone(from, &from->v[i]))
			v[(*n)++] = (struct diff_line){place, true, i, &from->v[i]};
	}
	qsort(v, *n, sizeof(*v), diff_line_order);
	mem_free(seen);
	return v;
}

static void
diff_put_line(const struct diff_line *l, struct buf *out)
{
	const struct diff_item *d = l->d;

	if (!d->shown)
		diff_put_object(l->gone ? '-' : '+', d, out);
	else if (l->gone)
		diff_put_change(d, d->shown, "(none)", out);
	else
		diff_put_change(d, d->other ? d->other->shown : "(none)", d->shown, out);
}

/* Lists are merged in the order of the upstreams that both have. */
static size_t
diff_put_moved(const struct diff_list *to, struct buf *out)
{
	const struct conf_row *r = conf_row_find(CONF_CONF, "upstream");
	size_t last = 0;

	for (size_t i = 0; i < to->n; i++) {
		const struct diff_item *d = &to->v[i];

		if (d->row != r || d->shown || !d->other)
			continue;
		if (d->other->order + 1 < last) {
			buf_add_str(out, "~ upstream: another order\n");
			return 1;
		}
		last = d->other->order + 1;
	}
	return 0;
}

size_t
conf_diff(const struct conf *from, const struct conf *to, struct buf *out)
{
	struct diff_list a, b;
	struct diff_line *lines;
	bool whole;
	size_t n;

	whole = diff_read(&a, from);
	whole = diff_read(&b, to) && whole;
	diff_match(&a, &b);
	diff_match(&b, &a);
	lines = diff_lines(&a, &b, &n);
	for (size_t i = 0; i < n; i++)
		diff_put_line(&lines[i], out);
	n += diff_put_moved(&b, out);
	if (!whole)
		buf_add_str(out, CONF_WALK_LOST);
	mem_free(lines);
	diff_fini(&a);
	diff_fini(&b);
	return n;
}
