/* SPDX-License-Identifier: MIT */
/*
 * How the programs of one upstream are run: as whom, with what environment, within which
 * limits.
 *
 * Owns: the numbers of its user. Driven by: upstream_exec.c, upstream_shell.c.
 * Invariants: why a program could not be started is for the log alone; so is each path.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define EXEC_ERR_BYTES 4096 /* of stderr that an answer shows */
#define PASSWD_BYTES   16384
#define GROUPS_MAX     1024

void
exec_host_init(struct exec_host *h, struct upstream *u, const struct upstream_env *env)
{
	*h = (struct exec_host){.u = u, .spawner = env->spawner};
}

void
exec_host_fini(struct exec_host *h)
{
	mem_free(h->groups);
	h->groups = NULL;
}

/* False: there is none of that name. */
static bool
host_find_user(struct exec_host *h, const char *name)
{
	char *text = mem_xalloc(PASSWD_BYTES);
	struct passwd pw, *found = NULL;
	int n = GROUPS_MAX;

	if (getpwnam_r(name, &pw, text, PASSWD_BYTES, &found) != 0 || found == NULL) {
		mem_free(text);
		return false;
	}
	exec_host_fini(h);
	h->groups = mem_xalloc(GROUPS_MAX * sizeof(*h->groups));
	if (getgrouplist(name, pw.pw_gid, h->groups, &n) < 0)
		n = 0;
	h->user = (struct spawn_user){.uid = pw.pw_uid,
	    .gid = pw.pw_gid,
	    .groups = h->groups,
	    .n_groups = (size_t)n};
	/* Who we are already needs no right to become. */
	h->has_user = pw.pw_uid != geteuid() || pw.pw_uid == 0;
	mem_free(text);
	return true;
}

enum mv_err
exec_host_start(struct exec_host *h)
{
	const char *name = h->u->conf->exec.user;

	h->has_user = false;
	if (name == NULL || host_find_user(h, name))
		return MV_OK;
	LOG_ERROR("exec", "no such user", "upstream=%s user=%s", UNAME(h->u),
	    LOG_ESC(name, strlen(name)));
	local_down(h->u, MV_CONF, "its user does not exist");
	return MV_CONF;
}

struct exec_limits
exec_limits_of(const struct exec_conf *c, const struct exec_limits *own)
{
	struct exec_limits l = c->limits;

	if (own == NULL)
		return l;
	if (own->timeout_ms != 0)
		l.timeout_ms = own->timeout_ms;
	if (own->stop_ms != 0)
		l.stop_ms = own->stop_ms;
	if (own->output_max != 0)
		l.output_max = own->output_max;
	if (own->err != EXEC_STDERR_INHERIT)
		l.err = own->err;
	if (own->overflow != EXEC_OVERFLOW_INHERIT)
		l.overflow = own->overflow;
	return l;
}

struct run *
exec_host_run(struct exec_host *h, const struct exec_line *line, const char *command,
    const struct exec_limits *l, void (*on_end)(void *arg, const struct run_end *e),
    void *arg)
{
	const struct upstream_conf *c = h->u->conf;
	const struct exec_rlimits *r = &c->exec.rlimits;
	struct spawn_limits limits = {.cpu_s = r->cpu_s,
	    .as_bytes = r->as_bytes,
	    .nofile = r->nofile,
	    .nproc = r->nproc,
	    .fsize_bytes = r->fsize_bytes};
	const char **argv = exec_line_argv(line, command);
	struct mv_errtext why = {.line = 0};
	struct run_opts o = {.spec = {.name = c->name,
				 .argv = argv,
				 .envp = (const char *const *)c->env,
				 .path = c->path,
				 .cwd = c->cwd,
				 .no_terminal = true,
				 .no_new_privs = true,
				 .has_umask = true,
				 .umask = 077,
				 .limits = &limits,
				 .user = h->has_user ? &h->user : NULL},
	    .input_to = line->input_to,
	    .input = {line->input.p, line->input.n},
	    .merges = l->err == EXEC_STDERR_MERGE,
	    .out_max = l->output_max,
	    .ends_on_overflow = l->overflow == EXEC_OVERFLOW_KILL,
	    .err_max = EXEC_ERR_BYTES,
	    .timeout_ms = l->timeout_ms,
	    .kill_ms = l->stop_ms};
	struct run *run = run_start(h->u->loop, h->spawner, &o, on_end, arg, &why);

	if (run == NULL)
		LOG_LIMITED(LOG_LV_WARNING, "exec", "not started",
		    "upstream=%s reason=%s", UNAME(h->u),
		    LOG_ESC(why.message, strlen(why.message)));
	mem_free(argv);
	return run;
}

void
exec_host_log_stderr(const struct exec_host *h, const struct run_end *e)
{
	const char *p = e->err.p, *end = e->err.p + e->err.n;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl != NULL ? nl : end) - p);

		metrics_add(METRIC_STDERR_LINES, 1);
		if (n > 0)
			LOG_LIMITED(LOG_LV_INFO, "exec", "stderr", "upstream=%s line=%s",
			    UNAME(h->u), LOG_ESC(p, n));
		p += n + 1;
	}
}

const char *
exec_tool_name(const struct local_call *c, struct buf *text)
{
	const char *name = NULL;

	if (json_string_decode(c->name, text))
		name = buf_cstr(text);
	return name != NULL ? name : "?";
}

void
exec_reply_not_started(struct local_call *c)
{
	struct buf name, text;

	buf_init(&name, CAP_URI_BYTES);
	buf_init(&text, CAP_URI_BYTES + 64);
	buf_addf(&text, "Tool '%s' could not be started", exec_tool_name(c, &name));
	local_reply_error(c, EXEC_RPC_INTERNAL,
	    buf_cstr(&text) != NULL ? text.data : "The tool could not be started");
	buf_fini(&text);
	buf_fini(&name);
}
