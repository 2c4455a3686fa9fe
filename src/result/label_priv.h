/* SPDX-License-Identifier: MIT */
/* What the parts of label share: one look at one result. */
#ifndef LABEL_PRIV_H
#define LABEL_PRIV_H

#include "mcpvisor/label.h"

/* Members of _meta. */
#define LABEL_META_ANSWER "io.github.mcpvisor/graphql"
#define LABEL_META_RULE	  "io.github.mcpvisor/rule"
/* How our sentence begins. */
#define LABEL_SENTENCE "Partial result: "
/* More than a warning takes. */
#define LABEL_WARNING_BYTES 256

/* What one value is; in no order. */
enum label_class {
	CLASS_NOTHING,
	CLASS_CLEAN,
	CLASS_SUSPECT,
	CLASS_MALFORMED,
	CLASS_TOO_LARGE,
	CLASS_PARTIAL,
	CLASS_FAILED
};

/* Errors that a text of ours repeats. */
#define LABEL_ERRORS_SHOWN 3

struct label_verdict {
	enum label_class class;
	unsigned n;	  /* errors */
	bool has_warning; /* the object has "_warning" */
	struct jtext first[LABEL_ERRORS_SHOWN];
};

/* What the definition of a tool says of its results, read when it is first asked. */
struct label_tool {
	bool is_read;
	bool is_evident; /* it is known to answer GraphQL */
	bool is_vetoed;	 /* it may hand through what others have written */
};

/* A value that is partial or failed. */
struct label_candidate {
	unsigned n;
	uint32_t inside; /* offset right after its '{'; 0: it is an array */
	bool is_escaped; /* it stands in a string */
	bool is_structured;
	bool has_warning;
};

/* A block of content. */
struct label_block {
	struct jtext type, text; /* absent as well: it is there twice */
};

struct label_work {
	struct label *l;
	const struct label_opts *o;
	const char *base;
	struct jtext result;
	/* Its members. */
	struct jtext content, structured, meta, is_error, result_type;
	struct label_tool tool;
	struct buf text; /* decoded: what stands in a string */
	/* Of the candidates. */
	unsigned n_seen, classes; /* bit 1 << class */
	unsigned n;
	struct label_candidate candidates[CAP_RESULT_CANDIDATES];
	bool is_string;	   /* structuredContent holds a string that is the answer */
	bool is_unwrapped; /* it is in "result" of structuredContent */
	bool is_too_deep;
	bool is_short; /* of memory */
	size_t steps;  /* that are left to the patterns of rules */
	bool has_failed_text;
	struct buf failure; /* text of the errors of a failed structuredContent */
	/* Of content. */
	bool is_usable;	   /* there is something to be read */
	bool has_media;	   /* of a kind that is no text */
	bool has_sentence; /* a text begins with ours */
	/* What is to be edited: from places of the message to pieces of l->text. */
	unsigned n_puts;
	struct label_put {
		uint32_t off, len;
		size_t from, to;
	} puts[CAP_RESULT_CANDIDATES + 4];
};

static inline bool
label_has_root(const struct label_opts *o)
{
	return o->mode == GRAPHQL_ON && o->root != NULL && o->root[0] != '\0';
}

/* ---- label_find.c ---- */

/* Sets the members of the result. False: one of those that count is there twice. */
bool label_find_members(struct label_work *w);
/* Fills in what is said of candidates and of content. */
void label_find_candidates(struct label_work *w);
bool label_next_block(struct json_iter *it, struct label_block *b);
/* Where the answer is in structuredContent; absent: nowhere. It may point into w->text.
 */
struct jtext label_structured_value(struct label_work *w);
/* A string, decoded into w->text. */
struct jtext label_decode(struct label_work *w, struct jtext literal);
/* The JSON value that is all of a text, or of the one code fence that the text is;
 * absent: none is. */
struct jtext label_text_value(const struct label_work *w, struct jtext text);

/* ---- label_scan.c ---- */

/* Whether the word "errors" is anywhere in a text. */
bool label_has_errors(struct jtext t);
void label_classify(struct label_work *w, struct jtext value, struct label_verdict *v);

/* ---- label_error.c ---- */

/* Code and path of an error. */
void label_error_read(
    struct jtext error, char code[LABEL_TEXT_BYTES], char path[LABEL_TEXT_BYTES]);
/* A sentence for a model that sees nothing else. */
void label_put_failure(struct buf *out, const struct label_verdict *v);

/* ---- label_tool.c ---- */

/* False: it is there twice. Absent too if object is none. */
bool label_member_once(struct jtext object, const char *name, struct jtext *value);
void label_tool_read(struct label_tool *t, struct jtext definition);
/* Whether its output schema lets the answer, which is where the pointer leads, have one
 * member more; or, if it is in a string, lets that have any text. */
bool label_is_open(struct jtext definition, const char *pointer, bool is_string);

/* ---- label_rules.c ---- */

/* A step of a pointer and its end. */
#define LABEL_STEP_BYTES 256
/* p is at the slash of a step. What is after it; NULL: there is no such step. */
const char *label_pointer_step(const char *p, char step[LABEL_STEP_BYTES]);

/* The first of fail_if that hits, from 1; 0: none. */
unsigned label_rules_hit(struct label_work *w);

/* ---- label_edit.c ---- */

void label_edit_partial(struct label_work *w);
void label_edit_failure(struct label_work *w);
void label_edit_is_error(struct label_work *w);
/* outcome: of the answer; NULL: it has none. */
void label_edit_meta(struct label_work *w, const char *outcome);

#endif
