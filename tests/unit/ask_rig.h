/* SPDX-License-Identifier: MIT */
/* A legacy upstream that asks, and what it is answered. */
#ifndef ASK_RIG_H
#define ASK_RIG_H

#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\"}}"
#define ASK(id, method, params)                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                        \
	"\",\"params\":" params "}"
#define ELICIT(id)	   ASK(id, "elicitation/create", "{\"message\":\"m\"}")
#define ANSWERED(id, rest) "{\"jsonrpc\":\"2.0\",\"id\":" id "," rest "}"
#define NOT_DECLARED(id)                                                                 \
	ANSWERED(id, "\"error\":{\"code\":-32601,\"message\":\"Method not found: this "  \
		     "client did not declare the capability; a retry will not help\"}")
#define NO_METHOD(id, name)                                                              \
	ANSWERED(id, "\"error\":{\"code\":-32601,\"message\":\"Method not found: " name  \
		     ". Retrying unchanged will fail.\"}")
#define NOBODY(id)                                                                       \
	ANSWERED(id, "\"error\":{\"code\":-32603,\"message\":\"Nobody can be asked at "  \
		     "the moment; a retry may help\"}")
#define IS_CANCELLED(id)                                                                 \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"       \
	"\"requestId\":" id "}}"
#define ALL (CLIENT_CAPS_SHARED | CLIENT_CAPS_ROOTS)

static inline struct upstream_conf *
conf(void)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	c->era = ERA_LEGACY;
	c->call_ms = 1000;
	c->call_max_ms = 5000;
	return c;
}

/* Ready, and told that its client can do this. */
static inline struct uowner *
ready_of(struct upstream_conf *c, unsigned caps)
{
	struct uowner *o = uowner_new_of(c);

	upstream_set_client_caps(o->u, caps);
	uowner_be_legacy(o, "2025-11-25", "{}");
	return o;
}

static inline struct uowner *
ready(unsigned caps)
{
	return ready_of(conf(), caps);
}

static inline void
answer(struct question *q, const char *member, const char *body)
{
	struct iovec iov = {(void *)(uintptr_t)body, strlen(body)};

	question_answer(q, member, &iov, 1);
}

#endif
