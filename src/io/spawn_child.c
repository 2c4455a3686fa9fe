/* SPDX-License-Identifier: MIT */
/*
 * What runs between fork and exec.
 *
 * Owns: nothing that outlives it. Driven by: spawn.
 * Invariants: no allocation, no log, no lock after the fork; the command starts
 * with default dispositions, an empty mask and the descriptors 0, 1 and 2, and 3 if
 * that was asked for. Rights are given up in an order in which each step is still
 * allowed: groups, group, user; then what a change of those undoes (the signal at our
 * death); limits last, as the rest may need more.
 */
#include "spawn_priv.h"

#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH	    "/usr/local/bin:/usr/bin:/bin"
#define EXTRA_FD	    3
#define CLOSE_FALLBACK_MAX  65536
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND	    127

/* The plain calls: the library's tell other threads, with locks, and after a fork of one
 * with threads that is not safe. Where ids were once short the long ones have names of
 * their own. */
#ifdef SYS_setgroups32
#define SPAWN_SETGROUPS SYS_setgroups32
#define SPAWN_SETRESGID SYS_setresgid32
#define SPAWN_SETRESUID SYS_setresuid32
#else
#define SPAWN_SETGROUPS SYS_setgroups
#define SPAWN_SETRESGID SYS_setresgid
#define SPAWN_SETRESUID SYS_setresuid
#endif

const char *
spawn_step_text(enum spawn_step step)
{
	static const char *const texts[] = {
	    [SPAWN_STEP_NONE] = "cannot create a process",
	    [SPAWN_STEP_SETUP] = "cannot set up the process",
	    [SPAWN_STEP_USER] = "cannot change the user",
	    [SPAWN_STEP_CWD] = "cannot change directory",
	    [SPAWN_STEP_EXEC] = "cannot execute",
	};

	return texts[step];
}

char **
spawn_candidates(const struct spawn_spec *spec)
{
	const char *name = spec->argv[0], *path = spec->path ? spec->path : DEFAULT_PATH;
	size_t n = 0, len = strlen(name);
	char **list;

	if (len == 0 || strchr(name, '/')) {
		list = mem_xcalloc(2, sizeof(*list));
		list[0] = mem_xstrdup(name);
		return list;
	}
	for (const char *p = path; *p; p++)
		n += *p == ':';
	list = mem_xcalloc(n + 2, sizeof(*list));
	n = 0;
	for (const char *p = path; p;) {
		const char *colon = strchr(p, ':');
		size_t dir = colon ? (size_t)(colon - p) : strlen(p);
		char *full = mem_xalloc(dir + len + 3);

		/* An empty element is the working directory. */
		memcpy(full, dir ? p : ".", dir ? dir : 1);
		dir = dir ? dir : 1;
		full[dir] = '/';
		memcpy(full + dir + 1, name, len + 1);
		list[n++] = full;
		p = colon ? colon + 1 : NULL;
	}
	return list;
}

void
spawn_candidates_free(char **candidates)
{
	for (char **c = candidates; c && *c; c++)
		mem_free(*c);
	mem_free(candidates);
}

void
spawn_close_from(unsigned low)
{
	struct rlimit lim;
	unsigned max = CLOSE_FALLBACK_MAX;

	if (close_range(low, ~0u, 0) == 0)
		return;
	/* An old kernel, or a filter that does not know the call. */
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < max)
		max = (unsigned)lim.rlim_cur;
	for (unsigned fd = low; fd < max; fd++)
		close((int)fd);
}

_Noreturn static void
spawn_child_fail(int status, enum spawn_step step, int errnum)
{
	struct spawn_report report = {.step = step, .errnum = errnum};

	(void)!send(status, &report, sizeof(report), MSG_NOSIGNAL);
	_exit(errnum == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

static void
spawn_child_reset_signals(void)
{
	struct sigaction def = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		sigaction(signo, &def, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The descriptors; *status is where it is from then on. False: errno says why. */
static bool
spawn_child_descriptors(const struct spawn_plan *plan, int *status)
{
	int extra = plan->spec->extra_fd;
	int last = extra > 0 ? EXTRA_FD + 1 : EXTRA_FD;

	if (dup2(plan->in, STDIN_FILENO) < 0 || dup2(plan->out, STDOUT_FILENO) < 0 ||
	    dup2(plan->err, STDERR_FILENO) < 0)
		return false;
	if (extra > 0 && *status == EXTRA_FD) {
		int up = fcntl(*status, F_DUPFD_CLOEXEC, EXTRA_FD + 1);

		if (up < 0)
			return false;
		*status = up;
	}
	if (extra == EXTRA_FD ? fcntl(extra, F_SETFD, 0) < 0
			      : extra > 0 && dup2(extra, EXTRA_FD) < 0)
		return false;
	if (*status != last && dup3(*status, last, O_CLOEXEC) < 0)
		return false;
	*status = last;
	spawn_close_from((unsigned)last + 1);
	return true;
}

/* Not by a session of its own: a group is within one session, and the guard must be in
 * the group. Who leads no session gives up its terminal for itself alone, and its
 * children have none. */
static void
spawn_child_leave_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)ioctl(fd, TIOCNOTTY);
	close(fd);
}

/* False: errno says why. */
static bool
spawn_child_become(const struct spawn_spec *spec)
{
	const struct spawn_user *u = spec->user;

	/* Our pipes become its own: who may not open them cannot use /dev/stdout. */
	for (int fd = spec->stdin_fd > 0 ? STDOUT_FILENO : STDIN_FILENO;
	     fd <= STDERR_FILENO; fd++)
		(void)!fchown(fd, u->uid, u->gid);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SPAWN_SETGROUPS, u->groups ? u->n_groups : 0, u->groups) == 0 &&
	       syscall(SPAWN_SETRESGID, u->gid, u->gid, u->gid) == 0 &&
	       syscall(SPAWN_SETRESUID, u->uid, u->uid, u->uid) == 0;
}

/* As low as wanted; spare is what the hard limit is above. False: errno says why. */
static bool
spawn_child_limit(int what, uint64_t want, rlim_t spare)
{
	struct rlimit lim;

	if (want == 0)
		return true;
	if (getrlimit(what, &lim) != 0)
		return false;
	if (lim.rlim_max > want + spare)
		lim.rlim_max = want + spare;
	lim.rlim_cur = lim.rlim_max < want ? lim.rlim_max : want;
	return setrlimit(what, &lim) == 0;
}

/* The address space last: what we have still is larger, and must not grow. */
static bool
spawn_child_limits(const struct spawn_plan *plan)
{
	const struct spawn_limits *l = plan->spec->limits;

	(void)setrlimit(RLIMIT_NOFILE, plan->files);
	/* A second between the signal that names the reason and the one that does not. */
	return !l || (spawn_child_limit(RLIMIT_CPU, l->cpu_s, 1) &&
			 spawn_child_limit(RLIMIT_NOFILE, l->nofile, 0) &&
			 spawn_child_limit(RLIMIT_NPROC, l->nproc, 0) &&
			 spawn_child_limit(RLIMIT_FSIZE, l->fsize_bytes, 0) &&
			 spawn_child_limit(RLIMIT_AS, l->as_bytes, 0));
}

/* SPAWN_STEP_NONE: all is done; else errno says why not. */
static enum spawn_step
spawn_child_setup(const struct spawn_plan *plan)
{
	const struct spawn_spec *spec = plan->spec;

	spawn_child_reset_signals();
	if (spec->has_umask)
		umask(spec->umask);
	if (spec->no_terminal)
		spawn_child_leave_terminal();
	if (spec->user && !spawn_child_become(spec))
		return SPAWN_STEP_USER;
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
		return SPAWN_STEP_SETUP;
	/* Whoever died before that call sends no signal. */
	if (getppid() != plan->parent)
		_exit(EXIT_CANNOT_EXECUTE);
	if (spec->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return SPAWN_STEP_SETUP;
	if (spec->cwd && chdir(spec->cwd) != 0)
		return SPAWN_STEP_CWD;
	return spawn_child_limits(plan) ? SPAWN_STEP_NONE : SPAWN_STEP_SETUP;
}

/* As execvp, without its shell. */
static int
spawn_child_exec(const struct spawn_plan *plan)
{
	union {
		const char *const *in;
		char *const *out;
	} argv = {.in = plan->spec->argv}, envp = {.in = plan->spec->envp};
	bool denied = false;

	errno = ENOENT;
	for (char **c = plan->candidates; *c; c++) {
		execve(*c, argv.out, envp.out);
		if (errno == EACCES)
			denied = true;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG &&
			 errno != ELOOP && errno != ENODEV && errno != ESTALE)
			return errno;
	}
	return denied ? EACCES : errno;
}

_Noreturn void
spawn_child_run(const struct spawn_plan *plan)
{
	int status = plan->status;
	enum spawn_step failed;
	ssize_t got;
	char go;

	if (setpgid(0, 0) != 0 || !spawn_child_descriptors(plan, &status))
		spawn_child_fail(status, SPAWN_STEP_SETUP, errno);
	do
		got = recv(status, &go, 1, 0);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(EXIT_CANNOT_EXECUTE);
	failed = spawn_child_setup(plan);
	if (failed != SPAWN_STEP_NONE)
		spawn_child_fail(status, failed, errno);
	spawn_child_fail(status, SPAWN_STEP_EXEC, spawn_child_exec(plan));
}
