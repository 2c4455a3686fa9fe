/* SPDX-License-Identifier: MIT */
/*
 * Who the upstreams take whom for.
 *
 * Owns: two tables, of answers and of states, each with a list of its entries, oldest
 * first.
 * Driven by: the gateway's calls, and whatever makes an answer worthless.
 * Invariants: only a whole answer of somebody is kept, and only for the principal, the
 * credentials and the very bytes that it was the answer to; both tables are bounded, and
 * the oldest goes first; an answer that is not kept costs no more than one call.
 */
#include "mcpvisor/identity_gate.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* Of both tables. The key begins with principal and upstream, each with its NUL. */
struct gate_node {
	struct gate_node *prev, *next;
	char *key;
	size_t key_len;
	/* Of an answer. */
	char *result;
	size_t len;
	uint64_t at_ms;
	/* Of a state. */
	struct identity_state state;
};

struct gate_table {
	struct strmap *map;
	struct gate_node *first, *last;
	size_t bytes;
};

struct identity_gate {
	struct gate_table answers, states;
	struct buf key;
};

/* ---- tables ---- */

static size_t
node_bytes(const struct gate_node *n)
{
	/* The map has a copy of the key. */
	return sizeof(*n) + 2 * n->key_len + n->len;
}

static void
table_unlink(struct gate_table *t, struct gate_node *n)
{
	*(n->prev != NULL ? &n->prev->next : &t->first) = n->next;
	*(n->next != NULL ? &n->next->prev : &t->last) = n->prev;
}

static void
table_append(struct gate_table *t, struct gate_node *n)
{
	n->prev = t->last;
	n->next = NULL;
	*(t->last != NULL ? &t->last->next : &t->first) = n;
	t->last = n;
}

static void
node_free(struct gate_node *n)
{
	if (n == NULL)
		return;
	/* Both may be somebody's. */
	mem_free_secret(n->key, n->key_len);
	mem_free_secret(n->result, n->len);
	mem_free(n);
}

static void
table_drop(struct gate_table *t, struct gate_node *n)
{
	(void)strmap_del(t->map, n->key, n->key_len);
	table_unlink(t, n);
	t->bytes -= node_bytes(n);
	node_free(n);
}

static void
table_fini(struct gate_table *t)
{
	while (t->first != NULL)
		table_drop(t, t->first);
	strmap_free(t->map);
}

/* result may be absent. NULL: memory is short. */
static struct gate_node *
table_put(struct gate_table *t, const struct buf *key, struct jtext result)
{
	struct gate_node *n = mem_try(sizeof(*n));

	if (n == NULL)
		return NULL;
	memset(n, 0, sizeof(*n));
	n->key = mem_try(key->len);
	n->result = result.n > 0 ? mem_try(result.n) : NULL;
	if (n->key == NULL || (result.n > 0 && n->result == NULL))
		goto out;
	n->key_len = key->len;
	memcpy(n->key, key->data, key->len);
	n->len = result.n;
	if (result.n > 0)
		memcpy(n->result, result.p, result.n);
	if (!strmap_put(t->map, n->key, n->key_len, n))
		goto out;
	table_append(t, n);
	t->bytes += node_bytes(n);
	return n;
out:
	node_free(n);
	return NULL;
}

static void
table_trim(struct gate_table *t, size_t entries, size_t bytes)
{
	while (t->first != NULL && (strmap_count(t->map) > entries || t->bytes > bytes))
		table_drop(t, t->first);
}

static const char *
node_upstream(const struct gate_node *n)
{
	return n->key + strlen(n->key) + 1;
}

static bool
node_is_of(const struct gate_node *n, const char *principal, const char *upstream)
{
	return (principal == NULL || strcmp(n->key, principal) == 0) &&
	       (upstream == NULL || strcmp(node_upstream(n), upstream) == 0);
}

static void
table_drop_of(struct gate_table *t, const char *principal, const char *upstream)
{
	struct gate_node *next;

	for (struct gate_node *n = t->first; n != NULL; n = next) {
		next = n->next;
		if (node_is_of(n, principal, upstream))
			table_drop(t, n);
	}
}

/* ---- keys ---- */

/* False: it cannot be one. */
static bool
key_begin(struct buf *key, const char *principal, const char *upstream)
{
	buf_reset(key);
	if (principal == NULL)
		return false;
	buf_add(key, principal, strlen(principal) + 1);
	buf_add(key, upstream, strlen(upstream) + 1);
	return key->err == MV_OK;
}

static bool
key_set(struct buf *key, const struct identity_key *k)
{
	/* Parts of fixed size first, so that no two questions have the same bytes. */
	const uint64_t parts[] = {k->generation, k->is_modern, k->tool.n};

	if (!key_begin(key, k->principal, k->upstream))
		return false;
	buf_add(key, parts, sizeof(parts));
	buf_add(key, k->tool.p, k->tool.n);
	buf_add(key, k->arguments.p, k->arguments.n);
	return key->err == MV_OK;
}

static struct gate_node *
find(const struct gate_table *t, const struct buf *key)
{
	return strmap_get(t->map, key->data, key->len);
}

/* ---- states ---- */

static struct gate_node *
state_node(struct identity_gate *g, const char *principal, const char *upstream)
{
	static const struct jtext none;
	struct gate_node *n;

	if (!key_begin(&g->key, principal, upstream))
		return NULL;
	n = find(&g->states, &g->key);
	if (n != NULL) {
		table_unlink(&g->states, n);
		table_append(&g->states, n);
		return n;
	}
	n = table_put(&g->states, &g->key, none);
	if (n != NULL)
		n->state.is = IDENTITY_UNKNOWN;
	table_trim(&g->states, CAP_IDENTITY_STATES, SIZE_MAX);
	return n;
}

static void
state_note(struct identity_gate *g, const char *principal, const char *upstream,
    enum identity_verdict v, uint64_t now_ms)
{
	struct gate_node *n =
	    v == IDENTITY_NONE ? NULL : state_node(g, principal, upstream);

	if (n == NULL)
		return;
	if (v == IDENTITY_ERROR)
		n->state.error_ms = now_ms;
	if (v != IDENTITY_RESOLVED && v != IDENTITY_UNRESOLVED)
		return;
	if (n->state.is != v)
		n->state.since_ms = now_ms;
	n->state.is = v;
	n->state.n_unresolved = v == IDENTITY_RESOLVED ? 0 : n->state.n_unresolved + 1;
}

bool
identity_gate_state(const struct identity_gate *g, const char *principal,
    const char *upstream, struct identity_state *s)
{
	const struct gate_node *n = NULL;
	struct buf key;

	memset(s, 0, sizeof(*s));
	s->is = IDENTITY_UNKNOWN;
	buf_init(&key, CAP_IDENTITY_KEY_BYTES);
	if (key_begin(&key, principal, upstream))
		n = find(&g->states, &key);
	buf_fini(&key);
	if (n != NULL)
		*s = n->state;
	return n != NULL;
}

void
identity_gate_count(
    const struct identity_gate *g, const char *upstream, struct identity_counts *c)
{
	memset(c, 0, sizeof(*c));
	for (const struct gate_node *n = g->states.first; n != NULL; n = n->next) {
		if (!node_is_of(n, NULL, upstream))
			continue;
		c->resolved += n->state.is == IDENTITY_RESOLVED;
		c->unresolved += n->state.is == IDENTITY_UNRESOLVED;
		c->unknown += n->state.is == IDENTITY_UNKNOWN;
	}
}

/* ---- answers ---- */

static bool
may_keep(const struct identity_key *k, const struct identity_answer *a)
{
	return a->verdict == IDENTITY_RESOLVED && !a->is_partial && !a->is_retry &&
	       a->generation == k->generation && a->result.n > 0 &&
	       a->result.n <= a->max_bytes &&
	       /* It shall not drive out all others for nothing. */
	       a->result.n <= CAP_IDENTITY_BYTES / 4;
}

bool
identity_gate_answer(struct identity_gate *g, const struct identity_key *k,
    const struct identity_answer *a)
{
	struct gate_node *n;

	if (a->verdict == IDENTITY_NONE)
		return false;
	state_note(g, k->principal, k->upstream, a->verdict, a->now_ms);
	if (!key_set(&g->key, k))
		return false;
	n = find(&g->answers, &g->key);
	if (n != NULL)
		table_drop(&g->answers, n);
	if (!may_keep(k, a))
		return false;
	n = table_put(&g->answers, &g->key, a->result);
	if (n == NULL)
		return false;
	n->at_ms = a->now_ms;
	table_trim(&g->answers, CAP_IDENTITY_ENTRIES, CAP_IDENTITY_BYTES);
	return true;
}

struct jtext
identity_gate_get(struct identity_gate *g, const struct identity_key *k, uint64_t now_ms,
    uint64_t max_age_ms, uint64_t *age_ms)
{
	struct jtext none = {NULL, 0};
	struct gate_node *n;

	n = key_set(&g->key, k) ? find(&g->answers, &g->key) : NULL;
	if (n == NULL)
		return none;
	*age_ms = now_ms - n->at_ms;
	if (*age_ms >= max_age_ms) {
		table_drop(&g->answers, n);
		return none;
	}
	return (struct jtext){n->result, n->len};
}

void
identity_gate_refused(
    struct identity_gate *g, const char *principal, const char *upstream, uint64_t now_ms)
{
	if (principal == NULL)
		return;
	identity_gate_drop(g, principal, upstream);
	state_note(g, principal, upstream, IDENTITY_UNRESOLVED, now_ms);
}

void
identity_gate_drop(struct identity_gate *g, const char *principal, const char *upstream)
{
	table_drop_of(&g->answers, principal, upstream);
}

void
identity_gate_forget(struct identity_gate *g, const char *principal, const char *upstream)
{
	table_drop_of(&g->answers, principal, upstream);
	table_drop_of(&g->states, principal, upstream);
}

size_t
identity_gate_entries(const struct identity_gate *g, size_t *bytes)
{
	*bytes = g->answers.bytes;
	return strmap_count(g->answers.map);
}

struct identity_gate *
identity_gate_new(void)
{
	struct identity_gate *g = mem_xcalloc(1, sizeof(*g));

	g->answers.map = strmap_new();
	g->states.map = strmap_new();
	buf_init(&g->key, CAP_IDENTITY_KEY_BYTES);
	return g;
}

void
identity_gate_free(struct identity_gate *g)
{
	if (g == NULL)
		return;
	table_fini(&g->answers);
	table_fini(&g->states);
	buf_fini(&g->key);
	mem_free(g);
}
