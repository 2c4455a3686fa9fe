/* SPDX-License-Identifier: MIT */
/*
 * JSON values as the values of headers, and back.
 *
 * Owns: nothing.
 * Driven by: whoever sends or checks headers that mirror a body.
 * Invariants: nothing is rounded: numbers are compared digit by digit. What two readers
 * could take for different values never counts as the same.
 * Spec: 2026-07-28 basic/transports/streamable-http, Value Encoding.
 */
#include "mcpvisor/header_value.h"

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

enum header_fit
header_value_fit(struct jtext value)
{
	enum header_fit fit = HEADER_FIT_RANGE;
	struct decimal d;

	if (value_is_number(value)) {
		if (decimal_read(&d, value.p, value.n) && decimal_is_safe(&d))
			fit = HEADER_FIT_YES;
		buf_fini(&d.digits);
		return fit;
	}
	return jtext_type(value) == '{' || jtext_type(value) == '[' ? HEADER_FIT_TYPE
								    : HEADER_FIT_YES;
}

static bool
text_is_marked(const char *p, size_t n)
{
	const size_t start = sizeof(SENTINEL_START) - 1, end = sizeof(SENTINEL_END) - 1;

	return n >= start + end && memcmp(p, SENTINEL_START, start) == 0 &&
	       memcmp(p + n - end, SENTINEL_END, end) == 0;
}

bool
header_value_take(struct buf *out, const char *p, size_t n)
{
	const size_t start = sizeof(SENTINEL_START) - 1, end = sizeof(SENTINEL_END) - 1;

	if (text_is_marked(p, n))
		return base64_take(out, p + start, n - start - end);
	buf_add(out, p, n);
	return true;
}

bool
header_value_is_ascii(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if ((c < 0x20 && c != '\t') || c > 0x7e)
			return false;
	}
	return true;
}

static bool
text_is_plain(const char *p, size_t n)
{
	return header_value_is_ascii(p, n) && !text_is_marked(p, n) &&
	       (n == 0 ||
		   (strchr(" \t", p[0]) == NULL && strchr(" \t", p[n - 1]) == NULL));
}

/* Digits alone, as readers of headers expect of an integer; a fraction stays as it is. */
static void
number_put(struct buf *out, struct jtext number)
{
	struct decimal d;

	if (decimal_read(&d, number.p, number.n) && d.exp >= 0 && decimal_is_safe(&d)) {
		if (d.negative)
			buf_add_char(out, '-');
		buf_add(out, d.digits.data, d.digits.len);
		for (int64_t i = 0; i < d.exp; i++)
			buf_add_char(out, '0');
		if (d.digits.len == 0)
			buf_add_char(out, '0');
	} else {
		json_put(out, number);
	}
	buf_fini(&d.digits);
}

void
header_value_put(struct buf *out, struct jtext value)
{
	struct buf text;

	if (jtext_type(value) != '"') {
		if (value_is_number(value))
			number_put(out, value);
		else
			json_put(out, value);
		return;
	}
	buf_init(&text, out->max);
	(void)json_string_decode(value, &text);
	if (text.err != MV_OK) {
		out->err = text.err;
	} else if (text_is_plain(text.data, text.len)) {
		buf_add(out, text.data, text.len);
	} else {
		buf_add_str(out, SENTINEL_START);
		base64_put(out, text.data, text.len);
		buf_add_str(out, SENTINEL_END);
	}
	buf_fini(&text);
}

bool
header_value_is_number(const char *p, size_t n, struct jtext number)
{
	struct decimal a, b;
	bool same;

	same = decimal_read(&b, number.p, number.n);
	same = decimal_read(&a, p, n) && same;
	same = same && decimal_is_equal(&a, &b);
	buf_fini(&a.digits);
	buf_fini(&b.digits);
	return same;
}
