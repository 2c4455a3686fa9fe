/* SPDX-License-Identifier: MIT */
/*
 * The text of a log line: as our own words, as logfmt, or as JSON.
 *
 * Owns: nothing.
 * Driven by: log.
 * Invariants: whatever the pairs are, the line is what its format says: a JSON line is
 * one object, also where it was cut; nothing here allocates.
 */
#include "mcpvisor/log.h"

#include "log_priv.h"

#include "mcpvisor/utf8.h"

#include <stdio.h>
#include <string.h>

/* For what comes last in the two structured formats, suppressed and cut. */
#define LOG_TAIL_BYTES	 64
#define LOG_NUMBER_BYTES 18 /* longer ones overflow in some readers */

static void __attribute__((format(printf, 2, 0)))
line_addv(struct log_line *l, const char *fmt, va_list ap)
{
	size_t room = LOG_LINE_BYTES - l->len;
	int n;

	n = vsnprintf(l->text + l->len, room, fmt, ap);
	if (n < 0)
		return;
	if ((size_t)n >= room) {
		l->cut = true;
		l->len = LOG_LINE_BYTES - 1;
		return;
	}
	l->len += (size_t)n;
}

static void __attribute__((format(printf, 2, 3)))
line_addf(struct log_line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_addv(l, fmt, ap);
	va_end(ap);
}

/* The same for "%s", which most of a line's head is. */
static void
line_adds(struct log_line *l, const char *s)
{
	size_t n = strlen(s), room = LOG_LINE_BYTES - 1 - l->len;

	if (n > room) {
		l->cut = true;
		n = room;
	}
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

/* Whether none of the eight bytes at p is a control one; what is not ASCII may say yes
 * or no, and is then looked at byte by byte. */
static bool
word_is_plain(const char *p)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones * 0x80;
	uint64_t w, del;

	memcpy(&w, p, sizeof(w));
	del = w ^ ones * 0x7f;
	return (((w - ones * 0x20) | (del - ones)) & high) == 0;
}

/* What a value let through must not split the line or reach a terminal. */
static void
line_clean(struct log_line *l, size_t from)
{
	for (size_t i = from; i < l->len; i++) {
		while (l->len - i > 8 && word_is_plain(l->text + i))
			i += 8;
		if ((unsigned char)l->text[i] < 0x20 || l->text[i] == 0x7f)
			l->text[i] = '?';
	}
}

/* ---- text ---- */

static void
text_end(struct log_line *l, size_t start, unsigned suppressed)
{
	char tail[LOG_TAIL_BYTES] = "";
	int n = 0;

	if (suppressed > 0)
		n = snprintf(tail, sizeof(tail), " suppressed=%u", suppressed);
	if (l->cut || l->len + (size_t)n > LOG_LINE_BYTES - 1) {
		l->len =
		    utf8_cut(l->text, LOG_LINE_BYTES, LOG_LINE_BYTES - 1 - (size_t)n - 3);
		memcpy(l->text + l->len, "...", 3);
		l->len += 3;
	}
	memcpy(l->text + l->len, tail, (size_t)n);
	l->len += (size_t)n;
	line_clean(l, start);
}

static void __attribute__((format(printf, 3, 0)))
text_line(struct log_line *l, const struct log_head *h, const char *fmt, va_list ap)
{
	size_t start, before;

	if (h->time) {
		line_adds(l, h->time);
		line_adds(l, " ");
	}
	start = l->len;
	line_adds(l, h->level_name);
	line_adds(l, " ");
	line_adds(l, h->module);
	line_adds(l, ": ");
	line_adds(l, h->event);
	before = l->len;
	line_adds(l, " ");
	line_addv(l, fmt, ap);
	if (l->len == before + 1)
		l->len = before;
	text_end(l, start, h->suppressed);
}

/* ---- pairs ---- */

struct log_pair {
	const char *key, *value;
	size_t key_len, len;
	bool quoted; /* value is what stands between quotes, with its escapes */
	bool dots;   /* "..." stood behind them */
};

static bool
key_has(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/* Length of the key that stands at p with its "=", else 0. */
static size_t
key_at(const char *p, const char *end)
{
	const char *q = p;

	while (q < end && key_has((unsigned char)*q))
		q++;
	return q > p && q < end && *q == '=' ? (size_t)(q - p) : 0;
}

/* The end of a value without quotes: names of upstreams may have spaces. */
static const char *
bare_end(const char *p, const char *end)
{
	while (p < end && !(*p == ' ' && (p + 1 == end || key_at(p + 1, end) > 0)))
		p++;
	return p;
}

/* The closing quote, or end. */
static const char *
quoted_end(const char *p, const char *end)
{
	while (p < end && *p != '"')
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return p;
}

/* Takes the next pair from *at; false at the end. */
static bool
pair_next(const char **at, const char *end, bool cut, struct log_pair *out)
{
	const char *p = *at, *q;
	size_t key;

	while (p < end && *p == ' ')
		p++;
	if (p == end)
		return false;
	*out = (struct log_pair){.key = "text", .key_len = 4};
	key = key_at(p, end);
	if (key > 0) {
		out->key = p;
		out->key_len = key;
		p += key + 1;
	}
	if (p < end && *p == '"') {
		q = quoted_end(p + 1, end);
		out->value = p + 1;
		out->len = (size_t)(q - p) - 1;
		out->quoted = q < end || cut;
		if (q < end)
			q++;
		if (end - q >= 3 && memcmp(q, "...", 3) == 0) {
			out->dots = true;
			q += 3;
		}
		*at = q;
		if (out->quoted && (q == end || *q == ' '))
			return true;
		out->quoted = out->dots = false;
	}
	q = bare_end(p, end);
	out->value = p;
	out->len = (size_t)(q - p);
	*at = q;
	return true;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a value: its bytes (*n of them), or one byte that is none, with
 * *n 0. Returns how much of p it takes. */
static size_t
value_char(const struct log_pair *v, size_t i, const unsigned char **p, size_t *n,
    unsigned char *byte)
{
	const char *s = v->value + i;
	size_t left = v->len - i;

	*p = (const unsigned char *)s;
	if (v->quoted && left >= 4 && s[0] == '\\' && s[1] == 'x' &&
	    hex_value(s[2]) >= 0 && hex_value(s[3]) >= 0) {
		*byte = (unsigned char)(hex_value(s[2]) * 16 + hex_value(s[3]));
		*n = 0;
		return 4;
	}
	if (v->quoted && left >= 2 && s[0] == '\\' && (s[1] == '"' || s[1] == '\\')) {
		*p = (const unsigned char *)s + 1;
		*n = 1;
		return 2;
	}
	*byte = (unsigned char)s[0];
	*n = log_char_len(*p, left);
	return *n > 0 ? *n : 1;
}

/* Writes one character as both structured formats quote it; at most 7 bytes. */
static size_t
quote_char(char *out, bool json, const unsigned char *p, size_t n, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = 0;

	if (n == 0) {
		const char *lead = !json ? "\\x" : byte < 0x80 ? "\\u00" : "\\\\x";

		len = strlen(lead);
		memcpy(out, lead, len);
		out[len++] = hex[byte >> 4];
		out[len++] = hex[byte & 15];
		return len;
	}
	if (p[0] == '"' || p[0] == '\\')
		out[len++] = '\\';
	memcpy(out + len, p, n);
	return len + n;
}

/* ---- logfmt and JSON ---- */

static bool
line_has_room(const struct log_line *l, size_t n)
{
	return l->len + n <= LOG_LINE_BYTES - 1 - LOG_TAIL_BYTES;
}

static void
line_add(struct log_line *l, const char *p, size_t n)
{
	memcpy(l->text + l->len, p, n);
	l->len += n;
}

/* Bytes from i on that stand in both formats as they do in v. */
static size_t
value_plain(const struct log_pair *v, size_t i, size_t max)
{
	size_t n = 0;

	if (max > v->len - i)
		max = v->len - i;
	while (n < max) {
		unsigned char c = (unsigned char)v->value[i + n];

		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			break;
		n++;
	}
	return n;
}

/* With quotes; as much as there is room for. */
static void
line_add_quoted(struct log_line *l, bool json, const struct log_pair *v)
{
	const size_t tail = LOG_TAIL_BYTES + sizeof("...\"");

	line_add(l, "\"", 1);
	for (size_t i = 0; i < v->len;) {
		const unsigned char *p;
		unsigned char byte = 0;
		char out[8];
		size_t n, len;

		len = l->len < LOG_LINE_BYTES - tail
			  ? value_plain(v, i, LOG_LINE_BYTES - tail - l->len)
			  : 0;
		line_add(l, v->value + i, len);
		i += len;
		if (i == v->len)
			break;
		i += value_char(v, i, &p, &n, &byte);
		len = quote_char(out, json, p, n, byte);
		if (!line_has_room(l, len + sizeof("...\"") - 1)) {
			l->cut = true;
			break;
		}
		line_add(l, out, len);
	}
	if (v->dots || l->cut)
		line_add(l, "...", 3);
	line_add(l, "\"", 1);
}

static bool
value_is_number(const struct log_pair *v)
{
	size_t i = 0, digits;

	if (v->quoted || v->len == 0 || v->len > LOG_NUMBER_BYTES)
		return false;
	i += v->value[0] == '-';
	digits = i;
	while (i < v->len && v->value[i] >= '0' && v->value[i] <= '9')
		i++;
	if (i == digits || (v->value[digits] == '0' && i > digits + 1))
		return false;
	if (i < v->len && v->value[i] == '.') {
		digits = ++i;
		while (i < v->len && v->value[i] >= '0' && v->value[i] <= '9')
			i++;
		if (i == digits)
			return false;
	}
	return i == v->len;
}

static bool
value_is_word(const struct log_pair *v)
{
	if (v->quoted || v->len == 0)
		return false;
	for (size_t i = 0; i < v->len; i++) {
		unsigned char c = (unsigned char)v->value[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return true;
}

/* Names of our own come first, so a pair of that name gets another. */
static bool
key_is_ours(const struct log_pair *v)
{
	static const struct {
		size_t n;
		const char *name;
	} ours[] = {{2, "ts"}, {5, "level"}, {6, "module"}, {5, "event"},
	    {10, "suppressed"}, {3, "cut"}};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (ours[i].n == v->key_len && ours[i].name[0] == v->key[0] &&
		    memcmp(ours[i].name, v->key, v->key_len) == 0)
			return true;
	}
	return false;
}

static void
line_add_pair(struct log_line *l, bool json, const struct log_pair *v)
{
	bool plain = !v->dots && (json ? value_is_number(v) : value_is_word(v));

	/* The most of all but the value: ,"KEY_":"..." */
	if (l->cut || !line_has_room(l, v->key_len + 12 + (plain ? v->len : 0))) {
		l->cut = true;
		return;
	}
	line_add(l, json ? ",\"" : " ", json ? 2 : 1);
	line_add(l, v->key, v->key_len);
	if (key_is_ours(v))
		line_add(l, "_", 1);
	line_add(l, json ? "\":" : "=", json ? 2 : 1);
	if (plain)
		line_add(l, v->value, v->len);
	else
		line_add_quoted(l, json, v);
}

static void
pairs_head(struct log_line *l, const struct log_head *h)
{
	const struct log_pair event = {.value = h->event, .len = strlen(h->event)};
	bool json = h->format == LOG_FMT_JSON;

	if (json)
		line_add(l, "{", 1);
	if (h->time)
		line_addf(l, json ? "\"ts\":\"%s\"," : "ts=%s ", h->time);
	line_addf(l,
	    json ? "\"level\":\"%s\",\"module\":\"%s\",\"event\":"
		 : "level=%s module=%s event=",
	    h->level_name, h->module);
	line_add_quoted(l, json, &event);
}

static void __attribute__((format(printf, 3, 0)))
pairs_line(struct log_line *l, const struct log_head *h, const char *fmt, va_list ap)
{
	bool json = h->format == LOG_FMT_JSON;
	struct log_line pairs;
	struct log_pair v;
	const char *at = pairs.text, *end;

	pairs.len = 0;
	pairs.cut = false;
	line_addv(&pairs, fmt, ap);
	end = pairs.text + pairs.len;
	pairs_head(l, h);
	while (pair_next(&at, end, pairs.cut, &v)) {
		/* The last of a list that was too long may be half of itself. */
		v.dots = v.dots || (pairs.cut && at == end);
		line_add_pair(l, json, &v);
	}
	if (h->suppressed > 0)
		line_addf(
		    l, json ? ",\"suppressed\":%u" : " suppressed=%u", h->suppressed);
	if (l->cut || pairs.cut)
		line_addf(l, json ? ",\"cut\":true" : " cut=true");
	if (json)
		line_add(l, "}", 1);
}

void
log_format_line(struct log_line *l, const struct log_head *h, const char *fmt, va_list ap)
{
	l->len = 0;
	l->cut = false;
	if (h->priority)
		line_addf(l, "<%c>", h->priority);
	if (h->format == LOG_FMT_TEXT)
		text_line(l, h, fmt, ap);
	else
		pairs_line(l, h, fmt, ap);
}
