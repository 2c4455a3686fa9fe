/* SPDX-License-Identifier: MIT */
/*
 * What an upstream is, by its option kind or by what it has, and what that kind needs.
 *
 * Owns: nothing.
 * Driven by: conf_upstream.c.
 * Invariants: where the kind is not known any option may stand, as its mistake is the
 * only one to report.
 */
#include "conf_value_priv.h"

#include <pwd.h>
#include <string.h>

#include "mcpvisor/mem.h"

bool
conf_is_runner(const struct upstream_conf *u)
{
	return u->kind == KIND_EXEC || u->kind == KIND_SHELL;
}

/* The kind that a setting says; false: it is reported when it is read. */
static bool
kind_of_word(const config_setting_t *s, enum upstream_kind *kind)
{
	const char *word = config_setting_get_string(s);

	for (int i = 0; word && kind_words[i]; i++) {
		if (strcmp(kind_words[i], word) != 0)
			continue;
		*kind = (enum upstream_kind)i;
		return true;
	}
	return false;
}

void
conf_read_kind(struct conf_ctx *x, const config_setting_t *group)
{
	const config_setting_t *word = config_setting_get_member(group, "kind"),
			       *command = config_setting_get_member(group, "command"),
			       *url = config_setting_get_member(group, "url");
	struct upstream_conf *u = x->at[CONF_UPSTREAM];

	x->kind = 0;
	if (command && url) {
		conf_error(x, (int)config_setting_source_line(url),
		    "there are both a command and a url: an upstream is a program or a "
		    "remote server");
		return;
	}
	u->kind = url ? KIND_HTTP : KIND_STDIO;
	if (word ? kind_of_word(word, &u->kind) : command || url)
		x->kind = CONF_K(u->kind);
}

static const struct {
	enum upstream_kind kind;
	const char *key;
} kind_needs[] = {
    {KIND_STDIO, "command"},
    {KIND_HTTP, "url"},
    {KIND_GRAPHQL, "url"},
    {KIND_EXEC, "tool"},
    {KIND_SHELL, "file"},
    {KIND_SHELL, "tools_file"},
};

/* The shell that nobody has named may be missing. */
static void
kind_check_shell(struct conf_ctx *x, const config_setting_t *group, int line)
{
	const struct upstream_conf *u = x->at[CONF_UPSTREAM];
	const char *wrong = NULL;

	if (!x->lenient && !config_setting_get_member(group, "interpreter"))
		wrong = conf_check_program(u->exec.interpreter);
	if (wrong)
		conf_error(x, line, "interpreter: %s", wrong);
}

void
conf_check_kind(struct conf_ctx *x, const config_setting_t *group)
{
	const struct upstream_conf *u = x->at[CONF_UPSTREAM];
	int line = (int)config_setting_source_line(group);

	if (!config_setting_get_member(group, "kind")) {
		if (!config_setting_get_member(group, "command") &&
		    !config_setting_get_member(group, "url"))
			conf_error(x, line,
			    "command is missing (or url, if it is a remote server)");
		return;
	}
	for (size_t i = 0; i < sizeof(kind_needs) / sizeof(*kind_needs); i++) {
		const char *key = kind_needs[i].key;

		if (x->kind == CONF_K(kind_needs[i].kind) &&
		    !config_setting_get_member(group, key))
			conf_error(x, line, "%s is missing: it is of kind %s", key,
			    kind_words[u->kind]);
	}
	if (x->kind == CONF_K_SHELL)
		kind_check_shell(x, group, line);
}

/* What follows from command and url is not said again. */
bool
conf_put_kind(struct conf_put *p, const struct conf_row *r, const void *member)
{
	enum upstream_kind kind;

	memcpy(&kind, member, sizeof(kind));
	return kind != KIND_STDIO && kind != KIND_HTTP && conf_put_enum(p, r, member);
}

const char *
conf_check_user(const char *s)
{
	struct passwd pw, *found = NULL;
	size_t n = 64 * 1024;
	char *room = mem_xalloc(n);
	bool known = getpwnam_r(s, &pw, room, n, &found) == 0 && found;

	mem_free(room);
	return known ? NULL : "is no user of this machine";
}
