/* SPDX-License-Identifier: MIT */
/*
 * Child processes: starting, watching, signalling, and the only reaper.
 *
 * Owns: the status socket and the guard's pipe of each proc.
 * Driven by: SIGCHLD and the status sockets.
 * Invariants: reaping happens in a turn of the loop only and a start registers
 * both processes before it returns, so no status can come before its record;
 * the number of a group is used only while one of the two unreaped processes
 * holds it; whatever came with the exec failure is told before the exit.
 */
#include "mcpvisor/spawn.h"

#include "spawn_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_WANTED 65536

/* Both ends of everything that a start opens; -1: not open. */
struct spawn_ends {
	int in[2], out[2], err[2], status[2], guard[2];
};

static void
fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

static void
spawn_ends_close(struct spawn_ends *e)
{
	int *pairs[] = {e->in, e->out, e->err, e->status, e->guard};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		fd_close(&pairs[i][0]);
		fd_close(&pairs[i][1]);
	}
}

/* The child's ends must not be where it puts its standard descriptors. */
static bool
fd_raise(int *fd)
{
	int up;

	if (*fd > STDERR_FILENO)
		return true;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (up < 0)
		return false;
	close(*fd);
	*fd = up;
	return true;
}

static bool
spawn_ends_open(struct spawn_ends *e, const struct spawn_spec *spec)
{
	int *pipes[] = {spec->stdin_fd > 0 ? NULL : e->in, e->out,
	    spec->merges_err ? NULL : e->err, e->guard};
	bool ok = true;

	memset(e, -1, sizeof(*e));
	for (size_t i = 0; ok && i < sizeof(pipes) / sizeof(*pipes); i++)
		ok = !pipes[i] || (pipe2(pipes[i], O_CLOEXEC) == 0 &&
				      fd_raise(&pipes[i][0]) && fd_raise(&pipes[i][1]));
	ok = ok && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->status) == 0 &&
	     fd_raise(&e->status[0]) && fd_raise(&e->status[1]);
	if (!ok)
		spawn_ends_close(e);
	return ok;
}

static bool
proc_group_is_known(const struct proc *p)
{
	return !p->exited || !p->guard_reaped;
}

/* Also called before the exit is told: the child has written all by then. */
static void
proc_read_status(struct proc *p)
{
	struct spawn_report report;
	ssize_t n;

	if (p->status_fd < 0)
		return;
	n = recv(p->status_fd, &report, sizeof(report), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !p->exited)
		return;
	watch_fini(&p->status);
	fd_close(&p->status_fd);
	if (n == (ssize_t)sizeof(report))
		p->cb.on_exec_failed(p->arg, report.step, report.errnum);
}

static void
on_status(void *arg, unsigned ready)
{
	struct proc *p = arg;

	MCPVISOR_ASSERT(p->magic == PROC_MAGIC);
	(void)ready;
	proc_read_status(p);
}

static void
proc_on_exit(struct proc *p, int status)
{
	p->exited = true;
	proc_read_status(p);
	if (!p->dead)
		p->cb.on_exit(p->arg, status);
}

/* pid is a zombie of ours. False if it could not be reaped. */
static bool
spawner_reap(struct spawner *sp, pid_t pid)
{
	struct pidrec *r = spawner_find(sp, pid);
	struct proc *p = r ? r->proc : NULL;
	bool is_guard = r && r->is_guard;
	int status = 0;

	if (!r)
		spawner_note_stray(sp, pid);
	/* The last holder of the number goes: nobody could end the rest later. */
	if (p && !is_guard && p->guard_reaped)
		kill(-p->pid, SIGKILL);
	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	if (r)
		spawner_forget(sp, r);
	if (!p)
		return true;
	if (!is_guard) {
		proc_on_exit(p, status);
		return true;
	}
	p->guard_reaped = true;
	if (!p->killed)
		LOG_WARNING("spawn", "guard lost", "of=%s pid=%d",
		    LOG_ESC(p->name, strlen(p->name)), (int)pid);
	return true;
}

static void
on_look(void *arg)
{
	struct spawner *sp = arg;

	MCPVISOR_ASSERT(sp->magic == SPAWNER_MAGIC);
	spawner_look(sp);
}

static void
on_child_signal(void *arg)
{
	struct spawner *sp = arg;
	siginfo_t info;

	MCPVISOR_ASSERT(sp->magic == SPAWNER_MAGIC);
	while (!sp->dead) {
		/* A look first: a zombie can still be asked who it was. */
		memset(&info, 0, sizeof(info));
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid == 0 || !spawner_reap(sp, info.si_pid))
			break;
	}
}

/* A fleet and its clients take more descriptors than the usual soft limit; a child that
 * still uses select(2) must not get them. */
static void
spawner_raise_files(struct spawner *sp)
{
	struct rlimit more;

	if (getrlimit(RLIMIT_NOFILE, &sp->files) != 0)
		return;
	more = sp->files;
	more.rlim_cur = more.rlim_max < FILES_WANTED ? more.rlim_max : FILES_WANTED;
	if (more.rlim_cur > sp->files.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) != 0)
		LOG_NOTICE("spawn", "descriptor limit stays", "errno=%d", errno);
}

struct spawner *
spawner_new(struct loop *l)
{
	struct spawner *sp = mem_xcalloc(1, sizeof(*sp));

	sp->magic = SPAWNER_MAGIC;
	sp->loop = l;
	deferred_init(&sp->look, l, on_look, sp);
	if (!loop_on_signal(l, SIGCHLD, on_child_signal, sp)) {
		mem_free(sp);
		return NULL;
	}
	spawner_raise_files(sp);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		LOG_WARNING("spawn", "no subreaper", "errno=%d", errno);
	return sp;
}

static void
on_spawner_destroy(void *p)
{
	struct spawner *sp = p;

	MCPVISOR_ASSERT(sp->magic == SPAWNER_MAGIC);
	sp->magic = 0;
	mem_free(sp);
}

void
spawner_free(struct spawner *sp)
{
	if (!sp || sp->dead)
		return;
	spawner_call_waits(sp);
	spawner_look(sp);
	deferred_cancel(&sp->look);
	spawner_forget_all(sp);
	sp->dead = true;
	loop_on_signal(sp->loop, SIGCHLD, NULL, NULL);
	loop_defer_free(sp->loop, on_spawner_destroy, sp);
}

/* Forks guard and child with all signals blocked, so that no handler of ours runs
 * in either of them. A pid is -1 where it did not come to that. */
static bool
spawn_fork(
    struct spawn_plan *plan, const struct spawn_ends *e, pid_t *guard, pid_t *child)
{
	pid_t group = getpgrp();
	sigset_t all, old;
	int saved;

	plan->parent = getpid();
	*child = -1;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	*guard = fork();
	if (*guard == 0)
		spawn_guard_run(e->guard[0], group);
	if (*guard > 0)
		*child = fork();
	if (*child == 0)
		spawn_child_run(plan);
	saved = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return *child > 0;
}

static struct proc *
proc_new(struct spawner *sp, const struct spawn_spec *spec, const struct spawn_cb *cb,
    void *arg)
{
	struct proc *p = mem_xcalloc(1, sizeof(*p));

	p->magic = PROC_MAGIC;
	p->sp = sp;
	p->cb = *cb;
	p->arg = arg;
	p->name = mem_xstrdup(spec->name ? spec->name : spec->argv[0]);
	return p;
}

/* Takes over what the parent keeps of e; the rest is closed. */
static void
proc_adopt(struct proc *p, struct spawn_ends *e, struct spawn_fds *fds)
{
	p->status_fd = e->status[0];
	p->guard_fd = e->guard[1];
	fds->in = e->in[1];
	fds->out = e->out[0];
	fds->err = e->err[0];
	e->status[0] = e->guard[1] = e->in[1] = e->out[0] = e->err[0] = -1;
	spawn_ends_close(e);
	watch_init(&p->status, p->sp->loop, p->status_fd, on_status, p);
	watch_want(&p->status, WATCH_READ);
	spawner_register(p->sp, p->pid, p, false);
	spawner_register(p->sp, p->guard, p, true);
	metrics_add(METRIC_CHILD_SPAWNS, 1);
}

static void
spawner_abandon(struct spawner *sp, pid_t pid)
{
	int saved = errno;

	if (pid > 0) {
		kill(pid, SIGKILL);
		spawner_register(sp, pid, NULL, false);
	}
	errno = saved;
}

enum mv_err
spawner_start(struct spawner *sp, const struct spawn_spec *spec,
    const struct spawn_cb *cb, void *arg, struct proc **out, struct spawn_fds *fds)
{
	struct spawn_plan plan = {.spec = spec, .files = &sp->files};
	pid_t guard = -1, child = -1;
	struct spawn_ends e;
	bool ok;

	MCPVISOR_ASSERT(spec->stdin_fd <= 0 || spec->stdin_fd > STDERR_FILENO);
	MCPVISOR_ASSERT(spec->extra_fd <= 0 || spec->extra_fd > STDERR_FILENO);
	if (!spawn_ends_open(&e, spec))
		return MV_SYSTEM;
	plan.candidates = spawn_candidates(spec);
	plan.in = spec->stdin_fd > 0 ? spec->stdin_fd : e.in[0];
	plan.out = e.out[1];
	plan.err = spec->merges_err ? e.out[1] : e.err[1];
	plan.status = e.status[1];
	/* The child has not gone on yet, so both moves are allowed. */
	ok = spawn_fork(&plan, &e, &guard, &child) && setpgid(child, child) == 0 &&
	     setpgid(guard, child) == 0;
	spawn_candidates_free(plan.candidates);
	if (!ok) {
		spawner_abandon(sp, child);
		spawner_abandon(sp, guard);
		spawn_ends_close(&e);
		return MV_SYSTEM;
	}
	/* If it is dead already its exit will tell. */
	(void)!send(e.status[0], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	*out = proc_new(sp, spec, cb, arg);
	(*out)->pid = child;
	(*out)->guard = guard;
	proc_adopt(*out, &e, fds);
	LOG_DEBUG("spawn", "started", "of=%s pid=%d guard=%d",
	    LOG_ESC((*out)->name, strlen((*out)->name)), (int)child, (int)guard);
	return MV_OK;
}

pid_t
proc_pid(const struct proc *p)
{
	return p->pid;
}

bool
proc_has_exited(const struct proc *p)
{
	return p->exited;
}

bool
proc_signal_group(struct proc *p, int signo)
{
	bool alive = proc_group_is_alive(p);

	if (!proc_group_is_known(p))
		return false;
	if (signo == SIGKILL)
		p->killed = true;
	kill(-p->pid, signo);
	return alive;
}

/* The first process runs and is in the group: no need to look at all of /proc, which
 * with many children to end takes longer than there is time. */
static bool
proc_leads_group(const struct proc *p)
{
	siginfo_t info = {.si_pid = 0};

	return !p->exited && getpgid(p->pid) == p->pid &&
	       waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

bool
proc_group_is_alive(const struct proc *p)
{
	return proc_group_is_known(p) &&
	       (proc_leads_group(p) || spawn_group_has_others(p->pid, p->guard));
}

bool
proc_group_is_gone(const struct proc *p)
{
	return (kill(-p->pid, 0) != 0 && errno == ESRCH) ||
	       !spawn_group_has_others(p->pid, 0);
}

static void
on_proc_destroy(void *arg)
{
	struct proc *p = arg;

	MCPVISOR_ASSERT(p->magic == PROC_MAGIC);
	p->magic = 0;
	mem_free(p);
}

void
proc_free(struct proc *p)
{
	if (!p || p->dead)
		return;
	p->dead = true;
	if (proc_group_is_known(p))
		kill(-p->pid, SIGKILL);
	spawner_disown(p->sp, p);
	/* One look for all that end in a turn: at the end of a fleet they are many. */
	spawner_look_later(p->sp, p->name);
	p->name = NULL;
	watch_fini(&p->status);
	fd_close(&p->status_fd);
	fd_close(&p->guard_fd);
	loop_defer_free(p->sp->loop, on_proc_destroy, p);
}
