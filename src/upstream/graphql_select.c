/* SPDX-License-Identifier: MIT */
/*
 * What is selected of a field when nobody has chosen: its leaves, and those of what it
 * leads to, down to a depth.
 *
 * Owns: the tree of selections until it is written.
 * Driven by: the generator.
 * Invariants: breadth first in the order of the schema, so that what is near is there
 * before the number is used up; no type within itself; an object counts from its first
 * leaf on, and one without is not written.
 */
#include "mcpvisor/graphql.h"

#include "graphql_priv.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define NODES_MAX 20000

/* What an inline fragment and __typename stand for is no field of the schema. */
enum node_kind { NODE_FIELD, NODE_ON, NODE_TYPENAME };

#define NONE SIZE_MAX

struct node {
	enum node_kind kind;
	const struct graphql_field *field; /* of a FIELD, but for the root's */
	const struct graphql_type *type;   /* that is selected from; NULL: a leaf */
	size_t parent, first, last, next;
	uint32_t level; /* objects from the root on; edges and the like are none */
	uint32_t braces;
	bool is_free;	/* it is one of those */
	bool is_used;	/* it is a leaf, or has one below */
	bool has_alias; /* a member of the union before has another type for it */
};

struct select {
	const struct graphql_schema *schema;
	const struct graphql_type *root; /* that the field is of */
	const struct graphql_generate_opts *o;
	struct node *v;
	size_t n;
	uint32_t n_used;
};

static void
select_add(struct select *s, size_t parent, struct node node)
{
	node.parent = parent;
	node.first = node.last = node.next = NONE;
	s->v = graphql_grow(s->v, s->n, sizeof(*s->v));
	s->v[s->n] = node;
	if (parent != NONE) {
		struct node *up = &s->v[parent];

		if (up->last != NONE)
			s->v[up->last].next = s->n;
		else
			up->first = s->n;
		up->last = s->n;
	}
	s->n++;
}

/* A leaf, and what is around it and has none yet, unless those are too many. */
static void
select_leaf(struct select *s, size_t parent, struct node leaf)
{
	uint32_t cost = 1;

	for (size_t i = parent; i != NONE && !s->v[i].is_used; i = s->v[i].parent)
		cost += s->v[i].kind == NODE_FIELD && s->v[i].parent != NONE;
	if (cost > s->o->max_fields - s->n_used || s->n >= NODES_MAX)
		return;
	for (size_t i = parent; i != NONE && !s->v[i].is_used; i = s->v[i].parent)
		s->v[i].is_used = true;
	s->n_used += cost;
	leaf.is_used = true;
	select_add(s, parent, leaf);
}

static bool
select_is_leaf(const struct graphql_type *ty)
{
	return ty->kind == GRAPHQL_SCALAR || ty->kind == GRAPHQL_ENUM;
}

static bool
select_is_inside(const struct select *s, size_t at, const struct graphql_type *ty)
{
	while (at != NONE && s->v[at].type != ty)
		at = s->v[at].parent;
	return at != NONE || ty == s->root;
}

static bool
is_one_of(const char *name, const char *const *words)
{
	while (*words != NULL && strcmp(name, *words) != 0)
		words++;
	return *words != NULL;
}

/* Parts of a connection cost no level of their own. */
static bool
select_is_free(const struct node *up, const char *name)
{
	static const char *const parts[] = {"edges", "nodes", "pageInfo", NULL};

	if (!up->is_free)
		return is_one_of(name, parts);
	return strcmp(up->field->name, "edges") == 0 && strcmp(name, "node") == 0;
}

static void
select_object(struct select *s, size_t parent, const struct graphql_field *f,
    const struct graphql_type *ty)
{
	const struct node *up = &s->v[parent];
	bool is_free = select_is_free(up, f->name);
	struct node node = {.field = f, .type = ty, .is_free = is_free};

	node.level = up->level + !is_free;
	node.braces = up->braces + 1;
	if (node.level <= s->o->depth && node.braces < GRAPHQL_DEPTH_MAX - 2 &&
	    s->n < NODES_MAX && !select_is_inside(s, parent, ty))
		select_add(s, parent, node);
}

/* Whether an answer would have two things under one key: a member of the union before
 * selects a field of that name that has another type. */
static bool
select_clashes(const struct select *s, size_t on, const struct graphql_field *f)
{
	size_t i, j;

	for (i = s->v[s->v[on].parent].first; i != NONE && i != on; i = s->v[i].next) {
		for (j = s->v[i].first; j != NONE; j = s->v[j].next) {
			if (s->v[j].kind == NODE_FIELD &&
			    strcmp(s->v[j].field->name, f->name) == 0 &&
			    strcmp(s->v[j].field->type, f->type) != 0)
				return true;
		}
	}
	return false;
}

static void
select_fields(struct select *s, size_t at)
{
	bool is_member = s->v[at].kind == NODE_ON;
	const struct graphql_type *ty = s->v[at].type, *to;

	for (size_t i = 0; i < ty->n_fields; i++) {
		const struct graphql_field *f = &ty->fields[i];

		to = graphql_type_named(s->schema, f->type);
		if (to == NULL || f->is_deprecated || f->needs_args)
			continue;
		if (!select_is_leaf(to)) {
			if (!is_member)
				select_object(s, at, f, to);
			continue;
		}
		select_leaf(s, at,
		    (struct node){
			.field = f, .has_alias = is_member && select_clashes(s, at, f)});
	}
}

static void
select_members(struct select *s, size_t at)
{
	char *const *possible = s->v[at].type->possible;

	for (size_t i = 0; possible[i] != NULL && s->n < NODES_MAX; i++) {
		const struct graphql_type *ty = graphql_type_find(s->schema, possible[i]);
		struct node on = {.kind = NODE_ON, .type = ty};

		if (ty == NULL || ty->kind != GRAPHQL_OBJECT)
			continue;
		select_add(s, at, on);
		select_fields(s, s->n - 1);
	}
}

/* ---- writing ---- */

static void
select_put_name(const struct select *s, const struct node *node, struct buf *out)
{
	switch (node->kind) {
	case NODE_FIELD:
		if (node->has_alias)
			buf_addf(out, "%s_%s: ", s->v[node->parent].type->name,
			    node->field->name);
		buf_add_str(out, node->field->name);
		return;
	case NODE_ON:
		buf_addf(out, "... on %s", node->type->name);
		return;
	case NODE_TYPENAME:
		buf_add_str(out, "__typename");
		return;
	}
}

/* The first of node and those after it that is written. */
static size_t
select_used(const struct select *s, size_t node)
{
	while (node != NONE && !s->v[node].is_used)
		node = s->v[node].next;
	return node;
}

static void
select_put(const struct select *s, struct buf *out)
{
	size_t at = select_used(s, s->v[0].first);

	buf_add_str(out, " {");
	while (at != 0) {
		const struct node *node = &s->v[at];
		size_t below, next = NONE;

		buf_add_char(out, ' ');
		select_put_name(s, node, out);
		below = select_used(s, node->first);
		if (below != NONE) {
			buf_add_str(out, " {");
			at = below;
			continue;
		}
		while (at != 0 && (next = select_used(s, s->v[at].next)) == NONE) {
			buf_add_str(out, " }");
			at = s->v[at].parent;
		}
		at = at != 0 ? next : 0;
	}
}

bool
graphql_put_selection(const struct graphql_schema *schema, enum graphql_op op,
    const struct graphql_type *ty, const struct graphql_generate_opts *o, struct buf *out)
{
	struct select s = {.schema = schema, .root = graphql_root(schema, op), .o = o};
	bool is_used;

	if (o->depth == 0 || ty == s.root)
		return false;
	select_add(&s, NONE, (struct node){.type = ty, .level = 1, .braces = 1});
	for (size_t i = 0; i < s.n; i++) {
		if (s.v[i].type == NULL || s.v[i].kind != NODE_FIELD)
			continue;
		if (s.v[i].type->kind != GRAPHQL_OBJECT)
			select_leaf(&s, i, (struct node){.kind = NODE_TYPENAME});
		if (s.v[i].type->kind == GRAPHQL_UNION)
			select_members(&s, i);
		else
			select_fields(&s, i);
	}
	is_used = s.v[0].is_used;
	if (is_used)
		select_put(&s, out);
	mem_free(s.v);
	return is_used;
}
