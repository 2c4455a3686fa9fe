/* SPDX-License-Identifier: MIT */
/*
 * The table of options as data, and look-ups in it.
 *
 * Owns: nothing.
 * Driven by: the parser, the walk over values, and the test of the documents.
 * Invariants: a member has the size of its type; rows of one group lie together.
 */
#include "conf_priv.h"

#include "nearest_priv.h"
#include "option_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcpvisor/mem.h"

#define CONF_T_CONF	struct conf
#define CONF_T_LISTEN	struct conf_listen
#define CONF_T_UPSTREAM struct upstream_conf
#define CONF_T_EXTRA	struct conf_extra
#define CONF_T_SHAPE	struct tool_shape
#define CONF_T_PROFILE	struct profile_conf

const struct conf_row conf_rows[] = {
#define X(where, key, type, member, lo, hi, dflt, reload, flags, doc)                    \
	{CONF_##where, CONF_TY_##type, key, offsetof(CONF_T_##where, member),            \
	    sizeof(((CONF_T_##where *)0)->member), lo, hi, dflt, CONF_R_##reload, flags, \
	    doc},
    CONF_ROWS(X)
#undef X
};
const size_t conf_n_rows = sizeof(conf_rows) / sizeof(*conf_rows);

void
conf_scope_range(enum conf_where scope, size_t *first, size_t *end)
{
	size_t i = 0;

	while (i < conf_n_rows && conf_scope_of(&conf_rows[i]) != scope)
		i++;
	*first = i;
	while (i < conf_n_rows && conf_scope_of(&conf_rows[i]) == scope)
		i++;
	*end = i;
}

const char *
conf_scope_prefix(enum conf_where scope)
{
	static const char *const prefixes[CONF_WHERE_MAX] = {
	    [CONF_CONF] = "",
	    [CONF_LISTEN] = "listen.[].",
	    [CONF_UPSTREAM] = "upstream.*.",
	    [CONF_EXTRA] = "upstream.*.",
	    [CONF_SHAPE] = "upstream.*.tool.[].",
	    [CONF_PROFILE] = "profile.*.",
	};

	return prefixes[scope];
}

const struct conf_row *
conf_row_find(enum conf_where scope, const char *key)
{
	size_t first, end;

	conf_scope_range(scope, &first, &end);
	for (size_t i = first; i < end; i++) {
		if (strcmp(conf_rows[i].key, key) == 0)
			return &conf_rows[i];
	}
	return NULL;
}

bool
conf_is_section(enum conf_where scope, const char *key)
{
	size_t first, end, n = strlen(key);

	conf_scope_range(scope, &first, &end);
	for (size_t i = first; i < end; i++) {
		if (strncmp(conf_rows[i].key, key, n) == 0 && conf_rows[i].key[n] == '.')
			return true;
	}
	return false;
}

#define CONF_KEY_MAX   48
#define CONF_GROUP_MAX 64

const char *
conf_row_nearest(enum conf_where scope, const char *key)
{
	static char names[CONF_GROUP_MAX][CONF_KEY_MAX];
	const char *words[CONF_GROUP_MAX], *dot = strrchr(key, '.');
	size_t head = dot ? (size_t)(dot - key) + 1 : 0, first, end, n = 0;

	conf_scope_range(scope, &first, &end);
	for (size_t i = first; i < end && n < CONF_GROUP_MAX; i++) {
		const char *k = conf_rows[i].key;

		if (strncmp(k, key, head) != 0)
			continue;
		snprintf(names[n], CONF_KEY_MAX, "%.*s", (int)strcspn(k + head, "."),
		    k + head);
		words[n] = names[n];
		n++;
	}
	return nearest_word(key + head, words, n);
}

/* A default of the table is what a file could say: only numbers, words and strings. */
static void
conf_set_default(const struct conf_row *r, void *member)
{
	const struct conf_type *t = conf_type_of(r);
	const char *d = r->dflt;
	int i = 0;

	if (t->names) {
		while (strncmp(d + 1, t->names[i], strlen(t->names[i])) != 0)
			i++;
		memcpy(member, &i, sizeof(i));
	} else if (r->type == CONF_TY_BOOL) {
		*(bool *)member = *d == 't';
	} else if (r->type == CONF_TY_SIZE) {
		*(uint64_t *)member = strtoull(d, NULL, 10);
	} else if (r->type == CONF_TY_MODE) {
		*(uint32_t *)member = (uint32_t)strtoul(d + 1, NULL, 8);
	} else if (t->size == sizeof(uint32_t)) {
		*(uint32_t *)member = (uint32_t)strtoul(d, NULL, 10);
	} else {
		*(char **)member = mem_xstrndup(d + 1, strlen(d) - 2);
	}
}

void
conf_set_defaults(enum conf_where where, void *base)
{
	for (size_t i = 0; i < conf_n_rows; i++) {
		const struct conf_row *r = &conf_rows[i];

		if (r->where == where && r->dflt)
			conf_set_default(r, (char *)base + r->offset);
	}
}
