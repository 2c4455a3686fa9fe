/* SPDX-License-Identifier: MIT */
/* Well-formed UTF-8, as Unicode 15.0 has it in table 3-7. */
#ifndef MCPVISOR_UTF8_H
#define MCPVISOR_UTF8_H

#include <stddef.h>

/* Bytes of the character that begins with c, else 0. Its second byte has to be in
 * [*lo, *hi], those after it in [0x80, 0xbf]. */
static inline unsigned
utf8_lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
	*lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	*hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	if (c < 0xc2)
		return c < 0x80 ? 1 : 0;
	if (c < 0xf0)
		return c < 0xe0 ? 2 : 3;
	return c < 0xf5 ? 4 : 0;
}

/* Bytes of the character that stands at p, of n bytes, at least one; 0: none does. */
static inline size_t
utf8_length(const unsigned char *p, size_t n)
{
	unsigned char lo, hi;
	size_t len = utf8_lead(p[0], &lo, &hi);

	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if (p[i] < lo || p[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xbf;
	}
	return len;
}

/* How many of n bytes of such a text, at most max, end between two characters. */
static inline size_t
utf8_cut(const char *p, size_t n, size_t max)
{
	if (n <= max)
		return n;
	for (n = max; n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80; n--)
		continue;
	return n;
}

#endif
