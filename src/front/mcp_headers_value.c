/* SPDX-License-Identifier: MIT */
/*
 * Compares a header's value with the JSON value that it mirrors.
 *
 * Owns: nothing. Driven by: mcp_headers.c.
 * Invariants: what two readers could take for different values never counts as the
 * same.
 * Spec: 2026-07-28 basic/transports/streamable-http, Value Encoding, Server Validation.
 */
#include "mcp_headers_priv.h"

#include "mcpvisor/header_value.h"

#include <string.h>

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

enum header_match
header_match_possible(struct jtext value)
{
	static const enum header_match matches[] = {
	    [HEADER_FIT_YES] = HEADER_SAME,
	    [HEADER_FIT_TYPE] = HEADER_TYPE,
	    [HEADER_FIT_RANGE] = HEADER_RANGE,
	};

	return matches[header_value_fit(value)];
}

/* Appends the text that the header stands for. */
static enum header_match
header_decode(struct http_text h, struct buf *out)
{
	/* What it has outside visible ASCII is refused, whatever the body says. */
	if (!header_value_is_ascii(h.p, h.n))
		return HEADER_BYTES;
	if (!header_value_take(out, h.p, h.n))
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

enum header_match
header_match_exact(struct http_text header, struct jtext string)
{
	enum header_match m = HEADER_BYTES;
	struct buf text;

	buf_init(&text, header.n);
	if (header_value_is_ascii(header.p, header.n)) {
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
		else
			same = text_is_equal(&text, value.p, value.n) ||
			       header_value_is_number(
				   text.data != NULL ? text.data : "", text.len, value);
		m = same ? HEADER_SAME : HEADER_DIFFERS;
	}
	buf_fini(&text);
	return m;
}
