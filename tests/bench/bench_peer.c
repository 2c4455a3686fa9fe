/* SPDX-License-Identifier: MIT */
/*
 * The process under test and the two pipes to it.
 *
 * Owns: the process, the pipes, a buffer a direction.
 * Driven by: bench_load.
 * Invariants: never blocks in a write, so that a peer which stops reading until it
 * is read from goes on.
 */
#include "bench_peer.h"

#include "bench_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_MAX ((size_t)512 * 1024 * 1024)
#define READ_BYTES ((size_t)256 * 1024)
#define END_MS	   5000
#define KILL_MS	   1000

static _Noreturn void
child_run(char *const *argv, int in, int out, bool quiet)
{
	int null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    (!quiet || dup2(null, STDERR_FILENO) >= 0))
		execvp(argv[0], argv);
	_exit(127);
}

bool
peer_start(struct peer *p, char *const *argv, bool quiet, unsigned limit_s)
{
	int to[2], from[2];

	*p = (struct peer){.pid = -1};
	buf_init(&p->in, BUFFER_MAX);
	buf_init(&p->out, BUFFER_MAX);
	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
		perror("bench_load: pipe");
		return false;
	}
	p->limit_ns = bench_now_ns() + limit_s * UINT64_C(1000000000);
	p->pid = fork();
	if (p->pid == 0)
		child_run(argv, to[0], from[1], quiet);
	(void)close(to[0]);
	(void)close(from[1]);
	p->wfd = to[1];
	p->rfd = from[0];
	if (p->pid < 0 || fcntl(p->wfd, F_SETFL, O_NONBLOCK) != 0 ||
	    fcntl(p->rfd, F_SETFL, O_NONBLOCK) != 0) {
		perror("bench_load: start");
		return false;
	}
	return true;
}

static void
peer_write(struct peer *p)
{
	while (p->out_off < p->out.len && !p->ended) {
		ssize_t n =
		    write(p->wfd, p->out.data + p->out_off, p->out.len - p->out_off);

		if (n >= 0)
			p->out_off += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			p->ended = true;
	}
	p->out_off = 0;
	buf_reset(&p->out);
}

static void
peer_read(struct peer *p)
{
	ssize_t n;

	if (p->in_off > 0) {
		buf_drop(&p->in, p->in_off);
		p->in_seen -= p->in_off;
		p->in_off = 0;
	}
	if (buf_reserve(&p->in, READ_BYTES) != MV_OK) {
		p->ended = true;
		return;
	}
	n = read(p->rfd, p->in.data + p->in.len, p->in.cap - p->in.len);
	if (n > 0) {
		p->in.len += (size_t)n;
		p->bytes += (uint64_t)n;
		p->read_ns = bench_now_ns();
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		p->ended = true;
	}
}

bool
peer_turn(struct peer *p)
{
	uint64_t now = bench_now_ns();
	struct pollfd fds[2] = {{.fd = p->rfd, .events = POLLIN}, {.fd = -1}};

	peer_write(p);
	if (p->out.len > 0)
		fds[1] = (struct pollfd){.fd = p->wfd, .events = POLLOUT};
	if (p->ended || now >= p->limit_ns)
		return false;
	if (poll(fds, 2, (int)((p->limit_ns - now) / 1000000 + 1)) < 0 && errno != EINTR)
		return false;
	if (fds[0].revents != 0)
		peer_read(p);
	return !p->ended;
}

bool
peer_next_line(struct peer *p, struct piece *line)
{
	const char *nl = NULL;

	if (p->in_seen < p->in.len)
		nl = memchr(p->in.data + p->in_seen, '\n', p->in.len - p->in_seen);
	if (nl == NULL) {
		p->in_seen = p->in.len;
		return false;
	}
	line->p = p->in.data + p->in_off;
	line->n = (size_t)(nl - line->p);
	p->in_off = p->in_seen = p->in_off + line->n + 1;
	return true;
}

/* Its output is read on, or it could not end. */
static bool
peer_wait(struct peer *p, int *status, unsigned ms)
{
	uint64_t until = bench_now_ns() + ms * UINT64_C(1000000);
	static char sink[65536];
	bool open = true;
	pid_t pid;

	while ((pid = waitpid(p->pid, status, WNOHANG)) == 0 && bench_now_ns() < until) {
		struct pollfd fd = {.fd = open ? p->rfd : -1, .events = POLLIN};

		(void)poll(&fd, 1, 2);
		if (fd.revents != 0)
			open = read(p->rfd, sink, sizeof(sink)) > 0;
	}
	return pid != 0;
}

bool
peer_end(struct peer *p)
{
	static const struct {
		int signo;
		unsigned ms;
	} ladder[] = {{0, END_MS}, {SIGTERM, KILL_MS}, {SIGKILL, KILL_MS}};
	bool gone = false, good = false;
	int status = 0;

	if (p->pid < 0)
		return false;
	(void)close(p->wfd);
	for (size_t i = 0; i < sizeof(ladder) / sizeof(ladder[0]) && !gone; i++) {
		if (ladder[i].signo != 0)
			(void)kill(p->pid, ladder[i].signo);
		gone = peer_wait(p, &status, ladder[i].ms);
		good = gone && i == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	(void)close(p->rfd);
	buf_fini(&p->in);
	buf_fini(&p->out);
	return good;
}
