/* SPDX-License-Identifier: MIT */
/*
 * One request of the control socket: read, looked up in the table, answered.
 *
 * Owns: nothing beyond a request. Driven by: a connection.
 * Invariants: a request with anything in it that the table does not know is refused
 * whole; exactly one object is appended for each request.
 */
#include "mcpvisor/control.h"

#include "control_priv.h"
#include "control_table.h"
#include "nearest_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

typedef void control_fn(struct control_asker *a, json_t *request, struct buf *out);

#define X(id, name, owner) static control_fn control_do_##id;
CONTROL_COMMANDS(X)
#undef X

static const struct {
	const char *name;
	control_fn *fn;
	bool needs_owner;
} commands[] = {
#define X(id, name, owner) {name, control_do_##id, owner},
    CONTROL_COMMANDS(X)
#undef X
};

static const struct {
	const char *name;
	control_fn *of; /* the command it belongs to */
	enum { MEMBER_STRING, MEMBER_BOOLEAN } type;
	bool required;
} members[] = {
#define X(id, name, type, required) {name, control_do_##id, MEMBER_##type, required},
    CONTROL_MEMBERS(X)
#undef X
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define N_MEMBERS  (sizeof(members) / sizeof(members[0]))

bool
control_is_owner(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

void
control_put_error(struct buf *out, const char *reason, const char *text)
{
	buf_add_str(out, "{\"ok\":false,\"error\":");
	json_put_string(out, text, strlen(text));
	buf_add_str(out, ",\"reason\":");
	json_put_string(out, reason, strlen(reason));
	buf_add_char(out, '}');
}

static void __attribute__((format(printf, 2, 3)))
control_refuse(struct buf *out, const char *fmt, ...)
{
	va_list ap;
	char s[512];

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	control_put_error(out, "request", s);
}

/* ---- the commands ---- */

static void
control_put_result(struct buf *out, enum mv_err err, const char *text)
{
	if (err == MV_OK)
		buf_add_str(out, "{\"ok\":true}");
	else
		control_put_error(out, mv_err_reason(err), text);
}

static void
control_do_status(struct control_asker *a, json_t *request, struct buf *out)
{
	struct buf status;

	(void)request;
	buf_init(&status, CAP_CONTROL_BYTES);
	a->ops->put_status(a->arg, &status);
	if (status.err != MV_OK || status.len < 2) {
		control_put_error(out,
		    mv_err_reason(status.err != MV_OK ? status.err : MV_SYSTEM),
		    "the status does not fit");
	} else {
		/* Ours goes behind the brace. */
		buf_add_str(out, "{\"ok\":true");
		if (status.data[1] != '}')
			buf_add_char(out, ',');
		buf_add(out, status.data + 1, status.len - 1);
	}
	buf_fini(&status);
}

static void
control_do_version(struct control_asker *a, json_t *request, struct buf *out)
{
	(void)a;
	(void)request;
	buf_addf(out, "{\"ok\":true,\"version\":\"" MCPVISOR_VERSION "\",\"pid\":%ld}",
	    (long)getpid());
}

static void
control_do_restart(struct control_asker *a, json_t *request, struct buf *out)
{
	const char *name = json_string_value(json_object_get(request, "upstream"));
	enum mv_err err = a->ops->restart(a->arg, name);

	LOG_NOTICE("control", "restart", "upstream=%s uid=%u result=%s",
	    LOG_ESC(name, strlen(name)), (unsigned)a->uid, mv_err_reason(err));
	control_put_result(out, err,
	    err == MV_NOT_FOUND ? "no upstream has this name" : mv_err_text(err));
}

static void
control_do_reload(struct control_asker *a, json_t *request, struct buf *out)
{
	bool dry_run = json_is_true(json_object_get(request, "dry_run"));
	struct buf text;
	enum mv_err err;

	buf_init(&text, CAP_CONTROL_BYTES / 8); /* escapes make it longer */
	err = a->ops->reload(a->arg, dry_run, &text);
	LOG_NOTICE("control", "reload", "dry_run=%s uid=%u result=%s",
	    dry_run ? "true" : "false", (unsigned)a->uid, mv_err_reason(err));
	if (err != MV_OK && err != MV_CONF) {
		control_put_error(out, mv_err_reason(err),
		    err == MV_UNSUPPORTED ? "there is no conf file to read"
					  : mv_err_text(err));
	} else {
		buf_add_str(out, err == MV_OK
				     ? "{\"ok\":true,\"text\":"
				     : "{\"ok\":false,\"error\":\"the conf has errors\","
				       "\"reason\":\"conf\",\"text\":");
		json_put_string(out, text.len > 0 ? text.data : "", text.len);
		buf_add_char(out, '}');
	}
	buf_fini(&text);
}

static void
control_do_mcp(struct control_asker *a, json_t *request, struct buf *out)
{
	enum mv_err err =
	    a->take(a->conn, json_string_value(json_object_get(request, "profile")));

	a->taken = err == MV_OK;
	control_put_result(out, err,
	    err == MV_NOT_FOUND ? "no profile has this name" : mv_err_text(err));
}

/* ---- what was asked ---- */

static bool
control_check_member(size_t i, json_t *value, const char *command, struct buf *out)
{
	static const char *const types[] = {"a string", "true or false"};
	bool fits = members[i].type == MEMBER_STRING ? json_is_string(value)
						     : json_is_boolean(value);

	if (value == NULL && members[i].required)
		control_refuse(out, "%s needs a member \"%s\"", command, members[i].name);
	else if (value != NULL && !fits)
		control_refuse(out, "\"%s\" of %s has to be %s", members[i].name, command,
		    types[members[i].type]);
	else
		return true;
	return false;
}

/* False, with the answer, unless the members are those that the command has. */
static bool
control_check_members(json_t *request, size_t which, struct buf *out)
{
	const char *words[N_MEMBERS + 1], *key, *near, *command = commands[which].name;
	json_t *value;
	size_t n = 0;

	words[n++] = "command";
	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (members[i].of != commands[which].fn)
			continue;
		words[n++] = members[i].name;
		if (!control_check_member(
			i, json_object_get(request, members[i].name), command, out))
			return false;
	}
	json_object_foreach(request, key, value)
	{
		size_t i = 0;

		while (i < n && strcmp(words[i], key) != 0)
			i++;
		if (i < n)
			continue;
		near = nearest_word(key, words, n);
		control_refuse(out, "%s has no member \"%.64s\"%s%s%s", command, key,
		    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		return false;
	}
	return true;
}

static void
control_unknown(const char *name, struct buf *out)
{
	const char *words[N_COMMANDS], *near;

	for (size_t i = 0; i < N_COMMANDS; i++)
		words[i] = commands[i].name;
	near = nearest_word(name, words, N_COMMANDS);
	control_refuse(out, "there is no command \"%.64s\"%s%s%s", name,
	    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static void
control_dispatch(struct control_asker *a, json_t *request, struct buf *out)
{
	const char *name = json_string_value(json_object_get(request, "command"));
	size_t i = 0;

	if (!json_is_object(request) || name == NULL) {
		control_refuse(out, "want an object with a member \"command\"");
		return;
	}
	while (i < N_COMMANDS && strcmp(commands[i].name, name) != 0)
		i++;
	if (i == N_COMMANDS) {
		control_unknown(name, out);
	} else if (commands[i].needs_owner && !control_is_owner(a->uid)) {
		LOG_LIMITED(LOG_LV_WARNING, "control", "not permitted",
		    "command=%s uid=%u", name, (unsigned)a->uid);
		control_put_error(out, "not_permitted", "not permitted");
	} else if (control_check_members(request, i, out)) {
		commands[i].fn(a, request, out);
	}
}

void
control_run(struct control_asker *a, const char *line, size_t n, struct buf *out)
{
	json_error_t je;
	json_t *request =
	    json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
	size_t before = out->len;

	if (request == NULL)
		control_refuse(out, "not JSON, or a member twice");
	else
		control_dispatch(a, request, out);
	json_decref(request);
	if (out->err != MV_OK) {
		enum mv_err err = out->err;

		out->len = before;
		out->err = MV_OK;
		control_put_error(out, mv_err_reason(err), "the answer does not fit");
	}
}
