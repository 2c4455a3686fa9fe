/* SPDX-License-Identifier: MIT */
/* What the two files of the fake upstream share. */
#ifndef FAKE_UPSTREAM_PRIV_H
#define FAKE_UPSTREAM_PRIV_H

#include "fake/fake_upstream.h"

#include "mcpvisor/loop.h"

#define FAKE_MAGIC 0x66616b65u

struct upstream {
	unsigned magic;
	const struct upstream_conf *conf;
	const struct upstream_cb *cb;
	void *arg;
	enum upstream_state state;
	bool settled, stopping, stop_slowly;
	struct upstream_caps caps;
	char *instructions;
	char reason[256];
	struct ulist lists[LIST_MAX];
	enum mv_err refusal;
	struct upstream_req *flying, *held, **held_tail;
	uint64_t last_id;
	struct fake_sent *sent;
	size_t n_sent, n_calls;
	enum mcp_level level;
	unsigned refreshes[LIST_MAX], doubts[LIST_MAX], starts, stops, watched;
	unsigned wakes, restarts, confs, holds;
	struct upstream_stats stats;
	uint64_t generation, n_refused;
	struct deferred idle;
	struct child_ladder ladder;
	struct upstream_watch *watches;
	enum fake_watching watching;
	/* fake_upstream_ask.c */
	unsigned client_caps, roots_changes;
	bool caps_known, asks, is_remote, is_modern;
	uint64_t withdrawn_ms;
	const void *withdrawn_owner;
	struct question *questions;
	unsigned n_questions, n_answers, n_question_progress;
	char *answer; /* the last one */
};

/* Its first answer is near, whatever it was. */
void fake_begin(struct upstream *u);
/* Out of every list; its memory is its owner's. */
void fake_forget(struct upstream_req *r);
/* r is given up. */
void fake_note_withdrawn(struct upstream *u, const struct upstream_req *r);
void fake_end(struct upstream_req *r, const struct outcome *o);
void fake_fail_all(struct upstream *u, enum mv_err err);
void fake_transmit(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);

#endif
