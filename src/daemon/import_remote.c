/* SPDX-License-Identifier: MIT */
/*
 * What entries of remote servers have: a type, a URL under one of three names, headers.
 *
 * Owns: nothing; the conf is the caller's.
 * Driven by: import_entry.c.
 * Invariants: no message shows a value of the file.
 */
#include "import_priv.h"

#include "remote_conf.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

/* Clients say "http" of whatever is no stream alone: what it is is found out. */
static const struct import_type {
	const char *word;
	bool is_remote, is_unknown;
	enum transport_pin transport;
} import_types[] = {
    {"stdio", false, false, TRANSPORT_AUTO},
    {"http", true, false, TRANSPORT_AUTO},
    {"streamable-http", true, false, TRANSPORT_AUTO},
    {"streamableHttp", true, false, TRANSPORT_AUTO},
    {"streamable_http", true, false, TRANSPORT_AUTO},
    {"sse", true, false, TRANSPORT_SSE},
    {"ws", true, true, TRANSPORT_AUTO},
    {"websocket", true, true, TRANSPORT_AUTO},
};

/* NULL: it is not said, or c is broken. */
static const struct import_type *
remote_type(const struct import_entry *e, struct upstream_conf *c)
{
	json_t *type = import_entry_get(e, "type");

	if (!type)
		type = import_entry_get(e, "transport");
	if (type && !json_is_string(type)) {
		(void)import_break(c, MV_CONF, "type is not a string");
		return NULL;
	}
	for (size_t i = 0; type && i < sizeof import_types / sizeof *import_types; i++) {
		if (strcmp(import_types[i].word, json_string_value(type)) == 0)
			return &import_types[i];
	}
	if (type)
		(void)import_break(c, MV_CONF, "type is none of stdio, http, sse");
	return NULL;
}

/* A file that has several of them means the newer transport first. */
static const char *
remote_url_member(const struct import_entry *e)
{
	static const char *const members[] = {"httpUrl", "serverUrl", "url"};

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		if (import_entry_get(e, members[i]))
			return members[i];
	}
	return NULL;
}

bool
import_entry_is_remote(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	const struct import_type *t = remote_type(e, c);
	const char *url = remote_url_member(e);

	if (c->broken != MV_OK)
		return false;
	if (t && t->is_unknown)
		return import_break(c, MV_UNSUPPORTED,
		    "servers over WebSocket are not supported: it is no transport of "
		    "MCP");
	if (t && t->is_remote && !url)
		return import_break(c, MV_CONF, "url is missing");
	if (t && !t->is_remote && url)
		import_warn(x, e, "%s is ignored, as the type is stdio", url);
	if (!t && url && import_entry_get(e, "command"))
		return import_break(c, MV_CONF,
		    "there are both a command and a url, and no type says which is "
		    "meant");
	if (t)
		c->transport = t->transport;
	return t ? t->is_remote : url != NULL;
}

static void
remote_warn_ignored(struct import_ctx *x, const struct import_entry *e)
{
	static const char *const members[] = {"command", "args", "env", "cwd", "envFile"};

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const json_t *v = import_entry_get(e, members[i]);

		/* Some clients write all members, with nothing in them. */
		if (json_is_string(v) ? json_string_length(v) > 0
				      : json_array_size(v) + json_object_size(v) > 0)
			import_warn(
			    x, e, "%s is ignored: the server is remote", members[i]);
	}
}

static bool
remote_read_url(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	const char *member = remote_url_member(e), *wrong;
	const json_t *url = import_entry_get(e, member);

	if (!json_is_string(url))
		return import_break(c, MV_CONF, "%s is not a string", member);
	c->url = import_entry_expand(x, c, member, json_string_value(url), NULL);
	wrong = c->url ? remote_check_url(c->url) : NULL;
	if (wrong)
		return import_break(c, MV_CONF, "%s %s", member, wrong);
	return c->url != NULL;
}

static bool
remote_read_header(
    struct import_ctx *x, struct upstream_conf *c, const char *name, const json_t *v)
{
	const char *wrong = remote_check_header_name(name);
	struct mv_errtext et = {.line = 0};

	if (!wrong && !json_is_string(v))
		wrong = "is not a string";
	if (!wrong && remote_has_header(c, name))
		wrong = "is there twice";
	if (!wrong && !remote_add_header(c, name, json_string_value(v), &x->env, &et))
		wrong = et.message;
	return !wrong || import_break(c, MV_CONF, "headers.%.80s: %s",
			     LOG_ESC(name, strlen(name)), wrong);
}

bool
import_entry_read_remote(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	json_t *headers = import_entry_get(e, "headers"), *v;
	const char *name;

	c->kind = KIND_HTTP;
	remote_warn_ignored(x, e);
	if (!remote_read_url(x, e, c))
		return false;
	if (headers && !json_is_object(headers))
		return import_break(c, MV_CONF, "headers is not an object of strings");
	json_object_foreach(headers, name, v)
	{
		if (!remote_read_header(x, c, name, v))
			return false;
	}
	return true;
}
