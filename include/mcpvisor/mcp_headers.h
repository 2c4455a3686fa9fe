/* SPDX-License-Identifier: MIT */
/*
 * The request headers of 2026-07-28 that mirror the body: Mcp-Method, Mcp-Name,
 * Mcp-Param-*, MCP-Protocol-Version.
 * Spec: 2026-07-28 basic/transports/streamable-http, Request Metadata.
 */
#ifndef MCPVISOR_MCP_HEADERS_H
#define MCPVISOR_MCP_HEADERS_H

#include "mcpvisor/http_parse.h"
#include "mcpvisor/json.h"

/* Compares a modern request's headers with its body. version: the header is required and
 * must be the text of _meta's; method: Mcp-Method required, equal; name: the value of
 * params.name or params.uri (absent: Mcp-Name is not looked at), plain or Base64 form;
 * definition: of the called tool (absent: Mcp-Param-* are not looked at), params: with
 * its arguments, which must be there once. NULL: they agree; else the text of a -32020,
 * in out. */
struct mcp_headers_body {
	struct jtext version, method, name, definition, params;
};
const char *mcp_headers_check(
    const struct http_head *h, const struct mcp_headers_body *b, struct buf *out);

#endif
