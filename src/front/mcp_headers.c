/* SPDX-License-Identifier: MIT */
/*
 * The headers of 2026-07-28 that mirror the body, compared with it.
 *
 * Owns: nothing beyond a call. Driven by: the HTTP endpoint, once a request.
 * Invariants: a header that is checked is there once or not at all; a value that cannot
 * be mirrored is refused, or it would pass whoever goes by the headers.
 * Spec: 2026-07-28 basic/transports/streamable-http, Request Metadata.
 */
#include "mcpvisor/mcp_headers.h"

#include "mcp_headers_priv.h"

#include "mcpvisor/param_headers.h"
#include "mcpvisor/shown.h"

#include <string.h>

#define UNCHANGED ". Retrying unchanged will fail."

static const char *
message_end(struct buf *out)
{
	const char *text;

	buf_add_str(out, UNCHANGED);
	text = buf_cstr(out);
	return text != NULL ? text : "Header mismatch" UNCHANGED;
}

static const char *
message_wrong(struct buf *out, const char *name, const char *what)
{
	buf_add_str(out, "Header mismatch: ");
	buf_add_str(out, name);
	buf_add_char(out, ' ');
	buf_add_str(out, what);
	return message_end(out);
}

/* A header's value is never shown, nor the argument that one mirrors: they may be what
 * nobody is to see. */
static const char *
message_differs(struct buf *out, const char *name, struct jtext body)
{
	static const char param[] = "Mcp-Param-";

	if (strncmp(name, param, sizeof(param) - 1) == 0)
		return message_wrong(
		    out, name, "does not match the argument that it mirrors");
	buf_add_str(out, "Header mismatch: ");
	buf_add_str(out, name);
	buf_add_str(out, " does not match the body, which has ");
	shown_put_spelled(out, body, SHOWN_BYTES);
	return message_end(out);
}

/* match decides; body is there and is to be mirrored. */
static const char *
header_check(const struct http_head *h, const char *name, struct jtext body,
    enum header_match (*match)(struct http_text, struct jtext), struct buf *out)
{
	bool doubled = false;
	struct http_text header = http_header(h, name, &doubled);
	enum header_match m;

	if (doubled)
		return message_wrong(out, name, "is there more than once");
	if (header.p == NULL)
		return message_wrong(out, name, "is missing; it has to mirror the body");
	m = match(header, body);
	if (m == HEADER_SAME)
		return NULL;
	if (m == HEADER_DIFFERS)
		return message_differs(out, name, body);
	return message_wrong(out, name, header_match_text(m));
}

static const char *
mirror_check(const struct http_head *h, const char *name, const struct param_header *one,
    struct buf *out)
{
	enum header_match possible;

	if (one->doubled)
		return message_wrong(
		    out, name, "mirrors an argument that is there more than once");
	if (one->value.n == 0 || jtext_type(one->value) == 'n') {
		if (http_header(h, name, NULL).p == NULL)
			return NULL;
		return message_wrong(
		    out, name, "is there, but the argument that it mirrors is not");
	}
	/* Before the header: its absence would not be the client's fault. */
	possible = header_match_possible(one->value);
	if (possible != HEADER_SAME)
		return message_wrong(out, name, header_match_text(possible));
	return header_check(h, name, one->value, header_match_value, out);
}

static const char *
mirrors_check(
    const struct http_head *h, const struct mcp_headers_body *b, struct buf *out)
{
	const char *wrong = NULL;
	struct param_headers m;

	/* Clients of HTTP were not shown a tool whose annotations are unusable. */
	if (param_headers_find(&m, b->definition, b->params) == NULL) {
		for (unsigned i = 0; i < m.n && wrong == NULL; i++)
			wrong =
			    mirror_check(h, m.names.data + m.of[i].name, &m.of[i], out);
	}
	param_headers_fini(&m);
	return wrong;
}

const char *
mcp_headers_check(
    const struct http_head *h, const struct mcp_headers_body *b, struct buf *out)
{
	const char *wrong;

	wrong =
	    header_check(h, "MCP-Protocol-Version", b->version, header_match_exact, out);
	if (wrong == NULL)
		wrong = header_check(h, "Mcp-Method", b->method, header_match_exact, out);
	if (wrong == NULL && b->name.n != 0)
		wrong = header_check(h, "Mcp-Name", b->name, header_match_value, out);
	if (wrong == NULL)
		wrong = mirrors_check(h, b, out);
	return wrong;
}
