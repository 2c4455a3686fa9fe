/* SPDX-License-Identifier: MIT */
/* A legacy client that is asked. */
#ifndef ASKS_RIG_H
#define ASKS_RIG_H

#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define A "{\"name\":\"alpha__a\"}"
#define ALL                                                                              \
	"{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{"          \
	"\"listChanged\":true}}"
#define FORM "{\"message\":\"\\u0041\",\"requestedSchema\":{\"n\":1.0}}"
#define REQUEST(id, method, params)                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                        \
	"\",\"params\":" params "}"
#define ASKED(id) REQUEST(id, "elicitation/create", FORM)
#define RESULT(id)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"action\":\"accept\"}}"
#define TAKEN_BACK(id)                                                                   \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"       \
	"\"requestId\":" id "}}"
#define CANCEL(id)  TAKEN_BACK(id)
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define STREAM_MS   30000

static struct fleet *f;
static struct peer *p;
static struct upstream *u;

static inline void
start(void)
{
	struct fleet_conf *c = fleet_conf_new(1);

	c->one_client = c->can_ask = true;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 1000);
	u = f->u[0];
	p = peer_new(f);
}

static inline void
initialize(const char *revision, const char *caps)
{
	char params[512];

	(void)snprintf(params, sizeof(params),
	    "{\"protocolVersion\":\"%s\",\"capabilities\":%s,"
	    "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}",
	    revision, caps);
	peer_ask(p, "\"init\"", "initialize", params);
	(void)peer_read(p);
}

static inline void
setup(void)
{
	start();
	initialize("2025-11-25", ALL);
	peer_say(p, INITIALIZED);
}

static inline void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

static inline void
question(const char *id)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "\"id\":%s,\"params\":" FORM, id);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, text);
}

#endif
