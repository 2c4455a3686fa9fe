/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking input and output on descriptors whose open file description may
 * be shared with a shell, a terminal or a client.
 *
 * Owns: the descriptor, once adopted. Driven by: stream.
 * Invariants: O_NONBLOCK is never set on a description that we did not open.
 */
#include "stream_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A megabyte in pieces of the usual 64 KiB is sixteen times waking a process. Not for
 * every pipe from the start: what one user's pipes may hold together is bounded. */
#define PIPE_BYTES (256 * 1024)

static bool
stream_fd_reopen(int fd, int access)
{
	char path[32];
	bool ok;
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0)
		return false; /* no /proc, another user's pipe, no reader left */
	ok = dup3(own, fd, O_CLOEXEC) == fd;
	close(own);
	return ok;
}

void
stream_fd_adopt(struct stream_fd *f, int fd)
{
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;
	struct stat st;

	f->fd = fd;
	f->kind = STREAM_FD_GUARDED;
	f->write_pipe = false;
	f->small_pipe = false;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fstat(fd, &st) != 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		f->kind = STREAM_FD_SOCKET;
	} else if (S_ISFIFO(st.st_mode)) {
		f->write_pipe = access == O_WRONLY;
		f->small_pipe = access == O_RDONLY;
		if (stream_fd_reopen(fd, access))
			f->kind = STREAM_FD_NONBLOCK;
	} else if (S_ISCHR(st.st_mode) && isatty(fd)) {
		if (stream_fd_reopen(fd, access))
			f->kind = STREAM_FD_NONBLOCK;
	} else if (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)) {
		f->kind = STREAM_FD_PLAIN;
	}
}

static bool
stream_fd_is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	/* An error or hang-up counts: the call will tell. */
	if (poll(&p, 1, 0) > 0)
		return true;
	errno = EAGAIN;
	return false;
}

static ssize_t
stream_fd_receive(int fd, const struct iovec *iov, int n)
{
	struct iovec own[2];
	struct msghdr msg = {.msg_iov = own, .msg_iovlen = (size_t)n};

	memcpy(own, iov, (size_t)n * sizeof(*iov));
	return recvmsg(fd, &msg, MSG_DONTWAIT);
}

static ssize_t
stream_fd_send(int fd, const struct iovec *iov, int n)
{
	struct iovec own[32];
	struct msghdr msg = {.msg_iov = own};

	if (n > 32)
		n = 32;
	memcpy(own, iov, (size_t)n * sizeof(*iov));
	msg.msg_iovlen = (size_t)n;
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t
stream_fd_readv(const struct stream_fd *f, const struct iovec *iov, int n)
{
	ssize_t r;

	if (f->kind == STREAM_FD_GUARDED && !stream_fd_is_ready(f->fd, POLLIN))
		return -1;
	do
		r = f->kind == STREAM_FD_SOCKET ? stream_fd_receive(f->fd, iov, n)
						: readv(f->fd, iov, n);
	while (r < 0 && errno == EINTR);
	return r;
}

ssize_t
stream_fd_writev(const struct stream_fd *f, const struct iovec *iov, int n)
{
	ssize_t r;

	do {
		if (f->kind == STREAM_FD_SOCKET) {
			r = stream_fd_send(f->fd, iov, n);
		} else if (f->kind == STREAM_FD_GUARDED) {
			/* A writable pipe takes PIPE_BUF bytes without waiting. */
			if (!stream_fd_is_ready(f->fd, POLLOUT))
				return -1;
			r = write(f->fd, iov[0].iov_base,
			    iov[0].iov_len < PIPE_BUF ? iov[0].iov_len : PIPE_BUF);
		} else {
			r = writev(f->fd, iov, n);
		}
	} while (r < 0 && errno == EINTR);
	return r;
}

void
stream_fd_grow(struct stream_fd *f)
{
	if (f->small_pipe)
		(void)fcntl(f->fd, F_SETPIPE_SZ, PIPE_BYTES);
	f->small_pipe = false;
}

void
stream_fd_close(struct stream_fd *f)
{
	int fd = f->fd, null = -1;

	f->fd = -1;
	if (fd < 0)
		return;
	if (fd <= STDERR_FILENO)
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		close(fd);
		return;
	}
	dup2(null, fd);
	close(null);
}
