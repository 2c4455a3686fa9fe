/* SPDX-License-Identifier: MIT */
/*
 * The calls of one upstream whose answers are programs: so many at a time, the others in
 * the order in which they came.
 *
 * Owns: its jobs, each until its call is answered, or cancelled and its program over.
 * Driven by: calls, ends of programs, the ends of turns. Invariants: no call passes
 * another; a place is taken until its program is over, so that calls that are cancelled
 * at once cannot pile up programs that do not want to end; a place that gets free is
 * taken in a turn of its own, so that whoever ends many calls starts none of them.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#define EXEC_JOB_MAGIC	0x6a6f6221u
#define EXEC_POOL_MAGIC 0x706f6f6cu
#define EXEC_TEXT_SURE	((CAP_MESSAGE_BYTES - 1024 * 1024) / 6) /* fits whatever it is */

static void
job_free(struct exec_job *j)
{
	exec_line_fini(&j->line);
	j->magic = 0;
	mem_free(j);
}

/* Returns where it was. */
static struct exec_job **
job_unlink(struct exec_job **at, struct exec_job *j)
{
	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	return at;
}

/* It runs no more. */
static void
job_leave(struct exec_job *j)
{
	struct exec_pool *p = j->pool;

	j->run = NULL;
	p->n_running--;
	if (p->first != NULL)
		deferred_ask(&p->next);
}

static void
on_job_end(void *arg, const struct run_end *e)
{
	struct exec_job *j = arg;
	struct exec_pool *p = j->pool;

	MCPVISOR_ASSERT(j->magic == EXEC_JOB_MAGIC);
	job_leave(j);
	if (j->call == NULL) {
		job_unlink(&p->ending, j);
	} else if (e->how == RUN_NOT_STARTED) {
		LOG_LIMITED(LOG_LV_WARNING, "exec", "not started",
		    "upstream=%s reason=%s", UNAME(p->host->u),
		    LOG_ESC(e->error, strlen(e->error)));
		exec_reply_not_started(j->call);
	} else {
		p->ops->end(p->arg, j, e);
	}
	job_free(j);
}

static void
job_start(struct exec_job *j)
{
	struct exec_pool *p = j->pool;
	const char *command = NULL;
	struct exec_limits limits;

	if (!p->ops->begin(p->arg, j, &command, &limits)) {
		job_free(j);
		return;
	}
	j->run = exec_host_run(p->host, &j->line, command, &limits, on_job_end, j);
	exec_line_fini(&j->line);
	if (j->run == NULL) {
		exec_reply_not_started(j->call);
		job_free(j);
		return;
	}
	p->n_running++;
}

static void
on_place(void *arg)
{
	struct exec_pool *p = arg;

	MCPVISOR_ASSERT(p->magic == EXEC_POOL_MAGIC);
	while (!p->stopped && p->first != NULL &&
	       p->n_running < p->host->u->conf->exec.concurrency) {
		struct exec_job *j = p->first;

		p->first = j->next;
		if (p->first == NULL)
			p->tail = &p->first;
		p->n_waiting--;
		job_start(j);
	}
}

void
exec_pool_init(
    struct exec_pool *p, struct exec_host *h, const struct exec_pool_ops *ops, void *arg)
{
	*p = (struct exec_pool){
	    .magic = EXEC_POOL_MAGIC, .host = h, .ops = ops, .arg = arg};
	p->tail = &p->first;
	deferred_init(&p->next, h->u->loop, on_place, p);
}

/* Without us they end as well, in the background. */
static void
pool_drop_ending(struct exec_pool *p)
{
	while (p->ending != NULL) {
		struct exec_job *j = p->ending;

		p->ending = j->next;
		run_cancel(j->run);
		job_leave(j);
		job_free(j);
	}
}

void
exec_pool_fini(struct exec_pool *p)
{
	pool_drop_ending(p);
	MCPVISOR_ASSERT(p->n_running == 0 && p->n_waiting == 0);
	deferred_cancel(&p->next);
	p->magic = 0;
}

void
exec_pool_start(struct exec_pool *p)
{
	p->stopped = false;
}

void
exec_pool_stop(struct exec_pool *p)
{
	p->stopped = true;
	pool_drop_ending(p);
	deferred_cancel(&p->next);
}

static void
pool_refuse(struct exec_pool *p, struct local_call *c)
{
	struct buf name, text;

	buf_init(&name, CAP_URI_BYTES);
	buf_init(&text, CAP_URI_BYTES + 128);
	buf_addf(&text, "Tool '%s' is busy: %u calls run and %u wait; retry later.",
	    exec_tool_name(c, &name), p->n_running, p->n_waiting);
	local_reply_text(c, text.data, text.len, true);
	buf_fini(&text);
	buf_fini(&name);
}

void
exec_pool_add(struct exec_pool *p, struct local_call *c, struct exec_line *line)
{
	const struct exec_conf *conf = &p->host->u->conf->exec;
	struct exec_job *j;

	if (p->n_running + p->n_waiting >= (uint64_t)conf->concurrency + conf->queue) {
		exec_line_fini(line);
		pool_refuse(p, c);
		return;
	}
	j = mem_xcalloc(1, sizeof(*j));
	j->magic = EXEC_JOB_MAGIC;
	j->pool = p;
	j->call = c;
	j->line = *line;
	c->state = j;
	if (p->first == NULL && p->n_running < conf->concurrency) {
		job_start(j);
		return;
	}
	*p->tail = j;
	p->tail = &j->next;
	p->n_waiting++;
}

static void
pool_unlink(struct exec_pool *p, struct exec_job *j)
{
	struct exec_job **at = job_unlink(&p->first, j);

	if (j->next == NULL)
		p->tail = at;
	p->n_waiting--;
}

void
exec_pool_cancel(struct exec_pool *p, struct local_call *c)
{
	struct exec_job *j = c->state;

	if (j == NULL)
		return;
	MCPVISOR_ASSERT(j->magic == EXEC_JOB_MAGIC);
	c->state = NULL;
	j->call = NULL;
	if (j->run == NULL) {
		pool_unlink(p, j);
		job_free(j);
		return;
	}
	run_end_early(j->run);
	j->next = p->ending;
	p->ending = j;
	if (p->stopped)
		pool_drop_ending(p);
}

void
exec_job_answer(struct exec_job *j, const struct exec_rules *r, const struct run_end *e)
{
	struct run_end cut = *e;
	struct buf text;
	struct iovec iov;

	if (r->limits.err == EXEC_STDERR_LOG)
		exec_host_log_stderr(j->pool->host, e);
	buf_init(&text, CAP_MESSAGE_BYTES);
	exec_result_put(&text, r, e);
	/* A byte may take six: what does not fit is cut as what was too much. */
	if (text.err == MV_TOO_LONG && cut.out.n > EXEC_TEXT_SURE) {
		buf_fini(&text);
		cut.out.n = EXEC_TEXT_SURE;
		exec_result_put(&text, r, &cut);
	}
	iov = (struct iovec){text.data, text.len};
	if (text.err == MV_OK)
		local_reply(j->call, &iov, 1);
	else
		local_reply_error(j->call, EXEC_RPC_INTERNAL, mv_err_text(text.err));
	buf_fini(&text);
}
