/* SPDX-License-Identifier: MIT */
/*
 * The file that probe writes, and what it adds to descriptions.
 *
 * Owns: nothing.
 * Driven by: probe; the conf, when it was read.
 * Invariants: what reaches a description is the shape of an answer, no value of one; a
 * file that is the same is not written.
 */
#include "overlay.h"

#include "probe_record.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/expand.h"
#include "mcpvisor/file.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OVERLAY_VERSION	  1
#define OVERLAY_MAX_BYTES CAP_CONF_BYTES
#define OVERLAY_KEY	  "mcpvisor_probe"

static json_t *
overlay_fail(struct mv_errtext *t, const char *path, const char *text)
{
	(void)snprintf(t->file, sizeof(t->file), "%s", path);
	mv_errtext_set(t, "%s", text);
	return NULL;
}

json_t *
overlay_read(const char *path, struct mv_errtext *t)
{
	json_t *root, *tools;
	json_error_t je;
	const char *wrong;
	char *text;
	size_t n = 0;

	if (access(path, F_OK) != 0 && errno == ENOENT)
		return json_array();
	wrong = expand_read_file(path, 0, OVERLAY_MAX_BYTES, &text, &n);
	if (text == NULL)
		return overlay_fail(t, path, wrong);
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je);
	mem_free(text);
	tools = json_object_get(root, "tools");
	if (json_integer_value(json_object_get(root, OVERLAY_KEY)) != OVERLAY_VERSION ||
	    !json_is_array(tools)) {
		json_decref(root);
		return overlay_fail(t, path, "is no file that probe has written");
	}
	json_incref(tools);
	json_decref(root);
	return tools;
}

static int
record_order(const void *a, const void *b)
{
	const json_t *const *p = a, *const *q = b;
	int order = strcmp(record_text(*p, "upstream"), record_text(*q, "upstream"));

	return order != 0 ? order
			  : strcmp(record_text(*p, "tool"), record_text(*q, "tool"));
}

/* They came as calls ended: the same ones shall be the same file. */
static json_t *
overlay_sorted(const json_t *records)
{
	size_t n = json_array_size(records);
	json_t **v = mem_xcalloc(n + 1, sizeof(json_t *)), *sorted = json_array();

	for (size_t i = 0; i < n; i++)
		v[i] = json_array_get(records, i);
	qsort(v, n, sizeof(json_t *), record_order);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append(sorted, v[i]);
	mem_free(v);
	return sorted;
}

/* Its text; NULL: no memory. */
static char *
overlay_text(const json_t *records)
{
	json_t *root = json_pack(
	    "{s:i, s:o}", OVERLAY_KEY, OVERLAY_VERSION, "tools", overlay_sorted(records));
	char *text = root != NULL ? json_dumps(root, JSON_INDENT(1)) : NULL;

	json_decref(root);
	return text;
}

static bool
overlay_is_same(const char *path, const char *text, size_t n)
{
	size_t n_old = 0;
	char *old = NULL;
	bool same;

	same = expand_read_file(path, 0, OVERLAY_MAX_BYTES, &old, &n_old) == NULL &&
	       old != NULL && n_old == n && memcmp(old, text, n) == 0;
	mem_free(old);
	return same;
}

bool
overlay_write(const char *path, const json_t *records, bool *changed)
{
	char *text = overlay_text(records);
	size_t n = text != NULL ? strlen(text) : 0;
	bool ok;

	*changed = false;
	if (text == NULL || n > OVERLAY_MAX_BYTES) {
		errno = text == NULL ? ENOMEM : EFBIG;
		mem_free(text);
		return false;
	}
	text[n] = '\n'; /* its end is no longer needed */
	n++;
	ok = overlay_is_same(path, text, n);
	if (!ok) {
		ok = file_replace(path, text, n);
		*changed = ok;
	}
	mem_free(text);
	return ok;
}

json_t *
overlay_find(json_t *records, const char *upstream, const char *tool)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
	{
		if (strcmp(record_text(r, "upstream"), upstream) == 0 &&
		    strcmp(record_text(r, "tool"), tool) == 0)
			return r;
	}
	return NULL;
}

/* The shape of a tool of u, a new one if there is none; shapes stay in order, which the
 * file has too. */
static struct tool_shape *
overlay_shape(struct upstream_conf *u, const char *tool)
{
	size_t n = u->n_shapes, at = n;

	while (at > 0 && strcmp(u->shapes[at - 1].tool, tool) > 0)
		at--;
	if (at > 0 && strcmp(u->shapes[at - 1].tool, tool) == 0)
		return &u->shapes[at - 1];
	u->shapes = mem_xrealloc(u->shapes, (n + 1) * sizeof(*u->shapes));
	memmove(&u->shapes[at + 1], &u->shapes[at], (n - at) * sizeof(*u->shapes));
	memset(&u->shapes[at], 0, sizeof(u->shapes[at]));
	u->shapes[at].tool = mem_xstrdup(tool);
	u->shapes[at].is_found = true;
	u->n_shapes++;
	return &u->shapes[at];
}

static void
overlay_take(struct upstream_conf *u, const json_t *record)
{
	const char *shape = record_text(record, "shape"),
		   *tool = record_text(record, "tool");
	struct tool_shape *s;
	struct buf text;

	if (*shape == '\0' || *tool == '\0' ||
	    strcmp(record_text(record, "answer"), "partial") == 0)
		return;
	s = overlay_shape(u, tool);
	buf_init(&text, CAP_MESSAGE_BYTES);
	buf_addf(&text, "Returns: %s (as mcpvisor probe has seen it)", shape);
	mem_free(s->returns);
	s->returns = buf_take(&text, NULL);
	s->returns_of = strtoull(record_text(record, "digest"), NULL, 16);
	buf_fini(&text);
}

static void
overlay_warn(struct conf *c, const struct mv_errtext *t)
{
	char text[sizeof(t->file) + sizeof(t->message) + 16];

	(void)snprintf(text, sizeof(text), "%s: %s", t->file, t->message);
	c->warnings =
	    mem_xrealloc(c->warnings, (c->n_warnings + 1) * sizeof(*c->warnings));
	c->warnings[c->n_warnings++] = mem_xstrdup(text);
}

void
overlay_apply(struct conf *c)
{
	struct mv_errtext et = {.line = 0};
	json_t *records, *r;
	size_t i;

	if (c->probe.file == NULL)
		return;
	records = overlay_read(c->probe.file, &et);
	if (records == NULL) {
		overlay_warn(c, &et);
		return;
	}
	json_array_foreach(records, i, r)
	{
		for (size_t k = 0; k < c->n_upstreams; k++)
			if (strcmp(c->upstreams[k]->name, record_text(r, "upstream")) ==
			    0)
				overlay_take(c->upstreams[k], r);
	}
	json_decref(records);
}
