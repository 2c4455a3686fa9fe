/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON text that the scanner has accepted, without a tree.
 *
 * Owns: nothing. Driven by: whoever holds the text.
 * Invariants: never reads past the text, whatever it holds.
 */
#include "mcpvisor/json.h"

#include <string.h>

static const char *
skip_space(const char *p, const char *end)
{
	while (p < end && json_is_space(*p))
		p++;
	return p;
}

/* p is the opening quote; the result is after the closing one. Most of a long list is
 * strings, so they are not looked at byte by byte. */
static const char *
skip_string(const char *p, const char *end)
{
	const char *first = p + 1, *quote = first;

	while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL) {
		const char *at = quote;

		while (at > first && at[-1] == '\\')
			at--;
		if ((quote - at) % 2 == 0)
			return quote + 1;
		quote++;
	}
	return end;
}

static const char *
skip_container(const char *p, const char *end)
{
	size_t depth = 0;

	while (p < end) {
		if (*p == '"') {
			p = skip_string(p, end);
			continue;
		}
		if (*p == '{' || *p == '[')
			depth++;
		else if ((*p == '}' || *p == ']') && --depth == 0)
			return p + 1;
		p++;
	}
	return end;
}

static const char *
skip_value(const char *p, const char *end)
{
	if (p == end)
		return end;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_container(p, end);
	while (p < end && !json_is_space(*p) && *p != ',' && *p != '}' && *p != ']')
		p++;
	return p;
}

void
json_iter_init(struct json_iter *it, struct jtext container)
{
	char type = jtext_type(container);

	it->p = it->end = NULL;
	if ((type != '{' && type != '[') || container.n < 2)
		return;
	it->p = container.p + 1;
	it->end = container.p + container.n - 1;
}

/* Reads one value and, if there is one, the comma or colon after it. */
static bool
next_value(struct json_iter *it, struct jtext *value)
{
	const char *p = skip_space(it->p, it->end);

	value->p = p;
	it->p = skip_value(p, it->end);
	value->n = (size_t)(it->p - p);
	it->p = skip_space(it->p, it->end);
	if (it->p < it->end)
		it->p++;
	return value->n > 0;
}

bool
json_next_member(struct json_iter *it, struct jtext *key, struct jtext *value)
{
	return next_value(it, key) && next_value(it, value);
}

bool
json_next_element(struct json_iter *it, struct jtext *value)
{
	return next_value(it, value);
}

struct jtext
json_member(struct jtext obj, const char *key)
{
	struct jtext k, v, none = {NULL, 0};
	struct json_iter it;

	if (jtext_type(obj) != '{')
		return none;
	json_iter_init(&it, obj);
	while (json_next_member(&it, &k, &v)) {
		if (json_string_is(k, key))
			return v;
	}
	return none;
}

static bool
read_hex4(const char *p, const char *end, unsigned *u)
{
	unsigned v = 0;
	int i;

	if (end - p < 4)
		return false;
	for (i = 0; i < 4; i++) {
		char c = p[i];

		v <<= 4;
		if (c >= '0' && c <= '9')
			v |= (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v |= (unsigned)((c | 0x20) - 'a' + 10);
		else
			return false;
	}
	*u = v;
	return true;
}

static size_t
put_utf8(unsigned u, char out[4])
{
	if (u < 0x80) {
		out[0] = (char)u;
		return 1;
	}
	if (u < 0x800) {
		out[0] = (char)(0xc0 | u >> 6);
		out[1] = (char)(0x80 | (u & 0x3f));
		return 2;
	}
	if (u < 0x10000) {
		out[0] = (char)(0xe0 | u >> 12);
		out[1] = (char)(0x80 | (u >> 6 & 0x3f));
		out[2] = (char)(0x80 | (u & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | u >> 18);
	out[1] = (char)(0x80 | (u >> 12 & 0x3f));
	out[2] = (char)(0x80 | (u >> 6 & 0x3f));
	out[3] = (char)(0x80 | (u & 0x3f));
	return 4;
}

/* *p is after "\u". A lone surrogate stays one, in three bytes that no valid UTF-8
 * has, so that comparisons tell it from everything else. */
static size_t
unescape_unicode(const char **p, const char *end, char out[4])
{
	unsigned u, low;

	if (!read_hex4(*p, end, &u)) {
		*p = end;
		return 0;
	}
	*p += 4;
	if (u >= 0xd800 && u <= 0xdbff && end - *p >= 6 && (*p)[0] == '\\' &&
	    (*p)[1] == 'u' && read_hex4(*p + 2, end, &low) && low >= 0xdc00 &&
	    low <= 0xdfff) {
		u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
		*p += 6;
	}
	return put_utf8(u, out);
}

/* *p is a backslash. Moves behind the escape; returns the bytes it stands for. */
static size_t
unescape(const char **p, const char *end, char out[4])
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at;
	char c;

	if (end - *p < 2) {
		*p = end;
		return 0;
	}
	c = (*p)[1];
	*p += 2;
	if (c == 'u')
		return unescape_unicode(p, end, out);
	at = memchr(from, c, sizeof(from) - 1);
	out[0] = at != NULL ? to[at - from] : c;
	return 1;
}

/* One character of a string, decoded. A raw one is as long as its lead byte says. */
static size_t
next_char(const char **p, const char *end, char out[4])
{
	unsigned char c = (unsigned char)**p;
	size_t n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (c == '\\')
		return unescape(p, end, out);
	if (n > (size_t)(end - *p))
		n = (size_t)(end - *p);
	memcpy(out, *p, n);
	*p += n;
	return n;
}

static bool
is_string(struct jtext t)
{
	return t.n >= 2 && t.p[0] == '"';
}

bool
json_string_is(struct jtext t, const char *s)
{
	size_t left = strlen(s), n;
	const char *p, *end;
	char out[4];

	if (!is_string(t))
		return false;
	p = t.p + 1;
	end = t.p + t.n - 1;
	if (memchr(p, '\\', (size_t)(end - p)) == NULL)
		return (size_t)(end - p) == left && memcmp(p, s, left) == 0;
	while (p < end) {
		n = next_char(&p, end, out);
		if (n > left || memcmp(s, out, n) != 0)
			return false;
		s += n;
		left -= n;
	}
	return left == 0;
}

static void
decode(struct jtext t, struct buf *out, bool keep_surrogates)
{
	const char *p = t.p + 1, *end = t.p + t.n - 1, *run;
	char c[4];
	size_t n;

	while (p < end) {
		run = p;
		p = memchr(p, '\\', (size_t)(end - p));
		if (p == NULL)
			p = end;
		buf_add(out, run, (size_t)(p - run));
		if (p == end)
			break;
		n = unescape(&p, end, c);
		if (!keep_surrogates && n == 3 && (unsigned char)c[0] == 0xed &&
		    (unsigned char)c[1] >= 0xa0)
			buf_add_str(out, "\xef\xbf\xbd");
		else
			buf_add(out, c, n);
	}
}

bool
json_string_decode(struct jtext t, struct buf *out)
{
	if (!is_string(t))
		return false;
	decode(t, out, false);
	return true;
}

static bool
is_integer(struct jtext t)
{
	size_t i = t.n > 0 && t.p[0] == '-' ? 1 : 0;

	if (i == t.n)
		return false;
	for (; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
	}
	return true;
}

bool
json_int(struct jtext t, int64_t *v)
{
	bool negative;
	int64_t n = 0;
	size_t i;

	if (!is_integer(t))
		return false;
	negative = t.p[0] == '-';
	/* Counts downwards, where there is one more number. */
	for (i = negative ? 1 : 0; i < t.n; i++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_sub_overflow(n, t.p[i] - '0', &n))
			return false;
	}
	if (!negative && __builtin_sub_overflow(0, n, &n))
		return false;
	*v = n;
	return true;
}

bool
json_is_true(struct jtext t)
{
	return t.n == 4 && memcmp(t.p, "true", 4) == 0;
}

bool
json_is_id(struct jtext t)
{
	return t.n <= CAP_ID_BYTES && (is_string(t) || is_integer(t));
}

static bool
is_zero(struct jtext t)
{
	return (t.n == 1 && t.p[0] == '0') || (t.n == 2 && memcmp(t.p, "-0", 2) == 0);
}

void
json_id_key(struct jtext t, struct buf *out)
{
	if (is_string(t)) {
		buf_add_char(out, 's');
		decode(t, out, true);
		return;
	}
	buf_add_char(out, 'i');
	if (is_zero(t))
		buf_add_char(out, '0');
	else
		buf_add(out, t.p, t.n);
}

bool
json_id_is_spelled(struct jtext t)
{
	return memchr(t.p, '\\', t.n) != NULL || (t.n == 2 && is_zero(t));
}

bool
json_id_is_same(struct jtext a, struct jtext b)
{
	const char *p, *q, *p_end, *q_end;
	char x[4], y[4];
	size_t n;

	if (!json_id_is_spelled(a) && !json_id_is_spelled(b))
		return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
	if (!is_string(a) || !is_string(b))
		return is_zero(a) && is_zero(b);
	p = a.p + 1;
	p_end = a.p + a.n - 1;
	q = b.p + 1;
	q_end = b.p + b.n - 1;
	while (p < p_end && q < q_end) {
		n = next_char(&p, p_end, x);
		if (n != next_char(&q, q_end, y) || memcmp(x, y, n) != 0)
			return false;
	}
	return p == p_end && q == q_end;
}
