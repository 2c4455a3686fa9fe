/* SPDX-License-Identifier: MIT */
/*
 * Opening a socket to listen on, and who may reach a unix socket's file.
 *
 * Owns: nothing that stays; the lock beside a unix socket's file only while it opens.
 * Driven by: listener.c.
 * Invariants: a unix socket is 0600 before it has a name; nobody removes a file that
 * another process of ours has just bound.
 */
#include "mcpvisor/listener.h"

#include "listener_priv.h"

#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_TRIES	4
#define GROUP_BYTES	((size_t)1024)
#define GROUP_BYTES_MAX ((size_t)1024 * 1024)

static enum mv_err
open_failed(const char *address, struct mv_errtext *et)
{
	mv_errtext_set(et, "cannot listen on %s: %s", address, strerrordesc_np(errno));
	return MV_SYSTEM;
}

static void
unix_lock_name(const char *path, char *out, size_t size)
{
	(void)snprintf(out, size, "%s.lock", path);
}

/*
 * One process at a time goes from the look at an old file to a socket that listens. A
 * file that was bound and does not listen yet looks like a stale one, so without this
 * two that start at once could each remove what the other has just made, and the loser
 * would serve where nobody can come. The lock's own file goes while it is held; who
 * opened it before that sees that its name leads elsewhere, and tries again.
 */
static enum mv_err
unix_lock(const char *address, const char *path, int *lock, struct mv_errtext *et)
{
	char name[LISTENER_TEXT_BYTES];

	unix_lock_name(path, name, sizeof(name));
	for (int i = 0; i < LOCK_TRIES; i++) {
		int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat mine, there;
		bool held;

		if (fd < 0)
			return open_failed(address, et);
		held = flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (held && fstat(fd, &mine) == 0 && lstat(name, &there) == 0 &&
		    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino) {
			*lock = fd;
			return MV_OK;
		}
		(void)close(fd);
		if (!held)
			break;
	}
	mv_errtext_set(et, "%s: somebody else is about to listen there", path);
	return MV_BUSY;
}

static void
unix_unlock(const char *path, int lock)
{
	char name[LISTENER_TEXT_BYTES];

	unix_lock_name(path, name, sizeof(name));
	(void)unlink(name);
	(void)close(lock);
}

/* A file that nobody listens on any more goes; MV_OK says that it went. */
static enum mv_err
unix_clear_stale(
    const char *address, const struct listener_place *p, struct mv_errtext *et)
{
	const char *path = p->a.un.sun_path;
	struct stat st;
	bool refused;
	int fd;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		mv_errtext_set(et, "%s exists and is not a socket", path);
		return MV_SYSTEM;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return open_failed(address, et);
	refused = connect(fd, &p->a.sa, p->len) != 0 && errno == ECONNREFUSED;
	(void)close(fd);
	if (!refused) {
		mv_errtext_set(et, "%s: somebody listens there already", path);
		return MV_BUSY;
	}
	if (unlink(path) != 0 && errno != ENOENT) {
		mv_errtext_set(et, "cannot remove %s: %s", path, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	return MV_OK;
}

static enum mv_err
open_bind(
    int fd, const char *address, const struct listener_place *p, struct mv_errtext *et)
{
	enum mv_err err;
	int on = 1;

	if (p->a.sa.sa_family == AF_UNIX) {
		/* The file gets the mode that the socket has at bind: at no moment may
		 * anybody else connect. */
		(void)fchmod(fd, 0600);
	} else {
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	}
	if (bind(fd, &p->a.sa, p->len) == 0)
		return MV_OK;
	if (errno != EADDRINUSE || p->a.sa.sa_family != AF_UNIX)
		return open_failed(address, et);
	err = unix_clear_stale(address, p, et);
	if (err != MV_OK)
		return err;
	if (bind(fd, &p->a.sa, p->len) == 0)
		return MV_OK;
	(void)open_failed(address, et);
	return MV_BUSY; /* taken meanwhile, by somebody who takes no lock */
}

static enum mv_err
open_socket(const char *address, const struct listener_place *p, int *fd,
    struct listener_file *file, struct mv_errtext *et)
{
	enum mv_err err;
	struct stat st;

	*fd = socket(p->a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return open_failed(address, et);
	err = open_bind(*fd, address, p, et);
	if (err != MV_OK)
		return err;
	if (p->a.sa.sa_family == AF_UNIX && lstat(p->a.un.sun_path, &st) == 0) {
		memcpy(file->path, p->a.un.sun_path, sizeof(file->path));
		file->dev = st.st_dev;
		file->ino = st.st_ino;
		file->gid = st.st_gid;
	}
	return listen(*fd, SOMAXCONN) == 0 ? MV_OK : open_failed(address, et);
}

enum mv_err
listener_open(const char *address, const struct listener_place *p, int *fd,
    struct listener_file *file, struct mv_errtext *et)
{
	enum mv_err err;
	int lock = -1;

	if (p->inherited)
		return listener_adopt(p->inherited, fd, et);
	if (p->a.sa.sa_family != AF_UNIX)
		return open_socket(address, p, fd, file, et);
	err = unix_lock(address, p->a.un.sun_path, &lock, et);
	if (err != MV_OK)
		return err;
	err = open_socket(address, p, fd, file, et);
	unix_unlock(p->a.un.sun_path, lock);
	return err;
}

bool
listener_file_is_ours(const struct listener_file *f, struct stat *st)
{
	return f->path[0] && lstat(f->path, st) == 0 && st->st_dev == f->dev &&
	       st->st_ino == f->ino;
}

static enum mv_err
access_group(const char *name, gid_t *gid, struct mv_errtext *et)
{
	struct group entry, *found = NULL;
	size_t size = GROUP_BYTES;
	char *text = NULL;
	int status = ERANGE;

	while (status == ERANGE && size <= GROUP_BYTES_MAX) {
		mem_free(text);
		text = mem_xalloc(size);
		status = getgrnam_r(name, &entry, text, size, &found);
		size *= 4;
	}
	if (found != NULL)
		*gid = entry.gr_gid;
	mem_free(text);
	if (found != NULL)
		return MV_OK;
	mv_errtext_set(et, "there is no group \"%s\"", name);
	return MV_CONF;
}

enum mv_err
listener_file_set_access(const struct listener_file *f, unsigned mode, const char *group,
    struct mv_errtext *et)
{
	enum mv_err err;
	struct stat st;
	gid_t gid;

	if (!listener_file_is_ours(f, &st))
		return MV_OK;
	gid = f->gid;
	if (group != NULL) {
		err = access_group(group, &gid, et);
		if (err != MV_OK)
			return err;
	}
	/* While the group changes neither the old one nor the new one may come in by
	 * what the other was given. */
	if (gid != st.st_gid &&
	    (chmod(f->path, 0600) != 0 || lchown(f->path, (uid_t)-1, gid) != 0)) {
		mv_errtext_set(et, "cannot give %s to the group \"%s\": %s", f->path,
		    group != NULL ? group : "", strerrordesc_np(errno));
		(void)chmod(f->path, st.st_mode & 0777);
		return MV_SYSTEM;
	}
	if (chmod(f->path, mode & 0777) != 0) {
		mv_errtext_set(
		    et, "cannot set the mode of %s: %s", f->path, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	return MV_OK;
}
