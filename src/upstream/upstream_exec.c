/* SPDX-License-Identifier: MIT */
/*
 * The kind exec: programs of the conf as tools, without a shell.
 *
 * Owns: the queue of its calls. Driven by: upstream_local.c; the ends of programs.
 * Invariants: a row of the conf is looked up whenever it is used, as another conf of the
 * same tools may have come; what a call gives is checked before anything runs.
 * Spec: 2026-07-28 server/tools.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#define EXEC_MAGIC 0x65786563u

struct exec {
	unsigned magic;
	struct upstream *u;
	struct exec_host host;
	struct exec_pool pool;
};

/* A program may do anything. */
static const struct tool_hints exec_hints = {
    .read_only = HINT_NO,
    .destructive = HINT_YES,
    .idempotent = HINT_NO,
    .open_world = HINT_YES,
};

/* ---- calls ---- */

/* NULL: c was answered. */
static const struct tool_shape *
exec_shape(struct exec *x, struct local_call *c)
{
	const struct tool_shape *shape = local_shape(x->u, c->name);

	if (shape != NULL && shape->exec.command != NULL)
		return shape;
	local_reply_unknown(c);
	return NULL;
}

static bool
exec_begin(void *arg, struct exec_job *j, const char **command, struct exec_limits *l)
{
	struct exec *x = arg;
	const struct tool_shape *shape = exec_shape(x, j->call);

	if (shape == NULL)
		return false;
	*command = shape->exec.command;
	*l = exec_limits_of(&x->u->conf->exec, &shape->exec.limits);
	return true;
}

static void
exec_end(void *arg, struct exec_job *j, const struct run_end *e)
{
	struct exec *x = arg;
	const struct tool_shape *shape = exec_shape(x, j->call);
	const struct exec_tool *t;
	struct exec_rules rules;

	if (shape == NULL)
		return;
	t = &shape->exec;
	rules = (struct exec_rules){.tool = shape->tool,
	    .output = t->output,
	    .mime = t->mime,
	    .success = t->success,
	    .n_success = t->n_success,
	    .limits = exec_limits_of(&x->u->conf->exec, &t->limits),
	    .has_effects = shape->hints.read_only != HINT_YES};
	exec_job_answer(j, &rules, e);
}

static void
exec_call(void *arg, struct local_call *c)
{
	struct exec *x = arg;
	const struct tool_shape *shape;
	struct exec_line line;
	struct buf why;
	enum mv_err err;

	MCPVISOR_ASSERT(x->magic == EXEC_MAGIC);
	if (local_refuse_arguments(c))
		return;
	shape = exec_shape(x, c);
	if (shape == NULL)
		return;
	exec_line_init(&line);
	buf_init(&why, CAP_URI_BYTES);
	err = exec_line_make(&line, &shape->exec, c->arguments, &why);
	if (err == MV_OK) {
		exec_pool_add(&x->pool, c, &line);
	} else {
		exec_line_fini(&line);
		if (err == MV_PARAMS)
			local_reply_text(c, why.data, why.len, true);
		else
			exec_reply_not_started(c);
	}
	buf_fini(&why);
}

static void
exec_cancel(void *arg, struct local_call *c)
{
	struct exec *x = arg;

	exec_pool_cancel(&x->pool, c);
}

/* ---- its tools ---- */

/* Its description is put in as that of any tool that the conf describes: by who lists. */
static void
exec_put_tool(struct buf *out, const struct tool_shape *shape)
{
	buf_add_str(out, "{\"name\":");
	json_put_string(out, shape->tool, strlen(shape->tool));
	buf_add_str(out, ",\"inputSchema\":");
	if (shape->exec.params != NULL)
		argspec_put_schema(shape->exec.params, out);
	else
		buf_add_str(out, "{\"type\":\"object\",\"additionalProperties\":false}");
	local_put_annotations(out, shape, &exec_hints);
	buf_add_char(out, '}');
}

static void
exec_put_tools(void *arg, struct buf *out)
{
	const struct exec *x = arg;
	const struct upstream_conf *conf = x->u->conf;
	const char *sep = "";

	for (size_t i = 0; i < conf->n_shapes; i++) {
		if (conf->shapes[i].exec.command == NULL)
			continue;
		buf_add_str(out, sep);
		exec_put_tool(out, &conf->shapes[i]);
		sep = ",";
	}
}

/* ---- as a kind ---- */

static void *
exec_init(struct upstream *u, const struct upstream_env *env)
{
	static const struct exec_pool_ops ops = {exec_begin, exec_end};
	struct exec *x = mem_xcalloc(1, sizeof(*x));

	x->magic = EXEC_MAGIC;
	x->u = u;
	exec_host_init(&x->host, u, env);
	exec_pool_init(&x->pool, &x->host, &ops, x);
	return x;
}

static void
exec_free(void *arg)
{
	struct exec *x = arg;

	exec_pool_fini(&x->pool);
	exec_host_fini(&x->host);
	x->magic = 0;
	mem_free(x);
}

static void
exec_start(void *arg)
{
	struct exec *x = arg;

	if (exec_host_start(&x->host) != MV_OK)
		return;
	exec_pool_start(&x->pool);
	local_up(x->u);
}

static void
exec_stop(void *arg)
{
	struct exec *x = arg;

	exec_pool_stop(&x->pool);
}

const struct local_ops local_exec = {
    .name = "exec",
    .init = exec_init,
    .free = exec_free,
    .start = exec_start,
    .stop = exec_stop,
    .put_tools = exec_put_tools,
    .call = exec_call,
    .cancel = exec_cancel,
};
