/* SPDX-License-Identifier: MIT */
/* An MCP client of ours, message by message: what it says, and the lines it gets. */
#ifndef FAKE_PEER_H
#define FAKE_PEER_H

#include "mcpvisor/client.h"

#include "fake/fake_fleet.h"

#define MODERN_VERSION "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define MODERN_CAPS    "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define MODERN_META    "\"_meta\":{" MODERN_VERSION "," MODERN_CAPS "}"
#define SERVER_META                                                                      \
	"\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"mcpvisor\","      \
	"\"title\":\"mcpvisor\",\"version\":\"" MCPVISOR_VERSION "\"}}"

struct peer {
	struct fleet *f;
	struct client *c;
	char **lines;
	size_t n, taken;
	unsigned idle, dead;
	enum mv_err refuses; /* what every send of ours gets */
};

struct peer *peer_new(struct fleet *f);
struct peer *peer_new_view(struct fleet *f, unsigned view);
/* Nothing unread may be left. */
void peer_free(struct peer *p);
/* The message is gone when this returns. */
void peer_say(struct peer *p, const char *text);
/* {"jsonrpc","id","method","params"}; params NULL: none. */
void peer_ask(struct peer *p, const char *id, const char *method, const char *params);
/* The same with MODERN_META in front of the members; "" for none. */
void peer_ask_modern(
    struct peer *p, const char *id, const char *method, const char *members);
/* Opens a legacy session; its answer is read. */
void peer_initialize(struct peer *p, const char *revision);

/* The oldest unread line, which there must be. */
const char *peer_read(struct peer *p);
void peer_expect(struct peer *p, const char *line);
/* {"jsonrpc","id","result"|"error": body} */
void peer_expect_result(struct peer *p, const char *id, const char *body);
void peer_expect_error(struct peer *p, const char *id, const char *body);
/* An error with this code, whatever its words; returns the whole line. */
const char *peer_expect_code(struct peer *p, const char *id, int code);
void peer_expect_silence(struct peer *p);

#endif
