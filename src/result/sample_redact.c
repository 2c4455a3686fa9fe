/* SPDX-License-Identifier: MIT */
/*
 * A text without what may be secret in it.
 *
 * Owns: nothing. Driven by: sample.
 * Invariants: the text is read token by token and once, apart from JSON within a string;
 * a secret is replaced before anything is cut, so that no part of it is left.
 */
#include "mcpvisor/sample.h"

#include "payload_priv.h"
#include "sample_priv.h"

#include <string.h>
#include <strings.h>

#define REDACTED       "[redacted]"
#define REDACTED_EMAIL "[e-mail]"

static bool
is_letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Of a name, as programs write them. */
static bool
is_name_char(char c)
{
	return is_letter_or_digit(c) || c == '_' || c == '-';
}

/* Bytes of other alphabets may stand in both parts of an address. */
static bool
is_domain_char(char c)
{
	return is_letter_or_digit(c) || c == '-' || c == '.' || (c & 0x80) != 0;
}

static bool
is_local_char(char c)
{
	return is_domain_char(c) || c == '_' || c == '+' || c == '%';
}

static bool
is_secret_name(struct jtext name)
{
	static const char *const words[] = {
	    "token", "secret", "password", "authorization", "cookie", "key"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);

		for (size_t at = 0; at + n <= name.n; at++)
			if (strncasecmp(name.p + at, words[i], n) == 0)
				return true;
	}
	return false;
}

/* ---- texts ---- */

static void
redact_emails(struct buf *out, struct jtext s)
{
	const char *p = s.p, *end = s.p + s.n, *from = s.p, *at;

	while (p < end && (at = memchr(p, '@', (size_t)(end - p))) != NULL) {
		const char *local = at, *domain = at + 1;

		while (local > from && is_local_char(local[-1]))
			local--;
		while (domain < end && is_domain_char(*domain))
			domain++;
		p = domain;
		if (local == at || domain == at + 1)
			continue;
		buf_add(out, from, (size_t)(local - from));
		buf_add_str(out, REDACTED_EMAIL);
		from = domain;
	}
	buf_add(out, from, (size_t)(end - from));
}

/* Where the value begins that stands after a name, as in "name: value", name=value and
 * "name": "value"; NULL: there is none. */
static const char *
value_after(const char *p, const char *end)
{
	if (p < end && (*p == '"' || *p == '\''))
		p++;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (p == end || (*p != ':' && *p != '='))
		return NULL;
	p++;
	return p < end ? p : NULL;
}

static struct jtext
name_at(const char *p, const char *end)
{
	struct jtext name = {p, 0};

	while (p + name.n < end && is_name_char(p[name.n]))
		name.n++;
	return name;
}

/* By lines, so that no more is read than is wanted. */
void
sample_redact_text(struct buf *out, struct jtext text, size_t limit)
{
	const char *p = text.p, *end = text.p + text.n, *from = text.p;

	while (p < end && out->len < limit) {
		struct jtext name = name_at(p, end);
		const char *value = NULL, *eol;

		if (is_secret_name(name))
			value = value_after(p + name.n, end);
		if (value != NULL) {
			eol = memchr(value, '\n', (size_t)(end - value));
			redact_emails(out, (struct jtext){from, (size_t)(value - from)});
			buf_add_str(out, REDACTED);
			p = from = eol == NULL ? end : eol;
		} else if (name.n > 0) {
			p += name.n;
		} else if (*p++ == '\n') {
			redact_emails(out, (struct jtext){from, (size_t)(p - from)});
			from = p;
		}
	}
	if (out->len < limit)
		redact_emails(out, (struct jtext){from, (size_t)(end - from)});
}

/* ---- JSON ---- */

static void
redact_string(struct buf *out, struct jtext string, size_t limit)
{
	struct buf decoded, clean;
	struct jtext text, value;

	buf_init(&decoded, string.n);
	buf_init(&clean, CAP_MESSAGE_BYTES);
	text = payload_decode(string, &decoded);
	value = payload_json(text);
	if (jtext_type(value) == '{' || jtext_type(value) == '[')
		sample_redact_json(&clean, value, limit);
	else if (text.p != NULL)
		sample_redact_text(&clean, text, limit);
	json_put_string(out, clean.data, clean.len);
	buf_fini(&clean);
	buf_fini(&decoded);
}

/* A key and its colon; the value too if that is secret. */
static void
redact_member(struct buf *out, struct jtext key, struct json_iter *it, size_t limit)
{
	struct jtext value, name;
	struct buf decoded;
	bool is_secret;

	redact_string(out, key, limit);
	buf_add_char(out, ':');
	buf_init(&decoded, key.n);
	name = payload_decode(key, &decoded);
	is_secret = name.p == NULL || is_secret_name(name);
	buf_fini(&decoded);
	if (!is_secret || !json_next_element(it, &value))
		return;
	buf_add_str(out, "\"" REDACTED "\"");
	it->p = value.p + value.n;
}

/* Read flat: by going down into each value it would be read as often as it is deep. */
void
sample_redact_json(struct buf *out, struct jtext value, size_t limit)
{
	struct json_iter it = {value.p, value.p + value.n};
	struct jtext token;

	while (it.p < it.end && out->len < limit && out->err == MV_OK) {
		char c = *it.p;

		if (json_is_space(c)) {
			it.p++;
		} else if (strchr("{}[],", c) != NULL) {
			buf_add_char(out, c);
			it.p++;
		} else if (!json_next_element(&it, &token)) {
			break;
		} else if (c == '"' && it.p[-1] == ':') {
			redact_member(out, token, &it, limit);
		} else {
			it.p = token.p + token.n;
			if (c == '"')
				redact_string(out, token, limit);
			else
				json_put(out, token);
		}
	}
}
