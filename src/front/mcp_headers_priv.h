/* SPDX-License-Identifier: MIT */
/* One header's value against the value of the body that it mirrors. */
#ifndef MCPVISOR_MCP_HEADERS_PRIV_H
#define MCPVISOR_MCP_HEADERS_PRIV_H

#include "mcpvisor/http_parse.h"
#include "mcpvisor/json.h"

/* X(NAME, what is wrong with the header); NULL: nothing, or both values are shown */
#define HEADER_MATCH_TABLE(X)                                                            \
	X(SAME, NULL)                                                                    \
	X(DIFFERS, NULL)                                                                 \
	X(BYTES, "holds a character other than visible ASCII, space and tab; such "      \
		 "values are sent as =?base64?...?=")                                    \
	X(BASE64, "is not valid padded Base64 between =?base64? and ?=")                 \
	X(TYPE, "can mirror a string, an integer or a boolean only; the body has "       \
		"another type there")                                                    \
	X(RANGE, "can mirror integers from -9007199254740991 to 9007199254740991 only")

enum header_match {
#define X(name, text) HEADER_##name,
	HEADER_MATCH_TABLE(X)
#undef X
	    HEADER_MATCH_MAX
};

const char *header_match_text(enum header_match m);
/* Byte for byte; what = method names and revisions. */
enum header_match header_match_exact(struct http_text header, struct jtext string);
/* The Base64 form is decoded; numbers are compared as numbers. */
enum header_match header_match_value(struct http_text header, struct jtext value);
/* Whether value can be mirrored: HEADER_SAME, HEADER_TYPE or HEADER_RANGE. */
enum header_match header_match_possible(struct jtext value);

#endif
