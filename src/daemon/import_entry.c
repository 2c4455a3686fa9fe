/* SPDX-License-Identifier: MIT */
/*
 * One entry of an imported file: which members there are, what they may hold, and the
 * conf that comes of it.
 *
 * Owns: nothing; the conf is the caller's.
 * Driven by: import.c.
 * Invariants: a conf that is not broken has argv and env; a broken one says why, naming
 * the member and never a value.
 */
#include "import_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

/* What becomes of a member. */
enum import_use {
	IMPORT_READ,   /* means something to us */
	IMPORT_SILENT, /* means something to its client alone */
	IMPORT_WARN,   /* its owner may believe that it works here */
};

/* X(member, use, why) */
#define IMPORT_MEMBERS(X)                                                                \
	X("command", READ, "")                                                           \
	X("args", READ, "")                                                              \
	X("env", READ, "")                                                               \
	X("cwd", READ, "")                                                               \
	X("type", READ, "")                                                              \
	X("transport", READ, "")                                                         \
	X("url", READ, "")                                                               \
	X("serverUrl", READ, "")                                                         \
	X("httpUrl", READ, "")                                                           \
	X("headers", READ, "")                                                           \
	X("disabled", READ, "")                                                          \
	X("enabled", READ, "")                                                           \
	X("envFile", READ, "")                                                           \
	X("mcpvisor", READ, "")                                                          \
	X("alwaysAllow", SILENT, "")                                                     \
	X("autoApprove", SILENT, "")                                                     \
	X("trust", SILENT, "")                                                           \
	X("name", SILENT, "")                                                            \
	X("title", SILENT, "")                                                           \
	X("description", SILENT, "")                                                     \
	X("icon", SILENT, "")                                                            \
	X("iconPath", SILENT, "")                                                        \
	X("gallery", SILENT, "")                                                         \
	X("version", SILENT, "")                                                         \
	X("dev", SILENT, "")                                                             \
	X("note", SILENT, "")                                                            \
	X("comment", SILENT, "")                                                         \
	X("//", SILENT, "")                                                              \
	X("timeout", WARN, "is ignored; see call_ms in \"mcpvisor\"")                    \
	X("tools", WARN, "is ignored: every tool is offered")                            \
	X("enabledTools", WARN, "is ignored: every tool is offered")                     \
	X("disabledTools", WARN, "is ignored: every tool is offered")                    \
	X("includeTools", WARN, "is ignored: every tool is offered")                     \
	X("excludeTools", WARN, "is ignored: every tool is offered")                     \
	X("sandboxEnabled", WARN, "is ignored: there is no sandbox")                     \
	X("sandbox", WARN, "is ignored: there is no sandbox")

static const struct import_member {
	const char *name;
	enum import_use use;
	const char *why;
} import_members[] = {
#define X(name, use, why) {name, IMPORT_##use, why},
    IMPORT_MEMBERS(X)
#undef X
};

bool
import_break(struct upstream_conf *c, enum mv_err err, const char *fmt, ...)
{
	va_list ap;

	if (c->broken != MV_OK)
		return false;
	c->broken = err;
	va_start(ap, fmt);
	vsnprintf(c->broken_text, sizeof c->broken_text, fmt, ap);
	va_end(ap);
	return false;
}

/* A member that is there: null counts as absent. */
static json_t *
entry_get(const struct import_entry *e, const char *member)
{
	json_t *v = json_object_get(e->tree, member);

	return json_is_null(v) ? NULL : v;
}

static void
entry_warn_members(struct import_ctx *x, const struct import_entry *e)
{
	const char *name;
	json_t *v;

	json_object_foreach(e->tree, name, v)
	{
		const struct import_member *m = NULL;

		for (size_t i = 0; i < sizeof import_members / sizeof *import_members;
		     i++) {
			if (strcmp(import_members[i].name, name) == 0)
				m = &import_members[i];
		}
		if (!m)
			import_warn(
			    x, e, "unknown member %.200s", LOG_ESC(name, strlen(name)));
		else if (m->use == IMPORT_WARN)
			import_warn(x, e, "%s %s", name, m->why);
	}
}

/* Expands text of the member field; NULL with c broken. */
static char *
entry_expand(
    struct import_ctx *x, struct upstream_conf *c, const char *field, const char *text)
{
	struct mv_errtext et = {.line = 0};
	char *s = import_expand(text, x->env, &et);

	if (!s)
		import_break(c, MV_CONF, "%.64s: %s", field, et.message);
	return s;
}

/* What would need more than a process on stdio. */
static bool
entry_check_kind(const struct import_entry *e, struct upstream_conf *c)
{
	static const char *const remote[] = {
	    "http", "sse", "streamable-http", "streamableHttp", "ws", "websocket"};
	json_t *type = entry_get(e, "type");

	if (!type)
		type = entry_get(e, "transport");
	if (type && !json_is_string(type))
		return import_break(c, MV_CONF, "type is not a string");
	for (size_t i = 0; type && i < sizeof remote / sizeof *remote; i++) {
		if (strcmp(json_string_value(type), remote[i]) == 0)
			return import_break(
			    c, MV_UNSUPPORTED, "remote upstreams are not supported yet");
	}
	if (entry_get(e, "url") || entry_get(e, "serverUrl") || entry_get(e, "httpUrl"))
		return import_break(
		    c, MV_UNSUPPORTED, "remote upstreams are not supported yet");
	if (type && strcmp(json_string_value(type), "stdio") != 0)
		return import_break(c, MV_CONF, "type is none of stdio, http, sse");
	if (entry_get(e, "envFile"))
		return import_break(c, MV_UNSUPPORTED,
		    "envFile is not supported yet; put its variables into env");
	return true;
}

static bool
entry_read_argv(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *command = entry_get(e, "command");
	json_t *args = entry_get(e, "args");
	char field[32];
	json_t *arg;
	size_t i;

	if (!command)
		return import_break(c, MV_CONF, "command is missing");
	if (!json_is_string(command))
		return import_break(c, MV_CONF, "command is not a string");
	if (args && !json_is_array(args))
		return import_break(c, MV_CONF, "args is not an array of strings");
	c->argv = mem_xcalloc(json_array_size(args) + 2, sizeof *c->argv);
	c->argv[0] = entry_expand(x, c, "command", json_string_value(command));
	if (!c->argv[0])
		return false;
	if (!*c->argv[0])
		return import_break(c, MV_CONF, "command is empty");
	json_array_foreach(args, i, arg)
	{
		snprintf(field, sizeof field, "args[%zu]", i);
		if (!json_is_string(arg))
			return import_break(c, MV_CONF, "%s is not a string", field);
		c->argv[i + 1] = entry_expand(x, c, field, json_string_value(arg));
		if (!c->argv[i + 1])
			return false;
	}
	return true;
}

/* The text of one value of env: "K=V", or NULL with c broken. */
static char *
entry_env_pair(struct import_ctx *x, const struct import_entry *e,
    struct upstream_conf *c, const char *key, json_t *v)
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
		value = entry_expand(x, c, field, json_string_value(v));
	else if (json_is_number(v) || json_is_boolean(v))
		value = mem_xstrndup(raw.p ? raw.p : "", raw.n);
	else
		import_break(c, MV_CONF, "%s is not a string", field);
	if (!value)
		return NULL;
	n = strlen(key) + strlen(value) + 2;
	pair = mem_xalloc(n);
	snprintf(pair, n, "%s=%s", key, value);
	mem_free(value);
	return pair;
}

static void
entry_set_path(struct upstream_conf *c)
{
	for (char **p = c->env; *p; p++) {
		if (strncmp(*p, "PATH=", 5) == 0)
			c->path = mem_xstrdup(*p + 5);
	}
}

static bool
entry_read_env(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *env = entry_get(e, "env");
	char **extra;
	size_t n = 0;
	const char *key;
	json_t *v;

	if (env && !json_is_object(env))
		return import_break(c, MV_CONF, "env is not an object of strings");
	extra = mem_xcalloc(json_object_size(env) + 1, sizeof *extra);
	json_object_foreach(env, key, v)
	{
		char *pair = entry_env_pair(x, e, c, key, v);

		if (!pair)
			break;
		extra[n++] = pair;
	}
	if (c->broken == MV_OK) {
		c->env = import_child_env(environ, extra, n);
		entry_set_path(c);
	}
	for (size_t i = 0; i < n; i++)
		mem_free(extra[i]);
	mem_free(extra);
	return c->broken == MV_OK;
}

static bool
entry_read_cwd(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *cwd = entry_get(e, "cwd");

	if (!cwd)
		return true;
	if (!json_is_string(cwd))
		return import_break(c, MV_CONF, "cwd is not a string");
	c->cwd = entry_expand(x, c, "cwd", json_string_value(cwd));
	if (c->cwd && !*c->cwd)
		return import_break(c, MV_CONF, "cwd is empty");
	return c->cwd != NULL;
}

/* True when the entry is switched off. */
static bool
entry_is_off(const struct import_entry *e, struct upstream_conf *c)
{
	json_t *disabled = entry_get(e, "disabled");
	json_t *enabled = entry_get(e, "enabled");

	if (disabled && !json_is_boolean(disabled))
		import_break(c, MV_CONF, "disabled is neither true nor false");
	if (enabled && !json_is_boolean(enabled))
		import_break(c, MV_CONF, "enabled is neither true nor false");
	return json_is_true(disabled) || json_is_false(enabled);
}

struct upstream_conf *
import_entry_read(struct import_ctx *x, const struct import_entry *e)
{
	struct upstream_conf *c = upstream_conf_new(e->name);

	if (!*e->name) {
		import_break(c, MV_CONF, "the name is empty");
		return c;
	}
	if (!json_is_object(e->tree)) {
		import_break(c, MV_CONF, "the entry is not an object");
		return c;
	}
	if (entry_is_off(e, c)) {
		import_warn(x, e, "left out, as it is disabled");
		upstream_conf_free(c);
		return NULL;
	}
	entry_warn_members(x, e);
	if (c->broken == MV_OK && entry_check_kind(e, c) && entry_read_argv(x, e, c) &&
	    entry_read_env(x, e, c) && entry_read_cwd(x, e, c))
		(void)import_options_read(c, entry_get(e, "mcpvisor"));
	return c;
}
