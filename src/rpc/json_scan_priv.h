/* SPDX-License-Identifier: MIT */
/*
 * The parts of the scanner: json_scan.c knows the structure of a text,
 * json_lex.c its strings, numbers and literals, json_slots.c the members that we
 * look at. Each reads from p to end as far as its part goes and returns where the
 * next one has to go on; json_scan.st.state says which one.
 */
#ifndef MCPVISOR_JSON_SCAN_PRIV_H
#define MCPVISOR_JSON_SCAN_PRIV_H

#include "mcpvisor/json_scan.h"

enum json_state {
	/* json_scan.c */
	JSON_ST_VALUE,	       /* a value has to come */
	JSON_ST_FIRST_ELEMENT, /* after '[' */
	JSON_ST_FIRST_KEY,     /* after '{' */
	JSON_ST_KEY,	       /* after ',' in an object */
	JSON_ST_COLON,
	JSON_ST_AFTER, /* after a member or element */
	JSON_ST_DONE,  /* up to here white space may come */
	JSON_ST_SKIP,  /* below the depth bound: brackets are only counted */
	JSON_ST_SKIP_STRING,
	JSON_ST_SKIP_ESCAPE,
	/* json_lex.c */
	JSON_ST_STRING,
	JSON_ST_ESCAPE, /* after a backslash */
	JSON_ST_HEX,
	JSON_ST_MINUS,
	JSON_ST_ZERO,
	JSON_ST_INT,
	JSON_ST_POINT,
	JSON_ST_FRACTION,
	JSON_ST_E,
	JSON_ST_E_SIGN,
	JSON_ST_EXPONENT,
	JSON_ST_LITERAL,
	JSON_ST_FAILED,
};

/* Offset of p, a place in the chunk being fed. */
static inline uint32_t
scan_offset(const struct json_scan *s, const unsigned char *p)
{
	return (uint32_t)s->pos + (uint32_t)(p - s->st.chunk);
}

/* The first error stays. After a soft one the machine goes on. */
static inline void
scan_soft_error(struct json_scan *s, enum mv_err err)
{
	if (s->err == MV_OK)
		s->err = err;
}

static inline const unsigned char *
scan_fail(struct json_scan *s, const unsigned char *p)
{
	scan_soft_error(s, MV_SYNTAX);
	s->st.state = JSON_ST_FAILED;
	return p;
}

/* A value ends before offset end. */
void scan_value_end(struct json_scan *s, uint32_t end, bool is_string);

const unsigned char *scan_string(
    struct json_scan *s, const unsigned char *p, const unsigned char *end);
const unsigned char *scan_escape(
    struct json_scan *s, const unsigned char *p, const unsigned char *end);
const unsigned char *scan_number(
    struct json_scan *s, const unsigned char *p, const unsigned char *end);
const unsigned char *scan_literal(
    struct json_scan *s, const unsigned char *p, const unsigned char *end);
/* Whether the number that ends here is complete. */
bool scan_number_is_complete(const struct json_scan *s);
/* First byte of a literal: picks which one it has to be. */
bool scan_literal_begin(struct json_scan *s, unsigned char c);

/* No slot: the member is of no interest, or a repetition. */
#define JSON_SLOT_NONE JSON_SLOT_MAX
/* The slot that a decoded key names at the current level. Applies the duplicate rule. */
enum json_slot slot_of_key(struct json_scan *s, const unsigned char *key, size_t len);
/* Level of the object that is the value of slot. */
enum json_level slot_inner(enum json_slot slot);

#endif
