/* SPDX-License-Identifier: MIT */
/*
 * What a result of tools/call says of itself beyond isError: whether it holds a GraphQL
 * answer that is partial or failed, or what the operator has declared to be a failure;
 * and the labels by which a model sees it. By splice: bytes are only inserted, apart from
 * the one isError token; a second pass changes nothing. Pure functions.
 *
 * Spec: GraphQL September 2025, 7 Response; MCP 2026-07-28 server/tools, Tool Result.
 */
#ifndef MCPVISOR_LABEL_H
#define MCPVISOR_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"
#include "mcpvisor/pattern.h"

/* Of an option: INHERIT is what a tool has that says nothing. */
enum graphql_mode { GRAPHQL_INHERIT, GRAPHQL_AUTO, GRAPHQL_ON, GRAPHQL_OFF };
enum graphql_survival { SURVIVAL_INHERIT, SURVIVAL_SHALLOW, SURVIVAL_DEEP };
enum graphql_annotate { ANNOTATE_INHERIT, ANNOTATE_FULL, ANNOTATE_META };
/* Their words in files, in that order, "" for INHERIT, NULL-terminated. */
extern const char *const graphql_mode_words[], *const graphql_survival_words[],
						   *const graphql_annotate_words[];

/* One rule of fail_if. */
struct fail_rule {
	char *text;    /* as it was given */
	char *pointer; /* "json:": a JSON Pointer; NULL: it is a "text:" rule */
	char *value;   /* the string, number, true, false or null that is a failure, as
			  JSON; NULL: anything but null, false, "", [] and {} */
	struct pattern *pattern; /* "text:" */
};
/* "json:POINTER", "json:POINTER=JSON", "text:REGEX". False: it is none, and t says why.
 */
bool fail_rule_read(struct fail_rule *r, const char *text, struct mv_errtext *t);
void fail_rule_fini(struct fail_rule *r);
/* Whether it is a JSON Pointer (RFC 6901) without array steps. */
const char *pointer_check(const char *s); /* what is wrong; NULL: nothing */
/* The value it leads to; absent: none, or a key on the way is there twice. */
struct jtext pointer_get(struct jtext value, const char *pointer);

/* Of an upstream or of a tool. */
struct label_conf {
	enum graphql_mode mode;
	enum graphql_survival survival;
	enum graphql_annotate annotate;
	char *root;		 /* where the answer is in the value; NULL: not set */
	uint64_t max_bytes;	 /* of a candidate; 0: not set */
	struct fail_rule *rules; /* NULL: not set */
	size_t n_rules;
};
void label_conf_fini(struct label_conf *c);

/* X(REASON, name) */
#define LABEL_REASONS(X)                                                                 \
	X(OFF, "off")                                                                    \
	X(NONE, "none")                                                                  \
	X(CLEAN, "clean")                                                                \
	X(PARTIAL, "partial")                                                            \
	X(ERROR, "error")                                                                \
	X(SUSPECT, "suspect")                                                            \
	X(MALFORMED, "malformed")                                                        \
	X(TOO_LARGE, "too_large")                                                        \
	X(UNPARSED, "unparsed")                                                          \
	X(NOT_COMPLETE, "not_complete")                                                  \
	X(UPSTREAM_ERROR, "upstream_error")                                              \
	X(ALREADY, "already")                                                            \
	X(RULE, "rule")

enum label_reason {
#define X(id, name) LABEL_##id,
	LABEL_REASONS(X)
#undef X
	    LABEL_REASON_MAX
};
const char *label_reason_text(enum label_reason r);

/* What is in force for one call. */
struct label_opts {
	enum graphql_mode mode;
	bool is_deep;	   /* survival */
	bool is_meta_only; /* annotate */
	const char *root;  /* NULL or "": none */
	uint64_t max_bytes;
	const struct fail_rule *rules;
	size_t n_rules;
	/* The tool as its upstream defines it; absent: it is not in the catalog. */
	struct jtext definition;
};
/* tool may be NULL. */
void label_opts_set(struct label_opts *o, const struct label_conf *upstream,
    const struct label_conf *tool, struct jtext definition);

#define LABEL_TEXT_BYTES 128

struct label {
	enum label_reason reason; /* RULE too where a rule hit a partial answer */
	unsigned n_errors;	  /* of the first candidate that is partial or failed */
	unsigned rule;		  /* of fail_if, from 1; 0: none has hit */
	bool is_error;		  /* what isError is for the client */
	/* Of the first error, decoded and cut; "" if there is none. */
	char code[LABEL_TEXT_BYTES], path[LABEL_TEXT_BYTES];
	/* What is to be changed in the message; none of it is inside of another edit. It
	 * points into text. */
	struct json_edits edits;
	struct buf text;
};
void label_init(struct label *l);
void label_fini(struct label *l);
/* Looks at the result of a message, which the scanner has accepted; l, which was
 * initialised, is set anew. Without memory for the labels the reason is TOO_LARGE and
 * there are none. */
void label_result(struct label *l, const struct label_opts *o, const char *base,
    const struct json_msg *json);
/* The same for a result that needs no look, which most are: false if it does. Cheap, and
 * nothing need be known of the tool's definition. */
bool label_is_settled(struct label *l, const struct label_conf *upstream,
    const struct label_conf *tool, const char *base, const struct json_msg *json);
#endif
