/* SPDX-License-Identifier: MIT */
/*
 * Arguments of tools: a group as JSON text, or JSON text as it is.
 *
 * Owns: nothing; texts are the snapshot's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: a text is one JSON object without a raw line break, since it becomes part
 * of a message that is one line. Depth is bounded by conf_text.c.
 */
#include "conf_value_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

/* The shortest form that reads back as the same number, and as one with a fraction. */
static bool
json_write_float(struct conf_ctx *x, const config_setting_t *s, struct buf *out)
{
	double v = config_setting_get_float(s);
	char text[40];

	if (!isfinite(v)) {
		conf_error(
		    x, (int)config_setting_source_line(s), "the number is too large");
		return false;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_add_str(out, text);
	if (!strpbrk(text, ".e"))
		buf_add_str(out, ".0");
	return true;
}

/* Strings of a group are expanded as all others are. */
static bool
json_write_string(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s,
    struct buf *out, bool *secret)
{
	const char *text = config_setting_get_string(s);
	struct mv_errtext et = {.line = 0};
	bool expanded = false;
	char *v = r->flags & CONF_F_E ? expand_text(text, &x->env, &expanded, &et)
				      : mem_xstrdup(text);

	if (!v && x->lenient)
		v = mem_xstrdup(text);
	if (!v) {
		conf_error(x, (int)config_setting_source_line(s), "%s", et.message);
		return false;
	}
	json_put_string(out, v, strlen(v));
	mem_free_secret(v, strlen(v));
	*secret = *secret || expanded;
	return true;
}

static bool
json_write_members(struct conf_ctx *x, const struct conf_row *r,
    const config_setting_t *s, struct buf *out, bool *secret)
{
	bool is_group = config_setting_is_group(s), good = true;
	int n = config_setting_length(s);

	buf_add_char(out, is_group ? '{' : '[');
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		const char *name = config_setting_name(e);
		size_t old = is_group ? conf_push(x, name) : conf_push_index(x, i);

		if (i > 0)
			buf_add_char(out, ',');
		if (is_group) {
			json_put_string(out, name, strlen(name));
			buf_add_char(out, ':');
		}
		good = conf_json_write(x, r, e, out, secret) && good;
		conf_pop(x, old);
	}
	buf_add_char(out, is_group ? '}' : ']');
	return good;
}

bool
conf_json_write(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s,
    struct buf *out, bool *secret)
{
	char text[32];

	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		snprintf(text, sizeof(text), "%lld",
		    config_setting_type(s) == CONFIG_TYPE_INT
			? (long long)config_setting_get_int(s)
			: config_setting_get_int64(s));
		buf_add_str(out, text);
		return true;
	case CONFIG_TYPE_FLOAT:
		return json_write_float(x, s, out);
	case CONFIG_TYPE_STRING:
		return json_write_string(x, r, s, out, secret);
	case CONFIG_TYPE_BOOL:
		buf_add_str(out, config_setting_get_bool(s) ? "true" : "false");
		return true;
	default:
		return json_write_members(x, r, s, out, secret);
	}
}

/* A copy of the text, line breaks between its tokens made spaces. NULL: reported. */
static char *
json_take_text(struct conf_ctx *x, const config_setting_t *s)
{
	const char *text = config_setting_get_string(s);
	struct json_msg *msg = mem_xcalloc(1, sizeof(*msg));
	enum mv_err err = json_scan(msg, text, strlen(text), false);
	char *v = NULL;

	if (err != MV_OK)
		conf_error(x, (int)config_setting_source_line(s), "is no JSON object: %s",
		    mv_err_text(err));
	else if (msg->kind != JSON_K_OBJECT)
		conf_error(x, (int)config_setting_source_line(s), "is no JSON object");
	else
		v = mem_xstrdup(text + strspn(text, " \t\r\n"));
	for (char *p = v; p && *p; p++) {
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	}
	if (v)
		strrchr(v, '}')[1] = '\0';
	mem_free(msg);
	return v;
}

void
conf_parse_json(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct buf out;
	bool secret = false;
	char *v = NULL;

	buf_init(&out, 4 * (size_t)CAP_CONF_BYTES);
	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		v = json_take_text(x, s);
	} else if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
	} else if (json_write_members(x, r, s, &out, &secret)) {
		v = buf_take(&out, NULL);
		if (!v)
			conf_error(x, (int)config_setting_source_line(s), "%s",
			    mv_err_text(out.err));
	}
	if (v && secret)
		conf_mark(x->c, v);
	if (v)
		conf_set_string(member, v);
	buf_fini(&out);
}

bool
conf_put_json(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const char *s = *(char *const *)member;

	(void)r;
	if (!s)
		return false;
	buf_add_str(p->real, s);
	buf_add_str(p->shown, conf_is_marked(p->c, s) ? "(secret)" : s);
	return true;
}
