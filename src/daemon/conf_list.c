/* SPDX-License-Identifier: MIT */
/*
 * Lists of strings, and the command line, which is one.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf_group.c, through the types.
 * Invariants: a list is NULL-terminated; NULL stands for none, which is not an empty one.
 * argv[0] is the command, "" until it is known.
 */
#include "conf_value_priv.h"

#include <string.h>

#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

void
conf_strings_free(char **v)
{
	for (char **p = v; p && *p; p++)
		mem_free_secret(*p, strlen(*p));
	mem_free(v);
}

size_t
conf_strings_count(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

/* The strings of an array or list behind the first that *v has; NULL: reported. */
static char **
list_read(
    struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s, size_t skip)
{
	int n = config_setting_length(s);
	char **v;
	bool bad = false;

	if (!config_setting_is_array(s) && !config_setting_is_list(s)) {
		conf_want(x, r, s);
		return NULL;
	}
	v = mem_xcalloc(skip + (size_t)n + 1, sizeof(*v));
	for (int i = 0; i < n; i++) {
		size_t old = conf_push_index(x, i);
		char *t = conf_string(x, r, config_setting_get_elem(s, (unsigned)i));

		conf_pop(x, old);
		bad = bad || !t;
		if (!bad)
			v[skip + (size_t)i] = t;
		else
			conf_set_string(&t, NULL);
	}
	if (!bad)
		return v;
	for (int i = 0; i < n; i++)
		conf_set_string(&v[skip + (size_t)i], NULL);
	mem_free(v);
	return NULL;
}

void
conf_parse_strings(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char ***slot = member;
	char **v = list_read(x, r, s, 0);

	if (!v)
		return;
	for (char **p = *slot; p && *p; p++)
		conf_unmark(x->c, *p);
	conf_strings_free(*slot);
	*slot = v;
}

void
conf_parse_command(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char ***slot = member;
	char *v = conf_string(x, r, s);

	if (!v)
		return;
	if (!*slot)
		*slot = mem_xcalloc(2, sizeof(**slot));
	conf_set_string(&(*slot)[0], v);
}

void
conf_parse_args(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char ***slot = member;
	char **v = list_read(x, r, s, 1);

	if (!v)
		return;
	if (*slot) {
		v[0] = (*slot)[0];
		(*slot)[0] = mem_xstrdup("");
	} else {
		v[0] = mem_xstrdup("");
	}
	conf_strings_free(*slot);
	*slot = v;
}

void
conf_put_text(struct conf_put *p, const char *s)
{
	buf_add_str(p->shown, s);
	buf_add_str(p->real, s);
}

void
conf_put_string(struct conf_put *p, const struct conf_row *r, const char *s)
{
	json_put_string(p->real, s, strlen(s));
	if ((r->flags & CONF_F_S) || conf_is_marked(p->c, s))
		buf_add_str(p->shown, "(secret)");
	else
		json_put_string(p->shown, s, strlen(s));
}

static bool
put_list(struct conf_put *p, const struct conf_row *r, char *const *v)
{
	conf_put_text(p, "[");
	for (char *const *s = v; *s; s++) {
		if (s != v)
			conf_put_text(p, ", ");
		conf_put_string(p, r, *s);
	}
	conf_put_text(p, "]");
	return true;
}

bool
conf_put_strings(struct conf_put *p, const struct conf_row *r, const void *member)
{
	char *const *v = *(char *const *const *)member;

	return v && put_list(p, r, v);
}

bool
conf_put_command(struct conf_put *p, const struct conf_row *r, const void *member)
{
	char *const *v = *(char *const *const *)member;

	if (!v || !v[0])
		return false;
	conf_put_string(p, r, v[0]);
	return true;
}

bool
conf_put_args(struct conf_put *p, const struct conf_row *r, const void *member)
{
	char *const *v = *(char *const *const *)member;

	return v && v[0] && v[1] && put_list(p, r, v + 1);
}
