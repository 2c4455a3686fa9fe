/* SPDX-License-Identifier: MIT */
/*
 * upstream.h without processes: the test says what each upstream offers, and
 * answers what was sent to it. What it answers with is gone when the callback
 * returns, so that a pointer kept too long is found.
 */
#ifndef FAKE_UPSTREAM_H
#define FAKE_UPSTREAM_H

#include "mcpvisor/upstream.h"

#include <stddef.h>

/* What was sent, oldest first. Texts are NUL-terminated and live as long as the
 * upstream. */
struct fake_sent {
	struct upstream_req *r; /* NULL: over */
	enum method method;
	uint64_t id;
	char
	    *params; /* as the upstream would get them before its era's edits; "": none */
	char *client_info;
	enum mcp_level level;
	bool cancelled;
	char *cancel; /* params of the client's notification; NULL: a plain one */
};

/* ---- what it is ---- */

/* Replaces the list by one page's result object and reports it. */
void fake_upstream_list(struct upstream *u, enum list_kind kind, const char *result);
/* Takes the list away as if never fetched, and reports nothing. */
void fake_upstream_unlist(struct upstream *u, enum list_kind kind);
void fake_upstream_set_caps(struct upstream *u, struct upstream_caps caps);
void fake_upstream_set_instructions(struct upstream *u, const char *text);
/* READY sends what was held; DOWN and PARKED fail what is in flight (MV_DIED). */
void fake_upstream_set_state(
    struct upstream *u, enum upstream_state st, const char *reason);
void fake_upstream_settle(struct upstream *u); /* reports it, once */
/* Reports that what it would remember is new. */
void fake_upstream_memory(struct upstream *u);
/* What upstream_stats returns, but for what is counted here: calls, busy, held. */
struct upstream_stats *fake_upstream_stats(struct upstream *u);
/* Every send is refused with err; MV_OK ends that. */
void fake_upstream_refuse(struct upstream *u, enum mv_err err);
/* upstream_stop reports at once, or when fake_upstream_stopped says so. */
void fake_upstream_stop_slowly(struct upstream *u, bool slowly);
void fake_upstream_stopped(struct upstream *u);

/* ---- what it was told ---- */

size_t fake_upstream_n_sent(const struct upstream *u);
const struct fake_sent *fake_upstream_sent(const struct upstream *u, size_t i);
const struct fake_sent *fake_upstream_last(const struct upstream *u); /* there is one */
enum mcp_level fake_upstream_level(const struct upstream *u);
unsigned fake_upstream_refreshes(const struct upstream *u, enum list_kind kind);
unsigned fake_upstream_doubts(const struct upstream *u, enum list_kind kind);
unsigned fake_upstream_starts(const struct upstream *u);
unsigned fake_upstream_wakes(const struct upstream *u);
unsigned fake_upstream_restarts(const struct upstream *u);
unsigned fake_upstream_confs(const struct upstream *u); /* upstream_set_conf */
unsigned fake_upstream_holds(const struct upstream *u); /* now */
unsigned fake_upstream_stops(const struct upstream *u);
struct child_ladder fake_upstream_ladder(const struct upstream *u);
size_t fake_upstream_n_watches(const struct upstream *u); /* now */
unsigned fake_upstream_watched(const struct upstream *u); /* ever */

/* ---- what it says ---- */

/* The end of request i. body is the value of result or error. */
void fake_upstream_result(struct upstream *u, size_t i, const char *body);
void fake_upstream_error(struct upstream *u, size_t i, const char *body);
void fake_upstream_fail(
    struct upstream *u, size_t i, enum mv_err err, const char *detail);
/* members go into the params after the token; "" for none. */
void fake_upstream_progress(struct upstream *u, size_t i, const char *members);
void fake_upstream_log(struct upstream *u, const char *params);
void fake_upstream_updated(struct upstream *u, const char *params);
/* notifications/tasks/status, or progress of a request that is over. */
void fake_upstream_task(struct upstream *u, enum method m, const char *params);

/* It asks its client; id_params: members "id" and maybe "params". by: the request on
 * whose stream it does; NULL: none is known. */
void fake_upstream_ask(struct upstream *u, struct upstream_req *by, enum method method,
    const char *id_params);
/* notifications/elicitation/complete */
void fake_upstream_elicited(struct upstream *u, const char *params);
void fake_upstream_withdraw(struct upstream *u); /* all of them */
unsigned fake_upstream_n_questions(const struct upstream *u);
unsigned fake_upstream_n_question_progress(const struct upstream *u);
unsigned fake_upstream_n_answers(const struct upstream *u);
/* The last one: "ID result BODY", "ID error BODY", "ID refused CODE TEXT". */
const char *fake_upstream_answer(const struct upstream *u);
bool fake_upstream_caps_are_known(const struct upstream *u);
unsigned fake_upstream_client_caps(const struct upstream *u); /* as it was told */
unsigned fake_upstream_roots_changes(const struct upstream *u);
void fake_upstream_set_kind(struct upstream *u, bool is_remote, bool is_modern);

enum fake_watching {
	FAKE_WATCH_LATER, /* fake_upstream_settle_watch says */
	FAKE_WATCH_YES,	  /* before upstream_watch returns */
	FAKE_WATCH_NO,	  /* the same, MV_UNSUPPORTED */
};
void fake_upstream_set_watching(struct upstream *u, enum fake_watching how);
/* Every watch that waits gets this answer: NULL yes, else an error object. */
void fake_upstream_settle_watch(struct upstream *u, const char *error);
/* The same, with an end without an answer. */
void fake_upstream_fail_watch(struct upstream *u, enum mv_err err);

#endif
