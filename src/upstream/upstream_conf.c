/* SPDX-License-Identifier: MIT */
/*
 * Defaults and end of life of an upstream's conf.
 *
 * Owns: nothing beyond the struct.
 * Driven by: whoever parses a conf.
 */
#include "mcpvisor/upstream_conf.h"

#include "mcpvisor/mem.h"

struct upstream_conf *
upstream_conf_new(const char *name)
{
	struct upstream_conf *c = mem_xcalloc(1, sizeof *c);

	c->name = mem_xstrdup(name);
	c->era = ERA_AUTO;
	c->probe_ms = 3000;
	c->start_ms = 60000;
	c->call_ms = 300000;
	c->call_max_ms = 3600000;
	c->restart_base_ms = 500;
	return c;
}

static void
strings_free(char **v)
{
	for (char **p = v; p && *p; p++)
		mem_free(*p);
	mem_free(v);
}

void
upstream_conf_free(struct upstream_conf *c)
{
	if (!c)
		return;
	strings_free(c->argv);
	strings_free(c->env);
	mem_free(c->name);
	mem_free(c->path);
	mem_free(c->cwd);
	mem_free(c->prefix);
	mem_free(c);
}
