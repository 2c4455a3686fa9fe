/* SPDX-License-Identifier: MIT */
/* What became of a request to an upstream. */
#ifndef MCPVISOR_OUTCOME_H
#define MCPVISOR_OUTCOME_H

#include "mcpvisor/json.h"
#include "mcpvisor/label.h"

/* How a request to an upstream ended. */
enum outcome_kind {
	OUTCOME_RESULT,
	OUTCOME_ERROR,		/* the upstream's JSON-RPC error */
	OUTCOME_INPUT_REQUIRED, /* a modern result that asks for input */
	OUTCOME_FAILED		/* no answer: err says why */
};

/* X(ANSWER, name): what a result has told whoever asked, apart from how it came and from
 * whether its tool failed. */
#define OUTCOME_ANSWERS(X)                                                               \
	X(UNKNOWN, "unknown")                                                            \
	X(FULL, "full")                                                                  \
	X(PARTIAL, "partial")                                                            \
	X(NULL_IDENTITY, "null_identity")

enum outcome_answer {
#define X(id, name) ANSWER_##id,
	OUTCOME_ANSWERS(X)
#undef X
	    ANSWER_MAX
};

static inline const char *
outcome_answer_text(enum outcome_answer a)
{
	static const char *const texts[] = {
#define X(id, name) name,
	    OUTCOME_ANSWERS(X)
#undef X
	};

	return (unsigned)a < ANSWER_MAX ? texts[a] : texts[ANSWER_UNKNOWN];
}

struct outcome {
	enum outcome_kind kind;
	enum mv_err err;    /* FAILED */
	const char *detail; /* FAILED: more words, or NULL */
	const char *base;   /* the others: text that the spans refer to */
	const struct json_msg *json;
	struct jtext body; /* the value of result or error */
	/* RESULT of a tool, from the gateway on. label: what has to be changed in it, and
	 * whether it is an error then; NULL: it was not looked at. */
	enum outcome_answer answer;
	const struct label *label;
};

#endif
