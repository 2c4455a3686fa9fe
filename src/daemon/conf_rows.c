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
#define CONF_T_OWN	struct upstream_conf
#define CONF_T_SHAPE	struct tool_shape
#define CONF_T_PARAM	struct argspec
#define CONF_T_RULE	struct exec_param
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

enum conf_where
conf_scope_of(const struct conf_row *r)
{
	static const enum conf_where scopes[CONF_WHERE_MAX] = {
	    [CONF_CONF] = CONF_CONF,
	    [CONF_LISTEN] = CONF_LISTEN,
	    [CONF_UPSTREAM] = CONF_UPSTREAM,
	    [CONF_EXTRA] = CONF_UPSTREAM,
	    [CONF_OWN] = CONF_UPSTREAM,
	    [CONF_SHAPE] = CONF_SHAPE,
	    [CONF_PARAM] = CONF_PARAM,
	    [CONF_RULE] = CONF_PARAM,
	    [CONF_PROFILE] = CONF_PROFILE,
	};

	return scopes[r->where];
}

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
	    [CONF_OWN] = "upstream.*.",
	    [CONF_SHAPE] = "upstream.*.tool.[].",
	    [CONF_PARAM] = "upstream.*.tool.[].params.*.",
	    [CONF_RULE] = "upstream.*.tool.[].params.*.",
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
#define CONF_GROUP_MAX 160

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

const char *
conf_kinds_text(unsigned flags, char text[CONF_KINDS_BYTES])
{
	unsigned left = flags & CONF_K_ALL;
	size_t n = 0;

	*text = '\0';
	for (unsigned k = 0; left != 0; k++) {
		if (!(left & CONF_K(k)))
			continue;
		left &= ~CONF_K(k);
		n += (size_t)snprintf(text + n, CONF_KINDS_BYTES - n, "%s%s",
		    n == 0	? ""
		    : left != 0 ? ", "
				: " or ",
		    kind_words[k]);
	}
	return text;
}

/* A default of the table is what a file could say: only numbers, words and strings. */
static void
conf_set_default(const struct conf_row *r, void *member)
{
	const struct conf_type *t = conf_type_of(r);
	const char *d = r->dflt;
	int i = 0;

	if (t->names) {
		while (strlen(t->names[i]) != strlen(d) - 2 ||
		       strncmp(d + 1, t->names[i], strlen(d) - 2) != 0)
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
