/* SPDX-License-Identifier: MIT */
/*
 * The environment of an imported entry: its envFile, its env, and what of ours a child
 * gets anyway.
 *
 * Owns: nothing; the conf is the caller's.
 * Driven by: import_entry.c.
 * Invariants: a later source wins: ours, the file, env. No message shows a value.
 */
#include "import_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

/* What a conf gives, "K=V". */
struct pairs {
	char **v;
	size_t n;
};

/* The text of one value of env: "K=V", or NULL with c broken. */
static char *
env_pair(struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c,
    const char *key, json_t *v)
{
	struct import_text raw =
	    import_text_member(import_text_member(e->text, "env"), key);
	char field[96];
	char *value = NULL, *pair;
	size_t n;

	snprintf(field, sizeof field, "env.%.80s", key);
	if (!*key || strchr(key, '=')) {
		import_break(c, MV_CONF, "%s: not a name of a variable", field);
		return NULL;
	}
	if (json_is_string(v))
		value = import_entry_expand(x, c, field, json_string_value(v), NULL);
	else if (json_is_number(v) || json_is_boolean(v))
		value = mem_xstrndup(raw.p ? raw.p : "", raw.n);
	else
		import_break(c, MV_CONF, "%s is not a string", field);
	if (!value)
		return NULL;
	n = strlen(key) + strlen(value) + 2;
	pair = mem_xalloc(n);
	snprintf(pair, n, "%s=%s", key, value);
	mem_free_secret(value, strlen(value));
	return pair;
}

static void
env_fail_file(struct upstream_conf *c, const char *path, const struct mv_errtext *et)
{
	char line[24] = "";

	if (et->line > 0)
		snprintf(line, sizeof line, "line %d: ", et->line);
	import_break(c, MV_CONF, "envFile %.150s: %s%.60s", LOG_ESC(path, strlen(path)),
	    line, et->message);
}

static bool
env_read_file(struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c,
    struct pairs *got)
{
	json_t *file = import_entry_get(e, "envFile");
	struct mv_errtext et = {.line = 0};
	char *name, *path;

	if (!file)
		return true;
	if (!json_is_string(file))
		return import_break(c, MV_CONF, "envFile is not a string");
	name = import_entry_expand(x, c, "envFile", json_string_value(file), NULL);
	if (!name)
		return false;
	path = import_entry_path(x, name);
	if (!*name)
		import_break(c, MV_CONF, "envFile is empty");
	else if (expand_env_file(path, &got->v, &got->n, &et) != MV_OK)
		env_fail_file(c, path, &et);
	mem_free(path);
	mem_free(name);
	return c->broken == MV_OK;
}

static bool
env_read_object(struct import_ctx *x, const struct import_entry *e,
    struct upstream_conf *c, struct pairs *got)
{
	json_t *env = import_entry_get(e, "env");
	const char *key;
	json_t *v;

	if (env && !json_is_object(env))
		return import_break(c, MV_CONF, "env is not an object of strings");
	got->v =
	    mem_xrealloc(got->v, (got->n + json_object_size(env) + 1) * sizeof *got->v);
	json_object_foreach(env, key, v)
	{
		char *pair = env_pair(x, e, c, key, v);

		if (!pair)
			return false;
		got->v[got->n++] = pair;
	}
	return true;
}

static void
env_set_path(struct upstream_conf *c)
{
	for (char **p = c->env; *p; p++) {
		if (strncmp(*p, "PATH=", 5) == 0)
			c->path = mem_xstrdup(*p + 5);
	}
}

bool
import_entry_read_env(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	struct pairs got = {NULL, 0};

	if (env_read_file(x, e, c, &got) && env_read_object(x, e, c, &got)) {
		c->env = expand_child_env(environ, got.v, got.n);
		if (got.n > 0)
			c->own_env = expand_child_env(NULL, got.v, got.n);
		env_set_path(c);
	}
	for (size_t i = 0; i < got.n; i++)
		mem_free_secret(got.v[i], strlen(got.v[i]));
	mem_free(got.v);
	return c->broken == MV_OK;
}
