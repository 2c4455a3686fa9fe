/* SPDX-License-Identifier: MIT */
/*
 * The spawner for tests.
 *
 * Owns: records of processes that never were, and the far ends of their pipes.
 * Driven by: the test, through fake_spawn.h.
 * Invariants: as the real one: no callback inside spawner_start, none after
 * proc_free, on_exit once.
 */
#include "fake/fake_spawn.h"

#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define FAKE_FIRST_PID 1000
#define FAKE_SIGNALS   65

struct proc {
	struct proc *next;
	struct spawner *spawner;
	struct spawn_cb cb;
	void *arg;
	pid_t pid;
	int in, out, err; /* the child's ends */
	bool exited, freed, group_alive;
	int death; /* signal that ends it at the end of the turn */
	struct deferred die;
	unsigned signals[FAKE_SIGNALS];
};

struct spawner {
	struct loop *loop;
	struct proc *procs; /* newest first, gone ones included */
	unsigned starts, live;
	unsigned fail_n;
	int fail_errno;
	bool obedient, unkillable;
};

struct spawner *
spawner_new(struct loop *l)
{
	struct spawner *sp = mem_xcalloc(1, sizeof(*sp));

	sp->loop = l;
	sp->obedient = true;
	return sp;
}

void
spawner_free(struct spawner *sp)
{
	if (sp == NULL)
		return;
	MCPVISOR_ASSERT(sp->live == 0);
	while (sp->procs != NULL) {
		struct proc *p = sp->procs;

		sp->procs = p->next;
		fake_proc_close_all(p);
		mem_free(p);
	}
	mem_free(sp);
}

static void
on_die(void *arg)
{
	struct proc *p = arg;

	fake_proc_close_all(p);
	p->group_alive = false;
	fake_proc_exit(p, p->death);
}

void
spawner_wait_add(
    struct spawner *sp, struct spawner_wait *w, void (*fn)(void *arg), void *arg)
{
	(void)sp;
	*w = (struct spawner_wait){.fn = fn, .arg = arg};
}

void
spawner_wait_remove(struct spawner_wait *w)
{
	w->prev = NULL;
}

enum mv_err
spawner_start(struct spawner *sp, const struct spawn_spec *spec,
    const struct spawn_cb *cb, void *arg, struct proc **out, struct spawn_fds *fds)
{
	int ends[3][2];
	struct proc *p;

	MCPVISOR_ASSERT(spec->argv != NULL && spec->argv[0] != NULL);
	if (sp->fail_n > 0) {
		sp->fail_n--;
		errno = sp->fail_errno;
		return MV_SYSTEM;
	}
	for (size_t i = 0; i < 3; i++)
		MCPVISOR_ASSERT(pipe2(ends[i], O_CLOEXEC) == 0);
	p = mem_xcalloc(1, sizeof(*p));
	p->next = sp->procs;
	sp->procs = p;
	p->spawner = sp;
	p->cb = *cb;
	p->arg = arg;
	p->pid = (pid_t)(FAKE_FIRST_PID + sp->starts++);
	p->in = ends[0][0];
	p->out = ends[1][1];
	p->err = ends[2][1];
	deferred_init(&p->die, sp->loop, on_die, p);
	fds->in = ends[0][1];
	fds->out = ends[1][0];
	fds->err = ends[2][0];
	sp->live++;
	*out = p;
	return MV_OK;
}

pid_t
proc_pid(const struct proc *p)
{
	MCPVISOR_ASSERT(!p->freed);
	return p->pid;
}

bool
proc_has_exited(const struct proc *p)
{
	MCPVISOR_ASSERT(!p->freed);
	return p->exited;
}

bool
proc_signal_group(struct proc *p, int signo)
{
	MCPVISOR_ASSERT(!p->freed && signo > 0 && signo < FAKE_SIGNALS);
	p->signals[signo]++;
	if (p->exited)
		return p->group_alive;
	if ((signo == SIGKILL && !p->spawner->unkillable) ||
	    (signo == SIGTERM && p->spawner->obedient)) {
		p->death = signo;
		deferred_ask(&p->die);
	}
	return true;
}

bool
proc_group_is_alive(const struct proc *p)
{
	MCPVISOR_ASSERT(!p->freed);
	return !p->exited || p->group_alive;
}

bool
proc_group_is_gone(const struct proc *p)
{
	return !proc_group_is_alive(p);
}

void
proc_free(struct proc *p)
{
	if (p == NULL)
		return;
	MCPVISOR_ASSERT(!p->freed);
	deferred_cancel(&p->die);
	p->freed = true;
	p->spawner->live--;
	p->group_alive = false;
	fake_proc_close_all(p);
}

/* ---- the test's side ---- */

void
fake_spawner_fail(struct spawner *sp, unsigned n, int errnum)
{
	sp->fail_n = n;
	sp->fail_errno = errnum;
}

void
fake_spawner_set_obedient(struct spawner *sp, bool obedient)
{
	sp->obedient = obedient;
}

void
fake_spawner_set_unkillable(struct spawner *sp, bool unkillable)
{
	sp->unkillable = unkillable;
}

unsigned
fake_spawner_starts(const struct spawner *sp)
{
	return sp->starts;
}

unsigned
fake_spawner_live(const struct spawner *sp)
{
	return sp->live;
}

struct proc *
fake_spawner_last(const struct spawner *sp)
{
	return sp->procs;
}

void
fake_proc_fail_exec(struct proc *p, enum spawn_step step, int errnum)
{
	MCPVISOR_ASSERT(!p->freed && !p->exited);
	p->cb.on_exec_failed(p->arg, step, errnum);
}

void
fake_proc_exit(struct proc *p, int status)
{
	MCPVISOR_ASSERT(!p->freed && !p->exited);
	deferred_cancel(&p->die);
	p->exited = true;
	p->cb.on_exit(p->arg, status);
}

int
fake_proc_stdin(const struct proc *p)
{
	return p->in;
}

int
fake_proc_stdout(const struct proc *p)
{
	return p->out;
}

int
fake_proc_stderr(const struct proc *p)
{
	return p->err;
}

void
fake_proc_close(struct proc *p, int fd)
{
	int *ends[] = {&p->in, &p->out, &p->err};

	for (size_t i = 0; i < 3; i++) {
		if (fd >= 0 && *ends[i] == fd) {
			(void)close(fd);
			*ends[i] = -1;
		}
	}
}

void
fake_proc_close_all(struct proc *p)
{
	fake_proc_close(p, p->in);
	fake_proc_close(p, p->out);
	fake_proc_close(p, p->err);
}

void
fake_proc_set_group_alive(struct proc *p, bool alive)
{
	p->group_alive = alive;
}

unsigned
fake_proc_signals(const struct proc *p, int signo)
{
	return p->signals[signo];
}

bool
fake_proc_is_freed(const struct proc *p)
{
	return p->freed;
}
