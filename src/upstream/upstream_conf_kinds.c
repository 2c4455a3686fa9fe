/* SPDX-License-Identifier: MIT */
/*
 * What the conf of upstreams has of the kinds that make their tools themselves: words,
 * defaults, end of life, identity.
 *
 * Owns: nothing beyond the structs.
 * Driven by: upstream_conf.c, and whoever parses a conf.
 * Invariants: what changes the tools or how they are run is part of the identity.
 */
#include "upstream_conf_priv.h"

#include "mcpvisor/mem.h"

#include <string.h>

const char *const kind_words[] = {[KIND_STDIO] = "stdio",
    [KIND_HTTP] = "http",
    [KIND_GRAPHQL] = "graphql",
    [KIND_EXEC] = "exec",
    [KIND_SHELL] = "shell",
    NULL};
const char *const exec_output_words[] = {[EXEC_OUTPUT_TEXT] = "text",
    [EXEC_OUTPUT_JSON] = "json",
    [EXEC_OUTPUT_BASE64] = "base64",
    NULL};
const char *const exec_stderr_words[] = {[EXEC_STDERR_INHERIT] = "",
    [EXEC_STDERR_DROP] = "drop",
    [EXEC_STDERR_LOG] = "log",
    [EXEC_STDERR_ON_ERROR] = "on_error",
    [EXEC_STDERR_MERGE] = "merge",
    NULL};
const char *const exec_overflow_words[] = {[EXEC_OVERFLOW_INHERIT] = "",
    [EXEC_OVERFLOW_CUT] = "cut",
    [EXEC_OVERFLOW_KILL] = "kill",
    NULL};
const char *const graphql_mutations_words[] = {[MUTATIONS_NONE] = "none",
    [MUTATIONS_EXPLICIT] = "explicit",
    [MUTATIONS_ALL] = "all",
    NULL};
const char *const graphql_execute_words[] = {
    [EXECUTE_OFF] = "off", [EXECUTE_QUERIES] = "queries", [EXECUTE_ALL] = "all", NULL};
const char *const graphql_names_words[] = {
    [NAMES_KEEP] = "keep", [NAMES_SNAKE] = "snake", NULL};

void
exec_tool_fini(struct exec_tool *t)
{
	mem_free(t->command);
	for (size_t i = 0; i < t->n_args; i++)
		mem_free(t->args[i].text);
	mem_free(t->args);
	mem_free(t->input);
	argspec_free(t->params);
	mem_free(t->schema_file);
	for (size_t i = 0; i < t->n_rules; i++) {
		mem_free(t->rules[i].name);
		mem_free(t->rules[i].root);
	}
	mem_free(t->rules);
	mem_free(t->mime);
	mem_free(t->success);
	*t = (struct exec_tool){.command = NULL};
}

const struct exec_param *
exec_tool_rule(const struct exec_tool *t, const char *name)
{
	for (size_t i = 0; i < t->n_rules; i++)
		if (strcmp(t->rules[i].name, name) == 0)
			return &t->rules[i];
	return NULL;
}

void
exec_conf_fini(struct exec_conf *c)
{
	mem_free(c->file);
	mem_free(c->tools_file);
	mem_free(c->interpreter);
	mem_free(c->user);
	*c = (struct exec_conf){.file = NULL};
}

void
graphql_conf_fini(struct graphql_conf *c)
{
	upstream_strings_free(c->operations);
	upstream_strings_free(c->fields);
	mem_free(c->schema);
	mem_free(c->cache);
	mem_free(c->scalars);
	*c = (struct graphql_conf){.operations = NULL};
}

void
upstream_conf_set_kinds(struct upstream_conf *c)
{
	c->exec.interpreter = mem_xstrdup("/bin/bash");
	c->exec.limits = (struct exec_limits){.timeout_ms = 30000,
	    .stop_ms = 2000,
	    .output_max = 262144,
	    .err = EXEC_STDERR_ON_ERROR,
	    .overflow = EXEC_OVERFLOW_CUT};
	c->exec.rlimits = (struct exec_rlimits){.cpu_s = 60,
	    .as_bytes = 512ull << 20,
	    .nofile = 64,
	    .fsize_bytes = 64ull << 20};
	c->exec.concurrency = 4;
	c->exec.queue = 16;
	c->graphql.schema = mem_xstrdup("introspect");
	c->graphql.refresh_ms = 600000;
	c->graphql.max_tools = 64;
	c->graphql.depth = 2;
	c->graphql.max_fields = 60;
	c->graphql.timeout_ms = 30000;
	c->graphql.response_max = 4ull << 20;
	c->graphql.inflight = 16;
	c->identity.cache_max = 65536;
	c->label.mode = GRAPHQL_AUTO;
	c->label.survival = SURVIVAL_SHALLOW;
	c->label.annotate = ANNOTATE_FULL;
	c->label.max_bytes = 1u << 20;
}

static void
put_strings(struct buf *out, char *const *v)
{
	for (; v != NULL && *v != NULL; v++)
		upstream_identity_put(out, *v);
	buf_add_char(out, ';');
}

static void
put_limits(struct buf *out, const struct exec_limits *l)
{
	buf_addf(out, "%u,%u,%llu,%d,%d;", l->timeout_ms, l->stop_ms,
	    (unsigned long long)l->output_max, (int)l->err, (int)l->overflow);
}

static void
put_hints(struct buf *out, const struct tool_hints *h)
{
	buf_addf(out, "%d%d%d%d;", (int)h->read_only, (int)h->destructive,
	    (int)h->idempotent, (int)h->open_world);
}

static void
put_exec_tool(struct buf *out, const struct exec_tool *t)
{
	upstream_identity_put(out, t->command);
	for (size_t i = 0; i < t->n_args; i++) {
		buf_addf(out, "%d", (int)t->args[i].kind);
		upstream_identity_put(out, t->args[i].text);
	}
	upstream_identity_put(out, t->input);
	if (t->params != NULL)
		argspec_put_schema(t->params, out);
	for (size_t i = 0; t->params != NULL && i < t->params->n_members; i++)
		buf_add_char(out, t->params->members[i]->is_secret ? 's' : '-');
	for (size_t i = 0; i < t->n_rules; i++) {
		upstream_identity_put(out, t->rules[i].name);
		upstream_identity_put(out, t->rules[i].root);
		buf_add_char(out, t->rules[i].may_dash ? 'd' : '-');
	}
	buf_addf(out, "%d;", (int)t->output);
	upstream_identity_put(out, t->mime);
	for (size_t i = 0; i < t->n_success; i++)
		buf_addf(out, "%d,", t->success[i]);
	put_limits(out, &t->limits);
}

static void
put_exec(struct buf *out, const struct upstream_conf *c)
{
	const struct exec_conf *e = &c->exec;

	upstream_identity_put(out, e->file);
	upstream_identity_put(out, e->tools_file);
	upstream_identity_put(out, e->interpreter);
	upstream_identity_put(out, e->user);
	put_limits(out, &e->limits);
	buf_addf(out, "%u,%llu,%u,%u,%llu;%u,%u;", e->rlimits.cpu_s,
	    (unsigned long long)e->rlimits.as_bytes, e->rlimits.nofile, e->rlimits.nproc,
	    (unsigned long long)e->rlimits.fsize_bytes, e->concurrency, e->queue);
}

static void
put_graphql(struct buf *out, const struct upstream_conf *c)
{
	const struct graphql_conf *g = &c->graphql;

	put_strings(out, g->operations);
	put_strings(out, g->fields);
	upstream_identity_put(out, g->schema);
	upstream_identity_put(out, g->cache);
	upstream_identity_put(out, g->scalars);
	buf_addf(out, "%d%d%d%d%d;%u,%u,%u,%u,%u,%llu,%u;", (int)g->mutations,
	    (int)g->execute, (int)g->names, g->plain, g->output_schema, g->refresh_ms,
	    g->max_tools, g->depth, g->max_fields, g->timeout_ms,
	    (unsigned long long)g->response_max, g->inflight);
}

void
upstream_conf_put_kinds(const struct upstream_conf *c, struct buf *out)
{
	static void (*const kinds[])(struct buf * out, const struct upstream_conf *c) = {
	    [KIND_STDIO] = NULL,
	    [KIND_HTTP] = NULL,
	    [KIND_GRAPHQL] = put_graphql,
	    [KIND_EXEC] = put_exec,
	    [KIND_SHELL] = put_exec,
	};

	if (kinds[c->kind] == NULL)
		return;
	buf_addf(out, "%s;", kind_words[c->kind]);
	kinds[c->kind](out, c);
	for (size_t i = 0; i < c->n_shapes; i++) {
		const struct tool_shape *s = &c->shapes[i];
		const struct tool_hints *h = &s->hints;

		/* What says no more than how clients see a tool makes none. */
		if (s->exec.command == NULL && h->read_only == HINT_INHERIT &&
		    h->destructive == HINT_INHERIT && h->idempotent == HINT_INHERIT &&
		    h->open_world == HINT_INHERIT)
			continue;
		upstream_identity_put(out, s->tool);
		put_hints(out, &s->hints);
		put_exec_tool(out, &s->exec);
	}
}
