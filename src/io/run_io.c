/* SPDX-License-Identifier: MIT */
/*
 * What a run's program reads and writes.
 *
 * Owns: our ends of its output, what is kept of it. Driven by: readiness of the pipes.
 * Invariants: input is in a file of memory before the start, so that nothing has to be
 * fed and the end of the program is never waited for by a write; all output is read to
 * its end whatever is kept, so that nobody blocks on a full pipe; what is kept never
 * passes twice the maximum and one block.
 */
#include "run_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/err.h"
#include "mcpvisor/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RUN_BLOCK_BYTES ((size_t)16 * 1024)
#define RUN_TURN_READS	16
#define RUN_INPUT_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Newer than the headers of some: without it a kernel may be set to refuse. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* The last max bytes; what is before them goes when there is twice as much. */
static void
run_pipe_keep_tail(struct run_pipe *p, const char *data, size_t n)
{
	if (n > p->max) {
		data += n - p->max;
		n = p->max;
	}
	if (p->kept.len + n > 2 * p->max)
		buf_drop(&p->kept, p->kept.len + n - p->max);
	buf_add(&p->kept, data, n);
}

static void
run_pipe_keep(struct run_pipe *p, const char *data, size_t n)
{
	size_t room = p->max - p->kept.len;

	p->total += n;
	if (p->is_tail)
		run_pipe_keep_tail(p, data, n);
	else
		buf_add(&p->kept, data, n < room ? n : room);
}

/* A few blocks a turn: others wait. False: it has ended. */
static bool
run_pipe_read(struct run_pipe *p)
{
	char block[RUN_BLOCK_BYTES];

	for (int i = 0; i < RUN_TURN_READS; i++) {
		ssize_t n = read(p->fd, block, sizeof(block));

		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		run_pipe_keep(p, block, (size_t)n);
	}
	return true;
}

static void
on_pipe(void *arg, unsigned ready)
{
	struct run_pipe *p = arg;

	MCPVISOR_ASSERT(p->magic == RUN_PIPE_MAGIC);
	(void)ready;
	if (!run_pipe_read(p))
		run_pipe_close(p);
	run_on_pipe(p->run);
}

void
run_pipe_init(struct run_pipe *p, struct run *r, size_t max, bool is_tail)
{
	*p = (struct run_pipe){
	    .magic = RUN_PIPE_MAGIC, .run = r, .fd = -1, .max = max, .is_tail = is_tail};
	buf_init(&p->kept, is_tail ? 2 * max : max);
}

void
run_pipe_open(struct run_pipe *p, struct loop *l, int fd)
{
	p->fd = fd;
	if (fd < 0)
		return;
	/* The other end is another open file: the program's own writes still block. */
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	watch_init(&p->watch, l, fd, on_pipe, p);
	watch_want(&p->watch, WATCH_READ);
}

void
run_pipe_close(struct run_pipe *p)
{
	watch_fini(&p->watch);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void
run_pipe_drop(struct run_pipe *p)
{
	buf_fini(&p->kept);
	p->max = 0;
}

struct run_text
run_pipe_text(const struct run_pipe *p)
{
	size_t n = p->kept.len < p->max ? p->kept.len : p->max;

	if (n == 0)
		return (struct run_text){.p = "", .n = 0};
	return (struct run_text){.p = p->kept.data + p->kept.len - n, .n = n};
}

/* Out of the way of the standard descriptors. */
static int
run_fd_raise(int fd)
{
	int up;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return up;
}

int
run_input_open(const struct run_bytes *b)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd, saved;

	if (b->n > CAP_MESSAGE_BYTES) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create("input", flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("input", flags);
	fd = run_fd_raise(fd);
	if (fd < 0)
		return -1;
	if (file_write(fd, b->p, b->n) && lseek(fd, 0, SEEK_SET) == 0) {
		(void)fcntl(fd, F_ADD_SEALS, RUN_INPUT_SEALS);
		return fd;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int
run_null_open(void)
{
	return run_fd_raise(open("/dev/null", O_RDONLY | O_CLOEXEC));
}
