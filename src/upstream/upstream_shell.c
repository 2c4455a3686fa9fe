/* SPDX-License-Identifier: MIT */
/*
 * The kind shell: functions tool_NAME of a file as tools, run by an interpreter.
 *
 *   start --> load --ok--> up, looked at every few seconds
 *              |  ^           |
 *              |  +--changed--+    a load that fails keeps what was there
 *              +--failed, nothing was there--> down, started anew by upstream_local.c
 *
 * Owns: what the files said when they were loaded last; the queue of its calls.
 * Driven by: upstream_local.c; the ends of programs; its timer.
 * Invariants: what the interpreter is told to do is always the same text; names and
 * arguments are handed over, never written into it.
 * Spec: 2026-07-28 server/tools.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#define SHELL_MAGIC	 0x7368656cu
#define SHELL_LOOK_MS	 2000
#define SHELL_NO_FUNC	 213
#define SHELL_NO_FUNC_AS "213"
#define SHELL_NO_TEXT	 "mcpvisor: no such function"

/* $1: the file, $2: the interpreter. A status of the file other than 0 is no failure, as
 * its last command may be a test; but then it may have stopped at a mistake. */
static const char load_script[] =
    "__mcpvisor_file=$1 __mcpvisor_shell=$2 __mcpvisor_status=0\n"
    "set --\n"
    ". \"$__mcpvisor_file\" >/dev/null || __mcpvisor_status=$?\n"
    "if [[ $__mcpvisor_status != 0 ]]; then\n"
    "	\"$__mcpvisor_shell\" --noprofile --norc -O extglob -n \"$__mcpvisor_file\" || "
    "exit 65\n"
    "fi\n"
    "builtin declare -F\n"
    "builtin echo '" SHELL_LOADED "'\n";

/* $1: the file, $2: the tool. On descriptor 3: its arguments, NUL, and the text of the
 * file as it was, if it is another one now. The file is sourced in the list of ||, so
 * that it may set -e and end with a test; so is the text, that it may return. */
static const char call_script[] =
    "IFS= builtin read -r -d '' -u 3 __mcpvisor_arguments\n"
    "IFS= builtin read -r -d '' -u 3 __mcpvisor_text\n"
    "exec 3<&-\n"
    "__mcpvisor_file=$1 __mcpvisor_tool=tool_$2\n"
    "set --\n"
    "if [[ -n $__mcpvisor_text ]]; then\n"
    "	. <(builtin printf '%s' \"$__mcpvisor_text\") >/dev/null || :\n"
    "else\n"
    "	. \"$__mcpvisor_file\" >/dev/null || :\n"
    "fi\n"
    "builtin unset __mcpvisor_text\n"
    "builtin declare -F \"$__mcpvisor_tool\" >/dev/null || {\n"
    "	builtin echo '" SHELL_NO_TEXT "' >&2\n"
    "	exit " SHELL_NO_FUNC_AS "\n"
    "}\n"
    "\"$__mcpvisor_tool\" \"$__mcpvisor_arguments\"\n"
    "exit\n";

struct shell {
	unsigned magic;
	struct upstream *u;
	struct exec_host host;
	struct exec_pool pool;
	struct shell_set *set, *next; /* in force; being loaded */
	struct run *load;	      /* of next */
	struct shell_id tried_file, tried_tools;
	struct timer look;
};

static void
shell_add_word(struct exec_line *l, const char *word)
{
	buf_add(&l->words, word, strlen(word) + 1);
	l->n_words++;
}

static void
shell_add_words(struct exec_line *l, const char *script, const char *file)
{
	shell_add_word(l, "--noprofile");
	shell_add_word(l, "--norc");
	shell_add_word(l, "-c");
	shell_add_word(l, script);
	shell_add_word(l, "mcpvisor");
	shell_add_word(l, file);
}

/* ---- loading ---- */

static void
shell_drop_load(struct shell *x)
{
	if (x->load != NULL)
		run_cancel(x->load);
	x->load = NULL;
	shell_set_free(x->next);
	x->next = NULL;
}

static void
shell_load_failed(struct shell *x, const char *file, const char *why)
{
	shell_drop_load(x);
	LOG_NOTICE("shell", "not loaded", "upstream=%s kept=%s file=%s reason=%s",
	    UNAME(x->u), x->set != NULL ? "true" : "false", LOG_ESC(file, strlen(file)),
	    LOG_ESC(why, strlen(why)));
	if (x->set != NULL)
		local_up(x->u);
	else
		local_down(x->u, MV_CONF, "its functions could not be loaded");
}

static void
shell_tell_missing(const struct shell *x)
{
	for (size_t i = 0; i < x->set->n; i++)
		if (!x->set->v[i].has_function)
			LOG_NOTICE("shell", "no function", "upstream=%s tool=%s",
			    UNAME(x->u),
			    LOG_ESC(x->set->v[i].name.p, x->set->v[i].name.n));
}

static void
shell_loaded(struct shell *x)
{
	struct buf before, after;

	buf_init(&before, CAP_LIST_BYTES);
	buf_init(&after, CAP_LIST_BYTES);
	if (x->set != NULL)
		shell_set_put(x->set, x->u, &before);
	shell_set_free(x->set);
	x->set = x->next;
	x->next = NULL;
	shell_set_put(x->set, x->u, &after);
	LOG_INFO("shell", "loaded", "upstream=%s tools=%zu", UNAME(x->u), x->set->n);
	shell_tell_missing(x);
	local_up(x->u);
	if (before.len != after.len ||
	    (after.len > 0 && memcmp(before.data, after.data, after.len) != 0))
		local_tools_changed(x->u);
	buf_fini(&before);
	buf_fini(&after);
}

static void
on_load_end(void *arg, const struct run_end *e)
{
	struct shell *x = arg;
	const char *file = x->u->conf->exec.file;

	MCPVISOR_ASSERT(x->magic == SHELL_MAGIC);
	x->load = NULL;
	exec_host_log_stderr(&x->host, e);
	if (e->how == RUN_NOT_STARTED)
		shell_load_failed(x, file, e->error);
	else if (e->how == RUN_TIMED_OUT)
		shell_load_failed(x, file, "it took too long");
	else if (e->how != RUN_EXITED || e->status != 0)
		shell_load_failed(x, file, "it has a mistake or ends the interpreter");
	else if (!shell_set_take_functions(x->next, e->out.p, e->out.n))
		shell_load_failed(x, file, "it ends the interpreter");
	else
		shell_loaded(x);
}

static void
shell_load(struct shell *x)
{
	const struct exec_conf *c = &x->u->conf->exec;
	struct exec_limits limits = exec_limits_of(c, NULL);
	struct mv_errtext why = {.line = 0};
	struct exec_line line;

	x->next = shell_set_read(c, &why);
	if (x->next == NULL) {
		shell_load_failed(x, why.file, why.message);
		return;
	}
	limits.output_max = CAP_CONF_BYTES;
	limits.err = EXEC_STDERR_LOG;
	exec_line_init(&line);
	shell_add_words(&line, load_script, c->file);
	shell_add_word(&line, c->interpreter);
	x->load = exec_host_run(&x->host, &line, c->interpreter, &limits, on_load_end, x);
	exec_line_fini(&line);
	if (x->load == NULL)
		shell_load_failed(x, c->file, "no process could be made");
}

/* Whether the files are others than those that were tried last; they count as tried. */
static bool
shell_has_changed(void *arg)
{
	struct shell *x = arg;
	const struct exec_conf *c = &x->u->conf->exec;
	struct shell_id file, tools;
	bool same;

	shell_id_of(c->file, &file);
	shell_id_of(c->tools_file, &tools);
	same = shell_id_is_same(&file, &x->tried_file) &&
	       shell_id_is_same(&tools, &x->tried_tools);
	x->tried_file = file;
	x->tried_tools = tools;
	return !same;
}

static void
shell_look(struct shell *x)
{
	if (x->load == NULL && shell_has_changed(x))
		shell_load(x);
}

static void
on_look(void *arg)
{
	struct shell *x = arg;

	MCPVISOR_ASSERT(x->magic == SHELL_MAGIC);
	timer_set(&x->look, SHELL_LOOK_MS);
	shell_look(x);
}

/* ---- calls ---- */

static bool
shell_begin(void *arg, struct exec_job *j, const char **command, struct exec_limits *l)
{
	struct shell *x = arg;
	const struct exec_conf *c = &x->u->conf->exec;
	struct local_call *call = j->call;
	struct jtext arguments = call->arguments;
	struct shell_id now;
	struct buf name;

	if (arguments.n == 0)
		arguments = (struct jtext){"{}", 2};
	buf_init(&name, CAP_URI_BYTES);
	shell_add_words(&j->line, call_script, c->file);
	shell_add_word(&j->line, exec_tool_name(call, &name));
	buf_fini(&name);
	json_put(&j->line.own, arguments);
	buf_add_char(&j->line.own, '\0');
	shell_id_of(c->file, &now);
	if (!shell_id_is_same(&now, &x->set->file_id))
		buf_add(&j->line.own, x->set->file.data, x->set->file.len);
	if (j->line.own.err != MV_OK || j->line.words.err != MV_OK) {
		exec_reply_not_started(call);
		return false;
	}
	j->line.input_to = RUN_INPUT_FD3;
	j->line.input = (struct jtext){j->line.own.data, j->line.own.len};
	*command = c->interpreter;
	*l = exec_limits_of(c, NULL);
	return true;
}

static bool
text_ends(const struct run_text *t, const char *end)
{
	size_t n = strlen(end);

	return t->n >= n && memcmp(t->p + t->n - n, end, n) == 0;
}

/* Only the script says so with both. */
static bool
shell_has_no_function(const struct run_end *e)
{
	static const char text[] = SHELL_NO_TEXT "\n";

	return e->how == RUN_EXITED && e->status == SHELL_NO_FUNC &&
	       (text_ends(&e->err, text) || text_ends(&e->out, text));
}

static bool
shell_is_read_only(const struct shell *x, struct jtext name)
{
	const struct shell_tool *t = shell_set_find(x->set, name);
	const struct tool_shape *shape = local_shape(x->u, name);

	if (shape != NULL && shape->hints.read_only != HINT_INHERIT)
		return shape->hints.read_only == HINT_YES;
	return t != NULL && t->hints.read_only == HINT_YES;
}

static void
shell_end(void *arg, struct exec_job *j, const struct run_end *e)
{
	struct shell *x = arg;
	struct exec_rules rules = {.output = EXEC_OUTPUT_TEXT};
	struct buf name;

	if (shell_has_no_function(e)) {
		local_reply_unknown(j->call);
		return;
	}
	buf_init(&name, CAP_URI_BYTES);
	rules.tool = exec_tool_name(j->call, &name);
	rules.limits = exec_limits_of(&x->u->conf->exec, NULL);
	rules.has_effects = !shell_is_read_only(x, j->call->name);
	exec_job_answer(j, &rules, e);
	buf_fini(&name);
}

static void
shell_call(void *arg, struct local_call *c)
{
	struct shell *x = arg;
	const struct shell_tool *t;
	struct exec_line line;

	MCPVISOR_ASSERT(x->magic == SHELL_MAGIC);
	if (local_refuse_arguments(c))
		return;
	shell_look(x);
	t = shell_set_find(x->set, c->name);
	if (t == NULL || !t->has_function) {
		local_reply_unknown(c);
		return;
	}
	exec_line_init(&line);
	exec_pool_add(&x->pool, c, &line);
}

static void
shell_cancel(void *arg, struct local_call *c)
{
	struct shell *x = arg;

	exec_pool_cancel(&x->pool, c);
}

/* ---- as a kind ---- */

static void
shell_put_tools(void *arg, struct buf *out)
{
	struct shell *x = arg;

	shell_look(x);
	shell_set_put(x->set, x->u, out);
}

static void *
shell_init(struct upstream *u, const struct upstream_env *env)
{
	static const struct exec_pool_ops ops = {shell_begin, shell_end};
	struct shell *x = mem_xcalloc(1, sizeof(*x));

	x->magic = SHELL_MAGIC;
	x->u = u;
	exec_host_init(&x->host, u, env);
	exec_pool_init(&x->pool, &x->host, &ops, x);
	timer_init(&x->look, u->loop, on_look, x);
	return x;
}

static void
shell_free(void *arg)
{
	struct shell *x = arg;

	shell_drop_load(x);
	timer_fini(&x->look);
	exec_pool_fini(&x->pool);
	exec_host_fini(&x->host);
	shell_set_free(x->set);
	x->magic = 0;
	mem_free(x);
}

static void
shell_start(void *arg)
{
	struct shell *x = arg;

	(void)shell_has_changed(x);
	if (exec_host_start(&x->host) != MV_OK)
		return;
	exec_pool_start(&x->pool);
	timer_set(&x->look, SHELL_LOOK_MS);
	shell_load(x);
}

static void
shell_stop(void *arg)
{
	struct shell *x = arg;

	timer_clear(&x->look);
	exec_pool_stop(&x->pool);
	shell_drop_load(x);
}

const struct local_ops local_shell = {
    .name = "shell",
    .init = shell_init,
    .free = shell_free,
    .start = shell_start,
    .stop = shell_stop,
    .has_changed = shell_has_changed,
    .put_tools = shell_put_tools,
    .call = shell_call,
    .cancel = shell_cancel,
};
