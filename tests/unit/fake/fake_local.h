/* SPDX-License-Identifier: MIT */
/*
 * A kind of upstream that makes its tools itself, played by the test; the owner of one
 * such upstream on the fake loop, and its calls.
 */
#ifndef FAKE_LOCAL_H
#define FAKE_LOCAL_H

#include "mcpvisor/upstream.h"

#include "upstream_local_base_priv.h"

#include "fake/fake_loop.h"

/* ---- the kind ---- */

#define CALLS_MAX 64

/* How it starts, and answers. */
enum starting { START_LATER, START_UP, START_DOWN };
enum answering {
	ANSWER_LATER,
	ANSWER_RESULT,
	ANSWER_TEXT,
	ANSWER_FAILURE,
	ANSWER_ERROR,
	ANSWER_NOBODY,
	ANSWER_LONG
};

struct kind {
	struct upstream *u;
	enum starting starting;
	enum answering answering;
	bool is_started, is_there, has_changed;
	unsigned starts, stops, calls, cancels, confs, looks;
	struct local_call *open[CALLS_MAX];
	size_t n_open;
};
extern struct kind g_kind;
struct local_call *kind_take(struct kind *k, size_t i); /* of those that are open */
void kind_answer(struct local_call *c, enum answering how);

/* ---- the owner ---- */

struct owner {
	struct loop *loop;
	struct upstream_conf *conf;
	struct upstream *u;
	unsigned settled, stopped, lists, changes;
};
extern struct owner g_owner;

void owner_new(enum upstream_kind kind, enum starting starting);
/* From nothing to ready, as a kind that answers so. */
void owner_ready(enum answering how);
bool owner_is_ready(void);
void owner_stop(void);
/* Stops it if need be; nothing may be left. */
void owner_free(void);

/* ---- calls ---- */

#define CALL(params)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":" params "}"
#define CALL_T CALL("{\"name\":\"t\",\"arguments\":{}}")

struct tcall {
	struct upstream_req req;
	unsigned done;
	enum outcome_kind kind;
	enum mv_err err;
	char body[512];
	void (*then)(void); /* inside of its end */
};
/* Neither may end before it returns. */
enum mv_err tcall_try(struct tcall *c, const char *text);
void tcall_send(struct tcall *c);

#endif
