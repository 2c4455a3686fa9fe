/* SPDX-License-Identifier: MIT */
/*
 * Which conf a command goes by, and what the gateway reads of it.
 *
 *   --conf and --mcp-json, both if both are given; else the conf that is found; else the
 *   demo.
 *
 * Owns: each fleet, until its command or the gateway has done with it.
 */
#include "app_priv.h"
#include "overlay.h"

#include "mcpvisor/demo.h"
#include "mcpvisor/expand.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One that is there and leads nowhere is not passed over: what it was to say would be
 * missing without a word. A folder that may not be looked into may be somebody else's
 * home. */
static bool
conf_is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
}

bool
app_find_conf(struct app *a)
{
	const char *home = getenv("XDG_CONFIG_HOME"), *sub = "";

	if (a->conf_file != NULL)
		return true;
	if (home == NULL || home[0] != '/') {
		home = getenv("HOME");
		sub = "/.config";
	}
	if (home != NULL && home[0] == '/') {
		(void)snprintf(
		    a->found, sizeof(a->found), "%s%s/mcpvisor/mcpvisor.conf", home, sub);
		if (conf_is_there(a->found))
			a->conf_file = a->found;
	}
	if (a->conf_file == NULL && conf_is_there("/etc/mcpvisor/mcpvisor.conf"))
		a->conf_file = "/etc/mcpvisor/mcpvisor.conf";
	return a->conf_file != NULL;
}

static void
errors_add(struct conf_errors *e, const struct mv_errtext *et)
{
	char text[sizeof(et->file) + sizeof(et->message) + 32];

	if (et->line > 0)
		(void)snprintf(
		    text, sizeof(text), "%s:%d: %s", et->file, et->line, et->message);
	else
		(void)snprintf(text, sizeof(text), "%s: %s", et->file, et->message);
	e->v = mem_xrealloc(e->v, (e->n + 1) * sizeof(*e->v));
	e->v[e->n++] = mem_xstrdup(text);
}

static bool
fleet_import(const struct app *a, struct conf *c, struct conf_errors *e)
{
	struct mv_errtext et = {.line = 0};
	struct import_result r = {.n = 0};
	char self[PATH_MAX];
	ssize_t n;
	bool ok;

	if (a->mcp_json != NULL) {
		if (import_file(a->mcp_json, &r, &et) != MV_OK) {
			errors_add(e, &et);
			return false;
		}
	} else {
		n = readlink("/proc/self/exe", self, sizeof(self) - 1);
		self[n > 0 ? n : 0] = '\0';
		demo_import(n > 0 ? self : "mcpvisor", &r);
	}
	ok = conf_add_import(c, &r, &et) == MV_OK;
	if (!ok) {
		if (et.file[0] == '\0')
			(void)snprintf(et.file, sizeof(et.file), "%s",
			    a->mcp_json ? a->mcp_json : "demo");
		errors_add(e, &et);
	}
	import_free(&r);
	return ok;
}

struct fleet *
fleet_load(const struct app *a, struct conf_errors *e)
{
	struct conf *c;
	struct fleet *f;
	size_t k = 0;

	memset(e, 0, sizeof(*e));
	c = a->conf_file != NULL ? conf_load_with(a->conf_file, a->mcp_json, NULL, e)
				 : conf_new_default();
	if (c == NULL)
		return NULL;
	if (a->conf_file == NULL && !fleet_import(a, c, e)) {
		conf_free(c);
		return NULL;
	}
	overlay_apply(c);
	f = mem_xcalloc(1, sizeof(*f));
	f->conf = c;
	f->enabled = mem_xcalloc(c->n_upstreams + 1, sizeof(*f->enabled));
	for (size_t i = 0; i < c->n_upstreams; i++)
		if (c->upstreams[i]->enabled)
			f->enabled[f->n++] = c->upstreams[i];
	/* The first view is what endpoints show that name no profile. */
	f->profiles = mem_xcalloc(c->n_profiles + 1, sizeof(*f->profiles));
	if (c->n_profiles > 0 && strcmp(c->profiles[0]->name, "default") != 0)
		k = 1;
	for (size_t i = 0; i < c->n_profiles; i++)
		f->profiles[k + i] = c->profiles[i];
	f->n_profiles = c->n_profiles > 0 ? k + c->n_profiles : 0;
	return f;
}

struct fleet *
fleet_load_or_say(const struct app *a)
{
	struct conf_errors e;
	struct fleet *f = fleet_load(a, &e);

	for (size_t i = 0; i < e.n; i++)
		fprintf(stderr, "%s\n", e.v[i]);
	if (e.n_more > 0)
		fprintf(stderr, "and %zu more errors\n", e.n_more);
	conf_errors_free(&e);
	return f;
}

void
fleet_free(struct fleet *f)
{
	if (f == NULL)
		return;
	conf_free(f->conf);
	mem_free(f->enabled);
	mem_free(f->profiles);
	mem_free(f);
}

void
fleet_put_opts(const struct fleet *f, struct gateway_opts *o)
{
	o->confs = (struct upstream_conf *const *)(uintptr_t)f->enabled;
	o->n = f->n;
	o->profiles = f->profiles;
	o->n_profiles = f->n_profiles;
	o->name_bytes = f->conf->limits.name_bytes;
	o->list_wait_ms = f->conf->list_wait_ms;
}

void
fleet_settle(const struct app *a, const struct fleet *f)
{
	const struct conf *c = f->conf;
	bool has_level = a->has_level || a->command->is_table;

	log_set_level(has_level ? a->level : c->log.level);
	log_set_format(c->log.format);
	log_set_limit(c->log.burst, c->log.period_ms);
	log_clear_module_levels();
	for (size_t i = 0; i < c->log.n_modules && !has_level; i++)
		(void)log_set_module_level(
		    c->log.modules[i].module, c->log.modules[i].level);
	mem_set_budget((size_t)c->limits.memory_max);
}

void
fleet_warn(const struct fleet *f)
{
	for (size_t i = 0; i < f->conf->n_warnings; i++) {
		const char *w = f->conf->warnings[i];

		LOG_WARNING("conf", "noticed", "text=%s", LOG_ESC(w, strlen(w)));
	}
}
