/* SPDX-License-Identifier: MIT */
/*
 * Single values: numbers with units, words, strings, and their checks.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf_group.c, through the types of conf_types.c.
 * Invariants: a member changes only when its value is good.
 */
#include "conf_value_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

static int
setting_line(const config_setting_t *s)
{
	return (int)config_setting_source_line(s);
}

void
conf_parse_bool(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		conf_want(x, r, s);
	else
		*(bool *)member = config_setting_get_bool(s) != 0;
}

/* Whole units of a string such as "10m"; false: it is none. */
static bool
value_with_unit(const char *s, const struct conf_unit *units, uint64_t *v)
{
	size_t digits = strspn(s, "0123456789");
	uint64_t n = 0;

	if (digits == 0 || digits > 15)
		return false;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (uint64_t)(s[i] - '0');
	for (const struct conf_unit *u = units; u->name; u++) {
		if (strcmp(s + digits, u->name) == 0)
			return !__builtin_mul_overflow(n, u->factor, v);
	}
	return false;
}

/* The number that a setting is, in the unit of its row; false: reported. */
static bool
value_number(
    struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s, uint64_t *v)
{
	const struct conf_unit *units = conf_units(r->type);
	unsigned per = conf_type_of(r)->per_unit;
	int type = config_setting_type(s);
	int64_t n;

	if (type == CONFIG_TYPE_STRING && units) {
		if (!value_with_unit(config_setting_get_string(s), units, v) ||
		    (per && *v % per != 0)) {
			conf_error(x, setting_line(s), "want %s", conf_type_of(r)->label);
			return false;
		}
		*v /= per ? per : 1;
	} else if (type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64) {
		n = type == CONFIG_TYPE_INT ? config_setting_get_int(s)
					    : config_setting_get_int64(s);
		if (n < 0) {
			conf_error(x, setting_line(s),
			    "%" PRId64 " is not from %" PRIu64 " to %" PRIu64, n, r->lo,
			    r->hi);
			return false;
		}
		*v = (uint64_t)n;
	} else {
		conf_want(x, r, s);
		return false;
	}
	if (*v >= r->lo && *v <= r->hi)
		return true;
	conf_error(x, setting_line(s), "%" PRIu64 " is not from %" PRIu64 " to %" PRIu64,
	    *v, r->lo, r->hi);
	return false;
}

void
conf_parse_u32(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	uint64_t v;

	if (value_number(x, r, s, &v))
		*(uint32_t *)member = (uint32_t)v;
}

void
conf_parse_u64(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	uint64_t v;

	if (value_number(x, r, s, &v))
		*(uint64_t *)member = v;
}

void
conf_parse_mode(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	const char *t = config_setting_get_string(s);
	uint32_t v = 0;
	size_t n;

	if (config_setting_type(s) != CONFIG_TYPE_STRING) {
		conf_want(x, r, s);
		return;
	}
	n = strlen(t);
	if (n < 3 || n > 4 || strspn(t, "01234567") != n || (n == 4 && *t != '0')) {
		conf_error(x, setting_line(s), "want %s", conf_type_of(r)->label);
		return;
	}
	for (; *t; t++)
		v = v * 8 + (uint32_t)(*t - '0');
	*(uint32_t *)member = v;
}

/* The place of a word among names; -1: reported. */
int
conf_enum(
    struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s, int line)
{
	const char *const *names = conf_type_of(r)->names;
	const char *t = config_setting_get_string(s);
	char all[200];
	size_t n = 0;

	if (config_setting_type(s) != CONFIG_TYPE_STRING) {
		conf_want(x, r, s);
		return -1;
	}
	for (int i = 0; names[i]; i++) {
		/* No word is what stands for none. */
		if (*names[i] == '\0')
			continue;
		if (strcmp(names[i], t) == 0)
			return i;
		n += (size_t)snprintf(
		    all + n, sizeof(all) - n, "%s\"%s\"", n > 0 ? ", " : "", names[i]);
	}
	conf_error(x, line, "is none of %s", all);
	return -1;
}

void
conf_parse_enum(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	int i = conf_enum(x, r, s, setting_line(s));

	if (i >= 0)
		memcpy(member, &i, sizeof(i));
}

static bool
value_is_schema_word(enum conf_type_id type, const char *s)
{
	return type == CONF_TY_SCHEMA &&
	       (strcmp(s, "introspect") == 0 || strcmp(s, "none") == 0);
}

/* Relative names start at the folder of the file; cwd and the like do so too. */
static char *
value_path(struct conf_ctx *x, char *s)
{
	char *path;

	if (!*s || *s == '/')
		return s;
	path = conf_file_join(x->env.dir, s);
	mem_free_secret(s, strlen(s));
	return path;
}

char *
conf_string(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s)
{
	const struct conf_type *t = conf_type_of(r);
	const char *text = config_setting_get_string(s), *wrong = NULL;
	struct mv_errtext et = {.line = 0};
	bool secret = false;
	char *v;

	if (config_setting_type(s) != CONFIG_TYPE_STRING) {
		conf_error(
		    x, setting_line(s), "want a string, not %s", conf_setting_type(s));
		return NULL;
	}
	v = r->flags & CONF_F_E ? expand_text(text, &x->env, &secret, &et)
				: mem_xstrdup(text);
	if (!v && x->lenient)
		return mem_xstrdup(text);
	if (!v) {
		conf_error(x, setting_line(s), "%s", et.message);
		return NULL;
	}
	if (!*v && !(r->flags & CONF_F_N) && conf_wants_text(r->type))
		wrong = "is empty";
	else if (t->check)
		wrong = t->check(v);
	if (wrong) {
		conf_error(x, setting_line(s), "%s", wrong);
		mem_free_secret(v, strlen(v));
		return NULL;
	}
	if (conf_is_path(r->type) && !value_is_schema_word(r->type, v))
		v = value_path(x, v);
	if (secret && !(r->flags & CONF_F_S))
		conf_mark(x->c, v);
	return v;
}

void
conf_set_string(char **slot, char *value)
{
	if (*slot)
		mem_free_secret(*slot, strlen(*slot));
	*slot = value;
}

void
conf_parse_string(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char *v = conf_string(x, r, s);

	if (!v)
		return;
	conf_unmark(x->c, *(char **)member);
	conf_set_string(member, v);
}

bool
conf_put_bool(struct conf_put *p, const struct conf_row *r, const void *member)
{
	(void)r;
	conf_put_text(p, *(const bool *)member ? "true" : "false");
	return true;
}

static bool
put_number(struct conf_put *p, const struct conf_row *r, uint64_t v)
{
	char text[24];

	/* Without a default 0 stands for none. */
	if (v == 0 && !r->dflt)
		return false;
	snprintf(text, sizeof(text), "%" PRIu64, v);
	conf_put_text(p, text);
	return true;
}

bool
conf_put_u32(struct conf_put *p, const struct conf_row *r, const void *member)
{
	return put_number(p, r, *(const uint32_t *)member);
}

bool
conf_put_u64(struct conf_put *p, const struct conf_row *r, const void *member)
{
	return put_number(p, r, *(const uint64_t *)member);
}

bool
conf_put_mode(struct conf_put *p, const struct conf_row *r, const void *member)
{
	char text[16];

	(void)r;
	snprintf(text, sizeof(text), "\"%04o\"", (unsigned)*(const uint32_t *)member);
	conf_put_text(p, text);
	return true;
}

bool
conf_put_enum(struct conf_put *p, const struct conf_row *r, const void *member)
{
	int i;

	memcpy(&i, member, sizeof(i));
	if (*conf_type_of(r)->names[i] == '\0')
		return false;
	conf_put_text(p, "\"");
	conf_put_text(p, conf_type_of(r)->names[i]);
	conf_put_text(p, "\"");
	return true;
}

bool
conf_put_string_value(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const char *s = *(char *const *)member;

	if (!s)
		return false;
	conf_put_string(p, r, s);
	return true;
}
