/* SPDX-License-Identifier: MIT */
/* Classes of bytes, as RFC 9110 section 5.6 names them. */
#ifndef MCPVISOR_HTTP_PARSE_PRIV_H
#define MCPVISOR_HTTP_PARSE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#define HTTP_BAD_REQUEST 400
#define HTTP_TOO_LARGE	 413

/* tchar */
static inline bool
http_is_token(char c)
{
	static const uint32_t bits[8] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
	unsigned char u = (unsigned char)c;

	return bits[u >> 5] >> (u & 31) & 1;
}

/* field-vchar, SP, HTAB; obs-text is opaque */
static inline bool
http_is_value(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= 0x20 && u != 0x7f) || u == '\t';
}

static inline int
http_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

#endif
