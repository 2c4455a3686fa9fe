/* SPDX-License-Identifier: MIT */
/*
 * Reads the server lists of MCP clients: the file, its outer shape, the walk over its
 * entries. One entry is import_entry.c's.
 *
 * Owns: nothing; the result is the caller's.
 * Driven by: main at start.
 * Invariants: a fault of the file as a whole fails it with its line and leaves an empty
 * result; a fault of one entry breaks that entry alone. No message shows a value of the
 * file, since any may be a secret: the parser's "near ..." is cut off.
 */
#include "mcpvisor/import.h"

#include "import_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <jansson.h>

#define IMPORT_WARNINGS_MAX 100

static void
import_add_warning(struct import_result *r, const char *text)
{
	r->warnings =
	    mem_xrealloc(r->warnings, (r->n_warnings + 1) * sizeof *r->warnings);
	r->warnings[r->n_warnings++] = mem_xstrdup(text);
}

void
import_warn(struct import_ctx *x, const struct import_entry *e, const char *fmt, ...)
{
	char what[512], text[1024];
	va_list ap;

	if (x->r->n_warnings == IMPORT_WARNINGS_MAX)
		import_add_warning(x->r, "more warnings are left out");
	if (x->r->n_warnings > IMPORT_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (e)
		snprintf(text, sizeof text, "%s:%d: entry %.200s: %s", x->file, e->line,
		    LOG_ESC(e->name, strlen(e->name)), what);
	else
		snprintf(text, sizeof text, "%s: %s", x->file, what);
	import_add_warning(x->r, text);
}

static void
import_add(struct import_result *r, struct upstream_conf *c)
{
	r->v = mem_xrealloc(r->v, (r->n + 1) * sizeof *r->v);
	r->v[r->n++] = c;
}

void
import_add_secret(struct import_ctx *x, const char *value)
{
	struct import_result *r = x->r;

	r->secrets = mem_xrealloc(r->secrets, (r->n_secrets + 1) * sizeof *r->secrets);
	r->secrets[r->n_secrets++] = value;
}

static enum mv_err
import_fail(struct mv_errtext *et, int line, const char *message)
{
	mv_errtext_set(et, "%s", message);
	et->line = line;
	return MV_CONF;
}

/* The parser's message. What it found is shown only where that is the name of a
 * member, or nothing at all. */
static enum mv_err
import_fail_json(struct mv_errtext *et, const json_error_t *je)
{
	char text[JSON_ERROR_TEXT_LENGTH];
	char *near;

	snprintf(text, sizeof text, "%s", je->text);
	near = strstr(text, " near ");
	if (near && json_error_code(je) != json_error_duplicate_key &&
	    strcmp(near, " near end of file") != 0)
		*near = '\0';
	return import_fail(et, je->line > 0 ? je->line : 0, text);
}

/* Walks text and tree of the servers object in step, as both keep the file's order and
 * no name comes twice: the tree has the values, the text the lines. */
static enum mv_err
import_walk(struct import_ctx *x, const char *base, struct import_text servers,
    json_t *tree, struct mv_errtext *et)
{
	struct import_entry e = {.line = 0};
	struct import_cursor at;

	if (json_object_size(tree) > CAP_UPSTREAMS)
		return import_fail(et, 0, "too many servers in one file");
	import_cursor_init(&at, base, servers);
	json_object_foreach(tree, e.name, e.tree)
	{
		struct upstream_conf *c;

		if (!import_cursor_next(&at, &e.text))
			break;
		e.line = at.line;
		c = import_entry_read(x, &e);
		if (c)
			import_add(x->r, c);
	}
	return MV_OK;
}

static enum mv_err
import_tree(
    struct import_ctx *x, const char *text, size_t n, json_t *root, struct mv_errtext *et)
{
	static const char *const members[] = {"mcpServers", "servers"};
	struct import_text top = {text, n};
	const char *member = NULL;

	/* Like the parser, look past the white space. */
	while (top.n && strchr(" \t\r\n", *top.p)) {
		top.p++;
		top.n--;
	}
	if (!json_is_object(root))
		return import_fail(et, 0, "the file is not a JSON object");
	for (size_t i = 0; i < 2 && !member; i++) {
		if (json_object_get(root, members[i]))
			member = members[i];
	}
	if (!member)
		return import_fail(
		    et, 0, "neither \"mcpServers\" nor \"servers\" is in the file");
	if (!json_is_object(json_object_get(root, member))) {
		mv_errtext_set(et, "\"%s\" is not an object", member);
		et->line = 1 + import_text_lines(text, import_text_member(top, member).p);
		return MV_CONF;
	}
	if (member == members[0] && json_object_get(root, members[1]))
		import_warn(
		    x, NULL, "\"servers\" is ignored, as \"mcpServers\" is there too");
	return import_walk(
	    x, text, import_text_member(top, member), json_object_get(root, member), et);
}

enum mv_err
import_parse(const char *file, const char *text, size_t n, const struct expand_env *env,
    struct import_result *r, struct mv_errtext *et)
{
	struct import_ctx x = {.file = file, .env = *env, .r = r};
	const char *slash = strrchr(file, '/');
	char *copy = NULL, *dir = NULL;
	json_t *root = NULL;
	json_error_t je;
	enum mv_err err = MV_CONF;
	int line = 0;

	memset(r, 0, sizeof *r);
	snprintf(et->file, sizeof et->file, "%s", file);
	et->line = 0;
	if (n > CAP_IMPORT_BYTES)
		return import_fail(et, 0, "the file is too long");
	copy = mem_try(n + 1);
	if (!copy)
		return import_fail(et, 0, mv_err_text(MV_NOMEM));
	if (slash)
		x.env.dir = dir =
		    mem_xstrndup(file, slash > file ? (size_t)(slash - file) : 1);
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (jsonc_blank(copy, n, &line) != MV_OK) {
		import_fail(et, line, "a comment has no end");
		goto out;
	}
	root = json_loadb(copy, n, JSON_REJECT_DUPLICATES, &je);
	if (!root) {
		import_fail_json(et, &je);
		goto out;
	}
	err = import_tree(&x, copy, n, root, et);
out:
	json_decref(root);
	mem_free(dir);
	mem_free_secret(copy, n);
	if (err != MV_OK)
		import_free(r);
	return err;
}

enum mv_err
import_file(const char *file, struct import_result *r, struct mv_errtext *et)
{
	char *text;
	size_t n;
	const char *fault = expand_read_file(file, S_IFCHR, CAP_IMPORT_BYTES, &text, &n);
	enum mv_err err;

	memset(r, 0, sizeof *r);
	if (fault) {
		snprintf(et->file, sizeof et->file, "%s", file);
		return import_fail(et, 0, fault);
	}
	err = import_parse(file, text, n, &expand_env_process, r, et);
	mem_free_secret(text, n);
	return err;
}

void
import_free(struct import_result *r)
{
	for (size_t i = 0; i < r->n; i++)
		upstream_conf_free(r->v[i]);
	for (size_t i = 0; i < r->n_warnings; i++)
		mem_free(r->warnings[i]);
	mem_free(r->v);
	mem_free(r->secrets);
	mem_free(r->warnings);
	memset(r, 0, sizeof *r);
}
