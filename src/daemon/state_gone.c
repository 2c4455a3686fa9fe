/* SPDX-License-Identifier: MIT */
/*
 * The sessions that must not come back: a file of lines that all processes of a folder
 * append to and read on in.
 *
 * Owns: the file's descriptor, the sessions that it names.
 * Driven by: the endpoint, when sessions end and when one shows its id.
 * Invariants: a mark is one append of one line; a torn line spoils no other. A file that
 * has grown is written anew with what has not expired and renamed over the old one, by
 * one process at a time (flock). Nobody waits for that: who appends looks afterwards
 * whether the file still has its name and else appends to its successor, and who renames
 * looks afterwards for what came meanwhile. So each line is in the successor by one of
 * them.
 */
#include "state_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/file.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_LEN    34			/* 16 hex digits, space, 16 hex digits, newline */
#define GONE_BYTES  (LINE_LEN * 200000) /* no file is written anew below that */
#define PURGE_FIRST 1024		/* nor are sessions looked through */
#define PURGE_PAUSE 60			/* seconds */
#define APPENDS_MAX 100			/* each time somebody has just written it anew */
#define GONE_BLOCK  512

struct gone_session {
	uint64_t serial, expires_s;
	struct gone_session *next;
};

/* One by one they would take their places among what ended sessions leave, and keep the
 * system from getting that back. */
struct gone_block {
	struct gone_block *next;
	struct gone_session v[GONE_BLOCK];
};

static uint64_t
gone_now(void)
{
	return (uint64_t)time(NULL);
}

/* ---- in memory ---- */

static struct gone_session *
gone_place(struct state *s)
{
	struct gone_session *g;
	struct gone_block *b;

	if (s->gone_free == NULL) {
		b = mem_try(sizeof(*b));
		if (b == NULL)
			return NULL;
		b->next = s->gone_blocks;
		s->gone_blocks = b;
		for (size_t i = 0; i < GONE_BLOCK; i++) {
			b->v[i].next = s->gone_free;
			s->gone_free = &b->v[i];
		}
	}
	g = s->gone_free;
	s->gone_free = g->next;
	return g;
}

static void
gone_leave(struct state *s, struct gone_session *g)
{
	g->next = s->gone_free;
	s->gone_free = g;
}

/* Looks through them when they have doubled, so that each is looked at twice or so. */
static void
gone_purge(struct state *s)
{
	size_t n = idmap_count(s->gone);

	if (n < s->gone_purge && n < STATE_GONE_MAX)
		return;
	/* Full of what is still valid: not at each mark. */
	if (n >= STATE_GONE_MAX && gone_now() < s->gone_purge_s)
		return;
	for (struct gone_session **at = &s->gone_first, *g; (g = *at) != NULL;) {
		if (g->expires_s > gone_now()) {
			at = &g->next;
			continue;
		}
		(void)idmap_del(s->gone, g->serial);
		*at = g->next;
		gone_leave(s, g);
	}
	n = idmap_count(s->gone);
	s->gone_purge = n > PURGE_FIRST / 2 ? n * 2 : PURGE_FIRST;
	s->gone_purge_s = gone_now() + PURGE_PAUSE;
}

static bool
gone_note(struct state *s, uint64_t serial, uint64_t expires_s)
{
	struct gone_session *g = idmap_get(s->gone, serial);

	if (g != NULL) {
		if (g->expires_s < expires_s)
			g->expires_s = expires_s;
		return true;
	}
	gone_purge(s);
	g = idmap_count(s->gone) < STATE_GONE_MAX ? gone_place(s) : NULL;
	if (g != NULL && idmap_put(s->gone, serial, g)) {
		*g = (struct gone_session){serial, expires_s, s->gone_first};
		s->gone_first = g;
		return true;
	}
	if (g != NULL)
		gone_leave(s, g);
	LOG_LIMITED(LOG_LV_ERROR, "state", "no memory for an ended session", "%s", "");
	return false;
}

/* ---- reading ---- */

static void
gone_take_line(struct state *s, const char *line)
{
	char copy[LINE_LEN + 1], *end;
	uint64_t serial, expires;

	memcpy(copy, line, LINE_LEN);
	copy[LINE_LEN] = '\0';
	serial = strtoull(copy, &end, 16);
	if (end != copy + 16)
		return;
	expires = strtoull(end, &end, 16);
	if (*end == '\n' && expires > gone_now())
		(void)gone_note(s, serial, expires);
}

/* Takes whole lines and returns what has been dealt with. A line is what stands before
 * its end: a write that a full disk has cut short may stand before that. */
static size_t
gone_take_lines(struct state *s, const char *block, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (block[i] != '\n')
			continue;
		used = i + 1;
		if (used >= LINE_LEN)
			gone_take_line(s, block + used - LINE_LEN);
	}
	return used;
}

/* Takes in what has been appended to our file since the last look, by anybody. */
static void
gone_read_on(struct state *s, off_t end)
{
	char block[LINE_LEN * 128];
	ssize_t n;

	if (end < s->gone_read)
		s->gone_read = 0; /* somebody has started it over */
	while (s->gone_read < end &&
	       (n = pread(s->gone_fd, block, sizeof(block), s->gone_read)) > 0) {
		size_t used = gone_take_lines(s, block, (size_t)n);

		if (used == 0 && n == (ssize_t)sizeof(block))
			used = sizeof(block) - LINE_LEN;
		if (used == 0)
			return;
		s->gone_read += (off_t)used;
	}
}

/* Whether the file that we have open is the one that has the name. */
static bool
gone_is_current(struct state *s, off_t *size)
{
	struct stat own, named;

	if (fstat(s->gone_fd, &own) != 0)
		return false;
	*size = own.st_size;
	return fstatat(s->dir, GONE_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* size is what it has at least, as all of it may be valid. */
static void
gone_use(struct state *s, int fd, off_t size)
{
	if (s->gone_fd >= 0)
		(void)close(s->gone_fd);
	s->gone_fd = fd;
	s->gone_read = 0;
	s->gone_limit = size > GONE_BYTES / 2 ? size * 2 : GONE_BYTES;
}

/* Opens the file that has the name, which may be none yet. */
static bool
gone_reopen(struct state *s)
{
	struct stat st;
	int fd = openat(s->dir, GONE_NAME,
	    O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		(void)close(fd);
		fd = -1;
		errno = EINVAL;
	}
	if (fd < 0) {
		state_complain(GONE_NAME);
		return false;
	}
	/* The first may be full of what has expired; a later one has just been written
	 * anew by another process. */
	gone_use(s, fd, s->gone_fd < 0 ? 0 : st.st_size);
	return true;
}

static void
gone_refresh(struct state *s)
{
	off_t size = 0;

	if (s->gone_fd < 0)
		return;
	if (!gone_is_current(s, &size) && gone_reopen(s) && !gone_is_current(s, &size))
		return; /* and again at the next look */
	gone_read_on(s, size);
}

/* ---- writing anew ---- */

/* In the order of the marks: in that of a table's slots, who reads them would fill a
 * table of his own from one end, and each look would be a walk. */
static void
gone_put_lines(struct state *s, struct buf *out)
{
	for (const struct gone_session *g = s->gone_first; g != NULL; g = g->next) {
		if (g->expires_s > gone_now())
			buf_addf(out, "%016" PRIx64 " %016" PRIx64 "\n", g->serial,
			    g->expires_s);
	}
}

/* Copies what was appended to the old file since we have read it. */
static bool
gone_copy_rest(int from, off_t at, int to)
{
	char block[LINE_LEN * 128];
	ssize_t n;

	while ((n = pread(from, block, sizeof(block), at)) > 0) {
		if (!file_write(to, block, (size_t)n))
			return false;
		at += n;
	}
	return n == 0;
}

/* Under the lock of our file, which has the name. The new one has a lock from before it
 * gets the name until the rest is in it: else the next to write it anew could be done
 * before. True: it is done. */
static bool
gone_replace(struct state *s)
{
	char name[STATE_NAME_MAX];
	off_t read_to = s->gone_read;
	int fd = state_create(s->dir, GONE_NAME, name);
	struct buf lines;
	bool ok;

	if (fd < 0) {
		state_complain(GONE_NAME);
		return false;
	}
	buf_init(&lines, (size_t)LINE_LEN * STATE_GONE_MAX);
	gone_put_lines(s, &lines);
	ok = lines.err == MV_OK && file_write(fd, lines.data, lines.len) &&
	     fcntl(fd, F_SETFL, O_APPEND) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	     renameat(s->dir, name, s->dir, GONE_NAME) == 0;
	if (ok) {
		if (!gone_copy_rest(s->gone_fd, read_to, fd))
			state_complain(GONE_NAME);
		(void)flock(fd, LOCK_UN);
		LOG_DEBUG(
		    "state", "ended sessions are written anew", "bytes=%zu", lines.len);
		/* Closing the old file gives back its lock. */
		gone_use(s, fd, (off_t)lines.len);
	} else {
		state_complain(GONE_NAME);
		(void)unlinkat(s->dir, name, 0);
		(void)close(fd);
	}
	buf_fini(&lines);
	return ok;
}

/* True: all that we know is in a new file. */
static bool
gone_trim(struct state *s)
{
	off_t size = 0;
	bool done = false;

	if (!gone_is_current(s, &size) || size <= s->gone_limit ||
	    flock(s->gone_fd, LOCK_EX | LOCK_NB) != 0)
		return false;
	/* Somebody may have had the lock, and renamed, until just now. */
	if (gone_is_current(s, &size)) {
		s->gone_limit = size * 2; /* if it fails: not at each mark */
		gone_read_on(s, size);
		done = gone_replace(s);
	}
	if (!done)
		(void)flock(s->gone_fd, LOCK_UN);
	return done;
}

/* ---- what the others use ---- */

void
state_gone_open(struct state *s)
{
	s->gone = idmap_new();
	s->gone_purge = PURGE_FIRST;
	s->gone_fd = -1;
	if (s->dir >= 0 && !s->only_looks)
		(void)gone_reopen(s);
}

void
state_gone_close(struct state *s)
{
	if (s->gone_fd >= 0)
		(void)close(s->gone_fd);
	for (struct gone_block *b = s->gone_blocks, *next; b != NULL; b = next) {
		next = b->next;
		mem_free(b);
	}
	idmap_free(s->gone);
}

void
state_mark_gone(void *state, uint64_t serial, uint64_t expires_s)
{
	struct state *s = state;
	char line[LINE_LEN + 1];
	off_t size = 0;

	if (!gone_note(s, serial, expires_s) || s->gone_fd < 0)
		return;
	gone_refresh(s);
	if (gone_trim(s))
		return;
	(void)snprintf(
	    line, sizeof(line), "%016" PRIx64 " %016" PRIx64 "\n", serial, expires_s);
	for (int i = 0; i < APPENDS_MAX; i++) {
		/* One write: others append too. */
		if (write(s->gone_fd, line, LINE_LEN) != LINE_LEN)
			break;
		/* What was in it before it lost its name is copied from it. */
		if (gone_is_current(s, &size))
			return;
		if (!gone_reopen(s))
			return;
	}
	state_complain(GONE_NAME);
}

bool
state_is_gone(void *state, uint64_t serial)
{
	struct state *s = state;

	gone_refresh(s);
	return idmap_get(s->gone, serial) != NULL;
}
