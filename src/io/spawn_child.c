/* SPDX-License-Identifier: MIT */
/*
 * What runs between fork and exec.
 *
 * Owns: nothing that outlives it. Driven by: spawn.
 * Invariants: no allocation, no log, no lock after the fork; the command starts
 * with default dispositions, an empty mask and the descriptors 0, 1 and 2.
 */
#include "spawn_priv.h"

#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_PATH	    "/usr/local/bin:/usr/bin:/bin"
#define STATUS_FD	    3
#define CLOSE_FALLBACK_MAX  65536
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND	    127

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

/* False: errno says why. */
static bool
spawn_child_setup(const struct spawn_plan *plan)
{
	if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
		return false;
	/* Whoever died before that call sends no signal. */
	if (getppid() != plan->parent)
		_exit(EXIT_CANNOT_EXECUTE);
	if (dup2(plan->in, STDIN_FILENO) < 0 || dup2(plan->out, STDOUT_FILENO) < 0 ||
	    dup2(plan->err, STDERR_FILENO) < 0)
		return false;
	return true;
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
	ssize_t got;
	char go;

	if (!spawn_child_setup(plan))
		spawn_child_fail(status, SPAWN_STEP_SETUP, errno);
	if (status != STATUS_FD && dup3(status, STATUS_FD, O_CLOEXEC) != STATUS_FD)
		spawn_child_fail(status, SPAWN_STEP_SETUP, errno);
	status = STATUS_FD;
	spawn_close_from(STATUS_FD + 1);
	do
		got = recv(status, &go, 1, 0);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(EXIT_CANNOT_EXECUTE);
	spawn_child_reset_signals();
	(void)setrlimit(RLIMIT_NOFILE, plan->files);
	if (plan->spec->cwd && chdir(plan->spec->cwd) != 0)
		spawn_child_fail(status, SPAWN_STEP_CWD, errno);
	spawn_child_fail(status, SPAWN_STEP_EXEC, spawn_child_exec(plan));
}
