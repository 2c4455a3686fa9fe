/* SPDX-License-Identifier: MIT */
/* A modern client that is asked by its legacy upstream, and its way back. */
#ifndef PARKED_RIG_H
#define PARKED_RIG_H

#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A	     "\"name\":\"alpha__a\""
#define ALL	     "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{}}"
#define FORM	     "{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\"}}"
#define ASK_FORM(id) "\"id\":" id ",\"params\":" FORM
#define ASKED_FORM   "{\"method\":\"elicitation/create\",\"params\":" FORM "}"
#define ACCEPT	     "{\"action\":\"accept\",\"content\":{\"x\":1.0}}"
#define REQUIRED     "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
#define CALL_AGAIN   "\"isError\":true"
#define NOT_OURS     -32602

static struct fleet *f;
static struct peer *p;
static struct upstream *u;
static char handle[512]; /* the last one given out */
static char members[2048];

static inline void
setup(void)
{
	f = fleet_full();
	f->confs[0]->isolation = ISOLATION_SHARED; /* it is not replaced */
	u = f->u[0];
	p = peer_new(f);
	handle[0] = '\0';
}

static inline void
teardown(void)
{
	peer_free(p);
	fleet_free(f);
}

/* A request whose client declares caps. */
static inline void
ask_as(const char *id, const char *caps, const char *method, const char *more)
{
	static char params[4096];

	(void)snprintf(params, sizeof(params),
	    "{\"_meta\":{" MODERN_VERSION
	    ",\"io.modelcontextprotocol/clientCapabilities\":%s},%s}",
	    caps, more);
	peer_ask(p, id, method, params);
}

static inline void
call(const char *id)
{
	ask_as(id, ALL, "tools/call", A ",\"arguments\":{\"a\":1}");
}

/* The oldest unread line is input_required, for these requests; its handle is kept. */
static inline void
expect_asked(const char *id, const char *requests)
{
	char head[2048];
	const char *line = peer_read(p), *at;
	size_t n;

	n = (size_t)snprintf(head, sizeof(head),
	    "{\"jsonrpc\":\"2.0\",\"id\":%s," REQUIRED "%s},\"requestState\":\"mv1.", id,
	    requests);
	ck_assert_msg(strncmp(line, head, n) == 0, "got %s, want %s", line, head);
	at = line + n - 4;
	n = strcspn(at, "\"");
	ck_assert_uint_lt(n, sizeof(handle));
	memcpy(handle, at, n);
	handle[n] = '\0';
	ck_assert_str_eq(at + n, "\"}}");
}

/* One is asked and waits for its client. */
static inline void
park(const char *id)
{
	call(id);
	fake_upstream_ask(u, NULL, METHOD_ELICIT, ASK_FORM("7"));
	peer_expect_silence(p);
	fake_loop_advance(f->loop, 20);
	expect_asked(id, "\"input-1\":" ASKED_FORM);
	ck_assert_uint_eq(client_in_flight(p->c), 0);
}

static inline const char *
with_state(const char *state, const char *responses)
{
	(void)snprintf(members, sizeof(members),
	    A ",\"arguments\":{\"a\":1},\"requestState\":\"%s\",\"inputResponses\":%s",
	    state, responses);
	return members;
}

static inline void
come_back(const char *id, const char *responses)
{
	ask_as(id, ALL, "tools/call", with_state(handle, responses));
}

static inline void
expect_call_again(const char *id)
{
	const char *line = peer_read(p);
	char head[128];

	(void)snprintf(
	    head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{", id);
	ck_assert_msg(strncmp(line, head, strlen(head)) == 0, "%s", line);
	ck_assert_msg(strstr(line, CALL_AGAIN) != NULL, "%s", line);
}

#endif
