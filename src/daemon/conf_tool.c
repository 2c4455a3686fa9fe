/* SPDX-License-Identifier: MIT */
/*
 * Tools that are programs: types of their options, and what takes several options to see.
 *
 * Owns: nothing; values are the shape's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: a program is one that not everybody may write to when the conf is read.
 */
#include "conf_value_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

static int
tool_line(const config_setting_t *s)
{
	return (int)config_setting_source_line(s);
}

void
conf_parse_hint(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	enum tool_hint hint;

	if (config_setting_type(s) != CONFIG_TYPE_BOOL) {
		conf_want(x, r, s);
		return;
	}
	hint = config_setting_get_bool(s) ? HINT_YES : HINT_NO;
	memcpy(member, &hint, sizeof(hint));
}

bool
conf_put_hint(struct conf_put *p, const struct conf_row *r, const void *member)
{
	enum tool_hint hint;

	(void)r;
	memcpy(&hint, member, sizeof(hint));
	if (hint == HINT_INHERIT)
		return false;
	conf_put_text(p, hint == HINT_YES ? "true" : "false");
	return true;
}

const char *
conf_check_program(const char *s)
{
	struct stat st;

	if (*s != '/')
		return "is no absolute path";
	if (stat(s, &st) != 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "is no file";
	if (access(s, X_OK) != 0)
		return "is not executable";
	return st.st_mode & S_IWOTH ? "is a program that everybody may write to" : NULL;
}

void
conf_parse_program(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char **slot = member, *v = conf_string(x, r, s);
	const char *wrong = v && !x->lenient ? conf_check_program(v) : NULL;

	if (!v)
		return;
	if (wrong)
		conf_error(x, tool_line(s), "%s", wrong);
	conf_unmark(x->c, *slot);
	conf_set_string(slot, v);
}

const char *
conf_check_mime(const char *s)
{
	const char *slash = strchr(s, '/');

	if (strncmp(s, "image/", 6) != 0 && strncmp(s, "audio/", 6) != 0)
		return "begins with neither image/ nor audio/";
	return slash[1] == '\0' || strlen(s) > 128 ||
		       s[strcspn(s, " \t\r\n\"\\,;")] != '\0'
		   ? "is no media type"
		   : NULL;
}

void
conf_parse_statuses(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct tool_shape *shape = x->at[CONF_SHAPE];
	int n = config_setting_length(s), *v;

	(void)member;
	if ((!config_setting_is_array(s) && !config_setting_is_list(s)) || n == 0) {
		conf_want(x, r, s);
		return;
	}
	v = mem_xcalloc((size_t)n, sizeof(*v));
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push_index(x, i);
		uint32_t status = 0;

		if (config_setting_is_number(e))
			conf_parse_u32(x, r, &status, e);
		else
			conf_error(x, tool_line(e), "want a whole number, not %s",
			    conf_setting_type(e));
		v[i] = (int)status;
		conf_pop(x, old);
	}
	mem_free(shape->exec.success);
	shape->exec.success = v;
	shape->exec.n_success = (size_t)n;
}

bool
conf_put_statuses(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const struct exec_tool *t =
	    (const void *)((const char *)member - offsetof(struct exec_tool, success));
	char text[16];

	(void)r;
	if (!t->success)
		return false;
	for (size_t i = 0; i < t->n_success; i++) {
		snprintf(text, sizeof(text), "%s%d", i > 0 ? ", " : "[", t->success[i]);
		conf_put_text(p, text);
	}
	conf_put_text(p, "]");
	return true;
}

/* What programs get as arguments has no control characters, other than in any JSON. */
static void
schema_make_plain(struct argspec *s)
{
	if (s->type == ARG_STRING)
		s->must_be_plain = true;
	s->is_nullable = !s->is_required; /* null is absent */
	if (s->items)
		schema_make_plain(s->items);
	for (size_t i = 0; i < s->n_members; i++)
		schema_make_plain(s->members[i]);
}

/* NULL with what is wrong in et. */
static struct argspec *
schema_read(const char *path, struct mv_errtext *et)
{
	struct json_msg *msg = mem_xcalloc(1, sizeof(*msg));
	struct argspec *s = NULL;
	char *text;
	size_t n;
	const char *wrong = expand_read_file(path, 0, CAP_CONF_BYTES, &text, &n);
	enum mv_err err = wrong ? MV_OK : json_scan(msg, text, n, false);

	if (wrong)
		mv_errtext_set(et, "%s", wrong);
	else if (err != MV_OK)
		mv_errtext_set(et, "the file is no JSON object: %s", mv_err_text(err));
	else if (msg->kind != JSON_K_OBJECT)
		mv_errtext_set(et, "the file is no JSON object");
	else
		s = argspec_read((struct jtext){text, n}, et);
	if (s && s->type != ARG_OBJECT) {
		mv_errtext_set(et, "the file is no schema of an object");
		argspec_free(s);
		s = NULL;
	}
	if (text)
		mem_free_secret(text, n);
	mem_free(msg);
	return s;
}

void
conf_parse_schema_file(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct tool_shape *shape = x->at[CONF_SHAPE];
	struct mv_errtext et = {.line = 0};
	char *path = conf_string(x, r, s);
	struct argspec *spec;

	if (!path)
		return;
	conf_set_string(member, path);
	if (x->lenient)
		return;
	spec = schema_read(path, &et);
	if (!spec) {
		conf_error(x, tool_line(s), "%s", et.message);
		return;
	}
	schema_make_plain(spec);
	argspec_free(shape->exec.params);
	shape->exec.params = spec;
}

#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static void
tool_check_name(struct conf_ctx *x, const char *name, const config_setting_t *group)
{
	const config_setting_t *s = config_setting_get_member(group, "tool");

	if (name && name[strspn(name, LETTERS_DIGITS "_.-")] != '\0')
		conf_error(x, tool_line(s),
		    "tool: may have letters, digits, _, . and - only, as it is made "
		    "here");
}

static void
tool_check_output(
    struct conf_ctx *x, const struct exec_tool *t, const config_setting_t *group)
{
	const config_setting_t *mime = config_setting_get_member(group, "mime"),
			       *output = config_setting_get_member(group, "output");

	if (t->output == EXEC_OUTPUT_BASE64 && !mime)
		conf_error(x, tool_line(output), "output: base64 wants a mime");
	else if (t->output != EXEC_OUTPUT_BASE64 && mime)
		conf_error(x, tool_line(mime), "mime: is for output = \"base64\"");
}

void
conf_finish_tool(struct conf_ctx *x, const config_setting_t *group)
{
	const config_setting_t *params = config_setting_get_member(group, "params"),
			       *file = config_setting_get_member(group, "input_schema");
	const struct tool_shape *shape = x->at[CONF_SHAPE];

	if (x->kind != CONF_K_EXEC)
		return;
	tool_check_name(x, shape->tool, group);
	tool_check_output(x, &shape->exec, group);
	if (!config_setting_get_member(group, "command"))
		conf_error(x, tool_line(group), "command is missing");
	if (params && file)
		conf_error(x, tool_line(file),
		    "input_schema: there are params as well, and one is enough");
	else if (!x->lenient || !file)
		conf_check_templates(x, &shape->exec, group);
}
