/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the HTTP endpoint, and how one set of them takes the place of another.
 *
 * Owns: doors, with their listeners and guards.
 * Driven by: the owner (set_listen), the listeners, the ends of connections.
 * Invariants: nothing changes before everything that can fail has worked; a door outlives
 * its listener for as long as connections came by it.
 */
#include "mcpvisor/endpoint_http.h"

#include "endpoint_http_priv.h"

#include "mcpvisor/mem.h"

#include <string.h>

#define MODE_DEFAULT 0600
/* Beside the peer, in what a session id is bound to. */
#define PROFILE_BYTES_MAX 120

static char **
list_copy(const char *const *v)
{
	char **copy;
	size_t n = 0;

	if (v == NULL)
		return NULL;
	while (v[n] != NULL)
		n++;
	copy = mem_xcalloc(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = mem_xstrdup(v[i]);
	return copy;
}

static void
list_free(char **v)
{
	for (size_t i = 0; v != NULL && v[i] != NULL; i++)
		mem_free(v[i]);
	mem_free(v);
}

static void
rows_free(struct http_row *rows, size_t n)
{
	for (size_t i = 0; rows != NULL && i < n; i++) {
		http_mount_unref(rows[i].mount);
		list_free(rows[i].hosts);
		list_free(rows[i].origins);
	}
	mem_free(rows);
}

struct http_door *
http_door_ref(struct http_door *d)
{
	d->refs++;
	return d;
}

void
http_door_unref(struct http_door *d)
{
	if (d == NULL)
		return;
	MCPVISOR_ASSERT(d->magic == DOOR_MAGIC && d->refs > 0);
	if (--d->refs > 0)
		return;
	listener_free(d->listener);
	rows_free(d->rows, d->n_rows);
	mem_free(d->group);
	d->magic = 0;
	mem_free(d);
}

static void
on_accept(void *arg, int fd, uid_t uid)
{
	struct http_door *d = arg;

	MCPVISOR_ASSERT(d->magic == DOOR_MAGIC);
	if (uid != (uid_t)-1)
		socket_accept(d, fd, uid);
	else
		http_server_add(d->e->server, fd, uid, http_door_ref(d));
}

static const struct listener_cb listener_callbacks = {.on_accept = on_accept};

static enum mv_err
door_new(struct endpoint_http *e, const char *address, struct http_door **out,
    struct mv_errtext *et)
{
	struct http_door *d = mem_xcalloc(1, sizeof(*d));
	enum mv_err err;

	d->magic = DOOR_MAGIC;
	d->e = e;
	d->refs = 1;
	d->mode = MODE_DEFAULT;
	err = listener_new(e->loop, address, &listener_callbacks, d, &d->listener, et);
	if (err != MV_OK) {
		http_door_unref(d);
		d = NULL;
	}
	*out = d;
	return err;
}

const struct http_row *
http_door_find(const struct http_door *d, struct http_text path)
{
	MCPVISOR_ASSERT(d->magic == DOOR_MAGIC);
	for (size_t i = 0; i < d->n_rows; i++)
		if (http_text_is(path, d->rows[i].mount->path))
			return d->rows[i].mount->is_gone ? NULL : &d->rows[i];
	return NULL;
}

static void
door_close(struct http_door *d)
{
	struct http_door **at = &d->e->doors;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	listener_free(d->listener);
	d->listener = NULL;
	http_door_unref(d);
}

void
http_doors_close(struct endpoint_http *e)
{
	while (e->doors != NULL)
		door_close(e->doors);
	mem_free(e->of_rows);
	e->of_rows = NULL;
	e->n_rows = 0;
}

/* What is to be, while it is made. */
struct plan {
	struct endpoint_http *e;
	const struct endpoint_listen *rows;
	size_t n;
	struct http_door **of_rows;
};

/* The first row of an address speaks for it. */
static bool
plan_is_first(const struct plan *p, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (p->of_rows[j] == p->of_rows[i])
			return false;
	return true;
}

static bool
plan_has(const struct plan *p, const struct http_door *d)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->of_rows[i] == d)
			return true;
	return false;
}

static struct http_door *
plan_find(const struct plan *p, size_t i)
{
	const char *address = p->rows[i].address;

	for (struct http_door *d = p->e->doors; d != NULL; d = d->next)
		if (listener_serves(d->listener, address))
			return d;
	for (size_t j = 0; j < i; j++)
		if (listener_serves(p->of_rows[j]->listener, address))
			return p->of_rows[j];
	return NULL;
}

static enum mv_err
plan_open(struct plan *p, struct mv_errtext *et)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct endpoint_listen *row = &p->rows[i];
		enum mv_err err;

		if (strlen(row->profile) > PROFILE_BYTES_MAX) {
			mv_errtext_set(et,
			    "%s: the name of the profile \"%.20s...\" is "
			    "over %d bytes",
			    row->address, row->profile, PROFILE_BYTES_MAX);
			return MV_CONF;
		}
		p->of_rows[i] = plan_find(p, i);
		if (p->of_rows[i] != NULL)
			continue;
		err = door_new(p->e, row->address, &p->of_rows[i], et);
		if (err != MV_OK)
			return err;
	}
	return MV_OK;
}

/* A row has one path or two. */
static const char *
plan_path(const struct plan *p, size_t k)
{
	return k % 2 == 0 ? p->rows[k / 2].path : p->rows[k / 2].sse_path;
}

static enum mv_err
plan_check_paths(const struct plan *p, struct mv_errtext *et)
{
	for (size_t i = 0; i < 2 * p->n; i++) {
		const char *path = plan_path(p, i);

		for (size_t j = 0; j < i && path != NULL; j++) {
			if (p->of_rows[i / 2] != p->of_rows[j / 2] ||
			    plan_path(p, j) == NULL || strcmp(path, plan_path(p, j)) != 0)
				continue;
			mv_errtext_set(et, "%s: the path %s is there twice",
			    p->rows[i / 2].address, path);
			return MV_CONF;
		}
	}
	return MV_OK;
}

static unsigned
row_mode(const struct endpoint_listen *row)
{
	return row->mode != 0 ? row->mode : MODE_DEFAULT;
}

/* Mode and group of the first n rows' sockets: as planned, or as they are. */
static enum mv_err
plan_set_access(
    const struct plan *p, size_t n, bool back, size_t *done, struct mv_errtext *et)
{
	for (size_t i = 0; i < n; i++) {
		const struct http_door *d = p->of_rows[i];
		enum mv_err err;

		if (!plan_is_first(p, i))
			continue;
		err = listener_set_access(d->listener,
		    back ? d->mode : row_mode(&p->rows[i]),
		    back ? d->group : p->rows[i].group, et);
		if (err != MV_OK && !back) {
			*done = i;
			return err;
		}
	}
	return MV_OK;
}

static void
plan_put_row(struct http_row *r, const struct plan *p, size_t i, bool is_sse)
{
	const struct endpoint_listen *row = &p->rows[i];

	r->mount = http_mount_get(p->e, row, is_sse);
	r->hosts = list_copy(row->allowed_hosts);
	r->origins = list_copy(row->allowed_origins);
	r->guard = (struct http_guard){
	    .loopback = listener_is_loopback(p->of_rows[i]->listener),
	    .allowed_hosts = (const char *const *)r->hosts,
	    .allowed_origins = (const char *const *)r->origins,
	};
}

/* Puts the rows of the door of row i in place. */
static void
plan_furnish(const struct plan *p, size_t i)
{
	struct http_door *d = p->of_rows[i];
	struct http_row *rows = mem_xcalloc(2 * p->n, sizeof(*rows)), *old = d->rows;
	size_t n_old = d->n_rows;

	d->n_rows = 0;
	for (size_t j = i; j < p->n; j++) {
		if (p->of_rows[j] != d)
			continue;
		plan_put_row(&rows[d->n_rows++], p, j, false);
		if (p->rows[j].sse_path != NULL)
			plan_put_row(&rows[d->n_rows++], p, j, true);
	}
	d->rows = rows;
	d->mode = row_mode(&p->rows[i]);
	mem_free(d->group);
	d->group = p->rows[i].group != NULL ? mem_xstrdup(p->rows[i].group) : NULL;
	if (old != NULL) {
		rows_free(old, n_old);
	} else {
		d->next = p->e->doors;
		p->e->doors = d;
	}
}

/* Nothing here can fail. */
static void
plan_commit(struct plan *p)
{
	struct endpoint_http *e = p->e;
	struct http_door *next;

	for (size_t i = 0; i < p->n; i++)
		if (plan_is_first(p, i))
			plan_furnish(p, i);
	for (struct http_door *d = e->doors; d != NULL; d = next) {
		next = d->next;
		if (!plan_has(p, d))
			door_close(d);
	}
	http_mounts_retire(e);
	mem_free(e->of_rows);
	e->of_rows = p->of_rows;
	e->n_rows = p->n;
}

static void
plan_drop(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->of_rows[i] != NULL && plan_is_first(p, i) &&
		    p->of_rows[i]->rows == NULL)
			http_door_unref(p->of_rows[i]);
	mem_free(p->of_rows);
}

enum mv_err
endpoint_http_set_listen(struct endpoint_http *e, const struct endpoint_listen *rows,
    size_t n, struct mv_errtext *et)
{
	struct plan p = {.e = e, .rows = rows, .n = n};
	enum mv_err err = MV_STOPPING;
	size_t done = 0;

	MCPVISOR_ASSERT(e->magic == ENDPOINT_MAGIC);
	p.of_rows = mem_xcalloc(n, sizeof(*p.of_rows));
	if (e->state == HTTP_ST_OPEN)
		err = plan_open(&p, et);
	else
		mv_errtext_set(et, "%s", mv_err_text(err));
	if (err == MV_OK)
		err = plan_check_paths(&p, et);
	if (err == MV_OK) {
		err = plan_set_access(&p, n, false, &done, et);
		if (err != MV_OK)
			(void)plan_set_access(&p, done, true, NULL, NULL);
	}
	if (err == MV_OK)
		plan_commit(&p);
	else
		plan_drop(&p);
	return err;
}

const char *
endpoint_http_address(const struct endpoint_http *e, size_t i)
{
	return i < e->n_rows ? listener_address(e->of_rows[i]->listener) : NULL;
}
