/* SPDX-License-Identifier: MIT */
/*
 * Whether an upstream knows whom it acts for: what the result of a tool such as get_me or
 * whoami says. Pure functions.
 */
#ifndef MCPVISOR_IDENTITY_H
#define MCPVISOR_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"
#include "mcpvisor/pattern.h"

/* X(VERDICT, name) */
#define IDENTITY_VERDICTS(X)                                                             \
	X(NONE, "none") /* it was not asked who */                                       \
	X(ERROR, "error")                                                                \
	X(UNKNOWN, "unknown")                                                            \
	X(UNRESOLVED, "unresolved")                                                      \
	X(RESOLVED, "resolved")

enum identity_verdict {
#define X(id, name) IDENTITY_##id,
	IDENTITY_VERDICTS(X)
#undef X
	    IDENTITY_VERDICT_MAX
};
const char *identity_verdict_text(enum identity_verdict v);

/* Of an upstream. */
struct identity_conf {
	char **tools; /* patterns of its own names (filter.h's * and ?); "auto" and "none"
			 are words; NULL: auto. NULL-terminated */
	char *path;   /* JSON Pointer to what must be there; NULL: none */
	char **null_texts;	   /* as given, NULL-terminated; NULL: none */
	struct pattern **patterns; /* of null_texts, in that order, NULL-terminated */
	uint32_t cache_ms;	   /* 0: nothing is kept */
	uint64_t cache_max;	   /* 65536: bytes of a result that is kept */
	bool hint;		   /* label an identity that is nobody */
};
void identity_conf_fini(struct identity_conf *c);

/* Whether a tool is asked for who it is. upstream: the name in the conf; name: the tool's
 * own, decoded; definition: as its upstream has it, absent if there is none. */
bool identity_is_tool(const struct identity_conf *c, const char *upstream,
    struct jtext name, struct jtext definition);
/* What a result says, of a message that the scanner has accepted. is_error: what isError
 * is after labelling. Never NONE. */
enum identity_verdict identity_judge(const struct identity_conf *c, const char *base,
    const struct json_msg *json, bool is_error);
/* Whether a value says "nobody" or "nothing". */
bool identity_is_null_like(struct jtext value);
/* Whether what a result answers is null-like: its structuredContent, else its text. */
bool identity_is_null_answer(const char *base, const struct json_msg *json);
/* Adds the block that tells the model of an identity that is nobody to the result, by one
 * edit, whose text goes into out, which must be empty and must not change after that.
 * False: it is there already, or there is no content to add to. */
bool identity_put_hint(struct json_edits *ed, const char *upstream, const char *base,
    const struct json_msg *json, struct buf *out);

#endif
