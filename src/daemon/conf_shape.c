/* SPDX-License-Identifier: MIT */
/*
 * Shapes of tools: tools.rename and tool rows about one tool become one.
 *
 * Owns: nothing; shapes are the upstream's.
 * Driven by: conf_upstream.c.
 * Invariants: the shapes of an upstream are sorted by tool, each tool once.
 */
#include "conf_priv.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"

static int
shape_order(const void *a, const void *b)
{
	const struct conf_shape_row *p = a, *q = b;
	int d = strcmp(p->s.tool, q->s.tool);

	if (d != 0)
		return d;
	if (p->is_rename != q->is_rename)
		return p->is_rename ? 1 : -1;
	return p->order < q->order ? -1 : p->order > q->order;
}

/* Takes a row into the shape of its tool. */
static void
shape_merge(struct conf_ctx *x, struct tool_shape *to, struct conf_shape_row *row)
{
	if (!row->is_rename) {
		conf_error(x, row->line, "tool: there is a shape of %s already",
		    conf_label(row->s.tool));
	} else if (to->name) {
		conf_error(x, row->line, "tools.rename: %s has a name already",
		    conf_label(row->s.tool));
	} else {
		to->name = row->s.name;
		row->s.name = NULL;
	}
}

void
conf_finish_shapes(struct conf_ctx *x)
{
	struct upstream_conf *u = x->at[CONF_UPSTREAM];
	struct conf_extra *extra = x->at[CONF_EXTRA];
	struct tool_shape *shapes;
	size_t n = 0, used = 0;

	/* A row without a tool has been reported. */
	for (size_t i = 0; i < extra->n_rows; i++) {
		if (extra->rows[i].s.tool)
			extra->rows[n++] = extra->rows[i];
		else
			tool_shape_fini(&extra->rows[i].s);
	}
	extra->n_rows = n;
	if (n == 0)
		return;
	qsort(extra->rows, n, sizeof(*extra->rows), shape_order);
	shapes = mem_xcalloc(n, sizeof(*shapes));
	for (size_t i = 0; i < n; i++) {
		struct conf_shape_row *row = &extra->rows[i];

		if (used > 0 && strcmp(shapes[used - 1].tool, row->s.tool) == 0) {
			shape_merge(x, &shapes[used - 1], row);
			tool_shape_fini(&row->s);
		} else {
			if (row->is_rename && x->kind == CONF_K_EXEC)
				conf_error(x, row->line,
				    "tools.rename: there is no tool %s",
				    conf_label(row->s.tool));
			shapes[used++] = row->s;
		}
	}
	u->shapes = shapes;
	u->n_shapes = used;
	mem_free(extra->rows);
	extra->rows = NULL;
	extra->n_rows = 0;
}
