/* SPDX-License-Identifier: MIT */
/*
 * The tokens of a JSON text: strings, numbers and literals.
 *
 * Owns: the in-token states of json_scan. Driven by: json_scan_feed.
 * Invariants: a token may be cut between any two bytes; all that is known of it
 * then is in json_scan.st.
 */
#include "json_scan_priv.h"

#include "mcpvisor/utf8.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes that a string may contain and that need no thought. */
static inline bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Most bytes of most messages pass through here. */
#ifdef __SSE2__
static inline const unsigned char *
skip_plain(const unsigned char *p, const unsigned char *end)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
	const __m128i space = _mm_set1_epi8(0x20);
	__m128i v, special;
	unsigned mask;

	for (; end - p >= 16; p += 16) {
		v = _mm_loadu_si128((const __m128i *)(const void *)p);
		/* A signed comparison: bytes from 0x80 on are negative. */
		special = _mm_or_si128(_mm_cmplt_epi8(v, space),
		    _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
		mask = (unsigned)_mm_movemask_epi8(special);
		if (mask != 0)
			return p + __builtin_ctz(mask);
	}
	while (p < end && is_plain(*p))
		p++;
	return p;
}
#else
#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))
#define HAS_ZERO(v)  (((v)-EACH_BYTE(1)) & ~(v))

static inline const unsigned char *
skip_plain(const unsigned char *p, const unsigned char *end)
{
	uint64_t v, special;

	for (; end - p >= 8; p += 8) {
		memcpy(&v, p, sizeof(v));
		special = v | (v - EACH_BYTE(0x20)) | HAS_ZERO(v ^ EACH_BYTE('"')) |
			  HAS_ZERO(v ^ EACH_BYTE('\\'));
		if (special & EACH_BYTE(0x80))
			break;
	}
	while (p < end && is_plain(*p))
		p++;
	return p;
}
#endif

static void
add_to_key(struct json_scan *s, const unsigned char *p, size_t n)
{
	if (n > sizeof(s->st.key) - s->st.key_len) {
		s->st.key_lost = true;
		return;
	}
	memcpy(s->st.key + s->st.key_len, p, n);
	s->st.key_len = (uint8_t)(s->st.key_len + n);
}

static void
begin_utf8(struct json_scan *s, unsigned char c)
{
	unsigned len = utf8_lead(c, &s->st.utf8_lo, &s->st.utf8_hi);

	if (len == 0)
		scan_soft_error(s, MV_UTF8);
	else
		s->st.utf8_left = (uint8_t)(len - 1);
}

/* The bytes after a lead byte. A wrong one is not consumed. */
static const unsigned char *
continue_utf8(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	for (; s->st.utf8_left > 0 && p < end; p++) {
		if (*p < s->st.utf8_lo || *p > s->st.utf8_hi) {
			s->st.utf8_left = 0;
			scan_soft_error(s, MV_UTF8);
			break;
		}
		s->st.utf8_left--;
		s->st.utf8_lo = 0x80;
		s->st.utf8_hi = 0xbf;
	}
	return p;
}

/* p is behind the closing quote, run where what st.key does not have begins. */
static void
end_key(struct json_scan *s, const unsigned char *run, const unsigned char *p)
{
	size_t n = (size_t)(p - 1 - run);

	s->st.in_key = false;
	s->st.state = JSON_ST_COLON;
	if (!s->st.key_wanted)
		return;
	/* Nearly all keys are in one piece, and are looked at where they are. */
	if (s->st.key_len > 0 || n > sizeof(s->st.key)) {
		add_to_key(s, run, n);
		run = s->st.key;
		n = s->st.key_len;
	}
	if (s->st.key_lost)
		return;
	s->st.is_uri = s->st.result_depth > 0 && n == 3 && memcmp(run, "uri", 3) == 0;
	s->st.slot = (uint8_t)slot_of_key(s, run, n);
}

static void
end_string(struct json_scan *s, const unsigned char *run, const unsigned char *p)
{
	if (s->st.in_key)
		end_key(s, run, p);
	else
		scan_value_end(s, scan_offset(s, p), true);
}

static inline bool
is_short_escape(unsigned char c)
{
	return c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' ||
	       c == 'r' || c == 't';
}

/* From run on nothing of the string has been dealt with; p may be past bytes that need no
 * thought. */
static const unsigned char *
scan_string_on(struct json_scan *s, const unsigned char *run, const unsigned char *p,
    const unsigned char *end)
{
	while (p < end) {
		if (s->st.utf8_left > 0) {
			p = continue_utf8(s, p, end);
			continue;
		}
		if (*p >= 0x80) {
			begin_utf8(s, *p++);
			continue;
		}
		p = skip_plain(p, end);
		if (p == end || *p >= 0x80)
			continue;
		if (*p == '\\' && !s->st.key_wanted && end - p >= 2 &&
		    is_short_escape(p[1])) {
			p += 2;
			continue;
		}
		if (*p == '"') {
			p++;
			end_string(s, run, p);
			return p;
		}
		if (s->st.key_wanted)
			add_to_key(s, run, (size_t)(p - run));
		if (*p != '\\')
			return scan_fail(s, p);
		s->st.state = JSON_ST_ESCAPE;
		return p + 1;
	}
	if (s->st.key_wanted)
		add_to_key(s, run, (size_t)(p - run));
	return p;
}

const unsigned char *
scan_string(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	const unsigned char *run = p;

	/* Nearly all strings end at the first byte that needs thought. */
	if (s->st.utf8_left == 0) {
		p = skip_plain(p, end);
		if (p < end && *p == '"') {
			end_string(s, run, p + 1);
			return p + 1;
		}
	}
	return scan_string_on(s, run, p, end);
}

static void
add_short_escape(struct json_scan *s, unsigned char c)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = memchr(from, c, sizeof(from) - 1);
	unsigned char decoded = at != NULL ? (unsigned char)to[at - from] : c;

	add_to_key(s, &decoded, 1);
}

static void
add_code_unit(struct json_scan *s, unsigned u)
{
	unsigned char b[3];

	if (u < 0x80) {
		b[0] = (unsigned char)u;
		add_to_key(s, b, 1);
	} else if (u < 0x800) {
		b[0] = (unsigned char)(0xc0 | u >> 6);
		b[1] = (unsigned char)(0x80 | (u & 0x3f));
		add_to_key(s, b, 2);
	} else if (u >= 0xd800 && u <= 0xdfff) {
		/* No key of ours, nor a variant of one, has a surrogate. */
		s->st.key_lost = true;
	} else {
		b[0] = (unsigned char)(0xe0 | u >> 12);
		b[1] = (unsigned char)(0x80 | (u >> 6 & 0x3f));
		b[2] = (unsigned char)(0x80 | (u & 0x3f));
		add_to_key(s, b, 3);
	}
}

static int
hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const unsigned char *
scan_escape(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	int digit;

	if (s->st.state == JSON_ST_ESCAPE) {
		if (*p == 'u') {
			s->st.hex = 0;
			s->st.hex_left = 4;
			s->st.state = JSON_ST_HEX;
			return p + 1;
		}
		if (!is_short_escape(*p))
			return scan_fail(s, p);
		if (s->st.key_wanted)
			add_short_escape(s, *p);
		s->st.state = JSON_ST_STRING;
		return p + 1;
	}
	for (; p < end && s->st.hex_left > 0; p++) {
		digit = hex_digit(*p);
		if (digit < 0)
			return scan_fail(s, p);
		s->st.hex = (uint16_t)(s->st.hex << 4 | digit);
		s->st.hex_left--;
	}
	if (s->st.hex_left == 0) {
		if (s->st.key_wanted)
			add_code_unit(s, s->st.hex);
		s->st.state = JSON_ST_STRING;
	}
	return p;
}

static inline bool
is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

enum number_byte {
	NUMBER_OTHER,
	NUMBER_ZERO,
	NUMBER_DIGIT,
	NUMBER_POINT,
	NUMBER_E,
	NUMBER_SIGN,
	NUMBER_BYTE_MAX
};

static enum number_byte
number_byte(unsigned char c)
{
	if (is_digit(c))
		return c == '0' ? NUMBER_ZERO : NUMBER_DIGIT;
	if (c == '.')
		return NUMBER_POINT;
	if (c == 'e' || c == 'E')
		return NUMBER_E;
	return c == '+' || c == '-' ? NUMBER_SIGN : NUMBER_OTHER;
}

/* The next state by state and byte; 0, which is no state of a number, if the byte is no
 * part of this number. */
#define ROW(zero, digit, point, e, sign)                                                 \
	{                                                                                \
		[NUMBER_ZERO] = (zero), [NUMBER_DIGIT] = (digit),                        \
		[NUMBER_POINT] = (point), [NUMBER_E] = (e), [NUMBER_SIGN] = (sign)       \
	}
static const uint8_t number_next[JSON_ST_EXPONENT + 1][NUMBER_BYTE_MAX] = {
    [JSON_ST_MINUS] = ROW(JSON_ST_ZERO, JSON_ST_INT, 0, 0, 0),
    [JSON_ST_ZERO] = ROW(0, 0, JSON_ST_POINT, JSON_ST_E, 0),
    [JSON_ST_INT] = ROW(JSON_ST_INT, JSON_ST_INT, JSON_ST_POINT, JSON_ST_E, 0),
    [JSON_ST_POINT] = ROW(JSON_ST_FRACTION, JSON_ST_FRACTION, 0, 0, 0),
    [JSON_ST_FRACTION] = ROW(JSON_ST_FRACTION, JSON_ST_FRACTION, 0, JSON_ST_E, 0),
    [JSON_ST_E] = ROW(JSON_ST_EXPONENT, JSON_ST_EXPONENT, 0, 0, JSON_ST_E_SIGN),
    [JSON_ST_E_SIGN] = ROW(JSON_ST_EXPONENT, JSON_ST_EXPONENT, 0, 0, 0),
    [JSON_ST_EXPONENT] = ROW(JSON_ST_EXPONENT, JSON_ST_EXPONENT, 0, 0, 0),
};
#undef ROW

bool
scan_number_is_complete(const struct json_scan *s)
{
	return s->st.state == JSON_ST_ZERO || s->st.state == JSON_ST_INT ||
	       s->st.state == JSON_ST_FRACTION || s->st.state == JSON_ST_EXPONENT;
}

const unsigned char *
scan_number(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	uint8_t next;

	for (; p < end; p++) {
		if (s->st.state == JSON_ST_INT || s->st.state == JSON_ST_FRACTION) {
			while (p < end && is_digit(*p))
				p++;
			if (p == end)
				break;
		}
		next = number_next[s->st.state][number_byte(*p)];
		if (next == 0) {
			if (!scan_number_is_complete(s))
				return scan_fail(s, p);
			scan_value_end(s, scan_offset(s, p), false);
			break;
		}
		s->st.state = next;
	}
	return p;
}

static const char *const literals[] = {"true", "false", "null"};

bool
scan_literal_begin(struct json_scan *s, unsigned char c)
{
	uint8_t i;

	for (i = 0; i < 3; i++) {
		if (literals[i][0] == (char)c) {
			s->st.literal = i;
			s->st.literal_pos = 1;
			s->st.state = JSON_ST_LITERAL;
			return true;
		}
	}
	return false;
}

const unsigned char *
scan_literal(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	const char *text = literals[s->st.literal];

	for (; p < end && text[s->st.literal_pos] != '\0'; p++) {
		if ((char)*p != text[s->st.literal_pos])
			return scan_fail(s, p);
		s->st.literal_pos++;
	}
	if (text[s->st.literal_pos] == '\0')
		scan_value_end(s, scan_offset(s, p), false);
	return p;
}
