/* SPDX-License-Identifier: MIT */
/*
 * A link without descriptors.
 *
 * Owns: the messages sent, in one queue for all links, as they outlive theirs.
 * Driven by: the test.
 * Invariants: a message sent is one well-formed JSON text, or the test stops; no
 * callback after link_free.
 */
#include "fake/fake_link.h"

#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <string.h>

struct link {
	struct loop *loop;
	struct link_opts o;
	const struct link_cb *cb;
	void *arg;
	enum mv_err refuse;
	bool closed, dead;
	size_t pending;
};

struct fake_sent {
	struct fake_sent *next;
	char text[];
};

static struct fake_sent *g_fake_sent, **g_fake_tail = &g_fake_sent, *g_fake_taken;
static unsigned g_fake_live;

struct link *
link_new(struct loop *l, const struct link_opts *o, const struct link_cb *cb, void *arg)
{
	struct link *k = mem_xcalloc(1, sizeof(*k));

	k->loop = l;
	k->o = *o;
	k->cb = cb;
	k->arg = arg;
	g_fake_live++;
	return k;
}

void
link_free(struct link *k)
{
	if (k == NULL || k->dead)
		return;
	k->dead = true;
	g_fake_live--;
	loop_defer_free(k->loop, mem_free, k);
}

enum mv_err
link_scan(const char *p, size_t n, struct json_msg *json, struct link_msg *m)
{
	enum mv_err err = json_scan(json, p, n, false);

	m->base = p;
	m->len = n;
	m->json = json;
	if (err == MV_OK)
		m->env = envelope_read(p, json);
	return err;
}

static struct fake_sent *
fake_join(const struct iovec *iov, int n)
{
	struct fake_sent *s;
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	s = mem_xalloc(sizeof(*s) + len + 1);
	s->next = NULL;
	len = 0;
	for (int i = 0; i < n; i++) {
		memcpy(s->text + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	s->text[len] = '\0';
	return s;
}

enum mv_err
link_send(struct link *k, const struct iovec *iov, int n)
{
	struct fake_sent *s;
	struct json_msg json;
	struct link_msg m;

	if (k->dead || k->closed)
		return MV_CLOSED;
	if (k->refuse != MV_OK)
		return k->refuse;
	s = fake_join(iov, n);
	ck_assert_msg(link_scan(s->text, strlen(s->text), &json, &m) == MV_OK,
	    "not JSON: %s", s->text);
	ck_assert_msg(m.env.kind != ENVELOPE_INVALID, "no message: %s", s->text);
	*g_fake_tail = s;
	g_fake_tail = &s->next;
	return MV_OK;
}

enum mv_err
link_send_buf(struct link *k, const struct buf *b)
{
	struct iovec iov = {b->data, b->len};

	if (b->err != MV_OK)
		return b->err == MV_NOMEM ? MV_NOMEM : MV_BUSY;
	return link_send(k, &iov, 1);
}

size_t
link_out_pending(const struct link *k)
{
	return k->pending;
}

void
link_pause(struct link *k, bool paused)
{
	(void)k;
	(void)paused;
}

void
link_end_write(struct link *k, bool now)
{
	(void)now;
	k->closed = true;
}

void
fake_link_say(struct link *k, const char *line)
{
	size_t len = strlen(line);
	char *copy = mem_xalloc(len); /* no NUL: as in a link's buffer */
	struct json_msg *json = mem_xalloc(sizeof(*json));
	struct link_msg m = {.base = copy, .len = len, .json = json};
	struct jtext none = {NULL, 0};
	enum mv_err err;

	ck_assert(k != NULL && !k->dead);
	memcpy(copy, line, len);
	err = json_scan(json, copy, len, k->o.want_uris);
	if (err == MV_OK) {
		m.env = envelope_read(copy, json);
		k->cb->on_message(k->arg, &m);
	} else {
		k->cb->on_bad(k->arg, err, none, false, copy, len);
	}
	mem_free(json);
	mem_free(copy);
}

void
fake_link_bad(
    struct link *k, enum mv_err err, const char *id, bool is_reply, const char *line)
{
	struct jtext t = {id, id == NULL ? 0 : strlen(id)};

	ck_assert(k != NULL && !k->dead);
	k->cb->on_bad(k->arg, err, t, is_reply, line, strlen(line));
}

void
fake_link_end(struct link *k)
{
	ck_assert(k != NULL && !k->dead);
	k->cb->on_end(k->arg);
}

void
fake_link_write_end(struct link *k, int errnum)
{
	ck_assert(k != NULL && !k->dead);
	k->closed = true;
	k->cb->on_write_end(k->arg, errnum);
}

void
fake_link_refuse(struct link *k, enum mv_err err)
{
	k->refuse = err;
}

void
fake_link_set_pending(struct link *k, size_t bytes)
{
	k->pending = bytes;
}

bool
fake_link_is_closed(const struct link *k)
{
	return k->closed;
}

const struct link_opts *
fake_link_opts(const struct link *k)
{
	return &k->o;
}

const char *
fake_link_take(void)
{
	mem_free(g_fake_taken);
	g_fake_taken = g_fake_sent;
	if (g_fake_sent == NULL)
		return NULL;
	g_fake_sent = g_fake_sent->next;
	if (g_fake_sent == NULL)
		g_fake_tail = &g_fake_sent;
	return g_fake_taken->text;
}

void
fake_link_forget_all(void)
{
	while (fake_link_take() != NULL)
		;
}

unsigned
fake_link_live(void)
{
	return g_fake_live;
}
