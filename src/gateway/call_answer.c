/* SPDX-License-Identifier: MIT */
/*
 * What the result of a tool says: labelled by the rules of its upstream and tool, and
 * counted on the axis of answers.
 *
 * Owns: nothing; the labels are the gateway's until the call's end has been told.
 * Driven by: the end of a call.
 * Invariants: a result is looked at once; its bytes stay as they are, labels are edits.
 */
#include "call_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include <string.h>

/* Tools whose first suspect result has been told of. */
#define SUSPECTS_MAX 4096

/* The tool as its upstream defines it now. */
struct jtext
call_definition(const struct call *c)
{
	const struct route *r = c->route;
	const struct ulist *l;

	if (r == NULL || r->u == NULL)
		return (struct jtext){NULL, 0};
	l = upstream_list(r->u, LIST_TOOLS);
	/* It is mostly still where it was when the lists were merged. */
	if (r->item < l->n && jtext_is_equal(ulist_name(l, r->item), r->original))
		return ulist_def(l, r->item);
	for (uint32_t i = 0; i < l->n; i++)
		if (jtext_is_equal(ulist_name(l, i), r->original))
			return ulist_def(l, i);
	return (struct jtext){NULL, 0};
}

/* It may be one whose errors nobody sees: worth an operator's word, once a tool. */
static void
answer_suspect(const struct call *c)
{
	static const char hint[] =
	    "graphql = \"on\" labels such results, \"off\" is silent";
	struct gateway_answers *ga = gateway_answers(c->g);
	const char *name = upstream_name(c->u);
	struct buf key;
	bool is_first;

	metrics_add(METRIC_CALLS_SUSPECT, 1);
	if (c->route == NULL)
		return;
	if (ga->suspects == NULL)
		ga->suspects = strmap_new();
	buf_init(&key, CAP_URI_BYTES);
	buf_add(&key, name, strlen(name) + 1);
	json_put(&key, c->route->original);
	is_first = key.err == MV_OK &&
		   strmap_get(ga->suspects, key.data, key.len) == NULL &&
		   strmap_count(ga->suspects) < SUSPECTS_MAX &&
		   strmap_put(ga->suspects, key.data, key.len, ga);
	buf_fini(&key);
	if (!is_first)
		return;
	LOG_NOTICE("call", "result looks like a failed GraphQL answer",
	    "upstream=%s tool=%s hint=%s", LOG_ESC(name, strlen(name)),
	    LOG_ESC(c->route->published.p, c->route->published.n),
	    LOG_ESC(hint, sizeof(hint) - 1));
}

static void
answer_count(struct call *c, const struct outcome *o, size_t added)
{
	bool was_error = json_is_true(jtext_of(o->base, o->json->slot[JSON_IS_ERROR]));

	if (added > 0)
		metrics_add(METRIC_RESULTS_ADDED_BYTES, added);
	if (o->label->is_error && !was_error)
		metrics_add(METRIC_RESULTS_FLIPPED, 1);
	if (o->answer == ANSWER_PARTIAL)
		metrics_add(METRIC_CALLS_PARTIAL, 1);
	if (o->answer == ANSWER_NULL_IDENTITY)
		metrics_add(METRIC_CALLS_NULL_IDENTITY, 1);
	if (o->label->reason == LABEL_SUSPECT)
		answer_suspect(c);
	upstream_note_answer(c->u, o);
}

static enum outcome_answer
answer_of(const struct label *l, enum identity_verdict v)
{
	if (v == IDENTITY_UNRESOLVED)
		return ANSWER_NULL_IDENTITY;
	if (l->reason == LABEL_PARTIAL)
		return ANSWER_PARTIAL;
	return v == IDENTITY_RESOLVED || l->reason == LABEL_CLEAN ? ANSWER_FULL
								  : ANSWER_UNKNOWN;
}

static size_t
edits_bytes(const struct json_edits *ed)
{
	size_t n = 0;

	for (unsigned i = 0; i < ed->n; i++)
		n += ed->e[i].put_len - ed->e[i].len;
	return n;
}

/* One that has to be looked at. */
static void __attribute__((noinline))
call_label(const struct call *c, const struct label_conf *own, struct outcome *o)
{
	struct label_opts opts;

	label_opts_set(&opts, &upstream_conf_of(c->u)->label, own, call_definition(c));
	label_result(&gateway_answers(c->g)->label, &opts, o->base, o->json);
}

void
call_judge(struct call *c, struct outcome *o)
{
	const struct tool_shape *shape = c->route->shape;
	const struct label_conf *own = shape != NULL ? &shape->label : NULL;
	struct label *l = &gateway_answers(c->g)->label;
	enum identity_verdict verdict = IDENTITY_NONE;

	if (!label_is_settled(l, &upstream_conf_of(c->u)->label, own, o->base, o->json))
		call_label(c, own, o);
	o->label = l;
	if (!call_is_silent(c, l))
		verdict = call_note_identity(c, o);
	o->answer = answer_of(l, verdict);
	answer_count(c, o, edits_bytes(&l->edits));
}
