/* SPDX-License-Identifier: MIT */
/*
 * What the HTTP endpoint serves: a mount for each path and profile, whatever addresses
 * lead there.
 *
 * Owns: the shared client of each mount.
 * Driven by: the doors (rows come and go), calls and sessions (references).
 * Invariants: a mount outlives its rows for as long as calls or sessions have it, and
 * answers nothing new then; it is never freed on the stack of its client.
 */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_http_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

static enum mv_err
on_shared_send(void *arg, const struct iovec *iov, int n)
{
	(void)arg;
	(void)iov;
	(void)n;
	return MV_CLOSED; /* nothing comes unasked */
}

static void
on_shared_idle(void *arg)
{
	struct http_mount *m = arg;

	MCPVISOR_ASSERT(m->magic == MOUNT_MAGIC);
	deferred_ask(&m->e->check);
	if (m->is_gone)
		deferred_ask(&m->reap);
}

static void
on_shared_dead(void *arg)
{
	(void)arg;
}

static const struct client_cb shared_callbacks = {
    .send = on_shared_send, .on_idle = on_shared_idle, .on_dead = on_shared_dead};

static void
mount_free(struct http_mount *m)
{
	*m->prev = m->next;
	if (m->next != NULL)
		m->next->prev = m->prev;
	client_free(m->shared);
	deferred_cancel(&m->reap);
	mem_free(m->path);
	mem_free(m->profile);
	m->magic = 0;
	mem_free(m);
}

/* Of one that is gone: listens end once they are all that is left, and the last one out
 * ends it. Never on the stack of its client. */
static void
on_mount_reap(void *arg)
{
	struct http_mount *m = arg;

	MCPVISOR_ASSERT(m->magic == MOUNT_MAGIC && m->is_gone);
	if (client_in_flight(m->shared) == 0)
		client_finish(m->shared);
	if (m->refs == 0)
		mount_free(m);
}

static struct http_mount *
mount_new(struct endpoint_http *e, const struct endpoint_listen *row, bool is_sse)
{
	struct http_mount *m = mem_xcalloc(1, sizeof(*m));

	m->magic = MOUNT_MAGIC;
	m->e = e;
	m->path = mem_xstrdup(is_sse ? row->sse_path : row->path);
	m->is_sse = is_sse;
	m->profile = mem_xstrdup(row->profile);
	m->view = row->view;
	m->shared = client_new_shared(e->loop, e->g, row->view, &shared_callbacks, m);
	client_set_key(m->shared, &e->o.key);
	deferred_init(&m->reap, e->loop, on_mount_reap, m);
	m->next = e->mounts;
	if (m->next != NULL)
		m->next->prev = &m->next;
	m->prev = &e->mounts;
	e->mounts = m;
	return m;
}

struct http_mount *
http_mount_ref(struct http_mount *m)
{
	m->refs++;
	return m;
}

void
http_mount_unref(struct http_mount *m)
{
	if (m == NULL)
		return;
	MCPVISOR_ASSERT(m->magic == MOUNT_MAGIC && m->refs > 0);
	if (--m->refs == 0 && m->is_gone)
		deferred_ask(&m->reap);
}

void
http_mounts_free_clients(struct endpoint_http *e)
{
	for (struct http_mount *m = e->mounts; m != NULL; m = m->next) {
		client_free(m->shared);
		m->shared = NULL;
	}
}

void
http_mounts_free(struct endpoint_http *e)
{
	while (e->mounts != NULL)
		mount_free(e->mounts);
}

static bool
mount_is_of(const struct http_mount *m, const struct endpoint_listen *row, bool is_sse)
{
	return !m->is_gone && m->is_sse == is_sse && m->view == row->view &&
	       strcmp(m->path, is_sse ? row->sse_path : row->path) == 0 &&
	       strcmp(m->profile, row->profile) == 0;
}

struct http_mount *
http_mount_get(struct endpoint_http *e, const struct endpoint_listen *row, bool is_sse)
{
	struct http_mount *m = e->mounts;

	while (m != NULL && !mount_is_of(m, row, is_sse))
		m = m->next;
	if (m == NULL)
		m = mount_new(e, row, is_sse);
	m->is_wanted = true;
	return http_mount_ref(m);
}

static void
mount_retire(struct http_mount *m)
{
	LOG_INFO("http", "path is gone", "path=%s profile=%s",
	    LOG_ESC(m->path, strlen(m->path)), LOG_ESC(m->profile, strlen(m->profile)));
	m->is_gone = true;
	for (struct http_session *s = m->e->first; s != NULL; s = s->next)
		if (s->mount == m)
			http_session_retire(s);
	deferred_ask(&m->reap);
}

void
http_mounts_retire(struct endpoint_http *e)
{
	for (struct http_mount *m = e->mounts; m != NULL; m = m->next) {
		if (!m->is_wanted && !m->is_gone)
			mount_retire(m);
		m->is_wanted = false;
	}
}
