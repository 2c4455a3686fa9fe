/* SPDX-License-Identifier: MIT */
/*
 * Numbers as they are written: compared, and as plain digits.
 *
 * Driven by: the check and the reader of schemas; pure.
 * Invariants: time is linear in the text, whatever its exponent says.
 */
#include "argspec_priv.h"

#include <string.h>

/* More than any text has digits, so that sums with it do not overflow. */
#define EXPONENT_MAX INT64_C(1000000000000)

struct argspec_decimal {
	bool is_negative;
	size_t n;	   /* digits, from the first to the last that is not 0; 0: zero */
	const char *first; /* of them; a point may be among them */
	int64_t top;	   /* power of ten of the first */
};

static int64_t
number_exponent(const char *p, const char *end)
{
	bool negative = p < end && *p == '-';
	int64_t e = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	for (; p < end && e < EXPONENT_MAX; p++)
		e = e * 10 + (*p - '0');
	if (e > EXPONENT_MAX)
		e = EXPONENT_MAX;
	return negative ? -e : e;
}

static struct argspec_decimal
number_read(struct jtext t)
{
	struct argspec_decimal d = {.is_negative = jtext_type(t) == '-'};
	const char *p = t.p + (d.is_negative ? 1 : 0), *end = t.p + t.n, *stop = p,
		   *point;
	int64_t units, seen = 0;

	while (stop < end && *stop != 'e' && *stop != 'E')
		stop++;
	point = memchr(p, '.', (size_t)(stop - p));
	units = (point != NULL ? point : stop) - p;
	for (; p < stop; p++) {
		if (*p == '.')
			continue;
		if (*p != '0' && d.first == NULL) {
			d.first = p;
			d.top = units - 1 - seen;
		}
		seen++;
		if (*p != '0')
			d.n = (size_t)(d.top - (units - seen)) + 1;
	}
	if (stop < end)
		d.top += number_exponent(stop + 1, end);
	return d;
}

static char
number_digit(const char **p)
{
	if (**p == '.')
		(*p)++;
	return *(*p)++;
}

static int
number_compare_size(const struct argspec_decimal *a, const struct argspec_decimal *b)
{
	const char *p = a->first, *q = b->first;

	if (a->n == 0 || b->n == 0)
		return (a->n != 0) - (b->n != 0);
	if (a->top != b->top)
		return a->top < b->top ? -1 : 1;
	for (size_t i = 0; i < a->n && i < b->n; i++) {
		char x = number_digit(&p), y = number_digit(&q);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return (a->n > b->n) - (a->n < b->n);
}

int
argspec_compare(struct jtext a, struct jtext b)
{
	struct argspec_decimal x = number_read(a), y = number_read(b);
	bool x_below = x.is_negative && x.n > 0, y_below = y.is_negative && y.n > 0;

	if (x_below != y_below)
		return x_below ? -1 : 1;
	return x_below ? number_compare_size(&y, &x) : number_compare_size(&x, &y);
}

bool
argspec_put_integer(struct jtext t, struct buf *out)
{
	struct argspec_decimal d;
	const char *p;

	if (jtext_type(t) != '-' && (jtext_type(t) < '0' || jtext_type(t) > '9'))
		return false;
	d = number_read(t);
	if (d.n > 0 && (d.top >= ARGSPEC_INTEGER_DIGITS || d.top < (int64_t)d.n - 1))
		return false;
	if (out == NULL)
		return true;
	if (d.n == 0) {
		buf_add_char(out, '0');
		return true;
	}
	if (d.is_negative)
		buf_add_char(out, '-');
	p = d.first;
	for (size_t i = 0; i < d.n; i++)
		buf_add_char(out, number_digit(&p));
	for (int64_t i = (int64_t)d.n; i <= d.top; i++)
		buf_add_char(out, '0');
	return true;
}
