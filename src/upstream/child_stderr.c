/* SPDX-License-Identifier: MIT */
/*
 * A child's stderr into our log, line by line under its upstream's name.
 *
 * Owns: the reading end of the pipe.
 * Driven by: its descriptor; child opens and closes it.
 * Invariants: it is read whenever there is something, whatever the log level or
 * the rate limit, since a child that writes to a full pipe stops; one line's memory.
 */
#include "child_priv.h"

#include "mcpvisor/err.h"
#include "mcpvisor/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHILD_STDERR_MAGIC     0x63737472u
#define CHILD_STDERR_READ      16384
#define CHILD_STDERR_TURN      16 /* reads a turn */
#define CHILD_STDERR_FINAL     64 /* reads at the close: a full pipe of 1 MiB */
#define CHILD_STDERR_BURST     50
#define CHILD_STDERR_PERIOD_MS 10000

static bool
child_stderr_is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r';
}

/* Logs what is in the line buffer. */
static void
child_stderr_flush(struct child_stderr *s)
{
	size_t len = s->len;

	s->len = 0;
	while (len > 0 && child_stderr_is_blank(s->line[len - 1]))
		len--;
	if (len == 0)
		return;
	s->last_len = len < sizeof(s->last) ? len : sizeof(s->last);
	memcpy(s->last, s->line, s->last_len);
	if (log_is_on(LOG_LV_INFO))
		log_limited(&s->site, LOG_LV_INFO, "child", "stderr",
		    "upstream=%s line=%s", s->name, LOG_ESC(s->line, len));
}

static void
child_stderr_line_end(struct child_stderr *s)
{
	metrics_add(METRIC_STDERR_LINES, 1);
	if (!s->skipping)
		child_stderr_flush(s);
	s->skipping = false;
}

static void
child_stderr_take(struct child_stderr *s, const char *p, size_t n)
{
	while (n > 0) {
		const char *nl = memchr(p, '\n', n);
		size_t part = nl != NULL ? (size_t)(nl - p) : n;
		size_t room = sizeof(s->line) - s->len;

		if (!s->skipping) {
			memcpy(s->line + s->len, p, part < room ? part : room);
			s->len += part < room ? part : room;
			/* Now, not at its end: that may never come. */
			if (s->len == sizeof(s->line)) {
				child_stderr_flush(s);
				s->skipping = true;
			}
		}
		p += part;
		n -= part;
		if (nl != NULL) {
			child_stderr_line_end(s);
			p++;
			n--;
		}
	}
}

/* True when the end was seen. */
static bool
child_stderr_read(struct child_stderr *s, unsigned reads)
{
	char block[CHILD_STDERR_READ];

	while (reads-- > 0) {
		ssize_t n = read(s->fd, block, sizeof(block));

		if (n > 0)
			child_stderr_take(s, block, (size_t)n);
		else if (n == 0 || (errno != EINTR && errno != EAGAIN))
			return true;
		else if (errno == EAGAIN)
			return false;
	}
	return false;
}

static void
child_stderr_end(struct child_stderr *s)
{
	if (s->len > 0 || s->skipping)
		child_stderr_line_end(s);
	watch_fini(&s->watch);
	(void)close(s->fd);
	s->fd = -1;
}

static void
on_stderr_ready(void *arg, unsigned ready)
{
	struct child_stderr *s = arg;

	MCPVISOR_ASSERT(s->magic == CHILD_STDERR_MAGIC);
	(void)ready;
	if (child_stderr_read(s, CHILD_STDERR_TURN))
		child_stderr_end(s);
}

void
child_stderr_init(struct child_stderr *s, struct loop *l, const char *name)
{
	*s = (struct child_stderr){.magic = CHILD_STDERR_MAGIC,
	    .loop = l,
	    .name = name,
	    .fd = -1,
	    .site = {.burst = CHILD_STDERR_BURST, .period_ms = CHILD_STDERR_PERIOD_MS}};
}

void
child_stderr_open(struct child_stderr *s, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	MCPVISOR_ASSERT(s->fd < 0);
	/* A pipe's reading end is a description of its own: the child sees no change. */
	MCPVISOR_ASSERT(flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
	s->fd = fd;
	s->len = 0;
	s->skipping = false;
	s->last_len = 0;
	watch_init(&s->watch, s->loop, fd, on_stderr_ready, s);
	watch_want(&s->watch, WATCH_READ);
}

void
child_stderr_close(struct child_stderr *s)
{
	if (s->fd < 0)
		return;
	(void)child_stderr_read(s, CHILD_STDERR_FINAL);
	child_stderr_end(s);
}
