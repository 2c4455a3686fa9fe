/* SPDX-License-Identifier: MIT */
/* MCP over HTTP, as a client of either era says it. */
#ifndef CHECK_ENDPOINT_TALK_H
#define CHECK_ENDPOINT_TALK_H

#include "endpoint_rig.h"

/* POST of a message; more is header lines. */
static inline void
post(struct peer *p, const char *where, const char *more, const char *message)
{
	struct buf b;

	buf_init(&b, 65536);
	buf_addf(&b,
	    "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	    "Accept: application/json, text/event-stream\r\n%sContent-Length: %zu" END,
	    where, more, strlen(message));
	buf_add_str(&b, message);
	say(p, buf_cstr(&b));
	buf_fini(&b);
}

#define LIST_ALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define CALL_B                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","                       \
	"\"params\":{\"name\":\"beta__b\"}}"

/* The status of a list under a path, and what it shows: "ab", "b", ... */
static inline const char *
look_with(struct peer *p, const char *where, const char *more)
{
	static char seen[16];
	const char *body;
	unsigned long status, n = 0;

	post(p, where, more, LIST_ALL);
	expect(p, "HTTP/1.1 ");
	status = strtoul(buf_cstr(&p->in), NULL, 10);
	if (status == 404) {
		expect(p, "Content-Length: ");
		n = strtoul(buf_cstr(&p->in), NULL, 10);
		expect(p, END);
		while (p->in.len < n)
			hear(p);
		buf_drop(&p->in, n);
	}
	if (status != 200) {
		(void)snprintf(seen, sizeof(seen), "%lu", status);
		return seen;
	}
	expect(p, "\"tools\":[");
	while (strstr(buf_cstr(&p->in), "]") == NULL)
		hear(p);
	body = buf_cstr(&p->in);
	(void)snprintf(seen, sizeof(seen), "%s%s", strstr(body, "alpha__a") ? "a" : "",
	    strstr(body, "beta__b") ? "b" : "");
	expect(p, "}}");
	return seen;
}

static inline const char *
look(struct peer *p, const char *where)
{
	return look_with(p, where, "");
}

/* The header line that names a session. */
static inline const char *
open_session(struct peer *p, const char *where)
{
	static char line[600];
	size_t n;

	post(p, where, "",
	    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
	    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}");
	expect(p, "Mcp-Session-Id: ");
	n = strcspn(buf_cstr(&p->in), "\r");
	(void)snprintf(
	    line, sizeof(line), "Mcp-Session-Id: %.*s\r\n", (int)n, p->in.data);
	expect(p, END);
	expect(p, "}}");
	post(p, where, line,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	expect(p, "202 Accepted");
	expect(p, END);
	return line;
}

/* Opens the session's stream. */
static inline void
get_stream(struct peer *p, const char *where, const char *session)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
	    "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s\r\n",
	    where, session);
	say(p, text);
	expect(p, "text/event-stream");
	expect(p, END);
}

#endif
