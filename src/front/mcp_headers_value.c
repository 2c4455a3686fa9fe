/* SPDX-License-Identifier: MIT */
/*
 * Compares a header's value with the JSON value that it mirrors.
 *
 * Owns: nothing. Driven by: mcp_headers.c.
 * Invariants: nothing is rounded: numbers are compared digit by digit. What two readers
 * could take for different values never counts as the same.
 * Spec: 2026-07-28 basic/transports/streamable-http, Value Encoding, Server Validation.
 */
#include "mcp_headers_priv.h"

#include "mcpvisor/mac.h"

#include <string.h>

#define SENTINEL_START "=?base64?"
#define SENTINEL_END   "?="
#define SAFE_MAX       9007199254740991LL /* 2^53 - 1 */
#define SAFE_DIGITS    16

/* A number as digits * 10^exp without zeros at either end of the digits. */
struct decimal {
	struct buf digits;
	int64_t exp;
	bool negative;
};

const char *
header_match_text(enum header_match m)
{
	static const char *const texts[] = {
#define X(name, text) text,
	    HEADER_MATCH_TABLE(X)
#undef X
	};

	return (unsigned)m < HEADER_MATCH_MAX ? texts[m] : NULL;
}

static size_t
decimal_skip_digits(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

/* The exponent with its e; more digits than any number needs are refused. */
static bool
decimal_read_exp(struct decimal *d, const char *p, const char *end)
{
	bool negative = false;
	int64_t exp = 0;

	if (p == end)
		return true;
	if (*p != 'e' && *p != 'E')
		return false;
	if (++p < end && (*p == '-' || *p == '+'))
		negative = *p++ == '-';
	if (p == end || end - p > 9)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		exp = exp * 10 + (*p - '0');
	}
	d->exp += negative ? -exp : exp;
	return true;
}

static void
decimal_strip(struct decimal *d)
{
	size_t zeros = 0;

	while (zeros < d->digits.len && d->digits.data[zeros] == '0')
		zeros++;
	buf_drop(&d->digits, zeros);
	while (d->digits.len > 0 && d->digits.data[d->digits.len - 1] == '0') {
		d->digits.len--;
		d->exp++;
	}
	if (d->digits.len == 0) {
		d->exp = 0;
		d->negative = false;
	}
}

/* JSON's grammar of numbers, or false. Ends with buf_fini of the digits. */
static bool
decimal_read(struct decimal *d, const char *p, size_t n)
{
	const char *end = p + n;
	size_t digits;

	*d = (struct decimal){.exp = 0};
	buf_init(&d->digits, n);
	if (p < end && *p == '-') {
		d->negative = true;
		p++;
	}
	digits = decimal_skip_digits(p, end);
	if (digits == 0 || (digits > 1 && *p == '0'))
		return false;
	buf_add(&d->digits, p, digits);
	p += digits;
	if (p < end && *p == '.') {
		digits = decimal_skip_digits(++p, end);
		if (digits == 0)
			return false;
		buf_add(&d->digits, p, digits);
		d->exp = -(int64_t)digits;
		p += digits;
	}
	if (!decimal_read_exp(d, p, end) || d->digits.err != MV_OK)
		return false;
	decimal_strip(d);
	return true;
}

/* An integer must be one that a double holds exactly; a fraction is none of ours. */
static bool
decimal_is_safe(const struct decimal *d)
{
	int64_t v = 0;

	if (d->exp < 0)
		return true;
	if (d->exp > SAFE_DIGITS || (int64_t)d->digits.len + d->exp > SAFE_DIGITS)
		return false;
	for (size_t i = 0; i < d->digits.len; i++)
		v = v * 10 + (d->digits.data[i] - '0');
	for (int64_t i = 0; i < d->exp; i++)
		v *= 10;
	return v <= SAFE_MAX;
}

static bool
decimal_is_equal(const struct decimal *a, const struct decimal *b)
{
	return a->negative == b->negative && a->exp == b->exp &&
	       a->digits.len == b->digits.len &&
	       (a->digits.len == 0 ||
		   memcmp(a->digits.data, b->digits.data, a->digits.len) == 0);
}

static bool
value_is_number(struct jtext v)
{
	char type = jtext_type(v);

	return type == '-' || (type >= '0' && type <= '9');
}

enum header_match
header_match_possible(struct jtext value)
{
	enum header_match m = HEADER_RANGE;
	struct decimal d;

	if (value_is_number(value)) {
		if (decimal_read(&d, value.p, value.n) && decimal_is_safe(&d))
			m = HEADER_SAME;
		buf_fini(&d.digits);
		return m;
	}
	return jtext_type(value) == '{' || jtext_type(value) == '[' ? HEADER_TYPE
								    : HEADER_SAME;
}

/* What the header has outside visible ASCII is refused, whatever the body says. */
static bool
header_is_ascii(struct http_text h)
{
	for (size_t i = 0; i < h.n; i++) {
		unsigned char c = (unsigned char)h.p[i];

		if ((c < 0x20 && c != '\t') || c > 0x7e)
			return false;
	}
	return true;
}

static bool
header_is_base64(struct http_text h)
{
	const size_t start = sizeof(SENTINEL_START) - 1, end = sizeof(SENTINEL_END) - 1;

	return h.n >= start + end && memcmp(h.p, SENTINEL_START, start) == 0 &&
	       memcmp(h.p + h.n - end, SENTINEL_END, end) == 0;
}

/* Appends the text that the header stands for. */
static enum header_match
header_decode(struct http_text h, struct buf *out)
{
	const size_t start = sizeof(SENTINEL_START) - 1, end = sizeof(SENTINEL_END) - 1;

	if (!header_is_ascii(h))
		return HEADER_BYTES;
	if (!header_is_base64(h))
		buf_add(out, h.p, h.n);
	else if (!base64_take(out, h.p + start, h.n - start - end))
		return HEADER_BASE64;
	return out->err == MV_OK ? HEADER_SAME : HEADER_DIFFERS;
}

static bool
text_is_equal(const struct buf *text, const char *p, size_t n)
{
	return text->len == n && (n == 0 || memcmp(text->data, p, n) == 0);
}

static bool
text_is_string(const struct buf *text, struct jtext string)
{
	struct buf body;
	bool same;

	buf_init(&body, string.n * 3);
	same = json_string_decode(string, &body) && body.err == MV_OK &&
	       text_is_equal(text, body.data, body.len);
	buf_fini(&body);
	return same;
}

static bool
text_is_number(const struct buf *text, struct jtext number)
{
	struct decimal a, b;
	bool same;

	same = decimal_read(&b, number.p, number.n);
	same = decimal_read(&a, text->data != NULL ? text->data : "", text->len) && same;
	same = same && decimal_is_equal(&a, &b);
	buf_fini(&a.digits);
	buf_fini(&b.digits);
	return same;
}

enum header_match
header_match_exact(struct http_text header, struct jtext string)
{
	enum header_match m = HEADER_BYTES;
	struct buf text;

	buf_init(&text, header.n);
	if (header_is_ascii(header)) {
		buf_add(&text, header.p, header.n);
		m = text_is_string(&text, string) ? HEADER_SAME : HEADER_DIFFERS;
	}
	buf_fini(&text);
	return m;
}

enum header_match
header_match_value(struct http_text header, struct jtext value)
{
	enum header_match m = header_match_possible(value);
	struct buf text;
	bool same;

	if (m != HEADER_SAME)
		return m;
	buf_init(&text, header.n);
	m = header_decode(header, &text);
	if (m == HEADER_SAME) {
		if (jtext_type(value) == '"')
			same = text_is_string(&text, value);
		else if (value_is_number(value))
			same = text_is_number(&text, value);
		else
			same = text_is_equal(&text, value.p, value.n);
		m = same ? HEADER_SAME : HEADER_DIFFERS;
	}
	buf_fini(&text);
	return m;
}
