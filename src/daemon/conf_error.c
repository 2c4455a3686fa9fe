/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a conf: collected over all files, in their order.
 *
 * Owns: the texts until conf_take_errors.
 * Driven by: all parts of the parser.
 * Invariants: no text shows a string of the file, as any may be a secret; names of
 * upstreams, profiles, tools, settings and variables are shown.
 */
#include "conf_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#define CONF_ERRORS_MAX 100

__attribute__((format(printf, 4, 0))) static void
conf_found_add(
    struct conf_ctx *x, int line, const char *path, const char *fmt, va_list ap)
{
	char what[1024], text[2048];
	struct conf_found *f;

	if (x->quiet)
		return;
	if (x->n_found == CONF_ERRORS_MAX) {
		x->n_more++;
		return;
	}
	vsnprintf(what, sizeof(what), fmt, ap);
	if (line > 0)
		snprintf(text, sizeof(text), "%.500s:%d: %s%s%s", x->file, line, path,
		    *path ? ": " : "", what);
	else
		snprintf(text, sizeof(text), "%.500s: %s%s%s", x->file, path,
		    *path ? ": " : "", what);
	x->found = mem_xrealloc(x->found, (x->n_found + 1) * sizeof(*x->found));
	f = &x->found[x->n_found++];
	*f = (struct conf_found){x->file_no, (unsigned)x->n_found, line, NULL};
	f->text = mem_xstrdup(text);
}

void
conf_error(struct conf_ctx *x, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	conf_found_add(x, line, x->path, fmt, ap);
	va_end(ap);
}

void
conf_file_error(struct conf_ctx *x, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	conf_found_add(x, line, "", fmt, ap);
	va_end(ap);
}

const char *
conf_setting_type(const config_setting_t *s)
{
	static const char *const names[] = {
	    [CONFIG_TYPE_NONE] = "nothing",
	    [CONFIG_TYPE_GROUP] = "a group",
	    [CONFIG_TYPE_INT] = "a number",
	    [CONFIG_TYPE_INT64] = "a number",
	    [CONFIG_TYPE_FLOAT] = "a number with a fraction",
	    [CONFIG_TYPE_STRING] = "a string",
	    [CONFIG_TYPE_BOOL] = "true or false",
	    [CONFIG_TYPE_ARRAY] = "an array",
	    [CONFIG_TYPE_LIST] = "a list",
	};

	return names[config_setting_type(s)];
}

void
conf_want(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s)
{
	conf_error(x, (int)config_setting_source_line(s), "want %s, not %s",
	    conf_type_of(r)->label, conf_setting_type(s));
}

size_t
conf_push(struct conf_ctx *x, const char *part)
{
	size_t old = x->path_len, n = strlen(part), room = sizeof(x->path) - old - 1;
	char *end = x->path + old;

	if (old > 0 && room > 0) {
		*end++ = '.';
		room--;
	}
	if (n > room)
		n = room;
	memcpy(end, part, n);
	end[n] = '\0';
	x->path_len = (size_t)(end - x->path) + n;
	return old;
}

size_t
conf_push_index(struct conf_ctx *x, int i)
{
	char part[16];

	snprintf(part, sizeof(part), "%d", i);
	return conf_push(x, part);
}

void
conf_pop(struct conf_ctx *x, size_t len)
{
	x->path_len = len;
	x->path[len] = '\0';
}

const char *
conf_label(const char *name)
{
	size_t n = strlen(name);

	if (n > 0 && n == strspn(name, "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/"))
		return name;
	return LOG_ESC(name, n < 128 ? n : 128);
}

static int
conf_found_order(const void *a, const void *b)
{
	const struct conf_found *p = a, *q = b;

	if (p->file_no != q->file_no)
		return p->file_no < q->file_no ? -1 : 1;
	if (p->line != q->line)
		return p->line < q->line ? -1 : 1;
	return p->order < q->order ? -1 : 1;
}

void
conf_take_errors(struct conf_ctx *x, struct conf_errors *e)
{
	*e = (struct conf_errors){.n = x->n_found, .n_more = x->n_more};
	if (x->n_found == 0)
		return;
	qsort(x->found, x->n_found, sizeof(*x->found), conf_found_order);
	e->v = mem_xcalloc(x->n_found, sizeof(*e->v));
	for (size_t i = 0; i < x->n_found; i++)
		e->v[i] = x->found[i].text;
	mem_free(x->found);
	x->found = NULL;
	x->n_found = 0;
}

void
conf_errors_free(struct conf_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		mem_free(e->v[i]);
	mem_free(e->v);
	*e = (struct conf_errors){.n = 0};
}
