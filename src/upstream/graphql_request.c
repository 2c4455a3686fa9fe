/* SPDX-License-Identifier: MIT */
/*
 * The document that is sent: an operation and the fragments that it reaches.
 *
 * Owns: an index of fragments while it is put together.
 * Driven by: whoever makes requests.
 * Invariants: each fragment is visited once, without recursion, however long a chain of
 * them is; one that is on the way to itself ends it.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

enum reach_state { REACH_NOT, REACH_OPEN, REACH_DONE };

/* A fragment of one of the documents. */
struct reach {
	const struct graphql_fragment *f;
	size_t order;
	enum reach_state state;
	size_t next;		    /* of its spreads: to be looked at */
	struct reach *from;	    /* that it was opened for */
	uint32_t depth, n_selected; /* with all below; when it is done */
};

struct request {
	struct reach *v; /* by name */
	size_t n;
	struct mv_errtext *t;
};

static uint32_t
capped(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static int
reach_order(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;
	int by_name = strcmp(x->f->name, y->f->name);

	return by_name != 0 ? by_name : (x->order > y->order) - (x->order < y->order);
}

static int
reach_text_order(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

static void
request_index(struct request *r, const struct graphql_document *const *docs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->n += docs[i]->n_fragments;
	if (r->n == 0)
		return;
	r->v = mem_xcalloc(r->n, sizeof(*r->v));
	r->n = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < docs[i]->n_fragments; j++, r->n++)
			r->v[r->n] =
			    (struct reach){.f = &docs[i]->fragments[j], .order = r->n};
	}
	qsort(r->v, r->n, sizeof(*r->v), reach_order);
}

/* The first of that name; NULL: there is none, or not one alone. */
static struct reach *
request_find(struct request *r, const char *name)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(r->v[mid].f->name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->n || strcmp(r->v[lo].f->name, name) != 0) {
		mv_errtext_set(r->t, "fragment %.100s is nowhere", name);
		return NULL;
	}
	if (lo + 1 < r->n && strcmp(r->v[lo + 1].f->name, name) == 0) {
		mv_errtext_set(r->t, "two fragments are called %.100s", name);
		return NULL;
	}
	return &r->v[lo];
}

/* Adds what the spread s brings, which is below. */
static void
count_spread(uint32_t *depth, uint32_t *n_selected, const struct graphql_spread *s,
    const struct reach *below)
{
	uint32_t deep = capped((uint64_t)s->above + below->depth);

	if (*depth < deep)
		*depth = deep;
	*n_selected = capped(*n_selected + (uint64_t)s->times * below->n_selected);
}

/* Looks at the next thing that at spreads and goes there, or, after the last one, back.
 * False: there is an error. */
static bool
request_step(struct request *r, struct reach **here)
{
	struct reach *at = *here, *to;

	if (at->state == REACH_NOT) {
		at->state = REACH_OPEN;
		at->depth = at->f->depth;
		at->n_selected = at->f->n_selected;
	}
	if (at->next == at->f->n_spreads) {
		at->state = REACH_DONE;
		*here = at->from;
		return true;
	}
	to = request_find(r, at->f->spreads[at->next].name);
	if (to == NULL)
		return false;
	if (to->state == REACH_OPEN) {
		mv_errtext_set(r->t, "fragment %.100s spreads itself", to->f->name);
		return false;
	}
	if (to->state == REACH_NOT) {
		to->from = at;
		*here = to;
		return true;
	}
	count_spread(&at->depth, &at->n_selected, &at->f->spreads[at->next], to);
	at->next++;
	return true;
}

/* All that at spreads, and it. */
static bool
request_reach(struct request *r, struct reach *at)
{
	while (at != NULL) {
		if (!request_step(r, &at))
			return false;
	}
	return true;
}

static void
request_put(struct request *r, const struct graphql_operation *op, struct buf *out)
{
	buf_add_str(out, op->text);
	if (r->n > 0)
		qsort(r->v, r->n, sizeof(*r->v), reach_text_order);
	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].state != REACH_DONE)
			continue;
		buf_add_char(out, '\n');
		buf_add_str(out, r->v[i].f->text);
	}
}

bool
/* NOLINTNEXTLINE(readability-function-size): as its contract has it */
graphql_put_request(struct buf *out, const struct graphql_operation *op,
    const struct graphql_document *const *docs, size_t n_docs, uint32_t *depth,
    uint32_t *n_selected, struct mv_errtext *t)
{
	struct request r = {.t = t};
	uint32_t deep = op->depth, many = op->n_selected;
	bool is_sound = true;

	if (op->n_spreads > 0)
		request_index(&r, docs, n_docs);
	for (size_t i = 0; i < op->n_spreads && is_sound; i++) {
		struct reach *to = request_find(&r, op->spreads[i].name);

		is_sound =
		    to != NULL && (to->state == REACH_DONE || request_reach(&r, to));
		if (is_sound)
			count_spread(&deep, &many, &op->spreads[i], to);
	}
	if (is_sound)
		request_put(&r, op, out);
	if (is_sound && depth != NULL)
		*depth = deep;
	if (is_sound && n_selected != NULL)
		*n_selected = many;
	mem_free(r.v);
	return is_sound;
}
