/* SPDX-License-Identifier: MIT */
/*
 * Headers of remote upstreams: values that stand in files are looked at again before each
 * request, and read again once their files are others.
 *
 * Owns: the sources of the headers of an upstream_conf, until that is freed.
 * Driven by: the conf and the import while they read; requests to the server.
 * Invariants: one source for each header, in their order; no message shows a value.
 */
#include "remote_conf.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/mem.h"

#define HEADERS_MAX	 64
#define HEADER_BYTES_MAX 8192
/* The clock of files ticks this coarsely at worst: what was written so shortly before it
 * was read may be written again without a sign. */
#define FILE_TICK_S 2

struct header_file {
	char *path;
	struct stat st; /* all zero: there was none */
	bool is_fresh;
};

struct header_source {
	struct expand_env env; /* dir and credentials are ours */
	char *dir, *credentials;
	struct header_file *files;
	size_t n;
	bool is_stale; /* the last reading failed */
};

#define SOURCES_MAGIC 0x68647273u

struct header_sources {
	unsigned magic;
	struct header_source *v;
	size_t n;
};

/* ---- files ---- */

static void
source_forget_files(struct header_source *s)
{
	for (size_t i = 0; i < s->n; i++)
		mem_free(s->files[i].path);
	mem_free(s->files);
	s->files = NULL;
	s->n = 0;
}

static void
source_fini(struct header_source *s)
{
	source_forget_files(s);
	mem_free(s->dir);
	mem_free(s->credentials);
}

static void
sources_free(struct header_sources *h)
{
	if (!h)
		return;
	MCPVISOR_ASSERT(h->magic == SOURCES_MAGIC);
	for (size_t i = 0; i < h->n; i++)
		source_fini(&h->v[i]);
	mem_free(h->v);
	mem_free(h);
}

static void
file_stat(const char *path, struct stat *st)
{
	if (stat(path, st) != 0)
		memset(st, 0, sizeof(*st));
}

/* Before it is read: what changes in between is seen at the next look. */
static void
on_source_file(const char *path, void *arg)
{
	struct header_source *s = arg;
	struct header_file *f;

	s->files = mem_xrealloc(s->files, (s->n + 1) * sizeof(*s->files));
	f = &s->files[s->n++];
	*f = (struct header_file){.path = mem_xstrdup(path)};
	file_stat(path, &f->st);
	f->is_fresh = f->st.st_mtim.tv_sec + FILE_TICK_S >= time(NULL);
}

static bool
file_is_changed(const struct header_file *f)
{
	struct stat st;

	file_stat(f->path, &st);
	return f->is_fresh || st.st_dev != f->st.st_dev || st.st_ino != f->st.st_ino ||
	       st.st_size != f->st.st_size || st.st_mtim.tv_sec != f->st.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != f->st.st_mtim.tv_nsec ||
	       st.st_ctim.tv_sec != f->st.st_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != f->st.st_ctim.tv_nsec;
}

static bool
source_is_changed(const struct header_source *s)
{
	bool changed = s->is_stale;

	for (size_t i = 0; i < s->n && !changed; i++)
		changed = file_is_changed(&s->files[i]);
	return changed;
}

/* ---- values ---- */

static const char *
header_check_value(const char *s)
{
	if (!*s)
		return "is empty";
	if (strlen(s) > HEADER_BYTES_MAX)
		return "is longer than 8192 bytes";
	for (; *s; s++) {
		if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
			return "has a line break or another control character";
	}
	return NULL;
}

/* NULL with et set. */
static char *
source_read(struct header_source *s, const char *text, struct mv_errtext *et)
{
	const char *wrong = NULL;
	char *value;

	source_forget_files(s);
	s->env.file_arg = s;
	value = expand_text(text, &s->env, NULL, et);
	if (value)
		wrong = header_check_value(value);
	if (wrong) {
		mv_errtext_set(et, "%s", wrong);
		mem_free_secret(value, strlen(value));
		value = NULL;
	}
	s->is_stale = !value;
	return value;
}

static void
header_set(char **slot, char *value)
{
	if (*slot)
		mem_free_secret(*slot, strlen(*slot));
	*slot = value;
}

static bool
header_look_again(struct header_row *h, struct header_source *s, struct mv_errtext *why)
{
	struct mv_errtext et = {.line = 0};
	char *value;

	if (!h->source || !source_is_changed(s))
		return true;
	value = source_read(s, h->source, &et);
	if (value)
		header_set(&h->value, value);
	else
		mv_errtext_set(why, "header %.128s: %.300s", h->name, et.message);
	return value != NULL;
}

static bool
headers_put(const struct upstream_conf *c, struct buf *out, struct mv_errtext *why)
{
	struct header_sources *h = c->sources;

	MCPVISOR_ASSERT(h->magic == SOURCES_MAGIC && h->n == c->n_headers);
	for (size_t i = 0; i < c->n_headers; i++) {
		struct header_row *row = &c->headers[i];

		if (!header_look_again(row, &h->v[i], why))
			return false;
		buf_add_str(out, row->name);
		buf_add_str(out, ": ");
		buf_add_str(out, row->value);
		buf_add_char(out, '\0');
	}
	return true;
}

/* ---- reading a conf ---- */

static size_t
header_find(const struct upstream_conf *c, const char *name)
{
	size_t i = 0;

	while (i < c->n_headers && strcasecmp(c->headers[i].name, name) != 0)
		i++;
	return i;
}

bool
remote_has_header(const struct upstream_conf *c, const char *name)
{
	return header_find(c, name) < c->n_headers;
}

/* The place of a header with its source; it is new if the conf has none of the name. */
static size_t
header_place(struct upstream_conf *c, const char *name)
{
	size_t i = header_find(c, name);
	struct header_sources *h = c->sources;

	if (!h) {
		c->sources = h = mem_xcalloc(1, sizeof(*h));
		c->free_sources = sources_free;
		h->magic = SOURCES_MAGIC;
	}
	if (i < c->n_headers)
		return i;
	c->headers = mem_xrealloc(c->headers, (i + 1) * sizeof(*c->headers));
	c->headers[i] = (struct header_row){.name = mem_xstrdup(name)};
	c->n_headers++;
	h->v = mem_xrealloc(h->v, (i + 1) * sizeof(*h->v));
	h->v[i] = (struct header_source){.n = 0};
	h->n++;
	return i;
}

bool
remote_add_header(struct upstream_conf *c, const char *name, const char *text,
    const struct expand_env *env, struct mv_errtext *et)
{
	struct header_source s = {.env = env ? *env : expand_env_process};
	struct header_row *row;
	char *value = NULL;
	size_t i;

	if (c->n_headers >= HEADERS_MAX && !remote_has_header(c, name)) {
		mv_errtext_set(et, "there are more than %d headers", HEADERS_MAX);
		return false;
	}
	if (s.env.dir)
		s.env.dir = s.dir = mem_xstrdup(s.env.dir);
	if (s.env.credentials)
		s.env.credentials = s.credentials = mem_xstrdup(s.env.credentials);
	s.env.on_file = on_source_file;
	value = env ? source_read(&s, text, et) : mem_xstrdup(text);
	if (!value) {
		source_fini(&s);
		return false;
	}
	i = header_place(c, name);
	row = &c->headers[i];
	header_set(&row->value, value);
	header_set(&row->source, s.n > 0 ? mem_xstrdup(text) : NULL);
	source_fini(&c->sources->v[i]);
	c->sources->v[i] = s;
	if (s.n > 0)
		c->put_headers = headers_put;
	return true;
}
