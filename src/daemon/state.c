/* SPDX-License-Identifier: MIT */
/*
 * State on disk.
 *
 * Owns: the folder (0700) and its files (0600).
 * Driven by: serve, at its start; the endpoint, when sessions end or gain state.
 * Invariants: a file is written under a new name and given its own when whole, or grows
 * by single appends of one line; a torn line spoils no other; several processes may share
 * the folder; a folder that cannot be used costs only the memory of it.
 */
#include "mcpvisor/state.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEY_NAME  "session.key"
#define KEY_MAGIC "mcpvisor session key 1\n"
#define GONE_NAME "sessions.gone"
#define LINE_LEN  34 /* 16 hex digits, space, 16 hex digits, newline */
#define GONE_MAX  (LINE_LEN * 200000)

struct state {
	int dir; /* -1: none */
	int gone_fd;
	off_t gone_read;    /* how far it has been taken in */
	struct idmap *gone; /* serial: any pointer */
};

static void
state_complain(const char *what)
{
	LOG_NOTICE("state", "is kept in memory only", "what=%s error=%s",
	    LOG_ESC(what, strlen(what)),
	    LOG_ESC(strerror(errno), strlen(strerror(errno))));
}

static int
state_make(const char *path)
{
	char part[4096];
	size_t n = strlen(path);

	if (n >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EROFS)
			return -1;
	}
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
state_open_dir(const char *dir)
{
	const char *base = getenv("STATE_DIRECTORY"), *tail = "";
	struct buf path;
	int fd = -1;

	if (dir == NULL && base != NULL && base[0] != '\0') {
		dir = base;
	} else if (dir == NULL) {
		base = getenv("XDG_STATE_HOME");
		tail = "/mcpvisor";
		if (base == NULL || base[0] != '/') {
			base = getenv("HOME");
			tail = "/.local/state/mcpvisor";
			if (base != NULL && base[0] != '/')
				base = NULL;
		}
	}
	buf_init(&path, 4096);
	/* systemd gives several folders in one variable: the first is ours. */
	if (dir != NULL)
		buf_add(&path, dir, strcspn(dir, ":"));
	else if (base != NULL)
		buf_addf(&path, "%s%s", base, tail);
	if (path.len > 0 && buf_cstr(&path) != NULL)
		fd = state_make(path.data);
	if (fd < 0)
		state_complain(
		    path.len > 0 && path.err == MV_OK ? path.data : "no folder");
	buf_fini(&path);
	return fd;
}

struct state *
state_open(const char *dir)
{
	struct state *s = mem_xcalloc(1, sizeof(*s));

	s->gone = idmap_new();
	s->gone_fd = -1;
	s->dir = state_open_dir(dir);
	if (s->dir >= 0) {
		s->gone_fd = openat(s->dir, GONE_NAME,
		    O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (s->gone_fd < 0)
			state_complain(GONE_NAME);
	}
	return s;
}

void
state_close(struct state *s)
{
	if (s == NULL)
		return;
	if (s->gone_fd >= 0)
		(void)close(s->gone_fd);
	if (s->dir >= 0)
		(void)close(s->dir);
	idmap_free(s->gone);
	mem_free(s);
}

static bool
state_read_key(struct state *s, struct mac_key *key)
{
	char text[sizeof(KEY_MAGIC) + MAC_KEY_BYTES] = {0};
	struct stat st;
	int fd = openat(s->dir, KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	/* A key that others can read or write signs nothing. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) == 0 &&
	    st.st_uid == geteuid())
		n = read(fd, text, sizeof(text));
	(void)close(fd);
	if (n != (ssize_t)sizeof(text) - 1 ||
	    memcmp(text, KEY_MAGIC, sizeof(KEY_MAGIC) - 1) != 0)
		return false;
	memcpy(key->bytes, text + sizeof(KEY_MAGIC) - 1, MAC_KEY_BYTES);
	return true;
}

static bool
state_write_key(struct state *s, const struct mac_key *key, bool replace)
{
	char text[sizeof(KEY_MAGIC) - 1 + MAC_KEY_BYTES], name[64];
	int fd;
	bool ok;

	/* Never a file that is there: in another container our pid may be at it too. */
	(void)snprintf(name, sizeof(name), KEY_NAME ".%d.%08" PRIx32, (int)getpid(),
	    clock_random(UINT32_MAX));
	fd = openat(
	    s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	memcpy(text, KEY_MAGIC, sizeof(KEY_MAGIC) - 1);
	memcpy(text + sizeof(KEY_MAGIC) - 1, key->bytes, MAC_KEY_BYTES);
	ok = write(fd, text, sizeof(text)) == (ssize_t)sizeof(text) && fsync(fd) == 0;
	(void)close(fd);
	/* link does not replace: of two processes that start at once one wins. */
	if (ok && replace)
		ok = renameat(s->dir, name, s->dir, KEY_NAME) == 0;
	else if (ok)
		ok = linkat(s->dir, name, s->dir, KEY_NAME, 0) == 0;
	(void)unlinkat(s->dir, name, 0);
	return ok;
}

void
state_key(struct state *s, struct mac_key *key)
{
	if (s->dir >= 0 && state_read_key(s, key))
		return;
	mac_key_random(key);
	if (s->dir < 0)
		return;
	if (state_write_key(s, key, false))
		return;
	if (errno == EEXIST) {
		if (state_read_key(s, key))
			return;
		/* There, but foreign, damaged or open to others. */
		LOG_WARNING("state", "key is not usable and is made anew", "%s", "");
		if (state_write_key(s, key, true))
			return;
	}
	state_complain(KEY_NAME);
}

static void
state_note(struct state *s, uint64_t serial)
{
	if (!idmap_put(s->gone, serial, s))
		LOG_LIMITED(
		    LOG_LV_ERROR, "state", "no memory for an ended session", "%s", "");
}

static void
state_take_line(struct state *s, const char *line)
{
	uint64_t now = (uint64_t)time(NULL);
	char copy[LINE_LEN + 1], *end;
	uint64_t serial, expires;

	memcpy(copy, line, LINE_LEN);
	copy[LINE_LEN] = '\0';
	serial = strtoull(copy, &end, 16);
	if (end != copy + 16)
		return;
	expires = strtoull(end, &end, 16);
	if (*end == '\n' && expires > now)
		state_note(s, serial);
}

/* Takes whole lines and returns what has been dealt with. A line is what stands before
 * its end: a write that a full disk has cut short may stand before that. */
static size_t
state_take_lines(struct state *s, const char *block, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (block[i] != '\n')
			continue;
		used = i + 1;
		if (used >= LINE_LEN)
			state_take_line(s, block + used - LINE_LEN);
	}
	return used;
}

/* Takes in what has been appended since the last look, by anybody. */
static void
state_read_gone(struct state *s)
{
	off_t end = s->gone_fd < 0 ? 0 : lseek(s->gone_fd, 0, SEEK_END);
	char block[LINE_LEN * 128];
	ssize_t n;

	if (end < s->gone_read)
		s->gone_read = 0; /* another process has started it over */
	while (s->gone_read < end &&
	       (n = pread(s->gone_fd, block, sizeof(block), s->gone_read)) > 0) {
		size_t used = state_take_lines(s, block, (size_t)n);

		if (used == 0 && n == (ssize_t)sizeof(block))
			used = sizeof(block) - LINE_LEN;
		if (used == 0)
			return;
		s->gone_read += (off_t)used;
	}
}

/* Starts over when all that is in a large file has expired, or nearly. */
static void
state_trim_gone(struct state *s)
{
	struct stat st;

	if (s->gone_fd >= 0 && fstat(s->gone_fd, &st) == 0 && st.st_size > GONE_MAX &&
	    ftruncate(s->gone_fd, 0) == 0)
		s->gone_read = 0;
}

void
state_mark_gone(void *state, uint64_t serial, uint64_t expires_s)
{
	struct state *s = state;
	char line[LINE_LEN + 1];

	state_note(s, serial);
	if (s->gone_fd < 0)
		return;
	state_trim_gone(s);
	(void)snprintf(
	    line, sizeof(line), "%016" PRIx64 " %016" PRIx64 "\n", serial, expires_s);
	if (write(s->gone_fd, line, LINE_LEN) != LINE_LEN)
		state_complain(GONE_NAME);
}

bool
state_is_gone(void *state, uint64_t serial)
{
	struct state *s = state;

	state_read_gone(s);
	return idmap_get(s->gone, serial) != NULL;
}
