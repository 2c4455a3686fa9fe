/* SPDX-License-Identifier: MIT */
/*
 * What probe decides about a tool, and writes down of it.
 *
 * Owns: nothing.
 * Driven by: app_probe_line.c, and overlay.c for what a record has.
 * Invariants: a tool that does not say that it is read-only is never called; a sample is
 * kept of an answer that is good on all three axes, and of no other.
 */
#include "probe_record.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/filter.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FAILURE_BYTES 200
#define SHAPE_MAX     2048
#define TYPES_MAX     16
#define TYPE_MAX      64

/* ---- which tools ---- */

static bool
has_hint(struct jtext definition, const char *key)
{
	return jtext_type(json_member(json_member(definition, "annotations"), key)) ==
	       't';
}

/* Whether an object of the conf, which may be absent, gives that argument. */
static bool
has_argument(const char *object, const char *name)
{
	return object != NULL &&
	       json_member((struct jtext){object, strlen(object)}, name).n > 0;
}

/* Whether all that it requires is given. */
static bool
has_arguments(const struct candidate *c)
{
	static const struct tool_shape none;
	const struct tool_shape *s = c->shape != NULL ? c->shape : &none;
	struct jtext required =
	    json_member(json_member(c->definition, "inputSchema"), "required");
	bool has = true;
	struct json_iter it;
	struct jtext v;
	struct buf b;

	if (jtext_type(required) != '[')
		return true;
	buf_init(&b, CAP_URI_BYTES);
	json_iter_init(&it, required);
	while (has && json_next_element(&it, &v)) {
		const char *name;

		buf_reset(&b);
		name = json_string_decode(v, &b) ? buf_cstr(&b) : NULL;
		has = name != NULL && (has_argument(s->probe_args, name) ||
					  has_argument(s->fixed, name) ||
					  has_argument(s->defaults, name));
	}
	buf_fini(&b);
	return has;
}

const char *
candidate_refusal(const struct candidate *c)
{
	const struct upstream_conf *u = c->conf;
	bool is_named = u->probe.allow != NULL;

	if (!has_hint(c->definition, "readOnlyHint"))
		return "";
	if (has_hint(c->definition, "destructiveHint"))
		return "it says that it is destructive";
	if (identity_is_tool(&u->identity, u->name, c->name, c->definition))
		return "it is asked who somebody is";
	if (!filter_allows(&u->probe, c->name, json_member(c->definition, "annotations")))
		return is_named ? "probe.allow does not have it" : "probe.deny has it";
	if (!has_arguments(c))
		return "it needs arguments that probe_args does not give";
	return NULL;
}

/* ---- records ---- */

void
record_set(json_t *r, const char *key, const char *text)
{
	json_t *v = json_string(text);

	(void)json_object_set_new(r, key, v != NULL ? v : json_string("(not UTF-8)"));
}

static void
record_set_buf(json_t *r, const char *key, const struct buf *b)
{
	if (b->err == MV_OK && b->len > 0)
		(void)json_object_set_new(r, key, json_stringn(b->data, b->len));
}

const char *
record_text(const json_t *r, const char *key)
{
	const char *s = json_string_value(json_object_get(r, key));

	return s != NULL ? s : "";
}

static void
record_set_digest(json_t *r, const char *key, uint64_t digest)
{
	char text[20];

	(void)snprintf(text, sizeof(text), "%016" PRIx64, digest);
	record_set(r, key, text);
}

/* Of what the conf gives a tool to be called with; 0: nothing. */
static uint64_t
arguments_digest(const struct tool_shape *s)
{
	const char *texts[] = {s->probe_args, s->fixed, s->defaults};
	uint64_t h = HASH_STABLE_SEED;
	bool any = false;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = texts[i] != NULL ? texts[i] : "";

		any |= texts[i] != NULL;
		h = hash_stable(h, text, strlen(text) + 1);
	}
	return any ? h : 0;
}

json_t *
record_new(const struct candidate *c)
{
	json_t *r = json_object(), *tool = json_stringn(c->name.p, c->name.n);
	uint64_t arguments = c->shape != NULL ? arguments_digest(c->shape) : 0;

	record_set(r, "upstream", c->conf->name);
	(void)json_object_set_new(
	    r, "tool", tool != NULL ? tool : json_string("(not UTF-8)"));
	record_set_digest(
	    r, "digest", hash_stable(HASH_STABLE_SEED, c->definition.p, c->definition.n));
	if (arguments != 0)
		record_set_digest(r, "arguments", arguments);
	return r;
}

bool
record_is_of_same(const json_t *a, const json_t *b)
{
	return strcmp(record_text(a, "digest"), record_text(b, "digest")) == 0 &&
	       strcmp(record_text(a, "arguments"), record_text(b, "arguments")) == 0;
}

bool
record_is_skipped(const json_t *r)
{
	return json_object_get(r, "skipped") != NULL;
}

/* ---- what a call has come to ---- */

/* The types of its blocks, in their order. */
static json_t *
content_types(const struct outcome *o)
{
	struct jtext content = json_member(o->body, "content"), block;
	json_t *types = json_array();
	struct json_iter it;
	struct buf b;

	if (jtext_type(content) != '[')
		return types;
	buf_init(&b, TYPE_MAX);
	json_iter_init(&it, content);
	while (json_array_size(types) < TYPES_MAX && json_next_element(&it, &block)) {
		buf_reset(&b);
		if (json_string_decode(json_member(block, "type"), &b) && b.err == MV_OK)
			(void)json_array_append_new(types, json_stringn(b.data, b.len));
	}
	buf_fini(&b);
	return types;
}

/* What a peer says of its failure, cut. */
static void
record_set_failure(json_t *r, const struct outcome *o)
{
	struct buf text, message;

	buf_init(&text, CAP_MESSAGE_BYTES);
	buf_init(&message, CAP_MESSAGE_BYTES);
	if (o->kind == OUTCOME_RESULT)
		sample_put_redacted(&text, o->base, o->json, FAILURE_BYTES);
	else if (o->kind == OUTCOME_ERROR &&
		 json_string_decode(
		     jtext_of(o->base, o->json->slot[JSON_E_MESSAGE]), &message))
		sample_put_redacted_text(
		    &text, (struct jtext){message.data, message.len}, FAILURE_BYTES);
	record_set_buf(r, "failure", &text);
	buf_fini(&message);
	buf_fini(&text);
}

/* Whether all axes are good; what is wrong goes into the record. */
static bool
record_judge(json_t *r, const struct outcome *o)
{
	const struct label *l = o->label;

	if (o->kind != OUTCOME_RESULT || l == NULL) {
		record_set(r, "why",
		    o->kind == OUTCOME_FAILED		? mv_err_reason(o->err)
		    : o->kind == OUTCOME_INPUT_REQUIRED ? "input_required"
							: "error");
		return false;
	}
	if (l->is_error)
		record_set(r, "why", "is_error");
	else if (l->reason == LABEL_SUSPECT || l->reason == LABEL_MALFORMED ||
		 l->reason == LABEL_ERROR)
		record_set(r, "why", label_reason_text(l->reason));
	else if (o->answer == ANSWER_NULL_IDENTITY ||
		 identity_is_null_answer(o->base, o->json))
		record_set(r, "why", "null");
	else
		return true;
	return false;
}

bool
record_fill(json_t *r, const struct outcome *o, uint64_t ms, size_t sample_max)
{
	bool ok = o->kind == OUTCOME_RESULT, good;
	struct buf b;

	(void)json_object_set_new(r, "ok", json_boolean(ok));
	(void)json_object_set_new(
	    r, "is_error", json_boolean(ok && o->label != NULL && o->label->is_error));
	if (o->label != NULL)
		record_set(r, "graphql", label_reason_text(o->label->reason));
	record_set(r, "answer", outcome_answer_text(o->answer));
	(void)json_object_set_new(r, "ms", json_integer((json_int_t)ms));
	if (ok) {
		(void)json_object_set_new(
		    r, "bytes", json_integer((json_int_t)o->body.n));
		(void)json_object_set_new(r, "content", content_types(o));
	}
	good = record_judge(r, o);
	if (!good) {
		record_set_failure(r, o);
		return false;
	}
	buf_init(&b, SHAPE_MAX);
	good = sample_put_shape(&b, o->base, o->json);
	if (good)
		record_set_buf(r, "shape", &b);
	buf_fini(&b);
	if (!good) {
		/* One without content was judged as null: this one has too much. */
		record_set(r, "why", label_reason_text(LABEL_TOO_LARGE));
		return false;
	}
	buf_init(&b, CAP_MESSAGE_BYTES);
	sample_put_redacted(&b, o->base, o->json, sample_max);
	record_set_buf(r, "sample", &b);
	buf_fini(&b);
	return true;
}
