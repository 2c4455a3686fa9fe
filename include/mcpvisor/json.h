/* SPDX-License-Identifier: MIT */
/*
 * Small tools over JSON text that the scanner has accepted: walking an object
 * or array, comparing and decoding strings, and writing JSON into a buf. None of
 * them builds a tree. A struct jtext is a borrowed piece of such text.
 */
#ifndef MCPVISOR_JSON_H
#define MCPVISOR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/json_scan.h"

struct jtext {
	const char *p;
	size_t n; /* 0: absent */
};

static inline struct jtext
jtext_of(const char *base, struct json_span s)
{
	struct jtext t = {s.len ? base + s.off : NULL, s.len};
	return t;
}

static inline bool
jtext_is_equal(struct jtext a, struct jtext b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* First byte decides: '{', '[', '"', 't', 'f', 'n', '-' or a digit; 0 if absent. */
static inline char
jtext_type(struct jtext t)
{
	return t.n ? t.p[0] : '\0';
}

/* Walks the members of an object. p and n are the text with its braces. */
struct json_iter {
	const char *p, *end;
};
void json_iter_init(struct json_iter *it, struct jtext container);
/* Next member: key is the string with its quotes. False at the end. */
bool json_next_member(struct json_iter *it, struct jtext *key, struct jtext *value);
/* Next element of an array. */
bool json_next_element(struct json_iter *it, struct jtext *value);
/* The first member whose decoded key equals key; absent if obj is no object. */
struct jtext json_member(struct jtext obj, const char *key);

/* Compares a string's decoded text with s. False if t is no string. */
bool json_string_is(struct jtext t, const char *s);
/* Appends the decoded text. An escaped lone surrogate becomes U+FFFD. False (and
 * nothing appended) if t is no string. */
bool json_string_decode(struct jtext t, struct buf *out);
/* The decoded text: in place when it has no escapes, else in scratch. Absent if t is no
 * string, or scratch has failed; p is never NULL for an empty string. */
struct jtext json_text(struct jtext t, struct buf *scratch);
/* Whether two decoded texts are equal under simple case folding, as far as a member that
 * one parser takes for another goes: ASCII, U+017F as s, U+212A as k. */
bool jtext_is_like(struct jtext a, struct jtext b);
/* Appends the value without the white space between its tokens. */
void json_put_compact(struct buf *out, struct jtext t);
/* An integer without fraction or exponent that fits; else false. */
bool json_int(struct jtext t, int64_t *v);
/* In parentheses, as jansson has a macro of that name. */
bool(json_is_true)(struct jtext t);
/* A JSON-RPC id or progress token: a string, or an integer without fraction or
 * exponent, at most CAP_ID_BYTES as written. */
bool json_is_id(struct jtext t);
/* Appends a form of an id that is equal for equal ids only: "s" + decoded text or
 * "i" + the digits ("-0" is "0"). t must satisfy json_is_id. */
void json_id_key(struct jtext t, struct buf *out);
/* Whether that form has other bytes than t, quotes and the first letter aside. */
bool json_id_is_spelled(struct jtext t);
/* Whether two ids, or two strings, are the same value, however they are written. Takes
 * no memory. */
bool json_id_is_same(struct jtext a, struct jtext b);

/* Writes a string with quotes. Invalid UTF-8 in s becomes U+FFFD. s may be NULL if n is
 * 0. */
void json_put_string(struct buf *out, const char *s, size_t n);
static inline void
json_put(struct buf *out, struct jtext t)
{
	buf_add(out, t.p, t.n);
}
/* The span that removes a member from its object with one comma: from the
 * member's key (offset key_off) to the end of its value, widened over white
 * space and one neighbouring comma. base is the text the offsets refer to, object
 * that span of it with its braces. For one member; else json_edit_cut. */
struct json_span json_cut(
    const char *base, struct json_span object, uint32_t key_off, struct json_span value);

/* One edit of a text: the bytes of cut are replaced by put. */
struct json_edit {
	uint32_t off;
	uint32_t len; /* 0: pure insertion */
	const char *put;
	size_t put_len;
};
#define JSON_EDITS_MAX 40
struct json_edits {
	unsigned n;
	struct json_edit e[JSON_EDITS_MAX];
};
/* The room for edits is not written to, as it takes more than most edits do. */
static inline void
json_edits_init(struct json_edits *ed)
{
	ed->n = 0;
}
/* Adds an edit, keeping them in order of off; at one place in the order of the
 * calls. Edits must not overlap. put is borrowed until the pieces are used. */
void json_edit_add(
    struct json_edits *ed, uint32_t off, uint32_t len, const char *put, size_t put_len);
/* json_cut as an edit. For several members of one object, in any order: the cuts of
 * neighbours are merged so that no comma is left over. */
void json_edit_cut(struct json_edits *ed, const char *base, struct json_span object,
    uint32_t key_off, struct json_span value);
/* The pieces of base[span] with the edits applied, as an iovec of at most
 * 2 * JSON_EDITS_MAX + 1 entries. Returns their number. */
struct iovec;
int json_edit_pieces(const char *base, struct json_span span, const struct json_edits *ed,
    struct iovec *iov);

#endif
