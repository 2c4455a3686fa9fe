/* SPDX-License-Identifier: MIT */
/*
 * URLs that clients were sent to, so that the word that one is done with finds its way.
 *
 * Owns: which client was sent where, oldest first.
 * Driven by: questions and errors that send a client to a URL, notifications of
 * upstreams, clients that leave.
 * Invariants: the word reaches the one client that it is for, or nobody; there are at
 * most CAP_ELICITATIONS.
 * Spec: 2025-11-25 client/elicitation, URL Mode.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

#define KEY_BYTES (CAP_ID_BYTES * 8)

/* A client that was sent to a URL. */
struct elicitation {
	struct elicitation *next, **prev;
	struct gateway_observer *o;
	size_t len;
	char key[]; /* of its upstream's name and its id */
};

static void
elicitation_free(struct gateway *g, struct elicitation *e)
{
	*e->prev = e->next;
	if (e->next != NULL)
		e->next->prev = e->prev;
	else
		g->elicitations_tail = e->prev;
	g->n_elicitations--;
	mem_free(e);
}

/* Ids are an upstream's own, whatever instance of it gave them out. */
static bool
elicitation_key(const struct upstream *u, struct jtext id, struct buf *key)
{
	if (!json_is_id(id))
		return false;
	buf_add(key, upstream_name(u), strlen(upstream_name(u)) + 1);
	json_id_key(id, key);
	return key->err == MV_OK;
}

void
gateway_note_elicitation(
    struct gateway *g, struct gateway_observer *o, struct upstream *u, struct jtext id)
{
	struct elicitation *e = NULL;
	struct buf key;

	buf_init(&key, KEY_BYTES);
	if (elicitation_key(u, id, &key))
		e = mem_try(sizeof(*e) + key.len);
	if (e != NULL) {
		*e = (struct elicitation){.o = o, .len = key.len};
		for (size_t i = 0; i < key.len; i++)
			e->key[i] = key.data[i];
		e->prev = g->elicitations_tail;
		*g->elicitations_tail = e;
		g->elicitations_tail = &e->next;
		if (++g->n_elicitations > CAP_ELICITATIONS)
			elicitation_free(g, g->elicitations);
	}
	buf_fini(&key);
}

/* Forgets those with this key that may be sole's (NULL: anybody's); the one client that
 * they are of, or NULL: nobody's, or of several. */
static struct gateway_observer *
elicitation_take(
    struct gateway *g, const struct buf *key, const struct gateway_observer *sole)
{
	struct gateway_observer *o = NULL;
	struct elicitation *next;
	bool several = false;

	for (struct elicitation *e = g->elicitations; e != NULL; e = next) {
		next = e->next;
		if (e->len != key->len || memcmp(e->key, key->data, e->len) != 0 ||
		    (sole != NULL && e->o != sole))
			continue;
		several |= o != NULL && o != e->o;
		o = e->o;
		elicitation_free(g, e);
	}
	return several ? NULL : o;
}

void
gateway_on_elicited(struct member *m, const struct link_msg *msg)
{
	struct gateway *g = m->g;
	struct jtext id = json_member(
	    jtext_of(msg->base, msg->json->slot[JSON_PARAMS]), "elicitationId");
	struct gateway_observer *o = member_sole_client(m), *named = NULL;
	struct buf key;

	buf_init(&key, KEY_BYTES);
	if (elicitation_key(m->u, id, &key))
		named = elicitation_take(g, &key, o);
	buf_fini(&key);
	if (o == NULL)
		o = named;
	if (o != NULL && o->on_elicited != NULL)
		o->on_elicited(o->arg, m->u, msg);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

void
elicitations_leave(struct gateway *g, const struct gateway_observer *o)
{
	struct elicitation *next;

	for (struct elicitation *e = g->elicitations; e != NULL; e = next) {
		next = e->next;
		if (e->o == o)
			elicitation_free(g, e);
	}
}

void
elicitations_init(struct gateway *g)
{
	g->elicitations_tail = &g->elicitations;
}

void
elicitations_fini(struct gateway *g)
{
	while (g->elicitations != NULL)
		elicitation_free(g, g->elicitations);
}
