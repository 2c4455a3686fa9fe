/* SPDX-License-Identifier: MIT */
/*
 * An upstream that remembers what the test says.
 *
 * Owns: its conf, a copy of what it was given.
 * Driven by: the test.
 */
#include "fake/fake_memory.h"

#include "mcpvisor/mem.h"

#include <string.h>

struct upstream {
	struct upstream_conf *conf;
	const char *memory;
	enum mv_err err;
	char *taken, *shown;
};

struct upstream *
fake_memory_new(const char *name, const char *command, const char *memory)
{
	struct upstream *u = mem_xcalloc(1, sizeof(*u));

	u->conf = upstream_conf_new(name);
	u->conf->argv = mem_xcalloc(2, sizeof(*u->conf->argv));
	u->conf->argv[0] = mem_xstrdup(command);
	u->memory = memory;
	return u;
}

void
fake_memory_free(struct upstream *u)
{
	upstream_conf_free(u->conf);
	mem_free(u->taken);
	mem_free(u->shown);
	mem_free(u);
}

void
fake_memory_set(struct upstream *u, const char *memory)
{
	u->memory = memory;
}

struct upstream_conf *
fake_memory_conf(struct upstream *u)
{
	return u->conf;
}

void
fake_memory_fail(struct upstream *u, enum mv_err err)
{
	u->err = err;
}

const char *
fake_memory_taken(struct upstream *u)
{
	mem_free(u->shown);
	u->shown = u->taken;
	u->taken = NULL;
	return u->shown;
}

const struct upstream_conf *
upstream_conf_of(const struct upstream *u)
{
	return u->conf;
}

void
upstream_put_memory(const struct upstream *u, struct buf *out)
{
	buf_add_str(out, u->memory);
	if (u->err != MV_OK)
		out->err = u->err;
}

enum mv_err
upstream_take_memory(struct upstream *u, const char *p, size_t n)
{
	if (u->err != MV_OK)
		return u->err;
	mem_free(u->taken);
	u->taken = mem_xstrndup(p, n);
	return MV_OK;
}
