/* SPDX-License-Identifier: MIT */
/*
 * Just enough JSON for the two ends of a benchmark.
 *
 * Driven by: bench_echo for requests, bench_load for answers.
 * Invariants: never reads past a piece; a text that does not close is refused.
 */
#include "bench_json.h"

#include <string.h>

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *
skip_space(const char *p, const char *end)
{
	while (p < end && is_space(*p))
		p++;
	return p;
}

/* p is at the opening quote. NULL if the string does not close. */
static const char *
skip_string(const char *p, const char *end)
{
	const char *start = ++p;

	while ((p = memchr(p, '"', (size_t)(end - p))) != NULL) {
		const char *b = p;

		while (b > start && b[-1] == '\\')
			b--;
		p++;
		if ((p - 1 - b) % 2 == 0)
			return p;
	}
	return NULL;
}

static const char *
skip_container(const char *p, const char *end)
{
	unsigned depth = 0;

	while (p != NULL && p < end) {
		switch (*p) {
		case '"':
			p = skip_string(p, end);
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0)
				return p + 1;
			break;
		default:
			break;
		}
		p++;
	}
	return NULL;
}

static const char *
skip_value(const char *p, const char *end)
{
	if (p < end && *p == '"')
		return skip_string(p, end);
	if (p < end && (*p == '{' || *p == '['))
		return skip_container(p, end);
	while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_space(*p))
		p++;
	return p;
}

/* True if the container ended here, soundly, instead of going on. */
static bool
is_end(const char *p, const char *end, char closing)
{
	return p < end && *p == closing && skip_space(p + 1, end) == end;
}

static void
take(struct piece key, struct piece value, const char *const *keys, struct piece *values,
    size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].n == 0 && bench_is(key, keys[i]))
			values[i] = value;
}

bool
bench_members(
    struct piece object, const char *const *keys, struct piece *values, size_t n)
{
	const char *p = object.p, *end;

	memset(values, 0, n * sizeof(*values));
	if (object.n == 0 || *p != '{')
		return false;
	end = p + object.n;
	p = skip_space(p + 1, end);
	if (is_end(p, end, '}'))
		return true;
	for (;;) {
		const char *key = p, *key_end, *value;

		if (p >= end || *p != '"' || (key_end = skip_string(p, end)) == NULL)
			return false;
		p = skip_space(key_end, end);
		if (p >= end || *p != ':')
			return false;
		value = skip_space(p + 1, end);
		p = skip_value(value, end);
		if (p == NULL || p == value)
			return false;
		take((struct piece){key + 1, (size_t)(key_end - key - 2)},
		    (struct piece){value, (size_t)(p - value)}, keys, values, n);
		p = skip_space(p, end);
		if (p < end && *p == ',')
			p = skip_space(p + 1, end);
		else
			return is_end(p, end, '}');
	}
}

struct piece
bench_member(struct piece object, const char *key)
{
	struct piece value;

	if (!bench_members(object, &key, &value, 1))
		value = (struct piece){NULL, 0};
	return value;
}

bool
bench_elements(struct piece array, void (*fn)(void *arg, struct piece element), void *arg)
{
	const char *p = array.p, *end;

	if (array.n == 0 || *p != '[')
		return false;
	end = p + array.n;
	p = skip_space(p + 1, end);
	if (is_end(p, end, ']'))
		return true;
	for (;;) {
		const char *value = p;

		p = skip_value(value, end);
		if (p == NULL || p == value)
			return false;
		fn(arg, (struct piece){value, (size_t)(p - value)});
		p = skip_space(p, end);
		if (p < end && *p == ',')
			p = skip_space(p + 1, end);
		else
			return is_end(p, end, ']');
	}
}

struct piece
bench_string(struct piece t)
{
	if (t.n < 2 || t.p[0] != '"')
		return (struct piece){NULL, 0};
	return (struct piece){t.p + 1, t.n - 2};
}

bool
bench_number(struct piece t, unsigned long long *v)
{
	*v = 0;
	if (t.n == 0 || t.n > 18)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
		*v = *v * 10 + (unsigned)(t.p[i] - '0');
	}
	return true;
}

bool
bench_is(struct piece t, const char *s)
{
	size_t n = strlen(s);

	return t.n == n && (n == 0 || memcmp(t.p, s, n) == 0);
}
