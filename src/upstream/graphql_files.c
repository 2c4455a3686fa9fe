/* SPDX-License-Identifier: MIT */
/*
 * Files of GraphQL operations: found by patterns, read when they are new or have changed.
 *
 * Owns: the documents of each file.
 * Driven by: upstream_graphql.c.
 * Invariants: sorted by path, each once; a file that cannot be read keeps the documents
 * that it had, and is looked at again when it has changed; one that is gone has none.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX  10000
#define READ_PIECE 16384

/* ---- reading ---- */

const char *
gql_file_read(const char *path, struct buf *out)
{
	/* Of a pipe that nobody writes to, an open would not return. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *fault = NULL;
	char piece[READ_PIECE];
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		fault = "not a regular file";
	while (fault == NULL && (got = read(fd, piece, sizeof(piece))) != 0) {
		if (got < 0 && errno != EINTR)
			fault = strerror(errno);
		else if (got > 0)
			buf_add(out, piece, (size_t)got);
		if (out->err != MV_OK)
			fault = "too long";
	}
	(void)close(fd);
	return fault;
}

static uint64_t
file_stamp(const char *path)
{
	uint64_t h = HASH_STABLE_SEED;
	struct stat st;

	if (stat(path, &st) != 0)
		return 0;
	h = hash_stable(h, &st.st_mtim, sizeof(st.st_mtim));
	h = hash_stable(h, &st.st_size, sizeof(st.st_size));
	h = hash_stable(h, &st.st_ino, sizeof(st.st_ino));
	return h | 1;
}

static struct graphql_document *
file_read_document(const char *path, bool *is_manifest, struct mv_errtext *t)
{
	struct graphql_document *d = NULL;
	struct buf text;
	const char *fault;

	buf_init(&text, GRAPHQL_FILE_MAX);
	fault = gql_file_read(path, &text);
	if (fault != NULL) {
		mv_errtext_set(t, "%s", fault);
		goto out;
	}
	/* No operation is JSON. */
	*is_manifest = jtext_type(graphql_json(text.data, text.len)) == '{';
	d = (*is_manifest ? graphql_manifest_read : graphql_document_read)(
	    text.data != NULL ? text.data : "", text.len, t);
out:
	buf_fini(&text);
	return d;
}

/* ---- files ---- */

static void
file_log(const char *upstream, const struct gql_file *f, const struct mv_errtext *t)
{
	LOG_WARNING("graphql", "operation file refused",
	    "upstream=%s file=%s line=%d why=%s keeps=%s",
	    LOG_ESC(upstream, strlen(upstream)), LOG_ESC(f->path, strlen(f->path)),
	    t->line, LOG_ESC(t->message, strlen(t->message)),
	    f->doc != NULL ? "its last" : "nothing");
}

static void
file_look(struct gql_file *f, const char *upstream)
{
	struct mv_errtext t = {.line = 0};
	struct graphql_document *d;
	uint64_t stamp = file_stamp(f->path);
	bool is_manifest = false;

	if (stamp == f->stamp && stamp != 0)
		return;
	f->stamp = stamp;
	d = file_read_document(f->path, &is_manifest, &t);
	if (d == NULL) {
		file_log(upstream, f, &t);
		return;
	}
	graphql_document_free(f->doc);
	f->doc = d;
	f->is_manifest = is_manifest;
}

static void
file_fini(struct gql_file *f)
{
	graphql_document_free(f->doc);
	mem_free(f->path);
}

static struct gql_file *
files_find(struct gql_files *f, const char *path)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->of[i].path, path) == 0)
			return &f->of[i];
	return NULL;
}

static void
files_note(struct gql_files *f, const char *path)
{
	struct gql_file *it = files_find(f, path);

	if (it == NULL && f->n < FILES_MAX) {
		f->of = mem_xrealloc(f->of, (f->n + 1) * sizeof(*f->of));
		it = &f->of[f->n++];
		*it = (struct gql_file){.path = mem_xstrdup(path)};
	}
	if (it != NULL)
		it->is_seen = true;
}

static void
files_find_all(struct gql_files *f, const char *upstream, char *const *patterns)
{
	for (; patterns != NULL && *patterns != NULL; patterns++) {
		glob_t found = {.gl_pathc = 0};
		int rc = glob(*patterns, 0, NULL, &found);

		if (rc == GLOB_NOMATCH)
			LOG_WARNING("graphql", "no operation files",
			    "upstream=%s pattern=%s", LOG_ESC(upstream, strlen(upstream)),
			    LOG_ESC(*patterns, strlen(*patterns)));
		for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
			files_note(f, found.gl_pathv[i]);
		globfree(&found);
	}
}

static void
files_drop_gone(struct gql_files *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (f->of[i].is_seen)
			f->of[n++] = f->of[i];
		else
			file_fini(&f->of[i]);
	}
	f->n = n;
}

static int
file_order(const void *a, const void *b)
{
	const struct gql_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

void
gql_files_look(struct gql_files *f, const char *upstream, char *const *patterns)
{
	for (size_t i = 0; i < f->n; i++)
		f->of[i].is_seen = false;
	files_find_all(f, upstream, patterns);
	files_drop_gone(f);
	if (f->n > 1)
		qsort(f->of, f->n, sizeof(*f->of), file_order);
	for (size_t i = 0; i < f->n; i++)
		file_look(&f->of[i], upstream);
}

void
gql_files_fini(struct gql_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		file_fini(&f->of[i]);
	mem_free(f->of);
	*f = (struct gql_files){.n = 0};
}
