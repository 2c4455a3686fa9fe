/* SPDX-License-Identifier: MIT */
/* A remote upstream and its server, which the test plays. */
#ifndef REMOTE_RIG_H
#define REMOTE_RIG_H

#include "fake/fake_upstream_owner.h"

#include "upstream_remote_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL    "http://tools.example:7001/mcp"
#define MODERN "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":%s}"
#define LEGACY "{\"protocolVersion\":\"%s\",\"capabilities\":%s}"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\",\"arguments\":{}}}"

static inline struct upstream_conf *
remote_conf(void)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	c->kind = KIND_HTTP;
	c->url = mem_xstrdup(URL);
	c->restart_limit = 3;
	return c;
}

/* A result on the stream of by, or an error with its code. */
static inline void
server_says(unsigned long long by, unsigned long long id, const char *result)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), RESULT, id, result);

	ck_assert_uint_lt((unsigned)n, sizeof(text));
	fake_http_say(fake_http_last(), by, text);
}

/* On the request's own stream. */
static inline void
server_answers(unsigned long long id, const char *result)
{
	server_says(id, id, result);
}

static inline void
server_refuses(unsigned long long id, const char *code)
{
	char text[256];

	(void)snprintf(text, sizeof(text), REFUSED, id, code, "");
	fake_http_say(fake_http_last(), id, text);
}

/* The next message is of this method; NULL: there is none. */
static inline const struct fake_posted *
server_heard(const char *method)
{
	const struct fake_posted *m = fake_http_take();
	char wanted[128];

	if (method == NULL) {
		ck_assert_msg(m == NULL, "was sent: %s", m != NULL ? m->text : "");
		return NULL;
	}
	ck_assert_msg(m != NULL, "nothing was sent, no %s", method);
	(void)snprintf(wanted, sizeof(wanted), "\"method\":\"%s\"", method);
	ck_assert_msg(strstr(m->text, wanted) != NULL, "%s, not %s", m->text, method);
	return m;
}

static inline void
be_modern(struct uowner *o, const char *caps)
{
	const struct fake_posted *m;
	char result[1024];

	(void)snprintf(result, sizeof(result), MODERN, caps);
	if (upstream_state(o->u) == UPSTREAM_ST_DOWN)
		upstream_start(o->u);
	m = server_heard("server/discover");
	ck_assert(m->is_apart);
	server_answers(m->id, result);
	ck_assert(uowner_is_ready(o));
	ck_assert_str_eq(o->u->era->name, "modern");
}

/* Initialize was sent. */
static inline void
greet_legacy(struct uowner *o, const char *revision, const char *caps)
{
	const struct fake_posted *m = server_heard("initialize");
	char result[1024];

	ck_assert(m->is_initialize && !m->is_apart);
	ck_assert_str_eq(m->lines, "");
	(void)snprintf(result, sizeof(result), LEGACY, revision, caps);
	server_says(
	    fake_http_mode(fake_http_last()) == HTTP_MODE_SSE ? 0 : m->id, m->id, result);
	m = server_heard("notifications/initialized");
	ck_assert_uint_eq(m->id, 0);
	server_heard(NULL);
	ck_assert(!uowner_is_ready(o));
	fake_http_note_taken(fake_http_last());
	ck_assert(uowner_is_ready(o));
	ck_assert_str_eq(o->u->era->name, "legacy");
}

static inline void
be_legacy(struct uowner *o, const char *revision, const char *caps)
{
	if (upstream_state(o->u) == UPSTREAM_ST_DOWN)
		upstream_start(o->u);
	fake_http_fail(
	    fake_http_last(), server_heard("server/discover")->id, MV_HTTP, 400, NULL);
	greet_legacy(o, revision, caps);
}

#endif
