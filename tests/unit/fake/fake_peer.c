/* SPDX-License-Identifier: MIT */
/*
 * A client that a test plays.
 *
 * Owns: the lines it got.
 * Driven by: the test; the client under test.
 * Invariants: every line is one JSON text without a newline.
 */
#include "fake/fake_peer.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	struct peer *p = arg;
	struct json_msg *json;
	struct buf b;
	size_t len;
	char *line;

	if (p->refuses != MV_OK)
		return p->refuses;
	/* Memory is short for those under test. */
	mem_fail_hold(true);
	buf_init(&b, CAP_OUT_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	line = buf_take(&b, &len);
	ck_assert_ptr_nonnull(line);
	json = mem_xalloc(sizeof(*json));
	ck_assert_msg(json_scan(json, line, len, false) == MV_OK, "not JSON: %s", line);
	ck_assert_ptr_null(memchr(line, '\n', len));
	mem_free(json);
	mem_fail_hold(false);
	p->lines = mem_xrealloc(p->lines, (p->n + 1) * sizeof(*p->lines));
	p->lines[p->n++] = line;
	return MV_OK;
}

static void
on_idle(void *arg)
{
	struct peer *p = arg;

	p->idle++;
}

static void
on_dead(void *arg)
{
	struct peer *p = arg;

	p->dead++;
}

static const struct client_cb peer_cb = {
    .send = on_send, .on_idle = on_idle, .on_dead = on_dead};

struct peer *
peer_new(struct fleet *f)
{
	return peer_new_view(f, 0);
}

struct peer *
peer_new_view(struct fleet *f, unsigned view)
{
	struct peer *p = mem_xcalloc(1, sizeof(*p));

	p->f = f;
	p->c = client_new(f->loop, f->g, view, &peer_cb, p);
	return p;
}

void
peer_free(struct peer *p)
{
	client_free(p->c);
	peer_expect_silence(p);
	for (size_t i = 0; i < p->n; i++)
		mem_free(p->lines[i]);
	mem_free(p->lines);
	mem_free(p);
}

void
peer_say(struct peer *p, const char *text)
{
	size_t len = strlen(text);
	char *copy = mem_xstrndup(text, len);
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m;

	ck_assert_msg(link_scan(copy, len, json, &m) == MV_OK, "%s", text);
	client_on_message(p->c, &m);
	mem_free(json);
	mem_free(copy);
}

void
peer_ask(struct peer *p, const char *id, const char *method, const char *params)
{
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_str(&b, id);
	buf_addf(&b, ",\"method\":\"%s\"", method);
	if (params != NULL) {
		buf_add_str(&b, ",\"params\":");
		buf_add_str(&b, params);
	}
	buf_add_char(&b, '}');
	mem_fail_hold(false);
	peer_say(p, buf_cstr(&b));
	buf_fini(&b);
}

void
peer_ask_modern(struct peer *p, const char *id, const char *method, const char *members)
{
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{" MODERN_META);
	if (members[0] != '\0')
		buf_add_char(&b, ',');
	buf_add_str(&b, members);
	buf_add_char(&b, '}');
	mem_fail_hold(false);
	peer_ask(p, id, method, buf_cstr(&b));
	buf_fini(&b);
}

void
peer_initialize(struct peer *p, const char *revision)
{
	char params[256];

	(void)snprintf(params, sizeof(params),
	    "{\"protocolVersion\":\"%s\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}",
	    revision);
	peer_ask(p, "\"init\"", "initialize", params);
	(void)peer_read(p);
}

const char *
peer_read(struct peer *p)
{
	ck_assert_msg(p->taken < p->n, "no line");
	return p->lines[p->taken++];
}

void
peer_expect(struct peer *p, const char *line)
{
	ck_assert_str_eq(peer_read(p), line);
}

static void
peer_expect_reply(struct peer *p, const char *id, const char *member, const char *body)
{
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_OUT_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":", id, member);
	buf_add_str(&b, body);
	buf_add_char(&b, '}');
	peer_expect(p, buf_cstr(&b));
	buf_fini(&b);
	mem_fail_hold(false);
}

void
peer_expect_result(struct peer *p, const char *id, const char *body)
{
	peer_expect_reply(p, id, "result", body);
}

void
peer_expect_error(struct peer *p, const char *id, const char *body)
{
	peer_expect_reply(p, id, "error", body);
}

const char *
peer_expect_code(struct peer *p, const char *id, int code)
{
	const char *line = peer_read(p);
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_OUT_BYTES);
	buf_addf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,", id, code);
	ck_assert_msg(b.len <= strlen(line) && memcmp(line, b.data, b.len) == 0,
	    "got %s, want code %d", line, code);
	buf_fini(&b);
	mem_fail_hold(false);
	return line;
}

void
peer_expect_silence(struct peer *p)
{
	ck_assert_msg(p->taken == p->n, "unread: %s", p->lines[p->taken]);
}
