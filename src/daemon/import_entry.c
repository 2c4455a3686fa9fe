/* SPDX-License-Identifier: MIT */
/*
 * One entry of an imported file: which members there are, what they may hold, and the
 * conf that comes of it.
 *
 * Owns: nothing; the conf is the caller's.
 * Driven by: import.c.
 * Invariants: a conf that is not broken has argv and env, or a URL; a broken one says
 * why, naming the member and never a value.
 */
#include "import_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
	X("enabledTools", READ, "")                                                      \
	X("disabledTools", READ, "")                                                     \
	X("includeTools", READ, "")                                                      \
	X("excludeTools", READ, "")                                                      \
	X("oauth", WARN, "is ignored: nobody is logged in; see \"headers\"")             \
	X("headersHelper", WARN, "is ignored: no command is run for headers")            \
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

json_t *
import_entry_get(const struct import_entry *e, const char *member)
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

char *
import_entry_expand(struct import_ctx *x, struct upstream_conf *c, const char *field,
    const char *text, bool *secret)
{
	struct mv_errtext et = {.line = 0};
	char *s = expand_text(text, &x->env, secret, &et);

	if (!s)
		import_break(c, MV_CONF, "%.64s: %s", field, et.message);
	return s;
}

char *
import_entry_path(const struct import_ctx *x, const char *name)
{
	const char *dir = *name == '/' || !x->env.dir ? "" : x->env.dir;
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path = mem_xalloc(n);

	snprintf(path, n, "%s%s%s", dir, *dir ? "/" : "", name);
	return path;
}

/* Expands what is shown unless it came from somewhere else. */
static char *
entry_expand_shown(
    struct import_ctx *x, struct upstream_conf *c, const char *field, const char *text)
{
	bool secret = false;
	char *s = import_entry_expand(x, c, field, text, &secret);

	if (s && secret)
		import_add_secret(x, s);
	return s;
}

static bool
entry_read_argv(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *command = import_entry_get(e, "command");
	json_t *args = import_entry_get(e, "args");
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
	c->argv[0] = entry_expand_shown(x, c, "command", json_string_value(command));
	if (!c->argv[0])
		return false;
	if (!*c->argv[0])
		return import_break(c, MV_CONF, "command is empty");
	json_array_foreach(args, i, arg)
	{
		snprintf(field, sizeof field, "args[%zu]", i);
		if (!json_is_string(arg))
			return import_break(c, MV_CONF, "%s is not a string", field);
		c->argv[i + 1] =
		    import_entry_expand(x, c, field, json_string_value(arg), NULL);
		if (!c->argv[i + 1])
			return false;
	}
	return true;
}

static bool
entry_read_cwd(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *cwd = import_entry_get(e, "cwd");

	if (!cwd)
		return true;
	if (!json_is_string(cwd))
		return import_break(c, MV_CONF, "cwd is not a string");
	c->cwd = entry_expand_shown(x, c, "cwd", json_string_value(cwd));
	if (c->cwd && !*c->cwd)
		return import_break(c, MV_CONF, "cwd is empty");
	return c->cwd != NULL;
}

/* True when the entry is switched off. */
static bool
entry_is_off(const struct import_entry *e, struct upstream_conf *c)
{
	json_t *disabled = import_entry_get(e, "disabled");
	json_t *enabled = import_entry_get(e, "enabled");

	if (disabled && !json_is_boolean(disabled))
		import_break(c, MV_CONF, "disabled is neither true nor false");
	if (enabled && !json_is_boolean(enabled))
		import_break(c, MV_CONF, "enabled is neither true nor false");
	return json_is_true(disabled) || json_is_false(enabled);
}

static bool
entry_read_command(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	if (json_object_size(import_entry_get(e, "headers")) > 0)
		import_warn(x, e, "headers is ignored: the server is a command");
	return entry_read_argv(x, e, c) && import_entry_read_env(x, e, c) &&
	       entry_read_cwd(x, e, c);
}

struct upstream_conf *
import_entry_read(struct import_ctx *x, const struct import_entry *e)
{
	struct upstream_conf *c = upstream_conf_new(e->name);
	bool is_remote;

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
	import_entry_read_tools(x, e, c);
	if (c->broken != MV_OK)
		return c;
	is_remote = import_entry_is_remote(x, e, c);
	if (c->broken == MV_OK &&
	    (is_remote ? import_entry_read_remote(x, e, c) : entry_read_command(x, e, c)))
		(void)import_options_read(x, c, import_entry_get(e, "mcpvisor"));
	return c;
}
