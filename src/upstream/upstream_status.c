/* SPDX-License-Identifier: MIT */
/*
 * What an upstream tells of itself: what it is, what it counts.
 *
 * Driven by: calls that end or are refused; whoever asks.
 * Invariants: calls is the sum of returned, failed, cancelled and those in flight.
 */
#include "upstream_priv.h"

#include "upstream_http_priv.h"

#include "mcpvisor/clock.h"

void
upstream_count(struct upstream *u, const struct outcome *o)
{
	struct upstream_stats *s = &u->stats;

	switch (o->kind) {
	case OUTCOME_RESULT:
	case OUTCOME_INPUT_REQUIRED:
		s->returned++;
		s->tool_errors +=
		    json_is_true(jtext_of(o->base, o->json->slot[JSON_IS_ERROR]));
		break;
	case OUTCOME_ERROR:
		s->returned++;
		s->rpc_errors++;
		break;
	case OUTCOME_FAILED:
		s->failed++;
		s->timeouts += o->err == MV_TIMEOUT;
		s->busy += o->err == MV_BUSY;
		break;
	}
}

void
upstream_count_refused(struct upstream *u, enum mv_err err)
{
	struct outcome o = {.kind = OUTCOME_FAILED, .err = err};

	u->stats.calls++;
	upstream_count(u, &o);
}

void
upstream_note_answer(struct upstream *u, const struct outcome *o)
{
	struct upstream_stats *s = &u->stats;
	bool was_error = json_is_true(jtext_of(o->base, o->json->slot[JSON_IS_ERROR]));

	s->labels[o->label->reason]++;
	s->tool_errors += o->label->is_error && !was_error;
	if (!o->label->is_error)
		s->answers[o->answer]++;
}

uint64_t
upstream_generation(const struct upstream *u)
{
	const uint64_t parts[] = {
	    upstream_headers_now(u->conf), u->n_refused, u->n_starts, u->n_tools_changes};

	return hash_stable(HASH_STABLE_SEED, parts, sizeof(parts));
}

uint64_t
upstream_refusals(const struct upstream *u)
{
	return u->n_refused;
}

void
upstream_note_busy(struct upstream *u)
{
	upstream_count_refused(u, MV_BUSY);
}

struct upstream_stats
upstream_stats(const struct upstream *u)
{
	struct upstream_stats s = u->stats;

	s.restarts = u->n_starts > 0 ? u->n_starts - 1 : 0;
	s.held = (uint32_t)u->n_held;
	s.held_bytes = u->held_bytes;
	s.state_ms = clock_now_ms() - u->since_ms;
	if (u->kind != NULL)
		u->kind->put_stats(u, &s);
	return s;
}

const char *
upstream_name(const struct upstream *u)
{
	return u->conf->name;
}

const struct upstream_conf *
upstream_conf_of(const struct upstream *u)
{
	return u->conf;
}

enum upstream_state
upstream_state(const struct upstream *u)
{
	return u->state;
}

bool
upstream_is_settled(const struct upstream *u)
{
	return u->settled;
}

const struct upstream_caps *
upstream_caps(const struct upstream *u)
{
	return &u->caps;
}

const char *
upstream_instructions(const struct upstream *u)
{
	return u->instructions;
}

const struct ulist *
upstream_list(const struct upstream *u, enum list_kind kind)
{
	return &u->lists[kind];
}

const char *
upstream_reason(const struct upstream *u)
{
	return u->reason;
}

const char *
upstream_told(const struct upstream *u)
{
	return u->reason[0] != '\0' && u->told[0] != '\0' ? u->told : u->reason;
}

const char *
upstream_revision_text(const struct upstream *u)
{
	return u->revision == REVISION_NONE ? "" : revision_text(u->revision);
}
