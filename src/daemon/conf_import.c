/* SPDX-License-Identifier: MIT */
/*
 * The other files of a conf: the folder with one upstream each, and files of MCP clients.
 *
 * Owns: nothing; the result is the snapshot's.
 * Driven by: conf.c, once the main file is read.
 * Invariants: main file, folder in byte order, imported files in their order.
 */
#include "conf_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/import.h"
#include "mcpvisor/mem.h"

/* Another file is read from here on; import_leave goes back. */
struct import_place {
	const char *file, *dir;
	unsigned file_no;
};

static struct import_place
import_enter(struct conf_ctx *x, const char *file, const char *dir)
{
	struct import_place old = {x->file, x->env.dir, x->file_no};

	x->file = file;
	x->env.dir = dir;
	x->file_no = ++x->n_files;
	return old;
}

static void
import_leave(struct conf_ctx *x, struct import_place old)
{
	x->file = old.file;
	x->env.dir = old.dir;
	x->file_no = old.file_no;
}

static void
folder_read_file(struct conf_ctx *x, const char *dir, const char *name)
{
	char *file = conf_file_join(dir, name);
	char *key = mem_xstrndup(name, strlen(name) - strlen(".conf"));
	struct import_place old = import_enter(x, file, dir);
	config_t cfg;
	char *text;
	size_t n;
	const char *wrong = expand_read_file(file, S_IFCHR, CAP_CONF_BYTES, &text, &n);

	if (wrong) {
		conf_file_error(x, 0, "%s", wrong);
	} else {
		if (conf_file_parse(x, &cfg, text, n))
			conf_read_upstream(x, key, config_root_setting(&cfg));
		config_destroy(&cfg);
		mem_free_secret(text, n);
	}
	import_leave(x, old);
	mem_free(key);
	mem_free(file);
}

static bool
folder_is_conf(const char *name)
{
	size_t n = strlen(name);

	return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".conf") == 0;
}

static int
folder_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the files, sorted, NULL-terminated; NULL with errno. */
static char **
folder_names(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	size_t n = 0;
	char **v;

	if (!d)
		return NULL;
	v = mem_xcalloc(1, sizeof(*v));
	/* cppcheck-suppress readdirCalled */
	while ((entry = readdir(d))) {
		if (!folder_is_conf(entry->d_name))
			continue;
		v = mem_xrealloc(v, (n + 2) * sizeof(*v));
		v[n++] = mem_xstrdup(entry->d_name);
		v[n] = NULL;
	}
	closedir(d);
	qsort(v, n, sizeof(*v), folder_order);
	return v;
}

void
conf_read_folder(struct conf_ctx *x)
{
	const config_setting_t *s =
	    x->root ? config_setting_get_member(x->root, "upstream_dir") : NULL;
	/* One that is named was joined when it was read. */
	char *dir = conf_file_join(s ? "." : x->main_dir, x->c->upstream_dir);
	char **names = folder_names(dir);

	if (!names && (s || errno != ENOENT))
		conf_file_error(x, s ? (int)config_setting_source_line(s) : 0,
		    "upstream_dir: %s", strerror(errno));
	for (char **p = names; p && *p; p++)
		folder_read_file(x, dir, *p);
	conf_strings_free(names);
	mem_free(dir);
}

static void
import_warn_all(struct conf *c, struct import_result *r)
{
	if (r->n_warnings == 0)
		return;
	c->warnings = mem_xrealloc(
	    c->warnings, (c->n_warnings + r->n_warnings) * sizeof(*c->warnings));
	for (size_t i = 0; i < r->n_warnings; i++)
		c->warnings[c->n_warnings++] = r->warnings[i];
	mem_free(r->warnings);
	r->warnings = NULL;
	r->n_warnings = 0;
}

/* All arguments and URLs, as files of clients have secrets in them as they are. */
static void
import_mark(struct conf *c, const struct upstream_conf *u)
{
	for (char **p = u->argv; p && *p; p++) {
		if (p != u->argv)
			conf_mark(c, *p);
	}
	if (u->url)
		conf_mark(c, u->url);
}

/* Once those that have them are the snapshot's. */
static void
import_mark_secrets(struct conf *c, const struct import_result *r)
{
	for (size_t i = 0; i < r->n_secrets; i++)
		conf_mark(c, r->secrets[i]);
}

/* What an imported server does not say itself is as "defaults" has it. */
static void
import_finish(struct conf_ctx *x, struct upstream_conf *u, struct conf_extra *extra)
{
	char **own = NULL;

	if (!x->defaults || u->broken != MV_OK)
		return;
	for (char **p = u->own_env; p && *p; p++)
		conf_env_set(&own, *p, false);
	conf_at_upstream(x, u, extra);
	x->keep_set = true;
	x->kind = CONF_K(u->kind);
	conf_apply_defaults(x);
	x->keep_set = false;
	x->kind = 0;
	if (u->kind != KIND_STDIO) {
		conf_strings_free(own);
		return;
	}
	conf_finish_env(x, NULL);
	for (char **p = own; p && *p; p++)
		conf_env_set(&u->own_env, *p, false);
	conf_strings_free(own);
	conf_make_env(u);
}

static struct conf_extra *
import_extra(const char *file)
{
	struct conf_extra *extra = mem_xcalloc(1, sizeof(*extra));

	extra->file = file ? mem_xstrdup(file) : NULL;
	extra->imported = true;
	return extra;
}

static void
import_take(struct conf_ctx *x, struct import_result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct upstream_conf *u = r->v[i];
		struct conf_extra *extra = import_extra(x->file);
		size_t old = conf_push(x, "upstream");

		r->v[i] = NULL;
		conf_push(x, conf_label(u->name));
		import_finish(x, u, extra);
		if (conf_add_upstream(x, u, extra))
			import_mark(x->c, u);
		conf_pop(x, old);
	}
	r->n = 0;
	import_mark_secrets(x->c, r);
	import_warn_all(x->c, r);
}

/* One that cannot be read is a mistake of the line that names it; 0: of none. */
static void
import_read_file(struct conf_ctx *x, const char *file, int line)
{
	char *dir = conf_file_dir(file);
	struct import_result r = {.n = 0};
	struct mv_errtext et = {.line = 0};
	struct import_place old;
	char *text;
	size_t n;
	const char *wrong = expand_read_file(file, S_IFCHR, CAP_IMPORT_BYTES, &text, &n);

	if (wrong && line > 0)
		conf_file_error(x, line, "mcp_servers: %.300s: %s", file, wrong);
	old = import_enter(x, file, dir);
	if (wrong && line == 0)
		conf_file_error(x, 0, "%s", wrong);
	else if (text && import_parse(file, text, n, &x->env, &r, &et) != MV_OK)
		conf_file_error(x, et.line, "%s", et.message);
	else if (text)
		import_take(x, &r);
	import_free(&r);
	if (text)
		mem_free_secret(text, n);
	import_leave(x, old);
	mem_free(dir);
}

void
conf_read_imports(struct conf_ctx *x)
{
	config_setting_t *s =
	    x->root ? config_setting_get_member(x->root, "mcp_servers") : NULL;
	int line = s ? (int)config_setting_source_line(s) : 0;

	for (char **p = x->c->mcp_servers; p && *p; p++)
		import_read_file(x, *p, line);
	if (x->mcp_json)
		import_read_file(x, x->mcp_json, 0);
}

enum mv_err
conf_add_import(struct conf *c, struct import_result *r, struct mv_errtext *et)
{
	if (c->n_upstreams + r->n > CAP_UPSTREAMS) {
		mv_errtext_set(et, "there are more than %d upstreams", CAP_UPSTREAMS);
		return MV_CONF;
	}
	for (size_t i = 0; i < r->n; i++) {
		for (size_t k = 0; k < c->n_upstreams; k++) {
			if (strcmp(r->v[i]->name, c->upstreams[k]->name) != 0)
				continue;
			mv_errtext_set(et,
			    "upstream.%s: the name is taken by that of %.300s",
			    conf_label(r->v[i]->name),
			    c->more->extras[k]->file ? c->more->extras[k]->file
						     : "another file");
			return MV_CONF;
		}
	}
	for (size_t i = 0; i < r->n; i++) {
		conf_append_upstream(c, r->v[i], import_extra(NULL));
		import_mark(c, r->v[i]);
	}
	r->n = 0;
	import_mark_secrets(c, r);
	conf_sort_marks(c);
	import_warn_all(c, r);
	import_free(r);
	return MV_OK;
}
