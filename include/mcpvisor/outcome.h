/* SPDX-License-Identifier: MIT */
/* What became of a request to an upstream. */
#ifndef MCPVISOR_OUTCOME_H
#define MCPVISOR_OUTCOME_H

#include "mcpvisor/json.h"

/* How a request to an upstream ended. */
enum outcome_kind {
	OUTCOME_RESULT,
	OUTCOME_ERROR,		/* the upstream's JSON-RPC error */
	OUTCOME_INPUT_REQUIRED, /* a modern result that asks for input */
	OUTCOME_FAILED		/* no answer: err says why */
};

struct outcome {
	enum outcome_kind kind;
	enum mv_err err;    /* FAILED */
	const char *detail; /* FAILED: more words, or NULL */
	const char *base;   /* the others: text that the spans refer to */
	const struct json_msg *json;
	struct jtext body; /* the value of result or error */
};

#endif
