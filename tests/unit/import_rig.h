/* SPDX-License-Identifier: MIT */
/* Imports of text, with variables of the tests' own. */
#ifndef IMPORT_RIG_H
#define IMPORT_RIG_H

#include "mcpvisor/import.h"

#include <stdio.h>
#include <string.h>

#include <check.h>

static inline const char *
fake_env(const char *name, void *arg)
{
	(void)arg;
	if (strcmp(name, "TOKEN") == 0)
		return "hunter2 ${X}";
	return strcmp(name, "HOME") == 0 ? "/home/u" : NULL;
}

static const struct expand_env fake = {.get = fake_env};

static inline enum mv_err
parse(const char *text, struct import_result *r, struct mv_errtext *et)
{
	return import_parse("f.json", text, strlen(text), &fake, r, et);
}

/* The only entry of {"mcpServers":{"a": ENTRY}}. */
static inline struct upstream_conf *
parse_entry(const char *entry, struct import_result *r)
{
	struct mv_errtext et = {.line = 0};
	char text[2048];

	snprintf(text, sizeof text, "{\"mcpServers\":{\"a\":%s}}", entry);
	ck_assert_msg(parse(text, r, &et) == MV_OK, "%s: %s", entry, et.message);
	ck_assert_uint_eq(r->n, 1);
	return r->v[0];
}

static inline const char *
env_get(const struct upstream_conf *c, const char *key)
{
	size_t n = strlen(key);

	for (char **p = c->env; *p; p++) {
		if (strncmp(*p, key, n) == 0 && (*p)[n] == '=')
			return *p + n + 1;
	}
	return NULL;
}

#endif
