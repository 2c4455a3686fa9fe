/* SPDX-License-Identifier: MIT */
/* Descriptors as a stream needs them (never blocking, never changed for others),
 * and what the two halves of a stream share. */
#ifndef MCPVISOR_STREAM_PRIV_H
#define MCPVISOR_STREAM_PRIV_H

#include "mcpvisor/loop.h"
#include "mcpvisor/stream.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

enum stream_fd_kind {
	STREAM_FD_SOCKET,   /* each call says that it must not wait */
	STREAM_FD_NONBLOCK, /* a description of our own */
	STREAM_FD_PLAIN,    /* files and devices that never wait */
	STREAM_FD_GUARDED,  /* shared and blocking: asked with poll before each call */
};

struct stream_fd {
	int fd; /* -1: none, or closed */
	enum stream_fd_kind kind;
	bool write_pipe; /* becomes readable only by its reader's end */
	bool small_pipe; /* to read from, of the size that it was made with */
};

/* The number stays, what is behind it may be opened anew. */
void stream_fd_adopt(struct stream_fd *f, int fd);
/* As readv and writev; -1 with EAGAIN instead of waiting; never EINTR. */
ssize_t stream_fd_readv(const struct stream_fd *f, const struct iovec *iov, int n);
ssize_t stream_fd_writev(const struct stream_fd *f, const struct iovec *iov, int n);
/* A pipe that was full is made larger, once: whoever fills it waits less often. */
void stream_fd_grow(struct stream_fd *f);
/* 0, 1 and 2 become /dev/null, so that nothing else ever gets these numbers. */
void stream_fd_close(struct stream_fd *f);

#define STREAM_MAGIC 0x7374726du

struct chunk;

struct stream {
	unsigned magic;
	struct loop *loop;
	struct stream_cb cb;
	void *arg;
	struct stream_fd r, w;
	bool same_fd, dead;
	bool exempt; /* of waiting for memory */
	struct watch r_watch, w_watch;
	struct deferred later_in, later_out;
	struct mem_wait wait;

	size_t in_max;
	char *in;
	size_t in_off, in_len, in_cap;
	bool paused, again, first_read;
	bool in_ended, in_end_told;
	enum stream_end in_end;

	size_t out_max;
	struct chunk *out, *out_last;
	size_t out_len;
	bool out_closing, out_blocked, out_drained, out_end_told;
	int out_errnum;
};

/* stream_out.c */
void stream_out_update(struct stream *s); /* arms the watch as needed */
void stream_out_drop(struct stream *s);
void stream_on_later_out(void *arg);
void stream_on_writable(void *arg, unsigned ready);

#endif
