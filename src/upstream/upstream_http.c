/* SPDX-License-Identifier: MIT */
/*
 * What the kinds of upstream over HTTP share: the headers that a conf adds to every
 * request, and words of failures.
 *
 * Owns: nothing. Driven by: the kinds that send requests.
 * Invariants: headers are asked for anew for each request; their values go into no log.
 */
#include "upstream_http_priv.h"

#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define HIDDEN_MIN 8 /* bytes of a value that can be a secret */

bool
upstream_headers_put(
    const struct upstream_conf *c, struct buf *out, struct mv_errtext *why)
{
	if (c->put_headers != NULL)
		return c->put_headers(c, out, why);
	for (size_t i = 0; i < c->n_headers; i++) {
		buf_addf(out, "%s: %s", c->headers[i].name, c->headers[i].value);
		buf_add_char(out, '\0');
	}
	return true;
}

uint64_t
upstream_headers_hash(const char *p, size_t n)
{
	return hash_stable(HASH_STABLE_SEED, p, n) | 1;
}

uint64_t
upstream_headers_now(const struct upstream_conf *c)
{
	struct mv_errtext why = {.line = 0};
	uint64_t hash = 0;
	struct buf b;

	buf_init(&b, UPSTREAM_HEADERS_BYTES);
	if (upstream_headers_put(c, &b, &why) && b.err == MV_OK)
		hash = upstream_headers_hash(b.data, b.len);
	mem_free_secret(b.data, b.cap);
	return hash;
}

/* Bytes of text, which has n, that spell word, which has n_word; 0: it does not begin
 * with it. */
static size_t
spelling_length(const char *text, size_t n, const char *word, size_t n_word)
{
	size_t i = 0;

	for (size_t w = 0; w < n_word; w++, i++) {
		if (i < n && text[i] == '\\' && word[w] != '\\')
			i++;
		if (i >= n || text[i] != word[w])
			return 0;
	}
	return i;
}

static void
word_hide(const char *word, size_t n_word, char *text, size_t n)
{
	char *p = text, *end = text + n;

	if (n_word < HIDDEN_MIN)
		return;
	while ((p = memchr(p, word[0], (size_t)(end - p))) != NULL) {
		size_t found = spelling_length(p, (size_t)(end - p), word, n_word);

		memset(p, '*', found);
		p += found > 0 ? found : 1;
	}
}

void
upstream_headers_hide(const struct buf *lines, char *text, size_t n)
{
	const char *p = lines->data, *end = lines->len > 0 ? p + lines->len : p;

	for (; n > 0 && p < end; p += strlen(p) + 1) {
		const char *value = strstr(p, ": "), *last;

		if (value == NULL)
			continue;
		value += 2;
		last = strrchr(value, ' ');
		word_hide(value, strlen(value), text, n);
		if (last != NULL)
			word_hide(last + 1, strlen(last + 1), text, n);
	}
}

const char *
upstream_skip_place(const char *words, const char *place)
{
	size_t n = strlen(place);

	if (n == 0 || strncmp(words, place, n) != 0)
		return words;
	if (words[n] == ':' && words[n + 1] == ' ')
		return words + n + 2;
	return words[n] == ' ' ? words + n + 1 : words;
}
