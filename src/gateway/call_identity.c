/* SPDX-License-Identifier: MIT */
/*
 * Calls that ask an upstream who it acts for: answered from what is known where the conf
 * lets us, looked at where not.
 *
 * Owns: what a call's answer is noted under; an answer that was known, until its turn.
 * Driven by: call.c.
 * Invariants: an answer is one principal's, of one set of credentials; what nobody can be
 * named for is kept for nobody; whoever is refused is unresolved.
 */
#include "call_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/identity_gate.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>
#include <strings.h>

#define CACHE_KEY  "io.github.mcpvisor/cache"
#define CACHE_META "\"" CACHE_KEY "\":{\"ageMs\":%llu}"

/* What a call needs that asks who somebody is. */
struct call_identity {
	char principal[PRINCIPAL_BYTES];
	bool may_keep; /* its client is known: what it hears may be told again */
	bool is_retry; /* or its client was asked something on the way */
	bool is_modern;
	uint64_t generation;
	struct buf arguments;
	/* An answer that is known. */
	struct deferred turn;
	struct buf message;
	struct json_msg json;
};

static const struct identity_conf *
identity_conf_of(const struct call *c)
{
	return &upstream_conf_of(c->u)->identity;
}

/* Looked at once after each merge, when it is called. */
static bool
route_asks_identity(const struct call *c)
{
	struct route *r = c->route;
	struct buf name;

	if (r->identity == ROUTE_IDENTITY_UNKNOWN) {
		r->identity = ROUTE_IDENTITY_NO;
		buf_init(&name, CAP_URI_BYTES);
		if (json_string_decode(r->original, &name) && name.err == MV_OK &&
		    identity_is_tool(identity_conf_of(c), upstream_name(c->u),
			(struct jtext){name.data, name.len}, call_definition(c)))
			r->identity = ROUTE_IDENTITY_YES;
		buf_fini(&name);
	}
	return r->identity == ROUTE_IDENTITY_YES;
}

/* Of the very process or connection, too: two of them may have counted the same. */
static uint64_t
call_generation(const struct call *c)
{
	const uint64_t parts[] = {gateway_serial(c->g, c->u), upstream_generation(c->u)};

	return hash_stable(HASH_STABLE_SEED, parts, sizeof(parts));
}

static void
call_put_key(const struct call *c, struct identity_key *k)
{
	const struct call_identity *ci = c->identity;

	*k = (struct identity_key){.principal = ci->principal,
	    .upstream = upstream_name(c->u),
	    .generation = ci->generation,
	    .is_modern = ci->is_modern,
	    .tool = c->route->original,
	    .arguments = {ci->arguments.data, ci->arguments.len}};
}

static void
identity_free(struct call_identity *ci)
{
	if (ci == NULL)
		return;
	deferred_cancel(&ci->turn);
	buf_fini(&ci->arguments);
	buf_fini(&ci->message);
	mem_free(ci);
}

bool
call_forget_identity(struct call *c)
{
	struct call_identity *ci = c->identity;
	bool was_known = ci != NULL && ci->message.len > 0;

	c->identity = NULL;
	identity_free(ci);
	return was_known;
}

/* ---- what is known ---- */

static void
on_turn(void *arg)
{
	struct call *c = arg;
	struct call_identity *ci = c->identity;
	struct outcome o = {.kind = OUTCOME_RESULT, .answer = ANSWER_FULL};
	struct link_msg m;

	c->identity = NULL;
	o.err = link_scan(ci->message.data, ci->message.len, &ci->json, &m);
	if (o.err == MV_OK) {
		o.base = m.base;
		o.json = m.json;
		o.body = jtext_of(m.base, m.json->slot[JSON_RESULT]);
	} else {
		o.kind = OUTCOME_FAILED; /* it was well-formed when it was put together */
	}
	call_finish(c, &o);
	identity_free(ci);
}

/* The result with its age in its _meta, as a message. */
static void
put_known(struct buf *out, struct jtext result, uint64_t age_ms)
{
	struct jtext meta = json_member(result, "_meta"), key, value;
	bool has_meta = jtext_type(meta) == '{';
	struct jtext into = has_meta ? meta : result;
	struct json_iter it;

	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":");
	buf_add(out, result.p, (size_t)(into.p - result.p) + 1);
	if (!has_meta)
		buf_add_str(out, "\"_meta\":{");
	buf_addf(out, CACHE_META, (unsigned long long)age_ms);
	if (!has_meta)
		buf_add_char(out, '}');
	json_iter_init(&it, into);
	if (json_next_member(&it, &key, &value))
		buf_add_char(out, ',');
	buf_add(out, into.p + 1, (size_t)(result.p + result.n - into.p) - 1);
	buf_add_char(out, '}');
}

static bool
call_recall(struct call *c)
{
	struct call_identity *ci = c->identity;
	struct identity_key k;
	struct jtext known;
	uint64_t age_ms;

	/* Of one that does not run nobody knows who it will act for. */
	if (!ci->may_keep || ci->is_retry || upstream_state(c->u) != UPSTREAM_ST_READY)
		return false;
	ci->generation = call_generation(c);
	call_put_key(c, &k);
	known = identity_gate_get(gateway_answers(c->g)->identities, &k, clock_now_ms(),
	    identity_conf_of(c)->cache_ms, &age_ms);
	if (known.n == 0)
		return false;
	put_known(&ci->message, known, age_ms);
	if (ci->message.err != MV_OK) {
		buf_fini(&ci->message);
		return false;
	}
	metrics_add(METRIC_IDENTITY_HITS, 1);
	deferred_ask(&ci->turn);
	return true;
}

/* What a call brings that is an answer to something, or wants another kind of result. */
static bool
call_is_special(const struct upstream_call *req)
{
	static const enum json_slot slots[] = {
	    JSON_P_REQUEST_STATE, JSON_P_INPUT_RESPONSES, JSON_P_TASK};

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (req->json->slot[slots[i]].len != 0)
			return true;
	return false;
}

bool
call_ask_identity(struct call *c, const struct upstream_call *req)
{
	struct call_identity *ci;

	if (!route_asks_identity(c))
		return false;
	(void)call_forget_identity(c);
	ci = mem_xcalloc(1, sizeof(*ci));
	c->identity = ci;
	ci->may_keep = gateway_principal(c->g, c->u, ci->principal) && c->owner != NULL &&
		       !c->owner->is_crowd && identity_conf_of(c)->cache_ms > 0;
	ci->is_retry = call_is_special(req);
	ci->is_modern = req->json->slot[JSON_M_VERSION].len != 0;
	buf_init(&ci->arguments, CAP_IDENTITY_KEY_BYTES);
	buf_init(&ci->message, CAP_MESSAGE_BYTES);
	deferred_init(&ci->turn, gateway_loop(c->g), on_turn, c);
	if (req->arguments.put != NULL)
		buf_add(&ci->arguments, req->arguments.put, req->arguments.put_len);
	else
		json_put(&ci->arguments,
		    jtext_of(req->base, req->json->slot[JSON_P_ARGUMENTS]));
	if (ci->arguments.err != MV_OK)
		ci->may_keep = false;
	return call_recall(c);
}

void
call_note_sent(struct call *c)
{
	/* Not before: it may have been started for this. */
	c->identity->generation = call_generation(c);
}

void
call_note_asked(struct call *c)
{
	if (c->identity != NULL)
		c->identity->is_retry = true;
}

/* ---- what is learnt ---- */

/* It was refused for its credentials since c was sent, by HTTP or in its answer. */
static void
call_note_refusal(struct call *c, const struct outcome *o)
{
	char principal[PRINCIPAL_BYTES];
	bool refused = upstream_refusals(c->u) != c->refusals ||
		       (o->label != NULL && o->label->code[0] != '\0' &&
			   strcasecmp(o->label->code, "UNAUTHENTICATED") == 0);

	if (refused && gateway_principal(c->g, c->u, principal))
		identity_gate_refused(gateway_answers(c->g)->identities, principal,
		    upstream_name(c->u), clock_now_ms());
}

/* The result as its client gets it, but for what its era adds. */
static void
put_labelled(struct buf *out, const struct outcome *o)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n =
	    json_edit_pieces(o->base, o->json->slot[JSON_RESULT], &o->label->edits, iov);

	for (int i = 0; i < n; i++)
		buf_add(out, iov[i].iov_base, iov[i].iov_len);
}

/* Whether an age can be put into its _meta. One that has an age comes from somebody who
 * keeps it already: kept twice it would be older than either says. */
static bool
may_have_age(const struct outcome *o)
{
	struct jtext meta = o->kind == OUTCOME_RESULT ? json_member(o->body, "_meta")
						      : (struct jtext){NULL, 0};

	return meta.n == 0 ||
	       (jtext_type(meta) == '{' && json_member(meta, CACHE_KEY).n == 0);
}

static void
call_learn(struct call *c, const struct outcome *o, enum identity_verdict v)
{
	const struct identity_conf *conf = identity_conf_of(c);
	struct call_identity *ci = c->identity;
	struct identity_answer a = {.verdict = v,
	    .is_retry = ci->is_retry,
	    .generation = call_generation(c),
	    .now_ms = clock_now_ms()};
	struct identity_key k;
	struct buf result;

	call_put_key(c, &k);
	if (k.principal[0] == '\0')
		k.principal = NULL;
	buf_init(&result, conf->cache_max);
	if (o->label != NULL) {
		a.is_partial = o->label->reason != LABEL_NONE &&
			       o->label->reason != LABEL_OFF &&
			       o->label->reason != LABEL_CLEAN;
		put_labelled(&result, o);
	}
	if (ci->may_keep && result.err == MV_OK && may_have_age(o)) {
		a.max_bytes = conf->cache_max;
		a.result = (struct jtext){result.data, result.len};
	}
	(void)identity_gate_answer(gateway_answers(c->g)->identities, &k, &a);
	buf_fini(&result);
}

enum identity_verdict
call_note_identity(struct call *c, const struct outcome *o)
{
	struct gateway_answers *ga = gateway_answers(c->g);
	enum identity_verdict v;

	call_note_refusal(c, o);
	if (c->identity == NULL)
		return IDENTITY_NONE;
	v = identity_judge(identity_conf_of(c), o->base, o->json, o->label->is_error);
	if (v == IDENTITY_UNRESOLVED && identity_conf_of(c)->hint) {
		buf_reset(&ga->hint);
		(void)identity_put_hint(
		    &ga->label.edits, upstream_name(c->u), o->base, o->json, &ga->hint);
	}
	call_learn(c, o, v);
	(void)call_forget_identity(c);
	return v;
}

void
call_note_failure(struct call *c, const struct outcome *o)
{
	if (o->kind == OUTCOME_INPUT_REQUIRED)
		return; /* it is not over */
	call_note_refusal(c, o);
	if (c->identity == NULL)
		return;
	call_learn(c, o, IDENTITY_ERROR);
	(void)call_forget_identity(c);
}
