/* SPDX-License-Identifier: MIT */
/*
 * What a result has to say, found without knowing what it is about: its
 * structuredContent, else the first of its texts that is not blank. For all modules of
 * this layer.
 */
#ifndef PAYLOAD_PRIV_H
#define PAYLOAD_PRIV_H

#include <stddef.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"

/* What a value that is looked at may be nested, in a result or in a text. */
#define PAYLOAD_DEPTH 256

enum payload_kind {
	PAYLOAD_NONE,  /* no content at all */
	PAYLOAD_BLANK, /* an empty content, or texts of white space alone */
	PAYLOAD_OTHER, /* blocks, and no text among them */
	PAYLOAD_PROSE, /* a text that is no JSON */
	PAYLOAD_VALUE, /* JSON */
	PAYLOAD_LOST   /* over the bound, or there was no memory for it */
};

struct payload {
	enum payload_kind kind;
	struct jtext value; /* of PAYLOAD_VALUE, in the message or in a buffer */
	struct jtext text;  /* decoded, as it came: of PROSE, and where VALUE was found in
			       a text; else absent */
	struct jtext inner; /* the text below all quotes: of PROSE, and of a value that
			       is a string or has one in "result" alone; else absent */
	struct jtext content; /* the array; absent: there is none */
	struct buf bufs[3];
};

/* p is set anew. max_bytes: of what is looked at, as it is written. Of a result that is
 * over that and over CAP_RESULT_WALK_BYTES all is lost. */
void payload_find(
    struct payload *p, const char *base, const struct json_msg *json, size_t max_bytes);
void payload_fini(struct payload *p);

/* json_text with a scratch that is large enough for any string. Absent: there is no
 * memory; an empty string is not. */
struct jtext payload_decode(struct jtext string, struct buf *scratch);
/* Without white space, and a byte order mark, around it. */
struct jtext payload_trim(struct jtext s);
/* What is in the one code fence that s is; absent: it is none. */
struct jtext payload_unfence(struct jtext s);
/* The JSON value that s is, white space aside; absent: it is none, or is nested deeper
 * than PAYLOAD_DEPTH. */
struct jtext payload_json(struct jtext s);
/* Its only member, if that is "result", in which some servers wrap what is no object. */
struct jtext payload_unwrap(struct jtext object);

#endif
