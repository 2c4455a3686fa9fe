/* SPDX-License-Identifier: MIT */
/*
 * State on disk: the folder and its key.
 *
 * Owns: the folder (0700) and its files (0600).
 * Driven by: serve, at its start; the endpoint, when sessions end or gain state; the
 * gateway's upstreams, when what they offer changes.
 * Invariants: a file is written under a new name and given its own when whole, or grows
 * by single appends of one line; several processes may share the folder; a folder that
 * cannot be used costs only the memory of it.
 */
#include "mcpvisor/state.h"

#include "state_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/file.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <dirent.h>
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

#define KEY_MAGIC "mcpvisor session key 1\n"
/* Nobody is still at a new file that is older. */
#define NEW_KEEP_S 3600

void
state_complain(const char *what)
{
	LOG_LIMITED(LOG_LV_NOTICE, "state", "is kept in memory only", "what=%s error=%s",
	    LOG_ESC(what, strlen(what)),
	    LOG_ESC(strerror(errno), strlen(strerror(errno))));
}

/* ---- the folder ---- */

static int
state_make(const char *path, bool only_looks)
{
	char part[4096];
	size_t n = strlen(path);

	if (n >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; i <= n && !only_looks; i++) {
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
state_open_dir(const char *dir, bool only_looks)
{
	const char *base = getenv("STATE_DIRECTORY"), *tail = "";
	struct buf path;
	int fd = -1;

	buf_init(&path, 4096);
	if (dir != NULL) {
		buf_add_str(&path, dir);
	} else if (base != NULL && base[0] != '\0') {
		/* systemd gives several folders in one variable: the first is ours. */
		buf_add(&path, base, strcspn(base, ":"));
	} else {
		base = getenv("XDG_STATE_HOME");
		tail = "/mcpvisor";
		if (base == NULL || base[0] != '/') {
			base = getenv("HOME");
			tail = "/.local/state/mcpvisor";
			if (base != NULL && base[0] != '/')
				base = NULL;
		}
		if (base != NULL)
			buf_addf(&path, "%s%s", base, tail);
	}
	errno = ENOENT;
	if (path.len > 0 && buf_cstr(&path) != NULL)
		fd = state_make(path.data, only_looks);
	if (fd < 0 && !(only_looks && errno == ENOENT))
		state_complain(
		    path.len > 0 && path.err == MV_OK ? path.data : "no folder");
	buf_fini(&path);
	return fd;
}

static struct state *
state_new(const char *dir, bool only_looks)
{
	struct state *s = mem_xcalloc(1, sizeof(*s));

	s->only_looks = only_looks;
	s->lists = strmap_new();
	s->dir = state_open_dir(dir, only_looks);
	state_gone_open(s);
	return s;
}

struct state *
state_open(const char *dir)
{
	return state_new(dir, false);
}

struct state *
state_open_to_look(const char *dir)
{
	return state_new(dir, true);
}

void
state_close(struct state *s)
{
	if (s == NULL)
		return;
	state_lists_close(s);
	state_gone_close(s);
	if (s->dir >= 0)
		(void)close(s->dir);
	mac_key_wipe(&s->key);
	mem_free(s);
}

/* ---- new files ---- */

int
state_create(int dir, const char *head, char name[STATE_NAME_MAX])
{
	static unsigned count;

	/* Never a file that is there: in another container our pid may be at it too. */
	(void)snprintf(name, STATE_NAME_MAX, "%s.%d.%u.%08" PRIx32, head, (int)getpid(),
	    count++, clock_random(UINT32_MAX));
	return openat(
	    dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void
state_each_file(int dir, void (*fn)(int dir, const char *name, void *arg), void *arg)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	/* cppcheck-suppress readdirCalled ; there are no threads */
	while ((e = readdir(d)) != NULL)
		fn(fd, e->d_name, arg);
	(void)closedir(d);
}

static void
state_sweep_new_one(int dir, const char *name, void *arg)
{
	const char *head = arg;
	size_t n = strlen(head);
	struct stat st;

	if (strncmp(name, head, n) == 0 && name[n] == '.' &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_mtime < time(NULL) - NEW_KEEP_S)
		(void)unlinkat(dir, name, 0);
}

void
state_sweep_new(int dir, const char *head)
{
	char arg[STATE_NAME_MAX];

	(void)snprintf(arg, sizeof(arg), "%s", head);
	state_each_file(dir, state_sweep_new_one, arg);
}

/* ---- the key ---- */

static bool
state_read_key(struct state *s, struct mac_key *key)
{
	char text[sizeof(KEY_MAGIC) + MAC_KEY_BYTES] = {0};
	struct stat st;
	/* Of a pipe in its place, an open would not return. */
	int fd = openat(s->dir, KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	/* A key that others can read or write signs nothing. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) == 0 &&
	    st.st_uid == geteuid())
		n = read(fd, text, sizeof(text));
	(void)close(fd);
	if (n == (ssize_t)sizeof(text) - 1 &&
	    memcmp(text, KEY_MAGIC, sizeof(KEY_MAGIC) - 1) == 0)
		memcpy(key->bytes, text + sizeof(KEY_MAGIC) - 1, MAC_KEY_BYTES);
	else
		n = -1;
	explicit_bzero(text, sizeof(text));
	return n > 0;
}

static bool
state_write_key(struct state *s, const struct mac_key *key, bool replace)
{
	char text[sizeof(KEY_MAGIC) - 1 + MAC_KEY_BYTES], name[STATE_NAME_MAX];
	int fd = state_create(s->dir, KEY_NAME, name), fault;
	bool ok;

	if (fd < 0)
		return false;
	memcpy(text, KEY_MAGIC, sizeof(KEY_MAGIC) - 1);
	memcpy(text + sizeof(KEY_MAGIC) - 1, key->bytes, MAC_KEY_BYTES);
	ok = file_write(fd, text, sizeof(text)) && fsync(fd) == 0;
	explicit_bzero(text, sizeof(text));
	fault = errno;
	(void)close(fd);
	errno = fault;
	/* link does not replace: of two processes that start at once one wins. */
	if (ok && replace)
		ok = renameat(s->dir, name, s->dir, KEY_NAME) == 0;
	else if (ok)
		ok = linkat(s->dir, name, s->dir, KEY_NAME, 0) == 0;
	fault = errno;
	(void)unlinkat(s->dir, name, 0);
	errno = fault;
	return ok;
}

/* What is there was not to be used: it may be foreign, damaged or open to others, or
 * whole by now. One process at a time, or each would go on with a key of its own. */
static bool
state_replace_key(struct state *s)
{
	bool locked = flock(s->dir, LOCK_EX) == 0, ok = state_read_key(s, &s->key);
	int fault;

	if (!ok) {
		LOG_WARNING("state", "key is not usable and is made anew", "%s", "");
		ok = state_write_key(s, &s->key, true);
	}
	fault = errno;
	if (locked)
		(void)flock(s->dir, LOCK_UN);
	errno = fault;
	return ok;
}

static bool
state_make_key(struct state *s)
{
	if (s->dir >= 0 && state_read_key(s, &s->key))
		return true;
	mac_key_random(&s->key);
	if (s->dir < 0 || s->only_looks)
		return false;
	if (state_write_key(s, &s->key, false))
		return true;
	if (errno == EEXIST && state_replace_key(s))
		return true;
	state_complain(KEY_NAME);
	return false;
}

bool
state_load_key(struct state *s)
{
	if (!s->has_key) {
		s->shares_key = state_make_key(s);
		s->has_key = true;
	}
	return s->shares_key;
}

void
state_key(struct state *s, struct mac_key *key)
{
	(void)state_load_key(s);
	*key = s->key;
}
